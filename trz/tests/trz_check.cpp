// Basic test of the stand-alone project: golden chunks and round trips through the C interface of
// libtrz, and the two entry points of the plug-ins.
//
//   trz_check golden FOLDER       decode each FOLDER/*/NAME.trz, compare with NAME.npy bit for bit;
//                                 check that the chunk is refused if it needs a newer trz.
//   trz_check round-trips         encode and decode generated arrays, check every bound exactly.
//   trz_check plugin FILE ID      load FILE like HDF5 does, check its filter number.
//
// Prints a line for each difference and exits with 1. Tailrace's unit tests are far more thorough.

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "trz.h"
#include "trz_xor.h"

namespace {

using Bytes = std::vector<char>;

int n_failures = 0;

void fail(const std::string& where, const std::string& why) {
  std::printf("%s: %s\n", where.c_str(), why.c_str());
  ++n_failures;
}

/// Text of the last failed call.
class Message {
 public:
  trz_message* trz() { return &trz_; }
  xor_message* neighbour() { return &xor_; }
  std::string text() const { return text_; }

 private:
  char text_[256] = {};
  trz_message trz_ = {text_, sizeof text_};
  xor_message xor_ = {text_, sizeof text_};
};

Bytes file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path.string(), "cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Read the values of a .npy file of version 1, without its header.
Bytes numpy_values(const std::filesystem::path& path) {
  const Bytes file = file_bytes(path);
  if (file.size() < 10) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(file[i]); };
  const std::size_t n_header = std::size_t{10} + byte(8) + std::size_t{256} * byte(9);
  return {file.begin() + static_cast<std::ptrdiff_t>(std::min(n_header, file.size())), file.end()};
}

/// CRC-32 of zlib.
std::uint32_t checksum_of(const char* bytes, std::size_t n_bytes) {
  std::uint32_t checksum = ~0U;
  for (std::size_t i = 0; i < n_bytes; ++i) {
    checksum ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) {
      checksum = checksum >> 1 ^ ((checksum & 1) != 0 ? 0xEDB88320U : 0);
    }
  }
  return ~checksum;
}

/// Check that a chunk is refused once its head has an unknown version, feature, method or type.
void check_newer(const std::string& where, const Bytes& chunk, const trz_book* book,
                 Bytes& values) {
  const auto check = [&](std::size_t at, unsigned byte, const std::string& why) {
    Bytes other = chunk;
    other[at] = static_cast<char>(byte);
    const std::uint32_t checksum = checksum_of(other.data() + 8, other.size() - 8);
    std::memcpy(other.data() + 4, &checksum, sizeof checksum);
    Message message;
    if (trz_decode(other.data(), other.size(), book, values.data(), values.size(), message.trz()) !=
            -TRZ_CORRUPT ||
        message.text() != "trz chunk: " + why) {
      fail(where, why + ": " + message.text());
    }
  };
  const std::string newer = "needs a newer trz: ";
  for (const unsigned version : {0, 8, 255}) {
    check(3, version, newer + "format version " + std::to_string(version) + ", expected 1");
  }
  for (unsigned version = 2; version < 8; ++version) {
    check(3, version,
          "format version " + std::to_string(version) +
              " is of a development version older than format 1, which no release "
              "reads; write the data again");
  }
  const auto kinds = static_cast<unsigned char>(chunk[8]);
  const auto extents = static_cast<unsigned char>(chunk[9]);
  const char* const texts[] = {"0x08", "0x10", "0x20", "0x40", "0x80"};
  for (unsigned bit = 0; bit < 5; ++bit) {
    check(9, extents | 8U << bit, newer + "unknown feature bits " + texts[bit]);
  }
  for (unsigned method = 11; method < 16; ++method) {
    check(8, (kinds & 15U) | method << 4, newer + "unknown method " + std::to_string(method));
  }
  for (unsigned dtype = 10; dtype < 16; ++dtype) {
    check(8, (kinds & 0xF0U) | dtype, newer + "unknown element type " + std::to_string(dtype));
  }
}

