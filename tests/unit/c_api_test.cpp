// The C API in one process: versions, names, NULLs, default boxes, reports, error texts.
//
// Tests with several ranks are in tests/mpi/api_*_test.cpp. Only the public header is used here.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tailrace/tailrace.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

class CApi : public testing::Test {
 protected:
  CApi() {
    std::string pattern = (std::filesystem::temp_directory_path() / "c_api_XXXXXX").string();
    folder_ = mkdtemp(pattern.data()) == nullptr ? "" : pattern;
    path_ = folder_ + "/out.h5";
  }
  ~CApi() override {
    tailrace_file_abandon(file_);
    std::filesystem::remove_all(folder_);
  }

  tailrace_file* create(const char* options = nullptr) {
    EXPECT_EQ(tailrace_file_create(path_.c_str(), TAILRACE_SERIAL, options, &file_), TAILRACE_OK)
        << tailrace_thread_error();
    return file_;
  }
  tailrace_field define(const char* name, const std::vector<std::uint64_t>& shape,
                        const char* options = nullptr) {
    tailrace_field field = TAILRACE_NO_FIELD;
    EXPECT_EQ(tailrace_field_define(file_, name, TAILRACE_F32, shape.size(), shape.data(), options,
                                    &field),
              TAILRACE_OK)
        << tailrace_file_error(file_);
    return field;
  }
  tailrace_error close() {
    tailrace_file* file = file_;
    file_ = nullptr;
    return tailrace_file_close(file);
  }

  std::string folder_;
  std::string path_;
  tailrace_file* file_ = nullptr;
};

TEST_F(CApi, VersionsOfHeaderAndLibraryAgree) {
  EXPECT_EQ(tailrace_version_number(), TAILRACE_VERSION_NUMBER);
  EXPECT_STREQ(tailrace_version_string(), TAILRACE_VERSION_STRING);
  EXPECT_EQ(std::to_string(TAILRACE_VERSION_MAJOR) + "." + std::to_string(TAILRACE_VERSION_MINOR) +
                "." + std::to_string(TAILRACE_VERSION_PATCH),
            TAILRACE_VERSION_STRING);
}

TEST_F(CApi, NamesOfErrorsAndSizesOfTypes) {
  EXPECT_STREQ(tailrace_error_name(TAILRACE_OK), "ok");
  EXPECT_STREQ(tailrace_error_name(TAILRACE_ERROR_BAD_COVERAGE), "bad_coverage");
  EXPECT_STREQ(tailrace_error_name(TAILRACE_ERROR_INTERNAL), "internal");
  EXPECT_STREQ(tailrace_error_name(static_cast<tailrace_error>(15)), "unknown");
  EXPECT_EQ(tailrace_dtype_bytes(TAILRACE_F64), 8U);
  EXPECT_EQ(tailrace_dtype_bytes(TAILRACE_U8), 1U);
  EXPECT_EQ(tailrace_dtype_bytes(static_cast<tailrace_dtype>(0)), 0U);
  EXPECT_EQ(tailrace_dtype_bytes(static_cast<tailrace_dtype>(11)), 0U);
}

