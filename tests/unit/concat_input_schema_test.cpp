// Inputs of a concatenation: types, fill values, links, foreign storage, and keys.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include "concat_input_files.hpp"
#include "container_support.hpp"
#include "describe/concat_input.hpp"

namespace tailrace {
namespace {

using test::Format;
using test::index_of;
using test::Made;
using test::make_dataset;
using test::make_file;
using test::make_numbers;
using test::opened;
using test::TestFolder;
using test::text_of;
using test::whole;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> paths_of(const ConcatInput& input) {
  std::vector<std::string> paths;
  for (const StoredDataset& dataset : input.datasets()) paths.push_back(dataset.path);
  return paths;
}

/// A type that HDF5 closes, and its description in the schema.
struct TypeCase {
  const char* name;
  std::function<hid_t()> make;
  const char* text;
  bool by_value;
};

hid_t copied(hid_t type) { return H5Tcopy(type); }

hid_t string_type(std::size_t n_bytes) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, n_bytes);
  return type;
}

hid_t compound_of(hid_t member) {
  const hid_t type = H5Tcreate(H5T_COMPOUND, 4 + H5Tget_size(member));
  H5Tinsert(type, "id", 0, H5T_STD_U32LE);
  H5Tinsert(type, "x", 4, member);
  H5Tclose(member);
  return type;
}

hid_t array_of(hid_t element) {
  const hsize_t extents[] = {3, 2};
  const hid_t type = H5Tarray_create2(element, 2, extents);
  H5Tclose(element);
  return type;
}

hid_t enum_type() {
  const hid_t type = H5Tenum_create(H5T_STD_I8LE);
  const std::int8_t values[] = {0, 1};
  H5Tenum_insert(type, "off", &values[0]);
  H5Tenum_insert(type, "on", &values[1]);
  return type;
}

std::vector<TypeCase> type_cases() {
  return {
      {"a_u2", [] { return copied(H5T_STD_U16LE); }, "u16", true},
      {"b_f8", [] { return copied(H5T_IEEE_F64BE); }, "f64 big-endian", true},
      {"c_i1", [] { return copied(H5T_STD_I8BE); }, "i8", true},
      {"d_fixed", [] { return string_type(16); }, "string of 16 bytes", true},
      {"e_text", [] { return string_type(H5T_VARIABLE); }, "string of variable length", false},
      {"f_compound", [] { return compound_of(copied(H5T_IEEE_F32LE)); },
       "compound of 2 members (id u32, x f32)", true},
      {"g_nested", [] { return compound_of(array_of(string_type(H5T_VARIABLE))); },
       "compound of 2 members (id u32, x array 3x2 of string of variable length)", false},
      {"h_enum", [] { return enum_type(); }, "enum of 2 names over i8", true},
      {"i_array", [] { return array_of(copied(H5T_STD_I64LE)); }, "array 3x2 of i64", true},
      {"j_sequence", [] { return H5Tvlen_create(H5T_NATIVE_FLOAT); }, "sequence of f32", false},
      {"k_reference", [] { return copied(H5T_STD_REF_OBJ); }, "reference", false},
      {"l_opaque", [] { return H5Tcreate(H5T_OPAQUE, 5); }, "opaque of 5 bytes", true},
      {"m_bits", [] { return copied(H5T_STD_B16BE); }, "bitfield of 2 bytes big-endian", true},
  };
}

void fill_with_types(hid_t file) {
  for (const TypeCase& item : type_cases()) {
    const hid_t type = item.make();
    H5Dclose(
        make_dataset(file, item.name, {.shape = {5}, .limits = {0}, .chunk = {4}, .type = type}));
    H5Tclose(type);
  }
}

TEST(ConcatInputSchema, TypesAreKeptExactlyAndPutIntoWords) {
  const TestFolder folder;
  make_file(folder / "types.h5", fill_with_types);
  const std::unique_ptr<ConcatInput> input = opened(folder / "types.h5", whole);
  const std::vector<TypeCase> cases = type_cases();
  ASSERT_EQ(input->datasets().size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const StoredDataset& dataset = input->datasets()[i];
    EXPECT_EQ(dataset.path, std::string("/") + cases[i].name);
    EXPECT_EQ(dataset.type_text, cases[i].text);
    EXPECT_EQ(dataset.by_value, cases[i].by_value);
    const hid_t made = cases[i].make();
    const hid_t decoded = H5Tdecode(dataset.type.data());
    if (cases[i].by_value) {
      EXPECT_EQ(H5Tget_size(made), dataset.element_bytes);
      EXPECT_GT(H5Tequal(made, decoded), 0) << dataset.path;
    }
    EXPECT_EQ(H5Tget_class(made), H5Tget_class(decoded));
    H5Tclose(made);
    H5Tclose(decoded);
  }
}

