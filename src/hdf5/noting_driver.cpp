// Callbacks of the noting file driver, and the walk over a dataset's chunks.
//
// Relies on H5Dread_chunk (HDF5 1.10.3 to 2.x): it looks up a chunk's entry and issues exactly one
// raw read of the stored length at the stored address. H5Dchunk_iter of 1.14 would also work, but
// one method for all versions is one behaviour to test.

#include "hdf5/noting_driver.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>
#include <utility>

#include "hdf5/hdf5_compat.hpp"

namespace tailrace {
namespace {

/// CPU time of HDF5 1.10.8, measured, in microseconds: for a missing chunk (an error stack is
/// filled and cleared), and for skipping one index entry in a search for the n-th.
constexpr double kAbsentChunkUs = 4;
constexpr double kPassedEntryUs = 0.05;

struct NotingFile {
  H5FD_t hdf5_part;  // Must come first.
  NotedFile* file;   // Null: destroyed before HDF5 has closed the handle.
  haddr_t eoa;
};

struct NotingInfo {
  NotedFile* file;
};

NotingFile& noting_file(H5FD_t* file) { return *reinterpret_cast<NotingFile*>(file); }
const NotingFile& noting_file(const H5FD_t* file) {
  return *reinterpret_cast<const NotingFile*>(file);
}

H5FD_t* open_noting(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* info = static_cast<const NotingInfo*>(H5Pget_driver_info(access_list));
  if (info == nullptr) return nullptr;
  auto* file = static_cast<NotingFile*>(std::calloc(1, sizeof(NotingFile)));
  if (file == nullptr) return nullptr;
  file->file = info->file;
  const herr_t known = called_by_hdf5([&] {
    info->file->handles.push_back(&file->hdf5_part);
    return 0;
  });
  if (known == 0) return &file->hdf5_part;
  std::free(file);
  return nullptr;
}

herr_t close_noting(H5FD_t* file) {
  NotedFile* noted = noting_file(file).file;
  if (noted != nullptr) std::erase(noted->handles, file);
  std::free(file);
  return 0;
}

int compare_noting(const H5FD_t* a, const H5FD_t* b) {
  const NotedFile* first = noting_file(a).file;
  const NotedFile* second = noting_file(b).file;
  return first == second ? 0 : (std::less<>()(first, second) ? -1 : 1);
}

herr_t query_noting(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t get_noting_allocated(const H5FD_t* file, H5FD_mem_t) { return noting_file(file).eoa; }

herr_t set_noting_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  noting_file(file).eoa = address;
  return 0;
}

haddr_t get_noting_end(const H5FD_t* file, H5FD_mem_t) {
  const NotedFile* noted = noting_file(file).file;
  return noted == nullptr ? 0 : std::min(noted->end_of_file, std::uint64_t{kDriverAddressMax / 2});
}

/// Check the objects of a global heap. Each states its length, which HDF5 (1.10.8) trusts: a length
/// of 0 makes it loop forever, and one beyond the heap's end makes it read other memory. `head`:
/// the heap's first bytes.
Status check_global_heap(NotedFile& file, std::uint64_t address, std::span<const std::byte> head) {
  constexpr std::uint64_t heap_head = 16;  // Bytes in the head of the heap, and of each object.
  constexpr std::size_t length_at = 8;     // Offset in both heads.
  const auto length_in = [&](std::span<const std::byte> bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + length_at, std::min<std::size_t>(file.length_bytes, 8));
    return length;
  };
  // HDF5 reads heaps as raw data, from their start: 4 KiB, or less if the heap is shorter.
  constexpr std::string_view begin("GCOL\1\0\0\0", 8);
  if (head.size() < heap_head || head.size() > 4096 ||
      std::memcmp(head.data(), begin.data(), begin.size()) != 0) {
    return Status();
  }
  const std::uint64_t n_bytes = length_in(head);
  std::array<std::byte, heap_head> object{};
  for (std::uint64_t at = heap_head; n_bytes >= at + heap_head;) {
    TAILRACE_TRY(file.fill(address + at, object));
    const bool is_free = object[0] == std::byte{0} && object[1] == std::byte{0};
    const std::uint64_t stated = length_in(object);
    const std::uint64_t left = n_bytes - at;
    const std::uint64_t taken = is_free ? stated : heap_head + (stated + 7) / 8 * 8;
    if (stated > left || taken > left || taken == 0) {
      return Status(Code::corrupt, "global heap at address " + std::to_string(address) +
                                       ": an object of " + std::to_string(stated) +
                                       " bytes cannot be at byte " + std::to_string(at) + " of " +
                                       std::to_string(n_bytes));
    }
    at += taken;
  }
  return Status();
}

/// Detect metadata after the file's end. HDF5 sees zeros there and reports general damage, without
/// noticing that the file has been truncated. A read that starts before the end may be a
/// read-ahead.
Status check_is_there(const NotingFile& file, H5FD_mem_t type, std::uint64_t address,
                      std::uint64_t n_bytes) {
  const std::uint64_t n_there = file.file->bytes_there;
  if (n_there == 0 || address < n_there || type == H5FD_MEM_SUPER) return Status();
  return Status(Code::corrupt, wanted_text(address, n_bytes) +
                                   " lie beyond the end of the file, which has " +
                                   std::to_string(n_there) + " bytes; its superblock states " +
                                   std::to_string(file.eoa));
}

herr_t read_noting(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t n,
                   void* bytes) {
  if (noting_file(file).file == nullptr) return -1;
  NotedFile& noted = *noting_file(file).file;
  if (noted.noting && type == H5FD_MEM_DRAW) {
    noted.noted = Extent{address, n};
    return 0;
  }
  return called_by_hdf5([&] {
    const std::span<std::byte> wanted(static_cast<std::byte*>(bytes), n);
    Status filled = check_is_there(noting_file(file), type, address, n);
    if (filled.ok()) filled = noted.fill(address, wanted).within(wanted_text(address, n));
    if (filled.ok() && type == H5FD_MEM_DRAW) filled = check_global_heap(noted, address, wanted);
    if (filled.ok()) return 0;
    if (noted.failure.ok()) noted.failure = filled;
    return failed_read(filled);
  });
}

herr_t refuse_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

H5FD_class_t make_noting_class() {
  H5FD_class_t driver = plain_driver_class("tailrace_noting", 7412, sizeof(NotingInfo));
  driver.open = open_noting;
  driver.close = close_noting;
  driver.cmp = compare_noting;
  driver.query = query_noting;
  driver.get_eoa = get_noting_allocated;
  driver.set_eoa = set_noting_allocated;
  driver.get_eof = get_noting_end;
  driver.read = read_noting;
  driver.write = refuse_write;
  return driver;
}

hid_t noting_driver_id() {
  static const H5FD_class_t driver = make_noting_class();
  static hid_t id = H5I_INVALID_HID;
  return registered_driver(driver, id);
}

/// Record the location of the chunk at these grid coordinates.
std::optional<StoredChunk> note_at(NotedFile& file, hid_t dataset, const ChunkGrid& grid,
                                   std::uint64_t index, const Shape& at) {
  hsize_t offset[kMaxRank];
  for (std::size_t d = 0; d < at.size(); ++d) offset[d] = at[d] * grid.chunk_shape[d];
  std::uint32_t filter_mask = 0;
  file.noted.reset();
  file.noting = true;
  char unused = 0;  // The driver writes nothing into it.
  const herr_t read = read_stored_chunk(dataset, offset, &filter_mask, &unused);
  file.noting = false;
  if (read < 0 || !file.noted) return std::nullopt;
  // A chunk after the end is lost, and its length is unknown.
  if (!file.holds(*file.noted)) return std::nullopt;
  return StoredChunk{index, *file.noted, filter_mask};
}

/// A walk over the chunks of one dataset.
class ChunkWalk {
 public:
  ChunkWalk(NotedFile& file, hid_t dataset, const ChunkGrid& grid, const std::string& what,
            std::vector<StoredChunk>& chunks)
      : file_(file), dataset_(dataset), grid_(grid), what_(what), chunks_(chunks) {}

