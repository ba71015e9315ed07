// Packing kernels: convert a block's words to counts and bits, and back.

#include "xor/xor_widths.hpp"

namespace tailrace::neighbour_xor::XOR_BUILD {
namespace {

constexpr std::size_t kGroups = kBlockValues / kGroupValues;
constexpr std::size_t kHeadBytes = 2;  ///< Form and shift.
constexpr unsigned kNarrowRange = 15;  ///< Greatest minus least width of form narrow.
constexpr Form kLargerGroups[] = {Form::groups_of_16, Form::groups_of_32, Form::groups_of_64,
                                  Form::whole};

/// Number of groups of 8 that share one width.
constexpr std::size_t groups_of(Form form, std::size_t n_groups) {
  return form == Form::whole ? n_groups
                             : std::size_t{1} << (static_cast<unsigned>(form) -
                                                  static_cast<unsigned>(Form::groups_of_8));
}

constexpr std::size_t bytes_of_bits(std::size_t n_bits) { return (n_bits + 7) / 8; }

/// Measurements that determine a block's form. Widths are zero-padded to a multiple of 8.
template <class Word>
struct Measure {
  Word all = 0;                         ///< Every bit that is set in any word.
  unsigned shift = 0;                   ///< Number of trailing zeros common to all words.
  std::uint8_t of_groups[kGroups];      ///< Widths of groups, as encoded.
  std::uint8_t of_words[kBlockValues];  ///< Widths of words, as needed.
  unsigned base = 0;                    ///< Least width of form narrow.
  SingleBits singles;
};

void fill_up(std::uint8_t* widths, std::size_t n) {
  for (; n % 8 != 0; ++n) widths[n] = 0;
}

template <class Word>
void measure(const BlockWords& block, std::size_t n, std::size_t n_groups, Measure<Word>& made) {
  const Word* words = words_of<Word>(block);
  Word ones[kGroups];
  made.all = group_ones(words, n_groups, ones);
  if (made.all == 0) return;
  made.shift = Widths<Word>::trailing(made.all);
  byte_widths(ones, n_groups, made.shift, Widths<Word>::kPackedMax, made.of_groups);
  fill_up(made.of_groups, n_groups);
  byte_widths(words, n, made.shift, 8 * sizeof(Word), made.of_words);
  fill_up(made.of_words, n);
  const unsigned greatest = Widths<Word>::of(static_cast<Word>(made.all >> made.shift));
  made.base = greatest > kNarrowRange ? greatest - kNarrowRange : 0;
  made.singles = single_bits<Word>(made.of_words, n, made.base);
}

/// Reduce widths to the greatest one.
std::size_t share_all(const std::uint8_t* widths, std::size_t n, std::uint8_t* shared) {
  std::uint8_t width = 0;
  for (std::size_t k = 0; k < n; ++k) width = widths[k] > width ? widths[k] : width;
  shared[0] = width;
  return 1;
}

/// Size of groups of 8 if `n_shared` of them share one width.
template <class Word>
std::size_t grouped_bytes(const std::uint8_t* shared, std::size_t n_sets, std::size_t n_shared,
                          std::size_t n_groups) {
  const std::size_t sum = sum_of(shared, n_sets);
  const std::size_t n_missing = n_sets * n_shared - n_groups;  // Missing groups of the last set.
  return sum * n_shared - n_missing * shared[n_sets - 1] +
         bytes_of_bits(n_sets * Widths<Word>::kCodeBits);
}

/// Form with the fewest bytes, and its shared widths.
struct Choice {
  Form form = Form::groups_of_8;
  std::size_t n_bytes = 0;
  std::size_t n_sets = 0;
  std::uint8_t widths[kGroups];

