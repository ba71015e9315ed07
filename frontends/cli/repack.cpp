// tailrace repack: existing files in, compressed HDF5 files out, in parallel and in bounded memory.
//
// Every rank opens the input by itself and owns whole chunks of the output (chunk_deal.hpp), which
// the Writer pulls through a BoxSource when it is ready for them: nothing is ever held but the
// chunks in flight. All ranks check the same arguments, so that a usage error needs no
// communication; what only one rank can see (its own opening of the input) is settled before
// anything collective begins.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>

#include "book_file.hpp"
#include "chunk_deal.hpp"
#include "commands.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "exec/trace_file.hpp"
#include "progress_bar.hpp"
#include "summary.hpp"
#include "why_table.hpp"
#include "core/option_table.hpp"

namespace tailrace::cli {
namespace {

/// One array of the input, as the Writer pulls it.
class InputSource final : public BoxSource {
 public:
  InputSource(InputFile& input, std::size_t field_index)
      : input_(&input), field_index_(field_index) {}
  Status read(const Box& box, std::span<std::byte> values) override {
    return input_->read(field_index_, box, values);
  }

 private:
  InputFile* input_;
  std::size_t field_index_;
};

/// Formats whose names already say HDF5 keep them; raw and npy files become .h5, or .nc.
std::string output_name(const std::string& input_path, bool netcdf) {
  const std::filesystem::path path(input_path);
  const std::string extension = path.extension().string();
  for (const char* known : {".h5", ".hdf5", ".he5", ".hdf", ".nc", ".nc4", ".cdf"}) {
    if (extension == known) return path.filename().string();
  }
  return path.stem().string() + (netcdf ? ".nc" : ".h5");
}

/// Whether the output may be created: found out before any work. Rank 0's view counts.
Status check_output(const std::string& input, const std::string& output, bool replace) {
  const std::filesystem::path parent = std::filesystem::path(output).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!is_directory(folder)) {
    return Status(Code::not_found,
                  fmt::format("cannot create {}: there is no folder {}", output, folder));
  }
  struct stat of_input {};
  struct stat of_output {};
  if (::stat(output.c_str(), &of_output) == 0) {
    if (::stat(input.c_str(), &of_input) == 0 && of_input.st_dev == of_output.st_dev &&
        of_input.st_ino == of_output.st_ino) {
      return Status(Code::invalid_argument,
                    fmt::format("input and output are the same file: {}", output));
    }
    if (!replace) {
      return Status(Code::already_exists,
                    fmt::format("{} exists already; --force replaces it", output));
    }
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return status_from_errno(errno, fmt::format("cannot create {} in folder {}", output, folder));
  }
  return Status();
}

/// Books are read by every rank: the codec of each must have the same.
Status load_books(std::vector<PlannedField>& plan) {
  for (PlannedField& planned : plan) {
    FieldOptions& options = planned.definition.options;
    TAILRACE_TRY(load_book(options.codec, options.codec_settings)
                     .within("field \"" + planned.definition.path + "\""));
  }
  return Status();
}

/// Fields that are about to become coordinate variables are coordinates already: exact, unless the
/// user says otherwise of them.
std::vector<InputField> with_coordinates(std::vector<InputField> fields,
                                         std::span<const DimensionNames> dimensions) {
  for (InputField& field : fields) {
    const std::string name = field.path.substr(field.path.rfind('/') + 1);
    const auto names_it = [&](const DimensionNames& given) {
      return std::find(given.names.begin(), given.names.end(), name) != given.names.end();
    };
    field.coordinate =
        field.coordinate ||
        (field.shape.size() == 1 && std::any_of(dimensions.begin(), dimensions.end(), names_it));
  }
  return fields;
}

/// The repack of one file: the pieces live as long as the Writer needs them.
class Repack {
 public:
  Repack(Session& session, const RepackArguments& arguments, FileOptions options, bool chunk_given)
      : session_(session), arguments_(arguments), chunk_given_(chunk_given) {
    outcome_.options = std::move(options);
    outcome_.n_ranks = session.comm.n_ranks();
    outcome_.n_threads = threads_of_each(outcome_.options.n_threads, session.comm);
  }

  /// Collective; the same Status on every rank.
  Status run(const std::string& input_path, const std::string& output_path);
  const RepackOutcome& outcome() const { return outcome_; }
  const std::vector<TraceEvent>& events() const { return events_; }
  const std::vector<std::string>& field_paths() const { return field_paths_; }

 private:
  Status prepare(const std::string& input_path, const std::string& output_path);
  Status define_fields(Writer& writer);
  Status put_own_chunks(Writer& writer);
  void carry_over(Writer& writer);

