// Schemas packed and compared; types in HDF5's encoding and as text.

#include "hdf5/dataset_schema.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/byte_stream.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {

namespace {

constexpr std::uint32_t kDeflateId = 1;

/// Boolean members sent to other ranks, one bit each.
constexpr std::size_t kNMarks = 8;
constexpr bool StoredDataset::*kPackedMarks[kNMarks] = {
    &StoredDataset::plain_number, &StoredDataset::swapped,  &StoredDataset::strings,
    &StoredDataset::by_value,     &StoredDataset::appended, &StoredDataset::extendable,
    &StoredDataset::plain_edges,  &StoredDataset::foreign};

void pack_bytes(ByteWriter& writer, const Bytes& bytes) {
  writer.add_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void pack_numbers(ByteWriter& writer, const std::vector<std::uint32_t>& numbers) {
  writer.add(static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint32_t number : numbers) writer.add(number);
}

Bytes take_blob(ByteReader& reader) {
  const std::span<const std::byte> bytes = reader.take_bytes(reader.take<std::uint64_t>());
  return Bytes(bytes.begin(), bytes.end());
}

/// True if two encoded types are equal. HDF5 encodes a type in the format version of its file, so
/// that equal types may differ in bytes.
bool same_type(const Bytes& a, const Bytes& b) {
  if (a == b) return true;
  const Hdf5Scope scope;
  const Hdf5Id first(a.empty() ? H5I_INVALID_HID : decode_type(a.data(), a.size()));
  const Hdf5Id second(b.empty() ? H5I_INVALID_HID : decode_type(b.data(), b.size()));
  return first.valid() && second.valid() && H5Tequal(first.get(), second.get()) > 0;
}

bool all_zero(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool same_fill(const Bytes& a, const Bytes& b) { return a == b || (all_zero(a) && all_zero(b)); }

std::string hex_text(const Bytes& bytes) {
  if (all_zero(bytes)) return "zero";
  constexpr std::size_t n_shown_max = 16;
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "bytes ";
  for (std::size_t i = 0; i < std::min(bytes.size(), n_shown_max); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += digits[value / 16];
    text += digits[value % 16];
  }
  return bytes.size() > n_shown_max ? text + "..." : text;
}

/// Shape of one row, for messages: "3x4", "one element".
std::string row_text(const Shape& shape) {
  if (shape.size() < 2) return "one element";
  return shape_text(Shape(shape.begin() + 1, shape.end()));
}

bool same_rows(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

/// The conflict that prevents appending `found` to `first`, or an empty text.
std::string conflict_of(const StoredDataset& first, const StoredDataset& found) {
  const std::string what = "dataset \"" + found.path + "\": ";
  constexpr const char* appended[] = {"a scalar or null dataset", "an array"};
  if (first.appended != found.appended) {
    return what + appended[found.appended ? 1 : 0] + ", but " + appended[first.appended ? 1 : 0] +
           " in the first file";
  }
  // The first file's dataset is used.
  if (!first.appended && first.shape.empty()) return std::string();
  if (!same_type(first.type, found.type)) {
    if (first.type_text != found.type_text) {
      return what + found.type_text + ", but " + first.type_text + " in the first file";
    }
    return what + found.type_text + ", as in the first file, but with other members, order or size";
  }
  if (!first.appended && first.shape != found.shape) {
    return what + "shape " + shape_text(found.shape) + ", but " + shape_text(first.shape) +
           " in the first file, and it does not grow";
  }
  if (!same_rows(first.shape, found.shape)) {
    return what + "rows of " + row_text(found.shape) + ", but of " + row_text(first.shape) +
           " in the first file";
  }
  if (!same_fill(first.fill_value, found.fill_value)) {
    return what + "fill value " + hex_text(found.fill_value) + ", but " +
           hex_text(first.fill_value) + " in the first file";
  }
  return std::string();
}

}  // namespace

bool StoredForm::same_as(const StoredForm& other) const {
  if (kind != other.kind || chunk_shape != other.chunk_shape ||
      filters.size() != other.filters.size()) {
    return false;
  }
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (filters[i].filter_id != other.filters[i].filter_id) return false;
    // Deflate's client data is its level, which decoding does not need.
    if (filters[i].filter_id == kDeflateId) continue;
    if (filters[i].final_client_data != other.filters[i].final_client_data) return false;
  }
  return true;
}

std::uint64_t StoredDataset::row_bytes() const {
  std::uint64_t n_bytes = element_bytes;
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (__builtin_mul_overflow(n_bytes, shape[d], &n_bytes)) return UINT64_MAX;
  }
  return n_bytes;
}

std::string values_elsewhere_text(const StoredDataset& dataset) {
  const std::string& name = dataset.foreign_file;
  return "dataset \"" + dataset.path + "\": its values lie in " +
         (name == "." ? "other datasets" : "other files") +
         (name.empty() || name == "." ? "" : " (\"" + name + "\")");
}

Status check_not_hollow(const StoredDataset& dataset) {
  if (n_elements(dataset.shape) < kHollowBytesMin / dataset.value_bytes()) return Status();
  const bool contiguous = dataset.storage.kind == StoredForm::Kind::contiguous;
  if (!contiguous && !dataset.chunked()) return Status();
  const std::uint64_t n_chunks =
      contiguous ? 1 : ChunkGrid{dataset.shape, dataset.storage.chunk_shape}.n_chunks();
  const std::uint64_t n_there =
      contiguous ? std::uint64_t{dataset.contiguous.encoded_bytes > 0} : dataset.n_chunks_there;
  if (dataset.foreign || n_there > n_chunks / 1000) return Status();
  return Status(
      Code::unsupported,
      "dataset \"" + dataset.path + "\" of shape " + shape_text(dataset.shape) +
          " is nearly empty: only " + std::to_string(n_there) + " of its " +
          std::to_string(n_chunks) +
          " chunks are stored, but all its values would be processed; exclude this dataset");
}

void pack_form(ByteWriter& writer, const StoredForm& form) {
  writer.add(form.kind);
  writer.add(form.chunk_shape);
  writer.add(static_cast<std::uint32_t>(form.filters.size()));
  for (const FilterSpec& filter : form.filters) {
    writer.add(filter.filter_id);
    writer.add(filter.flags);
    pack_numbers(writer, filter.client_data);
    pack_numbers(writer, filter.final_client_data);
    writer.add_text(filter.name);
  }
}

StoredForm unpack_form(ByteReader& reader) {
  StoredForm form;
  form.kind = reader.take<StoredForm::Kind>();
  form.chunk_shape = reader.take_shape();
  form.filters.resize(reader.take_count(sizeof(std::uint32_t)));
  for (FilterSpec& filter : form.filters) {
    filter.filter_id = reader.take<std::uint32_t>();
    filter.flags = reader.take<std::uint32_t>();
    filter.client_data = reader.take_numbers<std::uint32_t>();
    filter.final_client_data = reader.take_numbers<std::uint32_t>();
    filter.name = reader.take_text();
  }
  return form;
}

bool StoredDataset::grows() const {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (limit(d) != shape[d]) return true;
  }
  return false;
}

