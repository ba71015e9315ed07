// Filter plug-ins as codecs: found on disk, asked once for their client data, called directly.
//
// A plug-in's filter callback is an ordinary function; calling it on our own buffers gives the very
// bytes that HDF5 would have stored. Its set_local runs once per field in a throw-away dataset.
// Plug-ins known to be re-entrant run on many threads, all others behind one lock per process.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// Make the codec that `request` names out of an HDF5 filter plug-in: one of the registry, or
/// "id=NUMBER" with cd=1:2:3; see make_codec(), which calls this. `plugin_path` (colon-separated
/// folders) is searched before HDF5_PLUGIN_PATH and HDF5's default. Not collective. Main thread
/// only (calls HDF5).
Result<std::unique_ptr<Codec>> make_plugin_codec(const CodecRequest& request,
                                                 const std::string& plugin_path);

/// A filter of an existing dataset as a stage, called with the final client data that the dataset's
/// header names.
struct StoredPlugin {
  std::unique_ptr<FilterStage> stage;
  bool guarded = false;  ///< There are values whose encoding it does not survive.
  std::string version;
};

/// Find and load the plug-in of a stored filter. Not collective. Takes the HDF5 lock.
/// @error plugin_missing  names the id and every folder searched.
Result<StoredPlugin> find_stored_plugin(const FilterSpec& stored, const std::string& plugin_path);

/// Register a filter class of our own (an H5Z_class2_t) with this process's HDF5, which then needs
/// no plug-in of that number to read. Once or often. Main thread only.
/// @error internal  HDF5 refuses.
Status register_filter_class(const void* filter_class);

/// Search these folders (colon-separated) for plug-ins before HDF5_PLUGIN_PATH, for our own calls
/// and for those that this process's HDF5 makes. The environment stays as it is: child processes
/// inherit it, and so do other HDF5s of the process. Not collective. Main thread only (calls HDF5).
void search_plugins_in(const std::string& folders);

/// The folders that are searched, in order, for messages and `tailrace info`.
std::vector<std::string> plugin_folders(const std::string& plugin_path);

}  // namespace tailrace
