// SZ3, compiled from its source behind three C functions that lab/bench/papers/compare_sz3.py calls
// by ctypes.
//
// lab/bench/papers/sz3_source.py builds this file with the source that it downloads; the project's
// own build does not. The header-only SZ3 is compiled as its users do, but with -ffp-contract=off:
// with fused operations it breaks its bound.

#include <SZ3/api/sz.hpp>
#include <exception>

namespace {

template <class T>
long encode(const SZ3::Config& config, const void* values, void* out, std::size_t capacity) {
  return static_cast<long>(
      SZ_compress<T>(config, static_cast<const T*>(values), static_cast<char*>(out), capacity));
}

template <class T>
void decode(const void* encoded, std::size_t n_bytes, void* values) {
  SZ3::Config config;
  T* out = static_cast<T*>(values);
  SZ_decompress<T>(config, static_cast<const char*>(encoded), n_bytes, out);
}

}  // namespace

extern "C" {

const char* sz3_version() { return SZ3_VER; }

/// Encode f32 or f64 under an absolute bound. `lorenzo`: Lorenzo and regression instead of SZ3's
/// default. @returns bytes written; < 0 if SZ3 fails or `capacity` is too small.
long sz3_encode(int is_f64, const std::size_t* extents, int rank, double bound, int lorenzo,
                const void* values, void* out, std::size_t capacity) try {
  SZ3::Config config;
  config.setDims(extents, extents + rank);
  config.errorBoundMode = SZ3::EB_ABS;
  config.absErrorBound = bound;
  config.cmprAlgo = lorenzo ? SZ3::ALGO_LORENZO_REG : SZ3::ALGO_INTERP_LORENZO;
  return is_f64 ? encode<double>(config, values, out, capacity)
                : encode<float>(config, values, out, capacity);
} catch (const std::exception&) {
  return -1;
}

/// Decode. @returns 0; < 0 if SZ3 fails.
int sz3_decode(int is_f64, const void* encoded, std::size_t n_bytes, void* values) try {
  is_f64 ? decode<double>(encoded, n_bytes, values) : decode<float>(encoded, n_bytes, values);
  return 0;
} catch (const std::exception&) {
  return -1;
}
}
