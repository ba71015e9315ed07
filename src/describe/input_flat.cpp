// Inputs that contain one array and nothing else: NumPy .npy and raw binary.

#include "describe/input_flat.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/checked_product.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// Limit for headers. numpy.load rejects more than 10 000 bytes; 1 MiB is far beyond any real
/// header.
constexpr std::uint64_t kHeaderBytesMax = 1U << 20;

/// Parses the literal. Every take_...() leaves the position unchanged if it does not match.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char expected) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> take_string() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string taken(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return taken;
  }
  std::optional<std::uint64_t> take_number() {
    skip_space();
    std::uint64_t number = 0;
    const char* const first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), number);
    if (error != std::errc() || end == first) return std::nullopt;
    at_ += static_cast<std::size_t>(end - first);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return number;
  }
  bool finished() {
    skip_space();
    return at_ == text_.size();
  }
  std::string_view rest() const { return text_.substr(at_, 60); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<Shape> take_shape(Literal& literal) {
  if (!literal.take('(')) return std::nullopt;
  Shape shape;
  while (!literal.take(')')) {
    const std::optional<std::uint64_t> extent = literal.take_number();
    if (!extent || shape.size() == kMaxRank) return std::nullopt;
    shape.push_back(*extent);
    if (!literal.take(',')) {
      if (!literal.take(')')) return std::nullopt;
      break;
    }
  }
  return shape;
}

Status read_descr(const std::string& descr, NpyHeader& header) {
  const Status refused(
      Code::unsupported,
      "npy dtype \"" + descr + "\" is not supported (f4, f8, i1 to i8 and u1 to u8 are)");
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
    return refused;
  }
  const std::optional<DType> dtype = find_dtype(descr[1], static_cast<std::size_t>(descr[2] - '0'));
  if (!dtype) return refused;
  header.dtype = *dtype;
  const bool little = descr[0] == '<';
  const bool big = descr[0] == '>';
  constexpr bool kNativeIsLittle = std::endian::native == std::endian::little;
  header.swap_bytes = dtype_bytes(*dtype) > 1 && (kNativeIsLittle ? big : little);
  return Status();
}

}  // namespace

bool is_npy(std::string_view first_bytes) { return first_bytes.substr(0, 6) == kMagic; }

Result<NpyHeader> parse_npy_literal(std::string_view text) {
  Literal literal(text);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  const auto malformed = [&](const std::string& expected) {
    return Status(Code::corrupt, "npy header: expected " + expected + ", found \"" +
                                     std::string(literal.rest()) + "\"");
  };
  if (!literal.take('{')) return malformed("a dict literal");
  while (!literal.take('}')) {
    const std::optional<std::string> key = literal.take_string();
    if (!key || !literal.take(':')) return malformed("a key and a colon");
    if (*key == "descr") {
      if (literal.take('[')) {
        return Status(Code::unsupported,
                      "npy dtype is a record of several fields; expected one plain number type");
      }
      const std::optional<std::string> descr = literal.take_string();
      if (!descr) return malformed("a dtype string");
      TAILRACE_TRY(read_descr(*descr, header));
      has_descr = true;
    } else if (*key == "fortran_order") {
      header.fortran_order = literal.take_word("True");
      if (!header.fortran_order && !literal.take_word("False")) return malformed("True or False");
      has_order = true;
    } else if (*key == "shape") {
      std::optional<Shape> shape = take_shape(literal);
      if (!shape) return malformed("a tuple of at most 32 extents");
      header.shape = std::move(*shape);
      has_shape = true;
    } else {
      return malformed("the keys descr, fortran_order and shape, not \"" + *key + "\"");
    }
    if (!literal.take(',')) {
      if (!literal.take('}')) return malformed("a comma or the dict's end");
      break;
    }
  }
  if (!literal.finished()) return malformed("nothing after the dict");
  if (!has_descr || !has_order || !has_shape) {
    return Status(Code::corrupt, "npy header: descr, fortran_order or shape is missing");
  }
  return header;
}

