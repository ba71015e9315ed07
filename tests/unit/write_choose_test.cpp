// codec=auto and targets, from put() to a file, on 1 to 4 ranks that are threads. The profiles are
// chosen so that the right answer is known.

#include "field/codec_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kChosenExtent = 96;

/// Noise of several times the bound of rel=1e-3.
constexpr double kNoise = 0.02;
/// Noise of half a bound: about half a bit per value, where a sample is least informative.
constexpr double kFaintNoise = 0.002;

std::vector<float> waves(const Box& box, double largest_noise) {
  std::vector<float> values;
  std::mt19937 random(static_cast<unsigned>(box.start[0]) + 1);
  std::uniform_real_distribution<double> noise(-largest_noise, largest_noise);
  for_each_position(box, [&](const Shape& at) {
    const auto x = [&](std::size_t d) { return static_cast<double>(at[d]); };
    values.push_back(
        static_cast<float>(std::sin(x(0) / 9) + std::cos(x(1) / 7 + x(2) / 11) + noise(random)));
  });
  return values;
}

/// Slab of the first dimension; the last of several ranks has nothing if `last_is_empty`.
Box slab(int rank, int n_ranks, bool last_is_empty) {
  const auto n = static_cast<std::uint64_t>(last_is_empty && n_ranks > 1 ? n_ranks - 1 : n_ranks);
  const auto r = static_cast<std::uint64_t>(rank);
  if (r >= n) return {{0, 0, 0}, {0, 0, 0}};
  const std::uint64_t start = kChosenExtent * r / n;
  return {{start, 0, 0}, {kChosenExtent * (r + 1) / n - start, kChosenExtent, kChosenExtent}};
}

/// A source whose read fails on one rank.
class FailingSource final : public BoxSource {
 public:
  Status read(const Box& box, std::span<std::byte> values) override {
    static_cast<void>(box);
    static_cast<void>(values);
    return Status(Code::io_error, "the source gave out");
  }
};

struct Job {
  int n_ranks = 1;
  std::string file_options = "bound=rel=1e-3";
  std::string field_options;
  bool last_is_empty = false;
  int failing_rank = -1;
  double noise = kNoise;
  std::vector<std::uint64_t> threads_of_rank;  ///< Empty: 1 thread each.
};

