// What ranks define must be alike. Here that is looked after as PnetCDF does it.
//
// In safe mode (PNETCDF_SAFE_MODE=1) every call that defines something compares its arguments on
// all ranks; one that differs is an error with a code of its own on every rank, and nothing is
// defined. Otherwise only the whole is compared, when it goes to the file
// (ArrayFile::change_model): there attributes may differ, rank 0's count; programs put the time of
// day there, which each rank reads from its own clock. Dimensions and variables that differ are
// NC_EMULTIDEFINE.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {

/// An argument that must be alike, and the code of its difference.
struct Argument {
  int code;
  std::uint64_t digest;

  Argument(int its_code, std::string_view text);
  Argument(int its_code, const char* text)
      : Argument(its_code, std::string_view(text == nullptr ? "" : text)) {}
  Argument(int its_code, std::int64_t number)
      : code(its_code), digest(static_cast<std::uint64_t>(number)) {}
  Argument(int its_code, const void* bytes, std::size_t n_bytes)
      : Argument(its_code, std::string_view(static_cast<const char*>(bytes), n_bytes)) {}
};

/// Whether a defining call may go on: `status` is what its checks gave on this rank. In safe mode
/// collective (one allreduce), and the answer is the same on every rank.
int agree_on_call(OpenFile& file, int status, std::initializer_list<Argument> arguments);

/// Give all ranks rank 0's attributes. Collective: one allreduce, and one broadcast if some differ.
void take_attributes_of_root(OpenFile& file);

}  // namespace tailrace::pnetcdf
