// A netCDF classic file as an InputFile: parses its header, reads boxes of its variables, and
// carries the rest over into HDF5. Names in the comments are the specification's.

#include "describe/input_netcdf_classic.hpp"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "core/byte_order.hpp"
#include "core/checked_product.hpp"
#include "describe/field_attributes.hpp"
#include "describe/hdf5_copy.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

constexpr std::uint32_t kDimensionTag = 10;
constexpr std::uint32_t kVariableTag = 11;
constexpr std::uint32_t kAttributeTag = 12;

/// Size of the windows in which headers are read: one read suffices for nearly all real files.
constexpr std::uint64_t kWindowBytes = 256U << 10;

constexpr bool kSwap = std::endian::native == std::endian::little;

std::uint64_t padded(std::uint64_t n_bytes) { return (n_bytes + 3) & ~std::uint64_t{3}; }

/// Reads the header's tokens in sequence. The first failure is permanent.
class Cursor {
 public:
  explicit Cursor(const InputBytes& input) : input_(input) {}

  void set_version(int version) { version_ = version; }
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  std::uint64_t remaining() const { return input_.file_bytes() - at_; }

  void fail(Code code, const std::string& what) {
    if (ok()) {
      status_ = Status(
          code, input_.path() + ": netCDF header, byte " + std::to_string(at_) + ": " + what);
    }
  }

  /// Copy `n_bytes` and advance. Returns false and copies nothing once any call has failed.
  bool take(void* to, std::uint64_t n_bytes) {
    if (ok() && n_bytes > remaining()) {
      fail(Code::corrupt, "expected " + std::to_string(n_bytes) + " bytes, but only " +
                              std::to_string(remaining()) + " are left (truncated)");
    }
    if (!ok()) return false;
    auto* out = static_cast<std::byte*>(to);
    while (n_bytes > 0) {
      if (at_ < window_address_ || at_ >= window_address_ + window_.size()) {
        window_.resize(std::min(kWindowBytes, remaining()));
        window_address_ = at_;
        status_ = input_.read_at(at_, window_);
        if (!ok()) return false;
      }
      const std::uint64_t within = at_ - window_address_;
      const std::uint64_t n = std::min<std::uint64_t>(n_bytes, window_.size() - within);
      std::memcpy(out, window_.data() + within, n);
      out += n;
      at_ += n;
      n_bytes -= n;
    }
    return true;
  }

  std::uint32_t take_u32() {
    std::uint32_t value = 0;
    take(&value, sizeof(value));
    return kSwap ? __builtin_bswap32(value) : value;
  }
  std::uint64_t take_u64() {
    std::uint64_t value = 0;
    take(&value, sizeof(value));
    return kSwap ? __builtin_bswap64(value) : value;
  }
  /// Read a NON_NEG: 4 bytes; 8 bytes in CDF-5.
  std::uint64_t take_count(const char* of) {
    const std::uint64_t value = version_ == 5 ? take_u64() : take_u32();
    const std::uint64_t greatest = version_ == 5 ? INT64_MAX : INT32_MAX;
    if (value > greatest) fail(Code::corrupt, std::string("negative number of ") + of);
    return ok() ? value : 0;
  }
  /// Read an OFFSET: 4 bytes in CDF-1, else 8.
  std::uint64_t take_address() { return version_ == 1 ? take_u32() : take_u64(); }
  std::uint64_t take_numrecs(bool& streaming) {
    const std::uint64_t value = version_ == 5 ? take_u64() : take_u32();
    streaming = value == (version_ == 5 ? UINT64_MAX : UINT32_MAX);
    if (!streaming && value > (version_ == 5 ? INT64_MAX : INT32_MAX)) {
      fail(Code::corrupt, "negative number of records");
    }
    return value;
  }

  void skip_padding(std::uint64_t n_bytes) {
    char padding[3];
    take(padding, padded(n_bytes) - n_bytes);
  }

  /// Read `n_bytes` of text or values. The count is checked against the rest of the file before
  /// memory is allocated.
  template <class Container>
  void take_block(Container& block, std::uint64_t n_bytes) {
    if (ok() && n_bytes > remaining()) {
      fail(Code::corrupt, "expected " + std::to_string(n_bytes) + " bytes, but only " +
                              std::to_string(remaining()) + " are left (truncated)");
    }
    if (!ok()) return;
    block.resize(n_bytes);
    take(block.data(), n_bytes);
    skip_padding(n_bytes);
  }

