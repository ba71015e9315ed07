// The choice of codecs, from every rank's sample to one decision.
//
//   wanted fields    -> each rank: trz, algorithm 1, and the other candidates that could win
//   one agreement    -> bytes of every candidate over all ranks, as integers: their sums are the
//                       same on every rank, in any order of summation
//   choose_codecs()  -> the same answer everywhere
//
// A rank samples the candidates that are worthwhile for its share of the data. A candidate that was
// sampled for less than half of a field's bytes is excluded: the ranks vote, as in algorithm 1.

#include "field/codec_choice.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "exec/thread_team.hpp"
#include "field/candidates.hpp"
#include "measure/machine_identity.hpp"
#include "measure/measure_machine.hpp"
#include "model/dump_time.hpp"

namespace tailrace {
namespace {

/// Sample of one rank of one field: all ranks together take about four chunks of it.
constexpr SampleSize kProbeSize = {4, 2, 1U << 20};
/// Number of chunks that take trz 2 ms to sample. One takes 0.35 ms if its values are in memory,
/// for any size (the first step of real Nyx fields, AMD EPYC).
constexpr std::uint64_t kNLooks = 6;
/// One more sample for this number of bytes costs about a hundredth of encoding them.
constexpr std::uint64_t kBytesPerLook = 30'000'000;

/// Sample size within the limits above, but at least one chunk of each field.
SampleSize sample_size_for(std::uint64_t n_ranks, const std::vector<FieldState*>& fields) {
  std::uint64_t rank_bytes = 0;
  for (const FieldState* field : fields) {
    for (const PutRecord& put : field->puts) {
      rank_bytes += put.box.n_elements() * dtype_bytes(field->definition.dtype);
    }
  }
  const std::uint64_t affordable = (kNLooks + rank_bytes / kBytesPerLook) / fields.size();
  SampleSize size = kProbeSize;
  size.n_parts_max = std::max<std::uint64_t>(std::min(size.n_parts_max / n_ranks, affordable), 1);
  return size;
}

/// A candidate is sampled only if its step would at best take less than this share of the fastest
/// known one. Forecasts err by more; among steps that close the fewest bytes decide
/// (longest_step_s()).
constexpr double kWorthwhileShare = 0.97;
/// Other codecs are excluded if trz's ratio is above this. None came within a hundredth of trz's
/// bytes then, on any of 180 pairs of field and bound (lab/bench/results/trz_codecs.csv), and all
/// are slower.
constexpr double kForeignBelowRatio = 4;
/// Bytes of a call's input that a rank reads in a second, decoding included. Measured once, on a
/// file that was just written; slower storage makes the choice matter even less.
constexpr double kInputBytesPerS = 1e9;

/// Sums for one candidate of one field, over some or all ranks. Integers, see the file's head.
struct CandidateSum {
  std::uint64_t n_refused = 0;
  std::uint64_t seen_bytes = 0;  ///< Uncompressed bytes of the ranks that have looked at it.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t measured_bytes = 0;
  std::uint64_t measured_ns = 0;
};

struct FieldSum {
  std::uint64_t raw_bytes = 0;
  std::uint64_t n_chunks = 0;
  std::vector<CandidateSum> candidates;
};

std::uint64_t whole(double number) { return static_cast<std::uint64_t>(std::llround(number)); }

/// This rank's contribution to the sums of one field.
FieldSum own_sum(const FieldCandidates& field) {
  const FieldSample& sample = field.sample();
  FieldSum sum{sample.rank_bytes, sample.n_rank_chunks, {}};
  const double scale = sample.part_bytes > 0 ? static_cast<double>(sample.rank_bytes) /
                                                   static_cast<double>(sample.part_bytes)
                                             : 0;
  for (const CandidateView& view : field.views()) {
    CandidateSum one;
    one.n_refused = view.refused.empty() ? 0 : 1;
    if (view.sampled) {
      one.seen_bytes = sample.rank_bytes;
      one.encoded_bytes = whole(view.encoded_bytes * scale);
    }
    one.measured_bytes = whole(view.measured_bytes * scale);
    one.measured_ns = whole(view.measured_s * scale * 1e9);
    sum.candidates.push_back(one);
  }
  return sum;
}

class StepChooser {
 public:
  StepChooser(const FileOptions& options, const MachineProfile& profile, const Comm& comm,
              const ThreadCounts& n_threads)
      : options_(options), profile_(profile), n_threads_(n_threads.own) {
    setting_.n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
    setting_.n_threads = n_threads.least;
    setting_.write = profile.write;
    setting_.sync_latency_s = options.sync ? profile.sync_latency_s : 0;
    setting_.other_s = static_cast<double>(options.input_bytes) /
                       (kInputBytesPerS * static_cast<double>(comm.n_ranks()));
  }