StoredDataset as_bytes(StoredDataset dataset) {
  const std::uint64_t n_bytes = dataset.element_bytes;
  if (dataset.max_shape.empty()) dataset.max_shape = dataset.shape;
  for (Shape* extents : {&dataset.shape, &dataset.max_shape}) extents->push_back(n_bytes);
  if (dataset.chunked()) dataset.storage.chunk_shape.push_back(n_bytes);
  dataset.dtype = DType::u8;
  dataset.plain_number = dataset.field = dataset.bytes_axis = true;
  dataset.swapped = false;
  dataset.element_bytes = 1;
  dataset.missing_value.reset();
  return dataset;
}

std::uint64_t StoredDataset::more_unlimited() const {
  std::uint64_t mask = 0;
  for (std::size_t d = 1; d < shape.size(); ++d) mask |= std::uint64_t{unlimited(d)} << d;
  return mask;
}

Bytes pack_schema(std::span<const StoredDataset> datasets) {
  ByteWriter writer;
  for (const StoredDataset& dataset : datasets) {
    writer.add_text(dataset.path);
    pack_bytes(writer, dataset.type);
    writer.add_text(dataset.type_text);
    writer.add(dataset.element_bytes);
    std::uint16_t marks = 0;
    for (std::size_t i = 0; i < kNMarks; ++i) {
      marks |= static_cast<std::uint16_t>((dataset.*kPackedMarks[i] ? 1U : 0U) << i);
    }
    writer.add(marks);
    writer.add(dataset.dtype ? static_cast<std::int32_t>(*dataset.dtype) : -1);
    writer.add(dataset.shape);
    writer.add(dataset.max_shape);
    pack_form(writer, dataset.storage);
    writer.add(dataset.contiguous);
    pack_bytes(writer, dataset.fill_value);
    writer.add(static_cast<std::uint8_t>(dataset.fill_number.has_value()));
    writer.add(dataset.fill_number.value_or(0));
  }
  return writer.take();
}

