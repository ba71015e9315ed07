// Tests that a copy of an HDF5 file contains everything that the original contains.

#include "describe/structure_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/utf8.hpp"
#include "describe/file_properties.hpp"
#include "describe/hdf5_inventory.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

/// Memory for values, per file.
constexpr std::uint64_t kPieceMemoryBytes = 16U << 20;
/// Limit of variable-length values per piece: each value may be long.
constexpr std::uint64_t kPieceListsMax = 1U << 16;

/// One of the two files.
struct ComparedFile {
  std::string path;
  std::shared_ptr<InputBytes> bytes;
  Hdf5Id id;
  std::unique_ptr<Hdf5Inventory> inventory;
  std::uint64_t user_block_bytes = 0;
  BytesBehindEnd behind;
};

/// A dataset of one of the files.
struct ComparedDataset {
  Hdf5Id id;
  Hdf5Id type;
  Hdf5Id space;
  Shape shape;
  bool null = false;
  DescribedType described;
  Hdf5Inventory* inventory = nullptr;
  const char* which = "";  ///< "original", for messages.
};

Status open_compared(const std::string& path, ComparedFile& file) {
  file.path = path;
  // InputBytes::open() rejects special files; HDF5 would wait for the other end of a pipe.
  TAILRACE_TAKE(file.bytes, InputBytes::open(path));
  TAILRACE_TAKE(file.id, open_plain_hdf5(path, H5F_CLOSE_DEFAULT));
  const Hdf5Id creation(H5Fget_create_plist(file.id.get()));
  hsize_t user_block = 0;
  if (!creation.valid() || H5Pget_userblock(creation.get(), &user_block) < 0) {
    return hdf5_failure(Code::corrupt, path + ": the creation property list cannot be read");
  }
  file.user_block_bytes = user_block;
  TAILRACE_TAKE(file.behind, bytes_behind_end(*file.bytes, user_block).within(path));
  TAILRACE_TAKE(file.inventory, Hdf5Inventory::read(file.id.get()).within(path));
  return Status();
}

Result<ComparedDataset> open_dataset(ComparedFile& file, std::size_t object, const char* which) {
  ComparedDataset dataset;
  dataset.which = which;
  dataset.inventory = file.inventory.get();
  TAILRACE_TAKE(dataset.id, file.inventory->open(object));
  dataset.type = Hdf5Id(H5Dget_type(dataset.id.get()));
  dataset.space = Hdf5Id(H5Dget_space(dataset.id.get()));
  if (!dataset.type.valid() || !dataset.space.valid()) {
    return hdf5_failure(Code::corrupt, "the header cannot be read");
  }
  dataset.null = H5Sget_simple_extent_type(dataset.space.get()) == H5S_NULL;
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Sget_simple_extent_dims(dataset.space.get(), extents.data(), nullptr);
  if (rank < 0) return hdf5_failure(Code::corrupt, "the shape cannot be read");
  dataset.shape.assign(extents.begin(), extents.begin() + rank);
  dataset.described = file.inventory->describe_type(dataset.type.get());
  return dataset;
}

/// Chunk shape of a dataset; its complete shape if it is not chunked.
Shape chunk_shape_of(const ComparedDataset& dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset.id.get()));
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const bool chunked = H5Pget_layout(creation.get()) == H5D_CHUNKED;
  const int rank = chunked ? H5Pget_chunk(creation.get(), int(chunk.size()), chunk.data()) : 0;
  Shape shape(chunk.begin(), chunk.begin() + std::max(rank, 0));
  if (shape.size() != dataset.shape.size()) return Shape(dataset.shape.size(), 1);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shape[d] = std::clamp<std::uint64_t>(shape[d], 1, std::max<std::uint64_t>(dataset.shape[d], 1));
  }
  return shape;
}

/// Cut a shape into pieces of about `n_most` values: complete chunks unless these are larger.
ChunkGrid pieces_of(const Shape& shape, Shape piece, std::uint64_t n_most) {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : piece) {
    if (__builtin_mul_overflow(n, extent, &n)) n = UINT64_MAX;
  }
  for (std::size_t d = 0; d < piece.size() && n > n_most; ++d) {
    const std::uint64_t inner = n / piece[d];
    piece[d] = std::max<std::uint64_t>(n_most / inner, 1);
    n = inner * piece[d];
  }
  for (std::size_t d = piece.size(); d-- > 0;) {
    const std::uint64_t times = std::max<std::uint64_t>(n_most / n, 1);
    const std::uint64_t longer = times < shape[d] / piece[d] + 1 ? piece[d] * times : shape[d];
    n = n / piece[d] * longer;
    piece[d] = longer;
    if (longer < shape[d]) break;
  }
  return {shape, std::move(piece)};
}

