// Types as text and bytes, extents, storage and fill value of a dataset.

#include "hdf5/dataset_describe.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/utf8.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kNMembersShown = 8;

std::string order_text(hid_t type) {
  // Single bytes have no order.
  if (H5Tget_size(type) == 1) return std::string();
  return H5Tget_order(type) == H5T_ORDER_BE ? " big-endian" : std::string();
}

std::string number_text(hid_t type, const char* letter) {
  const std::size_t n_bits = 8 * H5Tget_size(type);
  const std::size_t precision = H5Tget_precision(type);
  std::string text = letter + std::to_string(n_bits) + order_text(type);
  if (precision != n_bits) text += " of " + counted(precision, "bit");
  return text;
}

std::string super_text(hid_t type) {
  const Hdf5Id super(H5Tget_super(type));
  return super.valid() ? hdf5_type_text(super.get()) : std::string("an unknown type");
}

std::string array_text(hid_t type) {
  std::array<hsize_t, kMaxRank> extents = {};
  const int rank = H5Tget_array_ndims(type);
  if (rank < 0 || rank > int(kMaxRank) || H5Tget_array_dims2(type, extents.data()) < 0) {
    return "array";
  }
  return "array " + shape_text(Shape(extents.begin(), extents.begin() + rank)) + " of " +
         super_text(type);
}

/// True if a compound is a complex number as h5py and others store it: two floating-point members
/// of one type, "r" and "i", or "real" and "imag".
bool is_complex(hid_t type) {
  if (H5Tget_nmembers(type) != 2) return false;
  const auto named = [&](unsigned member, std::string_view a, std::string_view b) {
    char* name = H5Tget_member_name(type, member);
    const bool found = name != nullptr && (name == a || name == b);
    H5free_memory(name);
    return found;
  };
  const Hdf5Id first(H5Tget_member_type(type, 0));
  const Hdf5Id second(H5Tget_member_type(type, 1));
  return named(0, "r", "real") && named(1, "i", "imag") && H5Tget_class(first.get()) == H5T_FLOAT &&
         H5Tequal(first.get(), second.get()) > 0;
}

std::string compound_text(hid_t type) {
  if (is_complex(type)) {
    return "complex of " + hdf5_type_text(Hdf5Id(H5Tget_member_type(type, 0)).get());
  }
  const int n_members = std::max(H5Tget_nmembers(type), 0);
  std::string text =
      "compound of " + counted(static_cast<std::uint64_t>(n_members), "member") + " (";
  for (int i = 0; i < n_members; ++i) {
    if (std::size_t(i) == kNMembersShown) {
      text += ", ...";
      break;
    }
    char* name = H5Tget_member_name(type, unsigned(i));
    const Hdf5Id member(H5Tget_member_type(type, unsigned(i)));
    text += i > 0 ? ", " : "";
    text += name != nullptr ? name : "?";
    text += " " + (member.valid() ? hdf5_type_text(member.get()) : std::string("?"));
    H5free_memory(name);
  }
  return text + ")";
}

Status failed(const StoredDataset& described, const char* what) {
  return hdf5_failure(Code::corrupt,
                      "dataset \"" + described.path + "\": its " + what + " cannot be read");
}

/// The smallest dtype that holds all numbers of this type.
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

/// True if the bytes of a number of this type equal those of the dtype, in either byte order.
bool is_plain_number(hid_t type, DType dtype) {
  if (dtype == DType::f32) {
    return H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0;
  }
  if (dtype == DType::f64) {
    return H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
  }
  // Integers with padding bits (n-bit types) need conversion.
  const H5T_order_t order = H5Tget_order(type);
  const std::size_t n_bytes = H5Tget_size(type);
  return (order == H5T_ORDER_LE || order == H5T_ORDER_BE) && n_bytes == dtype_bytes(dtype) &&
         H5Tget_precision(type) == 8 * n_bytes;
}

/// Find the address of the data, if they have been written.
Status describe_contiguous(hid_t dataset, StoredDataset& described) {
  std::uint64_t n_bytes = n_elements(described.shape) * described.element_bytes;
  // Check the size first: in a file with a user block, HDF5 returns an address even without data.
  const std::uint64_t stored_bytes = n_bytes > 0 ? H5Dget_storage_size(dataset) : 0;
  const haddr_t address = stored_bytes > 0 ? H5Dget_offset(dataset) : haddr_t{HADDR_UNDEF};
  if (address == HADDR_UNDEF) return Status();
  // Elements that refer to other data are shorter in files with short addresses.
  if (n_bytes > stored_bytes && described.by_value) {
    return Status(Code::corrupt,
                  "dataset \"" + described.path + "\": " + std::to_string(stored_bytes) +
                      " bytes are stored, but its extents need " + std::to_string(n_bytes));
  }
  described.contiguous = {address, n_bytes};
  return Status();
}

