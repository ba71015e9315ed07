// Puts and gets: about 800 functions, composed of shapes, types and verbs.
//   ncmpi_{put,get}_{var,var1,vara,vars,varm,varn}{,_TYPE}{,_all}, and vard
//   ncmpi_{iput,iget,bput}_{var,var1,vara,vars,varm,varn}{,_TYPE}       nonblocking
//   ncmpi_{mput,mget}_{var,var1,vara,vars,varm}{,_TYPE}{,_all}          several variables at once

#include "pnetcdf/access.hpp"

namespace ours = tailrace::pnetcdf;
using ours::CallerMemory;
using ours::ManyMemory;
using ours::ManyPlaces;
using ours::Place;
using ours::PlaceList;
using tailrace::ModelType;

// Function names and parameter lists cannot be parenthesized.
// NOLINTBEGIN(bugprone-macro-parentheses)

/// Types of the API's functions: suffix, C type, and ModelType.
#define TAILRACE_FOR_TYPES(M)     \
  M(_text, char, text_char)       \
  M(_schar, signed char, i8)      \
  M(_uchar, unsigned char, u8)    \
  M(_short, short, i16)           \
  M(_ushort, unsigned short, u16) \
  M(_int, int, i32)               \
  M(_uint, unsigned int, u32)     \
  M(_long, long, i64)             \
  M(_float, float, f32)           \
  M(_double, double, f64)         \
  M(_longlong, long long, i64)    \
  M(_ulonglong, unsigned long long, u64)

// Shapes of access: parameters as declared, as passed on, and their Place. The shapes for several
// variables (M...) have a list for each array.
#define TAILRACE_VAR_DECLARED
#define TAILRACE_VAR_PASSED
#define TAILRACE_VAR_PLACE Place::whole()
#define TAILRACE_VAR1_DECLARED const MPI_Offset *start,
#define TAILRACE_VAR1_PASSED start,
#define TAILRACE_VAR1_PLACE Place::one(start)
#define TAILRACE_VARA_DECLARED const MPI_Offset *start, const MPI_Offset *count,
#define TAILRACE_VARA_PASSED start, count,
#define TAILRACE_VARA_PLACE Place::part(start, count)
#define TAILRACE_VARS_DECLARED TAILRACE_VARA_DECLARED const MPI_Offset *stride,
#define TAILRACE_VARS_PASSED start, count, stride,
#define TAILRACE_VARS_PLACE Place::part(start, count, stride)
#define TAILRACE_VARM_DECLARED TAILRACE_VARS_DECLARED const MPI_Offset *imap,
#define TAILRACE_VARM_PASSED start, count, stride, imap,
#define TAILRACE_VARM_PLACE Place::part(start, count, stride, imap)
#define TAILRACE_VARN_DECLARED int num, MPI_Offset *const *starts, MPI_Offset *const *counts,
#define TAILRACE_VARN_PASSED num, starts, counts,
#define TAILRACE_VARN_PLACE (PlaceList{num, starts, counts})
#define TAILRACE_VARD_DECLARED MPI_Datatype filetype,
#define TAILRACE_VARD_PASSED filetype,
#define TAILRACE_VARD_PLACE (ours::Filetype{filetype})
#define TAILRACE_MVAR_DECLARED
#define TAILRACE_MVAR_PASSED
#define TAILRACE_MVAR_PLACE (ManyPlaces{})
#define TAILRACE_MVAR1_DECLARED MPI_Offset *const *starts,
#define TAILRACE_MVAR1_PASSED starts,
#define TAILRACE_MVAR1_PLACE (ManyPlaces{Place::Kind::one, starts})
#define TAILRACE_MVARA_DECLARED MPI_Offset *const *starts, MPI_Offset *const *counts,
#define TAILRACE_MVARA_PASSED starts, counts,
#define TAILRACE_MVARA_PLACE (ManyPlaces{Place::Kind::part, starts, counts})
#define TAILRACE_MVARS_DECLARED TAILRACE_MVARA_DECLARED MPI_Offset *const *strides,
#define TAILRACE_MVARS_PASSED starts, counts, strides,
#define TAILRACE_MVARS_PLACE (ManyPlaces{Place::Kind::part, starts, counts, strides})
#define TAILRACE_MVARM_DECLARED TAILRACE_MVARS_DECLARED MPI_Offset *const *imaps,
#define TAILRACE_MVARM_PASSED starts, counts, strides, imaps,
#define TAILRACE_MVARM_PLACE (ManyPlaces{Place::Kind::part, starts, counts, strides, imaps})

// Kinds of caller memory: typed by the function's name, or (flexible) by an MPI datatype.
#define TAILRACE_TYPED_DECLARED(T) T* values
#define TAILRACE_TYPED_PASSED values
#define TAILRACE_TYPED_MEMORY(type) CallerMemory::of(values, ModelType::type)
#define TAILRACE_TYPED_MANY_DECLARED(T) T values
#define TAILRACE_TYPED_MANY_PASSED values
#define TAILRACE_TYPED_MANY_MEMORY(type) ManyMemory::of(values, ModelType::type)
#define TAILRACE_FLEXIBLE_DECLARED(T) T *values, MPI_Offset bufcount, MPI_Datatype buftype
#define TAILRACE_FLEXIBLE_PASSED values, bufcount, buftype
#define TAILRACE_FLEXIBLE_MEMORY(type) CallerMemory::flexible(values, bufcount, buftype)
#define TAILRACE_FLEXIBLE_MANY_DECLARED(T) \
  T values, const MPI_Offset *bufcounts, const MPI_Datatype *buftypes
