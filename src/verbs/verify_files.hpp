// verify: is every value of the compressed file as near to the original as was promised?
//
// Two files are compared field by field, box by box, on any number of ranks. Each rank reads the
// boxes dealt to it from both files, so nothing is held but two boxes at a time. What it finds are
// plain numbers, one VerifyFinding per field, which merge in any order. What the errors do to a
// field as a whole is measured by further passes, where that is asked for (fidelity.hpp).
//
// Everything else of two HDF5 files is compared by StructureCheck: by rank 0, but for the values of
// datasets that are no fields, which the ranks share.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "core/covered_cells.hpp"
#include "describe/structure_check.hpp"
#include "policy/bound_width.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "verbs/chunk_tiles.hpp"
#include "verbs/fidelity.hpp"
#include "verbs/input_fields.hpp"
#include "verbs/report_fields.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {

struct VerifyRequest {
  std::string original;
  std::string compressed;
  std::string bound;                   ///< For all fields, over what the file says; empty: none.
  std::vector<std::string> per_field;  ///< "GLOB:bound=...,fill=..."
  FieldSelection selection;            ///< Of the original's fields.
  std::string raw_format;              ///< Of the original; empty: it says what it is.
  bool follow_external = false;        ///< Compare values in other files, too (OtherFiles).
  bool fidelity = false;               ///< Measure what the errors do to each field, too.
  std::string memory{};                ///< What a rank may hold for that; empty: 256 MiB.
  std::vector<std::string> ignore{};   ///< Globs of objects of both files to leave out.
  std::vector<std::string> ignore_attributes{};  ///< Globs of attributes' names to leave out.
  /// Compare the values of the original's fields and nothing else: for files that are no copies.
  bool values_only = false;
};

/// Chunks of the original's dataset whose elements have no value.
struct UnwrittenChunks {
  ChunkGrid grid;
  std::vector<std::uint64_t> chunks;  ///< Their numbers in the grid, ascending.
};

/// One field to compare.
struct VerifyTask {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::size_t original_index = 0;    ///< Into the original's fields().
  std::size_t compressed_index = 0;  ///< Into the compressed file's fields().
  ChunkTiles tiles;   ///< Of what is compared at once: whole chunks of the compressed file.
  Shape chunk_shape;  ///< Of the compressed file; empty: it is not chunked.
  std::optional<double> fill_value;
  ErrorBound asked;  ///< psnr: checked as a PSNR; else as the bound below.
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  std::vector<double> component_bounds;   ///< As FieldAttributes; empty: one for all values.
  std::vector<std::int64_t> box_offsets;  ///< Of the components' boxes.
  /// Of a plotfile's level: cells whose values were not kept, as the compressed file says and its
  /// boxes confirm; null: all were.
  std::shared_ptr<const CoveredCells> covered;
  UnwrittenChunks unwritten;         ///< Not compared.
  Guards guards;                     ///< As the compressed file records them.
  std::vector<RegionGuard> regions;  ///< Those of them that the file can be held to,
  RegionMasks region_masks;          ///< and their masks in it.
  bool bound_known = false;          ///< False: neither the file nor the user says a bound.
  std::string losses;          ///< As the compressed file records several; empty: it does not.
  bool resolve_range = false;  ///< The bound is relative to a range that must be measured.
  std::string codec;
  std::optional<Quantization> quantization;  ///< Of the compressed file's values, else originals'.
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;

  /// What errors are held to, in their unit; 0: exact, infinite: nothing.
  double bound() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
  /// Whether the bound is relative to the range, and one number for all values.
  bool width_matters() const {
    return asked.needs_range() && std::isfinite(absolute_bound) && absolute_bound > 0;
  }
  bool psnr_asked() const { return asked.mode == BoundMode::psnr && resolve_range; }
};

