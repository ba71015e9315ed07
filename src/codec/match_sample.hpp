// Decision from a sample of positions: does deflate's search for matches pay?

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tailrace {

/// Bytes of a segment, the unit of the decision.
inline constexpr std::size_t segment_bytes = 16U << 10;

/// Choose the complete segments of `values` (below 4 GiB) to search for matches. These are segments
/// in which matches would save more than one part in 256, and earlier segments to which such
/// matches refer. Pure. Thread-safe. Cost: 0.5 to 2.5 ns a byte, and 32 KiB of the stack.
void judge_segments(std::span<const std::uint8_t> values, std::vector<bool>& by_search);

}  // namespace tailrace
