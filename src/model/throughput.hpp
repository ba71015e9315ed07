// Curves of speed, fitted to measured points: codecs (Throughput), storage (Roofline), messages and
// collectives (MessageCosts).

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

// --- Throughput: how fast a codec encodes, as a function of the bit rate that comes out.
//
// Source: Jin et al. 2022, eq. 1: S(B) = (Cmax - Cmin) * (B / 3)^a + Cmin, B in bits a value of 32,
// a < 0. We use B scaled to 32-bit values (32 * encoded / uncompressed bytes) for every dtype,
// clamp S into [Cmin, Cmax], and fit by search rather than by hand. The 3 is where the authors saw
// SZ3 reach Cmax; other codecs reach it elsewhere, so that it is fitted too (pivot_bit_rate).

/// A measured point: UNCOMPRESSED bytes per second of one core at a bit rate.
struct ThroughputPoint {
  double bit_rate = 0;  ///< 32 * encoded bytes / uncompressed bytes.
  double bytes_per_s = 0;
};

struct ThroughputCurve {
  double least_bytes_per_s = 0;     ///< Cmin
  double greatest_bytes_per_s = 0;  ///< Cmax
  double exponent = -1;             ///< a
  /// Root mean square of (measured - fitted) / measured over the points of the fit.
  double relative_residual = 0;
  double pivot_bit_rate = 3;  ///< Up to here S = Cmax; the paper's 3.

  /// Not collective. Thread-safe. In [Cmin, Cmax].
  double bytes_per_s(double bit_rate) const;
  /// Seconds of one core for n_bytes that shrink to encoded_bytes; 0 for no bytes, infinite where
  /// nothing is known (Cmax 0).
  double seconds(double n_bytes, double encoded_bytes) const;
};

/// Least relative squares over `points`: Cmin and Cmax by linear algebra for every exponent and
/// pivot of a grid. One point, points of about one rate (within a quarter), and throughput that
/// does not fall with the bit rate give a constant; fewer than four rates do not determine the
/// pivot, fewer than three not the exponent: these keep the paper's values. Cmin is at least half
/// of the slowest point and Cmax at most twice the fastest, so that rates beyond the measured ones
/// stay believable. Not collective. @error invalid_argument  no point, or one that is not positive
/// and finite.
Result<ThroughputCurve> fit_throughput(std::span<const ThroughputPoint> points);

// --- Roofline: the write bandwidth of a file system over the size that each rank writes, at one
// number of ranks; and over numbers of ranks.
//
// Source: Liang et al. 2019, eq. 1-6: linear in the logarithm of the size up to a turning point,
// constant behind it; the turning point by search, and the repair where the constant would lie
// below the line's end. Jin et al. 2022, eq. 2 is the case of one constant.

/// A measured point: n_ranks wrote bytes_per_rank each at the same time; all together got this.
struct BandwidthPoint {
  std::uint64_t n_ranks = 1;
  double bytes_per_rank = 0;
  double bytes_per_s = 0;  ///< Of all ranks together.
};

/// f(x) = slope * x + intercept below turning_x, ceiling from there on; x = log2(bytes_per_rank).
/// A constant has slope 0 and turning_x = least_x.
struct Roofline {
  std::uint64_t n_ranks = 1;
  double slope = 0;
  double intercept = 0;
  double ceiling = 0;  ///< Bytes per second.
  double turning_x = 0;
  double relative_residual = 0;  ///< Root mean square of (measured - fitted) / measured.
  bool repaired = false;         ///< The ceiling was raised to the line's end.
  double least_x = 0;            ///< Of the smallest size measured.

  /// Of all ranks together. Sizes below least_x take no less time than least_x: there the latency
  /// rules, and the line would fall below zero.
  double bytes_per_s(double bytes_per_rank) const;
};

/// Eq. 3-6 over the points of one number of ranks.
/// Not collective. Cost: O(points * sizes).
/// @error invalid_argument  no point, different numbers of ranks, or a value not positive.
Result<Roofline> fit_roofline(std::span<const BandwidthPoint> points);

/// Rooflines by number of ranks; between two of them log-linear in the number, beyond the outermost
/// the ceiling stays (more ranks share it) and below the least it shrinks in proportion.
class BandwidthModel {
 public:
  BandwidthModel() = default;
  /// One constant for all sizes and numbers of ranks: a limit that is known.
  static BandwidthModel constant(double bytes_per_s);
  /// @error as of fit_roofline
  static Result<BandwidthModel> fit(std::span<const BandwidthPoint> points);
  /// Of rooflines that were fitted before; any order, each number of ranks once.
  static BandwidthModel of(std::vector<Roofline> rooflines);

  bool known() const { return !rooflines_.empty(); }
  const std::vector<Roofline>& rooflines() const { return rooflines_; }
  /// All ranks together, if each writes so much. 0 if nothing is known.
  double bytes_per_s(double bytes_per_rank, std::uint64_t n_ranks) const;
  /// Seconds until all ranks have written so much each (2019, the first term of eq. 7). 0 for no
  /// bytes, and if nothing is known.
  double seconds(double bytes_per_rank, std::uint64_t n_ranks) const;

 private:
  std::vector<Roofline> rooflines_;  ///< By n_ranks, ascending.
};

// --- MessageCosts: what ranks pay to hear of each other.
//
// Source: LogGP (Alexandrov et al. 1995): a message takes o + L + n G + o. Collectives are the
// binomial trees, or the recursive doubling, of that many levels. Where we differ: whoever waits
// for a collective of ours naps (exec/mpi_parts.hpp), and hears of its end later by `wait_s`, once
// for each call, however many levels it has.

/// A measured point: seconds of one message between two ranks, or of a collective of `n_ranks`.
struct MessagePoint {
  enum class Kind : std::uint8_t { message, allreduce, gather };
  Kind kind = Kind::message;
  std::uint64_t n_ranks = 2;
  double n_bytes = 0;  ///< Of the message; of each rank.
  double seconds = 0;
};

struct MessageCosts {
  double latency_s = 0;   ///< L
  double overhead_s = 0;  ///< o: of who sends, and of who receives.
  double byte_s = 0;      ///< G
  double wait_s = 0;      ///< Of each collective, until the sleeper has heard of it.

  double message_s(double n_bytes) const { return latency_s + 2 * overhead_s + n_bytes * byte_s; }
  /// Numbers of `n_bytes` reduced, or bytes broadcast: a message a level.
  double allreduce_s(std::uint64_t n_ranks, double n_bytes) const;
  /// Every rank's bytes at one: along a tree, sizes first, as MpiComm does it.
  double gather_s(std::uint64_t n_ranks, double n_bytes) const;
  /// Every rank's bytes at every one. Without `wait_s`: not ours.
  double allgather_s(std::uint64_t n_ranks, double n_bytes) const;
};

/// L + 2 o and G by least relative squares over the messages, `overhead_s` being known; wait_s is
/// the median of what collectives took beyond their messages, 0 if they took less.
/// Not collective. @error invalid_argument  no message among the points, or one that is not
/// positive and finite.
Result<MessageCosts> fit_messages(std::span<const MessagePoint> points, double overhead_s);

}  // namespace tailrace
