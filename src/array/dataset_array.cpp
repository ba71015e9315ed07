// The datasets of a program's HDF5 file: opening, adding and staging; reading; the order of puts
// between ranks; the stages of a flush.

#include "array/dataset_array.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/fill_values.hpp"
#include "field/covered_values.hpp"
#include "hdf5/live_datasets.hpp"
#include "output/publish_fields.hpp"

namespace tailrace {

namespace {

/// An epoch consists of two numbers. The upper bits count collective calls since the last flush.
/// The lower bits are a time in units of 256 ns, which lasts 13 days. Neither overflows in a long
/// job. After half of the calls, end_collective_put() flushes everything. Each call at which ranks
/// meet restarts the time for later puts, at a quarter of its range, for nodes whose clocks are
/// behind.
constexpr unsigned kTimeBits = 42;
constexpr std::uint64_t kMostTime = (std::uint64_t{1} << kTimeBits) - 1;
constexpr std::uint64_t kMostCalls = (std::uint64_t{1} << (64 - kTimeBits)) - 1;

}  // namespace

// --- the file

DatasetArray::~DatasetArray() {
  flushed_file_.drop();
  if (closed_) return;
  drop_flight();
  comm_->abandon();
  metadata_.close_private();
  output_.abandon();
}

Result<std::unique_ptr<DatasetArray>> DatasetArray::create(std::unique_ptr<Comm> comm,
                                                           const std::string& path,
                                                           const ArrayFileOptions& options,
                                                           const Status& mine) {
  std::unique_ptr<DatasetArray> file(new DatasetArray(std::move(comm), path, options));
  TAILRACE_TRY(file->start(true, mine));
  return file;
}

Result<std::unique_ptr<DatasetArray>> DatasetArray::open(std::unique_ptr<Comm> comm,
                                                         const std::string& path,
                                                         const ArrayFileOptions& options,
                                                         const Status& mine) {
  std::unique_ptr<DatasetArray> file(new DatasetArray(std::move(comm), path, options));
  TAILRACE_TRY(file->start(false, mine));
  return file;
}

Status DatasetArray::start(bool create, const Status& mine) {
  // The rank with the least memory decides how datasets are stored.
  std::uint64_t latest = time_now();
  std::uint64_t least_bytes = options_.file.memory_bytes;
  std::uint64_t least_of_encoding = least_bytes - memory_.cap_bytes();
  RankNumbers numbers;
  numbers.add(Reduction::max, latest);
  numbers.add(Reduction::min, least_bytes, least_of_encoding);
  TAILRACE_TRY(agree_on_options(mine, numbers));
  writable_ = true;
  begin_time(latest);
  least_memory_ = {least_bytes, least_of_encoding};
  std::vector<std::string> sharing;
  if (create) {
    TAILRACE_TRY(output_.create(*comm_, path_, options_.file));
  } else {
    if (comm_->is_root()) metadata_.preserve_at_root(options_.file);
    TAILRACE_TRY(open_output(sharing));
  }
  return metadata_.start(options_.file, create, std::move(sharing));
}

// --- datasets

std::size_t DatasetArray::add(const NewDataset& definition, const DatasetPlan& plan,
                              std::uint64_t address, std::uint64_t values_at) {
  const std::size_t added = add_existing(definition.path, address, DatasetOrigin::created);
  component_globs_.insert(plan.component_globs.begin(), plan.component_globs.end());
  decisions_.add(added, definition, plan);
  if (!plan.keep_filters) {  // Else the header defines the filters.
    variables_[added] = make_variable(memory_, definition, plan);
    State& state = states_[added];
    state.created = true;
    state.shape = definition.shape;
    state.addresses = definition.addresses;
    state.by_value = definition.by_value || (definition.addresses && comm_->is_root());
    if (values_at != 0) parts_.place(added, definition.shape, values_at);
  }
  // Last, because it invalidates references to variables.
  if (comm_->n_ranks() > 1 && definition.by_value) add_members(added, definition);
  return added;
}

/// Register the members of a compound, each with a number of its own.
void DatasetArray::add_members(std::size_t whole, const NewDataset& definition) {
  for (const CompoundMember& member : definition.members) {
    const std::size_t added = variables_.size();
    variables_.push_back(make_variable(memory_, definition, member));
    State& state = states_.emplace_back();
    state.created = true;
    state.shape = definition.shape;
    parts_.add_member(whole, added, member);
  }
}

std::size_t DatasetArray::add_existing(const std::string& path, std::uint64_t address,
                                       DatasetOrigin origin) {
  const std::size_t added = variables_.size();
  // Reserve first: if memory is missing, neither list may change.
  if (states_.size() == states_.capacity()) states_.reserve(2 * added + 8);
  ArrayVariable variable(memory_, std::size_t{1});
  variable.definition.path = path;
  variables_.push_back(std::move(variable));
  State& state = states_.emplace_back();
  state.origin = origin;
  if (origin == DatasetOrigin::opened) state.file_address = address;
  // The values may be addresses that only rank 0 has written; adopt() finds out from the header.
  state.addresses =
      origin == DatasetOrigin::copied && std::ranges::any_of(states_, [](const State& other) {
        return other.created && other.addresses;
      });
  lifetimes_.add(added, address);
  note_change("the dataset opened or created as number " + std::to_string(added), path);
  return added;
}

/// Adopt the storage that a dataset's header fixes. Alike on every rank, since no flush has changed
/// it yet.
Status DatasetArray::adopt(std::size_t v) {
  if (variables_[v].in_file()) return Status();
  TAILRACE_TAKE(
      StoredDataset stored,
      describe_dataset_at(metadata().hdf5_id(), lifetimes_.address_of(v)).within(quoted(v)));
  State& state = states_[v];
  // If memory is missing, the dataset stays unknown, and a later flush can retry.
  TAILRACE_TAKE(AdoptedDataset adopted,
                adopt_dataset(stored, variables_[v].definition.path, state.origin,
                              options_.file.plugin_path, memory_, *comm_)
                    .within(quoted(v)));
  if (state.origin == DatasetOrigin::opened) {
    TAILRACE_TAKE(
        const RecordedBound recorded,
        recorded_bound_at(metadata().hdf5_id(), lifetimes_.address_of(v)).within(quoted(v)));
    TAILRACE_TRY(
        continue_bound(stored, recorded, options_, *comm_, adopted.variable).within(quoted(v)));
  }
  Shape file_shape = stored.shape;
  variables_[v] = std::move(adopted.variable);
  state.by_value = adopted.by_value;
  state.addresses = state.addresses && !stored.by_value;
  state.refused = std::move(adopted.refused);
  state.file_shape = std::move(file_shape);
  state.shape = std::move(stored.shape);
  return Status();
}

Result<DatasetArray::Facts> DatasetArray::facts(std::size_t v) {
  TAILRACE_TRY(adopt(v));
  return Facts{variables_[v].log.element_bytes(), &states_[v].shape, states_[v].by_value,
               variables_[v].storage == ArrayStorage::by_hdf5, states_[v].addresses};
}

/// True if chunks of this opened dataset share their addresses with other chunks.
bool DatasetArray::shares_chunks(std::size_t v) const {
  return states_[v].origin == DatasetOrigin::opened &&
         metadata_.shares_chunks(variables_[v].definition.path);
}

bool DatasetArray::hdf5_can_cut(std::size_t v) const {
  if (shares_chunks(v)) return false;
  const ArrayVariable& variable = variables_[v];
  if (variable.storage != ArrayStorage::chunked) return true;
  // HDF5 would re-encode the chunks at the edge, and a lossy codec would lose more digits.
  if (variable.resolved.codec->lossy()) return false;
  const std::vector<FilterSpec>& filters = variable.resolved.codec->filters();
  return std::all_of(filters.begin(), filters.end(), [](const FilterSpec& filter) {
    const CodecEntry* entry = find_filter(filter.filter_id);
    return entry != nullptr && !entry->plugin;
  });
}

Status DatasetArray::before_cut(std::size_t v, const Shape& shape) {
  const ArrayVariable& variable = variables_[v];
  if (variable.storage != ArrayStorage::chunked) return Status();
  const Status saved = comm_->agree(local_part([&] {
    const ChunkGrid grid{states_[v].shape, variable.resolved.chunk_shape};
    return cut_.save(*comm_, v, grid, shape, variable.log.element_bytes(),
                     std::bind_front(&DatasetArray::get, this));
  }));
  if (!saved.ok()) undo_cut(v);
  return saved;
}

Status DatasetArray::after_cut(std::size_t v) {
  const std::vector<ExtentCut::Part> parts = cut_.take();
  if (variables_[v].storage != ArrayStorage::chunked) return Status();
  places_.forget(v);
  variables_[v].places_known = false;
  begin_write();
  for (const ExtentCut::Part& part : parts) TAILRACE_TRY(put(v, part.slab, part.values));
  return Status();
}

// --- staging

/// Check that values can be staged for a dataset.
Status DatasetArray::check_put(std::size_t v) {
  TAILRACE_TRY(adopt(v));
  if (!states_[v].refused.ok()) return note(states_[v].refused.within(quoted(v)));
  // HDF5 itself rewrites a chunk of unchanged length in place.
  if (variables_[v].storage != ArrayStorage::by_hdf5 || !shares_chunks(v)) return Status();
  return note(Status(Code::unsupported,
                     quoted(v) + ": its chunks share their bytes with other chunks (concat "
                                 "--dedup), which HDF5 would change too; repack the file first"));
}

Status DatasetArray::check_growth(std::size_t v, const Shape& shape) const {
  const State& state = states_[v];
  // New cells count as values, even if only fill values.
  for (std::size_t d = 0; d < std::min(shape.size(), state.shape.size()); ++d) {
    if (shape[d] > state.shape[d]) return state.refused.within(quoted(v));
  }
  return Status();
}

Status DatasetArray::put(std::size_t v, const Slab& slab, std::span<const std::byte> values) {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(adopt(v));
  TAILRACE_TRY(check_slab(slab, states_[v].shape).within(quoted(v)));
  if (slab.empty()) return Status();
  TAILRACE_TRY(check_put(v));
  TAILRACE_TRY(note(variables_[v].log.put(slab, values, call_epoch_).within(quoted(v))));
  put_bytes_ += values.size();
  return Status();
}

Status DatasetArray::put_runs(std::size_t v, const ElementRuns& runs,
                              std::span<const std::byte> values) {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(check_put(v));
  if (runs.empty()) return Status();
  ArrayVariable& variable = variables_[v];
  TAILRACE_TRY(
      note(variable.log.put(states_[v].shape, runs, values, call_epoch_).within(quoted(v))));
  put_bytes_ += values.size();
  return Status();
}

Status DatasetArray::set_shape(std::size_t v, const Shape& shape) {
  TAILRACE_TRY(adopt(v));
  ArrayVariable& variable = variables_[v];
  const std::string extents = "extents " + shape_text(shape);
  const auto change = [&] {  // Called last: after an error nothing has changed.
    if (states_[v].shape == shape) return Status();
    for (const std::size_t m : parts_.members_of(v)) TAILRACE_TRY(set_shape(m, shape));
    states_[v].shape = shape;
    note_change(quoted(v), extents);
    return Status();
  };
  const StagingLog& log = variable.log;
  const bool shrinks = !contains(whole_box(shape), whole_box(states_[v].shape));
  // Element numbers stay valid only if no dimension but the slowest changes.
  const bool renumbers =
      shape.size() > 1 && !std::equal(shape.begin() + 1, shape.end(), states_[v].shape.begin() + 1);
  bool scattered = false;
  for (std::size_t e = 0; e < log.n_entries() && renumbers; ++e) scattered |= log.scattered(e);
  if ((!shrinks && !scattered) || log.empty()) return change();
  StagingLog kept(memory_, log.element_bytes());
  TAILRACE_TRY(stage_within(log, shape, kept));
  variable.log = std::move(kept);
  return change();
}

// --- reading

Status DatasetArray::get(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(adopt(v));
  TAILRACE_TRY(check_slab(slab, states_[v].shape).within(quoted(v)));
  if (slab.empty()) return Status();
  TAILRACE_TRY(complete_to_read(v));
  TAILRACE_TRY(get_stored(v, slab, values));
  return parts_.lay_over(v, slab, values);
}

/// Read the file's elements at its last flush; the fill value where it has none.
Status DatasetArray::get_stored(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const ArrayVariable& variable = variables_[v];
  fill_values(values, variable.fill);
  if (!output_.in_place() || states_[v].file_address == 0) return Status();
  const auto read = [&](const Slab& wanted, std::span<std::byte> to) {
    return flushed_file_.read(
        v, [&] { return flushed_dataset(v); }, variable.resolved.codec.get(), wanted, to);
  };
  const SlabPart part = part_within(slab, whole_box(states_[v].file_shape));
  if (part.slab == slab) return read(slab, values);
  if (part.slab.empty()) return Status();
  const std::size_t element = variable.log.element_bytes();
  std::vector<std::byte> there(part.slab.n_elements() * element);
  fill_values(there, variable.fill);
  TAILRACE_TRY(read(part.slab, there));
  copy_box(part.box(), part.box(), there.data(), slab.dense_box(), values.data(), element);
  return Status();
}

Status DatasetArray::get_runs(std::size_t v, const ElementRuns& runs, std::span<std::byte> values) {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(adopt(v));
  const ArrayVariable& variable = variables_[v];
  const std::size_t element = variable.log.element_bytes();
  const Box whole = whole_box(states_[v].shape);
  // ChunkPieces count elements in 32 bits.
  const bool countable = values.size() / element <= std::numeric_limits<std::uint32_t>::max();
  if (variable.storage != ArrayStorage::chunked || !countable) {
    std::byte* to = values.data();
    Status read;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::uint64_t first = runs.firsts[r];
      for_each_box_of_run(whole, first, first + runs.counts[r], [&](const Box& box) {
        const std::size_t n_bytes = box.n_elements() * element;
        if (read.ok()) read = get(v, Slab::of(box), {to, n_bytes});
        to += n_bytes;
      });
    }
    return read;
  }
  const ChunkGrid grid{states_[v].shape, variable.resolved.chunk_shape};
  std::vector<std::byte> stored(StoredRuns::bytes_of(runs.size()));
  StoredRuns::store(runs, stored.data());
  const ChunkPieces pieces(grid, {stored.data(), runs.size()});
  std::vector<std::byte> chunk(n_elements(grid.chunk_shape) * element);
  for (const std::uint64_t chunk_index : pieces.chunks()) {
    // Positions of pieces refer to the full chunk, which may extend beyond the dataset's end.
    const Box box = grid.full_box(chunk_index);
    const Box inside = grid.clipped_box(chunk_index);
    const std::span<std::byte> read(chunk.data(), inside.n_elements() * element);
    TAILRACE_TRY(get(v, Slab::of(inside), read));
    for (const ChunkPiece& piece : pieces.of(chunk_index)) {
      // A piece lies in one row, or consists of complete rows, which are also contiguous in the
      // clipped chunk.
      std::uint64_t rest = piece.first;
      std::uint64_t at = 0;
      std::uint64_t step = 1;
      for (std::size_t d = box.rank(); d-- > 0;) {
        at += rest % box.count[d] * step;
        rest /= box.count[d];
        step *= inside.count[d];
      }
      std::memcpy(values.data() + piece.from * element, chunk.data() + at * element,
                  piece.n * element);
    }
  }
  return Status();
}

