// Tailrace for C++17 and newer: the C API of tailrace.h with RAII, types, spans and exceptions.
//
//   auto file = tailrace::File::create("out.h5", tailrace::mpi(MPI_COMM_WORLD),
//                                      "codec=sz3,bound=rel=1e-3");
//   auto density = file.define<double>("/density", {1024, 1024});
//   density.put({{first_row, 0}, {n_rows, 1024}}, values);    // start, count; any contiguous range
//   tailrace::StepReport report = file.end_step();            // `values` is read until here
//   file.close();
//
// In the modes async and in_situ, between two steps (see "Idle time" in tailrace.h):
//
//   { auto scope = file.compute(); prepare(); }      // marks use of the main thread
//   file.idle_until([&] { return device.done(); });  // lends the thread to Tailrace
//   { auto scope = file.background(); exchange_halos(); }
//
// Header only. Read tailrace.h first: it explains steps, fields, boxes, options, collectivity and
// the rules for threads, which all apply here. A comment below says only what C++ adds. Every
// failure is a tailrace::Error; nothing else is thrown except std::bad_alloc.
//
// Scope exit. A File that is destroyed without close() or abandon() is abandoned, and nothing is
// thrown. Steps that are committed stay in the file: in mode sync all ended steps. The modes async
// and in_situ lose the step that was handed over last. An open step is dropped. A line on stderr
// (rank 0), or to the log callback, says which steps are in the file. MPI_Finalize abandons a File
// that is still open. An exception therefore never publishes half a step, but normal code must call
// close(). If only one rank leaves by an exception, end the job (MPI_Abort): the others may be
// waiting for it in a collective call.

#pragma once

#if __cplusplus < 201703L
#error "tailrace.hpp needs C++17 (-std=c++17); older C++ may use the C interface, tailrace.h"
#else

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tailrace/tailrace.h>
#include <tailrace/boxes.hpp>
#include <tailrace/report.hpp>
#include <tailrace/scope.hpp>

