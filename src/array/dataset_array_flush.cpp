// The flushes of a DatasetArray: in which order puts count, what a flush does to rank 0's file.

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

/// An epoch: above, collective calls since the last flush; below, time in units of 256 ns, for 13
/// days. Neither runs out in a long job: after half of the calls there is a flush of everything
/// (settle()), and each call at which ranks meet begins the time anew, for the puts that follow it:
/// a quarter of it before the call, for nodes whose clocks are behind.
constexpr unsigned time_bits = 42;
constexpr std::uint64_t most_time = (std::uint64_t{1} << time_bits) - 1;
constexpr std::uint64_t most_calls = (std::uint64_t{1} << (64 - time_bits)) - 1;

/// A codec whose header was written before the values were known that decide its bound. Readers
/// need nothing but the chunk and the header's shape to decode it (trz/client_data.hpp).
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

/// By the clock that the ranks have in common: their node's, or that of the day, which the nodes of
/// a cluster keep alike to within a millisecond or so.
std::uint64_t DatasetArray::time_now() const {
  const std::chrono::nanoseconds now =
      comm_->place().empty()
          ? std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch())
          : std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch());
  return static_cast<std::uint64_t>(now / std::chrono::nanoseconds(256));
}

/// The latest of all ranks' clocks, when they met.
void DatasetArray::begin_time(std::uint64_t latest) {
  constexpr std::uint64_t kBefore = most_time / 4;
  time_base_ = latest > kBefore ? latest - kBefore : 0;
}

void DatasetArray::add_to_meeting(RankNumbers& along) {
  meeting_ = {memory_.over_cap() ? 1U : 0U, time_now(), epoch_ - flushed_epoch_};
  along.add(Reduction::max, meeting_.short_of_memory, meeting_.latest, meeting_.most_calls);
}

/// Where ranks have met: the order of puts begins anew behind it.
void DatasetArray::leave_meeting() {
  begin_time(meeting_.latest);
  calls_since_flush_ = meeting_.most_calls;
}

/// Who has staged something. Collective: one allreduce of 16 bytes a dataset.
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

/// Look at the datasets that this rank has not looked at yet. One that the program has deleted
/// since another rank has staged values of it is no more to be found, or another lies there: what
/// was staged goes nowhere then, on all ranks. Errors are agreed.
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

