// Form `modelled` of exact chunks: choice of the prediction, contexts, and both directions.

#include "trz/exact/modelled.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "trz/entropy/code_sections.hpp"
#include "trz/predict/lorenzo_pieces.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kModelledSlack = 64;
constexpr std::size_t kModelledHeadBytesMax = 128;
/// Least distance of a code to those that determine its context: so many are read at a time.
constexpr std::size_t kDistanceMin = 64;
constexpr std::size_t kReadMax = 2048;  ///< Most codes read at a time.

/// Contexts gain up to a third of the size without them, which is what the sample estimates.
constexpr double kContextsMayGain = 1.5;
constexpr std::size_t kSampleRows = 32;     ///< Rows, or parts of rows, that the sample has.
constexpr std::size_t kSampleValues = 256;  ///< Values of each.
constexpr int kFloatOrderMin = 2;           ///< Orders 0 and 1 are as good on integers.
constexpr int kFloatOrderMax = 3;

struct ExactPrediction {
  int order = 0;
  bool in_floats = false;
};

/// Distances to the two codes whose sizes determine a context.
struct Distances {
  std::size_t near = kDistanceMin;
  std::size_t far = kDistanceMin;
};

/// Distances of the row and the plane before, in whole rows and planes of at least kDistanceMin.
Distances distances_of(const Extents& extents) {
  const auto at_least = [](std::size_t distance) {
    return (kDistanceMin + distance - 1) / distance * distance;
  };
  Distances distances;
  const std::size_t plane = extents[3] * extents[2];
  if (extents[2] > 1) distances.near = at_least(extents[3]);
  distances.far = distances.near;
  if (extents[1] > 1) distances.far = at_least(plane);
  return distances;
}

/// Bits of the folded code: 0 for code 0, else one more than those of its magnitude.
template <class Code>
std::uint8_t folded_bits(Code code) {
  using Number = std::make_unsigned_t<Code>;
  const auto folded = static_cast<Number>(static_cast<Number>(code) << 1) ^
                      static_cast<Number>(code < 0 ? ~Number{0} : Number{0});
  return static_cast<std::uint8_t>(std::bit_width(static_cast<Number>(folded)));
}

/// Write the contexts of codes begin .. end - 1, given the sizes of all codes before `begin` + the
/// least distance.
template <class Code>
void put_contexts(const std::uint8_t* bits, const Distances& distances, std::size_t begin,
                  std::size_t end, std::uint8_t* contexts) {
  constexpr unsigned shift = sizeof(Code) == 4 ? 1 : 2;  // 32 or 64 bits make contexts 0..32.
  for (std::size_t i = begin; i < end; ++i) {
    const unsigned near = i < distances.near ? 0 : bits[i - distances.near];
    const unsigned far = i < distances.far ? 0 : bits[i - distances.far];
    *contexts++ = static_cast<std::uint8_t>((near + far + 1) >> shift);
  }
}

/// Rows of a chunk of floats in order, each with its neighbours.
class FloatRowWalk {
 public:
  FloatRowWalk(const Extents& extents, int order, std::size_t element_bytes)
      : walk_(make_walk(extents, order)), element_bytes_(element_bytes) {}

  /// Call each(index, n, rows) for all rows; `values` has all rows before the one visited. False if
  /// out of memory.
  template <class Each>
  bool visit(const std::byte* values, Workspace& workspace, Each&& each) const {
    auto* zeros = workspace.area<std::byte>(Slot::rows, walk_.row * element_bytes_);
    if (zeros == nullptr) return false;
    std::memset(zeros, 0, walk_.row * element_bytes_);
    for (std::size_t index = 0; index < walk_.n_values; index += walk_.row) {
      const bool has_above = walk_.order >= 2 && index % walk_.plane != 0;
      const bool has_behind = walk_.order >= 3 && index % walk_.volume >= walk_.plane;
      const auto row_at = [&](bool exists, std::size_t distance) {
        return exists ? values + (index - distance) * element_bytes_ : zeros;
      };
      const FloatRows rows{row_at(has_above, walk_.row), row_at(has_behind, walk_.plane),
                           row_at(has_above && has_behind, walk_.plane + walk_.row)};
      each(index, walk_.row, rows);
    }
    return true;
  }

 private:
  Walk walk_;
  std::size_t element_bytes_;
};

