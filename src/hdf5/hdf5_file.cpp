// Hdf5File over the metadata driver: groups, datasets, chunk indexes and commits.
//
//   create / open -> (create_*, insert_chunks, set_attribute, ... -> commit)* -> close
//   commit = prepare_commit, write (on any thread, alongside the calls above), finish_commit
//
// Invariants (hdf5_file_test.cpp, commit_order_test.cpp, pending_commit_test.cpp cite the numbers):
//  1. Effects of calls before commit() are invisible on disk; after commit() all are visible.
//     Calls between prepare_commit() and finish_commit() belong to the next commit.
//  2. A chunk's index entry holds exactly the given address and length. The bytes that HDF5
//     receives instead of the chunk lie in inaccessible memory.
//  3. After a failed commit nothing more is written, and closing or destroying the object is safe.
//  4. Files need no special reader: superblock version 2, forms of HDF5 1.8 or, if requested, 1.10.
// The HDF5 behaviour that we rely on, and the reasons for each property: src/hdf5/README.md.

#include "hdf5/hdf5_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/metadata_driver.hpp"
#include "hdf5/private_storage.hpp"
#include "hdf5/readers_need.hpp"
#include "hdf5/stub_filters.hpp"

namespace tailrace {

/// Inaccessible memory of a given length that replaces a chunk's bytes; any access faults.
class GuardBuffer {
 public:
  explicit GuardBuffer(std::uint64_t n_bytes) : n_bytes_(std::max<std::uint64_t>(n_bytes, 1)) {
    address_ =
        ::mmap(nullptr, n_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  GuardBuffer(const GuardBuffer&) = delete;
  GuardBuffer& operator=(const GuardBuffer&) = delete;
  ~GuardBuffer() {
    if (valid()) ::munmap(address_, n_bytes_);
  }
  bool valid() const { return address_ != MAP_FAILED; }
  std::uint64_t n_bytes() const { return n_bytes_; }
  const void* data() const { return address_; }

 private:
  std::uint64_t n_bytes_;
  void* address_;
};

namespace {

/// HDF5 stores a chunk's length in 32 bits.
constexpr std::uint64_t kChunkBytesLimit = std::uint64_t{1} << 32;
/// Smallest length of a GuardBuffer; address space costs nothing.
constexpr std::uint64_t kGuardBytesMin = std::uint64_t{1} << 20;

class Hdf5FileOnDriver final : public Hdf5File {
 public:
  Hdf5FileOnDriver(Storage& storage, Allocate allocate, const Settings& settings, bool existing,
                   MetadataDriver::Settings driver = {})
      : settings_(settings), storage_(storage), path_(storage.path()) {
    driver.existing = existing;
    driver.sync = settings.sync;
    driver.journal = settings.journal;
    driver.whole_commits = settings.whole_commits;
    driver.journal_path = journal_path_of(path_);
    driver.on_nodes = settings.on_nodes;
    driver_ = std::make_shared<MetadataDriver>(storage, std::move(allocate), driver);
  }
  ~Hdf5FileOnDriver() override {
    if (!file_.valid()) return;
    const Hdf5Scope scope;
    driver_->abandon();
    (void)close_hdf5();
  }

  Status start_create();
  Status flush();
  Status start_open(std::uint64_t& end_of_file);

  Status create_group(const std::string& path, std::uint64_t expected_links) override;
  Status create_dataset(const DatasetDefinition& definition) override;
  bool exists(const std::string& path) override;
  Result<Shape> dataset_shape(const std::string& path) override;
  Status extend_dataset(const std::string& path, const Shape& shape) override;
  Status insert_chunks(const std::string& path, std::span<const ChunkRecord> records) override;
  Status update_dataset(const DatasetUpdate& update) override;
  bool old_forms() const override { return settings_.old_forms; }
  void reserve_front(FrontPlan plan) override { driver_->reserve_front(std::move(plan)); }
  void write_values_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const Hdf5Scope scope;
    driver_->write_raw(address, bytes);
  }
  FrontPlan front_as_used() const { return driver_->front_as_used(); }
  bool reuses_space() const override { return reuses_space_; }
  bool keeps_replaced() const override { return keeps_replaced_; }
  std::vector<ChunkRecord> take_moved_chunks() override { return std::exchange(moved_, {}); }
  Result<std::int64_t> creation_list(const StoredForm& storage, std::int64_t type_id,
                                     std::span<const std::byte> fill_value, bool planned,
                                     bool bare) override;
  Status adapt_creation_list(std::int64_t list_id, const StoredForm& storage) override;
  Result<std::int64_t> create_exact(const ExactDataset& dataset) override;
  Status set_extents(std::int64_t dataset_id, const Shape& extents) override;
  Status insert_chunks_into(std::int64_t dataset_id, const std::string& path, const ChunkGrid& grid,
                            std::span<const ChunkRecord> records) override;
  Status add_attributes(std::int64_t dataset_id, const std::string& path,
                        std::span<const NamedAttribute> attributes) override;
  Status set_attribute(const std::string& object_path, const std::string& name,
                       const AttributeValue& value) override;
  bool has_attribute(const std::string& object_path, const std::string& name) override {
    const Hdf5Scope scope;
    return exists(object_path) &&
           H5Aexists_by_name(file_.get(), object_path.c_str(), name.c_str(), H5P_DEFAULT) > 0;
  }
  std::int64_t hdf5_id() const override { return file_.get(); }
  Status commit() override;
  Result<std::shared_ptr<PendingCommit>> prepare_commit() override;
  Status finish_commit() override { return driver_->finish(); }
  Status close() override;
  void set_path(const std::string& path) override {
    driver_->set_journal_path(journal_path_of(path));
  }
  void make_commits_whole() override { driver_->make_commits_whole(); }
  std::uint64_t metadata_bytes() const override { return driver_->metadata_bytes(); }

 private:
  ObjectForms forms() const { return {settings_.track_creation_order, settings_.old_forms}; }
  Status close_hdf5();
  Status expect_root_links(std::uint64_t n_links);
  Status create_parents(const std::string& path);
  /// @param n_chunks  number of chunks inserted at creation.
  Result<Hdf5Id> make_dataset(const DatasetDefinition& definition, std::uint64_t n_chunks);
  H5F_libver_t least_form() const { return settings_.old_forms ? H5F_LIBVER_V18 : H5F_LIBVER_V110; }
  Status set_least_form(H5F_libver_t least);
  Result<Hdf5Id> open_dataset(const std::string& path);
  Status extend(hid_t dataset, const std::string& path, const Shape& now, const Shape& shape);
  Result<Shape> shape_of(hid_t dataset, const std::string& path);
  MetadataDriver::PlanOutcome write_guard(hid_t dataset, const ChunkRecord& record,
                                          std::uint64_t n_bytes, const hsize_t* offset,
                                          const void* guard, herr_t& written);
  bool has_mask(hid_t dataset, const hsize_t* offset, const hsize_t* other, std::uint32_t mask);
  Status insert_one(hid_t dataset, const ChunkRecord& record, const hsize_t* offset,
                    const hsize_t* other, const void* guard);
  Status replace_one(hid_t dataset, const ChunkRecord& record, const hsize_t* offset,
                     const hsize_t* other, const void* guard);
  Status insert_between(hid_t dataset, const Extent& place, const hsize_t* offset,
                        const void* guard);
  Status keep_unused(const Extent& place, const void* guard);
  Result<Hdf5Id> create_planned(const ExactDataset& dataset, hid_t link_list);
  const void* guard_of(std::uint64_t n_bytes);

  Settings settings_;
  Storage& storage_;
  std::string path_;   ///< Original name of the file, which HDF5 knows.
  StubFilters stubs_;  // Outlives the file below: HDF5 refuses to drop a class in use.
  std::shared_ptr<MetadataDriver> driver_;
  Hdf5Id file_;
  ReadersNeed readers_need_;
  Hdf5Id utf8_links_;  // Created with the first exact dataset.
  /// Datasets that are updated repeatedly: opening one costs more than updating it.
  struct Open {
    Hdf5Id id;
    Shape shape;
  };
  std::map<std::string, Open> open_;
  bool reuses_space_ = true;  // HDF5 reuses freed space.
  bool keeps_replaced_ = true;
  std::vector<ChunkRecord> moved_;
  /// An anonymous dataset whose chunks occupy the space of replaced chunks.
  struct Unused {
    Hdf5Id id;
    std::uint64_t n_chunks = 0;
    std::uint64_t n_extended = 0;
  };
  Unused unused_;
  std::unique_ptr<GuardBuffer> guard_;  // Holds the longest chunk so far.
};

Status Hdf5FileOnDriver::start_create() {
  const Hdf5Scope scope;
  const std::string what = quoted("file", path_);
  Result<Hdf5Id> access = driver_->access_list(settings_.access_list_id);
  if (!access.ok()) return access.status();
  const Result<Hdf5Id> creation =
      settings_.creation_list_id >= 0
          ? program_creation_list(settings_.creation_list_id)
          : file_creation_list(forms(), settings_.expected_root_links, settings_.shares_chunks);
  if (!creation.ok()) return creation.status();
  reuses_space_ = !settings_.shares_chunks;
  file_ = Hdf5Id(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation->get(), access->get()));
  if (!driver_->failure().ok()) return driver_->failure();
  if (!file_.valid()) return hdf5_failure(Code::internal, what + " cannot be created");
  driver_->finish_create();
  // Raise the lower bound only now: at creation it would select superblock version 3, which a
  // crashed writer leaves marked as open. The upper bound stays; otherwise 2.x writes forms that
  // 1.10 cannot read.
  return set_least_form(least_form());
}

Status Hdf5FileOnDriver::start_open(std::uint64_t& end_of_file) {
  const Hdf5Scope scope;
  const std::string what = quoted("file", path_);
  Result<Hdf5Id> access = driver_->access_list(settings_.access_list_id);
  if (!access.ok()) return access.status();
  file_ = Hdf5Id(H5Fopen(path_.c_str(), H5F_ACC_RDWR, access->get()));
  if (!file_.valid()) return hdf5_failure(Code::corrupt, what + " cannot be opened as HDF5");
  const Result<std::uint64_t> end = driver_->finish_open();
  if (!end.ok()) return end.status();
  end_of_file = *end;
  keeps_replaced_ = false;
  const Hdf5Id creation(H5Fget_create_plist(file_.get()));
  H5F_fspace_strategy_t strategy = H5F_FSPACE_STRATEGY_FSM_AGGR;
  hbool_t persist = 0;
  hsize_t threshold = 0;
  if (creation.valid() &&
      H5Pget_file_space_strategy(creation.get(), &strategy, &persist, &threshold) >= 0) {
    reuses_space_ = strategy != H5F_FSPACE_STRATEGY_AGGR && strategy != H5F_FSPACE_STRATEGY_NONE;
    hsize_t user_block = 0;
    keeps_replaced_ = H5Pget_userblock(creation.get(), &user_block) >= 0 && user_block == 0 &&
                      persist == 0 && strategy != H5F_FSPACE_STRATEGY_PAGE;
  }
  return set_least_form(least_form());
}

bool Hdf5FileOnDriver::exists(const std::string& path) {
  const Hdf5Scope scope;
  const std::vector<std::string> prefixes = path_prefixes(path);
  return std::all_of(prefixes.begin(), prefixes.end(), [this](const std::string& prefix) {
    return H5Lexists(file_.get(), prefix.c_str(), H5P_DEFAULT) > 0;
  });
}

/// Recreate a file that is still empty, with a root group that has room for these links, or a
/// heap, from the start. No HDF5 call enlarges it later.
Status Hdf5FileOnDriver::expect_root_links(std::uint64_t n_links) {
  const bool programs = settings_.creation_list_id >= 0 || settings_.access_list_id >= 0;
  const std::uint64_t n_expected =
      std::max<std::uint64_t>(settings_.expected_root_links, kUnexpectedLinksMax);
  if (programs || n_links <= n_expected || n_expected > kCompactLinksMax) return Status();
  const Hdf5Id root(H5Gopen2(file_.get(), "/", H5P_DEFAULT));
  H5G_info_t links;
  ObjectFacts facts;
  if (!root.valid() || H5Gget_info(root.get(), &links) < 0 ||
      !get_object_facts(root.get(), facts)) {
    return hdf5_failure(Code::internal,
                        quoted("file", storage_.path()) + ": its root group cannot be read");
  }
  if (!driver_->only_created() || links.nlinks > 0 || facts.n_attributes > 0) return Status();
  std::shared_ptr<MetadataDriver> anew = driver_->anew();
  driver_->abandon();
  TAILRACE_TRY(close_hdf5());
  driver_ = std::move(anew);
  settings_.expected_root_links = n_links;
  return start_create();
}

Status Hdf5FileOnDriver::create_group(const std::string& path, std::uint64_t expected_links) {
  const Hdf5Scope scope;
  if (path_prefixes(path).empty()) return expect_root_links(expected_links);
  for (const std::string& prefix : path_prefixes(path)) {
    if (H5Lexists(file_.get(), prefix.c_str(), H5P_DEFAULT) > 0) {
      const Hdf5Id there(H5Oopen(file_.get(), prefix.c_str(), H5P_DEFAULT));
      if (!there.valid()) return hdf5_open_failure(quoted("object", prefix));
      if (H5Iget_type(there.get()) == H5I_GROUP) continue;
      return Status(Code::already_exists,
                    quoted("group", path) + ": " + quoted("object", prefix) + " is not a group");
    }
    const Result<Hdf5Id> list = group_creation_list(forms(), prefix == path ? expected_links : 0);
    if (!list.ok()) return list.status();
    const Hdf5Id group(H5Gcreate2(file_.get(), prefix.c_str(), link_properties_of(prefix).get(),
                                  list->get(), H5P_DEFAULT));
    if (!group.valid())
      return hdf5_failure(Code::internal, quoted("group", prefix) + " cannot be created");
  }
  return Status();
}

Status Hdf5FileOnDriver::create_parents(const std::string& path) {
  std::vector<std::string> prefixes = path_prefixes(path);
  if (prefixes.size() < 2) return Status();
  return create_group(prefixes[prefixes.size() - 2], 0);
}

Status Hdf5FileOnDriver::create_dataset(const DatasetDefinition& definition) {
  const Hdf5Scope scope;
  return make_dataset(definition, UINT64_MAX).status();
}

Status Hdf5FileOnDriver::set_least_form(H5F_libver_t least) {
  if (H5Fset_libver_bounds(file_.get(), least, H5F_LIBVER_V110) >= 0) return Status();
  return hdf5_failure(Code::internal,
                      quoted("file", path_) + ": cannot set the range of HDF5 format versions");
}

Result<Hdf5Id> Hdf5FileOnDriver::make_dataset(const DatasetDefinition& definition,
                                              std::uint64_t n_chunks) {
  const std::string what = quoted("dataset", definition.path);
  if (path_prefixes(definition.path).empty()) {
    return Status(Code::invalid_argument, what + ": the path has no dataset name");
  }
  if (exists(definition.path)) return Status(Code::already_exists, what + " already exists");
  TAILRACE_TRY(check_definition(definition).within(what));
  TAILRACE_TRY(create_parents(definition.path));
  ObjectForms of_dataset = forms();
  of_dataset.old = of_dataset.old && !(settings_.steps_in_new_forms && definition.grows_by_steps);
  Result<Hdf5Id> list = dataset_creation_list(definition, of_dataset, stubs_);
  if (!list.ok()) return list.status().within(what);

  const std::vector<hsize_t> extents(definition.shape.begin(), definition.shape.end());
  std::vector<hsize_t> extents_max(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) extents_max[d] = definition.limit(d);
  const Hdf5Id space(
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(int(extents.size()), extents.data(), extents_max.data()));
  ExactDataset exact;
  exact.path = exact.name = definition.path;
  exact.group_id = file_.get();
  TAILRACE_TAKE(const Hdf5Id type, dataset_type(file_.get(), definition));
  exact.type_id = type.get();
  exact.space_id = space.get();
  exact.creation_list_id = list->get();
  exact.filters = definition.filters;
  if (definition.chunk_shape.empty() && !definition.compact) {
    exact.contiguous_address = definition.contiguous_address;
    exact.contiguous_bytes = n_elements(definition.shape) * definition.bytes_of_element();
  }
  // HDF5 1.8's index covers only existing chunks; 1.10's has room for all possible chunks.
  const bool old_index = of_dataset.old || has_few_chunks(definition, n_chunks);
  TAILRACE_TRY(set_least_form(old_index ? H5F_LIBVER_V18 : H5F_LIBVER_V110));
  Result<Hdf5Id> made = create_planned(exact, link_properties_of(exact.name).get());
  TAILRACE_TRY(set_least_form(least_form()));
  return made;
}

Result<Hdf5Id> Hdf5FileOnDriver::create_planned(const ExactDataset& dataset, hid_t link_list) {
  const std::string what = quoted("dataset", dataset.path);
  const bool planned = dataset.contiguous_address != 0 && dataset.contiguous_bytes > 0;
  if (planned) driver_->arm(dataset.contiguous_address, dataset.contiguous_bytes, true);
  Hdf5Id made(H5Dcreate2(dataset.group_id, dataset.name.c_str(), dataset.type_id, dataset.space_id,
                         link_list, dataset.creation_list_id, H5P_DEFAULT));
  // HDF5's sieve buffer may hold fill values, which must be written before the plan ends.
  if (planned && made.valid() && fills_at_creation(dataset.creation_list_id)) {
    H5Dflush(made.get());
  }
  const MetadataDriver::PlanOutcome outcome = driver_->disarm();
  if (!made.valid()) {
    const bool filtered = !dataset.filters.empty();
    return hdf5_failure(filtered ? Code::unsupported : Code::internal, what + " cannot be created");
  }
  Status checked =
      dataset.filters.empty() ? Status() : check_stored_filters(made.get(), dataset.filters);
  if (checked.ok() && planned && !outcome.allocated && !outcome.written) {
    // An opened file may have freed space, which HDF5 allocates without asking the driver.
    const haddr_t taken = H5Dget_offset(made.get());
    if (taken != HADDR_UNDEF) {
      driver_->move_planned(taken);
      moved_.push_back({0, {taken, dataset.contiguous_bytes}, 0});
      return made;  // Contiguous: has no filters.
    }
  }
  if (checked.ok() && planned && (!outcome.allocated || outcome.written)) {
    checked = Status(Code::internal, "HDF5 did not use the planned address");
  }
  if (checked.ok()) {
    readers_need_.learn(dataset.filters);
    return made;
  }
  H5Ldelete(dataset.group_id, dataset.name.c_str(), H5P_DEFAULT);
  return checked.within(what);
}

Result<std::int64_t> Hdf5FileOnDriver::creation_list(const StoredForm& storage,
                                                     std::int64_t type_id,
                                                     std::span<const std::byte> fill_value,
                                                     bool planned, bool bare) {
  const Hdf5Scope scope;
  Result<Hdf5Id> list =
      stored_creation_list(storage, type_id, fill_value, planned, bare, forms(), stubs_);
  if (!list.ok()) return list.status();
  return list->release();
}

Status Hdf5FileOnDriver::adapt_creation_list(std::int64_t list_id, const StoredForm& storage) {
  const Hdf5Scope scope;
  return adapt_program_list(list_id, storage, stubs_);
}

Result<std::int64_t> Hdf5FileOnDriver::create_exact(const ExactDataset& dataset) {
  const Hdf5Scope scope;
  if (!utf8_links_.valid()) utf8_links_ = utf8_link_properties();
  if (H5Lexists(dataset.group_id, dataset.name.c_str(), H5P_DEFAULT) > 0) {
    return Status(Code::already_exists, quoted("dataset", dataset.path) + " already exists");
  }
  Result<Hdf5Id> made = create_planned(dataset, utf8_links_.get());
  if (!made.ok()) return made.status();
  return made->release();
}

Result<Hdf5Id> Hdf5FileOnDriver::open_dataset(const std::string& path) {
  if (!exists(path)) return Status(Code::not_found, quoted("dataset", path) + " does not exist");
  Hdf5Id dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_open_failure(quoted("dataset", path));
  return dataset;
}

Result<Shape> Hdf5FileOnDriver::shape_of(hid_t dataset, const std::string& path) {
  const Hdf5Id space(H5Dget_space(dataset));
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank < 0)
    return hdf5_failure(Code::corrupt, quoted("dataset", path) + ": its extents cannot be read");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  return Shape(extents.begin(), extents.end());
}

Result<Shape> Hdf5FileOnDriver::dataset_shape(const std::string& path) {
  const Hdf5Scope scope;
  const Result<Hdf5Id> dataset = open_dataset(path);
  if (!dataset.ok()) return dataset.status();
  return shape_of(dataset->get(), path);
}

Status Hdf5FileOnDriver::extend_dataset(const std::string& path, const Shape& shape) {
  const Hdf5Scope scope;
  const Result<Hdf5Id> dataset = open_dataset(path);
  if (!dataset.ok()) return dataset.status();
  const Result<Shape> now = shape_of(dataset->get(), path);
  return now.ok() ? extend(dataset->get(), path, *now, shape) : now.status();
}

Status Hdf5FileOnDriver::extend(hid_t dataset, const std::string& path, const Shape& now,
                                const Shape& shape) {
  const bool same_rank = shape.size() == now.size() && !shape.empty();
  if (!same_rank || shape[0] < now[0] ||
      !std::equal(shape.begin() + 1, shape.end(), now.begin() + 1)) {
    return Status(Code::invalid_argument, quoted("dataset", path) + ": new shape is " +
                                              shape_text(shape) + ", expected " + shape_text(now) +
                                              " with the same or a larger first extent");
  }
  const Status extended = set_extents(dataset, shape);
  if (extended.ok()) return Status();
  return Status(Code::invalid_argument, quoted("dataset", path) + " " + extended.message());
}

Status Hdf5FileOnDriver::set_extents(std::int64_t dataset_id, const Shape& extents) {
  const Hdf5Scope scope;
  const std::vector<hsize_t> wanted(extents.begin(), extents.end());
  if (extend_with_filters(dataset_id, wanted, stubs_) >= 0) return Status();
  return hdf5_failure(Code::internal, "cannot be extended");
}

Status Hdf5FileOnDriver::update_dataset(const DatasetUpdate& update) {
  const Hdf5Scope scope;
  const DatasetDefinition& definition = update.dataset;
  const std::string& path = definition.path;
  if (update.is_new) open_.erase(path);
  Open found;
  auto open = open_.find(path);
  Open& dataset = open == open_.end() ? found : open->second;
  if (!dataset.id.valid()) {
    Result<Hdf5Id> id =
        update.is_new ? make_dataset(definition, update.records.size()) : open_dataset(path);
    if (!id.ok()) return id.status();
    dataset.id = std::move(*id);
    const Result<Shape> shape = update.is_new ? definition.shape : shape_of(dataset.id.get(), path);
    if (!shape.ok()) return shape.status();
    dataset.shape = *shape;
  }
  if (!update.is_new) {
    TAILRACE_TRY(extend(dataset.id.get(), path, dataset.shape, definition.shape));
    dataset.shape = definition.shape;
  }
  TAILRACE_TRY(insert_chunks_into(dataset.id.get(), path,
                                  {definition.shape, definition.chunk_shape}, update.records));
  for (const auto& [name, value] : update.attributes) {
    TAILRACE_TRY(write_attribute(dataset.id.get(), name, value, update.is_new)
                     .within(quoted("object", path)));
  }
  // A dataset updated twice will be updated again; many that could grow never do.
  if (!update.is_new && open == open_.end()) open_.emplace(path, std::move(found));
  return Status();
}

MetadataDriver::PlanOutcome Hdf5FileOnDriver::write_guard(hid_t dataset, const ChunkRecord& record,
                                                          std::uint64_t n_bytes,
                                                          const hsize_t* offset, const void* guard,
                                                          herr_t& written) {
  driver_->arm(record.extent.address, n_bytes);
  written = H5Dwrite_chunk(dataset, H5P_DEFAULT, record.filter_mask, offset, n_bytes, guard);
  return driver_->disarm();
}

/// True if a chunk that was just written has this filter mask in the index. HDF5 (1.10.8, 1.14.6)
/// caches the chunk that it wrote last with its previous mask, so another chunk must be looked up
/// in between.
/// @param other  offset of such a chunk; null: none exists, and the result is false
bool Hdf5FileOnDriver::has_mask(hid_t dataset, const hsize_t* offset, const hsize_t* other,
                                std::uint32_t mask) {
  if (other == nullptr) return false;
  std::uint32_t found = 0;
  char unused = 0;  // The driver reads nothing into it.
  driver_->skip_raw_reads(true);
  const bool read = read_stored_chunk(dataset, other, &found, &unused) >= 0 &&
                    read_stored_chunk(dataset, offset, &found, &unused) >= 0;
  driver_->skip_raw_reads(false);
  return read && found == mask;
}

/// False if chunks of the dataset are stored unfiltered: such a chunk never moves.
bool has_filters(hid_t dataset) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  return !list.valid() || H5Pget_nfilters(list.get()) != 0;
}

