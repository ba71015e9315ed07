// Helpers of the container's tests: a temporary folder, a storage that records every write and
// fails on demand, handmade chunk bytes, and reading with stock HDF5.

#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/storage.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace::test {

/// A new folder; the destructor removes it with its contents.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// One operation on a storage, recorded by RecordingStorage.
struct Operation {
  enum class Kind : std::uint8_t { write, extend, sync };
  Kind kind = Kind::write;
  std::uint64_t address = 0;  ///< Write: the offset. Extend: the new length.
  std::vector<std::byte> bytes;
  std::string journal;        ///< The journal before this operation; empty if it does not exist.
  std::size_t n_commits = 0;  ///< Commits that had returned before this operation.
  bool committing = false;    ///< The operation is part of a commit.
};

/// A plain file that records operations and can fail from operation `fail_at` on.
class RecordingStorage final : public Storage {
 public:
  RecordingStorage(std::string path, bool keep_content);
  ~RecordingStorage() override;

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override;
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override;
  Result<std::uint64_t> file_bytes() override;
  Status extend(std::uint64_t n_bytes) override;
  Status sync() override;
  const std::string& path() const override { return path_; }

  bool recording = false;
  std::vector<Operation> operations;
  std::size_t n_commits = 0;           ///< Set by the test; copied into each operation.
  bool committing = false;             ///< Set by the test; copied into each operation.
  std::optional<std::size_t> fail_at;  ///< First operation that fails; all later ones fail, too.
  Code fail_code = Code::no_space;
  std::size_t n_operations = 0;
  std::size_t n_after_failure = 0;  ///< Operations requested after the failing one.

 private:
  Status count(Operation::Kind kind, std::uint64_t address, std::span<const std::byte> bytes);
  std::string path_;
  int fd_;
};

/// The shared end of the file, with an optional random gap before each allocation.
class ScatteringTail {
 public:
  explicit ScatteringTail(std::uint64_t start = 0, unsigned gap_max = 0)
      : next_(start), gap_max_(gap_max) {}
  std::uint64_t claim(std::uint64_t n_bytes);
  void reset(std::uint64_t address) { next_ = address; }
  std::uint64_t end() const { return next_; }
  Hdf5File::Allocate allocate() {
    return [this](std::uint64_t n_bytes) { return claim(n_bytes); };
  }

 private:
  std::uint64_t next_;
  unsigned gap_max_;
  std::mt19937 random_{7};
};

/// HDF5's shuffle + deflate pipeline as FilterSpecs.
std::vector<FilterSpec> shuffle_deflate(std::size_t element_bytes);
/// Bytes that the pipeline above decodes to `values`: shuffled, then a zlib stream of stored
/// blocks. `variation` changes the number of blocks and so the length.
std::vector<std::byte> encode_stored(std::span<const float> values, unsigned variation);

/// Deterministic contents of a dataset: element `index` of series `salt`.
float test_value(std::uint64_t index, unsigned salt);

/// The bytes of one chunk of a dataset of test values, edge chunks padded with zeros.
std::vector<float> chunk_values(const ChunkGrid& grid, std::uint64_t chunk_index, unsigned salt);

/// Writes all chunks of an existing dataset and inserts them in random order. `insert_first`:
/// inserts the index entry before writing the bytes.
Status write_test_chunks(Hdf5File& file, Storage& storage, ScatteringTail& tail,
                         const std::string& path, const ChunkGrid& grid, bool filtered,
                         unsigned salt, bool insert_first = false);

/// Reads a complete f32 dataset with stock HDF5 (sec2); nullopt if anything fails.
std::optional<std::vector<float>> read_stock(const std::string& file, const std::string& dataset);
/// True if the dataset reads as test values of this salt, for `n` elements (or all of its
/// elements).
bool holds_test_values(const std::string& file, const std::string& dataset, unsigned salt,
                       std::optional<std::uint64_t> n = {});

/// Runs a program and discards its output; returns the exit status, or -1 if it is not installed.
int run_tool(const std::vector<std::string>& arguments);

/// Message of `status`, for EXPECT texts.
inline std::string text_of(const Status& status) {
  return std::string(code_name(status.code())) + ": " + status.message();
}

}  // namespace tailrace::test

#define ASSERT_DONE(expression)                                  \
  do {                                                           \
    const ::tailrace::Status& done_ = (expression);              \
    ASSERT_TRUE(done_.ok()) << ::tailrace::test::text_of(done_); \
  } while (false)
