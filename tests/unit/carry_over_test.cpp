// Parts of a file that repack carries over in addition to the fields: groups, other objects, links,
// attributes, scales.

#include <gtest/gtest.h>
#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "netcdf_classic_builder.hpp"

namespace tailrace::test {
namespace {

Hdf5Id space_of(const std::vector<hsize_t>& extents) {
  return Hdf5Id(extents.empty()
                    ? H5Screate(H5S_SCALAR)
                    : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

Hdf5Id make_dataset(hid_t file, const char* path, hid_t type, const std::vector<hsize_t>& extents,
                    const void* values) {
  const Hdf5Id space = space_of(extents);
  Hdf5Id dataset(H5Dcreate2(file, path, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_GE(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0) << path;
  return dataset;
}

void make_attribute(hid_t object, const char* name, hid_t type, const std::vector<hsize_t>& extents,
                    const void* values) {
  const Hdf5Id space = space_of(extents);
  const Hdf5Id attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_GE(H5Awrite(attribute.get(), type, values), 0) << name;
}

/// The raw bytes of an attribute of fixed size, as stored in the file.
std::string attribute_bytes(hid_t object, const char* name) {
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  std::string bytes(H5Aget_storage_size(attribute.get()), '\0');
  EXPECT_GE(H5Aread(attribute.get(), type.get(), bytes.data()), 0) << name;
  return bytes;
}

void expect_same_attribute(hid_t from, hid_t to, const char* name) {
  ASSERT_GT(H5Aexists(to, name), 0) << name;
  const Hdf5Id a(H5Aopen(from, name, H5P_DEFAULT));
  const Hdf5Id b(H5Aopen(to, name, H5P_DEFAULT));
  const Hdf5Id type_a(H5Aget_type(a.get()));
  const Hdf5Id type_b(H5Aget_type(b.get()));
  EXPECT_GT(H5Tequal(type_a.get(), type_b.get()), 0) << name;
  const Hdf5Id space_a(H5Aget_space(a.get()));
  const Hdf5Id space_b(H5Aget_space(b.get()));
  EXPECT_GT(H5Sextent_equal(space_a.get(), space_b.get()), 0) << name;
  if (H5Tis_variable_str(type_a.get()) <= 0) {
    EXPECT_EQ(attribute_bytes(from, name), attribute_bytes(to, name)) << name;
  }
}

struct Pair {
  std::int32_t a;
  double b;
};

Hdf5Id pair_type() {
  Hdf5Id type(H5Tcreate(H5T_COMPOUND, sizeof(Pair)));
  H5Tinsert(type.get(), "a", offsetof(Pair, a), H5T_NATIVE_INT32);
  H5Tinsert(type.get(), "b", offsetof(Pair, b), H5T_NATIVE_DOUBLE);
  return type;
}

Hdf5Id variable_text() {
  Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  return type;
}

/// Writes a file with one object of each kind; the root tracks creation order.
void write_rich_input(const std::string& path) {
  const Hdf5Scope scope;
  const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
  const float numbers[4] = {1, 2, 3, 4};
  const Hdf5Id zeta = make_dataset(file.get(), "/zeta", H5T_NATIVE_FLOAT, {2, 2}, numbers);
  const Hdf5Id text = variable_text();
  const char* words[2] = {"first", "a longer second"};
  make_dataset(file.get(), "/words", text.get(), {2}, words);
  const Hdf5Id group(H5Gcreate2(file.get(), "/group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  make_dataset(file.get(), "/group/inner", H5T_IEEE_F64BE, {4},
               big_endian(1.0).append(24, '\0').data());
  const Hdf5Id pairs = pair_type();
  const Pair rows[2] = {{1, 0.5}, {2, 1.5}};
  make_dataset(file.get(), "/pairs", pairs.get(), {2}, rows);
  const Hdf5Id named = pair_type();
  H5Tcommit2(file.get(), "/named", named.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  make_dataset(file.get(), "/of_named", named.get(), {2}, rows);
  make_dataset(file.get(), "/alpha", H5T_NATIVE_FLOAT, {4}, numbers);

  hobj_ref_t targets[3] = {};
  H5Rcreate(&targets[0], file.get(), "/zeta", H5R_OBJECT, -1);
  H5Rcreate(&targets[1], file.get(), "/group", H5R_OBJECT, -1);
  make_dataset(file.get(), "/references", H5T_STD_REF_OBJ, {3}, targets);
  make_attribute(group.get(), "points_to", H5T_STD_REF_OBJ, {}, targets);
  hdset_reg_ref_t region;
  const Hdf5Id part = space_of({2, 2});
  const hsize_t start[2] = {0, 1};
  const hsize_t count[2] = {2, 1};
  H5Sselect_hyperslab(part.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
  H5Rcreate(&region, file.get(), "/zeta", H5R_DATASET_REGION, part.get());
  make_attribute(group.get(), "region", H5T_STD_REF_DSETREG, {}, &region);

  make_attribute(zeta.get(), "units", text.get(), {}, &words[1]);
  make_attribute(zeta.get(), "numbers_be", H5T_IEEE_F32BE, {2, 2}, "0123456789abcdef");
  make_attribute(zeta.get(), "row", named.get(), {}, rows);
  const std::vector<double> many(20000, 0.25);  // 160 kB: too large for an object header
  const Hdf5Id access(H5Fget_access_plist(file.get()));
  H5Fset_libver_bounds(file.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  const Hdf5Id tall(H5Gcreate2(file.get(), "/tall", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  make_attribute(tall.get(), "many", H5T_NATIVE_DOUBLE, {many.size()}, many.data());
  const Hdf5Id null_space(H5Screate(H5S_NULL));
  const Hdf5Id nothing(H5Acreate2(file.get(), "nothing", H5T_NATIVE_INT, null_space.get(),
                                  H5P_DEFAULT, H5P_DEFAULT));
  make_attribute(file.get(), "tailrace_codec", H5T_NATIVE_FLOAT, {4}, numbers);

  H5Lcreate_soft("/group/inner", file.get(), "/soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("there.h5", "/x", file.get(), "/external", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file.get(), "/zeta", file.get(), "/group/same_zeta", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file.get(), "/", file.get(), "/group/root", H5P_DEFAULT, H5P_DEFAULT);
}

class CarryOver : public ::testing::Test {
 protected:
  /// Carries over and opens both files for comparison.
  void run(const std::string& input_path, const ReadOptions& options = {}) {
    std::unique_ptr<InputFile> input = open_or_fail(input_path, {}, options);
    ASSERT_NE(input, nullptr);
    ASSERT_NO_FATAL_FAILURE(carry_over(*input, folder_ / "out.h5", lines_));
    input.reset();
    const Hdf5Scope scope;
    from_ = Hdf5Id(H5Fopen(input_path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    to_ = Hdf5Id(H5Fopen((folder_ / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    ASSERT_TRUE(from_.valid() && to_.valid());
  }

  TestFolder folder_;
  std::vector<std::string> lines_;
  Hdf5Id from_;
  Hdf5Id to_;
};

TEST_F(CarryOver, KeepsObjectsAttributesReferencesAndLinks) {
  write_rich_input(folder_ / "in.h5");
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5"));
  EXPECT_EQ(lines_, std::vector<std::string>());
  const Hdf5Scope scope;

  const Hdf5Id zeta_from(H5Dopen2(from_.get(), "/zeta", H5P_DEFAULT));
  const Hdf5Id zeta_to(H5Dopen2(to_.get(), "/zeta", H5P_DEFAULT));
  for (const char* name : {"units", "numbers_be", "row"}) {
    expect_same_attribute(zeta_from.get(), zeta_to.get(), name);
  }
  const Hdf5Id tall_from(H5Gopen2(from_.get(), "/tall", H5P_DEFAULT));
  const Hdf5Id tall_to(H5Gopen2(to_.get(), "/tall", H5P_DEFAULT));
  expect_same_attribute(tall_from.get(), tall_to.get(), "many");
  expect_same_attribute(from_.get(), to_.get(), "nothing");
  EXPECT_EQ(H5Aexists(to_.get(), "tailrace_codec"), 0);

  // Named types stay shared.
  const Hdf5Id of_named(H5Dopen2(to_.get(), "/of_named", H5P_DEFAULT));
  const Hdf5Id its_type(H5Dget_type(of_named.get()));
  EXPECT_GT(H5Tcommitted(its_type.get()), 0);
  const Hdf5Id row(H5Aopen(zeta_to.get(), "row", H5P_DEFAULT));
  const Hdf5Id row_type(H5Aget_type(row.get()));
  EXPECT_GT(H5Tcommitted(row_type.get()), 0);

  const Hdf5Id second_link(H5Oopen(to_.get(), "/group/same_zeta", H5P_DEFAULT));
  ObjectFacts same;
  ObjectFacts zeta;
  EXPECT_TRUE(get_object_facts(second_link.get(), same) && get_object_facts(zeta_to.get(), zeta));
  EXPECT_EQ(same.key, zeta.key);
  EXPECT_GT(H5Lexists(to_.get(), "/group/root/group", H5P_DEFAULT), 0);
  EXPECT_GT(H5Oexists_by_name(to_.get(), "/soft", H5P_DEFAULT), 0);
  char target[32] = {};
  H5Lget_val(to_.get(), "/soft", target, sizeof(target), H5P_DEFAULT);
  EXPECT_STREQ(target, "/group/inner");
  H5L_info_t link;
  EXPECT_GE(H5Lget_info(to_.get(), "/external", &link, H5P_DEFAULT), 0);
  EXPECT_EQ(link.type, H5L_TYPE_EXTERNAL);
}

TEST_F(CarryOver, ResolvesReferencesAnew) {
  write_rich_input(folder_ / "in.h5");
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5"));
  const Hdf5Scope scope;
  hobj_ref_t targets[3] = {};
  const Hdf5Id references(H5Dopen2(to_.get(), "/references", H5P_DEFAULT));
  H5Dread(references.get(), H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets);
  const auto name_of = [&](H5R_type_t kind, const void* reference) {
    char name[64] = {};
    H5Rget_name(to_.get(), kind, reference, name, sizeof(name));
    return std::string(name);
  };
  const std::string first = name_of(H5R_OBJECT, &targets[0]);
  EXPECT_TRUE(first == "/zeta" || first == "/group/same_zeta") << first;
  EXPECT_EQ(name_of(H5R_OBJECT, &targets[1]), "/group");
  EXPECT_EQ(targets[2], 0U);
  const Hdf5Id group(H5Gopen2(to_.get(), "/group", H5P_DEFAULT));
  const std::string region = attribute_bytes(group.get(), "region");
  const Hdf5Id part(H5Rget_region(to_.get(), H5R_DATASET_REGION, region.data()));
  EXPECT_EQ(H5Sget_select_npoints(part.get()), 2);
  EXPECT_GT(H5Aexists(group.get(), "points_to"), 0);
}

TEST_F(CarryOver, KeepsTheOrderOfLinks) {
  write_rich_input(folder_ / "in.h5");
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5"));
  const Hdf5Scope scope;
  const auto names = [](hid_t file) {
    std::vector<std::string> found;
    H5G_info_t info;
    H5Gget_info(file, &info);
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      char name[64] = {};
      H5Lget_name_by_idx(file, "/", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, name, sizeof(name),
                         H5P_DEFAULT);
      found.emplace_back(name);
    }
    return found;
  };
  EXPECT_EQ(names(to_.get()), names(from_.get()));
}

TEST_F(CarryOver, StockToolsFindNoDifference) {
  write_rich_input(folder_ / "in.h5");
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5"));
  {
    const Hdf5Scope scope;
    from_.reset();
    to_.reset();
  }
  if (run_tool({"h5diff", "--version"}) == -1) GTEST_SKIP() << "h5diff is not installed";
  // Without the root group, which has a Tailrace attribute that repack omits.
  for (const char* path :
       {"/zeta", "/words", "/group/inner", "/pairs", "/of_named", "/references", "/tall"}) {
    EXPECT_EQ(run_tool({"h5diff", folder_ / "in.h5", folder_ / "out.h5", path}), 0) << path;
  }
  EXPECT_EQ(run_tool({"h5dump", folder_ / "out.h5"}), 0);
}

TEST_F(CarryOver, FetchesValuesThatLieInOtherFiles) {
  {
    const Hdf5Scope scope;
    const Hdf5Id file(
        H5Fcreate((folder_ / "in.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(creation.get(), (folder_ / "raw.bin").c_str(), 0, 2 * sizeof(Pair));
    const Hdf5Id type = pair_type();
    const Hdf5Id space = space_of({2});
    const Hdf5Id dataset(H5Dcreate2(file.get(), "/pairs", type.get(), space.get(), H5P_DEFAULT,
                                    creation.get(), H5P_DEFAULT));
    const Pair rows[2] = {{1, 0.5}, {2, 1.5}};
    H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows);
  }
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5", with_other_files()));
  std::remove((folder_ / "raw.bin").c_str());
  const Hdf5Scope scope;
  const Hdf5Id dataset(H5Dopen2(to_.get(), "/pairs", H5P_DEFAULT));
  const Hdf5Id type = pair_type();
  Pair rows[2] = {};
  EXPECT_GE(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows), 0);
  EXPECT_EQ(rows[1].a, 2);
  EXPECT_EQ(rows[1].b, 1.5);
}

TEST_F(CarryOver, AttachesDimensionScales) {
  {
    const Hdf5Scope scope;
    const Hdf5Id file(
        H5Fcreate((folder_ / "in.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const float numbers[4] = {1, 2, 3, 4};
    const Hdf5Id x = make_dataset(file.get(), "/x", H5T_NATIVE_FLOAT, {2}, numbers);
    const Hdf5Id second = make_dataset(file.get(), "/second", H5T_NATIVE_FLOAT, {2}, numbers);
    H5DSset_scale(x.get(), "the x axis");
    const hsize_t extents[2] = {2, 2};
    const hsize_t limits[2] = {2, 9};
    const Hdf5Id space(H5Screate_simple(2, extents, limits));
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation.get(), 2, extents);
    const Hdf5Id field(H5Dcreate2(file.get(), "/field", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                  creation.get(), H5P_DEFAULT));
    H5Dwrite(field.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5DSattach_scale(field.get(), x.get(), 0);
    H5DSattach_scale(field.get(), x.get(), 1);
    H5DSattach_scale(field.get(), second.get(), 1);
    H5DSset_label(field.get(), 1, "label");
  }
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.h5"));
  EXPECT_TRUE(lines_.empty());
  const Hdf5Scope scope;
  const Hdf5Id field(H5Dopen2(to_.get(), "/field", H5P_DEFAULT));
  const Hdf5Id x(H5Dopen2(to_.get(), "/x", H5P_DEFAULT));
  const Hdf5Id second(H5Dopen2(to_.get(), "/second", H5P_DEFAULT));
  EXPECT_GT(H5DSis_attached(field.get(), x.get(), 0), 0);
  EXPECT_GT(H5DSis_attached(field.get(), x.get(), 1), 0);
  EXPECT_GT(H5DSis_attached(field.get(), second.get(), 1), 0);
  char text[32] = {};
  H5DSget_label(field.get(), 1, text, sizeof(text));
  EXPECT_STREQ(text, "label");
  H5DSget_scale_name(x.get(), text, sizeof(text));
  EXPECT_STREQ(text, "the x axis");
}

/// ncdump's text without the first line, which contains the file's name.
std::string dumped(const std::string& path) {
  const std::string text = tool_output("ncdump " + path);
  return text.substr(std::min(text.size(), text.find('\n')));
}

TEST_F(CarryOver, NcdumpShowsTheSameNetcdf4Model) {
  write_file(folder_ / "in.cdl",
             "netcdf in {\ntypes:\n byte enum flag_t {NO = 0, YES = 1} ;\n"
             " compound pair_t { int a ; double b ; } ;\n int(*) list_t ;\n"
             "dimensions:\n z = 2 ;\n time = UNLIMITED ;\n a = 3 ;\n unused = 7 ;\n"
             "variables:\n float v(time, a) ;\n v:_FillValue = -1.f ;\n v:units = \"K\" ;\n"
             " string v:names = \"one\", \"two\" ;\n pair_t v:pair = {1, 2.5} ;\n"
             " char word(a) ;\n word:long_name = \"a word\" ;\n double time(time) ;\n"
             " string label(a) ;\n flag_t flag(a) ;\n list_t lists(z) ;\n int a(a) ;\n"
             " short station(z, a) ;\n int scalar ;\n :title = \"all kinds\" ;\n"
             "data:\n v = 1, 2, _, 4, 5, 6 ;\n word = \"abc\" ;\n time = 10, 20 ;\n"
             " label = \"x\", \"yy\", \"\" ;\n flag = YES, NO, YES ;\n lists = {1, 2}, {} ;\n"
             " a = 7, 8, 9 ;\n station = 1, 2, 3, 4, 5, 6 ;\n scalar = 5 ;\n"
             "group: inner {\n dimensions:\n b = 2 ;\n variables:\n float w(b, a) ;\n"
             " w:note = \"uses a dimension from above\" ;\n :level = 1 ;\n"
             " data:\n w = 1, 2, 3, 4, 5, 6 ;\n}\n}\n");
  tool_output("ncgen -k nc4 -o " + (folder_ / "in.nc") + " " + (folder_ / "in.cdl"));
  if (read_file(folder_ / "in.nc").empty()) GTEST_SKIP() << "ncgen is not installed";
  ASSERT_NO_FATAL_FAILURE(run(folder_ / "in.nc"));
  EXPECT_EQ(lines_, std::vector<std::string>());
  EXPECT_EQ(dumped(folder_ / "out.h5"), dumped(folder_ / "in.nc"));
  EXPECT_NE(dumped(folder_ / "out.h5"), "");
}

TEST_F(CarryOver, NcdumpShowsTheSameClassicModel) {
  // A dimension without a variable, and a multi-dimensional coordinate variable. A variable with
  // the name of a dimension that it does not have, and text in fixed and record variables.
  write_file(folder_ / "in.cdl",
             "netcdf in {\ndimensions:\n t = UNLIMITED ;\n x = 3 ;\n length = 5 ;\n odd = 2 ;\n"
             "variables:\n char name(x, length) ;\n float v(t, x) ;\n v:_FillValue = -9.f ;\n"
             " v:scales = 1s, 2s ;\n v:nothing = \"\" ;\n double t(t) ;\n t:units = \"days\" ;\n"
             " char x(x, length) ;\n char note(t, length) ;\n int odd ;\n byte last(odd) ;\n"
             " :title = \"classic\" ;\n"
             "data:\n name = \"ab\", \"cde\", \"fghij\" ;\n v = 1, 2, _, 4, 5, 6 ;\n t = 1, 2 ;\n"
             " x = \"one\", \"two\", \"three\" ;\n note = \"n1\", \"n2\" ;\n odd = 4 ;\n"
             " last = 1, 2 ;\n}\n");
  for (const char* kind : {"classic", "64-bit-offset", "cdf5"}) {
    tool_output("ncgen -k " + std::string(kind) + " -o " + (folder_ / "in.nc") + " " +
                (folder_ / "in.cdl"));
    if (read_file(folder_ / "in.nc").empty()) GTEST_SKIP() << "ncgen is not installed";
    const std::unique_ptr<InputFile> input = open_or_fail(folder_ / "in.nc");
    ASSERT_NE(input, nullptr);
    ASSERT_NO_FATAL_FAILURE(carry_over(*input, folder_ / "out.h5", lines_));
    EXPECT_EQ(lines_, std::vector<std::string>());
    EXPECT_EQ(dumped(folder_ / "out.h5"), dumped(folder_ / "in.nc")) << kind;
    EXPECT_NE(dumped(folder_ / "out.h5"), "") << kind;
  }
}

TEST_F(CarryOver, ClassicAttributesWithReservedNamesAreReported) {
  ClassicFile file(1);
  file.dimensions = {{"x", 1}};
  file.variables = {{"v", {0}, {file.text_attribute("CLASS", "mine")}, 5, 4, big_endian(1.0F)}};
  write_file(folder_ / "in.nc", file.build());
  const std::unique_ptr<InputFile> input = open_or_fail(folder_ / "in.nc");
  ASSERT_NE(input, nullptr);
  ASSERT_NO_FATAL_FAILURE(carry_over(*input, folder_ / "out.h5", lines_));
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("CLASS"), std::string::npos);
}

}  // namespace
}  // namespace tailrace::test
