// The noting file driver, and chunk indexes read through it.
//
// Relies on: reading one stored chunk makes HDF5 look its entry up and issue exactly one raw read
// of the stored length at the stored address (H5Dread_chunk, HDF5 1.10.3 to 2.x). H5Dchunk_iter
// of 1.14 would also do, but one way for all versions is one behaviour to test.

#include "container/chunk_index_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "container/hdf5_handle.hpp"
#include "container/superblock.hpp"

namespace tailrace {
namespace {

constexpr haddr_t address_max = haddr_t{1} << 62;
/// The driver's number for HDF5 >= 1.14; 512 and up are free for private use.
[[maybe_unused]] constexpr int driver_value = 7412;

/// The open file, seen from the driver.
struct NotedFile {
  int fd = -1;
  std::uint64_t file_bytes = 0;
  bool truncated = false;  ///< Pretend that the file is as long as HDF5 believes.
  bool noting = false;     ///< Raw reads are noted instead of made.
  std::optional<Extent> noted;
};

struct DriverFile {
  H5FD_t hdf5_part;  // Must come first.
  NotedFile* file;
  haddr_t eoa;
};

struct DriverInfo {
  NotedFile* file;
};

const DriverFile& driver_file(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file);
}

H5FD_t* open_file(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access_list));
  if (info == nullptr) return nullptr;
  auto* file = static_cast<DriverFile*>(std::calloc(1, sizeof(DriverFile)));
  if (file == nullptr) return nullptr;
  file->file = info->file;
  return &file->hdf5_part;
}

herr_t close_file(H5FD_t* file) {
  std::free(file);
  return 0;
}

int compare_files(const H5FD_t* a, const H5FD_t* b) {
  const NotedFile* first = driver_file(a).file;
  const NotedFile* second = driver_file(b).file;
  return first == second ? 0 : (std::less<>()(first, second) ? -1 : 1);
}

herr_t query_features(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t get_end_allocated(const H5FD_t* file, H5FD_mem_t) { return driver_file(file).eoa; }

herr_t set_end_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  reinterpret_cast<DriverFile*>(file)->eoa = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  const NotedFile& noted = *driver_file(file).file;
  // HDF5 compares this with the end that the superblock states, so any large value will do.
  return noted.truncated ? address_max / 2 : noted.file_bytes;
}

herr_t read_bytes(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t n,
                  void* bytes) {
  NotedFile& noted = *driver_file(file).file;
  if (noted.noting && type == H5FD_MEM_DRAW) {
    noted.noted = Extent{address, n};
    return 0;
  }
  std::size_t done = 0;
  while (done < n) {
    const ssize_t n_read =
        ::pread(noted.fd, static_cast<char*>(bytes) + done, n - done, off_t(address + done));
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0) return -1;
    if (n_read == 0) break;
    done += std::size_t(n_read);
  }
  std::memset(static_cast<char*>(bytes) + done, 0, n - done);
  return 0;
}

herr_t refuse_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }
herr_t ignore_lock(H5FD_t*, hbool_t) { return 0; }
herr_t ignore_unlock(H5FD_t*) { return 0; }

H5FD_class_t make_driver_class() {
  H5FD_class_t driver;
  std::memset(&driver, 0, sizeof(driver));
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(driver_value);
#endif
  driver.name = "tailrace_noting";
  driver.maxaddr = address_max;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare_files;
  driver.query = query_features;
  driver.get_eoa = get_end_allocated;
  driver.set_eoa = set_end_allocated;
  driver.get_eof = get_end_of_file;
  driver.read = read_bytes;
  driver.write = refuse_write;
  driver.lock = ignore_lock;
  driver.unlock = ignore_unlock;
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(driver.fl_map, kinds, sizeof(kinds));
  return driver;
}

hid_t registered_driver() {
  static const H5FD_class_t driver = make_driver_class();
  static hid_t id = H5I_INVALID_HID;
  if (id < 0 || H5Iget_type(id) != H5I_VFL) id = H5FDregister(&driver);
  return id;
}