/// @param other  offset of another chunk of the dataset; may be null
Status Hdf5FileOnDriver::insert_one(hid_t dataset, const ChunkRecord& record, const hsize_t* offset,
                                    const hsize_t* other, const void* guard) {
  const std::uint64_t n_bytes = record.extent.encoded_bytes;
  const auto moved = [&](const MetadataDriver::PlanOutcome& outcome) {
    return outcome.written && outcome.address != record.extent.address;
  };
  herr_t written = 0;
  MetadataDriver::PlanOutcome outcome =
      write_guard(dataset, record, n_bytes, offset, guard, written);
  if (written >= 0 && moved(outcome) && has_filters(dataset) &&
      !(reuses_space_ && has_mask(dataset, offset, other, record.filter_mask))) {
    // An existing chunk has the same length, and HDF5 reuses its address and filter mask. A chunk
    // of another length in between gets a new address, and so does this one afterwards.
    driver_->forget_copy();
    const Extent between = n_bytes > 1 ? Extent{record.extent.address, n_bytes - 1}
                                       : Extent{driver_->take_unused(2), 2};
    TAILRACE_TRY(insert_between(dataset, between, offset, guard));
    outcome = write_guard(dataset, record, n_bytes, offset, guard, written);
  }
  if (moved(outcome)) {
    moved_.push_back({record.chunk_index, {outcome.address, n_bytes}, record.filter_mask});
  }
  const std::string what = "chunk " + std::to_string(record.chunk_index);
  if (written < 0) return hdf5_failure(Code::internal, what + " cannot be inserted");
  // Without a write, HDF5 has put the guard memory into a buffer of its own: the chunk would be
  // lost.
  if (!outcome.written) return Status(Code::internal, what + ": HDF5 did not write it immediately");
  return Status();
}

