// Chunk indexes of a file, read through the noting driver.

#include "hdf5/chunk_index_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "hdf5/dataset_describe.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/noting_driver.hpp"

namespace tailrace {
namespace {

/// The open file, read directly.
class PlainFile final : public NotedFile {
 public:
  Status fill(std::uint64_t address, std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n_read = ::pread(at.fd(), bytes.data(), bytes.size(), off_t(address));
      if (n_read < 0 && errno == EINTR) continue;
      if (n_read < 0) return status_from_errno(errno, "cannot read \"" + path + "\"");
      if (n_read == 0) break;
      address += std::uint64_t(n_read);
      bytes = bytes.subspan(std::size_t(n_read));
    }
    if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
    return Status();
  }

  Descriptor at;
  std::string path;
};

/// The paths of a file's datasets.
class DatasetPaths final : public Hdf5Visitor {
 public:
  Status dataset(hid_t, const std::string& path) override {
    paths.push_back(path);
    return Status();
  }
  std::vector<std::string> paths;
};

class ReaderOverDriver final : public ChunkIndexReader {
 public:
  ~ReaderOverDriver() override {
    const Hdf5Scope scope;
    describer_ = DatasetDescriber();  // Close its types before the file that they belong to.
    hdf5_file_.reset();
  }

  Status start(const std::string& path, Truncated truncated) {
    path_ = path;
    Result<RegularFile> opened = open_regular(path, O_RDONLY);
    if (!opened.ok()) return opened.status();
    noted_.at = std::move(opened->at);
    noted_.path = path;
    noted_.bytes_there = opened->n_bytes;
    // HDF5 accepts a shorter file if the reported end lies beyond the superblock's.
    noted_.end_of_file = truncated == Truncated::accept ? UINT64_MAX : noted_.bytes_there;
    const Hdf5Scope scope;
    Result<Hdf5Id> file = open_noted(noted_, path);
    if (!file.ok()) return file.status();
    hdf5_file_ = std::move(*file);
    return Status();
  }

  Result<std::vector<std::string>> dataset_paths() override {
    const Hdf5Scope scope;
    DatasetPaths visitor;
    TAILRACE_TRY(
        walk_hdf5(hdf5_file_.get(), visitor, WalkOrder::names).within("file \"" + path_ + "\""));
    return std::move(visitor.paths);
  }

  Result<std::vector<StoredChunk>> read(const std::string& dataset_path) override {
    const Hdf5Scope scope;
    const Hdf5Id dataset(H5Dopen2(hdf5_file_.get(), dataset_path.c_str(), H5P_DEFAULT));
    return chunks_of(dataset, dataset_path);
  }

  Result<std::vector<StoredChunk>> read_at(std::uint64_t address,
                                           const std::string& path) override {
    const Hdf5Scope scope;
    TAILRACE_TAKE(const std::int64_t opened, open_dataset_at(hdf5_file_.get(), address));
    return chunks_of(Hdf5Id(opened), path);
  }

  const Shape& shape() const override { return shape_; }

 private:
  Result<std::vector<StoredChunk>> chunks_of(const Hdf5Id& dataset,
                                             const std::string& dataset_path);

  std::string path_;
  Shape shape_;
  PlainFile noted_;
  Hdf5Id hdf5_file_;
  DatasetDescriber describer_{DatasetDescriber::Foreign::describe};
};

Result<std::vector<StoredChunk>> ReaderOverDriver::chunks_of(const Hdf5Id& dataset,
                                                             const std::string& dataset_path) {
  const std::string what = "dataset \"" + dataset_path + "\"";
  noted_.failure = Status();  // Clear the failure of the previous dataset.
  if (!dataset.valid()) return hdf5_open_failure(what);
  StoredDataset described;
  described.path = dataset_path;
  TAILRACE_TRY(describer_.describe(dataset.get(), described));
  shape_ = described.shape;
  std::vector<StoredChunk> chunks;
  if (described.chunked()) {
    const ChunkGrid grid{described.shape, described.storage.chunk_shape};
    TAILRACE_TRY(note_chunks(noted_, dataset.get(), grid, what, chunks));
  }
  const Extent& plain = described.contiguous;
  if (plain.encoded_bytes == 0) return chunks;
  if (!noted_.holds(plain)) {
    return Status(Code::corrupt, what + ": its " + std::to_string(plain.encoded_bytes) +
                                     " bytes at address " + std::to_string(plain.address) +
                                     " lie beyond the end of the file");
  }
  chunks.push_back({0, plain, 0});
  return chunks;
}

}  // namespace

Result<std::unique_ptr<ChunkIndexReader>> ChunkIndexReader::open(const std::string& path,
                                                                 Truncated truncated) {
  auto reader = std::make_unique<ReaderOverDriver>();
  TAILRACE_TRY(reader->start(path, truncated));
  return std::unique_ptr<ChunkIndexReader>(std::move(reader));
}

Result<std::vector<std::string>> datasets_that_share_chunks(const std::string& path) {
  TAILRACE_TAKE(const std::unique_ptr<ChunkIndexReader> reader, ChunkIndexReader::open(path));
  TAILRACE_TAKE(const std::vector<std::string> datasets, reader->dataset_paths());
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // Address, dataset.
  for (std::size_t d = 0; d < datasets.size(); ++d) {
    const Result<std::vector<StoredChunk>> chunks = reader->read(datasets[d]);
    if (!chunks.ok()) return chunks.status();
    for (const StoredChunk& chunk : *chunks) {
      const Extent& extent = chunk.extent;
      const bool small = extent.encoded_bytes <= kSharedChunkBytesMax;
      if (small && extent.encoded_bytes > 0) places.emplace_back(extent.address, d);
    }
  }
  std::sort(places.begin(), places.end());
  std::vector<bool> shares(datasets.size(), false);
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first != places[i - 1].first) continue;
    shares[places[i].second] = shares[places[i - 1].second] = true;
  }
  std::vector<std::string> found;
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (shares[d]) found.push_back(datasets[d]);
  }
  return found;
}

Result<std::vector<StoredChunk>> read_chunk_index(const std::string& path,
                                                  const std::string& dataset_path) {
  Result<std::unique_ptr<ChunkIndexReader>> reader = ChunkIndexReader::open(path);
  if (!reader.ok()) return reader.status();
  return (*reader)->read(dataset_path);
}

}  // namespace tailrace
