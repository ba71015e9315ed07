// Chunks that a flush holds back while the disk is full: no staged value is lost, and no
// overwritten value reappears.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

/// During its lifetime no file of this process may grow beyond this size.
class FileLimit {
 public:
  explicit FileLimit(std::uint64_t n_bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = n_bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

constexpr std::uint64_t kWideColumns = 16 << 10;  // a row: 64 KiB
constexpr std::uint64_t kRows = 72;
constexpr std::uint64_t kChunkRows = 8;

std::vector<std::int32_t> filled(const Slab& slab, std::int32_t value) {
  return std::vector<std::int32_t>(slab.n_elements(), value);
}

Slab wide_rows(std::uint64_t first, std::uint64_t n) { return {{first, 0}, {n, kWideColumns}, {}}; }

/// Stages more than rank 0's cap of 4 MiB: 63 rows in memory, the others in a block of the spill
/// file, whose last chunk is incomplete. Rank 1 later puts over rank 0's first rows.
void stage(ArrayFile& file) {
  if (file.comm().is_root()) {
    EXPECT_OK(put_values(file, 0, wide_rows(0, 63), filled(wide_rows(0, 63), 1)));
    EXPECT_OK(put_values(file, 0, wide_rows(63, 3), filled(wide_rows(63, 3), 1)));
  }
  EXPECT_OK(file.change_model(file.model()));
  if (file.comm().rank() == 1)
    EXPECT_OK(put_values(file, 0, wide_rows(0, 2), filled(wide_rows(0, 2), 2)));
}

void check(ArrayFile& file) {
  EXPECT_EQ(get_values<std::int32_t>(file, 0, wide_rows(0, 2)), filled(wide_rows(0, 2), 2));
  EXPECT_EQ(get_values<std::int32_t>(file, 0, wide_rows(2, 62)), filled(wide_rows(2, 62), 1));
}

const char* const kOptions = "memory=8MiB,chunk=8x16384,level=1";

TEST(ArrayRestage, AFullSpillFolderLeavesNoOldValues) {
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  std::atomic<FileLimit*> limit{nullptr};
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options(kOptions));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {kRows, kWideColumns})));
    stage(*file);
    file->comm().barrier();
    // The spill file has 4 MiB and cannot grow; chunks of equal values are small.
    if (file->comm().is_root()) limit = new FileLimit(4U << 20);
    file->comm().barrier();
    EXPECT_OK(file->end_collective_put());
    file->comm().barrier();
    if (file->comm().is_root()) delete limit.exchange(nullptr);
    file->comm().barrier();
    EXPECT_EQ(file->report().n_flushes, 1U);
    check(*file);
    EXPECT_OK(file->flush());
    check(*file);
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, wide_rows(64, 2)), filled(wide_rows(64, 2), 1));
    EXPECT_OK(file->close());
  });
}

/// A storage that refuses writes while it is full.
class FullableStorage final : public StorageOver {
 public:
  FullableStorage(std::unique_ptr<Storage> inner, std::atomic<bool>& full)
      : StorageOver(std::move(inner)), full_(full) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (full_) return Status(Code::no_space, "full, says the test");
    return inner_->write_at(address, bytes);
  }

 private:
  std::atomic<bool>& full_;
};

TEST(ArrayRestage, AFlushThatHoldsBackAndFailsKeepsAll) {
  const TestFolder folder;
  const std::string path = folder / "b.nc";
  std::atomic<bool> full{false};
  ArrayFileOptions options = array_options(kOptions);
  options.file.open_storage = [&full](const std::string& name, bool create) {
    Result<std::unique_ptr<Storage>> inner = open_posix_storage(name, create, false);
    if (!inner.ok()) return inner;
    return Result<std::unique_ptr<Storage>>(
        std::make_unique<FullableStorage>(std::move(*inner), full));
  };
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, options);
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {kRows, kWideColumns})));
    EXPECT_OK(file->flush());
    stage(*file);
    file->comm().barrier();
    full = true;
    file->comm().barrier();
    EXPECT_EQ(file->end_collective_put().code(), Code::no_space);
    if (file->comm().is_root()) {
      EXPECT_EQ(get_values<std::int32_t>(*file, 0, wide_rows(2, 16)), filled(wide_rows(2, 16), 1));
      EXPECT_EQ(get_values<std::int32_t>(*file, 0, wide_rows(64, 2)), filled(wide_rows(64, 2), 1));
    }
    file->comm().barrier();
    full = false;
    file->comm().barrier();
    EXPECT_OK(file->end_collective_put());
    EXPECT_GT(file->report().n_chunks, 0U);
    EXPECT_LT(file->report().n_chunks, kRows / kChunkRows);  // the last one waits
    EXPECT_OK(file->flush());
    check(*file);
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, wide_rows(64, 2)), filled(wide_rows(64, 2), 1));
    EXPECT_OK(file->close());
  });
}

}  // namespace
}  // namespace tailrace::test
