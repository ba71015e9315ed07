// Preparation of datasets, fill values, and reads of contiguous arrays.

#include "chunk/read_dataset.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "chunk/stored_chunk.hpp"
#include "core/byte_order.hpp"
#include "core/checked_product.hpp"
#include "hdf5/stored_codec.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

/// Limits on one read of several rows, and on its gaps: a system call whose bytes are in the page
/// cache costs as much as copying some KiB.
constexpr std::uint64_t kJointReadBytesMax = 1U << 20;
constexpr std::uint64_t kContiguousGapMax = 16U << 10;

/// Fill with repetitions of one element; empty: zeros.
void repeat_fill(const Bytes& element, std::span<std::byte> values) {
  if (element.empty()) {
    std::memset(values.data(), 0, values.size());
    return;
  }
  std::memcpy(values.data(), element.data(), element.size());
  for (std::size_t done = element.size(); done < values.size();) {
    const std::size_t n = std::min(done, values.size() - done);
    std::memcpy(values.data() + done, values.data(), n);
    done += n;
  }
}

/// Reads a slab of an array that is row-major in the file.
class ContiguousRead {
 public:
  ContiguousRead(const ChunkFile& file, const PlainArray& array, const Slab& slab,
                 std::uint64_t gap_bytes, std::byte* values)
      : file_(file),
        array_(array),
        slab_(slab),
        gap_bytes_(std::min(gap_bytes, kContiguousGapMax)),
        values_(values) {
    const Shape& shape = array.shape;
    std::uint64_t step = array.element_bytes;
    std::uint64_t slab_step = array.element_bytes;
    for (std::size_t d = shape.size(); d-- > 0;) {
      steps_[d] = step;
      slab_steps_[d] = slab_step;
      step *= shape[d];
      slab_step *= slab.count[d];
    }
    // Span of an entry of each dimension in the file, from its first to its last byte.
    std::uint64_t span = array.element_bytes;
    for (std::size_t d = shape.size(); d-- > 0;) {
      entry_spans_[d] = span;
      span += (slab.count[d] - 1) * steps_[d] * slab.stride_of(d);
      joined_[d] = d + 1 == shape.size() || joined_[d + 1];
      const std::uint64_t gap =
          slab.count[d] == 1 ? 0 : steps_[d] * slab.stride_of(d) - entry_spans_[d];
      joined_[d] = joined_[d] && gap <= gap_bytes_;
    }
  }

  Status run() {
    std::uint64_t at = array_.address;
    for (std::size_t d = 0; d < slab_.rank(); ++d) at += slab_.start[d] * steps_[d];
    return read(0, at, values_);
  }

  std::uint64_t fetched_bytes = 0;
  std::uint64_t n_reads = 0;

 private:
  /// Read all entries of dimension `d` and those below; the first element is at `address`.
  Status read(std::size_t d, std::uint64_t address, std::byte* to) {
    if (d == slab_.rank()) return fetch(address, {to, array_.element_bytes});
    const std::uint64_t stride = steps_[d] * slab_.stride_of(d);
    const std::uint64_t span = entry_spans_[d] + (slab_.count[d] - 1) * stride;
    const std::uint64_t n_bytes = slab_steps_[d] * slab_.count[d];
    if (span == n_bytes) return fetch(address, {to, n_bytes});
    if (!joined_[d]) return each(d, address, stride, to);
    // Number of entries that fit one read.
    const std::uint64_t n_joint = std::max<std::uint64_t>(1, kJointReadBytesMax / stride);
    if (n_joint == 1 && d + 1 < slab_.rank()) return each(d, address, stride, to);
    for (std::uint64_t i = 0; i < slab_.count[d]; i += n_joint) {
      const std::uint64_t n = std::min(n_joint, slab_.count[d] - i);
      TAILRACE_TRY(read_joint(d, n, address + i * stride, stride, to + i * slab_steps_[d]));
    }
    return Status();
  }

  Status each(std::size_t d, std::uint64_t address, std::uint64_t stride, std::byte* to) {
    for (std::uint64_t i = 0; i < slab_.count[d]; ++i) {
      TAILRACE_TRY(read(d + 1, address + i * stride, to + i * slab_steps_[d]));
    }
    return Status();
  }

  /// Read `n` entries of dimension d in one read.
  Status read_joint(std::size_t d, std::uint64_t n, std::uint64_t address, std::uint64_t stride,
                    std::byte* to) {
    const std::uint64_t span = entry_spans_[d] + (n - 1) * stride;
    if (scratch_.capacity() < span) scratch_ = Buffer(span);
    if (!scratch_.allocated()) {
      return Status(Code::out_of_memory,
                    "not enough memory for " + std::to_string(span) + " bytes");
    }
    TAILRACE_TRY(fetch(address, {scratch_.data(), span}));
    pick(d, n, scratch_.data(), to);
    return Status();
  }

