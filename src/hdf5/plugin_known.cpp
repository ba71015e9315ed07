// Packing of each known plug-in's settings, and the guards.

#include "hdf5/plugin_known.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "hdf5/filter_plugins.hpp"

namespace tailrace {

namespace {

template <class T>
std::span<const T> as_values(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// True if every |x| <= most; false for NaN. Does not stop at the first violation: a loop without
/// exits runs at memory speed.
template <class T>
bool all_within(std::span<const T> values, T most) {
  unsigned any = 0;
  for (const T x : values) any |= static_cast<unsigned>(!(std::fabs(x) <= most));
  return any == 0;
}

/// The greatest finite T that is at most `value`.
template <class T>
T at_most(double value) {
  constexpr auto greatest = static_cast<double>(std::numeric_limits<T>::max());
  return static_cast<T>(std::min(value, greatest));
}

/// all_within() for real numbers of either type; true for other types.
bool all_reals_within(DType dtype, std::span<const std::byte> values, double most) {
  if (dtype == DType::f32) return all_within(as_values<float>(values), at_most<float>(most));
  if (dtype == DType::f64) return all_within(as_values<double>(values), at_most<double>(most));
  return true;
}

}  // namespace

const char* guard_sz3(DType dtype, std::span<const std::byte> values, double) {
  const double greatest = dtype == DType::f32 ? double{std::numeric_limits<float>::max()}
                                              : std::numeric_limits<double>::max();
  return all_reals_within(dtype, values, greatest / 32)
             ? nullptr
             : "the chunk holds NaN, Inf or values near the end of the type's range, on which "
               "SZ3 3.1 may hang";
}

const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound) {
  if (absolute_bound > 0x1p59)
    return "SPERR crashes if the square of the bound is not a finite f32";
  const double most =
      absolute_bound > 0 ? absolute_bound * 0x1p48 : std::numeric_limits<double>::max();
  return all_reals_within(dtype, values, most)
             ? nullptr
             : "the chunk holds NaN, Inf or values beyond 2^48 bounds, on which SPERR crashes";
}

// --- Packing of each known plug-in's settings.

namespace {

constexpr std::uint32_t kSz3Id = 32024;
constexpr std::uint32_t kBlosc2Id = 32026;
/// Our codec xor as a plug-in (xor/xor_chunk.hpp): lossless for all input.
constexpr std::uint32_t kXorId = 482;

Status unsupported(const CodecRequest& request, const std::string& why) {
  return Status(Code::unsupported, "codec " + request.name + ": " + why);
}

/// Append the two halves of a double, the more significant first (SZ3, SZ2).
void append_big_endian(double value, std::vector<std::uint32_t>& words) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  words.push_back(static_cast<std::uint32_t>(bits >> 32));
  words.push_back(static_cast<std::uint32_t>(bits));
}

/// Append the two halves of a double in this machine's memory order (H5Z-ZFP).
void append_native(double value, std::vector<std::uint32_t>& words) {
  const auto halves = std::bit_cast<std::array<std::uint32_t, 2>>(value);
  words.insert(words.end(), halves.begin(), halves.end());
}

/// The bound for a codec that computes in the field's type: the greatest number of that type that
/// does not exceed `bound`.
double bound_in_dtype(double bound, DType dtype) {
  if (dtype != DType::f32) return bound;
  float rounded = static_cast<float>(bound);
  if (static_cast<double>(rounded) > bound) rounded = std::nextafterf(rounded, 0.0F);
  return static_cast<double>(rounded);
}

/// Refuse requests that no lossy codec of real numbers supports.
Status check_lossy(const CodecRequest& request) {
  if (request.pointwise_bound > 0) {
    std::string others;
    for (const CodecEntry* entry : codec_registry()) {
      if (!entry->keeps_pw_rel || entry->plugin) continue;
      others += (others.empty() ? "" : " or ") + std::string(entry->name);
    }
    return unsupported(request, "it cannot guarantee a pw_rel bound; choose " + others);
  }
  if (!(request.absolute_bound > 0)) {
    return unsupported(request,
                       "it is lossy and needs a bound > 0 (abs=, rel= or psnr= of a field that is "
                       "not constant); for exact values choose deflate or zstd");
  }
  if (bound_in_dtype(request.absolute_bound, request.dtype) == 0) {
    return unsupported(request, "the bound is below the least positive f32");
  }
  return Status();
}

/// True for SZ3 3.1, which takes the mode and four doubles; later versions use the same id for a
/// serialised configuration.
bool is_sz3_3_1(const PluginLibrary& library) { return library.exports("SZ_errConfigToCdArray"); }

Result<PluginPlan> plan_sz3(const CodecRequest& request, CodecSettings& settings,
                            const PluginLibrary& library) {
  TAILRACE_TRY(settings.finish());
  TAILRACE_TRY(check_lossy(request));
  if (!is_sz3_3_1(library)) {
    return unsupported(request,
                       library.file_path +
                           " is not SZ3 3.1 (that of hdf5plugin 7), and later versions take "
                           "other client data; give theirs with id=32024,cd=...");
  }
  constexpr std::size_t rank_max =
      4;  // Its set_local overruns an array beyond 5; its kernels stop at 4.
  if (request.chunk_shape.size() > rank_max) {
    return unsupported(
        request, "it takes chunks of 1 to 4 dimensions, not " + shape_text(request.chunk_shape));
  }
  PluginPlan plan;
  plan.lossy = true;
  plan.version_note = "SZ3 3.1";
  plan.client_data = {0};  // Error-bound mode ABS.
  append_big_endian(bound_in_dtype(request.absolute_bound, request.dtype), plan.client_data);
  for (int unused = 0; unused < 3; ++unused) append_big_endian(0, plan.client_data);
  return plan;
}

Result<PluginPlan> plan_zfp(const CodecRequest& request, CodecSettings& settings,
                            const PluginLibrary&) {
  const std::optional<double> rate = settings.positive("rate");
  const std::int64_t precision = settings.integer("precision", 1, 64, 0);
  const bool reversible = settings.flag("reversible", false);
  TAILRACE_TRY(settings.finish());
  const int n_modes = int{rate.has_value()} + int{precision > 0} + int{reversible};
  if (n_modes > 1) {
    return Status(Code::invalid_argument,
                  "codec zfp: rate, precision and reversible cannot be combined");
  }
  if ((rate || precision > 0) && (request.absolute_bound > 0 || request.pointwise_bound > 0)) {
    return Status(Code::invalid_argument,
                  "codec zfp: rate and precision cannot guarantee a bound; give rate or precision "
                  "without a bound, or only a bound");
  }
  const bool whole_words = request.dtype == DType::i32 || request.dtype == DType::i64;
  if (!is_floating(request.dtype) && !(whole_words && reversible)) {
    return unsupported(request, "it takes f32 and f64, and i32 and i64 with reversible=on, not " +
                                    std::string(dtype_name(request.dtype)));
  }
  PluginPlan plan;
  plan.lossy = !reversible;
  if (rate) {
    plan.client_data = {1, 0};
    append_native(*rate, plan.client_data);
  } else if (precision > 0) {
    plan.client_data = {2, 0, static_cast<std::uint32_t>(precision), 0};
  } else if (reversible) {
    plan.client_data = {5, 0, 0, 0};
  } else {
    TAILRACE_TRY(check_lossy(request));
    plan.client_data = {3, 0};
    append_native(bound_in_dtype(request.absolute_bound, request.dtype), plan.client_data);
  }
  plan.client_data.resize(6, 0);
  return plan;
}

/// H5Z-SPERR's word: mode in bits 28-29, quality as fixed point with 16 fractional bits, rank swap
/// in bit 31. For a point-wise bound, quality is its base-2 logarithm, with the sign in bit 27.
Result<PluginPlan> plan_sperr(const CodecRequest& request, CodecSettings& settings,
                              const PluginLibrary&) {
  const bool swap = settings.flag("swap", false);
  const std::size_t missing = settings.choice("missing", {"none", "nan", "large"}, 0);
  TAILRACE_TRY(settings.finish());
  TAILRACE_TRY(check_lossy(request));
  const double logarithm = std::log2(bound_in_dtype(request.absolute_bound, request.dtype)) * 65536;
  // Round towards the tighter bound for either sign.
  std::uint32_t word = logarithm < 0 ? static_cast<std::uint32_t>(std::ceil(-logarithm)) | 1U << 27
                                     : static_cast<std::uint32_t>(std::floor(logarithm));
  word |= 3U << 28;
  if (swap) word |= 1U << 31;
  PluginPlan plan;
  plan.lossy = true;
  plan.client_data = {word, static_cast<std::uint32_t>(missing)};
  return plan;
}

Result<PluginPlan> plan_zstd(const CodecRequest&, CodecSettings& settings,
                             const PluginLibrary& library) {
  PluginPlan plan;
  plan.client_data = {static_cast<std::uint32_t>(settings.integer("level", -131072, 22, 3))};
  plan.shuffle_first = settings.flag("shuffle", true);
  plan.version_note = library.text_of("ZSTD_versionString");
  if (!plan.version_note.empty()) plan.version_note.insert(0, "zstd ");
  TAILRACE_TRY(settings.finish());
  return plan;
}

Result<PluginPlan> plan_lz4(const CodecRequest&, CodecSettings& settings, const PluginLibrary&) {
  PluginPlan plan;
  plan.client_data = {static_cast<std::uint32_t>(settings.integer("block", 0, 0x7E000000, 0))};
  plan.shuffle_first = settings.flag("shuffle", true);
  TAILRACE_TRY(settings.finish());
  return plan;
}

Result<PluginPlan> plan_bzip2(const CodecRequest&, CodecSettings& settings, const PluginLibrary&) {
  PluginPlan plan;
  plan.client_data = {static_cast<std::uint32_t>(settings.integer("level", 1, 9, 9))};
  plan.shuffle_first = settings.flag("shuffle", true);
  TAILRACE_TRY(settings.finish());
  return plan;
}

/// blosc and blosc2: four words that set_local fills, then level, shuffle kind, compressor.
Result<PluginPlan> plan_blosc(const CodecRequest&, CodecSettings& settings, const PluginLibrary&) {
  constexpr std::array<std::uint32_t, 5> compressors = {0, 1, 2, 4, 5};
  const auto level = static_cast<std::uint32_t>(settings.integer("level", 0, 9, 5));
  const auto shuffle =
      static_cast<std::uint32_t>(settings.choice("shuffle", {"none", "byte", "bit"}, 1));
  const std::size_t inner =
      settings.choice("inner", {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}, 1);
  TAILRACE_TRY(settings.finish());
  PluginPlan plan;
  plan.client_data = {0, 0, 0, 0, level, shuffle, compressors[inner]};
  return plan;
}

Result<PluginPlan> plan_bitshuffle(const CodecRequest&, CodecSettings& settings,
                                   const PluginLibrary&) {
  constexpr std::array<std::uint32_t, 3> compressors = {0, 2, 3};
  const std::int64_t block = settings.integer("block", 0, 1 << 24, 0);
  const std::size_t inner = settings.choice("inner", {"none", "lz4", "zstd"}, 1);
  const auto level = static_cast<std::uint32_t>(settings.integer("level", 0, 22, 3));
  TAILRACE_TRY(settings.finish());
  if (block % 8 != 0) {
    return Status(Code::invalid_argument,
                  "codec bitshuffle: block must be a multiple of 8, got " + std::to_string(block));
  }
  PluginPlan plan;
  plan.client_data = {static_cast<std::uint32_t>(block), compressors[inner]};
  if (compressors[inner] == 3) plan.client_data.push_back(level);
  return plan;
}

/// Refuse words on which SZ3's plug-in would call exit() or print to stderr.
Status check_sz3_words(const CodecRequest& request, const PluginLibrary& library,
                       const std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t magic_of_later_versions = 0xF342F310;
  constexpr std::uint32_t mode_max = 5;
  if (request.chunk_shape.size() > 5) {
    return unsupported(request, "SZ3 overruns its memory beyond 5 dimensions");
  }
  const bool fits = is_sz3_3_1(library) ? words.size() == 9 && words[0] <= mode_max
                                        : words.size() > 1 && words[0] == magic_of_later_versions;
  if (fits) return Status();
  return Status(
      Code::invalid_argument,
      "codec " + request.name + ": cd has " + std::to_string(words.size()) + " words; " +
          library.file_name +
          (is_sz3_3_1(library)
               ? " (SZ3 3.1) takes 9: mode (0..5), then four doubles as high and low word"
               : " takes a serialised SZ3 configuration that starts with its magic number"));
}

}  // namespace