Result<NpyHeader> read_npy_header(const InputBytes& input) {
  std::array<std::byte, 12> preamble = {};
  const std::span<std::byte> first(preamble);
  TAILRACE_TRY(input.read_at(0, first.first(10)));
  const unsigned major = std::to_integer<unsigned>(preamble[6]);
  if (major < 1 || major > 3) {
    return Status(Code::unsupported,
                  input.path() + ": npy version " + std::to_string(major) + "; expected 1, 2 or 3");
  }
  const std::size_t n_length_bytes = major == 1 ? 2 : 4;
  TAILRACE_TRY(input.read_at(8, first.subspan(8, n_length_bytes)));
  std::uint64_t literal_bytes = 0;
  for (std::size_t i = n_length_bytes; i-- > 0;) {
    literal_bytes = literal_bytes << 8U | std::to_integer<std::uint64_t>(preamble[8 + i]);
  }
  const std::uint64_t literal_address = 8 + n_length_bytes;
  if (literal_bytes > kHeaderBytesMax || literal_address + literal_bytes > input.file_bytes()) {
    return Status(
        Code::corrupt,
        input.path() + ": npy header of " + std::to_string(literal_bytes) + " bytes" +
            (literal_bytes > kHeaderBytesMax
                 ? " exceeds the limit of " + std::to_string(kHeaderBytesMax)
                 : " does not fit the file of " + std::to_string(input.file_bytes()) + " bytes"));
  }
  std::string literal(literal_bytes, '\0');
  TAILRACE_TRY(input.read_at(literal_address, std::as_writable_bytes(std::span(literal))));

  TAILRACE_TAKE(NpyHeader header, parse_npy_literal(literal).within(input.path()));
  header.data_address = literal_address + literal_bytes;
  std::uint64_t values_bytes = 0;
  if (!multiply_checked(n_elements(header.shape), dtype_bytes(header.dtype), values_bytes) ||
      values_bytes != input.file_bytes() - header.data_address) {
    return Status(Code::corrupt, input.path() + ": " + std::string(dtype_name(header.dtype)) +
                                     " of shape " + shape_text(header.shape) +
                                     " does not match the " +
                                     std::to_string(input.file_bytes() - header.data_address) +
                                     " bytes after the npy header (truncated?)");
  }
  return header;
}

// --- One class for .npy and raw files: a strided array, transposed while reading if it is in
// Fortran order. The files contain no attributes or other objects, so nothing is carried over.

namespace {

/// Scratch for one transposed slab.
constexpr std::uint64_t kSlabBytes = 4U << 20;

Shape reversed(Shape shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

class FlatInput final : public InputFile {
 public:
  FlatInput(std::string format, std::shared_ptr<InputBytes> bytes, StoredDataset field,
            StridedArray array, bool fortran_order)
      : format_(std::move(format)),
        bytes_(std::move(bytes)),
        fields_({std::move(field)}),
        array_(std::move(array)),
        fortran_order_(fortran_order) {}

  const std::string& format() const override { return format_; }
  const std::vector<StoredDataset>& fields() const override { return fields_; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index != 0) {
      return Status(Code::invalid_argument, bytes_->path() +
                                                ": the file has one field; requested number " +
                                                std::to_string(field_index + 1));
    }
    if (!fortran_order_) return read_strided_box(*bytes_, array_, box, values);
    return read_transposed(box, values);
  }

  Result<std::vector<std::string>> carry_over_objects(Hdf5File&) override {
    return std::vector<std::string>();
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File&, const CopiedObjects&) override {
    return std::vector<std::string>();
  }

 private:
  /// Read a box of an array that the file stores with reversed dimensions. Slabs along the file's
  /// slowest dimension make reads sequential and bound the scratch; each slab is then scattered.
  Status read_transposed(const Box& box, std::span<std::byte> values) const {
    const StoredDataset& field = fields_[0];
    TAILRACE_TRY(
        check_read_request(bytes_->path(), field.shape, box, array_.element_bytes, values.size()));
    if (box.empty()) return Status();
    const std::size_t last = field.shape.size() - 1;
    const std::uint64_t entry_bytes = box.n_elements() / box.count[last] * array_.element_bytes;
    const std::uint64_t n_per_slab = std::max<std::uint64_t>(1, kSlabBytes / entry_bytes);
    Buffer slab_values(std::min(n_per_slab, box.count[last]) * entry_bytes);
    if (!slab_values.allocated()) {
      return Status(Code::out_of_memory, bytes_->path() +
                                             ": not enough memory to transpose a slab of " +
                                             std::to_string(entry_bytes) + " bytes");
    }
    for (std::uint64_t done = 0; done < box.count[last]; done += n_per_slab) {
      Box slab = box;
      slab.start[last] += done;
      slab.count[last] = std::min(n_per_slab, box.count[last] - done);
      const Box file_box = {reversed(slab.start), reversed(slab.count)};
      const std::uint64_t n_bytes = slab.n_elements() * array_.element_bytes;
      TAILRACE_TRY(read_strided_box(*bytes_, array_, file_box, slab_values.bytes().first(n_bytes)));
      scatter(slab, box, slab_values.data(), values.data());
    }
    return Status();
  }

  /// Copy a slab from file order (first dimension fastest) into the row-major box.
  void scatter(const Box& slab, const Box& box, const std::byte* from, std::byte* to) const {
    const std::size_t rank = box.rank();
    Shape stride(rank, 1);
    for (std::size_t d = rank - 1; d-- > 0;) stride[d] = stride[d + 1] * box.count[d + 1];
    Box file_order = {reversed(slab.start), reversed(slab.count)};
    for_each_position(file_order, [&](const Shape& at) {
      std::uint64_t position = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        position += (at[rank - 1 - d] - box.start[d]) * stride[d];
      }
      std::memcpy(to + position * array_.element_bytes, from, array_.element_bytes);
      from += array_.element_bytes;
    });
  }

