// Reads of slabs of chunked datasets: finding, fetching, decoding, caching and prefetching chunks.

#include "chunk/chunk_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "measure/machine_identity.hpp"

namespace tailrace {

namespace {

/// Coordinates, per dimension, of the chunks that hold elements of the slab.
std::vector<std::vector<std::uint64_t>> touched_coordinates(const ChunkGrid& grid,
                                                            const Slab& slab) {
  std::vector<std::vector<std::uint64_t>> touched(slab.rank());
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    const std::uint64_t extent = grid.chunk_shape[d];
    const std::uint64_t stride = slab.stride_of(d);
    const std::uint64_t last = slab.start[d] + (slab.count[d] - 1) * stride;
    for (std::uint64_t at = slab.start[d];;) {
      touched[d].push_back(at / extent);
      // The first element after this chunk.
      const std::uint64_t chunk_last = at + (extent - 1 - at % extent);
      if (last <= chunk_last) break;
      at += ((chunk_last - at) / stride + 1) * stride;
    }
  }
  return touched;
}

}  // namespace

TouchedChunks::TouchedChunks(const ChunkGrid& grid, const Slab& slab)
    : touched_(touched_coordinates(grid, slab)),
      n_per_dimension_(grid.n_per_dimension()),
      at_(slab.rank(), 0) {
  for (const auto& coordinates : touched_) n_chunks_ *= coordinates.size();
}

void TouchedChunks::next(std::size_t n_max, std::vector<std::uint64_t>& chunk_indexes) {
  chunk_indexes.clear();
  while (!at_end_ && chunk_indexes.size() < n_max) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at_.size(); ++d) {
      index = index * n_per_dimension_[d] + touched_[d][at_[d]];
    }
    chunk_indexes.push_back(index);
    std::size_t d = at_.size();
    while (d > 0 && ++at_[d - 1] == touched_[d - 1].size()) at_[--d] = 0;
    at_end_ = d == 0;
  }
}

// --- Slabs of chunked datasets: order of chunks, and their target memory.
//
// Invariant 1: a chunk that is being decoded ahead has a cache entry that becomes ready, unless
// forget() ends everything.
// Invariant 2: threads use files, datasets and codecs read-only; only the caller's thread queries
// indexes and makes codecs.

namespace {

/// Number of chunks that are looked up and processed at a time.
constexpr std::size_t kBatchChunksMax = 16384;
/// Limit of small slabs: their chunks are cached even if they are used up, since programs that read
/// small parts often return to them.
constexpr std::uint64_t kSmallSlabBytes = 8U << 20;
/// Least amount to decode for which waking a thread (some 50 us) is worthwhile.
constexpr std::uint64_t kLaneBytesMin = 128U << 10;
/// Least size of unfiltered chunks of which only the needed parts are read from the file.
constexpr std::uint64_t kRawChunkBytesMin = 64U << 10;
constexpr std::uint64_t kContiguousPieceBytes = 4U << 20;

/// Return the target of a completely wanted chunk in the caller's memory if it is contiguous there.
std::byte* one_piece(const Shape& chunk_shape, const SlabPart& part, const Slab& slab,
                     std::byte* values, std::uint64_t element_bytes) {
  if (part.slab.count != chunk_shape || !part.slab.dense()) return nullptr;
  std::size_t d = 0;
  while (d < chunk_shape.size() && chunk_shape[d] == 1) ++d;
  for (++d; d < chunk_shape.size(); ++d) {
    if (slab.count[d] != chunk_shape[d]) return nullptr;
  }
  std::uint64_t element = 0;
  for (d = 0; d < chunk_shape.size(); ++d) element = element * slab.count[d] + part.first[d];
  return values + element * element_bytes;
}

Status grow(Buffer& buffer, std::uint64_t n_bytes, const ReadDataset& dataset) {
  if (buffer.capacity() >= n_bytes) return Status();
  buffer = Buffer();
  buffer = Buffer(n_bytes);
  if (buffer.allocated()) return Status();
  return Status(Code::out_of_memory,
                dataset.name() + ": not enough memory for " + std::to_string(n_bytes) + " bytes");
}

}  // namespace

std::uint64_t n_decode_threads(const Comm& comm, const ReadOptions& options) {
  if (options.n_threads > 0) return options.n_threads;
  // Two even if ranks fill the cores: one waits for the storage while the other decodes.
  return std::max<std::uint64_t>(2, n_cores_of_node() / std::uint64_t(comm.n_ranks_on_node()));
}

ChunkReader::ChunkReader(const ReadOptions& options, std::uint64_t n_threads)
    : options_(options),
      work_bytes_(options.memory_bytes / 2),
      cache_(options.memory_bytes / 2),
      lanes_(n_threads),
      team_(n_threads) {}

