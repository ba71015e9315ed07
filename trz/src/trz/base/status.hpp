// Errors as values: Status (success, or one code with a text) and Result<T> (a value or a Status).
//
// Every fallible function inside the library returns one of these two; only the C++ and Python APIs
// throw exceptions. A message names the object, the expectation and the actual value:
//   field "rho": bound is 0, must be > 0
// The codes never change: they are also the C API's numbers, and ranks exchange them. At most 15.

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

/// The kinds of failure. The numbers are those of tailrace_error in tailrace.h and never change.
enum class Code : std::int32_t {
  ok = 0,
  invalid_argument = 1,  ///< A value, shape or option is not valid.
  unsupported = 2,       ///< A valid request that this codec, layout or build cannot serve.
  not_found = 3,         ///< A file, path, dataset or attribute does not exist.
  already_exists = 4,    ///< A file or dataset exists and must not be replaced.
  disagreement = 5,      ///< Ranks gave different definitions or options.
  bad_coverage = 6,      ///< Boxes overlap, leave holes or exceed the field's shape.
  plugin_missing = 7,    ///< A filter plug-in could not be found or loaded.
  codec_failed = 8,      ///< A codec refused, or returned bytes that do not decode.
  bound_broken = 9,      ///< A decoded value is further from the original than its bound.
  corrupt = 10,          ///< Input is truncated or contradicts itself.
  io_error = 11,         ///< The storage refused a read or a write.
  no_space = 12,         ///< The storage is full, or a quota is exhausted.
  out_of_memory = 13,    ///< The memory cap or the machine's memory does not suffice.
  internal = 14,         ///< A broken invariant of Tailrace itself.
};

/// Name of a code in messages and JSON. Not collective. Thread-safe.
std::string_view code_name(Code code);

/// Success, or a code with a text. Cheap to move; an ok Status allocates no memory. The text is
/// always printable (trz/base/printable.hpp), even if it quotes arbitrary names.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// A failure with a message of one line: a newline in `message` is part of a name and is escaped.
  Status(Code code, std::string message);
  /// A failure with a message of several lines. The caller has passed names through printable().
  static Status of_lines(Code code, std::string lines);

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// Copy of a failure with `where` prepended to its text; an ok Status stays ok.
  Status within(std::string_view where) const;
  /// Copy of a failure with a line appended to its text; an ok Status stays ok.
  Status with_line(std::string_view line) const;

 private:
  Code code_ = Code::ok;
  std::string message_;
};

/// A value, or the Status of the failure to produce it. Never contains an ok Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Status failure) : held_(std::in_place_index<1>, std::move(failure)) {}

  bool ok() const { return held_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(held_); }
  /// Prepend `where` to the text of a failure; a value stays unchanged.
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

/// Run a rank's local work between two collective calls and turn exceptions into a Status. A rank
/// that runs out of memory thus still enters the next collective call, where other ranks wait.
template <class Work>
Status local_part(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    // A text this short fits std::string's internal buffer and needs no allocation.
    return Status(Code::out_of_memory, "no memory left");
  } catch (const std::length_error&) {  // A container larger than any memory.
    return Status(Code::out_of_memory, "a size exceeds the address space");
  } catch (const std::exception& unexpected) {
    return Status(Code::internal, unexpected.what());
  }
}

/// Map an errno to a Status: ENOSPC and EDQUOT become no_space, ENOENT not_found, EEXIST
/// already_exists, ENOMEM out_of_memory, all others io_error.
Status status_from_errno(int errno_value, std::string_view what);

/// Failure handler of TAILRACE_CHECK: prints the condition and its location, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace tailrace

/// Abort the program with the source location if `condition` is false. For programmer errors only.
#define TAILRACE_CHECK(condition) \
  ((condition) ? void(0) : ::tailrace::check_failed(#condition, __FILE__, __LINE__))

/// Return the Status of a failed expression from the enclosing function.
#define TAILRACE_TRY(expression)                                              \
  do {                                                                        \
    if (::tailrace::Status tailrace_try_ = (expression); !tailrace_try_.ok()) \
      return tailrace_try_;                                                   \
  } while (false)

/// Return the Status of a failed Result from the enclosing function, else assign its value:
///   TAILRACE_TAKE(const std::string text, read_text_file(path));
/// The first argument is the left side of the assignment; use `auto` for a type with a comma.
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
