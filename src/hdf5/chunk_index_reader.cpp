// Chunk indexes of a file, read through the noting driver.

#include "hdf5/chunk_index_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/noting_driver.hpp"

namespace tailrace {
namespace {

/// The open file, read where it is.
class PlainFile final : public NotedFile {
 public:
  PlainFile() = default;
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  ~PlainFile() override {
    if (fd >= 0) ::close(fd);
  }

  Status fill(std::uint64_t address, std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n_read = ::pread(fd, bytes.data(), bytes.size(), off_t(address));
      if (n_read < 0 && errno == EINTR) continue;
      if (n_read < 0) return status_from_errno(errno, "reading");
      if (n_read == 0) break;
      address += std::uint64_t(n_read);
      bytes = bytes.subspan(std::size_t(n_read));
    }
    if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
    return Status();
  }

  int fd = -1;
};

#if H5_VERSION_GE(1, 12, 0)
using ObjectInfo = H5O_info2_t;
#else
using ObjectInfo = H5O_info_t;
#endif

herr_t collect_dataset(hid_t, const char* name, const ObjectInfo* info, void* data) {
  if (info->type == H5O_TYPE_DATASET) {
    static_cast<std::vector<std::string>*>(data)->push_back(std::string("/") + name);
  }
  return 0;
}

herr_t visit_objects(hid_t file, std::vector<std::string>* paths) {
#if H5_VERSION_GE(1, 12, 0)
  return H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, collect_dataset, paths, H5O_INFO_BASIC);
#elif H5_VERSION_GE(1, 10, 3)
  return H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, collect_dataset, paths, H5O_INFO_BASIC);
#endif
}

class ReaderOverDriver final : public ChunkIndexReader {
 public:
  ~ReaderOverDriver() override {
    const Hdf5Scope scope;
    hdf5_file_.reset();
  }

  Status start(const std::string& path, Truncated truncated) {
    path_ = path;
    noted_.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (noted_.fd < 0) return status_from_errno(errno, "file \"" + path + "\"");
    struct stat info {};
    if (::fstat(noted_.fd, &info) != 0) return status_from_errno(errno, path);
    // Any end beyond what the superblock states makes HDF5 accept a file that is shorter.
    noted_.end_of_file =
        truncated == Truncated::accept ? UINT64_MAX : static_cast<std::uint64_t>(info.st_size);
    const Hdf5Scope scope;
    Result<Hdf5Id> opened = open_noted(noted_, path);
    if (!opened.ok()) return opened.status();
    hdf5_file_ = std::move(*opened);
    return Status();
  }

  Result<std::vector<std::string>> dataset_paths() override {
    const Hdf5Scope scope;
    std::vector<std::string> paths;
    if (visit_objects(hdf5_file_.get(), &paths) < 0) {
      return hdf5_failure(Code::corrupt, "file \"" + path_ + "\"");
    }
    return paths;
  }

  Result<std::vector<StoredChunk>> read(const std::string& dataset_path) override;

 private:
  Result<std::vector<StoredChunk>> read_chunked(hid_t dataset, hid_t list, const Shape& shape,
                                                const std::string& what);

  std::string path_;
  PlainFile noted_;
  Hdf5Id hdf5_file_;
};

Result<std::vector<StoredChunk>> ReaderOverDriver::read(const std::string& dataset_path) {
  const Hdf5Scope scope;
  const std::string what = "dataset \"" + dataset_path + "\"";
  const Hdf5Id dataset(H5Dopen2(hdf5_file_.get(), dataset_path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_failure(Code::not_found, what);
  const Hdf5Id list(H5Dget_create_plist(dataset.get()));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (!list.valid() || rank < 0) return hdf5_failure(Code::corrupt, what);
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (layout == H5D_CHUNKED) {
    return read_chunked(dataset.get(), list.get(), Shape(extents.begin(), extents.end()), what);
  }
  std::vector<StoredChunk> chunks;
  // Of a file with a user block HDF5 gives an address even where nothing is stored.
  const hsize_t n_bytes = layout == H5D_CONTIGUOUS ? H5Dget_storage_size(dataset.get()) : 0;
  const haddr_t address = n_bytes > 0 ? H5Dget_offset(dataset.get()) : haddr_t{HADDR_UNDEF};
  if (address != HADDR_UNDEF) chunks.push_back({0, {address, n_bytes}, 0});
  return chunks;
}

Result<std::vector<StoredChunk>> ReaderOverDriver::read_chunked(hid_t dataset, hid_t list,
                                                                const Shape& shape,
                                                                const std::string& what) {
  std::vector<hsize_t> chunk_extents(shape.size());
  H5Pget_chunk(list, int(chunk_extents.size()), chunk_extents.data());
  const ChunkGrid grid{shape, Shape(chunk_extents.begin(), chunk_extents.end())};
  std::vector<StoredChunk> chunks;
  TAILRACE_TRY(note_chunks(noted_, dataset, grid, what, chunks));
  return chunks;
}

}  // namespace

Result<std::unique_ptr<ChunkIndexReader>> ChunkIndexReader::open(const std::string& path,
                                                                 Truncated truncated) {
  auto reader = std::make_unique<ReaderOverDriver>();
  TAILRACE_TRY(reader->start(path, truncated));
  return std::unique_ptr<ChunkIndexReader>(std::move(reader));
}

Result<std::vector<StoredChunk>> read_chunk_index(const std::string& path,
                                                  const std::string& dataset_path) {
  Result<std::unique_ptr<ChunkIndexReader>> reader = ChunkIndexReader::open(path);
  if (!reader.ok()) return reader.status();
  return (*reader)->read(dataset_path);
}

}  // namespace tailrace
