// Long test of the codec trz: random, adversarial and real values, every one of them checked.
//
//   trz_stress [--seconds S] [--values N] [--seed K] [--mode MODE] [--type f32|f64] [--largest N]
//              [FILE...]
//   trz_stress --digest N [--seed K]
//
// The first form alternates modes and types until each has seen N values (default: until S seconds
// are over). It prints checked values and violations for each, and fails if any value violates its
// bound. FILEs of raw f32 values are cut into chunks, which are mixed with the random ones. Modes:
// abs, pw_rel, exact; fill (masked values, within an absolute bound); planes (refined chunks,
// checked at each of their bounds); joined (two chunks, within an absolute bound).
//
// The second form prints a digest of the bytes and of the decoded values of N random chunks. It
// serves to compare machines, compilers and instruction sets; --isa plain, avx2 or avx512 chooses
// the latter.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/refined_chunks.hpp"
#include "support/trz_cases.hpp"

namespace {

using namespace tailrace;
using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using Bytes = std::vector<std::byte>;

enum class Mode : std::uint8_t { abs, pw_rel, exact, fill, planes, joined, n_modes };
constexpr const char* kModeNames[] = {"abs", "pw_rel", "exact", "fill", "planes", "joined"};
constexpr std::size_t n_modes = static_cast<std::size_t>(Mode::n_modes);

struct Options {
  double seconds = 5;
  std::uint64_t n_values = 0;
  std::uint64_t seed = 1;
  std::uint64_t largest = std::uint64_t{1} << 21;
  std::uint64_t n_digests = 0;
  trz::Isa isa = trz::best_isa();
  std::string mode;
  std::string type;
  std::vector<std::vector<float>> files;
};

struct Tally {
  std::uint64_t n_values = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_violations = 0;
  std::uint64_t encoded_bytes = 0;
  double seconds = 0;
};

double now_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Replaces the random values by a section of a real field, scaled so that the bound fits it.
void take_real_values(Case& chunk, const std::vector<float>& field, Random& random) {
  const std::size_t n = chunk.n_values();
  if (field.size() < 2 || n == 0) return;
  const std::size_t begin = random.below(field.size());
  double least = field[begin];
  double greatest = least;
  for (const float value : field) {
    if (!(value > -1e9F && value < 1e30F)) continue;
    least = std::min<double>(least, value);
    greatest = std::max<double>(greatest, value);
  }
  const double range = greatest > least ? greatest - least : 1;
  static constexpr double kRelative[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6};
  if (chunk.type.kind == trz::BoundKind::absolute) {
    chunk.type.bound = kRelative[random.below(std::size(kRelative))] * range;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const float value = field[(begin + i) % field.size()];
    if (chunk.type.dtype == DType::f32) {
      std::memcpy(chunk.values.data() + i * sizeof value, &value, sizeof value);
    } else {
      const double wide = static_cast<double>(value) * (1 + 0x1p-30);
      std::memcpy(chunk.values.data() + i * sizeof wide, &wide, sizeof wide);
    }
  }
}

Case make_case(Mode mode, DType dtype, const Options& options, Random& random) {
  Case chunk;
  for (;;) {
    chunk = trz_cases::random_case(random, {1, false, true});
    const bool wanted = mode == Mode::pw_rel  ? chunk.type.kind == trz::BoundKind::pointwise
                        : mode == Mode::exact ? chunk.type.kind == trz::BoundKind::exact
                                              : chunk.type.kind == trz::BoundKind::absolute;
    if (wanted && chunk.type.dtype == dtype) break;
  }
  // Mostly chunks of realistic sizes, and many small ones.
  const std::uint64_t n_max =
      random.chance(0.5) ? options.largest : 1 + random.below(std::uint64_t{1} << 12);
  chunk.type.shape = trz_cases::random_shape(random, n_max);
  chunk.type.fill_value.reset();
  if (mode == Mode::fill) {
    chunk.data = Data::masked;
    chunk.type.fill_value = random.chance(0.5) ? 1e20 : random.chance(0.5) ? 0.0 : -1e34;
  } else if (chunk.data == Data::masked) {
    chunk.data = Data::smooth;
  }
  trz_cases::make_values(chunk, random);
  if (mode != Mode::fill && !options.files.empty() && random.chance(0.3)) {
    take_real_values(chunk, options.files[random.below(options.files.size())], random);
  }
  return chunk;
}

bool says_done(const char* what, const Status& status, const Case& chunk) {
  if (!status.ok()) {
    std::printf("%s: %s: %s\n", what, status.message().c_str(), chunk.text().c_str());
  }
  return status.ok();
}

/// Encodes one chunk; returns false, with a message, if that fails. The functions below do the
/// same.
bool encode(const Case& chunk, trz::Workspace& workspace, Bytes& encoded) {
  encoded.resize(trz::encoded_bytes_max(chunk.values.size()));
  const Result<std::size_t> n =
      trz::encode(chunk.type, chunk.settings, chunk.values, encoded, workspace);
  if (n.ok()) encoded.resize(*n);
  return says_done("encode", n.status(), chunk);
}

bool decode(const Case& chunk, trz::Workspace& workspace, const Bytes& encoded, Bytes& decoded) {
  decoded.assign(chunk.values.size(), std::byte{0xA5});
  return says_done("decode", trz::decode(encoded, decoded, chunk.type.book, workspace), chunk);
}

/// Decodes an encoded chunk, and counts violations.
bool judge_decoded(const Case& chunk, trz::Workspace& workspace, const Bytes& encoded,
                   std::uint64_t& n_bad) {
  Bytes decoded;
  if (!decode(chunk, workspace, encoded, decoded)) return false;
  n_bad += trz_cases::count_violations(chunk.type, chunk.values, decoded);
  return true;
}

/// Refines a chunk, and checks the bound of each of its levels.
bool judge_planes(const Case& chunk, int n_planes, trz::Workspace& workspace, Bytes& encoded,
                  std::uint64_t& n_bad) {
  encoded = trz_cases::refined_chunk(chunk, n_planes, workspace);
  const bool has_planes = !encoded.empty();
  if (!has_planes && !encode(chunk, workspace, encoded)) return false;
  if (!judge_decoded(chunk, workspace, encoded, n_bad)) return false;
  if (!has_planes) return true;
  Bytes decoded;
  trz::ChunkType coarser = chunk.type;
  for (int n_left = 1; n_left <= n_planes; ++n_left) {
    coarser.bound = std::ldexp(chunk.type.bound, n_left);
    const std::optional<std::size_t> n_bytes = trz::bound_prefix(encoded, coarser.bound);
    if (!n_bytes || *n_bytes >= encoded.size()) {
      std::printf("no prefix for %d of %d planes left out: %s\n", n_left, n_planes,
                  chunk.text().c_str());
      return false;
    }
    decoded.assign(chunk.values.size(), std::byte{0xA5});
    const std::span<const std::byte> prefix = std::span(std::as_const(encoded)).first(*n_bytes);
    const Status status = trz::decode_prefix(prefix, decoded, chunk.type.book, workspace);
    if (!says_done("decode_prefix", status, chunk)) return false;
    n_bad += trz_cases::count_violations(coarser, chunk.values, decoded);
  }
  return true;
}

/// Joins the chunk and another one of its kind at a random position.
bool judge_joined(Case chunk, Random& random, trz::Workspace& workspace, Bytes& encoded,
                  std::uint64_t& n_bad) {
  Case second = chunk;
  trz_cases::make_values(second, random);
  Bytes first_bytes;
  Bytes second_bytes;
  if (!encode(chunk, workspace, first_bytes) || !encode(second, workspace, second_bytes)) {
    return false;
  }
  const std::uint64_t n_first = 1 + random.below(chunk.n_values() - 1);
  encoded.resize(trz::joined_bytes_max(first_bytes.size(), second_bytes.size()));
  const Result<std::size_t> n = trz::join(first_bytes, n_first, second_bytes, encoded);
  if (!says_done("join", n.status(), chunk)) return false;
  encoded.resize(*n);
  const auto at = static_cast<std::ptrdiff_t>(n_first * dtype_bytes(chunk.type.dtype));
  std::copy(second.values.begin() + at, second.values.end(), chunk.values.begin() + at);
  return judge_decoded(chunk, workspace, encoded, n_bad);
}

/// @param n_bad  incremented by the number of values beyond their bound.
bool judge(Mode mode, const Case& chunk, Random& random, trz::Workspace& workspace, Bytes& encoded,
           std::uint64_t& n_bad) {
  if (mode == Mode::planes) {
    const int n_planes = 1 + static_cast<int>(random.below(trz::kBitPlanesMax));
    return judge_planes(chunk, n_planes, workspace, encoded, n_bad);
  }
  if (mode == Mode::joined && chunk.n_values() > 1) {
    return judge_joined(chunk, random, workspace, encoded, n_bad);
  }
  return encode(chunk, workspace, encoded) && judge_decoded(chunk, workspace, encoded, n_bad);
}

int print_digests(const Options& options) {
  trz::Workspace workspace(options.isa);
  Bytes encoded;
  Bytes decoded;
  for (std::uint64_t k = 0; k < options.n_digests; ++k) {
    Random random(options.seed + k);
    const Case chunk =
        trz_cases::random_case(random, {std::uint64_t{1} << (4 + k % 14), true, true});
    if (!encode(chunk, workspace, encoded) || !decode(chunk, workspace, encoded, decoded)) return 1;
    std::printf("%llu %zu %016llx %016llx %016llx %s\n", static_cast<unsigned long long>(k),
                encoded.size(), static_cast<unsigned long long>(trz_cases::digest_of(chunk.values)),
                static_cast<unsigned long long>(trz_cases::digest_of(encoded)),
                static_cast<unsigned long long>(trz_cases::digest_of(decoded)),
                chunk.text().c_str());
  }
  return 0;
}

int run_long(const Options& options) {
  std::array<std::array<Tally, 2>, n_modes> tallies{};
  trz::Workspace workspace(options.isa);
  Bytes encoded;
  const double end_s = now_s() + options.seconds;
  bool failed = false;
  const auto wanted = [&](std::size_t mode, std::size_t wide) {
    if (!options.mode.empty() && options.mode != kModeNames[mode]) return false;
    if (!options.type.empty() && options.type != (wide != 0 ? "f64" : "f32")) return false;
    return options.n_values == 0 || tallies[mode][wide].n_values < options.n_values;
  };
  std::uint64_t seed = options.seed * 1000003;
  for (bool more = true; more && (options.n_values != 0 || now_s() < end_s);) {
    more = false;
    for (std::size_t which = 0; which < 2 * n_modes; ++which) {
      const std::size_t mode = which / 2;
      if (!wanted(mode, which % 2)) continue;
      more = true;
      Random random(++seed);
      Tally& tally = tallies[mode][which % 2];
      const double begin_s = now_s();
      const DType dtype = which % 2 == 0 ? DType::f32 : DType::f64;
      const Case chunk = make_case(static_cast<Mode>(mode), dtype, options, random);
      std::uint64_t n_bad = 0;
      const bool decodes = judge(static_cast<Mode>(mode), chunk, random, workspace, encoded, n_bad);
      if (n_bad != 0) {
        std::printf("seed %llu: %llu violations: %s\n", static_cast<unsigned long long>(seed),
                    static_cast<unsigned long long>(n_bad), chunk.text().c_str());
      }
      failed = failed || !decodes || n_bad != 0;
      tally.n_values += chunk.n_values();
      tally.n_chunks += 1;
      tally.n_violations += n_bad;
      tally.encoded_bytes += encoded.size();
      tally.seconds += now_s() - begin_s;
    }
  }
  for (std::size_t which = 0; which < 2 * n_modes; ++which) {
    const Tally& tally = tallies[which / 2][which % 2];
    if (tally.n_chunks == 0) continue;
    std::printf("%-6s %s %14llu values %9llu chunks %12llu bytes %8.1f s %llu violations\n",
                kModeNames[which / 2], which % 2 == 0 ? "f32" : "f64",
                static_cast<unsigned long long>(tally.n_values),
                static_cast<unsigned long long>(tally.n_chunks),
                static_cast<unsigned long long>(tally.encoded_bytes), tally.seconds,
                static_cast<unsigned long long>(tally.n_violations));
  }
  return failed ? 1 : 0;
}

bool read_file(const std::string& path, std::vector<std::vector<float>>& files) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  files.push_back(std::move(values));
  return in.good() || in.eof();
}