// --- The table.

namespace {

/// Predicts SZ3's size from trz's for the same values. Both predict by interpolation and code the
/// same residuals, and one call of SZ3 costs more than 10 ms on the smallest sample. Fitted by
/// least squares of the relative error to 112 pairs of chunk and bound. Data: Nyx at 64^3 and
/// 128^3, synthetic_nyx seeds 1 and 2, rel 1e-2 to 1e-5; SZ3 3.1 of hdf5plugin 7.1. Mean error 4 %,
/// 95th percentile 14 %; 4 to 6 % on the held-out sets. The remaining error is similar within a
/// field.
Estimate sz3_by_trz(double bits, double n_chunk, double n_values) {
  constexpr double residuals = 0.994;
  // SZ3's Huffman code spends at least a bit per value, trz less.
  constexpr double low_rate = 0.33;
  constexpr double low_rate_bits = 0.5;  // Rate at which that overhead reaches half its maximum.
  // SZ3 stores its Huffman tree with every chunk, with a node for each residual that occurs. Their
  // number grows about as the square root of the residuals' width, 2^bits, since most lie close to
  // 0.
  constexpr double tree_bytes_unit = 1566;
  constexpr double node_bytes_max = 16;
  constexpr double nodes_max = 65536;
  constexpr double spread = 0.06;  // Root mean square of log(estimate / actual).
  const double tree_bytes = std::min(tree_bytes_unit * std::exp2(bits / 2),
                                     node_bytes_max * std::min(n_chunk, nodes_max));
  const double sz3_bits = residuals * bits + low_rate * bits / (bits + low_rate_bits);
  return Estimate{sz3_bits / 8 * n_values + tree_bytes, 1, spread};
}

KnownPlugin by_name(std::string_view name, std::uint32_t filter_id,
                    std::vector<std::string_view> hints, std::vector<std::string_view> settings,
                    Result<PluginPlan> (*plan)(const CodecRequest&, CodecSettings&,
                                               const PluginLibrary&)) {
  KnownPlugin made;
  made.name = made.readers_need = name;
  made.make = make_plugin_codec;
  made.settings = std::move(settings);
  made.plugin = true;
  made.filter_id = filter_id;
  made.hints = std::move(hints);
  made.plan = plan;
  return made;
}

KnownPlugin made_to_lose(KnownPlugin plugin, std::uint64_t working_per_byte) {
  plugin.loss = Loss::by_purpose;
  plugin.lossless = false;
  plugin.working_per_byte = working_per_byte;
  return plugin;
}

KnownPlugin by_number(std::uint32_t filter_id, std::string_view summary,
                      std::vector<std::string_view> hints, std::uint64_t working_per_byte) {
  KnownPlugin made =
      made_to_lose(by_name("", filter_id, std::move(hints), {}, nullptr), working_per_byte);
  made.summary = summary;
  made.reentrant = false;
  return made;
}

/// Re-entrancy was tested with 8 threads on each plug-in (docs/codecs.md). SZ2 (32017) gave wrong
/// bytes and crashed; blosc is safe because it takes its own lock. Shares and speeds of candidates:
/// see codec/built_in_codecs.cpp.
std::vector<KnownPlugin> make_table() {
  KnownPlugin sz3 = made_to_lose(by_name("sz3", kSz3Id, {"sz3"}, {}, plan_sz3), 6);
  sz3.reals_only = true;
  sz3.guard = guard_sz3;
  sz3.by_yardstick = sz3_by_trz;
  sz3.variants = {{.codec = "sz3",
                   .order = 20,
                   .share_in_bound = 0.83,
                   .encode = {21, 125, -1.09, 5.62},
                   .decode = {22, 300, -1.19, 2.73}}};
  KnownPlugin zfp = made_to_lose(
      by_name("zfp", 32013, {"zfp"}, {"rate", "precision", "reversible"}, plan_zfp), 2);
  // Blocks of 4 per dimension are coded independently, so that any of them can represent all.
  zfp.sample = SampleRecipe{4, 0, 0.01, 0.01};
  zfp.variants = {{.codec = "zfp",
                   .order = 21,
                   .share_in_bound = 1.3,
                   .encode = {103, 276, -0.92, 3.57},
                   .decode = {88, 396, -0.84, 3.57}}};
  KnownPlugin sperr =
      made_to_lose(by_name("sperr", 32028, {"sperr"}, {"swap", "missing"}, plan_sperr), 8);
  sperr.reals_only = true;
  sperr.guard = guard_sperr;
  KnownPlugin zstd = by_name("zstd", 32015, {"zstd"}, {"level", "shuffle"}, plan_zstd);
  zstd.variants = {{.codec = "zstd",
                    .order = 22,
                    .share_in_bound = 0.9,
                    .share_exact = 0.8,
                    .encode = {599, 599, -1, 3},
                    .decode = {1336, 1336, -1, 3}}};
  KnownPlugin lz4 = by_name("lz4", 32004, {"lz4"}, {"block", "shuffle"}, plan_lz4);
  KnownPlugin bzip2 = by_name("bzip2", 307, {"bzip2", "bz2"}, {"level", "shuffle"}, plan_bzip2);
  KnownPlugin bitshuffle = by_name("bitshuffle", 32008, {"bshuf", "bitshuffle"},
                                   {"block", "inner", "level"}, plan_bitshuffle);
  for (KnownPlugin* plugin : {&zstd, &lz4, &bzip2, &bitshuffle}) plugin->fits_any_chunk = true;
  const std::vector<std::string_view> of_blosc = {"level", "shuffle", "inner"};
  KnownPlugin blosc = by_name("blosc", 32001, {"blosc"}, of_blosc, plan_blosc);
  KnownPlugin blosc2 = by_name("blosc2", kBlosc2Id, {"blosc2"}, of_blosc, plan_blosc);
  for (KnownPlugin* plugin : {&zstd, &lz4, &bzip2, &bitshuffle, &blosc, &blosc2}) {
    plugin->any_byte_order = true;
  }
  // Our own codec, used if a file's header does not fit: lossless for all input.
  KnownPlugin own_xor = by_name("", kXorId, {"xor"}, {}, nullptr);
  return {std::move(sz3),
          std::move(zfp),
          std::move(zstd),
          std::move(lz4),
          std::move(bzip2),
          std::move(blosc),
          std::move(blosc2),
          std::move(bitshuffle),
          std::move(sperr),
          std::move(own_xor),
          by_number(32017, "sz2", {"sz"}, 8),
          by_number(32018, "", {"fcidecomp", "jpegls"}, 4),
          by_number(32033, "", {"htj2k"}, 4)};
}

const std::vector<KnownPlugin>& known_plugins() {
  static const std::vector<KnownPlugin> table = make_table();
  return table;
}

/// Any plug-in by its number, not known to be lossless.
const CodecEntry& numbered_plugin() {
  static const KnownPlugin entry = [] {
    KnownPlugin any = made_to_lose(by_name("id", 0, {}, {"cd", "shuffle"}, nullptr), 8);
    any.loss = Loss::unknown;
    return any;
  }();
  return entry;
}

bool enter_plugins() {
  for (const KnownPlugin& known : known_plugins()) enter_codec(known);
  return enter_codec(numbered_plugin());
}

[[maybe_unused]] const bool plugins_entered = enter_plugins();

}  // namespace

