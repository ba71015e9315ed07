// The settings book=auto and book_loss. trz_codec.cpp makes the counting codec.

#include "codec/auto_book.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tailrace::trz {

Result<std::optional<AutoBook>> take_auto_book(CodecSettingList& settings) {
  SettingList own;
  const bool automatic = std::erase_if(settings, [](const auto& setting) {
                           return setting.first == "book" && setting.second == "auto";
                         }) > 0;
  std::erase_if(settings, [&](const auto& setting) {
    if (setting.first != "book_loss") return false;
    own.push_back(setting);
    return true;
  });
  SettingsReader keys("trz", own);
  const std::optional<double> percent = keys.positive("book_loss");
  TAILRACE_TRY(keys.finish());
  if (percent && *percent > 100) {
    return Status(Code::invalid_argument,
                  "codec trz: book_loss must be a percentage up to 100, such as 0.5, got \"" +
                      own.back().second + "\"");
  }
  if (!automatic) return std::optional<AutoBook>();
  AutoBook wish;
  if (percent) wish.most_loss = *percent / 100;
  return std::optional<AutoBook>(wish);
}

void name_book(std::span<const std::uint8_t> book_bytes, CodecSettingList& settings) {
  std::string words = std::to_string(book_bytes.size());
  for (std::size_t at = 0; at < book_bytes.size(); at += 4) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 4 && at + i < book_bytes.size(); ++i) {
      word |= static_cast<std::uint32_t>(book_bytes[at + i]) << (8 * i);
    }
    words += ":";
    words += std::to_string(word);
  }
  for (auto& [key, value] : settings) {
    if (key == "book" && value == "auto") value = words;
  }
}

}  // namespace tailrace::trz
