// Code sections: written from the streams of the groups, and read into them.

#include "trz/entropy/code_sections.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace tailrace::trz {

// --- Exceptions as bytes and bits.

namespace {

constexpr unsigned kPlainSymbols = 224;  ///< Number of symbols that are z itself.
constexpr unsigned kLeastLength = 8;     ///< Bits of the smallest z without a symbol of its own.

unsigned symbol_of(std::uint32_t z) {
  if (z < kPlainSymbols) return z;
  return kPlainSymbols + static_cast<unsigned>(std::bit_width(z)) - kLeastLength;
}

/// Number of bits that a symbol adds to the string of bits: L - 1, or 0.
unsigned bits_behind(unsigned symbol) {
  return symbol < kPlainSymbols ? 0 : symbol - kPlainSymbols + kLeastLength - 1;
}

}  // namespace

unsigned exception_symbol(std::int32_t code) { return symbol_of(zigzag(code)); }

std::size_t exception_bit_bytes(std::span<const std::uint8_t> symbols) {
  std::size_t n_bits = 0;
  unsigned largest = 0;
  for (const std::uint8_t symbol : symbols) {
    n_bits += bits_behind(symbol);
    largest = symbol > largest ? symbol : largest;
  }
  if (largest >= kExceptionSymbols) return std::numeric_limits<std::size_t>::max();
  return (n_bits + 7) / 8;
}

std::size_t put_exception_symbols(std::span<const std::int32_t> codes, std::uint8_t* symbols,
                                  std::uint8_t* bits) {
  std::uint8_t* const begin = bits;
  std::uint64_t held = 0;
  unsigned n_held = 0;  // Below 8 between two codes.
  for (const std::int32_t code : codes) {
    const std::uint32_t z = zigzag(code);
    const unsigned symbol = symbol_of(z);
    *symbols++ = static_cast<std::uint8_t>(symbol);
    const unsigned n = bits_behind(symbol);
    held |= (z & ((std::uint64_t{1} << n) - 1)) << n_held;
    n_held += n;
    std::memcpy(bits, &held, sizeof held);
    bits += n_held / 8;
    held >>= n_held / 8 * 8;
    n_held %= 8;
  }
  return static_cast<std::size_t>(bits - begin) + (n_held == 0 ? 0 : 1);
}

bool take_exception_symbols(std::span<const std::uint8_t> symbols,
                            std::span<const std::uint8_t> bits, std::int32_t* codes) {
  // This check also ensures that all symbols are valid and that the loop below has all its bits.
  if (exception_bit_bytes(symbols) != bits.size()) return false;
  std::size_t position = 0;  // Position in bits.
  for (const std::uint8_t symbol : symbols) {
    std::uint64_t held = 0;
    const std::size_t first = position / 8;
    if (first + sizeof held <= bits.size()) {
      std::memcpy(&held, bits.data() + first, sizeof held);
    } else if (first < bits.size()) {
      std::memcpy(&held, bits.data() + first, bits.size() - first);
    }
    const unsigned n = bits_behind(symbol);
    const std::uint32_t leading = std::uint32_t{1} << n;
    const auto low = static_cast<std::uint32_t>(held >> (position % 8)) & (leading - 1);
    position += n;
    *codes++ = unzigzag(n == 0 ? symbol : leading | low);
  }
  return true;
}

namespace {

constexpr std::size_t kSlack = 64;  ///< Padding of every stream: kernels access complete vectors.

std::size_t groups_of(std::size_t n_values) { return (n_values + kGroupCodes - 1) / kGroupCodes; }

/// Approximate histogram of all bytes, counted on a part of them. Every byte that occurs has a
/// count > 0.
void count_part(std::span<const std::uint8_t> bytes, Histogram& histogram) {
  const std::uint64_t n_counted = count_some_bytes(bytes, histogram);
  if (n_counted == bytes.size()) return;
  for (std::uint32_t& count : histogram) {
    count = static_cast<std::uint32_t>((count * bytes.size() + n_counted - 1) / n_counted);
  }
}

SectionPlan plan_for(const SectionChoice& choice, const CodeLengths* shared) {
  return {choice.zstd, choice.zstd_level, shared};
}

}  // namespace

// --- writing -----------------------------------------------------------------------------------

bool OutgoingCodes::prepare(std::size_t n_values, CodeForm form, Workspace& workspace) {
  form_ = form;
  const std::size_t n_groups = groups_of(n_values);
  auto* buffer = workspace.area<std::int32_t>(Slot::codes, CodeWriter::kBufferCodes);
  ids_begin_ = workspace.area<std::uint8_t>(Slot::widths, n_groups + kSlack);
  planes_begin_ = workspace.area<std::uint8_t>(Slot::planes, n_groups * 8 * 32 + kSlack);
  if (buffer == nullptr || ids_begin_ == nullptr || planes_begin_ == nullptr) return false;
  writer_.emplace(group_kernels(workspace.isa()), form, buffer);
  if (form == CodeForm::packed) {
    writer_->widths = ids_begin_;
    writer_->planes = planes_begin_;
    return true;
  }
  const std::size_t stream_bytes = n_groups * kGroupCodes + kSlack;
  auto* bytes = workspace.area<std::uint8_t>(Slot::class_bytes, kClasses * stream_bytes);
  exceptions_begin_ =
      workspace.area<std::int32_t>(Slot::exceptions, n_groups * kExceptionsMax + kSlack);
  if (bytes == nullptr || exceptions_begin_ == nullptr) return false;
  GroupCursor& cursor = writer_->grouped;
  cursor.classes = ids_begin_;
  cursor.planes = planes_begin_;
  cursor.exceptions = exceptions_begin_;
  for (std::size_t k = 0; k < kClasses; ++k) {
    cursor.bytes[k] = class_begin_[k] = bytes + k * stream_bytes;
  }
  return true;
}

