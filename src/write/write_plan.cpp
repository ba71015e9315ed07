// Owners of chunks, forecasts of a rank's jobs and their feedback, and balancing within a node.

#include "write/write_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "core/byte_stream.hpp"
#include "exec/thread_team.hpp"
#include "field/chunk_estimator.hpp"

namespace tailrace {

// --- Ownership.

namespace {

/// A box of a chunk and the rank that holds it.
struct HeldBox {
  int rank = 0;
  Box box;
};

/// Pseudo-random number of a chunk (splitmix64, Steele et al. 2014).
std::uint64_t chunk_mark(ChunkKey key) {
  const auto mix = [](std::uint64_t z) {
    z = z * 0x9E3779B97F4A7C15U + 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  };
  return mix(mix(key.field) + key.chunk_index);
}

/// Find two of the boxes that overlap. Sorts along the first dimension, so that disjoint boxes are
/// compared only with their neighbours.
std::optional<std::pair<HeldBox, HeldBox>> find_overlap(std::vector<HeldBox> boxes) {
  if (boxes.size() < 2) return std::nullopt;
  if (boxes.front().box.rank() == 0) return {{boxes[0], boxes[1]}};  // Boxes of a scalar.
  std::sort(boxes.begin(), boxes.end(),
            [](const HeldBox& a, const HeldBox& b) { return a.box.start[0] < b.box.start[0]; });
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::uint64_t end = boxes[i].box.start[0] + boxes[i].box.count[0];
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].box.start[0] < end; ++j) {
      if (!intersect(boxes[i].box, boxes[j].box).empty()) return {{boxes[i], boxes[j]}};
    }
  }
  return std::nullopt;
}

/// Question for a rank that put the same box twice: it may have put two steps in one.
std::string missed_step_hint(const HeldBox& a, const HeldBox& b) {
  if (a.rank != b.rank || a.box != b.box) return "";
  return "; did rank " + std::to_string(a.rank) + " miss an end_step?";
}

Status overlap_error(const OwnedField& field, const HeldBox& a, const HeldBox& b) {
  if (field.grid.shape.empty()) {
    return Status(Code::bad_coverage,
                  "field \"" + field.path + "\" is a scalar and was put by rank " +
                      std::to_string(a.rank) + " and by rank " + std::to_string(b.rank) +
                      "; exactly one rank may put it" + missed_step_hint(a, b));
  }
  return Status(Code::bad_coverage,
                "field \"" + field.path + "\": boxes overlap: " + box_text(a.box) + " of rank " +
                    std::to_string(a.rank) + " and " + box_text(b.box) + " of rank " +
                    std::to_string(b.rank) + missed_step_hint(a, b));
}

Status hole_error(const OwnedField& field, const Box& chunk, std::uint64_t n_missing) {
  return Status(Code::bad_coverage,
                "field \"" + field.path + "\": " + std::to_string(n_missing) + " of the " +
                    std::to_string(chunk.n_elements()) + " elements of " + box_text(chunk) +
                    " were not put by any rank; put them, or set holes=on to fill them");
}

}  // namespace

