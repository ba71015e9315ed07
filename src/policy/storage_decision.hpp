// The one place that decides how a dataset is stored: left to HDF5, in one piece, or in chunks; by
// which codec; and in which chunks.
//
// A door states what it knows of the dataset (DatasetFacts) and what its user asked for
// (StorageRequest). decide() answers with a StorageDecision, or refuses in words. The shape of
// chunks follows when all ranks' boxes are known (choose_chunks). What a door can do stands in one
// table of traits. repack and the steps ask for single answers (reasons to stay exact, chunks, the
// codec) and not for decide().
//
// Not decided here: layouts and places (layout/), the choice between codecs by a sample
// (field/codec_choice), whether a bound means something for the values (bound_width), chunks that
// follow a plotfile's boxes, and published forms (--cmip7, --cloud: verbs/repack_plan).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "policy/chunk_shape.hpp"
#include "policy/roles.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Limits, in bytes.

/// Smaller arrays stay exact under a bound for all: they save nothing, and they may hold anything:
/// coefficients, levels, tables.
inline constexpr std::uint64_t bounded_bytes_min = 4096;
/// Smaller datasets of HDF5 programs get no chunks: HDF5 writes them, and every reader has them
/// without a filter of ours.
inline constexpr std::uint64_t chunked_bytes_min = 16384;
/// Chunks of growing variables get room for as many records (as netCDF's NC_DEFAULT_1D_UNLIM_SIZE):
/// every flush of a growing variable writes its last chunk anew.
inline constexpr std::uint64_t growing_chunk_bytes_min = 4096;
/// A lossy codec spends so much of smaller chunks on their headers that nothing is saved.
inline constexpr std::uint64_t bounded_chunk_bytes_min = 4096;
/// Lower limit where no dimension grows. Chunks of 12 to 25 kB, as h5py chooses them, make files of
/// climate models 15 % larger and take twice the time of chunks that are chosen for the codec.
inline constexpr std::uint64_t bounded_fixed_chunk_bytes_min = std::uint64_t{64} << 10;
/// A concatenation makes smaller chunks larger, and then about as large as the second number.
inline constexpr std::uint64_t joined_chunk_bytes_min = std::uint64_t{64} << 10;
inline constexpr std::uint64_t joined_chunk_bytes = std::uint64_t{1} << 20;
/// Chunks that we choose take at most this part of memory=: a chunk, its encoded form, the codec's
/// scratch and the verifier's copy must fit for each encode thread.
inline constexpr std::uint64_t chosen_chunks_per_memory = 32;
/// Chunks that the program or the input has may take this part.
inline constexpr std::uint64_t kept_chunks_per_memory = 16;

// --- Doors.

/// What a door can do when it creates a dataset.
struct DoorTraits {
  /// The values of the first step are known before the dataset is created: a codec can be chosen by
  /// a sample, and a bound can be relative to the values' range.
  bool knows_values = true;
  /// Smaller datasets without chunks of the program are left to HDF5; 0: none is.
  std::uint64_t left_to_hdf5_below = 0;
  /// Where values are not known: every codec can get its bound with the first values, since chunks
  /// say it themselves or no header does.
  bool any_codec_with_values = false;
  /// Datasets that are smaller than the index of their chunks lie in one piece.
  bool small_in_one_piece = false;
  /// Parts of chunks are written again: chunks must fit memory= many times, and those of growing
  /// dimensions must have room.
  bool rewrites_parts = false;
};
const DoorTraits& traits_of(Door door);

// --- A dataset.

struct DatasetFacts {
  std::optional<DType> number;      ///< Nothing: codecs see bytes.
  std::uint64_t element_bytes = 0;  ///< In the file.
  Shape shape;
  std::vector<bool> growing;  ///< Per dimension: it may become longer. Empty: none may.
  bool over_time = false;     ///< Steps add entries in front.
  Shape own_chunks;           ///< Of the program; empty: none.
  bool own_filters = false;   ///< The program has set filters for its chunks.
  bool in_header = false;     ///< The values lie in the dataset's header (compact).
  std::string only_hdf5;      ///< Why HDF5 alone can write the values; empty: others can.

  bool grows() const { return over_time || std::ranges::find(growing, true) != growing.end(); }
  bool grows_along(std::size_t d) const { return d < growing.size() && growing[d]; }
  std::uint64_t n_bytes() const { return n_elements(shape) * element_bytes; }
  bool floating() const { return number && is_floating(*number); }
};