/// Complete a flush in flight that has values of the dataset, since neither the file nor this rank
/// can provide them. Only a single rank can do so; with several ranks the read fails.
Status DatasetArray::complete_to_read(std::size_t v) {
  const bool any =
      is_under_way(v) ||
      std::ranges::any_of(parts_.members_of(v), [this](std::size_t m) { return is_under_way(m); });
  if (!any) return Status();
  if (comm_->n_ranks() == 1) return begin_collective();
  return Status(
      Code::unsupported,
      quoted(v) +
          ": its last flush is not complete (mode=async or in_situ), and a single rank cannot "
          "complete it; "
          "read with a collective transfer list, or flush the file again first");
}

/// Describe a dataset at the last flush to its reader.
FlushedFile::Dataset DatasetArray::flushed_dataset(std::size_t v) const {
  const ArrayVariable& variable = variables_[v];
  FlushedFile::Dataset dataset;
  dataset.path = variable.definition.path;
  dataset.header_address = states_[v].file_address;
  dataset.element_bytes = variable.log.element_bytes();
  dataset.shape = states_[v].file_shape;
  dataset.fill_value = variable.fill;
  if (variable.storage == ArrayStorage::chunked) {
    dataset.storage = {StoredForm::Kind::chunked, variable.resolved.chunk_shape,
                       variable.resolved.codec->filters()};
  } else if (variable.storage == ArrayStorage::contiguous) {
    dataset.storage.kind = StoredForm::Kind::contiguous;
    dataset.contiguous = {variable.address, n_elements(dataset.shape) * dataset.element_bytes};
  }
  return dataset;
}

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
  meeting_ = {memory_.over_cap() ? 1U : 0U, time_now(), epoch_ - flushed_epoch_, bits_of_staged()};
  along.add(Reduction::max, meeting_.short_of_memory, meeting_.latest, meeting_.most_calls);
  along.add(Reduction::bit_or, meeting_.staged);
  attributes_.add_to(along);
  for (std::uint64_t& number : most_to_meet_) along.add(Reduction::max, number);
  has_met_to_close_ = false;
}

