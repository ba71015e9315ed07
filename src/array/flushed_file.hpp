// FlushedFile: one rank's view of a file that is being written, as its last flush left it.
//
// Invariant: nothing of the view stays open over a commit. HDF5 returns a file that the process has
// open already, with its cached metadata, to any later open.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/array_options.hpp"
#include "chunk/chunk_file.hpp"
#include "chunk/chunk_reader.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/storage.hpp"
#include "output/output.hpp"

namespace tailrace {

/// Opened on first use, and again after drop(). Not collective.
class FlushedFile final : public ChunkFile {
 public:
  /// Dataset of this file; chunks() and read_slab() take no others.
  struct Dataset : StoredDataset {
    std::uint64_t header_address = 0;
  };

  /// The arguments outlive the result.
  FlushedFile(const Comm& comm, Output& output, const ArrayFileOptions& options)
      : comm_(comm), output_(output), options_(options) {}
  ~FlushedFile() override { drop(); }
  FlushedFile(const FlushedFile&) = delete;
  FlushedFile& operator=(const FlushedFile&) = delete;

  /// Describes a dataset at the last flush; called on first use. Elements are read as the file's
  /// bytes.
  using Describe = std::function<Dataset()>;
  Result<std::vector<StoredChunk>> chunks_of(std::size_t number, const Describe& describe);
  /// Read elements that the file has.
  /// @param codec  of a chunked dataset; lives until drop().
  Status read(std::size_t number, const Describe& describe, const Codec* codec, const Slab& slab,
              std::span<std::byte> values);
  /// Release the cached values, before a flush needs the memory.
  void release_values() {
    if (reader_ != nullptr) reader_->forget();
  }
  /// Close everything, before a commit.
  void drop();

  std::uint64_t file_bytes() const override { return file_bytes_; }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) const override {
    return output_.storage().read_at(address, bytes);
  }
  Result<std::vector<StoredChunk>> chunks(const StoredDataset& dataset) override;
  /// Always nothing: only chunks() finds chunks.
  Result<std::optional<StoredChunk>> chunk(const StoredDataset& dataset,
                                           std::uint64_t chunk_index) override;
  Status read_slab(const StoredDataset& dataset, const Slab& slab,
                   std::span<std::byte> values) override;

 private:
  Result<const Dataset*> listed(std::size_t number, const Describe& describe);

  const Comm& comm_;
  Output& output_;
  const ArrayFileOptions& options_;
  std::uint64_t file_bytes_ = 0;  ///< 0: not open.
  std::map<std::size_t, Dataset> listed_;
  std::unique_ptr<ChunkIndexReader> index_;  ///< Opened on first use.
  std::int64_t hdf5_id_ = -1;                ///< Opened on first use.
  std::unique_ptr<ChunkReader> reader_;
};

}  // namespace tailrace