  std::string take_name(const char* of) {
    std::string name;
    take_block(name, take_count("bytes in a name"));
    // HDF5 does not allow a slash or "." in a link's name, and netCDF forbids both.
    const bool bad = name.empty() || name == "." || name == ".." ||
                     name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
    if (bad) fail(Code::corrupt, std::string("invalid name of ") + of);
    return name;
  }

  /// Read the start of a list: its tag and the number of entries, 0 for ABSENT.
  std::uint64_t take_list(std::uint32_t tag, const char* of) {
    const std::uint32_t found = take_u32();
    const std::uint64_t n = take_count(of);
    if (ok() && found != tag && (found != 0 || n != 0)) {
      fail(Code::corrupt, std::string("expected a list of ") + of + " (tag " + std::to_string(tag) +
                              "), found tag " + std::to_string(found));
    }
    return ok() ? n : 0;
  }

  NetcdfType take_type() {
    const std::uint32_t number = take_u32();
    if (ok() && (number < 1 || number > (version_ == 5 ? 11U : 6U))) {
      fail(Code::corrupt,
           "type " + std::to_string(number) + " does not exist in CDF-" + std::to_string(version_));
    }
    return ok() ? static_cast<NetcdfType>(number) : NetcdfType::byte_;
  }

 private:
  const InputBytes& input_;
  int version_ = 1;
  std::uint64_t at_ = 0;
  Status status_;
  std::vector<std::byte> window_;
  std::uint64_t window_address_ = 0;
};

class Parser {
 public:
  explicit Parser(const InputBytes& input) : input_(input), cursor_(input) {}

  Result<NetcdfHeader> run() {
    char first_bytes[4] = {};
    cursor_.take(first_bytes, sizeof(first_bytes));
    header_.version = static_cast<unsigned char>(first_bytes[3]);
    if (cursor_.ok() && (std::memcmp(first_bytes, "CDF", 3) != 0 ||
                         (header_.version != 1 && header_.version != 2 && header_.version != 5))) {
      cursor_.fail(Code::corrupt, "not a netCDF classic file");
    }
    cursor_.set_version(header_.version);
    bool streaming = false;
    header_.n_records = cursor_.take_numrecs(streaming);
    take_dimensions();
    take_attributes(header_.attributes);
    take_variables();
    TAILRACE_TRY(cursor_.status());
    lay_out_records();
    if (streaming) count_records();
    TAILRACE_TRY(resolve_shapes());
    return std::move(header_);
  }

 private:
  void take_dimensions() {
    std::unordered_set<std::string> names;
    const std::uint64_t n = cursor_.take_list(kDimensionTag, "dimensions");
    bool has_record = false;
    for (std::uint64_t i = 0; i < n && cursor_.ok(); ++i) {
      NetcdfDimension dimension;
      dimension.name = cursor_.take_name("a dimension");
      dimension.length = cursor_.take_count("entries of a dimension");
      dimension.record = dimension.length == 0;
      if (!cursor_.ok()) return;
      if (!names.insert(dimension.name).second) {
        cursor_.fail(Code::corrupt, "dimension \"" + dimension.name + "\" is defined twice");
      }
      if (dimension.record && has_record) {
        cursor_.fail(Code::corrupt, "two record dimensions; at most one is allowed");
      }
      has_record |= dimension.record;
      header_.dimensions.push_back(std::move(dimension));
    }
  }

  void take_attributes(std::vector<NetcdfAttribute>& attributes) {
    const std::uint64_t n = cursor_.take_list(kAttributeTag, "attributes");
    for (std::uint64_t i = 0; i < n && cursor_.ok(); ++i) {
      NetcdfAttribute attribute;
      attribute.name = cursor_.take_name("an attribute");
      attribute.type = cursor_.take_type();
      attribute.n_values = cursor_.take_count("values of an attribute");
      const std::size_t value_bytes = netcdf_type_bytes(attribute.type);
      std::uint64_t n_bytes = 0;
      if (!multiply_checked(attribute.n_values, value_bytes, n_bytes)) n_bytes = UINT64_MAX;
      cursor_.take_block(attribute.values, n_bytes);
      if (!cursor_.ok()) return;
      if (kSwap) swap_elements(attribute.values, value_bytes);
      attributes.push_back(std::move(attribute));
    }
  }

