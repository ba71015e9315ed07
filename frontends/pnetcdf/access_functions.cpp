// ncmpi_{put,get}_var{,1,a,s,m}{,_TYPE}{,_all}: 260 functions, made of shapes, types and modes.

#include "pnetcdf/access.hpp"

namespace ours = tailrace::pnetcdf;
using ours::CallerMemory;
using tailrace::ModelType;

// A put and a get whose type is in the name; `mode` is _all or nothing.
// Names of functions and lists of parameters cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_TYPED(name, SHAPE, mode, collective, T, type)                            \
  TAILRACE_SERVE(ncmpi_put_##name##mode,                                                  \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED const T* values),      \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values),                         \
                 ours::access(file, {true, collective}, varid, TAILRACE_##SHAPE##_PLACE,  \
                              CallerMemory::of(values, ModelType::type)))                 \
  TAILRACE_SERVE(ncmpi_get_##name##mode,                                                  \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED T* values),            \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values),                         \
                 ours::access(file, {false, collective}, varid, TAILRACE_##SHAPE##_PLACE, \
                              CallerMemory::of(values, ModelType::type)))

// The flexible ones: an MPI datatype says what there is.
#define TAILRACE_FLEXIBLE(name, SHAPE, mode, collective)                                  \
  TAILRACE_SERVE(ncmpi_put_##name##mode,                                                  \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED const void* values,    \
                  MPI_Offset bufcount, MPI_Datatype buftype),                             \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values, bufcount, buftype),      \
                 ours::access(file, {true, collective}, varid, TAILRACE_##SHAPE##_PLACE,  \
                              CallerMemory::flexible(values, bufcount, buftype)))         \
  TAILRACE_SERVE(ncmpi_get_##name##mode,                                                  \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED void* values,          \
                  MPI_Offset bufcount, MPI_Datatype buftype),                             \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values, bufcount, buftype),      \
                 ours::access(file, {false, collective}, varid, TAILRACE_##SHAPE##_PLACE, \
                              CallerMemory::flexible(values, bufcount, buftype)))

#define TAILRACE_BOTH_MODES(name, SHAPE, T, type) \
  TAILRACE_TYPED(name, SHAPE, , false, T, type)   \
  TAILRACE_TYPED(name, SHAPE, _all, true, T, type)

#define TAILRACE_ALL_SHAPES(suffix, T, type)       \
  TAILRACE_BOTH_MODES(var##suffix, VAR, T, type)   \
  TAILRACE_BOTH_MODES(var1##suffix, VAR1, T, type) \
  TAILRACE_BOTH_MODES(vara##suffix, VARA, T, type) \
  TAILRACE_BOTH_MODES(vars##suffix, VARS, T, type) \
  TAILRACE_BOTH_MODES(varm##suffix, VARM, T, type)

extern "C" {

TAILRACE_FOR_TYPES(TAILRACE_ALL_SHAPES)

TAILRACE_FLEXIBLE(var, VAR, , false)
TAILRACE_FLEXIBLE(var, VAR, _all, true)
TAILRACE_FLEXIBLE(var1, VAR1, , false)
TAILRACE_FLEXIBLE(var1, VAR1, _all, true)
TAILRACE_FLEXIBLE(vara, VARA, , false)
TAILRACE_FLEXIBLE(vara, VARA, _all, true)
TAILRACE_FLEXIBLE(vars, VARS, , false)
TAILRACE_FLEXIBLE(vars, VARS, _all, true)
TAILRACE_FLEXIBLE(varm, VARM, , false)
TAILRACE_FLEXIBLE(varm, VARM, _all, true)

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
