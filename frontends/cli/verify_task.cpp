// Reading, comparing, merging.

#include "verify_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "chunk_deal.hpp"
#include "describe/input_file.hpp"

namespace tailrace::cli {
namespace {

static_assert(std::is_trivially_copyable_v<VerifyFinding>, "findings travel as bytes");

/// Reads of about this size amortise the call; two of them are held at a time.
constexpr std::uint64_t read_bytes = 4U << 20;

std::uint64_t bits_at(std::span<const std::byte> values, std::uint64_t index, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, values.data() + index * bytes, bytes);
  return bits;
}

template <class T>
T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Call `visit` with the bits read as a value of `dtype`.
template <class Visit>
auto with_value(DType dtype, std::uint64_t bits, Visit&& visit) {
  switch (dtype) {
    case DType::f32: return visit(value_of<float>(bits));
    case DType::f64: return visit(value_of<double>(bits));
    case DType::i8: return visit(int{value_of<std::int8_t>(bits)});
    case DType::i16: return visit(int{value_of<std::int16_t>(bits)});
    case DType::i32: return visit(value_of<std::int32_t>(bits));
    case DType::i64: return visit(value_of<std::int64_t>(bits));
    case DType::u8: return visit(unsigned{value_of<std::uint8_t>(bits)});
    case DType::u16: return visit(unsigned{value_of<std::uint16_t>(bits)});
    case DType::u32: return visit(value_of<std::uint32_t>(bits));
    case DType::u64: break;
  }
  return visit(bits);
}

/// Both arrays' values in one box of one field.
struct ComparedBox {
  const VerifyTask& task;
  Box box;
  std::span<const std::byte> original;
  std::span<const std::byte> decoded;

  std::size_t element_bytes() const { return dtype_bytes(task.dtype); }
  ChunkComparison compare(std::uint64_t first, std::uint64_t count) const {
    const std::size_t bytes = element_bytes();
    const auto from = original.subspan(first * bytes, count * bytes);
    const auto to = decoded.subspan(first * bytes, count * bytes);
    if (task.pointwise_bound > 0) {
      return compare_pointwise(task.dtype, from, to, task.pointwise_bound, task.fill_value);
    }
    return compare_values(task.dtype, from, to, task.absolute_bound, task.fill_value);
  }
  /// Position in the whole field of a position in the box.
  std::uint64_t field_index(std::uint64_t index) const {
    std::uint64_t result = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = box.rank(); d-- > 0;) {
      result += (box.start[d] + index % box.count[d]) * stride;
      index /= box.count[d];
      stride *= task.shape[d];
    }
    return result;
  }
  Offender offender(std::uint64_t index) const {
    return {field_index(index), bits_at(original, index, element_bytes()),
            bits_at(decoded, index, element_bytes())};
  }
};

/// Collect the first offenders among `count` values by halving: the rule of what is one is
/// compare_values' alone, and parts without any cost one comparison.
void find_offenders(const ComparedBox& box, std::uint64_t first, std::uint64_t count,
                    VerifyFinding& finding) {
  if (finding.n_first == VerifyFinding::most_offenders) return;
  if (box.compare(first, count).within_bound()) return;
  if (count == 1) {
    finding.first[finding.n_first++] = box.offender(first);
    return;
  }
  find_offenders(box, first, count / 2, finding);
  find_offenders(box, first + count / 2, count - count / 2, finding);
}

VerifyFinding compare_box(const ComparedBox& box) {
  VerifyFinding finding;
  const std::uint64_t count = box.box.n_elements();
  finding.comparison = box.compare(0, count);
  finding.range = value_range(box.task.dtype, box.original, box.task.fill_value);
  if (!finding.comparison.within_bound()) find_offenders(box, 0, count, finding);
  ChunkComparison& comparison = finding.comparison;
  if (comparison.worst_index != ChunkComparison::no_index) {
    finding.worst = box.offender(comparison.worst_index);
    comparison.worst_index = finding.worst.index;
  }
  if (comparison.first_bad_index != ChunkComparison::no_index) {
    comparison.first_bad_index = box.field_index(comparison.first_bad_index);
  }
  return finding;
}

std::vector<DealtField> dealt_fields(std::span<const VerifyTask> tasks) {
  std::vector<DealtField> dealt;
  for (const VerifyTask& task : tasks) {
    const ChunkGrid grid{task.shape, task.box_shape};
    dealt.push_back({grid.n_chunks(), task.raw_bytes});
  }
  return dealt;
}

/// Call `visit(task index, box)` for all boxes of this rank; stops at the first failure.
template <class Visit>
Status for_each_own_box(const Comm& comm, std::span<const VerifyTask> tasks, Visit&& visit) {
  for (const ChunkRun& run : deal_chunks(dealt_fields(tasks), comm.rank(), comm.n_ranks())) {
    const VerifyTask& task = tasks[run.field_index];
    const ChunkGrid grid{task.shape, task.box_shape};
    for (std::uint64_t chunk = run.first_chunk; chunk < run.end_chunk; ++chunk) {
      TAILRACE_TRY(visit(run.field_index, grid.clipped_box(chunk)));
    }
  }
  return Status();
}

std::uint64_t box_bytes(const VerifyTask& task, const Box& box) {
  return box.n_elements() * dtype_bytes(task.dtype);
}

/// All ranks' findings at rank 0.
void gather_findings(Comm& comm, std::vector<VerifyFinding>& findings) {
  const std::vector<Bytes> gathered = comm.gather(std::as_bytes(std::span(findings)), 0);
  for (std::size_t r = 1; r < gathered.size(); ++r) {
    for (std::size_t f = 0; f < findings.size(); ++f) {
      VerifyFinding other;
      std::memcpy(&other, gathered[r].data() + f * sizeof other, sizeof other);
      findings[f].merge(other);
    }
  }
}

}  // namespace

