// Schema part of the check; check_rows.cpp has the part of rows and keys.

#include "concat/check/concat_check.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "concat/check/check_objects.hpp"
#include "concat/check/check_rows.hpp"
#include "core/utf8.hpp"
#include "describe/dimension_survey.hpp"
#include "describe/hdf5_catalog.hpp"
#include "describe/input_bytes.hpp"
#include "describe/survey_differences.hpp"
#include "hdf5/hdf5_handle.hpp"

namespace tailrace {
namespace {

std::string dataset_text(const std::string& path) { return "dataset \"" + path + "\""; }

struct Extents {
  bool appended = false;  ///< True for a simple space with at least one dimension.
  Shape shape;
};

Extents both_extents_of(hid_t dataset) {
  const Hdf5Id space(H5Dget_space(dataset));
  Extents extents;
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE || rank < 1) return extents;
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  extents.appended = true;
  extents.shape.assign(shape.begin(), shape.end());
  return extents;
}

/// Bytes of the fill value; zeros if none is set.
std::vector<std::byte> fill_bytes(hid_t dataset, hid_t type) {
  std::vector<std::byte> bytes(H5Tget_size(type));
  const Hdf5Id list(H5Dget_create_plist(dataset));
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  H5Pfill_value_defined(list.get(), &defined);
  if (defined == H5D_FILL_VALUE_USER_DEFINED) {
    H5Pget_fill_value(list.get(), type, bytes.data());
  }
  return bytes;
}

std::string kind_text(H5O_type_t type) {
  if (type == H5O_TYPE_GROUP) return "group";
  return type == H5O_TYPE_DATASET ? "dataset" : "named type";
}

/// True for a partition key: an int64 dataset "NAME.seq" next to a dataset NAME.
bool looks_like_key(hid_t file, const std::string& path) {
  constexpr std::string_view ending = ".seq";
  if (!path.ends_with(ending)) return false;
  const Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const std::string like = path.substr(0, path.size() - ending.size());
  return H5Tequal(type.get(), H5T_STD_I64LE) > 0 && H5Lexists(file, like.c_str(), H5P_DEFAULT) > 0;
}

/// Compare the values of two scalar or null datasets of one type.
Status compare_single(const std::string& who, const CheckedSide& input, const CheckedSide& output,
                      ConcatFindings& findings) {
  const auto read = [](hid_t dataset) {
    return CheckedElements(Hdf5Id(H5Dget_type(dataset)), Hdf5Id(H5Dget_space(dataset)),
                           [&](hid_t memory_type, void* bytes) {
                             return H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                            bytes);
                           });
  };
  const CheckedElements here = read(output.object);
  const CheckedElements there = read(input.object);
  if (!here.read() || !there.read()) return hdf5_failure(Code::corrupt, who + " cannot be read");
  if (here.n_elements() != there.n_elements()) {
    findings.add(who + " has a null dataspace in only one of the two files");
    return Status();
  }
  if (here.n_elements() == 0) return Status();
  const CheckedValue value{here.at(0), output.file};
  const CheckedValue expected{there.at(0), input.file};
  if (!same_value(here.type(), expected, value)) {
    findings.add(who + " is " + checked_value_text(here.type(), value) + ", " +
                 checked_value_text(here.type(), expected) + " in " + "the first input");
  }
  return Status();
}

class ConcatCheckImpl final : public ConcatCheck {
 public:
  ConcatCheckImpl(std::string output, std::string first_input, const Settings& settings)
      : output_name_(std::move(output)),
        first_name_(std::move(first_input)),
        memory_bytes_(settings.memory_bytes),
        follow_external_(settings.follow_external),
        keep_first_(settings.keep_first),
        tile_names_(settings.tile_dimensions) {}
  ~ConcatCheckImpl() override {
    const Hdf5Scope scope;
    types_.clear();
    output_.reset();
  }

