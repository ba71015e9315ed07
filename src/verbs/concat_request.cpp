// Converts the user's options to a ConcatRequest.

#include "verbs/concat_request.hpp"
#include "core/codec_registry.hpp"
#include "core/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "concat/concat_inputs.hpp"
#include "exec/thread_team.hpp"
#include "policy/door_rules.hpp"
#include "verbs/lay_in_front.hpp"

namespace tailrace::verbs {
namespace {

constexpr const char* kKeepFirstWord = "keep-first";

/// Split "a,b" into a list. @error invalid_argument  a name is empty or occurs twice.
Result<std::vector<std::string>> split_names(const char* option, const std::string& text) {
  std::vector<std::string> names = split_at_commas(text);
  for (const std::string& name : names) {
    if (!name.empty() && std::count(names.begin(), names.end(), name) == 1) continue;
    return Status(
        Code::invalid_argument,
        fmt::format("{} {}: expected names separated by commas, each once", option, text));
  }
  return names;
}

/// Apply --chunk: "1MiB" or "128x".
Status apply_chunk(const std::string& text, ConcatRequest& request) {
  if (text.empty()) return Status();
  if (text.back() != 'x') {
    const Result<std::uint64_t> bytes = parse_bytes(text);
    const bool shape = text.find('x') != std::string::npos;
    if (!bytes.ok() || *bytes == 0) {
      return Status(Code::invalid_argument,
                    fmt::format("--chunk {}: expected a size such as 1MiB, or "
                                "rows such as 128x{}",
                                text, shape ? "; only the first extent can be given" : ""));
    }
    request.chunk_bytes = *bytes;
    return Status();
  }
  const Result<std::uint64_t> rows = parse_count("rows", text.substr(0, text.size() - 1), 1);
  if (!rows.ok()) {
    return Status(Code::invalid_argument,
                  fmt::format("--chunk {}: expected a whole number of rows >= 1", text));
  }
  request.chunk_rows = *rows;
  return Status();
}

/// Apply the codec, "NAME[,key=value...]", and the level.
Status apply_codec(const ConcatArguments& arguments, ConcatRequest& request) {
  FieldOptions parsed;
  TAILRACE_TRY(apply_field_options("codec=" + arguments.codec, parsed).within("--codec"));
  if (parsed.codec == "keep" && !parsed.codec_settings.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("--codec {}: keep has no settings", arguments.codec));
  }
  if (parsed.codec == kAutoCodec || !parsed.bound.lossless()) {
    return Status(
        Code::invalid_argument,
        fmt::format("--codec {}: concat is lossless; expected keep or the name of a lossless codec",
                    arguments.codec));
  }
  const bool deflate_is_possible = parsed.codec == "keep" || parsed.codec == kExactCodec;
  if (arguments.level && !deflate_is_possible) {
    return Status(
        Code::invalid_argument,
        fmt::format("--level applies to codec {} only; for another codec, use --codec {},level=N",
                    kExactCodec, parsed.codec));
  }
  request.codec = parsed.codec;
  request.codec_settings = parsed.codec_settings;
  request.level = arguments.level;
  return Status();
}

/// Reject options that are out of range or contradict each other.
Status check_together(const ConcatArguments& arguments, const FileOptions& options) {
  const auto refuse = [](const char* text) { return Status(Code::invalid_argument, text); };
  if (arguments.append && options.replace) {
    return refuse("--append adds to the output and --force replaces it; choose one");
  }
  if (arguments.append && arguments.resume) {
    return refuse(
        "--append cannot be combined with --resume: a killed append leaves the output unchanged");
  }
  if (arguments.contiguous && !arguments.plain_below.empty()) {
    return refuse(
        "--contiguous stores all datasets contiguous and --plain-below only small ones; "
        "choose one");
  }
  const bool shapes_chunks = !arguments.chunk.empty() || arguments.level || arguments.dedup ||
                             (arguments.codec != "keep" && arguments.codec != plain_codec);
  if (arguments.contiguous && shapes_chunks) {
    return refuse(
        "--contiguous cannot be combined with --chunk, --codec, --level or --dedup: contiguous "
        "datasets have no chunks");
  }
  if (arguments.on_error != "stop" && arguments.on_error != "skip") {
    return Status(Code::invalid_argument,
                  fmt::format("--on-error {}: expected stop or skip", arguments.on_error));
  }
  if (arguments.on_different != "error" && arguments.on_different != kKeepFirstWord) {
    return Status(Code::invalid_argument, fmt::format("--on-different {}: expected error or {}",
                                                      arguments.on_different, kKeepFirstWord));
  }
  if (!(arguments.commit_every_s >= 0)) {
    return Status(Code::invalid_argument, fmt::format("--commit-every {}: expected seconds, >= 0",
                                                      arguments.commit_every_s));
  }
  if (arguments.level && *arguments.level > 9) {
    return Status(Code::invalid_argument,
                  fmt::format("--level {}: expected 0 to 9", *arguments.level));
  }
  TAILRACE_TRY(check_door(options, Door::concat));
  if (arguments.dedup && wants_front(arguments)) {
    return refuse(
        "--layout front cannot be combined with --dedup: it stores every chunk separately");
  }
  return Status();
}

/// Determine the inputs, in order. The output's folder is checked before thousands of inputs are
/// opened; the engine detects other problems of the output. Collective.
Status find_inputs(const VerbRanks& ranks, const ConcatArguments& arguments,
                   ConcatRequest& request) {
  TAILRACE_TAKE(request.inputs, read_inputs(ranks.comm, arguments.files, arguments.list_path));
  Status folder;
  if (ranks.is_root()) folder = check_folder_is_there(request.output);
  if (ranks.is_root() && folder.ok()) folder = check_folder_is_writable(request.output);
  TAILRACE_TRY(ranks.agree(folder));
  if (arguments.sort_paths.empty()) return Status();
  const bool paths_given = arguments.sort_paths != "default";
  TAILRACE_TAKE(const auto paths, split_names("--sort", paths_given ? arguments.sort_paths
                                                                    : "/spill/run,/spill/subrun"));
  const bool skips = request.on_error == OnError::skip;
  TAILRACE_TAKE(request.inputs, sort_inputs(ranks.comm, std::move(request.inputs), paths, skips));
  return Status();
}

}  // namespace

