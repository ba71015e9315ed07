// A flush, stage by stage: all staged values are written into the file together.
//
//  agree_on_staged   lengths of unlimited dimensions; which variables are staged   (array_file)
//  prepare_new       chunk shapes, bounds, codecs of new variables. One that cannot be stored is
//                    left out: the flush returns its error, and writes all others.
//  load_places       stored chunks of an opened file                               (array_file)
//  find_chunks       owner of each touched chunk               (array_patches, exec/chunk_homes)
//  encode_chunks     pieces travel; chunks are completed, encoded, written       (exec/executor)
//  write_plain       values of large variables that are not stored in chunks
//  publish           datasets, lengths, chunk index, texts, commit
//
// Modes async and in_situ, where the call permits it, use another order (hand_over(),
// complete_flight()). write_plain comes before encode_chunks, which only hands over the chunks.
// publish runs in the next collective call.
//
// Every stage ends in one agreement; a stage without work on any rank makes none. Until publish,
// nothing refers to the flush's bytes. Exception: large unfiltered variables are overwritten in
// place, so a crash or a full disk may leave some of their values old and some new. Small ones
// change with the commit, under its journal. A failed flush keeps the staged values and can be
// retried. Cost, in addition to the data: see the stages. A flush of definitions only costs one
// broadcast. Chunks cost about ten reductions or broadcasts, and three sparse exchanges and one
// gather of about 40 bytes per touched chunk.

#include "array/array_file.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "array/staged_parts.hpp"
#include "core/byte_order.hpp"
#include "core/byte_stream.hpp"
#include "core/fill_values.hpp"
#include "describe/input_bytes.hpp"
#include "exec/placer.hpp"
#include "exec/thread_team.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_values.hpp"
#include "layout/layout.hpp"
#include "output/publish_fields.hpp"

