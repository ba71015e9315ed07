// Writes the fuzzers' seeds: small valid chunks of every kind. Generated when fuzzing starts, so
// that the repository needs no binary corpus that has to follow the format.
//
//   codec_seeds FOLDER
//
// writes FOLDER/{trz_decode,trz_round_trip,trz_filter,filter_pipeline,xor_decode}/NNNN.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz_support.hpp"
#include "support/refined_chunks.hpp"
#include "support/trz_cases.hpp"
#include "trz/client_data.hpp"
#include "xor/xor_chunk.hpp"

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

/// Join a chunk with itself; a chunk of one value is returned unchanged.
std::vector<std::byte> joined_with_itself(const trz_cases::Case& chunk,
                                          std::span<const std::byte> encoded) {
  std::vector<std::byte> both(trz::joined_bytes_max(encoded.size(), encoded.size()));
  const Result<std::size_t> n = trz::join(encoded, chunk.n_values() / 2, encoded, both);
  if (!n.ok()) return {encoded.begin(), encoded.end()};
  both.resize(*n);
  return both;
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
  byte(static_cast<int>(chunk.settings.lossless_stage) + 3 * chunk.settings.coarse_views);
  byte(chunk.settings.bit_planes);
  byte(chunk.type.shape.size());
  for (const std::uint64_t extent : chunk.type.shape)
    seed.number(static_cast<std::uint16_t>(extent));
  seed.bytes(std::span(chunk.values).first(std::min<std::size_t>(chunk.values.size(), 2048)));
  return seed;
}

std::vector<std::uint32_t> words_of(const trz_cases::Case& chunk) {
  trz::FilterRequest request;
  request.kind = chunk.type.kind;
  request.bound = chunk.type.bound;
  request.settings = chunk.settings;
  trz::FilterChunk filter_chunk;
  filter_chunk.dtype = chunk.type.dtype;
  filter_chunk.shape = chunk.type.shape;
  filter_chunk.fill_value = chunk.type.fill_value;
  return trz::client_words(request, filter_chunk);
}

Seed filter_seed(const trz_cases::Case& chunk, std::span<const std::byte> encoded, bool reverse) {
  const std::vector<std::uint32_t> words = words_of(chunk);
  Seed seed;
  seed.number(static_cast<std::uint8_t>(reverse ? 1 : 0));
  seed.number(static_cast<std::uint8_t>(words.size()));
  for (const std::uint32_t word : words) seed.number(word);
  seed.bytes(reverse ? encoded : std::span<const std::byte>(chunk.values));
  return seed;
}

/// Index of a filter in the list of filter_pipeline_fuzzer.cpp, and its client data.
using Filter = std::pair<std::uint8_t, std::vector<std::uint32_t>>;

/// Make a seed: filters, and a chunk that the fuzzer encodes with them and damages in some cases.
Seed pipeline_seed(const trz_cases::Case& chunk, std::uint64_t index) {
  const auto element_bytes = static_cast<std::uint32_t>(dtype_bytes(chunk.type.dtype));
  const neighbour_xor::ChunkType as_words = {
      .element_bytes = element_bytes, .shape = chunk.type.shape, .dimension = 0};
  const Filter deflate{0, {4}};
  const Filter shuffle{1, {element_bytes}};
  const Filter checksum{2, {}};
  const Filter of_trz{3, words_of(chunk)};
  const Filter of_xor{4, neighbour_xor::client_words(as_words)};
  const std::vector<Filter> pipelines[] = {
      {of_trz}, {of_xor}, {shuffle, deflate}, {of_trz, checksum}, {shuffle, deflate, checksum}, {}};
  const std::vector<Filter>& filters = pipelines[index % std::size(pipelines)];
  Seed seed;
  const auto byte = [&seed](auto value) { seed.number(static_cast<std::uint8_t>(value)); };
  byte(element_bytes - 1);
  byte(chunk.type.shape.size() - 1);
  for (const std::uint64_t extent : chunk.type.shape) {
    seed.number(static_cast<std::uint16_t>(extent));
  }
  byte(filters.size());
  for (const auto& [place, words] : filters) {
    byte(place);
    byte(0);
    byte(words.size());
    for (const std::uint32_t word : words) seed.number(word);
  }
  byte(0);
  byte(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    seed.number(static_cast<std::uint16_t>(index * 7 + 11 * i));
    byte(index % 4);
  }
  seed.bytes(std::span(chunk.values).first(std::min<std::size_t>(chunk.values.size(), 512)));
  return seed;
}

/// Make a chunk with at most as many values as xor_decode_fuzzer.cpp can request.
Seed xor_seed(const trz_cases::Case& chunk, std::uint64_t index) {
  const std::size_t width = index % 4;
  const std::size_t step = index % 16 < 4 ? 23 : 1;
  const std::size_t n = std::min<std::size_t>(chunk.values.size() / (step << width), 255);
  const neighbour_xor::ChunkType type = {
      .element_bytes = std::size_t{1} << width, .shape = {n * step}, .dimension = 0};
  const auto values = std::span<const std::byte>(chunk.values).first(n * (step << width));
  std::vector<std::byte> encoded(neighbour_xor::encoded_bytes_max(values.size()));
  const Result<std::size_t> n_bytes =
      neighbour_xor::encode(type, values, encoded, neighbour_xor::Build::plain);
  Seed seed;
  seed.number(static_cast<std::uint8_t>(width | (step > 1 ? 0x80U : 0U)));
  seed.number(static_cast<std::uint8_t>(n));
  seed.bytes(std::span<const std::byte>(encoded).first(n_bytes.ok() ? *n_bytes : 0));
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
    const std::vector<std::byte> joined = joined_with_itself(chunk, bytes);
    std::vector<std::byte> refined;
    if (k % 8 == 2 && is_floating(chunk.type.dtype)) {
      refined = trz_cases::refined_chunk(chunk, 1 + static_cast<int>(k / 8 % 8), workspace);
    }
    const auto decoded = !refined.empty() ? std::span<const std::byte>(refined)
                         : k % 8 == 1     ? std::span<const std::byte>(joined)
                                          : bytes;
    good = decode_seed(chunk, decoded).write(folder / "trz_decode", k) &&
           round_trip_seed(chunk).write(folder / "trz_round_trip", k) &&
           xor_seed(chunk, k).write(folder / "xor_decode", k);
    if (chunk.type.shape.empty() || chunk.type.book != nullptr) continue;
    good = good && filter_seed(chunk, bytes, k % 4 != 0).write(folder / "trz_filter", k);
    if (chunk.type.shape.size() > 4 || k % 8 == 0) continue;
    good = good && pipeline_seed(chunk, k).write(folder / "filter_pipeline", k);
  }
  return good ? 0 : 1;
}
