// A machine profile: conversion to text and back, its predictions, and staleness.

#include "model/machine_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tailrace {
namespace {

using ::testing::HasSubstr;

MachineProfile measured_profile() {
  MachineProfile profile;
  profile.tailrace_version = "0.1.0";
  profile.host = "nid00123";
  profile.processor = "A \"quick\" one\xff";
  profile.n_cores = 64;
  profile.file_system = "lustre";
  profile.folder = "/scratch/me";
  profile.date = "2026-11-21T12:00:00Z";
  profile.n_ranks = 4;
  CodecProfile codec;
  codec.codec = "sz3";
  codec.encode_points = {{1, 2e8}, {4, 1.7e8}, {16, 1.23456789e8}};
  codec.decode_points = {{1, 5e8}};
  codec.encode = *fit_throughput(codec.encode_points);
  codec.decode = *fit_throughput(codec.decode_points);
  profile.codecs.push_back(codec);
  profile.write_points = {{1, 1e6, 1e8}, {1, 4e6, 1.5e8}, {1, 64e6, 1.6e8}, {4, 4e6, 4e8}};
  profile.write = *BandwidthModel::fit(profile.write_points);
  profile.claim_latency_s = 2e-7;
  profile.sync_latency_s = 3e-3;
  profile.commit_s = 0.01;
  profile.stripe_bytes = 1 << 20;
  return profile;
}

/// `text` with the first `from` replaced.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineProfile, ComesBackFromItsText) {
  const MachineProfile profile = measured_profile();
  const std::string text = profile_text(profile);
  const Result<MachineProfile> back = parse_profile(text);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(profile_text(*back), text);
  EXPECT_EQ(back->host, profile.host);
  EXPECT_EQ(back->n_ranks, 4U);
  EXPECT_EQ(back->stripe_bytes, 1U << 20);
  EXPECT_FALSE(back->built_in);
  ASSERT_EQ(back->codecs.size(), 1U);
  ASSERT_EQ(back->codecs[0].encode_points.size(), 3U);
  EXPECT_NEAR(back->codecs[0].encode.seconds(1e8, 1e7) / profile.codecs[0].encode.seconds(1e8, 1e7),
              1, 1e-5);
  ASSERT_EQ(back->write_points.size(), 4U);
  for (const double bytes : {1e3, 2e6, 1e9}) {
    for (const std::uint64_t n_ranks : {1U, 2U, 8U}) {
      EXPECT_NEAR(back->write.seconds(bytes, n_ranks) / profile.write.seconds(bytes, n_ranks), 1,
                  1e-4);
    }
  }
  EXPECT_FALSE(back->read.known());
  EXPECT_DOUBLE_EQ(back->sync_latency_s, 3e-3);
}

TEST(MachineProfile, TextIsShortLinesAndPassesOverWhatItDoesNotKnow) {
  const std::string text = profile_text(measured_profile());
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 120U) << text.substr(at, end - at);
    at = end + 1;
  }
  const std::string newer = changed(text, "\"ranks\": 4", "\"ranks\": 4, \"humidity\": [0.4]");
  EXPECT_TRUE(parse_profile(newer).ok());
}

TEST(MachineProfile, KeepsWhatAStepCosts) {
  MachineProfile profile = measured_profile();
  profile.step_measured = true;
  profile.message_points = {{MessagePoint::Kind::message, 2, 16, 2e-6},
                            {MessagePoint::Kind::gather, 8, 4096, 5e-5}};
  profile.step = {{1e-6, 2e-7, 1e-10, 3e-5}, 6e9, 4e-9, 1e-7, 5e-7, 6e-5, 0.02};
  const std::string text = profile_text(profile);
  const Result<MachineProfile> back = parse_profile(text);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(profile_text(*back), text);
  EXPECT_TRUE(back->step_measured);
  EXPECT_EQ(back->message_points.size(), 2U);
  EXPECT_EQ(back->message_points[1].kind, MessagePoint::Kind::gather);
  EXPECT_DOUBLE_EQ(back->step.messages.wait_s, 3e-5);
  EXPECT_DOUBLE_EQ(back->step.commit_s, 0.02);
  const Result<MachineProfile> odd = parse_profile(changed(text, "\"gather\"", "\"scatter\""));
  EXPECT_THAT(odd.status().message(), HasSubstr("must be message, allreduce or gather"));

  // A profile of one rank has no messages; one of an older version has nothing.
  profile.message_points.clear();
  const Result<MachineProfile> alone = parse_profile(profile_text(profile));
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_DOUBLE_EQ(alone->step.messages.latency_s, typical_step_constants().messages.latency_s);
  EXPECT_DOUBLE_EQ(alone->step.index_s, 5e-7);
  const Result<MachineProfile> older = parse_profile(profile_text(measured_profile()));
  ASSERT_TRUE(older.ok());
  EXPECT_FALSE(older->step_measured);
  EXPECT_DOUBLE_EQ(older->step.index_s, typical_step_constants().index_s);
}

