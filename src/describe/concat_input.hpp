// ConcatInput: one input file of a concatenation: its schema, its chunk addresses, its bytes.
//
// open() opens the file once. A small file is read completely into memory with one read, from which
// HDF5 then reads. So thousands of scattered headers cost one read (in-memory I/O, Lee et al. 2022,
// section 5.1). For a large file, HDF5's metadata requests are served in large blocks, and raw data
// are not read. Afterwards the HDF5 file is closed. What remains is a list of the non-empty
// datasets with the addresses of their stored chunks. read_at() reads the chunks' bytes without
// HDF5.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/copied_notes.hpp"
#include "describe/dimension_survey.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ConcatInput {
 public:
  /// Open the file, list all datasets and locate their stored chunks. Files of at most
  /// `image_bytes_max` bytes stay in memory until drop_image(). Not collective; takes the HDF5
  /// lock.
  /// @param look_for_dimensions  also determine has_dimensions(): one more HDF5 call per dataset.
  /// @param look_at_objects  also make survey(): two more HDF5 calls per object, and the reading of
  /// all attributes.
  /// @error not_found, invalid_argument (a folder), io_error, corrupt, unsupported  each names the
  /// file, and the object if one is concerned.
  static Result<std::unique_ptr<ConcatInput>> open(const std::string& path,
                                                   std::uint64_t image_bytes_max,
                                                   bool look_for_dimensions = false,
                                                   bool look_at_objects = false);
  virtual ~ConcatInput() = default;

  virtual const std::string& path() const = 0;
  virtual std::uint64_t file_bytes() const = 0;
  /// Value of file_version() when the file was opened.
  virtual std::uint64_t version() const = 0;

  /// All datasets in the file's own order, those of one group consecutively. open() rejects
  /// external, virtual and any other storage outside the file. Empty after drop_schema().
  virtual const std::vector<StoredDataset>& datasets() const = 0;
  /// The stored chunks of datasets()[dataset_index], by chunk_index, without chunks that were never
  /// written. Contiguous and compact data are one chunk without filters. Compact data have an
  /// address behind the file's end, from which read_at() serves a copy.
  /// Remains valid after drop_schema(). Empty for datasets without rows and for those not by_value.
  virtual ChunkList chunks(std::size_t dataset_index) const = 0;
  /// Loss notes of datasets()[dataset_index]: what its rows have lost. Valid until drop_schema().
  virtual RowNotes row_notes(std::size_t dataset_index) const = 0;
  /// True if the file states that datasets without notes are exact.
  virtual bool declares_exact() const = 0;
  /// True if the file is netCDF-4 or contains a dimension scale. False unless open() was called
  /// with `look_for_dimensions`.
  virtual bool has_dimensions() const = 0;
  /// Objects, attributes and scalars, as of a file without dimensions. Valid until drop_schema();
  /// empty unless open() was called with `look_at_objects`.
  virtual const DimensionSurvey& survey() const = 0;
  /// Bytes in front of the HDF5 superblock.
  virtual std::uint64_t user_block_bytes() const = 0;
  /// Bytes behind the end of file that HDF5 states.
  virtual std::uint64_t bytes_behind() const = 0;
  /// Call `visit` with the open file (hid_t), under the HDF5 lock. The HDF5 file stays open until
  /// drop_schema(). @error the error of `visit`, with the file's name
  virtual Status visit_hdf5(const std::function<Status(std::int64_t file)>& visit) = 0;
  /// Release datasets(): the schema is the same in every file.
  virtual void drop_schema() = 0;

  /// Read all elements of an integer dataset as signed 64-bit numbers, for keys. Inner extents must
  /// be 1. The HDF5 file stays open until drop_schema().
  /// @error not_found, invalid_argument (the type is wrong, or a value exceeds 2^63 - 1)
  virtual Result<std::vector<std::int64_t>> read_integers(const std::string& dataset_path) = 0;

  /// True if the file's bytes are in memory.
  virtual bool in_memory() const = 0;
  /// Release the image. From then on read_at() reads from the file, which it opens when needed (see
  /// close_file()).
  virtual void drop_image() = 0;
  /// Close the descriptor. The next read_at() opens it again.
  virtual void close_file() = 0;
  /// Fill `bytes` from `address`. One thread at a time. @error io_error, corrupt (too short)
  virtual Status read_at(std::uint64_t address, std::span<std::byte> bytes) = 0;
  /// Memory used by schema, chunk lists and image.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// Read the first element of each given integer dataset, to sort a list of files. Reads no more of
/// the file than this needs. Not collective; takes the HDF5 lock.
/// @error not_found (the file or a dataset), invalid_argument (the type is wrong, or the dataset is
/// empty), io_error, corrupt; each names the file and the dataset.
Result<std::vector<std::int64_t>> first_integers(const std::string& path,
                                                 std::span<const std::string> dataset_paths);

}  // namespace tailrace
