// Stages of a write. prepare_step() and complete_step() below are their table of contents.
// end_step() runs both; in the modes async and in_situ the application computes in between
// (write_hand_over.cpp).
//
//   put() -> Field -> Chunk -> Estimate -> Placement -> Plan -> Encoded -> Extent -> chunk index
//
//   StepOpening:           same definitions on all ranks? same puts as last?          (write_step)
//   find_existing_parts:   continue over-time fields of an opened file    (field/continued_fields)
//   choose_chunk_shapes:   chunks that follow the decomposition                (field/field_state)
//   inherit:               what earlier fields of the same lineage learned         (field/lineage)
//   resolve_bounds:        rel and psnr become absolute                        (field/field_state)
//   choose_codecs:         codec=auto, by sample and machine profile          (field/codec_choice)
//   BoundVerdicts:         bounds that an undeclared fill value widens      (field/range_evidence)
//   prepare_books:         trz's shared books, of the step before               (field/field_book)
//   prepare_codecs:        load plug-ins, fix client data                      (field/field_state)
//   OwnerAssignment:       which rank encodes which chunk           (write_plan, exec/chunk_homes)
//   reserve_front:         layout=front; measure all metadata by making them once
//   plan:                  sizes, times, order of work, places           (write_plan, exec/placer)
//   encode_and_write:      compress and write concurrently                         (exec/executor)
//   publish:               failures, numbers, datasets, chunk index, commit         (output, hdf5)
//
// Invariant 1: every stage that can fail ends in one agreement, except plan and encode_and_write,
// whose failures publish reports. Either all ranks continue, or all return the same error.
// Invariant 2: until publish, nothing refers to the step's bytes. A failed step only leaves free
// space at the file's end, which the next step overwrites.
// Invariant 3: only rank 0 touches HDF5 metadata, and only in publish, in the commit that publish
// starts, and in close. If that fails, the file stays at its last commit and the writer refuses all
// further work.
//
// Cost of a step that repeats the last one's boxes, in addition to the data: one allreduce (does it
// repeat them?); one gather to rank 0 (failures, numbers of the report, 40 bytes a chunk); one
// broadcast of the result. If steps are handed over, the allreduce is part of the previous step's
// gather and broadcast. Reserved places and shared books cost more.
//
// Any other step has two to six collectives more. These are: one broadcast of what rank 0 has
// looked up (if the file was opened); one agreement on boxes, threads and ranges of values; two for
// a choice of codecs; one on codecs and owners; and two sparse exchanges if ranks share chunks.

#include "write/write.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/comm.hpp"
#include "exec/encode_lane.hpp"
#include "exec/executor.hpp"
#include "exec/fine_timers.hpp"
#include "exec/lane_clock.hpp"
#include "exec/placer.hpp"
#include "exec/thread_team.hpp"
#include "exec/trace_file.hpp"
#include "field/candidates.hpp"
#include "field/chunk_beginnings.hpp"
#include "field/codec_choice.hpp"
#include "field/field_book.hpp"
#include "field/range_evidence.hpp"
#include "output/output.hpp"
#include "policy/bound_width.hpp"
#include "policy/chunk_shape.hpp"
#include "policy/door_rules.hpp"
#include "schedule/flow_shop.hpp"
#include "write/write_idle.hpp"
#include "write/write_plan.hpp"
#include "write/write_report.hpp"
#include "write/write_step.hpp"

