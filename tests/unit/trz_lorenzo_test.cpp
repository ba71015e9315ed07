// Lorenzo prediction of trz: codes compared with the explicit formula, round trips, patches, and
// the same codes from every instruction set. A substitute for the groups stores the codes, so that
// these tests cover only the prediction.

#include "trz/predict/lorenzo.hpp"
#include "unit/trz_isas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tailrace::trz {
namespace {

std::uint8_t* keep_codes(const std::int32_t* codes, std::size_t n_groups, std::uint8_t*,
                         std::uint8_t* planes) {
  const std::size_t n_bytes = n_groups * kGroupCodes * sizeof(std::int32_t);
  std::memcpy(planes, codes, n_bytes);
  return planes + n_bytes;
}

const std::uint8_t* give_codes(const std::uint8_t*, std::size_t n_groups,
                               const std::uint8_t* planes, std::int32_t* codes) {
  const std::size_t n_bytes = n_groups * kGroupCodes * sizeof(std::int32_t);
  std::memcpy(codes, planes, n_bytes);
  return planes + n_bytes;
}

const GroupKernels kKeepCodes = {nullptr, nullptr, keep_codes, give_codes};

std::size_t n_values_of(const Extents& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

/// Runs `encode(writer)` and returns the codes.
template <class Encode>
std::vector<std::int32_t> codes_of(std::size_t n_values, Encode&& encode) {
  std::vector<std::int32_t> codes((n_values + 63) / 64 * 64);
  std::vector<std::int32_t> buffer(CodeWriter::kBufferCodes);
  std::vector<std::uint8_t> widths(codes.size() / 64);
  CodeWriter writer(kKeepCodes, CodeForm::packed, buffer.data());
  writer.planes = reinterpret_cast<std::uint8_t*>(codes.data());
  writer.widths = widths.data();
  EXPECT_TRUE(encode(writer));
  writer.finish();
  EXPECT_EQ(writer.n_groups, codes.size() / 64);
  codes.resize(n_values);
  return codes;
}

template <class Decode>
bool decode_codes(std::vector<std::int32_t> codes, Decode&& decode) {
  codes.resize((codes.size() + 63) / 64 * 64);
  std::vector<std::int32_t> buffer(CodeWriter::kBufferCodes);
  CodeReader reader(kKeepCodes, CodeForm::packed, buffer.data(), codes.size() / 64);
  reader.planes = reinterpret_cast<const std::uint8_t*>(codes.data());
  const std::vector<std::uint8_t> widths(codes.size() / 64);
  reader.widths = widths.data();
  return decode(reader);
}

/// The formula: alternating sum over the corners of the unit cube, 0 outside the chunk.
std::vector<std::int32_t> expected_codes(const std::vector<std::int32_t>& q, const Extents& extents,
                                         int order) {
  std::vector<std::int32_t> codes(q.size());
  std::size_t strides[4] = {extents[1] * extents[2] * extents[3], extents[2] * extents[3],
                            extents[3], 1};
  for (std::size_t i = 0; i < q.size(); ++i) {
    std::uint32_t code = 0;
    for (unsigned corner = 0; corner < 1U << order; ++corner) {
      std::size_t from = i;
      bool inside = true;
      bool negative = false;
      for (unsigned k = 0; k < static_cast<unsigned>(order); ++k) {
        if (((corner >> k) & 1U) == 0) continue;
        const std::size_t axis = 3 - k;
        inside = inside && i / strides[axis] % extents[axis] != 0;
        from -= inside ? strides[axis] : 0;
        negative = !negative;
      }
      if (!inside) continue;
      const auto value = static_cast<std::uint32_t>(q[from]);
      code += negative ? 0U - value : value;
    }
    codes[i] = static_cast<std::int32_t>(code);
  }
  return codes;
}

const std::vector<Extents>& shapes() {
  static const std::vector<Extents> all = {
      {1, 1, 1, 1},    {1, 1, 1, 5},    {1, 1, 1, 64},   {1, 1, 1, 10007}, {1, 1, 2, 3},
      {1, 1, 37, 41},  {1, 1, 3, 5003}, {1, 1, 900, 6},  {1, 1, 700, 1},   {1, 5, 1, 1},
      {1, 7, 11, 13},  {1, 2, 3, 2500}, {1, 3, 130, 17}, {1, 40, 1, 40},   {1, 9, 33, 128},
      {3, 4, 5, 6},    {2, 3, 2, 2100}, {5, 1, 1, 37},   {6, 1, 9, 1},     {2, 9, 16, 17},
      {3, 1, 50, 100}, {11, 3, 1, 19},  {1, 3, 200, 13}, {2, 2, 150, 15}};
  return all;
}

Lattice<float> lattice_f32(float bound, float offset) {
  const float step = 2 * bound * (1 - 0x1p-10F);
  return {step, 1 / step, bound, offset};
}
Lattice<double> lattice_f64(double bound, double offset) {
  const double step = 2 * bound * (1 - 0x1p-10);
  return {step, 1 / step, bound, offset};
}
Lattice<float> lattice_of(float bound, float offset) { return lattice_f32(bound, offset); }
Lattice<double> lattice_of(double bound, double offset) { return lattice_f64(bound, offset); }

/// The codes that the header promises for one chunk, computed with a short loop.
template <class T>
struct Expected {
  std::vector<std::int32_t> q;
  std::vector<bool> patched;
  std::vector<T> restored;
};

template <class T>
Expected<T> expect_lattice(const std::vector<T>& values, const Lattice<T>& lattice, const T* fill) {
  Expected<T> all;
  std::int32_t held = 0;
  const double reach = sizeof(T) == 4 ? 0x1p21 : 0x1p31;
  for (const T value : values) {
    const T t = (value - lattice.offset) * lattice.inverse_step;
    bool fits = std::abs(static_cast<double>(t)) < reach;
    if (fits) {
      const auto q = static_cast<std::int32_t>(std::nearbyint(t));
      const T restored = lattice.offset + static_cast<T>(q) * lattice.step;
      fits = std::abs(value - restored) < lattice.bound && (fill == nullptr || value != *fill);
      if (fits) held = q;
    }
    all.q.push_back(held);
    all.patched.push_back(!fits);
    all.restored.push_back(lattice.offset + static_cast<T>(held) * lattice.step);
  }
  return all;
}

template <class T>
void check_chunk(const std::vector<T>& values, const Extents& extents, int order,
                 const Lattice<T>& lattice, const T* fill) {
  const Expected<T> expected = expect_lattice(values, lattice, fill);
  const std::vector<std::int32_t> wanted = expected_codes(expected.q, extents, order);
  for (const Isa isa : isas()) {
    SCOPED_TRACE(std::string(isa_name(isa)) + ", order " + std::to_string(order) + ", extents " +
                 std::to_string(extents[0]) + "x" + std::to_string(extents[1]) + "x" +
                 std::to_string(extents[2]) + "x" + std::to_string(extents[3]));
    Workspace workspace(isa);
    std::vector<std::uint64_t> words(PatchMap::words_of(values.size()));
    PatchMap patches(words.data(), values.size());
    const auto codes = codes_of(values.size(), [&](CodeWriter& writer) {
      return lorenzo_encode(values.data(), extents, order, lattice, fill, writer, patches,
                            workspace);
    });
    ASSERT_EQ(codes, wanted);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(patches.test(i), expected.patched[i]) << "value " << i;
    }
    std::vector<T> restored(values.size());
    ASSERT_TRUE(decode_codes(codes, [&](CodeReader& reader) {
      return lorenzo_decode(reader, extents, order, lattice, restored.data(), workspace);
    }));
    ASSERT_EQ(restored, expected.restored);
  }
}

/// Smooth values with noise; `rough` adds values that cannot be quantised.
template <class T>
std::vector<T> field(std::size_t n, bool rough) {
  std::mt19937_64 random(n);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(100 + 50 * std::sin(0.01 * static_cast<double>(i)) +
                               static_cast<double>(random() % 1000) * 1e-3);
  }
  if (!rough) return values;
  for (std::size_t i = 0; i < n; ++i) {
    switch (random() % 40) {
      case 0: values[i] = std::numeric_limits<T>::quiet_NaN(); break;
      case 1: values[i] = std::numeric_limits<T>::infinity(); break;
      case 2: values[i] = -std::numeric_limits<T>::max(); break;
      case 3: values[i] = static_cast<T>(7e8 + static_cast<double>(i)); break;
      case 4:
        for (std::size_t end = std::min(n, i + random() % 300); i + 1 < end; ++i) {
          values[i] = static_cast<T>(-1e34);
        }
        break;
      default: break;
    }
  }
  return values;
}

