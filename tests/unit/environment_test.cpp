// Files named by the environment and by options: regular, small, and never printed.

#include "core/environment.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/glob_options.hpp"

namespace {

using namespace tailrace;

class SettingsFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("settings_") + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    ::unsetenv("TAILRACE_OPTIONS");
    std::filesystem::remove_all(folder_);
  }
  std::string write(const std::string& text) const {
    const std::string path = folder_ / "options.txt";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(SettingsFile, IsReadUpToItsLimit) {
  const std::string text(10000, 'x');
  const std::string path = write(text);
  const Result<std::string> read = read_settings_file(path, 10000);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, text);
  EXPECT_EQ(read_settings_file(path, 9999).status().code(), Code::invalid_argument);
  EXPECT_EQ(*read_settings_file(write("")), "");
  EXPECT_EQ(read_settings_file(folder_ / "none").status().code(), Code::invalid_argument);
}

TEST_F(SettingsFile, MustBeARegularFile) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder_.string(), std::string("/dev/zero")}) {
    const Status refused = read_settings_file(path).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument) << path;
    EXPECT_EQ(refused.message(), "\"" + path + "\": not a regular file");
  }
}

TEST_F(SettingsFile, OfOptionsIsNotQuoted) {
  const std::string path =
      write("# of the test\ncodec=trz; \n temp: bound=abs=1\nroot:secret=1:0\n");
  ::setenv("TAILRACE_OPTIONS", ("@" + path).c_str(), 1);
  const Result<OptionsText> text = options_text_of_environment();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->file, path);
  GlobOptions options;
  const Status failure = apply_glob_options(text->text, options, text->file);
  EXPECT_EQ(failure.code(), Code::invalid_argument);
  EXPECT_NE(failure.message().find(path + ", line 4:"), std::string::npos) << failure.message();
  EXPECT_EQ(failure.message().find("secret"), std::string::npos) << failure.message();
  EXPECT_EQ(failure.message().find("root"), std::string::npos) << failure.message();
  // The text of the variable itself belongs to the user, so it may be printed.
  const Status given = apply_glob_options("secret=1", options);
  EXPECT_NE(given.message().find("secret"), std::string::npos);
}

TEST_F(SettingsFile, OfOptionsThatIsNotARegularFileIsRefused) {
  for (const char* named : {"@/dev/zero", "/dev/zero", "@/dev/null", "@/does/not/exist"}) {
    ::setenv("TAILRACE_OPTIONS", named, 1);
    const Status refused = options_text_of_environment().status();
    EXPECT_EQ(refused.code(), Code::invalid_argument) << named;
    EXPECT_NE(refused.message().find("neither options nor the path"), std::string::npos);
  }
  ::setenv("TAILRACE_OPTIONS", ("@" + write(std::string(kSettingsBytesMax + 1, ' '))).c_str(), 1);
  EXPECT_EQ(options_text_of_environment().status().code(), Code::invalid_argument);
}

}  // namespace
