// All ranks decide alike: whatever a rank is given alone (options, environment, threads), all ranks
// write the same file or return the same error, and nobody hangs.
//
// Which options must be alike stands in the table of options; every line of it is tried here, so a
// new option cannot be forgotten. The watchdog of rank_support.hpp turns a deadlock into a failure.

#include <cstdlib>
#include <fstream>
#include <map>

#include "api_support.hpp"
#include "support/option_cases.hpp"

namespace {

using namespace api_test;

const Shape kDecided{48, 40, 36};

/// For each option: what most ranks give, and what the last one gives in its place.
struct Pair {
  std::string usual;
  std::string other;
};

const std::map<std::string, Pair>& pairs() {
  static const std::map<std::string, Pair> pairs = {
      {"mode", {"sync", "async"}},
      {"hold", {"copy", "promise"}},
      {"writers", {"each", "node"}},
      {"threads", {"1", "6"}},
      {"memory", {"64MiB", "96MiB"}},
      {"buffer", {"1MiB", "2MiB"}},
      {"align", {"1", "512"}},
      {"fsync", {"off", "on"}},
      {"journal", {"off", "on"}},
      {"replace", {"off", "on"}},
      {"compatibility", {"everyone", "v110"}},
      {"attributes", {"one", "off"}},
      {"trace-file", {"a.json", "b.json"}},
      {"for", {"speed", "size"}},
      {"why", {"off", "measured"}},
      {"target", {"size=1MB", "psnr=80"}},
      {"profile", {"", "/no/such/profile.json"}},
      {"plugin-path", {"", "/no/such/folder"}},
      {"lab.scheduler", {"search", "johnson"}},
      {"lab.balance", {"best", "paper"}},
      {"lab.record", {"", "other.json"}},
      {"lab.order", {"given", "johnson"}},
      {"codec", {"deflate", "none"}},
      {"bound", {"none", "rel=1e-3"}},
      {"guard", {"sign", "zero"}},
      {"earlier-loss", {"none", "abs=0.1"}},
      {"chunk", {"8MiB", "4MiB"}},
      {"layout", {"arena:storage", "arena:balanced"}},
      {"verify", {"on", "strict"}},
      {"fill", {"1", "2"}},
      {"allow-wide-bound", {"off", "on"}},
      {"holes", {"off", "on"}},
      {"covered", {"keep", "drop"}},
      {"over-time", {"off", "on"}},
  };
  return pairs;
}

/// Write one field, every rank with options of its own.
Outcome write_one(const std::string& path, const std::string& options,
                  const std::string& of_field = "", std::string* codec = nullptr) {
  return outcome_of([&] {
    auto file = tailrace::File::create(path, tailrace::mpi(MPI_COMM_WORLD), options);
    auto field = file.define<float>("/f", kDecided, of_field);
    put_boxes<float>(field, mine(cut(kDecided, n_ranks())), 3, smooth_value<float>);
    const auto report = file.end_step();
    if (codec != nullptr) *codec = report.fields.front().codec;
    file.close();
  });
}

void expect_values(const std::string& path, double largest_error) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_root()) return;
  const std::vector<float> found = StockFile(path).read<float>("/f");
  const std::vector<float> wanted = all_values<float>(kDecided, 3, smooth_value<float>);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], largest_error) << i;
  }
}

/// @param as_default  of fields: given among the file's options, else with the field.
void try_option(const OptionCase& option, bool as_default) {
  SCOPED_TRACE(option.name);
  const auto pair = pairs().find(option.name);
  ASSERT_NE(pair, pairs().end()) << "a new option needs a line in this test";
  if (!option.of_steps) {
    const Outcome refused =
        write_one(scratch("refused.h5"), option.name + "=" + pair->second.other);
    expect_everywhere(refused, TAILRACE_ERROR_INVALID_ARGUMENT, {option.name.c_str()});
    return;
  }
  const std::string own = option.name + "=" + (is_last() ? pair->second.other : pair->second.usual);
  const std::string path = scratch(option.name + (as_default ? ".h5" : ".field.h5"));
  const Outcome outcome = as_default ? write_one(path, own) : write_one(path, "", own);
  if (n_ranks() == 1) return;
  if (option.alike) {
    expect_everywhere(outcome, TAILRACE_ERROR_DISAGREEMENT, {(option.name + "=").c_str()});
    EXPECT_FALSE(exists(path));
  } else {
    expect_everywhere(outcome, TAILRACE_OK);
    expect_values(path, 0);
  }
}