/// State of an owner assignment: this rank's parts, its announcements, and the decisions as home.
class OwnerAssignment::Parts {
 public:
  Parts(Comm& comm, std::span<const OwnedField> fields)
      : comm_(comm), fields_(fields), dealing_(comm.n_ranks()) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      dealing_.add(f, fields[f].grid, f);
      collect_parts(f);
    }
    dealing_.for_each_at(comm_.rank(), [&](ChunkKey key) {
      if (!fields_[key.field].allow_holes) expected_sum_ += chunk_mark(key);
    });
    claim(false);
    imbalance_ = sum_ - expected_sum_;
  }

  RankNumbers numbers() {
    RankNumbers numbers;
    numbers.add(Reduction::sum, n_shared_, imbalance_, n_bad_);
    return numbers;
  }
  /// True if no chunk awaits a decision and every chunk has one owner. Needs reduced numbers.
  bool proved() const { return n_shared_ == 0 && imbalance_ == 0 && n_bad_ == 0; }

  /// Let homes decide about shared chunks. If boxes are bad, announce all chunks, so that a home
  /// sees every box of a chunk and can name the culprit: a single part looks like a hole, even in
  /// an overlap. Collective. @returns this rank's failure; sets `waiting` to the numbers to be
  /// reduced next.
  Status go_on(RankNumbers& waiting) {
    const bool blames = n_shared_ == 0;
    if (blames) claim(true);
    const Status judged = ask(blames);
    n_shared_ = 0;
    n_bad_ = judged.ok() || blames ? 0 : 1;
    imbalance_ = blames ? 0 : sum_ - expected_sum_;
    waiting = numbers();
    return blames ? judged : Status();
  }

  const Ownership& so_far() const { return result_; }
  Ownership take() {
    std::sort(result_.jobs.begin(), result_.jobs.end(),
              [&](const ChunkJob& a, const ChunkJob& b) { return position(a) < position(b); });
    return std::move(result_);
  }
  Comm& comm() { return comm_; }

 private:
  /// Claim completely held chunks and prepare to announce the others (all, if `announce_all`).
  void claim(bool announce_all) {
    sum_ = n_shared_ = 0;
    result_ = Ownership();
    shared_.emplace(dealing_);
    for (const auto& [key, parts] : parts_) {
      ChunkShare share{comm_.rank(), 0, {}};
      for (const LocalPart& part : parts) {
        share.n_elements += part.box.n_elements();
        share.slabs.push_back(Slab::of(part.box));
      }
      if (!announce_all && !fields_[key.field].allow_holes && wholly_held(key, share)) {
        sum_ += chunk_mark(key);
        result_.jobs.push_back({key.field, key.chunk_index, parts, {}});
      } else {
        shared_->add({key, nobody, {}, {std::move(share)}});
        ++n_shared_;
      }
    }
  }

  /// Announce this rank's chunks, decide as home, and receive the decisions on this rank's chunks.
  Status ask(bool announced_all) {
    Status judged;
    std::vector<ChunkKey> announced;
    Result<std::vector<ChunkRecord>> decided =
        ask_homes(comm_, std::move(*shared_), [&](ChunkRecord& chunk) {
          const Status fits = judge(chunk);
          if (judged.ok()) judged = fits;
          announced.push_back(chunk.key);
          return true;
        });
    if (announced_all && judged.ok()) judged = find_untouched(announced);
    if (!decided.ok()) return decided.status();
    TAILRACE_TRY(take_decided(*decided));
    return judged;
  }

  void collect_parts(std::size_t f) {
    const OwnedField& field = fields_[f];
    for (std::size_t p = 0; p < field.puts.size(); ++p) {
      const Box& box = field.puts[p].box;
      if (box.empty()) continue;
      for_each_position(field.grid.touched(box), [&](const Shape& coordinates) {
        const std::uint64_t chunk = field.grid.index_of(coordinates);
        parts_[{f, chunk}].push_back({p, intersect(box, field.grid.full_box(chunk))});
      });
    }
  }

  static std::vector<HeldBox> held_boxes(std::span<const ChunkShare> shares) {
    std::vector<HeldBox> boxes;
    for (const ChunkShare& share : shares) {
      for (const Slab& slab : share.slabs) boxes.push_back({share.rank, {slab.start, slab.count}});
    }
    return boxes;
  }

  bool wholly_held(ChunkKey key, const ChunkShare& share) const {
    const Box chunk = fields_[key.field].grid.clipped_box(key.chunk_index);
    if (share.n_elements != chunk.n_elements()) return false;
    return share.slabs.size() == 1 || !find_overlap(held_boxes({&share, 1}));
  }

  /// Choose the chunk's owner, as its home, and check that it is covered.
  Status judge(ChunkRecord& chunk) {
    const OwnedField& field = fields_[chunk.key.field];
    const Box box = field.grid.clipped_box(chunk.key.chunk_index);
    std::uint64_t n_covered = 0;
    for (const ChunkShare& share : chunk.shares) n_covered += share.n_elements;
    chunk.owner = with_most(chunk.shares);
    if (const auto overlap = find_overlap(held_boxes(chunk.shares))) {
      return overlap_error(field, overlap->first, overlap->second);
    }
    if (field.allow_holes) return Status();
    if (n_covered < box.n_elements()) {
      return hole_error(field, box, box.n_elements() - n_covered);
    }
    sum_ += chunk_mark(chunk.key);
    return Status();
  }

  /// Find a hole, as home, once all chunks were announced: a chunk that no rank announced is one.
  Status find_untouched(std::span<const ChunkKey> announced) const {
    Status found;
    dealing_.for_each_at(comm_.rank(), [&](ChunkKey key) {
      const OwnedField& field = fields_[key.field];
      if (!found.ok() || field.allow_holes) return;
      if (std::binary_search(announced.begin(), announced.end(), key)) return;
      const Box chunk = field.grid.clipped_box(key.chunk_index);
      found = hole_error(field, chunk, chunk.n_elements());
    });
    return found;
  }

  /// Turn the decisions of homes into jobs (if this rank owns) and debts (if it does not).
  Status take_decided(std::vector<ChunkRecord>& decided) {
    for (ChunkRecord& chunk : decided) {
      const auto parts = parts_.find(chunk.key);
      if (parts == parts_.end())
        return Status(Code::internal, "received a record for a chunk that this rank does not have");
      if (chunk.owner != comm_.rank()) {
        result_.owed.emplace(chunk.key, parts->second);
        continue;
      }
      result_.jobs.push_back(
          {chunk.key.field, chunk.key.chunk_index, parts->second, std::move(chunk.shares)});
    }
    return Status();
  }

  /// Sort key of a job: by the number of its chunk within a field. Jobs that are pulled from a
  /// source keep the order of their puts, since a source may need it.
  std::tuple<std::size_t, std::size_t, std::uint64_t> position(const ChunkJob& job) const {
    const std::size_t put = job.local.front().put_index;
    const bool pulled = fields_[job.field].puts[put].source != nullptr;
    return {job.field, pulled ? put : 0, job.chunk_index};
  }

  Comm& comm_;
  std::span<const OwnedField> fields_;
  ChunkDealing dealing_;
  std::map<ChunkKey, std::vector<LocalPart>> parts_;
  std::optional<ChunkMail> shared_;  ///< Records to announce.
  std::uint64_t sum_ = 0;            ///< Sum of the marks of claimed chunks.
  std::uint64_t expected_sum_ = 0;   ///< This rank's part of the sum over all existing chunks.
  // This rank's numbers, then those of all ranks:
  std::uint64_t n_shared_ = 0;   ///< Chunks that no home has decided.
  std::uint64_t imbalance_ = 0;  ///< 0 if every chunk is claimed exactly once.
  std::uint64_t n_bad_ = 0;      ///< Ranks whose home chunks are covered badly.
  Ownership result_;
};

