// An open dataset of the PnetCDF API, the table of open datasets, and the dispatch of functions.
//
// Like in PnetCDF, a dataset is in define mode, in collective or in independent data mode:
//
//   create -> [define] --enddef--> [collective] <--begin/end_indep--> [independent]
//                ^------------------redef---------------------------------|
//
// Invariant 1: `next` holds the program's definitions. Outside define mode, the ArrayFile's model
// is equal, except for the lengths of unlimited dimensions, which only the ArrayFile knows.
// Invariant 2: Tailrace's dataset numbers differ from the real library's. A number that is not in
// the table belongs to the real library, and the call is passed on (real_library.hpp).
// Invariant 3: a collective function that fails on one rank before it communicates still takes
// part, without data. Exception: errors that are the same everywhere (modes, permission, a number).

#pragma once

#include <mpi.h>
#include <pnetcdf.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/array_file.hpp"
#include "core/comm.hpp"
#include "pnetcdf/real_library.hpp"
#include "pnetcdf/transfer.hpp"

namespace tailrace::pnetcdf {

/// Nonblocking request that is pending until wait() or wait_all().
struct PendingRequest {
  int id = NC_REQ_NULL;
  bool put = false;
  bool buffered = false;  ///< Posted by bput: counts against the attached buffer.
  Transfer transfer;
};

struct OpenFile {
  int id = -1;
  std::unique_ptr<ArrayFile> array;
  NetcdfModel next;
  /// Positions in `next` of the root group's dimensions, by PnetCDF's number. PnetCDF has no
  /// groups.
  std::vector<std::size_t> dimensions;
  /// Positions in `next` of the root group's variables, by PnetCDF's number.
  std::vector<std::size_t> variables;
  std::string path;
  std::uint64_t turn = 0;  ///< Order of create and open in this process.
  int create_mode = 0;
  /// Format that the program requested; decides which types it may use.
  int format = NC_FORMAT_NETCDF4;
  bool defining = false;
  /// True if created and never left define mode: then abort() leaves no file.
  bool just_created = false;
  bool independent = false;
  bool read_only = false;
  bool strict_bounds = false;  ///< PNETCDF_RELAX_COORD_BOUND=0.
  bool safe_mode = false;      ///< PNETCDF_SAFE_MODE=1: all ranks return one rank's error.
  bool fill = false;           ///< Mode NC_FILL.
  /// Number of variables before redef(); their fill values are fixed.
  std::size_t n_stored_variables = 0;
  MPI_Info info = MPI_INFO_NULL;
  /// Option layout=front: how to move all metadata to the front of the closed file.
  struct Front {
    FileOptions like;
    std::unique_ptr<Comm> world;  ///< Communicator for the engine that does it.
  };
  std::optional<Front> front;

  std::list<PendingRequest> requests;
  std::optional<std::uint64_t> attached_bytes;  ///< Size of the attached buffer.
  std::uint64_t attached_used = 0;
  std::uint64_t put_bytes = 0;
  std::uint64_t got_bytes = 0;

