// InputFile: an existing file as a list of arrays that can be read box by box.
//
// Formats: HDF5 with any layout and filters (netCDF-4 included), netCDF classic (CDF-1, 2 and 5),
// NumPy .npy, and raw binary with a given dtype and shape. Each rank opens the file by itself
// (open_input_file, read/read.hpp) and reads what it needs; nothing is collective. What is not an
// array of a plain number type (strings, compounds, enums, attributes, links) is carried over by
// rank 0 with carry_over_objects() and carry_over_attributes(). On request, datasets of other types
// of a fixed size are listed as fields of bytes, too (ReadOptions::others_as_bytes).

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

/// How to read a file that does not describe itself.
struct RawFormat {
  DType dtype = DType::f32;
  Shape shape;
};

/// A dataset that is no array of plain numbers: strings, compounds, half precision, and so on.
struct OtherDataset {
  std::string path;
  std::string type;  ///< For the user: "complex of f64", "string of 8 bytes".
  Shape shape;
  /// Bytes of all elements; 0 if elements point to data elsewhere in the file.
  std::uint64_t n_bytes = 0;
  bool is_dimension = false;  ///< Of netCDF-4, without a variable: nothing but a length.
};

class InputFile {
 public:
  virtual ~InputFile() = default;

  /// "HDF5", "netCDF-4", "netCDF classic", "npy", "raw".
  virtual const std::string& format() const = 0;
  /// The number arrays, in the file's own order: creation order for HDF5 groups that track it (else
  /// by name), definition order for netCDF classic. A group's members follow the group, depth
  /// first; an object with several hard links stands at its first. Everything else is carry_over's.
  virtual const std::vector<StoredDataset>& fields() const = 0;
  /// Have the caller write these fields, which stand for other datasets as bytes (bytes_axis): they
  /// leave other_datasets() and objects(). All other such fields are carried over as objects.
  virtual void take_as_fields(std::span<const std::size_t> field_indices) {
    static_cast<void>(field_indices);
  }
  /// Leave out these datasets, which are no fields: nothing of them is carried over, and they leave
  /// other_datasets() and objects().
  virtual void leave_out(const std::set<std::string>& paths) { static_cast<void>(paths); }
  /// The other objects, which carry_over_objects() takes, each once: path and kind ("group").
  virtual std::vector<std::pair<std::string, std::string>> objects() const { return {}; }
  /// The datasets among those that are no fields.
  virtual std::vector<OtherDataset> other_datasets() const { return {}; }
  /// Bytes in front of what is the file's format (HDF5's user block).
  virtual std::uint64_t user_block_bytes() const { return 0; }
  /// What the user should know of the listing: what is left out of it, links that lead in circles.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Remark on bytes behind the end of the format, which are left out; empty: there are none.
  virtual std::string remark_of_end() const { return ""; }
  /// Objects that were left out since they cannot be read, and why: where that was asked for.
  virtual std::vector<std::string> unreadable() const { return {}; }
  /// Read one box, row-major in native byte order. One thread at a time.
  /// `values` holds box.n_elements() elements. @error io_error, corrupt, plugin_missing
  virtual Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) = 0;
  /// A chunk of a field as it stands in the file, by its number in the grid of stored chunks;
  /// nothing: there is none, or the file has no chunks. Not decoded, nor checked.
  /// @error io_error, corrupt
  virtual Result<std::optional<EncodedBytes>> read_stored(std::size_t field_index,
                                                          std::uint64_t chunk_index) {
    static_cast<void>(field_index);
    static_cast<void>(chunk_index);
    return std::optional<EncodedBytes>();
  }
  /// Which chunks of a field's grid of stored chunks the file has: their numbers, ascending.
  /// Nothing: all of them, or it is not stored in chunks. Cost: where some are missing, the field's
  /// chunk index. @error corrupt
  virtual Result<std::optional<std::vector<std::uint64_t>>> chunks_there(std::size_t field_index) {
    static_cast<void>(field_index);
    return std::optional<std::vector<std::uint64_t>>();
  }
  /// Whether chunks of a field leave out filters that its dataset has, which not every reader looks
  /// for. Cost: the field's chunk index. @error corrupt
  virtual Result<bool> has_masked_chunks(std::size_t field_index) {
    static_cast<void>(field_index);
    return false;
  }
  /// What lies in a field of one dimension that is a plotfile's level; null: another field, or what
  /// the file says of it does not fit together. Cost: reads the level's list of boxes.
  virtual Result<std::shared_ptr<const BoxSeries>> boxes_of(std::size_t field_index) {
    static_cast<void>(field_index);
    return std::shared_ptr<const BoxSeries>();
  }
  /// Which cells of such a field boxes of the next finer level cover. Cost: reads both lists.
  /// @param boxes  as of boxes_of()
  virtual Result<LevelCover> cover_of(std::size_t field_index,
                                      const std::shared_ptr<const BoxSeries>& boxes) {
    static_cast<void>(field_index);
    static_cast<void>(boxes);
    return LevelCover();
  }
  /// The text attribute of an object; empty: there is none, or of another type.
  virtual std::string text_attribute(const std::string& object_path, const std::string& name) {
    static_cast<void>(object_path);
    static_cast<void>(name);
    return std::string();
  }
  /// The first number of the first of these attributes that an object has, and its name; nothing:
  /// it has none, or that one is no number.
  virtual std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                                      std::span<const char* const> names) {
    static_cast<void>(object_path);
    static_cast<void>(names);
    return std::nullopt;
  }
  /// The attributes of an object whose names the filter takes. None: the format has no attributes,
  /// or the object has none of them. Cost: opens the object. @error corrupt
  virtual Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                             AttributeFilter wanted) {
    static_cast<void>(object_path);
    static_cast<void>(wanted);
    return std::vector<StatedAttribute>();
  }
  /// Copy into `output` what the fields do not cover, before the fields are created: groups with
  /// their creation order, other objects (strings, compounds, ...), links, named types.
  /// Rank 0 only. @returns lines that tell the user what could not be carried over (none is best).
  virtual Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) = 0;
  /// Copy attributes of all groups and fields and attach dimension scales; after the fields exist.
  /// @param copied  objects of which what Tailrace has said holds on, and is copied, too.
  virtual Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                                 const CopiedObjects& copied) = 0;
};

}  // namespace tailrace
