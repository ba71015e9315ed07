#include "concat/concat_notes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/encoding_notes.hpp"
#include "hdf5/dataset_schema.hpp"

namespace tailrace {
namespace {

void pack_notes(ByteWriter& writer, std::uint32_t dataset, const RowNotes& notes) {
  writer.add(dataset);
  writer.add(static_cast<std::uint8_t>(notes.said));
  writer.add_text(notes.as_asked);
  writer.add(notes.absolute_bound);
  writer.add(static_cast<std::uint8_t>(notes.max_error.has_value()));
  writer.add(notes.max_error.value_or(0));
  writer.add_text(guards_text(notes.guards));
}

RowNotes take_notes(ByteReader& reader) {
  RowNotes notes;
  notes.said = reader.take<std::uint8_t>() != 0;
  notes.as_asked = reader.take_text();
  notes.absolute_bound = reader.take<double>();
  const bool measured = reader.take<std::uint8_t>() != 0;
  const auto max_error = reader.take<double>();
  if (measured) notes.max_error = max_error;
  const Result<Guards> guards = parse_guards(reader.take_text());
  if (guards.ok()) notes.guards = *guards;  // Our own text: it parses.
  return notes;
}

void add_rows(std::map<std::uint32_t, RowNotes>& all, std::uint32_t dataset,
              const RowNotes& notes) {
  const auto [there, first] = all.emplace(dataset, notes);
  if (!first) there->second = of_all_rows(there->second, notes);
}

/// A dataset says nothing any more.
CopiedNotes nothing_said() {
  CopiedNotes notes;
  for (const char* name : encoding_note_names) notes.instead[name] = std::nullopt;
  return notes;
}

/// Whether chunks are stored as they were, as far as the header tells.
bool same_codec(const StoredForm& made, const StoredForm& stored) {
  if (made.kind != stored.kind) return false;
  return std::ranges::equal(made.filters, stored.filters, {}, &FilterSpec::filter_id,
                            &FilterSpec::filter_id);
}

}  // namespace

void ConcatNotes::take_first(const ConcatInput& input) {
  first_says_exact_ = input.says_exact();
  for (std::size_t d = 0; d < input.datasets().size(); ++d) {
    RowNotes notes = input.row_notes(d);
    if (notes.said) first_.emplace(static_cast<std::uint32_t>(d), std::move(notes));
  }
}

void ConcatNotes::take_rows(const ConcatInput& input,
                            std::span<const std::pair<std::uint32_t, std::uint32_t>> datasets) {
  all_say_exact_ = all_say_exact_ && input.says_exact();
  for (const auto& [dataset, in_file] : datasets) {
    const RowNotes notes = input.row_notes(in_file);
    if (notes.said) add_rows(rows_, dataset, notes);
    if (notes.said) continue;
    if (unsaid_.size() <= dataset) unsaid_.resize(dataset + 1);
    unsaid_[dataset] = true;
  }
}

void ConcatNotes::settle(Comm& comm) {
  ByteWriter mine;
  mine.add(static_cast<std::uint8_t>(first_says_exact_));
  mine.add(static_cast<std::uint8_t>(all_say_exact_));
  mine.add(static_cast<std::uint32_t>(first_.size()));
  for (const auto& [dataset, notes] : first_) pack_notes(mine, dataset, notes);
  for (const auto& [dataset, notes] : rows_) mine.add(dataset);
  std::vector<std::uint32_t> spoken_of;
  for (const Bytes& bytes : comm.gather(mine.bytes(), 0)) {
    ByteReader reader(bytes);
    first_says_exact_ = reader.take<std::uint8_t>() != 0 || first_says_exact_;
    all_say_exact_ = reader.take<std::uint8_t>() != 0 && all_say_exact_;
    for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
      const auto dataset = reader.take<std::uint32_t>();
      first_.insert_or_assign(dataset, take_notes(reader));
      spoken_of.push_back(dataset);
    }
    while (!reader.at_end()) spoken_of.push_back(reader.take<std::uint32_t>());
  }
  std::ranges::sort(spoken_of);
  spoken_of.erase(std::unique(spoken_of.begin(), spoken_of.end()), spoken_of.end());
  ByteWriter words;
  for (const std::uint32_t dataset : spoken_of) words.add(dataset);
  Bytes told = words.take();
  comm.broadcast(told, 0);
  if (told.empty()) return;
  ByteWriter rows;
  for (ByteReader reader(told); !reader.at_end();) {
    const auto dataset = reader.take<std::uint32_t>();
    const bool silent = dataset < unsaid_.size() && unsaid_[dataset];
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
    for (ByteReader reader(bytes); !reader.at_end();) {
      const auto dataset = reader.take<std::uint32_t>();
      add_rows(rows_, dataset, take_notes(reader));
    }
  }
}

