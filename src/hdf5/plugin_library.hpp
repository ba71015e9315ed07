// Filter plug-ins on disk: which folders are searched, and how one is found and loaded.
//
// A plug-in is a shared library with H5PLget_plugin_type and H5PLget_plugin_info. It is opened with
// dlopen and stays open until the process ends (its code may have started threads). Its
// init_filter, where there is one, is never called: it is meant for processes whose HDF5 is private
// (Python) and would overwrite ids that HDF5 owns. Files whose name fits the filter are tried
// before all others, since merely opening every plug-in of a folder can cost hundreds of megabytes.

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
  std::string file_name;  ///< Without its folder, which differs per machine.
  std::string file_path;
  void* handle = nullptr;  ///< dlopen's.
  const H5Z_class2_t* filter_class = nullptr;

  /// Whether the library exports a symbol of this name.
  bool exports(const char* symbol) const;
  /// What `const char* symbol(void)` returns to the plug-in's own calls; empty if there is none.
  std::string text_of(const char* symbol) const;
};

/// "; it comes with ...": where a filter's plug-in can be had, if we know; else empty.
std::string plugin_source_text(std::uint32_t filter_id);

/// The folders that this build searches after all others; compiled in, often none.
std::vector<std::string> default_plugin_folders();

/// Find and load the plug-in of a filter. Loaded ones are remembered, per set of folders.
/// Not collective. Main thread only.
/// @param hints    parts of file names ("sz3") that make a file worth trying first.
/// @param folders  in order of preference; those that do not exist are passed over.
/// @error plugin_missing  names the id, all folders, and every file that fits but does not load.
Result<const PluginLibrary*> load_plugin(std::uint32_t filter_id,
                                         const std::vector<std::string_view>& hints,
                                         const std::vector<std::string>& folders);

}  // namespace tailrace

namespace tailrace {

// --- Plug-ins that ask HDF5 something, in a process that hides its HDF5 from them.
//
// A plug-in's set_local calls H5Pmodify_filter and the like. In a program that is linked to HDF5
// the dynamic linker finds ours. In Python everybody's HDF5 is private: there may be none in sight,
// or h5py's, to which our ids mean something else. The plug-ins of the hdf5plugin wheel therefore
// go through a table that their init_filter fills from the library it is told, once: the first
// caller wins, as a rule hdf5plugin itself, for h5py. So ours is a second copy of the plug-in, told
// of our own HDF5. Encoding and decoding call no HDF5 and stay with the first copy.

/// The filter class whose can_apply and set_local may be called with ids of our HDF5: the library's
/// own, or that of a copy, which is made once and lives as long as the process.
/// Not collective. Main thread only (takes the HDF5 lock).
/// @error unsupported  the plug-in needs HDF5 and cannot be told which; names codecs that work.
/// @error plugin_missing  the copy could not be made.
Result<const H5Z_class2_t*> class_for_our_hdf5(const PluginLibrary& library);

}  // namespace tailrace
