// The calls of an ArrayFile except flush (array_flush.cpp): definitions and puts; opening an
// existing file; reads, which overlay this rank's staged values on the file's.

#include "array/array_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <unordered_map>
#include <utility>

#include "codec/deflate.hpp"
#include "codec/registry.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "core/fill_values.hpp"
#include "describe/input_bytes.hpp"
#include "exec/comm_factory.hpp"
#include "field/region_codec.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/one_file.hpp"
#include "hdf5/stored_codec.hpp"
#include "layout/layout.hpp"
#include "read/read_padded.hpp"

namespace tailrace {

/// Destroy without close(). Other ranks may not be here, so nothing collective happens.
ArrayFile::~ArrayFile() {
  if (closed_) return;
  drop_flight();
  comm_->abandon();
  layout_.reset();
  output_.abandon();
}

std::string ArrayFile::quoted(std::size_t variable) const {
  return "variable \"" + model_.path_of(model_.variables[variable]) + "\"";
}

// --- opening

/// Refuse the deferred modes of interfaces whose ranks read by themselves after a flush.
Status ArrayFile::check_mode() const {
  if (options_.file.mode == StepMode::sync || options_.file.door == Door::pnetcdf) return Status();
  return Status(Code::invalid_argument,
                "file \"" + path_ +
                    "\": options mode=async and mode=in_situ: not supported by Python's arrays, "
                    "only by PnetCDF programs, HDF5 programs and the step interface");
}

Status ArrayFile::start_create(const Status& mine, const RankNumbers& along) {
  TAILRACE_TRY(agree_on_options(mine, along));
  TAILRACE_TRY(check_mode());
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  TAILRACE_TRY(
      output_.create(*comm_, path_, options_.file, Output::LeftOver::kept, [this](Hdf5File& file) {
        TAILRACE_TAKE(layout_, NetcdfLayout::create(file));
        return Status();
      }));
  writable_ = options_.read.own_output = true;
  model_.netcdf4 = true;
  model_changed_ = true;
  return Status();
}

// --- definitions

Status ArrayFile::check_variable(std::size_t variable) const {
  if (variable < variables_.size()) return Status();
  return Status(Code::invalid_argument, "file \"" + path_ + "\": variable number " +
                                            std::to_string(variable) +
                                            " does not exist; the file has " +
                                            std::to_string(variables_.size()) + " variables");
}

namespace {

void erase_attributes(NetcdfModel& model) {
  for (ModelGroup& group : model.groups) group.attributes.clear();
  for (ModelVariable& variable : model.variables) variable.attributes.clear();
}

}  // namespace

Status ArrayFile::change_model(const NetcdfModel& next, Attributes attributes) {
  // Each rank has its own lengths of unlimited dimensions until they are agreed.
  NetcdfModel agreed = next;
  std::vector<std::uint64_t> lengths;
  for (std::size_t d = 0; d < next.dimensions.size(); ++d) {
    lengths.push_back(next.dimensions[d].length);
    if (!next.dimensions[d].unlimited) continue;
    agreed.dimensions[d].length = 0;
    if (d < model_.dimensions.size()) {
      lengths[d] = std::max(lengths[d], model_.dimensions[d].length);
    }
  }
  Status mine = check_model(next);
  for (std::size_t v = 0; mine.ok() && v < next.variables.size() && v < variables_.size(); ++v) {
    if (next.variables[v].type == variables_[v].type) continue;
    mine = Status(Code::invalid_argument, quoted(v) + ": its type cannot be changed");
  }
  if (mine.ok() && next.variables.size() < variables_.size()) {
    mine = Status(Code::invalid_argument,
                  "variables cannot be deleted: the file has " + std::to_string(variables_.size()) +
                      ", the new definitions have " + std::to_string(next.variables.size()));
  }
  std::string text = model_text(agreed);
  details_ = "lengths " + shape_text(lengths);
  if (attributes == Attributes::of_root) {
    details_ += text;
    NetcdfModel bare = agreed;
    erase_attributes(bare);
    text = model_text(bare);
  }
  const Status met = begin_collective(nullptr, text, mine);
  details_.clear();
  TAILRACE_TRY(met);
  if (!meeting_.alike()) {
    comm_->allreduce(std::span<std::uint64_t>(lengths), Reduction::max);
    if (attributes == Attributes::of_root) take_attributes(agreed);
  }
  for (std::size_t d = 0; d < lengths.size(); ++d) agreed.dimensions[d].length = lengths[d];
  return take_model(agreed);
}

/// Replace a model's attributes by rank 0's. The models are equal otherwise. Collective.
void ArrayFile::take_attributes(NetcdfModel& model) {
  Bytes bytes;
  if (comm_->is_root()) bytes = pack_model(model);
  comm_->broadcast(bytes, 0);
  if (comm_->is_root()) return;
  NetcdfModel of_root = unpack_model(bytes);
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    model.groups[g].attributes = std::move(of_root.groups[g].attributes);
  }
  for (std::size_t v = 0; v < model.variables.size(); ++v) {
    model.variables[v].attributes = std::move(of_root.variables[v].attributes);
  }
}