/// Restart the order of puts after a meeting of all ranks.
void DatasetArray::leave_meeting() {
  begin_time(meeting_.latest);
  calls_since_flush_ = meeting_.most_calls;
}

/// Agree on the datasets that have staged values on any rank. Call it after begin_collective(),
/// which has agreed on the first 64. Collective; one allreduce of 24 bytes a dataset if there are
/// more, or if a flush was completed.
std::vector<bool> DatasetArray::agree_on_staged() {
  if (meeting_is_current() && variables_.size() <= kBitsOfStaged) {
    leave_meeting();
    std::vector<bool> bits;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      bits.push_back((meeting_.staged >> v & 1U) != 0);
    }
    return bits;
  }
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
/// Collective: one agreement.
Status DatasetArray::adopt_staged(std::vector<bool>& staged) {
  if (std::ranges::count(staged, true) == 0) {
    lifetimes_.end_search();
    return Status();
  }
  std::vector<std::uint64_t> there(staged.size(), 1);
  Status mine;
  for (std::size_t v = 0; v < staged.size() && mine.ok(); ++v) {
    if (!staged[v] || variables_[v].in_file()) continue;
    mine = local_part([&] {
      TAILRACE_TAKE(const bool exists, lifetimes_.exists(v));
      if (exists) return adopt(v);
      there[v] = 0;
      return Status();
    });
  }
  lifetimes_.end_search();
  RankNumbers numbers;
  numbers.add_all(Reduction::min, there);
  TAILRACE_TRY(comm_->agree(mine, numbers));
  for (std::size_t v = 0; v < staged.size(); ++v) {
    if (there[v] != 0) continue;
    staged[v] = false;
    lifetimes_.note_gone(v);
    variables_[v].log.clear();
  }
  return Status();
}

