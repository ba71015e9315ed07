// Common parts of all outputs: counting steps, naming paths, adding the time. Also output none.

#include "common/step_output.hpp"

#include <array>
#include <cstdio>

#include "common/arguments.hpp"

namespace app {
namespace {

class NoOutput final : public StepOutput {
 public:
  NoOutput(const OutputOptions& options, MPI_Comm comm) : StepOutput(options, comm) {}
  void close() override {}

 protected:
  void write_step() override {}
};

}  // namespace

void StepOutput::begin_step(int step, double time) {
  step_ = step;
  time_ = time;
  parts_.clear();
}

void StepOutput::end_step() {
  if (options_.over_time) {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    // The first rank's box is the complete scalar; the others have nothing.
    put({.name = "time"}, rank == 0 ? std::vector<double>{time_} : std::vector<double>{});
    put({.name = "step"},
        rank == 0 ? std::vector<std::int32_t>{step_} : std::vector<std::int32_t>{});
  }
  write_step();
  parts_.clear();
  ++n_written_;
}

std::string StepOutput::group_of_step() const {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "/step_%04d", step_);
  return text.data();
}

std::string StepOutput::path_of(const std::string& name) const {
  return (options_.over_time ? "" : group_of_step()) + "/" + name;
}

std::unique_ptr<StepOutput> make_output(const OutputOptions& options, MPI_Comm comm) {
  if (options.every < 1) throw Unavailable("--every: expected 1 or more");
  if (options.output == "none") return std::make_unique<NoOutput>(options, comm);
  return make_linked_output(options, comm);
}

}  // namespace app