TEST_F(CApi, ANullFileIsRefusedEverywhere) {
  const std::uint64_t shape[1] = {1};
  const std::int64_t number = 1;
  const double real = 1;
  tailrace_field field = 0;
  const tailrace_step_report* report = nullptr;
  const auto refused = TAILRACE_ERROR_INVALID_ARGUMENT;
  EXPECT_EQ(tailrace_file_close(nullptr), refused);
  EXPECT_EQ(tailrace_file_end_step(nullptr, &report), refused);
  EXPECT_EQ(tailrace_field_define(nullptr, "/f", TAILRACE_F32, 1, shape, nullptr, &field), refused);
  EXPECT_EQ(field, TAILRACE_NO_FIELD);
  EXPECT_EQ(tailrace_field_put(nullptr, 0, nullptr, nullptr, &real), refused);
  EXPECT_EQ(tailrace_field_put_copy(nullptr, 0, nullptr, nullptr, &real), refused);
  EXPECT_EQ(tailrace_attribute_set_text(nullptr, "/", "a", "b"), refused);
  EXPECT_EQ(tailrace_attribute_set_i64(nullptr, "/", "a", 1, &number), refused);
  EXPECT_EQ(tailrace_attribute_set_f64(nullptr, "/", "a", 1, &real), refused);
  EXPECT_EQ(tailrace_file_on_progress(nullptr, nullptr, nullptr), refused);
  EXPECT_EQ(tailrace_file_on_log(nullptr, nullptr, nullptr), refused);
  EXPECT_STREQ(tailrace_thread_error(),
               "the file is not open: it is closed, or create or open has failed (NULL)");
  EXPECT_STREQ(tailrace_file_error(nullptr), "the file is NULL");
  tailrace_file_abandon(nullptr);
}

TEST_F(CApi, NullArgumentsAreRefused) {
  const auto refused = TAILRACE_ERROR_INVALID_ARGUMENT;
  EXPECT_EQ(tailrace_file_create(path_.c_str(), TAILRACE_SERIAL, nullptr, nullptr), refused);
  EXPECT_EQ(tailrace_file_create(nullptr, TAILRACE_SERIAL, nullptr, &file_), refused);
  EXPECT_EQ(tailrace_file_create("", TAILRACE_SERIAL, nullptr, &file_), refused);
  EXPECT_EQ(tailrace_file_open(nullptr, TAILRACE_SERIAL, nullptr, &file_), refused);
  create();
  tailrace_field field = 0;
  const std::uint64_t shape[1] = {1};
  EXPECT_EQ(tailrace_field_define(file_, nullptr, TAILRACE_F32, 1, shape, "", &field), refused);
  EXPECT_EQ(tailrace_field_define(file_, "/f", TAILRACE_F32, 1, nullptr, "", &field), refused);
  EXPECT_EQ(tailrace_field_define(file_, "/f", TAILRACE_F32, 1, shape, "", nullptr), refused);
  EXPECT_EQ(
      tailrace_field_define(file_, "/f", TAILRACE_F32, TAILRACE_RANK_MAX + 1, shape, "", &field),
      refused);
  EXPECT_EQ(tailrace_attribute_set_text(file_, "/", "a", nullptr), refused);
  EXPECT_EQ(tailrace_attribute_set_text(file_, "/", nullptr, "b"), refused);
  EXPECT_EQ(tailrace_attribute_set_f64(file_, "/", "a", 0, nullptr), refused);
  EXPECT_NE(std::string(tailrace_file_error(file_)).find("\"a\""), std::string::npos);
}

TEST_F(CApi, TextsOfFailures) {
  EXPECT_EQ(
      tailrace_file_create((folder_ + "/no/out.h5").c_str(), TAILRACE_SERIAL, nullptr, &file_),
      TAILRACE_ERROR_NOT_FOUND);
  EXPECT_EQ(file_, nullptr);
  EXPECT_NE(std::string(tailrace_thread_error()).find("/no/out.h5"), std::string::npos);

  EXPECT_EQ(tailrace_file_create(path_.c_str(), TAILRACE_SERIAL, "threads=many", &file_),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tailrace_thread_error()).find("threads=many"), std::string::npos);

  create();
  EXPECT_STREQ(tailrace_file_error(file_), "");
  tailrace_field field = 0;
  EXPECT_EQ(tailrace_field_define(file_, "/f", TAILRACE_F32, 0, nullptr, "bound=abs=0", &field),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(field, TAILRACE_NO_FIELD);
  EXPECT_NE(std::string(tailrace_file_error(file_)).find("/f"), std::string::npos);
  EXPECT_STREQ(tailrace_thread_error(), tailrace_file_error(file_));
}

