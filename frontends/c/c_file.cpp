// Files of the C API: create, open, steps and their reports, idle time, close, abandon, callbacks;
// versions and errors.
//
// create and open are collective, so a rank with invalid arguments must not return early. The ranks
// agree on their arguments first; only then does any rank access the file.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "c_handle.hpp"
#include "core/option_table.hpp"
#include "output/output.hpp"
#include "trz/base/printable.hpp"

namespace tailrace {

// --- version, error numbers and error texts

namespace {

// The build system and the header must name the same release.
static_assert(std::string_view(TAILRACE_VERSION) == TAILRACE_VERSION_STRING);

// The C numbers equal those of Code.
static_assert(static_cast<int>(Code::ok) == TAILRACE_OK);
static_assert(static_cast<int>(Code::invalid_argument) == TAILRACE_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::unsupported) == TAILRACE_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(Code::not_found) == TAILRACE_ERROR_NOT_FOUND);
static_assert(static_cast<int>(Code::already_exists) == TAILRACE_ERROR_ALREADY_EXISTS);
static_assert(static_cast<int>(Code::disagreement) == TAILRACE_ERROR_DISAGREEMENT);
static_assert(static_cast<int>(Code::bad_coverage) == TAILRACE_ERROR_BAD_COVERAGE);
static_assert(static_cast<int>(Code::plugin_missing) == TAILRACE_ERROR_PLUGIN_MISSING);
static_assert(static_cast<int>(Code::codec_failed) == TAILRACE_ERROR_CODEC_FAILED);
static_assert(static_cast<int>(Code::bound_broken) == TAILRACE_ERROR_BOUND_BROKEN);
static_assert(static_cast<int>(Code::corrupt) == TAILRACE_ERROR_CORRUPT);
static_assert(static_cast<int>(Code::io_error) == TAILRACE_ERROR_IO);
static_assert(static_cast<int>(Code::no_space) == TAILRACE_ERROR_NO_SPACE);
static_assert(static_cast<int>(Code::out_of_memory) == TAILRACE_ERROR_OUT_OF_MEMORY);
static_assert(static_cast<int>(Code::internal) == TAILRACE_ERROR_INTERNAL);

thread_local std::string last_text;

void assign(std::string& text, const char* message) noexcept {
  try {
    text = message;
  } catch (const std::bad_alloc&) {
    text.assign("out of memory");  // needs no allocation in any std::string
  }
}

}  // namespace

tailrace_error remember(tailrace_file* file, Code code, const char* message) noexcept {
  assign(last_text, message);
  if (file != nullptr) assign(file->error, message);
  return static_cast<tailrace_error>(code);
}

// --- create, open, close, abandon, callbacks

