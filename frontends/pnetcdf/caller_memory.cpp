// See caller_memory.hpp. MPI packs and unpacks derived datatypes; this file only inspects them.

#include "pnetcdf/caller_memory.hpp"

#include <pnetcdf.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <optional>

#include "pnetcdf/filetype_slabs.hpp"
#include "pnetcdf/netcdf_rules.hpp"

namespace tailrace::pnetcdf {
namespace {

/// Count that means as many elements as the part of the variable has; NC_COUNT_IGNORE in later
/// headers.
constexpr MPI_Offset kCountIgnored = -1;

std::optional<ModelType> named_type(MPI_Datatype datatype) {
  using enum ModelType;
  struct Names {
    ModelType type;
    std::vector<MPI_Datatype> datatypes;
  };
  static const std::vector<Names> all = {
      {text_char, {MPI_CHAR, MPI_CHARACTER}},
      {i8, {MPI_SIGNED_CHAR, MPI_INT8_T, MPI_INTEGER1}},
      {u8, {MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_BYTE}},
      {i16, {MPI_SHORT, MPI_INT16_T, MPI_INTEGER2}},
      {u16, {MPI_UNSIGNED_SHORT, MPI_UINT16_T}},
      {i32, {MPI_INT, MPI_INT32_T, MPI_INTEGER, MPI_INTEGER4}},
      {u32, {MPI_UNSIGNED, MPI_UINT32_T}},
      {sizeof(long) == 8 ? i64 : i32, {MPI_LONG}},
      {sizeof(long) == 8 ? u64 : u32, {MPI_UNSIGNED_LONG}},
      {i64, {MPI_LONG_LONG_INT, MPI_INT64_T, MPI_INTEGER8, MPI_OFFSET}},
      {u64, {MPI_UNSIGNED_LONG_LONG, MPI_UINT64_T}},
      {f32, {MPI_FLOAT, MPI_REAL, MPI_REAL4}},
      {f64, {MPI_DOUBLE, MPI_DOUBLE_PRECISION, MPI_REAL8}},
  };
  for (const Names& names : all) {
    if (std::count(names.datatypes.begin(), names.datatypes.end(), datatype) > 0) return names.type;
  }
  return std::nullopt;
}

/// Basic types of a datatype, and their arrangement.
struct Leaves {
  std::optional<ModelType> type;
  bool dense = true;  ///< The values lie in order, without gaps.
};

int find_leaves(MPI_Datatype datatype, Leaves& leaves) {
  const DatatypeContents contents(datatype);
  const int combiner = contents.combiner;
  if (combiner == MPI_COMBINER_NAMED) {
    const std::optional<ModelType> type = named_type(datatype);
    if (!type) return NC_EUNSPTETYPE;
    if (leaves.type && *leaves.type != *type) return NC_EMULTITYPES;
    leaves.type = type;
    return NC_NOERR;
  }
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) leaves.dense = false;
  for (const MPI_Datatype part : contents.datatypes) {
    if (const int status = find_leaves(part, leaves); status != NC_NOERR) return status;
  }
  return NC_NOERR;
}

bool has_datatype(const CallerMemory& memory) {
  if (memory.typed || memory.datatype == MPI_DATATYPE_NULL) return false;
  Leaves leaves;
  return find_leaves(memory.datatype, leaves) != NC_NOERR || !leaves.dense;
}

/// Run `step(first, n, n_bytes)` over the datatypes, in parts whose bytes fit MPI's int.
template <class Step>
void in_parts(const CallerMemory& memory, Step&& step) {
  int type_bytes = 0;
  MPI_Type_size(memory.datatype, &type_bytes);
  const MPI_Offset limit = std::max<MPI_Offset>(1, INT_MAX / std::max(1, type_bytes));
  for (MPI_Offset first = 0; first < memory.count; first += limit) {
    const int n = static_cast<int>(std::min(limit, memory.count - first));
    step(first, n, n * type_bytes);
  }
}

std::byte* datatype_at(const CallerMemory& memory, MPI_Offset index) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(memory.datatype, &lower, &extent);
  return static_cast<std::byte*>(memory.values) + index * extent;
}

/// Call `visit(dense_index, mapped_index)` for all elements, row-major.
template <class Visit>
void for_each_mapped(const Shape& count, const std::vector<MPI_Offset>& map, Visit&& visit) {
  std::size_t dense = 0;
  for_each_position(whole_box(count), [&](const Shape& at) {
    MPI_Offset mapped = 0;
    for (std::size_t d = 0; d < at.size(); ++d) mapped += static_cast<MPI_Offset>(at[d]) * map[d];
    visit(dense++, mapped);
  });
}

bool is_row_major(const std::vector<MPI_Offset>& map, const Shape& count) {
  MPI_Offset step = 1;
  for (std::size_t d = map.size(); d-- > 0;) {
    if (map[d] != step && count[d] > 1) return false;
    step *= static_cast<MPI_Offset>(count[d]);
  }
  return true;
}

bool is_mapped(const CallerMemory& memory, const Shape& count) {
  return !memory.element_map.empty() && !is_row_major(memory.element_map, count);
}

}  // namespace

void CallerMemory::keep_datatype() {
  if (typed || datatype == MPI_DATATYPE_NULL) return;
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  MPI_Type_dup(datatype, &copy);
  kept = std::shared_ptr<MPI_Datatype>(new MPI_Datatype(copy), [](MPI_Datatype* own) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Type_free(own);
    delete own;
  });
  datatype = copy;
}

