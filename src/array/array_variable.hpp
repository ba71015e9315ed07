// ArrayVariable: a variable of an ArrayFile between its definition and its place in the file.
//
// How its values will be stored is decided when the first of them are flushed: chunks follow the
// boxes that were put, bounds that depend on the values' range are resolved by these, and all of it
// stays for the variable's life, as it stands in the dataset's header.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "array/array_file.hpp"
#include "array/array_staging.hpp"
#include "core/codec.hpp"
#include "field/field_state.hpp"

namespace tailrace {

/// How a variable's dataset holds its values.
enum class ArrayStorage : std::uint8_t {
  undecided,   ///< There is no dataset yet.
  chunked,     ///< By the executor, chunk by chunk.
  contiguous,  ///< Every rank writes its elements where they belong.
  by_hdf5      ///< Compact, not allocated yet, texts: small; rank 0 writes with HDF5.
};

/// Texts that were put, to be written by rank 0.
struct StagedTexts {
  Slab slab;
  std::vector<std::string> texts;
  std::uint64_t epoch = 0;  ///< As of StagingLog::put.
};

struct ArrayVariable {
  ArrayVariable(StagingMemory& memory, ModelType model_type)
      : type(model_type), log(memory, std::max<std::size_t>(model_type_bytes(model_type), 1)) {}
  /// Of elements that netCDF has no word for.
  ArrayVariable(StagingMemory& memory, std::size_t element_bytes)
      : type(ModelType::other), log(memory, element_bytes) {}

  ModelType type;
  StagingLog log;
  std::vector<StagedTexts> texts;
  std::vector<std::string> own_options;  ///< By set_variable_options, in order.
  std::shared_ptr<const Codec> own_codec;

  ArrayStorage storage = ArrayStorage::undecided;
  FieldDefinition definition;  ///< Both once storage is decided.
  ResolvedField resolved;
  double max_error = 0;                         ///< Of all flushes, if chunks are verified.
  std::vector<bool> growing;                    ///< Per dimension.
  std::vector<std::byte> fill;                  ///< One element.
  std::shared_ptr<const StoredDataset> stored;  ///< Of an opened file, as it was found.
  std::uint64_t address = 0;                    ///< Contiguous: where the values lie.
  bool swapped = false;                         ///< Stored in the other byte order.
  bool places_known = true;                     ///< Its chunks' homes know where they are.
  double encoded_share = 0.5;  ///< Encoded over raw bytes, as this rank has seen it.
  /// tailrace_max_error speaks of every chunk, and is to go on doing so.
  bool tells_max_error = true;

  ChunkGrid grid() const { return {definition.shape, resolved.chunk_shape}; }
  bool in_file() const { return storage != ArrayStorage::undecided; }
  bool staged() const { return !log.empty() || !texts.empty(); }
};

/// The dtype with which the engine handles a variable's elements: bytes for text_char.
/// Nothing: texts and types that are not understood here.
std::optional<DType> array_dtype(ModelType type);

/// One element of what never-written elements read as: _FillValue, or netCDF's default for the
/// type; zeros where that is switched off.
std::vector<std::byte> fill_element(const ModelVariable& variable);

/// The value that a lossy codec must keep bit for bit, as it means that there is none: _FillValue,
/// else missing_value, else what never-written elements read as. Nothing: neither, or no double is
/// equal to it.
std::optional<double> kept_value(const ModelVariable& variable);

/// An element of type f32 or f64 as a number.
double element_number(ModelType type, const std::vector<std::byte>& element);

/// Which dimensions of a variable are unlimited.
std::vector<bool> growing_dimensions(const NetcdfModel& model, const ModelVariable& variable);

/// A Codec that is somebody else's, too.
std::unique_ptr<Codec> share_codec(std::shared_ptr<const Codec> codec);

/// Stores values as they are, in a dataset with the filters of another codec, all of them skipped.
std::unique_ptr<Codec> skipping_codec(std::unique_ptr<Codec> codec);

/// Names of variables that a `coordinates` or `bounds` attribute of their group lists, with the
/// group.
using CoordinateNames = std::set<std::pair<std::size_t, std::string>>;
CoordinateNames listed_coordinates(const NetcdfModel& model);
/// Whether netCDF's conventions make this variable a coordinate: one-dimensional and named like its
/// dimension, or listed.
bool is_coordinate(const NetcdfModel& model, const ModelVariable& variable,
                   const CoordinateNames& listed);

/// The options of a variable: the file's defaults, then those of the globs that match, then its
/// own. Integers, texts and coordinate variables keep their values exactly, unless a pattern that
/// names this very variable, or its own options, say otherwise.
/// @error invalid_argument, unsupported (texts with a codec that loses digits)
Result<FieldOptions> variable_options(const NetcdfModel& model, std::size_t variable,
                                      const CoordinateNames& listed,
                                      const ArrayFileOptions& options,
                                      const std::vector<std::string>& own_options);

/// The pipeline of a dataset that exists. Values that it cannot keep exactly are refused, and so
/// stored raw; where the file has the other byte order (elements of `swapped_bytes`; 1: it has
/// not), they are turned on the way.
std::unique_ptr<Codec> existing_codec(std::unique_ptr<Codec> stored, std::size_t swapped_bytes);

}  // namespace tailrace
