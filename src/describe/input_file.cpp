// Finds out what a file is from its first bytes, and opens it.

#include "describe/input_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "describe/input_bytes.hpp"
#include "describe/input_flat.hpp"
#include "describe/input_netcdf_classic.hpp"

namespace tailrace {
namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kSignatureBytes = 8;

/// The first bytes from `address`; fewer where the file ends.
Result<std::string> peek(const InputBytes& bytes, std::uint64_t address) {
  if (address >= bytes.file_bytes()) return std::string();
  std::string text(std::min<std::uint64_t>(kSignatureBytes, bytes.file_bytes() - address), '\0');
  TAILRACE_TRY(bytes.read_at(address, std::as_writable_bytes(std::span(text))));
  return text;
}

/// HDF5 looks for its signature at 0, 512, 1024, 2048, ...: user blocks may stand before it.
Result<bool> has_hdf5_signature(const InputBytes& bytes) {
  for (std::uint64_t at = 0; at < bytes.file_bytes(); at = at == 0 ? 512 : at * 2) {
    const Result<std::string> found = peek(bytes, at);
    if (!found.ok()) return found.status();
    if (*found == kHdf5Signature) return true;
  }
  return false;
}

bool is_netcdf_classic(std::string_view first) {
  return first.size() >= 4 && first.substr(0, 3) == "CDF" &&
         (first[3] == 1 || first[3] == 2 || first[3] == 5);
}

std::string printable(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value >= 0x20 && value < 0x7f) {
      text += byte;
    } else {
      text += "\\x";
      text += kDigits[value >> 4U];
      text += kDigits[value & 15U];
    }
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<InputFile>> InputFile::open(const std::string& path,
                                                   const std::optional<RawFormat>& raw) {
  Result<std::shared_ptr<InputBytes>> opened = InputBytes::open(path);
  if (!opened.ok()) return opened.status();
  std::shared_ptr<InputBytes> bytes = std::move(opened).value();
  if (raw) return open_raw_input(std::move(bytes), *raw);
  if (bytes->file_bytes() == 0) return Status(Code::corrupt, path + ": the file is empty");

  const Result<std::string> first = peek(*bytes, 0);
  if (!first.ok()) return first.status();
  if (is_netcdf_classic(*first)) return open_netcdf_classic_input(std::move(bytes));
  if (is_npy(*first)) return open_npy_input(std::move(bytes));
  const Result<bool> hdf5 = has_hdf5_signature(*bytes);
  if (!hdf5.ok()) return hdf5.status();
  if (*hdf5) return open_hdf5_input(path);
  return Status(Code::corrupt, path +
                                   ": expected HDF5, netCDF or .npy, but the file begins with \"" +
                                   printable(*first) + "\" (a raw file needs its dtype and shape)");
}

}  // namespace tailrace
