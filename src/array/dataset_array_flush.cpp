// The flushes of a DatasetArray: the order of puts, and a flush's changes to rank 0's file.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "array/dataset_array.hpp"
#include "array/staged_ranges.hpp"
#include "codec/verify.hpp"
#include "core/byte_stream.hpp"
#include "field/box_codec.hpp"
#include "field/covered_values.hpp"
#include "field/range_evidence.hpp"
#include "hdf5/live_datasets.hpp"
#include "output/publish_fields.hpp"

namespace tailrace {

namespace {

/// An epoch consists of two numbers. The upper bits count collective calls since the last flush.
/// The lower bits are a time in units of 256 ns, which lasts 13 days. Neither overflows in a long
/// job. After half of the calls, settle() flushes everything. Each call at which ranks meet
/// restarts the time for later puts, at a quarter of its range, for nodes whose clocks are behind.
constexpr unsigned kTimeBits = 42;
constexpr std::uint64_t kMostTime = (std::uint64_t{1} << kTimeBits) - 1;
constexpr std::uint64_t most_calls = (std::uint64_t{1} << (64 - kTimeBits)) - 1;

/// Codec whose header was written before its bound was known. Readers decode with the chunk and the
/// header's shape only (trz/client_data.hpp).
class LateCodec final : public CodecOver {
 public:
  LateCodec(std::shared_ptr<const Codec> codec, std::vector<FilterSpec> header)
      : CodecOver(std::move(codec)), header_(std::move(header)) {}
  const std::vector<FilterSpec>& filters() const override { return header_; }

 private:
  std::vector<FilterSpec> header_;
};

}  // namespace

// --- the order of puts

/// Time by a clock that the ranks share: that of their node, or the time of day. The nodes of a
/// cluster synchronize the latter to within about a millisecond.
std::uint64_t DatasetArray::time_now() const {
  const std::chrono::nanoseconds now =
      comm_->place().empty()
          ? std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch())
          : std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch());
  return static_cast<std::uint64_t>(now / std::chrono::nanoseconds(256));
}

/// Restart the time of epochs. @param latest  latest clock of all ranks at their meeting.
void DatasetArray::begin_time(std::uint64_t latest) {
  constexpr std::uint64_t kBefore = kMostTime / 4;
  time_base_ = latest > kBefore ? latest - kBefore : 0;
}

void DatasetArray::add_to_meeting(RankNumbers& along) {
  meeting_ = {memory_.over_cap() ? 1U : 0U, time_now(), epoch_ - flushed_epoch_};
  along.add(Reduction::max, meeting_.short_of_memory, meeting_.latest, meeting_.most_calls);
}

/// Restart the order of puts after a meeting of all ranks.
void DatasetArray::leave_meeting() {
  begin_time(meeting_.latest);
  calls_since_flush_ = meeting_.most_calls;
}

/// Agree on the datasets that have staged values on any rank. Collective: one allreduce of 16 bytes
/// a dataset.
std::vector<bool> DatasetArray::agree_on_staged() {
  std::vector<std::uint64_t> staged;
  for (const ArrayVariable& variable : variables_) staged.push_back(variable.staged() ? 1 : 0);
  RankNumbers numbers;
  add_to_meeting(numbers);
  numbers.add_all(Reduction::max, staged);
  numbers.reduce(*comm_);
  leave_meeting();
  return {staged.begin(), staged.end()};
}

/// Inspect the datasets that this rank has not inspected yet. The program may have deleted a
/// dataset since another rank staged values of it. The dataset is then missing, or its address
/// belongs to another one, and its staged values are dropped on all ranks. Errors are agreed.
Status DatasetArray::adopt_staged(std::vector<bool>& staged) {
  std::vector<std::uint64_t> there(staged.size(), 1);
  std::optional<std::set<std::uint64_t>> alive;
  Status mine;
  for (std::size_t v = 0; v < staged.size() && mine.ok(); ++v) {
    if (!staged[v] || variables_[v].in_file()) continue;
    if (deleted_ && !live_[v].dead && !alive) {
      mine = local_part([&] {
        TAILRACE_TAKE(alive, live_dataset_addresses(metadata().hdf5_id(), counted_));
        return Status();
      });
    }
    if (live_[v].dead || (alive && !alive->contains(live_[v].address))) {
      there[v] = 0;
    } else if (mine.ok()) {
      mine = local_part([&] { return adopt(v); });
    }
  }
  TAILRACE_TRY(comm_->agree(mine));
  comm_->allreduce(std::span<std::uint64_t>(there), Reduction::min);
  for (std::size_t v = 0; v < staged.size(); ++v) {
    if (there[v] != 0) continue;
    staged[v] = false;
    live_[v].dead = true;
    variables_[v].log.clear();
  }
  return Status();
}

