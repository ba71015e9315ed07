// Helpers of the container's tests.

#include "container_support.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/journal.hpp"

extern char** environ;

namespace tailrace::test {

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tailrace_test_XXXXXX").string();
  if (::mkdtemp(name.data()) != nullptr) path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

RecordingStorage::RecordingStorage(std::string path, bool keep_content)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (keep_content ? 0 : O_TRUNC),
                 0644)) {}

RecordingStorage::~RecordingStorage() { ::close(fd_); }

Status RecordingStorage::count(Operation::Kind kind, std::uint64_t address,
                               std::span<const std::byte> bytes) {
  const std::size_t number = n_operations++;
  if (fail_at && number >= *fail_at) {
    if (number > *fail_at) ++n_after_failure;
    return Status(fail_code, "injected failure");
  }
  if (!recording) return Status();
  Operation operation{kind, address, {bytes.begin(), bytes.end()}, {}, n_commits, committing};
  std::ifstream journal(journal_path_of(path_), std::ios::binary);
  operation.journal.assign(std::istreambuf_iterator<char>(journal), {});
  operations.push_back(std::move(operation));
  return Status();
}

Status RecordingStorage::write_at(std::uint64_t address, std::span<const std::byte> bytes) {
  TAILRACE_TRY(count(Operation::Kind::write, address, bytes));
  const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), off_t(address));
  return n == ssize_t(bytes.size()) ? Status() : status_from_errno(errno, path_);
}

Status RecordingStorage::read_at(std::uint64_t address, std::span<std::byte> bytes) {
  const ssize_t n = ::pread(fd_, bytes.data(), bytes.size(), off_t(address));
  return n == ssize_t(bytes.size()) ? Status() : Status(Code::corrupt, path_ + ": short read");
}

Result<std::uint64_t> RecordingStorage::file_bytes() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return status_from_errno(errno, path_);
  return std::uint64_t(info.st_size);
}

Status RecordingStorage::extend(std::uint64_t n_bytes) {
  TAILRACE_TRY(count(Operation::Kind::extend, n_bytes, {}));
  const Result<std::uint64_t> now = file_bytes();
  if (!now.ok()) return now.status();
  if (*now < n_bytes && ::ftruncate(fd_, off_t(n_bytes)) != 0) {
    return status_from_errno(errno, path_);
  }
  return Status();
}

Status RecordingStorage::sync() { return count(Operation::Kind::sync, 0, {}); }

std::uint64_t ScatteringTail::claim(std::uint64_t n_bytes) {
  if (gap_max_ > 0 && next_ > 0) next_ += random_() % gap_max_;
  const std::uint64_t address = next_;
  next_ += n_bytes;
  return address;
}

std::vector<FilterSpec> shuffle_deflate(std::size_t element_bytes) {
  FilterSpec shuffle;
  shuffle.filter_id = 2;
  shuffle.final_client_data = {std::uint32_t(element_bytes)};
  shuffle.name = "shuffle";
  FilterSpec deflate;
  deflate.filter_id = 1;
  deflate.client_data = {6};
  deflate.final_client_data = {6};
  deflate.name = "deflate";
  return {shuffle, deflate};
}

std::vector<std::byte> encode_stored(std::span<const float> values, unsigned variation) {
  const std::span<const std::byte> plain = std::as_bytes(values);
  std::vector<std::byte> shuffled(plain.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t b = 0; b < 4; ++b) shuffled[b * values.size() + i] = plain[4 * i + b];
  }
  std::uint32_t low = 1;
  std::uint32_t high = 0;
  for (const std::byte byte : shuffled) {
    low = (low + std::to_integer<std::uint32_t>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  std::vector<std::byte> out = {std::byte{0x78}, std::byte{0x01}};
  const std::size_t n_blocks =
      std::max<std::size_t>(1 + variation % 5, (shuffled.size() + 65534) / 65535);
  const std::size_t step = (shuffled.size() + n_blocks - 1) / n_blocks;
  for (std::size_t at = 0; at < shuffled.size(); at += step) {
    const std::size_t n = std::min(step, shuffled.size() - at);
    out.push_back(std::byte(at + n == shuffled.size() ? 1 : 0));
    for (const std::size_t field : {n, ~n}) {
      out.push_back(std::byte(field & 255U));
      out.push_back(std::byte(field >> 8U & 255U));
    }
    out.insert(out.end(), shuffled.begin() + std::ptrdiff_t(at),
               shuffled.begin() + std::ptrdiff_t(at + n));
  }
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out.push_back(std::byte((high << 16U | low) >> shift));
  }
  return out;
}

