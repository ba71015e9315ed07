// Drawing the progress line.

#include "progress_bar.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli_common.hpp"

namespace tailrace::cli {
namespace {

constexpr double least_interval_s = 0.1;
/// A remaining time that is guessed from less than this is noise.
constexpr double least_elapsed_s = 0.5;

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, bool shown)
    : label_(std::move(label)),
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
  if (drawn_ && std::chrono::duration<double>(now - last_drawn_).count() < least_interval_s) {
    return false;
  }
  last_drawn_ = now;
  drawn_ = true;
  return true;
}

void ProgressBar::draw(double share, const std::string& what) {
  const double elapsed_s = std::chrono::duration<double>(last_drawn_ - start_).count();
  std::string figures = fmt::format(" {:3.0f}%  {}", 100 * share, what);
  if (share > 0 && elapsed_s >= least_elapsed_s) {
    figures += fmt::format("  {:.0f} s left", elapsed_s * (1 - share) / share);
  }
  const std::size_t width = terminal_width();
  const std::size_t taken = label_.size() + 3 + figures.size() + 1;
  std::string bar;
  if (width > taken + 4) {
    const std::size_t n_cells = std::min<std::size_t>(width - taken, 30);
    const auto n_full = static_cast<std::size_t>(share * static_cast<double>(n_cells));
    bar = fmt::format(" [{}{}]", std::string(n_full, '='), std::string(n_cells - n_full, ' '));
  }
  // Carriage return and erase-line keep the bar on one line, whatever was there before.
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
