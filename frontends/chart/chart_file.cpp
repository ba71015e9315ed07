// A file written whole or not at all.

#include "chart/chart_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tailrace::chart {

Status write_chart_file(std::string_view bytes, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return status_from_errno(errno, fmt::format("plot \"{}\"", path));
  int failure = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() ? 0 : errno;
  if (std::fclose(file) != 0 && failure == 0) failure = errno;
  if (failure == 0) return {};
  // Not a device, which "/dev/stdout" may be.
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  return status_from_errno(failure, fmt::format("plot \"{}\"", path));
}

}  // namespace tailrace::chart
