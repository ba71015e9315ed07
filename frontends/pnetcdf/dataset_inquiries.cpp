// Datasets: what can be asked about one as a whole, and what concerns none in particular.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {
namespace {

std::atomic<int> created_format = NC_FORMAT_CLASSIC;

template <class T, class Value>
int answer(T* place, Value value) {
  if (place != nullptr) *place = static_cast<T>(value);
  return NC_NOERR;
}

int inquire(OpenFile& file, int* n_dimensions, int* n_variables, int* n_attributes,
            int* unlimited) {
  answer(n_dimensions, file.dimensions.size());
  answer(n_variables, file.variables.size());
  answer(n_attributes, file.next.groups[0].attributes.size());
  return answer(unlimited, file.unlimited());
}

int count_variables(OpenFile& file, bool record, int* n) {
  int count = 0;
  for (std::size_t i = 0; i < file.variables.size(); ++i) {
    count += file.is_record_variable(static_cast<int>(i)) == record ? 1 : 0;
  }
  return answer(n, count);
}

/// The flags that a program would create such a file with.
int flags_of_format(const OpenFile& file, int* mode) {
  switch (file.format) {
    case NC_FORMAT_CDF5: return answer(mode, NC_64BIT_DATA);
    case NC_FORMAT_CDF2: return answer(mode, NC_64BIT_OFFSET);
    case NC_FORMAT_NETCDF4: return answer(mode, NC_NETCDF4);
    case NC_FORMAT_NETCDF4_CLASSIC: return answer(mode, NC_NETCDF4 | NC_CLASSIC_MODEL);
    default: return answer(mode, 0);
  }
}

int striping_hint(const OpenFile& file, const char* key) {
  char text[MPI_MAX_INFO_VAL + 1] = {};
  int given = 0;
  if (file.info != MPI_INFO_NULL) {
    MPI_Info_get(file.info, key, MPI_MAX_INFO_VAL, text, &given);
  }
  return given != 0 ? std::atoi(text)
                    : 0;  // NOLINT(bugprone-unchecked-string-to-number-conversion)
}

int inquire_striping(const OpenFile& file, int* size, int* count) {
  answer(size, striping_hint(file, "striping_unit"));
  return answer(count, striping_hint(file, "striping_factor"));
}

int give_hints(const OpenFile& file, MPI_Info* info) {
  if (info == nullptr) return NC_EINVAL;
  if (file.info != MPI_INFO_NULL)
    MPI_Info_dup(file.info, info);
  else
    MPI_Info_create(info);
  return NC_NOERR;
}

int give_path(const OpenFile& file, int* length, char* path) {
  if (path != nullptr) std::memcpy(path, file.path.c_str(), file.path.size() + 1);
  return answer(length, file.path.size());
}

bool is_format(int format) {
  constexpr int kKnown[] = {NC_FORMAT_CLASSIC, NC_FORMAT_CDF2, NC_FORMAT_CDF5, NC_FORMAT_NETCDF4,
                            NC_FORMAT_NETCDF4_CLASSIC};
  return std::find(std::begin(kKnown), std::end(kKnown), format) != std::end(kKnown);
}

}  // namespace

int default_format() { return created_format.load(); }

}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

TAILRACE_SERVE(ncmpi_inq, (int ncid, int* ndimsp, int* nvarsp, int* ngattsp, int* unlimdimidp),
               (ncid, ndimsp, nvarsp, ngattsp, unlimdimidp),
               ours::inquire(file, ndimsp, nvarsp, ngattsp, unlimdimidp))
TAILRACE_SERVE(ncmpi_inq_ndims, (int ncid, int* ndimsp), (ncid, ndimsp),
               ours::inquire(file, ndimsp, nullptr, nullptr, nullptr))
TAILRACE_SERVE(ncmpi_inq_nvars, (int ncid, int* nvarsp), (ncid, nvarsp),
               ours::inquire(file, nullptr, nvarsp, nullptr, nullptr))
TAILRACE_SERVE(ncmpi_inq_natts, (int ncid, int* ngattsp), (ncid, ngattsp),
               ours::inquire(file, nullptr, nullptr, ngattsp, nullptr))
