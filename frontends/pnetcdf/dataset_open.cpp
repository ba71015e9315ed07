// Datasets: create, open, delete; which files are ours, and which the real library's.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "exec/comm_factory.hpp"
#include "hdf5_filter/own_filters.hpp"
#include "pnetcdf/library_settings.hpp"
#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {
namespace {

/// "lustre:/scratch/f.nc": MPI-IO's prefixes name a file system, and we need none.
std::string without_prefix(const char* path) {
  const char* colon = std::strchr(path, ':');
  const bool prefix =
      colon != nullptr && std::memchr(path, '/', static_cast<std::size_t>(colon - path)) == nullptr;
  return prefix ? colon + 1 : path;
}

int error_of_errno(int number) {
  switch (number) {
    case ENOENT: return NC_ENOENT;
    case EACCES:
    case EPERM: return NC_EACCESS;
    case ENAMETOOLONG: return NC_EBAD_FILE;
    case EEXIST: return NC_EEXIST;
    default: return NC_EFILE;
  }
}

/// The file's format, or a (negative) error. HDF5's signature may follow a user block.
int format_of_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return error_of_errno(errno);
  char start[8] = {};
  int format = pread(descriptor, start, 8, 0) == 8 ? NC_FORMAT_UNKNOWN : NC_EFILE;
  if (format == NC_FORMAT_UNKNOWN && std::memcmp(start, "CDF", 3) == 0) {
    const char version = start[3];
    if (version == 1) format = NC_FORMAT_CLASSIC;
    if (version == 2) format = NC_FORMAT_CDF2;
    if (version == 5) format = NC_FORMAT_CDF5;
  } else if (format == NC_FORMAT_UNKNOWN) {
    for (off_t address = 0; pread(descriptor, start, 8, address) == 8;
         address = address == 0 ? 512 : 2 * address) {
      if (std::memcmp(start, "\211HDF\r\n\032\n", 8) != 0) continue;
      format = NC_FORMAT_NETCDF4;
      break;
    }
  }
  close(descriptor);
  return format;
}

int format_of_mode(int mode) {
  if ((mode & NC_64BIT_DATA) != 0) return NC_FORMAT_CDF5;
  if ((mode & NC_64BIT_OFFSET) != 0) return NC_FORMAT_CDF2;
  if ((mode & NC_NETCDF4) != 0) {
    return (mode & NC_CLASSIC_MODEL) != 0 ? NC_FORMAT_NETCDF4_CLASSIC : NC_FORMAT_NETCDF4;
  }
  return (mode & NC_CLASSIC_MODEL) != 0 ? NC_FORMAT_CLASSIC : default_format();
}

int check_create_mode(int mode) {
  constexpr int kFormats[] = {NC_64BIT_OFFSET, NC_64BIT_DATA, NC_NETCDF4};
  int n_formats = 0;
  for (const int format : kFormats) n_formats += (mode & format) != 0 ? 1 : 0;
  if (n_formats > 1 || (mode & (NC_DISKLESS | NC_MMAP)) != 0) return NC_EINVAL_CMODE;
  return NC_NOERR;
}

bool asks_for_safe_mode() {
  const char* safe = std::getenv("PNETCDF_SAFE_MODE");
  return safe != nullptr && *safe != '0';
}

/// Rank 0's flags count; a rank that has others goes on with them and says so at the end. In safe
/// mode, which one rank's environment may ask for, all ranks say it.
int agree_on_flags(MPI_Comm comm, int disagreement, int& flags, bool& safe_mode) {
  int root_flags = flags;
  MPI_Bcast(&root_flags, 1, MPI_INT, 0, comm);
  const int status = root_flags == flags ? NC_NOERR : disagreement;
  flags = root_flags;
  const int mine[2] = {status, asks_for_safe_mode() ? -1 : 0};
  int least[2] = {0, 0};
  MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, comm);
  safe_mode = least[1] != 0;
  return safe_mode ? least[0] : status;
}

/// Formats by path that this program has asked for: one that comes back to its own file finds the
/// format that it gave it. Other programs find netCDF-4, which it is.
struct AskedFormats {
  std::mutex mutex;
  std::map<std::string, int> by_path;
};

