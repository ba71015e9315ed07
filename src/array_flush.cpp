// The story of a flush: all that is staged comes into the file at once.
//
//   agree_on_staged   lengths of unlimited dimensions, and whose values there are   (array_file)
//   prepare_new       chunk shapes, bounds, codecs of variables that are new        (array_prepare)
//   load_places       where an opened file has its chunks                           (array_prepare)
//   settle_chunks     which rank writes which touched chunk                         (array_homes)
//   encode_chunks     pieces travel, chunks are completed, encoded, written         (exec/executor)
//   write_plain       values that are not stored in chunks                          (array_plain)
//   publish           datasets, lengths, chunk index, texts, commit                 (array_publish)
//
// Every stage ends in one agreement. Until publish nothing refers to the flush's bytes, but for
// values that are stored without filters, which are written where the file has them: a crash, or a
// full disk, may leave some of those old and some new. A flush that fails keeps what was staged: it
// can be tried again.
// Cost, besides the data: about ten allreduces, three sparse exchanges of 24 to 40 bytes per
// touched chunk, one gather of 40 bytes per touched chunk to rank 0.

#include <algorithm>
#include <thread>
#include <utility>

#include "array_engine.hpp"
#include "exec/reserve.hpp"
#include "layout/layout.hpp"
#include "write_publish.hpp"

