// Search and reading of the sets.

#include "workload_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "codec/verify.hpp"
#include "core/options.hpp"
#include "read/read.hpp"
#include "synthetic_sets.hpp"

namespace tailrace::bench {
namespace {

/// Set of the data folder.
struct KnownSet {
  const char* name;
  const char* file;
  /// Fill values that the file does not declare, "GLOB:VALUE".
  std::vector<const char*> fills;
  /// Glob of fields that repeat another field's values.
  const char* without;
};

const std::vector<KnownSet>& known_sets() {
  static const std::vector<KnownSet> sets = {
      {"nyx", "nyx64_s140.h5", {}, ""},
      {"particles", "nyx64_particles_s090.h5", {}, ""},
      {"climate", "climate.h5", {"levitus_*:-1e10", "coads_*:-1e34"}, "levitus_salt_nan"}};
  return sets;
}

const KnownSet* find_set(const std::string& name) {
  const auto found = std::find_if(known_sets().begin(), known_sets().end(),
                                  [&](const KnownSet& set) { return name == set.name; });
  return found == known_sets().end() ? nullptr : &*found;
}

std::string data_folder(const BenchOptions& options) {
  if (!options.data_folder.empty()) return options.data_folder;
  const char* named = std::getenv("TAILRACE_DATA");
  return named != nullptr && *named != '\0' ? named : "../shared/data";
}

/// Reason for which a field cannot be part of the workload; empty if it can.
std::string unfit(const StoredDataset& field, const KnownSet* set) {
  if (!is_floating(*field.dtype)) return "not floating-point numbers";
  if (field.coordinate) return "a coordinate";
  if (field.shape.empty() || n_elements(field.shape) < 4096) return "too small";
  if (set != nullptr && *set->without != '\0' && glob_matches(set->without, field.path)) {
    return "repeats the values of another field";
  }
  return "";
}

std::optional<double> fill_of(const StoredDataset& field, const std::vector<FillChoice>& fills) {
  for (const FillChoice& fill : fills) {
    if (glob_matches(fill.glob, field.path)) return fill.value;
  }
  return field.missing_value;
}

Status visit_file(const std::string& path, const KnownSet* set, const BenchOptions& options,
                  Source& source, const std::function<Status(SourceField&&)>& take) {
  std::vector<FillChoice> fills = options.fills;
  if (set != nullptr) {
    for (const char* fill : set->fills) TAILRACE_TRY(parse_fill(fill, fills));
  }
  Result<std::unique_ptr<InputFile>> opened = open_input_file(path);
  if (!opened.ok()) return opened.status();
  InputFile& input = **opened;
  const auto n_fit = static_cast<std::size_t>(
      std::count_if(input.fields().begin(), input.fields().end(),
                    [&](const StoredDataset& field) { return unfit(field, set).empty(); }));
  std::size_t n_taken = 0;
  for (std::size_t f = 0; f < input.fields().size(); ++f) {
    const StoredDataset& found = input.fields()[f];
    std::string reason = unfit(found, set);
    SourceField field{found.path, *found.dtype, found.shape, fill_of(found, fills),
                      {},         false,        n_fit};
    if (reason.empty()) {
      field.values = Buffer(n_elements(found.shape) * found.value_bytes());
      if (!field.values.allocated()) {
        return Status(Code::out_of_memory, "not enough memory for field \"" + found.path + "\"");
      }
      TAILRACE_TRY(input.read(f, whole_box(found.shape), field.values.bytes()));
      const ValueRange range = value_range(*found.dtype, field.values.bytes(), field.fill_value);
      if (range.n_nan + range.n_inf > 0) reason = "has values that are not finite";
      if (range.constant()) reason = "all values are equal";
    }
    if (!reason.empty()) {
      source.remarks.push_back(fmt::format("left out {}: {}", found.path, reason));
      continue;
    }
    TAILRACE_TRY(take(std::move(field)));
    ++n_taken;
  }
  if (n_taken > 0) return Status();
  return Status(Code::invalid_argument,
                path + ": expected a floating-point field of at least 4096 values");
}

/// Generate the fields of a set from the seed, in the shape of this rank's block.
Status visit_generated(const Comm& comm, const std::string& name, const BenchOptions& options,
                       Source& source, const std::function<Status(SourceField&&)>& take) {
  const auto n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
  const std::uint64_t seed = options.seed * n_ranks + static_cast<std::uint64_t>(comm.rank());
  const SyntheticSet& set = synthetic_set(name);
  Shape block = wanted_block(options, set.n_fields, set.shape, sizeof(float));
  if (block.empty()) block = set.shape;
  if (block.size() != set.shape.size()) {
    return Status(Code::invalid_argument,
                  fmt::format("--cells: generated {} fields have {} dimensions, found {}", name,
                              set.shape.size(), block.size()));
  }
  source.label = fmt::format("synthetic {}, seed {}: {}", name, options.seed, set.summary);
  for (SyntheticField& made : set.make(block, seed)) {
    SourceField field{"/" + made.name, DType::f32, block, made.fill_value, {}, true, set.n_fields};
    field.values = Buffer::copy_of(std::as_bytes(std::span(made.values)));
    if (!field.values.allocated())
      return Status(Code::out_of_memory, "not enough memory for a block");
    TAILRACE_TRY(take(std::move(field)));
  }
  return Status();
}

}  // namespace

bool is_workload_set(const std::string& name) { return find_set(name) != nullptr; }

Shape wanted_block(const BenchOptions& options, std::size_t n_fields, const Shape& shape,
                   std::uint64_t element_bytes) {
  if (!options.bytes_per_rank || shape.empty()) return options.cells;
  const double cells =
      static_cast<double>(*options.bytes_per_rank) / static_cast<double>(n_fields * element_bytes);
  const bool cube = shape.size() > 1 && std::count(shape.begin(), shape.end(), shape.front()) ==
                                            static_cast<std::ptrdiff_t>(shape.size());
  if (!cube) {
    Shape block = shape;
    const std::uint64_t others = n_elements(shape) / shape.front();
    const double rows = std::round(cells / static_cast<double>(others));
    block.front() = static_cast<std::uint64_t>(std::max(1.0, rows));
    return block;
  }
  // Choose a multiple of the default chunk, or a power of two below one chunk.
  constexpr std::uint64_t chunk_edge = 64;
  const double edge = std::pow(cells, 1.0 / static_cast<double>(shape.size()));
  auto rounded = static_cast<std::uint64_t>(std::lround(edge / chunk_edge)) * chunk_edge;
  if (rounded == 0) {
    for (rounded = 1; static_cast<double>(2 * rounded) <= edge;) rounded *= 2;
  }
  return Shape(shape.size(), rounded);
}

Result<Source> visit_source(const Comm& comm, const BenchOptions& options,
                            const std::function<Status(SourceField&&)>& take) {
  Source source;
  const KnownSet* set = find_set(options.workload);
  std::string path = options.workload;
  if (set != nullptr && !options.generated) {
    path = data_folder(options) + "/" + set->file;
    if (!std::filesystem::exists(path)) {
      if (!options.data_folder.empty()) {
        return Status(Code::not_found, "--data: \"" + path + "\" does not exist");
      }
      source.remarks.push_back(
          fmt::format("{}: using generated fields, since {} does not exist; set --data or "
                      "TAILRACE_DATA to the folder of real data",
                      set->name, path));
      path.clear();
    }
  }
  if (path.empty() || options.generated) {
    TAILRACE_TRY(visit_generated(comm, options.workload, options, source, take));
    return source;
  }
  source.label = "real " + std::filesystem::path(path).filename().string();
  if (set == nullptr) source.label = std::filesystem::path(path).filename().string();
  TAILRACE_TRY(visit_file(path, set, options, source, take));
  return source;
}

}  // namespace tailrace::bench
