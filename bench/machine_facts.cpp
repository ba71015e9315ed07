// Facts from /proc, uname and the libraries.

#include "machine_facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "container/field_attributes.hpp"

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

namespace tailrace::bench {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "unknown";
}

/// The type of the mount whose place is the longest prefix of `folder`.
std::string file_system_of(const std::string& folder) {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  std::string best_type = "unknown";
  std::size_t best_length = 0;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    std::string type;
    words >> device >> place >> type;
    if (place == "/") place.clear();
    const bool covers =
        folder.starts_with(place) && (folder.size() == place.size() || folder[place.size()] == '/');
    if (covers && place.size() >= best_length) {
      best_length = place.size();
      best_type = type;
    }
  }
  return best_type;
}

std::string mpi_version() {
#ifdef TAILRACE_WITH_MPI
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
#else
  return "none";
#endif
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

MachineFacts find_machine_facts(const std::string& folder) {
  MachineFacts facts;
  facts.processor = processor_name();
  facts.n_cores = static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  facts.memory_gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  facts.file_system = file_system_of(folder);
  double loads[1] = {0};
  if (::getloadavg(loads, 1) == 1) facts.load_average = loads[0];
  facts.compiler = "g++ " __VERSION__;
  facts.mpi = mpi_version();
  facts.hdf5 = hdf5_library_version();
  facts.date = utc_now();
  return facts;
}

}  // namespace tailrace::bench