  void pick(std::size_t d, std::uint64_t n, const std::byte* from, std::byte* to) {
    const std::uint64_t stride = steps_[d] * slab_.stride_of(d);
    const bool innermost = d + 1 == slab_.rank();
    if (innermost && stride == array_.element_bytes) {
      std::memcpy(to, from, n * stride);
      return;
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      if (innermost) {
        std::memcpy(to + i * slab_steps_[d], from + i * stride, array_.element_bytes);
      } else {
        pick(d + 1, slab_.count[d + 1], from + i * stride, to + i * slab_steps_[d]);
      }
    }
  }

  Status fetch(std::uint64_t address, std::span<std::byte> bytes) {
    ++n_reads;
    fetched_bytes += bytes.size();
    return file_.read_at(address, bytes);
  }

  const ChunkFile& file_;
  const PlainArray& array_;
  const Slab& slab_;
  std::uint64_t gap_bytes_;
  std::byte* values_;
  std::array<std::uint64_t, kMaxRank + 1> steps_{};
  std::array<std::uint64_t, kMaxRank + 1> slab_steps_{};
  std::array<std::uint64_t, kMaxRank + 1> entry_spans_{};
  /// True if gaps in and below this dimension are small.
  std::array<bool, kMaxRank + 1> joined_{};
  Buffer scratch_;
};

}  // namespace

void ReadDataset::make_native(std::span<std::byte> values) const {
  if (listed->swapped) swap_elements(values, element_bytes);
}

std::string ReadDataset::chunk_text(const StoredChunk& chunk) const {
  return name() + ": chunk " + std::to_string(chunk.chunk_index) + " " +
         box_text(grid.clipped_box(chunk.chunk_index)) + " at address " +
         std::to_string(chunk.extent.address) + " (" + std::to_string(chunk.extent.encoded_bytes) +
         " bytes)";
}

bool ReadDataset::is_raw(const StoredChunk& chunk) const {
  return is_raw_chunk(chunk.filter_mask, listed->storage.filters.size());
}

Status ReadDataset::check_chunk(const ChunkFile& file, const StoredChunk& chunk) const {
  const Extent& extent = chunk.extent;
  if (extent.address > file.file_bytes() ||
      extent.encoded_bytes > file.file_bytes() - extent.address) {
    return Status(Code::corrupt, chunk_text(chunk) + " lies beyond the file's end at byte " +
                                     std::to_string(file.file_bytes()));
  }
  if (extent.encoded_bytes != chunk_bytes && is_raw(chunk)) {
    return Status(Code::corrupt, chunk_text(chunk) + ": stored without filters, expected " +
                                     std::to_string(chunk_bytes) + " bytes");
  }
  return Status();
}

Status ReadDataset::make_codec(const std::string& plugin_path) {
  if (codec != nullptr) return Status();
  TAILRACE_TAKE(std::unique_ptr<Codec> made,
                make_stored_codec(*listed, listed->storage, plugin_path));
  codec = std::move(made);
  return Status();
}

Status prepare_dataset(std::size_t number, const StoredDataset& listed, ReadDataset& dataset) {
  dataset.number = number;
  dataset.listed = &listed;
  dataset.element_bytes = listed.element_bytes;
  dataset.fill = listed.fill_value;
  dataset.make_native(dataset.fill);
  if (!dataset.chunked()) return Status();
  dataset.grid = {listed.shape, listed.storage.chunk_shape};
  dataset.n_chunks = dataset.grid.n_chunks();
  if (!multiply_checked(n_elements(dataset.grid.chunk_shape), dataset.element_bytes,
                        dataset.chunk_bytes) ||
      n_elements(dataset.grid.chunk_shape) == UINT64_MAX) {
    return Status(Code::corrupt, dataset.name() + ": chunks of " +
                                     shape_text(dataset.grid.chunk_shape) +
                                     " elements exceed 2^64 bytes");
  }
  return Status();
}

void fill_part(const ReadDataset& dataset, const SlabPart& part, const Slab& slab,
               std::byte* values) {
  if (part.slab.empty()) return;
  const std::size_t rank = slab.rank();
  // Trailing dimensions that are filled completely extend the rows.
  std::size_t run_dimension = rank;
  std::uint64_t row_bytes = dataset.element_bytes;
  bool whole = true;
  while (run_dimension > 0 && whole) {
    --run_dimension;
    row_bytes *= part.slab.count[run_dimension];
    whole = part.slab.count[run_dimension] == slab.count[run_dimension];
  }
  Box rows{part.first, part.slab.count};
  for (std::size_t d = run_dimension; d < rank; ++d) rows.count[d] = 1;
  for_each_position(rows, [&](const Shape& at) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < rank; ++d) element = element * slab.count[d] + at[d];
    repeat_fill(dataset.fill, {values + element * dataset.element_bytes, row_bytes});
  });
}

Status read_plain_array(const ChunkFile& file, const PlainArray& array, const Slab& slab,
                        std::uint64_t gap_bytes, std::byte* values, FetchCount& count) {
  ContiguousRead reading(file, array, slab, gap_bytes, values);
  TAILRACE_TRY(reading.run());
  count.n_bytes += reading.fetched_bytes;
  count.n_reads += reading.n_reads;
  return Status();
}

}  // namespace tailrace