/// Check that a dense chunk array fits into the file. Chunks without an index lie in one row,
/// others in arrays. In a file too short for them, HDF5 would count chunks up to the stated
/// extents.
Status check_places_of_chunks(hid_t dataset, const StoredDataset& described,
                              std::uint64_t chunk_bytes) {
  // Limit for a truncated file, whose end is unknown.
  constexpr std::uint64_t n_chunks_max = 1U << 28;
  constexpr std::uint64_t n_places_max = 1U << 24;  // HDF5 visits this many in a second or two.
  constexpr std::uint64_t entry_bytes_min = 8;
  H5D_chunk_index_t index = H5D_CHUNK_IDX_BTREE;
  if (H5Dget_chunk_index_type(dataset, &index) < 0) return Status();
  const Hdf5Id file(H5Iget_file_id(dataset));
  hsize_t file_bytes = 0;
  H5Fget_filesize(file.get(), &file_bytes);
  const std::uint64_t n_chunks =
      ChunkGrid{described.shape, described.storage.chunk_shape}.n_chunks();
  if (index == H5D_CHUNK_IDX_FARRAY || index == H5D_CHUNK_IDX_EARRAY) {
    if (n_chunks <= std::max<std::uint64_t>(n_places_max, file_bytes / entry_bytes_min) ||
        chunk_index_bytes(dataset) == 0) {
      return Status();
    }
    return Status(
        Code::unsupported,
        "dataset \"" + described.path + "\": a chunk index of " + std::to_string(n_chunks) +
            " entries in a file of " + std::to_string(file_bytes) +
            " bytes is nearly empty, and HDF5 would visit every entry; exclude this dataset");
  }
  if (index != H5D_CHUNK_IDX_NONE) return Status();
  if (n_chunks <= std::min<std::uint64_t>(file_bytes / chunk_bytes, n_chunks_max)) return Status();
  return Status(Code::corrupt, "dataset \"" + described.path + "\": " + std::to_string(n_chunks) +
                                   " chunks of " + std::to_string(chunk_bytes) +
                                   " bytes each do not fit the file of " +
                                   std::to_string(file_bytes) + " bytes");
}

Status describe_chunks(hid_t dataset, hid_t list, StoredDataset& described) {
  std::array<hsize_t, kMaxRank> extents = {};
  const int rank = H5Pget_chunk(list, int(extents.size()), extents.data());
  if (rank < 0 || std::size_t(rank) != described.shape.size()) {
    return failed(described, "chunk shape");
  }
  described.storage.chunk_shape.assign(extents.begin(), extents.begin() + rank);
  // HDF5 reads 32 bits of each extent without a check, which may yield 0, and multiplies in 32
  // bits. Its sizes for such chunks fit no buffer.
  const Shape& chunk = described.storage.chunk_shape;
  std::uint64_t chunk_bytes = 0;
  if (__builtin_mul_overflow(n_elements(chunk), described.element_bytes, &chunk_bytes) ||
      chunk_bytes == 0 || chunk_bytes > UINT32_MAX) {
    return Status(Code::corrupt, "dataset \"" + described.path + "\": chunks of " +
                                     shape_text(chunk) + " elements of " +
                                     std::to_string(described.element_bytes) +
                                     " bytes, expected 1 to 2^32 - 1 bytes");
  }
  TAILRACE_TRY(check_places_of_chunks(dataset, described, chunk_bytes));
  std::optional<std::vector<FilterSpec>> filters = stored_filters(list);
  if (!filters) return failed(described, "filter pipeline");
  described.storage.filters = std::move(*filters);
  unsigned options = 0;
  if (!described.storage.filters.empty() && H5Pget_chunk_opts(list, &options) < 0) {
    return failed(described, "chunk options");
  }
  described.plain_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  return Status();
}

Status describe_fill(hid_t list, hid_t type, StoredDataset& described) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(list, &defined) < 0) return failed(described, "fill value");
  if (defined != H5D_FILL_VALUE_USER_DEFINED) return Status();
  // The object header message that holds the value has less than 64 KiB.
  if (described.element_bytes > UINT16_MAX) return failed(described, "fill value");
  Bytes value(static_cast<std::size_t>(described.element_bytes));
  if (H5Pget_fill_value(list, type, value.data()) < 0) return failed(described, "fill value");
  described.fill_value = std::move(value);
  double number = 0;
  if (described.dtype && H5Pget_fill_value(list, H5T_NATIVE_DOUBLE, &number) >= 0) {
    described.fill_number = number;
  }
  return Status();
}

