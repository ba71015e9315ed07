// What the time model says of a row: encode time by the profile's curve, write time by the limit,
// both at once (model/dump_time.hpp, after Liang et al. 2019, eq. 7-10).

#pragma once

#include "measure.hpp"
#include "model/machine_profile.hpp"

namespace tailrace::bench {

/// Seconds expected of a tailrace row, given the bytes that it wrote; 0 where the profile does not
/// know its codec, or the storage's bandwidth is not known. Not collective.
/// @param bytes_per_s  what the storage takes from all ranks together.
double model_step_s(const BenchContext& context, const MachineProfile& profile, double bytes_per_s,
                    const Row& row);

}  // namespace tailrace::bench
