// Errors as values: Status (done, or one code with a text) and Result<T> (a value, or a Status).
//
// Every fallible function inside the library returns one of these two; exceptions exist only at the
// C++ and Python edges. A message names the object, what was expected and what came:
//   field "rho": bound is 0, must be > 0
// The codes are pinned (they are also the C API's numbers and travel between ranks), at most 15.

#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tailrace {

/// The kinds of failure. Pinned: the numbers are those of tailrace_error in tailrace.h.
enum class Code : std::int32_t {
  ok = 0,
  invalid_argument = 1,  ///< A value, shape or option that cannot be meant.
  unsupported = 2,       ///< Meant, but this codec, layout or build cannot do it.
  not_found = 3,         ///< A file, path, dataset or attribute that is not there.
  already_exists = 4,    ///< A file or dataset that is there and must not be replaced.
  disagreement = 5,      ///< Ranks gave different definitions or options.
  bad_coverage = 6,      ///< Boxes overlap, leave holes or leave the field's shape.
  plugin_missing = 7,    ///< A filter plug-in could not be found or loaded.
  codec_failed = 8,      ///< A codec refused, or returned bytes that do not decode.
  bound_broken = 9,      ///< A decoded value is further from the original than its bound.
  corrupt = 10,          ///< Input that is not what it says, or truncated.
  io_error = 11,         ///< The storage refused a read or a write.
  no_space = 12,         ///< The storage is full, or a quota is exhausted.
  out_of_memory = 13,    ///< The memory cap, or the machine's memory, does not suffice.
  internal = 14,         ///< A broken invariant of Tailrace itself.
};

/// The code's name, as messages and JSON print it. Not collective. Thread-safe.
std::string_view code_name(Code code);

/// Done, or a code with a text. Cheap to move; an ok Status holds no memory. The text is printable
/// (trz/base/printable.hpp), whatever names are in it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// A failure told in one line: a newline in `message` is part of a name, and is escaped.
  Status(Code code, std::string message);
  /// A failure told in several lines. Names in them have passed through printable().
  static Status of_lines(Code code, std::string lines);

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same failure with `where` put before its text; an ok Status stays ok.
  Status within(std::string_view where) const;
  /// Copy of a failure with a line put behind its text; an ok Status stays ok.
  Status with_line(std::string_view line) const;

 private:
  Code code_ = Code::ok;
  std::string message_;
};

/// A value, or the Status that says why there is none. Never holds an ok Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Status failure) : held_(std::in_place_index<1>, std::move(failure)) {}

  bool ok() const { return held_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(held_); }
  /// The same failure with `where` put before its text; a value stays as it is.
  Result within(std::string_view where) && {
    return ok() ? std::move(*this) : Result(std::get<1>(held_).within(where));
  }

  T& value() & { return std::get<0>(held_); }
  const T& value() const& { return std::get<0>(held_); }
  T&& value() && { return std::get<0>(std::move(held_)); }
  T* operator->() { return &std::get<0>(held_); }
  const T* operator->() const { return &std::get<0>(held_); }
  T& operator*() & { return std::get<0>(held_); }
  const T& operator*() const& { return std::get<0>(held_); }

 private:
  std::variant<T, Status> held_;
};

/// What a rank does by itself between two meetings of all ranks: without memory it fails as it does
/// otherwise, and goes on to the next meeting, where the others wait.
template <class Work>
Status local_part(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    // A text so short needs no memory itself.
    return Status(Code::out_of_memory, "no memory left");
  } catch (const std::length_error&) {  // More than any memory has.
    return Status(Code::out_of_memory, "no memory has room for it");
  } catch (const std::exception& unexpected) {
    return Status(Code::internal, unexpected.what());
  }
}

/// Map an errno to a Status: ENOSPC and EDQUOT become no_space, ENOENT not_found, the rest
/// io_error.
Status status_from_errno(int errno_value, std::string_view what);

/// The C rendering of TAILRACE_CHECK's failure: says where, then aborts. Never returns.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace tailrace

/// For programmer errors only: a broken invariant stops the program at once, with its place.
#define TAILRACE_CHECK(condition) \
  ((condition) ? void(0) : ::tailrace::check_failed(#condition, __FILE__, __LINE__))

/// Return the Status of a failed expression from the enclosing function.
#define TAILRACE_TRY(expression)                                              \
  do {                                                                        \
    if (::tailrace::Status tailrace_try_ = (expression); !tailrace_try_.ok()) \
      return tailrace_try_;                                                   \
  } while (false)

/// Return the Status of a failed Result from the enclosing function, else take its value:
///   TAILRACE_TAKE(const std::string text, read_text_file(path));
/// The first argument is what stands left of `=`, with `auto` for a type that has a comma.
#define TAILRACE_TAKE(target, ...) \
  TAILRACE_TAKE_BY(TAILRACE_JOIN(tailrace_taken_, __LINE__), target, (__VA_ARGS__))
// NOLINTBEGIN(bugprone-macro-parentheses): the target may be a declaration.
#define TAILRACE_TAKE_BY(result, target, expression) \
  auto result = expression;                          \
  if (!result.ok()) return result.status();          \
  target = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
#define TAILRACE_JOIN(first, second) TAILRACE_JOIN_NOW(first, second)
#define TAILRACE_JOIN_NOW(first, second) first##second