  void take_variables() {
    std::unordered_set<std::string> names;
    const std::uint64_t n = cursor_.take_list(kVariableTag, "variables");
    for (std::uint64_t i = 0; i < n && cursor_.ok(); ++i) {
      NetcdfVariable variable;
      variable.name = cursor_.take_name("a variable");
      const std::uint64_t rank = cursor_.take_count("dimensions of a variable");
      if (cursor_.ok() && rank > kMaxRank) {
        cursor_.fail(Code::unsupported, "variable \"" + variable.name + "\" has " +
                                            std::to_string(rank) +
                                            " dimensions; at most 32 are supported");
      }
      for (std::uint64_t d = 0; d < rank && cursor_.ok(); ++d) take_dimension_id(variable);
      take_attributes(variable.attributes);
      variable.type = cursor_.take_type();
      // vsize is redundant, and capped or wrong in large files. It is computed instead.
      if (header_.version == 5)
        cursor_.take_u64();
      else
        cursor_.take_u32();
      variable.array.address = cursor_.take_address();
      if (!cursor_.ok()) return;
      if (!names.insert(variable.name).second) {
        cursor_.fail(Code::corrupt, "variable \"" + variable.name + "\" is defined twice");
      }
      header_.variables.push_back(std::move(variable));
    }
  }

  void take_dimension_id(NetcdfVariable& variable) {
    const std::uint64_t id = cursor_.take_count("a referenced dimension");
    if (!cursor_.ok()) return;
    if (id >= header_.dimensions.size()) {
      cursor_.fail(Code::corrupt, "variable \"" + variable.name + "\" refers to dimension " +
                                      std::to_string(id) + ", but the file has " +
                                      std::to_string(header_.dimensions.size()));
      return;
    }
    if (header_.dimensions[id].record) {
      if (!variable.dimensions.empty()) {
        cursor_.fail(Code::corrupt, "variable \"" + variable.name +
                                        "\": the record dimension must be its first dimension");
      }
      variable.record = true;
    }
    variable.dimensions.push_back(id);
  }

  /// Bytes of one record of a record variable, or of any other variable; UINT64_MAX on overflow.
  std::uint64_t entry_bytes(const NetcdfVariable& variable) const {
    std::uint64_t n_bytes = netcdf_type_bytes(variable.type);
    for (std::size_t d = variable.record ? 1 : 0; d < variable.dimensions.size(); ++d) {
      const std::uint64_t length = header_.dimensions[variable.dimensions[d]].length;
      if (!multiply_checked(n_bytes, length, n_bytes)) return UINT64_MAX;
    }
    return n_bytes;
  }

  /// Lay out the records. A record contains all record variables, each padded to 4 bytes. A single
  /// record variable is not padded (the specification's "special case").
  void lay_out_records() {
    std::uint64_t n_variables = 0;
    std::uint64_t only_bytes = 0;
    for (const NetcdfVariable& variable : header_.variables) {
      if (!variable.record) continue;
      ++n_variables;
      only_bytes = entry_bytes(variable);
      const std::uint64_t more = only_bytes > UINT64_MAX - 3 ? UINT64_MAX : padded(only_bytes);
      if (__builtin_add_overflow(header_.record_bytes, more, &header_.record_bytes)) {
        header_.record_bytes = UINT64_MAX;
      }
    }
    if (n_variables == 1) header_.record_bytes = only_bytes;
  }

  /// Count the complete records of a file written as a stream, whose header does not contain the
  /// number.
  void count_records() {
    std::uint64_t first = UINT64_MAX;
    for (const NetcdfVariable& variable : header_.variables) {
      if (variable.record) first = std::min(first, variable.array.address);
    }
    const bool any = first < input_.file_bytes() && header_.record_bytes > 0;
    header_.n_records = any ? (input_.file_bytes() - first) / header_.record_bytes : 0;
  }

  Status resolve_shapes() {
    for (NetcdfDimension& dimension : header_.dimensions) {
      if (dimension.record) dimension.length = header_.n_records;
    }
    for (NetcdfVariable& variable : header_.variables) {
      StridedArray& array = variable.array;
      array.element_bytes = netcdf_type_bytes(variable.type);
      array.swap_bytes = kSwap && array.element_bytes > 1;
      for (const std::size_t d : variable.dimensions) {
        array.shape.push_back(header_.dimensions[d].length);
      }
      TAILRACE_TRY(check_length(variable));
      array.outer_stride_bytes = variable.record ? header_.record_bytes : array.entry_bytes();
    }
    return Status();
  }

  /// Check that the last byte of a variable lies in the file; padding behind it may be missing.
  Status check_length(const NetcdfVariable& variable) const {
    std::uint64_t end = entry_bytes(variable);
    bool fits = end != UINT64_MAX;
    if (variable.record) {
      if (header_.n_records == 0) return Status();
      std::uint64_t before_last = 0;
      fits = fits && multiply_checked(header_.n_records - 1, header_.record_bytes, before_last) &&
             !__builtin_add_overflow(end, before_last, &end);
    }
    fits = fits && !__builtin_add_overflow(end, variable.array.address, &end);
    if (fits && end <= input_.file_bytes()) return Status();
    return Status(Code::corrupt,
                  input_.path() + ": variable \"" + variable.name + "\" ends at byte " +
                      (fits ? std::to_string(end) : "2^64 and more") + ", but the file holds " +
                      std::to_string(input_.file_bytes()) + " bytes (truncated)");
  }

