// Searching folders for filter plug-ins and loading them.

#include "hdf5/plugin_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <H5PLextern.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/environment.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_handle.hpp"

#ifndef TAILRACE_DEFAULT_PLUGIN_PATH
#define TAILRACE_DEFAULT_PLUGIN_PATH ""
#endif

namespace tailrace {
namespace {

namespace fs = std::filesystem;

/// All plug-ins opened so far, by path. HDF5's mutex protects it.
std::map<std::string, std::unique_ptr<PluginLibrary>>& open_libraries() {
  // Never destroyed: codecs may be used while static objects are destroyed.
  static auto* libraries = new std::map<std::string, std::unique_ptr<PluginLibrary>>;
  return *libraries;
}

/// Folders of search_plugins_in(), in order of preference. Main thread only.
std::vector<std::string>& folders_searched_first() {
  static auto* folders = new std::vector<std::string>;
  return *folders;
}

void add_folders(std::string_view colon_separated, std::vector<std::string>& folders) {
  while (!colon_separated.empty()) {
    const std::size_t colon = colon_separated.find(':');
    const std::string folder(colon_separated.substr(0, colon));
    const bool known = std::find(folders.begin(), folders.end(), folder) != folders.end();
    if (!folder.empty() && !known) folders.push_back(folder);
    if (colon == std::string_view::npos) return;
    colon_separated.remove_prefix(colon + 1);
  }
}

/// Files that HDF5 itself would try: lib*.so* (on macOS also lib*.dylib), sorted by name.
std::vector<fs::path> library_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("lib")) continue;
    if (name.find(".so") == std::string::npos && !name.ends_with(".dylib")) continue;
    files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool name_fits(const fs::path& file, const std::vector<std::string_view>& hints) {
  std::string name = file.filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(hints.begin(), hints.end(),
                     [&](std::string_view hint) { return name.find(hint) != std::string::npos; });
}

/// Open one file. `problem` receives the reason why it is not a usable plug-in.
const PluginLibrary* open_library(const fs::path& file, std::string& problem) {
  std::unique_ptr<PluginLibrary>& slot = open_libraries()[file.string()];
  if (slot) return slot.get();
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    problem = text != nullptr ? text : file.string() + ": dlopen failed";
    return nullptr;
  }
  using GetType = H5PL_type_t (*)();
  using GetInfo = const void* (*)();
  const auto get_type = reinterpret_cast<GetType>(dlsym(handle, "H5PLget_plugin_type"));
  const auto get_info = reinterpret_cast<GetInfo>(dlsym(handle, "H5PLget_plugin_info"));
  const bool is_filter =
      get_type != nullptr && get_info != nullptr && get_type() == H5PL_TYPE_FILTER;
  const auto* filter_class = is_filter ? static_cast<const H5Z_class2_t*>(get_info()) : nullptr;
  if (filter_class == nullptr || filter_class->version != H5Z_CLASS_T_VERS ||
      filter_class->filter == nullptr) {
    dlclose(handle);
    problem = file.string() + ": not an HDF5 filter plug-in";
    return nullptr;
  }
  slot = std::make_unique<PluginLibrary>();
  slot->file_name = file.filename().string();
  slot->file_path = file.string();
  slot->handle = handle;
  slot->filter_class = filter_class;
  return slot.get();
}

Status missing(std::uint32_t filter_id, const std::vector<std::string>& folders,
               const std::vector<std::string>& problems) {
  std::string text = "no plug-in for HDF5 filter " + std::to_string(filter_id) + " in ";
  for (std::size_t i = 0; i < folders.size(); ++i) {
    std::error_code failure;
    text += (i == 0 ? "" : ", ") + folders[i];
    if (!fs::is_directory(folders[i], failure)) text += " (no such folder)";
  }
  if (folders.empty()) text += "any folder (none is set)";
  text += "; set plugin_path or HDF5_PLUGIN_PATH to the folder that holds it";
  text += plugin_source_text(filter_id);
  for (const std::string& problem : problems) text += "; " + problem;
  return Status(Code::plugin_missing, text);
}

}  // namespace

