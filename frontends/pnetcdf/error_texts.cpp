// ncmpi_strerror and ncmpi_strerrno: the text and the name of an error.
//
// The real library's results are used if it exists, because programs print and compare them.
// Otherwise, the texts of netCDF's own codes are the usual ones, and the others are Tailrace's. A
// positive number is an errno.

#include <pnetcdf.h>

#include <cstring>

#include "pnetcdf/real_library.hpp"

namespace tailrace::pnetcdf {
namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

#define TAILRACE_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    TAILRACE_ERROR(NC_NOERR, "No error"),
    TAILRACE_ERROR(NC_EBADID, "NetCDF: Not a valid ID"),
    TAILRACE_ERROR(NC_ENFILE, "NetCDF: Too many files open"),
    TAILRACE_ERROR(NC_EEXIST, "NetCDF: File exists && NC_NOCLOBBER"),
    TAILRACE_ERROR(NC_EINVAL, "NetCDF: Invalid argument"),
    TAILRACE_ERROR(NC_EPERM, "NetCDF: Write to read only"),
    TAILRACE_ERROR(NC_ENOTINDEFINE, "NetCDF: Operation not allowed in data mode"),
    TAILRACE_ERROR(NC_EINDEFINE, "NetCDF: Operation not allowed in define mode"),
    TAILRACE_ERROR(NC_EINVALCOORDS, "NetCDF: Index exceeds dimension bound"),
    TAILRACE_ERROR(NC_EMAXDIMS, "NetCDF: NC_MAX_DIMS or NC_MAX_VAR_DIMS exceeded"),
    TAILRACE_ERROR(NC_ENAMEINUSE, "NetCDF: String match to name in use"),
    TAILRACE_ERROR(NC_ENOTATT, "NetCDF: Attribute not found"),
    TAILRACE_ERROR(NC_EMAXATTS, "NetCDF: NC_MAX_ATTRS exceeded"),
    TAILRACE_ERROR(NC_EBADTYPE, "NetCDF: Not a valid data type or _FillValue type mismatch"),
    TAILRACE_ERROR(NC_EBADDIM, "NetCDF: Invalid dimension ID or name"),
    TAILRACE_ERROR(NC_EUNLIMPOS, "NetCDF: NC_UNLIMITED in the wrong index"),
    TAILRACE_ERROR(NC_EMAXVARS, "NetCDF: NC_MAX_VARS exceeded"),
    TAILRACE_ERROR(NC_ENOTVAR, "NetCDF: Variable not found"),
    TAILRACE_ERROR(NC_EGLOBAL, "NetCDF: Action prohibited on NC_GLOBAL varid"),
    TAILRACE_ERROR(NC_ENOTNC,
                   "NetCDF: Unknown file format (file format violates CDF specification)"),
    TAILRACE_ERROR(NC_ESTS, "NetCDF: In Fortran, string too short"),
    TAILRACE_ERROR(NC_EMAXNAME, "NetCDF: NC_MAX_NAME exceeded"),
    TAILRACE_ERROR(NC_EUNLIMIT, "NetCDF: NC_UNLIMITED size already in use"),
    TAILRACE_ERROR(NC_ENORECVARS, "NetCDF: nc_rec op when there are no record vars"),
    TAILRACE_ERROR(NC_ECHAR, "NetCDF: Attempt to convert between text & numbers"),
    TAILRACE_ERROR(NC_EEDGE, "NetCDF: Start+count exceeds dimension bound"),
    TAILRACE_ERROR(NC_ESTRIDE, "NetCDF: Illegal stride"),
    TAILRACE_ERROR(NC_EBADNAME, "NetCDF: Name contains illegal characters"),
    TAILRACE_ERROR(NC_ERANGE, "NetCDF: Numeric conversion not representable"),
    TAILRACE_ERROR(NC_ENOMEM, "NetCDF: Memory allocation (malloc) failure"),
    TAILRACE_ERROR(NC_EVARSIZE, "NetCDF: One or more variable sizes violate format constraints"),
    TAILRACE_ERROR(NC_EDIMSIZE, "NetCDF: Invalid dimension size"),
    TAILRACE_ERROR(NC_ETRUNC, "PnetCDF: file cut short"),
    TAILRACE_ERROR(NC_EIO, "PnetCDF: input or output failed"),
    TAILRACE_ERROR(NC_EACCESS, "PnetCDF: access denied"),
    TAILRACE_ERROR(NC_EINTERNAL, "PnetCDF: an internal error of the library"),
    TAILRACE_ERROR(NC_ENOTNC4, "PnetCDF: an operation of netCDF-4 on a classic file"),
    TAILRACE_ERROR(NC_ESTRICTNC3,
                   "PnetCDF: an operation of netCDF-4 on a file of the classic model"),
    TAILRACE_ERROR(NC_ELATEFILL, "PnetCDF: a fill value after the variable was stored"),
    TAILRACE_ERROR(NC_ENOTBUILT, "PnetCDF: a feature that this library is built without"),
    TAILRACE_ERROR(NC_EMPI, "PnetCDF: an MPI function failed"),
    TAILRACE_ERROR(NC_EFILTER, "PnetCDF: a filter failed or is missing"),
    TAILRACE_ERROR(NC_ESMALL, "PnetCDF: a size that this format cannot hold"),
    TAILRACE_ERROR(NC_ENOTINDEP, "PnetCDF: not allowed in collective data mode"),
    TAILRACE_ERROR(NC_EINDEP, "PnetCDF: not allowed in independent data mode"),
    TAILRACE_ERROR(NC_EFILE, "PnetCDF: a file operation failed"),
    TAILRACE_ERROR(NC_EREAD, "PnetCDF: reading the file failed"),
    TAILRACE_ERROR(NC_EWRITE, "PnetCDF: writing the file failed"),
    TAILRACE_ERROR(NC_EOFILE, "PnetCDF: the file cannot be opened or created"),
    TAILRACE_ERROR(NC_EMULTITYPES, "PnetCDF: an MPI datatype of several element types"),
    TAILRACE_ERROR(NC_EIOMISMATCH,
                   "PnetCDF: memory and request differ in their number of elements"),
    TAILRACE_ERROR(NC_ENEGATIVECNT, "PnetCDF: a negative count"),
    TAILRACE_ERROR(NC_EUNSPTETYPE, "PnetCDF: an MPI datatype of unsupported elements"),
    TAILRACE_ERROR(NC_EINVAL_REQUEST, "PnetCDF: no such nonblocking request"),
    TAILRACE_ERROR(NC_EAINT_TOO_SMALL, "PnetCDF: a value too large for MPI_Aint"),
    TAILRACE_ERROR(NC_ENOTSUPPORT, "PnetCDF: not supported"),
    TAILRACE_ERROR(NC_ENULLBUF, "PnetCDF: a buffer of no size"),
    TAILRACE_ERROR(NC_EPREVATTACHBUF, "PnetCDF: a buffer is attached already"),
    TAILRACE_ERROR(NC_ENULLABUF, "PnetCDF: no buffer is attached"),
    TAILRACE_ERROR(NC_EPENDINGBPUT, "PnetCDF: buffered puts are pending"),
    TAILRACE_ERROR(NC_EINSUFFBUF, "PnetCDF: the attached buffer is too small"),
    TAILRACE_ERROR(NC_ENOENT, "PnetCDF: no such file"),
    TAILRACE_ERROR(NC_EINTOVERFLOW, "PnetCDF: a number too large for an int"),
    TAILRACE_ERROR(NC_ENOTENABLED, "PnetCDF: a feature that is not enabled"),
    TAILRACE_ERROR(NC_EBAD_FILE, "PnetCDF: an invalid file name"),
    TAILRACE_ERROR(NC_ENO_SPACE, "PnetCDF: no space left"),
    TAILRACE_ERROR(NC_EQUOTA, "PnetCDF: quota exceeded"),
    TAILRACE_ERROR(NC_ENULLSTART, "PnetCDF: start is NULL"),
    TAILRACE_ERROR(NC_ENULLCOUNT, "PnetCDF: count is NULL"),
    TAILRACE_ERROR(NC_EINVAL_CMODE, "PnetCDF: invalid flags for create"),
    TAILRACE_ERROR(NC_ETYPESIZE, "PnetCDF: an MPI datatype larger than the variable"),
    TAILRACE_ERROR(NC_ETYPE_MISMATCH, "PnetCDF: MPI datatype and variable differ in type"),
    TAILRACE_ERROR(NC_ETYPESIZE_MISMATCH, "PnetCDF: sizes of the types in file and memory differ"),
    TAILRACE_ERROR(NC_ESTRICTCDF2, "PnetCDF: a type that only CDF-5 has"),
    TAILRACE_ERROR(NC_ENOTRECVAR, "PnetCDF: not a record variable"),
    TAILRACE_ERROR(NC_ENOTFILL, "PnetCDF: the variable is not in fill mode"),
    TAILRACE_ERROR(NC_EINVAL_OMODE, "PnetCDF: invalid flags for open"),
    TAILRACE_ERROR(NC_EPENDING, "PnetCDF: requests were pending at close"),
    TAILRACE_ERROR(NC_EMAX_REQ, "PnetCDF: a request larger than INT_MAX"),
    TAILRACE_ERROR(NC_EBADLOG, "PnetCDF: an unknown log file"),
    TAILRACE_ERROR(NC_EFLUSHED, "PnetCDF: the request is written already"),
    TAILRACE_ERROR(NC_EMULTIDEFINE, "PnetCDF: ranks have defined different things"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_OMODE, "PnetCDF: ranks differ in flags for open"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_CMODE, "PnetCDF: ranks differ in flags for create"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_FNC_ARGS,
                   "PnetCDF: ranks differ in arguments of a collective function"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_DIM_NUM, "PnetCDF: ranks differ in number of dimensions"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_DIM_SIZE, "PnetCDF: ranks differ in a dimension's length"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_DIM_NAME, "PnetCDF: ranks differ in a dimension's name"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_NUM, "PnetCDF: ranks differ in number of variables"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_NAME, "PnetCDF: ranks differ in a variable's name"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_NDIMS, "PnetCDF: ranks differ in a variable's dimensions"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_DIMIDS, "PnetCDF: ranks differ in a variable's dimensions"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_TYPE, "PnetCDF: ranks differ in a variable's type"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_LEN, "PnetCDF: ranks differ in a variable's size"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_NUMRECS, "PnetCDF: ranks differ in number of records"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_BEGIN, "PnetCDF: ranks differ in a variable's place"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_NUM, "PnetCDF: ranks differ in number of attributes"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_SIZE, "PnetCDF: ranks differ in an attribute's size"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_NAME, "PnetCDF: ranks differ in an attribute's name"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_TYPE, "PnetCDF: ranks differ in an attribute's type"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_LEN, "PnetCDF: ranks differ in an attribute's length"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_ATTR_VAL, "PnetCDF: ranks differ in an attribute's value"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_FILL_MODE, "PnetCDF: ranks differ in fill mode"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_FILL_MODE,
                   "PnetCDF: ranks differ in a variable's fill mode"),
    TAILRACE_ERROR(NC_EMULTIDEFINE_VAR_FILL_VALUE,
                   "PnetCDF: ranks differ in a variable's fill value"),
    TAILRACE_ERROR(NC_EHDFERR, "PnetCDF: HDF5 failed"),
    TAILRACE_ERROR(NC_ECANTREAD, "PnetCDF: cannot read"),
    TAILRACE_ERROR(NC_ECANTWRITE, "PnetCDF: cannot write"),
    TAILRACE_ERROR(NC_ECANTCREATE, "PnetCDF: cannot create"),
    TAILRACE_ERROR(NC_EATTEXISTS, "PnetCDF: the attribute exists"),
    TAILRACE_ERROR(NC_ENOPAR, "PnetCDF: not opened for parallel access"),
    TAILRACE_ERROR(NC_ENULLPAD, "PnetCDF: header not padded with zeros"),
    TAILRACE_ERROR(NC_EAXISTYPE, "PnetCDF: an unknown axis type"),
    TAILRACE_ERROR(NC_EDAP, "PnetCDF: a DAP error"),
    TAILRACE_ERROR(NC_ECURL, "PnetCDF: a libcurl error"),
    TAILRACE_ERROR(NC_ENODATA, "PnetCDF: no data"),
    TAILRACE_ERROR(NC_EDAPSVC, "PnetCDF: a DAP server error"),
    TAILRACE_ERROR(NC_EDAS, "PnetCDF: a bad DAP attribute response"),
    TAILRACE_ERROR(NC_EDDS, "PnetCDF: a bad DAP structure response"),
    TAILRACE_ERROR(NC_EDATADDS, "PnetCDF: a bad DAP data response"),
    TAILRACE_ERROR(NC_EDAPURL, "PnetCDF: a bad DAP address"),
    TAILRACE_ERROR(NC_EDAPCONSTRAINT, "PnetCDF: a bad DAP constraint"),
    TAILRACE_ERROR(NC_ETRANSLATION, "PnetCDF: a DAP translation failed"),
    TAILRACE_ERROR(NC_EAUTH, "PnetCDF: not authorised"),
    TAILRACE_ERROR(NC_ENOTFOUND, "PnetCDF: no such object"),
    TAILRACE_ERROR(NC_ECANTREMOVE, "PnetCDF: cannot remove"),
    TAILRACE_ERROR(NC_EPNETCDF, "PnetCDF: PnetCDF failed below netCDF"),
    TAILRACE_ERROR(NC_EFILEMETA, "PnetCDF: the file's metadata are damaged"),
    TAILRACE_ERROR(NC_EDIMMETA, "PnetCDF: a dimension's metadata are damaged"),
    TAILRACE_ERROR(NC_EATTMETA, "PnetCDF: an attribute's metadata are damaged"),
    TAILRACE_ERROR(NC_EVARMETA, "PnetCDF: a variable's metadata are damaged"),
    TAILRACE_ERROR(NC_ENOCOMPOUND, "PnetCDF: not a compound type"),
    TAILRACE_ERROR(NC_ENOTNC3, "PnetCDF: an operation of classic netCDF on a file of netCDF-4"),
    TAILRACE_ERROR(NC_EPARINIT, "PnetCDF: parallel access cannot begin"),
    TAILRACE_ERROR(NC_EBADGRPID, "PnetCDF: no such group"),
    TAILRACE_ERROR(NC_EBADTYPID, "PnetCDF: no such type"),
    TAILRACE_ERROR(NC_ETYPDEFINED, "PnetCDF: the type is defined already"),
    TAILRACE_ERROR(NC_EBADFIELD, "PnetCDF: no such field"),
    TAILRACE_ERROR(NC_EBADCLASS, "PnetCDF: no such class of type"),
    TAILRACE_ERROR(NC_EMAPTYPE, "PnetCDF: mapped access to a compound type"),
    TAILRACE_ERROR(NC_ELATEDEF, "PnetCDF: a definition after the variable was stored"),
    TAILRACE_ERROR(NC_EDIMSCALE, "PnetCDF: dimension scales failed"),
    TAILRACE_ERROR(NC_ENOGRP, "PnetCDF: no group was found"),
    TAILRACE_ERROR(NC_ESTORAGE, "PnetCDF: contiguous and chunked do not go together"),
    TAILRACE_ERROR(NC_EBADCHUNK, "PnetCDF: invalid chunk lengths"),
    TAILRACE_ERROR(NC_EDISKLESS, "PnetCDF: a file in memory failed"),
    TAILRACE_ERROR(NC_ECANTEXTEND, "PnetCDF: cannot extend a dimension in independent mode"),
    TAILRACE_ERROR(NC_ERCFILE, "PnetCDF: the settings file cannot be read"),
    TAILRACE_ERROR(NC_EINMEMORY, "PnetCDF: a file in memory cannot do that"),
    TAILRACE_ERROR(NC_ENOFILTER, "PnetCDF: no such filter on the variable"),
    TAILRACE_ERROR(NC_EADIOS, "PnetCDF: ADIOS failed"),
};

/// Call the real library's function of this name, or use `own` if it does not exist.
template <class Own>
const char* error_text(const char* function, int code, Own own) {
  const auto real = real_function<const char* (*)(int)>(function);
  if (real != nullptr) return real(code);
  if (code > 0) return std::strerror(code);
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return own(error);
  }
  return nullptr;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

const char* ncmpi_strerror(int err) {
  const char* text =
      ours::error_text("ncmpi_strerror", err, [](const auto& error) { return error.text; });
  return text == nullptr ? "Unknown Error" : text;
}

const char* ncmpi_strerrno(int err) {
  const char* name =
      ours::error_text("ncmpi_strerrno", err, [](const auto& error) { return error.name; });
  return name == nullptr ? "Unknown code" : name;
}

}  // extern "C"