/// Change the file's definitions at rank 0, which knows the paths of the variables' datasets.
/// Collective: one broadcast.
Status ArrayFile::take_model(const NetcdfModel& next) {
  TAILRACE_TAKE(const Bytes paths, broadcast_from_root(*comm_, [&](ByteWriter& message) {
                  TAILRACE_TRY(comm_->named(layout_->change(next)));
                  for (std::size_t v = 0; v < next.variables.size(); ++v) {
                    message.add_text(layout_->dataset_path(v));
                  }
                  return Status();
                }));
  model_ = next;
  model_changed_ = true;
  for (std::size_t v = variables_.size(); v < model_.variables.size(); ++v) {
    variables_.emplace_back(memory_, model_.variables[v].type);
  }
  ByteReader reader(paths);
  paths_.clear();
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    ArrayVariable& variable = variables_[v];
    variable.growing = growing_dimensions(model_, model_.variables[v]);
    if (!variable.in_file()) variable.fill = fill_element(model_.variables[v]);
    variable.definition.path = reader.take_text();
    paths_.push_back(variable.definition.path);
  }
  return Status();
}

Status ArrayFile::set_variable_options(std::size_t variable, const std::string& options) {
  Status mine = check_writable();
  if (mine.ok()) mine = check_variable(variable);
  if (mine.ok() && variables_[variable].in_file()) {
    mine = Status(Code::invalid_argument,
                  quoted(variable) + " is already in the file; its options cannot change");
  }
  if (mine.ok()) {
    std::vector<std::string> own = variables_[variable].own_options;
    own.push_back(options);
    mine = local_part([&] { return try_options(variable, own); });
  }
  const std::string text = "the options of variable " + std::to_string(variable) + ": " + options;
  TAILRACE_TRY(agree_on_text(*comm_, "a variable's options", text, mine));
  variables_[variable].own_options.push_back(options);
  return Status();
}

Status ArrayFile::set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) {
  Status mine = check_open();
  if (mine.ok()) mine = check_variable(variable);
  if (mine.ok() && codec == nullptr) {
    mine = Status(Code::invalid_argument, quoted(variable) + ": the codec is NULL");
  }
  if (mine.ok() && !array_dtype(variables_[variable].type)) {
    mine = Status(Code::unsupported, quoted(variable) + " has elements that codecs cannot encode");
  }
  TAILRACE_TRY(comm_->agree(mine));
  variables_[variable].own_codec = std::move(codec);
  return Status();
}

// --- staging

Status ArrayFile::check_put(std::size_t variable, const Slab& slab, std::uint64_t n_given) const {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(check_variable(variable));
  Shape limits = model_.shape_of(model_.variables[variable]);
  constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 48;
  for (std::size_t d = 0; d < limits.size(); ++d) {
    if (variables_[variable].growing[d]) limits[d] = kMostEntries;
  }
  TAILRACE_TRY(check_slab(slab, limits).within(quoted(variable)));
  if (slab.n_elements() == n_given) return Status();
  return Status(Code::invalid_argument, quoted(variable) + ": " + std::to_string(n_given) +
                                            " values given for a slab of " +
                                            std::to_string(slab.n_elements()));
}

/// Grow the unlimited dimensions of a variable. A dataset with several names has dimensions by each
/// of them.
void ArrayFile::grow(std::size_t variable, const Slab& slab) {
  const Box box = slab.bounding_box();
  const auto grow_one = [&](const ModelVariable& it) {
    for (std::size_t d = 0; d < it.dimensions.size(); ++d) {
      ModelDimension& dimension = model_.dimensions[it.dimensions[d]];
      if (!dimension.unlimited) continue;
      dimension.length = std::max(dimension.length, box.start[d] + box.count[d]);
    }
  };
  grow_one(model_.variables[variable]);
  for (std::size_t v = 0; v < first_names_.size() && has_further_names_; ++v) {
    if (v != variable && first_names_[v] == first_name(variable)) grow_one(model_.variables[v]);
  }
}

Status ArrayFile::put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) {
  const bool known = variable < variables_.size();
  const std::size_t element = known ? model_type_bytes(variables_[variable].type) : 1;
  if (known && element == 0) {
    return note(Status(Code::unsupported, quoted(variable) + " does not hold numbers"));
  }
  TAILRACE_TRY(note(check_put(variable, slab, values.size() / element)));
  if (slab.empty()) return Status();
  ArrayVariable& staged = variables_[first_name(variable)];
  TAILRACE_TRY(note(staged.log.put(slab, values, epoch_).within(quoted(variable))));
  grow(variable, slab);
  put_bytes_ += values.size();
  return Status();
}

