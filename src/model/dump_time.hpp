// DumpTime: how long a step's output will take with a codec, and which codecs a step had better
// use.
//
// Source: Liang et al. 2019, eq. 7-10 (encode, then write: the sum of both). Tailrace overlaps the
// two, so that a step takes about the longer of all encoding and all writing, plus the part at the
// ends that nothing hides. Then fields are no longer independent: bytes of one field may hide
// behind the encoding of another. choose_codecs() minimises the step, not each field.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "model/machine_profile.hpp"

namespace tailrace {

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

/// Choose a candidate for each field. speed: the least overlapped_dump_s of the step; size: the
/// fewest bytes (the faster at equal bytes); balanced: the fewest bytes among choices that take at
/// most a tenth longer than the fastest. Deterministic; ties go to the earlier candidate.
/// Cost: O(fields * candidates * log). Every field must have a candidate that is not refused.
CodecChoice choose_codecs(std::span<const FieldForecast> fields, const DumpSetting& setting,
                          Objective objective);

}  // namespace tailrace
