// Crash points, for the tests of commits. Steps are added to a file in several ways, and the
// operations on storage are recorded. Judges rebuild the file as a crash would leave it and read it
// with stock HDF5. The full tier judges every point, the merge tier every fifth. The environment
// variable TAILRACE_CRASH_POINT_STRIDE=n overrides the tier, because a sanitizer slows HDF5's
// reading tenfold.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "container_support.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace::test {

constexpr std::size_t kNStepsUsual = 12;

/// A method of adding steps to a file and of checking them.
class Series {
 public:
  virtual ~Series() = default;
  virtual Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) = 0;
  /// True if the step can be read completely.
  virtual bool whole(const std::string& path, std::size_t step) = 0;
  /// True if the uncommitted step is absent or complete.
  virtual bool sane(const std::string& path, std::size_t step) = 0;

  bool old_forms = false;  ///< Use Hdf5File::Settings::old_forms.
};

/// One group per step with two datasets and attributes.
class GroupPerStep : public Series {
 public:
  explicit GroupPerStep(std::string parent = "") : parent_(std::move(parent)) {}

  Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) override;
  bool whole(const std::string& path, std::size_t step) override;
  bool sane(const std::string& path, std::size_t step) override;

 private:
  std::string step_group(std::size_t step) const;

  std::string parent_;
  ChunkGrid grid_{{40, 6}, {9, 6}};
};

/// Two datasets that grow along their first dimension; step 0 creates them.
class GrowingDatasets : public Series {
 public:
  Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) override;
  bool whole(const std::string& path, std::size_t step) override;
  bool sane(const std::string& path, std::size_t step) override;

 private:
  std::uint64_t row_ = 24;
};

struct Tally {
  std::size_t n_points = 0;
  std::size_t n_judged = 0;
  std::size_t n_damaged = 0;     ///< A committed step reads wrong values.
  std::size_t n_torn = 0;        ///< Points within a write (judge_recovered).
  std::size_t n_half_steps = 0;  ///< The step in progress is neither absent nor complete.
  bool apart = false;            ///< Judge in child processes, because some points will be damaged.
};

struct Recording {
  std::vector<std::byte> start;  ///< The file before the first operation.
  std::vector<Operation> operations;
  std::size_t n_steps = 0;
};

/// Creates a file, or appends to the existing one, and records `n_steps` commits.
Recording record(Series& series, const std::string& path, bool append, bool journal,
                 unsigned gap_max, std::size_t n_steps = kNStepsUsual);

/// The content of a file.
std::vector<std::byte> content_of(const std::string& path);

/// Rebuilds every crash point, clean and torn, as a reader would find it without recovery.
void judge_all(Series& series, const std::string& path, const Recording& recording, Tally& clean,
               Tally& torn);

/// Position at which a write is cut: in its middle, or at a page border that it crosses, like a
/// kill.
enum class Tear : std::uint8_t { in_half, between_pages };

/// Works like judge_all, but runs recovery on every point first; torn journals are tried, too.
void judge_recovered(Series& series, const std::string& path, const Recording& recording,
                     Tally& tally, Tear tear = Tear::in_half);

/// Power loss: writes since the last sync reach the disk in any order. Tries each write alone, and
/// all writes except each one. Recovery runs if a journal exists.
void judge_reordered(Series& series, const std::string& path, const Recording& recording,
                     Tally& tally);

void report(const char* name, const Tally& tally);

}  // namespace tailrace::test
