// Outcomes of steps: which steps are certainly in the file, what a failure loses, and the steps
// that wait until a chunk of several is full (gathered_steps).

#include <algorithm>
#include <utility>

#include "exec/executor.hpp"
#include "exec/thread_team.hpp"
#include "output/output.hpp"
#include "write/write.hpp"

namespace tailrace {

// --- Outcome of a step.

/// If memory is short, `call` may throw before it completes the step in flight, or when everything
/// is done. So the outcome is read from the counters.
template <class Call>
auto Writer::conclude(Call&& call, const bool& ends_step) {
  const std::uint64_t n_before = n_steps_;
  const std::uint64_t n_handed_over_before = n_handed_over_;
  const std::uint64_t flight = flight_number_;
  bool flight_is_lost = false;
  const auto decide = [&](bool returned_well) {
    const bool committed = n_steps_ > n_before;
    const bool handed_over = n_handed_over_ > n_handed_over_before;
    // A step that is still in flight: its lanes read the waiting steps.
    const bool flies_on = flight_ != nullptr && !handed_over;
    if (committed) note_published(defers() ? flight_number_ : n_ended_);
    if (in_flight_ && !flies_on) {
      in_flight_ = false;
      if (committed) {
        gathered_.flight_is_committed();
      } else {
        first_of_chunks_.erase(flight_number_);
        gathered_.take_flight_back();
        flight_is_lost = true;
      }
    }
    if (handed_over) flight_number_ = n_ended_;
    const bool step_went_well = defers() ? handed_over : committed;
    any_failed_ = any_failed_ || flight_is_lost || (ends_step && !step_went_well);
    if (ends_step && step_went_well) {
      if (const std::optional<std::uint64_t> first = gathered_.keep_step(n_ended_)) {
        spare_.key() = n_ended_;
        spare_.mapped() = *first;
        first_of_chunks_.insert(std::move(spare_));
      }
      in_flight_ = defers();
    } else if (ends_step || !returned_well) {
      gathered_.drop_step();
    }
    if (ends_step) ++n_ended_;
    if (!output_.pending() && output_.broken().ok()) committed_ = published_;
  };
  try {
    auto result = call();
    decide(result.ok());
    if (result.ok() || closed_ || out_of_step_) return result;
    if (!output_.broken().ok()) return decltype(result)(with_uncertain(result.status()));
    if (!flight_is_lost && !ends_step) return result;
    const std::uint64_t last = ends_step ? n_ended_ - 1 : flight;
    return decltype(result)(with_lost(result.status(), flight_is_lost ? flight : last, last));
  } catch (...) {
    decide(false);
    throw;
  }
}

/// Record that a step has its commit; the commit of the step before it is then done.
void Writer::note_published(std::uint64_t number) {
  committed_ = published_;
  published_ = number;
  if (!committed_) return;
  first_of_chunks_.erase(first_of_chunks_.begin(), first_of_chunks_.upper_bound(*committed_));
}

std::optional<std::uint64_t> Writer::last_committed_step() const {
  if (!committed_) return std::nullopt;
  std::uint64_t end = gathered_.first_waiting(gathered_.waiting_fields(), *committed_ + 1);
  for (auto chunks = first_of_chunks_.upper_bound(*committed_); chunks != first_of_chunks_.end();
       ++chunks) {
    end = std::min(end, chunks->second);
  }
  return end > 0 ? std::optional(end - 1) : std::nullopt;
}

std::string last_committed_text(const std::optional<std::uint64_t>& step) {
  return step ? "the last step known to be in the file is step " + std::to_string(*step)
              : "no step of this run is known to be in the file";
}

namespace {

/// "step 3", "steps 3 and 4", "steps 3 to 5"
std::string steps_text(std::uint64_t first, std::uint64_t last) {
  if (last == first) return "step " + std::to_string(first);
  return "steps " + std::to_string(first) + (last == first + 1 ? " and " : " to ") +
         std::to_string(last);
}

}  // namespace

/// Add to a failure which steps it has lost. Other doors have no steps.
Status Writer::with_lost(const Status& failure, std::uint64_t first, std::uint64_t last) const {
  if (options_.door != Door::steps) return failure;
  return Status(failure.code(), failure.message() + "; " + steps_text(first, last) +
                                    (last == first ? " is lost, and " : " are lost, and ") +
                                    last_committed_text(last_committed_step()) +
                                    " (counted from 0)");
}

/// Add to a failure after which nothing can be written which steps may be lost.
Status Writer::with_uncertain(const Status& failure) const {
  const std::optional<std::uint64_t> known = last_committed_step();
  const std::uint64_t first = known ? *known + 1 : 0;
  if (options_.door != Door::steps || n_ended_ == 0) return failure;
  return Status(
      failure.code(),
      failure.message() + "; " + last_committed_text(known) +
          (first < n_ended_ ? ", and " + steps_text(first, n_ended_ - 1) + " may be lost" : "") +
          " (counted from 0)");
}

// --- Agreement on the call that the ranks make.

/// Numbers that travel with the first message of each collective call, equally many for each.
RankNumbers Writer::numbers_along(bool anything_open, bool any_put) {
  any_open_ = anything_open ? 1 : 0;
  any_put_ = any_put ? 1 : 0;
  RankNumbers along = gathered_.numbers();
  along.add(Reduction::max, any_open_, any_put_);
  return along;
}

/// End all collective work, because ranks make different calls. Collective; after it no call of
/// this file is. @returns the error that names the calls.
Status Writer::go_out_of_step(StepOpening& opening) {
  out_of_step_ = true;
  Status differs = opening.repeats().status();
  if (differs.code() == Code::disagreement) {
    differs = Status(differs.code(), differs.message() +
                                         "; every rank must call end_step, wait and close of this "
                                         "file in the same order");
  }
  (void)output_.finish_commit();  // The step before is whole; its own failure matters less.
  return output_.break_off(differs, "nothing more can be written");
}

// --- Outcome of a file that ends without close().

void Writer::abandon() {
  if (closed_ || abandoned_ || output_.in_forked_child()) return;
  abandoned_ = true;
  if (flight_ != nullptr) output_.tail().raise_failure();  // so that its lanes drop the rest
  flight_.reset();
  lane_stock_.reset();
  comm_->abandon();
  if (shared_ != nullptr) shared_->abandon();
  last_commit_is_known_ = output_.abandon();
  if (last_commit_is_known_ && output_.broken().ok()) committed_ = published_;
}

bool Writer::loses_steps(std::uint64_t n_reported) const {
  const std::optional<std::uint64_t> last = last_committed_step();
  return std::max(n_reported, last ? *last + 1 : 0) < n_ended_;
}

std::string Writer::outcome_text() const {
  if (n_ended_ == 0) return "no step was ended, and nothing was written";
  const std::optional<std::uint64_t> last = last_committed_step();
  const std::uint64_t first_lost = last ? *last + 1 : 0;
  const bool open = record_.any_put() || gathered_.any_put();
  const std::string dropped = open ? "; the values put after the last end_step are lost" : "";
  if (first_lost == n_ended_ && !any_failed_) {
    return (n_ended_ == 1 ? "its only step is in it"
                          : "all " + std::to_string(n_ended_) + " steps are in it") +
           dropped;
  }
  std::string text;
  if (first_lost < n_ended_) {
    const bool certain = abandoned_ && last_commit_is_known_;
    const bool one = first_lost + 1 == n_ended_;
    text = steps_text(first_lost, n_ended_ - 1) +
           (certain ? (one ? " is lost, " : " are lost, ") : " may be lost, ");
  }
  text += last ? "the last step in it is step " + std::to_string(*last) : "no step is in it";
  return text + " (counted from 0)" + dropped;
}

// --- Calls of the application that concern waiting steps, too.

Result<std::size_t> Writer::define_field(const FieldDefinition& definition) {
  std::vector<NamedDataset> named(definition.dimensions.empty() ? 0 : 1);
  for (NamedDataset& dataset : named) {
    const bool grows = definition.options.over_time;
    dataset = {definition.path, definition.dimensions, definition.shape, grows};
    if (grows) dataset.shape.insert(dataset.shape.begin(), 1);
  }
  if (Status fits = DimensionTable().add(named); !fits.ok()) return record_.note(fits);
  const std::uint64_t n_steps = GatheredSteps::steps_in_chunk(definition);
  if (n_steps > 1) {
    return gathered_.define(definition, n_steps,
                            [this](const FieldDefinition& entry) { return define_entry(entry); });
  }
  if (n_steps == 0) return define_entry(definition);
  FieldDefinition plain = definition;
  plain.options.chunk_shape->erase(plain.options.chunk_shape->begin());
  return define_entry(plain);
}

Status Writer::put(std::size_t field_index, const Box& box, const void* values, bool copy,
                   const std::int64_t* strides) {
  if (gathered_.holds(field_index)) return gathered_.put(field_index, box, values, strides);
  return record_.put(field_index, box, values, copy, strides);
}

Status Writer::put_source(std::size_t field_index, const Box& box, BoxSource& source) {
  if (gathered_.holds(field_index)) return gathered_.refuse_source(field_index);
  return record_.put_source(field_index, box, source);
}

Status Writer::put_device(std::size_t field_index, const Box& box, const void* values,
                          const CopyFromDevice& copy) {
  if (gathered_.holds(field_index)) return gathered_.put_device(field_index, box, values, copy);
  return record_.put_device(field_index, box, values, copy);
}

Result<StepReport> Writer::end_step() {
  if (abandoned_) return usable();
  set_aside();
  Result<StepReport> ended = conclude([this] { return end_recorded_step(); }, true);
  if (ended.ok()) gathered_.count_waiting(*ended);
  return ended;
}

Result<std::optional<StepReport>> Writer::wait() {
  if (abandoned_) return usable();
  bool ends_step = false;  // A failure within close() also drops the open step.
  const auto complete = [&] {
    Result<std::optional<StepReport>> done = complete_last_step();
    ends_step = !done.ok() && closing_ && any_open_ != 0;
    return done;
  };
  Result<std::optional<StepReport>> waited = conclude(complete, ends_step);
  if (waited.ok() && *waited) gathered_.count_waiting(**waited);
  return waited;
}

/// Reserve memory for waiting steps. Lanes that run while the application puts cannot release
/// theirs, so half of the cap is reserved in advance.
void Writer::set_aside() {
  held_aside_bytes_ = gathered_.held_bytes();
  const bool half = defers() && !gathered_.empty();
  set_aside_bytes_ = half ? options_.memory_bytes / 2 : held_aside_bytes_;
}

// --- Waiting steps, when the file is closed.

/// Write all waiting steps, in partly filled chunks. If that fails, write each field separately, so
/// that one that cannot be written does not lose the others.
Status Writer::write_what_waits() {
  const std::vector<std::size_t> waiting = gathered_.waiting_fields();
  if (waiting.empty()) return Status();
  Status written = write_now(waiting);
  if (written.ok() || waiting.size() == 1 || !usable().ok()) return written;
  written = Status();
  for (const std::size_t index : waiting) {
    const Status alone = write_now({index});
    if (written.ok()) written = alone;
  }
  return written;
}

Status Writer::write_now(const std::vector<std::size_t>& field_indices) {
  set_aside();
  const std::uint64_t n_before = n_steps_;
  const std::uint64_t first = gathered_.first_waiting(field_indices, n_ended_);
  gathered_.write_now(field_indices);
  // A commit counts, whatever was thrown after it.
  const auto is_written = [&] { return n_steps_ > n_before; };
  try {
    Status written = end_recorded_step().status();
    if (written.ok() && defers()) written = complete_last_step().status();
    gathered_.end_write_now(is_written());
    return written.ok() || is_written() ? written : with_lost(written, first, n_ended_ - 1);
  } catch (...) {
    gathered_.end_write_now(is_written());
    throw;
  }
}

}  // namespace tailrace
