// Distributing, opening, comparing and counting the inputs.

#include "concat/concat_inputs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "concat/concat_targets.hpp"
#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "describe/concat_input.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "trz/base/printable.hpp"

namespace tailrace {

namespace {

/// Bytes of unfiltered rows that are sent together.
constexpr std::uint64_t kPlainRunBytes = 1U << 20;
/// Limit of bad files named in an error.
constexpr std::size_t kNamedFilesMax = 50;
/// Limit of conflicts named for one file.
constexpr std::size_t kNamedConflictsMax = 20;

/// Gather the numbers of all ranks on every rank, in rank order. Collective: one gather, one
/// broadcast.
std::vector<std::uint64_t> gather_to_all(Comm& comm, std::span<const std::uint64_t> mine) {
  Bytes all;
  for (const Bytes& part : comm.gather(std::as_bytes(mine), 0)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  comm.broadcast(all, 0);
  std::vector<std::uint64_t> numbers(all.size() / sizeof(std::uint64_t));
  if (!all.empty()) std::memcpy(numbers.data(), all.data(), all.size());
  return numbers;
}

}  // namespace

std::size_t share_begin(std::size_t n, int rank, int n_ranks) {
  return n * static_cast<std::size_t>(rank) / static_cast<std::size_t>(n_ranks);
}

std::string conflicts_text(std::span<const std::string> conflicts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(conflicts.size(), kNamedConflictsMax); ++i) {
    text += (text.empty() ? "" : "\n    ") + printable(conflicts[i]);
  }
  if (conflicts.size() > kNamedConflictsMax) {
    text += "\n    and " + std::to_string(conflicts.size() - kNamedConflictsMax) + " more";
  }
  return text;
}

const StoredForm* FormTable::intern(const StoredForm& form) {
  std::vector<const StoredForm*>& candidates = by_shape_[shape_text(form.chunk_shape)];
  for (const StoredForm* known : candidates) {
    if (known->same_as(form)) return known;
  }
  forms_.push_back(form);
  candidates.push_back(&forms_.back());
  return &forms_.back();
}

StoredForm chunked_form(const StoredDataset& dataset, const StoredForm& stored) {
  if (stored.kind == StoredForm::Kind::chunked) return stored;
  StoredForm form;
  form.kind = StoredForm::Kind::contiguous;
  form.chunk_shape = dataset.shape;
  const std::uint64_t row_bytes = std::max<std::uint64_t>(dataset.row_bytes(), 1);
  form.chunk_shape[0] = std::max<std::uint64_t>(kPlainRunBytes / row_bytes, 1);
  for (std::uint64_t& extent : form.chunk_shape) extent = std::max<std::uint64_t>(extent, 1);
  return form;
}

void ConcatInputs::refuse(std::size_t source, const Status& why) {
  bad_.push_back({source, why.code(), why.message()});
}

Status ConcatInputs::deal() {
  // Each rank queries the lengths of an equal number of files; then all ranks know all lengths.
  const std::size_t n = request_.inputs.size();
  const int n_ranks = comm_.n_ranks();
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = share_begin(n, comm_.rank(), n_ranks);
       i < share_begin(n, comm_.rank() + 1, n_ranks); ++i) {
    struct stat facts {};
    const bool there = ::stat(request_.inputs[i].c_str(), &facts) == 0;
    lengths.push_back(there ? static_cast<std::uint64_t>(facts.st_size) : 0);
  }
  lengths = gather_to_all(comm_, lengths);
  TAILRACE_TRY(
      comm_.agree(lengths.size() == n
                      ? Status()
                      : Status(Code::disagreement,
                               "the lists of inputs have different lengths on different ranks")));
  std::uint64_t total = 0;
  for (const std::uint64_t length : lengths) total += length + 1;
  // A file goes to the rank whose share of all bytes contains the file's middle.
  std::uint64_t before = 0;
  own_begin_ = own_end_ = n;
  for (std::size_t i = 0; i < n; ++i) {
    const double middle = static_cast<double>(before) + static_cast<double>(lengths[i] + 1) / 2;
    const int rank =
        std::min(static_cast<int>(middle / static_cast<double>(total) * n_ranks), n_ranks - 1);
    if (rank == comm_.rank()) {
      own_begin_ = std::min(own_begin_, i);
      own_end_ = i + 1;
    }
    before += lengths[i] + 1;
  }
  if (own_begin_ == n) own_end_ = n;
  return Status();
}

