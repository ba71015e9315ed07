// RankMetadata: the metadata files of all ranks, which the program changes by HDF5's own calls.
//
// HDF5 requires that all ranks of a parallel program make the same metadata changes. So every rank
// has a file. Rank 0's is the Output, which is committed. The others' lie in memory and end with
// the program's file (hdf5/private_storage.hpp).
//
// AttributeNotes: the attributes that the program has created, compared between ranks.
//
// Invariant 1: only rank 0's metadata reach the disk. Invariant 2: the other ranks see an opened
// file as it was, because their HDF5 does not know the chunks that flushes insert. Rank 0 preserves
// and broadcasts what a commit overwrites.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "hdf5/commit_order.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/private_storage.hpp"
#include "output/output.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class RankMetadata {
 public:
  /// @param comm, output  outlive the result.
  RankMetadata(Comm& comm, Output& output) : comm_(comm), output_(output) {}

  /// Install a storage that preserves what rank 0 overwrites. Call before Output::open(), on rank 0
  /// only. @param options  the Output's; must not outlive this.
  void preserve_at_root(FileOptions& options);
  /// Create or open the other ranks' files, once the Output is open. Errors are agreed. Collective:
  /// an agreement, and a broadcast if the file was opened.
  /// @param sharing  found by rank 0: the datasets that share chunk addresses with others.
  Status start(const FileOptions& options, bool create, std::vector<std::string> sharing);

  /// This rank's file.
  Hdf5File& file() { return comm_.is_root() ? output_.file() : *private_file_; }
  bool opened() const { return opened_; }
  /// True if the opened file's dataset of this path shares chunk addresses with others. The same on
  /// every rank.
  bool shares_chunks(const std::string& path) const;
  /// Commit the Output. Rank 0 only.
  Status commit_at_root();
  /// Give the other ranks the bytes that the last commit has overwritten. Collective: one
  /// broadcast, if the file was opened.
  void share_preserved();
  /// Close this rank's file, unless it is the Output.
  void close_private() { private_file_.reset(); }

 private:
  Status start_private(const FileOptions& options);

  Comm& comm_;
  Output& output_;
  bool opened_ = false;
  std::vector<std::string> sharing_;
  PreservingStorage* preserving_ = nullptr;          ///< Rank 0 of an opened file.
  std::uint64_t opened_bytes_ = 0;                   ///< Length of the file at opening; rank 0.
  DirtyBytes preserved_;                             ///< Overwritten by the last commit; rank 0.
  std::unique_ptr<PrivateStorage> private_storage_;  ///< All ranks but 0.
  std::uint64_t private_end_ = 0;
  std::unique_ptr<Hdf5File> private_file_;
};

/// Notes on the attributes that the program creates. An attribute that rank 0 does not create is
/// not in the file, and only the notes of all ranks tell. Their order does not count.
class AttributeNotes {
 public:
  /// Note a created attribute: its object and name.
  void add(const std::string& object, std::string_view name);
  /// Add this rank's numbers to a reduction. differ() is true after it if the ranks' notes differ.
  void add_to(RankNumbers& along);
  bool differ() const { return least_ != ~least_complement_; }
  /// Compare the notes, and forget them. Collective: like agree_on_text().
  /// @returns a sentence about the first difference; empty if there were too many notes to tell.
  std::string compare(Comm& comm);

 private:
  std::uint64_t hash_ = 0;  ///< Sum over all notes.
  std::uint64_t least_ = 0;
  std::uint64_t least_complement_ = ~std::uint64_t{0};
  std::vector<std::string> texts_;
};

}  // namespace tailrace
