// Reading and writing of profiles, measurement of bandwidth.

#include "bench_profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/version.hpp"
#include "exec/comm_factory.hpp"
#include "exec/lane_clock.hpp"
#include "measure/measure_machine.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::bench {
namespace {

constexpr std::uint64_t kProbeBytes = 16U << 20;
constexpr int kProbes = 5;

Result<MachineProfile> read_profile(const std::string& path) {
  if (path.empty()) return core_profile();  // like codec=auto
  std::ifstream file(path);
  if (!file) return Status(Code::not_found, "--profile: cannot read \"" + path + "\"");
  std::ostringstream text;
  text << file.rdbuf();
  Result<MachineProfile> profile = parse_profile(text.str());
  if (!profile.ok()) return profile.status().within("--profile \"" + path + "\"");
  return profile;
}

/// Seconds in which this rank writes and syncs one probe.
Result<double> probe(const std::string& path) {
  std::remove(path.c_str());
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, true, false);
  if (!storage.ok()) return storage.status();
  Buffer bytes(kProbeBytes);
  if (!bytes.allocated())
    return Status(Code::out_of_memory, "not enough memory to measure the storage");
  std::memset(bytes.data(), 1, bytes.n_bytes());
  const LaneClock clock;
  TAILRACE_TRY((*storage)->write_at(0, bytes.bytes()));
  TAILRACE_TRY((*storage)->sync());
  return clock.now_s();
}

/// Write bandwidth of all ranks together, median of several probes. Collective.
Result<double> measure_folder(Comm& comm, const std::string& folder) {
  const std::string path = fmt::format("{}/probe.{}", folder, comm.rank());
  std::array<double, kProbes> seconds{};
  for (double& one : seconds) {
    comm.barrier();
    Result<double> took = probe(path);
    ::unlink(path.c_str());
    TAILRACE_TRY(comm.agree(took.status()));
    one = *took;
    comm.allreduce(std::span<double>(&one, 1), Reduction::max);
  }
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(kProbeBytes) * comm.n_ranks() / seconds[kProbes / 2];
}

}  // namespace

Result<BenchProfile> BenchProfile::make(Comm& comm, const std::string& profile_path,
                                        const std::string& folder, bool measure) {
  BenchProfile profile;
  profile.folder_ = folder;
  Result<MachineProfile> read = read_profile(profile_path);
  TAILRACE_TRY(comm.agree(read.status()));
  profile.machine_ = std::move(*read);
  if (measure) {
    Result<double> bytes_per_s = measure_folder(comm, folder);
    if (!bytes_per_s.ok()) return bytes_per_s.status();
    profile.unlimited_bytes_per_s_ = *bytes_per_s;
  }
  return profile;
}

double BenchProfile::bytes_per_s(const Bandwidth& bandwidth, int n_ranks) const {
  return bandwidth.limited() ? bandwidth.total(n_ranks) : unlimited_bytes_per_s_;
}

Result<std::string> BenchProfile::write_for(Comm& comm, const Bandwidth& bandwidth) {
  MachineProfile profile = machine_;
  profile.write = BandwidthModel::constant(bytes_per_s(bandwidth, comm.n_ranks()));
  profile.write_points.clear();
  profile.sync_latency_s = 0;  // part of the limit or of the probe
  profile.sync_bytes_per_s = 0;
  const std::string path = fmt::format("{}/profile{}.json", folder_, n_written_++);
  Status written;
  if (comm.is_root()) {
    std::ofstream file(path);
    file << profile_text(profile);
    file.close();
    if (!file) written = Status(Code::io_error, "cannot write \"" + path + "\"");
  }
  TAILRACE_TRY(comm.agree(written));
  return path;
}

}  // namespace tailrace::bench
