// Variables of the process's environment, and the small files that they and options name.
//
// A library may be linked into a program that runs with more rights than its caller (set-uid). Such
// a program takes no orders from its caller's environment, and a file that is named to it must not
// be one that never ends, that waits, or that an error message shows.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#ifndef __linux__
#include <unistd.h>
#endif

#include "trz/base/status.hpp"

namespace tailrace {

/// The value of a variable; null where it is not set, and in a process with more rights than its
/// caller. Every read of the environment is by this function.
inline const char* environment_variable(const char* name) {
#ifdef __linux__
  return ::secure_getenv(name);
#else
  return ::issetugid() != 0 ? nullptr : std::getenv(name);
#endif
}

/// Largest file of settings: options, machine profiles.
inline constexpr std::uint64_t settings_bytes_max = 1 << 20;

/// The bytes of a regular file. Does not wait: a pipe or a device is refused.
/// @error invalid_argument  not a regular file, or more than `bytes_max`.  @error not_found,
/// io_error. No message has bytes of the file. Not collective.
Result<std::string> read_settings_file(const std::string& path,
                                       std::uint64_t bytes_max = settings_bytes_max);

}  // namespace tailrace