TEST_F(CApi, RecoverRepairsWhatAKilledJobLeft) {
  const std::string partial = path_ + ".partial";
  const auto recovered = [&] {
    int exists = -1;
    EXPECT_EQ(tailrace_file_recover(path_.c_str(), TAILRACE_SERIAL, &exists), TAILRACE_OK)
        << tailrace_thread_error();
    return exists;
  };
  EXPECT_EQ(recovered(), 0);  // Nothing was started.
  std::ofstream(partial) << std::string(1000, '\0');
  EXPECT_EQ(recovered(), 0);  // A job without a commit.
  EXPECT_FALSE(std::filesystem::exists(partial));
  create();
  const float value = 1;
  EXPECT_EQ(tailrace_field_put(file_, define("/f", {1}), nullptr, nullptr, &value), TAILRACE_OK);
  EXPECT_EQ(close(), TAILRACE_OK);
  EXPECT_EQ(recovered(), 1);
  std::filesystem::rename(path_, partial);  // The first commit, without the renaming.
  EXPECT_EQ(recovered(), 1);
  EXPECT_FALSE(std::filesystem::exists(partial));
  std::ofstream(path_ + ".journal") << "TRJOURN1";  // A commit that had not begun to write.
  EXPECT_EQ(recovered(), 1);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".journal"));
  EXPECT_EQ(tailrace_file_open(path_.c_str(), TAILRACE_SERIAL, nullptr, &file_), TAILRACE_OK);
  EXPECT_EQ(close(), TAILRACE_OK);
}

TEST_F(CApi, RecoverReportsWhatItCannotRepair) {
  const auto refused = TAILRACE_ERROR_INVALID_ARGUMENT;
  int exists = 1;
  EXPECT_EQ(tailrace_file_recover(path_.c_str(), TAILRACE_SERIAL, nullptr), refused);
  EXPECT_EQ(tailrace_file_recover(nullptr, TAILRACE_SERIAL, &exists), refused);
  EXPECT_EQ(tailrace_file_recover("", TAILRACE_SERIAL, &exists), refused);
  EXPECT_EQ(exists, 0);
  create();
  const std::vector<float> values(10000, 1.5F);
  const tailrace_field field = define("/f", {10000}, "codec=none");
  EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_file_end_step(file_, nullptr), TAILRACE_OK);
  const tailrace_error open = tailrace_file_recover(path_.c_str(), TAILRACE_SERIAL, &exists);
  EXPECT_EQ(open, TAILRACE_ERROR_IO);  // The header promises it, also where nothing remains.
  EXPECT_EQ(exists, 0);
  std::ofstream(path_ + ".journal") << "TRJOURN1";
  EXPECT_EQ(tailrace_file_recover(path_.c_str(), TAILRACE_SERIAL, &exists), TAILRACE_ERROR_IO);
  std::filesystem::remove(path_ + ".journal");
  EXPECT_EQ(close(), TAILRACE_OK);
  std::filesystem::rename(path_, path_ + ".partial");
  std::filesystem::resize_file(path_ + ".partial", 20000);
  EXPECT_EQ(tailrace_file_recover(path_.c_str(), TAILRACE_SERIAL, &exists), TAILRACE_ERROR_CORRUPT);
  EXPECT_EQ(exists, 0);
  EXPECT_NE(std::string(tailrace_thread_error()).find("/f"), std::string::npos)
      << tailrace_thread_error();
}

