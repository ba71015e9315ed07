// The two openings of a file that is read, and the queries to HDF5.
//
// Invariants:
//  1. HDF5 is called only within an Hdf5Scope.
//  2. Each opening has at most one dataset open at a time, so that at most one chunk cache uses
//     memory.
//  3. Within this process, all objects that have a file open with HDF5's own driver have the same
//     state of it open. Otherwise HDF5 would serve the older state's cached metadata to all of
//     them.

#include "describe/stored_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/checked_product.hpp"
#include "describe/field_attributes.hpp"
#include "describe/hdf5_copy.hpp"
#include "describe/paged_file.hpp"
#include "describe/plotfile.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/noting_driver.hpp"

namespace tailrace {
namespace {

constexpr std::uint32_t kNoFilterApplied = std::numeric_limits<std::uint32_t>::max();

/// Limit of chained soft links: more than any real file has. It ends cycles.
constexpr int kNAliasStepsMax = 40;

/// Normalize "/a//b/./c" to "/a/b/c". In HDF5, ".." is an ordinary name.
std::string plain_path(const std::string& path) {
  std::string plain;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (!part.empty() && part != ".") plain.append("/").append(part);
    at = end + 1;
  }
  return plain;
}

/// Text of a fixed-length string: up to its first NUL, or without its padding.
std::string fixed_text(const char* bytes, std::size_t n_bytes, H5T_str_t padding) {
  std::size_t n = n_bytes;
  if (padding == H5T_STR_NULLTERM) n = strnlen(bytes, n_bytes);
  const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  while (padding != H5T_STR_NULLTERM && n > 0 && bytes[n - 1] == pad) --n;
  return std::string(bytes, n);
}

/// Selection of a slab in a dataset, and a memory space with the same number of elements.
struct Selection {
  Hdf5Id file_space;
  Hdf5Id memory_space;

  bool make(hid_t dataset, const Slab& slab) {
    file_space = Hdf5Id(H5Dget_space(dataset));
    const std::size_t rank = slab.rank();
    const std::vector<hsize_t> start(slab.start.begin(), slab.start.end());
    const std::vector<hsize_t> count(slab.count.begin(), slab.count.end());
    const std::vector<hsize_t> stride(slab.stride.begin(), slab.stride.end());
    memory_space = Hdf5Id(rank == 0 ? H5Screate(H5S_SCALAR)
                                    : H5Screate_simple(int(rank), count.data(), nullptr));
    if (!file_space.valid() || !memory_space.valid()) return false;
    return rank == 0 || H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(),
                                            stride.empty() ? nullptr : stride.data(), count.data(),
                                            nullptr) >= 0;
  }
};

/// Identity of a file, and the timestamps and size that identify its state.
struct FileState {
  struct stat facts = {};

  explicit FileState(const std::string& path) {
    if (::stat(path.c_str(), &facts) != 0) facts = {};
  }
  bool same_file(const FileState& other) const {
    return facts.st_dev == other.facts.st_dev && facts.st_ino == other.facts.st_ino;
  }
  bool same_state(const FileState& other) const {
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return facts.st_size == other.facts.st_size && same(facts.st_mtim, other.facts.st_mtim) &&
           same(facts.st_ctim, other.facts.st_ctim);
  }
};

class FileOverHdf5 final : public StoredFile {
 public:
  FileOverHdf5(std::string path, OtherFiles other_files)
      : path_(std::move(path)), other_files_(other_files) {}
  ~FileOverHdf5() override {
    const Hdf5Scope scope;
    close_plain();
    dataset_.reset();
    file_.reset();
    noted_.reset();
  }

  Status start(bool own_output) {
    TAILRACE_TAKE(bytes_, InputBytes::open(path_, own_output));
    const Hdf5Scope scope;
    noted_ = std::make_unique<PagedFile>(bytes_);
    TAILRACE_TAKE(file_, open_noted(*noted_, path_));
    return Status();
  }

