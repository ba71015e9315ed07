// The shared file, its sizes in doublings, and when to stop.
//
// Invariant: numbers that all ranks share (maxima over the ranks) decide whether another size or
// repeat follows. All ranks therefore make the same collective calls.

#include "measure/measure_machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"
#include "exec/lane_clock.hpp"
#include "measure/machine_identity.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

// --- Encoding and decoding of one chunk, by the thread's clock.

namespace {

struct Trip {
  double encode_s = 0;
  double decode_s = 0;
  double encoded_bytes = 0;
};

Result<Trip> run_once(const Codec& codec, std::span<const std::byte> values) {
  Trip trip;
  const double start = thread_cpu_s();
  Buffer gathered = Buffer::copy_of(values);
  if (!gathered.allocated()) {
    return Status(Code::out_of_memory,
                  fmt::format("no memory for a chunk of {} bytes", values.size()));
  }
  Result<EncodedBytes> encoded = codec.encode(std::move(gathered));
  const double middle = thread_cpu_s();
  if (!encoded.ok()) return encoded.status();
  trip.encoded_bytes = static_cast<double>(encoded->buffer.n_bytes());
  // A reader gets the values in a separate array, like from HDF5.
  std::vector<std::byte> destination(values.size());
  const double decode_start = thread_cpu_s();
  TAILRACE_TAKE(Buffer decoded, codec.decode(std::move(*encoded)));
  std::copy_n(decoded.data(), std::min(decoded.n_bytes(), values.size()), destination.data());
  trip.encode_s = middle - start;
  trip.decode_s = thread_cpu_s() - decode_start;
  return trip;
}

Result<Trip> run_often(const Codec& codec, std::span<const std::byte> values,
                       std::size_t n_repeats) {
  TAILRACE_TAKE(Trip warm, run_once(codec, values));
  std::vector<double> encode_s;
  std::vector<double> decode_s;
  for (std::size_t i = 0; i < n_repeats; ++i) {
    TAILRACE_TAKE(Trip trip, run_once(codec, values));
    encode_s.push_back(trip.encode_s);
    decode_s.push_back(trip.decode_s);
  }
  return Trip{median_of(encode_s), median_of(decode_s), warm.encoded_bytes};
}

// --- Speed of a core within some ms.

constexpr std::uint64_t kMadeUpEdge = 64;  ///< Edge of the chunk in cells, for fast codecs.
constexpr std::uint64_t kMadeUpEdgeSlow = 32;
constexpr double kSlowBytesPerS = 300e6;  ///< Slower codecs use the smaller edge.
constexpr double kMadeUpBound = 1e-3;     ///< Bound for a range of 1: about 5 bits a value.
constexpr int kRoundsLeast = 3;           ///< The first one warms up.
constexpr int kRoundsMost = 10;
constexpr double kRoundsS = 4e-3;                         ///< No further rounds after this time.
constexpr std::array<double, 2> kBelievable = {0.1, 10};  ///< Accepted speeds of a core over the
                                                          //   typical one.

/// Make random values, averaged twice over `width` cells along each axis of a periodic cube: in [0,
/// 1].
std::vector<float> smooth_values(std::uint64_t edge, std::uint64_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(edge * edge * edge);
  for (float& value : values) value = static_cast<float>(random()) * 0x1p-32F;
  std::vector<float> line(edge);
  const std::uint64_t strides[] = {1, edge, edge * edge, 1, edge, edge * edge};
  for (const std::uint64_t stride : strides) {
    for (std::uint64_t l = 0; l < edge * edge; ++l) {
      float* at = values.data() + l / stride * stride * edge + l % stride;
      float sum = 0;
      for (std::uint64_t i = 0; i < width; ++i) sum += at[i * stride];
      for (std::uint64_t i = 0; i < edge; ++i) {
        line[i] = sum;
        sum += at[(i + width) % edge * stride] - at[i * stride];
      }
      for (std::uint64_t i = 0; i < edge; ++i) at[i * stride] = line[i];
    }
  }
  const auto [least, greatest] = std::ranges::minmax(values);
  for (float& value : values) value = (value - least) / (greatest - least);
  return values;
}

/// Make values like a density: large and small structures, and more small values than large ones.
/// trz predicts them by interpolation, like real Nyx fields.
std::vector<float> made_up_values(std::uint64_t edge) {
  std::vector<float> values = smooth_values(edge, 8, 1);
  const std::vector<float> fine = smooth_values(edge, 2, 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::exp(2 * values[i] + 0.6F * fine[i]);
  }
  const auto [least, greatest] = std::ranges::minmax(values);
  for (float& value : values) value = (value - least) / (greatest - least);
  return values;
}

/// Return the uncompressed bytes per second of this core with the codec; nothing if they cannot be
/// measured.
std::optional<double> made_up_speed(std::string_view codec_text, std::span<const float> values,
                                    std::uint64_t edge) {
  FieldOptions named;
  if (!apply_field_options("codec=" + std::string(codec_text), named).ok()) return std::nullopt;
  CodecRequest request;
  request.name = named.codec;
  request.settings = named.codec_settings;
  request.dtype = DType::f32;
  request.chunk_shape = {edge, edge, edge};
  if (codec_entry(named.codec).loss != Loss::never) request.absolute_bound = kMadeUpBound;
  const Result<std::unique_ptr<Codec>> codec = make_codec(request);
  if (!codec.ok()) return std::nullopt;
  const std::span<const std::byte> bytes = std::as_bytes(values);
  double least_s = std::numeric_limits<double>::infinity();
  double all_s = 0;
  for (int round = 0; round < kRoundsLeast || (round < kRoundsMost && all_s < kRoundsS); ++round) {
    const double start_s = thread_cpu_s();
    Buffer gathered = Buffer::copy_of(bytes);
    if (!gathered.allocated()) return std::nullopt;
    if (!(*codec)->encode(std::move(gathered)).ok()) return std::nullopt;
    const double round_s = thread_cpu_s() - start_s;
    least_s = std::min(least_s, round_s);
    all_s += round_s;
  }
  if (!(least_s > 0)) return std::nullopt;
  return static_cast<double>(bytes.size()) / least_s;
}

void scale(ThroughputCurve& curve, double factor) {
  curve.least_bytes_per_s *= factor;
  curve.greatest_bytes_per_s *= factor;
}

MachineProfile measure_core() {
  MachineProfile profile = built_in_profile();
  profile.processor = processor_name();
  const std::vector<float> values = made_up_values(kMadeUpEdge);
  const std::vector<float> few_values = made_up_values(kMadeUpEdgeSlow);
  double of_plugins = 1;
  std::map<std::string_view, double> factors;
  for (const CodecVariant* variant : codec_variants()) {
    if (!(variant->made_up > 0)) continue;
    const double typical = variant->made_up * 1e6;
    const bool slow = typical < kSlowBytesPerS;
    const double speed = made_up_speed(variant->codec, slow ? few_values : values,
                                       slow ? kMadeUpEdgeSlow : kMadeUpEdge)
                             .value_or(typical);
    const double factor = std::clamp(speed / typical, kBelievable[0], kBelievable[1]);
    factors[variant->codec] = factor;
    if (variant->codec == kExactCodec) of_plugins = factor;
  }
  for (CodecProfile& codec : profile.codecs) {
    const auto found = factors.find(codec.codec);
    const double factor = found != factors.end()            ? found->second
                          : codec_entry(codec.codec).plugin ? of_plugins
                                                            : 1;
    scale(codec.encode, factor);
    scale(codec.decode, factor);
  }
  return profile;
}

/// Return the path of the cache; empty if it cannot be stored. It is per processor, since nodes
/// with different ones may share a home. It is per build, since one without optimisation is several
/// times as slow.
std::filesystem::path kept_path() {
  const char* cache = environment_variable("XDG_CACHE_HOME");
  const char* home = environment_variable("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::string name = "core";
  for (const char c : processor_name()) {
    name.push_back(std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_');
  }
  return folder / "tailrace" / (name + "-" TAILRACE_BUILD_DIGEST ".json");
}

}  // namespace

MachineProfile core_profile() {
  static const MachineProfile profile = measure_core();
  return profile;
}

std::optional<MachineProfile> kept_core_profile() {
  const std::filesystem::path path = kept_path();
  if (path.empty()) return std::nullopt;
  const Result<std::string> text = read_settings_file(path.string());
  if (!text.ok()) return std::nullopt;
  Result<MachineProfile> profile = parse_profile(*text);
  const MachineProfile typical = built_in_profile();
  // A damaged cache, or one of another version or other codecs, is measured again.
  if (!profile.ok() || !profile->built_in || profile->processor != processor_name() ||
      profile->tailrace_version != typical.tailrace_version ||
      !std::ranges::equal(profile->codecs, typical.codecs, {}, &CodecProfile::codec,
                          &CodecProfile::codec)) {
    return std::nullopt;
  }
  return std::move(*profile);
}

MachineProfile measured_and_kept_core_profile() {
  MachineProfile profile = core_profile();
  const std::filesystem::path path = kept_path();
  if (path.empty()) return profile;
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  // Write to a temporary file, so that a concurrent writer never leaves a mixed one.
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid());
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << profile_text(profile);
    stream.close();
    if (!stream) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) std::filesystem::rename(temporary, path, failed);
  if (failed) std::filesystem::remove(temporary, failed);
  return profile;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Result<MeasuredTrip> measure_trip(Comm& comm, const Codec& codec, std::span<const std::byte> values,
                                  std::size_t n_repeats) {
  TAILRACE_CHECK(!values.empty() && n_repeats > 0);
  comm.barrier();  // all ranks load the node's memory at the same time
  const LaneClock clock;
  TAILRACE_TAKE(Trip trip, comm.agree(run_often(codec, values, n_repeats)));
  // The clock's resolution is 1 ns; an unmeasurably short trip counts as 1 ns.
  std::array<double, 4> sums = {static_cast<double>(values.size()), trip.encoded_bytes,
                                std::max(trip.encode_s, 1e-9), std::max(trip.decode_s, 1e-9)};
  comm.allreduce(sums, Reduction::sum);
  double elapsed_s = clock.now_s();
  comm.allreduce(std::span<double>(&elapsed_s, 1), Reduction::max);
  const double bit_rate = 32 * sums[1] / sums[0];
  return MeasuredTrip{{bit_rate, sums[0] / sums[2]}, {bit_rate, sums[0] / sums[3]}, elapsed_s};
}

namespace {

constexpr std::size_t kRepeatsMax = 5;
constexpr std::size_t kSyncsMax = 21;
constexpr std::uint64_t kClaims = 2000;

/// A shared file that is unlinked before the first byte is written.
class ScratchFile {
 public:
  /// Collective.
  Status open(Comm& comm, const std::string& folder) {
    Bytes name;
    Status made;
    if (comm.is_root()) made = create(folder, name);
    TAILRACE_TRY(comm.agree(made));
    comm.broadcast(name, 0);
    const std::string path(reinterpret_cast<const char*>(name.data()), name.size());
    Status opened;
    if (!comm.is_root()) opened = open_existing(path);
    const Status agreed = comm.agree(opened);
    if (comm.is_root()) ::unlink(path.c_str());
    return agreed;
  }
  ~ScratchFile() {
    storage_.reset();
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Storage& storage() { return *storage_; }
  /// Make later reads go to the storage. A hint: a file system may ignore it.
  void forget_cached() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

 private:
  Status create(const std::string& folder, Bytes& name) {
    std::string path = folder + "/tailrace_profile.XXXXXX";
    descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor_ < 0) return status_from_errno(errno, "creating a file in \"" + folder + "\"");
    const auto* text = reinterpret_cast<const std::byte*>(path.data());
    name.assign(text, text + path.size());
    const Status opened = open_storage(path);
    if (!opened.ok()) ::unlink(path.c_str());
    return opened;
  }
  Status open_existing(const std::string& path) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0) return status_from_errno(errno, "opening \"" + path + "\"");
    return open_storage(path);
  }
  Status open_storage(const std::string& path) {
    TAILRACE_TAKE(storage_, open_posix_storage(path, false, false));
    return Status();
  }

