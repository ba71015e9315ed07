// WaitingSteps: copies of what one rank has put of a field's steps, as the boxes of a chunk that
// holds several.
//
// A box that is put again in the next step goes behind its last values, so that both are one box of
// the chunk, with time in front. Where boxes change, new runs begin; memory is taken for one step
// of a box that has just come, else for all steps of the chunk that are left.
//
// Not collective, no thread but the caller's.

#pragma once

#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class WaitingSteps {
 public:
  /// One box in steps that follow each other.
  struct Run {
    Box box;                       ///< Without time.
    std::uint64_t first_step = 0;  ///< Of the chunk.
    std::uint64_t n_steps = 0;
    std::uint64_t n_places = 0;  ///< Steps for which there is memory.
    std::uint64_t step_bytes = 0;
    Buffer values;  ///< Row-major, time first.

    std::uint64_t end_step() const { return first_step + n_steps; }
    Box box_in_chunk() const;
  };

  /// Whole steps of the chunk that are there: those that wait, behind those in the file.
  std::uint64_t n_steps() const { return n_steps_; }
  std::uint64_t n_in_file() const { return n_in_file_; }
  const std::vector<Run>& runs() const { return runs_; }
  std::uint64_t held_bytes() const { return held_bytes_; }

  /// Where a box of the next step goes; good until the next put().
  struct Place {
    std::size_t run = 0;              ///< That it continues; behind the last one: it begins one,
    std::uint64_t n_places = 0;       ///< with memory for so many steps.
    std::uint64_t step_bytes = 0;     ///< Of its values.
    std::uint64_t bytes_to_take = 0;  ///< By put().
  };
  /// Cost: O(1) where boxes come as in the step before, else O(log n) and once a step O(n log n).
  Place place_for(const Box& box, std::size_t element_bytes, std::uint64_t n_per_chunk);
  /// Copy the values of the box. @error out_of_memory
  Status put(const Place& place, const Box& box, const std::byte* values);
  /// The file has the chunk's first steps, fewer than it is to have, and the open step is the first
  /// to come behind them. In their place lie copies of it, for the shape alone.
  void stand_behind(std::uint64_t n_in_file);
  /// The next step is whole: it waits.
  void keep_step();
  /// Give back memory that will not be used. Values move; whoever has been told where they lie must
  /// be done with them.
  void trim();
  /// What was put of the next step goes.
  void drop_open_step();
  /// The last of the whole steps goes.
  void drop_last_step();

 private:
  const std::vector<std::size_t>& continued_by_box();
  void drop_from(std::uint64_t step);

  std::vector<Run> runs_;
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_in_file_ = 0;
  std::uint64_t held_bytes_ = 0;
  std::size_t next_ = 0;             ///< Where boxes that are put as in the step before go on.
  std::vector<std::size_t> by_box_;  ///< Of runs_, those that the open step continues, sorted.
  bool by_box_is_made_ = false;
};

}  // namespace tailrace
