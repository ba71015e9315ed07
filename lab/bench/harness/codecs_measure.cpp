// Reads a chunk, checks every codec on it, then runs all codecs in turn.
//
// Only one chunk is in memory at a time; a round's time is the sum over the chunks. Copies that a
// codec consumes are made outside the timed part, and the heap keeps its pages (codecs_main.cpp),
// so that no page fault counts. A codec that fails on one chunk has no figures for the field.

#include "codecs_measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/codec_registry.hpp"
#include "exec/encode_lane.hpp"
#include "exec/lane_clock.hpp"
#include "hdf5/filter_plugins.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace::bench {
namespace {

/// One row with the codec that fills it.
struct Contestant {
  CodecsRow row;
  std::unique_ptr<Codec> codec;
  double pointwise_bound = 0;
};

/// Reads chunks padded as a write would encode them.
class ChunkReader {
 public:
  ChunkReader(InputFile& input, std::size_t index, const CodecsField& field)
      : input_(input), index_(index) {
    Result<std::unique_ptr<Layout>> layout = make_layout("dense");
    TAILRACE_CHECK(layout.ok());
    layout_ = std::move(*layout);
    plan_.dtype = field.dtype;
    plan_.grid = field.grid;
    plan_.layout = layout_.get();
  }

  /// Values of the field in this chunk.
  Result<Buffer> read(std::uint64_t chunk) {
    const Box box = plan_.grid.clipped_box(chunk);
    Buffer values(box.n_elements() * plan_.element_bytes());
    if (!values.allocated()) return Status(Code::out_of_memory, "not enough memory for a chunk");
    TAILRACE_TRY(input_.read(index_, box, values.bytes()));
    return values;
  }
  /// Values of the chunk, padded to the full chunk shape.
  Result<Buffer> read_padded(std::uint64_t chunk) {
    Result<Buffer> values = read(chunk);
    const Box held = plan_.grid.clipped_box(chunk);
    const Box full = plan_.grid.full_box(chunk);
    if (!values.ok() || held == full) return values;
    ChunkJob job;
    job.chunk_index = chunk;
    Result<Buffer> padded = make_chunk_buffer(plan_, job);
    if (!padded.ok()) return padded.status();
    copy_box(held, held, values->data(), full, padded->data(), plan_.element_bytes());
    pad_edges(plan_, job, *padded);
    return padded;
  }

 private:
  InputFile& input_;
  std::size_t index_;
  std::unique_ptr<Layout> layout_;
  FieldPlan plan_;
};

/// FNV-1a, word by word; the last word is padded with zeros.
void add_to_checksum(std::span<const std::byte> bytes, std::uint64_t& sum) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    sum = (sum ^ word) * 0x100000001b3ULL;
  }
}

Shape chunk_shape_of(const StoredDataset& field, const CodecsOptions& options) {
  if (options.chunk_shape && options.chunk_shape->size() == field.shape.size()) {
    return *options.chunk_shape;
  }
  return chunk_shape_for(field.shape, field.value_bytes(), options.chunk_bytes,
                         {.cut_gcd = field.shape, .largest_box = field.shape});
}

/// Indices of at most `most` of `n` chunks, spread evenly.
std::vector<std::uint64_t> spread_evenly(std::uint64_t n, std::uint64_t most) {
  const std::uint64_t n_taken = std::min(n, most);
  std::vector<std::uint64_t> chunks;
  for (std::uint64_t i = 0; i < n_taken; ++i) chunks.push_back(i * n / n_taken);
  return chunks;
}

Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const CodecsOptions& options) {
  return make_codec(request, options.plugin_path);
}

Contestant make_contestant(const CodecsField& field, const CodecChoice& choice,
                           const ErrorBound& bound, const CodecsOptions& options) {
  Contestant made;
  made.row.codec = choice.label;
  made.row.bound = bound;
  made.row.absolute_bound = absolute_bound(bound, field.range.least, field.range.greatest);
  made.pointwise_bound = pointwise_bound(bound);
  CodecRequest request;
  request.name = choice.name;
  request.settings = choice.settings;
  request.dtype = field.dtype;
  request.chunk_shape = field.grid.chunk_shape;
  request.absolute_bound = made.row.absolute_bound;
  request.pointwise_bound = made.pointwise_bound;
  request.fill_value = field.fill_value;
  Result<std::unique_ptr<Codec>> codec = make_codec(request, options);
  if (!codec.ok()) {
    made.row.refused = codec.status().message();
    return made;
  }
  made.codec = std::move(*codec);
  made.row.version = made.codec->version();
  made.row.ours = made.codec->keeps_bound_by_construction();
  return made;
}

