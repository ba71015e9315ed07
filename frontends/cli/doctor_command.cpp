// tailrace doctor: tells before a job starts which library serves a program, and what prevents it.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "core/environment.hpp"
#include "core/file_bytes.hpp"
#include "core/glob_options.hpp"
#include "core/mount_kind.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/plugin_library.hpp"
#include "measure/machine_identity.hpp"
#include "measure/program_libraries.hpp"
#include "report/number_text.hpp"
#include "report/text_table.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* kDoctorDescription =
    R"help(Tell which library serves a program unchanged, or what prevents it

The program is not run. Exit code 1: something prevents it.

Examples:
  tailrace doctor ./simulation --dir /scratch/me
  tailrace doctor --pid 4711
      a running program, such as Python, that loads libraries late
)help";

enum class Verdict : std::uint8_t { ok, note, fault };

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string subject;
  std::string text;
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<std::string> preloads;  ///< Libraries that serve the program.
  bool parallel = false;              ///< The program uses MPI.

  void add(Verdict verdict, std::string subject, std::string text) {
    findings.push_back({verdict, std::move(subject), std::move(text)});
  }
  /// Accept libraries that are not served if another one is.
  void forgive_unserved() {
    if (preloads.empty()) return;
    for (Finding& one : findings) {
      const bool unserved = one.subject == "HDF5" || one.subject == "PnetCDF";
      if (unserved && one.verdict == Verdict::fault) one.verdict = Verdict::note;
    }
  }
  void serve_by(const std::string& library) {
    if (std::ranges::find(preloads, library) == preloads.end()) preloads.push_back(library);
  }
  bool has_fault() const {
    return std::ranges::any_of(findings,
                               [](const Finding& one) { return one.verdict == Verdict::fault; });
  }
};

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::note: return "note";
    case Verdict::fault: break;
  }
  return "FAULT";
}

/// Folders in which this installation, or build, keeps its libraries.
std::vector<std::string> own_folders() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::vector<std::string> folders;
  const std::filesystem::path prefix = program.parent_path().parent_path();
  for (const char* const folder : {TAILRACE_LIBDIR, "lib"}) {
    const std::string path = (prefix / folder).string();
    if (std::ranges::find(folders, path) == folders.end() && is_directory(path)) {
      folders.push_back(path);
    }
  }
  return folders;
}

