// Exit codes, rank 0's output, reports and the progress bar.

#include "cli_common.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "core/comm.hpp"
#include "core/environment.hpp"
#include "filters/own_filters.hpp"
#include "hdf5/filter_plugins.hpp"

namespace tailrace::cli {

int exit_code(Code code) {
  switch (code) {
    case Code::ok: return kExitDone;
    case Code::bound_broken: return kExitCheckFailed;
    case Code::invalid_argument:
    case Code::unsupported:
    case Code::not_found:
    case Code::already_exists:
    case Code::disagreement:
    case Code::bad_coverage:
    case Code::plugin_missing:
    case Code::corrupt: return kExitUsage;
    case Code::codec_failed:
    case Code::io_error:
    case Code::no_space:
    case Code::out_of_memory:
    case Code::internal: return kExitResources;
  }
  return kExitResources;
}

int end_of_output(std::string_view program, int code) {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  const Status failure = status_from_errno(errno != 0 ? errno : EIO, "standard output");
  print_to_stderr(fmt::format("{}: {}", program, failure.message()));
  return code == kExitDone ? kExitResources : code;
}

namespace {

/// True if words on this stream may be coloured: a terminal, and neither NO_COLOR nor TERM=dumb.
bool shows_colour(int descriptor) {
  const char* refused = environment_variable("NO_COLOR");  // no-color.org
  const char* terminal = environment_variable("TERM");
  return ::isatty(descriptor) == 1 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

/// Colour the verdicts of a text that has been made printable: whole words, red or yellow.
std::string with_colour(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> verdicts = {
      {{"FAILED", "\x1b[1;31m"}, {"DOUBTFUL", "\x1b[33m"}}};
  constexpr std::string_view plain = "\x1b[0m";
  const auto ends_word = [&](std::size_t at) {
    return at >= text.size() || std::isalnum(static_cast<unsigned char>(text[at])) == 0;
  };
  for (const auto& [word, colour] : verdicts) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || ends_word(at - 1)) && ends_word(end)) {
        text.insert(end, plain);
        text.insert(at, colour);
        at += colour.size() + plain.size();
      }
      at += word.size();
    }
  }
  return text;
}

}  // namespace

void print_text(std::string_view text) {
  std::string shown = printable_lines(std::string(text));
  if (shows_colour(STDOUT_FILENO)) shown = with_colour(std::move(shown));
  fmt::print("{}", shown);
}

void print_to_stderr(std::string_view lines) {
  const TextRoom room = room_of(STDERR_FILENO);
  std::string text;
  for (std::size_t from = 0; from <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', from), lines.size());
    const std::string_view line = lines.substr(from, end - from);
    text += room.may_leave_out ? wrapped(line, 2, 0, room.prose) : printable(std::string(line));
    text += '\n';
    from = end + 1;
  }
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

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
  print_line(failure.message());
  return exit_code(failure.code());
}

void Session::remark(std::string_view text) const { print_line(printable(std::string(text))); }

void Session::print_line(std::string_view lines) const {
  if (!speaks()) return;
  std::cout.flush();
  print_to_stderr(fmt::format("{}{}{}: {}", program, command.empty() ? "" : " ", command, lines));
}