Result<std::vector<StoredDataset>> unpack_schema(std::span<const std::byte> bytes) {
  std::vector<StoredDataset> datasets;
  ByteReader reader(bytes, ByteReader::Trust::wary);
  while (!reader.at_end()) {
    StoredDataset& dataset = datasets.emplace_back();
    dataset.path = reader.take_text();
    dataset.type = take_blob(reader);
    dataset.type_text = reader.take_text();
    dataset.element_bytes = reader.take<std::uint64_t>();
    const auto marks = reader.take<std::uint16_t>();
    for (std::size_t i = 0; i < kNMarks; ++i) dataset.*kPackedMarks[i] = (marks >> i & 1) != 0;
    const auto dtype = reader.take<std::int32_t>();
    if (dtype >= 0) dataset.dtype = static_cast<DType>(dtype);
    dataset.shape = reader.take_shape();
    dataset.max_shape = reader.take_shape();
    dataset.storage = unpack_form(reader);
    dataset.contiguous = reader.take<Extent>();
    dataset.fill_value = take_blob(reader);
    const bool filled = reader.take<std::uint8_t>() != 0;
    const auto fill = reader.take<double>();
    if (filled) dataset.fill_number = fill;
    if (marks >> kNMarks != 0 || dataset.storage.kind > StoredForm::Kind::chunked) {
      return Status(Code::corrupt, "packed schema: dataset " + std::to_string(datasets.size() - 1) +
                                       " has unknown flags");
    }
  }
  if (!reader.good()) {
    return Status(Code::corrupt, "packed schema of " + std::to_string(bytes.size()) +
                                     " bytes: truncated in dataset " +
                                     std::to_string(datasets.size() - 1));
  }
  return datasets;
}

