// Reads attributes of both files in the classic model's form, and chars in pieces.

#include "describe/netcdf_classic_copy.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/checked_product.hpp"
#include "core/utf8.hpp"
#include "describe/input_bytes.hpp"
#include "describe/input_netcdf_classic.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {
namespace {

/// Size of the pieces in which chars of each file are compared.
constexpr std::uint64_t kComparedBytes = 4U << 20;
/// Size limit for compared attributes: HDF5 stores none of that size.
constexpr std::uint64_t attribute_bytes_max = std::uint64_t{1} << 32;

/// The copy's attribute of a given name.
struct CopiedAttribute {
  bool there = false;
  std::optional<NetcdfAttribute> value;  ///< No value: its type does not exist in the classic
                                         ///< model.
};

/// The copy, in either format.
class CopySide {
 public:
  CopySide() = default;
  CopySide(const CopySide&) = delete;
  CopySide& operator=(const CopySide&) = delete;
  virtual ~CopySide() = default;
  virtual bool has(const std::string& path) const = 0;
  virtual Result<CopiedAttribute> attribute(const std::string& path,
                                            const std::string& name) const = 0;
  /// Shape of a char variable; no value if it has another type.
  virtual Result<std::optional<Shape>> chars(const std::string& path) const = 0;
  virtual Status read(const std::string& path, const Box& box, std::span<std::byte> into) const = 0;
};

const NetcdfVariable* variable_at(const NetcdfHeader& header, const std::string& path) {
  const auto found = std::ranges::find_if(header.variables, [&](const NetcdfVariable& variable) {
    return netcdf4_variable_path(header, variable) == path;
  });
  return found == header.variables.end() ? nullptr : &*found;
}

class ClassicSide final : public CopySide {
 public:
  ClassicSide(std::shared_ptr<InputBytes> bytes, NetcdfHeader header)
      : bytes_(std::move(bytes)), header_(std::move(header)) {}

  bool has(const std::string& path) const override {
    return path == "/" || variable_at(header_, path) != nullptr;
  }
  Result<CopiedAttribute> attribute(const std::string& path,
                                    const std::string& name) const override {
    const auto& list = path == "/" ? header_.attributes : variable_at(header_, path)->attributes;
    const auto found = std::ranges::find(list, name, &NetcdfAttribute::name);
    return found == list.end() ? CopiedAttribute() : CopiedAttribute{true, *found};
  }
  Result<std::optional<Shape>> chars(const std::string& path) const override {
    const NetcdfVariable& variable = *variable_at(header_, path);
    if (variable.type != NetcdfType::char_) return std::optional<Shape>();
    return std::optional(variable.array.shape);
  }
  Status read(const std::string& path, const Box& box, std::span<std::byte> into) const override {
    return read_strided_box(*bytes_, variable_at(header_, path)->array, box, into);
  }

