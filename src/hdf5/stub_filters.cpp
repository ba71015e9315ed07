// StubFilters, and HDF5 calls that require filters but must not run their checks.

#include "hdf5/stub_filters.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/plugin_known.hpp"
#include "hdf5/plugin_library.hpp"

namespace tailrace {

namespace {

/// The class registered with HDF5 for a filter id, and its purpose.
struct FilterEntry {
  const H5Z_class2_t* real = nullptr;  ///< The class that decodes; nullptr: not registered with us.
  bool searched = false;               ///< A plug-in was looked for.
  bool stub = false;                   ///< HDF5 has a class that accepts final client data.
  int n_files = 0;                     ///< Number of files that need the stub.
  std::string name;                    ///< HDF5 stores a pointer to it.

  bool refuses() const { return stub && real == nullptr; }
};

/// Entries by filter id, protected by the HDF5 lock. Entries never move in memory.
std::map<std::uint32_t, FilterEntry>& filters_of_process() {
  static auto* filters = new std::map<std::uint32_t, FilterEntry>;
  return *filters;
}

/// Fails every chunk: the stub replaces a missing plug-in.
size_t refuse_chunk(unsigned, size_t, const unsigned*, size_t, size_t*, void**) { return 0; }

/// Register the class that a filter id needs now. HDF5 copies it, and replaces an existing class
/// even while datasets use it, although it would refuse to unregister that class then.
Status enter_filter(std::uint32_t id, FilterEntry& entry) {
  const bool stub = entry.n_files > 0 || entry.real == nullptr;
  H5Z_class2_t made{};
  if (entry.real != nullptr) {
    made = *entry.real;
  } else {
    made.version = H5Z_CLASS_T_VERS;
    made.id = H5Z_filter_t(id);
    made.encoder_present = made.decoder_present = 1;
    made.filter = refuse_chunk;
  }
  if (stub) {
    made.name = entry.name.c_str();  // HDF5 writes it into datasets.
    made.can_apply = nullptr;        // These would derive other client data from final ones.
    made.set_local = nullptr;
  }
  if (H5Zregister(&made) < 0) {
    return hdf5_failure(Code::internal,
                        "filter " + std::to_string(id) + " cannot be registered with HDF5");
  }
  entry.stub = stub;
  return Status();
}

/// The class of a plug-in that HDF5 finds itself. nullptr: none, or a class that the program has
/// registered, which HDF5 does not expose.
const H5Z_class2_t* class_of_plugin(const FilterSpec& filter) {
  if (H5Zfilter_avail(H5Z_filter_t(filter.filter_id)) <= 0) return nullptr;
  const KnownPlugin* known = find_known_plugin(filter.filter_id);
  const std::vector<std::string_view> hints =
      known != nullptr ? known->hints : std::vector<std::string_view>{filter.name};
  const Result<const PluginLibrary*> found =
      load_plugin(filter.filter_id, hints, plugin_folders(""));
  return found.ok() ? (*found)->filter_class : nullptr;
}

/// The entry of a filter, with its class if a plug-in has one.
FilterEntry& entry_of(const FilterSpec& filter) {
  FilterEntry& entry = filters_of_process()[filter.filter_id];
  if (entry.real == nullptr && !std::exchange(entry.searched, true)) {
    entry.real = class_of_plugin(filter);
  }
  return entry;
}

/// True if HDF5's last call did nothing because a filter is missing or refuses.
bool filters_refused() {
  bool refused = false;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* found) -> herr_t {
        if (error->min_num == H5E_CANAPPLY) *static_cast<bool*>(found) = true;
        return 0;
      },
      &refused);
  return refused;
}

std::vector<FilterSpec> plugin_filters_of(hid_t dataset) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  auto filters = stored_filters(list.get()).value_or(std::vector<FilterSpec>());
  std::erase_if(filters, [](const auto& filter) { return filter.filter_id < H5Z_FILTER_RESERVED; });
  return filters;
}

bool may_be_left_out(const FilterSpec& filter) { return (filter.flags & H5Z_FLAG_OPTIONAL) != 0; }

/// Add stubs for the dataset's filters. A filter without a plug-in, a known class or `missing` is
/// left unchanged: HDF5 consults the program's own class as usual, and a missing filter stays
/// missing.
Status add_stubs_of(hid_t dataset, StubFilters& for_this_call, StubFilters* missing) {
  for (const FilterSpec& filter : plugin_filters_of(dataset)) {
    if (StubFilters::known(filter)) {
      TAILRACE_TRY(for_this_call.add(filter));
    } else if (!may_be_left_out(filter) && missing != nullptr &&
               H5Zfilter_avail(H5Z_filter_t(filter.filter_id)) <= 0) {
      TAILRACE_TRY(missing->add(filter));
    }
  }
  return Status();
}

/// Run the call with stubs. Afterwards HDF5's error stack is that of the call.
herr_t call_with_stubs(hid_t dataset, const std::function<herr_t()>& call, StubFilters* missing) {
  herr_t done = 0;
  hid_t errors = H5I_INVALID_HID;
  {
    StubFilters for_this_call;  // Only known classes; they replace the stubs again afterwards.
    // If this fails, the call fails too and reports what HDF5 requires.
    const Status added = add_stubs_of(dataset, for_this_call, missing);
    static_cast<void>(added);
    done = call();
    if (done < 0) errors = H5Eget_current_stack();
  }
  if (errors >= 0) H5Eset_current_stack(errors);
  return done;
}