/// Have HDF5 read one stored chunk whole.
herr_t read_stored_chunk(hid_t dataset, const hsize_t* offset, std::uint32_t* filter_mask) {
  char unused = 0;  // The driver writes nothing into it.
#if H5_VERSION_GE(2, 0, 0)
  std::size_t n_bytes = std::size_t{1} << 32;
  return H5Dread_chunk(dataset, H5P_DEFAULT, offset, filter_mask, &unused, &n_bytes);
#else
  return H5Dread_chunk(dataset, H5P_DEFAULT, offset, filter_mask, &unused);
#endif
}

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
    if (noted_.fd >= 0) ::close(noted_.fd);
  }

  Status start(const std::string& path, Truncated truncated) {
    path_ = path;
    noted_.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (noted_.fd < 0) return status_from_errno(errno, "file \"" + path + "\"");
    struct stat info {};
    if (::fstat(noted_.fd, &info) != 0) return status_from_errno(errno, path);
    noted_.file_bytes = std::uint64_t(info.st_size);
    noted_.truncated = truncated == Truncated::accept;
    const Hdf5Scope scope;
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    const DriverInfo driver{&noted_};
    if (!access.valid() || H5Pset_driver(access.get(), registered_driver(), &driver) < 0 ||
        H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG) < 0) {
      return hdf5_failure(Code::internal, "HDF5 file access list");
    }
    hdf5_file_ = Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
    if (!hdf5_file_.valid()) {
      return hdf5_failure(Code::corrupt, "file \"" + path + "\" does not open as HDF5");
    }
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
  NotedFile noted_;
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
  const haddr_t address =
      layout == H5D_CONTIGUOUS ? H5Dget_offset(dataset.get()) : haddr_t{HADDR_UNDEF};
  if (address != HADDR_UNDEF) {
    chunks.push_back({0, {address, H5Dget_storage_size(dataset.get())}, 0});
  }
  return chunks;
}

Result<std::vector<StoredChunk>> ReaderOverDriver::read_chunked(hid_t dataset, hid_t list,
                                                                const Shape& shape,
                                                                const std::string& what) {
  std::vector<hsize_t> chunk_extents(shape.size());
  H5Pget_chunk(list, int(chunk_extents.size()), chunk_extents.data());
  const ChunkGrid grid{shape, Shape(chunk_extents.begin(), chunk_extents.end())};
  const Shape n_per_dimension = grid.n_per_dimension();
  const std::uint64_t n_chunks = grid.n_chunks();
  std::vector<StoredChunk> chunks;
  if (H5Dget_storage_size(dataset) == 0) return chunks;
  std::vector<hsize_t> offset(shape.size());
  for (std::uint64_t index = 0; index < n_chunks; ++index) {
    std::uint64_t rest = index;
    for (std::size_t d = offset.size(); d-- > 0;) {
      offset[d] = rest % n_per_dimension[d] * chunk_extents[d];
      rest /= n_per_dimension[d];
    }
    std::uint32_t filter_mask = 0;
    noted_.noted.reset();
    noted_.noting = true;
    const herr_t read = read_stored_chunk(dataset, offset.data(), &filter_mask);
    noted_.noting = false;
    if (read >= 0 && noted_.noted) chunks.push_back({index, *noted_.noted, filter_mask});
  }
  if (chunks.size() == n_chunks) return chunks;
  // A chunk that was never written fails like one whose entry is damaged; the index's own count of
  // its entries, one walk over all of it, tells them apart.
  const Hdf5Id space(H5Dget_space(dataset));
  hsize_t n_stored = 0;
  if (H5Dget_num_chunks(dataset, space.get(), &n_stored) < 0) {
    return hdf5_failure(Code::corrupt, what);
  }
  if (n_stored != chunks.size()) {
    return Status(Code::corrupt, what + ": only " + std::to_string(chunks.size()) + " of its " +
                                     std::to_string(n_stored) + " chunks can be found");
  }
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
