// trz's fitted interpolation, which preset max adds. The bound holds in every shape and form, every
// instruction set gives the same bytes, and no chunk is larger than with preset ratio. Bytes that
// no encoder wrote are tested as well.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/code_sections.hpp"
#include "trz/kernels/fitted_kernels.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

/// A chunk of this form, even if another form is smaller; nullopt if the shape or the bound does
/// not allow the form.
template <class T>
std::optional<Bytes> fitted_chunk(const Case& chunk, bool planar, Workspace& workspace) {
  const std::size_t n = chunk.n_values();
  const std::optional<Extents> extents = fitted_extents(extents_of(chunk.type.shape, 0));
  const std::optional<Lattice<T>> lattice = make_lattice<T>(chunk.type.bound, 0);
  if (n < 2 || !extents || !lattice) return std::nullopt;
  std::vector<std::uint64_t> words(PatchMap::words_of(n));
  PatchMap patches(words.data(), n);
  std::vector<std::uint8_t> room(64 + fitted_bytes_max(n) + patches_bytes_max(n, n, sizeof(T)));
  ChunkWriter out(room);
  write_head({chunk.type.dtype, Method::fitted, *extents, n}, out);
  const T fill = static_cast<T>(chunk.type.fill_value.value_or(0));
  const auto* values = reinterpret_cast<const T*>(chunk.values.data());
  EXPECT_TRUE(write_fitted(values, *extents, planar, {20, 32}, *lattice,
                           chunk.type.fill_value ? &fill : nullptr, patches, out, workspace));
  EXPECT_TRUE(write_patches(reinterpret_cast<const BitsOf<T>*>(values), patches,
                            {ZstdUse::never, 1, nullptr}, out, workspace));
  seal(std::span(room).first(out.n_written()));
  const auto bytes = std::as_bytes(std::span(room).first(out.n_written()));
  return Bytes(bytes.begin(), bytes.end());
}

std::optional<Bytes> fitted_chunk(const Case& chunk, bool planar, Workspace& workspace) {
  return chunk.type.dtype == DType::f32 ? fitted_chunk<float>(chunk, planar, workspace)
                                        : fitted_chunk<double>(chunk, planar, workspace);
}

Case case_of(Data data, const Shape& shape, DType dtype, double bound, Random& random) {
  Case chunk;
  chunk.type.dtype = dtype;
  chunk.type.shape = shape;
  chunk.type.bound = bound;
  chunk.data = data;
  if (data == Data::masked) chunk.type.fill_value = -999.0;
  trz_cases::make_values(chunk, random);
  return chunk;
}

constexpr Data kAllData[] = {Data::smooth,  Data::rough,    Data::walk,    Data::noise,
                             Data::masked,  Data::specials, Data::huge,    Data::denormals,
                             Data::decades, Data::repeated, Data::mixture, Data::random_bits};

TEST(TrzFitted, KeepsTheBoundInEveryFormOnEveryInstructionSet) {
  Random random(1);
  std::size_t n_chunks = 0;
  for (const Shape& shape :
       {Shape{8}, Shape{9}, Shape{700}, Shape{8, 8}, Shape{8, 9}, Shape{33, 20}, Shape{2, 500},
        Shape{500, 3}, Shape{8, 8, 8}, Shape{9, 8, 15}, Shape{17, 10, 33}, Shape{3, 20, 20},
        Shape{20, 3, 20}, Shape{20, 20, 3}, Shape{2, 3, 8, 9}, Shape{40, 8, 8}}) {
    for (const Data data : kAllData) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const double bound = std::pow(10.0, -5.0 * random.unit());
        const Case chunk = case_of(data, shape, dtype, bound, random);
        for (const bool planar : {false, true}) {
          std::optional<Bytes> first;
          for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
            if (!isa_supported(isa)) continue;
            Workspace workspace(isa);
            const std::optional<Bytes> bytes = fitted_chunk(chunk, planar, workspace);
            ASSERT_TRUE(bytes) << chunk.text();
            Bytes values(chunk.values.size());
            const Status status = decode(*bytes, values, nullptr, workspace);
            ASSERT_TRUE(status.ok()) << chunk.text() << ": " << status.message();
            EXPECT_EQ(trz_cases::count_violations(chunk.type, chunk.values, values), 0U)
                << chunk.text() << " planar " << planar;
            if (!first) first = bytes;
            EXPECT_EQ(*first, *bytes) << chunk.text() << " by " << isa_name(isa);
          }
          ++n_chunks;
        }
      }
    }
  }
  EXPECT_EQ(n_chunks, 16 * std::size(kAllData) * 4);
}

