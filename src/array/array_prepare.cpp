// Decisions at a variable's first flush: chunk shape, bound, codec, layout; identical on all ranks.
//
// A variable that cannot be stored is left out of the flush. It stays staged, the flush returns its
// error, and the other variables are written. set_variable_options() already refuses what can be
// detected earlier.

#include <algorithm>
#include <optional>
#include <utility>

#include "array/array_file.hpp"
#include "array/staged_ranges.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "core/encoding_notes.hpp"
#include "describe/input_bytes.hpp"
#include "exec/encode_lane.hpp"
#include "field/candidates.hpp"
#include "field/codec_choice.hpp"
#include "field/range_evidence.hpp"
#include "layout/layout.hpp"
#include "policy/door_rules.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {

namespace {

/// Store a field that codec=auto leaves uncompressed in a dataset with filters, which every chunk
/// skips. Without filters, HDF5 keeps a chunk's place forever, so a rewrite would have to overwrite
/// it.
Status skip_filters(FieldState& field) {
  CodecRequest request = codec_request(field.definition, field.resolved);
  request.name = kExactCodec;
  request.settings.clear();
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(request, ""));
  field.resolved.codec = skipping_codec(std::move(codec));
  return Status();
}

Status check_chunk(const std::string& what, const Shape& chunk, std::uint64_t element_bytes) {
  if (n_elements(chunk) <= largest_chunk_bytes / element_bytes) return Status();
  return Status(Code::invalid_argument, what + ": a chunk of " + shape_text(chunk) +
                                            " is larger than " + bytes_text(largest_chunk_bytes) +
                                            "; choose a smaller chunk=");
}

}  // namespace

/// Describe the variable as a field of the engine, without its options.
FieldDefinition ArrayFile::define(std::size_t v, const Shape& shape) const {
  const std::vector<bool>& growing = variables_[v].growing;
  FieldDefinition definition;
  definition.path = paths_[v];
  definition.dtype = array_dtype(variables_[v].type).value_or(DType::u8);
  definition.shape = shape;
  for (std::size_t d = 0; d < growing.size(); ++d) {
    if (d == 0) definition.extendable = growing[0];
    if (d > 0 && growing[d]) definition.more_unlimited |= std::uint64_t{1} << d;
  }
  return definition;
}

Result<FieldDefinition> ArrayFile::define_new(std::size_t v, ModelRoles& roles,
                                              const std::vector<std::string>& own_options) const {
  const ArrayVariable& variable = variables_[v];
  TAILRACE_TAKE(FieldOptions options, variable_options(model_, v, roles, options_, own_options));
  if (variable.own_codec != nullptr) {
    options.codec = plain_codec;
    options.codec_settings.clear();
    options.codec_given = true;
  }
  FieldDefinition definition = define(v, shape_of(v));
  TAILRACE_TAKE(StorageDecision decision, decide(facts_of(definition),
                                                 {std::move(options), options_.file.compatibility,
                                                  options_.file.memory_bytes},
                                                 options_.file.door)
                                              .within(definition.name()));
  FieldOptions& made = definition.options;
  made = std::move(decision.options);
  TAILRACE_TRY(check_front_of_file(made).within(definition.name()));
  if (variable.own_codec != nullptr && !made.guards.empty()) {
    return Status(Code::unsupported,
                  definition.name() +
                      ": a codec of the caller cannot keep guard=" + guards_text(made.guards));
  }
  TAILRACE_TRY(check_definition(definition));
  if (codec_is_ours_to_choose(made)) TAILRACE_TRY(check_chosen_settings(definition));
  return definition;
}

/// Choose chunks that follow the boxes that were put. Not collective; the same on every rank.
Status ArrayFile::choose_shape(std::size_t v, const DecompositionFacts& facts,
                               FieldState& field) const {
  const ArrayVariable& variable = variables_[v];
  const FieldDefinition& definition = field.definition;
  Shape& chunk = field.resolved.chunk_shape;
  const DatasetFacts of_dataset = facts_of(definition);
  Shape limits = definition.shape;
  for (std::size_t d = 0; d < limits.size(); ++d) {
    if (variable.growing[d]) limits[d] = UINT64_MAX;
  }
  chunk = choose_chunks(of_dataset, definition.options, limits, facts, options_.file.door);
  // Contiguous values are written as they are, whatever their number.
  if (has_nothing_to_compress(of_dataset) || definition.options.layout == "contiguous") {
    return Status();
  }
  return check_chunk(quoted(v), chunk, of_dataset.element_bytes);
}

