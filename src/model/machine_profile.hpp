// MachineProfile: what `tailrace profile` has measured of a machine, as readable JSON and back.
//
// Pure: text in, text out; who reads and writes the file is the frontend or codec_choice. A profile
// names host, processor, file system and Tailrace's version, so that a stale one is noticed.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/throughput.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A codec with its settings, measured on one core while as many ranks as were started worked.
struct CodecProfile {
  std::string codec;  ///< "trz", "trz,preset=fast", "sz3", ... as on the command line.
  ThroughputCurve encode;
  ThroughputCurve decode;
  std::vector<ThroughputPoint> encode_points;
  std::vector<ThroughputPoint> decode_points;
};

/// What a step costs beside its encoding and writing (docs/simulate.md).
struct StepConstants {
  MessageCosts messages;
  double copy_bytes_per_s = 0;  ///< Of one rank at a hand-over, its node's ranks copying, too.
  double number_s = 0;          ///< Rank 0: a number of another rank's report.
  double record_s = 0;          ///< Rank 0: a chunk's record, taken in.
  double index_s = 0;           ///< Rank 0: a chunk put in order, into the index, the commit.
  double dataset_s = 0;         ///< Rank 0: a dataset that grows by a step.
  double commit_s = 0;          ///< Rank 0: the commit of a step, whatever is in it; synced.
};

/// Messages as published for a large machine, the rest as measured where we develop.
StepConstants typical_step_constants();

struct MachineProfile {
  std::string tailrace_version;
  std::string host;
  std::string processor;
  std::uint64_t n_cores = 0;
  std::string file_system;    ///< Type: "ext4", "lustre", "tmpfs".
  std::string folder;         ///< That was written to.
  std::string date;           ///< UTC, ISO 8601.
  std::uint64_t n_ranks = 1;  ///< That measured.

  std::vector<CodecProfile> codecs;
  BandwidthModel write;
  BandwidthModel read;
  std::vector<BandwidthPoint> write_points;
  std::vector<BandwidthPoint> read_points;
  double claim_latency_s = 0;   ///< Median of one claim at the tail.
  double sync_latency_s = 0;    ///< fdatasync after one small write, median.
  double sync_bytes_per_s = 0;  ///< fdatasync of large writes; 0: not told from latency.
  double commit_s = 0;          ///< Metadata of a small file: create, write, sync, rename.
  /// Typical where it was not measured: by older versions; `messages` on a single rank, too.
  StepConstants step = typical_step_constants();
  bool step_measured = false;
  std::vector<MessagePoint> message_points;  ///< None: not measured.
  std::uint64_t block_bytes = 4096;          ///< Of the file system (st_blksize).
  std::uint64_t stripe_bytes = 0;            ///< Of a striped one; 0: none, or not known.
  bool built_in = false;                     ///< Nobody has measured: typical values.
  /// Typical speeds of codecs that are still another core's (measure/measure_machine.hpp scales
  /// them). Of what was asked for as it stands, or measured, this is false. Not in the text.
  bool of_another_core = false;

  /// Null if this codec was not measured. Settings that are not in the profile are dropped from the
  /// last to the first, down to the codec's bare name.
  const CodecProfile* find(std::string_view codec) const;
  /// Where writes had better begin: the stripe, 64 KiB on parallel file systems, else 1.
  std::uint64_t alignment_bytes() const;
};

/// Typical values of one core of the class of machine we develop on, and a file system of which
/// nothing is known: for users who have not run `tailrace profile`. Marked built_in.
MachineProfile built_in_profile();
/// What names it where a profile's file may be named.
inline constexpr std::string_view built_in_profile_name = "built-in";

/// As JSON; numbers that are not whole to six significant digits. Not collective.
std::string profile_text(const MachineProfile& profile);
/// Entries that are not known are passed over, so that later versions may add some.
/// @error corrupt  not a profile, or of another format; names what is wrong.
Result<MachineProfile> parse_profile(std::string_view text);

/// What a profile must fit to be believed.
struct MachineIdentity {
  std::string tailrace_version;
  std::string host;
  std::string processor;
  std::uint64_t n_cores = 0;
  std::string file_system;
};
/// Sentences for the user, empty if it fits: another host, file system, processor or version. Hosts
/// that differ in digits only (the nodes of one machine) fit. A built-in profile is never stale.
std::vector<std::string> staleness(const MachineProfile& profile, const MachineIdentity& here);

}  // namespace tailrace
