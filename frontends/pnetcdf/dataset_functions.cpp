// Datasets: create, open, delete, and whether Tailrace or the real library serves a file. Define,
// collective and independent mode, flushes, close, abort. Inquiries about a dataset, and functions
// that concern no dataset.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "core/environment.hpp"
#include "exec/comm_factory.hpp"
#include "exec/mpi_finalize.hpp"
#include "filters/own_filters.hpp"
#include "pnetcdf/open_file.hpp"
#include "pnetcdf/openings.hpp"
#include "report/flush_text.hpp"
#include "report/remark.hpp"
#include "verbs/lay_in_front.hpp"

namespace tailrace::pnetcdf {

// --- create, open, delete

namespace {

/// Remove MPI-IO's file system prefix, as in "lustre:/scratch/f.nc". Other colons are part of the
/// name, as in times: "wrfout_d01_2005-08-28_12:00:00".
std::string without_prefix(const char* path) {
  constexpr std::array<std::string_view, 14> prefixes = {
      "ufs:", "nfs:",    "lustre:", "panfs:", "pvfs2:",   "gpfs:",   "beegfs:",
      "xfs:", "zoidfs:", "ime:",    "daos:",  "quobyte:", "testfs:", "gridftp:"};
  const std::string_view name = path;
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return std::string(name.substr(prefix.size()));
  }
  return std::string(name);
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

/// Detect the file's format, or return a (negative) error. HDF5's signature may follow a user
/// block.
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
  const char* safe = environment_variable("PNETCDF_SAFE_MODE");
  return safe != nullptr && *safe != '0';
}

/// Agreement on rank 0's flags. A rank with other flags continues with rank 0's, and returns
/// `disagreement` at the end. In safe mode, which any rank's environment may request, all ranks
/// return it. If one rank has no dataset number left, all return NC_ENFILE: a file is open on all
/// ranks or on none. The numbers travel with another agreement of the ranks.
class FlagsAgreement {
 public:
  FlagsAgreement(int mine, int disagreement)
      : mine_(mine),
        disagreement_(disagreement),
        most_(static_cast<unsigned>(mine)),
        most_complement_(~most_),
        safe_mode_(asks_for_safe_mode() ? 1 : 0),
        full_(open_files().size() >= NC_MAX_NFILES ? 1 : 0) {}
  FlagsAgreement(const FlagsAgreement&) = delete;
  FlagsAgreement& operator=(const FlagsAgreement&) = delete;

  RankNumbers numbers() {
    RankNumbers numbers;
    numbers.add(Reduction::max, most_, most_complement_, safe_mode_, full_);
    return numbers;
  }
  /// Before the agreement: this rank's own; afterwards of any rank.
  bool full() const { return full_ != 0; }
  bool safe_mode() const { return safe_mode_ != 0; }
  /// Result of the agreement. @param flags  rank 0's.
  int status(int flags) const {
    if (full()) return NC_ENFILE;
    const bool differ = safe_mode() ? most_ != ~most_complement_ : flags != mine_;
    return differ ? disagreement_ : NC_NOERR;
  }

