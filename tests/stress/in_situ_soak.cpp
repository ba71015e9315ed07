// Long random test of the modes async and in_situ. A program computes, idles and hands over steps
// at random, with failures in between, and reads back everything that is reported as committed.
//
//   in_situ_soak [--seconds S | --minutes M] [--seed K] [--folder DIR]
//
// Checks every value of every committed step (with stock HDF5; exact, or within the bound). A
// failed step must be absent from the file, or complete. The reported peak memory must stay under
// the cap. The process's own memory must stay bounded within a file (the cap, the program's values,
// and a slack) and from file to file (no leaks). Failures are a part that no rank puts, and a limit
// on the file's length that the lanes reach while the program computes.

#include <hdf5.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tailrace/tailrace.hpp>
#include <thread>
#include <vector>

namespace {

using tailrace::Box;
using tailrace::Shape;

constexpr double bound = 1e-3;
/// Memory that the process may use in addition to the cap and the program's values: HDF5, stacks,
/// codecs' tables, unused memory of the allocator.
constexpr double kSlackMib = 48;

struct Options {
  double seconds = 5;
  std::uint64_t seed = 1;
  std::string folder = std::filesystem::temp_directory_path().string();
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  double up_to(double most) { return most * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::string of(std::vector<std::string> texts) { return texts[below(texts.size())]; }

 private:
  std::mt19937_64 engine_;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "VmRSS" or "VmHWM" of this process, MiB.
double memory_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":"))
      return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  return 0;
}

/// Starts a new high-water mark. If the system does not allow it, the old one stays, which is not a
/// failure.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

void limit_file_bytes(rlim_t most) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = std::min(most, limit.rlim_max);
  setrlimit(RLIMIT_FSIZE, &limit);
}

struct Tally {
  std::uint64_t n_files = 0;
  std::uint64_t n_committed = 0;
  std::uint64_t n_failed = 0;  ///< Steps that the test made fail.
  std::uint64_t n_values = 0;
  std::uint64_t n_delayed_obstacles = 0;
  double idle_encode_s = 0;
  double backpressure_s = 0;
  double largest_process_mib = 0;
  std::uint64_t n_violations = 0;
};

struct FieldCase {
  std::string path;
  Shape shape;
  std::string options;
  bool exact = true;
  std::uint64_t seed = 0;
  std::vector<float> values;

  float value(std::uint64_t i) const {
    const double x = static_cast<double>(i + 7919 * seed);
    return static_cast<float>(std::sin(0.003 * x) + 0.1 * std::sin(1.7 * x) +
                              1e-4 * static_cast<double>((i * 2654435761U) % 97));
  }
};

/// `reported` by end_step: committed, unless the next call reports a failed commit.
enum class Fate { open, reported, committed, unknown, dropped };

struct StepCase {
  std::vector<FieldCase> fields;
  Fate fate = Fate::open;

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const FieldCase& field : fields) sum += field.values.size() * sizeof(float);
    return sum;
  }
};

/// The lifetime of one file.
class FileRun {
 public:
  FileRun(const Options& options, Random& random, Tally& tally)
      : path_(options.folder + "/in_situ_soak." + std::to_string(getpid()) + ".h5"),
        random_(random),
        tally_(tally) {}