/// Receive from rank 0 the covered cells of a level, whose values may be dropped. Errors are
/// agreed. Collective: a broadcast.
Status DatasetArray::receive_cover(std::size_t v) {
  Cover& cover = *live_[v].cover;
  const Result<Bytes> heard = broadcast_from_root(*comm_, [&](ByteWriter& words) {
    LevelCover found;
    const Status looked = local_part([&] {
      found = cover.find();
      return Status();
    });
    // Without memory for this, all values are stored.
    if (!looked.ok()) found = {nullptr, looked.message()};
    words.add_text(found.unknown);
    if (found.cells == nullptr) return Status();
    for (const CoveredPart& part : found.cells->parts()) {
      words.add(part.box);
      words.add(part.cells);
    }
    return Status();
  });
  TAILRACE_TRY(heard.status());
  return comm_->agree(local_part([&] {
    ByteReader reader(*heard);
    const std::string unknown = reader.take_text();
    cover.known = unknown.empty();
    if (!cover.known) {
      outcomes_["with all covered cells kept at a flush, because " + unknown].insert(
          variables_[v].definition.path);
      return Status();
    }
    std::vector<CoveredPart> parts;
    while (!reader.at_end()) {
      CoveredPart& part = parts.emplace_back();
      part.box = reader.take<std::uint64_t>();
      part.cells.start = reader.take_shape();
      part.cells.count = reader.take_shape();
    }
    if (parts.empty()) return Status();
    auto cells = std::make_shared<const CoveredCells>(cover.boxes, std::move(parts));
    ArrayVariable& variable = variables_[v];
    const Level* const level = live_[v].level.get();
    variable.resolved.edit = edit_covered(cells, level != nullptr ? level->boxes.get() : nullptr,
                                          variable.definition, variable.resolved);
    if (variable.resolved.edit == nullptr) return Status();
    cover.cells = std::move(cells);
    outcomes_["without values of covered cells"].insert(variable.definition.path);
    return Status();
  }));
}

/// Find the covered cells of the levels that are about to be written. The finer level's boxes may
/// be written after this level's values; values flushed before that stay.
Status DatasetArray::learn_covers(const std::vector<bool>& staged) {
  for (std::size_t v = 0; v < staged.size(); ++v) {
    Cover* const cover = live_[v].cover.get();
    if (!staged[v] || cover == nullptr || cover->known) continue;
    if (variables_[v].storage != ArrayStorage::chunked) continue;
    if (cover->boxes != nullptr) {
      TAILRACE_TRY(receive_cover(v));
    } else {
      outcomes_["with all covered cells kept, because the boxes do not fit the data"].insert(
          variables_[v].definition.path);
    }
  }
  return Status();
}

Status DatasetArray::flush_these(std::vector<bool> staged, bool hold_back, bool closing,
                                 FlushMode mode) {
  for (std::size_t v = 0; v < staged.size(); ++v) {
    const std::vector<std::size_t>& members = live_[v].members;
    const bool any = std::ranges::any_of(members, [&](std::size_t m) { return staged[m]; });
    if (any && variables_[v].storage != ArrayStorage::by_hdf5) staged[v] = true;
  }
  TAILRACE_TRY(adopt_staged(staged));
  TAILRACE_TRY(fold_members(staged));
  TAILRACE_TRY(learn_covers(staged));
  model_changed_ = true;  // The program does not report its metadata changes.
  return flush_variables(staged, hold_back, closing, mode);
}