/// HDF5 frees a chunk's space when a chunk of another length replaces it. It may reuse that space
/// immediately, for instance for the next chunk, whose bytes would overwrite those of the last
/// commit. So an invisible dataset takes all space that becomes free.
///
/// A chunk that fits into its old space would stay there. So HDF5 first gets a longer chunk in
/// separate space, then a chunk of one byte there. The next allocation is then the planned one.
Status Hdf5FileOnDriver::replace_one(hid_t dataset, const ChunkRecord& record,
                                     const hsize_t* offset, const hsize_t* other,
                                     const void* guard) {
  const std::uint64_t n_before = record.replaced.encoded_bytes;
  if (record.extent.encoded_bytes > n_before) {
    TAILRACE_TRY(insert_one(dataset, record, offset, other, guard));
    return keep_unused(record.replaced, guard);
  }
  const Extent longer{driver_->take_unused(n_before + 1), n_before + 1};
  TAILRACE_TRY(insert_between(dataset, longer, offset, guard));
  TAILRACE_TRY(keep_unused(record.replaced, guard));
  TAILRACE_TRY(insert_between(dataset, {longer.address, 1}, offset, guard));
  TAILRACE_TRY(keep_unused({longer.address + 1, n_before}, guard));
  TAILRACE_TRY(insert_one(dataset, record, offset, other, guard));
  return keep_unused({longer.address, 1}, guard);
}

