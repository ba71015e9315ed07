// Options: every knob as a struct, and the parsing of single values.
//
// What options there are, what they mean, who must give them alike and how they are read from a
// text stands in one table (option_table.hpp).

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/losses.hpp"
#include "core/storage.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

using KeyValue = std::pair<std::string, std::string>;

/// "option KEY=TEXT: expected ...".
Status bad_option_value(std::string_view key, std::string_view text, std::string_view expected);

/// The number at the start of `text`; what follows it stays in `rest`.
std::optional<double> leading_number(std::string_view text, std::string_view& rest);

/// Without the blanks and line ends around it.
std::string_view trimmed(std::string_view text);

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

/// True if `text` matches the glob `pattern` ('*' any run, '?' one character, a backslash before
/// either or before ':' takes it as it is; '/' is ordinary).
/// A pattern without '/' is also tried against the last component of a path.
bool glob_matches(std::string_view pattern, std::string_view text);

/// Where the first of `characters` stands in a glob without a backslash before it; npos: nowhere.
std::size_t find_unescaped(std::string_view pattern, std::string_view characters);

enum class Verify : std::uint8_t {
  automatic,  ///< On for lossy codecs whose bound is not ours to prove.
  on,
  off
};

/// What an automatic choice of the codec is to make small.
enum class Objective : std::uint8_t {
  speed,    ///< The time of the call, but for 3 %, which may buy bytes.
  size,     ///< The file.
  balanced  ///< The file, among choices that let the call take at most a tenth longer.
};

/// The layout of a whole file whose metadata lie in front of all data; its chunks go as claimed
/// ones.
inline constexpr std::string_view front_layout = "front";

/// Bytes that the layouts predictive and arena reserve beyond the predicted ones.
struct SpaceGoal {
  double ratio = 0;                 ///< Reserved over predicted bytes, >= 1; 0: by the weight.
  double performance_weight = 0.5;  ///< 0: storage alone counts; 1: performance alone.
};

/// What a field is written with. Empty optionals take the file's default.
struct FieldOptions {
  std::string codec = "deflate";
  std::vector<KeyValue> codec_settings;  ///< level=5, cd=1:2:3, ...: the codec's own keys.
  ErrorBound bound;                      ///< none: lossless.
  bool bound_given = false;              ///< bound=none counts: a target then leaves it exact.
  Guards guards;                         ///< guard=: what values keep besides the bound.
  Losses earlier_loss;                   ///< earlier-loss=: of the values as they are put.
  std::optional<Shape> chunk_shape;      ///< chunk=64x64x64, chunk=1000x: exactly this.
  std::uint64_t chunk_bytes = 8U << 20;  ///< chunk=8MiB: largest preferred chunk is twice this.
  std::string layout = "claimed";
  SpaceGoal space;            ///< predictive:SPACE, arena:SPACE.
  double expected_ratio = 0;  ///< Layout hybrid: raw over encoded bytes, as the user expects it.
  double expected_error = 0;  ///< Layout hybrid: by which fraction the ratio may be off.
  Verify verify = Verify::automatic;
  bool fall_back_to_raw =
      true;                  ///< A chunk that its codec cannot keep within bounds: raw, or error.
  bool allow_holes = false;  ///< Elements that no rank puts get the fill value.
  std::optional<double> fill_value;  ///< Kept exactly, and left out of the value range.
  bool allow_wide_bound = false;     ///< A bound that an undeclared fill value widens is kept to.
  /// covered=drop: of a plotfile's level, cells under finer boxes need not keep their values.
  bool drop_covered = false;
  bool over_time = false;    ///< A leading unlimited dimension; each end_step adds one entry.
  bool codec_given = false;  ///< False: "auto" takes over when a bound is given.
  bool codec_given_for_field = false;  ///< False: integers are spared a lossy default codec.
};

/// How an automatic choice is explained; the report names its candidates in any case.
enum class Why : std::uint8_t { off, predicted, measured };

/// When the work of a step is done; docs/in-situ.md.
enum class StepMode : std::uint8_t {
  sync,    ///< Within end_step.
  async,   ///< On threads of ours while the application computes.
  in_situ  ///< In the idle time that the application marks, by a plan.
};

/// Which attributes of a file say how it was encoded; docs/format.md.
enum class Notes : std::uint8_t {
  off,  ///< None: nobody can tell later which bound was kept.
  one,  ///< Of lossy datasets their own, and one of the file that tells of all others.
  all   ///< Of every dataset its own, with the versions.
};