namespace tailrace {

Status ArrayEngine::flush_variables(const std::vector<bool>& staged, bool hold_back, bool closing,
                                    FlushMode mode) {
  const bool concurrent = mode == FlushMode::concurrent || mode == FlushMode::define_concurrent;
  const bool defining = mode == FlushMode::define || mode == FlushMode::define_concurrent;
  if (concurrent && options_.file.mode != StepMode::sync) {
    std::unique_ptr<ArrayFlush> flight;
    TAILRACE_TRY(comm_->agree(local_part([&] {
      flight = std::make_unique<ArrayFlush>();
      flight->closing = closing;
      flight->defining = defining;
      flight->start_s = now_s();
      list_variables(*flight, staged);
      return Status();
    })));
    if (can_hand_over(*flight)) return hand_over(std::move(flight));
  }
  ArrayFlush flush;
  flush.hold_back = hold_back;
  flush.closing = closing;
  flush.defining = defining;
  flush.start_s = now_s();
  list_variables(flush, staged);
  if (flush.variables.empty() && flush.created.empty() && !model_changed_ && output_.in_place()) {
    return Status();
  }
  output_.tail().start_step();
  const std::uint64_t start = end_before_flush();
  const Status written = write_variables(flush);
  if (written.ok()) {
    const bool older = closing && !flush.refused.ok() && output_.keep_older_file();
    TAILRACE_TRY(finish_flush(flush));
    return older ? Status(flush.refused.code(),
                          flush.refused.message() + "; \"" + path_ +
                              "\" is unchanged, and all other variables are in \"" +
                              output_.temporary_path() + "\"")
                 : flush.refused;
  }
  forget_decisions(flush);
  output_.hand_back(start);
  return written;
}

/// Return the end of the file, which a failed flush restores. Definitions since the last flush have
/// claimed space before it. Only rank 0's value counts (Output::hand_back), and no rank claims
/// before it has met rank 0 again. Not collective.
std::uint64_t ArrayEngine::end_before_flush() {
  return comm_->is_root() ? output_.tail().end_at_root() : 0;
}

void ArrayEngine::list_variables(ArrayFlush& flush, const std::vector<bool>& staged) const {
  std::vector<bool> created(staged.size(), false);
  if (flush.defining || flush.closing) created = definable(flush.closing);
  for (std::size_t v = 0; v < staged.size(); ++v) {
    if (staged[v]) flush.variables.push_back(v);
    if (!variables_[v].in_file() && (staged[v] || created[v])) flush.created.push_back(v);
  }
}

/// Undo the decisions of a failed flush; the next flush decides again.
void ArrayEngine::forget_decisions(const ArrayFlush& flush) {
  for (const std::size_t v : flush.created) {
    variables_[v].storage = ArrayStorage::undecided;
    variables_[v].definition = FieldDefinition();
    variables_[v].resolved = ResolvedField();
    variables_[v].address = 0;  // The place has been returned and may be reused.
  }
}

/// Publish the written chunks in the file's metadata and drop their staged values. Errors are
/// agreed.
Status ArrayEngine::finish_flush(ArrayFlush& flush) {
  const Status published = publish(flush);
  if (!published.ok()) {
    forget_decisions(flush);
    return output_.break_off(
        published, "the file stays at its last flush, or \"tailrace recover\" completes this one");
  }
  const Result<std::uint64_t> lost_bytes =
      flush.chunked.empty() ? Result<std::uint64_t>(std::uint64_t{0})
                            : places_.keep(*comm_, flush.fields, flush.done.written);
  if (const Status kept = add_up(flush, lost_bytes); !kept.ok()) {
    return output_.break_off(kept, "the file stays at this flush");
  }
  for (const WrittenChunk& chunk : flush.done.written) {
    flush.patches[static_cast<std::size_t>(chunk.field)]->placed(chunk.chunk_index, chunk.address);
  }
  forget_staged(flush);
  for (const std::size_t v : flush.chunked) {
    // A place by shape serves a chunk's first version only, since the file refers to it now.
    std::unique_ptr<Layout>& layout = variables_[v].resolved.layout;
    if (layout->base_from() == BaseFrom::shape) {
      layout = make_layout("claimed").value();
    }
  }
  return Status();
}

/// Run the stages before the file's metadata changes. Errors are agreed.
Status ArrayEngine::write_variables(ArrayFlush& flush) {
  if (flush.variables.empty() && flush.created.empty()) return Status();
  TAILRACE_TRY(prepare_new(flush));
  TAILRACE_TRY(load_places(flush));
  TAILRACE_TRY(find_chunks(flush));
  TAILRACE_TRY(encode_chunks(flush));
  TAILRACE_TRY(write_plain(flush));
  Status mine = local_part([&] { return pack(flush); });
  // Other nodes may complete these chunks in a later flush.
  if (mine.ok() && syncs()) mine = output_.storage().sync();
  TAILRACE_TRY(comm_->agree(mine));
  output_.see_other_nodes();  // Ranks may read before they flush again.
  return Status();
}

void ArrayEngine::list_fresh(ArrayFlush& flush) const {
  for (const WrittenChunk& chunk : flush.done.written) {
    const PatchedChunks& patches = *flush.patches[static_cast<std::size_t>(chunk.field)];
    // A chunk that stays in place is in the index already.
    if (!patches.stays_in_place(chunk.chunk_index)) flush.fresh.push_back(chunk);
  }
}

/// Collect this rank's data for rank 0. This needs memory, so it comes before the last agreement.
Status ArrayEngine::pack(ArrayFlush& flush) const {
  list_fresh(flush);
  flush.plain = pack_plain(flush);
  return Status();
}

FieldPlan ArrayEngine::plan_of(std::size_t variable, PatchedChunks& patches) const {
  FieldPlan plan =
      field_plan(variable, variables_[variable].definition, variables_[variable].resolved);
  plan.patches = &patches;
  return plan;
}

Status ArrayEngine::assign_owners(ArrayFlush& flush, const Status& mine, bool hold_back) {
  Result<PatchOwnership> assigned = places_.assign_owners(*comm_, flush.fields, hold_back);
  if (assigned.ok()) flush.assigned = std::move(*assigned);
  return comm_->agree(mine.ok() ? assigned.status() : mine);
}

namespace {

/// True if a variable's codec stores its fill value exactly.
bool fill_is_exact(const ArrayVariable& variable) {
  const DType dtype = variable.definition.dtype;
  if (!is_floating(dtype) || variable.fill.size() != dtype_bytes(dtype)) return false;
  const ModelType type = dtype == DType::f32 ? ModelType::f32 : ModelType::f64;
  return variable.resolved.codec->keeps_value(element_number(type, variable.fill));
}

}  // namespace

/// Find the touched chunks and their owners.
Status ArrayEngine::find_chunks(ArrayFlush& flush) {
  output_.see_other_nodes();
  Status mine;
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.storage != ArrayStorage::chunked) continue;
    variable.definition.shape = shape_of(v);
    const ChunkGrid grid = variable.grid();
    flush.chunked.push_back(v);
    flush.fields.push_back({v, grid, {}, variable.growing});
    if (!mine.ok()) continue;
    mine = local_part([&] {
      flush.patches.push_back(std::make_unique<PatchedChunks>(
          PatchedChunks::Variable{variable.definition.path, grid, variable.log.element_bytes(),
                                  variable.fill, variable.resolved.codec.get(), variable.swapped,
                                  comm_->n_ranks() == 1, v, variable.growing, &originals_,
                                  fill_is_exact(variable),
                                  goes_with_commit(v) ? committed_shape_of(v) : Shape()},
          variable.log, output_.storage()));
      flush.fields.back().claims = flush.patches.back()->claims();
      return Status();
    });
  }
  if (flush.chunked.empty()) return Status();
  TAILRACE_TRY(assign_owners(flush, mine, flush.hold_back));
  if (flush.hold_back) {
    // Holding back must free memory; otherwise the next end_collective_put() flushes again
    // immediately.
    std::uint64_t held_bytes = 0;
    for (const ChunkKey& key : flush.assigned.held_back) {
      const std::vector<ChunkClaim>& claims = flush.fields[key.field].claims;
      const auto claim =
          std::ranges::lower_bound(claims, key.chunk_index, {}, &ChunkClaim::chunk_index);
      held_bytes += claim->n_elements * variables_[flush.chunked[key.field]].log.element_bytes();
      held_bytes += flush.patches[key.field]->entry_bytes(key.chunk_index);
    }
    std::uint64_t too_many = held_bytes > memory_.cap_bytes() / 2 ? 1 : 0;
    // Copy the held-back values now, before anything is written. Later, a full disk could leave
    // values staged that are already in the file, and that others have overwritten since.
    if (too_many == 0 && !local_part([&] { return stage_rest(flush); }).ok()) too_many = 1;
    comm_->allreduce(std::span<std::uint64_t>(&too_many, 1), Reduction::max);
    if (too_many != 0) {
      flush.rest.clear();
      TAILRACE_TRY(assign_owners(flush, Status(), false));
    }
  }
  const PatchOwnership& assigned = flush.assigned;
  for (std::size_t j = 0; j < assigned.before.size(); ++j) {
    const ChunkJob& job = assigned.ownership.jobs[j];
    flush.patches[job.field]->set_before(job.chunk_index, assigned.before[j]);
  }
  return Status();
}

