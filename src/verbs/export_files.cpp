// Exports parts of datasets, dealt to the ranks by rows, to files of plain values or a netCDF-4
// file.

#include "verbs/export_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "array/array_file.hpp"
#include "core/codec_registry.hpp"
#include "core/encoding_notes.hpp"
#include "core/slab.hpp"
#include "describe/input_bytes.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/one_file.hpp"
#include "hdf5/superblock.hpp"
#include "read/read.hpp"

namespace tailrace::verbs {
namespace {

enum class Format : std::uint8_t { hdf5, npy, raw };

Result<Format> parse_format(const ExportRequest& request) {
  const std::string extension = std::filesystem::path(request.output).extension().string();
  std::string name = request.format;
  if (name.empty()) {
    name = extension == ".npy"                          ? "npy"
           : extension == ".bin" || extension == ".raw" ? "raw"
                                                        : "hdf5";
  }
  if (name == "hdf5") return Format::hdf5;
  if (name == "npy") return Format::npy;
  if (name == "raw") return Format::raw;
  return Status(Code::invalid_argument,
                fmt::format("--format {}: expected hdf5, npy or raw", name));
}

/// One range of --slab: a Python slice without negative numbers.
struct Range {
  std::optional<std::uint64_t> start;
  std::optional<std::uint64_t> end;
  std::uint64_t step = 1;
};

Result<std::vector<Range>> parse_ranges(const std::string& text) {
  const auto wrong = [&](std::string_view part) {
    return Status(
        Code::invalid_argument,
        fmt::format("--slab {}: expected START:END or START:END:STEP, found \"{}\"", text, part));
  };
  std::vector<Range> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    std::vector<std::optional<std::uint64_t>> numbers;
    for (std::size_t from = 0; from <= part.size();) {
      const std::size_t to = std::min(part.find(':', from), part.size());
      std::optional<std::uint64_t> number;
      if (to > from) {
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(part.data() + from, part.data() + to, value);
        if (parsed.ec != std::errc() || parsed.ptr != part.data() + to) return wrong(part);
        number = value;
      }
      numbers.push_back(number);
      from = to + 1;
    }
    if (numbers.size() == 1 && numbers[0]) numbers.emplace_back(*numbers[0] + 1);
    if (numbers.size() < 2 || numbers.size() > 3) return wrong(part);
    Range range{numbers[0], numbers[1], 1};
    if (numbers.size() == 3) range.step = numbers[2].value_or(1);
    if (range.step == 0) return wrong(part);
    ranges.push_back(range);
    at = end + 1;
  }
  return ranges;
}

/// Parse the slab of a dataset, such as "0:10,5:20:2": Python slices without negative numbers, one
/// per dimension; empty: the complete dataset. @error invalid_argument, bad_coverage
Result<Slab> slab_of(const StoredDataset& dataset, const std::string& text) {
  const Shape& shape = dataset.shape;
  if (text.empty()) return Slab::of(whole_box(shape));
  TAILRACE_TAKE(const std::vector<Range> ranges, parse_ranges(text));
  if (ranges.size() != shape.size()) {
    return Status(
        Code::invalid_argument,
        fmt::format(
            "--slab {}: expected one range per dimension, found {}; dataset \"{}\" has shape {}",
            text, ranges.size(), dataset.path, shape_text(shape)));
  }
  Slab slab;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Range& range = ranges[d];
    const std::uint64_t start = range.start.value_or(0);
    const std::uint64_t end = range.end.value_or(shape[d]);
    if (start > end || end > shape[d]) {
      return Status(
          Code::bad_coverage,
          fmt::format(
              "--slab {}: range {}:{} must be ascending and end at {} at most, in dataset \"{}\"",
              text, start, end, shape[d], dataset.path));
    }
    slab.start.push_back(start);
    slab.count.push_back(start == end ? 0 : (end - start - 1) / range.step + 1);
    slab.stride.push_back(range.step);
  }
  return slab;
}

/// Select every 2^level-th value along an axis of a complete array.
void halve(Slab& slab, std::size_t axis, int level) {
  slab.stride[axis] = std::uint64_t{1} << level;
  slab.count[axis] = (slab.count[axis] + slab.stride[axis] - 1) / slab.stride[axis];
}

Slab whole_slab(const Shape& shape) {
  Slab slab = Slab::of(whole_box(shape));
  slab.stride.assign(shape.size(), 1);
  return slab;
}