bool PluginLibrary::exports(const char* symbol) const { return dlsym(handle, symbol) != nullptr; }

std::string PluginLibrary::text_of(const char* symbol) const {
  using GetText = const char* (*)();
  // A library that the program is linked to takes precedence over the one inside a plug-in: the
  // dynamic linker searches the program first, also for the plug-in's own calls.
  void* address = dlsym(RTLD_DEFAULT, symbol);
  if (address == nullptr) address = dlsym(handle, symbol);
  const auto get_text = reinterpret_cast<GetText>(address);
  const char* text = get_text != nullptr ? get_text() : nullptr;
  return text != nullptr ? text : "";
}

std::string plugin_source_text(std::uint32_t filter_id) {
  // Ids listed in hdf5plugin 7.1's own table.
  constexpr std::array<std::uint32_t, 12> of_hdf5plugin = {
      307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028, 32033};
  if (std::ranges::find(of_hdf5plugin, filter_id) != of_hdf5plugin.end()) {
    return "; 'pip install hdf5plugin' installs it in the folder that "
           "'python3 -c \"import hdf5plugin; print(hdf5plugin.PLUGINS_PATH)\"' prints";
  }
  constexpr std::uint32_t lzf = 32000;
  if (filter_id == lzf) {
    return "; or rewrite the dataset with compression=\"gzip\" in h5py, which has this filter "
           "built in";
  }
  return "";
}

std::vector<std::string> default_plugin_folders() {
  std::vector<std::string> folders;
  add_folders(TAILRACE_DEFAULT_PLUGIN_PATH, folders);
  return folders;
}

void search_plugins_in(const std::string& folders) {
  std::vector<std::string> added;
  add_folders(folders, added);
  std::vector<std::string>& first = folders_searched_first();
  first.insert(first.begin(), added.begin(), added.end());
  // If the HDF5 is not ours, opening a file reports that; no HDF5 call is made here.
  if (added.empty() || !check_hdf5_is_ours().ok()) return;
  const Hdf5Scope scope;
  for (auto folder = added.rbegin(); folder != added.rend(); ++folder) {
    H5PLprepend(folder->c_str());
  }
}

std::vector<std::string> plugin_folders(const std::string& plugin_path) {
  std::vector<std::string> folders;
  add_folders(plugin_path, folders);
  for (const std::string& folder : folders_searched_first()) add_folders(folder, folders);
  if (const char* from_environment = environment_variable("HDF5_PLUGIN_PATH")) {
    add_folders(from_environment, folders);
  }
  add_folders(TAILRACE_DEFAULT_PLUGIN_PATH, folders);
  // HDF5's own list: its default folder, and those that the application has added with H5PLappend.
  const Hdf5Scope scope;
  unsigned n_own = 0;
  if (H5PLsize(&n_own) < 0) return folders;
  for (unsigned i = 0; i < n_own; ++i) {
    const ssize_t n_characters = H5PLget(i, nullptr, 0);
    if (n_characters <= 0) continue;
    std::string folder(static_cast<std::size_t>(n_characters) + 1, '\0');
    H5PLget(i, folder.data(), folder.size());
    folder.resize(static_cast<std::size_t>(n_characters));
    add_folders(folder, folders);
  }
  return folders;
}

Result<const PluginLibrary*> load_plugin(std::uint32_t filter_id,
                                         const std::vector<std::string_view>& hints,
                                         const std::vector<std::string>& folders) {
  const Hdf5Scope scope;
  std::vector<std::string> problems;
  for (const bool fitting_names : {true, false}) {
    for (const std::string& folder : folders) {
      for (const fs::path& file : library_files(folder)) {
        if (name_fits(file, hints) != fitting_names) continue;
        std::string problem;
        const PluginLibrary* library = open_library(file, problem);
        if (library != nullptr &&
            library->filter_class->id == static_cast<H5Z_filter_t>(filter_id)) {
          return library;
        }
        if (library == nullptr && fitting_names) problems.push_back(problem);
      }
    }
  }
  return missing(filter_id, folders, problems);
}

}  // namespace tailrace

