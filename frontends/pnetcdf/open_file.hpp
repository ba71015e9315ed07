// An open dataset of the PnetCDF API, the table of all of them, and how a function is served.
//
// A dataset is in define mode, in collective or in independent data mode, as PnetCDF has it:
//
//   create -> [define] --enddef--> [collective] <--begin/end_indep--> [independent]
//                ^------------------redef---------------------------------|
//
// Invariant 1: `next` is what the program has defined; outside define mode the ArrayFile's model is
//   the same, but for the lengths of unlimited dimensions, which the ArrayFile knows.
// Invariant 2: our numbers of datasets are no numbers of the real library's, so a number that is
//   not in the table belongs to it, and the call is handed on (real_library.hpp).
// Invariant 3: a collective function that fails on one rank before it communicates still takes part
//   with nothing to give, unless its error is the same everywhere (modes, permission, a number).

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

/// A nonblocking request that waits for wait() or wait_all().
struct PendingRequest {
  int id = NC_REQ_NULL;
  bool put = false;
  bool buffered = false;  ///< By bput: its bytes count against the attached buffer.
  Transfer transfer;
};

struct OpenFile {
  int id = -1;
  std::unique_ptr<ArrayFile> array;
  NetcdfModel next;
  std::vector<std::size_t> dimensions;  ///< Positions in `next` by PnetCDF's number: the root
  std::vector<std::size_t> variables;   ///< group's. PnetCDF knows no groups.
  std::string path;
  std::uint64_t turn = 0;  ///< Datasets of this process in the order of create and open.
  int create_mode = 0;
  int format = NC_FORMAT_NETCDF4;  ///< What the program asked for; decides which types it may use.
  bool defining = false;
  bool just_created = false;  ///< And never left define mode: abort() leaves no file.
  bool independent = false;
  bool read_only = false;
  bool strict_bounds = false;          ///< PNETCDF_RELAX_COORD_BOUND=0.
  bool safe_mode = false;              ///< PNETCDF_SAFE_MODE=1: one rank's error is everyone's.
  bool fill = false;                   ///< Mode NC_FILL.
  std::size_t n_stored_variables = 0;  ///< Variables before redef(): their fill value is settled.
  MPI_Info info = MPI_INFO_NULL;
  /// Option layout=front: how all metadata are laid in front once the file is closed.
  struct Front {
    FileOptions like;
    std::unique_ptr<Comm> world;  ///< For the engine that does it, to own.
  };
  std::optional<Front> front;

  std::list<PendingRequest> requests;
  std::optional<std::uint64_t> attached_bytes;  ///< Of the attached buffer.
  std::uint64_t attached_used = 0;
  std::uint64_t put_bytes = 0;
  std::uint64_t got_bytes = 0;

  ~OpenFile();
  /// Bytes of either sign are taken as they are.
  bool loose_bytes() const { return format == NC_FORMAT_CLASSIC || format == NC_FORMAT_CDF2; }
  /// Number the root group's dimensions and variables anew.
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
  /// PnetCDF's number of a dimension, by its position in the model; -1: in another group.
  int dimension_number(std::size_t position) const;
  /// The first unlimited dimension's number, or -1.
  int unlimited() const;
  bool is_record_variable(int varid);
  /// Whether a dimension other than the first is unlimited, as netCDF-4 files have it.
  bool grows_within(int varid);
  /// A dimension's length now: of an unlimited one the ArrayFile's.
  std::uint64_t length_of(std::size_t position) const;
  Shape shape_of(int varid);
  /// Bytes from one record to the next, as in a classic file: each variable's share is rounded up
  /// to 4 bytes, unless there is only one.
  std::uint64_t record_bytes();
  /// The variable's own fill value, or netCDF's default: model_type_bytes() bytes.
  void fill_value_of(int varid, std::byte* value);
  /// Take `next` from the ArrayFile, without Tailrace's own notes ("tailrace_...").
  void take_definitions();
  /// Bring the ArrayFile to `next`. Collective.
  int apply_definitions();
};

/// Our dataset of this number; nullptr: none of ours.
OpenFile* find_file(int ncid);
/// Take a dataset into the table; sets its number. @returns NC_NOERR or NC_ENFILE
int add_file(std::unique_ptr<OpenFile> file, int* ncid);
void remove_file(int ncid);
std::vector<int> open_files();

/// PnetCDF's code for a failure, after its text went to tailrace_pnetcdf_error() and to stderr:
/// from here, or, where all ranks have it, from rank 0 of `comm`.
int report_failure(const Status& status);
int report_failure(const Status& status, Comm& comm);
int report_failure(const Status& status, MPI_Comm comm);
const char* last_failure();
/// NC_ENOTSUPPORT, after one line on stderr that names the function; the line comes once a name.
int not_served(const char* function);

/// Errors that are alike on all ranks: a collective function may return at once.
inline bool is_fatal(int error) {
  return error == NC_EPERM || error == NC_EINDEFINE || error == NC_EINDEP || error == NC_ENOTINDEP;
}

/// What ncmpi_set_default_format() has set.
int default_format();

template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception&) {  // bad_alloc, or a length that no memory has.
    return NC_ENOMEM;
  }
}

/// Run `ours` on the dataset of this number, or hand the call to the real library.
template <class Ours, class Real>
int serve(int ncid, Ours&& ours, Real&& real) noexcept {
  OpenFile* file = find_file(ncid);
  if (file == nullptr) return real();
  return guarded([&] { return ours(*file); });
}

// --- What ranks define must be alike. That is looked after as PnetCDF does it: in safe mode
// (PNETCDF_SAFE_MODE=1) every call that defines something compares its arguments on all ranks; one
// that differs is an error with a code of its own on every rank, and nothing is defined. Otherwise
// only the whole is compared, when it goes to the file (ArrayFile::change_model): there attributes
// may differ, rank 0's count; programs put the time of day there, which each rank reads from its
// own clock. Dimensions and variables that differ are NC_EMULTIDEFINE.

/// An argument that must be alike, and the code of its difference.
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

/// Whether a defining call may go on: `status` is what its checks gave on this rank. In safe mode
/// collective (one allreduce), and the answer is the same on every rank.
int agree_on_call(OpenFile& file, int status, std::initializer_list<Argument> arguments);

/// Give all ranks rank 0's attributes. Collective: one allreduce, and one broadcast if some differ.
void take_attributes_of_root(OpenFile& file);

}  // namespace tailrace::pnetcdf

/// The definition of one function: parameters and their names in parentheses, as they stand, then
/// what is done with `file`. Calls for datasets that are not ours go to the real library.
#define TAILRACE_SERVE(name, parameters, names, call)                                            \
  int name parameters {                                                                          \
    return ::tailrace::pnetcdf::serve(                                                           \
        ncid, [&]([[maybe_unused]] ::tailrace::pnetcdf::OpenFile& file) -> int { return call; }, \
        [&]() -> int {                                                                           \
          static const auto real = ::tailrace::pnetcdf::real_function<decltype(&(name))>(#name); \
          return real == nullptr ? NC_EBADID : real names;                                       \
        });                                                                                      \
  }
