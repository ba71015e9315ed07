// Reading a DatasetArray: values at the last flush, overlaid with this rank's staged ones.

#include <algorithm>
#include <cstring>
#include <utility>

#include "array/dataset_array.hpp"
#include "core/byte_stream.hpp"

namespace tailrace {

namespace {

void fill_elements(std::span<std::byte> values, const std::vector<std::byte>& element) {
  for (std::size_t at = 0; at + element.size() <= values.size(); at += element.size()) {
    std::memcpy(values.data() + at, element.data(), element.size());
  }
}

}  // namespace

/// Close all read handles. HDF5 returns a file that the process has open already, with its cached
/// metadata, to any later open. So no handle may stay open over a commit.
void DatasetArray::drop_readers() {
  if (reader_ != nullptr) reader_->forget_all();
  listed_.clear();
  flushed_file_.reset();
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
    TAILRACE_TRY(read_flushed(v, wanted, read));
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

Result<FlushedFile*> DatasetArray::flushed_file() {
  if (flushed_file_ == nullptr) {
    TAILRACE_TAKE(flushed_file_, FlushedFile::open(*comm_, output_.path(), output_.storage()));
  }
  return flushed_file_.get();
}

/// Describe a dataset at the last flush to its reader. Elements are read as the file's bytes.
const FlushedFile::Dataset& DatasetArray::listed(std::size_t v) {
  const auto [entry, added] = listed_.try_emplace(v);
  FlushedFile::Dataset& dataset = entry->second;
  if (!added) return dataset;
  const ArrayVariable& variable = variables_[v];
  dataset.path = variable.definition.path;
  dataset.header_address = live_[v].file_address;
  dataset.element_bytes = variable.log.element_bytes();
  dataset.shape = live_[v].file_shape;
  dataset.fill_value = variable.fill;
  if (variable.storage == ArrayStorage::chunked) {
    dataset.storage = {StoredForm::Kind::chunked, variable.resolved.chunk_shape,
                       variable.resolved.codec->filters()};
  } else if (variable.storage == ArrayStorage::contiguous) {
    dataset.storage.kind = StoredForm::Kind::contiguous;
    dataset.contiguous = {variable.address, n_elements(dataset.shape) * dataset.element_bytes};
  }
  return dataset;
}

/// Read elements that the file has. Not collective.
Status DatasetArray::read_flushed(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  TAILRACE_TAKE(FlushedFile* const file, flushed_file());
  const FlushedFile::Dataset& stored = listed(v);
  const ArrayVariable& variable = variables_[v];
  if (variable.storage != ArrayStorage::chunked && variable.storage != ArrayStorage::contiguous) {
    return file->read_slab(stored, slab, values).within(quoted(v));
  }
  if (reader_ == nullptr) {
    ReadOptions options = options_.read;
    options.memory_bytes = std::min(options.memory_bytes, options_.file.memory_bytes / 4);
    reader_ = std::make_unique<ChunkReader>(options, n_decode_threads(*comm_, options));
  }
  ReadDataset* dataset = nullptr;
  TAILRACE_TRY(reader_->prepare(v, stored, dataset));
  if (!dataset->chunked()) return reader_->read_contiguous(*file, *dataset, slab, values.data());
  // The variable owns the codec, at least until the reader is dropped.
  dataset->codec = {std::shared_ptr<const Codec>(), variable.resolved.codec.get()};
  return reader_->read(*file, *dataset, slab, values.data());
}

}  // namespace tailrace
