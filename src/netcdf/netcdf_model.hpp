// NetcdfModel: the netCDF-4 data model of a file, as plain values.
//
// Groups, dimensions, variables and attributes, by number, in creation order. Read from any HDF5
// file (a dataset without dimension scales gets anonymous dimensions, as the netCDF-4 library gives
// it), and laid out in HDF5 as the netCDF-4 library does (docs/netcdf.md): dimension scales,
// coordinate variables, _Netcdf4Dimid, _Netcdf4Coordinates, _NCProperties, creation order.
// Positions in the lists are stable: nothing but attributes can be deleted.

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

/// Element types of netCDF-4 variables and attributes; numbers as in nc_type.
enum class ModelType : std::uint8_t {
  i8 = 1,
  text_char = 2,  ///< One byte of text (NC_CHAR); HDF5: string of one byte.
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
  other = 13  ///< Compounds, enums, opaque, ...: kept in the file, values not understood here.
};

/// Bytes of one element; 0 for text and other.
std::size_t model_type_bytes(ModelType type);
/// The dtype of a number type; none for text_char, text and other.
std::optional<DType> model_dtype(ModelType type);
ModelType model_type(DType dtype);
/// "float", "char", "string": as CDL spells it.
std::string_view model_type_name(ModelType type);

struct ModelAttribute {
  std::string name;
  ModelType type = ModelType::text_char;
  std::uint64_t n_values = 0;      ///< Characters of text_char, else elements.
  std::vector<std::byte> values;   ///< n_values elements in native byte order; not for text.
  std::vector<std::string> texts;  ///< Type text only.
  bool operator==(const ModelAttribute&) const = default;
};

struct ModelDimension {
  std::string name;
  std::size_t group = 0;
  std::uint64_t length = 0;  ///< Unlimited: the number of entries now.
  bool unlimited = false;
  bool anonymous = false;  ///< Made up for a dataset without dimension scales.
  bool operator==(const ModelDimension&) const = default;
};

struct ModelVariable {
  std::string name;
  std::size_t group = 0;
  ModelType type = ModelType::f32;
  std::vector<std::size_t> dimensions;     ///< Positions in NetcdfModel::dimensions, slowest first.
  std::vector<ModelAttribute> attributes;  ///< _FillValue among them; bookkeeping of HDF5 and
                                           ///< netCDF-4 (DIMENSION_LIST, ...) is not.
  std::string dataset_path;  ///< In HDF5; differs from the name where a dimension has that name.
  bool no_fill = false;      ///< Never-written elements are undefined (nc_def_var_fill(NOFILL)).
  /// The path by which the dataset was listed first, if this is a further hard link to it or to a
  /// group around it. Empty for the first path and for new variables.
  std::string first_path = {};
  bool operator==(const ModelVariable&) const = default;
  const ModelAttribute* attribute(std::string_view attribute_name) const;
  /// The text of an attribute; "" if there is none, or no text.
  std::string text_attribute(std::string_view attribute_name) const;
};

struct ModelGroup {
  std::string path;        ///< "/", "/g", "/g/h".
  std::size_t parent = 0;  ///< The root's: 0.
  std::vector<ModelAttribute> attributes;
  /// The path by which the group was listed first, if this is a further hard link to it or to a
  /// group above it. Empty for the first path and for new groups.
  std::string first_path = {};
  bool operator==(const ModelGroup&) const = default;
};

struct NetcdfModel {
  std::vector<ModelGroup> groups{{"/", 0, {}}};  ///< Parents before children.
  std::vector<ModelDimension> dimensions;
  std::vector<ModelVariable> variables;
  bool netcdf4 = false;  ///< Written as netCDF-4 (by that library, or by us).
  /// What an opened file holds that could not be read, a line each: for the user.
  std::vector<std::string> remarks;
  bool operator==(const NetcdfModel&) const = default;

  /// Lengths of a variable's dimensions now.
  Shape shape_of(const ModelVariable& variable) const;
  /// "/g/name".
  std::string path_of(const ModelVariable& variable) const;
  std::optional<std::size_t> find_variable(std::size_t group, std::string_view name) const;
  /// In this group or, as netCDF-4 looks it up, those above it.
  std::optional<std::size_t> find_dimension(std::size_t group, std::string_view name) const;
  std::optional<std::size_t> find_group(std::string_view path) const;
};

/// What the netCDF-4 library would accept, with its reasons: names (characters, trailing spaces, a
/// slash, duplicates in a group), types of attributes, _FillValue's type and count, positions that
/// exist. Not collective. @error invalid_argument  names the object.
Status check_model(const NetcdfModel& model);

/// A text that is equal on two ranks exactly if their models are.
std::string model_text(const NetcdfModel& model);