/// Whose HDF5 a new file is made for; docs/format.md.
enum class Compatibility : std::uint8_t {
  automatic,  ///< Everyone's, but for datasets that grow from step to step.
  everyone,   ///< Forms of HDF5 1.8, which other implementations of HDF5 read, too.
  v110        ///< Forms of HDF5 1.10: smaller chunk indexes, more attributes in a header.
};

/// The interfaces through which options arrive. Each option lists the doors that serve it; the
/// others refuse it.
enum class Door : std::uint8_t {
  steps = 1,    ///< Fields written step by step: C, C++, Fortran.
  python = 2,   ///< Variables of the Python package.
  pnetcdf = 4,  ///< Variables of PnetCDF programs.
  hdf5 = 8,     ///< Datasets of programs on parallel HDF5.
  serial = 16,  ///< Datasets of programs on serial HDF5: HDF5 writes the file, we encode chunks.
  repack = 32,
  concat = 64
};
/// How the file is written.
struct FileOptions {
  Door door = Door::steps;  ///< Through which the options came. No option of a text.
  StepMode mode = StepMode::sync;
  bool hold_promise = false;  ///< hold=promise: the caller keeps the values until the step is done.
  std::string balance = "best";  ///< Mode in_situ, see schedule/balance.hpp.
  bool node_writes = false;      ///< writers=node: one rank of each node writes, for all of it.
  std::string record_path;       ///< lab.record=FILE: mode in_situ, iterations as they were, JSON.
  std::string scheduler = "search";  ///< Mode in_situ, see schedule/flow_shop.hpp.
  FieldOptions field_defaults;
  std::uint64_t n_threads = 0;              ///< Encode threads a rank; 0: cores / ranks on node.
  std::uint64_t memory_bytes = 1ULL << 30;  ///< Cap on what Tailrace allocates, per rank.
  std::uint64_t write_buffer_bytes = 16U << 20;  ///< Largest single write.
  /// Addresses of writes are multiples of this; 0 (align=auto): as the machine profile says.
  std::uint64_t alignment_bytes = 0;
  bool direct_io = false;  ///< O_DIRECT; alignment becomes at least 4096.
  bool sync = true;        ///< fdatasync before and after each commit.
  bool journal = false;    ///< Redo journal against torn metadata writes.
  bool replace = false;    ///< An existing file may be replaced (--force).
  Compatibility compatibility = Compatibility::automatic;  ///< compatibility=everyone|v110.
  Notes notes = Notes::one;                                ///< attributes=off|one|all.
  bool trace = false;      ///< Keep what each lane did when, for gather_trace().
  std::string trace_path;  ///< trace-file=FILE: write it there when the file is closed.
  Objective objective = Objective::speed;  ///< for=speed|size|balanced: of codec=auto.
  std::string profile_path;     ///< Of `tailrace profile`; empty: the built-in typical values.
  std::string order = "given";  ///< Order of work, see schedule/order.hpp.
  Why why = Why::off;  ///< measured: codec=auto also encodes its sample with each candidate.
  std::uint64_t target_bytes = 0;  ///< target=size=: bounds that make about this size. 0: none.
  double target_psnr_db = 0;       ///< target=psnr=: bounds that make about this PSNR. 0: none.
  /// True if fields without a bound of their own get one from a target.
  bool has_target() const { return target_bytes > 0 || target_psnr_db > 0; }
  std::string plugin_path;  ///< Searched before HDF5_PLUGIN_PATH.
  /// Members that a new file's root group is to have; 0: few, or unknown. No option of a text.
  std::uint64_t expected_root_links = 0;
  /// Uncompressed bytes that the call reads from elsewhere, of all ranks; 0: the caller has them.
  /// No option of a text.
  std::uint64_t input_bytes = 0;
  /// The file does not tell of datasets that are kept exactly. No option of a text.
  bool bare_exact = false;
  /// Filters are those that the source had: nothing is said of what readers need. No option of a
  /// text.
  bool copies_filters = false;
  /// Several chunks may lie at one place. Not for the user; only who writes such a file knows.
  bool shares_chunks = false;
  /// A kill within a commit leaves all of the commit or nothing: commits that change several blocks
  /// of the file in place have a journal. Array files set it. No option of a text.
  bool whole_commits = false;
  /// Lists of a program that makes the metadata itself, by HDF5's ids; -1: none. No options of a
  /// text.
  std::int64_t hdf5_creation_list = -1;
  std::int64_t hdf5_access_list = -1;
  /// How the output is opened; empty: an ordinary POSIX file. Tests put faults in here.
  std::function<Result<std::unique_ptr<Storage>>(const std::string& path, bool create)>
      open_storage;
};

}  // namespace tailrace
