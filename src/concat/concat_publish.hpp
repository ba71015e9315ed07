// ConcatPublisher: rank 0's side of a concatenation: datasets, their index, intermediate commits.
//
// Chunk entries are gathered at commits and stored here until their dataset is complete. Datasets
// are published in the order of the schema. The unfinished file records how many are published, so
// that a killed run can be resumed after the last one.

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

/// Text that is equal for two runs if the second can resume the first.
std::string request_digest(const ConcatRequest& request, std::uint64_t input_bytes);

/// True if an unfinished output records its progress. A run that was killed before its first commit
/// has left only bytes. Rank 0. Completes an interrupted commit from its journal, and cuts off the
/// bytes after the last commit.
/// @error io_error, no_space
Result<bool> leftover_can_be_resumed(const std::string& partial);

class ConcatPublisher {
 public:
  enum class Mode : std::uint8_t { create, resume, append };
  struct Settings {
    Mode mode = Mode::create;
    std::string first_input;
    std::string request_digest;
    std::vector<std::uint64_t> versions;  ///< file_version() of each input.
    std::uint64_t memory_bytes = 0;       ///< Limit for rows that only HDF5 can copy.
  };

  ConcatPublisher(const ConcatRequest& request, const ConcatLine& line,
                  std::span<const ConcatTarget> targets, std::span<const std::uint64_t> older_rows,
                  Settings settings);

  // These functions do nothing on ranks other than 0, on which open() is not called.

  /// Open the output. @error invalid_argument  resume: the file belongs to another request, or an
  /// input has changed.
  Status open(Hdf5File& file, std::vector<ForeignRows> foreign);
  /// Number of datasets of the schema that are in the file.
  std::size_t n_published() const { return n_published_; }
  /// Add the entries gathered from all ranks.
  void take(std::span<const Bytes> gathered);
  /// Publish the datasets that end at or before `place`.
  Status publish(std::uint64_t place);
  /// Commit the published datasets. Does nothing if the file is `complete` and was never committed:
  /// finish() commits it then.
  Status commit_on_the_way(bool complete);
  /// Set links, attributes and scales, make the last commit, and close.
  /// @param notes  notes of the objects on the losses of their rows (ConcatOutput::finish).
  /// @param left_out  see ConcatOutput::finish.
  /// @returns remarks.
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
  bool records_progress_ = false;  ///< True if the file records that it is unfinished, and its
                                   ///< progress.
};

}  // namespace tailrace
