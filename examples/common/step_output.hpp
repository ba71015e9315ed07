// StepOutput: one small interface for all outputs of the applications' steps.
//
// --output selects none, hdf5 and hdf5-async, pnetcdf, or Tailrace in its modes sync, async and
// in_situ. All of them receive the same vectors at the same moments, so that only their processing
// differs. Deriving a field from the state belongs to the application and also happens with
// --output none.
//
// A process may contain only one of the libraries, so each source is built into several
// executables. NAME is linked with Tailrace (output_tailrace.cpp), NAME-hdf5 with the parallel HDF5
// (output_hdf5.cpp), NAME-pnetcdf with PnetCDF (output_pnetcdf.cpp). relaunch.hpp explains how one
// starts another.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace app {

/// Options that all applications share; declare_common_options() declares them.
struct OutputOptions {
  std::string output = "none";           ///< none, hdf5, hdf5-async, pnetcdf, sync, async, in_situ.
  std::string path;                      ///< Path of the file; the application sets the default.
  std::string codec = "trz";             ///< Tailrace: any codec; none writes raw values.
  std::string bound;                     ///< "" uses the application's bound of each field.
  std::string extra;                     ///< More options for Tailrace, "key=value,...".
  int every = 1;                         ///< Write every n-th step.
  int n_steps = 10;                      ///< Steps of the run; plain HDF5 reserves their space.
  bool over_time = true;                 ///< One dataset per field, or a group per step.
  bool fsync = false;                    ///< A step is on stable storage when it is committed.
  std::string transfer = "independent";  ///< Plain HDF5 and PnetCDF: independent or collective.
  bool records = true;                   ///< PnetCDF: steps are records; else a fixed dimension.
  std::string filters;                   ///< Plain HDF5: "ID:value,value;ID", see output_hdf5.cpp.
  std::string filter_chunk;              ///< Plain HDF5 with filters: "1x6x64x384".
};

enum class ValueType { f32, f64, i32, i64 };
template <class T>
struct ValueTypeOf;
template <>
struct ValueTypeOf<float> {
  static constexpr ValueType value = ValueType::f32;
};
template <>
struct ValueTypeOf<double> {
  static constexpr ValueType value = ValueType::f64;
};
template <>
struct ValueTypeOf<std::int32_t> {
  static constexpr ValueType value = ValueType::i32;
};
template <>
struct ValueTypeOf<std::int64_t> {
  static constexpr ValueType value = ValueType::i64;
};
inline std::size_t bytes_of(ValueType type) {
  return type == ValueType::f32 || type == ValueType::i32 ? 4 : 8;
}

/// A field of one step and this rank's box of it, slowest dimension first. The boxes of all ranks
/// cover the shape exactly once. Name, type and shape stay from step to step; the box may change.
struct FieldPart {
  std::string name;  ///< "density" becomes /density, or /step_0010/density.
  ValueType type = ValueType::f32;
  std::vector<std::uint64_t> shape{}, start{}, count{};
  std::string options{};  ///< Tailrace's field options, such as "bound=abs=0.2"; see OutputOptions.
  std::shared_ptr<const void> keeper{};  ///< Owns the values while any reader needs them.
  const void* values = nullptr;          ///< Row-major; their number is the product of `count`.
};

/// Numbers that Tailrace reported, summed over the steps (largest_delay_s: the maximum).
struct OutputTotals {
  std::uint64_t n_steps = 0, raw_bytes = 0, encoded_bytes = 0;
  std::uint64_t n_delayed_obstacles = 0, n_moved_writes = 0, peak_memory_bytes = 0;
  double exposed_s = 0, handover_s = 0, backpressure_s = 0, idle_encode_s = 0, encode_s = 0;
  double write_s = 0, largest_delay_s = 0;
};

/// Interface of an output. Only the main thread calls its functions. Failures are exceptions
/// (std::runtime_error), the same on every rank if the function is collective.
class StepOutput {
 public:
  virtual ~StepOutput() = default;

  /// True if this step (counted from 1) is to be written.
  bool wants(int step) const { return step % options_.every == 0; }
  const OutputOptions& options() const { return options_; }

  /// Creates the file. Lanes calls it before the first iteration, so that no iteration includes
  /// startup costs. Collective.
  virtual void open() {}
  /// Begins a step. Collective.
  void begin_step(int step, double time);
  /// Hands over a part. The values are moved into the output and live until no reader needs them,
  /// so Tailrace need not copy them (hold=promise). Calls are alike on all ranks except for the
  /// box; a count of 0 is valid.
  template <class T>
  void put(FieldPart part, std::vector<T> values) {
    auto keeper = std::make_shared<const std::vector<T>>(std::move(values));
    part.type = ValueTypeOf<T>::value;
    part.values = keeper->data();
    part.keeper = std::move(keeper);
    parts_.push_back(std::move(part));
  }
  /// Ends the step. Collective. Returns once the step is written (none, hdf5, sync) or handed over.
  void end_step();
  /// Closes the file. Collective. Returns once all steps are in the file.
  virtual void close() = 0;

  /// Marks of the lanes: intervals that the application needs itself, and idle time of its thread.
  /// Not collective.
  virtual void compute_begin() {}
  virtual void compute_end() {}
  virtual void background_begin() {}
  virtual void background_end() {}
  /// Returns once done() is true. `wait` sleeps until then, for outputs with no other work.
  virtual void idle_until(const std::function<bool()>& done, const std::function<void()>& wait) {
    (void)done;
    wait();
  }

  const OutputTotals& totals() const { return totals_; }

 protected:
  StepOutput(OutputOptions options, MPI_Comm comm) : options_(std::move(options)), comm_(comm) {}
  /// Writes or hands over parts_; the caller drops the remaining ones. A part without values
  /// belongs to another rank.
  virtual void write_step() = 0;
  /// "/density" or "/step_0010/density".
  std::string path_of(const std::string& name) const;
  std::string group_of_step() const;  ///< "/step_0010"

  OutputOptions options_;
  MPI_Comm comm_;
  OutputTotals totals_;
  int step_ = 0;
  double time_ = 0;
  int n_written_ = 0;
  std::vector<FieldPart> parts_;
};

/// Creates the output that the options name. Collective over `comm`. Throws Unavailable if this
/// executable or this machine lacks it; the program then exits with 2.
std::unique_ptr<StepOutput> make_output(const OutputOptions& options, MPI_Comm comm);

/// Creates an output other than none. Each variant of an executable defines this function once.
/// linked_suffix() in variant.hpp returns the ending of the variant's name.
std::unique_ptr<StepOutput> make_linked_output(const OutputOptions& options, MPI_Comm comm);

}  // namespace app
