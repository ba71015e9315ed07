// The story of a concatenation, one line per stage; see run().
//
// Work is balanced by bytes twice: files are distributed to ranks for reading, and the output's
// chunks, all datasets in one line, for decoding and encoding. Between the two, encoded chunks are
// exchanged in rounds that fit the memory. Rank 0 calls HDF5 when a dataset is complete, and every
// rank while it opens its inputs.
//
// Invariant 1: a dataset is published only when all ranks have processed every place of the line up
// to its end.
// Invariant 2: a rank that fails continues to take part until the ranks agree.
// Invariant 3: intermediate commits are made where a dataset ends, and no dataset has space before
// its round. Thus all values before the committed end are published, and --resume, which cuts off
// the bytes behind that end, leaves no space unused.

#include "concat/concat.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>

#include "concat/concat_inputs.hpp"
#include "concat/concat_line.hpp"
#include "concat/concat_pieces.hpp"
#include "concat/concat_publish.hpp"
#include "concat/concat_targets.hpp"
#include "concat/concat_work.hpp"
#include "concat/concat_write.hpp"
#include "concat/hdf5/concat_output.hpp"
#include "core/comm.hpp"
#include "core/utf8.hpp"
#include "exec/thread_team.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/one_file.hpp"
#include "hdf5/recover.hpp"
#include "output/output.hpp"
#include "output/publish_fields.hpp"
#include "trz/base/printable.hpp"

namespace tailrace {
namespace {

// Shares of a rank's memory. Encoded chunks that arrive are fewer than the raw bytes of the round;
// the rest is for their lists.
constexpr std::uint64_t kInputsShare = 2;     ///< 1/2: chunk lists, and inputs held in memory.
constexpr std::uint64_t kImageShare = 4;      ///< 1/4: inputs held in memory.
constexpr std::uint64_t kRoundShare = 8;      ///< 1/8: raw bytes of a rank's part of a round.
constexpr std::uint64_t kOutgoingShare = 16;  ///< 1/16: encoded chunks in transit to owners.
constexpr std::uint64_t kThreadsShare = 8;    ///< 1/8: chunks being decoded and encoded.
constexpr std::uint64_t kOutgoingMax = 512U << 20;
constexpr std::uint64_t kRoundBytesMax = 256U << 20;

// Commits are made between rounds, so a round should take half the commit interval, as far as its
// speed is known. Raw bytes of a rank's part.
constexpr std::uint64_t kFirstRoundBytes = 4U << 20;
constexpr std::uint64_t kRoundBytesMin = 1U << 20;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Stages of the report, in report order.
enum Stage : std::size_t { opening, exchange, read, decode, encode, write, create, index, close };
constexpr const char* kStageNames[] = {"open",  "exchange", "read",  "decode", "encode",
                                       "write", "create",   "index", "close"};
constexpr std::size_t kNStages = std::size(kStageNames);

class Concatenation {
 public:
  Concatenation(Comm& comm, const ConcatRequest& request)
      : comm_(comm), request_(request), inputs_(comm, request) {}
  ~Concatenation() = default;
  Concatenation(const Concatenation&) = delete;
  Concatenation& operator=(const Concatenation&) = delete;

  Status run();
  ConcatReport report();
  /// Position of the input that made run() fail, the same on every rank; nothing for other
  /// failures.
  std::optional<std::size_t> damaged_input() const { return damaged_input_; }
  void clean_up_after_failure(Status& failure);

 private:
  Status agree_on_request();
  Status check_request() const;
  Status plan_targets();
  Status open_file();
  Status place_contiguous(std::uint64_t end);
  Status do_rounds();
  Status do_round(std::uint64_t end);
  Status commit(std::uint64_t place);
  Status finish();
  void cut_off_unused_bytes();
  std::uint64_t round_end(bool& commit_now);
  std::uint64_t paced_bytes() const;
  Status choose_thread_count();
  void count_memory(std::uint64_t moving_bytes);

