// A slab of datasets as a file: what netCDF tools call a hyperslab.
//
// The slab's ranges are those of the chosen variables; a dimension that they cut is cut everywhere,
// with its coordinate variable, which comes along. Groups and attributes are kept, but those that
// tell how the input was compressed. Every rank reads its rows and puts them into an ArrayFile.

#include "export_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "array/array_file.hpp"
#include "core/options.hpp"
#include "export_slab.hpp"
#include "read/read.hpp"

namespace tailrace::cli {
namespace {

/// One range of a slab.
struct Cut {
  std::uint64_t start = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
  bool operator==(const Cut&) const = default;
};

Cut cut_of(const Slab& slab, std::size_t d) {
  return {slab.start[d], slab.count[d], slab.stride_of(d)};
}

/// A variable on its way.
struct PartVariable {
  std::size_t dataset = 0;
  Slab slab;
};

class PartExport {
 public:
  PartExport(Session& session, Reader& reader, const ExportArguments& arguments)
      : session_(session), reader_(reader), arguments_(arguments), from_(reader.model()) {}

  Status run(const ArrayFileOptions& options, std::uint64_t memory_bytes) {
    piece_bytes_ = std::max<std::uint64_t>(memory_bytes / 4, 1);
    TAILRACE_TRY(session_.settle(describe()));
    Result<std::unique_ptr<ArrayFile>> created =
        ArrayFile::create(session_.mpi.world(), arguments_.output, options);
    if (!created.ok()) return created.status();
    ArrayFile& file = **created;
    Status done = file.change_model(to_);
    for (std::size_t v = 0; done.ok() && v < variables_.size(); ++v) {
      done = copy(file, v).within(reader_.datasets()[variables_[v].dataset].path);
    }
    if (done.ok()) return file.close();
    static_cast<void>(file.abort());
    return done;
  }