  const InputBytes& input_;
  Cursor cursor_;
  NetcdfHeader header_;
};

}  // namespace

std::size_t netcdf_type_bytes(NetcdfType type) {
  const std::optional<DType> dtype = netcdf_dtype(type);
  return dtype ? dtype_bytes(*dtype) : 1;
}

std::optional<DType> netcdf_dtype(NetcdfType type) {
  switch (type) {
    case NetcdfType::byte_: return DType::i8;
    case NetcdfType::char_: return std::nullopt;
    case NetcdfType::short_: return DType::i16;
    case NetcdfType::int_: return DType::i32;
    case NetcdfType::float_: return DType::f32;
    case NetcdfType::double_: return DType::f64;
    case NetcdfType::ubyte: return DType::u8;
    case NetcdfType::ushort: return DType::u16;
    case NetcdfType::uint: return DType::u32;
    case NetcdfType::int64: return DType::i64;
    case NetcdfType::uint64: return DType::u64;
  }
  return std::nullopt;
}

const NetcdfAttribute* NetcdfVariable::attribute(const std::string& attribute_name) const {
  for (const NetcdfAttribute& candidate : attributes) {
    if (candidate.name == attribute_name) return &candidate;
  }
  return nullptr;
}

Result<NetcdfHeader> read_netcdf_header(const InputBytes& input) { return Parser(input).run(); }

// --- The rest of the model, mapped to HDF5; and the fields.

// --- netCDF's classic model in HDF5: dimensions as scales, char variables, attributes.
//
// The conventions are those of the netCDF-4 library. So netCDF-4, xarray and ncdump show the
// dimensions, variables, attributes and order of the input.
//
// A dimension is a scale dataset. If the dimension has a coordinate variable, that is its scale.
// Otherwise the scale is a dataset without values whose NAME marks it as such. _Netcdf4Dimid stores
// the order of dimensions. _Netcdf4Coordinates stores the dimensions of a scale that has several,
// since scales cannot have scales. Source: the netCDF-4 file format specification ("dimension
// scales", "dimension ordering").

namespace {

using Lines = std::vector<std::string>;

/// Size of the pieces in which char values are copied.
constexpr std::uint64_t kClassicPieceBytes = 4U << 20;
/// Chunk size of growing char variables; HDF5's default cache holds one such chunk.
constexpr std::uint64_t kChunkBytes = 1U << 20;

/// Attribute names that netCDF-4 and HDF5's dimension scales reserve.
constexpr std::array<const char*, 8> kReservedNames = {
    "CLASS",         "NAME",        "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates",
    "_Netcdf4Dimid", "_nc3_strict", "_NCProperties"};

/// Dataset creation properties that track the order of attributes, as netCDF-4 requires.
Hdf5Id ordered_creation() {
  Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return creation;
}

/// Create a dataset; the first dimension is unlimited if `grows`.
Hdf5Id create_dataset(hid_t output, const std::string& path, hid_t type, const Shape& shape,
                      bool grows) {
  const Hdf5Id creation = ordered_creation();
  std::vector<hsize_t> extents(shape.begin(), shape.end());
  std::vector<hsize_t> limits = extents;
  if (grows) {
    limits[0] = H5S_UNLIMITED;
    // Cut the slowest dimension first, then the next, until a chunk is small enough.
    std::vector<hsize_t> chunk = extents;
    chunk[0] = std::max<hsize_t>(chunk[0], 1);
    for (std::size_t d = 0; d < chunk.size(); ++d) {
      std::uint64_t rest_bytes = H5Tget_size(type);
      for (std::size_t e = d + 1; e < chunk.size(); ++e) rest_bytes *= chunk[e];
      chunk[d] =
          std::clamp<hsize_t>(kChunkBytes / std::max<std::uint64_t>(rest_bytes, 1), 1, chunk[d]);
    }
    H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  }
  const Hdf5Id space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(extents.size()),
                                                      extents.data(), limits.data()));
  const Hdf5Id links = utf8_link_properties();
  return Hdf5Id(H5Dcreate2(output, path.c_str(), type, space.get(), links.get(), creation.get(),
                           H5P_DEFAULT));
}