  Session& session_;
  const RepackArguments& arguments_;
  bool chunk_given_;
  std::unique_ptr<InputFile> input_;
  std::deque<InputSource> sources_;
  std::vector<std::size_t> field_indices_;  ///< The Writer's, in plan order.
  std::vector<DimensionNames> dimension_names_;
  RepackOutcome outcome_;
  std::vector<TraceEvent> events_;
  std::vector<std::string> field_paths_;
};

Status Repack::prepare(const std::string& input_path, const std::string& output_path) {
  outcome_.input_path = input_path;
  outcome_.output_path = output_path;
  Result<std::unique_ptr<InputFile>> opened = open_input(input_path, arguments_.raw_format);
  TAILRACE_TRY(session_.settle(opened.status()));
  input_ = std::move(*opened);
  outcome_.input_format = input_->format();
  outcome_.input_bytes = file_bytes_of(input_path);

  Result<std::vector<DimensionNames>> names = parse_dimension_names(arguments_.netcdf);
  TAILRACE_TRY(session_.settle(names.status()));
  dimension_names_ = std::move(*names);
  Result<std::vector<PlannedField>> plan =
      plan_fields(with_coordinates(input_->fields(), dimension_names_), arguments_.fields,
                  outcome_.options, chunk_given_, session_.comm.n_ranks());
  TAILRACE_TRY(session_.settle(plan.status()));
  TAILRACE_TRY(session_.settle(load_books(*plan)));
  outcome_.plan = std::move(*plan);
  // An output appears whole or not at all; whether it may appear is rank 0's to say.
  const Status writable = session_.speaks()
                              ? check_output(input_path, output_path, outcome_.options.replace)
                              : Status();
  return session_.settle(writable);
}

Status Repack::define_fields(Writer& writer) {
  for (const PlannedField& planned : outcome_.plan) {
    Result<std::size_t> index = writer.define_field(planned.definition);
    if (!index.ok()) return index.status();
    field_indices_.push_back(*index);
    sources_.emplace_back(*input_, planned.input_index);
  }
  return Status();
}

Status Repack::put_own_chunks(Writer& writer) {
  std::vector<DealtField> dealt;
  std::vector<ChunkGrid> grids;
  for (const PlannedField& planned : outcome_.plan) {
    const FieldDefinition& field = planned.definition;
    grids.push_back({field.shape, *field.options.chunk_shape});
    dealt.push_back({grids.back().n_chunks(), n_elements(field.shape) * dtype_bytes(field.dtype)});
  }
  for (const ChunkRun& run : deal_chunks(dealt, session_.comm.rank(), session_.comm.n_ranks())) {
    const std::size_t f = run.field_index;
    for (std::uint64_t chunk = run.first_chunk; chunk < run.end_chunk; ++chunk) {
      TAILRACE_TRY(writer.put_source(field_indices_[f], grids[f].clipped_box(chunk), sources_[f]));
    }
  }
  return Status();
}

void Repack::carry_over(Writer& writer) {
  const auto hook = [this](auto carry) {
    return [this, carry](Hdf5File& output) {
      Result<std::vector<std::string>> remarks = ((*input_).*carry)(output);
      if (!remarks.ok()) return remarks.status();
      outcome_.remarks.insert(outcome_.remarks.end(), remarks->begin(), remarks->end());
      return Status();
    };
  };
  const auto attributes = hook(&InputFile::carry_over_attributes);
  const auto attributes_and_names = [this, attributes](Hdf5File& output) {
    TAILRACE_TRY(attributes(output));
    if (!arguments_.netcdf.wanted) return Status();
    Result<std::vector<std::string>> remarks = name_dimensions(output, dimension_names_);
    if (!remarks.ok()) return remarks.status();
    outcome_.remarks.insert(outcome_.remarks.end(), remarks->begin(), remarks->end());
    return Status();
  };
  writer.on_metadata(hook(&InputFile::carry_over_objects), attributes_and_names);
}

Status Repack::run(const std::string& input_path, const std::string& output_path) {
  const auto start = std::chrono::steady_clock::now();
  TAILRACE_TRY(prepare(input_path, output_path));
  outcome_.options.expected_root_links = n_root_members(
      input_->fields(), [](const InputField& field) -> const std::string& { return field.path; });
  Result<std::unique_ptr<Writer>> created =
      Writer::create(session_.mpi.world(), output_path, outcome_.options);
  if (!created.ok()) return created.status();
  Writer& writer = **created;

  TAILRACE_TRY(session_.settle(define_fields(writer)));
  TAILRACE_TRY(session_.comm.agree(put_own_chunks(writer)));
  carry_over(writer);
  ProgressBar bar(fmt::format("{}", std::filesystem::path(input_path).filename().string()),
                  session_.speaks() && !arguments_.quiet);
  if (session_.speaks()) {
    writer.on_progress([&](const Progress& p) { bar.update(p.bytes_done, p.bytes_total); });
    writer.on_log([&](const std::string& line) {
      bar.clear();
      if (!arguments_.quiet) session_.remark(line);
    });
  }
  Result<StepReport> report = writer.end_step();
  bar.clear();
  if (!report.ok()) return report.status();
  outcome_.report = std::move(*report);
  if (outcome_.options.trace) {
    events_ = writer.gather_trace();
    field_paths_ = writer.field_paths();
  }
  TAILRACE_TRY(writer.close());
  if (session_.speaks()) outcome_.report.file_bytes = file_bytes_of(output_path);
  outcome_.total_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Status();
}

/// The outputs of the inputs, one each. @error invalid_argument  several inputs into one file.
Result<std::vector<std::string>> output_paths(const RepackArguments& arguments) {
  std::vector<std::string> outputs;
  const bool into_folder = is_directory(arguments.output);
  if (arguments.inputs.size() > 1 && !into_folder) {
    return Status(Code::invalid_argument,
                  fmt::format("several inputs need an existing folder as --output; {} is none",
                              arguments.output));
  }
  for (const std::string& input : arguments.inputs) {
    const std::filesystem::path folder(arguments.output);
    const std::string path = into_folder
                                 ? (folder / output_name(input, arguments.netcdf.wanted)).string()
                                 : arguments.output;
    if (std::find(outputs.begin(), outputs.end(), path) != outputs.end()) {
      return Status(Code::invalid_argument, fmt::format("two inputs would both become {}", path));
    }
    outputs.push_back(path);
  }
  return outputs;
}

Status apply_options(const RepackArguments& arguments, FileOptions& options, bool& chunk_given) {
  for (const KeyValue& entry : arguments.file_options) {
    chunk_given = chunk_given || entry.first == "chunk";
    TAILRACE_TRY(apply_file_option(entry, options).within("--" + entry.first));
  }
  if (!arguments.why.empty()) {
    TAILRACE_TRY(apply_file_option({"why", arguments.why}, options).within("--why"));
  }
  options.trace = !arguments.trace_path.empty();
  if (options.trace && arguments.inputs.size() > 1) {
    return Status(Code::invalid_argument, "--trace takes one input at a time");
  }
  return Status();
}

/// Print and save what one file came to. Rank 0.
Status report_file(Session& session, const RepackArguments& arguments, const Repack& repack,
                   ReportFile& trace, bool table) {
  if (!session.speaks()) return Status();
  if (table) fmt::print("{}", summary_text(repack.outcome()));
  if (table && repack.outcome().options.why != Why::off) {
    fmt::print("\n{}", why_text(repack.outcome()));
  }
  for (const std::string& remark : repack.outcome().remarks) {
    if (!arguments.quiet) session.remark(remark);
  }
  if (!trace.wanted()) return Status();
  return trace.finish(trace_json(repack.events(), repack.field_paths()));
}

}  // namespace

