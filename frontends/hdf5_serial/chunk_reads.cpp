// Reading by all threads, and the cache of decoded chunks for programs that read chunks in parts.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "hdf5_serial/chunk_places.hpp"
#include "hdf5_serial/intercepted_datasets.hpp"

namespace tailrace::hdf5_serial {
namespace {

/// Advance to the next grid position in row-major order. @returns false at the end
bool step(Shape& place, const Shape& n_per_dimension) {
  for (std::size_t d = place.size(); d-- > 0;) {
    if (++place[d] < n_per_dimension[d]) return true;
    place[d] = 0;
  }
  return false;
}

}  // namespace

std::optional<herr_t> InterceptedDatasets::read(const Transfer& transfer, void* values) {
  const QuietHdf5 quiet(hdf5_);
  InterceptedDataset& dataset = dataset_of(transfer.dataset);
  const bool concerned = dataset.is_virtual || !dataset.staged.empty();
  if (concerned && !flush()) return -1;
  if (values == nullptr) return std::nullopt;
  try {
    const std::optional<Selected> selected = select(dataset, transfer, false);
    if (!selected) return std::nullopt;
    if (selected->run) {
      auto* const to = static_cast<std::byte*>(values) + *selected->run * dataset.element_bytes;
      if (read_slab(dataset, selected->slab, to)) return 0;
      return std::nullopt;
    }
    Buffer together(selected->slab.n_elements() * dataset.element_bytes);
    if (!together.allocated() || !read_slab(dataset, selected->slab, together.data())) {
      return std::nullopt;
    }
    const H5D_scatter_func_t give = [](const void** from, std::size_t* n_bytes, void* data) {
      const auto* all = static_cast<const Buffer*>(data);
      *from = all->data();
      *n_bytes = all->n_bytes();
      return herr_t(0);
    };
    if (hdf5_.H5Dscatter(give, &together, dataset.type, selected->memory_space, values) >= 0) {
      return 0;
    }
  } catch (const std::bad_alloc&) {
    // HDF5 needs less memory.
  }
  return std::nullopt;
}

bool InterceptedDatasets::read_slab(InterceptedDataset& dataset, const Slab& slab,
                                    std::byte* values) {
  std::vector<Incoming> batch;
  const std::size_t at_once = chunks_at_once(dataset);
  const Box touched = dataset.grid().touched(slab.bounding_box());
  Shape last;
  bool ok = true;
  for_each_position(touched, [&](const Shape& place) {
    const Box inside = clipped(dataset.extents, dataset.chunk_shape, place);
    const SlabPart part = part_within(slab, inside);
    const std::uint64_t n = part.slab.n_elements();
    if (n == 0 || !ok) return;
    last = place;
    if (const ChunkCache::Entry kept = decoded_.find(dataset.key(place))) {
      gather_part(part, box_of(dataset.chunk_shape, place), kept->values.data(), slab, values,
                  dataset.element_bytes);
      return;
    }
    batch.push_back({.place = place,
                     .box = box_of(dataset.chunk_shape, place),
                     .keep = n < inside.n_elements(),
                     .encoded = {},
                     .values = {}});
    if (batch.size() < at_once) return;
    ok = receive(dataset, batch, slab, values);
    batch.clear();
  });
  if (!ok) return false;
  if (!batch.empty()) read_ahead(dataset, batch);
  const bool is_next = !last.empty() && step(last, dataset.grid().n_per_dimension());
  dataset.expected = is_next ? last : Shape();
  return batch.empty() || receive(dataset, batch, slab, values);
}

/// Add the following chunks to a batch. Otherwise a program that requests one chunk after the other
/// leaves the helper threads idle.
void InterceptedDatasets::read_ahead(InterceptedDataset& dataset, std::vector<Incoming>& batch) {
  const std::size_t n_wanted = 2 * team_.n_threads();
  if (batch.front().place != dataset.expected ||
      n_wanted * dataset.chunk_bytes() > decoded_.bytes_max() / 2) {
    return;
  }
  const Shape n_per_dimension = dataset.grid().n_per_dimension();
  Shape place = batch.back().place;
  while (batch.size() < n_wanted && step(place, n_per_dimension)) {
    if (decoded_.holds(dataset.key(place))) continue;
    batch.push_back({.place = place,
                     .box = box_of(dataset.chunk_shape, place),
                     .keep = true,
                     .wanted = false,
                     .encoded = {},
                     .values = {}});
  }
}

/// Read and decode a batch, and deliver its values.
/// @returns false if HDF5 must read everything: a missing chunk without a known fill value, or a
/// decoding failure, which HDF5 then reports
bool InterceptedDatasets::receive(InterceptedDataset& dataset, std::vector<Incoming>& batch,
                                  const Slab& slab, std::byte* values) {
  for (Incoming& chunk : batch) {
    const std::vector<hsize_t> start(chunk.box.start.begin(), chunk.box.start.end());
    hsize_t n_bytes = 0;
    bool ok = hdf5_.H5Dget_chunk_storage_size(dataset.id, start.data(), &n_bytes) >= 0;
    chunk.stored = n_bytes > 0;
    if (ok && chunk.stored) {
      chunk.encoded.buffer = Buffer(n_bytes);
      ok = chunk.encoded.buffer.allocated() &&
           hdf5_.H5Dread_chunk(dataset.id, H5P_DEFAULT, start.data(), &chunk.encoded.filter_mask,
                               chunk.encoded.buffer.data()) >= 0;
    } else {
      ok = ok && dataset.fill_is_known;
    }
    if (!ok && chunk.wanted) return false;
    if (!ok) chunk.keep = false;
  }
  const Status decoded =
      team_.run(batch.size(), team_.n_threads(), [&](std::size_t i, std::size_t) -> Status {
        Incoming& chunk = batch[i];
        if (!chunk.keep && !chunk.wanted) return Status();
        chunk.values = new_chunk(dataset.chunk_bytes(), dataset.fill_value, chunk.stored);
        if (!chunk.values.allocated())
          return Status(Code::out_of_memory, "not enough memory for a chunk");
        if (chunk.stored) {
          const Status status =
              dataset.codec->decode_into(std::as_const(chunk.encoded.buffer).bytes(),
                                         chunk.encoded.filter_mask, chunk.values.bytes());
          if (!status.ok() && chunk.wanted) return status;
          if (!status.ok()) chunk.keep = false;
        }
        if (!chunk.wanted) return Status();
        const Box inside = intersect(chunk.box, whole_box(dataset.extents));
        gather_part(part_within(slab, inside), chunk.box, chunk.values.data(), slab, values,
                    dataset.element_bytes);
        if (!chunk.keep) chunk.values = {};
        return Status();
      });
  if (!decoded.ok()) return false;
  for (Incoming& chunk : batch) {
    if (chunk.stored) ++report_.n_decoded;
    if (!chunk.keep) continue;
    dataset.cached = true;
    decoded_.add(dataset.key(chunk.place), std::move(chunk.values));
  }
  return true;
}

void InterceptedDatasets::drop_decoded(InterceptedDataset& dataset) {
  if (dataset.cached) decoded_.drop_field(dataset.number);
  dataset.cached = false;
}

void InterceptedDatasets::drop_decoded(const InterceptedDataset& dataset, const Shape& place) {
  decoded_.drop(dataset.key(place));
}

void InterceptedDatasets::drop_decoded() { decoded_.clear(); }

}  // namespace tailrace::hdf5_serial
