// Instruction sets: one source of each kernel, compiled once per set, chosen when it runs.
//
// A file named *_kernels.cpp is compiled with TRZ_ISA = plain, avx2 and avx512 (plain alone where
// the machine is no x86-64; there it is what the compiler makes of it, NEON on arm64). All builds
// must give the same bytes and the same values: integer arithmetic, or IEEE operations in one
// fixed order with -ffp-contract=off, and never a cast of a float that may not fit. Kernel files
// include nothing but <cstdint>, <cstddef>, <cstring>, <immintrin.h> and headers of this folder
// that say so, and keep every function in an anonymous namespace: an inline function of a standard
// header, compiled for AVX-512, could otherwise be the copy that the linker keeps for everybody.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define TRZ_X86 1
#else
#define TRZ_X86 0
#endif

namespace tailrace::trz {

/// avx512 means what Ice Lake and Zen 4 have: F, BW, DQ, VL, VBMI, VBMI2.
enum class Isa : std::uint8_t { plain, avx2, avx512 };

/// The widest instruction set of this machine. Not collective. Thread-safe.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

}  // namespace tailrace::trz

/// An entry of a table of functions that encoders alone call: nullptr in a build that only decodes
/// (scripts/build-javascript), so that the linker leaves the function out.
#if defined(TRZ_DECODES_ONLY)
#define TRZ_ENCODES(...) nullptr
#else
#define TRZ_ENCODES(...) __VA_ARGS__
#endif

/// Declare one topic's table of functions for every instruction set, and `accessor(isa)`.
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