/// Refuse chunks that do not fit the memory cap for encoding, as the executor does. Not collective.
Status ArrayFile::check_memory(const FieldPlan& plan) const {
  const std::uint64_t needed = encode_memory_bytes(plan);
  const std::uint64_t cap_bytes = options_.file.memory_bytes - memory_.cap_bytes();
  if (needed <= cap_bytes) return Status();
  return Status(Code::out_of_memory,
                "variable \"" + plan.path + "\": a chunk of " + bytes_text(plan.chunk_bytes()) +
                    " needs " + bytes_text(needed) + " to be encoded with " +
                    std::string(plan.codec->name()) + ", the memory cap leaves " +
                    bytes_text(cap_bytes) + "; raise memory= or lower chunk=");
}

/// Refuse options with which the variable could not be stored, before values are put. Chunks that
/// follow the boxes are not known yet, so chunks of the variable's full shape and of one row are
/// tried. Not collective.
Status ArrayFile::try_options(std::size_t v, const std::vector<std::string>& own_options) const {
  if (!array_dtype(variables_[v].type)) return Status();
  std::vector<FieldState> fields(1);
  ModelRoles roles(model_);
  TAILRACE_TAKE(fields[0].definition, define_new(v, roles, own_options));
  FieldOptions& tried_options = fields[0].definition.options;
  // A target determines the bound from values; until then, any bound substitutes for it.
  if (options_.file.has_target() && !tried_options.bound_given &&
      is_floating(fields[0].definition.dtype)) {
    tried_options.bound = {BoundMode::abs, 1};
  }
  const FieldDefinition& definition = fields[0].definition;
  DecompositionFacts facts;
  facts.cut_gcd = definition.shape;
  for (std::uint64_t& extent : facts.cut_gcd) extent = std::max<std::uint64_t>(extent, 1);
  facts.largest_box = facts.cut_gcd;
  TAILRACE_TRY(choose_shape(v, facts, fields[0]));
  const FieldDefinition wanted = definition;
  BorrowedComm comm(*comm_);
  Status tried = try_codecs(comm, fields, options_.file.plugin_path);
  const bool chosen = codec_is_ours_to_choose(wanted.options);
  if (tried.ok() && wanted.options.chunk_shape && !chosen && !stored_plainly(wanted)) {
    return check_memory(field_plan(v, wanted, fields[0].resolved));
  }
  if (tried.ok() || wanted.options.chunk_shape || wanted.shape.empty()) return tried;
  fields[0].definition = wanted;
  fields[0].resolved.chunk_shape[0] = 1;
  return try_codecs(comm, fields, options_.file.plugin_path).ok() ? Status() : tried;
}

Result<bool> ArrayFile::try_variable(const NetcdfModel& next, const std::string& options) {
  bool lossy = false;
  Status mine = check_writable();
  if (mine.ok() && next.variables.size() != variables_.size() + 1) {
    mine = Status(Code::invalid_argument, "only one new variable can be tried at a time");
  }
  if (mine.ok()) {
    NetcdfModel now = std::exchange(model_, next);
    mine = local_part([&]() -> Status {
      const ModelVariable& added = model_.variables.back();
      ArrayVariable& tried = variables_.emplace_back(memory_, added.type);
      tried.growing = growing_dimensions(model_, added);
      tried.fill = fill_element(added);
      if (!options.empty()) tried.own_options = {options};
      paths_.push_back(netcdf4_dataset_path(model_, added));
      TAILRACE_TRY(try_options(variables_.size() - 1, tried.own_options));
      TAILRACE_TAKE(lossy, may_lose(variables_.size() - 1));
      return Status();
    });
    model_ = std::move(now);
    variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(model_.variables.size()),
                     variables_.end());
    paths_.resize(model_.variables.size());
  }
  TAILRACE_TRY(agree_on_text(*comm_, "a variable's options", options, mine));
  return lossy;
}

std::vector<bool> ArrayFile::definable(bool closing) const {
  std::vector<bool> found(variables_.size(), true);
  if (closing) return found;
  std::optional<ModelRoles> roles;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].in_file() || !array_dtype(variables_[v].type)) continue;
    if (!roles) roles.emplace(model_);
    const Result<FieldDefinition> definition = define_new(v, *roles, variables_[v].own_options);
    if (!definition.ok()) {  // Refused with its first values, or on close.
      found[v] = false;
      continue;
    }
    const FieldOptions& options = definition->options;
    const bool by_values = codec_is_ours_to_choose(options) || options.bound.needs_range() ||
                           options_.file.has_target();
    found[v] = !by_values || stored_plainly(*definition);
  }
  return found;
}

