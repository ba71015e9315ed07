// NetcdfLayout: files read back as the same model, with Tailrace and with the library's tools,
// through every change. Files extended by the library's tools are covered, too.

#include <gtest/gtest.h>

#include <hdf5_hl.h>

#include "hdf5/hdf5_links.hpp"
#include "netcdf_support.hpp"

namespace tailrace::test {
namespace {

/// True if the netCDF-4 library reads the complete file (77: its tools are not installed).
void expect_readable(const std::string& path) {
  const int status = run_tool({"ncdump", path});
  if (status != -1 && status != 127) {
    EXPECT_EQ(status, 0) << path;
  }
}

/// Shows the first difference of two models' texts, with the names around it.
void expect_same(const NetcdfModel& a, const NetcdfModel& b) {
  EXPECT_TRUE(a == b) << model_text(a) << "\n" << model_text(b);
}

NetcdfModel rich_model() {
  NetcdfModel model;
  model.groups[0].attributes = {
      text_attribute("title", "every kind"),
      number_attribute<std::int32_t>("one", ModelType::i32, {7}),
      number_attribute<double>("two", ModelType::f64, {1, 2.5}),
      texts_attribute("texts", {"a", "", "längeres"}),
      text_attribute("nothing", ""),
      text_attribute("wide", "Größe"),
      number_attribute<float>("none", ModelType::f32, {}),
  };
  model.groups.push_back({"/g", 0, {text_attribute("about", "inner")}});
  model.groups.push_back({"/g/h", 1, {}});
  model.dimensions = {{"time", 0, 2, true, false},
                      {"y", 0, 3, false, false},
                      {"x", 0, 4, false, false},
                      {"station", 0, 0, true, false},
                      {"z", 1, 5, false, false}};
  model.variables = {variable_of("x", ModelType::f32, {2}),
                     variable_of("temp", ModelType::f32, {0, 1, 2}),
                     variable_of("time", ModelType::f64, {0, 2}),
                     variable_of("y", ModelType::i32, {}),
                     variable_of("name", ModelType::text_char, {3, 2}),
                     variable_of("label", ModelType::text, {2}),
                     variable_of("empty", ModelType::i16, {1}),
                     variable_of("cov", ModelType::u64, {1, 1}),
                     variable_of("w", ModelType::i64, {4, 0}, 1),
                     variable_of("x", ModelType::u8, {2}, 1),
                     variable_of("deep", ModelType::u16, {4, 1, 3}, 2)};
  model.variables[1].attributes = {number_attribute<float>("_FillValue", ModelType::f32, {-9}),
                                   text_attribute("units", "K")};
  model.variables[6].no_fill = true;
  return model;
}

TEST(NetcdfLayout, RichModelReadsBackAsItself) {
  const TestFolder folder;
  LaidOutFile out(folder / "a.nc", true);
  ASSERT_DONE(out.status());
  ASSERT_DONE(out.layout().change(rich_model()));
  EXPECT_EQ(out.layout().dataset_path(3), "/_nc4_non_coord_y");
  EXPECT_FALSE(out.layout().has_dataset(3));
  ASSERT_DONE(out.create_all());
  ASSERT_DONE(out.prepare_and_commit());
  expect_same(model_of(out.path()), out.layout().model());
  ASSERT_DONE(out.file().close());
  expect_readable(out.path());
  const NetcdfModel read = model_of(out.path());
  EXPECT_TRUE(read.netcdf4);
  EXPECT_EQ(read.groups, rich_model().groups);
  EXPECT_EQ(read.dimensions, rich_model().dimensions);
}

TEST(NetcdfLayout, ManyVariablesOfAFirstModelGoIntoAHeap) {
  const TestFolder folder;
  LaidOutFile out(folder / "a.nc", true);
  ASSERT_DONE(out.status());
  NetcdfModel model;
  model.dimensions = {{"x", 0, 4, false, false}};
  for (int v = 0; v < 600; ++v) {
    model.variables.push_back(variable_of("v" + std::to_string(v), ModelType::f32, {0}));
  }
  ASSERT_DONE(out.layout().change(model));
  ASSERT_DONE(out.create_all());
  ASSERT_DONE(out.prepare_and_commit());
  expect_same(model_of(out.path()), out.layout().model());
  ASSERT_DONE(out.file().close());
  expect_readable(out.path());
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(out.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  H5G_info_t root{};
  ASSERT_GE(H5Gget_info_by_name(file.get(), "/", &root, H5P_DEFAULT), 0);
  EXPECT_EQ(root.storage_type, H5G_STORAGE_TYPE_DENSE);
  EXPECT_GT(H5Aexists_by_name(file.get(), "/", "_NCProperties", H5P_DEFAULT), 0);
}

/// Number of users that scale "/x" lists, and number of dimensions of the named datasets that stock
/// HDF5 finds attached to it. HDF5 reads the complete list for each.
std::pair<hssize_t, int> count_attached(const std::string& path,
                                        const std::vector<std::string>& names) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id scale(H5Dopen2(file.get(), "/x", H5P_DEFAULT));
  const Hdf5Id list(H5Aopen(scale.get(), "REFERENCE_LIST", H5P_DEFAULT));
  const Hdf5Id space(H5Aget_space(list.get()));
  int n_attached = 0;
  for (const std::string& name : names) {
    const Hdf5Id dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
    for (const unsigned d : {0U, 1U}) {
      const bool is_attached = H5DSget_num_scales(dataset.get(), d) == 1 &&
                               H5DSis_attached(dataset.get(), scale.get(), d) > 0;
      n_attached += is_attached ? 1 : 0;
    }
  }
  return {H5Sget_simple_extent_npoints(space.get()), n_attached};
}

TEST(NetcdfLayout, ScalesAreAttachedToManyAsHdf5Does) {
  const TestFolder folder;
  NetcdfModel model;
  model.dimensions = {{"x", 0, 4, false, false}};
  std::vector<std::string> some{"v0", "v7", "v1300", "v2499"};
  // So many that the scale's list exceeds the size limit of an object header (64 KiB).
  for (int v = 0; v < 2500; ++v) {
    model.variables.push_back(variable_of("v" + std::to_string(v), ModelType::f32, {0, 0}));
  }
  {
    LaidOutFile out(folder / "a.nc", true);
    ASSERT_DONE(out.status());
    ASSERT_DONE(out.layout().change(model));
    ASSERT_DONE(out.create_all());
    ASSERT_DONE(out.prepare_and_commit());
    ASSERT_DONE(out.file().close());
  }
  EXPECT_EQ(count_attached(folder / "a.nc", some), std::pair(hssize_t{5000}, 8));
  {
    // One more is appended to the existing list.
    LaidOutFile out(folder / "a.nc", false);
    ASSERT_DONE(out.status());
    some.emplace_back("w");
    model.variables.push_back(variable_of("w", ModelType::f64, {0, 0}));
    ASSERT_DONE(out.layout().change(model));
    ASSERT_DONE(out.create_all());
    ASSERT_DONE(out.prepare_and_commit());
    ASSERT_DONE(out.file().close());
  }
  EXPECT_EQ(count_attached(folder / "a.nc", some), std::pair(hssize_t{5002}, 10));
  expect_readable(folder / "a.nc");
  // HDF5's own functions detach the scales that Tailrace has attached.
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fopen((folder / "a.nc").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Hdf5Id scale(H5Dopen2(file.get(), "/x", H5P_DEFAULT));
    const Hdf5Id dataset(H5Dopen2(file.get(), "/v7", H5P_DEFAULT));
    EXPECT_GE(H5DSdetach_scale(dataset.get(), scale.get(), 1), 0);
  }
  EXPECT_EQ(count_attached(folder / "a.nc", some), std::pair(hssize_t{5001}, 9));
}

TEST(ScaleAttacher, AddsToWhatADatasetHasAndRefusesScales) {
  const TestFolder folder;
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t extents[2] = {3, 3};
  const Hdf5Id line(H5Screate_simple(1, extents, nullptr));
  const Hdf5Id plane(H5Screate_simple(2, extents, nullptr));
  const auto make = [&](const char* name, const Hdf5Id& space) {
    return Hdf5Id(H5Dcreate2(file.get(), name, H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                             H5P_DEFAULT, H5P_DEFAULT));
  };
  const Hdf5Id a = make("a", line);
  const Hdf5Id b = make("b", line);
  const Hdf5Id u = make("u", plane);
  const Hdf5Id w = make("w", plane);
  ASSERT_GE(H5DSattach_scale(u.get(), a.get(), 0), 0);
  ScaleAttacher attacher(file.get());
  // w's entry in a's list is not written yet when HDF5 must add u to it.
  ASSERT_DONE(attacher.attach(w.get(), "/w", {{"/a", "/b"}, {}}));
  ASSERT_DONE(attacher.attach(u.get(), "/u", {{"/a", "/b"}, {"/a"}}));
  // A dataset that has scales cannot be a scale; the other scale is attached nevertheless.
  const Hdf5Id v = make("v", plane);
  EXPECT_EQ(attacher.attach(v.get(), "/v", {{"/u"}, {"/b"}}).code(), Code::internal);
  EXPECT_EQ(attacher.attach(b.get(), "/b", {{"/a"}}).code(), Code::invalid_argument);
  ASSERT_DONE(attacher.finish());
  EXPECT_GT(H5DSis_attached(u.get(), a.get(), 0), 0);
  EXPECT_GT(H5DSis_attached(u.get(), b.get(), 0), 0);
  EXPECT_GT(H5DSis_attached(u.get(), a.get(), 1), 0);
  EXPECT_GT(H5DSis_attached(w.get(), a.get(), 0), 0);
  EXPECT_GT(H5DSis_attached(w.get(), b.get(), 0), 0);
  EXPECT_GT(H5DSis_attached(v.get(), b.get(), 1), 0);
  EXPECT_EQ(H5DSget_num_scales(w.get(), 1), 0);
  EXPECT_EQ(H5DSget_num_scales(v.get(), 0), 0);
}

TEST(NetcdfLayout, AppearsInSteps) {
  // First dimensions, then a commit, then their variables, one of them the coordinate (invariant
  // 2).
  const TestFolder folder;
  LaidOutFile out(folder / "a.nc", true);
  ASSERT_DONE(out.status());
  NetcdfModel model;
  model.dimensions = {{"t", 0, 0, true, false}, {"x", 0, 4, false, false}};
  ASSERT_DONE(out.layout().change(model));
  ASSERT_DONE(out.prepare_and_commit());
  expect_same(model_of(out.path()), out.layout().model());
  model.variables = {variable_of("v", ModelType::f64, {0, 1})};
  ASSERT_DONE(out.layout().change(model));
  ASSERT_DONE(out.create_all());
  ASSERT_DONE(out.prepare_and_commit());
  model.variables.push_back(variable_of("x", ModelType::f32, {1}));
  model.variables.push_back(variable_of("t", ModelType::i64, {0}));
  model.dimensions[0].length = 6;
  ASSERT_DONE(out.layout().change(model));
  ASSERT_DONE(out.create_all());
  ASSERT_DONE(out.prepare_and_commit());
  expect_same(model_of(out.path()), out.layout().model());
  EXPECT_EQ(*out.file().dataset_shape("/v"), (Shape{6, 4}));
  ASSERT_DONE(out.file().close());
  expect_readable(out.path());
}

/// A named change of a model, applied to a file that has both dimensions and variables.
struct Change {
  const char* name;
  void (*apply)(NetcdfModel& model);
};

class ChangedModel : public ::testing::TestWithParam<Change> {};

TEST_P(ChangedModel, ReadsBackFromNewAndOpenedFiles) {
  const TestFolder folder;
  NetcdfModel model;
  model.dimensions = {
      {"t", 0, 3, true, false}, {"x", 0, 4, false, false}, {"y", 0, 2, false, false}};
  model.variables = {
      variable_of("x", ModelType::f32, {1}), variable_of("v", ModelType::f64, {0, 1}),
      variable_of("t", ModelType::i64, {0, 2}), variable_of("w", ModelType::i16, {2, 1})};
  model.variables[1].attributes = {text_attribute("a", "1"), text_attribute("b", "2"),
                                   number_attribute<double>("c", ModelType::f64, {3})};
  model.groups[0].attributes = {text_attribute("title", "before")};
  for (const bool reopened : {false, true}) {
    const std::string path = folder / (reopened ? "b.nc" : "a.nc");
    auto out = std::make_unique<LaidOutFile>(path, true);
    ASSERT_DONE(out->status());
    ASSERT_DONE(out->layout().change(model));
    ASSERT_DONE(out->create_all());
    ASSERT_DONE(out->prepare_and_commit());
    if (reopened) {
      ASSERT_DONE(out->file().close());
      out = std::make_unique<LaidOutFile>(path, false);
      ASSERT_DONE(out->status());
    }
    NetcdfModel next = out->layout().model();
    GetParam().apply(next);
    ASSERT_DONE(out->layout().change(next));
    ASSERT_DONE(out->create_all());
    ASSERT_DONE(out->prepare_and_commit());
    expect_same(model_of(path), out->layout().model());
    for (std::size_t v = 0; v < next.variables.size(); ++v) {
      EXPECT_EQ(next.variables[v].name, out->layout().model().variables[v].name);
      EXPECT_EQ(next.variables[v].attributes, out->layout().model().variables[v].attributes);
    }
    EXPECT_EQ(next.dimensions, out->layout().model().dimensions);
    ASSERT_DONE(out->file().close());
    expect_readable(path);
  }
}

const Change kChanges[] = {
    {"RenameVariable", [](NetcdfModel& m) { m.variables[1].name = "other"; }},
    {"CoordinateLosesItsDimension", [](NetcdfModel& m) { m.variables[0].name = "plain"; }},
    {"DimensionLosesItsCoordinate", [](NetcdfModel& m) { m.dimensions[1].name = "lon"; }},
    {"BothRenamed", [](NetcdfModel& m) { m.dimensions[1].name = m.variables[0].name = "lon"; }},
    {"VariableBecomesCoordinate", [](NetcdfModel& m) { m.variables[3].name = "y"; }},
    {"DimensionTakesANonCoordinatesName", [](NetcdfModel& m) { m.dimensions[2].name = "v"; }},
    {"WideCoordinateLosesItsDimension", [](NetcdfModel& m) { m.variables[2].name = "time"; }},
    {"NamesExchanged", [](NetcdfModel& m) { std::swap(m.variables[0].name, m.variables[1].name); }},
    {"DimensionsExchanged",
     [](NetcdfModel& m) { std::swap(m.dimensions[1].name, m.dimensions[2].name); }},
    {"NewDimensionTakesAVariablesName",
     [](NetcdfModel& m) {
       m.dimensions.push_back({"w", 0, 9, false, false});
     }},
    {"NewCoordinate",
     [](NetcdfModel& m) { m.variables.push_back(variable_of("y", ModelType::i32, {2})); }},
    {"NewNonCoordinate",
     [](NetcdfModel& m) { m.variables.push_back(variable_of("y", ModelType::text, {0})); }},
    {"NewGroup",
     [](NetcdfModel& m) {
       m.groups.push_back({"/g", 0, {text_attribute("k", "v")}});
       m.dimensions.push_back({"x", 1, 7, false, false});
       m.variables.push_back(variable_of("x", ModelType::i8, {3, 1}, 1));
     }},
    {"Grown", [](NetcdfModel& m) { m.dimensions[0].length = 11; }},
    {"AttributeAdded",
     [](NetcdfModel& m) { m.variables[1].attributes.push_back(texts_attribute("d", {"x"})); }},
    {"AttributeDeleted",
     [](NetcdfModel& m) { m.variables[1].attributes.erase(m.variables[1].attributes.begin()); }},
    {"AttributeLonger",
     [](NetcdfModel& m) { m.variables[1].attributes[1] = text_attribute("b", "much longer"); }},
    {"AttributeRenamed", [](NetcdfModel& m) { m.variables[1].attributes[0].name = "z"; }},
    {"AttributesExchanged",
     [](NetcdfModel& m) {
       std::swap(m.variables[1].attributes[0].name, m.variables[1].attributes[1].name);
     }},
    {"GlobalChanged",
     [](NetcdfModel& m) { m.groups[0].attributes = {text_attribute("title", "behind")}; }},
};

INSTANTIATE_TEST_SUITE_P(NetcdfLayout, ChangedModel, ::testing::ValuesIn(kChanges),
                         [](const auto& tested) { return tested.param.name; });

TEST(NetcdfLayout, RefusesWhatCannotChange) {
  const TestFolder folder;
  LaidOutFile out(folder / "a.nc", true);
  ASSERT_DONE(out.status());
  ASSERT_DONE(out.layout().change(rich_model()));
  ASSERT_DONE(out.create_all());
  const auto refused = [&](auto apply) {
    NetcdfModel next = out.layout().model();
    apply(next);
    return out.layout().change(next).code() == Code::invalid_argument;
  };
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.dimensions[1].length = 9; }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.dimensions[0].length = 1; }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.dimensions.pop_back(); }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.variables.pop_back(); }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.variables[0].type = ModelType::f64; }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.groups[1].path = "/other"; }));
  EXPECT_TRUE(refused([](NetcdfModel& m) {
    m.variables[1].attributes[0] = number_attribute<float>("_FillValue", ModelType::f32, {1});
  }));
  EXPECT_TRUE(refused([](NetcdfModel& m) { m.variables[0].name = "bad/name"; }));
  EXPECT_EQ(out.layout().create_variable(0, {}).code(), Code::already_exists);
  ModelStorage storage;
  storage.chunk_shape = {2, 2};
  NetcdfModel next = out.layout().model();
  next.variables.push_back(variable_of("bad", ModelType::f32, {1}));
  ASSERT_DONE(out.layout().change(next));
  EXPECT_EQ(out.layout().create_variable(next.variables.size() - 1, storage).code(),
            Code::invalid_argument);
}

