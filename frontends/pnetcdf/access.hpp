// Blocking puts and gets, and nonblocking requests: what the functions of the API come down to.

#pragma once

#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {

/// One put or get, now. With direction.collective, collective over the dataset: one allreduce for a
/// put, ArrayFile::get_all() for a get.
int access(OpenFile& file, Direction direction, int varid, const Place& place,
           const CallerMemory& memory);

/// Several parts of one variable (varn). `starts` and `counts` as in PnetCDF.
int access_parts(OpenFile& file, Direction direction, int varid, int n_places,
                 MPI_Offset* const* starts, MPI_Offset* const* counts, const CallerMemory& memory);

/// The place that an MPI datatype over the variable's bytes means (vard).
int access_filetype(OpenFile& file, Direction direction, int varid, MPI_Datatype filetype,
                    const CallerMemory& memory);

/// Several variables (mput, mget). place_of(i) and memory_of(i) say where and what.
struct ManyVariables {
  int n = 0;
  const int* varids = nullptr;
  MPI_Offset* const* starts = nullptr;
  MPI_Offset* const* counts = nullptr;
  MPI_Offset* const* strides = nullptr;
  MPI_Offset* const* element_maps = nullptr;
  Place::Kind kind = Place::Kind::whole;
  void* const* values = nullptr;
  ModelType memory_type = ModelType::f64;
  bool typed = true;
  const MPI_Offset* type_counts = nullptr;
  const MPI_Datatype* datatypes = nullptr;

  Place place_of(int i) const;
  CallerMemory memory_of(int i) const;
};
int access_many(OpenFile& file, Direction direction, const ManyVariables& many);

/// Post a request; `buffered`: bput. Not collective.
int post(OpenFile& file, bool put, bool buffered, int varid, const Place& place,
         const CallerMemory& memory, int* request);
int post_parts(OpenFile& file, bool put, bool buffered, int varid, int n_places,
               MPI_Offset* const* starts, MPI_Offset* const* counts, const CallerMemory& memory,
               int* request);

/// Run blocking transfers that are ready; `status` is what their preparation gave on this rank.
int run(OpenFile& file, Direction direction, int status, std::vector<Transfer*> transfers);

}  // namespace tailrace::pnetcdf

/// The types of the API's functions: suffix, C type, and what that is.
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

// The five shapes of access: parameters as declared, as passed on, and the place they mean.
#define TAILRACE_VAR_DECLARED
#define TAILRACE_VAR_PASSED
#define TAILRACE_VAR_PLACE ::tailrace::pnetcdf::Place::whole()
#define TAILRACE_VAR1_DECLARED const MPI_Offset *start,
#define TAILRACE_VAR1_PASSED start,
#define TAILRACE_VAR1_PLACE ::tailrace::pnetcdf::Place::one(start)
#define TAILRACE_VARA_DECLARED const MPI_Offset *start, const MPI_Offset *count,
#define TAILRACE_VARA_PASSED start, count,
#define TAILRACE_VARA_PLACE ::tailrace::pnetcdf::Place::part(start, count)
#define TAILRACE_VARS_DECLARED \
  const MPI_Offset *start, const MPI_Offset *count, const MPI_Offset *stride,
#define TAILRACE_VARS_PASSED start, count, stride,
#define TAILRACE_VARS_PLACE ::tailrace::pnetcdf::Place::part(start, count, stride)
#define TAILRACE_VARM_DECLARED                                                \
  const MPI_Offset *start, const MPI_Offset *count, const MPI_Offset *stride, \
      const MPI_Offset *imap,
#define TAILRACE_VARM_PASSED start, count, stride, imap,
#define TAILRACE_VARM_PLACE ::tailrace::pnetcdf::Place::part(start, count, stride, imap)
#define TAILRACE_VARN_DECLARED int num, MPI_Offset *const *starts, MPI_Offset *const *counts,
#define TAILRACE_VARN_PASSED num, starts, counts,
