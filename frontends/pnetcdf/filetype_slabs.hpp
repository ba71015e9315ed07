// Decoding of MPI datatypes; and conversion of a filetype over a variable's bytes (vard) to slabs
// of the variable.
//
// PnetCDF applies such a "filetype" to the classic file from the variable's first byte on. Chunked
// files have no such bytes. But if the filetype stays within one variable, its bytes identify
// elements: row-major, and for record variables one record every ncmpi_inq_recsize() bytes. So the
// datatype is decoded into runs of bytes, and the runs are converted to slabs.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "core/slab.hpp"

namespace tailrace::pnetcdf {

/// Contents of a derived datatype: MPI_Type_get_envelope and _contents, freed on destruction.
struct DatatypeContents {
  /// Combiner of the datatype. For MPI_COMBINER_NAMED, the other members are empty.
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> datatypes;

  explicit DatatypeContents(MPI_Datatype datatype);
  DatatypeContents(const DatatypeContents&) = delete;
  DatatypeContents& operator=(const DatatypeContents&) = delete;
  ~DatatypeContents();
};

/// Layout of the bytes that a filetype refers to.
struct VariableBytes {
  Shape shape;  ///< Extents, with the current number of records.
  std::uint64_t element_bytes = 1;
  bool record = false;            ///< The first dimension is unlimited.
  std::uint64_t record_step = 0;  ///< Bytes from one record to the next: ncmpi_inq_recsize().
  bool growing = false;           ///< A put: records may be added beyond the last one.
};

/// Append the elements that `filetype` selects, in its order, to `slabs`. Adjacent rows are merged.
/// Not collective. Cost: O(runs of the datatype).
/// @returns NC_NOERR
/// @returns NC_EEDGE  it leaves the variable, into another one or into records that do not exist
/// @returns NC_ENOTSUPPORT  MPI_Type_create_darray, or a run that begins within an element
int slabs_of_filetype(MPI_Datatype filetype, const VariableBytes& variable,
                      std::vector<Slab>& slabs);

}  // namespace tailrace::pnetcdf