/// A launcher has started two ranks, which have not called MPI_Init: each is alone.
TEST_F(CApi, RanksThatHaveNotCalledMpiInitAreNamed) {
  const char strange[3] = {1, 2, 3};
  EXPECT_EQ(tailrace_file_create(path_.c_str(), strange, sizeof strange, nullptr, &file_),
            TAILRACE_ERROR_UNSUPPORTED);
  const bool has_mpi =
      std::string(tailrace_thread_error()).find("without MPI") == std::string::npos;
  create();
  for (const char* launched : {"1", "2"}) {
    setenv("OMPI_COMM_WORLD_SIZE", launched, 1);
    tailrace_file* other = nullptr;
    EXPECT_NE(tailrace_file_create(path_.c_str(), TAILRACE_SERIAL, nullptr, &other), TAILRACE_OK);
    const std::string text = tailrace_thread_error();
    unsetenv("OMPI_COMM_WORLD_SIZE");
    const bool is_named =
        text.find("MPI_Init has not been called yet on 2 ranks") != std::string::npos;
    EXPECT_EQ(is_named, has_mpi && *launched == '2') << text;
  }
}

TEST_F(CApi, AHandleOfAnotherMpiIsRefused) {
  const char strange[3] = {1, 2, 3};
  EXPECT_EQ(tailrace_file_create(path_.c_str(), strange, sizeof strange, nullptr, &file_),
            TAILRACE_ERROR_UNSUPPORTED);
  EXPECT_EQ(file_, nullptr);
}