/// Select every 2^level-th value along the axes that coarse views halve: the fastest axes, at most
/// three, along which chunks have more than two values.
Slab slab_at_level(const StoredDataset& dataset, int level) {
  Slab slab = whole_slab(dataset.shape);
  const Shape& chunk = dataset.storage.chunk_shape;
  const Shape& extents = chunk.size() == dataset.shape.size() ? chunk : dataset.shape;
  int n_left = 3;
  for (std::size_t d = dataset.shape.size(); d-- > 0 && n_left > 0;) {
    if (extents[d] <= 2) continue;
    --n_left;
    halve(slab, d, level);
  }
  return slab;
}

/// The requested part of a dataset. @error as slab_of()
Result<Slab> part_of(const StoredDataset& dataset, const ExportRequest& request) {
  return request.level > 0 ? slab_at_level(dataset, request.level) : slab_of(dataset, request.slab);
}

/// Number of dimensions for which a slab text is written. @error invalid_argument
Result<std::size_t> n_ranges(const std::string& text) {
  TAILRACE_TAKE(const std::vector<Range> ranges, parse_ranges(text));
  return ranges.size();
}

/// Rows that a rank exports in one round.
struct RowPiece {
  std::uint64_t first_row = 0;
  Slab from;  ///< Position in the dataset.
  Slab to;    ///< Position in a new dataset that contains only the slab.
};

/// A slab dealt to the ranks by rows: pieces that fit in memory, one for each rank and round.
class RowRounds {
 public:
  /// @param unit  number of rows that should stay together if they fit.
  RowRounds(const Slab& slab, std::uint64_t element_bytes, std::uint64_t unit,
            std::uint64_t piece_bytes, const Comm& comm)
      : slab_(slab),
        rank_(static_cast<std::uint64_t>(comm.rank())),
        n_ranks_(static_cast<std::uint64_t>(comm.n_ranks())),
        n_rows_(slab.rank() == 0 ? 1 : slab.count[0]),
        row_bytes_(n_rows_ == 0 ? 1 : slab.n_elements() / n_rows_ * element_bytes) {
    const std::uint64_t n_fit =
        std::max<std::uint64_t>(1, piece_bytes / std::max<std::uint64_t>(row_bytes_, 1));
    const std::uint64_t share = (n_rows_ + n_ranks_ - 1) / n_ranks_;
    rows_ = std::min(n_fit, std::max<std::uint64_t>(share, 1));
    if (rows_ > unit) rows_ -= rows_ % unit;
  }

  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Number of rounds, the same on every rank.
  std::uint64_t n_rounds() const { return (n_pieces() + n_ranks_ - 1) / n_ranks_; }
  /// This rank's piece of a round; may be missing in the last round.
  std::optional<RowPiece> piece(std::uint64_t round) const {
    const std::uint64_t number = round * n_ranks_ + rank_;
    if (number >= n_pieces()) return std::nullopt;
    RowPiece piece{number * rows_, slab_, Slab::of(whole_box(slab_.count))};
    if (slab_.rank() > 0) {
      piece.from.start[0] += piece.first_row * slab_.stride_of(0);
      piece.from.count[0] = piece.to.count[0] = std::min(rows_, n_rows_ - piece.first_row);
      piece.to.start[0] = piece.first_row;
    }
    return piece;
  }

 private:
  std::uint64_t n_pieces() const { return (n_rows_ + rows_ - 1) / rows_; }

  const Slab& slab_;
  std::uint64_t rank_;
  std::uint64_t n_ranks_;
  std::uint64_t n_rows_;
  std::uint64_t row_bytes_;
  std::uint64_t rows_ = 1;
};

/// Header of a .npy file, version 1: magic, length, literal, padded to 64 bytes.
std::string npy_head(DType dtype, const Shape& shape) {
  const char order = dtype_bytes(dtype) == 1                      ? '|'
                     : std::endian::native == std::endian::little ? '<'
                                                                  : '>';
  const char kind = dtype_name(dtype)[0];
  std::string extents;
  for (const std::uint64_t extent : shape) extents += fmt::format("{},", extent);
  std::string literal =
      fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", order, kind,
                  dtype_bytes(dtype), extents);
  constexpr std::size_t fixed_bytes = 10;
  while ((fixed_bytes + literal.size() + 1) % 64 != 0) literal += ' ';
  literal += '\n';
  std::string head = "\x93NUMPY";
  head += '\x01';
  head += '\0';
  head += static_cast<char>(literal.size() & 0xff);
  head += static_cast<char>(literal.size() >> 8);
  return head + literal;
}