/// Check runs that are about to be put. @returns a slab that reaches as far as they do
Result<Slab> ArrayFile::check_runs(std::size_t variable, const ElementRuns& runs,
                                   std::uint64_t n_given) const {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(check_variable(variable));
  Shape lengths = model_.shape_of(model_.variables[variable]);
  const std::string name = quoted(variable);
  const auto wrong = [&](const std::string& why) {
    return Status(Code::invalid_argument, name + ": " + why);
  };
  if (lengths.empty() || runs.counts.size() != runs.firsts.size())
    return wrong("runs need a variable with dimensions, and one count for each start");
  std::uint64_t inner = 1;
  for (std::size_t d = 1; d < lengths.size(); ++d) {
    if (lengths[d] > 0 && inner > UINT64_MAX / lengths[d])
      return wrong("runs are not possible: an entry has more than 2^64 elements");
    inner *= lengths[d];
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs.firsts[i] > UINT64_MAX - runs.counts[i]) {
      return wrong("run " + std::to_string(i) + " ends beyond element 2^64");
    }
    end = std::max(end, runs.firsts[i] + runs.counts[i]);
  }
  if (runs.n_elements() != n_given) {
    return wrong(std::to_string(n_given) + " values given for runs of " +
                 std::to_string(runs.n_elements()));
  }
  lengths[0] = inner == 0 ? 0 : end / inner + (end % inner != 0 ? 1 : 0);
  const Slab reached = Slab::of(whole_box(lengths));
  if (end > 0 && inner == 0) return wrong("runs are not possible: the variable has no elements");
  TAILRACE_TRY(check_put(variable, reached, reached.n_elements()));
  return reached;
}

Status ArrayFile::put_runs(std::size_t variable, const ElementRuns& runs,
                           std::span<const std::byte> values) {
  const std::size_t element =
      variable < variables_.size() ? model_type_bytes(variables_[variable].type) : 0;
  if (element == 0) {
    return note(Status(Code::unsupported, "variable " + std::to_string(variable) +
                                              " does not exist or does not hold numbers"));
  }
  const Result<Slab> reached = check_runs(variable, runs, values.size() / element);
  if (!reached.ok()) return note(reached.status());
  if (runs.empty()) return Status();
  ArrayVariable& staged = variables_[first_name(variable)];
  // Element numbers stay valid only if no dimension but the slowest grows.
  if (std::find(staged.growing.begin() + 1, staged.growing.end(), true) != staged.growing.end()) {
    return note(Status(
        Code::unsupported,
        quoted(variable) + ": runs are not possible if a dimension other than the first grows"));
  }
  TAILRACE_TRY(note(staged.log.put(reached->count, runs, values, epoch_).within(quoted(variable))));
  grow(variable, *reached);
  put_bytes_ += values.size();
  return Status();
}

Status ArrayFile::put_texts(std::size_t variable, const Slab& slab,
                            std::span<const std::string> texts) {
  TAILRACE_TRY(note(check_put(variable, slab, texts.size())));
  if (variables_[variable].type != ModelType::text) {
    return note(Status(Code::unsupported, quoted(variable) + " does not hold strings"));
  }
  if (slab.empty()) return Status();
  variables_[first_name(variable)].texts.push_back({slab, {texts.begin(), texts.end()}, epoch_});
  grow(variable, slab);
  return Status();
}

std::size_t ArrayFile::first_unlimited() const {
  const auto first = std::ranges::find_if(model_.dimensions, &ModelDimension::unlimited);
  return static_cast<std::size_t>(first - model_.dimensions.begin());
}

/// Add as many numbers in any case: ranks that have diverged must still be able to meet and find
/// out.
void ArrayFile::add_to_meeting(RankNumbers& along) {
  const std::size_t first = first_unlimited();
  meeting_.short_of_memory = memory_.over_cap() ? 1 : 0;
  meeting_.length = first < model_.dimensions.size() ? model_.dimensions[first].length : 0;
  meeting_.staged = bits_of_staged();
  std::string lengths;
  for (const ModelDimension& dimension : model_.dimensions) {
    if (dimension.unlimited) lengths += std::to_string(dimension.length) + " ";
  }
  meeting_.details = std::hash<std::string>()(details_.empty() ? lengths : details_);
  meeting_.complement = ~meeting_.details;
  along.add(Reduction::max, meeting_.short_of_memory, meeting_.length, meeting_.details,
            meeting_.complement);
  along.add(Reduction::bit_or, meeting_.staged);
}

