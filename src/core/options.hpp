// Options as structs, and parsers of single values.
//
// option_table.hpp lists all options with their meaning, the ranks that must agree on them, and
// their parsers.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/losses.hpp"
#include "core/storage.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/base/near_names.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

using KeyValue = std::pair<std::string, std::string>;

/// Make the error "option KEY=TEXT: expected ...".
Status bad_option_value(std::string_view key, std::string_view text, std::string_view expected);
/// Make the error for a value that is none of `names`; it suggests the nearest one.
Status bad_option_word(std::string_view key, std::string_view text,
                       std::span<const std::string_view> names);

/// Parse the number at the start of `text`; `rest` receives the text after it.
std::optional<double> leading_number(std::string_view text, std::string_view& rest);

/// Split "a=1, b = rel=2,c" into {a,1}, {b,rel=2}, {c,""}. @error invalid_argument  an empty key.
Result<std::vector<KeyValue>> split_key_values(std::string_view text);

/// Parse "64", "64k", "8MiB", "1.5GB" into bytes. k, M, G are powers of 1000 with B ("MB") and of
/// 1024 with iB ("MiB") or bare ("M").
/// @error invalid_argument  not a number, negative, or unknown unit.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// Format bytes with a unit and three significant digits: "8.0 MiB".
std::string bytes_text(std::uint64_t n_bytes);

/// Parse "on", "off", "yes", "no", "true", "false", "1", "0".
Result<bool> parse_switch(std::string_view key, std::string_view text);

/// Parse a whole number >= least. @error invalid_argument
Result<std::uint64_t> parse_count(std::string_view key, std::string_view text, std::uint64_t least);

/// Parse "512x512x512" (or "scalar") into extents. @error invalid_argument
Result<Shape> parse_shape(std::string_view text);

/// True if `text` matches the glob `pattern`: '*' any run, '?' one character, "[xyz]", "[a-z]" one
/// of these, "[!xyz]" one other; a backslash before any of these or ':' takes it as it is; '/' is
/// ordinary. Brackets may also be a part of the name: "*[K]" matches "T [K]".
/// A pattern without '/' is also tried against the last component of a path.
bool glob_matches(std::string_view pattern, std::string_view text);

/// True if a glob can match several names.
bool has_wildcard(std::string_view pattern);

/// Return the position in a glob of the first of `characters` without a preceding backslash; npos
/// if absent.
std::size_t find_unescaped(std::string_view pattern, std::string_view characters);

enum class Verify : std::uint8_t {
  automatic,  ///< Verify lossy codecs whose bound Tailrace does not guarantee.
  on,
  off
};

/// Objective of the automatic choice of a codec.
enum class Objective : std::uint8_t {
  speed,    ///< Shortest call; up to 3 % longer if that makes a smaller file.
  size,     ///< Smallest file.
  balanced  ///< Smallest file among choices that take at most 10 % longer.
};

/// Layout of a complete file with all metadata in front of the data; chunks are placed like claimed
/// ones.
inline constexpr std::string_view kFrontLayout = "front";

/// Bytes that the layouts predictive and arena reserve beyond the predicted ones.
struct SpaceGoal {
  double ratio = 0;                 ///< Reserved over predicted bytes, >= 1; 0: from the weight.
  double performance_weight = 0.5;  ///< 0: only storage counts; 1: only performance.
};

/// Options of a field. Empty optionals use the file's default.
struct FieldOptions {
  std::string codec = "deflate";
  std::vector<KeyValue> codec_settings;  ///< level=5, cd=1:2:3, ...: the codec's own keys.
  ErrorBound bound;                      ///< none: lossless.
  bool bound_given = false;              ///< True for bound=none, too; a target then has no effect.
  Guards guards;                         ///< guard=: properties that values preserve.
  Losses earlier_loss;                   ///< earlier-loss=: losses of the values as they are put.
  std::optional<Shape> chunk_shape;      ///< chunk=64x64x64, chunk=1000x: the exact shape.
  std::uint64_t chunk_bytes = 8U << 20;  ///< chunk=8MiB: the largest preferred chunk is twice this.
  std::string layout = "claimed";
  SpaceGoal space;            ///< predictive:SPACE, arena:SPACE.
  double expected_ratio = 0;  ///< Layout hybrid: raw over encoded bytes, as expected by the user.
  double expected_error = 0;  ///< Layout hybrid: fraction by which the ratio may be off.
  Verify verify = Verify::automatic;
  bool fall_back_to_raw = true;      ///< False: a chunk whose codec breaks the bound is an error.
  bool allow_holes = false;          ///< Elements that no rank puts get the fill value.
  std::optional<double> fill_value;  ///< Stored exactly, and excluded from the value range.
  bool allow_wide_bound = false;     ///< Accept a bound that an undeclared fill value widens.
  /// True (covered=drop): cells of a plotfile's level under finer boxes may lose their values.
  bool drop_covered = false;
  bool over_time = false;    ///< A leading unlimited dimension; each end_step adds one entry.
  bool codec_given = false;  ///< False: "auto" takes over when a bound is given.
  bool codec_given_for_field = false;  ///< False: integers ignore a lossy default codec.
  bool by_role = true;  ///< False (roles=off): a bound for all fields applies to every role.
};

/// How much an automatic choice is explained; the report always names its candidates.
enum class Why : std::uint8_t { off, predicted, measured };

