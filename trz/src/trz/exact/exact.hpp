// Exact coding: which lossless form a chunk gets, and its values as integer words and back.
//
// Values become integers in the order of the values (exact_kernels.hpp), those become words of 32
// bits (or 64 where they must), and words are predicted by Lorenzo's rule like quantised values.
// That beats byte-wise compressors on fields. Where values repeat without being smooth (lattices,
// tables, counts), zstd wins, with or without a byte shuffle; where nothing wins, the chunk is
// stored. A sample decides. A value that fills much of the chunk and lies far from the others (a
// mask) is patched: its word is that of the value before it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/base/dtype.hpp"
#include "trz/book/book.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/code_stream.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/kernels/exact_kernels.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/predict/lorenzo.hpp"
#include "trz/trz.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// The numbers are part of the format.
enum class ExactForm : std::uint8_t {
  zstd = 0,      ///< The bytes as they are, through zstd.
  shuffled = 1,  ///< Byte-shuffled, through zstd.
  words = 2,     ///< One 32-bit code a value.
  wide = 3,      ///< Two: 64-bit types only.
  stored = 4,    ///< Not worth any of them; does not occur in a chunk.
};

struct ExactPlan {
  ExactForm form = ExactForm::stored;
  int zstd_level = 3;         ///< Of zstd and shuffled.
  int order = 0;              ///< Of Lorenzo.
  std::uint64_t origin = 0;   ///< Words count from this integer,
  std::uint64_t factor = 1;   ///< in units of this.
  bool has_special = false;   ///< Values with these bits are patches. Not in the format:
  std::uint64_t special = 0;  ///< the reader finds them among the patches.
  bool low_is_noise = false;  ///< Of wide: low words are stored as they are.
  std::size_t estimated_bytes = 0;
  /// Of zstd and shuffled: the frame, if the decision has made it already. In Slot::sample.
  std::span<const std::byte> frame;
};

/// A chunk's values.
struct ExactValues {
  DType dtype = DType::f32;
  const void* data = nullptr;  ///< Aligned as its type.
  Extents extents{1, 1, 1, 1};
};

/// How far to go in asking what zstd would make of a chunk: not at all, on a small sample, or,
/// where values repeat, on long stretches (which may cost more than coding the chunk).
enum class ZstdTrials : std::uint8_t { none, quick, thorough };

/// Decide from a sample (and, where 64-bit values or multiples might fit 32 bits, from one pass
/// over all). Uses Slot::sample. The plan is the same on every machine with the same zstd. Not
/// collective. Thread-safe with a workspace per thread. Out of memory: form stored.
/// @param to_beat  bytes that the chunk takes already: what is unlikely to be smaller is not looked
/// at (form stored).
ExactPlan choose_exact(const ExactValues& values, ZstdTrials trials, Workspace& workspace,
                       std::size_t to_beat = SIZE_MAX);

/// Words of form `words`, predicted, as codes. Values that are special become patches (reader:
/// apply them afterwards). Uses Slot::rows. @returns false when memory is out.
bool encode_words(const ExactValues& values, const ExactPlan& plan, CodeWriter& codes,
                  PatchMap& patches, Workspace& workspace);

/// The inverse. `factor`, `origin` and `order` may be anything. @returns false when memory is out
/// or the codes failed.
bool decode_words(CodeReader& codes, const ExactPlan& plan, DType dtype, const Extents& extents,
                  void* values, Workspace& workspace);

/// Words of form `wide`: low and high halves of the predicted 64-bit codes, n of each (code = high
/// * 2^32 + low, low signed), to be coded in this order without further prediction.
bool encode_wide(const ExactValues& values, const ExactPlan& plan, std::int32_t* low,
                 std::int32_t* high, PatchMap& patches, Workspace& workspace);
bool decode_wide(const std::int32_t* low, const std::int32_t* high, const ExactPlan& plan,
                 DType dtype, const Extents& extents, void* values, Workspace& workspace);

/// Origin and factor as the kernels want them. @param factor >= 1.
WordMap word_map(std::uint64_t origin, std::uint64_t factor);

// --- Exact chunks: lossless coding of a chunk of any type, wired to the sections.
//
// exact.hpp decides and transforms; here its words go through the integer Lorenzo predictor and the
// code sections, or its bytes through a byte section.

/// A complete chunk but for its checksum, in the workspace's trial area; empty if it does not pay.
struct ExactAttempt {
  std::span<std::uint8_t> chunk;
  bool memory_out = false;
};

/// `head` has method exact. With `to_beat`, empty where the estimate is clearly above it.
ExactAttempt encode_exact_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                const Settings& settings, const Book* book, Workspace& workspace,
                                std::size_t to_beat = SIZE_MAX);

/// What encode_exact_chunk would come to, from a sample.
std::size_t estimate_exact_bytes(const ChunkHead& head, std::span<const std::byte> values,
                                 const Settings& settings, Workspace& workspace);

/// Whether encode_exact_chunk may come to less than `n_bytes`, as far as its own plan tells, of
/// values that do not repeat in long stretches.
bool exact_may_be_below(const ChunkHead& head, std::span<const std::byte> values,
                        const Settings& settings, Workspace& workspace, std::size_t n_bytes);

/// How far the encoder and estimates go in asking what zstd would make of a chunk.
ZstdTrials trials_of_encoding(const Settings& settings);
ZstdTrials trials_of_estimate(const Settings& settings);

DecodeFailure decode_exact_chunk(ChunkReader& in, const ChunkHead& head, const Book* book,
                                 std::span<std::byte> values, Workspace& workspace);

}  // namespace tailrace::trz
