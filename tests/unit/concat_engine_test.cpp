// concatenate() on 1 to 7 ranks. The output has the rows that stock HDF5 reads in the inputs, for
// any memory, layout, chunks and codec. Further tests cover copies, holes, places of chunks, keys,
// appending and resuming.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "concat_engine_support.hpp"
#include "output/output.hpp"
#include "write/write.hpp"

namespace tailrace::test {
namespace {

using testing::HasSubstr;

class ConcatEngine : public testing::TestWithParam<int> {
 protected:
  ConcatRun run(const ConcatRequest& request) {
    ConcatRun result = run_concat(GetParam(), request);
    EXPECT_TRUE(result.status.ok()) << text_of(result.status);
    EXPECT_FALSE(std::filesystem::exists(request.output + kPartialSuffix));
    return result;
  }

  const TestFolder folder_;
  const std::string output_ = folder_ / "out.h5";
};

INSTANTIATE_TEST_SUITE_P(Ranks, ConcatEngine, testing::Values(1, 2, 3, 4, 7),
                         [](const auto& test) { return std::to_string(test.param) + "ranks"; });

TEST_P(ConcatEngine, HasTheRowsOfAllInputs) {
  const std::vector<std::uint64_t> rows = {5, 16, 0, 23, 8, 1, 40};
  const auto inputs = make_inputs(folder_, rows);
  const ConcatRun result = run(small_request(inputs, output_));
  expect_concatenation(output_, inputs);
  const std::uint64_t n = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
  EXPECT_EQ(result.report.n_files, inputs.size());
  EXPECT_EQ(result.report.n_datasets, input_paths.size());
  EXPECT_EQ(result.report.n_empty, 1U);
  // table, x, holes, plain; flags.
  EXPECT_EQ(result.report.n_rows, n * (1 + 1 + 3 + 2) + 4 * rows.size());
  EXPECT_EQ(result.report.raw_bytes, n * (20 + 8 + 12 + 4) + 4 * rows.size());
  EXPECT_EQ(result.report.output_bytes, std::filesystem::file_size(output_));
}

TEST_P(ConcatEngine, OneFileOnAllRanks) {
  const auto inputs = make_inputs(folder_, {61});
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 4;
  run(request);
  expect_concatenation(output_, inputs);
}

TEST_P(ConcatEngine, InputsWithoutAnyRow) {
  const auto inputs = make_inputs(folder_, {0, 0});
  run(small_request(inputs, output_));
  expect_concatenation(output_, inputs);
}

/// Every combination of chunks, codec and layout with a separate path through decoding and
/// encoding.
TEST_P(ConcatEngine, OptionsDoNotChangeTheRows) {
  const auto inputs = make_inputs(folder_, {13, 24, 9});
  std::vector<ConcatRequest> requests(8, small_request(inputs, output_));
  requests[0].chunk_rows = 4;
  requests[1].chunk_rows = 7;
  requests[2].codec = "none";
  requests[2].chunk_bytes = 100;
  requests[3].codec = "deflate";
  requests[4].level = 9;
  requests[4].chunk_rows = 8;
  requests[5].plain_below_bytes = 1U << 30;
  requests[6].chunk_rows = 5;
  requests[6].options.field_defaults.layout = "dense";
  requests[7].chunk_rows = 3;
  requests[7].dedup = true;
  requests[7].options.n_threads = 1;
  for (ConcatRequest& request : requests) {
    request.options.replace = true;
    run(request);
    expect_concatenation(output_, inputs);
  }
}

/// Inputs that exceed the memory are read from their files, and the line is cut into rounds.
TEST_P(ConcatEngine, RoundsUnderLittleMemory) {
  const auto inputs = make_inputs(folder_, {1500, 1, 2000}, 8);
  for (const char* layout : {"claimed", "dense"}) {
    ConcatRequest request = small_request(inputs, output_);
    request.options.memory_bytes = 128U << 10;
    request.options.write_buffer_bytes = 500;
    request.options.field_defaults.layout = layout;
    request.options.replace = true;
    request.chunk_rows = 16;
    std::vector<std::uint64_t> progress;
    request.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.push_back(done);
      EXPECT_LE(done, total);
    };
    const ConcatRun result = run(request);
    expect_concatenation(output_, inputs);
    EXPECT_GE(result.report.n_rounds, 3U) << layout;
    EXPECT_EQ(progress.size(), result.report.n_rounds);
    EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
    // The lists of the inputs' chunks do not count towards the cap; a waiting batch does.
    EXPECT_LE(result.report.peak_bytes, 3 * request.options.memory_bytes);
  }
}

TEST_P(ConcatEngine, AChunkThatNeedsMoreMemoryIsAnError) {
  const auto inputs = make_inputs(folder_, {4000});
  ConcatRequest request = small_request(inputs, output_);
  request.options.memory_bytes = 128U << 10;
  const ConcatRun result = run_concat(GetParam(), request);
  EXPECT_EQ(result.status.code(), Code::invalid_argument);
  EXPECT_THAT(result.status.message(), HasSubstr("--memory"));
  EXPECT_FALSE(std::filesystem::exists(output_));
}

/// Layout dense: the chunks of a round are contiguous.
TEST_P(ConcatEngine, DenseHasNoGaps) {
  const auto inputs = make_inputs(folder_, {30, 31, 32});
  ConcatRequest request = small_request(inputs, output_);
  request.options.field_defaults.layout = "dense";
  request.options.write_buffer_bytes = 300;
  request.chunk_rows = 8;
  EXPECT_EQ(run(request).report.n_rounds, 1U);
  expect_concatenation(output_, inputs);
  std::map<std::uint64_t, std::uint64_t> chunks;
  for (const char* path : {"/a/table", "/a/x", "/b/flags", "/b/holes", "/b/plain"}) {
    for (const StoredAt& chunk : stored_chunks(output_, path)) {
      EXPECT_TRUE(chunks.emplace(chunk.address, chunk.n_bytes).second) << path;
    }
  }
  std::uint64_t next = chunks.begin()->first;
  for (const auto& [address, n_bytes] : chunks) {
    EXPECT_EQ(address, next);
    next = address + n_bytes;
  }
}

/// A dataset whose files end with full chunks is copied chunk by chunk. Its neighbour, whose chunk
/// shape differs in the second file, is encoded again.
TEST_P(ConcatEngine, CopiesChunksThatFit) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(folder_ / ("copy" + std::to_string(i) + ".h5"));
    make_file(inputs.back(), [&](hid_t file) {
      Made fits{{24}, {0}, {8}};
      fits.deflate = true;
      put_values(file, "fits", fits, counting(24, 1000 * i));
      Made other{{16}, {0}, {i == 1 ? 4U : 8U}};
      other.deflate = true;
      put_values(file, "other", other, counting(16, 1000 * i));
    });
  }
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 8;
  const ConcatRun result = run(request);
  EXPECT_EQ(result.report.n_chunks, 9U + 6U);
  EXPECT_EQ(result.report.n_copied, 9U + 4U);
  expect_concatenation(output_, inputs, {"/fits", "/other"});
  std::vector<StoredAt> stored = stored_chunks(output_, "/fits");
  ASSERT_EQ(stored.size(), 9U);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<StoredAt> before = stored_chunks(inputs[i], "/fits");
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(stored[3 * i + c].n_bytes, before[c].n_bytes);
  }
}