  int descriptor_ = -1;
  std::unique_ptr<Storage> storage_;
};

/// Fill with bytes that no file system can compress or deduplicate.
void fill_random(std::span<std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
}

/// Call `act(address, n_bytes)` for each piece of this rank's run.
template <class Act>
Status for_pieces(std::uint64_t start, std::uint64_t n_bytes, std::uint64_t piece_bytes,
                  Act&& act) {
  for (std::uint64_t done = 0; done < n_bytes; done += piece_bytes) {
    TAILRACE_TRY(act(start + done, std::min(piece_bytes, n_bytes - done)));
  }
  return Status();
}

/// One size with one number of ranks. Seconds are those of the slowest rank.
struct Run {
  double write_s = 0;  ///< Including the sync.
  double sync_s = 0;
  double read_s = 0;
};

class StorageBench {
 public:
  StorageBench(Comm& comm, const StoragePlan& plan, const std::function<void(double)>& progress)
      : comm_(comm), plan_(plan), progress_(progress), piece_(plan.piece_bytes) {}

  Result<StorageMeasurement> run() {
    const bool ready = piece_.allocated() && into_.allocated();
    TAILRACE_TRY(comm_.agree(
        ready ? Status()
              : Status(Code::out_of_memory,
                       fmt::format("no memory for two buffers of {} bytes", plan_.piece_bytes))));
    fill_random(piece_.bytes(), static_cast<std::uint64_t>(comm_.rank()) + 1);
    std::memset(into_.data(), 1, into_.n_bytes());  // so that no page fault happens during a read
    const auto n_all = static_cast<std::uint64_t>(comm_.n_ranks());
    std::vector<std::uint64_t> counts;
    for (std::uint64_t n = 1; n < n_all; n *= 2) counts.push_back(n);
    counts.push_back(n_all);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double share = static_cast<double>(i + 1) / static_cast<double>(counts.size());
      TAILRACE_TRY(run_sizes(counts[i], plan_.budget_s * share));
    }
    return std::move(found_);
  }

 private:
  /// Measure all sizes that fit, in doublings, until the clock reaches end_s.
  Status run_sizes(std::uint64_t n_ranks, double end_s) {
    const double start_s = now_s();
    double last_s = 0;
    for (std::uint64_t n_bytes = plan_.least_bytes; n_bytes <= plan_.largest_bytes; n_bytes *= 2) {
      const bool first = n_bytes == plan_.least_bytes;
      if (!first && n_bytes * n_ranks > plan_.free_bytes / 2) {
        return left_out(n_ranks, n_bytes, "half of the free space");
      }
      if (!first && now_s() + 2 * last_s > end_s) {
        return left_out(n_ranks, n_bytes, "the time limit");
      }
      const double before_s = now_s();
      const Status done = run_size(n_ranks, n_bytes, start_s + 0.5 * (end_s - start_s));
      if (done.code() == Code::no_space && !first) {
        return left_out(n_ranks, n_bytes, "the storage's space (" + done.message() + ")");
      }
      TAILRACE_TRY(done);
      last_s = now_s() - before_s;
    }
    return Status();
  }

  Status left_out(std::uint64_t n_ranks, std::uint64_t n_bytes, const std::string& limit) {
    found_.remarks.push_back(
        fmt::format("not measured: {} MiB and more per rank on {} rank{}, which exceed {}",
                    n_bytes >> 20, n_ranks, n_ranks == 1 ? "" : "s", limit));
    return Status();
  }

  /// Measure the median of up to kRepeatsMax runs; one is enough after `patience_s`.
  Status run_size(std::uint64_t n_ranks, std::uint64_t n_bytes, double patience_s) {
    std::vector<double> write_s;
    std::vector<double> read_s;
    std::vector<double> sync_s;
    while (write_s.size() < kRepeatsMax && (write_s.empty() || now_s() < patience_s)) {
      TAILRACE_TAKE(Run run, run_once(n_ranks, n_bytes));
      write_s.push_back(run.write_s);
      read_s.push_back(run.read_s);
      sync_s.push_back(run.sync_s);
      progress_(std::min(now_s() / plan_.budget_s, 1.0));
    }
    const auto bytes = static_cast<double>(n_bytes);
    const double all_bytes = bytes * static_cast<double>(n_ranks);
    found_.write.push_back({n_ranks, bytes, all_bytes / median_of(write_s)});
    found_.read.push_back({n_ranks, bytes, all_bytes / median_of(read_s)});
    if (n_ranks == 1) found_.sync_bytes_per_s = bytes / median_of(sync_s);
    return Status();
  }

  Result<Run> run_once(std::uint64_t n_ranks, std::uint64_t n_bytes) {
    ScratchFile file;
    TAILRACE_TRY(file.open(comm_, plan_.folder));
    const auto rank = static_cast<std::uint64_t>(comm_.rank());
    const bool works = rank < n_ranks;
    const std::uint64_t start = rank * n_bytes;
    Storage& storage = file.storage();

    std::array<double, 3> seconds{};
    comm_.barrier();
    LaneClock write_clock;
    Status done;
    if (works) {
      done = for_pieces(start, n_bytes, piece_.n_bytes(), [&](std::uint64_t at, std::uint64_t n) {
        return storage.write_at(at, std::as_const(piece_).bytes().first(n));
      });
      const double written_s = write_clock.now_s();
      if (done.ok()) done = storage.sync();
      seconds[0] = write_clock.now_s();
      seconds[1] = seconds[0] - written_s;
    }
    TAILRACE_TRY(comm_.agree(done));

    file.forget_cached();
    comm_.barrier();
    const LaneClock read_clock;
    if (works) {
      done = for_pieces(start, n_bytes, into_.n_bytes(), [&](std::uint64_t at, std::uint64_t n) {
        return storage.read_at(at, into_.bytes().first(n));
      });
      seconds[2] = read_clock.now_s();
    }
    TAILRACE_TRY(comm_.agree(done));
    comm_.allreduce(seconds, Reduction::max);
    return Run{seconds[0], seconds[1], seconds[2]};
  }

  /// Return the seconds since the start, the same on every rank. Collective.
  double now_s() {
    double now = clock_.now_s();
    comm_.allreduce(std::span<double>(&now, 1), Reduction::max);
    return now;
  }

  Comm& comm_;
  const StoragePlan& plan_;
  const std::function<void(double)>& progress_;
  LaneClock clock_;
  Buffer piece_;
  Buffer into_{plan_.piece_bytes};
  StorageMeasurement found_;
};

}  // namespace

