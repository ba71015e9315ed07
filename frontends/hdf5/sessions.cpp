// The table of sessions, how they end, and how failures are reported to the program.

#include "hdf5/sessions.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/environment.hpp"
#include "core/options.hpp"
#include "exec/mpi_finalize.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/real_hdf5.hpp"
#include "report/flush_text.hpp"
#include "report/remark.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Table of sessions. It is never destroyed: a file that is left open must not use MPI after
/// MPI_Finalize.
std::vector<std::unique_ptr<Session>>& table() {
  static auto* const sessions = new std::vector<std::unique_ptr<Session>>;
  return *sessions;
}

/// Print one line about a file's writes from rank 0 if TAILRACE_REPORT=1.
void report(const Session& session, std::uint64_t root_bytes) {
  if (!environment_is("TAILRACE_REPORT", "1")) return;
  std::string line = report::flush_text(session.name, *session.array);
  if (session.n_in_runs > 0) {
    line += "; rank 0's points and irregular hyperslabs " + std::to_string(session.n_in_runs) +
            " elements in " + std::to_string(session.n_runs) + " runs";
  }
  std::string reasons;
  for (const auto& [why, paths] : session.by_root) {
    reasons += (reasons.empty() ? "" : ", ") + std::to_string(paths.size()) + " (" + why + ": " +
               paths.front() + (paths.size() > 1 ? ", ..." : "") + ")";
  }
  if (!reasons.empty()) {
    line += "; by rank 0 " + bytes_text(root_bytes) + " of datasets " + reasons;
    const std::uint64_t placed = session.array->placed_bytes();
    if (placed > 0)
      line += ", " + bytes_text(placed) + " written directly, the others through HDF5";
  }
  const auto add = [&](const std::string& what, const auto& paths) {
    line += "; " + std::to_string(paths.size()) + " " + what + ": " + *paths.begin() +
            (paths.size() > 1 ? ", ..." : "");
  };
  for (const auto& [what, paths] : session.remarks) add(what, paths);
  for (const auto& [what, paths] : session.array->outcomes()) add(what, paths);
  report::print_remark({line});
}

// --- files left open by the program

void report_closed_is_lost(const std::string& name, const Status& ended) {
  report::print_remark(
      {name,
       ": the threads that complete H5Fclose in the background (mode=async or in_situ) failed: ",
       ended.message()});
}

void end_in_finalize() {
  end_all_by_force([](bool speaks, const std::string& name, bool closed, const Status& ended) {
    if (!speaks) return;
    if (closed) {
      report_closed_is_lost(name, ended);
    } else if (ended.ok()) {
      report::print_remark({name, ": closed by MPI_Finalize; H5Fclose was not called"});
    } else {
      report::print_remark({name, ": MPI_Finalize could not close the file: ", ended.message(),
                            "; H5Fclose was not called"});
    }
  });
}

/// Report the values that are lost. Closing needs all ranks, which is impossible at process exit.
void report_lost_files() {
  for (Session* session : all_sessions()) {
    const bool flushing = session->array->is_flushing();
    // Stop the threads first, because their resources are released next.
    session->array->end_alone();
    if (!session->array->comm().is_root()) continue;
    if (session->closed || flushing) {
      report::print_remark(
          {session->name,
           ": the program ended without MPI_Finalize or another call that completes the ",
           session->closed ? "file" : "flush",
           " (mode=async or in_situ); what was written since the last complete flush is lost"});
      continue;
    }
    report::print_remark(
        {session->name,
         ": the program ended without H5Fclose and MPI_Finalize; what was written since "
         "the last H5Fflush is lost"});
  }
}

}  // namespace

namespace {
bool hdf5_has_ended = false;
}  // namespace

void note_end_of_hdf5() { hdf5_has_ended = true; }

bool any_session() { return !table().empty(); }

std::vector<Session*> all_sessions() {
  std::vector<Session*> sessions;
  for (const std::unique_ptr<Session>& session : table()) sessions.push_back(session.get());
  return sessions;
}

std::string path_of_name(const char* name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(name, error);
  return error ? std::string(name) : path.string();
}

Session* session_of_path(const std::string& path) {
  for (const std::unique_ptr<Session>& session : table()) {
    if (session->path == path) return session.get();
  }
  return nullptr;
}

Session* session_of(hid_t object) {
  if (!any_session() || object < 0) return nullptr;
  const Hdf5Scope scope;
  ObjectInfo info;
  if (!get_object_info(object, info)) return nullptr;
  for (const std::unique_ptr<Session>& session : table()) {
    if (session->file_number == info.fileno) return session.get();
  }
  return nullptr;
}