  Status open() {
    const Hdf5Scope scope;
    TAILRACE_TAKE(output_, open_checked_file(output_name_));
    TAILRACE_TAKE(Hdf5Id first, open_checked_file(first_name_));
    TAILRACE_TAKE(auto wanted, list_checked_objects(first.get(), first_name_));
    TAILRACE_TAKE(auto found, list_checked_objects(output_.get(), output_name_));
    wanted_ = std::move(wanted);
    found_ = std::move(found);
    TAILRACE_TRY(find_fixed(first.get()).within(first_name_));
    TAILRACE_TAKE(first_survey_, survey_of(first.get()).within(first_name_));
    std::unordered_set<std::string> there;
    for (const CheckedObject& object : found_) {
      if (object.type == H5O_TYPE_DATASET) there.insert(object.path);
    }
    for (const CheckedObject& object : wanted_) {
      if (object.type != H5O_TYPE_DATASET) continue;
      wanted_datasets_.insert(object.path);
      if (there.contains(object.path)) TAILRACE_TRY(add_dataset(object.path));
    }
    for (const CheckedObject& object : found_) {
      const bool extra = object.type == H5O_TYPE_DATASET && !wanted_datasets_.contains(object.path);
      if (extra && looks_like_key(output_.get(), object.path)) keys_.push_back(object.path);
    }
    return Status();
  }

  const std::vector<Dataset>& datasets() const override { return datasets_; }
  const std::vector<std::string>& keys() const override { return keys_; }

  Status compare_objects(ConcatFindings& findings) override {
    const Hdf5Scope scope;
    TAILRACE_TAKE(Hdf5Id first, open_checked_file(first_name_));
    CheckedPaths paths_here(output_.get());
    CheckedPaths paths_there(first.get(), &paths_here);
    std::unordered_map<std::string, H5O_type_t> found;
    for (const CheckedObject& object : found_) found.emplace(object.path, object.type);
    for (const CheckedObject& object : wanted_) {
      const std::string who = kind_text(object.type) + " \"" + object.path + "\"";
      const auto here = found.find(object.path);
      if (here == found.end()) {
        findings.add(output_name_ + ": " + who + " is missing");
        continue;
      }
      const H5O_type_t type = here->second;
      found.erase(here);
      if (type != object.type) {
        findings.add(output_name_ + ": " + who + " is a " + kind_text(type));
        continue;
      }
      const Hdf5Id input(H5Oopen(first.get(), object.path.c_str(), H5P_DEFAULT));
      const Hdf5Id output(H5Oopen(output_.get(), object.path.c_str(), H5P_DEFAULT));
      if (!input.valid() || !output.valid()) {
        return hdf5_failure(Code::corrupt, who + ": cannot be opened");
      }
      const CheckedSide a{input.get(), {first.get(), paths_there}};
      const CheckedSide b{output.get(), {output_.get(), paths_here}};
      compare_attributes(a, b, who, findings);
      if (type == H5O_TYPE_DATASET) TAILRACE_TRY(compare_dataset(object.path, a, b, findings));
    }
    for (const CheckedObject& object : found_) {
      if (!found.contains(object.path)) continue;
      if (std::find(keys_.begin(), keys_.end(), object.path) != keys_.end()) continue;
      findings.add(output_name_ + ": " + kind_text(object.type) + " \"" + object.path +
                   "\" is not in any input");
    }
    compare_key_rows(findings);
    TAILRACE_TRY(compare_links(findings).within(output_name_));
    TAILRACE_TRY(count_bytes_outside(output_.get(), output_name_, output_outside_));
    TAILRACE_TRY(paths_here.failure().within(output_name_));
    return paths_there.failure().within(first_name_);
  }