/// True if a dataset that was not named is left out because its values lie in other files. Reports
/// the omission to the user.
bool leaves_out(const StoredDataset& dataset, const ExportRequest& request,
                const VerbRanks& ranks) {
  if (!dataset.foreign || request.follow_external) return false;
  ranks.report(values_elsewhere_text(dataset) + ": left out; --follow-external includes them");
  return true;
}

/// Exports the datasets of one reader. All members are collective.
class PlainExport {
 public:
  PlainExport(const VerbRanks& ranks, Reader& reader, const ExportRequest& request, Format format,
              std::uint64_t memory_bytes)
      : ranks_(ranks),
        reader_(reader),
        request_(request),
        format_(format),
        piece_bytes_(std::max<std::uint64_t>(memory_bytes / 4, 1)) {}

  Status run() {
    TAILRACE_TAKE(std::vector<std::size_t> chosen, ranks_.agree(choose()));
    const bool into_folder = chosen.size() != 1 || is_directory(request_.output);
    Status made;
    if (into_folder && ranks_.is_root()) made = make_folder(request_.output);
    TAILRACE_TRY(ranks_.agree(made));
    for (const std::size_t number : chosen) {
      const std::string path = into_folder ? path_in_folder(number) : request_.output;
      TAILRACE_TRY(write(number, path).within(reader_.datasets()[number].path));
    }
    return Status();
  }

 private:
  /// True if the dataset only represents a netCDF dimension without a variable.
  bool is_bare_dimension(const std::string& path) const {
    const NetcdfModel& model = reader_.model();
    const auto is_its_path = [&](const ModelDimension& dimension) {
      const std::string& group = model.groups[dimension.group].path;
      return !dimension.anonymous && (group == "/" ? "" : group) + "/" + dimension.name == path;
    };
    return std::any_of(model.dimensions.begin(), model.dimensions.end(), is_its_path) &&
           std::none_of(
               model.variables.begin(), model.variables.end(),
               [&](const ModelVariable& variable) { return variable.dataset_path == path; });
  }

