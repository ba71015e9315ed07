// The registry of codecs: what each can, so that nobody else compares names.
//
// An entry says how a codec is made, what it does to values, what it proves, which settings it
// reads, what codec=auto and the built-in machine profile know of it. src/codec enters the built-in
// codecs (codec/built_in_codecs.cpp), src/hdf5 the filter plug-ins that it knows
// (plugin_known.cpp), both before main() starts; a test may enter one more. A new codec is a line
// in one of the two tables. In core because the parser of options, the models and both of these
// rooms ask.

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

// --- Codecs by the part that they play where no user has named one.

inline constexpr std::string_view auto_codec = "auto";          ///< No codec: we choose one.
inline constexpr std::string_view plain_codec = "none";         ///< The values as they are.
inline constexpr std::string_view exact_codec = "deflate";      ///< Exact, and every reader has it.
inline constexpr std::string_view portable_codec = "portable";  ///< In bounds, and they have it.
inline constexpr std::string_view yardstick_codec = "trz";      ///< What others are compared with.
/// What a codec is called by which chunks are copied as they are stored.
inline constexpr std::string_view stored_codec_name = "stored";

/// What a codec does to finite values.
enum class Loss : std::uint8_t {
  never,       ///< Nothing.
  in_bound,    ///< Changes them within a bound; without one, and integers, it keeps exactly.
  by_purpose,  ///< Made to change them: not for what must stay exact, whatever its settings.
  unknown      ///< A plug-in by its number: who asks for it knows.
};

/// How a chunk is sampled for a codec that has no model of itself (field/chunk_estimator.hpp).
struct SampleRecipe {
  std::uint64_t extent = 0;     ///< Of cubes; 0: runs of the row-major order instead.
  std::uint64_t run_bytes = 0;  ///< Of a run.
  double share = 0;             ///< Of the chunk's values.
  double spread = 0;            ///< Root mean square of log(estimate / actual) over 8 MB chunks.
};

/// A fit of throughputs, MB/s: {Cmin, Cmax, a, pivot} of model/throughput.hpp; zeros: none.
using SpeedFit = std::array<double, 4>;

/// A codec with some settings, as `tailrace profile` measures it and codec=auto considers it.
struct CodecVariant {
  std::string_view codec;  ///< "trz,preset=fast": as on the command line.
  int order = 100;         ///< The lower, the earlier it is listed, and preferred at equal merit.
  /// A candidate for fields with a bound, or for exact ones: its least share of the yardstick's
  /// bytes, since smaller was never seen; 0: always looked at. Nothing: no candidate.
  std::optional<double> share_in_bound = std::nullopt;
  std::optional<double> share_exact = std::nullopt;
  /// Not looked at by itself: so much of the yardstick's estimate, ...
  double of_yardstick = 0;
  bool of_unstaged = false;  ///< ... of that without its lossless stage.
  double look_share = 0.03;  ///< Of the time to encode a chunk of 1 MB: to look at one.
  /// So many times as long as its speed says it may take to encode (small chunks, cores that are
  /// shared): who chooses reckons with that, and above 1 takes it only where writing hides it.
  double encode_doubt = 1;
  SpeedFit encode = {};  ///< One core, for the built-in machine profile.
  SpeedFit decode = {};
  /// MB/s at which that core encodes the chunk by which others are compared with it
  /// (measure/measure_machine.cpp); 0: it is not compared.
  double made_up = 0;
};

struct CodecEntry {
  std::string_view name;     ///< Empty: a filter that is no codec, known by its number.
  std::string_view summary;  ///< A line for --help.
  /// Make the codec for one field; see make_codec().
  Result<std::unique_ptr<Codec>> (*make)(const CodecRequest& request,
                                         const std::string& plugin_path) = nullptr;
  std::vector<std::string_view> settings = {};  ///< The keys that it reads.
  Loss loss = Loss::never;
  bool reals_only = false;      ///< Takes f32 and f64 alone.
  bool keeps_pw_rel = false;    ///< Serves pw_rel, besides abs (to which rel and psnr come).
  bool keeps_guards = false;    ///< Serves guard= of values (trz/base/error_bound.hpp).
  bool proves_bound = false;    ///< The bound is ours to prove: verify=auto leaves it alone.
  bool stores_plainly = false;  ///< Does nothing: no time, no filter.
  bool has_books = false;       ///< Huffman codes may be shared (field/field_book.hpp).
  bool rounds_before = false;   ///< Values are changed before the filters, which do not say so.
  /// Its filters treat values as bytes, so that numbers may have either byte order in the file.
  bool any_byte_order = false;
  bool fits_any_chunk = false;  ///< The header says the same of all chunk shapes.
  /// Decoding asks the chunk for its shape, not the header; most bytes depend on the length alone.
  bool chunks_say_shape = false;
  bool plugin = false;                 ///< Others' code, found on disk (hdf5/filter_plugins.hpp).
  std::uint32_t filter_id = 0;         ///< HDF5's number of the filter that stands for it; 0: none.
  std::string_view readers_need = {};  ///< What readers must have; empty: nothing.
  /// The stage of a filter as a dataset's header has it, for chunks of so many bytes; null: the
  /// header does not fit, and a plug-in may say why. @error corrupt
  Result<std::unique_ptr<FilterStage>> (*stage)(const FilterSpec& stored,
                                                std::uint64_t element_bytes,
                                                std::uint64_t chunk_bytes) = nullptr;
  std::optional<SampleRecipe> sample = std::nullopt;  ///< Nothing: by its loss.
  /// What the yardstick's bits per value say of a chunk of `n_chunk` values of which `n_values`
  /// count; null: nothing.
  Estimate (*by_yardstick)(double bits, double n_chunk, double n_values) = nullptr;
  std::vector<CodecVariant> variants = {};
};

/// Enter a codec, which must live until it is withdrawn. Not thread-safe: before main(), or in
/// tests. @returns true, for those who need a value.
bool enter_codec(const CodecEntry& entry);
void withdraw_codec(const CodecEntry& entry);

/// All codecs: the built-in ones, then the plug-ins that are known, installed or not.
std::span<const CodecEntry* const> codec_registry();

/// The codec of this name, with or without settings behind it; "id=NUMBER" is any plug-in. Null: no
/// such codec. Thread-safe, as all below.
const CodecEntry* find_codec(std::string_view name);
/// The same, or an entry that promises nothing.
const CodecEntry& codec_entry(std::string_view name);
/// The codec or filter of this number; null: none that we know.
const CodecEntry* find_filter(std::uint32_t filter_id);

/// Names with commas between them: the built-in codecs, then the plug-ins that codec=auto
/// considers.
std::string codec_names();
/// All variants in their order; as one text, what `tailrace profile` measures.
std::vector<const CodecVariant*> codec_variants();
std::string codec_variants_text();

/// Make the codec that `request` names. Plug-ins are searched in `plugin_path` (folders with colons
/// between them) first. Not collective. Plug-ins: main thread only, since HDF5 is called.
/// @error invalid_argument  no such codec; an unknown setting, or a value out of range.
/// @error unsupported       a type or bound that it cannot honour.
/// @error plugin_missing    names the id and every folder searched.
Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const std::string& plugin_path = "");

}  // namespace tailrace