/// A value that is not what it should be. Values are kept as their bytes, so that none is rounded.
struct Offender {
  std::uint64_t index = 0;  ///< Row-major in the field.
  std::uint64_t original_bits = 0;
  std::uint64_t decoded_bits = 0;
};

/// What the comparison of (a part of) one field found. Trivially copyable: it travels as bytes.
struct VerifyFinding {
  static constexpr std::size_t most_offenders = 5;
  ChunkComparison comparison;
  std::uint64_t n_covered = 0;  ///< Not compared: covered cells.
  ValueRange range;
  MagnitudeCount magnitudes;                     ///< Of the originals, under an absolute bound.
  Offender worst;                                ///< Valid if comparison.worst_index is.
  std::array<Offender, most_offenders> first{};  ///< The first ones, by index.
  std::uint64_t n_first = 0;
  std::uint64_t n_guards_broken = 0;  ///< As BrokenGuards::n.
  Offender guard_first;               ///< Valid if there are any: the first of them.
  ValueRange decoded_range;           ///< Under guard=minmax.

  void merge(const VerifyFinding& other);
  /// In dB: 20 log10(range / root mean square error); infinite if nothing differs.
  double psnr() const;
};

/// One field, and how far it keeps its promise.
struct VerifiedField {
  VerifyTask task;
  VerifyFinding finding;
  std::optional<Fidelity> fidelity;  ///< Where it was asked for.

  bool kept() const;
  /// What breaks a guard, and each extreme that is another under guard=minmax.
  std::uint64_t n_guards_broken() const;
  /// Held to more than equality, and to something at all.
  bool has_bound() const;
  /// Whether a bound that is relative to the range of the values means something for them; a kept
  /// promise says little where it does not.
  BoundVerdict width() const;
};

struct VerifyReport {
  std::string original_path;
  std::string compressed_path;
  std::vector<VerifiedField> fields;
  std::vector<std::string> problems;  ///< What is missing, or of another shape or type.
  /// Differences besides the values of fields; nothing: it was not asked for, or one of the files
  /// is not HDF5.
  std::optional<StructureFindings> structure{};
  std::vector<std::string> ignore{};             ///< As asked for.
  std::vector<std::string> ignore_attributes{};  ///< As asked for.
  /// Bounds that keep what an earlier rounding has made, or mean little for most values.
  std::vector<std::string> doubts{};

  /// Sentences on problems and on failing differences: the first ones of each aspect, and how many
  /// more there are.
  std::vector<std::string> all_problems(std::size_t most_of_aspect) const;
  /// Fields that do not keep their promise, and problems.
  std::uint64_t n_failed() const;
  /// Fields whose kept promise says little.
  std::uint64_t n_doubtful() const;
};

/// Open both files, pair their fields by path and compare them. Collective.
/// @error what kept the comparison from being made; that a bound is broken is no error.
Result<VerifyReport> verify_files(const VerbRanks& ranks, const VerifyRequest& request);

/// Where in an array of this shape the row-major position `index` is.
Shape position_of(const Shape& shape, std::uint64_t index);
/// The value that these bytes are, with as many digits as tell it from every other.
std::string value_text(DType dtype, std::uint64_t bits);
/// |decoded - original| of an offender as a double.
double offender_error(DType dtype, const Offender& offender);
/// The same as a fraction of |original|; infinite for a zero.
double offender_relative_error(DType dtype, const Offender& offender);

// --- what the report tells; docs/cli.md explains the names
// -----------------------------------------

struct OffendingValue {
  const VerifyTask& task;
  const Offender& offender;
};

template <class Visit>
void report_fields(const OffendingValue& value, Visit&& visit) {
  const DType dtype = value.task.dtype;
  visit("index", position_of(value.task.shape, value.offender.index));
  visit("original", value_text(dtype, value.offender.original_bits));
  visit("decoded", value_text(dtype, value.offender.decoded_bits));
  visit("error", offender_error(dtype, value.offender));
}

