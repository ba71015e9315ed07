// The story of a write. prepare_step() and complete_step() below are its table of contents;
// end_step() runs both, or in the modes async and in_situ lets the application compute in between
// (write_hand_over.cpp).
//
//   put() -> Field -> Chunk -> Estimate -> Placement -> Plan -> Encoded -> Extent -> chunk index
//
//   StepOpening            all ranks mean the same; do they put as in the last step? (write_step)
//   hear_what_is_there     over-time fields of an opened file go on       (field/continued_fields)
//   choose_chunk_shapes    chunks that follow the decomposition           (field/field_state)
//   inherit                what earlier steps' fields of the kind taught  (field/lineage)
//   resolve_bounds         rel and psnr become absolute                   (field/field_state)
//   choose_codecs          codec=auto, by sample and machine profile      (field/codec_choice)
//   BoundVerdicts          bounds that an undeclared fill value widens    (field/range_evidence)
//   prepare_books          trz's shared books, of the step before         (field/field_book)
//   prepare_codecs         plug-ins loaded, client data fixed             (field/field_state)
//   Settlement             which rank encodes which chunk     (write_plan, exec/chunk_homes)
//   reserve_front          layout=front: room for all metadata, counted by making them once
//   plan                   sizes, times, order of work, places        (write_plan, exec/placer)
//   encode_and_write       compress and write at once                     (exec/executor)
//   publish                failures, numbers, datasets, chunk index, commit   (output, hdf5)
//
// Invariant 1: every stage that can fail ends in one agreement, but for plan and encode_and_write,
//   whose failures publish tells; all ranks go on, or all return the same error.
// Invariant 2: until publish, nothing refers to the step's bytes; a failed step only leaves free
//   space at the file's end, which the next step overwrites.
// Invariant 3: HDF5 metadata is touched by rank 0 only, and only in publish, or by the commit that
//   publish starts, and in close. If that fails, the file stays at its last commit and the writer
//   refuses all further work.
// Cost of a step that repeats the last one's boxes, besides the data: one allreduce (it does so),
//   one gather to rank 0 (of failures, the report's numbers, 40 bytes a chunk), one broadcast of
//   what came of it; where steps are handed over the first goes with the last step's gather and
//   broadcast. Reserved places and shared books cost more. Any other step settles first: two
//   to six collectives more. One broadcast of what rank 0 has looked up (where the file was
//   opened), one agreement on boxes, threads and ranges of values, two for a choice of codecs, one
//   on codecs and owners, and where ranks share chunks two sparse exchanges.

#include "write/file_writer.hpp"

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
#include "field/codec_choice.hpp"
#include "field/field_book.hpp"
#include "field/range_evidence.hpp"
#include "field/stored_values.hpp"
#include "output/output.hpp"
#include "policy/chunk_shape.hpp"
#include "policy/door_rules.hpp"
#include "schedule/flow_shop.hpp"
#include "write/gathering_writer.hpp"
#include "write/write_idle.hpp"
#include "write/write_plan.hpp"
#include "write/write_report.hpp"
#include "write/write_step.hpp"

