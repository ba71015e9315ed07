// Finds executables and libraries, and executes them.

#include "common/variant.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/arguments.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLimiter = "libwritelimit.so";

/// Puts the library at the front of LD_PRELOAD unless it is listed already.
void preload(const fs::path& library) {
  std::string all = library.string();
  if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0') {
    if (std::strstr(others, kLimiter) != nullptr) return;
    all += std::string(":") + others;
  }
  ::setenv("LD_PRELOAD", all.c_str(), 1);
}

}  // namespace

fs::path own_program() { return fs::read_symlink("/proc/self/exe"); }

fs::path variant_of_program(const std::string& suffix, const std::string& reason) {
  const fs::path own = own_program();
  std::string name = own.filename();
  name.resize(name.size() - std::strlen(linked_suffix()));
  const fs::path other = own.parent_path() / (name + suffix);
  if (!fs::exists(other)) {
    const char* library = suffix == "-hdf5"      ? "a parallel HDF5"
                          : suffix == "-pnetcdf" ? "PnetCDF"
                                                 : "Tailrace";
    throw Unavailable(reason + ": not available here: " + other.string() +
                      " is missing; it is built where CMake finds " + library);
  }
  return other;
}

bool limit_storage(Transfer transfer, double bytes_per_s, const std::string& path) {
  if (bytes_per_s <= 0) return false;
  const bool reads = transfer == Transfer::read;
  const std::string variable = reads ? "TAILRACE_READ_LIMIT" : "TAILRACE_WRITE_LIMIT";
  std::array<char, 32> limit{};
  std::snprintf(limit.data(), limit.size(), "%.0f", bytes_per_s);
  const char* already = std::getenv(variable.c_str());
  if (already != nullptr && std::strcmp(already, limit.data()) == 0) return false;

  const fs::path library = own_program().parent_path().parent_path() / "lib" / kLimiter;
  if (!fs::exists(library)) {
    throw Unavailable((reads ? "--read-limit" : "--write-limit") +
                      std::string(": not available here: ") + library.string() +
                      " is missing; it is built with TAILRACE_BUILD_BENCH=ON");
  }
  preload(library);
  const fs::path folder = fs::canonical(fs::absolute(path).parent_path());
  ::setenv(variable.c_str(), limit.data(), 1);
  ::setenv((variable + "_FOLDER").c_str(), folder.c_str(), 1);
  return true;
}

std::uint64_t limited_bytes(Transfer transfer) {
  using Counter = unsigned long long(int);
  void* const found = ::dlsym(RTLD_DEFAULT, "tailrace_limited_bytes");
  if (found == nullptr) return 0;
  return reinterpret_cast<Counter*>(found)(transfer == Transfer::read ? 1 : 0);
}

void execute_anew(const fs::path& program, char** argv) {
  ::execv(program.c_str(), argv);
  throw Unavailable("executing " + program.string() + ": " + std::strerror(errno));
}

}  // namespace app
