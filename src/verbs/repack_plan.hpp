// RepackPlan: decides how each array of an input is stored, from its description only.
//
// A global bound requests loss only where loss is intended. Integers, arrays under 4 KiB and fields
// of a role other than value (policy/roles.hpp) remain exact, encoded by the lossless codec. A
// --field pattern that names such a field without wildcards overrides this, with a remark. A bound
// on integers that are so named is an error. So is a bound on values that are already lossy,
// without --again, because both errors add up.

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

/// Chunk rules of --publish for one input. Its own chunks remain if they comply (docs/publish.md).
struct FrontChunks {
  std::string option;                     ///< The option that requested the rules.
  std::vector<std::string> whole;         ///< Paths of datasets that become one chunk: time and its
                                          ///< bounds.
  std::set<std::string> masked;           ///< Paths of datasets with chunks that skip filters.
  std::string data;                       ///< Path of the dataset to which the sizes apply; empty:
                                          ///< none.
  bool all_data = false;                  ///< The sizes apply to every field of at least
                                          ///< bounded_bytes_min.
  bool all_as_stored = false;             ///< All stored chunks are copied, whatever their sizes.
  std::uint64_t least_bytes = 0;          ///< Smallest chunk.
  std::uint64_t most_bytes = UINT64_MAX;  ///< Largest stored chunk that is copied.
  bool checksum = false;                  ///< Use Fletcher's checksum, and filters that every
                                          ///< reader has.
};
/// Smallest chunk that CMIP7 accepts.
inline constexpr std::uint64_t kCmipChunkBytesLeast = 4U << 20;
/// Smallest chunk for --publish cloud: a network request takes at least as long as transferring
/// this many bytes.
inline constexpr std::uint64_t kCloudChunkBytesLeast = 8U << 20;

/// User options about fields.
struct FieldRequests {
  std::string codec;                   ///< "sz3,level=2"; empty: not set.
  std::string bound;                   ///< "rel=1e-3"; empty: not set.
  std::string lossless_codec;          ///< Codec of fields that remain exact; empty: deflate.
  std::vector<std::string> per_field;  ///< "GLOB:key=value,..."; later entries override earlier
                                       ///< ones.
  FieldSelection selection;            ///< Fields to write.
  std::optional<FrontChunks> front;    ///< Nothing: not requested.
  /// Box layout of each of the input's fields in plotfiles; null: an array. Empty: no plotfile.
  std::vector<std::shared_ptr<const BoxSeries>> boxes;
  /// Role of each of the input's fields; empty: every field except coordinates has role value.
  std::vector<RoleVerdict> roles;
  /// Fields of bytes to write, which represent datasets of other types; empty: none.
  std::vector<bool> bytes_that_pay;
  /// Datasets of other types, whose bytes fields may hold.
  std::vector<OtherDataset> others;
  /// Losses of each of the input's fields; empty: no field has any.
  std::vector<FieldLosses> losses;
  /// Allow lossy encoding of fields that are already lossy. The output then records the total of
  /// all bounds.
  bool again = false;
};

/// One field of the output.
struct PlannedField {
  std::size_t input_index = 0;  ///< Index into InputFile::fields().
  FieldDefinition definition;   ///< Definition, including the chunk shape.
  std::string exact_reason;     ///< Reason why a global bound was not applied: "integers", ...
  RoleVerdict verdict;          ///< Role value if roles are not decided.
  bool has_role = false;        ///< Roles were decided.
  std::string lossy_role;       ///< Reason to stay exact that a --field entry overrides.
  bool keeps_limits = false;    ///< A guard for verdict.limits was added.
  std::string limits_unkept;    ///< Reason why such a guard could not be added; empty: no limits,
                                ///< or added.
  /// Boxes along which its chunks are cut; null: none.
  std::shared_ptr<const BoxSeries> boxes;
  std::vector<ErrorBound> component_bounds;  ///< Bounds of the components; empty: the field has one
                                             ///< bound.
  /// Numbers of the stored chunks that the input has, ascending; nothing: all, or missing ones need
  /// not stay missing.
  std::optional<std::vector<std::uint64_t>> chunks_there;
  std::string other_chunks_reason;           ///< Reason why its chunks differ from the input's
                                             ///< without a request.
  std::string covered_kept_reason;           ///< Reason why covered=drop could not be applied.
  FieldLosses losses;                        ///< Losses of the input's values.
  std::optional<Quantization> quantization;  ///< A rounding that the input's attributes describe.
};

/// True if any field may be encoded with loss, so that roles matter. @error  a bad bound or codec
Result<bool> asks_for_loss(const FieldRequests& requests, const FileOptions& file);

/// True if datasets of types other than numbers are compressed when that saves space. Pure.
/// @error  a bad bound or codec
Result<bool> compresses_others(const FieldRequests& requests, const FileOptions& file);

/// True if the field's values may change when they are encoded. Pure.
/// @param file  provides the targets.
bool may_lose(const PlannedField& planned, const FileOptions& file);

/// Plan every selected field. Pure: the same on every rank.
/// @param file  defaults of all fields (chunk, layout, verify) and the memory cap.
/// @error invalid_argument  a pattern that matches nothing, a bound on integers, a bad option;
/// without requests.again, lossy encoding of a field that is already lossy.
Result<std::vector<PlannedField>> plan_fields(std::span<const StoredDataset> fields,
                                              const FieldRequests& requests,
                                              const FileOptions& file, bool chunk_given,
                                              int n_ranks);

}  // namespace tailrace::verbs