  Comm& comm_;
  const ConcatRequest& request_;
  ConcatInputs inputs_;
  ConcatTargets targets_;
  const ConcatLine* line_ = nullptr;
  Output output_;
  std::unique_ptr<PieceSender> sender_;
  std::unique_ptr<ConcatWriteLane> lane_;
  std::unique_ptr<ConcatWork> work_;
  std::unique_ptr<ConcatPublisher> publisher_;
  std::vector<WrittenPlace> written_;  ///< Places written since the last commit.
  std::size_t next_dataset_ = 0;       ///< Index of the first dataset that no round has begun.
  std::uint64_t place_ = 0;            ///< All earlier places are processed.
  std::uint64_t first_place_ = 0;      ///< Resume: places that an earlier run had processed.
  std::uint64_t committed_place_ = 0;  ///< All earlier places are published and committed.
  bool resumes_ = false;               ///< True if an unfinished output exists and is continued.
  bool resumable_ = false;             ///< True if a later run can continue from the last commit.
  bool closing_ = false;  ///< True once the last commit has begun: the file may have changed.
  std::optional<std::size_t> damaged_input_;
  std::uint64_t n_threads_ = 1;
  std::uint64_t task_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_commit_ = start_;
  Clock::time_point rounds_begin_ = start_;
  double seconds_[kNStages] = {};
  ConcatReport report_;
};

Status Concatenation::run() {
  TAILRACE_TRY(agree_on_request());
  TAILRACE_TRY(check_request());
  TAILRACE_TRY(output_.claim(comm_, request_.output));
  if (!output_.remark().empty()) report_.remarks.push_back(output_.remark());
  // Check after taking the lock: a reader of the output would take a dead job's journal for a live
  // one.
  const bool looks = request_.append && comm_.is_root();
  TAILRACE_TRY(comm_.agree(looks ? check_no_journal(output_.path()) : Status()));
  // Only one input is checked, for all ranks: usually all are on the same file system.
  TAILRACE_TRY(check_one_file(comm_, request_.inputs.front()));
  TAILRACE_TRY(inputs_.open(request_.options.memory_bytes / kImageShare));
  TAILRACE_TRY(inputs_.fit_into(request_.options.memory_bytes / kInputsShare));
  TAILRACE_TRY(targets_.read_older_output(comm_, request_, inputs_));
  seconds_[opening] = seconds_since(start_);
  TAILRACE_TRY(plan_targets());
  TAILRACE_TRY(open_file());
  TAILRACE_TRY(do_rounds());
  return finish();
}

/// Check that all ranks make the same request, including the order of the inputs.
Status Concatenation::agree_on_request() {
  const auto word = [](const char* key, bool on) {
    return std::string(key) + (on ? "=on\n" : "=off\n");
  };
  return Output::agree(comm_, request_.output, request_.options, Door::concat,
                       "request " + request_digest(request_, 0) + "\n" +
                           word("append", request_.append) + word("resume", request_.resume) +
                           word("dedup", request_.dedup) +
                           word("on-error=skip", request_.on_error == OnError::skip));
}

Status Concatenation::check_request() const {
  Status checked;
  if (request_.inputs.empty()) {
    checked = Status(Code::invalid_argument, "concat needs at least one input");
  } else if (request_.append && request_.resume) {
    checked = Status(Code::invalid_argument, "append and resume cannot be combined");
  } else if (comm_.is_root()) {
    checked = check_replaceable(request_.output, request_.append || request_.options.replace,
                                "--force replaces it");
    if (request_.append && ::access(request_.output.c_str(), F_OK) != 0) {
      checked = Status(Code::not_found,
                       request_.output + " does not exist; --append needs an existing output");
    }
    for (const std::string& input : request_.inputs) {
      if (same_file(input, request_.output)) {
        checked = Status(Code::invalid_argument, request_.output + " is one of the inputs");
      }
    }
  }
  return agree_with_root(comm_, checked);
}

/// Plan the positions of all ranks' rows, and this rank's part of the work.
Status Concatenation::plan_targets() {
  TAILRACE_TRY(targets_.plan(comm_, request_, inputs_));
  line_ = &targets_.line();
  sender_ = std::make_unique<PieceSender>(*line_, targets_.take_parts(), targets_.forms());
  return comm_.agree(choose_thread_count());  // each rank's memory is its own
}

/// Set the number of threads: each needs memory for a chunk before and after decoding and encoding.
Status Concatenation::choose_thread_count() {
  // Largest stored chunk of any rank's inputs, which has to be decoded.
  std::vector<std::uint64_t> decoded = {sender_->largest_chunk_bytes()};
  comm_.allreduce(std::span(decoded), Reduction::max);
  std::uint64_t largest = 0;
  std::size_t of = 0;
  for (std::size_t d = 0; d < line_->n_datasets(); ++d) {
    if (line_->first_place(d) == line_->first_place(d + 1)) continue;
    if (line_->dataset(d).chunk_bytes() <= largest) continue;
    largest = line_->dataset(d).chunk_bytes();
    of = d;
  }
  task_bytes_ = 3 * largest + decoded[0];
  const std::uint64_t for_threads = request_.options.memory_bytes / kThreadsShare;
  if (task_bytes_ > request_.options.memory_bytes / 2) {
    return Status(Code::invalid_argument,
                  "dataset \"" + targets_[of].like.path + "\": its chunks of up to " +
                      bytes_text(largest) + ", plus input chunks of up to " +
                      bytes_text(decoded[0]) + ", need --memory of at least " +
                      bytes_text(2 * task_bytes_) + ", or smaller chunks by --chunk");
  }
  n_threads_ = std::clamp<std::uint64_t>(for_threads / std::max<std::uint64_t>(task_bytes_, 1), 1,
                                         threads_of_each(request_.options.n_threads, comm_));
  return Status();
}

Status Concatenation::open_file() {
  FileOptions options = request_.options;
  // A complete file gets one commit, which changes it in place and must survive a power loss.
  options.journal = options.journal || request_.append;
  // Copied chunks need the inputs' filters, so no warning about filters is due.
  options.copies_filters = request_.codec == "keep";
  const std::string partial = output_.temporary_path();
  // Rank 0 decides if an output can be resumed.
  Result<bool> leftover = false;
  if (comm_.is_root() && request_.resume) leftover = leftover_can_be_resumed(partial);
  TAILRACE_TRY(agree_with_root(comm_, leftover.status()));
  std::vector<std::uint64_t> resumes = {leftover.ok() && *leftover};
  comm_.allreduce(std::span(resumes), Reduction::max);
  resumes_ = resumes[0] != 0;
  if (request_.append || resumes_) {
    TAILRACE_TRY(resumes_ ? output_.resume(comm_, request_.output, options)
                          : output_.open(comm_, request_.output, options));
  } else {
    const auto path = [](const ConcatTarget& t) -> const std::string& { return t.like.path; };
    options.expected_root_links = n_root_members(targets_.all(), path);
    options.shares_chunks = request_.dedup;
    TAILRACE_TRY(output_.create(comm_, request_.output, options, Output::LeftOver::replaced));
  }
  const std::vector<ForeignRows> foreign = inputs_.gather_foreign_rows();
  ConcatPublisher::Settings settings;
  settings.mode = request_.append ? ConcatPublisher::Mode::append
                  : resumes_      ? ConcatPublisher::Mode::resume
                                  : ConcatPublisher::Mode::create;
  settings.first_input = request_.inputs[inputs_.first_input()];
  settings.request_digest = request_digest(request_, inputs_.input_bytes());
  settings.versions = inputs_.gather_versions();
  settings.memory_bytes = request_.options.memory_bytes / 4;
  publisher_ = std::make_unique<ConcatPublisher>(request_, *line_, targets_.all(),
                                                 targets_.older_rows(), settings);
  std::vector<std::uint64_t> done = {0, 0};
  Status opened;
  if (comm_.is_root()) {
    // HDF5 would reuse the space of a replaced chunk, which a second chunk still refers to.
    const std::string shared = output_.file().reuses_space() ? targets_.shared_chunks() : "";
    opened = shared.empty()
                 ? publisher_->open(output_.file(), foreign)
                 : Status(Code::unsupported,
                          request_.output + ": cannot be appended to, since chunks of " + shared +
                              " share their bytes (--dedup) and the file does not protect shared "
                              "bytes; concatenate all inputs again");
    done = {publisher_->n_published(), output_.file().reuses_space() ? 1U : 0U};
  }
  TAILRACE_TRY(comm_.agree(opened));
  resumable_ = resumes_;
  comm_.allreduce(std::span(done), Reduction::max);
  first_place_ = place_ = committed_place_ = line_->first_place(static_cast<std::size_t>(done[0]));
  if (request_.resume && comm_.is_root()) {
    report_.remarks.push_back(resumes_ ? "resumed after " + counted(done[0], "dataset")
                                       : "nothing to resume; started from the beginning");
  }
  ConcatWriteLane::Settings lane;
  lane.write_buffer_bytes =
      std::min(request_.options.write_buffer_bytes,
               std::max<std::uint64_t>(request_.options.memory_bytes / 16, 64U << 10));
  lane.dense = request_.options.field_defaults.layout == "dense";
  // A later append would change all chunks that share an address.
  lane.dedup = request_.dedup && done[1] == 0;
  if (request_.dedup && !lane.dedup && comm_.is_root()) {
    report_.remarks.push_back("--dedup has no effect: the file was created without it");
  }
  lane_ = std::make_unique<ConcatWriteLane>(output_.storage(), output_.tail(), lane);
  work_ =
      std::make_unique<ConcatWork>(*line_, targets_.all(), *lane_, output_.tail(),
                                   ConcatWork::Settings{n_threads_, request_.options.plugin_path,
                                                        request_.inputs, request_.output});
  return Status();
}

/// Allocate one place for all rows of a contiguous dataset, at the round that begins it.
Status Concatenation::place_contiguous(std::uint64_t end) {
  std::vector<std::size_t> plain;
  for (; next_dataset_ < targets_.size() && line_->first_place(next_dataset_) < end;
       ++next_dataset_) {
    const std::uint64_t first = line_->first_place(next_dataset_);
    const bool begins = first >= place_ && first < line_->first_place(next_dataset_ + 1);
    const bool contiguous =
        targets_[next_dataset_].like.storage.kind == StoredForm::Kind::contiguous;
    if (begins && contiguous) plain.push_back(next_dataset_);
  }
  if (plain.empty()) return Status();
  Bytes addresses(plain.size() * sizeof(std::uint64_t));
  if (comm_.is_root()) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const ConcatTarget& target = targets_[plain[i]];
      const std::uint64_t address =
          output_.tail().claim((target.n_rows * target.like.row_bytes() + 7) / 8 * 8);
      std::memcpy(&addresses[i * sizeof address], &address, sizeof address);
    }
  }
  comm_.broadcast(addresses, 0);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    std::uint64_t& address = targets_[plain[i]].contiguous_address;
    std::memcpy(&address, &addresses[i * sizeof address], sizeof address);
  }
  return Status();
}

