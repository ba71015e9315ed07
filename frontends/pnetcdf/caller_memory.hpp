// The caller's memory of one put or get: address, type and order of the values.
//
// Up to three layers separate it from a variable's dense values, all of them usually absent: an MPI
// datatype (the flexible functions), an element map (varm), and another type. gather_memory() and
// scatter_memory() handle all of them in one pass.

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
  void* values = nullptr;  ///< Read only for a put.
  ModelType type = ModelType::f64;
  /// False for a flexible function: `datatype` describes the memory.
  bool typed = true;
  MPI_Offset count = -1;  ///< Number of datatypes; ignored if `datatype` is null.
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  std::vector<MPI_Offset> element_map;  ///< Per dimension, in elements; empty: row-major, dense.
  std::shared_ptr<MPI_Datatype> kept;   ///< Copy of the datatype, see keep_datatype().

  static CallerMemory of(const void* values, ModelType type) {
    return {const_cast<void*>(values), type, true, -1, MPI_DATATYPE_NULL, {}, {}};
  }
  static CallerMemory flexible(const void* values, MPI_Offset count, MPI_Datatype datatype) {
    return {const_cast<void*>(values), ModelType::f64, false, count, datatype, {}, {}};
  }
  /// Copy the datatype for the lifetime of this memory: a program may free its own before it waits.
  void keep_datatype();
};

/// Find the single basic type of a datatype. @returns NC_NOERR, NC_EUNSPTETYPE, NC_EMULTITYPES
int type_of_datatype(MPI_Datatype datatype, ModelType& type);

/// Resolve the type and count of a flexible function's memory, and check that it holds as many
/// elements as the slab. A count of -1 means the number of elements in the slab, of a predefined
/// MPI type.
/// @returns NC_NOERR, NC_EUNSPTETYPE, NC_EMULTITYPES, NC_EIOMISMATCH, NC_EBADTYPE
int resolve_memory(CallerMemory& memory, ModelType variable_type, std::uint64_t n_elements);

/// True if the memory already has the variable's type, and is dense and in order.
bool is_plain(const CallerMemory& memory, ModelType variable_type, const Shape& count);

/// Gather the memory into dense values of `variable_type`. @returns NC_NOERR, NC_ERANGE
int gather_memory(const CallerMemory& memory, const Shape& count, ModelType variable_type,
                  const std::byte* fill, bool loose_bytes, std::vector<std::byte>& values);

/// Scatter dense values into the memory. @returns NC_NOERR, NC_ERANGE
int scatter_memory(const std::vector<std::byte>& values, ModelType variable_type,
                   const Shape& count, bool loose_bytes, const CallerMemory& memory);

}  // namespace tailrace::pnetcdf
