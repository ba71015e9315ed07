// Workspace: areas that grow, zstd's contexts, and detection of instruction sets.

#include "trz/workspace.hpp"

#include <zstd.h>

#include <cstdlib>

#include "trz/base/large_block.hpp"
#include "trz/exact/decimals.hpp"
#include "trz/trz.hpp"

// g++ defines a macro, clang has a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRZ_WITH_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TRZ_WITH_ADDRESS_SANITIZER 1
#endif
#if defined(TRZ_WITH_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace tailrace::trz {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSlackBytes = 64;

/// Under the address sanitizer, poison everything past the requested bytes and their slack,
/// although the area may be longer.
void* limited_to(void* begin, [[maybe_unused]] std::size_t n_bytes,
                 [[maybe_unused]] std::size_t n_held) {
#if defined(TRZ_WITH_ADDRESS_SANITIZER)
  if (begin != nullptr) {
    auto* bytes = static_cast<char*>(begin);
    __asan_unpoison_memory_region(bytes, n_held + kSlackBytes);
    __asan_poison_memory_region(bytes + n_bytes + kSlackBytes, n_held - n_bytes);
  }
#endif
  return begin;
}
}  // namespace

Workspace::~Workspace() {
  for (const Area& area : areas_) std::free(area.begin);
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(zstd_compressor_));
  ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(zstd_decompressor_));
}

void* Workspace::bytes_of(Slot slot, std::size_t n_bytes) {
  Area& area = areas_[static_cast<std::size_t>(slot)];
  if (area.begin != nullptr && n_bytes <= area.n_bytes) {
    return limited_to(area.begin, n_bytes, area.n_bytes);
  }
  if (n_bytes > SIZE_MAX - 4 * kAlignment) return nullptr;
  // Reallocations add a quarter, so that chunks of slowly growing size do not allocate each time.
  const std::size_t wanted = area.begin == nullptr ? n_bytes : n_bytes + n_bytes / 4;
  const std::size_t rounded = (wanted + kSlackBytes + kAlignment - 1) / kAlignment * kAlignment;
  std::free(area.begin);
  area.begin = allocate_block(rounded, kAlignment);
  area.n_bytes = area.begin == nullptr ? 0 : rounded - kSlackBytes;
  return limited_to(area.begin, n_bytes, area.n_bytes);
}

std::size_t Workspace::held_bytes() const {
  std::size_t total = 0;
  for (const Area& area : areas_) total += area.n_bytes;
  return total;
}

void* Workspace::zstd_compressor() {
  if (zstd_compressor_ == nullptr) zstd_compressor_ = ZSTD_createCCtx();
  return zstd_compressor_;
}

void* Workspace::zstd_decompressor() {
  if (zstd_decompressor_ == nullptr) zstd_decompressor_ = ZSTD_createDCtx();
  return zstd_decompressor_;
}

// --- Instruction sets of this machine.

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

std::size_t working_bytes_max(std::size_t n_bytes, const ChunkType& type,
                              const Settings& settings) {
  // Measured: up to 2 n_bytes; 3.4 if preset ratio makes a vocabulary; 5.7 if exact coding tries
  // zstd on long stretches. Pointwise: 6.6, with two copies of the transformed values, in f64 for
  // f32 under tight bounds. Fitted interpolation in addition to the earlier attempts: 5.4. Coarse
  // views along one axis: 2.6 copies of their values, and half a chunk of their bytes. Bit planes:
  // the coarser values, their bytes, and over one byte per value.
  // Floats without a bound, as decimals or not: 5.7; with preset ratio 6.8; with preset max, which
  // fits the integers, 11.7.
  const bool fitted = settings.preset == Preset::max && type.kind == BoundKind::absolute;
  const bool nested = settings.coarse_views > 0 && type.kind == BoundKind::absolute;
  const bool refined = settings.bit_planes > 0 && type.kind == BoundKind::absolute;
  std::size_t n_copies = 3;
  if (tries_decimals(type, settings.preset)) {
    n_copies = settings.preset == Preset::max ? 12 : settings.preset == Preset::ratio ? 7 : 6;
  } else if (type.kind == BoundKind::pointwise) {
    n_copies = 7;
  } else if (fitted) {
    n_copies = 6;
  }
  return (n_copies + (nested || refined ? 3 : 0)) * n_bytes + (std::size_t{1} << 20);
}

}  // namespace tailrace::trz