std::unique_ptr<ConcatInput> ConcatInputs::open_next() {
  while (next_file_ < own_end_) {
    const std::size_t source = next_file_++;
    Result<std::unique_ptr<ConcatInput>> input = ConcatInput::open(
        request_.inputs[source], image_bytes_left_, schema_.empty(), !dimensions_.on());
    if (!input.ok()) {
      refuse(source, input.status());
      continue;
    }
    if ((*input)->in_memory()) {
      image_bytes_left_ -= std::min(image_bytes_left_, (*input)->file_bytes());
    }
    return std::move(*input);
  }
  return nullptr;
}

Status ConcatInputs::agree_on_schema(ConcatInput* own_first_input) {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t own_first = own_first_input == nullptr ? none : next_file_ - 1;
  std::vector<std::uint64_t> first = {own_first};
  comm_.allreduce(std::span(first), Reduction::min);
  // If no file is readable, agree_on_bad_files() reports the reasons.
  if (first[0] == none) return Status();
  first_input_ = static_cast<std::size_t>(first[0]);
  std::vector<std::uint64_t> owner = {
      own_first == first[0] ? static_cast<std::uint64_t>(comm_.rank()) : 0};
  comm_.allreduce(std::span(owner), Reduction::max);
  Bytes packed;
  if (own_first == first[0]) {
    notes_.take_first(*own_first_input);
    ByteWriter writer;
    writer.add_status(dimensions_.take_first(*own_first_input));
    const Bytes schema = pack_schema(own_first_input->datasets());
    writer.add(static_cast<std::uint64_t>(schema.size()));
    writer.add_bytes(schema);
    dimensions_.pack(writer);
    packed = writer.take();
  }
  comm_.broadcast(packed, static_cast<int>(owner[0]));
  ByteReader reader(packed);
  TAILRACE_TRY(reader.take_status());
  TAILRACE_TAKE(schema_, unpack_schema(reader.take_bytes(reader.take<std::uint64_t>())));
  dimensions_.unpack(reader);
  dimensions_.mark_fixed(schema_);
  n_stored_ = schema_.size();
  for (std::size_t d = 0; d < n_stored_; ++d) {
    by_path_.emplace(schema_[d].path, static_cast<std::uint32_t>(d));
  }
  return Status();
}

void ConcatInputs::take_in(std::unique_ptr<ConcatInput> input) {
  OpenedFile file{next_file_ - 1, std::move(input), {}, {}};
  std::vector<StoredDataset> marked;
  if (dimensions_.on()) marked = file.input->datasets();
  const Status compared = dimensions_.compare(*file.input, file.source, in_files(), marked);
  const std::vector<StoredDataset>& datasets = dimensions_.on() ? marked : file.input->datasets();
  const std::vector<std::string> conflicts = schema_conflicts(in_files(), datasets);
  if (!conflicts.empty()) {
    std::string lines = conflicts_text(conflicts);
    if (!compared.ok()) lines += "\n    " + compared.message();
    return refuse(file.source, Status::of_lines(Code::invalid_argument, lines));
  }
  if (!compared.ok()) return refuse(file.source, compared);
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const StoredDataset& dataset = datasets[i];
    if (!dataset.appended || dataset.n_rows() == 0) continue;
    if (const Status full = check_not_hollow(dataset); !full.ok()) return refuse(file.source, full);
    // The cut of a tile's contiguous data follows the tile's shape.
    const StoredDataset& own = file.input->datasets()[i];
    const StoredForm* form = forms_.intern(chunked_form(own, own.storage));
    file.rows.push_back(
        {by_path_.at(dataset.path), static_cast<std::uint32_t>(i), dataset.n_rows(), form});
  }
  if (const Status numbered = number_events_of(file); !numbered.ok()) {
    return refuse(file.source, numbered);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> with_rows;
  for (const FileRows& rows : file.rows) {
    if (rows.dataset < n_stored_) with_rows.emplace_back(rows.dataset, rows.input_dataset);
  }
  notes_.take_rows(*file.input, with_rows);
  dimensions_.accept();
  // The schema is the same in every file, and thousands of open files would exhaust the
  // descriptors.
  file.input->drop_schema();
  file.input->close_file();
  file.rows.shrink_to_fit();
  files_.push_back(std::move(file));
}