TEST(NetcdfLayout, GrowsWhatHasFiltersThatHdf5DoesNotKnow) {
  // A program's own codec: HDF5 finds no plug-in for its number, neither now nor at the next
  // opening.
  const TestFolder folder;
  NetcdfModel model;
  model.dimensions = {{"t", 0, 1, true, false}, {"x", 0, 8, false, false}};
  model.variables = {variable_of("v", ModelType::f64, {0, 1})};
  ModelStorage storage;
  storage.chunk_shape = {1, 8};
  storage.filters.resize(1);
  storage.filters[0].filter_id = 51234;
  storage.filters[0].name = "own";
  storage.filters[0].final_client_data = {3, 1, 4};
  {
    LaidOutFile out(folder / "a.nc", true);
    ASSERT_DONE(out.status());
    ASSERT_DONE(out.layout().change(model));
    ASSERT_DONE(out.layout().create_variable(0, storage));
    model.dimensions[0].length = 2;
    ASSERT_DONE(out.layout().change(model));
    ASSERT_DONE(out.prepare_and_commit());
    ASSERT_DONE(out.file().close());
  }
  LaidOutFile again(folder / "a.nc", false);
  ASSERT_DONE(again.status());
  NetcdfModel next = again.layout().model();
  next.dimensions[0].length = 5;
  ASSERT_DONE(again.layout().change(next));
  ASSERT_DONE(again.prepare_and_commit());
  EXPECT_EQ(*again.file().dataset_shape("/v"), (Shape{5, 8}));
  EXPECT_EQ(model_of(again.path()), next);
}