OwnerAssignment::OwnerAssignment(Comm& comm, std::span<const OwnedField> fields)
    : parts_(std::make_unique<Parts>(comm, fields)) {}
OwnerAssignment::~OwnerAssignment() = default;

RankNumbers OwnerAssignment::numbers() { return parts_->numbers(); }

Result<Ownership> OwnerAssignment::finish(RankNumbers waiting,
                                          const std::function<Status(const Ownership&)>& check,
                                          RankNumbers along) {
  Status own;
  if (waiting.empty() && !parts_->proved()) own = parts_->go_on(waiting);
  while (true) {
    if (own.ok()) own = check(parts_->so_far());
    along.add_all(waiting);
    TAILRACE_TRY(parts_->comm().agree(own, std::exchange(along, {})));
    if (parts_->proved()) return parts_->take();
    own = parts_->go_on(waiting);
  }
}

std::vector<OwnedField> owned_fields(std::span<FieldState* const> active) {
  std::vector<OwnedField> owned;
  for (const FieldState* field : active) {
    owned.push_back({field->definition.path, field->grid(), field->definition.options.allow_holes,
                     std::span<const PutRecord>(field->puts)});
  }
  return owned;
}

Status check_pulled_chunks(std::span<const OwnedField> fields, const Ownership& ownership) {
  const auto check = [&](std::size_t f, const std::vector<LocalPart>& parts) {
    const bool pulled = std::any_of(parts.begin(), parts.end(), [&](const LocalPart& part) {
      const BoxSource* const source = fields[f].puts[part.put_index].source;
      return source != nullptr && !source->reads_parts();
    });
    if (!pulled) return Status();
    return Status(Code::invalid_argument,
                  "field \"" + fields[f].path + "\": values from a source must be whole chunks");
  };
  for (const ChunkJob& job : ownership.jobs) {
    if (job.local.size() > 1 || !job.remote.empty()) TAILRACE_TRY(check(job.field, job.local));
  }
  for (const auto& [key, parts] : ownership.owed) TAILRACE_TRY(check(key.field, parts));
  return Status();
}

// --- Forecasts.

