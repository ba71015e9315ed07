// The walk over a file's datasets, and the list as bytes.

#include "describe/dataset_list.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/byte_stream.hpp"
#include "describe/hdf5_walk.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {
namespace {

/// Soft links that lead to soft links: more than anybody has, and the end of a cycle.
constexpr int n_alias_steps_max = 40;

/// What numbers of this type are read as: the smallest dtype that holds them.
std::optional<DType> number_dtype(hid_t type) {
  const std::size_t n_bytes = H5Tget_size(type);
  if (n_bytes == 0 || n_bytes > 8) return std::nullopt;
  if (H5Tget_class(type) == H5T_FLOAT) return n_bytes <= 4 ? DType::f32 : DType::f64;
  if (H5Tget_class(type) != H5T_INTEGER) return std::nullopt;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  if (n_bytes == 1) return is_signed ? DType::i8 : DType::u8;
  if (n_bytes == 2) return is_signed ? DType::i16 : DType::u16;
  if (n_bytes <= 4) return is_signed ? DType::i32 : DType::u32;
  return is_signed ? DType::i64 : DType::u64;
}

enum class Likeness : std::uint8_t { same, swapped, converted };

/// How the file's numbers differ from this machine's.
Likeness likeness(hid_t type, DType dtype) {
  const hid_t native = hdf5_native_type(dtype);
  if (H5Tequal(type, native) > 0) return Likeness::same;
  const Hdf5Id swapped(H5Tcopy(native));
  constexpr bool little = std::endian::native == std::endian::little;
  H5Tset_order(swapped.get(), little ? H5T_ORDER_BE : H5T_ORDER_LE);
  return H5Tequal(type, swapped.get()) > 0 ? Likeness::swapped : Likeness::converted;
}

bool is_string(hid_t type) { return H5Tget_class(type) == H5T_STRING; }

class ListVisitor final : public Hdf5Visitor {
 public:
  explicit ListVisitor(hid_t file) : file_(file), describer_(DatasetDescriber::Foreign::describe) {}

  DatasetList take_list() { return std::move(list_); }

  Status again(const std::string& path, const std::string& first_path) override {
    list_.aliases.emplace_back(path, first_path);
    return Status();
  }

  Status other_link(const std::string& path, const LinkInfo& info) override {
    if (info.type != H5L_TYPE_SOFT) return Status();
    const Result<std::string> value = read_link_value(file_, path, info);
    if (!value.ok()) return Status();  // nobody asks for it by this name
    const std::string target = value->c_str();
    if (target.empty()) return Status();
    const std::string group = path.substr(0, path.rfind('/'));
    list_.aliases.emplace_back(path, target[0] == '/' ? target : group + "/" + target);
    return Status();
  }

  Status dataset(hid_t dataset, const std::string& path) override {
    ListedDataset listed;
    listed.file.path = path;
    const Result<DatasetDescriber::Storage> storage = describer_.describe(dataset, listed.file);
    if (!storage.ok()) return storage.status();
    listed.plain_edges = storage->plain_edges;
    const Hdf5Id type(H5Dget_type(dataset));
    const Hdf5Id list(H5Dget_create_plist(dataset));
    if (!type.valid() || !list.valid()) return failed(path, "described");
    TAILRACE_TRY(describe_space(dataset, listed));
    listed.strings = is_string(type.get());
    listed.dtype = number_dtype(type.get());
    Likeness like = Likeness::same;
    if (listed.dtype) {
      like = likeness(type.get(), *listed.dtype);
      describe_fill(list.get(), listed);
    }
    listed.swapped = like == Likeness::swapped;
    listed.by_hdf5 = storage->foreign || !listed.file.by_value || like == Likeness::converted ||
                     listed.file.storage.kind == StoredForm::Kind::compact;
    if (listed.file.storage.kind == StoredForm::Kind::contiguous && !listed.by_hdf5) {
      TAILRACE_TRY(describe_contiguous(dataset, listed));
    }
    list_.datasets.push_back(std::move(listed));
    return Status();
  }

 private:
  static Status failed(const std::string& path, const char* what) {
    return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be " + what);
  }

  static Status describe_space(hid_t dataset, ListedDataset& listed) {
    const Hdf5Id space(H5Dget_space(dataset));
    if (!space.valid()) return failed(listed.file.path, "described");
    const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
    if (kind == H5S_NULL) listed.file.shape = {0};
    listed.max_shape = listed.file.shape;
    if (kind != H5S_SIMPLE) return Status();
    std::array<hsize_t, max_rank> limits = {};
    const int rank = H5Sget_simple_extent_dims(space.get(), nullptr, limits.data());
    if (rank < 0) return failed(listed.file.path, "described");
    for (std::size_t d = 0; d < std::size_t(rank); ++d) {
      listed.max_shape[d] = limits[d] == H5S_UNLIMITED ? UINT64_MAX : limits[d];
    }
    return Status();
  }

