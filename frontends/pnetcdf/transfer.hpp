// Transfer: one put or get between a caller's memory and a variable.
//
// It is checked and prepared when the call is made, so that argument errors are returned
// immediately. It runs in the same call (blocking functions) or at a wait. Values that need no
// conversion are used in place, in the caller's memory. A put is converted when it is prepared,
// because PnetCDF then returns NC_ERANGE; a get is converted when it is finished.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "array/element_runs.hpp"
#include "core/slab.hpp"
#include "pnetcdf/caller_memory.hpp"
#include "read/read.hpp"

namespace tailrace::pnetcdf {

struct OpenFile;

/// Place in a variable, from a function's arguments; pointers may be null.
struct Place {
  enum class Kind { whole, one, part };
  Kind kind = Kind::whole;
  const MPI_Offset* start = nullptr;
  const MPI_Offset* count = nullptr;
  const MPI_Offset* stride = nullptr;
  const MPI_Offset* element_map = nullptr;

  static Place whole() { return {}; }
  static Place one(const MPI_Offset* start) { return {Kind::one, start}; }
  static Place part(const MPI_Offset* start, const MPI_Offset* count,
                    const MPI_Offset* stride = nullptr, const MPI_Offset* element_map = nullptr) {
    return {Kind::part, start, count, stride, element_map};
  }
};

/// Parts of one variable that are consecutive in memory (varn).
struct PlaceList {
  int n = 0;
  MPI_Offset* const* starts = nullptr;
  MPI_Offset* const* counts = nullptr;
};

/// Place in a variable, given by an MPI datatype over its bytes (vard).
struct Filetype {
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

/// Kind of function that a transfer belongs to.
struct Direction {
  bool put = false;
  bool collective = false;
  bool blocking = true;
  bool buffered = false;  ///< Posted by bput: a buffer must be attached.
};

class Transfer {
 public:
  /// Check a call and prepare its transfer. @returns NC_NOERR, NC_ERANGE (prepared nevertheless),
  /// or an error: then nothing is transferred.
  int prepare(OpenFile& file, Direction direction, int varid, const Place& place,
              const CallerMemory& memory);
  int prepare(OpenFile& file, Direction direction, int varid, const PlaceList& parts,
              const CallerMemory& memory);
  int prepare(OpenFile& file, Direction direction, int varid, Filetype filetype,
              const CallerMemory& memory);
  /// Copy a put's values, so that the caller may change them.
  void keep_values();
  /// Copy the caller's datatype, so that the caller may free it.
  void keep_datatype() { memory_.keep_datatype(); }

  bool empty() const { return n_elements_ == 0; }
  /// Uncompressed bytes in the variable's type.
  std::uint64_t n_bytes() const;

  std::size_t variable() const { return variable_; }

  /// Stage a put. Not collective.
  int put(OpenFile& file) const;
  /// Read independently.
  int get(OpenFile& file);
  /// Append the slabs of a get, for a collective read; finish() must follow.
  void add_requests(std::vector<ReadRequest>& requests);
  /// Convert and deliver the values read. @returns NC_NOERR, NC_ERANGE
  int finish(OpenFile& file);

 private:
  int begin(OpenFile& file, Direction direction, int varid, const CallerMemory& memory);
  int add_slab(OpenFile& file, bool put, const Place& place);
  bool add_runs(OpenFile& file, const PlaceList& parts);
  int add_filetype(OpenFile& file, bool put, MPI_Datatype filetype);
  int prepare_memory(OpenFile& file, bool put);
  std::byte* values();

  int varid_ = -1;
  std::size_t variable_ = 0;  ///< Position in the model.
  ModelType type_ = ModelType::f64;
  std::vector<Slab> slabs_;
  ElementRuns runs_;  ///< Used instead of slabs for a put of very many pieces.
  /// Shape of the memory: that of the only slab, or all elements in one dimension.
  Shape count_;
  std::uint64_t n_elements_ = 0;
  CallerMemory memory_;
  bool plain_ = true;              ///< The caller's memory is used as it is.
  std::vector<std::byte> values_;  ///< Converted or copied values; used if not plain_.
};

}  // namespace tailrace::pnetcdf
