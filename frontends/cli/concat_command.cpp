// tailrace concat: many HDF5 files in, one out. Here words become a
// ConcatRequest and its report becomes text; the work is src/concat/concat.cpp.
//
// All ranks check the same arguments, so that a usage error needs no
// communication; what only rank 0 looks at (the list of inputs, whether the
// output may be created) is settled among all.

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "commands.hpp"
#include "concat/concat_inputs.hpp"
#include "concat_report.hpp"
#include "input_list.hpp"
#include "progress_bar.hpp"
#include "core/option_table.hpp"

namespace tailrace::cli {
namespace {

/// "a,b" as a list. @error invalid_argument  a name is empty or comes twice.
Result<std::vector<std::string>> split_names(const char* option, const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= text.size() && !text.empty();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    names.push_back(text.substr(from, to - from));
    const auto same = std::count(names.begin(), names.end(), names.back());
    if (names.back().empty() || same > 1) {
      return Status(
          Code::invalid_argument,
          fmt::format("{} {}: expected names separated by commas, each once", option, text));
    }
    from = to + 1;
  }
  return names;
}

/// "1MiB" or "128x".
Status apply_chunk(const std::string& text, ConcatRequest& request) {
  if (text.empty()) return Status();
  if (text.back() != 'x') {
    const Result<std::uint64_t> bytes = parse_bytes(text);
    const bool shape = text.find('x') != std::string::npos;
    if (!bytes.ok() || *bytes == 0) {
      return Status(Code::invalid_argument,
                    fmt::format("--chunk {}: expected a size such as 1MiB, or "
                                "rows such as 128x{}",
                                text, shape ? "; inner extents are never cut" : ""));
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

/// "NAME[,key=value...]" and the level.
Status apply_codec(const ConcatArguments& arguments, ConcatRequest& request) {
  FieldOptions parsed;
  TAILRACE_TRY(apply_field_options("codec=" + arguments.codec, parsed).within("--codec"));
  if (parsed.codec == "keep" && !parsed.codec_settings.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("--codec {}: keep takes no settings", arguments.codec));
  }
  if (parsed.codec == "auto" || !parsed.bound.lossless()) {
    return Status(Code::invalid_argument,
                  fmt::format("--codec {}: a concatenation keeps every value; say keep, or a "
                              "lossless codec by its name",
                              arguments.codec));
  }
  const bool deflate_is_possible = parsed.codec == "keep" || parsed.codec == "deflate";
  if (arguments.level && !deflate_is_possible) {
    return Status(
        Code::invalid_argument,
        fmt::format("--level is deflate's; of another codec say --codec {},level=N", parsed.codec));
  }
  request.codec = parsed.codec;
  request.codec_settings = parsed.codec_settings;
  request.level = arguments.level;
  return Status();
}

/// What is out of range or contradicts itself.
Status check_together(const ConcatArguments& arguments, const FileOptions& options) {
  const auto refuse = [](const char* text) { return Status(Code::invalid_argument, text); };
  if (arguments.append && options.replace) {
    return refuse("--append adds to the output, --force replaces it: say one of them");
  }
  if (arguments.append && arguments.resume) {
    return refuse("--append cannot be resumed: a killed one has left the output as it was");
  }
  if (arguments.contiguous && !arguments.plain_below.empty()) {
    return refuse(
        "--contiguous stores all datasets plain, --plain-below only "
        "some: say one");
  }
  const bool shapes_chunks = !arguments.chunk.empty() || arguments.level || arguments.dedup ||
                             (arguments.codec != "keep" && arguments.codec != "none");
  if (arguments.contiguous && shapes_chunks) {
    return refuse(
        "--contiguous leaves no chunks for --chunk, --codec, --level "
        "and --dedup to work on");
  }
  if (arguments.on_error != "stop" && arguments.on_error != "skip") {
    return Status(Code::invalid_argument,
                  fmt::format("--on-error {}: expected stop or skip", arguments.on_error));
  }
  if (!(arguments.commit_every_s >= 0)) {
    return Status(Code::invalid_argument, fmt::format("--commit-every {}: expected seconds, >= 0",
                                                      arguments.commit_every_s));
  }
  if (arguments.level && *arguments.level > 9) {
    return Status(Code::invalid_argument,
                  fmt::format("--level {}: expected 0 to 9", *arguments.level));
  }
  const std::string& layout = options.field_defaults.layout;
  if (layout != "claimed" && layout != "dense") {
    return Status(Code::invalid_argument,
                  fmt::format("--layout {}: expected claimed or dense", layout));
  }
  return Status();
}

/// What the arguments ask for, all but the inputs. Not collective: the same on
/// every rank.
Result<ConcatRequest> request_of(const ConcatArguments& arguments) {
  ConcatRequest request;
  request.output = arguments.output;
  request.append = arguments.append;
  request.resume = arguments.resume;
  request.on_error = arguments.on_error == "skip" ? OnError::skip : OnError::stop;
  request.dedup = arguments.dedup;
  request.commit_interval_s = arguments.commit_every_s;
  for (const KeyValue& entry : arguments.file_options) {
    TAILRACE_TRY(apply_file_option(entry, request.options).within("--" + entry.first));
  }
  TAILRACE_TRY(check_together(arguments, request.options));
  TAILRACE_TRY(apply_chunk(arguments.chunk, request));
  TAILRACE_TRY(apply_codec(arguments, request));
  if (!arguments.plain_below.empty()) {
    const Result<std::uint64_t> bytes = parse_bytes(arguments.plain_below);
    if (!bytes.ok()) return bytes.status().within("--plain-below");
    request.plain_below_bytes = *bytes;
  }
  if (arguments.contiguous) {
    request.plain_below_bytes = std::numeric_limits<std::uint64_t>::max();
  }
  Result<std::vector<std::string>> names = split_names("--key", arguments.key_names);
  if (!names.ok()) return names.status();
  request.key_names = std::move(*names);
  return request;
}

/// Whether the output's folder takes files: found out before thousands of inputs are opened. What
/// else may be wrong with the output is the engine's to say. Rank 0's view.
Status check_folder(const std::string& output) {
  const std::filesystem::path parent = std::filesystem::path(output).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!is_directory(folder)) {
    return Status(Code::not_found,
                  fmt::format("cannot create {}: there is no folder {}", output, folder));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return status_from_errno(errno, fmt::format("cannot create {} in folder {}", output, folder));
  }
  return Status();
}

/// Name the inputs, in their order. Collective.
Status find_inputs(const Session& session, const ConcatArguments& arguments,
                   ConcatRequest& request) {
  Result<std::vector<std::string>> inputs =
      read_inputs(session, arguments.files, arguments.list_path);
  if (!inputs.ok()) return inputs.status();
  request.inputs = std::move(*inputs);
  TAILRACE_TRY(session.settle(session.speaks() ? check_folder(request.output) : Status()));
  if (arguments.sort_paths.empty()) return Status();
  const bool paths_given = arguments.sort_paths != "default";
  const Result<std::vector<std::string>> paths =
      split_names("--sort", paths_given ? arguments.sort_paths : "/spill/run,/spill/subrun");
  if (!paths.ok()) return paths.status();
  inputs = sort_inputs(session.comm, std::move(request.inputs), *paths,
                       request.on_error == OnError::skip);
  if (!inputs.ok()) return inputs.status();
  request.inputs = std::move(*inputs);
  return Status();
}

/// Concatenate, and show how far it is. Collective.
Status concatenate_visibly(const Session& session, bool quiet, ConcatOutcome& outcome) {
  const std::string name = std::filesystem::path(outcome.request.output).filename().string();
  ProgressBar bar(name, session.speaks() && !quiet);
  outcome.request.progress = [&](std::uint64_t bytes_done, std::uint64_t bytes_total) {
    bar.update(bytes_done, bytes_total);
  };
  Result<ConcatReport> report = concatenate(session.comm, outcome.request);
  outcome.request.progress = nullptr;
  if (!report.ok()) return report.status();
  outcome.report = std::move(*report);
  return Status();
}

}  // namespace

int run_concat(Session& session, const ConcatArguments& arguments) {
  Result<ConcatRequest> request = request_of(arguments);
  if (!request.ok()) return session.fail(request.status());
  search_plugins_in(request->options.plugin_path);
  ReportFile json;
  Status status = session.settle(json.open(arguments.json_path, session.speaks()));
  if (!status.ok()) return session.fail(status);

  ConcatOutcome outcome;
  outcome.request = std::move(*request);
  outcome.n_ranks = session.comm.n_ranks();
  outcome.n_threads = threads_of_each(outcome.request.options.n_threads, session.comm);
  status = find_inputs(session, arguments, outcome.request);
  if (status.ok()) status = concatenate_visibly(session, arguments.quiet, outcome);
  if (!status.ok()) return session.fail(status);

  if (session.speaks()) {
    if (!arguments.quiet && !json.to_stdout()) fmt::print("{}", concat_text(outcome));
    // What was left out must not go unseen, however quiet the rest is.
    for (const std::string& file : outcome.report.skipped) session.remark("left out: " + file);
    for (const std::string& remark : outcome.report.remarks) {
      if (!arguments.quiet) session.remark(remark);
    }
    if (json.wanted()) status = json.finish(json_text(concat_json(outcome)));
  }
  status = session.settle(status);
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