void ArrayFile::agree_on_lengths(std::span<std::uint64_t> more) {
  std::vector<std::uint64_t> facts{memory_.over_cap() ? 1U : 0U};
  for (const ModelDimension& dimension : model_.dimensions) {
    if (dimension.unlimited) facts.push_back(dimension.length);
  }
  const std::size_t n = facts.size();
  facts.insert(facts.end(), more.begin(), more.end());
  comm_->allreduce(std::span<std::uint64_t>(facts), Reduction::max);
  meeting_.short_of_memory = facts[0];
  std::size_t at = 1;
  for (ModelDimension& dimension : model_.dimensions) {
    if (dimension.unlimited) dimension.length = facts[at++];
  }
  std::copy(facts.begin() + static_cast<std::ptrdiff_t>(n), facts.end(), more.begin());
}

std::vector<bool> ArrayFile::agree_on_staged() {
  const auto n_unlimited = std::ranges::count_if(model_.dimensions, &ModelDimension::unlimited);
  if (meeting_is_current() && variables_.size() <= kBitsOfStaged &&
      (n_unlimited <= 1 || meeting_.alike())) {
    if (n_unlimited == 1) model_.dimensions[first_unlimited()].length = meeting_.length;
    std::vector<bool> staged;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      staged.push_back((meeting_.staged >> v & 1U) != 0);
    }
    return staged;
  }
  std::vector<std::uint64_t> staged;
  for (const ArrayVariable& variable : variables_) staged.push_back(variable.staged() ? 1 : 0);
  agree_on_lengths(staged);
  return {staged.begin(), staged.end()};
}

Status ArrayFile::end_collective_put() {
  TAILRACE_TRY(begin_collective());
  const auto n_unlimited = std::ranges::count_if(model_.dimensions, &ModelDimension::unlimited);
  if (n_unlimited == 1) model_.dimensions[first_unlimited()].length = meeting_.length;
  if (n_unlimited > 1 && !meeting_.alike()) agree_on_lengths({});
  if (meeting_.short_of_memory == 0) return Status();
  const std::vector<bool> staged = agree_on_staged();
  return meeting_.short_of_memory != 0 ? flush_variables(staged, true, false) : Status();
}

Status ArrayFile::sync_to_read() {
  TAILRACE_TRY(begin_collective());
  return flush_variables(agree_on_staged(), false, false);
}

Status ArrayFile::flush() {
  TAILRACE_TRY(begin_collective());
  return flush_variables(agree_on_staged(), false, false, FlushMode::define);
}

Status ArrayFile::flush_concurrently() {
  TAILRACE_TRY(begin_collective());
  return flush_variables(agree_on_staged(), false, false, FlushMode::define_concurrent);
}

// --- the end

Status ArrayFile::close() {
  TAILRACE_TRY(check_open());
  if (!writable_) return finish(false);
  Status ended = begin_collective();
  if (output_.broken().ok()) {  // values of successful puts are written even if another put failed
    const Status flushed = flush_variables(agree_on_staged(), false, true);
    if (ended.ok()) ended = flushed;
  }
  note_raw_chunks();
  // The file is closed even if memory for the remark is missing.
  if (comm_->is_root() && ended.ok()) {
    (void)local_part([&] {
      std::vector<std::string> paths;
      for (const ModelVariable& variable : model_.variables)
        paths.push_back(model_.path_of(variable));
      note_idle_options(paths, {});
      return Status();
    });
  }
  const Status finished = finish(true);
  return ended.ok() ? finished : ended;
}

Status ArrayFile::abort() {
  TAILRACE_TRY(check_open());
  return finish(false);
}

/// Close everything that is open. After an abort or a failed close, the file stays at its last
/// flush.
Status ArrayFile::finish(bool commit) {
  closed_ = true;
  drop_flight();
  lane_stock_.reset();
  variables_.clear();
  layout_.reset();
  Status finished = writable_ ? output_.close(commit && !model_changed_) : Status();
  local_reader_.reset();
  if (reader_ != nullptr) {
    const Status closed = reader_->close();
    if (finished.ok()) finished = closed;
    reader_.reset();
  }
  return finished;
}

Result<std::unique_ptr<ArrayFile>> ArrayFile::create(std::unique_ptr<Comm> comm,
                                                     const std::string& path,
                                                     const ArrayFileOptions& options,
                                                     const Status& mine, const RankNumbers& along) {
  std::unique_ptr<ArrayFile> file(new ArrayFile(std::move(comm), path, options));
  if (Status started = file->start_create(mine, along); !started.ok()) return started;
  return file;
}

Result<std::unique_ptr<ArrayFile>> ArrayFile::open(std::unique_ptr<Comm> comm,
                                                   const std::string& path, Access access,
                                                   const ArrayFileOptions& options,
                                                   const Status& mine, const RankNumbers& along) {
  std::unique_ptr<ArrayFile> file(new ArrayFile(std::move(comm), path, options));
  if (Status started = file->start_open(access, mine, along); !started.ok()) return started;
  return file;
}