/// Libraries of this installation whose names begin with `stem`, without those for other programs
/// to link.
std::vector<std::string> own_libraries(const std::string& stem) {
  std::vector<std::string> paths;
  for (const std::string& folder : own_folders()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(stem) && name.ends_with(".so")) paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

/// Family of an MPI library, "Open MPI" or "MPICH"; empty if it is another one.
std::string mpi_family(const FileBytes& library) {
  if (library.contains("Open MPI v")) return "Open MPI";
  const bool of_mpich = library.contains("MPICH Version") || library.contains("MVAPICH") ||
                        library.contains("Intel(R) MPI Library");
  return of_mpich ? "MPICH" : "";
}

std::string own_mpi_family() {
  const std::string version = mpi_library_version();
  if (version.find("Open MPI") != std::string::npos) return "Open MPI";
  return version.find("MPICH") != std::string::npos ? "MPICH" : "";
}

void check_mpi(const LoadedLibrary& library, const FileBytes& bytes, Diagnosis& diagnosis) {
  const std::string family = mpi_family(bytes);
  if (family.empty()) return;
  diagnosis.parallel = true;
  const std::string own = own_mpi_family();
  if (family == own) {
    diagnosis.add(Verdict::ok, "MPI", fmt::format("{}, as Tailrace: {}", family, library.path));
  } else {
    diagnosis.add(Verdict::fault, "MPI",
                  fmt::format("{} in {}, but this Tailrace is built {}; build it with the MPI of "
                              "the program (docs/install.md)",
                              family, library.path,
                              own.empty() ? "without MPI" : fmt::format("for {}", own)));
  }
}

/// Major and minor of "1.10.8".
std::string minor_version(const std::string& version) {
  const std::size_t first = version.find('.');
  if (first == std::string::npos) return version;
  return version.substr(0, version.find('.', first + 1));
}

void check_parallel_hdf5(const LoadedLibrary& library, const std::string& version,
                         Diagnosis& diagnosis) {
  const std::string minor = minor_version(version);
  std::string served;
  for (const std::string& own : own_libraries("libtailrace_hdf5")) {
    const std::string serves = FileBytes(own).number_after("shared parallel HDF5 ");
    if (serves.empty()) continue;  // The engine, or the library for serial HDF5.
    if (serves == minor) {
      diagnosis.add(Verdict::ok, "HDF5",
                    fmt::format("{}, parallel: {}; {} serves files that the program opens with "
                                "the mpio driver",
                                version, library.path, own));
      diagnosis.serve_by(own);
      return;
    }
    served += (served.empty() ? "" : ", ") + serves;
  }
  diagnosis.add(
      Verdict::fault, "HDF5",
      fmt::format("{}, parallel: {}; this Tailrace serves {}; build it for that HDF5: "
                  "-DTAILRACE_HDF5_PROGRAMS_ROOT=PREFIX (docs/hdf5.md)",
                  version, library.path, served.empty() ? "no parallel HDF5" : "HDF5 " + served));
}

void check_serial_hdf5(const LoadedLibrary& library, const std::string& version,
                       Diagnosis& diagnosis) {
  for (const std::string& own : own_libraries("libtailrace_hdf5_serial")) {
    if (!FileBytes(own).contains(library.name)) continue;
    diagnosis.add(
        Verdict::ok, "HDF5",
        fmt::format("{}, serial: {}; {} serves chunked datasets", version, library.path, own));
    diagnosis.serve_by(own);
    return;
  }
  diagnosis.add(Verdict::fault, "HDF5",
                fmt::format("{}, serial: {}; Tailrace serves programs on the system's serial HDF5 "
                            "1.10 (libhdf5_serial.so.103) and on parallel HDF5",
                            version, library.path));
}

/// Judge a loaded library. @returns true if it is HDF5 or PnetCDF
bool check_library(const LoadedLibrary& library, Diagnosis& diagnosis) {
  if (library.name.starts_with("libtailrace")) {
    diagnosis.add(Verdict::ok, "preloaded", library.path);
    return false;
  }
  const FileBytes bytes(library.path);
  if (!bytes.opened()) {
    diagnosis.add(Verdict::fault, "library", fmt::format("{} cannot be read", library.path));
    return false;
  }
  if (library.name.starts_with("libmpi")) check_mpi(library, bytes, diagnosis);
  if (library.name.starts_with("libpnetcdf")) {
    const std::vector<std::string> own = own_libraries("libtailrace_pnetcdf");
    if (own.empty()) {
      diagnosis.add(
          Verdict::fault, "PnetCDF",
          fmt::format("{}, but this Tailrace was built without libtailrace_pnetcdf", library.path));
    } else {
      diagnosis.add(Verdict::ok, "PnetCDF",
                    fmt::format("{}; {} serves files that the program creates as netCDF-4 or "
                                "classic, and opens",
                                library.path, own.front()));
      diagnosis.serve_by(own.front());
    }
    return true;
  }
  const std::string version = bytes.number_after(kHdf5VersionText);
  if (version.empty() || library.name.find("netcdf") != std::string::npos) return false;
  if (bytes.contains("H5Pset_fapl_mpio")) {
    check_parallel_hdf5(library, version, diagnosis);
  } else {
    check_serial_hdf5(library, version, diagnosis);
  }
  return true;
}

void check_program(const ProgramLibraries& program, Diagnosis& diagnosis) {
  const char* const late = "libraries that it loads later are not seen here: see --pid";
  if (program.kind == ProgramKind::linked_up) {
    diagnosis.add(Verdict::fault, "program",
                  fmt::format("{} is linked statically, so that LD_PRELOAD has no effect; link it "
                              "dynamically",
                              program.path));
    return;
  }
  if (program.kind == ProgramKind::script) {
    diagnosis.add(Verdict::note, "program",
                  fmt::format("a script for {}; {}", program.interpreter, late));
  } else {
    diagnosis.add(Verdict::ok, "program", fmt::format("{} is linked dynamically", program.path));
  }
  if (program.more_rights) {
    diagnosis.add(Verdict::fault, "program",
                  "it runs with more rights than its caller (set-uid), so that LD_PRELOAD and "
                  "TAILRACE_OPTIONS have no effect");
  }
  bool found = false;
  for (const LoadedLibrary& library : program.libraries) {
    if (library.path.empty() && library.name.find(".so") != std::string::npos &&
        !library.name.starts_with("linux-vdso")) {
      diagnosis.add(Verdict::fault, "library",
                    fmt::format("{} is not found; set LD_LIBRARY_PATH", library.name));
    } else if (!library.path.empty()) {
      found = check_library(library, diagnosis) || found;
    }
  }
  diagnosis.forgive_unserved();
  if (found) return;
  const FileBytes bytes(program.path);
  const std::string version = bytes.number_after(kHdf5VersionText);
  if (!version.empty()) {
    diagnosis.add(Verdict::fault, "HDF5",
                  fmt::format("{} is linked statically into the program; link it to the shared "
                              "library (h5pcc -shlib)",
                              version));
  } else if (bytes.contains("ncmpi_create")) {
    diagnosis.add(Verdict::fault, "PnetCDF",
                  "it is linked statically into the program; link it to the shared library, or to "
                  "Tailrace's (docs/pnetcdf.md)");
  } else {
    const bool loads_late =
        program.kind == ProgramKind::script || program.path.find("python") != std::string::npos;
    diagnosis.add(loads_late ? Verdict::note : Verdict::fault, "HDF5",
                  fmt::format("the program loads neither HDF5 nor PnetCDF at its start; {}", late));
  }
}

void check_launcher(Diagnosis& diagnosis) {
  if (!diagnosis.parallel) return;
  const Result<std::string> said = output_of_program({"mpiexec", "--version"});
  if (!said.ok()) {
    diagnosis.add(Verdict::note, "launcher", "no mpiexec in PATH");
    return;
  }
  const bool open_mpi = said->find("Open MPI") != std::string::npos ||
                        said->find("OpenRTE") != std::string::npos ||
                        said->find("open-mpi") != std::string::npos;
  const bool mpich =
      said->find("HYDRA") != std::string::npos || said->find("Intel(R) MPI") != std::string::npos;
  const std::string family = open_mpi ? "Open MPI" : mpich ? "MPICH" : "";
  if (family.empty()) {
    diagnosis.add(Verdict::note, "launcher", "mpiexec does not say which MPI it belongs to");
  } else if (family == own_mpi_family()) {
    diagnosis.add(Verdict::ok, "launcher", fmt::format("mpiexec belongs to {}", family));
  } else {
    diagnosis.add(Verdict::fault, "launcher",
                  fmt::format("mpiexec in PATH belongs to {}: every process would be a rank 0 of "
                              "its own",
                              family));
  }
}

/// Settings of this shell that change what a library does.
void check_environment(Diagnosis& diagnosis) {
  const Result<OptionsText> given = options_text_of_environment();
  Status options = given.status();
  if (given.ok() && !given->text.empty()) {
    GlobOptions parsed;
    options = apply_glob_options(given->text, parsed, given->file);
    if (options.ok()) options = check_codecs(parsed);
    if (options.ok()) diagnosis.add(Verdict::ok, "options", "TAILRACE_OPTIONS are valid");
  } else if (given.ok()) {
    diagnosis.add(Verdict::note, "options",
                  "TAILRACE_OPTIONS is not set: all values stay exact (docs/codecs.md)");
  }
  if (!options.ok()) {
    diagnosis.add(Verdict::fault, "options",
                  fmt::format("TAILRACE_OPTIONS: {}", options.message()));
  }
  for (const char* const name : {"TAILRACE_HDF5", "TAILRACE_PNETCDF"}) {
    if (environment_is(name, "off")) {
      diagnosis.add(Verdict::fault, "options",
                    fmt::format("{}=off: the library serves nothing", name));
    }
  }
  const char* const connector = environment_variable("HDF5_VOL_CONNECTOR");
  if (connector != nullptr) {
    diagnosis.add(Verdict::note, "options", fmt::format("HDF5_VOL_CONNECTOR is {}", connector));
  }
}

/// Check whether readers in this shell find the filter that bounded values need.
void check_readers(Diagnosis& diagnosis) {
  const std::vector<std::string> ours = default_plugin_folders();  // Other programs lack these.
  for (const std::string& folder : plugin_folders("")) {
    if (std::ranges::find(ours, folder) != ours.end()) continue;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().filename().string().find("trz") == std::string::npos) continue;
      diagnosis.add(Verdict::ok, "readers",
                    fmt::format("the plug-in of codec trz is in {}", folder));
      return;
    }
  }
  diagnosis.add(Verdict::note, "readers",
                "no folder of HDF5 plug-ins has codec trz: other programs read values of trz only "
                "after docs/readers.md; codec=portable needs no plug-in");
}

