// The dump-time model and the choice of codecs for a step, compared with exhaustive search.

#include "model/dump_time.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <tuple>

#include "support/sanitized.hpp"

namespace tailrace {
namespace {

DumpSetting setting_of(std::uint64_t n_ranks, std::uint64_t n_threads, double bytes_per_s) {
  DumpSetting setting;
  setting.n_ranks = n_ranks;
  setting.n_threads = n_threads;
  setting.write = BandwidthModel::constant(bytes_per_s);
  return setting;
}

CandidateForecast candidate(const std::string& codec, double encoded_bytes, double encode_s) {
  CandidateForecast one;
  one.codec = codec;
  one.encoded_bytes = encoded_bytes;
  one.encode_s = encode_s;
  return one;
}

FieldForecast random_field(std::mt19937& random, std::size_t n_candidates) {
  std::uniform_real_distribution<double> share(0, 1);
  FieldForecast field;
  field.path = "/f";
  field.raw_bytes = 1e6 + 1e8 * share(random) * share(random);
  field.n_chunks = 1 + random() % 40;
  field.candidates.push_back(candidate("none", field.raw_bytes, 0));
  while (field.candidates.size() < n_candidates) {
    const double ratio = 1 + 30 * share(random) * share(random);
    const double bytes_per_s = 1e8 + 4e9 * share(random) * share(random);
    field.candidates.push_back(
        candidate("c", field.raw_bytes / ratio, field.raw_bytes / bytes_per_s));
    if (random() % 6 == 0) field.candidates.back().refused = "not here";
  }
  return field;
}

double step_s(std::span<const FieldForecast> fields, const std::vector<std::size_t>& picks,
              const DumpSetting& setting, double* bytes_out = nullptr) {
  double bytes = 0;
  double seconds = 0;
  double n_chunks = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    bytes += fields[f].candidates[picks[f]].encoded_bytes;
    seconds += fields[f].candidates[picks[f]].encode_s;
    n_chunks += static_cast<double>(fields[f].n_chunks);
  }
  if (bytes_out != nullptr) *bytes_out = bytes;
  return overlapped_dump_s(bytes, seconds, n_chunks / static_cast<double>(setting.n_ranks),
                           setting);
}

/// Calls `visit` with every choice of candidates that are not refused.
template <class Visit>
void for_each_choice(std::span<const FieldForecast> fields, const Visit& visit) {
  std::vector<std::size_t> picks(fields.size(), 0);
  while (true) {
    bool usable = true;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      usable = usable && fields[f].candidates[picks[f]].refused.empty();
    }
    if (usable) visit(picks);
    std::size_t f = 0;
    while (f < fields.size() && ++picks[f] == fields[f].candidates.size()) picks[f++] = 0;
    if (f == fields.size()) return;
  }
}

TEST(DumpTime, SerialIsEquation9) {
  // 4 ranks with 2 threads each: 8 s of encoding take 1 s, 400 MB at 100 MB/s take 4 s.
  const DumpSetting setting = setting_of(4, 2, 100e6);
  EXPECT_DOUBLE_EQ(serial_dump_s(400e6, 8, setting), 5);
  EXPECT_DOUBLE_EQ(serial_dump_s(400e6, 0, setting), 4);  // equation 8: codec none
}

TEST(DumpTime, OverlapHidesTheShorterLaneButForOneChunk) {
  const DumpSetting setting = setting_of(4, 2, 100e6);
  EXPECT_DOUBLE_EQ(overlapped_dump_s(400e6, 8, 10, setting), 4 + 0.1);
  EXPECT_DOUBLE_EQ(overlapped_dump_s(400e6, 80, 10, setting), 10 + 0.4);
  // One chunk per rank: nothing overlaps, and the second thread is idle.
  EXPECT_DOUBLE_EQ(overlapped_dump_s(400e6, 8, 1, setting), 4 + 2);
}

