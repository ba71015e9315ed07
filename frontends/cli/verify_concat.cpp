// tailrace verify --concat: did every element of every input arrive in the output, and nothing
// else?
//
// The inputs are dealt to the ranks in contiguous runs of about equal bytes. Each rank first reads
// what rows its inputs have; a prefix sum says where in the output they must begin; then it
// compares them, some files at a time. Only counts and the first findings travel between ranks.

#include "verify_concat.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include "concat/check/concat_check.hpp"
#include "hdf5/filter_plugins.hpp"
#include "core/byte_stream.hpp"
#include "hdf5_filter/own_filters.hpp"
#include "input_list.hpp"
#include "progress_bar.hpp"
#include "summary.hpp"
#include "text_table.hpp"

namespace tailrace::cli {
namespace {

constexpr std::uint64_t default_memory_bytes = 256ULL << 20;
/// What an open input takes in HDF5: caches of metadata and of chunks.
constexpr std::uint64_t open_file_bytes = 4ULL << 20;

struct ConcatVerdict {
  std::vector<std::string> inputs;
  std::vector<std::string> keys;
  std::uint64_t n_datasets = 0;
  std::uint64_t n_empty = 0;
  std::uint64_t n_rows = 0;
  std::uint64_t n_bytes = 0;
  ConcatFindings findings;  ///< Rank 0: those of all ranks, in the order of the inputs.
  double total_s = 0;
};

/// [first, last) of the inputs of this rank.
struct Run {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Deal inputs by bytes: an input belongs to the rank in whose share of all bytes its middle lies.
Run own_inputs(const std::vector<std::string>& inputs, const Comm& comm) {
  std::vector<double> middles;
  double total = 0;
  for (const std::string& input : inputs) {
    const double bytes = static_cast<double>(file_bytes_of(input)) + 1;
    middles.push_back(total + bytes / 2);
    total += bytes;
  }
  const auto first_of = [&](int rank) {
    const double border = total * rank / comm.n_ranks();
    const auto at = std::lower_bound(middles.begin(), middles.end(), border);
    return static_cast<std::size_t>(at - middles.begin());
  };
  return {first_of(comm.rank()), first_of(comm.rank() + 1)};
}

/// The findings of all ranks at rank 0, in rank order.
ConcatFindings gather_findings(Comm& comm, const ConcatFindings& mine) {
  ByteWriter writer;
  writer.add(mine.n_all);
  for (const std::string& line : mine.lines) writer.add_text(line);
  const Bytes packed = writer.take();
  ConcatFindings all;
  for (const Bytes& bytes : comm.gather(packed, 0)) {
    ByteReader reader(bytes);
    const auto n_all = reader.take<std::uint64_t>();
    std::uint64_t n_lines = 0;
    for (; !reader.at_end(); ++n_lines) all.add(reader.take_text());
    all.n_all += n_all - n_lines;
  }
  return all;
}

class ConcatVerifier {
 public:
  ConcatVerifier(Session& session, const VerifyArguments& arguments, ConcatVerdict& verdict)
      : session_(session), comm_(session.comm), arguments_(arguments), verdict_(verdict) {}

  /// The same Status on every rank.
  Status run() {
    TAILRACE_TRY(read_arguments());
    Result<std::unique_ptr<ConcatCheck>> check =
        ConcatCheck::open(arguments_.concat_output, verdict_.inputs.front(), memory_bytes_);
    TAILRACE_TRY(comm_.agree(check.status()));
    check_ = std::move(*check);
    verdict_.keys = check_->keys();
    own_ = own_inputs(verdict_.inputs, comm_);
    ConcatFindings first;
    TAILRACE_TRY(comm_.agree(comm_.is_root() ? compare_objects(first) : Status()));
    TAILRACE_TRY(comm_.agree(survey()));
    find_places();
    check_totals(first);
    TAILRACE_TRY(comm_.agree(compare()));
    // What concerns the whole file comes before what concerns an input.
    for (const std::string& line : findings_.lines) first.add(line);
    first.n_all += findings_.n_all - findings_.lines.size();
    verdict_.findings = gather_findings(comm_, first);
    return Status();
  }