 private:
  std::shared_ptr<InputBytes> bytes_;
  NetcdfHeader header_;
};

/// Type of the classic model for numbers of an HDF5 type.
std::optional<NetcdfType> number_type(hid_t type) {
  const std::size_t n_bytes = H5Tget_size(type);
  if (H5Tget_class(type) == H5T_FLOAT) {
    if (n_bytes == 4) return NetcdfType::float_;
    return n_bytes == 8 ? std::optional(NetcdfType::double_) : std::nullopt;
  }
  if (H5Tget_class(type) != H5T_INTEGER) return std::nullopt;
  const bool with_sign = H5Tget_sign(type) == H5T_SGN_2;
  switch (n_bytes) {
    case 1: return with_sign ? NetcdfType::byte_ : NetcdfType::ubyte;
    case 2: return with_sign ? NetcdfType::short_ : NetcdfType::ushort;
    case 4: return with_sign ? NetcdfType::int_ : NetcdfType::uint;
    case 8: return with_sign ? NetcdfType::int64 : NetcdfType::uint64;
    default: return std::nullopt;
  }
}

/// Convert an HDF5 attribute to the classic model; false if that is impossible or reading fails.
bool read_classic(hid_t attribute, NetcdfAttribute& into) {
  const Hdf5Id type(H5Aget_type(attribute));
  const Hdf5Id space(H5Aget_space(attribute));
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  if (!type.valid() || n < 0) return false;
  const bool empty = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
  const std::uint64_t n_elements = empty ? 0 : static_cast<std::uint64_t>(n);
  const bool text = H5Tget_class(type.get()) == H5T_STRING;
  const std::optional<NetcdfType> number = number_type(type.get());
  if (!text && !number) return false;
  into.type = text ? NetcdfType::char_ : *number;
  if (text && H5Tis_variable_str(type.get()) > 0) {
    if (n_elements != 1) return n_elements == 0;
    char* string = nullptr;
    if (H5Aread(attribute, type.get(), static_cast<void*>(&string)) < 0) return false;
    const std::size_t n_bytes = string == nullptr ? 0 : std::strlen(string);
    into.values.resize(n_bytes);
    if (n_bytes > 0) std::memcpy(into.values.data(), string, n_bytes);
    reclaim_variable_length(type.get(), space.get(), static_cast<void*>(&string));
    into.n_values = n_bytes;
    return true;
  }
  const hid_t memory = text ? type.get() : hdf5_native_type(*netcdf_dtype(*number));
  std::uint64_t n_bytes = 0;
  if (!multiply_checked(n_elements, H5Tget_size(memory), n_bytes)) return false;
  if (n_bytes > attribute_bytes_max) return false;
  into.values.resize(n_bytes);
  into.n_values = text ? n_bytes : n_elements;
  return n_bytes == 0 || H5Aread(attribute, memory, into.values.data()) >= 0;
}

class Hdf5Side final : public CopySide {
 public:
  Hdf5Side(std::string name, Hdf5Id file) : name_(std::move(name)), file_(std::move(file)) {}

