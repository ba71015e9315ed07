// Copies references, attributes and complete datasets between HDF5 files, in the required order.

#include "describe/hdf5_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/utf8.hpp"
#include "describe/element_writes.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

namespace {

bool all_zero(const void* bytes, std::size_t n_bytes) {
  const auto* const first = static_cast<const unsigned char*>(bytes);
  return std::all_of(first, first + n_bytes, [](unsigned char byte) { return byte == 0; });
}

}  // namespace

void Hdf5References::learn_paths() {
  learnt_ = true;
  for (const Hdf5Node& node : catalog_.nodes) {
    const bool is_object =
        node.kind == Hdf5Node::Kind::group || node.kind == Hdf5Node::Kind::field ||
        node.kind == Hdf5Node::Kind::dataset || node.kind == Hdf5Node::Kind::named_type;
    if (!is_object) continue;
    const Hdf5Id object(H5Oopen(input_, node.path.c_str(), H5P_DEFAULT));
    ObjectFacts facts;
    if (object.valid() && get_object_facts(object.get(), facts)) {
      paths_.emplace(facts.key, node.path);
    }
  }
}

std::optional<std::string> Hdf5References::path_of(hid_t input_object) {
  if (!learnt_) learn_paths();
  ObjectFacts facts;
  if (!get_object_facts(input_object, facts)) return std::nullopt;
  const auto found = paths_.find(facts.key);
  if (found == paths_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Hdf5References::path_of_reference(const void* reference) {
  if (all_zero(reference, sizeof(hobj_ref_t))) return std::nullopt;
  const Hdf5Id object(H5Rdereference2(input_, H5P_DEFAULT, H5R_OBJECT, reference));
  if (!object.valid()) return std::nullopt;
  return path_of(object.get());
}

bool Hdf5References::holds_references(hid_t type) {
  return H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

std::uint64_t Hdf5References::rewrite(hid_t type, void* values, std::uint64_t n_values) {
  if (!holds_references(type)) return 0;
  const std::size_t value_bytes = H5Tget_size(type);
  std::uint64_t n_unresolved = 0;
  auto* value = static_cast<std::byte*>(values);
  for (std::uint64_t i = 0; i < n_values; ++i, value += value_bytes) {
    n_unresolved += rewrite_members(type, value);
  }
  return n_unresolved;
}

std::uint64_t Hdf5References::rewrite_members(hid_t type, std::byte* value) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: return rewrite_one(type, value);
    case H5T_VLEN: {
      const Hdf5Id element(H5Tget_super(type));
      hvl_t list;
      std::memcpy(&list, value, sizeof(list));
      return list.p == nullptr ? 0 : rewrite(element.get(), list.p, list.len);
    }
    case H5T_ARRAY: {
      const Hdf5Id element(H5Tget_super(type));
      return rewrite(element.get(), value, H5Tget_size(type) / H5Tget_size(element.get()));
    }
    case H5T_COMPOUND: {
      std::uint64_t n_unresolved = 0;
      const int n_members = H5Tget_nmembers(type);
      for (unsigned i = 0; n_members > 0 && i < static_cast<unsigned>(n_members); ++i) {
        const Hdf5Id member(H5Tget_member_type(type, i));
        n_unresolved += rewrite(member.get(), value + H5Tget_member_offset(type, i), 1);
      }
      return n_unresolved;
    }
    default: return 0;
  }
}

std::uint64_t Hdf5References::rewrite_one(hid_t type, void* reference) {
  const std::size_t n_bytes = H5Tget_size(type);
  if (all_zero(reference, n_bytes)) return 0;
  const bool to_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
  const bool to_object = H5Tequal(type, H5T_STD_REF_OBJ) > 0;
  const H5R_type_t kind = to_region ? H5R_DATASET_REGION : H5R_OBJECT;
  bool done = false;
  if (to_region || to_object) {
    const Hdf5Id object(H5Rdereference2(input_, H5P_DEFAULT, kind, reference));
    const std::optional<std::string> path =
        object.valid() ? path_of(object.get()) : std::optional<std::string>();
    if (path && H5Oexists_by_name(output_, path->c_str(), H5P_DEFAULT) > 0) {
      const Hdf5Id region(to_region ? H5Rget_region(input_, kind, reference) : H5I_INVALID_HID);
      done = (!to_region || region.valid()) &&
             H5Rcreate(reference, output_, path->c_str(), kind, region.get()) >= 0;
    }
  }
  // The type is of a later HDF5, the reference dangles, or the output lacks the object.
  if (!done) std::memset(reference, 0, n_bytes);
  return done ? 0 : 1;
}

// --- Attributes and datasets across files.

namespace {

/// Size of the pieces in which values are read and written.
constexpr std::uint64_t kPieceBytes = 16U << 20;

/// Cut a shape into row-major runs of kPieceBytes. A larger value is a separate piece.
ChunkGrid cut_in_pieces(Shape shape, std::uint64_t value_bytes) {
  Shape piece(shape.size(), 1);
  std::uint64_t n_left = std::max<std::uint64_t>(kPieceBytes / value_bytes, 1);
  for (std::size_t d = shape.size(); d-- > 0 && n_left > 1; n_left /= piece[d]) {
    piece[d] = std::min(shape[d], n_left);
  }
  return {std::move(shape), std::move(piece)};
}

/// Limit for attributes: HDF5 stores at most 2^32 bytes in one.
constexpr std::uint64_t kAttributeBytesMax = std::uint64_t{1} << 32;

bool is_of_scales(const std::string& name) {
  return name == "DIMENSION_LIST" || name == "REFERENCE_LIST";
}

bool is_left_out(const std::string& name, const CopiedNotes* notes) {
  return is_of_scales(name) || !is_taken_over(name, notes);
}

/// Memory type with exactly the file type's layout, so that HDF5 converts nothing.
Hdf5Id memory_type(hid_t file_type) { return Hdf5Id(H5Tcopy(file_type)); }

/// Values in memory that may own variable-length parts.
class Values {
 public:
  Values(hid_t type, hid_t space, std::uint64_t n_bytes)
      : type_(type), space_(space), buffer_(n_bytes) {
    // If a read fails halfway, the unfilled part must be null when it is reclaimed.
    if (buffer_.allocated() && n_bytes > 0) std::memset(buffer_.data(), 0, n_bytes);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    if (buffer_.n_bytes() > 0 && holds_variable_length(type_)) {
      reclaim_variable_length(type_, space_, buffer_.data());
    }
  }
  bool allocated() const { return buffer_.allocated(); }
  void* data() { return buffer_.data(); }

 private:
  hid_t type_;
  hid_t space_;
  Buffer buffer_;
};

}  // namespace

void Hdf5Copier::report(const std::string& what) {
  const std::string reason = hdf5_error_text();
  lines_.push_back(what + (reason.empty() ? "" : ": " + reason));
}

void Hdf5Copier::copy_attributes(const std::string& path, const CopiedNotes* notes) {
  const Hdf5Id from(H5Oopen(input_, path.c_str(), H5P_DEFAULT));
  const Hdf5Id to(H5Oopen(output_, path.c_str(), H5P_DEFAULT));
  // A missing object has been reported when it could not be carried over.
  if (!from.valid() || !to.valid()) return;
  for (const std::string& name : attribute_names(from.get(), path)) {
    if (is_left_out(name, notes) || H5Aexists(to.get(), name.c_str()) > 0) continue;
    copy_attribute(from.get(), to.get(), path, name);
  }
}

bool Hdf5Copier::copy_plain_attributes(hid_t from, hid_t to, const std::string& path) {
  bool all = true;
  for (const std::string& name : attribute_names(from, path)) {
    bool leave = within_file() ? is_of_scales(name) : is_left_out(name, nullptr);
    if (!leave && !within_file()) {
      const Hdf5Id attribute(H5Aopen(from, name.c_str(), H5P_DEFAULT));
      const Hdf5Id type(H5Aget_type(attribute.get()));
      leave = Hdf5References::holds_references(type.get());
    }
    if (!leave) copy_attribute(from, to, path, name);
    all = all && !leave;
  }
  return !all;
}

void Hdf5Copier::copy_comment(const std::string& path) {
  const Hdf5Id from(H5Oopen(input_, path.c_str(), H5P_DEFAULT));
  const std::string comment = from.valid() ? object_comment(from.get()) : std::string();
  if (comment.empty()) return;
  if (H5Oset_comment_by_name(output_, path.c_str(), comment.c_str(), H5P_DEFAULT) < 0) {
    report("comment of \"" + path + "\" cannot be written");
  }
}

std::vector<std::string> Hdf5Copier::attribute_names(hid_t object, const std::string& path) {
  Result<std::vector<std::string>> names = tailrace::attribute_names(object, path);
  if (names.ok()) return std::move(*names);
  report("attributes of \"" + path + "\" cannot be listed");
  return {};
}

void Hdf5Copier::copy_attribute(hid_t from, hid_t to, const std::string& path,
                                const std::string& name) {
  const std::string what = "attribute \"" + name + "\" of \"" + path + "\"";
  const Hdf5Id attribute(H5Aopen(from, name.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const Hdf5Id creation(H5Aget_create_plist(attribute.get()));
  if (!type.valid() || !space.valid()) return report(what + " cannot be read");
  if (short_addresses_ && Hdf5References::holds_references(type.get())) {
    lines_.push_back(
        what + ": references cannot be copied from a file with addresses of less than 8 bytes");
    return;
  }
  const Hdf5Id in_memory = memory_type(type.get());
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  if ((n_values > 1 && arrays_hold_variable_length(type.get())) ||
      !check_lists(type.get(), what).ok()) {
    lines_.push_back(what + ": not copied, HDF5 cannot write several arrays of texts or lists");
    return;
  }
  std::uint64_t n_bytes = 0;
  if (n_values < 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(n_values), H5Tget_size(in_memory.get()),
                             &n_bytes) ||
      n_bytes > kAttributeBytesMax) {
    lines_.push_back(what + " is too large to copy");
    return;
  }
  Values values(in_memory.get(), space.get(), n_bytes);
  if (!values.allocated()) {
    lines_.push_back(what + ": not enough memory for its " + std::to_string(n_bytes) + " bytes");
    return;
  }
  const bool has_values = H5Sget_simple_extent_type(space.get()) != H5S_NULL && n_values > 0;
  if (has_values && H5Aread(attribute.get(), in_memory.get(), values.data()) < 0) {
    return report(what + " cannot be read");
  }
  const std::uint64_t n_unresolved = has_values && !within_file()
                                         ? references_.rewrite(in_memory.get(), values.data(),
                                                               static_cast<std::uint64_t>(n_values))
                                         : 0;
  if (n_unresolved > 0) {
    lines_.push_back(what + ": " + counted(n_unresolved, "reference") +
                     " without a target in the output became null");
  }
  const Hdf5Id out_type = type_for_output(type.get());
  const Hdf5Id extents = detached_space(space.get());
  const Hdf5Id made(
      H5Acreate2(to, name.c_str(), out_type.get(), extents.get(), creation.get(), H5P_DEFAULT));
  if (!made.valid()) return report(what + " cannot be created");
  if (has_values && H5Awrite(made.get(), in_memory.get(), values.data()) < 0) {
    report(what + " cannot be written");
  }
}

Hdf5Id Hdf5Copier::type_for_output(hid_t type) {
  if (within_file()) {
    H5Iinc_ref(type);
    return Hdf5Id(type);
  }
  // A named type is shared by its users: use the output's copy.
  if (H5Tcommitted(type) > 0) {
    const std::optional<std::string> path = references_.path_of(type);
    if (path && H5Lexists(output_, path->c_str(), H5P_DEFAULT) > 0) {
      Hdf5Id named(H5Topen2(output_, path->c_str(), H5P_DEFAULT));
      if (named.valid()) return named;
    }
  }
  return headers_alike_ ? memory_type(type) : detached_type(type);
}

namespace {

/// Set the layout again. A layout read by HDF5 carries the file's kind of chunk index and bytes per
/// value, where addresses may be shorter than the output's.
void renew_layout(hid_t creation) {
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL) return;
  H5D_alloc_time_t allocation = H5D_ALLOC_TIME_DEFAULT;
  H5Pget_alloc_time(creation, &allocation);
  if (layout == H5D_CHUNKED) {
    std::array<hsize_t, kMaxRank> chunk = {};
    unsigned options = 0;
    const int rank = H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    H5Pget_chunk_opts(creation, &options);
    H5Pset_chunk(creation, rank, chunk.data());
    // Setting 0 would select the layout version that stores options.
    if (options != 0) H5Pset_chunk_opts(creation, options);
  } else {
    H5Pset_layout(creation, layout);
  }
  H5Pset_alloc_time(creation, allocation);
}

std::string name_of_hdf5_file(hid_t file) {
  const ssize_t n = H5Fget_name(file, nullptr, 0);
  std::string name(n < 0 ? 1 : static_cast<std::size_t>(n) + 1, '\0');
  H5Fget_name(file, name.data(), name.size());
  return name.c_str();
}

/// Stored chunks of a dataset with missing chunks. Nothing: no chunk is missing, or it is not
/// chunked. HDF5 1.10's query is wrong if an unlimited dimension is not the first.
struct ChunksThere {
  ChunkGrid grid;
  std::set<std::uint64_t> numbers;
};
Result<std::optional<ChunksThere>> chunks_with_holes(hid_t dataset, const Shape& shape,
                                                     const std::string& path) {
  std::optional<ChunksThere> found;
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return found;
  std::array<hsize_t, kMaxRank> chunk = {};
  const int rank = H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  if (rank < 0 || static_cast<std::size_t>(rank) != shape.size()) return found;
  const ChunkGrid grid{shape, Shape(chunk.begin(), chunk.begin() + rank)};
#if H5_VERSION_GE(1, 10, 5)
  const Hdf5Id space(H5Dget_space(dataset));
  hsize_t n_there = 0;
  if (H5Dget_num_chunks(dataset, space.get(), &n_there) >= 0 && n_there >= grid.n_chunks()) {
    return found;
  }
#endif
  const Hdf5Id file(H5Iget_file_id(dataset));
  TAILRACE_TAKE(const std::vector<StoredChunk> chunks,
                read_chunk_index(name_of_hdf5_file(file.get()), path));
  if (chunks.size() >= grid.n_chunks()) return found;
  found.emplace(ChunksThere{grid, {}});
  for (const StoredChunk& each : chunks) found->numbers.insert(each.chunk_index);
  return found;
}

}  // namespace

namespace {

/// True if a copy of the dataset's header has only forms that HDF5 1.8 knows. False for files with
/// a newer superblock, whose objects may have forms that no HDF5 call reports.
bool has_old_forms(hid_t file, hid_t dataset, hid_t creation) {
  constexpr unsigned last_old_superblock = 2;
  H5F_info2_t info{};
  if (H5Fget_info2(file, &info) < 0 || info.super.version > last_old_superblock ||
      !has_usual_attribute_numbers(creation)) {
    return false;
  }
  if (H5Pget_layout(creation) != H5D_CHUNKED) return true;
  const Result<bool> old = has_old_chunk_index(dataset);
  return old.ok() && *old;
}

}  // namespace

/// Replace forms that a creation property list carries from the input's file: the number of
/// attributes in a header, which is stored unless it is HDF5's default, and the kind of chunk
/// index.
void Hdf5Copier::adapt(hid_t creation, const std::string& path) {
  if (!old_forms_) return;
  if (!has_default_attribute_form(creation)) {
    lines_.push_back("limits for attributes in a header are not kept: " + path);
  }
  H5Pset_attr_phase_change(creation, kDefaultCompactMax, kDefaultDenseMin);
  if (H5Pget_layout(creation) != H5D_CHUNKED) return;
  unsigned options = 0;
  if (H5Pget_chunk_opts(creation, &options) >= 0 && options != 0) {
    lines_.push_back("partial edge chunks are filtered like all others: " + path);
    H5Pset_chunk_opts(creation, 0);
  }
  renew_layout(creation);
}

void Hdf5Copier::copy_named_type(const std::string& path) {
  const Hdf5Id from(H5Topen2(input_, path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation(H5Tget_create_plist(from.get()));
  adapt(creation.get(), path);
  const Hdf5Id type = detached_type(from.get());
  const Hdf5Id links = utf8_link_properties();
  if (H5Tcommit2(output_, path.c_str(), type.get(), links.get(), creation.get(), H5P_DEFAULT) < 0) {
    report("named type \"" + path + "\" cannot be copied");
  }
}

bool Hdf5Copier::copy_object(const std::string& path) {
  const Hdf5Id options(H5Pcreate(H5P_OBJECT_COPY));
  // Attributes are copied later, when all objects exist that they may refer to.
  H5Pset_copy_object(options.get(),
                     H5O_COPY_WITHOUT_ATTR_FLAG | H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG);
  const Hdf5Id links = utf8_link_properties();
  return H5Ocopy(input_, path.c_str(), output_, path.c_str(), options.get(), links.get()) >= 0;
}

namespace {

/// Reason why a dataset cannot be created. Call directly after creation has failed.
/// @error plugin_missing  names the filter. @error internal  `not_made` and HDF5's reason
Status create_failure(hid_t creation, const std::string& what, const std::string& not_made) {
  const Status failure = hdf5_failure(Code::internal, not_made);
  const Status available = check_filters_available(creation, what);
  return available.ok() ? failure : available;
}

}  // namespace

Status Hdf5Copier::copy_dataset(const std::string& path) {
  const std::string what = "dataset \"" + path + "\"";
  const std::string not_made = what + " cannot be created";
  const Hdf5Id from(H5Dopen2(input_, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(from.get()));
  const Hdf5Id creation(H5Dget_create_plist(from.get()));
  if (!type.valid() || !creation.valid()) {
    return hdf5_failure(Code::corrupt, what + " cannot be opened");
  }
  if (Hdf5References::holds_references(type.get())) {
    if (short_addresses_) {
      return Status(
          Code::unsupported,
          what + ": references cannot be copied from a file with addresses of less than 8 bytes");
    }
    return create_like(from.get(), path) ? Status()
                                         : create_failure(creation.get(), what, not_made);
  }
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  // Values in other files are read, so that the output does not depend on them.
  const bool stored_elsewhere = layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0;
  // H5Ocopy of 1.10.8 writes an unreadable fill value of variable length. It also preserves the
  // input's forms, and merges a named type with the first equal one.
  const bool copyable = !stored_elsewhere && !holds_variable_length(type.get()) &&
                        (!old_forms_ || has_old_forms(input_, from.get(), creation.get())) &&
                        headers_alike_ && H5Tcommitted(type.get()) <= 0;
  if (copyable && copy_object(path)) return Status();
  const std::string reason = copyable ? " (" + hdf5_error_text() + ")" : "";
  if (H5Lexists(output_, path.c_str(), H5P_DEFAULT) > 0) {
    H5Ldelete(output_, path.c_str(), H5P_DEFAULT);
  }
  if (!create_like(from.get(), path)) {
    return create_failure(creation.get(), what, not_made + reason);
  }
  // A dataset without written values stays so: a dimension without a variable has only a length.
  if (!stored_elsewhere && H5Dget_storage_size(from.get()) == 0) return Status();
  const Hdf5Id to(H5Dopen2(output_, path.c_str(), H5P_DEFAULT));
  return copy_values(from.get(), to.get(), path);
}

std::filesystem::path folder_of_hdf5_file(hid_t file) {
  return std::filesystem::absolute(name_of_hdf5_file(file)).parent_path();
}

namespace {

/// Translate `name`, relative to the folder `from`, to the folder `to`.
std::string name_from_other_folder(const std::string& name, const std::filesystem::path& from,
                                   const std::filesystem::path& to) {
  const bool kept = name == "." || std::filesystem::path(name).is_absolute() || from == to;
  return kept ? name : (from / name).lexically_normal().lexically_relative(to).string();
}

}  // namespace

Status Hdf5Copier::copy_virtual_dataset(const std::string& path) {
  const std::string what = "virtual dataset \"" + path + "\"";
  const Hdf5Id from(H5Dopen2(input_, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(from.get()));
  const Hdf5Id space = detached_space(Hdf5Id(H5Dget_space(from.get())).get());
  const Hdf5Id stored(H5Dget_create_plist(from.get()));
  const Hdf5Id creation(H5Pcopy(stored.get()));
  std::size_t n_mappings = 0;
  // Setting the layout again removes the mappings.
  if (!type.valid() || !space.valid() || H5Pset_layout(creation.get(), H5D_VIRTUAL) < 0 ||
      H5Pget_virtual_count(stored.get(), &n_mappings) < 0) {
    return hdf5_failure(Code::corrupt, what + " cannot be opened");
  }
  const std::filesystem::path input_folder = folder_of_hdf5_file(input_);
  const std::filesystem::path output_folder = folder_of_hdf5_file(output_);
  for (std::size_t i = 0; i < n_mappings; ++i) {
    const Hdf5Id part(H5Pget_virtual_vspace(stored.get(), i));
    Hdf5Id source(H5Pget_virtual_srcspace(stored.get(), i));
    // The file does not store the extents of a source that is mapped completely. Any space with the
    // same number of elements serves.
    if (H5Sget_select_type(source.get()) == H5S_SEL_ALL) {
      const hssize_t n = H5Sget_select_npoints(part.get());
      const hsize_t extent = n < 0 ? 0 : static_cast<hsize_t>(n);
      source = Hdf5Id(H5Screate_simple(1, &extent, nullptr));
    }
    const std::string file = virtual_source(stored.get(), i);
    const std::string dataset = virtual_source_dataset(stored.get(), i);
    if (!part.valid() || !source.valid() || file.empty() || dataset.empty() ||
        H5Pset_virtual(creation.get(), part.get(),
                       name_from_other_folder(file, input_folder, output_folder).c_str(),
                       dataset.c_str(), source.get()) < 0) {
      return hdf5_failure(Code::corrupt, what + ": mapping " + std::to_string(i) + " failed");
    }
  }
  adapt(creation.get(), path);
  const Hdf5Id out_type = type_for_output(type.get());
  const Hdf5Id links = utf8_link_properties();
  const Hdf5Id made(H5Dcreate2(output_, path.c_str(), out_type.get(), space.get(), links.get(),
                               creation.get(), H5P_DEFAULT));
  return made.valid() ? Status() : hdf5_failure(Code::internal, what + " cannot be created");
}

bool Hdf5Copier::create_like(hid_t from, const std::string& path) {
  const Hdf5Id type(H5Dget_type(from));
  const Hdf5Id space = detached_space(Hdf5Id(H5Dget_space(from)).get());
  Hdf5Id creation(H5Dget_create_plist(from));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0) {
    creation = Hdf5Id(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    // Contiguous storage cannot grow.
    const int rank = H5Sget_simple_extent_ndims(space.get());
    std::array<hsize_t, kMaxRank> extents = {};
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    if (rank > 0) H5Sset_extent_simple(space.get(), rank, extents.data(), extents.data());
  }
  renew_layout(creation.get());
  adapt(creation.get(), path);
  const Hdf5Id out_type = type_for_output(type.get());
  const Hdf5Id links = utf8_link_properties();
  const Hdf5Id made(H5Dcreate2(output_, path.c_str(), out_type.get(), space.get(), links.get(),
                               creation.get(), H5P_DEFAULT));
  return made.valid();
}

Status Hdf5Copier::copy_values(hid_t from, hid_t to, const std::string& path) {
  const std::string what = "dataset \"" + path + "\"";
  const Hdf5Id file_type(H5Dget_type(from));
  const Hdf5Id type = memory_type(file_type.get());
  const Hdf5Id space(H5Dget_space(from));
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  if (n_values < 0) return hdf5_failure(Code::corrupt, what + ": the shape cannot be read");
  if (n_values == 0 || H5Sget_simple_extent_type(space.get()) == H5S_NULL) return Status();
  TAILRACE_TRY(check_lists(type.get(), what));

  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::array<hsize_t, kMaxRank> extents = {};
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  const std::uint64_t value_bytes = std::max<std::uint64_t>(H5Tget_size(type.get()), 1);
  if (static_cast<std::uint64_t>(n_values) > kHollowBytesMin / value_bytes) {
    return Status(Code::unsupported, what + ": " + std::to_string(n_values) +
                                         " values exceed the limit of " +
                                         std::to_string(kHollowBytesMin / value_bytes));
  }
  const Shape shape(extents.begin(), extents.begin() + rank);
  // Chunks that were never written stay missing.
  TAILRACE_TAKE(const std::optional<ChunksThere> holes, chunks_with_holes(from, shape, path));
  const ChunkGrid pieces = holes ? holes->grid : cut_in_pieces(shape, value_bytes);
  std::uint64_t n_unresolved = 0;
  for (std::uint64_t i = 0; i < pieces.n_chunks(); ++i) {
    const Box box = pieces.clipped_box(i);
    if (holes && !holes->numbers.contains(i)) continue;
    const hsize_t piece_values = box.n_elements();
    const Hdf5Id piece(H5Screate_simple(1, &piece_values, nullptr));
    if (rank > 0) {
      const std::vector<hsize_t> start(box.start.begin(), box.start.end());
      const std::vector<hsize_t> count(box.count.begin(), box.count.end());
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
    }
    Values values(type.get(), piece.get(), piece_values * value_bytes);
    if (!values.allocated())
      return Status(Code::out_of_memory,
                    what + ": not enough memory for " + std::to_string(piece_values) + " values");
    if (H5Dread(from, type.get(), piece.get(), space.get(), H5P_DEFAULT, values.data()) < 0) {
      return plain_read_failure(from, "reading " + what);
    }
    n_unresolved += references_.rewrite(type.get(), values.data(), piece_values);
    if (write_elements(to, type.get(), space.get(), H5P_DEFAULT, values.data()) < 0) {
      return hdf5_failure(Code::io_error, "writing " + what);
    }
  }
  if (n_unresolved > 0) {
    lines_.push_back(what + ": " + counted(n_unresolved, "reference") +
                     " without a target in the output became null");
  }
  return Status();
}

Status Hdf5Copier::copy_reference_values(const std::string& path) {
  const Hdf5Id from(H5Dopen2(input_, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(from.get()));
  if (!Hdf5References::holds_references(type.get())) return Status();
  const Hdf5Id to(H5Dopen2(output_, path.c_str(), H5P_DEFAULT));
  return copy_values(from.get(), to.get(), path);
}

// --- Groups, foreign datasets, links, attributes and dimension scales from HDF5 to HDF5.
namespace {

using Lines = std::vector<std::string>;

/// Links of one group, in their order.
struct Members {
  std::vector<std::string> names;
  std::uint64_t name_bytes = 0;
};
using MembersOfGroups = std::map<std::string, Members>;

void report_failure(Lines& lines, const std::string& what) {
  const std::string reason = hdf5_error_text();
  lines.push_back(what + (reason.empty() ? "" : ": " + reason));
}

/// Creation properties like those of a group. HDF5's list for the group is not reused: it contains
/// the number and position of its links, which a new group must not inherit.
Hdf5Id creation_like(hid_t group, const Members& members) {
  const Hdf5Id given(H5Gget_create_plist(group));
  Hdf5Id creation(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_obj_track_times(creation.get(), false);
  unsigned link_order = 0;
  unsigned attribute_order = 0;
  H5Pget_link_creation_order(given.get(), &link_order);
  H5Pget_attr_creation_order(given.get(), &attribute_order);
  // netCDF-4 cannot open a file for writing if a group does not track order. Members are created in
  // the input's order, or sorted by name if the input tracks none.
  constexpr unsigned ordered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  H5Pset_link_creation_order(creation.get(), link_order | ordered);
  H5Pset_attr_creation_order(creation.get(), attribute_order | ordered);
  // Reserve room for all links in the group's header, as in files that we create
  // (hdf5_properties.cpp): a heap and a B-tree cost 4 KiB and more.
  const bool compact = members.names.size() <= kCompactLinksMax;
  const unsigned n_max =
      compact ? static_cast<unsigned>(members.names.size()) + kUnexpectedLinksMax : 0;
  H5Pset_link_phase_change(creation.get(), n_max, n_max / 2);
  if (compact && !members.names.empty()) {
    H5Pset_est_link_info(creation.get(), static_cast<unsigned>(members.names.size()),
                         static_cast<unsigned>(members.name_bytes / members.names.size() + 2));
  }
  return creation;
}

MembersOfGroups members_of_groups(const Hdf5Catalog& catalog) {
  MembersOfGroups members;
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.path == "/") continue;
    Members& group = members[parent_path(node.path)];
    group.names.push_back(last_component(node.path));
    group.name_bytes += group.names.back().size();
  }
  return members;
}

void copy_group(hid_t input, hid_t output, const std::string& path, const Members& members,
                Lines& lines) {
  if (link_exists(output, path)) return;
  const Hdf5Id from(H5Gopen2(input, path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation = creation_like(from.get(), members);
  const Hdf5Id links = utf8_link_properties();
  const Hdf5Id made(H5Gcreate2(output, path.c_str(), links.get(), creation.get(), H5P_DEFAULT));
  if (!made.valid()) report_failure(lines, "group \"" + path + "\" cannot be created");
}

void copy_link(hid_t output, const Hdf5Node& node, Lines& lines) {
  const Hdf5Id links = utf8_link_properties();
  const bool soft = node.kind == Hdf5Node::Kind::soft_link;
  const herr_t made =
      soft
          ? H5Lcreate_soft(node.target.c_str(), output, node.path.c_str(), links.get(), H5P_DEFAULT)
          : H5Lcreate_external(node.target_file.c_str(), node.target.c_str(), output,
                               node.path.c_str(), links.get(), H5P_DEFAULT);
  if (made < 0) {
    report_failure(lines, std::string(soft ? "soft" : "external") + " link \"" + node.path +
                              "\" cannot be created");
  }
}

void copy_hard_link(hid_t output, const Hdf5Node& node, Lines& lines) {
  if (!link_exists(output, node.target) || link_exists(output, node.path)) return;
  const Hdf5Id links = utf8_link_properties();
  if (H5Lcreate_hard(output, node.target.c_str(), output, node.path.c_str(), links.get(),
                     H5P_DEFAULT) < 0) {
    report_failure(lines, "hard link \"" + node.path + "\" cannot be created");
  }
}

/// Attach the scales that the input's DIMENSION_LIST names.
void attach_scales(hid_t input, hid_t output, const std::string& path, Hdf5References& references,
                   ScaleAttacher& attacher, Lines& lines) {
  const Hdf5Id from(H5Dopen2(input, path.c_str(), H5P_DEFAULT));
  if (!from.valid() || H5Aexists(from.get(), "DIMENSION_LIST") <= 0) return;
  const std::string what = "dimension scales of \"" + path + "\"";
  const Hdf5Id attribute(H5Aopen(from.get(), "DIMENSION_LIST", H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id element(H5Tget_class(type.get()) == H5T_VLEN ? H5Tget_super(type.get())
                                                            : H5I_INVALID_HID);
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const Hdf5Id shape(H5Dget_space(from.get()));
  const int rank = H5Sget_simple_extent_ndims(shape.get());
  if (!element.valid() || H5Tequal(element.get(), H5T_STD_REF_OBJ) <= 0 || rank < 0 ||
      H5Sget_simple_extent_npoints(space.get()) != rank) {
    lines.push_back(what + " are not valid dimension scales of HDF5: not copied");
    return;
  }
  const Hdf5Id in_memory(H5Tcopy(type.get()));
  std::vector<hvl_t> lists(static_cast<std::size_t>(rank), hvl_t{0, nullptr});
  if (H5Aread(attribute.get(), in_memory.get(), lists.data()) < 0) {
    return report_failure(lines, what + " cannot be read");
  }
  DimensionScales kept(lists.size());
  std::size_t n_unresolved = 0;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    const auto* const scales = static_cast<const hobj_ref_t*>(lists[d].p);
    for (std::size_t i = 0; scales != nullptr && i < lists[d].len; ++i) {
      const std::optional<std::string> scale = references.path_of_reference(&scales[i]);
      if (scale && link_exists(output, *scale)) kept[d].push_back(*scale);
      if (!scale && scales[i] != 0) ++n_unresolved;
    }
  }
  reclaim_variable_length(in_memory.get(), space.get(), lists.data());
  if (n_unresolved > 0) {
    lines.push_back(what + ": " + counted(n_unresolved, "reference") +
                    " cannot be resolved, left out");
  }
  if (!link_exists(output, path)) return;
  const Hdf5Id to(H5Dopen2(output, path.c_str(), H5P_DEFAULT));
  const Status attached = attacher.attach(to.get(), path, kept);
  if (!attached.ok()) lines.push_back(attached.message());
}

/// True if an external link's relative file name refers to another file, or to none, when resolved
/// from the output's folder.
bool leads_elsewhere(const Hdf5Node& link, const std::filesystem::path& input_folder,
                     const std::filesystem::path& output_folder) {
  std::error_code ignored;
  return std::filesystem::exists(input_folder / link.target_file, ignored) &&
         !std::filesystem::equivalent(input_folder / link.target_file,
                                      output_folder / link.target_file, ignored);
}

/// Report the forms of the file and its groups that differ in the output.
void report_forms(hid_t input, hid_t output, const Hdf5Catalog& catalog, Lines& lines) {
  std::string changed;
  const auto before = file_properties(input);
  const auto after = file_properties(output);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i]) continue;
    changed += (changed.empty() ? "" : "; ") + std::string(before[i].first) + " (" +
               before[i].second + ")";
  }
  if (!changed.empty()) lines.push_back("properties of the file are not kept: " + changed);
  std::vector<std::string> of_links;
  std::vector<std::string> of_attributes;
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind != Hdf5Node::Kind::group) continue;
    const Hdf5Id group(H5Gopen2(input, node.path.c_str(), H5P_DEFAULT));
    const Hdf5Id creation(H5Gget_create_plist(group.get()));
    const Hdf5Id copy(H5Gopen2(output, node.path.c_str(), H5P_DEFAULT));
    const Hdf5Id of_copy(H5Gget_create_plist(copy.get()));
    if (loses_link_form(creation.get(), of_copy.get())) of_links.push_back(node.path);
    if (!has_default_attribute_form(creation.get())) of_attributes.push_back(node.path);
  }
  constexpr std::size_t names_in_sentence = 50;
  if (!of_links.empty()) {
    lines.push_back("limits for links in a header are not kept: " +
                    first_names_text(of_links, names_in_sentence));
  }
  if (!of_attributes.empty()) {
    lines.push_back("limits for attributes in a header are not kept: " +
                    first_names_text(of_attributes, names_in_sentence));
  }
}

}  // namespace

Result<Lines> carry_over_hdf5_objects(hid_t input, const Hdf5Catalog& catalog, Hdf5File& output) {
  const hid_t out = output.hdf5_id();
  Lines lines;
  Hdf5References references(input, catalog, out);
  Hdf5Copier copier(input, out, references, lines, output.old_forms());
  const std::filesystem::path input_folder = folder_of_hdf5_file(input);
  const std::filesystem::path output_folder = folder_of_hdf5_file(out);
  // Groups and types first: datasets and attributes use them.
  MembersOfGroups members = members_of_groups(catalog);
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::group) {
      copy_group(input, out, node.path, members[node.path], lines);
    }
  }
  report_forms(input, out, catalog, lines);
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::named_type) copier.copy_named_type(node.path);
  }
  for (const Hdf5Node& node : catalog.nodes) {
    switch (node.kind) {
      case Hdf5Node::Kind::dataset:
        if (node.virtual_mappings) TAILRACE_TRY(copier.copy_virtual_dataset(node.path));
        if (!node.left_out) TAILRACE_TRY(copier.copy_dataset(node.path));
        break;
      case Hdf5Node::Kind::external_link:
        if (leads_elsewhere(node, input_folder, output_folder)) {
          lines.push_back("external link \"" + node.path + "\": its file \"" + node.target_file +
                          "\" is next to the input, but not next to the output");
        }
        [[fallthrough]];
      case Hdf5Node::Kind::soft_link: copy_link(out, node, lines); break;
      case Hdf5Node::Kind::unknown_link:
        lines.push_back("\"" + node.path +
                        "\" is a user-defined link or an unknown kind of object: not copied");
        break;
      case Hdf5Node::Kind::group:
      case Hdf5Node::Kind::named_type:
      case Hdf5Node::Kind::field:
      case Hdf5Node::Kind::duplicate: break;
    }
  }
  return lines;
}

