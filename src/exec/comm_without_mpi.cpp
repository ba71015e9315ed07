// The stand-ins for a build without MPI: one rank, and a clear refusal of communicators.

#ifndef TAILRACE_WITH_MPI

#include "exec/comm_factory.hpp"

namespace tailrace {

Result<std::unique_ptr<Comm>> make_mpi_comm(const void*, std::size_t) {
  return Status(Code::unsupported, "this Tailrace was built without MPI; pass no communicator");
}

MpiSession::MpiSession(int*, char***) {}
MpiSession::~MpiSession() { initialised_ = false; }
std::unique_ptr<Comm> MpiSession::world() { return make_self_comm(); }

}  // namespace tailrace

#endif
