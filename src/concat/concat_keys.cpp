// Finding events: one hash table per file, from the tuples of /spill to their numbers.

#include "concat/concat_keys.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace tailrace {
namespace {

using Tuple = std::vector<std::int64_t>;

struct TupleHash {
  std::size_t operator()(const Tuple& tuple) const {
    std::uint64_t hash = 0x9e3779b97f4a7c15U;
    for (const std::int64_t value : tuple) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccdU;
      hash ^= hash >> 32U;
    }
    return static_cast<std::size_t>(hash);
  }
};

using EventNumbers = std::unordered_map<Tuple, std::int64_t, TupleHash>;
using Columns = std::vector<std::vector<std::int64_t>>;

Result<Columns> read_columns(ConcatInput& input, const std::string& group,
                             std::span<const std::string> names) {
  Columns columns;
  for (const std::string& name : names) {
    TAILRACE_TAKE(std::vector<std::int64_t> column, input.read_integers(group + "/" + name));
    if (!columns.empty() && column.size() != columns.front().size()) {
      return Status(Code::invalid_argument,
                    "group \"" + group + "\": key columns must have the same length, but \"" +
                        names.front() + "\" has " + std::to_string(columns.front().size()) +
                        " rows and \"" + name + "\" " + std::to_string(column.size()));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

Tuple tuple_at(const Columns& columns, std::size_t row) {
  Tuple tuple;
  tuple.reserve(columns.size());
  for (const std::vector<std::int64_t>& column : columns) tuple.push_back(column[row]);
  return tuple;
}

std::string tuple_text(const Tuple& tuple) {
  std::string text;
  for (const std::int64_t value : tuple)
    text += (text.empty() ? "(" : ", ") + std::to_string(value);
  return text + ")";
}

bool is_key_column(const StoredDataset& dataset) {
  return dataset.appended && dataset.by_value &&
         std::all_of(dataset.shape.begin() + 1, dataset.shape.end(),
                     [](std::uint64_t extent) { return extent == 1; });
}

}  // namespace

void KeyRows::add(std::int64_t value) {
  if (!values_.empty() && values_.back() == value) {
    ++ends_.back();
    return;
  }
  ends_.push_back(n_rows() + 1);
  values_.push_back(value);
}

void KeyRows::expand(std::uint64_t first_row, std::uint64_t n, std::int64_t offset,
                     std::byte* values) const {
  auto run = static_cast<std::size_t>(std::ranges::upper_bound(ends_, first_row) - ends_.begin());
  for (std::uint64_t row = first_row; row < first_row + n; ++row) {
    while (ends_[run] <= row) ++run;
    const std::int64_t value = values_[run] + offset;
    std::memcpy(values + (row - first_row) * sizeof value, &value, sizeof value);
  }
}

Result<std::vector<KeyedGroup>> find_keyed_groups(std::span<const StoredDataset> schema,
                                                  std::span<const std::string> names) {
  std::unordered_map<std::string, std::size_t> by_path;
  for (std::size_t d = 0; d < schema.size(); ++d) by_path.emplace(schema[d].path, d);
  std::vector<KeyedGroup> groups;
  for (const StoredDataset& dataset : schema) {
    // Only the first name identifies a group, so that each group is examined once.
    const std::size_t slash = dataset.path.rfind('/');
    const std::string group = dataset.path.substr(0, slash);
    if (dataset.path.substr(slash + 1) != names.front()) continue;
    KeyedGroup keyed{group, group + "/" + names.back() + ".seq", 0};
    bool complete = true;
    for (const std::string& name : names) {
      const auto found = by_path.find(group + "/" + name);
      complete = complete && found != by_path.end();
      if (!complete) break;
      if (!is_key_column(schema[found->second])) {
        return Status(Code::unsupported,
                      "dataset \"" + found->first +
                          "\": a key column must have one integer per row, found " +
                          schema[found->second].type_text + " of shape " +
                          shape_text(schema[found->second].shape));
      }
      keyed.like = found->second;
    }
    if (!complete) continue;
    if (by_path.count(keyed.key_path) != 0) {
      return Status(Code::already_exists,
                    "dataset \"" + keyed.key_path +
                        "\" already exists in the inputs, so --key cannot create it");
    }
    groups.push_back(std::move(keyed));
  }
  const auto spill = std::ranges::find(groups, kKeyGroup, &KeyedGroup::path);
  if (spill == groups.end()) {
    std::string wanted;
    for (const std::string& name : names) wanted += (wanted.empty() ? "" : ", ") + name;
    return Status(Code::not_found, "group \"" + std::string(kKeyGroup) +
                                       "\" must contain the datasets " + wanted + " of --key");
  }
  std::iter_swap(groups.begin(), spill);
  return groups;
}

Result<FileKeys> number_events(ConcatInput& input, std::span<const KeyedGroup> groups,
                               std::span<const std::string> names) {
  EventNumbers numbers;
  FileKeys keys;
  for (const KeyedGroup& group : groups) {
    const bool spill = &group == &groups.front();
    TAILRACE_TAKE(const Columns columns, read_columns(input, group.path, names));
    KeyRows rows;
    Tuple last;
    std::int64_t number = -1;
    for (std::size_t row = 0; row < columns.front().size(); ++row) {
      Tuple tuple = tuple_at(columns, row);
      if (number < 0 || tuple != last) {
        if (spill) numbers.emplace(tuple, static_cast<std::int64_t>(numbers.size()));
        const auto found = numbers.find(tuple);
        if (found == numbers.end()) {
          return Status(Code::invalid_argument, "dataset \"" + group.path + "/" + names.back() +
                                                    "\": row " + std::to_string(row) +
                                                    " belongs to event " + tuple_text(tuple) +
                                                    ", which " + kKeyGroup + " does not contain");
        }
        number = found->second;
        last = std::move(tuple);
      }
      rows.add(number);
    }
    keys.groups.push_back(std::move(rows));
  }
  keys.n_events = numbers.size();
  return keys;
}

}  // namespace tailrace