Status ConcatInputs::add_key_datasets() {
  if (request_.key_names.empty() || schema_.empty()) return Status();
  const std::string& first = request_.inputs[first_input_];
  TAILRACE_TAKE(keyed_, find_keyed_groups(schema_, request_.key_names).within(first));
  for (const KeyedGroup& group : keyed_) {
    StoredDataset keys = schema_[group.like];
    keys.path = group.key_path;
    keys.type = encoded_type(DType::i64);
    keys.type_text = dtype_name(DType::i64);
    keys.element_bytes = dtype_bytes(DType::i64);
    keys.fill_value.clear();
    // Filters that were set up for other elements do not suit the keys.
    if (!filters_fit_any_chunk(keys.storage)) keys.storage.filters.clear();
    for (FilterSpec& filter : keys.storage.filters) {
      const bool shuffle = filter.filter_id == 2 && !filter.final_client_data.empty();
      if (shuffle) filter.final_client_data[0] = static_cast<std::uint32_t>(keys.element_bytes);
    }
    schema_.push_back(std::move(keys));
  }
  return Status();
}

Status ConcatInputs::number_events_of(OpenedFile& file) {
  if (keyed_.empty()) return Status();
  TAILRACE_TAKE(file.keys, number_events(*file.input, keyed_, request_.key_names));
  for (std::size_t g = 0; g < keyed_.size(); ++g) {
    const std::uint64_t n_rows = file.keys.groups[g].n_rows();
    if (n_rows == 0) continue;
    const std::size_t d = n_stored_ + g;
    file.rows.push_back({static_cast<std::uint32_t>(d), 0, n_rows,
                         forms_.intern(chunked_form(schema_[d], StoredForm()))});
  }
  return Status();
}

Status ConcatInputs::agree_on_bad_files() {
  std::vector<std::uint64_t> counts = {bad_.size(), files_.size()};
  comm_.allreduce(std::span(counts), Reduction::sum);
  n_files_ = counts[1];
  if (counts[0] == 0) return Status();
  ByteWriter mine;
  for (const BadFile& bad : bad_) {
    mine.add(bad.source);
    mine.add(static_cast<std::uint32_t>(bad.code));
    mine.add_text(bad.why);
  }
  std::vector<BadFile> all;
  for (const Bytes& bytes : comm_.gather(mine.bytes(), 0)) {
    ByteReader reader(bytes);
    while (!reader.at_end()) {
      BadFile bad;
      bad.source = reader.take<std::uint64_t>();
      bad.code = static_cast<Code>(reader.take<std::uint32_t>());
      bad.why = reader.take_text();
      all.push_back(std::move(bad));
    }
  }
  Status verdict;
  if (comm_.is_root()) {
    std::ranges::sort(all, {}, &BadFile::source);
    std::string text = std::to_string(all.size()) + " of " +
                       std::to_string(request_.inputs.size()) +
                       (request_.inputs.size() == 1 ? " input" : " inputs") +
                       " cannot be appended; nothing is written";
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string path = printable(request_.inputs[all[i].source]);
      const bool named = all[i].why.find(path) != std::string::npos;
      const std::string line = named ? all[i].why : path + ": " + all[i].why;
      skipped_.push_back(line);
      if (i < kNamedFilesMax) text += "\n  " + line;
    }
    if (all.size() > kNamedFilesMax) {
      text += "\n  and " + std::to_string(all.size() - kNamedFilesMax) + " more";
    }
    if (request_.on_error == OnError::stop || counts[1] == 0) {
      verdict = Status::of_lines(all.front().code, text);
    }
  }
  return agree_with_root(comm_, verdict);
}

