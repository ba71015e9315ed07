// The metadata driver: callbacks of HDF5's file driver, and the commits of what they buffer.
//
//              finish_create / finish_open              a commit fails, or a raw write does
//   opening ------------------------------> running ---------------------------------> failed
//                                           |     ^                                      |
//                                           +-----+ prepare() ... finish(), publish()    |
//                                           |                                  abandon() |
//                                           | abandon()                                  v
//                                           +--------------------------------------> abandoned
//
// Invariants (tests/unit/metadata_driver_test.cpp and pending_commit_test.cpp cite the numbers):
//  1. Storage receives metadata only from a prepared commit. It receives none after a failure or
//     abandon(), except the rest of a commit that was being written at that moment.
//  2. The end that HDF5 sees lies at least kEndPadBytes after every block it knows. Otherwise it
//     would extend a last block by moving only the end, over bytes that other ranks have claimed.
//  3. While a plan is armed, at most one allocation receives the planned address; other types and
//     sizes never do (a global heap is allocated as raw data, too).
//  4. A raw write of a planned chunk never reaches Storage from HDF5's buffer. If HDF5 chose
//     another address, the next commit copies the bytes there, when all ranks have written.
//  5. HDF5 reads what it wrote last, whether published, pending or neither; beyond the end it reads
//     zeros.
//  6. Space allocated for HDF5 since the last prepare() is fresh. Only bytes outside it are old,
//     and old bytes change after all fresh ones are in place.
//  7. No two allocations are assumed to be adjacent: other ranks claim space in between.
//  8. A callback never reports a failed write to HDF5, which then could not close its objects. The
//     failure is stored, and the next commit returns it.
//  9. While a commit is pending, the driver itself writes only to space allocated since then. So
//     driver and commit never write to the same address. At most one commit is pending.
// 10. On several nodes the pad before the end is allocated, and nothing else uses it. On one node,
//     the next chunk may lie in it.
//
// Source: behaviour of HDF5 1.10.8, 1.14 and 2.x as src/hdf5/README.md lists it.

#include "hdf5/metadata_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "hdf5/commit_order.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/one_file.hpp"

namespace tailrace {
namespace {

/// Distance from the last known byte to the end that HDF5 sees (invariant 2). Any value > 0 works.
constexpr std::uint64_t kEndPadBytes = 8;
/// Limit for the bytes of one commit that are buffered to overwrite freed space.
constexpr std::uint64_t kInPlaceBytesMax = std::uint64_t{1} << 30;

/// Limit for one raw write that waits for the commit: the size of the largest datasets that are
/// placed immediately.
constexpr std::uint64_t held_raw_bytes_max = 16384;

/// HDF5's handle of the open file; HDF5's part must come first.
struct DriverFile {
  H5FD_t hdf5_part;
  MetadataDriver* driver;
};

/// Driver data in the access list.
struct DriverInfo {
  MetadataDriver* driver;
};

MetadataDriver& driver_of(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file)->driver;
}

H5FD_t* open_file(const char* name, unsigned, hid_t access_list, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access_list));
  if (info == nullptr) return nullptr;
  // HDF5 opens the target of an external link with the access list of the linking file; that other
  // file does not belong to this driver.
  if (!info->driver->is_named(name)) return nullptr;
  // HDF5 fills in its own part. Creation opens twice (a probe first), so nothing else happens here.
  auto* file = static_cast<DriverFile*>(std::calloc(1, sizeof(DriverFile)));
  if (file == nullptr) return nullptr;
  file->driver = info->driver;
  file->driver->on_open();
  return &file->hdf5_part;
}

herr_t close_file(H5FD_t* file) {
  driver_of(file).on_close();
  std::free(file);
  return 0;
}

int compare_files(const H5FD_t* a, const H5FD_t* b) {
  const auto* first = &driver_of(a);
  const auto* second = &driver_of(b);
  return first == second ? 0 : (std::less<>()(first, second) ? -1 : 1);
}

