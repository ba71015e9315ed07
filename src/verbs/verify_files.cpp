// Pairs fields, determines their bounds; reads, compares and merges findings.
//
// The bound of a field is the user's (bound, per_field) if given, else what the Writer recorded in
// the dataset's attributes, else 0: a file that states no loss is expected to have none.

#include "verbs/verify_files.hpp"
#include "core/glob_options.hpp"
#include "core/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "codec/value_lanes.hpp"
#include "describe/field_attributes.hpp"
#include "describe/netcdf_classic_copy.hpp"
#include "exec/thread_team.hpp"
#include "field/range_evidence.hpp"
#include "hdf5/one_file.hpp"
#include "verbs/chunk_tiles.hpp"
#include "verbs/region_masks.hpp"
#include "verbs/verify_concat.hpp"
#include "verbs/verify_guards.hpp"
#include "verbs/verify_structure.hpp"
#include "verbs/verify_unwritten.hpp"

namespace tailrace::verbs {
namespace {

static_assert(std::is_trivially_copyable_v<VerifyFinding>, "findings travel as bytes");

constexpr OptionSyntax kSyntaxOfVerify = {
    "write the file again; tailrace repack: --field 'PATH:fill=VALUE'"};

/// Memory for reading several boxes of the original together if its chunks span several boxes.
constexpr std::uint64_t kTileBytes = 64U << 20;

std::uint64_t bits_at(std::span<const std::byte> values, std::uint64_t index, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, values.data() + index * bytes, bytes);
  return bits;
}

template <class T>
T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Call `visit` with the bits as a value of `dtype`.
template <class Visit>
auto with_value(DType dtype, std::uint64_t bits, Visit&& visit) {
  // Promote, so that a number of one byte is not formatted as a character.
  return visit_dtype(dtype, [&]<class T>() { return visit(+value_of<T>(bits)); });
}

/// Values of both arrays in one box of one field.
struct ComparedBox {
  const VerifyTask& task;
  Box box;
  std::span<const std::byte> original;
  std::span<const std::byte> decoded;
  std::span<const std::uint8_t> covered;  ///< Marks of values that do not count; empty: all count.
  const RegionLevels& tighter;            ///< Bounds of regions.

  std::size_t element_bytes() const { return dtype_bytes(task.dtype); }
  ChunkComparison compare(std::uint64_t first, std::uint64_t count) const {
    if (covered.empty()) return compare_run(first, count);
    ChunkComparison all;
    for (std::uint64_t at = first; at < first + count;) {
      const auto rest = covered.subspan(at, first + count - at);
      const auto end =
          static_cast<std::uint64_t>(std::ranges::find(rest, rest[0] ^ 1U) - rest.begin());
      if (rest[0] == 0) all.merge(compare_run(at, end), at - first);
      at += end;
    }
    return all;
  }
  /// Compare values that all count.
  ChunkComparison compare_run(std::uint64_t first, std::uint64_t count) const {
    const std::size_t bytes = element_bytes();
    const auto from = original.subspan(first * bytes, count * bytes);
    const auto to = decoded.subspan(first * bytes, count * bytes);
    if (task.pointwise_bound > 0) {
      return compare_pointwise(task.dtype, from, to, task.pointwise_bound, task.fill_value);
    }
    if (!task.box_offsets.empty()) return compare_components(first, from, to);
    return compare_values(task.dtype, from, to, task.absolute_bound, task.fill_value);
  }
  /// Compare values of a plotfile's level, which has one dimension: each component has a separate
  /// bound.
  ChunkComparison compare_components(std::uint64_t first, std::span<const std::byte> from,
                                     std::span<const std::byte> to) const {
    const std::size_t bytes = element_bytes();
    const std::uint64_t count = from.size() / bytes;
    ChunkComparison all;
    for (std::uint64_t done = 0; done < count;) {
      const auto at = static_cast<std::int64_t>(box.start[0] + first + done);
      const auto behind = std::ranges::upper_bound(task.box_offsets, at);
      const std::int64_t begin = *(behind - 1);
      const std::int64_t n_cells =
          (*behind - begin) / static_cast<std::int64_t>(task.component_bounds.size());
      const auto component = static_cast<std::size_t>((at - begin) / n_cells);
      const auto left = static_cast<std::uint64_t>(n_cells - (at - begin) % n_cells);
      const std::uint64_t n_here = std::min(left, count - done);
      all.merge(compare_values(task.dtype, from.subspan(done * bytes, n_here * bytes),
                               to.subspan(done * bytes, n_here * bytes),
                               task.component_bounds[component], task.fill_value),
                done);
      done += n_here;
    }
    return all;
  }
  /// Position in the complete field of a position in the box.
  std::uint64_t field_index(std::uint64_t index) const {
    std::uint64_t result = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = box.rank(); d-- > 0;) {
      result += (box.start[d] + index % box.count[d]) * stride;
      index /= box.count[d];
      stride *= task.shape[d];
    }
    return result;
  }
  Offender offender(std::uint64_t index) const {
    return {field_index(index), bits_at(original, index, element_bytes()),
            bits_at(decoded, index, element_bytes())};
  }
};

