// Helpers of the engine's tests: random decompositions, values that identify their position,
// reading back.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "read/read.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "write/write.hpp"

namespace tailrace::test {

/// Cuts a shape at random places into `n_parts` disjoint boxes that cover it (fewer if it is
/// small).
inline std::vector<Box> random_boxes(const Shape& shape, std::size_t n_parts,
                                     std::mt19937& random) {
  std::vector<Box> boxes = {whole_box(shape)};
  for (int attempt = 0; boxes.size() < n_parts && attempt < 200 && !shape.empty(); ++attempt) {
    Box& box = boxes[random() % boxes.size()];
    const std::size_t d = random() % shape.size();
    if (box.count[d] < 2) continue;
    const std::uint64_t cut = 1 + random() % (box.count[d] - 1);
    Box rest = box;
    rest.start[d] += cut;
    rest.count[d] -= cut;
    box.count[d] = cut;
    boxes.push_back(rest);
  }
  return boxes;
}

/// A value that is smooth enough to compress and depends on its position.
inline double value_at(const Shape& shape, const Shape& at) {
  double index = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    index = index * static_cast<double>(shape[d]) + static_cast<double>(at[d]);
  }
  return index;
}

/// The values of one box, row-major, converted to the dtype with wraparound.
inline std::vector<std::byte> values_of(const Shape& shape, const Box& box, DType dtype) {
  const std::size_t element = dtype_bytes(dtype);
  std::vector<std::byte> bytes(box.n_elements() * element);
  std::size_t i = 0;
  const auto put = [&](auto value) { std::memcpy(bytes.data() + element * i++, &value, element); };
  for_each_position(box, [&](const Shape& at) {
    const double value = value_at(shape, at);
    const auto whole = static_cast<std::uint64_t>(value);
    switch (dtype) {
      case DType::f32: return put(static_cast<float>(value));
      case DType::f64: return put(value);
      case DType::i8:
      case DType::u8: return put(static_cast<std::uint8_t>(whole));
      case DType::i16:
      case DType::u16: return put(static_cast<std::uint16_t>(whole));
      case DType::i32:
      case DType::u32: return put(static_cast<std::uint32_t>(whole));
      case DType::i64:
      case DType::u64: return put(whole);
    }
  });
  return bytes;
}

/// All values of one field of a file, read with HDF5; empty if that fails.
inline std::vector<std::byte> read_field(const std::string& file, const std::string& path) {
  ReadOptions options;
  options.by_hdf5 = true;
  Result<std::unique_ptr<InputFile>> input = open_input_file(file, {}, options);
  if (!input.ok()) return {};
  const std::vector<StoredDataset>& fields = (*input)->fields();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].path != path) continue;
    std::vector<std::byte> values(n_elements(fields[f].shape) * fields[f].value_bytes());
    if ((*input)->read(f, whole_box(fields[f].shape), values).ok()) return values;
  }
  return {};
}

}  // namespace tailrace::test
