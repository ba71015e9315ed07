// Types, filters, property lists and attributes of the objects in a new file.

#include "hdf5/hdf5_properties.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hdf5/hdf5_compat.hpp"

namespace tailrace {

namespace {

/// Store `value` as a T if T can hold it exactly (floating types may round).
template <class T>
Status set_fill_as(hid_t creation_list, hid_t type, double value) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    // max + 1 is a power of two, which a double holds exactly; max itself may not be.
    const double least = double(std::numeric_limits<T>::min());
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= least && value < beyond && value == std::trunc(value))) {
      return Status(Code::invalid_argument, "fill value is " + std::to_string(value) +
                                                ", expected a value of the type of the dataset");
    }
  }
  const T typed = static_cast<T>(value);
  if (H5Pset_fill_value(creation_list, type, &typed) < 0) {
    return hdf5_failure(Code::internal, "the fill value cannot be set");
  }
  return Status();
}

std::string client_data_text(const std::vector<std::uint32_t>& values) {
  std::string text;
  for (const std::uint32_t value : values) {
    text += (text.empty() ? "" : ":") + std::to_string(value);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

hid_t hdf5_native_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return H5T_NATIVE_FLOAT;
    case DType::f64: return H5T_NATIVE_DOUBLE;
    case DType::i8: return H5T_NATIVE_INT8;
    case DType::i16: return H5T_NATIVE_INT16;
    case DType::i32: return H5T_NATIVE_INT32;
    case DType::i64: return H5T_NATIVE_INT64;
    case DType::u8: return H5T_NATIVE_UINT8;
    case DType::u16: return H5T_NATIVE_UINT16;
    case DType::u32: return H5T_NATIVE_UINT32;
    case DType::u64: return H5T_NATIVE_UINT64;
  }
  return H5I_INVALID_HID;
}

Status set_fill_value(hid_t creation_list, DType dtype, double fill_value) {
  const hid_t type = hdf5_native_type(dtype);
  switch (dtype) {
    case DType::f32: return set_fill_as<float>(creation_list, type, fill_value);
    case DType::f64: return set_fill_as<double>(creation_list, type, fill_value);
    case DType::i8: return set_fill_as<std::int8_t>(creation_list, type, fill_value);
    case DType::i16: return set_fill_as<std::int16_t>(creation_list, type, fill_value);
    case DType::i32: return set_fill_as<std::int32_t>(creation_list, type, fill_value);
    case DType::i64: return set_fill_as<std::int64_t>(creation_list, type, fill_value);
    case DType::u8: return set_fill_as<std::uint8_t>(creation_list, type, fill_value);
    case DType::u16: return set_fill_as<std::uint16_t>(creation_list, type, fill_value);
    case DType::u32: return set_fill_as<std::uint32_t>(creation_list, type, fill_value);
    case DType::u64: return set_fill_as<std::uint64_t>(creation_list, type, fill_value);
  }
  return Status(Code::internal, "unknown dtype");
}

Status append_filters(hid_t creation_list, const std::vector<FilterSpec>& filters,
                      StubFilters& stubs) {
  for (const FilterSpec& filter : filters) {
    const auto id = H5Z_filter_t(filter.filter_id);
    // A plug-in's set_local derives final client data from the user's. If only the final ones are
    // known, set_local must not see them.
    const bool exact = filter.client_data.empty() && !filter.final_client_data.empty() &&
                       filter.filter_id >= H5Z_FILTER_RESERVED;
    const bool is_stub =
        exact || StubFilters::is_stub(filter.filter_id) || H5Zfilter_avail(id) <= 0;
    if (is_stub) TAILRACE_TRY(stubs.add(filter));
    const bool final_known = is_stub && !filter.final_client_data.empty();
    const std::vector<std::uint32_t>& data =
        final_known ? filter.final_client_data : filter.client_data;
    if (H5Pset_filter(creation_list, id, filter.flags, data.size(), data.data()) < 0) {
      return hdf5_failure(Code::internal, "filter " + std::to_string(filter.filter_id) +
                                              " cannot be added to the creation property list");
    }
  }
  return Status();
}