/// Location of a dataset's values.
enum class ValuesAre : std::uint8_t { unwritten, here, elsewhere };

ValuesAre place_of_values(const ComparedDataset& dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset.id.get()));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0) {
    return ValuesAre::elsewhere;
  }
  return H5Dget_storage_size(dataset.id.get()) == 0 ? ValuesAre::unwritten : ValuesAre::here;
}

/// True if HDF5 defines no value for elements that were never written.
bool is_unfilled(const ComparedDataset& dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset.id.get()));
  H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  H5Pfill_value_defined(creation.get(), &defined);
  H5Pget_fill_time(creation.get(), &time);
  return defined == H5D_FILL_VALUE_UNDEFINED || time == H5D_FILL_TIME_NEVER;
}

/// Number of stored chunks; 0 if the dataset is not chunked.
std::uint64_t n_stored_chunks(const ComparedDataset& dataset) {
  const Hdf5Id space(H5Dget_space(dataset.id.get()));
  hsize_t n_chunks = 0;
  H5Dget_num_chunks(dataset.id.get(), space.get(), &n_chunks);
  return n_chunks;
}

/// Values of one box of a dataset, in memory.
class BoxOfValues {
 public:
  BoxOfValues(ComparedDataset& dataset, const Box& box)
      : n_(box.n_elements()),
        memory_(make_memory_space(n_)),
        values_(dataset.type.get(), memory_.get(), n_) {
    if (!dataset.shape.empty()) {
      const std::vector<hsize_t> start(box.start.begin(), box.start.end());
      const std::vector<hsize_t> count(box.count.begin(), box.count.end());
      H5Sselect_hyperslab(dataset.space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
    }
    if (H5Dread(dataset.id.get(), dataset.type.get(), memory_.get(), dataset.space.get(),
                H5P_DEFAULT, values_.data()) < 0) {
      status_ = plain_read_failure(dataset.id.get(), "values");
    }
  }
  const Status& status() const { return status_; }
  std::span<const std::byte> bytes() const { return values_.bytes(); }
  std::uint64_t n() const { return n_; }

 private:
  static Hdf5Id make_memory_space(std::uint64_t n) {
    const hsize_t extent = n;
    return Hdf5Id(H5Screate_simple(1, &extent, nullptr));
  }
  std::uint64_t n_;
  Hdf5Id memory_;
  InventoriedValues values_;
  Status status_;
};

/// Number of values that differ, and the first of them.
struct DifferingValues {
  std::uint64_t n = 0;
  std::string first;  ///< "[2, 1]: \"B\", but \"b\" in the original".
};

void compare_boxes(const ComparedDataset& original, const ComparedDataset& copy, const Box& box,
                   const BoxOfValues& a, const BoxOfValues& b, DifferingValues& found) {
  const DescribedType& type_a = original.described;
  const DescribedType& type_b = copy.described;
  const bool alike = difference_of_types(type_a, type_b).what.empty();
  if (alike && is_its_bytes(type_a) && std::ranges::equal(a.bytes(), b.bytes())) return;
  std::string text_a;
  std::string text_b;
  for (std::uint64_t i = 0; i < a.n(); ++i) {
    text_a.clear();
    text_b.clear();
    add_value_text(type_a, a.bytes().data() + i * type_a.n_bytes, original.inventory->names(),
                   text_a);
    add_value_text(type_b, b.bytes().data() + i * type_b.n_bytes, copy.inventory->names(), text_b);
    if (text_a == text_b || found.n++ > 0) continue;
    Shape position = box.start;
    std::uint64_t rest = i;
    for (std::size_t d = position.size(); d-- > 0; rest /= box.count[d]) {
      position[d] += rest % box.count[d];
    }
    found.first = position.empty() ? "" : fmt::format("[{}]: ", fmt::join(position, ", "));
    found.first += shortened_text(text_b) + ", but " + shortened_text(text_a) + " in the original";
  }
}

class StructureCheckImpl final : public StructureCheck {
 public:
  explicit StructureCheckImpl(StructureRules rules) : rules_(std::move(rules)) {}