AskedFormats& asked_formats() {
  static AskedFormats formats;
  return formats;
}

void remember_format(const std::string& path, int format) {
  AskedFormats& formats = asked_formats();
  const std::lock_guard<std::mutex> lock(formats.mutex);
  formats.by_path[path] = format;
}

int asked_format(const std::string& path) {
  AskedFormats& formats = asked_formats();
  const std::lock_guard<std::mutex> lock(formats.mutex);
  const auto found = formats.by_path.find(path);
  return found == formats.by_path.end() ? NC_FORMAT_NETCDF4 : found->second;
}

std::unique_ptr<OpenFile> new_file(const char* path, MPI_Info info, bool safe_mode) {
  static std::atomic<std::uint64_t> turn = 0;
  auto file = std::make_unique<OpenFile>();
  file->turn = turn++;
  file->path = path;
  const char* relaxed = std::getenv("PNETCDF_RELAX_COORD_BOUND");
  file->safe_mode = safe_mode;
  file->strict_bounds = relaxed != nullptr && *relaxed == '0';
  if (info != MPI_INFO_NULL) MPI_Info_dup(info, &file->info);
  return file;
}

/// Take what create or open gave, or its failure; alike on all ranks.
int finish_open(Result<std::unique_ptr<ArrayFile>> made, MPI_Comm comm, int disagreement,
                std::unique_ptr<OpenFile> file, int* ncid) {
  if (!made.ok()) return report_failure(made.status(), comm);
  file->array = std::move(*made);
  file->take_definitions();
  file->list_objects();
  const int status = add_file(std::move(file), ncid);
  return status != NC_NOERR ? status : disagreement;
}

/// Options of a new or opened dataset; our own filters are at hand without their plug-ins.
/// Collective.
Status prepare_options(MPI_Comm comm, ArrayFileOptions& options) {
  TAILRACE_TRY(read_settings(comm, options));
  TAILRACE_TRY(hdf5::register_own_filters());
  return Status();
}

int create(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid) {
  if (path == nullptr || *path == '\0') return NC_EBAD_FILE;
  bool safe_mode = false;
  const int disagreement = agree_on_flags(comm, NC_EMULTIDEFINE_CMODE, mode, safe_mode);
  const int status = check_create_mode(mode);
  if (status != NC_NOERR) return status;
  ArrayFileOptions options;
  if (const Status settings = prepare_options(comm, options); !settings.ok()) {
    return report_failure(settings, comm);
  }
  Result<std::unique_ptr<Comm>> ranks = make_mpi_comm(&comm, sizeof(MPI_Comm));
  if (!ranks.ok()) return report_failure(ranks.status(), comm);
  options.file.replace = (mode & NC_NOCLOBBER) == 0;
  std::unique_ptr<OpenFile> file = new_file(path, info, safe_mode);
  file->create_mode = mode;
  file->format = format_of_mode(mode);
  file->defining = file->just_created = true;
  remember_format(file->path, file->format);
  return finish_open(ArrayFile::create(std::move(*ranks), without_prefix(path), options), comm,
                     disagreement, std::move(file), ncid);
}

int open_hdf5(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid) {
  bool safe_mode = false;
  const int disagreement = agree_on_flags(comm, NC_EMULTIDEFINE_OMODE, mode, safe_mode);
  ArrayFileOptions options;
  if (const Status settings = prepare_options(comm, options); !settings.ok()) {
    return report_failure(settings, comm);
  }
  Result<std::unique_ptr<Comm>> ranks = make_mpi_comm(&comm, sizeof(MPI_Comm));
  if (!ranks.ok()) return report_failure(ranks.status(), comm);
  std::unique_ptr<OpenFile> file = new_file(path, info, safe_mode);
  file->create_mode = mode;
  file->format = asked_format(file->path);
  file->read_only = (mode & NC_WRITE) == 0;
  const auto access = file->read_only ? ArrayFile::Access::read : ArrayFile::Access::write;
  const int status =
      finish_open(ArrayFile::open(std::move(*ranks), without_prefix(path), access, options), comm,
                  disagreement, std::move(file), ncid);
  if (OpenFile* opened = find_file(*ncid); opened != nullptr) {
    opened->n_stored_variables = opened->next.variables.size();
    if (!opened->array->comm().is_root()) return status;
    for (const std::string& remark : opened->next.remarks) {
      std::fprintf(stderr, "tailrace: %s: %s\n", path, remark.c_str());
    }
  }
  return status;
}

