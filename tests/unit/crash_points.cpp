// Recording and judging of crash points.

#include "crash_points.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/recover.hpp"
#include "support/test_tier.hpp"

namespace tailrace::test {
namespace {

bool link_exists(const std::string& path, const std::string& link) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  return file.valid() && H5Lexists(file.get(), link.c_str(), H5P_DEFAULT) > 0;
}

std::string growing_path(unsigned k) { return "/run/field" + std::to_string(k); }

/// A file at one point of the recording.
struct CrashImage {
  std::vector<std::byte> bytes;

  void apply(const Operation& operation) {
    if (operation.kind == Operation::Kind::extend) {
      if (bytes.size() < operation.address) bytes.resize(operation.address);
    } else if (operation.kind == Operation::Kind::write) {
      apply_front(operation, operation.bytes.size());
    }
  }
  /// Applies the first `n` bytes of a write.
  void apply_front(const Operation& operation, std::size_t n) {
    if (operation.kind == Operation::Kind::write) {
      if (bytes.size() < operation.address + n) bytes.resize(operation.address + n);
      std::copy_n(operation.bytes.begin(), n, bytes.begin() + std::ptrdiff_t(operation.address));
    }
  }
  void store(const std::string& path) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
};

/// Result of judge(), and exit status of a child process.
enum Verdict : int { good = 0, damaged = 1, half_step = 2 };

Verdict verdict_on(Series& series, const std::string& path, std::size_t n_commits) {
  for (std::size_t step = 0; step < n_commits; ++step) {
    if (!series.whole(path, step)) return damaged;
  }
  return series.sane(path, n_commits) ? good : half_step;
}

/// Judges in a child process, because HDF5 does not always close a damaged file and reports it at
/// exit.
Verdict verdict_apart(Series& series, const std::string& path, std::size_t n_commits) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(verdict_on(series, path, n_commits));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? Verdict(WEXITSTATUS(status)) : damaged;
}

/// True if the next crash point is judged: every n-th, by the tier or the environment (see
/// crash_points.hpp). The points of the first commit are skipped: until that commit returns, the
/// file has a temporary name and no state of it is promised.
bool is_judged(std::size_t n_commits, Tally& tally) {
  static const std::size_t stride = [] {
    const char* text = std::getenv("TAILRACE_CRASH_POINT_STRIDE");
    const auto by_tier = static_cast<std::size_t>(tier_stride(9));
    return std::max<std::size_t>(text == nullptr ? by_tier : std::strtoul(text, nullptr, 10), 1);
  }();
  return n_commits > 0 && tally.n_points++ % stride == 0;
}

/// Judge the file at one crash point.
void judge(Series& series, const std::string& path, std::size_t n_commits, Tally& tally) {
  ++tally.n_judged;
  const Verdict verdict =
      tally.apart ? verdict_apart(series, path, n_commits) : verdict_on(series, path, n_commits);
  if (verdict == damaged) ++tally.n_damaged;
  if (verdict == half_step) ++tally.n_half_steps;
}

}  // namespace

Status GroupPerStep::add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) {
  for (unsigned k = 0; k < 2; ++k) {
    DatasetDefinition definition;
    definition.path = step_group(step) + "/field" + std::to_string(k);
    definition.shape = grid_.shape;
    definition.chunk_shape = grid_.chunk_shape;
    definition.filters = shuffle_deflate(4);
    TAILRACE_TRY(file.create_dataset(definition));
    TAILRACE_TRY(write_test_chunks(file, storage, tail, definition.path, grid_, true,
                                   unsigned(2 * step + k)));
    TAILRACE_TRY(file.set_attribute(definition.path, "codec", {std::string("deflate")}));
  }
  return file.set_attribute(step_group(step), "time", {std::vector<double>{double(step)}});
}