std::vector<std::string> schema_conflicts(std::span<const StoredDataset> schema,
                                          std::span<const StoredDataset> datasets) {
  std::vector<std::string> lines;
  // Usually both list the same paths in the same order, and no table is needed.
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<bool> seen(datasets.size());
  for (std::size_t i = 0; i < schema.size(); ++i) {
    std::size_t at = i;
    if (at >= datasets.size() || datasets[at].path != schema[i].path) {
      if (places.empty()) {
        for (std::size_t j = 0; j < datasets.size(); ++j) places.emplace(datasets[j].path, j);
      }
      const auto place = places.find(schema[i].path);
      if (place == places.end()) {
        lines.push_back("dataset \"" + schema[i].path + "\" is missing");
        continue;
      }
      at = place->second;
    }
    seen[at] = true;
    std::string line = conflict_of(schema[i], datasets[at]);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  for (std::size_t j = 0; j < datasets.size(); ++j) {
    if (!seen[j]) lines.push_back("dataset \"" + datasets[j].path + "\" is not in the first file");
  }
  return lines;
}

// --- H5Tencode and H5Tdecode of number types.

Bytes encoded_type(DType dtype) {
  const Hdf5Scope scope;
  std::size_t n_bytes = 0;
  H5Tencode(hdf5_native_type(dtype), nullptr, &n_bytes);
  Bytes type(n_bytes);
  H5Tencode(hdf5_native_type(dtype), type.data(), &n_bytes);
  return type;
}

std::optional<DType> decoded_type(const Bytes& type) {
  const Hdf5Scope scope;
  const Hdf5Id decoded(decode_type(type.data(), type.size()));
  if (!decoded.valid()) return std::nullopt;
  for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64,
                            DType::u8, DType::u16, DType::u32, DType::u64}) {
    if (H5Tequal(decoded.get(), hdf5_native_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

// --- Nested types as JSON, from the outside in.

namespace {

using Json = nlohmann::json;
using Described = std::optional<Json>;

/// Nesting limit, beyond that of any program; a damaged file cannot exhaust the stack.
constexpr int kDepthMax = 16;

Described describe(hid_t type, int depth);

std::string order_sign(hid_t type, std::size_t n_bytes) {
  if (n_bytes == 1) return "|";
  return H5Tget_order(type) == H5T_ORDER_BE ? ">" : "<";
}

std::optional<std::string> integer_name(hid_t type) {
  const std::size_t n_bytes = H5Tget_size(type);
  const bool whole = H5Tget_precision(type) == 8 * n_bytes && H5Tget_offset(type) == 0;
  if (!whole || (n_bytes != 1 && n_bytes != 2 && n_bytes != 4 && n_bytes != 8)) return std::nullopt;
  return order_sign(type, n_bytes) + (H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i") +
         std::to_string(n_bytes);
}

/// NumPy's name of IEEE half, single and double precision; empty for other formats.
std::optional<std::string> float_name(hid_t type) {
  struct Format {
    std::size_t n_bytes, exponent_bits, mantissa_bits, bias;
  };
  constexpr std::array<Format, 3> formats = {{{2, 5, 10, 15}, {4, 8, 23, 127}, {8, 11, 52, 1023}}};
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  if (H5Tget_order(type) != H5T_ORDER_BE && H5Tget_order(type) != H5T_ORDER_LE) return std::nullopt;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
    return std::nullopt;
  }
  for (const Format& format : formats) {
    if (H5Tget_size(type) == format.n_bytes && sign == 8 * format.n_bytes - 1 && mantissa == 0 &&
        exponent == format.mantissa_bits && exponent_bits == format.exponent_bits &&
        mantissa_bits == format.mantissa_bits && H5Tget_ebias(type) == format.bias) {
      return order_sign(type, format.n_bytes) + "f" + std::to_string(format.n_bytes);
    }
  }
  return std::nullopt;
}

std::string member_name(hid_t type, unsigned member) {
  char* name = H5Tget_member_name(type, member);
  if (name == nullptr) return "";
  std::string copy = name;
  H5free_memory(name);
  return copy;
}

Described describe_enum(hid_t type) {
  const Hdf5Id base(H5Tget_super(type));
  const int n_members = H5Tget_nmembers(type);
  if (!base.valid() || n_members < 0) return std::nullopt;
  const std::optional<std::string> name = integer_name(base.get());
  if (!name) return std::nullopt;
  const bool is_signed = H5Tget_sign(base.get()) != H5T_SGN_NONE;
  Json values = Json::array();
  for (unsigned member = 0; member < static_cast<unsigned>(n_members); ++member) {
    std::uint64_t value = 0;  // Room for the widest type: HDF5 converts in place.
    if (H5Tget_member_value(type, member, &value) < 0 ||
        H5Tconvert(base.get(), is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, 1, &value, nullptr,
                   H5P_DEFAULT) < 0) {
      return std::nullopt;
    }
    Json number = is_signed ? Json(static_cast<std::int64_t>(value)) : Json(value);
    values.push_back(Json::array({member_name(type, member), std::move(number)}));
  }
  return Json{{"kind", "enum"}, {"numpy", *name}, {"values", std::move(values)}};
}

Described describe_array(hid_t type, int depth) {
  const Hdf5Id base(H5Tget_super(type));
  const int rank = H5Tget_array_ndims(type);
  if (!base.valid() || rank < 1) return std::nullopt;
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  if (H5Tget_array_dims2(type, shape.data()) < 0) return std::nullopt;
  Described of = describe(base.get(), depth + 1);
  if (!of) return std::nullopt;
  return Json{{"kind", "array"}, {"shape", shape}, {"of", std::move(*of)}};
}

Described describe_compound(hid_t type, int depth) {
  const int n_members = H5Tget_nmembers(type);
  if (n_members < 1) return std::nullopt;
  Json members = Json::array();
  for (unsigned member = 0; member < static_cast<unsigned>(n_members); ++member) {
    const Hdf5Id member_type(H5Tget_member_type(type, member));
    if (!member_type.valid()) return std::nullopt;
    Described of = describe(member_type.get(), depth + 1);
    if (!of) return std::nullopt;
    members.push_back(Json{{"name", member_name(type, member)},
                           {"at", H5Tget_member_offset(type, member)},
                           {"of", std::move(*of)}});
  }
  return Json{{"kind", "compound"}, {"bytes", H5Tget_size(type)}, {"members", std::move(members)}};
}

Json number(const std::string& numpy) { return Json{{"kind", "number"}, {"numpy", numpy}}; }

Described describe(hid_t type, int depth) {
  if (depth > kDepthMax) return std::nullopt;
  std::optional<std::string> name;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: name = integer_name(type); break;
    case H5T_FLOAT: name = float_name(type); break;
    case H5T_OPAQUE:
    case H5T_BITFIELD: name = "V" + std::to_string(H5Tget_size(type)); break;
    case H5T_ENUM: return describe_enum(type);
    case H5T_ARRAY: return describe_array(type, depth);
    case H5T_COMPOUND: return describe_compound(type, depth);
    case H5T_STRING:
      if (H5Tis_variable_str(type) != 0) return std::nullopt;
      return Json{{"kind", "string"}, {"bytes", H5Tget_size(type)}};
    default: break;
  }
  if (!name) return std::nullopt;
  return number(*name);
}

}  // namespace

std::string describe_type(const Bytes& type) {
  const Hdf5Scope scope;
  const Hdf5Id decoded(decode_type(type.data(), type.size()));
  if (!decoded.valid()) return "";
  const Described described = describe(decoded.get(), 0);
  return described ? described->dump(-1, ' ', false, Json::error_handler_t::replace) : "";
}

}  // namespace tailrace