  Status open_files(const std::string& original, const std::string& copy) {
    TAILRACE_TRY(open_compared(original, original_));
    TAILRACE_TRY(open_compared(copy, copy_));
    InventoryRules rules;
    rules.wanted = rules_.wanted;
    rules.ignored = rules_.ignored;
    rules.may_be_added = [this](std::size_t object) {
      return copy_.inventory->is_dimension_without_variable(object);
    };
    const std::optional<std::string> writer = original_.inventory->netcdf_writer();
    const std::optional<std::string> of_copy = copy_.inventory->netcdf_writer();
    other_writer_ = writer && of_copy && *writer != *of_copy;
    rules.other_writer = other_writer_;
    pairs_ =
        pair_objects(original_.inventory->objects(), copy_.inventory->objects(), rules, of_links_);
    name_objects();
    return Status();
  }

  Result<std::vector<std::string>> compare(StructureFindings& findings) override {
    const Hdf5Scope scope;
    findings.merge(of_links_);
    if (counts("/")) {
      TAILRACE_TRY(compare_user_blocks(findings));
      TAILRACE_TRY(compare_bytes_behind(findings));
      compare_file_properties(findings);
    }
    std::vector<std::string> values;
    for (const ObjectPair& pair : pairs_) {
      if (!counts(pair.path)) continue;
      TAILRACE_TAKE(const DescribedObject a,
                    original_.inventory->describe(pair.original).within(original_.path));
      TAILRACE_TAKE(const DescribedObject b,
                    copy_.inventory->describe(pair.copy).within(copy_.path));
      ObjectRules rules;
      const std::string& walked = original_.inventory->objects().objects[pair.original].path;
      rules.lossy = rules_.lossy.contains(walked);
      rules.follow_external = rules_.follow_external;
      rules.other_writer = other_writer_;
      rules.ignored_attribute = rules_.ignored_attribute;
      compare_described(pair.path, a, b, rules, findings);
      if (a.kind == ObjectKind::dataset && !rules_.fields.contains(walked)) {
        values.push_back(pair.path);
      }
    }
    return values;
  }

  void compare_values(const std::string& path, StructureFindings& findings) override {
    const Hdf5Scope scope;
    const auto pair = by_path_.find(path);
    if (pair == by_path_.end()) return;
    ++findings.n_datasets;
    const Result<std::string> text = difference_of_values(pairs_[pair->second]);
    const std::string what = text.ok() ? *text : text.status().message();
    if (what.empty()) return;
    findings.add({path, "values", object_text(ObjectKind::dataset, path) + ": " + what, true});
  }

 private:
  bool counts(const std::string& path) const {
    return (!rules_.wanted || rules_.wanted(path)) && (!rules_.ignored || !rules_.ignored(path));
  }

  /// Give paired objects the same name in both files. A reference to an object that the copy lacks
  /// is expected to be null.
  void name_objects() {
    const std::vector<InventoryObject>& copies = copy_.inventory->objects().objects;
    std::vector<std::string> names(original_.inventory->objects().objects.size(), "null");
    std::vector<std::string> names_of_copy;
    names_of_copy.reserve(copies.size());
    for (const InventoryObject& object : copies) names_of_copy.push_back(object.path);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      names[pairs_[i].original] = pairs_[i].path;
      names_of_copy[pairs_[i].copy] = pairs_[i].path;
      by_path_.emplace(pairs_[i].path, i);
    }
    original_.inventory->set_names(std::move(names));
    copy_.inventory->set_names(std::move(names_of_copy));
  }

