// Books from step to step: counting, agreeing, naming.

#include "field/field_book.hpp"

#include <algorithm>
#include <utility>

#include "core/codec_registry.hpp"
#include "core/codec_settings.hpp"
#include "exec/lane_clock.hpp"
#include "field/candidates.hpp"
#include "field/field_state.hpp"
#include "trz/book/book_counter.hpp"
#include "trz/client_data.hpp"

namespace tailrace {
namespace {

/// One in this number of chunks is counted before the first step of a field over time is written.
constexpr std::uint64_t kTrainedOneIn = 20;
/// Minimum of counted bytes: a smaller sample misses rarer codes, and its book costs more than half
/// a percent.
constexpr std::uint64_t kTrainedBytesMin = 1U << 20;
constexpr std::uint64_t kTrainedChunksMax = 4;  ///< Limit for one rank, unless kTrainedBytesMin
                                                ///< needs more.
/// Steps without a book after a fresh book that cost too much. Chunks that differ that much do not
/// suit a shared book, but a field may change.
constexpr std::uint64_t kRestSteps = 16;
/// Weight of older twins when new ones arrive.
constexpr double kTwinFading = 0.5;
/// Fields whose counts are sent in one message: 4 MB at most.
constexpr std::size_t kFieldsAtOnce = 64;

/// True if chunks of this field could have codes that a book covers.
bool has_codes(const FieldState& field) {
  const CodecRequest request = codec_request(field.definition, field.resolved);
  if (!codec_entry(request.name).has_books || !is_floating(request.dtype)) return false;
  const bool fast = std::find(request.settings.begin(), request.settings.end(),
                              KeyValue{"preset", "fast"}) != request.settings.end();
  return !fast && (request.absolute_bound > 0 || request.pointwise_bound > 0);
}

/// The new fields with book=auto. Invalid settings are an error.
Result<std::vector<FieldState*>> fields_with_auto_book(std::vector<FieldState>& fields) {
  std::vector<FieldState*> found;
  for (FieldState& field : fields) {
    if (!field.is_new() || !codec_entry(field.definition.options.codec).has_books) continue;
    trz::CodecSettingList settings = field.definition.options.codec_settings;
    TAILRACE_TAKE(const auto wish, trz::take_auto_book(settings).within(field.definition.name()));
    if (!wish || !has_codes(field)) continue;
    field.learned.book.most_loss = wish->most_loss;
    found.push_back(&field);
  }
  return found;
}

/// The book in the header of the dataset that a field continues. Rank 0 only.
Bytes stored_book(const std::vector<FilterSpec>& filters) {
  for (const FilterSpec& filter : filters) {
    if (filter.filter_id != trz::filter_id) continue;
    const Result<trz::ClientData> data = trz::read_client_words(filter.final_client_data);
    if (!data.ok()) break;  // check_continued_codecs reports the fault.
    const auto bytes = std::as_bytes(std::span(data->request.book_bytes));
    return {bytes.begin(), bytes.end()};
  }
  return {};
}

void adopt_stored_book(Comm& comm, FieldState& field) {
  Bytes bytes;
  if (comm.is_root()) bytes = stored_book(field.stored_filters);
  comm.broadcast(bytes, 0);
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  field.learned.book.bytes.assign(first, first + bytes.size());
}

// --- counts of all ranks --------------------------------------------------------------------

/// Add up the counts of all ranks, of the kinds that occur anywhere. Collective.
void add_up_counts(Comm& comm, std::span<trz::BookTally> tallies) {
  std::vector<std::uint64_t> kinds;
  for (const trz::BookTally& tally : tallies) kinds.push_back(tally.kinds());
  comm.allreduce(std::span<std::uint64_t>(kinds), Reduction::bit_or);
  for (std::size_t first = 0; first < tallies.size(); first += kFieldsAtOnce) {
    const std::size_t end = std::min(first + kFieldsAtOnce, tallies.size());
    std::vector<std::uint64_t> sums;
    const auto for_each_kind = [&](const auto& visit) {
      for (std::size_t t = first; t < end; ++t) {
        tallies[t].counts.resize(256 * trz::kBookKinds);
        for (std::size_t kind = 0; kind < trz::kBookKinds; ++kind) {
          if ((kinds[t] >> kind & 1) != 0) visit(tallies[t].of_kind(kind));
        }
      }
    };
    for_each_kind([&](std::span<std::uint64_t> counts) {
      sums.insert(sums.end(), counts.begin(), counts.end());
    });
    comm.allreduce(std::span<std::uint64_t>(sums), Reduction::sum);
    auto sum = sums.begin();
    for_each_kind([&](std::span<std::uint64_t> counts) {
      std::copy_n(sum, counts.size(), counts.begin());
      sum += static_cast<std::ptrdiff_t>(counts.size());
    });
  }
}

/// The book's bytes; none if nothing was counted.
std::vector<std::uint8_t> book_bytes_from(const trz::BookTally& tally) {
  if (tally.kinds() == 0) return {};
  return trz::book_from(tally).serialize();
}

// --- books of fields over time --------------------------------------------------------------

/// Number of chunks of each field that this rank counts: its share of about one in twenty.
/// Collective.
std::vector<std::uint64_t> chunks_to_count(Comm& comm, std::span<FieldState* const> fields) {
  std::vector<std::uint64_t> n_chunks;
  for (const FieldState* field : fields) {
    n_chunks.push_back(0);
    for (const PutRecord& put : field->puts) {
      if (!put.box.empty()) n_chunks.back() += field->grid().touched(put.box).n_elements();
    }
  }
  const std::unique_ptr<PendingSum> sum = comm.start_sum(n_chunks);
  sum->wait();
  const std::vector<std::uint64_t> before = sum->before();
  const std::vector<std::uint64_t> total = sum->total();
  std::vector<std::uint64_t> shares;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::uint64_t least = kTrainedBytesMin / fields[f]->chunk_bytes() + 1;
    const std::uint64_t wanted = std::max(total[f] / kTrainedOneIn + 1, std::min(total[f], least));
    const auto wanted_of = [&](std::uint64_t n) {
      return (n * wanted + total[f] - 1) / std::max<std::uint64_t>(total[f], 1);
    };
    shares.push_back(std::min(wanted_of(before[f] + n_chunks[f]) - wanted_of(before[f]),
                              std::max(kTrainedChunksMax, least)));
  }
  return shares;
}

/// Count a few of this rank's chunks. @error out_of_memory, and the errors of a source.
Status count_sample(const FieldState& field, std::uint64_t n_chunks, trz::BookCounter& counter) {
  if (n_chunks == 0 || !(field.resolved.absolute_bound > 0)) return Status();
  SampleSize size;
  size.n_parts_max = n_chunks;
  TAILRACE_TAKE(const FieldSample sample, take_sample(field, size));
  CodecRequest request = codec_request(field.definition, field.resolved);
  TAILRACE_TRY(trz::take_auto_book(request.settings).status());
  CodecSettings keys(request);
  const trz::Settings settings = trz::read_settings(keys);
  trz::Workspace workspace;
  trz::ChunkType type;
  type.dtype = field.definition.dtype;
  type.bound = field.resolved.absolute_bound;
  type.fill_value = trz::recorded_fill(type.dtype, field.definition.options.fill_value);
  for (const StridedValues& part : sample.parts) {
    Buffer values(part.n_bytes());
    if (!values.allocated()) return Status(Code::out_of_memory, "no memory for a sample's values");
    gather(part, values.data());
    type.shape = part.shape;
    trz::BookHistograms counted;
    TAILRACE_TRY(trz::count_for_book(type, settings, values.bytes(), counted, workspace));
    counter.add_counts(counted, nullptr, 0);
  }
  return Status();
}

/// Books of new fields over time from samples of their first step. Collective; the error is agreed.
Status train_first_books(Comm& comm, std::span<FieldState* const> fields) {
  if (fields.empty()) return Status();
  const std::vector<std::uint64_t> shares = chunks_to_count(comm, fields);
  std::vector<trz::BookTally> tallies(fields.size());
  Status counted;
  for (std::size_t f = 0; f < fields.size() && counted.ok(); ++f) {
    trz::BookCounter counter(0, 0, thread_cpu_s);
    counted = count_sample(*fields[f], shares[f], counter).within(fields[f]->definition.name());
    tallies[f] = counter.take();
  }
  TAILRACE_TRY(comm.agree(counted));
  add_up_counts(comm, tallies);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    fields[f]->learned.book.bytes = book_bytes_from(tallies[f]);
  }
  return Status();
}