namespace {

/// True if two ids denote the same file, even a mounted one.
bool is_same_file(hid_t one, hid_t other) {
#if H5_VERSION_GE(1, 12, 0)
  unsigned long number = 0;
  unsigned long of_other = 0;
  return H5Fget_fileno(one, &number) >= 0 && H5Fget_fileno(other, &of_other) >= 0 &&
         number == of_other;
#else
  const auto name_of = [](hid_t file) {
    const ssize_t length = H5Fget_name(file, nullptr, 0);
    std::string name(length < 0 ? 0 : static_cast<std::size_t>(length) + 1, '\0');
    if (length >= 0) H5Fget_name(file, name.data(), name.size());
    return name;
  };
  const std::string name = name_of(one);
  return !name.empty() && name == name_of(other);
#endif
}

}  // namespace

Session* session_of_file(hid_t object) {
  if (!any_session() || H5Iget_type(object) != H5I_FILE) return session_of(object);
  const Hdf5Scope scope;
  for (const std::unique_ptr<Session>& session : table()) {
    if (is_same_file(session->file(), object)) return session.get();
  }
  return nullptr;
}

std::optional<Target> target_of(hid_t dataset, bool& known) {
  known = true;
  if (!any_session() || dataset < 0) return std::nullopt;
  const Hdf5Scope scope;
  ObjectInfo info;
  if (!get_object_info(dataset, info)) return std::nullopt;
  for (const std::unique_ptr<Session>& session : table()) {
    if (session->file_number != info.fileno) continue;
    const std::optional<std::size_t> found = session->array->find(object_address(info));
    known = found.has_value();
    return Target{session.get(), found.value_or(0)};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> address_of_object(hid_t object) {
  ObjectInfo info;
  if (!get_object_info(object, info)) return std::nullopt;
  return object_address(info);
}

std::string path_of_object(hid_t object) {
  const ssize_t length = H5Iget_name(object, nullptr, 0);
  if (length <= 0) return "";
  std::string path(static_cast<std::size_t>(length) + 1, '\0');
  H5Iget_name(object, path.data(), path.size());
  path.pop_back();
  return path;
}

hid_t begin_session(const char* function, std::unique_ptr<Session> session) {
  Status begun;
  {
    const Hdf5Scope scope;
    Hdf5Id id(H5Freopen(session->file()));
    ObjectInfo info{};
    std::string remark;
    try {
      if (!id.valid() || !get_object_info(id.get(), info)) {
        begun = hdf5_failure(Code::internal, "file \"" + session->name + "\" cannot be reopened");
      }
      remark = session->array->remark();
      table().reserve(table().size() + 1);
    } catch (const std::bad_alloc&) {
      begun = Status(Code::out_of_memory, "not enough memory");
    }
    session->file_number = info.fileno;
    begun = session->array->comm().agree(begun);
    if (begun.ok()) {
      if (!remark.empty()) report::print_remark({remark});
      table().push_back(std::move(session));
      close_at_finalize<end_in_finalize, report_lost_files>();
      if (std::exchange(hdf5_has_ended, false)) ask_mpi_finalize<end_in_finalize>();
      return id.release();
    }
    id.reset();
    session.reset();
  }
  return fail(function, begun);
}

namespace {

/// List all ids of some types in the session's file, including Tailrace's own.
std::vector<hid_t> ids_in_file(const Session& session, unsigned types) {
  const ssize_t n = H5Fget_obj_count(session.file(), types);
  std::vector<hid_t> ids(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (n > 0) H5Fget_obj_ids(session.file(), types, ids.size(), ids.data());
  return ids;
}

}  // namespace

std::uint64_t n_ids_of_program(const Session& session, unsigned types) {
  const Hdf5Scope scope;
  std::vector<hid_t> ids = ids_in_file(session, types);
  // HDF5 has an additional id of a file that was opened through the VOL connector.
  std::erase_if(ids, [&](hid_t id) {
    return id == session.file() || (H5Iget_type(id) == H5I_FILE && is_of_connector(id));
  });
  return ids.size();
}

Status end_session(Session& session) {
  Comm& comm = session.array->comm();
  const bool speaks = comm.is_root();
  std::uint64_t root_bytes = session.root_bytes;
  RankNumbers numbers;
  numbers.add(Reduction::sum, root_bytes);
  {
    const Hdf5Scope scope;
    session.types.clear();
    session.creation_lists.clear();
    session.standard_list.reset();
    session.standard_list_of_root.reset();
    session.standard_list_placed.reset();
  }
  const Status ended = session.array->close(numbers);
  if (speaks) {  // The session ends even without memory for a report.
    (void)local_part([&] {
      report(session, root_bytes);
      const std::string remark = session.array->closing_remark();
      if (!remark.empty()) report::print_remark({session.name, ": ", remark});
      for (const std::string& line : session.array->take_remarks()) {
        report::print_remark({session.name, ": ", line});
      }
      return Status();
    });
  }
  const Hdf5Scope scope;
  std::erase_if(table(), [&](const auto& held) { return held.get() == &session; });
  return ended;
}

namespace {

/// Close all objects that the program has open in a session's file.
void close_ids_of_program(const Session& session) {
  const Hdf5Scope scope;
  const hid_t file = session.file();
  std::vector<hid_t> ids = ids_in_file(session, H5F_OBJ_ALL);
  // Close objects before files: a file with open objects would stay open.
  std::stable_partition(ids.begin(), ids.end(),
                        [](hid_t id) { return H5Iget_type(id) != H5I_FILE; });
  for (const hid_t id : ids) {
    for (int n_left = H5Iget_ref(id); id != file && n_left > 0; --n_left) H5Idec_ref(id);
  }
}

}  // namespace

bool any_closed_session() {
  return std::ranges::any_of(table(), [](const auto& session) { return session->closed; });
}

namespace {

/// True if exactly these ranks have closed the session, in any rank order.
bool is_closed_by(const Session& session, std::vector<int> ranks) {
  std::vector<int> own = session.ranks;
  std::ranges::sort(own);
  std::ranges::sort(ranks);
  return session.closed && own == ranks;
}

}  // namespace

bool any_closed_session(const std::vector<int>& ranks) {
  return std::ranges::any_of(table(),
                             [&](const auto& session) { return is_closed_by(*session, ranks); });
}

Status end_closed_sessions(const std::vector<int>& ranks) {
  Status first;
  for (Session* session : all_sessions()) {
    if (!is_closed_by(*session, ranks)) continue;
    const std::string name = session->name;
    const bool speaks = session->array->comm().is_root();
    const Status ended = end_session(*session);
    // A call returns one failure, so this failure, the last on its file, is printed.
    if (!ended.ok() && speaks) report_closed_is_lost(name, ended);
    if (first.ok())
      first = ended.within("file \"" + name +
                           "\", which H5Fclose completes in the background (mode=async or "
                           "in_situ)");
  }
  return first;
}

void end_all_by_force(const std::function<void(bool speaks, const std::string& name, bool closed,
                                               const Status& ended)>& report) {
  // Close the ids of all sessions first: HDF5 keeps a file open while a file mounted in it has an
  // id.
  for (const Session* session : all_sessions()) close_ids_of_program(*session);
  for (Session* session : all_sessions()) {
    const bool speaks = session->array->comm().is_root();
    const std::string name = session->name;
    const bool closed = session->closed;
    // All ranks have already met to close a closed session.
    const Status met = closed ? Status() : session->array->meet_to_close();
    const Status ended = end_session(*session);
    if (!closed || !ended.ok()) report(speaks, name, closed, met.ok() ? ended : met);
  }
}

bool is_own_id(hid_t id) {
  return std::ranges::any_of(all_sessions(), [&](const Session* session) {
    const auto is_type = [&](const auto& type) { return type.second.get() == id; };
    return session->file() == id || std::ranges::any_of(session->types, is_type);
  });
}

// --- mounts

namespace {

/// Table of mounts. Never destroyed, like the table of sessions.
std::vector<Mount>& mounts() {
  static auto* const all = new std::vector<Mount>;
  return *all;
}

/// Find the file of this number and all files that HDF5 keeps open with it.
std::set<unsigned long> files_together(unsigned long number) {
  std::set<unsigned long> files{number};
  for (std::size_t n_before = 0; n_before != files.size();) {
    n_before = files.size();
    for (const Mount& mount : mounts()) {
      if (!files.contains(mount.outer) && !files.contains(mount.inner)) continue;
      files.insert({mount.outer, mount.inner});
    }
  }
  return files;
}

}  // namespace

std::optional<Mount> mount_to_make(hid_t location, const char* name, hid_t inner) {
  if (name == nullptr) return std::nullopt;
  const Hdf5Scope scope;
  const Hdf5Id place(H5Oopen(location, name, H5P_DEFAULT));
  ObjectInfo outside;
  ObjectInfo inside;  // HDF5 refuses an id by which the file is mounted already.
  if (!place.valid() || !get_object_info(place.get(), outside)) return std::nullopt;
  if (!get_object_info(inner, inside)) return std::nullopt;
  mounts().reserve(mounts().size() + 1);
  return Mount{outside.fileno, inside.fileno, path_of_object(place.get())};
}

std::optional<Mount> mount_to_end(hid_t location, const char* name) {
  if (name == nullptr) return std::nullopt;
  const Hdf5Scope scope;
  // A name leads into the mounted file, but an id of the mount point may have been opened before.
  const Hdf5Id place(H5Oopen(location, name, H5P_DEFAULT));
  ObjectInfo info;
  if (!place.valid() || !get_object_info(place.get(), info)) return std::nullopt;
  const std::string path = path_of_object(place.get());
  const Mount* found = nullptr;
  for (const Mount& mount : mounts()) {
    const bool here = mount.inner == info.fileno || mount.outer == info.fileno;
    // Paths change once the outermost file is itself mounted.
    if (here && (mount.path == path || (found == nullptr && mount.inner == info.fileno))) {
      found = &mount;
    }
  }
  return found == nullptr ? std::nullopt : std::optional<Mount>(*found);
}

void note_mount(Mount&& mount) { mounts().push_back(std::move(mount)); }

void forget_mount(const Mount& mount) {
  const auto found = std::ranges::find_if(mounts(), [&](const Mount& held) {
    return held.outer == mount.outer && held.inner == mount.inner && held.path == mount.path;
  });
  if (found != mounts().end()) mounts().erase(found);
}

std::uint64_t n_ids_together(const Session& session) {
  const Hdf5Scope scope;
  const std::set<unsigned long> files = files_together(session.file_number);
  if (files.size() == 1) return n_ids_of_program(session, H5F_OBJ_ALL);
  constexpr auto of_all_files = static_cast<hid_t>(H5F_OBJ_ALL);
  const ssize_t n = H5Fget_obj_count(of_all_files, H5F_OBJ_ALL);
  std::vector<hid_t> ids(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (n > 0) H5Fget_obj_ids(of_all_files, H5F_OBJ_ALL, ids.size(), ids.data());
  // An id of a mounted file leads to the outermost one, which is among these files, too.
  return static_cast<std::uint64_t>(std::ranges::count_if(ids, [&](hid_t id) {
    ObjectInfo info;
    if (is_own_id(id) || (H5Iget_type(id) == H5I_FILE && is_of_connector(id))) return false;
    return get_object_info(id, info) && files.contains(info.fileno);
  }));
}

Status end_together(Session& session) {
  const std::set<unsigned long> files = files_together(session.file_number);
  const std::vector<int> ranks = session.ranks;
  if (files.size() == 1 && session.array->flushes_concurrently()) {
    const Status flushed = session.array->flush_concurrently_to_close();
    session.closed = session.array->is_flushing();
    if (session.closed) return flushed;
  }
  // This flushes again what could not be flushed just now; its result is final.
  Status first = end_session(session);
  std::erase_if(mounts(), [&](const Mount& mount) { return files.contains(mount.outer); });
  for (Session* other : all_sessions()) {
    // Do not wait for ranks that are not here: MPI_Finalize ends such a session.
    if (!files.contains(other->file_number) || other->ranks != ranks) continue;
    if (!other->mounted_when_closed) continue;
    const Status met = other->array->meet_to_close();
    const Status ended = end_session(*other);
    if (first.ok()) first = met.ok() ? ended : met;
  }
  return first;
}

namespace {

/// Error numbers that HDF5 would use for such a failure; h5py and others check them.
struct ErrorKind {
  hid_t major;
  hid_t minor;
};

ErrorKind kind_of(std::string_view function, Code code) {
  if (function == "H5Fopen") return {H5E_FILE, H5E_CANTOPENFILE};
  if (function == "H5Fcreate") {
    return {H5E_FILE, code == Code::already_exists ? H5E_FILEEXISTS : H5E_CANTCREATE};
  }
  if (function == "H5Dwrite" || function == "H5Dwrite_multi") return {H5E_DATASET, H5E_WRITEERROR};
  if (function == "H5Dread" || function == "H5Dread_multi") return {H5E_DATASET, H5E_READERROR};
  if (function.starts_with("H5F")) return {H5E_FILE, H5E_CANTFLUSH};
  if (code == Code::unsupported) return {H5E_DATASET, H5E_UNSUPPORTED};
  return {H5E_DATASET, H5E_CANTINIT};
}

}  // namespace

int fail(const char* function, const Status& status) {
  constexpr std::string_view ours = "tailrace_";  // Prefix of __func__.
  if (std::string_view(function).starts_with(ours)) function += ours.size();
  H5E_auto2_t printer = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &printer, &data);
  H5Eclear2(H5E_DEFAULT);
  const ErrorKind kind = kind_of(function, status.code());
  // h5py recognizes missing files by this text of HDF5's.
  const char* const missing =
      status.code() == Code::not_found ? "unable to open file: errno = 2, No such file: " : "";
  H5Epush2(H5E_DEFAULT, "tailrace", function, 0, H5E_ERR_CLS, kind.major, kind.minor,
           "%stailrace: %s", missing, status.message().c_str());
  if (printer != nullptr) printer(H5E_DEFAULT, data);
  return -1;
}

}  // namespace tailrace::hdf5_programs