/// Which cells of a level need not keep their values, as rank 0 finds it. Errors are agreed.
/// Collective: a broadcast.
Status DatasetArray::hear_cover(std::size_t v) {
  Cover& cover = *live_[v].cover;
  const Result<Bytes> heard = hear_rank_0(*comm_, [&](ByteWriter& words) {
    LevelCover found;
    const Status looked = local_part([&] {
      found = cover.find();
      return Status();
    });
    // Without memory for it all values are kept.
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
      outcomes_["with all covered cells kept at a flush, as " + unknown].insert(
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

/// Of the levels that are about to be written. The finer level's boxes may come later than this
/// one's values; what is written before stays.
Status DatasetArray::learn_covers(const std::vector<bool>& staged) {
  for (std::size_t v = 0; v < staged.size(); ++v) {
    Cover* const cover = live_[v].cover.get();
    if (!staged[v] || cover == nullptr || cover->known) continue;
    if (variables_[v].storage != ArrayStorage::chunked) continue;
    if (cover->boxes != nullptr) {
      TAILRACE_TRY(hear_cover(v));
    } else {
      outcomes_["with all covered cells kept, as boxes do not fit the data"].insert(
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
  model_changed_ = true;  // Nobody tells what the program has changed.
  return flush_variables(staged, hold_back, closing, mode);
}

/// What is put from now on has epochs that begin anew.
void DatasetArray::handed_over(ArrayFlush& flush) {
  flush.epochs_before = std::min(epoch_ - flushed_epoch_, most_calls) << time_bits;
  flushed_epoch_ = epoch_;
  call_epoch_ = 0;
}

/// As if it had not: those of what was put since follow the ones before.
void DatasetArray::taken_back(const ArrayFlush& flush) {
  flushed_epoch_ -= flush.epochs_before >> time_bits;
  call_epoch_ += flush.epochs_before;
  flushed_to_close_ = false;
}

void DatasetArray::begin_collective_put() {
  if (comm_->n_ranks() > 1) ++epoch_;
}

/// What is put now is later than what other ranks have put before, since a program may see to that
/// order by messages of its own.
std::uint64_t DatasetArray::now_epoch() const {
  const std::uint64_t calls = std::min(epoch_ - flushed_epoch_, most_calls) << time_bits;
  if (comm_->n_ranks() == 1) return calls;
  const std::uint64_t now = time_now();
  return calls | std::min(now > time_base_ ? now - time_base_ : 0, most_time);
}

std::uint64_t DatasetArray::phase_of(std::uint64_t epoch) const { return epoch >> time_bits; }

Status DatasetArray::settle() {
  TAILRACE_TRY(begin_collective());
  leave_meeting();
  // What is held back keeps its epochs; before those run out, nothing is.
  const bool hold_back = calls_since_flush_ <= most_calls / 2;
  const auto must_flush = [&] { return meeting_.short_of_memory != 0 || !hold_back; };
  if (!must_flush()) return Status();
  const std::vector<bool> staged =
      agree_on_staged();  // A flush that was under way gave memory back.
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

Status DatasetArray::flush_beside() {
  TAILRACE_TRY(begin_collective());
  return flush_these(agree_on_staged(), false, false, FlushMode::beside);
}

Status DatasetArray::flush_beside_to_close() {
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
  // What other puts have staged is written also after one that failed; what was flushed beside the
  // program, and failed, is tried again.
  if (output_.broken().ok() && !flushed_to_close_) {
    const Status flushed = flush_these(agree_on_staged(), false, true);
    if (ended.ok() || flushed_before) ended = flushed;
  }
  // The file is closed, whether or not there is memory for words.
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

/// Of this rank's staged values.
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

/// The bounds of components, by the values of all ranks. Errors are agreed. Collective.
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

/// Of bounds that are relative to the values: those of the first flush decide. Errors are agreed.
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
    // The program cannot be asked, and an error would cost it the values: they are kept exactly.
    if (const Status refused = check_bound_width(fields[i], words_of_datasets); !refused.ok()) {
      note_remark([&] { return "kept exactly: " + refused.message(); });
      continue;
    }
    note_remark([&] { return bound_width_remark(fields[i], words_of_datasets); });
    const std::vector<FilterSpec> header = resolved.codec->filters();
    const std::vector<FilterSpec>& made = now.codec->filters();
    // All values alike: there is nothing to lose, and the exact form stays.
    if (made.size() != 1 || header.size() != 1 || made[0].filter_id != header[0].filter_id)
      continue;
    resolved.absolute_bound = now.absolute_bound;
    resolved.verify = now.verify;
    resolved.codec = std::make_unique<LateCodec>(std::move(now.codec), header);
    const Level* const level = live_[open[i]].level.get();
    if (level == nullptr) continue;
    // Short of memory, chunks have one dimension: worse, and within the bound.
    const Status cut = local_part([&] {
      return encode_by_boxes(*level->boxes, {}, resolved.chunk_shape[0],
                             codec_request(variables_[open[i]].definition, resolved),
                             options_.file.plugin_path, resolved.codec);
    });
    if (mine.ok() && cut.code() != Code::out_of_memory) mine = cut.within(quoted(open[i]));
  }
  return comm_->agree(mine);
}

/// What a log has of a dataset or member, with the epochs that order it.
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

/// What ranks have packed so: by dataset, and then as it was put.
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

/// This rank's staged values of what rank 0 writes.
Bytes DatasetArray::pack_plain(const ArrayFlush& flush) const {
  ByteWriter writer;
  for (std::size_t i = 0; i < flush.variables.size(); ++i) {
    const std::size_t v = flush.variables[i];
    if (goes_to_root(flush, v)) pack_log(v, staged_of(flush, i), writer);
  }
  return writer.take();
}

/// Of compounds that all ranks write, members may be staged by several ranks: all that is staged of
/// such a dataset goes to rank 0, which makes whole elements of it. Errors are agreed, and leave
/// everything staged as it was. Collective: a gather for each dataset of which members are staged.
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

/// Stage whole elements in the place of all that was put of a dataset: members over what was put
/// before them, and over what the file has.
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

/// Whether what the address of a dataset means to rank 0 is still that dataset.
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

/// To where a dataset's values are known to lie in one piece: HDF5 would open, write and close it,
/// which costs more than a small dataset's creation. @returns false: HDF5 must
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
  // HDF5 writes what it has buffered of a dataset when its last id is closed: those that the
  // program has open must be told.
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
      // Once it is open, HDF5 may have buffered what is to be written over.
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

/// Tell in the headers of lossy datasets how their values were changed: at the end alone, since the
/// program would meet these attributes on rank 0 and nowhere else.
/// How lossy datasets were stored, once it is settled; which cells are not kept, with the first
/// flush that does not keep them.
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

/// All ranks learn where rank 0's file has the datasets that are new.
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
    live.chunks.reset();
    live.cut_to.reset();
  }
  for (const std::size_t v : flush.variables) live_[whole_of(v)].flushed = true;
  if (!flush.hold_back && !flush.beside) {  // Nothing is staged any more.
    flushed_epoch_ = epoch_;
    call_epoch_ = 0;
  }
}

}  // namespace tailrace