class WriteChoose : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(register_filter_class(&hdf5::trz_filter_class()).ok());
    // The user's measurements of this machine and the speed of this core must not decide here.
    ::setenv("TAILRACE_PROFILE", "built-in", 1);
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) cache_before_ = cache;
  }
  void TearDown() override {
    if (cache_before_) ::setenv("XDG_CACHE_HOME", cache_before_->c_str(), 1);
  }

  /// Codecs a hundred times slower than here, so that storing raw values is best.
  static MachineProfile profile_of_slow_codecs() {
    MachineProfile profile = built_in_profile();
    for (CodecProfile& codec : profile.codecs) {
      codec.encode = {codec.encode.least_bytes_per_s / 100, codec.encode.least_bytes_per_s / 100};
    }
    return profile;
  }

  /// The text of this profile, but with the given write bandwidth per rank.
  std::string profile_with_bandwidth(double bytes_per_s,
                                     MachineProfile profile = built_in_profile()) {
    profile.write = BandwidthModel::constant(bytes_per_s);
    profile.sync_latency_s = 0;
    const std::string path = folder_ / "profile.json";
    std::ofstream(path) << profile_text(profile);
    return ",profile=" + path;
  }

  /// Writes /a on all ranks and returns the report, which must be the same on all.
  Result<StepReport> write(const Job& job) {
    std::vector<Result<StepReport>> reports(static_cast<std::size_t>(job.n_ranks),
                                            Status(Code::internal, "not run"));
    run_ranks(job.n_ranks, [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      reports[static_cast<std::size_t>(rank)] = write_as(std::move(comm), job);
    });
    for (const Result<StepReport>& report : reports) {
      EXPECT_EQ(report.ok(), reports.front().ok());
      if (!report.ok()) {
        EXPECT_EQ(report.status().message(), reports.front().status().message());
        continue;
      }
      EXPECT_EQ(codecs_of(*report), codecs_of(*reports.front()));
    }
    return reports.front();
  }

  static std::string codecs_of(const StepReport& report) {
    std::string text;
    for (const FieldReport& field : report.fields) {
      text += field.codec + " " + std::to_string(field.chosen_candidate) + ":";
      for (const CandidateForecast& one : field.candidates) {
        text += one.codec + " " + std::to_string(one.encoded_bytes) + " " +
                std::to_string(one.encode_s) + ";";
      }
    }
    return text;
  }

  Result<StepReport> write_as(std::unique_ptr<Comm> comm, const Job& job) {
    const int rank = comm->rank();
    FileOptions options;
    options.sync = false;
    options.n_threads = 1;
    options.replace = true;
    if (!job.threads_of_rank.empty()) {
      options.n_threads = job.threads_of_rank[static_cast<std::size_t>(rank)];
    }
    TAILRACE_TRY(apply_file_options(job.file_options, options));
    const Box box = slab(rank, comm->n_ranks(), job.last_is_empty);
    auto writer = Writer::create(std::move(comm), path(), options);
    if (!writer.ok()) return writer.status();
    FieldDefinition field{"/a",
                          DType::f32,
                          {kChosenExtent, kChosenExtent, kChosenExtent},
                          options.field_defaults,
                          false};
    TAILRACE_TRY(apply_field_options("chunk=24x96x96," + job.field_options, field.options));
    Result<std::size_t> index = (*writer)->define_field(field);
    if (!index.ok()) return index.status();
    const std::vector<float> values = waves(box, job.noise);
    FailingSource source;
    if (rank == job.failing_rank) {
      TAILRACE_TRY((*writer)->put_source(*index, box, source));
    } else {
      TAILRACE_TRY((*writer)->put(*index, box, values.data()));
    }
    Result<StepReport> report = (*writer)->end_step();
    if (report.ok()) TAILRACE_TRY((*writer)->close());
    return report;
  }

  /// Largest error and PSNR of the values in the file. On one rank.
  std::pair<double, double> quality(double noise = kNoise) {
    const std::vector<std::byte> bytes = read_field(path(), "/a");
    const std::vector<float> original = waves(slab(0, 1, false), noise);
    EXPECT_EQ(bytes.size(), original.size() * sizeof(float));
    if (bytes.size() != original.size() * sizeof(float)) return {1e30, 0};
    const auto* decoded = reinterpret_cast<const float*>(bytes.data());
    double greatest = 0;
    double squares = 0;
    for (std::size_t i = 0; i < original.size(); ++i) {
      const double error = std::abs(double{original[i]} - double{decoded[i]});
      greatest = std::max(greatest, error);
      squares += error * error;
    }
    const auto [least, most] = std::minmax_element(original.begin(), original.end());
    const double range = double{*most} - double{*least};
    const double mean = squares / static_cast<double>(original.size());
    return {greatest / range, 20 * std::log10(range) - 10 * std::log10(mean)};
  }

  std::string path() const { return folder_ / "out.h5"; }

  TestFolder folder_;
  std::optional<std::string> cache_before_;
};

const CandidateForecast& chosen(const StepReport& report) {
  return report.fields.at(0).candidates.at(report.fields.at(0).chosen_candidate);
}

TEST_F(WriteChoose, ABoundWithoutACodecMeansAutoOn_1_2_3_4_Ranks) {
  for (int n_ranks = 1; n_ranks <= 4; ++n_ranks) {
    Job job;
    job.n_ranks = n_ranks;
    job.file_options += profile_with_bandwidth(100e6);
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_FALSE(report->fields.at(0).candidates.empty());
    EXPECT_EQ(report->fields[0].codec, "trz");
    EXPECT_EQ(chosen(*report).refused, "");
    // The prediction is for the sum over all ranks.
    const auto came = static_cast<double>(report->encoded_bytes);
    EXPECT_NEAR(chosen(*report).encoded_bytes / came, 1, 0.15) << n_ranks << " ranks";
  }
}

/// Forecasts depend on threads, which differ between ranks; the choice must not.
TEST_F(WriteChoose, OtherThreadsOnEachRankChooseAlikeOn_3_Ranks) {
  for (const double bytes_per_s : {30e6, 100e6, 300e6, 1e9, 3e9}) {
    Job job;
    job.n_ranks = 3;
    job.threads_of_rank = {1, 6, 6};
    job.file_options += profile_with_bandwidth(bytes_per_s);
    const Result<StepReport> report = write(job);  // compares all that the ranks report
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_FALSE(chosen(*report).codec.empty());
  }
}

