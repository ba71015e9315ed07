#include "array/dataset_lifetimes.hpp"

namespace tailrace {

void DatasetLifetimes::add(std::size_t dataset, std::uint64_t address) {
  entries_.resize(dataset + 1);
  entries_.back().address = address;
  const auto [at, fresh] = by_address_.try_emplace(address, dataset);
  if (!fresh) note_gone(std::exchange(at->second, dataset));
}

std::optional<std::size_t> DatasetLifetimes::find(std::uint64_t address) const {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return std::nullopt;
  return found->second;
}

Status DatasetLifetimes::begin_deletion() {
  look_for_deleted();
  ++n_deletions_;
  Status counted;
  // Find the objects that an earlier program left counted, which needs all links to be present
  // still. Objects that this rank does not know to be counted would be lost.
  if (metadata_.opened() && !std::exchange(counted_known_, true)) {
    counted = local_part([&] {
      TAILRACE_TAKE(counted_, counted_objects(metadata_.file().hdf5_id()));
      return Status();
    });
  }
  if (counted_.empty() || held_) return counted;
  const Status held = local_part([&] {
    held_.emplace(metadata_.file().hdf5_id(), counted_);
    return Status();
  });
  return counted.ok() ? held : counted;
}

void DatasetLifetimes::end_deletion() {
  if (--n_deletions_ > 0) return;  // The call was nested: a link's own callback.
  if (held_) held_->release(counted_);
  held_.reset();
}

Status DatasetLifetimes::note_count(std::uint64_t address, int change) {
  return local_part([&] {
    std::uint64_t& n = counted_[address];
    if (change > 0) ++n;
    if (change < 0 && n > 0) --n;
    if (n == 0) counted_.erase(address);
    return Status();
  });
}

Result<bool> DatasetLifetimes::exists(std::size_t dataset) {
  if (gone(dataset)) return false;
  if (!deleted_) return true;
  if (!found_) {
    TAILRACE_TAKE(found_, live_dataset_addresses(metadata_.file().hdf5_id(), counted_));
  }
  return found_->contains(entries_[dataset].address);
}

}  // namespace tailrace