std::size_t OutgoingCodes::finish() {
  writer_->finish();
  std::size_t total = 64 + section_bytes_max(writer_->n_groups);
  if (form_ == CodeForm::packed) {
    return total + static_cast<std::size_t>(writer_->planes - planes_begin_);
  }
  const GroupCursor& cursor = writer_->grouped;
  total += static_cast<std::size_t>(cursor.planes - planes_begin_);
  for (std::size_t k = 1; k < kClasses; ++k) total += section_bytes_max(class_count(k));
  const auto n_exceptions = static_cast<std::size_t>(cursor.exceptions - exceptions_begin_);
  return total + section_bytes_max(n_exceptions) + 4 * n_exceptions;
}

bool OutgoingCodes::write(const SectionChoice& choice, ChunkWriter& out, Workspace& workspace) {
  const auto ids = std::span<const std::uint8_t>(ids_begin_, writer_->n_groups);
  if (form_ == CodeForm::packed) {
    if (!add_section(ids, plan_for(choice, nullptr), out, workspace)) return false;
    out.bytes(planes_begin_, static_cast<std::size_t>(writer_->planes - planes_begin_));
    return !out.failed();
  }
  if (choice.counted != nullptr) {
    *choice.counted = BookHistograms();
    count_some(*choice.counted);
  }
  const Book* book = choice.book;
  const CodeLengths* id_lengths = book == nullptr ? nullptr : &book->class_ids();
  if (!add_section(ids, plan_for(choice, id_lengths), out, workspace)) return false;
  const GroupCursor& cursor = writer_->grouped;
  out.bytes(planes_begin_, static_cast<std::size_t>(cursor.planes - planes_begin_));
  for (std::size_t k = 1; k < kClasses; ++k) {
    if (class_count(k) == 0) continue;
    const CodeLengths* lengths = book == nullptr ? nullptr : &book->class_bytes(k);
    if (!add_section({class_begin_[k], class_count(k)}, plan_for(choice, lengths), out,
                     workspace)) {
      return false;
    }
  }
  return write_exceptions(choice, out, workspace);
}

bool OutgoingCodes::write_exceptions(const SectionChoice& choice, ChunkWriter& out,
                                     Workspace& workspace) {
  const auto n = static_cast<std::size_t>(writer_->grouped.exceptions - exceptions_begin_);
  out.varint(n);
  if (n == 0) return !out.failed();
  // The symbols overwrite the class ids, and the bits the planes: both are already written.
  auto* symbols = workspace.area<std::uint8_t>(Slot::widths, n + kSlack);
  auto* bits = workspace.area<std::uint8_t>(Slot::planes, 4 * n + kSlack);
  if (symbols == nullptr || bits == nullptr) return false;
  const std::size_t n_bits = put_exception_symbols({exceptions_begin_, n}, symbols, bits);
  const CodeLengths* lengths = choice.book == nullptr ? nullptr : &choice.book->exceptions();
  if (!add_section({symbols, n}, plan_for(choice, lengths), out, workspace)) return false;
  out.bytes(bits, n_bits);
  return !out.failed();
}

void OutgoingCodes::count(BookHistograms& histograms) const {
  count_bytes({ids_begin_, writer_->n_groups}, histograms.class_ids);
  for (std::size_t k = 1; k < kClasses; ++k) {
    count_bytes({class_begin_[k], class_count(k)}, histograms.class_bytes[k]);
  }
  for (const std::int32_t* e = exceptions_begin_; e < writer_->grouped.exceptions; ++e) {
    ++histograms.exceptions[exception_symbol(*e)];
  }
}

void OutgoingCodes::count_some(BookHistograms& histograms) const {
  count_part({ids_begin_, writer_->n_groups}, histograms.class_ids);
  for (std::size_t k = 1; k < kClasses; ++k) {
    count_part({class_begin_[k], class_count(k)}, histograms.class_bytes[k]);
  }
  for (const std::int32_t* e = exceptions_begin_; e < writer_->grouped.exceptions; ++e) {
    ++histograms.exceptions[exception_symbol(*e)];
  }
}

// --- reading -----------------------------------------------------------------------------------