  const InputBytes& bytes() const override { return *bytes_; }
  std::uint64_t file_bytes() const override { return bytes_->file_bytes(); }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) const override {
    return bytes_->read_at(address, bytes);
  }
  std::int64_t hdf5_id() const override { return file_.get(); }

  Result<DatasetList> list(CatalogDetail detail, bool skip_unreadable) override {
    const Hdf5Scope scope;
    Result<Hdf5Catalog> catalog =
        read_hdf5_catalog(file_.get(), detail, other_files_, skip_unreadable);
    // Metadata beyond the file's end are the fault of one object; a failing disk is not.
    if (catalog.ok() && noted_->failure.code() == Code::corrupt) noted_->failure = Status();
    if (!catalog.ok() || !noted_->failure.ok()) {
      return (noted_->failure.ok() ? catalog.status() : noted_->failure)
          .within("file \"" + path_ + "\"");
    }
    DatasetList list;
    list.unreadable = std::move(catalog->unreadable);
    list.datasets = std::move(catalog->datasets);
    list.netcdf4 = catalog->netcdf4;
    list.remarks = catalog->remarks;
    for (const Hdf5Node& node : catalog->nodes) {
      if (node.kind == Hdf5Node::Kind::duplicate) list.aliases.emplace_back(node.path, node.target);
      if (node.kind != Hdf5Node::Kind::soft_link || node.target.empty()) continue;
      const bool absolute = node.target[0] == '/';
      list.aliases.emplace_back(
          node.path, absolute ? node.target : parent_path(node.path) + "/" + node.target);
    }
    // A caller that does not request fields carries nothing over.
    if (detail != CatalogDetail::fields) return list;
    catalog_ = std::move(*catalog);
    for (const Hdf5Node& node : catalog_.nodes) {
      if (node.n_attributes == 0) bare_.insert(node.path);
    }
    return list;
  }

  std::vector<std::pair<std::string, std::string>> objects() const override {
    std::vector<std::pair<std::string, std::string>> objects;
    for (const Hdf5Node& node : catalog_.nodes) {
      switch (node.kind) {
        case Hdf5Node::Kind::group: objects.emplace_back(node.path, "group"); break;
        case Hdf5Node::Kind::dataset:
          if (!node.left_out) objects.emplace_back(node.path, "dataset");
          break;
        case Hdf5Node::Kind::named_type: objects.emplace_back(node.path, "named type"); break;
        case Hdf5Node::Kind::soft_link: objects.emplace_back(node.path, "soft link"); break;
        case Hdf5Node::Kind::external_link: objects.emplace_back(node.path, "external link"); break;
        case Hdf5Node::Kind::field:
        case Hdf5Node::Kind::duplicate:
        case Hdf5Node::Kind::unknown_link: break;
      }
    }
    return objects;
  }

  Result<std::shared_ptr<const BoxSeries>> boxes_of(const StoredDataset& dataset) override {
    std::shared_ptr<const BoxSeries> found;
    if (dataset.shape.size() != 1 || level_data_name(dataset.path).empty()) return found;
    const Hdf5Scope scope;
    if (!plain_file_.valid()) TAILRACE_TRY(open_plain());
    TAILRACE_TRY(local_part([&] {
      BoxSeries boxes = read_level_boxes(plain_file_.get(), dataset.path, dataset.shape[0]);
      if (!boxes.runs.empty()) found = std::make_shared<const BoxSeries>(std::move(boxes));
      return Status();
    }));
    return found;
  }

  Result<LevelCover> cover_of(const StoredDataset& dataset,
                              const std::shared_ptr<const BoxSeries>& boxes) override {
    LevelCover cover;
    const Hdf5Scope scope;
    if (!plain_file_.valid()) TAILRACE_TRY(open_plain());
    TAILRACE_TRY(local_part([&] {
      cover = read_level_cover(plain_file_.get(), dataset.path, boxes);
      return Status();
    }));
    return cover;
  }

  void take_as_fields(const std::set<std::string>& paths) override {
    for (Hdf5Node& node : catalog_.nodes) {
      if (node.kind == Hdf5Node::Kind::dataset && paths.contains(node.path)) {
        node.kind = Hdf5Node::Kind::field;
      }
    }
  }

  void leave_out(const std::set<std::string>& paths) override {
    for (Hdf5Node& node : catalog_.nodes) {
      if (node.kind != Hdf5Node::Kind::dataset || !paths.contains(node.path)) continue;
      node.left_out = true;
      node.virtual_mappings = false;
    }
  }

  std::string text_attribute(const std::string& object_path, const std::string& name) override {
    if (bare_.contains(object_path)) return std::string();
    const Hdf5Scope scope;
    const Hdf5Id object(H5Oopen(hdf5_id(), object_path.c_str(), H5P_DEFAULT));
    return object.valid() ? hdf5_text_attribute(object.get(), name.c_str()) : std::string();
  }

  std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                              std::span<const char* const> names) override {
    if (bare_.contains(object_path)) return std::nullopt;
    const Hdf5Scope scope;
    const Hdf5Id object(H5Oopen(hdf5_id(), object_path.c_str(), H5P_DEFAULT));
    return object.valid() ? hdf5_number_attribute(object.get(), names) : std::nullopt;
  }

  Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                     AttributeFilter wanted) override {
    if (bare_.contains(object_path)) return std::vector<StatedAttribute>();
    const Hdf5Scope scope;
    const Hdf5Id object(H5Oopen(hdf5_id(), object_path.c_str(), H5P_DEFAULT));
    Result<std::vector<StatedAttribute>> values =
        object.valid() ? read_stated_attributes(object.get(), wanted)
                       : hdf5_failure(Code::corrupt, "cannot be opened");
    if (values.ok()) return values;
    return values.status().within(path_ + ": object \"" + object_path + "\"");
  }

  Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) override {
    const Hdf5Scope scope;
    if (!plain_file_.valid()) TAILRACE_TRY(open_plain());
    return carry_over_hdf5_objects(plain_file_.get(), catalog_, output);
  }

  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                         const CopiedObjects& copied) override {
    const Hdf5Scope scope;
    if (!plain_file_.valid()) TAILRACE_TRY(open_plain());
    return carry_over_hdf5_attributes(plain_file_.get(), catalog_, output, copied);
  }

  Result<std::vector<StoredChunk>> chunks(const StoredDataset& listed) override {
    const Hdf5Scope scope;
    TAILRACE_TRY(open_dataset(listed));
    std::vector<StoredChunk> found;
    const ChunkGrid grid = grid_of(listed);
    TAILRACE_TRY(note_chunks(*noted_, dataset_.get(), grid, name_of(listed), found));
    for (StoredChunk& chunk : found) mark_plain_edge(listed, grid, chunk);
    return found;
  }

  Result<std::optional<StoredChunk>> chunk(const StoredDataset& listed,
                                           std::uint64_t chunk_index) override {
    const Hdf5Scope scope;
    TAILRACE_TRY(open_dataset(listed));
    const ChunkGrid grid = grid_of(listed);
    std::optional<StoredChunk> found = note_chunk(*noted_, dataset_.get(), grid, chunk_index);
    if (found) mark_plain_edge(listed, grid, *found);
    return found;
  }

  Status read_slab(const StoredDataset& listed, const Slab& slab,
                   std::span<std::byte> values) override {
    if (!listed.by_value) {
      return Status(Code::unsupported,
                    name_of(listed) + ": elements of type " + listed.type_text +
                        " point to data elsewhere in the file and cannot be read as bytes" +
                        (listed.strings ? "; read them as texts" : ""));
    }
    const Hdf5Scope scope;
    TAILRACE_TRY(open_plain_dataset(listed));
    Selection selection;
    if (!selection.make(plain_dataset_.get(), slab)) {
      return hdf5_failure(Code::internal, reading(listed, slab));
    }
    const Hdf5Id stored_type(H5Dget_type(plain_dataset_.get()));
    const hid_t type = listed.dtype ? hdf5_native_type(*listed.dtype) : stored_type.get();
    if (H5Dread(plain_dataset_.get(), type, selection.memory_space.get(),
                selection.file_space.get(), H5P_DEFAULT, values.data()) < 0) {
      return plain_read_failure(plain_dataset_.get(), reading(listed, slab));
    }
    return Status();
  }

  Result<std::vector<std::string>> read_texts(const StoredDataset& listed,
                                              const Slab& slab) override {
    if (!listed.strings) {
      return Status(Code::unsupported,
                    name_of(listed) + ": elements are " + listed.type_text + ", not texts");
    }
    std::vector<std::string> texts;
    const std::uint64_t n = slab.n_elements();
    if (n == 0) return texts;
    const Hdf5Scope scope;
    TAILRACE_TRY(open_plain_dataset(listed));
    Selection selection;
    if (!selection.make(plain_dataset_.get(), slab)) {
      return hdf5_failure(Code::internal, reading(listed, slab));
    }
    const Hdf5Id type(H5Dget_type(plain_dataset_.get()));
    const bool variable = H5Tis_variable_str(type.get()) > 0;
    const std::size_t element_bytes = H5Tget_size(type.get());
    std::uint64_t n_bytes = 0;
    if (!multiply_checked(n, element_bytes, n_bytes)) return no_memory(listed, slab);
    Buffer values{std::size_t(n_bytes)};
    if (!values.allocated()) return no_memory(listed, slab);
    // If HDF5 fails midway, the pointers that it did not set must be null.
    std::memset(values.data(), 0, values.n_bytes());
    if (H5Dread(plain_dataset_.get(), type.get(), selection.memory_space.get(),
                selection.file_space.get(), H5P_DEFAULT, values.data()) < 0) {
      return plain_read_failure(plain_dataset_.get(), reading(listed, slab));
    }
    texts.reserve(std::size_t(n));
    const H5T_str_t padding = H5Tget_strpad(type.get());
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::byte* at = values.data() + i * element_bytes;
      if (!variable) {
        texts.push_back(fixed_text(reinterpret_cast<const char*>(at), element_bytes, padding));
        continue;
      }
      const char* text = nullptr;
      std::memcpy(&text, at, sizeof text);
      texts.emplace_back(text == nullptr ? "" : text);
    }
    if (variable) reclaim_variable_length(type.get(), selection.memory_space.get(), values.data());
    return texts;
  }

 private:
  static std::string name_of(const StoredDataset& listed) {
    return "dataset \"" + listed.path + "\"";
  }
  std::string reading(const StoredDataset& listed, const Slab& slab) const {
    return path_ + ": reading dataset \"" + listed.path + "\" " + slab_text(slab) + " by HDF5";
  }
  Status no_memory(const StoredDataset& listed, const Slab& slab) const {
    return Status(Code::out_of_memory, reading(listed, slab) + ": not enough memory for " +
                                           std::to_string(slab.n_elements()) + " texts");
  }
  static ChunkGrid grid_of(const StoredDataset& listed) {
    return {listed.shape, listed.storage.chunk_shape};
  }

  /// Set the filter mask of an unfiltered edge chunk. HDF5 does not report that it skips all
  /// filters.
  static void mark_plain_edge(const StoredDataset& listed, const ChunkGrid& grid,
                              StoredChunk& chunk) {
    if (!listed.plain_edges) return;
    if (grid.clipped_box(chunk.chunk_index).count != grid.chunk_shape) {
      chunk.filter_mask = kNoFilterApplied;
    }
  }

  Status open_dataset(const StoredDataset& listed) {
    if (dataset_.valid() && open_path_ == listed.path) return Status();
    dataset_.reset();
    dataset_ = Hdf5Id(H5Dopen2(file_.get(), listed.path.c_str(), H5P_DEFAULT));
    open_path_ = listed.path;
    if (dataset_.valid()) return Status();
    return noted_->failure.ok() ? hdf5_failure(Code::corrupt, name_of(listed) + " cannot be opened")
                                : noted_->failure;
  }

  Status open_plain_dataset(const StoredDataset& listed) {
    if (listed.foreign && other_files_ == OtherFiles::leave_out) {
      return Status(Code::unsupported, path_ + ": " + values_elsewhere_text(listed) +
                                           "; follow-external=on reads them");
    }
    if (plain_dataset_.valid() && plain_path_ == listed.path) return Status();
    if (!plain_file_.valid()) TAILRACE_TRY(open_plain());
    plain_dataset_.reset();
    plain_dataset_ = Hdf5Id(H5Dopen2(plain_file_.get(), listed.path.c_str(), H5P_DEFAULT));
    plain_path_ = listed.path;
    if (!plain_dataset_.valid()) {
      return hdf5_failure(Code::corrupt, name_of(listed) + " cannot be opened");
    }
    const Status sources = check_virtual_sources(plain_dataset_.get(), path_);
    if (!sources.ok()) plain_dataset_.reset();
    return sources.within(name_of(listed));
  }

  Status open_plain() {
    const FileState state(path_);
    // Objects that have an older state open will open the current one at their next request.
    const std::vector<FileOverHdf5*> others = with_plain_file();
    for (FileOverHdf5* other : others) {
      if (other->state_.same_file(state) && !other->state_.same_state(state)) other->close_plain();
    }
    // All objects with the same state share one handle. HDF5 ties the fill value of a text dataset
    // to the handle that first read it, and still uses that handle after it is closed.
    const std::vector<FileOverHdf5*>& open = with_plain_file();
    const auto same = std::ranges::find_if(
        open, [&](const FileOverHdf5* other) { return other->state_.same_file(state); });
    if (same != open.end() && H5Iinc_ref((*same)->plain_file_.get()) > 0) {
      plain_file_ = Hdf5Id((*same)->plain_file_.get());
    } else {
      TAILRACE_TAKE(plain_file_, open_plain_hdf5(path_, H5F_CLOSE_DEFAULT));
    }
    state_ = state;
    with_plain_file().push_back(this);
    return Status();
  }
  void close_plain() {
    plain_dataset_.reset();
    plain_file_.reset();
    std::erase(with_plain_file(), this);
  }
  /// Objects of this process with an open plain file. Guarded by the HDF5 lock.
  static std::vector<FileOverHdf5*>& with_plain_file() {
    // Never destroyed: files may outlive static objects.
    static auto* const files = new std::vector<FileOverHdf5*>;
    return *files;
  }

  std::string path_;
  OtherFiles other_files_;
  Hdf5Catalog catalog_;                   ///< Nodes; filled by list(Asked::fields).
  std::unordered_set<std::string> bare_;  ///< Objects known to have no attributes; filled with
                                          ///< catalog_.
  std::shared_ptr<InputBytes> bytes_;
  std::unique_ptr<PagedFile> noted_;
  Hdf5Id file_;  // Opened through the noting driver.
  Hdf5Id dataset_;
  std::string open_path_;
  Hdf5Id plain_file_;  // Opened with HDF5's own driver.
  Hdf5Id plain_dataset_;
  std::string plain_path_;
  FileState state_{""};  // State of plain_file_.
};

}  // namespace