  bool has(const std::string& path) const override { return link_exists(file_.get(), path); }
  Result<CopiedAttribute> attribute(const std::string& path,
                                    const std::string& name) const override {
    const Hdf5Id object(H5Oopen(file_.get(), path.c_str(), H5P_DEFAULT));
    const htri_t there = object.valid() ? H5Aexists(object.get(), name.c_str()) : -1;
    if (there < 0) return failed(path);
    if (there == 0) return CopiedAttribute();
    const Hdf5Id attribute(H5Aopen(object.get(), name.c_str(), H5P_DEFAULT));
    if (!attribute.valid()) return failed(path);
    NetcdfAttribute value;
    value.name = name;
    if (!read_classic(attribute.get(), value)) return CopiedAttribute{true, std::nullopt};
    return CopiedAttribute{true, std::move(value)};
  }
  Result<std::optional<Shape>> chars(const std::string& path) const override {
    const Hdf5Id object(H5Oopen(file_.get(), path.c_str(), H5P_DEFAULT));
    if (!object.valid()) return failed(path);
    if (H5Iget_type(object.get()) != H5I_DATASET) return std::optional<Shape>();
    const Hdf5Id type(H5Dget_type(object.get()));
    const Hdf5Id space(H5Dget_space(object.get()));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    const bool of_chars = H5Tget_class(type.get()) == H5T_STRING &&
                          H5Tis_variable_str(type.get()) == 0 && H5Tget_size(type.get()) == 1;
    if (!of_chars || rank < 0) return std::optional<Shape>();
    std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
    if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    return std::optional(Shape(extents.begin(), extents.end()));
  }
  Status read(const std::string& path, const Box& box, std::span<std::byte> into) const override {
    const Hdf5Id dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    const Hdf5Id space(dataset.valid() ? H5Dget_space(dataset.get()) : -1);
    const Hdf5Id type(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
    const hsize_t n_bytes = into.size();
    const Hdf5Id memory(H5Screate_simple(1, &n_bytes, nullptr));
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    if (!start.empty()) {
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
    }
    if (H5Dread(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, into.data()) <
        0) {
      return failed(path);
    }
    return Status();
  }

 private:
  Status failed(const std::string& path) const {
    return hdf5_failure(Code::corrupt, name_ + ": \"" + path + "\" cannot be read");
  }

  std::string name_;
  Hdf5Id file_;
};

/// One number of an attribute. long double represents every type of the model exactly.
long double number_at(const NetcdfAttribute& attribute, std::uint64_t index) {
  return visit_dtype(*netcdf_dtype(attribute.type), [&]<class T>() {
    T value;
    std::memcpy(&value, attribute.values.data() + index * sizeof value, sizeof value);
    return static_cast<long double>(value);
  });
}

std::span<const std::byte> without_last_zeros(const std::vector<std::byte>& text) {
  std::span<const std::byte> rest = text;
  while (!rest.empty() && rest.back() == std::byte{0}) rest = rest.first(rest.size() - 1);
  return rest;
}

bool is_text(const NetcdfAttribute& attribute) { return attribute.type == NetcdfType::char_; }

/// True if both attributes mean the same, whatever their types.
bool same_value(const NetcdfAttribute& a, const NetcdfAttribute& b) {
  if (a.n_values == 0 && b.n_values == 0) return true;
  if (is_text(a) && is_text(b)) {
    return std::ranges::equal(without_last_zeros(a.values), without_last_zeros(b.values));
  }
  if (a.type == b.type) return a.values == b.values;
  if (is_text(a) || is_text(b) || a.n_values != b.n_values) return false;
  for (std::uint64_t i = 0; i < a.n_values; ++i) {
    const long double x = number_at(a, i);
    const long double y = number_at(b, i);
    if (x != y && (x == x || y == y)) return false;
  }
  return true;
}

/// Value as text: "\"text\"", "3", "{1, 2, ...}".
std::string value_text(const NetcdfAttribute& attribute) {
  constexpr std::size_t most_chars = 60;
  constexpr std::uint64_t most_values = 4;
  if (is_text(attribute)) {
    const auto text = without_last_zeros(attribute.values);
    const auto shown = text.first(std::min(text.size(), most_chars));
    return '"' + std::string(reinterpret_cast<const char*>(shown.data()), shown.size()) +
           (shown.size() < text.size() ? "...\"" : "\"");
  }
  std::string text;
  for (std::uint64_t i = 0; i < std::min(attribute.n_values, most_values); ++i) {
    char number[64] = {};
    const int digits = attribute.type == NetcdfType::float_ ? 9 : 17;
    const bool integer =
        attribute.type != NetcdfType::float_ && attribute.type != NetcdfType::double_;
    std::snprintf(number, sizeof number, "%.*Lg", integer ? 20 : digits, number_at(attribute, i));
    text += (i > 0 ? ", " : "") + std::string(number);
  }
  if (attribute.n_values == 1) return text;
  return "{" + text + (attribute.n_values > most_values ? ", ...}" : "}");
}

class CopyComparison {
 public:
  CopyComparison(const InputBytes& original, const CopySide& copy, const std::string& copy_name,
                 const NetcdfCopyCheck& check)
      : original_(original), copy_(copy), copy_name_(copy_name), check_(check) {}

  Status attributes(const std::string& what, const std::string& path,
                    const std::vector<NetcdfAttribute>& list) {
    for (const NetcdfAttribute& attribute : list) {
      if (netcdf4_keeps_name(attribute.name)) continue;
      if (!is_taken_over(attribute.name, nullptr)) continue;
      const std::string which =
          copy_name_ + ": " + what + ": attribute \"" + attribute.name + "\" ";
      TAILRACE_TAKE(const CopiedAttribute copied, copy_.attribute(path, attribute.name));
      if (!copied.there) {
        check_.differs(which + "is missing in the output");
      } else if (!copied.value || is_text(*copied.value) != is_text(attribute)) {
        check_.differs(which + "has another type than in the original");
      } else if (!same_value(attribute, *copied.value)) {
        check_.differs(which + "is " + value_text(*copied.value) + ", but " +
                       value_text(attribute) + " in the original");
      }
    }
    return Status();
  }

  Status chars(const std::string& what, const std::string& path, const NetcdfVariable& variable) {
    const std::string which = copy_name_ + ": " + what + " ";
    const Shape& shape = variable.array.shape;
    TAILRACE_TAKE(const std::optional<Shape> found, copy_.chars(path));
    if (!found) {
      check_.differs(which + "has another type than in the original");
      return Status();
    }
    if (*found != shape) {
      check_.differs(which + "has shape " + shape_text(*found) + ", " + shape_text(shape) +
                     " in the original");
      return Status();
    }
    return values(which, path, variable);
  }

