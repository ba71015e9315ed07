// Every cell of the table of options and interfaces ("doors", docs/options.md), tested in the door
// itself. An option with "yes" writes a file, and an option with "no" is refused by name.
// tests/python/test_hdf5_serial_options.py tests the serial door.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "array/dataset_array.hpp"
#include "array_support.hpp"
#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "model/machine_profile.hpp"
#include "policy/door_rules.hpp"
#include "verbs/concat_request.hpp"
#include "verbs/repack.hpp"
#include "write/write.hpp"

namespace tailrace::test {
namespace {

const Shape shape = {64, 96};

std::vector<std::byte> some_values() { return values_of(shape, Box{{0, 0}, shape}, DType::f32); }

/// Writes one field of f32 with the options of a text.
using Write = std::function<Status(const std::string& options)>;

class DoorRules : public ::testing::Test {
 protected:
  DoorRules() {
    FileOptions options;
    options.sync = false;
    EXPECT_OK(write_steps(folder_ / "in.h5", options, true));
  }

  static Status write_steps(const std::string& path, const FileOptions& options,
                            bool with_mask = false) {
    TAILRACE_TAKE(auto writer, Writer::create(make_self_comm(), path, options));
    const std::vector<std::byte> values = some_values();
    const auto field = writer->define_field({"/u", DType::f32, shape, options.field_defaults});
    Status written = field.status();
    if (written.ok()) written = writer->put(*field, Box{{0, 0}, shape}, values.data());
    const std::vector<std::uint8_t> mask(n_elements(shape), 1);
    if (written.ok() && with_mask) {
      const auto of_mask = writer->define_field({"/mask", DType::u8, shape, FieldOptions()});
      written =
          of_mask.ok() ? writer->put(*of_mask, Box{{0, 0}, shape}, mask.data()) : of_mask.status();
    }
    if (written.ok()) written = writer->end_step().status();
    return written.ok() ? writer->close() : written;
  }

  Status steps(const std::string& text) {
    FileOptions options;
    options.sync = false;
    options.replace = true;
    TAILRACE_TRY(apply_file_options(text, options));
    return write_steps(folder_ / "steps.h5", options);
  }

  Status variables(Door door, const std::string& text) {
    ArrayFileOptions options;
    options.file.door = door;
    options.file.sync = false;
    options.file.replace = true;
    TAILRACE_TRY(apply_glob_options(text, options));
    // PnetCDF's front end moves the metadata to the front when it closes the file
    // (tests/python/test_pnetcdf_front.py).
    const bool in_front = options.file.field_defaults.layout == kFrontLayout;
    if (door == Door::pnetcdf && in_front) options.file.field_defaults.layout = "claimed";
    const std::string path = folder_ / "variables.h5";
    TAILRACE_TAKE(auto file, ArrayFile::create(make_self_comm(), path, options));
    const auto model = one_variable(ModelType::f32, shape, "u");
    Status written = file->change_model(model);
    if (written.ok()) written = file->put(0, Slab::of(Box{{0, 0}, shape}), some_values());
    const Status closed = file->close();
    return written.ok() ? closed : written;
  }

  Status hdf5(const std::string& text) {
    ArrayFileOptions options;
    options.file.door = Door::hdf5;
    options.file.sync = false;
    options.file.replace = true;
    TAILRACE_TRY(apply_glob_options(text, options));
    TAILRACE_TAKE(auto array,
                  DatasetArray::create(make_self_comm(), folder_ / "program.h5", options));
    NewDataset definition;
    definition.path = "/u";
    definition.element_bytes = 4;
    definition.number = DType::f32;
    definition.shape = shape;
    definition.fill.assign(4, std::byte{0});
    return array->plan_new(definition).status();
  }

  Status repack(const std::string& text) {
    const std::unique_ptr<Comm> comm = make_self_comm();
    verbs::RepackRequest request;
    request.input = folder_ / "in.h5";
    request.output = folder_ / "repacked.h5";
    request.options.sync = false;
    request.options.replace = true;
    TAILRACE_TRY(apply_file_options(text, request.options));
    request.fields.codec = request.options.field_defaults.codec_given
                               ? request.options.field_defaults.codec
                               : std::string();
    for (const auto& [key, value] : request.options.field_defaults.codec_settings) {
      request.fields.codec += "," + key + "=" + value;
    }
    if (request.options.field_defaults.bound_given) {  // Like --bound: only for measurements.
      request.fields.bound = error_bound_text(request.options.field_defaults.bound);
      request.options.field_defaults.bound = ErrorBound();
    }
    return verbs::repack({*comm, make_self_comm, {}, {}}, request).status();
  }

  Status concat(const std::string& text) {
    const std::unique_ptr<Comm> comm = make_self_comm();
    verbs::ConcatArguments words;
    words.files = {folder_ / "in.h5"};
    words.output = folder_ / "joined.h5";
    TAILRACE_TAKE(words.file_options, split_key_values(text));
    words.file_options.emplace_back("replace", "on");
    words.file_options.emplace_back("fsync", "off");
    TAILRACE_TAKE(const ConcatRequest request, verbs::concat_request(words));
    return verbs::concat({*comm, make_self_comm, {}, {}}, words, request).status();
  }