herr_t query_features(const H5FD_t*, unsigned long* flags) {
  // No aggregation of metadata or small data: HDF5 asks `alloc` for every block, so that a request
  // for a chunk has exactly the chunk's length.
  *flags = H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocate_space(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t n_bytes) {
  return called_by_hdf5([&] { return driver_of(file).on_alloc(type, n_bytes); });
}

/// Must exist and do nothing; otherwise HDF5 would lower the end of the file.
herr_t free_space(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, hsize_t) { return 0; }

haddr_t get_end_allocated(const H5FD_t* file, H5FD_mem_t) {
  return driver_of(file).end_of_allocated();
}

herr_t set_end_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  return driver_of(file).on_set_eoa(address);
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return called_by_hdf5([&] { return driver_of(file).on_get_eof(); });
}

herr_t read_bytes(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t n,
                  void* bytes) {
  return called_by_hdf5([&] { return driver_of(file).on_read(type, address, n, bytes); });
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t n,
                   const void* bytes) {
  return called_by_hdf5([&] { return driver_of(file).on_write(type, address, n, bytes); });
}

/// Ignored: HDF5 flushes at any time (creation writes a superblock that points at nothing yet).
/// Only prepare() decides what is published, and when.
herr_t ignore_flush(H5FD_t*, hid_t, hbool_t) { return 0; }

H5FD_class_t make_driver_class() {
  H5FD_class_t driver = plain_driver_class("tailrace_metadata", 7411, sizeof(DriverInfo));
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare_files;
  driver.query = query_features;
  driver.alloc = allocate_space;
  driver.free = free_space;
  driver.get_eoa = get_end_allocated;
  driver.set_eoa = set_end_allocated;
  driver.get_eof = get_end_of_file;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.flush = ignore_flush;
  driver.truncate = ignore_flush;
  return driver;
}

hid_t metadata_driver_id() {
  static const H5FD_class_t driver = make_driver_class();
  static hid_t id = H5I_INVALID_HID;
  return registered_driver(driver, id);
}

bool is_raw(H5FD_mem_t type) { return type == H5FD_MEM_DRAW || type == H5FD_MEM_GHEAP; }

/// HDF5 writes a global heap in one piece, as raw data; values that begin like one do no harm.
bool begins_as_heap(std::span<const std::byte> bytes) {
  constexpr std::string_view signature = "GCOL";
  return bytes.size() >= signature.size() &&
         std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

}  // namespace

MetadataDriver::MetadataDriver(Storage& storage, Allocate allocate, Settings settings)
    : storage_(&storage),
      name_(storage.path()),
      allocate_(std::move(allocate)),
      settings_(std::move(settings)) {
  settings_.extent_bytes = std::max<std::uint64_t>(1, settings_.extent_bytes);
  creating_ = !settings_.existing;
}

namespace {

/// Enlarge HDF5's metadata cache, for some 100,000 small datasets. This driver buffers evicted
/// entries until the next commit anyway. But when all entries of HDF5's default 2 MiB are dirty,
/// each new object makes HDF5 search the complete cache: 12,000 datasets with four attributes took
/// three times as long. A size that a program has set is not changed.
bool enlarge_metadata_cache(hid_t list) {
  const Hdf5Id standard(H5Pcreate(H5P_FILE_ACCESS));
  H5AC_cache_config_t usual{};
  H5AC_cache_config_t config{};
  usual.version = config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(standard.get(), &usual) < 0 || H5Pget_mdc_config(list, &config) < 0) {
    return false;
  }
  const bool configured =
      config.initial_size != usual.initial_size || config.max_size != usual.max_size;
  if (configured) return true;
  config.set_initial_size = true;
  config.initial_size = std::size_t{32} << 20;
  config.max_size = std::size_t{128} << 20;
  return H5Pset_mdc_config(list, &config) >= 0;
}

/// Replace settings of a program's list that this driver does not support: page buffers, and
/// objects that outlive their file. The default close degree becomes that of the MPI driver.
bool adapt_access_list(hid_t list) {
  H5F_close_degree_t degree = H5F_CLOSE_DEFAULT;
  bool done = H5Pget_fclose_degree(list, &degree) >= 0;
  if (degree == H5F_CLOSE_DEFAULT) done = done && H5Pset_fclose_degree(list, H5F_CLOSE_SEMI) >= 0;
  return done && H5Pset_page_buffer_size(list, 0, 0, 0) >= 0 && enlarge_metadata_cache(list);
}

}  // namespace

