// The calls of an ArrayFile, but for flush and get.

#include "array_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "array_engine.hpp"
#include "core/agree_on_text.hpp"
#include "core/byte_stream.hpp"
#include "exec/comm_factory.hpp"
#include "write.hpp"

namespace tailrace {

namespace {

/// What of the memory cap is for staging: half, as long as the other half encodes a small chunk.
std::uint64_t staging_bytes(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kSmallCapBytes = 3U << 20;
  return memory_bytes < kSmallCapBytes ? memory_bytes / 8 : memory_bytes / 2;
}

}  // namespace

NetcdfArrayFile::NetcdfArrayFile(std::unique_ptr<Comm> comm, std::string path,
                                 const ArrayFileOptions& options)
    : comm_(std::move(comm)),
      path_(std::move(path)),
      options_(options),
      memory_(staging_bytes(options.file.memory_bytes), options.spill_folder) {
  if (options_.file.direct_io) {
    options_.file.alignment_bytes = std::max<std::uint64_t>(options_.file.alignment_bytes, 4096);
  }
}

/// Without close() this rank may be alone here, so nothing collective happens.
NetcdfArrayFile::~NetcdfArrayFile() {
  if (closed_) return;
  comm_->abandon();
  if (output_.tail != nullptr) output_.tail->abandon();
  layout_.reset();
  output_.file.reset();
  if (comm_->is_root() && output_.storage != nullptr && !in_place_) {
    ::unlink((path_ + partial_suffix).c_str());
  }
}

std::string NetcdfArrayFile::quoted(std::size_t variable) const {
  return "variable \"" + model_.path_of(model_.variables[variable]) + "\"";
}

double NetcdfArrayFile::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - born_).count();
}

// --- opening

Status NetcdfArrayFile::start_create() {
  std::string text = output_text(path_, options_.file);
  for (const auto& [pattern, of_variable] : options_.variable_options) {
    text += "variables " + pattern + ": " + of_variable + "\n";
  }
  TAILRACE_TRY(comm_->agree(agree_on_text(*comm_, "the file", text)));
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  TAILRACE_TRY(create_output(*comm_, path_, options_.file, output_));
  writable_ = true;
  model_.netcdf4 = true;
  model_changed_ = true;
  Status made;
  if (comm_->is_root()) {
    Result<std::unique_ptr<NetcdfLayout>> layout = NetcdfLayout::create(*output_.file);
    made = layout.status();
    if (layout.ok()) layout_ = std::move(*layout);
  }
  return comm_->agree(made);
}

// --- definitions

Status NetcdfArrayFile::check_open() const {
  if (closed_) return Status(Code::invalid_argument, "file \"" + path_ + "\" is closed");
  return Status();
}

Status NetcdfArrayFile::check_writable() const {
  TAILRACE_TRY(check_open());
  if (writable_) return Status();
  return Status(Code::invalid_argument, "file \"" + path_ + "\" was opened for reading");
}

Status NetcdfArrayFile::check_variable(std::size_t variable) const {
  if (variable < variables_.size()) return Status();
  return Status(Code::invalid_argument,
                "file \"" + path_ + "\" has " + std::to_string(variables_.size()) +
                    " variables, none of number " + std::to_string(variable));
}

/// Keep the first failure of this rank's puts, for the next collective call. @returns `failure`.
Status NetcdfArrayFile::note(const Status& failure) {
  if (put_status_.ok()) put_status_ = failure;
  return failure;
}

/// What every collective call begins with: whether some rank's put has failed since the last one.
/// What is put from now on is later than what any rank has put before.
Status NetcdfArrayFile::begin_collective() {
  if (comm_->n_ranks() > 1) ++epoch_;  // alone, the order of the puts says it all
  Status mine = check_writable();
  if (mine.ok()) mine = broken_;
  if (mine.ok()) mine = std::exchange(put_status_, Status());
  put_status_ = Status();
  return comm_->agree(mine);
}

Status NetcdfArrayFile::change_model(const NetcdfModel& next) {
  TAILRACE_TRY(begin_collective());
  // Lengths of unlimited dimensions are each rank's own until they are agreed on.
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
    mine = Status(Code::invalid_argument, "variables cannot be deleted");
  }
  TAILRACE_TRY(comm_->agree(mine));
  TAILRACE_TRY(comm_->agree(agree_on_text(*comm_, "the definitions", model_text(agreed))));
  comm_->allreduce(std::span<std::uint64_t>(lengths), Reduction::max);
  for (std::size_t d = 0; d < lengths.size(); ++d) agreed.dimensions[d].length = lengths[d];
  return take_model(agreed);
}