bool read_options(int n_arguments, char** arguments, Options& options) {
  for (int i = 1; i < n_arguments; ++i) {
    const std::string name = arguments[i];
    if (name.rfind("--", 0) != 0) {
      if (!read_file(name, options.files)) return false;
      continue;
    }
    if (i + 1 == n_arguments) return false;
    const std::string value = arguments[++i];
    const auto number = static_cast<std::uint64_t>(std::strtod(value.c_str(), nullptr));
    if (name == "--seconds") {
      options.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--values") {
      options.n_values = number;
    } else if (name == "--seed") {
      options.seed = number;
    } else if (name == "--largest") {
      options.largest = number;
    } else if (name == "--digest") {
      options.n_digests = number;
    } else if (name == "--mode") {
      options.mode = value;
    } else if (name == "--type") {
      options.type = value;
    } else if (name == "--isa") {
      options.isa = value == "avx512" ? trz::Isa::avx512
                    : value == "avx2" ? trz::Isa::avx2
                                      : trz::Isa::plain;
      if (!trz::isa_supported(options.isa)) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int n_arguments, char** arguments) {
  Options options;
  if (!read_options(n_arguments, arguments, options)) {
    std::fprintf(stderr, "trz_stress: see the head of tests/stress/trz_stress.cpp\n");
    return 2;
  }
  return options.n_digests != 0 ? print_digests(options) : run_long(options);
}