Result<Hdf5Id> MetadataDriver::access_list(std::int64_t program) {
  TAILRACE_TRY(check_hdf5_is_ours());
  Hdf5Id list = program >= 0 ? Hdf5Id(H5Pcopy(program)) : new_access_list();
  const DriverInfo info{this};
  // STRONG: closing the file closes all objects in it, so that no id outlives the driver. A program
  // with its own list must ensure that itself. Alignment 1: with any other, HDF5 requests padded
  // lengths that no plan could match.
  const bool closes =
      list.valid() && (program >= 0 ? adapt_access_list(list.get())
                                    : H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG) >= 0);
  const bool made = closes && H5Pset_driver(list.get(), metadata_driver_id(), &info) >= 0 &&
                    H5Pset_alignment(list.get(), 1, 1) >= 0 &&
                    H5Pset_libver_bounds(list.get(), H5F_LIBVER_V18, H5F_LIBVER_V110) >= 0;
  if (!made) return hdf5_failure(Code::internal, "the file access property list cannot be set up");
  return list;
}

void MetadataDriver::finish_create() { phase_ = Phase::running; }

Result<std::uint64_t> MetadataDriver::finish_open() {
  phase_ = Phase::running;
  eoa_ += kEndPadBytes;
  own_end_ = eoa_;  // The tail starts after it.
  const Result<std::uint64_t> on_disk = stored_bytes();
  if (!on_disk.ok()) return on_disk.status();
  return std::max({eoa_, *on_disk, opening_end_});
}

bool MetadataDriver::only_created() const {
  return creating_ && phase_ == Phase::running && !pending() && failure_.ok() &&
         front_.n_bytes == 0 && fresh_.contains(0, eoa_ - kEndPadBytes);
}

std::shared_ptr<MetadataDriver> MetadataDriver::anew() const {
  auto driver = std::make_shared<MetadataDriver>(*storage_, allocate_, settings_);
  driver->remnants_ = remnants_;
  driver->front_ = front_;
  driver->front_address_ = front_address_;
  driver->remnants_.insert(driver->remnants_.begin(), {0, eoa_ - kEndPadBytes});
  return driver;
}

void MetadataDriver::arm(std::uint64_t address, std::uint64_t n_bytes, bool drops_fills) {
  plan_ = Plan{address, n_bytes, true, drops_fills, {}};
}

MetadataDriver::PlanOutcome MetadataDriver::disarm() {
  plan_.armed = false;
  return plan_.outcome;
}

std::uint64_t MetadataDriver::take_unused(std::uint64_t n_bytes) {
  return on_alloc(H5FD_MEM_DRAW, n_bytes);
}

void MetadataDriver::forget_copy() { copies_.pop_back(); }

void MetadataDriver::move_planned(std::uint64_t address) {
  dirty_.drop(address, plan_.n_bytes);
  copies_.push_back({plan_.address, address, plan_.n_bytes});
}

Status MetadataDriver::fail(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
  if (phase_ != Phase::abandoned) phase_ = Phase::failed;
  return failure_;
}

// Buffered bytes stay in memory: HDF5 reads its own metadata back while it closes.
void MetadataDriver::abandon() { phase_ = Phase::abandoned; }

Result<std::uint64_t> MetadataDriver::stored_bytes() const {
  return storage_ != nullptr ? storage_->file_bytes() : Result<std::uint64_t>(std::uint64_t{0});
}

void MetadataDriver::count_end(std::uint64_t end) { eoa_ = std::max(eoa_, end + kEndPadBytes); }

/// Allocate space at the end of the file; on several nodes with a separate pad.
std::uint64_t MetadataDriver::take_extent(std::uint64_t n_bytes) {
  if (!settings_.on_nodes) return allocate_(n_bytes);
  const std::uint64_t address = allocate_(n_bytes + kEndPadBytes);
  fresh_.insert(address + n_bytes, kEndPadBytes);
  own_end_ = std::max(own_end_, address + n_bytes + kEndPadBytes);
  return address;
}

void MetadataDriver::own_the_end() {
  if (settings_.on_nodes && eoa_ > own_end_) count_end(take_extent(0));
}

std::uint64_t MetadataDriver::take_space(std::uint64_t n_bytes) {
  for (Remnant& remnant : remnants_) {
    if (remnant.n_bytes < n_bytes) continue;
    const std::uint64_t address = remnant.address;
    remnant.address += n_bytes;
    remnant.n_bytes -= n_bytes;
    return address;
  }
  const std::uint64_t extent = settings_.extent_bytes;
  const std::uint64_t n_taken = (n_bytes + extent - 1) / extent * extent;
  const std::uint64_t address = take_extent(n_taken);
  std::erase_if(remnants_, [](const Remnant& remnant) { return remnant.n_bytes == 0; });
  if (n_taken > n_bytes) remnants_.push_back({address + n_bytes, n_taken - n_bytes});
  return address;
}

