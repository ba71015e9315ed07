// Filter plug-ins on disk: the folders searched, and how a plug-in is found and loaded.
//
// A plug-in is a shared library with H5PLget_plugin_type and H5PLget_plugin_info. It is opened with
// dlopen and stays open until the process ends, since its code may have started threads. Its
// init_filter, if any, is not called: it is meant for processes with a private HDF5 (Python) and
// would overwrite ids that HDF5 owns. Files whose names match the filter are tried first, since
// opening every plug-in of a folder can cost hundreds of megabytes.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/status.hpp"

struct H5Z_class2_t;  // hdf5.h: a filter's callbacks, id and name.

namespace tailrace {

/// A loaded plug-in. Lives as long as the process.
struct PluginLibrary {
  std::string file_name;  ///< Name without the folder, which differs between machines.
  std::string file_path;
  void* handle = nullptr;  ///< Result of dlopen.
  const H5Z_class2_t* filter_class = nullptr;

  /// True if the library exports a symbol of this name.
  bool exports(const char* symbol) const;
  /// Text that the plug-in's own calls to `const char* symbol(void)` return; empty if undefined.
  std::string text_of(const char* symbol) const;
};

/// "; it comes with ...": where to obtain a filter's plug-in, if we know; else empty.
std::string plugin_source_text(std::uint32_t filter_id);

/// The folders that this build searches last; compiled in, often none.
std::vector<std::string> default_plugin_folders();

/// Find and load the plug-in of a filter. Loaded plug-ins are cached, per set of folders. Not
/// collective. Main thread only.
/// @param hints    parts of file names ("sz3") that mark a file to try first.
/// @param folders  in order of preference; missing folders are skipped.
/// @error plugin_missing  names the id, all folders, and every matching file that does not load.
Result<const PluginLibrary*> load_plugin(std::uint32_t filter_id,
                                         const std::vector<std::string_view>& hints,
                                         const std::vector<std::string>& folders);

}  // namespace tailrace

namespace tailrace {

// --- Plug-ins that call HDF5, in a process that hides its HDF5 from them.
//
// A plug-in's set_local calls H5Pmodify_filter and similar functions. In a program that is linked
// to HDF5, the dynamic linker binds these calls to our HDF5. In Python every package has a private
// HDF5. The plug-in then finds none, or h5py's, in which our ids mean something else.
//
// The plug-ins of the hdf5plugin wheel therefore call HDF5 through a table, which their init_filter
// fills once from the library that it is given. The first caller wins, usually hdf5plugin itself,
// for h5py. So we load a second copy of the plug-in and give it our HDF5. Encoding and decoding do
// not call HDF5 and use the first copy.

/// The filter class whose can_apply and set_local accept ids of our HDF5. It belongs to the library
/// itself, or to a copy that is made once and lives as long as the process. Not collective. Main
/// thread only (takes the HDF5 lock).
/// @error unsupported  the plug-in needs HDF5 and cannot be given ours; names codecs that work.
/// @error plugin_missing  the copy could not be made.
Result<const H5Z_class2_t*> class_for_our_hdf5(const PluginLibrary& library);

}  // namespace tailrace
