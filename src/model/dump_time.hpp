// Cost of choices: the time of a step's output, from which codecs are chosen, and the searches for
// predictors and bounds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "model/throughput.hpp"

namespace tailrace {

// --- DumpTime: the time of a step's output with given codecs, and the choice of codecs for a step.
//
// Source: Liang et al. 2019, eq. 7-10 (encode, then write: the sum of both). Tailrace overlaps the
// two. So a step takes about the longer of all encoding and all writing, plus the part at the ends
// that is not hidden. Fields are then not independent: writing one field may hide behind the
// encoding of another. choose_codecs() minimises the time of the step, not of each field.

/// Forecast for one codec with its settings and one field, over all ranks.
struct CandidateForecast {
  std::string codec;         ///< Syntax of the command line: "trz,preset=fast".
  double encoded_bytes = 0;  ///< Sum over all ranks.
  double encode_s = 0;       ///< Thread seconds, sum over all ranks; includes verification.
  /// Times of this field only, for tables. Seconds.
  double encode_lane_s = 0;
  double write_lane_s = 0;
  double alone_s = 0;            ///< Time of this field with overlap.
  double measured_encode_s = 0;  ///< Set if requested (--why=measured); 0: not measured.
  double measured_bytes = 0;
  std::string refused;  ///< Reason why it is not usable or was not evaluated; empty: usable.
};

struct FieldForecast {
  std::string path;
  double raw_bytes = 0;        ///< Uncompressed, all ranks.
  std::uint64_t n_chunks = 0;  ///< All ranks.
  std::vector<CandidateForecast> candidates;
};

/// Ranks, threads and file system of a step.
struct DumpSetting {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads of each rank.
  BandwidthModel write;
  double sync_latency_s = 0;
  double other_s = 0;  ///< Fixed time of the call in addition to the step: reading its input.
};

/// Time of the encode lane: thread seconds divided among the threads that have a chunk. Seconds.
double encode_lane_s(double encode_s, double n_chunks_per_rank, const DumpSetting& setting);
/// Time of the write lane, with all ranks writing their share concurrently. Seconds.
double write_lane_s(double encoded_bytes, const DumpSetting& setting);
/// Encode, then write: 2019, eq. 9 and 10 (eq. 8 for codec none, whose encode_s is 0). Seconds.
double serial_dump_s(double encoded_bytes, double encode_s, const DumpSetting& setting);
/// Overlapped encode and write: the longer lane, plus the part of the shorter one that cannot be
/// hidden, one chunk of n_chunks. Seconds.
double overlapped_dump_s(double encoded_bytes, double encode_s, double n_chunks_per_rank,
                         const DumpSetting& setting);

/// Choice of codecs for all fields together.
struct CodecChoice {
  std::vector<std::size_t> candidate;  ///< Per field, an index into its candidates.
  double predicted_s = 0;              ///< Time of the step, with overlap.
  double encoded_bytes = 0;
};

/// Longest acceptable time of a step. The call (the step plus other_s) may take longer than one
/// with a step of `fastest_s` by a fixed fraction. Such a fraction is hardly noticeable, while
/// every reader and copy benefits from a smaller file. speed: 3 %; balanced: 10 %; size: no limit.
/// Seconds.
double longest_step_s(double fastest_s, const DumpSetting& setting, Objective objective);

/// Choose a candidate for each field: the fewest bytes (the faster at equal bytes) among choices
/// whose step takes at most longest_step_s(). Deterministic; ties go to the earlier candidate.
/// Cost: O(fields * candidates * log). Every field must have a candidate that is not refused.
CodecChoice choose_codecs(std::span<const FieldForecast> fields, const DumpSetting& setting,
                          Objective objective);

// --- ParameterSearch: choice of trz's predictor settings by a few successive trials.
//
// Source: Liang et al. 2019, V-E, algorithm 1, an early-stopping search: it tries a setting only if
// the previous result makes it promising. The paper's SZ predicts by regression or by Lorenzo in 1,
// 2 or 3 dimensions; in trz interpolation replaces regression. The caller decides for each setting
// whether the lossless stage pays (2019, V-D1): no further trial is needed.

/// Settings that algorithm 1 tries.
enum class PredictorSetting : std::uint8_t { dimension_1, dimension_2, dimension_3, regression };

/// Setting in the syntax of the command line: "predictor=lorenzo,dimension=1".
std::string_view predictor_setting_text(PredictorSetting setting);

/// Find the best setting by algorithm 1: two to four trials, or one if `n_dimensions` is 0. Not
/// collective: if ranks must agree, the caller sums their results.
/// @param n_dimensions  number of extents above 1; prediction along more of them is not tried.
/// @param seconds_of    tries one setting; infinity: not usable here. Called once per setting.
PredictorSetting search_predictor(std::size_t n_dimensions,
                                  const std::function<double(PredictorSetting)>& seconds_of);

// --- Quality: the error bound for a requested PSNR or a requested size.
//
// Inverse models. The PSNR follows from the errors' variance. Quantisation spreads errors evenly
// within the bound, with variance bound^2 / 3; the errors of a sample correct this value. For
// example, values that are predicted exactly have no error. The size follows from sizes predicted
// at a few bounds, interpolated as a power of the bound. Both results are approximate: only mode
// psnr= guarantees a PSNR.

/// Absolute bound that yields `psnr_db`.
/// Not collective. @param value_range  > 0.  @param variance_share  variance of the errors over
/// bound^2 / 3, > 0; 1: errors are even within the bound.
double bound_for_psnr(double psnr_db, double value_range, double variance_share);

/// PSNR in dB for a bound; the inverse of bound_for_psnr().
double psnr_for_bound(double absolute_bound, double value_range, double variance_share);

/// Predicted size of all fields together at one bound.
struct SizeAtBound {
  double relative_bound = 0;  ///< Fraction of each field's value range.
  double encoded_bytes = 0;
};

/// Tightest relative bound whose size is at most target_bytes.
/// Not collective. @param sizes  at least one, from the loosest bound to the tightest. A size
/// smaller than one at a looser bound is treated as equal to it.
/// @returns nothing if even the size at the loosest bound is larger.
std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes);

}  // namespace tailrace