void ConcatInputs::count_rows() {
  std::vector<std::uint64_t> mine(schema_.size() + 4, 0);
  for (const OpenedFile& file : files_) {
    for (const FileRows& rows : file.rows) mine[rows.dataset] += rows.n_rows;
    mine[schema_.size()] += file.keys.n_events;
    mine[schema_.size() + 1] += file.input->file_bytes();
    mine[schema_.size() + 2] += file.input->user_block_bytes() > 0 ? 1 : 0;
    mine[schema_.size() + 3] += file.input->bytes_behind() > 0 ? 1 : 0;
  }
  const std::unique_ptr<PendingSum> sum = comm_.start_sum(std::move(mine));
  sum->wait();
  n_rows_ = sum->total();
  rows_before_ = sum->before();
  input_bytes_ = n_rows_[schema_.size() + 1];
  n_user_blocks_ = n_rows_[schema_.size() + 2];
  n_with_bytes_behind_ = n_rows_[schema_.size() + 3];
  events_before_ = rows_before_[schema_.size()];
  n_rows_.resize(schema_.size());
  for (std::size_t d = 0; d < n_rows_.size(); ++d) {
    if (dimensions_.tiles().is_tiled(d)) n_rows_[d] = schema_[d].n_rows();
  }
  rows_before_.resize(schema_.size());
  auto offset = static_cast<std::int64_t>(events_before_);
  for (OpenedFile& file : files_) {
    file.keys.offset = offset;
    offset += static_cast<std::int64_t>(file.keys.n_events);
  }
}

Status ConcatInputs::open(std::uint64_t image_bytes) {
  TAILRACE_TRY(deal());
  next_file_ = own_begin_;
  image_bytes_left_ = image_bytes;
  // Each rank opens one file first; the first of all defines the schema. The others are compared
  // when they are opened, so that no rank ever holds more than two schemas.
  std::unique_ptr<ConcatInput> input = open_next();
  TAILRACE_TRY(agree_on_schema(input.get()));
  TAILRACE_TRY(add_key_datasets());
  for (; input != nullptr; input = open_next()) take_in(std::move(input));
  TAILRACE_TRY(agree_on_bad_files());
  notes_.merge(comm_);
  TAILRACE_TRY(dimensions_.merge(comm_, schema_));
  if (dimensions_.tiles().on()) TAILRACE_TRY(compare_tiles());
  count_rows();
  return Status();
}

/// Compare the parts that several tiles have, usually coordinates.
Status ConcatInputs::compare_tiles() {
  const ConcatTiles& tiles = dimensions_.tiles();
  std::vector<ConcatTiles::SharedDigest> digests;
  Status read;
  for (const OpenedFile& file : files_) {
    std::vector<std::string> paths;
    std::vector<std::uint32_t> numbers;
    for (const FileRows& rows : file.rows) {
      if (!tiles.is_tiled(rows.dataset) || !tiles.is_shared(rows.dataset, file.source)) continue;
      paths.push_back(schema_[rows.dataset].path);
      numbers.push_back(rows.dataset);
    }
    if (paths.empty() || !read.ok()) continue;
    const Result<std::vector<ValueDigest>> found = ConcatDimensions::digests(*file.input, paths);
    file.input->close_file();
    read = found.status();
    for (std::size_t i = 0; found.ok() && i < paths.size(); ++i) {
      digests.push_back({numbers[i], static_cast<std::uint32_t>(file.source), (*found)[i]});
    }
  }
  TAILRACE_TRY(comm_.agree(read));
  return dimensions_.tiles_to_compare().compare_shared(comm_, digests, schema_);
}

