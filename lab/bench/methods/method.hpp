// Method: one way to write the workload, as a row of the table.

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
  std::string profile_path;  ///< Codec curves, and this bandwidth as the storage's; empty: none.
};

/// What every method gets; what it refers to outlives all of them.
struct BenchContext {
  MpiSession& mpi;
  Comm& comm;
  const BenchOptions& options;
  const Workload& work;
  Setting setting;

  /// What the storage takes from all ranks together; 0: unlimited.
  double bandwidth_bytes_per_s() const { return setting.bandwidth.total(comm.n_ranks()); }
};

/// What a run says about itself; 0 where the method does not know.
struct RunDetails {
  double encode_s = 0;       ///< Slowest rank, time in which it encoded.
  double write_s = 0;        ///< Slowest rank, time in which it wrote.
  double makespan_s = 0;     ///< Slowest rank, encode and write together.
  double longer_lane_s = 0;  ///< Largest over the ranks of the longer of encode and write.
  double hidden_share = 0;   ///< Part of the shorter lane that ran behind the longer one.
  double index_s = 0;
  double sync_s = 0;
  double commit_s = 0;
  double wait_s = 0;  ///< Slowest rank, encoded chunks that waited for an address.
  std::uint64_t n_chunks = 0;
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place kept for them.
  std::uint64_t reserved_bytes = 0;     ///< Set aside before sizes were known.
  std::uint64_t slack_bytes = 0;        ///< Of the data's part of the file, not used.
  std::uint64_t n_writes = 0;
  std::uint64_t buffer_bytes = 0;  ///< Largest rank: buffers that Tailrace counted.
  double choose_s = 0;             ///< Rank 0, of codec auto.
  std::string chosen;              ///< What codec auto chose: "trz x 4, none x 2".
};

/// What reading an output back has shown. Sums and maxima over all ranks.
struct ReadBack {
  double error_over_bound = 0;  ///< Largest; 0 where values are exact.
  std::uint64_t n_bad = 0;      ///< Values beyond their bound, or special values changed.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t file_bytes = 0;
};

class Method {
 public:
  explicit Method(std::string name) : name_(std::move(name)) {}
  virtual ~Method() = default;
  const std::string& name() const { return name_; }
  /// Whether write() fills in the lanes' times.
  virtual bool has_lanes() const { return false; }
  /// Whether write() fills in what became of reservations and waiting.
  virtual bool has_places() const { return false; }
  /// What decodes it: plug-in file and version, "built in", or empty for no codec.
  virtual std::string codec_version() const { return ""; }

  /// Write all fields to `path` (which is not there) and close; durable if options.fsync.
  /// Collective. @returns this rank's own failure, or everybody's.
  virtual Status write(const std::string& path, RunDetails& details) = 0;
  /// Make the details those of all ranks, after the clock has stopped. Collective. The default fits
  /// methods whose write() fills in its own rank's.
  virtual void combine_details(Comm& comm, RunDetails& details) const;
  /// Read this rank's blocks of what write() left and compare. Collective.
  virtual Result<ReadBack> read_back(const std::string& path);
  /// Delete what write() left. Collective; every rank sees it gone.
  virtual Status remove(const std::string& path);

 private:
  std::string name_;
};

/// The settings of --codec, which hold for the codec that it names; others take their defaults.
std::vector<KeyValue> codec_settings_of(const BenchOptions& options, std::string_view codec_name);

/// What such a codec is made for. The result refers to nothing.
CodecRequest codec_request(const std::string& codec_name, const std::vector<KeyValue>& settings,
                           const BenchField& field);

/// The codec for a field's chunks: a built-in one or a plug-in's. Main thread only.
Result<std::unique_ptr<Codec>> make_bench_codec(const BenchOptions& options,
                                                const std::string& codec_name,
                                                const std::vector<KeyValue>& settings,
                                                const BenchField& field);

/// Add the comparison of a rank's decoded values to `found`.
void compare_block(const BenchField& field, bool exact, std::span<const std::byte> original,
                   std::span<const std::byte> decoded, ReadBack& found);

/// Combine what the ranks found: the maximum of errors, sums of the rest. Collective.
void combine(Comm& comm, ReadBack& found);

/// Read the blocks of all fields with this process's stock HDF5 (no driver of ours, each rank
/// alone) and compare. Not collective; encoded_bytes and file_bytes on rank 0 only.
Result<ReadBack> read_back_with_hdf5(const BenchContext& context, const std::string& path,
                                     bool exact);

/// Make the methods of --methods (globs against the default and known rows), in their order.
/// @error invalid_argument  a name that is no method, or cannot be made in this build.
Result<std::vector<std::unique_ptr<Method>>> make_methods(const BenchContext& context);

/// A row of ours, in words.
struct TailraceSpec {
  std::string layout = "claimed";
  std::string codec;               ///< "none" stores uncompressed values; "auto" chooses.
  std::vector<KeyValue> settings;  ///< Of the codec.
  std::string order = "given";
  double space_ratio = 0;  ///< Of layouts that reserve; 0: their default.
  bool serial = false;     ///< Encode all, then write: no overlap.
  bool verified = false;
};

/// "tailrace-predictive-sz3-johnson-r1.25" and the like; --codec's settings hold for its codec.
/// @error invalid_argument  not such a name.
Result<TailraceSpec> parse_tailrace_name(const BenchOptions& options, const std::string& name);

/// The codec in a row's name: "sz3" of "tailrace-claimed-sz3-verified".
std::string codec_of_name(const std::string& name);

// The kinds; `codec_name` "none" stores uncompressed values.
Result<std::unique_ptr<Method>> make_hdf5_method(const BenchContext& context, std::string name,
                                                 bool collective, const std::string& codec_name);
/// The calls of the collective rows, served by a preloaded libtailrace_hdf5.so; `codec_name` empty:
/// without options. @error unsupported  it is not preloaded
Result<std::unique_ptr<Method>> make_unchanged_method(const BenchContext& context, std::string name,
                                                      const std::string& codec_name);
/// Whether libtailrace_hdf5.so is.
bool is_preloaded();
Result<std::unique_ptr<Method>> make_tailrace_method(const BenchContext& context, std::string name,
                                                     const TailraceSpec& spec);
Result<std::unique_ptr<Method>> make_ideal_method(const BenchContext& context, std::string name,
                                                  const std::string& codec_name);

/// Whether this program links a parallel HDF5.
bool has_native_parallel();
/// Start MPI if the native rows need it and nobody has; to be called before MpiSession.
/// @returns whether it was started, and so must be ended by stop_native_mpi().
bool start_native_mpi(int* argc, char*** argv);
void stop_native_mpi(bool started);

}  // namespace tailrace::bench
