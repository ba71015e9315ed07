// Features that a new codec gets only by its entry in the registry. A toy codec is registered
// during a test. Repack writes and verifies it, codec=auto considers it, the profile measures it,
// and readers decode it. Options and their page know its settings.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "container_support.hpp"
#include "core/codec_registry.hpp"
#include "core/codec_settings.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"
#include "model/machine_profile.hpp"
#include "read/read.hpp"
#include "verbs/repack.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint32_t kToyFilterId = 499;

/// XORs every byte with the key.
class ToyStage final : public OwnStage {
 public:
  ToyStage(FilterSpec spec, std::byte key) : OwnStage(std::move(spec)), key_(key) {}
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  Result<std::size_t> encode_into(std::span<const std::byte> from,
                                  std::span<std::byte> to) const override {
    if (from.size() > to.size()) return failed("too long");
    std::transform(from.begin(), from.end(), to.begin(), [&](std::byte b) { return b ^ key_; });
    return from.size();
  }
  Result<std::size_t> decode_into(std::span<const std::byte> from,
                                  std::span<std::byte> to) const override {
    return encode_into(from, to);
  }

 private:
  std::byte key_;
};

Result<std::unique_ptr<FilterStage>> toy_stage(const FilterSpec& stored, std::uint64_t,
                                               std::uint64_t) {
  return std::unique_ptr<FilterStage>(
      std::make_unique<ToyStage>(stored, std::byte(stored.final_client_data.at(0))));
}

Result<std::unique_ptr<Codec>> make_toy_codec(const CodecRequest& request, const std::string&) {
  CodecSettings settings(request);
  const auto key = static_cast<std::uint32_t>(settings.integer("toy_key", 1, 255, 85));
  TAILRACE_TRY(settings.finish());
  std::vector<std::unique_ptr<FilterStage>> stages;
  Result<std::unique_ptr<FilterStage>> stage =
      toy_stage({kToyFilterId, 0, {key}, {key}, "toy"}, 1, 1);
  stages.push_back(std::move(*stage));
  return make_pipeline_codec({.name = "toy"}, request, std::move(stages));
}

class ToyCodec : public ::testing::Test {
 protected:
  ToyCodec()
      : entry_{.name = "toy",
               .summary = "xor with one byte",
               .make = make_toy_codec,
               .settings = {"toy_key"},
               .filter_id = kToyFilterId,
               .stage = toy_stage,
               .variants = {{.codec = "toy",
                             .share_in_bound = 0,
                             .share_exact = 0,
                             .encode = {5000, 5000, -1, 3},
                             .decode = {5000, 5000, -1, 3}}}} {
    enter_codec(entry_);
    // The user's measurements of this machine must not decide here.
    ::setenv("TAILRACE_PROFILE", "built-in", 1);
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::sin(float(i) * 0.01F);
    std::ofstream(folder_ / "in.raw", std::ios::binary)
        .write(reinterpret_cast<const char*>(values_.data()), 4 * 128 * 128);
  }
  ~ToyCodec() override { withdraw_codec(entry_); }

  Result<verbs::RepackReport> repack(const std::string& codec, const std::string& bound) {
    const std::unique_ptr<Comm> comm = make_self_comm();
    verbs::RepackRequest request;
    request.input = folder_ / "in.raw";
    request.output = folder_ / "out.h5";
    request.raw_format = "f32:128x128";
    request.fields.codec = codec;
    request.fields.bound = bound;
    request.options.sync = false;
    request.options.replace = true;
    TAILRACE_TRY(apply_file_options("verify=on,chunk=64x64", request.options));
    return verbs::repack({*comm, make_self_comm, {}, {}}, request);
  }

  TestFolder folder_;
  std::vector<float> values_ = std::vector<float>(std::size_t{128} * 128);
  CodecEntry entry_;
};