/// Forecast encoded sizes from the variable's earlier chunks.
std::vector<JobForecast> ArrayEngine::forecasts_of(const ArrayFlush& flush) const {
  std::vector<JobForecast> forecasts;
  for (const ChunkJob& job : flush.assigned.ownership.jobs) {
    const double raw = static_cast<double>(flush.plans[job.field].chunk_bytes());
    const double share = variables_[flush.chunked[job.field]].encoded_share;
    JobForecast forecast;
    forecast.encoded_bytes = raw * share;
    forecast.deviation_bytes = forecast.encoded_bytes / 4;
    forecasts.push_back(forecast);
  }
  return forecasts;
}

/// Share of memory= for the originals of incomplete chunks.
constexpr std::uint64_t kOriginalsPerMemory = 8;

/// Bytes that the originals of incomplete chunks may take out of `memory_bytes`, which are for
/// encoding: nothing if a chunk then could not be encoded. Not collective.
std::uint64_t ArrayEngine::room_for_originals(const ArrayFlush& flush,
                                              std::uint64_t memory_bytes) const {
  std::uint64_t room = originals_.held_bytes();
  std::uint64_t needed = 0;
  for (const FieldPlan& plan : flush.plans) {
    if (plan.codec->lossy()) room = options_.file.memory_bytes / kOriginalsPerMemory;
    needed = std::max(needed, encode_memory_bytes(plan));
  }
  return needed + room <= memory_bytes ? room : 0;
}

/// Prepare the plans, the reserved places, and the file's threads. Collective.
ExecutorSettings ArrayEngine::prepare_encoding(ArrayFlush& flush) {
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    flush.plans.push_back(plan_of(flush.chunked[f], *flush.patches[f]));
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(options_.file.alignment_bytes, 1);
  reserve_by_shape(*comm_, output_.tail(), alignment, flush.plans);
  ExecutorSettings settings;
  settings.memory_bytes = options_.file.memory_bytes - memory_.cap_bytes();
  const std::uint64_t room = room_for_originals(flush, settings.memory_bytes);
  originals_.start_flush(room);
  settings.memory_bytes -= room;
  settings.write_buffer_bytes = options_.file.write_buffer_bytes;
  settings.alignment_bytes = alignment;
  if (std::any_of(flush.plans.begin(), flush.plans.end(), reserves)) {
    settings.reservations =
        reserve_places(*comm_, output_.tail(), flush.plans, flush.assigned.ownership.jobs,
                       forecasts_of(flush), alignment);
  }
  if (lane_stock_ == nullptr) {
    const bool concurrently = options_.file.mode != StepMode::sync;
    lane_stock_ = std::make_unique<LaneStock>(
        n_threads(), concurrently ? ThreadPriority::waiting : ThreadPriority::equal,
        options_.file.mode == StepMode::in_situ ? find_idle_waits() : nullptr);
  }
  return settings;
}

Status ArrayEngine::encode_chunks(ArrayFlush& flush) {
  if (flush.chunked.empty()) return Status();
  const ExecutorSettings settings = prepare_encoding(flush);
  Executor executor(*comm_, output_.tail(), output_.storage(), flush.plans,
                    flush.assigned.ownership, settings, *lane_stock_, flush.clock);
  return comm_->agree(executor.run(flush.done));
}

/// Number of encode threads, like a Writer's.
std::uint64_t ArrayEngine::n_threads() const {
  if (options_.file.mode == StepMode::in_situ) return options_.file.n_threads;
  return threads_of_each(options_.file.n_threads, *comm_);
}