// --- Opening an existing file: its model, and how each variable's dataset is stored.

namespace {

std::optional<double> number_of(const ModelAttribute* attribute) {
  if (attribute == nullptr || attribute->type != ModelType::f64 || attribute->n_values != 1) {
    return std::nullopt;
  }
  double number = 0;
  std::memcpy(&number, attribute->values.data(), sizeof number);
  return number;
}

bool same_filters(const std::vector<FilterSpec>& a, const std::vector<FilterSpec>& b) {
  const auto client_data_of = [](const FilterSpec& filter) {
    return filter.final_client_data.empty() ? filter.client_data : filter.final_client_data;
  };
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [&](const FilterSpec& one, const FilterSpec& other) {
        return one.filter_id == other.filter_id && client_data_of(one) == client_data_of(other);
      });
}

}  // namespace

Status ArrayFile::start_open(Access access, const Status& before, const RankNumbers& along) {
  writable_ = options_.read.own_output = access == Access::write;
  Status mine = before;
  if (mine.ok() && path_.empty()) {
    mine = Status(Code::invalid_argument, "the file's path is empty");
  }
  if (!writable_) TAILRACE_TRY(comm_->agree(mine, along));
  if (writable_) {
    TAILRACE_TRY(agree_on_options(mine, along));
    TAILRACE_TRY(check_mode());
    std::vector<std::string> sharing;  // Chunks of these datasets move whenever they change.
    TAILRACE_TRY(open_output(sharing));
  }
  TAILRACE_TRY(open_shared_reader());
  TAILRACE_TRY(reader_->model_status());
  model_ = reader_->model();
  for (const ModelDimension& dimension : model_.dimensions) {
    file_lengths_.push_back(dimension.length);
  }
  for (std::size_t v = 0; v < model_.variables.size(); ++v) {
    const ModelVariable& it = model_.variables[v];
    variables_.emplace_back(memory_, it.type);
    paths_.push_back(it.dataset_path.empty() ? model_.path_of(it) : it.dataset_path);
    variables_[v].growing = growing_dimensions(model_, it);
    variables_[v].fill = fill_element(it);
    TAILRACE_TRY(comm_->agree(adopt(v)));
  }
  note_first_names();
  file_paths_ = paths_;
  if (!writable_) return Status();
  Status opened;
  if (comm_->is_root()) {
    Result<std::unique_ptr<NetcdfLayout>> layout = NetcdfLayout::open(output_.file(), model_);
    opened = layout.status();
    if (layout.ok()) layout_ = std::move(*layout);
  }
  return comm_->agree(opened);
}

/// Find the variables that are further names of one dataset; they share its staged values.
void ArrayFile::note_first_names() {
  std::unordered_map<std::size_t, std::size_t> first;  // Keyed by dataset number.
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const Result<std::size_t> dataset = reader_->find(paths_[v]);  // adopt() has found it.
    const std::size_t number = dataset.ok() ? first.emplace(*dataset, v).first->second : v;
    first_names_.push_back(number);
    has_further_names_ = has_further_names_ || number != v;
  }
}

/// Adopt the storage that a dataset's header fixes. Alike on every rank.
Status ArrayFile::adopt(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  TAILRACE_TAKE(const std::size_t found, reader_->find(paths_[v]).within(quoted(v)));
  variable.stored = std::make_shared<const StoredDataset>(reader_->datasets()[found]);
  const StoredDataset& stored = *variable.stored;
  variable.places_known = false;
  variable.records_max_error = false;
  variable.swapped = stored.dtype.has_value() && !decoded_type(stored.type);
  // Readers return the dataset's own fill value for missing elements, whatever _FillValue is.
  if (!stored.fill_value.empty() && stored.fill_value.size() == variable.log.element_bytes()) {
    variable.fill = stored.fill_value;
    if (variable.swapped) std::reverse(variable.fill.begin(), variable.fill.end());
  } else if (stored.fill_value.empty()) {
    // HDF5 reads missing elements as zeros.
    variable.fill.assign(variable.fill.size(), std::byte{0});
  }
  variable.definition = define(v, stored.shape);
  variable.resolved.chunk_shape = stored.storage.chunk_shape;
  variable.resolved.layout = make_layout("claimed").value();
  switch (stored.storage.kind) {
    case StoredForm::Kind::chunked:
      variable.storage = array_dtype(variable.type) ? ArrayStorage::chunked : ArrayStorage::by_hdf5;
      break;
    case StoredForm::Kind::contiguous:
      variable.storage =
          array_dtype(variable.type) ? ArrayStorage::contiguous : ArrayStorage::by_hdf5;
      break;
    case StoredForm::Kind::compact:
    case StoredForm::Kind::nothing: variable.storage = ArrayStorage::by_hdf5; break;
  }
  return Status();
}

