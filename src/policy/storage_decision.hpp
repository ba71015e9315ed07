// The single place that decides how a dataset is stored: left to HDF5, in one piece, or in chunks;
// by which codec; and in which chunks.
//
// A door passes the facts that it knows about the dataset (DatasetFacts) and the user's options
// (StorageRequest). decide() returns a StorageDecision, or an error with the reason.
// choose_chunks() chooses the chunk shape once all ranks' boxes are known. One table of traits
// lists what each door can do. repack and the steps call the functions for single answers (reasons
// to stay exact, chunks, the codec) instead of decide().
//
// Decided elsewhere: layouts and addresses (layout/), and the choice between codecs by a sample
// (field/codec_choice). Also whether a bound is meaningful for the values (bound_width), chunks
// that follow a plotfile's boxes, and published forms (--publish: verbs/repack_plan).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "policy/chunk_shape.hpp"
#include "policy/roles.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Limits, in bytes.

/// Smaller arrays stay exact under a bound for all fields. Compressing them saves nothing, and they
/// may be coefficients, levels or tables.
inline constexpr std::uint64_t kBoundedBytesMin = 4096;
/// Smaller datasets of HDF5 programs get no chunks: HDF5 writes them, and every reader can read
/// them without Tailrace's filters.
inline constexpr std::uint64_t kChunkedBytesMin = 16384;
/// Chunks of growing variables have room for this many records (like netCDF's
/// NC_DEFAULT_1D_UNLIM_SIZE), because every flush of a growing variable rewrites its last chunk.
inline constexpr std::uint64_t kGrowingChunkBytesMin = 4096;
/// Upper limit of the records in such a chunk, in bytes: below this size, codecs lose ratio.
inline constexpr std::uint64_t kGrowingChunkBytesMost = 1U << 20;
/// Smallest chunk for a lossy codec: in smaller ones the codec's headers cost what it saves.
inline constexpr std::uint64_t kBoundedChunkBytesMin = 4096;
/// Smallest lossy chunk if no dimension grows. h5py's chunks of 12 to 25 kB make files of climate
/// models 15 % larger than chunks chosen for the codec, and take twice the time.
inline constexpr std::uint64_t kBoundedFixedChunkBytesMin = std::uint64_t{64} << 10;
/// Smallest fraction of a dataset's chunks in the file for which a rewrite enlarges chunks. With
/// fewer, larger chunks would mostly hold the fill values of missing ones.
inline constexpr double kWrittenFractionMin = 0.5;
/// A concatenation enlarges chunks below the first number to about the second.
inline constexpr std::uint64_t kJoinedChunkBytesMin = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kJoinedChunkBytes = std::uint64_t{1} << 20;
/// Chosen chunks have at most this fraction of memory=. A chunk, its encoded form, the codec's
/// scratch memory and the verifier's copy must fit for each encode thread.
inline constexpr std::uint64_t kChosenChunksPerMemory = 32;
/// Number of chosen chunks where parts are rewritten: the pieces and the old values must fit, too.
inline constexpr std::uint64_t kRewrittenChunksPerMemory = 64;
/// Existing chunks of the program or the input may have this fraction.
inline constexpr std::uint64_t kKeptChunksPerMemory = 16;

// --- Doors.

/// Capabilities of a door when it creates a dataset.
struct DoorTraits {
  /// True: the values of the first step are known before the dataset is created. A codec can be
  /// chosen by a sample, and a bound can be relative to the values' range.
  bool knows_values = true;
  /// Datasets below this size, without chunks set by the program, are left to HDF5; 0: none are.
  std::uint64_t left_to_hdf5_below = 0;
  /// If values are unknown: true if every codec can get its bound with the first values, because
  /// chunks record it, or headers do not.
  bool any_codec_with_values = false;
  /// True: datasets smaller than the index of their chunks are stored in one piece.
  bool small_in_one_piece = false;
  /// True: parts of chunks are rewritten. Chunks must then fit memory= many times, and chunks of
  /// growing dimensions must have room.
  bool rewrites_parts = false;
};
const DoorTraits& traits_of(Door door);

// --- A dataset.

struct DatasetFacts {
  std::optional<DType> number;      ///< Nothing: codecs see bytes.
  std::uint64_t element_bytes = 0;  ///< Size in the file.
  Shape shape;
  std::vector<bool> growing;  ///< True for each dimension that may grow. Empty: none may.
  bool over_time = false;     ///< Steps add entries in front.
  Shape own_chunks;           ///< Chunks set by the program; empty: none.
  bool own_filters = false;   ///< The program has set filters for its chunks.
  bool in_header = false;     ///< The values lie in the dataset's header (compact).
  std::string only_hdf5;      ///< Reason why only HDF5 can write the values; empty: Tailrace can.
  /// Fraction of own_chunks that the file contains.
  double written_fraction = 1.0;

  bool grows() const { return over_time || std::ranges::find(growing, true) != growing.end(); }
  bool grows_along(std::size_t d) const { return d < growing.size() && growing[d]; }
  std::uint64_t n_bytes() const { return n_elements(shape) * element_bytes; }
  bool floating() const { return number && is_floating(*number); }
};

struct StorageRequest {
  FieldOptions options;
  Compatibility compatibility = Compatibility::automatic;
  std::uint64_t memory_bytes = 1ULL << 30;
  bool named = false;  ///< An option names exactly this dataset.
};