/// Restart epochs for the puts that follow.
void DatasetArray::handed_over(ArrayFlush& flush) {
  flush.epochs_before = std::min(epoch_ - flushed_epoch_, most_calls) << kTimeBits;
  flushed_epoch_ = epoch_;
  call_epoch_ = 0;
}

/// Undo handed_over(): epochs of later puts continue those of the failed flush.
void DatasetArray::taken_back(const ArrayFlush& flush) {
  flushed_epoch_ -= flush.epochs_before >> kTimeBits;
  call_epoch_ += flush.epochs_before;
  flushed_to_close_ = false;
}

void DatasetArray::begin_collective_put() {
  if (comm_->n_ranks() > 1) ++epoch_;
}

/// Epoch of a put made now. It is later than earlier puts of other ranks, because the program may
/// order puts by messages between ranks.
std::uint64_t DatasetArray::now_epoch() const {
  const std::uint64_t calls = std::min(epoch_ - flushed_epoch_, most_calls) << kTimeBits;
  if (comm_->n_ranks() == 1) return calls;
  const std::uint64_t now = time_now();
  return calls | std::min(now > time_base_ ? now - time_base_ : 0, kMostTime);
}

std::uint64_t DatasetArray::phase_of(std::uint64_t epoch) const { return epoch >> kTimeBits; }

Status DatasetArray::settle() {
  TAILRACE_TRY(begin_collective());
  leave_meeting();
  // Held-back values retain their epochs; before epochs run out, everything is flushed.
  const bool hold_back = calls_since_flush_ <= most_calls / 2;
  const auto must_flush = [&] { return meeting_.short_of_memory != 0 || !hold_back; };
  if (!must_flush()) return Status();
  const std::vector<bool> staged = agree_on_staged();  // A completed flush has released memory.
  return must_flush() ? flush_these(staged, hold_back, false) : Status();
}

Status DatasetArray::sync_to_read() {
  TAILRACE_TRY(begin_collective());
  const std::vector<bool> staged = agree_on_staged();
  return std::ranges::count(staged, true) > 0 ? flush_these(staged, false, false) : Status();
}

Status DatasetArray::flush() {
  TAILRACE_TRY(begin_collective());
  return flush_these(agree_on_staged(), false, false);
}

Status DatasetArray::flush_concurrently() {
  TAILRACE_TRY(begin_collective());
  return flush_these(agree_on_staged(), false, false, FlushMode::beside);
}

Status DatasetArray::flush_concurrently_to_close() {
  TAILRACE_TRY(begin_collective());
  const Status flushed = flush_these(agree_on_staged(), false, true, FlushMode::beside);
  flushed_to_close_ = flushed.ok();
  return flushed;
}

Status DatasetArray::meet_to_close() {
  Status first;
  for (bool all_close = false; !all_close;) {
    const Status met = begin_collective(&all_close);
    if (first.ok() && (all_close || met.code() != Code::disagreement)) first = met;
  }
  return first;
}

Status DatasetArray::close() {
  TAILRACE_TRY(check_open());
  const bool flushed_before = flushed_to_close_;
  Status ended = begin_collective();
  // Values of successful puts are written even if another put failed. An async flush that failed is
  // retried.
  if (output_.broken().ok() && !flushed_to_close_) {
    const Status flushed = flush_these(agree_on_staged(), false, true);
    if (ended.ok() || flushed_before) ended = flushed;
  }
  // The file is closed even if memory for the remark is missing.
  if (comm_->is_root() && ended.ok()) {
    (void)local_part([&] {
      std::vector<std::string> paths;
      for (const ArrayVariable& variable : variables_) paths.push_back(variable.definition.path);
      note_idle_options(paths, component_globs_);
      return Status();
    });
  }
  const Status finished = abort();
  return ended.ok() ? finished : ended;
}

Status DatasetArray::abort() {
  closed_ = true;
  drop_flight();
  lane_stock_.reset();
  drop_readers();
  variables_.clear();
  private_file_.reset();
  return output_.close(!model_changed_);
}

