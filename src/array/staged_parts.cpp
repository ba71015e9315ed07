// Packing of logs; members of compounds; rank 0's writes; cuts of extents.

#include "array/staged_parts.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "hdf5/live_datasets.hpp"

namespace tailrace {

namespace {

/// Copy `n` members of `bytes` between arrays with a step of their own.
void copy_members(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step,
                  std::size_t bytes, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) std::memcpy(to + k * to_step, from + k * from_step, bytes);
}

/// True if a chunk still has all its elements after its dataset was cut.
bool is_whole(const ChunkGrid& grid, std::uint64_t chunk_index, const Shape& cut_to) {
  const Box box = grid.clipped_box(chunk_index);
  return intersect(box, whole_box(cut_to)) == box;
}

}  // namespace

void pack_log(std::size_t staged_as, const StagingLog& log, ByteWriter& writer) {
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* values) {
      writer.add(static_cast<std::uint64_t>(staged_as));
      writer.add(epoch);
      writer.add(slab);
      writer.add_bytes({values, slab.n_elements() * log.element_bytes()});
    });
  }
}

Status stage_within(const StagingLog& log, const Shape& shape, StagingLog& kept) {
  const std::size_t element = log.element_bytes();
  Status put;
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* staged) {
      const SlabPart part = part_within(slab, whole_box(shape));
      if (part.slab.empty() || !put.ok()) return;
      std::vector<std::byte> values(part.slab.n_elements() * element);
      copy_box(part.box(), slab.dense_box(), staged, part.box(), values.data(), element);
      put = kept.put(part.slab, values, epoch);
    });
  }
  return put;
}

// --- members of compounds

void StagedParts::add_member(std::size_t dataset, std::size_t number,
                             const CompoundMember& member) {
  members_[number] = {dataset, member};
  numbers_[dataset].push_back(number);
}

std::optional<std::size_t> StagedParts::find_member(std::size_t dataset,
                                                    const std::string& name) const {
  for (const std::size_t m : members_of(dataset)) {
    if (members_.at(m).member.name == name) return m;
  }
  return std::nullopt;
}

std::span<const std::size_t> StagedParts::members_of(std::size_t dataset) const {
  const auto found = numbers_.find(dataset);
  return found == numbers_.end() ? std::span<const std::size_t>() : found->second;
}

std::size_t StagedParts::dataset_of(std::size_t number) const {
  const auto found = members_.find(number);
  return found == members_.end() ? number : found->second.dataset;
}

/// Unpack the logs of all ranks, sorted by dataset, then in put order.
std::vector<StagedParts::Part> StagedParts::unpack_logs(const std::vector<Bytes>& packed) const {
  std::vector<Part> parts;
  for (const Bytes& of_rank : packed) {
    ByteReader reader(of_rank);
    while (!reader.at_end()) {
      Part part;
      part.staged_as = static_cast<std::size_t>(reader.take<std::uint64_t>());
      part.dataset = dataset_of(part.staged_as);
      part.epoch = reader.take<std::uint64_t>();
      part.slab = reader.take_slab();
      const std::size_t element = variables_[part.staged_as].log.element_bytes();
      part.values = reader.take_bytes(part.slab.n_elements() * element);
      parts.push_back(std::move(part));
    }
  }
  std::ranges::stable_sort(parts, [](const Part& a, const Part& b) {
    return std::pair(a.dataset, a.epoch) < std::pair(b.dataset, b.epoch);
  });
  return parts;
}

/// True if any of a dataset's members is staged on any rank and all ranks write the dataset.
bool StagedParts::must_fold(std::size_t dataset, const std::vector<bool>& staged) const {
  return variables_[dataset].storage != ArrayStorage::by_hdf5 &&
         std::ranges::any_of(members_of(dataset), [&](std::size_t m) { return staged[m]; });
}

void StagedParts::mark_folded(std::vector<bool>& staged) const {
  for (const auto& [v, members] : numbers_) {
    if (must_fold(v, staged)) staged[v] = true;
  }
}