/// netCDF-4's type for char values: strings of length 1.
Hdf5Id char_type(std::size_t n_bytes) {
  Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), n_bytes);
  H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
  return type;
}

Status copy_char_variable(const InputBytes& input, const NetcdfVariable& variable,
                          const std::string& path, hid_t output) {
  const std::string what = "char variable \"" + variable.name + "\"";
  const Shape& shape = variable.array.shape;
  const Hdf5Id type = char_type(1);
  const Hdf5Id dataset = create_dataset(output, path, type.get(), shape, variable.record);
  if (!dataset.valid()) return hdf5_failure(Code::internal, what + " cannot be created");
  Box box = whole_box(shape);
  if (box.empty()) return Status();
  const std::uint64_t n_entries = shape.empty() ? 1 : shape[0];
  const std::uint64_t entry_bytes = box.n_elements() / n_entries;
  const std::uint64_t n_per_piece = std::max<std::uint64_t>(1, kClassicPieceBytes / entry_bytes);
  Buffer values(std::min(n_per_piece, n_entries) * entry_bytes);
  if (!values.allocated())
    return Status(Code::out_of_memory, what + ": not enough memory to copy it");
  const Hdf5Id space(H5Dget_space(dataset.get()));
  for (std::uint64_t done = 0; done < n_entries; done += n_per_piece) {
    if (!shape.empty()) {
      box.start[0] = done;
      box.count[0] = std::min(n_per_piece, n_entries - done);
      const std::vector<hsize_t> start(box.start.begin(), box.start.end());
      const std::vector<hsize_t> count(box.count.begin(), box.count.end());
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
    }
    const hsize_t n_bytes = box.n_elements();
    TAILRACE_TRY(
        read_strided_box(input, variable.array, box, values.bytes().first(n_bytes)).within(what));
    const Hdf5Id piece(H5Screate_simple(1, &n_bytes, nullptr));
    if (H5Dwrite(dataset.get(), type.get(), piece.get(), space.get(), H5P_DEFAULT, values.data()) <
        0) {
      return hdf5_failure(Code::io_error, what + " cannot be written");
    }
  }
  return Status();
}

void write_attribute(hid_t object, const std::string& owner, const NetcdfAttribute& attribute,
                     Lines& lines) {
  const std::string what = "attribute \"" + attribute.name + "\" of \"" + owner + "\"";
  if (netcdf4_keeps_name(attribute.name)) {
    lines.push_back(what + " has a name that is reserved in netCDF-4: not copied");
    return;
  }
  if (H5Aexists(object, attribute.name.c_str()) > 0) return;
  const bool text = attribute.type == NetcdfType::char_;
  const Hdf5Id text_type =
      text ? char_type(std::max<std::size_t>(1, attribute.values.size())) : Hdf5Id();
  const hid_t type = text ? text_type.get() : hdf5_native_type(*netcdf_dtype(attribute.type));
  const hsize_t n_values = attribute.n_values;
  // netCDF-4 writes texts as scalars, numbers as lists, and an empty attribute as a null dataspace.
  const Hdf5Id space(n_values == 0 ? H5Screate(H5S_NULL)
                     : text        ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(1, &n_values, nullptr));
  const Hdf5Id properties(H5Pcreate(H5P_ATTRIBUTE_CREATE));
  H5Pset_char_encoding(properties.get(), H5T_CSET_UTF8);
  const Hdf5Id made(
      H5Acreate2(object, attribute.name.c_str(), type, space.get(), properties.get(), H5P_DEFAULT));
  if (!made.valid() || (n_values > 0 && H5Awrite(made.get(), type, attribute.values.data()) < 0)) {
    lines.push_back(what + " cannot be written: " + hdf5_error_text());
  }
}

/// Notes for the copy of an object. A program may have copied the object's attributes from a file
/// that we wrote.
const CopiedNotes* notes_of(const std::string& path, const CopiedObjects& copied) {
  const auto found = copied.find(path);
  return found != copied.end() ? &found->second : nullptr;
}

/// True if the variable is the coordinate variable of its first dimension.
bool is_scale(const NetcdfHeader& header, const NetcdfVariable& variable) {
  return !variable.dimensions.empty() &&
         header.dimensions[variable.dimensions[0]].name == variable.name;
}

