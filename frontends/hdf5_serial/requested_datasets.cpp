// Options, the resulting requests for datasets, and their creation lists.

#include "hdf5_serial/requested_datasets.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "core/option_table.hpp"
#include "core/utf8.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "policy/door_rules.hpp"
#include "policy/storage_decision.hpp"
#include "report/remark.hpp"

namespace tailrace::hdf5_serial {
namespace {

/// Number of owners for which the chunks of an unchunked dataset are chosen, so that each gets
/// several.
constexpr std::uint64_t kOwnersOfChunks = 4;
/// Number of values that are scanned at a time for a verdict on an absolute bound.
constexpr std::size_t kJudgedAtOnce = 8192;

tailrace::DatasetFacts policy_facts(const DatasetFacts& facts) {
  tailrace::DatasetFacts of_policy;
  of_policy.number = facts.dtype;
  of_policy.element_bytes = dtype_bytes(facts.dtype);
  of_policy.shape = facts.shape;
  of_policy.growing = facts.growing;
  of_policy.own_chunks = facts.chunk_shape;
  return of_policy;
}

// Reasons in File::left_out.
constexpr const char* kChunkedByProgram =
    "chunk= applies only to datasets that the program does not chunk; others keep the program's "
    "chunks";
constexpr const char* kOnlyWithCodec =
    "chunk= and guard= have no effect without codec= or bound= in these options";
constexpr const char* kWithoutName =
    "options do not apply to datasets that are created without a name (H5Dcreate_anon)";
constexpr const char* kCopiedAsTheyAre =
    "options do not apply to the copies of H5Ocopy, which are stored like their sources";

bool asks_for_chunks(const FieldOptions& options) {
  return options.chunk_shape || options.chunk_bytes != FieldOptions().chunk_bytes;
}

/// True if an entry for this dataset, not one for all datasets, requests chunks or guards.
bool adds_chunks_or_guards(const FieldOptions& options, const FieldOptions& of_all) {
  return options.chunk_bytes != of_all.chunk_bytes || options.guards != of_all.guards ||
         (options.chunk_shape && options.chunk_shape != of_all.chunk_shape);
}

/// Text for a reason and its datasets: "H5Ocopy ...: "/a", "/b" and 7 more"
std::string left_out_text(const std::string& why, const std::set<std::string>& paths) {
  constexpr std::size_t most_names = 8;
  const auto quoted = [](const std::string& path) { return "\"" + path + "\""; };
  return why + ": " + first_names_text(paths, most_names, quoted);
}

}  // namespace

// --- A dataset.

Result<std::shared_ptr<RequestedDataset>> RequestedDataset::make(const FieldOptions& options,
                                                                 const DatasetFacts& facts,
                                                                 bool by_name) {
  auto requested = std::make_shared<RequestedDataset>();
  requested->options_ = options;
  requested->facts_ = facts;
  requested->by_name_ = by_name;
  CodecRequest exact = requested->request_for(0);
  exact.pointwise_bound = 0;
  exact.guards = {};
  TAILRACE_TAKE(requested->exact_, make_codec(exact));
  if (!requested->loses()) return requested;
  // Try the codec now: a later failure could not be reported.
  const double some = options.bound.needs_range() ? 1 : absolute_bound(options.bound, 0, 0);
  TAILRACE_TAKE(const std::unique_ptr<Codec> tried, make_codec(requested->request_for(some)));
  const std::vector<FilterSpec>& header = requested->filters();
  const std::vector<FilterSpec>& made = tried->filters();
  if (!std::ranges::equal(header, made, {}, &FilterSpec::filter_id, &FilterSpec::filter_id)) {
    return Status(Code::unsupported,
                  "codec " + requested->options_.codec +
                      " uses other filters with a bound than without; choose trz or portable");
  }
  return requested;
}

bool RequestedDataset::fits(const DatasetFacts& facts,
                            const std::vector<FilterSpec>& header) const {
  const auto same = [](const FilterSpec& a, const FilterSpec& b) {
    return a.filter_id == b.filter_id && a.final_client_data == b.final_client_data;
  };
  return facts.dtype == facts_.dtype && facts.chunk_shape == facts_.chunk_shape &&
         std::ranges::equal(header, filters(), same);
}

CodecRequest RequestedDataset::request_for(double absolute_bound) const {
  CodecRequest request{options_.codec, options_.codec_settings, facts_.dtype, facts_.chunk_shape,
                       absolute_bound};
  request.fill_value = facts_.fill_value;
  request.pointwise_bound = pointwise_bound(options_.bound);
  request.guards = options_.guards;
  request.array_shape = facts_.shape;
  for (std::size_t d = 0; d < request.array_shape.size(); ++d) {
    if (facts_.growing[d]) request.array_shape[d] = UINT64_MAX;
  }
  request.absolute_bound =
      request.guards.bound_within(request.absolute_bound, request.array_shape.size());
  return request;
}

void RequestedDataset::note_values(std::span<const std::byte> values) {
  if (judged_by_range(options_.bound, options_.guards)) {
    const double bound = request_for(options_.bound.value).absolute_bound;
    const std::size_t step = kJudgedAtOnce * dtype_bytes(facts_.dtype);
    while (!values.empty() && spans_range(bound, range_.least, range_.greatest)) {
      const std::span<const std::byte> here = values.first(std::min(step, values.size()));
      range_.merge(value_range(facts_.dtype, here, facts_.fill_value));
      values = values.subspan(here.size());
    }
  }
  if (!options_.bound.needs_range()) return;
  range_.merge(value_range(facts_.dtype, values, facts_.fill_value));
  sample_.add(facts_.dtype, values, facts_.fill_value);
}

ValueFacts RequestedDataset::facts_now(double absolute_bound) const {
  return {range_.least,
          range_.greatest,
          range_.n_finite,
          range_.n_least,
          range_.n_greatest,
          range_.next_least,
          range_.next_greatest,
          sample_.n_nonzero(),
          sample_.n_below(absolute_bound),
          sample_.lower_quartile()};
}

std::string RequestedDataset::take_bound_remark() {
  constexpr OptionSyntax syntax = {
      "VALUE as the dataset's fill value, or as its attribute _FillValue",
      "allow-wide-bound=on in TAILRACE_OPTIONS"};
  if (lossy_ && judged_by_range(options_.bound, options_.guards)) {
    const double bound = request_for(codec_bound_).absolute_bound;
    width_ = judge_bound(options_.bound, bound, facts_now(bound));
  }
  if (width_reported_ || width_.fine()) return "";
  width_reported_ = true;
  const double bound = absolute_bound(options_.bound, range_.least, range_.greatest);
  const BoundSubject subject{
      facts_.path, "dataset \"" + facts_.path + "\"", facts_.dtype, options_.bound, bound, syntax};
  if (!width_.refused(options_.allow_wide_bound)) return remark_text(subject, width_);
  return "stored exactly from now on: " + refusal_text(subject, width_);
}

const Codec* RequestedDataset::codec_now() {
  if (!loses() || keeps_) return nullptr;
  const double bound = range_.empty()
                           ? absolute_bound(options_.bound, 0, 0)
                           : absolute_bound(options_.bound, range_.least, range_.greatest);
  if (!range_.empty() && options_.bound.needs_range())
    width_ = judge_bound(options_.bound, bound, facts_now(bound));
  if (width_.refused(options_.allow_wide_bound)) return nullptr;
  const bool pointwise = options_.bound.mode == BoundMode::pw_rel;
  if (!pointwise && !(bound > 0)) return nullptr;
  if (codec_ != nullptr && bound == codec_bound_) return codec_->lossy() ? codec_.get() : nullptr;
  Result<std::unique_ptr<Codec>> made = make_codec(request_for(bound));
  if (!made.ok()) return nullptr;
  codec_ = std::move(*made);
  codec_bound_ = bound;
  return codec_->lossy() ? codec_.get() : nullptr;
}

void RequestedDataset::note_stored() {
  const double bound = request_for(codec_bound_).absolute_bound;
  if (lossy_ && bound <= largest_bound_) return;
  largest_bound_ = std::max(largest_bound_, bound);
  lossy_ = true;
  described_ = false;
}

std::vector<EncodingNote> RequestedDataset::notes() const {
  return encoding_notes(*codec_, options_.bound, largest_bound_, options_.guards, std::nullopt);
}

// --- Files.

Result<GlobOptions> RequestedFiles::read_options(bool& given) {
  GlobOptions options;
  options.file.door = Door::serial;
  options.file.notes = Notes::all;  // Nothing is added to the program's root group.
  TAILRACE_TAKE(const OptionsText requested, options_text_of_environment());
  given = !trimmed(requested.text).empty();
  const auto check = [&] {
    TAILRACE_TRY(apply_glob_options(requested.text, options, requested.file));
    if (!options.component_bounds.empty()) {
      return Status(Code::unsupported,
                    "component: entries apply only to plotfiles of parallel programs");
    }
    if (!options.spill_folder.empty()) {
      return Status(Code::unsupported, "option spill-folder: serial programs do not spill");
    }
    TAILRACE_TRY(check_door(options));
    return check_codecs(options);
  };
  TAILRACE_TRY(check().within("TAILRACE_OPTIONS"));
  return options;
}

void RequestedFiles::enter(hid_t id, File&& file, bool given) {
  H5O_info_t info{};
  if (!given && replaced_.empty()) return;
  if (hdf5_.H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0) return;
  struct stat status {};
  // Files without a name in the file system, such as in-memory ones, end with their number.
  const bool named = stat(file.name.c_str(), &status) == 0;
  const Identity identity =
      named ? Identity{status.st_dev, status.st_ino} : Identity{0, ino_t(info.fileno)};
  if (file.made_here) replaced_.erase(identity);
  identities_[info.fileno] = identity;
  if (given) files_.try_emplace(info.fileno, std::move(file));  // It may be open already.
}

hid_t RequestedFiles::close_later(hid_t list) {
  lists_.push_back(list);
  return list;
}

RequestedFiles::File* RequestedFiles::file_of(hid_t object) {
  if (files_.empty()) return nullptr;
  H5O_info_t info{};
  if (hdf5_.H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return nullptr;
  const auto found = files_.find(info.fileno);
  return found != files_.end() ? &found->second : nullptr;
}

void RequestedFiles::leave(hid_t file) {
  for (const hid_t list : std::exchange(lists_, {})) hdf5_.H5Pclose(list);
  if (file < 0) {  // HDF5 may restart, and then numbers files from 0 again.
    identities_.clear();
    std::erase_if(replaced_, [](const auto& entry) { return entry.first.first == 0; });
  }
  if (files_.empty()) return;
  H5O_info_t info{};
  if (file >= 0 && (hdf5_.H5Iget_ref(file) > 1 || hdf5_.H5Fget_obj_count(file, H5F_OBJ_FILE) > 1 ||
                    hdf5_.H5Oget_info2(file, &info, H5O_INFO_BASIC) < 0)) {
    return;
  }
  std::erase_if(files_, [&](const auto& entry) {
    if (file >= 0 && entry.first != info.fileno) return false;
    report_idle(entry.second);
    return true;
  });
}

void RequestedFiles::report_idle(const File& file) {
  const auto report_once = [&](const std::string& remark) {
    if (remark.empty() || !reported_.insert(remark).second) return;
    report::print_remark({file.name, ": ", remark});
  };
  for (const auto& [why, paths] : file.left_out) report_once(left_out_text(why, paths));
  for (const std::string& remark : file.lossy_roles) report_once(remark);
  if (environment_is("TAILRACE_REPORT", "1")) {
    for (const auto& [why, paths] : file.exact) report_once(left_out_text(why, paths));
  }
  for (const auto& [address, dataset] : file.datasets) report_once(dataset->take_bound_remark());
  const FieldOptions& of_all = file.options.file.field_defaults;
  const bool alone = asks_for_chunks(of_all) || !of_all.guards.empty();
  if (alone && !file.requested && !file.paths.empty()) report_once(kOnlyWithCodec);
  if (!file.made_here && file.paths.empty()) return;
  report_once(idle_globs_remark(file.options, file.paths, {}));
}

std::string RequestedFiles::path_of(hid_t object) const {
  const ssize_t length = hdf5_.H5Iget_name(object, nullptr, 0);
  if (length <= 0) return {};
  std::string path(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_.H5Iget_name(object, path.data(), path.size());
  path.pop_back();
  return path;
}

std::optional<DType> RequestedFiles::number_of(hid_t type) const {
  if (hdf5_.H5Tequal(type, *hdf5_.H5T_NATIVE_FLOAT_g) > 0) return DType::f32;
  if (hdf5_.H5Tequal(type, *hdf5_.H5T_NATIVE_DOUBLE_g) > 0) return DType::f64;
  return std::nullopt;
}

/// Read the properties of a dataset. @returns why options cannot apply to it; null if they can
const char* RequestedFiles::read_facts(hid_t type, hid_t space, hid_t list,
                                       DatasetFacts& facts) const {
  constexpr const char* unreadable =
      "HDF5 cannot describe the dataset, so it is stored as the program defines it";
  const std::optional<DType> dtype = number_of(type);
  const int rank = hdf5_.H5Sget_simple_extent_ndims(space);
  if (!dtype) return "codecs and bounds apply only to native f32 and f64 values";
  if (rank <= 0) return "codecs and bounds apply only to arrays";
  facts.dtype = *dtype;
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  std::vector<hsize_t> most(extents.size());
  if (hdf5_.H5Sget_simple_extent_dims(space, extents.data(), most.data()) != rank) {
    return unreadable;
  }
  facts.shape.assign(extents.begin(), extents.end());
  for (std::size_t d = 0; d < extents.size(); ++d) facts.growing.push_back(most[d] != extents[d]);
  const H5D_layout_t layout = list == H5P_DEFAULT ? H5D_CONTIGUOUS : hdf5_.H5Pget_layout(list);
  if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(extents.size());
    if (hdf5_.H5Pget_chunk(list, rank, chunk.data()) != rank) return unreadable;
    facts.chunk_shape.assign(chunk.begin(), chunk.end());
  } else if (layout != H5D_CONTIGUOUS || std::ranges::count(facts.growing, true) > 0 ||
             (list != H5P_DEFAULT && hdf5_.H5Pget_external_count(list) != 0)) {
    return "codecs and bounds apply only to chunked and contiguous datasets";
  }
  H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
  if (list == H5P_DEFAULT || hdf5_.H5Pfill_value_defined(list, &fill) < 0 ||
      fill != H5D_FILL_VALUE_USER_DEFINED) {
    return nullptr;
  }
  float narrow = 0;
  double value = 0;
  void* const there = facts.dtype == DType::f32 ? static_cast<void*>(&narrow) : &value;
  if (hdf5_.H5Pget_fill_value(list, type, there) < 0) return unreadable;
  facts.fill_value = facts.dtype == DType::f32 ? static_cast<double>(narrow) : value;
  return nullptr;
}

/// Find the request for a dataset.
/// @param created  true for a new dataset: requests that are not met will be reported.
Result<std::shared_ptr<RequestedDataset>> RequestedFiles::ask(File& file, DatasetFacts facts,
                                                              bool created) const {
  const bool by_name = named_alone(facts.path, file.options);
  const std::shared_ptr<RequestedDataset> nothing;
  const auto make = [&]() -> Result<std::shared_ptr<RequestedDataset>> {
    TAILRACE_TAKE(FieldOptions options,
                  options_by_glob(facts.path, facts.shape.size(), false, file.options));
    if (!options.codec_given && options.bound.lossless()) {
      const bool idle = adds_chunks_or_guards(options, file.options.file.field_defaults);
      if (created && idle) file.left_out[kOnlyWithCodec].insert(facts.path);
      return nothing;
    }
    StorageRequest request;
    request.options = options;
    request.named = by_name;
    TAILRACE_TAKE(const StorageDecision decision,
                  decide(policy_facts(facts), request, Door::serial));
    if (decision.form == StorageForm::by_hdf5) return nothing;
    if (created) {
      file.requested = true;
      const bool kept = !facts.chunk_shape.empty() && asks_for_chunks(options);
      if (kept) file.left_out[kChunkedByProgram].insert(facts.path);
    }
    if (facts.chunk_shape.empty()) {
      if (options.chunk_shape && options.chunk_shape->size() != facts.shape.size()) {
        return Status(Code::invalid_argument, "chunk shape " + shape_text(*options.chunk_shape) +
                                                  " must have as many dimensions as shape " +
                                                  shape_text(facts.shape));
      }
      facts.chunk_shape = options.chunk_shape
                              ? *options.chunk_shape
                              : chunk_shape_to_share(facts.shape, dtype_bytes(facts.dtype),
                                                     options.chunk_bytes, kOwnersOfChunks);
      for (std::size_t d = 0; d < facts.chunk_shape.size(); ++d) {
        facts.chunk_shape[d] = std::clamp<std::uint64_t>(facts.chunk_shape[d], 1, facts.shape[d]);
      }
    }
    return RequestedDataset::make(decision.options, facts, by_name);
  };
  Result<std::shared_ptr<RequestedDataset>> made = make();
  if (made.ok()) return made;
  return made.status().within("dataset \"" + facts.path + "\"");
}

Result<std::shared_ptr<RequestedDataset>> RequestedFiles::plan(const Creation& creation) {
  const std::shared_ptr<RequestedDataset> nothing;
  for (const hid_t list : std::exchange(lists_, {})) hdf5_.H5Pclose(list);
  File* const file = creation.name != nullptr ? file_of(creation.location) : nullptr;
  if (file == nullptr) return nothing;
  DatasetFacts facts;
  facts.path =
      absolute_path(creation.name[0] == '/' ? "" : path_of(creation.location), creation.name);
  file->paths.push_back(facts.path);
  file->known.add(facts.path);
  const char* why = read_facts(creation.type, creation.space, creation.list, facts);
  const bool grows = std::ranges::count(facts.growing, true) > 0;
  if (why == nullptr && n_elements(facts.shape) == 0 && !grows) {
    why = "codecs and bounds apply only to datasets that have elements or can grow";
  }
  if (why == nullptr) return ask(*file, std::move(facts), true);
  // A pattern with wildcards need not apply to everything that it matches.
  if (named_alone(facts.path, file->options)) file->left_out[why].insert(facts.path);
  return nothing;
}

Result<hid_t> RequestedFiles::creation_list(const Creation& creation,
                                            const RequestedDataset& requested) const {
  const hid_t list = creation.list != H5P_DEFAULT
                         ? hdf5_.H5Pcopy(creation.list)
                         : hdf5_.H5Pcreate(*hdf5_.H5P_CLS_DATASET_CREATE_ID_g);
  bool ok = list >= 0;
  const std::vector<hsize_t> chunk(requested.chunk_shape().begin(), requested.chunk_shape().end());
  // The list may have filters even without chunks.
  ok = ok && hdf5_.H5Premove_filter(list, H5Z_FILTER_ALL) >= 0;
  ok = ok && hdf5_.H5Pset_chunk(list, int(chunk.size()), chunk.data()) >= 0;
  for (const FilterSpec& filter : requested.filters()) {
    ok = ok && hdf5_.H5Pset_filter(list, H5Z_filter_t(filter.filter_id), filter.flags,
                                   filter.client_data.size(), filter.client_data.data()) >= 0;
  }
  // Early allocation would fill and encode all chunks immediately.
  ok = ok && hdf5_.H5Pset_alloc_time(list, H5D_ALLOC_TIME_INCR) >= 0;
  if (ok) return list;
  if (list >= 0) hdf5_.H5Pclose(list);
  return Status(Code::unsupported,
                "dataset \"" + requested.path() +
                    "\": HDF5 rejects the creation list that these options lead to");
}

void RequestedFiles::decide_role(hid_t dataset, RequestedDataset& requested) {
  File* const file = file_of(dataset);
  if (file == nullptr) return;
  const QuietHdf5 quiet(hdf5_);
  bool complete = true;
  if (!file->listed && !file->made_here) {
    KnownObjects earlier;
    const hid_t id = hdf5_.H5Iget_file_id(dataset);
    complete = id >= 0 && earlier.list(hdf5_, id);
    if (id >= 0) hdf5_.H5Fclose(id);
    file->known = std::move(earlier);  // It has those that were created here, too.
  }
  file->listed = complete;
  const std::optional<RoleVerdict> verdict =
      complete ? file->known.role_of(hdf5_, dataset, requested.path()) : std::nullopt;
  const bool by_name = requested.role_untold();
  requested.set_role_known();
  if (verdict && verdict->role == Role::value) return;
  if (by_name) {
    if (!verdict) return;
    file->lossy_roles.insert(lossy_role_text(
        requested.path(), std::string(role_name(verdict->role)) + " by " + verdict->because,
        "TAILRACE_OPTIONS"));
    return;
  }
  requested.keep_exact();
  const std::string why = verdict
                              ? std::string(role_name(verdict->role)) + " by " + verdict->because
                              : "of unknown role: HDF5 cannot describe the file";
  file->exact["exact under a bound for all (" + why + ")"].insert(requested.path());
}

void RequestedFiles::add(hid_t dataset, const std::shared_ptr<RequestedDataset>& requested) {
  H5O_info_t info{};
  if (identities_.empty() || hdf5_.H5Oget_info2(dataset, &info, H5O_INFO_BASIC) < 0) return;
  const auto identity = identities_.find(info.fileno);
  if (identity != identities_.end()) {
    std::set<haddr_t>& replaced = replaced_[identity->second];
    if (requested != nullptr) {
      replaced.insert(info.addr);
    } else {
      replaced.erase(info.addr);  // The address may be that of a deleted dataset.
    }
  }
  const auto file = files_.find(info.fileno);
  if (file == files_.end()) return;
  file->second.datasets.erase(info.addr);  // The address may be that of a deleted dataset.
  if (requested != nullptr) file->second.datasets[info.addr] = requested;
}

/// True if codecs and bounds apply to the values of this object.
bool RequestedFiles::has_numbers(hid_t object) const {
  if (object < 0 || hdf5_.H5Iget_type(object) != H5I_DATASET) return false;
  const hid_t type = hdf5_.H5Dget_type(object);
  if (type < 0) return false;
  const bool numbers = number_of(type).has_value();
  hdf5_.H5Tclose(type);
  return numbers;
}

void RequestedFiles::add_anonymous(hid_t dataset) {
  File* const file = file_of(dataset);
  if (file == nullptr) return;
  const FieldOptions& of_all = file->options.file.field_defaults;
  const bool requested = of_all.codec_given || !of_all.bound.lossless();
  if (requested && has_numbers(dataset)) file->left_out[kWithoutName].insert("(without a name)");
}

/// Context of add_copied() for each copied dataset.
struct RequestedFiles::Copy {
  RequestedFiles* files;
  hid_t from;
  std::string from_name;
  std::string to_path;
  bool failed = false;  ///< Memory is missing.
};

herr_t RequestedFiles::visit_copied(hid_t, const char* name, const H5O_info_t* info, void* data) {
  auto* const copy = static_cast<Copy*>(data);
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    copy->files->add_copied(*copy, name, *info);
  } catch (const std::bad_alloc&) {
    copy->failed = true;  // Exceptions must not pass through HDF5's C code.
    return -1;
  }
  return 0;
}

void RequestedFiles::add_copied(const Copy& copy, const char* name, const H5O_info_t& info) {
  const bool itself = std::string_view(name) == ".";
  const std::string below = itself ? "" : std::string("/") + name;
  const hid_t source = hdf5_.H5Oopen(copy.from, (copy.from_name + below).c_str(), H5P_DEFAULT);
  const bool replaced = source >= 0 && has_replaced_filters(source);
  const bool numbers = has_numbers(source);
  if (source >= 0) hdf5_.H5Oclose(source);
  const auto identity = identities_.find(info.fileno);
  if (identity != identities_.end()) {
    std::set<haddr_t>& there = replaced_[identity->second];
    if (replaced) there.insert(info.addr);
    if (!replaced) there.erase(info.addr);  // The address may be that of a deleted dataset.
  }
  const auto file = files_.find(info.fileno);
  if (file == files_.end()) return;
  file->second.datasets.erase(info.addr);
  const std::string path = copy.to_path + below;
  file->second.paths.push_back(path);
  const Result<FieldOptions> options = options_by_glob(path, 0, false, file->second.options);
  const bool requested = options.ok() && (options->codec_given || !options->bound.lossless());
  if (requested && numbers && !replaced) file->second.left_out[kCopiedAsTheyAre].insert(path);
}

void RequestedFiles::add_copy(hid_t from, const char* from_name, hid_t to, const char* to_name) {
  if (identities_.empty() || from_name == nullptr || to_name == nullptr) return;
  const QuietHdf5 quiet(hdf5_);
  const hid_t made = hdf5_.H5Oopen(to, to_name, H5P_DEFAULT);
  if (made < 0) return;
  Copy copy{this, from, from_name, absolute_path(to_name[0] == '/' ? "" : path_of(to), to_name)};
  hdf5_.H5Ovisit2(made, H5_INDEX_NAME, H5_ITER_NATIVE, visit_copied, &copy, H5O_INFO_BASIC);
  hdf5_.H5Oclose(made);
  if (copy.failed) throw std::bad_alloc();
}

bool RequestedFiles::has_replaced_filters(hid_t dataset) const {
  if (replaced_.empty()) return false;
  const QuietHdf5 quiet(hdf5_);
  H5O_info_t info{};
  if (hdf5_.H5Oget_info2(dataset, &info, H5O_INFO_BASIC) < 0) return false;
  const auto identity = identities_.find(info.fileno);
  if (identity == identities_.end()) return false;
  const auto replaced = replaced_.find(identity->second);
  return replaced != replaced_.end() && replaced->second.contains(info.addr);
}

std::shared_ptr<RequestedDataset> RequestedFiles::find(hid_t dataset, const H5O_info_t& info,
                                                       hid_t creation_list,
                                                       const std::vector<FilterSpec>& filters) {
  const auto file = files_.find(info.fileno);
  if (file == files_.end()) return nullptr;
  const hid_t type = hdf5_.H5Dget_type(dataset);
  const hid_t space = hdf5_.H5Dget_space(dataset);
  DatasetFacts facts;
  facts.path = path_of(dataset);
  const bool known =
      type >= 0 && space >= 0 && read_facts(type, space, creation_list, facts) == nullptr;
  if (type >= 0) hdf5_.H5Tclose(type);
  if (space >= 0) hdf5_.H5Sclose(space);
  if (!known) return nullptr;
  auto& datasets = file->second.datasets;
  const auto made_here = datasets.find(info.addr);
  // Another dataset may have replaced a deleted one at this address.
  if (made_here != datasets.end() && made_here->second->fits(facts, filters)) {
    return made_here->second;
  }
  // An earlier program may have created it with the same request.
  const Result<std::shared_ptr<RequestedDataset>> requested = ask(file->second, facts, false);
  if (!requested.ok() || *requested == nullptr) return nullptr;
  RequestedDataset& it = **requested;
  const ErrorBound& bound = it.options().bound;
  const bool same = it.loses() && it.fits(facts, filters) &&
                    number_attribute(dataset, kBoundAskedAttribute) == bound.value &&
                    text_attribute(dataset, kCodecAttribute) == it.options().codec &&
                    text_attribute(dataset, kBoundModeAttribute) == bound_mode_name(bound.mode);
  if (!same) return nullptr;
  it.continue_from(number_attribute(dataset, kAbsoluteBoundAttribute).value_or(0));
  datasets[info.addr] = *requested;
  return *requested;
}

}  // namespace tailrace::hdf5_serial