// --- afterwards

/// Add a flush to the report, and agree on the failure of its last stage. Collective: one
/// agreement; nothing if the flush had no values.
Status ArrayEngine::add_up(const ArrayFlush& flush, const Result<std::uint64_t>& lost_bytes) {
  ArrayFileReport now;
  now.n_flushes = 1;
  const auto add = [&] {
    array_report_fields([](const char*, auto& sum, auto more) { sum += more; }, report_, now);
  };
  if (flush.variables.empty()) {
    add();
    return Status();
  }
  std::vector<std::uint64_t> n_chunks(flush.chunked.size());
  std::vector<std::uint64_t> n_raw(flush.chunked.size());
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    n_chunks[f] = flush.done.tallies[f].n_chunks;
    n_raw[f] = flush.done.tallies[f].n_raw_chunks;
    const FieldTally& tally = flush.done.tallies[f];
    const std::uint64_t raw_bytes = tally.n_chunks * flush.plans[f].chunk_bytes();
    now.n_chunks += tally.n_chunks;
    now.n_chunks_merged += flush.patches[f]->n_merged();
    now.n_raw_chunks += tally.n_raw_chunks;
    now.raw_bytes += raw_bytes;
    now.encoded_bytes += tally.encoded_bytes;
    ArrayVariable& variable = variables_[flush.chunked[f]];
    if (raw_bytes > 0) {
      variable.encoded_share =
          static_cast<double>(tally.encoded_bytes) / static_cast<double>(raw_bytes);
    }
  }
  now.lost_bytes = lost_bytes.ok() ? *lost_bytes : 0;
  now.staged_bytes = flush.handed_over ? flush.staged_bytes : std::exchange(put_bytes_, 0);
  now.flush_s = now_s() - flush.start_s;
  if (flush.handed_over) {
    now.flush_s -= flush.completing_s - flush.handed_s;
    const double end_s = flush.lanes_s + flush.done.makespan_s + flush.done.sync_s;
    const double hidden_s = std::min(end_s, flush.completing_s) - flush.handed_s;
    now.hidden_s = flush.done.n_writes > 0 ? std::max(hidden_s, 0.0) : 0;
  }
  now.encode_s = flush.done.encode_s;
  now.write_s = flush.done.write_s;
  now.n_chunks_in_waits = flush.done.n_in_waits;
  RankNumbers numbers;
  numbers.add(Reduction::sum, now.staged_bytes, now.n_chunks, now.n_chunks_merged, now.n_raw_chunks,
              now.n_chunks_in_waits, now.raw_bytes, now.encoded_bytes, now.lost_bytes);
  numbers.add(Reduction::max, now.flush_s, now.encode_s, now.write_s, now.hidden_s);
  numbers.add_all(Reduction::sum, n_chunks);
  numbers.add_all(Reduction::sum, n_raw);
  TAILRACE_TRY(comm_->agree(lost_bytes.status(), numbers));
  add();
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    variables_[flush.chunked[f]].n_chunks_written += n_chunks[f];
    variables_[flush.chunked[f]].n_chunks_raw += n_raw[f];
  }
  return Status();
}

