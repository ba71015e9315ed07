// Measurement of codecs, then storage, then latencies; each gets its share of the time.
//
// Invariant: every decision (the next point, whether time is left) depends on numbers that all
// ranks share, because every measurement is collective.

#include "profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <utility>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "exec/field_plan.hpp"
#include "exec/lane_clock.hpp"
#include "measure/machine_identity.hpp"
#include "measure/measure_machine.hpp"
#include "policy/chunk_shape.hpp"
#include "synthetic_nyx.hpp"
#include "trz/base/buffer.hpp"
#include "verbs/input_fields.hpp"
#include "write/write.hpp"

namespace tailrace::cli {
namespace {

// --- data for codecs: a chunk of each field, a different one on each rank

/// One chunk of one field.
struct ProfileChunk {
  std::string field;
  DType dtype = DType::f32;
  Shape shape;
  Buffer values;
  ValueRange range;
};

constexpr std::uint64_t kChunkBytes = 8U << 20;   // the default of repack
constexpr std::uint64_t kLeastBytes = 64U << 10;  // too little to matter
constexpr std::size_t kFieldsMax = 6;

/// Indices of the fields worth measuring, the largest first.
std::vector<std::size_t> chosen_fields(const InputFile& input) {
  const std::vector<StoredDataset>& fields = input.fields();
  const auto bytes_of = [&](std::size_t f) {
    return n_elements(fields[f].shape) * fields[f].value_bytes();
  };
  std::vector<std::size_t> chosen;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const bool fits = is_floating(*fields[f].dtype) && !fields[f].coordinate;
    if (fits && bytes_of(f) >= kLeastBytes) chosen.push_back(f);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](std::size_t a, std::size_t b) { return bytes_of(a) > bytes_of(b); });
  return chosen;
}

/// Complete chunk of a field for this rank.
Box chunk_of_rank(const StoredDataset& field, const Comm& comm) {
  ChunkGrid whole{field.shape,
                  chunk_shape_for(field.shape, field.value_bytes(), kChunkBytes,
                                  {.cut_gcd = field.shape, .largest_box = field.shape})};
  // Ignore partial chunks, so that all ranks make their codecs for the same shape.
  for (std::size_t d = 0; d < whole.shape.size(); ++d) {
    whole.shape[d] -= whole.shape[d] % whole.chunk_shape[d];
  }
  return whole.full_box(static_cast<std::uint64_t>(comm.rank()) % whole.n_chunks());
}

/// Chunks of generated cosmology-like fields, `edge` cells along each dimension.
/// Not collective; each rank generates a different part. @error out_of_memory
Result<std::vector<ProfileChunk>> generated_chunks(const Comm& comm, std::uint64_t edge) {
  const Shape shape(3, edge);
  const std::vector<std::vector<float>> fields =
      make_synthetic_nyx(shape, static_cast<std::uint64_t>(comm.rank()) + 1);
  std::vector<ProfileChunk> chunks;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    ProfileChunk& chunk = chunks.emplace_back();
    chunk.field = kSyntheticNyxNames[f];
    chunk.shape = shape;
    chunk.values = Buffer::copy_of(std::as_bytes(std::span(fields[f])));
    if (!chunk.values.allocated()) {
      return Status(Code::out_of_memory,
                    "not enough memory for the generated field \"" + chunk.field + "\"");
    }
    chunk.range = value_range(chunk.dtype, std::as_const(chunk.values).bytes());
  }
  return chunks;
}

