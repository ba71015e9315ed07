// MachineProfile: results of `tailrace profile` for a machine, and their form as readable JSON.
//
// Pure: text in, text out; the frontend or codec_choice reads and writes the file. A profile
// records host, processor, file system and Tailrace's version, so that staleness() can detect a
// stale one.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/throughput.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Speeds of a codec with its settings, measured on one core while n_ranks ranks were working.
struct CodecProfile {
  std::string codec;  ///< "trz", "trz,preset=fast", "sz3", ... in the syntax of the command line.
  ThroughputCurve encode;
  ThroughputCurve decode;
  std::vector<ThroughputPoint> encode_points;
  std::vector<ThroughputPoint> decode_points;
};

/// Costs of a step in addition to encoding and writing (lab/simulate/README.md).
struct StepConstants {
  MessageCosts messages;
  double copy_bytes_per_s = 0;  ///< Copying at a hand-over, per rank, while all ranks of its node
                                ///< copy.
  double number_s = 0;          ///< Rank 0: time per number in another rank's report.
  double record_s = 0;          ///< Rank 0: time to process a chunk's record.
  double index_s = 0;           ///< Rank 0: time per chunk for sorting, the index and the commit.
  double dataset_s = 0;         ///< Rank 0: time to extend a dataset by a step.
  double commit_s = 0;          ///< Rank 0: fixed time of a step's commit, including the sync.
};

/// Published message costs of a large machine; other values measured on our development machine.
StepConstants typical_step_constants();

struct MachineProfile {
  std::string tailrace_version;
  std::string host;
  std::string processor;
  std::uint64_t n_cores = 0;
  std::string file_system;    ///< Type: "ext4", "lustre", "tmpfs".
  std::string folder;         ///< Folder of the measured writes.
  std::string date;           ///< UTC, ISO 8601.
  std::uint64_t n_ranks = 1;  ///< Number of ranks that measured.

  std::vector<CodecProfile> codecs;
  BandwidthModel write;
  BandwidthModel read;
  std::vector<BandwidthPoint> write_points;
  std::vector<BandwidthPoint> read_points;
  double claim_latency_s = 0;   ///< Median latency of one claim at the tail.
  double sync_latency_s = 0;    ///< fdatasync after one small write, median.
  double sync_bytes_per_s = 0;  ///< fdatasync of large writes; 0: not distinguishable from latency.
  double commit_s = 0;          ///< Metadata of a small file: create, write, sync, rename.
  /// Typical values if not measured: in profiles of older versions, and `messages` also on a single
  /// rank.
  StepConstants step = typical_step_constants();
  bool step_measured = false;
  std::vector<MessagePoint> message_points;  ///< Empty: not measured.
  std::uint64_t block_bytes = 4096;          ///< Block size of the file system (st_blksize).
  std::uint64_t stripe_bytes = 0;            ///< Stripe size; 0: not striped or unknown.
  bool built_in = false;                     ///< True for typical values that were not measured.
  /// True if the codecs' speeds are typical ones of another core, which measure/measure_machine.hpp
  /// still has to scale. False if they were measured, or if the unscaled values were requested. Not
  /// in the text.
  bool of_another_core = false;

  /// Find a codec's speeds. Drops settings that are not in the profile, from the last to the first,
  /// down to the bare codec name. Null if the codec was not measured.
  const CodecProfile* find(std::string_view codec) const;
  /// Preferred alignment of writes: the stripe, 64 KiB on parallel file systems, else 1.
  std::uint64_t alignment_bytes() const;
};

/// Typical values of one core of our development machine's class, and of an unknown file system,
/// for users who have not run `tailrace profile`. Marked built_in.
MachineProfile built_in_profile();
/// Name of the built-in profile, accepted instead of a profile's file name.
inline constexpr std::string_view kBuiltInProfileName = "built-in";

/// Convert to JSON; fractional numbers have six significant digits. Not collective.
std::string profile_text(const MachineProfile& profile);
/// Parse JSON. Ignores unknown entries, so that later versions may add some.
/// @error corrupt  not a profile, or of another format; names the faulty entry.
Result<MachineProfile> parse_profile(std::string_view text);

/// Properties of this machine that a profile must match.
struct MachineIdentity {
  std::string tailrace_version;
  std::string host;
  std::string processor;
  std::uint64_t n_cores = 0;
  std::string file_system;
};
/// Compare a profile with this machine. @returns texts for the user, empty if it matches: another
/// host, file system, processor, number of cores or version. Hosts that differ only in digits (the
/// nodes of one machine) match. A built-in profile is never stale.
std::vector<std::string> staleness(const MachineProfile& profile, const MachineIdentity& here);

}  // namespace tailrace
