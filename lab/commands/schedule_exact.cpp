// The child process. Its three streams are files in memory, so that neither side blocks on the
// other. A watchdog ends it, because a solver may overrun its own time limit.

#include "schedule.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/environment.hpp"

extern char** environ;  // NOLINT(readability-identifier-naming): name given by POSIX.

namespace tailrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kScriptSolverMissing = 3;  ///< exact_schedule.py's exit code.
/// A solver ends some time after its limit: it starts, builds its model and presolves.
constexpr double kGraceS = 60;

/// Anonymous file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }

  Status fill(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n =
          ::pwrite(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return status_from_errno(errno, "cannot pass the instance to the solver");
      done += static_cast<std::size_t>(n);
    }
    return {};
  }
  std::string text() const {
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
      const ssize_t n =
          ::pread(descriptor_, part.data(), part.size(), static_cast<off_t>(text.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  int descriptor_;
};

struct ChildEnd {
  bool timed_out = false;
  int exit_code = 0;
  std::string output;
  std::string error;
};

/// Wait for a child, and kill it after `limit_s` seconds.
ChildEnd wait_for(pid_t child, double limit_s) {
  ChildEnd end;
  const auto limit = Clock::now() + std::chrono::duration<double>(limit_s);
  int state = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &state, end.timed_out ? 0 : WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) {
      end.exit_code = -1;  // Another waiter reaped the child; its exit status is lost.
      return end;
    }
    if (!end.timed_out && Clock::now() > limit) {
      end.timed_out = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  end.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return end;
}

/// Run the program and arguments `command` with `input` on stdin.
/// @error plugin_missing  the program cannot be started.
Result<ChildEnd> run_child(const std::vector<std::string>& command, const std::string& input,
                           double limit_s) {
  const MemoryFile in("instance");
  const MemoryFile out("plan");
  const MemoryFile error("messages");
  if (in.descriptor() < 0 || out.descriptor() < 0 || error.descriptor() < 0) {
    return status_from_errno(errno, "cannot create memory files for the solver");
  }
  TAILRACE_TRY(in.fill(input));
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, error.descriptor(), STDERR_FILENO);
  pid_t child = 0;
  const int failure =
      ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return Status(
        Code::plugin_missing,
        fmt::format("cannot start the interpreter {} ({}); set TAILRACE_PYTHON to another one",
                    command.front(), std::strerror(failure)));
  }
  ChildEnd end = wait_for(child, limit_s);
  end.output = out.text();
  end.error = error.text();
  return end;
}

/// Find the script relative to the program, as built or installed: ../share/tailrace.
Result<std::string> find_script() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path script =
      self.parent_path().parent_path() / "share" / "tailrace" / "exact_schedule.py";
  if (std::filesystem::exists(script, error)) return script.string();
  return Status(Code::plugin_missing,
                script.string() + ": not found; the exact solvers need this script");
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

/// Order that the child returned; nothing unless it is a permutation of the jobs.
std::optional<std::vector<std::size_t>> read_order(const nlohmann::json& order,
                                                   std::size_t n_jobs) {
  if (!order.is_array() || order.size() != n_jobs) return std::nullopt;
  std::vector<std::size_t> jobs;
  std::vector<bool> seen(n_jobs, false);
  for (const nlohmann::json& entry : order) {
    if (!entry.is_number_unsigned()) return std::nullopt;
    const auto job = entry.get<std::size_t>();
    if (job >= n_jobs || seen[job]) return std::nullopt;
    seen[job] = true;
    jobs.push_back(job);
  }
  return jobs;
}

Result<ExactOutcome> read_answer(const FlowShop& shop, const std::string& text) {
  const Status nonsense(Code::internal, "unexpected output of the solver: " +
                                            text.substr(0, std::min<std::size_t>(text.size(), 80)));
  const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object()) return nonsense;
  const auto number = [&](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_number() ? found->get<double>() : std::nan("");
  };
  ExactOutcome outcome;
  outcome.lower_bound_s = number("lower_bound_s");
  outcome.solve_s = number("solve_s");
  outcome.proven = answer.value("proven", false);
  outcome.solver = answer.value("solver", "");
  if (!std::isfinite(outcome.lower_bound_s) || !std::isfinite(outcome.solve_s)) return nonsense;
  const auto encodes = answer.find("encode_order");
  const auto writes = answer.find("write_order");
  if (encodes == answer.end() || writes == answer.end()) return nonsense;
  if (encodes->is_null() || writes->is_null()) return outcome;
  const auto encode_order = read_order(*encodes, shop.jobs.size());
  const auto write_order = read_order(*writes, shop.jobs.size());
  if (!encode_order || !write_order) return nonsense;
  outcome.plan = schedule_in_order(shop, *encode_order, *write_order);
  return outcome;
}

std::string request_text(const FlowShop& shop, const ExactRequest& request) {
  nlohmann::ordered_json document = schedule_instance_json({.shop = shop});
  document["lower_bound_s"] = request.lower_bound_s;
  if (request.hint != nullptr) {
    document["hint"] = {{"encode_start_s", request.hint->encode_start_s},
                        {"write_start_s", request.hint->write_start_s}};
  }
  return document.dump();
}

}  // namespace

Result<ExactOutcome> schedule_exactly(const FlowShop& shop, const ExactRequest& request) {
  TAILRACE_TAKE(const std::string script, find_script());
  const char* chosen = environment_variable("TAILRACE_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const std::vector<std::string> command = {python,
                                            script,
                                            request.solver,
                                            "--time-limit",
                                            fmt::format("{}", request.time_limit_s),
                                            "--workers",
                                            std::to_string(request.n_workers)};
  TAILRACE_TAKE(const auto end, run_child(command, request_text(shop, request),
                                          2 * request.time_limit_s + kGraceS));
  if (end.timed_out) {
    return Status(Code::internal, fmt::format("{} did not stop within its limit of {} s",
                                              request.solver, request.time_limit_s));
  }
  if (end.exit_code == kScriptSolverMissing) {
    return Status(Code::plugin_missing, last_line(end.error));
  }
  if (end.exit_code != 0) {
    return Status(Code::internal, fmt::format("{} ended with exit code {}: {}", request.solver,
                                              end.exit_code, last_line(end.error)));
  }
  return read_answer(shop, end.output);
}

}  // namespace tailrace::cli
