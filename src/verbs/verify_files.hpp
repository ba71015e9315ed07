// verify: checks that every value of the compressed file is within its promised bound.
//
// Two files are compared field by field, box by box, on any number of ranks. Each rank reads the
// boxes dealt to it from both files, so that memory holds only two boxes at a time. The results are
// plain numbers, one VerifyFinding per field, which merge in any order. On request, further passes
// measure the effect of the errors on complete fields (fidelity.hpp).
//
// StructureCheck compares everything else of two HDF5 files, on rank 0. The ranks share the values
// of datasets that are not fields.

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
  std::string bound;                   ///< Bound for all fields, overriding the file's; empty: not
                                       ///< set.
  std::vector<std::string> per_field;  ///< "GLOB:bound=...,fill=..."
  FieldSelection selection;            ///< Selects among the original's fields.
  std::string raw_format;              ///< Format of the original; empty: it describes itself.
  bool follow_external = false;        ///< Compare values in other files, too (OtherFiles).
  bool fidelity = false;               ///< Measure the effect of the errors on each field, too.
  std::string memory{};                ///< Memory limit per rank for that; empty: 256 MiB.
  std::vector<std::string> ignore{};   ///< Globs of objects to leave out in both files.
  std::vector<std::string> ignore_attributes{};  ///< Globs of attribute names to leave out.
  /// Compare the values of the original's fields only: for files that are not copies.
  bool values_only = false;
};

/// Chunks of the original's dataset whose elements have no value.
struct UnwrittenChunks {
  ChunkGrid grid;
  std::vector<std::uint64_t> chunks;  ///< Numbers in the grid, ascending.
};

/// One field to compare.
struct VerifyTask {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::size_t original_index = 0;    ///< Index into the original's fields().
  std::size_t compressed_index = 0;  ///< Index into the compressed file's fields().
  ChunkTiles tiles;   ///< Boxes that are compared at a time: complete chunks of the compressed
                      ///< file.
  Shape chunk_shape;  ///< Chunk shape of the compressed file; empty: not chunked.
  std::optional<double> fill_value;
  /// Fill value that the compressed file declares instead; empty: the same one.
  std::optional<double> compressed_fill_value;
  ErrorBound requested;  ///< psnr: checked as a PSNR; other modes: by the bounds below.
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is then 0.
  std::vector<double> component_bounds;   ///< See FieldAttributes; empty: one bound for all values.
  std::vector<std::int64_t> box_offsets;  ///< Offsets of the components' boxes.
  /// Cells of a plotfile's level whose values were dropped, as stated by the compressed file and
  /// confirmed by its boxes; null: none.
  std::shared_ptr<const CoveredCells> covered;
  UnwrittenChunks unwritten;         ///< Chunks that are not compared.
  Guards guards;                     ///< Guards that the compressed file records.
  std::vector<RegionGuard> regions;  ///< Recorded regions that can be checked in the file,
  RegionMasks region_masks;          ///< The regions' masks in the file.
  bool bound_known = false;          ///< False: neither the file nor the user states a bound.
  std::string losses;          ///< Text of several losses that the compressed file records; empty:
                               ///< none.
  bool resolve_range = false;  ///< The bound is relative to a range that must be measured.
  std::string codec;
  std::optional<Quantization> quantization;  ///< Rounding of the compressed file's values, else of
                                             ///< the original's.
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;

  /// Limit for errors, in their unit; 0: exact, infinite: no limit.
  double bound() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
  /// True if one bound relative to the range applies to all values.
  bool width_matters() const {
    return requested.needs_range() && std::isfinite(absolute_bound) && absolute_bound > 0;
  }
  bool psnr_requested() const { return requested.mode == BoundMode::psnr && resolve_range; }
};

/// A value that violates its bound. Values are stored as their bytes, so that none is rounded.
struct Offender {
  std::uint64_t index = 0;  ///< Row-major index in the field.
  std::uint64_t original_bits = 0;
  std::uint64_t decoded_bits = 0;
};

