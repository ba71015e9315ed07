// DeviceValues: a put whose values are in memory that only the caller's function can read.

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "exec/field_plan.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The caller's function: copy n_bytes from device memory to the host. Returns 0 on success.
using CopyFromDevice = std::function<int(void* to, const void* from, std::size_t n_bytes)>;

/// Source of one put. Copies straight to where the values are needed, one call for each contiguous
/// run. Used by the main thread, within collective calls.
class DeviceValues final : public BoxSource {
 public:
  /// @param values  device address of the first value; dense and row-major over `box`.
  DeviceValues(std::string field_name, const Box& box, const void* values,
               std::size_t element_bytes, CopyFromDevice copy)
      : field_name_(std::move(field_name)),
        box_(box),
        values_(static_cast<const std::byte*>(values)),
        element_bytes_(element_bytes),
        copy_(std::move(copy)) {}

  bool reads_parts() const override { return true; }
  Status read(const Box& box, std::span<std::byte> values) override {
    return read_part(box, box, values.data());
  }
  /// Copy the elements of `part` to an array that is dense over `whole`.
  /// @error io_error  the caller's function failed; the text has its number.
  Status read_part(const Box& part, const Box& whole, std::byte* values) override;

 private:
  std::string field_name_;
  Box box_;
  const std::byte* values_;
  std::size_t element_bytes_;
  CopyFromDevice copy_;
};

}  // namespace tailrace
