// Failures through the public API. Every rank returns the same error, and its text names the
// culprit. The file is complete or absent, and its handle can still be used.
//
// In most tests only one rank has a reason to fail, and the others must receive the failure.
// Nothing here may hang: the watchdog of rank_support.hpp turns a deadlock into a failure.

#include <fstream>
#include <optional>

#include "api_support.hpp"

namespace {

using namespace api_test;

const Shape kShape{24, 18};

/// Defines one good field and puts it completely.
void put_good(tailrace::File& file, const std::string& path, std::uint64_t seed = 1) {
  auto field = file.define<float>(path, kShape);
  put_boxes<float>(field, mine(cut(kShape, n_ranks())), seed, rough_value<float>);
}

/// Expects that the step after a failed one succeeds and that the file holds only that step.
void expect_usable(tailrace::File& file, const std::string& path) {
  const Outcome next = outcome_of([&] {
    put_good(file, "/after", 9);
    file.end_step();
    file.close();
  });
  EXPECT_EQ(next.code, TAILRACE_OK) << next.text;
  if (!is_root() || next.code != TAILRACE_OK) return;
  const StockFile stock(path);
  EXPECT_EQ(differences(stock.read<float>("/after"), all_values<float>(kShape, 9, rough_value)),
            "");
  EXPECT_FALSE(stock.has("/bad"));
}

// --- create and open --------------------------------------------------------------------------

TEST(ApiErrors, CreateWithBadOptionsOnOneRank) {
  const std::string path = scratch();
  const char* options = is_last() ? "memory=lots" : "";
  expect_everywhere(outcome_of([&] { create(path, options); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"memory", "lots"});
  EXPECT_FALSE(exists(path));
}

TEST(ApiErrors, AnUnknownCodecFailsTheCreate) {
  const std::string path = scratch();
  expect_everywhere(outcome_of([&] { create(path, "codec=tzr"); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"codec \"tzr\" is unknown", "did you mean \"trz\"?"});
  EXPECT_FALSE(exists(path));
  create(path, "codec=auto").close();
  expect_everywhere(outcome_of([&] { open(path, "codec=tzr"); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"codec \"tzr\" is unknown"});
  for (const char* codec : {"auto", "none", "zstd", "id=32015", "portable"}) {
    create(path, "replace=on,codec=" + std::string(codec)).close();
  }
}

TEST(ApiErrors, APutAfterTheFieldsFirstStepHasFailedNamesTheLostDefinition) {
  const std::string path = scratch();
  auto file = create(path);
  auto field = file.define<float>("/u", kShape, "over-time=on");
  EXPECT_EQ(outcome_of([&] { file.end_step(); }).code, TAILRACE_ERROR_BAD_COVERAGE);
  const std::vector<float> value(1, 1);
  (void)outcome_of([&] { field.put_copy(Box({0, 0}, {1, 1}), value); });
  expect_everywhere(
      outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
      {"field \"/u\": its definition was lost with the step that failed", "define it again"});
  field = file.define<float>("/u", kShape, "over-time=on");
  put_boxes<float>(field, mine(cut(kShape, n_ranks())), 3, rough_value<float>);
  file.end_step();
  file.close();
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).shape("/u"), (Shape{1, kShape[0], kShape[1]}));
}

/// Every rank opens files for itself: the failures that follow name the communicator, but only
/// where there are several ranks.
TEST(ApiErrors, AForgottenCommunicatorIsNamed) {
  const auto expect_hint = [](const Outcome& outcome, tailrace_error code, const char* part) {
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
    const std::string hint = "; this process opened the file for itself, but MPI has " +
                             std::to_string(n_ranks()) +
                             " ranks: to share the file, pass the communicator (C: "
                             "TAILRACE_MPI(comm), C++: tailrace::mpi(comm), Fortran: comm=)";
    EXPECT_EQ(outcome.text.find(hint) != std::string::npos, n_ranks() > 1) << outcome.text;
  };
  const std::string path = scratch();
  const std::vector<float> values(24, 1.5F);
  const std::string own = path + "." + std::to_string(rank());
  for (const bool closes : {false, true}) {
    auto file = tailrace::File::create(own, "replace=on");
    file.define<float>("/u", {48}).put({0, 24}, values);
    expect_hint(outcome_of([&] { closes ? file.close() : (void)file.end_step(); }),
                TAILRACE_ERROR_BAD_COVERAGE, "were not put by any rank");
  }
  if (n_ranks() == 1) return;
  std::optional<tailrace::File> first;
  if (is_root()) first = tailrace::File::create(path, "replace=on");
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_root()) {
    expect_hint(outcome_of([&] { tailrace::File::create(path, "replace=on"); }), TAILRACE_ERROR_IO,
                " is being written by ");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(ApiErrors, CreateWithoutAPathOnOneRank) {
  const std::string path = scratch();
  tailrace_file* file = nullptr;
  const tailrace_error error = tailrace_file_create(is_last() ? nullptr : path.c_str(),
                                                    TAILRACE_MPI(MPI_COMM_WORLD), nullptr, &file);
  EXPECT_EQ(error, TAILRACE_ERROR_INVALID_ARGUMENT) << tailrace_thread_error();
  EXPECT_EQ(file, nullptr);
  EXPECT_EQ(tailrace_thread_error(), from_root(tailrace_thread_error()));
}

TEST(ApiErrors, RecoverWithBadArgumentsOnOneRank) {
  const std::string path = scratch();
  const auto recover = [](const char* name, int* there) {
    const tailrace_error error = tailrace_file_recover(name, TAILRACE_MPI(MPI_COMM_WORLD), there);
    EXPECT_EQ(tailrace_thread_error(), from_root(tailrace_thread_error()));
    return error;
  };
  int there = 1;
  EXPECT_EQ(recover(is_last() ? nullptr : path.c_str(), &there), TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(there, 0);
  EXPECT_EQ(recover(path.c_str(), is_last() ? nullptr : &there), TAILRACE_ERROR_INVALID_ARGUMENT);
  if (n_ranks() == 1) return;  // One rank cannot disagree.
  const std::string other = is_last() ? path + "2" : path;
  EXPECT_EQ(recover(other.c_str(), &there), TAILRACE_ERROR_DISAGREEMENT);
}

TEST(ApiErrors, CreateWithAnotherPathOnOneRank) {
  if (n_ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const std::string path = scratch(is_last() ? "other.h5" : "out.h5");
  expect_everywhere(outcome_of([&] { create(path); }), TAILRACE_ERROR_DISAGREEMENT);
}

TEST(ApiErrors, CreateInAFolderThatIsNotThere) {
  expect_everywhere(outcome_of([&] { create(scratch_folder() + "/no/such/folder/out.h5"); }),
                    TAILRACE_ERROR_NOT_FOUND, {"no/such/folder"});
}

TEST(ApiErrors, CreateOverAnExistingFile) {
  const std::string path = scratch();
  auto first = create(path);
  put_good(first, "/old");
  first.close();
  expect_everywhere(outcome_of([&] { create(path); }), TAILRACE_ERROR_ALREADY_EXISTS, {"out.h5"});

  auto second = create(path, "replace=on");
  if (is_root()) {
    EXPECT_TRUE(StockFile(path).has("/old"));  // until the first commit
  }
  MPI_Barrier(MPI_COMM_WORLD);
  put_good(second, "/new");
  second.close();
  if (!is_root()) return;
  EXPECT_TRUE(StockFile(path).has("/new"));
  EXPECT_FALSE(StockFile(path).has("/old"));
}

TEST(ApiErrors, OpenWhatIsNotThereOrNotHdf5) {
  expect_everywhere(outcome_of([&] { open(scratch("absent.h5")); }), TAILRACE_ERROR_NOT_FOUND,
                    {"absent.h5"});
  const std::string path = scratch("text.h5");
  if (is_root()) std::ofstream(path) << "This is no HDF5 file, however long it may go on.\n";
  MPI_Barrier(MPI_COMM_WORLD);
  expect_everywhere(outcome_of([&] { open(path); }), TAILRACE_ERROR_CORRUPT, {"text.h5"});
}

TEST(ApiErrors, OpenWithBadOptionsOnOneRank) {
  const std::string path = scratch();
  auto first = create(path);
  put_good(first, "/good");
  first.close();
  const char* options = is_last() ? "journal=perhaps" : "";
  expect_everywhere(outcome_of([&] { open(path, options); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"journal", "perhaps"});
  auto again = open(path);
  expect_usable(again, path);
}

// --- definitions ------------------------------------------------------------------------------

TEST(ApiErrors, DefinitionsThatCannotBeMeant) {
  auto file = create(scratch());
  using Call = void (*)(tailrace::File&);
  const std::vector<std::pair<Call, const char*>> cases = {
      {[](auto& f) { f.template define<float>("/f", {3}, "bound=abs=0"); }, "/f"},
      {[](auto& f) { f.template define<float>("/f", {3}, "bound=abs=nan"); }, "/f"},
      {[](auto& f) { f.template define<float>("/f", {3}, "bound=some=1"); }, "/f"},
      {[](auto& f) { f.template define<float>("/f", {3}, "fill=much"); }, "fill"},
      {[](auto& f) { f.template define<float>("", {3}); }, "path"},
      {[](auto& f) { f.template define<float>("relative", {3}); }, "relative"},
      {[](auto& f) { f.template define<float>("/f", Shape(33, 1)); }, "33"},
      {[](auto& f) { f.define("/f", tailrace_dtype(15), {3}); }, "15"}};
  for (const auto& [call, part] : cases) {
    const Outcome outcome = outcome_of([&, called = call] { called(file); });
    expect_everywhere(outcome, TAILRACE_ERROR_INVALID_ARGUMENT, {part});
  }
  file.define<float>("/twice", {0});
  expect_everywhere(outcome_of([&] { file.define<float>("/twice", {0}); }),
                    TAILRACE_ERROR_ALREADY_EXISTS, {"/twice"});
  file.abandon();
}

/// Calls `define` on the last rank only, instead of the good definition of the others. The error
/// must name rank 0's and the last rank's value of `what`, and nothing else of the definition.
void expect_disagreement(const std::function<void(tailrace::File&)>& define, const char* what,
                         const char* of_root, const char* of_last) {
  if (n_ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const std::string path = scratch();
  auto file = create(path);
  if (is_last()) {
    define(file);
  } else {
    file.define<float>("/bad", kShape, "codec=deflate");
  }
  const std::string text = std::string("ranks disagree on ") + what + ": rank 0 has " + of_root +
                           ", this rank has " + of_last;
  const Outcome outcome = outcome_of([&] { file.end_step(); });
  expect_everywhere(outcome, TAILRACE_ERROR_DISAGREEMENT);
  const std::string expected =
      text + "; step 0 is lost, and no step of this run is known to be in the file";
  EXPECT_NE(outcome.text.find(expected), std::string::npos) << outcome.text << "\n" << expected;
  EXPECT_FALSE(exists(path));
  expect_usable(file, path);
}

TEST(ApiErrors, RanksDisagreeOnShape) {
  expect_disagreement(
      [](auto& file) {
        file.template define<float>("/bad", {24, 19}, "codec=deflate");
      },
      "field \"/bad\"", "shape 24x18", "shape 24x19");
}
TEST(ApiErrors, RanksDisagreeOnDtype) {
  expect_disagreement(
      [](auto& file) { file.template define<double>("/bad", kShape, "codec=deflate"); },
      "field \"/bad\"", "type f32", "type f64");
}
TEST(ApiErrors, RanksDisagreeOnPath) {
  expect_disagreement([](auto& file) { file.template define<float>("/other", kShape); },
                      "the definitions", "field \"/bad\"", "field \"/other\"");
}
TEST(ApiErrors, RanksDisagreeOnBound) {
  expect_disagreement(
      [](auto& file) { file.template define<float>("/bad", kShape, "codec=deflate,bound=abs=1"); },
      "field \"/bad\"", "bound=none (default)", "bound=abs=1");
}
TEST(ApiErrors, RanksDisagreeOnNumberOfFields) {
  expect_disagreement([](auto&) {}, "the definitions", "field \"/bad\"", "nothing further");
}
TEST(ApiErrors, RanksDisagreeOnAttributes) {
  expect_disagreement(
      [](auto& file) {
        file.template define<float>("/bad", kShape, "codec=deflate");
        file.set_attribute("/", "only on one rank", 1);
      },
      "the definitions", "nothing further", "attribute \"only on one rank\" of \"/\"");
}

TEST(ApiErrors, DefinitionThatFailsOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  const char* options = is_last() ? "bound=abs=-1" : "";
  const Outcome mine_alone = outcome_of([&] { file.define<float>("/bad", kShape, options); });
  EXPECT_EQ(mine_alone.code, is_last() ? TAILRACE_ERROR_INVALID_ARGUMENT : TAILRACE_OK);
  const Outcome step = outcome_of([&] { file.end_step(); });
  expect_everywhere(step, TAILRACE_ERROR_INVALID_ARGUMENT, {"/bad", "abs=-1"});
  expect_usable(file, path);
}

TEST(ApiErrors, SettingsThatACodecRefuses) {
  for (const char* options : {"codec=no-such-codec", "codec=deflate,level=77", "codec=deflate,x=1",
                              "layout=no-such-layout", "codec=deflate,layout=contiguous"}) {
    SCOPED_TRACE(options);
    const std::string path = scratch(std::string(options) + ".h5");
    auto file = create(path);
    const Outcome outcome = outcome_of([&] {
      auto field = file.define<float>("/bad", kShape, options);
      put_boxes<float>(field, mine(cut(kShape, n_ranks())), 1, rough_value<float>);
      file.end_step();
    });
    EXPECT_NE(outcome.code, TAILRACE_OK);
    expect_everywhere(outcome, outcome.code, {"/bad"});
    // The step reports the refused definition again.
    const Outcome again = outcome_of([&] { file.end_step(); });
    EXPECT_TRUE(again.code == TAILRACE_OK || again.text.find("/bad") != std::string::npos);
    expect_usable(file, path);
  }
}

// --- coverage ---------------------------------------------------------------------------------

/// Puts this rank's boxes after `spoil` has changed them; end_step must fail.
void expect_bad_coverage(const char* options, std::initializer_list<const char*> parts,
                         const std::function<void(std::vector<Box>&)>& spoil) {
  const std::string path = scratch(std::string(options) + ".h5");
  auto file = create(path);
  auto field = file.define<float>("/bad", kShape, options);
  std::vector<Box> boxes = mine(cut(kShape, 2 * n_ranks()));
  spoil(boxes);
  put_boxes<float>(field, boxes, 1, rough_value<float>);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_BAD_COVERAGE, parts);
  EXPECT_FALSE(exists(path));
  expect_usable(file, path);
}

TEST(ApiErrors, Overlap) {
  for (const char* options : {"", "chunk=5x7", "codec=none,layout=contiguous", "layout=dense"}) {
    SCOPED_TRACE(options);
    expect_bad_coverage(options, {"/bad"}, [](auto& boxes) {
      if (is_last()) boxes.push_back(Box({7, 5}, {3, 2}));
    });
  }
}

TEST(ApiErrors, SameBoxTwice) {
  expect_bad_coverage("chunk=5x7", {"/bad"}, [](auto& boxes) {
    if (is_last()) boxes.push_back(boxes.back());
  });
}

TEST(ApiErrors, OverlapWhereHolesAreAllowed) {
  expect_bad_coverage("holes=on,chunk=5x7", {"/bad"}, [](auto& boxes) {
    if (is_root()) boxes = {Box({0, 0}, {9, 9})};
    if (is_last()) boxes.push_back(Box({8, 8}, {1, 1}));
  });
}

TEST(ApiErrors, Hole) {
  for (const char* options : {"", "chunk=5x7", "codec=none,layout=contiguous", "layout=dense"}) {
    SCOPED_TRACE(options);
    expect_bad_coverage(options, {"/bad"}, [](auto& boxes) {
      if (is_last()) boxes.pop_back();
    });
  }
}

TEST(ApiErrors, HoleOfOneElement) {
  expect_bad_coverage("chunk=5x7", {"/bad", "1 of the 35 elements of [0:5, 0:7]"}, [](auto& boxes) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (boxes[i].start != Shape{0, 0}) continue;
      const Shape count = boxes[i].count;
      boxes[i] = Box({1, 0}, {count[0] - 1, count[1]});
      boxes.push_back(Box({0, 1}, {1, count[1] - 1}));
      break;
    }
  });
}

TEST(ApiErrors, NothingPutAtAll) {
  expect_bad_coverage("", {"/bad"}, [](auto& boxes) { boxes.clear(); });
}

TEST(ApiErrors, BoxOutsideTheShapeOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  auto field = file.define<float>("/bad", kShape);
  put_boxes<float>(field, mine(cut(kShape, n_ranks())), 1, rough_value<float>);
  if (is_last()) {
    const std::vector<float> values(4);
    // This put does not throw: a rank that left here would leave the others waiting.
    field.put_copy(Box({22, 0}, {4, 1}), values);
  }
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_BAD_COVERAGE,
                    {"/bad", "[22:26, 0:1]"});
  expect_usable(file, path);
}

TEST(ApiErrors, PutsThatCannotBeMeantOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  auto field = file.define<float>("/bad", kShape, "holes=on");
  if (is_last()) {
    EXPECT_EQ(tailrace_field_put(file.handle(), 4711, nullptr, nullptr, nullptr),
              TAILRACE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tailrace_field_put(file.handle(), field.number(), nullptr, nullptr, nullptr),
              TAILRACE_ERROR_INVALID_ARGUMENT);
    const std::uint64_t start[2] = {~std::uint64_t{0}, 1};
    const std::uint64_t count[2] = {2, 1};
    const float values[2] = {1, 2};
    EXPECT_EQ(tailrace_field_put(file.handle(), field.number(), start, count, values),
              TAILRACE_ERROR_BAD_COVERAGE)
        << "start + count wraps around";
  }
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"4711"});
  expect_usable(file, path);
}

TEST(ApiErrors, RangeOfAnotherLengthThanTheBoxOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  for (const bool flat : {false, true}) {
    auto field = file.define<float>(flat ? "/flat" : "/bad", kShape, "holes=on");
    const std::vector<float> values(5);
    if (is_last() && !flat) field.put(Box({0, 0}, {2, 3}), values);
    if (is_last() && flat) field.put({0, 5}, values);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {flat ? "/flat" : "/bad"});
  }
  expect_usable(file, path);
}

