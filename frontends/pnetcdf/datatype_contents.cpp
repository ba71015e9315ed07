// See datatype_contents.hpp.

#include "pnetcdf/datatype_contents.hpp"

namespace tailrace::pnetcdf {

DatatypeContents::DatatypeContents(MPI_Datatype datatype) {
  int n_integers = 0;
  int n_addresses = 0;
  int n_datatypes = 0;
  MPI_Type_get_envelope(datatype, &n_integers, &n_addresses, &n_datatypes, &combiner);
  if (combiner == MPI_COMBINER_NAMED) return;
  // A count of 0 is fine for the vectors, but some MPI libraries want addresses that are not null.
  integers.resize(static_cast<std::size_t>(n_integers) + 1);
  addresses.resize(static_cast<std::size_t>(n_addresses) + 1);
  datatypes.resize(static_cast<std::size_t>(n_datatypes) + 1);
  MPI_Type_get_contents(datatype, n_integers, n_addresses, n_datatypes, integers.data(),
                        addresses.data(), datatypes.data());
  datatypes.pop_back();
}

DatatypeContents::~DatatypeContents() {
  for (MPI_Datatype& part : datatypes) {
    int n_integers = 0;
    int n_addresses = 0;
    int n_datatypes = 0;
    int part_combiner = 0;
    MPI_Type_get_envelope(part, &n_integers, &n_addresses, &n_datatypes, &part_combiner);
    if (part_combiner != MPI_COMBINER_NAMED) MPI_Type_free(&part);
  }
}

}  // namespace tailrace::pnetcdf
