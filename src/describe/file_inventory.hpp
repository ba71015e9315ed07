// What two HDF5 files hold besides the values of their fields, and the differences. Pure: HDF5 is
// read by hdf5_inventory.hpp, and structure_check.hpp puts both together for verify.
//
// A difference fails if a program that reads the original would miss it in the copy: an object, a
// link, a type, a fill value, an order, an attribute. How chunks are stored may change with the
// codec: such differences are listed and do not fail.

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
  std::string path;    ///< Of the object or link; "/" for what concerns the file.
  std::string aspect;  ///< "missing", "only in the copy", "type", "attribute", "link order", ...
  std::string text;    ///< A sentence that names the object.
  bool fails = true;
};

struct StructureFindings {
  /// Differences of one aspect that are stored; all are counted.
  static constexpr std::uint64_t most_of_aspect = 100;
  struct Count {
    std::uint64_t n_failing = 0;
    std::uint64_t n_listed = 0;
  };
  std::vector<StructureDifference> differences;
  std::map<std::string, Count> counts;  ///< By aspect.
  std::uint64_t n_objects = 0;          ///< Compared pairs.
  std::uint64_t n_links = 0;
  std::uint64_t n_attributes = 0;
  std::uint64_t n_datasets = 0;         ///< Whose values were compared, besides the fields'.
  std::uint64_t n_ignored_objects = 0;  ///< Links of either file that globs leave out.
  std::uint64_t n_ignored_attributes = 0;

  void add(StructureDifference difference);
  void merge(const StructureFindings& other);
  std::uint64_t n_failing() const;
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
  std::size_t object = 0;  ///< Of a hard link: index into the inventory's objects.
  std::string target;      ///< Of a soft link, or "FILE:PATH" of an external one.
};

struct InventoryObject {
  ObjectKind kind = ObjectKind::group;
  std::string path;                  ///< By which the walk met it first.
  bool ordered = false;              ///< A group that tracks the order of its links.
  std::vector<InventoryLink> links;  ///< Of a group, in the order that a reader gets.
};

/// All objects of a file, each once; the root is the first.
struct FileInventory {
  std::vector<InventoryObject> objects;
};

/// Objects that a path leads to in both files.
struct ObjectPair {
  std::size_t original = 0;
  std::size_t copy = 0;
  std::string path;  ///< The same names lead to both.
};

struct InventoryRules {
  /// False for paths that the comparison leaves out; the objects below them are compared.
  std::function<bool(const std::string& path)> wanted;
  std::function<bool(const std::string& path)> ignored;  ///< Counted, unlike those not wanted.
  /// True for an object of the copy that a request may have added (its index).
  std::function<bool(std::size_t)> may_be_added;
};

/// Pair the objects of both files along their links and compare the links: what one side lacks,
/// kinds, targets, order, and which hard links lead to one object.
std::vector<ObjectPair> pair_objects(const FileInventory& original, const FileInventory& copy,
                                     const InventoryRules& rules, StructureFindings& findings);

// --- One object.

/// A property as text.
struct DescribedFact {
  const char* aspect = "";
  std::string value;
  bool fails = true;         ///< False: a codec or its storage may change it.
  std::string meaning = {};  ///< Values of one meaning are the same; empty: only equal values are.
};

struct DescribedAttribute {
  enum class Meaning : std::uint8_t {
    plain,     ///< Type, shape and values count.
    at_least,  ///< A set of texts, of which the copy may have more; the type is HDF5's own affair.
    present    ///< The value is a number of the writer's own.
  };
  std::string name;
  Meaning meaning = Meaning::plain;
  DescribedType type;
  std::string shape;
  std::vector<std::string> values;  ///< One text per element.
  std::string unreadable;           ///< HDF5's reason; empty: it was read.
};

struct DescribedObject {
  ObjectKind kind = ObjectKind::group;
  std::optional<DescribedType> type;
  std::vector<DescribedFact> facts;
  bool attributes_ordered = false;
  std::vector<DescribedAttribute> attributes;  ///< In the order that a reader gets.
};

struct ObjectRules {
  bool lossy = false;            ///< The values may change: so may their byte order.
  bool follow_external = false;  ///< Values of other files may have been taken in.
  std::function<bool(const std::string& name)> ignored_attribute;
};

/// Compare two objects of the same kind.
void compare_described(const std::string& path, const DescribedObject& original,
                       const DescribedObject& copy, const ObjectRules& rules,
                       StructureFindings& findings);

/// "dataset \"/a\"".
std::string object_text(ObjectKind kind, const std::string& path);
/// The first characters of a long text.
std::string shortened_text(const std::string& text);

inline constexpr const char* virtual_sources_aspect = "virtual sources";
inline constexpr const char* external_files_aspect = "external files";

/// Attributes that dimension scales and netCDF-4 keep for themselves.
bool is_dimension_attribute(std::string_view name);
/// NetCDF-4's name for a dimension without a variable begins so, and ends in its length.
inline constexpr std::string_view dimension_without_variable =
    "This is a netCDF dimension but not a netCDF variable";

}  // namespace tailrace
