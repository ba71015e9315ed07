// Code shared by the fuzzers: a check that aborts, a reader of structured input, a shared book.

#pragma once

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "trz/base/dtype.hpp"
#include "trz/book/book.hpp"
#include "trz/workspace.hpp"

/// Abort unless the condition holds; libFuzzer saves the input that aborts.
#define FUZZ_CHECK(condition)                                                      \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace tailrace::fuzz {

/// Reads numbers from an input, front to back; zeros after its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t n_bytes) : rest_(data, n_bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    const std::size_t n = std::min(sizeof value, rest_.size());
    if (n > 0) std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  /// Number in 0 .. n - 1.
  unsigned below(unsigned n) { return number<std::uint8_t>() % n; }
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Buffer that is reused between runs. The sanitizer permits access only to the requested bytes.
/// New memory for each run would cost more than decoding a small chunk, since the sanitizer
/// quarantines freed memory. One user at a time.
class Room {
 public:
  /// Return exactly n_bytes bytes, with their previous contents.
  std::span<std::byte> bytes(std::size_t n_bytes) {
    if (n_bytes > n_held_) {
      __asan_unpoison_memory_region(held_.get(), n_held_);
      n_held_ = n_allowed_ = n_bytes + n_bytes / 2;
      held_ = std::make_unique_for_overwrite<std::byte[]>(n_held_);
    }
    if (n_bytes < n_allowed_) {
      __asan_poison_memory_region(held_.get() + n_bytes, n_allowed_ - n_bytes);
    } else {
      __asan_unpoison_memory_region(held_.get(), n_bytes);
    }
    n_allowed_ = n_bytes;
    return {held_.get(), n_bytes};
  }
  std::span<std::byte> copy_of(std::span<const std::uint8_t> from) {
    const std::span<std::byte> to = bytes(from.size());
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return to;
  }
  std::span<std::byte> filled(std::size_t n_bytes, unsigned char with) {
    const std::span<std::byte> to = bytes(n_bytes);
    if (n_bytes > 0) std::memset(to.data(), with, n_bytes);
    return to;
  }

 private:
  std::unique_ptr<std::byte[]> held_;
  std::size_t n_held_ = 0;
  std::size_t n_allowed_ = 0;
};

/// Counts an operation and prints the count at exit, since a run may skip or repeat the operation.
class Count {
 public:
  explicit Count(const char* what) : what_(what) {}
  ~Count() { std::fprintf(stderr, "count %s: %llu\n", what_, n_); }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  void one_more() { ++n_; }

 private:
  const char* what_;
  unsigned long long n_ = 0;
};

/// Book with a code for every symbol; the seeds (codec_seeds.cpp) use the same.
inline const trz::Book& shared_book() {
  static const trz::Book book = [] {
    trz::BookHistograms histograms;
    const auto fill = [](trz::Histogram& histogram) {
      for (std::uint32_t k = 0; k < 256; ++k) {
        histogram[k] = std::uint32_t{1} << (20 - std::min<std::uint32_t>(20, std::min(k, 256 - k)));
      }
    };
    fill(histograms.class_ids);
    for (trz::Histogram& histogram : histograms.class_bytes) fill(histogram);
    fill(histograms.exceptions);
    return trz::Book::from_histograms(histograms);
  }();
  return book;
}

/// Reused workspace of an instruction set: creating one takes longer than decoding a small chunk.
/// Under the address sanitizer an area ends at the requested size, even if its memory is larger.
inline trz::Workspace& kept_workspace(trz::Isa isa) {
  static trz::Workspace workspaces[] = {trz::Workspace(trz::Isa::plain),
                                        trz::Workspace(trz::Isa::avx2),
                                        trz::Workspace(trz::Isa::avx512)};
  return workspaces[static_cast<std::size_t>(isa)];
}

/// True if two arrays are equal bit for bit, where any NaN equals any other. The machine chooses
/// which of two NaNs an operation returns, and valid chunks never compute with them.
inline bool same_but_nan(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return true;
  const std::size_t element_bytes = dtype_bytes(dtype);
  for (std::size_t at = 0; at < a.size(); at += element_bytes) {
    if (std::memcmp(a.data() + at, b.data() + at, element_bytes) == 0) continue;
    float x[2] = {};
    double wide[2] = {};
    if (dtype == DType::f32) {
      std::memcpy(&x[0], a.data() + at, sizeof(float));
      std::memcpy(&x[1], b.data() + at, sizeof(float));
      if (x[0] == x[0] || x[1] == x[1]) return false;
    } else if (dtype == DType::f64) {
      std::memcpy(&wide[0], a.data() + at, sizeof(double));
      std::memcpy(&wide[1], b.data() + at, sizeof(double));
      if (wide[0] == wide[0] || wide[1] == wide[1]) return false;
    } else {
      return false;
    }
  }
  return true;
}

/// Write magic and version to a chunk whose bytes from 8 on are arbitrary, so that decoding gets
/// past them.
inline void put_trz_magic(std::byte* chunk) { std::memcpy(chunk, "TRZ\1", 4); }

}  // namespace tailrace::fuzz