/// Collect the first offenders among `count` values by bisection. So compare_values() is the only
/// definition of an offender, and parts without offenders cost one comparison.
void find_offenders(const ComparedBox& box, std::uint64_t first, std::uint64_t count,
                    VerifyFinding& finding) {
  if (finding.n_first == VerifyFinding::kMostOffenders) return;
  if (box.compare(first, count).within_bound()) return;
  if (count == 1) {
    finding.first[finding.n_first++] = box.offender(first);
    return;
  }
  find_offenders(box, first, count / 2, finding);
  find_offenders(box, first + count / 2, count - count / 2, finding);
}

/// Find violations of the field's guards. Minmax concerns the complete field and is judged later.
void check_guards(const ComparedBox& box, VerifyFinding& finding) {
  const VerifyTask& task = box.task;
  if (task.guards.minmax) {
    finding.decoded_range = value_range(task.dtype, box.decoded, task.fill_value);
  }
  // Dropped values violate nothing.
  std::vector<std::byte> original;
  for (std::size_t i = 0, bytes = box.element_bytes(); i < box.covered.size(); ++i) {
    if (i == 0) original.assign(box.original.begin(), box.original.end());
    if (box.covered[i] == 0) continue;
    std::memcpy(original.data() + i * bytes, box.decoded.data() + i * bytes, bytes);
  }
  const std::span<const std::byte> held_to = original.empty() ? box.original : original;
  const BrokenGuards broken = find_broken_guards(task, box.box, box.tighter, held_to, box.decoded);
  finding.n_guards_broken = broken.n;
  if (broken.n > 0) finding.guard_first = box.offender(broken.first);
}

VerifyFinding compare_box(const ComparedBox& box) {
  VerifyFinding finding;
  const std::uint64_t count = box.box.n_elements();
  finding.comparison = box.compare(0, count);
  finding.n_covered = static_cast<std::uint64_t>(std::ranges::count(box.covered, 1));
  finding.range = value_range(box.task.dtype, box.original, box.task.fill_value);
  if (box.task.width_matters()) {
    finding.magnitudes =
        count_below(box.task.dtype, box.original, box.task.absolute_bound, box.task.fill_value);
  }
  if (!finding.comparison.within_bound()) find_offenders(box, 0, count, finding);
  check_guards(box, finding);
  ChunkComparison& comparison = finding.comparison;
  if (comparison.worst_index != ChunkComparison::kNoIndex) {
    finding.worst = box.offender(comparison.worst_index);
    comparison.worst_index = finding.worst.index;
  }
  if (comparison.first_bad_index != ChunkComparison::kNoIndex) {
    comparison.first_bad_index = box.field_index(comparison.first_bad_index);
  }
  return finding;
}

std::vector<DealtField> dealt_fields(std::span<const VerifyTask> tasks) {
  std::vector<DealtField> dealt;
  for (const VerifyTask& task : tasks) {
    dealt.push_back({task.tiles.grid().n_chunks(), task.raw_bytes});
  }
  return dealt;
}

/// Call `visit(task index, box)` for all boxes of this rank; stops at the first failure.
template <class Visit>
Status for_each_own_box(const Comm& comm, std::span<const VerifyTask> tasks, Visit&& visit) {
  for (const ChunkRun& run : deal_chunks(dealt_fields(tasks), comm.rank(), comm.n_ranks())) {
    const VerifyTask& task = tasks[run.field_index];
    for (std::uint64_t position = run.first; position < run.end; ++position) {
      const Box box = task.tiles.grid().clipped_box(task.tiles.chunk_at(position));
      TAILRACE_TRY(visit(run.field_index, box));
    }
  }
  return Status();
}

std::uint64_t box_bytes(const VerifyTask& task, const Box& box) {
  return box.n_elements() * dtype_bytes(task.dtype);
}

/// Merge the findings of all ranks, on every rank.
void share_findings(Comm& comm, std::vector<VerifyFinding>& findings) {
  const std::span<std::byte> mine = std::as_writable_bytes(std::span(findings));
  const std::vector<Bytes> gathered = comm.gather(mine, 0);
  for (std::size_t r = 1; r < gathered.size(); ++r) {
    for (std::size_t f = 0; f < findings.size(); ++f) {
      VerifyFinding other;
      std::memcpy(&other, gathered[r].data() + f * sizeof other, sizeof other);
      findings[f].merge(other);
    }
  }
  Bytes merged(mine.begin(), mine.end());
  comm.broadcast(merged, 0);
  std::copy(merged.begin(), merged.end(), mine.begin());
}

