// CodeWriter and CodeReader: between the predictors and the groups.

#include "codec/trz/code_stream.hpp"

#include <cstring>

namespace tailrace::trz {

void CodeWriter::drain() {
  const std::size_t n_whole = n_held_ / kGroupCodes;
  if (form_ == CodeForm::grouped) {
    kernels_.split(buffer_, n_whole, grouped);
  } else {
    planes = kernels_.pack(buffer_, n_whole, widths, planes);
    widths += n_whole;
  }
  n_groups += n_whole;
  const std::size_t n_rest = n_held_ - n_whole * kGroupCodes;
  std::memmove(buffer_, buffer_ + n_whole * kGroupCodes, n_rest * sizeof(std::int32_t));
  n_held_ = n_rest;
}

void CodeWriter::finish() {
  const std::size_t n_short = n_held_ % kGroupCodes;
  if (n_short != 0) {
    std::memset(buffer_ + n_held_, 0, (kGroupCodes - n_short) * sizeof(std::int32_t));
    n_held_ += kGroupCodes - n_short;
  }
  drain();
}

void CodeReader::refill(std::size_t n) {
  const std::size_t n_held = n_end_ - n_begin_;
  std::memmove(buffer_, buffer_ + n_begin_, n_held * sizeof(std::int32_t));
  n_begin_ = 0;
  n_end_ = n_held;
  // As many groups as fit, so that join() runs over many at a time.
  std::size_t n_groups = (2 * kRowCodes - n_held) / kGroupCodes;
  if (n_groups > n_groups_left_) n_groups = n_groups_left_;
  if (!failed_ && n_groups > 0) {
    if (form_ == CodeForm::grouped) {
      failed_ = !kernels_.join(grouped, n_groups, buffer_ + n_held);
    } else {
      planes = kernels_.unpack(widths, n_groups, planes, buffer_ + n_held);
      widths += n_groups;
    }
    n_groups_left_ -= n_groups;
    if (!failed_) n_end_ += n_groups * kGroupCodes;
  }
  if (n_end_ < n) {
    std::memset(buffer_ + n_end_, 0, (n - n_end_) * sizeof(std::int32_t));
    n_end_ = n;
    failed_ = true;
  }
}

}  // namespace tailrace::trz
