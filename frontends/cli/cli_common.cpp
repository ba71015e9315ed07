// Exit codes, rank 0's voice, the way of a report.

#include "cli_common.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include "core/comm.hpp"
#include "hdf5_filter/own_filters.hpp"
#include "progress_bar.hpp"
#include "verbs/input_fields.hpp"

namespace tailrace::cli {

int exit_code(Code code) {
  switch (code) {
    case Code::ok: return exit_done;
    case Code::bound_broken: return exit_check_failed;
    case Code::invalid_argument:
    case Code::unsupported:
    case Code::not_found:
    case Code::already_exists:
    case Code::disagreement:
    case Code::bad_coverage:
    case Code::plugin_missing:
    case Code::corrupt: return exit_usage;
    case Code::codec_failed:
    case Code::io_error:
    case Code::no_space:
    case Code::out_of_memory:
    case Code::internal: return exit_resources;
  }
  return exit_resources;
}

Status Session::settle(const Status& mine) const { return verbs::settle(comm, mine); }

verbs::VerbRanks Session::for_verb(bool quiet, ProgressBar& bar) const {
  verbs::VerbRanks ranks{comm, [this] { return mpi.world(); }, nullptr, nullptr};
  ranks.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
  ranks.remark = [this, quiet, &bar](const std::string& text) {
    bar.clear();
    if (!quiet) remark(text);
  };
  return ranks;
}

int Session::fail(const Status& failure) const {
  remark(failure.message());
  return exit_code(failure.code());
}

void Session::remark(std::string_view text) const {
  if (!speaks()) return;
  std::cout.flush();
  fmt::print(stderr, "tailrace {}: {}\n", command, text);
  std::fflush(stderr);
}

Status start_hdf5(const Session& session, const std::string& plugin_folders) {
  verbs::search_plugins_in(plugin_folders);
  return session.settle(hdf5::register_own_filters());
}

Status ReportFile::open(const std::string& path, bool speaks) {
  path_ = path;
  if (path.empty() || !speaks) return Status();
  wanted_ = true;
  to_stdout_ = path == "-";
  if (to_stdout_) return Status();
  errno = 0;
  stream_.open(path, std::ios::binary | std::ios::trunc);
  if (!stream_) return status_from_errno(errno, "cannot write " + path);
  return Status();
}

Status ReportFile::finish(std::string_view text) {
  if (!wanted_) return Status();
  errno = 0;
  std::ostream& stream = to_stdout_ ? static_cast<std::ostream&>(std::cout) : stream_;
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.flush();
  const bool good = stream.good();
  if (!to_stdout_) stream_.close();
  if (good) return Status();
  return status_from_errno(errno != 0 ? errno : EIO, "cannot write " + path_);
}

int run_and_show(const Session& session, const std::string& json_path, bool quiet,
                 const std::function<Result<Shown>()>& work) {
  ReportFile json;
  Status status = session.settle(json.open(json_path, session.speaks()));
  if (!status.ok()) return session.fail(status);
  const Result<Shown> shown = work();
  if (!shown.ok()) return session.fail(shown.status());
  if (session.speaks()) {
    if (!quiet && !json.to_stdout()) fmt::print("{}", shown->text);
    for (const std::string& remark : shown->remarks) session.remark(remark);
    status = json.finish(shown->json);
  }
  status = session.settle(status);
  return status.ok() ? shown->code : session.fail(status);
}

Result<Shown> at_root(const Session& session, const std::function<Result<Shown>()>& work) {
  Result<Shown> shown = session.speaks() ? work() : Shown();
  TAILRACE_TRY(session.settle(shown.status()));
  reduce_all(session.comm, Reduction::max, shown->code);
  return shown;
}

}  // namespace tailrace::cli