namespace tailrace {

Status NetcdfArrayFile::flush_variables(const std::vector<bool>& staged, bool hold_back,
                                        bool closing) {
  const double start_s = now_s();
  ArrayFlush flush;
  flush.hold_back = hold_back;
  flush.closing = closing;
  for (std::size_t v = 0; v < staged.size(); ++v) {
    if (staged[v]) flush.variables.push_back(v);
    const bool missing = !variables_[v].in_file();
    if (missing && (staged[v] || closing)) flush.created.push_back(v);
  }
  if (flush.variables.empty() && flush.created.empty() && !model_changed_ && in_place_) {
    return Status();
  }
  output_.tail->start_step();
  // Definitions since the last flush have taken space already, which must stay theirs.
  const std::uint64_t start = output_.tail->end();
  const Status written = write_variables(flush);
  const Status published = written.ok() ? publish(flush) : Status();
  if (!written.ok() || !published.ok()) {
    for (const std::size_t v : flush.created) {
      variables_[v].storage = ArrayStorage::undecided;
      variables_[v].field = FieldState();
    }
  }
  if (!written.ok()) {
    output_.tail->reset(start);
    return written;
  }
  if (!published.ok()) {
    broken_ = published.within(
        "the file stays at its last flush, or \"tailrace recover\" completes this one");
    return broken_;
  }
  const std::uint64_t lost_bytes = homes_.keep(*comm_, flush.fields, flush.done.written);
  add_up(flush, lost_bytes, now_s() - start_s);
  forget_staged(flush);
  for (const std::size_t v : flush.chunked) {
    // A place by shape is for a chunk's first version: the file refers to it from now on.
    std::unique_ptr<Layout>& layout = variables_[v].field.layout;
    if (layout->base_from() == BaseFrom::shape) {
      layout = make_claimed_layout(FieldOptions()).value();
    }
  }
  return Status();
}

/// Everything up to the point where the file's metadata changes. Errors are agreed.
Status NetcdfArrayFile::write_variables(ArrayFlush& flush) {
  TAILRACE_TRY(prepare_new(flush));
  TAILRACE_TRY(load_places(flush));
  TAILRACE_TRY(settle_chunks(flush));
  TAILRACE_TRY(encode_chunks(flush));
  TAILRACE_TRY(write_plain(flush));
  if (!options_.file.sync) return Status();
  return comm_->agree(output_.storage->sync());
}

FieldPlan NetcdfArrayFile::plan_of(std::size_t variable, PatchedChunks& patches) const {
  const FieldState& field = variables_[variable].field;
  FieldPlan plan;
  plan.field_index = variable;
  plan.path = field.definition.path;
  plan.dtype = field.definition.dtype;
  plan.grid = field.grid();
  plan.patches = &patches;
  plan.codec = field.codec.get();
  plan.layout = field.layout.get();
  plan.absolute_bound = field.absolute_bound;
  plan.pointwise_bound = field.pointwise_bound;
  plan.fill_value = field.definition.options.fill_value;
  plan.verify = field.verify;
  plan.fall_back_to_raw = field.definition.options.fall_back_to_raw;
  plan.pad_with_fill = field.definition.extendable;
  plan.base_address = field.base_address;
  return plan;
}

/// Find the chunks that are touched, and who writes them.
Status NetcdfArrayFile::settle_chunks(ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.storage != ArrayStorage::chunked) continue;
    variable.field.definition.shape = model_.shape_of(model_.variables[v]);
    const FieldState& field = variable.field;
    flush.chunked.push_back(v);
    flush.patches.push_back(std::make_unique<PatchedChunks>(
        PatchedChunks::Variable{field.definition.path, field.grid(), variable.log.element_bytes(),
                                variable.fill, field.codec.get(), variable.swapped,
                                comm_->n_ranks() == 1},
        variable.log, *output_.storage));
    flush.fields.push_back({v, field.grid(), ChunkNumbers(field.grid(), variable.growing),
                            flush.patches.back()->claims(), variable.growing});
  }
  flush.settled = homes_.settle(*comm_, flush.fields, flush.hold_back);
  if (flush.hold_back) {
    // Holding back must make room, or the next settle() comes as soon as this one.
    std::uint64_t held_bytes = 0;
    for (const ChunkKey& key : flush.settled.held_back) {
      const std::vector<ChunkClaim>& claims = flush.fields[key.field].claims;
      const auto claim = std::lower_bound(
          claims.begin(), claims.end(), key.chunk_index,
          [](const ChunkClaim& a, std::uint64_t index) { return a.chunk_index < index; });
      held_bytes += claim->n_elements * variables_[flush.chunked[key.field]].log.element_bytes();
      held_bytes += flush.patches[key.field]->n_slabs(key.chunk_index) *
                    StagingLog::entry_bytes(flush.fields[key.field].grid.shape.size());
    }
    std::uint64_t too_many = held_bytes > memory_.cap_bytes() / 2 ? 1 : 0;
    // What stays staged is laid aside now, while nothing is written: afterwards a full disk could
    // leave values staged that the file has already, and that others have overwritten since.
    if (too_many == 0 && !stage_rest(flush).ok()) too_many = 1;
    comm_->allreduce(std::span<std::uint64_t>(&too_many, 1), Reduction::max);
    if (too_many != 0) {
      flush.rest.clear();
      flush.settled = homes_.settle(*comm_, flush.fields, false);
    }
  }
  const PatchOwnership& settled = flush.settled;
  for (std::size_t j = 0; j < settled.before.size(); ++j) {
    const ChunkJob& job = settled.ownership.jobs[j];
    flush.patches[job.field]->set_before(job.chunk_index, settled.before[j]);
  }
  return Status();
}

/// By what the variable's chunks have come to so far.
std::vector<JobForecast> NetcdfArrayFile::forecasts_of(const ArrayFlush& flush) const {
  std::vector<JobForecast> forecasts;
  for (const ChunkJob& job : flush.settled.ownership.jobs) {
    const double raw = static_cast<double>(flush.plans[job.field].chunk_bytes());
    const double share = variables_[flush.chunked[job.field]].encoded_share;
    JobForecast forecast;
    forecast.encoded_bytes = raw * share;
    forecast.deviation_bytes = forecast.encoded_bytes / 4;
    forecasts.push_back(forecast);
  }
  return forecasts;
}

