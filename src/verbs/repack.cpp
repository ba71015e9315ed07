// Executes the repack of a file.
//
// Every rank opens the input independently and owns complete chunks of the output
// (chunk_tiles.hpp). The Writer pulls them through a BoxSource when it is ready for them, so that
// memory holds only the chunks in flight. All ranks check the same request, so an invalid one needs
// no communication. Errors that only one rank can see (opening the input) are agreed upon before
// anything collective starts.

#include "verbs/repack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "core/copied_notes.hpp"
#include "core/covered_cells.hpp"
#include "core/encoding_notes.hpp"
#include "core/losses.hpp"
#include "core/utf8.hpp"
#include "describe/field_attributes.hpp"
#include "exec/thread_team.hpp"
#include "field/box_codec.hpp"
#include "field/field_state.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_values.hpp"
#include "hdf5/one_file.hpp"
#include "netcdf/netcdf_dimension_names.hpp"
#include "verbs/book_file.hpp"
#include "verbs/chunk_tiles.hpp"
#include "verbs/element_bytes.hpp"
#include "verbs/field_roles.hpp"
#include "verbs/file_info.hpp"
#include "verbs/kept_user_block.hpp"
#include "verbs/region_masks.hpp"
#include "verbs/repack_kept.hpp"
#include "verbs/repack_memory.hpp"

namespace tailrace::verbs {
namespace {

/// Limit of remarks about datasets whose guards are not all valid in a copy, one line each.
constexpr std::size_t kLessGuardedNamed = 8;
constexpr std::size_t kNamesInRemark = 8;

/// One array of the input, as a source for the Writer.
class InputSource final : public BoxSource {
 public:
  /// @param input  source of chunks that are copied as stored; null: all are encoded.
  /// @param reading  locked while the input is read: encode threads may read masks from it.
  InputSource(TileReader& reader, InputFile* input, std::size_t field_index, ChunkTiles tiles,
              std::mutex& reading)
      : reader_(&reader),
        input_(input),
        field_index_(field_index),
        tiles_(std::move(tiles)),
        reading_(&reading) {}
  Status read(const Box& box, std::span<std::byte> values) override {
    const std::scoped_lock alone(*reading_);
    return reader_->read(field_index_, tiles_, box, values);
  }
  bool reads_more(const Box& box) override {
    const bool alone = tiles_.tiles_of_group() * tiles_.chunks_of_tile() == 1;
    return !alone && !reader_->holds(field_index_, box);  // A scratch file may have it.
  }
  Status look(const Box& box, std::span<std::byte> values) override {
    const std::scoped_lock alone(*reading_);
    return reader_->look(field_index_, tiles_, box, values);
  }
  Result<std::optional<EncodedBytes>> stored(const Box& chunk) override {
    if (input_ == nullptr) return std::optional<EncodedBytes>();
    const ChunkGrid& grid = tiles_.grid();
    Shape at = chunk.start;
    for (std::size_t d = 0; d < at.size(); ++d) at[d] /= grid.chunk_shape[d];
    const std::scoped_lock alone(*reading_);
    return input_->read_stored(field_index_, grid.index_of(at));
  }
  const ChunkTiles& tiles() const { return tiles_; }
  /// Announce that these chunks will be read as values.
  void expect(const ChunkPositions& chunks) { reader_->expect(field_index_, chunks); }

