// Facts from the engine (measure/machine_identity), uname and the libraries.

#include "machine_facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

#include "describe/field_attributes.hpp"
#include "exec/comm_factory.hpp"
#include "measure/machine_identity.hpp"

namespace tailrace::bench {

MachineFacts find_machine_facts(const std::string& folder) {
  MachineFacts facts;
  facts.processor = processor_name();
  facts.n_cores = static_cast<unsigned>(n_cores_of_node());
  facts.memory_gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  facts.file_system = file_system_of(folder);
  double loads[1] = {0};
  if (::getloadavg(loads, 1) == 1) facts.load_average = loads[0];
  facts.compiler = "g++ " __VERSION__;
  facts.mpi = mpi_library_version();
  facts.hdf5 = hdf5_library_version();
  facts.date = utc_now();
  return facts;
}

}  // namespace tailrace::bench