namespace tailrace {
// An inline namespace: users write tailrace::File. The symbol names of these classes differ from
// those inside a static libtailrace.
inline namespace api {

/// A failure: what() is the library's error text, code() its pinned number.
class Error : public std::runtime_error {
 public:
  Error(tailrace_error code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// Return the pinned number of the error.
  tailrace_error code() const noexcept { return code_; }
  const char* name() const noexcept { return tailrace_error_name(code_); }  ///< "bad_coverage"

 private:
  tailrace_error code_;
};

/// Throw an Error if `error`, the result of the last call of the C API on this thread, is a
/// failure. Thread-safe.
inline void check(tailrace_error error) {
  if (error != TAILRACE_OK) throw Error(error, tailrace_thread_error());
}

/// The ranks that share a file: only this process (default), or those of an MPI communicator. See
/// mpi().
class Comm {
 public:
  Comm() = default;
  template <class MpiComm, Require<std::is_trivially_copyable_v<MpiComm>> = 0>
  static Comm of(MpiComm mpi_comm) {
    // sizeof the handle itself is intended, even where MPI libraries make it a pointer.
    constexpr std::size_t n_bytes = sizeof(MpiComm);  // NOLINT(bugprone-sizeof-expression)
    static_assert(n_bytes <= sizeof(void*), "an MPI_Comm is an int or a pointer");
    Comm comm;
    comm.n_bytes_ = n_bytes;
    std::memcpy(comm.handle_.data(), &mpi_comm, comm.n_bytes_);
    return comm;
  }
  const void* address() const { return n_bytes_ == 0 ? nullptr : handle_.data(); }
  std::size_t n_bytes() const { return n_bytes_; }

 private:
  alignas(void*) std::array<std::byte, sizeof(void*)> handle_{};
  std::size_t n_bytes_ = 0;
};

/// The ranks of an MPI communicator: tailrace::mpi(MPI_COMM_WORLD). Tailrace uses a duplicate of
/// it.
template <class MpiComm>
Comm mpi(MpiComm mpi_comm) {
  return Comm::of(mpi_comm);
}

/// Only this process, without MPI.
inline Comm serial() { return Comm(); }

/// Options of a file or field: the text of tailrace.h, or built key by key.
///   tailrace::Options().codec("sz3").relative_bound(1e-3).set("threads", 2)
class Options {
 public:
  Options() = default;
  Options(const char* text) : text_(text == nullptr ? "" : text) {}
  Options(std::string text) : text_(std::move(text)) {}

  Options& set(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_.append(key).append("=").append(value);
    return *this;
  }
  Options& set(std::string_view key, const char* value) {
    return set(key, std::string_view(value));
  }
  Options& set(std::string_view key, bool on) { return set(key, on ? "on" : "off"); }
  template <class Number,
            Require<std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>> = 0>
  Options& set(std::string_view key, Number number) {
    return set(key, number_text(number));
  }

  Options& codec(std::string_view name) { return set("codec", name); }
  Options& absolute_bound(double bound) { return set("bound", "abs=" + number_text(bound)); }
  Options& relative_bound(double bound) { return set("bound", "rel=" + number_text(bound)); }
  Options& pointwise_bound(double bound) { return set("bound", "pw_rel=" + number_text(bound)); }
  Options& psnr(double decibels) { return set("bound", "psnr=" + number_text(decibels)); }
  /// Set guard=: properties that values preserve in addition to the bound. "sign", "zero",
  /// "threshold=V", "minmax", "sum", "monotone=AXIS", "log=V", "power=P:V", "region=WHERE:V",
  /// "gradient=V", "laplacian=V"; join several with '+'. See tailrace.h.
  Options& guard(std::string_view guards) { return set("guard", guards); }
  Options& chunk_shape(std::initializer_list<std::uint64_t> extents) {
    std::string text;
    for (const std::uint64_t extent : extents) {
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return set("chunk", text);
  }

  const std::string& text() const { return text_; }

 private:
  /// Return the shortest text that parses to the same number.
  template <class Number>
  static std::string number_text(Number number) {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    return std::string(text.data(), end);
  }

  std::string text_;
};

/// Set an attribute of "/", a group or a field: a text, a number, or a range of numbers of one
/// type. Alike on all ranks.
inline void set_attribute(tailrace_file* file, const std::string& object_path,
                          const std::string& name, std::string_view text) {
  const std::string with_zero(text);
  check(tailrace_attribute_set_text(file, object_path.c_str(), name.c_str(), with_zero.c_str()));
}

template <class Numbers, Require<is_contiguous<const Numbers>> = 0,
          Require<std::is_arithmetic_v<ValueOf<const Numbers>> &&
                  !std::is_same_v<ValueOf<const Numbers>, char>> = 0>
void set_attribute(tailrace_file* file, const std::string& object_path, const std::string& name,
                   const Numbers& numbers) {
  using Number = ValueOf<const Numbers>;
  const char* path = object_path.c_str();
  if constexpr (std::is_floating_point_v<Number>) {
    const std::vector<double> wide(std::begin(numbers), std::end(numbers));
    check(tailrace_attribute_set_f64(file, path, name.c_str(), wide.size(), wide.data()));
  } else if constexpr (std::is_signed_v<Number>) {
    const std::vector<std::int64_t> wide(std::begin(numbers), std::end(numbers));
    check(tailrace_attribute_set_i64(file, path, name.c_str(), wide.size(), wide.data()));
  } else {
    const std::vector<std::uint64_t> wide(std::begin(numbers), std::end(numbers));
    check(tailrace_attribute_set_u64(file, path, name.c_str(), wide.size(), wide.data()));
  }
}

template <class Number, Require<std::is_arithmetic_v<Number>> = 0>
void set_attribute(tailrace_file* file, const std::string& object_path, const std::string& name,
                   Number number) {
  set_attribute(file, object_path, name, Span<const Number>(&number, 1));
}

/// A field with elements of type T, or std::byte if the type is known only at run time. A small
/// value to copy and pass around; it must not outlive its File.
template <class T>
class Field {
 public:
  /// Put a box: box.n_elements() values, dense and row-major. Keep `values` alive and unchanged
  /// until end_step() or close() returns; with hold=promise, until the following end_step(), wait()
  /// or close() returns. If the values are destroyed earlier, use put_copy(). Passing a temporary
  /// does not compile.
  /// Not collective. Never throws for an invalid argument, because a rank that left its step by an
  /// exception would block the others. The next end_step() throws the error on all ranks. Only a
  /// put after close() throws by itself. Errors: also invalid_argument if the number of values is
  /// not box.n_elements().
  void put(const Box& box, Span<const T> values) const {
    if (!check_box(box, values.size())) return;
    report(tailrace_field_put(file_, field_, box.start.data(), box.count.data(), values.data()));
  }
  template <class Range, Require<is_temporary<Range>> = 0>
  void put(const Box& box, Range&& values) const = delete;
  template <class Range, Require<holds_another_type_than<Range, T> && !is_temporary<Range>> = 0>
  void put(const Box& box, Range&& values) const = delete;
  /// Put the complete field.
  void put(Span<const T> values) const { put(Box(Shape(shape_.size(), 0), shape_), values); }
  template <class Range, Require<is_temporary<Range>> = 0>
  void put(Range&& values) const = delete;

  /// Put a view, whose extents are box.count: a part of an array, in any order. Tailrace gathers
  /// the values when it encodes the step; keep them as for put().
  ///   field.put(box, tailrace::view(u, {ny + 2, nx + 2}).interior(1));
  template <class U,
            Require<std::is_same_v<std::remove_const_t<U>, T> && !std::is_same_v<T, std::byte>> = 0>
  void put(const Box& box, const View<U>& values) const {
    if (!check_view(box, values)) return;
    report(tailrace_field_put_strided(file_, field_, box.start.data(), box.count.data(),
                                      values.first(), values.byte_strides().data()));
  }
  /// Put a std::mdspan, of any layout with strides.
  template <class Array, Require<is_strided_array<Array>> = 0,
            Require<std::is_same_v<std::remove_cv_t<typename Array::value_type>, T>> = 0>
  void put(const Box& box, const Array& values) const {
    put(box, view(values));
  }
  /// Copying forms: the values may change or be destroyed when the call returns.
  template <class U,
            Require<std::is_same_v<std::remove_const_t<U>, T> && !std::is_same_v<T, std::byte>> = 0>
  void put_copy(const Box& box, const View<U>& values) const {
    if (!check_view(box, values)) return;
    report(tailrace_field_put_strided_copy(file_, field_, box.start.data(), box.count.data(),
                                           values.first(), values.byte_strides().data()));
  }
  template <class Array, Require<is_strided_array<Array>> = 0,
            Require<std::is_same_v<std::remove_cv_t<typename Array::value_type>, T>> = 0>
  void put_copy(const Box& box, const Array& values) const {
    put_copy(box, view(values));
  }

  /// Copying form of put(): `values` may change or be destroyed when the call returns.
  void put_copy(const Box& box, Span<const T> values) const {
    if (!check_box(box, values.size())) return;
    report(
        tailrace_field_put_copy(file_, field_, box.start.data(), box.count.data(), values.data()));
  }
  template <class Range, Require<holds_another_type_than<Range, T>> = 0>
  void put_copy(const Box& box, Range&& values) const = delete;
  /// Put a copy of the complete field.
  void put_copy(Span<const T> values) const {
    put_copy(Box(Shape(shape_.size(), 0), shape_), values);
  }
  /// Copy a box from an array of any layout, for example with ghost cells or in Fortran order.
  /// Element (i, j) of the box is element i * strides[0] + j * strides[1] of `values`, which begin
  /// with the box's first element. Errors: also invalid_argument if an element is beyond `values`.
  ///   field.put_copy({{x0, y0}, {nx, ny}}, Span<float>(u).subspan(ghosts * pitch + ghosts),
  ///                  {pitch, 1});
  void put_copy(const Box& box, Span<const T> values, const Extents& strides) const {
    if (!check_strides(box, values.size(), strides.shape())) return;
    std::vector<std::int64_t> bytes;
    for (const std::uint64_t stride : strides.shape()) {
      bytes.push_back(static_cast<std::int64_t>(stride * element_bytes_));
    }
    report(tailrace_field_put_strided_copy(file_, field_, box.start.data(), box.count.data(),
                                           values.data(), bytes.data()));
  }

  /// Form of put() for values on a device, which the function of File::copy_from_device() copies.
  /// `values` is the device address of the box's first value. Keep the values until end_step()
  /// returns.
  void put_device(const Box& box, const T* values) const {
    if (!check_dimensions(box)) return;
    report(tailrace_field_put_device(file_, field_, box.start.data(), box.count.data(), values));
  }
  /// Put the complete field.
  void put_device(const T* values) const {
    put_device(Box(Shape(shape_.size(), 0), shape_), values);
  }

  template <class Value>
  void set_attribute(const std::string& name, const Value& value) const {
    api::set_attribute(file_, path_, name, value);
  }

  const std::string& path() const { return path_; }
  const Shape& shape() const { return shape_; }
  tailrace_field number() const { return field_; }

 private:
  friend class File;
  Field(tailrace_file* file, tailrace_field field, std::string path, Shape shape,
        std::size_t element_bytes)
      : file_(file),
        field_(field),
        path_(std::move(path)),
        shape_(std::move(shape)),
        element_bytes_(element_bytes) {}

  /// Number of values of T in an element: 1, or the element's bytes.
  std::size_t n_parts() const { return element_bytes_ / sizeof(T); }

  void fail(const std::string& why) const {
    report(tailrace_file_fail_step(file_, ("field \"" + path_ + "\": " + why).c_str()));
  }

  /// Throw the failure of a call on a closed file, because no end_step() can report it. A closed
  /// file has no fields.
  void report(tailrace_error error) const {
    if (error == TAILRACE_OK || tailrace_field_path(file_, field_) != nullptr) return;
    throw Error(error, "field \"" + path_ + "\": " + tailrace_thread_error());
  }

  bool check_dimensions(const Box& box) const {
    if (box.start.size() == shape_.size() && box.count.size() == shape_.size()) {
      return check_signs("start", box.start) && check_signs("count", box.count);
    }
    fail("the box has " + std::to_string(box.start.size()) + " and " +
         std::to_string(box.count.size()) + " numbers, the field has " +
         std::to_string(shape_.size()) + " dimensions");
    return false;
  }

  bool check_signs(const char* what, const Shape& numbers) const {
    for (std::size_t d = 0; d < numbers.size(); ++d) {
      const auto number = static_cast<std::int64_t>(numbers[d]);
      if (number >= 0) continue;
      fail("the box has " + std::string(what) + " " + std::to_string(number) + " in dimension " +
           std::to_string(d));
      return false;
    }
    return true;
  }

  /// Check the sizes of the span and the box here, because the C API trusts its pointers.
  bool check_box(const Box& box, std::size_t n_values) const {
    if (!check_dimensions(box)) return false;
    const std::uint64_t n_expected = box.n_elements() * n_parts();
    if (n_values == n_expected) return true;
    fail("the box needs " + std::to_string(n_expected) + " values, " + std::to_string(n_values) +
         " were given");
    return false;
  }

  bool check_strides(const Box& box, std::size_t n_values, const Shape& strides) const {
    if (!check_dimensions(box)) return false;
    if (strides.size() != shape_.size()) {
      fail(std::to_string(strides.size()) + " strides, the field has " +
           std::to_string(shape_.size()) + " dimensions");
      return false;
    }
    if (box.n_elements() == 0) return true;
    // Limit each term by the remainder, so that no product overflows.
    const std::uint64_t n_elements = n_values / n_parts();
    std::uint64_t left = n_elements;
    bool inside = n_elements > 0;
    for (std::size_t d = 0; inside && d < strides.size(); ++d) {
      const std::uint64_t steps = box.count[d] - 1;
      inside = steps == 0 || strides[d] <= (left - 1) / steps;
      if (inside) left -= steps * strides[d];
    }
    if (inside) return true;
    fail("with these strides the box reaches beyond the " + std::to_string(n_elements) +
         " elements that were given");
    return false;
  }

  template <class U>
  bool check_view(const Box& box, const View<U>& values) const {
    if (!check_dimensions(box)) return false;
    const std::string wrong = values.misfit(box.count);
    if (!wrong.empty()) fail(wrong);
    return wrong.empty();
  }

  tailrace_file* file_;
  tailrace_field field_;
  std::string path_;
  Shape shape_;
  std::size_t element_bytes_;
};

/// An open file; see tailrace_file. Movable, not copyable.
class File {
 public:
  using Progress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>;
  using Log = std::function<void(std::string_view line)>;
  using CopyFromDevice = std::function<int(void* to, const void* from, std::size_t n_bytes)>;

  /// Create a file; see tailrace_file_create. Collective over comm.
  static File create(const std::string& path, const Comm& comm, const Options& options = {}) {
    tailrace_file* file = nullptr;
    check(tailrace_file_create(path.c_str(), comm.address(), comm.n_bytes(), options.text().c_str(),
                               &file));
    return File(file);
  }
  /// Create a file for this process only.
  static File create(const std::string& path, const Options& options = {}) {
    return create(path, serial(), options);
  }

  /// Open an existing file; see tailrace_file_open. Collective over comm.
  static File open(const std::string& path, const Comm& comm, const Options& options = {}) {
    tailrace_file* file = nullptr;
    check(tailrace_file_open(path.c_str(), comm.address(), comm.n_bytes(), options.text().c_str(),
                             &file));
    return File(file);
  }
  /// Open an existing file for this process only.
  static File open(const std::string& path, const Options& options = {}) {
    return open(path, serial(), options);
  }

  /// Repair what a killed job left of the file; see tailrace_file_recover. Collective over comm.
  /// @returns true if the file exists.
  [[nodiscard]] static bool recover(const std::string& path, const Comm& comm = serial()) {
    int exists = 0;
    check(tailrace_file_recover(path.c_str(), comm.address(), comm.n_bytes(), &exists));
    return exists != 0;
  }

  /// Define a field of `shape` with elements of type T, shape slowest first. Alike on all ranks.
  ///   file.define<float>("/density", {{"y", ny}, {"x", nx}}, "over-time=on");
  /// Calls tailrace_field_define_named if the dimensions have names.
  /// @param time_name  name of the time dimension; default "time" if the others have names.
  template <class T, Require<is_element<T>> = 0>
  Field<T> define(const std::string& path, const Dimensions& shape, const Options& options = {},
                  const std::string& time_name = {}) {
    return Field<T>(handle_.get(), define_any(path, dtype_of<T>(), shape, options, time_name), path,
                    shape.shape(), sizeof(T));
  }
  /// Define a field whose type is known only at run time; its values are put as bytes. Alike on all
  /// ranks.
  Field<std::byte> define(const std::string& path, tailrace_dtype dtype, const Dimensions& shape,
                          const Options& options = {}, const std::string& time_name = {}) {
    return Field<std::byte>(handle_.get(), define_any(path, dtype, shape, options, time_name), path,
                            shape.shape(), tailrace_dtype_bytes(dtype));
  }

  /// Set the coordinate of a dimension: "/x" holds the values of dimension "x". All ranks pass all
  /// values, which are copied. See tailrace_coordinate_set. Alike on all ranks.
  ///   file.set_coordinate("/x", std::vector{0.5, 1.5, 2.5}, "m");
  template <class Values, Require<is_contiguous<const Values>> = 0,
            Require<is_element<ValueOf<const Values>>> = 0>
  void set_coordinate(const std::string& path, const Values& values,
                      const std::string& units = {}) {
    check(tailrace_coordinate_set(handle_.get(), path.c_str(), dtype_of<ValueOf<const Values>>(),
                                  std::size(values), std::data(values),
                                  units.empty() ? nullptr : units.c_str()));
  }
  /// Set the time of the open step, in every step that puts a field over time, from the first on;
  /// see tailrace_time_set. Alike on all ranks: other values on a rank make end_step fail.
  /// @param units  attribute of the first call; empty: none.
  /// @param path   coordinate of the time dimension.
  void set_time(double value, const std::string& units = {}, const std::string& path = "/time") {
    check(tailrace_time_set(handle_.get(), path.c_str(), value,
                            units.empty() ? nullptr : units.c_str()));
  }

  template <class Value>
  void set_attribute(const std::string& object_path, const std::string& name, const Value& value) {
    api::set_attribute(handle_.get(), object_path, name, value);
  }

  /// Write and commit the step. Collective. Rethrows the exception of a callback after the step has
  /// ended. In the modes async and in_situ the report describes the previous step; `completed` is
  /// false if that does not exist.
  StepReport end_step() {
    const tailrace_step_report* report = nullptr;
    check(tailrace_file_end_step(handle_.get(), &report));
    rethrow_from_callbacks();
    if (report != nullptr) return copy_of(*report);
    StepReport none;
    none.completed = false;
    return none;
  }

  /// Wait for the step that was handed over last and return its report; nothing if no step is
  /// pending, which is always so in mode sync. Collective. Rethrows like end_step().
  std::optional<StepReport> wait() {
    const tailrace_step_report* report = nullptr;
    check(tailrace_file_wait(handle_.get(), &report));
    rethrow_from_callbacks();
    if (report == nullptr) return std::nullopt;
    return copy_of(*report);
  }

  /// Number of the last step that is certainly in the file, counted from 0 by calls of end_step().
  /// Nothing if no step is (see tailrace_file_last_committed_step). Not collective.
  std::optional<std::uint64_t> last_committed_step() const noexcept {
    const std::int64_t last = tailrace_file_last_committed_step(handle_.get());
    return last < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(last));
  }

  /// Mark that the program needs its own thread until the returned scope ends. Not collective.
  [[nodiscard]] Scope compute() {
    tailrace_file_compute_begin(handle_.get());
    return Scope(handle_.get(), &tailrace_file_compute_end);
  }
  /// Mark that the program communicates, reads or writes until the returned scope ends. Not
  /// collective.
  [[nodiscard]] Scope background() {
    tailrace_file_background_begin(handle_.get());
    return Scope(handle_.get(), &tailrace_file_background_end);
  }

  /// Lend the program's idle thread to Tailrace for `seconds`. Not collective.
  void idle(double seconds) { tailrace_file_idle(handle_.get(), seconds); }
  /// Lend the program's idle thread until `done()` is true. Not collective. An exception from
  /// `done` ends the wait and propagates.
  template <class Done, Require<std::is_invocable_r_v<bool, Done&>> = 0>
  void idle_until(Done&& done) {
    struct None {
      void operator()() const {}
    };
    lend(done, static_cast<None*>(nullptr));
  }
  /// Lend the program's idle thread until `done()` is true. Tailrace calls `wait`, which sleeps
  /// until then, as soon as it does not need the thread (see tailrace_file_idle_or_wait). Not
  /// collective.
  template <class Done, class Wait,
            Require<std::is_invocable_r_v<bool, Done&> && std::is_invocable_v<Wait&>> = 0>
  void idle_until(Done&& done, Wait&& wait) {
    lend(done, &wait);
  }

  /// End the open step, if any, and close. Collective. Afterwards the File is empty, even if this
  /// throws, and every put into its Fields throws.
  void close() {
    const std::unique_ptr<Callbacks> callbacks = std::move(callbacks_);
    check(tailrace_file_close(handle_.release()));
    if (callbacks && callbacks->thrown) std::rethrow_exception(callbacks->thrown);
  }

  /// Drop the open step and close, like the destructor but without its line on stderr. Not
  /// collective.
  void abandon() noexcept { tailrace_file_abandon(handle_.release()); }

  /// True if a file is open: false after close(), abandon() or a move.
  explicit operator bool() const { return handle_ != nullptr; }

  /// Set a callback, called on the calling thread within end_step(), wait(), idle() and close(). An
  /// empty callback removes it.
  void on_progress(Progress callback) {
    callbacks().progress = std::move(callback);
    check(tailrace_file_on_progress(handle_.get(),
                                    callbacks_->progress ? &Callbacks::call_progress : nullptr,
                                    callbacks_.get()));
  }
  void on_log(Log callback) {
    callbacks().log = std::move(callback);
    check(tailrace_file_on_log(handle_.get(), callbacks_->log ? &Callbacks::call_log : nullptr,
                               callbacks_.get()));
  }

  /// Set the function that copies n_bytes from a device for Field::put_device(). It returns 0 once
  /// they have arrived; another number, or an exception (-1), fails the step on all ranks. It is
  /// called on the thread that calls end_step(), with at most a chunk at a time.
  ///   file.copy_from_device([](void* to, const void* from, std::size_t n_bytes) {
  ///     return int(cudaMemcpy(to, from, n_bytes, cudaMemcpyDeviceToHost)); });
  void copy_from_device(CopyFromDevice copy) {
    callbacks().copy = std::move(copy);
    check(tailrace_file_set_copy_from_device(
        handle_.get(), callbacks_->copy ? &Callbacks::call_copy : nullptr, callbacks_.get()));
  }

  /// Return the C handle, for mixing both APIs; this object owns it.
  tailrace_file* handle() const { return handle_.get(); }

 private:
  /// An exception from `done` or `wait` ends the wait and propagates.
  template <class Done, class Wait>
  void lend(Done& done, Wait* wait) {
    struct Call {
      Done* done;
      Wait* wait;
      std::exception_ptr thrown;

      static int ask(void* user) noexcept {
        auto& self = *static_cast<Call*>(user);
        if (self.thrown) return 1;
        try {
          return (*self.done)() ? 1 : 0;
        } catch (...) {
          self.thrown = std::current_exception();
          return 1;
        }
      }
      static void sleep(void* user) noexcept {
        auto& self = *static_cast<Call*>(user);
        try {
          (*self.wait)();
        } catch (...) {
          self.thrown = std::current_exception();
        }
      }
    } call{&done, wait, nullptr};
    tailrace_file_idle_or_wait(handle_.get(), &Call::ask, wait != nullptr ? &Call::sleep : nullptr,
                               &call);
    if (call.thrown) std::rethrow_exception(call.thrown);
  }

  struct Destroy {
    void operator()(tailrace_file* file) const noexcept { tailrace_file_destroy(file); }
  };

  /// Allocated on the heap, because the library stores its address and a File may move.
  struct Callbacks {
    Progress progress;
    Log log;
    CopyFromDevice copy;
    std::exception_ptr thrown;

    static void call_progress(void* user, std::uint64_t bytes_done, std::uint64_t bytes_total) {
      auto& self = *static_cast<Callbacks*>(user);
      self.guard([&] { self.progress(bytes_done, bytes_total); });
    }
    static void call_log(void* user, const char* line) {
      auto& self = *static_cast<Callbacks*>(user);
      self.guard([&] { self.log(line); });
    }
    static int call_copy(void* user, void* to, const void* from, std::size_t n_bytes) noexcept {
      try {
        return static_cast<Callbacks*>(user)->copy(to, from, n_bytes);
      } catch (...) {
        return -1;
      }
    }
    /// Store the first exception until end_step or close: no exception may cross the C API.
    template <class Call>
    void guard(Call&& call) noexcept {
      try {
        call();
      } catch (...) {
        if (!thrown) thrown = std::current_exception();
      }
    }
  };

  explicit File(tailrace_file* file) : handle_(file) {}

  Callbacks& callbacks() {
    if (!callbacks_) callbacks_ = std::make_unique<Callbacks>();
    return *callbacks_;
  }

  void rethrow_from_callbacks() {
    if (!callbacks_ || !callbacks_->thrown) return;
    std::rethrow_exception(std::exchange(callbacks_->thrown, nullptr));
  }

  tailrace_field define_any(const std::string& path, tailrace_dtype dtype,
                            const Dimensions& dimensions, const Options& options,
                            const std::string& time_name) {
    tailrace_field field = TAILRACE_NO_FIELD;
    const Shape& shape = dimensions.shape();
    if (dimensions.names().empty() && time_name.empty()) {
      check(tailrace_field_define(handle_.get(), path.c_str(), dtype, shape.size(), shape.data(),
                                  options.text().c_str(), &field));
      return field;
    }
    std::vector<const char*> names;
    for (const std::string& name : dimensions.names()) names.push_back(name.c_str());
    check(tailrace_field_define_named(handle_.get(), path.c_str(), dtype, shape.size(),
                                      shape.data(), names.empty() ? nullptr : names.data(),
                                      time_name.empty() ? nullptr : time_name.c_str(),
                                      options.text().c_str(), &field));
    return field;
  }

  std::unique_ptr<Callbacks> callbacks_;  // destroyed after the handle, which may still call them
  std::unique_ptr<tailrace_file, Destroy> handle_;
};

}  // namespace api
}  // namespace tailrace

#endif
