// Helpers of the tests of several steps in one chunk. A program writes fields over time and knows
// the expected contents of the file; storage can simulate a full disk.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>
#include <tailrace/reader.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "comm_of_all.hpp"
#include "core/option_table.hpp"
#include "core/storage_over.hpp"
#include "exec/comm_factory.hpp"
#include "rank_support.hpp"
#include "write/write.hpp"

namespace gathered_test {

using namespace api_test;
using namespace tailrace;

/// The value of an element in a step. It is smooth in both, so that error bounds save space.
inline double value_at(std::uint64_t index, std::uint64_t step) {
  return std::sin(0.011 * static_cast<double>(index) + 0.2 * static_cast<double>(step)) +
         0.01 * static_cast<double>(step);
}

/// This rank's boxes of a shape that is cut into uneven boxes and dealt to the ranks.
inline std::vector<Box> own_boxes(const Shape& shape, int n_boxes, int first_rank) {
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

/// A dataset read back with the Reader, and its values.
struct ReadBack {
  Shape shape;
  Shape chunk_shape;
  std::uint64_t most_steps = 0;
  std::vector<double> values;
};

inline ReadBack read_back(const std::string& file, const std::string& path) {
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

inline bool stock_has(const std::string& file, const std::string& object) {
  const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const bool has = H5Lexists(opened, object.c_str(), H5P_DEFAULT) > 0;
  H5Fclose(opened);
  return has;
}

/// A text attribute read with stock HDF5; "" if the object or the attribute does not exist.
inline std::string stock_text(const std::string& file, const std::string& object,
                              const char* name) {
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

inline std::atomic<bool> no_room{false};
inline std::atomic<int> n_refused_writes{0};
inline std::atomic<int> n_to_refuse{0};  ///< Number of this rank's next writes that fail.

inline Status refused() {
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

inline Result<std::unique_ptr<Storage>> open_storage(const std::string& path, bool create) {
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, create, false);
  if (!storage.ok()) return storage;
  return std::unique_ptr<Storage>(std::make_unique<StorageWithoutRoom>(std::move(*storage)));
}

inline void expect_well(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

/// Expects the same failure on every rank.
inline void expect_failed(const Status& status, Code code, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos)
      << '"' << part << "\" is not in: " << status.message();
  EXPECT_EQ(status.message(), from_root(status.message()));
}

/// A program that writes fields over time and knows the expected contents of the file.
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

  Result<std::size_t> try_define(const std::string& path, const Shape& shape,
                                 const std::string& text) {
    FieldDefinition definition{path, DType::f64, shape, defaults_};
    definition.options.chunk_shape.reset();
    EXPECT_TRUE(apply_field_options(text, definition.options).ok()) << text;
    return writer->define_field(definition);
  }

  std::size_t define(const std::string& path, const Shape& shape, const std::string& text) {
    const auto index = try_define(path, shape, text);
    EXPECT_TRUE(index.ok()) << index.status().message();
    if (!index.ok()) return 0;
    shapes_[*index] = shape;
    paths_[*index] = path;
    return *index;
  }

  /// The refusal of a field, from its definition or from the first step with it.
  Status refusal(const std::string& path, const Shape& shape, const std::string& text) {
    const auto index = try_define(path, shape, text);
    return index.ok() ? failing_step() : index.status();
  }

  /// Puts boxes of a field in a step.
  void put(std::size_t field, const std::vector<Box>& boxes, std::uint64_t step) {
    for (const Box& box : boxes) {
      const std::vector<double> values = values_of(shapes_[field], box, step);
      EXPECT_TRUE(writer->put(field, box, values.data(), true).ok());
    }
  }
  /// Puts the complete field, cut into `n_boxes` that are dealt to the ranks from `first_rank` on.
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
  /// Puts one box outside the field, on the last rank.
  void put_badly(std::size_t field) {
    const double value = 0;
    Shape start = shapes_[field];
    if (is_last()) {
      EXPECT_FALSE(writer->put(field, {start, Shape(start.size(), 1)}, &value).ok());
    }
  }

  /// Ends a step and expects success.
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

  /// Expects the field in the file to have exactly these steps, within `bound`.
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
  std::map<std::size_t, std::vector<std::uint64_t>> steps;  ///< Expected steps of the file.

 private:
  std::string path_;
  FieldOptions defaults_;
  std::map<std::size_t, Shape> shapes_;
  std::map<std::size_t, std::string> paths_;
  std::map<std::size_t, std::uint64_t> now_;
};

inline const Shape kSpace{9, 14, 11};

/// Runs a test in all modes.
class InAllModes : public ::testing::TestWithParam<const char*> {
 protected:
  /// Options of the mode. hold=promise: values that are handed over stay in their waiting buffers.
  static std::string mode() {
    const std::string name = GetParam();
    return name == "promise" ? "mode=async,hold=promise," : "mode=" + name + ",";
  }
};

inline auto all_modes() { return ::testing::Values("sync", "async", "in_situ", "promise"); }
inline std::string name_of_mode(const ::testing::TestParamInfo<const char*>& of) {
  return of.param;
}

}  // namespace gathered_test
