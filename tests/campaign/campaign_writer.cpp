// Writes steps through the public API, for the crash campaign, which crashes its output and makes
// its calls fail. It reports to the recorder how many steps are certainly committed.
//
//   campaign_writer FILE groups|growing FIRST STEPS OPTIONS
//
// It writes steps FIRST to STEPS-1, and opens an existing file if FIRST is above 0. Fields a and b
// have 32 x 64 floats; they are in a group for each step, or grow. Element i of field f in step s
// is ((i + 1000003 s + 7919 f) 2654435761 mod 2^32) >> 16, as in jobs.py. On an error each rank
// prints one line and returns 1.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <tailrace/tailrace.hpp>
#include <vector>

#include "mark.h"

#ifdef CAMPAIGN_MPI
#include <mpi.h>
#endif

namespace {

constexpr std::uint64_t n_rows = 32;
constexpr std::uint64_t n_columns = 64;

/// This rank's rows of field `f` in a step.
struct Part {
  tailrace::Box box;
  std::vector<float> values;

  Part(std::uint64_t rank, std::uint64_t n_ranks, std::uint64_t step, std::uint64_t f) {
    const std::uint64_t first = n_rows * rank / n_ranks;
    const std::uint64_t n = n_rows * (rank + 1) / n_ranks - first;
    box = tailrace::Box({first, 0}, {n, n_columns});
    for (std::uint64_t i = first * n_columns; i < (first + n) * n_columns; ++i) {
      const auto mixed = static_cast<std::uint32_t>((i + 1000003 * step + 7919 * f) * 2654435761U);
      values.push_back(static_cast<float>(mixed >> 16U));
    }
  }
};

/// True during collective calls, whose errors all ranks get.
bool together = false;

void run(char** words, const tailrace::Comm& comm, std::uint64_t rank, std::uint64_t n_ranks) {
  const std::string path = words[1];
  const bool growing = std::string(words[2]) == "growing";
  const std::uint64_t first = std::strtoull(words[3], nullptr, 10);
  const std::uint64_t n_steps = std::strtoull(words[4], nullptr, 10);
  const std::string options = words[5];
  const bool sync = options.find("mode=") == std::string::npos;
  together = true;
  tailrace::File file = first > 0 ? tailrace::File::open(path, comm, options)
                                  : tailrace::File::create(path, comm, options);
  std::vector<tailrace::Field<float>> fields;
  for (std::uint64_t step = first; step < n_steps; ++step) {
    together = false;
    if (!growing) fields.clear();
    for (std::uint64_t f = 0; f < 2; ++f) {
      const std::string parent = growing ? "/" : "/step_" + std::to_string(step) + "/";
      if (fields.size() < 2) {
        fields.push_back(file.define<float>(parent + (f == 0 ? "a" : "b"), {n_rows, n_columns},
                                            growing ? "over-time=on" : ""));
      }
      const Part part(rank, n_ranks, step, f);
      fields[f].put_copy(part.box, part.values);
    }
    together = true;
    const tailrace::StepReport report = file.end_step();
    if (report.completed) campaign_note(first + report.step_index + (sync ? 1 : 0));
    { auto scope = file.compute(); }
    file.idle(0.001);
    if (step % 4 == 3) {
      file.wait();
      campaign_note(step + 1);
    }
  }
  file.close();
  campaign_note(n_steps);
}

int try_run(char** words, const tailrace::Comm& comm, int rank, int n_ranks) {
  try {
    run(words, comm, std::uint64_t(rank), std::uint64_t(n_ranks));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "campaign error: %s\n", error.what());
#ifdef CAMPAIGN_MPI
    if (!together) {  // Other ranks wait for this one. MPI_Abort's own message may get lost.
      std::fprintf(stderr, "rank %d leaves alone\n", rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
#endif
    return 1;
  }
}

}  // namespace

int main(int n_words, char** words) {
  if (n_words != 6) return 2;
#ifdef CAMPAIGN_MPI
  MPI_Init(&n_words, &words);
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const int code = try_run(words, tailrace::mpi(MPI_COMM_WORLD), rank, n_ranks);
  MPI_Finalize();
  return code;
#else
  return try_run(words, tailrace::Comm(), 0, 1);
#endif
}