template <class Visit>
void report_fields(const VerifiedField& field, Visit&& visit) {
  const VerifyTask& task = field.task;
  const VerifyFinding& finding = field.finding;
  const ChunkComparison& found = finding.comparison;
  const bool pointwise = task.pointwise_bound > 0;
  visit("path", task.path);
  visit("dtype", dtype_name(task.dtype));
  visit("shape", task.shape);
  visit("codec", task.codec);
  visit("bound_mode", bound_mode_name(task.asked.mode));
  visit("bound_asked", task.asked.value);
  visit("absolute_bound",
        value_if(std::isfinite(task.absolute_bound) && task.bound_known && !pointwise,
                 task.absolute_bound));
  visit("pointwise_bound", value_if(pointwise, task.pointwise_bound));
  visit("max_error", found.largest_error);
  visit("max_error_over_bound",
        value_if(field.has_bound() && task.bound_known, found.largest_error / task.bound()));
  visit("n_values", found.n_values);
  visit("n_covered", finding.n_covered);
  visit("n_beyond_bound", found.n_beyond_bound);
  visit("n_special_changed", found.n_special_changed);
  visit("guard", guards_text(task.guards));
  visit("n_guards_broken", field.n_guards_broken());
  visit("quantization", task.quantization);
  // Infinite for an exact field, which has no PSNR.
  visit("psnr_db", value_if(std::isfinite(finding.psnr()), finding.psnr()));
  visit("n_nan", finding.range.n_nan);
  visit("n_inf", finding.range.n_inf);
  visit("n_fill", finding.range.n_fill);
  visit("raw_bytes", task.raw_bytes);
  visit("encoded_bytes", task.stored_bytes);
  visit("kept", field.kept());
  visit("doubtful", !field.width().fine());
  if (found.worst_index != ChunkComparison::no_index) {
    visit("worst", OffendingValue{task, finding.worst});
  }
  std::vector<OffendingValue> offenders;
  for (std::uint64_t i = 0; i < finding.n_first; ++i) {
    offenders.push_back({task, finding.first[i]});
  }
  visit("offenders", offenders);
  if (field.fidelity) visit("fidelity", *field.fidelity);
}

template <class Visit>
void report_fields(const StructureDifference& difference, Visit&& visit) {
  visit("path", difference.path);
  visit("aspect", difference.aspect);
  visit("text", difference.text);
  visit("fails", difference.fails);
}

/// How many differences of one aspect there are.
struct AspectCount {
  std::string aspect;
  StructureFindings::Count count;
};

template <class Visit>
void report_fields(const AspectCount& count, Visit&& visit) {
  visit("aspect", count.aspect);
  visit("n_failing", count.count.n_failing);
  visit("n_listed", count.count.n_listed);
}

template <class Visit>
void report_fields(const StructureFindings& findings, Visit&& visit) {
  std::vector<AspectCount> counts;
  for (const auto& [aspect, count] : findings.counts) counts.push_back({aspect, count});
  visit("n_objects", findings.n_objects);
  visit("n_links", findings.n_links);
  visit("n_attributes", findings.n_attributes);
  visit("n_datasets", findings.n_datasets);
  visit("n_ignored_objects", findings.n_ignored_objects);
  visit("n_ignored_attributes", findings.n_ignored_attributes);
  visit("n_failing", findings.n_failing());
  visit("counts", counts);
  visit("differences", findings.differences);
}

template <class Visit>
void report_fields(const VerifyReport& report, Visit&& visit) {
  document_head("verify", visit);
  visit("original", report.original_path);
  visit("compressed", report.compressed_path);
  visit("n_failed", report.n_failed());
  visit("problems", report.all_problems(StructureFindings::most_of_aspect));
  visit("doubts", report.doubts);
  visit("ignored", report.ignore);
  visit("ignored_attributes", report.ignore_attributes);
  visit("structure", report.structure);
  visit("fields", report.fields);
}

}  // namespace tailrace::verbs