/// If noise is about half a bound, neighbours on lattice points hide most of it from a prediction
/// in the loop. A sample predicts from the original values and expects up to 1.55 times the bytes
/// (24x96x96, 49:1). The estimate reports this with its spread of 0.15. So few bytes hardly affect
/// the time.
TEST_F(WriteChoose, NoiseOfHalfABoundIsPredictedRoughlyOn_1_2_3_4_Ranks) {
  for (int n_ranks = 1; n_ranks <= 4; ++n_ranks) {
    Job job;
    job.n_ranks = n_ranks;
    job.noise = kFaintNoise;
    job.file_options += profile_with_bandwidth(100e6);
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const auto came = static_cast<double>(report->encoded_bytes);
    EXPECT_NEAR(chosen(*report).encoded_bytes / came, 1, 0.45) << n_ranks << " ranks";
    EXPECT_EQ(report->fields[0].codec, "trz");
  }
}

TEST_F(WriteChoose, LosslessStageOffIsForecastFromTheSameLook) {
  const auto bytes_of = [](const StepReport& report, const std::string& codec) {
    for (const CandidateForecast& one : report.fields.at(0).candidates) {
      if (one.codec == codec && one.refused.empty()) return one.encoded_bytes;
    }
    return 0.0;
  };
  Job job;
  job.n_ranks = 2;
  job.file_options += profile_with_bandwidth(100e6);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(bytes_of(*report, "trz"), 0);
  EXPECT_GE(bytes_of(*report, "trz,lossless=off"), bytes_of(*report, "trz"));
}

TEST_F(WriteChoose, SettingsThatOnlySaveTimeAreTriedWhereTimeIsShort) {
  const auto is_tried = [](const StepReport& report, const std::string& codec) {
    for (const CandidateForecast& one : report.fields.at(0).candidates) {
      if (one.codec == codec) return one.refused.empty();
    }
    return false;
  };
  for (const double bandwidth : {5e6, 1e9}) {
    Job job;
    job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(bandwidth);
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(is_tried(*report, "trz,preset=fast"), bandwidth > 1e8);
    EXPECT_EQ(is_tried(*report, "trz,predictor=lorenzo,dimension=1"), bandwidth > 1e8);
  }
}

TEST_F(WriteChoose, TheBoundHolds) {
  Job job;
  job.file_options += profile_with_bandwidth(100e6);
  ASSERT_TRUE(write(job).ok());
  EXPECT_LE(quality().first, 1e-3 * 1.000001);
}

TEST_F(WriteChoose, StorageFasterThanAnyCodecTakesNone) {
  Job job;
  job.n_ranks = 2;
  job.file_options += profile_with_bandwidth(1e12, profile_of_slow_codecs());
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->fields[0].codec, "none");
  EXPECT_EQ(report->encoded_bytes, report->raw_bytes);
}

TEST_F(WriteChoose, SlowStorageTakesFewerBytesThanFastStorage) {
  Job job;
  job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(1e6);
  const Result<StepReport> slow = write(job);
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(2e9);
  const Result<StepReport> fast = write(job);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_LT(slow->encoded_bytes, fast->encoded_bytes);
  EXPECT_GE(chosen(*slow).encode_s, chosen(*fast).encode_s);
}

TEST_F(WriteChoose, PresetMaxIsForStorageThatHidesIt) {
  const auto forecast_of = [](const StepReport& report, const std::string& codec) {
    for (const CandidateForecast& one : report.fields.at(0).candidates) {
      if (one.codec == codec) return one;
    }
    return CandidateForecast();
  };
  const std::string max = "trz,preset=max";
  Job job;
  job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(1e6);
  const Result<StepReport> slow = write(job);
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  EXPECT_EQ(chosen(*slow).codec, max);
  EXPECT_LT(forecast_of(*slow, max).encoded_bytes, forecast_of(*slow, "trz").encoded_bytes);
  EXPECT_NEAR(forecast_of(*slow, max).encoded_bytes / static_cast<double>(slow->encoded_bytes), 1,
              0.1);

  job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(1e9);
  const Result<StepReport> fast = write(job);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_EQ(forecast_of(*fast, max).refused, "not sampled: could not win even at its best");

  // A profile measured before this codec was a candidate lacks its speed.
  MachineProfile older = built_in_profile();
  std::erase_if(older.codecs, [&](const CodecProfile& codec) { return codec.codec == max; });
  job.file_options = "bound=rel=1e-3" + profile_with_bandwidth(1e6, older);
  const Result<StepReport> unknown = write(job);
  ASSERT_TRUE(unknown.ok()) << unknown.status().message();
  EXPECT_EQ(forecast_of(*unknown, max).refused, "the machine profile has no timings for it");
}