/// Create the scale of one dimension: its coordinate variable, or a dataset without values.
Status make_scale(const NetcdfHeader& header, std::size_t dimension_index, hid_t output) {
  const NetcdfDimension& dimension = header.dimensions[dimension_index];
  const std::string path = "/" + dimension.name;
  const auto found = std::ranges::find_if(header.variables, [&](const NetcdfVariable& variable) {
    return variable.name == dimension.name && is_scale(header, variable);
  });
  const bool has_variable = found != header.variables.end() && link_exists(output, path);
  Hdf5Id dataset;
  std::string name = dimension.name;
  if (has_variable) {
    dataset = Hdf5Id(H5Dopen2(output, path.c_str(), H5P_DEFAULT));
  } else {
    dataset = create_dataset(output, path, H5T_IEEE_F32BE, {dimension.length}, dimension.record);
    std::array<char, 96> text = {};
    std::snprintf(text.data(), text.size(),
                  "This is a netCDF dimension but not a netCDF variable.%10llu",
                  static_cast<unsigned long long>(dimension.length));
    name = text.data();
  }
  if (!dataset.valid() || H5DSset_scale(dataset.get(), name.c_str()) < 0) {
    return hdf5_failure(Code::internal, "dimension \"" + dimension.name + "\" cannot be created");
  }
  if (has_variable && found->dimensions.size() > 1) {
    const std::vector<int> ids(found->dimensions.begin(), found->dimensions.end());
    TAILRACE_TRY(write_own_numbers(dataset.get(), "_Netcdf4Coordinates", ids, false));
  }
  return write_own_numbers(dataset.get(), "_Netcdf4Dimid", {static_cast<int>(dimension_index)},
                           true);
}

}  // namespace

bool netcdf4_keeps_name(const std::string& attribute_name) {
  return std::any_of(kReservedNames.begin(), kReservedNames.end(),
                     [&](const char* name) { return attribute_name == name; });
}

std::string netcdf4_variable_path(const NetcdfHeader& header, const NetcdfVariable& variable) {
  const bool names_dimension = std::any_of(
      header.dimensions.begin(), header.dimensions.end(),
      [&](const NetcdfDimension& dimension) { return dimension.name == variable.name; });
  if (names_dimension && !is_scale(header, variable)) return "/_nc4_non_coord_" + variable.name;
  return "/" + variable.name;
}

Result<Lines> carry_over_netcdf_objects(const InputBytes& input, const NetcdfHeader& header,
                                        Hdf5File& output) {
  const Hdf5Scope scope;
  const hid_t out = output.hdf5_id();
  for (const NetcdfVariable& variable : header.variables) {
    if (variable.type != NetcdfType::char_) continue;
    TAILRACE_TRY(copy_char_variable(input, variable, netcdf4_variable_path(header, variable), out));
  }
  return Lines();
}

Result<Lines> carry_over_netcdf_attributes(const NetcdfHeader& header, Hdf5File& output,
                                           const CopiedObjects& copied) {
  const Hdf5Scope scope;
  const hid_t out = output.hdf5_id();
  Lines lines;
  for (std::size_t i = 0; i < header.dimensions.size(); ++i) {
    TAILRACE_TRY(make_scale(header, i, out));
  }
  const Hdf5Id root(H5Gopen2(out, "/", H5P_DEFAULT));
  for (const NetcdfAttribute& attribute : header.attributes) {
    if (is_taken_over(attribute.name, notes_of("/", copied))) {
      write_attribute(root.get(), "/", attribute, lines);
    }
  }
  std::vector<std::string> names;
  ScaleAttacher attacher(out);
  for (const NetcdfVariable& variable : header.variables) {
    const std::string path = netcdf4_variable_path(header, variable);
    if (!link_exists(out, path)) continue;
    names.push_back(path.substr(1));
    const Hdf5Id dataset(H5Dopen2(out, path.c_str(), H5P_DEFAULT));
    const CopiedNotes* const notes = notes_of(path, copied);
    for (const NetcdfAttribute& attribute : variable.attributes) {
      if (!is_taken_over(attribute.name, notes)) continue;
      write_attribute(dataset.get(), variable.name, attribute, lines);
    }
    if (notes != nullptr) TAILRACE_TRY(set_instead(output, path, *notes));
    if (is_scale(header, variable)) continue;
    DimensionScales scales;
    for (const std::size_t d : variable.dimensions) {
      scales.push_back({"/" + header.dimensions[d].name});
    }
    TAILRACE_TRY(attacher.attach(dataset.get(), path, scales));
  }
  TAILRACE_TRY(attacher.finish());
  TAILRACE_TRY(order_links(out, "/", names));
  return lines;
}

// --- Reads boxes of a netCDF classic file.

