// All ranks decide alike, even if one rank has other options, another environment or other threads.
// All ranks write the same file or return the same error, and no rank hangs.
//
// The table of options defines which options must be equal on all ranks. This test tries every line
// of the table, so a new option cannot be forgotten. The watchdog of rank_support.hpp turns a
// deadlock into a failure.

#include <cstdlib>
#include <fstream>
#include <map>

#include "api_support.hpp"
#include "support/option_cases.hpp"

namespace {

using namespace api_test;

const Shape kDecided{48, 40, 36};

/// Values of each option: that of most ranks, and a different one for the last rank.
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
      {"roles", {"on", "off"}},
      {"over-time", {"off", "on"}},
  };
  return pairs;
}

/// Writes one field; every rank passes its own options.
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

/// @param as_default  field options: pass them as defaults of the file, else with the field.
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
    // define() refuses options of other interfaces. Then end_step, which would report the refusal
    // to all ranks, is not called.
    if (!option.of_file && option.name != "covered" && option.name != "roles")
      try_option(option, false);
  }
}

/// A machine profile with this bandwidth. At some bandwidths the number of threads decides between
/// settings.
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
  expect_everywhere(outcome, TAILRACE_ERROR_INVALID_ARGUMENT, {"profile.json.no"});
}

/// One rank assumes other nodes than the others: rank 0 decides how many ranks form a pretended
/// node.
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

/// A plug-in that is missing on one rank is an error on all ranks.
TEST(Decisions, APlugInThatOneRankDoesNotFind) {
  if (n_ranks() == 1) GTEST_SKIP() << "one rank is all ranks";
  const Outcome outcome =
      write_one(scratch(), std::string("fsync=off,codec=id=32099,cd=1,plugin-path=") +
                               (is_last() ? "/no/such/folder" : "/no/such/folder/either"));
  expect_everywhere(outcome, TAILRACE_ERROR_PLUGIN_MISSING, {"32099"});
}

/// Modes that encode in the background plan with each rank's own resources. What the ranks have
/// agreed on holds.
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
