// The comparison behind `tailrace verify`: two arrays, box by box, on any number of ranks.
//
// Each rank reads the boxes dealt to it from both files, so nothing is held but two boxes at a
// time. What it finds are plain numbers, one VerifyFinding per field, which merge in any order.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "describe/input_file.hpp"
#include "core/box.hpp"
#include "core/comm.hpp"
#include "core/dtype.hpp"
#include "core/error_bound.hpp"

namespace tailrace::cli {

/// One field to compare.
struct VerifyTask {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::size_t original_index = 0;    ///< Into the original's fields().
  std::size_t compressed_index = 0;  ///< Into the compressed file's fields().
  Shape box_shape;  ///< How much is read at once: whole chunks of the compressed file.
  std::optional<double> fill_value;
  ErrorBound asked;  ///< psnr: checked as a PSNR; else as the bound below.
  double absolute_bound = 0;
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  bool bound_known = false;    ///< False: neither the file nor the user says a bound.
  bool resolve_range = false;  ///< The bound is relative to a range that must be measured.
  std::string codec;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;

  /// What errors are held to, in their unit; 0: exact, infinite: nothing.
  double bound() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
  bool psnr_asked() const { return asked.mode == BoundMode::psnr && resolve_range; }
};

/// A value that is not what it should be. Values are kept as their bytes, so that none is rounded.
struct Offender {
  std::uint64_t index = 0;  ///< Row-major in the field.
  std::uint64_t original_bits = 0;
  std::uint64_t decoded_bits = 0;
};

/// What the comparison of (a part of) one field found. Trivially copyable: it travels as bytes.
struct VerifyFinding {
  static constexpr std::size_t most_offenders = 5;
  ChunkComparison comparison;
  ValueRange range;
  Offender worst;                                ///< Valid if comparison.worst_index is.
  std::array<Offender, most_offenders> first{};  ///< The first ones, by index.
  std::uint64_t n_first = 0;

  void merge(const VerifyFinding& other);
  /// In dB: 20 log10(range / root mean square error); infinite if nothing differs.
  double psnr() const;
};

/// A whole number of chunks that makes reads of some MiB; `chunk_shape` may be empty (no chunks).
Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype);

/// Bytes read so far and in all, of this rank's share.
using VerifyProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Least and greatest value of the originals of those tasks that need them. Collective.
/// Resolves their absolute_bound.
Status resolve_ranges(InputFile& original, Comm& comm, std::span<VerifyTask> tasks);

/// Compare all tasks. Collective: findings at rank 0 are those of all ranks, elsewhere the rank's
/// own. @error the reading failure of the lowest failing rank, on every rank.
Result<std::vector<VerifyFinding>> compare_fields(InputFile& original, InputFile& compressed,
                                                  Comm& comm, std::span<const VerifyTask> tasks,
                                                  const VerifyProgress& progress);

/// The value that these bytes are, with as many digits as tell it from every other.
std::string value_text(DType dtype, std::uint64_t bits);
/// |decoded - original| of an offender as a double.
double offender_error(DType dtype, const Offender& offender);
/// The same as a fraction of |original|; infinite for a zero.
double offender_relative_error(DType dtype, const Offender& offender);

}  // namespace tailrace::cli
