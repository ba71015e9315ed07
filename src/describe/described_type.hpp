// Datatypes of an HDF5 file, without HDF5: their properties, and values as texts.
//
// Used by verify (structure_check.hpp). Pure. A text states its value exactly: two values of the
// same class are equal if and only if their texts are equal, whatever byte order each file uses.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tailrace {

struct DescribedType {
  enum class Kind : std::uint8_t {
    integer,
    floating,
    fixed_text,
    variable_text,
    object_reference,
    region_reference,
    enumeration,
    compound,
    list,   ///< HDF5's VLEN; one part.
    array,  ///< One part.
    bytes   ///< Opaque, bit fields, time, and references of other kinds.
  };
  struct Part {
    std::string label;  ///< "member \"x\""; "element"; "base type".
    std::size_t offset = 0;
    std::size_t n = 1;                ///< Elements of an array.
    std::vector<DescribedType> type;  ///< Exactly one element; a vector because DescribedType is
                                      ///< incomplete here.
    const DescribedType& of() const { return type.front(); }
  };
  Kind kind = Kind::bytes;
  std::size_t n_bytes = 0;
  bool big_endian = false;
  bool is_signed = false;
  /// True if the bits are those of an ordinary integer, or of IEEE's single or double precision.
  bool ordinary = false;
  /// Properties that HDF5 reports for this level, such as ("byte order", "big-endian"). The order
  /// is fixed for each class.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<Part> parts;
  /// Enumerations only: names, and the bytes of their values.
  std::vector<std::pair<std::string, std::vector<std::byte>>> names;
};

/// Fact that names the file object which a type is; "none" for a type that is not an object.
inline constexpr const char* kNamedTypeFact = "named type";
inline constexpr const char* kByteOrderFact = "byte order";

/// A difference of two types.
struct TypeDifference {
  std::string what;  ///< "byte order", "byte order of member \"x\""; empty: the types are equal.
  std::string original;
  std::string copy;
  bool only_byte_order = false;  ///< Only the byte order of the outermost level differs.
};
TypeDifference difference_of_types(const DescribedType& original, const DescribedType& copy);

/// True if equal values have equal bytes, and no byte is padding.
bool is_its_bytes(const DescribedType& type);

/// Names the targets of references.
class ReferenceNames {
 public:
  virtual ~ReferenceNames() = default;
  /// "/group/dataset"; "null" for a null reference; "nothing" for a reference without a target.
  /// @param reference  has its type's length, which may be shorter than hobj_ref_t
  virtual std::string object(std::span<const std::byte> reference) = 0;
  /// object() and the selection: "/dataset [0, 2]..[3, 4]".
  virtual std::string region(std::span<const std::byte> reference) = 0;
};

/// Append the text of one value in HDF5's memory form: "3", "-1.5", "\"text\"", "{1, 2}", "-> /a".
/// Follows the pointers of lists and of texts of variable length.
void add_value_text(const DescribedType& type, const std::byte* value, ReferenceNames& names,
                    std::string& text);

}  // namespace tailrace
