// SettingsReader: reads the keys of a codec's settings (preset=fast, book=1:2:3) from a list.
//
// Every setting is used or refused: a key that the codec did not read is an error, whose message
// lists the known keys. The reader stores the first error and returns it from finish(), so a codec
// reads all its keys without checking each.

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

/// Split "a=1, b = rel=2,c" into {a,1}, {b,rel=2}, {c,""}. Blanks around keys and values are
/// ignored. @error invalid_argument  an empty key.
Result<SettingList> split_settings(std::string_view text);

/// Reader of one codec's settings. Not thread-safe; used within one factory function.
class SettingsReader {
 public:
  /// @param codec     name of the codec in error messages.
  /// @param settings  keys and values to read; must outlive this object.
  SettingsReader(std::string codec, const SettingList& settings)
      : codec_(std::move(codec)), settings_(settings) {}

  /// An integer in [least, greatest]; `otherwise` if the key is absent.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t greatest,
                       std::int64_t otherwise);
  /// A finite number > 0; nullopt if the key is absent.
  std::optional<double> positive(std::string_view key);
  /// Index of the value in `choices`; `otherwise`, also such an index, if the key is absent.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices,
                     std::size_t otherwise);
  /// The numbers of a list like "1:2:0x1f:-3" as 32-bit words, negative ones in two's complement;
  /// empty if the key is absent.
  std::vector<std::uint32_t> words(std::string_view key);
  /// Report that the values of several keys exclude each other; `why` is the error text.
  void refuse(const std::string& why);
  /// True if the key was given.
  bool has(std::string_view key);

  /// Return the first error, or else an error for a key that was never read. Call it last.
  /// @error invalid_argument
  Status finish() const;

 protected:
  /// The last value given for `key`, nullptr if absent. Marks the key as known.
  const std::string* find(std::string_view key);
  void fail(std::string_view key, std::string_view expected, std::string_view got,
            std::string_view hint = {});

 private:
  std::string codec_;
  const SettingList& settings_;
  std::vector<std::string> known_;
  Status first_error_;
};

}  // namespace tailrace