 private:
  TileReader* reader_;
  InputFile* input_;
  std::size_t field_index_;
  ChunkTiles tiles_;
  std::mutex* reading_;
};

/// True if a box contains elements of one of these chunks. @param numbers  ascending
bool touches_any(const ChunkGrid& grid, const std::vector<std::uint64_t>& numbers, const Box& box) {
  Box rows = grid.touched(box);
  if (rows.empty()) return false;
  // Chunks in a row along the last dimension have consecutive numbers.
  const std::uint64_t n = rows.count.empty() ? 1 : rows.count.back();
  if (!rows.count.empty()) rows.count.back() = 1;
  bool found = false;
  for_each_position(rows, [&](const Shape& at) {
    if (found) return;
    const std::uint64_t first = grid.index_of(at);
    const auto next = std::ranges::lower_bound(numbers, first);
    found = next != numbers.end() && *next - first < n;
  });
  return found;
}

/// Name of an output in a folder. An extension that means HDF5 or netCDF is retained; other files
/// become .h5, or .nc.
std::string output_name(const std::string& input_path, bool netcdf) {
  const std::filesystem::path path(input_path);
  const std::string extension = path.extension().string();
  for (const char* known : {".h5", ".hdf5", ".he5", ".hdf", ".nc", ".nc4", ".cdf"}) {
    if (extension == known) return path.filename().string();
  }
  return path.stem().string() + (netcdf ? ".nc" : ".h5");
}

/// Check before any work that the output may be created. Rank 0's view counts.
Status check_output(const RepackRequest& request) {
  const std::string& output = request.output;
  TAILRACE_TRY(check_folder_is_there(output));
  if (same_file(request.input, output)) {
    return Status(Code::invalid_argument,
                  fmt::format("input and output are the same file: {}", output));
  }
  TAILRACE_TRY(check_replaceable(output, request.options.replace, "--force replaces it"));
  return check_folder_is_writable(output);
}

/// Check the scratch folder. Each rank's view counts: the folder may be on a disk of its node.
Status check_scratch(const std::string& scratch) {
  if (scratch.empty() || scratch == "off" || is_directory(scratch)) return Status();
  return Status(Code::not_found, fmt::format("--scratch {}: the folder does not exist", scratch));
}

/// Load books on every rank: all codecs need the same ones.
Status load_books(std::vector<PlannedField>& plan) {
  for (PlannedField& planned : plan) {
    FieldOptions& options = planned.definition.options;
    TAILRACE_TRY(load_book(options.codec, options.codec_settings)
                     .within("field \"" + planned.definition.path + "\""));
  }
  return Status();
}

/// Parse the names of --dims. @error invalid_argument  not of the form GLOB=NAME,..., no dataset
/// matches, or --dims without --netcdf.
Result<std::vector<DimensionNames>> parse_dimension_names(const NetcdfRequest& netcdf,
                                                          const InputFile& input) {
  std::vector<DimensionNames> all;
  if (!netcdf.dimensions.empty() && !netcdf.wanted) {
    return Status(Code::invalid_argument, "--dims needs --netcdf");
  }
  for (const std::string& text : netcdf.dimensions) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return Status(Code::invalid_argument,
                    fmt::format("--dims '{}': expected GLOB=NAME,..., such as "
                                "'temperature=time,y,x'",
                                text));
    }
    DimensionNames names;
    names.pattern = text;
    names.matches = [glob = text.substr(0, equals)](std::string_view path) {
      return glob_matches(glob, path);
    };
    names.names = split_at_commas(std::string_view(text).substr(equals + 1));
    if (std::find(names.names.begin(), names.names.end(), "") != names.names.end()) {
      return Status(Code::invalid_argument,
                    fmt::format("--dims '{}': names must not be empty", text));
    }
    const auto matches = [&](const auto& dataset) { return names.matches(dataset.path); };
    if (std::ranges::none_of(input.fields(), matches) &&
        std::ranges::none_of(input.other_datasets(), matches)) {
      return Status(Code::invalid_argument,
                    fmt::format("--dims '{}' matches no dataset; the fields are: {}", text,
                                field_list_text(input.fields())));
    }
    all.push_back(std::move(names));
  }
  return all;
}

/// Mark fields that will become coordinate variables as coordinates, which remain exact unless the
/// user requests otherwise.
std::vector<StoredDataset> with_coordinates(std::vector<StoredDataset> fields,
                                            std::span<const DimensionNames> dimensions) {
  for (StoredDataset& field : fields) {
    const std::string name = field.path.substr(field.path.rfind('/') + 1);
    const auto names_it = [&](const DimensionNames& given) {
      return std::find(given.names.begin(), given.names.end(), name) != given.names.end();
    };
    field.coordinate =
        field.coordinate || (field.shape.size() == 1 && std::ranges::any_of(dimensions, names_it));
  }
  return fields;
}

/// Paths of the time coordinate and its bounds, according to CF.
std::vector<std::string> times_of(InputFile& input) {
  std::vector<std::string> paths = {"/time"};
  const std::string bounds = input.text_attribute("/time", "bounds");
  if (!bounds.empty()) paths.push_back("/" + bounds);
  return paths;
}

/// Values of --publish, in the order of Publish.
constexpr std::array<std::string_view, 4> kPublishNames = {"", "cmip7", "cloud", "as-stored"};

/// True if the output's form has rules for chunks.
bool rechunks(const RepackRequest& request) {
  return request.publish == Publish::cmip7 || request.publish == Publish::cloud;
}

/// Determine the chunk rules of --publish, alike on every rank. For cmip7, attributes of the input
/// name the variables.
Result<std::optional<FrontChunks>> front_chunks(InputFile& input, const RepackRequest& request) {
  if (request.publish == Publish::none) return std::optional<FrontChunks>();
  FrontChunks front;
  front.option = "--publish " + std::string(kPublishNames[std::size_t(request.publish)]);
  if (request.publish == Publish::as_stored) {
    if (request.chunk_given) {
      return Status(Code::invalid_argument,
                    front.option + " keeps the chunks and cannot be combined with --chunk");
    }
    front.all_as_stored = true;
    if (request.whole_times) front.whole = times_of(input);
    return std::optional(front);
  }
  for (std::size_t f = 0; f < input.fields().size(); ++f) {
    TAILRACE_TAKE(const bool masked, input.has_masked_chunks(f));
    if (masked) front.masked.insert(input.fields()[f].path);
  }
  front.least_bytes =
      request.publish == Publish::cmip7 ? kCmipChunkBytesLeast : kCloudChunkBytesLeast;
  if (request.chunk_given) front.least_bytes = request.options.field_defaults.chunk_bytes;
  if (request.publish == Publish::cloud) {
    front.all_data = true;
    front.most_bytes = 2 * front.least_bytes;
    return std::optional(front);
  }
  front.checksum = true;
  front.whole = times_of(input);
  const std::string data = input.text_attribute("/", "variable_id");
  if (!data.empty()) front.data = "/" + data;
  return std::optional(front);
}

