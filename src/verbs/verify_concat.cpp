// Compares a concatenation with its inputs.
//
// The inputs are dealt to the ranks in contiguous runs of about equal bytes. Each rank first reads
// the numbers of rows in its inputs. A prefix sum then yields where those rows must start in the
// output. Finally the rank compares them, a few files at a time. Ranks exchange only counts and the
// first findings.

#include "verbs/verify_concat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/byte_stream.hpp"
#include "core/options.hpp"
#include "core/utf8.hpp"

namespace tailrace::verbs {
namespace {

constexpr std::uint64_t kDefaultMemoryBytes = 256ULL << 20;
/// Memory of an open input in HDF5: caches of metadata and of chunks.
constexpr std::uint64_t kOpenFileBytes = 4ULL << 20;

/// Range [first, last) of this rank's inputs.
struct Run {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Deal inputs by bytes: an input belongs to the rank whose share of all bytes contains its middle.
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

Bytes packed(const ConcatFindings& findings) {
  ByteWriter writer;
  writer.add(findings.n_all);
  for (const std::string& line : findings.lines) writer.add_text(line);
  return writer.take();
}

/// Append packed findings to `all`.
void add_packed(const Bytes& bytes, ConcatFindings& all) {
  ByteReader reader(bytes);
  const auto n_all = reader.take<std::uint64_t>();
  std::uint64_t n_lines = 0;
  for (; !reader.at_end(); ++n_lines) all.add(reader.take_text());
  all.n_all += n_all - n_lines;
}

class ConcatVerifier {
 public:
  ConcatVerifier(const VerbRanks& ranks, const VerifyConcatRequest& request,
                 VerifyConcatReport& report)
      : ranks_(ranks), comm_(ranks.comm), request_(request), report_(report) {}

  /// Execute the comparison. The same Status on every rank.
  Status run() {
    TAILRACE_TRY(read_request());
    ConcatCheck::Settings settings{memory_bytes_, request_.follow_external,
                                   request_.on_different != "error"};
    if (!request_.tile.empty()) settings.tile_dimensions = split_at_commas(request_.tile);
    TAILRACE_TAKE(
        check_, comm_.agree(ConcatCheck::open(request_.output, report_.inputs.front(), settings)));
    report_.keys = check_->keys();
    own_ = own_inputs(report_.inputs, comm_);
    ConcatFindings first;
    TAILRACE_TRY(comm_.agree(comm_.is_root() ? compare_objects(first) : Status()));
    if (check_->tile_axes().empty()) {
      TAILRACE_TRY(comm_.agree(survey()));
      find_places();
      check_totals(first);
      TAILRACE_TRY(comm_.agree(compare()));
    } else {
      TAILRACE_TRY(compare_tiles());
    }
    check_->merge_differences(comm_);
    if (comm_.is_root()) report_.remarks = check_->remarks(report_.inputs);
    // Findings about the complete file come before findings about an input.
    for (const std::string& line : findings_.lines) first.add(line);
    first.n_all += findings_.n_all - findings_.lines.size();
    report_.findings = share_findings(comm_, first);
    return Status();
  }

 private:
  Status read_request() {
    memory_bytes_ = kDefaultMemoryBytes;
    if (!request_.memory.empty()) {
      TAILRACE_TAKE(memory_bytes_, parse_bytes(request_.memory).within("--memory"));
    }
    if (request_.on_different != "error" && request_.on_different != "keep-first") {
      return Status(Code::invalid_argument,
                    "--on-different " + request_.on_different + ": expected error or keep-first");
    }
    names_ = split_at_commas(request_.key_names);
    if (std::find(names_.begin(), names_.end(), "") != names_.end()) {
      return Status(Code::invalid_argument,
                    "--key " + request_.key_names + ": expected names separated by commas");
    }
    TAILRACE_TAKE(report_.inputs, read_inputs(comm_, request_.files, request_.list_path));
    return Status();
  }

  Status compare_objects(ConcatFindings& findings) {
    if (!names_.empty() && check_->keys().empty()) {
      findings.add(request_.output + ": has no key datasets (" + names_.back() + ".seq)");
    }
    return check_->compare_objects(findings);
  }

