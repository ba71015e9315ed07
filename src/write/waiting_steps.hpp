// WaitingSteps: copies of one rank's values of a field's steps, as boxes of a chunk that holds
// several steps.
//
// A box that repeats in the next step is stored after its last values. Both are then one box of the
// chunk, with time as first dimension. If boxes change, new runs begin. A run in the chunk's first
// step, or of a box that has repeated, gets memory for all remaining steps of the chunk; any other
// run for one step.
//
// Not collective. Only the caller's thread.

#pragma once

#include <cstdint>
#include <vector>

#include "exec/field_plan.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Buffered steps of one field on one rank.
class WaitingSteps {
 public:
  /// One box in consecutive steps.
  struct Run {
    Box box;                       ///< Box without the time dimension.
    std::uint64_t first_step = 0;  ///< Position of the first step in the chunk.
    std::uint64_t n_steps = 0;
    std::uint64_t n_places = 0;  ///< Number of steps that fit its memory.
    std::uint64_t step_bytes = 0;
    Buffer values;  ///< Row-major, time as first dimension.

    std::uint64_t end_step() const { return first_step + n_steps; }
    Box box_in_chunk() const;
  };

  /// Complete steps of the chunk: those in the file, then those that wait here.
  std::uint64_t n_steps() const { return n_steps_; }
  std::uint64_t n_in_file() const { return n_in_file_; }
  const std::vector<Run>& runs() const { return runs_; }
  std::uint64_t held_bytes() const { return held_bytes_; }

  /// Target of a box of the next step; valid until the next put().
  struct Place {
    std::size_t run = 0;              ///< Run that it continues; runs().size(): a new run.
    std::uint64_t n_places = 0;       ///< Number of steps for which a new run gets memory.
    std::uint64_t step_bytes = 0;     ///< Bytes of its values.
    std::uint64_t bytes_to_take = 0;  ///< Bytes that put() allocates.
  };
  /// Find the target of a box. Cost: O(1) if boxes arrive in the order of the previous step, else
  /// O(log n), plus O(n log n) once a step.
  Place place_for(const Box& box, std::size_t element_bytes, std::uint64_t n_per_chunk);
  /// Copy the values of the box to its target. @error out_of_memory
  Status put(const Place& place, const PutRecord& put, std::size_t element_bytes);
  /// Place the open step, the field's first here, after the chunk's first `n_in_file` steps, which
  /// the file has. These are fewer than the chunk holds. Copies of the open step stand in for them
  /// in memory, only for the shape.
  void stand_behind(std::uint64_t n_in_file);
  /// Make the open step a complete, waiting one.
  void keep_step();
  /// Release memory that will not be used. Moves values; pointers to them become invalid.
  void trim();
  /// Drop the values put of the open step.
  void drop_open_step();
  /// Drop the last complete step.
  void drop_last_step();

 private:
  const std::vector<std::size_t>& continued_by_box();
  void drop_from(std::uint64_t step);

  std::vector<Run> runs_;
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_in_file_ = 0;
  std::uint64_t held_bytes_ = 0;
  /// Next run to check, while boxes are put in the order of the previous step.
  std::size_t next_ = 0;
  /// Indices into runs_ that the open step can continue, sorted by box.
  std::vector<std::size_t> by_box_;
  bool by_box_is_made_ = false;
};

}  // namespace tailrace
