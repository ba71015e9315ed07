// Workspace: the memory that encoding and decoding need in addition to input and output.
//
// Each thread has one and reuses it for all chunks. Areas only grow, so in the steady state no call
// allocates. Areas are 64-byte aligned, have 64 bytes of slack at the end, and are not cleared.
// Large areas are reserved address space: the system allocates a page when it is first touched.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tailrace::trz {

/// Purpose of an area. Two simultaneous users must have two slots.
enum class Slot : std::uint8_t {
  codes,        ///< CodeWriter's or CodeReader's buffer.
  class_bytes,  ///< Streams of the classes.
  planes,
  exceptions,
  widths,      ///< Widths of the packed form; class ids of the grouped one.
  pyramid,     ///< Original values of the coarser levels (interpolation).
  coarse,      ///< Reconstructed values of the coarser levels.
  rows,        ///< A few rows or planes of a predictor.
  patch_bits,  ///< One bit per value: stored exactly.
  patch_values,
  transform,         ///< Intermediate bytes: positions of patches, integers of other widths.
  transform_values,  ///< Transformed values (pw_rel).
  signs,             ///< Sign bits of transformed values.
  section,           ///< A section before or after its entropy coder.
  compressor,        ///< Memory of zstd's contexts.
  sample,
  trial,         ///< A second encoding, for comparison.
  vocabulary,    ///< The words of a chunk.
  ranks,         ///< Each value's index into the vocabulary; before that, its code.
  nested,        ///< Values of inner chunks, integers of decimals.
  nested_bytes,  ///< The next inner chunk, encoded.
  joined,        ///< Values of joined chunks.
  refined,       ///< Bit planes.
  modelled,      ///< An exact chunk of form modelled, for comparison.
  exact,         ///< The best exact chunk so far.
  dictionary,    ///< An exact chunk of form dictionary, for comparison.
  n_slots
};

class Workspace {
 public:
  explicit Workspace(Isa isa = best_isa()) : isa_(isa) {}
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  Isa isa() const { return isa_; }

  /// Return an area of at least n entries of T; contents undefined. Nullptr if out of memory: the
  /// codec then returns out_of_memory. Valid until the next area() of the same slot.
  template <class T>
  T* area(Slot slot, std::size_t n) {
    return static_cast<T*>(bytes_of(slot, n * sizeof(T)));
  }

  /// Bytes allocated in all slots together.
  std::size_t held_bytes() const;

  /// zstd's contexts (ZSTD_CCtx*, ZSTD_DCtx*), created at first use; nullptr if out of memory.
  void* zstd_compressor();
  void* zstd_decompressor();

 private:
  struct Area {
    void* begin = nullptr;
    std::size_t n_bytes = 0;
  };
  void* bytes_of(Slot slot, std::size_t n_bytes);

  Isa isa_;
  std::array<Area, static_cast<std::size_t>(Slot::n_slots)> areas_{};
  void* zstd_compressor_ = nullptr;
  void* zstd_decompressor_ = nullptr;
};

// --- FloatEnvironment: rounds to nearest and preserves denormals during its lifetime.
//
// A program linked with -ffast-math, or one that sets these bits itself, would otherwise decode
// other values than the encoder checked. The destructor restores the caller's settings.

class FloatEnvironment {
 public:
#if defined(__x86_64__)
  FloatEnvironment() : held_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~FloatEnvironment() { _mm_setcsr(held_); }
#elif defined(__aarch64__)
  FloatEnvironment() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(held_));
    __asm__ volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FloatEnvironment() { __asm__ volatile("msr fpcr, %0" : : "r"(held_)); }
#else
  FloatEnvironment() = default;
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned held_ = 0;
#else
  std::uint64_t held_ = 0;
#endif
};

}  // namespace tailrace::trz