/// Measure the range of the originals for the tasks that need it, and compute their absolute_bound.
/// Collective.
Status resolve_ranges(TileReader& original, Comm& comm, std::span<VerifyTask> tasks) {
  const auto needs = [](const VerifyTask& task) {
    return task.resolve_range && !task.psnr_requested();
  };
  if (std::none_of(tasks.begin(), tasks.end(), needs)) return Status();
  std::vector<VerifyTask> subset;
  std::vector<std::size_t> positions;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (!needs(tasks[t])) continue;
    subset.push_back(tasks[t]);
    positions.push_back(t);
  }
  std::vector<ValueRange> ranges(subset.size());
  std::vector<std::byte> values;
  const Status mine = for_each_own_box(comm, subset, [&](std::size_t t, const Box& box) {
    values.resize(box_bytes(subset[t], box));
    TAILRACE_TRY(original.read(subset[t].original_index, subset[t].tiles, box, values));
    ranges[t].merge(value_range(subset[t].dtype, values, subset[t].fill_value));
    return Status();
  });
  TAILRACE_TRY(comm.agree(mine));
  std::vector<double> least;
  std::vector<double> greatest;
  for (const ValueRange& range : ranges) {
    least.push_back(range.least);
    greatest.push_back(range.greatest);
  }
  comm.allreduce(least, Reduction::min);
  comm.allreduce(greatest, Reduction::max);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool empty = least[i] > greatest[i];
    tasks[positions[i]].absolute_bound =
        empty ? 0 : absolute_bound(subset[i].requested, least[i], greatest[i]);
  }
  return Status();
}

template <class T>
bool is_masked(T value, double fill_value) {
  if (std::isnan(fill_value)) return value != value;
  return fill_as<T>(fill_value) == value;
}

/// Copy the originals of elements that are masked in both files, each by its own fill value, to the
/// decoded values. The structure comparison reports the different fill values. A float that only
/// the compressed file masks becomes NaN: a change.
void match_fills(const VerifyTask& task, std::span<const std::byte> original,
                 std::span<std::byte> decoded) {
  visit_dtype(task.dtype, [&]<class T>() {
    for (std::size_t at = 0; at + sizeof(T) <= original.size(); at += sizeof(T)) {
      T x;
      T y;
      std::memcpy(&x, original.data() + at, sizeof(T));
      std::memcpy(&y, decoded.data() + at, sizeof(T));
      if (!is_masked(y, *task.compressed_fill_value)) continue;
      if (is_masked(x, *task.fill_value)) {
        std::memcpy(decoded.data() + at, &x, sizeof(T));
      } else if constexpr (std::is_floating_point_v<T>) {
        y = std::numeric_limits<T>::quiet_NaN();
        std::memcpy(decoded.data() + at, &y, sizeof(T));
      }
    }
  });
}

/// Compare all tasks. Collective: the findings are those of all ranks.
/// @error the reading error of the lowest failing rank, on every rank.
Result<std::vector<VerifyFinding>> compare_fields(TileReader& original, InputFile& compressed,
                                                  const VerbRanks& ranks,
                                                  std::span<const VerifyTask> tasks) {
  std::uint64_t total_bytes = 0;
  Status mine = for_each_own_box(ranks.comm, tasks, [&](std::size_t t, const Box& box) {
    total_bytes += box_bytes(tasks[t], box);
    return Status();
  });
  std::vector<VerifyFinding> findings(tasks.size());
  std::vector<std::byte> of_original;
  std::vector<std::byte> of_compressed;
  std::vector<std::uint8_t> covered;
  std::uint64_t done_bytes = 0;
  mine = for_each_own_box(ranks.comm, tasks, [&](std::size_t t, const Box& box) {
    const VerifyTask& task = tasks[t];
    of_original.resize(box_bytes(task, box));
    of_compressed.resize(of_original.size());
    TAILRACE_TRY(original.read(task.original_index, task.tiles, box, of_original));
    // HDF5 does not set memory for a missing chunk without a fill value.
    std::ranges::fill(of_compressed, std::byte{0});
    TAILRACE_TRY(compressed.read(task.compressed_index, box, of_compressed));
    leave_out_unwritten(task, box, of_original, of_compressed);
    if (task.compressed_fill_value) match_fills(task, of_original, of_compressed);
    covered.assign(task.covered != nullptr ? box.n_elements() : 0, 0);
    if (task.covered != nullptr && !task.covered->mark(box.start[0], covered)) covered.clear();
    RegionLevels tighter;
    if (!task.regions.empty()) {
      TAILRACE_TAKE(tighter, region_levels(task.regions, task.region_masks, box, box.count));
    }
    findings[t].merge(compare_box({task, box, of_original, of_compressed, covered, tighter}));
    done_bytes += of_original.size();
    ranks.show(done_bytes, total_bytes);
    return Status();
  });
  TAILRACE_TRY(ranks.comm.agree(mine));
  share_findings(ranks.comm, findings);
  return findings;
}

