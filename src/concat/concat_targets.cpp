// The output's datasets: storage form, rows, and places in the line.

#include "concat/concat_targets.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codec/deflate.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "core/utf8.hpp"
#include "hdf5/dataset_schema.hpp"
#include "policy/storage_decision.hpp"
#include "trz/base/printable.hpp"

namespace tailrace {

namespace {

/// HDF5 stores a chunk's length in 32 bits.
constexpr std::uint64_t kChunkBytesLimit = (std::uint64_t{1} << 32) - 1;

/// Facts about a dataset of the first input, for the policies.
DatasetFacts facts_of_rows(const StoredDataset& dataset) {
  DatasetFacts facts;
  facts.number = dataset.dtype;
  facts.element_bytes = dataset.element_bytes;
  facts.shape = dataset.shape;
  facts.growing.assign(dataset.shape.size(), false);
  if (!facts.growing.empty()) facts.growing[0] = dataset.extendable;
  if (dataset.chunked()) facts.own_chunks = dataset.storage.chunk_shape;
  return facts;
}

JoinRequest join_request(const StoredDataset& dataset, const ConcatRequest& request) {
  JoinRequest join;
  join.chunk_rows = request.chunk_rows;
  join.chunk_bytes = request.chunk_bytes;
  join.one_piece_below = request.plain_below_bytes;
  join.keeps_codec = request.codec == "keep";
  join.plain_codec = request.codec == plain_codec;
  join.fits_any_chunk = filters_fit_any_chunk(dataset.storage);
  join.by_value = dataset.by_value;
  return join;
}

Result<std::vector<FilterSpec>> filters_of_codec(const StoredDataset& dataset, const Shape& shape,
                                                 const ConcatRequest& request) {
  CodecRequest wanted;
  wanted.name = request.codec;
  wanted.settings = request.codec_settings;
  wanted.chunk_shape = shape;
  // Codecs treat non-numeric elements as bytes.
  const std::optional<DType> dtype = decoded_type(dataset.type);
  wanted.dtype = dtype.value_or(DType::u8);
  if (!dtype) wanted.chunk_shape.push_back(dataset.element_bytes);
  if (request.level && request.codec == kExactCodec) {
    wanted.settings.emplace_back("level", std::to_string(*request.level));
  }
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(wanted, request.options.plugin_path));
  if (codec->lossy()) {
    return Status(Code::unsupported,
                  "codec \"" + request.codec + "\" is lossy; concat needs a lossless codec");
  }
  return codec->filters();
}

}  // namespace

bool filters_fit_any_chunk(const StoredForm& form) {
  return std::all_of(form.filters.begin(), form.filters.end(), [](const FilterSpec& filter) {
    const CodecEntry* known = find_filter(filter.filter_id);
    return known != nullptr && known->fits_any_chunk;
  });
}

bool keeps_chunks(const StoredDataset& dataset, const ConcatRequest& request) {
  return keeps_chunks_joined(join_request(dataset, request));
}

Result<StoredForm> choose_form(const StoredDataset& dataset, std::uint64_t n_rows,
                               const ConcatRequest& request) {
  const std::string what = "dataset \"" + dataset.path + "\"";
  StoredForm form;
  const DatasetFacts facts = facts_of_rows(dataset);
  const JoinRequest join = join_request(dataset, request);
  if (joins_in_one_piece(facts, n_rows, join)) {
    form.kind = StoredForm::Kind::contiguous;
    return form;
  }
  form.kind = StoredForm::Kind::chunked;
  form.chunk_shape = join_chunks(facts, n_rows, join);
  const std::uint64_t chunk_bytes = n_elements(form.chunk_shape) * dataset.element_bytes;
  if (chunk_bytes > kChunkBytesLimit) {
    return Status(Code::invalid_argument,
                  what + ": a chunk of " + shape_text(form.chunk_shape) + " has " +
                      bytes_text(chunk_bytes) +
                      ", must be below 4 GiB; choose smaller chunks by --chunk");
  }
  if (!join.keeps_codec) {
    TAILRACE_TAKE(form.filters, filters_of_codec(dataset, form.chunk_shape, request).within(what));
    return form;
  }
  form.filters = dataset.storage.filters;
  for (FilterSpec& filter : form.filters) {
    if (request.level && filter.filter_id == codec_entry(kExactCodec).filter_id) {
      filter.client_data = filter.final_client_data = {*request.level};
    }
  }
  return form;
}

// --- Forms, rows and places of the output's datasets.