Status DatasetArray::flush_these(std::vector<bool> staged, bool hold_back, bool closing,
                                 FlushMode mode) {
  if (attributes_.differ()) {
    const std::string difference = attributes_.compare(*comm_);
    note_remark([&] { return difference; });
  }
  parts_.mark_folded(staged);
  TAILRACE_TRY(adopt_staged(staged));
  TAILRACE_TRY(parts_.fold(staged, std::bind_front(&DatasetArray::get_stored, this)));
  TAILRACE_TRY(decisions_.find_covers(staged));
  model_changed_ = true;  // The program does not report its metadata changes.
  flushed_file_.release_values();
  return flush_variables(staged, hold_back, closing, mode);
}

/// Restart epochs for the puts that follow.
void DatasetArray::handed_over(ArrayFlush& flush) {
  flush.epochs_before = std::min(epoch_ - flushed_epoch_, kMostCalls) << kTimeBits;
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
  const std::uint64_t calls = std::min(epoch_ - flushed_epoch_, kMostCalls) << kTimeBits;
  if (comm_->n_ranks() == 1) return calls;
  const std::uint64_t now = time_now();
  return calls | std::min(now > time_base_ ? now - time_base_ : 0, kMostTime);
}

std::uint64_t DatasetArray::phase_of(std::uint64_t epoch) const { return epoch >> kTimeBits; }