namespace {

bool read_filter(hid_t list, unsigned index, FilterSpec& filter) {
  std::array<unsigned, 32> values = {};
  std::size_t n_values = values.size();
  std::array<char, 256> name = {};
  unsigned config = 0;
  H5Z_filter_t id = H5Pget_filter2(list, index, &filter.flags, &n_values, values.data(),
                                   name.size(), name.data(), &config);
  if (id < 0) return false;
  filter.final_client_data.assign(values.begin(),
                                  values.begin() + std::min(n_values, values.size()));
  if (n_values > values.size()) {
    // HDF5 returns the true number of values even when fewer fit: call again.
    filter.final_client_data.resize(n_values);
    id = H5Pget_filter2(list, index, &filter.flags, &n_values, filter.final_client_data.data(),
                        name.size(), name.data(), &config);
    if (id < 0) return false;
  }
  name.back() = '\0';
  filter.filter_id = static_cast<std::uint32_t>(id);
  filter.name = name.data();
  return true;
}

}  // namespace

std::optional<std::vector<FilterSpec>> stored_filters(hid_t creation_list) {
  const int n_filters = H5Pget_nfilters(creation_list);
  if (n_filters < 0) return std::nullopt;
  std::vector<FilterSpec> filters(static_cast<std::size_t>(n_filters));
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (!read_filter(creation_list, static_cast<unsigned>(i), filters[i])) return std::nullopt;
  }
  return filters;
}

Status check_stored_filters(hid_t dataset, std::span<const FilterSpec> filters) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  const std::optional<std::vector<FilterSpec>> stored = stored_filters(list.get());
  if (!stored || stored->size() != filters.size()) {
    return Status(Code::unsupported, "the stored dataset has " +
                                         (stored ? std::to_string(stored->size()) : "unreadable") +
                                         " filters, expected " + std::to_string(filters.size()));
  }
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const FilterSpec& wanted = filters[i];
    const FilterSpec& found = (*stored)[i];
    if (wanted.final_client_data.empty()) continue;
    if (found.filter_id != wanted.filter_id ||
        found.final_client_data != wanted.final_client_data) {
      return Status(Code::unsupported, "filter " + std::to_string(wanted.filter_id) +
                                           " was registered as filter " +
                                           std::to_string(found.filter_id) + " with client data " +
                                           client_data_text(found.final_client_data) +
                                           ", but chunks are encoded with " +
                                           client_data_text(wanted.final_client_data));
    }
  }
  return Status();
}

// --- Creation property lists.

