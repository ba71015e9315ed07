// Exact coding: examines single values and measures the cost of runs.

#include "trz/exact/exact_sample.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "trz/kernels/group_kernels.hpp"
#include "trz/predict/lorenzo_pieces.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kLooked = 1024;  // Values examined one by one, at most.
constexpr std::size_t kRunsMin = 32;
constexpr std::size_t kValuesPerRun = 8192;  // One run of 64 in this many values: 0.8 %.
constexpr double kSpecialShare = 1.0 / 64;   // Least share of equal values to be a mask.
constexpr std::uint64_t kGapParts = 32;      // A mask is at least range / 32 away from the rest.
constexpr std::size_t kStrayParts = 128;     // One value in this many may lie beyond the mask.
constexpr double kBitsPerChange = 9;         // Bits per change between special and other values.

/// log2 by a series in a fixed order of operations; the C library's log2 may differ between
/// machines.
double log2_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  const double t = (m - 1.5) / (m + 1.5);
  const double t2 = t * t;
  const double series = t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 / 9))));
  return exponent + 0.5849625007211562 + 2 * 1.4426950408889634 * series;
}

/// Entropy of n bytes in bits, corrected for the bias of a small sample (0.72 bits per symbol).
/// Adds the size of a Huffman table to *table_bytes.
double byte_bits(const std::uint8_t* bytes, std::size_t n, std::size_t* table_bytes) {
  if (n == 0) return 0;
  std::array<std::uint32_t, 256> counts{};
  for (std::size_t i = 0; i < n; ++i) ++counts[bytes[i]];
  double sum = 0;
  std::size_t n_symbols = 0;
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    ++n_symbols;
    sum += count * log2_of(count);
  }
  if (n_symbols == 1) return 0;
  *table_bytes += 3 + 3 * n_symbols / 4;
  const auto total = static_cast<double>(n);
  const double entropy = total * log2_of(total) - sum + 0.72 * static_cast<double>(n_symbols - 1);
  return std::clamp(entropy, total, 8 * total);  // A Huffman code has at least one bit.
}

/// Reference integer of a type, as a 64-bit pattern: the middle of the range for unsigned types, so
/// that differences from it are signed; else 0.
std::uint64_t middle_of(DType dtype) {
  if (dtype == DType::u32) return std::uint64_t{1} << 31;
  if (dtype == DType::u64) return std::uint64_t{1} << 63;
  return 0;
}

std::uint64_t bits_at(const void* data, std::size_t index, std::size_t element_bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(data) + index * element_bytes, element_bytes);
  return bits;
}

}  // namespace

ExactSample::ExactSample(const ExactValues& values, Workspace& workspace)
    : values_(values), workspace_(workspace) {
  n_values_ = values_in(values.extents);
  element_bytes_ = dtype_bytes(values.dtype);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (values.extents[axis] > 1) {
      axes_ = static_cast<int>(4 - axis);
      break;
    }
  }
  constexpr std::size_t n_codes = kOrders * kRunsMax * kRunValues;
  constexpr std::size_t stream_bytes = kRunsMax * (1 + kClasses * 64 + 8 * kPlanesMax + 64) + 8192;
  auto* area = workspace.area<std::int64_t>(Slot::sample, n_codes + stream_bytes / 8);
  if (area == nullptr) return;
  codes_ = area;
  streams_ = reinterpret_cast<std::uint8_t*>(area + n_codes);
  // Small chunks are sampled completely. Large chunks are cut into equal parts with one run each.
  n_runs_ = n_values_ <= kRunsMin * kRunValues
                ? (n_values_ + kRunValues - 1) / kRunValues
                : std::clamp(n_values_ / kValuesPerRun, kRunsMin, kRunsMax);
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  for (std::size_t run = 0; run < n_runs_; ++run) {
    if (n_values_ <= kRunsMin * kRunValues) {
      starts_[run] = run * kRunValues;
      continue;
    }
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::size_t low = n_values_ / n_runs_ * run;
    const std::size_t room = n_values_ / n_runs_ - kRunValues;
    starts_[run] = low + static_cast<std::size_t>(((state >> 32) * room) >> 32);
  }
}

/// One of the examined values.
struct ExactSample::Seen {
  std::int64_t word;
  std::size_t index;
  bool operator<(const Seen& other) const { return word < other.word; }
};

