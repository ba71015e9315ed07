// Runs of boxes: how they are continued, begun and cut.

#include "write/waiting_steps.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace tailrace {
namespace {

/// Order of boxes, for look-up.
bool before(const Box& a, const Box& b) {
  return a.start != b.start ? a.start < b.start : a.count < b.count;
}

/// Memory of a run in addition to its values: the larger part for boxes of a few elements.
std::uint64_t bytes_of_run(const Box& box) {
  return sizeof(WaitingSteps::Run) + 2 * box.rank() * sizeof(std::uint64_t);
}

std::uint64_t bytes_held_by(const WaitingSteps::Run& run) {
  return run.values.capacity() + bytes_of_run(run.box);
}

}  // namespace

Box WaitingSteps::Run::box_in_chunk() const {
  Box whole = box;
  whole.start.insert(whole.start.begin(), first_step);
  whole.count.insert(whole.count.begin(), n_steps);
  return whole;
}

/// Return the runs that reach up to the open step, sorted by box. Used if boxes arrive in another
/// order than in the step before; computed once a step.
const std::vector<std::size_t>& WaitingSteps::continued_by_box() {
  if (by_box_is_made_) return by_box_;
  by_box_.clear();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].end_step() == n_steps_) by_box_.push_back(i);
  }
  std::sort(by_box_.begin(), by_box_.end(),
            [&](std::size_t a, std::size_t b) { return before(runs_[a].box, runs_[b].box); });
  by_box_is_made_ = true;
  return by_box_;
}

WaitingSteps::Place WaitingSteps::place_for(const Box& box, std::size_t element_bytes,
                                            std::uint64_t n_per_chunk) {
  Place place;
  place.run = runs_.size();
  place.n_places = n_steps_ == 0 ? n_per_chunk : 1;
  const auto look_at = [&](std::size_t i) {
    const Run& run = runs_[i];
    if (run.end_step() != n_steps_ || run.box != box) return false;
    place.n_places = n_per_chunk - n_steps_;  // It repeats, so it will probably continue.
    if (run.n_steps < run.n_places) place.run = i;
    return true;
  };
  place.step_bytes = box.n_elements() * element_bytes;
  if (n_steps_ > 0 && !(next_ < runs_.size() && look_at(next_))) {
    const std::vector<std::size_t>& by_box = continued_by_box();
    auto found = std::lower_bound(
        by_box.begin(), by_box.end(), box,
        [&](std::size_t i, const Box& wanted) { return before(runs_[i].box, wanted); });
    // A repeated box within one step is an error, detected when the step ends.
    for (; found != by_box.end() && runs_[*found].box == box; ++found) {
      if (look_at(*found)) break;
    }
  }
  const bool begins = place.run == runs_.size();
  place.bytes_to_take = begins ? place.n_places * place.step_bytes + bytes_of_run(box) : 0;
  return place;
}

Status WaitingSteps::put(const Place& place, const PutRecord& put, std::size_t element_bytes) {
  const Box& box = put.box;
  if (place.run == runs_.size()) {
    Run run;
    run.box = box;
    run.first_step = n_steps_;
    run.n_places = place.n_places;
    run.step_bytes = place.step_bytes;
    run.values = Buffer(run.n_places * run.step_bytes);
    if (!run.values.allocated()) {
      return Status(Code::out_of_memory, "no memory for " + std::to_string(run.n_places) +
                                             " steps of box " + box_text(box));
    }
    runs_.push_back(std::move(run));
    held_bytes_ += bytes_held_by(runs_.back());
  }
  Run& run = runs_[place.run];
  put.copy_to(box, box, run.values.data() + run.n_steps * run.step_bytes, element_bytes);
  ++run.n_steps;
  next_ = place.run + 1;
  return Status();
}

void WaitingSteps::stand_behind(std::uint64_t n_in_file) {
  for (Run& run : runs_) {  // Each has one step, and memory for all steps of the chunk.
    for (std::uint64_t s = 1; s <= n_in_file; ++s) {
      std::memcpy(run.values.data() + s * run.step_bytes, run.values.data(), run.step_bytes);
    }
    run.n_steps += n_in_file;
  }
  n_steps_ = n_in_file_ = n_in_file;
  by_box_is_made_ = false;
}

void WaitingSteps::keep_step() {
  ++n_steps_;
  next_ = 0;
  by_box_is_made_ = false;
}

void WaitingSteps::trim() {
  for (Run& run : runs_) {
    if (run.end_step() == n_steps_ || run.n_steps == run.n_places) continue;
    const std::uint64_t used_bytes = run.n_steps * run.step_bytes;
    Buffer used = Buffer::copy_of({run.values.data(), used_bytes});
    if (!used.allocated()) continue;  // keep it untrimmed
    held_bytes_ -= run.values.capacity() - used.capacity();
    run.values = std::move(used);
    run.n_places = run.n_steps;
  }
}

void WaitingSteps::drop_from(std::uint64_t step) {
  for (Run& run : runs_) {
    if (run.end_step() > step) run.n_steps = step - std::min(run.first_step, step);
  }
  const auto gone = [this](const Run& run) {
    if (run.n_steps > 0) return false;
    held_bytes_ -= bytes_held_by(run);
    return true;
  };
  runs_.erase(std::remove_if(runs_.begin(), runs_.end(), gone), runs_.end());
  next_ = 0;
  by_box_is_made_ = false;
}

void WaitingSteps::drop_open_step() { drop_from(n_steps_); }

void WaitingSteps::drop_last_step() {
  drop_open_step();
  if (n_steps_ > 0) drop_from(--n_steps_);
}

}  // namespace tailrace
