// Writes and applies patches.

#include "trz/entropy/patches.hpp"

#include <algorithm>
#include <bit>
#include <span>

namespace tailrace::trz {
namespace {

constexpr std::size_t kPatchSlack = 64;

// Form of a set, as a sum of flags; 0 ends the list of sets.
constexpr std::uint8_t kEnd = 0;
constexpr std::uint8_t kPresent = 1;
constexpr std::uint8_t kBitmap = 2;    ///< Positions are a bit map instead of gaps.
constexpr std::uint8_t kOneValue = 4;  ///< All positions have one value.

/// Writer of ascending indices, as varints of the gaps between them.
class GapList {
 public:
  explicit GapList(std::uint8_t* bytes) : bytes_(bytes) {}
  void add(std::size_t index) {
    std::size_t gap = index - next_;
    next_ = index + 1;
    for (; gap >= 0x80; gap >>= 7) bytes_[n_bytes_++] = static_cast<std::uint8_t>(gap | 0x80);
    bytes_[n_bytes_++] = static_cast<std::uint8_t>(gap);
  }
  std::size_t n_bytes() const { return n_bytes_; }

 private:
  std::uint8_t* bytes_;
  std::size_t n_bytes_ = 0;
  std::size_t next_ = 0;
};

/// One set of patches: all marked values, or those that equal `common` (wanted is true) or differ
/// from it (false).
template <class T>
struct PatchSet {
  const T* values;
  const PatchMap& patches;
  std::size_t n;   ///< Number of values in the set.
  bool all;        ///< The set contains all marked values.
  bool one_value;  ///< All values of the set are equal.
  T common = 0;
  bool wanted = true;

  template <class Visitor>
  void for_each(Visitor visit) const {
    patches.for_each([&](std::size_t index) {
      if (all || (values[index] == common) == wanted) visit(index);
    });
  }
};

/// Write the positions of a set as a bit map or as gaps; returns their size in bytes. `bytes` has
/// room for a bit map and 16 bytes.
template <class T>
std::size_t put_positions(const PatchSet<T>& set, bool bitmap, std::uint8_t* bytes) {
  const std::size_t bitmap_bytes = (set.patches.n_values() + 7) / 8;
  if (!bitmap) {
    GapList gaps(bytes);
    set.for_each([&](std::size_t index) { gaps.add(index); });
    return gaps.n_bytes();
  }
  if (set.all) {
    std::memcpy(bytes, set.patches.words(), bitmap_bytes);
    return bitmap_bytes;
  }
  std::fill_n(bytes, bitmap_bytes, std::uint8_t{0});
  set.for_each(
      [&](std::size_t index) { bytes[index / 8] |= static_cast<std::uint8_t>(1U << (index % 8)); });
  return bitmap_bytes;
}

template <class T>
bool write_set(const PatchSet<T>& set, const SectionPlan& plan, ChunkWriter& out,
               Workspace& workspace) {
  const std::size_t bitmap_bytes = (set.patches.n_values() + 7) / 8;
  // With at most one patch per 32 values, gaps never exceed the size of a bit map, as the reader
  // requires. A gap takes one byte, and one more for each factor of 128; long gaps are few. With
  // more patches, a bit map compresses better.
  const bool bitmap = set.n > set.patches.n_values() / 32;
  auto* positions = workspace.area<std::uint8_t>(Slot::transform, bitmap_bytes + kPatchSlack);
  if (positions == nullptr) return false;
  const std::size_t n_bytes = put_positions(set, bitmap, positions);
  std::uint8_t form = kPresent;
  if (bitmap) form |= kBitmap;
  if (set.one_value) form |= kOneValue;
  out.number(form);
  out.varint(set.n);
  if (!bitmap) out.varint(n_bytes);
  // A mask repeats from row to row and from plane to plane. zstd is fast on it, and far smaller
  // than the forms that need no repeats.
  SectionPlan where = plan;
  if (bitmap && plan.zstd != ZstdUse::never) where.zstd = ZstdUse::always;
  if (!add_section({positions, n_bytes}, where, out, workspace)) return false;
  if (set.one_value) {
    out.number(set.common);
    return !out.failed();
  }
  // Group byte k of all values: exponents and signs repeat, low bits do not.
  auto* shuffled = workspace.area<std::uint8_t>(Slot::transform, set.n * sizeof(T) + kPatchSlack);
  if (shuffled == nullptr) return false;
  std::size_t i = 0;
  set.for_each([&](std::size_t index) {
    for (std::size_t k = 0; k < sizeof(T); ++k) {
      shuffled[k * set.n + i] = static_cast<std::uint8_t>(set.values[index] >> (8 * k));
    }
    ++i;
  });
  return add_section({shuffled, set.n * sizeof(T)}, plan, out, workspace);
}

/// Call visit(index) for the n positions of one set, in ascending order, each below n_values.
/// False if the bytes are invalid; positions before the error have been visited then.
template <class Visitor>
bool for_each_position(std::span<const std::uint8_t> bytes, bool bitmap, std::size_t n_values,
                       std::size_t n, Visitor visit) {
  if (bitmap) {
    std::size_t found = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (unsigned bits = bytes[at]; bits != 0; bits &= bits - 1) {
        const std::size_t index = at * 8 + static_cast<std::size_t>(std::countr_zero(bits));
        if (found++ == n || index >= n_values) return false;
        visit(index);
      }
    }
    return found == n;
  }
  ChunkReader gaps(bytes);
  std::uint64_t next = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::uint64_t gap = gaps.varint();
    if (gaps.failed() || gap >= n_values - next) return false;
    visit(static_cast<std::size_t>(next + gap));
    next += gap + 1;
  }
  return gaps.at_end();
}

}  // namespace