/// The name of the first external file.
std::string external_file(hid_t list) {
  std::array<char, 1024> name = {};
  off_t offset = 0;
  hsize_t n_bytes = 0;
  // HDF5 does not terminate a truncated name.
  if (H5Pget_external(list, 0, name.size() - 1, name.data(), &offset, &n_bytes) < 0) return "";
  return name.data();
}

using NameOfMapping = ssize_t (*)(hid_t list, std::size_t mapping, char* name, std::size_t n_bytes);

std::string name_in_mapping(NameOfMapping get, hid_t list, std::size_t mapping) {
  const ssize_t n_bytes = get(list, mapping, nullptr, 0);
  if (n_bytes <= 0) return "";
  std::string name(static_cast<std::size_t>(n_bytes) + 1, '\0');
  if (get(list, mapping, name.data(), name.size()) < 0) return "";
  name.resize(static_cast<std::size_t>(n_bytes));
  return name;
}

}  // namespace

std::string virtual_source(hid_t list, std::size_t mapping) {
  return name_in_mapping(&H5Pget_virtual_filename, list, mapping);
}

std::string virtual_source_dataset(hid_t list, std::size_t mapping) {
  return name_in_mapping(&H5Pget_virtual_dsetname, list, mapping);
}

bool any_type_within(hid_t type, bool (*is)(hid_t)) {
  if (is(type)) return true;
  switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_ARRAY: return any_type_within(Hdf5Id(H5Tget_super(type)).get(), is);
    case H5T_COMPOUND: {
      const int n_members = H5Tget_nmembers(type);
      for (int i = 0; i < n_members; ++i) {
        const Hdf5Id member(H5Tget_member_type(type, unsigned(i)));
        if (any_type_within(member.get(), is)) return true;
      }
      return false;
    }
    default: return false;
  }
}

bool has_variable_length(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_VLEN || (kind == H5T_STRING && H5Tis_variable_str(type) > 0);
}

bool hdf5_type_is_by_value(hid_t type, bool with_addresses) {
  const auto points = [](hid_t part) {
    const H5T_class_t kind = H5Tget_class(part);
    return kind == H5T_NO_CLASS || kind == H5T_REFERENCE || has_variable_length(part);
  };
  const auto points_beyond_objects = [](hid_t part) {
    const H5T_class_t kind = H5Tget_class(part);
    return kind == H5T_NO_CLASS || has_variable_length(part) ||
           (kind == H5T_REFERENCE && H5Tequal(part, H5T_STD_REF_OBJ) <= 0);
  };
  return with_addresses ? !any_type_within(type, points_beyond_objects)
                        : !any_type_within(type, points);
}

std::string hdf5_type_text(hid_t type) {
  const std::string bytes = counted(H5Tget_size(type), "byte");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return number_text(type, H5Tget_sign(type) == H5T_SGN_2 ? "i" : "u");
    case H5T_FLOAT: return number_text(type, "f");
    case H5T_STRING:
      if (H5Tis_variable_str(type) > 0) return "string of variable length";
      return "string of " + bytes;
    case H5T_BITFIELD: return "bitfield of " + bytes + order_text(type);
    case H5T_OPAQUE: return "opaque of " + bytes;
    case H5T_COMPOUND: return compound_text(type);
    case H5T_REFERENCE: return "reference";
    case H5T_ENUM:
      return "enum of " +
             counted(static_cast<std::uint64_t>(std::max(H5Tget_nmembers(type), 0)), "name") +
             " over " + super_text(type);
    case H5T_VLEN: return "sequence of " + super_text(type);
    case H5T_ARRAY: return array_text(type);
    default: return "type of " + bytes;
  }
}

Result<const DatasetDescriber::KnownType*> DatasetDescriber::known(hid_t dataset) {
  Hdf5Id type(H5Dget_type(dataset));
  if (!type.valid()) return hdf5_failure(Code::corrupt, "its type cannot be read");
  for (const KnownType& candidate : types_) {
    if (H5Tequal(candidate.id.get(), type.get()) > 0) return &candidate;
  }
  KnownType added;
  std::size_t n_bytes = 0;
  if (H5Tencode(type.get(), nullptr, &n_bytes) < 0) {
    return hdf5_failure(Code::corrupt, "its type cannot be encoded");
  }
  added.encoded.resize(n_bytes);
  if (H5Tencode(type.get(), added.encoded.data(), &n_bytes) < 0) {
    return hdf5_failure(Code::corrupt, "its type cannot be encoded");
  }
  added.text = hdf5_type_text(type.get());
  added.by_value = hdf5_type_is_by_value(type.get());
  added.strings = H5Tget_class(type.get()) == H5T_STRING;
  added.dtype = number_dtype(type.get());
  added.plain_number = added.dtype && is_plain_number(type.get(), *added.dtype);
  added.swapped = added.plain_number &&
                  H5Tget_order(type.get()) != H5Tget_order(hdf5_native_type(*added.dtype));
  added.id = std::move(type);
  types_.push_back(std::move(added));
  return &types_.back();
}