 private:
  Status read_arguments() {
    memory_bytes_ = default_memory_bytes;
    if (!arguments_.memory.empty()) {
      const Result<std::uint64_t> bytes = parse_bytes(arguments_.memory);
      if (!bytes.ok()) return bytes.status().within("--memory");
      memory_bytes_ = *bytes;
    }
    std::string_view names = arguments_.key_names;
    while (!names.empty()) {
      const std::size_t comma = names.find(',');
      names_.emplace_back(names.substr(0, comma));
      names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
      if (names_.back().empty()) {
        return Status(Code::invalid_argument,
                      "--key " + arguments_.key_names + ": expected names separated by commas");
      }
    }
    std::vector<std::string> files = arguments_.more_files;
    if (!arguments_.compressed.empty()) files.insert(files.begin(), arguments_.compressed);
    if (!arguments_.original.empty()) files.insert(files.begin(), arguments_.original);
    Result<std::vector<std::string>> inputs = read_inputs(session_, files, arguments_.list_path);
    if (!inputs.ok()) return inputs.status();
    verdict_.inputs = std::move(*inputs);
    for (const hdf5::FilterClass* filter_class : hdf5::own_filter_classes()) {
      TAILRACE_TRY(session_.settle(register_filter_class(filter_class)));
    }
    return Status();
  }

  Status compare_objects(ConcatFindings& findings) {
    if (!names_.empty() && check_->keys().empty()) {
      findings.add(arguments_.concat_output + ": holds no key datasets (" + names_.back() +
                   ".seq)");
    }
    return check_->compare_objects(findings);
  }

  Status survey() {
    rows_.resize(own_.last - own_.first);
    for (std::size_t i = own_.first; i < own_.last; ++i) {
      Result<std::vector<InputRows>> rows = check_->survey(verdict_.inputs[i], findings_);
      if (!rows.ok()) return rows.status();
      rows_[i - own_.first] = std::move(*rows);
    }
    return Status();
  }

  /// Where this rank's rows begin in the output, and how many there should be.
  void find_places() {
    std::vector<std::uint64_t> counts(check_->datasets().size(), 0);
    for (const std::vector<InputRows>& of_file : rows_) {
      for (const InputRows& part : of_file) {
        counts[part.dataset_index] += part.n_rows;
        n_bytes_ += part.n_rows * check_->datasets()[part.dataset_index].row_bytes;
      }
    }
    const std::unique_ptr<PendingSum> sum = comm_.start_sum(std::move(counts));
    while (!sum->complete()) std::this_thread::yield();
    first_rows_ = sum->before();
    totals_ = sum->total();
  }

  void check_totals(ConcatFindings& findings) {
    const std::vector<ConcatCheck::Dataset>& datasets = check_->datasets();
    verdict_.n_datasets = datasets.size();
    for (std::size_t d = 0; d < datasets.size(); ++d) {
      verdict_.n_rows += totals_[d];
      verdict_.n_bytes += totals_[d] * datasets[d].row_bytes;
      verdict_.n_empty += datasets[d].appended && totals_[d] == 0 ? 1 : 0;
      if (!comm_.is_root() || !datasets[d].appended || datasets[d].n_rows == totals_[d]) continue;
      findings.add(fmt::format("{}: dataset \"{}\" has {} rows, the inputs have {}",
                               arguments_.concat_output, datasets[d].path, datasets[d].n_rows,
                               totals_[d]));
    }
  }

  Status compare() {
    ProgressBar bar("verify", session_.speaks() && !arguments_.quiet);
    std::uint64_t n_done = 0;
    const auto progress = [&](std::uint64_t n_bytes) {
      n_done += n_bytes;
      bar.update(n_done, n_bytes_);
    };
    const std::size_t n_at_once =
        std::clamp<std::size_t>(memory_bytes_ / 4 / open_file_bytes, 1, ConcatCheck::files_at_once);
    const std::span<const std::string> inputs(verdict_.inputs);
    for (std::size_t i = own_.first; i < own_.last;) {
      const std::size_t n = std::min(n_at_once, own_.last - i);
      const std::span<const std::vector<InputRows>> rows =
          std::span(rows_).subspan(i - own_.first, n);
      std::vector<std::uint64_t> key_rows = first_rows_;
      TAILRACE_TRY(
          check_->compare_rows(inputs.subspan(i, n), rows, first_rows_, progress, findings_));
      for (std::size_t k = 0; k < n && !check_->keys().empty(); ++k) {
        check_->check_keys(inputs[i + k], rows[k], key_rows, names_, findings_);
        for (const InputRows& part : rows[k]) key_rows[part.dataset_index] += part.n_rows;
      }
      i += n;
    }
    return Status();
  }