std::size_t patches_bytes_max(std::size_t n_values, std::size_t n_patches,
                              std::size_t element_bytes) {
  const std::size_t positions = section_bytes_max((n_values + 7) / 8) + 64;
  return 2 * positions + section_bytes_max(n_patches * element_bytes);
}

template <class T>
bool write_patches(const T* values, const PatchMap& patches, const SectionPlan& plan,
                   ChunkWriter& out, Workspace& workspace) {
  const std::size_t n = patches.count();
  if (n > 0) {
    // If one bit pattern dominates, the middle patch most likely has it. The first patch may lie
    // at an edge.
    const T common = values[patches.nth(n / 2)];
    PatchSet<T> equal{values, patches, 0, true, true, common, true};
    equal.for_each([&](std::size_t index) { equal.n += values[index] == common ? 1 : 0; });
    equal.all = equal.n == n;
    const bool separate = equal.all || equal.n >= 16;
    if (separate && !write_set(equal, plan, out, workspace)) return false;
    PatchSet<T> others{values, patches, separate ? n - equal.n : n, !separate, false,
                       common, false};
    if (others.n > 0 && !write_set(others, plan, out, workspace)) return false;
  }
  out.number(kEnd);
  return !out.failed();
}

template <class T>
bool apply_patches(ChunkReader& in, T* values, std::size_t n_values, Workspace& workspace,
                   bool* memory_out) {
  for (int set = 0; set < 3; ++set) {
    const auto form = in.number<std::uint8_t>();
    if (form == kEnd) return !in.failed();
    if (set == 2 || (form & kPresent) == 0 || form > 7) return false;
    const std::uint64_t n_read = in.varint();
    if (in.failed() || n_read == 0 || n_read > n_values) return false;
    const auto n = static_cast<std::size_t>(n_read);
    const bool bitmap = (form & kBitmap) != 0;
    const std::uint64_t n_bytes_read = bitmap ? (n_values + 7) / 8 : in.varint();
    if (in.failed() || n_bytes_read > (n_values + 7) / 8) return false;
    const auto n_bytes = static_cast<std::size_t>(n_bytes_read);
    auto* positions = workspace.area<std::uint8_t>(Slot::transform, n_bytes + kPatchSlack);
    *memory_out = positions == nullptr;
    if (*memory_out || !take_section(in, {positions, n_bytes}, nullptr, workspace)) return false;
    const std::span<const std::uint8_t> where(positions, n_bytes);
    if ((form & kOneValue) != 0) {
      const T value = in.number<T>();
      const auto put = [&](std::size_t index) { values[index] = value; };
      if (!for_each_position(where, bitmap, n_values, n, put)) return false;
      continue;
    }
    auto* shuffled = workspace.area<std::uint8_t>(Slot::patch_values, n * sizeof(T) + kPatchSlack);
    *memory_out = shuffled == nullptr;
    if (*memory_out || !take_section(in, {shuffled, n * sizeof(T)}, nullptr, workspace))
      return false;
    const std::uint8_t* next = shuffled;
    const auto put = [&](std::size_t index) {
      T value = 0;
      for (std::size_t k = 0; k < sizeof(T); ++k) {
        value |= static_cast<T>(static_cast<T>(next[k * n]) << (8 * k));
      }
      values[index] = value;
      ++next;
    };
    if (!for_each_position(where, bitmap, n_values, n, put)) return false;
  }
  return false;
}

template bool write_patches(const std::uint32_t*, const PatchMap&, const SectionPlan&, ChunkWriter&,
                            Workspace&);
template bool write_patches(const std::uint64_t*, const PatchMap&, const SectionPlan&, ChunkWriter&,
                            Workspace&);
template bool apply_patches(ChunkReader&, std::uint32_t*, std::size_t, Workspace&, bool*);
template bool apply_patches(ChunkReader&, std::uint64_t*, std::size_t, Workspace&, bool*);

}  // namespace tailrace::trz
