// ConcatOutput: exact types, attributes, links and chunks of a concatenation's output, read with
// stock HDF5 and its tools.

#include <gtest/gtest.h>
#include <hdf5.h>
#include <hdf5_hl.h>

#include <cstring>
#include <span>

#include "concat_output_support.hpp"
#include "hdf5/chunk_index_reader.hpp"

namespace tailrace::test {
namespace {

void make_text(hid_t object, const char* name, const char* text) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), std::strlen(text));
  const Hdf5Id space(H5Screate(H5S_SCALAR));
  const Hdf5Id attribute(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_GE(H5Awrite(attribute.get(), type.get(), text), 0);
}

/// A big-endian compound of {i16 a, 3-byte string b}.
Hdf5Id pair_type() {
  Hdf5Id text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.get(), 3);
  Hdf5Id type(H5Tcreate(H5T_COMPOUND, 6));
  H5Tinsert(type.get(), "a", 0, H5T_STD_I16BE);
  H5Tinsert(type.get(), "b", 3, text.get());
  return type;
}

Hdf5Id enum_type() {
  Hdf5Id type(H5Tenum_create(H5T_STD_U8LE));
  const std::uint8_t values[] = {0, 7};
  H5Tenum_insert(type.get(), "no", &values[0]);
  H5Tenum_insert(type.get(), "yes", &values[1]);
  return type;
}

