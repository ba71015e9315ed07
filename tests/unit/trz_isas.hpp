// The instruction sets of this machine; a test of trz's kernels runs once for each.

#pragma once

#include <vector>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) all.push_back(isa);
  }
  return all;
}

}  // namespace tailrace::trz