  Result<std::vector<std::size_t>> choose() const {
    std::vector<std::size_t> chosen;
    const std::vector<StoredDataset>& all = reader_.datasets();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool named = !request_.selection.only.empty();
      if (!request_.selection.holds(all[i].path)) continue;
      if (!named && is_bare_dimension(all[i].path)) continue;
      if (!named && leaves_out(all[i], request_, ranks_)) continue;
      if (!all[i].dtype) {
        if (named || format_ == Format::raw) {
          return Status(
              Code::unsupported,
              fmt::format("dataset \"{}\" is {}: only numbers can be exported as {}", all[i].path,
                          all[i].type_text, format_ == Format::npy ? "npy" : "raw"));
        }
        ranks_.report(fmt::format("dataset \"{}\" is {}, not numbers: left out", all[i].path,
                                  all[i].type_text));
        continue;
      }
      chosen.push_back(i);
    }
    if (chosen.empty()) {
      return Status(Code::not_found,
                    fmt::format("{}: no dataset matches --only and --exclude", request_.input));
    }
    return chosen;
  }

  static Status make_folder(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error) return Status();
    return Status(Code::io_error,
                  fmt::format("cannot create folder {}: {}", path, error.message()));
  }

  /// Output path of a dataset in a folder: "/g/name" becomes "g.name.npy".
  std::string path_in_folder(std::size_t number) const {
    std::string name = reader_.datasets()[number].path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    return (std::filesystem::path(request_.output) /
            (name + (format_ == Format::npy ? ".npy" : ".bin")))
        .string();
  }

  Status create(const StoredDataset& dataset, const Slab& slab, const std::string& path,
                const std::string& partial, const std::string& head) const {
    TAILRACE_TRY(check_replaceable(path, request_.replace, "--force replaces it"));
    if (same_file(path, request_.input)) {
      return Status(Code::invalid_argument, path + " is the input file");
    }
    struct stat left {};
    if (request_.replace && ::lstat(partial.c_str(), &left) == 0 && S_ISREG(left.st_mode)) {
      std::remove(partial.c_str());  // Remains of a killed export.
    }
    const Result<std::unique_ptr<Storage>> output = open_posix_storage(partial, true, false);
    if (!output.ok()) return output.status().within("cannot create " + partial);
    TAILRACE_TRY((*output)->write_at(0, std::as_bytes(std::span(head))));
    return (*output)->resize(head.size() + slab.n_elements() * dataset.value_bytes());
  }

  Status write(std::size_t number, const std::string& name) {
    TAILRACE_TAKE(const std::string path, ranks_.agree(resolve_links(name)));
    const StoredDataset& dataset = reader_.datasets()[number];
    TAILRACE_TAKE(const Slab slab, ranks_.agree(part_of(dataset, request_)));
    const std::string head =
        format_ == Format::npy ? npy_head(*dataset.dtype, slab.count) : std::string();
    const std::string partial = partial_path_of(path);
    const Status created = ranks_.is_root() ? create(dataset, slab, path, partial, head) : Status();
    TAILRACE_TRY(ranks_.agree(created));
    Status done = write_rows(number, slab, partial, head.size());
    if (done.ok() && ranks_.is_root()) {
      const AtName at_name = request_.replace ? AtName::replaced : AtName::nothing;
      done = give_name(partial, path, at_name, true);
    }
    if (!done.ok() && ranks_.is_root()) std::remove(partial.c_str());
    TAILRACE_TRY(ranks_.agree(done));
    if (ranks_.is_root() && request_.written) {
      request_.written(
          {path, *dataset.dtype, slab.count, slab.n_elements() * dataset.value_bytes()});
    }
    return Status();
  }

  /// Write this rank's share of the rows, in pieces. Every rank executes the same number of rounds.
  Status write_rows(std::size_t number, const Slab& slab, const std::string& path,
                    std::uint64_t head_bytes) {
    const StoredDataset& dataset = reader_.datasets()[number];
    // Use complete rows of chunks if they fit, so that no chunk is decoded twice.
    const Shape& chunk_shape = dataset.storage.chunk_shape;
    const std::uint64_t unit =
        chunk_shape.empty() ? 1 : std::max<std::uint64_t>(1, chunk_shape[0] / slab.stride_of(0));
    const RowRounds rounds(slab, dataset.value_bytes(), unit, piece_bytes_, ranks_.comm);
    std::unique_ptr<Storage> output;
    const auto open = [&] {
      Result<std::unique_ptr<Storage>> opened = open_posix_storage(path, false, false);
      if (opened.ok()) output = std::move(*opened);
      return opened.status();
    };
    TAILRACE_TRY(ranks_.comm.agree(local_part(open)));
    TAILRACE_TRY(check_one_output(ranks_.comm, path, output, 0, open));
    Status mine;
    std::vector<std::byte> values;
    for (std::uint64_t round = 0; round < rounds.n_rounds(); ++round) {
      std::vector<ReadRequest> requests;
      const std::optional<RowPiece> piece = rounds.piece(round);
      if (piece && mine.ok()) {
        values.resize(piece->from.n_elements() * dataset.value_bytes());
        requests.push_back({number, piece->from, values.data()});
      }
      TAILRACE_TRY(reader_.read_all(requests));
      if (!requests.empty() && mine.ok()) {
        mine = output->write_at(head_bytes + piece->first_row * rounds.row_bytes(), values);
      }
    }
    return ranks_.comm.agree(mine.ok() ? output->sync() : mine);
  }

  const VerbRanks& ranks_;
  Reader& reader_;
  const ExportRequest& request_;
  Format format_;
  std::uint64_t piece_bytes_;
};

// --- A slab as netCDF-4
// ----------------------------------------------------------------------------
//
// The slab's ranges apply to the chosen variables. A dimension that they cut is cut everywhere, and
// its coordinate variable is exported, too. Groups and attributes are copied, except attributes
// about the input's compression. Every rank reads its rows and puts them into an ArrayFile.

/// The part of one dimension that a slab selects.
struct Cut {
  std::uint64_t start = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
  bool operator==(const Cut&) const = default;
};

Cut cut_of(const Slab& slab, std::size_t d) {
  return {slab.start[d], slab.count[d], slab.stride_of(d)};
}

/// Convert a note to a variable's attribute.
ModelAttribute model_attribute(const EncodingNote& note) {
  ModelAttribute attribute;
  attribute.name = note.name;
  if (const auto* const text = std::get_if<std::string>(&note.value)) {
    attribute.n_values = text->size();
    attribute.values.resize(text->size());
    std::memcpy(attribute.values.data(), text->data(), text->size());
  } else {
    attribute.type = ModelType::f64;
    attribute.n_values = 1;
    attribute.values.resize(sizeof(double));
    std::memcpy(attribute.values.data(), &std::get<double>(note.value), sizeof(double));
  }
  return attribute;
}