  static void describe_fill(hid_t list, ListedDataset& listed) {
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    double value = 0;
    if (H5Pfill_value_defined(list, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED ||
        H5Pget_fill_value(list, H5T_NATIVE_DOUBLE, &value) < 0) {
      return;
    }
    listed.fill_value = value;
  }

  static Status describe_contiguous(hid_t dataset, ListedDataset& listed) {
    // Asked first: of a file with a user block HDF5 gives an address even where none is.
    const std::uint64_t stored_bytes = H5Dget_storage_size(dataset);
    if (stored_bytes == 0) return Status();
    const haddr_t address = H5Dget_offset(dataset);
    if (address == HADDR_UNDEF) return Status();
    const std::uint64_t n_bytes = n_elements(listed.file.shape) * listed.file.element_bytes;
    if (n_bytes > stored_bytes) {
      return Status(Code::corrupt,
                    "dataset \"" + listed.file.path + "\": " + std::to_string(stored_bytes) +
                        " bytes are stored, its extents need " + std::to_string(n_bytes));
    }
    listed.contiguous = {address, n_bytes};
    return Status();
  }

  hid_t file_;
  DatasetDescriber describer_;
  DatasetList list_;
};

/// "/a//b/./c" as "/a/b/c"; ".." is a name like any other in HDF5.
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

}  // namespace

std::optional<std::size_t> DatasetList::find(const std::string& path) const {
  std::string wanted = plain_path(path);
  for (int step = 0; step < n_alias_steps_max; ++step) {
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      if (datasets[i].file.path == wanted) return i;
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
  std::vector<ConcatDataset> files;
  files.reserve(list.datasets.size());
  for (const ListedDataset& listed : list.datasets) files.push_back(listed.file);
  const Bytes schema = pack_schema(files);
  writer.add(std::uint64_t{schema.size()});
  if (!schema.empty()) std::copy(schema.begin(), schema.end(), writer.extend(schema.size()));
  for (const ListedDataset& listed : list.datasets) {
    writer.add(listed.dtype ? static_cast<int>(*listed.dtype) : -1);
    writer.add(
        std::array<bool, 4>{listed.swapped, listed.by_hdf5, listed.plain_edges, listed.strings});
    writer.add(listed.max_shape);
    writer.add(listed.fill_value.has_value());
    writer.add(listed.fill_value.value_or(0));
    writer.add(listed.contiguous);
  }
  writer.add(std::uint64_t{list.aliases.size()});
  for (const auto& [alias, target] : list.aliases) {
    writer.add_text(alias);
    writer.add_text(target);
  }
  return writer.take();
}

Result<DatasetList> unpack_dataset_list(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto n_schema = static_cast<std::size_t>(reader.take<std::uint64_t>());
  Result<std::vector<ConcatDataset>> files = unpack_schema(reader.take_bytes(n_schema));
  if (!files.ok()) return files.status();
  DatasetList list;
  for (ConcatDataset& file : *files) {
    ListedDataset listed;
    listed.file = std::move(file);
    const int dtype = reader.take<int>();
    if (dtype >= 0) listed.dtype = static_cast<DType>(dtype);
    const auto flags = reader.take<std::array<bool, 4>>();
    listed.swapped = flags[0];
    listed.by_hdf5 = flags[1];
    listed.plain_edges = flags[2];
    listed.strings = flags[3];
    listed.max_shape = reader.take_shape();
    const bool filled = reader.take<bool>();
    const auto value = reader.take<double>();
    if (filled) listed.fill_value = value;
    listed.contiguous = reader.take<Extent>();
    list.datasets.push_back(std::move(listed));
  }
  const auto n_aliases = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < n_aliases; ++i) {
    std::string alias = reader.take_text();
    list.aliases.emplace_back(std::move(alias), reader.take_text());
  }
  return list;
}

Result<DatasetList> read_dataset_list(std::int64_t hdf5_id) {
  const Hdf5Scope scope;
  ListVisitor visitor{hid_t(hdf5_id)};
  TAILRACE_TRY(walk_hdf5(hid_t(hdf5_id), visitor));
  return visitor.take_list();
}

}  // namespace tailrace