Result<std::unique_ptr<StoredFile>> StoredFile::open(const std::string& path,
                                                     OtherFiles other_files, bool own_output) {
  auto file = std::make_unique<FileOverHdf5>(path, other_files);
  TAILRACE_TRY(file->start(own_output));
  return std::unique_ptr<StoredFile>(std::move(file));
}

// --- The list of datasets: names, and serialization for other ranks.

std::optional<std::size_t> DatasetList::find(const std::string& path) const {
  std::string wanted = plain_path(path);
  for (int step = 0; step < kNAliasStepsMax; ++step) {
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      if (datasets[i].path == wanted) return i;
    }
    bool replaced = false;
    for (const auto& [alias, target] : aliases) {
      const bool fits = wanted.compare(0, alias.size(), alias) == 0 &&
                        (wanted.size() == alias.size() || wanted[alias.size()] == '/');
      if (!fits) continue;
      wanted = plain_path(target + wanted.substr(alias.size()));
      replaced = true;
      break;
    }
    if (!replaced) return std::nullopt;
  }
  return std::nullopt;
}

Bytes pack_dataset_list(const DatasetList& list) {
  ByteWriter writer;
  writer.add(std::uint64_t{list.aliases.size()});
  for (const auto& [alias, target] : list.aliases) {
    writer.add_text(alias);
    writer.add_text(target);
  }
  const Bytes schema = pack_schema(list.datasets);
  std::copy(schema.begin(), schema.end(), writer.extend(schema.size()));
  return writer.take();
}

Result<DatasetList> unpack_dataset_list(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  DatasetList list;
  const auto n_aliases = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < n_aliases; ++i) {
    std::string alias = reader.take_text();
    list.aliases.emplace_back(std::move(alias), reader.take_text());
  }
  TAILRACE_TAKE(list.datasets, unpack_schema(reader.rest()));
  return list;
}

}  // namespace tailrace
