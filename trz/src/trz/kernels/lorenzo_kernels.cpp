// Lorenzo kernels: the loops of lorenzo_kernels.hpp, compiled once per instruction set.
//
// The lattice loops are plain C++ that the compiler vectorises. Differences and sums along a row
// depend on the previous value. The AVX-512 code keeps it in a register; the plain code uses a
// short buffer. The order of the floating-point operations is part of the format.

#include "trz/kernels/lorenzo_kernels.hpp"

#if defined(__AVX2__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC warns about lanes that its own header leaves undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

// --- lattice -----------------------------------------------------------------------------------

inline std::int32_t rounded(float t) {
  return static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, t + kRoundF32) -
                                   __builtin_bit_cast(std::uint32_t, kRoundF32));
}
inline std::int32_t rounded(double t) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, t + kRoundF64)));
}

/// Parameters to quantise one value. Without a fill value, `fill` is NaN, which equals no value.
template <class T>
struct Quantiser {
  T offset, inverse_step, step, bound, fill;

  Quantiser(const Lattice<T>& lattice, const T* fill_value)
      : offset(lattice.offset),
        inverse_step(lattice.inverse_step),
        step(lattice.step),
        bound(lattice.bound),
        fill(fill_value == nullptr ? static_cast<T>(__builtin_nanf("")) : *fill_value) {}

  /// Quantise a value. Returns 1 if it fails, else 0.
  std::int32_t operator()(T value, std::int32_t& q) const {
    q = rounded((value - offset) * inverse_step);
    const T restored = offset + static_cast<T>(q) * step;
    const T error = value - restored;
    const std::int32_t good = (error < bound) & (error > -bound) & (value != fill);
    return good ^ 1;
  }
};

template <class T>
bool quantise(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
              std::int32_t* __restrict q) {
  const Quantiser<T> quantiser(lattice, fill);
  std::int32_t failed = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t code;
    failed |= quantiser(values[i], code);
    q[i] = code;
  }
  return failed == 0;
}

template <class T>
void quantise_careful(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                      std::int32_t* __restrict q, std::uint64_t* __restrict failed) {
  const Quantiser<T> quantiser(lattice, fill);
  for (std::size_t begin = 0; begin < n; begin += 64) {
    const std::size_t n_here = n - begin < 64 ? n - begin : 64;
    std::uint8_t flags[64] = {};
    for (std::size_t i = 0; i < n_here; ++i) {
      std::int32_t code;
      flags[i] = static_cast<std::uint8_t>(quantiser(values[begin + i], code));
      q[begin + i] = code;
    }
    // Eight flags at a time: the product moves flag k to bit 56 + k.
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint64_t eight = 0;
      for (std::size_t b = 0; b < 8; ++b) {
        eight |= static_cast<std::uint64_t>(flags[8 * k + b]) << (8 * b);
      }
      word |= ((eight * 0x0102040810204080U) >> 56) << (8 * k);
    }
    failed[begin / 64] = word;
  }
}

template <class T>
void restore(const std::int32_t* q, std::size_t n, const Lattice<T>& lattice,
             T* __restrict values) {
  const T offset = lattice.offset;
  const T step = lattice.step;
  for (std::size_t i = 0; i < n; ++i) values[i] = offset + static_cast<T>(q[i]) * step;
}

// --- differences -------------------------------------------------------------------------------

template <class Word>
struct Unsigned;
template <>
struct Unsigned<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Unsigned<std::int64_t> {
  using Type = std::uint64_t;
};

template <class Word>
inline Word minus(Word x, Word y) {
  using U = typename Unsigned<Word>::Type;
  return static_cast<Word>(static_cast<U>(x) - static_cast<U>(y));
}
template <class Word>
inline Word plus(Word x, Word y) {
  using U = typename Unsigned<Word>::Type;
  return static_cast<Word>(static_cast<U>(x) + static_cast<U>(y));
}

constexpr std::size_t kBlock = 512;

