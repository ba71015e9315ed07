// Code lengths: made from a histogram, and summed. Their written form: lengths_text.cpp.
//
// Huffman's tree by two queues over the sorted counts (van Leeuwen 1976), then the lengths beyond
// the limit are cut and the code is made complete again by moving the fewest and cheapest leaves.
// The result is within a fraction of a per cent of the best limited code, for a tenth of its cost.

#include <algorithm>
#include <cstring>

#include "codec/trz/huffman.hpp"

namespace tailrace::trz {
namespace {

struct Leaf {
  std::uint32_t count;
  std::uint32_t symbol;
};

/// The symbols that occur, by rising count, then value: a stable radix sort. Returns their number.
int sorted_leaves(const Histogram& histogram, Leaf* leaves) {
  Leaf other[256];
  int n = 0;
  std::uint32_t all = 0;
  for (std::uint32_t s = 0; s < 256; ++s) {
    if (histogram[s] == 0) continue;
    all |= histogram[s];
    leaves[n++] = {histogram[s], s};
  }
  for (unsigned shift = 0; shift < 32 && (all >> shift) != 0; shift += 8) {
    std::uint32_t begin[257] = {};
    for (int i = 0; i < n; ++i) ++begin[((leaves[i].count >> shift) & 0xFF) + 1];
    for (int d = 1; d < 256; ++d) begin[d] += begin[d - 1];
    for (int i = 0; i < n; ++i) other[begin[(leaves[i].count >> shift) & 0xFF]++] = leaves[i];
    std::memcpy(leaves, other, static_cast<std::size_t>(n) * sizeof(Leaf));
  }
  return n;
}

/// How many leaves Huffman's tree has at each depth, those deeper than `limit` counted there.
void count_depths(const Leaf* leaves, int n, int limit, int* n_at) {
  std::uint64_t weight[256];  // Of the inner nodes, in the order in which they are made.
  int parent[512];            // Of leaves 0..n-1, then inner nodes n..2n-2.
  int leaf = 0;
  int inner = 0;
  for (int made = 0; made < n - 1; ++made) {
    weight[made] = 0;
    for (int child = 0; child < 2; ++child) {
      const bool take_leaf = leaf < n && (inner >= made || leaves[leaf].count <= weight[inner]);
      weight[made] += take_leaf ? leaves[leaf].count : weight[inner];
      parent[take_leaf ? leaf++ : n + inner++] = n + made;
    }
  }
  int depth[512];
  depth[2 * n - 2] = 0;
  for (int node = 2 * n - 3; node >= 0; --node) {
    depth[node] = depth[parent[node]] + 1;
    if (node < n) ++n_at[std::min(depth[node], limit)];
  }
}

/// Make the code complete: the sum of 2^-length over all leaves becomes 1. Leaves get longer where
/// that costs the fewest bits for the room it gives, and shorter where the last step gave too much.
void complete(const Leaf* leaves, int limit, int* n_at) {
  int excess = -(1 << limit);  // In units of 2^-limit.
  for (int length = 1; length <= limit; ++length) excess += n_at[length] << (limit - length);
  if (excess == 0) return;
  // The leaves of one length stand together: first[l] is the rarest of length l.
  int first[kCodeBitsMax + 2];
  first[limit] = 0;
  for (int l = limit; l >= 1; --l) first[l - 1] = first[l] + n_at[l];
  while (excess > 0) {
    int best = 0;
    std::uint64_t best_cost = UINT64_MAX;
    for (int l = 1; l < limit; ++l) {
      if (first[l - 1] == first[l]) continue;
      const std::uint64_t cost = std::uint64_t{leaves[first[l]].count} << l;
      if (cost <= best_cost) {
        best_cost = cost;
        best = l;
      }
    }
    ++first[best];
    excess -= 1 << (limit - best - 1);
  }
  while (excess < 0) {
    int best = 0;
    std::uint64_t best_gain = 0;
    for (int l = 2; l <= limit; ++l) {
      if (first[l - 1] == first[l] || (1 << (limit - l)) > -excess) continue;
      const std::uint64_t gain = std::uint64_t{leaves[first[l - 1] - 1].count} << l;
      if (gain >= best_gain) {
        best_gain = gain;
        best = l;
      }
    }
    --first[best - 1];
    excess += 1 << (limit - best);
  }
  for (int l = limit; l >= 1; --l) n_at[l] = first[l - 1] - first[l];
}

}  // namespace

int code_limit(std::uint64_t n_symbols) {
  if (n_symbols < 512) return 10;
  return n_symbols < 4096 ? 11 : kCodeBitsMax;
}

CodeLengths code_lengths(const Histogram& histogram, int limit) {
  CodeLengths lengths;
  Leaf leaves[256];
  const int n = sorted_leaves(histogram, leaves);
  if (n <= 1) {
    if (n == 1) lengths.bits[leaves[0].symbol] = 1;
    return lengths;
  }
  int n_at[kCodeBitsMax + 1] = {};
  count_depths(leaves, n, limit, n_at);
  complete(leaves, limit, n_at);
  int i = 0;
  for (int length = limit; length >= 1; --length) {
    for (int k = 0; k < n_at[length]; ++k) {
      lengths.bits[leaves[i++].symbol] = static_cast<std::uint8_t>(length);
    }
  }
  return lengths;
}

std::uint64_t encoded_bits(const Histogram& histogram, const CodeLengths& lengths) {
  std::uint64_t bits = 0;
  bool lost = false;
  for (std::size_t s = 0; s < 256; ++s) {
    bits += std::uint64_t{histogram[s]} * lengths.bits[s];
    lost = lost || (histogram[s] != 0 && lengths.bits[s] == 0);
  }
  return lost ? UINT64_MAX : bits;
}

}  // namespace tailrace::trz