Result<StorageMeasurement> measure_storage(Comm& comm, const StoragePlan& plan,
                                           const std::function<void(double)>& progress) {
  TAILRACE_CHECK(plan.least_bytes > 0 && plan.piece_bytes > 0 && plan.budget_s > 0);
  return StorageBench(comm, plan, progress).run();
}

Result<double> measure_sync_latency(Comm& comm, const std::string& folder, double budget_s) {
  ScratchFile file;
  TAILRACE_TRY(file.open(comm, folder));
  std::vector<double> sync_s;
  Status done;
  if (comm.is_root()) {
    const std::array<std::byte, 4096> block{};
    const LaneClock clock;
    while (done.ok() && sync_s.size() < kSyncsMax && (sync_s.empty() || clock.now_s() < budget_s)) {
      done = file.storage().write_at(block.size() * sync_s.size(), block);
      const double start_s = clock.now_s();
      if (done.ok()) done = file.storage().sync();
      sync_s.push_back(clock.now_s() - start_s);
    }
  }
  TAILRACE_TRY(comm.agree(done));
  double median_s = median_of(std::move(sync_s));  // 0 on the other ranks, which have no values
  comm.allreduce(std::span<double>(&median_s, 1), Reduction::max);
  return median_s;
}

Result<double> measure_claim_latency(Comm& comm) {
  TAILRACE_TAKE(std::unique_ptr<Tail> tail, comm.create_tail(0));
  comm.barrier();
  const LaneClock clock;
  for (std::uint64_t i = 0; i < kClaims; ++i) tail->claim(1U << 20);
  double mean_s = clock.now_s() / static_cast<double>(kClaims);
  comm.allreduce(std::span<double>(&mean_s, 1), Reduction::sum);
  const std::uint64_t end = tail->end();
  TAILRACE_CHECK(end >= kClaims * (1U << 20) * static_cast<std::uint64_t>(comm.n_ranks()));
  return mean_s / comm.n_ranks();
}

