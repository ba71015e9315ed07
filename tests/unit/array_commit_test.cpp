// Kills within a flush: an array file must have all of the flush or nothing of it, for every way of
// storing a variable. A child process dies in the middle of each of its writes in turn. It dies at
// a page border, because a kill cuts a write only there.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/recover.hpp"
#include "support/test_tier.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kCommittedLength = 2000;  // 16 kB: writes cross borders of pages.
constexpr int kLived = 3;  ///< Exit status of a child that has closed its file.

/// A storage that ends the process at one of its writes.
class DeadlyStorage final : public StorageOver {
 public:
  DeadlyStorage(std::unique_ptr<Storage> inner, const int& n_left)
      : StorageOver(std::move(inner)), n_left_(n_left) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (n_left_ >= 0 && n_written_++ == n_left_) {
      constexpr std::uint64_t page_bytes = 4096;
      const std::uint64_t border = (address + bytes.size() / 2) / page_bytes * page_bytes;
      const std::uint64_t n_done = border > address ? border - address : 0;
      static_cast<void>(inner_->write_at(address, bytes.first(n_done)));
      ::_exit(0);
    }
    return inner_->write_at(address, bytes);
  }

 private:
  const int& n_left_;  ///< Negative: the process survives.
  int n_written_ = 0;
};

struct WaysOfStoring {
  std::string name;
  Shape lengths;  ///< 0: unlimited.
  std::string options;
};

std::vector<WaysOfStoring> ways_of_storing() {
  return {{"scalar", {}, ""},
          {"contiguous", {kCommittedLength}, "layout=contiguous,codec=none"},
          {"unfiltered", {kCommittedLength}, "codec=none,chunk=500"},
          {"tiny", {6}, "codec=auto,bound=abs=1e-9"},
          {"filtered", {kCommittedLength}, "codec=deflate,chunk=500"},
          {"filtered_too", {kCommittedLength}, "codec=deflate,chunk=500"},
          {"record", {0, 4}, "codec=deflate"},
          {"record_too", {0, 4}, "codec=none"}};
}

void add_variable(NetcdfModel& model, const WaysOfStoring& way) {
  ModelVariable variable;
  variable.name = way.name;
  variable.type = ModelType::f64;
  for (const std::uint64_t length : way.lengths) {
    const std::string name = "d" + std::to_string(length);
    std::optional<std::size_t> d = model.find_dimension(0, name);
    if (!d) {
      d = model.dimensions.size();
      model.dimensions.push_back({name, 0, length, length == 0, false});
    }
    variable.dimensions.push_back(*d);
  }
  model.variables.push_back(variable);
}

/// All values of a step are its number; each record has the number of the step that wrote it.
void put_step(ArrayFile& file, int step) {
  for (std::size_t v = 0; v < file.model().variables.size(); ++v) {
    Shape count = file.model().shape_of(file.model().variables[v]);
    Slab slab{Shape(count.size(), 0), count, {}};
    if (file.model().variables[v].name.starts_with("record")) {
      slab.start[0] = static_cast<std::uint64_t>(step - 1);
      slab.count[0] = 1;
    }
    EXPECT_OK(put_values(file, v, slab, std::vector<double>(slab.n_elements(), step)));
  }
}

/// Writes two steps, the second together with a new variable, and dies at a write of the second.
int write_two_steps(const std::string& path, int dies_at) {
  int n_left = -1;
  ArrayFileOptions options = array_options("");
  options.file.open_storage = [&n_left](const std::string& name, bool create) {
    Result<std::unique_ptr<Storage>> inner = open_posix_storage(name, create, false);
    if (!inner.ok()) return inner;
    return Result<std::unique_ptr<Storage>>(
        std::make_unique<DeadlyStorage>(std::move(*inner), n_left));
  };
  auto file = created(make_self_comm(), path, options);
  NetcdfModel model;
  model.netcdf4 = true;
  for (const WaysOfStoring& way : ways_of_storing()) add_variable(model, way);
  EXPECT_OK(file->change_model(model));
  for (std::size_t v = 0; v < ways_of_storing().size(); ++v) {
    EXPECT_OK(file->set_variable_options(v, ways_of_storing()[v].options));
  }
  put_step(*file, 1);
  EXPECT_OK(file->flush());
  n_left = dies_at;
  model = file->model();
  add_variable(model, {"new", {kCommittedLength}, ""});
  EXPECT_OK(file->change_model(model));
  put_step(*file, 2);
  EXPECT_OK(file->flush());
  EXPECT_OK(file->close());
  return ::testing::Test::HasFailure() ? 1 : kLived;
}

/// The step whose values all variables have; 0 if they have values of different steps.
int step_of(const std::string& path, std::string& wrong) {
  int step = 0;
  for (const WaysOfStoring& way : ways_of_storing()) {
    const std::vector<std::byte> bytes = read_field(path, "/" + way.name);
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    int here = values.empty() ? 0 : static_cast<int>(values.back());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool record = way.name.starts_with("record");
      const double expected = record ? static_cast<double>(i / 4 + 1) : here;
      if (values[i] != expected) here = 0;
    }
    if (step == 0) step = here;
    if (here == 0 || here != step) {
      wrong = way.name;
      return 0;
    }
  }
  return step;
}

TEST(ArrayCommit, AKillWithinAFlushLeavesAllOfItOrNothing) {
  const TestFolder folder;
  const std::string path = folder / "steps.nc";
  int n_before = 0;
  int n_after = 0;
  for (int dies_at = 0;; dies_at += tier_stride(2)) {
    std::filesystem::remove(path);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(write_two_steps(path, dies_at));
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kLived) break;
    ASSERT_EQ(WEXITSTATUS(status), 0);
    ASSERT_TRUE(inspect_and_recover(path, true).ok());
    std::string wrong;
    const int step = step_of(path, wrong);
    EXPECT_NE(step, 0) << "killed at write " << dies_at << ": " << wrong;
    EXPECT_EQ(read_field(path, "/new").empty(), step != 2) << "killed at write " << dies_at;
    ++(step == 1 ? n_before : n_after);
  }
  std::string wrong;
  EXPECT_EQ(step_of(path, wrong), 2) << wrong;
  EXPECT_GT(n_before, 0);
  EXPECT_GT(n_after, 0);
}

/// A growing variable without filters costs only its own bytes: elements that readers cannot see
/// yet are written in place.
TEST(ArrayCommit, AppendedRecordsWithoutFiltersStayWhereTheyAre) {
  const TestFolder folder;
  const std::string path = folder / "records.nc";
  auto file = created(make_self_comm(), path, array_options("codec=none"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f64, {0})));
  std::uint64_t first_bytes = 0;
  for (std::uint64_t record = 0; record < 40; ++record) {
    EXPECT_OK(put_values(*file, 0, {{record}, {1}, {}}, std::vector<double>{double(record)}));
    EXPECT_OK(file->flush());
    if (record == 0) first_bytes = std::filesystem::file_size(path);
  }
  EXPECT_EQ(std::filesystem::file_size(path), first_bytes);
  EXPECT_OK(file->close());
  EXPECT_EQ(read_field(path, "/v").size(), 40 * sizeof(double));
}

}  // namespace
}  // namespace tailrace::test