  /// Process this rank's samples. @returns this rank's failure; the sums can be added in any case.
  Status look(const std::vector<FieldState*>& fields);
  /// Turn the sums of all ranks into forecasts. Collective: one agreement, also on `looked`.
  Status add_up(Comm& comm, const Status& looked, RankNumbers along);
  /// Apply rank 0's decision. Collective: one broadcast.
  Status decide(Comm& comm, const std::vector<FieldState*>& fields);

 private:
  FieldForecast forecast(const FieldCandidates& field, const FieldSum& sum) const;
  void forecast_candidate(const FieldCandidates& field, const FieldSum& sum, std::size_t candidate,
                          CandidateForecast& one) const;
  bool hidden(const CandidateView& view, const CandidateForecast& one) const;
  double step_with(std::size_t field, const CandidateForecast& replacement) const;
  bool could_win(std::size_t field, std::size_t candidate) const;
  Status look_at_others(std::size_t field, bool plugins);
  Status look_at_rest();
  Status search_predictors();
  FieldSum own_share(std::size_t field) const;
  void forecast_own_share();

  const FileOptions& options_;
  const MachineProfile& profile_;
  std::uint64_t n_threads_;
  DumpSetting setting_;
  std::vector<FieldCandidates> fields_;
  std::vector<FieldForecast> forecasts_;  ///< Forecasts from this rank's share first, then from all
                                          ///< ranks'.
  CodecChoice choice_;
};

/// Set a candidate's times, or the reason not to use it, from its bytes.
void StepChooser::forecast_candidate(const FieldCandidates& field, const FieldSum& sum,
                                     std::size_t candidate, CandidateForecast& one) const {
  const CandidateSum& known = sum.candidates[candidate];
  const auto raw = static_cast<double>(sum.raw_bytes);
  const bool verified = verifies(field.field().definition.options.verify, one.codec, field.lossy());
  one.measured_bytes = static_cast<double>(known.measured_bytes);
  one.measured_encode_s = 1e-9 * static_cast<double>(known.measured_ns);
  if (known.n_refused > 0) {
    const std::string& own = field.views()[candidate].refused;
    one.refused = own.empty() ? "refused on another rank" : own;
    return;
  }
  const std::optional<double> least_s = least_candidate_seconds(profile_, one.codec, raw, verified);
  if (!least_s) {
    one.refused = "the machine profile has no timings for it";
    return;
  }
  if (2 * known.seen_bytes < sum.raw_bytes) {
    one.refused = field.is_searched(candidate)
                      ? "not tried: could not win, or the predictor search ended first"
                      : "not sampled: could not win even at its best";
    one.encode_s = *least_s;
    return;
  }
  if (known.seen_bytes > 0) {
    one.encoded_bytes =
        static_cast<double>(known.encoded_bytes) * (raw / static_cast<double>(known.seen_bytes));
  }
  one.encode_s = *candidate_seconds(profile_, one.codec, raw, one.encoded_bytes, verified);
}

/// True if a candidate with an uncertain encode time is no risk. The chunks of a field are
/// processed one after another; if encoding them takes longer than writing, the write lane waits.
bool StepChooser::hidden(const CandidateView& view, const CandidateForecast& one) const {
  return view.encode_doubt <= 1 || options_.objective == Objective::size ||
         one.encode_lane_s <= one.write_lane_s;
}

FieldForecast StepChooser::forecast(const FieldCandidates& field, const FieldSum& sum) const {
  FieldForecast made;
  made.path = field.field().definition.path;
  made.raw_bytes = static_cast<double>(sum.raw_bytes);
  made.n_chunks = sum.n_chunks;
  const double n_chunks = static_cast<double>(sum.n_chunks) / static_cast<double>(setting_.n_ranks);
  for (std::size_t c = 0; c < field.views().size(); ++c) {
    CandidateForecast one;
    one.codec = field.views()[c].codec;
    forecast_candidate(field, sum, c, one);
    one.encode_lane_s = encode_lane_s(one.encode_s, n_chunks, setting_);
    one.write_lane_s = write_lane_s(one.encoded_bytes, setting_);
    if (one.refused.empty() && !hidden(field.views()[c], one))
      one.refused = "its encoding might take longer than the writing";
    one.alone_s = overlapped_dump_s(one.encoded_bytes, one.encode_s, n_chunks, setting_);
    made.candidates.push_back(std::move(one));
  }
  return made;
}

/// The sums if all ranks had this rank's share.
FieldSum StepChooser::own_share(std::size_t field) const {
  FieldSum sum = own_sum(fields_[field]);
  sum.raw_bytes *= setting_.n_ranks;
  sum.n_chunks *= setting_.n_ranks;
  for (CandidateSum& one : sum.candidates) {
    one.seen_bytes *= setting_.n_ranks;
    one.encoded_bytes *= setting_.n_ranks;
  }
  return sum;
}

void StepChooser::forecast_own_share() {
  forecasts_.clear();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    forecasts_.push_back(forecast(fields_[f], own_share(f)));
  }
  choice_ = choose_codecs(forecasts_, setting_, options_.objective);
}

/// Seconds of the step if one field had another candidate.
double StepChooser::step_with(std::size_t field, const CandidateForecast& replacement) const {
  double encoded_bytes = choice_.encoded_bytes + replacement.encoded_bytes;
  double encode_s = replacement.encode_s;
  double n_chunks = 0;
  for (std::size_t f = 0; f < forecasts_.size(); ++f) {
    const CandidateForecast& chosen = forecasts_[f].candidates[choice_.candidate[f]];
    n_chunks += static_cast<double>(forecasts_[f].n_chunks);
    if (f == field) {
      encoded_bytes -= chosen.encoded_bytes;
    } else {
      encode_s += chosen.encode_s;
    }
  }
  n_chunks /= static_cast<double>(setting_.n_ranks);
  return overlapped_dump_s(encoded_bytes, encode_s, n_chunks, setting_);
}

/// True if the candidate would win with the smallest share of trz's bytes that was ever seen.
bool StepChooser::could_win(std::size_t field, std::size_t candidate) const {
  const FieldForecast& known = forecasts_[field];
  const CandidateView& view = fields_[field].views()[candidate];
  const Verify wish = fields_[field].field().definition.options.verify;
  const bool verified = verifies(wish, view.codec, fields_[field].lossy());
  double smallest = known.raw_bytes;
  double trz_bytes = known.raw_bytes;
  for (const CandidateForecast& one : known.candidates) {
    if (!one.refused.empty()) continue;
    smallest = std::min(smallest, one.encoded_bytes);
    if (one.codec == kYardstickCodec) trz_bytes = one.encoded_bytes;
  }
  const bool foreign = find_codec(view.codec) != find_codec(kYardstickCodec);
  if (foreign && options_.objective != Objective::size &&
      known.raw_bytes > kForeignBelowRatio * trz_bytes) {
    return false;
  }
  CandidateForecast hoped;
  hoped.encoded_bytes = std::min(view.least_share * trz_bytes, known.raw_bytes);
  // This time is a lower bound: more bytes take at least as long.
  const std::optional<double> hoped_s =
      candidate_seconds(profile_, view.codec, known.raw_bytes, hoped.encoded_bytes, verified);
  if (!hoped_s) return false;
  hoped.encode_s = *hoped_s;
  const double n_chunks =
      static_cast<double>(known.n_chunks) / static_cast<double>(setting_.n_ranks);
  hoped.encode_lane_s = encode_lane_s(*hoped_s, n_chunks, setting_);
  hoped.write_lane_s = write_lane_s(trz_bytes, setting_);
  if (!hidden(view, hoped)) return false;
  // The cost of sampling: a share of the encode time of the sampled chunks, on one thread.
  const FieldSample& sample = fields_[field].sample();
  const double looked_share = static_cast<double>(sample.parts.size()) /
                              static_cast<double>(std::max<std::uint64_t>(sample.n_rank_chunks, 1));
  const double look_s =
      view.look_share * looked_share * *hoped_s / static_cast<double>(setting_.n_ranks);
  const double step_s = step_with(field, hoped) + look_s;
  // `balanced` also samples faster candidates: the fastest sets the time limit for others.
  const bool faster = step_s < choice_.predicted_s * kWorthwhileShare;
  if (options_.objective == Objective::speed) return faster;
  const bool smaller = hoped.encoded_bytes < smallest &&
                       step_s < longest_step_s(choice_.predicted_s, setting_, options_.objective);
  return smaller || (faster && options_.objective == Objective::balanced);
}

/// Sample the other candidates of one field that could win: either the plug-ins or the built-in
/// ones.
Status StepChooser::look_at_others(std::size_t field, bool plugins) {
  const std::vector<CandidateView>& views = fields_[field].views();
  for (std::size_t c = 0; c < views.size(); ++c) {
    if (views[c].least_share == 0 || fields_[field].is_searched(c)) continue;
    if (codec_entry(views[c].codec).plugin != plugins || !could_win(field, c)) continue;
    TAILRACE_TRY(fields_[field].look_at(c));
  }
  return Status();
}

Status StepChooser::look_at_rest() {
  TAILRACE_TRY(run_on_threads(fields_.size(), n_threads_,
                              [&](std::size_t f) { return look_at_others(f, false); }));
  // On the main thread: making a plug-in's codec calls HDF5.
  for (std::size_t f = 0; f < fields_.size(); ++f) TAILRACE_TRY(look_at_others(f, true));
  return Status();
}

/// Run algorithm 1 for the fields where some predictor could win.
Status StepChooser::search_predictors() {
  std::vector<std::size_t> worthwhile;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    for (std::size_t c = 0; c < fields_[f].views().size(); ++c) {
      if (!fields_[f].is_searched(c) || !could_win(f, c)) continue;
      worthwhile.push_back(f);
      break;
    }
  }
  return run_on_threads(worthwhile.size(), n_threads_, [&](std::size_t task) {
    const std::size_t f = worthwhile[task];
    return fields_[f].search_predictors([&](std::size_t candidate) {
      const FieldForecast tried = forecast(fields_[f], own_share(f));
      return step_with(f, tried.candidates[candidate]);
    });
  });
}