/// List the integers of values from all parts of the sample, sorted. Returns their number.
std::size_t ExactSample::see(Seen* seen) const {
  const std::size_t n_sampled = std::min(n_values_, n_runs_ * kRunValues);
  const std::size_t n_seen = std::min(n_sampled, kLooked);
  const WordKernels& kernels =
      exact_kernels(workspace_.isa()).of_dtype[static_cast<std::size_t>(values_.dtype)];
  const WordMap map = word_map(middle_of(values_.dtype), 1);
  for (std::size_t k = 0; k < n_seen; ++k) {
    const std::size_t at = k * n_sampled / n_seen;
    const std::size_t index = starts_[at / kRunValues] + at % kRunValues;
    const auto* from = static_cast<const std::byte*>(values_.data) + index * element_bytes_;
    std::int64_t word = 0;
    if (element_bytes_ == 8) {
      kernels.to_wide(from, 1, map, &word);
    } else {
      std::int32_t narrow = 0;
      kernels.to_words(from, 1, map, &narrow);
      word = narrow;
    }
    seen[k] = {word, index};
  }
  std::sort(seen, seen + n_seen);
  return n_seen;
}

/// Find a mask: equal values at one end of the sorted values, far from the rest. Returns one of
/// them and narrows [first, last] to the rest; null if not found. A few values may lie beyond the
/// mask.
const ExactSample::Seen* ExactSample::find_mask(const Seen* seen, std::size_t* first,
                                                std::size_t* last) {
  const std::size_t low = *first;
  const std::size_t high = *last;
  const std::size_t n_strays = (high - low) / kStrayParts;
  const auto apart = [&](std::size_t i, std::size_t j) {
    return static_cast<std::uint64_t>(seen[j].word) - static_cast<std::uint64_t>(seen[i].word);
  };
  const auto n_least =
      static_cast<std::size_t>(kSpecialShare * static_cast<double>(high - low + 1)) + 4;
  std::size_t low_begin = low;
  std::size_t low_end = low;
  std::size_t high_begin = high;
  std::size_t high_end = high;
  for (std::size_t begin = low; begin <= low + n_strays; ++begin) {
    std::size_t end = begin + 1;
    while (end <= high && seen[end].word == seen[begin].word) ++end;
    if (end > high || end - begin <= low_end - low_begin || end - begin < n_least) continue;
    if (apart(begin, end) <= apart(end, high) / kGapParts) continue;
    low_begin = begin;
    low_end = end;
  }
  for (std::size_t begin = high; begin + n_strays >= high && begin > low; --begin) {
    std::size_t end = begin;
    while (end > low && seen[end - 1].word == seen[begin].word) --end;
    const std::size_t n = begin - end + 1;
    if (end == low || n <= high_begin - high_end || n < n_least) continue;
    if (apart(end - 1, end) <= apart(low, end - 1) / kGapParts) continue;
    high_begin = begin + 1;
    high_end = end;
  }
  const std::size_t n_low = low_end - low_begin;
  const std::size_t n_high = high_begin - high_end;
  if (n_low == 0 && n_high == 0) return nullptr;
  if (n_low >= n_high) {
    *first = low_end;
    return &seen[low_begin];
  }
  *last = high_end - 1;
  return &seen[high_end];
}

ExactLook ExactSample::look() {
  std::array<Seen, kLooked> seen;
  const std::size_t n_seen = see(seen.data());
  ExactLook look;
  std::size_t first = 0;
  std::size_t last = n_seen - 1;
  // Only values of 32 or 64 bits can be patches.
  const Seen* mask = element_bytes_ >= 4 ? find_mask(seen.data(), &first, &last) : nullptr;
  if (mask != nullptr) {
    look.has_special = true;
    look.special = bits_at(values_.data, mask->index, element_bytes_);
  }
  const Seen& typical = seen[(first + last) / 2];
  look.origin = middle_of(values_.dtype) + static_cast<std::uint64_t>(typical.word);
  look.origin_bits = bits_at(values_.data, typical.index, element_bytes_);
  const auto from_first = [&](std::size_t i) {
    return static_cast<std::uint64_t>(seen[i].word) - static_cast<std::uint64_t>(seen[first].word);
  };
  look.range = from_first(last);
  std::uint64_t factor = 0;
  std::size_t n_repeated = 0;
  for (std::size_t i = first + 1; i <= last; ++i) {
    n_repeated += seen[i].word == seen[i - 1].word;
    if (factor != 1) factor = std::gcd(factor, from_first(i));
  }
  look.factor = std::max<std::uint64_t>(factor, 1);
  if (last > first) {
    look.repeated_share = static_cast<double>(n_repeated) / static_cast<double>(last - first);
  }
  return look;
}