/// Drop the flushed values; keep those held back, and those put since.
void ArrayEngine::forget_staged(ArrayFlush& flush) {
  if (flush.handed_over) return flush.taken.clear();
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

/// Copy this rank's part of the held-back chunks into separate logs, by variable.
Status ArrayEngine::stage_rest(ArrayFlush& flush) {
  for (const std::size_t v : flush.chunked) {
    flush.rest.emplace_back(memory_, variables_[v].log.element_bytes());
  }
  for (const ChunkKey& key : flush.assigned.held_back) {
    TAILRACE_TRY(flush.patches[key.field]->copy_staged(key.chunk_index, flush.rest[key.field]));
  }
  return Status();
}

// --- Values that are not stored in chunks: each rank writes its part of contiguous variables in
// place, and rank 0 writes those that only HDF5 can write.

namespace {

constexpr std::uint64_t kPieceBytes = 4U << 20;
/// Size of the largest unfiltered variable whose values change under the journal. Rank 0 holds its
/// values twice. Syncing a journal of this size takes about as long as syncing a few bytes.
constexpr std::uint64_t kCommittedBytesMax = 64U << 10;
constexpr std::uint64_t kAlignment = 8;  // lets a reader map the values in place

/// Fill elements [first, end), counted from `address`, with `element`.
Status write_fill(Storage& storage, std::uint64_t address, std::uint64_t first, std::uint64_t end,
                  const std::vector<std::byte>& element) {
  const std::uint64_t most = std::min<std::uint64_t>(kPieceBytes / element.size(), end - first);
  std::vector<std::byte> piece(most * element.size());
  fill_values(piece, element);
  while (first < end) {
    const std::uint64_t n = std::min(most, end - first);
    TAILRACE_TRY(storage.write_at(address + first * element.size(),
                                  std::span(piece).first(n * element.size())));
    first += n;
  }
  return Status();
}

}  // namespace

bool ArrayEngine::goes_with_commit(std::size_t v) const {
  return n_elements(shape_of(v)) <= kCommittedBytesMax / variables_[v].log.element_bytes();
}

bool ArrayEngine::goes_to_root(const ArrayFlush& flush, std::size_t v) const {
  if (variables_[v].storage == ArrayStorage::by_hdf5) return true;
  if (variables_[v].storage != ArrayStorage::contiguous || !goes_with_commit(v)) return false;
  return !std::binary_search(flush.created.begin(), flush.created.end(), v);
}

/// Allocate contiguous variables that are created, and write their fill values.
/// Collective: one reduction for all of them. @returns this rank's failure.
Status ArrayEngine::place_contiguous(const ArrayFlush& flush, bool& placed) {
  std::vector<std::size_t> created;
  const auto staged = [&](std::size_t v) {
    return std::binary_search(flush.variables.begin(), flush.variables.end(), v);
  };
  for (const std::size_t v : flush.created) {
    const ArrayVariable& variable = variables_[v];
    // On close, a variable without values needs no allocation.
    const bool plain =
        variable.storage == ArrayStorage::contiguous && (staged(v) || flush.defining);
    if (plain && n_elements(variable.definition.shape) > 0) created.push_back(v);
  }
  if (created.empty()) return Status();
  std::vector<std::uint64_t> places;
  std::uint64_t all_bytes = kAlignment - 1;
  for (const std::size_t v : created) {
    const ArrayVariable& variable = variables_[v];
    places.push_back(all_bytes);
    const std::uint64_t n_bytes =
        n_elements(variable.definition.shape) * variable.log.element_bytes();
    all_bytes += (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::uint64_t first = comm_->is_root() ? output_.tail().claim(all_bytes) : 0;
  comm_->allreduce(std::span<std::uint64_t>(&first, 1), Reduction::max);
  const auto rank = static_cast<std::uint64_t>(comm_->rank());
  const auto n_ranks = static_cast<std::uint64_t>(comm_->n_ranks());
  placed = true;
  return local_part([&] {
    for (std::size_t i = 0; i < created.size(); ++i) {
      ArrayVariable& variable = variables_[created[i]];
      variable.address = (first + places[i]) / kAlignment * kAlignment;
      if (variable.definition.shape.empty() && staged(created[i])) continue;  // All of it is put.
      const std::uint64_t n = n_elements(variable.definition.shape);
      const std::uint64_t share = (n + n_ranks - 1) / n_ranks;
      TAILRACE_TRY(write_fill(output_.storage(), variable.address, std::min(rank * share, n),
                              std::min((rank + 1) * share, n), variable.fill));
    }
    return Status();
  });
}

/// Write the values of contiguous variables, except those that go to rank 0. Collective. Cost:
/// nothing without such values; else a reduction for new variables, and an agreement for each phase
/// of puts and one more.
Status ArrayEngine::write_plain(ArrayFlush& flush) {
  bool any = false;  // Alike on all ranks.
  Status mine = place_contiguous(flush, any);
  for (const std::size_t v : flush.variables) {
    const bool plain = variables_[v].storage == ArrayStorage::contiguous;
    any = any || (plain && !goes_to_root(flush, v));
  }
  if (!any) return Status();
  // Write in rounds, one per phase, so that later puts of any rank win. Each round begins with an
  // agreement, which also waits for the writes of the previous one.
  std::vector<PhasePart> parts;
  if (mine.ok()) {
    mine = local_part([&] {
      parts = phase_parts(flush);
      return Status();
    });
  }
  for (std::size_t at = 0;;) {
    std::uint64_t phase = at < parts.size() ? parts[at].phase : UINT64_MAX;
    RankNumbers first;
    first.add(Reduction::min, phase);
    TAILRACE_TRY(comm_->agree(mine, first));
    if (phase == UINT64_MAX) return Status();
    for (; at < parts.size() && parts[at].phase == phase; ++at) {
      if (mine.ok()) mine = local_part([&] { return write_contiguous(parts[at]); });
    }
  }
}

/// List this rank's puts to contiguous variables by phase; within a phase, in put order.
std::vector<ArrayEngine::PhasePart> ArrayEngine::phase_parts(const ArrayFlush& flush) const {
  std::vector<PhasePart> parts;
  for (const std::size_t v : flush.variables) {
    const StagingLog& log = variables_[v].log;
    if (variables_[v].storage != ArrayStorage::contiguous || goes_to_root(flush, v)) continue;
    for (std::size_t e = 0; e < log.n_entries(); ++e) {
      std::uint64_t first = 0;
      for (std::size_t r = 0; r < log.n_runs(e); ++r) {
        const StagedRun run = log.run(e, r);
        const std::uint64_t phase = phase_of(run.epoch);
        if (first > 0 && parts.back().phase == phase) {
          parts.back().end = run.end;
        } else {
          parts.push_back({phase, v, e, first, run.end});
        }
        first = run.end;
      }
    }
  }
  std::ranges::stable_sort(parts, {}, &PhasePart::phase);
  return parts;
}

/// Write this rank's puts to a contiguous variable in one phase. Not collective.
Status ArrayEngine::write_contiguous(const PhasePart& part) {
  const StagingLog& log = variables_[part.variable].log;
  Status written;
  if (log.scattered(part.entry)) {  // Has one epoch, and so one phase.
    log.for_each_piece(part.entry, [&](const Slab& slab, std::uint64_t, const std::byte* values) {
      if (written.ok()) written = write_contiguous(part.variable, slab, values);
    });
    return written.within(quoted(part.variable));
  }
  const Slab slab = log.slab(part.entry);
  const std::byte* values = log.values(part.entry) + part.first * log.element_bytes();
  if (part.end - part.first == slab.n_elements()) {
    written = write_contiguous(part.variable, slab, values);
  } else {
    for_each_box_of_run({slab.start, slab.count}, part.first, part.end, [&](const Box& box) {
      if (written.ok()) written = write_contiguous(part.variable, Slab::of(box), values);
      values += box.n_elements() * log.element_bytes();
    });
  }
  return written.within(quoted(part.variable));
}

Status ArrayEngine::write_contiguous(std::size_t v, const Slab& slab, const std::byte* values) {
  return write_rows(v, slab, values, [&](std::uint64_t address, std::span<const std::byte> row) {
    return output_.storage().write_at(address, row);
  });
}

Status ArrayEngine::commit_contiguous(std::size_t v, const Slab& slab, const std::byte* values) {
  return write_rows(v, slab, values, [&](std::uint64_t address, std::span<const std::byte> row) {
    output_.file().write_values_at(address, row);
    return Status();
  });
}

/// Write a slab of a contiguous variable row by row, in the file's byte order.
Status ArrayEngine::write_rows(std::size_t v, const Slab& slab, const std::byte* values,
                               const WriteRow& write_row) const {
  const ArrayVariable& variable = variables_[v];
  const std::size_t element = variable.log.element_bytes();
  const Shape& shape = variable.definition.shape;
  std::vector<std::byte> swapped;
  Status written;
  const auto write = [&](std::uint64_t first, std::span<const std::byte> row) {
    if (!written.ok()) return;
    if (variable.swapped) {
      swapped.assign(row.begin(), row.end());
      swap_elements(swapped, element);
      row = swapped;
    }
    written = write_row(variable.address + first * element, row);
  };
  // Dimensions from `outer` on form one contiguous run in the file.
  std::size_t outer = slab.rank();
  std::uint64_t run = 1;
  while (outer > 0) {
    const bool dense = slab.stride_of(outer - 1) == 1 || slab.count[outer - 1] == 1;
    if (!dense) break;
    run *= slab.count[outer - 1];
    --outer;
    if (slab.count[outer] != shape[outer]) break;
  }
  const Box rows{Shape(outer, 0), Shape(slab.count.begin(),
                                        slab.count.begin() + static_cast<std::ptrdiff_t>(outer))};
  for_each_position(rows, [&](const Shape& at) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::uint64_t steps = d < outer ? at[d] * slab.stride_of(d) : 0;
      first = first * shape[d] + slab.start[d] + steps;
    }
    write(first, {values, run * element});
    values += run * element;
  });
  return written;
}

// --- Publishing a flush: from the ranks' lists of written chunks to a committed file.

/// Reduce the measured errors to their maximum. Collective if anything was verified.
void ArrayEngine::share_errors(ArrayFlush& flush) {
  std::vector<double> errors;
  bool verified = false;
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    errors.push_back(flush.done.tallies[f].max_error);
    verified = verified || variables_[flush.chunked[f]].resolved.verify;
  }
  flush.larger_error.assign(flush.chunked.size(), false);
  if (!verified) return;
  comm_->allreduce(std::span<double>(errors), Reduction::max);
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    ArrayVariable& variable = variables_[flush.chunked[f]];
    flush.larger_error[f] = variable.resolved.verify && errors[f] > variable.max_error;
    variable.max_error = std::max(variable.max_error, errors[f]);
  }
}

