// Writes the fuzzers' seeds: small valid chunks of every kind, made when the fuzzing starts, so
// that no corpus of bytes has to be kept (and kept up with the format) in the repository.
//
//   trz_seeds FOLDER    writes FOLDER/{decode,round_trip,filter}/NNNN

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codec/trz/client_data.hpp"
#include "fuzz/fuzz_support.hpp"
#include "support/trz_cases.hpp"

namespace {

using namespace tailrace;

constexpr std::uint64_t kSeeds = 600;

class Seed {
 public:
  template <class Number>
  void number(Number value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void bytes(std::span<const std::byte> from) {
    const auto* bytes = reinterpret_cast<const char*>(from.data());
    bytes_.insert(bytes_.end(), bytes, bytes + from.size());
  }
  bool write(const std::filesystem::path& folder, std::uint64_t index) const {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    char name[16];
    std::snprintf(name, sizeof name, "%04llu", static_cast<unsigned long long>(index));
    std::ofstream out(folder / name, std::ios::binary);
    out.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    return out.good();
  }

 private:
  std::vector<char> bytes_;
};

Seed decode_seed(const trz_cases::Case& chunk, std::span<const std::byte> encoded) {
  Seed seed;
  seed.number(static_cast<std::uint8_t>(chunk.type.book != nullptr ? 1 : 0));
  seed.bytes(encoded);
  return seed;
}

Seed round_trip_seed(const trz_cases::Case& chunk) {
  Seed seed;
  const auto byte = [&seed](auto value) { seed.number(static_cast<std::uint8_t>(value)); };
  byte(chunk.type.dtype);
  byte(chunk.type.kind);
  seed.number(chunk.type.bound);
  byte((chunk.type.fill_value ? 1 : 0) + (chunk.type.book != nullptr ? 2 : 0));
  if (chunk.type.fill_value) seed.number(*chunk.type.fill_value);
  byte(chunk.settings.preset);
  byte(chunk.settings.predictor);
  byte(chunk.settings.dimensions);
  byte(chunk.settings.spline);
  byte(chunk.settings.last_axis + 1);
  byte(chunk.settings.lossless_stage);
  byte(chunk.type.shape.size());
  for (const std::uint64_t extent : chunk.type.shape)
    seed.number(static_cast<std::uint16_t>(extent));
  seed.bytes(std::span(chunk.values).first(std::min<std::size_t>(chunk.values.size(), 2048)));
  return seed;
}

Seed filter_seed(const trz_cases::Case& chunk, std::span<const std::byte> encoded, bool reverse) {
  trz::FilterRequest request;
  request.kind = chunk.type.kind;
  request.bound = chunk.type.bound;
  request.settings = chunk.settings;
  trz::FilterChunk filter_chunk;
  filter_chunk.dtype = chunk.type.dtype;
  filter_chunk.shape = chunk.type.shape;
  filter_chunk.fill_value = chunk.type.fill_value;
  const std::vector<std::uint32_t> words = trz::client_words(request, filter_chunk);
  Seed seed;
  seed.number(static_cast<std::uint8_t>(reverse ? 1 : 0));
  seed.number(static_cast<std::uint8_t>(words.size()));
  for (const std::uint32_t word : words) seed.number(word);
  seed.bytes(reverse ? encoded : std::span<const std::byte>(chunk.values));
  return seed;
}

}  // namespace

int main(int n_arguments, char** arguments) {
  if (n_arguments != 2) return 2;
  const std::filesystem::path folder = arguments[1];
  trz::Workspace workspace;
  bool good = true;
  for (std::uint64_t k = 0; k < kSeeds && good; ++k) {
    trz_cases::Random random(k + 1);
    trz_cases::Case chunk = trz_cases::random_case(random, {k % 8 == 0 ? 8192U : 512U, true, true});
    if (chunk.type.book != nullptr) chunk.type.book = &fuzz::shared_book();
    std::vector<std::byte> encoded(trz::encoded_bytes_max(chunk.values.size()));
    const Result<std::size_t> n =
        trz::encode(chunk.type, chunk.settings, chunk.values, encoded, workspace);
    if (!n.ok()) return 1;
    const auto bytes = std::span<const std::byte>(encoded).first(*n);
    good = decode_seed(chunk, bytes).write(folder / "decode", k) &&
           round_trip_seed(chunk).write(folder / "round_trip", k);
    if (chunk.type.shape.empty() || chunk.type.book != nullptr) continue;
    good = good && filter_seed(chunk, bytes, k % 4 != 0).write(folder / "filter", k);
  }
  return good ? 0 : 1;
}
