// Several steps in one chunk (write/gathering_writer): what waits, what is written, what fails and
// what stays. Each row of docs/adr/steps-in-one-chunk.md has its tests here, in all modes.

#include <gtest/gtest.h>
#include <hdf5.h>
#include <tailrace/reader.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "comm_of_all.hpp"
#include "core/option_table.hpp"
#include "core/storage_over.hpp"
#include "exec/comm_factory.hpp"
#include "rank_support.hpp"
#include "write/write.hpp"

namespace {

using namespace api_test;
using namespace tailrace;

/// What the value of an element is in a step; smooth in both, so that bounds are of use.
double value_at(std::uint64_t index, std::uint64_t step) {
  return std::sin(0.011 * static_cast<double>(index) + 0.2 * static_cast<double>(step)) +
         0.01 * static_cast<double>(step);
}

/// A shape cut into uneven boxes, of which this rank has those that are dealt to it.
std::vector<Box> own_boxes(const Shape& shape, int n_boxes, int first_rank) {
  std::vector<Box> boxes{whole_box(shape)};
  while (static_cast<int>(boxes.size()) < n_boxes && !shape.empty()) {
    const auto largest = std::max_element(boxes.begin(), boxes.end(), [](auto& a, auto& b) {
      return a.n_elements() < b.n_elements();
    });
    const auto side = std::max_element(largest->count.begin(), largest->count.end());
    const auto d = static_cast<std::size_t>(side - largest->count.begin());
    if (*side < 2) break;
    Box rest = *largest;
    const std::uint64_t kept = std::max<std::uint64_t>(1, *side * 3 / 7);
    largest->count[d] = kept;
    rest.start[d] += kept;
    rest.count[d] -= kept;
    boxes.push_back(rest);
  }
  std::vector<Box> own;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if ((static_cast<int>(i) + first_rank) % n_ranks() == rank()) own.push_back(boxes[i]);
  }
  return own;
}

/// A dataset as the reader has it, and its values.
struct ReadBack {
  Shape shape;
  Shape chunk_shape;
  std::uint64_t most_steps = 0;
  std::vector<double> values;
};

ReadBack read_back(const std::string& file, const std::string& path) {
  ReadBack back;
  tailrace_reader* reader = nullptr;
  EXPECT_EQ(tailrace_reader_open(file.c_str(), nullptr, 0, "", &reader), TAILRACE_OK)
      << tailrace_thread_error();
  if (reader == nullptr) return back;
  std::size_t number = 0;
  tailrace_dataset_info info{};
  if (tailrace_reader_find(reader, path.c_str(), &number) == TAILRACE_OK &&
      tailrace_reader_dataset(reader, number, &info) == TAILRACE_OK) {
    back.shape.assign(info.shape, info.shape + info.n_dims);
    if (info.chunk_shape != nullptr) {
      back.chunk_shape.assign(info.chunk_shape, info.chunk_shape + info.n_dims);
    }
    back.most_steps = info.max_shape[0];
    back.values.resize(n_elements(back.shape));
    const Shape start(back.shape.size(), 0);
    EXPECT_EQ(tailrace_reader_read(reader, number, start.data(), back.shape.data(), nullptr,
                                   back.values.data(), back.values.size() * sizeof(double)),
              TAILRACE_OK)
        << tailrace_thread_error();
  } else {
    ADD_FAILURE() << path << ": " << tailrace_thread_error();
  }
  EXPECT_EQ(tailrace_reader_close(reader), TAILRACE_OK);
  return back;
}

bool stock_has(const std::string& file, const std::string& object) {
  const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const bool has = H5Lexists(opened, object.c_str(), H5P_DEFAULT) > 0;
  H5Fclose(opened);
  return has;
}

