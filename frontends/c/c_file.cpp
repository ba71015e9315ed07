// Files of the C API: create, open, close, abandon, callbacks.
//
// create and open are collective, so a rank whose own arguments are wrong must not return alone:
// the ranks agree on their arguments first, and only then does anybody touch the file.

#include <cstdint>
#include <string>

#include "c_handle.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace {
namespace {

using MakeWriter = Result<std::unique_ptr<Writer>> (*)(std::unique_ptr<Comm>, const std::string&,
                                                       const FileOptions&);

Status check_arguments(const char* path, const char* options_text, tailrace_file** file,
                       FileOptions& options) {
  if (file == nullptr) {
    return Status(Code::invalid_argument, "the place for the file's handle is NULL");
  }
  if (path == nullptr || *path == '\0') {
    return Status(Code::invalid_argument, "the file's path is NULL or empty");
  }
  return apply_file_options(options_text == nullptr ? "" : options_text, options).within(path);
}

Status start_file(MakeWriter make_writer, const char* path, const void* mpi_comm,
                  std::size_t mpi_comm_bytes, const char* options_text, tailrace_file** file) {
  std::unique_ptr<Comm> comm;
  if (mpi_comm == nullptr) {
    comm = make_self_comm();
  } else {
    Result<std::unique_ptr<Comm>> made = make_mpi_comm(mpi_comm, mpi_comm_bytes);
    if (!made.ok()) return made.status();
    comm = std::move(*made);
  }
  auto handle = std::make_unique<tailrace_file>();
  FileOptions options;
  TAILRACE_TRY(comm->agree(check_arguments(path, options_text, file, options)));

  handle->field_defaults = options.field_defaults;
  Result<std::unique_ptr<Writer>> writer = make_writer(std::move(comm), path, options);
  if (!writer.ok()) return writer.status();
  handle->writer = std::move(*writer);
  *file = handle.release();
  return Status();
}

}  // namespace
}  // namespace tailrace

extern "C" {

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

tailrace_error tailrace_file_close(tailrace_file* file) {
  const std::unique_ptr<tailrace_file> owner(file);
  if (file == nullptr) return tailrace::guarded_on(file, [] { return tailrace::Status(); });
  return tailrace::guarded(nullptr, [&] { return owner->writer->close(); });
}

void tailrace_file_abandon(tailrace_file* file) { delete file; }

tailrace_error tailrace_file_on_progress(tailrace_file* file, tailrace_progress_callback callback,
                                         void* user) {
  return tailrace::guarded_on(file, [&] {
    tailrace::ProgressCallback translated;
    if (callback != nullptr) {
      translated = [callback, user](const tailrace::Progress& progress) {
        callback(user, progress.bytes_done, progress.bytes_total);
      };
    }
    file->writer->on_progress(std::move(translated));
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
    file->writer->on_log(std::move(translated));
    return tailrace::Status();
  });
}

}  // extern "C"