  Session& session_;
  Comm& comm_;
  const VerifyArguments& arguments_;
  ConcatVerdict& verdict_;
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::string> names_;
  std::unique_ptr<ConcatCheck> check_;
  Run own_;
  std::vector<std::vector<InputRows>> rows_;  ///< Of each own input.
  std::vector<std::uint64_t> first_rows_;
  std::vector<std::uint64_t> totals_;
  std::uint64_t n_bytes_ = 0;  ///< This rank's.
  ConcatFindings findings_;
};

std::string verdict_text(const VerifyArguments& arguments, const ConcatVerdict& verdict,
                         int n_ranks) {
  TextTable table({{"inputs", true},
                   {"datasets", true},
                   {"empty", true},
                   {"keys", true},
                   {"rows", true},
                   {"bytes", true},
                   {"ranks", true},
                   {"time", true},
                   {"verdict"}});
  table.add_row({fmt::format("{}", verdict.inputs.size()), fmt::format("{}", verdict.n_datasets),
                 fmt::format("{}", verdict.n_empty),
                 verdict.keys.empty() ? "" : fmt::format("{}", verdict.keys.size()),
                 fmt::format("{}", verdict.n_rows), size_text(verdict.n_bytes),
                 fmt::format("{}", n_ranks), seconds_text(verdict.total_s),
                 verdict.findings.n_all == 0 ? "ok" : "FAILED"});
  std::string text = table.text();
  for (const std::string& line : verdict.findings.lines) text += line + "\n";
  const std::uint64_t n_more = verdict.findings.n_all - verdict.findings.lines.size();
  if (n_more > 0) text += fmt::format("and {} more\n", n_more);
  for (const std::string& key : verdict.keys) text += fmt::format("key {}\n", key);
  return text + (verdict.findings.n_all == 0
                     ? fmt::format("{} is the concatenation of {}\n", arguments.concat_output,
                                   counted(verdict.inputs.size(), "input"))
                     : fmt::format("{} differs from the concatenation of {}: {}\n",
                                   arguments.concat_output, counted(verdict.inputs.size(), "input"),
                                   counted(verdict.findings.n_all, "difference")));
}

nlohmann::ordered_json verdict_json(const VerifyArguments& arguments, const ConcatVerdict& verdict,
                                    int n_ranks) {
  nlohmann::ordered_json document;
  document["schema_version"] = json_schema_version;
  document["output"] = arguments.concat_output;
  document["n_files"] = verdict.inputs.size();
  document["n_ranks"] = n_ranks;
  document["n_datasets"] = verdict.n_datasets;
  document["n_empty"] = verdict.n_empty;
  document["n_rows"] = verdict.n_rows;
  document["raw_bytes"] = verdict.n_bytes;
  document["keys"] = verdict.keys;
  document["n_differences"] = verdict.findings.n_all;
  document["differences"] = verdict.findings.lines;
  document["total_s"] = verdict.total_s;
  document["ok"] = verdict.findings.n_all == 0;
  return document;
}

}  // namespace

int run_verify_concat(Session& session, const VerifyArguments& arguments) {
  search_plugins_in(arguments.plugin_path);
  ReportFile json;
  const Status opened = session.settle(json.open(arguments.json_path, session.speaks()));
  if (!opened.ok()) return session.fail(opened);
  ConcatVerdict verdict;
  const auto start = std::chrono::steady_clock::now();
  const Status status = ConcatVerifier(session, arguments, verdict).run();
  if (!status.ok()) return session.fail(status);
  verdict.total_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  // Only rank 0 holds all findings; its verdict is everybody's exit code.
  Status saved;
  if (session.speaks()) {
    const int n_ranks = session.comm.n_ranks();
    if (!arguments.quiet && !json.to_stdout()) {
      fmt::print("{}", verdict_text(arguments, verdict, n_ranks));
    }
    if (json.wanted()) saved = json.finish(json_text(verdict_json(arguments, verdict, n_ranks)));
  }
  saved = session.settle(saved);
  if (!saved.ok()) return session.fail(saved);
  session.comm.allreduce(std::span<std::uint64_t>(&verdict.findings.n_all, 1), Reduction::max);
  return verdict.findings.n_all == 0 ? exit_done : exit_check_failed;
}

}  // namespace tailrace::cli