/// An attribute as stock HDF5 has it; "": there is no such object, or no such text.
std::string stock_text(const std::string& file, const std::string& object, const char* name) {
  const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  std::string text;
  if (H5Lexists(opened, object.c_str(), H5P_DEFAULT) > 0) {
    const hid_t attribute = H5Aopen_by_name(opened, object.c_str(), name, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    if (H5Tis_variable_str(type) > 0) {
      char* held = nullptr;
      H5Aread(attribute, type, &held);
      text = held;
      H5free_memory(held);
    } else {
      text.resize(H5Tget_size(type));
      H5Aread(attribute, type, text.data());
      text.resize(std::strlen(text.c_str()));
    }
    H5Tclose(type);
    H5Aclose(attribute);
  }
  H5Fclose(opened);
  return text;
}

std::atomic<bool> no_room{false};
std::atomic<int> n_refused_writes{0};
std::atomic<int> n_to_refuse{0};  ///< Of this rank's next writes.

Status refused() {
  ++n_refused_writes;
  return Status(Code::no_space, "the disk is full");
}

class StorageWithoutRoom final : public StorageOver {
 public:
  using StorageOver::StorageOver;
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (no_room || n_to_refuse-- > 0) return refused();
    return inner_->write_at(address, bytes);
  }
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    if (no_room || n_to_refuse-- > 0) return refused();
    return inner_->write_pieces_at(address, pieces);
  }
};

Result<std::unique_ptr<Storage>> open_storage(const std::string& path, bool create) {
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, create, false);
  if (!storage.ok()) return storage;
  return std::unique_ptr<Storage>(std::make_unique<StorageWithoutRoom>(std::move(*storage)));
}

/// The same failure on every rank.
void expect_failed(const Status& status, Code code, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos)
      << '"' << part << "\" is not in: " << status.message();
  EXPECT_EQ(status.message(), from_root(status.message()));
}

/// A program that writes fields over time, and what the file must hold of them.
class Program {
 public:
  explicit Program(std::string path, const std::string& text, bool append = false)
      : path_(std::move(path)) {
    FileOptions options;
    const std::string all = "fsync=off,over-time=on," + text;
    EXPECT_TRUE(apply_file_options(all, options).ok()) << all;
    options.open_storage = open_storage;
    defaults_ = options.field_defaults;
    deferred = options.mode != StepMode::sync;
    auto made = append ? Writer::open(comm_of_all(), path_, options)
                       : Writer::create(comm_of_all(), path_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made.ok()) writer = std::move(*made);
  }

  std::size_t define(const std::string& path, const Shape& shape, const std::string& text) {
    FieldDefinition definition{path, DType::f64, shape, defaults_};
    definition.options.chunk_shape.reset();
    EXPECT_TRUE(apply_field_options(text, definition.options).ok()) << text;
    const auto index = writer->define_field(definition);
    EXPECT_TRUE(index.ok()) << index.status().message();
    if (!index.ok()) return 0;
    shapes_[*index] = shape;
    paths_[*index] = path;
    return *index;
  }

  /// Boxes of a field's step.
  void put(std::size_t field, const std::vector<Box>& boxes, std::uint64_t step) {
    for (const Box& box : boxes) {
      const std::vector<double> values = values_of(shapes_[field], box, step);
      EXPECT_TRUE(writer->put(field, box, values.data(), true).ok());
    }
  }
  /// All of it, cut into `n_boxes`, dealt from `first_rank` on.
  void put_all(std::size_t field, std::uint64_t step, int n_boxes = n_ranks(), int first_rank = 0) {
    const std::vector<Box> boxes = own_boxes(shapes_[field], n_boxes, first_rank);
    put(field, boxes, step);
    if (boxes.empty()) {
      const Shape none(shapes_[field].size(), 0);
      if (!none.empty()) {
        EXPECT_TRUE(writer->put(field, {none, none}, nullptr).ok());
      }
    }
    now_[field] = step;
  }
  /// One box that is out of place, by the last rank.
  void put_badly(std::size_t field) {
    const double value = 0;
    Shape start = shapes_[field];
    if (is_last()) {
      EXPECT_FALSE(writer->put(field, {start, Shape(start.size(), 1)}, &value).ok());
    }
  }

