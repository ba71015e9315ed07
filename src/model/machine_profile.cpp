// What a profile answers, and the typical one that stands in until somebody has measured.

#include "model/machine_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/version.hpp"

namespace tailrace {
namespace {

// --- the built-in profile
// -------------------------------------------------------------------------

constexpr double kMB = 1e6;

/// Fits of a codec on nyx128_s040.h5, MB/s: {Cmin, Cmax, a, pivot} of encode, then of decode.
struct TypicalCodec {
  const char* codec;
  std::array<double, 4> encode;
  std::array<double, 4> decode;
};

// One core of an AMD EPYC with AVX-512 (2 vCPUs at work), 8 MB chunks of four Nyx fields at rel
// 1e-2 ... 1e-6, gathered and encoded: the greatest of five runs of `tailrace profile` at each
// point, since others worked on the machine, fitted by fit_throughput(). lossless=off has no curve
// of its own: it came within the spread of trz's. preset=ratio is held to trz's Cmax, since at high
// ratios both do the same. From sz3 to portable: the fits of bench/results/trz_codecs.csv, which
// knows more rates, times 0.55, the median of what these codecs reached beside trz in such a run.
constexpr TypicalCodec kTypicalCodecs[] = {
    {"trz", {350, 1541, -0.71, 4.72}, {1134, 1985, -0.92, 2.02}},
    {"trz,preset=fast", {688, 2739, -1.29, 6.89}, {2195, 2761, -6.00, 6.68}},
    {"trz,preset=ratio", {208, 1541, -0.60, 1.10}, {1084, 1985, -1.00, 2.02}},
    {"trz,predictor=lorenzo,dimension=1", {570, 2672, -0.71, 2.94}, {1500, 2828, -1.09, 1.33}},
    {"trz,predictor=lorenzo,dimension=2", {643, 2533, -0.84, 3.84}, {687, 2711, -0.36, 1.24}},
    {"trz,predictor=lorenzo,dimension=3", {1124, 1930, -4.27, 7.40}, {1543, 2283, -2.35, 2.60}},
    {"sz3", {19, 82, -1.41, 7.6}, {19, 290, -0.84, 1.24}},
    {"zfp", {55, 175, -0.60, 6.3}, {67, 256, -0.92, 6.3}},
    {"zstd", {289, 670, -6, 24.6}, {624, 1426, -6, 24.6}},
    {"deflate", {32, 65, -6, 24.4}, {719, 719, -1, 3}},
    {"portable", {60, 83, -3.03, 7.8}, {269, 1176, -1, 2.7}},
    {"none", {12003, 12003, -1, 3}, {18072, 18072, -1, 3}},
};

// Of the file system nothing is known. Parallel ones give a rank of a full node 4 to 100 MB/s (Jin
// et al. 2022, figure 7; Liang et al. 2019, section VI: 115 GB/s for 32,768 ranks of Theta); we
// take the upper end, and Theta's total as the ceiling: the share of each rank stays up to 1,024
// ranks.
constexpr double kTypicalWriteBytesPerSPerRank = 100 * kMB;
constexpr std::uint64_t kTypicalSaturatingRanks = 1024;
constexpr double kTypicalClaimLatencyS = 1e-6;
constexpr double kTypicalSyncLatencyS = 5e-3;
constexpr double kTypicalCommitS = 20e-3;

ThroughputCurve curve_of(const std::array<double, 4>& fit) {
  ThroughputCurve curve;
  curve.least_bytes_per_s = fit[0] * kMB;
  curve.greatest_bytes_per_s = fit[1] * kMB;
  curve.exponent = fit[2];
  curve.pivot_bit_rate = fit[3];
  return curve;
}

BandwidthModel typical_bandwidth() {
  Roofline roofline;
  roofline.n_ranks = kTypicalSaturatingRanks;
  roofline.ceiling = kTypicalWriteBytesPerSPerRank * double{kTypicalSaturatingRanks};
  roofline.intercept = roofline.ceiling;
  return BandwidthModel::of({roofline});
}

// --- staleness
// ------------------------------------------------------------------------------------

/// Nodes of one machine differ in numbers only: "nid00123" and "nid00456" are one kind of host.
std::string without_digits(std::string_view host) {
  std::string letters;
  for (const char c : host) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) letters.push_back(c);
  }
  return letters;
}

void compare(std::vector<std::string>& sentences, std::string_view what, std::string_view measured,
             std::string_view here) {
  if (measured == here) return;
  sentences.push_back(
      fmt::format("{} was \"{}\" when it was measured, here it is \"{}\"", what, measured, here));
}

}  // namespace

const CodecProfile* MachineProfile::find(std::string_view codec) const {
  for (;;) {
    const auto found =
        std::find_if(codecs.begin(), codecs.end(),
                     [&](const CodecProfile& measured) { return measured.codec == codec; });
    if (found != codecs.end()) return &*found;
    const std::size_t last_setting = codec.rfind(',');
    if (last_setting == std::string_view::npos) return nullptr;
    codec = codec.substr(0, last_setting);
  }
}

std::uint64_t MachineProfile::alignment_bytes() const {
  if (stripe_bytes > 0) return stripe_bytes;
  constexpr std::string_view parallel[] = {"lustre", "gpfs",      "beegfs",   "panfs", "ceph",
                                           "wekafs", "glusterfs", "orangefs", "pvfs2", "fhgfs"};
  const bool is_parallel =
      std::find(std::begin(parallel), std::end(parallel), file_system) != std::end(parallel);
  return is_parallel ? 64U << 10 : 1;
}

MachineProfile built_in_profile() {
  MachineProfile profile;
  profile.tailrace_version = version_text;
  profile.built_in = true;
  for (const TypicalCodec& typical : kTypicalCodecs) {
    CodecProfile codec;
    codec.codec = typical.codec;
    codec.encode = curve_of(typical.encode);
    codec.decode = curve_of(typical.decode);
    profile.codecs.push_back(std::move(codec));
  }
  profile.write = typical_bandwidth();
  profile.read = typical_bandwidth();
  profile.claim_latency_s = kTypicalClaimLatencyS;
  profile.sync_latency_s = kTypicalSyncLatencyS;
  profile.commit_s = kTypicalCommitS;
  return profile;
}

std::vector<std::string> staleness(const MachineProfile& profile, const MachineIdentity& here) {
  std::vector<std::string> sentences;
  if (profile.built_in) return sentences;
  compare(sentences, "Tailrace", profile.tailrace_version, here.tailrace_version);
  if (without_digits(profile.host) != without_digits(here.host)) {
    compare(sentences, "the host", profile.host, here.host);
  }
  compare(sentences, "the processor", profile.processor, here.processor);
  compare(sentences, "the number of cores", std::to_string(profile.n_cores),
          std::to_string(here.n_cores));
  compare(sentences, "the file system", profile.file_system, here.file_system);
  return sentences;
}

}  // namespace tailrace
