// Attribute values as HDF5 types and dataspaces.

#include "container/hdf5_attributes.hpp"

#include <type_traits>
#include <variant>
#include <vector>

namespace tailrace {
namespace {

/// A value as HDF5 wants it.
struct TypedValue {
  Hdf5Id type;
  Hdf5Id space;
  const void* values = nullptr;
};

TypedValue typed_text(const std::string& text) {
  TypedValue typed;
  typed.type = Hdf5Id(H5Tcopy(H5T_C_S1));
  // Padded with zeros and exactly as long as the text: netCDF counts a terminating zero as a
  // character. A type of no bytes does not exist, so an empty text is one zero.
  H5Tset_size(typed.type.get(), text.empty() ? 1 : text.size());
  H5Tset_strpad(typed.type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(typed.type.get(), H5T_CSET_UTF8);
  typed.space = Hdf5Id(H5Screate(H5S_SCALAR));
  typed.values = text.c_str();
  return typed;
}

template <class T>
TypedValue typed_numbers(const std::vector<T>& numbers) {
  TypedValue typed;
  const hid_t native = std::is_same_v<T, double>         ? H5T_NATIVE_DOUBLE
                       : std::is_same_v<T, std::int64_t> ? H5T_NATIVE_INT64
                                                         : H5T_NATIVE_UINT64;
  typed.type = Hdf5Id(H5Tcopy(native));
  const hsize_t n = numbers.size();
  if (n == 0) {
    typed.space = Hdf5Id(H5Screate(H5S_NULL));
  } else {
    typed.space = Hdf5Id(n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr));
  }
  typed.values = numbers.data();
  return typed;
}

/// The attribute if it exists with this very type and shape, so that it can be overwritten.
Hdf5Id open_same(hid_t object, const std::string& name, const TypedValue& wanted) {
  Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  if (!attribute.valid()) return Hdf5Id();
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const bool same = H5Tequal(type.get(), wanted.type.get()) > 0 &&
                    H5Sextent_equal(space.get(), wanted.space.get()) > 0;
  return same ? std::move(attribute) : Hdf5Id();
}

}  // namespace

Status write_attribute(hid_t object, const std::string& name, const AttributeValue& value) {
  const auto typed_of = [](const auto& held) {
    if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
      return typed_text(held);
    } else {
      return typed_numbers(held);
    }
  };
  const TypedValue typed = std::visit(typed_of, value.value);
  const std::string what = "attribute \"" + name + "\"";
  if (!typed.type.valid() || !typed.space.valid()) return hdf5_failure(Code::internal, what);
  Hdf5Id attribute;
  if (H5Aexists(object, name.c_str()) > 0) {
    attribute = open_same(object, name, typed);
    if (!attribute.valid() && H5Adelete(object, name.c_str()) < 0) {
      return hdf5_failure(Code::internal, what);
    }
  }
  if (!attribute.valid()) {
    attribute = Hdf5Id(H5Acreate2(object, name.c_str(), typed.type.get(), typed.space.get(),
                                  H5P_DEFAULT, H5P_DEFAULT));
  }
  if (!attribute.valid()) return hdf5_failure(Code::internal, what);
  if (H5Sget_simple_extent_type(typed.space.get()) == H5S_NULL) return Status();
  if (H5Awrite(attribute.get(), typed.type.get(), typed.values) < 0) {
    return hdf5_failure(Code::internal, what);
  }
  return Status();
}

}  // namespace tailrace