Status StepChooser::look(const std::vector<FieldState*>& fields) {
  Status failed;
  const SampleSize size = sample_size_for(setting_.n_ranks, fields);
  for (FieldState* field : fields) {
    Result<FieldSample> sample = take_sample(*field, size);
    if (!sample.ok() && failed.ok()) failed = sample.status();
    // The sums of all ranks must have the same entries, even if a sample failed.
    fields_.emplace_back(*field, sample.ok() ? std::move(*sample) : FieldSample(),
                         options_.plugin_path);
  }
  TAILRACE_TRY(failed);
  TAILRACE_TRY(run_on_threads(fields_.size(), n_threads_,
                              [&](std::size_t f) { return fields_[f].look_at_cheap(); }));
  forecast_own_share();
  TAILRACE_TRY(search_predictors());
  forecast_own_share();
  TAILRACE_TRY(look_at_rest());
  if (options_.why != Why::measured) return Status();
  for (FieldCandidates& field : fields_) {
    for (std::size_t c = 0; c < field.views().size(); ++c) TAILRACE_TRY(field.measure(c));
  }
  return Status();
}

Status StepChooser::add_up(Comm& comm, const Status& looked, RankNumbers along) {
  std::vector<FieldSum> sums;
  for (const FieldCandidates& field : fields_) sums.push_back(own_sum(field));
  for (FieldSum& sum : sums) {
    along.add(Reduction::sum, sum.raw_bytes, sum.n_chunks);
    for (CandidateSum& one : sum.candidates) {
      along.add(Reduction::sum, one.n_refused, one.seen_bytes, one.encoded_bytes,
                one.measured_bytes, one.measured_ns);
    }
  }
  TAILRACE_TRY(comm.agree(looked, along));
  forecasts_.clear();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    forecasts_.push_back(forecast(fields_[f], sums[f]));
  }
  return Status();
}

