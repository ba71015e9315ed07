// Chunk shapes and filters of the output.

#include "concat_plan.hpp"

#include <algorithm>
#include <array>

#include "codec/registry.hpp"
#include "container/concat_types.hpp"
#include "container/filter_plugins.hpp"
#include "stored_codec.hpp"

namespace tailrace {
namespace {

constexpr std::uint32_t deflate_id = 1;
/// Filters whose client data do not depend on the chunk: deflate, shuffle, fletcher32, bzip2, LZ4,
/// bitshuffle, Zstd.
constexpr std::array<std::uint32_t, 7> shape_blind_filters = {1, 2, 3, 307, 32004, 32008, 32015};
/// HDF5 stores a chunk's length in 32 bits.
constexpr std::uint64_t chunk_bytes_limit = (std::uint64_t{1} << 32) - 1;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

Shape choose_chunk_shape(const ConcatDataset& dataset, std::uint64_t n_rows,
                         const ConcatRequest& request) {
  const bool chunked = dataset.storage.kind == StoredForm::Kind::chunked;
  Shape shape = chunked ? dataset.storage.chunk_shape : dataset.shape;
  if (!chunked) shape[0] = 1;
  for (std::uint64_t& extent : shape) extent = std::max<std::uint64_t>(extent, 1);
  const std::uint64_t bytes = n_elements(shape) * dataset.element_bytes;
  const std::uint64_t row_bytes = std::max<std::uint64_t>(bytes / shape[0], 1);
  const std::uint64_t input_rows = shape[0];
  if (keeps_chunks(dataset, request)) return shape;
  if (request.chunk_rows > 0) {
    shape[0] = request.chunk_rows;
  } else if (request.chunk_bytes > 0) {
    shape[0] = std::max<std::uint64_t>(request.chunk_bytes / row_bytes, 1);
  } else if (!chunked || (bytes < small_chunk_bytes && filters_fit_any_chunk(dataset.storage))) {
    // Whole chunks of the inputs, so that few straddle a border.
    shape[0] *= ceil_div(default_chunk_bytes, shape[0] * row_bytes);
  } else {
    return shape;
  }
  // What lies behind the last row would be padding. But rows may be appended later, and these
  // chunks stay: none has fewer rows than the inputs' have for want of rows, and where there are
  // none at all nothing is padded.
  if (n_rows > 0) shape[0] = std::min(shape[0], ceil_div(n_rows, input_rows) * input_rows);
  return shape;
}

Result<std::vector<FilterSpec>> filters_of_codec(const ConcatDataset& dataset, const Shape& shape,
                                                 const ConcatRequest& request) {
  CodecRequest wanted;
  wanted.name = request.codec;
  wanted.settings = request.codec_settings;
  wanted.chunk_shape = shape;
  // What is no number is bytes to a codec.
  const std::optional<DType> dtype = decoded_type(dataset.type);
  wanted.dtype = dtype.value_or(DType::u8);
  if (!dtype) wanted.chunk_shape.push_back(dataset.element_bytes);
  if (request.level && request.codec == "deflate") {
    wanted.settings.emplace_back("level", std::to_string(*request.level));
  }
  Result<std::unique_ptr<Codec>> codec =
      is_plugin_codec(wanted.name) ? make_plugin_codec(wanted, request.options.plugin_path)
                                   : make_builtin_codec(wanted);
  if (!codec.ok()) return codec.status();
  if ((*codec)->lossy()) {
    return Status(Code::unsupported,
                  "codec \"" + request.codec + "\" is lossy; a concatenation keeps every bit");
  }
  return (*codec)->filters();
}

}  // namespace

bool filters_fit_any_chunk(const StoredForm& form) {
  return std::all_of(form.filters.begin(), form.filters.end(), [](const FilterSpec& filter) {
    return std::find(shape_blind_filters.begin(), shape_blind_filters.end(), filter.filter_id) !=
           shape_blind_filters.end();
  });
}

bool keeps_chunks(const ConcatDataset& dataset, const ConcatRequest& request) {
  return (request.chunk_rows > 0 || request.chunk_bytes > 0) && request.codec == "keep" &&
         !filters_fit_any_chunk(dataset.storage);
}

Result<StoredForm> choose_form(const ConcatDataset& dataset, std::uint64_t n_rows,
                               const ConcatRequest& request) {
  const std::string what = "dataset \"" + dataset.path + "\"";
  StoredForm form;
  const bool keep = request.codec == "keep";
  const bool chunked = dataset.storage.kind == StoredForm::Kind::chunked;
  const std::uint64_t n_bytes = n_rows * dataset.row_bytes();
  const bool plain = n_bytes < request.plain_below_bytes && n_rows > 0;
  // Without chunks in the inputs and without a wish for any, the rows stay in one piece.
  const bool stays_plain = !chunked && !dataset.extendable && (keep || request.codec == "none") &&
                           request.chunk_rows == 0 && request.chunk_bytes == 0;
  if (dataset.by_value && (plain || stays_plain)) {
    form.kind = StoredForm::Kind::contiguous;
    return form;
  }
  form.kind = StoredForm::Kind::chunked;
  form.chunk_shape = choose_chunk_shape(dataset, n_rows, request);
  const std::uint64_t chunk_bytes = n_elements(form.chunk_shape) * dataset.element_bytes;
  if (chunk_bytes > chunk_bytes_limit) {
    return Status(Code::invalid_argument, what + ": a chunk of " + shape_text(form.chunk_shape) +
                                              " has " + bytes_text(chunk_bytes) +
                                              ", must be below 4 GiB");
  }
  if (!keep) {
    Result<std::vector<FilterSpec>> filters = filters_of_codec(dataset, form.chunk_shape, request);
    if (!filters.ok()) return filters.status().within(what);
    form.filters = std::move(*filters);
    return form;
  }
  form.filters = dataset.storage.filters;
  for (FilterSpec& filter : form.filters) {
    if (request.level && filter.filter_id == deflate_id) {
      filter.client_data = filter.final_client_data = {*request.level};
    }
  }
  return form;
}

}  // namespace tailrace
