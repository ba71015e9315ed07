// Values that are not stored in chunks: contiguous ones, which each rank writes where they belong,
// and those that only HDF5 can write, which go to rank 0.

#include <algorithm>
#include <utility>

#include "array_engine.hpp"
#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

constexpr std::uint64_t kPieceBytes = 4U << 20;
constexpr std::uint64_t kAlignment = 8;  // so that a reader may map the values in place

/// Fill bytes [first, end) from `address` on with an element.
Status write_fill(Storage& storage, std::uint64_t address, std::uint64_t first, std::uint64_t end,
                  const std::vector<std::byte>& element) {
  std::vector<std::byte> piece;
  for (std::uint64_t i = 0; i < kPieceBytes / element.size() && i < end - first; ++i) {
    piece.insert(piece.end(), element.begin(), element.end());
  }
  while (first < end) {
    const std::uint64_t n = std::min<std::uint64_t>(piece.size() / element.size(), end - first);
    TAILRACE_TRY(storage.write_at(address + first * element.size(),
                                  std::span(piece).first(n * element.size())));
    first += n;
  }
  return Status();
}

void swap_elements(std::span<std::byte> values, std::size_t element_bytes) {
  for (std::size_t at = 0; at + element_bytes <= values.size(); at += element_bytes) {
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(at),
                 values.begin() + static_cast<std::ptrdiff_t>(at + element_bytes));
  }
}

}  // namespace

Status NetcdfArrayFile::write_plain(ArrayFlush& flush) {
  std::uint64_t n_plain = 0;
  for (const std::size_t v : flush.created) {
    ArrayVariable& variable = variables_[v];
    const bool staged = std::binary_search(flush.variables.begin(), flush.variables.end(), v);
    if (variable.storage != ArrayStorage::contiguous || !staged) continue;
    ++n_plain;
    const std::uint64_t n = n_elements(variable.field.definition.shape);
    if (n == 0) continue;
    const std::uint64_t n_bytes = n * variable.log.element_bytes();
    std::uint64_t address = 0;
    if (comm_->is_root()) {
      address = output_.tail->claim(n_bytes + kAlignment - 1) + kAlignment - 1;
      address = address / kAlignment * kAlignment;
    }
    comm_->allreduce(std::span<std::uint64_t>(&address, 1), Reduction::max);
    variable.address = address;
    if (variable.field.definition.shape.empty()) continue;  // the one element is put
    const auto rank = static_cast<std::uint64_t>(comm_->rank());
    const auto n_ranks = static_cast<std::uint64_t>(comm_->n_ranks());
    const std::uint64_t share = (n + n_ranks - 1) / n_ranks;
    TAILRACE_TRY(comm_->agree(write_fill(*output_.storage, address, std::min(rank * share, n),
                                         std::min((rank + 1) * share, n), variable.fill)));
  }
  for (const std::size_t v : flush.variables) {
    if (variables_[v].storage == ArrayStorage::contiguous) ++n_plain;
  }
  if (n_plain == 0) return Status();
  // In rounds, so that what any rank has put later stays.
  Status mine;
  for (std::uint64_t epoch = next_epoch(flush, 0); epoch != UINT64_MAX;
       epoch = next_epoch(flush, epoch + 1)) {
    for (const std::size_t v : flush.variables) {
      if (variables_[v].storage != ArrayStorage::contiguous || !mine.ok()) continue;
      mine = write_contiguous(v, static_cast<std::uint32_t>(epoch));
    }
  }
  return comm_->agree(mine);
}

/// The first epoch from `least` on in which any rank has put into a contiguous variable; UINT64_MAX
/// if there is none. Collective: one allreduce, which also ends the writes of the epoch before.
std::uint64_t NetcdfArrayFile::next_epoch(const ArrayFlush& flush, std::uint64_t least) {
  std::uint64_t next = UINT64_MAX;
  for (const std::size_t v : flush.variables) {
    const StagingLog& log = variables_[v].log;
    if (variables_[v].storage != ArrayStorage::contiguous) continue;
    const std::size_t e = log.first_of(least);
    if (e < log.n_entries()) next = std::min<std::uint64_t>(next, log.epoch(e));
  }
  comm_->allreduce(std::span<std::uint64_t>(&next, 1), Reduction::min);
  return next;
}

/// Write what this rank has put into a contiguous variable in one epoch. Not collective.
Status NetcdfArrayFile::write_contiguous(std::size_t v, std::uint32_t epoch) {
  const ArrayVariable& variable = variables_[v];
  const StagingLog& log = variable.log;
  const std::size_t element = log.element_bytes();
  const Shape& shape = variable.field.definition.shape;
  std::vector<std::byte> swapped;
  Status written;
  const auto write = [&](std::uint64_t first, std::span<const std::byte> values) {
    if (!written.ok()) return;
    if (variable.swapped) {
      swapped.assign(values.begin(), values.end());
      swap_elements(swapped, element);
      values = swapped;
    }
    written = output_.storage->write_at(variable.address + first * element, values);
  };
  for (std::size_t e = log.first_of(epoch); e < log.n_entries() && written.ok(); ++e) {
    if (log.epoch(e) != epoch) break;
    const Slab slab = log.slab(e);
    // Dimensions behind `outer` form one run of the file.
    std::size_t outer = slab.rank();
    std::uint64_t run = 1;
    while (outer > 0) {
      const bool dense = slab.stride_of(outer - 1) == 1 || slab.count[outer - 1] == 1;
      if (!dense) break;
      run *= slab.count[outer - 1];
      --outer;
      if (slab.count[outer] != shape[outer]) break;
    }
    Box rows{Shape(outer, 0),
             Shape(slab.count.begin(), slab.count.begin() + static_cast<std::ptrdiff_t>(outer))};
    const std::byte* values = log.values(e);
    for_each_position(rows, [&](const Shape& at) {
      std::uint64_t first = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::uint64_t steps = d < outer ? at[d] * slab.stride_of(d) : 0;
        first = first * shape[d] + slab.start[d] + steps;
      }
      write(first, {values, run * element});
      values += run * element;
    });
  }
  return written.within(quoted(v));
}

}  // namespace tailrace
