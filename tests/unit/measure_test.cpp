// Measurements on ranks that are threads: what is measured and in which order, not the speeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <regex>

#include "core/codec_registry.hpp"
#include "exec/comm_factory.hpp"
#include "measure/machine_identity.hpp"
#include "measure/measure_machine.hpp"
#include "model/machine_profile.hpp"
#include "unit/thread_comm.hpp"

namespace tailrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A folder of this test; the destructor removes it.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("tailrace_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

StoragePlan small_plan(const std::string& folder) {
  StoragePlan plan;
  plan.folder = folder;
  plan.least_bytes = 1U << 16;
  plan.largest_bytes = 1U << 18;
  plan.piece_bytes = 100000;  // not a divisor of the sizes
  plan.budget_s = 600;
  return plan;
}

TEST(MeasureStorage, HasEverySizeAtEveryNumberOfRanksAndLeavesNoFile) {
  const Folder folder("measure_storage");
  test::run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    double last_share = 0;
    const Result<StorageMeasurement> found =
        measure_storage(*comm, small_plan(folder.path()), [&](double share) {
          EXPECT_GE(share, last_share);
          EXPECT_LE(share, 1);
          last_share = share;
        });
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_THAT(found->remarks, IsEmpty());
    ASSERT_EQ(found->write.size(), 9U);  // 1, 2 and 3 ranks; 64, 128 and 256 KiB
    ASSERT_EQ(found->read.size(), 9U);
    for (std::size_t i = 0; i < 9; ++i) {
      for (const BandwidthPoint& point : {found->write[i], found->read[i]}) {
        EXPECT_EQ(point.n_ranks, i / 3 + 1);
        EXPECT_EQ(point.bytes_per_rank, 65536 << (i % 3));
        EXPECT_GT(point.bytes_per_s, 0);
        EXPECT_TRUE(std::isfinite(point.bytes_per_s));
      }
    }
    EXPECT_GT(found->sync_bytes_per_s, 0);
    EXPECT_TRUE(BandwidthModel::fit(found->write).ok());
  });
  EXPECT_THAT(folder.files(), IsEmpty());
}

TEST(MeasureStorage, SaysWhichSizesWereTooLarge) {
  const Folder folder("measure_limits");
  test::run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    StoragePlan plan = small_plan(folder.path());
    plan.free_bytes = 4 * plan.least_bytes;  // half of which may be used: 2 * least in total
    const auto silent = [](double) {};
    const Result<StorageMeasurement> by_space = measure_storage(*comm, plan, silent);
    ASSERT_TRUE(by_space.ok());
    EXPECT_EQ(by_space->write.size(), 3U);  // 64 and 128 KiB by one rank, 64 KiB by two
    ASSERT_EQ(by_space->remarks.size(), 2U);
    EXPECT_THAT(by_space->remarks[0], HasSubstr("free space"));

    plan = small_plan(folder.path());
    plan.budget_s = 1e-9;  // the least size is measured in any case
    const Result<StorageMeasurement> by_time = measure_storage(*comm, plan, silent);
    ASSERT_TRUE(by_time.ok());
    EXPECT_EQ(by_time->write.size(), 2U);
    ASSERT_EQ(by_time->remarks.size(), 2U);
    EXPECT_THAT(by_time->remarks[1], HasSubstr("time"));
  });
}

TEST(MeasureStorage, FailsAlikeOnAllRanksWhereThereIsNoFolder) {
  test::run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const std::string nowhere = "/no_such_folder_of_tailrace";
    const Status storage = measure_storage(*comm, small_plan(nowhere), [](double) {}).status();
    EXPECT_EQ(storage.code(), Code::not_found);
    EXPECT_THAT(storage.message(), HasSubstr(nowhere));
    EXPECT_EQ(measure_sync_latency(*comm, nowhere, 0.1).status().code(), Code::not_found);
  });
}

TEST(MeasureLatency, IsPositiveAndTheSameOnAllRanks) {
  const Folder folder("measure_latency");
  test::run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const Result<double> sync_s = measure_sync_latency(*comm, folder.path(), 0.05);
    const Result<double> claim_s = measure_claim_latency(*comm);
    ASSERT_TRUE(sync_s.ok() && claim_s.ok());
    EXPECT_GT(*sync_s, 0);
    EXPECT_GT(*claim_s, 0);
    std::array<double, 4> limits = {*sync_s, -*sync_s, *claim_s, -*claim_s};
    comm->allreduce(limits, Reduction::max);
    EXPECT_EQ(limits[0], -limits[1]);
    EXPECT_EQ(limits[2], -limits[3]);
  });
  EXPECT_THAT(folder.files(), IsEmpty());
}