Status start_hdf5(const Session& session, const std::string& plugin_folders) {
  search_plugins_in(plugin_folders);
  return session.agree(hdf5::register_own_filters());
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

Status WholeFile::open(const std::string& path, bool force) {
  if (is_directory(path)) {
    return Status(Code::invalid_argument, "--output " + path + ": is a folder, must be a file");
  }
  if (!force && std::filesystem::exists(path)) {
    return Status(Code::already_exists, path + " exists; --force replaces it");
  }
  path_ = path;
  force_ = force;
  return report_.open(partial(), true);
}

Status WholeFile::finish(std::string_view text) {
  TAILRACE_TRY(report_.finish(text));
  TAILRACE_TRY(give_name(partial(), path_, force_ ? AtName::replaced : AtName::nothing, true));
  path_.clear();
  return Status();
}

WholeFile::~WholeFile() {
  std::error_code error;
  if (report_.wanted() && !path_.empty()) std::filesystem::remove(partial(), error);
}

int run_and_show(const Session& session, const std::string& json_path, bool quiet,
                 const std::function<Result<Shown>()>& work) {
  ReportFile json;
  Status status = session.agree(json.open(json_path, session.speaks()));
  if (!status.ok()) return session.fail(status);
  const Result<Shown> shown = work();
  if (!shown.ok()) return session.fail(shown.status());
  if (session.speaks()) {
    if (!quiet && !json.to_stdout()) print_text(shown->text);
    for (const std::string& remark : shown->remarks) session.remark(remark);
    status = json.finish(shown->json);
  }
  status = session.agree(status);
  return status.ok() ? shown->code : session.fail(status);
}

Result<Shown> at_root(const Session& session, const std::function<Result<Shown>()>& work) {
  TAILRACE_TAKE(Shown shown, session.agree(session.speaks() ? work() : Shown()));
  reduce_all(session.comm, Reduction::max, shown.code);
  return shown;
}

int run_at_root(const Session& session, const std::function<Status()>& work) {
  const Status status = session.agree(session.speaks() ? work() : Status());
  return status.ok() ? kExitDone : session.fail(status);
}

Result<std::string> read_text_file(const std::string& path, const std::string& what) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || is_directory(path)) {
    return Status(Code::not_found, (what.empty() ? path : what) + ": cannot be read");
  }
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

Status check_plot_path(const std::string& path) {
  if (path.empty() || path.ends_with(".png") || path.ends_with(".svg")) return Status();
  return Status(Code::invalid_argument, "--plot " + path + ": must end with .png or .svg");
}

nlohmann::ordered_json document_of(std::string_view command) {
  return {{"schema_version", kJsonSchemaVersion}, {"command", command}};
}

// --- the progress line

namespace {

constexpr double kLeastIntervalS = 0.1;
/// A remaining time that is extrapolated from less than this is noise.
constexpr double kLeastElapsedS = 0.5;

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, bool shown)
    : label_(printable(std::move(label))),
      shown_(shown && ::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_drawn_(start_) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(std::uint64_t bytes_done, std::uint64_t bytes_total) {
  if (bytes_total == 0 || !due()) return;
  const double elapsed_s = std::chrono::duration<double>(last_drawn_ - start_).count();
  const double share =
      std::min(1.0, static_cast<double>(bytes_done) / static_cast<double>(bytes_total));
  draw(share, fmt::format("{} of {}  {} MB/s", size_text(bytes_done), size_text(bytes_total),
                          throughput_text(bytes_done, elapsed_s)));
}

void ProgressBar::update_share(double share, const std::string& what) {
  if (due()) draw(std::clamp(share, 0.0, 1.0), what);
}

bool ProgressBar::due() {
  if (!shown_) return false;
  const Clock::time_point now = Clock::now();
  if (drawn_ && std::chrono::duration<double>(now - last_drawn_).count() < kLeastIntervalS) {
    return false;
  }
  last_drawn_ = now;
  drawn_ = true;
  return true;
}

void ProgressBar::draw(double share, const std::string& what) {
  const double elapsed_s = std::chrono::duration<double>(last_drawn_ - start_).count();
  std::string figures = fmt::format(" {:3.0f}%  {}", 100 * share, what);
  if (share > 0 && elapsed_s >= kLeastElapsedS) {
    figures += fmt::format("  {:.0f} s left", elapsed_s * (1 - share) / share);
  }
  const std::size_t width = terminal_width();
  const std::size_t taken = display_width(label_) + 3 + figures.size() + 1;
  std::string bar;
  if (width > taken + 4) {
    const std::size_t n_cells = std::min<std::size_t>(width - taken, 30);
    const auto n_full = static_cast<std::size_t>(share * static_cast<double>(n_cells));
    bar = fmt::format(" [{}{}]", std::string(n_full, '='), std::string(n_cells - n_full, ' '));
  }
  // Carriage return and erase-line overwrite the previous state of the line.
  fmt::print(stderr, "\r\x1b[2K{}{}{}", label_, bar, figures);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[2K");
  std::fflush(stderr);
}

}  // namespace tailrace::cli