// --- Metadata in front

void MetadataDriver::reserve_front(FrontPlan plan) {
  // Reuse space reserved earlier that was not needed because the previous step failed.
  if (front_used_ > 0 || front_.n_bytes < plan.n_bytes) front_address_ = take_extent(plan.n_bytes);
  front_ = std::move(plan);
  front_used_ = front_missed_ = 0;
  raw_blocks_.clear();
  raw_bytes_of_length_.clear();
  heap_bytes_.clear();
}

FrontPlan MetadataDriver::front_as_used() const {
  FrontPlan plan{front_used_, heap_bytes_};
  for (const std::uint64_t n_bytes : heap_bytes_) plan.n_bytes += raw_bytes_of_length_.at(n_bytes);
  return plan;
}

std::uint64_t MetadataDriver::take_metadata_space(std::uint64_t n_bytes) {
  if (front_.n_bytes == 0) return take_space(n_bytes);
  if (n_bytes <= front_.n_bytes - front_used_) {
    return front_address_ + std::exchange(front_used_, front_used_ + n_bytes);
  }
  front_missed_ += n_bytes;
  return take_space(n_bytes);
}

std::uint64_t MetadataDriver::take_raw_space(std::uint64_t n_bytes) {
  if (front_.n_bytes == 0) return take_space(n_bytes);
  const bool in_front = front_.heap_bytes.contains(n_bytes);
  const std::uint64_t address = in_front ? take_metadata_space(n_bytes) : take_space(n_bytes);
  raw_blocks_[address] = n_bytes;
  raw_bytes_of_length_[n_bytes] += n_bytes;
  return address;
}

/// Record that the block at this address is a global heap, which only HDF5's write reveals.
void MetadataDriver::note_heap(std::uint64_t address) {
  const auto at = raw_blocks_.find(address);
  if (at == raw_blocks_.end()) return;
  const std::uint64_t n_bytes = at->second;
  raw_blocks_.erase(at);
  heap_bytes_.insert(n_bytes);
  const bool in_front = address >= front_address_ && address - front_address_ < front_.n_bytes;
  if (!in_front) front_missed_ += n_bytes;
}

haddr_t MetadataDriver::on_alloc(H5FD_mem_t type, hsize_t n_bytes) {
  Plan& plan = plan_;
  if (plan.armed && type == H5FD_MEM_DRAW && n_bytes == plan.n_bytes && !plan.outcome.allocated) {
    plan.outcome.allocated = true;
    count_end(plan.address + plan.n_bytes);
    return plan.address;
  }
  if (phase_ == Phase::opening && !creating_) {
    // The tail starts after the result of finish_open(), so nothing else uses this space.
    const Result<std::uint64_t> on_disk = stored_bytes();
    opening_end_ = std::max({opening_end_, eoa_, on_disk.ok() ? *on_disk : 0});
    const std::uint64_t address = std::exchange(opening_end_, opening_end_ + n_bytes);
    keep_fresh(address, n_bytes);
    count_end(address + n_bytes);
    return address;
  }
  const bool first = creating_ && phase_ == Phase::opening && eoa_ == 0;
  const std::uint64_t address =
      is_raw(type) ? take_raw_space(n_bytes) : take_metadata_space(n_bytes);
  if (first && address != 0) {
    // HDF5 expects its superblock at 0 (or 512, 1024, ...) and allocates its space first.
    (void)fail(Status(Code::internal, "the first " + std::to_string(n_bytes) +
                                          " bytes of the file are at address " +
                                          std::to_string(address) + ", expected 0"));
    return HADDR_UNDEF;
  }
  keep_fresh(address, n_bytes);
  count_end(address + n_bytes);
  return address;
}

/// Record fresh space. HDF5 gets the space even if this fails: after a refusal in the middle of
/// creating a link, 1.10.8 keeps an object that it can never close. No further commit is made.
void MetadataDriver::keep_fresh(std::uint64_t address, std::uint64_t n_bytes) {
  try {
    fresh_.insert(address, n_bytes);
  } catch (const std::bad_alloc&) {
    (void)fail(
        Status(Code::out_of_memory, "not enough memory to record newly allocated file space"));
  }
}