TEST(ApiErrors, StridesThatReachBeyondTheValuesOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  constexpr std::uint64_t far = std::uint64_t{1} << 63;
  for (const tailrace::Shape& strides :
       {tailrace::Shape{4, 1}, {3, 2}, {1, far}, {far, far}, {far, 1}, {3}, {}}) {
    auto field = file.define<float>("/bad", kShape, "holes=on");
    const std::vector<float> values(6);
    if (is_last()) field.put_copy(Box({0, 0}, {2, 3}), values, strides);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"/bad", "strides"});
  }
  expect_usable(file, path);
}

// --- steps and close --------------------------------------------------------------------------

TEST(ApiErrors, FailedStepAfterACommittedOne) {
  const std::string path = scratch();
  auto file = create(path);
  put_good(file, "/good");
  file.end_step();
  file.define<float>("/bad", kShape);
  put_good(file, "/dropped");
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_BAD_COVERAGE, {"/bad"});
  if (is_root()) {
    const StockFile stock(path);
    EXPECT_TRUE(stock.has("/good"));
    EXPECT_FALSE(stock.has("/dropped"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_usable(file, path);
  if (!is_root()) return;
  EXPECT_EQ(
      differences(StockFile(path).read<float>("/good"), all_values<float>(kShape, 1, rough_value)),
      "");
}

TEST(ApiErrors, SamePathInALaterStep) {
  auto file = create(scratch());
  put_good(file, "/bad");
  file.end_step();
  const Outcome outcome = outcome_of([&] {
    put_good(file, "/bad");
    file.end_step();
  });
  expect_everywhere(outcome, TAILRACE_ERROR_ALREADY_EXISTS, {"/bad"});
}

TEST(ApiErrors, FieldsBelowFields) {
  const std::string path = scratch();
  auto file = create(path);
  put_good(file, "/good");
  file.end_step();
  for (const char* parent : {"/good", "/new"}) {
    const Outcome outcome = outcome_of([&] {
      put_good(file, "/new");
      put_good(file, std::string(parent) + "/child");
      file.end_step();
    });
    expect_everywhere(outcome, TAILRACE_ERROR_INVALID_ARGUMENT, {parent, "child"});
  }
  expect_usable(file, path);
}

TEST(ApiErrors, PutOfAFieldWhoseStepHasEnded) {
  auto file = create(scratch());
  auto field = file.define<float>("/field", kShape);
  put_boxes<float>(field, mine(cut(kShape, n_ranks())), 1, rough_value<float>);
  file.end_step();
  const std::vector<float> values(Box({0, 0}, kShape).n_elements());
  field.put(values);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"/field"});
}

