// Description of one stored dataset: type, extents, fill value, storage. Plain values, no HDF5 ids.

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
inline constexpr const char* kFileNoteAttribute = "tailrace_file";

// --- StoredDataset: one dataset as stored in a file of any format.
//
// Every walk over a file fills this struct (describe/hdf5_catalog.hpp, concat_input.hpp, the
// readers of netCDF classic, npy and raw). Readers, verbs and concatenation store it. Ranks
// exchange element types in HDF5's encoding (H5Tencode): every type is preserved exactly, and code
// that only moves bytes need not interpret them. The input files of a concatenation agree on each
// dataset's path, element type, inner extents and fill value. They may differ in the number of rows
// (the first extent) and in storage.

/// A number and its name in the file.
struct NamedNumber {
  std::string name;
  double value = 0;
};

/// Location and length of written bytes.
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
};

/// How a dataset's elements are stored.
struct StoredForm {
  enum class Kind : std::uint8_t { nothing, compact, contiguous, chunked };
  Kind kind = Kind::nothing;
  Shape chunk_shape;                ///< Kind chunked; else empty.
  std::vector<FilterSpec> filters;  ///< Stored filters, with final_client_data, flags and name.

  /// True if chunks of both forms decode alike.
  bool same_as(const StoredForm& other) const;
};

/// When HDF5 allocates space for a dataset's elements and writes fill values; HDF5's enum values.
struct CreationTimes {
  std::uint8_t allocation = 0;  ///< H5D_alloc_time_t; 0: the layout's default.
  std::uint8_t fill = 2;        ///< H5D_fill_time_t; 2: only if a fill value is set.
  bool no_fill_value = false;   ///< The fill value is undefined, rather than HDF5's zeros.
};

struct StoredDataset {
  std::string path;  ///< Absolute, "/group/name"; in npy and raw files "/" + the file's stem.
  Bytes type;        ///< H5Tencode of the file's type; empty: the file is not HDF5.
  /// Text for messages: "f32", "string of 16 bytes", "compound of 3 members".
  std::string type_text;
  std::uint64_t element_bytes = 0;  ///< Size of one element in the file.
  /// Numbers only: the type to read them as, the smallest dtype that holds them.
  std::optional<DType> dtype;
  bool plain_number = false;  ///< Stored exactly as that dtype, in either byte order.
  bool swapped = false;       ///< ... and not in this machine's byte order.
  bool strings = false;       ///< Elements are strings, of fixed or variable length.
  /// Elements contain all of their data. False: they point to data elsewhere in the file
  /// (variable-length strings and sequences, references), which only HDF5 can move.
  bool by_value = true;
  /// False: a scalar or null dataset, which a concatenation copies from the first file.
  bool appended = true;

  Shape shape;              ///< [0]: rows in this file. Readers also see {0} for a null dataspace.
  Shape max_shape;          ///< Per dimension; UINT64_MAX: unlimited. Empty: equal to shape.
  bool extendable = false;  ///< The first dimension is unlimited.

  StoredForm storage;
  Extent contiguous;  ///< Kind contiguous: location; encoded_bytes 0: never written.
  /// Chunks that extend past the shape's end are stored without filters.
  bool plain_edges = false;
  bool foreign = false;               ///< The data lie in other files (external, virtual).
  Bytes fill_value;                   ///< One element, as set by the user; empty: HDF5's zeros.
  std::optional<double> fill_number;  ///< fill_value as a number; only for numbers.

  /// Kind foreign: the first such file, by its name in this file; not sent to other ranks.
  std::string foreign_file;

  /// Value of guard_attribute, for code that appends to a dataset; not sent to other ranks.
  std::string guards_text;

  // Set for readers of fields (InputFile) only; not sent to other ranks.
  bool field = false;         ///< An array of plain numbers, as a Writer creates.
  bool is_dimension = false;  ///< Not a field: a netCDF-4 dimension without a variable.
  bool may_be_bytes = false;  ///< Not a field, but a field of bytes can hold its elements.
  /// Made by as_bytes(): dtype is u8, and the last dimension of shape, max_shape and the chunk
  /// shape counts the bytes of an element. type, type_text and fill_value still describe the
  /// elements.
  bool bytes_axis = false;
  /// The fill value that a lossy encoding recorded, _FillValue or missing_value, else a fill that
  /// is not 0.
  std::optional<double> missing_value;
  bool fill_noted = false;  ///< missing_value is from the record of an encoding.
  bool named_type = false;  ///< The type is a named datatype of the file.
  std::string type_path;    ///< Path of that datatype; empty: no link leads to it.
  CreationTimes times;      ///< Set for all datasets, like own_attribute_form.
  /// The threshold for dense attributes differs from HDF5's default.
  bool own_attribute_form = false;
  bool coordinate = false;         ///< A dimension scale or coordinate variable: stored losslessly.
  std::uint64_t stored_bytes = 0;  ///< Space that the dataset takes in the file.
  /// Number of chunks in the file.
  std::uint64_t n_chunks_there = 0;

