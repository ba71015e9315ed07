// Buffers writes in a map by address until the first sync.

#include "deferred_storage.hpp"

#include <map>
#include <mutex>
#include <vector>

#include "exec/comm_factory.hpp"
#include "exec/lane_clock.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::bench {
namespace {

/// Largest single write, equal to the engine's default.
constexpr std::uint64_t kWriteBytes = 16U << 20;

class DeferredStorage final : public Storage {
 public:
  DeferredStorage(std::unique_ptr<Storage> storage, double& flush_s)
      : storage_(std::move(storage)), flush_s_(flush_s) {
    flush_s_ = 0;
  }

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (flushed_) return storage_->write_at(address, bytes);
    Buffer copy = Buffer::copy_of(bytes);
    if (!copy.allocated()) return Status(Code::out_of_memory, "not enough memory to defer a write");
    kept_[address] = std::move(copy);
    return Status();
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    return storage_->read_at(address, bytes);
  }
  Result<std::uint64_t> file_bytes() override { return storage_->file_bytes(); }
  Status extend(std::uint64_t n_bytes) override { return storage_->extend(n_bytes); }
  void expect_sync() override { storage_->expect_sync(); }
  Status sync() override {
    TAILRACE_TRY(flush());
    return storage_->sync();
  }
  const std::string& path() const override { return storage_->path(); }

 private:
  Status flush() {
    const std::scoped_lock lock(mutex_);
    if (flushed_) return Status();
    flushed_ = true;
    const LaneClock clock;
    std::vector<std::span<const std::byte>> run;
    std::uint64_t run_address = 0;
    std::uint64_t run_bytes = 0;
    for (const auto& [address, buffer] : kept_) {
      if (!run.empty() &&
          (address != run_address + run_bytes || run_bytes + buffer.n_bytes() > kWriteBytes)) {
        TAILRACE_TRY(storage_->write_pieces_at(run_address, run));
        run.clear();
      }
      if (run.empty()) {
        run_address = address;
        run_bytes = 0;
      }
      run.push_back(buffer.bytes());
      run_bytes += buffer.n_bytes();
    }
    if (!run.empty()) TAILRACE_TRY(storage_->write_pieces_at(run_address, run));
    flush_s_ = clock.now_s();
    kept_.clear();
    return Status();
  }

  std::unique_ptr<Storage> storage_;
  double& flush_s_;
  std::mutex mutex_;
  std::map<std::uint64_t, Buffer> kept_;
  bool flushed_ = false;
};

}  // namespace

Result<std::unique_ptr<Storage>> open_deferred_storage(const std::string& path, bool create,
                                                       double& flush_s) {
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, create, false);
  if (!storage.ok()) return storage.status();
  return std::unique_ptr<Storage>(std::make_unique<DeferredStorage>(std::move(*storage), flush_s));
}

}  // namespace tailrace::bench
