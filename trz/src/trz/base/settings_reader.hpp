// SettingsReader: reads the keys of a codec's settings (preset=fast, book=1:2:3) out of a list.
//
// Every setting is used or refused: a key that the codec did not ask for is an error that names the
// keys it knows. The reader remembers the first error and reports it in finish(), so that a codec
// reads all keys in a row.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// Keys and values in the order in which they were given.
using SettingList = std::vector<std::pair<std::string, std::string>>;

/// Split "a=1,b=rel=2,c" into {a,1}, {b,rel=2}, {c,""}. @error invalid_argument  an empty key.
Result<SettingList> split_settings(std::string_view text);

/// Not thread-safe; lives for the length of one make function.
class SettingsReader {
 public:
  /// @param codec     name of the codec in error messages.
  /// @param settings  must outlive this object.
  SettingsReader(std::string codec, const SettingList& settings)
      : codec_(std::move(codec)), settings_(settings) {}

  /// A whole number in [least, greatest], or `otherwise` where the key is absent.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t greatest,
                       std::int64_t otherwise);
  /// A finite number > 0, or nothing where the key is absent.
  std::optional<double> positive(std::string_view key);
  /// The position of the value in `choices`; `otherwise` is one of them.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices,
                     std::size_t otherwise);
  /// "1:2:0x1f:-3" as 32-bit words (negative numbers in two's complement); empty where absent.
  std::vector<std::uint32_t> words(std::string_view key);
  /// Report that the values of several keys exclude each other; `why` says which.
  void refuse(const std::string& why);
  /// True if the key was given.
  bool has(std::string_view key);

  /// The first error met; else an error for a key that was never asked for. Call it last.
  /// @error invalid_argument
  Status finish() const;

 protected:
  /// The last value given for `key`, which counts as known from now on.
  const std::string* find(std::string_view key);
  void fail(std::string_view key, std::string_view expected, std::string_view got);

 private:
  std::string codec_;
  const SettingList& settings_;
  std::vector<std::string> known_;
  Status first_error_;
};

}  // namespace tailrace
