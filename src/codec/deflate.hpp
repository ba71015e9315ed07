// Deflate stages (HDF5 filter 1) for the codecs that end in one: deflate and portable.

#pragma once

#include <memory>
#include <vector>

#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// The stages [shuffle,] deflate as the settings level, shuffle and engine ask for them.
/// Shuffle is left out for elements of one byte, where it does nothing.
/// Errors are left in `settings`. Not collective. Thread-safe.
std::vector<std::unique_ptr<FilterStage>> make_deflate_stages(CodecSettings& settings, DType dtype);

}  // namespace tailrace