  TestFolder folder_;
};

/// A value of an option that is not its default, and other options that it needs to have an effect.
struct Example {
  std::string text;
  std::string with = "";
};

std::map<std::string, Example> examples(const TestFolder& folder) {
  const std::string profile = folder / "profile.json";
  std::ofstream(profile) << profile_text(built_in_profile());
  return {
      {"mode", {"mode=async"}},
      {"hold", {"hold=promise", "mode=async"}},
      {"writers", {"writers=node"}},
      {"threads", {"threads=1"}},
      {"memory", {"memory=512MB"}},
      {"buffer", {"buffer=1MiB"}},
      {"align", {"align=4096"}},
      {"fsync", {"fsync=on"}},
      {"journal", {"journal=on"}},
      {"replace", {"replace=on"}},
      {"compatibility", {"compatibility=v110"}},
      {"attributes", {"attributes=all"}},
      {"trace-file", {"trace-file=" + (folder / "trace.json")}},
      {"for", {"for=size"}},
      {"why", {"why=predicted", "bound=abs=1"}},
      {"target", {"target=psnr=60"}},
      {"profile", {"profile=" + profile}},
      {"plugin-path", {"plugin-path=" + (folder / ".")}},
      {"lab.scheduler", {"lab.scheduler=one-list-greedy", "mode=in_situ"}},
      {"lab.balance", {"lab.balance=paper", "mode=in_situ"}},
      {"lab.record", {"lab.record=" + (folder / "record.json"), "mode=in_situ"}},
      {"lab.order", {"lab.order=johnson"}},
      {"codec", {"codec=portable"}},
      {"bound", {"bound=abs=0.5"}},
      {"guard", {"guard=sign", "codec=trz,bound=abs=0.5"}},
      {"earlier-loss", {"earlier-loss=abs=0.1", "codec=trz,bound=abs=0.5"}},
      {"chunk", {"chunk=16x96"}},
      {"layout", {"layout=dense"}},
      {"verify", {"verify=on"}},
      {"fill", {"fill=-5"}},
      {"allow-wide-bound", {"allow-wide-bound=on"}},
      {"holes", {"holes=on"}},
      {"over-time", {"over-time=on"}},
      {"covered", {"covered=drop"}},
      {"roles", {"roles=off"}},
      {"attributes=one", {"attributes=one"}},
      {"codec=zstd", {"codec=zstd"}},
      {"codec=trz,bound=abs=1,book=auto", {"codec=trz,bound=abs=1,book=auto"}},
      {"guard=minmax", {"guard=minmax", "codec=trz,bound=abs=0.5"}},
      {"guard=sum", {"guard=sum", "codec=trz,bound=abs=0.5"}},
      {"guard=region=/mask:1e-3", {"guard=region=/mask:1e-3", "codec=trz,bound=abs=0.5"}},
      {"guard=region=0..2:1e-3", {"guard=region=0..2x*:1e-3", "codec=trz,bound=abs=0.5"}},
      {"layout=contiguous", {"layout=contiguous", "codec=none"}},
      {"layout=arena", {"layout=arena"}},
      {"layout=front", {"layout=front"}},
  };
}

TEST_F(DoorRules, EveryCellOfTheTableIsWhatTheDoorDoes) {
  const std::map<Door, Write> doors = {
      {Door::steps, [this](const std::string& text) { return steps(text); }},
      {Door::python, [this](const std::string& text) { return variables(Door::python, text); }},
      {Door::pnetcdf, [this](const std::string& text) { return variables(Door::pnetcdf, text); }},
      {Door::hdf5, [this](const std::string& text) { return hdf5(text); }},
      {Door::repack, [this](const std::string& text) { return repack(text); }},
      {Door::concat, [this](const std::string& text) { return concat(text); }},
  };
  const std::map<std::string, Example> all = examples(folder_);
  std::size_t n_cells = 0;
  const auto try_row = [&](const std::string& row, unsigned served) {
    ASSERT_TRUE(all.contains(row)) << row << ": give an example of it here";
    const Example& example = all.at(row);
    const std::string option = row.substr(0, row.find('='));
    for (const auto& [door, write] : doors) {
      ++n_cells;
      const std::string where = std::string(door_name(door)) + ": " + example.text;
      if ((served & bit_of(door)) == 0) {
        FileOptions asked;
        ASSERT_TRUE(apply_file_options(example.text, asked).ok()) << example.text;
        if (agreed_text(asked, Door::steps) == agreed_text(FileOptions(), Door::steps) &&
            option != "covered" && option != "roles") {
          continue;  // A default requests nothing.
        }
        const Status refused = write(example.text);
        EXPECT_TRUE(refused.code() == Code::invalid_argument || refused.code() == Code::unsupported)
            << where << ": " << refused.message();
        EXPECT_NE(refused.message().find("option " + option), std::string::npos)
            << where << ": " << refused.message();
        continue;
      }
      const std::string text =
          example.with.empty() ? example.text : example.with + "," + example.text;
      const Status done = write(text);
      if (done.code() == Code::plugin_missing) continue;  // Supported if the plug-in is installed.
      if (option == "covered" && door == Door::repack) {  // The input has no level.
        EXPECT_NE(done.message().find("with a level"), std::string::npos) << done.message();
        continue;
      }
      EXPECT_TRUE(done.ok()) << where << ": " << done.message();
    }
  };
  for (const auto& entry : file_option_table()) try_row(std::string(entry.name), entry.doors);
  for (const auto& entry : field_option_table()) try_row(std::string(entry.name), entry.doors);
  for (const ValueRule& rule : value_rules()) try_row(std::string(rule.example), doors_of(rule));
  EXPECT_EQ(n_cells, all.size() * doors.size());
}

}  // namespace
}  // namespace tailrace::test
