// Reads of the last flush: its chunk indexes, and elements that only HDF5 can read.

#include "array/flushed_file.hpp"

#include <utility>

#include "hdf5/live_datasets.hpp"
#include "hdf5/one_file.hpp"

namespace tailrace {
namespace {

std::uint64_t header_of(const StoredDataset& dataset) {
  return static_cast<const FlushedFile::Dataset&>(dataset).header_address;
}

}  // namespace

Result<std::unique_ptr<FlushedFile>> FlushedFile::open(const Comm& comm, const std::string& path,
                                                       Storage& storage) {
  see_last_commit(comm, path);
  TAILRACE_TAKE(const std::uint64_t n_bytes, storage.file_bytes());
  return std::unique_ptr<FlushedFile>(new FlushedFile(path, storage, n_bytes));
}

FlushedFile::~FlushedFile() {
  if (hdf5_id_ >= 0) close_hdf5_id(hdf5_id_);
}

Result<std::vector<StoredChunk>> FlushedFile::chunks(const StoredDataset& dataset) {
  if (index_ == nullptr) {
    TAILRACE_TAKE(index_, ChunkIndexReader::open(path_));
  }
  return index_->read_at(header_of(dataset), dataset.path);
}

Result<std::optional<StoredChunk>> FlushedFile::chunk(const StoredDataset&, std::uint64_t) {
  return std::optional<StoredChunk>();
}

Status FlushedFile::read_slab(const StoredDataset& dataset, const Slab& slab,
                              std::span<std::byte> values) {
  if (hdf5_id_ < 0) {
    TAILRACE_TAKE(hdf5_id_, open_last_commit(path_));
  }
  return read_elements(hdf5_id_, header_of(dataset), slab, values);
}

}  // namespace tailrace