Status NetcdfArrayFile::take_model(const NetcdfModel& next) {
  TAILRACE_TRY(comm_->agree(comm_->is_root() ? layout_->change(next) : Status()));
  model_ = next;
  model_changed_ = true;
  for (std::size_t v = variables_.size(); v < model_.variables.size(); ++v) {
    variables_.emplace_back(memory_, model_.variables[v].type);
  }
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    ArrayVariable& variable = variables_[v];
    variable.growing = growing_dimensions(model_, model_.variables[v]);
    if (!variable.in_file()) variable.fill = fill_element(model_.variables[v]);
  }
  share_paths();
  return Status();
}

/// Rank 0 knows how the variables' datasets are called.
void NetcdfArrayFile::share_paths() {
  ByteWriter writer;
  if (comm_->is_root()) {
    for (std::size_t v = 0; v < variables_.size(); ++v) writer.add_text(layout_->dataset_path(v));
  }
  Bytes bytes = writer.take();
  comm_->broadcast(bytes, 0);
  ByteReader reader(bytes);
  paths_.clear();
  while (!reader.at_end()) {
    variables_[paths_.size()].field.definition.path = reader.take_text();
    paths_.push_back(variables_[paths_.size()].field.definition.path);
  }
}

Status NetcdfArrayFile::set_variable_options(std::size_t variable, const std::string& options) {
  Status mine = check_writable();
  if (mine.ok()) mine = check_variable(variable);
  if (mine.ok() && variables_[variable].in_file()) {
    mine = Status(Code::invalid_argument,
                  quoted(variable) + " is in the file; its options stand in its header");
  }
  if (mine.ok()) {
    std::vector<std::string> own = variables_[variable].own_options;
    own.push_back(options);
    mine = variable_options(model_, variable, options_, own).status();
  }
  TAILRACE_TRY(comm_->agree(mine));
  const std::string text = std::to_string(variable) + ": " + options;
  TAILRACE_TRY(comm_->agree(agree_on_text(*comm_, "a variable's options", text)));
  variables_[variable].own_options.push_back(options);
  return Status();
}

Status NetcdfArrayFile::set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) {
  Status mine = check_open();
  if (mine.ok()) mine = check_variable(variable);
  if (mine.ok() && codec == nullptr) mine = Status(Code::invalid_argument, "no codec was given");
  if (mine.ok() && !array_dtype(variables_[variable].type)) {
    mine = Status(Code::unsupported, quoted(variable) + " has elements that codecs cannot encode");
  }
  TAILRACE_TRY(comm_->agree(mine));
  variables_[variable].own_codec = std::move(codec);
  return Status();
}

// --- staging

Status NetcdfArrayFile::check_put(std::size_t variable, const Slab& slab,
                                  std::uint64_t n_given) const {
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
                                            " values for a slab of " +
                                            std::to_string(slab.n_elements()));
}

void NetcdfArrayFile::grow(std::size_t variable, const Slab& slab) {
  const ModelVariable& it = model_.variables[variable];
  const Box box = slab.bounding_box();
  for (std::size_t d = 0; d < it.dimensions.size(); ++d) {
    ModelDimension& dimension = model_.dimensions[it.dimensions[d]];
    if (!dimension.unlimited) continue;
    dimension.length = std::max(dimension.length, box.start[d] + box.count[d]);
  }
}

Status NetcdfArrayFile::put(std::size_t variable, const Slab& slab,
                            std::span<const std::byte> values) {
  const bool known = variable < variables_.size();
  const std::size_t element = known ? model_type_bytes(variables_[variable].type) : 1;
  if (known && element == 0) {
    return note(Status(Code::unsupported, quoted(variable) + " holds no numbers"));
  }
  TAILRACE_TRY(note(check_put(variable, slab, values.size() / element)));
  if (slab.empty()) return Status();
  TAILRACE_TRY(note(variables_[variable].log.put(slab, values, epoch_).within(quoted(variable))));
  grow(variable, slab);
  put_bytes_ += values.size();
  return Status();
}