/// One complete chunk of at most about 8 MB from each of the six largest floating-point fields of a
/// file. Coordinates and fields below 64 KiB are skipped; successive ranks read successive chunks.
/// Not collective.
/// @error invalid_argument  the file has no suitable field.
/// @error  like open_input() and InputFile::read()
Result<std::vector<ProfileChunk>> chunks_of_file(const Comm& comm, const std::string& path,
                                                 const std::string& raw_format) {
  TAILRACE_TAKE(std::unique_ptr<InputFile> input, verbs::open_input(path, raw_format));
  std::vector<ProfileChunk> chunks;
  for (const std::size_t f : chosen_fields(*input)) {
    const StoredDataset& field = input->fields()[f];
    const Box box = chunk_of_rank(field, comm);
    ProfileChunk chunk;
    chunk.field = field.path;
    chunk.dtype = *field.dtype;
    chunk.shape = box.count;
    chunk.values = Buffer(box.n_elements() * field.value_bytes());
    if (!chunk.values.allocated()) {
      return Status(Code::out_of_memory,
                    path + ": not enough memory for a chunk of field \"" + field.path + "\"");
    }
    TAILRACE_TRY(input->read(f, box, chunk.values.bytes()).within(path + ": " + field.path));
    chunk.range =
        value_range(chunk.dtype, std::as_const(chunk.values).bytes(), field.missing_value);
    chunks.push_back(std::move(chunk));
    if (chunks.size() == kFieldsMax) break;
  }
  if (chunks.empty()) {
    return Status(Code::invalid_argument,
                  "--input " + path + ": expected a floating-point field of at least 64 KiB");
  }
  return chunks;
}

// --- the measurements

constexpr double kCodecShare = 0.6;  // share of the budget; includes the generation of fields
constexpr double kStorageShare = 0.32;
constexpr double kSyncShare = 0.03;
constexpr double kCommitShare = 0.05;
constexpr double kLeastCodecShare = 0.3;  // minimum, even if generating fields used up the rest
constexpr double kSmallBudgetS = 30;      // below this, chunks of generated fields are small
constexpr double kOnePointS = 0.05;       // time for the repeats of one point, approximately
constexpr std::size_t kRepeatsMax = 9;
constexpr std::size_t kCommitsMax = 5;
// The costs of a step other than encoding and writing are measured in about half a second, whatever
// the budget.
constexpr double kMessagesS = 0.25;
constexpr std::uint64_t kRecords = 1U << 16;     // summed over ranks
constexpr std::uint64_t kFewChunks = 1;          // per rank
constexpr std::uint64_t kManyChunks = 1U << 13;  // summed over ranks, unless ranks are very many
constexpr std::uint64_t kMoreDatasets = 16;
constexpr std::uint64_t kChunkValues = 16;
// Ordered so that the first few already span the bit rates.
constexpr std::array<double, 5> kRelativeBounds = {1e-3, 1e-5, 1e-2, 1e-6, 1e-4};

/// State of one codec while its points are measured.
struct CodecRun {
  const ProfiledCodec* codec = nullptr;
  CodecProfile found;
  double trip_s = 0;  ///< Duration of one repeat, at the last point.
};

class ProfileRun {
 public:
  ProfileRun(Session& session, const ProfilePlan& plan)
      : session_(session), comm_(session.comm), plan_(plan), bar_("profile", session.speaks()) {}

  Result<ProfileOutcome> run() {
    TAILRACE_TRY(describe());
    TAILRACE_TRY(measure_codecs());
    TAILRACE_TRY(measure_files());
    bar_.clear();
    return std::move(outcome_);
  }

 private:
  MachineProfile& profile() { return outcome_.profile; }

  /// Record host, folder and versions, as rank 0 sees them.
  Status describe() {
    TAILRACE_TAKE(FolderFacts folder, session_.agree(find_folder_facts(plan_.folder)));
    std::array<std::uint64_t, 2> facts = {folder.free_bytes, folder.block_bytes};
    comm_.allreduce(facts, Reduction::min);
    free_bytes_ = facts[0];
    profile().block_bytes = facts[1];
    const MachineIdentity here = find_machine_identity(plan_.folder);
    profile().tailrace_version = here.tailrace_version;
    profile().host = here.host;
    profile().processor = here.processor;
    profile().n_cores = here.n_cores;
    profile().file_system = here.file_system;
    profile().folder = plan_.folder;
    profile().stripe_bytes = plan_.stripe_bytes;
    profile().date = utc_now();
    profile().n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
    if (plan_.stripe_bytes == 0 && profile().alignment_bytes() > 1) {
      outcome_.remarks.push_back("the stripe size of " + here.file_system +
                                 " is unknown; pass it by --stripe (see lfs getstripe -S)");
    }
    return Status();
  }

