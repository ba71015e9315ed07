// What one core needs to encode and decode chunks, measured while all ranks do the same.
//
// A measurement is what the encode lane does with a chunk: copy its values out of the application's
// array into a buffer, encode. Time is the thread's own CPU time, page faults included, so that
// other work on the node does not count; codec none costs the copy alone.

#pragma once

#include <cstddef>
#include <span>

#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/status.hpp"
#include "model/throughput.hpp"

namespace tailrace {

/// Both directions of a codec on one chunk of every rank: the mean over the ranks.
struct MeasuredTrip {
  ThroughputPoint encode;
  ThroughputPoint decode;
  double elapsed_s = 0;  ///< Wall clock of it all, slowest rank.
};

/// Encode and decode `values` (one chunk that `codec` was made for), `n_repeats` times after one
/// that warms up, and take the median of each rank. Collective: all ranks call it with a codec and
/// a chunk of their own; sizes may differ.
/// @error codec_failed, out_of_memory  on every rank, of the lowest rank that failed.
Result<MeasuredTrip> measure_trip(Comm& comm, const Codec& codec, std::span<const std::byte> values,
                                  std::size_t n_repeats);

/// Middle of the values, or the mean of the two in the middle; 0 for none.
double median_of(std::vector<double> values);

}  // namespace tailrace
