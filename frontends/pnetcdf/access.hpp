// Blocking puts and gets, and nonblocking requests: the common implementation of the API's
// functions.

#pragma once

#include <utility>

#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {

/// Run blocking transfers that are prepared. `status` is the result of their preparation on this
/// rank.
int run(OpenFile& file, Direction direction, int status, std::vector<Transfer*> transfers);

/// Places in several variables (mput, mget).
struct ManyPlaces {
  Place::Kind kind = Place::Kind::whole;
  MPI_Offset* const* starts = nullptr;
  MPI_Offset* const* counts = nullptr;
  MPI_Offset* const* strides = nullptr;
  MPI_Offset* const* element_maps = nullptr;

  Place of(int i) const;
};
struct ManyMemory {
  void* const* values = nullptr;
  ModelType type = ModelType::f64;
  bool typed = true;
  const MPI_Offset* counts = nullptr;
  const MPI_Datatype* datatypes = nullptr;

  template <class T>
  static ManyMemory of(T* const* values, ModelType type) {
    return {reinterpret_cast<void* const*>(values), type};
  }
  static ManyMemory flexible(void* const* values, const MPI_Offset* counts,
                             const MPI_Datatype* datatypes) {
    return {values, ModelType::f64, false, counts, datatypes};
  }
  CallerMemory at(int i) const;
};
int access_many(OpenFile& file, Direction direction, int n, const int* varids,
                const ManyPlaces& places, const ManyMemory& memory);

/// Queue a transfer that a nonblocking function has prepared. Not collective.
int take_request(OpenFile& file, bool put, bool buffered, int status, Transfer transfer,
                 int* request);

template <class Prepare>
int prepare_safely(Prepare&& prepare) {
  // A rank without memory must still take part in the collective calls that follow.
  return guarded(prepare);
}

/// Run one blocking put or get of a Place, PlaceList or Filetype. With direction.collective,
/// collective over the dataset: one allreduce for a put, ArrayFile::get_all() for a get.
template <class Where>
int access(OpenFile& file, Direction direction, int varid, const Where& where,
           const CallerMemory& memory) {
  Transfer transfer;
  const int status =
      prepare_safely([&] { return transfer.prepare(file, direction, varid, where, memory); });
  return run(file, direction, status, {&transfer});
}

/// Post a request; `buffered`: bput. Not collective.
template <class Where>
int post(OpenFile& file, bool put, bool buffered, int varid, const Where& where,
         const CallerMemory& memory, int* request) {
  if (request != nullptr) *request = NC_REQ_NULL;
  Transfer transfer;
  const int status = transfer.prepare(file, {put, false, false, buffered}, varid, where, memory);
  return take_request(file, put, buffered, status, std::move(transfer), request);
}

}  // namespace tailrace::pnetcdf