// --- learning -------------------------------------------------------------------------------

/// Update a book's statistics from the step that was written with it.
void judge_book(BookState& book, const CountedSums& sums) {
  if (book.bytes.empty()) return;
  ++book.age;
  if (sums.n_counted > 0 && sums.counted_bytes > 0) {
    book.ratio_loss = (static_cast<double>(sums.book_bytes) - static_cast<double>(sums.own_bytes)) /
                      static_cast<double>(sums.counted_bytes);
  }
  if (sums.n_twins == 0) return;
  book.twin_book_s = kTwinFading * book.twin_book_s + 1e-9 * static_cast<double>(sums.twin_book_ns);
  book.twin_own_s = kTwinFading * book.twin_own_s + 1e-9 * static_cast<double>(sums.twin_own_ns);
}

/// Decide if the next step's dataset gets a book from this step's counts. A step without a book
/// counts enough for one; if the counts are too few, the next step has no book.
bool wants_new_book(BookState& book, std::uint64_t chunk_bytes, const CountedSums& sums) {
  book.next = book.bytes;
  if (sums.n_counted == 0) return false;
  if (book.bytes.empty()) return true;
  if (book.ratio_loss <= book.most_loss) return false;
  book.next.clear();
  if (book.age <= 1) book.n_rests = kRestSteps;
  return book.age > 1 && sums.n_counted * chunk_bytes >= kTrainedBytesMin;
}

}  // namespace