/// Read the box layouts of fields that are plotfile levels. The same on every rank.
Result<std::vector<std::shared_ptr<const BoxSeries>>> boxes_of_fields(InputFile& input) {
  std::vector<std::shared_ptr<const BoxSeries>> boxes;
  for (std::size_t f = 0; f < input.fields().size(); ++f) {
    TAILRACE_TAKE(auto of_field, input.boxes_of(f));
    boxes.push_back(std::move(of_field));
  }
  return boxes;
}

/// The repack of one file. Its members live as long as the Writer needs them.
class Repack {
 public:
  Repack(const VerbRanks& ranks, const RepackRequest& request)
      : ranks_(ranks), comm_(ranks.comm), request_(request) {
    report_.input_path = request.input;
    report_.output_path = request.output;
    report_.options = request.options;
    report_.options.door = Door::repack;
    if (rechunks(request)) report_.options.field_defaults.layout = kFrontLayout;
    report_.options.copies_filters = request.publish != Publish::none;
    report_.n_ranks = comm_.n_ranks();
    report_.n_threads = threads_of_each(request.options.n_threads, comm_);
  }

  /// Execute the repack. Collective; the same Status on every rank.
  Status run();
  RepackReport take_report() { return std::move(report_); }

 private:
  Status prepare();
  void leave_out_others();
  void report_large_others();
  Status set_box_layouts();
  Status find_covered_cells(std::vector<PlannedField>& plan);
  Status find_region_masks(std::vector<PlannedField>& plan);
  Status keep_holes(std::vector<PlannedField>& plan);
  void choose_notes(std::vector<PlannedField>& plan, bool copies);
  void report_lost_codecs(const std::vector<PlannedField>& plan);
  void record_losses(PlannedField& planned, bool exact);
  CopiedNotes notes_of_copy(const std::vector<PlannedField>& plan, const PlannedField& planned);
  Result<std::vector<double>> component_bounds(const PlannedField& planned);
  Result<std::uint64_t> divide_memory();
  void allow_scratch(std::uint64_t whole_bytes);
  void report_scratch();
  Status define_fields(Writer& writer);
  Status put_own_chunks(Writer& writer);
  Status write_in_headers(Hdf5File& output);
  void count_in_headers();
  void carry_over(Writer& writer);
  void find_doubts();

  const VerbRanks& ranks_;
  Comm& comm_;
  const RepackRequest& request_;
  std::unique_ptr<InputFile> input_;
  std::mutex reading_;  ///< Locks the input while encode threads exist.
  std::optional<TileReader> reader_;
  std::deque<InputSource> sources_;
  std::vector<std::size_t> field_indices_;  ///< The Writer's field indices, in plan order.
  std::vector<DimensionNames> dimension_names_;
  std::size_t n_less_guarded_ = 0;  ///< Number of copies with fewer guards than their sources; rank
                                    ///< 0.
  CopiedObjects copied_;            ///< Objects for which attributes of the input remain true.
  RepackReport report_;
};

Status Repack::prepare() {
  ReadOptions reading;
  reading.n_threads = report_.n_threads;
  reading.follow_external = request_.follow_external;
  reading.skip_unreadable = request_.skip_unreadable;
  reading.memory_bytes = reading_bytes_of(request_.options.memory_bytes);
  // An invalid request is reported by the plan.
  const Result<bool> compresses = compresses_others(request_.fields, request_.options);
  const bool chunks_stay = request_.publish != Publish::none;
  const bool compresses_all = compresses.ok() && *compresses && !chunks_stay;
  reading.others_as_bytes = compresses_all || (!request_.fields.per_field.empty() && !chunks_stay);
  TAILRACE_TRY(check_one_file(comm_, request_.input));
  TAILRACE_TRY(ranks_.agree(check_scratch(request_.scratch)));
  TAILRACE_TAKE(input_, ranks_.agree(open_input(request_.input, request_.raw_format, reading)));
  // First reader, for component_bounds(), which needs ranges of values before divide_memory().
  reader_.emplace(*input_, reading.memory_bytes);
  report_.input_format = input_->format();
  if (comm_.is_root()) {
    report_.remarks = input_->remarks();
    if (std::string end = input_->remark_of_end(); !end.empty()) {
      report_.remarks.push_back(std::move(end));
    }
  }
  report_.unreadable = input_->unreadable();
  report_.input_bytes = file_bytes_of(request_.input);

  TAILRACE_TAKE(dimension_names_, ranks_.agree(parse_dimension_names(request_.netcdf, *input_)));
  FieldRequests fields = request_.fields;
  fields.others = input_->other_datasets();
  TAILRACE_TAKE(fields.front, ranks_.agree(front_chunks(*input_, request_)));
  TAILRACE_TAKE(fields.boxes, ranks_.agree(boxes_of_fields(*input_)));
  for (const StoredDataset& field : input_->fields()) {
    fields.losses.push_back(find_losses(*input_, field));
  }
  if (compresses_all) {
    TAILRACE_TAKE(fields.bytes_that_pay, ranks_.agree(find_bytes_that_pay(*input_)));
  }
  if (request_.roles) {
    TAILRACE_TAKE(const bool lossy, ranks_.agree(asks_for_loss(fields, report_.options)));
    if (lossy) {
      TAILRACE_TAKE(fields.roles, ranks_.agree(find_roles(*input_)));
    }
  }
  TAILRACE_TAKE(auto plan, ranks_.agree(plan_fields(
                               with_coordinates(input_->fields(), dimension_names_), fields,
                               report_.options, request_.chunk_given, comm_.n_ranks())));
  leave_out_others();
  std::vector<std::size_t> as_bytes;
  for (const PlannedField& planned : plan) {
    if (planned.definition.holds_bytes()) as_bytes.push_back(planned.input_index);
  }
  input_->take_as_fields(as_bytes);
  report_.others = input_->other_datasets();
  report_large_others();
  if (comm_.is_root()) {
    std::ranges::move(role_remarks(plan, report_.options), std::back_inserter(report_.remarks));
  }
  for (PlannedField& planned : plan) {
    planned.quantization = find_quantization(*input_, input_->fields()[planned.input_index]);
  }
  TAILRACE_TRY(ranks_.agree(find_covered_cells(plan)));
  TAILRACE_TRY(ranks_.agree(find_region_masks(plan)));
  TAILRACE_TRY(ranks_.agree(keep_holes(plan)));
  choose_notes(plan, fields.front.has_value());
  if (comm_.is_root() && request_.publish == Publish::none) report_lost_codecs(plan);
  TAILRACE_TRY(ranks_.agree(load_books(plan)));
  report_.plan = std::move(plan);
  // An output appears completely or not at all; rank 0 decides whether it may appear.
  return ranks_.agree(comm_.is_root() ? check_output(request_) : Status());
}