Result<bool> ArrayFile::may_lose(std::size_t variable) const {
  TAILRACE_TRY(check_variable(variable));
  const ArrayVariable& it = variables_[variable];
  const std::optional<DType> dtype = array_dtype(it.type);
  if (!dtype || !is_floating(*dtype)) return false;
  if (it.in_file() && it.resolved.codec != nullptr) return it.resolved.codec->lossy();
  if (it.in_file()) {
    const std::string mode = model_.variables[variable].text_attribute(kBoundModeAttribute);
    return !mode.empty() && mode != bound_mode_name(BoundMode::none);
  }
  ModelRoles roles(model_);
  TAILRACE_TAKE(const FieldDefinition field, define_new(variable, roles, it.own_options));
  if (stored_plainly(field)) return false;
  return tailrace::may_lose(field.options, true, options_.file.has_target());
}

/// Leave out the variables that cannot be stored on some rank. They stay staged, and the others are
/// written. Collective: one agreement, and one per variable if any is refused.
/// @param mine  this rank's status, per field.  @error failures that do not concern single
/// variables
Status ArrayFile::leave_out_refused(ArrayFlush& flush, const std::vector<Status>& mine,
                                    std::vector<std::size_t>& numbers,
                                    std::vector<FieldState>& fields) {
  const auto failed = std::ranges::find_if_not(mine, &Status::ok);
  const Status all = comm_->agree(failed == mine.end() ? Status() : *failed);
  if (all.ok()) return all;
  bool found = false;
  for (std::size_t i = mine.size(); i-- > 0;) {
    const Status refused = comm_->agree(mine[i]);
    if (refused.ok()) continue;
    found = true;
    flush.refused = refused;
    std::erase(flush.variables, numbers[i]);
    std::erase(flush.created, numbers[i]);
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(i));
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return found ? Status() : all;  // Otherwise the ranks disagree.
}

