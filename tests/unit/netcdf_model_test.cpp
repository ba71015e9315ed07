// NetcdfModel: the rules of names and positions, and files that are inconsistent or that netCDF did
// not write. tests/python/test_netcdf_files.py compares files that the library itself writes.

#include <gtest/gtest.h>

#include <hdf5_hl.h>

#include <array>
#include <functional>
#include <limits>

#include "netcdf_support.hpp"

namespace tailrace::test {
namespace {

NetcdfModel small_model() {
  NetcdfModel model;
  model.groups.push_back({"/g", 0, {}});
  model.dimensions = {{"x", 0, 4, false, false}, {"y", 1, 2, false, false}};
  model.variables = {variable_of("v", ModelType::f32, {0}),
                     variable_of("w", ModelType::text, {0, 1}, 1)};
  return model;
}

struct Wrong {
  const char* name;
  const char* says;
  void (*spoil)(NetcdfModel& model);
};

class WrongModel : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongModel, IsRefusedByName) {
  NetcdfModel model = small_model();
  ASSERT_DONE(check_model(model));
  GetParam().spoil(model);
  const Status status = check_model(model);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().says), std::string::npos) << status.message();
}

const Wrong kWrong[] = {
    {"NoRoot", "first group", [](NetcdfModel& m) { m.groups[0].path = "/r"; }},
    {"NoGroups", "first group", [](NetcdfModel& m) { m.groups.clear(); }},
    {"ParentBehind", "parent", [](NetcdfModel& m) { m.groups[1].parent = 1; }},
    {"PathElsewhere", "slash", [](NetcdfModel& m) { m.groups[1].path = "/h/g"; }},
    {"TwoGroups", "\"/g\"",
     [](NetcdfModel& m) {
       m.groups.push_back({"/g", 0, {}});
     }},
    {"TwoDimensions", "exists already in its group",
     [](NetcdfModel& m) { m.dimensions.push_back(m.dimensions[0]); }},
    {"TwoVariables", "exists already in its group",
     [](NetcdfModel& m) { m.variables.push_back(m.variables[0]); }},
    {"GroupsName", "a group has this name", [](NetcdfModel& m) { m.variables[0].name = "g"; }},
    {"DimensionsGroup", "group does not exist", [](NetcdfModel& m) { m.dimensions[0].group = 7; }},
    {"VariablesGroup", "group does not exist", [](NetcdfModel& m) { m.variables[0].group = 7; }},
    {"NoSuchDimension", "does not exist", [](NetcdfModel& m) { m.variables[0].dimensions = {9}; }},
    {"DimensionBelow", "neither in its group",
     [](NetcdfModel& m) { m.variables[0].dimensions = {1}; }},
    {"EmptyName", "empty", [](NetcdfModel& m) { m.variables[0].name = ""; }},
    {"Slash", "slash", [](NetcdfModel& m) { m.dimensions[0].name = "a/b"; }},
    {"TrailingSpace", "space", [](NetcdfModel& m) { m.dimensions[0].name = "a "; }},
    {"Control", "control", [](NetcdfModel& m) { m.variables[0].name = "a\nb"; }},
    {"FirstCharacter", "begin", [](NetcdfModel& m) { m.variables[0].name = "-a"; }},
    {"NotUtf8", "UTF-8", [](NetcdfModel& m) { m.variables[0].name = "a\xff"; }},
    {"Surrogate", "UTF-8", [](NetcdfModel& m) { m.variables[0].name = "a\xed\xa0\x80"; }},
    {"TooLong", "256", [](NetcdfModel& m) { m.variables[0].name.assign(257, 'a'); }},
    {"Prefix", "reserved", [](NetcdfModel& m) { m.variables[0].name = "_nc4_non_coord_a"; }},
    {"TypeOther", "cannot be written",
     [](NetcdfModel& m) { m.variables[0].type = ModelType::other; }},
    {"Rank", "dimensions, HDF5 allows",
     [](NetcdfModel& m) { m.variables[0].dimensions.assign(33, 0); }},
    {"ReservedAttribute", "reserved",
     [](NetcdfModel& m) { m.variables[0].attributes = {text_attribute("CLASS", "x")}; }},
    {"TwoAttributes", "occurs twice",
     [](NetcdfModel& m) {
       m.groups[0].attributes = {text_attribute("a", "x"), text_attribute("a", "y")};
     }},
    {"CountOfValues", "3 values",
     [](NetcdfModel& m) {
       m.variables[0].attributes = {text_attribute("a", "xyz")};
       m.variables[0].attributes[0].values.resize(2);
     }},
    {"ZeroInText", "zero byte",
     [](NetcdfModel& m) {
       m.groups[1].attributes = {texts_attribute("a", {std::string(2, '\0')})};
     }},
    {"FillType", "_FillValue",
     [](NetcdfModel& m) {
       m.variables[0].attributes = {number_attribute<double>("_FillValue", ModelType::f64, {1})};
     }},
    {"FillCount", "_FillValue",
     [](NetcdfModel& m) {
       m.variables[0].attributes = {number_attribute<float>("_FillValue", ModelType::f32, {1, 2})};
     }},
};