namespace {

using MakeWriter = Result<std::unique_ptr<Writer>> (*)(std::unique_ptr<Comm>, const std::string&,
                                                       const FileOptions&);

Status check_path(const char* path) {
  if (path != nullptr && *path != '\0') return Status();
  return Status(Code::invalid_argument, "the file's path is NULL or empty");
}

Status check_recover_arguments(const char* path, const int* exists) {
  if (exists != nullptr) return check_path(path);
  return Status(Code::invalid_argument, "output argument `exists` must not be NULL");
}

Status check_arguments(const char* path, const char* options_text, tailrace_file** file,
                       FileOptions& options) {
  if (file == nullptr) {
    return Status(Code::invalid_argument, "output argument `file` must not be NULL");
  }
  TAILRACE_TRY(check_path(path));
  return apply_file_options(options_text == nullptr ? "" : options_text, options).within(path);
}

/// Report a file that ends without a close: to its log callback, or on stderr by rank 0. A failure
/// that the program has received is not repeated.
/// @param how  "was abandoned"
/// @param speaks  false: only to the log callback.
void report_unclosed(const OpenedFile& file, std::string_view how, bool speaks) {
  const Writer& writer = *file.writer;
  if (file.pid != ::getpid() || (!file.log && !(speaks && file.writer->comm().is_root()))) return;
  if (speaks && file.n_reported && !writer.loses_steps(*file.n_reported)) return;
  const std::string what =
      file.path + " " + std::string(how) + "; " + writer.outcome_text() +
      (writer.was_open_at_finalize() ? "; call close() before MPI_Finalize" : "");
  if (file.log) {
    file.log(what);
  } else {
    std::fprintf(stderr, "tailrace: %s\n", printable(what).c_str());
  }
}

void report_files_left_open() noexcept {
  auto& [mutex, all] = Handles<tailrace_file>::instance();
  (void)guarded(nullptr, [&files = all] {
    for (const tailrace_file& file : files) {
      if (file.opened == nullptr || file.opened->log) continue;  // A callback may be gone.
      report_unclosed(*file.opened, "was left without close() at the end of the program", true);
    }
    return Status();
  });
}

void end_unclosed(tailrace_file* file, std::string_view how, bool speaks) noexcept {
  if (file == nullptr) return;
  const std::unique_ptr<OpenedFile> ended = std::move(file->opened);
  if (ended != nullptr) {
    (void)guarded(nullptr, [&] {
      ended->writer->abandon();
      report_unclosed(*ended, how, speaks);
      return Status();
    });
  }
  file->error = {};
}

Status start_file(MakeWriter make_writer, const char* path, const void* mpi_comm,
                  std::size_t mpi_comm_bytes, const char* options_text, tailrace_file** file) {
  TAILRACE_TAKE(std::unique_ptr<Comm> comm, given_comm(mpi_comm, mpi_comm_bytes));
  auto opened = std::make_unique<OpenedFile>();
  FileOptions options;
  TAILRACE_TRY(comm->agree(check_arguments(path, options_text, file, options)));

  opened->field_defaults = options.field_defaults;
  opened->path = path;
  opened->alone = mpi_comm == nullptr;
  Result<std::unique_ptr<Writer>> made = make_writer(std::move(comm), path, options);
  if (!made.ok()) return with_communicator_hint(made.status(), opened->alone);
  opened->writer = std::move(*made);
  static const int reports_at_exit = std::atexit(report_files_left_open);
  static_cast<void>(reports_at_exit);
  *file = new_handle<tailrace_file>({std::move(opened), {}});
  return Status();
}

}  // namespace

// --- end_step and wait, and their report as plain structs

namespace {

double ratio(std::uint64_t raw_bytes, std::uint64_t encoded_bytes) {
  if (raw_bytes == 0 || encoded_bytes == 0) return 1.0;
  return static_cast<double>(raw_bytes) / static_cast<double>(encoded_bytes);
}

const char* plain(const std::string& text) { return text.c_str(); }
template <class Number>
Number plain(Number number) {
  return number;
}

// Each member has 8 bytes. Members outside the lists: struct_bytes, field, path, bound and ratio of
// a field; struct_bytes, n_fields, fields and ratio of a step.
#define TAILRACE_NAME(type, name, known) name,
enum class FieldNumber : std::size_t { TAILRACE_FIELD_REPORT_LIST(TAILRACE_NAME) n_in_list };
enum class StepNumber : std::size_t {
  TAILRACE_STEP_REPORT_LIST(TAILRACE_NAME) TAILRACE_APPLICATION_STEP_LIST(TAILRACE_NAME) n_in_list
};
#undef TAILRACE_NAME
constexpr std::size_t bytes_of(std::size_t n_members) { return n_members * sizeof(double); }
static_assert(sizeof(tailrace_field_report) ==
                  bytes_of(5 + static_cast<std::size_t>(FieldNumber::n_in_list)),
              "tailrace.h and report_lists.hpp name the same numbers of a field");
static_assert(sizeof(tailrace_step_report) ==
                  bytes_of(4 + static_cast<std::size_t>(StepNumber::n_in_list)),
              "tailrace.h and report_lists.hpp name the same numbers of a step");

#define TAILRACE_PLAIN(type, name, known) to.name = plain(from.name);

tailrace_field_report plain_report(const FieldReport& from, tailrace_field field,
                                   const char* bound) {
  tailrace_field_report to{};
  to.struct_bytes = sizeof to;
  to.field = field;
  to.path = from.path.c_str();
  to.bound = bound;
  to.ratio = ratio(from.raw_bytes, from.encoded_bytes);
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_PLAIN)
  return to;
}

tailrace_step_report plain_report(const StepReport& from) {
  tailrace_step_report to{};
  to.struct_bytes = sizeof to;
  to.n_fields = from.fields.size();
  to.ratio = ratio(from.raw_bytes, from.encoded_bytes);
  TAILRACE_STEP_REPORT_LIST(TAILRACE_PLAIN)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_PLAIN)
  return to;
}

