// Throughput: how fast a codec encodes, as a function of the bit rate that comes out.
//
// Source: Jin et al. 2022, eq. 1: S(B) = (Cmax - Cmin) * (B / 3)^a + Cmin, B in bits a value of 32,
// a < 0. We use B scaled to 32-bit values (32 * encoded / uncompressed bytes) for every dtype,
// clamp S into [Cmin, Cmax], and fit by search rather than by hand. The 3 is where the authors saw
// SZ3 reach Cmax; other codecs reach it elsewhere, so that it is fitted too (pivot_bit_rate).

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.hpp"

namespace tailrace {

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

}  // namespace tailrace
