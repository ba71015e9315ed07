// Contents of two HDF5 files except the values of their fields, and the differences. Pure:
// hdf5_inventory.hpp reads HDF5, and structure_check.hpp combines both for verify.
//
// A difference fails if a program that reads the original would miss something in the copy: an
// object, a link, a type, a fill value, an order, an attribute. The storage of chunks may change
// with the codec: such differences are listed and do not fail.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/described_type.hpp"

namespace tailrace {

// --- Findings.

struct StructureDifference {
  std::string path;    ///< Path of the object or link; "/" for the file.
  std::string aspect;  ///< "missing", "only in the copy", "type", "attribute", "link order", ...
  std::string text;    ///< A sentence that names the object.
  bool fails = true;
};

struct StructureFindings {
  /// Limit of stored differences per aspect; all are counted.
  static constexpr std::uint64_t most_of_aspect = 100;
  struct Count {
    std::uint64_t n_failing = 0;
    std::uint64_t n_listed = 0;
  };
  std::vector<StructureDifference> differences;
  std::map<std::string, Count> counts;  ///< Counts by aspect.
  std::uint64_t n_objects = 0;          ///< Number of compared pairs.
  std::uint64_t n_links = 0;
  std::uint64_t n_attributes = 0;
  std::uint64_t n_datasets = 0;         ///< Datasets whose values were compared, without the
                                        ///< fields.
  std::uint64_t n_ignored_objects = 0;  ///< Links of either file that globs exclude.
  std::uint64_t n_ignored_attributes = 0;

  void add(StructureDifference difference);
  void merge(const StructureFindings& other);
  std::uint64_t n_failing() const;
  /// True if a difference fails that may change or hide a value of the original.
  bool fails_in_values() const;
  /// True if nothing was compared.
  bool empty() const { return n_objects + n_links + differences.size() == 0; }
};

// --- Objects and links.

enum class ObjectKind : std::uint8_t { group, dataset, named_type, other };
const char* object_kind_text(ObjectKind kind);

struct InventoryLink {
  enum class Kind : std::uint8_t { hard, soft, external, other };
  std::string name;
  Kind kind = Kind::hard;
  std::size_t object = 0;  ///< Hard link: index into the inventory's objects.
  std::string target;      ///< Soft link: its path. External link: "FILE:PATH".
};

struct InventoryObject {
  ObjectKind kind = ObjectKind::group;
  std::string path;                  ///< First path by which the walk reached it.
  bool ordered = false;              ///< The group tracks the order of its links.
  std::vector<InventoryLink> links;  ///< Links of a group, in the order that a reader sees.
};

/// All objects of a file, each once; the first is the root group.
struct FileInventory {
  std::vector<InventoryObject> objects;
};

/// A pair of objects that one path reaches in both files.
struct ObjectPair {
  std::size_t original = 0;
  std::size_t copy = 0;
  std::string path;  ///< Path that leads to both.
};

struct InventoryRules {
  /// False for paths that the comparison excludes. The objects below them are still compared.
  std::function<bool(const std::string& path)> wanted;
  std::function<bool(const std::string& path)> ignored;  ///< Excluded and counted; unwanted paths
                                                         ///< are not counted.
  /// True for an object of the copy (by index) that a request may have added.
  std::function<bool(std::size_t)> may_be_added;
  bool other_writer = false;  ///< See ObjectRules.
};

/// Pair the objects of both files along their links and compare the links: missing and added ones,
/// kinds, targets, order, and which hard links share an object.
std::vector<ObjectPair> pair_objects(const FileInventory& original, const FileInventory& copy,
                                     const InventoryRules& rules, StructureFindings& findings);

// --- One object.

/// Property of an object, as text.
struct DescribedFact {
  const char* aspect = "";
  std::string value;
  bool fails = true;         ///< False: a codec or its storage may change it.
  std::string meaning = {};  ///< Facts with the same nonempty meaning are equal; empty: only the
                             ///< values count.
};

struct DescribedAttribute {
  enum class Meaning : std::uint8_t {
    plain,     ///< Type, shape and values are compared.
    at_least,  ///< A set of texts. The copy may contain more; the type is up to HDF5.
    present    ///< The value is a number that each writer chooses.
  };
  std::string name;
  Meaning meaning = Meaning::plain;
  DescribedType type;
  std::string shape;
  std::vector<std::string> values;  ///< One text per element.
  std::string unreadable;           ///< HDF5's error text; empty: the attribute was read.
};

struct DescribedObject {
  ObjectKind kind = ObjectKind::group;
  std::optional<DescribedType> type;
  std::vector<DescribedFact> facts;
  bool attributes_ordered = false;
  std::vector<DescribedAttribute> attributes;  ///< Attributes in the order that a reader sees.
};

struct ObjectRules {
  bool lossy = false;            ///< Values may change, and so may their byte order.
  bool follow_external = false;  ///< The copy may contain values that the original has in other
                                 ///< files.
  /// Two netCDF libraries wrote the files. Each library chooses orders, the form of texts, and the
  /// fill value of a variable without _FillValue: such differences are listed and do not fail.
  bool other_writer = false;
  std::function<bool(const std::string& name)> ignored_attribute;
};

/// Compare two objects of the same kind.
void compare_described(const std::string& path, const DescribedObject& original,
                       const DescribedObject& copy, const ObjectRules& rules,
                       StructureFindings& findings);

/// Kind and path in a message: "dataset \"/a\"".
std::string object_text(ObjectKind kind, const std::string& path);
/// The beginning of a long text, for messages.
std::string shortened_text(const std::string& text);

inline constexpr const char* kVirtualSourcesAspect = "virtual sources";
inline constexpr const char* kExternalFilesAspect = "external files";
inline constexpr const char* kFillValueAspect = "fill value";
/// Value of that fact if the creation property list sets no fill value.
inline constexpr std::string_view kDefaultFill = "HDF5's default";

/// True for attributes that dimension scales and netCDF-4 reserve.
bool is_dimension_attribute(std::string_view name);
/// Start of the name that netCDF-4 gives a dimension without a variable; the name ends in its
/// length.
inline constexpr std::string_view dimension_without_variable =
    "This is a netCDF dimension but not a netCDF variable";

}  // namespace tailrace