namespace tailrace {

// --- Copies of plug-ins, each bound to the HDF5 that this library is linked to.

namespace {

/// True if plug-ins find the same HDF5 that we call. Searches the program's scope: RTLD_DEFAULT
/// would search this library's scope, which is larger than other libraries' scopes.
bool hdf5_is_in_sight() {
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return false;
  const bool found = dlsym(program, "H5open") == reinterpret_cast<void*>(&H5open);
  dlclose(program);
  return found;
}

/// Path of the file that our HDF5 was loaded from.
std::string our_hdf5_path() {
  Dl_info object{};
  if (dladdr(reinterpret_cast<void*>(&H5open), &object) == 0) return "";
  return object.dli_fname != nullptr ? object.dli_fname : "";
}

Status copy_bytes(const PluginLibrary& library, int to) {
  const int from = ::open(library.file_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return status_from_errno(errno, library.file_path);
  struct stat facts {};
  Status copied = ::fstat(from, &facts) == 0 ? Status() : status_from_errno(errno, "fstat");
  off_t done = 0;
  while (copied.ok() && done < facts.st_size) {
    const ssize_t n = ::sendfile(to, from, &done, static_cast<std::size_t>(facts.st_size - done));
    if (n < 0 && errno != EINTR) copied = status_from_errno(errno, library.file_path);
    if (n == 0) copied = Status(Code::io_error, library.file_path + " is shorter than expected");
  }
  ::close(from);
  return copied;
}

/// Load the plug-in a second time, which needs a separate file. It lies in memory. Its descriptor
/// stays open: the linker identifies libraries by name, and a closed descriptor's number, which is
/// part of the name, would be reused.
Result<void*> load_copy(const PluginLibrary& library) {
  const int descriptor = ::memfd_create(library.file_name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return status_from_errno(errno, "memfd_create for " + library.file_name);
  if (const Status copied = copy_bytes(library, descriptor); !copied.ok()) {
    ::close(descriptor);
    return copied;
  }
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* error = dlerror();
  const std::string why = error != nullptr ? error : "dlopen failed";
  ::close(descriptor);
  return Status(Code::plugin_missing, "cannot load a copy of " + library.file_path + ": " + why);
}

Result<const H5Z_class2_t*> bound_copy(const PluginLibrary& library) {
  const Result<void*> handle = load_copy(library);
  if (!handle.ok()) return handle.status();
  using Init = int (*)(const char*);
  using GetInfo = const void* (*)();
  const auto init = reinterpret_cast<Init>(dlsym(*handle, "init_filter"));
  const auto get_info = reinterpret_cast<GetInfo>(dlsym(*handle, "H5PLget_plugin_info"));
  const std::string ours = our_hdf5_path();
  if (init == nullptr || get_info == nullptr || init(ours.c_str()) < 0) {
    return Status(Code::plugin_missing,
                  library.file_path + " did not accept " + ours + " as its HDF5 library");
  }
  return static_cast<const H5Z_class2_t*>(get_info());
}

}  // namespace

Result<const H5Z_class2_t*> class_for_our_hdf5(const PluginLibrary& library) {
  const H5Z_class2_t* own = library.filter_class;
  if (own->can_apply == nullptr && own->set_local == nullptr) return own;
  if (hdf5_is_in_sight()) return own;
  if (!library.exports("init_filter")) {
    return Status(
        Code::unsupported,
        library.file_path +
            " can only read here: to write, it would call HDF5, and this process has more than "
            "one; use trz, portable, deflate, or a plug-in of the hdf5plugin package");
  }
  const Hdf5Scope scope;
  static auto* copies = new std::map<const PluginLibrary*, const H5Z_class2_t*>;
  const auto found = copies->find(&library);
  if (found != copies->end()) return found->second;
  Result<const H5Z_class2_t*> copy = bound_copy(library);
  if (copy.ok()) copies->emplace(&library, *copy);
  return copy;
}

}  // namespace tailrace