  void take(Form tried, std::size_t n, const std::uint8_t* shared, std::size_t n_shared) {
    form = tried;
    n_bytes = n;
    n_sets = n_shared;
    std::memcpy(widths, shared, n_shared);
    fill_up(widths, n_shared);
  }
};

template <class Word>
void choose_form(std::size_t n, std::size_t n_groups, const Measure<Word>& measured, Choice& best) {
  best.take(Form::groups_of_8, grouped_bytes<Word>(measured.of_groups, n_groups, 1, n_groups),
            measured.of_groups, n_groups);
  std::uint8_t shared[kGroups];
  std::size_t n_sets = greater_of_two(measured.of_groups, n_groups, shared);
  for (const Form form : kLargerGroups) {
    const std::size_t n_shared = groups_of(form, n_groups);
    const std::size_t n_bytes = grouped_bytes<Word>(shared, n_sets, n_shared, n_groups);
    if (n_bytes < best.n_bytes) best.take(form, n_bytes, shared, n_sets);
    n_sets = form == Form::groups_of_64 ? share_all(shared, n_sets, shared)
                                        : greater_of_two(shared, n_sets, shared);
  }
  const std::size_t n_single =
      bytes_of_bits(n * Widths<Word>::kCodeBits) + bytes_of_bits(measured.singles.coded);
  const std::size_t n_narrow = 1 + bytes_of_bits(4 * n) + bytes_of_bits(measured.singles.from_base);
  if (n_single < best.n_bytes && n_single <= n_narrow) {
    best.form = Form::single;
  } else if (n_narrow < best.n_bytes) {
    best.form = Form::narrow;
  }
}

/// Write the codes of `n` widths; returns the end.
template <class Word>
std::uint8_t* put_codes(const std::uint8_t* widths, std::size_t n, std::uint8_t* out) {
  constexpr unsigned kCodeBits = Widths<Word>::kCodeBits;
  for (std::size_t i = 0; i < n; i += 8) {
    store_u64(out + i / 8 * kCodeBits, packed_codes<Word>(load_u64(widths + i)));
  }
  return out + bytes_of_bits(n * kCodeBits);
}

/// Join two words each; the second follows the first one's bits.
void join_pairs(const std::uint32_t* words, std::size_t n_pairs, unsigned shift,
                const std::uint8_t* widths, std::uint64_t* pairs) {
  std::size_t k = 0;
#if defined(__AVX2__)
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
  for (; k + 4 <= n_pairs; k += 4) {
    const __m256i v = _mm256_srl_epi32(load_vector(words + 2 * k), by);
    const __m256i w =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(widths + 2 * k)));
    const __m256i second = _mm256_sllv_epi64(_mm256_srli_epi64(v, 32), _mm256_and_si256(w, low));
    store_vector(pairs + k, _mm256_or_si256(_mm256_and_si256(v, low), second));
  }
#endif
  for (; k < n_pairs; ++k) {
    const std::uint64_t second = words[2 * k + 1] >> shift;
    pairs[k] = (words[2 * k] >> shift) | second << widths[2 * k];
  }
}

/// Call put(writer, k) for all k < n_items, alternating between the first and the second half. A
/// bit's position depends on all bits before it, so a single sequence would be one dependency
/// chain. `n_first` is the number of bits of the first n_items / 2.
template <class Put>
BitWriter put_halves(std::size_t n_items, std::size_t n_first, std::uint8_t* out, Put put) {
  const std::size_t n_half = n_items / 2;
  std::uint8_t bytes[kBlockBytesMax / 2 + kSlackBytes];
  BitWriter first(out);
  BitWriter second(bytes, n_first & 7);
  for (std::size_t k = 0; k < n_half; ++k) {
    put(first, k);
    put(second, n_half + k);
  }
  if (n_items % 2 != 0) put(second, n_items - 1);
  first.append(bytes, second);
  return first;
}