/// Load the words of n values as 64-bit numbers; a special value repeats the previous word. Returns
/// a bit mask of the special values.
template <class Word>
std::uint64_t ExactSample::load_run(std::size_t start, std::size_t n, const ExactPlan& plan,
                                    std::int64_t* words) const {
  const WordKernels& kernels =
      exact_kernels(workspace_.isa()).of_dtype[static_cast<std::size_t>(values_.dtype)];
  const WordMap map = word_map(plan.origin, plan.factor);
  std::array<Word, kRunValues> loaded;
  const auto load = [&](std::size_t from, std::size_t n_from, Word before) {
    const auto* data = static_cast<const std::byte*>(values_.data) + from * element_bytes_;
    if constexpr (sizeof(Word) == 4) {
      kernels.to_words(data, n_from, map, loaded.data());
    } else {
      kernels.to_wide(data, n_from, map, loaded.data());
    }
    std::uint64_t marks = 0;
    if (plan.has_special && kernels.find(data, n_from, plan.special, &marks)) {
      hold_marked<Word>(&marks, n_from, before, loaded.data(), [](std::size_t) {});
    }
    return marks;
  };
  std::uint64_t marks = load(start, n, 0);
  if ((marks & 1) != 0 && start > 0) {
    // The word that the first values repeat lies before the run.
    const std::size_t n_before = std::min(start, kRunValues);
    static_cast<void>(load(start - n_before, n_before, 0));
    marks = load(start, n, loaded[n_before - 1]);
  }
  for (std::size_t i = 0; i < n; ++i) words[i] = loaded[i];
  return n < 64 ? marks & ((std::uint64_t{1} << n) - 1) : marks;
}

/// Clear neighbours outside the chunk, which count as 0, in the rows of all corners.
void ExactSample::zero_outside(std::size_t start, std::size_t n, Run64* rows) const {
  const Extents& e = values_.extents;
  std::array<std::size_t, 4> at = {start % e[3], start / e[3] % e[2], start / (e[3] * e[2]) % e[1],
                                   start / (e[3] * e[2] * e[1])};
  // Row by row: the first value of a row has no neighbour in x; all its values may lack neighbours
  // in y, z and t.
  for (std::size_t begin = 0; begin < n;) {
    const std::size_t end = std::min(n, begin + (e[3] - at[0]));
    for (std::size_t corner = 1; corner < std::size_t{1} << axes_; ++corner) {
      if ((corner & 1) != 0 && at[0] == 0) rows[corner][begin] = 0;
      bool outside = false;
      for (std::size_t axis = 1; axis < 4; ++axis) {
        outside = outside || (((corner >> axis) & 1) != 0 && at[axis] == 0);
      }
      if (outside) std::fill(rows[corner].data() + begin, rows[corner].data() + end, 0);
    }
    begin = end;
    at[0] = 0;
    for (std::size_t axis = 1; axis < 4; ++axis) {
      if (++at[axis] < e[3 - axis]) break;
      at[axis] = 0;
    }
  }
}

/// Compute the codes of one run for all orders.
void ExactSample::predict_run(std::size_t run, std::size_t start, std::size_t n,
                              const ExactPlan& plan, bool wide) {
  const Extents& e = values_.extents;
  const std::array<std::size_t, 4> strides = {1, e[3], e[3] * e[2], e[3] * e[2] * e[1]};
  std::array<Run64, 16> rows;
  for (std::size_t corner = 0; corner < std::size_t{1} << axes_; ++corner) {
    std::size_t back = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (((corner >> axis) & 1) != 0) back += strides[axis];
    }
    rows[corner].fill(0);
    const std::size_t n_before = start < back ? std::min(back - start, n) : 0;
    if (n_before == n) continue;
    const std::size_t from = start + n_before - back;
    const std::uint64_t marks =
        wide ? load_run<std::int64_t>(from, n - n_before, plan, rows[corner].data() + n_before)
             : load_run<std::int32_t>(from, n - n_before, plan, rows[corner].data() + n_before);
    if (corner == 0) {
      const std::uint64_t changes = (marks ^ (marks << 1)) & ~std::uint64_t{1};
      n_changes_ += static_cast<std::size_t>(std::popcount(changes));
      n_special_ += static_cast<std::size_t>(std::popcount(marks));
    }
  }
  zero_outside(start, n, rows.data());
  // Take differences along one axis after another, in place; the first row becomes the codes.
  for (int order = 0; order <= axes_; ++order) {
    if (order > 0) {
      const auto step = std::size_t{1} << (order - 1);
      for (std::size_t corner = 0; corner < std::size_t{1} << axes_; corner += 2 * step) {
        for (std::size_t i = 0; i < kRunValues; ++i) {
          rows[corner][i] =
              static_cast<std::int64_t>(static_cast<std::uint64_t>(rows[corner][i]) -
                                        static_cast<std::uint64_t>(rows[corner + step][i]));
        }
      }
    }
    std::int64_t* codes = codes_ + (static_cast<std::size_t>(order) * kRunsMax + run) * kRunValues;
    for (std::size_t i = 0; i < kRunValues; ++i) {
      // Narrow codes wrap at 32 bits.
      codes[i] = wide ? rows[0][i]
                      : static_cast<std::int32_t>(
                            static_cast<std::uint32_t>(static_cast<std::uint64_t>(rows[0][i])));
    }
  }
}

