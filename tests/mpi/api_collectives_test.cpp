// The cost of a step in blocking MPI calls of all ranks: counted, not timed.
//
// The counters are between the library and MPI (MPI's profiling interface). A gather is counted by
// its messages, because it runs along a tree of point-to-point messages.

#include <mpi.h>

#include <bit>

#include "api_support.hpp"
#include "mpi/mpi_counts.hpp"

namespace {

using mpi_counts::n_collectives;
using mpi_counts::n_sends;

/// Messages between nodes about the file's end (mpi_tail.cpp) depend on claims, not on steps.
constexpr int kTailTags = 4;

}  // namespace

// Declared as in MPI.
extern "C" {
int MPI_Iallreduce(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  ++n_collectives;
  return PMPI_Iallreduce(from, to, n, type, op, comm, request);
}
int MPI_Ibcast(void* values, int n, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  ++n_collectives;
  return PMPI_Ibcast(values, n, type, root, comm, request);
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  ++n_collectives;
  return PMPI_Ibarrier(comm, request);
}
int MPI_Iexscan(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  ++n_collectives;
  return PMPI_Iexscan(from, to, n, type, op, comm, request);
}
int MPI_Allreduce(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++n_collectives;
  return PMPI_Allreduce(from, to, n, type, op, comm);
}
int MPI_Iallgather(const void* from, int n, MPI_Datatype type, void* to, int n_to,
                   MPI_Datatype type_to, MPI_Comm comm, MPI_Request* request) {
  ++n_collectives;
  return PMPI_Iallgather(from, n, type, to, n_to, type_to, comm, request);
}
int MPI_Isend(const void* values, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (tag > kTailTags) ++n_sends;
  return PMPI_Isend(values, n, type, to, tag, comm, request);
}
}

namespace {

using namespace api_test;

struct Counted {
  std::uint64_t collectives = 0;
  std::uint64_t sends = 0;
};

/// Steps of six fields over time; each rank puts the same boxes in every step.
class Steps {
 public:
  explicit Steps(const std::string& options, const std::string& chunk = "chunk=8x40")
      : path_(scratch()),
        file_(create(path_, "replace=on,over-time=on," + options)),
        chunk_(chunk) {
    for (int f = 0; f < 6; ++f) define(f);
  }
  void define(int f) {
    fields_.push_back(file_.define<float>("/f" + std::to_string(f), shape_, chunk_));
  }
  Counted run() {
    for (auto& field : fields_) {
      put_boxes<float>(field, {Box({8 * index(rank()), 0}, {8, 40})}, n_steps_, rough_value<float>);
    }
    ++n_steps_;
    n_collectives = n_sends = 0;
    (void)file_.end_step();
    return {n_collectives, n_sends};
  }
  /// Closes the file and checks that it has all steps.
  void end() {
    file_.close();
    if (!is_root()) return;
    const StockFile stock(path_);
    EXPECT_EQ(stock.shape("/f5"), (Shape{n_steps_, shape_[0], shape_[1]}));
  }

 private:
  static std::uint64_t index(int number) { return static_cast<std::uint64_t>(number); }