TEST_F(CApi, BoxesByDefault) {
  create("holes=on");
  const tailrace_field whole = define("/whole", {3, 4});
  const tailrace_field rest = define("/rest", {3, 4});
  const tailrace_field corner = define("/corner", {3, 4});
  const std::vector<float> values(12, 1.5F);
  const std::uint64_t start[2] = {1, 2};
  const std::uint64_t count[2] = {2, 2};
  const std::uint64_t none[2] = {0, 4};
  EXPECT_EQ(tailrace_field_put(file_, whole, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_field_put(file_, rest, start, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_field_put(file_, corner, nullptr, count, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_field_put(file_, corner, start, none, nullptr), TAILRACE_OK);
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
}

TEST_F(CApi, ReportsPointIntoTheFile) {
  create("codec=portable,verify=on");
  std::vector<float> values(100 * 50);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.01F * static_cast<float>(i);
  const tailrace_field a = define("/a", {100, 50}, "bound=abs=0.25");
  const tailrace_field b = define("/group/b", {100, 50}, "bound=rel=1e-2");
  EXPECT_EQ(tailrace_field_put(file_, a, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_field_put_copy(file_, b, nullptr, nullptr, values.data()), TAILRACE_OK);
  const tailrace_step_report* report = nullptr;
  ASSERT_EQ(tailrace_file_end_step(file_, &report), TAILRACE_OK) << tailrace_file_error(file_);
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->struct_bytes, sizeof *report);
  EXPECT_EQ(report->step_index, 0U);
  EXPECT_EQ(report->raw_bytes, 2 * values.size() * sizeof(float));
  EXPECT_GT(report->ratio, 1);
  ASSERT_EQ(report->n_fields, 2U);
  EXPECT_EQ(report->fields[0]->struct_bytes, sizeof *report->fields[0]);
  EXPECT_EQ(report->fields[0]->field, a);
  EXPECT_STREQ(report->fields[0]->path, "/a");
  EXPECT_STREQ(report->fields[0]->bound, "abs=0.25");
  EXPECT_STREQ(report->fields[1]->bound, "rel=0.01");
  EXPECT_STREQ(report->fields[1]->codec, "portable");
  EXPECT_EQ(report->fields[1]->field, b);
  EXPECT_EQ(report->fields[1]->verified, 1);
  EXPECT_GT(report->fields[1]->max_error, 0);
  EXPECT_LE(report->fields[1]->max_error, report->fields[1]->absolute_bound);
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
}

TEST_F(CApi, AStepThatIsPlannedReportsWhatWasPredictedAndReserved) {
  create("bound=rel=1e-3,layout=arena:performance,lab.order=johnson,chunk=10x50");
  std::vector<float> values(100 * 50);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(0.01F * static_cast<float>(i));
  }
  const tailrace_field arena = define("/arena", {100, 50});
  const tailrace_field claimed = define("/claimed", {100, 50}, "layout=claimed");
  EXPECT_EQ(tailrace_field_put(file_, arena, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(tailrace_field_put(file_, claimed, nullptr, nullptr, values.data()), TAILRACE_OK);
  const tailrace_step_report* report = nullptr;
  ASSERT_EQ(tailrace_file_end_step(file_, &report), TAILRACE_OK) << tailrace_file_error(file_);
  ASSERT_EQ(report->n_fields, 2U);
  const tailrace_field_report& in_arena = *report->fields[0];
  const tailrace_field_report& at_tail = *report->fields[1];
  EXPECT_STREQ(in_arena.layout, "arena");
  EXPECT_STRNE(in_arena.codec, "auto");
  EXPECT_STREQ(in_arena.bound, "rel=0.001");
  EXPECT_EQ(in_arena.n_chunks, 10U);
  EXPECT_GT(in_arena.predicted_bytes, 0U);
  EXPECT_GT(in_arena.mean_size_error, 0);
  EXPECT_GE(in_arena.reserved_bytes, in_arena.predicted_bytes);
  EXPECT_GT(at_tail.predicted_bytes, 0U);
  EXPECT_EQ(at_tail.reserved_bytes, 0U);
  EXPECT_EQ(at_tail.n_overflow_chunks, 0U);
  EXPECT_EQ(report->predicted_bytes, in_arena.predicted_bytes + at_tail.predicted_bytes);
  EXPECT_EQ(report->reserved_bytes, in_arena.reserved_bytes);
  EXPECT_EQ(report->n_overflow_chunks, in_arena.n_overflow_chunks);
  // Chunks outside the arena are packed, so only the arena has unused bytes.
  if (in_arena.n_overflow_chunks == 0) {
    EXPECT_EQ(report->slack_bytes, in_arena.reserved_bytes - in_arena.encoded_bytes);
  }
  EXPECT_GT(report->predicted_makespan_s, 0);
  EXPECT_GT(report->predict_s, 0);
  EXPECT_GT(report->choose_s, 0);
  EXPECT_STRNE(report->profile, "");
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
}

TEST_F(CApi, AStepThatNobodyPlansReportsNoPrediction) {
  create("codec=portable,bound=rel=1e-3");
  const std::vector<float> values(100, 1.5F);
  const tailrace_field field = define("/f", {100});
  EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values.data()), TAILRACE_OK);
  const tailrace_step_report* report = nullptr;
  ASSERT_EQ(tailrace_file_end_step(file_, &report), TAILRACE_OK) << tailrace_file_error(file_);
  EXPECT_EQ(report->predicted_bytes, 0U);
  EXPECT_EQ(report->predicted_makespan_s, 0);
  EXPECT_EQ(report->reserved_bytes, 0U);
  EXPECT_EQ(report->slack_bytes, 0U);
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
}

TEST_F(CApi, AnEmptyStepHasARatioOfOne) {
  create();
  const tailrace_step_report* report = nullptr;
  ASSERT_EQ(tailrace_file_end_step(file_, &report), TAILRACE_OK) << tailrace_file_error(file_);
  EXPECT_EQ(report->n_fields, 0U);
  EXPECT_EQ(report->ratio, 1);
  EXPECT_EQ(close(), TAILRACE_OK);
}

TEST_F(CApi, ATraceStandsWhereTheOptionSays) {
  const std::string trace = folder_ + "/trace.json";
  create(("trace-file=" + trace).c_str());
  const std::vector<float> values(100, 1.5F);
  const tailrace_field field = define("/f", {100});
  EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
  std::ifstream stream(trace);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(text.find("\"traceEvents\""), std::string::npos);
  EXPECT_NE(text.find("\"encode /f #0\""), std::string::npos) << text;
}

/// Makes every call that needs an open file, with valid arguments.
std::vector<tailrace_error> call_everything(tailrace_file* file) {
  const std::uint64_t shape[1] = {100};
  const std::vector<float> values(100, 1.5F);
  const std::int64_t whole = 1;
  const double real = 1;
  tailrace_field field = 0;
  const tailrace_step_report* report = nullptr;
  tailrace_file_compute_begin(file);
  tailrace_file_compute_end(file);
  tailrace_file_idle(file, 0);
  return {
      tailrace_field_define(file, "/g", TAILRACE_F32, 1, shape, nullptr, &field),
      tailrace_field_put(file, 0, nullptr, nullptr, values.data()),
      tailrace_field_put_copy(file, 0, nullptr, nullptr, values.data()),
      tailrace_attribute_set_text(file, "/", "a", "b"),
      tailrace_attribute_set_i64(file, "/", "i", 1, &whole),
      tailrace_attribute_set_f64(file, "/", "r", 1, &real),
      tailrace_file_fail_step(file, "why"),
      tailrace_file_on_progress(file, nullptr, nullptr),
      tailrace_file_on_log(file, nullptr, nullptr),
      tailrace_file_end_step(file, &report),
      tailrace_file_wait(file, &report),
  };
}

TEST_F(CApi, AClosedFileIsRefusedEverywhere) {
  std::vector<tailrace_file*> closed;
  for (const bool abandoned : {false, true}) {
    closed.push_back(create());
    define("/f", {100});
    if (abandoned) {
      tailrace_file_abandon(file_);
      file_ = nullptr;
    } else {
      const std::vector<float> values(100, 1.5F);
      EXPECT_EQ(tailrace_field_put(file_, 0, nullptr, nullptr, values.data()), TAILRACE_OK);
      EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
      std::filesystem::rename(path_, path_ + ".first");
    }
  }
  // A file opened now must not be confused with a closed one.
  create();
  const tailrace_field field = define("/f", {100});
  for (tailrace_file* file : closed) {
    ASSERT_NE(file, file_);
    for (const tailrace_error error : call_everything(file)) {
      EXPECT_EQ(error, TAILRACE_ERROR_INVALID_ARGUMENT);
    }
    EXPECT_STREQ(tailrace_file_error(file), "the file is closed");
    EXPECT_EQ(tailrace_file_close(file), TAILRACE_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tailrace_thread_error(), "the file is closed");
    tailrace_file_abandon(file);
  }
  const std::vector<float> values(100, 2.5F);
  EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values.data()), TAILRACE_OK);
  EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
}