/// Raw bytes of all ranks for a round that is short enough for timely commits. By rank 0's clock.
std::uint64_t Concatenation::paced_bytes() const {
  const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
  if (place_ == first_place_) return kFirstRoundBytes * n_ranks;
  const std::uint64_t done = line_->bytes_before(place_) - line_->bytes_before(first_place_);
  const double rate = static_cast<double>(done) / std::max(seconds_since(rounds_begin_), 1e-9);
  const double wanted = std::min(rate * request_.commit_interval_s / 2, 1e18);
  return std::max(kRoundBytesMin * n_ranks, static_cast<std::uint64_t>(wanted));
}

/// End of the next round, for all ranks. Sets `commit_now` if a commit is due before it.
std::uint64_t Concatenation::round_end(bool& commit_now) {
  const std::uint64_t memory = request_.options.memory_bytes;
  const std::uint64_t share = std::min(memory / kRoundShare, kRoundBytesMax);
  const std::uint64_t outgoing = std::min(memory / kOutgoingShare, kOutgoingMax);
  const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
  std::uint64_t bytes = share * n_ranks;
  if (comm_.is_root() && !request_.append) bytes = std::min(bytes, paced_bytes());
  std::uint64_t end = place_ < line_->n_places() ? line_->end_within(place_, bytes) : place_;
  end = sender_->end_within(place_, end, outgoing);
  const bool due = comm_.is_root() && !request_.append &&
                   seconds_since(last_commit_) >= request_.commit_interval_s;
  std::vector<std::uint64_t> agreed = {end, due ? 0U : 1U};
  comm_.allreduce(std::span(agreed), Reduction::min);
  const bool all_due = agreed[1] == 0;
  commit_now = all_due && line_->is_border(place_) && place_ > committed_place_;
  // Delay the commit to the end of the dataset: a --resume would lose the space of its rows that
  // are already written.
  const bool short_round = all_due && !line_->is_border(place_);
  return short_round ? line_->next_border(place_, agreed[0]) : agreed[0];
}