/// Compute the codes of n values of one row. `carry` is the last difference of the previous piece,
/// 0 at the start of a row.
template <int kOrder, class Word>
inline void difference_row(const Word* q, std::size_t row, Word* __restrict plane,
                           Word* __restrict volume, std::size_t n, Word& carry,
                           Word* __restrict codes) {
  Word differences[kBlock + 1];
  differences[0] = carry;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t n_here = n - begin < kBlock ? n - begin : kBlock;
    for (std::size_t k = 0; k < n_here; ++k) {
      const std::size_t i = begin + k;
      Word s = q[i];
      if constexpr (kOrder >= 2) s = minus(s, *(q + i - row));
      if constexpr (kOrder >= 3) {
        const Word old = plane[i];
        plane[i] = s;
        s = minus(s, old);
      }
      if constexpr (kOrder >= 4) {
        const Word old = volume[i];
        volume[i] = s;
        s = minus(s, old);
      }
      differences[k + 1] = s;
    }
    for (std::size_t k = 0; k < n_here; ++k) {
      codes[begin + k] = minus(differences[k + 1], differences[k]);
    }
    differences[0] = differences[n_here];
  }
  carry = differences[0];
}

/// Compute sums[i] = total + codes[0] + ... + codes[i]; returns the last sum.
template <class Word>
inline Word running_sums(const Word* codes, std::size_t n, Word total, Word* sums) {
  for (std::size_t i = 0; i < n; ++i) {
    total = plus(total, codes[i]);
    sums[i] = total;
  }
  return total;
}

#if defined(__AVX2__) && !defined(__AVX512VBMI2__)

inline std::int32_t running_sums(const std::int32_t* codes, std::size_t n, std::int32_t total,
                                 std::int32_t* sums) {
  const __m256i last_of_low = _mm256_setr_epi32(3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i last = _mm256_set1_epi32(7);
  __m256i before = _mm256_set1_epi32(total);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));  // Sums within each half.
    const __m256i low = _mm256_permutevar8x32_epi32(x, last_of_low);
    x = _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), low, 0xF0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i), _mm256_add_epi32(x, before));
    before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(x, last));
  }
  total = _mm256_extract_epi32(before, 0);
  for (; i < n; ++i) {
    total = plus(total, codes[i]);
    sums[i] = total;
  }
  return total;
}

#endif

template <int kOrder, class Word>
inline void sum_row(Word* q, std::size_t row, Word* __restrict plane, Word* __restrict volume,
                    std::size_t n, Word& carry, const Word* __restrict codes) {
  Word sums[kBlock];
  Word total = carry;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t n_here = n - begin < kBlock ? n - begin : kBlock;
    total = running_sums(codes + begin, n_here, total, sums);
    // The row above ends at or before this part, so the two never overlap.
    const Word* above = q + begin - (kOrder >= 2 ? row : 0);
    Word* __restrict to = q + begin;
    for (std::size_t k = 0; k < n_here; ++k) {
      const std::size_t i = begin + k;
      Word s = sums[k];
      if constexpr (kOrder >= 4) volume[i] = s = plus(s, volume[i]);
      if constexpr (kOrder >= 3) plane[i] = s = plus(s, plane[i]);
      if constexpr (kOrder >= 2) s = plus(s, above[k]);
      to[k] = s;
    }
  }
  carry = total;
}

#if defined(__AVX512VBMI2__)

inline __mmask16 first_lanes(std::size_t n) {
  return n >= 16 ? __mmask16(0xFFFF) : static_cast<__mmask16>((1U << n) - 1U);
}

template <int kOrder>
inline void difference_row(const std::int32_t* q, std::size_t row, std::int32_t* plane,
                           std::int32_t* volume, std::size_t n, std::int32_t& carry,
                           std::int32_t* codes) {
  __m512i before = _mm512_set1_epi32(carry);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    __m512i s = _mm512_maskz_loadu_epi32(mask, q + i);
    if constexpr (kOrder >= 2) {
      s = _mm512_sub_epi32(s, _mm512_maskz_loadu_epi32(mask, q + i - row));
    }
    if constexpr (kOrder >= 3) {
      const __m512i old = _mm512_maskz_loadu_epi32(mask, plane + i);
      _mm512_mask_storeu_epi32(plane + i, mask, s);
      s = _mm512_sub_epi32(s, old);
    }
    if constexpr (kOrder >= 4) {
      const __m512i old = _mm512_maskz_loadu_epi32(mask, volume + i);
      _mm512_mask_storeu_epi32(volume + i, mask, s);
      s = _mm512_sub_epi32(s, old);
    }
    const __m512i left = _mm512_alignr_epi32(s, before, 15);
    _mm512_mask_storeu_epi32(codes + i, mask, _mm512_sub_epi32(s, left));
    before = s;
  }
  const __m512i last = _mm512_set1_epi32(static_cast<std::int32_t>((n - 1) % 16));
  carry = _mm_cvtsi128_si32(_mm512_castsi512_si128(_mm512_permutexvar_epi32(last, before)));
}

