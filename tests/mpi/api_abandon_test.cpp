// Communicators and windows of files that are closed or abandoned. Those of a closed file serve the
// next file of the same communicator. Those of an abandoned one are freed when the ranks create
// that file, because only all ranks together can free them. Counters between the library and MPI
// (MPI's profiling interface) count them.

#include <mpi.h>

#include "api_support.hpp"
#include "tailrace/reader.hpp"

namespace {

int n_windows = 0;
int n_communicators = 0;
int n_made = 0;

}  // namespace

// Declared as in MPI.
extern "C" {
int MPI_Win_allocate_shared(MPI_Aint n_bytes, int unit, MPI_Info info, MPI_Comm comm, void* memory,
                            MPI_Win* window) {
  ++n_windows;
  ++n_made;
  return PMPI_Win_allocate_shared(n_bytes, unit, info, comm, memory, window);
}
int MPI_Win_free(MPI_Win* window) {
  --n_windows;
  return PMPI_Win_free(window);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++n_communicators;
  ++n_made;
  return PMPI_Comm_dup(comm, made);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  if (color != MPI_UNDEFINED) ++n_communicators;
  ++n_made;
  return PMPI_Comm_split(comm, color, key, made);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  ++n_communicators;
  ++n_made;
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

/// Files whose resources MPI_COMM_WORLD keeps, and communicators of one file and of what keeps
/// them.
constexpr int kKept = 3;
constexpr int kOfFile = 3;
constexpr int kOfKeeper = 2;

/// Expects no more resources than are kept after all ranks have left their files. A message between
/// nodes may be dropped in flight when the next file is made; it pins its file until the file after
/// that.
void expect_freed() {
  for (int i = 0; i < 3; ++i) create(scratch(), "replace=on").close();
  EXPECT_LE(n_windows, kKept);
  EXPECT_LE(n_communicators, kOfKeeper + kKept * kOfFile);
}

class Abandoned : public testing::TestWithParam<const char*> {};

TEST_P(Abandoned, FilesAreFreedByTheNextOne) {
  const std::string path = scratch();
  for (int i = 0; i < 20; ++i) {
    file_in_midst(path, GetParam()).abandon();
    // Two windows a file, and three files at most: see expect_freed().
    EXPECT_LE(n_windows, kKept + 2 * 3) << "file " << i;
    EXPECT_LE(n_communicators, kOfKeeper + (kKept + 3) * kOfFile) << "file " << i;
  }
  expect_freed();
}

TEST_P(Abandoned, FilesAreFreedOnceAllRanksHaveGivenThemUp) {
  const std::string path = scratch();
  {
    auto early = file_in_midst(path + ".early", GetParam());
    auto late = file_in_midst(path + ".late", GetParam());
    // Each rank abandons one file; even and odd ranks choose different files.
    (rank() % 2 == 0 ? early : late).abandon();
    create(path, "replace=on").close();
    EXPECT_GE(n_communicators, kOfKeeper + 2 * 2);  // At least those of both files.
  }
  expect_freed();
}

INSTANTIATE_TEST_SUITE_P(Modes, Abandoned,
                         testing::Values("mode=sync", "mode=async", "mode=in_situ",
                                         "mode=in_situ,writers=node", "layout=dense"));

TEST(AbandonedReader, IsFreedByTheNextOne) {
  const std::string path = scratch();
  auto file = file_in_midst(path, "codec=deflate");
  file.end_step();
  file.close();
  for (int i = 0; i < 3; ++i) {
    auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  }
  expect_freed();
}

TEST(ClosedFile, ServesTheNextOne) {
  for (int i = 0; i < 2; ++i) create(scratch(), "replace=on").close();
  const int before = n_made;
  for (int i = 0; i < 5; ++i) create(scratch(), "replace=on").close();
  EXPECT_EQ(n_made, before);
}

TEST(ClosedFile, ServesTwoFilesThatAreOpenAtOnce) {
  const auto write_two = [] {
    auto one = file_in_midst(scratch("one.h5"), "mode=async");
    auto other = file_in_midst(scratch("other.h5"), "mode=async");
    one.close();
    other.close();
  };
  for (int i = 0; i < 2; ++i) write_two();
  const int before = n_made;
  for (int i = 0; i < 3; ++i) write_two();
  EXPECT_EQ(n_made, before);
}

/// The program frees its communicator after its files are closed, or while one is still open.
TEST(ClosedFile, KeepsNothingBeyondItsCommunicator) {
  for (const bool is_open : {false, true}) {
    const Live before;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const auto create_on = [&](const std::string& name) {
      return tailrace::File::create(scratch(name), tailrace::mpi(comm), "replace=on");
    };
    create_on("closed.h5").close();
    auto one = create_on("one.h5");
    auto other = create_on("other.h5");
    other.close();
    if (!is_open) one.close();
    MPI_Comm_free(&comm);
    if (is_open) one.close();
    EXPECT_EQ(n_windows, before.windows) << is_open;
    EXPECT_EQ(n_communicators, before.communicators) << is_open;
  }
}

}  // namespace