TEST(TrzLorenzo, CodesFollowTheFormulaInAllShapesAndOrders) {
  for (const Extents& extents : shapes()) {
    const auto narrow = field<float>(n_values_of(extents), false);
    const auto wide = field<double>(n_values_of(extents), false);
    for (int order = 0; order <= 4; ++order) {
      check_chunk<float>(narrow, extents, order, lattice_of(0.01F, 100.0F), nullptr);
      check_chunk<double>(wide, extents, order, lattice_of(0.001, 90.0), nullptr);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TrzLorenzo, FailingValuesHoldTheOneBeforeAndArePatched) {
  for (const Extents& extents : shapes()) {
    const auto narrow = field<float>(n_values_of(extents), true);
    const auto wide = field<double>(n_values_of(extents), true);
    for (int order = 0; order <= 4; ++order) {
      check_chunk<float>(narrow, extents, order, lattice_of(0.05F, 100.0F), nullptr);
      check_chunk<double>(wide, extents, order, lattice_of(1e-5, 90.0), nullptr);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TrzLorenzo, NamedFillIsPatchedWhereverItOccurs) {
  std::vector<float> values = field<float>(5000, false);
  const float fill = 120.0F;  // Within the range of the data.
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = fill;
  check_chunk<float>(values, {1, 1, 50, 100}, 2, lattice_of(0.01F, 100.0F), &fill);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < values.size(); i += 5) values[i] = nan;
  check_chunk<float>(values, {1, 1, 50, 100}, 2, lattice_of(0.01F, 100.0F), &nan);
}

TEST(TrzLorenzo, ChunksOfNothingButFailures) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  check_chunk<float>(std::vector<float>(4097, nan), {1, 1, 17, 241}, 2, lattice_of(1.0F, 0.0F),
                     nullptr);
  check_chunk<double>(std::vector<double>(4097, -1e300), {1, 17, 241, 1}, 3, lattice_of(1.0, 0.0),
                      nullptr);
  check_chunk<float>(std::vector<float>(100, 5.0F), {1, 1, 1, 100}, 1, Lattice<float>{}, nullptr);
}

TEST(TrzLorenzo, IntegersWrapAround) {
  std::mt19937 random(5);
  for (const Extents& extents : shapes()) {
    std::vector<std::int32_t> values(n_values_of(extents));
    for (auto& value : values) value = static_cast<std::int32_t>(random());
    for (int order = 0; order <= 4; ++order) {
      const auto wanted = expected_codes(values, extents, order);
      for (const Isa isa : isas()) {
        Workspace workspace(isa);
        const auto codes = codes_of(values.size(), [&](CodeWriter& writer) {
          return lorenzo_encode_integers(values.data(), extents, order, writer, workspace);
        });
        ASSERT_EQ(codes, wanted) << isa_name(isa) << " order " << order;
        std::vector<std::int32_t> restored(values.size());
        ASSERT_TRUE(decode_codes(codes, [&](CodeReader& reader) {
          return lorenzo_decode_integers(reader, extents, order, restored.data(), workspace);
        }));
        ASSERT_EQ(restored, values) << isa_name(isa) << " order " << order;
      }
    }
  }
}

TEST(TrzLorenzo, HostileCodesAndMissingCodes) {
  // Any codes decode to something; missing codes are reported.
  std::mt19937 random(6);
  std::vector<std::int32_t> codes(6400);
  for (auto& code : codes) code = static_cast<std::int32_t>(random());
  std::vector<float> reference;
  for (const Isa isa : isas()) {
    Workspace workspace(isa);
    std::vector<float> values(6400);
    EXPECT_TRUE(decode_codes(codes, [&](CodeReader& reader) {
      return lorenzo_decode(reader, {1, 10, 10, 64}, 3, lattice_of(1e30F, 0.0F), values.data(),
                            workspace);
    }));
    if (reference.empty()) reference = values;
    EXPECT_EQ(std::memcmp(values.data(), reference.data(), values.size() * sizeof(float)), 0);
    EXPECT_FALSE(decode_codes(std::vector<std::int32_t>(6336, 1), [&](CodeReader& reader) {
      return lorenzo_decode(reader, {1, 10, 10, 64}, 3, lattice_of(1.0F, 0.0F), values.data(),
                            workspace);
    }));
  }
}

}  // namespace
}  // namespace tailrace::trz