/// Sort by bound, in the order of the options; lossless codecs, whose rows have no bound, come
/// last.
void sort_by_bound(std::vector<Contestant>& all, const std::vector<ErrorBound>& bounds) {
  const auto position = [&](const Contestant& contestant) {
    if (contestant.row.bound.lossless()) return bounds.end();
    return std::find(bounds.begin(), bounds.end(), contestant.row.bound);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Contestant& a, const Contestant& b) {
    return position(a) < position(b);
  });
}

/// One row per codec and bound. Lossless codecs get one row without a bound.
std::vector<Contestant> make_contestants(const CodecsField& field, const CodecsOptions& options) {
  std::vector<Contestant> all;
  const std::vector<ErrorBound> exact(1);
  for (const CodecChoice& choice : options.codecs) {
    bool has_exact = false;
    for (const ErrorBound& bound : is_floating(field.dtype) ? options.bounds : exact) {
      Contestant made = make_contestant(field, choice, bound, options);
      if (made.codec != nullptr && !made.codec->lossy()) {
        if (has_exact) continue;
        has_exact = true;
        made = make_contestant(field, choice, ErrorBound{}, options);
      }
      all.push_back(std::move(made));
    }
  }
  sort_by_bound(all, options.bounds);
  return all;
}

struct RoundTrip {
  Buffer decoded;
  std::uint64_t encoded_bytes = 0;
  double encode_s = 0;
  double decode_s = 0;
};

Result<RoundTrip> copy_twice(const Buffer& values) {
  RoundTrip trip;
  const double start = thread_cpu_s();
  Buffer copy = Buffer::copy_of(values.bytes());
  const double middle = thread_cpu_s();
  if (!copy.allocated())
    return Status(Code::out_of_memory, "not enough memory for a copy of a chunk");
  trip.decoded = Buffer::copy_of(std::as_const(copy).bytes());
  trip.decode_s = thread_cpu_s() - middle;
  trip.encode_s = middle - start;
  trip.encoded_bytes = values.n_bytes();
  return trip;
}

Result<RoundTrip> run_once(const Codec& codec, const Buffer& values) {
  // A codec without filters: HDF5 copies the values unchanged.
  if (codec.filters().empty()) return copy_twice(values);
  Buffer input = Buffer::copy_of(values.bytes());
  if (!input.allocated())
    return Status(Code::out_of_memory, "not enough memory for a copy of a chunk");
  RoundTrip trip;
  const double start = thread_cpu_s();
  Result<EncodedBytes> encoded = codec.encode(std::move(input));
  trip.encode_s = thread_cpu_s() - start;
  if (!encoded.ok()) return encoded.status();
  trip.encoded_bytes = encoded->buffer.n_bytes();
  const double decode_start = thread_cpu_s();
  Result<Buffer> decoded = codec.decode(std::move(*encoded));
  trip.decode_s = thread_cpu_s() - decode_start;
  if (!decoded.ok()) return decoded.status();
  trip.decoded = std::move(*decoded);
  return trip;
}

ChunkComparison compare(const CodecsField& field, const Contestant& contestant,
                        const Buffer& original, const Buffer& decoded) {
  if (contestant.pointwise_bound > 0) {
    return compare_pointwise(field.dtype, original.bytes(), decoded.bytes(),
                             contestant.pointwise_bound, field.fill_value);
  }
  return compare_values(field.dtype, original.bytes(), decoded.bytes(),
                        contestant.row.absolute_bound, field.fill_value);
}

/// First run on a chunk: checked and counted in bytes, but not timed.
Status check_chunk(const CodecsField& field, Contestant& contestant, const Buffer& values) {
  Result<RoundTrip> trip = run_once(*contestant.codec, values);
  if (!trip.ok()) return trip.status();
  contestant.row.encoded_bytes += trip->encoded_bytes;
  contestant.row.found.merge(compare(field, contestant, values, trip->decoded));
  return Status();
}

