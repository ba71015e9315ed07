// The filter plug-ins known by name: ids, abilities, settings, and values that crash them.

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

// --- Guards: values that would make a lossy plug-in hang or crash, detected before the call.
//
// Measured on the plug-ins of hdf5plugin 7.1.0, chunks of 4096 values. SZ3 3.1 hangs (or crashes)
// on a chunk that holds a single NaN. With Inf, and with f32 values from 3e37 on, where its
// predictions overflow, it takes from seconds to forever; 9.97e36, netCDF's fill value, works.
// SPERR crashes on NaN, on Inf, on values of about 2^53 times the bound, and with bounds from 1e19
// on. A bound of 1e18 works; a bound of 1/100 of a range with a fill value of 1e34 does not. ZFP
// survives all values and loses such values silently, which the verifier detects. A chunk that is
// refused here can still be stored raw.

/// Returns the reason why the plug-in must not process these values; nullptr if it may.
/// Thread-safe. Cost: one pass.
using PluginGuard = const char* (*)(DType dtype, std::span<const std::byte> values,
                                    double absolute_bound);

/// Guard of SZ3 3.1: accepts finite values of at most 1/32 of the type's greatest number.
const char* guard_sz3(DType dtype, std::span<const std::byte> values, double absolute_bound);

/// Guard of SPERR: accepts finite values of at most 2^48 times the bound, and a bound of at most
/// 2^59.
const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound);

// --- The table of known plug-ins: their ids, abilities and settings.
//
// A plug-in takes its settings as an array of 32-bit words (cd_values) with a plug-in-specific
// layout. This table converts a field's settings and bound into that array. It refuses settings
// that the plug-in would drop silently or answer by ending the process. The layouts are those of
// the Python package hdf5plugin 7.1.0 and of the plug-ins' own headers. The table enters its codecs
// in the registry.

/// How to call a plug-in for one field.
struct PluginPlan {
  std::vector<std::uint32_t> client_data;  ///< Values of cd_values before set_local.
  bool lossy = false;
  bool shuffle_first = false;  ///< Insert HDF5's byte shuffle before it.
  std::string version_note;    ///< Appended to file name and class name; may be empty.
};

/// A plug-in of the registry, and how to call it.
struct KnownPlugin : CodecEntry {
  std::vector<std::string_view> hints = {};  ///< Parts of likely file names, in lower case.
  bool reentrant = true;                     ///< Its callback may run on many threads at once.
  bool lossless = true;                      ///< Lossless with any client data.
  std::uint64_t working_per_byte = 2;  ///< Bytes it allocates while encoding, per byte of input.
  /// Detects values that it does not survive; nullptr: it accepts all.
  PluginGuard guard = nullptr;
  /// Converts the settings; nullptr: known by id only.
  Result<PluginPlan> (*plan)(const CodecRequest& request, CodecSettings& settings,
                             const PluginLibrary& library) = nullptr;
};

/// Find a plug-in by codec name, or by id; nullptr if it is unknown.
const KnownPlugin* find_known_plugin(std::string_view name);
const KnownPlugin* find_known_plugin(std::uint32_t filter_id);

/// True if these client data make a plug-in drop bits that is lossless with other client data.
bool drops_bits(const KnownPlugin& known, const std::vector<std::uint32_t>& client_data);

/// Make the plan for "id=NUMBER" with the setting cd. @param known  the table row of that id, or
/// nullptr
/// @error invalid_argument  words to which this plug-in is known to respond by ending the process
Result<PluginPlan> plan_by_id(const CodecRequest& request, CodecSettings& settings,
                              const PluginLibrary& library, const KnownPlugin* known);

}  // namespace tailrace
