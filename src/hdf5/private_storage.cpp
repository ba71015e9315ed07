// A file in memory, over a read-only file, and the recording of old contents.

#include "hdf5/private_storage.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "hdf5/commit_order.hpp"
#include "hdf5/file_names.hpp"

namespace tailrace {
namespace {

class StorageInMemory final : public PrivateStorage {
 public:
  explicit StorageInMemory(std::string path) : path_(std::move(path)) {}

  Status open_below() {
    TAILRACE_TAKE(RegularFile opened, open_regular(path_, O_RDONLY));
    below_ = std::move(opened.at);
    below_bytes_ = n_bytes_ = opened.n_bytes;
    return Status();
  }

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (!bytes.empty()) written_.put(address, bytes);
    n_bytes_ = std::max<std::uint64_t>(n_bytes_, address + bytes.size());
    return Status();
  }

  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (address > n_bytes_ || bytes.size() > n_bytes_ - address) {
      return Status(Code::corrupt, "file \"" + path_ + "\" ends before address " +
                                       std::to_string(address + bytes.size()));
    }
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    const std::uint64_t there = below_bytes_ > address ? below_bytes_ - address : 0;
    TAILRACE_TRY(read_below(address, bytes.first(std::min<std::uint64_t>(there, bytes.size()))));
    preserved_.overlay(address, bytes);
    written_.overlay(address, bytes);
    return Status();
  }

  void preserve(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    preserved_.put(address, bytes);
  }

  Result<std::uint64_t> file_bytes() override {
    const std::scoped_lock lock(mutex_);
    return n_bytes_;
  }

  Status extend(std::uint64_t n_bytes) override {
    const std::scoped_lock lock(mutex_);
    n_bytes_ = std::max(n_bytes_, n_bytes);
    return Status();
  }

  Status sync() override { return Status(); }
  const std::string& path() const override { return path_; }

 private:
  Status read_below(std::uint64_t address, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n_read = ::pread(below_.fd(), bytes.data(), bytes.size(), off_t(address));
      if (n_read < 0 && errno == EINTR) continue;
      if (n_read < 0) return status_from_errno(errno, "reading \"" + path_ + "\"");
      if (n_read == 0)
        return Status(Code::corrupt, "file \"" + path_ + "\" has shrunk since it was opened");
      address += std::uint64_t(n_read);
      bytes = bytes.subspan(std::size_t(n_read));
    }
    return Status();
  }

  std::string path_;
  Descriptor below_;
  std::uint64_t below_bytes_ = 0;
  std::uint64_t n_bytes_ = 0;
  DirtyBytes preserved_;
  DirtyBytes written_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<PrivateStorage> make_private_storage(const std::string& path) {
  return std::make_unique<StorageInMemory>(path);
}

Result<std::unique_ptr<PrivateStorage>> open_private_storage(const std::string& path) {
  auto storage = std::make_unique<StorageInMemory>(path);
  TAILRACE_TRY(storage->open_below());
  return std::unique_ptr<PrivateStorage>(std::move(storage));
}

DirtyBytes PreservingStorage::take() {
  end_ = 0;
  return std::exchange(taken_, {});
}

Status PreservingStorage::write_at(std::uint64_t address, std::span<const std::byte> bytes) {
  if (address < end_ && !bytes.empty()) {
    std::vector<std::byte> before(std::min<std::uint64_t>(bytes.size(), end_ - address));
    TAILRACE_TRY(inner_->read_at(address, before));
    first_.overlay(address, before);
    first_.put(address, before);
    taken_.put(address, before);
  }
  return inner_->write_at(address, bytes);
}

Status PreservingStorage::write_pieces_at(std::uint64_t address,
                                          std::span<const std::span<const std::byte>> pieces) {
  if (address < end_) return Storage::write_pieces_at(address, pieces);
  return inner_->write_pieces_at(address, pieces);
}

}  // namespace tailrace