/// Find the stored chunks, and the codec, of touched variables of the opened file. Collective.
/// Cost: for each such variable, once, two agreements and a sparse exchange.
Status ArrayFile::load_places(const ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.places_known || variable.storage == ArrayStorage::by_hdf5) continue;
    const ChunkGrid grid{shape_of(v), variable.resolved.chunk_shape};
    std::vector<StoredChunk> chunks;
    Status mine;
    if (variable.storage == ArrayStorage::chunked) mine = make_existing_codec(v);
    if (comm_->is_root() && mine.ok()) {
      Result<std::vector<StoredChunk>> found = stored_chunks(v, grid);
      mine = found.status();
      if (found.ok()) chunks = std::move(*found);
    }
    TAILRACE_TRY(comm_->agree(mine.within(quoted(v))));
    if (variable.storage == ArrayStorage::contiguous) {
      variable.address = chunks.empty() ? 0 : chunks.front().extent.address;
      comm_->allreduce(std::span<std::uint64_t>(&variable.address, 1), Reduction::max);
      // No space is allocated yet; HDF5 allocates it when it writes.
      if (variable.address == 0) variable.storage = ArrayStorage::by_hdf5;
    } else {
      const Status loaded = places_.load(*comm_, {v, grid, {}, variable.growing}, chunks);
      TAILRACE_TRY(comm_->agree(loaded));
    }
    variable.places_known = true;
  }
  return Status();
}

/// Read a variable's chunk list, numbered in a grid at least as large as the file's. Rank 0.
Result<std::vector<StoredChunk>> ArrayFile::stored_chunks(std::size_t v, const ChunkGrid& grid) {
  TAILRACE_TAKE(const std::unique_ptr<ChunkIndexReader> reader, ChunkIndexReader::open(path_));
  TAILRACE_TAKE(std::vector<StoredChunk> chunks, reader->read(file_paths_[v]));
  if (variables_[v].storage != ArrayStorage::chunked) return chunks;
  // The dataset grows with its dimensions at every flush, even if its values are not touched.
  const ChunkGrid in_file{reader->shape(), grid.chunk_shape};
  const Shape n_per_dimension = grid.n_per_dimension();
  for (StoredChunk& chunk : chunks) {
    const Shape at = in_file.coordinates(chunk.chunk_index);
    if (!std::ranges::equal(at, n_per_dimension, std::less<>())) {
      return Status(Code::internal, "its extents in the file, " + shape_text(reader->shape()) +
                                        ", exceed its dimensions, " + shape_text(grid.shape));
    }
    chunk.chunk_index = grid.index_of(at);
  }
  return chunks;
}

Status ArrayFile::make_existing_codec(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const StoredDataset& dataset = *variable.stored;
  if (variable.own_codec != nullptr) {
    if (!variable.swapped) {
      variable.resolved.codec = share_codec(variable.own_codec);
      return Status();
    }
    return Status(Code::unsupported, "a codec of the caller cannot convert the file's byte order");
  }
  if (!variable.stored->dtype && variable.type != ModelType::text_char) {
    return Status(Code::unsupported,
                  "elements of type " + dataset.type_text + " cannot be written here");
  }
  if (!variable.swapped && variable.stored->dtype) {
    TAILRACE_TRY(continue_own(v));
    if (variable.resolved.codec != nullptr || continue_lossy(v)) return Status();
  }
  TAILRACE_TAKE(auto stored,
                make_stored_codec(dataset, dataset.storage, options_.file.plugin_path));
  if (variable.swapped && stored->lossy()) {
    return Status(
        Code::unsupported,
        "values in another byte order than this machine's cannot be written with lossy filters");
  }
  variable.resolved.codec =
      existing_codec(std::move(stored), variable.swapped ? variable.log.element_bytes() : 1);
  variable.resolved.verify = false;
  return Status();
}

/// Continue with trz if the header's filter is trz, with the guards in the attributes. No codec is
/// set for other filters.
Status ArrayFile::continue_own(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const StoredDataset& dataset = *variable.stored;
  const std::string recorded = model_.variables[v].text_attribute(kGuardAttribute);
  const auto continued = [filters = dataset.storage.filters, dtype = *dataset.dtype,
                          chunk = dataset.storage.chunk_shape](const ValueGuards& guards) {
    return continued_codec(filters, dtype, chunk, guards);
  };
  variable.resolved.codec = continued({});
  if (variable.resolved.codec == nullptr || recorded.empty()) return Status();
  if (!variable.resolved.codec->lossy()) return Status();
  const Guards& guards = variable.resolved.stored_guards;
  TAILRACE_TAKE(variable.resolved.stored_guards, guards_to_continue(recorded));
  variable.resolved.codec = continued(ValueGuards(guards, 0, 0));
  return tighten_stored(guards, dataset.shape, dtype_bytes(*dataset.dtype), continued,
                        variable.resolved.codec);
}

