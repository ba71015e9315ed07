// What a variable's first flush decides: chunk shape, bound, codec, layout; all ranks alike.

#include <algorithm>
#include <numeric>
#include <utility>

#include "array_engine.hpp"
#include "layout/chunk_shape.hpp"
#include "write_choose.hpp"

namespace tailrace {
namespace {

/// Variables of tiny records get so many of them into a chunk (as netCDF does, NC_DEFAULT_1D...):
/// every flush of a growing variable writes its last chunk anew.
constexpr std::uint64_t kSmallChunkBytes = 4096;
/// Encoding takes several times a chunk's bytes, of half the memory cap.
constexpr std::uint64_t kChunksPerCap = 32;

/// Fold one staged box's borders into the cuts; a border at the end of the shape is no cut.
void add_cuts(const Shape& shape, const Box& box, std::uint64_t* cuts, std::uint64_t* largest) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::uint64_t end = box.start[d] + box.count[d];
    cuts[d] = std::gcd(cuts[d], box.start[d]);
    if (end < shape[d]) cuts[d] = std::gcd(cuts[d], end);
    largest[d] = std::max(largest[d], box.count[d]);
  }
}

/// Room for more records where a chunk of those there are would be tiny.
void stretch(const ArrayVariable& variable, std::uint64_t element_bytes, Shape& chunk) {
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::uint64_t row_bytes = n_elements(chunk) / chunk[d] * element_bytes;
    if (!variable.growing[d]) continue;
    chunk[d] = std::max(chunk[d], kSmallChunkBytes / std::max<std::uint64_t>(row_bytes, 1));
  }
}

Status check_chunk(const std::string& what, const Shape& chunk, std::uint64_t element_bytes) {
  if (n_elements(chunk) <= largest_chunk_bytes / element_bytes) return Status();
  return Status(Code::invalid_argument, what + ": a chunk of " + shape_text(chunk) +
                                            " is larger than " + bytes_text(largest_chunk_bytes));
}

}  // namespace

/// The variable as a field of the engine.
Result<FieldState> NetcdfArrayFile::define(std::size_t v) const {
  const ArrayVariable& variable = variables_[v];
  Result<FieldOptions> options = variable_options(model_, v, options_, variable.own_options);
  if (!options.ok()) return options.status();
  FieldState field;
  field.definition.path = paths_[v];
  field.definition.dtype = array_dtype(variable.type).value_or(DType::u8);
  field.definition.shape = model_.shape_of(model_.variables[v]);
  field.definition.extendable =
      std::find(variable.growing.begin(), variable.growing.end(), true) != variable.growing.end();
  field.definition.options = std::move(*options);
  FieldOptions& made = field.definition.options;
  if (variable.own_codec != nullptr) {
    made.codec = "none";
    made.codec_settings.clear();
    made.codec_given = true;
  }
  if (field.definition.extendable && made.layout == "contiguous") made.layout = "claimed";
  made.chunk_bytes = std::min(made.chunk_bytes, std::max(options_.file.memory_bytes / kChunksPerCap,
                                                         smallest_own_chunk_bytes));
  TAILRACE_TRY(check_definition(field.definition));
  field.active = true;
  return field;
}