/// A variable to export.
struct PartVariable {
  std::size_t dataset = 0;
  Slab slab;
};

class PartExport {
 public:
  PartExport(const VerbRanks& ranks, Reader& reader, const ExportRequest& request)
      : ranks_(ranks), reader_(reader), request_(request), from_(reader.model()) {}

  Status run(const ArrayFileOptions& options, std::uint64_t memory_bytes) {
    piece_bytes_ = std::max<std::uint64_t>(memory_bytes / 4, 1);
    TAILRACE_TRY(ranks_.agree(describe()));
    TAILRACE_TAKE(auto created, ArrayFile::create(ranks_.world(), request_.output, options));
    ArrayFile& file = *created;
    Status done = file.change_model(to_);
    for (std::size_t v = 0; done.ok() && v < variables_.size(); ++v) {
      done = copy(file, v).within(reader_.datasets()[variables_[v].dataset].path);
    }
    if (done.ok()) return file.close();
    static_cast<void>(file.abort());
    return done;
  }

 private:
  /// Describe the part, from the input's list only: the same on every rank.
  Status describe() {
    TAILRACE_TRY(reader_.model_status());
    std::size_t n_dimensions = 0;
    if (request_.level > 0) {
      find_halved();
    } else {
      TAILRACE_TAKE(n_dimensions, n_ranges(request_.slab));
    }
    const auto is_meant = [&](std::size_t n) { return request_.level > 0 || n == n_dimensions; };
    to_.netcdf4 = true;
    to_.groups = from_.groups;
    for (ModelGroup& group : to_.groups) keep_known(group.path, group.attributes);
    std::vector<bool> taken(from_.variables.size(), false);
    for (std::size_t v = 0; v < from_.variables.size(); ++v) {
      const ModelVariable& variable = from_.variables[v];
      const std::string& path = variable.dataset_path;
      const bool named = matches_any(path, request_.selection.only);
      if (matches_any(path, request_.selection.exclude) ||
          (!request_.selection.only.empty() && !named))
        continue;
      if (!named && !is_meant(variable.dimensions.size())) continue;
      if (const Result<std::size_t> it = reader_.find(path);
          it.ok() && !named && leaves_out(reader_.datasets()[*it], request_, ranks_)) {
        continue;
      }
      const std::optional<ModelType> type = type_of(variable);
      if (!type && named) return not_numbers(path);
      if (!type) continue;
      TAILRACE_TAKE(const std::size_t dataset, reader_.find(path));
      TAILRACE_TAKE(const Slab slab, part_of_variable(variable, dataset));
      TAILRACE_TRY(add(v, *type, dataset, slab));
      taken[v] = true;
    }
    if (variables_.empty()) {
      const std::string what =
          request_.level > 0 ? "" : fmt::format(" of {} dimensions", n_dimensions);
      return Status(Code::not_found,
                    fmt::format("{}: no matching dataset{} to export", request_.input, what));
    }
    return add_coordinates(taken);
  }

  /// Find the dimensions to halve at a level; they are cut in all variables. Only the fields with
  /// the most dimensions decide: at least one must halve the dimension, and none may leave it
  /// uncut. Bounds of cells do not count as fields.
  void find_halved() {
    std::set<std::string> bounds;
    std::size_t most = 0;
    for (const ModelVariable& variable : from_.variables) {
      for (const char* name : {"bounds", "climatology"}) {
        bounds.insert(variable.text_attribute(name));
      }
    }
    for (const ModelVariable& variable : from_.variables) {
      if (!bounds.contains(variable.name)) most = std::max(most, variable.dimensions.size());
    }
    std::set<std::size_t> kept;
    for (const ModelVariable& variable : from_.variables) {
      const Result<std::size_t> dataset = reader_.find(variable.dataset_path);
      const bool is_field = variable.dimensions.size() == most && !bounds.contains(variable.name);
      if (!is_field || !dataset.ok()) continue;
      const Slab slab = slab_at_level(reader_.datasets()[*dataset], request_.level);
      for (std::size_t d = 0; d < most; ++d) {
        if (reader_.datasets()[*dataset].shape[d] == 1) continue;
        (slab.stride[d] > 1 ? halved_ : kept).insert(variable.dimensions[d]);
      }
    }
    for (const std::size_t dimension : kept) halved_.erase(dimension);
  }

