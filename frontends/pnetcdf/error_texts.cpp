// ncmpi_strerror and ncmpi_strerrno: an error's text and its name.
//
// Programs compare the texts of netCDF's own codes, so these are as everywhere; the rest is ours. A
// positive number is the system's.

#include <pnetcdf.h>

#include <cstring>

namespace tailrace::pnetcdf {
namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {NC_NOERR, "NC_NOERR", "No error"},
    {NC_EBADID, "NC_EBADID", "NetCDF: Not a valid ID"},
    {NC_ENFILE, "NC_ENFILE", "NetCDF: Too many files open"},
    {NC_EEXIST, "NC_EEXIST", "NetCDF: File exists && NC_NOCLOBBER"},
    {NC_EINVAL, "NC_EINVAL", "NetCDF: Invalid argument"},
    {NC_EPERM, "NC_EPERM", "NetCDF: Write to read only"},
    {NC_ENOTINDEFINE, "NC_ENOTINDEFINE", "NetCDF: Operation not allowed in data mode"},
    {NC_EINDEFINE, "NC_EINDEFINE", "NetCDF: Operation not allowed in define mode"},
    {NC_EINVALCOORDS, "NC_EINVALCOORDS", "NetCDF: Index exceeds dimension bound"},
    {NC_EMAXDIMS, "NC_EMAXDIMS", "NetCDF: NC_MAX_DIMS or NC_MAX_VAR_DIMS exceeded"},
    {NC_ENAMEINUSE, "NC_ENAMEINUSE", "NetCDF: String match to name in use"},
    {NC_ENOTATT, "NC_ENOTATT", "NetCDF: Attribute not found"},
    {NC_EMAXATTS, "NC_EMAXATTS", "NetCDF: NC_MAX_ATTRS exceeded"},
    {NC_EBADTYPE, "NC_EBADTYPE", "NetCDF: Not a valid data type or _FillValue type mismatch"},
    {NC_EBADDIM, "NC_EBADDIM", "NetCDF: Invalid dimension ID or name"},
    {NC_EUNLIMPOS, "NC_EUNLIMPOS", "NetCDF: NC_UNLIMITED in the wrong index"},
    {NC_EMAXVARS, "NC_EMAXVARS", "NetCDF: NC_MAX_VARS exceeded"},
    {NC_ENOTVAR, "NC_ENOTVAR", "NetCDF: Variable not found"},
    {NC_EGLOBAL, "NC_EGLOBAL", "NetCDF: Action prohibited on NC_GLOBAL varid"},
    {NC_ENOTNC, "NC_ENOTNC",
     "NetCDF: Unknown file format (file format violates CDF specification)"},
    {NC_ESTS, "NC_ESTS", "NetCDF: In Fortran, string too short"},
    {NC_EMAXNAME, "NC_EMAXNAME", "NetCDF: NC_MAX_NAME exceeded"},
    {NC_EUNLIMIT, "NC_EUNLIMIT", "NetCDF: NC_UNLIMITED size already in use"},
    {NC_ENORECVARS, "NC_ENORECVARS", "NetCDF: nc_rec op when there are no record vars"},
    {NC_ECHAR, "NC_ECHAR", "NetCDF: Attempt to convert between text & numbers"},
    {NC_EEDGE, "NC_EEDGE", "NetCDF: Start+count exceeds dimension bound"},
    {NC_ESTRIDE, "NC_ESTRIDE", "NetCDF: Illegal stride"},
    {NC_EBADNAME, "NC_EBADNAME", "NetCDF: Name contains illegal characters"},
    {NC_ERANGE, "NC_ERANGE", "NetCDF: Numeric conversion not representable"},
    {NC_ENOMEM, "NC_ENOMEM", "NetCDF: Memory allocation (malloc) failure"},
    {NC_EVARSIZE, "NC_EVARSIZE", "NetCDF: One or more variable sizes violate format constraints"},
    {NC_EDIMSIZE, "NC_EDIMSIZE", "NetCDF: Invalid dimension size"},
    {NC_ETRUNC, "NC_ETRUNC", "PnetCDF: file cut short"},
    {NC_EIO, "NC_EIO", "PnetCDF: input or output failed"},
    {NC_EACCESS, "NC_EACCESS", "PnetCDF: access denied"},
    {NC_EINTERNAL, "NC_EINTERNAL", "PnetCDF: an internal error of the library"},
    {NC_ENOTNC4, "NC_ENOTNC4", "PnetCDF: an operation of netCDF-4 on a classic file"},
    {NC_ESTRICTNC3, "NC_ESTRICTNC3",
     "PnetCDF: an operation of netCDF-4 on a file of the classic model"},
    {NC_ELATEFILL, "NC_ELATEFILL", "PnetCDF: a fill value after the variable was stored"},
    {NC_ENOTBUILT, "NC_ENOTBUILT", "PnetCDF: a feature that this library is built without"},
    {NC_EMPI, "NC_EMPI", "PnetCDF: an MPI function failed"},
    {NC_EFILTER, "NC_EFILTER", "PnetCDF: a filter failed or is missing"},
    {NC_ESMALL, "NC_ESMALL", "PnetCDF: a size that this format cannot hold"},
    {NC_ENOTINDEP, "NC_ENOTINDEP", "PnetCDF: not allowed in collective data mode"},
    {NC_EINDEP, "NC_EINDEP", "PnetCDF: not allowed in independent data mode"},
    {NC_EFILE, "NC_EFILE", "PnetCDF: a file operation failed"},
    {NC_EREAD, "NC_EREAD", "PnetCDF: reading the file failed"},
    {NC_EWRITE, "NC_EWRITE", "PnetCDF: writing the file failed"},
    {NC_EOFILE, "NC_EOFILE", "PnetCDF: the file cannot be opened or created"},
    {NC_EMULTITYPES, "NC_EMULTITYPES", "PnetCDF: an MPI datatype of several element types"},
    {NC_EIOMISMATCH, "NC_EIOMISMATCH",
     "PnetCDF: memory and request differ in their number of elements"},
    {NC_ENEGATIVECNT, "NC_ENEGATIVECNT", "PnetCDF: a negative count"},
    {NC_EUNSPTETYPE, "NC_EUNSPTETYPE", "PnetCDF: an MPI datatype of unsupported elements"},
    {NC_EINVAL_REQUEST, "NC_EINVAL_REQUEST", "PnetCDF: no such nonblocking request"},
    {NC_EAINT_TOO_SMALL, "NC_EAINT_TOO_SMALL", "PnetCDF: a value too large for MPI_Aint"},
    {NC_ENOTSUPPORT, "NC_ENOTSUPPORT", "PnetCDF: not supported"},
    {NC_ENULLBUF, "NC_ENULLBUF", "PnetCDF: a buffer of no size"},
    {NC_EPREVATTACHBUF, "NC_EPREVATTACHBUF", "PnetCDF: a buffer is attached already"},
    {NC_ENULLABUF, "NC_ENULLABUF", "PnetCDF: no buffer is attached"},
    {NC_EPENDINGBPUT, "NC_EPENDINGBPUT", "PnetCDF: buffered puts are pending"},
    {NC_EINSUFFBUF, "NC_EINSUFFBUF", "PnetCDF: the attached buffer is too small"},
    {NC_ENOENT, "NC_ENOENT", "PnetCDF: no such file"},
    {NC_EINTOVERFLOW, "NC_EINTOVERFLOW", "PnetCDF: a number too large for an int"},
    {NC_ENOTENABLED, "NC_ENOTENABLED", "PnetCDF: a feature that is not enabled"},
    {NC_EBAD_FILE, "NC_EBAD_FILE", "PnetCDF: an invalid file name"},
    {NC_ENO_SPACE, "NC_ENO_SPACE", "PnetCDF: no space left"},
    {NC_EQUOTA, "NC_EQUOTA", "PnetCDF: quota exceeded"},
    {NC_ENULLSTART, "NC_ENULLSTART", "PnetCDF: start is NULL"},
    {NC_ENULLCOUNT, "NC_ENULLCOUNT", "PnetCDF: count is NULL"},
    {NC_EINVAL_CMODE, "NC_EINVAL_CMODE", "PnetCDF: invalid flags for create"},
    {NC_ETYPESIZE, "NC_ETYPESIZE", "PnetCDF: an MPI datatype larger than the variable"},
    {NC_ETYPE_MISMATCH, "NC_ETYPE_MISMATCH", "PnetCDF: MPI datatype and variable differ in type"},
    {NC_ETYPESIZE_MISMATCH, "NC_ETYPESIZE_MISMATCH",
     "PnetCDF: sizes of the types in file and memory differ"},
    {NC_ESTRICTCDF2, "NC_ESTRICTCDF2", "PnetCDF: a type that only CDF-5 has"},
    {NC_ENOTRECVAR, "NC_ENOTRECVAR", "PnetCDF: not a record variable"},
    {NC_ENOTFILL, "NC_ENOTFILL", "PnetCDF: the variable is not in fill mode"},
    {NC_EINVAL_OMODE, "NC_EINVAL_OMODE", "PnetCDF: invalid flags for open"},
    {NC_EPENDING, "NC_EPENDING", "PnetCDF: requests were pending at close"},
    {NC_EMAX_REQ, "NC_EMAX_REQ", "PnetCDF: a request larger than INT_MAX"},
    {NC_EBADLOG, "NC_EBADLOG", "PnetCDF: an unknown log file"},
    {NC_EFLUSHED, "NC_EFLUSHED", "PnetCDF: the request is written already"},
    {NC_EMULTIDEFINE, "NC_EMULTIDEFINE", "PnetCDF: ranks have defined different things"},
    {NC_EMULTIDEFINE_OMODE, "NC_EMULTIDEFINE_OMODE", "PnetCDF: ranks differ in flags for open"},
    {NC_EMULTIDEFINE_CMODE, "NC_EMULTIDEFINE_CMODE", "PnetCDF: ranks differ in flags for create"},
    {NC_EMULTIDEFINE_FNC_ARGS, "NC_EMULTIDEFINE_FNC_ARGS",
     "PnetCDF: ranks differ in arguments of a collective function"},
    {NC_EMULTIDEFINE_DIM_NUM, "NC_EMULTIDEFINE_DIM_NUM",
     "PnetCDF: ranks differ in number of dimensions"},
    {NC_EMULTIDEFINE_DIM_SIZE, "NC_EMULTIDEFINE_DIM_SIZE",
     "PnetCDF: ranks differ in a dimension's length"},
    {NC_EMULTIDEFINE_DIM_NAME, "NC_EMULTIDEFINE_DIM_NAME",
     "PnetCDF: ranks differ in a dimension's name"},
    {NC_EMULTIDEFINE_VAR_NUM, "NC_EMULTIDEFINE_VAR_NUM",
     "PnetCDF: ranks differ in number of variables"},
    {NC_EMULTIDEFINE_VAR_NAME, "NC_EMULTIDEFINE_VAR_NAME",
     "PnetCDF: ranks differ in a variable's name"},
    {NC_EMULTIDEFINE_VAR_NDIMS, "NC_EMULTIDEFINE_VAR_NDIMS",
     "PnetCDF: ranks differ in a variable's dimensions"},
    {NC_EMULTIDEFINE_VAR_DIMIDS, "NC_EMULTIDEFINE_VAR_DIMIDS",
     "PnetCDF: ranks differ in a variable's dimensions"},
    {NC_EMULTIDEFINE_VAR_TYPE, "NC_EMULTIDEFINE_VAR_TYPE",
     "PnetCDF: ranks differ in a variable's type"},
    {NC_EMULTIDEFINE_VAR_LEN, "NC_EMULTIDEFINE_VAR_LEN",
     "PnetCDF: ranks differ in a variable's size"},
    {NC_EMULTIDEFINE_NUMRECS, "NC_EMULTIDEFINE_NUMRECS",
     "PnetCDF: ranks differ in number of records"},
    {NC_EMULTIDEFINE_VAR_BEGIN, "NC_EMULTIDEFINE_VAR_BEGIN",
     "PnetCDF: ranks differ in a variable's place"},
    {NC_EMULTIDEFINE_ATTR_NUM, "NC_EMULTIDEFINE_ATTR_NUM",
     "PnetCDF: ranks differ in number of attributes"},
    {NC_EMULTIDEFINE_ATTR_SIZE, "NC_EMULTIDEFINE_ATTR_SIZE",
     "PnetCDF: ranks differ in an attribute's size"},
    {NC_EMULTIDEFINE_ATTR_NAME, "NC_EMULTIDEFINE_ATTR_NAME",
     "PnetCDF: ranks differ in an attribute's name"},
    {NC_EMULTIDEFINE_ATTR_TYPE, "NC_EMULTIDEFINE_ATTR_TYPE",
     "PnetCDF: ranks differ in an attribute's type"},
    {NC_EMULTIDEFINE_ATTR_LEN, "NC_EMULTIDEFINE_ATTR_LEN",
     "PnetCDF: ranks differ in an attribute's length"},
    {NC_EMULTIDEFINE_ATTR_VAL, "NC_EMULTIDEFINE_ATTR_VAL",
     "PnetCDF: ranks differ in an attribute's value"},
    {NC_EMULTIDEFINE_FILL_MODE, "NC_EMULTIDEFINE_FILL_MODE", "PnetCDF: ranks differ in fill mode"},
    {NC_EMULTIDEFINE_VAR_FILL_MODE, "NC_EMULTIDEFINE_VAR_FILL_MODE",
     "PnetCDF: ranks differ in a variable's fill mode"},
    {NC_EMULTIDEFINE_VAR_FILL_VALUE, "NC_EMULTIDEFINE_VAR_FILL_VALUE",
     "PnetCDF: ranks differ in a variable's fill value"},
    {NC_EHDFERR, "NC_EHDFERR", "PnetCDF: HDF5 failed"},
    {NC_ECANTREAD, "NC_ECANTREAD", "PnetCDF: cannot read"},
    {NC_ECANTWRITE, "NC_ECANTWRITE", "PnetCDF: cannot write"},
    {NC_ECANTCREATE, "NC_ECANTCREATE", "PnetCDF: cannot create"},
    {NC_EATTEXISTS, "NC_EATTEXISTS", "PnetCDF: the attribute exists"},
    {NC_ENOPAR, "NC_ENOPAR", "PnetCDF: not opened for parallel access"},
    {NC_ENULLPAD, "NC_ENULLPAD", "PnetCDF: header not padded with zeros"},
};

const ErrorText* find_text(int code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

const char* ncmpi_strerror(int err) {
  if (err > 0) return std::strerror(err);
  const ours::ErrorText* found = ours::find_text(err);
  return found == nullptr ? "Unknown Error" : found->text;
}

const char* ncmpi_strerrno(int err) {
  if (err > 0) return std::strerror(err);
  const ours::ErrorText* found = ours::find_text(err);
  return found == nullptr ? "Unknown code" : found->name;
}

}  // extern "C"
