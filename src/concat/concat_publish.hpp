// ConcatPublisher: rank 0's side of a concatenation: datasets, their index, commits on the way.
//
// Chunk entries are gathered at commits and wait here until their dataset is complete. Datasets are
// published in the order of the schema; how many are is kept in the unfinished file, so that a
// killed run can be resumed behind the last of them.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concat/concat.hpp"
#include "concat/concat_inputs.hpp"
#include "concat/concat_line.hpp"
#include "concat/concat_write.hpp"
#include "concat/hdf5/concat_output.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// A text that is equal for two runs if the second can resume the first.
std::string request_digest(const ConcatRequest& request, std::uint64_t input_bytes);

/// Whether an unfinished output tells how far it has come; a run that was killed before its first
/// commit has left nothing but bytes. Rank 0. A commit that was cut short is completed first, from
/// its journal; what was written since the last commit is cut off. @error io_error, no_space  while
/// that is done.
Result<bool> leftover_can_be_resumed(const std::string& partial);

class ConcatPublisher {
 public:
  enum class Mode : std::uint8_t { create, resume, append };
  struct Settings {
    Mode mode = Mode::create;
    std::string first_input;
    std::string request_digest;
    std::vector<std::uint64_t> versions;  ///< Of the inputs, see file_version().
    std::uint64_t memory_bytes = 0;       ///< For rows that only HDF5 can move.
  };

  ConcatPublisher(const ConcatRequest& request, const ConcatLine& line,
                  std::span<const ConcatTarget> targets, std::span<const std::uint64_t> older_rows,
                  Settings settings);

  // All of these do nothing on other ranks than 0, on which open() is not called.

  /// @error invalid_argument  resume: the file is of another request, or an input has changed.
  Status open(Hdf5File& file, std::vector<ForeignRows> foreign);
  /// Datasets of the schema that are in the file.
  std::size_t n_published() const { return n_published_; }
  /// Entries as gathered from all ranks.
  void take(std::span<const Bytes> gathered);
  /// Publish the datasets that end at `place` or before.
  Status publish(std::uint64_t place);
  /// Commit what is published; not if the file is `complete` and was never committed before, which
  /// finish() commits.
  Status commit_on_the_way(bool complete);
  /// Links, attributes, scales; the last commit; close. @param notes  what objects say of what
  /// their rows have lost (ConcatOutput::finish). @param left_out  as there. @returns remarks.
  Result<std::vector<std::string>> finish(const CopiedObjects& notes,
                                          std::span<const ObjectAttribute> left_out);

 private:
  Status check_progress(const std::optional<ConcatProgress>& progress) const;
  Status publish_dataset(std::size_t dataset, std::span<const WrittenPlace> entries);

  const ConcatRequest& request_;
  const ConcatLine& line_;
  std::span<const ConcatTarget> targets_;
  std::span<const std::uint64_t> older_rows_;
  Settings settings_;
  Hdf5File* file_ = nullptr;
  std::unique_ptr<ConcatOutput> output_;
  std::vector<ForeignRows> foreign_;
  std::vector<WrittenPlace> entries_;
  std::size_t n_published_ = 0;
  bool tells_progress_ = false;  ///< The file says that it is unfinished, and how far it has come.
};

}  // namespace tailrace