/// Leave out the datasets of other types that --exclude names. Every rank does the same.
void Repack::leave_out_others() {
  std::set<std::string> left_out;
  for (const OtherDataset& other : input_->other_datasets()) {
    // Without its dimensions a variable would have a different meaning.
    if (other.is_dimension) continue;
    if (matches_any(other.path, request_.fields.selection.exclude)) left_out.insert(other.path);
  }
  input_->leave_out(left_out);
}

/// Report the large datasets that --publish cloud and --publish cmip7 do not rewrite.
void Repack::report_large_others() {
  if (!comm_.is_root() || !rechunks(request_)) return;
  const std::vector<OtherDataset> large = large_ones(report_.others);
  if (large.empty()) return;
  report_.remarks.push_back(
      fmt::format("{} copies datasets of types other than numbers as stored: {}",
                  request_.publish == Publish::cloud ? "--publish cloud" : "--publish cmip7",
                  other_datasets_text(large)));
}

/// The absolute bounds of a level's components, from the values of all ranks. Collective: an
/// agreement and an allreduce. If a bound needs the range, the level is read once more.
Result<std::vector<double>> Repack::component_bounds(const PlannedField& planned) {
  const FieldDefinition& field = planned.definition;
  const ChunkTiles tiles({field.shape, *field.options.chunk_shape}, {});
  std::vector<ValueRange> ranges(planned.component_bounds.size());
  const auto look = [&]() -> Status {
    const BoxChunks chunks(*planned.boxes, tiles.grid().chunk_shape[0]);
    const DealtField dealt{tiles.grid().n_chunks(), field.raw_bytes()};
    Buffer values(n_elements(tiles.grid().chunk_shape) * dtype_bytes(field.dtype));
    if (!values.allocated())
      return Status(Code::out_of_memory,
                    "not enough memory to read a chunk of " + shape_text(tiles.grid().chunk_shape));
    for (const ChunkRun& run : deal_chunks({&dealt, 1}, comm_.rank(), comm_.n_ranks())) {
      for (std::uint64_t chunk = run.first; chunk < run.end; ++chunk) {
        const Box box = tiles.grid().clipped_box(chunk);
        const auto bytes = values.bytes().first(box.n_elements() * dtype_bytes(field.dtype));
        TAILRACE_TRY(reader_->read(planned.input_index, tiles, box, bytes));
        ranges[chunks.part(chunk).component].merge(
            value_range(field.dtype, bytes, field.options.fill_value));
      }
    }
    return Status();
  };
  const bool needed = std::ranges::any_of(planned.component_bounds, &ErrorBound::needs_range);
  const Status looked = needed ? local_part(look) : Status();
  TAILRACE_TRY(comm_.agree(looked.ok() ? looked : looked.within(field.name())));
  std::vector<double> least = reducible(ranges);
  if (needed) comm_.allreduce(std::span<double>(least), Reduction::min);
  return absolute_bounds(planned.component_bounds, least);
}

/// Find the cells of levels whose values need not be preserved. Every rank finds the same.
Status Repack::find_covered_cells(std::vector<PlannedField>& plan) {
  for (PlannedField& planned : plan) {
    FieldDefinition& field = planned.definition;
    if (field.options.drop_covered) {
      TAILRACE_TAKE(const auto boxes, input_->boxes_of(planned.input_index));
      TAILRACE_TAKE(LevelCover cover, input_->cover_of(planned.input_index, boxes));
      planned.covered_kept_reason = cover.unknown;
      field.covered = std::move(cover.cells);
      field.options.drop_covered = field.covered != nullptr;
    }
    if (planned.covered_kept_reason.empty() || !comm_.is_root()) continue;
    report_.remarks.push_back(fmt::format("{}: covered cells keep their values: {}", field.name(),
                                          planned.covered_kept_reason));
  }
  return Status();
}

