// Helpers of the tests of concatenate(): small inputs of every kind of storage, ranks as threads
// under a watchdog, and an oracle. The oracle is the inputs' rows, one after the other, as stock
// HDF5 reads them.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "concat/concat.hpp"
#include "concat_input_files.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "in_situ_support.hpp"

namespace tailrace::test {

// Time after which a hang ends the tests; sanitizers slow them down tenfold.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::seconds hang_limit(800);
#else
constexpr std::chrono::seconds hang_limit(100);
#endif

/// Ends the program if the ranks do not return, because a hanging thread cannot be joined.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, limit, [this] { return over_; })) return;
          std::fputs("the ranks hang\n", stderr);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

/// Creates a dataset and writes `values`: as many as the shape has, or fewer.
template <class T>
void put_values(hid_t file, const char* name, const Made& made, const std::vector<T>& values) {
  const hid_t dataset = make_dataset(file, name, made);
  if (!values.empty()) {
    H5Dwrite(dataset, made.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  H5Dclose(dataset);
}

template <class T>
std::vector<T> counting(std::uint64_t n, T first) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// The appended datasets of make_input(), in the order of the file.
inline const std::vector<std::string> input_paths = {"/a/table", "/a/x",     "/b/flags",
                                                     "/b/holes", "/b/plain", "/c"};

/// A dataset of 3 n values in chunks of 8 with a fill value; only the values of chunk 1 are
/// written.
inline void put_holes(hid_t group, std::uint64_t n, std::int32_t first) {
  const hsize_t extent = 3 * n;
  const hsize_t limit = H5S_UNLIMITED;
  const hsize_t chunk = 8;
  const std::int32_t fill = -7;
  const Hdf5Id space(H5Screate_simple(1, &extent, &limit));
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(list.get(), 1, &chunk);
  H5Pset_fill_value(list.get(), H5T_NATIVE_INT32, &fill);
  const Hdf5Id dataset(H5Dcreate2(group, "holes", H5T_NATIVE_INT32, space.get(), H5P_DEFAULT,
                                  list.get(), H5P_DEFAULT));
  const hsize_t start = 8;
  const hsize_t count = extent > start ? std::min<hsize_t>(extent - start, 8) : 0;
  if (count == 0) return;
  const Hdf5Id memory(H5Screate_simple(1, &count, nullptr));
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr);
  const std::vector<std::int32_t> values = counting(count, first);
  H5Dwrite(dataset.get(), H5T_NATIVE_INT32, memory.get(), space.get(), H5P_DEFAULT, values.data());
}

/// Input `number` of a list, with n rows in most datasets. They are chunked in one and in two
/// dimensions, with and without deflate, with holes, contiguous, compact, empty, and a scalar.
/// Deflated chunks have `scale` times 4 and 8 rows.
inline void make_input(const std::string& path, int number, std::uint64_t n,
                       std::uint64_t scale = 1) {
  make_file(path, [&](hid_t file) {
    const Hdf5Id a(H5Gcreate2(file, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id b(H5Gcreate2(file, "b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const auto first = std::int32_t{1000} * number;
    Made table{{n, 5}, {0, 5}, {4 * scale, 2}};
    table.deflate = true;
    put_values(a.get(), "table", table, counting(5 * n, first));
    Made x{{n}, {0}, {8 * scale}, H5T_NATIVE_DOUBLE};
    x.deflate = true;
    put_values(a.get(), "x", x, counting(n, 0.5 + first));
    Made flags{{4}, {}, {}, H5T_NATIVE_UINT8};
    flags.compact = true;
    put_values(b.get(), "flags", flags, counting(4, static_cast<std::uint8_t>(number)));
    put_holes(b.get(), n, first);
    Made plain{{2 * n}, {}, {}, H5T_NATIVE_INT16};
    put_values(b.get(), "plain", plain, counting(2 * n, static_cast<std::int16_t>(first)));
    put_values<std::int32_t>(file, "c", {{0}, {0}, {16}}, {});
    const Hdf5Id scalar(H5Screate(H5S_SCALAR));
    const Hdf5Id version(H5Dcreate2(file, "version", H5T_NATIVE_INT32, scalar.get(), H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(version.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &first);
  });
}

/// Creates inputs with these numbers of rows in `folder`.
inline std::vector<std::string> make_inputs(const TestFolder& folder,
                                            const std::vector<std::uint64_t>& rows,
                                            std::uint64_t scale = 1) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    paths.push_back(folder / ("in" + std::to_string(i) + ".h5"));
    make_input(paths.back(), static_cast<int>(i) + 1, rows[i], scale);
  }
  return paths;
}

/// All elements of a dataset in its own type, read with stock HDF5.
inline std::string read_elements(const std::string& file, const std::string& path) {
  const Hdf5Id opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id dataset(opened.valid() ? H5Dopen2(opened.get(), path.c_str(), H5P_DEFAULT) : -1);
  if (!dataset.valid()) {
    ADD_FAILURE() << file << " has no " << path;
    return {};
  }
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const auto n = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
  std::string bytes(n * H5Tget_size(type.get()), '\0');
  if (n == 0) return bytes;
  EXPECT_GE(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0)
      << file << " " << path;
  return bytes;
}

/// Expects `output` to have the rows of the inputs, one after the other, and the scalar of the
/// first.
inline void expect_concatenation(const std::string& output, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& paths = input_paths) {
  for (const std::string& path : paths) {
    std::string expected;
    for (const std::string& input : inputs) expected += read_elements(input, path);
    EXPECT_TRUE(read_elements(output, path) == expected) << output << " " << path;
  }
  if (&paths != &input_paths) return;
  EXPECT_EQ(read_elements(output, "/version"), read_elements(inputs.front(), "/version"));
}

/// A stored chunk of the output, as HDF5 reports it.
struct StoredAt {
  std::uint64_t address = 0;
  std::uint64_t n_bytes = 0;
};

/// The stored chunks of a dataset, in the order of their indices.
inline std::vector<StoredAt> stored_chunks(const std::string& file, const std::string& path) {
  const Hdf5Id opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id dataset(H5Dopen2(opened.get(), path.c_str(), H5P_DEFAULT));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  hsize_t n = 0;
  EXPECT_GE(H5Dget_num_chunks(dataset.get(), space.get(), &n), 0) << path;
  std::vector<StoredAt> chunks;
  for (hsize_t i = 0; i < n; ++i) {
    hsize_t offset[4] = {};
    unsigned mask = 0;
    haddr_t address = 0;
    hsize_t n_bytes = 0;
    H5Dget_chunk_info(dataset.get(), space.get(), i, offset, &mask, &address, &n_bytes);
    chunks.push_back({address, n_bytes});
  }
  return chunks;
}

/// A request for tests: no sync, and many small writes.
inline ConcatRequest small_request(std::vector<std::string> inputs, std::string output) {
  ConcatRequest request;
  request.inputs = std::move(inputs);
  request.output = std::move(output);
  request.options.sync = false;
  request.options.n_threads = 2;
  return request;
}

struct ConcatRun {
  Status status;
  ConcatReport report;  ///< Rank 0's.
};

/// Concatenates on ranks that are threads and expects the same result on all. `probes`: one per
/// rank, or none.
inline ConcatRun run_concat(int n_ranks, const ConcatRequest& request,
                            std::vector<StorageProbe>* probes = nullptr) {
  const Watchdog watchdog(hang_limit);
  std::vector<ConcatRun> runs(static_cast<std::size_t>(n_ranks));
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::size_t>(comm->rank());
    ConcatRequest mine = request;
    if (probes != nullptr) {
      StorageProbe& probe = (*probes)[rank];
      mine.options.open_storage = [&probe, open = request.options.open_storage](
                                      const std::string& name,
                                      bool create) -> Result<std::unique_ptr<Storage>> {
        Result<std::unique_ptr<Storage>> inner =
            open ? open(name, create) : open_posix_storage(name, create, false);
        if (!inner.ok()) return inner.status();
        return std::unique_ptr<Storage>(std::make_unique<ProbedStorage>(std::move(*inner), probe));
      };
    }
    Result<ConcatReport> report = concatenate(*comm, mine);
    runs[rank].status = report.status();
    if (report.ok()) runs[rank].report = std::move(*report);
  });
  const ConcatRun& first = runs.front();
  for (const ConcatRun& run : runs) {
    EXPECT_EQ(run.status.code(), first.status.code());
    EXPECT_EQ(run.status.message(), first.status.message());
    EXPECT_EQ(run.report.n_rows, first.report.n_rows);
    EXPECT_EQ(run.report.n_chunks, first.report.n_chunks);
    EXPECT_EQ(run.report.n_copied, first.report.n_copied);
    EXPECT_EQ(run.report.n_rounds, first.report.n_rounds);
    EXPECT_EQ(run.report.n_commits, first.report.n_commits);
    EXPECT_EQ(run.report.output_bytes, first.report.output_bytes);
    EXPECT_EQ(run.report.peak_bytes, first.report.peak_bytes);
  }
  return runs.front();
}

}  // namespace tailrace::test
