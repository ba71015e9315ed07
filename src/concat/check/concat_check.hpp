// ConcatCheck: is a file the concatenation of others? Plain HDF5 reading, nothing of the engine.
//
// The checker and the engine share no code that knows where rows belong: inputs and output are read
// through HDF5 hyperslabs, with the filters that HDF5 has. One object per rank; it looks at the
// output and, one after another or some at a time, at the rank's own inputs.
//
// Invariant 1: at most files_at_once inputs are open, and two buffers of a quarter of the memory
// cap each hold rows (what strings of variable length point to comes on top).
// Invariant 2: what differs is a finding, and so are rows that cannot be read; a file or an object
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

#include "describe/tile_layout.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// What was found: the first lines, and how many there are.
struct ConcatFindings {
  static constexpr std::size_t most_lines = 20;
  std::vector<std::string> lines;
  std::uint64_t n_all = 0;
  void add(std::string line);
};

/// Rows of one dataset in one input; datasets without rows are left out.
struct InputRows {
  std::uint32_t dataset_index = 0;
  std::uint64_t n_rows = 0;
};

class ConcatCheck {
 public:
  struct Dataset {
    std::string path;
    bool appended = true;         ///< False: taken over from the first input as it is.
    std::uint64_t n_rows = 0;     ///< In the output.
    std::uint64_t row_bytes = 0;  ///< As HDF5 holds them in memory.
  };
  using Progress = std::function<void(std::uint64_t n_bytes)>;

  /// Open the output and list the datasets that it and the first input have. Not collective; takes
  /// the HDF5 lock, as all calls do. Main thread only. Without `follow_external` no value is read
  /// that lies in another file: a dataset of such is an error of what meets it.
  /// Datasets that do not grow are compared with the first input's alone under `keep_first`.
  /// @error not_found, corrupt  names the file.  @error unsupported  names file and dataset.
  struct Settings {
    std::uint64_t memory_bytes = 0;
    bool follow_external = false;
    bool keep_first = false;
    std::vector<std::string> tile_dimensions = {};  ///< As for concat.
  };
  static Result<std::unique_ptr<ConcatCheck>> open(const std::string& output,
                                                   const std::string& first_input,
                                                   const Settings& settings);
  virtual ~ConcatCheck() = default;

  /// The datasets that every input must have.
  virtual const std::vector<Dataset>& datasets() const = 0;
  /// Datasets of the output alone that are partition keys ("evt.seq"), by path.
  virtual const std::vector<std::string>& keys() const = 0;

  /// Compare what is taken over from the first input: groups, named types, attributes, fill values,
  /// scalars; and that there is nothing else. Once, on rank 0.
  virtual Status compare_objects(ConcatFindings& findings) = 0;
  /// Compare an input's datasets with the output's in name, type and inner extents; those that do
  /// not grow in their values, too.
  /// @returns the rows of those that can be compared further, by dataset.
  virtual Result<std::vector<InputRows>> survey(const std::string& input,
                                                ConcatFindings& findings) = 0;

  /// Dimensions along which the inputs are tiles; empty: they are not. Then lay_out_tiles() and
  /// compare_tile() take the place of survey() and compare_rows().
  virtual const std::vector<std::string>& tile_axes() const = 0;
  /// Position of an input along each axis.
  virtual Result<std::vector<TileFacts>> tile_facts(const std::string& input,
                                                    std::size_t source) = 0;
  /// @param facts  of all inputs, by axis.
  virtual Status lay_out_tiles(std::span<const std::vector<TileFacts>> facts,
                               std::span<const std::string> inputs) = 0;
  /// Compare all datasets of an input with the output.
  virtual Status compare_tile(const std::string& input, std::size_t source,
                              ConcatFindings& findings) = 0;
  /// Compare what no input has with fill values. Once, on rank 0.
  virtual Status compare_missing_tiles(ConcatFindings& findings) = 0;

  /// Compare the rows of consecutive inputs with the output's rows from `first_rows` on (by
  /// dataset), which is moved on behind them. `progress` counts bytes of rows compared.
  virtual Status compare_rows(std::span<const std::string> inputs,
                              std::span<const std::vector<InputRows>> rows,
                              std::span<std::uint64_t> first_rows, const Progress& progress,
                              ConcatFindings& findings) = 0;

  /// Check the keys of one input's rows, which begin at `first_rows` of the output: in /spill each
  /// event that has not been seen gets the next number; in all groups the same event (the tuple of
  /// `names`, where they are given) has the number that /spill gives it.
  virtual void check_keys(const std::string& input, std::span<const InputRows> rows,
                          std::span<const std::uint64_t> first_rows,
                          std::span<const std::string> names, ConcatFindings& findings) = 0;

  static constexpr std::size_t files_at_once = 64;
};

}  // namespace tailrace