TEST(MessageCosts, AreFoundFromPointsOfWhichTheyAreTrue) {
  const MessageCosts truth = {
      .latency_s = 2e-6, .overhead_s = 5e-7, .byte_s = 1e-9, .wait_s = 4e-5};
  using Kind = MessagePoint::Kind;
  std::vector<MessagePoint> points;
  for (const double bytes : {16.0, 4096.0, 1048576.0}) {
    points.push_back({Kind::message, 2, bytes, truth.message_s(bytes)});
  }
  points.push_back({Kind::allreduce, 8, 64, truth.allreduce_s(8, 64)});
  points.push_back({Kind::gather, 8, 4096, truth.gather_s(8, 4096)});
  const Result<MessageCosts> found = fit_messages(points, truth.overhead_s);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_NEAR(found->latency_s, truth.latency_s, 1e-12);
  EXPECT_NEAR(found->byte_s, truth.byte_s, 1e-15);
  EXPECT_NEAR(found->wait_s, truth.wait_s, 1e-10);
  EXPECT_EQ(found->overhead_s, truth.overhead_s);
  // Three levels; the root receives the values of seven other ranks, with 8 bytes for each size.
  EXPECT_NEAR(truth.allreduce_s(8, 64), 4e-5 + 3 * (3e-6 + 64e-9), 1e-12);
  EXPECT_NEAR(truth.gather_s(8, 4096), 4e-5 + 6 * 3e-6 + 7 * 4104e-9, 1e-12);
  EXPECT_EQ(truth.allreduce_s(1, 64), 0);
  // A single size reveals no cost per byte, and a sender is not busy longer than the message takes.
  const std::vector<MessagePoint> one = {{Kind::message, 2, 16, 1e-6}};
  const Result<MessageCosts> least = fit_messages(one, 1);
  ASSERT_TRUE(least.ok());
  EXPECT_EQ(least->byte_s, 0);
  EXPECT_NEAR(least->message_s(1e6), 1e-6, 1e-15);
  EXPECT_EQ(least->latency_s, 0);
  EXPECT_FALSE(fit_messages({}, 0).ok());
}

TEST(MachineProfile, RefusesBrokenTextAndSaysWhere) {
  const std::string text = profile_text(measured_profile());
  const auto message = [](const std::string& broken) {
    const Result<MachineProfile> parsed = parse_profile(broken);
    EXPECT_EQ(parsed.status().code(), Code::corrupt) << broken.substr(0, 200);
    return parsed.status().message();
  };
  EXPECT_THAT(message(""), HasSubstr("not JSON"));
  EXPECT_THAT(message(text.substr(0, text.size() / 2)), HasSubstr("not JSON"));
  EXPECT_THAT(message("[1, 2]"), HasSubstr("tailrace_profile"));
  EXPECT_THAT(message("{\"machine\": {}}"), HasSubstr("tailrace_profile"));
  EXPECT_THAT(message(changed(text, "\"tailrace_profile\": 1", "\"tailrace_profile\": 9")),
              HasSubstr("format 9"));
  EXPECT_THAT(message(changed(text, "\"cores\"", "\"kernels\"")),
              HasSubstr("profile.machine: \"cores\" is missing"));
  EXPECT_THAT(message(changed(text, "\"cores\": 64", "\"cores\": -64")), HasSubstr("whole number"));
  EXPECT_THAT(message(changed(text, "\"ranks\": 4", "\"ranks\": 0")), HasSubstr("\"ranks\" is 0"));
  EXPECT_THAT(message(changed(text, "\"bit_rate\": 1,", "\"bit_rate\": 0,")),
              HasSubstr("profile.codecs[0].encode.points[0]: \"bit_rate\" must be > 0"));
  EXPECT_THAT(message(changed(text, "\"host\": \"", "\"host\": 1, \"hosts\": \"")),
              HasSubstr("must be a string"));
  EXPECT_THAT(message(changed(text, "\"ceiling_bytes_per_s\": ", "\"ceiling_bytes_per_s\": -")),
              HasSubstr("must be > 0"));
  EXPECT_THAT(message(changed(text, "\"exponent\": ", "\"exponent\": 1e9, \"was\": ")),
              HasSubstr("must fall with the bit rate"));
}

