// A field between its definition and its place in the file, in parts that have one source each:
//
//   FieldDefinition  what the application has said of it (field.hpp)
//   ResolvedField    what was decided once, from what all ranks have agreed on: how it is stored
//   LearnedField     what its steps have shown
//   FieldState       these three, where it stands in its life, and this step's puts
//
// and what write.cpp's stages do with fields before any byte moves: check definitions, look them up
// in the file, choose chunk shapes, resolve bounds, make codecs. A function takes the parts that it
// needs. Each that is collective says so.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// Bytes of a chunk beyond this do not fit one message between ranks.
inline constexpr std::uint64_t largest_chunk_bytes = 1ULL << 30;

/// How a field is stored: settled by its first step and then constant, the same on every rank.
struct ResolvedField {
  Shape chunk_shape;  ///< Without the time dimension.
  std::unique_ptr<Layout> layout;
  std::unique_ptr<Codec> codec;
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  /// Of a dataset that is continued, as its attribute has them; else the definition's count.
  Guards stored_guards;
  std::shared_ptr<const ChunkEdit> edit;  ///< Null: all values are kept.
  bool verify = false;
  bool swapped = false;    ///< The dataset's numbers have the other byte order.
  double value_least = 0;  ///< Of the finite, non-fill values, if bound or target need them.
  double value_greatest = 0;
  BoundVerdict width;           ///< Of a bound that is relative to these.
  double expected_psnr_db = 0;  ///< Under target=psnr=; 0: no target.
  /// Codecs that were compared for codec=auto, and which one won; empty: the user has named one.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;
};

/// What a field's steps, or those of its lineage, have shown. Sizes and times are each rank's own.
struct LearnedField {
  double max_error = 0;          ///< Largest over all steps so far; the same on every rank.
  SizeHistory history;           ///< Of the sizes of this rank's chunks,
  double encode_correction = 1;  ///< and of the time they take: measured over forecast.
  ClaimedSpace claimed;          ///< By this rank's chunks, in the last step of it.
  Inheritance inherited;         ///< From a field of the same kind in an earlier step.
  BookState book;                ///< Of codec trz,book=auto.
};

/// Where a field stands; the same on every rank.
///
///   define_field --> defined ---- its step is committed ----> in_file: done, or, over time, put
///                       | \                                      ^     again by later steps
///                       |  '- handed over --> under_way ---------'
///                       |                         |
///                       '-- the step fails -------'--> retired: its path is free again
///
/// A field whose steps are gathered (write/gathering_writer) waits before it is defined, so to say,
/// until enough of them are there; if that step fails it waits on.
enum class FieldLife : std::uint8_t { waiting, defined, under_way, in_file, retired };

struct FieldState {
  static constexpr std::size_t no_number = static_cast<std::size_t>(-1);

  std::size_t number = no_number;  ///< As define_field() has returned it.
  FieldDefinition definition;
  ResolvedField resolved;
  LearnedField learned;
  FieldLife life = FieldLife::defined;
  bool has_waited = false;  ///< Steps of it wait, or have waited, for its first chunk.

  // What the file holds of it.
  bool continued = false;                  ///< Its dataset was there when the file was opened.
  std::uint64_t n_entries = 0;             ///< Over time: entries committed.
  std::vector<FilterSpec> stored_filters;  ///< Of a continued field; rank 0 only.
  std::uint64_t n_begun = 0;               ///< Steps of the next entry that it holds already,
  std::vector<StoredChunk> begun_chunks;   ///< in these chunks, numbered within the entry.
  std::shared_ptr<const ChunkBeginnings> beginnings;  ///< How they go on; null: none does.

  // This rank's, this step's.
  std::vector<PutRecord> puts;
  std::shared_ptr<const RangeEvidence> evidence;  ///< Until all ranks' is added up.
  bool put_called = false;                        ///< An empty box counts.

  /// Whether its first step is still to come: most of what is resolved is resolved then.
  bool is_new() const { return life == FieldLife::defined; }
  bool makes_dataset() const { return is_new() && !continued; }
  /// Whether it can still be put, or is being written.
  bool is_open() const {
    return life != FieldLife::retired && life != FieldLife::waiting &&
           (life != FieldLife::in_file || definition.options.over_time);
  }
  /// True if no later step needs it.
  bool is_done() const { return !is_open() && life != FieldLife::waiting; }
  ChunkGrid grid() const { return {definition.shape, resolved.chunk_shape}; }
  std::uint64_t chunk_bytes() const {
    return n_elements(resolved.chunk_shape) * dtype_bytes(definition.dtype);
  }
};

/// Facts for policy on a field, without the dimension of time.
DatasetFacts facts_of(const FieldDefinition& definition);

/// Whether a field is stored contiguously because it has nothing to compress: a scalar, or empty.
bool stored_plainly(const FieldDefinition& definition);

/// Check a definition by itself. Not collective. @error invalid_argument, unsupported
Status check_definition(const FieldDefinition& definition);

/// Check a put's box against its field. Not collective. @error bad_coverage, invalid_argument
Status check_box(const FieldDefinition& definition, const Box& box);