  ~OpenFile();
  /// True if signed and unsigned bytes are copied unchanged.
  bool loose_bytes() const { return format == NC_FORMAT_CLASSIC || format == NC_FORMAT_CDF2; }
  /// Renumber the root group's dimensions and variables.
  void list_objects();
  bool has_variable(int varid) const {
    return varid >= 0 && static_cast<std::size_t>(varid) < variables.size();
  }
  bool has_dimension(int dimid) const {
    return dimid >= 0 && static_cast<std::size_t>(dimid) < dimensions.size();
  }
  ModelVariable& variable(int varid) {
    return next.variables[variables[static_cast<std::size_t>(varid)]];
  }
  ModelDimension& dimension(int dimid) {
    return next.dimensions[dimensions[static_cast<std::size_t>(dimid)]];
  }
  std::optional<int> find_variable(std::string_view name) const;
  std::optional<int> find_dimension(std::string_view name) const;
  /// PnetCDF's number of a dimension, by its position in the model; -1 if it is in another group.
  int dimension_number(std::size_t position) const;
  /// Number of the first unlimited dimension, or -1.
  int unlimited() const;
  bool is_record_variable(int varid);
  /// True if a dimension other than the first is unlimited, as netCDF-4 files allow.
  bool grows_within(int varid);
  /// Current length of a dimension; the ArrayFile's if it is unlimited.
  std::uint64_t length_of(std::size_t position) const;
  Shape shape_of(int varid);
  /// Bytes from one record to the next, as in a classic file: each variable's part is rounded up to
  /// 4 bytes, unless there is only one variable.
  std::uint64_t record_bytes();
  /// Write the variable's own fill value, or netCDF's default: model_type_bytes() bytes.
  void fill_value_of(int varid, std::byte* value);
  /// Copy the definitions from the ArrayFile to `next`, without Tailrace's attributes
  /// ("tailrace_...").
  void take_definitions();
  /// Apply `next` to the ArrayFile. Collective.
  int apply_definitions();
};

/// Find a Tailrace dataset by its number; nullptr for other datasets.
OpenFile* find_file(int ncid);
/// Add a dataset to the table and set its number. @returns NC_NOERR or NC_ENFILE
int add_file(std::unique_ptr<OpenFile> file, int* ncid);
void remove_file(int ncid);
std::vector<int> open_files();

/// Convert a failure to PnetCDF's code, and report its text by tailrace_pnetcdf_error() and on
/// stderr. Overloads with `comm` are for failures of all ranks, and print on rank 0 only.
int report_failure(const Status& status);
int report_failure(const Status& status, Comm& comm);
int report_failure(const Status& status, MPI_Comm comm);
const char* last_failure();
/// Return NC_ENOTSUPPORT, and print one line on stderr that names the function, once per function.
int not_served(const char* function);

/// True for errors that are the same on all ranks: a collective function may return immediately.
inline bool is_fatal(int error) {
  return error == NC_EPERM || error == NC_EINDEFINE || error == NC_EINDEP || error == NC_ENOTINDEP;
}

/// Format set by ncmpi_set_default_format().
int default_format();

template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception&) {  // bad_alloc, or a length that no memory has.
    return NC_ENOMEM;
  }
}

/// Run `ours` on the dataset of this number, or pass the call to the real library.
template <class Ours, class Real>
int serve(int ncid, Ours&& ours, Real&& real) noexcept {
  OpenFile* file = find_file(ncid);
  if (file == nullptr) return real();
  return guarded([&] { return ours(*file); });
}

// --- Definitions must be equal on all ranks, which is checked like in PnetCDF. In safe mode
// (PNETCDF_SAFE_MODE=1), every defining call compares its arguments on all ranks. A difference is
// an error with a specific code on every rank, and nothing is defined. Otherwise, all definitions
// are compared once when they are written (ArrayFile::change_model). Then attributes may differ,
// and rank 0's are used: programs store the time of day there, which each rank reads from its own
// clock. Differing dimensions and variables are NC_EMULTIDEFINE.

/// Argument that must be equal on all ranks, and the error code for a difference.
struct Argument {
  int code;
  std::uint64_t digest;

  Argument(int its_code, std::string_view text);
  Argument(int its_code, const char* text)
      : Argument(its_code, std::string_view(text == nullptr ? "" : text)) {}
  Argument(int its_code, std::int64_t number)
      : code(its_code), digest(static_cast<std::uint64_t>(number)) {}
  Argument(int its_code, const void* bytes, std::size_t n_bytes)
      : Argument(its_code, std::string_view(static_cast<const char*>(bytes), n_bytes)) {}
};

/// Decide if a defining call may continue; `status` is the result of its checks on this rank. In
/// safe mode collective (one allreduce), with the same result on every rank.
int agree_on_call(OpenFile& file, int status, std::initializer_list<Argument> arguments);

}  // namespace tailrace::pnetcdf

/// Define one API function from its parameters, their names (both in parentheses), and the
/// expression to evaluate with `file`. Calls for other datasets go to the real library.
#define TAILRACE_SERVE(name, parameters, names, call)                                            \
  int name parameters {                                                                          \
    return ::tailrace::pnetcdf::serve(                                                           \
        ncid, [&]([[maybe_unused]] ::tailrace::pnetcdf::OpenFile& file) -> int { return call; }, \
        [&]() -> int {                                                                           \
          static const auto real = ::tailrace::pnetcdf::real_function<decltype(&(name))>(#name); \
          return real == nullptr ? NC_EBADID : real names;                                       \
        });                                                                                      \
  }
