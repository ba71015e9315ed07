// CodeWriter and CodeReader: the stream of codes between a predictor and the entropy stage.
//
// A predictor produces (or consumes) exactly one code per value, in an order of its own that the
// format fixes. It works row by row: reserve() room, fill it, commit(); or take() codes. Behind,
// complete groups of 64 go to group_kernels at once, while they are in the cache; the last group is
// filled up with zeros. kRowCodes is the longest row; longer rows are cut by the predictor.

#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/trz/group_kernels.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRowCodes = 4096;

/// How codes become bytes: grouped classes for Huffman, or bit packing (the fast preset).
enum class CodeForm : std::uint8_t { grouped, packed };

class CodeWriter {
 public:
  CodeWriter(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer)
      : kernels_(kernels), form_(form), buffer_(buffer) {}

  /// Entries that `buffer` must have.
  static constexpr std::size_t buffer_codes = 2 * kRowCodes + 2 * kGroupCodes;

  /// Room for n <= kRowCodes codes, in a row; stays valid until the next reserve().
  std::int32_t* reserve(std::size_t n) {
    if (n_held_ + n > 2 * kRowCodes) drain();
    return buffer_ + n_held_;
  }
  /// The n codes last reserved are there.
  void commit(std::size_t n) { n_held_ += n; }
  /// Fill the last group with zeros and hand everything on.
  void finish();

  GroupCursor grouped;             ///< Set by the owner before the first reserve().
  std::uint8_t* widths = nullptr;  ///< Of the packed form, likewise; advanced.
  std::uint8_t* planes = nullptr;
  std::size_t n_groups = 0;  ///< Handed on so far.

 private:
  void drain();

  const GroupKernels& kernels_;
  CodeForm form_;
  std::int32_t* buffer_;
  std::size_t n_held_ = 0;
};

class CodeReader {
 public:
  /// n_groups: all there are; the streams hold that many (checked before).
  CodeReader(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer, std::size_t n_groups)
      : kernels_(kernels), form_(form), buffer_(buffer), n_groups_left_(n_groups) {}

  /// The next n <= kRowCodes codes, in a row; valid until the next take(). Zeros once the stream
  /// has failed or ended.
  const std::int32_t* take(std::size_t n) {
    if (n_end_ - n_begin_ < n) refill(n);
    const std::int32_t* codes = buffer_ + n_begin_;
    n_begin_ += n;
    return codes;
  }
  bool failed() const { return failed_; }

  GroupCursor grouped;
  const std::uint8_t* widths = nullptr;
  const std::uint8_t* planes = nullptr;

 private:
  void refill(std::size_t n);

  const GroupKernels& kernels_;
  CodeForm form_;
  std::int32_t* buffer_;
  std::size_t n_groups_left_;
  std::size_t n_begin_ = 0;
  std::size_t n_end_ = 0;
  bool failed_ = false;
};

}  // namespace tailrace::trz
