// Reading a DatasetArray: values at the last flush, overlaid with this rank's staged ones.

#include <algorithm>
#include <cstring>
#include <utility>

#include "array/dataset_array.hpp"
#include "core/byte_stream.hpp"
#include "field/stored_values.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/one_file.hpp"

namespace tailrace {

namespace {

void fill_elements(std::span<std::byte> values, const std::vector<std::byte>& element) {
  for (std::size_t at = 0; at + element.size() <= values.size(); at += element.size()) {
    std::memcpy(values.data() + at, element.data(), element.size());
  }
}

/// Call visit(first element, number of elements) for the contiguous runs of a slab in an array of
/// `shape`.
template <class Visit>
Status for_each_run(const Slab& slab, const Shape& shape, Visit&& visit) {
  const std::size_t rank = shape.size();
  const bool dense_rows = rank > 0 && (slab.stride_of(rank - 1) == 1 || slab.count[rank - 1] == 1);
  const std::size_t n_outer = dense_rows ? rank - 1 : rank;
  const std::uint64_t run = dense_rows ? slab.count[rank - 1] : 1;
  Shape outer_count = slab.count;
  outer_count.resize(n_outer);
  const Box outer{Shape(n_outer, 0), std::move(outer_count)};
  Status visited;
  for_each_position(outer, [&](const Shape& at) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t steps = d < n_outer ? at[d] * slab.stride_of(d) : 0;
      first = first * shape[d] + slab.start[d] + steps;
    }
    if (visited.ok()) visited = visit(first, run);
  });
  return visited;
}

}  // namespace

/// Close all read handles. HDF5 returns a file that the process has open already, with its cached
/// metadata, to any later open. So no handle may stay open over a commit.
void DatasetArray::drop_readers() {
  index_.reset();
  if (plain_file_id_ >= 0) close_hdf5_id(std::exchange(plain_file_id_, -1));
  last_chunk_.reset();
}

Status DatasetArray::get(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(adopt(v));
  TAILRACE_TRY(check_slab(slab, live_[v].shape).within(quoted(v)));
  if (slab.empty()) return Status();
  TAILRACE_TRY(settle_to_read(v));
  TAILRACE_TRY(get_stored(v, slab, values));
  return lay_over(v, slab, values);
}

/// Read the file's elements at its last flush; the fill value where it has none.
Status DatasetArray::get_stored(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const ArrayVariable& variable = variables_[v];
  fill_elements(values, variable.fill);
  const bool there = output_.in_place() && live_[v].file_address != 0;
  const bool scalar = live_[v].shape.empty();
  const SlabPart part =
      there && !scalar ? part_within(slab, whole_box(live_[v].file_shape)) : SlabPart();
  if (there && (scalar || !part.slab.empty())) {
    const std::size_t element = variable.log.element_bytes();
    const bool whole = scalar || part.slab == slab;
    std::vector<std::byte> partly(whole ? 0 : part.slab.n_elements() * element);
    const std::span<std::byte> read = whole ? values : std::span<std::byte>(partly);
    const Slab& wanted = whole ? slab : part.slab;
    if (!whole) fill_elements(read, variable.fill);
    Status done;
    switch (variable.storage) {
      case ArrayStorage::chunked: done = read_chunked(v, wanted, read); break;
      case ArrayStorage::contiguous: done = read_contiguous(v, wanted, read); break;
      default: done = read_by_hdf5(v, wanted, read); break;
    }
    TAILRACE_TRY(done.within(quoted(v)));
    if (!whole) {
      copy_box(box_of(part), box_of(part.slab), read.data(), box_of(slab), values.data(), element);
    }
  }
  return Status();
}