void check_golden_chunk(const std::filesystem::path& path) {
  const Bytes chunk = file_bytes(path);
  const Bytes wanted = numpy_values(std::filesystem::path(path).replace_extension(".npy"));
  const std::filesystem::path book_path = std::filesystem::path(path).replace_extension(".trzb");
  Bytes book_bytes;
  if (std::filesystem::exists(book_path)) book_bytes = file_bytes(book_path);
  const trz_book book = {book_bytes.data(), book_bytes.size()};
  const trz_book* const its_book = book_bytes.empty() ? nullptr : &book;
  Bytes values(wanted.size());
  Message message;
  if (trz_decode(chunk.data(), chunk.size(), its_book, values.data(), values.size(),
                 message.trz()) != 0) {
    return fail(path.string(), message.text());
  }
  if (values != wanted) fail(path.string(), "decodes to other values");
  check_newer(path.string(), chunk, its_book, values);
}

int check_golden(const std::filesystem::path& folder) {
  constexpr int n_golden = 47;
  int n_chunks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".trz") continue;
    check_golden_chunk(entry.path());
    ++n_chunks;
  }
  std::printf("%d golden chunks\n", n_chunks);
  if (n_chunks < n_golden) fail(folder.string(), "holds fewer chunks than expected");
  return n_chunks;
}

/// Make a smooth field with noise, and in its middle a NaN, infinities and a negative zero.
template <class T>
std::vector<T> floats(const std::vector<std::uint64_t>& shape) {
  std::size_t n = 1;
  for (const std::uint64_t extent : shape) n *= extent;
  std::vector<T> values(n);
  std::mt19937_64 random(n);
  std::normal_distribution<double> noise(0, 0.02);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i % shape.back());
    const double y = static_cast<double>(i / shape.back());
    values[i] = static_cast<T>(3 + std::sin(x / 9) * std::cos(y / 14) + noise(random));
  }
  constexpr auto infinity = std::numeric_limits<T>::infinity();
  const T specials[] = {std::numeric_limits<T>::quiet_NaN(), infinity, -infinity, T(-0.0)};
  for (std::size_t i = 0; n > 100 && i < std::size(specials); ++i) values[n / 2 + i] = specials[i];
  return values;
}

/// @param bound  absolute, or a fraction of the value if `pointwise`; 0: bit for bit.
template <class T>
bool within(T x, T y, double bound, bool pointwise) {
  if (std::memcmp(&x, &y, sizeof x) == 0) return true;
  if (bound == 0 || !std::isfinite(x) || !std::isfinite(y)) return false;
  const auto exact_x = static_cast<long double>(x);
  const auto exact_y = static_cast<long double>(y);
  return std::fabs(exact_x - exact_y) <= (pointwise ? bound * std::fabs(exact_x) : bound);
}

struct Setting {
  const char* text;
  double bound;
  bool pointwise;
};

template <class T>
void check_trz(std::int32_t dtype, const std::vector<T>& values,
               const std::vector<std::uint64_t>& shape, const Setting& setting) {
  const std::string where = "dtype " + std::to_string(dtype) + ", " +
                            std::to_string(values.size()) + " values, \"" + setting.text + "\"";
  const std::size_t n_bytes = values.size() * sizeof(T);
  Message message;
  std::uint32_t words[64];
  const std::int64_t n_words =
      trz_cd_values(setting.text, nullptr, words, std::size(words), message.trz());
  if (n_words < 0) return fail(where, message.text());
  const trz_array array = {dtype, static_cast<std::int32_t>(shape.size()), shape.data(), nullptr};
  Bytes encoded(trz_encoded_bytes_max(n_bytes));
  const std::int64_t n_encoded =
      trz_encode(words, static_cast<std::size_t>(n_words), &array, values.data(), n_bytes,
                 encoded.data(), encoded.size(), message.trz());
  if (n_encoded < 0) return fail(where, message.text());
  std::vector<T> decoded(values.size());
  if (trz_decode(encoded.data(), static_cast<std::size_t>(n_encoded), nullptr, decoded.data(),
                 n_bytes, message.trz()) != 0) {
    return fail(where, message.text());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!within(values[i], decoded[i], setting.bound, setting.pointwise)) {
      return fail(where, "value " + std::to_string(i) + " is outside its bound");
    }
  }
  if (trz_decode(encoded.data(), static_cast<std::size_t>(n_encoded) - 1, nullptr, decoded.data(),
                 n_bytes, message.trz()) >= 0) {
    fail(where, "a truncated chunk is accepted");
  }
}