TEST_F(WriteChoose, ObjectiveSizeTakesTheFewestPredictedBytes) {
  Job job;
  job.file_options += ",for=size" + profile_with_bandwidth(1e12);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const CandidateForecast& one : report->fields[0].candidates) {
    if (!one.refused.empty()) continue;
    EXPECT_LE(chosen(*report).encoded_bytes, one.encoded_bytes);
  }
  EXPECT_NE(report->fields[0].codec, "none");
}

TEST_F(WriteChoose, DearCandidatesThatCannotWinAreNotSampled) {
  Job job;
  job.file_options += profile_with_bandwidth(1e9);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  bool seen = false;
  for (const CandidateForecast& one : report->fields[0].candidates) {
    if (one.codec != "deflate") continue;
    seen = true;
    EXPECT_EQ(one.refused, "not sampled: could not win even at its best");
  }
  EXPECT_TRUE(seen);
}

TEST_F(WriteChoose, MeasuredCandidatesCarryBytesAndTimes) {
  Job job;
  job.n_ranks = 2;
  job.file_options += ",why=measured" + profile_with_bandwidth(100e6);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(chosen(*report).measured_encode_s, 0);
  EXPECT_NEAR(chosen(*report).measured_bytes / static_cast<double>(report->encoded_bytes), 1, 0.1);
}

TEST_F(WriteChoose, ARankWithoutDataTakesPart) {
  for (const int n_ranks : {2, 4}) {
    Job job;
    job.n_ranks = n_ranks;
    job.last_is_empty = true;
    job.file_options += profile_with_bandwidth(100e6);
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->fields[0].codec, "trz");
  }
}

TEST_F(WriteChoose, AFailingSourceFailsOnAllRanks) {
  for (int failing = 0; failing < 2; ++failing) {
    Job job;
    job.n_ranks = 2;
    job.failing_rank = failing;
    job.file_options = "bound=abs=1e-3";  // needs no range, so that sampling is the first read
    const Result<StepReport> report = write(job);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().code(), Code::io_error);
    EXPECT_NE(report.status().message().find("the source gave out"), std::string::npos);
  }
}

TEST_F(WriteChoose, SettingsNeedACodecsName) {
  Job job;
  job.n_ranks = 2;
  job.field_options = "codec=auto,level=5";
  const Result<StepReport> report = write(job);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::invalid_argument);
  EXPECT_NE(report.status().message().find("\"level\""), std::string::npos);
}

TEST_F(WriteChoose, ANamedCodecIsKept) {
  Job job;
  job.field_options = "codec=portable";
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->fields[0].codec, "portable");
  EXPECT_TRUE(report->fields[0].candidates.empty());
}

TEST_F(WriteChoose, AutoWithoutABoundIsExact) {
  Job job;
  job.file_options = "codec=auto" + profile_with_bandwidth(20e6);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NE(report->fields[0].codec, "none");
  EXPECT_EQ(quality().first, 0);
}

TEST_F(WriteChoose, ProfilesThatAreNoneFailOnAllRanks) {
  Job job;
  job.n_ranks = 3;
  job.file_options += ",profile=" + (folder_ / "missing.json");
  Result<StepReport> report = write(job);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::invalid_argument);
  EXPECT_NE(report.status().message().find("missing.json"), std::string::npos);
  std::ofstream(folder_ / "broken.json") << "{\"format\": ";
  job.file_options = "bound=rel=1e-3,profile=" + (folder_ / "broken.json");
  report = write(job);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::corrupt);
}

TEST_F(WriteChoose, TheEnvironmentNamesAProfile) {
  MachineProfile profile = profile_of_slow_codecs();
  profile.built_in = false;
  profile.host = "elsewhere";
  profile.write = BandwidthModel::constant(1e12);
  std::ofstream(folder_ / "env.json") << profile_text(profile);
  ::setenv("TAILRACE_PROFILE", (folder_ / "env.json").c_str(), 1);
  const Result<StepReport> report = write(Job());
  ::setenv("TAILRACE_PROFILE", "built-in", 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->profile, "elsewhere");
  EXPECT_EQ(report->fields[0].codec, "none");
}

TEST_F(WriteChoose, WithoutAProfileSpeedsAreThoseOfRank0sCore) {
  ::unsetenv("TAILRACE_PROFILE");
  ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  for (const int n_ranks : {1, 3}) {  // Measured first, then found in the stored profile.
    Job job;
    job.n_ranks = n_ranks;
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->profile, "typical values, scaled to this core");
  }
  Job as_it_stands;
  as_it_stands.file_options += ",profile=built-in";
  Result<StepReport> report = write(as_it_stands);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->profile, "typical values");
  ::setenv("TAILRACE_PROFILE", "built-in", 1);
  report = write(Job());
  ::setenv("TAILRACE_PROFILE", "built-in", 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->profile, "typical values");
}