void Concatenation::count_memory(std::uint64_t moving_bytes) {
  peak_bytes_ = std::max(peak_bytes_, inputs_.memory_bytes() + moving_bytes +
                                          n_threads_ * task_bytes_ + lane_->peak_bytes());
}

Status Concatenation::do_round(std::uint64_t end) {
  const ConcatRound round = ConcatRound::deal(*line_, place_, end, comm_.n_ranks());
  auto since = Clock::now();
  Result<Outgoing> collected = sender_->collect(round);
  seconds_[read] += seconds_since(since);
  TAILRACE_TRY(comm_.agree(collected.status()));

  since = Clock::now();
  Arrived arrived;
  std::vector<Message> outgoing;
  std::uint64_t moving_bytes = 0;
  Status worked;
  const auto take = [&](Message& message) {
    moving_bytes += message.payload.size();
    const Status taken = arrived.add(std::move(message), *line_, inputs_.forms());
    if (worked.ok()) worked = taken;
  };
  for (Message& message : collected->messages) {
    if (message.peer == comm_.rank()) {
      take(message);
    } else {
      moving_bytes += message.payload.size();
      outgoing.push_back(std::move(message));
    }
  }
  if (comm_.n_ranks() > 1) {
    for (Message& message : comm_.exchange(std::move(outgoing))) take(message);
  }
  seconds_[exchange] += seconds_since(since);

  if (worked.ok()) worked = work_->run(round, comm_.rank(), arrived, collected->copies, *sender_);
  const Status finished = lane_->finish_round(comm_);
  if (worked.ok()) worked = finished;
  count_memory(moving_bytes + arrived.pieces().size() * 2 * sizeof(Piece));
  for (const WrittenPlace& place : lane_->take_written()) written_.push_back(place);
  if (const Status agreed = comm_.agree(worked); !agreed.ok()) {
    std::vector<std::uint64_t> behind = {static_cast<std::uint64_t>(work_->damaged_input() + 1)};
    comm_.allreduce(std::span(behind), Reduction::max);
    if (behind[0] > 0) damaged_input_ = static_cast<std::size_t>(behind[0] - 1);
    return agreed;
  }
  place_ = end;
  ++report_.n_rounds;
  if (comm_.is_root() && request_.progress) {
    request_.progress(line_->bytes_before(place_), line_->bytes_before(line_->n_places()));
  }
  return Status();
}

