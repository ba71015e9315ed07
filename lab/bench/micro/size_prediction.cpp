// size_prediction: measures accuracy and cost of chunk size predictions, over real and generated
// data.
//
//   size_prediction [--synthetic N] FILE.h5[:steps]... > size_prediction.csv
//
// Every field of 32-bit reals of at most 8 MB is one chunk; a cube of 8 MB is also cut into eight
// chunks of 1 MB. ":steps" declares the first axis as time: each step is then a chunk, and the
// previous step is known. --synthetic N adds N independent blocks of the six generated fields, 8 MB
// each, labelled so.
//
// Each codec and bound is predicted by the uniform blocks of Liang et al. 2019 (V-C), by
// ChunkEstimator, and by the previous step. SizeHistory then combines them in two ways. As in the
// writer, a step is forecast before any of its chunks is known. With running calibration, each
// chunk of a field calibrates the next. Times are thread CPU, medians of three. The table on stderr
// is that of src/model/README.md.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cli/synthetic_nyx.hpp"
#include "codec/verify.hpp"
#include "exec/lane_clock.hpp"
#include "field/chunk_estimator.hpp"
#include "field/field_state.hpp"
#include "model/block_sample.hpp"
#include "read/read.hpp"
#include "trz/kernels/isa.hpp"

namespace {

using namespace tailrace;

constexpr int kRounds = 3;
constexpr double kRelativeBounds[] = {1e-2, 1e-3, 1e-4, 1e-5};
constexpr std::uint64_t kWholeChunkBytes = 8U << 20;
constexpr std::uint64_t kLeastBytes = 64U << 10;

struct CodecCase {
  const char* label;
  const char* name;
  std::vector<std::pair<std::string, std::string>> settings;
  bool lossy;
};
const std::vector<CodecCase>& codec_cases() {
  static const std::vector<CodecCase> cases = {
      {"trz", "trz", {}, true},          {"trz-fast", "trz", {{"preset", "fast"}}, true},
      {"sz3", "sz3", {}, true},          {"zfp", "zfp", {}, true},
      {"sperr", "sperr", {}, true},      {"portable", "portable", {}, true},
      {"deflate", "deflate", {}, false}, {"zstd", "zstd", {}, false}};
  return cases;
}

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "size_prediction: %s\n", message.c_str());
  std::exit(2);
}

template <class T>
T value_or_give_up(Result<T> result) {
  if (!result.ok()) give_up(result.status().message());
  return std::move(*result);
}