enum class StorageForm : std::uint8_t {
  by_hdf5,    ///< HDF5 writes the dataset according to its creation property list.
  one_piece,  ///< Contiguous and uncompressed.
  chunks
};

struct StorageDecision {
  StorageForm form = StorageForm::chunks;
  std::string why;                 ///< Not chunks: the reason, for reports.
  FieldOptions options;            ///< Codec, settings and bound as they will be used.
  bool keeps_filters = false;      ///< The program's own filters stay.
  bool bound_with_values = false;  ///< The bound becomes absolute with the first values.
};

/// Return the reason why HDF5 writes a dataset of a program; empty if Tailrace does. Pure.
std::string reason_to_leave(const DatasetFacts& facts, const StorageRequest& request, Door door);

/// Decide how a new dataset is stored. Pure: equal arguments give equal results on all ranks.
/// @error unsupported  the values cannot be stored as requested; its text omits the dataset's name.
Result<StorageDecision> decide(const DatasetFacts& facts, const StorageRequest& request, Door door);

/// True if codecs have a type for elements of this size. Elements of other sizes are bytes to them.
bool has_codec_type(std::uint64_t element_bytes);

/// True if a dataset has nothing to compress: it cannot grow, and is a scalar or empty.
bool has_nothing_to_compress(const DatasetFacts& facts);

/// The codec with which a dataset's values are encoded.
struct CodecWish {
  std::string name;
  std::vector<KeyValue> settings;
  bool keeps_bound = true;  ///< False: the bound is not meant for these values.
};
/// Select the codec. A lossy default codec or bound is meant for measurements, not for counts and
/// ids: integers stay exact unless an option names them.
CodecWish codec_wish(const DatasetFacts& facts, const FieldOptions& options);
/// Replace a codec by the exact one. Keeps the checksum setting, which it shares with portable.
void become_exact(std::string& codec, std::vector<KeyValue>& settings);

/// Default options of a coordinate: codec and bound of `file_defaults` are meant for measurements.
FieldOptions defaults_of_coordinate(FieldOptions file_defaults);

/// Choose the chunk shape of a dataset whose boxes are known. Extents >= 1.
/// @param chunk_limits  largest extent of a requested chunk shape in each dimension.
Shape choose_chunks(const DatasetFacts& facts, const FieldOptions& options,
                    const Shape& chunk_limits, const DecompositionFacts& decomposition, Door door);
/// Choose the chunk shape of a dataset with unknown boxes, which `n_ranks` share evenly.
Shape choose_chunks_unseen(const DatasetFacts& facts, const FieldOptions& options,
                           std::uint64_t n_ranks);

// --- Datasets of other files, which repack and concat rewrite.

/// Return the reason why only an option that names a field without wildcards gives it a bound;
/// empty for values.
/// @param coordinate  netCDF's conventions make it a coordinate.
std::string reason_to_be_named(const DatasetFacts& facts, bool coordinate, Role role);
/// Return the reason why a bound meant for all fields does not apply to this one; empty if it does.
/// Small arrays have one, too.
/// @param coordinate  netCDF's conventions make it a coordinate.
std::string reason_to_stay_exact(const DatasetFacts& facts, bool coordinate, Role role);

/// Return the remark on a dataset that loses digits although it has no values, because an option
/// names it.
/// @param why  reason to stay exact: "coordinate", "mask by name"
/// @param by  "TAILRACE_OPTIONS"
std::string lossy_role_text(std::string_view path, std::string_view why, std::string_view by);

/// Decision whether a rewritten dataset keeps its chunks.
struct KeptChunks {
  bool keeps = true;
  std::string why;  ///< Reason why it does not, for a remark.
};
/// @param loses  true if its values are encoded within a bound.
KeptChunks keep_chunks(const DatasetFacts& facts, bool loses, std::uint64_t memory_bytes);

/// Request for the chunks of a dataset with rows in several files; `facts` describe the first file.
struct JoinRequest {
  std::uint64_t chunk_rows = 0;       ///< Rows of a chunk, as requested; 0: not requested.
  std::uint64_t chunk_bytes = 0;      ///< Bytes of a chunk, as requested; 0: not requested.
  std::uint64_t one_piece_below = 0;  ///< Size below which rows are stored in one piece.
  bool keeps_codec = true;            ///< No other codec is requested.
  bool plain_codec = false;           ///< The requested codec stores values as they are.
  bool fits_any_chunk = true;         ///< The filters have equal header data for every chunk shape.
  bool by_value = true;               ///< Elements are self-contained bytes, without references.
};
/// True if the dataset keeps its chunks although others are requested, because its filters fit no
/// others.
bool keeps_chunks_joined(const JoinRequest& request);
/// True if the joined rows are stored in one piece.
bool joins_in_one_piece(const DatasetFacts& facts, std::uint64_t n_rows,
                        const JoinRequest& request);
/// Choose the chunks of the joined rows. By default they are the inputs' chunks, so that these are
/// copied unchanged; chunks too small to be worth an index entry are enlarged. The paper's inputs
/// have chunks of 128 elements, which cost more in index and headers than in data. Its outputs have
/// 1 MB chunks (Lee et al. 2022, section 5.3 and table 13). docs/concat.md explains the rules.
Shape join_chunks(const DatasetFacts& facts, std::uint64_t n_rows, const JoinRequest& request);

}  // namespace tailrace