Status StepChooser::decide(Comm& comm, const std::vector<FieldState*>& fields) {
  choice_ = choose_codecs(forecasts_, setting_, options_.objective);
  // All ranks have the same sums, but floating-point arithmetic may differ on unlike machines.
  ByteWriter decision;
  for (const std::size_t candidate : choice_.candidate) {
    decision.add(static_cast<std::uint64_t>(candidate));
  }
  Bytes bytes = decision.take();
  comm.broadcast(bytes, 0);
  ByteReader of_root(bytes);
  for (std::size_t& candidate : choice_.candidate) {
    candidate = static_cast<std::size_t>(of_root.take<std::uint64_t>());
  }
  for (std::size_t f = 0; f < fields.size(); ++f) {
    ResolvedField& resolved = fields[f]->resolved;
    resolved.candidates = std::move(forecasts_[f].candidates);
    resolved.chosen_candidate = choice_.candidate[f];
    TAILRACE_TRY(name_codec(resolved.candidates[resolved.chosen_candidate].codec,
                            fields[f]->definition.options));
  }
  return Status();
}

/// The codec of an existing dataset: the candidate with the same filters. Rank 0 only.
Result<std::string> stored_codec(const FieldState& field, const std::string& plugin_path) {
  const FieldCandidates candidates(field, FieldSample(), plugin_path);
  const Shape chunk_shape = field.definition.with_entries(1, field.resolved.chunk_shape);
  for (std::size_t c = 0; c < candidates.views().size(); ++c) {
    TAILRACE_TAKE(CodecRequest request, candidates.request_for(c, chunk_shape));
    Result<std::unique_ptr<Codec>> codec = make_codec(request, plugin_path);
    if (codec.ok() && has_filters(field.stored_filters, **codec))
      return candidates.views()[c].codec;
  }
  return Status(Code::invalid_argument,
                field.definition.name() +
                    ": codec auto has no candidate with the filters that the dataset has in the "
                    "file; give codec= and its settings");
}