INSTANTIATE_TEST_SUITE_P(NetcdfModel, WrongModel, ::testing::ValuesIn(kWrong),
                         [](const auto& tested) { return tested.param.name; });

TEST(NetcdfModel, NamesBeyondAsciiAreFine) {
  NetcdfModel model = small_model();
  model.variables[0].name = "Größe_°C";
  model.dimensions[0].name = "9x.y-z+@";
  EXPECT_TRUE(check_model(model).ok());
}

TEST(NetcdfModel, TextTellsModelsApart) {
  const NetcdfModel model = small_model();
  EXPECT_EQ(model_text(model), model_text(small_model()));
  for (const Wrong& wrong : kWrong) {
    NetcdfModel other = small_model();
    wrong.spoil(other);
    EXPECT_NE(model_text(model), model_text(other)) << wrong.name;
  }
}

/// The text appears in errors if ranks define different models, so it consists of readable lines.
TEST(NetcdfModel, TextIsToBeRead) {
  NetcdfModel model = small_model();
  model.variables[0].attributes = {
      text_attribute("units", "K\n"),
      number_attribute<float>("valid_range", ModelType::f32, {0.5F, 2})};
  const std::string text = model_text(model);
  EXPECT_NE(text.find(": type char, 2 values, \"K\\x0a\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find(": type float, 2 values, 0.5, 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("dimension \"" + model.dimensions[0].name + "\" of group \"/\": length "),
            std::string::npos)
      << text;
}

TEST(NetcdfModel, LooksDimensionsUpThroughParents) {
  const NetcdfModel model = small_model();
  EXPECT_EQ(model.find_dimension(1, "x"), 0U);
  EXPECT_EQ(model.find_dimension(0, "y"), std::nullopt);
  EXPECT_EQ(model.find_variable(1, "w"), 1U);
  EXPECT_EQ(model.find_group("/g"), 1U);
  EXPECT_EQ(model.path_of(model.variables[1]), "/g/w");
  EXPECT_EQ(model.shape_of(model.variables[1]), (Shape{4, 2}));
}

// Files written by plain HDF5, some of them inconsistent.

Hdf5Id dataset_of(hid_t file, const char* path, const std::vector<hsize_t>& extents,
                  hsize_t first_limit = 0) {
  std::vector<hsize_t> limits = extents;
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  if (first_limit != 0) {
    limits[0] = first_limit;
    const std::vector<hsize_t> chunk(extents.size(), 1);
    H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data());
  }
  const Hdf5Id space(
      H5Screate_simple(static_cast<int>(extents.size()), extents.data(), limits.data()));
  return Hdf5Id(
      H5Dcreate2(file, path, H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT));
}

NetcdfModel model_made_by(const std::function<void(hid_t file)>& make) {
  const TestFolder folder;
  const std::string path = folder / "a.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    make(file.get());
  }
  return model_of(path);
}

std::vector<std::string> dimension_names(const NetcdfModel& model, std::string_view variable) {
  std::vector<std::string> names;
  const std::optional<std::size_t> v = model.find_variable(0, variable);
  if (!v) return {"no such variable"};
  for (const std::size_t d : model.variables[*v].dimensions) {
    names.push_back(model.dimensions[d].name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(NetcdfModel, DatasetsWithoutScalesShareAnonymousDimensions) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    dataset_of(file, "a", {5, 5});
    dataset_of(file, "b", {5, 3});
    dataset_of(file, "u", {5}, H5S_UNLIMITED);
  });
  // ncdump -h prints these names.
  EXPECT_EQ(dimension_names(model, "a"), (Names{"phony_dim_0", "phony_dim_1"}));
  EXPECT_EQ(dimension_names(model, "b"), (Names{"phony_dim_0", "phony_dim_2"}));
  EXPECT_EQ(dimension_names(model, "u"), (Names{"phony_dim_3"}));
  EXPECT_TRUE(model.dimensions[3].unlimited && model.dimensions[3].anonymous);
  EXPECT_FALSE(model.netcdf4);
}

TEST(NetcdfModel, CyclesOfGroupsEnd) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    const Hdf5Id g(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id h(H5Gcreate2(g.get(), "h", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Lcreate_hard(file, "/", h.get(), "root", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/g", h.get(), "up", H5P_DEFAULT, H5P_DEFAULT);
    dataset_of(h.get(), "d", {2});
  });
  EXPECT_EQ(model.groups.size(), 3U);
  EXPECT_EQ(model.variables.size(), 1U);
}

TEST(NetcdfModel, ChainsOfGroupsDoNotUseUpTheStack) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    Hdf5Id at(H5Gopen2(file, "/", H5P_DEFAULT));
    for (int i = 0; i < 60; ++i) {
      at = Hdf5Id(H5Gcreate2(at.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
  });
  EXPECT_EQ(model.groups.size(), 61U);
}

TEST(NetcdfModel, ScalesOfAnotherLengthDoNotCount) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    const Hdf5Id scale = dataset_of(file, "x", {7});
    H5DSset_scale(scale.get(), "x");
    const Hdf5Id fits = dataset_of(file, "fits", {7});
    const Hdf5Id lies = dataset_of(file, "lies", {4});
    H5DSattach_scale(fits.get(), scale.get(), 0);
    H5DSattach_scale(lies.get(), scale.get(), 0);
  });
  EXPECT_EQ(dimension_names(model, "fits"), (Names{"x"}));
  EXPECT_EQ(dimension_names(model, "lies"), (Names{"phony_dim_1"}));
}

