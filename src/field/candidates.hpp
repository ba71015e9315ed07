// Candidates: the codecs that could serve a field, and what a sample of its values says of each.
//
// One rank's view of one field. trz is always looked at, and answers for the settings that its
// estimate covers; trz's predictor settings are tried by the early-stopping search of Liang et al.
// 2019 (algorithm 1). A look that could not change the choice is not taken. codec_choice adds the
// views of all ranks up and decides.

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

/// Whether the field's codec is ours to choose: codec=auto, or a bound and no codec.
bool codec_is_ours_to_choose(const FieldOptions& options);

/// Values that stand for this rank's share of a field.
struct FieldSample {
  std::vector<StridedValues> parts;
  std::vector<Buffer> read;         ///< Holds those that were pulled from a source.
  std::uint64_t part_bytes = 0;     ///< Uncompressed bytes of the parts.
  std::uint64_t rank_bytes = 0;     ///< Of all that this rank has put.
  std::uint64_t n_rank_chunks = 0;  ///< Chunks that this rank's boxes touch.
};

/// How much of a rank's share of a field is looked at.
struct SampleSize {
  std::uint64_t n_parts_max = 4;
  std::uint64_t chunks_per_part = 1;  ///< One part for so many chunks, until there are n_parts_max.
  /// Pulled values are read once more for the sample: of each chunk not more than this.
  std::uint64_t pulled_bytes_max = 2U << 20;
};

/// Parts of chunks, spread over this rank's puts. Main thread (reads sources). Not collective.
/// @error out_of_memory, and what a source returns.
Result<FieldSample> take_sample(const FieldState& field, const SampleSize& size);

/// What this rank knows of one candidate. Bytes are of the sample's parts.
struct CandidateView {
  std::string codec;         ///< As on the command line.
  double least_share = 0;    ///< Of trz's bytes: smaller was never seen. 0: always looked at.
  double look_share = 0.03;  ///< Of the time to encode a chunk: to look at it.
  double encode_doubt = 1;   ///< See CodecVariant.
  double of_yardstick = 0;   ///< So much of trz's estimate; 0: looked at by itself.
  bool of_unstaged = false;
  bool sampled = false;
  std::string refused;
  double encoded_bytes = 0;
  double unstaged_bytes = 0;  ///< The same without trz's lossless stage.
  double measured_bytes = 0;
  double measured_s = 0;  ///< Thread CPU seconds.
};

/// One field's candidates on one rank. Functions that make plug-in codecs: main thread only.
class FieldCandidates {
 public:
  FieldCandidates(const FieldState& field, FieldSample sample, std::string plugin_path);

  const FieldState& field() const { return *field_; }
  const FieldSample& sample() const { return sample_; }
  const std::vector<CandidateView>& views() const { return views_; }
  bool lossy() const { return lossy_; }

  /// Look at the candidate, unless that was done or it was refused: by its own estimate, or by that
  /// of plain trz, which answers for lossless=off and preset=ratio, too. Thread-safe for
  /// codecs of our own and different fields. @error out_of_memory, codec_failed
  Status look_at(std::size_t candidate);
  Status look_at_cheap();
  /// Whether algorithm 1 tries it, rather than everybody.
  bool is_searched(std::size_t candidate) const { return candidate >= first_predictor_; }
  /// Algorithm 1 of Liang et al. 2019 over trz's predictors. `step_s`: seconds of the step with the
  /// candidate.
  Status search_predictors(const std::function<double(std::size_t)>& step_s);
  /// Encode the sample's parts in full with the candidate, twice; the shorter time counts.
  Status measure(std::size_t candidate);

  /// The request that makes the candidate's codec for chunks of this shape.
  Result<CodecRequest> request_for(std::size_t candidate, const Shape& chunk_shape) const;

 private:
  Status estimate_parts(std::size_t candidate);
  Status derive_from_yardstick(CandidateView& view);
  std::size_t yardstick() const;

  const FieldState* field_;
  FieldSample sample_;
  std::string plugin_path_;
  bool lossy_ = false;
  std::size_t first_predictor_ = 0;  ///< Candidates from here on are those of algorithm 1.
  std::vector<CandidateView> views_;
};

/// Whether this codec's chunks are decoded again and compared.
bool verifies(Verify wish, const std::string& codec, bool lossy);

/// Seconds of a core to take `raw_bytes` in, encode them to `encoded_bytes`, verify that, and copy
/// what is written to the page cache; nothing if the profile does not know the codec.
std::optional<double> candidate_seconds(const MachineProfile& profile, const std::string& codec,
                                        double raw_bytes, double encoded_bytes, bool verified);
/// The least that candidate_seconds() could ever be.
std::optional<double> least_candidate_seconds(const MachineProfile& profile,
                                              const std::string& codec, double raw_bytes,
                                              bool verified);

/// Put the codec with its settings, as on the command line, into the options.
Status name_codec(const std::string& codec, FieldOptions& options);

}  // namespace tailrace
