// tailrace-lab train-book: makes Huffman codes for the chunks of a field from an earlier step.
//
// Fields, chunks and bounds are planned as repack plans them, so that the book counts the chunks
// that it will serve. Only rank 0 works; the others wait for its result.

#include <fmt/format.h>

#include <algorithm>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "core/codec_settings.hpp"
#include "core/option_table.hpp"
#include "filters/own_filters.hpp"
#include "lab_commands.hpp"
#include "trz/book/book_counter.hpp"
#include "trz/client_data.hpp"
#include "verbs/field_roles.hpp"

namespace tailrace::cli {
namespace {

struct TrainBookArguments {
  std::string input;
  std::string output;
  std::string codec = "trz";      ///< Codec with its settings.
  std::string bound;              ///< abs=, rel= or psnr=.
  std::vector<std::string> only;  ///< Globs of the fields to count; empty: all.
  std::string chunk;              ///< SIZE or SHAPE; empty: repack's choice.
  std::string raw_format;
  bool force = false;
};

constexpr const char* kTrainBookDescription =
    R"help(Make a book for codec trz: Huffman codes that all chunks of a field share

Examples:
  tailrace-lab train-book step_090.h5 --only density --bound rel=1e-4 --chunk 1MiB -o density.book
  tailrace repack step_091.h5 -o small.h5 --codec trz --bound rel=1e-4 --chunk 1MiB \
      --field 'density:book=density.book'
      chunks of later steps then use these codes instead of their own

A book helps with chunks of 1 MB and less (docs/codecs.md). Train one for each field, with the
bound, chunk and settings of its later use. It is stored in the dataset: readers need no file.
)help";

/// Further values change no code, and counts of 32 bits must not overflow (a value adds at most 4).
constexpr std::uint64_t values_max = 1ULL << 28;

/// Input of the book.
struct Training {
  trz::BookHistograms histograms;
  std::vector<std::string> paths;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_bytes = 0;
};

/// One field of the input, with repack's chunk grid.
class TrainedField {
 public:
  TrainedField(InputFile& input, const verbs::PlannedField& planned)
      : input_(input),
        planned_(planned),
        definition_(planned.definition),
        grid_{definition_.shape, *definition_.options.chunk_shape} {}

  /// Count every stride-th chunk. If the bound needs the range, first read all chunks.
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
    if (!(type.bound > 0)) return Status();  // Constant, hence stored exactly.
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

/// Fields that a book can serve.
Result<std::vector<verbs::PlannedField>> fields_to_count(InputFile& input,
                                                         const TrainBookArguments& arguments) {
  verbs::FieldRequests requests;
  requests.codec = arguments.codec;
  requests.bound = arguments.bound;
  requests.selection.only = arguments.only;
  FileOptions options;
  if (!arguments.chunk.empty()) {
    TAILRACE_TRY(apply_file_option({"chunk", arguments.chunk}, options).within("--chunk"));
  }
  if (requests.selection.only.empty()) {  // Fields that the user names are used in any role.
    TAILRACE_TAKE(requests.roles, verbs::find_roles(input));
  }
  Result<std::vector<verbs::PlannedField>> plan =
      verbs::plan_fields(input.fields(), requests, options, !arguments.chunk.empty(), 1);
  if (!plan.ok()) return plan;
  std::erase_if(*plan, [](const verbs::PlannedField& planned) {
    return !planned.exact_reason.empty() || planned.definition.options.bound.lossless();
  });
  if (plan->empty()) {
    return Status(
        Code::invalid_argument,
        "found no field to train on: integers, arrays under 4 KiB, coordinates, geometry, "
        "times, ... are stored exactly, without a book; choose fields by --only");
  }
  for (const verbs::PlannedField& planned : *plan) {
    const FieldOptions& field = planned.definition.options;
    if (codec_entry(field.codec).has_books && field.bound.mode != BoundMode::pw_rel) continue;
    return Status(
        Code::unsupported,
        fmt::format(
            "field \"{}\": a book needs codec trz with a bound abs=, rel= or psnr=, not {} with {}",
            planned.definition.path, field.codec, error_bound_text(field.bound)));
  }
  return plan;
}

Status count_fields(const TrainBookArguments& arguments, Training& training) {
  TAILRACE_TAKE(auto input, verbs::open_input(arguments.input, arguments.raw_format));
  TAILRACE_TAKE(std::vector<verbs::PlannedField> plan, fields_to_count(*input, arguments));
  std::uint64_t n_values = 0;
  for (const verbs::PlannedField& planned : plan) n_values += n_elements(planned.definition.shape);
  const std::uint64_t stride = (n_values + values_max - 1) / values_max;
  for (const verbs::PlannedField& planned : plan) {
    TAILRACE_TRY(TrainedField(*input, planned)
                     .count(std::max<std::uint64_t>(stride, 1), training)
                     .within("field \"" + planned.definition.path + "\""));
  }
  const trz::Histogram& ids = training.histograms.class_ids;
  if (std::any_of(ids.begin(), ids.end(), [](std::uint32_t n) { return n != 0; })) return Status();
  return Status(Code::invalid_argument,
                "nothing to train on: all chunks are constant, exact or packed by preset=fast");
}

Status train_book(const TrainBookArguments& arguments) {
  WholeFile file;
  TAILRACE_TRY(file.open(arguments.output, arguments.force));
  TAILRACE_TRY(hdf5::register_own_filters());
  Training training;
  TAILRACE_TRY(count_fields(arguments, training));
  const std::vector<std::uint8_t> bytes =
      trz::Book::from_histograms(training.histograms).serialize();
  TAILRACE_TRY(file.finish({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  print_text(wrapped(fmt::format("{}: a book of {} bytes, from {} ({}) of {}", arguments.output,
                                 bytes.size(), counted(training.n_chunks, "chunk"),
                                 size_text(training.n_bytes), fmt::join(training.paths, ", ")),
                     2) +
             "\n");
  return Status();
}

}  // namespace

Command add_train_book(CLI::App& app) {
  const auto arguments = std::make_shared<TrainBookArguments>();
  TrainBookArguments& book = *arguments;
  CLI::App* sub = app.add_subcommand("train-book", kTrainBookDescription);
  const Group input(sub, "Input");
  const Group output(sub, "Output");
  sub->add_option("INPUT", book.input, "HDF5, netCDF, .npy, or raw binary.")->required();
  output("-o,--output", book.output, "FILE", "The book to create.")->required();
  output.flag("--force", book.force, "Replace an existing file.");
  const Group what(sub, "Use of the book");
  what("-b,--bound", book.bound, "MODE=VALUE",
       "Bound of the later use: abs=, rel= or psnr=, as for repack.")
      ->required();
  what("-c,--codec", book.codec, "CODEC", "trz and its settings, trz[,key=value...]. Default trz.");
  what("--chunk", book.chunk, "SIZE|SHAPE",
       "Chunk size or shape of the later use, as for repack. Default: as repack chooses.");
  input.list("--only", book.only, "GLOB",
             "Train only on fields whose path matches. Repeatable. Default: all fields together.");
  input.raw(book.raw_format, "The input");
  help_option(sub);
  return [arguments](Session& session) {
    return run_at_root(session, [&] { return train_book(*arguments); });
  };
}

}  // namespace tailrace::cli