Status DatasetArray::end_collective_put() {
  TAILRACE_TRY(begin_collective());
  leave_meeting();
  // Held-back values retain their epochs; before epochs run out, everything is flushed.
  const bool hold_back = calls_since_flush_ <= kMostCalls / 2;
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
  return flush_these(agree_on_staged(), false, false, FlushMode::concurrent);
}

Status DatasetArray::flush_concurrently_to_close() {
  TAILRACE_TRY(begin_collective());
  const Status flushed = flush_these(agree_on_staged(), false, true, FlushMode::concurrent);
  flushed_to_close_ = flushed.ok();
  return flushed;
}

Status DatasetArray::meet_to_close(std::span<std::uint64_t> most) {
  TAILRACE_CHECK(most.size() <= most_to_meet_.size());
  Status first;
  for (bool all_close = false; !all_close;) {
    std::ranges::copy(most, most_to_meet_.begin());
    const Status met = begin_collective(&all_close);
    if (first.ok() && (all_close || met.code() != Code::disagreement)) first = met;
  }
  std::copy_n(most_to_meet_.begin(), most.size(), most.begin());
  most_to_meet_ = {};
  has_met_to_close_ = true;
  return first;
}

Status DatasetArray::close(const RankNumbers& along) {
  TAILRACE_TRY(check_open());
  const bool flushed_before = flushed_to_close_;
  Status ended = has_met_to_close_ ? Status() : begin_collective();
  // Values of successful puts are written even if another put failed. An async flush that failed is
  // retried.
  if (output_.broken().ok() && !flushed_to_close_) {
    const Status flushed = flush_these(agree_on_staged(), false, true);
    if (ended.ok() || flushed_before) ended = flushed;
  }
  note_raw_chunks();
  // The file is closed even if memory for the remark is missing.
  if (comm_->is_root() && ended.ok()) {
    (void)local_part([&] {
      std::vector<std::string> paths;
      for (const ArrayVariable& variable : variables_) paths.push_back(variable.definition.path);
      note_idle_options(paths, component_globs_);
      return Status();
    });
  }
  const Status finished = abort(along);
  return ended.ok() ? finished : ended;
}