Status StagedParts::fold(std::vector<bool>& staged, const ReadDatasetSlab& read_stored) {
  for (const auto& entry : numbers_) {
    const std::size_t v = entry.first;  // No binding, which a lambda may not capture in clang 14.
    const auto& members = entry.second;
    if (!must_fold(v, staged)) continue;
    const bool gone = lifetimes_.gone(v);
    if (!gone) {
      ByteWriter mine;
      TAILRACE_TRY(comm_.agree(local_part([&] {
        pack_log(v, variables_[v].log, mine);
        for (const std::size_t m : members) pack_log(m, variables_[m].log, mine);
        return Status();
      })));
      const std::vector<Bytes> packed = comm_.gather(mine.bytes(), 0);
      TAILRACE_TRY(comm_.agree(comm_.is_root()
                                   ? local_part([&] { return lay_members(v, packed, read_stored); })
                                   : Status()));
    }
    if (!comm_.is_root() || gone) variables_[v].log.clear();
    for (const std::size_t m : members) {
      variables_[m].log.clear();
      staged[m] = false;
    }
  }
  return Status();
}

/// Replace everything staged for a dataset by complete elements: members are laid over earlier puts
/// and over the file's values.
Status StagedParts::lay_members(std::size_t v, const std::vector<Bytes>& packed,
                                const ReadDatasetSlab& read_stored) {
  const std::size_t element = variables_[v].log.element_bytes();
  StagingLog laid(memory_, element);
  for (const Part& part : unpack_logs(packed)) {
    if (part.staged_as == v) {
      TAILRACE_TRY(laid.put(part.slab, part.values, part.epoch));
      continue;
    }
    const auto& [name, offset, bytes] = members_.at(part.staged_as).member;
    const std::size_t n = part.slab.n_elements();
    std::vector<std::byte> values(n * element);
    TAILRACE_TRY(read_stored(v, part.slab, values));
    laid.lay_over(part.slab, values);
    copy_members(values.data() + offset, element, part.values.data(), bytes, bytes, n);
    TAILRACE_TRY(laid.put(part.slab, values, part.epoch));
  }
  variables_[v].log = std::move(laid);
  return Status();
}

/// Puts of members and of complete elements are applied in put order; consecutive parts of one log
/// are applied together.
Status StagedParts::lay_over(std::size_t v, const Slab& slab, std::span<std::byte> values) const {
  std::vector<std::size_t> logs;
  for (const std::size_t m : members_of(v)) {
    if (!variables_[m].log.empty()) logs.push_back(m);
  }
  if (logs.empty()) {
    variables_[v].log.lay_over(slab, values);
    return Status();
  }
  logs.push_back(v);
  std::vector<Part> parts;
  for (const std::size_t l : logs) {
    const StagingLog& log = variables_[l].log;
    for (std::size_t e = 0; e < log.n_entries(); ++e) {
      log.for_each_piece(e, [&](const Slab& at, std::uint64_t epoch, const std::byte* staged) {
        parts.push_back({v, l, epoch, at, {staged, at.n_elements() * log.element_bytes()}});
      });
    }
  }
  std::ranges::stable_sort(parts, {}, &Part::epoch);
  const std::size_t element = variables_[v].log.element_bytes();
  for (std::size_t i = 0; i < parts.size();) {
    const std::size_t l = parts[i].staged_as;
    const std::size_t bytes = variables_[l].log.element_bytes();
    StagingLog row(memory_, bytes);
    for (; i < parts.size() && parts[i].staged_as == l; ++i) {
      TAILRACE_TRY(row.put(parts[i].slab, parts[i].values, parts[i].epoch));
    }
    if (l == v) {
      row.lay_over(slab, values);
      continue;
    }
    const std::size_t n = slab.n_elements();
    std::byte* const first = values.data() + members_.at(l).member.offset;
    std::vector<std::byte> of_member(n * bytes);
    copy_members(of_member.data(), bytes, first, element, bytes, n);
    row.lay_over(slab, of_member);
    copy_members(first, element, of_member.data(), bytes, bytes, n);
  }
  return Status();
}

// --- values that rank 0 writes

void StagedParts::place(std::size_t dataset, const Shape& shape, std::uint64_t address) {
  // If the values of another dataset lay here, that one has been deleted. The deletion may have
  // gone unseen, through an unserved file in which this file is mounted.
  const std::uint64_t n_bytes = n_elements(shape) * variables_[dataset].log.element_bytes();
  if (placed_.overlaps(address, n_bytes)) lifetimes_.look_for_deleted();
  placed_.insert(address, n_bytes);
  places_[dataset] = {shape, address};
}