  /// A step that goes well, or a flight that does.
  StepReport end_step() {
    const auto report = writer->end_step();
    EXPECT_TRUE(report.ok()) << report.status().message();
    for (const auto& [field, step] : now_) steps[field].push_back(step);
    now_.clear();
    return report.ok() ? *report : StepReport();
  }
  Status failing_step() {
    now_.clear();
    return writer->end_step().status();
  }
  void failing_step_is_over() { now_.clear(); }
  void wait() {
    const auto waited = writer->wait();
    EXPECT_TRUE(waited.ok()) << waited.status().message();
  }
  Status close() {
    const Status closed = writer->close();
    writer.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    return closed;
  }

  /// What the file has of a field must be these steps, within `bound`.
  void check(std::size_t field, const Shape& chunk, double bound = 0) {
    if (!is_root()) return;
    const std::vector<std::uint64_t>& wanted = steps[field];
    const ReadBack back = read_back(path_, paths_[field]);
    Shape shape = shapes_[field];
    shape.insert(shape.begin(), wanted.size());
    ASSERT_EQ(back.shape, shape) << paths_[field];
    EXPECT_EQ(back.chunk_shape, chunk) << paths_[field];
    EXPECT_EQ(back.most_steps, UINT64_MAX);
    const std::vector<double>& values = back.values;
    const std::uint64_t n = n_elements(shapes_[field]);
    std::size_t n_wrong = 0;
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      for (std::uint64_t i = 0; i < n; ++i) {
        const bool right = std::abs(values[t * n + i] - value_at(i, wanted[t])) <= bound;
        if (!right && n_wrong++ == 0) {
          ADD_FAILURE() << paths_[field] << " step " << t << " element " << i << ": "
                        << values[t * n + i] << " in place of " << value_at(i, wanted[t]);
        }
      }
    }
    EXPECT_EQ(n_wrong, 0U) << paths_[field];
  }

  static std::vector<double> values_of(const Shape& shape, const Box& box, std::uint64_t step) {
    std::vector<double> values;
    values.reserve(box.n_elements());
    for_each_position(box, [&](const Shape& at) {
      std::uint64_t index = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
      values.push_back(value_at(index, step));
    });
    return values;
  }

  std::unique_ptr<Writer> writer;
  bool deferred = false;
  std::map<std::size_t, std::vector<std::uint64_t>> steps;  ///< That are to be in the file.

 private:
  std::string path_;
  FieldOptions defaults_;
  std::map<std::size_t, Shape> shapes_;
  std::map<std::size_t, std::string> paths_;
  std::map<std::size_t, std::uint64_t> now_;
};

const Shape kSpace{9, 14, 11};