  void run() {
    const double before_mib = memory_mib("VmRSS");
    reset_peak();
    const std::uint64_t cap_mib = 8ULL << random_.below(3);
    promise_ = random_.one_in(2);
    options_ = "replace=on,fsync=off,mode=" + random_.of({"async", "in_situ", "in_situ"}) +
               ",hold=" + (promise_ ? "promise" : "copy") +
               ",threads=" + std::to_string(1 + random_.below(2)) +
               ",memory=" + std::to_string(cap_mib) + "MiB" +
               ",lab.scheduler=" + random_.of({"search", "ext-johnson+bf", "one-list-greedy"});
    cap_bytes_ = cap_mib << 20;
    file_.emplace(tailrace::File::create(path_, options_));
    const std::uint64_t n_steps = 2 + random_.below(7);
    for (std::uint64_t step = 0; step < n_steps && file_; ++step) do_step(step);
    close();
    limit_file_bytes(RLIM_INFINITY);
    check_values();
    check_memory(before_mib, static_cast<double>(cap_mib));
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".partial");
    tally_.n_files += 1;
  }

 private:
  void violation(const std::string& text) {
    std::printf("VIOLATION: %s (file %llu, %s)\n", text.c_str(),
                static_cast<unsigned long long>(tally_.n_files), options_.c_str());
    tally_.n_violations += 1;
  }

  StepCase random_step(std::uint64_t index) {
    StepCase step;
    const std::uint64_t n_fields = 1 + random_.below(4);
    for (std::uint64_t f = 0; f < n_fields; ++f) {
      FieldCase field;
      field.path = "/step_" + std::to_string(index) + "/field_" + std::to_string(f);
      field.seed = random_.below(1000);
      const std::uint64_t edge = 1 + random_.below(64);
      field.shape = random_.one_in(3)   ? Shape{edge * edge * 16}
                    : random_.one_in(2) ? Shape{edge * 4, edge * 8}
                                        : Shape{edge, edge, edge};
      const std::string codec = random_.of({"none", "deflate", "portable"});
      field.exact = codec != "portable";
      field.options = "codec=" + codec + (field.exact ? "" : ",bound=abs=" + std::to_string(bound));
      std::string chunk;
      for (const std::uint64_t extent : field.shape) {
        const std::uint64_t most = field.shape.size() == 1 ? 65536 : 64;
        chunk += (chunk.empty() ? "" : "x") +
                 std::to_string(1 + extent / 4 + random_.below(std::min(extent, most)));
      }
      field.options += ",chunk=" + chunk;
      std::uint64_t n = 1;
      for (const std::uint64_t extent : field.shape) n *= extent;
      for (std::uint64_t i = 0; i < n; ++i) field.values.push_back(field.value(i));
      step.fields.push_back(std::move(field));
    }
    return step;
  }

  void do_step(std::uint64_t index) {
    steps_.push_back(random_step(index));
    StepCase& step = steps_.back();
    largest_step_bytes_ = std::max(largest_step_bytes_, step.bytes());
    const bool hole = random_.one_in(12);
    const bool limited = !hole && random_.one_in(12);
    for (const FieldCase& field : step.fields) put(field, hole && &field == &step.fields.back());
    if (limited) limit_file_bytes(file_bytes() + 1 + random_.below(step.bytes() + 1));
    const bool ended = attempt([&] { note(file_->end_step()); }, hole || limited || limited_);
    if (!ended) {
      step.fate = Fate::dropped;
      return;
    }
    limited_ = limited_ || limited;
    // The program may overwrite copied values.
    live();
    if (random_.one_in(4)) {
      attempt([&] { wait(); }, limited_);
    }
  }

  void put(const FieldCase& field, bool leave_a_hole) {
    auto defined = file_->define<float>(field.path, field.shape, field.options);
    // Two parts, divided along the slowest dimension.
    const std::uint64_t rows = field.shape[0];
    const std::uint64_t row_values = field.values.size() / rows;
    // A single number for chunk= is a size in bytes, and the borders of such chunks follow those of
    // the parts.
    const std::uint64_t first = field.shape.size() == 1 ? rows : random_.below(rows + 1);
    Shape start(field.shape.size(), 0);
    Shape count = field.shape;
    count[0] = first;
    const std::span<const float> values(field.values);
    if (leave_a_hole) return defined.put(Box(start, Shape(count.size(), 0)), {});
    if (first > 0) defined.put(Box(start, count), values.first(first * row_values));
    start[0] = first;
    count[0] = rows - first;
    if (count[0] > 0) defined.put(Box(start, count), values.subspan(first * row_values));
  }

  std::uint64_t file_bytes() const {
    for (const std::string& name : {path_, path_ + ".partial"}) {
      if (std::filesystem::exists(name)) return std::filesystem::file_size(name);
    }
    return 0;
  }

  /// No call has failed so far, so earlier reported steps are committed.
  void commit_reported() {
    for (StepCase& step : steps_) {
      if (step.fate == Fate::reported) step.fate = Fate::committed;
    }
  }

  void wait() {
    if (const auto report = file_->wait()) note(*report);
    commit_reported();
  }

  void note(const tailrace::StepReport& report) {
    commit_reported();
    if (!report.completed) return;
    for (StepCase& step : steps_) {
      if (step.fields.front().path == report.fields.front().path) step.fate = Fate::reported;
    }
    if (report.peak_memory_bytes > cap_bytes_) {
      violation("a step held " + std::to_string(report.peak_memory_bytes) + " bytes");
    }
    tally_.n_delayed_obstacles += report.n_delayed_obstacles;
    tally_.idle_encode_s += report.idle_encode_s;
    tally_.backpressure_s += report.backpressure_s;
  }

  /// Runs an action that may fail. After a failure the file continues, unless its commit failed.
  template <class Action>
  bool attempt(Action&& action, bool may_fail) {
    try {
      action();
      return true;
    } catch (const tailrace::Error& error) {
      if (!may_fail && !commit_limited_) violation(error.what());
      tally_.n_failed += 1;
      limit_file_bytes(RLIM_INFINITY);
      const bool io = error.code() != TAILRACE_ERROR_BAD_COVERAGE;
      // A thread may be writing a commit that has reached the limit; a later call reports it.
      commit_limited_ = commit_limited_ || limited_;
      limited_ = false;
      for (StepCase& step : steps_) {
        if (step.fate == Fate::open || step.fate == Fate::reported) step.fate = Fate::unknown;
      }
      if (io && random_.one_in(2)) {
        file_->abandon();
        file_.reset();
      } else {
        broken_ = io;
      }
      return false;
    }
  }

  /// Actions of the program between two steps.
  void live() {
    for (std::uint64_t n = random_.below(8); n > 0; --n) {
      const double length_s = random_.up_to(0.002);
      switch (random_.below(7)) {
        case 0: {
          auto scope = file_->compute();
          const double end_s = now_s() + length_s;
          while (now_s() < end_s) continue;
          break;
        }
        case 1: {
          auto scope = file_->background();
          std::this_thread::sleep_for(std::chrono::duration<double>(length_s));
          break;
        }
        case 2: file_->idle(length_s); break;
        case 3: {
          const double end_s = now_s() + length_s;
          file_->idle_until([&] { return now_s() >= end_s; });
          break;
        }
        case 4: file_->idle(1); break;  // While anything is left to encode.
        case 5: tailrace_file_background_begin(file_->handle()); break;
        case 6: tailrace_file_background_end(file_->handle()); break;
      }
    }
    if (limited_ && random_.one_in(2)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void close() {
    if (!file_) return;
    const bool may_fail = limited_ || broken_ || commit_limited_;
    try {
      wait();
      file_->close();
    } catch (const tailrace::Error& error) {
      if (!may_fail) violation(error.what());
      tally_.n_failed += 1;
      for (StepCase& step : steps_) {
        if (step.fate == Fate::open || step.fate == Fate::reported) step.fate = Fate::unknown;
      }
    }
    file_.reset();
    for (const StepCase& step : steps_) {
      if (step.fate == Fate::open) violation(step.fields.front().path + " was never reported");
    }
  }

  void check_values() {
    const bool any = std::any_of(steps_.begin(), steps_.end(),
                                 [](const StepCase& it) { return it.fate == Fate::committed; });
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0 && any) violation("the file does not open");
    for (const StepCase& step : steps_) {
      const std::string group = std::filesystem::path(step.fields.front().path).parent_path();
      const bool there = file >= 0 && H5Lexists(file, group.c_str(), H5P_DEFAULT) > 0;
      if (step.fate == Fate::committed && !there) violation(group + " is missing");
      if (step.fate == Fate::dropped && there) violation(group + " is there, though it failed");
      if (!there) continue;
      tally_.n_committed += 1;
      for (const FieldCase& field : step.fields) check_field(file, field);
    }
    if (file >= 0) H5Fclose(file);
  }

  void check_field(hid_t file, const FieldCase& field) {
    std::vector<float> found(field.values.size(), NAN);
    const hid_t dataset = H5Dopen2(file, field.path.c_str(), H5P_DEFAULT);
    const bool read = dataset >= 0 && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL,
                                              H5P_DEFAULT, found.data()) >= 0;
    if (dataset >= 0) H5Dclose(dataset);
    if (!read) return violation(field.path + " cannot be read");
    std::uint64_t n_wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double off = std::abs(double(found[i]) - double(field.values[i]));
      if (!(off <= (field.exact ? 0 : bound))) ++n_wrong;
    }
    if (n_wrong > 0) violation(field.path + ": " + std::to_string(n_wrong) + " values are wrong");
    tally_.n_values += found.size();
  }

  void check_memory(double before_mib, double cap_mib) {
    double held_mib = 0;
    for (const StepCase& step : steps_) held_mib += static_cast<double>(step.bytes()) / 0x1p20;
    // The program's values, one step of them read back, and Tailrace's permitted memory.
    double most_mib =
        held_mib + static_cast<double>(largest_step_bytes_) / 0x1p20 + cap_mib + kSlackMib;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    most_mib = 4 * most_mib + 256;  // The sanitizers' shadow memory and quarantine.
#endif
    const double grown_mib = memory_mib("VmHWM") - before_mib;
    tally_.largest_process_mib = std::max(tally_.largest_process_mib, memory_mib("VmHWM"));
    if (grown_mib > most_mib) {
      violation("the process grew by " + std::to_string(grown_mib) + " MiB, expected " +
                std::to_string(most_mib) + " at most");
    }
  }

  std::string path_;
  Random& random_;
  Tally& tally_;
  std::string options_;
  std::uint64_t cap_bytes_ = 0;
  bool promise_ = false;
  bool limited_ = false;         ///< The step in progress may have reached the limit.
  bool commit_limited_ = false;  ///< A commit of this file may have reached the limit.
  bool broken_ = false;          ///< The file may refuse further steps.
  std::uint64_t largest_step_bytes_ = 0;
  std::vector<StepCase> steps_;
  std::optional<tailrace::File> file_;
};