TEST_F(CApi, AForkedChildIsRefusedEverywhereAndChangesNothing) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot follow a fork of several threads";
#endif
  for (const std::string& mode : {std::string("replace=on"), std::string("replace=on,mode=async"),
                                  "replace=on,trace-file=" + folder_ + "/trace.json"}) {
    create(mode.c_str());
    const std::vector<float> values(100, 1.5F);
    const tailrace_field field = define("/f", {100});
    EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values.data()), TAILRACE_OK);
    ASSERT_EQ(tailrace_file_end_step(file_, nullptr), TAILRACE_OK) << tailrace_file_error(file_);
    for (const bool closes : {true, false}) {
      const pid_t child = ::fork();
      if (child == 0) {
        bool refused = true;
        for (const tailrace_error error : call_everything(file_)) {
          refused = refused && error == TAILRACE_ERROR_INVALID_ARGUMENT;
        }
        if (closes) {
          refused = refused && tailrace_file_close(file_) == TAILRACE_ERROR_INVALID_ARGUMENT &&
                    std::string(tailrace_thread_error()).find("forked") != std::string::npos &&
                    tailrace_file_close(file_) == TAILRACE_ERROR_INVALID_ARGUMENT;
        }
        tailrace_file_abandon(file_);
        ::_exit(refused ? 0 : 1);
      }
      int status = 1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << mode;
    }
    tailrace_field second = TAILRACE_NO_FIELD;
    const std::uint64_t shape[1] = {100};
    EXPECT_EQ(tailrace_field_define(file_, "/g", TAILRACE_F32, 1, shape, nullptr, &second),
              TAILRACE_OK);
    EXPECT_EQ(tailrace_field_put(file_, second, nullptr, nullptr, values.data()), TAILRACE_OK);
    EXPECT_EQ(close(), TAILRACE_OK) << tailrace_thread_error();
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
}

