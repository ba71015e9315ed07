// Inputs of a concatenation: the walk over a file's datasets, and later reads of its bytes.
//
// Invariants (tests/unit/concat_input_test.cpp cites the numbers):
//  1. The HDF5 file is open only during open(), and from visit_hdf5() or read_integers() until
//     drop_schema().
//  2. Every listed chunk lies within the file or, if compact, in compact_, which counts as the
//     bytes behind the file's end.
//  3. A dataset with several hard links is listed once, under the first path; soft and external
//     links are not followed.
// Memory per file after drop_schema() and drop_image(): 32 bytes per stored chunk, 8 per dataset
// that has any.

#include "describe/concat_input.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/copied_notes.hpp"
#include "describe/dimension_survey.hpp"
#include "describe/field_attributes.hpp"
#include "describe/input_bytes.hpp"
#include "describe/paged_file.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "hdf5/noting_driver.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

/// Datasets of a file, as found by the walk.
struct Listing {
  std::vector<StoredDataset> datasets;
  ChunkTable chunks;
  /// A dataset that has chunks; sorted by dataset_index.
  struct Part {
    std::size_t dataset_index = 0;
    ChunkTable::Part chunks;
  };
  std::vector<Part> parts;
  Bytes compact;
  std::unordered_map<std::size_t, RowNotes> notes;  ///< Notes of datasets that have any.
  DimensionSurvey survey;
  bool declares_exact = false;
  bool has_dimensions = false;
};

/// Describes the datasets of a file, and finds their chunks.
class InputVisitor final : public Hdf5Visitor {
 public:
  /// @param survey  receives the same calls; null: nothing.
  InputVisitor(NotedFile& noted, std::uint64_t file_bytes, bool look_for_dimensions,
               PlainSurvey* survey)
      : noted_(noted),
        file_bytes_(file_bytes),
        looks_for_dimensions_(look_for_dimensions),
        survey_(survey) {}

  Listing take_listing() {
    listing_.chunks.shrink();
    listing_.parts.shrink_to_fit();
    listing_.datasets.shrink_to_fit();
    return std::move(listing_);
  }

  Status dataset(hid_t dataset, const std::string& path) override {
    StoredDataset described;
    described.path = path;
    const Status failure = describer_.describe(dataset, described);
    if (!failure.ok()) return noted_.failure.ok() ? failure : noted_.failure;
    found_.clear();
    if (described.appended && described.by_value && n_elements(described.shape) > 0) {
      TAILRACE_TRY(find_chunks(dataset, described));
      described.n_chunks_there = found_.size();
    }
    if (!found_.empty()) {
      listing_.parts.push_back({listing_.datasets.size(), listing_.chunks.add(found_)});
    }
    RowNotes notes = read_row_notes(dataset);
    if (!notes.silent) listing_.notes.emplace(listing_.datasets.size(), std::move(notes));
    if (looks_for_dimensions_ && !listing_.has_dimensions) {
      listing_.has_dimensions = is_dimension_scale(dataset);
    }
    listing_.datasets.push_back(std::move(described));
    return survey_ != nullptr ? survey_->visitor().dataset(dataset, path) : Status();
  }
  Status group(hid_t group, const std::string& path) override {
    return survey_ != nullptr ? survey_->visitor().group(group, path) : Status();
  }
  Status other_object(hid_t object, const std::string& path) override {
    return survey_ != nullptr ? survey_->visitor().other_object(object, path) : Status();
  }
  Status again(const std::string& path, const std::string& first_path) override {
    return survey_ != nullptr ? survey_->visitor().again(path, first_path) : Status();
  }
  Status other_link(const std::string& path, const LinkInfo& info) override {
    return survey_ != nullptr ? survey_->visitor().other_link(path, info) : Status();
  }

 private:
  Status failed(const std::string& path, const char* what) const {
    if (!noted_.failure.ok()) return noted_.failure;
    return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be " + what);
  }

  /// Store the chunks of a dataset in found_.
  Status find_chunks(hid_t dataset, const StoredDataset& described) {
    const std::string what = "dataset \"" + described.path + "\"";
    switch (described.storage.kind) {
      case StoredForm::Kind::chunked: {
        const ChunkGrid grid{described.shape, described.storage.chunk_shape};
        TAILRACE_TRY(note_chunks(noted_, dataset, grid, what, found_));
        if (described.plain_edges) mark_plain_edges(grid);
        break;
      }
      case StoredForm::Kind::contiguous:
        if (described.contiguous.encoded_bytes > 0) found_.push_back({0, described.contiguous, 0});
        break;
      case StoredForm::Kind::compact: return add_compact(dataset, described, what);
      case StoredForm::Kind::nothing: break;
    }
    for (const StoredChunk& chunk : found_) {
      const Extent& extent = chunk.extent;
      if (!noted_.holds(extent)) {
        return Status(Code::corrupt, what + ": a chunk of " + std::to_string(extent.encoded_bytes) +
                                         " bytes at address " + std::to_string(extent.address) +
                                         " lies beyond the end of the file at " +
                                         std::to_string(file_bytes_));
      }
    }
    return Status();
  }

