// ConcatInputs: one rank's share of the inputs, their common schema, and the position of their rows
// in the output.
//
// Files are distributed in runs of the list, equal in bytes, so that a rank's rows of a dataset are
// consecutive. Each file is opened once, by one rank. The first readable file defines the schema;
// it is broadcast, and every rank compares its files with it: O(datasets) bytes a rank, for any
// number of ranks. Faults of files are collected and reported together.
// Source: Lee et al. 2022, sections 3 (steps 1 and 2) and 5.1.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "concat/concat.hpp"
#include "concat/concat_dimensions.hpp"
#include "concat/concat_keys.hpp"
#include "concat/concat_notes.hpp"
#include "core/comm.hpp"
#include "describe/concat_input.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Rows of one dataset from one source: an input, the output's older rows, or key numbers.
struct ConcatPart {
  std::uint32_t dataset = 0;    ///< Index in the schema.
  std::int32_t source = 0;      ///< Position in the list of inputs; -1: the output's older rows. A
                                ///< missing tile has that of the first input.
  std::uint64_t first_row = 0;  ///< Row of the output.
  std::uint64_t n_rows = 0;
  const StoredForm* form = nullptr;  ///< Never null; contiguous data get a chunk shape too.
  ConcatInput* input = nullptr;      ///< Null: key numbers, or a missing tile.
  std::size_t input_dataset = 0;
  const KeyRows* keys = nullptr;
  /// Box of a tile in the output, with the rows that precede it. Null: complete rows.
  const Box* box = nullptr;
  std::int64_t key_offset = 0;
};

/// Rows that only HDF5 can copy; known to rank 0.
struct ForeignRows {
  std::uint32_t dataset = 0;
  std::uint32_t source = 0;
  std::uint64_t n_rows = 0;
};

/// Begin of the `rank`-th rank's share of n items that are distributed evenly, in order.
std::size_t share_begin(std::size_t n, int rank, int n_ranks);

/// Text of the first conflicts of a file with a schema, a line each, and the number of further
/// ones.
std::string conflicts_text(std::span<const std::string> conflicts);

/// Stores equal forms once, so that forms can be compared by pointer.
class FormTable {
 public:
  /// The stored form equal to this one; it lives as long as the table.
  const StoredForm* intern(const StoredForm& form);

 private:
  std::deque<StoredForm> forms_;
  std::unordered_map<std::string, std::vector<const StoredForm*>> by_shape_;
};

/// The form by which parts of a dataset are cut into chunks: `stored` if it is chunked, else
/// unfiltered runs of rows of about 1 MiB.
StoredForm chunked_form(const StoredDataset& dataset, const StoredForm& stored);

class ConcatInputs {
 public:
  ConcatInputs(Comm& comm, const ConcatRequest& request)
      : comm_(comm), request_(request), dimensions_(request) {}

  /// Open this rank's share, agree on the schema, count rows. Collective; the same Status on every
  /// rank. Cost: 2 gathers and broadcasts of 8 bytes per file, a broadcast of the schema, a prefix
  /// sum of O(datasets).
  /// @error invalid_argument, corrupt, not_found, ...  with OnError::stop, all bad files in one
  /// text
  Status open(std::uint64_t image_bytes);

  /// Reduce memory to `n_bytes`: if need be, free the file images and read from the files instead.
  /// Collective: one agreement. @error out_of_memory  the lists of chunks exceed the limit.
  Status fit_into(std::uint64_t n_bytes);

  /// The common datasets, then the key datasets. The shapes are the first file's.
  const std::vector<StoredDataset>& schema() const { return schema_; }
  /// Rows of each dataset in all inputs.
  const std::vector<std::uint64_t>& n_rows() const { return n_rows_; }
  /// Position of the file that defined the schema.
  std::size_t first_input() const { return first_input_; }

  /// This rank's parts, by dataset and row.
  /// @param older_rows  rows of each dataset that the output already has; added to every first_row.
  std::vector<ConcatPart> parts(std::span<const std::uint64_t> older_rows);
  FormTable& forms() { return forms_; }
  /// Notes of the files' datasets on their rows; complete after open().
  const ConcatNotes& notes() const { return notes_; }
  /// Rules for files with dimensions; complete after open(), except for compare_older().
  ConcatDimensions& dimensions() { return dimensions_; }
  /// Rows of datasets that are not by_value, of all inputs in order; rank 0 only. Collective.
  std::vector<ForeignRows> gather_foreign_rows() const;

