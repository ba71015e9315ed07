// Random chunks for the codec trz: shapes, settings, bounds and values of every kind that hurts.
//
// Shared by the unit tests, the long run (tests/stress) and the fuzzers' seeds. Everything comes
// from one number and from + - * / alone, so that a case is the same on every machine and compiler
// (with -ffp-contract=off): scripts/check-arm64 compares bytes between machines by it. The judge of
// decoded values is here too; it shares no code with the codec.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trz/book/book.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz_cases {

/// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// 0 .. n - 1; n >= 1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// In [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_;
};

/// What the values are like. Names: data_name.
enum class Data : std::uint8_t {
  smooth,       ///< Waves along every axis.
  rough,        ///< Waves and noise of about the bound.
  walk,         ///< A random walk.
  noise,        ///< Independent values.
  constant,     ///< One value.
  nearly,       ///< One value but for a few.
  ties,         ///< Odd multiples of the bound.
  offset,       ///< A small signal on a number whose ulp is about the bound.
  masked,       ///< Smooth, with regions of the fill value.
  specials,     ///< Smooth, with NaN, Inf, -0.0, denormals and the largest values here and there.
  random_bits,  ///< Any bit pattern.
  huge,         ///< Close to the type's largest.
  denormals,    ///< Below the least normal number, and around it.
  decades,      ///< Magnitudes over the whole range of exponents, both signs.
  repeated,     ///< Few distinct values.
  decimals,     ///< Made of whole numbers, here and there something else.
  mixture,      ///< Different kinds in different parts.
  n_kinds
};
const char* data_name(Data data);

struct Case {
  trz::ChunkType type;
  trz::Settings settings;
  Data data = Data::smooth;
  std::vector<std::byte> values;
  std::shared_ptr<trz::Book> book;  ///< What type.book points to, if anything.

  std::size_t n_values() const { return values.size() / dtype_bytes(type.dtype); }
  /// "f32 3x5x7 absolute 1e-3 masked fast ..." for messages.
  std::string text() const;
};

struct Limits {
  std::uint64_t n_values_max = 4096;
  bool integers = true;    ///< Integer types as well.
  bool odd_bounds = true;  ///< Now and then 0, denormal, huge and infinite bounds.
};

/// A whole chunk at random.
Case random_case(Random& random, const Limits& limits);

/// Any shape of at most n_max elements, rank 0 to 6, long thin ones and powers of two included.
Shape random_shape(Random& random, std::uint64_t n_max);
trz::Settings random_settings(Random& random);

/// Fill case.values according to its type and data. Floating types take the scale from the bound.
void make_values(Case& chunk, Random& random);

/// How many decoded values are not what the bound allows: beyond it in exact arithmetic, or not bit
/// for bit the original where they must be (exact, NaN, Inf, fill, zeros of pointwise).
std::uint64_t count_violations(const trz::ChunkType& type, std::span<const std::byte> original,
                               std::span<const std::byte> decoded);

/// Change up to three bytes of a chunk (of 9 and more), sometimes cut it off, and make its checksum
/// fit. Three of four changes are where parameters stand: the first `n_telling` bytes behind the
/// checksum, or as many at the end.
void damage(std::vector<std::byte>& chunk, std::size_t n_telling, Random& random);

/// FNV-1a over 8-byte steps, to compare bytes between machines.
std::uint64_t digest_of(std::span<const std::byte> bytes);

}  // namespace tailrace::trz_cases