/// Value ranges of the components, from this rank's staged values.
std::vector<double> DatasetArray::component_ranges(std::size_t v) const {
  const ArrayVariable& variable = variables_[v];
  const StagingLog& log = variable.log;
  const std::size_t element = log.element_bytes();
  const std::uint64_t length = variable.resolved.chunk_shape[0];
  const Level& level = *live_[v].level;
  const BoxChunks chunks(*level.boxes, length);
  std::vector<ValueRange> ranges(level.component_bounds.size());
  log.for_each_lasting({}, [&](const StagingLog::Lasting& run) {
    const std::uint64_t stride = run.piece.stride_of(0);
    for (std::uint64_t done = 0; done < run.n;) {
      const std::uint64_t at = run.piece.start[0] + (run.first + done) * stride;
      const std::uint64_t left = ((at / length + 1) * length - at + stride - 1) / stride;
      const std::uint64_t n_here = std::min(left, run.n - done);
      ranges[chunks.part(at / length).component].merge(
          value_range(variable.definition.dtype,
                      {run.values + done * element, static_cast<std::size_t>(n_here) * element},
                      variable.definition.options.fill_value));
      done += n_here;
    }
  });
  return reducible(ranges);
}

/// Resolve component bounds from the values of all ranks. Errors are agreed. Collective.
Status DatasetArray::resolve_component_bounds(const ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    Live& live = live_[v];
    if (!live.bound_open || live.level == nullptr) continue;
    Level& level = *live.level;
    if (level.component_bounds.empty()) continue;
    std::vector<double> least;
    const Status scanned = local_part([&] {
      least = component_ranges(v);
      return Status();
    });
    TAILRACE_TRY(comm_->agree(scanned));
    comm_->allreduce(std::span<double>(least), Reduction::min);
    ResolvedField& resolved = variables_[v].resolved;
    const Status made = local_part([&] {
      std::vector<double> bounds = absolute_bounds(level.component_bounds, least);
      TAILRACE_TRY(encode_by_boxes(*level.boxes, bounds, resolved.chunk_shape[0],
                                   codec_request(variables_[v].definition, resolved),
                                   options_.file.plugin_path, resolved.codec)
                       .within(quoted(v)));
      level.absolute_bounds = std::move(bounds);
      return Status();
    });
    TAILRACE_TRY(comm_->agree(made));
    resolved.absolute_bound = std::ranges::max(level.absolute_bounds);
    live.bound_open = false;
  }
  return Status();
}

/// Resolve value-dependent bounds from the values of the first flush. Errors are agreed.
Status DatasetArray::resolve_open_bounds(const ArrayFlush& flush) {
  TAILRACE_TRY(resolve_component_bounds(flush));
  std::vector<std::size_t> open;
  std::vector<FieldState> fields;
  std::vector<const StagingLog*> logs;
  for (const std::size_t v : flush.variables) {
    if (!live_[v].bound_open) continue;
    open.push_back(v);
    FieldState& field = fields.emplace_back();
    field.definition = variables_[v].definition;
    field.definition.shape = live_[v].shape;
    field.resolved.chunk_shape = variables_[v].resolved.chunk_shape;
    logs.push_back(&variables_[v].log);
  }
  if (open.empty()) return Status();
  TAILRACE_TRY(resolve_staged_bounds(*comm_, logs, fields));
  TAILRACE_TRY(comm_->agree(prepare_codecs(*comm_, fields, options_.file.plugin_path, nullptr)));
  Status mine;
  for (std::size_t i = 0; i < open.size(); ++i) {
    ResolvedField& resolved = variables_[open[i]].resolved;
    ResolvedField& now = fields[i].resolved;
    live_[open[i]].bound_open = false;
    // Store the values exactly. The program cannot be asked, and an error would lose the values.
    if (const Status refused = check_bound_width(fields[i], kWordsOfDatasets); !refused.ok()) {
      note_remark([&] { return "stored exactly: " + refused.message(); });
      continue;
    }
    note_remark([&] { return bound_width_remark(fields[i], kWordsOfDatasets); });
    const std::vector<FilterSpec> header = resolved.codec->filters();
    const std::vector<FilterSpec>& made = now.codec->filters();
    // If all values are equal, the exact form stays.
    if (made.size() != 1 || header.size() != 1 || made[0].filter_id != header[0].filter_id)
      continue;
    resolved.absolute_bound = now.absolute_bound;
    resolved.verify = now.verify;
    resolved.codec = std::make_unique<LateCodec>(std::move(now.codec), header);
    const Level* const level = live_[open[i]].level.get();
    if (level == nullptr) continue;
    // Without memory for this, chunks are encoded as one-dimensional: larger, and within the bound.
    const Status cut = local_part([&] {
      return encode_by_boxes(*level->boxes, {}, resolved.chunk_shape[0],
                             codec_request(variables_[open[i]].definition, resolved),
                             options_.file.plugin_path, resolved.codec);
    });
    if (mine.ok() && cut.code() != Code::out_of_memory) mine = cut.within(quoted(open[i]));
  }
  return comm_->agree(mine);
}