/// Result of the comparison of (a part of) one field. Trivially copyable, so that it can be sent as
/// bytes.
struct VerifyFinding {
  static constexpr std::size_t kMostOffenders = 5;
  ChunkComparison comparison;
  std::uint64_t n_covered = 0;  ///< Covered cells, which are not compared.
  ValueRange range;
  MagnitudeCount magnitudes;                     ///< Magnitudes of the originals; set under an
                                                 ///< absolute bound.
  Offender worst;                                ///< Valid if comparison.worst_index is.
  std::array<Offender, kMostOffenders> first{};  ///< The first offenders, by index.
  std::uint64_t n_first = 0;
  std::uint64_t n_guards_broken = 0;  ///< See BrokenGuards::n.
  Offender guard_first;               ///< First value that breaks a guard; valid if n_guards_broken
                                      ///< > 0.
  ValueRange decoded_range;           ///< Range of the decoded values; set under guard=minmax.

  void merge(const VerifyFinding& other);
  /// PSNR in dB: 20 log10(range / root mean square error); infinite if nothing differs.
  double psnr() const;
};

/// One field and the result of its verification.
struct VerifiedField {
  VerifyTask task;
  VerifyFinding finding;
  std::optional<Fidelity> fidelity;  ///< Set if requested.

  bool kept() const;
  /// Number of broken guards, including each extreme that changed under guard=minmax.
  std::uint64_t n_guards_broken() const;
  /// True if the field has a bound that is neither 0 nor infinite.
  bool has_bound() const;
  /// Verdict whether a bound relative to the range is meaningful for the field's values. If it is
  /// not, a kept bound proves little.
  BoundVerdict width() const;
};

struct VerifyReport {
  std::string original_path;
  std::string compressed_path;
  std::vector<VerifiedField> fields;
  std::vector<std::string> problems;  ///< Missing fields, and fields of another shape or type.
  /// Differences other than values of fields; nothing: not requested, or one of the files is not
  /// HDF5.
  std::optional<StructureFindings> structure{};
  std::vector<std::string> ignore{};             ///< Copied from the request.
  std::vector<std::string> ignore_attributes{};  ///< Copied from the request.
  /// Bounds finer than an earlier rounding, or meaningless for most values.
  std::vector<std::string> doubts{};

  /// Sentences about problems and failing differences: the first ones of each aspect, and the
  /// number of the rest.
  std::vector<std::string> all_problems(std::size_t most_of_aspect) const;
  /// Number of fields that violate their bound, plus problems and failing differences.
  std::uint64_t n_failed() const;
  /// True if all values are compared and within their bounds, whatever else differs.
  bool values_kept() const;
  /// Number of fields whose kept bound proves little.
  std::uint64_t n_doubtful() const;
};

/// Open both files, pair their fields by path and compare them. Collective.
/// @error errors that prevent the comparison; a broken bound is not an error.
Result<VerifyReport> verify_files(const VerbRanks& ranks, const VerifyRequest& request);

/// Coordinates of row-major position `index` in an array of this shape.
Shape position_of(const Shape& shape, std::uint64_t index);
/// Text of the value with these bytes, with enough digits to distinguish it from every other value.
std::string value_text(DType dtype, std::uint64_t bits);
/// Absolute error |decoded - original| of an offender, as a double.
double offender_error(DType dtype, const Offender& offender);
/// Error of an offender as a fraction of |original|; infinite if the original is zero.
double offender_relative_error(DType dtype, const Offender& offender);

// --- Report fields; docs/cli.md explains the names
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
  visit("bound_mode", bound_mode_name(task.requested.mode));
  visit("bound_asked", task.requested.value);
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
  if (found.worst_index != ChunkComparison::kNoIndex) {
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

/// Number of differences of one aspect.
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
  visit("values_kept", report.values_kept());
  visit("problems", report.all_problems(StructureFindings::most_of_aspect));
  visit("doubts", report.doubts);
  visit("ignored", report.ignore);
  visit("ignored_attributes", report.ignore_attributes);
  visit("structure", report.structure);
  visit("fields", report.fields);
}

}  // namespace tailrace::verbs
