// FloatEnvironment: round to nearest, denormals kept, for as long as it lives.
//
// A program linked with -ffast-math, or one that sets these bits itself, would otherwise decode
// other values than the encoder checked. The caller's settings are restored.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tailrace::trz {

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
