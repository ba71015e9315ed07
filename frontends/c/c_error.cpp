// Version, error numbers and error texts of the C API.

#include <string>
#include <string_view>

#include "c_handle.hpp"

namespace tailrace {
namespace {

// The build system and the header must name the same release.
static_assert(std::string_view(TAILRACE_VERSION) == TAILRACE_VERSION_STRING);

// The C numbers are those of Code, one by one at both ends of the list.
static_assert(static_cast<int>(Code::ok) == TAILRACE_OK);
static_assert(static_cast<int>(Code::invalid_argument) == TAILRACE_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::unsupported) == TAILRACE_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(Code::not_found) == TAILRACE_ERROR_NOT_FOUND);
static_assert(static_cast<int>(Code::already_exists) == TAILRACE_ERROR_ALREADY_EXISTS);
static_assert(static_cast<int>(Code::disagreement) == TAILRACE_ERROR_DISAGREEMENT);
static_assert(static_cast<int>(Code::bad_coverage) == TAILRACE_ERROR_BAD_COVERAGE);
static_assert(static_cast<int>(Code::plugin_missing) == TAILRACE_ERROR_PLUGIN_MISSING);
static_assert(static_cast<int>(Code::codec_failed) == TAILRACE_ERROR_CODEC_FAILED);
static_assert(static_cast<int>(Code::bound_broken) == TAILRACE_ERROR_BOUND_BROKEN);
static_assert(static_cast<int>(Code::corrupt) == TAILRACE_ERROR_CORRUPT);
static_assert(static_cast<int>(Code::io_error) == TAILRACE_ERROR_IO);
static_assert(static_cast<int>(Code::no_space) == TAILRACE_ERROR_NO_SPACE);
static_assert(static_cast<int>(Code::out_of_memory) == TAILRACE_ERROR_OUT_OF_MEMORY);
static_assert(static_cast<int>(Code::internal) == TAILRACE_ERROR_INTERNAL);

thread_local std::string last_text;

void assign(std::string& text, const char* message) noexcept {
  try {
    text = message;
  } catch (const std::bad_alloc&) {
    text.assign("out of memory");  // fits into every std::string without an allocation
  }
}

}  // namespace

tailrace_error remember(tailrace_file* file, Code code, const char* message) noexcept {
  assign(last_text, message);
  if (file != nullptr) assign(file->error, message);
  return static_cast<tailrace_error>(code);
}

}  // namespace tailrace

extern "C" {

int tailrace_version_number(void) { return TAILRACE_VERSION_NUMBER; }

const char* tailrace_version_string(void) { return TAILRACE_VERSION_STRING; }

const char* tailrace_error_name(tailrace_error error) {
  // Every name is a string literal, so the view ends in a zero.
  return tailrace::code_name(static_cast<tailrace::Code>(error)).data();
}

const char* tailrace_thread_error(void) { return tailrace::last_text.c_str(); }

const char* tailrace_file_error(const tailrace_file* file) {
  return file == nullptr ? "the file is NULL" : file->error.c_str();
}

}  // extern "C"