/// Encoder for codes of 32 or 64 bits.
template <class Code>
class ModelledEncoder {
 public:
  ModelledEncoder(const ChunkHead& head, const ExactValues& values, const ExactPlan& plan,
                  Workspace& workspace)
      : head_(head),
        n_(head.n_values),
        element_bytes_(dtype_bytes(values.dtype)),
        data_(static_cast<const std::byte*>(values.data)),
        extents_(values.extents),
        kernels_(exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(values.dtype)]),
        plan_(plan),
        map_(word_map(plan.origin, plan.factor)),
        workspace_(workspace) {}

  ExactAttempt encode(ZstdUse zstd, std::size_t to_beat) {
    auto* bits = workspace_.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n_));
    codes_ = workspace_.area<Code>(Slot::transform_values, n_ + kModelledSlack);
    if (bits == nullptr || codes_ == nullptr) return {{}, true};
    PatchMap patches(bits, n_);
    if (plan_.has_special && !hold_special(patches)) return {{}, true};
    const ExactPrediction best = choose();
    if (best_bits_ / 8 > kContextsMayGain * static_cast<double>(to_beat)) return {};
    auto* contexts = workspace_.area<std::uint8_t>(Slot::widths, 2 * n_ + kModelledSlack);
    if (contexts == nullptr || !predict(best)) return {{}, true};
    const Distances distances = distances_of(extents_);
    std::uint8_t* sizes = contexts + n_;
    for (std::size_t i = 0; i < n_; ++i) sizes[i] = folded_bits(codes_[i]);
    put_contexts<Code>(sizes, distances, 0, n_, contexts);

    const std::size_t room = kModelledHeadBytesMax + modelled_bytes_max(n_, sizeof(Code)) +
                             patches_bytes_max(n_, patches.count(), element_bytes_);
    auto* chunk = workspace_.area<std::uint8_t>(Slot::modelled, room + kModelledSlack);
    if (chunk == nullptr) return {{}, true};
    ChunkWriter out({chunk, room});
    write_head(head_, out);
    out.number(static_cast<std::uint8_t>(static_cast<unsigned>(ExactForm::modelled) |
                                         (best.in_floats ? kFloatsFlag : 0U)));
    out.number(static_cast<std::uint8_t>(best.order));
    if (!best.in_floats) {
      out.number(plan_.origin);
      out.varint(plan_.factor);
    }
    out.varint(distances.near);
    out.varint(distances.far);
    if (!write_modelled(codes_, contexts, n_, out, workspace_)) return {{}, true};
    const SectionPlan sections{zstd, 1, nullptr};
    bool done = true;
    if (element_bytes_ == 4) {
      done = write_patches(reinterpret_cast<const std::uint32_t*>(original_), patches, sections,
                           out, workspace_);
    } else if (element_bytes_ == 8) {
      done = write_patches(reinterpret_cast<const std::uint64_t*>(original_), patches, sections,
                           out, workspace_);
    }
    if (!done || out.failed()) return {{}, true};
    return {{chunk, out.n_written()}, false};
  }

 private:
  /// Copy the values, with each special one replaced by the value before it, and mark these.
  bool hold_special(PatchMap& patches) {
    auto* held = workspace_.area<std::byte>(Slot::transform, n_ * element_bytes_ + kModelledSlack);
    if (held == nullptr) return false;
    std::memcpy(held, data_, n_ * element_bytes_);
    auto* raw = reinterpret_cast<Code*>(held);  // Only types of 32 and 64 bits have special values.
    // At the front, the value of the plan's origin.
    Code before = 0;
    const std::int32_t word = 0;
    const std::int64_t wide = 0;
    if constexpr (sizeof(Code) == 4) {
      kernels_.from_words(&word, 1, map_, &before);
    } else {
      kernels_.from_wide(&wide, 1, map_, &before);
    }
    std::array<std::uint64_t, kPieceValues / 64> marks;
    for (std::size_t begin = 0; begin < n_; begin += kPieceValues) {
      const std::size_t n = std::min(kPieceValues, n_ - begin);
      if (kernels_.find(data_ + begin * element_bytes_, n, plan_.special, marks.data())) {
        hold_marked(marks.data(), n, before, raw + begin,
                    [&](std::size_t i) { patches.mark(begin + i); });
      }
      before = raw[begin + n - 1];
    }
    data_ = held;
    return true;
  }

  void load(std::size_t index, std::size_t n, Code* words) const {
    const std::byte* from = data_ + index * element_bytes_;
    if constexpr (sizeof(Code) == 4) {
      kernels_.to_words(from, n, map_, words);
    } else {
      kernels_.to_wide(from, n, map_, words);
    }
  }

  /// Codes of n values from `begin` on, all in one row, predicted on integers; the first has no
  /// value before it.
  void integer_codes(std::size_t begin, std::size_t n, int order, Code* codes) const {
    using Number = std::make_unsigned_t<Code>;
    const Walk walk = make_walk(extents_, order);
    std::array<Number, kSampleValues> sums{};
    for (unsigned corner = 0; corner < 8; ++corner) {
      const bool above = (corner & 1) != 0;
      const bool behind = (corner & 2) != 0;
      const bool before = (corner & 4) != 0;
      if ((above && (walk.order < 2 || begin % walk.plane < walk.row)) ||
          (behind && (walk.order < 3 || begin % walk.volume < walk.plane)) ||
          (before && (walk.order < 4 || begin < walk.volume))) {
        continue;
      }
      const std::size_t back =
          (above ? walk.row : 0) + (behind ? walk.plane : 0) + (before ? walk.volume : 0);
      std::array<Code, kSampleValues> words;
      load(begin - back, n, words.data());
      const Number sign = std::popcount(corner) % 2 == 0 ? 1 : static_cast<Number>(-1);
      for (std::size_t i = 0; i < n; ++i) {
        sums[i] = static_cast<Number>(sums[i] + static_cast<Number>(words[i]) * sign);
      }
    }
    codes[0] = static_cast<Code>(sums[0]);
    for (std::size_t i = 1; i < n; ++i) {
      codes[i] =
          static_cast<Code>(walk.order == 0 ? sums[i] : static_cast<Number>(sums[i] - sums[i - 1]));
    }
  }

  /// Codes of n values from `begin` on, all in one row, predicted in floating point; the first has
  /// no value before it.
  void float_codes(std::size_t begin, std::size_t n, int order, Code* codes) const {
    alignas(64) std::array<std::byte, kSampleValues * sizeof(Code)> zeros{};
    const Walk walk = make_walk(extents_, order);
    const bool above = walk.order >= 2 && begin % walk.plane >= walk.row;
    const bool behind = walk.order >= 3 && begin % walk.volume >= walk.plane;
    const auto row_at = [&](bool exists, std::size_t distance) {
      return exists ? data_ + (begin - distance) * element_bytes_ : zeros.data();
    };
    const FloatRows rows{row_at(above, walk.row), row_at(behind, walk.plane),
                         row_at(above && behind, walk.plane + walk.row)};
    kernels_.difference_floats(data_ + begin * element_bytes_, rows, n, codes);
  }

  /// Bits of all codes without contexts, estimated from those of a sample.
  double bits_of(const Code* codes, std::size_t n) const {
    std::array<std::uint32_t, 8 * sizeof(Code) + 1> counts{};
    double raw = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned size = folded_bits(codes[i]);
      ++counts[size];
      raw += size > 1 ? size - 1 : 0;
    }
    double entropy = 0;
    for (const std::uint32_t count : counts) {
      if (count != 0) {
        entropy += count * (log2_of(static_cast<double>(n)) - log2_of(count));
      }
    }
    return (entropy + raw) / static_cast<double>(n) * static_cast<double>(n_);
  }

  /// The prediction whose codes are smallest in a sample. Sets best_bits_.
  ExactPrediction choose() {
    int axes = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (extents_[axis] > 1) {
        axes = static_cast<int>(4 - axis);
        break;
      }
    }
    const std::size_t row = extents_[3];
    const std::size_t part = std::min(kSampleValues, row);
    const std::size_t n_rows = n_ / row;
    const std::size_t n_parts =
        std::min(kSampleRows * kSampleValues / part, (n_ + part - 1) / part);
    std::array<std::size_t, kSampleRows * kSampleValues> begins;
    std::uint64_t state = 0x9E3779B97F4A7C15ULL;
    for (std::size_t k = 0; k < n_parts; ++k) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t y = std::min(
          n_rows - 1, (2 * k + static_cast<std::size_t>(state >> 63)) * n_rows / (2 * n_parts));
      begins[k] = y * row + static_cast<std::size_t>((state >> 20) % (row - part + 1));
    }
    ExactPrediction best;
    best_bits_ = -1;
    const auto consider = [&](const ExactPrediction& prediction) {
      std::array<Code, kSampleRows * kSampleValues> codes;
      std::size_t n = 0;
      for (std::size_t k = 0; k < n_parts; ++k) {
        std::array<Code, kSampleValues> here;
        if (prediction.in_floats) {
          float_codes(begins[k], part, prediction.order, here.data());
        } else {
          integer_codes(begins[k], part, prediction.order, here.data());
        }
        // The first one lacks its neighbour, unless rows are that short.
        const std::size_t skipped = part > 1 ? 1 : 0;
        std::memcpy(codes.data() + n, here.data() + skipped, (part - skipped) * sizeof(Code));
        n += part - skipped;
      }
      const double bits = bits_of(codes.data(), n);
      if (best_bits_ < 0 || bits < best_bits_) {
        best = prediction;
        best_bits_ = bits;
      }
    };
    for (int order = 0; order <= axes; ++order) consider({order, false});
    if (kernels_.difference_floats != nullptr) {
      for (int order = kFloatOrderMin; order <= std::min(axes, kFloatOrderMax); ++order) {
        consider({order, true});
      }
    }
    return best;
  }

  /// Compute all codes. False if out of memory.
  bool predict(const ExactPrediction& prediction) {
    if (prediction.in_floats) {
      const FloatRowWalk walk(extents_, prediction.order, element_bytes_);
      return walk.visit(
          data_, workspace_, [&](std::size_t index, std::size_t n, const FloatRows& rows) {
            kernels_.difference_floats(data_ + index * element_bytes_, rows, n, codes_ + index);
          });
    }
    const Walk walk = make_walk(extents_, prediction.order);
    if (walk.order == 0) {
      load(0, n_, codes_);
      return true;
    }
    const LorenzoKernels& kernels = lorenzo_kernels(workspace_.isa());
    Pieces<Code> pieces(walk, workspace_);
    if (!pieces.ok()) return false;
    std::array<std::int32_t, 2 * (kPieceValues + kModelledSlack)> halves;
    std::int32_t* high = halves.data() + kPieceValues + kModelledSlack;
    while (PieceOf<Code>* piece = pieces.next()) {
      load(pieces.index(), piece->n, piece->q);
      if constexpr (sizeof(Code) == 4) {
        kernels.difference(*piece, halves.data());
        std::memcpy(codes_ + pieces.index(), halves.data(), piece->n * sizeof(Code));
      } else {
        kernels.difference_wide(*piece, halves.data(), high);
        for (std::size_t i = 0; i < piece->n; ++i) {
          codes_[pieces.index() + i] = static_cast<Code>(
              (static_cast<std::uint64_t>(high[i]) << 32) + static_cast<std::uint64_t>(halves[i]));
        }
      }
    }
    return true;
  }

  const ChunkHead& head_;
  std::size_t n_;
  std::size_t element_bytes_;
  const std::byte* data_;
  const std::byte* original_ = data_;
  const Extents& extents_;
  const WordKernels& kernels_;
  const ExactPlan& plan_;
  WordMap map_;
  Workspace& workspace_;
  Code* codes_ = nullptr;
  double best_bits_ = 0;
};

