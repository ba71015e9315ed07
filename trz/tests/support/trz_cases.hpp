// Random chunks for the codec trz: shapes, settings, bounds and values, including difficult ones.
//
// Shared by the unit tests, the long run (tests/stress) and the fuzzers' seeds. Everything is
// derived from one seed with only + - * /, so that a case is the same on every machine and compiler
// (with -ffp-contract=off). scripts/check-arm64 relies on this to compare bytes between machines.
// The check of decoded values is also here; it shares no code with the codec.

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

/// Pseudo-random generator splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// Integer in 0 .. n - 1; n >= 1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// Number in [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_;
};

/// Kinds of values. Names: data_name().
enum class Data : std::uint8_t {
  smooth,       ///< Waves along every axis.
  rough,        ///< Waves and noise of approximately the bound.
  walk,         ///< A random walk.
  noise,        ///< Independent values.
  constant,     ///< One value.
  nearly,       ///< One value, with few exceptions.
  ties,         ///< Odd multiples of the bound.
  offset,       ///< A small signal plus a constant whose ulp is approximately the bound.
  masked,       ///< Smooth, with regions of the fill value.
  specials,     ///< Smooth, with scattered NaN, Inf, -0.0, denormals and largest values.
  random_bits,  ///< Any bit pattern.
  huge,         ///< Close to the type's largest value.
  denormals,    ///< Below the least normal number, and near it.
  decades,      ///< Magnitudes over the whole range of exponents, both signs.
  repeated,     ///< Few distinct values.
  decimals,     ///< Derived from integers, with scattered exceptions.
  mixture,      ///< Different kinds in different parts.
  n_kinds
};
const char* data_name(Data data);

struct Case {
  trz::ChunkType type;
  trz::Settings settings;
  Data data = Data::smooth;
  std::vector<std::byte> values;
  std::shared_ptr<trz::Book> book;  ///< Owns the book of type.book, if any.

  std::size_t n_values() const { return values.size() / dtype_bytes(type.dtype); }
  /// Description for messages: "f32 3x5x7 absolute 1e-3 masked fast ...".
  std::string text() const;
};

struct Limits {
  std::uint64_t n_values_max = 4096;
  bool integers = true;    ///< Integer types as well.
  bool odd_bounds = true;  ///< Includes bounds that are 0, denormal, huge or infinite.
};

/// Make a complete random chunk.
Case random_case(Random& random, const Limits& limits);

/// Random shape of at most n_max elements, rank 0 to 6, including long thin ones and powers of two.
Shape random_shape(Random& random, std::uint64_t n_max);
trz::Settings random_settings(Random& random);

/// Fill case.values according to its type and data. The bound sets the scale of floating-point
/// values.
void make_values(Case& chunk, Random& random);

/// Count decoded values that violate the bound in exact arithmetic. Also counts values that differ
/// although they must be equal bit for bit (exact, NaN, Inf, fill, zeros of pointwise).
std::uint64_t count_violations(const trz::ChunkType& type, std::span<const std::byte> original,
                               std::span<const std::byte> decoded);

/// Change up to three bytes of a chunk of at least 9, sometimes truncate it, and correct its
/// checksum. Three of four changes are near parameters: in the first `n_telling` bytes after the
/// checksum, or in equally many at the end.
void damage(std::vector<std::byte>& chunk, std::size_t n_telling, Random& random);

/// FNV-1a hash over 8-byte steps, to compare bytes between machines.
std::uint64_t digest_of(std::span<const std::byte> bytes);

}  // namespace tailrace::trz_cases