Status measure_chunk(const CodecsField& field, std::vector<Contestant>& contestants,
                     const Buffer& values, std::uint64_t n_repeats) {
  for (Contestant& contestant : contestants) {
    if (!contestant.row.refused.empty()) continue;
    const Status checked = check_chunk(field, contestant, values);
    if (checked.code() == Code::out_of_memory) return checked;
    contestant.row.refused = checked.message();
  }
  for (std::uint64_t round = 0; round < n_repeats; ++round) {
    for (Contestant& contestant : contestants) {
      if (!contestant.row.refused.empty()) continue;
      Result<RoundTrip> trip = run_once(*contestant.codec, values);
      if (!trip.ok()) return trip.status().within(contestant.row.codec);
      contestant.row.encode_s[round] += trip->encode_s;
      contestant.row.decode_s[round] += trip->decode_s;
    }
  }
  return Status();
}

double psnr_of(const CodecsField& field, const ChunkComparison& found) {
  if (found.sum_squared_errors == 0) return std::numeric_limits<double>::infinity();
  const double mean = found.sum_squared_errors / static_cast<double>(found.n_finite);
  return 20 * std::log10(field.range.greatest - field.range.least) - 10 * std::log10(mean);
}

}  // namespace

double CodecsRow::error_over_bound() const {
  const double allowed = bound.mode == BoundMode::pw_rel ? bound.value : absolute_bound;
  return allowed > 0 ? found.largest_error / allowed : 0;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double spread(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / median(values);
}

Result<std::vector<std::string>> drop_missing_codecs(CodecsOptions& options) {
  std::vector<std::string> remarks;
  std::vector<CodecChoice> kept;
  for (const CodecChoice& choice : options.codecs) {
    CodecRequest request;
    request.name = choice.name;
    request.settings = choice.settings;
    request.chunk_shape = {64, 64, 64};
    request.absolute_bound = 1;
    const Status made = make_codec(request, options).status();
    if (made.code() == Code::invalid_argument || made.code() == Code::not_found) {
      return made.within("--codecs");
    }
    if (made.code() == Code::plugin_missing) {
      remarks.push_back("left out " + choice.label + ": " + made.message());
    } else {
      kept.push_back(choice);
    }
  }
  if (kept.empty())
    return Status(Code::plugin_missing, "--codecs: none of the codecs is installed");
  options.codecs = std::move(kept);
  return remarks;
}

Result<CodecsField> scan_field(InputFile& input, std::size_t index, const std::string& file,
                               const CodecsOptions& options) {
  const StoredDataset& found = input.fields()[index];
  CodecsField field;
  field.file = file;
  field.path = found.path;
  field.dtype = *found.dtype;
  field.grid = {found.shape, chunk_shape_of(found, options)};
  field.fill_value = found.missing_value;
  for (const FillChoice& fill : options.fills) {
    if (glob_matches(fill.glob, found.path)) field.fill_value = fill.value;
  }
  field.chunks = spread_evenly(field.grid.n_chunks(), options.n_chunks_max);
  field.checksum = 0xcbf29ce484222325ULL;
  ChunkReader reader(input, index, field);
  for (std::uint64_t chunk = 0; chunk < field.grid.n_chunks(); ++chunk) {
    Result<Buffer> values = reader.read(chunk);
    if (!values.ok()) return values.status().within(file + ": " + field.path);
    field.range.merge(value_range(field.dtype, std::as_const(*values).bytes(), field.fill_value));
    if (!std::binary_search(field.chunks.begin(), field.chunks.end(), chunk)) continue;
    field.raw_bytes += values->n_bytes();
    add_to_checksum(std::as_const(*values).bytes(), field.checksum);
  }
  return field;
}

Result<std::vector<CodecsRow>> measure_field(InputFile& input, std::size_t index,
                                             const CodecsField& field, const CodecsOptions& options,
                                             const std::function<void(std::uint64_t)>& progress) {
  std::vector<Contestant> contestants = make_contestants(field, options);
  for (Contestant& contestant : contestants) {
    contestant.row.raw_bytes = field.raw_bytes;
    contestant.row.encode_s.assign(options.n_repeats, 0);
    contestant.row.decode_s.assign(options.n_repeats, 0);
  }
  ChunkReader reader(input, index, field);
  for (const std::uint64_t chunk : field.chunks) {
    Result<Buffer> values = reader.read_padded(chunk);
    if (!values.ok()) return values.status().within(field.file + ": " + field.path);
    TAILRACE_TRY(measure_chunk(field, contestants, *values, options.n_repeats).within(field.path));
    progress(values->n_bytes());
  }
  std::vector<CodecsRow> rows;
  for (Contestant& contestant : contestants) {
    contestant.row.psnr = psnr_of(field, contestant.row.found);
    rows.push_back(std::move(contestant.row));
  }
  return rows;
}

}  // namespace tailrace::bench
