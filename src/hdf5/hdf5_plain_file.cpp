// Opening with HDF5's standard driver, plug-in folders, reasons of failures.

#include "hdf5/hdf5_plain_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/environment.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/plugin_library.hpp"

namespace tailrace {

namespace {

/// The folders that HDF5 would search if they existed, for messages.
std::string& missing_plugin_folders() {
  static std::string text;
  return text;
}

/// Entry `i` of HDF5's search path for plug-ins.
std::string plugin_folder(unsigned i) {
  std::array<char, 4096> folder = {};
  return H5PLget(i, folder.data(), folder.size()) < 0 ? "" : std::string(folder.data());
}

/// Remove missing folders from HDF5's search path. HDF5 1.10 abandons its search at the first
/// missing folder, and the default folder of a distribution's HDF5 is often missing.
void drop_missing_plugin_folders() {
  unsigned n_folders = 0;
  if (H5PLsize(&n_folders) < 0) return;
  for (unsigned i = n_folders; i-- > 0;) {
    const std::string folder = plugin_folder(i);
    struct stat facts {};
    if (folder.empty() || ::stat(folder.c_str(), &facts) == 0) continue;
    if (H5PLremove(i) < 0) continue;
    std::string& text = missing_plugin_folders();
    text.insert(0, text.empty() ? folder : folder + ":");
  }
}

/// The folders that HDF5 searches for plug-ins, for messages.
std::string plugin_folder_text() {
  std::string text;
  unsigned n_folders = 0;
  if (H5PLsize(&n_folders) < 0) return text;
  for (unsigned i = 0; i < n_folders; ++i) text += (i == 0 ? "" : ":") + plugin_folder(i);
  const std::string& missing = missing_plugin_folders();
  if (!missing.empty()) text += (text.empty() ? "" : "; ") + missing + " (does not exist)";
  return text;
}

/// Kind of failure on HDF5's error stack: the storage, or the file's contents.
Code code_of_error_stack() {
  Code code = Code::corrupt;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* found) -> herr_t {
        if (error->maj_num == H5E_VFL || error->maj_num == H5E_EFL) {
          *static_cast<Code*>(found) = Code::io_error;
        }
        if (error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE) {
          *static_cast<Code*>(found) = Code::out_of_memory;
        }
        return 0;
      },
      &code);
  return code;
}

}  // namespace

void prepare_plugin_folders() {
  static const bool prepared = [] {
    for (const std::string& folder : default_plugin_folders()) H5PLappend(folder.c_str());
    drop_missing_plugin_folders();
    return true;
  }();
  (void)prepared;
}

Status hdf5_open_failure(const std::string& what, const std::string& consequence) {
  struct Cause {
    Code code = Code::corrupt;
    bool first = true;
  } cause;
  const auto look = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    auto& found = *static_cast<Cause*>(data);
    // The first error is the cause; the others are its consequences.
    if (std::exchange(found.first, false)) {
      const bool missing = error->maj_num == H5E_SYM && error->min_num == H5E_NOTFOUND;
      const bool other_kind = error->min_num == H5E_BADTYPE;
      if (missing) found.code = Code::not_found;
      if (other_kind) found.code = Code::invalid_argument;
      constexpr std::string_view said = "errno = ";
      const std::string_view text = error->desc != nullptr ? error->desc : "";
      if (const std::size_t at = text.find(said); at != std::string_view::npos) {
        const int number = std::atoi(text.substr(at + said.size()).data());
        found.code = status_from_errno(number, "").code();
      }
    }
    if (error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE) {
      found.code = Code::out_of_memory;
    }
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look, &cause);
  return hdf5_failure(cause.code, what + consequence);
}

Result<Hdf5Id> open_plain_hdf5(const std::string& path, H5F_close_degree_t degree) {
  TAILRACE_TRY(check_hdf5_is_ours());
  prepare_plugin_folders();
  const Hdf5Id access = new_access_list();
#if H5_VERSION_GE(1, 14, 0) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  // Files on file systems without locks (many parallel ones) must be readable.
  H5Pset_file_locking(access.get(), true, true);
#endif
  Status failure;
  // SEMI would refuse to close the file while an id is open; STRONG closes all of its open objects.
  // If this process has the file open already, HDF5 accepts only the degree used then.
  for (const H5F_close_degree_t tried : {degree, H5F_CLOSE_STRONG, H5F_CLOSE_DEFAULT}) {
    if (!failure.ok() && tried == degree) continue;
    H5Pset_fclose_degree(access.get(), tried);
    Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
    if (file.valid()) return file;
    if (failure.ok()) failure = hdf5_open_failure(path, ": cannot open as HDF5");
  }
  return failure;
}

Status check_filters_available(hid_t creation, const std::string& what) {
  for (const FilterSpec& filter : stored_filters(creation).value_or(std::vector<FilterSpec>())) {
    if (H5Zfilter_avail(static_cast<H5Z_filter_t>(filter.filter_id)) > 0) continue;
    return Status(Code::plugin_missing,
                  what + ": filter " + std::to_string(filter.filter_id) + " (" +
                      (filter.name.empty() ? "without a name" : filter.name) +
                      ") is needed, but its plug-in was not found in " + plugin_folder_text() +
                      "; set HDF5_PLUGIN_PATH" + plugin_source_text(filter.filter_id));
  }
  return Status();
}

Status plain_read_failure(hid_t dataset, const std::string& what) {
  const Code code = code_of_error_stack();
  const Status failure = hdf5_failure(code, what);
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  const Status available = check_filters_available(creation.get(), what);
  return available.ok() ? failure : available;
}

// --- Source files of virtual datasets.

namespace {

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// The folder of a path, with its slash; empty for a bare name.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

}  // namespace

Status check_virtual_sources(hid_t dataset, const std::string& input_path) {
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  if (!creation.valid() || H5Pget_layout(creation.get()) != H5D_VIRTUAL) return Status();
  std::size_t n_mappings = 0;
  if (environment_variable("HDF5_VDS_PREFIX") != nullptr ||
      H5Pget_virtual_count(creation.get(), &n_mappings) < 0) {
    return Status();
  }
  std::unordered_set<std::string> checked;
  for (std::size_t i = 0; i < n_mappings; ++i) {
    const std::string name = virtual_source(creation.get(), i);
    const bool this_file = name == "." || name.empty();
    if (this_file || name.find('%') != std::string::npos || !checked.insert(name).second) continue;
    const std::string folder = folder_of(input_path);
    const std::string bare = name.substr(name.rfind('/') + 1);
    if (is_there(name) || is_there(folder + bare)) continue;
    if (name[0] != '/' && is_there(folder + name)) continue;
    return Status(Code::not_found, "its values are in \"" + name +
                                       "\", which does not exist (HDF5 would read fill values)");
  }
  return Status();
}

}  // namespace tailrace
