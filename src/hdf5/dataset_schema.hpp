// What a file says of one dataset: type, extents, fill value, storage; as values without HDF5.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/codec.hpp"
#include "core/encoding_notes.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The root group's attribute under attributes=one (docs/format.md).
inline constexpr const char* file_note_attribute = "tailrace_file";

// --- StoredDataset: one dataset as it stands in a file, whatever the format.
//
// Every walk over a file fills this one (describe/hdf5_catalog.hpp, concat_input.hpp, the readers
// of netCDF classic, npy and raw), and readers, verbs and concatenation hold it. Element types
// travel between ranks as HDF5 encodes them (H5Tencode), so that every type is kept exactly and
// whoever only moves bytes need not know what they mean. Files of a concatenation agree on each
// dataset's path, element type, inner extents and fill value; they may differ in rows (the first
// extent) and in how they store them.

/// A number by the name that a file has for it.
struct NamedNumber {
  std::string name;
  double value = 0;
};

/// Written bytes: where they lie and how many they are.
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
};

/// How a dataset's elements are stored.
struct StoredForm {
  enum class Kind : std::uint8_t { nothing, compact, contiguous, chunked };
  Kind kind = Kind::nothing;
  Shape chunk_shape;                ///< Kind chunked; else empty.
  std::vector<FilterSpec> filters;  ///< As stored: final_client_data, flags and name are filled in.

  /// Whether chunks of the two mean the same bytes.
  bool same_as(const StoredForm& other) const;
};

/// When HDF5 takes space for a dataset's elements and writes fill values into it; HDF5's numbers.
struct CreationTimes {
  std::uint8_t allocation = 0;  ///< H5D_alloc_time_t; 0: the layout's default.
  std::uint8_t fill = 2;        ///< H5D_fill_time_t; 2: if a fill value is set.
  bool no_fill_value = false;   ///< The fill value is undefined, not HDF5's zeros.
};

struct StoredDataset {
  std::string path;       ///< Absolute, "/group/name"; of npy and raw files: "/" + the file's stem.
  Bytes type;             ///< H5Tencode of the file's type; empty: the file is not HDF5.
  std::string type_text;  ///< For messages: "f32", "string of 16 bytes", "compound of 3 members".
  std::uint64_t element_bytes = 0;  ///< Of one element in the file.
  /// Numbers: what they are read as, the smallest dtype that holds them.
  std::optional<DType> dtype;
  bool plain_number = false;  ///< They are that dtype, in either byte order.
  bool swapped = false;       ///< ... and not in this machine's.
  bool strings = false;       ///< Elements are texts, of fixed or variable length.
  /// Elements are their bytes. False: they point to data elsewhere in the file (variable-length
  /// strings and sequences, references), which only HDF5 can move.
  bool by_value = true;
  /// False: a scalar or null dataset, which a concatenation takes over from the first file as it
  /// is.
  bool appended = true;

  Shape shape;              ///< [0]: rows in this file. To readers, {0} is a null dataspace, too.
  Shape max_shape;          ///< Per dimension; UINT64_MAX: unlimited. Empty: like shape.
  bool extendable = false;  ///< The first dimension is unlimited.

  StoredForm storage;
  Extent contiguous;         ///< Kind contiguous: where; encoded_bytes 0: never written.
  bool plain_edges = false;  ///< Chunks that reach over the shape's end have no filters.
  bool foreign = false;      ///< The data lie in other files (external, virtual).
  Bytes fill_value;          ///< element_bytes, as the user has set it; empty: HDF5's own zeros.
  std::optional<double> fill_number;  ///< The same as a number, of numbers.

  std::string foreign_file;  ///< The first of these, by the name that the file has; not sent.

  /// guard_attribute, as who adds values to a dataset must know it; does not travel.
  std::string guards_text;

  // What only who reads fields as numbers asks for (InputFile); it does not travel.
  bool field = false;         ///< An array that a Writer creates: of plain numbers.
  bool is_dimension = false;  ///< No field: netCDF-4's dimension without a variable.
  bool may_be_bytes = false;  ///< No field, but fields can hold its elements as bytes.
  /// Made by as_bytes(): dtype is u8, and the last dimension of shape, max_shape and the chunk
  /// shape counts the bytes of an element. type, type_text and fill_value are those of the
  /// elements.
  bool bytes_axis = false;
  std::optional<double> missing_value;  ///< _FillValue or missing_value, else a fill that is not 0.
  bool named_type = false;              ///< Of a type that is an object of the file,
  std::string type_path;                ///< by this path; empty: no link leads to it.
  CreationTimes times;                  ///< These two are told of all datasets.
  bool own_attribute_form = false;  ///< Attributes become dense at a number that is not HDF5's own.
  bool coordinate = false;          ///< A dimension scale or coordinate variable: kept lossless.
  std::uint64_t stored_bytes = 0;   ///< That the file spends on it.
  /// Chunks in the file.
  std::uint64_t n_chunks_there = 0;