/// Continue with a lossy plug-in if the variable's attributes record codec and bound, and these
/// reproduce the header's client data exactly. @returns true if so
bool ArrayFile::continue_lossy(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const ModelVariable& it = model_.variables[v];
  CodecRequest request;
  request.name = it.text_attribute("tailrace_codec");
  const std::string mode = it.text_attribute("tailrace_bound_mode");
  const std::optional<double> bound = number_of(it.attribute("tailrace_absolute_bound"));
  const CodecEntry& entry = codec_entry(request.name);
  if (entry.loss != Loss::by_purpose || !(entry.plugin || entry.rounds_before)) return false;
  if (mode != "abs" && mode != "rel" && mode != "psnr") return false;
  if (!bound || !(*bound > 0) || !std::isfinite(*bound)) return false;
  const StoredDataset& dataset = *variable.stored;
  request.dtype = *variable.stored->dtype;
  if (!is_floating(request.dtype)) return false;
  request.chunk_shape = dataset.storage.chunk_shape;
  request.absolute_bound = *bound;
  request.fill_value = kept_value(it);
  const bool has_fill =
      it.attribute("_FillValue") != nullptr || it.attribute("missing_value") != nullptr;
  if (!has_fill && !it.no_fill) request.fill_value = element_number(it.type, variable.fill);
  if (entry.rounds_before) request.settings = deflate_settings_of(dataset.storage.filters);
  Result<std::unique_ptr<Codec>> codec = make_codec(request, options_.file.plugin_path);
  if (!codec.ok() || !same_filters((*codec)->filters(), dataset.storage.filters)) return false;
  variable.resolved.codec = std::move(*codec);
  variable.resolved.absolute_bound = *bound;
  variable.definition.options.fill_value = request.fill_value;
  const std::optional<double> max_error = number_of(it.attribute("tailrace_max_error"));
  // A recorded error must also hold for new values.
  variable.resolved.verify =
      !variable.resolved.codec->keeps_bound_by_construction() || max_error.has_value();
  variable.records_max_error = max_error.has_value();
  variable.max_error = max_error.value_or(0);
  return true;
}

// --- Reading an ArrayFile: the file's values by a Reader, overlaid with this rank's staged ones.
//
// A rank may read independently at any time, so it opens a reader of its own for the last flush.
// Collective reads (get_all, a file opened for reading) share one reader.

/// Close all readers before a commit. HDF5 returns a file that the process has open already, with
/// its cached metadata, to anyone who opens it again. So no handle used for later reads may stay
/// open over a commit. Collective.
void ArrayFile::prepare_publish() {
  local_reader_.reset();
  if (reader_ == nullptr) return;
  static_cast<void>(reader_->close());
  reader_.reset();
}

/// Return a reader that sees the last flush: the shared one if open, else this rank's own. Not
/// collective.
Result<Reader*> ArrayFile::fresh_reader() {
  if (reader_ != nullptr) return reader_.get();
  if (local_reader_ == nullptr) {
    see_last_commit(*comm_, path_);
    TAILRACE_TAKE(local_reader_, Reader::open(make_self_comm(), path_, options_.read));
  }
  return local_reader_.get();
}

/// Open the shared reader, which sees the last flush. Collective.
Status ArrayFile::open_shared_reader() {
  if (reader_ != nullptr) return Status();
  see_last_commit(*comm_, path_);
  TAILRACE_TAKE(reader_,
                Reader::open(std::make_unique<BorrowedComm>(*comm_), path_, options_.read));
  return Status();
}

Status ArrayFile::check_get(std::size_t v, const Slab& slab, std::uint64_t n_given) const {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(check_variable(v));
  TAILRACE_TRY(check_slab(slab, model_.shape_of(model_.variables[v])).within(quoted(v)));
  const std::uint64_t n = slab.n_elements();
  if (n_given == n) return Status();
  return Status(Code::invalid_argument, quoted(v) + ": room for " + std::to_string(n_given) +
                                            " values, the slab has " + std::to_string(n));
}

Status ArrayFile::get(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const std::size_t element =
      v < variables_.size() ? model_type_bytes(variables_[v].type) : std::size_t{1};
  if (element == 0) return Status(Code::unsupported, quoted(v) + " does not hold numbers");
  TAILRACE_TRY(check_get(v, slab, values.size() / element));
  if (slab.empty()) return Status();
  TAILRACE_TRY(read_file(v, slab, values).within(quoted(v)));
  variables_[first_name(v)].log.lay_over(slab, values);
  return Status();
}

