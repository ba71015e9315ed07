#include "concat/concat_notes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/encoding_notes.hpp"
#include "core/utf8.hpp"
#include "describe/field_attributes.hpp"
#include "hdf5/dataset_schema.hpp"

namespace tailrace {
namespace {

/// Limit of datasets named in a remark.
constexpr std::size_t kMostNamed = 8;

void pack_notes(ByteWriter& writer, std::uint32_t dataset, const RowNotes& notes) {
  writer.add(dataset);
  writer.add(static_cast<std::uint8_t>(notes.recorded));
  writer.add_text(notes.as_requested);
  writer.add_text(notes.codec);
  writer.add(notes.absolute_bound);
  writer.add(static_cast<std::uint8_t>(notes.max_error.has_value()));
  writer.add(notes.max_error.value_or(0));
  writer.add_text(guards_text(notes.guards));
  writer.add(static_cast<std::uint32_t>(notes.chunk_shape.size()));
  for (const std::uint64_t extent : notes.chunk_shape) writer.add(extent);
  writer.add(static_cast<std::uint32_t>(notes.mask_rows.size()));
  for (const auto& [mask, n_rows] : notes.mask_rows) {
    writer.add_text(mask);
    writer.add(n_rows);
  }
}

RowNotes take_notes(ByteReader& reader) {
  RowNotes notes;
  notes.recorded = reader.take<std::uint8_t>() != 0;
  notes.as_requested = reader.take_text();
  notes.codec = reader.take_text();
  notes.absolute_bound = reader.take<double>();
  const bool measured = reader.take<std::uint8_t>() != 0;
  const auto max_error = reader.take<double>();
  if (measured) notes.max_error = max_error;
  const Result<Guards> guards = parse_guards(reader.take_text());
  if (guards.ok()) notes.guards = *guards;  // Tailrace wrote this text, so it parses.
  for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
    notes.chunk_shape.push_back(reader.take<std::uint64_t>());
  }
  for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
    std::string mask = reader.take_text();
    notes.mask_rows[std::move(mask)] = reader.take<std::uint64_t>();
  }
  return notes;
}

/// The notes, with the chunk shape and mask rows that guards of chunks and of masks need.
RowNotes notes_of(const ConcatInput& input, std::size_t dataset) {
  RowNotes notes = input.row_notes(dataset);
  if (!notes.recorded || notes.guards.empty()) return notes;
  const std::vector<StoredDataset>& datasets = input.datasets();
  notes.chunk_shape = datasets[dataset].storage.chunk_shape;
  for (const RegionGuard& region : notes.guards.regions) {
    if (region.mask.empty()) continue;
    const auto mask = std::ranges::find(datasets, region.mask, &StoredDataset::path);
    if (mask != datasets.end()) notes.mask_rows[region.mask] = mask->n_rows();
  }
  return notes;
}

/// True if a file's note declares the rows of a dataset exact.
bool declared_exact(const ConcatInput& input, std::size_t dataset, const RowNotes& notes) {
  return notes.silent && input.declares_exact() &&
         covered_by_file_note(input.datasets()[dataset].storage);
}

/// Guards that remain valid in the output. Guards by masks do if all rows of the mask come with the
/// rows of the dataset; guards of chunks do if the chunks are the same.
Guards guards_in(const RowNotes& rows, const Shape& chunk, std::span<const ConcatTarget> targets) {
  return guards_of_copy(
      rows.guards, !chunk.empty() && chunk == rows.chunk_shape, [&](const std::string& path) {
        const auto had = rows.mask_rows.find(path);
        const auto mask =
            std::ranges::find(targets, path, [](const ConcatTarget& t) { return t.like.path; });
        return had != rows.mask_rows.end() && had->second > 0 && mask != targets.end() &&
               mask->n_rows == had->second;
      });
}

void set(std::vector<bool>& of_datasets, std::size_t dataset) {
  if (of_datasets.size() <= dataset) of_datasets.resize(dataset + 1);
  of_datasets[dataset] = true;
}

void add_rows(std::map<std::uint32_t, RowNotes>& all, std::uint32_t dataset,
              const RowNotes& notes) {
  const auto [there, first] = all.emplace(dataset, notes);
  if (!first) there->second = of_all_rows(there->second, notes);
}

/// True if chunks are stored unchanged, as far as the header shows.
bool same_codec(const StoredForm& made, const StoredForm& stored) {
  if (made.kind != stored.kind) return false;
  return std::ranges::equal(made.filters, stored.filters, {}, &FilterSpec::filter_id,
                            &FilterSpec::filter_id);
}

/// Record the encoding of the rows, if it differs from that of `stored`. @param codec  from the
/// request
void record_codec(const ConcatTarget& target, const StoredDataset& stored, const std::string& codec,
                  CopiedNotes& notes) {
  if (codec == "keep" && same_codec(target.like.storage, stored.storage)) return;
  const bool plain = target.like.storage.kind != StoredForm::Kind::chunked || codec == "keep";
  notes.instead[kCodecAttribute] = plain ? std::string(plain_codec) : codec;
  notes.instead[kCodecVersionAttribute] = std::nullopt;
}