/// Insert a placeholder chunk at this place until the next chunk replaces it.
Status Hdf5FileOnDriver::insert_between(hid_t dataset, const Extent& place, const hsize_t* offset,
                                        const void* guard) {
  herr_t written = 0;
  const auto outcome =
      write_guard(dataset, {0, place, 0, {}}, place.encoded_bytes, offset, guard, written);
  if (written < 0 || !outcome.written)
    return hdf5_failure(Code::internal, "a placeholder chunk cannot be inserted");
  if (outcome.address != place.address) driver_->forget_copy();
  return Status();
}

/// Occupy a freed place. Other free space that HDF5 chooses first is occupied too; when none is
/// left that fits, HDF5 asks the driver.
Status Hdf5FileOnDriver::keep_unused(const Extent& place, const void* guard) {
  if (!reuses_space_) return Status();
  constexpr hsize_t nominal_bytes = hsize_t{1} << 30;
  if (!unused_.id.valid()) {
    const hsize_t none = 0;
    const hsize_t unlimited = H5S_UNLIMITED;
    const Hdf5Id space(H5Screate_simple(1, &none, &unlimited));
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    // Use a filter, so that chunks may have any length.
    const bool set = H5Pset_chunk(list.get(), 1, &nominal_bytes) >= 0 &&
                     H5Pset_fletcher32(list.get()) >= 0 &&
                     H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER) >= 0;
    if (!set)
      return hdf5_failure(
          Code::internal,
          "the creation property list of the dataset for unused space cannot be set up");
    unused_.id =
        Hdf5Id(H5Dcreate_anon(file_.get(), H5T_NATIVE_UINT8, space.get(), list.get(), H5P_DEFAULT));
    if (!unused_.id.valid())
      return hdf5_failure(Code::internal, "the dataset for unused space cannot be created");
  }
  bool kept = false;
  while (!kept) {
    if (unused_.n_chunks == unused_.n_extended) {
      unused_.n_extended = std::max<std::uint64_t>(2 * unused_.n_extended, 64);
      const hsize_t extent = unused_.n_extended * nominal_bytes;
      if (H5Dset_extent(unused_.id.get(), &extent) < 0) {
        return hdf5_failure(Code::internal, "the dataset for unused space cannot be extended");
      }
    }
    const hsize_t offset = unused_.n_chunks * nominal_bytes;
    herr_t written = 0;
    const auto outcome = write_guard(unused_.id.get(), {0, place, 0, {}}, place.encoded_bytes,
                                     &offset, guard, written);
    if (written < 0 || !outcome.written) {
      return hdf5_failure(Code::internal, "the space of a replaced chunk cannot be reserved");
    }
    ++unused_.n_chunks;
    kept = outcome.address == place.address;
    if (!kept) driver_->forget_copy();
  }
  return Status();
}

