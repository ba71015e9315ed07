// Runs of boxes that are continued, begun, and cut.

#include "write/waiting_steps.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace tailrace {

Box WaitingSteps::Run::box_in_chunk() const {
  Box whole = box;
  whole.start.insert(whole.start.begin(), first_step);
  whole.count.insert(whole.count.begin(), n_steps);
  return whole;
}

/// The run that this box continues in the next step; runs_.size(): none has room. As a rule boxes
/// come in the order in which they came before.
std::size_t WaitingSteps::find(const Box& box) {
  const auto continues = [&](const Run& run) {
    return run.end_step() == n_steps_ && run.n_steps < run.n_places && run.box == box;
  };
  for (std::size_t n = 0; n < runs_.size(); ++n) {
    const std::size_t i = (next_ + n) % runs_.size();
    if (continues(runs_[i])) return i;
  }
  return runs_.size();
}

std::uint64_t WaitingSteps::places_for(const Box& box, std::uint64_t n_per_chunk) const {
  if (n_steps_ == 0) return n_per_chunk;
  const bool repeats = std::any_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return run.end_step() == n_steps_ && run.box == box;
  });
  return repeats ? n_per_chunk - n_steps_ : 1;
}

std::uint64_t WaitingSteps::bytes_to_take(const Box& box, std::size_t element_bytes,
                                          std::uint64_t n_per_chunk) {
  if (find(box) < runs_.size()) return 0;
  return places_for(box, n_per_chunk) * box.n_elements() * element_bytes;
}

Status WaitingSteps::put(const Box& box, std::size_t element_bytes, std::uint64_t n_per_chunk,
                         const std::byte* values) {
  std::size_t i = find(box);
  if (i == runs_.size()) {
    Run run;
    run.box = box;
    run.first_step = n_steps_;
    run.n_places = places_for(box, n_per_chunk);
    run.step_bytes = box.n_elements() * element_bytes;
    run.values = Buffer(run.n_places * run.step_bytes);
    if (!run.values.allocated()) {
      return Status(Code::out_of_memory,
                    "no memory to keep a box of " + std::to_string(run.n_places) + " steps");
    }
    held_bytes_ += run.values.capacity();
    runs_.push_back(std::move(run));
  }
  Run& run = runs_[i];
  std::memcpy(run.values.data() + run.n_steps * run.step_bytes, values, run.step_bytes);
  ++run.n_steps;
  next_ = i + 1;
  return Status();
}

void WaitingSteps::keep_step() {
  ++n_steps_;
  next_ = 0;
}

void WaitingSteps::trim() {
  for (Run& run : runs_) {
    if (run.end_step() == n_steps_ || run.n_steps == run.n_places) continue;
    const std::uint64_t used_bytes = run.n_steps * run.step_bytes;
    Buffer used = Buffer::copy_of({run.values.data(), used_bytes});
    if (!used.allocated()) continue;  // then it stays as it is
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
    held_bytes_ -= run.values.capacity();
    return true;
  };
  runs_.erase(std::remove_if(runs_.begin(), runs_.end(), gone), runs_.end());
  next_ = 0;
}

void WaitingSteps::drop_open_step() { drop_from(n_steps_); }

void WaitingSteps::drop_last_step() {
  drop_open_step();
  if (n_steps_ > 0) drop_from(--n_steps_);
}

}  // namespace tailrace