  std::uint64_t n_rows() const { return shape.empty() ? 0 : shape[0]; }
  /// Bytes of one row.
  std::uint64_t row_bytes() const;
  /// Bytes of one element in memory: of its dtype, or as it stands in the file.
  std::uint64_t value_bytes() const { return dtype ? dtype_bytes(*dtype) : element_bytes; }
  bool chunked() const { return storage.kind == StoredForm::Kind::chunked; }
  /// Only HDF5 can read it: data in other files or in the header, numbers of another size or
  /// precision than a dtype's, elements that point elsewhere.
  bool by_hdf5() const {
    return foreign || !by_value || (dtype && !plain_number) ||
           storage.kind == StoredForm::Kind::compact;
  }
  /// Extent up to which dimension d may grow; UINT64_MAX: without limit.
  std::uint64_t limit(std::size_t d) const {
    return d < max_shape.size() ? max_shape[d] : shape[d];
  }
  /// True if a dimension may grow, up to a limit or without one.
  bool grows() const;
  bool unlimited(std::size_t d) const { return d < max_shape.size() && max_shape[d] == UINT64_MAX; }
  /// Bit d: dimension d > 0 is unlimited.
  std::uint64_t more_unlimited() const;
};

/// A dataset of elements of a fixed size as one of bytes, with a dimension more.
StoredDataset as_bytes(StoredDataset dataset);

/// What to do about values that a file says lie in other files (external storage, the sources of
/// virtual datasets): the names are the file's, which may come from anywhere, and the files any
/// that this process may read. So only who knows the file has them read. External links are never
/// followed.
enum class OtherFiles : std::uint8_t { leave_out, read };

/// "dataset "/x": its values lie in other files ("raw.bin")", of a foreign one.
std::string values_elsewhere_text(const StoredDataset& dataset);

/// From here on a dataset may be too large to go through for what is in it.
inline constexpr std::uint64_t hollow_bytes_min = std::uint64_t{1} << 38;

/// For who goes through all values of a dataset: a file of some kilobytes can promise more of them
/// than anybody can write, by extents alone. Needs n_chunks_there.
/// @error unsupported  hollow_bytes_min of values and more, not one chunk in a thousand written.
Status check_not_hollow(const StoredDataset& dataset);

/// A form as bytes in a message, and back; of a wary reader's damaged bytes whatever was there.
void pack_form(ByteWriter& writer, const StoredForm& form);
StoredForm unpack_form(ByteReader& reader);

/// The datasets of one file as bytes, to be sent to other ranks, and back.
Bytes pack_schema(std::span<const StoredDataset> datasets);
/// @error corrupt
Result<std::vector<StoredDataset>> unpack_schema(std::span<const std::byte> bytes);

/// What keeps `datasets` (a file's) from being appended to `schema` (the first file's): a line per
/// conflict, each naming the dataset's path and both sides ("dataset "/g/d": f64, but f32 in the
/// first file", "... is missing", "... is not in the first file"). Empty: nothing. Rows and storage
/// may differ. Order does not matter. Cost: O(datasets).
std::vector<std::string> schema_conflicts(std::span<const StoredDataset> schema,
                                          std::span<const StoredDataset> datasets);

// --- Number types as HDF5 encodes them (H5Tencode): how element types travel between ranks.

/// This machine's type of `dtype`, encoded. Takes the HDF5 lock.
Bytes encoded_type(DType dtype);

/// The dtype whose values are stored exactly as this machine has them; none for everything else
/// (other byte orders, enums, strings, compounds, ...). Takes the HDF5 lock.
std::optional<DType> decoded_type(const Bytes& type);

// --- What an element type of fixed size is made of, as text for whoever names types by other words
// (NumPy's, in the Python package). HDF5's own encoding of the type goes in (H5Tencode), as it
// travels with every dataset; nothing is read from the file.

/// The type as JSON, a kind in each object; the byte order is the file's:
///   {"kind": "number", "numpy": "<f4"}            also "u2", "V5" (opaque, bit fields: their
///   bytes)
///   {"kind": "enum", "numpy": "|i1", "values": [["red", 0], ...]}
///   {"kind": "string", "bytes": 6}                fixed length, within compounds
///   {"kind": "array", "shape": [2, 3], "of": ...}
///   {"kind": "compound", "bytes": 16, "members": [{"name": "id", "at": 0, "of": ...}, ...]}
/// Empty for what holds, at any depth, elements that lie elsewhere in the file (variable length,
/// references) or numbers of formats that NumPy lacks. Not collective. Takes the HDF5 lock.
std::string describe_type(const Bytes& type);

}  // namespace tailrace