Status Hdf5FileOnDriver::insert_chunks(const std::string& path,
                                       std::span<const ChunkRecord> records) {
  if (records.empty()) return Status();
  const Hdf5Scope scope;
  const std::string what = quoted("dataset", path);
  const Result<Hdf5Id> dataset = open_dataset(path);
  if (!dataset.ok()) return dataset.status();
  Result<Shape> shape = shape_of(dataset->get(), path);
  if (!shape.ok()) return shape.status();
  const Hdf5Id list(H5Dget_create_plist(dataset->get()));
  if (shape->empty() || H5Pget_layout(list.get()) != H5D_CHUNKED) {
    return Status(Code::invalid_argument, what + " is not chunked");
  }
  std::vector<hsize_t> chunk_extents(shape->size());
  H5Pget_chunk(list.get(), int(chunk_extents.size()), chunk_extents.data());
  const ChunkGrid grid{*shape, Shape(chunk_extents.begin(), chunk_extents.end())};
  return insert_chunks_into(dataset->get(), path, grid, records);
}

/// Guard memory grows in powers of two from 1 MiB: one mapping serves thousands of datasets.
const void* Hdf5FileOnDriver::guard_of(std::uint64_t n_bytes) {
  if (guard_ == nullptr || guard_->n_bytes() < n_bytes) {
    guard_ = std::make_unique<GuardBuffer>(std::bit_ceil(std::max(n_bytes, kGuardBytesMin)));
  }
  return guard_->valid() ? guard_->data() : nullptr;
}