/// Read all codes. Contexts depend on codes at least one reading before.
template <class Code>
DecodeFailure read_codes(ChunkReader& in, const Distances& distances, std::size_t n, Code* codes,
                         Workspace& workspace) {
  ModelReader reader;
  if (!reader.open(in, workspace)) {
    return reader.memory_out() ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }
  auto* sizes = workspace.area<std::uint8_t>(Slot::widths, n + kModelledSlack);
  if (sizes == nullptr) return DecodeFailure::memory_out;
  std::array<std::uint8_t, kReadMax> contexts;
  const std::size_t n_most = std::min({distances.near, distances.far, kReadMax});
  for (std::size_t begin = 0; begin < n; begin += n_most) {
    const std::size_t end = std::min(n, begin + n_most);
    put_contexts<Code>(sizes, distances, begin, end, contexts.data());
    reader.read(contexts.data(), end - begin, codes + begin);
    for (std::size_t i = begin; i < end; ++i) sizes[i] = folded_bits(codes[i]);
  }
  return reader.finished() ? DecodeFailure::none : DecodeFailure::corrupt;
}

/// Sum codes to words, and convert these to values. False if out of memory.
template <class Code>
bool sum_words(const Code* codes, const ExactPlan& plan, const ChunkHead& head, std::byte* values,
               Workspace& workspace) {
  const std::size_t element_bytes = dtype_bytes(head.dtype);
  const WordKernels& words =
      exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(head.dtype)];
  const WordMap map = word_map(plan.origin, plan.factor);
  const auto put = [&](const Code* q, std::size_t n, std::size_t index) {
    std::byte* to = values + index * element_bytes;
    if constexpr (sizeof(Code) == 4) {
      words.from_words(q, n, map, to);
    } else {
      words.from_wide(q, n, map, to);
    }
  };
  const Walk walk = make_walk(head.extents, plan.order);
  if (walk.order == 0) {
    put(codes, head.n_values, 0);
    return true;
  }
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  Pieces<Code> pieces(walk, workspace);
  if (!pieces.ok()) return false;
  while (PieceOf<Code>* piece = pieces.next()) {
    const std::size_t index = pieces.index();
    if constexpr (sizeof(Code) == 4) {
      kernels.sum(*piece, codes + index);
    } else {
      std::array<std::int32_t, 2 * (kPieceValues + kModelledSlack)> halves{};
      std::int32_t* high = halves.data() + kPieceValues + kModelledSlack;
      for (std::size_t i = 0; i < piece->n; ++i) {
        const auto code = static_cast<std::uint64_t>(codes[index + i]);
        halves[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(code));
        high[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>((code + 0x80000000U) >> 32));
      }
      kernels.sum_wide(*piece, halves.data(), high);
    }
    put(piece->q, piece->n, index);
  }
  return true;
}

