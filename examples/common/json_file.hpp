// JsonFile: writes nested objects {"key": value, ...}. Small, so that the examples need no other
// library.

#pragma once

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace app {

class JsonFile {
 public:
  explicit JsonFile(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {
    if (!file_) throw std::runtime_error("cannot write \"" + path + "\"");
  }
  void open(const char* key, char bracket) {
    begin(key);
    std::fputc(bracket, file_.get());
    first_ = true;
  }
  void close(char bracket) {
    std::fputc(bracket, file_.get());
    first_ = false;
  }
  void text(const char* key, const std::string& value) {
    begin(key);
    std::fputc('"', file_.get());
    for (const char c : value) {
      if (c == '"' || c == '\\') std::fputc('\\', file_.get());
      std::fputc(c, file_.get());
    }
    std::fputc('"', file_.get());
  }
  void number(const char* key, double value) { write_number(key, "%.9g", value); }
  /// Writes all digits, so that reading gives the same number.
  void exact(const char* key, double value) { write_number(key, "%.17g", value); }
  void count(const char* key, std::uint64_t value) {
    begin(key);
    std::fprintf(file_.get(), "%" PRIu64, value);
  }
  void truth(const char* key, bool value) {
    begin(key);
    std::fputs(value ? "true" : "false", file_.get());
  }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write_number(const char* key, const char* format, double value) {
    begin(key);
    if (std::isfinite(value)) {
      std::fprintf(file_.get(), format, value);
    } else {
      std::fputs("null", file_.get());  // JSON cannot represent NaN and infinities.
    }
  }
  /// Writes a comma if needed, then the key; inside a list the key is null.
  void begin(const char* key) {
    if (!first_) std::fputs(", ", file_.get());
    first_ = false;
    if (key != nullptr) std::fprintf(file_.get(), "\"%s\": ", key);
  }
  std::unique_ptr<std::FILE, Closer> file_;
  bool first_ = true;
};

}  // namespace app
