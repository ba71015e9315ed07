// Nested chunks: a complete chunk of every second value along each axis, and the values between.
//
// The inner chunk comes first and has a head and a checksum, so that it can be read and decoded
// separately. Finer values are predicted from its decoded values without its patches: a fill value
// or NaN there must not spoil its surroundings.

#include <algorithm>
#include <bit>

#include "trz/chunk_header.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/predict/lattice_coding.hpp"

namespace tailrace::trz {
namespace {

template <class T>
constexpr DType dtype_of = sizeof(T) == 4 ? DType::f32 : DType::f64;

/// Decode a nested chunk from `in`, positioned after the head. Decodes the inner chunk into `area`,
/// and from it all values but the patches of both chunks.
template <class T>
DecodeFailure read_around_inner(ChunkReader& in, const Extents& extents, int views_max,
                                const Book* book, T* values, T* area, Workspace& workspace) {
  if (views_max == 0 || !can_nest(extents)) return DecodeFailure::corrupt;
  const std::uint64_t n_bytes = in.varint();
  const std::uint8_t* bytes =
      n_bytes > in.rest().size() ? nullptr : in.take(static_cast<std::size_t>(n_bytes));
  if (bytes == nullptr) return DecodeFailure::corrupt;
  const DecodeFailure failure =
      read_inner<T>({bytes, static_cast<std::size_t>(n_bytes)}, halved(extents), views_max - 1,
                    book, area, workspace);
  if (failure != DecodeFailure::none) return failure;
  return read_lattice<T>(in, extents, book, values, workspace, area);
}

}  // namespace

bool can_nest(const Extents& extents) {
  const Extents e = folded_to_three(extents);
  return std::max({e[1], e[2], e[3]}) > kTopExtent;
}

Extents halved(const Extents& extents) {
  const Extents e = folded_to_three(extents);
  Extents half{1, 1, 1, 1};
  std::size_t at = half.size();
  for (std::size_t axis = e.size(); axis-- > 1;) {
    if (e[axis] > 2) half[--at] = (e[axis] + 1) / 2;
  }
  return half;
}

std::size_t inner_area_values(Extents extents, int views) {
  std::size_t total = 0;
  for (; views > 0 && can_nest(extents); --views) {
    extents = halved(extents);
    total += 2 * values_in(extents);
  }
  return total;
}

template <class T>
void put_patched_coarse(const T* area, const Extents& extents, T* values) {
  const Extents e = folded_to_three(extents);
  const T* coarse = area + values_in(halved(extents));
  for (std::size_t z = 0; z < e[1]; z += 2) {
    for (std::size_t y = 0; y < e[2]; y += 2) {
      T* row = values + (z * e[2] + y) * e[3];
      for (std::size_t x = 0; x < e[3]; x += 2) row[x] = *coarse++;
    }
  }
}

template <class T>
DecodeFailure read_inner(std::span<const std::uint8_t> chunk, const Extents& extents, int views_max,
                         const Book* book, T* area, Workspace& workspace) {
  const std::size_t n = values_in(extents);
  ChunkReader in(chunk);
  ChunkHead head;
  const HeadFailure head_failure = read_head(chunk, in, head);
  if (head_failure != HeadFailure::none) return failure_within(head_failure);
  if (head.dtype != dtype_of<T> || head.extents != extents) return DecodeFailure::corrupt;
  T* const predicted = area;
  T* const patched = area + n;
  T* const deeper = area + 2 * n;
  DecodeFailure failure = DecodeFailure::corrupt;
  if (head.method == Method::lattice) {
    failure = read_lattice<T>(in, extents, book, predicted, workspace);
  } else if (head.method == Method::nested) {
    failure = read_around_inner(in, extents, views_max, book, predicted, deeper, workspace);
  }
  if (failure != DecodeFailure::none) return failure;
  std::copy_n(predicted, n, patched);
  if (head.method == Method::nested) {
    put_patched_coarse(deeper, extents, patched);
  }
  bool memory_out = false;
  auto* bits = reinterpret_cast<BitsOf<T>*>(patched);
  if (!apply_patches(in, bits, n, workspace, &memory_out)) {
    return memory_out ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }
  return in.at_end() ? DecodeFailure::none : DecodeFailure::corrupt;
}

template <class T>
DecodeFailure read_nested(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                          Workspace& workspace) {
  T* area = workspace.area<T>(Slot::nested, inner_area_values(extents, kCoarseViewsMax) + 1);
  if (area == nullptr) return DecodeFailure::memory_out;
  const DecodeFailure failure =
      read_around_inner(in, extents, kCoarseViewsMax, book, values, area, workspace);
  if (failure == DecodeFailure::none) put_patched_coarse(area, extents, values);
  return failure;
}

template void put_patched_coarse(const float*, const Extents&, float*);
template void put_patched_coarse(const double*, const Extents&, double*);
template DecodeFailure read_inner(std::span<const std::uint8_t>, const Extents&, int, const Book*,
                                  float*, Workspace&);
template DecodeFailure read_inner(std::span<const std::uint8_t>, const Extents&, int, const Book*,
                                  double*, Workspace&);
template DecodeFailure read_nested(ChunkReader&, const Extents&, const Book*, float*, Workspace&);
template DecodeFailure read_nested(ChunkReader&, const Extents&, const Book*, double*, Workspace&);

}  // namespace tailrace::trz