/// Median thread CPU seconds of a few calls.
template <class Work>
double seconds_of(Work&& work) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const double start = thread_cpu_s();
    work();
    times.push_back(thread_cpu_s() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Field with all its time steps.
struct Field {
  std::string file;
  std::string path;
  std::string kind;  ///< "native", "cut" (from a larger field) or "synthetic".
  Shape step_shape;
  std::size_t n_steps = 1;
  std::vector<float> values;  ///< Step by step.
  std::optional<double> fill_value;
};

std::vector<Field> fields_of(const std::string& argument) {
  const std::size_t colon = argument.rfind(":steps");
  const bool steps = colon != std::string::npos;
  const std::string path = argument.substr(0, colon);
  const auto input = value_or_give_up(open_input_file(path));
  std::vector<Field> fields;
  for (std::size_t f = 0; f < input->fields().size(); ++f) {
    const StoredDataset& info = input->fields()[f];
    if (info.dtype != DType::f32 || info.coordinate || info.shape.empty()) continue;
    Field field{path.substr(path.rfind('/') + 1),
                info.path,
                "native",
                info.shape,
                1,
                {},
                info.missing_value};
    if (steps) {
      field.n_steps = info.shape[0];
      field.step_shape.erase(field.step_shape.begin());
    }
    const std::uint64_t step_bytes = n_elements(field.step_shape) * sizeof(float);
    if (step_bytes < kLeastBytes || step_bytes > kWholeChunkBytes) continue;
    field.values.resize(n_elements(info.shape));
    const Status read =
        input->read(f, whole_box(info.shape), std::as_writable_bytes(std::span(field.values)));
    if (!read.ok()) give_up(path + " " + info.path + ": " + read.message());
    fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<Field> synthetic_fields(std::uint64_t seed) {
  const Shape cells = {128, 128, 128};
  std::vector<std::vector<float>> made = make_synthetic_nyx(cells, seed);
  std::vector<Field> fields;
  for (std::size_t f = 0; f < made.size(); ++f) {
    fields.push_back({"synthetic_nyx seed " + std::to_string(seed),
                      std::string("/") + kSyntheticNyxNames[f],
                      "synthetic",
                      cells,
                      1,
                      std::move(made[f]),
                      {}});
  }
  return fields;
}

/// Measurements of one chunk under one codec and bound.
struct Measured {
  double actual = 0;
  double encode_s = 0;
  double uniform = 0;
  double uniform_s = 0;
  double sample = 0;
  double sample_spread = 0;
  double sample_s = 0;
  double previous = 0;    ///< 0: no previous step.
  SizeForecast stepwise;  ///< Forecast as in the writer; deviation 0: only `sample` is known.
  SizeForecast running;   ///< Deviation 0: none, before any calibration.
};

/// Error of one prediction relative to the actual size.
double error_of(double predicted, double actual) { return std::abs(predicted / actual - 1); }

/// Errors and costs of one group of rows, for the table.
struct Group {
  std::map<std::string, std::vector<double>> errors;
  double encode_s = 0;
  double sample_s = 0;
  double uniform_s = 0;
  std::size_t n_within = 0;
  std::size_t n_forecasts = 0;

  void add(const Measured& m) {
    errors["uniform"].push_back(error_of(m.uniform, m.actual));
    errors["sample"].push_back(error_of(m.sample, m.actual));
    if (m.previous > 0) errors["previous"].push_back(error_of(m.previous, m.actual));
    if (m.stepwise.deviation_bytes > 0) {
      errors["stepwise"].push_back(error_of(m.stepwise.encoded_bytes, m.actual));
      n_within += std::abs(m.stepwise.encoded_bytes - m.actual) <= m.stepwise.deviation_bytes;
      ++n_forecasts;
    }
    if (m.running.deviation_bytes > 0) {
      errors["running"].push_back(error_of(m.running.encoded_bytes, m.actual));
      n_within += std::abs(m.running.encoded_bytes - m.actual) <= m.running.deviation_bytes;
      ++n_forecasts;
    }
    encode_s += m.encode_s;
    sample_s += m.sample_s;
    uniform_s += m.uniform_s;
  }
};

std::string mean_and_p95(std::vector<double> errors) {
  if (errors.empty()) return "";
  std::sort(errors.begin(), errors.end());
  double sum = 0;
  for (const double error : errors) sum += error;
  const auto n = static_cast<double>(errors.size());
  const auto p95 = static_cast<std::size_t>(std::ceil(0.95 * n)) - 1;
  char text[64];
  std::snprintf(text, sizeof text, "%.1f / %.1f", 100 * sum / n, 100 * errors[p95]);
  return text;
}

/// One field under one codec and bound.
class Series {
 public:
  Series(const Field& field, const Shape& chunk_shape, const CodecCase& codec_case,
         double relative_bound, double range)
      : field_(field), case_(codec_case), relative_bound_(relative_bound) {
    grid_ = ChunkGrid{field.step_shape, chunk_shape};
    request_ = CodecRequest{codec_case.name, codec_case.settings, DType::f32, chunk_shape,
                            codec_case.lossy ? relative_bound * range : 0};
    request_.fill_value = field.fill_value;
    Result<std::unique_ptr<Codec>> codec = make_codec(request_, "");
    if (!codec.ok()) return;
    codec_ = std::move(*codec);
    // Some codecs reject values (SZ3: NaN), which the first chunk shows.
    if (!codec_->encode(Buffer::copy_of(gathered(0, 0))).ok()) {
      codec_ = nullptr;
      return;
    }
    estimator_ = value_or_give_up(ChunkEstimator::make(request_, *codec_, ""));
    uniform_ = uniform_blocks(chunk_shape);
    CodecRequest uniform_request = request_;
    uniform_request.chunk_shape = uniform_.gathered_shape();
    uniform_codec_ = value_or_give_up(make_codec(uniform_request, ""));
  }

  /// True if the codec is installed and accepts such chunks and values.
  bool possible() const { return codec_ != nullptr; }

  void run(Group& group) {
    std::map<std::uint64_t, double> previous;
    for (std::size_t step = 0; step < field_.n_steps; ++step) {
      for (std::uint64_t chunk = 0; chunk < grid_.n_chunks(); ++chunk) {
        Measured m = measure(step, chunk);
        if (step > 0) m.previous = previous[chunk];
        previous[chunk] = m.actual;
        if (step > 0) m.stepwise = *stepwise_.forecast(chunk, m.sample, m.sample_spread);
        if (step + chunk > 0) m.running = *running_.forecast(0, m.sample, m.sample_spread);
        const auto bytes = static_cast<std::uint64_t>(m.actual);
        stepwise_.record(chunk, m.sample, bytes);
        running_.record(0, m.sample, bytes);
        running_.end_batch();
        running_.forget_chunks();
        group.add(m);
        print(step, chunk, m);
      }
      stepwise_.end_batch();
    }
  }

 private:
  /// Encoded size of values; an encoding consumes its input.
  static double encoded(const Codec& codec, std::span<const std::byte> values) {
    Buffer copy = Buffer::copy_of(values);
    if (!copy.allocated()) give_up("not enough memory for a chunk");
    return static_cast<double>(value_or_give_up(codec.encode(std::move(copy))).buffer.n_bytes());
  }

  /// View of one chunk within the field.
  StridedValues view_of(std::size_t step, std::uint64_t chunk) const {
    const float* values = field_.values.data() + step * n_elements(field_.step_shape);
    return strided_part(whole_box(field_.step_shape), reinterpret_cast<const std::byte*>(values),
                        DType::f32, grid_.full_box(chunk));
  }
  std::vector<std::byte> gathered(std::size_t step, std::uint64_t chunk) const {
    const StridedValues view = view_of(step, chunk);
    std::vector<std::byte> dense(view.n_bytes());
    gather(view, dense.data());
    return dense;
  }

  Measured measure(std::size_t step, std::uint64_t chunk) const {
    const StridedValues view = view_of(step, chunk);
    const std::vector<std::byte> dense = gathered(step, chunk);
    Measured m;
    m.encode_s = seconds_of([&] { m.actual = encoded(*codec_, dense); });
    std::vector<std::byte> blocks(uniform_.n_values() * sizeof(float));
    m.uniform_s = seconds_of([&] {
      gather_blocks(view, uniform_, blocks.data());
      m.uniform = encoded(*uniform_codec_, blocks) * static_cast<double>(dense.size()) /
                  static_cast<double>(blocks.size());
    });
    m.sample_s = seconds_of([&] {
      const Estimate estimate = value_or_give_up(estimator_->estimate(view, dense.size()));
      m.sample = estimate.encoded_bytes;
      m.sample_spread = estimate.spread;
    });
    return m;
  }

  void print(std::size_t step, std::uint64_t chunk, const Measured& m) const {
    std::printf("\"%s\",%s,%s,%s,%g,%s,%zu,%llu,%.0f,%.0f,%.0f,", field_.file.c_str(),
                field_.path.c_str(), field_.kind.c_str(), shape_text(grid_.chunk_shape).c_str(),
                relative_bound_, case_.label, step, static_cast<unsigned long long>(chunk),
                m.actual, m.uniform, m.sample);
    if (m.previous > 0) std::printf("%.0f", m.previous);
    for (const SizeForecast& forecast : {m.stepwise, m.running}) {
      if (forecast.deviation_bytes > 0) {
        std::printf(",%.0f,%.0f", forecast.encoded_bytes, forecast.deviation_bytes);
      } else {
        std::printf(",,");
      }
    }
    std::printf(",%.4g,%.3g,%.3g\n", m.encode_s, m.uniform_s, m.sample_s);
  }

  const Field& field_;
  const CodecCase& case_;
  double relative_bound_;
  ChunkGrid grid_;
  CodecRequest request_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<ChunkEstimator> estimator_;
  BlockSample uniform_;
  std::unique_ptr<Codec> uniform_codec_;
  SizeHistory stepwise_;
  SizeHistory running_;
};

/// Key of a table row.
using GroupKey = std::pair<std::string, std::string>;  // chunks, codec

void run_field(const Field& field, std::map<GroupKey, Group>& groups) {
  const ValueRange range =
      value_range(DType::f32, std::as_bytes(std::span(field.values)), field.fill_value);
  // Undeclared fill values make a relative bound meaningless.
  constexpr double least_fill = 1e19;
  if (!(range.greatest > range.least)) return;
  if (std::max(range.greatest, -range.least) > least_fill) return;
  std::vector<Shape> chunk_shapes = {field.step_shape};
  if (field.kind == "native" && field.step_shape == Shape{128, 128, 128}) {
    chunk_shapes.push_back({64, 64, 64});
  }
  for (const Shape& chunk_shape : chunk_shapes) {
    Field labelled = field;
    if (chunk_shape != field.step_shape) labelled.kind = "cut";
    const std::uint64_t chunk_bytes = n_elements(chunk_shape) * sizeof(float);
    std::string data = chunk_bytes == kWholeChunkBytes ? "8 MB" : "smaller";
    if (field.n_steps > 1) data = "steps of " + field.file;
    for (const CodecCase& codec_case : codec_cases()) {
      for (const double bound : kRelativeBounds) {
        if (!codec_case.lossy && bound != kRelativeBounds[0]) continue;
        const double reported = codec_case.lossy ? bound : 0;
        Series series(labelled, chunk_shape, codec_case, reported, range.greatest - range.least);
        if (series.possible()) series.run(groups[{data, codec_case.label}]);
      }
    }
  }
  std::fflush(stdout);
}

void print_table(const std::map<GroupKey, Group>& groups) {
  std::fprintf(stderr,
               "| chunks | codec | uniform 12^3 | sample | previous | step by step | running | "
               "cost %% (uniform) | within 1 sd |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& [key, group] : groups) {
    const auto cell = [&, &errors = group.errors](const char* method) {
      const auto found = errors.find(method);
      return found == errors.end() ? std::string() : mean_and_p95(found->second);
    };
    std::fprintf(stderr, "| %s | %s | %s | %s | %s | %s | %s | %.1f (%.1f) |", key.first.c_str(),
                 key.second.c_str(), cell("uniform").c_str(), cell("sample").c_str(),
                 cell("previous").c_str(), cell("stepwise").c_str(), cell("running").c_str(),
                 100 * group.sample_s / group.encode_s, 100 * group.uniform_s / group.encode_s);
    if (group.n_forecasts > 0) {
      std::fprintf(
          stderr, " %.0f |\n",
          100.0 * static_cast<double>(group.n_within) / static_cast<double>(group.n_forecasts));
    } else {
      std::fprintf(stderr, " |\n");
    }
  }
}

std::string processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::uint64_t n_seeds = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--synthetic" && i + 1 < argc) {
      n_seeds = std::strtoull(argv[++i], nullptr, 10);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty() && n_seeds == 0) {
    give_up("usage: size_prediction [--synthetic N] FILE.h5[:steps]...");
  }
  // Plug-ins may start threads, whose time the thread's clock does not count.
  ::setenv("OMP_NUM_THREADS", "1", 1);
  double load[1] = {};
  if (getloadavg(load, 1) != 1) load[0] = 0;
  std::printf("# size_prediction: %s, trz with %s, g++ %s, load average %.2f\n",
              processor().c_str(), trz::isa_name(trz::best_isa()), __VERSION__, load[0]);
  std::printf(
      "# sizes in bytes; seconds of thread CPU, medians of %d; bound relative to the range, "
      "0: lossless; *_deviation: one standard deviation\n",
      kRounds);
  std::printf(
      "file,field,data,chunk,relative_bound,codec,step,chunk_index,encoded,uniform,sample,"
      "previous,stepwise,stepwise_deviation,running,running_deviation,encode_s,uniform_s,"
      "sample_s\n");
  std::map<GroupKey, Group> groups;
  for (const std::string& file : files) {
    for (const Field& field : fields_of(file)) run_field(field, groups);
  }
  for (std::uint64_t seed = 1; seed <= n_seeds; ++seed) {
    for (const Field& field : synthetic_fields(seed)) run_field(field, groups);
  }
  print_table(groups);
  return 0;
}
