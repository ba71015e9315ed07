// Boxes, carry-over and tools for the tests of input files.

#include "input_support.hpp"

#include <algorithm>
#include <cstdio>

#include "hdf5/hdf5_file.hpp"

namespace tailrace::test {
namespace {

/// Creates one field's dataset and writes its bytes into the file.
void copy_field(InputFile& input, std::size_t index, Hdf5File& file, Storage& storage,
                ScatteringTail& tail) {
  const StoredDataset& field = input.fields()[index];
  std::vector<std::byte> values(n_elements(field.shape) * field.value_bytes());
  ASSERT_DONE(input.read(index, whole_box(field.shape), values));
  DatasetDefinition definition;
  definition.path = field.path;
  definition.dtype = *field.dtype;
  definition.shape = field.shape;
  definition.extendable = field.extendable;
  definition.fill_value = field.missing_value;
  const std::uint64_t address = values.empty() ? 0 : tail.claim(values.size());
  if (field.extendable) {
    // One chunk holds everything.
    for (const std::uint64_t extent : field.shape) {
      definition.chunk_shape.push_back(std::max<std::uint64_t>(extent, 1));
    }
  } else {
    definition.contiguous_address = address;
  }
  if (!values.empty()) ASSERT_DONE(storage.write_at(address, values));
  ASSERT_DONE(file.create_dataset(definition));
  if (!field.extendable || values.empty()) return;
  const std::vector<Hdf5File::ChunkRecord> records = {{0, {address, values.size()}, 0}};
  ASSERT_DONE(file.insert_chunks(field.path, records));
}

}  // namespace

std::size_t field_index(const InputFile& input, const std::string& path) {
  for (std::size_t i = 0; i < input.fields().size(); ++i) {
    if (input.fields()[i].path == path) return i;
  }
  ADD_FAILURE() << "no field " << path;
  return input.fields().size();
}

void expect_boxes_match(InputFile& input, std::size_t field, const Shape& box_shape) {
  const StoredDataset& facts = input.fields().at(field);
  const std::size_t n_bytes = facts.value_bytes();
  std::vector<std::byte> whole(n_elements(facts.shape) * n_bytes);
  ASSERT_DONE(input.read(field, whole_box(facts.shape), whole));
  const ChunkGrid grid{facts.shape, box_shape};
  for (std::uint64_t i = 0; i < grid.n_chunks(); ++i) {
    const Box box = grid.clipped_box(i);
    std::vector<std::byte> part(box.n_elements() * n_bytes);
    std::vector<std::byte> expected(part.size());
    ASSERT_DONE(input.read(field, box, part));
    copy_box(box, whole_box(facts.shape), whole.data(), box, expected.data(), n_bytes);
    ASSERT_TRUE(part == expected) << facts.path << " " << box_text(box);
  }
}

void carry_over(InputFile& input, const std::string& output_path, std::vector<std::string>& lines) {
  RecordingStorage storage(output_path, false);
  ScatteringTail tail;
  Hdf5File::Settings settings;
  settings.sync = false;
  Result<std::unique_ptr<Hdf5File>> file = Hdf5File::create(storage, tail.allocate(), settings);
  ASSERT_TRUE(file.ok()) << text_of(file.status());
  const Result<std::vector<std::string>> before = input.carry_over_objects(**file);
  ASSERT_TRUE(before.ok()) << text_of(before.status());
  for (std::size_t i = 0; i < input.fields().size(); ++i) {
    copy_field(input, i, **file, storage, tail);
  }
  const Result<std::vector<std::string>> after = input.carry_over_attributes(**file, {});
  ASSERT_TRUE(after.ok()) << text_of(after.status());
  ASSERT_DONE((*file)->close());
  lines = *before;
  lines.insert(lines.end(), after->begin(), after->end());
}

std::string tool_output(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> part;
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), n);
  }
  return ::pclose(pipe) == 0 ? text : std::string();
}

}  // namespace tailrace::test