std::uint8_t* pack_singles(const std::uint32_t* words, std::size_t n, unsigned shift,
                           const std::uint8_t* widths, std::uint8_t* out) {
  const std::size_t n_pairs = n / 2;
  std::uint64_t pairs[kBlockValues / 2];
  join_pairs(words, n_pairs, shift, widths, pairs);
  const std::size_t n_first = sum_of(widths, n_pairs / 2 * 2);
  BitWriter bits = put_halves(n_pairs, n_first, out, [&](BitWriter& to, std::size_t k) {
    to.put_any(pairs[k], static_cast<unsigned>(widths[2 * k]) + widths[2 * k + 1]);
  });
  if (n % 2 != 0) bits.put(words[n - 1] >> shift, widths[n - 1]);
  return bits.end();
}
std::uint8_t* pack_singles(const std::uint64_t* words, std::size_t n, unsigned shift,
                           const std::uint8_t* widths, std::uint8_t* out) {
  const std::size_t n_first = sum_of(widths, n / 2);
  const BitWriter bits = put_halves(n, n_first, out, [&](BitWriter& to, std::size_t i) {
    to.put_any(words[i] >> shift, widths[i]);
  });
  return bits.end();
}

/// Write the codes of form narrow; raises `widths` to the widths that the codes represent.
std::uint8_t* put_narrow_codes(std::uint8_t* widths, std::size_t n, unsigned base,
                               std::uint8_t* out) {
  *out++ = static_cast<std::uint8_t>(base);
  for (std::size_t i = 0; i < n; ++i) {
    widths[i] = widths[i] > base ? widths[i] : static_cast<std::uint8_t>(base);
  }
  if (n % 2 != 0) widths[n] = static_cast<std::uint8_t>(base);
  const std::size_t n_bytes = bytes_of_bits(4 * n);
  std::size_t i = 0;
#if defined(__AVX2__)
  const __m256i bases = _mm256_set1_epi8(static_cast<char>(base));
  const __m256i places = _mm256_set1_epi16(0x1001);  // Weights 1 and 16: two codes in a byte.
  for (; i + 16 <= n_bytes; i += 16) {
    const __m256i codes = _mm256_sub_epi8(load_vector(widths + 2 * i), bases);
    const __m256i both = _mm256_maddubs_epi16(codes, places);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bytes);
  }
#endif
  for (; i < n_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>((widths[2 * i] - base) | (widths[2 * i + 1] - base) << 4);
  }
  return out + n_bytes;
}

template <class Word>
std::uint8_t* put_single_codes(std::uint8_t* widths, std::size_t n, std::uint8_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    widths[i] = static_cast<std::uint8_t>(coded_width<Word>(widths[i]));
  }
  return put_codes<Word>(widths, n, out);
}

template <class Word>
std::uint8_t* pack_groups(const Word* words, std::size_t n_groups, std::size_t n_shared,
                          unsigned shift, const Choice& choice, std::uint8_t* out) {
  for (std::size_t k = 0, group = 0; k < choice.n_sets; ++k) {
    const unsigned width = choice.widths[k];
    const std::size_t end = group + n_shared < n_groups ? group + n_shared : n_groups;
    for (; group < end; ++group) {
      pack_group(words + kGroupValues * group, shift, width, out);
      out += width;
    }
  }
  return out;
}

/// Read the widths of all groups from their codes; false if a code is invalid.
template <class Word>
bool take_codes(const std::uint8_t* in, std::size_t n_codes, std::uint8_t* widths) {
  constexpr unsigned kCodeBits = Widths<Word>::kCodeBits;
  bool valid = true;
  for (std::size_t i = 0; i < n_codes; i += 8) {
    std::uint64_t eight = load_u64(in + i / 8 * kCodeBits);
    if (n_codes - i < 8) eight &= (std::uint64_t{1} << kCodeBits * (n_codes - i)) - 1;
    store_u64(widths + i, unpacked_widths<Word>(eight, valid));
  }
  return valid;
}