namespace {

/// Largest number of pulled chunks per field that are sampled, evenly spread over the rank's share.
/// Each sampled chunk is read twice; the others are assumed to be like the mean of these.
constexpr std::size_t kChunksReadMax = 4;
/// Spread of chunks without a sample, as a fraction of their field's mean.
constexpr double kUnseenSpread = 0.25;
/// Widening of the errors that codecs report for their samples: those are fitted on other data
/// (lab/bench/micro/layout_space).
constexpr double kUnprovenWidening = 1.25;
/// Smallest informative chunk: a smaller one is mostly header, and says nothing about samples of
/// larger ones.
constexpr std::uint64_t kInformativeBytes = 1024;
/// Largest deviation of a history that makes a sample unnecessary. If the previous step predicts a
/// chunk to within this fraction (one standard deviation), only every kSampledEvery-th chunk is
/// sampled. These differ by step, so that sudden changes are noticed. Less than SizeHistory assumes
/// before it has seen a change.
constexpr double kQuietDeviation = 0.025;
constexpr std::uint64_t kSampledEvery = 6;
/// Same limit if sizes only make a plan and no places (mode in_situ). A sample would take time that
/// the application waits for.
constexpr double kRoughDeviation = 0.3;
/// Encode throughput in bytes/s of a codec without a profile, until it has been measured.
constexpr double kUnknownThroughput = 200e6;

bool places_are_reserved(std::span<FieldState* const> active) {
  return std::any_of(active.begin(), active.end(), [](const FieldState* field) {
    return field->resolved.layout->sizes_needed() == SizesNeeded::predicted;
  });
}

/// Name of the codec in the profile: "trz,preset=fast".
std::string codec_text(const FieldOptions& options, const Codec& codec) {
  std::string text(codec.name());
  if (options.codec != text) return text;
  for (const auto& [key, value] : options.codec_settings) text += "," + key + "=" + value;
  return text;
}

/// True for the pulled jobs of a field that are read: evenly spread ones.
bool chosen_to_read(std::size_t position, std::size_t n_jobs) {
  const std::size_t stride = (n_jobs + kChunksReadMax - 1) / kChunksReadMax;
  return position % stride == stride / 2;
}

/// Samples the chunks of one rank's jobs, on several threads.
class JobSampler {
 public:
  /// @param roughly  only a plan depends on the sizes.
  JobSampler(std::span<FieldState* const> active, const Ownership& ownership, bool roughly)
      : active_(active),
        ownership_(ownership),
        roughly_(roughly),
        sampled_(ownership.jobs.size()) {}

  Status make_estimators(const std::string& plugin_path);
  /// Sample the jobs in memory, and some of those that must be read, unless their history suffices.
  Status run(std::uint64_t n_threads);
  const std::optional<Estimate>& sampled(std::size_t job) const { return sampled_[job]; }

 private:
  Status sample(std::size_t job_index);
  const LocalPart* pulled_part(const ChunkJob& job) const;
  bool is_forecast(const ChunkJob& job) const;