/// Checks for which datasets of the output the file's note holds: that datasets without notes are
/// exact.
class FileNote {
 public:
  /// @param there  the output has the note, from the first input or from before.
  explicit FileNote(bool there) : there_(there) {}

  /// Count a dataset with rows and without notes.
  void count(const ConcatTarget& target, bool exact) {
    if (!there_ || !covered_by_file_note(target.like.storage)) return;
    if (exact) {
      ++n_exact_;
    } else {
      not_of_.push_back(target.like.path);
    }
  }
  /// True if the note is true of a dataset, or wrong for none.
  bool holds() const { return there_ && (n_exact_ > 0 || not_of_.empty()); }
  /// Datasets that need a note of their own, because the file's note is wrong for them.
  std::span<const std::string> not_of() const {
    return holds() ? std::span<const std::string>(not_of_) : std::span<const std::string>();
  }

 private:
  bool there_;
  std::size_t n_exact_ = 0;
  std::vector<std::string> not_of_;
};

}  // namespace

void ConcatNotes::take_first(const ConcatInput& input) {
  first_declares_exact_ = input.declares_exact();
  for (std::size_t d = 0; d < input.datasets().size(); ++d) {
    RowNotes notes = input.row_notes(d);
    if (notes.recorded) first_.emplace(static_cast<std::uint32_t>(d), std::move(notes));
  }
}

void ConcatNotes::take_rows(const ConcatInput& input,
                            std::span<const std::pair<std::uint32_t, std::uint32_t>> datasets) {
  any_declares_exact_ = any_declares_exact_ || input.declares_exact();
  for (const auto& [dataset, in_file] : datasets) {
    const RowNotes notes = notes_of(input, in_file);
    if (notes.recorded) add_rows(rows_, dataset, notes);
    if (!notes.recorded) set(without_notes_, dataset);
    if (!notes.recorded && !declared_exact(input, in_file, notes)) set(inexact_, dataset);
  }
}

void ConcatNotes::merge(Comm& comm) {
  ByteWriter mine;
  mine.add(static_cast<std::uint8_t>(first_declares_exact_));
  mine.add(static_cast<std::uint8_t>(any_declares_exact_));
  mine.add(static_cast<std::uint32_t>(first_.size()));
  for (const auto& [dataset, notes] : first_) pack_notes(mine, dataset, notes);
  for (const auto& [dataset, notes] : rows_) mine.add(dataset);
  std::vector<std::uint32_t> with_notes;
  for (const Bytes& bytes : comm.gather(mine.bytes(), 0)) {
    ByteReader reader(bytes);
    first_declares_exact_ = reader.take<std::uint8_t>() != 0 || first_declares_exact_;
    any_declares_exact_ = reader.take<std::uint8_t>() != 0 || any_declares_exact_;
    for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
      const auto dataset = reader.take<std::uint32_t>();
      first_.insert_or_assign(dataset, take_notes(reader));
      with_notes.push_back(dataset);
    }
    while (!reader.at_end()) with_notes.push_back(reader.take<std::uint32_t>());
  }
  std::ranges::sort(with_notes);
  with_notes.erase(std::unique(with_notes.begin(), with_notes.end()), with_notes.end());
  ByteWriter message;
  message.add(static_cast<std::uint8_t>(any_declares_exact_));
  for (const std::uint32_t dataset : with_notes) message.add(dataset);
  Bytes sent = message.take();
  comm.broadcast(sent, 0);
  ByteReader reader(sent);
  any_declares_exact_ = reader.take<std::uint8_t>() != 0;
  if (!any_declares_exact_ && reader.at_end()) return;
  // If no file has the note, no rows are declared exact, and a list is not needed.
  std::vector<std::uint32_t> inexact;
  for (std::size_t d = 0; d < inexact_.size() && any_declares_exact_; ++d) {
    if (inexact_[d]) inexact.push_back(static_cast<std::uint32_t>(d));
  }
  ByteWriter rows;
  rows.add(static_cast<std::uint32_t>(inexact.size()));
  for (const std::uint32_t dataset : inexact) rows.add(dataset);
  while (!reader.at_end()) {
    const auto dataset = reader.take<std::uint32_t>();
    const bool silent = dataset < without_notes_.size() && without_notes_[dataset];
    const auto own = rows_.find(dataset);
    if (silent) {
      pack_notes(rows, dataset, RowNotes());
    } else if (own != rows_.end()) {
      pack_notes(rows, dataset, own->second);
    }
  }
  const std::vector<Bytes> all = comm.gather(rows.bytes(), 0);
  rows_.clear();
  for (const Bytes& bytes : all) {
    ByteReader of_rank(bytes);
    for (auto n = of_rank.take<std::uint32_t>(); n > 0; --n) {
      set(inexact_, of_rank.take<std::uint32_t>());
    }
    while (!of_rank.at_end()) {
      const auto dataset = of_rank.take<std::uint32_t>();
      add_rows(rows_, dataset, take_notes(of_rank));
    }
  }
}