/// Chunks that follow the boxes that were put. Collective: two allreduces; errors are alike.
Status NetcdfArrayFile::choose_shapes(const std::vector<std::size_t>& created,
                                      std::vector<FieldState>& fields) {
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint64_t> largest;
  for (std::size_t i = 0; i < created.size(); ++i) {
    const Shape& shape = fields[i].definition.shape;
    cuts.resize(cuts.size() + shape.size(), 0);
    largest.resize(cuts.size(), 1);
    for (const Box& box : variables_[created[i]].log.boxes()) {
      const std::size_t at = cuts.size() - shape.size();
      add_cuts(shape, box, cuts.data() + at, largest.data() + at);
    }
  }
  comm_->allreduce(std::span<std::uint64_t>(cuts), Reduction::gcd);
  comm_->allreduce(std::span<std::uint64_t>(largest), Reduction::max);
  std::size_t at = 0;
  for (std::size_t i = 0; i < created.size(); ++i) {
    const ArrayVariable& variable = variables_[created[i]];
    FieldState& field = fields[i];
    const FieldDefinition& definition = field.definition;
    const std::size_t rank = definition.shape.size();
    const std::uint64_t element = dtype_bytes(definition.dtype);
    Shape shape = definition.shape;
    for (std::uint64_t& extent : shape) extent = std::max<std::uint64_t>(extent, 1);
    const auto first = static_cast<std::ptrdiff_t>(at);
    const auto end = static_cast<std::ptrdiff_t>(at + rank);
    DecompositionFacts facts{Shape(cuts.begin() + first, cuts.begin() + end),
                             Shape(largest.begin() + first, largest.begin() + end)};
    at += rank;
    for (std::size_t d = 0; d < rank; ++d) {
      if (facts.cut_gcd[d] == 0) facts.cut_gcd[d] = shape[d];
      facts.cut_gcd[d] = std::min(facts.cut_gcd[d], shape[d]);
    }
    if (stored_plainly(definition) || definition.options.layout == "contiguous") {
      field.chunk_shape = shape;
      continue;
    }
    if (definition.options.chunk_shape) {
      field.chunk_shape = *definition.options.chunk_shape;
      for (std::size_t d = 0; d < rank; ++d) {
        if (!variable.growing[d]) field.chunk_shape[d] = std::min(field.chunk_shape[d], shape[d]);
      }
    } else {
      field.chunk_shape = chunk_shape_for(shape, element, definition.options.chunk_bytes, facts);
      stretch(variable, element, field.chunk_shape);
    }
    TAILRACE_TRY(check_chunk(quoted(created[i]), field.chunk_shape, element));
  }
  return Status();
}

/// Decide how the variables that get a dataset now are stored. Errors are agreed.
Status NetcdfArrayFile::prepare_new(ArrayFlush& flush) {
  if (flush.created.empty()) return Status();
  std::vector<std::size_t> numbers;  // of elements, as the engine handles them
  std::vector<FieldState> fields;
  Status mine;
  for (const std::size_t v : flush.created) {
    if (!array_dtype(variables_[v].type)) {
      variables_[v].storage = ArrayStorage::by_hdf5;
      variables_[v].field.definition.path = paths_[v];
      continue;
    }
    Result<FieldState> field = define(v);
    if (!field.ok()) {
      mine = field.status();
      break;
    }
    numbers.push_back(v);
    fields.push_back(std::move(*field));
  }
  TAILRACE_TRY(comm_->agree(mine));
  TAILRACE_TRY(comm_->agree(choose_shapes(numbers, fields)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const StagingLog& log = variables_[numbers[i]].log;
    for (std::size_t e = 0; e < log.n_entries(); ++e) {
      const Slab slab = log.slab(e);
      fields[i].puts.push_back({{slab.start, slab.count}, log.values(e), nullptr, Buffer()});
    }
  }
  TAILRACE_TRY(comm_->agree(resolve_bounds(*comm_, fields)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Samples are taken where the geometry is that of boxes.
    const StagingLog& log = variables_[numbers[i]].log;
    std::vector<PutRecord> boxes;
    for (std::size_t e = 0; e < log.n_entries(); ++e) {
      if (!log.strided(e)) boxes.push_back(std::move(fields[i].puts[e]));
    }
    fields[i].puts = std::move(boxes);
  }
  TAILRACE_TRY(choose_codecs(fields));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ArrayVariable& variable = variables_[numbers[i]];
    FieldState& field = fields[i];
    field.puts.clear();
    if (variable.own_codec != nullptr) {
      field.codec = share_codec(variable.own_codec);
      field.verify = field.definition.options.verify == Verify::on;
    }
    const bool plain = field.layout->contiguous();
    if (field.definition.extendable && field.layout->base_from() == BaseFrom::shape) {
      field.layout =
          make_claimed_layout(FieldOptions()).value();  // places by shape end with the shape
    }
    variable.storage = plain ? ArrayStorage::contiguous : ArrayStorage::chunked;
    variable.field = std::move(field);
  }
  return Status();
}

/// Codecs and layouts. Errors are agreed.
Status NetcdfArrayFile::choose_codecs(std::vector<FieldState>& fields) {
  if (!profile_) {
    Result<MachineProfile> loaded = load_profile(*comm_, options_.file, nullptr, path_);
    if (!loaded.ok()) return loaded.status();
    profile_ = std::move(*loaded);
    if (options_.file.alignment_bytes == 0) {
      options_.file.alignment_bytes = profile_->alignment_bytes();
    }
  }
  TAILRACE_TRY(choose_codecs_for(*comm_, fields, options_.file, *profile_, n_threads()));
  return comm_->agree(prepare_codecs(fields, options_.file.plugin_path, nullptr));
}

}  // namespace tailrace
