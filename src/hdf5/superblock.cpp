// Decoding of HDF5 superblocks, and lookup3.

#include "hdf5/superblock.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <string>

namespace tailrace {
namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kStatusFlagsAt = 11;     // Versions 2 and 3.
constexpr unsigned kOpenForWriteFlags = 0x05;  // Bit 0: write access, bit 2: SWMR write access.

std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i > 0; --i) {
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[at + i - 1]);
  }
  return value;
}

void set_little_endian(std::span<std::byte> bytes, std::size_t at, std::size_t n,
                       std::uint64_t value) {
  for (std::size_t i = 0; i < n; ++i) bytes[at + i] = std::byte(value >> (8 * i));
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

/// Offsets of a superblock's members from its signature.
struct Fields {
  std::size_t address_bytes;  ///< Size of each address.
  /// Base address, then the address of the extension (versions 2 and 3) or of the free-space index,
  /// then the end of file, and one more.
  std::size_t addresses_at;
  std::size_t checksum_at;  ///< After the addresses; versions 0 and 1 have no checksum.
};

/// @param bytes  at least 16.
Fields fields_of(std::span<const std::byte> bytes) {
  const unsigned version = byte_at(bytes, kVersionAt);
  Fields fields{};
  fields.address_bytes = byte_at(bytes, version < 2 ? 13 : 9);
  fields.addresses_at = version == 0 ? 24 : version == 1 ? 28 : 12;
  fields.checksum_at = fields.addresses_at + 4 * fields.address_bytes;
  return fields;
}

/// The reversible mixing of lookup3's three words.
void mix(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
  a -= c, a ^= std::rotl(c, 4), c += b;
  b -= a, b ^= std::rotl(a, 6), a += c;
  c -= b, c ^= std::rotl(b, 8), b += a;
  a -= c, a ^= std::rotl(c, 16), c += b;
  b -= a, b ^= std::rotl(a, 19), a += c;
  c -= b, c ^= std::rotl(b, 4), b += a;
}

void final_mix(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
}

}  // namespace

std::uint32_t lookup3(std::span<const std::byte> bytes, std::uint32_t initial) {
  std::uint32_t a = 0xdeadbeef + std::uint32_t(bytes.size()) + initial;
  std::uint32_t b = a;
  std::uint32_t c = a;
  std::size_t at = 0;
  const auto word = [&bytes](std::size_t from) {
    return std::uint32_t(little_endian(bytes, from, 4));
  };
  for (; bytes.size() - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    mix(a, b, c);
  }
  if (at == bytes.size()) return c;
  std::array<std::byte, 12> last{};  // The tail is padded with zeros.
  std::memcpy(last.data(), bytes.data() + at, bytes.size() - at);
  a += std::uint32_t(little_endian(last, 0, 4));
  b += std::uint32_t(little_endian(last, 4, 4));
  c += std::uint32_t(little_endian(last, 8, 4));
  final_mix(a, b, c);
  return c;
}

bool has_hdf5_signature(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() &&
         std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) == 0;
}

Result<Superblock> parse_superblock(std::span<const std::byte> bytes, std::uint64_t address) {
  if (!has_hdf5_signature(bytes)) return Status(Code::corrupt, "no HDF5 signature");
  if (bytes.size() < 16) return Status(Code::corrupt, "superblock is truncated");
  Superblock found;
  found.address = address;
  found.version = int(byte_at(bytes, kVersionAt));
  if (found.version > 3) {
    return Status(Code::unsupported, "superblock version is " + std::to_string(found.version) +
                                         ", supported are 0 to 3");
  }
  const bool old_form = found.version < 2;
  const auto [address_bytes, addresses_at, checksum_at] = fields_of(bytes);
  if (address_bytes != 2 && address_bytes != 4 && address_bytes != 8) {
    return Status(Code::unsupported, "superblock has addresses of " +
                                         std::to_string(address_bytes) +
                                         " bytes, supported are 2, 4 and 8");
  }
  found.n_bytes = old_form ? checksum_at + 2 * address_bytes + 24 : checksum_at + 4;
  if (bytes.size() < (old_form ? checksum_at : found.n_bytes)) {
    return Status(Code::corrupt, "superblock is truncated");
  }
  // Stored addresses count from the superblock: the base address is the end of the user block.
  found.base_address = little_endian(bytes, addresses_at, address_bytes);
  found.end_of_file = little_endian(bytes, addresses_at + 2 * address_bytes, address_bytes);
  if (!old_form) {
    found.open_for_write =
        found.version == 3 && (byte_at(bytes, kStatusFlagsAt) & kOpenForWriteFlags) != 0;
    found.checksum_good =
        lookup3(bytes.first(checksum_at)) == std::uint32_t(little_endian(bytes, checksum_at, 4));
  }
  return found;
}

bool clear_open_for_write(std::span<std::byte> bytes) {
  const Result<Superblock> found = parse_superblock(bytes, 0);
  if (!found.ok() || found->version < 2 || !found->checksum_good) return false;
  if ((byte_at(bytes, kStatusFlagsAt) & kOpenForWriteFlags) == 0) return false;
  bytes[kStatusFlagsAt] &= ~std::byte{kOpenForWriteFlags};
  const std::size_t checksum_at = found->n_bytes - 4;
  set_little_endian(bytes, checksum_at, 4, lookup3(bytes.first(checksum_at)));
  return true;
}

Status move_superblock(std::span<std::byte> bytes, std::uint64_t address) {
  TAILRACE_TAKE(const Superblock found, parse_superblock(bytes, 0));
  if (found.base_address != 0) {
    return Status(Code::corrupt, "superblock has base address " +
                                     std::to_string(found.base_address) + ", expected 0");
  }
  const Fields fields = fields_of(bytes);
  const std::uint64_t end = found.end_of_file + address;
  const bool fits = fields.address_bytes == 8 || end >> (8 * fields.address_bytes) == 0;
  if (!fits) {
    return Status(Code::unsupported, "the end of the file, " + std::to_string(end) +
                                         ", does not fit the superblock's addresses of " +
                                         std::to_string(fields.address_bytes) + " bytes");
  }
  set_little_endian(bytes, fields.addresses_at, fields.address_bytes, address);
  set_little_endian(bytes, fields.addresses_at + 2 * fields.address_bytes, fields.address_bytes,
                    end);
  if (found.version < 2) return Status();
  set_little_endian(bytes, fields.checksum_at, 4, lookup3(bytes.first(fields.checksum_at)));
  return Status();
}

}  // namespace tailrace
