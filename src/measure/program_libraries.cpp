#include "measure/program_libraries.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "core/environment.hpp"

extern char** environ;

namespace tailrace {
namespace {

struct Printed {
  std::string text;  ///< stdout and stderr.
  int exit_code = 0;
};

/// Run a program and collect its output.
Result<Printed> output_of(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return status_from_errno(errno, words.front());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int refused =
      ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Printed printed;
  std::array<char, 4096> piece{};
  ssize_t n_read = 0;
  while (refused == 0 && ((n_read = ::read(ends[0], piece.data(), piece.size())) > 0 ||
                          (n_read < 0 && errno == EINTR))) {
    if (n_read > 0) printed.text.append(piece.data(), static_cast<std::size_t>(n_read));
  }
  ::close(ends[0]);
  if (refused != 0) return status_from_errno(refused, words.front());
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return status_from_errno(errno, words.front());
  }
  printed.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  return printed;
}

bool may_run(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// Path of a program as a shell finds it; empty if it does not.
std::string found_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return may_run(name) ? name : "";
  const char* const folders = environment_variable("PATH");
  std::istringstream each(folders == nullptr ? "" : folders);
  std::string folder;
  while (std::getline(each, folder, ':')) {
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (may_run(path)) return path;
  }
  return "";
}

/// Parse a line of ldd: "NAME => PATH (0x...)", "PATH (0x...)", "NAME => not found".
LoadedLibrary library_of(const std::string& line) {
  std::string text = line.substr(0, line.rfind(" (0x"));
  text.erase(0, text.find_first_not_of(" \t"));
  const std::size_t arrow = text.find(" => ");
  LoadedLibrary library;
  library.path = arrow == std::string::npos ? text : text.substr(arrow + 4);
  library.name = arrow == std::string::npos ? text : text.substr(0, arrow);
  library.name.erase(0, library.name.rfind('/') + 1);
  if (!library.path.starts_with("/")) library.path.clear();
  return library;
}

}  // namespace

Result<ProgramLibraries> find_program_libraries(const std::string& program) {
  ProgramLibraries found;
  found.path = found_program(program);
  if (found.path.empty()) {
    const bool by_path = program.find('/') != std::string::npos;
    const std::string here = "./" + program;
    std::string why = "\"" + program + "\" is not a program that you may run";
    if (!by_path) why += may_run(here) ? ", in PATH; did you mean " + here + "?" : ", in PATH";
    return Status(Code::not_found, why);
  }
  std::ifstream file(found.path, std::ios::binary);
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  const std::string_view start(magic.data(), static_cast<std::size_t>(file.gcount()));
  if (start.starts_with("#!")) {
    file.clear();
    file.seekg(2);
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    const bool by_env = first.ends_with("/env") && !second.empty();
    Result<ProgramLibraries> interpreter = find_program_libraries(by_env ? second : first);
    if (!interpreter.ok()) return interpreter.status().within("interpreter of " + program);
    interpreter->kind = ProgramKind::script;
    interpreter->interpreter = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    return interpreter;
  }
  if (start != "\177ELF") {
    return Status(Code::invalid_argument,
                  "\"" + program + "\" is neither an executable of this system nor a script");
  }
  struct stat facts {};
  if (::stat(found.path.c_str(), &facts) != 0) return status_from_errno(errno, found.path);
  found.more_rights = (facts.st_mode & (S_ISUID | S_ISGID)) != 0;
  Result<Printed> listed = output_of({"ldd", found.path});
  if (!listed.ok()) return listed.status();
  std::istringstream lines(listed->text);
  std::string line;
  while (std::getline(lines, line)) {
    const bool no_list = line.find("statically linked") != std::string::npos ||
                         line.find("not a dynamic executable") != std::string::npos;
    if (no_list) {
      found.kind = ProgramKind::linked_up;
    } else if (line.find(" => ") != std::string::npos || line.find(" (0x") != std::string::npos) {
      found.libraries.push_back(library_of(line));
    }
  }
  if (listed->exit_code != 0 && found.kind != ProgramKind::linked_up) {
    return Status(Code::io_error,
                  "ldd " + found.path + ": " + listed->text.substr(0, listed->text.find('\n')));
  }
  return found;
}

Result<std::string> output_of_program(std::vector<std::string> words) {
  const std::string name = words.front();
  Result<Printed> printed = output_of(std::move(words));
  if (!printed.ok()) return printed.status();
  if (printed->exit_code != 0) {
    return Status(Code::io_error,
                  name + " ended with exit code " + std::to_string(printed->exit_code));
  }
  return std::move(printed->text);
}

Result<ProgramLibraries> find_process_libraries(std::uint64_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream maps(folder + "/maps");
  if (!maps) {
    const int reason = errno;
    if (reason != ENOENT) return status_from_errno(reason, folder + "/maps");
    return Status(Code::not_found, "no process has the number " + std::to_string(process));
  }
  ProgramLibraries found;
  std::array<char, 4096> target{};
  const ssize_t n_target = ::readlink((folder + "/exe").c_str(), target.data(), target.size());
  if (n_target < 0) return status_from_errno(errno, folder + "/exe");
  found.path.assign(target.data(), static_cast<std::size_t>(n_target));
  std::string line;
  while (std::getline(maps, line)) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos || line.find(".so") == std::string::npos)
      continue;  // Not a library.
    LoadedLibrary library{"", line.substr(at)};
    library.name = library.path.substr(library.path.rfind('/') + 1);
    const bool known = std::ranges::any_of(
        found.libraries, [&](const LoadedLibrary& one) { return one.path == library.path; });
    if (!known) found.libraries.push_back(std::move(library));
  }
  return found;
}

}  // namespace tailrace