  std::span<FieldState* const> active_;
  const Ownership& ownership_;
  bool roughly_;
  std::vector<std::unique_ptr<ChunkEstimator>> estimators_;
  std::vector<std::optional<Estimate>> sampled_;  ///< One per job.
};

Status JobSampler::make_estimators(const std::string& plugin_path) {
  for (const FieldState* field : active_) {
    const CodecRequest request = codec_request(field->definition, field->resolved);
    Result<std::unique_ptr<ChunkEstimator>> made =
        ChunkEstimator::make(request, *field->resolved.codec, plugin_path);
    if (!made.ok()) return made.status().within(field->definition.name());
    estimators_.push_back(std::move(*made));
  }
  return Status();
}

const LocalPart* JobSampler::pulled_part(const ChunkJob& job) const {
  const std::vector<PutRecord>& puts = active_[job.field]->puts;
  for (const LocalPart& part : job.local) {
    if (puts[part.put_index].source != nullptr) return &part;
  }
  return nullptr;
}

bool JobSampler::is_forecast(const ChunkJob& job) const {
  const LearnedField& learned = active_[job.field]->learned;
  const std::uint64_t n_steps = active_[job.field]->n_entries + learned.inherited.age;
  if (!roughly_ && (job.chunk_index + n_steps) % kSampledEvery == 0) return false;
  const std::optional<SizeForecast> expected =
      learned.history.forecast(job.chunk_index, std::nullopt);
  const double quiet = roughly_ ? kRoughDeviation : kQuietDeviation;
  return expected && expected->deviation_bytes <= quiet * expected->encoded_bytes;
}

Status JobSampler::sample(std::size_t job_index) {
  const ChunkJob& job = ownership_.jobs[job_index];
  const FieldState& field = *active_[job.field];
  const DType dtype = field.definition.dtype;
  // Values beyond the field's end repeat the last ones and are nearly free.
  const Box held = field.grid().clipped_box(job.chunk_index);
  const std::uint64_t n_bytes = held.n_elements() * dtype_bytes(dtype);
  const std::string where = field.definition.name() + ": chunk " + std::to_string(job.chunk_index);
  std::optional<StridedValues> values;
  Buffer read;
  if (const LocalPart* const part = pulled_part(job)) {
    read = Buffer(part->box.n_elements() * dtype_bytes(dtype));
    if (!read.allocated()) {
      return Status(Code::out_of_memory, where + ": not enough memory to sample it");
    }
    TAILRACE_TRY(field.puts[part->put_index].source->look(part->box, read.bytes()));
    values = strided_part(part->box, read.data(), dtype, part->box);
  } else {
    TAILRACE_TAKE(
        values, values_in_memory(field.grid(), job.chunk_index, dtype, field.puts, job.local, read)
                    .within(where));
  }
  if (!values) return Status();
  TAILRACE_TAKE(sampled_[job_index],
                estimators_[job.field]->estimate(*values, n_bytes).within(where));
  return Status();
}

Status JobSampler::run(std::uint64_t n_threads) {
  std::vector<std::size_t> in_memory;
  std::vector<std::vector<std::size_t>> to_read(active_.size());
  for (std::size_t j = 0; j < ownership_.jobs.size(); ++j) {
    const ChunkJob& job = ownership_.jobs[j];
    if (is_forecast(job)) continue;
    if (pulled_part(job) != nullptr) {
      to_read[job.field].push_back(j);
    } else {
      in_memory.push_back(j);
    }
  }
  // Sources are read on the main thread, like in the executor.
  for (const std::vector<std::size_t>& jobs : to_read) {
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      if (chosen_to_read(k, jobs.size())) TAILRACE_TRY(sample(jobs[k]));
    }
  }
  return run_on_threads(in_memory.size(), n_threads,
                        [&](std::size_t k) { return sample(in_memory[k]); });
}

/// Forecast chunks with neither sample nor history by the mean of their field's other chunks.
void fill_unseen(std::span<FieldState* const> active, const Ownership& ownership,
                 const std::vector<bool>& seen, std::vector<JobForecast>& forecasts) {
  // bytes and number of chunks with a forecast
  std::vector<std::pair<double, double>> sums(active.size());
  for (std::size_t j = 0; j < forecasts.size(); ++j) {
    if (!seen[j]) continue;
    sums[ownership.jobs[j].field].first += forecasts[j].encoded_bytes;
    sums[ownership.jobs[j].field].second += 1;
  }
  for (std::size_t j = 0; j < forecasts.size(); ++j) {
    if (seen[j]) continue;
    const auto [bytes, count] = sums[ownership.jobs[j].field];
    const auto raw = static_cast<double>(active[ownership.jobs[j].field]->chunk_bytes());
    forecasts[j].encoded_bytes = count > 0 ? bytes / count : raw;
    forecasts[j].deviation_bytes = kUnseenSpread * forecasts[j].encoded_bytes;
  }
}

void add_times(std::span<FieldState* const> active, const Ownership& ownership,
               const MachineProfile& profile, std::uint64_t n_ranks,
               std::vector<JobForecast>& forecasts) {
  double rank_bytes = 0;
  for (const JobForecast& forecast : forecasts) rank_bytes += forecast.encoded_bytes;
  const double write_s_per_byte =
      rank_bytes > 0 ? profile.write.seconds(rank_bytes, n_ranks) / rank_bytes : 0;
  std::vector<const CodecProfile*> codecs;
  for (const FieldState* field : active) {
    codecs.push_back(profile.find(codec_text(field->definition.options, *field->resolved.codec)));
  }
  for (std::size_t j = 0; j < forecasts.size(); ++j) {
    const std::size_t f = ownership.jobs[j].field;
    const auto raw = static_cast<double>(active[f]->chunk_bytes());
    JobForecast& forecast = forecasts[j];
    forecast.write_s = forecast.encoded_bytes * write_s_per_byte;
    if (codecs[f] == nullptr) {
      forecast.encode_s = raw / kUnknownThroughput;
    } else {
      forecast.encode_s = codecs[f]->encode.seconds(raw, forecast.encoded_bytes);
      if (active[f]->resolved.verify) {
        forecast.encode_s += codecs[f]->decode.seconds(raw, forecast.encoded_bytes);
      }
    }
    forecast.encode_s *= active[f]->learned.encode_correction;
  }
}

}  // namespace