class GatheredSteps : public ::testing::TestWithParam<const char*> {
 protected:
  /// hold=promise: what is handed over stays where it waited.
  static std::string mode() {
    const std::string name = GetParam();
    return name == "promise" ? "mode=async,hold=promise," : "mode=" + name + ",";
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, GatheredSteps,
                         ::testing::Values("sync", "async", "in_situ", "promise"),
                         [](const auto& of) { return std::string(of.param); });

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
    // Changed in every step, after three, not at all; ranks with many boxes and with none.
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

/// Of a step that fails by another field nothing stays, and all that waited before: in a step that
/// is due, and in one that is not.
TEST_P(GatheredSteps, AnotherFieldsFault) {
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

TEST_P(GatheredSteps, WhatNobodyPutOrTwoIsAnErrorOfItsStep) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=4x9x14x11");
  const auto whole = Box{{0, 0, 0}, kSpace};
  for (std::uint64_t step = 0; step < 6; ++step) {
    if (step == 1 || step == 3) {  // A hole; of a new kind later.
      if (is_root()) program.put(field, {{{0, 0, 0}, {9, 14, 10}}}, step);
      expect_failed(program.failing_step(), Code::bad_coverage, "were put by no rank");
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

TEST_P(GatheredSteps, FirstStepThatFailsTakesTheFieldAlong) {
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

/// The disk is full when a chunk is due: the step goes, and those that waited for it do not. Where
/// steps are handed over, the call that finds out drops its own, too.
TEST_P(GatheredSteps, FullDisk) {
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

/// wait() finds out.
TEST_P(GatheredSteps, FullDiskFoundByWait) {
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

TEST_P(GatheredSteps, CloseWritesWhatWaitsAlsoAfterAnError) {
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

/// Where all fields' last chunks cannot be written at once, each is by itself.
TEST_P(GatheredSteps, CloseWritesEachFieldByItself) {
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

/// A step that is open is ended by close(), and what waits then is written.
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

/// close() finds out that a chunk could not be written: its last step is lost, as any that fails.
TEST_P(GatheredSteps, CloseAfterAFlightThatFails) {
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
        while (n_refused == 0) {  // It is to fail before there is room again.
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

/// Without close() whole chunks are there, and what waits is lost.
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

// --- What can be refused is refused in the first step.

struct Refusal {
  const char* file;
  const char* field;
  Code code;
  const char* part;
};

TEST_P(GatheredSteps, RefusedInTheFirstStep) {
  const Refusal refusals[] = {
      {"", "chunk=4x9x14x11,codec=id=32999,cd=1", Code::plugin_missing, "/u"},
      {"", "chunk=200000x9x14x11", Code::invalid_argument, "at most"},
      {"", "chunk=4x9x14x11,codec=trz,bound=abs=1e-3,guard=sum", Code::unsupported, "sum"},
      {"", "chunk=4x9x14x11,codec=trz,bound=abs=1e-3,guard=minmax", Code::unsupported, "minmax"},
      {"", "chunk=4x9x14x11,codec=deflate,level=77", Code::invalid_argument, "level"},
      {"memory=4MiB", "chunk=256x9x14x11", Code::out_of_memory, "memory="},
  };
  for (const Refusal& refusal : refusals) {
    Program program(scratch(), mode() + "replace=on," + refusal.file);
    program.define("/u", kSpace, refusal.field);
    expect_failed(program.failing_step(), refusal.code, refusal.part);
    const auto field = program.define("/u", {40}, "chunk=2x8");
    for (std::uint64_t step = 0; step < 3; ++step) {
      program.put_all(field, step);
      program.end_step();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(field, {2, 8});
  }
}

TEST_P(GatheredSteps, LayoutsThatDoNotFit) {
  if (std::string(GetParam()) == "in_situ") {
    Program recorded(scratch("recorded.h5"), mode() + "record=" + scratch("record.json"));
    recorded.put_all(recorded.define("/u", {40}, "chunk=2x8"), 0);
    expect_failed(recorded.failing_step(), Code::unsupported, "record=");
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

TEST_P(GatheredSteps, Targets) {
  Program program(scratch(), mode() + "target-psnr=70");
  const auto field = program.define("/u", kSpace, "chunk=3x4x7x11,codec=trz");
  const auto chosen = program.define("/v", kSpace, "chunk=2x4x7x11");
  for (std::uint64_t step = 0; step < 8; ++step) {
    program.put_all(field, step);
    program.put_all(chosen, step);
    program.end_step();
  }
  const Status closed = program.close();
  EXPECT_TRUE(closed.ok()) << closed.message();
  program.check(field, {3, 4, 7, 11}, 0.1);
  program.check(chosen, {2, 4, 7, 11}, 0.1);
}

/// Programs at random: which fields are put, in which boxes, what goes wrong, and when. The file
/// must have the steps that went well, and no others.
TEST_P(GatheredSteps, AtRandom) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);  // the same on every rank
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    Program program(scratch(), mode() + "replace=on");
    const auto plain = program.define("/plain", {40}, "chunk=8x,codec=none");
    std::vector<std::pair<std::size_t, Shape>> fields;
    for (int f = 0; f < 3; ++f) {
      const std::uint64_t n = 2 + random() % 4;
      const std::string codec = one_in(2) ? "none" : "deflate";
      fields.emplace_back(program.define("/u" + std::to_string(f), {13, 17},
                                         "chunk=" + std::to_string(n) + "x5x9,codec=" + codec),
                          Shape{n, 5, 9});
    }
    int n_boxes = n_ranks();
    for (std::uint64_t step = 0; step < 25; ++step) {
      if (one_in(4)) n_boxes = 1 + static_cast<int>(random() % 9);
      const auto put_some = [&](std::uint64_t now) {
        program.put_all(plain, now, 1 + static_cast<int>(random() % 3));
        for (const auto& [field, chunk] : fields) {
          if (now == 0 || !one_in(5)) program.put_all(field, now, n_boxes, static_cast<int>(now));
        }
      };
      const bool first = step == 0;  // new fields would go with it
      if (!first && one_in(6)) {
        put_some(1000 + step);
        if (one_in(2)) {
          program.put_badly(plain);
        } else {
          program.put(fields[random() % 3].first, {{{0, 0}, {1, 1}}}, 0);
        }
        EXPECT_FALSE(program.failing_step().ok());
      }
      if (!first && one_in(6)) {
        program.wait();
        MPI_Barrier(MPI_COMM_WORLD);
        no_room = true;
        put_some(2000 + step);
        Status failed = program.failing_step();
        if (program.deferred) {
          EXPECT_TRUE(failed.ok()) << failed.message();
          put_some(3000 + step);
          failed = one_in(2) ? program.failing_step() : program.writer->wait().status();
          program.failing_step_is_over();
        }
        EXPECT_EQ(failed.code(), Code::no_space) << failed.message();
        MPI_Barrier(MPI_COMM_WORLD);
        no_room = false;
      }
      put_some(step);
      program.end_step();
      if (one_in(7)) program.wait();
    }
    EXPECT_TRUE(program.close().ok());
    program.check(plain, {1, 8});
    for (const auto& [field, chunk] : fields) program.check(field, chunk);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(GatheredSteps, AllLayouts) {
  for (const char* options :
       {"layout=claimed,writers=node", "layout=arena,trace=on", "layout=predictive,verify=on",
        "layout=sparse", "layout=claimed,order=johnson"}) {
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

TEST_P(GatheredSteps, RanksThatDiffer) {
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

/// Boxes that grow ask for memory in their own step; what waits is not touched by it.
TEST_P(GatheredSteps, MemoryIsDecidedBeforeItIsTaken) {
  Program program(scratch(), mode() + "memory=1MiB");
  // Four steps of 125 KiB; where a chunk under way counts besides, of the half.
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
    if (step == 2 || step == 5) {  // A box more.
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

// --- Files that are opened anew.

TEST_P(GatheredSteps, AJobGoesOnBehindWholeChunks) {
  std::vector<std::uint64_t> steps;
  for (const std::uint64_t n_more : {6U, 3U, 1U}) {
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
  // Now it has ten: one is alone in its chunk.
  Program program(scratch(), mode(), true);
  const auto field = program.define("/u", kSpace, "chunk=3x4x14x11,codec=trz,bound=rel=1e-3");
  const auto other = program.define("/v", {29}, "chunk=3x7");
  program.put_all(field, 10);
  program.put_all(other, 10);
  expect_failed(program.failing_step(), Code::unsupported, "in the midst of a chunk");
  program.define("/u", kSpace, "chunk=4x14x11,codec=trz,bound=rel=1e-3");
  EXPECT_FALSE(program.failing_step().ok());
  EXPECT_TRUE(program.close().ok());
  program.steps[field] = steps;
  program.check(field, {3, 4, 14, 11}, 2.1e-3);
}

TEST_P(GatheredSteps, PathsThatAreTaken) {
  Program program(scratch(), mode());
  const auto field = program.define("/u", kSpace, "chunk=3x4x14x11");
  program.put_all(field, 0);
  program.end_step();
  FieldDefinition below{"/u/x", DType::f64, {4}, FieldOptions()};
  const auto child = program.writer->define_field(below);
  ASSERT_TRUE(child.ok());
  expect_failed(program.failing_step(), Code::invalid_argument, "is a field, not a group");
  EXPECT_FALSE(program.writer->define_field({"/u", DType::f64, {4}, {}}).ok());
  expect_failed(program.failing_step(), Code::already_exists, "defined before");
  program.put_all(field, 1);
  program.end_step();
  EXPECT_TRUE(program.close().ok());
  program.check(field, {3, 4, 14, 11});
}

}  // namespace
