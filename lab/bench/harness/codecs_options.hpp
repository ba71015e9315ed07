// Command line of `tailrace-lab bench codecs`, as strings and parsed.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_arguments.hpp"
#include "core/options.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace CLI {
class App;
}

namespace tailrace::bench {

/// Arguments as strings from the command line.
struct CodecsArguments {
  std::vector<std::string> inputs;
  std::vector<std::string> fields;  ///< Globs.
  std::vector<std::string> fills;   ///< "GLOB:VALUE"
  std::string raw_format;
  std::string codecs =
      "trz,preset=fast,trz,preset=default,trz,preset=ratio,sz3,zfp,zstd,deflate,portable,none";
  std::vector<std::string> bounds;
  std::string chunk = "8MiB";
  std::string n_chunks_max;
  std::string repeat = "7";
  std::string plugin_path;
  std::string csv_path;
  std::string json_path;
};

/// One codec with its settings.
struct CodecChoice {
  std::string label;  ///< "trz-fast": the name and the values of its settings.
  std::string name;
  std::vector<KeyValue> settings;
};

/// Parsed and checked arguments.
struct CodecsOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> fields;  ///< Empty: all.
  std::vector<FillChoice> fills;
  std::string raw_format;
  std::vector<CodecChoice> codecs;
  std::vector<ErrorBound> bounds;
  std::optional<Shape> chunk_shape;  ///< Used for fields with this number of dimensions.
  std::uint64_t chunk_bytes = 8U << 20;
  std::uint64_t n_chunks_max = UINT64_MAX;  ///< Limit for each field.
  std::uint64_t n_repeats = 7;
  std::string plugin_path;
};

/// Make the parser, which fills `arguments`; `arguments` must outlive it.
std::unique_ptr<CLI::App> make_codecs_parser(CodecsArguments& arguments);

/// Parse and check the arguments. @error invalid_argument  names the option.
Result<CodecsOptions> understand(const CodecsArguments& arguments);

}  // namespace tailrace::bench