TEST(NetcdfLayout, LibraryAppendsAndWeReadIt) {
  const TestFolder folder;
  LaidOutFile out(folder / "a.nc", true);
  ASSERT_DONE(out.layout().change(rich_model()));
  ASSERT_DONE(out.create_all());
  ASSERT_DONE(out.prepare_and_commit());
  ASSERT_DONE(out.file().close());
  LaidOutFile more(folder / "b.nc", true);
  NetcdfModel model;
  model.dimensions = {{"x", 0, 4, false, false}, {"q", 0, 6, false, false}};
  model.variables = {variable_of("added", ModelType::f64, {1, 0})};
  ASSERT_DONE(more.layout().change(model));
  ASSERT_DONE(more.create_all());
  ASSERT_DONE(more.prepare_and_commit());
  ASSERT_DONE(more.file().close());
  const int status = run_tool({"ncks", "-h", "-A", "-v", "added", more.path(), out.path()});
  if (status == -1 || status == 127) GTEST_SKIP() << "ncks is not installed";
  ASSERT_EQ(status, 0);
  const NetcdfModel read = model_of(out.path());
  const auto added = read.find_variable(0, "added");
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(read.shape_of(read.variables[*added]), (Shape{6, 4}));
  EXPECT_EQ(read.variables[*added].dimensions[1], *read.find_dimension(0, "x"));
  // A second time, with Tailrace.
  LaidOutFile again(out.path(), false);
  ASSERT_DONE(again.status());
  NetcdfModel next = again.layout().model();
  next.variables.push_back(variable_of("q", ModelType::i32, {*next.find_dimension(0, "q")}));
  ASSERT_DONE(again.layout().change(next));
  ASSERT_DONE(again.create_all());
  ASSERT_DONE(again.prepare_and_commit());
  ASSERT_DONE(again.file().close());
  expect_readable(out.path());
  EXPECT_EQ(model_of(out.path()).variables.size(), next.variables.size());
}

}  // namespace
}  // namespace tailrace::test