/// Bounds and fill values from the command line.
struct VerifyRequests {
  std::optional<ErrorBound> bound;
  std::vector<FieldPattern> patterns;
};

Result<VerifyRequests> parse_requests(const VerifyRequest& request) {
  VerifyRequests requests;
  if (!request.bound.empty()) {
    TAILRACE_TAKE(requests.bound, parse_error_bound(request.bound).within("--bound"));
  }
  for (const std::string& text : request.per_field) {
    TAILRACE_TAKE(FieldPattern pattern, parse_field_pattern(text));
    for (const auto& [key, value] : pattern.options) {
      if (key == "bound" || key == "fill") continue;
      return Status(
          Code::invalid_argument,
          fmt::format("--field '{}': verify supports bound= and fill= only, not {}=", text, key));
    }
    requests.patterns.push_back(pattern);
  }
  return requests;
}

/// Derive the bound from the losses that the original's values do not have. The original may be any
/// intermediate file between the first values and the compressed ones.
void hold_to_losses(const Losses& all, const Losses& of_original, VerifyTask& task) {
  task.losses = losses_text(all);
  const std::optional<Losses> since = losses_since(all, of_original);
  const std::optional<ErrorBound> total = since ? total_of(*since) : std::nullopt;
  if (!total) return;
  task.bound_known = true;
  task.requested = *total;
  task.absolute_bound = total->mode == BoundMode::abs ? total->value : 0;
  task.pointwise_bound = pointwise_bound(*total);
}

/// Determine the bound of one field.
/// @param of_original  losses of the original's values.
Status resolve_bound(const StoredDataset& field, const VerifyRequests& requests,
                     const FieldAttributes& recorded, const Losses& of_original, VerifyTask& task) {
  std::optional<ErrorBound> requested = requests.bound;
  // A bound for all fields applies only where loss is possible. A wildcard's does not apply to
  // fields that are recorded as exact. See repack_plan.hpp.
  const bool is_exact = recorded.by_tailrace && recorded.bound.lossless();
  if (is_exact || !is_floating(*field.dtype)) requested.reset();
  FieldOptions options;
  for (const FieldPattern& pattern : requests.patterns) {
    if (!glob_matches(pattern.glob, field.path)) continue;
    for (const KeyValue& entry : pattern.options) {
      TAILRACE_TRY(apply_field_option(entry, options));
      const bool applies = !is_exact || names_alone(pattern.glob, field.path);
      if (entry.first == "bound" && applies) requested = options.bound;
    }
  }
  if (options.fill_value) {
    task.fill_value = options.fill_value;
    task.compressed_fill_value.reset();
  }

  task.bound_known = requested.has_value() || recorded.by_tailrace;
  if (recorded.bound_of_error() > 0) task.guards = recorded.guards;
  if (!requested) {
    task.requested = recorded.bound;
    task.absolute_bound = recorded.absolute_bound;
    task.pointwise_bound = recorded.pointwise_bound;
    if (recorded.losses && recorded.component_bounds.empty()) {
      hold_to_losses(*recorded.losses, of_original, task);
    }
    const bool fits = field.shape.size() == 1 && !recorded.box_offsets.empty() &&
                      static_cast<std::uint64_t>(recorded.box_offsets.back()) == field.shape[0];
    if (!fits) return Status();
    task.component_bounds = recorded.component_bounds;
    task.box_offsets = recorded.box_offsets;
    return Status();
  }
  task.requested = *requested;
  task.resolve_range = requested->needs_range();
  if (requested->mode == BoundMode::abs) task.absolute_bound = requested->value;
  task.pointwise_bound = pointwise_bound(*requested);
  if (task.psnr_requested()) task.absolute_bound = std::numeric_limits<double>::infinity();
  return Status();
}

/// Tighten the bounds for gradient and laplacian guards. If two neighbours stay within half the
/// gradient's bound, the gradient stays within its bound; the same holds for laplacians
/// (docs/guards.md).
void hold_to_neighbours(VerifyTask& task) {
  const auto hold = [&](double& bound) {
    bound = task.guards.bound_within(bound, task.shape.size());
  };
  hold(task.absolute_bound);
  std::ranges::for_each(task.component_bounds, hold);
}