/// Try in the folder of the output what a job relies on.
Status try_folder(const std::string& folder, std::string& facts) {
  std::string path = folder + "/tailrace-doctor-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return status_from_errno(errno, folder);
  const auto ended = [&](Status status) {
    ::close(file);
    ::unlink(path.c_str());
    return status;
  };
  constexpr std::array<char, 4096> block{};
  if (::pwrite(file, block.data(), block.size(), 1 << 20) != static_cast<ssize_t>(block.size())) {
    return ended(status_from_errno(errno, "write"));
  }
  if (::fdatasync(file) != 0) return ended(status_from_errno(errno, "sync"));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return ended(status_from_errno(errno, "lock (flock)"));
  const std::string renamed = path + "-renamed";
  if (::rename(path.c_str(), renamed.c_str()) != 0) {
    return ended(status_from_errno(errno, "rename"));
  }
  path = renamed;
  switch (mount_kind_of(file)) {
    case MountKind::own_disk:
    case MountKind::own_memory: facts = "of this machine alone"; break;
    case MountKind::locks_between_nodes: facts = "locks hold between nodes"; break;
    case MountKind::other:
      facts = "a job finds out at its start if locks hold between nodes (docs/nodes.md)";
      break;
  }
  return ended(Status());
}

void check_folder(const std::string& folder, Diagnosis& diagnosis) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(folder, error).string();
  const Result<FolderFacts> space = find_folder_facts(folder);
  if (error || !space.ok()) {
    diagnosis.add(Verdict::fault, "folder", fmt::format("{} does not exist", folder));
    return;
  }
  std::string facts;
  const Status tried = try_folder(whole, facts);
  if (!tried.ok()) {
    diagnosis.add(Verdict::fault, "folder", fmt::format("{}: {}", whole, tried.message()));
    return;
  }
  diagnosis.add(Verdict::ok, "folder",
                fmt::format("{}: {}, {}; {} free; write, sync, lock and rename work", whole,
                            file_system_of(whole), facts, report::size_text(space->free_bytes)));
}

