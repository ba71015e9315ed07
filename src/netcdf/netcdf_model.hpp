// NetcdfModel: the netCDF-4 data model of a file, as plain values.
//
// Groups, dimensions, variables and attributes, by number, in creation order. The model can be read
// from any HDF5 file. Datasets without dimension scales get anonymous dimensions, as in the
// netCDF-4 library. The model is laid out in HDF5 as by the netCDF-4 library (docs/netcdf.md):
// dimension scales, coordinate variables, _Netcdf4Dimid, _Netcdf4Coordinates, _NCProperties,
// creation order. List positions are stable: only attributes can be deleted.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "core/comm.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class Hdf5File;

/// Element types of netCDF-4 variables and attributes; values as in nc_type.
enum class ModelType : std::uint8_t {
  i8 = 1,
  text_char = 2,  ///< One byte of text (NC_CHAR); in HDF5 a string of one byte.
  i16 = 3,
  i32 = 4,
  f32 = 5,
  f64 = 6,
  u8 = 7,
  u16 = 8,
  u32 = 9,
  i64 = 10,
  u64 = 11,
  text = 12,  ///< A variable-length string (NC_STRING).
  other = 13  ///< Compounds, enums, opaque, ...: preserved in the file, but not interpreted.
};

/// Bytes of one element; 0 for text and other.
std::size_t model_type_bytes(ModelType type);
/// The dtype of a number type; empty for text_char, text and other.
std::optional<DType> model_dtype(ModelType type);
ModelType model_type(DType dtype);
/// The type's name in CDL: "float", "char", "string".
std::string_view model_type_name(ModelType type);

struct ModelAttribute {
  std::string name;
  ModelType type = ModelType::text_char;
  std::uint64_t n_values = 0;      ///< Number of characters (text_char), or else of elements.
  std::vector<std::byte> values;   ///< n_values elements in native byte order; not for text.
  std::vector<std::string> texts;  ///< Only for type text.
  bool operator==(const ModelAttribute&) const = default;
};

struct ModelDimension {
  std::string name;
  std::size_t group = 0;
  std::uint64_t length = 0;  ///< Unlimited: the current number of entries.
  bool unlimited = false;
  bool anonymous = false;  ///< Invented for a dataset without dimension scales.
  bool operator==(const ModelDimension&) const = default;
};

struct ModelVariable {
  std::string name;
  std::size_t group = 0;
  ModelType type = ModelType::f32;
  std::vector<std::size_t> dimensions;  ///< Positions in NetcdfModel::dimensions, slowest first.
  /// Includes _FillValue, but not the bookkeeping of HDF5 and netCDF-4 (DIMENSION_LIST, ...).
  std::vector<ModelAttribute> attributes;
  std::string dataset_path;  ///< Path in HDF5; differs from `name` if a dimension has that name.
  bool no_fill = false;      ///< Never-written elements are undefined (nc_def_var_fill(NOFILL)).
  /// Path under which the dataset was listed first, if this variable is a further hard link to the
  /// dataset or to a group above it. Empty for the first path and for new variables.
  std::string first_path = {};
  bool operator==(const ModelVariable&) const = default;
  const ModelAttribute* attribute(std::string_view attribute_name) const;
  /// The text of an attribute; "" if it does not exist or is not a text.
  std::string text_attribute(std::string_view attribute_name) const;
};

struct ModelGroup {
  std::string path;        ///< "/", "/g", "/g/h".
  std::size_t parent = 0;  ///< Position in NetcdfModel::groups; 0 for the root.
  std::vector<ModelAttribute> attributes;
  /// Path under which the group was listed first, if this is a further hard link to the group or to
  /// a group above it. Empty for the first path and for new groups.
  std::string first_path = {};
  bool operator==(const ModelGroup&) const = default;
};

struct NetcdfModel {
  std::vector<ModelGroup> groups{{"/", 0, {}}};  ///< Parents before children.
  std::vector<ModelDimension> dimensions;
  std::vector<ModelVariable> variables;
  bool netcdf4 = false;  ///< Written as netCDF-4 (by the netCDF-4 library, or by us).
  /// Contents of an opened file that could not be read, a line each, for the user.
  std::vector<std::string> remarks;
  bool operator==(const NetcdfModel&) const = default;

  /// Current lengths of a variable's dimensions.
  Shape shape_of(const ModelVariable& variable) const;
  /// Path of a variable: "/g/name".
  std::string path_of(const ModelVariable& variable) const;
  std::optional<std::size_t> find_variable(std::size_t group, std::string_view name) const;
  /// Find a dimension in this group or, like netCDF-4, in the groups above it.
  std::optional<std::size_t> find_dimension(std::size_t group, std::string_view name) const;
  std::optional<std::size_t> find_group(std::string_view path) const;
};

/// Check the rules of the netCDF-4 library, with its reasons: names (characters, trailing spaces, a
/// slash, duplicates in a group), types of attributes, type and count of _FillValue, valid
/// positions. Not collective. @error invalid_argument  names the object.
Status check_model(const NetcdfModel& model);

/// A text that is equal on two ranks exactly if their models are equal.
std::string model_text(const NetcdfModel& model);

