// Several steps in one chunk (write/gathering_writer): which steps wait, what is written, and when;
// in all modes. gathered_failures_test.cpp tests failures.

#include <array>
#include <fstream>
#include <optional>
#include <random>

#include "gathered_support.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "support/test_tier.hpp"

namespace {

using namespace gathered_test;

class GatheredSteps : public InAllModes {};

INSTANTIATE_TEST_SUITE_P(Modes, GatheredSteps, all_modes(), name_of_mode);

TEST_P(GatheredSteps, FieldsOfDifferentCountsAndPhases) {
  Program program(scratch(), mode());
  const auto four = program.define("/four", kSpace, "chunk=4x5x14x11");
  const auto plain = program.define("/plain", {40}, "chunk=8x");
  const auto one = program.define("/one", {40}, "chunk=1x8");
  std::size_t three = 0;
  std::size_t number = 0;
  std::uint64_t n_steps = 10;
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    if (step == 2) three = program.define("/later/three", {31}, "chunk=3x10");
    if (step == 1) number = program.define("/number", {}, "chunk=2x");
    program.put_all(four, step);
    program.put_all(plain, step, n_ranks() + 1);
    program.put_all(one, step);
    if (step >= 2 && step != 5) program.put_all(three, step);
    if (step >= 1) program.put_all(number, step);
    const StepReport report = program.end_step();
    const std::uint64_t of_four = (step + 1) % 4;
    const std::uint64_t of_three = step < 2 ? 0 : (step - 1 - (step >= 5 ? 1 : 0)) % 3;
    const std::uint64_t of_number = step % 2;
    EXPECT_EQ(report.n_waiting_steps, std::max({of_four, of_three, of_number})) << step;
    EXPECT_EQ(report.waiting_bytes, 8 * (of_four * n_elements(kSpace) + of_three * 31 + of_number))
        << step;
  }
  EXPECT_TRUE(program.close().ok());
  program.check(four, {4, 5, 14, 11});
  program.check(plain, {1, 8});
  program.check(one, {1, 8});
  program.check(three, {3, 10});
  program.check(number, {2});
}

TEST_P(GatheredSteps, BoxesThatChange) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=5x4x6x11");
  const auto other = program.define("/v", {29}, "chunk=3x7");
  for (std::uint64_t step = 0; step < 14; ++step) {
    // Boxes change in every step, then after three steps, then not at all; ranks have many or none.
    const int n_boxes = step < 5 ? n_ranks() + static_cast<int>(step) : step < 8 ? 1 : 3;
    program.put_all(field, step, n_boxes, static_cast<int>(step / 2));
    program.put_all(other, step, 2, static_cast<int>(step));
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {5, 4, 6, 11});
  program.check(other, {3, 7});
}