  void compare_file_properties(StructureFindings& findings) const {
    const auto before = file_properties(original_.id.get());
    const auto after = file_properties(copy_.id.get());
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == after[i]) continue;
      findings.add({"/", before[i].first,
                    fmt::format("{}: {} in the original, {} in the compressed file",
                                before[i].first, before[i].second, after[i].second),
                    false});
    }
  }

  Status compare_user_blocks(StructureFindings& findings) const {
    const std::uint64_t n = original_.user_block_bytes;
    const std::uint64_t n_copy = copy_.user_block_bytes;
    if (n != n_copy) {
      findings.add({"/", "user block",
                    fmt::format("user block: {} bytes in the original, {} in the compressed file",
                                n, n_copy)});
      return Status();
    }
    TAILRACE_TAKE(const auto differs, first_difference(0, 0, n));
    if (!differs) return Status();
    findings.add({"/", "user block",
                  fmt::format("user block: byte {} differs in the compressed file", *differs)});
    return Status();
  }

  /// Compare the bytes behind the end. HDF5 ignores them, and programs that rewrite a file drop
  /// them.
  Status compare_bytes_behind(StructureFindings& findings) const {
    const BytesBehindEnd& a = original_.behind;
    const BytesBehindEnd& b = copy_.behind;
    std::string text;
    if (a.n_bytes != b.n_bytes) {
      text = fmt::format("{} in the original, {} in the compressed file", a.n_bytes, b.n_bytes);
    } else {
      TAILRACE_TAKE(const auto differs, first_difference(a.end, b.end, a.n_bytes));
      if (!differs) return Status();
      text = fmt::format("byte {} of {} differs in the compressed file", *differs, a.n_bytes);
    }
    constexpr bool fails = false;
    findings.add(
        {"/", "bytes behind the end", "bytes behind the end of the HDF5 file: " + text, fails});
    return Status();
  }

  /// Position of the first of `n` bytes that differs.
  Result<std::optional<std::uint64_t>> first_difference(std::uint64_t in_original,
                                                        std::uint64_t in_copy,
                                                        std::uint64_t n) const {
    constexpr std::uint64_t piece_bytes = 1U << 20;
    std::vector<std::byte> a;
    std::vector<std::byte> b;
    for (std::uint64_t at = 0; at < n; at += a.size()) {
      a.resize(std::min<std::uint64_t>(n - at, piece_bytes));
      b.resize(a.size());
      TAILRACE_TRY(original_.bytes->read_at(in_original + at, a));
      TAILRACE_TRY(copy_.bytes->read_at(in_copy + at, b));
      if (a == b) continue;
      const auto differ = std::ranges::mismatch(a, b).in1 - a.begin();
      return std::optional(at + static_cast<std::uint64_t>(differ));
    }
    return std::optional<std::uint64_t>();
  }

  /// Sentence about the difference; empty: the values are equal. @error reason why they cannot be
  /// compared
  Result<std::string> difference_of_values(const ObjectPair& pair) {
    TAILRACE_TAKE(ComparedDataset a, open_dataset(original_, pair.original, "original"));
    TAILRACE_TAKE(ComparedDataset b, open_dataset(copy_, pair.copy, "compressed file"));
    // compare() has reported these differences.
    if (a.null || b.null || a.shape != b.shape) return std::string();
    const TypeDifference types = difference_of_types(a.described, b.described);
    if (!types.what.empty() && a.described.kind != b.described.kind) return std::string();
    const ValuesAre place_a = place_of_values(a);
    const ValuesAre place_b = place_of_values(b);
    if (place_a == ValuesAre::unwritten && place_b == ValuesAre::unwritten) return std::string();
    if (std::string text = difference_of_unfilled(a, place_a, b, place_b); !text.empty()) {
      return text;
    }
    const bool elsewhere = place_a == ValuesAre::elsewhere || place_b == ValuesAre::elsewhere;
    if (elsewhere && !rules_.follow_external) {
      // The values of both lie in other files, and their sources have been compared.
      if (place_a == place_b) return std::string();
      return std::string("its values lie in other files and were not compared (--follow-external)");
    }
    return compare_pieces(a, b);
  }

  /// Compare which elements have no value. Such an element equals only another one without a value:
  /// HDF5 refuses to read it, or returns what the caller's memory contained.
  static std::string difference_of_unfilled(const ComparedDataset& a, ValuesAre place_a,
                                            const ComparedDataset& b, ValuesAre place_b) {
    const bool a_unwritten = place_a == ValuesAre::unwritten;
    const bool b_unwritten = place_b == ValuesAre::unwritten;
    if (n_elements(a.shape) == 0) return "";
    if (a_unwritten != b_unwritten && is_unfilled(a_unwritten ? a : b)) {
      return fmt::format(
          "it has values only in the {}; in the {} nothing was written, and the "
          "fill value is undefined",
          a_unwritten ? b.which : a.which, a_unwritten ? a.which : b.which);
    }
    const bool chunked = place_a == ValuesAre::here && place_b == ValuesAre::here &&
                         is_unfilled(a) && chunk_shape_of(a) == chunk_shape_of(b);
    const std::uint64_t n_a = chunked ? n_stored_chunks(a) : 0;
    const std::uint64_t n_b = chunked ? n_stored_chunks(b) : 0;
    if (n_a == n_b) return "";
    return fmt::format(
        "{} of its chunks are written in the original, {} in the compressed file, "
        "and the values of the others are undefined",
        n_a, n_b);
  }

  static Result<std::string> compare_pieces(ComparedDataset& a, ComparedDataset& b) {
    if (n_elements(a.shape) == 0) return std::string();
    const std::uint64_t value_bytes =
        std::max<std::uint64_t>(std::max(a.described.n_bytes, b.described.n_bytes), 1);
    if (n_elements(a.shape) > kHollowBytesMin / value_bytes) {
      return fmt::format("{} values exceed the limit of {}", n_elements(a.shape),
                         kHollowBytesMin / value_bytes);
    }
    std::uint64_t n_most = std::max<std::uint64_t>(kPieceMemoryBytes / value_bytes, 1);
    if (!is_its_bytes(a.described)) n_most = std::min(n_most, kPieceListsMax);
    const ChunkGrid pieces = pieces_of(a.shape, chunk_shape_of(a), n_most);
    DifferingValues found;
    for (std::uint64_t i = 0; i < pieces.n_chunks(); ++i) {
      const Box box = pieces.clipped_box(i);
      const BoxOfValues of_a(a, box);
      if (!of_a.status().ok()) return unreadable(a, of_a.status());
      const BoxOfValues of_b(b, box);
      if (!of_b.status().ok()) return unreadable(b, of_b.status());
      compare_boxes(a, b, box, of_a, of_b, found);
    }
    if (found.n == 0) return std::string();
    if (a.shape.empty()) return "its value is " + found.first;
    return fmt::format("{} of {} {}, first {}", found.n, counted(n_elements(a.shape), "value"),
                       found.n == 1 ? "differs" : "differ", found.first);
  }

  static std::string unreadable(const ComparedDataset& dataset, const Status& why) {
    return fmt::format("values cannot be read in the {}: {}", dataset.which, why.message());
  }

  StructureRules rules_;
  ComparedFile original_;
  ComparedFile copy_;
  StructureFindings of_links_;
  bool other_writer_ = false;  ///< See ObjectRules.
  std::vector<ObjectPair> pairs_;
  std::unordered_map<std::string, std::size_t> by_path_;
};

}  // namespace

