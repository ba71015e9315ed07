// Filters of our own codecs in datasets that exist, without any plug-in: readers and concatenations
// decode and encode with them directly, on all threads.

#pragma once

#include <memory>

#include "core/filter_pipeline.hpp"

namespace tailrace {

/// The stage that a dataset's header describes, if the filter is xor and its client data are those
/// of chunks of `chunk_bytes`; null otherwise, and the plug-in may say why. Lossless, and safe on
/// every input. Decodes to chunk_bytes whatever length it is told. Not collective. Thread-safe.
std::unique_ptr<FilterStage> make_own_stage(const FilterSpec& stored, std::uint64_t chunk_bytes);

}  // namespace tailrace