/// Read the widths of form narrow; false if one exceeds a word.
template <class Word>
bool take_narrow_codes(const std::uint8_t* in, std::size_t n, std::uint8_t* widths) {
  constexpr unsigned greatest = 8 * sizeof(Word);
  const unsigned base = *in++;
  if (base > greatest) return false;
  const std::size_t n_bytes = bytes_of_bits(4 * n);
  std::size_t i = 0;
  std::uint8_t most = 0;
#if defined(__AVX2__)
  const __m128i bases = _mm_set1_epi8(static_cast<char>(base));
  const __m128i four_bits = _mm_set1_epi8(15);
  __m128i all = _mm_setzero_si128();
  for (; i + 16 <= n_bytes; i += 16) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    const __m128i firsts = _mm_and_si128(codes, four_bits);
    const __m128i seconds = _mm_and_si128(_mm_srli_epi16(codes, 4), four_bits);
    const __m128i low = _mm_add_epi8(_mm_unpacklo_epi8(firsts, seconds), bases);
    const __m128i high = _mm_add_epi8(_mm_unpackhi_epi8(firsts, seconds), bases);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(widths + 2 * i), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(widths + 2 * i + 16), high);
    all = _mm_max_epu8(all, _mm_max_epu8(low, high));
  }
  std::uint8_t parts[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(parts), all);
  for (const std::uint8_t part : parts) most = part > most ? part : most;
#endif
  for (; i < n_bytes; ++i) {
    widths[2 * i] = static_cast<std::uint8_t>(base + (in[i] & 15U));
    widths[2 * i + 1] = static_cast<std::uint8_t>(base + (in[i] >> 4));
    most = widths[2 * i] > most ? widths[2 * i] : most;
    most = widths[2 * i + 1] > most ? widths[2 * i + 1] : most;
  }
  return most <= greatest;
}

template <class Word>
std::size_t unpack_singles(const std::uint8_t* in, std::size_t n_in, std::size_t n, Form form,
                           unsigned shift, Word* words) {
  const bool narrow = form == Form::narrow;
  const std::size_t n_counts =
      narrow ? 1 + bytes_of_bits(4 * n) : bytes_of_bits(n * Widths<Word>::kCodeBits);
  if (n_in < n_counts) return 0;
  std::uint8_t widths[kBlockValues];
  const bool taken =
      narrow ? take_narrow_codes<Word>(in, n, widths) : take_codes<Word>(in, n, widths);
  if (!taken) return 0;
  const std::size_t n_bits = sum_of(widths, n);
  const std::size_t n_taken = n_counts + bytes_of_bits(n_bits);
  if (n_in < n_taken) return 0;
  in += n_counts;
  std::size_t bit = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned width = widths[i];
    const std::uint8_t* at = in + (bit >> 3);
    const auto offset = static_cast<unsigned>(bit & 7);
    std::uint64_t word = load_u64(at) >> offset;
    if (sizeof(Word) == 8 && width + offset > 64) {
      word |= static_cast<std::uint64_t>(at[8]) << (64 - offset);
    }
    if (sizeof(Word) == 4 || width < 64) word &= (std::uint64_t{1} << width) - 1;
    words[i] = static_cast<Word>(static_cast<Word>(word) << shift);
    bit += width;
  }
  return n_taken;
}

template <class Word>
std::size_t unpack_groups(const std::uint8_t* in, std::size_t n_in, std::size_t n_groups,
                          std::size_t n_shared, unsigned shift, Word* words) {
  const std::size_t n_codes = (n_groups + n_shared - 1) / n_shared;
  const std::size_t n_code_bytes = bytes_of_bits(n_codes * Widths<Word>::kCodeBits);
  if (n_in < n_code_bytes) return 0;
  std::uint8_t widths[kGroups];
  if (!take_codes<Word>(in, n_codes, widths)) return 0;
  std::size_t n_taken = n_code_bytes;
  for (std::size_t code = 0; code < n_codes; ++code) {
    const std::size_t left = n_groups - code * n_shared;
    n_taken += widths[code] * (left < n_shared ? left : n_shared);
  }
  if (n_in < n_taken) return 0;
  in += n_code_bytes;
  for (std::size_t code = 0, group = 0; code < n_codes; ++code) {
    const unsigned width = widths[code];
    const std::size_t end = group + n_shared < n_groups ? group + n_shared : n_groups;
    for (; group < end; ++group) {
      unpack_group(in, width, shift, words + kGroupValues * group);
      in += width;
    }
  }
  return n_taken;
}

}  // namespace