  /// Set the filter mask of unfiltered edge chunks. HDF5 does not report that they skip all
  /// filters.
  void mark_plain_edges(const ChunkGrid& grid) {
    for (StoredChunk& chunk : found_) {
      if (grid.clipped_box(chunk.chunk_index).count != grid.chunk_shape) {
        chunk.filter_mask = std::numeric_limits<std::uint32_t>::max();
      }
    }
  }

  /// Copy compact data: they lie in the object header, at an unknown address.
  Status add_compact(hid_t dataset, const StoredDataset& described, const std::string& what) {
    const std::size_t at = listing_.compact.size();
    const std::uint64_t n_bytes = described.n_rows() * described.row_bytes();
    if (n_bytes > H5Dget_storage_size(dataset)) {
      return Status(Code::corrupt, what + ": the shape needs " + std::to_string(n_bytes) +
                                       " bytes, the compact storage has " +
                                       std::to_string(H5Dget_storage_size(dataset)));
    }
    listing_.compact.resize(at + static_cast<std::size_t>(n_bytes));
    const Hdf5Id type(H5Dget_type(dataset));
    if (H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, listing_.compact.data() + at) <
        0) {
      return failed(described.path, "read");
    }
    found_.push_back({0, {file_bytes_ + at, n_bytes}, 0});
    return Status();
  }

  NotedFile& noted_;
  std::uint64_t file_bytes_;
  bool looks_for_dimensions_;
  PlainSurvey* survey_;
  Listing listing_;
  std::vector<StoredChunk> found_;  ///< Chunks of the current dataset.
  DatasetDescriber describer_;
};

/// Read all elements of an integer dataset, or only the first, as signed 64-bit numbers.
Result<std::vector<std::int64_t>> read_numbers(hid_t file, const std::string& path,
                                               bool first_only) {
  const std::string what = "dataset \"" + path + "\"";
  if (H5Oexists_by_name(file, path.c_str(), H5P_DEFAULT) <= 0) {
    return Status(Code::not_found, what + " is missing");
  }
  const Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_failure(Code::corrupt, what + " cannot be opened");
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  if (!type.valid() || !space.valid()) {
    return hdf5_failure(Code::corrupt, what + ": the type and shape cannot be read");
  }
  hsize_t extents[kMaxRank] = {};
  const int rank = H5Sget_simple_extent_dims(space.get(), extents, nullptr);
  const Shape shape(extents, extents + std::max(rank, 0));
  const bool one_column = rank >= 1 && n_elements(Shape(shape.begin() + 1, shape.end())) == 1;
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) > 8 || !one_column) {
    return Status(Code::invalid_argument, what + ": expected one column of integers, found " +
                                              hdf5_type_text(type.get()) + " of shape " +
                                              shape_text(shape));
  }
  std::vector<std::int64_t> values;
  if (shape[0] == 0) return values;
  const std::uint64_t n_values = first_only ? 1 : shape[0];
  try {
    values.resize(n_values);
  } catch (const std::exception&) {
    return Status(Code::out_of_memory,
                  what + ": not enough memory for " + std::to_string(n_values) + " integers");
  }
  Hdf5Id memory_space;
  if (first_only) {
    const hsize_t start[kMaxRank] = {};
    hsize_t count[kMaxRank];
    std::fill(std::begin(count), std::end(count), hsize_t{1});
    memory_space = Hdf5Id(H5Screate_simple(1, count, nullptr));
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
  }
  const bool is_unsigned = H5Tget_sign(type.get()) == H5T_SGN_NONE;
  if (H5Dread(dataset.get(), is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64,
              first_only ? memory_space.get() : H5S_ALL, first_only ? space.get() : H5S_ALL,
              H5P_DEFAULT, values.data()) < 0) {
    return plain_read_failure(dataset.get(), what);
  }
  if (is_unsigned && std::any_of(values.begin(), values.end(), [](auto v) { return v < 0; })) {
    return Status(Code::invalid_argument, what + ": key values must be at most 2^63 - 1");
  }
  return values;
}

class FileInput final : public ConcatInput {
 public:
  FileInput(std::string path, bool look_for_dimensions, bool look_at_objects)
      : path_(std::move(path)),
        looks_for_dimensions_(look_for_dimensions),
        looks_at_objects_(look_at_objects) {}
  ~FileInput() override { close_hdf5(); }

