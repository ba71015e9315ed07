// Exact kernels: the loops of exact_kernels.hpp, compiled once per instruction set.
//
// Plain loops, which the compiler vectorises. The predictions of floats are sums in one order.

#include "trz/kernels/exact_kernels.hpp"

#include <cstring>

namespace tailrace::trz::TRZ_ISA {
namespace {

/// Integer element type: Raw is the type of its bits, Word the unsigned type of modular arithmetic.
template <class RawBits, class ModularWord>
struct Plain {
  using Raw = RawBits;
  using Word = ModularWord;
  static Word ordered(Raw raw) { return static_cast<Word>(raw); }
  static Raw raw(Word ordered) { return static_cast<Raw>(ordered); }
};

template <class RawBits, class Value>
struct Float {
  using Raw = RawBits;
  using Number = Value;
  static constexpr Raw kInfinity =
      sizeof(Raw) == 4 ? static_cast<Raw>(0x7F800000U) : static_cast<Raw>(0x7FF0000000000000U);
  using Word = RawBits;
  static constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  static constexpr unsigned kSignShift = 8 * sizeof(Word) - 1;

  static Word ordered(Raw raw) {
    const Word negative = Word{0} - (raw >> kSignShift);  // All ones or zero.
    const Word magnitude = raw & ~kSign;
    const Word minus_zero = raw == kSign ? kSign : Word{0};
    return ((magnitude ^ negative) - negative) | minus_zero;
  }
  static Raw raw(Word ordered) {
    const Word negative = Word{0} - (ordered >> kSignShift);
    const Word magnitude = (ordered ^ negative) - negative;
    return (magnitude & ~kSign) | (ordered & kSign);
  }
};

template <class Word>
struct SignedOf;
template <>
struct SignedOf<std::uint32_t> {
  using Type = std::int32_t;
};
template <>
struct SignedOf<std::uint64_t> {
  using Type = std::int64_t;
};

template <class Type>
void scan(const void* values, std::size_t n, std::uint64_t origin, WordRange& range) {
  using Word = typename Type::Word;
  using Signed = typename SignedOf<Word>::Type;
  const auto* raw = static_cast<const typename Type::Raw*>(values);
  const Word from = static_cast<Word>(origin);
  Word ones = 0;
  Signed least = 0;
  Signed greatest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Word word = static_cast<Word>(Type::ordered(raw[i]) - from);
    const Signed difference = static_cast<Signed>(word);
    ones |= word;
    least = difference < least ? difference : least;
    greatest = difference > greatest ? difference : greatest;
  }
  range.ones |= ones;
  if (least < range.least) range.least = least;
  if (greatest > range.greatest) range.greatest = greatest;
}

template <class Type, class Out>
void to_words(const void* values, std::size_t n, const WordMap& map, Out* __restrict words) {
  using Word = typename Type::Word;
  using Signed = typename SignedOf<Word>::Type;
  const auto* raw = static_cast<const typename Type::Raw*>(values);
  const Word origin = static_cast<Word>(map.origin);
  if (map.factor == 1) {
    for (std::size_t i = 0; i < n; ++i) {
      words[i] = static_cast<Out>(Type::ordered(raw[i]) - origin);
    }
    return;
  }
  const Word inverse = static_cast<Word>(map.inverse);
  const unsigned shift = map.shift;
  for (std::size_t i = 0; i < n; ++i) {
    const auto difference = static_cast<Signed>(Type::ordered(raw[i]) - origin);
    words[i] = static_cast<Out>(static_cast<Word>(difference >> shift) * inverse);
  }
}

template <class Type, class In>
void from_words(const In* words, std::size_t n, const WordMap& map, void* values) {
  using Word = typename Type::Word;
  auto* __restrict raw = static_cast<typename Type::Raw*>(values);
  const Word origin = static_cast<Word>(map.origin);
  const Word factor = static_cast<Word>(map.factor);
  if (factor == 1) {
    for (std::size_t i = 0; i < n; ++i) {
      const Word word = static_cast<Word>(static_cast<typename SignedOf<Word>::Type>(words[i]));
      raw[i] = Type::raw(static_cast<Word>(origin + word));
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Word word = static_cast<Word>(static_cast<typename SignedOf<Word>::Type>(words[i]));
    raw[i] = Type::raw(static_cast<Word>(origin + word * factor));
  }
}

template <class Type>
bool find(const void* values, std::size_t n, std::uint64_t bits, std::uint64_t* marks) {
  using Raw = typename Type::Raw;
  const auto* raw = static_cast<const Raw*>(values);
  const Raw wanted = static_cast<Raw>(bits);
  std::int32_t any = 0;
  for (std::size_t i = 0; i < n; ++i) any |= raw[i] == wanted;
  if (any == 0) return false;
  for (std::size_t begin = 0; begin < n; begin += 64) {
    const std::size_t n_here = n - begin < 64 ? n - begin : 64;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < n_here; ++i) {
      word |= static_cast<std::uint64_t>(raw[begin + i] == wanted) << i;
    }
    marks[begin / 64] = word;
  }
  return true;
}

/// Sum of the neighbours of a value in other rows; p = (value before) + this. The order of the
/// operations is part of the format.
template <class Number>
Number from_rows(const Number* above, const Number* behind, const Number* behind_above,
                 std::size_t i) {
  return (above[i] - above[i - 1]) +
         ((behind[i] - behind[i - 1]) - (behind_above[i] - behind_above[i - 1]));
}

/// Like from_rows(), for the first value of a row.
template <class Number>
Number from_first(const Number* above, const Number* behind, const Number* behind_above) {
  const Number zero = 0;
  return (above[0] - zero) + ((behind[0] - zero) - (behind_above[0] - zero));
}

/// Integer of a prediction; that of +0 if it is not finite.
template <class Type>
typename Type::Word ordered_prediction(typename Type::Number p) {
  typename Type::Raw raw;
  std::memcpy(&raw, &p, sizeof raw);
  const bool finite = (raw & Type::kInfinity) != Type::kInfinity;
  return Type::ordered(finite ? raw : typename Type::Raw{0});
}

template <class Type>
void difference_floats(const void* values, const FloatRows& rows, std::size_t n, void* codes) {
  using Word = typename Type::Word;
  using Number = typename Type::Number;
  const auto* value = static_cast<const Number*>(values);
  const auto* raw = static_cast<const typename Type::Raw*>(values);
  const auto* above = static_cast<const Number*>(rows.above);
  const auto* behind = static_cast<const Number*>(rows.behind);
  const auto* behind_above = static_cast<const Number*>(rows.behind_above);
  auto* __restrict out = static_cast<Word*>(codes);
  if (n == 0) return;
  const Number first = Number{0} + from_first(above, behind, behind_above);
  out[0] = static_cast<Word>(Type::ordered(raw[0]) - ordered_prediction<Type>(first));
  for (std::size_t i = 1; i < n; ++i) {
    const Number p = value[i - 1] + from_rows(above, behind, behind_above, i);
    out[i] = static_cast<Word>(Type::ordered(raw[i]) - ordered_prediction<Type>(p));
  }
}

template <class Type>
void sum_floats(const void* codes, const FloatRows& rows, std::size_t n, void* values) {
  using Word = typename Type::Word;
  using Number = typename Type::Number;
  constexpr std::size_t n_part = 512;
  const auto* code = static_cast<const Word*>(codes);
  const auto* above = static_cast<const Number*>(rows.above);
  const auto* behind = static_cast<const Number*>(rows.behind);
  const auto* behind_above = static_cast<const Number*>(rows.behind_above);
  auto* to = static_cast<typename Type::Raw*>(values);
  Number before = 0;
  for (std::size_t begin = 0; begin < n; begin += n_part) {
    const std::size_t n_here = n - begin < n_part ? n - begin : n_part;
    Number others[n_part];
    others[0] = begin == 0 ? from_first(above, behind, behind_above)
                           : from_rows(above, behind, behind_above, begin);
    for (std::size_t i = 1; i < n_here; ++i) {
      others[i] = from_rows(above, behind, behind_above, begin + i);
    }
    // Each value waits for the one before it. Branches, which are predicted, wait less than masks.
    for (std::size_t i = 0; i < n_here; ++i) {
      const Number p = before + others[i];
      typename Type::Raw raw;
      std::memcpy(&raw, &p, sizeof raw);
      const Word added = code[begin + i];
      if (raw < Type::kInfinity && static_cast<Word>(raw + added) < Type::kSign) {
        raw = static_cast<Word>(raw + added);
      } else if (raw > Type::kSign && raw < (Type::kInfinity | Type::kSign) &&
                 static_cast<Word>(Type::kSign - raw + added) > Type::kSign) {
        raw = static_cast<Word>(raw - added);  // kSign - ((kSign - raw) + added)
      } else {
        raw = Type::raw(static_cast<Word>(ordered_prediction<Type>(p) + added));
      }
      to[begin + i] = raw;
      std::memcpy(&before, &raw, sizeof before);
    }
  }
}

template <class Type>
constexpr WordKernels narrow() {
  return {TRZ_ENCODES(scan<Type>),
          TRZ_ENCODES(to_words<Type, std::int32_t>),
          from_words<Type, std::int32_t>,
          nullptr,
          nullptr,
          TRZ_ENCODES(find<Type>),
          nullptr,
          nullptr};
}

template <class Type>
constexpr WordKernels wide() {
  return {TRZ_ENCODES(scan<Type>),
          TRZ_ENCODES(to_words<Type, std::int32_t>),
          from_words<Type, std::int32_t>,
          TRZ_ENCODES(to_words<Type, std::int64_t>),
          from_words<Type, std::int64_t>,
          TRZ_ENCODES(find<Type>),
          nullptr,
          nullptr};
}

template <class Type>
constexpr WordKernels floating(WordKernels kernels) {
  kernels.difference_floats = TRZ_ENCODES(difference_floats<Type>);
  kernels.sum_floats = sum_floats<Type>;
  return kernels;
}

using Float32 = Float<std::uint32_t, float>;
using Float64 = Float<std::uint64_t, double>;

}  // namespace

extern const ExactKernels exact_kernels_table;
const ExactKernels exact_kernels_table = {
    {floating<Float32>(narrow<Float32>()), floating<Float64>(wide<Float64>()),
     narrow<Plain<std::int8_t, std::uint32_t>>(), narrow<Plain<std::int16_t, std::uint32_t>>(),
     narrow<Plain<std::int32_t, std::uint32_t>>(), wide<Plain<std::int64_t, std::uint64_t>>(),
     narrow<Plain<std::uint8_t, std::uint32_t>>(), narrow<Plain<std::uint16_t, std::uint32_t>>(),
     narrow<Plain<std::uint32_t, std::uint32_t>>(), wide<Plain<std::uint64_t, std::uint64_t>>()}};

}  // namespace tailrace::trz::TRZ_ISA
