#include "hdf5/readers_need.hpp"

#include <hdf5.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "core/codec_registry.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {

namespace {

/// Last id of the filters that come with HDF5: deflate, shuffle, fletcher32, szip, nbit,
/// scaleoffset.
constexpr std::uint32_t kLastOfHdf5 = 6;

constexpr std::string_view kNamesBegin = ", for the filter";
constexpr std::string_view kNamesEnd = "; ";
constexpr std::string_view kBetween = ", ";

void add_name(std::vector<std::string>& names, std::string name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

/// True if a filter is ours and comes with one of our packages.
bool is_ours(const std::string& name) {
  const CodecEntry* const known = find_codec(name);
  return known != nullptr && !known->plugin && !known->readers_need.empty();
}

const char* need_of(const std::string& name) {
  if (is_ours(name)) {
    return "import tailrace_filters (pip install ./python/filters in Tailrace's sources) or set "
           "HDF5_PLUGIN_PATH to its plug-ins";
  }
  return name == "lzf"
             ? "take h5py"
             : "pip install hdf5plugin, and import it (h5py, xarray with engine=\"h5netcdf\") or "
               "start the program with HDF5_PLUGIN_PATH=$(python -c 'import hdf5plugin; "
               "print(hdf5plugin.PLUGINS_PATH)') (netCDF4)";
}

std::string text_of(const std::vector<std::string>& names) {
  std::set<std::string> needs;
  for (const std::string& name : names) needs.insert(need_of(name));
  std::string text = "to read this file, ";
  for (const std::string& need : needs) text += (need == *needs.begin() ? "" : " and ") + need;
  text += kNamesBegin;
  text += names.size() > 1 ? "s " : " ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  text += kNamesEnd;
  return text + "files of codec=\"portable\" need nothing";
}

/// The names in a text made by text_of(); empty for any other text.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  const std::size_t begin = text.find(kNamesBegin);
  const std::size_t end = begin == std::string::npos ? begin : text.find(kNamesEnd, begin);
  const std::size_t first =
      begin == std::string::npos ? begin : text.find(' ', begin + kNamesBegin.size());
  if (end == std::string::npos || first == std::string::npos || first >= end) return names;
  std::string_view rest = std::string_view(text).substr(first + 1, end - first - 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(kBetween);
    add_name(names, std::string(rest.substr(0, comma)));
    rest =
        comma == std::string_view::npos ? std::string_view() : rest.substr(comma + kBetween.size());
  }
  return names;
}

}  // namespace

bool comes_with_hdf5(const FilterSpec& filter) { return filter.filter_id <= kLastOfHdf5; }

std::string name_for_readers(const FilterSpec& filter) {
  const CodecEntry* const known = find_filter(filter.filter_id);
  if (known != nullptr && !known->name.empty()) return std::string(known->name);
  const bool plain = !filter.name.empty() && filter.name.find_first_of(",;") == std::string::npos;
  return plain ? filter.name : "id=" + std::to_string(filter.filter_id);
}

void ReadersNeed::learn(std::span<const FilterSpec> filters) {
  for (const FilterSpec& filter : filters) {
    if (!comes_with_hdf5(filter)) add_name(names_, name_for_readers(filter));
  }
}

Status ReadersNeed::write(std::int64_t file) {
  if (names_.size() == n_written_) return Status();
  const Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT));
  if (!root.valid()) return hdf5_failure(Code::internal, "the root group cannot be opened");
  std::vector<std::string> names;
  if (H5Aexists(root.get(), kReadersNeedAttribute) > 0) {
    names = names_in(hdf5_text_attribute(root.get(), kReadersNeedAttribute));
  }
  const std::size_t n_before = names.size();
  for (const std::string& name : names_) add_name(names, name);
  if (names.size() > n_before) {
    TAILRACE_TRY(write_attribute(root.get(), kReadersNeedAttribute, {text_of(names)}));
  }
  n_written_ = names_.size();
  return Status();
}

}  // namespace tailrace