/// Complete chunks that were never written are not stored in the output either.
TEST_P(ConcatEngine, HolesStayHoles) {
  const auto inputs = make_inputs(folder_, {16, 16, 2});  // 48, 48 and 6 rows; 6 are no chunk 1
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 8;
  run(request);
  expect_concatenation(output_, inputs);
  EXPECT_EQ(stored_chunks(output_, "/b/holes").size(), 2U);
}

TEST_P(ConcatEngine, EqualChunksAreStoredOnce) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(folder_ / ("same" + std::to_string(i) + ".h5"));
    make_file(inputs.back(), [](hid_t file) {
      put_values(file, "d", {{64}, {0}, {8}}, std::vector<std::int32_t>(64, 3));
    });
  }
  for (const char* layout : {"claimed", "dense"}) {
    ConcatRequest request = small_request(inputs, output_);
    request.chunk_rows = 8;
    request.codec = "deflate";  // Chunks are shared only with filters.
    request.dedup = true;
    request.options.replace = true;
    request.options.field_defaults.layout = layout;
    const ConcatRun result = run(request);
    expect_concatenation(output_, inputs, {"/d"});
    // Each rank with chunks stores one copy.
    const auto n_ranks = static_cast<std::uint64_t>(GetParam());
    EXPECT_GE(result.report.n_shared, 32 - std::min<std::uint64_t>(n_ranks, 32)) << layout;
    EXPECT_LT(result.report.n_shared, 32U);
    std::map<std::uint64_t, int> addresses;
    for (const StoredAt& chunk : stored_chunks(output_, "/d")) ++addresses[chunk.address];
    EXPECT_EQ(addresses.size(), 32 - result.report.n_shared);
  }
}