Status ConcatTargets::read_older_output(Comm& comm, const ConcatRequest& request,
                                        ConcatInputs& inputs) {
  const std::vector<StoredDataset>& schema = inputs.schema();
  older_rows_.assign(schema.size(), 0);
  if (!request.append) return Status();
  Status opened;
  Bytes packed;
  std::int64_t first_key = 0;
  if (comm.is_root()) {
    Result<std::unique_ptr<ConcatInput>> older =
        ConcatInput::open(request.output, 0, false, !inputs.dimensions().on());
    opened = older.status();
    if (older.ok()) {
      older_ = std::move(*older);
      older_bytes_ = older_->file_bytes();
      std::vector<StoredDataset> datasets = older_->datasets();
      opened = inputs.dimensions().compare_older(*older_, datasets).within(request.output);
      packed = pack_schema(datasets);
    }
    if (opened.ok() && !request.key_names.empty()) {
      const Result<std::vector<std::int64_t>> keys =
          older_->read_integers(std::string(kKeyGroup) + "/" + request.key_names.back() + ".seq");
      opened = keys.status();
      if (keys.ok() && !keys->empty()) {
        first_key = *std::max_element(keys->begin(), keys->end()) + 1;
      }
    }
  }
  TAILRACE_TRY(agree_with_root(comm, opened));
  comm.broadcast(packed, 0);
  TAILRACE_TAKE(older_schema_, unpack_schema(packed));
  const std::vector<std::string> conflicts = schema_conflicts(older_schema_, schema);
  if (!conflicts.empty()) {
    const std::string text =
        printable(request.inputs[inputs.first_input()] + ": does not match " + request.output);
    std::string lines = conflicts_text(conflicts);
    const std::string_view subject = "the first file";
    for (std::size_t at = lines.find(subject); at != std::string::npos;
         at = lines.find(subject, at)) {
      lines.replace(at, subject.size(), "the output");
    }
    return Status::of_lines(Code::invalid_argument, text + "\n    " + lines);
  }
  std::unordered_map<std::string_view, const StoredDataset*> by_path;
  for (const StoredDataset& dataset : older_schema_) by_path.emplace(dataset.path, &dataset);
  for (std::size_t d = 0; d < schema.size(); ++d) {
    if (schema[d].appended) older_rows_[d] = by_path.at(schema[d].path)->n_rows();
  }
  std::vector<std::uint64_t> key = {static_cast<std::uint64_t>(first_key)};
  comm.allreduce(std::span(key), Reduction::max);
  inputs.start_keys_at(static_cast<std::int64_t>(key[0]));
  return Status();
}

std::string ConcatTargets::shared_chunks() const {
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // (address, dataset) pairs
  for (std::size_t d = 0; older_ != nullptr && d < older_->datasets().size(); ++d) {
    const ChunkList chunks = older_->chunks(d);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].extent.encoded_bytes > 0) places.emplace_back(chunks[i].extent.address, d);
    }
  }
  std::sort(places.begin(), places.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto two = std::adjacent_find(places.begin(), places.end(), same);
  if (two == places.end()) return "";
  const auto name = [&](auto at) {
    return "dataset \"" + older_->datasets()[at->second].path + "\"";
  };
  return name(two) + " and " + name(std::next(two));
}

CopiedObjects ConcatTargets::notes(const ConcatNotes& inputs, const ConcatRequest& request,
                                   std::span<const StoredDataset> schema) const {
  if (older_ == nullptr) return inputs.of_new(targets_, schema, request.codec);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < older_schema_.size(); ++i) places.emplace(older_schema_[i].path, i);
  std::vector<std::size_t> in_older;
  for (const ConcatTarget& target : targets_) in_older.push_back(places.at(target.like.path));
  return inputs.of_longer(targets_, older_rows_, *older_, in_older, request.codec);
}

namespace {

/// Limit that keeps sums over thousands of datasets within 64 bits.
constexpr std::uint64_t kDatasetBytesMax = std::uint64_t{1} << 50;

bool deflates(const StoredForm& form) {
  return std::any_of(form.filters.begin(), form.filters.end(),
                     [](const FilterSpec& filter) { return filter.filter_id == 1; });
}

}  // namespace

LineDataset ConcatTargets::place_dataset(const ConcatTarget& target, const StoredForm& cut,
                                         std::uint64_t n_new, std::uint64_t n_older,
                                         bool grows) const {
  if (!target.like.appended) return {{{0}, {1}}, target.like.element_bytes, 0};
  LineDataset dataset{{target.like.shape, cut.chunk_shape}, target.like.element_bytes, 0};
  const bool in_line = target.like.by_value && n_new > 0 && target.like.row_bytes() > 0;
  dataset.grid.shape[0] = in_line ? target.n_rows : 0;
  if (in_line && grows) {
    const std::uint64_t n_inner = dataset.grid.n_chunks() / dataset.grid.n_per_dimension()[0];
    dataset.first_chunk = n_older / dataset.grid.chunk_shape[0] * n_inner;
  }
  return dataset;
}