/// The model of an open file (`hdf5_id`: its hid_t). Takes the HDF5 lock. Cost: O(objects), and of
/// groups with several hard links O(members) for each link.
/// Objects that netCDF-4 has no word for (soft links, datasets of references, ...) are left out.
/// Attributes that cannot be read are of type other, with a remark. @error corrupt
Result<NetcdfModel> read_netcdf_model(std::int64_t hdf5_id);

/// How a variable's dataset is stored, for those that are created.
struct ModelStorage {
  Shape chunk_shape;  ///< Empty: contiguous (or a scalar).
  std::vector<FilterSpec> filters;
  std::uint64_t contiguous_address = 0;  ///< Where the bytes lie; 0: HDF5 finds a place.
};

/// Lays a model out in an output file, in as many steps as its owner likes. Rank 0 only; takes the
/// HDF5 lock. Nothing is visible before Hdf5File::commit().
class NetcdfLayout {
 public:
  /// `file` is new, or holds `model` (as read_netcdf_model() found it). `library` goes into
  /// _NCProperties of a new file.
  static Result<std::unique_ptr<NetcdfLayout>> create(Hdf5File& file);
  static Result<std::unique_ptr<NetcdfLayout>> open(Hdf5File& file, const NetcdfModel& model);
  virtual ~NetcdfLayout() = default;

  /// Bring the file from the model it has to `next`: groups, dimensions and attributes are created,
  /// changed, renamed and deleted; unlimited dimensions grow, and with them the datasets of all
  /// variables that are created (never shrink). Variables that have no dataset yet get theirs by
  /// create_variable; their attributes wait for it. Variables may be renamed.
  /// @error invalid_argument  what cannot be changed: a fixed length, a type, an order.
  virtual Status change(const NetcdfModel& next) = 0;
  /// Create a variable's dataset, with its attributes and dimension scales.
  /// @error already_exists, unsupported
  virtual Status create_variable(std::size_t variable, const ModelStorage& storage) = 0;
  virtual bool has_dataset(std::size_t variable) const = 0;
  /// Its dataset, opened. Stays the layout's, and open until the next call of create_variable(),
  /// open_dataset() or settle() at least. @error internal
  virtual Result<std::int64_t> open_dataset(std::size_t variable) = 0;
  /// The path of its dataset; also before it exists.
  virtual std::string dataset_path(std::size_t variable) const = 0;
  /// All variables have datasets: order of links, scales attached. Again before each commit.
  virtual Status settle() = 0;
  virtual const NetcdfModel& model() const = 0;
};

// --- Names that netCDF-4 gives a meaning of its own, and where its objects lie in HDF5.

/// Start of the scale name of a dimension that has no variable.
inline constexpr std::string_view dimension_without_variable_text =
    "This is a netCDF dimension but not a netCDF variable";
/// Put before the name of a variable whose name a dimension's scale has already.
inline constexpr std::string_view non_coordinate_prefix = "_nc4_non_coord_";

/// Whether netCDF-4 or HDF5's dimension scales keep an attribute name for themselves.
bool is_reserved_attribute(std::string_view name);

/// The dimension whose coordinate variable this is: of its name, in its group, its first. Such a
/// variable's dataset is the dimension's scale.
std::optional<std::size_t> coordinate_of(const NetcdfModel& model, const ModelVariable& variable);

/// Where netCDF-4 puts a variable's dataset.
std::string netcdf4_dataset_path(const NetcdfModel& model, const ModelVariable& variable);

/// Whether netCDF takes the name: 1 to 256 bytes of UTF-8 without control characters or '/', first
/// a letter, digit, underscore or beyond ASCII, no space at the end.
/// @error invalid_argument  says which rule; the name is left to the caller to put before it.
Status check_netcdf_name(std::string_view name);

/// check_model() for what differs from `old`: an opened file may hold names that netCDF would not
/// take, and can be added to all the same. nullptr: check everything.
Status check_model_change(const NetcdfModel& model, const NetcdfModel* old);

// --- What never-written elements of a netCDF-4 variable read as.

/// A variable's fill value as HDF5 takes it: its _FillValue, else netCDF's default of its type
/// (NC_FILL_BYTE and its like, netcdf.h).
class FillValue {
 public:
  explicit FillValue(const ModelVariable& variable);
  explicit FillValue(ModelType type) { set_default(type); }
  FillValue(const FillValue&) = delete;
  FillValue& operator=(const FillValue&) = delete;
  /// One element of the variable's type in memory (of a text: a pointer to it, valid as long as
  /// this object). Empty: the type has none.
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

// --- A netCDF-4 data model on its way from rank 0 to the others.

/// All of a model as bytes, and back. Pure. Cost: O(objects and attribute bytes).
Bytes pack_model(const NetcdfModel& model);
NetcdfModel unpack_model(std::span<const std::byte> bytes);

}  // namespace tailrace