Status DatasetDescriber::describe_shape(hid_t dataset, StoredDataset& described) const {
  const Hdf5Id space(H5Dget_space(dataset));
  if (!space.valid()) return failed(described, "extents");
  std::array<hsize_t, kMaxRank> extents = {};
  std::array<hsize_t, kMaxRank> limits = {};
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  described.appended = kind == H5S_SIMPLE;
  // Readers of values see an empty dataset; a concatenation sees no rows to append.
  if (kind == H5S_NULL && foreign_ == Foreign::describe) {
    described.shape = described.max_shape = {0};
  }
  if (described.appended) {
    const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), limits.data());
    if (rank < 1) return failed(described, "extents");
    described.shape.assign(extents.begin(), extents.begin() + rank);
    described.extendable = limits[0] == H5S_UNLIMITED;
    // H5S_UNLIMITED has all bits set, like our value for unlimited.
    described.max_shape.assign(limits.begin(), limits.begin() + rank);
  }
  // Size in the file or in memory, whichever is larger.
  const std::uint64_t value_bytes = std::max(described.element_bytes, described.value_bytes());
  std::uint64_t n_bytes = 0;
  if (described.row_bytes() == UINT64_MAX || n_elements(described.shape) == UINT64_MAX ||
      __builtin_mul_overflow(n_elements(described.shape), value_bytes, &n_bytes)) {
    return Status(Code::corrupt, "dataset \"" + described.path + "\": extents " +
                                     shape_text(described.shape) +
                                     " have more elements or bytes than 64 bits can count");
  }
  return Status();
}

Status DatasetDescriber::describe(hid_t dataset, StoredDataset& described) {
  const Result<const KnownType*> found = known(dataset);
  if (!found.ok()) return found.status().within("dataset \"" + described.path + "\"");
  const KnownType& type = **found;
  described.type = type.encoded;
  described.type_text = type.text;
  described.by_value = type.by_value;
  described.strings = type.strings;
  described.dtype = type.dtype;
  described.plain_number = type.plain_number;
  described.swapped = type.swapped;
  described.element_bytes = H5Tget_size(type.id.get());
  if (described.element_bytes == 0) return failed(described, "type, of 0 bytes,");
  TAILRACE_TRY(describe_shape(dataset, described));

  const Hdf5Id list(H5Dget_create_plist(dataset));
  if (!list.valid()) return failed(described, "creation properties");
  switch (H5Pget_layout(list.get())) {
    case H5D_COMPACT: described.storage.kind = StoredForm::Kind::compact; break;
    case H5D_CONTIGUOUS:
      described.foreign = H5Pget_external_count(list.get()) != 0;
      if (described.foreign) described.foreign_file = external_file(list.get());
      if (described.foreign && foreign_ == Foreign::refuse) {
        return Status(Code::unsupported,
                      "dataset \"" + described.path +
                          "\": its data are in external files, expected in the file itself");
      }
      described.storage.kind = StoredForm::Kind::contiguous;
      if (!described.foreign) TAILRACE_TRY(describe_contiguous(dataset, described));
      break;
    case H5D_CHUNKED:
      described.storage.kind = StoredForm::Kind::chunked;
      TAILRACE_TRY(describe_chunks(dataset, list.get(), described));
      break;
    case H5D_VIRTUAL:
      described.foreign = true;
      described.foreign_file = virtual_source(list.get(), 0);
      if (foreign_ == Foreign::describe) break;
      return Status(Code::unsupported, "dataset \"" + described.path +
                                           "\" is virtual, expected its data in the file itself");
    default: return failed(described, "layout");
  }
  return described.by_value ? describe_fill(list.get(), type.id.get(), described) : Status();
}

std::string hdf5_text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return std::string();
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
    return std::string();
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.get(), type.get(), &text) < 0 || text == nullptr) return std::string();
    std::string copy(text);
    reclaim_variable_length(type.get(), space.get(), &text);
    return copy;
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return std::string();
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::optional<NamedNumber> hdf5_number_attribute(hid_t object, std::span<const char* const> names) {
  const auto there =
      std::ranges::find_if(names, [&](const char* name) { return H5Aexists(object, name) > 0; });
  if (there == names.end()) return std::nullopt;
  const Hdf5Id attribute(H5Aopen(object, *there, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) return std::nullopt;
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  NamedNumber number{*there, 0};
  if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &number.value) < 0) return std::nullopt;
  return number;
}

}  // namespace tailrace
