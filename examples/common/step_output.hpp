// StepOutput: where the applications' steps go, behind one small interface.
//
// --output none, hdf5 and hdf5-async, pnetcdf, or Tailrace in its modes sync, async and in_situ.
// All of them are given the same vectors at the same moments, so that only what becomes of these
// differs: deriving a field from the state belongs to the application and is done with --output
// none, too. Executables of one source hold the libraries, of which a process may have only one:
// NAME is linked with Tailrace (output_tailrace.cpp), NAME-hdf5 with the parallel HDF5
// (output_hdf5.cpp), NAME-pnetcdf with PnetCDF (output_pnetcdf.cpp). See relaunch.hpp for how one
// starts the other.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace app {

/// The options that all applications share; declared by declare_common_options().
struct OutputOptions {
  std::string output = "none";           ///< none, hdf5, hdf5-async, pnetcdf, sync, async, in_situ.
  std::string path;                      ///< Of the file; the application sets the default.
  std::string codec = "trz";             ///< Tailrace: any codec; none writes values as they are.
  std::string bound;                     ///< "" leaves each field the application's own bound.
  std::string extra;                     ///< More options for Tailrace, "key=value,...".
  int every = 1;                         ///< Write each how manieth step.
  int n_steps = 10;                      ///< Of the whole run; plain HDF5 sets the space aside.
  bool over_time = true;                 ///< One dataset per field, or a group per step.
  bool fsync = false;                    ///< A step is on stable storage when it is committed.
  std::string transfer = "independent";  ///< Plain HDF5, PnetCDF: or collective.
  bool records = true;                   ///< PnetCDF: steps are records; or a fixed dimension.
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

/// A field of one step and this rank's box of it, slowest dimension first; the boxes of all ranks
/// cover the shape once. Name, type and shape stay from step to step, the box may change.
struct FieldPart {
  std::string name;  ///< "density": becomes /density, or /step_0010/density.
  ValueType type = ValueType::f32;
  std::vector<std::uint64_t> shape{}, start{}, count{};
  std::string options{};  ///< Tailrace's, such as "bound=abs=0.2"; see OutputOptions.
  std::shared_ptr<const void> keeper{};  ///< Holds the values as long as somebody reads them.
  const void* values = nullptr;          ///< Row-major, the product of `count` of them.
};

/// What Tailrace reported, summed over the steps (largest_delay_s: the maximum).
struct OutputTotals {
  std::uint64_t n_steps = 0, raw_bytes = 0, encoded_bytes = 0;
  std::uint64_t n_delayed_obstacles = 0, n_moved_writes = 0, peak_memory_bytes = 0;
  double exposed_s = 0, handover_s = 0, backpressure_s = 0, idle_encode_s = 0, encode_s = 0;
  double write_s = 0, largest_delay_s = 0;
};

/// All functions belong to the main thread. Failures are exceptions (std::runtime_error), the same
/// on every rank where the function is collective.
class StepOutput {
 public:
  virtual ~StepOutput() = default;

  /// Whether this step (counted from 1) is to be written.
  bool wants(int step) const { return step % options_.every == 0; }
  const OutputOptions& options() const { return options_; }

  /// Create the file. Called by Lanes before the first iteration, so that what the application does
  /// to start up is no part of one. Collective.
  virtual void open() {}
  /// Collective.
  void begin_step(int step, double time);
  /// Hand over a part. The values are moved in and stay alive until nobody needs them, so Tailrace
  /// need not copy them (hold=promise). Alike on all ranks but for the box; a count of 0 is fine.
  template <class T>
  void put(FieldPart part, std::vector<T> values) {
    auto keeper = std::make_shared<const std::vector<T>>(std::move(values));
    part.type = ValueTypeOf<T>::value;
    part.values = keeper->data();
    part.keeper = std::move(keeper);
    parts_.push_back(std::move(part));
  }
  /// Collective. Returns once the step is written (none, hdf5, sync) or handed over.
  void end_step();
  /// Collective. Returns once all steps are in the file.
  virtual void close() = 0;

  /// The lanes: what the application needs for itself, and when its thread is idle. Not collective.
  virtual void compute_begin() {}
  virtual void compute_end() {}
  virtual void background_begin() {}
  virtual void background_end() {}
  /// Return once done() is true. `wait` sleeps until then, for outputs with nothing else to do.
  virtual void idle_until(const std::function<bool()>& done, const std::function<void()>& wait) {
    (void)done;
    wait();
  }

  const OutputTotals& totals() const { return totals_; }

 protected:
  StepOutput(OutputOptions options, MPI_Comm comm) : options_(std::move(options)), comm_(comm) {}
  /// Write or hand over parts_. The caller drops what is left of them. A part without values is not
  /// this rank's.
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

/// The output that the options name. Collective over `comm`. Throws Unavailable where this
/// executable, or this machine, has it not: the program then exits with 2.
std::unique_ptr<StepOutput> make_output(const OutputOptions& options, MPI_Comm comm);

/// Defined once in each variant of an executable: its outputs apart from none. What the variant's
/// name ends in says linked_suffix(), variant.hpp.
std::unique_ptr<StepOutput> make_linked_output(const OutputOptions& options, MPI_Comm comm);

}  // namespace app
