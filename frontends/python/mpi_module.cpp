// The Python module tailrace._mpi: a communicator of mpi4py as the engine's Comm.
//
// This is the only part of the package that is linked to MPI. It is loaded only when a program
// passes a communicator, so mpi4py has already initialised MPI. The module passes the Comm to
// _engine in a capsule: a virtual interface that both modules are compiled with
// (docs/adr/0016-mpi-by-a-bridge.md). An MPI other than mpi4py's would misinterpret the handle, so
// the Python side first compares the libraries' names.

#include <mpi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/comm.hpp"
#include "exec/comm_factory.hpp"

namespace nb = nanobind;

namespace {

using tailrace::Comm;

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int n_characters = 0;
  MPI_Get_library_version(text.data(), &n_characters);
  return {text.data(), static_cast<std::size_t>(n_characters)};
}

/// Make a Comm from the MPI_Comm of `handle_bytes` bytes at `address`, which mpi4py's
/// MPI._addressof returns. Collective over it. @returns a capsule; raises a failure's message as a
/// ValueError.
nb::capsule communicator(std::uintptr_t address, std::size_t handle_bytes) {
  tailrace::Result<std::unique_ptr<Comm>> made = [&] {
    const nb::gil_scoped_release release;
    return tailrace::make_mpi_comm(std::bit_cast<const void*>(address), handle_bytes);
  }();
  if (!made.ok()) throw nb::value_error(made.status().message().c_str());
  auto owner = std::make_unique<std::unique_ptr<Comm>>(std::move(*made));
  return nb::capsule(owner.release(), "tailrace.Comm", [](void* held) noexcept {
    auto* left = static_cast<std::unique_ptr<Comm>*>(held);
    // The Comm was not moved out: close it without waiting for other ranks.
    if (*left != nullptr) (*left)->abandon();
    delete left;
  });
}

}  // namespace

NB_MODULE(_mpi, module) {
  module.doc() = "Communicators of mpi4py for tailrace's engine.";
  module.def("library_version", &library_version);
  module.def("communicator", &communicator, nb::arg("address"), nb::arg("handle_bytes"));
}