namespace {

template <class T>
T first_value(const NetcdfAttribute& attribute) {
  T value;
  std::memcpy(&value, attribute.values.data(), sizeof(T));
  return value;
}

/// Read the first value of a number attribute as a fill value of `dtype`.
std::optional<double> fill_attribute(const NetcdfVariable& variable, const char* name,
                                     DType dtype) {
  const NetcdfAttribute* const attribute = variable.attribute(name);
  if (attribute == nullptr || attribute->n_values == 0) return std::nullopt;
  const std::optional<DType> type = netcdf_dtype(attribute->type);
  if (!type) return std::nullopt;
  return visit_dtype(*type, [&]<class T>() {
    using Integer = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    using Widest = std::conditional_t<std::is_floating_point_v<T>, double, Integer>;
    return fill_for_dtype(static_cast<Widest>(first_value<T>(*attribute)), dtype);
  });
}

/// Value that the netCDF library stores where nothing was written (NC_FILL_FLOAT, ...), and that
/// readers treat as missing. Byte types have none; those of 64-bit integers are not exact doubles.
std::optional<double> default_fill(NetcdfType type) {
  switch (type) {
    case NetcdfType::short_: return -32767;
    case NetcdfType::int_: return -2147483647;
    case NetcdfType::float_:
    case NetcdfType::double_: return 0x1.ep+122;  // 9.9692099683868690e+36
    case NetcdfType::ushort: return 65535;
    case NetcdfType::uint: return 4294967295.0;
    default: return std::nullopt;
  }
}

template <class T>
Bytes bytes_of(T value) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

/// Fill value that the netCDF library gives the variable's dataset when it copies the file: the
/// bytes of one element; empty: none.
Bytes stored_fill(const NetcdfVariable& variable, DType dtype) {
  const NetcdfAttribute* const attribute = variable.attribute("_FillValue");
  if (attribute != nullptr && attribute->type == variable.type && attribute->n_values > 0) {
    return visit_dtype(dtype, [&]<class T>() { return bytes_of(first_value<T>(*attribute)); });
  }
  if (variable.type == NetcdfType::int64) return bytes_of<std::int64_t>(INT64_MIN + 2);
  if (variable.type == NetcdfType::uint64) return bytes_of<std::uint64_t>(UINT64_MAX - 1);
  const std::optional<double> number = default_fill(variable.type);
  if (!number) return {};
  return visit_dtype(dtype, [&]<class T>() { return bytes_of(static_cast<T>(*number)); });
}

std::string text_of(const NetcdfAttribute* attribute) {
  if (attribute == nullptr || attribute->type != NetcdfType::char_) return std::string();
  const auto* const text = reinterpret_cast<const char*>(attribute->values.data());
  return std::string(text, attribute->values.size());
}

/// Same as stated_attribute() for an HDF5 object.
StatedAttribute value_of(const NetcdfAttribute& attribute) {
  StatedAttribute value;
  value.name = attribute.name;
  if (attribute.type == NetcdfType::char_) {
    add_stated_text(value, text_of(&attribute));
    return value;
  }
  const std::optional<DType> type = netcdf_dtype(attribute.type);
  if (type)
    set_stated_numbers(value, *type, attribute.n_values,
                       std::as_bytes(std::span(attribute.values)));
  return value;
}

class NetcdfClassicInput final : public InputFile {
 public:
  NetcdfClassicInput(std::shared_ptr<InputBytes> bytes, NetcdfHeader header)
      : bytes_(std::move(bytes)), header_(std::move(header)) {
    std::vector<NamedCoordinates> named;
    for (std::size_t i = 0; i < header_.variables.size(); ++i) {
      const NetcdfVariable& variable = header_.variables[i];
      for (const char* name : {"coordinates", "bounds"}) {
        std::string names = text_of(variable.attribute(name));
        if (!names.empty()) named.push_back({"/", std::move(names)});
      }
      if (variable.type == NetcdfType::char_) continue;
      fields_.push_back(describe(variable));
      variable_of_field_.push_back(i);
    }
    mark_coordinates(named, fields_);
  }

  const std::string& format() const override { return format_; }
  const std::vector<StoredDataset>& fields() const override { return fields_; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index >= fields_.size()) {
      return Status(Code::invalid_argument,
                    bytes_->path() + ": field " + std::to_string(field_index) +
                        " does not exist; the file has " + std::to_string(fields_.size()) +
                        " fields, counted from 0");
    }
    const NetcdfVariable& variable = header_.variables[variable_of_field_[field_index]];
    return read_strided_box(*bytes_, variable.array, box, values)
        .within("field \"" + fields_[field_index].path + "\"");
  }

