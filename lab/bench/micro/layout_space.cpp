// layout_space: measures bytes that layouts reserve but do not use, and chunks that overflow.
//
//   mpiexec -n 2 layout_space --scratch FOLDER FILE.h5[:steps]... > rows.csv
//
// The Writer writes every file's fields of 32-bit reals once for each bound, chunk size, layout and
// space goal. --synthetic N adds generated fields. ":steps" declares the first axis as time. The
// time steps become successive steps of one file, and rows "later" sum all but the first. A row is
// one file: all its fields share the ranks' arenas. Ranks hold slabs of the first axis. Addresses
// are not aligned, so that all slack comes from the layout. Files are written to FOLDER and
// removed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "cli/synthetic_nyx.hpp"
#include "codec/verify.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"
#include "measure/machine_identity.hpp"
#include "read/read.hpp"
#include "trz/kernels/isa.hpp"
#include "write/write.hpp"

namespace {

using namespace tailrace;

constexpr std::uint64_t kChunkBytes[] = {128U << 10, 1U << 20, 8U << 20};
constexpr double kRelativeBounds[] = {1e-2, 1e-3, 1e-4, 1e-5};
constexpr std::uint64_t kLeastBytes = 32U << 10;  ///< Least size of a field's step.
/// Undeclared fill values make a relative bound meaningless.
constexpr double kLeastFill = 1e19;

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "layout_space: %s\n", message.c_str());
  std::exit(2);  // mpiexec ends the other ranks.
}

template <class T>
T value_or_give_up(Result<T> result) {
  if (!result.ok()) give_up(result.status().message());
  return std::move(*result);
}

void ok_or_give_up(const Status& status) {
  if (!status.ok()) give_up(status.message());
}

/// Field with all its time steps, on every rank.
struct Field {
  std::string path;
  Shape step_shape;
  std::size_t n_steps = 1;
  std::vector<float> values;  ///< Step by step.
  std::optional<double> fill_value;
};

struct DataSet {
  std::string name;
  std::vector<Field> fields;
  std::size_t n_steps = 1;
};

bool has_sensible_range(const Field& field) {
  const ValueRange range =
      value_range(DType::f32, std::as_bytes(std::span(field.values)), field.fill_value);
  return range.greatest > range.least && std::max(range.greatest, -range.least) < kLeastFill;
}

DataSet read_data_set(const std::string& argument) {
  const std::size_t colon = argument.rfind(":steps");
  const std::string path = argument.substr(0, colon);
  DataSet set{path.substr(path.rfind('/') + 1), {}, 1};
  if (colon != std::string::npos) set.name += " by steps";
  const auto input = value_or_give_up(open_input_file(path));
  for (std::size_t f = 0; f < input->fields().size(); ++f) {
    const StoredDataset& info = input->fields()[f];
    if (info.dtype != DType::f32 || info.coordinate || info.shape.empty()) continue;
    Field field{info.path, info.shape, 1, {}, info.missing_value};
    if (colon != std::string::npos) {
      field.n_steps = info.shape[0];
      field.step_shape.erase(field.step_shape.begin());
    }
    if (n_elements(field.step_shape) * sizeof(float) < kLeastBytes) continue;
    field.values.resize(n_elements(info.shape));
    ok_or_give_up(
        input->read(f, whole_box(info.shape), std::as_writable_bytes(std::span(field.values))));
    if (!has_sensible_range(field)) continue;
    set.n_steps = std::max(set.n_steps, field.n_steps);
    set.fields.push_back(std::move(field));
  }
  return set;
}

DataSet synthetic_data_set(std::uint64_t seed) {
  const Shape cells = {96, 96, 96};
  DataSet set{"synthetic nyx seed " + std::to_string(seed), {}, 1};
  std::vector<std::vector<float>> made = make_synthetic_nyx(cells, seed);
  for (std::size_t f = 0; f < made.size(); ++f) {
    set.fields.push_back(
        {std::string("/") + kSyntheticNyxNames[f], cells, 1, std::move(made[f]), {}});
  }
  return set;
}

/// Slab of the first axis that a rank holds.
Box slab_of(const Shape& shape, std::uint64_t rank, std::uint64_t n_ranks) {
  Box slab = whole_box(shape);
  slab.start[0] = shape[0] * rank / n_ranks;
  slab.count[0] = shape[0] * (rank + 1) / n_ranks - slab.start[0];
  return slab;
}

/// Parameters of a file.
struct Recipe {
  std::string codec;
  double relative_bound = 0;
  std::uint64_t chunk_bytes = 0;
  std::string layout;
  std::string space;  ///< Text of the option; empty: none.
};

