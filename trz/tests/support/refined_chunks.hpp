// Refined chunks of arbitrary values, even if bit planes do not pay: encode() makes few small ones.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "support/trz_cases.hpp"
#include "trz/encode_work.hpp"
#include "trz/refined.hpp"

namespace tailrace::trz_cases {

template <class T>
std::vector<std::byte> refined_chunk_of(Case chunk, int n_planes, trz::Workspace& workspace,
                                        std::size_t* n_patches) {
  const trz::FloatEnvironment environment;
  chunk.settings.coarse_views = 0;
  chunk.settings.bit_planes = 0;
  const std::optional<trz::Lattice<T>> lattice = trz::make_lattice<T>(chunk.type.bound, 0);
  if (!lattice || !std::isfinite(lattice->bound * static_cast<T>(1 << n_planes))) return {};
  trz::ChunkType coarser = chunk.type;
  coarser.bound = std::ldexp(static_cast<double>(lattice->bound), n_planes);
  std::vector<std::byte> within(trz::encoded_bytes_max(chunk.values.size()));
  const Result<std::size_t> n =
      trz::encode(coarser, chunk.settings, chunk.values, within, workspace);
  if (!n.ok() || chunk.n_values() == 0) return {};
  within.resize(*n);
  chunk.settings.bit_planes = n_planes;
  T fill{};
  if (chunk.type.fill_value) fill = static_cast<T>(*chunk.type.fill_value);
  trz::Work work{chunk.type, chunk.settings, chunk.values, chunk.n_values(),
                 {},         workspace,      nullptr};
  work.head.dtype = chunk.type.dtype;
  work.head.n_values = work.n_values;
  work.head.extents = trz::extents_of(chunk.type.shape, 0);
  work.guards = chunk.type.guards;
  const trz::Attempt attempt =
      trz::encode_refined<T>(work, *lattice, chunk.type.fill_value ? &fill : nullptr,
                             {reinterpret_cast<const std::uint8_t*>(within.data()), within.size()});
  if (attempt.chunk.empty()) return {};
  if (n_patches != nullptr) *n_patches = attempt.n_patches;
  trz::seal(attempt.chunk);
  const std::span<const std::byte> bytes = std::as_bytes(attempt.chunk);
  return {bytes.begin(), bytes.end()};
}

/// Make a sealed chunk of floats. Empty if the bound does not allow it, without values, or if out
/// of memory.
inline std::vector<std::byte> refined_chunk(const Case& chunk, int n_planes,
                                            trz::Workspace& workspace,
                                            std::size_t* n_patches = nullptr) {
  return chunk.type.dtype == DType::f32
             ? refined_chunk_of<float>(chunk, n_planes, workspace, n_patches)
             : refined_chunk_of<double>(chunk, n_planes, workspace, n_patches);
}

}  // namespace tailrace::trz_cases
