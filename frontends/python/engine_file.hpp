// EngineFile: a netCDF-4 (or any HDF5) file for the Python package, without Python types.
//
// One object serves both directions. A file opened for reading uses Reader, which decodes in
// parallel and knows how datasets are stored. One opened for writing uses ArrayFile. A lock lets
// many Python threads share a file; they release the interpreter lock meanwhile. Each edit of the
// netCDF-4 model is one change_model(). Names, defaults and NumPy's indexing are on the Python
// side.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "array/array_file.hpp"
#include "read/read.hpp"

namespace tailrace::python {

/// Kind of object that owns an attribute.
enum class Owner : std::uint8_t { group, variable };

/// Storage of a variable in the file.
struct VariableStorage {
  std::string kind;  ///< "chunked", "contiguous", "compact", "nothing".
  std::string type_text;
  std::string type_description;  ///< describe_type(); empty: NumPy lacks such a type.
  Shape chunk_shape;
  std::vector<FilterSpec> filters;
  bool plain_number = false;       ///< A number type of NumPy, in either byte order.
  bool swapped = false;            ///< The numbers are not in this machine's byte order.
  bool elsewhere = false;          ///< The data are in other files.
  bool plain_edges = false;        ///< Chunks over the edge are stored without filters.
  std::uint64_t data_address = 0;  ///< Kind contiguous: address of the data; 0: never written.
};

/// Arguments of open().
struct Opening {
  std::string path;
  char mode = 'r';             ///< 'r' read, 'w' create or replace, 'x' create, 'a' read and write.
  std::string options;         ///< 'r': apply_read_options(); else apply_glob_options().
  std::string plugin_path;     ///< Folders searched for filter plug-ins.
  std::unique_ptr<Comm> comm;  ///< Null: only this process.
};

/// Thread-safe: one call at a time, the others wait. Calls that are collective in Reader and
/// ArrayFile are collective here.
class EngineFile {
 public:
  /// Collective. @error not_found, already_exists, corrupt, io_error, invalid_argument (options)
  static Result<std::unique_ptr<EngineFile>> open(Opening opening);

  ~EngineFile();
  EngineFile(const EngineFile&) = delete;
  EngineFile& operator=(const EngineFile&) = delete;

  const std::string& path() const { return path_; }
  bool writable() const { return array_ != nullptr; }
  bool is_open() const { return array_ != nullptr || reader_ != nullptr; }
  int rank();
  int n_ranks();

  /// Return a copy of the current model.
  Result<NetcdfModel> model();
  /// Return remarks for the user: on objects that the model omits, and on how the file was opened
  /// (rank 0 of the ranks that write it). Each names the file.
  Result<std::vector<std::string>> remarks();
  /// Return the remarks of ArrayFile::take_remarks(), also after close().
  std::vector<std::string> take_remarks();
  /// Apply `edit` to the model. Collective in a file opened for writing. @error invalid_argument
  Status edit(const std::function<Status(NetcdfModel&)>& edit);
  /// Options of a variable without a dataset. Collective.
  Status set_variable_options(std::size_t variable, const std::string& options);
  /// Call ArrayFile::try_variable() for the variable that `add` adds to the model. Collective.
  Result<bool> try_variable(const std::function<Status(NetcdfModel&)>& add,
                            const std::string& options);
  /// True if encoding may change values put into the variable; false in a file opened for reading.
  /// Not collective.
  Result<bool> may_lose(std::size_t variable);
  /// Return the storage of a variable; nothing before its dataset exists. Not collective.
  Result<std::optional<VariableStorage>> storage(std::size_t variable);

  Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values);
  /// @param abs_bound  see Reader::read; ignored in a file opened for writing.
  Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values, double abs_bound);
  Status put_texts(std::size_t variable, const Slab& slab, std::span<const std::string> texts);
  Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab);
  /// Read slabs on all ranks. Collective; ReadRequest::dataset is the variable's position in the
  /// model. @param n_bytes  lengths of the requests' memory
  Status get_all(std::span<const ReadRequest> requests, std::span<const std::size_t> n_bytes);
  /// Take part in the other ranks' get_all() without a request: it fails on all ranks. Collective.
  Status fail_get_all(const std::string& why);

  Status end_collective_put();  ///< Collective. No effect in a file opened for reading.
  Status flush();               ///< Collective. No effect in a file opened for reading.
  Status close();               ///< Collective. May be called repeatedly.
  Status abort();  ///< Collective. ArrayFile::abort(); closes a file opened for reading.
  /// Return the counters of reads, or of flushes.
  Result<std::variant<ReadReport, ArrayFileReport>> report();

 private:
  explicit EngineFile(std::string path);
  /// True in a forked child for a file opened for writing, which remains the parent's.
  bool is_parents() const;
  Status open_for_reading(Opening opening);
  Status open_for_writing(Opening opening);
  Status check_open(bool to_write) const;
  /// Return the variable's position among the reader's datasets.
  Result<std::size_t> dataset_of(std::size_t variable) const;
  /// Return the position among the reader's datasets of a variable that contains the slab.
  /// @error also if the slab is not within the variable's shape
  Result<std::size_t> dataset_of(std::size_t variable, const Slab& slab) const;
  Status check_room(const ReadRequest& request, std::size_t n_bytes) const;
  Bytes fill_of(std::size_t variable, std::size_t dataset) const;
  const NetcdfModel& model_now() const { return array_ ? array_->model() : reader_->model(); }

  std::string path_;
  int pid_;
  std::mutex mutex_;
  std::unique_ptr<Reader> reader_;         ///< Mode 'r'.
  std::unique_ptr<ArrayFile> array_;       ///< Modes 'w', 'x', 'a'.
  std::vector<std::string> last_remarks_;  ///< Remarks after close().
};

// --- Edits of a model for EngineFile::edit. Each checks the positions that it receives;
// change_model() checks names, types and duplicates, with the netCDF-4 library's reasons.

using ModelEdit = std::function<Status(NetcdfModel&)>;

/// Add a group. `path` is absolute; its parent must exist. @error not_found, already_exists
ModelEdit add_group(const std::string& path);
ModelEdit add_dimension(std::size_t group, const std::string& name, std::uint64_t length,
                        bool unlimited);
/// @param fill  bytes of a _FillValue of the variable's type.
ModelEdit add_variable(std::size_t group, const std::string& name, ModelType type,
                       const std::vector<std::size_t>& dimensions,
                       const std::optional<std::string>& fill);
/// Add an attribute, or replace the one of that name at its position.
ModelEdit set_attribute(Owner owner, std::size_t position, const ModelAttribute& attribute);
/// @error not_found
ModelEdit delete_attribute(Owner owner, std::size_t position, const std::string& name);
ModelEdit rename_dimension(std::size_t dimension, const std::string& name);
ModelEdit rename_variable(std::size_t variable, const std::string& name);

/// Return the attributes of a group or variable. @error not_found  unknown position.
Result<std::vector<ModelAttribute>> attributes_of(const NetcdfModel& model, Owner owner,
                                                  std::size_t position);

}  // namespace tailrace::python
