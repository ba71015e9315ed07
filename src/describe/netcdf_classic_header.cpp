// Parser of the netCDF classic header. Names in the comments are those of the specification.

#include "describe/netcdf_classic_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace tailrace {
namespace {

constexpr std::uint32_t kDimensionTag = 10;
constexpr std::uint32_t kVariableTag = 11;
constexpr std::uint32_t kAttributeTag = 12;

/// Headers are read in windows of this size: one read for nearly all real files.
constexpr std::uint64_t kWindowBytes = 256U << 10;

constexpr bool kSwap = std::endian::native == std::endian::little;

std::uint64_t padded(std::uint64_t n_bytes) { return (n_bytes + 3) & ~std::uint64_t{3}; }

/// Reads the header's tokens one after the other. The first failure sticks.
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

  /// Copy `n_bytes` and step over them; false (and nothing copied) once anything has failed.
  bool take(void* to, std::uint64_t n_bytes) {
    if (ok() && n_bytes > remaining()) {
      fail(Code::corrupt, "expected " + std::to_string(n_bytes) + " bytes, but the file ends in " +
                              std::to_string(remaining()) + " (truncated)");
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
  /// NON_NEG: 4 bytes, in CDF-5 8 bytes.
  std::uint64_t take_count(const char* of) {
    const std::uint64_t value = version_ == 5 ? take_u64() : take_u32();
    const std::uint64_t greatest = version_ == 5 ? INT64_MAX : INT32_MAX;
    if (value > greatest) fail(Code::corrupt, std::string("negative number of ") + of);
    return ok() ? value : 0;
  }
  /// OFFSET: 4 bytes in CDF-1 only.
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

  /// `n_bytes` of text or values, checked against what is left before memory is taken.
  template <class Container>
  void take_block(Container& block, std::uint64_t n_bytes) {
    if (ok() && n_bytes > remaining()) {
      fail(Code::corrupt, "expected " + std::to_string(n_bytes) + " bytes, but the file ends in " +
                              std::to_string(remaining()) + " (truncated)");
    }
    if (!ok()) return;
    block.resize(n_bytes);
    take(block.data(), n_bytes);
    skip_padding(n_bytes);
  }

  std::string take_name(const char* of) {
    std::string name;
    take_block(name, take_count("bytes in a name"));
    // HDF5 cannot hold a slash or "." as a link's name, and netCDF forbids both.
    const bool bad = name.empty() || name == "." || name == ".." ||
                     name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
    if (bad) fail(Code::corrupt, std::string("bad name of ") + of);
    return name;
  }

  /// The start of a list: its tag and how many entries follow. 0 for ABSENT.
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
           "type " + std::to_string(number) + " is not one of CDF-" + std::to_string(version_));
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
    TAILRACE_TRY(settle_shapes());
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
        cursor_.fail(Code::corrupt, "two record dimensions; at most one is possible");
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
      if (cursor_.ok() && rank > max_rank) {
        cursor_.fail(Code::unsupported, "variable \"" + variable.name + "\" has " +
                                            std::to_string(rank) +
                                            " dimensions, at most 32 are possible");
      }
      for (std::uint64_t d = 0; d < rank && cursor_.ok(); ++d) take_dimension_id(variable);
      take_attributes(variable.attributes);
      variable.type = cursor_.take_type();
      // vsize is redundant, and capped or wrong in large files: it is computed instead.
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
    const std::uint64_t id = cursor_.take_count("a dimension's position");
    if (!cursor_.ok()) return;
    if (id >= header_.dimensions.size()) {
      cursor_.fail(Code::corrupt, "variable \"" + variable.name + "\" names dimension " +
                                      std::to_string(id) + " of " +
                                      std::to_string(header_.dimensions.size()));
      return;
    }
    if (header_.dimensions[id].record) {
      if (!variable.dimensions.empty()) {
        cursor_.fail(Code::corrupt, "variable \"" + variable.name +
                                        "\" has the record dimension in another place than first");
      }
      variable.record = true;
    }
    variable.dimensions.push_back(id);
  }

  /// Bytes of one record of a record variable, or of the whole of another; UINT64_MAX if too many.
  std::uint64_t entry_bytes(const NetcdfVariable& variable) const {
    std::uint64_t n_bytes = netcdf_type_bytes(variable.type);
    for (std::size_t d = variable.record ? 1 : 0; d < variable.dimensions.size(); ++d) {
      const std::uint64_t length = header_.dimensions[variable.dimensions[d]].length;
      if (!multiply_checked(n_bytes, length, n_bytes)) return UINT64_MAX;
    }
    return n_bytes;
  }

  /// All record variables together make one record, each padded to 4 bytes; a record variable that
  /// is the only one is not padded (the specification's "special case").
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

  /// A file written as a stream does not know its number of records: as many as are there whole.
  void count_records() {
    std::uint64_t first = UINT64_MAX;
    for (const NetcdfVariable& variable : header_.variables) {
      if (variable.record) first = std::min(first, variable.array.address);
    }
    const bool any = first < input_.file_bytes() && header_.record_bytes > 0;
    header_.n_records = any ? (input_.file_bytes() - first) / header_.record_bytes : 0;
  }

  Status settle_shapes() {
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

  /// The last byte of a variable must lie in the file; padding behind it may be missing.
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
  switch (type) {
    case NetcdfType::byte_:
    case NetcdfType::char_:
    case NetcdfType::ubyte: return 1;
    case NetcdfType::short_:
    case NetcdfType::ushort: return 2;
    case NetcdfType::int_:
    case NetcdfType::uint:
    case NetcdfType::float_: return 4;
    case NetcdfType::double_:
    case NetcdfType::int64:
    case NetcdfType::uint64: return 8;
  }
  return 1;
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

}  // namespace tailrace