/// Pack the log of a dataset or member, with the epochs that order its entries.
void DatasetArray::pack_log(std::size_t v, const StagingLog& log, ByteWriter& writer) {
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* values) {
      writer.add(static_cast<std::uint64_t>(v));
      writer.add(epoch);
      writer.add(slab);
      writer.add_bytes({values, slab.n_elements() * log.element_bytes()});
    });
  }
}

/// Unpack the logs of all ranks, sorted by dataset, then in put order.
std::vector<DatasetArray::PackedPart> DatasetArray::unpack_logs(
    const std::vector<Bytes>& packed) const {
  std::vector<PackedPart> parts;
  for (const Bytes& of_rank : packed) {
    ByteReader reader(of_rank);
    while (!reader.at_end()) {
      PackedPart part;
      part.staged_as = static_cast<std::size_t>(reader.take<std::uint64_t>());
      part.dataset = whole_of(part.staged_as);
      part.epoch = reader.take<std::uint64_t>();
      part.slab = reader.take_slab();
      const std::size_t element = variables_[part.staged_as].log.element_bytes();
      part.values = reader.take_bytes(part.slab.n_elements() * element);
      parts.push_back(std::move(part));
    }
  }
  std::ranges::stable_sort(parts, [](const PackedPart& a, const PackedPart& b) {
    return std::pair(a.dataset, a.epoch) < std::pair(b.dataset, b.epoch);
  });
  return parts;
}

/// Pack this rank's staged values that rank 0 writes.
Bytes DatasetArray::pack_plain(const ArrayFlush& flush) const {
  ByteWriter writer;
  for (std::size_t i = 0; i < flush.variables.size(); ++i) {
    const std::size_t v = flush.variables[i];
    if (goes_to_root(flush, v)) pack_log(v, staged_of(flush, i), writer);
  }
  return writer.take();
}

/// Combine staged members of compounds that all ranks write. Several ranks may have staged members,
/// so all staged values of such a dataset go to rank 0, which combines them into complete elements.
/// Errors are agreed, and leave everything staged as it was. Collective: a gather for each dataset
/// with staged members.
Status DatasetArray::fold_members(std::vector<bool>& staged) {
  for (std::size_t v = 0; v < staged.size(); ++v) {
    const std::vector<std::size_t>& members = live_[v].members;
    const bool any = std::ranges::any_of(members, [&](std::size_t m) { return staged[m]; });
    if (!any || variables_[v].storage == ArrayStorage::by_hdf5) continue;
    if (!live_[v].dead) {
      ByteWriter mine;
      TAILRACE_TRY(comm_->agree(local_part([&] {
        pack_log(v, variables_[v].log, mine);
        for (const std::size_t m : members) pack_log(m, variables_[m].log, mine);
        return Status();
      })));
      const std::vector<Bytes> packed = comm_->gather(mine.bytes(), 0);
      TAILRACE_TRY(comm_->agree(
          comm_->is_root() ? local_part([&] { return lay_members(v, packed); }) : Status()));
    }
    if (!comm_->is_root() || live_[v].dead) variables_[v].log.clear();
    for (const std::size_t m : members) {
      variables_[m].log.clear();
      staged[m] = false;
    }
  }
  return Status();
}

