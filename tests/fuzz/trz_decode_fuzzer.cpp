// Fuzzer: any bytes as a chunk for trz::decode and trz::describe.
//
// The head's magic, version and checksum are put right first, or nothing would ever get behind
// them. Every instruction set of this machine must come to the same verdict and the same values;
// memory must stay within the codec's word. Crashes and sanitizer reports are the rest.

#include <cstring>
#include <vector>

#include "codec/trz/chunk_header.hpp"
#include "codec/trz/trz.hpp"
#include "fuzz/fuzz_support.hpp"

using namespace tailrace;

namespace {

constexpr std::size_t kValueBytesMax = std::size_t{1} << 19;

std::vector<std::byte> with_right_head(const std::uint8_t* data, std::size_t n_bytes) {
  std::vector<std::byte> chunk(n_bytes);
  if (n_bytes > 0) std::memcpy(chunk.data(), data, n_bytes);
  if (n_bytes < trz::kChecksummedFrom) return chunk;
  std::memcpy(chunk.data(), "TRZ\1", 4);
  trz::seal({reinterpret_cast<std::uint8_t*>(chunk.data()), chunk.size()});
  return chunk;
}

struct Outcome {
  Code code = Code::ok;
  std::vector<std::byte> values;
};

Outcome decode_with(trz::Workspace& workspace, const std::vector<std::byte>& chunk,
                    std::size_t n_bytes, const trz::Book* book) {
  Outcome outcome;
  outcome.values.assign(n_bytes, std::byte{0});
  outcome.code = trz::decode(chunk, outcome.values, book, workspace).code();
  if (outcome.code != Code::ok) outcome.values.clear();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 1) return 0;
  const std::uint8_t options = data[0];
  const std::vector<std::byte> chunk = with_right_head(data + 1, n_bytes - 1);
  const Result<trz::ChunkSummary> summary = trz::describe(chunk);
  std::size_t n_values_bytes = options;
  if (summary.ok()) {
    const std::size_t element_bytes = dtype_bytes(summary->dtype);
    if (summary->n_values > kValueBytesMax / element_bytes) return 0;
    n_values_bytes = static_cast<std::size_t>(summary->n_values) * element_bytes;
    if ((options & 7) == 7) n_values_bytes += options >> 3;  // The wrong size now and then.
  }
  const trz::Book* book = (options & 1) != 0 ? &fuzz::shared_book() : nullptr;
  // One workspace is new each time, so that what it holds afterwards is what this chunk took.
  trz::Workspace workspace(trz::Isa::plain);
  const Outcome plain = decode_with(workspace, chunk, n_values_bytes, book);
  FUZZ_CHECK(workspace.held_bytes() <=
             16 * (n_values_bytes + chunk.size()) + (std::size_t{1} << 20));
  for (const trz::Isa isa : {trz::Isa::avx2, trz::Isa::avx512}) {
    if (!trz::isa_supported(isa)) continue;
    const Outcome other = decode_with(fuzz::kept_workspace(isa), chunk, n_values_bytes, book);
    FUZZ_CHECK(other.code == plain.code);
    FUZZ_CHECK(
        fuzz::same_but_nan(summary.ok() ? summary->dtype : DType::u8, plain.values, other.values));
  }
  return 0;
}