/// The line that starts the program with the library.
std::string command_line(const std::string& program, const Diagnosis& diagnosis) {
  const std::string preload = fmt::format("LD_PRELOAD={}", fmt::join(diagnosis.preloads, ":"));
  if (!diagnosis.parallel) return fmt::format("{} {}", preload, program);
  return own_mpi_family() == "Open MPI" ? fmt::format("mpiexec -n 4 -x {} {}", preload, program)
                                        : fmt::format("mpiexec -n 4 env {} {}", preload, program);
}

Shown shown(const std::string& program, const Diagnosis& diagnosis) {
  Shown output;
  report::TextTable table("|subject|finding/30");
  nlohmann::ordered_json json = document_of("doctor");
  json["program"] = program;
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& one : diagnosis.findings) {
    table.add_row({verdict_text(one.verdict), one.subject, one.text});
    json["findings"].push_back(
        {{"verdict", verdict_text(one.verdict)}, {"subject", one.subject}, {"text", one.text}});
  }
  const bool served = !diagnosis.has_fault() && !diagnosis.preloads.empty();
  json["preloads"] = diagnosis.preloads;
  json["run"] = served ? nlohmann::ordered_json(command_line(program, diagnosis)) : nullptr;
  output.text = table.text();
  if (served) output.text += fmt::format("\nRun it with\n  {}\n", command_line(program, diagnosis));
  output.json = json.dump(2) + "\n";
  output.code = diagnosis.has_fault() ? kExitCheckFailed : kExitDone;
  return output;
}

struct DoctorArguments {
  std::string program;
  std::uint64_t process = 0;
  std::string folder = ".";
  std::string json_path;
};

Result<Shown> examine(const DoctorArguments& given) {
  if (given.program.empty() == (given.process == 0)) {
    return Status(Code::invalid_argument, "expected a program, or --pid");
  }
  Result<ProgramLibraries> program = given.process != 0 ? find_process_libraries(given.process)
                                                        : find_program_libraries(given.program);
  if (!program.ok()) return program.status();
  Diagnosis diagnosis;
  check_program(*program, diagnosis);
  check_launcher(diagnosis);
  check_environment(diagnosis);
  check_readers(diagnosis);
  check_folder(given.folder, diagnosis);
  return shown(given.program.empty() ? program->path : given.program, diagnosis);
}

}  // namespace

Command add_doctor(CLI::App& app) {
  const auto given = std::make_shared<DoctorArguments>();
  CLI::App* sub = app.add_subcommand("doctor", kDoctorDescription);
  sub->add_option("PROGRAM", given->program, "A program, or a script.");
  const Group group(sub, "Options");
  group("--pid", given->process, "N", "A running process in place of a program.");
  group("--dir", given->folder, "FOLDER", "Where the program writes. Default: this folder.");
  report_options(sub, given->json_path);
  return [given](Session& session) {
    return run_and_show(session, given->json_path, false,
                        [&] { return at_root(session, [&] { return examine(*given); }); });
  };
}

}  // namespace tailrace::cli