template <class Word>
std::size_t pack_block(const BlockWords& block, std::size_t n, std::uint8_t* out) {
  const std::size_t n_groups = (n + kGroupValues - 1) / kGroupValues;
  Measure<Word> measured;
  measure(block, n, n_groups, measured);
  if (measured.all == 0) return 0;
  Choice choice;
  choose_form(n, n_groups, measured, choice);
  out[0] = static_cast<std::uint8_t>(choice.form);
  out[1] = static_cast<std::uint8_t>(measured.shift);
  const Word* words = words_of<Word>(block);
  const std::uint8_t* end = nullptr;
  if (choice.form == Form::single || choice.form == Form::narrow) {
    std::uint8_t* bits =
        choice.form == Form::single
            ? put_single_codes<Word>(measured.of_words, n, out + kHeadBytes)
            : put_narrow_codes(measured.of_words, n, measured.base, out + kHeadBytes);
    end = pack_singles(words, n, measured.shift, measured.of_words, bits);
  } else {
    std::uint8_t* bits = put_codes<Word>(choice.widths, choice.n_sets, out + kHeadBytes);
    end = pack_groups(words, n_groups, groups_of(choice.form, n_groups), measured.shift, choice,
                      bits);
  }
  return static_cast<std::size_t>(end - out);
}

template <class Word>
std::uint64_t block_cost(const BlockWords& block, std::size_t n) {
  const std::size_t n_groups = (n + kGroupValues - 1) / kGroupValues;
  Measure<Word> measured;
  measure(block, n, n_groups, measured);
  if (measured.all == 0) return 0;
  const std::uint64_t n_grouped =
      8 * grouped_bytes<Word>(measured.of_groups, n_groups, 1, n_groups);
  const std::uint64_t n_narrow = 4 * n + measured.singles.from_base;
  const std::uint64_t n_single = n * Widths<Word>::kCodeBits + measured.singles.coded;
  const std::uint64_t n_least = n_single < n_narrow ? n_single : n_narrow;
  return n_least < n_grouped ? n_least : n_grouped;
}

template <class Word>
std::size_t unpack_block(const std::uint8_t* in, std::size_t n_in, std::size_t n,
                         BlockWords& block) {
  if (n_in < kHeadBytes) return 0;
  const auto form = static_cast<Form>(in[0]);
  const unsigned shift = in[1];
  if (form < Form::single || form > Form::narrow || shift >= 8 * sizeof(Word)) return 0;
  Word* words = words_of<Word>(block);
  const std::size_t n_groups = (n + kGroupValues - 1) / kGroupValues;
  const std::size_t n_taken =
      form == Form::single || form == Form::narrow
          ? unpack_singles(in + kHeadBytes, n_in - kHeadBytes, n, form, shift, words)
          : unpack_groups(in + kHeadBytes, n_in - kHeadBytes, n_groups, groups_of(form, n_groups),
                          shift, words);
  return n_taken == 0 ? 0 : kHeadBytes + n_taken;
}

template std::size_t pack_block<std::uint32_t>(const BlockWords&, std::size_t, std::uint8_t*);
template std::size_t pack_block<std::uint64_t>(const BlockWords&, std::size_t, std::uint8_t*);
template std::uint64_t block_cost<std::uint32_t>(const BlockWords&, std::size_t);
template std::uint64_t block_cost<std::uint64_t>(const BlockWords&, std::size_t);
template std::size_t unpack_block<std::uint32_t>(const std::uint8_t*, std::size_t, std::size_t,
                                                 BlockWords&);
template std::size_t unpack_block<std::uint64_t>(const std::uint8_t*, std::size_t, std::size_t,
                                                 BlockWords&);

}  // namespace tailrace::neighbour_xor::XOR_BUILD
