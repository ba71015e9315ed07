// Creating and opening the output: rank 0 first, then the others, each step agreed.

#include "output/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

#include "exec/comm_factory.hpp"
#include "field/field_state.hpp"
#include "hdf5/journal.hpp"

namespace tailrace {
namespace {

/// Rename `from` to `to`, durably.
Status rename_durably(const std::string& from, const std::string& to, bool sync) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return status_from_errno(errno, "renaming \"" + from + "\" to \"" + to + "\"");
  }
  if (!sync) return Status();
  const std::size_t slash = to.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : to.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return status_from_errno(errno, "opening folder \"" + folder + "\"");
  const int synced = ::fsync(descriptor);
  const Status failure = status_from_errno(errno, "sync of folder \"" + folder + "\"");
  ::close(descriptor);
  return synced == 0 ? Status() : failure;
}

Hdf5File::Settings metadata_settings(const std::string& path, const FileOptions& options) {
  Hdf5File::Settings settings;
  settings.sync = options.sync;
  settings.journal = options.journal;
  settings.journal_path = journal_path_of(path);
  settings.expected_steps = 0;  // each would cost 35 bytes in every file; commits are safe without
  settings.expected_root_links = options.expected_root_links;
  return settings;
}

Status refuse_existing(const std::string& path, bool replace) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return Status();
  if (S_ISDIR(facts.st_mode)) return Status(Code::invalid_argument, "\"" + path + "\" is a folder");
  if (replace) return Status();
  return Status(Code::already_exists, "\"" + path + "\" exists; option replace=on replaces it");
}

/// Open the storage on this rank. @returns this rank's own status.
Status open_storage(const std::string& path, bool create, const FileOptions& options,
                    OutputFile& output) {
  Result<std::unique_ptr<Storage>> storage =
      options.open_storage ? options.open_storage(path, create)
                           : open_posix_storage(path, create, options.direct_io);
  if (storage.ok()) output.storage = std::move(*storage);
  return storage.status();
}

Status make_tail(Comm& comm, OutputFile& output) {
  Result<std::unique_ptr<Tail>> tail = comm.create_tail(0);
  if (tail.ok()) output.tail = std::move(*tail);
  return comm.agree(tail.status());
}

Hdf5File::Allocate allocator(const OutputFile& output) {
  return [tail = output.tail.get()](std::uint64_t n_bytes) { return tail->claim(n_bytes); };
}

}  // namespace

std::string output_text(const std::string& path, const FileOptions& options) {
  const FieldDefinition defaults{"/defaults", DType::f32, {}, options.field_defaults, false};
  return "path " + path + "\noptions fsync=" + std::to_string(int{options.sync}) +
         " journal=" + std::to_string(int{options.journal}) +
         " replace=" + std::to_string(int{options.replace}) +
         " align=" + std::to_string(options.alignment_bytes) +
         " mode=" + std::to_string(static_cast<int>(options.mode)) +
         " hold=" + std::to_string(int{options.hold_promise}) + " balance=" + options.balance +
         " record=" + options.record_path + " scheduler=" + options.scheduler +
         " trace-file=" + options.trace_path + " " + definition_text(defaults);
}

Status create_output(Comm& comm, const std::string& path, const FileOptions& options,
                     OutputFile& output) {
  const std::string partial = path + partial_suffix;
  Status opened;
  if (comm.is_root()) {
    opened = refuse_existing(path, options.replace);
    if (opened.ok()) opened = open_storage(partial, true, options, output);
  }
  TAILRACE_TRY(comm.agree(opened));
  if (!comm.is_root()) opened = open_storage(partial, false, options, output);
  TAILRACE_TRY(comm.agree(opened));
  TAILRACE_TRY(make_tail(comm, output));
  Status created;
  if (comm.is_root()) {
    Result<std::unique_ptr<Hdf5File>> file =
        Hdf5File::create(*output.storage, allocator(output), metadata_settings(path, options));
    created = file.status();
    if (file.ok()) output.file = std::move(*file);
  }
  TAILRACE_TRY(comm.agree(created));
  output.committed_end = output.tail->end();
  return Status();
}

Status open_output(Comm& comm, const std::string& path, const FileOptions& options,
                   OutputFile& output) {
  TAILRACE_TRY(comm.agree(open_storage(path, false, options, output)));
  TAILRACE_TRY(make_tail(comm, output));
  Status opened;
  if (comm.is_root()) {
    Result<std::unique_ptr<Hdf5File>> file = Hdf5File::open(
        *output.storage, allocator(output), metadata_settings(path, options), output.committed_end);
    opened = file.status();
    if (file.ok()) output.file = std::move(*file);
  }
  TAILRACE_TRY(comm.agree(opened));
  output.tail->reset(output.committed_end);
  return Status();
}

Status move_in_place(const std::string& path, bool sync) {
  TAILRACE_TRY(rename_durably(path + partial_suffix, path, sync));
  return remove_journal(journal_path_of(path));
}

}  // namespace tailrace
