// Errors of the C interfaces: minus a trz_error, and a text.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include "trz/base/status.hpp"

namespace tailrace {

/// Write an error text to a trz_message or xor_message; truncates it to the capacity.
template <class Message>
void write_c_text(Message* message, const std::string& text) {
  if (message == nullptr || message->text == nullptr || message->capacity == 0) return;
  const std::size_t n = std::min(text.size(), message->capacity - 1);
  std::memcpy(message->text, text.data(), n);
  message->text[n] = '\0';
}

/// Run `work`, a function that returns Result<int64_t>; converts failures and exceptions to a
/// number.
template <class Message, class Work>
std::int64_t c_result(const char* codec, Message* message, Work&& work) {
  Status failure;
  try {
    const Result<std::int64_t> result = work();
    if (result.ok()) return *result;
    failure = result.status();
  } catch (const std::exception& exception) {
    failure = Status(Code::out_of_memory,
                     std::string(codec) + ": out of memory (" + exception.what() + ")");
  }
  write_c_text(message, failure.message());
  return -static_cast<std::int64_t>(failure.code());
}

}  // namespace tailrace
