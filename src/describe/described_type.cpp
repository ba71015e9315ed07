// Datatypes of an HDF5 file without HDF5.

#include "describe/described_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tailrace {
namespace {

using Kind = DescribedType::Kind;

/// Bytes of a number in this machine's order (little-endian), widened to 8 bytes.
std::uint64_t bits_in_order(const DescribedType& type, const std::byte* value) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < type.n_bytes; ++i) {
    const std::size_t from = type.big_endian ? type.n_bytes - 1 - i : i;
    bits |= std::uint64_t{std::to_integer<std::uint8_t>(value[from])} << (8 * i);
  }
  return bits;
}

/// Hexadecimal digits, the most significant byte of a number first.
void add_hex_text(const DescribedType& type, const std::byte* value, std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  const bool turned =
      (type.kind == Kind::integer || type.kind == Kind::floating) && !type.big_endian;
  text += "0x";
  for (std::size_t i = 0; i < type.n_bytes; ++i) {
    const auto byte = std::to_integer<unsigned>(value[turned ? type.n_bytes - 1 - i : i]);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
}

void add_integer_text(const DescribedType& type, const std::byte* value, std::string& text) {
  if (!type.ordinary) return add_hex_text(type, value, text);
  const std::uint64_t bits = bits_in_order(type, value);
  const auto unused = static_cast<unsigned>(64 - 8 * type.n_bytes);
  if (type.is_signed) {
    text += std::to_string(static_cast<std::int64_t>(bits << unused) >> unused);
  } else {
    text += std::to_string(bits);
  }
}

void add_floating_text(const DescribedType& type, const std::byte* value, std::string& text) {
  if (!type.ordinary) return add_hex_text(type, value, text);
  const std::uint64_t bits = bits_in_order(type, value);
  const auto add = [&](auto number) {
    fmt::format_to(std::back_inserter(text), "{}", number);
    if (!std::isnan(number)) return;
    text += " (";
    add_hex_text(type, value, text);
    text += ')';
  };
  if (type.n_bytes == sizeof(float)) {
    const auto low = static_cast<std::uint32_t>(bits);
    float number = 0;
    std::memcpy(&number, &low, sizeof number);
    add(number);
  } else {
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    add(number);
  }
}

void add_enumeration_text(const DescribedType& type, const std::byte* value, std::string& text) {
  for (const auto& [name, bytes] : type.names) {
    if (std::memcmp(bytes.data(), value, type.n_bytes) != 0) continue;
    text += name;
    return;
  }
  text += '(';
  add_integer_text(type.parts.front().of(), value, text);
  text += ')';
}

/// Append a quoted text. Quotes and backslashes are escaped, so that different lists of texts
/// remain different.
void add_quoted_text(const char* characters, std::size_t n, std::string& text) {
  text += '"';
  for (std::size_t i = 0; i < n; ++i) {
    if (characters[i] == '"' || characters[i] == '\\') text += '\\';
    text += characters[i];
  }
  text += '"';
}

/// Append "{a, b, ...}" of `n` consecutive values.
void add_values_text(const DescribedType& type, const std::byte* first, std::size_t n,
                     ReferenceNames& names, std::string& text) {
  text += '{';
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) text += ", ";
    add_value_text(type, first + i * type.n_bytes, names, text);
  }
  text += '}';
}

void add_compound_text(const DescribedType& type, const std::byte* value, ReferenceNames& names,
                       std::string& text) {
  text += '{';
  for (std::size_t i = 0; i < type.parts.size(); ++i) {
    if (i > 0) text += ", ";
    add_value_text(type.parts[i].of(), value + type.parts[i].offset, names, text);
  }
  text += '}';
}

/// A list in memory, with the layout of HDF5's hvl_t.
struct ListInMemory {
  std::size_t n = 0;
  const std::byte* first = nullptr;
};

std::string fact_of(const DescribedType& type, std::size_t index) {
  return index < type.facts.size() ? type.facts[index].second : "absent";
}