/// True if the output has a mask with the input's values.
bool has_mask(const std::vector<PlannedField>& plan, const std::string& path) {
  const auto mask = std::ranges::find(
      plan, path, [](const PlannedField& planned) { return planned.definition.path; });
  if (mask == plan.end()) return false;
  const FieldOptions& own = mask->definition.options;
  return !own.codec_given_for_field || codec_entry(own.codec).loss != Loss::by_purpose;
}

/// Find the masks that determine which values of lossy fields are inside guard=region=/MASK. Every
/// rank finds the same. The output contains the masks unchanged, since verification needs them.
Status Repack::find_region_masks(std::vector<PlannedField>& plan) {
  const bool aims = request_.options.has_target();
  for (PlannedField& planned : plan) {
    FieldDefinition& field = planned.definition;
    const std::vector<RegionGuard>& regions = field.options.guards.regions;
    // A target does not affect fields that must remain exact.
    const bool aimed_at = aims && !field.options.bound_given;
    const bool may_lose = is_floating(field.dtype) && (aimed_at || !field.options.bound.lossless());
    if (!may_lose || field.as_stored != nullptr || !has_masks(regions)) continue;
    TAILRACE_TAKE(field.region_masks,
                  find_masks(*input_, regions, field.shape, &reading_).within(field.name()));
    for (const RegionGuard& region : regions) {
      if (region.mask.empty()) continue;
      if (has_mask(plan, region.mask)) continue;
      return Status(
          Code::invalid_argument,
          fmt::format("{}: guard=region={}: the output must contain the mask \"{}\" unchanged",
                      field.name(), region_text(region), region.mask));
    }
  }
  return Status();
}

/// Notes for the copy of a field: the guards of the source that remain valid.
CopiedNotes Repack::notes_of_copy(const std::vector<PlannedField>& plan,
                                  const PlannedField& planned) {
  const FieldDefinition& field = planned.definition;
  const StoredForm& stored = input_->fields()[planned.input_index].storage;
  CopiedNotes notes;
  const bool stored_alike = field.as_stored != nullptr || field.in_header;
  if (!stored_alike) notes.of = CopyOf::values;
  const Result<Guards> guards = parse_guards(
      input_->text_attribute(field.path, kGuardAttribute).substr(0, kGuardsTextBytesMax));
  // The source has no guards, or a text that cannot be parsed, which is copied unchanged.
  if (!guards.ok()) return notes;
  const bool same_chunks = field.in_header || (stored.kind == StoredForm::Kind::chunked &&
                                               field.options.layout != "contiguous" &&
                                               field.options.chunk_shape == stored.chunk_shape);
  const Guards held = guards_of_copy(*guards, same_chunks,
                                     [&](const std::string& mask) { return has_mask(plan, mask); });
  if (held == *guards) return notes;
  std::optional<std::variant<std::string, double>>& stated = notes.instead[kGuardAttribute];
  if (!held.empty()) stated = guards_text(held);
  if (comm_.is_root() && ++n_less_guarded_ <= kLessGuardedNamed) {
    report_.remarks.push_back(fmt::format(
        "{}: guard={} is recorded as {}, since the output lacks a mask or has other chunks",
        field.name(), guards_text(*guards), guards_text(held)));
  }
  return notes;
}

/// Do not create chunks that the input lacks: in both files their values are the dataset's fill
/// value. Every rank finds the same.
Status Repack::keep_holes(std::vector<PlannedField>& plan) {
  for (PlannedField& planned : plan) {
    FieldDefinition& field = planned.definition;
    if (planned.boxes != nullptr || stored_plainly(field) || field.options.layout == "contiguous") {
      continue;
    }
    TAILRACE_TAKE(planned.chunks_there, input_->chunks_there(planned.input_index));
    if (planned.chunks_there) field.options.allow_holes = true;
  }
  return Status();
}

/// Record losses of the input's values if the output would otherwise not mention them. Every rank
/// does the same. @param exact  the values are encoded without loss.
void Repack::record_losses(PlannedField& planned, bool exact) {
  FieldDefinition& field = planned.definition;
  if (!planned.losses.any() || field.as_stored != nullptr || field.in_header) return;
  const bool rounded = planned.quantization.has_value() &&
                       input_->text_attribute(field.path, kLossesAttribute).empty();
  if (exact && !total_of(planned.losses.losses) && rounded) return;  // Its attributes are copied.
  field.options.earlier_loss = planned.losses.losses;
}

