// State of a field between its definition and its place in the file, in parts that have one source
// each:
//
//   FieldDefinition  what the application has defined (field.hpp)
//   ResolvedField    how the field is stored: decided once, from data that all ranks agreed on
//   LearnedField     what its steps have shown
//   FieldState       these three, its life cycle, and this step's puts
//
// Also the stages of write.cpp that handle fields before any byte moves: check definitions, look
// them up in the file, choose chunk shapes, resolve bounds, make codecs. Each function takes only
// the parts that it needs. Collective functions say so.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "exec/field_plan.hpp"
#include "field/field.hpp"
#include "field/lineage.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "layout/layout.hpp"
#include "model/dump_time.hpp"
#include "model/size_history.hpp"
#include "policy/bound_width.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {

class Hdf5File;
struct RangeEvidence;

/// Largest chunk in bytes: more does not fit one message between ranks.
inline constexpr std::uint64_t largest_chunk_bytes = 1ULL << 30;

/// How a field is stored. Its first step decides this; it is then constant, and the same on every
/// rank.
struct ResolvedField {
  Shape chunk_shape;  ///< Without the time dimension.
  std::unique_ptr<Layout> layout;
  std::unique_ptr<Codec> codec;
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is then 0.
  /// Guards in the attribute of a continued dataset; used if the definition asks for none.
  Guards stored_guards;
  std::shared_ptr<const ChunkEdit> edit;  ///< Null: all values are kept.
  bool verify = false;
  bool swapped = false;    ///< The dataset's numbers have the other byte order.
  double value_least = 0;  ///< Range of the finite, non-fill values, if bound or target need it.
  double value_greatest = 0;
  BoundVerdict width;           ///< Verdict on a bound that is relative to this range.
  double expected_psnr_db = 0;  ///< Under target=psnr=; 0: no target.
  /// Codecs that were compared for codec=auto, and the index of the chosen one; empty: the user
  /// named the codec.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;
};

/// Experience from the steps of a field or of its lineage. Sizes and times are those of each rank.
struct LearnedField {
  double max_error = 0;           ///< Largest over all steps so far; the same on every rank.
  SizeHistory history;            ///< Sizes of this rank's chunks.
  double encode_correction = 1;   ///< Encode time of these chunks: measured over forecast.
  ClaimedSpace claimed;           ///< Space claimed by this rank's chunks in the field's last step.
  Inheritance inherited;          ///< Data from a similar field in an earlier step.
  BookState book;                 ///< Book state of codec trz,book=auto.
  bool raw_chunks_noted = false;  ///< Rank 0: the log has the remark on unfiltered chunks.
};

/// Life cycle of a field; the same on every rank.
///
///   define_field --> defined ---- its step is committed ----> in_file: done, or, over time, put
///                       | \                                      ^     again by later steps
///                       |  '- handed over --> under_way ---------'
///                       |                         |
///                       '-- the step fails -------'--> retired: its path is free again
///
/// A field whose steps are gathered (write/gathered_steps) stays `waiting` until enough of its
/// steps have arrived. If that step fails, the field returns to `waiting`.
enum class FieldLife : std::uint8_t { waiting, defined, under_way, in_file, retired };

struct FieldState {
  static constexpr std::size_t kNoNumber = static_cast<std::size_t>(-1);

  std::size_t number = kNoNumber;  ///< Number that define_field() returned.
  FieldDefinition definition;
  ResolvedField resolved;
  LearnedField learned;
  FieldLife life = FieldLife::defined;
  bool has_waited = false;  ///< True if steps of it wait, or have waited, for its first chunk to
                            ///< fill.

  // The field's state in the file.
  bool continued = false;                  ///< Its dataset existed when the file was opened.
  std::uint64_t n_entries = 0;             ///< Over time: entries committed.
  std::vector<FilterSpec> stored_filters;  ///< Filters of a continued field; rank 0 only.
  std::uint64_t n_begun = 0;               ///< Steps that the file already holds of the next entry.
  std::vector<StoredChunk> begun_chunks;   ///< Chunks with these steps, numbered within the entry.
  std::shared_ptr<const ChunkBeginnings> beginnings;  ///< How to continue these chunks; null: none
                                                      ///< to continue.

