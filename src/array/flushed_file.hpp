// FlushedFile: one rank's view of a file that is being written, as its last flush left it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunk/chunk_file.hpp"
#include "core/comm.hpp"
#include "core/storage.hpp"

namespace tailrace {

/// Serves reads until the next commit, before which it is destroyed: HDF5 returns a file that the
/// process has open already, with its cached metadata, to any later open.
class FlushedFile final : public ChunkFile {
 public:
  /// Dataset of this file; chunks() and read_slab() take no others.
  struct Dataset : StoredDataset {
    std::uint64_t header_address = 0;
  };

  /// @param storage  outlives the result.
  static Result<std::unique_ptr<FlushedFile>> open(const Comm& comm, const std::string& path,
                                                   Storage& storage);
  ~FlushedFile() override;
  FlushedFile(const FlushedFile&) = delete;
  FlushedFile& operator=(const FlushedFile&) = delete;

  std::uint64_t file_bytes() const override { return file_bytes_; }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) const override {
    return storage_.read_at(address, bytes);
  }
  Result<std::vector<StoredChunk>> chunks(const StoredDataset& dataset) override;
  /// Always nothing: only chunks() finds chunks.
  Result<std::optional<StoredChunk>> chunk(const StoredDataset& dataset,
                                           std::uint64_t chunk_index) override;
  Status read_slab(const StoredDataset& dataset, const Slab& slab,
                   std::span<std::byte> values) override;

 private:
  FlushedFile(std::string path, Storage& storage, std::uint64_t file_bytes)
      : path_(std::move(path)), storage_(storage), file_bytes_(file_bytes) {}

  std::string path_;
  Storage& storage_;
  std::uint64_t file_bytes_;
  std::unique_ptr<ChunkIndexReader> index_;  ///< Opened on first use.
  std::int64_t hdf5_id_ = -1;                ///< Opened on first use.
};

}  // namespace tailrace