  Result<std::vector<InputRows>> survey(const std::string& input, std::size_t source,
                                        ConcatFindings& findings) override {
    const Hdf5Scope scope;
    TAILRACE_TAKE(Hdf5Id file, open_checked_file(input));
    TAILRACE_TRY(compare_with_first(file.get(), input, source, findings));
    TAILRACE_TAKE(std::vector<CheckedObject> objects, list_checked_objects(file.get(), input));
    std::vector<InputRows> rows;
    std::vector<bool> seen(datasets_.size(), false);
    for (const CheckedObject& object : objects) {
      if (object.type != H5O_TYPE_DATASET) continue;
      const auto found = by_path_.find(object.path);
      if (found == by_path_.end()) {
        // compare_objects() reports once the datasets of the first input that the output lacks.
        if (!wanted_datasets_.contains(object.path)) {
          findings.add(input + ": " + dataset_text(object.path) + " is not in the output");
        }
        continue;
      }
      const std::size_t index = found->second;
      seen[index] = true;
      const Hdf5Id dataset(H5Dopen2(file.get(), object.path.c_str(), H5P_DEFAULT));
      if (!dataset.valid()) {
        return hdf5_failure(Code::corrupt,
                            input + ": " + dataset_text(object.path) + ": cannot be opened");
      }
      TAILRACE_TRY(check_own_values(dataset.get(), input, object.path));
      if (fixed_.contains(object.path)) {
        if (!keep_first_ || input == first_name_) {
          TAILRACE_TRY(compare_fixed(index, file.get(), dataset.get(), input, findings));
        }
        continue;
      }
      const std::uint64_t n_findings = findings.n_all;
      const std::uint64_t n_rows = comparable_rows(index, dataset.get(), input, findings);
      if (n_rows > 0 || (by_dimensions_ && findings.n_all == n_findings)) {
        rows.push_back({static_cast<std::uint32_t>(index), n_rows});
      }
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) findings.add(input + ": " + dataset_text(datasets_[i].path) + " is missing");
    }
    if (by_dimensions_) TAILRACE_TRY(give_dimension_rows(file.get(), rows).within(input));
    std::ranges::sort(rows, {}, &InputRows::dataset_index);
    return rows;
  }

  Status compare_rows(std::span<const std::string> inputs,
                      std::span<const std::vector<InputRows>> rows,
                      std::span<std::uint64_t> first_rows, const Progress& progress,
                      ConcatFindings& findings) override {
    const Hdf5Scope scope;
    CheckedPaths paths_here(output_.get());
    std::vector<Hdf5Id> files;
    std::deque<CheckedPaths> paths;
    for (const std::string& input : inputs) {
      TAILRACE_TAKE(Hdf5Id file, open_checked_file(input));
      paths.emplace_back(file.get(), &paths_here);
      files.push_back(std::move(file));
    }
    std::vector<std::vector<CheckedRows>> sources(datasets_.size());
    for (std::size_t f = 0; f < inputs.size(); ++f) {
      for (const InputRows& part : rows[f]) {
        sources[part.dataset_index].push_back({{files[f].get(), paths[f]}, inputs[f], part.n_rows});
      }
    }
    RowComparison comparison({output_.get(), paths_here}, memory_bytes_);
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
      if (sources[d].empty()) continue;
      TAILRACE_TRY(
          comparison.compare(datasets_[d].path, sources[d], first_rows[d], progress, findings));
      for (const CheckedRows& source : sources[d]) first_rows[d] += source.n_rows;
    }
    for (std::size_t f = 0; f < inputs.size(); ++f) {
      TAILRACE_TRY(paths[f].failure().within(inputs[f]));
    }
    return paths_here.failure().within(output_name_);
  }

  const std::vector<std::string>& tile_axes() const override { return axes_; }

  Result<std::vector<TileFacts>> tile_facts(const std::string& input, std::size_t source) override {
    const Hdf5Scope scope;
    TAILRACE_TAKE(const Hdf5Id file, open_checked_file(input));
    const auto no_values = [](const DimensionSurvey&) -> Result<PathSet> { return PathSet(); };
    TAILRACE_TAKE(const DimensionSurvey survey, survey_dimensions(file.get(), no_values));
    std::vector<TileFacts> facts;
    for (const std::string& axis : axes_) {
      const SurveyedObject* const scale = survey.find(axis);
      TileFacts& at = facts.emplace_back();
      at.source = source;
      if (scale == nullptr) continue;  // No values: lay_out_tiles() reports it.
      const Hdf5Id dataset(H5Dopen2(file.get(), axis.c_str(), H5P_DEFAULT));
      const Extents extents = both_extents_of(dataset.get());
      at.n_values = extents.appended ? extents.shape[0] : 0;
      at.has_span = scale->tile.has_value();
      at.span = scale->tile.value_or(TileSpan());
      at.order = scale->order.value_or(ValueOrder());
    }
    return facts;
  }

  Status lay_out_tiles(std::span<const std::vector<TileFacts>> facts,
                       std::span<const std::string> inputs) override {
    TAILRACE_TAKE(layout_, TileLayout::make(axes_, facts, inputs.size(),
                                            [&](std::uint64_t s) { return inputs[s]; }));
    return Status();
  }

  Status compare_tile(const std::string& input, std::size_t source,
                      ConcatFindings& findings) override {
    const Hdf5Scope scope;
    TAILRACE_TAKE(const Hdf5Id file, open_checked_file(input));
    TAILRACE_TRY(compare_with_first(file.get(), input, source, findings));
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      const std::string& path = datasets_[i].path;
      const std::string who = input + ": " + dataset_text(path);
      const Hdf5Id dataset(H5Dopen2(file.get(), path.c_str(), H5P_DEFAULT));
      if (!dataset.valid()) {
        findings.add(who + " is missing");
        continue;
      }
      TAILRACE_TRY(check_own_values(dataset.get(), input, path));
      if (fixed_.contains(path)) {
        if (keep_first_ && input != first_name_) continue;
        TAILRACE_TRY(compare_fixed(i, file.get(), dataset.get(), input, findings));
        continue;
      }
      const std::vector<std::uint32_t> axes = axes_of(path);
      if (keep_first_ && layout_.owner(axes, source) != source) continue;
      const Extents extents = both_extents_of(dataset.get());
      const Hdf5Id type(H5Dget_type(dataset.get()));
      const Box box = layout_.box_of(axes, extents.shape, source);
      const bool fits = extents.shape.size() == shapes_[i].size() && box.count == extents.shape &&
                        contains(whole_box(shapes_[i]), box) &&
                        layout_.domain_shape(axes, extents.shape) == shapes_[i];
      if (!fits || H5Tequal(type.get(), types_[i].get()) <= 0) {
        findings.add(who + " of shape " + shape_text(extents.shape) +
                     " has another type than in the output, or does not fit its shape " +
                     shape_text(shapes_[i]));
      } else if (!is_dimension_without_variable(dataset.get())) {
        const Hdf5Id there(H5Dopen2(output_.get(), path.c_str(), H5P_DEFAULT));
        TAILRACE_TRY(
            compare_box(there.get(), dataset.get(), input, path, box, memory_bytes_ / 4, findings));
      }
    }
    return Status();
  }

  Status compare_missing_tiles(ConcatFindings& findings) override {
    const Hdf5Scope scope;
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      if (fixed_.contains(datasets_[i].path)) continue;
      const Hdf5Id there(H5Dopen2(output_.get(), datasets_[i].path.c_str(), H5P_DEFAULT));
      for (const Box& box : layout_.missing(axes_of(datasets_[i].path), shapes_[i])) {
        if (!contains(whole_box(shapes_[i]), box)) continue;  // compare_tile() reports it.
        TAILRACE_TRY(compare_box(there.get(), H5I_INVALID_HID, "a missing tile", datasets_[i].path,
                                 box, memory_bytes_ / 4, findings));
      }
    }
    return Status();
  }

  void merge_differences(Comm& comm) override {
    differences_.merge(comm);
    std::vector<std::uint64_t> counts = {inputs_outside_.n_in_front, inputs_outside_.n_behind};
    comm.allreduce(std::span(counts), Reduction::sum);
    inputs_outside_ = {counts[0], counts[1]};
  }

  std::vector<std::string> remarks(std::span<const std::string> inputs) const override {
    SurveyDifferences::Names names;
    names.of_source = [&](std::uint64_t source) { return inputs[source]; };
    std::vector<std::string> lines = differences_.remarks(first_survey_, names);
    const auto report = [&](bool found, const std::string& line) {
      if (found) lines.push_back(line);
    };
    report(inputs_outside_.n_in_front > 0, "the user blocks in front of " +
                                               counted(inputs_outside_.n_in_front, "input") +
                                               " are not compared");
    report(inputs_outside_.n_behind > 0, "the bytes behind the end of the HDF5 file of " +
                                             counted(inputs_outside_.n_behind, "input") +
                                             " are not compared");
    report(output_outside_.n_in_front > 0, output_name_ + ": its user block is not in the inputs");
    report(output_outside_.n_behind > 0,
           output_name_ + ": bytes behind the end of the HDF5 file are not in the inputs");
    return lines;
  }

  void check_keys(const std::string& input, std::span<const InputRows> rows,
                  std::span<const std::uint64_t> first_rows, std::span<const std::string> names,
                  ConcatFindings& findings) override {
    const Hdf5Scope scope;
    std::vector<KeyedRows> keyed;
    for (const std::string& key : keys_) {
      const auto like = by_path_.find(key.substr(0, key.rfind(".seq")));
      if (like == by_path_.end()) continue;  // compare_objects() reports the missing dataset.
      const auto part = std::ranges::find(rows, like->second, &InputRows::dataset_index);
      const std::uint64_t n_rows = part == rows.end() ? 0 : part->n_rows;
      keyed.push_back({key, first_rows[like->second], n_rows});
    }
    compare_keys(output_.get(), input, keyed, names, findings);
  }

 private:
  /// Numbers of files with bytes in front of and behind HDF5's part.
  struct BytesOutside {
    std::uint64_t n_in_front = 0;
    std::uint64_t n_behind = 0;
  };

  static Status count_bytes_outside(hid_t file, const std::string& path, BytesOutside& count) {
    const Hdf5Id creation(H5Fget_create_plist(file));
    hsize_t user_block = 0;
    if (!creation.valid() || H5Pget_userblock(creation.get(), &user_block) < 0) {
      return hdf5_failure(Code::corrupt, path + ": the creation property list cannot be read");
    }
    TAILRACE_TAKE(const std::shared_ptr<InputBytes> bytes, InputBytes::open(path));
    TAILRACE_TAKE(const BytesBehindEnd behind, bytes_behind_end(*bytes, user_block).within(path));
    count.n_in_front += user_block > 0 ? 1 : 0;
    count.n_behind += behind.n_bytes > 0 ? 1 : 0;
    return Status();
  }

  /// Objects, attributes and scalars. Other fixed datasets are compared value by value, unless
  /// those of later inputs may differ.
  Result<DimensionSurvey> survey_of(hid_t file) const {
    if (!by_dimensions_) return survey_plain(file);
    return survey_dimensions(file, [this](const DimensionSurvey& survey) -> Result<PathSet> {
      PathSet chosen;
      for (const SurveyedObject& object : survey.objects) {
        const bool digested = keep_first_ || object.dimensions.empty();
        if (digested && fixed_.contains(object.path)) chosen.insert(object.path);
      }
      return chosen;
    });
  }

  Status compare_with_first(hid_t file, const std::string& input, std::size_t source,
                            ConcatFindings& findings) {
    TAILRACE_TRY(count_bytes_outside(file, input, inputs_outside_));
    TAILRACE_TAKE(const DimensionSurvey survey, survey_of(file).within(input));
    for (const std::string& line :
         differences_.compare(first_survey_, survey, source, {keep_first_, !axes_.empty()})) {
      findings.add(input + ": " + line);
    }
    differences_.accept();
    return Status();
  }

  /// Compare links that are not the first path of an object.
  Status compare_links(ConcatFindings& findings) const {
    TAILRACE_TAKE(const DimensionSurvey here, survey_of(output_.get()));
    std::unordered_map<std::string_view, const SurveyedObject*> links;
    for (const SurveyedObject& object : here.objects) {
      if (object.kind == SurveyedKind::link) links.emplace(object.path, &object);
    }
    for (const SurveyedObject& object : first_survey_.objects) {
      if (object.kind != SurveyedKind::link) continue;
      const std::string who = output_name_ + ": link \"" + object.path + "\"";
      const auto found = links.find(object.path);
      if (found == links.end()) {
        findings.add(who + " is missing");
        continue;
      }
      if (found->second->values != object.values) {
        findings.add(who + " has another target than in the first input");
      }
      links.erase(found);
    }
    for (const auto& [path, object] : links) {
      findings.add(output_name_ + ": link \"" + object->path + "\" is not in any input");
    }
    return Status();
  }

  std::vector<std::uint32_t> axes_of(const std::string& path) const {
    const SurveyedObject* const object = first_dimensions_.find(path);
    return object != nullptr ? layout_.axes_of(object->dimensions) : std::vector<std::uint32_t>();
  }

  /// Refuse values in other files unless the user allows it: the file's author chose their names.
  Status check_own_values(hid_t dataset, const std::string& file, const std::string& path) const {
    const Hdf5Id list(H5Dget_create_plist(dataset));
    const bool elsewhere =
        H5Pget_layout(list.get()) == H5D_VIRTUAL || H5Pget_external_count(list.get()) > 0;
    if (follow_external_ || !elsewhere) return Status();
    return Status(Code::unsupported, file + ": " + dataset_text(path) +
                                         ": its values lie in other files; --follow-external "
                                         "reads them");
  }

  /// Find the datasets that do not grow: in files with dimensions, those without a record
  /// dimension.
  Status find_fixed(hid_t first) {
    TAILRACE_TAKE(const DimensionSurvey survey, list_dimensions(first));
    by_dimensions_ =
        std::ranges::any_of(survey.objects, &SurveyedObject::scale) || is_netcdf4(first);
    if (!by_dimensions_) return Status();
    std::vector<StoredDataset> datasets;
    for (const SurveyedObject& object : survey.objects) {
      if (!object.is_dataset()) continue;
      const Hdf5Id dataset(H5Dopen2(first, object.path.c_str(), H5P_DEFAULT));
      const Hdf5Id space(H5Dget_space(dataset.get()));
      std::vector<hsize_t> most(object.dimensions.size());
      H5Sget_simple_extent_dims(space.get(), nullptr, most.data());
      StoredDataset& described = datasets.emplace_back();
      described.path = object.path;
      described.max_shape.assign(most.begin(), most.end());
      described.shape.resize(most.size());
    }
    find_axes(survey);
    first_dimensions_ = survey;
    if (axes_.empty()) {
      TAILRACE_TAKE(fixed_, fixed_datasets(datasets, survey));
    }
    for (const SurveyedObject& object : survey.objects) {
      if (!axes_.empty() && object.is_dataset() && !is_tiled(object)) fixed_.insert(object.path);
    }
    return Status();
  }

  /// Find the tiled axes: by the given names, else by the attribute of a dimension's scale.
  void find_axes(const DimensionSurvey& survey) {
    for (const SurveyedObject& object : survey.objects) {
      if (!object.scale || object.dimensions.empty()) continue;
      const std::string name = object.path.substr(object.path.rfind('/') + 1);
      const bool named = std::ranges::any_of(tile_names_, [&](const std::string& each) {
        return each == name || each == object.path;
      });
      if (named || (tile_names_.empty() && object.tile && object.tile->is_part()))
        axes_.push_back(object.path);
    }
  }

  bool is_tiled(const SurveyedObject& object) const {
    return std::ranges::any_of(object.dimensions, [&](const std::string& dimension) {
      return std::ranges::find(axes_, dimension) != axes_.end();
    });
  }

  /// Count the fill values that complete a variable shorter than its record dimension.
  Status give_dimension_rows(hid_t file, std::vector<InputRows>& rows) const {
    TAILRACE_TAKE(const DimensionSurvey survey, list_dimensions(file));
    std::unordered_map<std::string, std::string> dimension_of;
    for (const SurveyedObject& object : survey.objects) {
      if (object.dimensions.empty() || object.dimensions[0].empty()) continue;
      const Hdf5Id dataset(H5Dopen2(file, object.path.c_str(), H5P_DEFAULT));
      const Hdf5Id list(H5Dget_create_plist(dataset.get()));
      if (H5Pget_layout(list.get()) == H5D_CHUNKED) {
        dimension_of.emplace(object.path, object.dimensions[0]);
      }
    }
    std::unordered_map<std::string, std::uint64_t> length;
    for (const bool known : {false, true}) {
      for (InputRows& part : rows) {
        const auto dimension = dimension_of.find(datasets_[part.dataset_index].path);
        if (dimension == dimension_of.end()) continue;
        std::uint64_t& n_rows = length[dimension->second];
        n_rows = std::max(n_rows, part.n_rows);
        if (known) part.n_rows = n_rows;
      }
    }
    std::erase_if(rows, [](const InputRows& part) { return part.n_rows == 0; });
    return Status();
  }

  /// Compare the values of an input's dataset that does not grow with the output's.
  Status compare_fixed(std::size_t index, hid_t file, hid_t dataset, const std::string& input,
                       ConcatFindings& findings) {
    const std::string who = input + ": " + dataset_text(datasets_[index].path);
    const Extents extents = both_extents_of(dataset);
    const Hdf5Id type(H5Dget_type(dataset));
    if (!extents.appended)
      return Status();  // A scalar: compare_objects() compares the first
                        // input's.
    if (H5Tequal(type.get(), types_[index].get()) <= 0) {
      findings.add(who + " has another type than in the output");
    } else if (extents.shape != shapes_[index]) {
      findings.add(who + " has shape " + shape_text(extents.shape) + ", " +
                   shape_text(shapes_[index]) + " in the output");
    } else if (n_elements(extents.shape) > 0 && !is_dimension_without_variable(dataset)) {
      CheckedPaths paths_here(output_.get());
      CheckedPaths paths_there(file, &paths_here);
      const CheckedRows rows{{file, paths_there}, input, extents.shape[0]};
      TAILRACE_TRY(RowComparison({output_.get(), paths_here}, memory_bytes_)
                       .compare(datasets_[index].path, std::span(&rows, 1), 0, {}, findings));
      TAILRACE_TRY(paths_here.failure().within(output_name_));
      return paths_there.failure().within(input);
    }
    return Status();
  }

  /// Record a dataset that both the first input and the output have.
  Status add_dataset(const std::string& path) {
    const Hdf5Id dataset(H5Dopen2(output_.get(), path.c_str(), H5P_DEFAULT));
    Hdf5Id type(H5Dget_type(dataset.get()));
    if (!type.valid()) {
      return hdf5_failure(Code::corrupt,
                          output_name_ + ": " + dataset_text(path) + " cannot be opened");
    }
    TAILRACE_TRY(check_own_values(dataset.get(), output_name_, path));
    const Extents extents = both_extents_of(dataset.get());
    Dataset entry{path, extents.appended && !fixed_.contains(path), 0, H5Tget_size(type.get())};
    if (entry.appended) {
      entry.n_rows = extents.shape[0];
      entry.row_bytes *= n_elements({extents.shape.begin() + 1, extents.shape.end()});
    }
    by_path_.emplace(path, datasets_.size());
    datasets_.push_back(entry);
    shapes_.push_back(extents.shape);
    types_.push_back(std::move(type));
    return Status();
  }

  /// Check that keys have as many rows as their dataset, and that /spill has keys.
  void compare_key_rows(ConcatFindings& findings) const {
    bool in_spill = keys_.empty();
    for (const std::string& key : keys_) {
      in_spill = in_spill || key.substr(0, key.rfind('/')) == "/spill";
      const Hdf5Id dataset(H5Dopen2(output_.get(), key.c_str(), H5P_DEFAULT));
      const Extents extents = both_extents_of(dataset.get());
      const std::uint64_t n_rows = extents.appended ? extents.shape[0] : 0;
      const auto like = by_path_.find(key.substr(0, key.rfind(".seq")));
      if (like == by_path_.end() || datasets_[like->second].n_rows == n_rows) continue;
      findings.add(output_name_ + ": key \"" + key + "\" has " + std::to_string(n_rows) +
                   " rows, " + dataset_text(like->first) + " has " +
                   std::to_string(datasets_[like->second].n_rows));
    }
    if (!in_spill) findings.add(output_name_ + ": has key datasets, but none in /spill");
  }

  /// The rows of an input's dataset; 0, with a finding, if they cannot be compared.
  std::uint64_t comparable_rows(std::size_t index, hid_t dataset, const std::string& input,
                                ConcatFindings& findings) const {
    const std::string who = input + ": " + dataset_text(datasets_[index].path);
    const Extents extents = both_extents_of(dataset);
    // The first input's scalar is copied; compare_with_first() reports others.
    if (!extents.appended && !datasets_[index].appended) return 0;
    const Hdf5Id type(H5Dget_type(dataset));
    if (H5Tequal(type.get(), types_[index].get()) <= 0) {
      findings.add(who + " has another type than in the output");
      return 0;
    }
    if (!extents.appended || !datasets_[index].appended) {
      findings.add(who + " is a scalar in only one of the input and the output");
      return 0;
    }
    Shape expected = shapes_[index];
    if (expected.size() == extents.shape.size()) expected[0] = extents.shape[0];
    if (expected != extents.shape) {
      findings.add(who + " has shape " + shape_text(extents.shape) + ", " +
                   shape_text(shapes_[index]) + " in the output");
      return 0;
    }
    return extents.shape[0];
  }

  /// Compare the fill value, and the values of datasets that are not appended.
  Status compare_dataset(const std::string& path, const CheckedSide& input,
                         const CheckedSide& output, ConcatFindings& findings) const {
    const std::string who = output_name_ + ": " + dataset_text(path);
    TAILRACE_TRY(check_own_values(input.object, first_name_, path));
    const Hdf5Id type(H5Dget_type(output.object));
    const Hdf5Id type_there(H5Dget_type(input.object));
    if (H5Tequal(type.get(), type_there.get()) <= 0) return Status();  // survey() reports it.
    if (is_plain_type(type.get())) {
      const std::vector<std::byte> fill = fill_bytes(output.object, type.get());
      const std::vector<std::byte> expected = fill_bytes(input.object, type.get());
      if (fill != expected) {
        findings.add(who + " has fill value " +
                     checked_value_text(type.get(), {fill.data(), output.file}) + ", " +
                     checked_value_text(type.get(), {expected.data(), input.file}) + " in " +
                     "the first input");
      }
    }
    if (both_extents_of(output.object).appended || both_extents_of(input.object).appended)
      return Status();
    return compare_single(who, input, output, findings);
  }

  std::string output_name_;
  std::string first_name_;
  std::uint64_t memory_bytes_;
  bool follow_external_;
  bool keep_first_;
  std::vector<std::string> tile_names_;  ///< Names given by the caller.
  std::vector<std::string> axes_;
  DimensionSurvey first_dimensions_;
  DimensionSurvey first_survey_;
  SurveyDifferences differences_;
  BytesOutside inputs_outside_;
  BytesOutside output_outside_;
  TileLayout layout_;
  bool by_dimensions_ = false;
  PathSet fixed_;  ///< Paths of datasets that do not grow.
  Hdf5Id output_;
  std::vector<CheckedObject> wanted_;                ///< Objects of the first input.
  std::vector<CheckedObject> found_;                 ///< Objects of the output.
  std::unordered_set<std::string> wanted_datasets_;  ///< Paths of wanted_'s datasets.
  std::vector<Dataset> datasets_;
  std::vector<Shape> shapes_;
  std::vector<Hdf5Id> types_;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, std::size_t> by_path_;
};

}  // namespace

void ConcatFindings::add(std::string line) {
  if (lines.size() < kMostLines) lines.push_back(std::move(line));
  ++n_all;
}

Result<std::unique_ptr<ConcatCheck>> ConcatCheck::open(const std::string& output,
                                                       const std::string& first_input,
                                                       const Settings& settings) {
  auto check = std::make_unique<ConcatCheckImpl>(output, first_input, settings);
  TAILRACE_TRY(check->open());
  return std::unique_ptr<ConcatCheck>(std::move(check));
}

}  // namespace tailrace