/// Time at which a step is encoded and written; docs/in-situ.md.
enum class StepMode : std::uint8_t {
  sync,    ///< Within end_step.
  async,   ///< Threads of Tailrace work while the application computes.
  in_situ  ///< Idle time that the application marks is used, by a plan.
};

/// Attributes of a file that record its encoding; docs/format.md.
enum class Notes : std::uint8_t {
  off,  ///< None: the kept bounds are not recorded.
  one,  ///< Attributes of lossy datasets, and one of the file for all others.
  all   ///< Attributes of every dataset, with versions.
};

/// HDF5 versions that a new file is made for; docs/format.md.
enum class Compatibility : std::uint8_t {
  automatic,  ///< `everyone`, except datasets that grow from step to step.
  everyone,   ///< Structures of HDF5 1.8, which other implementations of HDF5 also read.
  v110        ///< Structures of HDF5 1.10: smaller chunk indexes, more attributes in a header.
};

/// Interfaces that accept options. Each option lists the doors that serve it; the others reject it.
enum class Door : std::uint8_t {
  steps = 1,    ///< Fields written step by step: C, C++, Fortran.
  python = 2,   ///< Variables of the Python package.
  pnetcdf = 4,  ///< Variables of PnetCDF programs.
  hdf5 = 8,     ///< Datasets of programs on parallel HDF5.
  serial = 16,  ///< Datasets of programs on serial HDF5, which writes the file itself.
  repack = 32,
  concat = 64
};
/// Options of a file.
struct FileOptions {
  Door door = Door::steps;  ///< Interface that the options came from. Not settable in a text.
  StepMode mode = StepMode::sync;
  bool hold_promise = false;  ///< hold=promise: the caller keeps the values until the step is done.
  std::string balance = "best";  ///< Mode in_situ, see schedule/balance.hpp.
  bool node_writes = false;      ///< writers=node: one rank per node writes for all of its ranks.
  std::string record_path;       ///< lab.record=FILE: mode in_situ, recorded iterations, JSON.
  std::string scheduler = "search";  ///< Mode in_situ, see schedule/flow_shop.hpp.
  FieldOptions field_defaults;
  std::uint64_t n_threads = 0;                   ///< Per rank; 0: the node's cores over its ranks.
  std::uint64_t memory_bytes = 1ULL << 30;       ///< Most bytes that Tailrace allocates, per rank.
  std::uint64_t write_buffer_bytes = 16U << 20;  ///< Largest single write.
  /// Writes start at multiples of this; 0 (align=auto): from the machine profile.
  std::uint64_t alignment_bytes = 0;
  bool direct_io = false;  ///< O_DIRECT; alignment becomes at least 4096.
  bool sync = true;        ///< fdatasync before and after each commit.
  bool journal = false;    ///< Redo journal against torn metadata writes.
  bool replace = false;    ///< Allow replacing an existing file (--force).
  Compatibility compatibility = Compatibility::automatic;  ///< compatibility=everyone|v110.
  Notes notes = Notes::one;                                ///< attributes=off|one|all.
  bool trace = false;      ///< Record the activity of each lane, for gather_trace().
  std::string trace_path;  ///< trace-file=FILE: the trace is written there when the file is closed.
  Objective objective = Objective::speed;  ///< for=speed|size|balanced: objective of codec=auto.
  std::string profile_path;                ///< Machine profile; empty: built-in typical values.
  std::string order = "given";             ///< Order of work, see schedule/order.hpp.
  Why why = Why::off;  ///< measured: codec=auto also encodes its sample with each candidate.
  std::uint64_t target_bytes = 0;  ///< target=size=: bounds that make about this size. 0: none.
  double target_psnr_db = 0;       ///< target=psnr=: bounds that make about this PSNR. 0: none.
  /// True if fields without a bound of their own get one from a target.
  bool has_target() const { return target_bytes > 0 || target_psnr_db > 0; }
  std::string plugin_path;  ///< Searched before HDF5_PLUGIN_PATH.
  /// Expected number of members of a new file's root group; 0: few, or unknown. Not settable in a
  /// text.
  std::uint64_t expected_root_links = 0;
  /// Uncompressed bytes that the call reads from elsewhere, all ranks together; 0: the caller has
  /// them. Not settable in a text.
  std::uint64_t input_bytes = 0;
  /// True: the file does not record that datasets are exact. Not settable in a text.
  bool bare_exact = false;
  /// True: the source already used these filters, so the file does not record what readers need.
  /// Not settable in a text.
  bool copies_filters = false;
  /// True: several chunks may share one address. Not settable by the user; only the writer of such
  /// a file knows.
  bool shares_chunks = false;
  /// True: after a kill within a commit the file has all of the commit or nothing. Commits that
  /// change several blocks of the file in place then use a journal. Array files set it. Not
  /// settable in a text.
  bool whole_commits = false;
  /// Property lists of a program that writes the metadata itself, by HDF5 id; -1: none. Not
  /// settable in a text.
  std::int64_t hdf5_creation_list = -1;
  std::int64_t hdf5_access_list = -1;
  /// Opens the output; empty: an ordinary POSIX file. Tests inject faults here.
  std::function<Result<std::unique_ptr<Storage>>(const std::string& path, bool create)>
      open_storage;
};

}  // namespace tailrace
