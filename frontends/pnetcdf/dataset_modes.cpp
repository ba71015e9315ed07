// Datasets: define, collective and independent mode, what goes to the file when, close, abort.

#include "pnetcdf/open_file.hpp"
#include "pnetcdf/rank_agreement.hpp"

namespace tailrace::pnetcdf {
namespace {

int leave_define_mode(OpenFile& file) {
  if (!file.defining) return NC_ENOTINDEFINE;
  const int status = file.apply_definitions();
  if (status != NC_NOERR) return status;
  file.defining = file.just_created = file.independent = false;
  return NC_NOERR;
}

int enter_define_mode(OpenFile& file) {
  if (file.read_only) return NC_EPERM;
  if (file.defining) return NC_EINDEFINE;
  if (file.independent) {
    const int status = report_failure(file.array->settle(), file.array->comm());
    if (status != NC_NOERR) return status;
  }
  file.independent = false;
  file.take_definitions();
  file.n_stored_variables = file.next.variables.size();
  file.defining = true;
  return NC_NOERR;
}

/// What ranks have put collectively must be there for independent gets of others.
int begin_independent(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (file.independent) return NC_NOERR;
  file.independent = true;
  return file.read_only ? NC_NOERR : report_failure(file.array->flush(), file.array->comm());
}

int end_independent(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (!file.independent) return NC_NOERR;
  file.independent = false;
  return file.read_only ? NC_NOERR : report_failure(file.array->settle(), file.array->comm());
}

int flush(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  return file.read_only ? NC_NOERR : report_failure(file.array->flush(), file.array->comm());
}

/// Agree on the number of records.
int sync_records(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (file.read_only) return NC_EPERM;
  return report_failure(file.array->settle(), file.array->comm());
}

int close_file(OpenFile& file) {
  int status = file.defining ? leave_define_mode(file) : NC_NOERR;
  if (status == NC_NOERR && !file.requests.empty()) status = NC_EPENDING;
  file.requests.clear();
  const int closed = report_failure(file.array->close(), file.array->comm());
  remove_file(file.id);
  return status != NC_NOERR ? status : closed;
}

/// A file that never left its first define mode goes; another keeps what it has.
int abort_file(OpenFile& file) {
  const bool drop = file.just_created;
  const int status =
      report_failure(drop ? file.array->abort() : file.array->close(), file.array->comm());
  remove_file(file.id);
  return status;
}

int set_fill_mode(OpenFile& file, int mode, int* old_mode) {
  if (file.read_only) return NC_EPERM;
  if (!file.defining) return NC_ENOTINDEFINE;
  const bool known = mode == NC_FILL || mode == NC_NOFILL;
  const int status = agree_on_call(file, known ? NC_NOERR : NC_EINVAL,
                                   {{NC_EMULTIDEFINE_FILL_MODE, std::int64_t{mode}}});
  if (status != NC_NOERR) return status;
  if (old_mode != nullptr) *old_mode = file.fill ? NC_FILL : NC_NOFILL;
  file.fill = mode == NC_FILL;
  for (std::size_t i = file.n_stored_variables; i < file.next.variables.size(); ++i) {
    file.next.variables[i].no_fill = !file.fill;
  }
  return NC_NOERR;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

TAILRACE_SERVE(ncmpi_enddef, (int ncid), (ncid), ours::leave_define_mode(file))

// Alignment and free space belong to the classic format's header; HDF5 has none.
int ncmpi__enddef(int ncid, MPI_Offset h_minfree, MPI_Offset v_align, MPI_Offset v_minfree,
                  MPI_Offset r_align) {
  return ours::serve(
      ncid,
      [&](ours::OpenFile& file) -> int {
        if (!file.defining) return NC_ENOTINDEFINE;
        if (h_minfree < 0 || v_align < 0 || v_minfree < 0 || r_align < 0) return NC_EINVAL;
        return ours::leave_define_mode(file);
      },
      [&]() -> int {
        const auto real = ours::real_function<decltype(&ncmpi__enddef)>("ncmpi__enddef");
        return real == nullptr ? NC_EBADID : real(ncid, h_minfree, v_align, v_minfree, r_align);
      });
}

TAILRACE_SERVE(ncmpi_redef, (int ncid), (ncid), ours::enter_define_mode(file))
TAILRACE_SERVE(ncmpi_begin_indep_data, (int ncid), (ncid), ours::begin_independent(file))
TAILRACE_SERVE(ncmpi_end_indep_data, (int ncid), (ncid), ours::end_independent(file))
TAILRACE_SERVE(ncmpi_sync, (int ncid), (ncid), ours::flush(file))
TAILRACE_SERVE(ncmpi_flush, (int ncid), (ncid), ours::flush(file))
TAILRACE_SERVE(ncmpi_sync_numrecs, (int ncid), (ncid), ours::sync_records(file))
TAILRACE_SERVE(ncmpi_close, (int ncid), (ncid), ours::close_file(file))
TAILRACE_SERVE(ncmpi_abort, (int ncid), (ncid), ours::abort_file(file))
TAILRACE_SERVE(ncmpi_set_fill, (int ncid, int fillmode, int* old_modep),
               (ncid, fillmode, old_modep), ours::set_fill_mode(file, fillmode, old_modep))

}  // extern "C"
