// Names of the codes and the mapping from errno.

#include "trz/base/status.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "trz/base/printable.hpp"

namespace tailrace {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::unsupported: return "unsupported";
    case Code::not_found: return "not_found";
    case Code::already_exists: return "already_exists";
    case Code::disagreement: return "disagreement";
    case Code::bad_coverage: return "bad_coverage";
    case Code::plugin_missing: return "plugin_missing";
    case Code::codec_failed: return "codec_failed";
    case Code::bound_broken: return "bound_broken";
    case Code::corrupt: return "corrupt";
    case Code::io_error: return "io_error";
    case Code::no_space: return "no_space";
    case Code::out_of_memory: return "out_of_memory";
    case Code::internal: return "internal";
  }
  return "unknown";
}

Status::Status(Code code, std::string message)
    : code_(code), message_(printable(std::move(message))) {}

Status Status::of_lines(Code code, std::string lines) {
  Status status;
  status.code_ = code;
  status.message_ = printable_lines(std::move(lines));
  return status;
}

Status Status::within(std::string_view where) const {
  if (ok()) return *this;
  return of_lines(code_, printable(std::string(where)) + ": " + message_);
}

Status Status::with_line(std::string_view line) const {
  if (ok()) return *this;
  return of_lines(code_, message_ + "\n  " + printable(std::string(line)));
}

Status status_from_errno(int errno_value, std::string_view what) {
  Code code = Code::io_error;
  if (errno_value == ENOSPC || errno_value == EDQUOT) code = Code::no_space;
  if (errno_value == ENOENT) code = Code::not_found;
  if (errno_value == EEXIST) code = Code::already_exists;
  if (errno_value == ENOMEM) code = Code::out_of_memory;
  return Status(code, std::string(what) + ": " + std::generic_category().message(errno_value));
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tailrace: broken invariant %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace tailrace
