// Exact kernels: the loops of exact_kernels.hpp, compiled once per instruction set.
//
// Plain loops, which the compiler vectorises; integers only.

#include "trz/kernels/exact_kernels.hpp"

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

template <class RawBits>
struct Float {
  using Raw = RawBits;
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

template <class Type>
constexpr WordKernels narrow() {
  return {TRZ_ENCODES(scan<Type>),
          TRZ_ENCODES(to_words<Type, std::int32_t>),
          from_words<Type, std::int32_t>,
          nullptr,
          nullptr,
          TRZ_ENCODES(find<Type>)};
}

template <class Type>
constexpr WordKernels wide() {
  return {TRZ_ENCODES(scan<Type>),        TRZ_ENCODES(to_words<Type, std::int32_t>),
          from_words<Type, std::int32_t>, TRZ_ENCODES(to_words<Type, std::int64_t>),
          from_words<Type, std::int64_t>, TRZ_ENCODES(find<Type>)};
}

}  // namespace

extern const ExactKernels exact_kernels_table;
const ExactKernels exact_kernels_table = {
    {narrow<Float<std::uint32_t>>(), wide<Float<std::uint64_t>>(),
     narrow<Plain<std::int8_t, std::uint32_t>>(), narrow<Plain<std::int16_t, std::uint32_t>>(),
     narrow<Plain<std::int32_t, std::uint32_t>>(), wide<Plain<std::int64_t, std::uint64_t>>(),
     narrow<Plain<std::uint8_t, std::uint32_t>>(), narrow<Plain<std::uint16_t, std::uint32_t>>(),
     narrow<Plain<std::uint32_t, std::uint32_t>>(), wide<Plain<std::uint64_t, std::uint64_t>>()}};

}  // namespace tailrace::trz::TRZ_ISA