Status Concatenation::do_rounds() {
  last_commit_ = rounds_begin_ = Clock::now();
  while (place_ < line_->n_places()) {
    bool commit_now = false;
    const std::uint64_t end = round_end(commit_now);
    if (commit_now) TAILRACE_TRY(commit(place_));
    TAILRACE_TRY(place_contiguous(end));
    TAILRACE_TRY(do_round(end));
  }
  return Status();
}

/// Publish the datasets that end before `place`, durably, in the unfinished output.
Status Concatenation::commit(std::uint64_t place) {
  auto since = Clock::now();
  // Check that some rank has processed every place: published datasets are complete.
  std::vector<std::uint64_t> dealt = {work_->n_places()};
  comm_.allreduce(std::span(dealt), Reduction::sum);
  if (dealt[0] != place - first_place_) {
    return Status(Code::internal, std::to_string(dealt[0]) + " chunks were processed, expected " +
                                      std::to_string(place - first_place_));
  }
  TAILRACE_TRY(comm_.agree(request_.options.sync ? output_.storage().sync() : Status()));
  seconds_[close] += seconds_since(since);
  since = Clock::now();
  const std::vector<Bytes> gathered = comm_.gather(std::as_bytes(std::span(written_)), 0);
  written_.clear();
  publisher_->take(gathered);
  seconds_[index] += seconds_since(since);
  since = Clock::now();
  Status published = publisher_->publish(place);
  seconds_[create] += seconds_since(since);
  since = Clock::now();
  if (published.ok()) published = publisher_->commit_on_the_way(place == line_->n_places());
  TAILRACE_TRY(comm_.agree(published));
  resumable_ = resumable_ || place < line_->n_places();
  seconds_[close] += seconds_since(since);
  committed_place_ = place;
  last_commit_ = Clock::now();
  ++report_.n_commits;
  return Status();
}