/// A required filter of the dataset with a stub that refuses every chunk. HDF5 would detect the
/// refusal only when it flushes its cache, and report it to no caller. HDF5 skips an optional
/// filter, chunk by chunk.
std::optional<std::uint32_t> refusing_filter_of(hid_t dataset) {
  const auto refuses = [](const auto& entry) { return entry.second.refuses(); };
  if (std::ranges::none_of(filters_of_process(), refuses)) return std::nullopt;
  for (const FilterSpec& filter : plugin_filters_of(dataset)) {
    if (!may_be_left_out(filter) && !StubFilters::decodes(filter.filter_id)) {
      return filter.filter_id;
    }
  }
  return std::nullopt;
}

/// True if extending the dataset may run filters: chunks are filled on allocation, or unfiltered
/// chunks at the edge become inner chunks, or shrinking cuts through chunks.
bool encodes_when_extended(hid_t dataset, std::span<const hsize_t> extents) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  H5D_alloc_time_t allocated = H5D_ALLOC_TIME_EARLY;
  H5Pget_alloc_time(list.get(), &allocated);
  if (allocated == H5D_ALLOC_TIME_EARLY) return true;
  const Hdf5Id space(H5Dget_space(dataset));
  if (H5Sget_simple_extent_ndims(space.get()) != int(extents.size())) return true;
  unsigned options = 0;
  std::vector<hsize_t> now(extents.size());
  std::vector<hsize_t> chunk(extents.size(), 1);
  H5Pget_chunk_opts(list.get(), &options);
  H5Sget_simple_extent_dims(space.get(), now.data(), nullptr);
  H5Pget_chunk(list.get(), int(chunk.size()), chunk.data());
  const bool plain_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  for (std::size_t d = 0; d < now.size(); ++d) {
    if (extents[d] < now[d]) return true;
    if (plain_edges && extents[d] > now[d] && now[d] % chunk[d] != 0) return true;
  }
  return false;
}

}  // namespace

bool StubFilters::is_stub(std::uint32_t filter_id) {
  const auto at = filters_of_process().find(filter_id);
  return at != filters_of_process().end() && at->second.stub;
}

bool StubFilters::decodes(std::uint32_t filter_id) {
  const auto at = filters_of_process().find(filter_id);
  return at == filters_of_process().end() || !at->second.refuses();
}

bool StubFilters::known(const FilterSpec& filter) { return entry_of(filter).real != nullptr; }

Status StubFilters::set_real(const H5Z_class2_t& filter_class) {
  FilterEntry& entry = filters_of_process()[std::uint32_t(filter_class.id)];
  entry.real = &filter_class;
  return enter_filter(std::uint32_t(filter_class.id), entry);
}

Status StubFilters::add(const FilterSpec& filter) {
  const std::uint32_t id = filter.filter_id;
  if (std::find(filter_ids_.begin(), filter_ids_.end(), id) != filter_ids_.end()) return Status();
  FilterEntry& entry = entry_of(filter);
  ++entry.n_files;
  if (!entry.stub) {
    entry.name = filter.name.empty() ? "filter " + std::to_string(id) : filter.name;
    const Status entered = enter_filter(id, entry);
    if (!entered.ok()) --entry.n_files;
    TAILRACE_TRY(entered);
  }
  filter_ids_.push_back(id);
  return Status();
}

void StubFilters::release() {
  if (filter_ids_.empty()) return;
  const Hdf5Scope scope;
  for (const std::uint32_t id : filter_ids_) {
    FilterEntry& entry = filters_of_process().at(id);
    if (--entry.n_files > 0) continue;
    if (entry.real != nullptr) {
      (void)enter_filter(id, entry);
    } else {
      // HDF5 refuses while another file's dataset uses the class, and keeps it until a real class
      // exists.
      entry.stub = H5Zunregister(H5Z_filter_t(id)) < 0;
    }
  }
  filter_ids_.clear();
}

herr_t call_with_filters(hid_t dataset, const std::function<herr_t()>& call) {
  if (const auto filter = refusing_filter_of(dataset)) {
    H5Epush2(H5E_DEFAULT, "tailrace", "write", 0, H5E_ERR_CLS, H5E_PLINE, H5E_NOTFOUND,
             "required filter %u is not available", *filter);
    return -1;
  }
  const herr_t done = call();
  return done >= 0 || !filters_refused() ? done : call_with_stubs(dataset, call, nullptr);
}

herr_t extend_with_filters(hid_t dataset, std::span<const hsize_t> extents, StubFilters& missing) {
  const auto extend = [&] { return H5Dset_extent(dataset, extents.data()); };
  const herr_t done = extend();
  if (done >= 0 || !filters_refused()) return done;
  const bool encodes = encodes_when_extended(dataset, extents);
  return call_with_stubs(dataset, extend, encodes ? nullptr : &missing);
}

}  // namespace tailrace
