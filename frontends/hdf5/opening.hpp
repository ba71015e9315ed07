// Agreement of all ranks on whether a file is served, before they create or open it.
//
// Each rank votes for its own choice. Choices may differ: another environment, a library that
// cannot be loaded on one node, a file that only one rank has open. Every rank whose calls reach
// Tailrace takes part in this agreement, even if it serves nothing, because the others would wait
// for it forever. Both libraries include this header, so it uses only MPI, and allocates no memory.

#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/environment.hpp"

namespace tailrace::hdf5_programs {

/// Setting by which the user disables Tailrace for all files.
inline constexpr const char* kOffSetting = "TAILRACE_HDF5=off";
inline bool wanted_off() {
  const char* const setting = environment_variable("TAILRACE_HDF5");
  return setting != nullptr && std::string_view(setting) == "off";
}

/// Outcome of a call that creates or opens a file.
enum class Opening : int { by_hdf5, fails, again, is_open, create, open };

struct Vote {
  Opening opening = Opening::by_hdf5;
  /// True if the user need not be informed when all ranks vote alike.
  bool silent = true;
  /// Reason for by_hdf5 or fails: this rank's, then the agreed one.
  char why[512] = "";

  void cast(Opening wanted, std::string_view reason, bool silently = false) {
    opening = wanted;
    silent = silently;
    std::snprintf(why, sizeof(why), "%.*s", static_cast<int>(reason.size()), reason.data());
  }
};

/// Agree on one vote. If any rank votes by_hdf5, HDF5 opens the file, and rank 0 prints the reason
/// to stderr, once. Otherwise all ranks do the same, or all fail. They also fail if only some ranks
/// have the file open. Collective: one allreduce, and one broadcast if the file is not served.
/// HDF5's own communicators return errors.
inline void agree_on_opening(MPI_Comm comm, Vote& vote) {
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n_ranks);
  const int mine = static_cast<int>(vote.opening);
  const bool by_hdf5 = vote.opening == Opening::by_hdf5;
  const bool here = vote.opening == Opening::again || vote.opening == Opening::is_open;
  // Minimum and negated maximum vote; the first rank of each kind; 0 if any rank has the file open.
  int least[6] = {mine,
                  -mine,
                  by_hdf5 ? rank : n_ranks,
                  by_hdf5 && !vote.silent ? rank : n_ranks,
                  vote.opening == Opening::fails ? rank : n_ranks,
                  here ? 0 : 1};
  if (MPI_Allreduce(MPI_IN_PLACE, least, 6, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS) {
    return vote.cast(Opening::fails, "MPI_Allreduce failed among the ranks that open the file");
  }
  const bool alike = least[0] == -least[1];
  if (alike && !by_hdf5 && vote.opening != Opening::fails) return;
  const int first_loud = least[3];
  if (alike && by_hdf5 && first_loud == n_ranks) return;
  if (!alike && least[5] == 0) {
    return vote.cast(Opening::fails, "only some ranks have a file of this name open");
  }
  const bool is_for_hdf5 = least[2] < n_ranks;
  if (!is_for_hdf5 && least[4] == n_ranks) {
    return vote.cast(Opening::fails, "some ranks create the file, others open it");
  }
  const int speaker = !is_for_hdf5 ? least[4] : first_loud < n_ranks ? first_loud : least[2];
  MPI_Bcast(vote.why, sizeof(vote.why), MPI_CHAR, speaker, comm);
  if (!alike) {
    char who[32];
    const auto n = static_cast<std::size_t>(std::snprintf(who, sizeof(who), "rank %d: ", speaker));
    std::memmove(vote.why + n, vote.why, sizeof(vote.why) - 1 - n);
    std::memcpy(vote.why, who, n);
  }
  vote.opening = is_for_hdf5 ? Opening::by_hdf5 : Opening::fails;
  static char printed[sizeof(vote.why)] = "";
  if (!is_for_hdf5 || rank != 0 || std::strcmp(printed, vote.why) == 0) return;
  std::memcpy(printed, vote.why, sizeof(printed));
  std::fprintf(stderr, "tailrace: HDF5 writes the files without Tailrace: %s\n", vote.why);
}

}  // namespace tailrace::hdf5_programs