bool same_below_byte_order(const DescribedType& original, const DescribedType& copy) {
  if (original.facts.size() != copy.facts.size() || !original.parts.empty()) return false;
  for (std::size_t i = 0; i < original.facts.size(); ++i) {
    if (original.facts[i].first != kByteOrderFact && original.facts[i] != copy.facts[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

TypeDifference difference_of_types(const DescribedType& original, const DescribedType& copy) {
  const std::size_t n_facts = std::max(original.facts.size(), copy.facts.size());
  for (std::size_t i = 0; i < n_facts; ++i) {
    if (i < original.facts.size() && i < copy.facts.size() && original.facts[i] == copy.facts[i]) {
      continue;
    }
    TypeDifference difference;
    difference.what = i < original.facts.size() ? original.facts[i].first : copy.facts[i].first;
    difference.original = fact_of(original, i);
    difference.copy = fact_of(copy, i);
    difference.only_byte_order =
        difference.what == kByteOrderFact && same_below_byte_order(original, copy);
    return difference;
  }
  const std::size_t n_parts = std::min(original.parts.size(), copy.parts.size());
  for (std::size_t i = 0; i < n_parts; ++i) {
    const DescribedType::Part& a = original.parts[i];
    const DescribedType::Part& b = copy.parts[i];
    if (a.label != b.label) return {fmt::format("part {}", i), a.label, b.label};
    if (a.offset != b.offset) {
      return {"offset of " + a.label, std::to_string(a.offset), std::to_string(b.offset)};
    }
    TypeDifference inner = difference_of_types(a.of(), b.of());
    if (inner.what.empty()) continue;
    inner.what += " of " + a.label;
    inner.only_byte_order = false;
    return inner;
  }
  if (original.parts.size() == copy.parts.size()) return {};
  return {"number of members", std::to_string(original.parts.size()),
          std::to_string(copy.parts.size())};
}

bool is_its_bytes(const DescribedType& type) {
  switch (type.kind) {
    case Kind::variable_text:
    case Kind::list:
    case Kind::object_reference:
    case Kind::region_reference: return false;
    case Kind::array: return is_its_bytes(type.parts.front().of());
    case Kind::compound: {
      std::size_t n_bytes = 0;
      for (const DescribedType::Part& part : type.parts) {
        if (!is_its_bytes(part.of())) return false;
        n_bytes += part.of().n_bytes;
      }
      return n_bytes == type.n_bytes;
    }
    default: return true;
  }
}

void add_value_text(const DescribedType& type, const std::byte* value, ReferenceNames& names,
                    std::string& text) {
  switch (type.kind) {
    case Kind::integer: return add_integer_text(type, value, text);
    case Kind::floating: return add_floating_text(type, value, text);
    case Kind::enumeration: return add_enumeration_text(type, value, text);
    case Kind::fixed_text: {
      const auto* characters = reinterpret_cast<const char*>(value);
      // Characters behind a terminating NUL are part of the value, except trailing NULs.
      std::size_t n = type.n_bytes;
      while (n > 0 && characters[n - 1] == '\0') --n;
      return add_quoted_text(characters, n, text);
    }
    case Kind::variable_text: {
      const char* characters = nullptr;
      std::memcpy(&characters, value, sizeof characters);
      return add_quoted_text(characters, characters != nullptr ? std::strlen(characters) : 0, text);
    }
    case Kind::object_reference: text += "-> " + names.object({value, type.n_bytes}); return;
    case Kind::region_reference: text += "-> " + names.region({value, type.n_bytes}); return;
    case Kind::compound: return add_compound_text(type, value, names, text);
    case Kind::array:
      return add_values_text(type.parts.front().of(), value, type.parts.front().n, names, text);
    case Kind::list: {
      ListInMemory list;
      std::memcpy(&list, value, sizeof list);
      return add_values_text(type.parts.front().of(), list.first, list.n, names, text);
    }
    case Kind::bytes: return add_hex_text(type, value, text);
  }
}

}  // namespace tailrace