Status DatasetArray::get_runs(std::size_t v, const ElementRuns& runs, std::span<std::byte> values) {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(adopt(v));
  const ArrayVariable& variable = variables_[v];
  const std::size_t element = variable.log.element_bytes();
  const Box whole = whole_box(live_[v].shape);
  if (variable.storage != ArrayStorage::chunked) {
    std::byte* to = values.data();
    Status read;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::uint64_t first = runs.firsts[r];
      for_each_box_of_run(whole, first, first + runs.counts[r], [&](const Box& box) {
        const std::size_t n_bytes = box.n_elements() * element;
        if (read.ok()) read = get(v, Slab::of(box), {to, n_bytes});
        to += n_bytes;
      });
    }
    return read;
  }
  const ChunkGrid grid{live_[v].shape, variable.resolved.chunk_shape};
  std::vector<std::byte> stored(StoredRuns::bytes_of(runs.size()));
  StoredRuns::store(runs, stored.data());
  const ChunkPieces pieces(grid, {stored.data(), runs.size()});
  std::vector<std::byte> chunk(n_elements(grid.chunk_shape) * element);
  for (const std::uint64_t chunk_index : pieces.chunks()) {
    // Positions of pieces refer to the full chunk, which may extend beyond the dataset's end.
    const Box box = grid.full_box(chunk_index);
    const Box inside = grid.clipped_box(chunk_index);
    const std::span<std::byte> read(chunk.data(), inside.n_elements() * element);
    TAILRACE_TRY(get(v, Slab::of(inside), read));
    for (const ChunkPiece& piece : pieces.of(chunk_index)) {
      // A piece lies in one row, or consists of complete rows, which are also contiguous in the
      // clipped chunk.
      std::uint64_t rest = piece.first;
      std::uint64_t at = 0;
      std::uint64_t step = 1;
      for (std::size_t d = box.rank(); d-- > 0;) {
        at += rest % box.count[d] * step;
        rest /= box.count[d];
        step *= inside.count[d];
      }
      std::memcpy(values.data() + piece.from * element, chunk.data() + at * element,
                  piece.n * element);
    }
  }
  return Status();
}

/// Overlay this rank's staged values. Puts of members and of complete elements are applied in put
/// order; consecutive pieces of one log are applied together.
Status DatasetArray::lay_over(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  std::vector<std::size_t> logs;
  for (const std::size_t m : live_[v].members) {
    if (!variables_[m].log.empty()) logs.push_back(m);
  }
  if (logs.empty()) {
    variables_[v].log.lay_over(slab, values);
    return Status();
  }
  logs.push_back(v);
  struct Piece {
    std::uint64_t epoch;
    std::size_t staged_as;
    Slab slab;
    const std::byte* values;
  };
  std::vector<Piece> pieces;
  for (const std::size_t l : logs) {
    for (std::size_t e = 0; e < variables_[l].log.n_entries(); ++e) {
      variables_[l].log.for_each_piece(
          e, [&](const Slab& at, std::uint64_t epoch, const std::byte* staged) {
            pieces.push_back({epoch, l, at, staged});
          });
    }
  }
  std::ranges::stable_sort(pieces, {}, &Piece::epoch);
  const std::size_t element = variables_[v].log.element_bytes();
  for (std::size_t i = 0; i < pieces.size();) {
    const std::size_t l = pieces[i].staged_as;
    const std::size_t bytes = variables_[l].log.element_bytes();
    StagingLog row(memory_, bytes);
    for (; i < pieces.size() && pieces[i].staged_as == l; ++i) {
      const Slab& at = pieces[i].slab;
      TAILRACE_TRY(row.put(at, {pieces[i].values, at.n_elements() * bytes}, pieces[i].epoch));
    }
    if (l == v) {
      row.lay_over(slab, values);
      continue;
    }
    const std::size_t offset = live_[l].member.offset;
    std::vector<std::byte> member(slab.n_elements() * bytes);
    for (std::size_t k = 0; k < slab.n_elements(); ++k) {
      std::memcpy(member.data() + k * bytes, values.data() + k * element + offset, bytes);
    }
    row.lay_over(slab, member);
    for (std::size_t k = 0; k < slab.n_elements(); ++k) {
      std::memcpy(values.data() + k * element + offset, member.data() + k * bytes, bytes);
    }
  }
  return Status();
}