#undef TAILRACE_PLAIN

/// Make one object that owns the report and everything that it points to.
std::unique_ptr<HeldReport> hold(StepReport step, const OpenedFile& file) {
  auto held = std::make_unique<HeldReport>();
  held->step = std::move(step);
  const std::vector<FieldReport>& fields = held->step.fields;
  for (const FieldReport& field : fields) held->bounds.push_back(error_bound_text(field.bound));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto known = file.field_of_path.find(fields[i].path);
    const tailrace_field number =
        known == file.field_of_path.end() ? TAILRACE_NO_FIELD : known->second;
    held->fields.push_back(plain_report(fields[i], number, held->bounds[i].c_str()));
  }
  for (const tailrace_field_report& field : held->fields) held->field_pointers.push_back(&field);
  held->report = plain_report(held->step);
  held->report.fields = held->field_pointers.data();
  return held;
}

/// Store the report of a step and return it, unless no step is complete yet.
Status keep(tailrace_file* file, std::optional<StepReport> step,
            const tailrace_step_report** report) {
  if (!step || !step->completed) return Status();
  file->opened->last_report = hold(std::move(*step), *file->opened);
  if (report != nullptr) *report = &file->opened->last_report->report;
  return Status();
}

}  // namespace

// --- the application's idle time: marks of the lanes, and the calls that lend its thread; none of
// these fails: the writer stores errors for its next collective call

namespace {

/// Run `action` on the writer; its failure is returned by the file's next collective call, on every
/// rank.
template <class Action>
void lend(tailrace_file* file, Action&& action) noexcept {
  if (file == nullptr) return;
  (void)recorded_on(file, [&] {
    std::forward<Action>(action)(*file->opened->writer);
    return Status();
  });
}

void mark(tailrace_file* file, Lane lane, bool begins) noexcept {
  lend(file, [&](Writer& writer) { writer.mark(lane, begins); });
}

}  // namespace

}  // namespace tailrace