Status Concatenation::finish() {
  TAILRACE_TRY(commit(line_->n_places()));
  TAILRACE_TRY(inputs_.check_unchanged());
  const auto since = Clock::now();
  closing_ = true;
  Status closed;
  if (comm_.is_root()) {
    closed = output_.check_still_named();
    if (closed.ok()) {
      const CopiedObjects notes = targets_.notes(inputs_.notes(), request_, inputs_.schema());
      for (std::string& line : inputs_.notes().remarks(targets_.all(), notes)) {
        report_.remarks.push_back(std::move(line));
      }
      for (std::string& line : inputs_.dimensions().remarks()) {
        report_.remarks.push_back(std::move(line));
      }
      for (std::string& line : targets_.remarks()) report_.remarks.push_back(std::move(line));
      if (inputs_.n_user_blocks() > 0) {
        report_.remarks.push_back("the user blocks in front of " +
                                  counted(inputs_.n_user_blocks(), "input") +
                                  " are not in the output");
      }
      if (inputs_.n_with_bytes_behind() > 0) {
        report_.remarks.push_back("the bytes behind the end of the HDF5 file of " +
                                  counted(inputs_.n_with_bytes_behind(), "input") +
                                  " are not in the output");
      }
      Result<std::vector<std::string>> remarks =
          publisher_->finish(notes, inputs_.dimensions().left_out_attributes());
      closed = remarks.status();
      if (remarks.ok()) {
        report_.remarks.insert(report_.remarks.end(), remarks->begin(), remarks->end());
      }
    }
    report_.metadata_bytes = output_.file().metadata_bytes();
    if (closed.ok() && !request_.append) closed = output_.put_in_place();
    if (closed.ok() && request_.append) cut_off_unused_bytes();
  }
  TAILRACE_TRY(comm_.agree(closed));
  output_.committed();
  TAILRACE_TRY(output_.close(false));  // rank 0 has already closed the metadata
  seconds_[close] += seconds_since(since);
  return Status();
}

/// Cut off what the append has written behind the end that the committed superblock states: chunks
/// without filters that HDF5 has moved to their old places. No rank writes any more. Rank 0.
void Concatenation::cut_off_unused_bytes() {
  const Status cut = cut_off_uncommitted(output_.path());
  if (cut.ok()) return;
  report_.remarks.push_back("unused bytes at the end of the output cannot be cut off (harmless): " +
                            cut.message());
}

/// Restore an appended output, and remove a new one unless it can be resumed.
void Concatenation::clean_up_after_failure(Status& failure) {
  lane_.reset();
  publisher_.reset();
  const bool opened = output_.is_open();
  output_.leave();
  comm_.barrier();
  const std::string partial = output_.temporary_path();
  // All ranks must agree on this.
  std::vector<std::uint64_t> stays = {0};
  if (comm_.is_root() && opened) {
    if (request_.append && !closing_) {
      const auto older_bytes = static_cast<off_t>(targets_.older_bytes());
      stays[0] =
          !output_.check_still_named().ok() || ::truncate(output_.path().c_str(), older_bytes) != 0;
    } else if (!request_.append && !resumable_ && !resumes_) {
      output_.remove_temporary();
    }
  }
  comm_.allreduce(std::span(stays), Reduction::max);
  if (request_.append && closing_) {
    // The file's header may or may not refer to the new end.
    failure = failure.with_line("the last commit to " + request_.output +
                                " was interrupted; run tailrace recover to check the file");
  } else if (stays[0] != 0) {
    failure = Status::of_lines(
        failure.code(), failure.message() + printable("; " + request_.output +
                                                      " keeps unused bytes at its end (harmless)"));
  }
  if (!request_.append && resumable_) {
    failure = failure.with_line("the completed datasets are kept in " + partial +
                                "; --resume continues from there");
  }
}