CopiedObjects ConcatNotes::of_new(std::span<const ConcatTarget> targets,
                                  std::span<const StoredDataset> schema,
                                  const std::string& codec) const {
  CopiedObjects copied;
  bool all = first_says_exact_ && all_say_exact_;
  for (const auto& [dataset, rows] : rows_) {
    const auto first = first_.find(dataset);
    const bool same = first != first_.end() && rows.said && first->second.as_asked == rows.as_asked;
    all = all && same;
    if (!same) continue;
    const ConcatTarget& target = targets[dataset];
    RowNotes held = rows;
    const bool same_chunks = target.like.storage.chunk_shape == schema[dataset].storage.chunk_shape;
    held.guards = guards_of_copy(rows.guards, same_chunks, [](const std::string&) { return true; });
    CopiedNotes notes = notes_of_rows(first->second, held);
    if (codec != "keep" || !same_codec(target.like.storage, schema[dataset].storage)) {
      const bool plain = target.like.storage.kind != StoredForm::Kind::chunked || codec == "keep";
      notes.instead[codec_attribute] = plain ? std::string(plain_codec) : codec;
      notes.instead[codec_version_attribute] = std::nullopt;
    }
    copied.emplace(target.like.path, std::move(notes));
  }
  if (all) copied.emplace("/", CopiedNotes());
  return copied;
}

CopiedObjects ConcatNotes::of_longer(std::span<const ConcatTarget> targets,
                                     std::span<const std::uint64_t> older_rows,
                                     const ConcatInput& older,
                                     std::span<const std::size_t> in_older) const {
  CopiedObjects copied;
  bool all = all_say_exact_;
  for (std::size_t d = 0; d < targets.size(); ++d) {
    const ConcatTarget& target = targets[d];
    const bool grows = target.like.appended && target.n_rows > older_rows[d];
    if (!grows || in_older[d] >= older.datasets().size()) continue;
    const RowNotes before = older.row_notes(in_older[d]);
    const auto added = rows_.find(static_cast<std::uint32_t>(d));
    all = all && (before.said || added == rows_.end());
    if (!before.said) continue;
    RowNotes rows = added != rows_.end() ? added->second : RowNotes();
    if (older_rows[d] > 0 || rows.as_asked != before.as_asked) rows = of_all_rows(before, rows);
    const bool holds = rows.said && !target.replaces;
    all = all && holds;
    copied.emplace(target.like.path, holds ? notes_of_rows(before, rows) : nothing_said());
  }
  if (older.says_exact() && !all) copied["/"].instead[file_note_attribute] = std::nullopt;
  return copied;
}

std::string ConcatNotes::remark(std::span<const ConcatTarget> targets,
                                const CopiedObjects& copied) const {
  constexpr std::size_t most_named = 8;
  std::string names;
  std::size_t n = 0;
  for (const auto& [dataset, rows] : rows_) {
    const std::string& path = targets[dataset].like.path;
    const auto notes = copied.find(path);
    const bool said =
        notes != copied.end() && !notes->second.instead.contains(bound_mode_attribute);
    if (said || n++ >= most_named) continue;
    names += (names.empty() ? "" : ", ") + path;
  }
  if (n == 0) return "";
  if (n > most_named) names += " and " + std::to_string(n - most_named) + " more";
  return "what is said of bounds does not hold of all rows, and the output does not say it: " +
         names;
}

}  // namespace tailrace