void ConcatTargets::note_changes(const StoredDataset& input, const StoredForm& output) {
  const auto checksum = [](const FilterSpec& filter) {
    return filter.filter_id == kFletcher32FilterId;
  };
  // Contiguous datasets are excluded: they have no checksums, and the user asked for them.
  const bool chunked = output.kind == StoredForm::Kind::chunked;
  if (chunked && std::ranges::any_of(input.storage.filters, checksum) &&
      std::ranges::none_of(output.filters, checksum)) {
    lost_checksums_.push_back(input.path);
  }
  if (input.storage.kind == StoredForm::Kind::compact) once_compact_.push_back(input.path);
}

std::vector<std::string> ConcatTargets::remarks() const {
  constexpr std::size_t targets_named = 4;
  std::vector<std::string> lines;
  const auto report = [&](const char* what, const std::vector<std::string>& paths) {
    if (!paths.empty()) lines.push_back(what + first_names_text(paths, targets_named));
  };
  report("Fletcher32 checksums are not kept (--codec keep keeps them): ", lost_checksums_);
  report("compact datasets (values in the object header) become contiguous or chunked: ",
         once_compact_);
  return lines;
}

Status ConcatTargets::plan(Comm& comm, const ConcatRequest& request, ConcatInputs& inputs) {
  const std::vector<StoredDataset>& schema = inputs.schema();
  std::unordered_map<std::string_view, std::size_t> older;
  for (std::size_t i = 0; i < older_schema_.size(); ++i) older.emplace(older_schema_[i].path, i);
  std::vector<LineDataset> line;
  Status status;
  for (std::size_t d = 0; d < schema.size() && status.ok(); ++d) {
    const std::uint64_t n_new = inputs.n_rows()[d];
    const StoredDataset* there =
        request.append ? &older_schema_[older.at(schema[d].path)] : nullptr;
    const bool grows =
        there != nullptr && there->extendable && there->storage.kind == StoredForm::Kind::chunked;
    ConcatTarget target;
    target.like = schema[d];
    target.n_rows = older_rows_[d] + n_new;
    if (target.n_rows > kDatasetBytesMax / std::max<std::uint64_t>(schema[d].row_bytes(), 1)) {
      status = Status(Code::unsupported,
                      "dataset \"" + schema[d].path + "\": " + std::to_string(target.n_rows) +
                          " rows of " + bytes_text(schema[d].row_bytes()) +
                          " exceed the limit of " + bytes_text(kDatasetBytesMax));
      break;
    }
    if (grows) {
      target.like.storage = there->storage;
    } else if (target.like.appended) {
      Result<StoredForm> form = choose_form(schema[d], target.n_rows, request);
      status = form.status();
      if (!status.ok()) break;
      target.like.storage = std::move(*form);
    }
    // Rows can be appended later, but the domain of tiles is complete.
    const bool tiled = inputs.dimensions().tiles().is_tiled(d);
    target.like.extendable =
        target.like.storage.kind == StoredForm::Kind::chunked && (!tiled || schema[d].extendable);
    for (std::size_t e = 0; tiled && e < target.like.storage.chunk_shape.size(); ++e) {
      if (schema[d].unlimited(e)) continue;  // HDF5 allows no chunk larger than a fixed extent.
      target.like.storage.chunk_shape[e] =
          std::min(target.like.storage.chunk_shape[e], schema[d].shape[e]);
    }
    target.replaces = there != nullptr && !grows && n_new > 0;
    const StoredForm cut =
        target.like.appended ? chunked_form(schema[d], target.like.storage) : StoredForm();
    line.push_back(place_dataset(target, cut, n_new, older_rows_[d], grows));
    // A requested level needs new encoding, because forms that differ only in level count as equal.
    const bool anew = request.level && deflates(cut);
    forms_.push_back(anew ? nullptr : inputs.forms().intern(cut));
    if (target.like.appended && keeps_chunks(schema[d], request)) kept_chunks_.push_back(d);
    if (target.like.appended) note_changes(schema[d], target.like.storage);
    if (older_ != nullptr && older_rows_[d] > 0 && line.back().grid.shape[0] > 0) {
      ConcatPart part;
      part.dataset = static_cast<std::uint32_t>(d);
      part.source = -1;
      part.n_rows = older_rows_[d];
      part.form = inputs.forms().intern(chunked_form(*there, there->storage));
      part.input = older_.get();
      part.input_dataset = older.at(schema[d].path);
      parts_.push_back(part);
    }
    targets_.push_back(std::move(target));
  }
  TAILRACE_TRY(comm.agree(status));  // A plug-in may be missing on only one node.
  line_ = std::make_unique<ConcatLine>(std::move(line));
  const std::vector<ConcatPart> new_parts = inputs.parts(older_rows_);
  parts_.insert(parts_.end(), new_parts.begin(), new_parts.end());
  std::ranges::stable_sort(parts_, {}, &ConcatPart::dataset);
  return Status();
}

}  // namespace tailrace
