// RepackPlan: what becomes of each array of an input, decided from its description alone.
//
// A global bound asks for loss only where loss is meant: integers, arrays under 4 KiB and whatever
// has another role than value (policy/roles.hpp) keep their exact values, by the lossless codec. A
// --field pattern that names such a field overrides this; loss asked of integers is an error, and
// so is loss asked of values that are lossy already, without --again: both errors add up.

#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "policy/roles.hpp"
#include "trz/base/status.hpp"
#include "verbs/input_fields.hpp"
#include "write/write.hpp"

namespace tailrace::verbs {

/// The chunks of a file as its readers want them, of one input, whose own stay where they fit
/// (docs/netcdf.md): --cmip7, --cloud, --as-stored.
struct FrontChunks {
  std::string option;                     ///< That asked for it.
  std::vector<std::string> whole;         ///< Paths of what is one chunk: time and its bounds.
  std::set<std::string> masked;           ///< Paths of what has chunks that leave out filters.
  std::string data;                       ///< Path of what the sizes are for; empty: none.
  bool all_data = false;                  ///< They are for every field of some size.
  bool all_as_stored = false;             ///< Whatever their sizes.
  std::uint64_t least_bytes = 0;          ///< Of its chunks.
  std::uint64_t most_bytes = UINT64_MAX;  ///< Of stored ones that are copied.
  bool checksum = false;                  ///< Fletcher's, and filters that every reader has.
};
/// Of its chunks: what CMIP7 asks for.
inline constexpr std::uint64_t cmip_chunk_bytes_least = 4U << 20;
/// Requests over a network take as long as this many bytes, or longer.
inline constexpr std::uint64_t cloud_chunk_bytes_least = 8U << 20;

/// What the user asked of the fields.
struct FieldRequests {
  std::string codec;                   ///< "sz3,level=2"; empty: not given.
  std::string bound;                   ///< "rel=1e-3"; empty: not given.
  std::string lossless_codec;          ///< For what stays exact; empty: deflate.
  std::vector<std::string> per_field;  ///< "GLOB:key=value,..."; later ones win.
  FieldSelection selection;            ///< Those to write.
  std::optional<FrontChunks> front;    ///< Nothing: not asked for.
  /// What lies in each of the input's fields, of plotfiles; null: an array. Empty: none is known.
  std::vector<std::shared_ptr<const BoxSeries>> boxes;
  /// The role of each of the input's fields; empty: all are values but coordinates.
  std::vector<RoleVerdict> roles;
  /// Which fields are written that stand for datasets of other types; empty: none.
  std::vector<bool> bytes_that_pay;
  /// Datasets of other types, of which fields may hold the bytes.
  std::vector<OtherDataset> others;
  /// Losses of each of the input's fields; empty: none has any.
  std::vector<FieldLosses> losses;
  /// Whether fields that have losses may be encoded with loss again. The output then records the
  /// total of all bounds.
  bool again = false;
};

/// One field of the output.
struct PlannedField {
  std::size_t input_index = 0;  ///< Into InputFile::fields().
  FieldDefinition definition;   ///< With its chunk shape.
  std::string exact_reason;     ///< Why a global bound was not applied: "integers", ...
  RoleVerdict verdict;          ///< Role value where roles are not decided.
  bool has_role = false;        ///< Roles were decided.
  bool keeps_limits = false;    ///< A guard for verdict.limits was added.
  std::string limits_unkept;    ///< Why such a guard could not be; empty: no limits, or kept.
  /// By which its chunks are cut; null: by none.
  std::shared_ptr<const BoxSeries> boxes;
  std::vector<ErrorBound> component_bounds;  ///< Of each component; empty: the field has one.
  /// Numbers of the stored chunks that the input has, ascending; nothing: all, or none are missed.
  std::optional<std::vector<std::uint64_t>> chunks_there;
  std::string other_chunks_reason;           ///< Why its chunks are not the input's, unasked.
  std::string covered_kept_reason;           ///< Why covered=drop could not be done.
  FieldLosses losses;                        ///< Of the input's values.
  std::optional<Quantization> quantization;  ///< A rounding that the input's attributes describe.
};

/// Whether anything may be encoded with loss, so that roles matter. @error  a bad bound or codec
Result<bool> asks_for_loss(const FieldRequests& requests, const FileOptions& file);

/// True if datasets of other types than numbers are compressed, where that pays. Pure.
/// @error  a bad bound or codec
Result<bool> compresses_others(const FieldRequests& requests, const FileOptions& file);

/// Whether the field's values may change when they are encoded. Pure.
/// @param file  its targets.
bool may_lose(const PlannedField& planned, const FileOptions& file);

/// Decide for every selected field. Pure: the same on every rank.
/// @param file  defaults of all fields (chunk, layout, verify) and the memory cap.
/// @error invalid_argument  a pattern that matches nothing, loss asked of integers, a bad option;
/// without requests.again, a field with losses that would be encoded with loss.
Result<std::vector<PlannedField>> plan_fields(std::span<const StoredDataset> fields,
                                              const FieldRequests& requests,
                                              const FileOptions& file, bool chunk_given,
                                              int n_ranks);

}  // namespace tailrace::verbs