/// Decide how the variables that get a dataset now are stored. Errors are agreed. Collective. Cost:
/// two agreements; a broadcast once per file, if a variable is compressed; more if codecs or bounds
/// depend on values, or if a variable is refused.
Status ArrayFile::prepare_new(ArrayFlush& flush) {
  if (flush.created.empty()) return Status();
  std::vector<std::size_t> numbers;  // variables with elements that the engine handles
  std::vector<FieldState> fields;
  std::vector<Status> mine;
  ModelRoles roles(model_);
  for (const std::size_t v : flush.created) {
    if (!array_dtype(variables_[v].type)) {
      variables_[v].storage = ArrayStorage::by_hdf5;
      variables_[v].definition.path = paths_[v];
      continue;
    }
    Result<FieldDefinition> definition = define_new(v, roles, variables_[v].own_options);
    numbers.push_back(v);
    fields.emplace_back();
    mine.push_back(definition.status());
    if (definition.ok()) fields.back().definition = std::move(*definition);
  }
  if (numbers.empty()) return Status();
  const auto first_failure = [&] {
    const auto failed = std::ranges::find_if_not(mine, &Status::ok);
    return failed == mine.end() ? Status() : *failed;
  };
  const auto share_facts = [&](const Status& failure) {
    std::vector<LocalBoxes> local;
    local.reserve(numbers.size());
    for (const std::size_t v : numbers) local.push_back({shape_of(v), variables_[v].log.boxes()});
    return common_facts(*comm_, local, failure);
  };
  Result<std::vector<DecompositionFacts>> facts = share_facts(first_failure());
  if (!facts.ok()) {
    const std::size_t n_before = numbers.size();
    TAILRACE_TRY(leave_out_refused(flush, mine, numbers, fields));
    if (numbers.size() == n_before) return facts.status();
    facts = share_facts(Status());
  }
  TAILRACE_TRY(facts.status());
  mine.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    mine.push_back(choose_shape(numbers[i], (*facts)[i], fields[i]));
  }
  // All ranks have the same definitions and facts, so all ranks fail alike.
  if (!first_failure().ok()) TAILRACE_TRY(leave_out_refused(flush, mine, numbers, fields));
  std::vector<const StagingLog*> logs;
  logs.reserve(numbers.size());
  for (const std::size_t v : numbers) logs.push_back(&variables_[v].log);
  TAILRACE_TRY(resolve_staged_bounds(*comm_, logs, fields));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Scattered elements are sampled as a box, because their neighbours are near in the file, too.
    const StagingLog& log = *logs[i];
    for (std::size_t e = 0; e < log.n_entries(); ++e) {
      const Box box = log.box_of_sample(e, fields[i].definition.shape);
      fields[i].puts.push_back({box, log.values(e), nullptr, Buffer()});
    }
  }
  TAILRACE_TRY(choose_codecs(fields, mine));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!mine[i].ok()) continue;
    if (runs_unchanged(options_.file.door)) {
      Result<std::string> refusal =
          store_refused_exactly(*comm_, fields[i], options_.file.plugin_path, kSyntaxOfArrays);
      mine[i] = refusal.status();
      note_remark(
          [&] { return refusal.ok() && !refusal->empty() ? "stored exactly: " + *refusal : ""; });
    }
    if (mine[i].ok()) mine[i] = check_bound_width(fields[i], kSyntaxOfArrays);
  }
  if (!first_failure().ok()) {
    // The first refusal also names the other refused variables.
    const Status refused = check_bound_widths(fields, kSyntaxOfArrays);
    const auto first = std::ranges::find_if_not(mine, &Status::ok);
    if (!refused.ok() && refused.message().starts_with(first->message())) *first = refused;
  }
  TAILRACE_TRY(leave_out_refused(flush, mine, numbers, fields));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldState& field = fields[i];
    note_remark([&] { return bound_width_remark(field, kSyntaxOfArrays); });
    if (!field.resolved.codec->lossy()) continue;
    note_remark([&] { return roles.lossy_remark(numbers[i], field.definition.options.by_role); });
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ArrayVariable& variable = variables_[numbers[i]];
    variable.definition = std::move(fields[i].definition);
    variable.resolved = std::move(fields[i].resolved);
    ResolvedField& resolved = variable.resolved;
    if (variable.own_codec != nullptr) {
      resolved.codec = share_codec(variable.own_codec);
      resolved.verify = variable.definition.options.verify == Verify::on;
    }
    const bool plain = resolved.layout->contiguous();
    if (variable.definition.grows() && resolved.layout->base_from() == BaseFrom::shape) {
      // Places by shape become invalid when the shape grows.
      resolved.layout = make_layout("claimed").value();
    }
    variable.storage = plain ? ArrayStorage::contiguous : ArrayStorage::chunked;
  }
  return Status();
}

/// Choose codecs and layouts. Errors are agreed, except those of single fields, which are this
/// rank's.
Status ArrayFile::choose_codecs(std::vector<FieldState>& fields, std::vector<Status>& prepared) {
  std::vector<bool> ours;
  ours.reserve(fields.size());
  bool any_compressed = false;
  bool any_chosen = options_.file.has_target();
  for (const FieldState& field : fields) {
    const bool compressed = !stored_plainly(field.definition);
    ours.push_back(codec_is_ours_to_choose(field.definition.options));
    any_compressed = any_compressed || compressed;
    any_chosen = any_chosen || (ours.back() && compressed);
  }
  // The profile also has the alignment of compressed chunks.
  if (any_compressed || any_chosen) {
    TAILRACE_TRY(need_profile(*comm_, options_.file, nullptr, path_, profile_));
  }
  // All ranks must assume the same number of threads: the slowest rank determines a flush's time.
  std::uint64_t least_threads = n_threads();
  if (any_chosen) comm_->allreduce(std::span<std::uint64_t>(&least_threads, 1), Reduction::min);
  MachineProfile unused;
  RankNumbers none;
  TAILRACE_TRY(choose_codecs_for(*comm_, fields, options_.file, profile_ ? *profile_ : unused,
                                 {n_threads(), least_threads}, none));
  prepared.clear();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::vector<FieldState> one;
    one.push_back(std::move(fields[i]));
    Status status = prepare_codecs(*comm_, one, options_.file.plugin_path, nullptr);
    fields[i] = std::move(one.front());
    const ResolvedField& resolved = fields[i].resolved;
    if (status.ok() && ours[i] && resolved.codec->filters().empty() &&
        !resolved.layout->contiguous()) {
      status = local_part([&] { return skip_filters(fields[i]); });
    }
    prepared.push_back(std::move(status));
  }
  return Status();
}

}  // namespace tailrace