Status prepare_books(Comm& comm, std::vector<FieldState>& fields) {
  // The definitions are the same on every rank, so all ranks fail alike.
  TAILRACE_TAKE(const std::vector<FieldState*> wishing, fields_with_auto_book(fields));
  std::vector<FieldState*> untrained;
  for (FieldState* field : wishing) {
    BookState& book = field->learned.book;
    if (field->continued) {
      adopt_stored_book(comm, *field);
    } else if (field->definition.options.over_time) {
      untrained.push_back(field);
    } else {
      if (book.next != book.bytes) {
        book.age = book.n_chunks = 0;  // Makes rank 0 encode its first chunks as twins, to judge
                                       // the new book.
        book.ratio_loss = 0;
      }
      book.bytes = book.next;
    }
  }
  TAILRACE_TRY(train_first_books(comm, untrained));
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  const auto n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
  for (FieldState* field : wishing) {
    BookState& book = field->learned.book;
    if (!book.bytes.empty()) {
      trz::name_book(book.bytes, field->definition.options.codec_settings);
    }
    if (book.n_rests > 0) continue;
    // Each rank checks different chunks; together they check as many as one rank would.
    const std::uint64_t n_before =
        book.n_chunks > 0 ? book.n_chunks : rank * trz::BookCounter::kTwinOneIn / n_ranks;
    const std::uint64_t n_first =
        book.bytes.empty() ? (kTrainedBytesMin / field->chunk_bytes()) / n_ranks + 1 : 0;
    book.counter = std::make_shared<trz::BookCounter>(n_before, n_first, thread_cpu_s);
  }
  return Status();
}

BookLessons::BookLessons(std::span<FieldState* const> active, RankNumbers& numbers)
    : active_(active) {
  for (std::size_t p = 0; p < active.size(); ++p) {
    BookState& book = active[p]->learned.book;
    if (book.counter == nullptr) continue;
    counting_.push_back(p);
    tallies_.push_back(book.counter->take());
    book.n_chunks = book.counter->n_chunks();
  }
  for (const trz::BookTally& tally : tallies_) {
    sums_.push_back({tally.n_counted, tally.counted_bytes, tally.book_bytes, tally.own_bytes,
                     tally.n_twins, tally.twin_book_ns, tally.twin_own_ns});
  }
  for (CountedSums& sums : sums_) {
    numbers.add(Reduction::sum, sums.n_counted, sums.counted_bytes, sums.book_bytes, sums.own_bytes,
                sums.n_twins, sums.twin_book_ns, sums.twin_own_ns);
  }
}

void BookLessons::learn(Comm& comm, StepReport& report) {
  for (std::size_t p = 0; p < active_.size(); ++p) {
    report.fields[p].book_bytes = active_[p]->learned.book.bytes.size();
  }
  std::vector<trz::BookTally> to_add;
  std::vector<BookState*> renewed;
  for (std::size_t c = 0; c < counting_.size(); ++c) {
    FieldState& field = *active_[counting_[c]];
    FieldReport& entry = report.fields[counting_[c]];
    BookState& book = field.learned.book;
    judge_book(book, sums_[c]);
    entry.book_ratio_loss = book.bytes.empty() ? 0 : book.ratio_loss;
    if (!book.bytes.empty() && book.twin_book_s > 0) {
      entry.book_saved_s = entry.encode_s * (book.twin_own_s / book.twin_book_s - 1);
    }
    if (field.definition.options.over_time) continue;
    if (!wants_new_book(book, field.chunk_bytes(), sums_[c])) continue;
    renewed.push_back(&book);
    to_add.push_back(std::move(tallies_[c]));
  }
  if (renewed.empty()) return;
  add_up_counts(comm, to_add);
  for (std::size_t r = 0; r < renewed.size(); ++r) renewed[r]->next = book_bytes_from(to_add[r]);
}

BookState inheritable(BookState book) {
  book.counter.reset();
  if (book.n_rests > 0) --book.n_rests;
  return book;
}

}  // namespace tailrace