/// Determine which of the input's notes remain true in the output. Every rank finds the same.
/// @param copies  true for --publish as-stored and the like: a field without a requested loss is a
/// copy.
void Repack::choose_notes(std::vector<PlannedField>& plan, bool copies) {
  const bool aims = request_.options.has_target();
  const bool of_file = copies || plan.empty();
  const bool noted = of_file && !input_->text_attribute("/", kFileNoteAttribute).empty();
  std::size_t n_exact = 0;
  std::vector<std::string> unknown;
  const auto speaks = [&](const std::string& path) {
    return !input_->text_attribute(path, kCodecAttribute).empty();
  };
  for (PlannedField& planned : plan) {
    FieldDefinition& field = planned.definition;
    const FieldOptions& options = field.options;
    const bool exact = options.bound.lossless() && (options.bound_given || !aims) &&
                       codec_entry(options.codec).loss != Loss::unknown &&
                       !may_lose(planned, request_.options);
    const bool known = planned.losses.any() && total_of(planned.losses.losses).has_value();
    const bool keeps_notes = (copies || known) && exact && field.as_stored == nullptr &&
                             !field.in_header && speaks(field.path);
    const bool stored = field.as_stored != nullptr || field.in_header;
    if (stored || keeps_notes) {
      field.keeps_source_notes = keeps_notes;
      copied_[field.path] = notes_of_copy(plan, planned);
    }
    if (keeps_notes && known) {
      copied_[field.path].instead[kLossesAttribute] = losses_text(planned.losses.losses);
    } else {
      record_losses(planned, exact);
    }
    if (!noted || keeps_notes || (stored && speaks(field.path))) continue;
    // The input's note states that chunked datasets without notes are exact. It covers no others.
    const bool covered = covered_by_file_note(input_->fields()[planned.input_index].storage);
    const bool becomes_so = !stored && exact && field.options.layout != "contiguous";
    if (covered && !planned.losses.any()) {
      ++n_exact;
    } else if (becomes_so) {
      unknown.push_back(field.path);
    }
  }
  if (n_less_guarded_ > kLessGuardedNamed) {
    report_.remarks.push_back(
        fmt::format("the guards of {} are also recorded only in part",
                    counted(n_less_guarded_ - kLessGuardedNamed, "more dataset")));
  }
  // Drop the note if it would apply to no dataset.
  if (!of_file || (n_exact == 0 && !unknown.empty())) return;
  copied_["/"] = CopiedNotes();
  for (const std::string& path : unknown) copied_[path] = recorded_as_unknown();
  if (comm_.is_root() && !unknown.empty()) {
    report_.remarks.push_back(
        "the loss of these datasets is unknown, and the output records it as unknown: " +
        first_names_text(unknown, kNamesInRemark));
  }
}

/// Name the fields that lose their lossy codec although no codec or bound was requested: their
/// decoded values are stored exactly, mostly in more bytes. Rank 0.
void Repack::report_lost_codecs(const std::vector<PlannedField>& plan) {
  std::map<std::string, std::vector<std::string>> paths_of_codec;
  for (const PlannedField& planned : plan) {
    const FieldDefinition& field = planned.definition;
    const bool decoded = field.as_stored == nullptr && !field.in_header;
    if (!decoded || field.options.codec_given || may_lose(planned, request_.options)) continue;
    const StoredForm& storage = input_->fields()[planned.input_index].storage;
    const std::string noted = input_->text_attribute(field.path, kCodecAttribute);
    const CodecEntry* const entry = find_codec(noted);
    const auto lossy = std::ranges::find_if(
        storage.filters, [](const FilterSpec& filter) { return always_lossy(filter.filter_id); });
    if (planned.losses.any() && entry != nullptr && entry->loss != Loss::never) {
      paths_of_codec[noted].push_back(field.path);
    } else if (lossy != storage.filters.end()) {
      paths_of_codec[filter_name(*lossy)].push_back(field.path);
    }
  }
  for (const auto& [codec, paths] : paths_of_codec) {
    report_.remarks.push_back(fmt::format(
        "the values of lossy codec {} are decoded and stored exactly, without that codec; "
        "--publish as-stored copies the chunks as they are: {}",
        codec, first_names_text(paths, kNamesInRemark)));
  }
}

/// Give the Writer the box layouts of plotfile levels.
Status Repack::set_box_layouts() {
  for (PlannedField& planned : report_.plan) {
    if (planned.boxes == nullptr) continue;
    FieldBoxes boxes{planned.boxes, {}};
    if (!planned.component_bounds.empty()) {
      TAILRACE_TAKE(boxes.bounds, component_bounds(planned));
    }
    planned.definition.boxes = std::make_shared<const FieldBoxes>(std::move(boxes));
  }
  return Status();
}

/// Divide the memory. Collective: an allreduce and an agreement. @returns the Writer's memory.
/// @error out_of_memory
Result<std::uint64_t> Repack::divide_memory() {
  // A request on one rank counts for all ranks.
  std::array<std::uint64_t, 2> agreed{report_.options.memory_bytes,
                                      request_.memory_given ? 0U : 1U};
  comm_.allreduce(std::span(agreed), Reduction::min);
  TAILRACE_TAKE(const MemoryDivision division,
                ranks_.agree(verbs::divide_memory({.plan = report_.plan,
                                                   .stored = input_->fields(),
                                                   .n_ranks = comm_.n_ranks(),
                                                   .all_bytes = agreed[0],
                                                   .memory_given = agreed[1] == 0,
                                                   .scratch = request_.scratch != "off"})));
  if (comm_.is_root() && !division.remark.empty()) report_.remarks.push_back(division.remark);
  reader_.emplace(*input_, division.held_bytes);
  if (division.scratch_whole_bytes) allow_scratch(*division.scratch_whole_bytes);
  return report_.options.memory_bytes - division.set_aside_bytes;
}