struct Totals {
  std::uint64_t n_chunks = 0;
  std::uint64_t n_overflow_chunks = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t slack_bytes = 0;
  double size_error = 0;  ///< Sum over chunks of |predicted - encoded| / encoded.

  void add(const StepReport& step) {
    for (const FieldReport& field : step.fields) {
      n_chunks += field.n_chunks;
      size_error += field.mean_size_error * static_cast<double>(field.n_chunks);
    }
    n_overflow_chunks += step.n_overflow_chunks;
    encoded_bytes += step.encoded_bytes;
    reserved_bytes += step.reserved_bytes;
    slack_bytes += step.slack_bytes;
  }
};

struct Written {
  Totals first;
  Totals later;
  std::map<std::string, double> ratios;  ///< Raw over encoded bytes per field, over all steps.
};

class Bench {
 public:
  Bench(MpiSession& session, std::string scratch, std::string codec, std::string only_layout)
      : session_(session),
        scratch_(std::move(scratch)),
        codec_(std::move(codec)),
        only_layout_(std::move(only_layout)) {
    const std::unique_ptr<Comm> world = session_.world();
    rank_ = static_cast<std::uint64_t>(world->rank());
    n_ranks_ = static_cast<std::uint64_t>(world->n_ranks());
  }

  bool is_root() const { return rank_ == 0; }
  void run(const DataSet& set);

 private:
  Written write(const DataSet& set, const Recipe& recipe,
                const std::map<std::string, double>& ratios) const;
  void print(const DataSet& set, const Recipe& recipe, const char* steps,
             const Totals& totals) const;
  void print(const DataSet& set, const Recipe& recipe, const Written& written) const;

  MpiSession& session_;
  std::string scratch_;
  std::string codec_;
  std::string only_layout_;
  std::uint64_t rank_ = 0;
  std::uint64_t n_ranks_ = 1;
};

/// @param ratios  expectations for hybrid; empty for other layouts.
Written Bench::write(const DataSet& set, const Recipe& recipe,
                     const std::map<std::string, double>& ratios) const {
  const std::string path = scratch_ + "/layout_space.h5";
  FileOptions options;
  options.sync = false;
  options.replace = true;
  options.alignment_bytes = 1;
  options.n_threads = 1;
  const auto writer = value_or_give_up(Writer::create(session_.world(), path, options));
  for (const Field& field : set.fields) {
    FieldDefinition definition;
    definition.path = field.path;
    definition.shape = field.step_shape;
    std::string text = "codec=" + recipe.codec + ",chunk=" + std::to_string(recipe.chunk_bytes) +
                       "B,layout=" + recipe.layout;
    if (!recipe.space.empty()) text += ":" + recipe.space;
    ok_or_give_up(apply_field_options(text, definition.options));
    definition.options.bound = {BoundMode::rel, recipe.relative_bound};
    definition.options.bound_given = true;
    definition.options.fill_value = field.fill_value;
    definition.options.over_time = set.n_steps > 1;
    const auto ratio = ratios.find(field.path);
    if (ratio != ratios.end()) definition.options.expected_ratio = ratio->second;
    (void)value_or_give_up(writer->define_field(definition));
  }
  Written written;
  std::map<std::string, std::pair<double, double>> bytes;
  for (std::size_t step = 0; step < set.n_steps; ++step) {
    for (std::size_t f = 0; f < set.fields.size(); ++f) {
      const Field& field = set.fields[f];
      if (step >= field.n_steps) continue;
      const Box slab = slab_of(field.step_shape, rank_, n_ranks_);
      const std::uint64_t row = n_elements(field.step_shape) / field.step_shape[0];
      const float* values =
          field.values.data() + step * n_elements(field.step_shape) + slab.start[0] * row;
      ok_or_give_up(writer->put(f, slab, values));
    }
    const StepReport report = value_or_give_up(writer->end_step());
    (step == 0 ? written.first : written.later).add(report);
    for (const FieldReport& field : report.fields) {
      bytes[field.path].first += static_cast<double>(field.raw_bytes);
      bytes[field.path].second += static_cast<double>(field.encoded_bytes);
    }
  }
  ok_or_give_up(writer->close());
  for (const auto& [name, sums] : bytes) written.ratios[name] = sums.first / sums.second;
  return written;
}