/// Determine the dropped cells of a level. If the file's boxes do not confirm them, the cells are
/// compared, and that is a problem.
Status resolve_covered(InputFile& compressed, const FieldAttributes& recorded, VerifyTask& task,
                       std::vector<std::string>& problems) {
  if (!recorded.covered) return Status();
  TAILRACE_TAKE(const auto boxes, compressed.boxes_of(task.compressed_index));
  LevelCover cover;
  if (boxes != nullptr) {
    TAILRACE_TAKE(cover, compressed.cover_of(task.compressed_index, boxes));
  }
  const bool confirmed = cover.cells != nullptr &&
                         recorded.covered->n_cells == cover.cells->n_cells() &&
                         recorded.covered->checksum == cover.cells->checksum();
  if (confirmed) {
    task.covered = std::move(cover.cells);
  } else {
    problems.push_back(
        fmt::format("field \"{}\": the boxes of the file differ from those used to drop covered "
                    "cells (tailrace_covered_cells), so all values are compared",
                    task.path));
  }
  return Status();
}

/// Find the recorded regions and their masks. A mask that is missing or has another shape is a
/// problem.
void resolve_regions(InputFile& compressed, VerifyTask& task, std::vector<std::string>& problems) {
  const auto look = [&](const RegionGuard& region) -> Status {
    constexpr std::uint64_t kAnyExtents = UINT64_MAX;
    TAILRACE_TRY(check_regions({&region, 1}, task.shape, kAnyExtents));
    TAILRACE_TAKE(RegionMasks masks, find_masks(compressed, {&region, 1}, task.shape, nullptr));
    task.regions.push_back(region);
    task.region_masks.push_back(masks.empty() ? nullptr : std::move(masks.front()));
    return Status();
  };
  for (const RegionGuard& region : task.guards.regions) {
    const Status found = look(region);
    if (found.ok()) continue;
    problems.push_back(fmt::format("field \"{}\": {}", task.path, found.message()));
  }
}

/// Pairs of fields with the same path in both files. Fields without a partner are problems.
struct Pairing {
  std::vector<VerifyTask> tasks;
  std::vector<std::string> problems;
  bool with_structure = false;  ///< True if both are HDF5 files: StructureCheck reports missing
                                ///< objects.
  bool of_classic = false;      ///< The original is a netCDF classic file.
};

std::string difference_text(const StoredDataset& original, const StoredDataset& compressed) {
  if (original.shape != compressed.shape) {
    return fmt::format("field \"{}\": shape {} in the original, {} in the compressed file",
                       original.path, shape_text(original.shape), shape_text(compressed.shape));
  }
  if (original.dtype != compressed.dtype) {
    return fmt::format("field \"{}\": type {} in the original, {} in the compressed file",
                       original.path, dtype_name(*original.dtype), dtype_name(*compressed.dtype));
  }
  return "";
}

/// Report other objects of the original that the compressed file lacks.
void find_missing_objects(const VerifyRequest& request, const InputFile& original,
                          const InputFile& compressed, std::vector<std::string>& problems) {
  std::unordered_set<std::string> there;
  for (const auto& [path, kind] : compressed.objects()) there.insert(path);
  for (const StoredDataset& field : compressed.fields()) there.insert(field.path);
  for (const auto& [path, kind] : original.objects()) {
    if (!is_compared(request, path) || there.contains(path)) continue;
    problems.push_back(fmt::format("{} \"{}\" is missing in the compressed file", kind, path));
  }
}

void take_problems(const ConcatFindings& found, std::vector<std::string>& problems) {
  problems.insert(problems.end(), found.lines.begin(), found.lines.end());
  if (found.n_all > found.lines.size()) {
    problems.push_back(fmt::format("and {} more", found.n_all - found.lines.size()));
  }
}

/// Compare contents of a netCDF classic original that are not fields. Each rank compares its share
/// of the objects. Collective.
Status compare_classic(const VerifyRequest& request, Comm& comm,
                       std::vector<std::string>& problems) {
  int n_seen = 0;
  ConcatFindings found;
  NetcdfCopyCheck check;
  check.wanted = [&](const std::string& path) {
    return is_compared(request, path) && n_seen++ % comm.n_ranks() == comm.rank();
  };
  check.differs = [&](std::string line) { found.add(std::move(line)); };
  TAILRACE_TRY(
      comm.agree(compare_netcdf_classic_copy(request.original, request.compressed, check)));
  take_problems(verbs::share_findings(comm, found), problems);
  return Status();
}

/// True if an attribute of the object states a fill value.
Result<bool> declares_fill(InputFile& file, const std::string& path) {
  const auto is_fill = [](std::string_view name) {
    return name == "_FillValue" || name == "missing_value";
  };
  TAILRACE_TAKE(const auto found, file.attributes_of(path, is_fill));
  return std::ranges::any_of(found, [](const auto& one) { return !one.numbers.empty(); });
}