TEST(ApiErrors, CloseWithAStepThatFails) {
  const std::string path = scratch();
  auto file = create(path);
  put_good(file, "/good");
  file.end_step();
  file.define<float>("/bad", kShape);
  expect_everywhere(outcome_of([&] { file.close(); }), TAILRACE_ERROR_BAD_COVERAGE, {"/bad"});
  EXPECT_FALSE(static_cast<bool>(file));
  if (!is_root()) return;
  EXPECT_TRUE(StockFile(path).has("/good"));
  EXPECT_FALSE(StockFile(path).has("/bad"));
  EXPECT_FALSE(exists(path + ".partial"));
}

TEST(ApiErrors, CloseWithABadPutOnOneRank) {
  const std::string path = scratch();
  auto file = create(path);
  put_good(file, "/bad");
  if (is_last()) tailrace_field_put(file.handle(), 12345, nullptr, nullptr, nullptr);
  expect_everywhere(outcome_of([&] { file.close(); }), TAILRACE_ERROR_INVALID_ARGUMENT, {"12345"});
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_FALSE(exists(path));
}

TEST(ApiErrors, AttributesThatOneRankSetsOtherwise) {
  if (n_ranks() == 1) GTEST_SKIP() << "one rank cannot disagree";
  const std::string path = scratch();
  auto file = create(path);
  file.set_attribute("/", "time", is_last() ? 2.5 : 1.5);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_DISAGREEMENT,
                    {"attribute \"time\" of \"/\": rank 0 has 1.5, this rank has 2.5"});
  expect_usable(file, path);
}