ConcatReport Concatenation::report() {
  report_.n_files = inputs_.n_files();
  report_.input_bytes = inputs_.input_bytes();
  report_.skipped = inputs_.skipped();
  report_.n_uneven = inputs_.find_uneven_rows(report_.remarks);
  if (report_.skipped.size() > request_.inputs.size() / 2) {
    report_.remarks.push_back(
        "most inputs were left out; check the input that defines the schema: " +
        request_.inputs[inputs_.first_input()]);
  }
  if (!targets_.kept_chunks().empty()) {
    report_.remarks.push_back(
        counted(targets_.kept_chunks().size(), "dataset") +
        " with filters that depend on the chunk shape, so the chunk shape is kept (first: \"" +
        targets_[targets_.kept_chunks().front()].like.path +
        "\"); use another --codec to change the chunks");
  }
  for (const ConcatTarget& target : targets_.all()) {
    if (!target.like.appended) continue;
    ++report_.n_datasets;
    if (target.n_rows == 0) ++report_.n_empty;
  }
  for (std::size_t d = 0; d < targets_.size(); ++d) {
    report_.n_rows += inputs_.n_rows()[d];
    report_.raw_bytes += inputs_.n_rows()[d] * targets_[d].like.row_bytes();
  }
  struct stat facts {};
  if (comm_.is_root() && ::stat(request_.output.c_str(), &facts) == 0) {
    report_.output_bytes = static_cast<std::uint64_t>(facts.st_size);
  }
  report_.n_chunks = work_->n_encoded() + work_->n_copied();
  report_.n_copied = work_->n_copied();
  report_.copied_bytes = work_->copied_bytes();
  report_.n_shared = lane_->n_shared();
  reduce_all(comm_, Reduction::sum, report_.n_chunks, report_.n_copied, report_.copied_bytes,
             report_.n_shared, report_.output_bytes, report_.metadata_bytes);
  seconds_[decode] = work_->decoding().seconds();
  seconds_[encode] = work_->encoding().seconds();
  seconds_[read] += work_->reading().seconds();
  seconds_[write] = lane_->busy_s();
  std::vector<double> total(std::begin(seconds_), std::end(seconds_));
  total.push_back(seconds_since(start_));
  std::vector<double> largest = total;
  comm_.allreduce(std::span(total), Reduction::sum);
  comm_.allreduce(std::span(largest), Reduction::max);
  for (std::size_t i = 0; i < kNStages; ++i) {
    report_.stages.emplace_back(kStageNames[i], StageTime{total[i] / comm_.n_ranks(), largest[i]});
  }
  report_.total_s = largest[kNStages];
  report_.peak_bytes = peak_bytes_;
  reduce_all(comm_, Reduction::max, report_.peak_bytes);
  return std::move(report_);
}

}  // namespace

// A damaged input is found when its rows already have places in the line. They cannot be removed,
// so the concatenation restarts without the input.
Result<ConcatReport> concatenate(Comm& comm, const ConcatRequest& request) {
  ConcatRequest left = request;
  std::vector<std::string> skipped;
  while (true) {
    Concatenation concatenation(comm, left);
    Status status;
    try {
      status = concatenation.run();
    } catch (const std::bad_alloc&) {
      const std::string what =
          "\"" + request.output + "\": not enough memory for the concatenation";
      // Other ranks block in a call that this rank will not reach, so the job must end.
      if (comm.n_ranks() > 1) throw std::runtime_error(what);
      status = Status(Code::out_of_memory, what);
    }
    if (status.ok()) {
      ConcatReport report = concatenation.report();
      report.skipped.insert(report.skipped.begin(), skipped.begin(), skipped.end());
      return report;
    }
    const std::optional<std::size_t> damaged = concatenation.damaged_input();
    const std::string why = status.message();
    concatenation.clean_up_after_failure(status);
    const bool skips = request.on_error == OnError::skip && left.inputs.size() > 1;
    if (!damaged || !skips) return status;
    const std::string& path = left.inputs[*damaged];
    const std::string shown = printable(path);
    skipped.push_back(why.find(shown) != std::string::npos ? why : shown + ": is damaged");
    left.inputs.erase(left.inputs.begin() + static_cast<std::ptrdiff_t>(*damaged));
    left.resume = false;  // The committed part contains the input's rows.
  }
}

}  // namespace tailrace
