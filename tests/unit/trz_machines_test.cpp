// trz is the same everywhere: on every instruction set of this machine, and with any rounding and
// denormal modes of the caller. It does not allocate after it has seen chunks of a size.
//
// Between machines and compilers: scripts/check-arm64 and tests/stress --digest.

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdlib>

#include "support/trz_cases.hpp"
#include "unit/trz_support.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// Counts allocations if the C library allows interposition and no sanitizer interposes. clang has
// no macros for sanitizers, so its builds do not count.
#if defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TRZ_COUNTS_ALLOCATIONS 1
namespace {
thread_local std::size_t n_allocations = 0;
}
extern "C" {
// The C library's own names. NOLINTBEGIN
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n_bytes) {
  ++n_allocations;
  return __libc_malloc(n_bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t n_bytes) {
  ++n_allocations;
  return __libc_memalign(alignment, n_bytes);
}
// NOLINTEND
}
#endif

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

std::size_t allocations_so_far() {
#if defined(TRZ_COUNTS_ALLOCATIONS)
  return n_allocations;
#else
  return 0;
#endif
}

struct Outcome {
  Bytes encoded;
  Bytes decoded;
};

Outcome run(const Case& chunk, Workspace& workspace) {
  Outcome result;
  result.encoded.resize(encoded_bytes_max(chunk.values.size()));
  const Result<std::size_t> n =
      encode(chunk.type, chunk.settings, chunk.values, result.encoded, workspace);
  EXPECT_TRUE(n.ok()) << chunk.text();
  if (!n.ok()) return {};
  result.encoded.resize(*n);
  result.decoded.resize(chunk.values.size());
  EXPECT_TRUE(decode(result.encoded, result.decoded, chunk.type.book, workspace).ok());
  return result;
}

TEST(TrzMachines, InstructionSetsAgreeOnEveryByte) {
  Workspace plain(Isa::plain);
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    Workspace wide(isa);
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
      Random random(seed * 31 + 5);
      const Case chunk =
          trz_cases::random_case(random, {seed % 40 == 0 ? 100000U : 3000U, true, true});
      const Outcome a = run(chunk, plain);
      const Outcome b = run(chunk, wide);
      ASSERT_EQ(a.encoded, b.encoded) << isa_name(isa) << " seed " << seed << ": " << chunk.text();
      ASSERT_EQ(a.decoded, b.decoded) << isa_name(isa) << " seed " << seed << ": " << chunk.text();
    }
  }
}

TEST(TrzMachines, TheCallersRoundingModeDoesNotMatter) {
  Workspace workspace;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Case chunk = trz_cases::random_case(random, {2000, true, true});
    const Outcome normal = run(chunk, workspace);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      ASSERT_EQ(std::fesetround(mode), 0);
      const Outcome odd = run(chunk, workspace);
      const int afterwards = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(afterwards, mode);
      ASSERT_EQ(odd.encoded, normal.encoded) << chunk.text();
      ASSERT_EQ(odd.decoded, normal.decoded) << chunk.text();
    }
  }
}

#if defined(__x86_64__)
TEST(TrzMachines, FlushedDenormalsAndTrapsDoNotMatter) {
  const unsigned usual = _mm_getcsr();
  constexpr unsigned flush = 0x8040;  // FTZ and DAZ, as set by programs with -ffast-math.
  constexpr unsigned masks = 0x1F80;  // All exceptions masked, or they would be signals.
  Workspace workspace;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Case chunk = trz_cases::random_case(random, {2000, false, true});
    if (seed % 3 == 0) {
      chunk.data = trz_cases::Data::denormals;
      chunk.type.bound = seed % 2 == 0 ? 1e-41 : 1e-310;
      trz_cases::make_values(chunk, random);
    }
    const Outcome normal = run(chunk, workspace);
    for (const unsigned mode : {usual | flush, usual & ~masks & ~0x3FU}) {
      _mm_setcsr(mode);
      const Outcome odd = run(chunk, workspace);
      const unsigned afterwards = _mm_getcsr();
      _mm_setcsr(usual);
      EXPECT_EQ(afterwards, mode);
      ASSERT_EQ(odd.encoded, normal.encoded) << chunk.text();
      ASSERT_EQ(odd.decoded, normal.decoded) << chunk.text();
    }
  }
}
#endif

TEST(TrzMachines, NothingIsAllocatedOnceAChunkOfItsKindHasBeenSeen) {
  Workspace workspace;
  Bytes encoded(encoded_bytes_max(8 * 5000));
  Bytes decoded(std::size_t{8} * 5000);
  std::size_t n_by_zstd = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    Case chunk = trz_cases::random_case(random, {5000, true, true});
    if (seed % 2 == 0) chunk.settings.lossless_stage = Choice::off;
    const auto run_once = [&] {
      const Result<std::size_t> n =
          encode(chunk.type, chunk.settings, chunk.values, encoded, workspace);
      return n.ok() &&
             decode(std::span(encoded).first(*n), std::span(decoded).first(chunk.values.size()),
                    chunk.type.book, workspace)
                 .ok();
    };
    ASSERT_TRUE(run_once());
    const std::size_t n_held = workspace.held_bytes();
    const std::size_t n_before = allocations_so_far();
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(run_once());
    const std::size_t n_made = allocations_so_far() - n_before;
    if (seed % 2 == 0) {
      ASSERT_EQ(n_made, 0U) << chunk.text();
    }
    n_by_zstd += n_made;
    ASSERT_EQ(workspace.held_bytes(), n_held) << chunk.text();
  }
  // zstd's context shrinks after 128 uses that did not need its size, and grows again.
  EXPECT_LE(n_by_zstd, 100U);
}

}  // namespace
}  // namespace tailrace::trz
