// CodecSettings: reads a codec's own keys (level=5, shuffle=off, cd=1:2:3) out of a CodecRequest.
//
// Here rather than in src/codec because built-in codecs and plug-ins read their settings the same
// way. A setting is never dropped: what the codec did not ask for is an error that names the keys
// it knows. The first error is kept and handed out by finish(), so a codec reads all keys in a row.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Not thread-safe; lives for the length of one make function.
class CodecSettings {
 public:
  /// `request` must outlive this object.
  explicit CodecSettings(const CodecRequest& request) : request_(request) {}

  /// A whole number in [least, greatest], or `otherwise` where the key is absent.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t greatest,
                       std::int64_t otherwise);
  /// A finite number > 0, or nothing where the key is absent.
  std::optional<double> positive(std::string_view key);
  /// on or off.
  bool flag(std::string_view key, bool otherwise);
  /// The position of the value in `choices`; `otherwise` is one of them.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices,
                     std::size_t otherwise);
  /// "1:2:0x1f:-3" as 32-bit words (negative numbers in two's complement); empty where absent.
  std::vector<std::uint32_t> words(std::string_view key);
  /// What the values of several keys cannot be together, as the error of all.
  void refuse(const std::string& why);
  /// Whether the key was given.
  bool has(std::string_view key);

  /// The first error met; else an error for a key that was never asked for. Call it last.
  /// @error invalid_argument
  Status finish() const;

 private:
  /// The last value given for `key`, which counts as known from now on.
  const std::string* find(std::string_view key);
  void fail(std::string_view key, std::string_view expected, std::string_view got);

  const CodecRequest& request_;
  std::vector<std::string> known_;
  Status first_error_;
};

}  // namespace tailrace
