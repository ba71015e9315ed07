// Detects the format of a file from its first bytes, and opens it as fields: HDF5 files with
// ChunkReader, others with their own readers (describe).
//
// Chunks that a box uses in part are cached, and chunks are decoded ahead if boxes follow one
// another, within ReadOptions::memory_bytes. Boxes in row-major order decode each chunk once if a
// row of chunks fits half of that memory.

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "chunk/chunk_reader.hpp"
#include "chunk/stored_chunk.hpp"
#include "describe/input_bytes.hpp"
#include "describe/input_flat.hpp"
#include "describe/input_netcdf_classic.hpp"
#include "describe/stored_file.hpp"
#include "measure/machine_identity.hpp"
#include "read/read.hpp"

namespace tailrace {
namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kSignatureBytes = 8;

/// Read the first bytes from `address`; fewer at the end of the file.
Result<std::string> peek(const InputBytes& bytes, std::uint64_t address) {
  if (address >= bytes.file_bytes()) return std::string();
  std::string text(std::min<std::uint64_t>(kSignatureBytes, bytes.file_bytes() - address), '\0');
  TAILRACE_TRY(bytes.read_at(address, std::as_writable_bytes(std::span(text))));
  return text;
}

/// Find the address of HDF5's signature; std::nullopt: the file has none. It is at 0 or, after a
/// user block, at 512, 1024, 2048, ...
Result<std::optional<std::uint64_t>> find_hdf5_signature(const InputBytes& bytes) {
  for (std::uint64_t at = 0; at < bytes.file_bytes(); at = at == 0 ? 512 : at * 2) {
    TAILRACE_TAKE(const std::string found, peek(bytes, at));
    if (found == kHdf5Signature) return std::optional(at);
  }
  return std::optional<std::uint64_t>();
}

bool is_netcdf_classic(std::string_view first) {
  return first.size() >= 4 && first.substr(0, 3) == "CDF" &&
         (first[3] == 1 || first[3] == 2 || first[3] == 5);
}

std::string printable(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value >= 0x20 && value < 0x7f) {
      text += byte;
    } else {
      text += "\\x";
      text += kDigits[value >> 4U];
      text += kDigits[value & 15U];
    }
  }
  return text;
}

/// InputFile over an HDF5 or netCDF-4 file.
class Hdf5Input final : public InputFile {
 public:
  static Result<std::unique_ptr<InputFile>> open(const std::string& path,
                                                 std::uint64_t user_block_bytes,
                                                 const ReadOptions& options) {
    TAILRACE_TAKE(auto file, StoredFile::open(path, other_files_of(options)));
    TAILRACE_TAKE(DatasetList list, file->list(CatalogDetail::fields, options.skip_unreadable));
    TAILRACE_TAKE(const BytesBehindEnd behind, bytes_behind_end(file->bytes(), user_block_bytes));
    std::vector<OtherDataset> others;
    for (const StoredDataset& dataset : list.datasets) {
      if (dataset.field) continue;
      const bool is_its_bytes = dataset.by_value && !dataset.foreign;
      others.push_back({dataset.path, dataset.type_text, dataset.shape,
                        is_its_bytes ? n_elements(dataset.shape) * dataset.element_bytes : 0,
                        dataset.is_dimension});
    }
    std::map<std::string, StoredDataset> elements;
    for (StoredDataset& dataset : list.datasets) {
      if (dataset.field || !dataset.may_be_bytes || !options.others_as_bytes) continue;
      StoredDataset& stored = elements[dataset.path] = dataset;
      stored.dtype.reset();  // Half precision would be read as a number.
      dataset = as_bytes(stored);
    }
    std::erase_if(list.datasets, [](const StoredDataset& dataset) { return !dataset.field; });
    ReadOptions in_one_pass = options;
    in_one_pass.one_pass = true;
    std::unique_ptr<Hdf5Input> input(new Hdf5Input(
        path, user_block_bytes, std::move(file), std::move(list), std::move(others), in_one_pass));
    input->elements_ = std::move(elements);
    if (behind.n_bytes > 0) input->remark_of_end_ = behind.text() + ": left out";
    return std::unique_ptr<InputFile>(std::move(input));
  }

  const std::string& format() const override { return format_; }
  const std::vector<StoredDataset>& fields() const override { return fields_; }