/// Running sums of 16 lanes.
inline __m512i prefix_sums(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

template <int kOrder>
inline void sum_row(std::int32_t* q, std::size_t row, std::int32_t* plane, std::int32_t* volume,
                    std::size_t n, std::int32_t& carry, const std::int32_t* codes) {
  const __m512i all_last = _mm512_set1_epi32(15);
  __m512i total = _mm512_set1_epi32(carry);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512i sums = prefix_sums(_mm512_maskz_loadu_epi32(mask, codes + i));
    __m512i s = _mm512_add_epi32(sums, total);
    // Lanes after the end are zero, so lane 15 is the total in the last vector, too.
    total = _mm512_add_epi32(total, _mm512_permutexvar_epi32(all_last, sums));
    if constexpr (kOrder >= 4) {
      s = _mm512_add_epi32(s, _mm512_maskz_loadu_epi32(mask, volume + i));
      _mm512_mask_storeu_epi32(volume + i, mask, s);
    }
    if constexpr (kOrder >= 3) {
      s = _mm512_add_epi32(s, _mm512_maskz_loadu_epi32(mask, plane + i));
      _mm512_mask_storeu_epi32(plane + i, mask, s);
    }
    if constexpr (kOrder >= 2) {
      s = _mm512_add_epi32(s, _mm512_maskz_loadu_epi32(mask, q + i - row));
    }
    _mm512_mask_storeu_epi32(q + i, mask, s);
  }
  carry = _mm_cvtsi128_si32(_mm512_castsi512_si128(total));
}

/// Sum complete rows of at most 16 values. Each row is one vector, and the row above stays in a
/// register: a load from memory would stall on the preceding store.
template <int kOrder>
inline void sum_short_rows(std::int32_t* q, std::size_t row, std::int32_t* plane,
                           std::int32_t* volume, std::size_t n_rows, const std::int32_t* codes) {
  const __mmask16 mask = first_lanes(row);
  __m512i above = _mm512_setzero_si512();
  if constexpr (kOrder >= 2) above = _mm512_maskz_loadu_epi32(mask, q - row);
  for (std::size_t i = 0; i < n_rows * row; i += row) {
    __m512i s = prefix_sums(_mm512_maskz_loadu_epi32(mask, codes + i));
    if constexpr (kOrder >= 4) {
      s = _mm512_add_epi32(s, _mm512_maskz_loadu_epi32(mask, volume + i));
      _mm512_mask_storeu_epi32(volume + i, mask, s);
    }
    if constexpr (kOrder >= 3) {
      s = _mm512_add_epi32(s, _mm512_maskz_loadu_epi32(mask, plane + i));
      _mm512_mask_storeu_epi32(plane + i, mask, s);
    }
    if constexpr (kOrder >= 2) {
      s = _mm512_add_epi32(s, above);
      above = s;
    }
    _mm512_mask_storeu_epi32(q + i, mask, s);
  }
}

#endif

/// Call each(begin, n, carry) for every row or part of a row of a piece.
template <class Word, class Each>
inline void for_rows(PieceOf<Word>& piece, Each&& each) {
  std::size_t at = piece.at;
  Word carry = piece.carry;
  for (std::size_t begin = 0; begin < piece.n;) {
    std::size_t n = piece.row - at;
    if (n > piece.n - begin) n = piece.n - begin;
    if (at == 0) carry = 0;
    each(begin, n, carry);
    begin += n;
    at = 0;
  }
  piece.carry = carry;
}

template <int kOrder, class Word>
void difference_piece(PieceOf<Word>& piece, Word* codes) {
  for_rows(piece, [&](std::size_t begin, std::size_t n, Word& carry) {
    difference_row<kOrder>(piece.q + begin, piece.row, piece.plane + (kOrder >= 3 ? begin : 0),
                           piece.volume + (kOrder >= 4 ? begin : 0), n, carry, codes + begin);
  });
}

