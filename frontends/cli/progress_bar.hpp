// ProgressBar: one line on stderr that moves, if stderr is a terminal; otherwise nothing at all.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tailrace::cli {

class ProgressBar {
 public:
  /// @param shown  false keeps it silent (other ranks, --quiet). A pipe or file is silent too.
  ProgressBar(std::string label, bool shown);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Clears the line, so that what is printed next starts on a clean one.
  ~ProgressBar();

  /// Draw, at most ten times a second. Bytes are uncompressed ones.
  void update(std::uint64_t bytes_done, std::uint64_t bytes_total);
  /// The same for work that is not counted in bytes. @param share  done, in [0, 1].
  void update_share(double share, const std::string& what);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  /// Whether it is time to draw again.
  bool due();
  void draw(double share, const std::string& what);

  std::string label_;
  bool shown_ = false;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_drawn_;
};

}  // namespace tailrace::cli
