// The registry of codecs and their capabilities, so that no other code compares names.
//
// An entry records how a codec is made, its effect on values, its guarantees and its settings. It
// also has the data that codec=auto and the built-in machine profile use. src/codec registers the
// built-in codecs (codec/built_in_codecs.cpp), src/hdf5 the known filter plug-ins
// (plugin_known.cpp), both before main() starts; a test may register one more. To add a codec, add
// a line to one of the two tables. In core because the option parser, the models and both of these
// folders use it.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

// --- Codecs by the role that they have if the user names none.

inline constexpr std::string_view kAutoCodec = "auto";          ///< Not a codec: Tailrace chooses
                                                                //   one.
inline constexpr std::string_view plain_codec = "none";         ///< Values as they are.
inline constexpr std::string_view kExactCodec = "deflate";      ///< Exact, and every reader has it.
inline constexpr std::string_view kPortableCodec = "portable";  ///< Lossy, and every reader has it.
inline constexpr std::string_view kYardstickCodec = "trz";      ///< The codec that others are
                                                                //   compared with.
/// Codec name for chunks that are copied as they are stored.
inline constexpr std::string_view kStoredCodecName = "stored";

/// Effect of a codec on finite values.
enum class Loss : std::uint8_t {
  never,       ///< Exact.
  in_bound,    ///< Within a bound; exact without a bound, and for integers.
  by_purpose,  ///< Designed to change values: not for exact fields, whatever its settings.
  unknown      ///< A plug-in named by its number: the user is responsible.
};

/// How a chunk is sampled for a codec that has no model of itself (field/chunk_estimator.hpp).
struct SampleRecipe {
  std::uint64_t extent = 0;     ///< Edge of cubes, in values; 0: runs in row-major order.
  std::uint64_t run_bytes = 0;  ///< Length of a run.
  double share = 0;             ///< Sampled fraction of the chunk's values.
  double spread = 0;            ///< Root mean square of log(estimate / actual) over 8 MB chunks.
};

/// A fit of throughputs, MB/s: {Cmin, Cmax, a, pivot} of model/throughput.hpp; zeros: none.
using SpeedFit = std::array<double, 4>;

/// A codec with settings, as measured by `tailrace profile` and considered by codec=auto.
struct CodecVariant {
  std::string_view codec;  ///< "trz,preset=fast": in the syntax of the command line.
  int order = 100;         ///< Lower values are listed first, and preferred at equal merit.
  /// Least fraction of the yardstick's bytes that was ever observed, for fields with a bound and
  /// for exact ones. codec=auto skips the candidate if even this would not win. 0: always sampled.
  /// Nothing: not a candidate.
  std::optional<double> share_in_bound = std::nullopt;
  std::optional<double> share_exact = std::nullopt;
  /// Factor on the yardstick's estimate, which replaces sampling this variant; 0: it is sampled.
  double of_yardstick = 0;
  bool of_unstaged = false;  ///< Apply of_yardstick to the estimate without the lossless stage.
  double look_share = 0.03;  ///< Time to sample a chunk of 1 MB, as a fraction of encoding it.
  /// Factor by which encoding may take longer than its speed suggests (small chunks, shared cores).
  /// The choice multiplies times by it. Above 1 the variant is chosen only if writing hides the
  /// time.
  double encode_doubt = 1;
  SpeedFit encode = {};  ///< One core, for the built-in machine profile.
  SpeedFit decode = {};
  /// Speed in MB/s at which that core encodes the synthetic chunk that compares other machines with
  /// it (measure/measure_machine.cpp); 0: not compared.
  double made_up = 0;
};