TEST(DumpTime, SyncLatencyIsAdded) {
  DumpSetting setting = setting_of(1, 1, 100e6);
  setting.sync_latency_s = 0.25;
  EXPECT_DOUBLE_EQ(serial_dump_s(100e6, 1, setting), 2.25);
  EXPECT_DOUBLE_EQ(overlapped_dump_s(100e6, 1, 1, setting), 2.25);
}

TEST(DumpTime, NeverLongerThanSerial) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < 1000; ++i) {
    const DumpSetting setting = setting_of(1 + random() % 9, 1, 1e6 + 1e9 * share(random));
    const double bytes = 1e9 * share(random);
    const double seconds = 10 * share(random);
    const double n_chunks = static_cast<double>(1 + random() % 20);
    EXPECT_LE(overlapped_dump_s(bytes, seconds, n_chunks, setting),
              serial_dump_s(bytes, seconds, setting) * (1 + 1e-12));
  }
}

TEST(ChooseCodecs, FastestIsTheBestOfAllChoices) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<FieldForecast> fields;
    const std::size_t n_fields = 1 + random() % 5;
    for (std::size_t f = 0; f < n_fields; ++f) fields.push_back(random_field(random, 5));
    const double bandwidths[] = {1e6, 25e6, 250e6, 1e9, 5e9};
    const DumpSetting setting =
        setting_of(1 + random() % 4, 1 + random() % 3, bandwidths[random() % 5]);
    double least = std::numeric_limits<double>::infinity();
    for_each_choice(fields, [&](const std::vector<std::size_t>& picks) {
      least = std::min(least, step_s(fields, picks, setting));
    });
    const CodecChoice choice = choose_codecs(fields, setting, Objective::speed);
    ASSERT_EQ(choice.candidate.size(), fields.size());
    double bytes = 0;
    EXPECT_DOUBLE_EQ(choice.predicted_s, step_s(fields, choice.candidate, setting, &bytes));
    EXPECT_DOUBLE_EQ(choice.encoded_bytes, bytes);
    const double longest = longest_step_s(least, setting, Objective::speed);
    EXPECT_DOUBLE_EQ(longest, least * 1.03);
    EXPECT_LE(choice.predicted_s, longest * (1 + 1e-9)) << "round " << round;
    double fewest = std::numeric_limits<double>::infinity();
    for_each_choice(fields, [&](const std::vector<std::size_t>& picks) {
      double n_bytes = 0;
      if (step_s(fields, picks, setting, &n_bytes) <= longest) fewest = std::min(fewest, n_bytes);
    });
    EXPECT_LE(choice.encoded_bytes, fewest * (1 + 1e-9)) << "round " << round;
  }
}

TEST(ChooseCodecs, WhatTheCallTakesBesidesLetsTheStepTakeLonger) {
  FieldForecast field;
  field.n_chunks = 1;
  field.candidates = {candidate("fast", 100e6, 0.01), candidate("small", 90e6, 0.1)};
  DumpSetting setting = setting_of(1, 1, 100e9);
  for (const auto& [other_s, objective, taken] :
       {std::tuple(0.0, Objective::speed, 0U), std::tuple(0.0, Objective::balanced, 0U),
        std::tuple(1.0, Objective::speed, 0U), std::tuple(1.0, Objective::balanced, 1U),
        std::tuple(4.0, Objective::speed, 1U)}) {
    setting.other_s = other_s;
    EXPECT_EQ(choose_codecs({&field, 1}, setting, objective).candidate,
              std::vector<std::size_t>{taken})
        << other_s;
  }
}

TEST(ChooseCodecs, BalancedIsTheSmallestWithinATenth) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<FieldForecast> fields;
    for (std::size_t f = 0; f < 4; ++f) fields.push_back(random_field(random, 5));
    const DumpSetting setting = setting_of(2, 1, round % 2 == 0 ? 100e6 : 1e9);
    double least = std::numeric_limits<double>::infinity();
    double fastest = std::numeric_limits<double>::infinity();
    for_each_choice(fields, [&](const std::vector<std::size_t>& picks) {
      fastest = std::min(fastest, step_s(fields, picks, setting));
    });
    for_each_choice(fields, [&](const std::vector<std::size_t>& picks) {
      double bytes = 0;
      if (step_s(fields, picks, setting, &bytes) <= 1.1 * fastest) least = std::min(least, bytes);
    });
    const CodecChoice choice = choose_codecs(fields, setting, Objective::balanced);
    EXPECT_LE(choice.predicted_s, 1.1 * fastest * (1 + 1e-9));
    EXPECT_LE(choice.encoded_bytes, least * (1 + 1e-9)) << "round " << round;
  }
}

