// A storage that wraps another one, to observe its writes, record parts of them, or make them fail.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/storage.hpp"

namespace tailrace {

/// Forwards all calls that are not overridden to the wrapped storage; pieces go one by one through
/// write_at().
class StorageOver : public Storage {
 public:
  explicit StorageOver(std::unique_ptr<Storage> inner) : inner_(std::move(inner)) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    return inner_->write_at(address, bytes);
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    return inner_->read_at(address, bytes);
  }
  void renew_reads() override { inner_->renew_reads(); }
  Result<std::uint64_t> file_bytes() override { return inner_->file_bytes(); }
  Status extend(std::uint64_t n_bytes) override { return inner_->extend(n_bytes); }
  Status resize(std::uint64_t n_bytes) override { return inner_->resize(n_bytes); }
  void expect_sync() override { inner_->expect_sync(); }
  Status sync() override { return inner_->sync(); }
  const std::string& path() const override { return inner_->path(); }
  void set_path(const std::string& path) override { inner_->set_path(path); }

 protected:
  std::unique_ptr<Storage> inner_;
};

}  // namespace tailrace
