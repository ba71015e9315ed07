// What --slab means for one dataset.

#pragma once

#include <string>

#include "core/slab.hpp"
#include "core/status.hpp"
#include "read/read.hpp"

namespace tailrace::cli {

/// The slab of a dataset that "0:10,5:20:2" means: Python's slices, without negative numbers, one
/// per dimension; empty: all of it. @error invalid_argument, bad_coverage
Result<Slab> slab_of(const StoredDataset& dataset, const std::string& text);

/// How many dimensions a text is for. @error invalid_argument
Result<std::size_t> n_ranges(const std::string& text);

}  // namespace tailrace::cli