TEST(Decisions, EveryOptionIsComparedOrOwn) {
  for (const OptionCase& option : option_cases()) {
    try_option(option, true);
    // define() refuses what is for plotfiles; end_step would tell all ranks, which is not called
    // then.
    if (!option.of_file && option.name != "covered") try_option(option, false);
  }
}

/// A machine whose ranks write so much a second each: at some of these speeds the number of threads
/// decides between settings.
std::string profile_of(double bytes_per_s) {
  const std::string path = scratch("profile.json");
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_root()) {
    std::ofstream(path) << profile_with_bandwidth(bytes_per_s);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return path;
}

TEST(Decisions, OtherThreadsOnEachRankChooseTheSameCodec) {
  for (const double bytes_per_s : {30e6, 100e6, 300e6, 1e9, 3e9}) {
    for (const char* objective : {"speed", "size", "balanced"}) {
      SCOPED_TRACE(std::to_string(bytes_per_s) + " " + objective);
      const std::string path = scratch(std::string(objective) + ".h5");
      std::string codec;
      const Outcome outcome = write_one(
          path,
          "fsync=off,replace=on,bound=rel=1e-3,threads=" + std::string(is_root() ? "1" : "6") +
              ",for=" + objective + ",profile=" + profile_of(bytes_per_s),
          "", &codec);
      expect_everywhere(outcome, TAILRACE_OK);
      EXPECT_EQ(codec, from_root(codec));
      EXPECT_NE(codec, "");
    }
  }
}

TEST(Decisions, AnotherProfileInTheEnvironmentOfOneRank) {
  const std::string path = scratch();
  if (is_last() && n_ranks() > 1) ::setenv("TAILRACE_PROFILE", "/no/such/profile.json", 1);
  const Outcome outcome = write_one(path, "fsync=off,bound=rel=1e-3");
  ::unsetenv("TAILRACE_PROFILE");
  expect_everywhere(outcome, TAILRACE_OK);
}

TEST(Decisions, AProfileThatRankZeroCannotRead) {
  const std::string profile = profile_of(100e6);
  const Outcome outcome = write_one(
      scratch(), "fsync=off,bound=rel=1e-3,profile=" + profile + (is_root() ? ".no" : ""));
  expect_everywhere(outcome, TAILRACE_ERROR_NOT_FOUND, {"profile.json.no"});
}

/// Other nodes than the others think: it is rank 0 who says how many ranks pretend to be one.
TEST(Decisions, PretendedNodesInTheEnvironmentOfOneRank) {
  const char* before = std::getenv("TAILRACE_RANKS_PER_NODE");
  const std::string kept = before == nullptr ? "" : before;
  if (is_last() && n_ranks() > 1) ::setenv("TAILRACE_RANKS_PER_NODE", "1", 1);
  const std::string path = scratch();
  const Outcome outcome = write_one(path, "fsync=off");
  if (kept.empty()) {
    ::unsetenv("TAILRACE_RANKS_PER_NODE");
  } else {
    ::setenv("TAILRACE_RANKS_PER_NODE", kept.c_str(), 1);
  }
  expect_everywhere(outcome, TAILRACE_OK);
  expect_values(path, 0);
}

/// A plug-in that one rank does not find is an error on all.
TEST(Decisions, APlugInThatOneRankDoesNotFind) {
  if (n_ranks() == 1) GTEST_SKIP() << "one rank is all ranks";
  const Outcome outcome =
      write_one(scratch(), std::string("fsync=off,codec=id=32099,cd=1,plugin-path=") +
                               (is_last() ? "/no/such/folder" : "/no/such/folder/either"));
  expect_everywhere(outcome, TAILRACE_ERROR_PLUGIN_MISSING, {"32099"});
}

/// The modes that go on beside the program plan by what each rank has; what they agree on holds.
TEST(Decisions, OtherThreadsInEveryMode) {
  for (const char* mode : {"sync", "async", "in_situ"}) {
    for (const char* layout : {"claimed", "dense", "arena", "predictive"}) {
      SCOPED_TRACE(std::string(mode) + " " + layout);
      if (std::string(layout) == "dense" && std::string(mode) != "sync") continue;  // refused
      const std::string path = scratch(std::string(mode) + layout + ".h5");
      const Outcome outcome = write_one(path, std::string("fsync=off,mode=") + mode +
                                                  ",layout=" + layout + ",threads=" +
                                                  (is_last()   ? "3"
                                                   : is_root() ? "0"
                                                               : "1") +
                                                  ",chunk=12x10x36,lab.order=insertion");
      expect_everywhere(outcome, TAILRACE_OK);
      expect_values(path, 0);
    }
  }
}

}  // namespace