Status Hdf5FileOnDriver::insert_chunks_into(std::int64_t dataset_id, const std::string& path,
                                            const ChunkGrid& grid,
                                            std::span<const ChunkRecord> records) {
  if (records.empty()) return Status();
  const Hdf5Scope scope;
  const std::string what = quoted("dataset", path);
  const std::uint64_t n_chunks = grid.n_chunks();
  std::uint64_t longest = 0;
  for (const ChunkRecord& record : records) {
    const std::uint64_t n_bytes = record.extent.encoded_bytes;
    longest = std::max({longest, n_bytes, record.replaced.encoded_bytes + 1});
    if (record.chunk_index >= n_chunks || n_bytes == 0 || n_bytes >= kChunkBytesLimit) {
      return Status(Code::invalid_argument,
                    what + ": chunk " + std::to_string(record.chunk_index) + " of " +
                        std::to_string(n_bytes) + " bytes, expected a chunk number below " +
                        std::to_string(n_chunks) + " and 1 to 2^32-1 bytes");
    }
  }
  std::vector<ChunkRecord> sorted(records.begin(), records.end());
  const auto earlier = [](const ChunkRecord& a, const ChunkRecord& b) {
    return a.chunk_index < b.chunk_index;
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), earlier)) {
    std::stable_sort(sorted.begin(), sorted.end(), earlier);
  }
  const void* const guard = guard_of(longest);
  if (guard == nullptr)
    return Status(Code::out_of_memory,
                  what + ": cannot reserve " + std::to_string(longest) + " bytes of address space");
  moved_.clear();
  std::vector<hsize_t> offset(grid.shape.size());
  std::vector<hsize_t> before;  // Offset of another chunk.
  const Shape n_per_dimension = grid.n_per_dimension();
  const ChunkRecord* last = nullptr;
  for (const ChunkRecord& record : sorted) {
    if (last != nullptr && last->chunk_index != record.chunk_index) before = offset;
    last = &record;
    const hsize_t* const other = before.empty() ? nullptr : before.data();
    std::uint64_t rest = record.chunk_index;
    for (std::size_t d = offset.size(); d-- > 0;) {
      offset[d] = rest % n_per_dimension[d] * grid.chunk_shape[d];
      rest /= n_per_dimension[d];
    }
    const Status inserted = record.replaced.encoded_bytes > 0
                                ? replace_one(dataset_id, record, offset.data(), other, guard)
                                : insert_one(dataset_id, record, offset.data(), other, guard);
    TAILRACE_TRY(inserted.within(what));
  }
  return Status();
}