Status DatasetArray::abort(const RankNumbers& along) {
  closed_ = true;
  drop_flight();
  lane_stock_.reset();
  flushed_file_.drop();
  variables_.clear();
  metadata_.close_private();
  return output_.close(!model_changed_, along);
}

// --- the stages of a flush

/// Decide whether bounds apply, and resolve those that depend on the values of the first flush.
Status DatasetArray::prepare_new(ArrayFlush& flush) {
  const auto note = [this](const auto& make) { note_remark(make); };
  TAILRACE_TRY(decisions_.decide_roles(
      flush.variables, list_objects_, [this](std::size_t v) { return lifetimes_.address_of(v); },
      note));
  return decisions_.resolve_bounds(flush.variables, std::bind_front(&DatasetArray::shape_of, this),
                                   note);
}

/// Find the stored chunks of datasets that existed before. Collective. Cost: for each such dataset,
/// once, two agreements and a sparse exchange.
Status DatasetArray::load_places(const ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.places_known || variable.storage != ArrayStorage::chunked) continue;
    std::vector<StoredChunk> chunks;
    Status mine;
    if (comm_->is_root()) {
      Result<std::vector<StoredChunk>> found =
          flushed_file_.chunks_of(v, [&] { return flushed_dataset(v); });
      mine = found.status();
      if (found.ok()) chunks = std::move(*found);
    }
    TAILRACE_TRY(comm_->agree(mine.within(quoted(v))));
    const ChunkGrid grid{states_[v].file_shape, variable.resolved.chunk_shape};
    cut_.erase_changed(v, grid, chunks);
    TAILRACE_TRY(comm_->agree(places_.load(*comm_, {v, grid, {}, variable.growing}, chunks)));
    variable.places_known = true;
  }
  return Status();
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