bool GroupPerStep::whole(const std::string& path, std::size_t step) {
  return holds_test_values(path, step_group(step) + "/field0", unsigned(2 * step)) &&
         holds_test_values(path, step_group(step) + "/field1", unsigned(2 * step + 1));
}

bool GroupPerStep::sane(const std::string& path, std::size_t step) {
  return !link_exists(path, step_group(step)) || whole(path, step);
}

std::string GroupPerStep::step_group(std::size_t step) const {
  const std::string number = std::to_string(step);
  return parent_ + "/step_" + std::string(4 - number.size(), '0') + number;
}

Status GrowingDatasets::add(Hdf5File& file, Storage& storage, ScatteringTail& tail,
                            std::size_t step) {
  for (unsigned k = 0; k < 2; ++k) {
    if (step == 0) {
      DatasetDefinition definition;
      definition.path = growing_path(k);
      definition.shape = {0, row_};
      definition.chunk_shape = {1, row_ / 4};
      definition.extendable = true;
      definition.filters = shuffle_deflate(4);
      TAILRACE_TRY(file.create_dataset(definition));
    }
    TAILRACE_TRY(file.extend_dataset(growing_path(k), {step + 1, row_}));
    const ChunkGrid grid{{step + 1, row_}, {1, row_ / 4}};
    std::vector<Hdf5File::ChunkRecord> records;
    for (std::uint64_t index = 4 * step; index < 4 * step + 4; ++index) {
      const auto bytes = encode_stored(chunk_values(grid, index, k), unsigned(index));
      records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, 0});
      TAILRACE_TRY(storage.write_at(records.back().extent.address, bytes));
    }
    TAILRACE_TRY(file.insert_chunks(growing_path(k), records));
  }
  return Status();
}

bool GrowingDatasets::whole(const std::string& path, std::size_t step) {
  return holds_test_values(path, growing_path(0), 0, (step + 1) * row_) &&
         holds_test_values(path, growing_path(1), 1, (step + 1) * row_);
}

bool GrowingDatasets::sane(const std::string& path, std::size_t) {
  // Lengths may differ by the step in progress, but all values within them must be right.
  return holds_test_values(path, growing_path(0), 0) && holds_test_values(path, growing_path(1), 1);
}

std::vector<std::byte> content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Recording record(Series& series, const std::string& path, bool append, bool journal,
                 unsigned gap_max, std::size_t n_steps) {
  Recording recording;
  if (append) recording.start = content_of(path);
  RecordingStorage storage(path, append);
  storage.recording = true;
  ScatteringTail tail(0, gap_max);
  Hdf5File::Settings settings;
  settings.journal = journal;
  settings.old_forms = series.old_forms;
  std::uint64_t end = 0;
  auto opened = append ? Hdf5File::open(storage, tail.allocate(), settings, end)
                       : Hdf5File::create(storage, tail.allocate(), settings);
  EXPECT_TRUE(opened.ok()) << text_of(opened.status());
  if (!opened.ok()) return recording;
  if (append) tail.reset(end);
  Hdf5File& file = **opened;
  for (std::size_t step = 0; step < n_steps; ++step) {
    Status done = series.add(file, storage, tail, step);
    storage.committing = true;
    if (done.ok()) done = file.commit();
    storage.committing = false;
    EXPECT_TRUE(done.ok()) << text_of(done);
    storage.n_commits = step + 1;
  }
  const Status closed = file.close();
  EXPECT_TRUE(closed.ok()) << text_of(closed);
  recording.operations = std::move(storage.operations);
  recording.n_steps = n_steps;
  return recording;
}