const KnownPlugin* find_known_plugin(std::string_view name) {
  for (const KnownPlugin& known : known_plugins()) {
    if (!name.empty() && known.name == name) return &known;
  }
  return nullptr;
}

const KnownPlugin* find_known_plugin(std::uint32_t filter_id) {
  for (const KnownPlugin& known : known_plugins()) {
    if (known.filter_id == filter_id) return &known;
  }
  return nullptr;
}

/// Blosc2's filter 4 (TRUNC_PREC) drops mantissa bits; 0 to 2 are none, byte and bit shuffle.
bool drops_bits(const KnownPlugin& known, const std::vector<std::uint32_t>& client_data) {
  return known.filter_id == kBlosc2Id && client_data.size() > 5 && client_data[5] > 2;
}

Result<PluginPlan> plan_by_id(const CodecRequest& request, CodecSettings& settings,
                              const PluginLibrary& library, const KnownPlugin* known) {
  PluginPlan plan;
  plan.client_data = settings.words("cd");
  plan.shuffle_first = settings.flag("shuffle", false);
  TAILRACE_TRY(settings.finish());
  // An unknown filter may lose values, so its chunks are verified like those of a lossy one.
  plan.lossy = known == nullptr || !known->lossless || drops_bits(*known, plan.client_data);
  if (known != nullptr && known->filter_id == kSz3Id) {
    TAILRACE_TRY(check_sz3_words(request, library, plan.client_data));
  }
  return plan;
}

}  // namespace tailrace
