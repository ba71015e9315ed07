// The built-in codecs, one entry each, and HDF5's filters that are not codecs of ours.
//
// Least shares of candidates: their best result against trz on 180 pairs of field and bound
// (lab/bench/results/trz_codecs.csv, trz_sz3.csv). trz itself picks the predictor with the fewest
// bytes, so naming one can only save time. Speeds: one core of an AMD EPYC without AVX-512,
// otherwise idle. Chunks of 8 MB of generated cosmology-like fields at rel 1e-2 ... 1e-6 were
// gathered and encoded, and one run of `tailrace profile` fitted the curves (off by 15 to 20 %).
// The speeds of the plug-ins (hdf5/plugin_known.cpp) have the same source. lossless=off has no
// curve: its speed was within the spread of trz's. `made_up`: the maximum of several runs there,
// idle and busy.

#include "core/codec_registry.hpp"

#include "codec/deflate.hpp"
#include "codec/registry.hpp"
#include "trz/base/byte_shuffle.hpp"
#include "trz/client_data.hpp"
#include "xor/xor_chunk.hpp"

namespace tailrace {
namespace {

/// trz's model estimates the best prediction; preset=ratio also encodes with a second one, and
/// keeps the smaller. Geometric mean of its gain (lab/bench/results/trz_codecs.csv).
constexpr double kRatioPresetShare = 0.995;

std::vector<CodecVariant> trz_variants() {
  return {
      {.codec = "trz",
       .order = 10,
       .share_in_bound = 0,
       .share_exact = 0,
       .encode = {240, 810, -2.16, 9.97},
       .decode = {901, 1121, -6.00, 2.70},
       .made_up = 760},
      // Uses the estimate of plain trz (2019, eq. 9 against eq. 10).
      {.codec = "trz,lossless=off",
       .order = 11,
       .share_in_bound = 0,
       .of_yardstick = 1,
       .of_unstaged = true},
      {.codec = "trz,preset=fast",
       .order = 12,
       .share_in_bound = 1.03,
       .encode = {592, 2672, -0.92, 5.34},
       .decode = {1869, 2813, -1.53, 4.46},
       .made_up = 2930},
      {.codec = "trz,preset=ratio",
       .order = 13,
       .share_in_bound = 0,
       .of_yardstick = kRatioPresetShare,
       .encode = {131, 514, -0.84, 6.16},
       .decode = {395, 1236, -0.22, 0.90},
       .made_up = 477},
      {.codec = "trz,preset=max",
       .order = 14,
       .share_in_bound = 0.7,
       .look_share = 0.15,
       .encode_doubt = 2,
       .encode = {115, 155, -3.92, 5.3},
       .decode = {95, 385, -0.20, 0.19},
       .made_up = 80},
      {.codec = "trz,predictor=lorenzo,dimension=1",
       .order = 15,
       .encode = {816, 1672, -1.09, 2.55},
       .decode = {1406, 2186, -1.98, 2.55},
       .made_up = 1766},
      {.codec = "trz,predictor=lorenzo,dimension=2",
       .order = 16,
       .encode = {375, 1586, -0.51, 3.03},
       .decode = {1501, 2165, -6.00, 2.15},
       .made_up = 1676},
      {.codec = "trz,predictor=lorenzo,dimension=3",
       .order = 17,
       .encode = {727, 1653, -1.09, 2.82},
       .decode = {1372, 2302, -5.51, 3.73},
       .made_up = 1450},
  };
}

const std::vector<CodecEntry>& built_in_codecs() {
  static const std::vector<CodecEntry> table = {
      {.name = "none",
       .summary = "values unchanged",
       .make = make_null_codec,
       .stores_plainly = true,
       .any_byte_order = true,
       .variants = {{.codec = "none",
                     .order = 0,
                     .share_in_bound = 0,
                     .share_exact = 0,
                     .encode = {10738, 10738, -1, 3},
                     .decode = {17570, 17570, -1, 3}}}},
      {.name = "deflate",
       .summary = "lossless: byte shuffle and deflate (level=0..9, shuffle=on|off, "
                  "engine=libdeflate|zlib)",
       .make = make_deflate_codec,
       .settings = {"level", "shuffle", "engine", "checksum"},
       .any_byte_order = true,
       .fits_any_chunk = true,
       .filter_id = kDeflateFilterId,
       .stage = stored_deflate_stage,
       .variants = {{.codec = "deflate",
                     .order = 31,
                     .share_in_bound = 0.9,
                     .share_exact = 0.8,
                     .encode = {75, 75, -1, 3},
                     .decode = {1130, 1130, -1, 3},
                     .made_up = 96}}},
      {.name = "portable",
       .summary = "lossy within the bound, readable without any plug-in: rounded values, byte "
                  "shuffle, deflate",
       .make = make_portable_codec,
       .settings = {"level", "shuffle", "engine", "checksum"},
       .loss = Loss::by_purpose,
       .keeps_pw_rel = true,
       .proves_bound = true,
       .rounds_before = true,
       .any_byte_order = true,
       .sample = SampleRecipe{0, 16U << 10, 0.02, 0.05},
       .variants = {{.codec = "portable",
                     .order = 30,
                     .share_in_bound = 1.02,
                     .encode = {72, 186, -1.29, 1.10},
                     .decode = {496, 2097, -1.41, 1.65},
                     .made_up = 125}}},
      {.name = "trz",
       .summary = "lossy within the bound at memory speed, or lossless (preset=fast|default|ratio|"
                  "max, predictor=, dimension=1..4, spline=, last_axis=, lossless=on|off, "
                  "coarse=off|1|2|3, refine=off|1..8); readers need libh5trz.so",
       .make = make_trz_codec,
       .settings = {"preset", "predictor", "dimension", "spline", "last_axis", "lossless", "coarse",
                    "refine", "book", "book_loss"},
       .loss = Loss::in_bound,
       .keeps_pw_rel = true,
       .keeps_guards = true,
       .proves_bound = true,
       .has_books = true,
       .chunks_store_shape = true,
       .filter_id = trz::filter_id,
       .readers_need = "trz (Python: pip install ./python/filters in Tailrace's sources; others: "
                       "libh5trz.so in "
                       "HDF5_PLUGIN_PATH)",
       .stage = stored_trz_stage,
       .variants = trz_variants()},
      {.name = "xor",
       .summary = "lossless at memory speed: xor with neighbours, leading zeros counted "
                  "(dimension=auto|1|2|3); readers need libh5xor.so",
       .make = make_xor_codec,
       .settings = {"dimension"},
       .chunks_store_shape = true,
       .filter_id = neighbour_xor::filter_id,
       .readers_need = "xor (Python: pip install ./python/filters in Tailrace's sources; others: "
                       "libh5xor.so in "
                       "HDF5_PLUGIN_PATH)",
       .stage = stored_xor_stage},
      {.name = "",
       .summary = "shuffle",
       .fits_any_chunk = true,
       .filter_id = kShuffleFilterId,
       .stage = stored_shuffle_stage},
      {.name = "",
       .summary = "fletcher32",
       .fits_any_chunk = true,
       .filter_id = kFletcher32FilterId,
       .stage = stored_fletcher32_stage},
      // Filters that HDF5 itself must run.
      {.name = "", .summary = "szip", .filter_id = 4},
      {.name = "", .summary = "nbit", .filter_id = 5},
      {.name = "", .summary = "scaleoffset", .filter_id = 6},
  };
  return table;
}

bool enter_all() {
  for (const CodecEntry& entry : built_in_codecs()) enter_codec(entry);
  return true;
}

}  // namespace
}  // namespace tailrace

/// CMakeLists.txt refers to this symbol, so that the linker keeps the table in every program.
extern "C" {
extern const bool tailrace_built_in_codecs;
const bool tailrace_built_in_codecs = tailrace::enter_all();
}
