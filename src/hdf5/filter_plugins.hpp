// Filter plug-ins as codecs: found on disk, queried once for their client data, called directly.
//
// A plug-in's filter callback is an ordinary function: called on our buffers, it returns exactly
// the bytes that HDF5 would store. Its set_local runs once per field, on a temporary creation
// property list. Plug-ins known to be re-entrant run on many threads; all others run under one lock
// per process.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// Create the codec that `request` names from an HDF5 filter plug-in: one of the registry, or
/// "id=NUMBER" with cd=1:2:3. make_codec() calls this. `plugin_path` (colon-separated folders) is
/// searched before HDF5_PLUGIN_PATH and HDF5's default. Not collective. Main thread only (calls
/// HDF5).
Result<std::unique_ptr<Codec>> make_plugin_codec(const CodecRequest& request,
                                                 const std::string& plugin_path);

/// A filter of an existing dataset as a stage, called with the final client data in the dataset's
/// header.
struct StoredPlugin {
  std::unique_ptr<FilterStage> stage;
  bool guarded = false;  ///< Some values would crash it or make it hang on encoding.
  std::string version;
};

/// Find and load the plug-in of a stored filter. Not collective. Takes the HDF5 lock.
/// @error plugin_missing  names the id and every folder searched.
Result<StoredPlugin> find_stored_plugin(const FilterSpec& stored, const std::string& plugin_path);

/// Register a filter class of our own (an H5Z_class2_t) with this process's HDF5, which then
/// decodes that filter without a plug-in. May be called repeatedly. Main thread only.
/// @error internal  HDF5 refuses.
Status register_filter_class(const void* filter_class);

/// Search these folders (colon-separated) for plug-ins before HDF5_PLUGIN_PATH, in our calls and in
/// those of this process's HDF5. The environment stays unchanged, because child processes and other
/// HDF5 copies in the process also read it. Not collective. Main thread only (calls HDF5).
void search_plugins_in(const std::string& folders);

/// The folders searched, in order, for messages and `tailrace info`.
std::vector<std::string> plugin_folders(const std::string& plugin_path);

}  // namespace tailrace
