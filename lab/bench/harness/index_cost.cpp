// Inserts chunk records into an Hdf5File on a storage that discards its bytes.

#include "index_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/storage.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace::bench {
namespace {

constexpr std::uint64_t kEncodedBytes = 650'000;  // a chunk of 8 MiB at a ratio of 13

/// Storage that only counts bytes and reads as zeros; the benchmark writes metadata, never data.
class ScratchStorage final : public Storage {
 public:
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    n_bytes_ = std::max<std::uint64_t>(n_bytes_, address + bytes.size());
    n_written_ += bytes.size();
    return Status();
  }
  Status read_at(std::uint64_t, std::span<std::byte> bytes) override {
    std::memset(bytes.data(), 0, bytes.size());
    return Status();
  }
  Result<std::uint64_t> file_bytes() override { return n_bytes_; }
  Status extend(std::uint64_t n_bytes) override {
    n_bytes_ = std::max(n_bytes_, n_bytes);
    return Status();
  }
  Status sync() override { return Status(); }
  const std::string& path() const override { return path_; }
  std::uint64_t n_written() const { return n_written_; }

 private:
  std::string path_ = "scratch.h5";
  std::uint64_t n_bytes_ = 0;
  std::uint64_t n_written_ = 0;
};

class Stopwatch {
 public:
  /// Microseconds since the last call, per chunk.
  double lap_us(std::uint64_t n_chunks) {
    const auto now = std::chrono::steady_clock::now();
    const double us = std::chrono::duration<double, std::micro>(now - last_).count();
    last_ = now;
    return us / static_cast<double>(n_chunks);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Status insert_once(std::uint64_t n_chunks, bool growing, IndexCost& cost) {
  ScratchStorage storage;
  std::uint64_t end = 0;
  const auto claim = [&end](std::uint64_t n_bytes) {
    end += n_bytes;
    return end - n_bytes;
  };
  Hdf5File::Settings settings;
  settings.sync = false;
  Result<std::unique_ptr<Hdf5File>> created = Hdf5File::create(storage, claim, settings);
  if (!created.ok()) return created.status();
  Hdf5File& file = **created;

  DatasetDefinition dataset;
  dataset.path = "/field";
  dataset.shape = {n_chunks, 128, 128};
  dataset.chunk_shape = {1, 128, 128};
  dataset.extendable = growing;
  dataset.filters = {{1, 0, {6}, {6}, "deflate"}};
  TAILRACE_TRY(file.create_dataset(dataset));
  std::vector<Hdf5File::ChunkRecord> records;
  for (std::uint64_t i = 0; i < n_chunks; ++i) {
    // Sizes vary from chunk to chunk, like those of encoded chunks.
    const std::uint64_t n_bytes = kEncodedBytes + i % 1000;
    records.push_back({i, {claim(n_bytes), n_bytes}, 0});
  }
  Stopwatch watch;
  TAILRACE_TRY(file.insert_chunks(dataset.path, records));
  cost.insert_us.push_back(watch.lap_us(n_chunks));
  TAILRACE_TRY(file.commit());
  cost.commit_us = watch.lap_us(n_chunks);
  cost.metadata_bytes = static_cast<double>(storage.n_written()) / static_cast<double>(n_chunks);
  return file.close();
}

}  // namespace

double IndexCost::median_us() const {
  std::vector<double> sorted = insert_us;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
}

Result<std::vector<IndexCost>> measure_index_cost(std::uint64_t n_chunks, std::uint64_t n_repeats) {
  std::vector<IndexCost> costs(2);
  costs[0].index = "fixed shape";
  costs[1].index = "growing";
  for (std::uint64_t r = 0; r < n_repeats; ++r) {
    for (IndexCost& cost : costs) {
      TAILRACE_TRY(insert_once(n_chunks, cost.index == "growing", cost));
    }
  }
  return costs;
}

}  // namespace tailrace::bench
