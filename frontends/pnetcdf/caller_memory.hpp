// The caller's memory of one put or get: where the values are, of which type, in which order.
//
// Three layers lie between it and a variable's dense values, each absent as a rule: an MPI datatype
// (the flexible functions), an element map (varm), and another type. gather() and scatter() take
// them all in one go.

#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/slab.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace::pnetcdf {

struct CallerMemory {
  void* values = nullptr;  ///< Of a put: read only.
  ModelType type = ModelType::f64;
  bool typed = true;      ///< False: a flexible function; `datatype` says what there is.
  MPI_Offset count = -1;  ///< Of datatypes; ignored where the datatype is null.
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  std::vector<MPI_Offset> element_map;  ///< Per dimension, in elements; empty: row-major, dense.
  std::shared_ptr<MPI_Datatype> kept;   ///< Our own copy of the datatype, see keep_datatype().

  static CallerMemory of(const void* values, ModelType type) {
    return {const_cast<void*>(values), type, true, -1, MPI_DATATYPE_NULL, {}, {}};
  }
  static CallerMemory flexible(const void* values, MPI_Offset count, MPI_Datatype datatype) {
    return {const_cast<void*>(values), ModelType::f64, false, count, datatype, {}, {}};
  }
  /// Hold the datatype until this memory is gone: a program may free its own before it waits.
  void keep_datatype();
};

/// The one type that a datatype consists of. @returns NC_NOERR, NC_EUNSPTETYPE, NC_EMULTITYPES
int type_of_datatype(MPI_Datatype datatype, ModelType& type);

/// Settle `memory.type` of a flexible function, and its count where that is -1 (for as many as the
/// slab has, of one of MPI's own types), and check that it holds what the slab needs.
/// @returns NC_NOERR, NC_EUNSPTETYPE, NC_EMULTITYPES, NC_EIOMISMATCH, NC_EBADTYPE
int resolve_memory(CallerMemory& memory, ModelType variable_type, std::uint64_t n_elements);

/// Whether the memory already is what a variable of this type wants, dense and in order.
bool is_plain(const CallerMemory& memory, ModelType variable_type, const Shape& count);

/// The dense values of `variable_type` that the memory holds. @returns NC_NOERR, NC_ERANGE
int gather_memory(const CallerMemory& memory, const Shape& count, ModelType variable_type,
                  const std::byte* fill, bool loose_bytes, std::vector<std::byte>& values);

/// The way back. @returns NC_NOERR, NC_ERANGE
int scatter_memory(const std::vector<std::byte>& values, ModelType variable_type,
                   const Shape& count, bool loose_bytes, const CallerMemory& memory);

}  // namespace tailrace::pnetcdf