  Status run() {
    const std::size_t n_before = chunks_.size();
    const std::uint64_t n_chunks = grid_.n_chunks();
    const Shape n_per_dimension = grid_.n_per_dimension();
    Shape at(n_per_dimension.size());
    std::uint64_t n_absent = 0;
    for (std::uint64_t index = 0; index < n_chunks; ++index) {
      if (!note(index, at) && n_absent++ == 0) {
        // A chunk that was never written fails like one with a damaged entry. The index's own entry
        // count, which takes one walk over the index, distinguishes the two. HDF5's storage size
        // does not: it is 0 for a damaged index, too.
        TAILRACE_TRY(count_stored());
      }
      const std::uint64_t n_found = chunks_.size() - n_before;
      if (n_found > file_.bytes_there) return too_many();
      if (n_absent > 0) {
        if (n_found == n_stored_) return Status();
        const double by_entry_us = double(n_stored_) * double(n_stored_) / 2 * kPassedEntryUs;
        if (double(n_absent) * kAbsentChunkUs > by_entry_us + 100) {
          chunks_.resize(n_before);
          return list_entries();
        }
      }
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == n_per_dimension[d];) at[d] = 0;
    }
    const std::uint64_t n_found = chunks_.size() - n_before;
    return n_absent == 0 || n_found == n_stored_ ? Status() : lost(n_found);
  }

