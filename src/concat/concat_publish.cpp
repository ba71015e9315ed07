// Assigning entries to their datasets, and recording the progress in the file.

#include "concat/concat_publish.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "concat/hdf5/concat_output.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/recover.hpp"
#include "output/output.hpp"

namespace tailrace {
namespace {

/// FNV-1a hash, only to distinguish requests.
std::uint64_t hash_text(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Limit of input versions in the unfinished output: HDF5 stores attributes of up to 64 KiB in an
/// object's header.
constexpr std::size_t kKeptVersionsMax = 4096;

/// Number of inputs that share one version.
std::size_t per_version(std::size_t n_inputs) {
  return std::max<std::size_t>((n_inputs + kKeptVersionsMax - 1) / kKeptVersionsMax, 1);
}

std::vector<std::uint64_t> folded(std::span<const std::uint64_t> versions) {
  std::vector<std::uint64_t> folded;
  const std::size_t n = per_version(versions.size());
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (i % n == 0) folded.push_back(0);
    folded.back() = folded.back() * 0x100000001b3U + versions[i];
  }
  return folded;
}

}  // namespace

std::string request_digest(const ConcatRequest& request, std::uint64_t input_bytes) {
  std::uint64_t names = hash_text("");
  for (const std::string& input : request.inputs) names = hash_text(input + "\n", names);
  std::string text = std::to_string(request.inputs.size()) + " inputs of " +
                     std::to_string(input_bytes) + " bytes, names " + std::to_string(names) +
                     "; chunk " + std::to_string(request.chunk_rows) + "/" +
                     std::to_string(request.chunk_bytes) + ", codec " + request.codec;
  for (const KeyValue& setting : request.codec_settings) {
    text += "," + setting.first + "=" + setting.second;
  }
  text += ", level " + (request.level ? std::to_string(*request.level) : std::string("kept")) +
          ", plain below " + std::to_string(request.plain_below_bytes) +
          (request.dedup ? ", dedup" : "") +
          (request.on_different == OnDifferent::keep_first ? ", first of different" : "") +
          (request.allow_missing_tiles ? ", missing tiles" : "") +
          (request.tile_dimensions.empty() ? "" : ", tiles");
  for (const std::string& name : request.tile_dimensions) text += " " + name;
  text += ", keys";
  for (const std::string& name : request.key_names) text += " " + name;
  return text;
}

Result<bool> leftover_can_be_resumed(const std::string& partial) {
  if (::access(partial.c_str(), F_OK) != 0) return false;
  if (::access(journal_path_of(partial).c_str(), F_OK) == 0) {
    TAILRACE_TRY(inspect_and_recover(partial, true).status());
  }
  if (!records_progress(partial)) return false;
  TAILRACE_TRY(cut_off_uncommitted(partial));
  return true;
}

ConcatPublisher::ConcatPublisher(const ConcatRequest& request, const ConcatLine& line,
                                 std::span<const ConcatTarget> targets,
                                 std::span<const std::uint64_t> older_rows, Settings settings)
    : request_(request),
      line_(line),
      targets_(targets),
      older_rows_(older_rows),
      settings_(std::move(settings)) {}

/// Check that an unfinished output belongs to this request, and that its inputs are unchanged.
Status ConcatPublisher::check_progress(const std::optional<ConcatProgress>& progress) const {
  const std::string left = "--resume: " + partial_path_of(request_.output);
  const std::string anew = "; run without --resume to start again";
  const std::vector<std::uint64_t> versions = folded(settings_.versions);
  if (!progress || progress->request != settings_.request_digest ||
      progress->versions.size() != versions.size()) {
    return Status(Code::invalid_argument,
                  left + " belongs to another request (" +
                      (progress ? progress->request : std::string("not a concatenation")) +
                      "), this request is (" + settings_.request_digest + ")" + anew);
  }
  const auto [changed, was] =
      std::mismatch(versions.begin(), versions.end(), progress->versions.begin());
  if (changed == versions.end()) return Status();
  const std::size_t n = per_version(request_.inputs.size());
  const std::size_t first = n * static_cast<std::size_t>(changed - versions.begin());
  const std::size_t last = std::min(first + n, request_.inputs.size()) - 1;
  return Status(Code::invalid_argument,
                left +
                    " was started from inputs that have changed since: " + request_.inputs[first] +
                    (last > first ? " or an input up to " + request_.inputs[last] : "") + anew);
}

Status ConcatPublisher::open(Hdf5File& file, std::vector<ForeignRows> foreign) {
  file_ = &file;
  foreign_ = std::move(foreign);
  if (settings_.mode == Mode::resume) {
    TAILRACE_TAKE(const std::optional<ConcatProgress> progress, read_progress(file));
    TAILRACE_TRY(check_progress(progress));
    n_published_ = static_cast<std::size_t>(progress->n_datasets);
  }
  TAILRACE_TAKE(output_, settings_.mode == Mode::append ? ConcatOutput::append(file)
                         : settings_.mode == Mode::resume
                             ? ConcatOutput::resume(file, settings_.first_input)
                             : ConcatOutput::create(file, settings_.first_input));
  return Status();
}

void ConcatPublisher::take(std::span<const Bytes> gathered) {
  if (output_ == nullptr) return;
  for (const Bytes& bytes : gathered) {
    const std::size_t begin = entries_.size();
    entries_.resize(begin + bytes.size() / sizeof(WrittenPlace));
    if (!bytes.empty()) std::memcpy(&entries_[begin], bytes.data(), bytes.size());
  }
  std::ranges::sort(entries_, {}, &WrittenPlace::place);
}

Status ConcatPublisher::publish_dataset(std::size_t dataset,
                                        std::span<const WrittenPlace> entries) {
  const ConcatTarget& target = targets_[dataset];
  const std::uint64_t n_new = target.n_rows - older_rows_[dataset];
  if (settings_.mode == Mode::append && n_new == 0) return Status();
  if (!target.like.appended) return output_->copy_whole(target.like);
  if (!target.like.by_value) {
    std::vector<RowSource> sources;
    // Sorted by dataset, since there may be as many as inputs times datasets.
    auto rows = std::ranges::lower_bound(foreign_, dataset, {}, &ForeignRows::dataset);
    for (; rows != foreign_.end() && rows->dataset == dataset; ++rows) {
      sources.push_back({request_.inputs[rows->source], rows->n_rows});
    }
    return output_->copy_rows(target, sources, older_rows_[dataset], settings_.memory_bytes);
  }
  std::vector<Hdf5File::ChunkRecord> records;
  records.reserve(entries.size());
  for (const WrittenPlace& entry : entries) {
    records.push_back({line_.chunk_at(entry.place).chunk_index,
                       {entry.address, entry.encoded_bytes},
                       static_cast<std::uint32_t>(entry.filter_mask)});
  }
  return output_->place(target, records);
}

Status ConcatPublisher::publish(std::uint64_t place) {
  if (output_ == nullptr) return Status();
  std::size_t n_used = 0;
  while (n_published_ < targets_.size() && line_.first_place(n_published_ + 1) <= place) {
    const std::uint64_t end = line_.first_place(n_published_ + 1);
    std::size_t n = n_used;
    while (n < entries_.size() && entries_[n].place < end) ++n;
    TAILRACE_TRY(publish_dataset(n_published_, std::span(entries_).subspan(n_used, n - n_used)));
    n_used = n;
    ++n_published_;
  }
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(n_used));
  return Status();
}

Status ConcatPublisher::commit_on_the_way(bool complete) {
  // Commit the last datasets, too, while the file is marked as unfinished, if it is. A kill during
  // the commit that removes the mark must not lose any of them.
  records_progress_ = records_progress_ || settings_.mode == Mode::resume || !complete;
  if (output_ == nullptr || !records_progress_) return Status();
  TAILRACE_TRY(
      write_progress(*file_, {settings_.request_digest, n_published_, folded(settings_.versions)}));
  return file_->commit();
}

Result<std::vector<std::string>> ConcatPublisher::finish(
    const CopiedObjects& notes, std::span<const ObjectAttribute> left_out) {
  Result<std::vector<std::string>> remarks = output_->finish(notes, left_out);
  if (!remarks.ok()) return remarks;
  TAILRACE_TRY(remove_progress(*file_));
  output_.reset();
  TAILRACE_TRY(file_->close());
  return remarks;
}

}  // namespace tailrace