Status Hdf5FileOnDriver::add_attributes(std::int64_t dataset_id, const std::string& path,
                                        std::span<const NamedAttribute> attributes) {
  const Hdf5Scope scope;
  for (const auto& [name, value] : attributes) {
    TAILRACE_TRY(write_attribute(dataset_id, name, value, true).within(quoted("object", path)));
  }
  return Status();
}

Status Hdf5FileOnDriver::set_attribute(const std::string& object_path, const std::string& name,
                                       const AttributeValue& value) {
  const Hdf5Scope scope;
  const std::string what = quoted("object", object_path);
  if (!exists(object_path)) return Status(Code::not_found, what + " does not exist");
  const bool is_root = path_prefixes(object_path).empty();
  const Hdf5Id object(H5Oopen(file_.get(), is_root ? "/" : object_path.c_str(), H5P_DEFAULT));
  if (!object.valid()) return hdf5_open_failure(what);
  return write_attribute(object.get(), name, value).within(what);
}

/// Let HDF5 pass all of its changes to the driver.
Status Hdf5FileOnDriver::flush() {
  const Hdf5Scope scope;
  TAILRACE_TRY(driver_->failure());
  if (settings_.lists_readers_need) TAILRACE_TRY(readers_need_.write(file_.get()));
  if (H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0) {
    return hdf5_failure(Code::internal, quoted("file", storage_.path()) + " cannot be flushed");
  }
  return driver_->failure();
}