TEST(ConcatInputSchema, FilesOfOldAndNewFormatsDoNotConflict) {
  const TestFolder folder;
  make_file(folder / "old.h5", fill_with_types, Format::earliest);
  make_file(folder / "new.h5", fill_with_types, Format::latest);
  const std::unique_ptr<ConcatInput> first = opened(folder / "old.h5", whole);
  const std::unique_ptr<ConcatInput> second = opened(folder / "new.h5", whole);
  EXPECT_THAT(schema_conflicts(first->datasets(), second->datasets()), testing::IsEmpty());
}

TEST(ConcatInputSchema, FillValuesAreBytesOfTheFilesType) {
  const TestFolder folder;
  make_file(folder / "fill.h5", [](hid_t file) {
    const hsize_t extents[] = {5};
    const hid_t space = H5Screate_simple(1, extents, nullptr);
    for (const int value : {0, 258}) {
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_fill_value(list, H5T_NATIVE_INT, &value);
      H5Dclose(H5Dcreate2(file, value == 0 ? "zero" : "set", H5T_STD_I32BE, space, H5P_DEFAULT,
                          list, H5P_DEFAULT));
      H5Pclose(list);
    }
    H5Dclose(
        H5Dcreate2(file, "default", H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  const std::unique_ptr<ConcatInput> input = opened(folder / "fill.h5", whole);
  EXPECT_TRUE(input->datasets()[index_of(*input, "/default")].fill_value.empty());
  EXPECT_EQ(input->datasets()[index_of(*input, "/zero")].fill_value, Bytes(4));
  EXPECT_EQ(input->datasets()[index_of(*input, "/set")].fill_value,
            (Bytes{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{2}}));
}

TEST(ConcatInputSchema, ScalarsAndNullDatasetsAreNotAppended) {
  const TestFolder folder;
  make_file(folder / "scalars.h5", [](hid_t file) {
    for (const H5S_class_t kind : {H5S_SCALAR, H5S_NULL}) {
      const hid_t space = H5Screate(kind);
      H5Dclose(H5Dcreate2(file, kind == H5S_NULL ? "null" : "scalar", H5T_NATIVE_DOUBLE, space,
                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      H5Sclose(space);
    }
  });
  const std::unique_ptr<ConcatInput> input = opened(folder / "scalars.h5", whole);
  ASSERT_EQ(input->datasets().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(input->datasets()[i].appended);
    EXPECT_TRUE(input->datasets()[i].shape.empty());
    EXPECT_TRUE(input->chunks(i).empty());
  }
}

TEST(ConcatInputSchema, OrderIsTheFilesAndLinkedDatasetsAreListedOnce) {
  const TestFolder folder;
  make_file(folder / "links.h5", [](hid_t file) {
    const hid_t b = H5Gcreate2(file, "b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    make_numbers(b, "z", {.shape = {2}});
    make_numbers(b, "a", {.shape = {2}});
    H5Lcreate_hard(b, "z", file, "c_again", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", b, "up", H5P_DEFAULT, H5P_DEFAULT);  // A cycle.
    H5Lcreate_soft("/b/z", file, "a_soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", file, "a_dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/x", file, "a_external", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(b);
    const hid_t list = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    const hid_t tracked = H5Gcreate2(file, "d", H5P_DEFAULT, list, H5P_DEFAULT);
    make_numbers(tracked, "z", {.shape = {2}});
    make_numbers(tracked, "a", {.shape = {2}});
    H5Gclose(tracked);
    H5Pclose(list);
    const hid_t type = H5Tcopy(H5T_NATIVE_INT);
    H5Tcommit2(file, "a_type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(type);
  });
  const std::unique_ptr<ConcatInput> input = opened(folder / "links.h5", whole);
  ASSERT_NE(input, nullptr);
  EXPECT_THAT(paths_of(*input), ElementsAre("/b/a", "/b/z", "/d/z", "/d/a"));
}

TEST(ConcatInputSchema, TwoThousandNestedGroupsAreNoRecursion) {
  const TestFolder folder;
  make_file(folder / "deep.h5", [](hid_t file) {
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 2000; ++i) {
      const hid_t inner = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Gclose(group);
      group = inner;
    }
    make_numbers(group, "d", {.shape = {2}});
    H5Gclose(group);
  });
  const std::unique_ptr<ConcatInput> input = opened(folder / "deep.h5", whole);
  ASSERT_EQ(input->datasets().size(), 1U);
  EXPECT_EQ(input->datasets()[0].path.size(), 2001 * 2 + 2U);
}

TEST(ConcatInputSchema, ForeignStorageIsRefused) {
  const TestFolder folder;
  const hsize_t extents[] = {5};
  make_file(folder / "external.h5", [&](hid_t file) {
    const hid_t space = H5Screate_simple(1, extents, nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, "elsewhere.bin", 0, 20);
    H5Dclose(H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
  });
  make_file(
      folder / "virtual.h5",
      [&](hid_t file) {
        const hid_t space = H5Screate_simple(1, extents, nullptr);
        const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_virtual(list, space, "elsewhere.h5", "/d", space);
        H5Dclose(H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
        H5Pclose(list);
        H5Sclose(space);
      },
      Format::latest);
  for (const char* name : {"external.h5", "virtual.h5"}) {
    const Status status = ConcatInput::open(folder / name, whole).status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_THAT(status.message(), HasSubstr(name));
    EXPECT_THAT(status.message(), HasSubstr("\"/d\""));
  }
}

void fill_with_keys(hid_t file) {
  const auto make = [&](const char* name, hid_t type, const Shape& shape, bool chunked) {
    Made made{.shape = shape, .type = type, .deflate = chunked};
    if (chunked) {
      made.chunk = Shape(shape.size(), 1);
      made.chunk[0] = 7;
    }
    make_numbers(file, name, made);
  };
  make("u1", H5T_STD_U8LE, {20}, true);
  make("u4_column", H5T_STD_U32LE, {20, 1}, true);
  make("i2_big", H5T_STD_I16BE, {20}, false);
  make("i8_cube", H5T_STD_I64LE, {20, 1, 1}, true);
  make("u8", H5T_STD_U64BE, {20}, true);
  make("empty", H5T_STD_I32LE, {0, 1}, false);
  make("wide", H5T_STD_I32LE, {10, 2}, false);
  make("real", H5T_IEEE_F32LE, {20}, false);
  const hid_t large = make_dataset(file, "large", {.shape = {1}, .type = H5T_STD_U64LE});
  const std::uint64_t value = std::uint64_t{1} << 63;
  H5Dwrite(large, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
  H5Dclose(large);
}

TEST(ConcatInputSchema, KeysAreReadFromColumnsOfIntegers) {
  const TestFolder folder;
  const std::string path = folder / "keys.h5";
  make_file(path, fill_with_keys);
  std::vector<std::int64_t> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  for (const std::uint64_t image : {whole, std::uint64_t{0}}) {
    const std::unique_ptr<ConcatInput> input = opened(path, image);
    for (const char* name : {"/u1", "/u4_column", "/i2_big", "/i8_cube", "/u8"}) {
      const Result<std::vector<std::int64_t>> keys = input->read_integers(name);
      ASSERT_TRUE(keys.ok()) << text_of(keys.status());
      EXPECT_EQ(*keys, expected) << name;
    }
    EXPECT_TRUE(input->read_integers("/empty")->empty());
    for (const char* name : {"/wide", "/real", "/large"}) {
      const Status status = input->read_integers(name).status();
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_THAT(status.message(), testing::AllOf(HasSubstr(name), HasSubstr("keys.h5")));
    }
    for (const char* name : {"/none", "/none/below"}) {
      EXPECT_EQ(input->read_integers(name).status().code(), Code::not_found);
    }
    input->drop_image();
    EXPECT_EQ(*input->read_integers("/u1"), expected);
    input->drop_schema();
  }
}

TEST(ConcatInputSchema, FirstIntegersSortAListOfFiles) {
  const TestFolder folder;
  const std::string path = folder / "keys.h5";
  make_file(path, [](hid_t file) {
    fill_with_keys(file);
    const hid_t group = H5Gcreate2(file, "spill", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t run = make_dataset(group, "run", {.shape = {3, 1}, .chunk = {2, 1}});
    const std::int32_t values[] = {1198, 1, 2};
    H5Dwrite(run, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(run);
    H5Gclose(group);
  });
  const std::vector<std::string> names = {"/spill/run", "/u1", "spill/run"};
  const Result<std::vector<std::int64_t>> firsts = first_integers(path, names);
  ASSERT_TRUE(firsts.ok()) << text_of(firsts.status());
  EXPECT_THAT(*firsts, ElementsAre(1198, 0, 1198));
  for (const auto& [name, code] :
       std::vector<std::pair<std::string, Code>>{{"/empty", Code::invalid_argument},
                                                 {"/real", Code::invalid_argument},
                                                 {"/spill/none", Code::not_found}}) {
    const Status status = first_integers(path, std::span(&name, 1)).status();
    EXPECT_EQ(status.code(), code) << text_of(status);
    EXPECT_THAT(status.message(), testing::AllOf(HasSubstr(name), HasSubstr("keys.h5")));
  }
  EXPECT_EQ(first_integers(folder / "none.h5", names).status().code(), Code::not_found);
}

}  // namespace
}  // namespace tailrace