/// Variable-length strings, which only HDF5 can move.
TEST_P(ConcatEngine, RowsThatPointElsewhere) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(folder_ / ("text" + std::to_string(i) + ".h5"));
    make_file(inputs.back(), [&](hid_t file) {
      const Hdf5Id type(H5Tcopy(H5T_C_S1));
      H5Tset_size(type.get(), H5T_VARIABLE);
      const std::string text = "row of file " + std::to_string(i);
      const std::vector<const char*> rows(static_cast<std::size_t>(i) + 1, text.c_str());
      put_values(file, "names", {{rows.size()}, {0}, {2}, type.get()}, rows);
      put_values(file, "d", {{4}, {0}, {8}}, counting(4, i));
    });
  }
  run(small_request(inputs, output_));
  expect_concatenation(output_, inputs, {"/d"});
  const Hdf5Id file(H5Fopen(output_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id names(H5Dopen2(file.get(), "/names", H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(names.get()));
  const Hdf5Id space(H5Dget_space(names.get()));
  ASSERT_EQ(H5Sget_simple_extent_npoints(space.get()), 6);
  std::vector<char*> rows(6);
  ASSERT_GE(H5Dread(names.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), 0);
  const char* const of_file[] = {"0", "1", "1", "2", "2", "2"};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_STREQ(rows[r], (std::string("row of file ") + of_file[r]).c_str());
  }
  H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, rows.data());
}