namespace tailrace {

// --- opening

Status Writer::start(bool append) {
  TAILRACE_TRY(Output::agree(*comm_, path_, options_, options_.door));
  if (options_.direct_io) {
    options_.alignment_bytes = std::max<std::uint64_t>(options_.alignment_bytes, 4096);
  }
  if (Status order = parse_order(options_.order).status(); !order.ok()) return order;
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  appended_ = append;
  TAILRACE_TRY(check_front());
  // Also where no field uses the file's codec: a name with a typing error is not what was meant.
  const std::string& codec = options_.field_defaults.codec;
  if (options_.door == Door::steps && codec != "auto") TAILRACE_TRY(check_codec_name(codec));
  if (Status known = parse_scheduler(options_.scheduler).status(); !known.ok()) return known;
  if (!options_.record_path.empty() && options_.mode != StepMode::in_situ) {
    return Status(Code::invalid_argument, "option lab.record needs mode=in_situ");
  }
  if (Status known = parse_balance_rule(options_.balance).status(); !known.ok()) return known;
  if (!options_.trace_path.empty()) {  // report a bad path now instead of after hours
    TAILRACE_TRY(
        comm_->agree(comm_->is_root() ? write_trace_file(options_.trace_path, "") : Status()));
  }
  // Look the profile up once, here, so that no step has to. Do it first, since the profile may be
  // missing.
  const auto keep = [this](const std::string& line) { remarks_.push_back(line); };
  TAILRACE_TRY(need_profile(*comm_, options_, keep, path_, profile_));
  TAILRACE_TRY(append ? output_.open(*comm_, path_, options_)
                      : output_.create(*comm_, path_, options_));
  share_within_node();
  comm_->before_finalize([this] {
    open_at_finalize_ = !closed_ && !abandoned_;
    abandon();
  });
  return Status();
}

/// Create the memory through which the ranks of a node can write for each other. If that fails,
/// each rank writes its own chunks. Collective: an allreduce, and the creation of a window.
void Writer::share_within_node() {
  const bool balances = options_.mode == StepMode::in_situ &&
                        *parse_balance_rule(options_.balance) != BalanceRule::off;
  if (!balances && !options_.node_writes) return;
  // All parts of the window are equal, as large as the rank with the least memory can have.
  std::uint64_t least_bytes = std::min(options_.write_buffer_bytes, options_.memory_bytes / 8);
  auto most_on_node = static_cast<std::uint64_t>(comm_->n_ranks_on_node());
  RankNumbers numbers;
  numbers.add(Reduction::min, least_bytes);
  numbers.add(Reduction::max, most_on_node);
  numbers.reduce(*comm_);
  if (most_on_node == 1) return;
  Result<std::unique_ptr<SharedWrites>> made = SharedWrites::create(*comm_, least_bytes);
  if (made.ok()) {
    shared_ = std::move(*made);
  } else if (comm_->is_root()) {
    remarks_.push_back(
        (options_.node_writes
             ? "writers=node is not possible, each rank writes its own chunks: "
             : "writers=balanced is not possible, each rank writes its own chunks: ") +
        made.status().message());
  }
}

void Writer::on_log(LogCallback callback) {
  log_ = std::move(callback);
  if (!log_) return;
  if (const std::string before = output_.remark(); !before.empty()) log_(before);
  for (const std::string& line : std::exchange(remarks_, {})) log_(line);
}

// --- a step

Result<StepReport> Writer::end_recorded_step() {
  TAILRACE_TRY(usable());
  const FineTimers fine;
  try {
    if (spare_.empty()) {
      std::map<std::uint64_t, std::uint64_t> made{{0, 0}};
      spare_ = made.extract(made.begin());
    }
    return options_.mode == StepMode::sync ? write_step() : hand_over_step();
  } catch (...) {
    forget_after_throw();
    throw;
  }
}

/// Forget the open step after an exception. Its commit may be done, so its values must not be
/// written again. Only with a single rank, since other ranks would wait elsewhere. Lanes of a step
/// in flight claim space, so their claims are kept.
void Writer::forget_after_throw() {
  if (comm_->n_ranks() > 1) return;
  if (flight_ == nullptr) {
    forget_step(true);
  } else {
    record_.forget_open_step();
    last_puts_.reset();
  }
}

/// Write a complete step in mode sync.
Result<StepReport> Writer::write_step() {
  Step step;
  step.start_s = clock_.now_s();
  StepOpening opening(*comm_, record_, last_puts_, numbers_along(false, false),
                      closing_ ? "close" : "end_step");
  opening.numbers().reduce(*comm_);
  Status done = prepare_step(step, opening);
  if (done.ok()) {
    step.attributes = std::exchange(record_.attributes, {});
    step.coordinates = std::exchange(record_.coordinates, {});
    done = complete_step(step, {});
  }
  forget_step(!done.ok());
  if (!done.ok()) return done;
  return std::move(step.report);
}

/// Run the stages up to the plan.
/// @param opening  its numbers must be reduced.
Status Writer::prepare_step(Step& step, StepOpening& opening) {
  output_.tail().start_step();
  step.report.step_index = n_steps_;
  if (opening.calls_differ()) return go_out_of_step(opening);
  TAILRACE_TAKE(bool repeats, opening.repeats());
  TAILRACE_TAKE(const bool joined,
                gathered_.join(*comm_, [this](std::span<const std::size_t> fresh) {
                  return try_waiting(fresh);
                }));
  std::vector<std::size_t> taking_part = gathered_.taking_part();
  repeats = repeats && taking_part == last_taking_part_;  // Otherwise entries may lack their times.
  last_taking_part_ = std::move(taking_part);
  if (repeats && !joined) {
    repeat_last_step(step);
  } else if (!repeats) {
    TAILRACE_TRY(prepare_changed_step(step));
  } else {  // Joined chunks belong to this step only: the next step may repeat the last plain one.
    const std::optional<PutPattern> puts = last_puts_;
    const std::vector<std::size_t> field_indices = last_field_indices_;
    const std::shared_ptr<const Ownership> ownership = last_ownership_;
    TAILRACE_TRY(prepare_changed_step(step));
    last_puts_ = puts;
    last_field_indices_ = field_indices;
    last_ownership_ = ownership;
  }
  const std::vector<FieldState*> active = step.active(record_);
  TAILRACE_TRY(reserve_front(active));
  TAILRACE_TRY(plan(active, step));
  balance(step);
  step.executor = make_executor(step);
  return Status();
}

/// Run the stages that depend only on definitions and boxes: chunks, codecs, owners.
Status Writer::prepare_changed_step(Step& step) {
  std::vector<FieldState>& fields = record_.fields;
  last_puts_.reset();
  Status mine;
  TAILRACE_TRY(read_dimensions(fields));
  TAILRACE_TRY(check_late_times(fields));
  TAILRACE_TRY(find_existing_parts(fields, mine));
  ValueRanges ranges(fields);
  if (mine.ok()) mine = ranges.scanned();
  least_threads_ = n_threads();
  RankNumbers along = ranges.numbers();
  along.add(Reduction::min, least_threads_);
  Result<std::vector<std::size_t>> active = choose_chunk_shapes(*comm_, fields, mine, along);
  if (!active.ok()) return active.status();
  step.field_indices = std::move(*active);
  TAILRACE_TRY(plan_dimensions(step.active(record_)));
  lineages_.inherit(fields);
  ranges.resolve_bounds(fields);
  TAILRACE_TRY(choose_codecs_and_owners(step));
  last_puts_ = repeatable_puts(record_);
  last_field_indices_ = step.field_indices;
  last_ownership_ = step.ownership;
  return Status();
}

/// Get what only rank 0 can look up: the parts of new fields that the file already has. In a new
/// file, only rank 0 looks, without a message; its failure is agreed on with the next stage.
Status Writer::find_existing_parts(std::vector<FieldState>& fields, Status& mine) {
  if (appended_) TAILRACE_TRY(output_.finish_commit());  // the code below reads the file
  const auto look = [&] { return look_up_existing(output_.file(), path_, appended_, fields); };
  if (!appended_) {
    const auto makes_dataset = [](const FieldState& field) { return field.makes_dataset(); };
    // Otherwise look nothing up: the metadata of the step before may still be in preparation.
    const bool makes_datasets = std::any_of(fields.begin(), fields.end(), makes_dataset);
    if (comm_->is_root() && makes_datasets) mine = look();
    return Status();
  }
  const Result<Bytes> received = broadcast_from_root(*comm_, [&](ByteWriter& message) {
    TAILRACE_TRY(look());
    pack_continued(fields, message);
    return Status();
  });
  if (!received.ok()) return received.status();
  ByteReader reader(*received);
  if (!is_any_continued(*received)) return Status();
  // The next reduction depends on which fields are continued.
  return comm_->agree(local_part([&] {
    take_continued(reader, fields);
    return Status();
  }));
}

Status Writer::try_waiting(std::span<const std::size_t> field_indices) {
  std::vector<std::size_t> places;
  for (const std::size_t index : field_indices) places.push_back(record_.place_of(index));
  // Only the paths of the other fields matter here.
  std::vector<FieldState> fields(record_.fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    fields[f].definition.path = record_.fields[f].definition.path;
    fields[f].life =
        record_.fields[f].life == FieldLife::retired ? FieldLife::retired : FieldLife::in_file;
  }
  for (const std::size_t place : places) {
    fields[place].definition = record_.fields[place].definition;
    fields[place].life = FieldLife::defined;
  }
  Status mine;
  TAILRACE_TRY(find_existing_parts(fields, mine));
  TAILRACE_TRY(read_dimensions(fields));
  TAILRACE_TRY(try_dimensions(fields));
  TAILRACE_TRY(choose_chunk_shapes(*comm_, fields, mine, {}).status());
  Status possible = try_codecs(*comm_, fields, options_.plugin_path);
  if (possible.ok()) possible = local_part([&] { return go_on_with_chunks(fields); });
  if (possible.ok() && comm_->is_root()) possible = check_continued_codecs(fields);
  if (possible.ok()) possible = check_tried(places, fields);
  for (const std::size_t place : places) {
    if (!possible.ok()) break;
    possible =
        local_part([&] { return check_begun_chunks(*comm_, fields[place], output_.storage()); });
  }
  for (const std::size_t place : places) {
    record_.fields[place].n_begun = fields[place].n_begun;
    record_.fields[place].n_entries = fields[place].n_entries;
  }
  return comm_->agree(possible);
}

/// Check the other requirements of fields that gather steps: a way to hand them over, and memory.
Status Writer::check_tried(std::span<const std::size_t> places,
                           std::vector<FieldState>& fields) const {
  // The codec depends on the values. The usual codec with most memory (trz, a preset that tries
  // decimals) needs memory for this many chunks and 1 MiB.
  constexpr std::uint64_t kMostOfAnyCodec = 9;
  // Waiting steps have at most the other half; windows for writes within the node are an eighth.
  const std::uint64_t window_bytes = shared_ != nullptr ? options_.memory_bytes / 8 : 0;
  const std::uint64_t there = options_.memory_bytes / 2 - window_bytes;
  for (const std::size_t place : places) {
    FieldState* const field = &fields[place];
    const FieldDefinition& definition = field->definition;
    if (in_front()) {
      return Status(Code::unsupported,
                    definition.name() +
                        ": layout=front serves new files of one step, not chunks of several steps");
    }
    if (!options_.record_path.empty()) {
      return Status(Code::unsupported, definition.name() +
                                           ": lab.record= needs steps that are alike; with several "
                                           "steps in a chunk, only some steps write chunks");
    }
    if (options_.has_target()) {
      return Status(
          Code::unsupported,
          definition.name() + ": " + (options_.target_bytes > 0 ? "target=size" : "target=psnr") +
              "= applies to a single step; with " + std::to_string(definition.steps_per_entry) +
              " steps in a chunk, most steps write nothing; give bound= instead");
    }
    if (options_.mode != StepMode::sync) TAILRACE_TRY(check_can_be_handed_over({&field, 1}));
    FieldPlan plan = field_plan(place, definition, field->resolved);
    plan.beginnings = field->beginnings.get();
    std::uint64_t needed = encode_memory_bytes(plan);
    const bool ours = codec_is_ours_to_choose(record_.fields[place].definition.options);
    if (ours) {
      needed = std::max(needed, kMostOfAnyCodec * plan.chunk_bytes() + (1U << 20));
    }
    if (needed <= there) continue;
    return Status(Code::out_of_memory, definition.name() + ": encoding a chunk of " +
                                           std::to_string(definition.steps_per_entry) +
                                           " steps needs " + bytes_text(needed) + " with codec " +
                                           std::string(ours ? kAutoCodec : plan.codec->name()) +
                                           ", memory= leaves " + bytes_text(there) +
                                           "; raise memory= or lower chunk=");
  }
  return Status();
}

/// Prepare new fields whose entries continue partly filled last chunks of the file.
Status Writer::go_on_with_chunks(std::vector<FieldState>& fields) {
  for (FieldState& field : fields) {
    if (!field.is_new() || field.n_begun == 0) continue;
    field.beginnings = chunk_beginnings(field, output_.storage());
  }
  return Status();
}

/// Agree on codecs and owners together: neither depends on the other.
Status Writer::choose_codecs_and_owners(Step& step) {
  const std::vector<FieldState*> active = step.active(record_);
  const std::vector<OwnedField> owned = owned_fields(active);
  OwnerAssignment assignment(*comm_, owned);
  RankNumbers waiting = assignment.numbers();
  TAILRACE_TRY(choose_codecs(step.report, waiting));
  BoundVerdicts verdicts(record_.fields);
  TAILRACE_TRY(prepare_books(*comm_, record_.fields));
  Status prepared = prepare_codecs(*comm_, record_.fields, options_.plugin_path,
                                   comm_->is_root() ? log_ : nullptr);
  if (prepared.ok()) prepared = local_part([&] { return go_on_with_chunks(record_.fields); });
  if (prepared.ok() && comm_->is_root()) prepared = check_continued_codecs(record_.fields);
  if (prepared.ok() && comm_->is_root()) prepared = check_dimensions(active);
  if (prepared.ok() && comm_->is_root()) prepared = check_attributes();
  const auto check = [&](const Ownership& ownership) {
    TAILRACE_TRY(prepared);
    TAILRACE_TRY(check_pulled_chunks(owned, ownership));
    return options_.mode == StepMode::sync ? Status() : check_can_be_handed_over(active);
  };
  Result<Ownership> assigned = assignment.finish(waiting, check, verdicts.numbers());
  if (!assigned.ok()) return assigned.status();
  verdicts.note(record_.fields);
  TAILRACE_TRY(check_bound_widths(record_.fields, kSyntaxOfSteps));
  for (const FieldState& field : record_.fields) {
    if (!log_ || !comm_->is_root() || !field.makes_dataset()) continue;
    const std::string remark = bound_width_remark(field, kSyntaxOfSteps);
    if (!remark.empty()) log_(remark);
  }
  step.ownership = std::make_shared<const Ownership>(std::move(*assigned));
  return Status();
}

/// Set everything that prepare_changed_step would find for a step that repeats the last one.
void Writer::repeat_last_step(Step& step) const {
  step.field_indices = last_field_indices_;
  step.ownership = last_ownership_;
  step.report.profile = profile_name();
}

/// Run the stages from encoding to publishing.
/// @param along  numbers of the ranks that are reduced with the step's.
Status Writer::complete_step(Step& step, const RankNumbers& along) {
  const double start_s = clock_.now_s();
  const std::vector<FieldState*> active = step.active(record_);
  StepReport& report = step.report;
  ExecutorReport done;
  double sync_s = 0;
  Status written = encode_and_write(step, done, sync_s);
  done.peak_memory_bytes += held_aside_bytes_;
  report.backpressure_s = done.short_of_memory_s + clock_.now_s() - start_s;
  const Status kept = local_part([&] {
    keep_events(step, done.written);
    learn_speeds(active, *step.ownership, step.plan, done, write_s_per_byte_);
    if (written.ok()) learn_claims(active, step.plan, done.written);
    return Status();
  });
  if (written.ok()) written = kept;
  report.exposed_s = report.handover_s + clock_.now_s() - start_s + step.delay_s;
  if (options_.mode == StepMode::sync) report.step_s = clock_.now_s() - step.start_s;
  StepSums sums(active, done, sync_s, report);
  if (needs_forecasts(active, options_)) {
    sums.add_forecasts(step.plan, learn_sizes(active, *step.ownership, step.plan, done.written));
  }
  BookLessons books(active, sums.numbers);
  sums.numbers.add_all(along);
  TAILRACE_TRY(publish(step, active, written, done.written, sums));
  sums.finish();
  note_raw_chunks(active, report);
  if (options_.mode == StepMode::sync) report.step_s += sums.publish_s;
  books.learn(*comm_, report);
  lineages_.keep(active, report);
  return Status();
}

/// Log each field of which chunks are stored unfiltered because the codec broke the bound, once.
void Writer::note_raw_chunks(std::span<FieldState* const> active, const StepReport& report) {
  // The summary of repack names them.
  if (!log_ || !comm_->is_root() || options_.door == Door::repack) return;
  for (std::size_t p = 0; p < active.size(); ++p) {
    const FieldReport& field = report.fields[p];
    if (field.n_raw_chunks == 0 || std::exchange(active[p]->learned.raw_chunks_noted, true))
      continue;
    log_(active[p]->definition.name() + ": " +
         raw_chunks_text(field.n_raw_chunks, field.n_chunks, field.codec));
  }
}

/// Choose codecs for codec=auto and targets. Errors are agreed.
Status Writer::choose_codecs(StepReport& report, RankNumbers& waiting) {
  const double start_s = clock_.now_s();
  TAILRACE_TRY(choose_codecs_for(*comm_, record_.fields, options_, *profile_,
                                 {n_threads(), least_threads_}, waiting));
  report.profile = profile_name();
  report.choose_s = clock_.now_s() - start_s;
  return Status();
}

std::string Writer::profile_name() const {
  if (!profile_->built_in) return profile_->host;
  return profile_->processor.empty() ? "typical values" : "typical values, scaled to this core";
}

/// Forecast the step, order its work and reserve places. Errors are agreed.
Status Writer::plan(std::span<FieldState* const> active, Step& step) {
  StepPlan& plan = step.plan;
  plan.fields = make_field_plans(active);
  reserve_by_shape(*comm_, output_.tail(), options_.alignment_bytes, plan.fields);
  if (!needs_forecasts(active, options_)) return Status();
  const double start_s = clock_.now_s();
  const WorkForce force{static_cast<std::uint64_t>(comm_->n_ranks()),
                        std::max<std::uint64_t>(n_threads(), 1)};
  Status planned = forecast_jobs(active, *step.ownership, options_, *profile_, force, plan);
  if (planned.ok() && options_.mode == StepMode::in_situ) {
    for (JobForecast& forecast : plan.forecasts) {
      if (write_s_per_byte_ > 0) forecast.write_s = forecast.encoded_bytes * write_s_per_byte_;
    }
    planned = idle_.plan(options_.scheduler, n_threads(), plan);
  }
  if (std::any_of(plan.fields.begin(), plan.fields.end(), reserves)) {
    TAILRACE_TRY(comm_->agree(planned));
  } else if (!planned.ok()) {
    // No other rank depends on it: publish reports the failure.
    step.failure = planned;
    plan.forecasts.assign(step.ownership->jobs.size(), JobForecast());
    plan.order.clear();
    plan.write_order.clear();
    plan.timeline.clear();
  }
  plan.reservations = reserve_places(*comm_, output_.tail(), plan.fields, step.ownership->jobs,
                                     plan.forecasts, options_.alignment_bytes);
  plan.predict_s = clock_.now_s() - start_s;
  return Status();
}

// --- layout=front
//
// Chunks follow the metadata, so the length of the metadata must be known before the first chunk
// has a place. Rank 0 makes all metadata in memory, with a chunk index of the final number of
// entries, and measures them. A later step is refused, since its metadata would lie behind the
// first step's chunks.

/// Check the options of layout=front. Same result on every rank, like the options.
Status Writer::check_front() const {
  if (!in_front()) return Status();
  const auto refused = [](const std::string& what) {
    return Status(Code::unsupported, "layout=front serves new files of one step: " + what);
  };
  if (appended_) return refused("\"" + path_ + "\" was opened for appending");
  if (options_.mode != StepMode::sync) return refused("it needs mode=sync");
  return Status();
}

Result<std::size_t> Writer::define_entry(const FieldDefinition& definition) {
  TAILRACE_TRY(check_door(definition.options, options_.door).within(definition.name()));
  if (!in_front()) TAILRACE_TRY(check_front_of_file(definition.options).within(definition.name()));
  // Reject it here without a note for end_step: the caller can define it otherwise, or omit it.
  const bool may_continue = appended_ && definition.options.over_time;
  if (!may_continue && !options_.has_target() && check_definition(definition).ok()) {
    TAILRACE_TRY(local_part([&] { return try_definition(definition, options_.plugin_path); }));
  }
  return record_.define_field(definition);
}

/// Reserve room for all metadata before any rank claims a place. Collective: an agreement.
Status Writer::reserve_front(std::span<FieldState* const> active) {
  if (!in_front()) return Status();
  if (n_steps_ > 0) {
    return Status(Code::unsupported,
                  "layout=front serves new files of one step: \"" + path_ + "\" has one already");
  }
  const Notes notes = options_.notes;  // The file is new.
  const auto make = [&](Hdf5File& file) {
    if (before_datasets_) TAILRACE_TRY(before_datasets_(file));
    Updates updates = updates_of(active, notes);
    std::vector<std::vector<WrittenChunk>> by_plan(active.size());
    std::uint64_t address = std::uint64_t{1} << 60;  // nowhere: beyond any end of the file
    for (std::size_t p = 0; p < active.size(); ++p) {
      const FieldState& field = *active[p];
      const std::uint64_t n_chunks = field.grid().n_chunks();
      for (std::uint64_t c = 0; c < n_chunks; ++c) by_plan[p].push_back({p, c, address++, 1, 0});
      address += field.definition.raw_bytes();
    }
    TAILRACE_TRY(publish_datasets(file, updates, by_plan));
    TAILRACE_TRY(StepDimensions().publish(file, named_datasets(active), record_.coordinates));
    TAILRACE_TRY(publish_attributes(file, record_.attributes));
    if (any_lossy(active)) TAILRACE_TRY(notes_of_file_.write_file_note(file, notes));
    return after_datasets_ ? after_datasets_(file) : Status();
  };
  Status reserved;
  if (comm_->is_root()) {
    Result<FrontPlan> plan = Hdf5File::rehearse(output_.settings(), options_.memory_bytes, make);
    reserved = plan.status();
    if (plan.ok()) output_.file().reserve_front(std::move(*plan));
  }
  return comm_->agree(reserved);
}

/// Let the ranks of a node write for each other.
void Writer::balance(Step& step) {
  if (shared_ == nullptr) return;
  if (!options_.node_writes) {
    step.writers = balance_step(*comm_, *shared_, *parse_balance_rule(options_.balance),
                                *step.ownership, step.plan);
  }
  shared_->start_step(++n_shared_steps_);
}

std::unique_ptr<Executor> Writer::make_executor(Step& step) {
  if (lane_stock_ == nullptr) {
    const bool concurrently = options_.mode != StepMode::sync;
    lane_stock_ = std::make_unique<LaneStock>(
        n_threads(), concurrently ? ThreadPriority::waiting : ThreadPriority::equal,
        options_.mode == StepMode::in_situ ? find_idle_waits() : nullptr);
  }
  ExecutorSettings settings;
  settings.memory_bytes = options_.memory_bytes - set_aside_bytes_;
  settings.write_buffer_bytes = options_.write_buffer_bytes;
  settings.alignment_bytes = options_.alignment_bytes;
  settings.order = step.plan.order;
  settings.write_order = step.plan.write_order;
  settings.reservations = step.plan.reservations;
  settings.trace = options_.trace || !options_.record_path.empty() ? &step.trace : nullptr;
  std::uint64_t bytes_total = 0;
  for (const std::size_t index : step.field_indices) {
    bytes_total += record_.fields[index].definition.raw_bytes();
  }
  if (progress_) {
    settings.progress = [this, bytes_total] { progress_({output_.tail().done(), bytes_total}); };
  }
  settings.failure = step.failure;
  settings.shared = shared_.get();
  settings.writers = step.writers;
  // The node's first rank, where MPI also progresses for the node's claims (exec/mpi_tail).
  if (shared_ != nullptr && options_.node_writes) settings.node_writer = 0;
  settings.sync_behind = options_.sync && options_.mode != StepMode::sync;
  if (options_.mode == StepMode::in_situ) {
    for (const JobForecast& forecast : step.plan.forecasts) {
      settings.encode_s.push_back(forecast.encode_s);
    }
    settings.regard.outlook = [this] { return idle_.outlook(Lane::io, clock_.now_s()); };
    settings.regard.write_s_per_byte =
        write_s_per_byte_ > 0 ? write_s_per_byte_ : profile_->write.seconds(1e6, 1) / 1e6;
  }
  if (options_.mode == StepMode::sync) trace_plan_of(step, clock_.now_s());
  output_.tail().expect(bytes_to_claim(step.active(record_), *step.ownership, step.plan));
  return std::make_unique<Executor>(*comm_, output_.tail(), output_.storage(), step.plan.fields,
                                    *step.ownership, settings, *lane_stock_, clock_);
}

void Writer::trace_plan_of(const Step& step, double start_s) {
  if (!options_.trace) return;
  const bool by_application = options_.mode == StepMode::in_situ && n_threads() == 0;
  trace_plan(trace_, comm_->rank(), start_s, by_application ? 0 : 1, step.plan.timeline,
             step.ownership->jobs, step.plan.fields, step.plan.forecasts);
}

/// Encode and write a step's chunks. @returns this rank's own failure.
Status Writer::encode_and_write(Step& step, ExecutorReport& done, double& sync_s) {
  const bool at_once = options_.mode == StepMode::sync;
  const Status written = at_once ? step.executor->run(done) : step.executor->finish(done);
  step.executor.reset();
  sync_s = done.sync_s;
  TAILRACE_TRY(written);
  if (!options_.sync || done.n_writes == 0 || !at_once) return Status();
  const double start_s = clock_.now_s();
  const Status synced = serve_while(output_.tail(), [this] { return output_.storage().sync(); });
  sync_s = clock_.now_s() - start_s;
  if (options_.trace) {
    trace_.add({TraceEvent::Kind::sync, comm_->rank(), kIoLaneNumber, -1, -1, start_s,
                start_s + sync_s, 0, 0});
  }
  return synced;
}

/// Number of Tailrace's encode threads. In mode in_situ the application's thread encodes unless
/// threads are requested.
std::uint64_t Writer::n_threads() const {
  if (options_.mode == StepMode::in_situ) return options_.n_threads;
  return threads_of_each(options_.n_threads, *comm_);
}

// --- publishing

/// Publish the step on all ranks.
/// @param own  this rank's failure; then no rank publishes anything.
Status Writer::publish(Step& step, std::span<FieldState* const> active, const Status& own,
                       const std::vector<WrittenChunk>& written, StepSums& sums) {
  const std::vector<NamedDataset> named =
      with_coordinates(named_datasets(active), step.coordinates);
  StepEnd end{own, sums.numbers, sums.of_root, written, active.size()};
  const Status published = publish_together(*comm_, end, [&](GatheredChunks&& chunks) {
    const double start_s = clock_.now_s();
    TAILRACE_TRY(output_.finish_commit_at_root());
    sums.taken_bytes = output_.keep_claims_at_root();
    sums.keep_max_errors();
    TAILRACE_TRY(publish_at_root(step, active, std::move(chunks), step.report));
    sums.publish_s = clock_.now_s() - start_s;
    return Status();
  });
  if (!published.ok() && !end.published) return published;
  if (!published.ok()) return output_.break_off(published, "the file stays at its last commit");
  for (FieldState* field : active) {  // First, since nothing here can fail.
    field->life = FieldLife::in_file;
    ++field->n_entries;
    field->n_begun = 0;
    field->begun_chunks = {};
    field->beginnings.reset();
  }
  ++n_steps_;
  (void)dimensions_.add(named);  // Checked before.
  sums.keep_max_errors();
  output_.commit_is_finished();
  if (options_.mode == StepMode::sync) {
    output_.committed();
  } else {
    output_.commit_is_pending();
  }
  return Status();
}

namespace {

/// True if the field's values are encoded with losses here.
bool is_lossy(const FieldState& field) {
  const bool stored = field.definition.as_stored != nullptr || field.definition.in_header;
  return !stored && field.resolved.codec->lossy();
}

}  // namespace

/// True if the attribute of the file about its other datasets is due.
bool Writer::any_lossy(std::span<FieldState* const> active) const {
  return !options_.bare_exact &&
         std::ranges::any_of(active, [](const FieldState* field) { return is_lossy(*field); });
}

/// @param notes  attributes of lossy datasets.
Writer::Updates Writer::updates_of(std::span<FieldState* const> active, Notes notes) const {
  Updates updates;
  for (const FieldState* field : active) {
    updates.of_datasets.push_back(update_of(*field, is_lossy(*field) ? notes : options_.notes));
    const bool has_chunks = !updates.of_datasets.back().dataset.chunk_shape.empty();
    updates.n_before.push_back(has_chunks ? field->n_entries * field->grid().n_chunks() : 0);
    updates.begun.push_back(field->begun_chunks);
  }
  return updates;
}

/// Write datasets and their chunk indices.
/// @param by_plan  sorted by chunk index.
Status Writer::publish_datasets(Hdf5File& file, Updates& updates,
                                const std::vector<std::vector<WrittenChunk>>& by_plan) {
  TAILRACE_TRY(publish_groups(file, updates.of_datasets));
  for (std::size_t p = 0; p < by_plan.size(); ++p) {
    Hdf5File::DatasetUpdate& update = updates.of_datasets[p];
    list_chunks(update, by_plan[p], updates.n_before[p], updates.begun[p]);
    TAILRACE_TRY(file.update_dataset(update));
    update.records = {};  // There may be many.
  }
  return Status();
}

Status Writer::publish_at_root(const Step& step, std::span<FieldState* const> active,
                               GatheredChunks&& chunks, StepReport& report) {
  const double start_s = clock_.now_s();
  struct UpdatesAndChunks {
    Updates updates;
    GatheredChunks chunks;
  };
  const Notes notes = notes_of_file_.choose(output_.file(), options_.notes, appended_);
  const auto all = std::make_shared<UpdatesAndChunks>(
      UpdatesAndChunks{updates_of(active, notes), std::move(chunks)});
  const bool at_once = options_.mode == StepMode::sync;
  // Capture everything that it needs: the next step may be recorded meanwhile.
  const auto publish = [this, at_once, all, notes, lossy = any_lossy(active),
                        named = named_datasets(active), coordinates = step.coordinates,
                        attributes = step.attributes, before = before_datasets_,
                        after = after_datasets_](Hdf5File& file) {
    const double publish_start_s = clock_.now_s();
    if (before) TAILRACE_TRY(before(file));
    TAILRACE_TRY(publish_datasets(file, all->updates, all->chunks.take_sorted()));
    TAILRACE_TRY(step_dimensions_.publish(file, named, coordinates));
    TAILRACE_TRY(publish_attributes(file, attributes));
    if (lossy) TAILRACE_TRY(notes_of_file_.write_file_note(file, notes));
    if (after) TAILRACE_TRY(after(file));
    trace_root(TraceEvent::Kind::index, at_once ? 0 : kCommitLaneNumber, publish_start_s,
               clock_.now_s());
    return Status();
  };
  if (at_once) TAILRACE_TRY(publish(output_.file()));
  const double published_s = clock_.now_s();
  report.index_s = published_s - start_s;
  if (at_once) {
    TAILRACE_TRY(output_.commit_at_root());
    TAILRACE_TAKE(report.file_bytes, output_.storage().file_bytes());
  } else {
    // Ask before the commit starts: a failure below leaves nothing in flight.
    TAILRACE_TAKE(report.file_bytes, output_.storage().file_bytes());
    const auto traced = [this](const std::function<Status()>& write) {
      const double write_start_s = clock_.now_s();
      const Status written = write();
      trace_root(TraceEvent::Kind::commit, kCommitLaneNumber, write_start_s, clock_.now_s());
      return written;
    };
    const bool ours_alone = !before_datasets_ && !after_datasets_;
    TAILRACE_TRY(output_.start_commit_at_root(publish, ours_alone, traced));
  }
  report.commit_s = clock_.now_s() - published_s;
  trace_root(TraceEvent::Kind::commit, 0, published_s, published_s + report.commit_s);
  return Status();
}

void Writer::trace_root(TraceEvent::Kind kind, std::int32_t lane, double start_s, double end_s) {
  if (options_.trace) trace_.add({kind, comm_->rank(), lane, -1, -1, start_s, end_s, 0, 0});
}

/// Forget the puts; after a failure also release the step's space.
void Writer::forget_step(bool failed) {
  record_.forget_step(failed);
  if (failed) last_puts_.reset();
  if (failed && output_.broken().ok()) output_.drop_claims();
}

// --- the end

Status Writer::usable() const {
  if (open_at_finalize_) {
    return Status(Code::invalid_argument, "\"" + path_ +
                                              "\" was open at MPI_Finalize, which abandoned it; "
                                              "call close() before MPI_Finalize");
  }
  if (!output_.broken().ok()) return output_.broken();
  return closed_ || abandoned_ ? Status(Code::invalid_argument, "\"" + path_ + "\" is closed")
                               : Status();
}

Status Writer::close() {
  if (closed_) return Status(Code::invalid_argument, "\"" + path_ + "\" is closed already");
  if (abandoned_) return usable();
  closing_ = true;
  Status ended = output_.broken();
  if (out_of_step_) {
    abandon();
    closed_ = true;
    return ended;
  }
  if (!ended.ok()) {
    ended = with_uncertain(ended);
  } else {
    const bool never_committed = !output_.in_place() && !output_.pending();
    const bool open = gathered_.anything_open(appended_) || record_.anything(appended_);
    const bool must_commit = never_committed && flight_ == nullptr;  // Equal on all ranks.
    const RankNumbers along =
        numbers_along(open || must_commit, record_.any_put() || gathered_.any_put());
    if (flight_ != nullptr) {
      ended = wait().status();
    } else if (!must_commit) {
      StepOpening opening(*comm_, record_, last_puts_, along, "close");
      opening.numbers().reduce(*comm_);
      if (opening.calls_differ()) ended = go_out_of_step(opening);
    }
    if (appended_ && any_put_ == 0) {  // A finished run, started again: it may set attributes only.
      record_.retire_unput_over_time();
      gathered_.retire_unput();
    }
    if (any_open_ != 0 && ended.ok()) ended = end_step().status();
    if (out_of_step_) {
      abandon();
      closed_ = true;
      return ended;
    }
    // Also after a failed step: the commit of the one before may be pending.
    const Status waited = wait().status();
    const Status written = write_what_waits();
    if (ended.ok()) ended = waited.ok() ? written : waited;
    if (ended.ok() && !options_.record_path.empty()) {
      ended = recorder_.write(*comm_, options_.record_path);
    }
  }
  const Status traced = output_.in_forked_child() ? Status() : write_trace();
  if (ended.ok()) ended = traced;
  closed_ = true;
  if (flight_ == nullptr) lane_stock_.reset();  // Otherwise this is a forked child's copy.
  const Status finished = output_.close(true);
  if (!ended.ok() || finished.ok()) return ended;
  return with_uncertain(finished);
}

/// Without close() this rank may be the only one here, so nothing collective is called.
Writer::~Writer() {
  if (output_.in_forked_child()) {  // The threads are the parent's, and may have used these.
    (void)flight_.release();
    (void)lane_stock_.release();
    comm_->abandon();
    if (shared_ != nullptr) shared_->abandon();
    output_.abandon();
  } else if (!closed_) {
    abandon();
  }
}

/// Write the trace to the file of trace-file=. Collective; also after a failure, to show its cause.
Status Writer::write_trace() {
  if (options_.trace_path.empty()) return Status();
  const std::vector<TraceEvent> events = gather_trace();
  if (!comm_->is_root()) return comm_->agree(Status());
  return comm_->agree(write_trace_file(options_.trace_path, trace_json(events, field_paths())));
}

std::vector<TraceEvent> Writer::gather_trace() { return gather_events(*comm_, trace_); }

Result<std::unique_ptr<Writer>> Writer::create(std::unique_ptr<Comm> comm, const std::string& path,
                                               const FileOptions& options) {
  std::unique_ptr<Writer> writer(new Writer(std::move(comm), path, options));
  if (Status started = writer->start(false); !started.ok()) return started;
  return writer;
}

Result<std::unique_ptr<Writer>> Writer::open(std::unique_ptr<Comm> comm, const std::string& path,
                                             const FileOptions& options) {
  std::unique_ptr<Writer> writer(new Writer(std::move(comm), path, options));
  if (Status started = writer->start(true); !started.ok()) return started;
  return writer;
}

Shape Writer::choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                 int n_ranks) {
  return chunk_shape_to_share(shape, dtype_bytes(dtype), chunk_bytes,
                              static_cast<std::uint64_t>(n_ranks));
}

}  // namespace tailrace
