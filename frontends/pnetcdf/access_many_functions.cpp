// Several variables at once: ncmpi_{mput,mget}_var{,1,a,s,m}{,_TYPE}{,_all}, 260 functions.

#include "pnetcdf/access.hpp"

namespace ours = tailrace::pnetcdf;
using ours::ManyVariables;
using ours::Place;
using tailrace::ModelType;

// As in access.hpp, with a list for each array; _LISTS assigns them to a ManyVariables `many`.
// Names of functions and lists of parameters cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_MVAR_DECLARED
#define TAILRACE_MVAR_PASSED
#define TAILRACE_MVAR_LISTS
#define TAILRACE_MVAR1_DECLARED MPI_Offset *const *starts,
#define TAILRACE_MVAR1_PASSED starts,
#define TAILRACE_MVAR1_LISTS many.kind = Place::Kind::one, many.starts = starts,
#define TAILRACE_MVARA_DECLARED MPI_Offset *const *starts, MPI_Offset *const *counts,
#define TAILRACE_MVARA_PASSED starts, counts,
#define TAILRACE_MVARA_LISTS \
  many.kind = Place::Kind::part, many.starts = starts, many.counts = counts,
#define TAILRACE_MVARS_DECLARED TAILRACE_MVARA_DECLARED MPI_Offset *const *strides,
#define TAILRACE_MVARS_PASSED starts, counts, strides,
#define TAILRACE_MVARS_LISTS TAILRACE_MVARA_LISTS many.strides = strides,
#define TAILRACE_MVARM_DECLARED TAILRACE_MVARS_DECLARED MPI_Offset *const *imaps,
#define TAILRACE_MVARM_PASSED starts, counts, strides, imaps,
#define TAILRACE_MVARM_LISTS TAILRACE_MVARS_LISTS many.element_maps = imaps,

namespace {

ManyVariables many_of(int num, const int* varids) {
  ManyVariables many;
  many.n = num;
  many.varids = varids;
  return many;
}

template <class T>
void set_values(ManyVariables& many, T* const* values) {
  many.values = reinterpret_cast<void* const*>(values);
}

void set_types(ManyVariables& many, const MPI_Offset* counts, const MPI_Datatype* datatypes) {
  many.typed = false;
  many.type_counts = counts;
  many.datatypes = datatypes;
}

}  // namespace

#define TAILRACE_MANY(verb, put, name, SHAPE, mode, collective, T, type)                        \
  int ncmpi_##verb##_##name##mode(int ncid, int num, int* varids,                               \
                                  TAILRACE_##SHAPE##_DECLARED T bufs) {                         \
    return ours::serve(                                                                         \
        ncid,                                                                                   \
        [&](ours::OpenFile& file) {                                                             \
          ManyVariables many = many_of(num, varids);                                            \
          TAILRACE_##SHAPE##_LISTS many.memory_type = ModelType::type;                          \
          set_values(many, bufs);                                                               \
          return ours::access_many(file, {put, collective}, many);                              \
        },                                                                                      \
        [&]() -> int {                                                                          \
          static const auto real = ours::real_function<decltype(&ncmpi_##verb##_##name##mode)>( \
              "ncmpi_" #verb "_" #name #mode);                                                  \
          return real == nullptr ? NC_EBADID                                                    \
                                 : real(ncid, num, varids, TAILRACE_##SHAPE##_PASSED bufs);     \
        });                                                                                     \
  }

#define TAILRACE_MANY_FLEXIBLE(verb, put, name, SHAPE, mode, collective, T)                        \
  int ncmpi_##verb##_##name##mode(int ncid, int num, int* varids,                                  \
                                  TAILRACE_##SHAPE##_DECLARED T bufs, const MPI_Offset* bufcounts, \
                                  const MPI_Datatype* buftypes) {                                  \
    return ours::serve(                                                                            \
        ncid,                                                                                      \
        [&](ours::OpenFile& file) {                                                                \
          ManyVariables many = many_of(num, varids);                                               \
          TAILRACE_##SHAPE##_LISTS set_types(many, bufcounts, buftypes);                           \
          set_values(many, bufs);                                                                  \
          return ours::access_many(file, {put, collective}, many);                                 \
        },                                                                                         \
        [&]() -> int {                                                                             \
          static const auto real = ours::real_function<decltype(&ncmpi_##verb##_##name##mode)>(    \
              "ncmpi_" #verb "_" #name #mode);                                                     \
          return real == nullptr ? NC_EBADID                                                       \
                                 : real(ncid, num, varids, TAILRACE_##SHAPE##_PASSED bufs,         \
                                        bufcounts, buftypes);                                      \
        });                                                                                        \
  }

#define TAILRACE_MANY_BOTH(name, SHAPE, T, type)                      \
  TAILRACE_MANY(mput, true, name, SHAPE, , false, T* const*, type)    \
  TAILRACE_MANY(mput, true, name, SHAPE, _all, true, T* const*, type) \
  TAILRACE_MANY(mget, false, name, SHAPE, , false, T**, type)         \
  TAILRACE_MANY(mget, false, name, SHAPE, _all, true, T**, type)

#define TAILRACE_MANY_FLEXIBLE_BOTH(name, SHAPE)                            \
  TAILRACE_MANY_FLEXIBLE(mput, true, name, SHAPE, , false, void* const*)    \
  TAILRACE_MANY_FLEXIBLE(mput, true, name, SHAPE, _all, true, void* const*) \
  TAILRACE_MANY_FLEXIBLE(mget, false, name, SHAPE, , false, void**)         \
  TAILRACE_MANY_FLEXIBLE(mget, false, name, SHAPE, _all, true, void**)

#define TAILRACE_MANY_SHAPES(suffix, T, type)      \
  TAILRACE_MANY_BOTH(var##suffix, MVAR, T, type)   \
  TAILRACE_MANY_BOTH(var1##suffix, MVAR1, T, type) \
  TAILRACE_MANY_BOTH(vara##suffix, MVARA, T, type) \
  TAILRACE_MANY_BOTH(vars##suffix, MVARS, T, type) \
  TAILRACE_MANY_BOTH(varm##suffix, MVARM, T, type)

extern "C" {

TAILRACE_FOR_TYPES(TAILRACE_MANY_SHAPES)

TAILRACE_MANY_FLEXIBLE_BOTH(var, MVAR)
TAILRACE_MANY_FLEXIBLE_BOTH(var1, MVAR1)
TAILRACE_MANY_FLEXIBLE_BOTH(vara, MVARA)
TAILRACE_MANY_FLEXIBLE_BOTH(vars, MVARS)
TAILRACE_MANY_FLEXIBLE_BOTH(varm, MVARM)

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
