// DatasetList: all datasets of a file, whatever they hold and wherever their data lie, with what a
// reader must know to fetch their elements without HDF5.
//
// Unlike a concatenation's input (concat_input.hpp) nothing is refused: what cannot be read chunk
// by chunk is marked as HDF5's own affair. Links other than the first hard one to an object are
// kept as aliases, so that a dataset is found by any of its names.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// One dataset as a reader sees it.
struct ListedDataset {
  ConcatDataset file;          ///< Shape {0} stands for a null dataspace.
  std::optional<DType> dtype;  ///< Numbers: what they are read as.
  bool swapped = false;        ///< Numbers of the dtype's size in the other byte order.
  /// Only HDF5 can read it: data in other files, compact, numbers of another size or precision,
  /// elements that point elsewhere.
  bool by_hdf5 = false;
  bool plain_edges = false;  ///< Chunks that reach over the shape's end have no filters.
  bool strings = false;      ///< Elements are texts, of fixed or variable length.
  Shape max_shape;           ///< UINT64_MAX: unlimited.
  std::optional<double> fill_value;
  Extent contiguous;  ///< encoded_bytes 0: never written.
};

struct DatasetList {
  std::vector<ListedDataset> datasets;  ///< In the file's own order, depth first.
  /// Other names: of hard links after the first and soft links, of datasets and groups alike; and
  /// the path that each stands for.
  std::vector<std::pair<std::string, std::string>> aliases;

  /// The dataset of this path, through aliases too.
  std::optional<std::size_t> find(const std::string& path) const;
};

/// To be sent to other ranks, and back. @error corrupt
Bytes pack_dataset_list(const DatasetList& list);
Result<DatasetList> unpack_dataset_list(std::span<const std::byte> bytes);

/// List an open file (`hdf5_id`: its hid_t). Takes the HDF5 lock. Cost: O(objects).
/// @error corrupt  an object that HDF5 cannot open; the message names its path.
Result<DatasetList> read_dataset_list(std::int64_t hdf5_id);

}  // namespace tailrace
