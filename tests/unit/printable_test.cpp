// Foreign text made printable, and failures whose texts contain names.

#include "trz/base/printable.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/utf8.hpp"
#include "trz/base/status.hpp"

namespace {

using namespace tailrace;

TEST(Printable, EscapesWhatMovesOrTurns) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\n\r\tb\x7f"), "a\\n\\r\\tb\\x7f");
  EXPECT_EQ(printable("\u0085\u009b2J\u202e\u2066\u2069\u200f\u061c\u2028"),
            "\\u0085\\u009b2J\\u202e\\u2066\\u2069\\u200f\\u061c\\u2028");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable_lines("a\nb\r\n"), "a\nb\\r\n");
}

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "/fields/density", "Höhe über NN, 10^-3 µm", "日本語", "👍",
                           "back\\slash \\n", "<b>&"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // A surrogate.
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a");           // A newline in an overlong form.
  EXPECT_EQ(printable("\xf0\x9f\x91"), "\\xf0\\x9f\\x91");  // Truncated.
}

TEST(Printable, TwiceIsAsOnce) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string once = printable(all);
  EXPECT_EQ(printable(once), once);
  for (std::size_t at = 0; at < once.size(); ++at) {
    EXPECT_TRUE(once[at] >= 0x20 && once[at] < 0x7f) << at;
  }
}

TEST(StatusText, IsOneLineWhateverNamesAreInIt) {
  const Status failure(Code::not_found, "dataset \"a\nb\x1b[2J\": not there");
  EXPECT_EQ(failure.message(), "dataset \"a\\nb\\x1b[2J\": not there");
  EXPECT_EQ(failure.within("file\n1").message(), "file\\n1: " + failure.message());
  EXPECT_EQ(failure.with_line("more\nof it").message(), failure.message() + "\n  more\\nof it");
  EXPECT_EQ(failure.with_line("x").within("y").message(), "y: " + failure.message() + "\n  x");
  EXPECT_EQ(Status::of_lines(Code::corrupt, "one\n  two\x1b").message(), "one\n  two\\x1b");
  EXPECT_TRUE(Status().with_line("x").ok());
}

}  // namespace
