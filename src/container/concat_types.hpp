// Number types as HDF5 encodes them (H5Tencode): how element types travel between ranks.

#pragma once

#include <optional>

#include "core/comm.hpp"
#include "core/dtype.hpp"

namespace tailrace {

/// This machine's type of `dtype`, encoded. Takes the HDF5 lock.
Bytes encoded_type(DType dtype);

/// The dtype whose values are stored exactly as this machine has them; none for everything else
/// (other byte orders, enums, strings, compounds, ...). Takes the HDF5 lock.
std::optional<DType> decoded_type(const Bytes& type);

}  // namespace tailrace