void judge_all(Series& series, const std::string& path, const Recording& recording, Tally& clean,
               Tally& torn) {
  CrashImage image{recording.start};
  for (const Operation& operation : recording.operations) {
    // Between commits only chunk bytes are written, all alike, so a quarter of these points
    // suffices.
    const bool skip = !operation.committing && operation.address % 4 != 0;
    if (!skip && is_judged(operation.n_commits, clean)) {
      image.store(path);
      judge(series, path, operation.n_commits, clean);
    }
    if (!skip && operation.kind == Operation::Kind::write && is_judged(operation.n_commits, torn)) {
      CrashImage half = image;
      half.apply_front(operation, operation.bytes.size() / 2);
      half.store(path);
      judge(series, path, operation.n_commits, torn);
    }
    image.apply(operation);
  }
  ++clean.n_points;
  image.store(path);
  judge(series, path, recording.n_steps, clean);
}

void report(const char* name, const Tally& tally) {
  std::printf(
      "[ crash    ] %s: %zu of %zu points, %zu damage a committed step, %zu show half a one\n",
      name, tally.n_judged, tally.n_points, tally.n_damaged, tally.n_half_steps);
}

void judge_recovered(Series& series, const std::string& path, const Recording& recording,
                     Tally& tally, Tear tear) {
  const std::string journal = journal_path_of(path);
  const auto recover_and_judge = [&](const CrashImage& image, const std::string& journal_bytes,
                                     std::size_t n_commits) {
    if (!is_judged(n_commits, tally)) return;
    image.store(path);
    if (!journal_bytes.empty()) std::ofstream(journal, std::ios::binary) << journal_bytes;
    const auto recovered = inspect_and_recover(path, true);
    EXPECT_TRUE(recovered.ok()) << text_of(recovered.status());
    EXPECT_FALSE(std::filesystem::exists(journal));
    judge(series, path, n_commits, tally);
  };
  CrashImage image{recording.start};
  std::string journal_before;
  for (const Operation& operation : recording.operations) {
    // A journal that has just appeared may be torn, or may still lack its name.
    if (!operation.journal.empty() && journal_before.empty()) {
      recover_and_judge(image, operation.journal.substr(0, operation.journal.size() / 2),
                        operation.n_commits);
      recover_and_judge(image, operation.journal.substr(0, 5), operation.n_commits);
    }
    const bool skip = !operation.committing && operation.address % 4 != 0;
    if (!skip) recover_and_judge(image, operation.journal, operation.n_commits);
    const std::size_t n_bytes = operation.bytes.size();
    constexpr std::size_t page = 4096;
    const std::size_t first = tear == Tear::in_half ? n_bytes / 2 : page - operation.address % page;
    const std::size_t stride = tear == Tear::in_half ? n_bytes : page;
    for (std::size_t n = first; !skip && n < n_bytes; n += stride) {
      CrashImage torn = image;
      torn.apply_front(operation, n);
      recover_and_judge(torn, operation.journal, operation.n_commits);
      ++tally.n_torn;
    }
    image.apply(operation);
    // The journal exists shortly beyond the last write and sync of its commit.
    if (!operation.journal.empty())
      recover_and_judge(image, operation.journal, operation.n_commits);
    journal_before = operation.journal;
  }
}

void judge_reordered(Series& series, const std::string& path, const Recording& recording,
                     Tally& tally) {
  CrashImage synced{recording.start};
  std::vector<const Operation*> unsynced;
  for (const Operation& operation : recording.operations) {
    if (operation.kind != Operation::Kind::sync) {
      unsynced.push_back(&operation);
      continue;
    }
    for (const Operation* chosen : unsynced) {
      for (const bool alone : {true, false}) {
        if (!is_judged(operation.n_commits, tally)) continue;
        CrashImage image = synced;
        for (const Operation* one : unsynced) {
          if ((one == chosen) == alone) image.apply(*one);
        }
        image.store(path);
        if (!operation.journal.empty()) {
          std::ofstream(journal_path_of(path), std::ios::binary) << operation.journal;
          EXPECT_TRUE(inspect_and_recover(path, true).ok());
        }
        judge(series, path, operation.n_commits, tally);
      }
    }
    for (const Operation* done : unsynced) synced.apply(*done);
    unsynced.clear();
  }
}

}  // namespace tailrace::test