/// Replace everything staged for a dataset by complete elements: members are laid over earlier puts
/// and over the file's values.
Status DatasetArray::lay_members(std::size_t v, const std::vector<Bytes>& packed) {
  const std::size_t element = variables_[v].log.element_bytes();
  StagingLog laid(memory_, element);
  for (const PackedPart& part : unpack_logs(packed)) {
    if (part.staged_as == v) {
      TAILRACE_TRY(laid.put(part.slab, part.values, part.epoch));
      continue;
    }
    const Member& member = live_[part.staged_as].member;
    const std::size_t n = part.slab.n_elements();
    std::vector<std::byte> values(n * element);
    TAILRACE_TRY(get_stored(v, part.slab, values));
    laid.lay_over(part.slab, values);
    for (std::size_t k = 0; k < n; ++k) {
      std::memcpy(values.data() + k * element + member.offset,
                  part.values.data() + k * member.bytes, member.bytes);
    }
    TAILRACE_TRY(laid.put(part.slab, values, part.epoch));
  }
  variables_[v].log = std::move(laid);
  return Status();
}

/// True if the address of a dataset still denotes that dataset on rank 0.
Result<bool> DatasetArray::is_alive(std::size_t part) {
  const std::size_t v = whole_of(part);
  if (live_[v].dead) return false;
  if (!deleted_) return true;
  if (!alive_) {
    TAILRACE_TAKE(alive_, live_dataset_addresses(output_.file().hdf5_id(), counted_));
  }
  return alive_->contains(live_[v].address);
}

Status DatasetArray::insert_at_root(ArrayFlush& flush, std::size_t f,
                                    std::span<const WrittenChunk> chunks) {
  const std::size_t v = flush.chunked[f];
  TAILRACE_TAKE(const bool alive, is_alive(v));
  if (chunks.empty() || !alive) return Status();
  Hdf5File& file = output_.file();
  TAILRACE_TAKE(const std::int64_t dataset,
                open_dataset_at(file.hdf5_id(), live_[v].address).within(quoted(v)));
  const ArrayVariable& variable = variables_[v];
  const Status inserted = file.insert_chunks_into(dataset, variable.definition.path,
                                                  variable.grid(), chunk_records(chunks));
  close_hdf5_id(dataset);
  TAILRACE_TRY(inserted);
  for (const Hdf5File::ChunkRecord& moved : file.take_moved_chunks()) {
    flush.moved.push_back({f, moved.chunk_index, moved.extent.address, moved.extent.encoded_bytes,
                           moved.filter_mask});
  }
  return Status();
}

/// Write a part directly to the known address of a dataset's contiguous values. HDF5 would open,
/// write and close the dataset, which costs more than creating a small one. @returns false if HDF5
/// must write it
bool DatasetArray::write_in_place(const PackedPart& part) {
  const Live& live = live_[part.dataset];
  if (live.values_at == 0 || part.staged_as != part.dataset) return false;
  const std::optional<std::uint64_t> first = part.slab.first_of_run(live.shape);
  if (!first) return false;
  const std::size_t element = variables_[part.dataset].log.element_bytes();
  output_.file().write_values_at(live.values_at + *first * element, part.values);
  placed_bytes_ += part.values.size();
  return true;
}

Status DatasetArray::write_plain_at_root(const std::vector<Bytes>& plain) {
  const std::vector<PackedPart> parts = unpack_logs(plain);
  // HDF5 writes a dataset's buffered values when its last id is closed. Datasets that the program
  // has open must therefore be flushed explicitly.
  std::set<std::uint64_t> open;
  if (!parts.empty()) {
    TAILRACE_TAKE(open, open_dataset_addresses(output_.file().hdf5_id()));
  }
  for (std::size_t i = 0; i < parts.size();) {
    const std::size_t v = parts[i].dataset;
    TAILRACE_TAKE(const bool alive, is_alive(v));
    const bool buffered = open.contains(live_[v].address);
    std::int64_t dataset = -1;
    Status written;
    for (; i < parts.size() && parts[i].dataset == v; ++i) {
      const PackedPart& part = parts[i];
      if (!alive || !written.ok()) continue;
      if (variables_[v].storage == ArrayStorage::contiguous) {
        written = commit_contiguous(v, part.slab, part.values.data());
        continue;
      }
      // Once the dataset is open here, HDF5 may have buffered values that this part overwrites.
      if (dataset < 0 && !buffered && write_in_place(part)) continue;
      if (dataset < 0) {
        TAILRACE_TAKE(dataset, open_dataset_at(output_.file().hdf5_id(), live_[v].address));
      }
      written = part.staged_as == v ? write_elements(dataset, part.slab, part.values)
                                    : write_member(dataset, live_[part.staged_as].member.name,
                                                   part.slab, part.values);
    }
    if (dataset >= 0) {
      if (written.ok() && buffered) written = flush_elements(dataset);
      const Status closed = close_elements(dataset);
      if (written.ok()) written = closed;
    }
    TAILRACE_TRY(written.within(quoted(v)));
  }
  return Status();
}

