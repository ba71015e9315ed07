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
Status apply_codec(const ConcatArguments& words, ConcatRequest& request) {
  FieldOptions parsed;
  TAILRACE_TRY(apply_field_options("codec=" + words.codec, parsed).within("--codec"));
  if (parsed.codec == "keep" && !parsed.codec_settings.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("--codec {}: keep has no settings", words.codec));
  }
  if (parsed.codec == kAutoCodec || !parsed.bound.lossless()) {
    return Status(
        Code::invalid_argument,
        fmt::format("--codec {}: concat is lossless; expected keep or the name of a lossless codec",
                    words.codec));
  }
  const bool deflate_is_possible = parsed.codec == "keep" || parsed.codec == kExactCodec;
  if (words.level && !deflate_is_possible) {
    return Status(
        Code::invalid_argument,
        fmt::format("--level applies to codec {} only; for another codec, use --codec {},level=N",
                    kExactCodec, parsed.codec));
  }
  request.codec = parsed.codec;
  request.codec_settings = parsed.codec_settings;
  request.level = words.level;
  return Status();
}

/// Reject options that are out of range or contradict each other.
Status check_together(const ConcatArguments& words, const FileOptions& options) {
  const auto refuse = [](const char* text) { return Status(Code::invalid_argument, text); };
  if (words.append && options.replace) {
    return refuse("--append adds to the output and --force replaces it; choose one");
  }
  if (words.append && words.resume) {
    return refuse(
        "--append cannot be combined with --resume: a killed append leaves the output unchanged");
  }
  if (words.contiguous && !words.plain_below.empty()) {
    return refuse(
        "--contiguous stores all datasets contiguous and --plain-below only small ones; "
        "choose one");
  }
  const bool shapes_chunks = !words.chunk.empty() || words.level || words.dedup ||
                             (words.codec != "keep" && words.codec != plain_codec);
  if (words.contiguous && shapes_chunks) {
    return refuse(
        "--contiguous cannot be combined with --chunk, --codec, --level or --dedup: contiguous "
        "datasets have no chunks");
  }
  if (words.on_error != "stop" && words.on_error != "skip") {
    return Status(Code::invalid_argument,
                  fmt::format("--on-error {}: expected stop or skip", words.on_error));
  }
  if (words.on_different != "error" && words.on_different != kKeepFirstWord) {
    return Status(Code::invalid_argument, fmt::format("--on-different {}: expected error or {}",
                                                      words.on_different, kKeepFirstWord));
  }
  if (!(words.commit_every_s >= 0)) {
    return Status(Code::invalid_argument,
                  fmt::format("--commit-every {}: expected seconds, >= 0", words.commit_every_s));
  }
  if (words.level && *words.level > 9) {
    return Status(Code::invalid_argument, fmt::format("--level {}: expected 0 to 9", *words.level));
  }
  TAILRACE_TRY(check_door(options, Door::concat));
  if (words.dedup && wants_front(words)) {
    return refuse(
        "--layout front cannot be combined with --dedup: it stores every chunk separately");
  }
  return Status();
}

/// Determine the inputs, in order. The output's folder is checked before thousands of inputs are
/// opened; the engine detects other problems of the output. Collective.
Status find_inputs(const VerbRanks& ranks, const ConcatArguments& words, ConcatRequest& request) {
  TAILRACE_TAKE(request.inputs, read_inputs(ranks.comm, words.files, words.list_path));
  Status folder;
  if (ranks.is_root()) folder = check_folder_is_there(request.output);
  if (ranks.is_root() && folder.ok()) folder = check_folder_is_writable(request.output);
  TAILRACE_TRY(ranks.settle(folder));
  if (words.sort_paths.empty()) return Status();
  const bool paths_given = words.sort_paths != "default";
  TAILRACE_TAKE(const auto paths,
                split_names("--sort", paths_given ? words.sort_paths : "/spill/run,/spill/subrun"));
  const bool skips = request.on_error == OnError::skip;
  TAILRACE_TAKE(request.inputs, sort_inputs(ranks.comm, std::move(request.inputs), paths, skips));
  return Status();
}

}  // namespace

bool wants_front(const ConcatArguments& words) {
  const auto last = std::find_if(words.file_options.rbegin(), words.file_options.rend(),
                                 [](const KeyValue& entry) { return entry.first == "layout"; });
  return last != words.file_options.rend() && last->second == kFrontLayout;
}

Result<ConcatRequest> concat_request(const ConcatArguments& words) {
  ConcatRequest request;
  request.output = words.output;
  request.append = words.append;
  request.resume = words.resume;
  request.on_error = words.on_error == "skip" ? OnError::skip : OnError::stop;
  if (words.on_different == kKeepFirstWord) request.on_different = OnDifferent::keep_first;
  request.dedup = words.dedup;
  request.commit_interval_s = words.commit_every_s;
  for (const KeyValue& entry : words.file_options) {
    TAILRACE_TRY(apply_file_option(entry, request.options).within("--" + entry.first));
  }
  if (wants_front(words)) request.options.field_defaults.layout = "claimed";
  TAILRACE_TRY(check_together(words, request.options));
  TAILRACE_TRY(apply_chunk(words.chunk, request));
  TAILRACE_TRY(apply_codec(words, request));
  if (!words.plain_below.empty()) {
    TAILRACE_TAKE(request.plain_below_bytes,
                  parse_bytes(words.plain_below).within("--plain-below"));
  }
  if (words.contiguous) {
    request.plain_below_bytes = std::numeric_limits<std::uint64_t>::max();
  }
  TAILRACE_TAKE(request.key_names, split_names("--key", words.key_names));
  TAILRACE_TAKE(request.tile_dimensions, split_names("--tile", words.tile));
  request.allow_missing_tiles = words.allow_missing_tiles;
  return request;
}

Result<ConcatOutcome> concat(const VerbRanks& ranks, const ConcatArguments& words,
                             ConcatRequest request) {
  ConcatOutcome outcome;
  outcome.n_ranks = ranks.comm.n_ranks();
  outcome.n_threads = threads_of_each(request.options.n_threads, ranks.comm);
  TAILRACE_TRY(find_inputs(ranks, words, request));
  request.progress = ranks.progress;
  TAILRACE_TAKE(ConcatReport report, concatenate(ranks.comm, request));
  outcome.request = std::move(request);
  outcome.request.progress = nullptr;
  outcome.report = std::move(report);
  if (wants_front(words)) {
    const ConcatRequest& done = outcome.request;
    TAILRACE_TRY(lay_in_front(ranks, done.output, done.options));
    std::uint64_t n_bytes = ranks.is_root() ? file_bytes_of(done.output) : 0;
    ranks.comm.allreduce(std::span(&n_bytes, 1), Reduction::max);
    outcome.report.output_bytes = n_bytes;
  }
  return outcome;
}

}  // namespace tailrace::verbs