/// Complete a flush in flight that has values of the dataset, since neither the file nor this rank
/// can provide them. Only a single rank can do so; with several ranks the read fails.
Status DatasetArray::settle_to_read(std::size_t v) {
  const bool any = is_under_way(v) || std::ranges::any_of(live_[v].members, [this](std::size_t m) {
                     return is_under_way(m);
                   });
  if (!any) return Status();
  if (comm_->n_ranks() == 1) return begin_collective();
  return Status(
      Code::unsupported,
      quoted(v) +
          ": its last flush is not complete (mode=async), and a single rank cannot complete it; "
          "read with a collective transfer list, or flush the file again first");
}

Result<const std::vector<StoredChunk>*> DatasetArray::chunks_of(std::size_t v) {
  Live& live = live_[v];
  if (!live.chunks) {
    if (index_ == nullptr) {
      see_last_commit(*comm_, output_.path());
      TAILRACE_TAKE(index_, ChunkIndexReader::open(output_.path()));
    }
    TAILRACE_TAKE(live.chunks, index_->read_at(live.file_address, variables_[v].definition.path));
  }
  return &*live.chunks;
}

Result<const Buffer*> DatasetArray::decoded(std::size_t v, const StoredChunk& chunk) {
  if (!last_chunk_ || last_chunk_->dataset != v || last_chunk_->chunk_index != chunk.chunk_index) {
    last_chunk_.reset();
    const ArrayVariable& variable = variables_[v];
    const ChunkPlace place{chunk.extent.address, chunk.extent.encoded_bytes, chunk.filter_mask};
    const std::uint64_t raw =
        n_elements(variable.resolved.chunk_shape) * variable.log.element_bytes();
    TAILRACE_TAKE(Buffer values,
                  read_stored_values(output_.storage(), *variable.resolved.codec, place, raw));
    last_chunk_ = DecodedChunk{v, chunk.chunk_index, std::move(values)};
  }
  return &last_chunk_->values;
}

/// Read the stored chunks; `values` must hold fill values before. Not collective.
Status DatasetArray::read_chunked(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  TAILRACE_TAKE(const std::vector<StoredChunk>* const chunks, chunks_of(v));
  const ArrayVariable& variable = variables_[v];
  const ChunkGrid grid{live_[v].file_shape, variable.resolved.chunk_shape};
  Status read;
  for_each_position(grid.touched(slab.bounding_box()), [&](const Shape& coordinates) {
    const std::uint64_t chunk_index = grid.index_of(coordinates);
    const auto chunk =
        std::ranges::lower_bound(*chunks, chunk_index, {}, &StoredChunk::chunk_index);
    if (!read.ok() || chunk == chunks->end() || chunk->chunk_index != chunk_index) return;
    const SlabPart part = part_within(slab, grid.clipped_box(chunk_index));
    if (part.slab.empty()) return;
    const Result<const Buffer*> held = decoded(v, *chunk);
    read = held.status().within("chunk " + box_text(grid.clipped_box(chunk_index)));
    if (!held.ok()) return;
    gather_part(part, grid.full_box(chunk_index), (*held)->data(), slab, values.data(),
                variable.log.element_bytes());
  });
  return read;
}

Status DatasetArray::read_contiguous(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const std::size_t element = variables_[v].log.element_bytes();
  std::byte* to = values.data();
  return for_each_run(slab, live_[v].file_shape, [&](std::uint64_t first, std::uint64_t n) {
    const std::span<std::byte> run(to, n * element);
    to += n * element;
    return output_.storage().read_at(variables_[v].address + first * element, run);
  });
}

Status DatasetArray::read_by_hdf5(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  if (plain_file_id_ < 0) {
    see_last_commit(*comm_, output_.path());
    TAILRACE_TAKE(plain_file_id_, open_last_commit(output_.path()));
  }
  return read_elements(plain_file_id_, live_[v].file_address, slab, values);
}

}  // namespace tailrace
