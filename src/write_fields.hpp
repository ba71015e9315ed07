// FieldState: a field between its definition and its place in the file.
//
// What write.cpp's stages do with fields before any byte moves: check definitions, choose chunk
// shapes, resolve bounds, make codecs. Each function that is collective says so.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "container/field_attributes.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/options.hpp"
#include "exec/field_plan.hpp"
#include "exec/ownership.hpp"
#include "layout/layout.hpp"
#include "write.hpp"

namespace tailrace {

/// Bytes of a chunk beyond this do not fit one message between ranks.
inline constexpr std::uint64_t largest_chunk_bytes = 1ULL << 30;

struct FieldState {
  FieldDefinition definition;
  std::vector<PutRecord> puts;  ///< This rank's, this step's.
  bool put_called = false;      ///< On this rank, in this step (an empty box counts).
  bool active = false;          ///< On any rank: takes part in this step.
  bool in_file = false;         ///< Its dataset exists and is committed.
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
  std::uint64_t base_address = 0;  ///< Contiguous storage.

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

/// Make the codecs and layouts of new active fields. Not collective; every rank does the same.
/// @error as of make_builtin_codec and make_plugin_codec, with the field's path before it.
Status prepare_codecs(std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log);

/// Take one run of the file's tail for all contiguous fields among `active`.
/// Collective. Cost: one allreduce if there are any.
void reserve_contiguous(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                        std::span<FieldState* const> active);

}  // namespace tailrace