int type_of_datatype(MPI_Datatype datatype, ModelType& type) {
  Leaves leaves;
  if (const int status = find_leaves(datatype, leaves); status != NC_NOERR) return status;
  if (!leaves.type) return NC_EUNSPTETYPE;
  type = *leaves.type;
  return NC_NOERR;
}

int resolve_memory(CallerMemory& memory, ModelType variable_type, std::uint64_t n_elements) {
  if (memory.typed) return NC_NOERR;
  if (memory.datatype == MPI_DATATYPE_NULL) {
    memory.type = variable_type;
    return NC_NOERR;
  }
  if (memory.count == kCountIgnored) {
    memory.type = variable_type;
    if (n_elements == 0) return NC_NOERR;
    // The real library rejects MPI_BYTE as a type of values; with an explicit count it means text
    // here.
    if (!named_type(memory.datatype) || memory.datatype == MPI_BYTE) return NC_EBADTYPE;
    memory.count = static_cast<MPI_Offset>(n_elements);
  }
  const int status = type_of_datatype(memory.datatype, memory.type);
  if (status != NC_NOERR) return status;
  // MPI_BYTE and similar types are unsigned bytes, or text if the variable is text.
  if (memory.type == ModelType::u8 && variable_type == ModelType::text_char) {
    memory.type = ModelType::text_char;
  }
  int type_bytes = 0;
  MPI_Type_size(memory.datatype, &type_bytes);
  const std::uint64_t elements_per_type =
      static_cast<std::uint64_t>(type_bytes) / model_type_bytes(memory.type);
  const bool matches = memory.count >= 0 &&
                       elements_per_type * static_cast<std::uint64_t>(memory.count) == n_elements;
  return matches ? NC_NOERR : NC_EIOMISMATCH;
}

bool is_plain(const CallerMemory& memory, ModelType variable_type, const Shape& count) {
  return memory.type == variable_type && !has_datatype(memory) && !is_mapped(memory, count);
}

int gather_memory(const CallerMemory& memory, const Shape& count, ModelType variable_type,
                  const std::byte* fill, bool loose_bytes, std::vector<std::byte>& values) {
  const std::size_t n = n_elements(count);
  const std::size_t memory_bytes = model_type_bytes(memory.type);
  const auto* dense = static_cast<const std::byte*>(memory.values);
  std::vector<std::byte> packed;
  if (has_datatype(memory)) {
    packed.resize(n * memory_bytes);
    std::byte* to = packed.data();
    in_parts(memory, [&](MPI_Offset first, int n_types, int n_bytes) {
      int position = 0;
      MPI_Pack(datatype_at(memory, first), n_types, memory.datatype, to, n_bytes, &position,
               MPI_COMM_SELF);
      to += n_bytes;
    });
    dense = packed.data();
  }
  std::vector<std::byte> ordered;
  if (is_mapped(memory, count)) {
    ordered.resize(n * memory_bytes);
    for_each_mapped(count, memory.element_map, [&](std::size_t to, MPI_Offset from) {
      std::memcpy(&ordered[to * memory_bytes], dense + from * static_cast<MPI_Offset>(memory_bytes),
                  memory_bytes);
    });
    dense = ordered.data();
  }
  values.resize(n * model_type_bytes(variable_type));
  return convert_values(dense, memory.type, values.data(), variable_type, n, fill, loose_bytes);
}

int scatter_memory(const std::vector<std::byte>& values, ModelType variable_type,
                   const Shape& count, bool loose_bytes, const CallerMemory& memory) {
  const std::size_t n = n_elements(count);
  const std::size_t memory_bytes = model_type_bytes(memory.type);
  std::array<std::byte, 8> fill{};
  default_fill_value(memory.type, fill.data());
  const bool unpacks = has_datatype(memory);
  if (!unpacks && !is_mapped(memory, count)) {
    return convert_values(values.data(), variable_type, static_cast<std::byte*>(memory.values),
                          memory.type, n, fill.data(), loose_bytes);
  }
  std::vector<std::byte> dense(n * memory_bytes);
  const int status = convert_values(values.data(), variable_type, dense.data(), memory.type, n,
                                    fill.data(), loose_bytes);
  if (is_mapped(memory, count)) {
    // If there is a datatype, too, the map applies to the packed values.
    std::vector<std::byte> ordered(unpacks ? n * memory_bytes : 0);
    std::byte* to = unpacks ? ordered.data() : static_cast<std::byte*>(memory.values);
    for_each_mapped(count, memory.element_map, [&](std::size_t from, MPI_Offset mapped) {
      std::memcpy(to + mapped * static_cast<MPI_Offset>(memory_bytes), &dense[from * memory_bytes],
                  memory_bytes);
    });
    if (unpacks) dense.swap(ordered);
  }
  if (unpacks) {
    const std::byte* from = dense.data();
    in_parts(memory, [&](MPI_Offset first, int n_types, int n_bytes) {
      int position = 0;
      MPI_Unpack(from, n_bytes, &position, datatype_at(memory, first), n_types, memory.datatype,
                 MPI_COMM_SELF);
      from += n_bytes;
    });
  }
  return status;
}

}  // namespace tailrace::pnetcdf