/// Read the values at the last flush, or fill values where the file has none.
Status ArrayFile::read_file(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const ArrayVariable& variable = variables_[v];
  if (!variable.in_file() || !in_place()) {
    fill_values(values, variable.fill);
    return Status();
  }
  TAILRACE_TAKE(Reader* const reader, fresh_reader());
  TAILRACE_TAKE(const std::size_t dataset, reader->find(file_paths_[v]));
  TAILRACE_TRY(use_own_codec(v, *reader, dataset));
  return read_padded(*reader, dataset, slab, variable.fill, values);
}

/// Have a reader decode a variable by the caller's codec, if it has one.
Status ArrayFile::use_own_codec(std::size_t v, Reader& reader, std::size_t dataset) const {
  if (variables_[v].own_codec == nullptr || !reader.datasets()[dataset].chunked()) return Status();
  if (variables_[v].swapped) {
    return Status(Code::unsupported, "a codec of the caller cannot convert the file's byte order");
  }
  return reader.use_codec(dataset, variables_[v].own_codec);
}

Status ArrayFile::get_all(std::span<const ReadRequest> requests) {
  Status mine = check_open();
  if (mine.ok()) mine = output_.broken();
  for (const ReadRequest& request : requests) {
    if (mine.ok()) mine = check_get(request.dataset, request.slab, request.slab.n_elements());
    if (mine.ok() && model_type_bytes(variables_[request.dataset].type) == 0) {
      mine = Status(Code::unsupported, quoted(request.dataset) + " does not hold numbers");
    }
  }
  TAILRACE_TRY(comm_->agree(mine));
  if (writable_) {
    TAILRACE_TRY(begin_collective());
    const std::vector<bool> staged = agree_on_staged();
    std::vector<std::uint64_t> wanted(staged.size(), 0);
    for (const ReadRequest& request : requests) wanted[first_name(request.dataset)] = 1;
    comm_->allreduce(std::span<std::uint64_t>(wanted), Reduction::max);
    bool waits = !output_.in_place();
    for (std::size_t v = 0; v < staged.size(); ++v) waits = waits || (staged[v] && wanted[v] != 0);
    for (std::size_t d = 0; d < file_lengths_.size(); ++d) {
      waits = waits || model_.dimensions[d].length > file_lengths_[d];
    }
    if (waits) TAILRACE_TRY(flush_variables(staged, false, false));
  }
  TAILRACE_TRY(open_shared_reader());
  PaddedReads known;
  for (const ReadRequest& request : requests) {
    if (request.slab.empty()) continue;
    const ArrayVariable& variable = variables_[request.dataset];
    const std::uint64_t n_bytes = request.slab.n_elements() * variable.log.element_bytes();
    if (!variable.in_file()) {  // Defined since the last flush, and never put.
      fill_values({request.values, n_bytes}, variable.fill);
      continue;
    }
    const Result<std::size_t> dataset = reader_->find(file_paths_[request.dataset]);
    Status found = dataset.status();
    if (found.ok()) found = use_own_codec(request.dataset, *reader_, *dataset);
    if (!found.ok()) {
      if (mine.ok()) mine = found.within(quoted(request.dataset));
      continue;
    }
    known.add(*reader_, {*dataset, request.slab, request.values}, variable.fill);
  }
  const Status read = known.read_all(*reader_);
  return read.ok() ? comm_->agree(mine) : read;
}

Result<std::vector<std::string>> ArrayFile::get_texts(std::size_t v, const Slab& slab) {
  TAILRACE_TRY(check_get(v, slab, slab.n_elements()));
  if (variables_[v].type != ModelType::text) {
    return Status(Code::unsupported, quoted(v) + " does not hold strings");
  }
  std::vector<std::string> texts(slab.n_elements());
  if (variables_[v].in_file() && in_place()) {
    TAILRACE_TAKE(Reader* const reader, fresh_reader());
    TAILRACE_TAKE(const std::size_t dataset, reader->find(file_paths_[v]));
    TAILRACE_TAKE(texts, read_texts_padded(*reader, dataset, slab));
  }
  for (const StagedTexts& staged : variables_[first_name(v)].texts) {
    place_texts(staged.slab, staged.texts, slab, texts);
  }
  return texts;
}

/// Copy the texts of `from` that `to` includes to their positions.
void ArrayFile::place_texts(const Slab& from, const std::vector<std::string>& texts, const Slab& to,
                            std::vector<std::string>& target) {
  std::size_t i = 0;
  for_each_position(from.dense_box(), [&](const Shape& at) {
    const std::string& text = texts[i++];
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::uint64_t position = from.start[d] + at[d] * from.stride_of(d);
      if (position < to.start[d]) return;
      const std::uint64_t steps = position - to.start[d];
      if (steps % to.stride_of(d) != 0 || steps / to.stride_of(d) >= to.count[d]) return;
      index = index * to.count[d] + steps / to.stride_of(d);
    }
    target[index] = text;
  });
}

}  // namespace tailrace