 private:
  int mine_;
  int disagreement_;
  std::uint64_t most_;
  std::uint64_t most_complement_;
  std::uint64_t safe_mode_;
  std::uint64_t full_;
};

/// Formats that this program requested, by path. If the program reopens its file, it finds the
/// requested format; other programs find netCDF-4, which is the actual format.
struct RequestedFormats {
  std::mutex mutex;
  std::map<std::string, int> by_path;
};

RequestedFormats& requested_formats() {
  static RequestedFormats formats;
  return formats;
}

void remember_format(const std::string& path, int format) {
  RequestedFormats& formats = requested_formats();
  const std::lock_guard<std::mutex> lock(formats.mutex);
  formats.by_path[path] = format;
}

int requested_format(const std::string& path) {
  RequestedFormats& formats = requested_formats();
  const std::lock_guard<std::mutex> lock(formats.mutex);
  const auto found = formats.by_path.find(path);
  return found == formats.by_path.end() ? NC_FORMAT_NETCDF4 : found->second;
}

std::unique_ptr<OpenFile> new_file(const char* path, int mode, MPI_Info info) {
  static std::atomic<std::uint64_t> turn = 0;
  auto file = std::make_unique<OpenFile>();
  file->turn = turn++;
  file->path = path;
  file->create_mode = mode;
  const char* relaxed = environment_variable("PNETCDF_RELAX_COORD_BOUND");
  file->strict_bounds = relaxed != nullptr && *relaxed == '0';
  if (info != MPI_INFO_NULL) MPI_Info_dup(info, &file->info);
  return file;
}

void close_what_is_left_open();

/// Finish create or open from its result; alike on all ranks. A failure waits for all ranks, so
/// that rank 0 prints it before another rank returns, because programs abort then.
int finish_open(Result<std::unique_ptr<ArrayFile>> made, MPI_Comm comm,
                const FlagsAgreement& agreement, std::unique_ptr<OpenFile> file, int* ncid) {
  const int disagreement = agreement.status(file->create_mode);
  if (!made.ok()) {
    const bool full = disagreement == NC_ENFILE;
    const int code = full ? NC_ENFILE : report_failure(made.status(), comm);
    MPI_Barrier(comm);
    return code;
  }
  file->array = std::move(*made);
  file->safe_mode = agreement.safe_mode();
  if (const std::string remark = file->array->remark(); !remark.empty()) {
    report::print_remark({remark});
  }
  file->take_definitions();
  file->list_objects();
  if (!file->read_only) close_what_is_left_open();
  count_opening(Opening::by_tailrace);
  const int status = add_file(std::move(file), ncid);
  return status != NC_NOERR ? status : disagreement;
}

/// Read the options of a new or opened dataset, and register Tailrace's filters, so that their
/// plug-ins are not needed. Also take rank 0's flags. Collective: one broadcast. @returns this
/// rank's failure, because only a rank itself can check whether a codec's plug-in exists on its
/// node.
Status prepare_options(Comm& comm, ArrayFileOptions& options, bool writes, int& flags,
                       const FlagsAgreement& agreement) {
  options.file.door = Door::pnetcdf;
  const Status prepared = local_part([&] {
    // Attributes of thousands of small variables cost more than the variables.
    options.file.notes = Notes::one;
    TAILRACE_TRY(read_array_options(comm, options, writes, &flags));
    return hdf5::register_own_filters();
  });
  if (agreement.full()) return Status(Code::invalid_argument, "too many files are open");
  return prepared;
}

/// Extract option layout=front, which applies to the closed file, when its chunks are known. Not
/// collective: all ranks have made a Comm of `comm` before.
Result<std::optional<OpenFile::Front>> take_front(MPI_Comm comm, ArrayFileOptions& options) {
  if (options.file.field_defaults.layout != kFrontLayout) return std::optional<OpenFile::Front>();
  options.file.field_defaults.layout = "claimed";
  OpenFile::Front front;
  front.like = options.file;
  TAILRACE_TAKE(front.world, make_mpi_comm(&comm, sizeof(MPI_Comm)));
  return std::optional(std::move(front));
}

int create(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid) {
  if (path == nullptr || *path == '\0') return NC_EBAD_FILE;
  ArrayFileOptions options;
  Result<std::unique_ptr<Comm>> ranks = make_mpi_comm(&comm, sizeof(MPI_Comm));
  if (!ranks.ok()) return report_failure(ranks.status(), comm);
  FlagsAgreement agreement(mode, NC_EMULTIDEFINE_CMODE);
  Status prepared = prepare_options(**ranks, options, true, mode, agreement);
  // No rank returns before the agreement, since only rank 0's flags are equal everywhere.
  const int wrong_mode = check_create_mode(mode);
  if (wrong_mode != NC_NOERR) prepared = Status(Code::invalid_argument, "wrong flags");
  options.file.replace = (mode & NC_NOCLOBBER) == 0;
  Result<std::optional<OpenFile::Front>> front = take_front(comm, options);
  if (prepared.ok()) prepared = front.status();
  std::unique_ptr<OpenFile> file = new_file(path, mode, info);
  if (front.ok()) file->front = std::move(*front);
  file->format = format_of_mode(mode);
  file->defining = file->just_created = true;
  remember_format(file->path, file->format);
  Result<std::unique_ptr<ArrayFile>> made = ArrayFile::create(
      std::move(*ranks), without_prefix(path), options, prepared, agreement.numbers());
  if (!made.ok() && wrong_mode != NC_NOERR) {
    MPI_Barrier(comm);  // Like finish_open().
    return wrong_mode;
  }
  return finish_open(std::move(made), comm, agreement, std::move(file), ncid);
}

int open_hdf5(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid) {
  ArrayFileOptions options;
  Result<std::unique_ptr<Comm>> ranks = make_mpi_comm(&comm, sizeof(MPI_Comm));
  if (!ranks.ok()) return report_failure(ranks.status(), comm);
  FlagsAgreement agreement(mode, NC_EMULTIDEFINE_OMODE);
  const bool writes = (mode & NC_WRITE) != 0;
  Status prepared = prepare_options(**ranks, options, writes, mode, agreement);
  std::unique_ptr<OpenFile> file = new_file(path, mode, info);
  if ((mode & NC_WRITE) != 0) {
    Result<std::optional<OpenFile::Front>> front = take_front(comm, options);
    if (prepared.ok()) prepared = front.status();
    if (front.ok()) file->front = std::move(*front);
  }
  file->format = requested_format(file->path);
  file->read_only = (mode & NC_WRITE) == 0;
  const auto access = file->read_only ? ArrayFile::Access::read : ArrayFile::Access::write;
  const int status = finish_open(ArrayFile::open(std::move(*ranks), without_prefix(path), access,
                                                 options, prepared, agreement.numbers()),
                                 comm, agreement, std::move(file), ncid);
  if (OpenFile* opened = find_file(*ncid); opened != nullptr) {
    opened->n_stored_variables = opened->next.variables.size();
    if (!opened->array->comm().is_root()) return status;
    for (const std::string& remark : opened->next.remarks) {
      report::print_remark({path, ": ", remark});
    }
  }
  return status;
}

/// Find the dataset of this path that the program is writing: the latest of several, nullptr if
/// none.
OpenFile* writer_of(const char* path) {
  OpenFile* found = nullptr;
  for (const int id : open_files()) {
    OpenFile* file = find_file(id);
    if (file->path != path || file->read_only || file->defining) continue;
    if (found == nullptr || found->turn < file->turn) found = file;
  }
  return found;
}

/// Flush a file that the program opens again without having closed it, so that it finds its values,
/// as in a classic file. The file is flushed only if exactly these ranks are writing it, because a
/// flush needs all its ranks. Collective: one allreduce.
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

/// Create or open a file, and count the call.
template <class Call>
int counted(Call&& call) noexcept {
  const int status = guarded(call);
  if (status != NC_NOERR) count_opening(Opening::failed);
  return status;
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
  count_opening(Opening::by_real_library);
  const auto real = real_function<decltype(&ncmpi_open)>("ncmpi_open");
  if (real != nullptr) return real(comm, path, mode, info, ncid);
  report_failure(
      Status(Code::unsupported,
             std::string(path) + " is a classic netCDF file, which needs libpnetcdf, but that "
                                 "library was not found; set TAILRACE_PNETCDF_LIBRARY to its path"),
      comm);
  return NC_ENOTBUILT;
}

}  // namespace