Status set_instead(Hdf5File& output, const std::string& path, const CopiedNotes& notes) {
  for (const auto& [name, value] : notes.instead) {
    if (!value) continue;
    const auto* const text = std::get_if<std::string>(&*value);
    const AttributeValue instead =
        text != nullptr ? AttributeValue{*text}
                        : AttributeValue{std::vector<double>{std::get<double>(*value)}};
    TAILRACE_TRY(output.set_attribute(path, name, instead));
  }
  return Status();
}

Result<Lines> carry_over_hdf5_attributes(hid_t input, const Hdf5Catalog& catalog, Hdf5File& output,
                                         const CopiedObjects& copied) {
  const hid_t out = output.hdf5_id();
  Lines lines;
  Hdf5References references(input, catalog, out);
  Hdf5Copier copier(input, out, references, lines, output.old_forms());
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::duplicate) copy_hard_link(out, node, lines);
  }
  for (const Hdf5Node& node : catalog.nodes) {
    const bool is_dataset =
        node.kind == Hdf5Node::Kind::field || node.kind == Hdf5Node::Kind::dataset;
    const bool has_attributes =
        is_dataset || node.kind == Hdf5Node::Kind::group || node.kind == Hdf5Node::Kind::named_type;
    const auto found = has_attributes ? copied.find(node.path) : copied.end();
    const bool more = found != copied.end() && !found->second.instead.empty();
    if (has_attributes && node.has_comment) copier.copy_comment(node.path);
    if (has_attributes && (node.n_attributes > 0 || more) && link_exists(out, node.path)) {
      // Objects other than fields are copied as stored, with all notes.
      const CopiedNotes whole;
      const CopiedNotes* notes = found != copied.end() ? &found->second : nullptr;
      if (node.kind == Hdf5Node::Kind::dataset) notes = &whole;
      copier.copy_attributes(node.path, notes);
      if (notes != nullptr) TAILRACE_TRY(set_instead(output, node.path, *notes));
    }
    if (node.kind == Hdf5Node::Kind::dataset && !node.left_out) {
      TAILRACE_TRY(copier.copy_reference_values(node.path));
    }
  }
  // A scale is recognized by its CLASS attribute, which all scales have only now.
  ScaleAttacher attacher(out);
  for (const Hdf5Node& node : catalog.nodes) {
    const bool is_dataset =
        node.kind == Hdf5Node::Kind::field || node.kind == Hdf5Node::Kind::dataset;
    if (is_dataset && node.n_attributes > 0) {
      attach_scales(input, out, node.path, references, attacher, lines);
    }
  }
  if (const Status attached = attacher.finish(); !attached.ok()) {
    lines.push_back(attached.message());
  }
  for (const auto& [group, members] : members_of_groups(catalog)) {
    if (!link_exists(out, group)) continue;
    const Status ordered = order_links(out, group, members.names);
    if (!ordered.ok()) lines.push_back(ordered.message());
  }
  return lines;
}

}  // namespace tailrace
