// DatasetLifetimes: which of a program's datasets exist, and at which address of this rank's file.
//
// A program deletes datasets by links, reference counts and attributes, and the space of a deleted
// header may serve a new one. So deletions are not followed one by one. After any of them, a flush
// searches the file for the datasets that still exist (hdf5/live_datasets.hpp).
//
// Invariant 1: an address denotes the dataset that was added there last; any earlier one is gone,
// for good. Invariant 2: while the program has not deleted anything, nothing is searched.
// Not collective; every rank makes the same calls, except for searches.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "array/rank_metadata.hpp"
#include "hdf5/live_datasets.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class DatasetLifetimes {
 public:
  /// @param metadata  outlives the result.
  explicit DatasetLifetimes(RankMetadata& metadata) : metadata_(metadata) {}

  /// Add a dataset whose header lies at `address`. Its number exceeds all earlier ones.
  void add(std::size_t dataset, std::uint64_t address);
  /// Find the dataset at an address.
  std::optional<std::size_t> find(std::uint64_t address) const;
  /// Header address of a dataset; 0 for a member of a compound, which is not added.
  std::uint64_t address_of(std::size_t dataset) const {
    return dataset < entries_.size() ? entries_[dataset].address : 0;
  }

  /// Make the next searches look for deleted datasets, because there may be some.
  void look_for_deleted() { deleted_ = true; }
  /// Bracket a call that deletes objects by links or reference counts. Calls nest. After an error
  /// this rank may lose objects that other ranks keep.
  Status begin_deletion();
  void end_deletion();
  /// Record that the program changed the reference count of an object independently of its links.
  Status note_count(std::uint64_t address, int change);

  /// True if a dataset is known to be deleted.
  bool gone(std::size_t dataset) const { return entries_[dataset].gone; }
  void note_gone(std::size_t dataset) { entries_[dataset].gone = true; }
  /// Test whether a dataset exists in this rank's file. The first call since end_search() searches
  /// the file, if anything may have been deleted. @error internal
  Result<bool> exists(std::size_t dataset);
  void end_search() { found_.reset(); }

 private:
  struct Entry {
    std::uint64_t address = 0;
    bool gone = false;
  };
  RankMetadata& metadata_;
  std::vector<Entry> entries_;  ///< Indexed by number.
  std::map<std::uint64_t, std::size_t> by_address_;
  /// True after any deletion; a deleted dataset exists as long as it is open anywhere.
  bool deleted_ = false;
  CountedObjects counted_;           ///< An opened file's are found at the first deletion.
  bool counted_known_ = false;       ///< True after that search.
  std::optional<HeldObjects> held_;  ///< Set during a deletion.
  int n_deletions_ = 0;              ///< Deletions in progress, nested.
  std::optional<std::set<std::uint64_t>> found_;  ///< Addresses of datasets that exist.
};

}  // namespace tailrace