bool read_options(int n_arguments, char** arguments, Options& options) {
  for (int i = 1; i + 1 < n_arguments; i += 2) {
    const std::string key = arguments[i];
    const char* value = arguments[i + 1];
    if (key == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (key == "--minutes") {
      options.seconds = 60 * std::strtod(value, nullptr);
    } else if (key == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (key == "--folder") {
      options.folder = value;
    } else {
      return false;
    }
  }
  return n_arguments % 2 == 1;
}

}  // namespace

int main(int n_arguments, char** arguments) {
  Options options;
  if (!read_options(n_arguments, arguments, options)) {
    std::fprintf(stderr, "in_situ_soak: see the head of tests/stress/in_situ_soak.cpp\n");
    return 2;
  }
  std::signal(SIGXFSZ, SIG_IGN);  // Writes beyond the limit must fail, not kill the process.
  Random random(options.seed);
  Tally tally;
  const double end_s = now_s() + options.seconds;
  double early_mib = 0;
  while (now_s() < end_s || tally.n_files < 10) {
    FileRun(options, random, tally).run();
    // The first files fill the allocator's pools and HDF5's free lists.
    if (tally.n_files == 10) early_mib = memory_mib("VmRSS");
  }
  const double last_mib = memory_mib("VmRSS");
  if (last_mib > 2 * early_mib + kSlackMib) {
    std::printf("VIOLATION: %.0f MiB after ten files, %.0f at the end\n", early_mib, last_mib);
    tally.n_violations += 1;
  }
  std::printf(
      "%llu files, %llu steps committed and read back, %llu failed by intent, %llu values\n"
      "%llu obstacles delayed, %.2f s encoded in idle time, %.2f s of back-pressure\n"
      "process: %.0f MiB at most, %.0f after ten files, %.0f at the end\n%llu violations\n",
      static_cast<unsigned long long>(tally.n_files),
      static_cast<unsigned long long>(tally.n_committed),
      static_cast<unsigned long long>(tally.n_failed),
      static_cast<unsigned long long>(tally.n_values),
      static_cast<unsigned long long>(tally.n_delayed_obstacles), tally.idle_encode_s,
      tally.backpressure_s, tally.largest_process_mib, early_mib, last_mib,
      static_cast<unsigned long long>(tally.n_violations));
  return tally.n_violations == 0 ? 0 : 1;
}