void ChunkReader::forget() {
  team_.drop_posted();
  cache_.clear();
  lanes_ = std::vector<Lane>(lanes_.size());
  last_slab_.reset();
  last_ahead_.reset();
}

void ChunkReader::forget_all() {
  forget();
  prepared_.clear();
}

void ChunkReader::abandon() {
  for (auto& [number, dataset] : prepared_) dataset.index.abandon();
}

Status ChunkReader::prepare(std::size_t number, const StoredDataset& listed,
                            ReadDataset*& dataset) {
  const auto [entry, added] = prepared_.try_emplace(number);
  dataset = &entry->second;
  if (!added) return Status();
  Status prepared = prepare_dataset(number, listed, *dataset);
  if (!prepared.ok()) prepared_.erase(entry);
  return prepared;
}

Status ChunkReader::read(ChunkFile& file, std::size_t number, const StoredDataset& listed,
                         const Slab& slab, std::span<std::byte> values, double abs_bound) {
  if (listed.by_hdf5()) return file.read_slab(listed, slab, values);
  ReadDataset* dataset = nullptr;
  TAILRACE_TRY(prepare(number, listed, dataset));
  if (dataset->chunked()) return read(file, *dataset, slab, values.data(), {}, abs_bound);
  return read_contiguous(file, *dataset, slab, values.data());
}

Status ChunkReader::decode(const ReadDataset& dataset, const StoredChunk& job,
                           std::span<const std::byte> encoded, std::span<std::byte> values,
                           bool prefix) {
  const ReadStopwatch watch(counts_.decode_ns);
  if (prefix) {
    const Status decoded = dataset.codec->bound_prefixes()->decode(encoded, values);
    if (!decoded.ok()) return decoded.within(dataset.chunk_text(job));
  } else if (dataset.is_raw(job)) {
    TAILRACE_CHECK(encoded.size() == values.size());
    std::memcpy(values.data(), encoded.data(), values.size());
  } else {
    const Status decoded = dataset.codec->decode_into(encoded, job.filter_mask, values);
    if (!decoded.ok()) return decoded.within(dataset.chunk_text(job));
  }
  dataset.make_native(values);
  ++counts_.n_chunks;
  counts_.decoded_bytes += values.size();
  return Status();
}

std::uint64_t ChunkReader::n_lanes_for(const ReadDataset& dataset,
                                       std::span<const StoredChunk> jobs,
                                       std::uint64_t work_bytes) const {
  std::uint64_t encoded_max = 0;
  for (const StoredChunk& job : jobs) {
    encoded_max = std::max(encoded_max, job.extent.encoded_bytes);
  }
  // The chunk, and the same amount in each of the codec's two scratch blocks.
  const std::uint64_t lane_bytes = encoded_max + 3 * dataset.chunk_bytes;
  const std::uint64_t by_memory = work_bytes / std::max<std::uint64_t>(lane_bytes, 1);
  const std::uint64_t by_work = jobs.size() * dataset.chunk_bytes / kLaneBytesMin;
  return std::clamp<std::uint64_t>(std::min(by_memory, by_work), 1, team_.n_threads());
}

Status ChunkReader::fetch_group(ChunkFile& file, const ReadDataset& dataset,
                                std::span<const StoredChunk> jobs, const Group& group,
                                std::size_t lane_index, const Work& work) {
  Lane& lane = lanes_[lane_index];
  const std::uint64_t address = jobs[group.begin].extent.address;
  std::uint64_t end = address;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    TAILRACE_TRY(dataset.check_chunk(file, jobs[i]));
    end = std::max(end, jobs[i].extent.address + jobs[i].extent.encoded_bytes);
  }
  TAILRACE_TRY(grow(lane.fetched, end - address, dataset));
  {
    const ReadStopwatch watch(counts_.fetch_ns);
    const Status read = file.read_at(address, {lane.fetched.data(), end - address});
    if (!read.ok()) return read.within(dataset.chunk_text(jobs[group.begin]));
    ++counts_.n_reads;
    counts_.fetched_bytes += end - address;
  }
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const Extent& extent = jobs[i].extent;
    TAILRACE_TRY(
        work(lane, i, {lane.fetched.data() + (extent.address - address), extent.encoded_bytes}));
  }
  return Status();
}