Result<std::shared_ptr<PendingCommit>> Hdf5FileOnDriver::prepare_commit() {
  const Hdf5Scope scope;
  driver_->own_the_end();
  TAILRACE_TRY(flush());
  // Check here, since the flush may have allocated more. The caller of reserve_front() relies on
  // one block.
  if (driver_->front_missed_bytes() > 0) {
    return Status(Code::internal,
                  quoted("file", storage_.path()) + ": " +
                      std::to_string(driver_->front_missed_bytes()) +
                      " bytes of metadata exceed the block reserved for metadata before the data");
  }
  return driver_->prepare();
}

Status Hdf5FileOnDriver::commit() {
  const Result<std::shared_ptr<PendingCommit>> commit = prepare_commit();
  return commit.ok() ? finish_commit() : commit.status();
}

Status Hdf5FileOnDriver::close_hdf5() {
  open_.clear();
  unused_ = {};
  const bool closed = H5Fclose(file_.get()) >= 0;
  if (!closed || driver_->is_in_use()) {
    // HDF5 still uses the file and closes it later, at the latest when the process ends; the driver
    // must exist until then. If HDF5 reported success, the last commit already holds all of its
    // data.
    const Status failure =
        closed
            ? Status()
            : hdf5_failure(Code::internal, quoted("file", storage_.path()) + " cannot be closed");
    driver_->detach();
    (void)new std::shared_ptr<MetadataDriver>(driver_);
    file_.forget();
    return failure;
  }
  file_.forget();
  stubs_.release();
  return Status();
}

Status Hdf5FileOnDriver::close() {
  const Hdf5Scope scope;
  Status committed = driver_->pending() ? finish_commit() : Status();
  if (committed.ok()) committed = commit();
  if (!committed.ok()) driver_->abandon();
  const Status closed = close_hdf5();
  if (!committed.ok()) return committed;
  TAILRACE_TRY(closed);
  return driver_->publish();
}

}  // namespace

bool Hdf5File::can_be_used_concurrently() {
  hbool_t threadsafe = false;
  return H5is_library_threadsafe(&threadsafe) >= 0 && threadsafe;
}

Result<std::unique_ptr<Hdf5File>> Hdf5File::create(Storage& storage, Allocate allocate,
                                                   const Settings& settings) {
  auto file = std::make_unique<Hdf5FileOnDriver>(storage, std::move(allocate), settings, false);
  TAILRACE_TRY(file->start_create());
  return std::unique_ptr<Hdf5File>(std::move(file));
}

namespace {

/// Space reserved for a rehearsal: more than any file's metadata.
constexpr std::uint64_t kRehearsalFrontBytes = std::uint64_t{1} << 48;

/// A file in memory, up to a limit.
class RehearsalStorage final : public StorageOver {
 public:
  explicit RehearsalStorage(std::uint64_t bytes_max)
      : StorageOver(make_private_storage("rehearsal")), bytes_max_(bytes_max) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    written_bytes_ += bytes.size();
    if (written_bytes_ > bytes_max_) {
      return Status(Code::out_of_memory,
                    "layout front: values of strings, compounds and other datasets that are not "
                    "fields must fit into memory, but exceed " +
                        std::to_string(bytes_max_) +
                        " bytes; raise memory= or choose another layout");
    }
    return StorageOver::write_at(address, bytes);
  }

 private:
  std::uint64_t bytes_max_;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace

Result<FrontPlan> Hdf5File::rehearse(const Settings& settings, std::uint64_t raw_bytes_max,
                                     const std::function<Status(Hdf5File&)>& make) {
  RehearsalStorage storage(raw_bytes_max);
  std::uint64_t end = 0;
  const auto allocate = [&end](std::uint64_t n_bytes) { return std::exchange(end, end + n_bytes); };
  MetadataDriver::Settings driver;
  driver.held_raw_bytes_max = 0;  // All values go to the storage, which counts them.
  Hdf5FileOnDriver file(storage, allocate, settings, false, driver);
  TAILRACE_TRY(file.start_create());
  file.reserve_front({kRehearsalFrontBytes, {}});
  TAILRACE_TRY(make(file));
  TAILRACE_TRY(file.flush());  // The flush also allocates space.
  return file.front_as_used();
}

Result<std::unique_ptr<Hdf5File>> Hdf5File::open(Storage& storage, Allocate allocate,
                                                 const Settings& settings,
                                                 std::uint64_t& end_of_file) {
  TAILRACE_TRY(check_no_journal(storage.path()));
  const Result<std::uint64_t> n_bytes = storage.file_bytes();
  if (!n_bytes.ok()) return n_bytes.status();
  // HDF5 would treat an empty file as one to be created.
  if (*n_bytes == 0)
    return Status(Code::corrupt,
                  quoted("file", storage.path()) + " is empty, expected an HDF5 file");
  auto file = std::make_unique<Hdf5FileOnDriver>(storage, std::move(allocate), settings, true);
  TAILRACE_TRY(file->start_open(end_of_file));
  return std::unique_ptr<Hdf5File>(std::move(file));
}

}  // namespace tailrace