/// Update the file's metadata and commit on rank 0. The other ranks receive the outcome, and the
/// chunks that HDF5 has relocated. Collective. Cost: one broadcast; gathers of written chunks and
/// of values for rank 0, if the flush has such; a reduction if chunks were verified.
Status ArrayEngine::publish(ArrayFlush& flush) {
  prepare_publish();
  share_errors(flush);
  std::vector<std::vector<WrittenChunk>> chunks;
  if (!flush.chunked.empty()) {
    chunks = gather_written(*comm_, flush.fresh, flush.chunked.size());
  }
  const auto to_root = [&](std::size_t v) { return goes_to_root(flush, v); };
  const bool any_to_root = std::ranges::any_of(flush.variables, to_root);
  std::vector<Bytes> plain;
  if (any_to_root) plain = comm_->gather(std::exchange(flush.plain, {}), 0);
  TAILRACE_TAKE(const Bytes outcome, broadcast_from_root(*comm_, [&](ByteWriter& message) {
                  TAILRACE_TRY(comm_->named(
                      local_part([&] { return publish_at_root(flush, chunks, plain); })));
                  add_moves(flush, message);
                  return Status();
                }));
  output_.committed();
  model_changed_ = false;
  published(flush);
  ByteReader reader(outcome);
  take_moves(flush, reader);
  // These values have changed in place, so other nodes' caches are stale.
  if (any_to_root) output_.see_other_nodes();
  return Status();
}