struct CodecEntry {
  std::string_view name;     ///< Empty: a filter known only by its number, not a codec.
  std::string_view summary;  ///< A line for --help.
  /// Make the codec for one field; see make_codec().
  Result<std::unique_ptr<Codec>> (*make)(const CodecRequest& request,
                                         const std::string& plugin_path) = nullptr;
  std::vector<std::string_view> settings = {};  ///< Keys that the codec reads.
  Loss loss = Loss::never;
  bool reals_only = false;      ///< Accepts only f32 and f64.
  bool keeps_pw_rel = false;    ///< Supports pw_rel in addition to abs (rel and psnr become abs).
  bool keeps_guards = false;    ///< Supports guard= of values (trz/base/error_bound.hpp).
  bool proves_bound = false;    ///< Tailrace guarantees the bound: verify=auto does not verify.
  bool stores_plainly = false;  ///< Does nothing: no time, no filter.
  bool has_books = false;       ///< Chunks may share Huffman codes (field/field_book.hpp).
  bool rounds_before = false;   ///< Changes values before the filters, which do not record it.
  /// True: its filters treat values as bytes, so numbers may have either byte order in the file.
  bool any_byte_order = false;
  bool fits_any_chunk = false;  ///< The filter's header data are equal for all chunk shapes.
  /// True: decoding reads the shape from the chunk, not from the header; size limits depend only on
  /// the chunk's length.
  bool chunks_store_shape = false;
  bool plugin = false;                 ///< External code, found on disk (hdf5/filter_plugins.hpp).
  std::uint32_t filter_id = 0;         ///< HDF5 number of the filter that identifies it; 0: none.
  std::string_view readers_need = {};  ///< Requirements on readers; empty: none.
  /// Makes the stage of a filter in a dataset's header, for chunks of this many bytes. Null: the
  /// header does not fit, and a plug-in may report why. @error corrupt
  Result<std::unique_ptr<FilterStage>> (*stage)(const FilterSpec& stored,
                                                std::uint64_t element_bytes,
                                                std::uint64_t chunk_bytes) = nullptr;
  std::optional<SampleRecipe> sample = std::nullopt;  ///< Nothing: chosen by the kind of loss.
  /// Estimates a chunk of `n_chunk` values, of which `n_values` count, from the yardstick's bits
  /// per value; null: no such estimate.
  Estimate (*by_yardstick)(double bits, double n_chunk, double n_values) = nullptr;
  std::vector<CodecVariant> variants = {};
};

/// Register a codec; the entry must exist until it is withdrawn. Not thread-safe: before main(), or
/// in tests. @returns true, for use in an initialiser.
bool enter_codec(const CodecEntry& entry);
void withdraw_codec(const CodecEntry& entry);

/// Return all codecs: the built-in ones, then the known plug-ins, installed or not.
std::span<const CodecEntry* const> codec_registry();

/// Find the codec of this name, with or without settings after it; "id=NUMBER" is any plug-in.
/// Null: unknown. Thread-safe, like all functions below.
const CodecEntry* find_codec(std::string_view name);
/// Find the codec of this name, or return an entry without any promises.
const CodecEntry& codec_entry(std::string_view name);
/// Find the codec or filter of this number; null: unknown.
const CodecEntry* find_filter(std::uint32_t filter_id);

/// Make Tailrace's own stage for a filter of a dataset's header. Null: Tailrace has none for it.
/// @error corrupt  the header's data do not fit the filter.
Result<std::unique_ptr<FilterStage>> make_own_stage(const FilterSpec& filter,
                                                    std::uint64_t element_bytes,
                                                    std::uint64_t chunk_bytes);

/// Make the codec of a dataset's header from Tailrace's own stages. Null: some filter has none, or
/// its header data do not fit.
std::unique_ptr<Codec> make_own_stored_codec(const std::vector<FilterSpec>& filters,
                                             std::uint64_t element_bytes,
                                             std::uint64_t chunk_bytes);

/// Return comma-separated names: auto, the built-in codecs, the known plug-ins.
std::string codec_names();
/// Return all variants in their order. codec_variants_text() returns them as the text that
/// `tailrace profile` measures.
std::vector<const CodecVariant*> codec_variants();
std::string codec_variants_text();

/// Check that a codec of this name exists; "auto" is not one. @error invalid_argument  unknown
Status check_codec_name(std::string_view name);
/// Make the codec that `request` names. Searches `plugin_path` (folders separated by colons) for
/// plug-ins first. Not collective. Plug-ins: main thread only, since HDF5 is called.
/// @error invalid_argument  unknown codec; an unknown setting, or a value out of range.
/// @error unsupported  a type or bound that it cannot honour.
/// @error plugin_missing  names the id and every folder searched.
Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const std::string& plugin_path = "");

}  // namespace tailrace