int run_repack(Session& session, const RepackArguments& arguments) {
  FileOptions options;
  bool chunk_given = false;
  if (const Status status = apply_options(arguments, options, chunk_given); !status.ok()) {
    return session.fail(status);
  }
  search_plugins_in(options.plugin_path);
  const Result<std::vector<std::string>> outputs = output_paths(arguments);
  if (const Status status = session.settle(outputs.status()); !status.ok()) {
    return session.fail(status);
  }
  ReportFile json;
  ReportFile trace;
  Status opened = json.open(arguments.json_path, session.speaks());
  if (opened.ok()) opened = trace.open(arguments.trace_path, session.speaks());
  if (opened = session.settle(opened); !opened.ok()) return session.fail(opened);

  nlohmann::ordered_json document = {{"schema_version", json_schema_version},
                                     {"command", "repack"}};
  document["files"] = nlohmann::ordered_json::array();
  const bool table = !arguments.quiet && !json.to_stdout();
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    Repack repack(session, arguments, options, chunk_given);
    Status status = repack.run(arguments.inputs[i], (*outputs)[i]);
    if (!status.ok()) return session.fail(status);
    status = session.settle(report_file(session, arguments, repack, trace, table));
    if (!status.ok()) return session.fail(status);
    if (json.wanted()) document["files"].push_back(summary_json(repack.outcome()));
  }
  const Status saved = session.settle(json.wanted() ? json.finish(json_text(document)) : Status());
  return saved.ok() ? exit_done : session.fail(saved);
}

}  // namespace tailrace::cli