TEST(NetcdfModel, ReferencesToNothingDoNotCount) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    const Hdf5Id scale = dataset_of(file, "x", {4});
    const Hdf5Id plain = dataset_of(file, "plain", {4});
    H5DSset_scale(scale.get(), "x");
    const Hdf5Id data = dataset_of(file, "data", {4});
    H5DSattach_scale(data.get(), scale.get(), 0);
    H5Ldelete(file, "x", H5P_DEFAULT);
    // A list with a reference to an object that is not a scale, one that is too long, and one of
    // another type.
    const Hdf5Id type(H5Tvlen_create(H5T_STD_REF_OBJ));
    hobj_ref_t reference = 0;
    H5Rcreate(&reference, plain.get(), ".", H5R_OBJECT, -1);
    std::array<hvl_t, 2> lists = {hvl_t{1, &reference}, hvl_t{1, &reference}};
    const hsize_t two = 2;
    const hsize_t one = 1;
    const Hdf5Id long_space(H5Screate_simple(1, &two, nullptr));
    const Hdf5Id space(H5Screate_simple(1, &one, nullptr));
    const auto lie = [&](const char* path, hid_t shape, hid_t list_type) {
      const Hdf5Id made = dataset_of(file, path, {4});
      const Hdf5Id attribute(
          H5Acreate2(made.get(), "DIMENSION_LIST", list_type, shape, H5P_DEFAULT, H5P_DEFAULT));
      H5Awrite(attribute.get(), list_type, lists.data());
    };
    lie("foreign", space.get(), type.get());
    lie("longer", long_space.get(), type.get());
    lie("other", space.get(), H5T_NATIVE_INT);
  });
  for (const char* name : {"data", "foreign", "longer", "other"}) {
    EXPECT_EQ(dimension_names(model, name), (Names{"phony_dim_0"})) << name;
  }
}

TEST(NetcdfModel, LyingDimensionNumbersDoNotCount) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    const auto number = [](hid_t object, const char* name, std::vector<int> values) {
      const hsize_t n = values.size();
      const Hdf5Id space(H5Screate_simple(1, &n, nullptr));
      const Hdf5Id attribute(
          H5Acreate2(object, name, H5T_NATIVE_INT, space.get(), H5P_DEFAULT, H5P_DEFAULT));
      H5Awrite(attribute.get(), H5T_NATIVE_INT, values.data());
    };
    for (const char* name : {"x", "y"}) {
      const Hdf5Id scale = dataset_of(file, name, {4});
      H5DSset_scale(scale.get(), name);
      number(scale.get(), "_Netcdf4Dimid", {std::numeric_limits<int>::max()});
    }
    const Hdf5Id twice = dataset_of(file, "v", {4, 3});
    number(twice.get(), "_Netcdf4Coordinates", {std::numeric_limits<int>::min(), 99});
  });
  ASSERT_EQ(model.dimensions.size(), 3U);
  EXPECT_EQ(model.dimensions[0].name, "x");
  // If the file names no dimension, one of the same length serves, as in the library.
  EXPECT_EQ(dimension_names(model, "v"), (Names{"x", "phony_dim_2"}));
}

TEST(NetcdfModel, AttributesThatAreNotUnderstoodAreKept) {
  const NetcdfModel model = model_made_by([](hid_t file) {
    const Hdf5Id data = dataset_of(file, "v", {4});
    const hsize_t square[2] = {2, 2};
    const Hdf5Id wide(H5Screate_simple(2, square, nullptr));
    const Hdf5Id null(H5Screate(H5S_NULL));
    const auto add = [&](const char* name, hid_t type, hid_t space) {
      Hdf5Id(H5Acreate2(data.get(), name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    };
    add("wide", H5T_NATIVE_INT, wide.get());
    add("null", H5T_NATIVE_INT, null.get());
    add("ref", H5T_STD_REF_OBJ, null.get());
  });
  ASSERT_EQ(model.variables.size(), 1U);
  EXPECT_EQ(model.variables[0].attribute("wide")->type, ModelType::other);
  EXPECT_EQ(model.variables[0].attribute("ref")->type, ModelType::other);
  EXPECT_EQ(model.variables[0].attribute("null")->type, ModelType::i32);
  EXPECT_EQ(model.variables[0].attribute("null")->n_values, 0U);
}

}  // namespace
}  // namespace tailrace::test