Status NetcdfArrayFile::put_texts(std::size_t variable, const Slab& slab,
                                  std::span<const std::string> texts) {
  TAILRACE_TRY(note(check_put(variable, slab, texts.size())));
  if (variables_[variable].type != ModelType::text) {
    return note(Status(Code::unsupported, quoted(variable) + " does not hold texts"));
  }
  if (slab.empty()) return Status();
  variables_[variable].texts.push_back({slab, {texts.begin(), texts.end()}});
  grow(variable, slab);
  return Status();
}

/// Bring lengths, and who has staged something, together. Collective: one allreduce.
std::vector<bool> NetcdfArrayFile::agree_on_staged(bool& over_cap) {
  std::vector<std::uint64_t> facts{memory_.over_cap() ? 1U : 0U};
  for (const ModelDimension& dimension : model_.dimensions) facts.push_back(dimension.length);
  for (const ArrayVariable& variable : variables_) facts.push_back(variable.staged() ? 1 : 0);
  comm_->allreduce(std::span<std::uint64_t>(facts), Reduction::max);
  over_cap = facts[0] != 0;
  std::size_t at = 1;
  for (ModelDimension& dimension : model_.dimensions) {
    if (dimension.unlimited) dimension.length = facts[at];
    ++at;
  }
  std::vector<bool> staged;
  for (; at < facts.size(); ++at) staged.push_back(facts[at] != 0);
  return staged;
}

Status NetcdfArrayFile::settle() {
  TAILRACE_TRY(begin_collective());
  bool over_cap = false;
  const std::vector<bool> staged = agree_on_staged(over_cap);
  return over_cap ? flush_variables(staged, true, false) : Status();
}

Status NetcdfArrayFile::flush() {
  TAILRACE_TRY(begin_collective());
  bool over_cap = false;
  const std::vector<bool> staged = agree_on_staged(over_cap);
  return flush_variables(staged, false, false);
}

// --- the end

Status NetcdfArrayFile::close() {
  TAILRACE_TRY(check_open());
  if (!writable_) return finish(false);
  Status ended = begin_collective();
  if (broken_.ok()) {  // what other puts have staged is written also after one that failed
    bool over_cap = false;
    const std::vector<bool> staged = agree_on_staged(over_cap);
    const Status flushed = flush_variables(staged, false, true);
    if (ended.ok()) ended = flushed;
  }
  const Status finished = finish(true);
  return ended.ok() ? finished : ended;
}

Status NetcdfArrayFile::abort() {
  TAILRACE_TRY(check_open());
  return finish(false);
}

/// Close what is open. After an abort, or a failed close, the file stays at its last flush.
Status NetcdfArrayFile::finish(bool commit) {
  closed_ = true;
  variables_.clear();
  Status finished;
  layout_.reset();
  if (comm_->is_root() && output_.storage != nullptr) {
    if (commit && broken_.ok() && in_place_ && !model_changed_) finished = output_.file->close();
    output_.file.reset();
    if (!in_place_) ::unlink((path_ + partial_suffix).c_str());
  }
  local_reader_.reset();
  if (reader_ != nullptr) {
    const Status closed = reader_->close();
    if (finished.ok()) finished = closed;
    reader_.reset();
  }
  finished = comm_->agree(finished);
  output_.storage.reset();
  output_.tail.reset();
  return finished;
}

Result<std::unique_ptr<ArrayFile>> ArrayFile::create(std::unique_ptr<Comm> comm,
                                                     const std::string& path,
                                                     const ArrayFileOptions& options) {
  auto file = std::make_unique<NetcdfArrayFile>(std::move(comm), path, options);
  if (Status started = file->start_create(); !started.ok()) return started;
  return std::unique_ptr<ArrayFile>(std::move(file));
}

Result<std::unique_ptr<ArrayFile>> ArrayFile::open(std::unique_ptr<Comm> comm,
                                                   const std::string& path, Access access,
                                                   const ArrayFileOptions& options) {
  auto file = std::make_unique<NetcdfArrayFile>(std::move(comm), path, options);
  if (Status started = file->start_open(access); !started.ok()) return started;
  return std::unique_ptr<ArrayFile>(std::move(file));
}

}  // namespace tailrace
