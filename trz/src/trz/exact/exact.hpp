// Exact coding: chooses a lossless form for a chunk and converts its values to integer words and
// back.
//
// Values become integers with the same order (exact_kernels.hpp). The integers become words of 32
// bits, or 64 if necessary. The Lorenzo predictor predicts words like quantised values. On fields
// this form beats byte-wise compressors. If values repeat without being smooth (lattices, tables,
// counts), zstd is better, with or without a byte shuffle. If no form pays, the chunk is stored. A
// sample decides. A value that fills much of the chunk and lies far from the others (a mask) is a
// patch: its word is that of the value before it.

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

/// Form of an exact chunk. The numbers are part of the format.
enum class ExactForm : std::uint8_t {
  zstd = 0,        ///< zstd on the unchanged bytes.
  shuffled = 1,    ///< zstd on the shuffled bytes.
  words = 2,       ///< One 32-bit code per value.
  wide = 3,        ///< Two 32-bit codes per value; 64-bit types only.
  modelled = 4,    ///< One modelled code per value (modelled.hpp).
  dictionary = 5,  ///< The distinct values, and the rank of each value (dictionary.hpp).
  stored = 15,     ///< No form pays; does not occur in a chunk.
};

struct ExactPlan {
  ExactForm form = ExactForm::stored;
  int zstd_level = 3;         ///< zstd's level, for forms zstd and shuffled.
  int order = 0;              ///< Order of the Lorenzo predictor.
  std::uint64_t origin = 0;   ///< Integer whose word is 0.
  std::uint64_t factor = 1;   ///< Difference between the integers of successive words.
  bool has_special = false;   ///< True if values with the bits `special` are patches.
  std::uint64_t special = 0;  ///< Not in the format: the reader only applies patches.
  bool low_is_noise = false;  ///< Form wide: low words are stored uncoded.
  std::size_t estimated_bytes = 0;
  /// zstd's frame (forms zstd and shuffled), if the decision has already made it. In Slot::sample.
  std::span<const std::byte> frame;
};

/// A chunk's values.
struct ExactValues {
  DType dtype = DType::f32;
  const void* data = nullptr;  ///< Aligned as its type.
  Extents extents{1, 1, 1, 1};
};

/// Effort spent on trying zstd: none, on a small sample, or on long stretches if values repeat. The
/// last may cost more than coding the chunk.
enum class ZstdTrials : std::uint8_t { none, quick, thorough };

/// Choose the form of a chunk from a sample. If 64-bit values or multiples might fit 32 bits, it
/// also scans all values once. Uses Slot::sample. The plan is the same on every machine with the
/// same zstd. Not collective. Thread-safe with a workspace per thread. Out of memory: form stored.
/// @param to_beat  size of the chunk in another form; forms that are unlikely to be smaller are not
/// examined (result: form stored).
ExactPlan choose_exact(const ExactValues& values, ZstdTrials trials, Workspace& workspace,
                       std::size_t to_beat = SIZE_MAX);

/// Write the predicted words of form `words` as codes. Special values become patches, which the
/// reader applies afterwards. Uses Slot::rows. @returns false if out of memory.
bool encode_words(const ExactValues& values, const ExactPlan& plan, CodeWriter& codes,
                  PatchMap& patches, Workspace& workspace);

/// The inverse of encode_words, without patches. The plan's factor, origin and order may have any
/// value. @returns false if out of memory or if the codes failed.
bool decode_words(CodeReader& codes, const ExactPlan& plan, DType dtype, const Extents& extents,
                  void* values, Workspace& workspace);

/// Compute the predicted 64-bit codes of form `wide` as n low and n high halves: code =
/// high * 2^32 + low, with signed low. They are coded without further prediction, high halves
/// first.
bool encode_wide(const ExactValues& values, const ExactPlan& plan, std::int32_t* low,
                 std::int32_t* high, PatchMap& patches, Workspace& workspace);
bool decode_wide(const std::int32_t* low, const std::int32_t* high, const ExactPlan& plan,
                 DType dtype, const Extents& extents, void* values, Workspace& workspace);

/// Origin and factor in the form that the kernels use. @param factor  >= 1.
WordMap word_map(std::uint64_t origin, std::uint64_t factor);

// --- Exact chunks: lossless coding of complete chunks of any type.
//
// The functions above choose a form and transform the values. The functions below pass the words
// through code sections, or the bytes through zstd.

/// Result of encoding: a complete chunk without its checksum, in Slot::trial, Slot::modelled or
/// Slot::dictionary; empty if it does not pay.
struct ExactAttempt {
  std::span<std::uint8_t> chunk;
  bool memory_out = false;
};

/// Encode a chunk exactly. `head` has method exact. The result is empty if the estimated size is
/// clearly above `to_beat`.
ExactAttempt encode_exact_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                const Settings& settings, const Book* book, Workspace& workspace,
                                std::size_t to_beat = SIZE_MAX);

/// Estimate the size of encode_exact_chunk's result from a sample.
std::size_t estimate_exact_bytes(const ChunkHead& head, std::span<const std::byte> values,
                                 const Settings& settings, Workspace& workspace);

/// True if encode_exact_chunk's result may be smaller than `n_bytes`, judging by its plan. The
/// values must not repeat in long stretches.
bool exact_may_be_below(const ChunkHead& head, std::span<const std::byte> values,
                        const Settings& settings, Workspace& workspace, std::size_t n_bytes);

/// Effort that the encoder and the estimates spend on trying zstd.
ZstdTrials trials_of_encoding(const Settings& settings);
ZstdTrials trials_of_estimate(const Settings& settings);

DecodeFailure decode_exact_chunk(ChunkReader& in, const ChunkHead& head, const Book* book,
                                 std::span<std::byte> values, Workspace& workspace);

}  // namespace tailrace::trz