/// Add parts without data, where no file has a tile.
void ConcatInputs::add_missing_tiles(std::vector<ConcatPart>& parts) {
  const ConcatTiles& tiles = dimensions_.tiles();
  for (std::size_t d = 0; d < n_stored_ && comm_.is_root(); ++d) {
    if (!tiles.is_tiled(d)) continue;
    for (Box& box : tiles.missing(d, schema_[d])) {
      StoredDataset tile = schema_[d];
      tile.shape = box.count;
      ConcatPart part;
      part.dataset = static_cast<std::uint32_t>(d);
      part.source = static_cast<std::int32_t>(first_input_);
      part.first_row = box.start[0];
      part.n_rows = box.count[0];
      part.form = forms_.intern(chunked_form(tile, schema_[d].storage));
      part.box = &boxes_.emplace_back(std::move(box));
      parts.push_back(part);
    }
  }
}

std::vector<ConcatPart> ConcatInputs::parts(std::span<const std::uint64_t> older_rows) {
  const ConcatTiles& tiles = dimensions_.tiles();
  std::vector<std::uint64_t> next_row(older_rows.begin(), older_rows.end());
  for (std::size_t d = 0; d < next_row.size(); ++d) next_row[d] += rows_before_[d];
  std::vector<ConcatPart> parts;
  for (const OpenedFile& file : files_) {
    for (const FileRows& rows : file.rows) {
      const StoredDataset& dataset = schema_[rows.dataset];
      if (!dataset.by_value || dataset.row_bytes() == 0) continue;
      ConcatPart part;
      part.dataset = rows.dataset;
      part.source = static_cast<std::int32_t>(file.source);
      part.first_row = next_row[rows.dataset];
      part.n_rows = rows.n_rows;
      if (tiles.is_tiled(rows.dataset)) {
        if (!tiles.owns(rows.dataset, file.source)) continue;
        part.box = &boxes_.emplace_back(tiles.box_of(rows.dataset, dataset, file.source));
        part.first_row = part.box->start[0];
        part.n_rows = part.box->count[0];
      }
      part.form = rows.form;
      if (rows.dataset < n_stored_) {
        part.input = file.input.get();
        part.input_dataset = rows.input_dataset;
      } else {
        part.keys = &file.keys.groups[rows.dataset - n_stored_];
        part.key_offset = file.keys.offset + first_key_;
      }
      next_row[rows.dataset] += rows.n_rows;
      parts.push_back(part);
    }
  }
  if (tiles.on()) add_missing_tiles(parts);
  // The rows of a rank's files ascend, except those of tiles.
  std::ranges::stable_sort(parts, {}, [](const ConcatPart& part) {
    return std::pair(part.dataset, part.box == nullptr ? 0 : part.first_row);
  });
  return parts;
}

std::vector<ForeignRows> ConcatInputs::gather_foreign_rows() const {
  std::vector<ForeignRows> mine;
  for (const OpenedFile& file : files_) {
    for (const FileRows& rows : file.rows) {
      if (schema_[rows.dataset].by_value) continue;
      mine.push_back({rows.dataset, static_cast<std::uint32_t>(file.source), rows.n_rows});
    }
  }
  std::vector<ForeignRows> all;
  for (const Bytes& bytes : comm_.gather(std::as_bytes(std::span(mine)), 0)) {
    const std::size_t begin = all.size();
    all.resize(begin + bytes.size() / sizeof(ForeignRows));
    if (!bytes.empty()) std::memcpy(&all[begin], bytes.data(), bytes.size());
  }
  std::stable_sort(all.begin(), all.end(), [](const ForeignRows& a, const ForeignRows& b) {
    return a.dataset < b.dataset || (a.dataset == b.dataset && a.source < b.source);
  });
  return all;
}

