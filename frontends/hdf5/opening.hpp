// Whether a file is served is decided by all ranks that create or open it, before anything else.
//
// Each rank says what it would do by itself. It may differ: another environment, a library that
// cannot be loaded on one node, a file that one rank has open. In this one agreement takes part
// every rank whose calls reach us, also one that serves nothing: the others would wait for it for
// ever. Both libraries have this, so there is nothing here but MPI, and no memory is asked for.

#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/environment.hpp"

namespace tailrace::hdf5_programs {

/// The user wants all files written by HDF5 alone.
inline constexpr const char* off_setting = "TAILRACE_HDF5=off";
inline bool wanted_off() {
  const char* const setting = environment_variable("TAILRACE_HDF5");
  return setting != nullptr && std::string_view(setting) == "off";
}

/// What becomes of a call that creates or opens a file.
enum class Opening : int { by_hdf5, fails, again, is_open, create, open };

struct Vote {
  Opening opening = Opening::by_hdf5;
  bool silent = true;  ///< What all ranks want is nothing that the user must hear of.
  char why[512] = "";  ///< by_hdf5, fails: of this rank; then that of all.

  void say(Opening wanted, std::string_view words, bool silently = false) {
    opening = wanted;
    silent = silently;
    std::snprintf(why, sizeof(why), "%.*s", static_cast<int>(words.size()), words.data());
  }
};

/// Make the votes of all ranks one: HDF5 does it alone if some rank wants that; rank 0 says why
/// on stderr, once. Otherwise all do the same, or all fail. Collective: one allreduce; where the
/// file is not served, one broadcast more. HDF5's own communicators return errors.
inline void agree_on_opening(MPI_Comm comm, Vote& vote) {
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n_ranks);
  const int mine = static_cast<int>(vote.opening);
  const bool by_hdf5 = vote.opening == Opening::by_hdf5;
  const bool here = vote.opening == Opening::again || vote.opening == Opening::is_open;
  // The least and the most, who comes first of each kind, whether some rank has it open.
  int least[6] = {mine,
                  -mine,
                  by_hdf5 ? rank : n_ranks,
                  by_hdf5 && !vote.silent ? rank : n_ranks,
                  vote.opening == Opening::fails ? rank : n_ranks,
                  here ? 0 : 1};
  if (MPI_Allreduce(MPI_IN_PLACE, least, 6, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS) {
    return vote.say(Opening::fails, "the ranks of the file cannot be asked");
  }
  const bool alike = least[0] == -least[1];
  if (alike && !by_hdf5 && vote.opening != Opening::fails) return;
  const int first_loud = least[3];
  if (alike && by_hdf5 && first_loud == n_ranks) return;
  if (!alike && least[5] == 0) {
    return vote.say(Opening::fails, "some ranks alone have it open, by that name");
  }
  const bool is_for_hdf5 = least[2] < n_ranks;
  if (!is_for_hdf5 && least[4] == n_ranks) {
    return vote.say(Opening::fails, "some ranks create it, others open it");
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
  static char said[sizeof(vote.why)] = "";
  if (!is_for_hdf5 || rank != 0 || std::strcmp(said, vote.why) == 0) return;
  std::memcpy(said, vote.why, sizeof(said));
  std::fprintf(stderr, "tailrace: files are written by HDF5 alone: %s\n", vote.why);
}

}  // namespace tailrace::hdf5_programs
