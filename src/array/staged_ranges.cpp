// The range of staged values. A rank knows its own puts only. Only a wrong minimum or maximum can
// make a range wrong. So all ranks check whether they have replaced the elements that hold these.
// Each round broadcasts the slabs of one more rank.

#include "array/staged_ranges.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "codec/verify.hpp"
#include "core/byte_stream.hpp"
#include "field/range_evidence.hpp"

namespace tailrace {
namespace {

constexpr std::uint64_t kNobody = UINT64_MAX;

/// This rank's smallest lasting value, or its negated largest one, and the run that holds it.
struct RangeEnd {
  double value = std::numeric_limits<double>::infinity();
  std::uint64_t epoch = 0;
  Slab piece;
  std::uint64_t first = 0;
  std::uint64_t n = 0;  ///< 0: this rank has put no finite value.
  const std::byte* values = nullptr;
};

double end_of(const ValueRange& range, std::size_t which) {
  return which == 0 ? range.least : -range.greatest;
}

class StagedRange {
 public:
  explicit StagedRange(const StagingLog& log) : log_(log) {}

  void scan(const FieldDefinition& definition) {
    if (known_) return;
    known_ = scanned_ = true;
    evidence_ = {};
    ends_ = {};
    first_epoch_ = UINT64_MAX;
    last_epoch_ = 0;
    log_.for_each_lasting(others_, [&](const StagingLog::Lasting& run) {
      const ValueRange here = range_of(definition, run.values, run.n);
      evidence_.range.merge(here);
      evidence_.sample.add(definition.dtype, {run.values, run.n * log_.element_bytes()},
                           definition.options.fill_value);
      first_epoch_ = std::min(first_epoch_, run.epoch);
      last_epoch_ = std::max(last_epoch_, run.epoch);
      for (std::size_t k = 0; k < ends_.size(); ++k) {
        const double end = end_of(here, k);
        if (end >= ends_[k].value) continue;
        ends_[k] = {end, run.epoch, run.piece, run.first, run.n, run.values};
      }
    });
  }
  const RangeEvidence& evidence() const { return evidence_; }
  void add_epochs(RankNumbers& numbers) {
    if (!scanned_) return;
    numbers.add(Reduction::min, first_epoch_);
    numbers.add(Reduction::max, last_epoch_);
  }
  /// True if one rank may have replaced another's put. Requires the epochs of all ranks.
  bool contested() const { return scanned_ && first_epoch_ < last_epoch_; }

  bool holds(std::size_t which, double value) const {
    return ends_[which].n > 0 && ends_[which].value == value;
  }
  /// Write the epoch and the position of the range end that this rank holds.
  void write_place(std::size_t which, const FieldDefinition& definition,
                   std::span<std::uint64_t> words) const {
    const RangeEnd& end = ends_[which];
    std::uint64_t first = 0;
    for (std::uint64_t n = end.n; n > 1;) {
      const std::uint64_t half = n / 2;
      const std::byte* values = end.values + first * log_.element_bytes();
      const bool here = end_of(range_of(definition, values, half), which) == end.value;
      first += here ? 0 : half;
      n = here ? half : n - half;
    }
    words[0] = end.epoch;
    first += end.first;
    for (std::size_t d = end.piece.rank(); d-- > 0;) {
      words[1 + d] = end.piece.start[d] + first % end.piece.count[d] * end.piece.stride_of(d);
      first /= end.piece.count[d];
    }
  }
  /// True if this rank has put the element at a position, as written by write_place(), in a later
  /// epoch.
  bool replaces(std::span<const std::uint64_t> words) const {
    const Shape at(words.begin() + 1, words.end());
    const Box element{at, Shape(at.size(), 1)};
    bool found = false;
    for (std::size_t e = 0; e < log_.n_entries() && !found; ++e) {
      log_.for_each_piece(e, [&](const Slab& piece, std::uint64_t epoch, const std::byte*) {
        found = found || (epoch > words[0] && !part_within(piece, element).slab.empty());
      });
    }
    return found;
  }

  Bytes pack_slabs() const {
    ByteWriter writer;
    for (std::size_t e = 0; e < log_.n_entries(); ++e) {
      log_.for_each_piece(e, [&](const Slab& piece, std::uint64_t epoch, const std::byte*) {
        writer.add(piece);
        writer.add(epoch);
      });
    }
    return writer.take();
  }
  void take_slabs(const Bytes& of_other) {
    ByteReader reader(of_other);
    while (!reader.at_end()) {
      Slab slab = reader.take_slab();
      others_.push_back({std::move(slab), reader.take<std::uint64_t>()});
    }
    known_ = false;
  }

 private:
  ValueRange range_of(const FieldDefinition& definition, const std::byte* values,
                      std::uint64_t n) const {
    return value_range(definition.dtype, {values, n * log_.element_bytes()},
                       definition.options.fill_value);
  }