namespace {

/// Expected length of a link's name, for the room in a group's header.
constexpr unsigned kLinkNameBytes = 12;
/// HDF5 stores a chunk's length in 32 bits.
constexpr std::uint64_t kHdf5ChunkBytesLimit = std::uint64_t{1} << 32;

/// Set the properties common to all objects of a new file.
bool set_object_properties(hid_t list, ObjectForms forms) {
  // No time stamps: equal inputs give equal files, and headers are smaller.
  bool done = H5Pset_obj_track_times(list, false) >= 0;
  // Thresholds other than HDF5's default are stored in each header, in a form that some readers do
  // not know.
  if (!forms.old) {
    done = done &&
           H5Pset_attr_phase_change(list, kCompactAttributesMax, kCompactAttributesMax / 2) >= 0;
  }
  if (forms.track_order) {
    done = done &&
           H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
  }
  return done;
}

/// Set the properties of a group. The header has room for all expected links from the start: adding
/// one rewrites only one old block, and a commit has only one in-place write that a crash could
/// tear. If many links are expected, none is stored in the header. HDF5's time for each link added
/// to a header, or found in it, grows with the number of links.
bool set_group_properties(hid_t list, ObjectForms forms, std::uint64_t expected_links) {
  const bool compact = expected_links <= kCompactLinksMax;
  const unsigned n_expected = compact ? static_cast<unsigned>(expected_links) : 0;
  const unsigned n_max = compact ? n_expected + kUnexpectedLinksMax : 0;
  if (!set_object_properties(list, forms) || H5Pset_link_phase_change(list, n_max, n_max / 2) < 0 ||
      (n_expected > kUnexpectedLinksMax &&
       H5Pset_est_link_info(list, n_expected, kLinkNameBytes) < 0)) {
    return false;
  }
  if (!forms.track_order) return true;
  return H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
}

bool set_root_properties(hid_t list, ObjectForms forms, std::uint64_t expected_links) {
  constexpr unsigned n_usual = 4;
  return set_group_properties(list, forms, expected_links) &&
         (expected_links > kUnexpectedLinksMax ||
          H5Pset_est_link_info(list, n_usual, kLinkNameBytes) >= 0);
}

/// Set layout `kind` in a dataset creation list. `planned`: contiguous data lie at an address that
/// the caller chooses, so space is allocated at creation and never filled.
bool set_layout(hid_t list, StoredForm::Kind kind, const Shape& chunk_shape, bool planned) {
  if (kind == StoredForm::Kind::chunked) {
    const std::vector<hsize_t> extents(chunk_shape.begin(), chunk_shape.end());
    return H5Pset_chunk(list, int(extents.size()), extents.data()) >= 0;
  }
  if (kind == StoredForm::Kind::compact) return H5Pset_layout(list, H5D_COMPACT) >= 0;
  if (H5Pset_layout(list, H5D_CONTIGUOUS) < 0) return false;
  return !planned || (H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
                      H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
}

}  // namespace

bool set_creation_times(hid_t list, CreationTimes times, bool planned) {
  if (H5Pset_fill_time(list, static_cast<H5D_fill_time_t>(times.fill)) < 0) return false;
  if (times.no_fill_value && H5Pset_fill_value(list, H5T_NATIVE_INT8, nullptr) < 0) return false;
  const auto allocation = static_cast<H5D_alloc_time_t>(times.allocation);
  const bool of_chunks = H5Pget_layout(list) == H5D_CHUNKED;
  const bool served =
      of_chunks ? allocation == H5D_ALLOC_TIME_INCR : allocation == H5D_ALLOC_TIME_LATE && !planned;
  return !served || H5Pset_alloc_time(list, allocation) >= 0;
}

Result<Hdf5Id> file_creation_list(ObjectForms forms, std::uint64_t expected_links,
                                  bool shares_chunks) {
  Hdf5Id list(H5Pcreate(H5P_FILE_CREATE));
  if (!list.valid() || !set_root_properties(list.get(), forms, expected_links) ||
      (shares_chunks &&
       H5Pset_file_space_strategy(list.get(), H5F_FSPACE_STRATEGY_AGGR, false, 1) < 0)) {
    return hdf5_failure(Code::internal, "the file creation property list cannot be set up");
  }
  return list;
}

Result<Hdf5Id> program_creation_list(hid_t program) {
  Hdf5Id list(program == H5P_DEFAULT ? H5Pcreate(H5P_FILE_CREATE) : H5Pcopy(program));
  if (!list.valid() ||
      H5Pset_file_space_strategy(list.get(), H5F_FSPACE_STRATEGY_FSM_AGGR, false, 1) < 0) {
    return hdf5_failure(Code::internal, "the file creation property list cannot be set up");
  }
  return list;
}

Result<Hdf5Id> group_creation_list(ObjectForms forms, std::uint64_t expected_links) {
  Hdf5Id list(H5Pcreate(H5P_GROUP_CREATE));
  if (!list.valid() || !set_group_properties(list.get(), forms, expected_links)) {
    return hdf5_failure(Code::internal, "the group creation property list cannot be set up");
  }
  return list;
}

Status check_definition(const DatasetDefinition& definition) {
  const Shape& shape = definition.shape;
  const Shape& chunk_shape = definition.chunk_shape;
  if (shape.size() > kMaxRank) {
    return Status(Code::unsupported, std::to_string(shape.size()) +
                                         " dimensions; HDF5 allows at most " +
                                         std::to_string(kMaxRank));
  }
  if (chunk_shape.empty()) {
    const bool grows = definition.extendable || definition.more_unlimited != 0;
    if (grows || !definition.filters.empty()) {
      return Status(Code::invalid_argument,
                    "a dataset that grows or has filters needs a chunk shape");
    }
    return Status();
  }
  if (chunk_shape.size() != shape.size()) {
    return Status(Code::invalid_argument, "chunk shape " + shape_text(chunk_shape) +
                                              " must have as many dimensions as shape " +
                                              shape_text(shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    // A limit of 0 sets no bound: the dimension stays empty.
    const std::uint64_t limit = definition.limit(d);
    if (chunk_shape[d] == 0 || (limit > 0 && chunk_shape[d] > limit)) {
      return Status(Code::invalid_argument, "chunk shape " + shape_text(chunk_shape) +
                                                " must be between 1 and the shape, " +
                                                shape_text(shape) + ", or its maximum extents");
    }
  }
  const std::uint64_t n = n_elements(chunk_shape);
  if (n >= kHdf5ChunkBytesLimit / definition.bytes_of_element()) {
    return Status(Code::unsupported, "chunk shape " + shape_text(chunk_shape) +
                                         " has 4 GiB or more; HDF5 allows less than 4 GiB");
  }
  return Status();
}

bool has_few_chunks(const DatasetDefinition& definition, std::uint64_t n_chunks) {
  constexpr std::uint64_t possible_chunks_min = 1024;
  constexpr std::uint64_t possible_over_few = 16;
  if (definition.chunk_shape.empty() || definition.extendable || definition.more_unlimited != 0) {
    return false;
  }
  const std::uint64_t n_possible = ChunkGrid{definition.shape, definition.chunk_shape}.n_chunks();
  return n_possible >= possible_chunks_min && n_chunks < n_possible / possible_over_few;
}

Result<Hdf5Id> dataset_type(hid_t file, const DatasetDefinition& definition) {
  if (!definition.type_path.empty()) {
    Hdf5Id named(H5Topen2(file, definition.type_path.c_str(), H5P_DEFAULT));
    // The named type is missing if it could not be copied; that was reported then.
    if (named.valid()) return named;
  }
  const Bytes& encoded = definition.type;
  const Hdf5Id decoded(encoded.empty() ? H5I_INVALID_HID
                                       : decode_type(encoded.data(), encoded.size()));
  Hdf5Id type(H5Tcopy(encoded.empty() ? hdf5_native_type(definition.dtype) : decoded.get()));
  if (!type.valid()) return hdf5_failure(Code::internal, "the element type cannot be copied");
  return type;
}

bool fills_at_creation(hid_t creation_list) {
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  H5D_fill_value_t value = H5D_FILL_VALUE_DEFAULT;
  if (H5Pget_fill_time(creation_list, &time) < 0 ||
      H5Pfill_value_defined(creation_list, &value) < 0) {
    return true;
  }
  return time == H5D_FILL_TIME_ALLOC ||
         (time == H5D_FILL_TIME_IFSET && value == H5D_FILL_VALUE_USER_DEFINED);
}

Result<Hdf5Id> dataset_creation_list(const DatasetDefinition& definition, ObjectForms forms,
                                     StubFilters& stubs) {
  Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  if (!list.valid() || !set_object_properties(list.get(), forms)) {
    return hdf5_failure(Code::internal, "the creation property list cannot be made");
  }
  const Shape& chunk_shape = definition.chunk_shape;
  const auto kind = !chunk_shape.empty() ? StoredForm::Kind::chunked
                    : definition.compact ? StoredForm::Kind::compact
                                         : StoredForm::Kind::contiguous;
  if (!set_layout(list.get(), kind, chunk_shape, definition.contiguous_address != 0)) {
    return hdf5_failure(Code::invalid_argument,
                        "chunk shape " + shape_text(chunk_shape) + " cannot be set");
  }
  if (definition.stored_fill) {
    const Bytes& fill = *definition.stored_fill;
    const Hdf5Id decoded(definition.element_bytes > 0
                             ? decode_type(definition.type.data(), definition.type.size())
                             : H5Tcopy(hdf5_native_type(definition.dtype)));
    const bool set =
        fill.empty() || (fill.size() == definition.bytes_of_element() &&
                         H5Pset_fill_value(list.get(), decoded.get(), fill.data()) >= 0);
    if (!set) return hdf5_failure(Code::internal, "the fill value cannot be set");
  } else if (definition.fill_value) {
    TAILRACE_TRY(set_fill_value(list.get(), definition.dtype, *definition.fill_value));
  }
  if (definition.times &&
      !set_creation_times(list.get(), *definition.times, definition.contiguous_address != 0)) {
    return hdf5_failure(Code::internal, "the fill time cannot be set");
  }
  TAILRACE_TRY(append_filters(list.get(), definition.filters, stubs));
  return list;
}

Result<Hdf5Id> stored_creation_list(const StoredForm& storage, hid_t type,
                                    std::span<const std::byte> fill_value, bool planned, bool bare,
                                    ObjectForms forms, StubFilters& stubs) {
  Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  if (!list.valid() || !set_object_properties(list.get(), forms)) {
    return hdf5_failure(Code::internal, "the creation property list cannot be made");
  }
  if (!set_layout(list.get(), storage.kind, storage.chunk_shape, planned)) {
    return hdf5_failure(Code::invalid_argument,
                        "chunk shape " + shape_text(storage.chunk_shape) + " cannot be set");
  }
  if (!fill_value.empty() && (fill_value.size() != H5Tget_size(type) ||
                              H5Pset_fill_value(list.get(), type, fill_value.data()) < 0)) {
    return hdf5_failure(Code::internal, "the fill value cannot be set");
  }
#if H5_VERSION_GE(1, 10, 5)
  // Without this hint HDF5 reserves 120 bytes for attributes in every header.
  if (bare && H5Pset_dset_no_attrs_hint(list.get(), true) < 0) {
    return hdf5_failure(Code::internal, "the dataset creation property list cannot be set up");
  }
#endif
  // The stored client data are those that a filter's set_local derived from the user's. HDF5's own
  // filters derive the same values again; plug-ins must not see them again (append_filters).
  std::vector<FilterSpec> filters = storage.filters;
  for (FilterSpec& filter : filters) {
    const bool own = filter.filter_id < H5Z_FILTER_RESERVED;
    if (own && !filter.final_client_data.empty()) filter.client_data = filter.final_client_data;
    if (!own) filter.client_data.clear();
  }
  TAILRACE_TRY(append_filters(list.get(), filters, stubs));
  return list;
}

Status adapt_program_list(hid_t list, const StoredForm& storage, StubFilters& stubs) {
  H5D_fill_time_t fill_time = H5D_FILL_TIME_IFSET;
  // Allocate chunks when they are written. Elements that were never written must read as fill
  // values, even if other data occupied the space before.
  if (H5Premove_filter(list, H5Z_FILTER_ALL) < 0 ||
      !set_layout(list, storage.kind, storage.chunk_shape, false) ||
      H5Pset_alloc_time(list, H5D_ALLOC_TIME_INCR) < 0 || H5Pget_fill_time(list, &fill_time) < 0 ||
      (fill_time == H5D_FILL_TIME_NEVER && H5Pset_fill_time(list, H5D_FILL_TIME_IFSET) < 0)) {
    return hdf5_failure(Code::internal, "the dataset creation property list cannot be set up");
  }
  return append_filters(list, storage.filters, stubs);
}

Hdf5Id link_properties_of(const std::string& name) {
  const bool ascii = std::ranges::all_of(name, [](char letter) { return (letter & 0x80) == 0; });
  return ascii ? Hdf5Id(H5Pcreate(H5P_LINK_CREATE)) : utf8_link_properties();
}

Hdf5Id utf8_link_properties() {
  Hdf5Id properties(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_char_encoding(properties.get(), H5T_CSET_UTF8);
  return properties;
}

// --- Attribute values as HDF5 types and dataspaces.

namespace {

/// A value as HDF5 expects it.
struct TypedValue {
  Hdf5Id type;
  Hdf5Id space;
  const void* values = nullptr;
};

TypedValue typed_text(const std::string& text) {
  TypedValue typed;
  typed.type = Hdf5Id(H5Tcopy(H5T_C_S1));
  // Null-padded and exactly as long as the text: netCDF counts a terminating zero as a character.
  // HDF5 has no type of zero bytes, so an empty text becomes one zero.
  H5Tset_size(typed.type.get(), text.empty() ? 1 : text.size());
  H5Tset_strpad(typed.type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(typed.type.get(), H5T_CSET_UTF8);
  typed.space = Hdf5Id(H5Screate(H5S_SCALAR));
  typed.values = text.c_str();
  return typed;
}

template <class T>
TypedValue typed_numbers(const std::vector<T>& numbers) {
  TypedValue typed;
  const hid_t native = std::is_same_v<T, double>         ? H5T_NATIVE_DOUBLE
                       : std::is_same_v<T, std::int64_t> ? H5T_NATIVE_INT64
                                                         : H5T_NATIVE_UINT64;
  typed.type = Hdf5Id(H5Tcopy(native));
  const hsize_t n = numbers.size();
  if (n == 0) {
    typed.space = Hdf5Id(H5Screate(H5S_NULL));
  } else {
    typed.space = Hdf5Id(n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr));
  }
  typed.values = numbers.data();
  return typed;
}

/// The attribute if it exists with exactly this type and shape, so that it can be overwritten.
Hdf5Id open_same(hid_t object, const std::string& name, const TypedValue& wanted) {
  Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  if (!attribute.valid()) return Hdf5Id();
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const bool same = H5Tequal(type.get(), wanted.type.get()) > 0 &&
                    H5Sextent_equal(space.get(), wanted.space.get()) > 0;
  return same ? std::move(attribute) : Hdf5Id();
}

}  // namespace

Status write_attribute(hid_t object, const std::string& name, const AttributeValue& value,
                       bool is_new) {
  const auto typed_of = [](const auto& held) {
    if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
      return typed_text(held);
    } else {
      return typed_numbers(held);
    }
  };
  const TypedValue typed = std::visit(typed_of, value.value);
  const std::string what = "attribute \"" + name + "\"";
  if (!typed.type.valid() || !typed.space.valid()) {
    return hdf5_failure(Code::internal, what + ": its type or dataspace cannot be created");
  }
  Hdf5Id attribute;
  if (!is_new && H5Aexists(object, name.c_str()) > 0) {
    attribute = open_same(object, name, typed);
    if (!attribute.valid() && H5Adelete(object, name.c_str()) < 0) {
      return hdf5_failure(Code::internal, what + " cannot be replaced");
    }
  }
  if (!attribute.valid()) {
    attribute = Hdf5Id(H5Acreate2(object, name.c_str(), typed.type.get(), typed.space.get(),
                                  H5P_DEFAULT, H5P_DEFAULT));
  }
  if (!attribute.valid()) return hdf5_failure(Code::internal, what + " cannot be created");
  if (H5Sget_simple_extent_type(typed.space.get()) == H5S_NULL) return Status();
  if (H5Awrite(attribute.get(), typed.type.get(), typed.values) < 0) {
    return hdf5_failure(Code::internal, what + " cannot be written");
  }
  return Status();
}

}  // namespace tailrace
