// tailrace train-book: Huffman codes for the chunks of a field, made from an earlier step of it.
//
// Fields, chunks and bounds are planned as repack would, so that what is counted is what the book
// will serve. Rank 0 alone works; the others wait for its verdict.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "codec/trz/book/book_counter.hpp"
#include "codec/trz/client_data.hpp"
#include "codec/verify.hpp"
#include "commands.hpp"
#include "core/codec_settings.hpp"
#include "core/option_table.hpp"
#include "hdf5_filter/own_filters.hpp"

namespace tailrace::cli {
namespace {

/// More values change no code, and counts of 32 bits must not overflow (a value adds at most four).
constexpr std::uint64_t values_max = 1ULL << 28;

/// What the book is made of.
struct Training {
  trz::BookHistograms histograms;
  std::vector<std::string> paths;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_bytes = 0;
};

/// One field of the input, as repack would cut it.
class TrainedField {
 public:
  TrainedField(InputFile& input, const verbs::PlannedField& planned)
      : input_(input),
        planned_(planned),
        definition_(planned.definition),
        grid_{definition_.shape, *definition_.options.chunk_shape} {}

  /// Every stride-th chunk is counted; all of them are looked at where the bound needs the range.
  Status count(std::uint64_t stride, Training& training) {
    trz::ChunkType type;
    type.dtype = definition_.dtype;
    type.fill_value = trz::recorded_fill(definition_.dtype, definition_.options.fill_value);
    ValueRange range;
    if (definition_.options.bound.needs_range()) {
      for (std::uint64_t i = 0; i < grid_.n_chunks(); ++i) {
        TAILRACE_TRY(read(i));
        range.merge(value_range(definition_.dtype, values_, definition_.options.fill_value));
      }
    }
    type.bound = range.empty() && definition_.options.bound.needs_range()
                     ? 0
                     : absolute_bound(definition_.options.bound, range.least, range.greatest);
    if (!(type.bound > 0)) return Status();  // Constant: kept exactly.
    CodecRequest request;
    request.name = definition_.options.codec;
    request.settings = definition_.options.codec_settings;
    CodecSettings keys(request);
    const trz::Settings settings = trz::read_settings(keys);
    TAILRACE_TRY(keys.finish());
    for (std::uint64_t i = 0; i < grid_.n_chunks(); i += stride) {
      TAILRACE_TRY(read(i));
      type.shape = grid_.clipped_box(i).count;
      TAILRACE_TRY(trz::count_for_book(type, settings, values_, training.histograms, workspace_));
      ++training.n_chunks;
      training.n_bytes += values_.size();
    }
    training.paths.push_back(definition_.path);
    return Status();
  }

 private:
  Status read(std::uint64_t chunk_index) {
    const Box box = grid_.clipped_box(chunk_index);
    values_.resize(box.n_elements() * dtype_bytes(definition_.dtype));
    return input_.read(planned_.input_index, box, values_);
  }

  InputFile& input_;
  const verbs::PlannedField& planned_;
  const FieldDefinition& definition_;
  ChunkGrid grid_;
  std::vector<std::byte> values_;
  trz::Workspace workspace_;
};

/// The fields that a book can serve.
Result<std::vector<verbs::PlannedField>> fields_to_count(const InputFile& input,
                                                         const TrainBookArguments& arguments) {
  verbs::FieldRequests requests;
  requests.codec = arguments.codec;
  requests.bound = arguments.bound;
  requests.selection.only = arguments.only;
  FileOptions options;
  if (!arguments.chunk.empty()) {
    TAILRACE_TRY(apply_file_option({"chunk", arguments.chunk}, options).within("--chunk"));
  }
  Result<std::vector<verbs::PlannedField>> plan =
      verbs::plan_fields(input.fields(), requests, options, !arguments.chunk.empty(), 1);
  if (!plan.ok()) return plan;
  std::erase_if(*plan, [](const verbs::PlannedField& planned) {
    return !planned.exact_reason.empty() || planned.definition.options.bound.lossless();
  });
  if (plan->empty()) {
    return Status(Code::invalid_argument,
                  "no field to train on: integers, coordinates and arrays under 4 KiB stay exact, "
                  "which a book has no part in");
  }
  for (const verbs::PlannedField& planned : *plan) {
    const FieldOptions& field = planned.definition.options;
    if (field.codec == "trz" && field.bound.mode != BoundMode::pw_rel) continue;
    return Status(Code::unsupported,
                  fmt::format("field \"{}\": a book is for codec trz under abs=, rel= or psnr=, "
                              "not for {} under {}",
                              planned.definition.path, field.codec, error_bound_text(field.bound)));
  }
  return plan;
}

Status count_fields(const TrainBookArguments& arguments, Training& training) {
  Result<std::unique_ptr<InputFile>> input =
      verbs::open_input(arguments.input, arguments.raw_format);
  if (!input.ok()) return input.status();
  Result<std::vector<verbs::PlannedField>> plan = fields_to_count(**input, arguments);
  if (!plan.ok()) return plan.status();
  std::uint64_t n_values = 0;
  for (const verbs::PlannedField& planned : *plan) n_values += n_elements(planned.definition.shape);
  const std::uint64_t stride = (n_values + values_max - 1) / values_max;
  for (const verbs::PlannedField& planned : *plan) {
    TAILRACE_TRY(TrainedField(**input, planned)
                     .count(std::max<std::uint64_t>(stride, 1), training)
                     .within("field \"" + planned.definition.path + "\""));
  }
  const trz::Histogram& ids = training.histograms.class_ids;
  if (std::any_of(ids.begin(), ids.end(), [](std::uint32_t n) { return n != 0; })) return Status();
  return Status(Code::invalid_argument,
                "nothing to learn: the chunks are constant, exact or packed by preset=fast");
}

/// The file appears whole or not at all.
Status save(const std::vector<std::uint8_t>& bytes, const std::string& path) {
  const std::string part = path + ".part";
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return status_from_errno(errno, "cannot create " + path);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(part.c_str(), path.c_str()) == 0) return Status();
  const Status failed = status_from_errno(errno, "cannot write " + path);
  std::remove(part.c_str());
  return failed;
}

Status train_book(const TrainBookArguments& arguments) {
  struct stat existing {};
  if (!arguments.force && ::stat(arguments.output.c_str(), &existing) == 0) {
    return Status(Code::already_exists,
                  fmt::format("{} exists already; --force replaces it", arguments.output));
  }
  TAILRACE_TRY(hdf5::register_own_filters());
  Training training;
  TAILRACE_TRY(count_fields(arguments, training));
  const std::vector<std::uint8_t> bytes =
      trz::Book::from_histograms(training.histograms).serialize();
  TAILRACE_TRY(save(bytes, arguments.output));
  fmt::print("{}: a book of {} bytes, from {} ({}) of {}\n", arguments.output, bytes.size(),
             counted(training.n_chunks, "chunk"), size_text(training.n_bytes),
             fmt::join(training.paths, ", "));
  return Status();
}

}  // namespace

int run_train_book(Session& session, const TrainBookArguments& arguments) {
  const Status status = session.settle(session.speaks() ? train_book(arguments) : Status());
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