/// Write a part directly to the known address of a dataset's contiguous values. HDF5 would open,
/// write and close the dataset, which costs more than creating a small one. @returns false if HDF5
/// must write it
bool StagedParts::write_in_place(const Part& part) {
  const auto place = places_.find(part.dataset);
  if (place == places_.end() || part.staged_as != part.dataset) return false;
  const std::optional<std::uint64_t> first = part.slab.first_of_run(place->second.shape);
  if (!first) return false;
  const std::size_t element = variables_[part.dataset].log.element_bytes();
  output_.file().write_values_at(place->second.address + *first * element, part.values);
  placed_bytes_ += part.values.size();
  return true;
}

Status StagedParts::write_at_root(const std::vector<Bytes>& packed,
                                  const CommitValues& commit_values) {
  const std::vector<Part> parts = unpack_logs(packed);
  // HDF5 writes a dataset's buffered values when its last id is closed. Datasets that the program
  // has open must therefore be flushed explicitly.
  std::set<std::uint64_t> open;
  if (!parts.empty()) {
    TAILRACE_TAKE(open, open_dataset_addresses(output_.file().hdf5_id()));
  }
  for (std::size_t i = 0; i < parts.size();) {
    const std::size_t v = parts[i].dataset;
    const std::uint64_t address = lifetimes_.address_of(v);
    TAILRACE_TAKE(const bool exists, lifetimes_.exists(v));
    const bool buffered = open.contains(address);
    std::int64_t dataset = -1;
    Status written;
    for (; i < parts.size() && parts[i].dataset == v; ++i) {
      const Part& part = parts[i];
      if (!exists || !written.ok()) continue;
      if (variables_[v].storage == ArrayStorage::contiguous) {
        written = commit_values(v, part.slab, part.values.data());
        continue;
      }
      // Once the dataset is open here, HDF5 may have buffered values that this part overwrites.
      if (dataset < 0 && !buffered && write_in_place(part)) continue;
      if (dataset < 0) {
        TAILRACE_TAKE(dataset, open_dataset_at(output_.file().hdf5_id(), address));
      }
      written = part.staged_as == v ? write_elements(dataset, part.slab, part.values)
                                    : write_member(dataset, members_.at(part.staged_as).member.name,
                                                   part.slab, part.values);
    }
    if (dataset >= 0) {
      if (written.ok() && buffered) written = flush_elements(dataset);
      const Status closed = close_elements(dataset);
      if (written.ok()) written = closed;
    }
    TAILRACE_TRY(written.within(quoted_dataset(variables_[v].definition.path)));
  }
  return Status();
}

// --- ExtentCut

Status ExtentCut::save(const Comm& comm, std::size_t dataset, const ChunkGrid& grid,
                       const Shape& shape, std::size_t element_bytes, const ReadDatasetSlab& read) {
  parts_.clear();
  Shape& cut_to = cut_to_[dataset];
  cut_to = grid.shape;
  for (std::size_t d = 0; d < cut_to.size(); ++d) cut_to[d] = std::min(cut_to[d], shape[d]);
  const Box left = whole_box(cut_to);
  const auto n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
  Status done;
  for_each_position(grid.touched(left), [&](const Shape& coordinates) {
    const std::uint64_t chunk_index = grid.index_of(coordinates);
    if (!done.ok() || is_whole(grid, chunk_index, cut_to)) return;
    if (chunk_index % n_ranks != static_cast<std::uint64_t>(comm.rank())) return;
    Part part{Slab::of(intersect(grid.clipped_box(chunk_index), left)), {}};
    part.values.resize(part.slab.n_elements() * element_bytes);
    done = read(dataset, part.slab, part.values);
    if (done.ok()) parts_.push_back(std::move(part));
  });
  return done;
}

void ExtentCut::undo(std::size_t dataset) {
  cut_to_.erase(dataset);
  parts_.clear();
}

void ExtentCut::erase_changed(std::size_t dataset, const ChunkGrid& grid,
                              std::vector<StoredChunk>& chunks) const {
  const auto cut = cut_to_.find(dataset);
  if (cut == cut_to_.end()) return;
  std::erase_if(chunks, [&](const StoredChunk& chunk) {
    return !is_whole(grid, chunk.chunk_index, cut->second);
  });
}

}  // namespace tailrace