Status ChunkReader::for_each_fetched(ChunkFile& file, ReadDataset& dataset,
                                     std::span<StoredChunk> jobs, std::uint64_t work_bytes,
                                     const Work& work) {
  if (jobs.empty()) return Status();
  const auto filtered = [&](const StoredChunk& job) { return !dataset.is_raw(job); };
  if (std::any_of(jobs.begin(), jobs.end(), filtered)) {
    TAILRACE_TRY(dataset.make_codec(options_.plugin_path));
  }
  if (jobs.size() == 1) return fetch_group(file, dataset, jobs, {0, 1}, 0, work);
  std::sort(jobs.begin(), jobs.end(), [](const StoredChunk& a, const StoredChunk& b) {
    return a.extent.address < b.extent.address;
  });
  std::uint64_t n_encoded = 0;
  for (const StoredChunk& job : jobs) n_encoded += job.extent.encoded_bytes;
  const std::uint64_t n_lanes = n_lanes_for(dataset, jobs, work_bytes);
  // Several groups a thread, so that all threads end at about the same time.
  const std::uint64_t limit = std::min(
      {options_.read_bytes, work_bytes / (2 * n_lanes),
       n_lanes == 1 ? UINT64_MAX : std::max<std::uint64_t>(n_encoded / (4 * n_lanes), 65536)});
  std::vector<Group> groups;
  std::uint64_t group_address = 0;
  std::uint64_t group_end = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Extent& extent = jobs[i].extent;
    const std::uint64_t end = extent.address + extent.encoded_bytes;
    const bool joins = !groups.empty() && extent.address <= group_end + options_.gap_bytes &&
                       std::max(end, group_end) - group_address <= limit;
    if (!joins) {
      groups.push_back({i, i});
      group_address = extent.address;
      group_end = end;
    }
    groups.back().end = i + 1;
    group_end = std::max(group_end, end);
  }
  return team_.run(groups.size(), n_lanes, [&](std::size_t i, std::size_t lane) {
    return fetch_group(file, dataset, jobs, groups[i], lane, work);
  });
}

bool ChunkReader::uses_up(const Reading& reading, const SlabPart& part, const Box& box) {
  const Box inside = intersect(box, whole_box(reading.dataset.grid.shape));
  return part.slab.count == inside.count && part.slab.dense();
}

std::uint64_t ChunkReader::work_bytes_for(const Reading& reading) {
  return reading.keep_parts ? work_bytes_ : work_bytes_ + cache_.bytes_free();
}

Status ChunkReader::finish_chunk(Reading& reading, Lane& lane, const StoredChunk& job,
                                 std::span<const std::byte> encoded, bool prefix) {
  const ReadDataset& dataset = reading.dataset;
  const Box box = dataset.grid.full_box(job.chunk_index);
  const SlabPart part = part_within(reading.slab, box);
  const bool keeps = reading.keep_whole || (reading.keep_parts && !uses_up(reading, part, box));
  const ChunkKey id{dataset.number, job.chunk_index};
  const ChunkCache::Entry entry =
      keeps && !prefix ? cache_.begin(id, dataset.chunk_bytes) : nullptr;
  std::byte* values = entry != nullptr ? entry->values.data() : nullptr;
  if (values == nullptr) {
    values = one_piece(dataset.grid.chunk_shape, part, reading.slab, reading.values,
                       dataset.element_bytes);
  }
  const bool gathers = entry != nullptr || values == nullptr;
  if (values == nullptr) {
    TAILRACE_TRY(grow(lane.decoded, dataset.chunk_bytes, dataset));
    values = lane.decoded.data();
  }
  // Threads that wait for the entry must be notified even if decoding throws.
  const Status decoded = local_part([&] {
    return decode(dataset, job, encoded, {values, dataset.chunk_bytes}, prefix);
  });
  if (entry != nullptr) cache_.finish(id, entry, decoded);
  TAILRACE_TRY(decoded);
  if (gathers) {
    gather_part(part, box, values, reading.slab, reading.values, dataset.element_bytes);
  }
  return Status();
}

Status ChunkReader::read_raw_part(Reading& reading, Lane& lane, const StoredChunk& job,
                                  const SlabPart& part) {
  const ReadDataset& dataset = reading.dataset;
  TAILRACE_TRY(dataset.check_chunk(reading.file, job));
  Slab in_chunk = part.slab;
  const Box box = dataset.grid.full_box(job.chunk_index);
  for (std::size_t d = 0; d < box.rank(); ++d) in_chunk.start[d] -= box.start[d];
  const std::uint64_t n_bytes = part.slab.n_elements() * dataset.element_bytes;
  std::byte* target =
      one_piece(part.slab.count, {Slab::of({part.first, part.slab.count}), part.first},
                reading.slab, reading.values, dataset.element_bytes);
  std::byte* values = target;
  if (values == nullptr) {
    TAILRACE_TRY(grow(lane.decoded, n_bytes, dataset));
    values = lane.decoded.data();
  }
  FetchCount count;
  {
    const ReadStopwatch watch(counts_.fetch_ns);
    const PlainArray array{job.extent.address, dataset.grid.chunk_shape, dataset.element_bytes};
    const Status read =
        read_plain_array(reading.file, array, in_chunk, options_.gap_bytes, values, count);
    if (!read.ok()) return read.within(dataset.chunk_text(job));
  }
  counts_.n_reads += count.n_reads;
  counts_.fetched_bytes += count.n_bytes;
  ++counts_.n_chunks;
  counts_.decoded_bytes += n_bytes;
  dataset.make_native({values, n_bytes});
  if (target == nullptr) {
    const Box piece{part.first, part.slab.count};
    copy_box(piece, piece, values, whole_box(reading.slab.count), reading.values,
             dataset.element_bytes);
  }
  return Status();
}