  /// Compare inputs that are tiles of a domain. All ranks first need the positions of all tiles.
  Status compare_tiles() {
    report_.n_datasets = check_->datasets().size();
    ByteWriter mine;
    Status found;
    for (std::size_t i = own_.first; i < own_.last && found.ok(); ++i) {
      const Result<std::vector<TileFacts>> facts = check_->tile_facts(report_.inputs[i], i);
      found = facts.status();
      for (std::size_t a = 0; found.ok() && a < facts->size(); ++a) mine.add((*facts)[a]);
    }
    TAILRACE_TRY(comm_.agree(found));
    Bytes all;
    for (const Bytes& bytes : comm_.gather(mine.bytes(), 0)) {
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    comm_.broadcast(all, 0);
    std::vector<std::vector<TileFacts>> facts(check_->tile_axes().size());
    for (ByteReader reader(all); !reader.at_end();) {
      for (std::vector<TileFacts>& of_axis : facts) of_axis.push_back(reader.take<TileFacts>());
    }
    TAILRACE_TRY(check_->lay_out_tiles(facts, report_.inputs));
    Status compared;
    for (std::size_t i = own_.first; i < own_.last && compared.ok(); ++i) {
      compared = check_->compare_tile(report_.inputs[i], i, findings_);
      ranks_.show(i + 1 - own_.first, own_.last - own_.first);
    }
    if (compared.ok() && comm_.is_root()) compared = check_->compare_missing_tiles(findings_);
    return comm_.agree(compared);
  }

  Status survey() {
    rows_.resize(own_.last - own_.first);
    for (std::size_t i = own_.first; i < own_.last; ++i) {
      TAILRACE_TAKE(rows_[i - own_.first], check_->survey(report_.inputs[i], i, findings_));
    }
    return Status();
  }

  /// Compute where this rank's rows start in the output, and the total numbers of rows.
  void find_places() {
    std::vector<std::uint64_t> counts(check_->datasets().size(), 0);
    for (const std::vector<InputRows>& of_file : rows_) {
      for (const InputRows& part : of_file) {
        counts[part.dataset_index] += part.n_rows;
        n_bytes_ += part.n_rows * check_->datasets()[part.dataset_index].row_bytes;
      }
    }
    const std::unique_ptr<PendingSum> sum = comm_.start_sum(std::move(counts));
    sum->wait();
    first_rows_ = sum->before();
    totals_ = sum->total();
  }

  void check_totals(ConcatFindings& findings) {
    const std::vector<ConcatCheck::Dataset>& datasets = check_->datasets();
    report_.n_datasets = datasets.size();
    for (std::size_t d = 0; d < datasets.size(); ++d) {
      report_.n_rows += totals_[d];
      report_.raw_bytes += totals_[d] * datasets[d].row_bytes;
      report_.n_empty += datasets[d].appended && totals_[d] == 0 ? 1 : 0;
      if (!comm_.is_root() || !datasets[d].appended || datasets[d].n_rows == totals_[d]) continue;
      findings.add(fmt::format("{}: dataset \"{}\" has {}, the inputs have {}", request_.output,
                               datasets[d].path, counted(datasets[d].n_rows, "row"), totals_[d]));
    }
  }

  Status compare() {
    std::uint64_t n_done = 0;
    const auto progress = [&](std::uint64_t n_bytes) {
      n_done += n_bytes;
      ranks_.show(n_done, n_bytes_);
    };
    const std::size_t n_at_once =
        std::clamp<std::size_t>(memory_bytes_ / 4 / kOpenFileBytes, 1, ConcatCheck::kFilesAtOnce);
    const std::span<const std::string> inputs(report_.inputs);
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

  const VerbRanks& ranks_;
  Comm& comm_;
  const VerifyConcatRequest& request_;
  VerifyConcatReport& report_;
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::string> names_;
  std::unique_ptr<ConcatCheck> check_;
  Run own_;
  std::vector<std::vector<InputRows>> rows_;  ///< Indexed by this rank's inputs.
  std::vector<std::uint64_t> first_rows_;
  std::vector<std::uint64_t> totals_;
  std::uint64_t n_bytes_ = 0;  ///< Bytes of this rank's rows.
  ConcatFindings findings_;
};

}  // namespace

ConcatFindings share_findings(Comm& comm, const ConcatFindings& mine) {
  ConcatFindings at_root;
  for (const Bytes& bytes : comm.gather(packed(mine), 0)) add_packed(bytes, at_root);
  Bytes bytes = packed(at_root);
  comm.broadcast(bytes, 0);
  ConcatFindings all;
  add_packed(bytes, all);
  return all;
}

Result<VerifyConcatReport> verify_concat(const VerbRanks& ranks,
                                         const VerifyConcatRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  VerifyConcatReport report;
  report.output = request.output;
  report.n_ranks = ranks.comm.n_ranks();
  TAILRACE_TRY(ConcatVerifier(ranks, request, report).run());
  report.total_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tailrace::verbs