// --- messages, copies, numbers
// -----------------------------------------------------------------------

namespace {

constexpr std::array<std::uint64_t, 4> kMessageBytes = {16, 4096, 65536, 1U << 20};
constexpr std::array<std::uint64_t, 2> kReducedBytes = {64, 4096};
constexpr std::array<std::uint64_t, 2> kGatheredBytes = {64, 16384};
constexpr std::uint64_t kGatheredInAll = 4U << 20;
constexpr std::size_t kCallsMax = 200;
constexpr std::size_t kLeastCalls = 5;
constexpr std::size_t kCallsInARow = 8;
constexpr std::uint64_t kCopyBytes = 64U << 20;
constexpr std::uint64_t kCopyChunkBytes = 8U << 20;

Bytes next_message(Comm& comm) {
  while (true) {
    if (std::optional<Message> message = comm.poll()) return std::move(message->payload);
  }
}

/// Return the median seconds of one of several consecutive calls, on the slowest rank. A first call
/// synchronises the ranks, which leave a barrier when their naps end. Every rank makes the same
/// number of calls: rank 0 decides when to stop.
template <class Call>
double median_call_s(Comm& comm, double budget_s, Call&& call) {
  std::vector<double> seconds;
  const LaneClock whole;
  for (std::size_t i = 0; i < kCallsMax; ++i) {
    call();
    const LaneClock clock;
    for (std::size_t in_a_row = 0; in_a_row < kCallsInARow; ++in_a_row) call();
    std::array<double, 2> now = {clock.now_s() / double{kCallsInARow},
                                 comm.is_root() ? whole.now_s() : 0};
    comm.allreduce(now, Reduction::max);
    if (i > 0) seconds.push_back(now[0]);  // The first one warms up.
    if (seconds.size() >= kLeastCalls && now[1] > budget_s) break;
  }
  return std::max(median_of(std::move(seconds)), 1e-9);
}

}  // namespace