  // This rank's data of this step.
  std::vector<PutRecord> puts;
  std::shared_ptr<const RangeEvidence> evidence;  ///< Kept until all ranks' evidence is
                                                  ///< reduced.
  bool put_called = false;                        ///< True also if the box was empty.

  /// True before the field's first step, which resolves most of `resolved`.
  bool is_new() const { return life == FieldLife::defined; }
  bool makes_dataset() const { return is_new() && !continued; }
  /// True if the field can still be put, or is being written.
  bool is_open() const {
    return life != FieldLife::retired && life != FieldLife::waiting &&
           (life != FieldLife::in_file || definition.options.over_time);
  }
  /// True if no later step needs it.
  bool is_done() const { return !is_open() && life != FieldLife::waiting; }
  ChunkGrid grid() const { return {definition.shape, resolved.chunk_shape}; }
  std::uint64_t chunk_bytes() const {
    return n_elements(resolved.chunk_shape) * definition.element_bytes();
  }
};

/// Facts about a field for the policies, without the time dimension.
DatasetFacts facts_of(const FieldDefinition& definition);

/// True if the encoding of the field depends on the range of its values.
bool needs_range(const FieldOptions& options);
/// True if the rule on wide bounds judges the field's absolute bound by the range of its values.
bool judged_by_range(const FieldDefinition& definition);

/// The least and the greatest value of this rank, as far as the rule on wide bounds needs them for
/// an absolute bound. Stops when the range is wider than the bound spans.
class RangeWithinBound {
 public:
  explicit RangeWithinBound(const FieldDefinition& definition);
  /// Cost: one pass over the values up to the end of the scan.
  /// @returns false if the scan has ended.
  bool add(std::span<const std::byte> values);
  const ValueRange& range() const { return range_; }

 private:
  DType dtype_;
  std::optional<double> fill_value_;
  double absolute_bound_ = 0;
  ValueRange range_;
};

/// True if a field is stored contiguously because it has nothing to compress: a scalar, or empty.
bool stored_plainly(const FieldDefinition& definition);

/// Check a definition without reference to other fields or the file. Not collective. @error
/// invalid_argument, unsupported
Status check_definition(const FieldDefinition& definition);

/// Check a put's box against its field. Not collective. @error bad_coverage, invalid_argument
Status check_box(const FieldDefinition& definition, const Box& box);

/// Text that is equal on two ranks exactly if their definitions are equal.
std::string definition_text(const FieldDefinition& definition);

/// One field's boxes on this rank.
struct LocalBoxes {
  Shape shape;
  std::vector<Box> boxes;
  bool put_called = true;
};
/// Facts about each field's boxes over all ranks. The ranks agree on `mine`, and the numbers in
/// `along` are reduced over all ranks. Collective. Cost: one agreement of O(fields * dimensions)
/// numbers.
Result<std::vector<DecompositionFacts>> common_facts(Comm& comm, std::span<const LocalBoxes> fields,
                                                     const Status& mine = Status(),
                                                     const RankNumbers& along = {});

/// Choose the chunk shapes of new fields. @returns the fields that take part in this step: the new
/// ones, and those that any rank has put. Collective; the error is agreed, see common_facts().
Result<std::vector<std::size_t>> choose_chunk_shapes(Comm& comm, std::vector<FieldState>& fields,
                                                     const Status& mine, const RankNumbers& along);