/// The dataset of this path that the program is writing, the latest of several; nullptr: none.
OpenFile* writer_of(const char* path) {
  OpenFile* found = nullptr;
  for (const int id : open_files()) {
    OpenFile* file = find_file(id);
    if (file->path != path || file->read_only || file->defining) continue;
    if (found == nullptr || found->turn < file->turn) found = file;
  }
  return found;
}

/// A program that opens again what it has not closed finds its values there, as it would in a
/// classic file. If these ranks, and they alone, are writing the file, it is flushed; else left as
/// it is: a flush needs all its ranks. Collective: one allreduce.
int flush_own_writer(MPI_Comm comm, const char* path) {
  OpenFile* writer = writer_of(path);
  int n_ranks = 0;
  MPI_Comm_size(comm, &n_ranks);
  const int mine = writer != nullptr && writer->array->comm().n_ranks() == n_ranks ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  if (all == 0) return NC_NOERR;
  return report_failure(writer->array->flush(), comm);
}

int open_file(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid) {
  if (path == nullptr || *path == '\0') return NC_EBAD_FILE;
  if (const int status = flush_own_writer(comm, path); status != NC_NOERR) return status;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  int format = rank == 0 ? format_of_file(without_prefix(path)) : 0;
  MPI_Bcast(&format, 1, MPI_INT, 0, comm);
  if (format == NC_FORMAT_UNKNOWN) return NC_ENOTNC;
  if (format < 0) return format;
  if (format == NC_FORMAT_NETCDF4) return open_hdf5(comm, path, mode, info, ncid);
  const auto real = real_function<decltype(&ncmpi_open)>("ncmpi_open");
  if (real != nullptr) return real(comm, path, mode, info, ncid);
  report_failure(Status(Code::unsupported, std::string(path) +
                                               " is a classic netCDF file, and there is no "
                                               "libpnetcdf to read it (TAILRACE_PNETCDF_LIBRARY)"),
                 comm);
  return NC_ENOTBUILT;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" {

int ncmpi_create(MPI_Comm comm, const char* path, int cmode, MPI_Info info, int* ncidp) {
  if (ours::switched_off()) {
    const auto real = ours::real_function<decltype(&ncmpi_create)>("ncmpi_create");
    return real == nullptr ? NC_ENOTBUILT : real(comm, path, cmode, info, ncidp);
  }
  return ours::guarded([&] { return ours::create(comm, path, cmode, info, ncidp); });
}

int ncmpi_open(MPI_Comm comm, const char* path, int omode, MPI_Info info, int* ncidp) {
  if (ours::switched_off()) {
    const auto real = ours::real_function<decltype(&ncmpi_open)>("ncmpi_open");
    return real == nullptr ? NC_ENOTBUILT : real(comm, path, omode, info, ncidp);
  }
  return ours::guarded([&] { return ours::open_file(comm, path, omode, info, ncidp); });
}

int ncmpi_inq_file_format(const char* filename, int* formatp) {
  if (formatp == nullptr) return NC_NOERR;
  const int format = ours::format_of_file(ours::without_prefix(filename));
  *formatp = format < 0                    ? NC_FORMAT_UNKNOWN
             : format == NC_FORMAT_NETCDF4 ? ours::asked_format(filename)
                                           : format;
  return format < 0 && format != NC_FORMAT_UNKNOWN ? format : NC_NOERR;
}

int ncmpi_delete(const char* filename, MPI_Info) {
  if (filename == nullptr || *filename == '\0') return NC_EBAD_FILE;
  return unlink(ours::without_prefix(filename).c_str()) == 0 ? NC_NOERR
                                                             : ours::error_of_errno(errno);
}

}  // extern "C"
