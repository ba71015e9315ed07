// What a derived MPI datatype was made of: MPI_Type_get_envelope and _contents, freed at the end.

#pragma once

#include <mpi.h>

#include <vector>

namespace tailrace::pnetcdf {

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

}  // namespace tailrace::pnetcdf