  std::string format_;
  std::shared_ptr<InputBytes> bytes_;
  std::vector<StoredDataset> fields_;
  StridedArray array_;  // In the file's order of dimensions.
  bool fortran_order_;
};

std::unique_ptr<InputFile> make_flat_input(std::string format, std::shared_ptr<InputBytes> bytes,
                                           const NpyHeader& facts) {
  StoredDataset field;
  field.path = field_path_of_file(bytes->path());
  field.field = true;
  field.dtype = facts.dtype;
  field.element_bytes = dtype_bytes(facts.dtype);
  field.shape = facts.shape;
  field.stored_bytes = bytes->file_bytes() - facts.data_address;
  StridedArray array;
  array.address = facts.data_address;
  // Both orders are the same for at most one dimension.
  const bool transpose = facts.fortran_order && facts.shape.size() > 1;
  array.shape = transpose ? reversed(facts.shape) : facts.shape;
  array.element_bytes = dtype_bytes(facts.dtype);
  array.swap_bytes = facts.swap_bytes;
  array.outer_stride_bytes = array.entry_bytes();
  return std::make_unique<FlatInput>(std::move(format), std::move(bytes), std::move(field),
                                     std::move(array), transpose);
}

}  // namespace

Result<std::unique_ptr<InputFile>> open_npy_input(std::shared_ptr<InputBytes> bytes) {
  TAILRACE_TAKE(const NpyHeader header, read_npy_header(*bytes));
  return make_flat_input("npy", std::move(bytes), header);
}

Result<std::unique_ptr<InputFile>> open_raw_input(std::shared_ptr<InputBytes> bytes,
                                                  const RawFormat& format) {
  if (format.shape.size() > kMaxRank) {
    return Status(Code::invalid_argument, "raw format: " + std::to_string(format.shape.size()) +
                                              " dimensions; at most 32 are supported");
  }
  std::uint64_t expected = 0;
  const bool fits = multiply_checked(n_elements(format.shape), dtype_bytes(format.dtype), expected);
  if (!fits || expected != bytes->file_bytes()) {
    return Status(Code::invalid_argument,
                  bytes->path() + ": " + std::string(dtype_name(format.dtype)) + " of shape " +
                      shape_text(format.shape) + " takes " +
                      (fits ? std::to_string(expected) : "more than 2^64") +
                      " bytes, but the file holds " + std::to_string(bytes->file_bytes()));
  }
  NpyHeader facts;
  facts.dtype = format.dtype;
  facts.shape = format.shape;
  return make_flat_input("raw", std::move(bytes), facts);
}

}  // namespace tailrace