extern "C" {

int tailrace_version_number(void) { return TAILRACE_VERSION_NUMBER; }

const char* tailrace_version_string(void) { return TAILRACE_VERSION_STRING; }

const char* tailrace_error_name(tailrace_error error) {
  // Every name is a string literal, so the view is zero-terminated.
  return tailrace::code_name(static_cast<tailrace::Code>(error)).data();
}

const char* tailrace_thread_error(void) { return tailrace::last_text.c_str(); }

const char* tailrace_file_error(const tailrace_file* file) {
  return file == nullptr ? "the file is NULL" : file->error.c_str();
}

tailrace_error tailrace_file_create(const char* path, const void* mpi_comm, size_t mpi_comm_bytes,
                                    const char* options, tailrace_file** file) {
  if (file != nullptr) *file = nullptr;
  return tailrace::guarded(nullptr, [&] {
    return tailrace::start_file(&tailrace::Writer::create, path, mpi_comm, mpi_comm_bytes, options,
                                file);
  });
}

tailrace_error tailrace_file_open(const char* path, const void* mpi_comm, size_t mpi_comm_bytes,
                                  const char* options, tailrace_file** file) {
  if (file != nullptr) *file = nullptr;
  return tailrace::guarded(nullptr, [&] {
    return tailrace::start_file(&tailrace::Writer::open, path, mpi_comm, mpi_comm_bytes, options,
                                file);
  });
}

tailrace_error tailrace_file_recover(const char* path, const void* mpi_comm, size_t mpi_comm_bytes,
                                     int* exists) {
  if (exists != nullptr) *exists = 0;
  return tailrace::guarded(nullptr, [&]() -> tailrace::Status {
    TAILRACE_TAKE(const std::unique_ptr<tailrace::Comm> comm,
                  tailrace::given_comm(mpi_comm, mpi_comm_bytes));
    const tailrace::Status mine = tailrace::check_recover_arguments(path, exists);
    TAILRACE_TAKE(const bool there,
                  tailrace::Output::recover(*comm, path == nullptr ? "" : path, mine));
    *exists = there ? 1 : 0;
    return tailrace::Status();
  });
}

tailrace_error tailrace_file_close(tailrace_file* file) {
  if (file == nullptr || file->opened == nullptr) {
    return tailrace::guarded_on(file, [] { return tailrace::Status(); });
  }
  const std::unique_ptr<tailrace::OpenedFile> ended = std::move(file->opened);
  file->error = {};
  return tailrace::guarded(nullptr, [&] {
    return tailrace::with_communicator_hint(ended->writer->close(), ended->alone);
  });
}

void tailrace_file_abandon(tailrace_file* file) {
  tailrace::end_unclosed(file, "was abandoned", false);
}

void tailrace_file_destroy(tailrace_file* file) {
  tailrace::end_unclosed(file, "was left without close()", true);
}

tailrace_error tailrace_file_on_progress(tailrace_file* file, tailrace_progress_callback callback,
                                         void* user) {
  return tailrace::guarded_on(file, [&] {
    tailrace::ProgressCallback translated;
    if (callback != nullptr) {
      translated = [callback, user](const tailrace::Progress& progress) {
        callback(user, progress.bytes_done, progress.bytes_total);
      };
    }
    file->opened->writer->on_progress(std::move(translated));
    return tailrace::Status();
  });
}

tailrace_error tailrace_file_on_log(tailrace_file* file, tailrace_log_callback callback,
                                    void* user) {
  return tailrace::guarded_on(file, [&] {
    tailrace::LogCallback translated;
    if (callback != nullptr) {
      translated = [callback, user](const std::string& line) { callback(user, line.c_str()); };
    }
    file->opened->log = translated;
    file->opened->writer->on_log(std::move(translated));
    return tailrace::Status();
  });
}

tailrace_error tailrace_file_end_step(tailrace_file* file, const tailrace_step_report** report) {
  if (report != nullptr) *report = nullptr;
  return tailrace::guarded_on(file, [&]() -> tailrace::Status {
    file->opened->last_report.reset();
    file->opened->times_of_step.clear();
    file->opened->n_reported.reset();
    tailrace::Result<tailrace::StepReport> step = file->opened->writer->end_step();
    if (!step.ok()) file->opened->n_reported = file->opened->writer->n_ended_steps();
    return step.ok() ? tailrace::keep(file, std::move(*step), report) : step.status();
  });
}

tailrace_error tailrace_file_wait(tailrace_file* file, const tailrace_step_report** report) {
  if (report != nullptr) *report = nullptr;
  return tailrace::guarded_on(file, [&]() -> tailrace::Status {
    file->opened->last_report.reset();
    file->opened->n_reported.reset();
    tailrace::Result<std::optional<tailrace::StepReport>> step = file->opened->writer->wait();
    if (!step.ok()) {
      file->opened->n_reported = file->opened->writer->n_ended_steps();
      file->opened->times_of_step.clear();  // A failure drops the open step, too.
    }
    return step.ok() ? tailrace::keep(file, std::move(*step), report) : step.status();
  });
}

int64_t tailrace_file_last_committed_step(const tailrace_file* file) {
  if (file == nullptr || file->opened == nullptr) return -1;
  const std::optional<std::uint64_t> last = file->opened->writer->last_committed_step();
  return last ? static_cast<int64_t>(*last) : -1;
}

void tailrace_file_compute_begin(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::main, true);
}

void tailrace_file_compute_end(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::main, false);
}

void tailrace_file_background_begin(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::io, true);
}

void tailrace_file_background_end(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::io, false);
}

void tailrace_file_idle(tailrace_file* file, double seconds) {
  tailrace::lend(file, [&](tailrace::Writer& writer) { writer.idle(seconds, {}); });
}

void tailrace_file_idle_until(tailrace_file* file, tailrace_done_callback done, void* user) {
  if (done == nullptr) return;
  tailrace_file_idle_or_wait(file, done, nullptr, user);
}

void tailrace_file_idle_or_wait(tailrace_file* file, tailrace_done_callback done,
                                tailrace_wait_callback wait, void* user) {
  if (done == nullptr) return;
  tailrace::lend(file, [&](tailrace::Writer& writer) {
    std::function<void()> waiting;
    if (wait != nullptr) waiting = [&] { wait(user); };
    writer.idle(
        std::numeric_limits<double>::infinity(), [&] { return done(user) != 0; }, waiting);
  });
}

}  // extern "C"