float test_value(std::uint64_t index, unsigned salt) {
  return float((index * 2654435761U + salt * 40503U) % 1000003U);
}

std::vector<float> chunk_values(const ChunkGrid& grid, std::uint64_t chunk_index, unsigned salt) {
  const Box box = grid.full_box(chunk_index);
  std::vector<float> values;
  for_each_position(box, [&](const Shape& at) {
    std::uint64_t index = 0;
    bool inside = true;
    for (std::size_t d = 0; d < at.size(); ++d) {
      index = index * grid.shape[d] + at[d];
      inside = inside && at[d] < grid.shape[d];
    }
    values.push_back(inside ? test_value(index, salt) : 0.0F);
  });
  return values;
}

Status write_test_chunks(Hdf5File& file, Storage& storage, ScatteringTail& tail,
                         const std::string& path, const ChunkGrid& grid, bool filtered,
                         unsigned salt, bool insert_first) {
  std::vector<std::uint64_t> order(grid.n_chunks());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(salt + 1));
  std::vector<Hdf5File::ChunkRecord> records;
  std::vector<std::vector<std::byte>> pending;
  for (const std::uint64_t index : order) {
    const std::vector<float> values = chunk_values(grid, index, salt);
    // Every third chunk of a filtered dataset skips all filters, according to its mask.
    const bool skip = filtered && index % 3 == 2;
    const std::span<const std::byte> plain = std::as_bytes(std::span(values));
    std::vector<std::byte> bytes = filtered && !skip
                                       ? encode_stored(values, unsigned(index))
                                       : std::vector<std::byte>(plain.begin(), plain.end());
    records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, skip ? 3U : 0U});
    if (insert_first) {
      pending.push_back(std::move(bytes));
    } else {
      TAILRACE_TRY(storage.write_at(records.back().extent.address, bytes));
    }
  }
  TAILRACE_TRY(file.insert_chunks(path, records));
  for (std::size_t i = 0; i < pending.size(); ++i) {
    TAILRACE_TRY(storage.write_at(records[i].extent.address, pending[i]));
  }
  return Status();
}

std::optional<std::vector<float>> read_stock(const std::string& file, const std::string& dataset) {
  const Hdf5Scope scope;
  const Hdf5Id opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!opened.valid()) return {};
  const Hdf5Id data(H5Dopen2(opened.get(), dataset.c_str(), H5P_DEFAULT));
  if (!data.valid()) return {};
  const Hdf5Id space(H5Dget_space(data.get()));
  std::vector<float> values(std::size_t(H5Sget_simple_extent_npoints(space.get())), -1.0F);
  if (!values.empty() &&
      H5Dread(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    return {};
  }
  return values;
}

bool holds_test_values(const std::string& file, const std::string& dataset, unsigned salt,
                       std::optional<std::uint64_t> n) {
  const std::optional<std::vector<float>> values = read_stock(file, dataset);
  if (!values || values->size() < n.value_or(0)) return false;
  for (std::uint64_t i = 0; i < n.value_or(values->size()); ++i) {
    if ((*values)[i] != test_value(i, salt)) return false;
  }
  return true;
}

int run_tool(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int started = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status);
  return 128;
}

}  // namespace tailrace::test