  Result<Slab> part_of_variable(const ModelVariable& variable, std::size_t dataset) const {
    const StoredDataset& stored = reader_.datasets()[dataset];
    if (request_.level == 0) return slab_of(stored, request_.slab);
    Slab slab = whole_slab(stored.shape);
    for (std::size_t d = 0; d < variable.dimensions.size() && d < stored.shape.size(); ++d) {
      if (halved_.contains(variable.dimensions[d])) halve(slab, d, request_.level);
    }
    return slab;
  }

  static Status not_numbers(const std::string& path) {
    return Status(
        Code::unsupported,
        fmt::format("dataset \"{}\": only numbers and texts can be exported in part", path));
  }

  /// Type with which the values are read and written.
  std::optional<ModelType> type_of(const ModelVariable& variable) const {
    if (variable.type == ModelType::text || variable.type == ModelType::text_char) {
      return variable.type;
    }
    const Result<std::size_t> dataset = reader_.find(variable.dataset_path);
    if (!dataset.ok() || !reader_.datasets()[*dataset].dtype) return std::nullopt;
    return model_type(*reader_.datasets()[*dataset].dtype);
  }

  void keep_known(const std::string& owner, std::vector<ModelAttribute>& attributes) {
    std::erase_if(attributes, [&](const ModelAttribute& attribute) {
      if (is_own_attribute(attribute.name)) return true;
      if (attribute.type != ModelType::other) return false;
      ranks_.report(
          fmt::format("attribute \"{}\" of \"{}\" is neither text nor a list of "
                      "numbers: left out",
                      attribute.name, owner));
      return true;
    });
  }

  /// Losses of a variable's values as read here; --abs counts if it is coarser.
  Losses losses_of_part(const ModelVariable& from, const StoredDataset& stored) const {
    if (!stored.dtype || !is_floating(*stored.dtype)) return {};
    const auto number = [&](const char* name) {
      const ModelAttribute* const it = from.attribute(name);
      std::optional<double> value;
      if (it == nullptr || it->type != ModelType::f64 || it->n_values != 1) return value;
      std::memcpy(&value.emplace(), it->values.data(), sizeof(double));
      return value;
    };
    const bool lossy_filter =
        std::ranges::any_of(stored.storage.filters, always_lossy, &FilterSpec::filter_id);
    const auto text = [&](const char* name) { return from.text_attribute(name); };
    const Losses losses = losses_of(loss_facts(text, number, lossy_filter));
    const std::optional<ErrorBound> total = total_of(losses);
    const bool coarser =
        total && total->mode == BoundMode::abs && request_.abs_bound > total->value;
    return coarser ? Losses{{BoundMode::abs, request_.abs_bound}} : losses;
  }

  Status add(std::size_t v, ModelType type, std::size_t dataset, const Slab& slab) {
    ModelVariable variable = from_.variables[v];
    variable.type = type;
    variable.dataset_path.clear();
    keep_known(from_.variables[v].dataset_path, variable.attributes);
    const Losses losses = losses_of_part(from_.variables[v], reader_.datasets()[dataset]);
    if (!losses.empty()) {
      variable.attributes.push_back(model_attribute({kCodecAttribute, std::string(plain_codec)}));
      for (const EncodingNote& note : notes_of_losses(losses)) {
        variable.attributes.push_back(model_attribute(note));
      }
    }
    const auto no_fill = [&](const std::string& what) {
      ranks_.report(fmt::format("{} of \"{}\" is not kept", what, from_.variables[v].dataset_path));
    };
    if (std::erase_if(variable.attributes, [&](const ModelAttribute& attribute) {
          return attribute.name == "_FillValue" && attribute.type != type;
        }) > 0) {
      no_fill("attribute \"_FillValue\", of another type than the values,");
    }
    const Bytes& fill = reader_.datasets()[dataset].fill_value;
    const bool zero = std::ranges::all_of(fill, [](std::byte b) { return b == std::byte{0}; });
    if (!zero && variable.attribute("_FillValue") == nullptr) no_fill("HDF5's fill value");
    for (std::size_t d = 0; d < variable.dimensions.size(); ++d) {
      TAILRACE_TAKE(variable.dimensions[d], dimension_of(variable.dimensions[d], cut_of(slab, d),
                                                         from_.variables[v].dataset_path));
    }
    to_.variables.push_back(std::move(variable));
    variables_.push_back({dataset, slab});
    return Status();
  }