/// Value ranges to which the bounds of new fields are relative, and ranges by which absolute bounds
/// are judged.
class ValueRanges {
 public:
  /// Finds the range of this rank's values of a field.
  using Scan = std::function<Status(std::size_t field, RangeEvidence& evidence)>;
  /// Scan this rank's values: those that the fields have put, or those that `scan` finds. Not
  /// collective. Cost: one pass over the values that are needed; for absolute bounds usually a
  /// small part of them (RangeWithinBound).
  explicit ValueRanges(const std::vector<FieldState>& fields, const Scan& scan = nullptr);
  /// The first error of the scan. If it is not ok, the range covers only the values that were
  /// scanned.
  const Status& scanned() const { return scanned_; }
  /// Numbers to reduce over all ranks; afterwards the ranges are those of all ranks.
  RankNumbers numbers();
  /// Convert the bounds of the same fields into absolute ones, after the reduction of numbers().
  /// Sets the fields' evidence, from which BoundVerdicts are made, and judges absolute bounds.
  void resolve_bounds(std::vector<FieldState>& fields) const;

 private:
  std::vector<double> least_;  ///< Least value of each range, and its negated greatest value.
  std::vector<std::shared_ptr<const RangeEvidence>> evidence_;
  Status scanned_;
};

/// Convert the bounds of new fields into absolute ones. @returns this rank's failure. Collective.
/// Cost: ValueRanges, and one allreduce of two numbers for each field that needs them.
Status resolve_bounds(Comm& comm, std::vector<FieldState>& fields);

/// The guards that a field is written with.
const Guards& guards_of(const FieldDefinition& definition, const ResolvedField& resolved);

/// Codec request for a field: the field's wish, adapted where the wish is only a default. Needs the
/// chunk shape and the resolved bounds. Not collective.
CodecRequest codec_request(const FieldDefinition& definition, const ResolvedField& resolved);

/// Make the codecs and layouts of new fields. Not collective: every rank does the same, and records
/// its result for the next agreement to compare (Comm::decide).
/// @error the errors of make_codec, prefixed with the field's path.
Status prepare_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log);

/// Make provisional bounds, codecs and layouts of fields without values yet, to check that they can
/// be made at all. Bounds that depend on values are made up. A codec that is still to be chosen is
/// replaced by trz if the field has a bound, else by an exact codec. Otherwise like
/// prepare_codecs(), with a broadcast for each such field that the file already has.
Status try_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path);

/// Refuse a field that its codec or layout cannot serve, before it has values. If chunks follow the
/// ranks' boxes, the codec must serve one of three likely chunk shapes. Failures that may differ
/// between ranks (a missing plug-in, memory) are ignored: end_step() agrees on them. Not
/// collective; the result is equal on all ranks. `definition` has passed check_definition().
Status try_definition(const FieldDefinition& definition, const std::string& plugin_path);

/// Data of a field that the lanes need. The caller sets the source of its values: puts or patches.
FieldPlan field_plan(std::size_t field_index, const FieldDefinition& definition,
                     const ResolvedField& resolved);

// --- Fields that the file has already: an over-time field is continued, anything else is refused.
//
// Only rank 0 looks into the file; its results are sent to all ranks. A dataset is continued if the
// new definition has the same meaning: element type, shape, error bound, codec settings. The
// dataset's chunk shape and absolute bound are kept, because its header records them for all
// entries.

/// Refuse new fields whose path cannot be a dataset of this file. Mark those that continue a
/// dataset of a file that was opened (`appended`). Rank 0 only.
/// @param path  where the file's last commit can be read.
/// @error already_exists  the path is taken.
/// @error invalid_argument  a field lies under another field, or the dataset was written with
/// another type, shape or bound.
Status look_up_existing(Hdf5File& file, const std::string& path, bool appended,
                        std::vector<FieldState>& fields);
/// Serialize the result of rank 0's look-up for the other ranks: which fields are continued, and
/// how.
void pack_continued(const std::vector<FieldState>& fields, ByteWriter& writer);
void take_continued(ByteReader& reader, std::vector<FieldState>& fields);
bool is_any_continued(std::span<const std::byte> packed);

/// True if the codec has exactly the filters of a continued field's dataset.
bool has_filters(const std::vector<FilterSpec>& stored, const Codec& codec);

/// Check that the codecs of continued fields are those of their datasets. Rank 0 only.
/// @error invalid_argument  the dataset has other filters.
Status check_continued_codecs(const std::vector<FieldState>& fields);

}  // namespace tailrace
