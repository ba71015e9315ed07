// Values that would make a lossy plug-in hang or crash, found before it sees them.
//
// Measured on the plug-ins of hdf5plugin 7.1.0, chunks of 4096 values: SZ3 3.1 never returns from a
// chunk that holds a single NaN (or crashes on it), takes seconds to for ever with Inf and with f32
// values from 3e37 on, where its predictions overflow, and copes with 9.97e36, netCDF's fill value.
// SPERR crashes on NaN, on Inf, on values some 2^53 times the bound, and under bounds from 1e19 on
// (1e18 is well; a bound of 1/100 of a range with a fill value of 1e34 is not). ZFP survives
// everything and loses such values silently, which is the verifier's business. A chunk that is
// refused here can still be stored raw.

#pragma once

#include <span>

#include "core/dtype.hpp"

namespace tailrace {

/// Why the plug-in must not be given these values; nullptr if it may. Thread-safe. Cost: one pass.
using PluginGuard = const char* (*)(DType dtype, std::span<const std::byte> values,
                                    double absolute_bound);

/// SZ3 3.1: finite values of at most 1/32 of the greatest number of the type.
const char* guard_sz3(DType dtype, std::span<const std::byte> values, double absolute_bound);

/// SPERR: finite values of at most 2^48 times the bound, and a bound of at most 2^59.
const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound);

}  // namespace tailrace