/// True if both files declare a fill value, and not the same one. A fill value that the record of
/// an encoding states masks the original's values, too.
Result<bool> declare_different_fills(InputFile& original, const StoredDataset& field,
                                     InputFile& compressed, const StoredDataset& other) {
  if (!field.missing_value || !other.missing_value || other.fill_noted) return false;
  if (std::isnan(*field.missing_value) && std::isnan(*other.missing_value)) return false;
  if (*field.missing_value == *other.missing_value) return false;
  TAILRACE_TAKE(const bool first, declares_fill(original, field.path));
  if (!first) return false;
  return declares_fill(compressed, other.path);
}

Result<Pairing> pair_fields(const VerifyRequest& request, const VerifyRequests& requests,
                            InputFile& original, InputFile& compressed) {
  TAILRACE_TRY(request.selection.check(with_others(original.fields(), original.other_datasets())));
  for (const FieldPattern& pattern : requests.patterns) {
    TAILRACE_TRY(check_patterns_match(std::vector{pattern.glob}, "--field", original.fields()));
  }
  Pairing pairing;
  const auto by_hdf5 = [](const InputFile& file) {
    return file.format() == "HDF5" || file.format() == "netCDF-4";
  };
  pairing.with_structure = !request.values_only && by_hdf5(original) && by_hdf5(compressed);
  pairing.of_classic = !request.values_only && original.format() == "netCDF classic";
  std::vector<std::string> paths;
  const std::vector<StoredDataset>& others = compressed.fields();
  std::unordered_map<std::string_view, std::size_t> by_path;
  for (std::size_t i = 0; i < others.size(); ++i) by_path.emplace(others[i].path, i);
  for (std::size_t f = 0; f < original.fields().size(); ++f) {
    const StoredDataset& field = original.fields()[f];
    if (!is_compared(request, field.path)) continue;
    TAILRACE_TRY(check_not_hollow(field));
    const auto found = by_path.find(field.path);
    if (found == by_path.end()) {
      if (pairing.with_structure) continue;
      pairing.problems.push_back(
          fmt::format("field \"{}\" is missing in the compressed file", field.path));
      continue;
    }
    const StoredDataset& other = others[found->second];
    if (const std::string text = difference_text(field, other); !text.empty()) {
      if (!pairing.with_structure) pairing.problems.push_back(text);
      continue;
    }
    VerifyTask task;
    task.path = field.path;
    task.dtype = *field.dtype;
    task.shape = field.shape;
    task.original_index = f;
    task.compressed_index = found->second;
    const Shape box_shape = box_shape_for(field.shape, other.storage.chunk_shape, *field.dtype);
    task.tiles = ChunkTiles({field.shape, box_shape}, field.storage.chunk_shape);
    task.chunk_shape = other.storage.chunk_shape;
    task.fill_value = other.missing_value ? other.missing_value : field.missing_value;
    TAILRACE_TAKE(const bool different,
                  declare_different_fills(original, field, compressed, other));
    if (different) {
      task.fill_value = field.missing_value;
      task.compressed_fill_value = other.missing_value;
    }
    task.raw_bytes = n_elements(field.shape) * field.value_bytes();
    task.stored_bytes = other.stored_bytes;
    // Rounding that only the compressed file states is a part of the compression.
    task.quantization = find_quantization(original, field);
    pairing.tasks.push_back(std::move(task));
    paths.push_back(field.path);
  }
  if (!pairing.with_structure && !request.values_only) {
    find_missing_objects(request, original, compressed, pairing.problems);
  }
  TAILRACE_TAKE(auto recorded, read_field_attributes(request.compressed, paths));
  for (std::size_t t = 0; t < pairing.tasks.size(); ++t) {
    VerifyTask& task = pairing.tasks[t];
    task.codec = recorded[t].codec;
    const StoredDataset& field = original.fields()[task.original_index];
    TAILRACE_TRY(
        resolve_bound(field, requests, recorded[t], find_losses(original, field).losses, task));
    TAILRACE_TRY(resolve_covered(compressed, recorded[t], task, pairing.problems));
    resolve_regions(compressed, task, pairing.problems);
    TAILRACE_TRY(find_unwritten(original, compressed, task, pairing.problems));
    if (recorded[t].guards_unknown.empty()) continue;
    pairing.problems.push_back(fmt::format(
        "field \"{}\": the guards in attribute {} cannot be parsed and are not checked: {}",
        task.path, kGuardAttribute, recorded[t].guards_unknown));
  }
  return pairing;
}

