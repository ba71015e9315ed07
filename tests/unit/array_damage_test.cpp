// ArrayFile on files with unreadable attributes. All variables exist with their values and can be
// written, and the missing attributes are reported.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "array_support.hpp"
#include "container_support.hpp"
#include "engine_support.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "read_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

/// Writes two datasets and a text attribute "units" = "m" of the first.
void write_file(const std::string& path) {
  StockFile stock(path);
  stock.add("u", H5T_IEEE_F64LE, {6, 4}, deflated({3, 4}));
  stock.add("w", H5T_IEEE_F64LE, {6, 4}, deflated({3, 4}));
  const Hdf5Scope scope;
  const Hdf5Id dataset(H5Dopen2(stock.id(), "u", H5P_DEFAULT));
  const Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  const hsize_t two = 2;
  const Hdf5Id space(H5Screate_simple(1, &two, nullptr));
  const char* const texts[] = {"m", "per second"};
  for (const char* name : {"shaky", "units"}) {
    const Hdf5Id made(
        H5Acreate2(dataset.get(), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Awrite(made.get(), type.get(), texts), 0);
  }
}

/// Overwrites one byte at `distance` from the position of `mark`.
void damage(const std::string& path, const std::string& mark, int distance) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = bytes.find(mark);
  ASSERT_NE(at, std::string::npos) << mark;
  file.clear();
  file.seekp(static_cast<std::streamoff>(at) + distance);
  file.put('\x7f');
}

struct Damage {
  const char* name;
  const char* mark;
  int distance;
  const char* remark;
};

class ArrayDamage : public ::testing::TestWithParam<std::tuple<Damage, int>> {};

TEST_P(ArrayDamage, LeavesTheVariables) {
  const auto& [kind, n_ranks] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "a.h5";
  write_file(path);
  damage(path, kind.mark, kind.distance);
  const Slab all = Slab::of(whole_box({6, 4}));
  const std::vector<double> fives(24, 5);
  for (const auto access : {ArrayFile::Access::read, ArrayFile::Access::write}) {
    run_ranks(n_ranks, [&, remark = kind.remark](std::unique_ptr<Comm> comm) {
      const bool writes = access == ArrayFile::Access::write && comm->rank() == 0;
      auto file = opened(std::move(comm), path, access, array_options(""));
      ASSERT_NE(file, nullptr);
      const NetcdfModel& model = file->model();
      ASSERT_EQ(model.variables.size(), 2U);
      ASSERT_FALSE(model.remarks.empty());
      EXPECT_NE(model.remarks[0].find(remark), std::string::npos) << model.remarks[0];
      EXPECT_NE(model.remarks[0].find("\"/u\""), std::string::npos) << model.remarks[0];
      EXPECT_NE(get_values<double>(*file, 0, all), fives);
      if (writes) EXPECT_OK(put_values(*file, 0, all, fives));
      EXPECT_OK(file->close());
    });
  }
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    auto file = opened(std::move(comm), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(get_values<double>(*file, 0, all), fives);
  });
}

/// A heap of texts without its signature; an attribute message with an unknown version.
const Damage kDamages[] = {{"texts", "GCOL", 0, "attribute \"shaky\""},
                           {"message", "units", -8, "cannot be listed"}};

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayDamage,
                         ::testing::Combine(::testing::ValuesIn(kDamages), ::testing::Values(1, 3)),
                         [](const auto& it) {
                           return std::string(std::get<0>(it.param).name) + "_" +
                                  std::to_string(std::get<1>(it.param));
                         });

}  // namespace
}  // namespace tailrace::test
