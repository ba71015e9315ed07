// Helpers of the tests of complete trz chunks: chunks of given values, and a round trip that
// reports errors.

#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/trz_cases.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz::whole {

/// A chunk of these values. @param bound  0: exact, whatever `kind` says.
template <class T>
trz_cases::Case case_of(const std::vector<T>& values, const Shape& shape, double bound,
                        Preset preset, BoundKind kind = BoundKind::absolute) {
  trz_cases::Case chunk;
  chunk.type.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  chunk.type.shape = shape;
  chunk.type.kind = bound > 0 ? kind : BoundKind::exact;
  chunk.type.bound = bound;
  chunk.settings.preset = preset;
  chunk.values.resize(values.size() * sizeof(T));
  std::memcpy(chunk.values.data(), values.data(), chunk.values.size());
  return chunk;
}

/// Encodes, decodes, and judges; `encoded_out` receives the bytes.
inline ::testing::AssertionResult round_trip(const trz_cases::Case& chunk, Workspace& workspace,
                                             std::vector<std::byte>* encoded_out = nullptr) {
  // Allocates exactly the promised maximum, so that a sanitizer detects the first byte too many.
  std::vector<std::byte> encoded(encoded_bytes_max(chunk.values.size()));
  const Result<std::size_t> n =
      encode(chunk.type, chunk.settings, chunk.values, encoded, workspace);
  if (!n.ok()) {
    return ::testing::AssertionFailure() << chunk.text() << ": " << n.status().message();
  }
  if (*n > encoded.size()) return ::testing::AssertionFailure() << chunk.text() << ": too large";
  std::vector<std::byte> exactly(encoded.begin(),
                                 encoded.begin() + static_cast<std::ptrdiff_t>(*n));
  std::vector<std::byte> decoded(chunk.values.size(), std::byte{0xA5});
  const Status status = decode(exactly, decoded, chunk.type.book, workspace);
  if (!status.ok()) {
    return ::testing::AssertionFailure() << chunk.text() << ": decode: " << status.message();
  }
  const std::uint64_t n_bad = trz_cases::count_violations(chunk.type, chunk.values, decoded);
  if (n_bad != 0) {
    const Result<ChunkSummary> summary = describe(exactly);
    return ::testing::AssertionFailure()
           << chunk.text() << ": " << n_bad << " values of " << chunk.n_values()
           << " are wrong; method " << (summary.ok() ? summary->method : "unknown");
  }
  if (encoded_out != nullptr) *encoded_out = std::move(exactly);
  return ::testing::AssertionSuccess();
}

/// Decodes and describes bytes that no encoder wrote. The result does not matter, but the memory
/// used must be bounded by the sizes of input and output.
inline ::testing::AssertionResult stays_in_bounds(const std::vector<std::byte>& bytes,
                                                  std::size_t n_values_bytes, const Book* book) {
  // A new workspace, so that its areas end at the requested sizes.
  Workspace workspace;
  std::vector<std::byte> values(n_values_bytes);
  static_cast<void>(decode(bytes, values, book, workspace));
  static_cast<void>(describe(bytes));
  const std::size_t most = 16 * (n_values_bytes + bytes.size()) + (std::size_t{1} << 20);
  if (workspace.held_bytes() <= most) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << workspace.held_bytes() << " bytes are held, more than " << most;
}

}  // namespace tailrace::trz::whole
