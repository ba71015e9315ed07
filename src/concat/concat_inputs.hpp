// ConcatInputs: one rank's share of the inputs, their common schema, and whose rows come where.
//
// Files are dealt in runs of the list, equal in bytes, so that a rank's rows of a dataset are
// consecutive. Each file is opened once, by one rank. The first readable file gives the schema; it
// is broadcast, and every rank compares its own files with it: O(datasets) bytes a rank however
// many ranks there are. What is wrong with files is collected and told together.
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

/// Rows of one dataset that lie in one place: an input, the output's older rows, or key numbers.
struct ConcatPart {
  std::uint32_t dataset = 0;    ///< In the schema.
  std::int32_t source = 0;      ///< Position in the list of inputs; -1: the output's older rows.
                                ///< A missing tile has that of the first input.
  std::uint64_t first_row = 0;  ///< In the output.
  std::uint64_t n_rows = 0;
  const StoredForm* form = nullptr;  ///< Unfiltered bytes in one piece have a chunk shape, too.
  ConcatInput* input = nullptr;      ///< Null: key numbers, or a missing tile.
  std::size_t input_dataset = 0;
  const KeyRows* keys = nullptr;
  /// A tile: its place in the output, with the rows above. Null: whole rows.
  const Box* box = nullptr;
  std::int64_t key_offset = 0;
};

/// Rows that only HDF5 can move; known to rank 0.
struct ForeignRows {
  std::uint32_t dataset = 0;
  std::uint32_t source = 0;
  std::uint64_t n_rows = 0;
};

/// Where the `rank`-th rank's share of n things begins when all are dealt evenly, in order.
std::size_t share_begin(std::size_t n, int rank, int n_ranks);

/// The first conflicts of a file with a schema, a line each, and how many more there are.
std::string conflicts_text(std::span<const std::string> conflicts);

/// Equal forms once each, so that a pointer says it all.
class FormTable {
 public:
  /// The one StoredForm equal to this one; lives as long as the table.
  const StoredForm* intern(const StoredForm& form);

 private:
  std::deque<StoredForm> forms_;
  std::unordered_map<std::string, std::vector<const StoredForm*>> by_shape_;
};

/// The form in which parts of a dataset are cut into chunks: `stored` itself if it is chunked, else
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

  /// Hold at most `n_bytes` from now on: if need be, read from the files what was in memory.
  /// Collective: one agreement. @error out_of_memory  the lists of chunks alone are larger.
  Status fit_into(std::uint64_t n_bytes);

  /// The common datasets, then those of keys. The shapes are the first file's.
  const std::vector<StoredDataset>& schema() const { return schema_; }
  /// Rows of each dataset in all inputs.
  const std::vector<std::uint64_t>& n_rows() const { return n_rows_; }
  /// The position of the file that gave the schema.
  std::size_t first_input() const { return first_input_; }

  /// This rank's parts by dataset and row. @param older_rows  rows of each dataset that are in the
  /// output already; added to every first_row.
  std::vector<ConcatPart> parts(std::span<const std::uint64_t> older_rows);
  FormTable& forms() { return forms_; }
  /// What the files' datasets say of their rows; settled by open().
  const ConcatNotes& notes() const { return notes_; }
  /// Rules for files with dimensions; settled by open() but for compare_older().
  ConcatDimensions& dimensions() { return dimensions_; }
  /// Rows of datasets that are not by_value, of all inputs in order; rank 0 only. Collective.
  std::vector<ForeignRows> gather_foreign_rows() const;

  /// Datasets that have as many rows as most of their group in most files, but not in all: their
  /// rows would drift apart unseen. Collective: an allreduce of O(datasets), a gather.
  /// @param lines  rank 0: where that is, up to 50.  @returns how often it is, on every rank.
  std::uint64_t find_uneven_rows(std::vector<std::string>& lines) const;
  /// file_version() of each input as it was opened, 0 of those left out, by position; rank 0 only.
  /// Collective: one gather.
  std::vector<std::uint64_t> gather_versions() const;
  /// Whether all inputs are still as they were opened. Collective: one agreement.
  /// @error corrupt  names the first that is not.
  Status check_unchanged() const;

  /// Keys of older rows end before this number (append). Before parts().
  void start_keys_at(std::int64_t number) { first_key_ = number; }

  std::uint64_t n_files() const { return n_files_; }
  std::uint64_t input_bytes() const { return input_bytes_; }
  /// Inputs with bytes in front of HDF5's own.
  std::uint64_t n_user_blocks() const { return n_user_blocks_; }
  /// Inputs with bytes behind HDF5's own.
  std::uint64_t n_with_bytes_behind() const { return n_with_bytes_behind_; }
  const std::vector<std::string>& skipped() const { return skipped_; }  ///< Rank 0.
  std::uint64_t memory_bytes() const;

 private:
  /// Rows of one dataset in one file; only datasets that have any are listed.
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
  /// An input that cannot be appended, and why.
  struct BadFile {
    std::uint64_t source = 0;
    Code code = Code::ok;
    std::string why;
  };

  Status deal();
  /// The next file of this rank that can be opened; the others are refused.
  std::unique_ptr<ConcatInput> open_next();
  Status agree_on_schema(ConcatInput* own_first_input);
  Status add_key_datasets();
  /// The file that open_next() has just opened becomes one of files_, or is refused.
  void take_in(std::unique_ptr<ConcatInput> input);
  Status number_events_of(OpenedFile& file);
  /// The part of the schema that is in the files.
  std::span<const StoredDataset> in_files() const { return std::span(schema_).first(n_stored_); }
  Status settle_bad_files();
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
  std::deque<Box> boxes_;  ///< Of tiles; parts point here.
  std::vector<BadFile> bad_;
  std::vector<StoredDataset> schema_;
  std::unordered_map<std::string, std::uint32_t> by_path_;  ///< Of the datasets in the files.
  std::size_t n_stored_ = 0;  ///< Datasets of the schema that are in the files: all but the keys'.
  std::vector<KeyedGroup> keyed_;
  std::vector<std::uint64_t> n_rows_;
  std::vector<std::uint64_t> rows_before_;  ///< On lower ranks.
  std::int64_t first_key_ = 0;
  std::uint64_t events_before_ = 0;
  std::size_t first_input_ = 0;
  std::uint64_t n_files_ = 0;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t n_user_blocks_ = 0;
  std::uint64_t n_with_bytes_behind_ = 0;
  std::vector<std::string> skipped_;
};

// --- sort_inputs: the files of a concatenation in the order of what they hold, such as run and
// subrun.

/// `inputs` in ascending order of the first values of the integer datasets `key_paths`, the first
/// path counting most; files that are alike in all of them keep their order. Collective: every rank
/// passes the same and returns the same.
/// Cost: each rank opens its share of the files; a gather of 8 bytes per file and path to rank 0, a
/// broadcast of 8 bytes per file.
/// @param bad_last  files that cannot be read, or lack such a value, come last, in their order;
/// else they are an error.
/// @error that of the first such file; all of them are named.
Result<std::vector<std::string>> sort_inputs(Comm& comm, std::vector<std::string> inputs,
                                             std::span<const std::string> key_paths, bool bad_last);

}  // namespace tailrace
