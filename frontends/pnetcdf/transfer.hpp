// Transfer: one put or get on its way between a caller's memory and a variable.
//
// It is checked and prepared when the call is made, so that all errors of arguments come at once,
// and runs now (blocking functions) or at a wait. Values that need no conversion are handed on as
// they lie in the caller's memory; a put that does is converted when it is prepared, because
// PnetCDF answers NC_ERANGE then, a get when it is finished.

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

/// Where in a variable, as a function's arguments say; pointers may be null.
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

/// Several parts of one variable that lie one after the other in memory (varn).
struct PlaceList {
  int n = 0;
  MPI_Offset* const* starts = nullptr;
  MPI_Offset* const* counts = nullptr;
};

/// The place that an MPI datatype over the variable's bytes means (vard).
struct Filetype {
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
};

/// The function that a transfer belongs to.
struct Direction {
  bool put = false;
  bool collective = false;
  bool blocking = true;
  bool buffered = false;  ///< bput: a buffer must be attached.
};

class Transfer {
 public:
  /// Check a call and make its transfer ready. @returns NC_NOERR, NC_ERANGE (ready all the same),
  /// or an error: nothing is to be done then.
  int prepare(OpenFile& file, Direction direction, int varid, const Place& place,
              const CallerMemory& memory);
  int prepare(OpenFile& file, Direction direction, int varid, const PlaceList& parts,
              const CallerMemory& memory);
  int prepare(OpenFile& file, Direction direction, int varid, Filetype filetype,
              const CallerMemory& memory);
  /// Take a copy of a put's values, which the caller may then change.
  void keep_values();
  /// Outlive the caller's datatype.
  void keep_datatype() { memory_.keep_datatype(); }

  bool empty() const { return n_elements_ == 0; }
  /// Uncompressed bytes in the variable's type.
  std::uint64_t n_bytes() const;

  std::size_t variable() const { return variable_; }

  /// Stage a put. Not collective.
  int put(OpenFile& file) const;
  /// Read, independently.
  int get(OpenFile& file);
  /// The slabs of a get, for a collective read; finish() afterwards.
  void add_requests(std::vector<ReadRequest>& requests);
  /// Bring what was read to the caller. @returns NC_NOERR, NC_ERANGE
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
  ElementRuns runs_;  ///< In place of slabs, of a put of very many pieces.
  Shape count_;  ///< The shape of the memory: that of the only slab, or all elements in a line.
  std::uint64_t n_elements_ = 0;
  CallerMemory memory_;
  bool plain_ = true;              ///< The caller's memory is used as it is.
  std::vector<std::byte> values_;  ///< Otherwise.
};

}  // namespace tailrace::pnetcdf
