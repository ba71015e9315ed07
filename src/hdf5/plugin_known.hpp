// The filter plug-ins that we know by name: ids, abilities, settings, and what they do not survive.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "core/codec_registry.hpp"
#include "core/codec_settings.hpp"
#include "hdf5/plugin_library.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace {

// --- Values that would make a lossy plug-in hang or crash, found before it sees them.
//
// Measured on the plug-ins of hdf5plugin 7.1.0, chunks of 4096 values: SZ3 3.1 never returns from a
// chunk that holds a single NaN (or crashes on it), takes seconds to for ever with Inf and with f32
// values from 3e37 on, where its predictions overflow, and copes with 9.97e36, netCDF's fill value.
// SPERR crashes on NaN, on Inf, on values some 2^53 times the bound, and under bounds from 1e19 on
// (1e18 is well; a bound of 1/100 of a range with a fill value of 1e34 is not). ZFP survives
// everything and loses such values silently, which is the verifier's business. A chunk that is
// refused here can still be stored raw.

/// Why the plug-in must not be given these values; nullptr if it may. Thread-safe. Cost: one pass.
using PluginGuard = const char* (*)(DType dtype, std::span<const std::byte> values,
                                    double absolute_bound);

/// SZ3 3.1: finite values of at most 1/32 of the greatest number of the type.
const char* guard_sz3(DType dtype, std::span<const std::byte> values, double absolute_bound);

/// SPERR: finite values of at most 2^48 times the bound, and a bound of at most 2^59.
const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound);

// --- The filter plug-ins that we know by name: their ids, what they can do, and how they are told.
//
// A plug-in takes its settings as a row of 32-bit words (cd_values) in a layout of its own. This
// table turns a field's settings and bound into that row, and refuses what the plug-in would drop
// silently or answer by ending the process. How the rows are packed is that of the Python package
// hdf5plugin 7.1.0 and of the plug-ins' own headers. It enters its codecs in the registry.

/// How a plug-in is to be called for one field.
struct PluginPlan {
  std::vector<std::uint32_t> client_data;  ///< cd_values before set_local.
  bool lossy = false;
  bool shuffle_first = false;  ///< HDF5's byte shuffle goes in front.
  std::string version_note;    ///< Appended to file name and class name; may be empty.
};

/// A plug-in of the registry, and how it is called.
struct KnownPlugin : CodecEntry {
  std::vector<std::string_view> hints = {};  ///< Parts of likely file names, lower case.
  bool reentrant = true;                     ///< Its callback may run on many threads at once.
  bool lossless = true;                      ///< Whatever its client data are.
  std::uint64_t working_per_byte = 2;  ///< Bytes it allocates while encoding, per byte of input.
  PluginGuard guard = nullptr;         ///< Values it does not survive; nullptr: it takes all.
  /// Read the settings; nullptr: known by id only.
  Result<PluginPlan> (*plan)(const CodecRequest& request, CodecSettings& settings,
                             const PluginLibrary& library) = nullptr;
};

/// The plug-in of this codec name, or of this id; nullptr if there is none.
const KnownPlugin* find_known_plugin(std::string_view name);
const KnownPlugin* find_known_plugin(std::uint32_t filter_id);

/// Whether these client data make a plug-in lose bits that loses none with others.
bool drops_bits(const KnownPlugin& known, const std::vector<std::uint32_t>& client_data);

/// The plan of "id=NUMBER" with the setting cd. @param known  that id's row, or nullptr.
/// @error invalid_argument  words that this plug-in is known to answer by ending the process.
Result<PluginPlan> plan_by_id(const CodecRequest& request, CodecSettings& settings,
                              const PluginLibrary& library, const KnownPlugin* known);

}  // namespace tailrace
