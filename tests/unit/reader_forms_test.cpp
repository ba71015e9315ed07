// Forms of new files, by the settings that produce them, and the report about an existing file.

#include "describe/reader_forms.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "container_support.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/readers_need.hpp"

namespace tailrace::test {
namespace {

Hdf5File::Settings for_everyone() {
  Hdf5File::Settings settings;
  settings.old_forms = true;
  return settings;
}

/// Makes a dataset of four chunks with ten attributes, and a dataset that grows by steps.
Status make_both(const std::string& path, const Hdf5File::Settings& settings,
                 const std::vector<FilterSpec>& filters = {}) {
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  TAILRACE_TAKE(auto file, Hdf5File::create(storage, tail.allocate(), settings));
  DatasetDefinition plain;
  plain.path = "/g/plain";
  plain.shape = {40};
  plain.chunk_shape = {10};
  plain.filters = filters;
  TAILRACE_TRY(file->create_dataset(plain));
  for (int i = 0; i < 10; ++i) {
    TAILRACE_TRY(file->set_attribute(plain.path, "n" + std::to_string(i), {std::string("x")}));
  }
  DatasetDefinition growing = plain;
  growing.path = "/growing";
  growing.filters = {};
  growing.extendable = growing.grows_by_steps = true;
  TAILRACE_TRY(file->create_dataset(growing));
  return file->close();
}

TEST(ReaderForms, OldFormsAreForEveryone) {
  const TestFolder folder;
  ASSERT_DONE(make_both(folder / "old.h5", for_everyone()));
  const Result<ReaderForms> forms = reader_forms_of(folder / "old.h5");
  ASSERT_TRUE(forms.ok()) << text_of(forms.status());
  EXPECT_TRUE(forms->for_everyone());
  EXPECT_TRUE(forms->filters.empty());
}

TEST(ReaderForms, NewFormsAreCountedAndNamed) {
  const TestFolder folder;
  Hdf5File::Settings settings = for_everyone();
  settings.old_forms = false;
  ASSERT_DONE(make_both(folder / "new.h5", settings));
  const Result<ReaderForms> forms = reader_forms_of(folder / "new.h5");
  ASSERT_TRUE(forms.ok()) << text_of(forms.status());
  EXPECT_EQ(forms->indexes.n_objects, 2U);
  EXPECT_EQ(forms->indexes.first, "/g/plain");
  EXPECT_EQ(forms->attribute_numbers.n_objects, 4U);  // Including the root and the group.
  EXPECT_EQ(forms->attribute_numbers.first, "/");
}

TEST(ReaderForms, WhatGrowsByStepsMayKeepTheNewForms) {
  const TestFolder folder;
  Hdf5File::Settings settings = for_everyone();
  settings.steps_in_new_forms = true;
  ASSERT_DONE(make_both(folder / "steps.h5", settings));
  const Result<ReaderForms> forms = reader_forms_of(folder / "steps.h5");
  ASSERT_TRUE(forms.ok()) << text_of(forms.status());
  EXPECT_EQ(forms->indexes.n_objects, 1U);
  EXPECT_EQ(forms->indexes.first, "/growing");
  EXPECT_EQ(forms->attribute_numbers.n_objects, 1U);
}

TEST(ReaderForms, AFileSaysWhichFiltersItsReadersNeed) {
  const TestFolder folder;
  const std::string path = folder / "need.h5";
  Hdf5File::Settings settings = for_everyone();
  settings.lists_readers_need = true;
  const auto text = [&] {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    return H5Aexists(file.get(), kReadersNeedAttribute) > 0
               ? hdf5_text_attribute(file.get(), kReadersNeedAttribute)
               : std::string();
  };
  ASSERT_DONE(make_both(path, settings, shuffle_deflate(4)));
  EXPECT_EQ(text(), "");
  const std::vector<std::uint32_t> none;
  ASSERT_DONE(make_both(path, settings, {{482, 0, none, none, "xor"}}));
  EXPECT_NE(text().find("pip install ./python/filters"), std::string::npos) << text();
  EXPECT_NE(text().find(", for the filter xor;"), std::string::npos) << text();
  {
    // Filters added later are recorded as well.
    RecordingStorage storage(path, true);
    ScatteringTail tail;
    std::uint64_t end = 0;
    auto file = Hdf5File::open(storage, tail.allocate(), settings, end);
    ASSERT_TRUE(file.ok()) << text_of(file.status());
    tail.reset(end);
    DatasetDefinition added;
    added.path = "/added";
    added.shape = {40};
    added.chunk_shape = {10};
    added.filters = {{32001, 0, none, none, "blosc; a name, of others"}};
    ASSERT_DONE((*file)->create_dataset(added));
    ASSERT_DONE((*file)->close());
  }
  EXPECT_NE(text().find(", for the filters xor, "), std::string::npos) << text();
  EXPECT_NE(text().find("hdf5plugin"), std::string::npos) << text();
  const Result<ReaderForms> forms = reader_forms_of(path);
  ASSERT_TRUE(forms.ok()) << text_of(forms.status());
  EXPECT_EQ(forms->filters.size(), 2U);
}

}  // namespace
}  // namespace tailrace::test