bool MetadataDriver::take_planned_write(std::uint64_t address, std::uint64_t n_bytes) {
  if (plan_.armed && plan_.drops_fills) {
    return plan_.outcome.allocated && address - plan_.address < plan_.n_bytes;
  }
  if (!plan_.armed || plan_.outcome.written || n_bytes != plan_.n_bytes) return false;
  plan_.outcome.written = true;
  plan_.outcome.address = address;
  if (address == plan_.address) return true;
  // HDF5 gave the chunk freed or old space. The chunk's bytes may not be written yet, so the next
  // commit copies them.
  dirty_.drop(address, n_bytes);
  copies_.push_back({plan_.address, address, n_bytes});
  return true;
}

/// True if raw bytes in fresh space wait for the commit, within the limit. Bytes that replace
/// waiting bytes, as values replace fill values, do not count again.
bool MetadataDriver::holds_raw(std::uint64_t address, std::uint64_t n_bytes) {
  if (n_bytes > held_raw_bytes_max) return false;
  if (dirty_.covers(address, n_bytes)) return true;
  if (held_raw_bytes_ + n_bytes > settings_.held_raw_bytes_max) return false;
  held_raw_bytes_ += n_bytes;
  return true;
}

void MetadataDriver::write_raw(std::uint64_t address, std::span<const std::byte> bytes) {
  if (phase_ == Phase::failed || phase_ == Phase::abandoned) return;
  const bool fresh = fresh_.contains(address, bytes.size());
  // Committed bytes change only with a commit. Values and headers of small datasets alternate, and
  // the commit writes them in one call.
  if (!fresh || holds_raw(address, bytes.size())) {
    dirty_.put(address, bytes, DirtyBytes::Kind::raw);
    return;
  }
  dirty_.drop(address, bytes.size());
  if (const Status written = storage_->write_at(address, bytes); !written.ok()) (void)fail(written);
}

herr_t MetadataDriver::on_write(H5FD_mem_t type, haddr_t address, std::size_t n_bytes,
                                const void* bytes) {
  const std::span<const std::byte> given(static_cast<const std::byte*>(bytes), n_bytes);
  if (type == H5FD_MEM_DRAW && take_planned_write(address, n_bytes)) return 0;
  if (is_raw(type)) {
    if (begins_as_heap(given)) note_heap(address);
    write_raw(address, given);
  } else {
    dirty_.put(address, given,
               type == H5FD_MEM_SUPER ? DirtyBytes::Kind::superblock : DirtyBytes::Kind::metadata);
  }
  return 0;
}

herr_t MetadataDriver::on_read(H5FD_mem_t type, haddr_t address, std::size_t n_bytes, void* bytes) {
  if (skips_raw_reads_ && type == H5FD_MEM_DRAW) return 0;
  const std::span<std::byte> wanted(static_cast<std::byte*>(bytes), n_bytes);
  const Result<std::uint64_t> on_disk = stored_bytes();
  if (!on_disk.ok()) return failed_read(on_disk.status());
  const std::uint64_t n_stored = *on_disk > address ? std::min(*on_disk - address, n_bytes) : 0;
  std::fill(wanted.begin() + std::ptrdiff_t(n_stored), wanted.end(), std::byte{0});
  const Status read = n_stored > 0 ? storage_->read_at(address, wanted.first(n_stored)) : Status();
  if (!read.ok()) return failed_read(read.within(wanted_text(address, n_bytes)));
  if (pending_) pending_->bytes().overlay(address, wanted);
  dirty_.overlay(address, wanted);
  return 0;
}

herr_t MetadataDriver::on_set_eoa(haddr_t address) {
  if (phase_ == Phase::opening) {
    eoa_ = address;
    return 0;
  }
  // A lower end only hides space. A higher end would mean that HDF5 extends a block in place, over
  // bytes that may belong to another rank; invariant 2 prevents that.
  return address <= eoa_ ? 0 : -1;
}

