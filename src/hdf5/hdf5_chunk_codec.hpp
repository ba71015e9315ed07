// Chunks through HDF5's own filters, for pipelines that nobody else can run: szip, nbit,
// scale-offset, and filter classes that only this process's HDF5 knows.
//
// A file that lives in memory holds a dataset of one chunk with the same type, chunk shape, fill
// value and pipeline. To decode, the stored bytes are put in as they are and read back as values;
// to encode, the other way round. One chunk at a time, under the HDF5 lock: the slow path.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/box.hpp"
#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace {

/// What the datasets whose chunks are meant have in common.
struct Hdf5ChunkForm {
  Bytes type;                       ///< H5Tencode of the file's type; elements are their bytes.
  std::uint64_t element_bytes = 0;  ///< Of that type.
  Shape chunk_shape;                ///< Of one dimension at least.
  std::vector<FilterSpec> filters;  ///< With final_client_data.
  Bytes fill_value;                 ///< element_bytes; empty: HDF5's default.
};

/// Make the codec; plug-ins of its pipeline are looked for in `plugin_path` first. Not collective;
/// takes the HDF5 lock. The codec is thread-safe (one at a time).
/// @error plugin_missing  HDF5 does not have one of the filters, or cannot encode with it.
/// @error unsupported     HDF5 would use other client data than the header names.
Result<std::unique_ptr<Codec>> make_hdf5_chunk_codec(const Hdf5ChunkForm& form,
                                                     const std::string& plugin_path);

/// Whether this process's HDF5 has a filter, built in or registered (no plug-ins are looked for in
/// folders of ours, and stubs do not count). Takes the HDF5 lock.
bool hdf5_has_filter(std::uint32_t filter_id);

}  // namespace tailrace