std::vector<FieldPlan> make_field_plans(std::span<FieldState* const> active) {
  std::vector<FieldPlan> plans;
  for (const FieldState* field : active) {
    plans.push_back(field_plan(field->number, field->definition, field->resolved));
    plans.back().puts = field->puts;
    plans.back().beginnings = field->beginnings.get();
  }
  return plans;
}

bool needs_forecasts(std::span<FieldState* const> active, const FileOptions& options) {
  return options.order != "given" || options.trace || options.mode == StepMode::in_situ ||
         places_are_reserved(active);
}

Status forecast_jobs(std::span<FieldState* const> active, const Ownership& ownership,
                     const FileOptions& options, const MachineProfile& profile,
                     const WorkForce& force, StepPlan& step) {
  const bool roughly = options.mode == StepMode::in_situ && !places_are_reserved(active);
  JobSampler sampler(active, ownership, roughly);
  TAILRACE_TRY(sampler.make_estimators(options.plugin_path));
  TAILRACE_TRY(sampler.run(force.n_threads));
  std::vector<JobForecast>& forecasts = step.forecasts;
  forecasts.assign(ownership.jobs.size(), JobForecast());
  std::vector<bool> seen(forecasts.size());
  for (std::size_t j = 0; j < forecasts.size(); ++j) {
    const ChunkJob& job = ownership.jobs[j];
    const std::optional<Estimate>& sampled = sampler.sampled(j);
    if (sampled) forecasts[j].sampled_bytes = sampled->encoded_bytes;
    const std::optional<SizeForecast> expected = active[job.field]->learned.history.forecast(
        job.chunk_index, forecasts[j].sampled_bytes, sampled ? sampled->spread : 0);
    seen[j] = expected.has_value();
    if (!expected) continue;
    forecasts[j].encoded_bytes = expected->encoded_bytes;
    forecasts[j].deviation_bytes = expected->deviation_bytes;
    if (!active[job.field]->learned.history.has_previous(job.chunk_index)) {
      forecasts[j].deviation_bytes *= kUnprovenWidening;
    }
  }
  fill_unseen(active, ownership, seen, forecasts);
  add_times(active, ownership, profile, force.n_ranks, forecasts);

  std::vector<JobCost> costs;
  costs.reserve(forecasts.size());
  for (const JobForecast& forecast : forecasts) {
    costs.push_back({forecast.encode_s, forecast.write_s});
  }
  const Result<OrderRule> rule = parse_order(options.order);
  if (!rule.ok()) return rule.status();
  step.order = order_jobs(costs, *rule, force.n_threads);
  step.timeline = plan_timeline(costs, step.order, force.n_threads);
  return Status();
}

std::vector<ForecastSums> learn_sizes(std::span<FieldState* const> active,
                                      const Ownership& ownership, const StepPlan& step,
                                      std::span<const WrittenChunk> written) {
  std::map<ChunkKey, std::size_t> job_of;
  for (std::size_t j = 0; j < step.forecasts.size(); ++j) {
    job_of[{ownership.jobs[j].field, ownership.jobs[j].chunk_index}] = j;
  }
  std::vector<ForecastSums> sums(active.size());
  for (const WrittenChunk& chunk : written) {
    const auto job = job_of.find({chunk.field, chunk.chunk_index});
    if (job == job_of.end()) continue;
    const JobForecast& forecast = step.forecasts[job->second];
    const bool informative = chunk.encoded_bytes >= kInformativeBytes;
    active[chunk.field]->learned.history.record(chunk.chunk_index,
                                                informative ? forecast.sampled_bytes : std::nullopt,
                                                chunk.encoded_bytes);
    const auto encoded = static_cast<double>(chunk.encoded_bytes);
    sums[chunk.field].predicted_bytes += forecast.encoded_bytes;
    sums[chunk.field].size_errors += std::abs(forecast.encoded_bytes - encoded) / encoded;
  }
  for (FieldState* field : active) field->learned.history.end_batch();
  return sums;
}