TEST_F(ToyCodec, repack_writes_and_verifies_what_readers_read) {
  const Result<verbs::RepackReport> report = repack("toy,toy_key=7", "");
  ASSERT_TRUE(report.ok()) << report.status().message();
  const FieldReport& field = report->step.fields.at(0);
  EXPECT_EQ(field.codec, "toy");
  EXPECT_TRUE(field.verified);
  EXPECT_EQ(field.n_raw_chunks, 0U);
  EXPECT_EQ(field.encoded_bytes, field.raw_bytes);

  Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), folder_ / "out.h5");
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ASSERT_EQ((*reader)->datasets().size(), 1U);
  const StoredDataset& dataset = (*reader)->datasets()[0];
  ASSERT_EQ(dataset.storage.filters.size(), 1U);
  EXPECT_EQ(dataset.storage.filters[0].filter_id, kToyFilterId);
  EXPECT_EQ(dataset.storage.filters[0].final_client_data, std::vector<std::uint32_t>{7});
  std::vector<float> read(values_.size());
  const Status done = (*reader)->read(0, Slab::of(whole_box(dataset.shape)),
                                      std::as_writable_bytes(std::span(read)));
  ASSERT_TRUE(done.ok()) << done.message();
  EXPECT_EQ(read, values_);
  EXPECT_TRUE((*reader)->close().ok());
}

TEST_F(ToyCodec, codec_auto_considers_it_for_exact_and_bounded_fields) {
  for (const char* bound : {"", "abs=1e-3"}) {
    const Result<verbs::RepackReport> report = repack("auto", bound);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const std::vector<CandidateForecast>& candidates = report->step.fields.at(0).candidates;
    const auto toy = std::find_if(candidates.begin(), candidates.end(),
                                  [](const auto& one) { return one.codec == "toy"; });
    ASSERT_NE(toy, candidates.end());
    EXPECT_EQ(toy->refused, "");
    EXPECT_NEAR(toy->encoded_bytes, 4.0 * 128 * 128, 1);
    EXPECT_GT(toy->encode_s, 0);
  }
}

TEST_F(ToyCodec, profile_and_options_list_it) {
  EXPECT_NE((codec_variants_text() + ",").find(",toy,"), std::string::npos);
  EXPECT_NE(built_in_profile().find("toy"), nullptr);
  EXPECT_NE(option_table_markdown().find("| `toy` | `toy_key=` | exact |"), std::string::npos);
  EXPECT_NE(codec_names().find(", toy, "), std::string::npos);
  FieldOptions options;
  EXPECT_TRUE(apply_field_options("codec=toy,toy_key=9", options).ok());
  const Status misspelt = apply_field_options("codec=toy,toy_kay=9", options);
  EXPECT_NE(misspelt.message().find("did you mean \"toy_key\"?"), std::string::npos);
  const Status foreign = apply_field_options("codec=toy,preset=fast", options);
  EXPECT_NE(foreign.message().find("its settings: toy_key"), std::string::npos);
}

/// The toy codec leaves no trace, and every codec has its row in the page.
TEST(CodecPage, HasARowForEveryCodec) {
  EXPECT_EQ(find_codec("toy"), nullptr);
  EXPECT_EQ(find_filter(kToyFilterId), nullptr);
  std::ifstream file(std::string(TAILRACE_SOURCE_FOLDER) + "/docs/codecs.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const CodecEntry* entry : codec_registry()) {
    const std::string name = entry->name == "id" ? "id=N" : std::string(entry->name);
    const std::size_t at = page.find("`" + name + "`");
    ASSERT_NE(at, std::string::npos) << name;
    const std::string row = page.substr(at, page.find('\n', at) - at);
    for (const std::string_view key : entry->settings) {
      const bool same_as_deflate = row.find("as `deflate`") != std::string::npos;
      EXPECT_TRUE(same_as_deflate || row.find("`" + std::string(key) + "`") != std::string::npos)
          << name << ": " << key;
    }
    if (entry->filter_id == 0) continue;
    EXPECT_NE(row.find(std::to_string(entry->filter_id)), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tailrace::test