#define TAILRACE_FLEXIBLE_MANY_PASSED values, bufcounts, buftypes
#define TAILRACE_FLEXIBLE_MANY_MEMORY(type) ManyMemory::flexible(values, bufcounts, buftypes)

#define TAILRACE_BLOCKING(name, SHAPE, MEMORY, T, type, put, collective)                        \
  TAILRACE_SERVE(                                                                               \
      name, (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED TAILRACE_##MEMORY##_DECLARED(T)), \
      (ncid, varid, TAILRACE_##SHAPE##_PASSED TAILRACE_##MEMORY##_PASSED),                      \
      ours::access(file, {put, collective}, varid, TAILRACE_##SHAPE##_PLACE,                    \
                   TAILRACE_##MEMORY##_MEMORY(type)))

#define TAILRACE_POSTED(name, SHAPE, MEMORY, T, type, put, buffered)                       \
  TAILRACE_SERVE(name,                                                                     \
                 (int ncid, int varid,                                                     \
                  TAILRACE_##SHAPE##_DECLARED TAILRACE_##MEMORY##_DECLARED(T), int* req),  \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED TAILRACE_##MEMORY##_PASSED, req), \
                 ours::post(file, put, buffered, varid, TAILRACE_##SHAPE##_PLACE,          \
                            TAILRACE_##MEMORY##_MEMORY(type), req))

#define TAILRACE_MANY(name, SHAPE, MEMORY, T, type, put, collective)                     \
  TAILRACE_SERVE(                                                                        \
      name,                                                                              \
      (int ncid, int num, int* varids,                                                   \
       TAILRACE_M##SHAPE##_DECLARED TAILRACE_##MEMORY##_MANY_DECLARED(T)),               \
      (ncid, num, varids, TAILRACE_M##SHAPE##_PASSED TAILRACE_##MEMORY##_MANY_PASSED),   \
      ours::access_many(file, {put, collective}, num, varids, TAILRACE_M##SHAPE##_PLACE, \
                        TAILRACE_##MEMORY##_MANY_MEMORY(type)))

/// Functions of one shape and type on one variable; those on several variables are below.
#define TAILRACE_ONE_VARIABLE(name, SHAPE, MEMORY, T, type)                           \
  TAILRACE_BLOCKING(ncmpi_put_##name, SHAPE, MEMORY, const T, type, true, false)      \
  TAILRACE_BLOCKING(ncmpi_put_##name##_all, SHAPE, MEMORY, const T, type, true, true) \
  TAILRACE_BLOCKING(ncmpi_get_##name, SHAPE, MEMORY, T, type, false, false)           \
  TAILRACE_BLOCKING(ncmpi_get_##name##_all, SHAPE, MEMORY, T, type, false, true)      \
  TAILRACE_POSTED(ncmpi_iput_##name, SHAPE, MEMORY, const T, type, true, false)       \
  TAILRACE_POSTED(ncmpi_iget_##name, SHAPE, MEMORY, T, type, false, false)            \
  TAILRACE_POSTED(ncmpi_bput_##name, SHAPE, MEMORY, const T, type, true, true)
#define TAILRACE_BOTH(name, SHAPE, MEMORY, T, type)                                  \
  TAILRACE_ONE_VARIABLE(name, SHAPE, MEMORY, T, type)                                \
  TAILRACE_MANY(ncmpi_mput_##name, SHAPE, MEMORY, T* const*, type, true, false)      \
  TAILRACE_MANY(ncmpi_mput_##name##_all, SHAPE, MEMORY, T* const*, type, true, true) \
  TAILRACE_MANY(ncmpi_mget_##name, SHAPE, MEMORY, T**, type, false, false)           \
  TAILRACE_MANY(ncmpi_mget_##name##_all, SHAPE, MEMORY, T**, type, false, true)

#define TAILRACE_ALL_TYPED(suffix, T, type)         \
  TAILRACE_BOTH(var##suffix, VAR, TYPED, T, type)   \
  TAILRACE_BOTH(var1##suffix, VAR1, TYPED, T, type) \
  TAILRACE_BOTH(vara##suffix, VARA, TYPED, T, type) \
  TAILRACE_BOTH(vars##suffix, VARS, TYPED, T, type) \
  TAILRACE_BOTH(varm##suffix, VARM, TYPED, T, type) \
  TAILRACE_ONE_VARIABLE(varn##suffix, VARN, TYPED, T, type)

extern "C" {

TAILRACE_FOR_TYPES(TAILRACE_ALL_TYPED)

TAILRACE_BOTH(var, VAR, FLEXIBLE, void, u8)
TAILRACE_BOTH(var1, VAR1, FLEXIBLE, void, u8)
TAILRACE_BOTH(vara, VARA, FLEXIBLE, void, u8)
TAILRACE_BOTH(vars, VARS, FLEXIBLE, void, u8)
TAILRACE_BOTH(varm, VARM, FLEXIBLE, void, u8)
TAILRACE_ONE_VARIABLE(varn, VARN, FLEXIBLE, void, u8)

TAILRACE_BLOCKING(ncmpi_put_vard, VARD, FLEXIBLE, const void, u8, true, false)
TAILRACE_BLOCKING(ncmpi_put_vard_all, VARD, FLEXIBLE, const void, u8, true, true)
TAILRACE_BLOCKING(ncmpi_get_vard, VARD, FLEXIBLE, void, u8, false, false)
TAILRACE_BLOCKING(ncmpi_get_vard_all, VARD, FLEXIBLE, void, u8, false, true)

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