void find_doubts(VerifyReport& report) {
  for (const VerifiedField& field : report.fields) {
    const ValueRange& range = field.finding.range;
    const VerifyTask& task = field.task;
    const BoundSubject subject{task.path,           fmt::format("DOUBTFUL {}", task.path),
                               task.dtype,          task.requested,
                               task.absolute_bound, kSyntaxOfVerify};
    if (std::string text = remark_text(subject, field.width()); !text.empty()) {
      report.doubts.push_back(std::move(text));
    }
    if (!field.task.quantization || !field.has_bound() || range.empty()) continue;
    std::string doubt = quantization_doubt(
        field.task.path, *field.task.quantization, field.task.absolute_bound,
        field.task.pointwise_bound, std::max(std::fabs(range.least), std::fabs(range.greatest)));
    if (!doubt.empty()) report.doubts.push_back(std::move(doubt));
  }
}

constexpr std::uint64_t kDefaultFidelityBytes = 256ULL << 20;

/// Measure the fidelity of each field. Collective.
Status add_fidelity(const VerifyRequest& request, const VerbRanks& ranks, InputFile& original,
                    InputFile& compressed, VerifyReport& report) {
  std::uint64_t memory_bytes = kDefaultFidelityBytes;
  if (!request.memory.empty()) {
    TAILRACE_TAKE(memory_bytes, parse_bytes(request.memory).within("--memory"));
  }
  std::vector<FidelityTask> tasks;
  for (const VerifiedField& field : report.fields) {
    const ChunkComparison& found = field.finding.comparison;
    FidelityTask task;
    task.dtype = field.task.dtype;
    task.shape = field.task.shape;
    task.original_index = field.task.original_index;
    task.compressed_index = field.task.compressed_index;
    task.original_chunk = original.fields()[task.original_index].storage.chunk_shape;
    task.compressed_chunk = compressed.fields()[task.compressed_index].storage.chunk_shape;
    task.fill_value = field.task.fill_value;
    task.compressed_fill_value = field.task.compressed_fill_value;
    task.range = field.finding.range;
    task.equal = found.largest_error == 0 && found.sum_squared_errors == 0 && found.within_bound();
    tasks.push_back(std::move(task));
  }
  TAILRACE_TAKE(auto measured, measure_fidelity(original, compressed, ranks, tasks, memory_bytes));
  for (std::size_t f = 0; f < measured.size(); ++f) {
    report.fields[f].fidelity = std::move(measured[f]);
  }
  return Status();
}

}  // namespace

void VerifyFinding::merge(const VerifyFinding& other) {
  const bool other_is_worse = other.comparison.worst_index != ChunkComparison::kNoIndex &&
                              (comparison.worst_index == ChunkComparison::kNoIndex ||
                               other.comparison.largest_error > comparison.largest_error);
  if (other_is_worse) worst = other.worst;
  if (other.n_guards_broken > 0 &&
      (n_guards_broken == 0 || other.guard_first.index < guard_first.index)) {
    guard_first = other.guard_first;
  }
  n_guards_broken += other.n_guards_broken;
  n_covered += other.n_covered;
  decoded_range.merge(other.decoded_range);
  comparison.merge(other.comparison);
  range.merge(other.range);
  magnitudes.n_nonzero += other.magnitudes.n_nonzero;
  magnitudes.n_below += other.magnitudes.n_below;
  std::array<Offender, 2 * kMostOffenders> both{};
  std::ranges::merge(std::span(first).first(n_first), std::span(other.first).first(other.n_first),
                     both.begin(), {}, &Offender::index, &Offender::index);
  n_first = std::min<std::uint64_t>(n_first + other.n_first, kMostOffenders);
  std::copy_n(both.begin(), n_first, first.begin());
}

double VerifyFinding::psnr() const {
  if (comparison.n_finite == 0 || comparison.sum_squared_errors == 0) {
    return std::numeric_limits<double>::infinity();
  }
  const double mean = comparison.sum_squared_errors / static_cast<double>(comparison.n_finite);
  return 20 * std::log10((range.greatest - range.least) / std::sqrt(mean));
}

bool VerifiedField::kept() const {
  if (!finding.comparison.within_bound() || n_guards_broken() > 0) return false;
  return !task.psnr_requested() || finding.psnr() >= task.requested.value;
}

std::uint64_t VerifiedField::n_guards_broken() const {
  std::uint64_t n_broken = finding.n_guards_broken;
  if (task.guards.minmax && !finding.range.empty()) {
    n_broken += finding.decoded_range.least != finding.range.least ? 1 : 0;
    n_broken += finding.decoded_range.greatest != finding.range.greatest ? 1 : 0;
  }
  return n_broken;
}

bool VerifiedField::has_bound() const { return task.bound() > 0 && std::isfinite(task.bound()); }

std::uint64_t VerifyReport::n_failed() const {
  const auto broken = [](const VerifiedField& field) { return !field.kept(); };
  return problems.size() + (structure ? structure->n_failing() : 0) +
         static_cast<std::uint64_t>(std::ranges::count_if(fields, broken));
}

