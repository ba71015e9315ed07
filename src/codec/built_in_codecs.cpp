// The built-in codecs, an entry each, and the filters of HDF5 that are no codecs of ours.
//
// Least shares of candidates: the best that they did against trz on 180 pairs of field and bound
// (bench/results/trz_codecs.csv, trz_sz3.csv); trz picks the predictor of the fewest bytes by
// itself, so that one which is named can only save time. Speeds: one core of an AMD EPYC with
// AVX-512 (2 vCPUs at work), 8 MB chunks of four Nyx fields at rel 1e-2 ... 1e-6, gathered and
// encoded: the greatest of five runs of `tailrace profile` at each point, since others worked on
// the machine, fitted by fit_throughput(). preset=ratio is held to trz's Cmax, since at high ratios
// both do the same; lossless=off has no curve of its own: it came within the spread of trz's. Those
// of portable, and of the plug-ins (hdf5/plugin_known.cpp): the fits of
// bench/results/trz_codecs.csv, which knows more rates, times 0.55, the median of what these codecs
// reached beside trz in such a run.

#include "core/codec_registry.hpp"

#include "codec/deflate.hpp"
#include "codec/registry.hpp"
#include "codec/trz/client_data.hpp"
#include "codec/xor/xor_chunk.hpp"
#include "core/byte_shuffle.hpp"

namespace tailrace {
namespace {

/// trz's model of itself prices the best prediction; preset=ratio encodes with a second one, too,
/// and keeps the smaller. Geometric mean of its gain (bench/results/trz_codecs.csv).
constexpr double ratio_preset_share = 0.995;

std::vector<CodecVariant> trz_variants() {
  return {
      {.codec = "trz",
       .order = 10,
       .share_in_bound = 0,
       .share_exact = 0,
       .encode = {350, 1541, -0.71, 4.72},
       .decode = {1134, 1985, -0.92, 2.02}},
      // The estimate of plain trz answers for it (2019, eq. 9 against eq. 10).
      {.codec = "trz,lossless=off",
       .order = 11,
       .share_in_bound = 0,
       .of_yardstick = 1,
       .of_unstaged = true},
      {.codec = "trz,preset=fast",
       .order = 12,
       .share_in_bound = 1.03,
       .encode = {688, 2739, -1.29, 6.89},
       .decode = {2195, 2761, -6.00, 6.68}},
      {.codec = "trz,preset=ratio",
       .order = 13,
       .share_in_bound = 0,
       .of_yardstick = ratio_preset_share,
       .encode = {208, 1541, -0.60, 1.10},
       .decode = {1084, 1985, -1.00, 2.02}},
      {.codec = "trz,predictor=lorenzo,dimension=1",
       .order = 14,
       .encode = {570, 2672, -0.71, 2.94},
       .decode = {1500, 2828, -1.09, 1.33}},
      {.codec = "trz,predictor=lorenzo,dimension=2",
       .order = 15,
       .encode = {643, 2533, -0.84, 3.84},
       .decode = {687, 2711, -0.36, 1.24}},
      {.codec = "trz,predictor=lorenzo,dimension=3",
       .order = 16,
       .encode = {1124, 1930, -4.27, 7.40},
       .decode = {1543, 2283, -2.35, 2.60}},
  };
}

const std::vector<CodecEntry>& built_in_codecs() {
  static const std::vector<CodecEntry> table = {
      {.name = "none",
       .summary = "the values as they are",
       .make = make_null_codec,
       .stores_plainly = true,
       .variants = {{.codec = "none",
                     .order = 0,
                     .share_in_bound = 0,
                     .share_exact = 0,
                     .encode = {12003, 12003, -1, 3},
                     .decode = {18072, 18072, -1, 3}}}},
      {.name = "deflate",
       .summary = "lossless: byte shuffle and deflate (level=0..9, shuffle=on|off, "
                  "engine=libdeflate|zlib)",
       .make = make_deflate_codec,
       .settings = {"level", "shuffle", "engine", "checksum"},
       .fits_any_chunk = true,
       .filter_id = deflate_filter_id,
       .stage = stored_deflate_stage,
       .variants = {{.codec = "deflate",
                     .order = 31,
                     .share_in_bound = 0.9,
                     .share_exact = 0.8,
                     .encode = {32, 65, -6, 24.4},
                     .decode = {719, 719, -1, 3}}}},
      {.name = "portable",
       .summary = "lossy within the bound, readable without any plug-in: rounded values, byte "
                  "shuffle, deflate",
       .make = make_portable_codec,
       .settings = {"level", "shuffle", "engine", "checksum"},
       .loss = Loss::by_purpose,
       .keeps_pw_rel = true,
       .proves_bound = true,
       .rounds_before = true,
       .sample = SampleRecipe{0, 16U << 10, 0.02, 0.05},
       .variants = {{.codec = "portable",
                     .order = 30,
                     .share_in_bound = 1.02,
                     .encode = {60, 83, -3.03, 7.8},
                     .decode = {269, 1176, -1, 2.7}}}},
      {.name = "trz",
       .summary = "lossy within the bound at memory speed, or lossless (preset=fast|default|ratio|"
                  "max, predictor=, dimension=1..4, spline=, last_axis=, lossless=on|off); readers "
                  "need libh5trz.so",
       .make = make_trz_codec,
       .settings = {"preset", "predictor", "dimension", "spline", "last_axis", "lossless", "book",
                    "book_loss"},
       .loss = Loss::in_bound,
       .keeps_pw_rel = true,
       .proves_bound = true,
       .has_books = true,
       .chunks_say_shape = true,
       .filter_id = trz::filter_id,
       .readers_need =
           "trz (libh5trz.so in HDF5_PLUGIN_PATH; h5py: pip install ., import tailrace)",
       .stage = stored_trz_stage,
       .variants = trz_variants()},
      {.name = "xor",
       .summary = "lossless at memory speed: xor with neighbours, leading zeros counted "
                  "(dimension=auto|1|2|3); readers need libh5xor.so",
       .make = make_xor_codec,
       .settings = {"dimension"},
       .chunks_say_shape = true,
       .filter_id = neighbour_xor::filter_id,
       .readers_need = "xor (libh5xor.so in HDF5_PLUGIN_PATH)",
       .stage = stored_xor_stage},
      {.name = "",
       .summary = "shuffle",
       .fits_any_chunk = true,
       .filter_id = shuffle_filter_id,
       .stage = stored_shuffle_stage},
      {.name = "",
       .summary = "fletcher32",
       .fits_any_chunk = true,
       .filter_id = fletcher32_filter_id,
       .stage = stored_fletcher32_stage},
      // What HDF5 itself must run.
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

/// CMakeLists.txt asks for this name, so that no program leaves the table out.
extern "C" {
extern const bool tailrace_built_in_codecs;
const bool tailrace_built_in_codecs = tailrace::enter_all();
}