TEST(MachineProfile, FindsCodecsBySettingsAndThenByName) {
  MachineProfile profile;
  for (const char* name : {"trz", "trz,preset=fast"}) {
    profile.codecs.emplace_back().codec = name;
  }
  EXPECT_EQ(profile.find("trz")->codec, "trz");
  EXPECT_EQ(profile.find("trz,preset=fast")->codec, "trz,preset=fast");
  EXPECT_EQ(profile.find("trz,preset=fast,lossless=none")->codec, "trz,preset=fast");
  EXPECT_EQ(profile.find("trz,preset=ratio,lossless=none")->codec, "trz");
  EXPECT_EQ(profile.find("zfp"), nullptr);
  EXPECT_EQ(profile.find(""), nullptr);
}

TEST(MachineProfile, AlignsToTheStripeOrTo64KiBOnParallelFileSystems) {
  MachineProfile profile;
  profile.file_system = "ext4";
  EXPECT_EQ(profile.alignment_bytes(), 1U);
  profile.file_system = "lustre";
  EXPECT_EQ(profile.alignment_bytes(), 65536U);
  profile.stripe_bytes = 4U << 20;
  EXPECT_EQ(profile.alignment_bytes(), 4U << 20);
}

TEST(MachineProfile, TheBuiltInOneIsWholeAndMarked) {
  const MachineProfile profile = built_in_profile();
  EXPECT_TRUE(profile.built_in);
  EXPECT_TRUE(staleness(profile, MachineIdentity()).empty());
  for (const char* codec : {"none", "trz", "trz,preset=fast", "trz,preset=ratio", "sz3", "zfp",
                            "zstd", "deflate", "portable"}) {
    const CodecProfile* found = profile.find(codec);
    ASSERT_NE(found, nullptr) << codec;
    EXPECT_EQ(found->codec, codec);
    EXPECT_GT(found->encode.bytes_per_s(20), 0);
    EXPECT_GE(found->decode.bytes_per_s(1), found->decode.bytes_per_s(20));
  }
  // Each rank gets its share, up to the ceiling of the complete machine.
  EXPECT_NEAR(profile.write.bytes_per_s(1e7, 8) / 8, profile.write.bytes_per_s(1e7, 512) / 512, 1);
  EXPECT_EQ(profile.write.bytes_per_s(1e7, 1 << 20), profile.write.bytes_per_s(1e7, 1 << 15));
  const Result<MachineProfile> back = parse_profile(profile_text(profile));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(back->built_in);
}

TEST(MachineProfile, IsStaleOnAnotherMachine) {
  const MachineProfile profile = measured_profile();
  const MachineIdentity same{profile.tailrace_version, "nid00456", profile.processor, 64, "lustre"};
  EXPECT_TRUE(staleness(profile, same).empty());
  MachineIdentity other = same;
  other.host = "login1";
  ASSERT_EQ(staleness(profile, other).size(), 1U);
  EXPECT_THAT(staleness(profile, other)[0], HasSubstr("nid00123"));
  EXPECT_THAT(staleness(profile, other)[0], HasSubstr("login1"));
  other = {"9.9.9", "login1", "slow", 2, "nfs"};
  EXPECT_EQ(staleness(profile, other).size(), 5U);
}

}  // namespace
}  // namespace tailrace
