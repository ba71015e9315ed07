// Several steps in one chunk, with failures: refusals and when they occur; what a failed step
// discards, and what remains. Each row of docs/adr/0025-steps-in-one-chunk.md has its tests.

#include "gathered_support.hpp"

namespace {

using namespace gathered_test;

class GatheredFailures : public InAllModes {};

INSTANTIATE_TEST_SUITE_P(Modes, GatheredFailures, all_modes(), name_of_mode);

/// A step that fails because of another field leaves nothing, and all earlier waiting steps remain.
/// The step is due in one case and not in the others.
TEST_P(GatheredFailures, AnotherFieldsFault) {
  for (const std::uint64_t failing : {1U, 2U, 4U}) {
    Program program(scratch(), mode() + "replace=on");
    const auto field = program.define("/u", kSpace, "chunk=3x9x14x11");
    const auto late = program.define("/late", {12}, "chunk=5x12");
    const auto plain = program.define("/plain", {40}, "chunk=8x");
    for (std::uint64_t step = 0; step < 8; ++step) {
      program.put_all(field, step);
      program.put_all(late, step);
      program.put_all(plain, step);
      if (step == failing) {
        program.put_badly(plain);
        expect_failed(program.failing_step(), Code::bad_coverage, "/plain");
        continue;
      }
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(field, {3, 9, 14, 11});
    program.check(late, {5, 12});
    program.check(plain, {1, 8});
  }
}

/// An invalid book is an error of the first step, not of the first full chunk.
TEST_P(GatheredFailures, ABookThatIsNone) {
  Program program(scratch(), mode());
  const std::string options = "codec=trz,bound=abs=1e-3,book=autox,chunk=4x9x14x11";
  expect_failed(program.refusal("/u", kSpace, options), Code::invalid_argument, "book must be");
  EXPECT_TRUE(program.close().ok());
}

TEST_P(GatheredFailures, WhatNobodyPutOrTwoIsAnErrorOfItsStep) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=4x9x14x11");
  const auto whole = Box{{0, 0, 0}, kSpace};
  for (std::uint64_t step = 0; step < 6; ++step) {
    if (step == 1 || step == 3) {  // A hole, before and after an overlap.
      if (is_root()) program.put(field, {{{0, 0, 0}, {9, 14, 10}}}, step);
      expect_failed(program.failing_step(), Code::bad_coverage, "were not put by any rank");
    }
    if (step == 2) {
      program.put_all(field, step);
      if (is_last()) program.put(field, {{{2, 3, 4}, {1, 1, 1}}}, step);
      expect_failed(program.failing_step(), Code::bad_coverage, "overlap");
    }
    if (step == 4) {
      if (is_last()) program.put(field, {whole}, step);
      if (is_root()) {
        EXPECT_FALSE(program.writer->put(field, whole, nullptr).ok());
      }
      expect_failed(program.failing_step(), Code::invalid_argument, "without values");
    }
    program.put_all(field, step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {4, 9, 14, 11});
}

TEST_P(GatheredFailures, FirstStepThatFailsTakesTheFieldAlong) {
  Program program(scratch(), mode());
  const auto plain = program.define("/plain", {40}, "chunk=8x");
  program.put_all(plain, 0);
  program.end_step();
  const auto lost = program.define("/u", kSpace, "chunk=4x9x14x11");
  EXPECT_TRUE(program.writer->set_attribute("/u", "units", {std::string("lost")}).ok());
  program.put_all(plain, 1);
  if (is_root()) program.put(lost, {{{0, 0, 0}, {1, 1, 1}}}, 1);
  expect_failed(program.failing_step(), Code::bad_coverage, "/u");
  const auto field = program.define("/u", kSpace, "chunk=2x9x14x11");
  EXPECT_NE(field, lost);
  for (std::uint64_t step = 2; step < 5; ++step) {
    if (step == 2) {
      EXPECT_TRUE(program.writer->set_attribute("/u", "units", {std::string("m")}).ok());
    }
    program.put_all(plain, step);
    program.put_all(field, step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {2, 9, 14, 11});
  program.check(plain, {1, 8});
  if (is_root()) {
    EXPECT_EQ(stock_text(scratch(), "/u", "units"), "m");
  }
}

/// The disk is full when a chunk is due. The step is lost, and the steps that waited for the chunk
/// are kept. In deferred modes the call that detects the failure also drops its own step.
TEST_P(GatheredFailures, FullDisk) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=3x9x14x11,codec=none");
  const auto other = program.define("/v", {29}, "chunk=5x7");
  const auto plain = program.define("/plain", {40}, "chunk=8x,codec=none");
  for (std::uint64_t step = 0; step < 9; ++step) {
    const auto put_all = [&](std::uint64_t now) {
      program.put_all(field, now);
      program.put_all(other, now, n_ranks(), static_cast<int>(now));
      program.put_all(plain, now);
    };
    if (step == 2) {
      program.wait();
      MPI_Barrier(MPI_COMM_WORLD);
      no_room = true;
      put_all(100);
      if (program.deferred) {
        EXPECT_TRUE(program.failing_step().ok());
        put_all(101);
      }
      const Status failed = program.failing_step();
      MPI_Barrier(MPI_COMM_WORLD);
      no_room = false;
      expect_failed(failed, Code::no_space, "the disk is full");
    }
    put_all(step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {3, 9, 14, 11});
  program.check(other, {5, 7});
  program.check(plain, {1, 8});
}

/// wait() detects the failure.
TEST_P(GatheredFailures, FullDiskFoundByWait) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=3x9x14x11,codec=none");
  for (std::uint64_t step = 0; step < 5; ++step) {
    if (step == 2) {
      program.wait();
      MPI_Barrier(MPI_COMM_WORLD);
      no_room = true;
      program.put_all(field, 100);
      Status failed = program.failing_step();
      if (program.deferred) {
        EXPECT_TRUE(failed.ok()) << failed.message();
        program.put_all(field, 101);
        failed = program.writer->wait().status();
      }
      MPI_Barrier(MPI_COMM_WORLD);
      no_room = false;
      expect_failed(failed, Code::no_space, "the disk is full");
    }
    program.put_all(field, step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {3, 9, 14, 11});
}

TEST_P(GatheredFailures, CloseWritesWhatWaitsAlsoAfterAnError) {
  for (const bool committed_before : {false, true}) {
    Program program(scratch(), mode() + "replace=on");
    const auto field = program.define("/u", kSpace, "chunk=4x9x14x11");
    const auto other = program.define("/v", {29}, "chunk=3x7");
    const auto plain = program.define("/plain", {40}, "chunk=8x");
    const std::uint64_t n_steps = committed_before ? 6 : 2;
    for (std::uint64_t step = 0; step < n_steps; ++step) {
      for (const auto all : {field, other, plain}) program.put_all(all, step);
      program.end_step();
    }
    program.put_all(field, 50);
    program.put_all(other, 50);
    program.put_badly(plain);
    expect_failed(program.close(), Code::bad_coverage, "/plain");
    program.steps[field].resize(n_steps);
    program.check(field, {4, 9, 14, 11});
    program.check(other, {3, 7});
    program.check(plain, {1, 8});
  }
}

/// If the last chunks of all fields cannot be written together, close() writes each field
/// separately.
TEST_P(GatheredFailures, CloseWritesEachFieldByItself) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=4x9x14x11,codec=none");
  const auto other = program.define("/v", {29}, "chunk=3x7,codec=none");
  for (std::uint64_t step = 0; step < 5; ++step) {
    program.put_all(field, step);
    program.put_all(other, step);
    program.end_step();
  }
  program.wait();
  n_to_refuse = is_root() ? 1 : 0;
  EXPECT_TRUE(program.close().ok());
  n_to_refuse = 0;
  program.check(field, {4, 9, 14, 11});
  program.check(other, {3, 7});
}

/// close() detects that a chunk could not be written. The last step is lost, like any failed step.
TEST_P(GatheredFailures, CloseAfterAFlightThatFails) {
  for (const bool open : {false, true}) {
    Program program(scratch(), mode() + "replace=on");
    const auto field = program.define("/u", kSpace, "chunk=3x9x14x11,codec=none");
    const auto other = program.define("/v", {29}, "chunk=7x7,codec=none");
    for (std::uint64_t step = 0; step < 2; ++step) {
      program.put_all(field, step);
      program.put_all(other, step);
      program.end_step();
    }
    program.wait();
    n_refused_writes = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    no_room = true;
    program.put_all(field, 100);
    program.put_all(other, 100);
    Status failed = program.failing_step();
    EXPECT_EQ(failed.ok(), program.deferred);
    if (program.deferred) {
      program.put_all(field, 101);
      if (!open) {
        failed = program.writer->wait().status();
        EXPECT_FALSE(failed.ok());
      } else {
        int n_refused = 0;
        while (n_refused == 0) {  // The write must fail before space is available again.
          program.writer->idle(0.01, {}, {});
          int here = n_refused_writes;
          MPI_Allreduce(&here, &n_refused, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    no_room = false;
    EXPECT_EQ(program.close().ok(), !(program.deferred && open));
    program.check(field, {3, 9, 14, 11});
    program.check(other, {7, 7});
  }
}

struct Refusal {
  const char* file;
  const char* field;
  Code code;
  const char* part;
};

TEST_P(GatheredFailures, RefusedInTheFirstStep) {
  const Refusal refusals[] = {
      {"", "chunk=4x9x14x11,codec=id=32999,cd=1", Code::plugin_missing, "/u"},
      {"", "chunk=200000x9x14x11", Code::invalid_argument, "at most"},
      {"", "chunk=4x9x14x11,codec=trz,bound=abs=1e-3,guard=sum", Code::unsupported, "sum"},
      {"", "chunk=4x9x14x11,codec=trz,bound=abs=1e-3,guard=minmax", Code::unsupported, "minmax"},
      {"", "chunk=4x9x14x11,codec=deflate,level=77", Code::invalid_argument, "level"},
      // Codecs that are chosen later refuse the same guards.
      {"", "chunk=4x9x14x11,bound=abs=1e-3,guard=sum", Code::unsupported, "sum"},
      {"", "chunk=4x9x14x11,codec=auto,bound=abs=1e-3,guard=sum", Code::unsupported, "sum"},
      {"", "chunk=4x9x14x11,bound=rel=1e-3,guard=monotone=1", Code::unsupported, "monotone"},
      {"", "chunk=4x9x14x11,bound=abs=1e-3,guard=minmax", Code::unsupported, "minmax"},
      {"", "chunk=4x9x14x11,bound=abs=1e-2,guard=region=0..5x0..9x0..14x*:1e-5", Code::unsupported,
       "the first axis of a field over time is time"},
      {"", "chunk=4x9x14x11,bound=abs=1e-3,preset=fast", Code::invalid_argument,
       "codec auto takes no settings"},
      {"", "chunk=4x9x14x11,codec=auto,level=3", Code::invalid_argument,
       "codec auto takes no settings"},
      {"memory=4MiB", "chunk=256x9x14x11", Code::out_of_memory, "memory="},
  };
  for (const Refusal& refusal : refusals) {
    Program program(scratch(), mode() + "replace=on," + refusal.file);
    expect_failed(program.refusal("/u", kSpace, refusal.field), refusal.code, refusal.part);
    const auto field = program.define("/u", {40}, "chunk=2x8");
    for (std::uint64_t step = 0; step < 3; ++step) {
      program.put_all(field, step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(field, {2, 8});
  }
}

/// A target applies to one step; a field whose chunks span several steps writes nothing in most of
/// them.
TEST_P(GatheredFailures, TargetsAreRefusedInTheFirstStep) {
  for (const std::string target : {"target=psnr=70", "target=size=1MiB"}) {
    for (const char* field : {"chunk=3x4x7x11,codec=trz", "chunk=2x4x7x11"}) {
      Program program(scratch(), mode() + "replace=on," + target);
      program.put_all(program.define("/u", kSpace, field), 0);
      expect_failed(program.failing_step(), Code::unsupported, "/u");
      program.put_all(program.define("/v", kSpace, field), 0);
      expect_failed(program.failing_step(), Code::unsupported, target.substr(0, 8));
      const auto plain = program.define("/u", kSpace, "chunk=4x7x11");
      program.put_all(plain, 1);
      program.end_step();
      EXPECT_TRUE(program.close().ok());
      program.check(plain, {1, 4, 7, 11}, 0.3);
    }
  }
}

/// A file with filters that no candidate produces, and a codec that must be chosen.
TEST_P(GatheredFailures, StoredFiltersThatNoCandidateMakes) {
  std::vector<std::uint64_t> steps;
  {
    Program program(scratch(), mode());
    const auto field = program.define("/u", {40}, "chunk=2x8,codec=deflate,level=2");
    for (std::uint64_t step = 0; step < 2; ++step) {
      program.put_all(field, step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    steps = program.steps[field];
  }
  Program program(scratch(), mode(), true);
  program.put_all(program.define("/u", {40}, "chunk=2x8,codec=auto"), 2);
  expect_failed(program.failing_step(), Code::invalid_argument, "no candidate with the filters");
  const auto field = program.define("/u", {40}, "chunk=2x8,codec=deflate,level=2");
  program.steps[field] = steps;
  for (std::uint64_t step = 2; step < 5; ++step) {
    program.put_all(field, step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {2, 8});
}

/// Field numbers differ between ranks after a rank has defined a field that failed.
TEST_P(GatheredFailures, FieldNumbersThatDiffer) {
  std::vector<std::uint64_t> steps;
  for (const bool append : {false, true}) {
    Program program(scratch(), mode(), append);
    if (append) {
      if (is_last()) program.define("/in/vain", {40}, "chunk=2x8");
      const Status failed = program.failing_step();
      EXPECT_FALSE(failed.ok()) << failed.message();
    }
    const auto other = program.define("/v" + std::string(append ? "2" : ""), {12}, "chunk=12");
    const auto plain = program.define("/plain", {40}, "chunk=8x,codec=trz,bound=abs=1e-3");
    const auto field = program.define("/u", {40}, "chunk=2x8,codec=trz,bound=rel=1e-3");
    program.steps[field] = program.steps[plain] = steps;
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (const auto all : {other, plain, field}) program.put_all(all, steps.size() + step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(plain, {1, 8}, 1e-3);
    program.check(field, {2, 8}, 2.1e-3);
    steps = program.steps[field];
  }
}

/// Memory reserved for waiting steps returns to the lanes when the last gathering field is gone.
TEST_P(GatheredFailures, MemoryComesBackWithTheLastField) {
  Program program(scratch(), mode() + "memory=1MiB,threads=1");
  const Shape shape{100, 100 * static_cast<std::uint64_t>(n_ranks())};
  const Box own{{0, 100 * static_cast<std::uint64_t>(rank())}, {100, 100}};
  const auto field = program.define("/u", shape, "chunk=2x10x100,codec=none");
  program.put(field, {own}, 0);
  program.put(field, {{{0, 0}, {1, 1}}}, 0);
  expect_failed(program.failing_step(), Code::bad_coverage, "overlap");
  const auto plain = program.define("/plain", {112'000}, "chunk=112000x,codec=none");
  program.put_all(plain, 1, 1);
  program.end_step();
  EXPECT_TRUE(program.close().ok());
  program.check(plain, {1, 112'000});
}

/// Small boxes need more memory for their descriptions than for their values.
TEST_P(GatheredFailures, ManySmallBoxesCount) {
  Program program(scratch(), mode() + "memory=1MiB");
  const std::uint64_t n_boxes = 20'000;
  const auto field = program.define("/u", {n_boxes}, "chunk=2x20000,codec=none");
  Status put;
  for (std::uint64_t i = 0; i < n_boxes && put.ok() && is_last(); ++i) {
    const double value = 0;
    put = program.writer->put(field, {{i}, {1}}, &value);
  }
  if (is_last()) {
    EXPECT_EQ(put.code(), Code::out_of_memory) << put.message();
  }
  expect_failed(program.failing_step(), Code::out_of_memory, "memory=");
  EXPECT_TRUE(program.close().ok());
}

TEST_P(GatheredFailures, LayoutsThatDoNotFit) {
  if (std::string(GetParam()) == "in_situ") {
    Program recorded(scratch("recorded.h5"), mode() + "lab.record=" + scratch("record.json"));
    recorded.put_all(recorded.define("/u", {40}, "chunk=2x8"), 0);
    expect_failed(recorded.failing_step(), Code::unsupported, "lab.record=");
  }
  Program program(scratch(), mode() + "layout=dense");
  const auto field = program.define("/u", {40}, "chunk=2x8");
  program.put_all(field, 0);
  if (program.deferred) {
    expect_failed(program.failing_step(), Code::unsupported, "layout dense");
    EXPECT_TRUE(program.close().ok());
    return;
  }
  program.end_step();
  program.put_all(field, 1);
  program.end_step();
  EXPECT_TRUE(program.close().ok());
  program.check(field, {2, 8});
  Program in_front(scratch("front.h5"), mode() + "layout=front");
  in_front.put_all(in_front.define("/u", {40}, "chunk=2x8"), 0);
  expect_failed(in_front.failing_step(), Code::unsupported, "layout=front");
}

TEST_P(GatheredFailures, RanksThatDiffer) {
  if (n_ranks() == 1) return;
  Program program(scratch(), mode());
  const auto plain = program.define("/plain", {40}, "chunk=8x");
  program.put_all(plain, 0);
  program.end_step();
  program.define("/u", {40}, is_last() ? "chunk=3x8" : "chunk=2x8");
  expect_failed(program.failing_step(), Code::disagreement, "/u");
  if (is_last()) program.define("/u", {40}, "chunk=3x8");
  expect_failed(program.failing_step(), Code::disagreement, "/u");
  program.define("/u", {40}, is_last() ? "chunk=1x8" : "chunk=2x8");
  expect_failed(program.failing_step(), Code::disagreement, "/u");
  program.put_all(plain, 1);
  program.end_step();
  EXPECT_TRUE(program.close().ok());
  program.check(plain, {1, 8});
}

TEST_P(GatheredFailures, PathsThatAreTaken) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=3x4x14x11");
  program.put_all(field, 0);
  program.end_step();
  FieldDefinition below{"/u/x", DType::f64, {4}, FieldOptions()};
  const auto child = program.writer->define_field(below);
  ASSERT_TRUE(child.ok());
  expect_failed(program.failing_step(), Code::invalid_argument, "is a field, not a group");
  EXPECT_FALSE(program.writer->define_field({"/u", DType::f64, {4}, {}}).ok());
  expect_failed(program.failing_step(), Code::already_exists, "already defined");
  program.put_all(field, 1);
  program.end_step();
  EXPECT_TRUE(program.close().ok());
  program.check(field, {3, 4, 14, 11});
}

/// The file does not contain a field that waits. Objects that would occupy its path are refused.
TEST_P(GatheredFailures, PathsOfFieldsThatWait) {
  Program program(scratch(), mode());
  const auto field = program.define("/u/x", kSpace, "chunk=3x4x14x11");
  std::vector<std::size_t> all{field};
  const auto end_step = [&](std::uint64_t step) {
    for (const auto one : all) program.put_all(one, step);
    program.end_step();
  };
  end_step(0);
  for (const char* chunk : {"chunk=8x", "chunk=2x8"}) {  // The path needs a group here.
    program.put_all(program.define("/u", {40}, chunk), 0);
    program.put_all(field, 100);
    expect_failed(program.failing_step(), Code::invalid_argument, "/u/x");
  }
  const AttributeValue text{std::string("m")};
  for (const char* below : {"/u/x/meta", "/u//x/meta/deep", "/u/./x/y"}) {
    EXPECT_TRUE(program.writer->set_attribute(below, "units", text).ok());
    program.put_all(field, 100);
    expect_failed(program.failing_step(), Code::invalid_argument, "/u/x");
  }
  // Another spelling of the field's path, and paths that only share its prefix.
  EXPECT_TRUE(program.writer->set_attribute("/u/x/", "units", text).ok());
  EXPECT_TRUE(program.writer->set_attribute("/u/xyz/", "units", text).ok());
  EXPECT_TRUE(program.writer->set_attribute("/u", "units", text).ok());
  all.push_back(program.define("/u/x0", {40}, "chunk=8x"));
  end_step(1);
  end_step(2);
  end_step(3);
  EXPECT_TRUE(program.close().ok());
  program.check(field, {3, 4, 14, 11});
  program.check(all.back(), {1, 8});
  if (!is_root()) return;
  for (const char* object : {"/u/x", "/u", "/u/xyz"}) {
    EXPECT_EQ(stock_text(scratch(), object, "units"), "m") << object;
  }
}

}  // namespace
