#include "verbs/verify_unwritten.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tailrace::verbs {
namespace {

/// True if elements of missing chunks have no value.
bool is_unfilled(const StoredDataset& field) {
  constexpr std::uint8_t never = 1;  // H5D_FILL_TIME_NEVER
  return field.chunked() && (field.times.no_fill_value || field.times.fill == never);
}

/// Numbers of the chunks that a file lacks, ascending.
Result<std::vector<std::uint64_t>> missing_chunks(InputFile& file, std::size_t field_index) {
  std::vector<std::uint64_t> missing;
  TAILRACE_TAKE(const auto there, file.chunks_there(field_index));
  if (!there) return missing;
  const StoredDataset& field = file.fields()[field_index];
  const ChunkGrid grid{field.shape, field.storage.chunk_shape};
  auto next = there->begin();
  for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
    if (next != there->end() && *next == chunk) {
      ++next;
    } else {
      missing.push_back(chunk);
    }
  }
  return missing;
}

}  // namespace

Status find_unwritten(InputFile& original, InputFile& compressed, VerifyTask& task,
                      std::vector<std::string>& problems) {
  const StoredDataset& field = original.fields()[task.original_index];
  const StoredDataset& copy = compressed.fields()[task.compressed_index];
  if (!is_unfilled(field)) return Status();
  TAILRACE_TAKE(task.unwritten.chunks, missing_chunks(original, task.original_index));
  task.unwritten.grid = {field.shape, field.storage.chunk_shape};
  if (!is_unfilled(copy) || copy.storage.chunk_shape != field.storage.chunk_shape) return Status();
  TAILRACE_TAKE(const auto of_copy, missing_chunks(compressed, task.compressed_index));
  if (of_copy == task.unwritten.chunks) return Status();
  const auto [a, b] = std::ranges::mismatch(task.unwritten.chunks, of_copy);
  const bool in_copy = b == of_copy.end() || (a != task.unwritten.chunks.end() && *a < *b);
  const Box box = task.unwritten.grid.clipped_box(in_copy ? *a : *b);
  problems.push_back(
      fmt::format("field \"{}\": chunk {} has values only in the {}; in the other file it was "
                  "never written, so its values are undefined",
                  task.path, box_text(box), in_copy ? "compressed file" : "original"));
  return Status();
}

void leave_out_unwritten(const VerifyTask& task, const Box& box,
                         std::span<const std::byte> original, std::span<std::byte> decoded) {
  const std::vector<std::uint64_t>& chunks = task.unwritten.chunks;
  if (chunks.empty() || box.empty()) return;
  for_each_position(task.unwritten.grid.touched(box), [&](const Shape& at) {
    const std::uint64_t chunk = task.unwritten.grid.index_of(at);
    if (!std::ranges::binary_search(chunks, chunk)) return;
    const Box part = intersect(task.unwritten.grid.clipped_box(chunk), box);
    copy_box(part, box, original.data(), box, decoded.data(), dtype_bytes(task.dtype));
  });
}

}  // namespace tailrace::verbs
