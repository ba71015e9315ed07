// The two formulas of the deal.

#include "verbs/chunk_deal.hpp"

#include <algorithm>

namespace tailrace::verbs {
namespace {

// Products of two byte counts and a rank number do not fit 64 bits.
__extension__ using Wide = __int128;

/// How many of `n_chunks` equal chunks, which begin at `before_bytes` of `total_bytes` and are
/// `own_bytes` in all, have their middle within the shares of the ranks before `rank`.
std::uint64_t chunks_before(Wide before_bytes, Wide own_bytes, Wide total_bytes,
                            std::uint64_t n_chunks, int rank, int n_ranks) {
  // Chunk k goes to rank floor((before + (2k+1) own / 2n) ranks / total); solved for the least k.
  const Wide n = n_chunks;
  const Wide step = 2 * own_bytes * n_ranks;
  if (step == 0) return rank == 0 ? 0 : n_chunks;
  const Wide distance = 2 * n * (total_bytes * rank - before_bytes * n_ranks) - own_bytes * n_ranks;
  if (distance <= 0) return 0;
  return static_cast<std::uint64_t>(std::min<Wide>((distance + step - 1) / step, n));
}

}  // namespace

std::vector<ChunkRun> deal_chunks(std::span<const DealtField> fields, int rank, int n_ranks) {
  const auto ranks = static_cast<std::uint64_t>(n_ranks);
  const auto left_over_bytes = [&](const DealtField& field) -> Wide {
    if (field.n_chunks == 0) return 0;
    return Wide(field.raw_bytes) * (field.n_chunks % ranks) / field.n_chunks;
  };
  Wide total_bytes = 0;
  for (const DealtField& field : fields) total_bytes += left_over_bytes(field);

  std::vector<ChunkRun> runs;
  const auto add = [&](std::size_t field_index, std::uint64_t first, std::uint64_t end) {
    if (first < end) runs.push_back({field_index, first, end});
  };
  Wide before_bytes = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::uint64_t even_share = fields[f].n_chunks / ranks;
    const std::uint64_t n_left_over = fields[f].n_chunks % ranks;
    const auto position = static_cast<std::uint64_t>(rank);
    add(f, position * even_share, (position + 1) * even_share);
    const Wide own_bytes = left_over_bytes(fields[f]);
    const auto boundary = [&](int r) {
      if (r == n_ranks) return n_left_over;
      return chunks_before(before_bytes, own_bytes, total_bytes, n_left_over, r, n_ranks);
    };
    const std::uint64_t even_end = even_share * ranks;
    add(f, even_end + boundary(rank), even_end + boundary(rank + 1));
    before_bytes += own_bytes;
  }
  return runs;
}

}  // namespace tailrace::verbs