/// Replace the speeds by those of rank 0's core, since all ranks must use the same. Collective: a
/// broadcast.
Status scale_to_core(Comm& comm, MachineProfile& profile) {
  TAILRACE_TAKE(const Bytes received, broadcast_from_root(comm, [](ByteWriter& message) {
                  message.add_text(profile_text(measured_and_kept_core_profile()));
                  return Status();
                }));
  TAILRACE_TAKE(profile, parse_profile(ByteReader(received).take_text()));
  return Status();
}

/// Path of the user's profile; empty: none.
std::string profile_path(const FileOptions& options) {
  if (!options.profile_path.empty()) return options.profile_path;
  if (const char* named = environment_variable("TAILRACE_PROFILE");
      named != nullptr && *named != '\0') {
    return named;
  }
  const char* home = environment_variable("HOME");
  if (home == nullptr || *home == '\0') return "";
  const std::filesystem::path usual =
      std::filesystem::path(home) / ".config" / "tailrace" / "profile.json";
  std::error_code failed;
  return std::filesystem::exists(usual, failed) ? usual.string() : "";
}

/// Sent by rank 0 in the place of a profile's text, if no profile is named and this core's speed is
/// not cached.
constexpr std::string_view kNobodyMeasured = "-";

/// Text of the profile. Warnings about a stale profile go to `log`. Rank 0 only.
Result<std::string> read_profile(const FileOptions& options, const LogCallback& log,
                                 const std::string& output_path) {
  const std::string path = profile_path(options);
  if (path == kBuiltInProfileName) return profile_text(built_in_profile());
  if (path.empty()) {
    const std::optional<MachineProfile> kept = kept_core_profile();
    return kept ? profile_text(*kept) : std::string(kNobodyMeasured);
  }
  TAILRACE_TAKE(std::string text, read_settings_file(path).within("machine profile"));
  TAILRACE_TAKE(MachineProfile profile, parse_profile(text).within(path));
  if (!log) return text;
  const std::filesystem::path folder = std::filesystem::path(output_path).parent_path();
  MachineIdentity here = find_machine_identity(folder.empty() ? "." : folder.string());
  if (output_path.empty()) here.file_system = profile.file_system;
  for (const std::string& remark : staleness(profile, here)) {
    log("machine profile " + path + ": " + remark);
  }
  return text;
}

}  // namespace