Status ChunkReader::take_hits(Reading& reading,
                              std::span<const std::pair<StoredChunk, ChunkCache::Entry>> hits,
                              std::vector<StoredChunk>& jobs) {
  jobs.clear();
  for (const auto& [chunk, entry] : hits) {
    if (!cache_.wait(entry)) {
      jobs.push_back(chunk);
      continue;
    }
    ++counts_.n_chunk_hits;
    const Box box = reading.dataset.grid.full_box(chunk.chunk_index);
    const SlabPart part = part_within(reading.slab, box);
    gather_part(part, box, entry->values.data(), reading.slab, reading.values,
                reading.dataset.element_bytes);
    if (options_.one_pass && uses_up(reading, part, box)) {
      cache_.drop({reading.dataset.number, chunk.chunk_index});
    }
  }
  return Status();
}

Status ChunkReader::read_batch(Reading& reading, std::span<const std::uint64_t> chunk_indexes) {
  ReadDataset& dataset = reading.dataset;
  std::vector<StoredChunk> found;
  std::vector<StoredChunk> jobs;
  std::vector<StoredChunk> raw_jobs;
  std::vector<StoredChunk> viewed;
  std::vector<StoredChunk> in_part;
  std::vector<std::pair<StoredChunk, ChunkCache::Entry>> hits;
  TAILRACE_TRY(
      dataset.index.find(reading.file, *dataset.listed, dataset.n_chunks, chunk_indexes, found));
  for (const StoredChunk& chunk : found) {
    if (chunk.extent.encoded_bytes == 0) {
      const Box box = dataset.grid.full_box(chunk.chunk_index);
      fill_part(dataset, part_within(reading.slab, box), reading.slab, reading.values);
    } else if (ChunkCache::Entry entry = cache_.find({dataset.number, chunk.chunk_index})) {
      hits.emplace_back(chunk, std::move(entry));
    } else if (reading.view != nullptr) {
      viewed.push_back(chunk);
    } else if (dataset.chunk_bytes >= kRawChunkBytesMin && dataset.is_raw(chunk)) {
      raw_jobs.push_back(chunk);
    } else if (reading.abs_bound > 0) {
      in_part.push_back(chunk);
    } else {
      jobs.push_back(chunk);
    }
  }
  const Work finish = [&](Lane& lane, std::size_t i, std::span<const std::byte> encoded) {
    return finish_chunk(reading, lane, jobs[i], encoded);
  };
  const std::uint64_t work_bytes = work_bytes_for(reading);
  TAILRACE_TRY(for_each_fetched(reading.file, dataset, jobs, work_bytes, finish));
  TAILRACE_TRY(read_views(reading, viewed));
  const std::uint64_t n_part_lanes =
      in_part.empty() ? 1 : n_lanes_for(dataset, in_part, work_bytes);
  TAILRACE_TRY(team_.run(in_part.size(), n_part_lanes, [&](std::size_t i, std::size_t lane) {
    return read_prefix(reading, lanes_[lane], in_part[i]);
  }));
  const std::uint64_t n_raw_lanes =
      raw_jobs.empty() ? 1 : n_lanes_for(dataset, raw_jobs, work_bytes);
  TAILRACE_TRY(team_.run(raw_jobs.size(), n_raw_lanes, [&](std::size_t i, std::size_t lane) {
    const Box box = dataset.grid.full_box(raw_jobs[i].chunk_index);
    return read_raw_part(reading, lanes_[lane], raw_jobs[i], part_within(reading.slab, box));
  }));
  TAILRACE_TRY(take_hits(reading, hits, jobs));
  return for_each_fetched(reading.file, dataset, jobs, work_bytes, finish);
}

// --- Slabs with strides, from the coarse views at the beginning of chunks.

