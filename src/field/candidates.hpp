// Candidates: the codecs that could serve a field, and the forecast for each from a sample of its
// values.
//
// This is one rank's view of one field. trz is always sampled; its result also serves the settings
// that its estimate covers. trz's predictor settings are tried by the early-stopping search of
// Liang et al. 2019 (algorithm 1). Samples that could not change the choice are skipped.
// codec_choice sums the views of all ranks and decides.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "field/field_state.hpp"
#include "model/machine_profile.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// True if Tailrace chooses the field's codec: codec=auto, or a bound without a codec.
bool codec_is_ours_to_choose(const FieldOptions& options);

/// Values that represent this rank's share of a field.
struct FieldSample {
  std::vector<StridedValues> parts;
  std::vector<Buffer> read;         ///< Buffers of the parts that were pulled from a source.
  std::uint64_t part_bytes = 0;     ///< Uncompressed bytes of the parts.
  std::uint64_t rank_bytes = 0;     ///< Uncompressed bytes of all puts of this rank.
  std::uint64_t n_rank_chunks = 0;  ///< Chunks that this rank's boxes touch.
};

/// Size of the sample of a rank's share of a field.
struct SampleSize {
  std::uint64_t n_parts_max = 4;
  std::uint64_t chunks_per_part = 1;  ///< One part per this number of chunks, up to n_parts_max.
  /// Limit for each chunk of pulled values, which are read a second time for the sample.
  std::uint64_t pulled_bytes_max = 2U << 20;
};

/// Take parts of chunks, spread over this rank's puts. Main thread (reads sources). Not collective.
/// @error out_of_memory, and the errors of a source.
Result<FieldSample> take_sample(const FieldState& field, const SampleSize& size);

/// This rank's data on one candidate. Byte counts refer to the sample's parts.
struct CandidateView {
  std::string codec;         ///< Codec and settings, as on the command line.
  double least_share = 0;    ///< Smallest share of trz's bytes ever seen; 0: always sampled.
  double look_share = 0.03;  ///< Cost of a sample, as a share of a chunk's encode time.
  double encode_doubt = 1;   ///< See CodecVariant.
  double of_yardstick = 0;  ///< Factor on trz's estimate; 0: the candidate has a sample of its own.
  bool of_unstaged = false;
  bool sampled = false;
  std::string refused;
  double encoded_bytes = 0;
  double unstaged_bytes = 0;  ///< Encoded bytes without trz's lossless stage.
  double measured_bytes = 0;
  double measured_s = 0;  ///< Thread CPU seconds.
};

/// Candidates of one field on one rank. Functions that make plug-in codecs: main thread only.
class FieldCandidates {
 public:
  FieldCandidates(const FieldState& field, FieldSample sample, std::string plugin_path);

  const FieldState& field() const { return *field_; }
  const FieldSample& sample() const { return sample_; }
  const std::vector<CandidateView>& views() const { return views_; }
  bool lossy() const { return lossy_; }

  /// Estimate the candidate from the sample, unless that was done or the candidate was refused. The
  /// estimate is the candidate's own, or that of plain trz, which also serves lossless=off and
  /// preset=ratio. Thread-safe for different fields if the codec is not a plug-in.
  /// @error out_of_memory, codec_failed
  Status look_at(std::size_t candidate);
  Status look_at_cheap();
  /// True if only algorithm 1 tries the candidate.
  bool is_searched(std::size_t candidate) const { return candidate >= first_predictor_; }
  /// Run algorithm 1 of Liang et al. 2019 over trz's predictors. `step_s`: seconds of the step with
  /// the candidate.
  Status search_predictors(const std::function<double(std::size_t)>& step_s);
  /// Encode the sample's parts completely with the candidate, twice; the shorter time counts.
  Status measure(std::size_t candidate);

  /// Codec request of the candidate for chunks of this shape.
  Result<CodecRequest> request_for(std::size_t candidate, const Shape& chunk_shape) const;

 private:
  Status estimate_parts(std::size_t candidate);
  Status derive_from_yardstick(CandidateView& view);
  std::size_t yardstick() const;

  const FieldState* field_;
  FieldSample sample_;
  std::string plugin_path_;
  bool lossy_ = false;
  std::size_t first_predictor_ = 0;  ///< Index of the first candidate of algorithm 1; the rest
                                     ///< follow.
  std::vector<CandidateView> views_;
};

/// True if this codec's chunks are decoded and compared after encoding.
bool verifies(Verify wish, const std::string& codec, bool lossy);

/// Core seconds to read `raw_bytes`, encode them to `encoded_bytes`, verify them, and copy the
/// result to the page cache. Nothing if the profile does not know the codec.
std::optional<double> candidate_seconds(const MachineProfile& profile, const std::string& codec,
                                        double raw_bytes, double encoded_bytes, bool verified);
/// Lower bound of candidate_seconds() for any `encoded_bytes`.
std::optional<double> least_candidate_seconds(const MachineProfile& profile,
                                              const std::string& codec, double raw_bytes,
                                              bool verified);

/// Set the codec with its settings, written as on the command line, in the options.
Status name_codec(const std::string& codec, FieldOptions& options);

}  // namespace tailrace