/// Allow scratch files in the user's folder, or in the output's. Space must remain for all of the
/// output's values uncompressed.
void Repack::allow_scratch(std::uint64_t whole_bytes) {
  constexpr std::uint64_t metadata_bytes = 16U << 20;
  ScratchPlace place;
  place.output_folder = folder_of(request_.output);
  place.output_bytes = report_.options.input_bytes + metadata_bytes;
  place.anywhere = !request_.scratch.empty();
  place.folder = place.anywhere ? request_.scratch : place.output_folder;
  reader_->use_scratch([place](std::uint64_t n_bytes) { return open_scratch_file(place, n_bytes); },
                       report_.n_threads, whole_bytes);
}

/// Report how many bytes went through scratch files, and why no more. Collective: an allreduce and
/// an agreement.
void Repack::report_scratch() {
  report_.scratch_bytes = reader_->scratch_bytes();
  comm_.allreduce(std::span(&report_.scratch_bytes, 1), Reduction::sum);
  // Failure to create one is reported only if the user has named a folder.
  const bool named = !request_.scratch.empty() && report_.scratch_bytes == 0;
  const Status used =
      comm_.agree(named && reader_->scratch_failure().ok() ? reader_->scratch_refusal()
                                                           : reader_->scratch_failure());
  if (used.ok() || !comm_.is_root()) return;
  report_.remarks.push_back(
      "stored chunks were decoded several times, since the scratch file failed: " + used.message());
}

Status Repack::define_fields(Writer& writer) {
  for (const PlannedField& planned : report_.plan) {
    TAILRACE_TAKE(std::size_t index, writer.define_field(planned.definition));
    field_indices_.push_back(index);
    const FieldDefinition& field = planned.definition;
    sources_.emplace_back(*reader_, field.as_stored != nullptr ? input_.get() : nullptr,
                          planned.input_index,
                          tiles_of(planned, input_->fields()[planned.input_index], comm_.n_ranks(),
                                   reader_->bytes_max()),
                          reading_);
  }
  return Status();
}

Status Repack::put_own_chunks(Writer& writer) {
  std::vector<DealtField> dealt;
  for (std::size_t f = 0; f < sources_.size(); ++f) {
    const FieldDefinition& field = report_.plan[f].definition;
    dealt.push_back({sources_[f].tiles().grid().n_chunks(),
                     n_elements(field.shape) * dtype_bytes(field.dtype)});
  }
  for (const ChunkRun& run : deal_chunks(dealt, comm_.rank(), comm_.n_ranks())) {
    InputSource& source = sources_[run.field_index];
    const ChunkTiles& tiles = source.tiles();
    const PlannedField& planned = report_.plan[run.field_index];
    if (planned.definition.in_header) continue;
    const StoredDataset& stored = input_->fields()[planned.input_index];
    const bool decoded = planned.definition.as_stored == nullptr && !stored.storage.filters.empty();
    if (decoded && !planned.chunks_there) source.expect({run.first, run.end});
    const ChunkGrid grid{stored.shape, stored.storage.chunk_shape};
    for (std::uint64_t position = run.first; position < run.end; ++position) {
      const Box box = tiles.grid().clipped_box(tiles.chunk_at(position));
      if (planned.chunks_there && !touches_any(grid, *planned.chunks_there, box)) continue;
      TAILRACE_TRY(writer.put_source(field_indices_[run.field_index], box, source));
    }
  }
  return Status();
}

void Repack::find_doubts() {
  for (std::size_t f = 0; f < report_.plan.size(); ++f) {
    const FieldReport& field = report_.step.fields[f];
    const std::optional<Quantization>& quantization = report_.plan[f].quantization;
    if (!quantization || field.bound.lossless()) continue;
    std::optional<double> largest;
    if (field.bound.needs_range()) {
      largest = std::max(std::fabs(field.value_least), std::fabs(field.value_greatest));
    }
    std::string doubt = quantization_doubt(field.path, *quantization, field.absolute_bound,
                                           field.pointwise_bound, largest);
    if (!doubt.empty()) report_.remarks.push_back(std::move(doubt));
  }
}

/// Write the values of fields in object headers, at rank 0.
Status Repack::write_in_headers(Hdf5File& output) {
  for (const PlannedField& planned : report_.plan) {
    const FieldDefinition& field = planned.definition;
    const Box whole = whole_box(field.shape);
    if (!field.in_header || whole.n_elements() == 0) continue;
    Buffer values(field.raw_bytes());
    if (!values.allocated())
      return Status(Code::out_of_memory, field.name() + ": not enough memory for " +
                                             std::to_string(field.raw_bytes()) + " bytes");
    TAILRACE_TRY(input_->read(planned.input_index, whole, values.bytes()).within(field.name()));
    TAILRACE_TRY(write_dataset_values(output.hdf5_id(), field.path, Slab::of(whole), field.dtype,
                                      false, values.bytes()));
  }
  return Status();
}