namespace {

/// First read of a chunk: a page, like the file system's reads; many views lie within it.
constexpr std::uint64_t page_bytes = 4096;

/// Cache key of a view: it is cached in addition to the chunk.
ChunkKey view_key(std::size_t dataset_number, std::uint64_t chunk_index, int level) {
  constexpr int level_bit = 56;  // No file has this many datasets.
  return {dataset_number | static_cast<std::size_t>(level) << level_bit, chunk_index};
}

}  // namespace

std::optional<ChunkReader::ViewSlab> ChunkReader::view_slab(ReadDataset& dataset,
                                                            const Slab& slab) const {
  bool strided = false;
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    strided = strided || (slab.count[d] > 1 && slab.stride_of(d) > 1);
  }
  // If no codec can be made, reading the chunks returns the error.
  if (!strided || !dataset.make_codec(options_.plugin_path).ok()) return std::nullopt;
  const CoarseViews* views = dataset.codec->coarse_views();
  std::optional<ViewSlab> coarsest;
  const ChunkGrid& grid = dataset.grid;
  for (int level = 1; views != nullptr; ++level) {
    const Shape shape = views->view_shape(level);
    if (shape.size() != slab.rank()) return coarsest;
    const std::uint64_t step = std::uint64_t{1} << level;
    ViewSlab view{level, {grid.shape, shape}, slab, 0};
    view.slab.stride.resize(slab.rank(), 1);
    for (std::size_t d = 0; d < slab.rank(); ++d) {
      if (shape[d] == grid.chunk_shape[d]) continue;
      // A filter's client data may contradict the chunks.
      if (shape[d] != (grid.chunk_shape[d] + step - 1) / step) return coarsest;
      const bool held = slab.start[d] % step == 0 &&
                        (slab.count[d] == 1 || slab.stride_of(d) % step == 0) &&
                        (grid.chunk_shape[d] % step == 0 || grid.chunk_shape[d] >= grid.shape[d]);
      if (!held) return coarsest;
      view.grid.shape[d] = (grid.shape[d] + step - 1) / step;
      view.slab.start[d] /= step;
      view.slab.stride[d] = slab.count[d] == 1 ? 1 : slab.stride_of(d) / step;
    }
    view.chunk_bytes = dataset.element_bytes * n_elements(shape);
    coarsest = std::move(view);
  }
  return coarsest;
}

bool ChunkReader::reads_parts(ReadDataset& dataset, const Slab& slab) const {
  return view_slab(dataset, slab).has_value() || prefix_bound(dataset, 0) > 0;
}

Status ChunkReader::fetch_part(const Reading& reading, const StoredChunk& job, std::uint64_t begin,
                               std::uint64_t n_bytes, std::byte* to) {
  if (n_bytes == 0) return Status();
  const ReadStopwatch watch(counts_.fetch_ns);
  const Status read = reading.file.read_at(job.extent.address + begin, {to, n_bytes});
  if (!read.ok()) return read.within(reading.dataset.chunk_text(job));
  ++counts_.n_reads;
  counts_.fetched_bytes += n_bytes;
  return Status();
}

Status ChunkReader::fetch_head(const Reading& reading, const StoredChunk& job,
                               std::uint64_t n_bytes, Lane& lane, std::uint64_t& n_fetched) {
  TAILRACE_TRY(reading.dataset.check_chunk(reading.file, job));
  TAILRACE_TRY(grow(lane.fetched, job.extent.encoded_bytes, reading.dataset));
  n_fetched = std::min(std::max(n_bytes, page_bytes), job.extent.encoded_bytes);
  return fetch_part(reading, job, 0, n_fetched, lane.fetched.data());
}

