// A program to be killed: it writes steps without end, and prints which are committed.
//
//   in_situ_writer FILE sync|async|in_situ [OPTIONS]
//
// Step k has the fields /step_k/exact and /step_k/bounded of 192 x 160 floats. Element i of both is
// (31 k + i) mod 1009, the second within 0.25. A line "committed k" follows as soon as that is
// certain: in mode sync with the report, otherwise with the next report, or after a wait.
// test_kill.py reads the lines, kills the program and judges the file.

#include <cstdint>
#include <cstdio>
#include <string>
#include <tailrace/tailrace.hpp>
#include <vector>

namespace {

constexpr std::uint64_t n_rows = 192;
constexpr std::uint64_t n_columns = 160;

std::vector<float> values_of(std::uint64_t step) {
  std::vector<float> values(n_rows * n_columns);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((31 * step + i) % 1009);
  }
  return values;
}

/// Prints a line for every earlier step that has not been printed.
void say_committed(std::uint64_t n_steps) {
  static std::uint64_t n_said = 0;
  for (; n_said < n_steps; ++n_said) {
    std::printf("committed %llu\n", static_cast<unsigned long long>(n_said));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int n_arguments, char** arguments) try {
  if (n_arguments < 3) return 2;
  const std::string more = n_arguments > 3 ? std::string(",") + arguments[3] : std::string();
  const bool sync = std::string(arguments[2]) == "sync";
  auto file = tailrace::File::create(
      arguments[1], "threads=2,codec=deflate,chunk=32x32,mode=" + std::string(arguments[2]) + more);
  for (std::uint64_t step = 0;; ++step) {
    const std::vector<float> values = values_of(step);
    const std::string group = "/step_" + std::to_string(step);
    file.define<float>(group + "/exact", {n_rows, n_columns}).put_copy(values);
    file.define<float>(group + "/bounded", {n_rows, n_columns}, "codec=portable,bound=abs=0.25")
        .put_copy(values);
    const tailrace::StepReport report = file.end_step();
    if (report.completed) say_committed(report.step_index + (sync ? 1 : 0));
    { auto scope = file.compute(); }
    file.idle(0.002);
    { auto scope = file.background(); }
    file.idle(0.02);
    if (step % 5 == 4) {
      file.wait();
      say_committed(step + 1);
    }
  }
} catch (const tailrace::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