/// Count the values in headers as written without compression.
void Repack::count_in_headers() {
  for (std::size_t f = 0; f < report_.plan.size(); ++f) {
    const FieldDefinition& field = report_.plan[f].definition;
    if (!field.in_header) continue;
    report_.step.fields[f].encoded_bytes += field.raw_bytes();
    report_.step.encoded_bytes += field.raw_bytes();
  }
}

void Repack::carry_over(Writer& writer) {
  // Under layout=front everything is carried over twice; the second pass replaces the first's
  // remarks.
  const std::size_t n_before = report_.remarks.size();
  const auto remember = [this](Result<std::vector<std::string>> remarks) {
    if (!remarks.ok()) return remarks.status();
    report_.remarks.insert(report_.remarks.end(), remarks->begin(), remarks->end());
    return Status();
  };
  const auto attributes_and_names = [this, remember](Hdf5File& output) {
    TAILRACE_TRY(write_in_headers(output));
    TAILRACE_TRY(remember(input_->carry_over_attributes(output, copied_)));
    if (!request_.netcdf.wanted) return Status();
    return remember(name_dimensions(output, dimension_names_));
  };
  const auto objects = [this, n_before, remember](Hdf5File& output) {
    report_.remarks.resize(n_before);
    return remember(input_->carry_over_objects(output));
  };
  writer.on_metadata(objects, attributes_and_names);
}

Status Repack::run() {
  const auto start = std::chrono::steady_clock::now();
  TAILRACE_TRY(prepare());
  TAILRACE_TRY(set_box_layouts());
  report_.options.expected_root_links =
      n_root_members(input_->fields(),
                     [](const StoredDataset& field) -> const std::string& { return field.path; });
  for (const PlannedField& planned : report_.plan) {
    report_.options.input_bytes += planned.definition.raw_bytes();
  }
  // A repack without losses writes no notes.
  const auto loses = [&](const PlannedField& planned) {
    return may_lose(planned, report_.options);
  };
  report_.options.bare_exact =
      report_.options.copies_filters || std::ranges::none_of(report_.plan, loses);
  FileOptions options = report_.options;
  TAILRACE_TAKE(options.memory_bytes, divide_memory());
  keep_user_block(request_.input, input_->user_block_bytes(), options);
  TAILRACE_TAKE(auto created, Writer::create(ranks_.world(), request_.output, options));
  Writer& writer = *created;

  TAILRACE_TRY(ranks_.agree(define_fields(writer)));
  TAILRACE_TRY(comm_.agree(put_own_chunks(writer)));
  carry_over(writer);
  if (comm_.is_root()) {
    writer.on_progress([&](const Progress& p) { ranks_.show(p.bytes_done, p.bytes_total); });
    writer.on_log([&](const std::string& line) { ranks_.report(line); });
  }
  TAILRACE_TAKE(report_.step, writer.end_step());
  count_in_headers();
  if (comm_.is_root()) {
    std::ranges::move(what_is_not_kept(input_->fields(), report_.plan, report_.step.fields),
                      std::back_inserter(report_.remarks));
  }
  std::uint64_t tile_bytes = reader_->peak_bytes();
  comm_.allreduce(std::span(&tile_bytes, 1), Reduction::max);
  report_.step.peak_memory_bytes += tile_bytes;
  if (report_.options.trace) {
    report_.events = writer.gather_trace();
    report_.field_paths = writer.field_paths();
  }
  TAILRACE_TRY(writer.close());
  report_scratch();
  if (comm_.is_root()) find_doubts();
  if (comm_.is_root()) report_.step.file_bytes = file_bytes_of(request_.output);
  report_.total_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Status();
}

}  // namespace

Result<Publish> parse_publish(const std::string& text) {
  const auto* const found = std::find(kPublishNames.begin() + 1, kPublishNames.end(), text);
  if (found == kPublishNames.end()) {
    return Status(Code::invalid_argument,
                  "--publish " + text + ": expected cmip7, cloud or as-stored");
  }
  return Publish(found - kPublishNames.begin());
}

Result<std::vector<std::string>> repack_outputs(const std::vector<std::string>& inputs,
                                                const std::string& output, bool netcdf) {
  std::vector<std::string> outputs;
  const bool into_folder = is_directory(output);
  if (inputs.size() > 1 && !into_folder) {
    return Status(
        Code::invalid_argument,
        fmt::format("several inputs need an existing folder as --output; {} is not a folder",
                    output));
  }
  for (const std::string& input : inputs) {
    const std::string path =
        into_folder ? (std::filesystem::path(output) / output_name(input, netcdf)).string()
                    : output;
    if (std::find(outputs.begin(), outputs.end(), path) != outputs.end()) {
      return Status(Code::invalid_argument,
                    fmt::format("two inputs have the same output name {}", path));
    }
    outputs.push_back(path);
  }
  return outputs;
}

Result<RepackReport> repack(const VerbRanks& ranks, const RepackRequest& request) {
  Repack repack(ranks, request);
  TAILRACE_TRY(repack.run());
  return repack.take_report();
}

}  // namespace tailrace::verbs