Status need_profile(Comm& comm, FileOptions& options, const LogCallback& log,
                    const std::string& path, std::optional<MachineProfile>& profile) {
  if (profile) return Status();
  TAILRACE_TAKE(const Bytes received, broadcast_from_root(comm, [&](ByteWriter& message) {
                  const Result<std::string> text = read_profile(options, log, path);
                  if (text.ok()) message.add_text(*text);
                  return text.status();
                }));
  const std::string text = ByteReader(received).take_text();
  const bool measured = text != kNobodyMeasured;
  TAILRACE_TAKE(profile, measured ? parse_profile(text) : Result(built_in_profile()));
  profile->of_another_core = !measured;
  if (options.alignment_bytes == 0) options.alignment_bytes = profile->alignment_bytes();
  return Status();
}

Status check_chosen_settings(const FieldDefinition& definition) {
  const auto& settings = definition.options.codec_settings;
  if (settings.empty()) return Status();
  return Status(Code::invalid_argument,
                definition.name() + ": setting \"" + settings.front().first +
                    "\" needs an explicit codec=; codec auto takes no settings");
}

Status name_stored_codec(Comm& comm, FieldState& field, const std::string& plugin_path) {
  const Result<Bytes> received = broadcast_from_root(comm, [&](ByteWriter& message) {
    const Result<std::string> codec = stored_codec(field, plugin_path);
    if (codec.ok()) message.add_text(*codec);
    return codec.status();
  });
  if (!received.ok()) return received.status();
  return name_codec(ByteReader(*received).take_text(), field.definition.options);
}

Status choose_codecs_for(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options,
                         MachineProfile& profile, const ThreadCounts& n_threads,
                         RankNumbers& along) {
  TAILRACE_TRY(set_target_bounds(comm, fields, options));
  std::vector<FieldState*> chosen;
  for (FieldState& field : fields) {
    FieldOptions& wish = field.definition.options;
    if (!field.is_new() || !codec_is_ours_to_choose(wish)) continue;
    TAILRACE_TRY(check_chosen_settings(field.definition));
    if (field.continued) {
      TAILRACE_TRY(name_stored_codec(comm, field, options.plugin_path));
    } else if (stored_plainly(field.definition)) {
      TAILRACE_TRY(name_codec(std::string(plain_codec), wish));
    } else if (!field.learned.inherited.codec.empty() && !options.has_target()) {
      TAILRACE_TRY(name_codec(field.learned.inherited.codec, wish));
    } else {
      chosen.push_back(&field);
    }
  }
  if (chosen.empty()) return Status();
  if (profile.of_another_core) TAILRACE_TRY(scale_to_core(comm, profile));
  StepChooser chooser(options, profile, comm, n_threads);
  TAILRACE_TRY(chooser.add_up(comm, chooser.look(chosen), std::exchange(along, {})));
  return chooser.decide(comm, chosen);
}

}  // namespace tailrace