bool wants_front(const ConcatArguments& arguments) {
  const auto last = std::find_if(arguments.file_options.rbegin(), arguments.file_options.rend(),
                                 [](const KeyValue& entry) { return entry.first == "layout"; });
  return last != arguments.file_options.rend() && last->second == kFrontLayout;
}

Result<ConcatRequest> concat_request(const ConcatArguments& arguments) {
  ConcatRequest request;
  request.output = arguments.output;
  request.append = arguments.append;
  request.resume = arguments.resume;
  request.on_error = arguments.on_error == "skip" ? OnError::skip : OnError::stop;
  if (arguments.on_different == kKeepFirstWord) request.on_different = OnDifferent::keep_first;
  request.dedup = arguments.dedup;
  request.commit_interval_s = arguments.commit_every_s;
  for (const KeyValue& entry : arguments.file_options) {
    TAILRACE_TRY(apply_file_option(entry, request.options).within("--" + entry.first));
  }
  if (wants_front(arguments)) request.options.field_defaults.layout = "claimed";
  TAILRACE_TRY(check_together(arguments, request.options));
  TAILRACE_TRY(apply_chunk(arguments.chunk, request));
  TAILRACE_TRY(apply_codec(arguments, request));
  if (!arguments.plain_below.empty()) {
    TAILRACE_TAKE(request.plain_below_bytes,
                  parse_bytes(arguments.plain_below).within("--plain-below"));
  }
  if (arguments.contiguous) {
    request.plain_below_bytes = std::numeric_limits<std::uint64_t>::max();
  }
  TAILRACE_TAKE(request.key_names, split_names("--key", arguments.key_names));
  TAILRACE_TAKE(request.tile_dimensions, split_names("--tile", arguments.tile));
  request.allow_missing_tiles = arguments.allow_missing_tiles;
  return request;
}

Result<ConcatOutcome> concat(const VerbRanks& ranks, const ConcatArguments& arguments,
                             ConcatRequest request) {
  ConcatOutcome outcome;
  outcome.n_ranks = ranks.comm.n_ranks();
  outcome.n_threads = threads_of_each(request.options.n_threads, ranks.comm);
  TAILRACE_TRY(find_inputs(ranks, arguments, request));
  request.progress = ranks.progress;
  TAILRACE_TAKE(ConcatReport report, concatenate(ranks.comm, request));
  outcome.request = std::move(request);
  outcome.request.progress = nullptr;
  outcome.report = std::move(report);
  if (wants_front(arguments)) {
    const ConcatRequest& done = outcome.request;
    TAILRACE_TRY(lay_in_front(ranks, done.output, done.options));
    std::uint64_t n_bytes = ranks.is_root() ? file_bytes_of(done.output) : 0;
    ranks.comm.allreduce(std::span(&n_bytes, 1), Reduction::max);
    outcome.report.output_bytes = n_bytes;
  }
  return outcome;
}

}  // namespace tailrace::verbs