/// Creates inputs with events: file i has `events[i]` events; event e has e % 3 hits.
std::vector<std::string> make_event_inputs(const TestFolder& folder,
                                           const std::vector<std::int32_t>& events) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < events.size(); ++i) {
    inputs.push_back(folder / ("events" + std::to_string(i) + ".h5"));
    std::map<std::string, std::vector<std::int32_t>> columns[2];
    for (std::int32_t e = 0; e < events[i]; ++e) {
      for (std::int32_t row = 0; row < 1 + e % 3; ++row) {
        auto& group = columns[row == 0 ? 0 : 1];  // The first row goes to /spill.
        group["run"].push_back(static_cast<std::int32_t>(i));
        group["evt"].push_back(100 - e);
      }
    }
    make_file(inputs.back(), [&](hid_t file) {
      const char* const names[] = {"spill", "hits"};
      for (int g = 0; g < 2; ++g) {
        const Hdf5Id group(H5Gcreate2(file, names[g], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        for (const char* name : {"run", "evt"}) {
          const std::vector<std::int32_t>& values = columns[g][name];
          put_values(group.get(), name, {{values.size(), 1}, {0, 1}, {4, 1}}, values);
        }
      }
    });
  }
  return inputs;
}

std::vector<std::int64_t> read_keys(const std::string& file, const std::string& path) {
  const std::string bytes = read_elements(file, path);
  std::vector<std::int64_t> keys(bytes.size() / sizeof(std::int64_t));
  if (!keys.empty()) std::memcpy(keys.data(), bytes.data(), bytes.size());
  return keys;
}

/// Expects the keys of `output` to follow their definition: events in the order of /spill, looked
/// up row by row.
void expect_keys(const std::string& output) {
  const auto column = [&](const std::string& path) {
    const std::string bytes = read_elements(output, path);
    std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> numbers;
  for (const std::string group : {"/spill", "/hits"}) {
    const std::vector<std::int32_t> runs = column(group + "/run");
    const std::vector<std::int32_t> events = column(group + "/evt");
    std::vector<std::int64_t> expected;
    for (std::size_t row = 0; row < runs.size(); ++row) {
      const auto next = static_cast<std::int64_t>(numbers.size());
      expected.push_back(numbers.try_emplace({runs[row], events[row]}, next).first->second);
    }
    EXPECT_EQ(read_keys(output, group + "/evt.seq"), expected) << group;
  }
}

TEST_P(ConcatEngine, KeysNumberTheEventsOfAllFiles) {
  const auto inputs = make_event_inputs(folder_, {7, 0, 12, 5});
  ConcatRequest request = small_request(inputs, output_);
  request.key_names = {"run", "evt"};
  request.chunk_rows = 6;
  run(request);
  expect_keys(output_);
  expect_concatenation(output_, inputs, {"/spill/evt", "/hits/evt", "/hits/run"});

  // More files: their events are numbered after the existing ones.
  const auto more = make_event_inputs(folder_, {0, 0, 0, 0, 9, 4});
  request.inputs = {more[4], more[5]};
  request.append = true;
  run(request);
  expect_keys(output_);
  EXPECT_EQ(read_keys(output_, "/spill/evt.seq").back(), 7 + 12 + 5 + 9 + 4 - 1);
}

/// Appending in three steps gives the same rows as one step; full chunks keep their places.
TEST_P(ConcatEngine, AppendsToAnOutput) {
  const auto inputs = make_inputs(folder_, {13, 24, 9, 0, 17});
  for (const char* layout : {"claimed", "dense"}) {
    ConcatRequest request = small_request({inputs[0]}, output_);
    request.options.replace = true;
    request.options.field_defaults.layout = layout;
    request.chunk_rows = 8;
    run(request);
    const std::vector<StoredAt> before = stored_chunks(output_, "/a/x");
    request.append = true;
    request.inputs = {inputs[1], inputs[2]};
    run(request);
    EXPECT_EQ(stored_chunks(output_, "/a/x").front().address, before.front().address);
    request.inputs = {inputs[3], inputs[4]};
    run(request);
    expect_concatenation(output_, inputs);
  }
}

TEST_P(ConcatEngine, AppendsToAFileOfStockHdf5) {
  const auto inputs = make_inputs(folder_, {10, 20});
  std::filesystem::copy_file(inputs[0], output_);
  ConcatRequest request = small_request({inputs[1]}, output_);
  request.append = true;
  run(request);
  expect_concatenation(output_, inputs);
}

TEST_P(ConcatEngine, NothingToResumeStartsAnew) {
  const auto inputs = make_inputs(folder_, {10, 20});
  ConcatRequest request = small_request(inputs, output_);
  request.resume = true;
  const ConcatRun result = run(request);
  expect_concatenation(output_, inputs);
  ASSERT_FALSE(result.report.remarks.empty());
  EXPECT_THAT(result.report.remarks.front(), HasSubstr("started from the beginning"));
}

/// A failing storage leaves all committed data; the next run writes less.
TEST_P(ConcatEngine, ResumesBehindTheLastCommit) {
  const auto inputs = make_inputs(folder_, {6000, 7000}, 16);
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 64;
  request.options.memory_bytes = 96U << 10;
  request.commit_interval_s = 0;
  std::vector<StorageProbe> probes(static_cast<std::size_t>(GetParam()));
  request.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (4 * done >= 3 * total) probes[0].fail_other = true;
  };
  const ConcatRun failed = run_concat(GetParam(), request, &probes);
  EXPECT_EQ(failed.status.code(), Code::no_space) << text_of(failed.status);
  EXPECT_THAT(failed.status.message(), HasSubstr("--resume"));
  ASSERT_TRUE(std::filesystem::exists(output_ + kPartialSuffix));

  ConcatRequest other = request;
  other.progress = nullptr;
  other.resume = true;
  other.chunk_rows = 65;
  const ConcatRun refused = run_concat(GetParam(), other);
  EXPECT_EQ(refused.status.code(), Code::invalid_argument);
  EXPECT_THAT(refused.status.message(), HasSubstr("to another request"));
  ASSERT_TRUE(std::filesystem::exists(output_ + kPartialSuffix));

  request.progress = nullptr;
  request.resume = true;
  const ConcatRun resumed = run(request);
  expect_concatenation(output_, inputs);
  const std::string remark = resumed.report.remarks.empty() ? "" : resumed.report.remarks.front();
  EXPECT_THAT(remark, HasSubstr("resumed after"));
  EXPECT_THAT(remark, testing::Not(HasSubstr("behind 0 ")));
  request.resume = false;
  request.options.replace = true;
  EXPECT_LT(resumed.report.n_chunks, run(request).report.n_chunks);
}

/// Writes a byte of a file again, and restores its length and modification time.
void write_in_place(const std::string& path) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // File timestamps are coarse.
  const auto before = std::filesystem::last_write_time(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = char(file.get());
  file.seekp(-1, std::ios::end);
  file.put(last);
  file.close();
  std::filesystem::last_write_time(path, before);
}

/// An output made from two states of an input would match neither.
TEST_P(ConcatEngine, ResumeRefusesInputsThatWereWritten) {
  const auto inputs = make_inputs(folder_, {6000, 7000}, 16);
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 64;
  request.options.memory_bytes = 96U << 10;
  request.commit_interval_s = 0;
  std::vector<StorageProbe> probes(static_cast<std::size_t>(GetParam()));
  request.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (4 * done >= 3 * total) probes[0].fail_other = true;
  };
  ASSERT_FALSE(run_concat(GetParam(), request, &probes).status.ok());
  ASSERT_TRUE(std::filesystem::exists(output_ + kPartialSuffix));
  write_in_place(inputs[1]);
  request.progress = nullptr;
  request.resume = true;
  const ConcatRun refused = run_concat(GetParam(), request);
  EXPECT_EQ(refused.status.code(), Code::invalid_argument);
  EXPECT_THAT(refused.status.message(), HasSubstr("changed since: " + inputs[1]));
  request.resume = false;
  run(request);
  expect_concatenation(output_, inputs);
}