  const StagingLog& log_;
  std::vector<StagingLog::Cover> others_;
  bool scanned_ = false;
  bool known_ = false;
  RangeEvidence evidence_;
  std::array<RangeEnd, 2> ends_;
  std::uint64_t first_epoch_ = UINT64_MAX;
  std::uint64_t last_epoch_ = 0;
};

/// Ask all ranks whether the ends of contested ranges are replaced, and broadcast the slabs of each
/// rank that has replaced one. @returns true if the ranges must be computed again. Errors are
/// agreed. Collective.
Result<bool> learn_of_others(Comm& comm, const std::vector<FieldState>& fields,
                             std::vector<StagedRange>& staged) {
  struct End {
    std::size_t field = 0;
    std::size_t which = 0;
    std::size_t first_word = 0;
    std::size_t n_words = 0;
  };
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  std::vector<End> ends;
  std::vector<std::uint64_t> holders;
  std::size_t n_words = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!staged[i].contested()) continue;
    const ResolvedField& resolved = fields[i].resolved;
    for (const std::size_t which : {0U, 1U}) {
      const double value = which == 0 ? resolved.value_least : -resolved.value_greatest;
      ends.push_back({i, which, n_words, 1 + fields[i].definition.shape.size()});
      holders.push_back(staged[i].holds(which, value) ? rank : kNobody);
      n_words += ends.back().n_words;
    }
  }
  if (ends.empty()) return false;
  comm.allreduce(std::span(holders), Reduction::min);
  std::vector<std::uint64_t> words(n_words, 0);
  const auto place_of = [&](const End& end) {
    return std::span(words).subspan(end.first_word, end.n_words);
  };
  for (std::size_t j = 0; j < ends.size(); ++j) {
    const End& end = ends[j];
    if (holders[j] != rank) continue;
    staged[end.field].write_place(end.which, fields[end.field].definition, place_of(end));
  }
  comm.allreduce(std::span(words), Reduction::max);
  std::vector<std::uint64_t> replacers(ends.size(), kNobody);
  for (std::size_t j = 0; j < ends.size(); ++j) {
    if (holders[j] == kNobody || holders[j] == rank) continue;
    if (staged[ends[j].field].replaces(place_of(ends[j]))) replacers[j] = rank;
  }
  comm.allreduce(std::span(replacers), Reduction::min);
  Status mine;
  bool again = false;
  for (std::size_t j = 0; j < ends.size(); ++j) {
    const bool repeated =
        j > 0 && ends[j - 1].field == ends[j].field && replacers[j - 1] == replacers[j];
    if (replacers[j] == kNobody || repeated) continue;
    again = true;
    StagedRange& range = staged[ends[j].field];
    Bytes slabs;
    const auto work = [&](auto&& part) {
      const Status done = local_part([&] {
        part();
        return Status();
      });
      if (mine.ok()) mine = done;
    };
    if (replacers[j] == rank) work([&] { slabs = range.pack_slabs(); });
    comm.broadcast(slabs, static_cast<int>(replacers[j]));
    if (replacers[j] != rank) work([&] { range.take_slabs(slabs); });
  }
  if (again) TAILRACE_TRY(comm.agree(mine));
  return again;
}

}  // namespace

ValueRange range_within_bound(const StagingLog& log, const FieldDefinition& definition) {
  RangeWithinBound within(definition);
  bool more = true;
  log.for_each_lasting({}, [&](const StagingLog::Lasting& run) {
    more = more && within.add({run.values, run.n * log.element_bytes()});
  });
  return within.range();
}

Status resolve_staged_bounds(Comm& comm, std::span<const StagingLog* const> logs,
                             std::vector<FieldState>& fields) {
  const auto by_values = [](const FieldState& field) {
    return field.makes_dataset() &&
           (needs_range(field.definition.options) || judged_by_range(field.definition));
  };
  if (std::ranges::none_of(fields, by_values)) {  // Alike on all ranks.
    ValueRanges(fields).resolve_bounds(fields);
    return Status();
  }
  std::vector<StagedRange> staged;
  for (const StagingLog* log : logs) staged.emplace_back(*log);
  for (bool again = true; again;) {
    ValueRanges ranges(fields, [&](std::size_t i, RangeEvidence& evidence) {
      return local_part([&] {
        if (!needs_range(fields[i].definition.options)) {
          evidence.range = range_within_bound(*logs[i], fields[i].definition);
          return Status();
        }
        staged[i].scan(fields[i].definition);
        evidence = staged[i].evidence();
        return Status();
      });
    });
    RankNumbers numbers = ranges.numbers();
    for (StagedRange& range : staged) range.add_epochs(numbers);
    numbers.reduce(comm);
    ranges.resolve_bounds(fields);
    BoundVerdicts verdicts(fields);
    TAILRACE_TRY(comm.agree(ranges.scanned(), verdicts.numbers()));
    verdicts.note(fields);
    TAILRACE_TAKE(again, learn_of_others(comm, fields, staged));
  }
  return Status();
}

}  // namespace tailrace