namespace tailrace {

// --- opening

Status FileWriter::start(bool append) {
  TAILRACE_TRY(Output::agree(*comm_, path_, options_, options_.door));
  if (options_.direct_io) {
    options_.alignment_bytes = std::max<std::uint64_t>(options_.alignment_bytes, 4096);
  }
  if (Status order = parse_order(options_.order).status(); !order.ok()) return order;
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  appended_ = append;
  TAILRACE_TRY(check_front());
  if (Status known = parse_scheduler(options_.scheduler).status(); !known.ok()) return known;
  if (!options_.record_path.empty() && options_.mode != StepMode::in_situ) {
    return Status(Code::invalid_argument, "option record: needs mode=in_situ");
  }
  if (Status known = parse_balance_rule(options_.balance).status(); !known.ok()) return known;
  if (!options_.trace_path.empty()) {  // better now than after hours
    TAILRACE_TRY(
        comm_->agree(comm_->is_root() ? write_trace_file(options_.trace_path, "") : Status()));
  }
  // Asked once, here, so that no step has to; and first, since a profile may be missing.
  const auto keep = [this](const std::string& line) { remarks_.push_back(line); };
  TAILRACE_TRY(need_profile(*comm_, options_, keep, path_, profile_));
  TAILRACE_TRY(append ? output_.open(*comm_, path_, options_)
                      : output_.create(*comm_, path_, options_));
  share_within_node();
  return Status();
}

/// Memory through which the ranks of a node can write for each other. Without it each writes its
/// own. Collective: an allreduce, and what it takes to make a window.
void FileWriter::share_within_node() {
  const bool balances = options_.mode == StepMode::in_situ &&
                        *parse_balance_rule(options_.balance) != BalanceRule::off;
  if (!balances && !options_.node_writes) return;
  // A window of equal parts, as large as the rank with the least memory may have.
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
        (options_.node_writes ? "writers=node: each rank writes its own: " : "no balancing: ") +
        made.status().message());
  }
}

void FileWriter::on_log(LogCallback callback) {
  log_ = std::move(callback);
  if (!log_) return;
  if (const std::string before = output_.remark(); !before.empty()) log_(before);
  for (const std::string& line : std::exchange(remarks_, {})) log_(line);
}

// --- a step

Result<StepReport> FileWriter::end_step() {
  if (!output_.broken().ok()) return output_.broken();
  if (closed_) return Status(Code::invalid_argument, "the file is closed");
  const FineTimers fine;
  try {
    return options_.mode == StepMode::sync ? write_step() : hand_over_step();
  } catch (...) {
    forget_after_throw();
    throw;
  }
}

/// Its commit may be done: what was put must not be put again. Alone only: other ranks wait
/// elsewhere. With a step under way its lanes claim space, and keep what they have claimed.
void FileWriter::forget_after_throw() {
  if (comm_->n_ranks() > 1) return;
  if (flight_ == nullptr) {
    forget_step(true);
  } else {
    record_.forget_open_step();
    last_puts_.reset();
  }
}

/// Mode sync.
Result<StepReport> FileWriter::write_step() {
  Step step;
  step.start_s = clock_.now_s();
  StepOpening opening(*comm_, record_, last_puts_, guest_->numbers());
  opening.numbers().reduce(*comm_);
  Status done = prepare_step(step, opening);
  if (done.ok()) {
    step.attributes = std::exchange(record_.attributes, {});
    done = complete_step(step, {});
  }
  forget_step(!done.ok());
  if (!done.ok()) return done;
  return std::move(step.report);
}