Status NetcdfArrayFile::encode_chunks(ArrayFlush& flush) {
  if (flush.chunked.empty()) return Status();
  std::vector<FieldState*> fields;
  bool reserving = false;
  for (const std::size_t v : flush.chunked) {
    fields.push_back(&variables_[v].field);
    reserving = reserving || variables_[v].field.layout->sizes_needed() == SizesNeeded::predicted;
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(options_.file.alignment_bytes, 1);
  reserve_by_shape(*comm_, *output_.tail, alignment, fields);
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    flush.plans.push_back(plan_of(flush.chunked[f], *flush.patches[f]));
  }
  ExecutorSettings settings;
  settings.n_threads = n_threads();
  settings.memory_bytes = options_.file.memory_bytes - memory_.cap_bytes();
  settings.write_buffer_bytes = options_.file.write_buffer_bytes;
  settings.alignment_bytes = alignment;
  if (reserving) {
    settings.reservations =
        reserve_places(*comm_, *output_.tail, flush.plans, flush.settled.ownership.jobs,
                       forecasts_of(flush), alignment);
  }
  const LaneClock clock;
  Executor executor(*comm_, *output_.tail, *output_.storage, flush.plans, flush.settled.ownership,
                    settings, clock);
  return comm_->agree(executor.run(flush.done));
}

/// As a Writer's in mode sync.
std::uint64_t NetcdfArrayFile::n_threads() const {
  if (options_.file.n_threads > 0) return options_.file.n_threads;
  const auto n_ranks = static_cast<unsigned>(comm_->n_ranks_on_node());
  return std::max(std::thread::hardware_concurrency() / n_ranks, 1U);
}

// --- afterwards

void NetcdfArrayFile::add_up(const ArrayFlush& flush, std::uint64_t lost_bytes, double seconds) {
  std::uint64_t counts[7] = {};
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    const FieldTally& tally = flush.done.tallies[f];
    const std::uint64_t raw_bytes = tally.n_chunks * flush.plans[f].chunk_bytes();
    counts[0] += tally.n_chunks;
    counts[1] += flush.patches[f]->n_merged();
    counts[2] += tally.n_raw_chunks;
    counts[3] += raw_bytes;
    counts[4] += tally.encoded_bytes;
    ArrayVariable& variable = variables_[flush.chunked[f]];
    if (raw_bytes > 0) {
      variable.encoded_share =
          static_cast<double>(tally.encoded_bytes) / static_cast<double>(raw_bytes);
    }
  }
  counts[5] = lost_bytes;
  counts[6] = std::exchange(put_bytes_, 0);
  comm_->allreduce(std::span<std::uint64_t>(counts), Reduction::sum);
  double times[3] = {seconds, flush.done.encode_s, flush.done.write_s};
  comm_->allreduce(std::span<double>(times), Reduction::max);
  ++report_.n_flushes;
  report_.staged_bytes += counts[6];
  report_.n_chunks += counts[0];
  report_.n_chunks_merged += counts[1];
  report_.n_raw_chunks += counts[2];
  report_.raw_bytes += counts[3];
  report_.encoded_bytes += counts[4];
  report_.lost_bytes += counts[5];
  report_.flush_s += times[0];
  report_.encode_s += times[1];
  report_.write_s += times[2];
}

/// Drop what is in the file now; what was held back stays.
void NetcdfArrayFile::forget_staged(ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    variables_[v].texts.clear();
    const auto f = std::find(flush.chunked.begin(), flush.chunked.end(), v);
    if (f == flush.chunked.end() || flush.rest.empty()) {
      variables_[v].log.clear();
    } else {
      variables_[v].log =
          std::move(flush.rest[static_cast<std::size_t>(f - flush.chunked.begin())]);
    }
  }
}

/// Stage this rank's part of the chunks that are held back once more, by variable.
Status NetcdfArrayFile::stage_rest(ArrayFlush& flush) {
  for (const std::size_t v : flush.chunked) {
    flush.rest.emplace_back(memory_, variables_[v].log.element_bytes());
  }
  for (const ChunkKey& key : flush.settled.held_back) {
    TAILRACE_TRY(flush.patches[key.field]->copy_staged(key.chunk_index, flush.rest[key.field]));
  }
  return Status();
}

}  // namespace tailrace