TEST(MeasureMessages, HaveTheSamePointsOnAllRanks) {
  for (const int n_ranks : {1, 3}) {
    test::run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const MeasuredMessages found = measure_messages(*comm, 0.01);
      ASSERT_EQ(found.points.size(), n_ranks == 1 ? 0U : 8U);
      EXPECT_GE(found.overhead_s, 0);
      for (const MessagePoint& point : found.points) {
        EXPECT_GT(point.seconds, 0);
        std::array<double, 2> limits = {point.seconds, -point.seconds};
        comm->allreduce(limits, Reduction::max);
        EXPECT_EQ(limits[0], -limits[1]);
        const bool pair = point.kind == MessagePoint::Kind::message;
        EXPECT_EQ(point.n_ranks, pair ? 2U : static_cast<unsigned>(n_ranks));
      }
      const bool fits = fit_messages(found.points, found.overhead_s).ok();
      EXPECT_EQ(fits, n_ranks > 1);
      const Result<double> copied = measure_copy(*comm);
      ASSERT_TRUE(copied.ok());
      EXPECT_GT(*copied, 0);
      EXPECT_GT(measure_number_merge(), 0);
    });
  }
}

TEST(MeasureTrip, GivesTheBitRateOverAllRanks) {
  test::run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    CodecRequest request;
    request.name = "deflate";
    request.chunk_shape = {64, 64};
    Result<std::unique_ptr<Codec>> codec = make_codec(request);
    ASSERT_TRUE(codec.ok());
    std::vector<float> values(64 * 64);
    std::iota(values.begin(), values.end(), static_cast<float>(comm->rank()));
    const auto bytes = std::as_bytes(std::span(values));
    const Result<MeasuredTrip> trip = measure_trip(*comm, **codec, bytes, 3);
    ASSERT_TRUE(trip.ok());
    Result<EncodedBytes> encoded = (*codec)->encode(Buffer::copy_of(bytes));
    ASSERT_TRUE(encoded.ok());
    std::array<double, 1> encoded_bytes = {static_cast<double>(encoded->buffer.n_bytes())};
    comm->allreduce(encoded_bytes, Reduction::sum);
    EXPECT_DOUBLE_EQ(trip->encode.bit_rate,
                     32 * encoded_bytes[0] / (2 * static_cast<double>(bytes.size())));
    EXPECT_EQ(trip->decode.bit_rate, trip->encode.bit_rate);
    EXPECT_GT(trip->encode.bytes_per_s, 0);
    EXPECT_GT(trip->decode.bytes_per_s, 0);
  });
}

/// Returns the values unchanged, or fails.
class FakeCodec final : public Codec {
 public:
  explicit FakeCodec(bool fails) : fails_(fails) {}
  std::string_view name() const override { return "fake"; }
  std::string version() const override { return "1"; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return false; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  std::uint64_t working_bytes(std::uint64_t) const override { return 0; }
  Result<EncodedBytes> encode(Buffer values) const override {
    if (fails_) return Status(Code::codec_failed, "out of order");
    return EncodedBytes{std::move(values), 0};
  }
  Result<Buffer> decode(EncodedBytes encoded) const override { return std::move(encoded.buffer); }

 private:
  bool fails_;
  std::vector<FilterSpec> filters_;
};

TEST(MeasureTrip, OneRanksFailureIsEverybodys) {
  test::run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const FakeCodec codec(comm->rank() == 1);
    const std::vector<std::byte> values(1000);
    const Result<MeasuredTrip> trip = measure_trip(*comm, codec, values, 1);
    ASSERT_FALSE(trip.ok());
    EXPECT_EQ(trip.status().code(), Code::codec_failed);
    EXPECT_THAT(trip.status().message(), HasSubstr("rank 1"));
  });
}

TEST(MachineIdentity, NamesThisMachine) {
  const MachineIdentity here = find_machine_identity(".");
  EXPECT_FALSE(here.host.empty());
  EXPECT_FALSE(here.processor.empty());
  EXPECT_GE(here.n_cores, 1U);
  EXPECT_NE(here.file_system, "unknown");
  EXPECT_EQ(find_machine_identity("/no_such_folder_of_tailrace").file_system, "unknown");
  const Result<FolderFacts> facts = find_folder_facts(".");
  ASSERT_TRUE(facts.ok());
  EXPECT_GE(facts->block_bytes, 512U);
  EXPECT_EQ(find_folder_facts("/no_such_folder_of_tailrace").status().code(), Code::not_found);
  EXPECT_EQ(utc_now().size(), std::string("2026-11-21T12:00:00Z").size());
}

// --- Fallbacks for a profile

double speed_of(const MachineProfile& profile, std::string_view codec) {
  return profile.find(codec)->encode.greatest_bytes_per_s;
}