  // --- codecs
  // -------------------------------------------------------------------------------------

  Status load_chunks() {
    if (!plan_.input.empty()) {
      outcome_.data = plan_.input;
      Result<std::vector<ProfileChunk>> chunks =
          chunks_of_file(comm_, plan_.input, plan_.raw_format);
      if (chunks.ok()) chunks_ = std::move(*chunks);
      return session_.agree(chunks.status());
    }
    const std::uint64_t edge = plan_.budget_s < kSmallBudgetS ? 64 : 128;
    outcome_.data = fmt::format("generated cosmology-like fields, chunks of {0}x{0}x{0} f32", edge);
    show(0, "generating fields");
    Result<std::vector<ProfileChunk>> chunks = generated_chunks(comm_, edge);
    if (chunks.ok()) chunks_ = std::move(*chunks);
    return comm_.agree(chunks.status());
  }

  Result<std::unique_ptr<Codec>> make(const ProfiledCodec& codec, const ProfileChunk& chunk,
                                      double relative_bound) const {
    CodecRequest request;
    request.name = codec.name;
    request.settings = codec.settings;
    request.dtype = chunk.dtype;
    request.chunk_shape = chunk.shape;
    request.absolute_bound =
        chunk.range.constant() ? 0 : relative_bound * (chunk.range.greatest - chunk.range.least);
    return make_codec(request, plan_.plugin_path);
  }

  /// Find the available codecs. @error invalid_argument, not_found  unknown codecs.
  Status find_codecs() {
    for (const ProfiledCodec& codec : plan_.codecs) {
      ProfileChunk cube;
      cube.shape = {64, 64, 64};
      cube.range.least = 0;
      cube.range.greatest = 1;
      cube.range.n_finite = 1;
      const Status made = make(codec, cube, 1e-3).status();
      if (made.code() == Code::plugin_missing) {
        outcome_.remarks.push_back("left out " + codec.label + ": " + made.message());
      } else if (!made.ok()) {
        return made.within("--codecs");
      } else {
        runs_.push_back({&codec, {}, 0});
        runs_.back().found.codec = codec.label;
      }
    }
    return runs_.empty() ? Status(Code::plugin_missing,
                                  "--codecs: none of the codecs is installed; see --plugin-path")
                         : Status();
  }

  Status measure_codecs() {
    // Plug-ins may start threads, whose time the thread's clock does not count.
    ::setenv("OMP_NUM_THREADS", "1", 1);
    TAILRACE_TRY(session_.agree(find_codecs()));
    TAILRACE_TRY(load_chunks());
    const double end_s =
        std::max(kCodecShare * plan_.budget_s, now_s() + kLeastCodecShare * plan_.budget_s);
    const std::size_t n_rounds = chunks_.size() * kRelativeBounds.size();
    for (std::size_t round = 0; round < n_rounds; ++round) {
      for (CodecRun& run : runs_) {
        // The first round measures every codec, however long it takes.
        if (round > 0 && now_s() > end_s) break;
        TAILRACE_TRY(measure_point(run, round));
      }
    }
    for (CodecRun& run : runs_) TAILRACE_TRY(fit(run));
    return Status();
  }