Shape ArrayFile::committed_shape_of(std::size_t v) const {
  Shape shape;
  for (const std::size_t d : model_.variables[v].dimensions) {
    shape.push_back(d < file_lengths_.size() ? file_lengths_[d] : model_.dimensions[d].length);
  }
  return shape;
}

/// Keep the lengths that all ranks have agreed on: later puts grow those of this rank only.
void ArrayFile::handed_over(ArrayFlush& flush) {
  for (const ModelDimension& dimension : model_.dimensions) {
    flush.lengths.push_back(dimension.length);
  }
}

/// Exchange the lengths of now and of the flush: the file gets those of its flush.
void ArrayFile::completing(ArrayFlush& flush) {
  for (std::size_t d = 0; d < flush.lengths.size(); ++d) {
    std::swap(model_.dimensions[d].length, flush.lengths[d]);
  }
}

void ArrayFile::completed(const ArrayFlush& flush) {
  for (std::size_t d = 0; d < flush.lengths.size(); ++d) {
    model_.dimensions[d].length = flush.lengths[d];
  }
}

void ArrayFile::published(const ArrayFlush&) {
  file_paths_ = paths_;
  file_lengths_.clear();
  for (const ModelDimension& dimension : model_.dimensions) {
    file_lengths_.push_back(dimension.length);
  }
}

Status ArrayFile::publish_at_root(ArrayFlush& flush,
                                  const std::vector<std::vector<WrittenChunk>>& chunks,
                                  const std::vector<Bytes>& plain) {
  Hdf5File& file = output_.file();
  TAILRACE_TRY(layout_->change(model_));
  for (const std::size_t v : flush.created) {
    TAILRACE_TRY(create_at_root(v));
    for (const Hdf5File::ChunkRecord& moved : file.take_moved_chunks()) {
      flush.moved_whole.emplace_back(v, moved.extent.address);
    }
  }
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    const ArrayVariable& variable = variables_[flush.chunked[f]];
    if (flush.larger_error[f] && variable.records_max_error) {
      const NamedAttribute error = max_error_attribute(variable.max_error);
      TAILRACE_TRY(file.set_attribute(variable.definition.path, error.name, error.value));
    }
    if (chunks[f].empty()) continue;
    TAILRACE_TAKE(const std::int64_t dataset, layout_->open_dataset(flush.chunked[f]));
    TAILRACE_TRY(file.insert_chunks_into(dataset, paths_[flush.chunked[f]], variable.grid(),
                                         chunk_records(chunks[f])));
    for (const Hdf5File::ChunkRecord& moved : file.take_moved_chunks()) {
      flush.moved.push_back({f, moved.chunk_index, moved.extent.address, moved.extent.encoded_bytes,
                             moved.filter_mask});
    }
  }
  TAILRACE_TRY(write_plain_at_root(plain));
  TAILRACE_TRY(layout_->prepare_commit());
  return output_.commit_at_root();
}

Status ArrayFile::create_at_root(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  ModelStorage storage;
  if (variable.storage == ArrayStorage::chunked) {
    storage.chunk_shape = variable.resolved.chunk_shape;
    storage.filters = variable.resolved.codec->filters();
  } else if (variable.storage == ArrayStorage::contiguous) {
    storage.contiguous_address = variable.address;
  } else {
    storage.chunk_shape = text_chunk_shape(v);
  }
  TAILRACE_TRY(layout_->create_variable(v, storage));
  if (variable.storage != ArrayStorage::chunked) return Status();
  Hdf5File& file = output_.file();
  Notes notes = options_.file.notes;
  if (variable.resolved.codec->lossy()) {
    notes = notes_of_file_.choose(file, notes, was_there_);
    TAILRACE_TRY(notes_of_file_.write_file_note(file, notes));
  }
  const std::vector<NamedAttribute> attributes =
      provenance(variable.definition, variable.resolved, variable.max_error, notes);
  variable.records_max_error =
      !attributes.empty() && variable.definition.options.earlier_loss.empty();
  if (attributes.empty()) return Status();
  TAILRACE_TAKE(const std::int64_t dataset, layout_->open_dataset(v));
  return file.add_attributes(dataset, variable.definition.path, attributes);
}

