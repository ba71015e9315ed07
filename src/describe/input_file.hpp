// InputFile: an existing file as a list of arrays that can be read box by box.
//
// Formats: HDF5 with any layout and filters (netCDF-4 included), netCDF classic (CDF-1, 2 and 5),
// NumPy .npy, and raw binary with a given dtype and shape. Each rank opens the file independently
// (open_input_file, read/read.hpp) and reads what it needs; nothing is collective. Rank 0 carries
// over everything that is not an array of a plain number type (strings, compounds, enums,
// attributes, links). It calls carry_over_objects() and carry_over_attributes(). On request,
// datasets of other types of a fixed size are also listed, as fields of bytes
// (ReadOptions::others_as_bytes).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/copied_notes.hpp"
#include "core/covered_cells.hpp"
#include "core/stated_attribute.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class Hdf5File;
struct BoxSeries;

/// Type and shape of a file that does not describe itself.
struct RawFormat {
  DType dtype = DType::f32;
  Shape shape;
};

/// A dataset that is not an array of plain numbers: strings, compounds, half precision, and so on.
struct OtherDataset {
  std::string path;
  std::string type;  ///< Name for the user: "complex of f64", "string of 8 bytes".
  Shape shape;
  /// Bytes of all elements; 0 if elements point to data elsewhere in the file.
  std::uint64_t n_bytes = 0;
  bool is_dimension = false;  ///< A netCDF-4 dimension without a variable: it has only a length.
};

class InputFile {
 public:
  virtual ~InputFile() = default;

  /// One of "HDF5", "netCDF-4", "netCDF classic", "npy", "raw".
  virtual const std::string& format() const = 0;
  /// The number arrays, in the file's own order: creation order for HDF5 groups that track it (else
  /// by name), definition order for netCDF classic. A group's members follow the group, depth
  /// first. An object with several hard links appears at the first. carry_over_objects() copies
  /// everything else.
  virtual const std::vector<StoredDataset>& fields() const = 0;
  /// Mark fields that the caller writes itself although they represent datasets of other types as
  /// bytes (bytes_axis). They leave other_datasets() and objects(). All other such fields are
  /// carried over as objects.
  virtual void take_as_fields(std::span<const std::size_t> field_indices) {
    static_cast<void>(field_indices);
  }
  /// Exclude these datasets, which are not fields: nothing of them is carried over, and they leave
  /// other_datasets() and objects().
  virtual void leave_out(const std::set<std::string>& paths) { static_cast<void>(paths); }
  /// Path and kind ("group") of each object that carry_over_objects() copies, each once.
  virtual std::vector<std::pair<std::string, std::string>> objects() const { return {}; }
  /// The datasets among objects().
  virtual std::vector<OtherDataset> other_datasets() const { return {}; }
  /// Bytes in front of the format's own data (HDF5's user block).
  virtual std::uint64_t user_block_bytes() const { return 0; }
  /// Remarks for the user about the listing: omitted objects, links that form cycles.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Remark on bytes behind the end of the format, which are left out; empty: no such bytes.
  virtual std::string remark_of_end() const { return ""; }
  /// Unreadable objects that were left out, with the reasons. Filled only if the caller asked for
  /// it.
  virtual std::vector<std::string> unreadable() const { return {}; }
  /// Read one box, row-major in native byte order. One thread at a time.
  /// `values` holds box.n_elements() elements. @error io_error, corrupt, plugin_missing
  virtual Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) = 0;
  /// Read a chunk of a field as stored, neither decoded nor checked.
  /// @param chunk_index  number in the grid of stored chunks.
  /// @returns nothing if the chunk was never written, or the file has no chunks.
  /// @error io_error, corrupt
  virtual Result<std::optional<EncodedBytes>> read_stored(std::size_t field_index,
                                                          std::uint64_t chunk_index) {
    static_cast<void>(field_index);
    static_cast<void>(chunk_index);
    return std::optional<EncodedBytes>();
  }
  /// List the chunks of a field that the file has, as ascending numbers in the grid of stored
  /// chunks. Nothing: all of them, or the field is not stored in chunks. Cost: reads the field's
  /// chunk index if chunks are missing. @error corrupt
  virtual Result<std::optional<std::vector<std::uint64_t>>> chunks_there(std::size_t field_index) {
    static_cast<void>(field_index);
    return std::optional<std::vector<std::uint64_t>>();
  }
  /// True if chunks of a field skip filters of its dataset, which not every reader notices. Cost:
  /// reads the field's chunk index. @error corrupt
  virtual Result<bool> has_masked_chunks(std::size_t field_index) {
    static_cast<void>(field_index);
    return false;
  }
  /// Read the layout of a plotfile's level, stored in a field of one dimension. Null: another
  /// field, or the file's metadata about it are inconsistent. Cost: reads the level's list of
  /// boxes.
  virtual Result<std::shared_ptr<const BoxSeries>> boxes_of(std::size_t field_index) {
    static_cast<void>(field_index);
    return std::shared_ptr<const BoxSeries>();
  }
  /// Find the cells of such a field that boxes of the next finer level cover. Cost: reads both
  /// lists.
  /// @param boxes  the result of boxes_of()
  virtual Result<LevelCover> cover_of(std::size_t field_index,
                                      const std::shared_ptr<const BoxSeries>& boxes) {
    static_cast<void>(field_index);
    static_cast<void>(boxes);
    return LevelCover();
  }
  /// Read a text attribute of an object; empty: it does not exist or has another type.
  virtual std::string text_attribute(const std::string& object_path, const std::string& name) {
    static_cast<void>(object_path);
    static_cast<void>(name);
    return std::string();
  }
  /// Read the first number of the first attribute in `names` that the object has, and that
  /// attribute's name. Nothing: the object has none of them, or that attribute is not a number.
  virtual std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                                      std::span<const char* const> names) {
    static_cast<void>(object_path);
    static_cast<void>(names);
    return std::nullopt;
  }
  /// Read the attributes of an object whose names pass the filter. Empty: the format has no
  /// attributes, or none of the object's pass. Cost: opens the object. @error corrupt
  virtual Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                             AttributeFilter wanted) {
    static_cast<void>(object_path);
    static_cast<void>(wanted);
    return std::vector<StatedAttribute>();
  }
  /// Copy into `output` everything that is not a field, before the fields are created: groups with
  /// their creation order, other objects (strings, compounds, ...), links, named types. Rank 0
  /// only.
  /// @returns lines for the user about what could not be carried over (ideally none).
  virtual Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) = 0;
  /// Copy attributes of all groups and fields and attach dimension scales, after the fields are
  /// created.
  /// @param copied  for each object, which of Tailrace's attributes remain true and are copied,
  /// too.
  virtual Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                                 const CopiedObjects& copied) = 0;
};

}  // namespace tailrace
