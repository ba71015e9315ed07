// Files that are abandoned. Resources that only all ranks together can free are freed when the
// ranks create the next file of the same communicator. Counters between the library and MPI (MPI's
// profiling interface) count them.

#include <mpi.h>

#include "api_support.hpp"
#include "tailrace/reader.hpp"

namespace {

int n_windows = 0;
int n_communicators = 0;

}  // namespace

// Declared as in MPI.
extern "C" {
int MPI_Win_allocate_shared(MPI_Aint n_bytes, int unit, MPI_Info info, MPI_Comm comm, void* memory,
                            MPI_Win* window) {
  ++n_windows;
  return PMPI_Win_allocate_shared(n_bytes, unit, info, comm, memory, window);
}
int MPI_Win_free(MPI_Win* window) {
  --n_windows;
  return PMPI_Win_free(window);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++n_communicators;
  return PMPI_Comm_dup(comm, made);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  if (color != MPI_UNDEFINED) ++n_communicators;
  return PMPI_Comm_split(comm, color, key, made);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  ++n_communicators;
  return PMPI_Comm_split_type(comm, type, key, info, made);
}
int MPI_Comm_free(MPI_Comm* comm) {
  --n_communicators;
  return PMPI_Comm_free(comm);
}
}

namespace {

using namespace api_test;

struct Live {
  int windows = n_windows;
  int communicators = n_communicators;
};

/// A file with one completed step and one open step.
tailrace::File file_in_midst(const std::string& path, const std::string& options) {
  auto file = create(path, "replace=on,over-time=on," + options);
  const auto n = static_cast<std::uint64_t>(n_ranks());
  auto field = file.define<float>("/u", {8 * n, 16}, "chunk=8x16");
  const std::vector<float> values(8 * 16, 1.5F);
  const Box box({8 * static_cast<std::uint64_t>(rank()), 0}, {8, 16});
  field.put_copy(box, values);
  file.end_step();
  field.put_copy(box, values);
  return file;
}

/// Expects no resources after all ranks have left their files. A message between nodes may be
/// dropped in flight when the next file is made; it pins its file until the file after that.
void expect_freed(const Live& before) {
  for (int i = 0; i < 3; ++i) create(scratch(), "replace=on").close();
  EXPECT_EQ(n_windows, before.windows);
  EXPECT_EQ(n_communicators, before.communicators);
}

class Abandoned : public testing::TestWithParam<const char*> {};

TEST_P(Abandoned, FilesAreFreedByTheNextOne) {
  const Live before;
  const std::string path = scratch();
  Live first;
  for (int i = 0; i < 8; ++i) {
    file_in_midst(path, GetParam()).abandon();
    if (i == 0) first = Live();
    EXPECT_LE(n_windows - before.windows, 3 * (first.windows - before.windows)) << "file " << i;
    EXPECT_LE(n_communicators, 3 * first.communicators) << "file " << i;
  }
  EXPECT_GT(first.communicators, before.communicators);
  expect_freed(before);
}

TEST_P(Abandoned, FilesAreFreedOnceAllRanksHaveGivenThemUp) {
  const Live before;
  const std::string path = scratch();
  {
    auto early = file_in_midst(path + ".early", GetParam());
    auto late = file_in_midst(path + ".late", GetParam());
    // Each rank abandons one file; even and odd ranks choose different files.
    (rank() % 2 == 0 ? early : late).abandon();
    create(path, "replace=on").close();
    EXPECT_GT(n_communicators, before.communicators);  // At least that of the file open here.
  }
  expect_freed(before);
}

INSTANTIATE_TEST_SUITE_P(Modes, Abandoned,
                         testing::Values("mode=sync", "mode=async", "mode=in_situ",
                                         "mode=in_situ,writers=node", "layout=dense"));

TEST(AbandonedReader, IsFreedByTheNextOne) {
  const Live before;
  const std::string path = scratch();
  auto file = file_in_midst(path, "codec=deflate");
  file.end_step();
  file.close();
  for (int i = 0; i < 3; ++i) {
    auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  }
  expect_freed(before);
}

}  // namespace