TEST_F(CApi, TheLogHearsOfAFileThatIsNotClosed) {
  std::vector<std::string> lines;
  const tailrace_log_callback keep = [](void* user, const char* line) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(line);
  };
  for (const bool closes : {true, false}) {
    create("replace=on");
    ASSERT_EQ(tailrace_file_on_log(file_, keep, &lines), TAILRACE_OK);
    if (closes) {
      EXPECT_EQ(close(), TAILRACE_OK);
      EXPECT_TRUE(lines.empty());
    } else {
      tailrace_file_abandon(file_);
      ASSERT_EQ(lines.size(), 1U);
      EXPECT_EQ(lines[0], path_ + " was abandoned; no step was ended, and nothing was written");
      tailrace_file_abandon(file_);
      EXPECT_EQ(lines.size(), 1U) << "once";
      file_ = nullptr;
    }
  }
}

/// A failing end_step or close names the steps that it loses, and the last one in the file.
TEST_F(CApi, AFailureNamesTheLostSteps) {
  const auto text_of = [&](tailrace_error error) {
    EXPECT_NE(error, TAILRACE_OK);
    return std::string(tailrace_thread_error());
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  for (const char* mode : {"mode=sync,replace=on", "mode=async,replace=on"}) {
    create(mode);
    const float values[4] = {1, 2, 3, 4};
    define("/never_put", {4});
    contains(
        text_of(tailrace_file_end_step(file_, nullptr)),
        "; step 0 is lost, and no step of this run is known to be in the file (counted from 0)");
    const tailrace_field field = define("/u", {4}, "over-time=on");
    for (int step = 1; step <= 2; ++step) {
      ASSERT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values), TAILRACE_OK);
      ASSERT_EQ(tailrace_file_end_step(file_, nullptr), TAILRACE_OK) << tailrace_thread_error();
    }
    ASSERT_EQ(tailrace_file_wait(file_, nullptr), TAILRACE_OK);
    ASSERT_EQ(tailrace_file_fail_step(file_, "no values"), TAILRACE_OK);
    contains(text_of(tailrace_file_end_step(file_, nullptr)),
             "no values; step 3 is lost, and the last step known to be in the file is step 2");
    ASSERT_EQ(tailrace_file_fail_step(file_, "no values"), TAILRACE_OK);
    contains(text_of(close()),
             "no values; step 4 is lost, and the last step known to be in the file is step 2");
  }
}