/// /a/values (i32, scale of itself: "/a/rows"), /a/pairs, /a/colour (named enum), /b/text (variable
/// length), /b/one (scalar), links of every kind, groups in creation order.
void write_first_input(const std::string& path) {
  const Hdf5Scope scope;
  const Hdf5Id creation(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const Hdf5Id b(H5Gcreate2(file.get(), "/b", H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  const Hdf5Id a(H5Gcreate2(file.get(), "/a", H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  make_text(a.get(), "about", "group a");
  const Hdf5Id colour = enum_type();
  ASSERT_GE(H5Tcommit2(file.get(), "/colour", colour.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            0);
  const std::int32_t values[] = {1, 2, 3};
  {
    const Hdf5Id rows = make_dataset(file.get(), "/a/rows", H5T_STD_I32LE, {3}, values);
    H5DSset_scale(rows.get(), "rows");
    const Hdf5Id data = make_dataset(file.get(), "/a/values", H5T_STD_I32LE, {3}, values);
    make_text(data.get(), "unit", "metre");
    H5DSattach_scale(data.get(), rows.get(), 0);
    hobj_ref_t reference = 0;
    H5Rcreate(&reference, file.get(), "/a/rows", H5R_OBJECT, -1);
    const Hdf5Id space(H5Screate(H5S_SCALAR));
    const Hdf5Id attribute(
        H5Acreate2(data.get(), "see", H5T_STD_REF_OBJ, space.get(), H5P_DEFAULT, H5P_DEFAULT));
    H5Awrite(attribute.get(), H5T_STD_REF_OBJ, &reference);
  }
  const Hdf5Id pair = pair_type();
  make_dataset(file.get(), "/a/pairs", pair.get(), {0}, nullptr);
  make_dataset(file.get(), "/a/colours", colour.get(), {0, 2}, nullptr);
  const Hdf5Id text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.get(), H5T_VARIABLE);
  const char* words[] = {"one", "", "a third word"};
  make_dataset(file.get(), "/b/text", text.get(), {3}, words);
  const Hdf5Id scalar(H5Screate(H5S_SCALAR));
  const Hdf5Id one(H5Dcreate2(file.get(), "/b/one", H5T_IEEE_F64BE, scalar.get(), H5P_DEFAULT,
                              H5P_DEFAULT, H5P_DEFAULT));
  const double half = 0.5;
  H5Dwrite(one.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &half);
  make_text(one.get(), "about", "a scalar");
  H5Lcreate_hard(file.get(), "/a/values", file.get(), "/b/again", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/a/pairs", file.get(), "/b/soft", H5P_DEFAULT, H5P_DEFAULT);
}

std::vector<std::int32_t> read_i32(hid_t file, const std::string& path) {
  const Hdf5Id dataset = open_dataset(file, path);
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  std::vector<std::int32_t> values(n < 0 ? 0 : std::size_t(n));
  EXPECT_GE(H5Dread(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
            0);
  return values;
}

std::vector<std::string> read_text(hid_t file, const std::string& path) {
  const Hdf5Id dataset = open_dataset(file, path);
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  std::vector<char*> words(std::size_t(H5Sget_simple_extent_npoints(space.get())));
  EXPECT_GE(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()), 0);
  std::vector<std::string> texts;
  for (const char* word : words) texts.emplace_back(word == nullptr ? "(null)" : word);
  H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, words.data());
  return texts;
}

std::string link_names(hid_t file, const char* group_path) {
  std::string names;
  const Hdf5Id group(H5Gopen2(file, group_path, H5P_DEFAULT));
  H5G_info_t info;
  EXPECT_GE(H5Gget_info(group.get(), &info), 0) << group_path;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[64] = {};
    H5Lget_name_by_idx(group.get(), ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, name, sizeof(name),
                       H5P_DEFAULT);
    names += (names.empty() ? "" : " ") + std::string(name);
  }
  return names;
}

/// Writes the bytes of 4 raw int32 chunks and returns their record.
Hdf5File::ChunkRecord write_i32(Output& out, std::uint64_t chunk_index,
                                const std::vector<std::int32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const Hdf5File::ChunkRecord record{chunk_index, {out.tail.claim(bytes.size()), bytes.size()}, 0};
  EXPECT_TRUE(out.storage.write_at(record.extent.address, bytes).ok());
  return record;
}

void expect_tools_read(const std::string& path) {
  for (const char* tool : {"h5dump", "h5stat", "h5ls"}) {
    const std::string option = std::string(tool) == "h5ls" ? "-r" : "--enable-error-stack";
    const int status = run_tool({tool, option, path});
    EXPECT_TRUE(status == 0 || status == -1) << tool << " exits with " << status;
  }
}

std::unique_ptr<ConcatOutput> begin(Result<std::unique_ptr<ConcatOutput>> made) {
  EXPECT_TRUE(made.ok()) << text_of(made.status());
  return made.ok() ? std::move(*made) : nullptr;
}

TEST(ConcatOutput, TakesOverTypesAttributesScalesAndLinks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  write_first_input(folder / "first.h5");
  Output out(path);
  auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
  const Hdf5Id pair = pair_type();
  const Hdf5Id colour = enum_type();
  const auto first = write_i32(out, 0, {1, 2, 3, 4});
  // Not in the input's order; finish() must correct it.
  ASSERT_DONE(concat->place(chunked_target("/a/colours", colour.get(), {0, 2}, {8, 2}), {}));
  ASSERT_DONE(concat->place(chunked_target("/a/values", H5T_STD_I32LE, {6}, {4}), {&first, 1}));
  ASSERT_DONE(out.file->commit());
  EXPECT_EQ(read_i32(open_file(path).get(), "/a/values"),
            (std::vector<std::int32_t>{1, 2, 3, 4, 0, 0}));
  expect_tools_read(path);
  const auto second = write_i32(out, 1, {5, 6, 0, 0});
  ASSERT_DONE(concat->place(chunked_target("/a/values", H5T_STD_I32LE, {6}, {4}), {&second, 1}));
  ASSERT_DONE(concat->place(chunked_target("/a/rows", H5T_STD_I32LE, {6}, {4}), {&first, 1}));
  ASSERT_DONE(concat->place(chunked_target("/a/pairs", pair.get(), {0}, {8}), {}));
  StoredDataset one;
  one.path = "/b/one";
  ASSERT_DONE(concat->copy_whole(one));
  const auto lines = concat->finish({});
  ASSERT_TRUE(lines.ok());
  for (const std::string& line : *lines) ADD_FAILURE() << line;
  concat.reset();
  ASSERT_DONE(out.file->close());
  expect_tools_read(path);

  const Hdf5Scope scope;
  const Hdf5Id file = open_file(path);
  EXPECT_EQ(read_i32(file.get(), "/b/again"), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(link_names(file.get(), "/a"), "rows values pairs colours");
  const Hdf5Id values = open_dataset(file.get(), "/a/values");
  const Hdf5Id rows = open_dataset(file.get(), "/a/rows");
  EXPECT_GT(H5DSis_attached(values.get(), rows.get(), 0), 0);
  EXPECT_GT(H5Aexists(values.get(), "unit"), 0);
  const Hdf5Id see(H5Aopen(values.get(), "see", H5P_DEFAULT));
  hobj_ref_t reference = 0;
  ASSERT_GE(H5Aread(see.get(), H5T_STD_REF_OBJ, &reference), 0);
  const Hdf5Id seen(H5Rdereference2(file.get(), H5P_DEFAULT, H5R_OBJECT, &reference));
  char name[32] = {};
  H5Iget_name(seen.get(), name, sizeof(name));
  EXPECT_STREQ(name, "/a/rows");
  const Hdf5Id a(H5Gopen2(file.get(), "/a", H5P_DEFAULT));
  EXPECT_GT(H5Aexists(a.get(), "about"), 0);
  const Hdf5Id pairs = open_dataset(file.get(), "/b/soft");
  const Hdf5Id pairs_type(H5Dget_type(pairs.get()));
  EXPECT_GT(H5Tequal(pairs_type.get(), pair.get()), 0);
  const Hdf5Id colours = open_dataset(file.get(), "/a/colours");
  const Hdf5Id colours_type(H5Dget_type(colours.get()));
  EXPECT_GT(H5Tcommitted(colours_type.get()), 0);
  const Hdf5Id scalar = open_dataset(file.get(), "/b/one");
  const Hdf5Id scalar_type(H5Dget_type(scalar.get()));
  EXPECT_GT(H5Tequal(scalar_type.get(), H5T_IEEE_F64BE), 0);
  EXPECT_GT(H5Aexists(scalar.get(), "about"), 0);
}

TEST(ConcatOutput, FiltersFillValuesAndContiguousAddresses) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  write_first_input(folder / "first.h5");
  Output out(path);
  auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
  ConcatTarget filtered = chunked_target("/new/filtered", H5T_IEEE_F32BE, {4, 3}, {2, 3});
  filtered.like.storage.filters = shuffle_deflate(4);
  FilterSpec foreign;
  foreign.filter_id = 31999;  // Reserved for tests in The HDF Group's numbering.
  foreign.flags = H5Z_FLAG_OPTIONAL;
  foreign.final_client_data = {3, 1, 4};
  foreign.name = "a codec of our own";
  filtered.like.storage.filters.push_back(foreign);
  const float fill = 2.5F;
  const auto* const native = reinterpret_cast<const std::byte*>(&fill);
  filtered.like.fill_value = {native[3], native[2], native[1], native[0]};
  ASSERT_DONE(concat->place(filtered, {}));
  const std::vector<float> three = {test_value(0, 5), test_value(1, 5), test_value(2, 5)};
  const std::uint64_t address = out.tail.claim(12);
  ASSERT_DONE(out.storage.write_at(address, std::as_bytes(std::span(three))));
  ASSERT_DONE(concat->place(contiguous_target("/new/plain", H5T_IEEE_F32LE, {3}, address), {}));
  ASSERT_DONE(concat->place(contiguous_target("/new/none", H5T_IEEE_F32LE, {0, 5}, 0), {}));
  // A second call, as after a resumed run, has no effect; other rows are an error.
  ASSERT_DONE(concat->place(contiguous_target("/new/plain", H5T_IEEE_F32LE, {3}, address), {}));
  EXPECT_EQ(concat->place(contiguous_target("/new/plain", H5T_IEEE_F32LE, {4}, address), {}).code(),
            Code::invalid_argument);
  EXPECT_EQ(concat->place(contiguous_target("/new", H5T_IEEE_F32LE, {4}, address), {}).code(),
            Code::invalid_argument);
  concat.reset();
  ASSERT_DONE(out.file->close());
  EXPECT_TRUE(holds_test_values(path, "/new/plain", 5, 3));
  EXPECT_EQ(read_chunk_index(path, "/new/plain").value().front().extent.address, address);
  const Hdf5Scope scope;
  const Hdf5Id file = open_file(path);
  const Hdf5Id dataset = open_dataset(file.get(), "/new/filtered");
  const Hdf5Id list(H5Dget_create_plist(dataset.get()));
  EXPECT_EQ(H5Pget_nfilters(list.get()), 3);
  unsigned flags = 0;
  unsigned values[8] = {};
  std::size_t n_values = 8;
  char name[32] = {};
  EXPECT_EQ(H5Pget_filter2(list.get(), 2, &flags, &n_values, values, sizeof(name), name, nullptr),
            31999);
  EXPECT_EQ(flags, unsigned(H5Z_FLAG_OPTIONAL));
  EXPECT_EQ(n_values, 3U);
  EXPECT_EQ(values[2], 4U);
  float stored = 0;
  H5Pget_fill_value(list.get(), H5T_NATIVE_FLOAT, &stored);
  EXPECT_EQ(stored, 2.5F);
  hsize_t most[2] = {};
  const Hdf5Id space(H5Dget_space(dataset.get()));
  H5Sget_simple_extent_dims(space.get(), nullptr, most);
  EXPECT_EQ(most[0], H5S_UNLIMITED);
  EXPECT_EQ(most[1], 3U);
}

TEST(ConcatOutput, ResumesWhatWasCommitted) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  write_first_input(folder / "first.h5");
  const ConcatTarget values = chunked_target("/a/values", H5T_STD_I32LE, {6}, {4});
  {
    Output out(path);
    auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
    const auto first = write_i32(out, 0, {1, 2, 3, 4});
    ASSERT_DONE(concat->place(values, {&first, 1}));
    ASSERT_DONE(out.file->commit());
  }
  Output out(path, true);
  auto concat = begin(ConcatOutput::resume(*out.file, folder / "first.h5"));
  const auto second = write_i32(out, 1, {5, 6, 0, 0});
  ASSERT_DONE(concat->place(values, {&second, 1}));
  ASSERT_DONE(concat->place(chunked_target("/a/rows", H5T_STD_I32LE, {6}, {4}), {&second, 1}));
  StoredDataset one;
  one.path = "/b/one";
  ASSERT_DONE(concat->copy_whole(one));
  const auto lines = concat->finish({});
  ASSERT_TRUE(lines.ok());
  for (const std::string& line : *lines) ADD_FAILURE() << line;
  concat.reset();
  ASSERT_DONE(out.file->close());
  expect_tools_read(path);
  const Hdf5Scope scope;
  const Hdf5Id file = open_file(path);
  EXPECT_EQ(read_i32(file.get(), "/b/again"), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read_i32(file.get(), "/a/rows"), (std::vector<std::int32_t>{0, 0, 0, 0, 5, 6}));
  EXPECT_EQ(link_names(file.get(), "/a"), "rows values");
}

/// The value of a text attribute of one object.
std::string text_attribute(hid_t object, const char* name) {
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  std::string text(H5Tget_size(type.get()), '?');
  EXPECT_GE(H5Aread(attribute.get(), type.get(), text.data()), 0) << name;
  return text;
}

TEST(ConcatOutput, AppendsToGrowingAndContiguousDatasets) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  write_first_input(folder / "first.h5");
  const std::vector<std::int32_t> numbers = {1, 2, 3, 4, 5, 6};
  const auto place_contiguous = [&](ConcatOutput& concat, Output& out, const char* dataset,
                                    std::size_t n_rows, bool replaces) {
    const std::uint64_t address = out.tail.claim(n_rows * 4);
    ASSERT_DONE(out.storage.write_at(address, std::as_bytes(std::span(numbers).first(n_rows))));
    ConcatTarget target = contiguous_target(dataset, H5T_STD_I32LE, {n_rows}, address);
    target.replaces = replaces;
    ASSERT_DONE(concat.place(target, {}));
  };
  {
    Output out(path);
    auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
    place_contiguous(*concat, out, "/a/rows", 3, false);
    place_contiguous(*concat, out, "/a/values", 3, false);
    const auto first = write_i32(out, 0, {1, 2, 3, 0});
    ASSERT_DONE(concat->place(chunked_target("/a/pairs", H5T_STD_I32LE, {3}, {4}), {&first, 1}));
    ASSERT_TRUE(concat->finish({}).ok());
    // The second name would keep the old dataset alive.
    ASSERT_GE(H5Ldelete(out.file->hdf5_id(), "/b/again", H5P_DEFAULT), 0);
    concat.reset();
    ASSERT_DONE(out.file->close());
  }
  Output out(path, true);
  auto concat = begin(ConcatOutput::append(*out.file));
  place_contiguous(*concat, out, "/a/rows", 6, true);
  place_contiguous(*concat, out, "/a/values", 6, true);
  ASSERT_DONE(out.file->commit());
  // The partial chunk moves to another place, and one more chunk follows.
  const Hdf5File::ChunkRecord chunks[] = {write_i32(out, 0, {1, 2, 3, 4}),
                                          write_i32(out, 1, {5, 6, 0, 0})};
  ASSERT_DONE(concat->place(chunked_target("/a/pairs", H5T_STD_I32LE, {6}, {4}), chunks));
  ASSERT_TRUE(concat->finish({}).ok());
  concat.reset();
  ASSERT_DONE(out.file->close());
  expect_tools_read(path);
  const Hdf5Scope scope;
  const Hdf5Id file = open_file(path);
  for (const char* dataset : {"/a/rows", "/a/values", "/a/pairs"}) {
    EXPECT_EQ(read_i32(file.get(), dataset), numbers) << dataset;
  }
  EXPECT_EQ(link_names(file.get(), "/a"), "rows values pairs");
  const Hdf5Id values = open_dataset(file.get(), "/a/values");
  const Hdf5Id rows = open_dataset(file.get(), "/a/rows");
  EXPECT_GT(H5DSis_attached(values.get(), rows.get(), 0), 0);
  EXPECT_GT(H5DSis_scale(rows.get()), 0);
  EXPECT_EQ(text_attribute(values.get(), "unit"), "metre");
}

TEST(ConcatOutput, GroupsOfManyDatasetsKeepTheirLinks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  constexpr int n_datasets = 1000;  // Too many for a group's header.
  const auto name = [](int i) { return "/g/dataset" + std::to_string(i); };
  {
    const Hdf5Scope scope;
    const Hdf5Id file(
        H5Fcreate((folder / "first.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id group(H5Gcreate2(file.get(), "/g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (int i = 0; i < n_datasets; ++i) {
      make_dataset(file.get(), name(i).c_str(), H5T_STD_I32LE, {0}, nullptr);
    }
  }
  Output out(path);
  auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
  for (int i = 0; i < n_datasets; ++i) {
    ASSERT_DONE(concat->place(chunked_target(name(i), H5T_STD_I32LE, {0}, {8}), {}));
  }
  ASSERT_TRUE(concat->finish({}).ok());
  concat.reset();
  ASSERT_DONE(out.file->close());
  expect_tools_read(path);
  const Hdf5Scope scope;
  const Hdf5Id file = open_file(path);
  for (int i = 0; i < n_datasets; ++i) EXPECT_TRUE(read_i32(file.get(), name(i)).empty()) << i;
}

TEST(ConcatOutput, CopiesRowsOfVariableLength) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  write_first_input(folder / "first.h5");
  write_first_input(folder / "second.h5");
  const Hdf5Id text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.get(), H5T_VARIABLE);
  ConcatTarget target = chunked_target("/b/text", text.get(), {6}, {4});
  target.like.by_value = false;
  target.like.storage.filters = shuffle_deflate(16);
  ConcatTarget fixed = target;
  fixed.like.path = "/b/fixed";
  fixed.like.extendable = false;
  fixed.like.storage = {};
  fixed.like.storage.kind = StoredForm::Kind::contiguous;
  ConcatTarget again = fixed;  // Contiguous, and recreated in order to grow.
  again.like.path = "/b/text";
  const RowSource sources[] = {{folder / "first.h5", 3}, {folder / "second.h5", 3}};
  {
    Output out(path);
    auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
    // Memory for at most two rows at a time.
    ASSERT_DONE(concat->copy_rows(target, sources, 0, 64));
    EXPECT_EQ(concat->copy_rows(target, sources, 0, 8).code(), Code::out_of_memory);
    ASSERT_DONE(out.file->commit());
    EXPECT_EQ(read_text(open_file(path).get(), "/b/text")[5], "a third word");
    target.n_rows = 9;
    ASSERT_DONE(concat->copy_rows(target, {sources, 1}, 6, 1 << 20));
    EXPECT_EQ(concat->copy_rows(fixed, sources, 0, 1 << 20).code(), Code::not_found);
    const auto lines = concat->finish({});
    ASSERT_TRUE(lines.ok());
    concat.reset();
    ASSERT_DONE(out.file->close());
  }
  const std::string other = folder / "other.h5";
  {
    Output out(other);
    auto concat = begin(ConcatOutput::create(*out.file, folder / "first.h5"));
    ASSERT_DONE(concat->copy_rows(again, sources, 0, 1 << 20));
    ASSERT_DONE(out.file->commit());
    again.n_rows = 9;
    again.replaces = true;
    ASSERT_DONE(concat->copy_rows(again, {sources, 1}, 6, 64));
    concat.reset();
    ASSERT_DONE(out.file->close());
  }
  for (const std::string& written : {path, other}) {
    expect_tools_read(written);
    const Hdf5Scope scope;
    const std::vector<std::string> words = read_text(open_file(written).get(), "/b/text");
    ASSERT_EQ(words.size(), 9U);
    for (std::size_t i = 0; i < 9; i += 3) {
      EXPECT_EQ(words[i], "one");
      EXPECT_EQ(words[i + 1], "");
      EXPECT_EQ(words[i + 2], "a third word");
    }
  }
}

}  // namespace
}  // namespace tailrace::test