 private:
  /// Record the location of the chunk at these grid coordinates. @returns true if it is stored
  bool note(std::uint64_t index, const Shape& at) {
    const std::optional<StoredChunk> found = note_at(file_, dataset_, grid_, index, at);
    if (found) chunks_.push_back(*found);
    return found.has_value();
  }

  Status count_stored() {
    hsize_t n_stored = 0;
    space_ = Hdf5Id(H5Dget_space(dataset_));
    if (H5Dget_num_chunks(dataset_, space_.get(), &n_stored) < 0) {
      return file_.failure.ok()
                 ? hdf5_failure(Code::corrupt, what_ + ": its chunks cannot be counted")
                 : file_.failure.within(what_);
    }
    n_stored_ = n_stored;
    return n_stored_ > file_.bytes_there ? too_many() : read_limits();
  }

  Status too_many() const {
    return Status(Code::corrupt, what_ + ": its index lists more chunks than the file of " +
                                     std::to_string(file_.bytes_there) + " bytes can hold");
  }

  /// List a few chunks in a large grid by index entry. Entries only suggest where to look: a chunk
  /// counts if HDF5 finds it, and every stored chunk must be found.
  Status list_entries() {
    const std::size_t n_before = chunks_.size();
    std::vector<std::uint64_t> places;
    for (std::uint64_t entry = 0; entry < n_stored_; ++entry) {
      hsize_t offset[kMaxRank] = {};
      unsigned filter_mask = 0;
      haddr_t address = HADDR_UNDEF;
      hsize_t n_bytes = 0;
      if (H5Dget_chunk_info(dataset_, space_.get(), entry, offset, &filter_mask, &address,
                            &n_bytes) < 0) {
        return hdf5_failure(Code::corrupt, what_ + ": its chunks cannot be listed");
      }
      Shape at(grid_.shape.size());
      for (std::size_t d = 0; d < at.size(); ++d) at[d] = offset[d] / grid_.chunk_shape[d];
      add_place(at, places);
      if (slowest_ > 0) add_place(in_order_of_dimensions(at), places);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    // The address also comes from a read: HDF5 versions report different addresses for files with a
    // user block.
    for (const std::uint64_t index : places) note(index, grid_.coordinates(index));
    const std::uint64_t n_found = chunks_.size() - n_before;
    return n_found == n_stored_ ? Status() : lost(n_found);
  }

  void add_place(const Shape& at, std::vector<std::uint64_t>& places) const {
    const Shape n_per_dimension = grid_.n_per_dimension();
    const bool inside = std::ranges::equal(at, n_per_dimension, std::less<>());
    if (inside) places.push_back(grid_.index_of(at));
  }

  /// Correct the coordinates that HDF5 1.10.8, 1.14.6 and 2.0.0 list. An extensible array is
  /// ordered as if the unlimited dimension were the first, and H5Dget_chunk_info does not reverse
  /// that.
  Shape in_order_of_dimensions(const Shape& listed) const {
    std::uint64_t rest = listed[slowest_];
    for (std::size_t d = slowest_ + 1; d < listed.size(); ++d) {
      rest = rest * n_per_dimension_max_[d] + listed[d];
    }
    Shape at(listed.size());
    for (std::size_t d = listed.size(); d-- > 0;) {
      if (d == slowest_) continue;
      at[d] = rest % n_per_dimension_max_[d];
      rest /= n_per_dimension_max_[d];
    }
    at[slowest_] = rest;
    return at;
  }

  /// Find the only unlimited dimension, and the largest number of chunks along each dimension.
  Status read_limits() {
    hsize_t limits[kMaxRank] = {};
    if (H5Sget_simple_extent_dims(space_.get(), nullptr, limits) != int(grid_.shape.size())) {
      return hdf5_failure(Code::corrupt, what_ + ": its extents cannot be read");
    }
    n_per_dimension_max_ = grid_.n_per_dimension();
    std::size_t n_unlimited = 0;
    for (std::size_t d = 0; d < grid_.shape.size(); ++d) {
      if (limits[d] == H5S_UNLIMITED) {
        slowest_ = d;
        ++n_unlimited;
        continue;
      }
      // A damaged limit may be below the extent.
      const std::uint64_t n_max = (limits[d] + grid_.chunk_shape[d] - 1) / grid_.chunk_shape[d];
      n_per_dimension_max_[d] = std::max(n_per_dimension_max_[d], n_max);
    }
    if (n_unlimited != 1) slowest_ = 0;
    return Status();
  }

  Status lost(std::uint64_t n_found) const {
    const std::string why = file_.failure.ok() ? "" : ": " + file_.failure.message();
    return Status(Code::corrupt, what_ + ": only " + std::to_string(n_found) + " of its " +
                                     std::to_string(n_stored_) + " chunks can be found" + why);
  }

  NotedFile& file_;
  hid_t dataset_;
  const ChunkGrid& grid_;
  const std::string& what_;
  std::vector<StoredChunk>& chunks_;
  Hdf5Id space_;
  std::uint64_t n_stored_ = 0;
  // Set by count_stored():
  std::size_t slowest_ = 0;  ///< First dimension in the index's order; 0: the dataset's order.
  Shape n_per_dimension_max_;
};

bool begins_as_netcdf_classic(const std::string& path) {
  std::array<char, 3> first{};
  std::ifstream file(path, std::ios::binary);
  return file.read(first.data(), first.size()) && std::string_view(first.data(), 3) == "CDF";
}

}  // namespace

