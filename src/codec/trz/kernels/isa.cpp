// Which instruction sets this machine has.

#include "codec/trz/kernels/isa.hpp"

namespace tailrace::trz {

bool isa_supported(Isa isa) {
  if (isa == Isa::plain) return true;
#if TRZ_X86
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                        __builtin_cpu_supports("popcnt") != 0;
  // Every machine with BMI2 and AVX2 has LZCNT, which older compilers cannot ask for by name.
  if (isa == Isa::avx2) return has_avx2;
  return has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512vbmi2") != 0 &&
         __builtin_cpu_supports("avx512bitalg") != 0 &&
         __builtin_cpu_supports("avx512vpopcntdq") != 0 &&
         __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("gfni") != 0;
#else
  return false;
#endif
}

Isa best_isa() {
  static const Isa best = isa_supported(Isa::avx512) ? Isa::avx512
                          : isa_supported(Isa::avx2) ? Isa::avx2
                                                     : Isa::plain;
  return best;
}

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::plain: return "plain";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

}  // namespace tailrace::trz