MeasuredMessages measure_messages(Comm& comm, double budget_s) {
  MeasuredMessages found;
  if (comm.n_ranks() < 2) return found;
  using Kind = MessagePoint::Kind;
  const double part_s =
      budget_s / double{kMessageBytes.size() + kReducedBytes.size() + kGatheredBytes.size()};
  const auto n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
  const int last = comm.n_ranks() - 1;
  std::vector<double> send_s;
  for (const std::uint64_t n_bytes : kMessageBytes) {
    const Bytes payload(n_bytes, std::byte{1});
    const double there_and_back_s = median_call_s(comm, part_s, [&] {
      if (!comm.is_root() && comm.rank() != last) return;
      if (!comm.is_root()) comm.post({0, next_message(comm)});
      if (comm.is_root()) {
        const LaneClock clock;
        comm.post({last, payload});
        if (n_bytes == kMessageBytes.front()) send_s.push_back(clock.now_s());
        (void)next_message(comm);
      }
      comm.finish_posts();
    });
    found.points.push_back({Kind::message, 2, static_cast<double>(n_bytes), there_and_back_s / 2});
  }
  std::vector<MixedNumber> numbers;
  const auto reduce = [&] { comm.allreduce(std::span<MixedNumber>(numbers)); };
  double last_reduced_s = 0;
  for (const std::uint64_t n_bytes : kReducedBytes) {
    numbers.resize(n_bytes / sizeof(MixedNumber));
    last_reduced_s = median_call_s(comm, part_s, reduce);
    found.points.push_back(
        {Kind::allreduce, n_ranks, static_cast<double>(n_bytes), last_reduced_s});
  }
  // A rank that only sends returns immediately, so a gather's time is measured until all ranks have
  // waited for its end.
  for (const std::uint64_t most_bytes : kGatheredBytes) {
    // Send less on very many ranks, to spare rank 0.
    const std::uint64_t n_bytes =
        std::min(most_bytes, std::max(kGatheredInAll / n_ranks, 2 * kGatheredBytes.front()));
    const Bytes mine(n_bytes);
    const double both_s = median_call_s(comm, part_s, [&] {
      (void)comm.gather(mine, 0);
      reduce();
    });
    found.points.push_back({Kind::gather, n_ranks, static_cast<double>(n_bytes),
                            std::max(both_s - last_reduced_s, 1e-9)});
  }
  found.overhead_s = median_of(std::move(send_s));
  comm.allreduce(std::span<double>(&found.overhead_s, 1), Reduction::max);
  return found;
}