  /// The part's dimension for a cut of an input dimension; created at the first use.
  Result<std::size_t> dimension_of(std::size_t dimension, const Cut& cut, const std::string& path) {
    ModelDimension made = from_.dimensions[dimension];
    std::vector<std::pair<Cut, std::size_t>>& known = cuts_[dimension];
    for (const auto& [other, position] : known) {
      if (other == cut) return position;
    }
    if (!known.empty() && !made.anonymous) {
      return Status(Code::invalid_argument,
                    fmt::format("--slab cuts dimension \"{}\" of \"{}\" at other positions than in "
                                "another dataset; export them separately (--only)",
                                made.name, path));
    }
    if (!known.empty()) made.name += "_" + std::to_string(known.size());
    made.length = cut.count;
    made.anonymous = false;
    known.emplace_back(cut, to_.dimensions.size());
    to_.dimensions.push_back(std::move(made));
    return to_.dimensions.size() - 1;
  }

  /// Add the coordinate variables of the part's dimensions.
  Status add_coordinates(const std::vector<bool>& taken) {
    for (std::size_t v = 0; v < from_.variables.size(); ++v) {
      const ModelVariable& variable = from_.variables[v];
      if (taken[v] || variable.dimensions.size() != 1) continue;
      const std::size_t dimension = variable.dimensions[0];
      const ModelDimension& of = from_.dimensions[dimension];
      const auto cuts = cuts_.find(dimension);
      if (of.anonymous || of.name != variable.name || of.group != variable.group) continue;
      if (cuts == cuts_.end() || matches_any(variable.dataset_path, request_.selection.exclude))
        continue;
      const std::optional<ModelType> type = type_of(variable);
      const Result<std::size_t> dataset = reader_.find(variable.dataset_path);
      if (!type || !dataset.ok()) continue;
      const Cut cut = cuts->second.front().first;
      const std::uint64_t length = reader_.datasets()[*dataset].shape[0];
      if (cut.count > 0 && cut.start + (cut.count - 1) * cut.stride >= length) continue;
      TAILRACE_TRY(add(v, *type, *dataset, {{cut.start}, {cut.count}, {cut.stride}}));
    }
    return Status();
  }

  /// Copy this rank's share of the rows, in pieces. Every rank executes the same number of rounds.
  Status copy(ArrayFile& file, std::size_t v) {
    const auto& [dataset, slab] = variables_[v];
    const ModelType type = to_.variables[v].type;
    if (type == ModelType::text) return copy_texts(file, v);
    const RowRounds rounds(slab, model_type_bytes(type), 1, piece_bytes_, ranks_.comm);
    std::vector<std::byte> values;
    for (std::uint64_t round = 0; round < rounds.n_rounds(); ++round) {
      std::vector<ReadRequest> requests;
      const std::optional<RowPiece> piece = rounds.piece(round);
      if (piece) {
        values.resize(piece->from.n_elements() * model_type_bytes(type));
        requests.push_back({dataset, piece->from, values.data()});
      }
      TAILRACE_TRY(reader_.read_all(requests));
      if (piece) {
        static_cast<void>(file.put(v, piece->to, values));  // end_collective_put() reports errors.
      }
      TAILRACE_TRY(file.end_collective_put());
    }
    return Status();
  }

  Status copy_texts(ArrayFile& file, std::size_t v) {
    const auto& [dataset, slab] = variables_[v];
    Status mine;
    if (ranks_.comm.is_root()) {
      Result<std::vector<std::string>> texts = reader_.read_texts(dataset, slab);
      mine = texts.status();
      if (texts.ok()) mine = file.put_texts(v, Slab::of(whole_box(slab.count)), *texts);
    }
    return ranks_.comm.agree(mine);
  }

  const VerbRanks& ranks_;
  Reader& reader_;
  const ExportRequest& request_;
  const NetcdfModel& from_;
  NetcdfModel to_;
  std::set<std::size_t> halved_;         ///< Dimensions of the input that are halved at a level.
  std::vector<PartVariable> variables_;  ///< Parallel to to_.variables.
  /// Cuts of each dimension of the input, with the part's dimension for each cut.
  std::map<std::size_t, std::vector<std::pair<Cut, std::size_t>>> cuts_;
  std::uint64_t piece_bytes_ = 1;
};