/// Bits of the sample's codes after splitting into groups.
double ExactSample::split_bits(const std::int32_t* codes, std::size_t* table_bytes) {
  std::uint8_t* room = streams_;
  const auto stream = [&room](std::size_t n_bytes) {
    std::uint8_t* begin = room;
    room += n_bytes + 64;
    return begin;
  };
  GroupCursor begin;
  begin.classes = stream(kRunsMax);
  for (std::size_t k = 1; k < kClasses; ++k) begin.bytes[k] = stream(kRunsMax * 64);
  begin.planes = stream(kRunsMax * 8 * kPlanesMax);
  begin.exceptions = reinterpret_cast<std::int32_t*>(stream(kRunsMax * kExceptionsMax * 4 + 8));
  GroupCursor end = begin;
  group_kernels(workspace_.isa()).split(codes, n_runs_, end);

  double bits = byte_bits(begin.classes, n_runs_, table_bytes);
  for (std::size_t k = 1; k < kClasses; ++k) {
    bits += byte_bits(begin.bytes[k], static_cast<std::size_t>(end.bytes[k] - begin.bytes[k]),
                      table_bytes);
  }
  bits += 8 * static_cast<double>(end.planes - begin.planes);
  for (const std::int32_t* code = begin.exceptions; code < end.exceptions; ++code) {
    bits += *code < 128 && *code > -128 ? 6 : 38;
  }
  return bits;
}

ExactSample::Costs ExactSample::measure(const ExactPlan& plan, bool wide) {
  n_changes_ = 0;
  n_special_ = 0;
  std::size_t n_sampled = 0;
  for (std::size_t run = 0; run < n_runs_; ++run) {
    const std::size_t n = std::min(kRunValues, n_values_ - starts_[run]);
    predict_run(run, starts_[run], n, plan, wide);
    n_sampled += n;
  }
  const std::size_t n_codes = n_runs_ * kRunValues;
  Costs costs;
  std::uint64_t least = UINT64_MAX;
  for (int order = 0; order <= axes_; ++order) {
    const std::int64_t* codes = codes_ + static_cast<std::size_t>(order) * kRunsMax * kRunValues;
    std::uint64_t widths = 0;
    for (std::size_t i = 0; i < n_codes; i += 2) {
      const std::int64_t code = codes[i];
      widths += static_cast<unsigned>(
          std::bit_width(static_cast<std::uint64_t>(code < 0 ? ~code : code)));
    }
    if (widths < least) {
      least = widths;
      costs.best_order = order;
    }
  }
  std::array<std::int32_t, kRunsMax * kRunValues> low;
  std::array<std::int32_t, kRunsMax * kRunValues> high;
  const auto per_value = 1 / static_cast<double>(n_sampled);
  const auto bits_of = [&](int order, double* low_bits) {
    const std::int64_t* codes = codes_ + static_cast<std::size_t>(order) * kRunsMax * kRunValues;
    for (std::size_t i = 0; i < n_codes; ++i) {
      const auto code = static_cast<std::uint64_t>(codes[i]);
      low[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(code));
      high[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>((code + 0x80000000U) >> 32));
    }
    costs.table_bytes = 0;
    *low_bits = split_bits(low.data(), &costs.table_bytes) * per_value;
    return *low_bits + (wide ? split_bits(high.data(), &costs.table_bytes) * per_value : 0);
  };
  costs.special_bits = kBitsPerChange * static_cast<double>(n_changes_) * per_value;
  costs.special_share = static_cast<double>(n_special_) * per_value;
  double low_bits = 0;
  costs.unpredicted_bits = bits_of(0, &low_bits) + costs.special_bits;
  costs.best_bits = bits_of(costs.best_order, &costs.low_bits) + costs.special_bits;
  if (costs.unpredicted_bits < costs.best_bits) {
    costs.best_order = 0;
    costs.best_bits = costs.unpredicted_bits;
    costs.low_bits = low_bits;
  }
  return costs;
}

}  // namespace tailrace::trz