TEST_P(ConcatEngine, AnInputThatIsWrittenMeanwhileIsAnError) {
  const auto inputs = make_inputs(folder_, {600, 700});
  ConcatRequest request = small_request(inputs, output_);
  bool first = true;
  request.progress = [&](std::uint64_t, std::uint64_t) {
    if (std::exchange(first, false)) write_in_place(inputs[1]);
  };
  const ConcatRun changed = run_concat(GetParam(), request);
  EXPECT_EQ(changed.status.code(), Code::corrupt);
  EXPECT_THAT(changed.status.message(), HasSubstr("\"" + inputs[1] + "\" has been changed"));
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_FALSE(std::filesystem::exists(output_ + kPartialSuffix));
}

TEST_P(ConcatEngine, BadFilesAreNamedTogetherOrLeftOut) {
  auto inputs = make_inputs(folder_, {5, 6, 7, 8});
  std::ofstream(inputs[1]) << "no HDF5 file at all";
  std::filesystem::remove(inputs[2]);
  ConcatRequest request = small_request(inputs, output_);
  const ConcatRun stopped = run_concat(GetParam(), request);
  EXPECT_FALSE(stopped.status.ok());
  EXPECT_THAT(stopped.status.message(), HasSubstr("2 of 4 inputs"));
  EXPECT_THAT(stopped.status.message(), HasSubstr(inputs[1]));
  EXPECT_THAT(stopped.status.message(), HasSubstr(inputs[2]));
  EXPECT_FALSE(std::filesystem::exists(output_));
  request.on_error = OnError::skip;
  const ConcatRun skipped = run(request);
  EXPECT_EQ(skipped.report.skipped.size(), 2U);
  EXPECT_EQ(skipped.report.n_files, 2U);
  expect_concatenation(output_, {inputs[0], inputs[3]});
}

/// Damage within a chunk is found after rows have got their places. The run starts again without
/// the damaged file.
TEST_P(ConcatEngine, DamageThatIsFoundLateIsLeftOutWhole) {
  const auto inputs = make_inputs(folder_, {70, 30, 90, 50}, 4);
  for (const std::size_t damaged : {1U, 2U}) {
    const StoredAt chunk = stored_chunks(inputs[damaged], "/a/x").back();
    std::fstream file(inputs[damaged], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(chunk.address));
    file << std::string(chunk.n_bytes, '\xff');
  }
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 16;
  const ConcatRun stopped = run_concat(GetParam(), request);
  EXPECT_EQ(stopped.status.code(), Code::corrupt);
  EXPECT_THAT(stopped.status.message(), HasSubstr("dataset \"/a/x\""));
  request.on_error = OnError::skip;
  const ConcatRun skipped = run(request);
  EXPECT_EQ(skipped.report.n_files, 2U);
  ASSERT_EQ(skipped.report.skipped.size(), 2U);
  for (const std::size_t damaged : {1U, 2U}) {
    EXPECT_THAT(skipped.report.skipped, testing::Contains(HasSubstr(inputs[damaged])));
  }
  expect_concatenation(output_, {inputs[0], inputs[3]});
}