TEST(TrzFitted, ShortAxesJoinTheirNeighbours) {
  const auto e = [](std::size_t z, std::size_t y, std::size_t x) { return Extents{1, z, y, x}; };
  EXPECT_EQ(fitted_extents({1, 20, 30, 40}), e(20, 30, 40));
  EXPECT_EQ(fitted_extents({2, 20, 30, 40}), e(40, 30, 40));
  EXPECT_EQ(fitted_extents({1, 20, 30, 7}), e(1, 20, 210));
  EXPECT_EQ(fitted_extents({1, 20, 3, 40}), e(1, 60, 40));
  EXPECT_EQ(fitted_extents({1, 3, 30, 40}), e(1, 90, 40));
  EXPECT_EQ(fitted_extents({1, 1, 3, 40}), e(1, 1, 120));
  EXPECT_EQ(fitted_extents({1, 2, 2, 2}), e(1, 1, 8));
  EXPECT_EQ(fitted_extents({1, 1, 1, 7}), std::nullopt);
}

/// A chunk's bytes with preset ratio and with preset max, each decoded and checked.
std::pair<Bytes, Bytes> by_ratio_and_max(Case chunk, Workspace& workspace) {
  std::pair<Bytes, Bytes> both;
  chunk.settings.preset = Preset::ratio;
  EXPECT_TRUE(round_trip(chunk, workspace, &both.first));
  chunk.settings.preset = Preset::max;
  EXPECT_TRUE(round_trip(chunk, workspace, &both.second));
  return both;
}

TEST(TrzFitted, MaxIsNeverLargerThanRatioAndOftenSmaller) {
  Random random(3);
  Workspace workspace;
  std::size_t n_fitted = 0;
  for (int k = 0; k < 120; ++k) {
    const Case chunk = case_of(kAllData[random.below(std::size(kAllData))], {20, 24, 28},
                               DType::f32, std::pow(10.0, -4.0 * random.unit()), random);
    const auto [ratio, max] = by_ratio_and_max(chunk, workspace);
    EXPECT_LE(max.size(), ratio.size()) << chunk.text();
    if (describe(max)->method == "fitted interpolation") ++n_fitted;
  }
  EXPECT_GE(n_fitted, 10U);
}

/// A field whose roughness varies in space, as in a simulation.
std::vector<float> lively_field(std::size_t n) {
  Random random(4);
  std::vector<float> values;
  for (std::size_t z = 0; z < n; ++z) {
    for (std::size_t y = 0; y < n; ++y) {
      for (std::size_t x = 0; x < n; ++x) {
        const double a = 0.3 * double(x) + 0.1 * double(y);
        const double b = 0.2 * double(y) - 0.15 * double(z);
        const double calm = std::sin(0.05 * double(x + y)) * std::sin(0.08 * double(z));
        values.push_back(static_cast<float>(std::sin(a) * std::cos(b) + std::sin(a + 2 * b) +
                                            0.3 * calm * calm * calm * random.unit()));
      }
    }
  }
  return values;
}

TEST(TrzFitted, ALivelyFieldIsATwentiethSmaller) {
  const std::vector<float> values = lively_field(40);
  Case chunk;
  chunk.type.shape = {40, 40, 40};
  chunk.type.bound = 1e-2;
  const auto bytes = std::as_bytes(std::span(values));
  chunk.values.assign(bytes.begin(), bytes.end());
  Workspace workspace;
  const auto [ratio, max] = by_ratio_and_max(chunk, workspace);
  EXPECT_LT(20 * max.size(), 19 * ratio.size());
  EXPECT_EQ(max[8], std::byte{0x60});
}

// --- Bytes that no encoder wrote

std::vector<std::pair<Case, Bytes>> hostile_seeds() {
  std::vector<std::pair<Case, Bytes>> all;
  Random random(5);
  Workspace workspace;
  for (const Shape& shape : {Shape{900}, Shape{30, 33}, Shape{9, 10, 12}}) {
    for (const Data data : {Data::smooth, Data::masked, Data::decades}) {
      for (const bool planar : {false, true}) {
        Case chunk = case_of(data, shape, DType::f32, 1e-2, random);
        Bytes bytes = *fitted_chunk(chunk, planar, workspace);
        all.emplace_back(std::move(chunk), std::move(bytes));
      }
    }
  }
  return all;
}