  std::uint64_t n_rows() const { return shape.empty() ? 0 : shape[0]; }
  /// Bytes of one row.
  std::uint64_t row_bytes() const;
  /// Bytes of one element in memory: of its dtype, or else as stored in the file.
  std::uint64_t value_bytes() const { return dtype ? dtype_bytes(*dtype) : element_bytes; }
  bool chunked() const { return storage.kind == StoredForm::Kind::chunked; }
  /// True if only HDF5 can read the dataset: data in other files or in the header, numbers of
  /// another size or precision than a dtype's, elements that point elsewhere.
  bool by_hdf5() const {
    return foreign || !by_value || (dtype && !plain_number) ||
           storage.kind == StoredForm::Kind::compact;
  }
  /// Largest extent of dimension d; UINT64_MAX: unlimited.
  std::uint64_t limit(std::size_t d) const {
    return d < max_shape.size() ? max_shape[d] : shape[d];
  }
  /// True if a dimension may grow, with or without a limit.
  bool grows() const;
  bool unlimited(std::size_t d) const { return d < max_shape.size() && max_shape[d] == UINT64_MAX; }
  /// Bit d: dimension d > 0 is unlimited.
  std::uint64_t more_unlimited() const;
};

/// Present a dataset with elements of fixed size as a dataset of bytes with one more dimension.
StoredDataset as_bytes(StoredDataset dataset);

/// Treatment of values that lie in other files (external storage, the sources of virtual datasets).
/// The file supplies their names, so that an untrusted file could name any file that this process
/// may read. Only callers that trust the file choose `read`. External links are never followed.
enum class OtherFiles : std::uint8_t { leave_out, read };

/// Message for a foreign dataset: "dataset "/x": its values lie in other files ("raw.bin")".
std::string values_elsewhere_text(const StoredDataset& dataset);

/// Size from which a dataset is checked by check_not_hollow().
inline constexpr std::uint64_t kHollowBytesMin = std::uint64_t{1} << 38;

/// Check a dataset before a pass over all of its values: a file of a few kilobytes can declare
/// extents far larger than anyone could have written. Needs n_chunks_there.
/// @error unsupported  at least kHollowBytesMin of values, and fewer than one chunk in a thousand
/// written
Status check_not_hollow(const StoredDataset& dataset);

/// Serialise a form for a message, and back. With damaged input, the wary reader returns whatever
/// it found.
void pack_form(ByteWriter& writer, const StoredForm& form);
StoredForm unpack_form(ByteReader& reader);

/// Serialise the datasets of one file to send them to other ranks, and back.
Bytes pack_schema(std::span<const StoredDataset> datasets);
/// @error corrupt
Result<std::vector<StoredDataset>> unpack_schema(std::span<const std::byte> bytes);

/// The conflicts that prevent appending `datasets` (one file's) to `schema` (the first file's). One
/// line per conflict, with the dataset's path and both sides ("dataset "/g/d": f64, but f32 in the
/// first file", "... is missing", "... is not in the first file"). Empty: no conflict. Rows and
/// storage may differ; order does not matter. Cost: O(datasets).
std::vector<std::string> schema_conflicts(std::span<const StoredDataset> schema,
                                          std::span<const StoredDataset> datasets);

// --- Number types in HDF5's encoding (H5Tencode), as sent between ranks.

/// This machine's type for `dtype`, encoded. Takes the HDF5 lock.
Bytes encoded_type(DType dtype);

/// The dtype whose values are stored exactly as on this machine; empty for all other types (other
/// byte orders, enums, strings, compounds, ...). Takes the HDF5 lock.
std::optional<DType> decoded_type(const Bytes& type);

// --- A JSON text that describes an element type of fixed size, for code that names types
// differently (NumPy, in the Python package). The input is HDF5's encoding of the type (H5Tencode),
// which every StoredDataset holds; nothing is read from the file.

/// The type as JSON, with a kind in each object; the byte order is the file's:
///   {"kind": "number", "numpy": "<f4"}            also "u2", "V5" (opaque, bit fields: as bytes)
///   {"kind": "enum", "numpy": "|i1", "values": [["red", 0], ...]}
///   {"kind": "string", "bytes": 6}                fixed length, within compounds
///   {"kind": "array", "shape": [2, 3], "of": ...}
///   {"kind": "compound", "bytes": 16, "members": [{"name": "id", "at": 0, "of": ...}, ...]}
/// Empty if elements, at any depth, refer to data elsewhere in the file (variable length,
/// references) or are numbers in formats that NumPy lacks. Not collective. Takes the HDF5 lock.
std::string describe_type(const Bytes& type);

}  // namespace tailrace