Result<double> measure_copy(Comm& comm) {
  // All ranks share the node's memory.
  const auto n_on_node = static_cast<std::uint64_t>(comm.n_ranks_on_node());
  const std::uint64_t n_bytes = std::max(2 * kCopyBytes / (1 + n_on_node), kCopyBytes / 8) /
                                kCopyChunkBytes * kCopyChunkBytes;
  Buffer from(n_bytes);
  Buffer into(n_bytes);
  const bool ready = from.allocated() && into.allocated();
  TAILRACE_TRY(
      comm.agree(ready ? Status()
                       : Status(Code::out_of_memory,
                                fmt::format("no memory for two buffers of {} bytes", n_bytes))));
  std::memset(from.data(), 1, n_bytes);
  std::vector<double> seconds;
  for (std::size_t i = 0; i <= kLeastCalls; ++i) {
    comm.barrier();
    const double start_s = thread_cpu_s();  // Excludes other work on the node.
    for (std::uint64_t at = 0; at < n_bytes; at += kCopyChunkBytes) {
      std::memcpy(into.data() + at, from.data() + at, kCopyChunkBytes);
    }
    if (i > 0) seconds.push_back(thread_cpu_s() - start_s);  // The first copy allocates the memory.
  }
  double bytes_per_s = static_cast<double>(n_bytes) / std::max(median_of(seconds), 1e-9);
  comm.allreduce(std::span<double>(&bytes_per_s, 1), Reduction::sum);
  return bytes_per_s / comm.n_ranks();
}

double measure_number_merge() {
  constexpr std::size_t n_numbers = 128;
  constexpr std::size_t n_merges = 2000;
  std::vector<double> values(n_numbers, 1);
  RankNumbers numbers;
  numbers.add_all(Reduction::sum, values);
  ByteWriter others;
  numbers.pack(others);
  const double start_s = thread_cpu_s();
  for (std::size_t i = 0; i < n_merges; ++i) {
    ByteReader reader(others.bytes());
    numbers.merge(reader);
  }
  return std::max(thread_cpu_s() - start_s, 1e-9) / double{n_numbers * n_merges};
}

}  // namespace tailrace
