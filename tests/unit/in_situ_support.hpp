// Helpers of the tests of deferred steps: a field of rows that ranks hold in slabs, and a storage
// that counts its operations and fails on request.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/option_table.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {

inline constexpr std::uint64_t n_rows = 24;
inline constexpr std::uint64_t n_columns = 40;

/// Part of the field that `rank` holds: rows, in one slab whose borders are not chunk borders.
inline Box slab_of(int rank, int n_ranks) {
  const auto n = static_cast<std::uint64_t>(n_ranks);
  const auto r = static_cast<std::uint64_t>(rank);
  const std::uint64_t first = n_rows * r / n;
  return {{first, 0}, {n_rows * (r + 1) / n - first, n_columns}};
}

/// Values that identify their step and position, so that a mix-up is detected.
inline std::vector<float> slab_values(std::uint64_t step, const Box& box) {
  std::vector<float> values;
  for (std::uint64_t r = 0; r < box.count[0]; ++r) {
    for (std::uint64_t c = 0; c < box.count[1]; ++c) {
      values.push_back(static_cast<float>(10000 * step + n_columns * (box.start[0] + r) + c));
    }
  }
  return values;
}

/// Expects the over-time field `path` to have exactly the values of these steps, one entry each.
inline void expect_steps(const std::string& file, const std::string& path,
                         const std::vector<std::uint64_t>& steps) {
  const std::vector<std::byte> bytes = read_field(file, path);
  std::vector<float> expected;
  for (const std::uint64_t step : steps) {
    const std::vector<float> values = slab_values(step, {{0, 0}, {n_rows, n_columns}});
    expected.insert(expected.end(), values.begin(), values.end());
  }
  ASSERT_EQ(bytes.size(), expected.size() * sizeof(float)) << path;
  const auto expected_bytes = std::as_bytes(std::span(expected));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected_bytes.begin())) << path;
}

/// Counts of one rank's storage, and failures that it must simulate. Any thread may access it.
struct StorageProbe {
  std::atomic<bool> fail_data = false;   ///< Fail writes of the I/O lane's own chunks.
  std::atomic<bool> fail_other = false;  ///< Fail writes of metadata and of other ranks' chunks.
  std::atomic<bool> fail_sync = false;
  std::atomic<bool> pretend_sync = false;  ///< Syncs succeed without reaching the disk.
  std::atomic<double> data_delay_s = 0;
  std::atomic<int> writes_until_failure = 1 << 30;  ///< Counts all writes; below 0: one has failed.
  std::atomic<int> syncs_until_failure = 1 << 30;
  std::atomic<bool> fail_once = false;              ///< Fail only one write.
  std::atomic<Code> failure_code = Code::no_space;  ///< Error code of failed writes.
  std::atomic<int> n_data = 0;
  std::atomic<int> n_other = 0;
  std::atomic<int> n_syncs = 0;
  std::atomic<int> n_unsynced = 0;  ///< Data writes since the last sync.
};

class ProbedStorage final : public StorageOver {
 public:
  ProbedStorage(std::unique_ptr<Storage> inner, StorageProbe& probe)
      : StorageOver(std::move(inner)), probe_(probe) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const bool fails = probe_.fail_other.load() || is_struck();
    ++probe_.n_other;
    return fails ? refusal() : inner_->write_at(address, bytes);
  }
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    const bool fails = probe_.fail_data.load() || is_struck();
    ++probe_.n_unsynced;
    ++probe_.n_data;
    std::this_thread::sleep_for(std::chrono::duration<double>(probe_.data_delay_s.load()));
    return fails ? refusal() : inner_->write_pieces_at(address, pieces);
  }
  Status sync() override {
    const bool fails = probe_.fail_sync.load() || probe_.syncs_until_failure.fetch_sub(1) <= 0;
    if (fails) return Status(Code::io_error, "sync refused by the test");
    probe_.n_unsynced = 0;
    const Status synced = probe_.pretend_sync ? Status() : inner_->sync();
    ++probe_.n_syncs;
    return synced;
  }

 private:
  bool is_struck() {
    const int left = probe_.writes_until_failure.fetch_sub(1);
    return probe_.fail_once ? left == 0 : left <= 0;
  }
  Status refusal() const { return Status(probe_.failure_code.load(), "write refused by the test"); }

  StorageProbe& probe_;
};

/// One rank of a job that writes the over-time field /u, step by step.
struct InSituRank {
  std::unique_ptr<Writer> writer;
  Comm* comm = nullptr;
  Box box;
  std::size_t field = 0;
  std::vector<float> values;

  Status put(std::uint64_t step) {
    values = slab_values(step, box);
    return writer->put(field, box, values.data(), true);
  }
  Result<StepReport> end_step(std::uint64_t step) {
    EXPECT_TRUE(put(step).ok());
    return writer->end_step();
  }
  /// Defines /u again after a failed step if the file did not have it yet.
  void define(const FieldOptions& defaults) {
    FieldDefinition definition{"/u", DType::f32, {n_rows, n_columns}, defaults, false};
    definition.options.over_time = true;
    const Result<std::size_t> defined = writer->define_field(definition);
    ASSERT_TRUE(defined.ok()) << defined.status().message();
    field = *defined;
  }
};

inline FileOptions in_situ_options(const std::string& text) {
  FileOptions options;
  EXPECT_TRUE(apply_file_options(text, options).ok()) << text;
  return options;
}

/// Runs `body` on ranks that have created `path` with /u defined. `probes`: one per rank, or none.
inline void run_in_situ(int n_ranks, const std::string& path, const std::string& text,
                        std::vector<StorageProbe>* probes,
                        const std::function<void(InSituRank&)>& body) {
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    InSituRank rank;
    rank.comm = comm.get();
    rank.box = slab_of(comm->rank(), n_ranks);
    FileOptions options = in_situ_options(text);
    if (probes != nullptr) {
      StorageProbe& probe = (*probes)[static_cast<std::size_t>(comm->rank())];
      options.open_storage = [&probe](const std::string& name,
                                      bool create) -> Result<std::unique_ptr<Storage>> {
        Result<std::unique_ptr<Storage>> inner = open_posix_storage(name, create, false);
        if (!inner.ok()) return inner.status();
        return std::unique_ptr<Storage>(std::make_unique<ProbedStorage>(std::move(*inner), probe));
      };
    }
    Result<std::unique_ptr<Writer>> writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    rank.writer = std::move(*writer);
    rank.define(options.field_defaults);
    body(rank);
  });
}

/// Waits for an event in the background, without calling Tailrace. @returns true if the event
/// occurred within ten seconds.
inline bool happens(const std::function<bool()>& what) {
  for (int i = 0; i < 10000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Expects the same failure on every rank: its code, and the lowest failing rank's text.
inline void expect_same_on_all(Comm& comm, const Status& mine) {
  const std::string own = mine.message();
  const auto own_bytes = std::as_bytes(std::span(own));
  Bytes text(own_bytes.begin(), own_bytes.end());
  comm.broadcast(text, 0);
  EXPECT_EQ(own, std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  std::uint64_t codes[2] = {static_cast<std::uint64_t>(mine.code()),
                            ~static_cast<std::uint64_t>(mine.code())};
  comm.allreduce(std::span<std::uint64_t>(codes), Reduction::max);
  EXPECT_EQ(codes[0], ~codes[1]);
}

}  // namespace tailrace::test