void Bench::print(const DataSet& set, const Recipe& recipe, const char* steps,
                  const Totals& totals) const {
  if (!is_root() || totals.n_chunks == 0) return;
  const auto n_chunks = static_cast<double>(totals.n_chunks);
  const auto encoded = static_cast<double>(totals.encoded_bytes);
  std::printf("\"%s\",%s,%g,%llu,%llu,%s,%s,%s,%llu,%llu,%llu,%llu,%llu,%.4f,%.4f,%.4f\n",
              set.name.c_str(), recipe.codec.c_str(), recipe.relative_bound,
              static_cast<unsigned long long>(recipe.chunk_bytes),
              static_cast<unsigned long long>(n_ranks_), recipe.layout.c_str(),
              recipe.space.c_str(), steps, static_cast<unsigned long long>(totals.n_chunks),
              static_cast<unsigned long long>(totals.n_overflow_chunks),
              static_cast<unsigned long long>(totals.encoded_bytes),
              static_cast<unsigned long long>(totals.reserved_bytes),
              static_cast<unsigned long long>(totals.slack_bytes),
              static_cast<double>(totals.slack_bytes) / encoded,
              static_cast<double>(totals.n_overflow_chunks) / n_chunks,
              totals.size_error / n_chunks);
}

void Bench::print(const DataSet& set, const Recipe& recipe, const Written& written) const {
  print(set, recipe, "first", written.first);
  print(set, recipe, "later", written.later);
}

/// Compare all layouts. Sizes do not depend on the layout, so claimed gives the true ratios for
/// hybrid.
void Bench::run(const DataSet& set) {
  constexpr std::pair<const char*, const char*> rivals[] = {
      {"dense", ""},          {"sparse", ""},           {"hybrid", ""},
      {"predictive", "1.1"},  {"predictive", "1.18"},   {"predictive", "1.25"},
      {"predictive", "1.33"}, {"predictive", "1.43"},   {"arena", "storage"},
      {"arena", "balanced"},  {"arena", "performance"},
  };
  // Chunk sizes above the largest field give equal chunks.
  std::uint64_t largest_bytes = 0;
  for (const Field& field : set.fields) {
    largest_bytes = std::max(largest_bytes, n_elements(field.step_shape) * sizeof(float));
  }
  for (const double bound : kRelativeBounds) {
    for (const std::uint64_t chunk_bytes : kChunkBytes) {
      if (chunk_bytes > kChunkBytes[0] && chunk_bytes / 4 > largest_bytes) continue;
      const Recipe plain{codec_, bound, chunk_bytes, "claimed", ""};
      const Written claimed = write(set, plain, {});
      print(set, plain, claimed);
      for (const auto& [layout, space] : rivals) {
        if (!only_layout_.empty() && only_layout_ != layout) continue;
        // These layouts predict nothing, so one bound suffices.
        const bool plain_rival =
            layout == std::string_view("dense") || layout == std::string_view("sparse");
        if (plain_rival && bound != 1e-3) continue;
        const Recipe recipe{codec_, bound, chunk_bytes, layout, space};
        print(set, recipe, write(set, recipe, claimed.ratios));
      }
      if (is_root()) std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  std::string scratch;
  std::string codec = "trz";
  std::string only_layout;
  std::uint64_t n_seeds = 0;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--scratch" && has_value) {
      scratch = argv[++i];
    } else if (argument == "--codec" && has_value) {
      codec = argv[++i];
    } else if (argument == "--layout" && has_value) {
      only_layout = argv[++i];
    } else if (argument == "--synthetic" && has_value) {
      n_seeds = std::strtoull(argv[++i], nullptr, 10);
    } else {
      files.push_back(argument);
    }
  }
  if (scratch.empty() || (files.empty() && n_seeds == 0)) {
    give_up(
        "usage: layout_space --scratch FOLDER [--codec NAME] [--layout NAME] [--synthetic N] "
        "FILE.h5[:steps]...");
  }
  Bench bench(session, scratch, codec, only_layout);
  if (bench.is_root()) {
    std::printf("# layout_space: %s, %zu cores, %s, g++ %s, trz with %s; %s\n",
                processor_name().c_str(), static_cast<std::size_t>(n_cores_of_node()),
                file_system_of(scratch).c_str(), __VERSION__, trz::isa_name(trz::best_isa()),
                utc_now().c_str());
    std::printf(
        "# bytes and chunks; no times are measured, so that a busy machine changes nothing\n");
    std::printf(
        "data,codec,relative_bound,chunk_bytes,n_ranks,layout,space,steps,n_chunks,"
        "n_overflow_chunks,encoded_bytes,reserved_bytes,slack_bytes,overhead,overflow_share,"
        "mean_size_error\n");
  }
  for (const std::string& file : files) bench.run(read_data_set(file));
  for (std::uint64_t seed = 1; seed <= n_seeds; ++seed) bench.run(synthetic_data_set(seed));
  return 0;
}