std::uint64_t ConcatInputs::find_uneven_rows(std::vector<std::string>& lines) const {
  if (dimensions_.tiles().on()) return 0;  // Tiles may have any size.
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t d = 0; d < n_stored_; ++d) {
    if (schema_[d].appended) groups[parent_path(schema_[d].path)].push_back(d);
  }
  const auto compare = [&](const OpenedFile& file, auto&& see) {
    std::vector<std::uint64_t> n_rows(n_stored_, 0);
    for (const FileRows& rows : file.rows) {
      if (rows.dataset < n_stored_) n_rows[rows.dataset] = rows.n_rows;
    }
    for (const auto& [group, members] : groups) {
      std::map<std::uint64_t, std::size_t> n_with;
      std::uint64_t usual = n_rows[members.front()];  // The most frequent row count, the first of
                                                      // equals.
      for (const std::size_t d : members) ++n_with[n_rows[d]];
      for (const auto& [rows, n] : n_with) {
        if (n > n_with[usual]) usual = rows;
      }
      for (const std::size_t d : members) see(d, n_rows[d], usual);
    }
  };
  std::vector<std::uint64_t> n_even(n_stored_, 0);
  for (const OpenedFile& file : files_) {
    compare(file, [&](std::size_t d, std::uint64_t n, std::uint64_t usual) {
      n_even[d] += n == usual ? 1 : 0;
    });
  }
  comm_.allreduce(std::span(n_even), Reduction::sum);
  std::vector<std::uint64_t> n_uneven = {0};
  ByteWriter mine;
  for (const OpenedFile& file : files_) {
    compare(file, [&](std::size_t d, std::uint64_t n, std::uint64_t usual) {
      if (n == usual || 2 * n_even[d] < n_files_) return;
      if (n_uneven[0]++ >= kNamedFilesMax) return;
      mine.add_text(file.input->path() + ": dataset \"" + schema_[d].path + "\" has " +
                    std::to_string(n) + " rows, other datasets of its group have " +
                    std::to_string(usual));
    });
  }
  for (const Bytes& bytes : comm_.gather(mine.bytes(), 0)) {
    for (ByteReader reader(bytes); !reader.at_end();) {
      std::string line = reader.take_text();
      if (lines.size() < kNamedFilesMax) lines.push_back(std::move(line));
    }
  }
  comm_.allreduce(std::span(n_uneven), Reduction::sum);
  return n_uneven[0];
}

std::vector<std::uint64_t> ConcatInputs::gather_versions() const {
  std::vector<std::uint64_t> mine;
  for (const OpenedFile& file : files_) {
    mine.insert(mine.end(), {file.source, file.input->version()});
  }
  std::vector<std::uint64_t> versions(request_.inputs.size(), 0);
  for (const Bytes& bytes : comm_.gather(std::as_bytes(std::span(mine)), 0)) {
    ByteReader reader(bytes);
    while (!reader.at_end()) {
      const auto source = reader.take<std::uint64_t>();
      versions[static_cast<std::size_t>(source)] = reader.take<std::uint64_t>();
    }
  }
  return versions;
}

Status ConcatInputs::check_unchanged() const {
  Status unchanged;
  for (const OpenedFile& file : files_) {
    const std::uint64_t now = file_version(file.input->path());
    // A file that is completely in memory may be removed.
    if (now == file.input->version() || (now == 0 && file.input->in_memory())) continue;
    unchanged = Status(Code::corrupt,
                       "file \"" + file.input->path() + "\" has been " +
                           (now == 0 ? "removed" : "changed") +
                           " since it was opened; the rows read so far may not match the rest");
    break;
  }
  return comm_.agree(unchanged);
}

Status ConcatInputs::fit_into(std::uint64_t n_bytes) {
  if (memory_bytes() > n_bytes) {
    for (OpenedFile& file : files_) file.input->drop_image();
  }
  Status fits;
  const std::uint64_t held = memory_bytes();
  if (held > n_bytes) {
    fits = Status(Code::out_of_memory,
                  "the chunk lists of " + std::to_string(files_.size()) + " inputs take " +
                      bytes_text(held) + ", more than half of --memory; raise --memory to " +
                      bytes_text(2 * held + (1U << 20)) + ", or use more ranks");
  }
  return comm_.agree(fits);
}

std::uint64_t ConcatInputs::memory_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const OpenedFile& file : files_) {
    n_bytes += file.input->memory_bytes() + file.rows.size() * sizeof(FileRows);
    for (const KeyRows& rows : file.keys.groups) n_bytes += rows.memory_bytes();
  }
  return n_bytes;
}

