// Plug-ins that ask HDF5 something, in a process that hides its HDF5 from them.
//
// A plug-in's set_local calls H5Pmodify_filter and the like. In a program that is linked to HDF5
// the dynamic linker finds ours. In Python everybody's HDF5 is private: there may be none in sight,
// or h5py's, to which our ids mean something else. The plug-ins of the hdf5plugin wheel therefore
// go through a table that their init_filter fills from the library it is told, once: the first
// caller wins, as a rule hdf5plugin itself, for h5py. So ours is a second copy of the plug-in, told
// of our own HDF5. Encoding and decoding call no HDF5 and stay with the first copy.

#pragma once

#include "container/plugin_library.hpp"
#include "core/status.hpp"

namespace tailrace {

/// The filter class whose can_apply and set_local may be called with ids of our HDF5: the library's
/// own, or that of a copy, which is made once and lives as long as the process.
/// Not collective. Main thread only (takes the HDF5 lock).
/// @error unsupported  the plug-in needs HDF5 and cannot be told which; names codecs that work.
/// @error plugin_missing  the copy could not be made.
Result<const H5Z_class2_t*> class_for_our_hdf5(const PluginLibrary& library);

}  // namespace tailrace
