#include "array/flushed_file.hpp"

#include <algorithm>
#include <utility>

#include "hdf5/live_datasets.hpp"
#include "hdf5/one_file.hpp"

namespace tailrace {
namespace {

std::uint64_t header_of(const StoredDataset& dataset) {
  return static_cast<const FlushedFile::Dataset&>(dataset).header_address;
}

}  // namespace

void FlushedFile::drop() {
  if (reader_ != nullptr) reader_->forget_all();
  listed_.clear();
  index_.reset();
  if (hdf5_id_ >= 0) close_hdf5_id(std::exchange(hdf5_id_, -1));
  file_bytes_ = 0;
}

/// Open the view and describe a dataset, if that has not been done since the last commit.
Result<const FlushedFile::Dataset*> FlushedFile::listed(std::size_t number,
                                                        const Describe& describe) {
  if (file_bytes_ == 0) {
    see_last_commit(comm_, output_.path());
    TAILRACE_TAKE(file_bytes_, output_.storage().file_bytes());
  }
  const auto found = listed_.find(number);
  return found != listed_.end() ? &found->second
                                : &listed_.emplace(number, describe()).first->second;
}

Result<std::vector<StoredChunk>> FlushedFile::chunks_of(std::size_t number,
                                                        const Describe& describe) {
  TAILRACE_TAKE(const Dataset* const dataset, listed(number, describe));
  return chunks(*dataset);
}

Result<std::vector<StoredChunk>> FlushedFile::chunks(const StoredDataset& dataset) {
  if (index_ == nullptr) {
    TAILRACE_TAKE(index_, ChunkIndexReader::open(output_.path()));
  }
  return index_->read_at(header_of(dataset), dataset.path);
}

Result<std::optional<StoredChunk>> FlushedFile::chunk(const StoredDataset&, std::uint64_t) {
  return std::optional<StoredChunk>();
}

Status FlushedFile::read_slab(const StoredDataset& dataset, const Slab& slab,
                              std::span<std::byte> values) {
  if (hdf5_id_ < 0) {
    TAILRACE_TAKE(hdf5_id_, open_last_commit(output_.path()));
  }
  return read_elements(hdf5_id_, header_of(dataset), slab, values);
}

Status FlushedFile::read(std::size_t number, const Describe& describe, const Codec* codec,
                         const Slab& slab, std::span<std::byte> values) {
  TAILRACE_TAKE(const Dataset* const stored, listed(number, describe));
  if (stored->storage.kind == StoredForm::Kind::nothing) {
    return read_slab(*stored, slab, values).within("dataset \"" + stored->path + "\"");
  }
  if (reader_ == nullptr) {
    ReadOptions options = options_.read;
    options.memory_bytes = std::min(options.memory_bytes, options_.file.memory_bytes / 4);
    reader_ = std::make_unique<ChunkReader>(options, n_decode_threads(comm_, options));
  }
  ReadDataset* dataset = nullptr;
  TAILRACE_TRY(reader_->prepare(number, *stored, dataset));
  if (!dataset->chunked()) return reader_->read_contiguous(*this, *dataset, slab, values.data());
  if (dataset->codec.get() != codec) {
    reader_->forget();
    dataset->codec = {std::shared_ptr<const Codec>(), codec};  // The caller owns it.
  }
  return reader_->read(*this, *dataset, slab, values.data());
}

}  // namespace tailrace
