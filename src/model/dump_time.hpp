// What a choice comes to: the time of a step's output, by which codecs are chosen, and the searches
// for predictors and bounds.

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

// --- DumpTime: how long a step's output will take with a codec, and which codecs a step had better
// use.
//
// Source: Liang et al. 2019, eq. 7-10 (encode, then write: the sum of both). Tailrace overlaps the
// two, so that a step takes about the longer of all encoding and all writing, plus the part at the
// ends that nothing hides. Then fields are no longer independent: bytes of one field may hide
// behind the encoding of another. choose_codecs() minimises the step, not each field.

/// One codec with its settings for one field: what is expected of it, over all ranks.
struct CandidateForecast {
  std::string codec;         ///< As on the command line: "trz,preset=fast".
  double encoded_bytes = 0;  ///< Sum over all ranks.
  double encode_s = 0;       ///< Thread seconds, sum over all ranks; verification included.
  /// Of this field alone, for tables. Seconds.
  double encode_lane_s = 0;
  double write_lane_s = 0;
  double alone_s = 0;            ///< Overlapped.
  double measured_encode_s = 0;  ///< On request (--why=measured); 0: not measured.
  double measured_bytes = 0;
  std::string refused;  ///< Why it cannot be used, or was not looked at; empty: it can.
};

struct FieldForecast {
  std::string path;
  double raw_bytes = 0;        ///< Uncompressed, all ranks.
  std::uint64_t n_chunks = 0;  ///< All ranks.
  std::vector<CandidateForecast> candidates;
};

/// Where and by whom the step is written.
struct DumpSetting {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads of each rank.
  BandwidthModel write;
  double sync_latency_s = 0;
  double beside_s = 0;  ///< What the call takes besides, whatever is chosen: reading its input.
};

/// Thread seconds, shared by all threads that have a chunk. Seconds.
double encode_lane_s(double encode_s, double n_chunks_per_rank, const DumpSetting& setting);
/// All ranks write their share at the same time. Seconds.
double write_lane_s(double encoded_bytes, const DumpSetting& setting);
/// Encode, then write: 2019, eq. 9 and 10 (eq. 8 for codec none, whose encode_s is 0). Seconds.
double serial_dump_s(double encoded_bytes, double encode_s, const DumpSetting& setting);
/// Both at once: the longer lane, and the share of the shorter one that cannot be hidden, one chunk
/// of n_chunks. Seconds.
double overlapped_dump_s(double encoded_bytes, double encode_s, double n_chunks_per_rank,
                         const DumpSetting& setting);

/// The decision for all fields together.
struct CodecChoice {
  std::vector<std::size_t> candidate;  ///< Per field, an index into its candidates.
  double predicted_s = 0;              ///< Of the step, overlapped.
  double encoded_bytes = 0;
};

/// How long the step may take so that the call, the step and what it takes besides, takes no more
/// than a share longer than with a step of `fastest_s`: nobody notices that, but every reader and
/// copy has the bytes. speed: 3 %; balanced: a tenth; size: without limit. Seconds.
double longest_step_s(double fastest_s, const DumpSetting& setting, Objective objective);

/// Choose a candidate for each field: the fewest bytes (the faster at equal bytes) among choices
/// whose step takes at most longest_step_s(). Deterministic; ties go to the earlier candidate.
/// Cost: O(fields * candidates * log). Every field must have a candidate that is not refused.
CodecChoice choose_codecs(std::span<const FieldForecast> fields, const DumpSetting& setting,
                          Objective objective);

// --- ParameterSearch: which predictor settings of trz are worth a look, one after another.
//
// Source: Liang et al. 2019, V-E, algorithm 1, an early-stopping search: a setting is only tried
// where the one before it made it look worthwhile. There, SZ predicts by regression or by Lorenzo
// in 1, 2 or 3 dimensions; in trz interpolation stands where regression stood. Whether the lossless
// stage pays is the caller's to answer for each setting (2019, V-D1): no further trial is needed.

/// What algorithm 1 tries.
enum class PredictorSetting : std::uint8_t { dimension_1, dimension_2, dimension_3, regression };

/// The setting in the words of the command line: "predictor=lorenzo,dimension=1".
std::string_view predictor_setting_text(PredictorSetting setting);

/// The best setting by algorithm 1: at most four trials, at least two (one for data of no
/// dimension). Not collective: where ranks must agree, the caller adds up what they have tried.
/// @param n_dimensions  extents above 1; prediction along more of them is not tried.
/// @param seconds_of    tries one setting; infinity: it cannot be used here. Called once each.
PredictorSetting search_predictor(std::size_t n_dimensions,
                                  const std::function<double(PredictorSetting)>& seconds_of);

// --- Quality: the error bound that a wished PSNR or a wished size comes to.
//
// Inverse models. The PSNR follows from the errors' variance: quantisation spreads errors evenly
// within the bound, which makes bound^2 / 3; what a sample's errors show instead corrects that
// (values that are predicted exactly, for instance, have no error). The size follows from sizes
// predicted at a few bounds, between which it is taken as a power of the bound. Both say "about":
// mode psnr= is the one that guarantees.

/// The absolute bound at which errors of this variance share make `psnr_db`.
/// Not collective. @param value_range  > 0.  @param variance_share  variance of the errors over
/// bound^2 / 3, > 0; 1: even within the bound.
double bound_for_psnr(double psnr_db, double value_range, double variance_share);

/// PSNR in dB that a bound makes; the inverse of bound_for_psnr.
double psnr_for_bound(double absolute_bound, double value_range, double variance_share);

/// What all fields together come to under one bound.
struct SizeAtBound {
  double relative_bound = 0;  ///< Of each field's value range.
  double encoded_bytes = 0;
};

/// The tightest relative bound whose size is at most target_bytes.
/// Not collective. @param sizes  at least one, from the loosest bound to the tightest. A size that
/// is smaller than one at a looser bound is taken as equal to it.
/// @returns nothing if even the loosest bound makes more.
std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes);

}  // namespace tailrace