void VerifyFinding::merge(const VerifyFinding& other) {
  const bool other_is_worse = other.comparison.worst_index != ChunkComparison::no_index &&
                              (comparison.worst_index == ChunkComparison::no_index ||
                               other.comparison.largest_error > comparison.largest_error);
  if (other_is_worse) worst = other.worst;
  comparison.merge(other.comparison);
  range.merge(other.range);
  std::array<Offender, 2 * most_offenders> both{};
  const auto middle = std::copy_n(first.begin(), n_first, both.begin());
  const auto end = std::copy_n(other.first.begin(), other.n_first, middle);
  std::sort(both.begin(), end,
            [](const Offender& a, const Offender& b) { return a.index < b.index; });
  n_first = std::min<std::uint64_t>(n_first + other.n_first, most_offenders);
  std::copy_n(both.begin(), n_first, first.begin());
}

double VerifyFinding::psnr() const {
  if (comparison.n_finite == 0 || comparison.sum_squared_errors == 0) {
    return std::numeric_limits<double>::infinity();
  }
  const double mean = comparison.sum_squared_errors / static_cast<double>(comparison.n_finite);
  return 20 * std::log10((range.greatest - range.least) / std::sqrt(mean));
}

Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype) {
  Shape box(shape.size(), 1);
  for (std::size_t d = 0; d < shape.size() && d < chunk_shape.size(); ++d) {
    box[d] = std::clamp<std::uint64_t>(chunk_shape[d], 1, std::max<std::uint64_t>(shape[d], 1));
  }
  // Whole chunks are joined along the fastest dimensions first, where they lie side by side.
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t now_bytes = n_elements(box) * dtype_bytes(dtype);
    if (now_bytes >= read_bytes || box[d] >= shape[d]) continue;
    const std::uint64_t times = std::max<std::uint64_t>(read_bytes / now_bytes, 1);
    box[d] = std::min(box[d] * times, shape[d]);
  }
  return box;
}

Status resolve_ranges(InputFile& original, Comm& comm, std::span<VerifyTask> tasks) {
  const auto needs = [](const VerifyTask& task) {
    return task.resolve_range && !task.psnr_asked();
  };
  if (std::none_of(tasks.begin(), tasks.end(), needs)) return Status();
  std::vector<VerifyTask> subset;
  std::vector<std::size_t> positions;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (!needs(tasks[t])) continue;
    subset.push_back(tasks[t]);
    positions.push_back(t);
  }
  std::vector<ValueRange> ranges(subset.size());
  std::vector<std::byte> values;
  const Status mine = for_each_own_box(comm, subset, [&](std::size_t t, const Box& box) {
    values.resize(box_bytes(subset[t], box));
    TAILRACE_TRY(original.read(subset[t].original_index, box, values));
    ranges[t].merge(value_range(subset[t].dtype, values, subset[t].fill_value));
    return Status();
  });
  TAILRACE_TRY(comm.agree(mine));
  std::vector<double> least;
  std::vector<double> greatest;
  for (const ValueRange& range : ranges) {
    least.push_back(range.least);
    greatest.push_back(range.greatest);
  }
  comm.allreduce(least, Reduction::min);
  comm.allreduce(greatest, Reduction::max);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool empty = least[i] > greatest[i];
    tasks[positions[i]].absolute_bound =
        empty ? 0 : absolute_bound(subset[i].asked, least[i], greatest[i]);
  }
  return Status();
}

Result<std::vector<VerifyFinding>> compare_fields(InputFile& original, InputFile& compressed,
                                                  Comm& comm, std::span<const VerifyTask> tasks,
                                                  const VerifyProgress& progress) {
  std::uint64_t total_bytes = 0;
  Status mine = for_each_own_box(comm, tasks, [&](std::size_t t, const Box& box) {
    total_bytes += box_bytes(tasks[t], box);
    return Status();
  });
  std::vector<VerifyFinding> findings(tasks.size());
  std::vector<std::byte> of_original;
  std::vector<std::byte> of_compressed;
  std::uint64_t done_bytes = 0;
  mine = for_each_own_box(comm, tasks, [&](std::size_t t, const Box& box) {
    const VerifyTask& task = tasks[t];
    of_original.resize(box_bytes(task, box));
    of_compressed.resize(of_original.size());
    TAILRACE_TRY(original.read(task.original_index, box, of_original));
    TAILRACE_TRY(compressed.read(task.compressed_index, box, of_compressed));
    findings[t].merge(compare_box({task, box, of_original, of_compressed}));
    done_bytes += of_original.size();
    progress(done_bytes, total_bytes);
    return Status();
  });
  TAILRACE_TRY(comm.agree(mine));
  gather_findings(comm, findings);
  return findings;
}

std::string value_text(DType dtype, std::uint64_t bits) {
  return with_value(dtype, bits, [](auto value) { return fmt::format("{}", value); });
}

double offender_error(DType dtype, const Offender& offender) {
  return with_value(dtype, offender.original_bits, [&](auto original) {
    return with_value(dtype, offender.decoded_bits, [&](auto decoded) {
      const auto exact = static_cast<long double>(decoded) - static_cast<long double>(original);
      return static_cast<double>(exact < 0 ? -exact : exact);
    });
  });
}

double offender_relative_error(DType dtype, const Offender& offender) {
  const double error = offender_error(dtype, offender);
  return with_value(dtype, offender.original_bits, [&](auto original) {
    return error == 0 ? 0 : error / std::fabs(static_cast<double>(original));
  });
}

}  // namespace tailrace::cli
