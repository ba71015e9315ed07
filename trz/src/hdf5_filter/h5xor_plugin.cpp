// The two functions that make libh5xor.so an HDF5 filter plug-in (H5PLextern.h).

#include "hdf5_filter/xor_filter.hpp"

extern "C" {
// The names are HDF5's.
// NOLINTBEGIN(readability-identifier-naming)
__attribute__((visibility("default"))) int H5PLget_plugin_type(void);
__attribute__((visibility("default"))) const void* H5PLget_plugin_info(void);

int H5PLget_plugin_type(void) { return tailrace::hdf5::kPluginTypeFilter; }
const void* H5PLget_plugin_info(void) { return &tailrace::hdf5::xor_filter_class(); }
// NOLINTEND(readability-identifier-naming)
}