TAILRACE_SERVE(ncmpi_inq_unlimdim, (int ncid, int* unlimdimidp), (ncid, unlimdimidp),
               ours::inquire(file, nullptr, nullptr, nullptr, unlimdimidp))
TAILRACE_SERVE(ncmpi_inq_num_rec_vars, (int ncid, int* nvarsp), (ncid, nvarsp),
               ours::count_variables(file, true, nvarsp))
TAILRACE_SERVE(ncmpi_inq_num_fix_vars, (int ncid, int* nvarsp), (ncid, nvarsp),
               ours::count_variables(file, false, nvarsp))
TAILRACE_SERVE(ncmpi_inq_format, (int ncid, int* formatp), (ncid, formatp),
               ours::answer(formatp, file.format))
TAILRACE_SERVE(ncmpi_inq_version, (int ncid, int* mode), (ncid, mode),
               ours::flags_of_format(file, mode))
TAILRACE_SERVE(ncmpi_inq_striping, (int ncid, int* striping_size, int* striping_count),
               (ncid, striping_size, striping_count),
               ours::inquire_striping(file, striping_size, striping_count))
TAILRACE_SERVE(ncmpi_inq_file_info, (int ncid, MPI_Info* info_used), (ncid, info_used),
               ours::give_hints(file, info_used))
TAILRACE_SERVE(ncmpi_get_file_info, (int ncid, MPI_Info* info_used), (ncid, info_used),
               ours::give_hints(file, info_used))
TAILRACE_SERVE(ncmpi_inq_path, (int ncid, int* pathlen, char* path), (ncid, pathlen, path),
               ours::give_path(file, pathlen, path))
TAILRACE_SERVE(ncmpi_inq_recsize, (int ncid, MPI_Offset* recsize), (ncid, recsize),
               ours::answer(recsize, file.record_bytes()))
TAILRACE_SERVE(ncmpi_inq_put_size, (int ncid, MPI_Offset* size), (ncid, size),
               ours::answer(size, file.put_bytes))
TAILRACE_SERVE(ncmpi_inq_get_size, (int ncid, MPI_Offset* size), (ncid, size),
               ours::answer(size, file.got_bytes))
// An HDF5 file has no header of one piece before the data, hence one of no bytes.
TAILRACE_SERVE(ncmpi_inq_header_size, (int ncid, MPI_Offset* size), (ncid, size),
               ours::answer(size, 0))
TAILRACE_SERVE(ncmpi_inq_header_extent, (int ncid, MPI_Offset* extent), (ncid, extent),
               ours::answer(extent, 0))

const char* ncmpi_inq_libvers(void) {
  return PNETCDF_VERSION " of " PNETCDF_RELEASE_DATE ", served by Tailrace " TAILRACE_VERSION;
}

int ncmpi_set_default_format(int format, int* old_formatp) {
  const int old_format = ours::default_format();
  if (old_formatp != nullptr) *old_formatp = old_format;
  if (!ours::is_format(format)) return NC_EINVAL;
  ours::created_format = format;
  if (!ours::switched_off()) return NC_NOERR;
  const auto real =
      ours::real_function<decltype(&ncmpi_set_default_format)>("ncmpi_set_default_format");
  return real == nullptr ? NC_NOERR : real(format, nullptr);
}

int ncmpi_inq_default_format(int* formatp) {
  if (formatp == nullptr) return NC_EINVAL;
  return ours::answer(formatp, ours::default_format());
}

// Only a library built to trace its allocations answers; Debian's does not either.
int ncmpi_inq_malloc_size(MPI_Offset*) { return NC_ENOTENABLED; }
int ncmpi_inq_malloc_max_size(MPI_Offset*) { return NC_ENOTENABLED; }
int ncmpi_inq_malloc_list(void) { return NC_ENOTENABLED; }

int ncmpi_inq_files_opened(int* num, int* ncids) {
  if (num == nullptr) return NC_EINVAL;
  *num = 0;
  const auto real =
      ours::real_function<decltype(&ncmpi_inq_files_opened)>("ncmpi_inq_files_opened");
  if (real != nullptr) {
    const int status = real(num, ncids);
    if (status != NC_NOERR) return status;
  }
  for (const int id : ours::open_files()) {
    if (ncids != nullptr) ncids[*num] = id;
    ++*num;
  }
  return NC_NOERR;
}

}  // extern "C"