// --- Sorting the list of inputs: every rank reads the keys of its share of the files, rank 0
// sorts.

namespace {

/// Sort key of a file.
struct SortKey {
  Status problem;
  std::vector<std::int64_t> values;  ///< One value for each path, if `problem` is ok.
};

Bytes keys_of_share(const Comm& comm, std::span<const std::string> inputs,
                    std::span<const std::string> key_paths) {
  ByteWriter writer;
  const std::size_t end = share_begin(inputs.size(), comm.rank() + 1, comm.n_ranks());
  for (std::size_t i = share_begin(inputs.size(), comm.rank(), comm.n_ranks()); i < end; ++i) {
    const Result<std::vector<std::int64_t>> values = first_integers(inputs[i], key_paths);
    writer.add(static_cast<std::int32_t>(values.status().code()));
    if (!values.ok()) {
      writer.add_text(values.status().message());
      continue;
    }
    for (const std::int64_t value : *values) writer.add(value);
  }
  return writer.take();
}

/// The keys of all ranks, in the order of the files: shares are runs of the list.
std::vector<SortKey> unpack_keys(std::span<const Bytes> shares, std::size_t n_paths) {
  std::vector<SortKey> keys;
  for (const Bytes& share : shares) {
    for (ByteReader reader(share); !reader.at_end();) {
      SortKey key;
      const auto code = static_cast<Code>(reader.take<std::int32_t>());
      if (code != Code::ok) {
        key.problem = Status::of_lines(code, reader.take_text());
      } else {
        for (std::size_t p = 0; p < n_paths; ++p) key.values.push_back(reader.take<std::int64_t>());
      }
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

/// Merge all problems into one text, a line each.
Status all_problems(std::span<const SortKey> keys) {
  Code code = Code::ok;
  std::string text;
  std::size_t n_bad = 0;
  for (const SortKey& key : keys) {
    if (key.problem.ok()) continue;
    if (code == Code::ok) code = key.problem.code();
    text += (n_bad++ == 0 ? "" : "\n  ") + key.problem.message();
  }
  if (n_bad == 0) return Status();
  if (n_bad == 1) return Status::of_lines(code, "cannot sort: " + text);
  return Status::of_lines(
      code, "cannot sort: failed for " + std::to_string(n_bad) + " files:\n  " + text);
}

/// Positions of the files in ascending key order.
std::vector<std::uint64_t> sorted_places(std::span<const SortKey> keys) {
  std::vector<std::uint64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    const bool a_bad = !keys[a].problem.ok();
    const bool b_bad = !keys[b].problem.ok();
    if (a_bad || b_bad) return !a_bad && b_bad;
    return keys[a].values < keys[b].values;
  });
  return order;
}

}  // namespace

Result<std::vector<std::string>> sort_inputs(Comm& comm, std::vector<std::string> inputs,
                                             std::span<const std::string> key_paths,
                                             bool bad_last) {
  const std::vector<Bytes> shares = comm.gather(keys_of_share(comm, inputs, key_paths), 0);
  ByteWriter verdict;
  if (comm.is_root()) {
    const std::vector<SortKey> keys = unpack_keys(shares, key_paths.size());
    const Status problems = bad_last ? Status() : all_problems(keys);
    verdict.add(static_cast<std::int32_t>(problems.code()));
    verdict.add_text(problems.message());
    for (const std::uint64_t place : sorted_places(keys)) verdict.add(place);
  }
  Bytes packed = verdict.take();
  comm.broadcast(packed, 0);
  ByteReader reader(packed);
  const auto code = static_cast<Code>(reader.take<std::int32_t>());
  std::string message = reader.take_text();
  if (code != Code::ok) return Status::of_lines(code, std::move(message));
  std::vector<std::string> sorted;
  sorted.reserve(inputs.size());
  while (!reader.at_end()) {
    sorted.push_back(std::move(inputs[static_cast<std::size_t>(reader.take<std::uint64_t>())]));
  }
  return sorted;
}

}  // namespace tailrace