template <int kOrder, class Word>
void sum_piece(PieceOf<Word>& piece, const Word* codes) {
  for_rows(piece, [&](std::size_t begin, std::size_t n, Word& carry) {
    sum_row<kOrder>(piece.q + begin, piece.row, piece.plane + (kOrder >= 3 ? begin : 0),
                    piece.volume + (kOrder >= 4 ? begin : 0), n, carry, codes + begin);
  });
}

#if defined(__AVX512VBMI2__)
/// Sum a piece of short rows: the complete rows in its middle, and the parts of rows at its ends.
template <int kOrder>
void sum_piece(LorenzoPiece& piece, const std::int32_t* codes) {
  const std::size_t n_first = piece.at == 0 ? 0 : piece.row - piece.at;
  if (piece.row > 16 || n_first > piece.n) {
    sum_piece<kOrder, std::int32_t>(piece, codes);
    return;
  }
  const auto part = [&](std::size_t begin, std::size_t n, std::size_t at) {
    if (n == 0) return;
    if (at == 0) piece.carry = 0;
    sum_row<kOrder>(piece.q + begin, piece.row, piece.plane + (kOrder >= 3 ? begin : 0),
                    piece.volume + (kOrder >= 4 ? begin : 0), n, piece.carry, codes + begin);
  };
  const std::size_t n_rows = (piece.n - n_first) / piece.row;
  const std::size_t n_whole = n_first + n_rows * piece.row;
  part(0, n_first, piece.at);
  sum_short_rows<kOrder>(piece.q + n_first, piece.row, piece.plane + (kOrder >= 3 ? n_first : 0),
                         piece.volume + (kOrder >= 4 ? n_first : 0), n_rows, codes + n_first);
  part(n_whole, piece.n - n_whole, 0);
}
#endif

template <class Word>
void difference(PieceOf<Word>& piece, Word* codes) {
  switch (piece.order) {
    case 0: __builtin_memcpy(codes, piece.q, piece.n * sizeof(Word)); break;
    case 1: difference_piece<1>(piece, codes); break;
    case 2: difference_piece<2>(piece, codes); break;
    case 3: difference_piece<3>(piece, codes); break;
    default: difference_piece<4>(piece, codes); break;
  }
}

template <class Word>
void sum(PieceOf<Word>& piece, const Word* codes) {
  switch (piece.order) {
    case 0: __builtin_memcpy(piece.q, codes, piece.n * sizeof(Word)); break;
    case 1: sum_piece<1>(piece, codes); break;
    case 2: sum_piece<2>(piece, codes); break;
    case 3: sum_piece<3>(piece, codes); break;
    default: sum_piece<4>(piece, codes); break;
  }
}

void difference_wide(WidePiece& piece, std::int32_t* __restrict low,
                     std::int32_t* __restrict high) {
  std::int64_t codes[kPieceValues];
  difference(piece, codes);
  for (std::size_t i = 0; i < piece.n; ++i) {
    const auto code = static_cast<std::uint64_t>(codes[i]);
    low[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(code));
    // A negative low half needs a high half larger by 1; adding 2^31 first carries the 1 over.
    high[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>((code + 0x80000000U) >> 32));
  }
}

void sum_wide(WidePiece& piece, const std::int32_t* __restrict low,
              const std::int32_t* __restrict high) {
  std::int64_t codes[kPieceValues];
  for (std::size_t i = 0; i < piece.n; ++i) {
    const auto above = static_cast<std::uint64_t>(static_cast<std::uint32_t>(high[i])) << 32;
    const auto below = static_cast<std::uint64_t>(static_cast<std::int64_t>(low[i]));
    codes[i] = static_cast<std::int64_t>(above + below);
  }
  sum(piece, codes);
}

}  // namespace

extern const LorenzoKernels lorenzo_kernels_table;
const LorenzoKernels lorenzo_kernels_table = {
    {TRZ_ENCODES(quantise<float>), TRZ_ENCODES(quantise_careful<float>), restore<float>},
    {TRZ_ENCODES(quantise<double>), TRZ_ENCODES(quantise_careful<double>), restore<double>},
    TRZ_ENCODES(difference<std::int32_t>),
    sum<std::int32_t>,
    TRZ_ENCODES(difference_wide),
    sum_wide};

}  // namespace tailrace::trz::TRZ_ISA