 private:
  static bool matches(const std::string& path, const std::vector<std::string>& globs) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return glob_matches(glob, path); });
  }

  /// What the part is: from the input's list alone, alike on every rank.
  Status describe() {
    TAILRACE_TRY(reader_.model_status());
    const Result<std::size_t> n_dimensions = n_ranges(arguments_.slab);
    if (!n_dimensions.ok()) return n_dimensions.status();
    to_.netcdf4 = true;
    to_.groups = from_.groups;
    for (ModelGroup& group : to_.groups) keep_known(group.path, group.attributes);
    std::vector<bool> taken(from_.variables.size(), false);
    for (std::size_t v = 0; v < from_.variables.size(); ++v) {
      const ModelVariable& variable = from_.variables[v];
      const std::string& path = variable.dataset_path;
      const bool named = matches(path, arguments_.only);
      if (matches(path, arguments_.exclude) || (!arguments_.only.empty() && !named)) continue;
      if (!named && variable.dimensions.size() != *n_dimensions) continue;
      const std::optional<ModelType> type = type_of(variable);
      if (!type && named) return not_numbers(path);
      if (!type) continue;
      const Result<std::size_t> dataset = reader_.find(path);
      if (!dataset.ok()) return dataset.status();
      const Result<Slab> slab = slab_of(reader_.datasets()[*dataset], arguments_.slab);
      if (!slab.ok()) return slab.status();
      TAILRACE_TRY(add(v, *type, *dataset, *slab));
      taken[v] = true;
    }
    if (variables_.empty()) {
      return Status(Code::not_found, fmt::format("{}: no dataset of {} dimensions is chosen",
                                                 arguments_.input, *n_dimensions));
    }
    return add_coordinates(taken);
  }

  static Status not_numbers(const std::string& path) {
    return Status(Code::unsupported,
                  fmt::format("dataset \"{}\" holds neither numbers nor texts: a part of it cannot "
                              "be exported",
                              path));
  }

  /// How the values are read and written again.
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
      if (attribute.name.starts_with("tailrace_")) return true;
      if (attribute.type != ModelType::other) return false;
      if (!arguments_.quiet) {
        session_.remark(
            fmt::format("attribute \"{}\" of \"{}\" is neither text nor a list of "
                        "numbers: left out",
                        attribute.name, owner));
      }
      return true;
    });
  }

  Status add(std::size_t v, ModelType type, std::size_t dataset, const Slab& slab) {
    ModelVariable variable = from_.variables[v];
    variable.type = type;
    variable.dataset_path.clear();
    keep_known(from_.variables[v].dataset_path, variable.attributes);
    std::erase_if(variable.attributes, [&](const ModelAttribute& attribute) {
      return attribute.name == "_FillValue" && attribute.type != type;
    });
    for (std::size_t d = 0; d < variable.dimensions.size(); ++d) {
      const Result<std::size_t> dimension =
          dimension_of(variable.dimensions[d], cut_of(slab, d), from_.variables[v].dataset_path);
      if (!dimension.ok()) return dimension.status();
      variable.dimensions[d] = *dimension;
    }
    to_.variables.push_back(std::move(variable));
    variables_.push_back({dataset, slab});
    return Status();
  }

  /// The part's dimension for a cut of one of the input's.
  Result<std::size_t> dimension_of(std::size_t dimension, const Cut& cut, const std::string& path) {
    ModelDimension made = from_.dimensions[dimension];
    std::vector<std::pair<Cut, std::size_t>>& known = cuts_[dimension];
    for (const auto& [other, position] : known) {
      if (other == cut) return position;
    }
    if (!known.empty() && !made.anonymous) {
      return Status(Code::invalid_argument,
                    fmt::format("--slab cuts dimension \"{}\" of \"{}\" otherwise than of another "
                                "dataset: choose by --only",
                                made.name, path));
    }
    if (!known.empty()) made.name += "_" + std::to_string(known.size());
    made.length = cut.count;
    made.anonymous = false;
    known.emplace_back(cut, to_.dimensions.size());
    to_.dimensions.push_back(std::move(made));
    return to_.dimensions.size() - 1;
  }

  /// The coordinate variables of the dimensions that there are.
  Status add_coordinates(const std::vector<bool>& taken) {
    for (std::size_t v = 0; v < from_.variables.size(); ++v) {
      const ModelVariable& variable = from_.variables[v];
      if (taken[v] || variable.dimensions.size() != 1) continue;
      const std::size_t dimension = variable.dimensions[0];
      const ModelDimension& of = from_.dimensions[dimension];
      const auto cuts = cuts_.find(dimension);
      if (of.anonymous || of.name != variable.name || of.group != variable.group) continue;
      if (cuts == cuts_.end() || matches(variable.dataset_path, arguments_.exclude)) continue;
      const std::optional<ModelType> type = type_of(variable);
      const Result<std::size_t> dataset = reader_.find(variable.dataset_path);
      if (!type || !dataset.ok()) continue;
      const Cut cut = cuts->second.front().first;
      const std::uint64_t length = reader_.datasets()[*dataset].shape()[0];
      if (cut.count > 0 && cut.start + (cut.count - 1) * cut.stride >= length) continue;
      TAILRACE_TRY(add(v, *type, *dataset, {{cut.start}, {cut.count}, {cut.stride}}));
    }
    return Status();
  }

  /// Every rank its share of the rows, in pieces; the same number of rounds on every rank.
  Status copy(ArrayFile& file, std::size_t v) {
    const auto& [dataset, slab] = variables_[v];
    const ModelType type = to_.variables[v].type;
    if (type == ModelType::text) return copy_texts(file, v);
    const auto n_ranks = static_cast<std::uint64_t>(session_.comm.n_ranks());
    const auto rank = static_cast<std::uint64_t>(session_.comm.rank());
    const std::uint64_t n_rows = slab.rank() == 0 ? 1 : slab.count[0];
    const std::uint64_t row_bytes =
        n_rows == 0 ? 1 : slab.n_elements() / n_rows * model_type_bytes(type);
    const std::uint64_t n_fit =
        std::max<std::uint64_t>(1, piece_bytes_ / std::max<std::uint64_t>(row_bytes, 1));
    const std::uint64_t share = (n_rows + n_ranks - 1) / n_ranks;
    const std::uint64_t rows = std::min(n_fit, std::max<std::uint64_t>(share, 1));
    const std::uint64_t n_pieces = (n_rows + rows - 1) / rows;
    std::vector<std::byte> values;
    for (std::uint64_t first = 0; first < n_pieces; first += n_ranks) {
      const std::uint64_t begin = (first + rank) * rows;
      std::vector<ReadRequest> requests;
      Slab to = Slab::of(whole_box(slab.count));
      if (first + rank < n_pieces) {
        Slab part = slab;
        if (slab.rank() > 0) {
          part.start[0] += begin * slab.stride_of(0);
          part.count[0] = to.count[0] = std::min(rows, n_rows - begin);
          to.start[0] = begin;
        }
        values.resize(part.n_elements() * model_type_bytes(type));
        requests.push_back({dataset, part, values.data()});
      }
      TAILRACE_TRY(reader_.read_all(requests));
      if (!requests.empty()) static_cast<void>(file.put(v, to, values));  // settle() tells
      TAILRACE_TRY(file.settle());
    }
    return Status();
  }

  Status copy_texts(ArrayFile& file, std::size_t v) {
    const auto& [dataset, slab] = variables_[v];
    Status mine;
    if (session_.comm.is_root()) {
      Result<std::vector<std::string>> texts = reader_.read_texts(dataset, slab);
      mine = texts.status();
      if (texts.ok()) mine = file.put_texts(v, Slab::of(whole_box(slab.count)), *texts);
    }
    return session_.comm.agree(mine);
  }

  Session& session_;
  Reader& reader_;
  const ExportArguments& arguments_;
  const NetcdfModel& from_;
  NetcdfModel to_;
  std::vector<PartVariable> variables_;  ///< Of to_, by position.
  /// Of the input's dimensions: what is left of them, and which dimension that is.
  std::map<std::size_t, std::vector<std::pair<Cut, std::size_t>>> cuts_;
  std::uint64_t piece_bytes_ = 1;
};

}  // namespace

int export_part(Session& session, const ExportArguments& arguments) {
  ReadOptions reading;
  reading.plugin_path = arguments.plugin_path;
  Status status = apply_read_options(arguments.read_options, reading).within("--read-options");
  if (!status.ok()) return session.fail(status);
  ArrayFileOptions options;
  status = apply_array_file_options("codec=none,layout=contiguous", options);
  if (!status.ok()) return session.fail(status);
  options.file.replace = arguments.force;
  options.file.memory_bytes = std::max<std::uint64_t>(reading.memory_bytes, 16U << 20);
  Result<std::unique_ptr<Reader>> reader =
      Reader::open(session.mpi.world(), arguments.input, reading);
  if (!reader.ok()) return session.fail(reader.status());
  status = PartExport(session, **reader, arguments).run(options, reading.memory_bytes);
  const Status closed = (*reader)->close();
  if (status.ok()) status = closed;
  if (status.code() == Code::codec_failed) status = Status(Code::corrupt, status.message());
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