  /// Measure one pair of bound and field; the rounds cover every pair once.
  Status measure_point(CodecRun& run, std::size_t round) {
    const std::size_t bound = round % kRelativeBounds.size();
    const ProfileChunk& chunk = chunks_[(bound + round / kRelativeBounds.size()) % chunks_.size()];
    Result<std::unique_ptr<Codec>> codec = make(*run.codec, chunk, kRelativeBounds[bound]);
    // A codec may reject a shape or a type; it then has no point here.
    std::uint64_t n_refused = codec.ok() ? 0 : 1;
    comm_.allreduce(std::span<std::uint64_t>(&n_refused, 1), Reduction::sum);
    if (n_refused > 0) return Status();
    // Lossless codecs do the same at every bound, so measure them once per field.
    if (!(*codec)->lossy() && bound != 0 && !run.found.encode_points.empty()) return Status();
    show(now_s() / plan_.budget_s,
         fmt::format("{} at rel={:g}", run.found.codec, kRelativeBounds[bound]));
    const auto n_repeats = run.trip_s > 0 ? static_cast<std::size_t>(std::clamp(
                                                kOnePointS / run.trip_s, 1.0, double{kRepeatsMax}))
                                          : std::size_t{1};
    Result<MeasuredTrip> trip =
        measure_trip(comm_, **codec, std::as_const(chunk.values).bytes(), n_repeats);
    if (trip.status().code() == Code::codec_failed) {
      outcome_.remarks.push_back(run.found.codec + ": " + trip.status().message());
      return Status();
    }
    if (!trip.ok()) return trip.status();
    run.trip_s = trip->elapsed_s / static_cast<double>(n_repeats + 1);
    run.found.encode_points.push_back(trip->encode);
    run.found.decode_points.push_back(trip->decode);
    return Status();
  }

  Status fit(CodecRun& run) {
    if (run.found.encode_points.empty()) {
      outcome_.remarks.push_back("left out " + run.found.codec +
                                 ": the codec supports none of the fields");
      return Status();
    }
    Result<ThroughputCurve> encode = fit_throughput(run.found.encode_points);
    Result<ThroughputCurve> decode = fit_throughput(run.found.decode_points);
    if (!encode.ok()) return encode.status();
    if (!decode.ok()) return decode.status();
    run.found.encode = *encode;
    run.found.decode = *decode;
    profile().codecs.push_back(std::move(run.found));
    return Status();
  }

  // --- files
  // --------------------------------------------------------------------------------------

  Status measure_files() {
    StoragePlan storage;
    storage.folder = plan_.folder;
    storage.largest_bytes = plan_.largest_bytes;
    storage.least_bytes = std::min(storage.least_bytes, plan_.largest_bytes);
    storage.free_bytes = free_bytes_;
    // Storage gets the time that the codecs did not use.
    storage.budget_s = std::max((kCodecShare + kStorageShare) * plan_.budget_s - now_s(),
                                0.5 * kStorageShare * plan_.budget_s);
    const double start = now_s() / plan_.budget_s;
    const double part = storage.budget_s / plan_.budget_s;
    Result<StorageMeasurement> found = measure_storage(
        comm_, storage, [&](double share) { show(start + part * share, "writing and reading"); });
    if (!found.ok()) return found.status();
    profile().write_points = std::move(found->write);
    profile().read_points = std::move(found->read);
    profile().sync_bytes_per_s = found->sync_bytes_per_s;
    for (std::string& remark : found->remarks) outcome_.remarks.push_back(std::move(remark));
    Result<BandwidthModel> write = BandwidthModel::fit(profile().write_points);
    Result<BandwidthModel> read = BandwidthModel::fit(profile().read_points);
    if (!write.ok()) return write.status();
    if (!read.ok()) return read.status();
    profile().write = std::move(*write);
    profile().read = std::move(*read);

    show(0.95, "syncs and commits");
    TAILRACE_TAKE(profile().sync_latency_s,
                  measure_sync_latency(comm_, plan_.folder, kSyncShare * plan_.budget_s));
    TAILRACE_TAKE(profile().claim_latency_s, measure_claim_latency(comm_));
    TAILRACE_TRY(measure_commits());
    return measure_step_costs();
  }

  // --- costs of a step other than encoding and writing
  // -----------------------------------------------------------------------------------------

  Status measure_step_costs() {
    show(0.98, "steps");
    StepConstants& step = profile().step;
    const MeasuredMessages messages = measure_messages(comm_, kMessagesS);
    if (!messages.points.empty()) {
      TAILRACE_TAKE(step.messages, fit_messages(messages.points, messages.overhead_s));
      profile().message_points = messages.points;
    }
    TAILRACE_TAKE(step.copy_bytes_per_s, measure_copy(comm_));
    step.number_s = measure_number_merge();
    step.record_s = measure_records();
    TAILRACE_TRY(measure_metadata());
    // Use rank 0's numbers on all ranks, because rank 0 saves and the others show them.
    std::array<double, 2> of_root = {comm_.is_root() ? step.number_s : 0,
                                     comm_.is_root() ? step.record_s : 0};
    comm_.allreduce(of_root, Reduction::max);
    step.number_s = of_root[0];
    step.record_s = of_root[1];
    profile().step_measured = true;
    return Status();
  }