Status ChunkReader::read_view(Reading& reading, Lane& lane, const StoredChunk& job) {
  const ReadDataset& dataset = reading.dataset;
  const ViewSlab& view = *reading.view;
  const std::uint64_t chunk_length = job.extent.encoded_bytes;
  const CoarseViews& views = *dataset.codec->coarse_views();
  std::uint64_t head_bytes = 0;
  TAILRACE_TRY(fetch_head(reading, job, views.head_bytes(), lane, head_bytes));
  std::optional<std::pair<std::uint64_t, std::uint64_t>> found;
  if (job.filter_mask == 0) found = views.find({lane.fetched.data(), head_bytes}, view.level);
  if (!found || found->first > chunk_length || found->second > chunk_length - found->first) {
    TAILRACE_TRY(fetch_part(reading, job, head_bytes, chunk_length - head_bytes,
                            lane.fetched.data() + head_bytes));
    return finish_chunk(reading, lane, job, {lane.fetched.data(), chunk_length});
  }
  std::span<const std::byte> encoded(lane.fetched.data(), head_bytes);
  if (found->first + found->second <= head_bytes) {
    encoded = encoded.subspan(found->first, found->second);
  } else {
    TAILRACE_TRY(fetch_part(reading, job, found->first, found->second, lane.fetched.data()));
    encoded = {lane.fetched.data(), found->second};
  }
  const Box box = view.grid.full_box(job.chunk_index);
  const SlabPart part = part_within(view.slab, box);
  const bool in_part = part.slab.count != intersect(box, whole_box(view.grid.shape)).count;
  const bool keeps = reading.keep_whole || (reading.keep_parts && in_part);
  const ChunkKey id = view_key(dataset.number, job.chunk_index, view.level);
  const ChunkCache::Entry entry = keeps ? cache_.begin(id, view.chunk_bytes) : nullptr;
  std::byte* values = entry != nullptr ? entry->values.data() : nullptr;
  if (values == nullptr) {
    TAILRACE_TRY(grow(lane.decoded, view.chunk_bytes, dataset));
    values = lane.decoded.data();
  }
  Status decoded;
  {
    const ReadStopwatch watch(counts_.decode_ns);
    decoded = local_part([&] { return views.decode(encoded, {values, view.chunk_bytes}); });
    if (decoded.ok()) dataset.make_native({values, view.chunk_bytes});
  }
  if (entry != nullptr) cache_.finish(id, entry, decoded);
  if (!decoded.ok()) return decoded.within(dataset.chunk_text(job));
  ++counts_.n_chunks;
  counts_.decoded_bytes += view.chunk_bytes;
  gather_part(part, box, values, view.slab, reading.values, dataset.element_bytes);
  return Status();
}

double ChunkReader::prefix_bound(ReadDataset& dataset, double abs_bound) const {
  abs_bound = std::max(abs_bound, options_.abs_bound);
  // If no codec can be made, reading the chunks returns the error.
  if (!(abs_bound > 0) || !dataset.make_codec(options_.plugin_path).ok()) return 0;
  const BoundPrefixes* prefixes = dataset.codec->bound_prefixes();
  return prefixes != nullptr && abs_bound >= prefixes->least_bound() ? abs_bound : 0;
}

Status ChunkReader::read_prefix(Reading& reading, Lane& lane, const StoredChunk& job) {
  const std::uint64_t chunk_length = job.extent.encoded_bytes;
  const BoundPrefixes& prefixes = *reading.dataset.codec->bound_prefixes();
  std::uint64_t head_bytes = 0;
  TAILRACE_TRY(fetch_head(reading, job, prefixes.head_bytes(), lane, head_bytes));
  std::optional<std::uint64_t> found;
  if (job.filter_mask == 0) {
    found = prefixes.find({lane.fetched.data(), head_bytes}, reading.abs_bound);
  }
  const bool prefix = found && *found < chunk_length;
  const std::uint64_t n_bytes = prefix ? *found : chunk_length;
  if (n_bytes > head_bytes) {
    TAILRACE_TRY(fetch_part(reading, job, head_bytes, n_bytes - head_bytes,
                            lane.fetched.data() + head_bytes));
  }
  return finish_chunk(reading, lane, job, {lane.fetched.data(), n_bytes}, prefix);
}

Status ChunkReader::read_views(Reading& reading, std::span<const StoredChunk> chunks) {
  const ReadDataset& dataset = reading.dataset;
  const ViewSlab& view = *reading.view;
  std::vector<StoredChunk> jobs;
  for (const StoredChunk& chunk : chunks) {
    const ChunkKey id = view_key(dataset.number, chunk.chunk_index, view.level);
    const ChunkCache::Entry kept = cache_.find(id);
    if (kept == nullptr || !cache_.wait(kept)) {
      jobs.push_back(chunk);
      continue;
    }
    ++counts_.n_chunk_hits;
    const Box box = view.grid.full_box(chunk.chunk_index);
    gather_part(part_within(view.slab, box), box, kept->values.data(), view.slab, reading.values,
                dataset.element_bytes);
  }
  const std::uint64_t n_lanes = n_lanes_for(dataset, jobs, work_bytes_for(reading));
  return team_.run(jobs.size(), n_lanes, [&](std::size_t i, std::size_t lane) {
    return read_view(reading, lanes_[lane], jobs[i]);
  });
}

/// Multiple of the cache's capacity above which a slab in one pass caches nothing.
constexpr std::uint64_t kKeptTimesMax = 2;