bool IncomingCodes::read(std::size_t n_values, CodeForm form, const Book* book, ChunkReader& in,
                         Workspace& workspace) {
  n_groups_ = groups_of(n_values);
  auto* buffer = workspace.area<std::int32_t>(Slot::codes, CodeWriter::kBufferCodes);
  if (buffer == nullptr) {
    memory_out_ = true;
    return false;
  }
  std::memset(buffer, 0, CodeWriter::kBufferCodes * sizeof(std::int32_t));
  reader_.emplace(group_kernels(workspace.isa()), form, buffer, n_groups_);
  return form == CodeForm::grouped ? read_grouped(book, in, workspace) : read_packed(in, workspace);
}

const std::uint8_t* IncomingCodes::planes(std::size_t n_bytes, ChunkReader& in,
                                          Workspace& workspace) {
  const std::size_t n_left = in.rest().size();
  const std::uint8_t* in_place = in.take(n_bytes);
  if (in_place == nullptr || n_left - n_bytes >= kSlack) return in_place;
  auto* copy = workspace.area<std::uint8_t>(Slot::planes, n_bytes + kSlack);
  memory_out_ = copy == nullptr;
  if (copy != nullptr) std::memcpy(copy, in_place, n_bytes);
  return copy;
}

bool IncomingCodes::read_packed(ChunkReader& in, Workspace& workspace) {
  auto* widths = workspace.area<std::uint8_t>(Slot::widths, n_groups_ + kSlack);
  memory_out_ = widths == nullptr;
  if (memory_out_ || !take_section(in, {widths, n_groups_}, nullptr, workspace)) return false;
  std::size_t n_planes = 0;
  bool valid = true;
  for (std::size_t i = 0; i < n_groups_; ++i) {
    n_planes += widths[i];
    valid = valid && widths[i] <= 32;
  }
  reader_->widths = widths;
  reader_->planes = valid ? planes(8 * n_planes, in, workspace) : nullptr;
  return reader_->planes != nullptr;
}

bool IncomingCodes::read_grouped(const Book* book, ChunkReader& in, Workspace& workspace) {
  auto* ids = workspace.area<std::uint8_t>(Slot::widths, n_groups_ + kSlack);
  memory_out_ = ids == nullptr;
  const CodeLengths* id_lengths = book == nullptr ? nullptr : &book->class_ids();
  if (memory_out_ || !take_section(in, {ids, n_groups_}, id_lengths, workspace)) return false;
  std::size_t counts[256] = {};
  for (std::size_t i = 0; i < n_groups_; ++i) ++counts[ids[i]];
  std::size_t n_planes = 0;
  for (std::size_t k = 0; k < 256; ++k) {
    if (k >= kClasses && counts[k] != 0) return false;
    if (k < kClasses) n_planes += counts[k] * class_planes(k);
  }
  reader_->grouped.classes = ids;
  const std::uint8_t* plane_bytes = planes(8 * n_planes, in, workspace);
  if (plane_bytes == nullptr) return false;
  reader_->grouped.planes = const_cast<std::uint8_t*>(plane_bytes);  // join() only reads.
  return read_classes(book, counts, in, workspace) && read_exceptions(book, in, workspace);
}

bool IncomingCodes::read_classes(const Book* book, const std::size_t* counts, ChunkReader& in,
                                 Workspace& workspace) {
  std::size_t total = 0;
  for (std::size_t k = 1; k < kClasses; ++k) total += counts[k] * class_bytes(k) + kSlack;
  auto* bytes = workspace.area<std::uint8_t>(Slot::class_bytes, total);
  memory_out_ = bytes == nullptr;
  if (memory_out_) return false;
  for (std::size_t k = 1; k < kClasses; ++k) {
    const std::size_t n_bytes = counts[k] * class_bytes(k);
    reader_->grouped.bytes[k] = bytes;
    if (n_bytes != 0) {
      const CodeLengths* lengths = book == nullptr ? nullptr : &book->class_bytes(k);
      if (!take_section(in, {bytes, n_bytes}, lengths, workspace)) return false;
    }
    bytes += n_bytes + kSlack;
  }
  return true;
}

bool IncomingCodes::read_exceptions(const Book* book, ChunkReader& in, Workspace& workspace) {
  const std::uint64_t n_read = in.varint();
  if (in.failed() || n_read > n_groups_ * kExceptionsMax) return false;
  const auto n = static_cast<std::size_t>(n_read);
  auto* codes = workspace.area<std::int32_t>(Slot::exceptions, n + kSlack);
  memory_out_ = codes == nullptr;
  if (memory_out_) return false;
  reader_->grouped.exceptions = codes;
  reader_->grouped.exceptions_end = codes + n;
  if (n == 0) return true;
  auto* symbols = workspace.area<std::uint8_t>(Slot::sample, n + kSlack);
  memory_out_ = symbols == nullptr;
  if (memory_out_) return false;
  const CodeLengths* lengths = book == nullptr ? nullptr : &book->exceptions();
  if (!take_section(in, {symbols, n}, lengths, workspace)) return false;
  const std::size_t n_bits = exception_bit_bytes({symbols, n});
  const std::uint8_t* bits = in.take(n_bits);
  return bits != nullptr && take_exception_symbols({symbols, n}, {bits, n_bits}, codes);
}

}  // namespace tailrace::trz