struct StorageRequest {
  FieldOptions options;
  Compatibility compatibility = Compatibility::automatic;
  std::uint64_t memory_bytes = 1ULL << 30;
  bool named = false;  ///< An option names this very dataset.
};

enum class StorageForm : std::uint8_t {
  by_hdf5,    ///< HDF5 writes the dataset as its creation list says.
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

/// Why HDF5 writes a dataset of a program; empty if we do. Pure.
std::string reason_to_leave(const DatasetFacts& facts, const StorageRequest& request, Door door);

/// Decide how a new dataset is stored. Pure: all ranks answer alike from equal arguments.
/// @error unsupported  the values cannot be stored as asked; the text does not name the dataset.
Result<StorageDecision> decide(const DatasetFacts& facts, const StorageRequest& request, Door door);

/// True if codecs have a type for elements of this size.
bool has_codec_type(std::uint64_t element_bytes);

/// True if a dataset has nothing to compress: a scalar, or empty, and it cannot grow.
bool has_nothing_to_compress(const DatasetFacts& facts);

/// The codec with which a dataset's values are encoded.
struct CodecWish {
  std::string name;
  std::vector<KeyValue> settings;
  bool keeps_bound = true;  ///< False: the bound is not meant for these values.
};
/// A default codec or bound that may lose digits is meant for measurements, not for counts and ids:
/// integers stay exact unless an option names them.
CodecWish codec_wish(const DatasetFacts& facts, const FieldOptions& options);
/// Replace a codec by the exact one, which has the checksum's setting in common with portable.
void become_exact(std::string& codec, std::vector<KeyValue>& settings);

/// The shape of the chunks of a dataset whose boxes are known. Extents >= 1.
/// @param chunk_limits  per dimension how far a chunk shape that is asked for may reach.
Shape choose_chunks(const DatasetFacts& facts, const FieldOptions& options,
                    const Shape& chunk_limits, const DecompositionFacts& decomposition, Door door);
/// Shape of the chunks of a dataset whose boxes nobody knows yet, which `n_ranks` share evenly.
Shape choose_chunks_unseen(const DatasetFacts& facts, const FieldOptions& options,
                           std::uint64_t n_ranks);

// --- Datasets of other files, which repack and concat write again.

/// Why a bound that is meant for all fields does not concern this one; empty if it does.
/// @param coordinate  netCDF's conventions make it one.
std::string reason_to_stay_exact(const DatasetFacts& facts, bool coordinate, Role role);

/// Whether a rewritten dataset keeps its chunks.
struct KeptChunks {
  bool keeps = true;
  std::string why;  ///< Why it does not, for a remark.
};
/// @param loses  its values are encoded within a bound.
KeptChunks keep_chunks(const DatasetFacts& facts, bool loses, std::uint64_t memory_bytes);

/// The chunks of a dataset whose rows several files have: `facts` are of the first file.
struct JoinRequest {
  std::uint64_t chunk_rows = 0;       ///< Rows of a chunk, as asked; 0: not asked.
  std::uint64_t chunk_bytes = 0;      ///< Bytes of a chunk, as asked; 0: not asked.
  std::uint64_t one_piece_below = 0;  ///< Bytes below which rows lie in one piece.
  bool keeps_codec = true;            ///< No other codec is asked for.
  bool plain_codec = false;           ///< The codec asked for stores values as they are.
  bool fits_any_chunk = true;         ///< The filters mean the same for every chunk shape.
  bool by_value = true;               ///< Elements are their bytes.
};
/// True if the dataset keeps its chunks although others are asked for: its filters serve no others.
bool keeps_chunks_joined(const JoinRequest& request);
/// True if the joined rows lie in one piece.
bool joins_in_one_piece(const DatasetFacts& facts, std::uint64_t n_rows,
                        const JoinRequest& request);
/// Chunks of the inputs by default, so that they are copied as they are; but chunks that are too
/// small to be worth an entry each are made larger. The paper's inputs have chunks of 128
/// elements, which cost more in index and headers than in data; its outputs have 1 MB ones
/// (Lee et al. 2022, section 5.3 and table 13). docs/concat.md has the rules with their reasons.
Shape join_chunks(const DatasetFacts& facts, std::uint64_t n_rows, const JoinRequest& request);

}  // namespace tailrace