Status ChunkReader::read(ChunkFile& file, ReadDataset& dataset, const Slab& slab, std::byte* values,
                         const LeftOut& left_out, double abs_bound) {
  TouchedChunks touched(dataset.grid, slab);
  const std::optional<ViewSlab> view = view_slab(dataset, slab);
  Reading reading{
      file, dataset, slab, values, view ? &*view : nullptr, prefix_bound(dataset, abs_bound)};
  reading.keep_whole =
      !options_.one_pass &&
      touched.n_chunks() <= kSmallSlabBytes / std::max<std::uint64_t>(dataset.chunk_bytes, 1) &&
      touched.n_chunks() * dataset.chunk_bytes <= cache_.bytes_max() / 2;
  const std::uint64_t touched_bytes_each = view ? view->chunk_bytes : dataset.chunk_bytes;
  reading.keep_parts = !options_.one_pass || touched.n_chunks() * touched_bytes_each <=
                                                 kKeptTimesMax * cache_.bytes_max();
  // One chunk keeps one thread busy: let the others work ahead meanwhile.
  const bool works_ahead = !left_out && !view && reading.abs_bound == 0;
  const bool ahead_first = touched.n_chunks() == 1 && works_ahead;
  if (ahead_first) look_ahead(file, dataset, slab);
  std::vector<std::uint64_t> batch;
  while (true) {
    touched.next(kBatchChunksMax, batch);
    if (batch.empty()) break;
    if (left_out) std::erase_if(batch, left_out);
    TAILRACE_TRY(read_batch(reading, batch));
  }
  // they may exceed half of the memory
  if (!reading.keep_parts) lanes_ = std::vector<Lane>(lanes_.size());
  if (!ahead_first && works_ahead) look_ahead(file, dataset, slab);
  return Status();
}

Status ChunkReader::visit(
    ChunkFile& file, ReadDataset& dataset, std::span<const StoredChunk> chunks,
    const std::function<void(std::size_t, std::span<const std::byte>)>& visit_chunk) {
  std::vector<StoredChunk> jobs(chunks.begin(), chunks.end());
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return chunks[a].chunk_index < chunks[b].chunk_index;
  });
  return for_each_fetched(
      file, dataset, jobs, work_bytes_,
      [&](Lane& lane, std::size_t i, std::span<const std::byte> encoded) {
        TAILRACE_TRY(grow(lane.decoded, dataset.chunk_bytes, dataset));
        const std::span<std::byte> values(lane.decoded.data(), dataset.chunk_bytes);
        TAILRACE_TRY(decode(dataset, jobs[i], encoded, values));
        const auto at = std::lower_bound(
            order.begin(), order.end(), jobs[i].chunk_index,
            [&](std::size_t k, std::uint64_t index) { return chunks[k].chunk_index < index; });
        visit_chunk(*at, values);
        return Status();
      });
}

Status ChunkReader::read_contiguous(ChunkFile& file, const ReadDataset& dataset, const Slab& slab,
                                    std::byte* values) {
  const Extent& stored = dataset.listed->contiguous;
  if (stored.encoded_bytes == 0) {
    fill_part(dataset, {slab, Shape(slab.rank(), 0)}, slab, values);
    return Status();
  }
  // Pieces along the first dimension with several entries: they are consecutive in memory.
  std::size_t split = 0;
  while (split < slab.rank() && slab.count[split] == 1) ++split;
  const std::uint64_t n_bytes = slab.n_elements() * dataset.element_bytes;
  const std::uint64_t n_rows = split < slab.rank() ? slab.count[split] : 1;
  const std::uint64_t row_bytes = n_bytes / n_rows;
  const std::uint64_t rows_per_piece =
      std::max<std::uint64_t>(1, kContiguousPieceBytes / std::max<std::uint64_t>(row_bytes, 1));
  const std::uint64_t n_pieces = (n_rows + rows_per_piece - 1) / rows_per_piece;
  const PlainArray array{stored.address, dataset.listed->shape, dataset.element_bytes};
  return team_.run(n_pieces, team_.n_threads(), [&](std::size_t i, std::size_t) {
    Slab piece = slab;
    const std::uint64_t first = i * rows_per_piece;
    const std::uint64_t n = std::min(rows_per_piece, n_rows - first);
    if (split < slab.rank()) {
      piece.start[split] += first * slab.stride_of(split);
      piece.count[split] = n;
    }
    std::byte* to = values + first * row_bytes;
    FetchCount count;
    {
      const ReadStopwatch watch(counts_.fetch_ns);
      const Status read = read_plain_array(file, array, piece, options_.gap_bytes, to, count);
      if (!read.ok()) return read.within(dataset.name() + " " + slab_text(piece));
    }
    counts_.n_reads += count.n_reads;
    counts_.fetched_bytes += count.n_bytes;
    dataset.make_native({to, n * row_bytes});
    return Status();
  });
}

// --- Decoding ahead of slabs that advance along a dimension.