  /// Find datasets that have as many rows as most of their group in most files, but not in all:
  /// their rows would drift apart unnoticed. Collective: an allreduce of O(datasets), a gather.
  /// @param lines  rank 0: descriptions of the cases, up to 50.
  /// @returns the number of cases, on every rank.
  std::uint64_t find_uneven_rows(std::vector<std::string>& lines) const;
  /// file_version() of each input when it was opened, 0 for skipped ones, by position; rank 0 only.
  /// Collective: one gather.
  std::vector<std::uint64_t> gather_versions() const;
  /// Check that no input has changed since it was opened. Collective: one agreement.
  /// @error corrupt  names the first changed input.
  Status check_unchanged() const;

  /// Set the first key number; older rows (append) have lower ones. Call before parts().
  void start_keys_at(std::int64_t number) { first_key_ = number; }

  std::uint64_t n_files() const { return n_files_; }
  std::uint64_t input_bytes() const { return input_bytes_; }
  /// Number of inputs with bytes before HDF5's data (user blocks).
  std::uint64_t n_user_blocks() const { return n_user_blocks_; }
  /// Number of inputs with bytes after HDF5's data.
  std::uint64_t n_with_bytes_behind() const { return n_with_bytes_behind_; }
  const std::vector<std::string>& skipped() const { return skipped_; }  ///< Rank 0.
  std::uint64_t memory_bytes() const;

 private:
  /// Rows of one dataset in one file; datasets without rows are not listed.
  struct FileRows {
    std::uint32_t dataset = 0;
    std::uint32_t input_dataset = 0;
    std::uint64_t n_rows = 0;
    const StoredForm* form = nullptr;
  };
  struct OpenedFile {
    std::size_t source = 0;
    std::unique_ptr<ConcatInput> input;
    std::vector<FileRows> rows;
    FileKeys keys;
  };
  /// Input that cannot be appended, and the reason.
  struct BadFile {
    std::uint64_t source = 0;
    Code code = Code::ok;
    std::string why;
  };

  Status deal();
  /// Open the next file of this rank that can be opened; refuse the others.
  std::unique_ptr<ConcatInput> open_next();
  Status agree_on_schema(ConcatInput* own_first_input);
  Status add_key_datasets();
  /// Add the file that open_next() has just opened to files_, or refuse it.
  void take_in(std::unique_ptr<ConcatInput> input);
  Status number_events_of(OpenedFile& file);
  /// The datasets of the schema that the files contain.
  std::span<const StoredDataset> in_files() const { return std::span(schema_).first(n_stored_); }
  Status agree_on_bad_files();
  void count_rows();
  Status compare_tiles();
  void add_missing_tiles(std::vector<ConcatPart>& parts);
  void refuse(std::size_t source, const Status& why);

  Comm& comm_;
  const ConcatRequest& request_;
  std::size_t own_begin_ = 0;
  std::size_t own_end_ = 0;
  std::size_t next_file_ = 0;
  std::uint64_t image_bytes_left_ = 0;
  FormTable forms_;
  ConcatNotes notes_;
  ConcatDimensions dimensions_;
  std::vector<OpenedFile> files_;
  std::deque<Box> boxes_;  ///< Boxes of tiles; parts point here.
  std::vector<BadFile> bad_;
  std::vector<StoredDataset> schema_;
  std::unordered_map<std::string, std::uint32_t> by_path_;  ///< Indices of the datasets in the
                                                            ///< files.
  std::size_t n_stored_ = 0;  ///< Number of datasets in the files: all but the key datasets.
  std::vector<KeyedGroup> keyed_;
  std::vector<std::uint64_t> n_rows_;
  std::vector<std::uint64_t> rows_before_;  ///< Rows on lower ranks.
  std::int64_t first_key_ = 0;
  std::uint64_t events_before_ = 0;
  std::size_t first_input_ = 0;
  std::uint64_t n_files_ = 0;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t n_user_blocks_ = 0;
  std::uint64_t n_with_bytes_behind_ = 0;
  std::vector<std::string> skipped_;
};

// --- sort_inputs: order the files of a concatenation by their contents, such as run and subrun.

/// Sort `inputs` by the first values of the integer datasets `key_paths`, ascending, the first path
/// most significant. The sort is stable. Collective: every rank passes the same and returns the
/// same.
/// Cost: each rank opens its share of the files; a gather of 8 bytes per file and path to rank 0, a
/// broadcast of 8 bytes per file.
/// @param bad_last  files that cannot be read, or lack such a value, come last, in their order;
/// else they are an error.
/// @error the first such file's; the message names all of them.
Result<std::vector<std::string>> sort_inputs(Comm& comm, std::vector<std::string> inputs,
                                             std::span<const std::string> key_paths, bool bad_last);

}  // namespace tailrace
