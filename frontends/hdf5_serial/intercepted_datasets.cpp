// Selection of the datasets and calls that are served, and staged values on their way to the file.

#include "hdf5_serial/intercepted_datasets.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "core/codec_registry.hpp"
#include "hdf5_serial/chunk_places.hpp"

namespace tailrace::hdf5_serial {
namespace {

/// Limit of staged values of all datasets, and of values gathered for a call whose values are
/// scattered in memory. It is several times the size of the chunks of a netCDF file's variables
/// that are written one record after the other.
constexpr std::uint64_t kStagedBytesMax = 256U << 20;
/// Bytes of values that justify waking the helper threads: about 30 ms of deflate at level 1.
constexpr std::uint64_t kEncodedTogetherBytes = 8U << 20;

/// Limit of cached decoded chunks of all datasets: twice a row of 64 chunks of 1 MiB.
constexpr std::uint64_t kDecodedBytesMax = 128U << 20;

/// Values of H5F_ACC_SWMR_WRITE and SWMR_READ, like access_to_write.
constexpr unsigned kAccessWithOthers = 0x20 | 0x40;

using Extents = std::vector<hsize_t>;

bool is_self_contained(H5T_class_t kind) {
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_BITFIELD || kind == H5T_ENUM ||
         kind == H5T_OPAQUE || kind == H5T_STRING;
}

/// Bytes that a call with another memory type gathers and converts together.
constexpr std::uint64_t kConvertedTogetherBytes = 64U << 20;

}  // namespace

// --- Selection of datasets and calls.

InterceptedDatasets::InterceptedDatasets(const SerialHdf5& hdf5, std::uint64_t n_threads)
    : hdf5_(hdf5), team_(n_threads), decoded_(kDecodedBytesMax), requested_files_(hdf5) {}

InterceptedDataset& InterceptedDatasets::dataset_of(hid_t id) {
  const auto known = by_id_.find(id);
  if (known != by_id_.end()) return *known->second;
  H5O_info_t info{};
  if (hdf5_.H5Iget_type(id) != H5I_DATASET || hdf5_.H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0) {
    return nothing_;
  }
  std::weak_ptr<InterceptedDataset>& at = by_address_[{info.fileno, info.addr}];
  std::shared_ptr<InterceptedDataset> dataset = at.lock();
  if (dataset == nullptr) {
    dataset = std::make_shared<InterceptedDataset>();
    look_at(id, info, *dataset);
    at = dataset;
  }
  by_id_[id] = dataset;
  return *dataset;
}

bool InterceptedDatasets::refuse(std::string_view why) {
  refusals_.insert(why);
  return false;
}

std::string InterceptedDatasets::reasons_for_nothing() const {
  if (refusals_.empty()) return "the program neither wrote nor read values of chunked datasets";
  std::string text = "the program wrote or read ";
  for (const std::string_view why : refusals_) {
    if (why != *refusals_.begin()) text += "; ";
    text += why;
  }
  return text;
}

void InterceptedDatasets::look_at(hid_t id, const H5O_info_t& info, InterceptedDataset& dataset) {
  dataset.id = id;
  dataset.number = ++n_inspected_;
  const hid_t creation = hdf5_.H5Dget_create_plist(id);
  if (creation < 0) return;
  dataset.is_virtual = hdf5_.H5Pget_layout(creation) == H5D_VIRTUAL;
  const hid_t type = hdf5_.H5Dget_type(id);
  const hid_t file = hdf5_.H5Iget_file_id(id);
  unsigned intent = kAccessWithOthers;
  if (file >= 0) {
    hdf5_.H5Fget_intent(file, &intent);
    hdf5_.H5Fclose(file);
  }
  std::vector<FilterSpec> filters;
  dataset.may_write = (intent & access_to_write) != 0;
  // Another program may write the file concurrently; then only HDF5 reads it correctly.
  const bool alone = (intent & kAccessWithOthers) == 0;
  if (!alone) {
    refuse("files that are open for SWMR");
  } else if (type < 0 || !is_self_contained(hdf5_.H5Tget_class(type)) ||
             hdf5_.H5Tis_variable_str(type) != 0) {
    refuse("datasets of compounds, arrays, references or variable length");
  } else {
    dataset.type = hdf5_.H5Tcopy(type);
    dataset.element_bytes = hdf5_.H5Tget_size(type);
    dataset.served = dataset.type >= 0 && look_at_pipeline(creation, dataset, filters);
  }
  // Lossy filters are served for reading only. While a file is written, a chunk loses more digits
  // each time that HDF5 evicts it from its cache.
  if (dataset.served && dataset.codec->lossy() && dataset.may_write) {
    dataset.served = refuse("datasets under an error bound in a file opened for writing");
  }
  if (dataset.served && dataset.may_write) {
    dataset.requested = requested_files_.find(id, info, creation, filters);
  }
  dataset.may_become_scale = dataset.requested != nullptr && dataset.requested->may_become_scale();
  if (type >= 0) hdf5_.H5Tclose(type);
  hdf5_.H5Pclose(creation);
}

bool InterceptedDatasets::look_at_pipeline(hid_t creation, InterceptedDataset& dataset,
                                           std::vector<FilterSpec>& filters) {
  if (hdf5_.H5Pget_layout(creation) != H5D_CHUNKED) {
    return refuse("datasets that are not chunked");
  }
  Extents chunk(kMaxRank);
  const int rank = hdf5_.H5Pget_chunk(creation, int(chunk.size()), chunk.data());
  const int n_filters = hdf5_.H5Pget_nfilters(creation);
  unsigned options = 0;
  if (n_filters == 0) return refuse("datasets without filters");
  // HDF5 may store chunks at the edge without filters; it serves such datasets.
  if (rank <= 0 || n_filters <= 0 || n_filters > int(filters_max) ||
      hdf5_.H5Pget_chunk_opts(creation, &options) < 0 || options != 0) {
    return refuse("datasets whose chunks at the edge have no filters");
  }
  dataset.chunk_shape.assign(chunk.begin(), chunk.begin() + rank);
  for (int i = 0; i < n_filters; ++i) {
    FilterSpec filter;
    std::vector<unsigned> words(256);
    std::size_t n_words = words.size();
    std::array<char, 256> name{};
    unsigned config = 0;
    const H5Z_filter_t id =
        hdf5_.H5Pget_filter2(creation, unsigned(i), &filter.flags, &n_words, words.data(),
                             name.size() - 1, name.data(), &config);
    if (id < 0 || n_words > words.size()) return false;
    filter.filter_id = std::uint32_t(id);
    filter.final_client_data.assign(words.begin(), words.begin() + std::ptrdiff_t(n_words));
    filter.client_data = filter.final_client_data;
    filter.name = name.data();
    filters.push_back(std::move(filter));
  }
  H5D_fill_value_t fill = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t fill_time = H5D_FILL_TIME_ERROR;
  if (hdf5_.H5Pfill_value_defined(creation, &fill) < 0 ||
      hdf5_.H5Pget_fill_time(creation, &fill_time) < 0) {
    return false;
  }
  if (fill == H5D_FILL_VALUE_DEFAULT || fill == H5D_FILL_VALUE_USER_DEFINED) {
    dataset.fill_value = Buffer(dataset.element_bytes);
    if (!dataset.fill_value.allocated() ||
        hdf5_.H5Pget_fill_value(creation, dataset.type, dataset.fill_value.data()) < 0) {
      return false;
    }
    dataset.fill_is_known = fill_time != H5D_FILL_TIME_NEVER;
  }
  dataset.codec = make_own_stored_codec(filters, dataset.element_bytes, dataset.chunk_bytes());
  return dataset.codec != nullptr || refuse("datasets with filters that Tailrace does not run");
}

bool InterceptedDatasets::take_extents(InterceptedDataset& dataset) {
  const hid_t space = hdf5_.H5Dget_space(dataset.id);
  if (space < 0) return false;
  Extents extents(dataset.chunk_shape.size());
  Extents most(extents.size());
  const bool same_rank =
      hdf5_.H5Sget_simple_extent_ndims(space) == int(extents.size()) &&
      hdf5_.H5Sget_simple_extent_dims(space, extents.data(), most.data()) == int(extents.size());
  hdf5_.H5Sclose(space);
  // Numbers of chunks, by which decoded ones are cached, depend on the extents.
  if (!std::ranges::equal(dataset.extents, extents)) drop_decoded(dataset);
  dataset.extents.assign(extents.begin(), extents.end());
  dataset.most.assign(most.begin(), most.end());
  return same_rank;
}

/// True if a list equals the default: no transform, no callback.
bool InterceptedDatasets::plain_transfer(hid_t transfer_list) {
  if (transfer_list == H5P_DEFAULT) return true;
  if (plain_list_ < 0) plain_list_ = hdf5_.H5Pcreate(*hdf5_.H5P_CLS_DATASET_XFER_ID_g);
  return plain_list_ >= 0 && hdf5_.H5Pequal(transfer_list, plain_list_) > 0;
}

std::optional<InterceptedDatasets::Selected> InterceptedDatasets::select(
    InterceptedDataset& dataset, const Transfer& transfer, bool writes) {
  if (!dataset.served) return std::nullopt;
  if (!plain_transfer(transfer.transfer_list) || !take_extents(dataset)) {
    refuse("values by a transfer property list of its own");
    return std::nullopt;
  }
  Selected selected;
  if (hdf5_.H5Tequal(transfer.memory_type, dataset.type) <= 0) {
    // HDF5 would store these values exactly, although a bound is requested.
    const H5T_class_t kind = hdf5_.H5Tget_class(transfer.memory_type);
    selected.converts = writes && dataset.requested != nullptr && dataset.requested->loses() &&
                        (kind == H5T_FLOAT || kind == H5T_INTEGER);
    if (!selected.converts) {
      refuse("values of another type than the file's");
      return std::nullopt;
    }
  }
  if (transfer.file_space == H5S_ALL) {
    selected.slab = Slab::of(whole_box(dataset.extents));
  } else if (!slab_of(hdf5_, transfer.file_space, dataset.extents, selected.slab)) {
    refuse("points or irregular selections");
    return std::nullopt;
  }
  if (selected.slab.empty()) return std::nullopt;
  selected.memory_space =
      transfer.memory_space == H5S_ALL ? transfer.file_space : transfer.memory_space;
  if (selected.memory_space == H5S_ALL) {
    selected.run = 0;
    return selected;
  }
  const hssize_t n = hdf5_.H5Sget_select_npoints(selected.memory_space);
  if (n < 0 || std::uint64_t(n) != selected.slab.n_elements()) return std::nullopt;
  selected.run = run_in_memory(hdf5_, selected.memory_space);
  if (!selected.run && std::uint64_t(n) * dataset.element_bytes > kStagedBytesMax) {
    return std::nullopt;
  }
  return selected;
}

bool InterceptedDatasets::change_extents(hid_t id, const hsize_t* extents) {
  const QuietHdf5 quiet(hdf5_);
  InterceptedDataset& dataset = dataset_of(id);
  drop_decoded(dataset);
  if (dataset.is_virtual) drop_decoded();
  if (dataset.staged.empty() || extents == nullptr) return true;
  if (!take_extents(dataset)) return flush();
  for (std::size_t d = 0; d < dataset.extents.size(); ++d) {
    if (extents[d] < dataset.extents[d]) return flush();
  }
  return true;
}

bool InterceptedDatasets::make_way(hid_t id, std::uint32_t filter_mask, const hsize_t* start,
                                   std::size_t n_bytes) {
  const QuietHdf5 quiet(hdf5_);
  InterceptedDataset& dataset = dataset_of(id);
  if (!flush()) return false;
  drop_decoded(dataset);
  if (!dataset.served || filter_mask == 0 || start == nullptr) return true;
  // Tailrace may have stored this chunk, which otherwise HDF5's cache would still hold. The
  // program's chunk, with filters skipped, must not replace one of the same length (invariant 3).
  // So a longer one is written first.
  hsize_t n_before = 0;
  if (hdf5_.H5Dget_chunk_storage_size(id, start, &n_before) < 0 || n_before != n_bytes) return true;
  const std::vector<std::byte> longer(n_bytes + 1);
  static_cast<void>(
      hdf5_.H5Dwrite_chunk(id, H5P_DEFAULT, filter_mask, start, longer.size(), longer.data()));
  return true;
}

bool InterceptedDatasets::describe() {
  const QuietHdf5 quiet(hdf5_);
  bool ok = true;
  for (const auto& [id, dataset] : by_id_) {
    if (dataset->requested != nullptr) {
      ok = requested_files_.describe(id, *dataset->requested) && ok;
    }
  }
  return ok;
}

bool InterceptedDatasets::forget(hid_t id) {
  const auto known = by_id_.find(id);
  if (known == by_id_.end()) return true;
  const std::shared_ptr<InterceptedDataset> dataset = known->second;
  const QuietHdf5 quiet(hdf5_);
  const bool described =
      dataset->requested == nullptr || requested_files_.describe(id, *dataset->requested);
  drop_decoded(*dataset);
  while (!dataset->staged.empty()) unstage(*dataset, dataset->staged.begin()->first);
  if (dataset->type >= 0) hdf5_.H5Tclose(dataset->type);
  // Its other ids are inspected again on next use.
  std::erase_if(by_id_, [&](const auto& entry) { return entry.second == dataset; });
  std::erase_if(by_address_, [&](const auto& entry) { return entry.second.lock() == dataset; });
  return described;
}

bool InterceptedDatasets::forget_all() {
  bool ok = true;
  while (!by_id_.empty()) ok = forget(by_id_.begin()->first) && ok;
  if (plain_list_ >= 0) hdf5_.H5Pclose(plain_list_);
  plain_list_ = H5I_INVALID_HID;
  return ok;
}

// --- Writing.

std::optional<herr_t> InterceptedDatasets::write(const Transfer& transfer, const void* values) {
  const QuietHdf5 quiet(hdf5_);
  InterceptedDataset& dataset = dataset_of(transfer.dataset);
  try {
    const std::optional<Selected> selected =
        values != nullptr && dataset.may_write ? select(dataset, transfer, true) : std::nullopt;
    const auto* const from = static_cast<const std::byte*>(values);
    if (selected && write_selected(dataset, transfer, *selected, from)) return 0;
  } catch (const std::bad_alloc&) {
    // Values that are staged already are written by the flush, and again by HDF5.
  }
  drop_decoded(dataset);
  if (dataset.is_virtual) drop_decoded();
  const bool concerned = dataset.is_virtual || !dataset.staged.empty();
  if (concerned && !flush()) return -1;
  return std::nullopt;
}

bool InterceptedDatasets::write_selected(InterceptedDataset& dataset, const Transfer& transfer,
                                         const Selected& selected, const std::byte* values) {
  if (selected.converts) return write_converted(dataset, transfer, selected, values);
  if (selected.run) {
    return write_slab(dataset, selected.slab, values + *selected.run * dataset.element_bytes);
  }
  Buffer gathered(selected.slab.n_elements() * dataset.element_bytes);
  return gathered.allocated() &&
         hdf5_.H5Dgather(selected.memory_space, values, dataset.type, gathered.n_bytes(),
                         gathered.data(), nullptr, nullptr) >= 0 &&
         write_slab(dataset, selected.slab, gathered.data());
}

/// Write values of another type, which HDF5 converts to the dataset's type. If they are contiguous
/// in memory, rows of the slowest dimension are converted together.
bool InterceptedDatasets::write_converted(InterceptedDataset& dataset, const Transfer& transfer,
                                          const Selected& selected, const std::byte* values) {
  const std::uint64_t memory_bytes = hdf5_.H5Tget_size(transfer.memory_type);
  const std::uint64_t wider = std::max(memory_bytes, dataset.element_bytes);
  const Slab& slab = selected.slab;
  const std::uint64_t n_rows = slab.count[0];
  const std::uint64_t of_row = slab.n_elements() / n_rows;
  const std::uint64_t at_once =
      selected.run
          ? std::clamp<std::uint64_t>(kConvertedTogetherBytes / (of_row * wider), 1, n_rows)
          : n_rows;
  if (memory_bytes == 0) return false;
  Buffer converted(at_once * of_row * wider);
  if (!converted.allocated()) return false;
  for (std::uint64_t row = 0; row < n_rows; row += at_once) {
    Slab part = slab;
    part.start[0] += row * (slab.stride.empty() ? 1 : slab.stride[0]);
    part.count[0] = std::min(at_once, n_rows - row);
    const std::uint64_t n = part.n_elements();
    if (selected.run) {
      std::memcpy(converted.data(), values + (*selected.run + row * of_row) * memory_bytes,
                  n * memory_bytes);
    } else if (hdf5_.H5Dgather(selected.memory_space, values, transfer.memory_type,
                               n * memory_bytes, converted.data(), nullptr, nullptr) < 0) {
      return false;
    }
    if (hdf5_.H5Tconvert(transfer.memory_type, dataset.type, n, converted.data(), nullptr,
                         H5P_DEFAULT) < 0 ||
        !write_slab(dataset, part, converted.data())) {
      return false;
    }
  }
  return true;
}

bool InterceptedDatasets::write_slab(InterceptedDataset& dataset, const Slab& slab,
                                     const std::byte* values) {
  if (dataset.requested != nullptr) {
    dataset.requested->note_values({values, slab.n_elements() * dataset.element_bytes});
  }
  std::vector<Shape> whole;
  bool ok = true;
  const Box touched = dataset.grid().touched(slab.bounding_box());
  for_each_position(touched, [&](const Shape& place) {
    const Box inside = clipped(dataset.extents, dataset.chunk_shape, place);
    const std::uint64_t n = part_within(slab, inside).slab.n_elements();
    if (n == 0 || !ok) return;
    drop_decoded(dataset, place);
    if (n == inside.n_elements() && !may_fill_up(dataset, place)) {
      whole.push_back(place);
    } else {
      ok = stage(dataset, place, slab, values);
    }
  });
  if (!ok) return false;
  const bool holds = dataset.may_become_scale &&
                     staged_bytes_ + slab.n_elements() * dataset.element_bytes <= kStagedBytesMax;
  if (!holds && whole.size() >= 2 * team_.n_threads()) {
    if (!write_whole(dataset, whole, slab, values)) return false;
  } else {
    for (const Shape& place : whole) {
      if (!stage(dataset, place, slab, values)) return false;
    }
  }
  if (staged_bytes_ > kStagedBytesMax && !send_staged(Which::waiting)) return false;
  if (staged_bytes_ > kStagedBytesMax) return send_staged(Which::all);
  const std::uint64_t enough =
      std::max(kEncodedTogetherBytes, 4 * team_.n_threads() * dataset.chunk_bytes());
  return whole_bytes_ < enough || send_staged(Which::whole);
}

/// Write chunks that the call fills, directly from the program's memory.
bool InterceptedDatasets::write_whole(InterceptedDataset& dataset, const std::vector<Shape>& places,
                                      const Slab& slab, const std::byte* values) {
  const auto prepare = [&](Outgoing& chunk) {
    const Box box = box_of(dataset.chunk_shape, chunk.place);
    const Box inside = clipped(dataset.extents, dataset.chunk_shape, chunk.place);
    chunk.values = new_chunk(dataset.chunk_bytes(), dataset.fill_value, inside == box);
    if (!chunk.values.allocated()) return false;
    scatter_part(part_within(slab, inside), slab, values, box, chunk.values.data(),
                 dataset.element_bytes);
    return true;
  };
  const std::size_t at_once = chunks_at_once(dataset);
  for (std::size_t first = 0; first < places.size(); first += at_once) {
    std::vector<Outgoing> batch;
    for (std::size_t i = first; i < std::min(first + at_once, places.size()); ++i) {
      unstage(dataset, places[i]);
      batch.push_back({&dataset, places[i], {}, false});
    }
    if (!send(batch, prepare)) return false;
  }
  return true;
}

bool InterceptedDatasets::stage(InterceptedDataset& dataset, const Shape& place, const Slab& slab,
                                const std::byte* values) {
  const Box box = box_of(dataset.chunk_shape, place);
  const Box inside = clipped(dataset.extents, dataset.chunk_shape, place);
  const SlabPart part = part_within(slab, inside);
  const std::uint64_t n = part.slab.n_elements();
  const bool fills = n == inside.n_elements();
  const auto [at, is_new] = dataset.staged.try_emplace(place);
  PartialChunk& chunk = at->second;
  if (is_new) {
    chunk.values = new_chunk(dataset.chunk_bytes(), dataset.fill_value, fills && inside == box);
    if (!chunk.values.allocated()) {
      dataset.staged.erase(at);
      return false;
    }
    staged_bytes_ += dataset.chunk_bytes();
    if (fills) {
      note_whole(dataset);
    } else {
      try {
        chunk.written.resize(box.n_elements());
      } catch (const std::bad_alloc&) {
        staged_bytes_ -= dataset.chunk_bytes();
        dataset.staged.erase(at);
        throw;
      }
    }
  }
  scatter_part(part, slab, values, box, chunk.values.data(), dataset.element_bytes);
  if (chunk.written.empty()) return true;
  const SlabPart marks{part.slab, Shape(place.size())};
  std::vector<std::byte> row(n);
  gather_part(marks, box, chunk.written.data(), part.slab, row.data(), 1);
  chunk.n_written += std::uint64_t(std::ranges::count(row, std::byte{0}));
  std::ranges::fill(row, std::byte{1});
  scatter_part(marks, part.slab, row.data(), box, chunk.written.data(), 1);
  if (chunk.n_written == inside.n_elements()) {
    chunk.written = {};
    note_whole(dataset);
  }
  return true;
}

void InterceptedDatasets::unstage(InterceptedDataset& dataset, const Shape& place) {
  const auto at = dataset.staged.find(place);
  if (at == dataset.staged.end()) return;
  staged_bytes_ -= dataset.chunk_bytes();
  if (at->second.written.empty() && !dataset.may_become_scale)
    whole_bytes_ -= dataset.chunk_bytes();
  dataset.staged.erase(at);
}

bool InterceptedDatasets::flush() {
  if (staged_bytes_ == 0) return true;
  const QuietHdf5 quiet(hdf5_);
  return send_staged(Which::all);
}

bool InterceptedDatasets::send_staged(Which which) {
  const bool all = which == Which::all;
  bool ok = true;
  std::vector<Outgoing> batch;
  std::uint64_t batch_bytes = 0;
  const auto send_batch = [&] {
    ok = send(batch, nullptr) && ok;
    batch.clear();
    batch_bytes = 0;
  };
  for (const auto& [address, known] : by_address_) {
    const std::shared_ptr<InterceptedDataset> dataset = known.lock();
    if (dataset == nullptr || dataset->staged.empty()) continue;
    if (which == Which::whole && dataset->may_become_scale) continue;
    ok = take_extents(*dataset) && ok;
    for (auto at = dataset->staged.begin(); at != dataset->staged.end();) {
      const auto chunk = at++;
      if (!all && may_fill_up(*dataset, chunk->first)) continue;
      if (!chunk->second.written.empty()) {
        if (!all) continue;
        ok = complete(*dataset, chunk->first, chunk->second) && ok;
      }
      const Shape place = chunk->first;
      drop_decoded(*dataset, place);
      batch_bytes += dataset->chunk_bytes();
      batch.push_back({dataset.get(), place, {}, chunk->second.keeps_stored});
      // Moved after push_back(), which may throw.
      batch.back().values = std::move(chunk->second.values);
      unstage(*dataset, place);
      if (batch_bytes >= 4 * kEncodedTogetherBytes && batch.size() >= 4 * team_.n_threads()) {
        send_batch();
      }
    }
  }
  send_batch();
  return ok;
}

/// True if later, larger extents may add elements to a chunk. If it were stored before that, the
/// rest would have to be encoded exactly (requested_datasets.hpp, invariant 2).
bool InterceptedDatasets::may_fill_up(const InterceptedDataset& dataset, const Shape& place) const {
  if (dataset.requested == nullptr || !dataset.requested->loses()) return false;
  const Box box = box_of(dataset.chunk_shape, place);
  for (std::size_t d = 0; d < place.size(); ++d) {
    const std::uint64_t end = box.start[d] + box.count[d];
    if (end > dataset.extents[d] && dataset.most[d] > dataset.extents[d]) return true;
  }
  return false;
}

/// True if the file, or HDF5's cache, has a chunk.
bool InterceptedDatasets::is_stored(const InterceptedDataset& dataset, const Box& box) {
  const Extents start(box.start.begin(), box.start.end());
  hsize_t n_bytes = 0;
  // 1.10.8 fails if other chunks exist and this one does not.
  return hdf5_.H5Dget_chunk_storage_size(dataset.id, start.data(), &n_bytes) >= 0 && n_bytes > 0;
}

/// Fill in the elements that the program has not written from the file.
bool InterceptedDatasets::complete(InterceptedDataset& dataset, const Shape& place,
                                   PartialChunk& chunk) {
  const std::uint64_t element_bytes = dataset.element_bytes;
  const Box box = box_of(dataset.chunk_shape, place);
  const Box inside = clipped(dataset.extents, dataset.chunk_shape, place);
  const Slab slab = Slab::of(inside);
  const SlabPart all{slab, Shape(place.size())};
  const std::uint64_t n = inside.n_elements();
  ++report_.n_completed;
  chunk.keeps_stored = dataset.requested != nullptr && is_stored(dataset, box);
  std::vector<std::byte> there(n * element_bytes);
  if (!transfer_box(dataset, inside, there.data(), false)) return false;
  std::vector<std::byte> staged(n * element_bytes);
  std::vector<std::byte> written(n);
  gather_part(all, box, chunk.values.data(), slab, staged.data(), element_bytes);
  gather_part(all, box, chunk.written.data(), slab, written.data(), 1);
  for (std::uint64_t i = 0; i < n; ++i) {
    if (written[i] == std::byte{0}) {
      std::memcpy(staged.data() + i * element_bytes, there.data() + i * element_bytes,
                  element_bytes);
    }
  }
  scatter_part(all, slab, staged.data(), box, chunk.values.data(), element_bytes);
  chunk.written = {};
  note_whole(dataset);
  return true;
}

/// Encode a batch by all threads, then store it in order. All chunks are tried, even after a
/// failure. @param prepare  fills a chunk's values; thread-safe
bool InterceptedDatasets::send(std::vector<Outgoing>& batch,
                               const std::function<bool(Outgoing&)>& prepare) {
  const InterceptedDataset* last = nullptr;
  const Codec* codec = nullptr;
  for (Outgoing& chunk : batch) {
    InterceptedDataset& dataset = *chunk.dataset;
    if (dataset.requested == nullptr || !dataset.requested->loses()) continue;
    if (&dataset != last) {
      if (requested_files_.is_scale(dataset.id)) dataset.requested->keep_exact();
      if (dataset.requested->role_open() || dataset.requested->role_untold()) {
        requested_files_.decide_role(dataset.id, *dataset.requested);
      }
      codec = dataset.requested->codec_now();
      last = &dataset;
    }
    if (!chunk.keeps_stored) chunk.codec = codec;
  }
  const Status encoded =
      team_.run(batch.size(), team_.n_threads(), [&](std::size_t i, std::size_t) -> Status {
        Outgoing& chunk = batch[i];
        if (prepare && !prepare(chunk))
          return Status(Code::out_of_memory, "not enough memory for a chunk");
        const Codec& by = chunk.codec != nullptr ? *chunk.codec : *chunk.dataset->codec;
        Result<EncodedBytes> bytes = by.encode_from(std::as_const(chunk.values).bytes());
        // After a failure here, HDF5 tries with its own filters.
        if (bytes.ok()) chunk.encoded = std::move(*bytes);
        return Status();
      });
  if (!encoded.ok()) return false;
  bool ok = true;
  for (Outgoing& chunk : batch) ok = store(chunk) && ok;
  return ok;
}

bool InterceptedDatasets::store(Outgoing& chunk) {
  InterceptedDataset& dataset = *chunk.dataset;
  const Box box = box_of(dataset.chunk_shape, chunk.place);
  if (chunk.encoded && chunk.encoded->filter_mask == 0) {
    const std::size_t n_bytes = chunk.encoded->buffer.n_bytes();
    const Extents start(box.start.begin(), box.start.end());
    // 1.10.8 fails if other chunks exist and this one does not.
    hsize_t n_before = 0;
    if (hdf5_.H5Dget_chunk_storage_size(dataset.id, start.data(), &n_before) < 0) n_before = 0;
    if (n_before != n_bytes && hdf5_.H5Dwrite_chunk(dataset.id, H5P_DEFAULT, 0, start.data(),
                                                    n_bytes, chunk.encoded->buffer.data()) >= 0) {
      ++report_.n_encoded;
      if (chunk.codec != nullptr) {
        ++report_.n_lossy;
        dataset.requested->note_stored();
      }
      report_.value_bytes += dataset.chunk_bytes();
      report_.stored_bytes += n_bytes;
      return true;
    }
  }
  ++report_.n_left_to_hdf5;
  const Box inside = clipped(dataset.extents, dataset.chunk_shape, chunk.place);
  std::vector<std::byte> values(inside.n_elements() * dataset.element_bytes);
  copy_box(inside, box, chunk.values.data(), inside, values.data(), dataset.element_bytes);
  return transfer_box(dataset, inside, values.data(), true);
}

/// Transfer the values of a box by HDF5 itself.
bool InterceptedDatasets::transfer_box(InterceptedDataset& dataset, const Box& box,
                                       std::byte* values, bool writes) {
  const Extents start(box.start.begin(), box.start.end());
  const Extents count(box.count.begin(), box.count.end());
  const hid_t memory = hdf5_.H5Screate_simple(int(count.size()), count.data(), nullptr);
  const hid_t space = hdf5_.H5Dget_space(dataset.id);
  bool ok = memory >= 0 && space >= 0 &&
            hdf5_.H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                      nullptr) >= 0;
  if (ok && writes) {
    ok = hdf5_.H5Dwrite(dataset.id, dataset.type, memory, space, H5P_DEFAULT, values) >= 0;
  } else if (ok) {
    ok = hdf5_.H5Dread(dataset.id, dataset.type, memory, space, H5P_DEFAULT, values) >= 0;
  }
  if (memory >= 0) hdf5_.H5Sclose(memory);
  if (space >= 0) hdf5_.H5Sclose(space);
  return ok;
}

/// Number of chunks per loop over all threads: enough to keep them busy, and few enough for memory.
std::size_t InterceptedDatasets::chunks_at_once(const InterceptedDataset& dataset) const {
  const std::uint64_t by_bytes = 4 * kEncodedTogetherBytes / dataset.chunk_bytes();
  return std::size_t(std::max(by_bytes, 4 * team_.n_threads()));
}

}  // namespace tailrace::hdf5_serial
