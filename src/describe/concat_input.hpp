// ConcatInput: one input file of a concatenation: its schema, where its chunks lie, its bytes.
//
// The file is opened once. A small file is read whole into memory in one piece and HDF5 reads from
// there, so that thousands of scattered headers cost one read (in-memory I/O, Lee et al. 2022,
// section 5.1); of a large one the metadata are read in large blocks as HDF5 asks for them, and no
// raw data. Afterwards the HDF5 file is closed: what is left is a list of the non-empty datasets
// with the addresses of their stored chunks, whose bytes read_at() delivers without HDF5.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/copied_notes.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ConcatInput {
 public:
  /// Open, list all datasets and find their stored chunks. Files of at most `image_bytes_max` bytes
  /// are kept in memory until drop_image(). Not collective; takes the HDF5 lock.
  /// @param look_for_dimensions  find has_dimensions(): one more HDF5 call per dataset.
  /// @error not_found, invalid_argument (a folder), io_error, corrupt, unsupported  each names the
  /// file, and the object where there is one.
  static Result<std::unique_ptr<ConcatInput>> open(const std::string& path,
                                                   std::uint64_t image_bytes_max,
                                                   bool look_for_dimensions = false);
  virtual ~ConcatInput() = default;

  virtual const std::string& path() const = 0;
  virtual std::uint64_t file_bytes() const = 0;
  /// As of file_version(), when it was opened.
  virtual std::uint64_t version() const = 0;

  /// All datasets in the file's own order, a group's after one another; external, virtual and
  /// otherwise foreign storage is refused by open(). Empty after drop_schema().
  virtual const std::vector<StoredDataset>& datasets() const = 0;
  /// The stored chunks of datasets()[dataset_index], by chunk_index; chunks that were never written
  /// are left out. Contiguous and compact data are one chunk without filters (compact data have an
  /// address, too: behind the file's end, where read_at() knows a copy).
  /// Valid after drop_schema(), too. Empty for datasets without rows and for those not by_value.
  virtual ChunkList chunks(std::size_t dataset_index) const = 0;
  /// What datasets()[dataset_index] says that its rows have lost; until drop_schema().
  virtual RowNotes row_notes(std::size_t dataset_index) const = 0;
  /// Whether the file says that datasets which say nothing are exact.
  virtual bool says_exact() const = 0;
  /// True if the file is netCDF-4, or if a dataset of it is a dimension scale. False unless open()
  /// was asked to look.
  virtual bool has_dimensions() const = 0;
  /// Bytes in front of HDF5's own.
  virtual std::uint64_t user_block_bytes() const = 0;
  /// Bytes behind the end that HDF5 states.
  virtual std::uint64_t bytes_behind() const = 0;
  /// Call `visit` with the open file (hid_t), under the HDF5 lock. The HDF5 file stays open from
  /// here until drop_schema(). @error what `visit` returns, with the file's name
  virtual Status visit_hdf5(const std::function<Status(std::int64_t file)>& visit) = 0;
  /// Forget datasets(): the schema is the same in every file.
  virtual void drop_schema() = 0;

  /// All elements of a dataset of integers, as signed 64-bit numbers (for keys); the dataset may
  /// have inner extents of 1. The HDF5 file stays open from here until drop_schema().
  /// @error not_found, invalid_argument (its type, or a value above 2^63 - 1)
  virtual Result<std::vector<std::int64_t>> read_integers(const std::string& dataset_path) = 0;

  /// Whether the bytes are in memory.
  virtual bool in_memory() const = 0;
  /// Give the memory back; read_at() goes to the file from now on (opened when needed, see
  /// close_file()).
  virtual void drop_image() = 0;
  /// Close the descriptor until the next read_at().
  virtual void close_file() = 0;
  /// Fill `bytes` from `address`. One thread at a time. @error io_error, corrupt (too short)
  virtual Status read_at(std::uint64_t address, std::span<std::byte> bytes) = 0;
  /// Memory held for schema, chunk lists and image.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// The first element of each of some datasets of integers, for sorting a list of files. Reads no
/// more of the file than that takes. Not collective; takes the HDF5 lock.
/// @error not_found (the file, or a dataset of it), invalid_argument (its type, or it is empty),
/// io_error, corrupt; each names the file and the dataset.
Result<std::vector<std::int64_t>> first_integers(const std::string& path,
                                                 std::span<const std::string> dataset_paths);

}  // namespace tailrace