bool VerifyReport::values_kept() const {
  if (!problems.empty()) return false;
  if (structure && structure->fails_in_values()) return false;
  return std::ranges::all_of(fields, [](const VerifiedField& field) { return field.kept(); });
}

BoundVerdict VerifiedField::width() const {
  if (task.psnr_requested()) {
    const ErrorBound& requested = task.requested;
    const double bound = absolute_bound(requested, finding.range.least, finding.range.greatest);
    return judge_bound(requested, bound, facts_of(finding.range, {}));
  }
  if (judged_by_range(task.requested, task.guards)) {
    const bool one_bound = task.component_bounds.empty() && task.pointwise_bound == 0;
    // A bound that has changed no value has erased nothing.
    if (!one_bound || finding.comparison.largest_error == 0) return {};
    return judge_bound(task.requested, task.absolute_bound, facts_of(finding.range, {}));
  }
  if (!task.width_matters()) return {};
  return judge_bound(task.requested, task.absolute_bound,
                     facts_of(finding.range, finding.magnitudes));
}

std::uint64_t VerifyReport::n_doubtful() const {
  const auto doubtful = [](const VerifiedField& field) { return !field.width().fine(); };
  return static_cast<std::uint64_t>(std::ranges::count_if(fields, doubtful));
}

Result<VerifyReport> verify_files(const VerbRanks& ranks, const VerifyRequest& request) {
  TAILRACE_TAKE(VerifyRequests requests, parse_requests(request));
  ReadOptions options;
  options.n_threads = threads_of_each(0, ranks.comm);
  options.follow_external = request.follow_external;
  TAILRACE_TRY(check_one_file(ranks.comm, request.original));
  TAILRACE_TRY(check_one_file(ranks.comm, request.compressed));
  TAILRACE_TAKE(auto original,
                ranks.agree(open_input(request.original, request.raw_format, options)));
  for (const std::string& remark : original->remarks()) ranks.report(remark);
  // Read the compressed file through HDF5, like other readers.
  options.by_hdf5 = true;
  TAILRACE_TAKE(auto compressed, ranks.agree(open_input_file(request.compressed, {}, options)));
  TAILRACE_TAKE(auto pairing, ranks.agree(pair_fields(request, requests, *original, *compressed)));
  VerifyReport report;
  report.original_path = request.original;
  report.compressed_path = request.compressed;
  report.ignore = request.ignore;
  report.ignore_attributes = request.ignore_attributes;
  if (pairing.with_structure) {
    TAILRACE_TAKE(report.structure, compare_structure(request, ranks, pairing.tasks));
  }
  const bool nothing = pairing.tasks.empty() && !pairing.of_classic &&
                       (!report.structure || report.structure->empty());
  if (nothing && pairing.problems.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("{} contains nothing to compare", request.original));
  }
  if (pairing.of_classic) {
    TAILRACE_TRY(compare_classic(request, ranks.comm, pairing.problems));
  }
  TileReader of_original(*original, kTileBytes);
  TAILRACE_TRY(resolve_ranges(of_original, ranks.comm, pairing.tasks));
  for (VerifyTask& task : pairing.tasks) hold_to_neighbours(task);
  report.problems = std::move(pairing.problems);
  TAILRACE_TAKE(const auto findings,
                compare_fields(of_original, *compressed, ranks, pairing.tasks));
  report.fields.reserve(findings.size());
  for (std::size_t t = 0; t < findings.size(); ++t) {
    report.fields.push_back({pairing.tasks[t], findings[t], {}});
  }
  find_doubts(report);
  if (request.fidelity) {
    TAILRACE_TRY(add_fidelity(request, ranks, *original, *compressed, report));
  }
  return report;
}

Shape position_of(const Shape& shape, std::uint64_t index) {
  Shape position(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    position[d] = shape[d] == 0 ? 0 : index % shape[d];
    index = shape[d] == 0 ? 0 : index / shape[d];
  }
  return position;
}

std::string value_text(DType dtype, std::uint64_t bits) {
  return with_value(dtype, bits, [](auto value) { return fmt::format("{}", value); });
}

double offender_error(DType dtype, const Offender& offender) {
  return with_value(dtype, offender.original_bits, [&](auto original) {
    return with_value(dtype, offender.decoded_bits, [&](auto decoded) {
      const auto exact = static_cast<long double>(decoded) - static_cast<long double>(original);
      return static_cast<double>(exact < 0 ? -exact : exact);
    });
  });
}

double offender_relative_error(DType dtype, const Offender& offender) {
  const double error = offender_error(dtype, offender);
  return with_value(dtype, offender.original_bits, [&](auto original) {
    return error == 0 ? 0 : error / std::fabs(static_cast<double>(original));
  });
}

}  // namespace tailrace::verbs