  std::vector<std::pair<std::string, std::string>> objects() const override {
    std::vector<std::pair<std::string, std::string>> texts;
    for (const NetcdfVariable& variable : header_.variables) {
      if (variable.type != NetcdfType::char_) continue;
      texts.emplace_back(netcdf4_variable_path(header_, variable), "dataset");
    }
    return texts;
  }
  std::vector<OtherDataset> other_datasets() const override {
    std::vector<OtherDataset> texts;
    for (const NetcdfVariable& variable : header_.variables) {
      if (variable.type != NetcdfType::char_) continue;
      texts.push_back({netcdf4_variable_path(header_, variable), "text", variable.array.shape,
                       n_elements(variable.array.shape), false});
    }
    return texts;
  }
  void leave_out(const std::set<std::string>& paths) override {
    std::vector<NetcdfVariable> kept;
    std::vector<std::size_t> new_number(header_.variables.size());
    for (std::size_t v = 0; v < header_.variables.size(); ++v) {
      NetcdfVariable& variable = header_.variables[v];
      new_number[v] = kept.size();
      const bool text = variable.type == NetcdfType::char_;
      if (text && paths.contains(netcdf4_variable_path(header_, variable))) continue;
      kept.push_back(variable);
    }
    header_.variables = std::move(kept);
    for (std::size_t& variable : variable_of_field_) variable = new_number[variable];
  }
  std::string text_attribute(const std::string& object_path, const std::string& name) override {
    const NetcdfAttribute* found = nullptr;
    if (object_path == "/") {
      for (const NetcdfAttribute& attribute : header_.attributes) {
        if (attribute.name == name) found = &attribute;
      }
    }
    for (const NetcdfVariable& variable : header_.variables) {
      if (netcdf4_variable_path(header_, variable) == object_path) found = variable.attribute(name);
    }
    std::string text = text_of(found);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
  }
  std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                              std::span<const char* const> names) override {
    for (const NetcdfVariable& variable : header_.variables) {
      if (netcdf4_variable_path(header_, variable) != object_path) continue;
      const auto there = std::ranges::find_if(
          names, [&](const char* name) { return variable.attribute(name) != nullptr; });
      if (there == names.end()) return std::nullopt;
      const std::optional<double> value = fill_attribute(variable, *there, DType::f64);
      if (value) return NamedNumber{*there, *value};
    }
    return std::nullopt;
  }
  Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                     AttributeFilter wanted) override {
    std::vector<StatedAttribute> values;
    const auto take = [&](const std::vector<NetcdfAttribute>& attributes) {
      for (const NetcdfAttribute& attribute : attributes) {
        if (wanted(attribute.name)) values.push_back(value_of(attribute));
      }
    };
    if (object_path == "/") take(header_.attributes);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      if (fields_[f].path == object_path) take(header_.variables[variable_of_field_[f]].attributes);
    }
    return values;
  }
  Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) override {
    return carry_over_netcdf_objects(*bytes_, header_, output);
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                         const CopiedObjects& copied) override {
    return carry_over_netcdf_attributes(header_, output, copied);
  }

 private:
  StoredDataset describe(const NetcdfVariable& variable) const {
    StoredDataset field;
    field.path = netcdf4_variable_path(header_, variable);
    field.field = true;
    field.dtype = netcdf_dtype(variable.type);
    field.element_bytes = variable.array.element_bytes;
    field.shape = variable.array.shape;
    field.missing_value = fill_attribute(variable, "_FillValue", *field.dtype);
    if (!field.missing_value) {
      field.missing_value = fill_attribute(variable, "missing_value", *field.dtype);
    }
    if (!field.missing_value) field.missing_value = default_fill(variable.type);
    field.fill_value = stored_fill(variable, *field.dtype);
    field.coordinate = variable.dimensions.size() == 1 &&
                       header_.dimensions[variable.dimensions[0]].name == variable.name;
    field.extendable = variable.record;
    field.max_shape = field.shape;
    if (variable.record) field.max_shape[0] = UINT64_MAX;
    field.stored_bytes = n_elements(field.shape) * variable.array.element_bytes;
    return field;
  }

  std::string format_ = "netCDF classic";
  std::shared_ptr<InputBytes> bytes_;
  NetcdfHeader header_;
  std::vector<StoredDataset> fields_;
  std::vector<std::size_t> variable_of_field_;
};

}  // namespace

Result<std::unique_ptr<InputFile>> open_netcdf_classic_input(std::shared_ptr<InputBytes> bytes) {
  TAILRACE_TAKE(NetcdfHeader header, read_netcdf_header(*bytes));
  return std::unique_ptr<InputFile>(
      std::make_unique<NetcdfClassicInput>(std::move(bytes), std::move(header)));
}

}  // namespace tailrace
