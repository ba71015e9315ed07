// Options of array files: misspelt names, chunk shapes for variables of several ranks, small
// memory.

#include <gtest/gtest.h>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/codec_registry.hpp"
#include "core/option_table.hpp"
#include "core/options.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/filter_plugins.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

std::string refusal(const std::string& text) {
  ArrayFileOptions options;
  const Status status = apply_glob_options(text, options);
  return status.code() == Code::invalid_argument ? status.message() : "taken: " + text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GlobOptions, NameAVariableAloneOrByWildcards) {
  GlobOptions options;
  EXPECT_OK(apply_glob_options("lat*: codec=trz,bound=abs=1; /g/time: bound=abs=2", options));
  EXPECT_FALSE(named_alone("/lat", options));
  EXPECT_TRUE(named_alone("/g/time", options));
  EXPECT_FALSE(named_alone("/h/time", options));
  EXPECT_TRUE(names_alone("a[1]", "/g/a[1]"));
  EXPECT_FALSE(names_alone("a[1]", "/g/a1"));
  EXPECT_FALSE(names_alone("lat", "/lon"));
  // Coordinates stay exact unless an option names them.
  const auto bound_of = [&](const char* path, bool exact) {
    const Result<FieldOptions> made = options_by_glob(path, 1, exact, options);
    return made.ok() ? error_bound_text(made->bound) : made.status().message();
  };
  EXPECT_EQ(bound_of("/lat", false), "abs=1");
  EXPECT_EQ(bound_of("/lat", true), "none");
  EXPECT_EQ(bound_of("/g/time", true), "abs=2");
  const std::vector<std::string> paths = {"/lat", "/g/other"};
  EXPECT_EQ(idle_globs_remark(options, paths, {}),
            "these options match nothing in the file: \"/g/time\"");
}

TEST(ArrayOptions, MisspeltNamesAreRefusedByName) {
  struct Wrong {
    const char* text;
    const char* key;
    const char* says;
  };
  for (const Wrong& wrong : {Wrong{"layuot=dense", "\"layuot\"", "mean \"layout\"?"},
                             {"memroy=2GB", "\"memroy\"", "mean \"memory\"?"},
                             {"threads=2\nt*: bonud=abs=1", "\"bonud\"", "mean \"bound\"?"},
                             {"t*: codec=trz,presets=fast", "\"presets\"", "mean \"preset\"?"},
                             {"codec=deflate,lvel=3", "\"lvel\"", "of codec deflate: level"},
                             {"codec=trz,level=3", "\"level\"", "its settings: preset"},
                             {"t: memory=1GB", "\"memory\"", "to the whole file"},
                             {"component:rho: codec=trz", "component:rho", "not codec="},
                             {"component:bound=abs=1", "component:", "component:NAME: bound="},
                             {"gibberish", "\"gibberish\"", "of a field: codec, bound"}}) {
    const std::string message = refusal(wrong.text);
    EXPECT_TRUE(has(message, wrong.key)) << message;
    EXPECT_TRUE(has(message, wrong.says)) << message;
  }
  ArrayFileOptions options;
  EXPECT_OK(
      apply_glob_options("memory=64MB,spill-folder=/scratch,codec=id=32015,cd=3\n"
                         "t*: codec=trz,book=auto,book_loss=1\nu: level=3",
                         options));
  EXPECT_EQ(options.spill_folder, "/scratch");
}

TEST(ArrayOptions, BoundsOfComponentsAreKeptInOrder) {
  ArrayFileOptions options;
  EXPECT_OK(apply_glob_options(
      "component:*: bound=rel=1e-3; component: x:velocity :bound=none\ncomponent:rho:bound=abs=2",
      options));
  const std::vector<std::pair<std::string, ErrorBound>> expected = {
      {"*", {BoundMode::rel, 1e-3}}, {"x:velocity", {}}, {"rho", {BoundMode::abs, 2}}};
  EXPECT_EQ(options.component_bounds, expected);
  EXPECT_TRUE(options.variable_options.empty());
  EXPECT_EQ(apply_glob_options("component:a: bound=pw_rel=1e-3", options).code(),
            Code::unsupported);
}

TEST(ArrayOptions, OfAVariableAreRefusedOnEveryRank) {
  const TestFolder folder;
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), folder / "a.nc", array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {8})));
    const Status status = file->set_variable_options(0, "layuot=dense");
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_TRUE(has(status.message(), "\"layout\"")) << status.message();
    EXPECT_OK(file->close());
  });
}

