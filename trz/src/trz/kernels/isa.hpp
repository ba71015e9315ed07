// Instruction sets: each kernel has one source, compiled once per set and selected at run time.
//
// A file named *_kernels.cpp is compiled with TRZ_ISA = plain, avx2 and avx512. Machines other than
// x86-64 have only plain, from which the compiler makes NEON on arm64. All builds must give the
// same bytes and the same values. Kernels therefore use integer arithmetic, or IEEE operations in
// one fixed order with -ffp-contract=off, and never cast a float that may not fit. Kernel files
// include only <cstdint>, <cstddef>, <cstring>, <immintrin.h> and headers of this folder that allow
// it. All their functions are in an anonymous namespace. Otherwise the linker could select an
// inline function that was compiled for AVX-512 as the only copy for all code.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define TRZ_X86 1
#else
#define TRZ_X86 0
#endif

namespace tailrace::trz {

/// Instruction set; avx512 means F, BW, DQ, VL, VBMI and VBMI2 (Ice Lake, Zen 4).
enum class Isa : std::uint8_t { plain, avx2, avx512 };

/// The widest instruction set that this machine supports. Not collective. Thread-safe.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

}  // namespace tailrace::trz

/// Entry of a kernel table that only encoders call. It is nullptr in a build that only decodes
/// (scripts/build-javascript), so that the linker drops the function.
#if defined(TRZ_DECODES_ONLY)
#define TRZ_ENCODES(...) nullptr
#else
#define TRZ_ENCODES(...) __VA_ARGS__
#endif

/// Declare the tables of one topic's kernels for every instruction set, and `accessor(isa)`.
#if TRZ_X86
#define TRZ_DECLARE_KERNELS(Table, accessor)             \
  namespace plain {                                      \
  extern const Table accessor##_table;                   \
  }                                                      \
  namespace avx2 {                                       \
  extern const Table accessor##_table;                   \
  }                                                      \
  namespace avx512 {                                     \
  extern const Table accessor##_table;                   \
  }                                                      \
  inline const Table& accessor(Isa isa) {                \
    return isa == Isa::avx512 ? avx512::accessor##_table \
           : isa == Isa::avx2 ? avx2::accessor##_table   \
                              : plain::accessor##_table; \
  }
#else
#define TRZ_DECLARE_KERNELS(Table, accessor) \
  namespace plain {                          \
  extern const Table accessor##_table;       \
  }                                          \
  inline const Table& accessor(Isa) { return plain::accessor##_table; }
#endif