// --- Space at the file's end, requested ahead.

namespace {

bool claims(const FieldPlan& field) { return field.layout->base_from() == BaseFrom::claim; }

/// Bytes that this rank puts. Not those of its chunks: chunks that gather steps may be mostly
/// empty.
double put_bytes(const FieldPlan& field) {
  double n_elements = 0;
  for (const PutRecord& put : field.puts) n_elements += static_cast<double>(put.box.n_elements());
  return n_elements * static_cast<double>(field.element_bytes());
}

}  // namespace

std::uint64_t bytes_to_claim(std::span<FieldState* const> active, const Ownership& ownership,
                             const StepPlan& step) {
  double n_bytes = 0;
  if (!step.forecasts.empty()) {
    for (std::size_t j = 0; j < ownership.jobs.size(); ++j) {
      const JobForecast& forecast = step.forecasts[j];
      const bool known = claims(step.fields[ownership.jobs[j].field]) && !forecast.sampled_bytes;
      if (known) n_bytes += std::max(forecast.encoded_bytes, 0.0);
    }
    return static_cast<std::uint64_t>(n_bytes);
  }
  for (std::size_t f = 0; f < active.size(); ++f) {
    const ClaimedSpace& last = active[f]->learned.claimed;
    if (!claims(step.fields[f]) || last.put_bytes == 0) continue;
    // Limited to the values: a field of a few bytes predicts little.
    const auto taken = static_cast<double>(std::min(last.encoded_bytes, last.put_bytes));
    n_bytes += put_bytes(step.fields[f]) * taken / static_cast<double>(last.put_bytes);
  }
  return static_cast<std::uint64_t>(n_bytes);
}

void learn_claims(std::span<FieldState* const> active, const StepPlan& step,
                  std::span<const WrittenChunk> written) {
  for (std::size_t f = 0; f < active.size(); ++f) {
    active[f]->learned.claimed = {static_cast<std::uint64_t>(put_bytes(step.fields[f])), 0};
  }
  for (const WrittenChunk& chunk : written) {
    active[chunk.field]->learned.claimed.encoded_bytes += chunk.encoded_bytes;
  }
}

// --- Balancing: exchange the loads of a node among its ranks.

namespace {

/// Return this rank's jobs that may move, in the order of their writes.
std::vector<std::size_t> movable_jobs(const Ownership& ownership, const StepPlan& plan) {
  std::vector<std::size_t> order = plan.write_order;
  if (order.empty()) {
    order.resize(ownership.jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  std::erase_if(order, [&](std::size_t job) {
    return plan.fields[ownership.jobs[job].field].layout->arena_goal() != nullptr;
  });
  return order;
}

}  // namespace

std::vector<int> balance_step(Comm& comm, const SharedWrites& shared, BalanceRule rule,
                              const Ownership& ownership, const StepPlan& plan) {
  const std::vector<std::size_t> jobs = movable_jobs(ownership, plan);
  std::vector<std::vector<double>> write_s(static_cast<std::size_t>(shared.n_ranks_on_node()));
  const auto here = static_cast<std::size_t>(shared.rank_on_node());
  ByteWriter writer;
  for (const std::size_t job : jobs) {
    write_s[here].push_back(plan.forecasts[job].write_s);
    writer.add(plan.forecasts[job].write_s);
  }
  const Bytes payload = writer.take();
  std::vector<Message> outgoing;
  std::map<int, std::size_t> node_rank_of;
  for (std::size_t r = 0; r < write_s.size(); ++r) {
    const int peer = shared.rank_in_comm(static_cast<int>(r));
    node_rank_of[peer] = r;
    if (r != here) outgoing.push_back({peer, payload});
  }
  for (const Message& message : comm.exchange(std::move(outgoing))) {
    std::vector<double>& loads = write_s[node_rank_of.at(message.peer)];
    for (ByteReader reader(message.payload); !reader.at_end();) {
      loads.push_back(reader.take<double>());
    }
  }
  std::vector<int> writers;
  for (const MovedWrite& move : balance_writes(write_s, rule)) {
    if (move.from_rank != here) continue;
    writers.resize(ownership.jobs.size(), -1);
    writers[jobs[move.position]] = static_cast<int>(move.to_rank);
  }
  return writers;
}

}  // namespace tailrace