namespace {

/// Limit on bytes decoded ahead: enough to keep the helpers busy until the next slab.
constexpr std::uint64_t kAheadBytesMax = 16U << 20;
/// Limit on chunks decoded ahead, for tiny chunks.
constexpr std::size_t kAheadChunksMax = 4096;

}  // namespace

void ChunkReader::post_ahead(ChunkFile& file, ReadDataset& dataset, const StoredChunk& job) {
  const ChunkKey id{dataset.number, job.chunk_index};
  const ChunkCache::Entry entry = cache_.begin(id, dataset.chunk_bytes);
  if (entry == nullptr) return;
  const auto work = [this, &file, &dataset, job, id, entry] {
    const Status done = local_part([&]() -> Status {
      Buffer encoded(job.extent.encoded_bytes);
      if (!encoded.allocated())
        return Status(Code::out_of_memory, "not enough memory to read ahead");
      {
        const ReadStopwatch watch(counts_.fetch_ns);
        TAILRACE_TRY(file.read_at(job.extent.address, encoded.bytes()));
      }
      ++counts_.n_reads;
      counts_.fetched_bytes += encoded.n_bytes();
      return decode(dataset, job, std::as_const(encoded).bytes(),
                    {entry->values.data(), dataset.chunk_bytes});
    });
    cache_.finish(id, entry, done);
  };
  bool posted = false;
  const Status called = local_part([&] {
    posted = team_.post(work);
    return Status();
  });
  if (!posted || !called.ok())
    cache_.finish(id, entry, Status(Code::internal, "cannot start reading ahead in a thread"));
}

void ChunkReader::look_ahead(ChunkFile& file, ReadDataset& dataset, const Slab& slab) {
  if (!options_.prefetch || !dataset.reads_ahead || team_.n_threads() <= 1) return;
  const std::optional<Slab> last = std::exchange(last_slab_, slab);
  const std::size_t last_dataset = std::exchange(last_dataset_, dataset.number);
  if (!last || last_dataset != dataset.number || last->rank() != slab.rank() ||
      last->count != slab.count || last->stride != slab.stride) {
    return;
  }
  // Continue only if this slab begins, in exactly one dimension, where the last one ended.
  std::size_t along = slab.rank();
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    if (slab.start[d] == last->start[d]) continue;
    if (along < slab.rank()) return;
    along = d;
    if (slab.start[d] != last->start[d] + slab.count[d] * slab.stride_of(d)) return;
  }
  if (along == slab.rank()) return;
  // Decode the next row of chunks, or as many rows as the slab touches.
  const std::uint64_t extent = dataset.grid.chunk_shape[along];
  const std::uint64_t stride = slab.stride_of(along);
  const std::uint64_t end = slab.start[along] + (slab.count[along] - 1) * stride + 1;
  const std::uint64_t n_rows = (end - 1) / extent - slab.start[along] / extent + 1;
  const std::uint64_t ahead_start = ((end - 1) / extent + 1) * extent;
  const std::uint64_t ahead_end =
      std::min(ahead_start + n_rows * extent, dataset.grid.shape[along]);
  if (ahead_start >= ahead_end) return;
  Slab ahead = slab;
  const std::uint64_t next = slab.start[along] + slab.count[along] * stride;
  const std::uint64_t skipped =
      next >= ahead_start ? 0 : (ahead_start - next + stride - 1) / stride;
  ahead.start[along] = next + skipped * stride;
  if (ahead.start[along] >= ahead_end) return;
  ahead.count[along] = (ahead_end - 1 - ahead.start[along]) / stride + 1;
  if (last_ahead_ == ahead) return;
  TouchedChunks touched(dataset.grid, ahead);
  if (touched.n_chunks() * dataset.chunk_bytes > std::min(kAheadBytesMax, cache_.bytes_max() / 4)) {
    return;
  }
  std::vector<std::uint64_t> chunk_indexes;
  touched.next(kAheadChunksMax, chunk_indexes);
  std::vector<StoredChunk> found;
  // A failure here recurs, and is returned, when the slab is read.
  if (!dataset.index.find(file, *dataset.listed, dataset.n_chunks, chunk_indexes, found).ok()) {
    return;
  }
  last_ahead_ = ahead;
  for (const StoredChunk& job : found) {
    const bool worth = job.extent.encoded_bytes > 0 && !dataset.is_raw(job) &&
                       dataset.check_chunk(file, job).ok() &&
                       !cache_.holds({dataset.number, job.chunk_index});
    if (!worth || !dataset.make_codec(options_.plugin_path).ok()) continue;
    post_ahead(file, dataset, job);
  }
}

}  // namespace tailrace
