// MPI datatypes: what they were made of; and places given by one over a variable's bytes (vard), as
// slabs of the variable.
//
// PnetCDF lays such a "filetype" over the classic file from the variable's first byte on. Chunked
// files have no such bytes, but as long as the filetype stays within one variable its bytes name
// elements: row-major, and for record variables one record every ncmpi_inq_recsize() bytes. So the
// datatype is taken apart into runs of bytes, and the runs become slabs.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "core/slab.hpp"

namespace tailrace::pnetcdf {

/// What a derived datatype was made of: MPI_Type_get_envelope and _contents, freed at the end.
struct DatatypeContents {
  int combiner = MPI_COMBINER_NAMED;  ///< With this one, nothing else is set.
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> datatypes;

  explicit DatatypeContents(MPI_Datatype datatype);
  DatatypeContents(const DatatypeContents&) = delete;
  DatatypeContents& operator=(const DatatypeContents&) = delete;
  ~DatatypeContents();
};

/// What lies where, in the bytes that a filetype counts.
struct VariableBytes {
  Shape shape;  ///< With the records that there are now.
  std::uint64_t element_bytes = 1;
  bool record = false;            ///< The first dimension is unlimited.
  std::uint64_t record_step = 0;  ///< Bytes from one record to the next: ncmpi_inq_recsize().
  bool growing = false;           ///< A put: records may lie beyond the last one.
};

/// The elements that `filetype` names, in its order; appended to `slabs`. Rows that go on join.
/// Not collective. Cost: O(runs of the datatype).
/// @returns NC_NOERR; NC_EEDGE: leaves the variable (into another one, or records that there are
/// not); NC_ENOTSUPPORT: a datatype that we cannot take apart (MPI_Type_create_darray), or one that
/// begins within an element.
int slabs_of_filetype(MPI_Datatype filetype, const VariableBytes& variable,
                      std::vector<Slab>& slabs);

}  // namespace tailrace::pnetcdf