/// A text that is equal on two ranks exactly if they define the same.
std::string definition_text(const FieldDefinition& definition);

/// One field's boxes on this rank.
struct LocalBoxes {
  Shape shape;
  std::vector<Box> boxes;
  bool put_called = true;
};
/// What all ranks' boxes of each field have in common. `mine` is agreed on, and numbers that go
/// `along` become all ranks'. Collective. Cost: one agreement of O(fields * dimensions) numbers.
Result<std::vector<DecompositionFacts>> common_facts(Comm& comm, std::span<const LocalBoxes> fields,
                                                     const Status& mine = Status(),
                                                     const RankNumbers& along = {});

/// Choose the chunk shapes of new fields. @returns the fields that take part in this step: the new
/// ones, and those that any rank has put. Collective, and the error is agreed: as common_facts().
Result<std::vector<std::size_t>> choose_chunk_shapes(Comm& comm, std::vector<FieldState>& fields,
                                                     const Status& mine, const RankNumbers& along);

/// The ranges of values that the bounds of new fields are relative to.
class ValueRanges {
 public:
  /// Finds the range of this rank's values of a field.
  using Scan = std::function<Status(std::size_t field, RangeEvidence& evidence)>;
  /// Scan this rank's values: what the fields have put, or by `scan`. Not collective. Cost: one
  /// pass over those that are asked for.
  explicit ValueRanges(const std::vector<FieldState>& fields, const Scan& scan = nullptr);
  /// Why not all values could be scanned. The range is that of the others then.
  const Status& scanned() const { return scanned_; }
  /// Let the ranges become those of all ranks.
  RankNumbers numbers();
  /// Turn the bounds of these very fields into absolute ones, as soon as they are. The fields get
  /// what BoundVerdicts are made of.
  void resolve_bounds(std::vector<FieldState>& fields) const;

 private:
  std::vector<double> least_;  ///< Of each value range, and of its greatest value negated.
  std::vector<std::shared_ptr<const RangeEvidence>> evidence_;
  Status scanned_;
};

/// Turn the bounds of new fields into absolute ones. @returns this rank's own failure.
/// Collective. Cost: ValueRanges, and one allreduce of two numbers a field that needs them.
Status resolve_bounds(Comm& comm, std::vector<FieldState>& fields);

/// The guards that a field is written with.
const Guards& guards_of(const FieldDefinition& definition, const ResolvedField& resolved);

/// What is asked of the codec maker: the field's wish, adapted where the wish is only a default.
/// Needs the chunk shape and the resolved bounds. Not collective.
CodecRequest codec_request(const FieldDefinition& definition, const ResolvedField& resolved);

/// Make the codecs and layouts of new fields. Not collective; every rank does the same, and notes
/// what it came to: the next agreement compares it (Comm::decide).
/// @error as of make_codec, with the field's path before it.
Status prepare_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log);

/// Make the bounds, codecs and layouts of fields whose values nobody has seen yet: whether they can
/// be had at all. Bounds that depend on values are made up, and for codecs that are still to be
/// chosen stands trz where there is a bound, else an exact one. As prepare_codecs(), and a
/// broadcast for each of these that the file has already.
Status try_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path);

/// Refuse a field that its codec or layout cannot serve, before it has values. Where chunks follow
/// the ranks' boxes, a codec passes that serves one of three likely chunk shapes. Failures that may
/// differ between ranks (a missing plug-in, memory) pass: end_step() agrees on them. Not
/// collective; equal on all ranks. `definition` has passed check_definition().
Status try_definition(const FieldDefinition& definition, const std::string& plugin_path);

/// What the lanes must know of a field; its values come from puts or patches, still to be named.
FieldPlan field_plan(std::size_t field_index, const FieldDefinition& definition,
                     const ResolvedField& resolved);

// --- Fields that the file has already: an over-time field is continued, anything else is refused.
//
// Only rank 0 can look into the file; what it finds travels to all ranks. A dataset is continued if
// the new definition means the same: element type, shape, error bound, codec settings. Its chunk
// shape and absolute bound are kept, since both stand in its header for all entries alike.

/// Refuse new fields whose path cannot be a dataset of this file, and mark those that continue one
/// of a file that was opened (`appended`). Rank 0 only.
/// @param path  where the file's last commit can be read.
/// @error already_exists  the path is taken.   @error invalid_argument  a field lies under another
/// field, or the dataset was written with another type, shape or bound.
Status look_up_existing(Hdf5File& file, const std::string& path, bool appended,
                        std::vector<FieldState>& fields);
/// What rank 0 has found, for the others: which fields are continued, and how.
void pack_continued(const std::vector<FieldState>& fields, ByteWriter& writer);
void take_continued(ByteReader& reader, std::vector<FieldState>& fields);
bool is_any_continued(std::span<const std::byte> packed);

/// Whether the codec makes the very filters of a continued field's dataset.
bool has_filters(const std::vector<FilterSpec>& stored, const Codec& codec);

/// Check that the codecs of continued fields are those of their datasets. Rank 0 only.
/// @error invalid_argument  the dataset has other filters.
Status check_continued_codecs(const std::vector<FieldState>& fields);

}  // namespace tailrace
