// What never-written elements of a netCDF-4 variable read as.

#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "container/netcdf_model.hpp"

namespace tailrace {

/// A variable's fill value as HDF5 takes it: its _FillValue, else netCDF's default of its type.
class FillValue {
 public:
  explicit FillValue(const ModelVariable& variable);
  FillValue(const FillValue&) = delete;
  FillValue& operator=(const FillValue&) = delete;
  /// One element of the variable's type in memory (of a text: a pointer to it, valid as long as
  /// this object). Empty: the type has none.
  std::span<const std::byte> bytes() const { return std::span(element_).first(n_bytes_); }

 private:
  bool set_own(const ModelVariable& variable);
  void set_default(ModelType type);
  template <class T>
  void set(T value);

  std::array<std::byte, 8> element_ = {};
  std::size_t n_bytes_ = 0;
  std::string text_;
};

}  // namespace tailrace
