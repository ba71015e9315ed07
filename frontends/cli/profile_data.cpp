// Chunks made up, and chunks read.

#include "profile_data.hpp"

#include <algorithm>
#include <utility>

#include "commands.hpp"
#include "layout/chunk_shape.hpp"
#include "synthetic_nyx.hpp"

namespace tailrace::cli {
namespace {

constexpr std::uint64_t kChunkBytes = 8U << 20;   // the default of repack
constexpr std::uint64_t kLeastBytes = 64U << 10;  // less is no chunk anybody waits for
constexpr std::size_t kFieldsMax = 6;

/// Indices of the fields worth measuring, the largest first.
std::vector<std::size_t> chosen_fields(const InputFile& input) {
  const std::vector<InputField>& fields = input.fields();
  const auto bytes_of = [&](std::size_t f) {
    return n_elements(fields[f].shape) * dtype_bytes(fields[f].dtype);
  };
  std::vector<std::size_t> chosen;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const bool fits = is_floating(fields[f].dtype) && !fields[f].coordinate;
    if (fits && bytes_of(f) >= kLeastBytes) chosen.push_back(f);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](std::size_t a, std::size_t b) { return bytes_of(a) > bytes_of(b); });
  return chosen;
}

/// This rank's whole chunk of a field.
Box chunk_of_rank(const InputField& field, const Comm& comm) {
  ChunkGrid whole{field.shape,
                  chunk_shape_for(field.shape, dtype_bytes(field.dtype), kChunkBytes,
                                  {.cut_gcd = field.shape, .largest_box = field.shape})};
  // Only whole chunks: all ranks' codecs are made for the same shape.
  for (std::size_t d = 0; d < whole.shape.size(); ++d) {
    whole.shape[d] -= whole.shape[d] % whole.chunk_shape[d];
  }
  return whole.full_box(static_cast<std::uint64_t>(comm.rank()) % whole.n_chunks());
}

}  // namespace

Result<std::vector<ProfileChunk>> generated_chunks(const Comm& comm, std::uint64_t edge) {
  const Shape shape(3, edge);
  const std::vector<std::vector<float>> fields =
      make_synthetic_nyx(shape, static_cast<std::uint64_t>(comm.rank()) + 1);
  std::vector<ProfileChunk> chunks;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    ProfileChunk& chunk = chunks.emplace_back();
    chunk.field = synthetic_nyx_names[f];
    chunk.shape = shape;
    chunk.values = Buffer::copy_of(std::as_bytes(std::span(fields[f])));
    if (!chunk.values.allocated()) return Status(Code::out_of_memory, "no memory for a field");
    chunk.range = value_range(chunk.dtype, std::as_const(chunk.values).bytes());
  }
  return chunks;
}

Result<std::vector<ProfileChunk>> chunks_of_file(const Comm& comm, const std::string& path,
                                                 const std::string& raw_format) {
  Result<std::unique_ptr<InputFile>> input = verbs::open_input(path, raw_format);
  if (!input.ok()) return input.status();
  std::vector<ProfileChunk> chunks;
  for (const std::size_t f : chosen_fields(**input)) {
    const InputField& field = (*input)->fields()[f];
    const Box box = chunk_of_rank(field, comm);
    ProfileChunk chunk;
    chunk.field = field.path;
    chunk.dtype = field.dtype;
    chunk.shape = box.count;
    chunk.values = Buffer(box.n_elements() * dtype_bytes(field.dtype));
    if (!chunk.values.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
    TAILRACE_TRY((*input)->read(f, box, chunk.values.bytes()).within(path + ": " + field.path));
    chunk.range = value_range(field.dtype, std::as_const(chunk.values).bytes(), field.fill_value);
    chunks.push_back(std::move(chunk));
    if (chunks.size() == kFieldsMax) break;
  }
  if (chunks.empty()) {
    return Status(Code::invalid_argument,
                  "--input " + path + ": has no field of floating point numbers of 64 KiB or more");
  }
  return chunks;
}

}  // namespace tailrace::cli