TEST(ApiErrors, CloseWithAFirstStepThatFailsLeavesNoFile) {
  const std::string path = scratch();
  auto file = create(path);
  file.define<float>("/bad", kShape);
  expect_everywhere(outcome_of([&] { file.close(); }), TAILRACE_ERROR_BAD_COVERAGE, {"/bad"});
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_FALSE(exists(path));
  EXPECT_FALSE(exists(path + ".partial"));
}

TEST(ApiErrors, AttributesThatCannotBeMeant) {
  auto file = create(scratch());
  expect_everywhere(outcome_of([&] { file.set_attribute("relative", "units", "m"); }),
                    TAILRACE_ERROR_INVALID_ARGUMENT, {"relative"});
  expect_everywhere(outcome_of([&] { file.set_attribute("/", "", "m"); }),
                    TAILRACE_ERROR_INVALID_ARGUMENT);
  expect_everywhere(outcome_of([&] { file.set_attribute("/", "none", std::vector<int>{}); }),
                    TAILRACE_ERROR_INVALID_ARGUMENT, {"none"});
}

TEST(ApiErrors, AbandonLeavesNoFile) {
  const std::string path = scratch();
  {
    auto file = create(path);
    put_good(file, "/good");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_FALSE(exists(path));
  EXPECT_FALSE(exists(path + ".partial"));
}

TEST(ApiErrors, AbandonKeepsTheStepsThatWereEnded) {
  const std::string path = scratch();
  {
    auto file = create(path);
    put_good(file, "/good");
    file.end_step();
    put_good(file, "/dropped");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_root()) return;
  EXPECT_TRUE(StockFile(path).has("/good"));
  EXPECT_FALSE(StockFile(path).has("/dropped"));
}

TEST(ApiErrors, BoundThatTheDtypeOrCodecCannotKeep) {
  const std::string path = scratch();
  auto file = create(path);
  const Outcome outcome = outcome_of([&] {
    auto field = file.define<float>("/bad", kShape, "codec=deflate,bound=abs=1e-3");
    put_boxes<float>(field, mine(cut(kShape, n_ranks())), 1, rough_value<float>);
    file.end_step();
  });
  // A lossless codec satisfies every bound; a refusal must be the same on every rank.
  expect_everywhere(outcome, outcome.code);
  if (outcome.code != TAILRACE_OK) expect_usable(file, path);
}

/// One rank closes the file while the others end a step, or wait: all learn of it, and none hangs.
TEST(ApiErrors, RanksInDifferentCallsAreNamed) {
  if (n_ranks() == 1) return;
  for (const char* mode : {"mode=sync", "mode=async", "mode=in_situ"}) {
    for (const int n_before : {0, 1, 2}) {
      for (const int other : {0, n_ranks() - 1}) {
        const std::string path = scratch();
        auto file = create(path, std::string("replace=on,") + mode);
        auto field = file.define<float>("/u", {8}, "over-time=on");
        const auto put = [&] {
          put_boxes<float>(field, mine(cut({8}, n_ranks())), 0, rough_value<float>);
        };
        for (int step = 0; step < n_before; ++step) {
          put();
          file.end_step();
        }
        put();
        const bool closes = rank() == other;
        const Outcome outcome = outcome_of([&] { closes ? file.close() : (void)file.end_step(); });
        expect_everywhere(outcome, TAILRACE_ERROR_DISAGREEMENT,
                          {"ranks disagree on the call", "has end_step", "has close"});
        if (!closes) {
          EXPECT_EQ(outcome_of([&] { file.end_step(); }).code, TAILRACE_ERROR_DISAGREEMENT);
          EXPECT_EQ(outcome_of([&] { file.close(); }).code, TAILRACE_ERROR_DISAGREEMENT);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (n_before == 0 || !is_root()) continue;
        EXPECT_EQ(StockFile(path).shape("/u"), (Shape{static_cast<std::uint64_t>(n_before), 8}));
      }
    }
  }
}

}  // namespace