haddr_t MetadataDriver::on_get_eof() {
  // A file being created must look empty even if ranks have already written to it.
  if (phase_ == Phase::opening && creating_) return eoa_;
  const Result<std::uint64_t> on_disk = stored_bytes();
  const std::uint64_t stored = on_disk.ok() ? *on_disk : 0;
  return phase_ == Phase::opening ? stored : std::max({stored, dirty_.end(), eoa_});
}

/// Chunks that HDF5 moved to space to which the committed file still refers become in-place writes
/// under the journal. Copied before the commit, they would damage the older state.
Status MetadataDriver::plan_moves_in_place(CommitPlan& plan) {
  std::vector<PendingCommit::Copy> to_fresh_space;
  std::uint64_t n_bytes = 0;
  for (const PendingCommit::Copy& copy : copies_) {
    if (fresh_.contains(copy.to, copy.n_bytes)) {
      to_fresh_space.push_back(copy);
      continue;
    }
    n_bytes += copy.n_bytes;
    if (n_bytes > kInPlaceBytesMax) {
      return Status(
          Code::unsupported,
          "file \"" + storage_->path() + "\": HDF5 would reuse a freed block of more than " +
              std::to_string(kInPlaceBytesMax >> 20U) +
              " MiB, which is not safe against crashes; run tailrace repack on the file first");
    }
    std::vector<std::byte>& bytes = plan.owned.emplace_back(copy.n_bytes);
    TAILRACE_TRY(storage_->read_at(copy.from, bytes));
    plan.index_blocks.insert(plan.index_blocks.begin(), {copy.to, bytes});
    plan.orderly = false;
  }
  copies_ = std::move(to_fresh_space);
  return Status();
}

Result<std::shared_ptr<PendingCommit>> MetadataDriver::prepare() {
  TAILRACE_CHECK(pending_ == nullptr);
  if (!failure_.ok()) return failure_;
  if (phase_ == Phase::abandoned || (dirty_.empty() && copies_.empty())) {
    pending_ = std::make_shared<PendingCommit>();
    return pending_;
  }
  // A new file has a temporary name until its first commit is complete: nothing needs protection.
  CommitSettings how{settings_.sync, settings_.journal,
                     creating_ ? std::string() : settings_.journal_path};
  // Another node may have written and synced the bytes to copy. In the page that contains the end
  // of this node's own last chunk, this kernel may have cached zeros after that end.
  if (settings_.on_nodes && !copies_.empty()) {
    refresh_file(storage_->path(), UINT64_MAX);
    storage_->renew_reads();
  }
  Result<CommitPlan> plan = plan_commit(*storage_, dirty_, fresh_, eoa_);
  if (!plan.ok()) return fail(plan.status());
  plan->owns_end = settings_.on_nodes && eoa_ <= own_end_;
  if (!creating_) {
    if (const Status moved = plan_moves_in_place(*plan); !moved.ok()) return fail(moved);
  }
  if (settings_.whole_commits && plan->index_blocks.size() + plan->object_headers.size() > 1) {
    plan->orderly = false;
  }
  pending_ = std::make_shared<PendingCommit>(*storage_, std::exchange(dirty_, {}), std::move(*plan),
                                             std::exchange(copies_, {}), std::move(how));
  fresh_.clear();
  held_raw_bytes_ = 0;
  return pending_;
}

/// Buffer again what a commit could not write: HDF5 reads it while it closes.
void MetadataDriver::take_back(const PendingCommit& commit) {
  DirtyBytes held = commit.bytes();
  for (const auto& [address, segment] : dirty_.segments()) {
    held.put(address, segment.bytes, segment.kind);
  }
  dirty_ = std::move(held);
}

Status MetadataDriver::finish() {
  TAILRACE_CHECK(pending_ != nullptr);
  const std::shared_ptr<PendingCommit> commit = std::exchange(pending_, nullptr);
  const bool too_late = phase_ == Phase::failed || phase_ == Phase::abandoned;
  if (too_late && !commit->written()) {
    take_back(*commit);
    return failure_;
  }
  if (const Status written = commit->write(); !written.ok()) {
    take_back(*commit);
    return fail(written);
  }
  metadata_bytes_ += commit->metadata_bytes();
  if (!commit->bytes().empty()) creating_ = false;
  return Status();
}

Status MetadataDriver::publish() {
  const Result<std::shared_ptr<PendingCommit>> commit = prepare();
  return commit.ok() ? finish() : commit.status();
}

}  // namespace tailrace