/// The model of an open file (`hdf5_id`: its hid_t). Takes the HDF5 lock. Cost: O(objects); for
/// groups with several hard links, O(members) for each link.
/// Objects without a netCDF-4 equivalent (soft links, datasets of references, ...) are left out.
/// Unreadable attributes have type other, and a remark. @error corrupt
Result<NetcdfModel> read_netcdf_model(std::int64_t hdf5_id);

/// Storage of a variable's dataset that is to be created.
struct ModelStorage {
  Shape chunk_shape;  ///< Empty: contiguous (or a scalar).
  std::vector<FilterSpec> filters;
  std::uint64_t contiguous_address = 0;  ///< Address of the bytes; 0: HDF5 chooses one.
};

/// Lays a model out in an output file, in any number of steps. Rank 0 only; takes the HDF5 lock.
/// Nothing is visible before Hdf5File::commit().
class NetcdfLayout {
 public:
  /// Start a layout. create(): `file` is new. open(): `file` holds `model`, as read_netcdf_model()
  /// returned it.
  static Result<std::unique_ptr<NetcdfLayout>> create(Hdf5File& file);
  static Result<std::unique_ptr<NetcdfLayout>> open(Hdf5File& file, const NetcdfModel& model);
  virtual ~NetcdfLayout() = default;

  /// Change the file from its current model to `next`: create, change, rename and delete
  /// attributes, create groups and dimensions, rename dimensions and variables. Unlimited
  /// dimensions grow, together with the datasets of all created variables; they never shrink.
  /// create_variable() creates the dataset of a new variable and then writes its attributes.
  /// @error invalid_argument  an unsupported change: a fixed length, a type, an order
  virtual Status change(const NetcdfModel& next) = 0;
  /// Create a variable's dataset, with its attributes and dimension scales.
  /// @error already_exists, unsupported
  virtual Status create_variable(std::size_t variable, const ModelStorage& storage) = 0;
  virtual bool has_dataset(std::size_t variable) const = 0;
  /// Open a variable's dataset. The layout owns the id, which stays open at least until the next
  /// call of create_variable(), open_dataset() or prepare_commit(). @error internal
  virtual Result<std::int64_t> open_dataset(std::size_t variable) = 0;
  /// Path of a variable's dataset, even before the dataset exists.
  virtual std::string dataset_path(std::size_t variable) const = 0;
  /// Order links and attach scales; all variables must have datasets. Call before each commit.
  virtual Status prepare_commit() = 0;
  virtual const NetcdfModel& model() const = 0;
};

// --- Reserved names of netCDF-4, and the paths of its objects in HDF5.

/// Start of the scale name of a dimension that has no variable.
inline constexpr std::string_view kDimensionWithoutVariableText =
    "This is a netCDF dimension but not a netCDF variable";
/// Prefix for the dataset of a variable whose name a dimension's scale already has.
inline constexpr std::string_view kNonCoordinatePrefix = "_nc4_non_coord_";

/// True if netCDF-4 or HDF5's dimension scales reserve an attribute name.
bool is_reserved_attribute(std::string_view name);

/// The dimension whose coordinate variable this is: same name, same group, and the variable's first
/// dimension. The dataset of a coordinate variable is the dimension's scale.
std::optional<std::size_t> coordinate_of(const NetcdfModel& model, const ModelVariable& variable);

/// Path that netCDF-4 uses for a variable's dataset.
std::string netcdf4_dataset_path(const NetcdfModel& model, const ModelVariable& variable);

/// Check a name by netCDF's rules: 1 to 256 bytes of UTF-8 without control characters or '/';
/// starts with a letter, digit, underscore or non-ASCII character; no space at the end.
/// @error invalid_argument  the violated rule; the caller adds the name
Status check_netcdf_name(std::string_view name);

/// check_model() for the differences from `old`: an opened file may hold names that netCDF would
/// refuse, and must remain extendable. nullptr: check everything.
Status check_model_change(const NetcdfModel& model, const NetcdfModel* old);

// --- Values of never-written elements of a netCDF-4 variable.

/// A variable's fill value in HDF5's form: its _FillValue, or else netCDF's default for its type
/// (NC_FILL_BYTE and similar, netcdf.h).
class FillValue {
 public:
  explicit FillValue(const ModelVariable& variable);
  explicit FillValue(ModelType type) { set_default(type); }
  FillValue(const FillValue&) = delete;
  FillValue& operator=(const FillValue&) = delete;
  /// One element in the variable's type in memory. For a text: a pointer to it, valid as long as
  /// this object. Empty: the type has no fill value.
  std::span<const std::byte> bytes() const { return std::span(element_).first(n_bytes_); }

 private:
  bool set_own(const ModelVariable& variable);
  void set_default(ModelType type);
  template <class T>
  void set(T value);

  std::array<std::byte, 8> element_ = {};
  std::size_t n_bytes_ = 0;
  std::string text_;
};

// --- Serialisation of a netCDF-4 data model, to send it from rank 0 to other ranks.

/// Serialise a complete model, and back. Pure. Cost: O(objects and attribute bytes).
Bytes pack_model(const NetcdfModel& model);
NetcdfModel unpack_model(std::span<const std::byte> bytes);

}  // namespace tailrace