TEST_P(GatheredSteps, WithinTheirBounds) {
  Program program(scratch(), mode());
  const auto absolute = program.define("/abs", kSpace, "chunk=4x9x7x11,codec=trz,bound=abs=1e-3");
  const auto relative = program.define("/rel", kSpace, "chunk=3x4x14x11,codec=trz,bound=rel=1e-4");
  const auto booked =
      program.define("/book", kSpace, "chunk=2x9x14x11,codec=trz,book=auto,bound=abs=1e-2");
  const auto guarded = program.define(
      "/guarded", kSpace, "chunk=4x9x14x11,codec=trz,bound=abs=1e-2,guard=gradient=1e-2+sign");
  const auto region =
      program.define("/region", kSpace,
                     "chunk=3x9x14x11,codec=trz,bound=abs=1e-2,guard=region=*x0..9x0..14x*:1e-5");
  const auto chosen = program.define("/auto", kSpace, "chunk=3x9x14x11,codec=auto,bound=abs=1e-2");
  for (std::uint64_t step = 0; step < 7; ++step) {
    for (const auto field : {absolute, relative, booked, chosen, guarded, region})
      program.put_all(field, step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(absolute, {4, 9, 7, 11}, 1e-3);
  program.check(relative, {3, 4, 14, 11}, 2.1e-4);
  program.check(booked, {2, 9, 14, 11}, 1e-2);
  program.check(chosen, {3, 9, 14, 11}, 1e-2);
  program.check(guarded, {4, 9, 14, 11}, 1e-2);
  program.check(region, {3, 9, 14, 11}, 1e-5);
}

/// close() ends an open step and then writes all waiting steps.
TEST_P(GatheredSteps, CloseEndsAnOpenStep) {
  for (const std::uint64_t n_steps : {1U, 3U, 4U}) {
    Program program(scratch(), mode() + "replace=on");
    const auto field = program.define("/u", kSpace, "chunk=4x4x14x11,codec=trz,bound=abs=1e-3");
    for (std::uint64_t step = 0; step < n_steps; ++step) {
      program.put_all(field, step);
      if (step + 1 < n_steps) program.end_step();
    }
    program.steps[field].push_back(n_steps - 1);
    EXPECT_TRUE(program.close().ok());
    program.check(field, {4, 4, 14, 11}, 1e-3);
  }
}

TEST_P(GatheredSteps, WaitLeavesWhatWaits) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=4x9x14x11");
  program.put_all(field, 0);
  EXPECT_EQ(program.end_step().n_waiting_steps, 1U);
  program.put_all(field, 1);
  EXPECT_EQ(program.end_step().n_waiting_steps, 2U);
  const auto waited = program.writer->wait();
  ASSERT_TRUE(waited.ok()) << waited.status().message();
  EXPECT_EQ(waited->has_value(), program.deferred);
  if (*waited) {
    EXPECT_EQ((**waited).n_waiting_steps, 2U);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_root()) {
    EXPECT_FALSE(stock_has(scratch(), "/u"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(program.close().ok());
  program.check(field, {4, 9, 14, 11});
}

/// Without close() the file has its complete chunks, and waiting steps are lost.
TEST_P(GatheredSteps, WithoutClose) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=2x9x14x11");
  for (std::uint64_t step = 0; step < 5; ++step) {
    program.put_all(field, step);
    program.end_step();
  }
  program.wait();
  program.writer.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  program.steps[field].resize(4);
  program.check(field, {2, 9, 14, 11});
}

TEST_P(GatheredSteps, HolesAreFilled) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", {20}, "chunk=3x10,holes=on,fill=-1");
  for (std::uint64_t step = 0; step < 4; ++step) {
    if (is_root()) program.put(field, {{{0}, {15}}}, step);
    ASSERT_TRUE(program.writer->end_step().ok());
  }
  EXPECT_TRUE(program.close().ok());
  if (!is_root()) return;
  const auto values = read_back(scratch(), "/u").values;
  ASSERT_EQ(values.size(), 80U);
  for (std::uint64_t i = 0; i < 80; ++i) {
    EXPECT_EQ(values[i], i % 20 < 15 ? value_at(i % 20, i / 20) : -1.0) << i;
  }
}

/// Boxes continue those of the previous step, in any order.
TEST_P(GatheredSteps, BoxesInAnyOrder) {
  Program program(scratch(), mode() + "memory=8MiB");
  const Shape shape{30'000};
  const auto field = program.define("/u", shape, "chunk=4x5000,codec=deflate");
  std::vector<Box> boxes;
  for (std::uint64_t at = 0, i = 0; at < 30'000; ++i) {
    const std::uint64_t n = std::min<std::uint64_t>(10 + i % 7, 30'000 - at);
    if (i % static_cast<std::uint64_t>(n_ranks()) == static_cast<std::uint64_t>(rank())) {
      boxes.push_back({{at}, {n}});
    }
    at += n;
  }
  std::mt19937 random(7);
  for (std::uint64_t step = 0; step < 6; ++step) {
    std::shuffle(boxes.begin(), boxes.end(), random);
    program.put(field, boxes, step);
    program.steps[field].push_back(step);
    program.end_step();
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {4, 5000});
}

/// Random programs: fields and boxes of each step, failures, and jobs that end and are continued.
/// The file must have exactly the steps that succeeded.
TEST_P(GatheredSteps, AtRandom) {
  struct Gathered {
    std::size_t number;
    std::string options;
    Shape chunk;
    double bound;
  };
  for (unsigned seed = 0; seed < 12; seed += static_cast<unsigned>(test::tier_stride(4))) {
    std::mt19937 random(seed);  // equal on every rank
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    const auto either = [&](auto... of) { return std::array{of...}[random() % sizeof...(of)]; };
    std::vector<Gathered> fields;
    for (std::size_t f = 0; f < 3; ++f) {
      const std::uint64_t n = 2 + random() % 4;
      const char* const bound = either("", "", ",bound=abs=1e-3");
      const char* const codec = *bound != 0 ? "trz" : either("none", "deflate", "trz");
      fields.push_back({f + 1,
                        "chunk=" + std::to_string(n) + "x5x9,codec=" + codec + bound,
                        {n, 5, 9},
                        *bound != 0 ? 1e-3 : 0});
    }
    std::optional<Program> program;
    bool first = true;  // in this job: a failed step would discard new fields
    const auto begin = [&] {
      const auto steps = program ? program->steps : decltype(program->steps)();
      const bool append = program.has_value();
      program.emplace(scratch(), mode() + "replace=on", append);
      program->steps = steps;
      ASSERT_EQ(program->define("/plain", {40}, "chunk=8x,codec=none"), 0U);
      for (const Gathered& field : fields) {
        const std::string path = "/u" + std::to_string(field.number);
        ASSERT_EQ(program->define(path, {13, 17}, field.options), field.number);
      }
      first = true;
    };
    begin();
    int n_boxes = n_ranks();
    for (std::uint64_t step = 0; step < 25; ++step) {
      if (one_in(4)) n_boxes = 1 + static_cast<int>(random() % 9);
      const auto put_some = [&](std::uint64_t now) {
        program->put_all(0, now, 1 + static_cast<int>(random() % 3));
        for (const Gathered& field : fields) {
          if (first || !one_in(5)) {
            program->put_all(field.number, now, n_boxes, static_cast<int>(now));
          }
        }
      };
      if (!first && one_in(6)) {
        put_some(1000 + step);
        if (one_in(2)) {
          program->put_badly(0);
        } else {
          program->put(fields[random() % 3].number, {{{0, 0}, {1, 1}}}, 0);
        }
        EXPECT_FALSE(program->failing_step().ok());
      }
      if (!first && one_in(6)) {
        program->wait();
        MPI_Barrier(MPI_COMM_WORLD);
        no_room = true;
        put_some(2000 + step);
        Status failed = program->failing_step();
        if (program->deferred) {
          EXPECT_TRUE(failed.ok()) << failed.message();
          put_some(3000 + step);
          failed = one_in(2) ? program->failing_step() : program->writer->wait().status();
          program->failing_step_is_over();
        }
        EXPECT_EQ(failed.code(), Code::no_space) << failed.message();
        MPI_Barrier(MPI_COMM_WORLD);
        no_room = false;
      }
      put_some(step);
      program->end_step();
      first = false;
      if (one_in(7)) program->wait();
      if (step == 24 || !one_in(6)) continue;
      expect_well(program->close());
      begin();
    }
    expect_well(program->close());
    program->check(0, {1, 8});
    for (const Gathered& field : fields) program->check(field.number, field.chunk, field.bound);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(GatheredSteps, AllLayouts) {
  for (const char* options :
       {"layout=claimed,writers=node", "layout=arena,trace-file=/dev/null",
        "layout=predictive,verify=on", "layout=sparse", "layout=claimed,lab.order=johnson"}) {
    Program program(scratch(), mode() + "replace=on," + options);
    const auto field = program.define("/u", kSpace, "chunk=3x4x7x11,codec=trz,bound=abs=1e-3");
    for (std::uint64_t step = 0; step < 8; ++step) {
      program.put_all(field, step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok()) << options;
    program.check(field, {3, 4, 7, 11}, 1e-3);
  }
}

/// Growing boxes request memory in their own step; waiting steps are unaffected.
TEST_P(GatheredSteps, MemoryIsDecidedBeforeItIsTaken) {
  Program program(scratch(), mode() + "memory=1MiB");
  // Four steps of 125 KiB. In deferred modes half of that, because chunks in flight count as well.
  const std::uint64_t n_rows = program.deferred ? 8 : 16;
  const Shape shape{n_rows * static_cast<std::uint64_t>(n_ranks()), 1000};
  const Box own{{n_rows * static_cast<std::uint64_t>(rank()), 0}, {n_rows, 1000}};
  const auto large = program.define("/large", shape, "chunk=9x4x100,codec=none");
  program.put(large, {}, 0);
  if (is_last()) {
    const auto values = Program::values_of(shape, own, 0);
    EXPECT_EQ(program.writer->put(large, own, values.data()).code(), Code::out_of_memory);
  }
  expect_failed(program.failing_step(), Code::out_of_memory, "memory=");
  const auto field = program.define("/u", shape, "chunk=4x4x100,codec=none");
  for (std::uint64_t step = 0; step < 7; ++step) {
    if (step == 2 || step == 5) {  // One more box.
      program.put(field, {own}, 100);
      const Box whole = whole_box(shape);
      if (is_last()) {
        const auto values = Program::values_of(shape, whole, 100);
        EXPECT_EQ(program.writer->put(field, whole, values.data()).code(), Code::out_of_memory);
      }
      expect_failed(program.failing_step(), Code::out_of_memory, "field \"/u\"");
    }
    program.put(field, {own}, step);
    program.steps[field].push_back(step);
    const StepReport report = program.end_step();
    EXPECT_LE(report.peak_memory_bytes, 1U << 20) << step;
  }
  EXPECT_TRUE(program.close().ok());
  program.check(field, {4, 4, 100});
}

TEST_P(GatheredSteps, AJobGoesOnBehindWholeChunks) {
  std::vector<std::uint64_t> steps;
  for (const std::uint64_t n_more : {6U, 3U}) {
    Program program(scratch(), mode(), !steps.empty());
    const auto field = program.define("/u", kSpace, "chunk=3x4x14x11,codec=trz,bound=rel=1e-3");
    program.steps[field] = steps;
    for (std::uint64_t step = 0; step < n_more; ++step) {
      program.put_all(field, steps.size() + step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(field, {3, 4, 14, 11}, 2.1e-3);
    steps = program.steps[field];
  }
  Program program(scratch(), mode(), true);
  const auto field = program.define("/u", kSpace, "chunk=4x14x11,codec=trz,bound=rel=1e-3");
  program.put_all(field, 9);
  EXPECT_FALSE(program.failing_step().ok());
  EXPECT_TRUE(program.close().ok());
  program.steps[field] = steps;
  program.check(field, {3, 4, 14, 11}, 2.1e-3);
}

std::string bytes_at(const Extent& place) {
  std::string bytes(place.encoded_bytes, '\0');
  std::ifstream file(scratch(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(place.address));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// Stored values of a chunk keep their bits, however often jobs continue within it. Values appended
/// to it are within their bound.
TEST_P(GatheredSteps, JobsGoOnInTheMidstOfChunks) {
  struct Form {
    const char* options;
    Shape chunk;
  };
  for (const auto& [options, chunk] : std::initializer_list<Form>{
           {"chunk=5x4x14x11,codec=trz,bound=rel=1e-3", {5, 4, 14, 11}},
           {"chunk=5x3x5x11,codec=trz,bound=abs=0.02", {5, 3, 5, 11}},
           {"chunk=5x4x14x11,codec=trz,bound=pw_rel=0.01", {5, 4, 14, 11}},
           {"chunk=5x4x14x11,codec=trz", {5, 4, 14, 11}},
           {"chunk=5x4x5x11,codec=deflate", {5, 4, 5, 11}},
           {"chunk=5x4x14x11,codec=none", {5, 4, 14, 11}},
           {"chunk=5x4x14x11,codec=trz,bound=abs=0.02,verify=on", {5, 4, 14, 11}}}) {
    SCOPED_TRACE(options);
    const bool lossy = std::string(options).find("bound") != std::string::npos;
    std::vector<std::uint64_t> steps;
    std::vector<double> before;
    std::vector<Extent> places;  // All chunks of the last commit; none of their bytes may change.
    std::vector<std::string> bytes;
    for (const std::uint64_t n_more : {1U, 2U, 1U, 5U, 2U}) {
      Program program(scratch(), "replace=on," + mode(), !steps.empty());
      const auto field = program.define("/u", kSpace, options);
      program.steps[field] = steps;
      for (std::uint64_t step = 0; step < n_more; ++step) {
        program.put_all(field, steps.size() + step);
        const std::uint64_t n = steps.size() + step + 1;
        const StepReport report = program.end_step();
        EXPECT_EQ(report.n_waiting_steps, std::min(n % 5, step + 1)) << n;
        for (const FieldReport& of : report.fields) EXPECT_EQ(of.n_raw_chunks, 0U) << n;
      }
      EXPECT_TRUE(program.close().ok());
      program.check(field, chunk, lossy ? 0.02 : 0);
      steps = program.steps[field];
      const std::vector<double> now = read_back(scratch(), "/u").values;
      EXPECT_TRUE(std::equal(before.begin(), before.end(), now.begin()));
      before = now;
      if (is_root() && std::string(options).find("none") == std::string::npos) {
        for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(bytes_at(places[i]), bytes[i]);
        places.clear();
        bytes.clear();
        const auto chunks = read_chunk_index(scratch(), "/u");
        ASSERT_TRUE(chunks.ok());
        for (const StoredChunk& stored : *chunks) {
          places.push_back(stored.extent);
          bytes.push_back(bytes_at(stored.extent));
        }
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    EXPECT_EQ(steps.size(), 11U);
  }
}

/// A partial chunk that has changed since is not continued.
TEST_P(GatheredSteps, NothingGoesOnBehindADamagedChunk) {
  for (const char* const codec : {"codec=trz,bound=abs=0.01", "codec=trz"}) {
    const std::string options = std::string("chunk=4x9x14x11,") + codec;
    Program first(scratch(), "replace=on," + mode());
    const auto field = first.define("/u", kSpace, options);
    for (std::uint64_t step = 0; step < 6; ++step) {
      first.put_all(field, step);
      first.end_step();
    }
    EXPECT_TRUE(first.close().ok());
    if (is_root()) {
      const auto chunks = read_chunk_index(scratch(), "/u");
      ASSERT_TRUE(chunks.ok());
      ASSERT_EQ(chunks->size(), 2U);
      const Extent& place = chunks->back().extent;
      std::fstream file(scratch(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(place.address + place.encoded_bytes / 2));
      file.write("x", 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    Program second(scratch(), mode(), true);
    const auto again = second.define("/u", kSpace, options);
    second.put_all(again, 6);
    expect_failed(second.failing_step(), Code::codec_failed, "the incomplete last chunks");
    expect_well(second.close());
  }
}

}  // namespace
