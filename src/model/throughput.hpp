// Speed curves fitted to measured points: codecs (Throughput), storage (Roofline), messages and
// collectives (MessageCosts).

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

// --- Throughput: encoding speed of a codec as a function of the resulting bit rate.
//
// Source: Jin et al. 2022, eq. 1: S(B) = (Cmax - Cmin) * (B / 3)^a + Cmin, where B is bits per
// 32-bit value and a < 0. We scale B to 32-bit values (32 * encoded / uncompressed bytes) for every
// dtype. We clamp S to [Cmin, Cmax], and fit by a search instead of by hand. The authors observed
// SZ3 to reach Cmax at 3. Other codecs reach it elsewhere, so we also fit this value
// (pivot_bit_rate).

/// Measured point: UNCOMPRESSED bytes per second of one core at a bit rate.
struct ThroughputPoint {
  double bit_rate = 0;  ///< 32 * encoded bytes / uncompressed bytes.
  double bytes_per_s = 0;
};

struct ThroughputCurve {
  double least_bytes_per_s = 0;     ///< Cmin
  double greatest_bytes_per_s = 0;  ///< Cmax
  double exponent = -1;             ///< a
  /// Root mean square of (measured - fitted) / measured over the fitted points.
  double relative_residual = 0;
  double pivot_bit_rate = 3;  ///< S = Cmax up to this bit rate; 3 in the paper.

  /// Speed in [Cmin, Cmax]. Not collective. Thread-safe.
  double bytes_per_s(double bit_rate) const;
  /// Seconds of one core to encode n_bytes to encoded_bytes; 0 for no bytes, infinite if the curve
  /// is unknown (Cmax 0).
  double seconds(double n_bytes, double encoded_bytes) const;
};

/// Fit a curve to `points` by least relative squares: Cmin and Cmax by linear algebra for every
/// exponent and pivot of a grid. The fit is a constant for one point, for points of similar rates
/// (within a quarter), and for throughput that does not fall. Fewer than four rates do not
/// determine the pivot, fewer than three not the exponent; these keep the paper's values. Cmin is
/// at least half of the slowest point and Cmax at most twice the fastest, which keeps extrapolation
/// plausible. Not collective.
/// @error invalid_argument  no point, or one that is not positive and finite.
Result<ThroughputCurve> fit_throughput(std::span<const ThroughputPoint> points);

// --- Roofline: write bandwidth of a file system as a function of each rank's size, at one number
// of ranks; and interpolation between numbers of ranks.
//
// Source: Liang et al. 2019, eq. 1-6: linear in the logarithm of the size up to a turning point,
// constant after it. A search finds the turning point. A repair applies if the constant would lie
// below the line's end. Jin et al. 2022, eq. 2 is the special case of a single constant.

/// Measured point: n_ranks concurrently wrote bytes_per_rank each, at this total bandwidth.
struct BandwidthPoint {
  std::uint64_t n_ranks = 1;
  double bytes_per_rank = 0;
  double bytes_per_s = 0;  ///< Total of all ranks.
};

/// Curve f(x) = slope * x + intercept below turning_x, ceiling from there on; x =
/// log2(bytes_per_rank).
/// A constant has slope 0 and turning_x = least_x.
struct Roofline {
  std::uint64_t n_ranks = 1;
  double slope = 0;
  double intercept = 0;
  double ceiling = 0;  ///< Bytes per second.
  double turning_x = 0;
  double relative_residual = 0;  ///< Root mean square of (measured - fitted) / measured.
  bool repaired = false;         ///< The ceiling was raised to the line's end.
  double least_x = 0;            ///< x of the smallest size measured.

  /// Total bandwidth of all ranks. Sizes below least_x take at least as long as least_x: latency
  /// dominates there, and the line would fall below zero.
  double bytes_per_s(double bytes_per_rank) const;
};

/// Fit eq. 3-6 to the points of one number of ranks.
/// Not collective. Cost: O(points * sizes).
/// @error invalid_argument  no point, different numbers of ranks, or a value not positive.
Result<Roofline> fit_roofline(std::span<const BandwidthPoint> points);

/// Rooflines by number of ranks; log-linear in the number between two of them. Above the largest
/// number the total bandwidth stays constant, and below the smallest it shrinks in proportion.
class BandwidthModel {
 public:
  BandwidthModel() = default;
  /// Model with one constant for all sizes and numbers of ranks, for a known limit.
  static BandwidthModel constant(double bytes_per_s);
  /// Fit a roofline for each number of ranks. @error like fit_roofline()
  static Result<BandwidthModel> fit(std::span<const BandwidthPoint> points);
  /// Model from fitted rooflines, in any order; each number of ranks may occur once.
  static BandwidthModel of(std::vector<Roofline> rooflines);

  bool known() const { return !rooflines_.empty(); }
  const std::vector<Roofline>& rooflines() const { return rooflines_; }
  /// Total bandwidth if each rank writes bytes_per_rank. 0 if the model is empty.
  double bytes_per_s(double bytes_per_rank, std::uint64_t n_ranks) const;
  /// Seconds until all ranks have written bytes_per_rank each (2019, the first term of eq. 7). 0
  /// for no bytes, and if the model is empty.
  double seconds(double bytes_per_rank, std::uint64_t n_ranks) const;

 private:
  std::vector<Roofline> rooflines_;  ///< Sorted by n_ranks, ascending.
};

// --- MessageCosts: costs of messages and collectives.
//
// Source: LogGP (Alexandrov et al. 1995): a message takes o + L + n G + o. Collectives are binomial
// trees, or recursive doubling, with the corresponding number of levels. One difference: a rank
// that waits for one of our collectives sleeps between polls (exec/mpi_parts.hpp). It therefore
// notices completion later by `wait_s`, once per call for any number of levels.

/// Measured point: seconds of one message between two ranks, or of a collective of `n_ranks`.
struct MessagePoint {
  enum class Kind : std::uint8_t { message, allreduce, gather };
  Kind kind = Kind::message;
  std::uint64_t n_ranks = 2;
  double n_bytes = 0;  ///< Size of the message, or of each rank's part.
  double seconds = 0;
};

struct MessageCosts {
  double latency_s = 0;   ///< L
  double overhead_s = 0;  ///< o: overhead of the sender, and of the receiver.
  double byte_s = 0;      ///< G
  double wait_s = 0;      ///< Delay of each collective until the sleeping rank notices completion.

  double message_s(double n_bytes) const { return latency_s + 2 * overhead_s + n_bytes * byte_s; }
  /// Reduction of `n_bytes` of numbers, or a broadcast: one message per level.
  double allreduce_s(std::uint64_t n_ranks, double n_bytes) const;
  /// Gather to one rank: along a tree, sizes first, like MpiComm.
  double gather_s(std::uint64_t n_ranks, double n_bytes) const;
  /// Allgather. Without `wait_s`, since it is not one of our collectives.
  double allgather_s(std::uint64_t n_ranks, double n_bytes) const;
};

/// Fit L + 2 o and G to the messages by least relative squares; `overhead_s` is known. wait_s is
/// the median time of collectives in excess of their messages, or 0 if negative.
/// Not collective. @error invalid_argument  no message among the points, or one that is not
/// positive and finite.
Result<MessageCosts> fit_messages(std::span<const MessagePoint> points, double overhead_s);

}  // namespace tailrace