// --- define mode, data modes, close

namespace {

int leave_define_mode(OpenFile& file) {
  if (!file.defining) return NC_ENOTINDEFINE;
  if (const int status = file.apply_definitions(); status != NC_NOERR) return status;
  file.defining = file.just_created = file.independent = false;
  return NC_NOERR;
}

int enter_define_mode(OpenFile& file) {
  if (file.read_only) return NC_EPERM;
  if (file.defining) return NC_EINDEFINE;
  if (file.independent) {
    const int status = report_failure(file.array->end_collective_put(), file.array->comm());
    if (status != NC_NOERR) return status;
  }
  file.independent = false;
  file.take_definitions();
  file.n_stored_variables = file.next.variables.size();
  file.defining = true;
  return NC_NOERR;
}

/// Flush collective puts, which independent gets of other ranks must see.
int begin_independent(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (file.independent) return NC_NOERR;
  file.independent = true;
  return file.read_only ? NC_NOERR : report_failure(file.array->sync_to_read(), file.array->comm());
}

int end_independent(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (!file.independent) return NC_NOERR;
  file.independent = false;
  return file.read_only ? NC_NOERR
                        : report_failure(file.array->end_collective_put(), file.array->comm());
}

/// Flush. In the modes async and in_situ the next collective call completes it. In independent mode
/// other ranks may read the values by themselves, so that the flush ends at once.
int flush(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (file.read_only) return NC_NOERR;
  ArrayFile& array = *file.array;
  return report_failure(file.independent ? array.flush() : array.flush_concurrently(),
                        array.comm());
}

/// Agree on the number of records.
int sync_records(OpenFile& file) {
  if (file.defining) return NC_EINDEFINE;
  if (file.read_only) return NC_EPERM;
  return report_failure(file.array->end_collective_put(), file.array->comm());
}

/// Move the metadata of a closed file to its front, if layout=front was requested.
int lay_in_front(OpenFile& file) {
  if (!file.front || file.array->report().n_flushes == 0) return NC_NOERR;
  Comm& ranks = file.array->comm();
  const auto world = [&file] { return std::move(file.front->world); };
  const int status =
      report_failure(verbs::lay_in_front({ranks, world, {}, {}}, without_prefix(file.path.c_str()),
                                         file.front->like),
                     ranks);
  file.front.reset();
  return status;
}

/// Print one line about the file's flushes from rank 0 if TAILRACE_REPORT=1.
void report_flushes(const OpenFile& file) {
  if (file.read_only || !file.array->comm().is_root()) return;
  if (!environment_is("TAILRACE_REPORT", "1")) return;
  report::print_remark({report::flush_text(file.path, *file.array)});
}

int close_file(OpenFile& file) {
  int status = file.defining ? leave_define_mode(file) : NC_NOERR;
  if (status == NC_NOERR && !file.requests.empty()) status = NC_EPENDING;
  file.requests.clear();
  int closed = report_failure(file.array->close(), file.array->comm());
  const std::string remark = file.array->closing_remark();
  if (!remark.empty() && file.array->comm().is_root()) {
    report::print_remark({file.path, ": ", remark});
  }
  for (const std::string& line : file.array->take_remarks()) {
    report::print_remark({file.path, ": ", line});
  }
  report_flushes(file);
  if (closed == NC_NOERR) closed = lay_in_front(file);
  remove_file(file.id);
  return status != NC_NOERR ? status : closed;
}

/// Abort: a file that never left its first define mode is removed; others retain their contents.
int abort_file(OpenFile& file) {
  const bool drop = file.just_created;
  const int status =
      report_failure(drop ? file.array->abort() : file.array->close(), file.array->comm());
  remove_file(file.id);
  return status;
}

// --- datasets left open by the program. The real library's files would contain their values.

/// List the files that are being written, in the order in which their ranks have opened them. Ranks
/// that share several files then close them in the same order, whatever else each has open.
std::vector<OpenFile*> left_open() {
  std::vector<OpenFile*> files;
  for (const int id : open_files()) {
    if (!find_file(id)->read_only) files.push_back(find_file(id));
  }
  std::ranges::sort(files, [](const OpenFile* a, const OpenFile* b) { return a->turn < b->turn; });
  return files;
}

/// Close all files left open. This also serves ranks that wait in ncmpi_close for a rank that did
/// not call it.
void close_in_finalize() {
  for (OpenFile* file : left_open()) {
    const bool speaks = file->array->comm().is_root();
    const std::string path = file->path;
    const int status = guarded([&] { return close_file(*file); });
    if (!speaks) continue;
    if (status == NC_NOERR) {
      report::print_remark({path, ": closed by MPI_Finalize; ncmpi_close was not called"});
    } else {
      report::print_remark({path, ": MPI_Finalize could not close the file: ",
                            ncmpi_strerror(status), "; ncmpi_close was not called"});
    }
  }
}

/// Report the values that are lost. Closing needs all ranks, which is impossible at process exit.
void report_lost_files() {
  for (const OpenFile* file : left_open()) {
    // Stop the threads first, because their resources are released next.
    file->array->end_alone();
    if (!file->array->comm().is_root()) continue;
    const char* const last = file->array->flushes_concurrently()
                                 ? "flush that a later call completed (mode=async or in_situ)"
                                 : "ncmpi_sync or ncmpi_flush";
    report::print_remark({file->path, ": the program ended without ncmpi_close and MPI_Finalize; ",
                          "everything written since the last ", last,
                          " is lost; run tailrace recover ", file->path});
  }
}

void close_what_is_left_open() { close_at_finalize<close_in_finalize, report_lost_files>(); }

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

// --- inquiries

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

/// The flags with which a program would create such a file.
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

int ncmpi_create(MPI_Comm comm, const char* path, int cmode, MPI_Info info, int* ncidp) {
  if (ours::switched_off()) {
    const auto real = ours::real_function<decltype(&ncmpi_create)>("ncmpi_create");
    return real == nullptr ? NC_ENOTBUILT : real(comm, path, cmode, info, ncidp);
  }
  return ours::counted([&] { return ours::create(comm, path, cmode, info, ncidp); });
}

int ncmpi_open(MPI_Comm comm, const char* path, int omode, MPI_Info info, int* ncidp) {
  if (ours::switched_off()) {
    const auto real = ours::real_function<decltype(&ncmpi_open)>("ncmpi_open");
    return real == nullptr ? NC_ENOTBUILT : real(comm, path, omode, info, ncidp);
  }
  return ours::counted([&] { return ours::open_file(comm, path, omode, info, ncidp); });
}

int ncmpi_inq_file_format(const char* filename, int* formatp) {
  if (formatp == nullptr) return NC_NOERR;
  const int format = ours::format_of_file(ours::without_prefix(filename));
  *formatp = format < 0                    ? NC_FORMAT_UNKNOWN
             : format == NC_FORMAT_NETCDF4 ? ours::requested_format(filename)
                                           : format;
  return format < 0 && format != NC_FORMAT_UNKNOWN ? format : NC_NOERR;
}

int ncmpi_delete(const char* filename, MPI_Info) {
  if (filename == nullptr || *filename == '\0') return NC_EBAD_FILE;
  return unlink(ours::without_prefix(filename).c_str()) == 0 ? NC_NOERR
                                                             : ours::error_of_errno(errno);
}

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
// HDF5 files have no contiguous header before the data, so its size is reported as 0.
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

// Only libraries built to trace allocations support these; Debian's does not either.
int ncmpi_inq_malloc_size(MPI_Offset*) { return NC_ENOTENABLED; }
int ncmpi_inq_malloc_max_size(MPI_Offset*) { return NC_ENOTENABLED; }
int ncmpi_inq_malloc_list(void) { return NC_ENOTENABLED; }

int ncmpi_inq_files_opened(int* num, int* ncids) {
  if (num == nullptr) return NC_EINVAL;
  *num = 0;
  const auto real =
      ours::real_function<decltype(&ncmpi_inq_files_opened)>("ncmpi_inq_files_opened");
  if (real != nullptr) {
    if (const int status = real(num, ncids); status != NC_NOERR) return status;
  }
  for (const int id : ours::open_files()) {
    if (ncids != nullptr) ncids[*num] = id;
    ++*num;
  }
  return NC_NOERR;
}

}  // extern "C"
