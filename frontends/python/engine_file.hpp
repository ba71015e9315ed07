// EngineFile: a netCDF-4 (or any HDF5) file as the Python package sees it, still without Python.
//
// One object for both ways: a file opened for reading stands on Reader, which decodes in parallel
// and knows how datasets are stored; one opened for writing stands on ArrayFile. Here is the lock
// that lets many Python threads share a file (they hold no interpreter lock meanwhile), and the
// edits of the netCDF-4 model, each of which is one change_model(). Names, defaults and NumPy's
// indexing belong to the Python side.

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

/// Whose attributes are meant.
enum class Owner : std::uint8_t { group, variable };

/// How a variable lies in the file.
struct VariableStorage {
  std::string kind;  ///< "chunked", "contiguous", "compact", "nothing".
  std::string type_text;
  std::string type_description;  ///< describe_type(); empty: NumPy has no such type.
  Shape chunk_shape;
  std::vector<FilterSpec> filters;
  bool plain_number = false;       ///< Numbers as NumPy has them, in either byte order.
  bool swapped = false;            ///< ... and not in this machine's.
  bool elsewhere = false;          ///< The data lie in other files.
  bool plain_edges = false;        ///< Chunks over the edge have no filters.
  std::uint64_t data_address = 0;  ///< Kind contiguous: where; 0: never written.
};

/// What opening takes.
struct Opening {
  std::string path;
  char mode = 'r';             ///< 'r' read, 'w' create or replace, 'x' create, 'a' read and write.
  std::string options;         ///< 'r': apply_read_options(); else apply_glob_options().
  std::string plugin_path;     ///< Folders searched for filter plug-ins.
  std::unique_ptr<Comm> comm;  ///< Null: this process alone.
};

/// Thread-safe: one call at a time, the others wait. What is collective of Reader and ArrayFile is
/// collective here.
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

  /// A copy of the model as it stands.
  Result<NetcdfModel> model();
  /// What the user should hear: of objects that the model leaves out, and of how the file was come
  /// by (rank 0 of those that write it). Each names the file.
  Result<std::vector<std::string>> remarks();
  /// Remarks of ArrayFile::take_remarks(), of an open file or of one that close() has ended.
  std::vector<std::string> take_remarks();
  /// Apply `edit` to the model. Collective in a file opened for writing. @error invalid_argument
  Status edit(const std::function<Status(NetcdfModel&)>& edit);
  /// Options of a variable without a dataset. Collective.
  Status set_variable_options(std::size_t variable, const std::string& options);
  /// ArrayFile::try_variable() of what `add` adds to the model. Collective.
  Result<bool> try_variable(const std::function<Status(NetcdfModel&)>& add,
                            const std::string& options);
  /// True if values that are put into the variable may change when they are encoded; false in a
  /// file opened for reading. Not collective.
  Result<bool> may_lose(std::size_t variable);
  /// How a variable is stored; none before its dataset exists. Not collective.
  Result<std::optional<VariableStorage>> storage(std::size_t variable);

  Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values);
  /// @param abs_bound  as that of Reader::read; nothing in a file opened for writing.
  Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values, double abs_bound);
  Status put_texts(std::size_t variable, const Slab& slab, std::span<const std::string> texts);
  Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab);
  /// Collective; ReadRequest::dataset is the variable's position in the model.
  Status get_all(std::span<const ReadRequest> requests);
  /// Take part in the get_all() of the others without a request: it fails on all ranks. Collective.
  Status fail_get_all(const std::string& why);

  Status settle();  ///< Collective. Nothing to do in a file opened for reading.
  Status flush();   ///< Collective. Likewise.
  Status close();   ///< Collective. Once or often.
  Status abort();   ///< Collective. As ArrayFile::abort(); closes one opened for reading.
  /// What reads or flushes have done.
  Result<std::variant<ReadReport, ArrayFileReport>> report();

 private:
  explicit EngineFile(std::string path);
  /// A copy that fork() has made of a file that is written: it is the parent's.
  bool is_parents() const;
  Status open_for_reading(Opening opening);
  Status open_for_writing(Opening opening);
  Status check_open(bool to_write) const;
  /// The position among the reader's datasets.
  Result<std::size_t> dataset_of(std::size_t variable) const;
  /// The position among the reader's datasets of a variable that holds the slab. @error also a
  /// slab that is not within the variable's shape
  Result<std::size_t> dataset_of(std::size_t variable, const Slab& slab) const;
  Bytes fill_of(std::size_t variable, std::size_t dataset) const;
  const NetcdfModel& model_now() const { return array_ ? array_->model() : reader_->model(); }

  std::string path_;
  int pid_;
  std::mutex mutex_;
  std::unique_ptr<Reader> reader_;         ///< Mode 'r'.
  std::unique_ptr<ArrayFile> array_;       ///< The other modes.
  std::vector<std::string> last_remarks_;  ///< Of close().
};

// --- the edits of a model that the Python package makes, as functions for EngineFile::edit. Each
// checks the positions that it is given; names, types and duplicates are change_model()'s to judge,
// which gives the netCDF-4 library's reasons.

using ModelEdit = std::function<Status(NetcdfModel&)>;

/// `path` is absolute; its parent must exist. @error not_found, already_exists
ModelEdit add_group(const std::string& path);
ModelEdit add_dimension(std::size_t group, const std::string& name, std::uint64_t length,
                        bool unlimited);
/// @param fill  the bytes of a _FillValue of the variable's type.
ModelEdit add_variable(std::size_t group, const std::string& name, ModelType type,
                       const std::vector<std::size_t>& dimensions,
                       const std::optional<std::string>& fill);
/// Sets a new attribute or replaces the one of that name, in its place.
ModelEdit set_attribute(Owner owner, std::size_t position, const ModelAttribute& attribute);
/// @error not_found
ModelEdit delete_attribute(Owner owner, std::size_t position, const std::string& name);
ModelEdit rename_dimension(std::size_t dimension, const std::string& name);
ModelEdit rename_variable(std::size_t variable, const std::string& name);

/// The attributes of a group or variable. @error not_found  no such position.
Result<std::vector<ModelAttribute>> attributes_of(const NetcdfModel& model, Owner owner,
                                                  std::size_t position);

}  // namespace tailrace::python
