// Options: every knob as a struct, and the one parser that turns "key=value,key=value" into it.
//
// A field's own options win over the file's defaults. Unknown keys are never dropped: in a field's
// text they are handed to the codec as its settings (the codec refuses what it does not know), in a
// file's text they are an error.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/box.hpp"
#include "core/error_bound.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"

namespace tailrace {

using KeyValue = std::pair<std::string, std::string>;

/// Split "a=1,b=rel=2,c" into {a,1}, {b,rel=2}, {c,""}. @error invalid_argument  an empty key.
Result<std::vector<KeyValue>> split_key_values(std::string_view text);

/// Parse "64", "64k", "8MiB", "1.5GB" into bytes. k, M, G are powers of 1000 with B ("MB") and of
/// 1024 with iB ("MiB") or bare ("M"). @error invalid_argument  no number, negative, or unknown
/// unit.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// "8.0 MiB", three significant digits.
std::string bytes_text(std::uint64_t n_bytes);

/// Parse "on", "off", "yes", "no", "true", "false", "1", "0".
Result<bool> parse_switch(std::string_view key, std::string_view text);

/// Parse a whole number >= least. @error invalid_argument
Result<std::uint64_t> parse_count(std::string_view key, std::string_view text, std::uint64_t least);

/// Parse "512x512x512" (or "scalar") into extents. @error invalid_argument
Result<Shape> parse_shape(std::string_view text);

/// Whether `text` matches the glob `pattern` ('*' any run, '?' one character; '/' is ordinary).
/// A pattern without '/' is also tried against the last component of a path.
bool glob_matches(std::string_view pattern, std::string_view text);

enum class Verify : std::uint8_t {
  automatic,  ///< On for lossy codecs whose bound is not ours to prove.
  on,
  off
};

/// What a field is written with. Empty optionals take the file's default.
struct FieldOptions {
  std::string codec = "deflate";
  std::vector<KeyValue> codec_settings;  ///< level=5, cd=1:2:3, ...: the codec's own keys.
  ErrorBound bound;                      ///< none: lossless.
  std::optional<Shape> chunk_shape;      ///< chunk=64x64x64, chunk=1000x: exactly this.
  std::uint64_t chunk_bytes = 8U << 20;  ///< chunk=8MiB: largest preferred chunk is twice this.
  std::string layout = "claimed";
  Verify verify = Verify::automatic;
  bool fall_back_to_raw =
      true;                  ///< A chunk that its codec cannot keep within bounds: raw, or error.
  bool allow_holes = false;  ///< Elements that no rank puts get the fill value.
  std::optional<double> fill_value;  ///< Kept exactly, and left out of the value range.
  bool over_time = false;    ///< A leading unlimited dimension; each end_step adds one entry.
  bool codec_given = false;  ///< False: "portable" takes over when a bound is given.
  bool codec_given_for_field = false;  ///< False: integers are spared a lossy default codec.
};

/// Apply "codec=zfp,bound=abs=1e3" on top of `options`.
/// @error invalid_argument  a value that does not parse; the text names the key.
Status apply_field_options(std::string_view text, FieldOptions& options);
Status apply_field_option(const KeyValue& entry, FieldOptions& options);

/// How the file is written.
struct FileOptions {
  FieldOptions field_defaults;
  std::uint64_t n_threads = 0;              ///< Encode threads a rank; 0: cores / ranks on node.
  std::uint64_t memory_bytes = 1ULL << 30;  ///< Cap on what Tailrace allocates, per rank.
  std::uint64_t write_buffer_bytes = 16U << 20;  ///< Largest single write.
  std::uint64_t alignment_bytes = 1;             ///< Addresses of writes are multiples of this.
  bool direct_io = false;                        ///< O_DIRECT; alignment becomes at least 4096.
  bool sync = true;                              ///< fdatasync before and after each commit.
  bool journal = false;                          ///< Redo journal against torn metadata writes.
  bool replace = false;                          ///< An existing file may be replaced (--force).
  bool trace = false;
  std::string plugin_path;  ///< Searched before HDF5_PLUGIN_PATH.
  /// How the output is opened; empty: an ordinary POSIX file. Tests put faults in here.
  std::function<Result<std::unique_ptr<Storage>>(const std::string& path, bool create)>
      open_storage;
};

/// Apply "threads=2,memory=256MB,codec=sz3,bound=rel=1e-3" on top of `options`; field keys become
/// the defaults of all fields. @error invalid_argument
Status apply_file_options(std::string_view text, FileOptions& options);
Status apply_file_option(const KeyValue& entry, FileOptions& options);

}  // namespace tailrace
