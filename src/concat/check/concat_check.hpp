// ConcatCheck: checks that a file is the concatenation of others. It reads plain HDF5 and uses
// nothing of the engine.
//
// The checker and the engine share no code on the position of rows: inputs and output are read
// through HDF5 hyperslabs, with HDF5's filters. Each rank has one object, which reads the output
// and the rank's inputs, singly or several at a time.
//
// Invariant 1: at most kFilesAtOnce inputs are open, and two buffers of a quarter of the memory
// cap each store rows. Data of variable-length strings are in addition to that.
// Invariant 2: a difference is a finding, and so are rows that cannot be read. A file or object
// that cannot be opened is a failure.
// Method: Lee et al. 2022 check nothing; row counts, order and content here follow from the
// definition of the concatenation (docs/concat.md).

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "describe/tile_layout.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The first lines of the findings, and their total number.
struct ConcatFindings {
  static constexpr std::size_t kMostLines = 20;
  std::vector<std::string> lines;
  std::uint64_t n_all = 0;
  void add(std::string line);
};

/// Rows of one dataset in one input. Datasets without rows are omitted.
struct InputRows {
  std::uint32_t dataset_index = 0;
  std::uint64_t n_rows = 0;
};

class ConcatCheck {
 public:
  struct Dataset {
    std::string path;
    bool appended = true;         ///< False: copied from the first input.
    std::uint64_t n_rows = 0;     ///< Rows in the output.
    std::uint64_t row_bytes = 0;  ///< Size of a row in memory, in HDF5's memory type.
  };
  using Progress = std::function<void(std::uint64_t n_bytes)>;

  /// Settings of open().
  struct Settings {
    std::uint64_t memory_bytes = 0;
    bool follow_external = false;
    bool keep_first = false;
    std::vector<std::string> tile_dimensions = {};  ///< See ConcatRequest.
  };
  /// Open the output and list the datasets that it and the first input have. Not collective; takes
  /// the HDF5 lock, as all calls do. Main thread only. Without `follow_external` no value in
  /// another file is read: such a dataset is an error of the call that reads it. Under `keep_first`
  /// datasets that do not grow are compared only with the first input's.
  /// @error not_found, corrupt  names the file.
  /// @error unsupported  names file and dataset.
  static Result<std::unique_ptr<ConcatCheck>> open(const std::string& output,
                                                   const std::string& first_input,
                                                   const Settings& settings);
  virtual ~ConcatCheck() = default;

  /// The datasets that every input must have.
  virtual const std::vector<Dataset>& datasets() const = 0;
  /// Partition keys ("evt.seq") by path; only the output has them.
  virtual const std::vector<std::string>& keys() const = 0;

  /// Compare everything that is copied from the first input: groups, named types, attributes, fill
  /// values, scalars. Also check that the output has nothing else. Call once, on rank 0.
  virtual Status compare_objects(ConcatFindings& findings) = 0;
  /// Compare an input's datasets with the output's by name, type and inner extents; fixed datasets
  /// also by value. Compare what is copied from the first input with that input.
  /// @param source  position of the input in the list.
  /// @returns the rows of the datasets that can be compared further, by dataset.
  virtual Result<std::vector<InputRows>> survey(const std::string& input, std::size_t source,
                                                ConcatFindings& findings) = 0;
  /// Merge what survey() and compare_tile() found in inputs and is not in the output, because the
  /// output follows the first input. Collective: a gather and an allreduce.
  virtual void merge_differences(Comm& comm) = 0;
  /// Remarks on that, and on bytes of files outside HDF5's part. Rank 0, after merge_differences().
  virtual std::vector<std::string> remarks(std::span<const std::string> inputs) const = 0;

  /// Dimensions along which the inputs are tiles; empty: they are not tiles. With tiles, call
  /// lay_out_tiles() and compare_tile() instead of survey() and compare_rows().
  virtual const std::vector<std::string>& tile_axes() const = 0;
  /// Position of an input along each axis.
  virtual Result<std::vector<TileFacts>> tile_facts(const std::string& input,
                                                    std::size_t source) = 0;
  /// @param facts  facts of all inputs, by axis.
  virtual Status lay_out_tiles(std::span<const std::vector<TileFacts>> facts,
                               std::span<const std::string> inputs) = 0;
  /// Compare all datasets of an input with the output.
  virtual Status compare_tile(const std::string& input, std::size_t source,
                              ConcatFindings& findings) = 0;
  /// Compare the parts that no input has with fill values. Call once, on rank 0.
  virtual Status compare_missing_tiles(ConcatFindings& findings) = 0;

  /// Compare the rows of consecutive inputs with the output's rows from `first_rows` on (by
  /// dataset), and advance `first_rows`. `progress` counts bytes of compared rows.
  virtual Status compare_rows(std::span<const std::string> inputs,
                              std::span<const std::vector<InputRows>> rows,
                              std::span<std::uint64_t> first_rows, const Progress& progress,
                              ConcatFindings& findings) = 0;

  /// Check the keys of one input's rows, which begin at `first_rows` of the output. In /spill each
  /// new event gets the next number. In all groups an event (the tuple of `names`, if given) has
  /// the number that /spill gives to it.
  virtual void check_keys(const std::string& input, std::span<const InputRows> rows,
                          std::span<const std::uint64_t> first_rows,
                          std::span<const std::string> names, ConcatFindings& findings) = 0;

  static constexpr std::size_t kFilesAtOnce = 64;
};

}  // namespace tailrace