/// Bytes in front of the superblock, which is at 0, 512, 1024, 2048, ...
std::uint64_t bytes_in_front(const InputBytes& file) {
  constexpr std::uint64_t first = 512;
  std::array<std::byte, kSuperblockBytesMax> bytes{};
  for (std::uint64_t at = 0; file.read_at(at, bytes).ok(); at = at == 0 ? first : 2 * at) {
    if (has_hdf5_signature(bytes)) return at;
  }
  return 0;
}

/// Report bytes of the input that do not belong to its HDF5 file.
Status report_other_bytes(const VerbRanks& ranks, const std::string& path) {
  TAILRACE_TAKE(const std::shared_ptr<InputBytes> input, InputBytes::open(path));
  const std::uint64_t n_in_front = bytes_in_front(*input);
  if (n_in_front > 0) {
    ranks.report(fmt::format("the user block of {} bytes is not kept in a part", n_in_front));
  }
  TAILRACE_TAKE(const BytesBehindEnd behind, bytes_behind_end(*input, n_in_front));
  if (behind.n_bytes > 0) ranks.report(behind.text() + ": not kept in a part");
  return Status();
}

Status export_part(const VerbRanks& ranks, Reader& reader, const ExportRequest& request,
                   std::uint64_t memory_bytes) {
  TAILRACE_TRY(ranks.agree(report_other_bytes(ranks, request.input).within(request.input)));
  ArrayFileOptions options;
  TAILRACE_TRY(apply_glob_options("codec=none,layout=contiguous", options));
  options.file.replace = request.replace;
  options.file.memory_bytes = std::max<std::uint64_t>(memory_bytes, 16U << 20);
  return PartExport(ranks, reader, request).run(options, memory_bytes);
}

Status export_by_reader(const VerbRanks& ranks, const ExportRequest& request, Format format,
                        const ReadOptions& options) {
  TAILRACE_TAKE(auto reader, Reader::open(ranks.world(), request.input, options));
  Status status = format == Format::hdf5
                      ? export_part(ranks, *reader, request, options.memory_bytes)
                      : PlainExport(ranks, *reader, request, format, options.memory_bytes).run();
  const Status closed = reader->close();
  if (status.ok()) status = closed;
  // Data that cannot be decoded here are the fault of the input, not of a codec.
  return status.code() == Code::codec_failed ? Status(Code::corrupt, status.message()) : status;
}

Result<RepackReport> export_whole(const VerbRanks& ranks, const ExportRequest& request) {
  RepackRequest repack_request;
  repack_request.input = request.input;
  repack_request.follow_external = request.follow_external;
  repack_request.fields.codec = plain_codec;
  repack_request.fields.lossless_codec = plain_codec;
  repack_request.fields.selection = request.selection;
  repack_request.options.replace = request.replace;
  repack_request.options.plugin_path = request.plugin_path;
  TAILRACE_TAKE(const auto outputs,
                ranks.agree(repack_outputs({request.input}, request.output, false)));
  repack_request.output = outputs.front();
  return repack(ranks, repack_request);
}

}  // namespace

Result<ExportReport> export_files(const VerbRanks& ranks, const ExportRequest& request) {
  TAILRACE_TAKE(const Format format, parse_format(request));
  constexpr int kMostLevels = 16;
  if (request.level < 0 || request.level > kMostLevels) {
    return Status(Code::invalid_argument,
                  fmt::format("--level {}: expected 0 to {}", request.level, kMostLevels));
  }
  if (request.level > 0 && !request.slab.empty()) {
    return Status(Code::invalid_argument, "--level and --slab cannot be combined");
  }
  if (!(request.abs_bound >= 0)) {
    return Status(Code::invalid_argument,
                  fmt::format("--abs {}: expected a number >= 0", request.abs_bound));
  }
  ReadOptions options;
  options.plugin_path = request.plugin_path;
  options.follow_external = request.follow_external;
  TAILRACE_TRY(apply_read_options(request.read_options, options).within("--read-options"));
  options.abs_bound = std::max(options.abs_bound, request.abs_bound);
  ExportReport report;
  if (format != Format::hdf5 || !request.slab.empty() || request.level > 0) {
    TAILRACE_TRY(export_by_reader(ranks, request, format, options));
    return report;
  }
  if (options.abs_bound > 0) {
    return Status(Code::invalid_argument,
                  "--abs needs --format npy, --format raw or --slab: a complete HDF5 export keeps "
                  "the attributes that record the original bounds");
  }
  TAILRACE_TAKE(report.repacked, export_whole(ranks, request));
  return report;
}

}  // namespace tailrace::verbs
