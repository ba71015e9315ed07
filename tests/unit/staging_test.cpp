// Number of chunks that the main thread stages ahead of the encode threads (exec/executor.cpp). A
// test codec encodes nothing until a given number of chunks has been requested.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "container_support.hpp"
#include "core/codec_registry.hpp"
#include "core/codec_settings.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint32_t kWaitingFilterId = 498;

/// Counts the main thread's pulls. The first encoding waits for n_wanted of them and checks that
/// they do not exceed n_most.
class Gate {
 public:
  void open_at(std::size_t n_wanted, std::size_t n_most) {
    n_wanted_ = n_wanted;
    n_most_ = n_most;
    n_pulled_ = 0;
    passed_ = false;
    served_.clear();
  }
  void pulled() {
    const std::lock_guard lock(mutex_);
    ++n_pulled_;
    served_.push_back(TailsWantService::n_served());
    reached_.notify_all();
  }
  /// Waits so long for n_wanted that only a sleeping main thread fails to reach it, then gives the
  /// main thread time to exceed n_most.
  bool pass() {
    std::unique_lock lock(mutex_);
    if (passed_) return true;
    passed_ = true;
    return reached_.wait_for(lock, std::chrono::seconds(60), [this] {
      return n_pulled_ >= n_wanted_;
    }) && !reached_.wait_for(lock, std::chrono::milliseconds(100), [this] {
      return n_pulled_ > n_most_;
    });
  }
  std::size_t n_pulled() const { return n_pulled_; }
  /// Number of times that tails had been served at each pull.
  const std::vector<std::uint64_t>& served() const { return served_; }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  std::size_t n_wanted_ = 0;
  std::size_t n_most_ = 0;
  std::size_t n_pulled_ = 0;
  std::vector<std::uint64_t> served_;
  bool passed_ = false;
};
Gate gate;

class WaitingStage final : public OwnStage {
 public:
  using OwnStage::OwnStage;
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  Result<std::size_t> encode_into(std::span<const std::byte> from,
                                  std::span<std::byte> to) const override {
    if (!gate.pass()) return failed("too few chunks were staged, or too many");
    std::copy(from.begin(), from.end(), to.begin());
    return from.size();
  }
  Result<std::size_t> decode_into(std::span<const std::byte> from,
                                  std::span<std::byte> to) const override {
    std::copy(from.begin(), from.end(), to.begin());
    return from.size();
  }
};

Result<std::unique_ptr<FilterStage>> waiting_stage(const FilterSpec& stored, std::uint64_t,
                                                   std::uint64_t) {
  return std::unique_ptr<FilterStage>(std::make_unique<WaitingStage>(stored));
}

Result<std::unique_ptr<Codec>> make_waiting_codec(const CodecRequest& request, const std::string&) {
  TAILRACE_TRY(CodecSettings(request).finish());
  std::vector<std::unique_ptr<FilterStage>> stages;
  stages.push_back(
      std::make_unique<WaitingStage>(FilterSpec{kWaitingFilterId, 0, {1}, {1}, "waiting"}));
  return make_pipeline_codec({.name = "waiting"}, request, std::move(stages));
}

class PulledValues final : public BoxSource {
 public:
  explicit PulledValues(Shape shape) : shape_(std::move(shape)) {}
  Status read(const Box& box, std::span<std::byte> values) override {
    const std::vector<std::byte> made = values_of(shape_, box, DType::f32);
    std::copy(made.begin(), made.end(), values.begin());
    gate.pulled();
    return Status();
  }

 private:
  Shape shape_;
};

class Staging : public ::testing::Test {
 protected:
  Staging() { enter_codec(entry_); }
  ~Staging() override { withdraw_codec(entry_); }

  /// Writes one step of a field of `n_chunks` chunks of this shape. Between `n_wanted` and `n_most`
  /// chunks must be pulled before the first is encoded.
  void write(const Shape& chunk, std::uint64_t n_chunks, std::size_t n_wanted, std::size_t n_most,
             std::unique_ptr<Comm> comm = make_self_comm()) {
    gate.open_at(n_wanted, n_most);
    const Shape shape = {n_chunks * chunk[0], chunk[1]};
    FileOptions options;
    options.sync = false;
    ASSERT_TRUE(
        apply_file_options("threads=1,codec=waiting,chunk=" + shape_text(chunk), options).ok());
    auto writer = Writer::create(std::move(comm), path_, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    auto index = (*writer)->define_field({"/f", DType::f32, shape, options.field_defaults, false});
    ASSERT_TRUE(index.ok());
    PulledValues source(shape);
    ASSERT_TRUE((*writer)->put_source(*index, whole_box(shape), source).ok());
    const auto report = (*writer)->end_step();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->fields.at(0).n_chunks, n_chunks);
    EXPECT_EQ(gate.n_pulled(), n_chunks);
    EXPECT_TRUE((*writer)->close().ok());
    Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), path_);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    std::vector<std::byte> read(n_elements(shape) * sizeof(float));
    EXPECT_TRUE((*reader)->read(0, Slab::of(whole_box(shape)), read).ok());
    EXPECT_EQ(read, values_of(shape, whole_box(shape), DType::f32));
    EXPECT_TRUE((*reader)->close().ok());
  }

  TestFolder folder_;
  std::string path_ = folder_ / "out.h5";
  CodecEntry entry_{.name = "waiting",
                    .summary = "encodes when told",
                    .make = make_waiting_codec,
                    .filter_id = kWaitingFilterId,
                    .stage = waiting_stage};
};

// Waking the main thread for each pair of chunks of some hundred bytes would take longer than
// encoding them.
TEST_F(Staging, SmallChunksAreStagedManyAtATime) { write({8, 8}, 64, 32, 64); }

// Two chunks wait in addition to the one being encoded, because their values take memory.
TEST_F(Staging, LargeChunksAreStagedTwoAtATime) { write({512, 512}, 8, 3, 3); }

// If encoders take chunks as fast as they are staged, the main thread must still answer other
// nodes' claims in between.
TEST_F(Staging, OthersAreServedBetweenChunks) {
  const TailsWantService nodes;
  run_ranks(1, [&](std::unique_ptr<Comm> comm) { write({8, 8}, 64, 32, 64, std::move(comm)); });
  ASSERT_EQ(gate.served().size(), 64U);
  EXPECT_EQ(std::ranges::adjacent_find(gate.served()), gate.served().end());
}

}  // namespace
}  // namespace tailrace::test