  /// CPU seconds of rank 0 to receive all ranks' records, per chunk.
  double measure_records() {
    const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
    const std::vector<WrittenChunk> mine(std::max<std::uint64_t>(kRecords / n_ranks, 1));
    const auto bytes = std::as_bytes(std::span(mine));
    double least_s = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kCommitsMax; ++i) {
      comm_.barrier();
      const double start_s = thread_cpu_s();  // CPU time excludes other load on the node.
      (void)comm_.gather(bytes, 0);
      least_s = std::min(least_s, thread_cpu_s() - start_s);
    }
    return least_s / static_cast<double>(mine.size() * n_ranks);
  }

  /// Measure steps with few and many datasets and chunks, to separate their costs. Only the last
  /// syncs.
  Status measure_metadata() {
    TAILRACE_TAKE(const double one_s, measure_steps(1, kFewChunks, false));
    TAILRACE_TAKE(const double datasets_s, measure_steps(1 + kMoreDatasets, kFewChunks, false));
    const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
    const std::uint64_t n_own = std::max((kManyChunks + n_ranks - 1) / n_ranks, 2 * kFewChunks);
    TAILRACE_TAKE(const double chunks_s, measure_steps(1, n_own, false));
    TAILRACE_TAKE(profile().step.commit_s, measure_steps(1, kFewChunks, true));
    profile().step.dataset_s = std::max(datasets_s - one_s, 0.0) / double{kMoreDatasets};
    const auto n_more = static_cast<double>((n_own - kFewChunks) * n_ranks);
    profile().step.index_s = std::max(chunks_s - one_s, 0.0) / n_more;
    return Status();
  }

  /// Seconds of index and commit on rank 0, in steps of `n_datasets` datasets, each with `n_own`
  /// chunks of each rank.
  Result<double> measure_steps(std::uint64_t n_datasets, std::uint64_t n_own, bool sync) {
    const std::string path = scratch_path();
    Result<double> seconds = 0.0;
    const Status done = comm_.agree(write_steps(path, n_datasets, n_own, sync, seconds));
    if (session_.speaks()) {
      std::error_code error;
      std::filesystem::remove(path, error);
    }
    TAILRACE_TRY(done);
    return seconds;
  }

  Status write_steps(const std::string& path, std::uint64_t n_datasets, std::uint64_t n_own,
                     bool sync, Result<double>& seconds) {
    const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
    FileOptions options;
    options.n_threads = 1;
    options.sync = sync;
    options.field_defaults.codec = plain_codec;
    options.field_defaults.over_time = true;
    options.field_defaults.chunk_shape = Shape{kChunkValues};
    TAILRACE_TAKE(auto writer, Writer::create(session_.mpi.world(), path, options));
    FieldDefinition definition;
    definition.shape = {n_own * kChunkValues * n_ranks};
    definition.options = options.field_defaults;
    const std::vector<float> values(n_own * kChunkValues, 1.0F);
    const std::uint64_t start = values.size() * static_cast<std::uint64_t>(comm_.rank());
    std::vector<std::size_t> fields;
    for (std::uint64_t f = 0; f < n_datasets; ++f) {
      definition.path = fmt::format("/u{}", f);
      const Result<std::size_t> field = writer->define_field(definition);
      if (!field.ok()) break;  // end_step() reports the failure.
      fields.push_back(*field);
    }
    std::vector<double> step_s;
    for (std::size_t i = 0; i <= kCommitsMax; ++i) {
      for (const std::size_t field : fields) {
        (void)writer->put(field, {{start}, {values.size()}}, values.data());
      }
      TAILRACE_TAKE(const StepReport report, writer->end_step());
      if (i > 0) step_s.push_back(report.index_s + report.commit_s);  // Step 0 also creates.
    }
    // CPU work: the minimum, because other processes may use the core. Syncs: the median.
    seconds = sync ? median_of(std::move(step_s)) : *std::ranges::min_element(step_s);
    return writer->close();
  }

  /// Measure the median seconds of a file with almost no data.
  Status measure_commits() {
    std::vector<double> commit_s;
    const double end_s = now_s() + kCommitShare * plan_.budget_s;
    while (commit_s.empty() || (commit_s.size() < kCommitsMax && now_s() < end_s)) {
      const std::string path = scratch_path();
      const double start_s = now_s();
      const Status written = comm_.agree(write_small_file(path));
      if (written.ok()) commit_s.push_back(now_s() - start_s);
      if (session_.speaks()) {
        std::error_code error;
        std::filesystem::remove(path, error);
      }
      TAILRACE_TRY(written);
    }
    profile().commit_s = median_of(std::move(commit_s));
    return Status();
  }

  /// Path that no other run uses; it contains rank 0's process number.
  std::string scratch_path() {
    auto id = static_cast<std::uint64_t>(::getpid());
    if (!comm_.is_root()) id = 0;
    comm_.allreduce(std::span<std::uint64_t>(&id, 1), Reduction::max);
    return fmt::format("{}/tailrace_profile_{}.h5", plan_.folder, id);
  }

  /// Open, write one small field, commit, close: the cost of a file without its data. Collective.
  Status write_small_file(const std::string& path) {
    constexpr std::uint64_t n_values = 256;  // per rank
    FileOptions options;
    options.n_threads = 1;
    options.field_defaults.codec = plain_codec;
    TAILRACE_TAKE(auto writer, Writer::create(session_.mpi.world(), path, options));
    const auto rank = static_cast<std::uint64_t>(comm_.rank());
    FieldDefinition definition;
    definition.path = "/u";
    definition.shape = {n_values * static_cast<std::uint64_t>(comm_.n_ranks())};
    definition.options = options.field_defaults;
    Result<std::size_t> field = writer->define_field(definition);
    const std::vector<float> values(n_values, 1.0F);
    if (field.ok()) {
      const Status put = writer->put(*field, {{rank * n_values}, {n_values}}, values.data());
      if (!put.ok()) writer->note_failure(put);
    } else {
      writer->note_failure(field.status());
    }
    TAILRACE_TRY(writer->end_step().status());
    return writer->close();
  }

  // --- shared
  // -------------------------------------------------------------------------------------

  /// Seconds since the start, the same on every rank. Collective.
  double now_s() {
    double now = clock_.now_s();
    comm_.allreduce(std::span<double>(&now, 1), Reduction::max);
    return now;
  }
  void show(double share, const std::string& what) { bar_.update_share(share, what); }

  Session& session_;
  Comm& comm_;
  const ProfilePlan& plan_;
  ProgressBar bar_;
  LaneClock clock_;
  std::uint64_t free_bytes_ = 0;
  std::vector<ProfileChunk> chunks_;
  std::vector<CodecRun> runs_;
  ProfileOutcome outcome_;
};

}  // namespace

Result<std::vector<ProfiledCodec>> parse_profiled_codecs(const std::string& text) {
  TAILRACE_TAKE(std::vector<KeyValue> entries, split_key_values(text).within("--codecs"));
  std::vector<ProfiledCodec> codecs;
  for (const auto& [key, value] : entries) {
    if (value.empty() || key == "id") {
      const std::string name = value.empty() ? key : key + "=" + value;
      codecs.push_back({name, name, {}});
      continue;
    }
    if (codecs.empty()) {
      return Status(Code::invalid_argument,
                    "--codecs: " + key + "=" + value + " must follow the name of a codec");
    }
    codecs.back().settings.emplace_back(key, value);
    codecs.back().label += "," + key + "=" + value;
  }
  if (codecs.empty())
    return Status(Code::invalid_argument, "--codecs: expected at least one codec");
  return codecs;
}

Result<ProfileOutcome> measure_profile(Session& session, const ProfilePlan& plan) {
  return ProfileRun(session, plan).run();
}

}  // namespace tailrace::cli
