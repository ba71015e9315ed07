// Dimensions and variables: definition, renaming, fill values, inquiry.
//
// Names and numbers are stored in the model of open_file.hpp. The file receives them at enddef, or
// immediately if PnetCDF allows a change in data mode.

#include <array>
#include <cstring>

#include "pnetcdf/netcdf_rules.hpp"
#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {
namespace {

MPI_Offset largest_length(int format) {
  if (format == NC_FORMAT_CLASSIC) return MPI_Offset{NC_MAX_INT} - 3;
  if (format == NC_FORMAT_CDF2) return MPI_Offset{NC_MAX_UINT} - 3;
  return NC_MAX_INT64;
}

int check_dimension(const OpenFile& file, const char* name, MPI_Offset length) {
  if (!file.defining) return NC_ENOTINDEFINE;
  if (const int status = check_name(name); status != NC_NOERR) return status;
  if (length < 0 || length > largest_length(file.format)) return NC_EDIMSIZE;
  if (length == NC_UNLIMITED && file.unlimited() >= 0) return NC_EUNLIMIT;
  return file.find_dimension(name) ? NC_ENAMEINUSE : NC_NOERR;
}

int define_dimension(OpenFile& file, const char* name, MPI_Offset length, int* dimid) {
  const int status = agree_on_call(
      file, check_dimension(file, name, length),
      {{NC_EMULTIDEFINE_DIM_NAME, name}, {NC_EMULTIDEFINE_DIM_SIZE, std::int64_t{length}}});
  if (status != NC_NOERR) return status;
  ModelDimension dimension;
  dimension.name = name;
  dimension.length = static_cast<std::uint64_t>(length);
  dimension.unlimited = length == NC_UNLIMITED;
  file.next.dimensions.push_back(dimension);
  file.dimensions.push_back(file.next.dimensions.size() - 1);
  if (dimid != nullptr) *dimid = static_cast<int>(file.dimensions.size()) - 1;
  return NC_NOERR;
}

int check_type(const OpenFile& file, nc_type type) {
  if (type <= 0 || type > NC_UINT64) return NC_EBADTYPE;
  if (type <= NC_DOUBLE) return NC_NOERR;
  if (file.loose_bytes()) return NC_ESTRICTCDF2;  // CDF-1 and CDF-2
  return file.format == NC_FORMAT_NETCDF4_CLASSIC ? NC_ESTRICTNC3 : NC_NOERR;
}

int check_variable(OpenFile& file, const char* name, nc_type type, int n_dimensions,
                   const int* dimids) {
  if (!file.defining) return NC_ENOTINDEFINE;
  int status = check_name(name);
  if (status == NC_NOERR) status = check_type(file, type);
  if (status != NC_NOERR) return status;
  if (n_dimensions < 0) return NC_EINVAL;
  if (file.find_variable(name)) return NC_ENAMEINUSE;
  if (n_dimensions > 0 && dimids == nullptr) return NC_EINVAL;
  for (int i = 0; i < n_dimensions; ++i) {
    if (!file.has_dimension(dimids[i])) return NC_EBADDIM;
    if (i > 0 && file.dimension(dimids[i]).unlimited) return NC_EUNLIMPOS;
  }
  return NC_NOERR;
}

int define_variable(OpenFile& file, const char* name, nc_type type, int n_dimensions,
                    const int* dimids, int* varid) {
  int status = check_variable(file, name, type, n_dimensions, dimids);
  const auto n = static_cast<std::size_t>(status == NC_NOERR ? n_dimensions : 0);
  status = agree_on_call(file, status,
                         {{NC_EMULTIDEFINE_VAR_NAME, name},
                          {NC_EMULTIDEFINE_VAR_TYPE, std::int64_t{type}},
                          {NC_EMULTIDEFINE_VAR_NDIMS, std::int64_t{n_dimensions}},
                          {NC_EMULTIDEFINE_VAR_DIMIDS, dimids, n * sizeof(int)}});
  if (status != NC_NOERR) return status;
  ModelVariable variable;
  variable.name = name;
  variable.type = static_cast<ModelType>(type);
  variable.no_fill = !file.fill;
  for (std::size_t i = 0; i < n; ++i) {
    variable.dimensions.push_back(file.dimensions[static_cast<std::size_t>(dimids[i])]);
  }
  file.next.variables.push_back(std::move(variable));
  file.variables.push_back(file.next.variables.size() - 1);
  if (varid != nullptr) *varid = static_cast<int>(file.variables.size()) - 1;
  return NC_NOERR;
}

/// Rename an object. In data mode a name must not become longer: the classic header has no space
/// for more, and programs must see the same behaviour here.
int change_name(OpenFile& file, std::string& name, const char* new_name) {
  if (!file.defining && std::strlen(new_name) > name.size()) return NC_ENOTINDEFINE;
  name = new_name;
  return file.defining ? NC_NOERR : file.apply_definitions();
}

int rename_dimension(OpenFile& file, int dimid, const char* name) {
  if (file.read_only) return NC_EPERM;
  if (const int status = check_name(name); status != NC_NOERR) return status;
  if (!file.has_dimension(dimid)) return NC_EBADDIM;
  if (const std::optional<int> other = file.find_dimension(name)) {
    return *other == dimid ? NC_NOERR : NC_ENAMEINUSE;
  }
  return change_name(file, file.dimension(dimid).name, name);
}

int rename_variable(OpenFile& file, int varid, const char* name) {
  if (file.read_only) return NC_EPERM;
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  if (const int status = check_name(name); status != NC_NOERR) return status;
  if (file.find_variable(name)) return NC_ENAMEINUSE;
  return change_name(file, file.variable(varid).name, name);
}

int find_dimension_number(const OpenFile& file, const char* name, int* dimid) {
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  const std::optional<int> found = file.find_dimension(name);
  if (!found) return NC_EBADDIM;
  if (dimid != nullptr) *dimid = *found;
  return NC_NOERR;
}

int inquire_dimension(OpenFile& file, int dimid, char* name, MPI_Offset* length) {
  if (!file.has_dimension(dimid)) return NC_EBADDIM;
  const std::size_t position = file.dimensions[static_cast<std::size_t>(dimid)];
  if (name != nullptr) std::strcpy(name, file.next.dimensions[position].name.c_str());
  if (length != nullptr) *length = static_cast<MPI_Offset>(file.length_of(position));
  return NC_NOERR;
}

int find_variable_number(const OpenFile& file, const char* name, int* varid) {
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  const std::optional<int> found = file.find_variable(name);
  if (!found) return NC_ENOTVAR;
  if (varid != nullptr) *varid = *found;
  return NC_NOERR;
}

struct VariableAnswers {
  char* name = nullptr;
  nc_type* type = nullptr;
  int* n_dimensions = nullptr;
  int* dimids = nullptr;
  int* n_attributes = nullptr;
};

int inquire_variable(OpenFile& file, int varid, const VariableAnswers& answers) {
  if (varid == NC_GLOBAL) {
    const bool more = answers.name != nullptr || answers.type != nullptr ||
                      answers.n_dimensions != nullptr || answers.dimids != nullptr;
    if (more) return NC_EGLOBAL;
    if (answers.n_attributes != nullptr) {
      *answers.n_attributes = static_cast<int>(file.next.groups[0].attributes.size());
    }
    return NC_NOERR;  // netCDF-C asks for nothing to test whether the variable exists
  }
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  const ModelVariable& variable = file.variable(varid);
  if (answers.name != nullptr) std::strcpy(answers.name, variable.name.c_str());
  if (answers.type != nullptr) *answers.type = static_cast<nc_type>(variable.type);
  if (answers.n_dimensions != nullptr) {
    *answers.n_dimensions = static_cast<int>(variable.dimensions.size());
  }
  for (std::size_t i = 0; answers.dimids != nullptr && i < variable.dimensions.size(); ++i) {
    answers.dimids[i] = file.dimension_number(variable.dimensions[i]);
  }
  if (answers.n_attributes != nullptr) {
    *answers.n_attributes = static_cast<int>(variable.attributes.size());
  }
  return NC_NOERR;
}

/// Answer an inquiry that rejects NC_GLOBAL even if nothing is asked.
int inquire_real_variable(OpenFile& file, int varid, const VariableAnswers& answers) {
  return varid == NC_GLOBAL ? NC_EGLOBAL : inquire_variable(file, varid, answers);
}

/// Reject an inquiry about a variable's offset: its chunks can lie anywhere in the file.
int place_of_variable(OpenFile& file, int varid) {
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  return not_served("ncmpi_inq_varoffset");
}

int define_fill(OpenFile& file, int varid, int no_fill, const void* value) {
  if (!file.defining) return NC_ENOTINDEFINE;
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  const ModelType type = file.variable(varid).type;
  if (file.variables[static_cast<std::size_t>(varid)] >= file.n_stored_variables) {
    file.variable(varid).no_fill = no_fill != 0;
  }
  if (no_fill != 0 || value == nullptr) return NC_NOERR;
  return ncmpi_put_att(file.id, varid, "_FillValue", static_cast<nc_type>(type), 1, value);
}

int inquire_fill(OpenFile& file, int varid, int* no_fill, void* value) {
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  const ModelVariable& variable = file.variable(varid);
  if (model_type_bytes(variable.type) == 0) return NC_EBADTYPE;
  if (no_fill != nullptr) *no_fill = variable.no_fill ? 1 : 0;
  if (value != nullptr) file.fill_value_of(varid, static_cast<std::byte*>(value));
  return NC_NOERR;
}

/// Write one record of fill values; each rank writes a part. Collective.
int fill_record(OpenFile& file, int varid, MPI_Offset record) {
  if (file.read_only) return NC_EPERM;
  if (file.defining) return NC_EINDEFINE;
  if (file.independent) return NC_EINDEP;
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  if (!file.is_record_variable(varid)) return NC_ENOTRECVAR;
  const ModelVariable& variable = file.variable(varid);
  if (variable.no_fill && variable.attribute("_FillValue") == nullptr) return NC_ENOTFILL;
  if (record < 0) return NC_EINVAL;

  Slab share = Slab::of(whole_box(file.shape_of(varid)));
  share.start[0] = static_cast<std::uint64_t>(record);
  share.count[0] = 1;
  const auto rank = static_cast<std::uint64_t>(file.array->comm().rank());
  const auto n_ranks = static_cast<std::uint64_t>(file.array->comm().n_ranks());
  if (share.rank() > 1) {
    const std::uint64_t length = share.count[1];
    share.start[1] = length * rank / n_ranks;
    share.count[1] = length * (rank + 1) / n_ranks - share.start[1];
  } else if (rank != 0) {
    share.count[0] = 0;
  }
  const std::size_t element_bytes = model_type_bytes(variable.type);
  Status put;
  if (!share.empty()) {
    std::array<std::byte, 8> fill{};
    file.fill_value_of(varid, fill.data());
    std::vector<std::byte> values(share.n_elements() * element_bytes);
    for (std::size_t at = 0; at < values.size(); at += element_bytes) {
      std::memcpy(&values[at], fill.data(), element_bytes);
    }
    put = file.array->put(file.variables[static_cast<std::size_t>(varid)], share, values);
  }
  const int status = report_failure(put);
  const int ended = report_failure(file.array->end_collective_put(), file.array->comm());
  return status != NC_NOERR ? status : ended;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

TAILRACE_SERVE(ncmpi_def_dim, (int ncid, const char* name, MPI_Offset len, int* idp),
               (ncid, name, len, idp), ours::define_dimension(file, name, len, idp))
TAILRACE_SERVE(ncmpi_def_var,
               (int ncid, const char* name, nc_type xtype, int ndims, const int* dimidsp,
                int* varidp),
               (ncid, name, xtype, ndims, dimidsp, varidp),
               ours::define_variable(file, name, xtype, ndims, dimidsp, varidp))
TAILRACE_SERVE(ncmpi_rename_dim, (int ncid, int dimid, const char* name), (ncid, dimid, name),
               ours::rename_dimension(file, dimid, name))
TAILRACE_SERVE(ncmpi_rename_var, (int ncid, int varid, const char* name), (ncid, varid, name),
               ours::rename_variable(file, varid, name))

TAILRACE_SERVE(ncmpi_inq_dimid, (int ncid, const char* name, int* idp), (ncid, name, idp),
               ours::find_dimension_number(file, name, idp))
TAILRACE_SERVE(ncmpi_inq_dim, (int ncid, int dimid, char* name, MPI_Offset* lenp),
               (ncid, dimid, name, lenp), ours::inquire_dimension(file, dimid, name, lenp))
TAILRACE_SERVE(ncmpi_inq_dimname, (int ncid, int dimid, char* name), (ncid, dimid, name),
               ours::inquire_dimension(file, dimid, name, nullptr))
TAILRACE_SERVE(ncmpi_inq_dimlen, (int ncid, int dimid, MPI_Offset* lenp), (ncid, dimid, lenp),
               ours::inquire_dimension(file, dimid, nullptr, lenp))

TAILRACE_SERVE(ncmpi_inq_varid, (int ncid, const char* name, int* varidp), (ncid, name, varidp),
               ours::find_variable_number(file, name, varidp))
TAILRACE_SERVE(ncmpi_inq_var,
               (int ncid, int varid, char* name, nc_type* xtypep, int* ndimsp, int* dimidsp,
                int* nattsp),
               (ncid, varid, name, xtypep, ndimsp, dimidsp, nattsp),
               ours::inquire_variable(file, varid, {name, xtypep, ndimsp, dimidsp, nattsp}))
TAILRACE_SERVE(ncmpi_inq_varname, (int ncid, int varid, char* name), (ncid, varid, name),
               ours::inquire_real_variable(file, varid, {.name = name}))
TAILRACE_SERVE(ncmpi_inq_vartype, (int ncid, int varid, nc_type* xtypep), (ncid, varid, xtypep),
               ours::inquire_real_variable(file, varid, {.type = xtypep}))
TAILRACE_SERVE(ncmpi_inq_varndims, (int ncid, int varid, int* ndimsp), (ncid, varid, ndimsp),
               ours::inquire_real_variable(file, varid, {.n_dimensions = ndimsp}))
TAILRACE_SERVE(ncmpi_inq_vardimid, (int ncid, int varid, int* dimidsp), (ncid, varid, dimidsp),
               ours::inquire_real_variable(file, varid, {.dimids = dimidsp}))
TAILRACE_SERVE(ncmpi_inq_varnatts, (int ncid, int varid, int* nattsp), (ncid, varid, nattsp),
               ours::inquire_variable(file, varid, {.n_attributes = nattsp}))
TAILRACE_SERVE(ncmpi_inq_varoffset, (int ncid, int varid, MPI_Offset* offset),
               (ncid, varid, offset), ours::place_of_variable(file, varid))

TAILRACE_SERVE(ncmpi_def_var_fill, (int ncid, int varid, int no_fill, const void* fill_value),
               (ncid, varid, no_fill, fill_value),
               ours::define_fill(file, varid, no_fill, fill_value))
TAILRACE_SERVE(ncmpi_inq_var_fill, (int ncid, int varid, int* no_fill, void* fill_value),
               (ncid, varid, no_fill, fill_value),
               ours::inquire_fill(file, varid, no_fill, fill_value))
TAILRACE_SERVE(ncmpi_fill_var_rec, (int ncid, int varid, MPI_Offset recno), (ncid, varid, recno),
               ours::fill_record(file, varid, recno))

}  // extern "C"
