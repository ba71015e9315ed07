// Opening inputs as the command line describes them.

#include <fmt/format.h>

#include <cstdlib>

#include "commands.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/own_filters.hpp"

namespace tailrace::cli {

void search_plugins_in(const std::string& folders) {
  if (folders.empty()) return;
  const char* before = std::getenv("HDF5_PLUGIN_PATH");
  const std::string all = before == nullptr ? folders : folders + ":" + before;
  ::setenv("HDF5_PLUGIN_PATH", all.c_str(), 1);
}

Result<RawFormat> parse_raw_format(const std::string& text, const char* option) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return Status(Code::invalid_argument,
                  fmt::format("{} {}: expected TYPE:SHAPE such as f32:512x512x512", option, text));
  }
  const std::string where = fmt::format("{} {}", option, text);
  Result<DType> dtype = parse_dtype(text.substr(0, colon));
  if (!dtype.ok()) return dtype.status().within(where);
  Result<Shape> shape = parse_shape(text.substr(colon + 1));
  if (!shape.ok()) return shape.status().within(where);
  return RawFormat{*dtype, *shape};
}

Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format) {
  for (const hdf5::FilterClass* filter_class : hdf5::own_filter_classes()) {
    TAILRACE_TRY(register_filter_class(filter_class));
  }
  if (raw_format.empty()) return InputFile::open(path);
  Result<RawFormat> raw = parse_raw_format(raw_format);
  if (!raw.ok()) return raw.status();
  return InputFile::open(path, *raw);
}

}  // namespace tailrace::cli