Status DatasetArray::insert_at_root(ArrayFlush& flush, std::size_t f,
                                    std::span<const WrittenChunk> chunks) {
  const std::size_t v = flush.chunked[f];
  TAILRACE_TAKE(const bool exists, lifetimes_.exists(v));
  if (chunks.empty() || !exists) return Status();
  Hdf5File& file = output_.file();
  TAILRACE_TAKE(const std::int64_t dataset,
                open_dataset_at(file.hdf5_id(), lifetimes_.address_of(v)).within(quoted(v)));
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

/// Record in the headers of lossy datasets how they were stored. This happens only on close, since
/// the program would see these attributes on rank 0 and nowhere else. Dropped cells are recorded by
/// the first flush that drops them.
Status DatasetArray::describe_at_root(bool closing) {
  if (options_.file.notes == Notes::off) return Status();
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const ArrayVariable& variable = variables_[v];
    const bool chunked = variable.storage == ArrayStorage::chunked;
    const bool lossy =
        chunked && states_[v].created && !decisions_.role_open(v) &&
        (variable.resolved.codec->lossy() || !variable.definition.options.earlier_loss.empty());
    const bool writes_bound = closing && lossy && !states_[v].described;
    const CoveredCells* const cells = decisions_.cells_to_describe(v);
    if (!writes_bound && cells == nullptr) continue;
    TAILRACE_TAKE(const bool exists, lifetimes_.exists(v));
    if (!exists) continue;
    std::vector<NamedAttribute> attributes;
    if (writes_bound) {
      attributes =
          provenance(variable.definition, variable.resolved, variable.max_error, Notes::all);
    }
    if (cells != nullptr) attributes.push_back(covered_attribute(*cells));
    if (writes_bound) decisions_.describe_bounds(v, attributes);
    TAILRACE_TRY(set_attributes_at(output_.file().hdf5_id(), lifetimes_.address_of(v), attributes)
                     .within(quoted(v)));
    if (writes_bound) states_[v].described = true;
    if (cells != nullptr) decisions_.note_described(v);
  }
  return Status();
}

Status DatasetArray::publish_at_root(ArrayFlush& flush,
                                     const std::vector<std::vector<WrittenChunk>>& chunks,
                                     const std::vector<Bytes>& plain) {
  const auto change = [&] {
    for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
      TAILRACE_TRY(insert_at_root(flush, f, chunks[f]));
    }
    TAILRACE_TRY(parts_.write_at_root(
        plain, [this](const auto&... part) { return commit_contiguous(part...); }));
    return describe_at_root(flush.closing);
  };
  const Status changed = change();
  lifetimes_.end_search();
  return changed.ok() ? metadata_.commit_at_root() : changed;
}

/// Broadcast the addresses of new datasets in rank 0's file.
void DatasetArray::published(const ArrayFlush& flush) {
  metadata_.share_preserved();
  ByteWriter writer;
  for (std::size_t v = n_published_; v < states_.size(); ++v) writer.add(lifetimes_.address_of(v));
  if (!writer.empty()) {
    Bytes bytes = writer.take();
    comm_->broadcast(bytes, 0);
    ByteReader reader(bytes);
    for (std::size_t v = n_published_; v < states_.size(); ++v) {
      states_[v].file_address = reader.take<std::uint64_t>();
    }
  }
  n_published_ = states_.size();
  for (State& state : states_) state.file_shape = state.shape;
  cut_.end();
  for (const std::size_t v : flush.variables) states_[parts_.dataset_of(v)].flushed = true;
  if (!flush.hold_back && !flush.handed_over) {  // Nothing is staged any more.
    flushed_epoch_ = epoch_;
    call_epoch_ = 0;
  }
}

}  // namespace tailrace