NotedFile::~NotedFile() {
  for (H5FD_t* handle : handles) noting_file(handle).file = nullptr;
}

Result<Hdf5Id> open_noted(NotedFile& file, const std::string& path) {
  TAILRACE_TRY(check_hdf5_is_ours());
  const Hdf5Id access = new_access_list();
  const NotingInfo driver{&file};
  if (!access.valid() || H5Pset_driver(access.get(), noting_driver_id(), &driver) < 0 ||
      H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG) < 0 ||
      // No chunk is read twice, and every dataset would allocate a table of 521 slots.
      H5Pset_cache(access.get(), 0, 0, 0, 0) < 0) {
    return hdf5_failure(Code::internal, "the file access property list cannot be set up");
  }
  Hdf5Id opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  if (opened.valid()) {
    const Hdf5Id creation(H5Fget_create_plist(opened.get()));
    H5Pget_sizes(creation.get(), nullptr, &file.length_bytes);
    return opened;
  }
  if (!file.failure.ok()) return file.failure;
  if (begins_as_netcdf_classic(path)) {
    return Status(
        Code::unsupported,
        "file \"" + path + "\" is netCDF classic, expected HDF5; `tailrace repack` converts it");
  }
  return hdf5_failure(Code::corrupt, "file \"" + path + "\" cannot be opened as HDF5");
}

Status note_chunks(NotedFile& file, hid_t dataset, const ChunkGrid& grid, const std::string& what,
                   std::vector<StoredChunk>& chunks) {
  return ChunkWalk(file, dataset, grid, what, chunks).run();
}

std::optional<StoredChunk> note_chunk(NotedFile& file, hid_t dataset, const ChunkGrid& grid,
                                      std::uint64_t chunk_index) {
  return note_at(file, dataset, grid, chunk_index, grid.coordinates(chunk_index));
}

}  // namespace tailrace
