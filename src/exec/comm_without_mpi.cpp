// Replacement of exec/mpi_*.cpp in programs without MPI: one rank; an error for communicators.

#include "exec/comm_factory.hpp"

namespace tailrace {

Result<std::unique_ptr<Comm>> make_mpi_comm(const void*, std::size_t, bool) {
  return Status(Code::unsupported, "this Tailrace was built without MPI; pass no communicator");
}

int n_ranks_of_program() { return 1; }
int n_ranks_launched() { return 1; }

std::string mpi_library_version() { return "none (built without MPI)"; }

MpiSession::MpiSession(int*, char***) {}
MpiSession::~MpiSession() { initialised_ = false; }
std::unique_ptr<Comm> MpiSession::world() { return make_self_comm(); }

}  // namespace tailrace
