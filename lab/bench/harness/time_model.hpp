// Prediction of a row by the time model: encode time from the profile's curve, write time from the
// limit, with overlap (model/dump_time.hpp, after Liang et al. 2019, eq. 7-10).

#pragma once

#include "measure.hpp"
#include "model/machine_profile.hpp"

namespace tailrace::bench {

/// Predicted seconds of a tailrace row, given the bytes that it wrote. 0 if the profile lacks the
/// codec or the storage's bandwidth is unknown. Not collective.
/// @param bytes_per_s  bandwidth of the storage for all ranks together.
double model_step_s(const BenchContext& context, const MachineProfile& profile, double bytes_per_s,
                    const Row& row);

}  // namespace tailrace::bench
