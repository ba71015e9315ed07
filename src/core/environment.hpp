// Variables of the process's environment, and the small files that they and options name.
//
// A library may be linked into a program that runs with more rights than its caller (set-uid). Such
// a program ignores its caller's environment. A file named to it must not be endless, must not
// block, and must not appear in an error message.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#ifndef __linux__
#include <unistd.h>
#endif

#include "trz/base/status.hpp"

namespace tailrace {

/// Return the value of a variable; null if it is not set, or if the process has more rights than
/// its caller. Every read of the environment uses this function.
inline const char* environment_variable(const char* name) {
#ifdef __linux__
  return ::secure_getenv(name);
#else
  return ::issetugid() != 0 ? nullptr : std::getenv(name);
#endif
}

/// Largest settings file: options, machine profiles.
inline constexpr std::uint64_t kSettingsBytesMax = 1 << 20;

/// Read a regular file completely. Does not block: pipes and devices are rejected.
/// @error invalid_argument  it does not exist, is not a regular file, or has more than `bytes_max`.
/// @error io_error
/// No message contains bytes of the file. Not collective.
Result<std::string> read_settings_file(const std::string& path,
                                       std::uint64_t bytes_max = kSettingsBytesMax);

/// True if the variable has this value.
inline bool environment_is(const char* name, std::string_view value) {
  const char* const setting = environment_variable(name);
  return setting != nullptr && setting == value;
}

}  // namespace tailrace