Result<std::unique_ptr<StructureCheck>> StructureCheck::open(const std::string& original,
                                                             const std::string& copy,
                                                             StructureRules rules) {
  const Hdf5Scope scope;
  auto check = std::make_unique<StructureCheckImpl>(std::move(rules));
  TAILRACE_TRY(check->open_files(original, copy));
  return std::unique_ptr<StructureCheck>(std::move(check));
}

std::vector<std::byte> pack_findings(const StructureFindings& findings) {
  ByteWriter writer;
  writer.add(findings.n_objects);
  writer.add(findings.n_links);
  writer.add(findings.n_attributes);
  writer.add(findings.n_datasets);
  writer.add(findings.n_ignored_objects);
  writer.add(findings.n_ignored_attributes);
  writer.add(static_cast<std::uint64_t>(findings.counts.size()));
  for (const auto& [aspect, count] : findings.counts) {
    writer.add_text(aspect);
    writer.add(count);
  }
  for (const StructureDifference& difference : findings.differences) {
    writer.add_text(difference.path);
    writer.add_text(difference.aspect);
    writer.add_text(difference.text);
    writer.add(difference.fails);
  }
  const Bytes bytes = writer.take();
  return {bytes.begin(), bytes.end()};
}

StructureFindings unpack_findings(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  StructureFindings findings;
  findings.n_objects = reader.take<std::uint64_t>();
  findings.n_links = reader.take<std::uint64_t>();
  findings.n_attributes = reader.take<std::uint64_t>();
  findings.n_datasets = reader.take<std::uint64_t>();
  findings.n_ignored_objects = reader.take<std::uint64_t>();
  findings.n_ignored_attributes = reader.take<std::uint64_t>();
  for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
    std::string aspect = reader.take_text();
    findings.counts[aspect] = reader.take<StructureFindings::Count>();
  }
  while (!reader.at_end()) {
    StructureDifference difference;
    difference.path = reader.take_text();
    difference.aspect = reader.take_text();
    difference.text = reader.take_text();
    difference.fails = reader.take<bool>();
    findings.differences.push_back(std::move(difference));
  }
  return findings;
}

}  // namespace tailrace