  Status start(std::uint64_t image_bytes_max) {
    TAILRACE_TAKE(bytes_, InputBytes::open(path_));
    file_bytes_ = bytes_->file_bytes();
    version_ = bytes_->version();
    if (file_bytes_ <= image_bytes_max) {
      bytes_->expect_sequential();
      image_ = Buffer(static_cast<std::size_t>(file_bytes_));
      if (!image_.allocated()) {
        return Status(Code::out_of_memory, "file \"" + path_ + "\": not enough memory for its " +
                                               std::to_string(file_bytes_) + " bytes");
      }
      TAILRACE_TRY(bytes_->read_at(0, image_.bytes()));
      bytes_.reset();
    }
    Status listed = list();
    close_hdf5();
    return listed;
  }

  const std::string& path() const override { return path_; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  std::uint64_t version() const override { return version_; }
  const std::vector<StoredDataset>& datasets() const override { return listing_.datasets; }

  ChunkList chunks(std::size_t dataset_index) const override {
    const std::vector<Listing::Part>& parts = listing_.parts;
    const auto at =
        std::ranges::lower_bound(parts, dataset_index, {}, &Listing::Part::dataset_index);
    if (at == parts.end() || at->dataset_index != dataset_index) return {};
    return listing_.chunks.list(at->chunks);
  }

  RowNotes row_notes(std::size_t dataset_index) const override {
    const auto found = listing_.notes.find(dataset_index);
    return found != listing_.notes.end() ? found->second : RowNotes();
  }
  bool declares_exact() const override { return listing_.declares_exact; }
  bool has_dimensions() const override { return listing_.has_dimensions; }
  const DimensionSurvey& survey() const override { return listing_.survey; }
  std::uint64_t user_block_bytes() const override { return user_block_bytes_; }
  std::uint64_t bytes_behind() const override { return bytes_behind_; }

  Status visit_hdf5(const std::function<Status(std::int64_t file)>& visit) override {
    const Hdf5Scope scope;
    if (!hdf5_file_.valid()) TAILRACE_TRY(open_hdf5());
    const Status visited = visit(hdf5_file_.get());
    if (visited.ok()) return Status();
    return (noted_->failure.ok() ? visited : noted_->failure).within(name());
  }

  void drop_schema() override {
    close_hdf5();
    listing_.notes.clear();
    listing_.survey = {};
    std::vector<StoredDataset>().swap(listing_.datasets);
    schema_bytes_ = 0;
  }

  Result<std::vector<std::int64_t>> read_integers(const std::string& dataset_path) override {
    const Hdf5Scope scope;
    if (!hdf5_file_.valid()) TAILRACE_TRY(open_hdf5());
    Result<std::vector<std::int64_t>> values = read_numbers(hdf5_file_.get(), dataset_path, false);
    if (values.ok()) return values;
    return (noted_->failure.ok() ? values.status() : noted_->failure).within(name());
  }

  bool in_memory() const override { return image_.allocated(); }

  void drop_image() override {
    if (!in_memory()) return;
    close_hdf5();
    image_ = Buffer();
  }

  void close_file() override {
    close_hdf5();
    bytes_.reset();
  }

  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    if (address >= file_bytes_ && !listing_.compact.empty()) {
      return copy_from(listing_.compact, address - file_bytes_, bytes);
    }
    if (in_memory()) return copy_from(image_.bytes(), address, bytes);
    TAILRACE_TRY(reopen());
    return bytes_->read_at(address, bytes);
  }

  std::uint64_t memory_bytes() const override {
    return image_.capacity() + schema_bytes_ + listing_.compact.capacity() +
           listing_.chunks.memory_bytes() + listing_.parts.capacity() * sizeof(Listing::Part) +
           sizeof(*this);
  }

 private:
  std::string name() const { return "file \"" + path_ + "\""; }

  Status copy_from(std::span<const std::byte> from, std::uint64_t at,
                   std::span<std::byte> bytes) const {
    if (at > from.size() || bytes.size() > from.size() - at) {
      return Status(Code::corrupt, name() + ": expected " + std::to_string(bytes.size()) +
                                       " bytes at byte " + std::to_string(at) +
                                       ", but the file ends at byte " +
                                       std::to_string(from.size()));
    }
    if (!bytes.empty()) std::memcpy(bytes.data(), from.data() + at, bytes.size());
    return Status();
  }

  Status reopen() {
    if (bytes_ != nullptr) return Status();
    TAILRACE_TAKE(std::shared_ptr<InputBytes> opened, InputBytes::open(path_));
    // A longer file is valid: an output that grows may be read while it is appended to.
    if (opened->file_bytes() < file_bytes_) {
      return Status(Code::corrupt, name() + " had " + std::to_string(file_bytes_) +
                                       " bytes when it was first opened and has " +
                                       std::to_string(opened->file_bytes()) + " now");
    }
    bytes_ = std::move(opened);
    return Status();
  }