TEST(ChooseCodecs, SizeTakesTheFewestBytesAndTheFasterOfEqual) {
  FieldForecast field;
  field.n_chunks = 1;
  field.candidates = {candidate("none", 100, 0), candidate("slow", 10, 3), candidate("fast", 10, 2),
                      candidate("refused", 1, 1)};
  field.candidates[3].refused = "not here";
  const CodecChoice choice = choose_codecs({&field, 1}, setting_of(1, 1, 1e9), Objective::size);
  EXPECT_EQ(choice.candidate, std::vector<std::size_t>{2});
}

TEST(ChooseCodecs, TiesGoToTheEarlierCandidate) {
  FieldForecast field;
  field.n_chunks = 1;
  field.candidates = {candidate("a", 10, 1), candidate("b", 10, 1)};
  for (const Objective objective : {Objective::speed, Objective::size, Objective::balanced}) {
    const CodecChoice choice = choose_codecs({&field, 1}, setting_of(1, 1, 1e6), objective);
    EXPECT_EQ(choice.candidate, std::vector<std::size_t>{0});
  }
}

TEST(ChooseCodecs, BytesOfOneFieldHideBehindTheEncodingOfAnother) {
  // Field a is worth a long encoding. Meanwhile field b's raw bytes are written at no cost.
  FieldForecast a;
  a.n_chunks = 100;
  a.candidates = {candidate("none", 10e9, 0), candidate("slow", 1e9, 5)};
  FieldForecast b;
  b.n_chunks = 100;
  b.candidates = {candidate("none", 3e9, 0), candidate("slow", 1e9, 1)};
  const std::vector<FieldForecast> both = {a, b};
  const DumpSetting setting = setting_of(1, 1, 1e9);
  EXPECT_EQ(choose_codecs(both, setting, Objective::speed).candidate,
            (std::vector<std::size_t>{1, 0}));
  // Without field a, field b is encoded.
  EXPECT_EQ(choose_codecs({&b, 1}, setting, Objective::speed).candidate,
            std::vector<std::size_t>{1});
}

TEST(ChooseCodecs, ManyFieldsComeWithinAPerMilleOfTheLowerBound) {
  std::mt19937 random(3);
  std::vector<FieldForecast> fields;
  for (int f = 0; f < 400; ++f) fields.push_back(random_field(random, 8));
  for (const double bandwidth : {10e6, 100e6, 1e9, 3e9}) {
    if (kSanitized && bandwidth != 100e6) continue;
    const DumpSetting setting = setting_of(1, 1, bandwidth);
    // Weak duality: for every weight w in [0, 1] of the encode lane, a step takes at least w *
    // encode + (1 - w) * write. Each field minimizes this sum separately.
    double bound = 0;
    for (int i = 0; i <= 2000; ++i) {
      const double w = i / 2000.0;
      double sum = 0;
      for (const FieldForecast& field : fields) {
        double least = std::numeric_limits<double>::infinity();
        for (const CandidateForecast& one : field.candidates) {
          if (!one.refused.empty()) continue;
          least = std::min(least, w * one.encode_s + (1 - w) * one.encoded_bytes / bandwidth);
        }
        sum += least;
      }
      bound = std::max(bound, sum);
    }
    const CodecChoice choice = choose_codecs(fields, setting, Objective::speed);
    EXPECT_GE(choice.predicted_s, bound);
    EXPECT_LE(choice.predicted_s, longest_step_s(bound * 1.001, setting, Objective::speed))
        << bandwidth;
  }
}

}  // namespace
}  // namespace tailrace