TEST_F(WriteChoose, TargetSizeIsMetWithTheTightestBound) {
  for (const int n_ranks : {1, 2, 3}) {
    for (const double target : {2e5, 6e5, 1.2e6}) {
      Job job;
      job.n_ranks = n_ranks;
      job.file_options = "target=size=" + std::to_string(static_cast<int>(target));
      const Result<StepReport> report = write(job);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(report->fields[0].codec, "trz");
      EXPECT_NEAR(static_cast<double>(report->encoded_bytes) / target, 1, 0.15)
          << target << " bytes, " << n_ranks << " ranks";
    }
  }
}

TEST_F(WriteChoose, TargetSizeGoesNoLooserThanTheBound) {
  Job job;
  job.n_ranks = 2;
  job.file_options = "bound=rel=1e-6,target=size=20000";
  const Result<StepReport> report = write(job);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::invalid_argument);
  EXPECT_NE(report.status().message().find("target=size"), std::string::npos);
}

TEST_F(WriteChoose, TargetSizeLeavesBoundNoneExact) {
  Job job;
  job.file_options = "target=size=100MB";
  job.field_options = "bound=none";
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->fields[0].absolute_bound, 0);
  EXPECT_EQ(quality().first, 0);
}

TEST_F(WriteChoose, TargetPsnrComesOut) {
  for (const double target : {45.0, 60.0, 80.0}) {
    Job job;
    job.file_options = "target=psnr=" + std::to_string(target) + profile_with_bandwidth(100e6);
    const Result<StepReport> report = write(job);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const double psnr = quality().second;
    EXPECT_NEAR(psnr, target, 1);
    EXPECT_NEAR(report->fields[0].expected_psnr_db, psnr, 0.7);
  }
}

TEST_F(WriteChoose, TargetPsnrIsRoughWhereErrorsAreHandedDown) {
  Job job;
  job.noise = kFaintNoise;
  job.file_options = "target=psnr=45" + profile_with_bandwidth(100e6);
  const Result<StepReport> report = write(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NEAR(quality(kFaintNoise).second, 45, 4);
}

TEST_F(WriteChoose, OnlyOneTargetAtATime) {
  FileOptions options;
  ASSERT_TRUE(apply_file_options("target=size=1MB,target=psnr=60", options).ok());
  EXPECT_EQ(options.target_bytes, 0U);
  EXPECT_EQ(options.target_psnr_db, 60);
}

TEST_F(WriteChoose, AFieldThatGoesOnKeepsItsDatasetsCodec) {
  const Box box = {{0, 0}, {64, 64}};
  std::vector<float> values(64 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) / 50);
  const auto add_step = [&](std::unique_ptr<Comm> comm, bool append,
                            double bandwidth) -> Result<StepReport> {
    FileOptions options;
    options.sync = false;
    TAILRACE_TRY(apply_file_options("bound=abs=1e-3" + profile_with_bandwidth(bandwidth), options));
    auto writer = append ? Writer::open(std::move(comm), path(), options)
                         : Writer::create(std::move(comm), path(), options);
    if (!writer.ok()) return writer.status();
    FieldDefinition field{"/t", DType::f32, {64, 64}, options.field_defaults, false};
    field.options.over_time = true;
    Result<std::size_t> index = (*writer)->define_field(field);
    if (!index.ok()) return index.status();
    TAILRACE_TRY((*writer)->put(*index, box, values.data()));
    Result<StepReport> report = (*writer)->end_step();
    TAILRACE_TRY((*writer)->close());
    return report;
  };
  const auto step = [&](bool append, double bandwidth) {
    Result<StepReport> report = Status(Code::internal, "not run");
    run_ranks(1, [&](std::unique_ptr<Comm> comm) {
      report = add_step(std::move(comm), append, bandwidth);
    });
    return report;
  };
  const Result<StepReport> first = step(false, 1e6);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->fields[0].codec, "trz");
  // Without lineage the second step would choose none; one dataset cannot have two filters.
  const Result<StepReport> second = step(true, 1e12);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->fields[0].codec, "trz");
  EXPECT_EQ(read_field(path(), "/t").size(), 2 * values.size() * sizeof(float));
}

}  // namespace
}  // namespace tailrace::test
