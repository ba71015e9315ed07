// FieldState: a field between its definition and its place in the file.
//
// What write.cpp's stages do with fields before any byte moves: check definitions, choose chunk
// shapes, resolve bounds, make codecs. Each function that is collective says so.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/options.hpp"
#include "describe/field_attributes.hpp"
#include "exec/field_plan.hpp"
#include "exec/ownership.hpp"
#include "field/field.hpp"
#include "field/lineage.hpp"
#include "layout/layout.hpp"
#include "model/dump_time.hpp"
#include "model/size_history.hpp"

namespace tailrace {

/// Bytes of a chunk beyond this do not fit one message between ranks.
inline constexpr std::uint64_t largest_chunk_bytes = 1ULL << 30;

struct FieldState {
  FieldDefinition definition;
  std::vector<PutRecord> puts;  ///< This rank's, this step's.
  bool put_called = false;      ///< On this rank, in this step (an empty box counts).
  bool active = false;          ///< On any rank: takes part in this step.
  bool explained = false;       ///< Its dataset has its attributes, set through this handle.
  bool in_file = false;         ///< Its dataset exists and is committed.
  bool handed_over = false;     ///< To a step that is under way, and not in the file yet.
  bool retired = false;         ///< Defined in a step that failed; its path is free again.
  bool continued = false;       ///< Its dataset was there when the file was opened.
  std::vector<StoredFilter> stored_filters;  ///< Of a continued field; rank 0 only.
  std::uint64_t n_entries = 0;               ///< over_time: entries committed.
  Shape chunk_shape;                         ///< Without the time dimension.
  std::unique_ptr<Layout> layout;
  std::unique_ptr<Codec> codec;
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  double value_least = 0;
  double value_greatest = 0;
  double max_error = 0;  ///< Largest over all steps so far.
  bool verify = false;
  std::uint64_t base_address = 0;  ///< Layouts that place by shape: of this step's chunk 0.
  SizeHistory history;             ///< What this rank has learned of its chunks' sizes,
  double encode_correction = 1;    ///< and of the time they take: measured over forecast.
  Inheritance inherited;           ///< From a field of the same kind in an earlier step.
  BookState book;                  ///< Of codec trz,book=auto.
  double expected_psnr_db = 0;     ///< Under target-psnr=; 0: no target.
  /// Codecs that were compared for codec=auto, and which one won; empty: the user has named one.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;

  /// Whether it can still be put: it is not in the file, or grows over time.
  bool is_open() const { return !retired && (!in_file || definition.options.over_time); }
  bool is_new() const { return !in_file && !retired; }
  ChunkGrid grid() const { return {definition.shape, chunk_shape}; }
  std::uint64_t raw_bytes() const {
    return n_elements(definition.shape) * dtype_bytes(definition.dtype);
  }
  /// The dataset's chunk shape: with a leading 1 for over_time.
  Shape dataset_chunk_shape() const;
  /// The dataset's shape once `n` entries are in it.
  Shape dataset_shape(std::uint64_t n) const;
};

/// Whether a field is stored contiguously because it has nothing to compress: a scalar, or empty.
bool stored_plainly(const FieldDefinition& definition);

/// Check a definition by itself. Not collective. @error invalid_argument, unsupported
Status check_definition(const FieldDefinition& definition);

/// Check a put's box against its field. Not collective. @error bad_coverage, invalid_argument
Status check_box(const FieldDefinition& definition, const Box& box);

/// A text that is equal on two ranks exactly if they define the same.
std::string definition_text(const FieldDefinition& definition);

/// Mark the fields that take part in this step and choose the chunk shapes of the new ones.
/// Collective. Cost: two allreduces of O(fields * dimensions) numbers.
Status choose_chunk_shapes(Comm& comm, std::vector<FieldState>& fields);

/// Turn the bounds of new active fields into absolute ones.
/// Collective. Cost: one pass over the values of fields whose bound needs their range; one
/// allreduce of two numbers per such field.
Status resolve_bounds(Comm& comm, std::vector<FieldState>& fields);

/// What is asked of the codec maker: the field's wish, adapted where the wish is only a default.
/// Needs the chunk shape and the resolved bounds. Not collective.
CodecRequest codec_request(const FieldState& field);

/// Make the codec that `request` names: a built-in one or a plug-in. Not collective; main thread.
/// @error invalid_argument  names the codecs there are.  @error as of make_builtin_codec and
/// make_plugin_codec.
Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const std::string& plugin_path);

/// Make the codecs and layouts of new active fields. Not collective; every rank does the same, and
/// notes what it came to: the next agreement compares it (Comm::decide).
/// @error as of make_builtin_codec and make_plugin_codec, with the field's path before it.
Status prepare_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log);

/// Take one run of the file's tail for all fields among `active` whose chunks have places by shape
/// (contiguous, sparse, hybrid). Collective. Cost: one allreduce if there are any.
void reserve_by_shape(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                      std::span<FieldState* const> active);

}  // namespace tailrace