CopiedObjects ConcatNotes::of_new(std::span<const ConcatTarget> targets,
                                  std::span<const StoredDataset> schema,
                                  const std::string& codec) const {
  CopiedObjects copied;
  FileNote note(first_declares_exact_);
  for (std::size_t d = 0; d < targets.size(); ++d) {
    const ConcatTarget& target = targets[d];
    const auto number = static_cast<std::uint32_t>(d);
    const auto first = first_.find(number);
    if (!target.like.appended) {  // Copied from the first input as stored.
      if (first == first_.end()) note.count(target, true);
      continue;
    }
    const bool empty = target.n_rows == 0;
    const auto rows = empty ? first : rows_.find(number);
    RowNotes held;
    if (first != first_.end() && (empty || rows != rows_.end())) {
      const bool alike = rows->second.as_requested == first->second.as_requested;
      held = alike ? rows->second : of_all_rows(first->second, rows->second);
    }
    if (held.recorded) {
      if (!empty) held.guards = guards_in(held, target.like.storage.chunk_shape, targets);
      CopiedNotes notes = notes_of_rows(first->second, held);
      record_codec(target, schema[d], codec, notes);
      copied.emplace(target.like.path, std::move(notes));
    } else if (!empty) {
      note.count(target, !is_inexact(d));
    }
  }
  if (note.holds()) copied.emplace("/", CopiedNotes());
  for (const std::string& path : note.not_of()) copied.emplace(path, recorded_as_unknown());
  return copied;
}

CopiedObjects ConcatNotes::of_longer(std::span<const ConcatTarget> targets,
                                     std::span<const std::uint64_t> older_rows,
                                     const ConcatInput& older,
                                     std::span<const std::size_t> in_older,
                                     const std::string& codec) const {
  CopiedObjects copied;
  FileNote note(older.declares_exact());
  for (std::size_t d = 0; d < targets.size(); ++d) {
    const ConcatTarget& target = targets[d];
    if (!target.like.appended || target.n_rows == 0) continue;
    if (in_older[d] >= older.datasets().size()) continue;
    const RowNotes before = notes_of(older, in_older[d]);
    const bool exact_before = older_rows[d] == 0 || declared_exact(older, in_older[d], before);
    RowNotes rows = before;
    const bool grows = target.n_rows > older_rows[d];
    if (grows) {
      const auto added = rows_.find(static_cast<std::uint32_t>(d));
      rows = added != rows_.end() ? added->second : RowNotes();
      const bool others = older_rows[d] > 0 || rows.as_requested != before.as_requested;
      if (others) rows = of_all_rows(before, rows);
    }
    if (!before.recorded || !rows.recorded) {
      if (grows && !before.silent) copied.emplace(target.like.path, no_notes());
      // A fixed dataset with notes that are not merged keeps them.
      if (grows || before.silent) {
        note.count(target, exact_before && (!grows || !is_inexact(d)));
      }
      continue;
    }
    // A mask may get rows when the dataset that uses it gets none.
    const Shape chunk = grows ? target.like.storage.chunk_shape : before.chunk_shape;
    rows.guards = guards_in(rows, chunk, targets);
    CopiedNotes notes = notes_of_rows(before, rows);
    if (target.replaces) record_codec(target, older.datasets()[in_older[d]], codec, notes);
    copied.emplace(target.like.path, std::move(notes));
  }
  if (older.declares_exact() && !note.holds()) {
    copied["/"].instead[kFileNoteAttribute] = std::nullopt;
  }
  for (const std::string& path : note.not_of()) {
    copied.insert_or_assign(path, recorded_as_unknown());
  }
  return copied;
}

std::vector<std::string> ConcatNotes::remarks(std::span<const ConcatTarget> targets,
                                              const CopiedObjects& copied) const {
  std::vector<std::string> unrecorded;
  std::vector<std::string> unknown;
  std::vector<std::string> less_guarded;
  for (std::size_t d = 0; d < targets.size(); ++d) {
    const std::string& path = targets[d].like.path;
    const auto notes = copied.find(path);
    const bool there = notes != copied.end();
    if (there && is_recorded_unknown(notes->second)) {
      unknown.push_back(path);
      continue;
    }
    const bool ended = there && notes->second.instead.contains(kBoundModeAttribute);
    const bool lost = !there && rows_.contains(static_cast<std::uint32_t>(d));
    if (ended || lost) unrecorded.push_back(path);
    if (!ended && there && notes->second.instead.contains(kGuardAttribute)) {
      less_guarded.push_back(path);
    }
  }
  std::vector<std::string> lines;
  if (!unrecorded.empty()) {
    lines.push_back(
        "the recorded bounds do not apply to all rows, and the output does not record them: " +
        first_names_text(unrecorded, kMostNamed));
  }
  if (!unknown.empty()) {
    lines.push_back("the loss of some rows is unknown, and the output records it as unknown: " +
                    first_names_text(unknown, kMostNamed));
  }
  if (!less_guarded.empty()) {
    lines.push_back("only guards that apply to all rows are recorded: " +
                    first_names_text(less_guarded, kMostNamed));
  }
  return lines;
}

}  // namespace tailrace
