// Method: one way to write the workload, and a row of the table.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench_options.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "exec/comm_factory.hpp"
#include "trz/base/status.hpp"
#include "workload.hpp"

namespace tailrace::bench {

/// One point of a sweep.
struct Setting {
  ErrorBound bound;
  Bandwidth bandwidth;
  std::string profile_path;  ///< Profile with codec curves and this bandwidth; empty: none.
};

/// Arguments of every method; the referenced objects outlive all methods.
struct BenchContext {
  MpiSession& mpi;
  Comm& comm;
  const BenchOptions& options;
  const Workload& work;
  Setting setting;

  /// Bandwidth of the storage for all ranks together; 0: unlimited.
  double bandwidth_bytes_per_s() const { return setting.bandwidth.total(comm.n_ranks()); }
};

/// Details that a run reports; 0 if the method does not know them.
struct RunDetails {
  double encode_s = 0;       ///< Slowest rank, encode time.
  double write_s = 0;        ///< Slowest rank, write time.
  double makespan_s = 0;     ///< Slowest rank, encode and write together.
  double longer_lane_s = 0;  ///< Largest over the ranks of the longer of encode and write.
  double hidden_share = 0;   ///< Share of the shorter lane that the longer one hid.
  double index_s = 0;
  double sync_s = 0;
  double commit_s = 0;
  double wait_s = 0;  ///< Slowest rank, waits of encoded chunks for an address.
  std::uint64_t n_chunks = 0;
  std::uint64_t n_overflow_chunks = 0;  ///< Chunks larger than the space reserved for them.
  std::uint64_t reserved_bytes = 0;     ///< Reserved before sizes were known.
  std::uint64_t slack_bytes = 0;        ///< Unused bytes in the data part of the file.
  std::uint64_t n_writes = 0;
  std::uint64_t buffer_bytes = 0;  ///< Largest rank: buffers that Tailrace counts.
  double choose_s = 0;             ///< Rank 0, time in which codec auto chooses.
  std::string chosen;              ///< Choice of codec auto: "trz x 4, none x 2".
};

/// Result of reading an output back. Sums and maxima over all ranks.
struct ReadBack {
  double error_over_bound = 0;  ///< Largest; 0 if values are exact.
  std::uint64_t n_bad = 0;      ///< Values beyond their bound, and changed special values.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t file_bytes = 0;
};

class Method {
 public:
  explicit Method(std::string name) : name_(std::move(name)) {}
  virtual ~Method() = default;
  const std::string& name() const { return name_; }
  /// True if write() reports the times of the lanes.
  virtual bool has_lanes() const { return false; }
  /// True if write() reports reservations, overflow and waits.
  virtual bool has_places() const { return false; }
  /// Decoder: plug-in file and version, "built in", or empty without a codec.
  virtual std::string codec_version() const { return ""; }

  /// Write all fields to `path`, which must not exist, and close; durable if options.fsync.
  /// Collective.
  /// @returns this rank's failure, or one that all ranks share.
  virtual Status write(const std::string& path, RunDetails& details) = 0;
  /// Combine the details of all ranks, after the clock has stopped. Collective. The default suits
  /// methods whose write() reports those of its rank.
  virtual void combine_details(Comm& comm, RunDetails& details) const;
  /// Read this rank's blocks of the output and compare. Collective.
  virtual Result<ReadBack> read_back(const std::string& path);
  /// Delete the output. Collective; after the return it is gone for every rank.
  virtual Status remove(const std::string& path);

 private:
  std::string name_;
};

/// Settings of --codec, if it names this codec; otherwise none, so that the defaults apply.
std::vector<KeyValue> codec_settings_of(const BenchOptions& options, std::string_view codec_name);

/// Request for a codec for this field. The result refers to no argument.
CodecRequest codec_request(const std::string& codec_name, const std::vector<KeyValue>& settings,
                           const BenchField& field);

/// Make the codec for a field's chunks: a built-in one or a plug-in's. Main thread only.
Result<std::unique_ptr<Codec>> make_bench_codec(const BenchOptions& options,
                                                const std::string& codec_name,
                                                const std::vector<KeyValue>& settings,
                                                const BenchField& field);

/// Add the comparison of a rank's decoded values to `found`.
void compare_block(const BenchField& field, bool exact, std::span<const std::byte> original,
                   std::span<const std::byte> decoded, ReadBack& found);

/// Combine the results of the ranks: the maximum of errors, sums of the rest. Collective.
void combine(Comm& comm, ReadBack& found);

/// Read the blocks of all fields with this process's stock HDF5 (without our driver, each rank
/// independently) and compare. Not collective; encoded_bytes and file_bytes on rank 0 only.
Result<ReadBack> read_back_with_hdf5(const BenchContext& context, const std::string& path,
                                     bool exact);

/// Make the methods of --methods (globs over the default and known rows), in their order.
/// @error invalid_argument  not the name of a method, or one that this build cannot make.
Result<std::vector<std::unique_ptr<Method>>> make_methods(const BenchContext& context);

/// Parameters of a Tailrace row.
struct TailraceSpec {
  std::string layout = "claimed";
  std::string codec;               ///< "none" stores uncompressed values; "auto" chooses.
  std::vector<KeyValue> settings;  ///< Settings of the codec.
  std::string order = "given";
  double space_ratio = 0;  ///< Space ratio of reserving layouts; 0: their default.
  bool serial = false;     ///< Encode everything, then write: no overlap.
  bool verified = false;
};

/// Parse names such as "tailrace-predictive-sz3-johnson-r1.25"; --codec's settings apply to its
/// codec.
/// @error invalid_argument  not a name of this form.
Result<TailraceSpec> parse_tailrace_name(const BenchOptions& options, const std::string& name);

/// Codec in a row's name: "sz3" of "tailrace-claimed-sz3-verified".
std::string codec_of_name(const std::string& name);

// Kinds of methods; `codec_name` "none" stores uncompressed values.
Result<std::unique_ptr<Method>> make_hdf5_method(const BenchContext& context, std::string name,
                                                 bool collective, const std::string& codec_name);
/// Calls of the collective rows, served by a preloaded libtailrace_hdf5.so; `codec_name` empty:
/// without options. @error unsupported  the library is not preloaded
Result<std::unique_ptr<Method>> make_unchanged_method(const BenchContext& context, std::string name,
                                                      const std::string& codec_name);
/// True if libtailrace_hdf5.so is preloaded.
bool is_preloaded();
Result<std::unique_ptr<Method>> make_tailrace_method(const BenchContext& context, std::string name,
                                                     const TailraceSpec& spec);
Result<std::unique_ptr<Method>> make_ideal_method(const BenchContext& context, std::string name,
                                                  const std::string& codec_name);

/// True if this program links a parallel HDF5.
bool has_native_parallel();
/// Start MPI if the native rows need it and it is not started; call before MpiSession.
/// @returns true if MPI was started, so that stop_native_mpi() must end it.
bool start_native_mpi(int* argc, char*** argv);
void stop_native_mpi(bool started);

}  // namespace tailrace::bench