TEST(CoreProfile, ScalesCurvesAsAWhole) {
  const MachineProfile typical = built_in_profile();
  const MachineProfile here = core_profile();
  EXPECT_TRUE(here.built_in);
  EXPECT_EQ(here.processor, processor_name());
  ASSERT_EQ(here.codecs.size(), typical.codecs.size());
  for (std::size_t c = 0; c < here.codecs.size(); ++c) {
    const CodecProfile& ours = here.codecs[c];
    const CodecProfile& theirs = typical.codecs[c];
    ASSERT_EQ(ours.codec, theirs.codec);
    const double factor = ours.encode.greatest_bytes_per_s / theirs.encode.greatest_bytes_per_s;
    EXPECT_GE(factor, 0.1 * 0.999) << ours.codec;
    EXPECT_LE(factor, 10 * 1.001) << ours.codec;
    EXPECT_NEAR(ours.encode.least_bytes_per_s / theirs.encode.least_bytes_per_s, factor, 1e-9);
    EXPECT_NEAR(ours.decode.greatest_bytes_per_s / theirs.decode.greatest_bytes_per_s, factor,
                1e-9);
    EXPECT_EQ(ours.encode.exponent, theirs.encode.exponent);
    EXPECT_EQ(ours.encode.pivot_bit_rate, theirs.encode.pivot_bit_rate);
  }
  // Copies are not compared. Plug-ins are not loaded, and get their speed from deflate.
  EXPECT_EQ(speed_of(here, "none"), speed_of(typical, "none"));
  EXPECT_NEAR(speed_of(here, "sz3") / speed_of(typical, "sz3"),
              speed_of(here, "deflate") / speed_of(typical, "deflate"), 1e-9);
  EXPECT_EQ(speed_of(core_profile(), "trz"), speed_of(here, "trz"));  // Measured once.
}

TEST(CoreProfile, EveryVariantThatIsBuiltInIsCompared) {
  for (const CodecVariant* variant : codec_variants()) {
    const CodecEntry& entry = codec_entry(variant->codec);
    const bool fitted = variant->encode != SpeedFit();
    EXPECT_EQ(variant->made_up > 0, fitted && !entry.plugin && !entry.stores_plainly)
        << variant->codec;
  }
}

/// The folder in which a process stores its measurements, for one test.
class KeptCoreProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    if (before_) ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    if (!before_) ::unsetenv("XDG_CACHE_HOME");
  }
  std::string file() const {
    const std::string folder = folder_.path() + "/tailrace";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) return entry.path();
    return "";
  }
  static std::string read(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const Folder folder_{"kept_core"};
  std::optional<std::string> before_;
};

TEST_F(KeptCoreProfile, IsFoundAgain) {
  EXPECT_FALSE(kept_core_profile());
  const MachineProfile measured = measured_and_kept_core_profile();
  const std::optional<MachineProfile> kept = kept_core_profile();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->processor, processor_name());
  for (const CodecProfile& codec : measured.codecs) {
    EXPECT_NEAR(speed_of(*kept, codec.codec) / codec.encode.greatest_bytes_per_s, 1, 1e-5);
  }
  // Identified by processor and build, because a build without optimisation is several times
  // slower.
  EXPECT_TRUE(std::regex_search(file(), std::regex("/core.*-[0-9a-f]{8}\\.json$"))) << file();
  std::size_t n_files = 0;  // No incomplete file remains.
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/tailrace")) {
    n_files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(n_files, 1U);
}

TEST_F(KeptCoreProfile, OfAnotherVersionOrDamagedIsMeasuredAgain) {
  (void)measured_and_kept_core_profile();
  const std::string whole = read(file());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    std::ofstream(file()) << text.replace(at, from.size(), to);
    return kept_core_profile().has_value();
  };
  EXPECT_TRUE(changed("{", "{"));
  EXPECT_FALSE(changed("\"" + built_in_profile().tailrace_version, "\"0.0.0-older"));
  EXPECT_FALSE(changed(processor_name(), "another processor"));
  EXPECT_FALSE(changed("\"trz,preset=fast\"", "\"trz,preset=quick\""));
  EXPECT_FALSE(changed("\"built_in\": true", "\"built_in\": false"));
  std::ofstream(file()) << whole.substr(0, whole.size() / 2);
  EXPECT_FALSE(kept_core_profile());
  (void)measured_and_kept_core_profile();
  EXPECT_TRUE(kept_core_profile());
}

TEST_F(KeptCoreProfile, WhereNothingCanBeWrittenItIsMeasuredAllTheSame) {
  std::ofstream(folder_.path() + "/tailrace") << "a file where the folder would be";
  EXPECT_GT(speed_of(measured_and_kept_core_profile(), "trz"), 0);
  EXPECT_FALSE(kept_core_profile());
}

}  // namespace
}  // namespace tailrace