/// If a column lacks a row in one file, its later rows do not match the other columns of its group.
TEST_P(ConcatEngine, ColumnsThatDriftApartAreNamed) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 5; ++i) {
    inputs.push_back(folder_ / ("in" + std::to_string(i) + ".h5"));
    make_file(inputs.back(), [&](hid_t file) {
      const Hdf5Id group(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      for (const char* name : {"a", "b", "c"}) {
        const std::uint64_t n = i == 3 && *name == 'b' ? 9 : 10 + static_cast<std::uint64_t>(i);
        put_values(group.get(), name, Made{{n}, {0}, {8}}, counting(n, std::int32_t{0}));
      }
      // Its number of rows never equals that of the columns, so no match is expected.
      put_values(group.get(), "other", Made{{2}, {0}, {8}}, counting(2, std::int32_t{0}));
    });
  }
  const ConcatRun result = run(small_request(inputs, output_));
  EXPECT_EQ(result.report.n_uneven, 1U);
  EXPECT_THAT(
      result.report.remarks,
      testing::ElementsAre(inputs[3] +
                           ": dataset \"/g/b\" has 9 rows, other datasets of its group have 13"));
}

/// Bytes written after the last commit are useless for a resumed run.
TEST_P(ConcatEngine, ResumingCutsOffWhatWasNotCommitted) {
  const auto inputs = make_inputs(folder_, {6000, 7000}, 16);
  ConcatRequest request = small_request(inputs, output_);
  request.chunk_rows = 64;
  request.options.memory_bytes = 96U << 10;
  request.commit_interval_s = 0;
  run(request);
  const auto n_bytes = std::filesystem::file_size(output_);
  std::filesystem::remove(output_);
  std::vector<StorageProbe> probes(static_cast<std::size_t>(GetParam()));
  request.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (4 * done >= 3 * total) probes[0].fail_other = true;
  };
  ASSERT_FALSE(run_concat(GetParam(), request, &probes).status.ok());
  const std::string partial = output_ + kPartialSuffix;
  std::filesystem::resize_file(partial, std::filesystem::file_size(partial) + 10 * n_bytes);
  request.progress = nullptr;
  request.resume = true;
  run(request);
  expect_concatenation(output_, inputs);
  EXPECT_LT(std::filesystem::file_size(output_), 2 * n_bytes);
}

/// Even if memory suffices for one round, the run must make commits in between.
TEST(ConcatRounds, LeaveTimeForCommits) {
  const TestFolder folder;
  const auto inputs = make_inputs(folder, {150000, 150000}, 1000);
  ConcatRequest request = small_request(inputs, folder / "out.h5");
  request.commit_interval_s = 0;
  const ConcatRun often = run_concat(1, request);
  ASSERT_TRUE(often.status.ok()) << text_of(often.status);
  EXPECT_GT(often.report.n_commits, 2U);
  request.commit_interval_s = 1e6;
  request.options.replace = true;
  const ConcatRun once = run_concat(1, request);
  EXPECT_EQ(once.report.n_commits, 1U);
  EXPECT_LE(once.report.n_rounds, 2U);
  expect_concatenation(request.output, inputs);
}

TEST_P(ConcatEngine, RequestsThatCannotBe) {
  const auto inputs = make_inputs(folder_, {5});
  const std::string older = folder_ / "older.h5";
  std::ofstream(older) << "an older file";
  const auto code_of = [&](auto&& change) {
    ConcatRequest request = small_request(inputs, output_);
    change(request);
    return run_concat(GetParam(), request).status.code();
  };
  EXPECT_EQ(code_of([](ConcatRequest& r) { r.inputs.clear(); }), Code::invalid_argument);
  EXPECT_EQ(code_of([](ConcatRequest& r) { r.append = r.resume = true; }), Code::invalid_argument);
  EXPECT_EQ(code_of([](ConcatRequest& r) { r.append = true; }), Code::not_found);
  EXPECT_EQ(code_of([&](ConcatRequest& r) { r.output = older; }), Code::already_exists);
  EXPECT_EQ(code_of([&](ConcatRequest& r) {
              r.output = inputs[0];
              r.options.replace = true;
            }),
            Code::invalid_argument);
  EXPECT_EQ(code_of([](ConcatRequest& r) { r.codec = "sz3"; }), Code::unsupported);
  EXPECT_EQ(code_of([](ConcatRequest& r) { r.key_names = {"run"}; }), Code::not_found);
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_FALSE(std::filesystem::exists(output_ + kPartialSuffix));
  EXPECT_EQ(read_elements(inputs[0], "/a/x").size(), 5 * sizeof(double));
}

}  // namespace
}  // namespace tailrace::test
