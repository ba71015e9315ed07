// Reader: reads hyperslabs of an HDF5 file and decodes them in parallel.
//
// read.cpp lists the stages. It lists the datasets, reads a chunk index once and shares it within
// each node. It finds the chunks that a slab touches, fetches neighbouring ones in large reads, and
// decodes them on threads, directly into the caller's memory. Decoded chunks that a slab used in
// part are cached, and the next chunks are prefetched. Serves any HDF5 file from any writer, with
// built-in filters or any plug-in; also contiguous, compact, virtual and external datasets.
//
// Collectivity. open, open_index, read_all, refresh and close are collective; read is not. A
// failure on one rank within a collective call is returned on every rank, and names the rank.
//
// Memory: encoded and decoded chunks in memory take at most ReadOptions::memory_bytes in addition
// to the caller's buffers, or what one chunk takes if that is more. The chunk index is not counted:
// 12 to 40 bytes a chunk of the datasets that are read, once per node.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "chunk/chunk_reader.hpp"
#include "chunk/read_options.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "describe/input_file.hpp"
#include "describe/stored_file.hpp"
#include "hdf5/dataset_schema.hpp"
#include "netcdf/netcdf_model.hpp"
#include "read/read_shared.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Reads slabs of one HDF5 file.
class Reader {
 public:
  /// Open a file: rank 0 lists its datasets and broadcasts the list. Collective.
  /// Cost: O(objects) at rank 0, one broadcast.
  /// @error not_found, io_error, corrupt (not HDF5, damaged, or truncated)
  static Result<std::unique_ptr<Reader>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const ReadOptions& options = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::vector<StoredDataset>& datasets() const { return list_.datasets; }
  /// Return the index of the dataset with this path (or a second hard link to it). @error not_found
  Result<std::size_t> find(const std::string& path) const;
  /// Dimensions, variables and attributes as netCDF-4 presents them; for any HDF5 file. Same
  /// everywhere.
  const NetcdfModel& model() const { return model_; }
  /// Reason why the model is missing although the datasets could be listed; else ok. Same
  /// everywhere.
  const Status& model_status() const { return model_status_; }

  /// Return the attributes of the file ("/"), a group or a dataset, in their order. Valid until
  /// refresh(). Not collective. @error not_found, and the model's status
  Result<std::span<const ModelAttribute>> attributes(const std::string& object_path) const;
  /// Return an attribute. Not collective. @error not_found  suggests the nearest name.
  Result<const ModelAttribute*> attribute(const std::string& object_path,
                                          const std::string& name) const;

  /// Return the number of steps that are complete: entries that every dataset has which grows by
  /// steps (its first dimension is unlimited); 0 without such a dataset. Not collective.
  std::uint64_t n_steps() const;
  /// Return the number of steps of one such dataset. Not collective.
  /// @error not_found  @error invalid_argument  the dataset does not grow.
  Result<std::uint64_t> n_steps(const std::string& path) const;
  /// Make the request for this rank's part of one step; null `start`: 0, null `count`: up to the
  /// end. Not collective. @error not_found, invalid_argument (step, length of the memory)
  Result<ReadRequest> step_request(const std::string& path, std::uint64_t step,
                                   const std::uint64_t* start, const std::uint64_t* count,
                                   std::span<std::byte> values) const;

  /// Read the chunk indexes of these datasets once, and share them within each node. Without this
  /// call, independent reads let each rank read the index on its own. Collective. Cost: 0.2 us a
  /// chunk at rank 0, one broadcast of 12 to 40 bytes a chunk.
  Status open_index(std::span<const std::size_t> datasets);

  /// Read one slab: numbers in native byte order, other types as the file's bytes. Not collective.
  /// One thread at a time. Elements of chunks that were never written have the dataset's fill
  /// value.
  /// @error invalid_argument, bad_coverage  the slab.
  /// @error corrupt, codec_failed  a chunk: the text names dataset, chunk and address.
  /// @error plugin_missing
  /// @error unsupported  elements that are references or of variable length; for strings:
  /// read_texts.
  /// @param abs_bound  same as ReadOptions::abs_bound; the coarser of both counts.
  Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values, double abs_bound);
  Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values) {
    return read(dataset, slab, values, 0);
  }
  /// Read variable-length or fixed-length strings. Not collective. @error unsupported  not strings.
  Result<std::vector<std::string>> read_texts(std::size_t dataset, const Slab& slab);

  /// Decode a dataset's chunks by this codec instead of the filters that the header names. Not
  /// collective; refresh() forgets it. A dataset without chunks needs no codec.
  Status use_codec(std::size_t dataset, std::shared_ptr<const Codec> codec);

  /// Read this rank's slabs, any number, of any datasets. A chunk that several ranks want is
  /// fetched and decoded by one of them, which sends the others their parts. Collective. Cost:
  /// O(own chunks) work and one message per pair of ranks that share a chunk; two sparse exchanges,
  /// a few allreduces. The memory limit determines the number of rounds.
  Status read_all(std::span<const ReadRequest> requests);

  /// List and index the file again, after it has changed (another commit). Collective.
  Status refresh();

  const ReadReport& report() const;
  Comm& comm() { return *comm_; }
  /// Close the file. Collective. Without it the destructor is local.
  Status close();

 private:
  Reader(std::unique_ptr<Comm> comm, std::string path, const ReadOptions& options);
  Status open_everywhere();
  /// List the file at rank 0 and broadcast the list.
  Status list();
  std::string dataset_text(std::size_t number) const;
  Status check_number(std::size_t number) const;
  Status check_slab_of(std::size_t number, const Slab& slab, std::uint64_t& n_bytes) const;
  Status check_request(const ReadRequest& request) const;
  bool by_chunks(std::size_t number) const;
  /// Open the indexes of all chunked datasets that any rank wants. Collective.
  Status open_wanted_indexes(std::span<const ReadRequest> requests);
  Status open_index_of(ReadDataset& dataset);
  /// Return the stored chunks that these requests touch; none with a single rank, which shares
  /// nothing.
  Result<WantedChunks> wanted_chunks(std::span<const ReadRequest> requests);
  Status read_unshared(const ReadRequest& request, const SharedRead& together);
  /// Open the file, when this rank first needs it.
  Status open_file();

  std::unique_ptr<Comm> comm_;
  std::string path_;
  ReadOptions options_;
  DatasetList list_;
  std::unordered_map<std::string, std::size_t> by_path_;
  NetcdfModel model_;
  Status model_status_;
  std::unique_ptr<StoredFile> file_;
  std::unique_ptr<ChunkReader> chunks_;
  mutable ReadReport report_;
  bool closed_ = false;
  /// Attributes of each object of the model, by the object's path.
  std::unordered_map<std::string, const std::vector<ModelAttribute>*> attributes_by_path_;
};

// --- Inputs of the verbs.

/// Open a file as fields, by its content instead of its name. Chunks of HDF5 files are fetched and
/// decoded as by a Reader. HDF5 itself reads only three kinds of datasets: in other files
/// (external, virtual), in a header (compact), and with filters that Tailrace cannot run. Datasets
/// in other files are fields only with options.follow_external. Not collective.
/// @error not_found, corrupt (truncated or foreign; says what was expected), unsupported (says
/// which format).
Result<std::unique_ptr<InputFile>> open_input_file(const std::string& path,
                                                   const std::optional<RawFormat>& raw = {},
                                                   const ReadOptions& options = {});

}  // namespace tailrace
