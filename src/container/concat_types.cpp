// H5Tencode and H5Tdecode of number types.

#include "container/concat_types.hpp"

#include "container/hdf5_handle.hpp"
#include "container/hdf5_pipeline.hpp"

namespace tailrace {

Bytes encoded_type(DType dtype) {
  const Hdf5Scope scope;
  std::size_t n_bytes = 0;
  H5Tencode(hdf5_native_type(dtype), nullptr, &n_bytes);
  Bytes type(n_bytes);
  H5Tencode(hdf5_native_type(dtype), type.data(), &n_bytes);
  return type;
}

std::optional<DType> decoded_type(const Bytes& type) {
  const Hdf5Scope scope;
  const Hdf5Id decoded(H5Tdecode(type.data()));
  if (!decoded.valid()) return std::nullopt;
  for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64,
                            DType::u8, DType::u16, DType::u32, DType::u64}) {
    if (H5Tequal(decoded.get(), hdf5_native_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

}  // namespace tailrace
