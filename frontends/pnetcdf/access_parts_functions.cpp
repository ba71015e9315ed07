// Several parts of one variable: ncmpi_{put,get,iput,iget,bput}_varn{,_TYPE}{,_all}; and vard.

#include "pnetcdf/access.hpp"

namespace ours = tailrace::pnetcdf;
using ours::CallerMemory;
using tailrace::ModelType;

// Names of functions and lists of parameters cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_PARTS(suffix, mode, collective, T, type)                                  \
  TAILRACE_SERVE(ncmpi_put_varn##suffix##mode,                                             \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED const T* values),            \
                 (ncid, varid, TAILRACE_VARN_PASSED values),                               \
                 ours::access_parts(file, {true, collective}, varid, num, starts, counts,  \
                                    CallerMemory::of(values, ModelType::type)))            \
  TAILRACE_SERVE(ncmpi_get_varn##suffix##mode,                                             \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED T* values),                  \
                 (ncid, varid, TAILRACE_VARN_PASSED values),                               \
                 ours::access_parts(file, {false, collective}, varid, num, starts, counts, \
                                    CallerMemory::of(values, ModelType::type)))

#define TAILRACE_FLEXIBLE_PARTS(mode, collective)                                                \
  TAILRACE_SERVE(ncmpi_put_varn##mode,                                                           \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED const void* values,                \
                  MPI_Offset bufcount, MPI_Datatype buftype),                                    \
                 (ncid, varid, TAILRACE_VARN_PASSED values, bufcount, buftype),                  \
                 ours::access_parts(file, {true, collective}, varid, num, starts, counts,        \
                                    CallerMemory::flexible(values, bufcount, buftype)))          \
  TAILRACE_SERVE(ncmpi_get_varn##mode,                                                           \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED void* values, MPI_Offset bufcount, \
                  MPI_Datatype buftype),                                                         \
                 (ncid, varid, TAILRACE_VARN_PASSED values, bufcount, buftype),                  \
                 ours::access_parts(file, {false, collective}, varid, num, starts, counts,       \
                                    CallerMemory::flexible(values, bufcount, buftype)))

#define TAILRACE_POSTED_PARTS(verb, put, buffered, suffix, T, type)                 \
  TAILRACE_SERVE(ncmpi_##verb##_varn##suffix,                                       \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED T* values, int* req), \
                 (ncid, varid, TAILRACE_VARN_PASSED values, req),                   \
                 ours::post_parts(file, put, buffered, varid, num, starts, counts,  \
                                  CallerMemory::of(values, ModelType::type), req))

#define TAILRACE_POSTED_FLEXIBLE_PARTS(verb, put, buffered, T)                                \
  TAILRACE_SERVE(ncmpi_##verb##_varn,                                                         \
                 (int ncid, int varid, TAILRACE_VARN_DECLARED T* values, MPI_Offset bufcount, \
                  MPI_Datatype buftype, int* req),                                            \
                 (ncid, varid, TAILRACE_VARN_PASSED values, bufcount, buftype, req),          \
                 ours::post_parts(file, put, buffered, varid, num, starts, counts,            \
                                  CallerMemory::flexible(values, bufcount, buftype), req))

#define TAILRACE_ALL_PARTS(suffix, T, type)                       \
  TAILRACE_PARTS(suffix, , false, T, type)                        \
  TAILRACE_PARTS(suffix, _all, true, T, type)                     \
  TAILRACE_POSTED_PARTS(iput, true, false, suffix, const T, type) \
  TAILRACE_POSTED_PARTS(iget, false, false, suffix, T, type)      \
  TAILRACE_POSTED_PARTS(bput, true, true, suffix, const T, type)

#define TAILRACE_VARD(name, put, collective, T)                                               \
  TAILRACE_SERVE(name,                                                                        \
                 (int ncid, int varid, MPI_Datatype filetype, T* values, MPI_Offset bufcount, \
                  MPI_Datatype buftype),                                                      \
                 (ncid, varid, filetype, values, bufcount, buftype),                          \
                 ours::access_filetype(file, {put, collective}, varid, filetype,              \
                                       CallerMemory::flexible(values, bufcount, buftype)))

extern "C" {

TAILRACE_FOR_TYPES(TAILRACE_ALL_PARTS)

TAILRACE_FLEXIBLE_PARTS(, false)
TAILRACE_FLEXIBLE_PARTS(_all, true)
TAILRACE_POSTED_FLEXIBLE_PARTS(iput, true, false, const void)
TAILRACE_POSTED_FLEXIBLE_PARTS(iget, false, false, void)
TAILRACE_POSTED_FLEXIBLE_PARTS(bput, true, true, const void)

TAILRACE_VARD(ncmpi_put_vard, true, false, const void)
TAILRACE_VARD(ncmpi_put_vard_all, true, true, const void)
TAILRACE_VARD(ncmpi_get_vard, false, false, void)
TAILRACE_VARD(ncmpi_get_vard_all, false, true, void)

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