void make_fitted_checksum_fit(Bytes& bytes) {
  seal({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
}

/// n codes with a context each, from one of several distributions.
struct Modelled {
  std::vector<std::int32_t> codes;
  std::vector<std::uint8_t> contexts;
};

Modelled modelled(int kind, std::size_t n, Random& random) {
  Modelled made;
  for (std::size_t i = 0; i < n; ++i) {
    const auto r = static_cast<std::uint32_t>(random.next());
    std::int32_t code = 0;                                                // One symbol alone.
    if (kind == 1) code = i == n / 2 ? 1 : 0;                             // Frequencies 1 and 4095.
    if (kind == 2) code = static_cast<std::int32_t>(r % 3 == 0 ? 5 : 6);  // Two large ones.
    if (kind == 3) code = static_cast<std::int32_t>(r >> (r % 32));       // All symbols.
    if (kind == 4) code = i % 1000 == 0 ? static_cast<std::int32_t>(r) : -1;
    made.codes.push_back(code);
    made.contexts.push_back(static_cast<std::uint8_t>(kind == 3 ? r / 64 % kContexts : i % 2 * 40));
  }
  return made;
}

// Quotients of the range coder are products with inverses: they must be exact at every frequency.
TEST(TrzFitted, CodesUnderExtremeFrequenciesComeBack) {
  Random random(17);
  Workspace workspace;
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{100001}}) {
    for (int kind = 0; kind < 5; ++kind) {
      SCOPED_TRACE("kind " + std::to_string(kind) + ", " + std::to_string(n) + " codes");
      const Modelled made = modelled(kind, n, random);
      std::vector<std::uint8_t> room(modelled_bytes_max(n));
      ChunkWriter out(room);
      ASSERT_TRUE(write_modelled(made.codes.data(), made.contexts.data(), n, out, workspace));
      ChunkReader in(std::span<const std::uint8_t>(room).first(out.n_written()));
      ModelReader reader;
      ASSERT_TRUE(reader.open(in, workspace));
      std::vector<std::int32_t> codes(n);
      reader.read(made.contexts.data(), n, codes.data());
      EXPECT_TRUE(reader.finished());
      EXPECT_EQ(codes, made.codes);
    }
  }
}

TEST(TrzFitted, IsOfItsMethodAlone) {
  Workspace workspace;
  for (const auto& [chunk, bytes] : hostile_seeds()) {
    Bytes values(chunk.values.size());
    for (const unsigned method : {0x00U, 0x10U, 0x20U, 0x30U, 0x40U, 0x50U, 0x70U, 0x62U}) {
      Bytes other = bytes;
      other[8] = static_cast<std::byte>(method);
      make_fitted_checksum_fit(other);
      EXPECT_EQ(decode(other, values, nullptr, workspace).code(), Code::corrupt);
    }
  }
}

TEST(TrzFitted, TruncatedAndLengthenedChunksAreRefused) {
  Workspace workspace;
  for (const auto& [chunk, bytes] : hostile_seeds()) {
    Bytes values(chunk.values.size());
    for (std::size_t n = kChecksummedFrom; n <= bytes.size() + 1; n += 1 + n / 64) {
      if (n == bytes.size()) continue;
      Bytes other = bytes;
      other.resize(n);
      make_fitted_checksum_fit(other);
      EXPECT_EQ(decode(other, values, nullptr, workspace).code(), Code::corrupt) << n;
    }
  }
}

TEST(TrzFitted, MutatedChunksGiveOneAnswerOnEveryInstructionSet) {
  Random random(6);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) workspaces.push_back(std::make_unique<Workspace>(isa));
  }
  std::size_t n_refused = 0;
  std::size_t n_taken = 0;
  for (const auto& [chunk, whole_bytes] : hostile_seeds()) {
    for (int round = 0; round < test::tier_rounds(1000, 5); ++round) {
      Bytes bytes = whole_bytes;
      for (std::uint64_t k = 1 + random.below(3); k > 0; --k) {
        // Parameters, weights and tables are at the front.
        const std::size_t reach = random.chance(0.7) ? 200 : bytes.size();
        const std::size_t at = 8 + random.below(std::min(reach, bytes.size() - 8));
        bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
      }
      make_fitted_checksum_fit(bytes);
      std::optional<Code> first;
      for (const auto& workspace : workspaces) {
        Bytes values(chunk.values.size());
        const Code code = decode(bytes, values, nullptr, *workspace).code();
        EXPECT_TRUE(code == Code::ok || code == Code::corrupt);
        if (!first) first = code;
        EXPECT_EQ(*first, code);
      }
      ++(*first == Code::ok ? n_taken : n_refused);
    }
  }
  EXPECT_GT(n_refused, unsigned(test::tier_rounds(10000, 5)));
  EXPECT_GT(n_taken, unsigned(test::tier_rounds(100, 5)));
}

}  // namespace
}  // namespace tailrace::trz
