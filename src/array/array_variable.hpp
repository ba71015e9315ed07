// ArrayVariable: the state of one variable of an array file, from its definition to its dataset.
//
// The first flush of a variable decides how its values are stored. Chunks follow the boxes that
// were put, and range-dependent bounds are resolved from the values put so far. The decision is
// then fixed in the dataset's header for the variable's lifetime.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "array/array_options.hpp"
#include "array/array_staging.hpp"
#include "array/model_roles.hpp"
#include "core/codec.hpp"
#include "field/field_state.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {

/// How a variable's dataset holds its values.
enum class ArrayStorage : std::uint8_t {
  undecided,   ///< The file has no dataset for it yet.
  chunked,     ///< The executor writes it chunk by chunk.
  contiguous,  ///< Every rank writes its elements at their place.
  by_hdf5      ///< Rank 0 writes it with HDF5: compact, not allocated yet, or texts.
};

/// Texts staged by put_texts(); rank 0 writes them.
struct StagedTexts {
  Slab slab;
  std::vector<std::string> texts;
  std::uint64_t epoch = 0;  ///< See StagingLog::put.
};

struct ArrayVariable {
  ArrayVariable(StagingMemory& memory, ModelType model_type)
      : type(model_type), log(memory, std::max<std::size_t>(model_type_bytes(model_type), 1)) {}
  /// Construct a variable with elements of a type that netCDF does not have.
  ArrayVariable(StagingMemory& memory, std::size_t element_bytes)
      : type(ModelType::other), log(memory, element_bytes) {}

  ModelType type;
  StagingLog log;
  std::vector<StagedTexts> texts;
  std::vector<std::string> own_options;  ///< Set by set_variable_options, in order.
  std::shared_ptr<const Codec> own_codec;

  ArrayStorage storage = ArrayStorage::undecided;
  FieldDefinition definition;  ///< This and `resolved` are valid once storage is decided.
  ResolvedField resolved;
  double max_error = 0;         ///< Largest over all flushes, if chunks are verified.
  std::vector<bool> growing;    ///< True per unlimited dimension.
  std::vector<std::byte> fill;  ///< One element.
  std::shared_ptr<const StoredDataset> stored;  ///< Dataset of an opened file, as found.
  std::uint64_t address = 0;                    ///< Contiguous storage: file address of the values.
  bool swapped = false;                         ///< Stored in the other byte order.
  bool places_known = true;                     ///< The chunks' homes know their addresses.
  double encoded_share = 0.5;          ///< Encoded over raw bytes, as measured by this rank.
  std::uint64_t n_chunks_written = 0;  ///< Over all ranks and flushes.
  std::uint64_t n_chunks_raw = 0;  ///< Chunks stored unfiltered because the codec broke the bound.
  /// True if attribute tailrace_max_error is written, and so must be updated by every flush.
  bool records_max_error = true;

  ChunkGrid grid() const { return {definition.shape, resolved.chunk_shape}; }
  bool in_file() const { return storage != ArrayStorage::undecided; }
  bool staged() const { return !log.empty() || !texts.empty(); }
};

/// Type by which the engine handles a variable's elements: u8 for text_char. Empty for texts and
/// unsupported types.
std::optional<DType> array_dtype(ModelType type);

/// Fill element: the value that never-written elements read as. It is _FillValue, or netCDF's
/// default for the type; zeros if filling is switched off.
std::vector<std::byte> fill_element(const ModelVariable& variable);

/// Missing-data value, which a lossy codec must preserve bit for bit: _FillValue, else
/// missing_value, else fill_element(). Empty if none is defined or if no double equals it.
std::optional<double> kept_value(const ModelVariable& variable);

/// Convert an element of type f32 or f64 to a number.
double element_number(ModelType type, const std::vector<std::byte>& element);

/// Mark the unlimited dimensions of a variable.
std::vector<bool> growing_dimensions(const NetcdfModel& model, const ModelVariable& variable);

/// Wrap a codec that has other owners, too.
std::unique_ptr<Codec> share_codec(std::shared_ptr<const Codec> codec);

/// Wrap a codec so that values are stored unencoded: the dataset has the codec's filters, and every
/// chunk skips all of them.
std::unique_ptr<Codec> skipping_codec(std::unique_ptr<Codec> codec);

/// Resolve the options of a variable: the file's defaults, then those of matching globs, then
/// `own_options`. Variables with another role than values, integers and texts are stored exactly.
/// `own_options`, or a pattern that is this variable's exact name, override this.
/// @error invalid_argument, unsupported (texts with a lossy codec)
Result<FieldOptions> variable_options(const NetcdfModel& model, std::size_t variable,
                                      ModelRoles& roles, const ArrayFileOptions& options,
                                      const std::vector<std::string>& own_options);

/// Wrap the pipeline of an existing dataset. The codec reports values that it cannot keep exactly,
/// so that they are stored raw. It also swaps elements of `swapped_bytes` if the file has the other
/// byte order (1: same byte order).
std::unique_ptr<Codec> existing_codec(std::unique_ptr<Codec> stored, std::size_t swapped_bytes);

}  // namespace tailrace
