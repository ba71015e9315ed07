// name_dimensions: an HDF5 file without dimension scales becomes netCDF-4.
// tests/python/test_netcdf_files.py tests the command.

#include <gtest/gtest.h>

#include "netcdf/netcdf_dimension_names.hpp"
#include "netcdf_support.hpp"

namespace tailrace::test {
namespace {

DatasetDefinition definition_of(const std::string& path, Shape shape) {
  DatasetDefinition definition;
  definition.path = path;
  definition.shape = std::move(shape);
  return definition;
}

DimensionNames names_for(const std::string& path, std::vector<std::string> names) {
  return {path, std::move(names), [path](std::string_view other) { return other == path; }};
}

/// The model that a file of these datasets gets, or the error of name_dimensions.
struct Named {
  Status status;
  NetcdfModel model;
};

Named name_all(const std::vector<DatasetDefinition>& datasets,
               const std::vector<DimensionNames>& names) {
  const TestFolder folder;
  RecordingStorage storage(folder / "a.nc", true);
  ScatteringTail tail;
  Result<std::unique_ptr<Hdf5File>> file = Hdf5File::create(storage, tail.allocate(), {});
  Named named;
  if (!file.ok()) return {file.status(), {}};
  for (const DatasetDefinition& dataset : datasets) {
    named.status = (*file)->create_dataset(dataset);
    if (!named.status.ok()) return named;
  }
  named.status = name_dimensions(**file, names).status();
  if (named.status.ok()) named.status = (*file)->close();
  if (named.status.ok()) {
    named.model = model_of(storage.path());
    if (run_tool({"ncdump", storage.path()}) > 0) named.status = Status(Code::corrupt, "ncdump");
  }
  return named;
}

std::vector<std::string> dimensions_of(const NetcdfModel& model, std::size_t group,
                                       std::string_view name) {
  std::vector<std::string> names;
  for (const std::size_t d : model.variables[*model.find_variable(group, name)].dimensions) {
    names.push_back(model.dimensions[d].name);
    EXPECT_FALSE(model.dimensions[d].anonymous);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(NameDimensions, EqualLengthsShareWithinAGroup) {
  DatasetDefinition grows = definition_of("/grows", {5, 3});
  grows.extendable = true;
  grows.chunk_shape = {1, 3};
  const Named named = name_all(
      {definition_of("/a", {5, 3}), definition_of("/square", {5, 5}), grows,
       definition_of("/g/b", {3}), definition_of("/scalar", {}), definition_of("/dim_3", {4})},
      {});
  ASSERT_DONE(named.status);
  EXPECT_EQ(dimensions_of(named.model, 0, "a"), (Names{"dim_5", "dim_3_2"})) << "a name is taken";
  EXPECT_EQ(dimensions_of(named.model, 0, "square"), (Names{"dim_5", "dim_5_2"}));
  EXPECT_EQ(dimensions_of(named.model, 0, "grows"), (Names{"dim_unlimited", "dim_3_2"}));
  EXPECT_EQ(dimensions_of(named.model, 1, "b"), (Names{"dim_3"}));
  EXPECT_TRUE(dimensions_of(named.model, 0, "scalar").empty());
  EXPECT_TRUE(named.model.netcdf4);
}

TEST(NameDimensions, GivenNamesMakeCoordinatesAndReachDown) {
  const Named named = name_all({definition_of("/t", {5}), definition_of("/a", {5, 3}),
                                definition_of("/b", {3, 5}), definition_of("/g/c", {5, 7})},
                               {names_for("/a", {"t", "x"}), names_for("/g/c", {"t", "z"})});
  ASSERT_DONE(named.status);
  EXPECT_EQ(dimensions_of(named.model, 0, "t"), (Names{"t"}));
  EXPECT_EQ(dimensions_of(named.model, 0, "a"), (Names{"t", "x"}));
  EXPECT_EQ(dimensions_of(named.model, 0, "b"), (Names{"x", "t"}));
  EXPECT_EQ(dimensions_of(named.model, 1, "c"), (Names{"t", "z"}));
  EXPECT_EQ(named.model.dimensions.size(), 3U);
}

TEST(NameDimensions, RefusesNamesThatDoNotFit) {
  const std::vector<DatasetDefinition> datasets = {definition_of("/a", {5, 3}),
                                                   definition_of("/b", {4})};
  const auto refused = [&](const std::vector<DimensionNames>& names) {
    return name_all(datasets, names).status.code() == Code::invalid_argument;
  };
  EXPECT_TRUE(refused({names_for("/a", {"x"})}));
  EXPECT_TRUE(refused({names_for("/a", {"x", "x"})}));
  EXPECT_TRUE(refused({names_for("/a", {"x", ""})}));
  EXPECT_TRUE(refused({names_for("/a", {"x", "y"}), names_for("/b", {"x"})}));
  EXPECT_TRUE(refused({names_for("/a", {"b", "y"})})) << "a dataset of another length has the name";
  EXPECT_FALSE(refused({names_for("/a", {"x", "y"}), names_for("/b", {"b"})}));
}

}  // namespace
}  // namespace tailrace::test