TEST_F(CApi, DestroyReportsOnStderrThatAFileIsNotClosed) {
  const auto line_of = [&](void (*end)(tailrace_file*)) {
    create("replace=on");
    testing::internal::CaptureStderr();
    end(file_);
    end(file_);
    file_ = nullptr;
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(line_of(tailrace_file_destroy),
            "tailrace: " + path_ +
                " was left without close(); no step was ended, and nothing was written\n");
  EXPECT_EQ(line_of(tailrace_file_abandon), "");
}

/// The line of a forgotten close names the steps that are in the file, and repeats no error.
TEST_F(CApi, AForgottenCloseNamesWhatIsInTheFile) {
  const float values[4] = {1, 2, 3, 4};
  const auto line_after = [&](const char* options, int n_steps, const char* chunk, auto&& then) {
    create(options);
    const tailrace_field field = define("/u", {4}, (std::string("over-time=on") + chunk).c_str());
    for (int step = 0; step < n_steps; ++step) {
      EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values), TAILRACE_OK);
      EXPECT_EQ(tailrace_file_end_step(file_, nullptr), TAILRACE_OK) << tailrace_thread_error();
    }
    then(field);
    testing::internal::CaptureStderr();
    tailrace_file_destroy(file_);
    file_ = nullptr;
    std::string line = testing::internal::GetCapturedStderr();
    const std::string begins = "tailrace: " + path_ + " was left without close(); ";
    if (line.empty()) return line;
    EXPECT_EQ(line.substr(0, begins.size()), begins);
    return line.substr(begins.size());
  };
  const auto nothing = [](tailrace_field) {};
  const auto put = [&](tailrace_field field) {
    EXPECT_EQ(tailrace_field_put(file_, field, nullptr, nullptr, values), TAILRACE_OK);
  };
  const auto fail = [&](tailrace_field) {
    EXPECT_EQ(tailrace_file_fail_step(file_, "no values"), TAILRACE_OK);
    EXPECT_NE(tailrace_file_end_step(file_, nullptr), TAILRACE_OK);
  };
  const auto fail_and_go_on = [&](tailrace_field field) {
    fail(field);
    put(field);
    EXPECT_EQ(tailrace_file_end_step(file_, nullptr), TAILRACE_OK);
  };
  const auto define_badly = [&](tailrace_field) {
    tailrace_field bad = TAILRACE_NO_FIELD;
    const std::uint64_t shape[1] = {4};
    EXPECT_NE(tailrace_field_define(file_, "/v", TAILRACE_F32, 1, shape, "level=no", &bad),
              TAILRACE_OK);
  };
  const auto put_badly = [&](tailrace_field field) {
    const std::uint64_t start[1] = {9};
    EXPECT_NE(tailrace_field_put(file_, field, start, start, values), TAILRACE_OK);
  };
  EXPECT_EQ(line_after("replace=on", 1, "", nothing), "its only step is in it\n");
  EXPECT_EQ(line_after("replace=on", 4, "", nothing), "all 4 steps are in it\n");
  EXPECT_EQ(line_after("replace=on", 4, "", put),
            "all 4 steps are in it; the values put after the last end_step are lost\n");
  EXPECT_EQ(line_after("replace=on", 4, "", put_badly), "all 4 steps are in it\n");
  EXPECT_EQ(line_after("replace=on,mode=async", 4, "", nothing),
            "step 3 is lost, the last step in it is step 2 (counted from 0)\n");
  EXPECT_EQ(line_after("replace=on,mode=async", 1, "", nothing),
            "step 0 is lost, no step is in it (counted from 0)\n");
  EXPECT_EQ(line_after("replace=on", 5, ",chunk=3x4", nothing),
            "steps 3 and 4 are lost, the last step in it is step 2 (counted from 0)\n");
  EXPECT_EQ(line_after("replace=on", 2, "", fail), "");
  EXPECT_EQ(line_after("replace=on,mode=async", 2, "", fail), "");
  EXPECT_EQ(line_after("replace=on", 0, "", define_badly), "");
  EXPECT_EQ(line_after("replace=on,mode=async", 2, "", define_badly),
            "step 1 is lost, the last step in it is step 0 (counted from 0)\n");
  EXPECT_EQ(line_after("replace=on", 2, "", fail_and_go_on),
            "the last step in it is step 3 (counted from 0)\n");
}

TEST_F(CApi, AFileLeftOpenIsReportedAtTheEndOfTheProgram) {
  EXPECT_EXIT(
      {
        create();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "was left without close\\(\\) at the end of the program");
}

TEST_F(CApi, AFieldHasItsPath) {
  create();
  const tailrace_field field = define("/g/f", {5});
  EXPECT_STREQ(tailrace_field_path(file_, field), "/g/f");
  EXPECT_EQ(tailrace_field_path(file_, field + 1), nullptr);
  EXPECT_EQ(tailrace_field_path(nullptr, field), nullptr);
}

TEST_F(CApi, AbandonLeavesNothing) {
  create();
  define("/f", {5});
  tailrace_file_abandon(file_);
  file_ = nullptr;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