 private:
  /// Compare complete entries of the first dimension, a few MiB at a time.
  Status values(const std::string& which, const std::string& path, const NetcdfVariable& variable) {
    Box box = whole_box(variable.array.shape);
    if (box.empty()) return Status();
    const std::uint64_t n_entries = box.rank() == 0 ? 1 : box.count[0];
    const std::uint64_t entry_bytes = box.n_elements() / n_entries;
    const std::uint64_t n_per_piece = std::max<std::uint64_t>(1, kComparedBytes / entry_bytes);
    std::uint64_t n_different = 0;
    std::string first;
    for (std::uint64_t done = 0; done < n_entries; done += n_per_piece) {
      if (box.rank() > 0) {
        box.start[0] = done;
        box.count[0] = std::min(n_per_piece, n_entries - done);
      }
      std::vector<std::byte> a(box.n_elements());
      std::vector<std::byte> b(box.n_elements());
      TAILRACE_TRY(read_strided_box(original_, variable.array, box, a).within(which));
      TAILRACE_TRY(copy_.read(path, box, b));
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i] || n_different++ > 0) continue;
        first = place_text(box, i) + ": " + char_text(b[i]) + ", but " + char_text(a[i]);
      }
    }
    if (n_different > 0) {
      check_.differs(which + "differs from the original in " + counted(n_different, "character") +
                     ", first at " + first + " in the original");
    }
    return Status();
  }

  static std::string place_text(const Box& box, std::uint64_t index) {
    std::string text;
    for (std::size_t d = box.rank(); d-- > 0; index /= box.count[d]) {
      const std::uint64_t at = box.start[d] + index % box.count[d];
      text = std::to_string(at) + (text.empty() ? "" : ", ") + text;
    }
    return "[" + text + "]";
  }

  static std::string char_text(std::byte value) {
    const auto code = std::to_integer<unsigned>(value);
    if (code >= 32 && code < 127) return std::string("\"") + char(code) + "\"";
    return "character " + std::to_string(code);
  }

  const InputBytes& original_;
  const CopySide& copy_;
  const std::string& copy_name_;
  const NetcdfCopyCheck& check_;
};

Result<std::unique_ptr<CopySide>> open_copy(const std::string& copy) {
  TAILRACE_TAKE(std::shared_ptr<InputBytes> bytes, InputBytes::open(copy));
  Result<NetcdfHeader> header = read_netcdf_header(*bytes);
  if (header.ok()) {
    return std::unique_ptr<CopySide>(
        std::make_unique<ClassicSide>(std::move(bytes), std::move(*header)));
  }
  Hdf5Id file(H5Fopen(copy.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) return hdf5_open_failure(copy);
  return std::unique_ptr<CopySide>(std::make_unique<Hdf5Side>(copy, std::move(file)));
}

}  // namespace

Status compare_netcdf_classic_copy(const std::string& original, const std::string& copy,
                                   const NetcdfCopyCheck& check) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const std::shared_ptr<InputBytes> bytes, InputBytes::open(original));
  TAILRACE_TAKE(const NetcdfHeader header, read_netcdf_header(*bytes));
  TAILRACE_TAKE(const std::unique_ptr<CopySide> side, open_copy(copy));
  CopyComparison comparison(*bytes, *side, copy, check);
  if (check.wanted("/")) {
    TAILRACE_TRY(comparison.attributes("group \"/\"", "/", header.attributes));
  }
  for (const NetcdfVariable& variable : header.variables) {
    const std::string path = netcdf4_variable_path(header, variable);
    if (!check.wanted(path) || !side->has(path)) continue;
    const bool of_chars = variable.type == NetcdfType::char_;
    const std::string what = std::string(of_chars ? "dataset" : "field") + " \"" + path + '"';
    TAILRACE_TRY(comparison.attributes(what, path, variable.attributes));
    if (of_chars) TAILRACE_TRY(comparison.chars(what, path, variable));
  }
  return Status();
}

}  // namespace tailrace
