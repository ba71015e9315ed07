// Cost of one chunk in the chunk index: rank 0's work, without any data.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace::bench {

struct IndexCost {
  std::string index;              ///< "fixed shape" or "growing".
  std::vector<double> insert_us;  ///< Microseconds per chunk, one value per repeat.
  double commit_us = 0;           ///< Commit time per chunk; last repeat.
  double metadata_bytes = 0;      ///< Metadata of the file, per chunk.

  double median_us() const;
};

/// Insert `n_chunks` chunk records, in order, into a new file on a storage that discards its bytes.
/// Not collective. Uses one CPU.
Result<std::vector<IndexCost>> measure_index_cost(std::uint64_t n_chunks, std::uint64_t n_repeats);

}  // namespace tailrace::bench