  const Shape shape_{8 * index(n_ranks()), 40};  // Chunks contain rows of one rank only.
  std::string path_;
  tailrace::File file_;
  std::string chunk_;
  std::vector<tailrace::Field<float>> fields_;
  std::uint64_t n_steps_ = 0;
};

class Collectives : public testing::TestWithParam<const char*> {};

TEST_P(Collectives, OfAStepThatRepeatsTheLastOne) {
  Steps steps(GetParam());
  (void)steps.run();
  (void)steps.run();
  // One reduction, whether all ranks repeat the step; a gather to rank 0, with two messages per
  // level; one broadcast of the result. In deferred modes the gather and the broadcast include the
  // reduction.
  const auto n_levels = static_cast<std::uint64_t>(std::bit_width(unsigned(n_ranks() - 1)));
  for (int i = 0; i < 3; ++i) {
    const Counted counted = steps.run();
    // Ranks of a node that write for each other also exchange their loads.
    const std::string options = GetParam();
    const bool balances = options == "mode=in_situ" || options == "mode=in_situ,bound=rel=1e-3";
    const std::uint64_t most = options.starts_with("mode=sync") ? 2 : balances ? 2 : 1;
    EXPECT_LE(counted.collectives, n_ranks() == 1 ? 0 : most);
    EXPECT_LE(counted.sends, 2 * n_levels);
  }
  steps.end();
}

/// Steps that wait for a chunk of several steps cost no more messages than others.
TEST_P(Collectives, OfAStepThatWaits) {
  const std::string options = GetParam();
  Steps steps(options, "chunk=4x8x40");
  const auto n_levels = static_cast<std::uint64_t>(std::bit_width(unsigned(n_ranks() - 1)));
  for (int i = 0; i < 12; ++i) {
    const Counted counted = steps.run();
    if (i < 5 || i % 4 == 0 || i % 4 == 3)
      continue;  // the first steps, steps that are due, and
                 // the steps after them
    const bool balances = options == "mode=in_situ" || options == "mode=in_situ,bound=rel=1e-3";
    const std::uint64_t most = options.starts_with("mode=sync") ? 2 : balances ? 2 : 1;
    EXPECT_LE(counted.collectives, n_ranks() == 1 ? 0 : most) << i;
    EXPECT_LE(counted.sends, 2 * n_levels) << i;
  }
  steps.end();
}

/// Covers chunks of one rank each, and chunks that ranks share.
TEST_P(Collectives, OfTheFirstStepOfAField) {
  const std::string options = GetParam();
  const auto has = [&](const char* part) { return options.find(part) != std::string::npos; };
  const bool balances = has("mode=in_situ") && !has("writers=each");
  // Without a measured profile, rank 0 would broadcast the core's speed once per user.
  const std::string as_it_stands = has("bound=") ? ",profile=built-in" : "";
  for (const bool shared : {false, true}) {
    Steps steps(options + as_it_stands, shared ? "chunk=12x40" : "chunk=8x40");
    // An agreement on definitions, one on boxes and value ranges, one on codecs and owners.
    std::uint64_t most = 3;
    // With a bound the engine chooses the codec: a sum of forecasts, and rank 0's decision.
    if (has("bound=")) most += 2;
    // Pieces of shared chunks travel to the chunks' homes and back. The forecasts reveal shared
    // chunks; without them the ranks need one more agreement.
    if (shared) most += has("bound=") ? 2 : 3;
    if (balances) most += 1;  // loads of the node's writes
    // A synchronous step reports its result itself. A deferred step's result is merged with the
    // next step's agreement on definitions.
    if (has("mode=sync")) most += 1;
    EXPECT_LE(most, 8U);
    EXPECT_LE(steps.run().collectives, n_ranks() == 1 ? 0 : most) << shared;
    (void)steps.run();
    steps.define(6);
    EXPECT_LE(steps.run().collectives, n_ranks() == 1 ? 0 : most) << shared;
    steps.end();
  }
}

/// Creating and closing a file; the first one also makes communicators (api_abandon_test.cpp).
TEST(FileCollectives, OfAFileWithoutSteps) {
  create(scratch(), "replace=on").close();
  n_collectives = 0;
  create(scratch(), "replace=on").close();
  // Create: agreements on options and on the opened file; broadcasts of the profile and of the
  // file. Close: those of an empty step, which commits the file, and an agreement. Between nodes:
  // two broadcasts and an agreement on one file.
  const std::uint64_t most = 11 + 3;
  EXPECT_LE(n_collectives, n_ranks() == 1 ? 0 : most);
}

INSTANTIATE_TEST_SUITE_P(Modes, Collectives,
                         testing::Values("mode=sync", "mode=async", "mode=in_situ,writers=each",
                                         "mode=in_situ", "mode=sync,verify=on,bound=abs=0.5",
                                         "mode=async,bound=rel=1e-3",
                                         "mode=in_situ,bound=rel=1e-3"));

}  // namespace