/// Every listed name reaches its own setting, and every codec accepts the names listed for it.
TEST(ArrayOptions, ListsOfNamesAreWhatIsRead) {
  for (const auto& [name, values, meaning, agreement, engines, assign, text] :
       file_option_table()) {
    FileOptions options;
    static_cast<void>(apply_file_option({std::string(name), "1"}, options));
    EXPECT_TRUE(options.field_defaults.codec_settings.empty()) << name;
  }
  for (const auto& [name, values, meaning, agreement, engines, assign, text] :
       field_option_table()) {
    FieldOptions options;
    const Status status = apply_field_option({std::string(name), "1"}, options);
    EXPECT_FALSE(has(status.message(), "unknown option")) << name;
    EXPECT_TRUE(options.codec_settings.empty()) << name;
  }
  for (const CodecEntry* known : codec_registry()) {
    CodecRequest request;
    request.name = known->name == "id" ? "id=32015" : std::string(known->name);
    request.settings = {{"no-such", "1"}};
    request.dtype = DType::f32;
    request.chunk_shape = {8, 8};
    request.absolute_bound = 0.1;
    const Status status = make_codec(request).status();
    if (status.code() == Code::plugin_missing) continue;
    const std::size_t list = status.message().find("its settings: ");
    if (list == std::string::npos) {
      EXPECT_TRUE(known->settings.empty()) << status.message();
      continue;
    }
    std::istringstream names(status.message().substr(list + 14));
    for (std::string name; std::getline(names, name, ',');) {
      name.erase(0, name.find_first_not_of(' '));
      EXPECT_NE(std::find(known->settings.begin(), known->settings.end(), name),
                known->settings.end())
          << known->name << " reads " << name;
    }
  }
}

/// A chunk shape for all variables applies only to those with as many dimensions.
TEST(ArrayOptions, AChunkShapeIsForWhatItFits) {
  const TestFolder folder;
  for (const char* text : {"chunk=4x5", "*: chunk=4x5"}) {
    const std::string path = folder / "chunk.nc";
    NetcdfModel model = one_variable(ModelType::f32, {12, 10}, "plane");
    model.dimensions.push_back({"t", 0, 0, true, false});
    for (const auto& [name, dimensions] :
         std::vector<std::pair<std::string, std::vector<std::size_t>>>{
             {"scalar", {}}, {"line", {0}}, {"series", {2}}, {"cube", {2, 0, 1}}}) {
      ModelVariable variable;
      variable.name = name;
      variable.type = ModelType::f32;
      variable.dimensions = dimensions;
      model.variables.push_back(variable);
    }
    auto file = created(make_self_comm(), path, array_options(text));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(model));
    // A chunk shape for one variable must fit it.
    EXPECT_OK(file->set_variable_options(4, "chunk=1x6x10"));
    for (std::size_t v = 0; v < model.variables.size(); ++v) {
      Shape shape = model.shape_of(model.variables[v]);
      for (std::uint64_t& extent : shape) extent = std::max<std::uint64_t>(extent, 2);
      const Slab all = Slab::of(whole_box(shape));
      EXPECT_OK(put_values(*file, v, all, std::vector<float>(all.n_elements(), 3)));
    }
    EXPECT_OK(file->close());
    Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), path);
    ASSERT_TRUE(reader.ok());
    const auto chunk_of = [&](const std::string& name) {
      return (*reader)->datasets()[*(*reader)->find(name)].storage.chunk_shape;
    };
    EXPECT_EQ(chunk_of("/plane"), (Shape{4, 5}));
    EXPECT_EQ(chunk_of("/cube"), (Shape{1, 6, 10}));
    EXPECT_EQ(chunk_of("/line"), Shape());  // Small, so it is contiguous.
    EXPECT_EQ(read_field(path, "/scalar").size(), sizeof(float));
    EXPECT_OK((*reader)->close());
  }
  auto file = created(make_self_comm(), folder / "own.nc", array_options(""));
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {12})));
  const Status status = file->set_variable_options(0, "chunk=4x5");
  EXPECT_TRUE(has(status.message(), "4x5 does not fit")) << status.message();
  EXPECT_OK(file->abort());
}

/// Deflate's own memory uses most of a small cap; staging then uses little.
TEST(ArrayOptions, ASmallMemoryIsEnoughForSmallChunks) {
  const TestFolder folder;
  for (const char* text : {"memory=2MB", "memory=2MB,codec=portable,bound=abs=1e-2",
                           "memory=2MB,codec=trz,bound=abs=1e-2", "memory=1MiB,level=1"}) {
    for (const int n_ranks : {1, 2}) {
      const std::string path = folder / "small.nc";
      run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
        const auto rank = static_cast<std::uint64_t>(comm->rank());
        auto file = created(std::move(comm), path, array_options(text));
        ASSERT_NE(file, nullptr);
        EXPECT_OK(file->change_model(one_variable(ModelType::f32, {600, 1000})));
        for (std::uint64_t row = rank * 300; row < rank * 300 + 300; ++row) {
          std::vector<float> values(1000);
          for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(row + i % 17);
          }
          EXPECT_OK(put_values(*file, 0, {{row, 0}, {1, 1000}, {}}, values));
        }
        EXPECT_OK(file->close());
      });
      auto again = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
      ASSERT_NE(again, nullptr);
      EXPECT_NEAR(get_values<float>(*again, 0, {{299, 16}, {1, 1}, {}})[0], 299 + 16, 1e-2) << text;
    }
  }
}

}  // namespace
}  // namespace tailrace::test
