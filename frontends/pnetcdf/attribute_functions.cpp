// Attributes: put, get, inquire, copy, rename, delete; in every type, with conversion.
//
// PnetCDF does not have strings (NC_STRING); they are shown as text, several of them as lines.

#include <algorithm>
#include <array>
#include <cstring>

#include "pnetcdf/netcdf_rules.hpp"
#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {
namespace {

using Attributes = std::vector<ModelAttribute>;

/// Attributes of a variable or, for NC_GLOBAL, of the dataset; nullptr if the variable does not
/// exist.
Attributes* attributes_of(OpenFile& file, int varid) {
  if (varid == NC_GLOBAL) return &file.next.groups[0].attributes;
  return file.has_variable(varid) ? &file.variable(varid).attributes : nullptr;
}

ModelAttribute* find_attribute(Attributes& attributes, std::string_view name) {
  const auto found = std::ranges::find(attributes, name, &ModelAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string lines_of(const ModelAttribute& attribute) {
  std::string lines;
  for (const std::string& text : attribute.texts) {
    if (&text != &attribute.texts.front()) lines += '\n';
    lines += text;
  }
  return lines;
}

/// Convert an attribute to PnetCDF's view: strings become text.
ModelAttribute as_seen(const ModelAttribute& attribute) {
  if (attribute.type != ModelType::text) return attribute;
  const std::string lines = lines_of(attribute);
  const auto* bytes = reinterpret_cast<const std::byte*>(lines.data());
  return {attribute.name, ModelType::text_char, lines.size(), {bytes, bytes + lines.size()}, {}};
}

struct AttributePut {
  int varid = NC_GLOBAL;
  const char* name = nullptr;
  nc_type type = NC_CHAR;
  MPI_Offset n_values = 0;
  const void* values = nullptr;
  ModelType memory_type = ModelType::text_char;
};

int check_attribute_type(const OpenFile& file, nc_type type, ModelType memory_type) {
  if (type <= 0 || type > NC_UINT64) return NC_EBADTYPE;
  if (type > NC_DOUBLE && file.loose_bytes()) return NC_ESTRICTCDF2;
  return (type == NC_CHAR) == (memory_type == ModelType::text_char) ? NC_NOERR : NC_ECHAR;
}

/// Check netCDF's conditions on _FillValue.
int check_fill_value(OpenFile& file, const AttributePut& put) {
  if (put.varid == NC_GLOBAL || std::strcmp(put.name, "_FillValue") != 0) return NC_NOERR;
  if (put.type != static_cast<nc_type>(file.variable(put.varid).type)) return NC_EBADTYPE;
  if (put.n_values != 1) return NC_EINVAL;
  const std::size_t position = file.variables[static_cast<std::size_t>(put.varid)];
  return position < file.n_stored_variables ? NC_ELATEFILL : NC_NOERR;
}

/// Bytes that a classic header would use for the values; they must not grow in data mode.
std::uint64_t padded_bytes(nc_type type, std::uint64_t n_values) {
  return (n_values * model_type_bytes(static_cast<ModelType>(type)) + 3) / 4 * 4;
}

bool grows(const AttributePut& put, const ModelAttribute* old) {
  return old == nullptr || padded_bytes(put.type, static_cast<std::uint64_t>(put.n_values)) >
                               padded_bytes(static_cast<nc_type>(old->type), old->n_values);
}

int check_put(OpenFile& file, const AttributePut& put) {
  if (file.read_only) return NC_EPERM;
  Attributes* attributes = attributes_of(file, put.varid);
  if (attributes == nullptr) return NC_ENOTVAR;
  int status = check_name(put.name);
  if (status == NC_NOERR) status = check_attribute_type(file, put.type, put.memory_type);
  if (status != NC_NOERR) return status;
  if (put.n_values < 0 || (put.n_values > 0 && put.values == nullptr)) return NC_EINVAL;
  if (put.n_values > NC_MAX_INT && file.loose_bytes()) return NC_EINVAL;
  status = check_fill_value(file, put);
  if (status != NC_NOERR) return status;
  const bool refused = !file.defining && grows(put, find_attribute(*attributes, put.name));
  return refused ? NC_ENOTINDEFINE : NC_NOERR;
}

int put_attribute(OpenFile& file, const AttributePut& put) {
  int status = check_put(file, put);
  const auto n_values = static_cast<std::size_t>(status == NC_NOERR ? put.n_values : 0);
  status = agree_on_call(
      file, status,
      {{NC_EMULTIDEFINE_ATTR_NAME, put.name},
       {NC_EMULTIDEFINE_ATTR_TYPE, std::int64_t{put.type}},
       {NC_EMULTIDEFINE_ATTR_LEN, std::int64_t{put.n_values}},
       {NC_EMULTIDEFINE_ATTR_VAL, put.values, n_values * model_type_bytes(put.memory_type)}});
  if (status != NC_NOERR) return status;
  Attributes* attributes = attributes_of(file, put.varid);
  ModelAttribute attribute;
  attribute.name = put.name;
  attribute.type = static_cast<ModelType>(put.type);
  attribute.n_values = n_values;
  ModelAttribute* old = find_attribute(*attributes, put.name);
  std::array<std::byte, 8> fill{};
  default_fill_value(attribute.type, fill.data());
  attribute.values.resize(attribute.n_values * model_type_bytes(attribute.type));
  status = convert_values(static_cast<const std::byte*>(put.values), put.memory_type,
                          attribute.values.data(), attribute.type, attribute.n_values, fill.data(),
                          file.loose_bytes());
  if (old != nullptr)
    *old = std::move(attribute);
  else
    attributes->push_back(std::move(attribute));
  if (file.defining) return status;
  const int applied = file.apply_definitions();
  return applied != NC_NOERR ? applied : status;
}

/// Look up an attribute that a function names, in PnetCDF's view.
int look_up(OpenFile& file, int varid, const char* name, ModelAttribute& attribute) {
  Attributes* attributes = attributes_of(file, varid);
  if (attributes == nullptr) return NC_ENOTVAR;
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  const ModelAttribute* found = find_attribute(*attributes, name);
  if (found == nullptr) return NC_ENOTATT;
  attribute = as_seen(*found);
  return NC_NOERR;
}

/// Read an attribute, converted to `memory_type`; by default in the attribute's own type.
int get_attribute(OpenFile& file, int varid, const char* name, void* values,
                  std::optional<ModelType> memory_type) {
  ModelAttribute attribute;
  const int status = look_up(file, varid, name, attribute);
  if (status != NC_NOERR || attribute.n_values == 0) return status;
  const ModelType type = memory_type.value_or(attribute.type);
  if ((attribute.type == ModelType::text_char) != (type == ModelType::text_char)) return NC_ECHAR;
  if (values == nullptr) return NC_EINVAL;
  if (model_type_bytes(attribute.type) == 0) return NC_EBADTYPE;
  std::array<std::byte, 8> fill{};
  default_fill_value(type, fill.data());
  return convert_values(attribute.values.data(), attribute.type, static_cast<std::byte*>(values),
                        type, attribute.n_values, fill.data(), file.loose_bytes());
}

int inquire_attribute(OpenFile& file, int varid, const char* name, nc_type* type,
                      MPI_Offset* n_values) {
  ModelAttribute attribute;
  if (const int status = look_up(file, varid, name, attribute); status != NC_NOERR) return status;
  if (type != nullptr) *type = static_cast<nc_type>(attribute.type);
  if (n_values != nullptr) *n_values = static_cast<MPI_Offset>(attribute.n_values);
  return NC_NOERR;
}

int attribute_number(OpenFile& file, int varid, const char* name, int* number) {
  ModelAttribute attribute;
  if (const int status = look_up(file, varid, name, attribute); status != NC_NOERR) return status;
  Attributes& attributes = *attributes_of(file, varid);
  if (number != nullptr) {
    *number = static_cast<int>(find_attribute(attributes, name) - attributes.data());
  }
  return NC_NOERR;
}

int attribute_name(OpenFile& file, int varid, int number, char* name) {
  const Attributes* attributes = attributes_of(file, varid);
  if (attributes == nullptr) return NC_ENOTVAR;
  if (number < 0 || static_cast<std::size_t>(number) >= attributes->size()) return NC_ENOTATT;
  if (name == nullptr) return NC_EINVAL;
  std::strcpy(name, (*attributes)[static_cast<std::size_t>(number)].name.c_str());
  return NC_NOERR;
}

int rename_attribute(OpenFile& file, int varid, const char* name, const char* new_name) {
  if (file.read_only) return NC_EPERM;
  Attributes* attributes = attributes_of(file, varid);
  if (attributes == nullptr) return NC_ENOTVAR;
  int status = check_sought_name(name);
  if (status == NC_NOERR) status = check_name(new_name);
  if (status != NC_NOERR) return status;
  ModelAttribute* attribute = find_attribute(*attributes, name);
  if (attribute == nullptr) return NC_ENOTATT;
  if (find_attribute(*attributes, new_name) != nullptr) return NC_ENAMEINUSE;
  if (!file.defining && std::strlen(new_name) > attribute->name.size()) return NC_ENOTINDEFINE;
  attribute->name = new_name;
  return file.defining ? NC_NOERR : file.apply_definitions();
}

int delete_attribute(OpenFile& file, int varid, const char* name) {
  if (file.read_only) return NC_EPERM;
  if (!file.defining) return NC_ENOTINDEFINE;
  Attributes* attributes = attributes_of(file, varid);
  if (attributes == nullptr) return NC_ENOTVAR;
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  ModelAttribute* attribute = find_attribute(*attributes, name);
  if (attribute == nullptr) return NC_ENOTATT;
  attributes->erase(attributes->begin() + (attribute - attributes->data()));
  return NC_NOERR;
}

/// Copy an attribute between any two datasets, of Tailrace or of the real library.
int copy_attribute(int ncid_in, int varid_in, const char* name, int ncid_out, int varid_out) {
  OpenFile* out = find_file(ncid_out);
  if (out != nullptr && out->read_only) return NC_EPERM;
  nc_type type = NC_NAT;
  MPI_Offset n_values = 0;
  int status = ncmpi_inq_att(ncid_in, varid_in, name, &type, &n_values);
  if (status != NC_NOERR) return status;
  std::vector<std::byte> values(
      static_cast<std::size_t>(n_values) * model_type_bytes(static_cast<ModelType>(type)) + 1);
  status = ncmpi_get_att(ncid_in, varid_in, name, values.data());
  if (status != NC_NOERR) return status;
  if (type == NC_CHAR) {
    return ncmpi_put_att_text(ncid_out, varid_out, name, n_values,
                              reinterpret_cast<const char*>(values.data()));
  }
  return ncmpi_put_att(ncid_out, varid_out, name, type, n_values, values.data());
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;
using tailrace::ModelType;

static_assert(sizeof(long) == 8, "long is a 64-bit integer in the tables of types");

extern "C" {

TAILRACE_SERVE(ncmpi_inq_att,
               (int ncid, int varid, const char* name, nc_type* xtypep, MPI_Offset* lenp),
               (ncid, varid, name, xtypep, lenp),
               ours::inquire_attribute(file, varid, name, xtypep, lenp))
TAILRACE_SERVE(ncmpi_inq_atttype, (int ncid, int varid, const char* name, nc_type* xtypep),
               (ncid, varid, name, xtypep),
               ours::inquire_attribute(file, varid, name, xtypep, nullptr))
TAILRACE_SERVE(ncmpi_inq_attlen, (int ncid, int varid, const char* name, MPI_Offset* lenp),
               (ncid, varid, name, lenp), ours::inquire_attribute(file, varid, name, nullptr, lenp))
TAILRACE_SERVE(ncmpi_inq_attid, (int ncid, int varid, const char* name, int* idp),
               (ncid, varid, name, idp), ours::attribute_number(file, varid, name, idp))
TAILRACE_SERVE(ncmpi_inq_attname, (int ncid, int varid, int attnum, char* name),
               (ncid, varid, attnum, name), ours::attribute_name(file, varid, attnum, name))
TAILRACE_SERVE(ncmpi_rename_att, (int ncid, int varid, const char* name, const char* newname),
               (ncid, varid, name, newname), ours::rename_attribute(file, varid, name, newname))
TAILRACE_SERVE(ncmpi_del_att, (int ncid, int varid, const char* name), (ncid, varid, name),
               ours::delete_attribute(file, varid, name))

int ncmpi_copy_att(int ncid_in, int varid_in, const char* name, int ncid_out, int varid_out) {
  const bool none = ours::find_file(ncid_in) == nullptr && ours::find_file(ncid_out) == nullptr;
  if (none) {
    const auto real = ours::real_function<decltype(&ncmpi_copy_att)>("ncmpi_copy_att");
    return real == nullptr ? NC_EBADID : real(ncid_in, varid_in, name, ncid_out, varid_out);
  }
  return ours::guarded(
      [&] { return ours::copy_attribute(ncid_in, varid_in, name, ncid_out, varid_out); });
}

// Functions for values of the attribute's own type.
TAILRACE_SERVE(
    ncmpi_put_att,
    (int ncid, int varid, const char* name, nc_type xtype, MPI_Offset nelems, const void* value),
    (ncid, varid, name, xtype, nelems, value),
    ours::put_attribute(file, {varid, name, xtype, nelems, value, static_cast<ModelType>(xtype)}))
TAILRACE_SERVE(ncmpi_get_att, (int ncid, int varid, const char* name, void* value),
               (ncid, varid, name, value),
               ours::get_attribute(file, varid, name, value, std::nullopt))

TAILRACE_SERVE(ncmpi_put_att_text,
               (int ncid, int varid, const char* name, MPI_Offset len, const char* op),
               (ncid, varid, name, len, op),
               ours::put_attribute(file, {varid, name, NC_CHAR, len, op, ModelType::text_char}))
TAILRACE_SERVE(ncmpi_get_att_text, (int ncid, int varid, const char* name, char* ip),
               (ncid, varid, name, ip),
               ours::get_attribute(file, varid, name, ip, ModelType::text_char))

// Function names and parameter lists cannot be parenthesized.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_ATTRIBUTE(suffix, T, type)                                                \
  TAILRACE_SERVE(                                                                          \
      ncmpi_put_att_##suffix,                                                              \
      (int ncid, int varid, const char* name, nc_type xtype, MPI_Offset len, const T* op), \
      (ncid, varid, name, xtype, len, op),                                                 \
      ours::put_attribute(file, {varid, name, xtype, len, op, ModelType::type}))           \
  TAILRACE_SERVE(ncmpi_get_att_##suffix, (int ncid, int varid, const char* name, T* ip),   \
                 (ncid, varid, name, ip),                                                  \
                 ours::get_attribute(file, varid, name, ip, ModelType::type))

TAILRACE_ATTRIBUTE(schar, signed char, i8)
TAILRACE_ATTRIBUTE(uchar, unsigned char, u8)
TAILRACE_ATTRIBUTE(ubyte, unsigned char, u8)
TAILRACE_ATTRIBUTE(short, short, i16)
TAILRACE_ATTRIBUTE(ushort, unsigned short, u16)
TAILRACE_ATTRIBUTE(int, int, i32)
TAILRACE_ATTRIBUTE(uint, unsigned int, u32)
TAILRACE_ATTRIBUTE(long, long, i64)
TAILRACE_ATTRIBUTE(float, float, f32)
TAILRACE_ATTRIBUTE(double, double, f64)
TAILRACE_ATTRIBUTE(longlong, long long, i64)
TAILRACE_ATTRIBUTE(ulonglong, unsigned long long, u64)

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