  /// Call with HDF5 locked.
  Status open_hdf5() {
    if (in_memory()) {
      noted_ = std::make_unique<ImageFile>(image_.bytes());
    } else {
      TAILRACE_TRY(reopen());
      noted_ = std::make_unique<PagedFile>(bytes_);
    }
    TAILRACE_TAKE(hdf5_file_, open_noted(*noted_, path_));
    return Status();
  }

  void close_hdf5() {
    if (noted_ == nullptr) return;
    const Hdf5Scope scope;
    hdf5_file_.reset();
    noted_.reset();
  }

  Status list() {
    const Hdf5Scope scope;
    TAILRACE_TRY(open_hdf5());
    std::unique_ptr<PlainSurvey> survey;
    if (looks_at_objects_) survey = PlainSurvey::start(hdf5_file_.get());
    InputVisitor visitor(*noted_, file_bytes_, looks_for_dimensions_, survey.get());
    Status walked = walk_hdf5(hdf5_file_.get(), visitor);
    listing_ = visitor.take_listing();
    if (walked.ok() && survey != nullptr) {
      Result<DimensionSurvey> surveyed = survey->finish();
      walked = surveyed.status();
      if (surveyed.ok()) listing_.survey = std::move(*surveyed);
    }
    if (!walked.ok() && !noted_->failure.ok()) walked = noted_->failure;
    if (!walked.ok()) return walked.within(name());
    listing_.declares_exact = has_file_note(hdf5_file_.get());
    if (looks_for_dimensions_ && is_netcdf4(hdf5_file_.get())) listing_.has_dimensions = true;
    const Hdf5Id creation(H5Fget_create_plist(hdf5_file_.get()));
    hsize_t user_block = 0;
    if (!creation.valid() || H5Pget_userblock(creation.get(), &user_block) < 0) {
      return hdf5_failure(Code::corrupt, name() + ": the creation property list cannot be read");
    }
    user_block_bytes_ = user_block;
    TAILRACE_TAKE(const BytesBehindEnd behind,
                  bytes_behind_end(file_bytes_, user_block_bytes_,
                                   [&](std::uint64_t address, std::span<std::byte> to) {
                                     return read_at(address, to);
                                   })
                      .within(name()));
    bytes_behind_ = behind.n_bytes;
    schema_bytes_ = listing_.datasets.capacity() * sizeof(StoredDataset);
    for (const StoredDataset& dataset : listing_.datasets) {
      schema_bytes_ += dataset.path.capacity() + dataset.type.capacity() +
                       dataset.type_text.capacity() + dataset.fill_value.capacity() +
                       (dataset.shape.capacity() + dataset.max_shape.capacity() +
                        dataset.storage.chunk_shape.capacity()) *
                           8 +
                       dataset.storage.filters.capacity() * (sizeof(FilterSpec) + 32);
    }
    return Status();
  }

  std::string path_;
  bool looks_for_dimensions_;
  bool looks_at_objects_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t user_block_bytes_ = 0;
  std::uint64_t bytes_behind_ = 0;
  std::shared_ptr<InputBytes> bytes_;  ///< Null: closed.
  Buffer image_;
  Listing listing_;
  std::uint64_t schema_bytes_ = 0;
  std::unique_ptr<NotedFile> noted_;  ///< Set while HDF5 has the file open.
  Hdf5Id hdf5_file_;
};

}  // namespace

Result<std::unique_ptr<ConcatInput>> ConcatInput::open(const std::string& path,
                                                       std::uint64_t image_bytes_max,
                                                       bool look_for_dimensions,
                                                       bool look_at_objects) {
  auto input = std::make_unique<FileInput>(path, look_for_dimensions, look_at_objects);
  TAILRACE_TRY(input->start(image_bytes_max));
  return std::unique_ptr<ConcatInput>(std::move(input));
}

Result<std::vector<std::int64_t>> first_integers(const std::string& path,
                                                 std::span<const std::string> dataset_paths) {
  const std::string what = "file \"" + path + "\"";
  TAILRACE_TAKE(std::shared_ptr<InputBytes> opened, InputBytes::open(path));
  const Hdf5Scope scope;
  PagedFile paged(std::move(opened));
  TAILRACE_TAKE(const Hdf5Id file, open_noted(paged, path));
  std::vector<std::int64_t> firsts;
  for (const std::string& dataset_path : dataset_paths) {
    const Result<std::vector<std::int64_t>> value = read_numbers(file.get(), dataset_path, true);
    if (!value.ok()) return (paged.failure.ok() ? value.status() : paged.failure).within(what);
    if (value->empty()) {
      return Status(Code::invalid_argument, what + ": dataset \"" + dataset_path +
                                                "\" is empty; sorting needs its first row");
    }
    firsts.push_back(value->front());
  }
  return firsts;
}

}  // namespace tailrace