  std::uint64_t user_block_bytes() const override { return user_block_bytes_; }
  std::vector<std::string> remarks() const override { return remarks_; }
  std::string remark_of_end() const override { return remark_of_end_; }
  std::vector<std::string> unreadable() const override { return unreadable_; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index >= fields_.size()) {
      return Status(Code::invalid_argument, path_ + ": field number " +
                                                std::to_string(field_index) +
                                                " does not exist; the file has " +
                                                std::to_string(fields_.size()) + " fields");
    }
    const StoredDataset& field = fields_[field_index];
    TAILRACE_TRY(check_read_request("field \"" + field.path + "\"", field.shape, box,
                                    field.value_bytes(), values.size()));
    if (box.empty()) return Status();
    Slab slab = Slab::of(box);
    if (by_hdf5_[field_index]) {
      const Status read = file_->read_slab(field, slab, values);
      if (read.ok() || field.by_hdf5() || field.bytes_axis) return read;
      // HDF5 does not say which chunk is damaged.
      const Status chunk = damage(chunks_.read(*file_, field_index, field, slab, values));
      return chunk.code() == Code::corrupt ? chunk : read;
    }
    if (field.bytes_axis) {
      if (box.count.back() != field.shape.back()) {
        return Status(Code::internal,
                      "field \"" + field.path + "\": only whole elements can be read");
      }
      slab = Slab::of({Shape(box.start.begin(), box.start.end() - 1),
                       Shape(box.count.begin(), box.count.end() - 1)});
    }
    const Status read = chunks_.read(*file_, field_index, stored(field), slab, values);
    if (read.ok()) return read;
    if (read.code() == Code::plugin_missing || read.code() == Code::unsupported) {
      // HDF5 may have filters that Tailrace cannot run, such as those that only decode. If it
      // cannot read the field either, its error names the folders that it has searched.
      by_hdf5_[field_index] = true;
      return file_->read_slab(field, slab, values);
    }
    return damage(read);
  }

  Result<std::optional<std::vector<std::uint64_t>>> chunks_there(std::size_t field_index) override {
    using Numbers = std::optional<std::vector<std::uint64_t>>;
    const StoredDataset& field = fields_[field_index];
    const ChunkGrid grid{field.shape, field.storage.chunk_shape};
    if (!field.chunked() || field.foreign || field.n_chunks_there == grid.n_chunks())
      return Numbers();
    TAILRACE_TAKE(const std::vector<StoredChunk> chunks, file_->chunks(stored(field)));
    std::vector<std::uint64_t> numbers;
    numbers.reserve(chunks.size());
    for (const StoredChunk& chunk : chunks) numbers.push_back(chunk.chunk_index);
    std::ranges::sort(numbers);
    return Numbers(std::move(numbers));
  }

  Result<bool> has_masked_chunks(std::size_t field_index) override {
    const StoredDataset& field = fields_[field_index];
    if (!field.chunked() || field.foreign || field.storage.filters.empty()) return false;
    TAILRACE_TAKE(const std::vector<StoredChunk> chunks, file_->chunks(stored(field)));
    return std::ranges::any_of(chunks,
                               [](const StoredChunk& chunk) { return chunk.filter_mask != 0; });
  }

  std::vector<OtherDataset> other_datasets() const override { return others_; }
  void take_as_fields(std::span<const std::size_t> field_indices) override {
    std::set<std::string> paths;
    for (const std::size_t index : field_indices) paths.insert(fields_[index].path);
    std::erase_if(others_, [&](const OtherDataset& other) { return paths.contains(other.path); });
    file_->take_as_fields(paths);
  }
  void leave_out(const std::set<std::string>& paths) override {
    std::erase_if(others_, [&](const OtherDataset& other) { return paths.contains(other.path); });
    file_->leave_out(paths);
  }
  std::vector<std::pair<std::string, std::string>> objects() const override {
    return file_->objects();
  }
  Result<std::optional<EncodedBytes>> read_stored(std::size_t field_index,
                                                  std::uint64_t chunk_index) override {
    const StoredDataset& field = fields_[field_index];
    TAILRACE_TAKE(const std::optional<StoredChunk> chunk, file_->chunk(stored(field), chunk_index));
    if (!chunk) return std::optional<EncodedBytes>();
    TAILRACE_TAKE(EncodedBytes encoded, fetch_chunk(*file_, place_of(*chunk))
                                            .within(path_ + ": dataset \"" + field.path +
                                                    "\": chunk " + std::to_string(chunk_index)));
    return std::optional<EncodedBytes>(std::move(encoded));
  }
  Result<std::shared_ptr<const BoxSeries>> boxes_of(std::size_t field_index) override {
    return file_->boxes_of(fields_[field_index]);
  }
  Result<LevelCover> cover_of(std::size_t field_index,
                              const std::shared_ptr<const BoxSeries>& boxes) override {
    return file_->cover_of(fields_[field_index], boxes);
  }
  std::string text_attribute(const std::string& object_path, const std::string& name) override {
    return file_->text_attribute(object_path, name);
  }
  std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                              std::span<const char* const> names) override {
    return file_->number_attribute(object_path, names);
  }
  Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                     AttributeFilter wanted) override {
    return file_->attributes_of(object_path, wanted);
  }
  Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) override {
    return file_->carry_over_objects(output);
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                         const CopiedObjects& copied) override {
    return file_->carry_over_attributes(output, copied);
  }

 private:
  /// Add the file to an error of ChunkReader. For the reader of a file, a chunk that does not
  /// decode means a damaged file.
  Status damage(const Status& read) const {
    const Code code = read.code() == Code::codec_failed ? Code::corrupt : read.code();
    return read.ok() ? read : Status(code, path_ + ": " + read.message());
  }
  /// Return the dataset as it is in the file.
  const StoredDataset& stored(const StoredDataset& field) const {
    return field.bytes_axis ? elements_.at(field.path) : field;
  }

  Hdf5Input(std::string path, std::uint64_t user_block_bytes, std::unique_ptr<StoredFile> file,
            DatasetList list, std::vector<OtherDataset> others, const ReadOptions& options)
      : path_(std::move(path)),
        user_block_bytes_(user_block_bytes),
        format_(list.netcdf4 ? "netCDF-4" : "HDF5"),
        fields_(std::move(list.datasets)),
        others_(std::move(others)),
        remarks_(std::move(list.remarks)),
        unreadable_(std::move(list.unreadable)),
        file_(std::move(file)),
        chunks_(options, options.n_threads > 0 ? options.n_threads : n_cores_of_node()) {
    for (const StoredDataset& field : fields_) {
      by_hdf5_.push_back(options.by_hdf5 || field.by_hdf5());
    }
  }

  std::string path_;
  std::uint64_t user_block_bytes_;
  std::string format_;
  std::vector<StoredDataset> fields_;
  std::map<std::string, StoredDataset> elements_;  ///< Stored form of fields of bytes, by path.
  std::vector<OtherDataset> others_;
  std::vector<std::string> remarks_;
  std::string remark_of_end_;
  std::vector<std::string> unreadable_;
  std::vector<bool> by_hdf5_;  ///< True if HDF5 reads the field.
  std::unique_ptr<StoredFile> file_;
  ChunkReader chunks_;  // Last: its threads use the others.
};

}  // namespace

Result<std::unique_ptr<InputFile>> open_input_file(const std::string& path,
                                                   const std::optional<RawFormat>& raw,
                                                   const ReadOptions& options) {
  TAILRACE_TAKE(std::shared_ptr<InputBytes> bytes, InputBytes::open(path));
  if (raw) return open_raw_input(std::move(bytes), *raw);
  if (bytes->file_bytes() == 0) return Status(Code::corrupt, path + ": the file is empty");

  TAILRACE_TAKE(const std::string first, peek(*bytes, 0));
  if (is_netcdf_classic(first)) return open_netcdf_classic_input(std::move(bytes));
  if (is_npy(first)) return open_npy_input(std::move(bytes));
  TAILRACE_TAKE(const auto signature, find_hdf5_signature(*bytes));
  if (signature) return Hdf5Input::open(path, *signature, options);
  return Status(Code::corrupt, path +
                                   ": expected HDF5, netCDF or .npy, but the file begins with \"" +
                                   printable(first) + "\" (a raw file needs its dtype and shape)");
}

}  // namespace tailrace
