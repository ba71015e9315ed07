// Schemas: their lengths, their packed form, and what keeps two of them apart.

#include "container/concat_schema.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "container/hdf5_compat.hpp"
#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

constexpr std::uint32_t deflate_id = 1;

void pack_bytes(ByteWriter& writer, const Bytes& bytes) {
  writer.add_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void pack_numbers(ByteWriter& writer, const std::vector<std::uint32_t>& numbers) {
  writer.add(static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint32_t number : numbers) writer.add(number);
}

void pack_storage(ByteWriter& writer, const StoredForm& storage) {
  writer.add(storage.kind);
  writer.add(storage.chunk_shape);
  writer.add(static_cast<std::uint32_t>(storage.filters.size()));
  for (const FilterSpec& filter : storage.filters) {
    writer.add(filter.filter_id);
    writer.add(filter.flags);
    pack_numbers(writer, filter.client_data);
    pack_numbers(writer, filter.final_client_data);
    writer.add_text(filter.name);
  }
}

/// Reads what pack_schema() wrote; the first length that does not fit makes all later reads empty.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const std::span<const std::byte> bytes = take_bytes(sizeof(T));
    if (good_) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  /// A number of entries of at least `entry_bytes` each, which must be there.
  std::size_t take_count(std::size_t entry_bytes) {
    const auto count = take<std::uint32_t>();
    if (count > rest_.size() / entry_bytes) good_ = false;
    return good_ ? count : 0;
  }

  template <class T>
  std::vector<T> take_numbers() {
    std::vector<T> numbers(take_count(sizeof(T)));
    for (T& number : numbers) number = take<T>();
    return numbers;
  }

  std::span<const std::byte> take_text_bytes() {
    const auto n_bytes = take<std::uint64_t>();
    if (n_bytes > rest_.size()) good_ = false;
    return take_bytes(good_ ? static_cast<std::size_t>(n_bytes) : 0);
  }
  std::string take_text() {
    const std::span<const std::byte> text = take_text_bytes();
    return std::string(reinterpret_cast<const char*>(text.data()), text.size());
  }
  Bytes take_blob() {
    const std::span<const std::byte> bytes = take_text_bytes();
    return Bytes(bytes.begin(), bytes.end());
  }

 private:
  std::span<const std::byte> take_bytes(std::size_t n_bytes) {
    if (n_bytes > rest_.size()) good_ = false;
    if (!good_) return {};
    const std::span<const std::byte> taken = rest_.first(n_bytes);
    rest_ = rest_.subspan(n_bytes);
    return taken;
  }

  std::span<const std::byte> rest_;
  bool good_ = true;
};

StoredForm unpack_storage(Unpacker& unpacker) {
  StoredForm storage;
  storage.kind = unpacker.take<StoredForm::Kind>();
  storage.chunk_shape = unpacker.take_numbers<std::uint64_t>();
  storage.filters.resize(unpacker.take_count(sizeof(std::uint32_t)));
  for (FilterSpec& filter : storage.filters) {
    filter.filter_id = unpacker.take<std::uint32_t>();
    filter.flags = unpacker.take<std::uint32_t>();
    filter.client_data = unpacker.take_numbers<std::uint32_t>();
    filter.final_client_data = unpacker.take_numbers<std::uint32_t>();
    filter.name = unpacker.take_text();
  }
  return storage;
}

/// Whether two encoded types are one type. HDF5 encodes a type in the version of the file that it
/// comes from, so that equal types may differ in bytes.
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

/// What a row is made of, for messages: "3x4", "1 element".
std::string row_text(const Shape& shape) {
  if (shape.size() < 2) return "one element";
  return shape_text(Shape(shape.begin() + 1, shape.end()));
}

bool same_rows(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

/// What keeps `found` from being appended to `first`, or an empty text.
std::string conflict_of(const ConcatDataset& first, const ConcatDataset& found) {
  const std::string what = "dataset \"" + found.path + "\": ";
  constexpr const char* appended[] = {"a scalar or null dataset", "an array"};
  if (first.appended != found.appended) {
    return what + appended[found.appended ? 1 : 0] + ", but " + appended[first.appended ? 1 : 0] +
           " in the first file";
  }
  if (!first.appended) return std::string();  // Only the first file's counts.
  if (!same_type(first.type, found.type)) {
    if (first.type_text != found.type_text) {
      return what + found.type_text + ", but " + first.type_text + " in the first file";
    }
    return what + found.type_text + ", as in the first file, but with other members, order or size";
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
    // What deflate was told is its level, which whoever decodes does not need.
    if (filters[i].filter_id == deflate_id) continue;
    if (filters[i].final_client_data != other.filters[i].final_client_data) return false;
  }
  return true;
}

std::uint64_t ConcatDataset::row_bytes() const {
  std::uint64_t n_bytes = element_bytes;
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (__builtin_mul_overflow(n_bytes, shape[d], &n_bytes)) return UINT64_MAX;
  }
  return n_bytes;
}

Bytes pack_schema(std::span<const ConcatDataset> datasets) {
  ByteWriter writer;
  for (const ConcatDataset& dataset : datasets) {
    writer.add_text(dataset.path);
    pack_bytes(writer, dataset.type);
    writer.add_text(dataset.type_text);
    writer.add(dataset.element_bytes);
    writer.add(static_cast<std::uint8_t>((dataset.by_value ? 1 : 0) | (dataset.appended ? 2 : 0) |
                                         (dataset.extendable ? 4 : 0)));
    writer.add(dataset.shape);
    pack_storage(writer, dataset.storage);
    pack_bytes(writer, dataset.fill_value);
  }
  return writer.take();
}

Result<std::vector<ConcatDataset>> unpack_schema(std::span<const std::byte> bytes) {
  std::vector<ConcatDataset> datasets;
  Unpacker unpacker(bytes);
  while (unpacker.good() && !unpacker.at_end()) {
    ConcatDataset& dataset = datasets.emplace_back();
    dataset.path = unpacker.take_text();
    dataset.type = unpacker.take_blob();
    dataset.type_text = unpacker.take_text();
    dataset.element_bytes = unpacker.take<std::uint64_t>();
    const auto flags = unpacker.take<std::uint8_t>();
    dataset.by_value = (flags & 1) != 0;
    dataset.appended = (flags & 2) != 0;
    dataset.extendable = (flags & 4) != 0;
    dataset.shape = unpacker.take_numbers<std::uint64_t>();
    dataset.storage = unpack_storage(unpacker);
    dataset.fill_value = unpacker.take_blob();
    if (flags > 7 || dataset.storage.kind > StoredForm::Kind::chunked) {
      return Status(Code::corrupt, "packed schema: dataset " + std::to_string(datasets.size() - 1) +
                                       " has unknown marks");
    }
  }
  if (!unpacker.good()) {
    return Status(Code::corrupt, "packed schema: cut short in dataset " +
                                     std::to_string(datasets.size() - 1) + " of " +
                                     std::to_string(bytes.size()) + " bytes");
  }
  return datasets;
}

std::vector<std::string> schema_conflicts(std::span<const ConcatDataset> schema,
                                          std::span<const ConcatDataset> datasets) {
  std::vector<std::string> lines;
  // As a rule both list the same paths in the same order, and no table is needed.
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

}  // namespace tailrace