template <class T>
void check_xor(const std::vector<T>& values, const std::vector<std::uint64_t>& shape) {
  const std::size_t n_bytes = values.size() * sizeof(T);
  const std::string where = "xor, " + std::to_string(n_bytes) + " bytes";
  const xor_array array = {sizeof(T), 0, static_cast<std::int32_t>(shape.size()), shape.data()};
  Bytes encoded(xor_encoded_bytes_max(n_bytes));
  Message message;
  const std::int64_t n_encoded = xor_encode(&array, values.data(), n_bytes, encoded.data(),
                                            encoded.size(), message.neighbour());
  if (n_encoded < 0) return fail(where, message.text());
  std::vector<T> decoded(values.size());
  if (xor_decode(encoded.data(), static_cast<std::size_t>(n_encoded), decoded.data(), n_bytes,
                 message.neighbour()) != 0) {
    return fail(where, message.text());
  }
  if (std::memcmp(values.data(), decoded.data(), n_bytes) != 0) fail(where, "other values");
}

template <class T>
void check_floats(std::int32_t dtype) {
  const std::vector<Setting> settings = {{"", 0, false},
                                         {"abs=1e-3", 1e-3, false},
                                         {"abs=1e-3,preset=fast", 1e-3, false},
                                         {"abs=1e-4,preset=ratio", 1e-4, false},
                                         {"abs=1e-3,preset=max", 1e-3, false},
                                         {"abs=1e-3,coarse=2", 1e-3, false},
                                         {"abs=1e-4,refine=4", 1e-4, false},
                                         {"pw_rel=1e-3", 1e-3, true}};
  const std::vector<std::vector<std::uint64_t>> shapes = {
      {1}, {7}, {5000}, {1, 90}, {61, 47}, {13, 17, 19}, {5, 4, 6, 70}};
  for (const std::vector<std::uint64_t>& shape : shapes) {
    const std::vector<T> values = floats<T>(shape);
    for (const Setting& setting : settings) check_trz(dtype, values, shape, setting);
    check_xor(values, shape);
  }
}

template <class T>
void check_integers(std::int32_t dtype) {
  std::mt19937_64 random(17);
  for (const std::uint64_t n : {1, 50, 4000}) {
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<T>(i * i / 50 + (random() % 4));
      if (i % 97 == 0) values[i] = static_cast<T>(random());
    }
    check_trz(dtype, values, {n}, {"", 0, false});
    check_xor(values, {n});
  }
}

void check_round_trips() {
  check_floats<float>(TRZ_F32);
  check_floats<double>(TRZ_F64);
  check_integers<std::int8_t>(TRZ_I8);
  check_integers<std::int16_t>(TRZ_I16);
  check_integers<std::int32_t>(TRZ_I32);
  check_integers<std::int64_t>(TRZ_I64);
  check_integers<std::uint8_t>(TRZ_U8);
  check_integers<std::uint16_t>(TRZ_U16);
  check_integers<std::uint32_t>(TRZ_U32);
  check_integers<std::uint64_t>(TRZ_U64);
}

void check_plugin(const char* path, int wanted_id) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(path, dlerror());
  using Info = const void* (*)();
  using Type = int (*)();
  const auto info = reinterpret_cast<Info>(dlsym(library, "H5PLget_plugin_info"));
  const auto type = reinterpret_cast<Type>(dlsym(library, "H5PLget_plugin_type"));
  if (info == nullptr || type == nullptr) return fail(path, "lacks the names of a plug-in");
  int head[2] = {};  // H5Z_class2_t starts with its version and the filter's number.
  std::memcpy(head, info(), sizeof head);
  if (type() != 0 || head[0] != 1 || head[1] != wanted_id)
    fail(path, "is no filter of this number");
}

}  // namespace

int main(int n_arguments, char** arguments) {
  const std::string what = n_arguments > 1 ? arguments[1] : "";
  if (what == "golden" && n_arguments == 3) {
    check_golden(arguments[2]);
  } else if (what == "round-trips" && n_arguments == 2) {
    check_round_trips();
  } else if (what == "plugin" && n_arguments == 4) {
    check_plugin(arguments[2], std::atoi(arguments[3]));
  } else {
    std::fprintf(stderr, "usage: trz_check golden FOLDER | round-trips | plugin FILE ID\n");
    return 2;
  }
  std::printf("%d failures\n", n_failures);
  return n_failures == 0 ? 0 : 1;
}