/// @param opening  of which the ranks know the outcome.
Status FileWriter::prepare_step(Step& step, StepOpening& opening) {
  output_.tail().start_step();
  step.report.step_index = n_steps_;
  TAILRACE_TAKE(const bool repeats, opening.repeats());
  TAILRACE_TAKE(const bool joined, guest_->join());
  if (repeats && !joined) {
    repeat_last_step(step);
  } else if (!repeats) {
    TAILRACE_TRY(settle_step(step));
  } else {  // What has joined does not do so in the next step: that may repeat the last one again.
    const std::optional<PutPattern> puts = last_puts_;
    const std::vector<std::size_t> field_indices = last_field_indices_;
    const std::shared_ptr<const Ownership> ownership = last_ownership_;
    TAILRACE_TRY(settle_step(step));
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

/// The stages whose outcome depends on definitions and boxes alone: chunks, codecs, owners.
Status FileWriter::settle_step(Step& step) {
  std::vector<FieldState>& fields = record_.fields;
  last_puts_.reset();
  Status mine;
  TAILRACE_TRY(hear_what_is_there(fields, mine));
  ValueRanges ranges(fields);
  if (mine.ok()) mine = ranges.scanned();
  least_threads_ = n_threads();
  RankNumbers along = ranges.numbers();
  along.add(Reduction::min, least_threads_);
  Result<std::vector<std::size_t>> active = choose_chunk_shapes(*comm_, fields, mine, along);
  if (!active.ok()) return active.status();
  step.field_indices = std::move(*active);
  lineages_.inherit(fields);
  ranges.resolve_bounds(fields);
  TAILRACE_TRY(settle_codecs_and_owners(step));
  last_puts_ = repeatable_puts(record_);
  last_field_indices_ = step.field_indices;
  last_ownership_ = step.ownership;
  return Status();
}

/// What only rank 0 can look up: what the file has of the new fields. Nothing is said of a file
/// that is new: rank 0's failure is agreed on with what comes next.
Status FileWriter::hear_what_is_there(std::vector<FieldState>& fields, Status& mine) {
  if (appended_) TAILRACE_TRY(output_.finish_commit());  // what follows reads the file
  const auto look = [&] { return look_up_existing(output_.file(), path_, appended_, fields); };
  if (!appended_) {
    const auto makes_dataset = [](const FieldState& field) { return field.makes_dataset(); };
    // Else nothing is asked, and the metadata of the step before may still be in the making.
    const bool asked = std::any_of(fields.begin(), fields.end(), makes_dataset);
    if (comm_->is_root() && asked) mine = look();
    return Status();
  }
  const Result<Bytes> said = hear_rank_0(*comm_, [&](ByteWriter& words) {
    TAILRACE_TRY(look());
    pack_continued(fields, words);
    return Status();
  });
  if (!said.ok()) return said.status();
  ByteReader reader(*said);
  if (!is_any_continued(*said)) return Status();
  // What ranks reduce next depends on which fields are continued.
  return comm_->agree(local_part([&] {
    take_continued(reader, fields);
    return Status();
  }));
}

Status FileWriter::try_waiting(std::span<const std::size_t> field_indices) {
  std::vector<std::size_t> places;
  for (const std::size_t index : field_indices) places.push_back(record_.place_of(index));
  std::vector<FieldState> fields(record_.fields.size());  // Of the others only names count here.
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
  TAILRACE_TRY(hear_what_is_there(fields, mine));
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
  for (const std::size_t place : places) record_.fields[place].n_begun = fields[place].n_begun;
  return comm_->agree(possible);
}

/// What there must be besides: a way to hand them over, and memory.
Status FileWriter::check_tried(std::span<const std::size_t> places,
                               std::vector<FieldState>& fields) const {
  // Which codec it will be, its values say: the most hungry of the usual ones (trz, a preset that
  // tries decimals) takes so many chunks and a MiB.
  constexpr std::uint64_t kMostOfAnyCodec = 9;
  // What waits has the other half at most; windows for writes within the node are an eighth.
  const std::uint64_t window_bytes = shared_ != nullptr ? options_.memory_bytes / 8 : 0;
  const std::uint64_t there = options_.memory_bytes / 2 - window_bytes;
  for (const std::size_t place : places) {
    FieldState* const field = &fields[place];
    const FieldDefinition& definition = field->definition;
    if (in_front()) {
      return Status(Code::unsupported, definition.name() +
                                           ": layout=front serves new files of one step; steps "
                                           "that are gathered in a chunk are several");
    }
    if (!options_.record_path.empty()) {
      return Status(Code::unsupported,
                    definition.name() +
                        ": lab.record= is of steps that are alike; where steps are "
                        "gathered in a chunk, only some have chunks");
    }
    if (options_.has_target()) {
      return Status(Code::unsupported,
                    definition.name() + ": " +
                        (options_.target_bytes > 0 ? "target=size" : "target=psnr") +
                        "= speaks of a step; where " + std::to_string(definition.steps_per_entry) +
                        " are gathered in a chunk, most have no bytes. Give a bound");
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
    return Status(
        Code::out_of_memory,
        definition.name() + ": encoding a chunk of " + std::to_string(definition.steps_per_entry) +
            " steps needs " + bytes_text(needed) + " with codec " +
            std::string(ours ? auto_codec : plan.codec->name()) + ", half of the memory cap is " +
            bytes_text(options_.memory_bytes / 2) + "; raise memory= or lower chunk=");
  }
  return Status();
}

/// Of new fields whose entries go on where the file's last chunks are not full.
Status FileWriter::go_on_with_chunks(std::vector<FieldState>& fields) {
  for (FieldState& field : fields) {
    if (!field.is_new() || field.n_begun == 0) continue;
    field.beginnings = chunk_beginnings(field, output_.storage());
  }
  return Status();
}

/// Codecs need no owners, and owners no codecs: what all must agree on of both goes together.
Status FileWriter::settle_codecs_and_owners(Step& step) {
  const std::vector<FieldState*> active = step.active(record_);
  const std::vector<OwnedField> owned = owned_fields(active);
  Settlement settlement(*comm_, owned);
  RankNumbers waiting = settlement.numbers();
  TAILRACE_TRY(choose_codecs(step.report, waiting));
  BoundVerdicts verdicts(record_.fields);
  TAILRACE_TRY(prepare_books(*comm_, record_.fields));
  Status prepared = prepare_codecs(*comm_, record_.fields, options_.plugin_path,
                                   comm_->is_root() ? log_ : nullptr);
  if (prepared.ok()) prepared = local_part([&] { return go_on_with_chunks(record_.fields); });
  if (prepared.ok() && comm_->is_root()) prepared = check_continued_codecs(record_.fields);
  const auto check = [&](const Ownership& ownership) {
    TAILRACE_TRY(prepared);
    TAILRACE_TRY(check_pulled_chunks(owned, ownership));
    return options_.mode == StepMode::sync ? Status() : check_can_be_handed_over(active);
  };
  Result<Ownership> settled = settlement.finish(waiting, check, verdicts.numbers());
  if (!settled.ok()) return settled.status();
  verdicts.note(record_.fields);
  TAILRACE_TRY(check_bound_widths(record_.fields, words_of_steps));
  for (const FieldState& field : record_.fields) {
    if (!log_ || !comm_->is_root() || !field.makes_dataset()) continue;
    const std::string remark = bound_width_remark(field, words_of_steps);
    if (!remark.empty()) log_(remark);
  }
  step.ownership = std::make_shared<const Ownership>(std::move(*settled));
  return Status();
}

/// All that settle_step would find of a step that repeats the last one, as simulations go on.
void FileWriter::repeat_last_step(Step& step) const {
  step.field_indices = last_field_indices_;
  step.ownership = last_ownership_;
  step.report.profile = profile_name();
}

/// @param along  numbers of the ranks that are reduced with the step's.
Status FileWriter::complete_step(Step& step, const RankNumbers& along) {
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
  if (sizes_are_asked_for(active, options_)) {
    sums.add_forecasts(step.plan, learn_sizes(active, *step.ownership, step.plan, done.written));
  }
  BookLessons books(active, sums.numbers);
  sums.numbers.add_all(along);
  TAILRACE_TRY(publish(step, active, written, done.written, sums));
  sums.finish();
  if (options_.mode == StepMode::sync) report.step_s += sums.publish_s;
  books.learn(*comm_, report);
  lineages_.keep(active, report);
  return Status();
}

/// What codec=auto and a target come to. Errors are agreed.
Status FileWriter::choose_codecs(StepReport& report, RankNumbers& waiting) {
  const double start_s = clock_.now_s();
  TAILRACE_TRY(choose_codecs_for(*comm_, record_.fields, options_, *profile_,
                                 {n_threads(), least_threads_}, waiting));
  report.profile = profile_name();
  report.choose_s = clock_.now_s() - start_s;
  return Status();
}

std::string FileWriter::profile_name() const {
  if (!profile_->built_in) return profile_->host;
  return profile_->processor.empty() ? "typical values" : "typical values, scaled to this core";
}

/// What the step will take, in which order, and where it goes. Errors are agreed.
Status FileWriter::plan(std::span<FieldState* const> active, Step& step) {
  StepPlan& plan = step.plan;
  plan.fields = make_field_plans(active);
  reserve_by_shape(*comm_, output_.tail(), options_.alignment_bytes, plan.fields);
  if (!sizes_are_asked_for(active, options_)) return Status();
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
    // Nobody depends on it: it is told with all that the step comes to.
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
// Chunks follow the metadata, so the length of these must be known before the first chunk has a
// place: rank 0 makes all of them in memory, with a chunk index of as many entries as there are
// chunks, and counts. A later step's would lie behind the first one's chunks.

/// The same on every rank: the options are.
Status FileWriter::check_front() const {
  if (!in_front()) return Status();
  const auto refused = [](const std::string& what) {
    return Status(Code::unsupported, "layout=front serves new files of one step: " + what);
  };
  if (appended_) return refused("\"" + path_ + "\" is opened to be added to");
  if (options_.mode != StepMode::sync) return refused("it goes with mode=sync alone");
  return Status();
}

Result<std::size_t> FileWriter::define_field(const FieldDefinition& definition) {
  TAILRACE_TRY(check_door(definition.options, options_.door).within(definition.name()));
  if (!in_front()) TAILRACE_TRY(check_front_of_file(definition.options).within(definition.name()));
  // Refused here, it is not noted for end_step: the field can be defined otherwise, or left out.
  const bool may_continue = appended_ && definition.options.over_time;
  if (!may_continue && !options_.has_target() && check_definition(definition).ok()) {
    TAILRACE_TRY(local_part([&] { return try_definition(definition, options_.plugin_path); }));
  }
  return record_.define_field(definition);
}

/// Take room for all metadata before anybody claims a place. Collective: an agreement.
Status FileWriter::reserve_front(std::span<FieldState* const> active) {
  if (!in_front()) return Status();
  if (n_steps_ > 0) {
    return Status(Code::unsupported,
                  "layout=front serves new files of one step: \"" + path_ + "\" has one");
  }
  const Notes notes = options_.notes;  // The file is new.
  const auto make = [&](Hdf5File& file) {
    if (before_datasets_) TAILRACE_TRY(before_datasets_(file));
    Updates updates = updates_of(active, notes);
    std::vector<std::vector<WrittenChunk>> by_plan(active.size());
    std::uint64_t address = std::uint64_t{1} << 60;  // nowhere: behind whatever the file gets
    for (std::size_t p = 0; p < active.size(); ++p) {
      const FieldState& field = *active[p];
      const std::uint64_t n_chunks = field.grid().n_chunks();
      for (std::uint64_t c = 0; c < n_chunks; ++c) by_plan[p].push_back({p, c, address++, 1, 0});
      address += field.definition.raw_bytes();
    }
    TAILRACE_TRY(publish_datasets(file, updates, by_plan));
    TAILRACE_TRY(publish_attributes(file, record_.attributes));
    if (!options_.bare_exact) TAILRACE_TRY(notes_of_file_.tell(file, notes));
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
void FileWriter::balance(Step& step) {
  if (shared_ == nullptr) return;
  if (!options_.node_writes) {
    step.writers = balance_step(*comm_, *shared_, *parse_balance_rule(options_.balance),
                                *step.ownership, step.plan);
  }
  shared_->start_step(++n_shared_steps_);
}

std::unique_ptr<Executor> FileWriter::make_executor(Step& step) {
  if (lane_stock_ == nullptr) {
    const bool beside = options_.mode != StepMode::sync;
    lane_stock_ =
        std::make_unique<LaneStock>(n_threads(), beside ? Manners::waiting : Manners::equal);
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
  // The first of the node: MPI moves there for the node's claims, too (exec/mpi_tail).
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

void FileWriter::trace_plan_of(const Step& step, double start_s) {
  if (!options_.trace) return;
  const bool by_application = options_.mode == StepMode::in_situ && n_threads() == 0;
  trace_plan(trace_, comm_->rank(), start_s, by_application ? 0 : 1, step.plan.timeline,
             step.ownership->jobs, step.plan.fields, step.plan.forecasts);
}

/// @returns this rank's own failure.
Status FileWriter::encode_and_write(Step& step, ExecutorReport& done, double& sync_s) {
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
    trace_.add({TraceEvent::Kind::sync, comm_->rank(), io_lane_number, -1, -1, start_s,
                start_s + sync_s, 0, 0});
  }
  return synced;
}

/// Our own encode threads. In mode in_situ the application's thread does it unless some are asked
/// for.
std::uint64_t FileWriter::n_threads() const {
  if (options_.mode == StepMode::in_situ) return options_.n_threads;
  return threads_of_each(options_.n_threads, *comm_);
}

// --- publishing

/// @param own  this rank's failure; nothing is published then, on any rank.
Status FileWriter::publish(Step& step, std::span<FieldState* const> active, const Status& own,
                           const std::vector<WrittenChunk>& written, StepSums& sums) {
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
  for (FieldState* field : active) {  // First: nothing here can fail.
    field->life = FieldLife::in_file;
    ++field->n_entries;
    field->n_begun = 0;
    field->begun_chunks = {};
    field->beginnings.reset();
  }
  ++n_steps_;
  sums.keep_max_errors();
  output_.commit_is_finished();
  if (options_.mode == StepMode::sync) {
    output_.committed();
  } else {
    output_.commit_is_pending();
  }
  return Status();
}

FileWriter::Updates FileWriter::updates_of(std::span<FieldState* const> active, Notes notes) const {
  Updates updates;
  for (const FieldState* field : active) {
    updates.of_datasets.push_back(update_of(*field, notes));
    const bool has_chunks = !updates.of_datasets.back().dataset.chunk_shape.empty();
    updates.n_before.push_back(has_chunks ? field->n_entries * field->grid().n_chunks() : 0);
    updates.begun.push_back(field->begun_chunks);
  }
  return updates;
}

/// @param by_plan  sorted by chunk index.
Status FileWriter::publish_datasets(Hdf5File& file, Updates& updates,
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

Status FileWriter::publish_at_root(const Step& step, std::span<FieldState* const> active,
                                   GatheredChunks&& chunks, StepReport& report) {
  const double start_s = clock_.now_s();
  struct UpdatesAndChunks {
    Updates updates;
    GatheredChunks chunks;
  };
  const Notes notes = notes_of_file_.settle(output_.file(), options_.notes, appended_);
  const auto all = std::make_shared<UpdatesAndChunks>(
      UpdatesAndChunks{updates_of(active, notes), std::move(chunks)});
  const bool at_once = options_.mode == StepMode::sync;
  // All that it needs it takes along: the next step may be recorded meanwhile.
  const auto publish = [this, at_once, all, notes, attributes = step.attributes,
                        before = before_datasets_, after = after_datasets_](Hdf5File& file) {
    const double publish_start_s = clock_.now_s();
    if (before) TAILRACE_TRY(before(file));
    TAILRACE_TRY(publish_datasets(file, all->updates, all->chunks.take_sorted()));
    TAILRACE_TRY(publish_attributes(file, attributes));
    if (!options_.bare_exact) TAILRACE_TRY(notes_of_file_.tell(file, notes));
    if (after) TAILRACE_TRY(after(file));
    trace_root(TraceEvent::Kind::index, at_once ? 0 : commit_lane_number, publish_start_s,
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
    // Before anything begins: a failure below leaves nothing under way.
    TAILRACE_TAKE(report.file_bytes, output_.storage().file_bytes());
    const auto traced = [this](const std::function<Status()>& write) {
      const double write_start_s = clock_.now_s();
      const Status written = write();
      trace_root(TraceEvent::Kind::commit, commit_lane_number, write_start_s, clock_.now_s());
      return written;
    };
    const bool ours_alone = !before_datasets_ && !after_datasets_;
    TAILRACE_TRY(output_.start_commit_at_root(publish, ours_alone, traced));
  }
  report.commit_s = clock_.now_s() - published_s;
  trace_root(TraceEvent::Kind::commit, 0, published_s, published_s + report.commit_s);
  return Status();
}

void FileWriter::trace_root(TraceEvent::Kind kind, std::int32_t lane, double start_s,
                            double end_s) {
  if (options_.trace) trace_.add({kind, comm_->rank(), lane, -1, -1, start_s, end_s, 0, 0});
}

/// Forget what was put; after a failure also hand the step's space back.
void FileWriter::forget_step(bool failed) {
  record_.forget_step(failed);
  if (failed) last_puts_.reset();
  if (failed && output_.broken().ok()) output_.drop_claims();
}

// --- the end

Status FileWriter::usable() const {
  if (!output_.broken().ok()) return output_.broken();
  return closed_ ? Status(Code::invalid_argument, "the file is closed") : Status();
}

Status FileWriter::close_after(bool more_is_open, const std::function<Status()>& end_open_step,
                               const std::function<Status()>& end_all) {
  if (closed_) return Status(Code::invalid_argument, "the file is closed already");
  Status ended = output_.broken();
  if (ended.ok()) {
    const bool never_committed = !output_.in_place() && !output_.pending();
    const bool open = more_is_open || record_.anything();
    std::uint64_t any_open = open || (never_committed && flight_ == nullptr) ? 1 : 0;
    comm_->allreduce(std::span<std::uint64_t>(&any_open, 1), Reduction::max);
    if (any_open != 0) ended = end_open_step();
    // Also after a step that has failed: the commit of the one before may be under way.
    const Status waited = end_all();
    if (ended.ok()) ended = waited;
    if (ended.ok() && !options_.record_path.empty()) {
      ended = recorder_.write(*comm_, options_.record_path);
    }
  }
  const Status traced = output_.in_forked_child() ? Status() : write_trace();
  if (ended.ok()) ended = traced;
  closed_ = true;
  if (flight_ == nullptr) lane_stock_.reset();  // Else this is a forked child's copy.
  const Status finished = output_.close(true);
  return ended.ok() ? finished : ended;
}

/// Without close() this rank may be alone here, so nothing collective happens.
FileWriter::~FileWriter() {
  const bool of_parent = output_.in_forked_child();
  if (of_parent) {  // Its threads are the parent's, and may have been at work on these.
    (void)flight_.release();
    (void)lane_stock_.release();
  }
  if (closed_ && !of_parent) return;
  if (flight_ != nullptr) output_.tail().raise_failure();  // so that its lanes drop what is left
  flight_.reset();
  comm_->abandon();
  if (shared_ != nullptr) shared_->abandon();
  output_.abandon();
}

/// Write the trace that was asked for by name. Collective, also after a failure: then it tells why.
Status FileWriter::write_trace() {
  if (options_.trace_path.empty()) return Status();
  const std::vector<TraceEvent> events = gather_trace();
  if (!comm_->is_root()) return comm_->agree(Status());
  return comm_->agree(write_trace_file(options_.trace_path, trace_json(events, field_paths())));
}

std::vector<TraceEvent> FileWriter::gather_trace() { return gather_events(*comm_, trace_); }

namespace {

Result<std::unique_ptr<Writer>> make_writer(std::unique_ptr<Comm> comm, const std::string& path,
                                            const FileOptions& options, bool append) {
  auto writer = std::make_unique<GatheringWriter>(std::move(comm), path, options);
  if (Status started = writer->start(append); !started.ok()) return started;
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::create(std::unique_ptr<Comm> comm, const std::string& path,
                                               const FileOptions& options) {
  return make_writer(std::move(comm), path, options, false);
}

Result<std::unique_ptr<Writer>> Writer::open(std::unique_ptr<Comm> comm, const std::string& path,
                                             const FileOptions& options) {
  return make_writer(std::move(comm), path, options, true);
}

Shape Writer::choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                 int n_ranks) {
  return chunk_shape_to_share(shape, dtype_bytes(dtype), chunk_bytes,
                              static_cast<std::uint64_t>(n_ranks));
}

}  // namespace tailrace