template <class Code>
DecodeFailure decode_as_codes(ChunkReader& in, const ChunkHead& head, bool in_floats,
                              std::span<std::byte> values, Workspace& workspace) {
  ExactPlan plan;
  plan.order = in.number<std::uint8_t>();
  if (!in_floats) {
    plan.origin = in.number<std::uint64_t>();
    plan.factor = in.varint();
  }
  const std::uint64_t near = in.varint();
  const std::uint64_t far = in.varint();
  constexpr std::uint64_t distance_max = std::uint64_t{1} << 56;
  const bool orders = in_floats ? plan.order >= 1 && plan.order <= kFloatOrderMax : plan.order <= 4;
  if (in.failed() || !orders || plan.factor < 1 || near < kDistanceMin || far < kDistanceMin ||
      near > distance_max || far > distance_max) {
    return DecodeFailure::corrupt;
  }
  auto* codes = workspace.area<Code>(Slot::transform_values, head.n_values + kModelledSlack);
  if (codes == nullptr) return DecodeFailure::memory_out;
  // A longer distance than all values means the same: none is that far before another.
  const auto in_chunk = [&](std::uint64_t distance) {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(distance, std::uint64_t{head.n_values} + kReadMax));
  };
  const Distances distances{in_chunk(near), in_chunk(far)};
  const DecodeFailure failure = read_codes(in, distances, head.n_values, codes, workspace);
  if (failure != DecodeFailure::none) return failure;
  if (!in_floats) {
    return sum_words(codes, plan, head, values.data(), workspace) ? DecodeFailure::none
                                                                  : DecodeFailure::memory_out;
  }
  const std::size_t element_bytes = dtype_bytes(head.dtype);
  const WordKernels& kernels =
      exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(head.dtype)];
  const FloatRowWalk walk(head.extents, plan.order, element_bytes);
  const bool done = walk.visit(
      values.data(), workspace, [&](std::size_t index, std::size_t n, const FloatRows& rows) {
        kernels.sum_floats(codes + index, rows, n, values.data() + index * element_bytes);
      });
  return done ? DecodeFailure::none : DecodeFailure::memory_out;
}

}  // namespace

ExactAttempt encode_modelled_chunk(const ChunkHead& head, const ExactValues& values,
                                   const ExactPlan& plan, ZstdUse zstd, std::size_t to_beat,
                                   Workspace& workspace) {
  if (dtype_bytes(values.dtype) == 8) {
    return ModelledEncoder<std::int64_t>(head, values, plan, workspace).encode(zstd, to_beat);
  }
  return ModelledEncoder<std::int32_t>(head, values, plan, workspace).encode(zstd, to_beat);
}

DecodeFailure decode_modelled(ChunkReader& in, const ChunkHead& head, bool in_floats,
                              std::span<std::byte> values, Workspace& workspace) {
  if (in_floats && !is_floating(head.dtype)) return DecodeFailure::corrupt;
  return dtype_bytes(head.dtype) == 8
             ? decode_as_codes<std::int64_t>(in, head, in_floats, values, workspace)
             : decode_as_codes<std::int32_t>(in, head, in_floats, values, workspace);
}

}  // namespace tailrace::trz