/// Record in the headers of lossy datasets how they were stored. This happens only on close, since
/// the program would see these attributes on rank 0 and nowhere else. Dropped cells are recorded by
/// the first flush that drops them.
Status DatasetArray::describe_at_root(bool closing) {
  if (options_.file.notes == Notes::off) return Status();
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const ArrayVariable& variable = variables_[v];
    const bool chunked = variable.storage == ArrayStorage::chunked;
    const bool lossy =
        chunked && live_[v].created &&
        (variable.resolved.codec->lossy() || !variable.definition.options.earlier_loss.empty());
    Cover* const cover = live_[v].cover.get();
    const bool tells_bound = closing && lossy && !live_[v].described;
    const bool tells_cells = cover != nullptr && cover->cells != nullptr && !cover->described;
    if (!tells_bound && !tells_cells) continue;
    TAILRACE_TAKE(const bool alive, is_alive(v));
    if (!alive) continue;
    std::vector<NamedAttribute> attributes;
    if (tells_bound) {
      attributes =
          provenance(variable.definition, variable.resolved, variable.max_error, Notes::all);
    }
    if (tells_cells) attributes.push_back(covered_attribute(*cover->cells));
    const Level* const level = live_[v].level.get();
    if (tells_bound && level != nullptr && !level->absolute_bounds.empty()) {
      describe_components(*level->boxes, level->absolute_bounds, attributes);
    }
    TAILRACE_TRY(set_attributes_at(output_.file().hdf5_id(), live_[v].address, attributes)
                     .within(quoted(v)));
    if (tells_bound) live_[v].described = true;
    if (tells_cells) cover->described = true;
  }
  return Status();
}

Status DatasetArray::publish_at_root(ArrayFlush& flush,
                                     const std::vector<std::vector<WrittenChunk>>& chunks,
                                     const std::vector<Bytes>& plain) {
  alive_.reset();
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    TAILRACE_TRY(insert_at_root(flush, f, chunks[f]));
  }
  TAILRACE_TRY(write_plain_at_root(plain));
  TAILRACE_TRY(describe_at_root(flush.closing));
  alive_.reset();
  if (preserving_ != nullptr) preserving_->remember(opened_bytes_);
  const Status committed = output_.commit_at_root();
  if (preserving_ != nullptr) preserved_ = preserving_->take();
  return committed;
}

/// Broadcast the addresses of new datasets in rank 0's file.
void DatasetArray::published(const ArrayFlush& flush) {
  share_preserved();
  ByteWriter writer;
  for (std::size_t v = n_published_; v < live_.size(); ++v) writer.add(live_[v].address);
  if (!writer.empty()) {
    Bytes bytes = writer.take();
    comm_->broadcast(bytes, 0);
    ByteReader reader(bytes);
    for (std::size_t v = n_published_; v < live_.size(); ++v) {
      live_[v].file_address = reader.take<std::uint64_t>();
    }
  }
  n_published_ = live_.size();
  for (Live& live : live_) {
    live.file_shape = live.shape;
    live.cut_to.reset();
  }
  for (const std::size_t v : flush.variables) live_[whole_of(v)].flushed = true;
  if (!flush.hold_back && !flush.beside) {  // Nothing is staged any more.
    flushed_epoch_ = epoch_;
    call_epoch_ = 0;
  }
}

}  // namespace tailrace
