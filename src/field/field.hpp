// Fields as the application defines them, and what is reported of them and of a step.
//
// Plain values, the same on every rank. What the engine knows of a field besides: field_state.hpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/error_bound.hpp"
#include "core/options.hpp"
#include "model/dump_time.hpp"

namespace tailrace {

/// A field as the application defines it; the same on every rank.
struct FieldDefinition {
  std::string path;  ///< Absolute HDF5 path; missing groups are created.
  DType dtype = DType::f32;
  Shape shape;  ///< Global extents (without the time dimension if options.over_time).
  FieldOptions options;
  bool extendable =
      false;  ///< The dataset's first dimension is unlimited (netCDF record dimension).
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited, too.
  bool grows() const { return extendable || more_unlimited != 0; }
  /// As messages call it: field "/path".
  std::string name() const { return "field \"" + path + "\""; }
  std::uint64_t raw_bytes() const { return n_elements(shape) * dtype_bytes(dtype); }
  /// Of the dataset: `extents` of one entry, with a leading `n` for a field over time.
  Shape with_entries(std::uint64_t n, Shape extents) const {
    if (options.over_time) extents.insert(extents.begin(), n);
    return extents;
  }
};

/// What became of one field in one step; sums and maxima over all ranks, the same on every rank.
struct FieldReport {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  Shape chunk_shape;
  std::string codec;  ///< What was used; "deflate" for a constant field under rel.
  std::string codec_version;
  std::string layout;
  ErrorBound bound;            ///< As asked.
  double absolute_bound = 0;   ///< As used; 0: kept exactly, unless pointwise_bound is not 0.
  double pointwise_bound = 0;  ///< As used, mode pw_rel: fraction of each value.
  bool verified = false;
  double max_error = 0;  ///< Largest |decoded - original|, if verified; under pw_rel / |original|.
  double value_least = 0;  ///< Of the finite, non-fill values; only if they were needed.
  double value_greatest = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_raw_chunks = 0;  ///< Stored unfiltered, because the codec broke its bound there.
  std::uint64_t raw_bytes = 0;     ///< Uncompressed bytes of the field.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t predicted_bytes = 0;    ///< Of encoded ones, before encoding; 0: nobody asked.
  double mean_size_error = 0;           ///< Of chunks: |predicted - encoded| / encoded.
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place that the layout kept for them.
  std::uint64_t reserved_bytes = 0;     ///< Set aside before sizes were known; 0: claimed, dense.
  double encode_s = 0;                  ///< Thread-seconds in encode, all ranks.
  double verify_s = 0;
  double expected_psnr_db = 0;   ///< Under target-psnr=: by the errors of a sample; 0: no target.
  std::uint64_t book_bytes = 0;  ///< Codec trz,book=auto: shared book in the header; 0: none.
  double book_ratio_loss = 0;    ///< Share of encoded bytes that it costs, by counted chunks.
  double book_saved_s = 0;       ///< Of encode time, by chunks that were encoded with and without
                                 ///< it, in this step and earlier ones; 0: none were yet.
  /// Codecs that were compared for codec=auto, and which one won; empty: it was named. By the step
  /// that chose: later steps of the field, or of its lineage, have none.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;

  /// What max_error is held to: in its unit, 0 if the field is kept exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// What became of one step.
struct StepReport {
  bool completed = true;  ///< False: a step was handed over, and there was none before it.
  std::uint64_t step_index = 0;
  std::vector<FieldReport> fields;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t predicted_bytes = 0;
  double predict_s = 0;             ///< Slowest rank: sampling, order, reservations.
  double predicted_makespan_s = 0;  ///< Slowest rank: encode and write, as planned.
  std::uint64_t n_overflow_chunks = 0;
  std::uint64_t reserved_bytes = 0;
  /// Storage overhead: what the data takes of the file, all gaps included (unused reservations and
  /// holes, alignment, rests of extents claimed across nodes), less the encoded bytes.
  std::uint64_t slack_bytes = 0;
  double wait_s = 0;  ///< Slowest rank: time in which some encoded chunk waited for an address.
  std::uint64_t n_writes = 0;     ///< Data writes of all ranks.
  double read_s = 0;              ///< Slowest rank, pulling values from a BoxSource.
  std::string profile;            ///< That times were predicted from: "typical values", or a host.
  double choose_s = 0;            ///< Slowest rank: sampling for codec=auto, and the decision.
  double encode_s = 0;            ///< Slowest rank: seconds in which it encoded (lane time).
  double write_s = 0;             ///< Slowest rank: seconds in which its I/O lane wrote.
  double makespan_s = 0;          ///< Slowest rank: encode and write together, wall clock.
  double hidden_share = 0;        ///< Part of the shorter lane that ran behind the longer one.
  double index_s = 0;             ///< Rank 0: chunk index, datasets, attributes.
  double sync_s = 0;              ///< Slowest rank, fdatasync of the data.
  double commit_s = 0;            ///< Rank 0: metadata writes with their syncs, rename.
  double step_s = 0;              ///< end_step from call to return, slowest rank.
  std::uint64_t piece_bytes = 0;  ///< Values that travelled between ranks to chunk owners.
  std::uint64_t peak_memory_bytes = 0;  ///< Largest rank: buffers that Tailrace held at once.
  std::uint64_t file_bytes = 0;         ///< The file's length after the commit.
  // Modes async and in_situ; slowest rank, or the sum over the ranks for counts.
  double exposed_s = 0;       ///< That the application lost: end_step, wait, obstacles delayed.
  double handover_s = 0;      ///< Of this, taking the values and planning.
  double backpressure_s = 0;  ///< Of this, waiting for memory or for the step before.
  double idle_encode_s = 0;   ///< Encoding in the application's idle time.
  std::uint64_t n_delayed_obstacles = 0;  ///< Began late because a chunk was not finished.
  double largest_delay_s = 0;
  std::uint64_t n_moved_writes = 0;  ///< Chunks that another rank of the node wrote.
};

/// One line for the user's log; never ends in a newline.
using LogCallback = std::function<void(const std::string&)>;

}  // namespace tailrace