/// Choose the chunk shape of texts that grow, as HDF5 handles them well: about 64 KiB of pointers.
Shape ArrayFile::text_chunk_shape(std::size_t v) const {
  constexpr std::uint64_t kMostTexts = 4096;
  const ArrayVariable& variable = variables_[v];
  const bool grows = std::ranges::find(variable.growing, true) != variable.growing.end();
  if (!grows) return {};
  Shape chunk = shape_of(v);
  std::uint64_t n = 1;
  for (std::size_t d = chunk.size(); d-- > 0;) {
    chunk[d] = variable.growing[d] ? 1 : std::clamp<std::uint64_t>(chunk[d], 1, kMostTexts / n);
    n = std::min(n * chunk[d], kMostTexts);
  }
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (!variable.growing[d]) continue;
    chunk[d] = std::max<std::uint64_t>(kMostTexts / n / 16, 1);
    break;
  }
  return chunk;
}

/// Pack the chunks and contiguous variables that HDF5 has relocated. Rank 0 only.
void ArrayEngine::add_moves(const ArrayFlush& flush, ByteWriter& message) const {
  message.add(flush.moved_whole.size());
  for (const auto& [v, address] : flush.moved_whole) {
    message.add(v);
    message.add(address);
  }
  for (const WrittenChunk& moved : flush.moved) message.add(moved);
}

/// Record the relocated chunks at their homes, and relocated contiguous variables on all ranks.
void ArrayEngine::take_moves(ArrayFlush& flush, ByteReader& message) {
  std::map<ChunkKey, std::uint64_t> addresses;
  for (auto n_whole = message.take<std::size_t>(); n_whole > 0; --n_whole) {
    const auto v = message.take<std::size_t>();
    variables_[v].address = message.take<std::uint64_t>();
  }
  while (!message.at_end()) {
    const auto moved = message.take<WrittenChunk>();
    addresses[{static_cast<std::size_t>(moved.field), moved.chunk_index}] = moved.address;
  }
  for (WrittenChunk& chunk : flush.done.written) {
    const auto found = addresses.find({static_cast<std::size_t>(chunk.field), chunk.chunk_index});
    if (found != addresses.end()) chunk.address = found->second;
  }
}

// --- values that only HDF5 can write

/// Pack this rank's texts and staged values of variables that rank 0 writes, with the epochs that
/// order them.
Bytes ArrayFile::pack_plain(const ArrayFlush& flush) const {
  ByteWriter writer;
  for (std::size_t i = 0; i < flush.variables.size(); ++i) {
    const std::size_t v = flush.variables[i];
    const ArrayVariable& variable = variables_[v];
    for (const StagedTexts& staged : variable.texts) {
      writer.add(static_cast<std::uint64_t>(v));
      writer.add(staged.epoch);
      writer.add(staged.slab);
      for (const std::string& text : staged.texts) writer.add_text(text);
    }
    if (goes_to_root(flush, v)) pack_log(v, staged_of(flush, i), writer);
  }
  return writer.take();
}

Status ArrayFile::write_plain_at_root(const std::vector<Bytes>& plain) {
  struct Part {
    std::size_t variable = 0;
    std::uint64_t epoch = 0;
    Slab slab;
    std::vector<std::string> texts;
    std::span<const std::byte> values;
  };
  std::vector<Part> parts;
  for (const Bytes& of_rank : plain) {
    ByteReader reader(of_rank);
    while (!reader.at_end()) {
      Part part;
      part.variable = static_cast<std::size_t>(reader.take<std::uint64_t>());
      part.epoch = reader.take<std::uint64_t>();
      part.slab = reader.take_slab();
      const ArrayVariable& variable = variables_[part.variable];
      if (variable.type == ModelType::text) {
        part.texts.resize(part.slab.n_elements());
        for (std::string& text : part.texts) text = reader.take_text();
      } else {
        part.values = reader.take_bytes(part.slab.n_elements() * variable.log.element_bytes());
      }
      parts.push_back(std::move(part));
    }
  }
  // Write in put order; at equal epochs in rank order.
  std::ranges::stable_sort(parts, {}, &Part::epoch);
  const std::int64_t file = output_.file().hdf5_id();
  for (const Part& part : parts) {
    const ArrayVariable& variable = variables_[part.variable];
    const std::string& path = paths_[part.variable];
    if (variable.type == ModelType::text) {
      TAILRACE_TRY(write_dataset_texts(file, path, part.slab, part.texts));
      continue;
    }
    if (variable.storage == ArrayStorage::contiguous) {
      TAILRACE_TRY(commit_contiguous(part.variable, part.slab, part.values.data()));
      continue;
    }
    TAILRACE_TRY(write_dataset_values(file, path, part.slab, *array_dtype(variable.type),
                                      variable.type == ModelType::text_char, part.values));
  }
  return Status();
}

}  // namespace tailrace
