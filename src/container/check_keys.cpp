// One pass over /spill's rows of an input, then one over each other group's.

#include "container/check_keys.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "container/check_rows.hpp"

namespace tailrace {
namespace {

using Event = std::vector<std::int64_t>;

/// Rows read at once.
constexpr std::uint64_t rows_at_once = 1U << 16;

std::string group_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string event_text(const Event& event) {
  std::string text;
  for (const std::int64_t value : event) {
    text += (text.empty() ? "(" : ", ") + std::to_string(value);
  }
  return text + ")";
}

/// Numbers of the events of one input, as /spill has them.
struct EventNumbers {
  std::map<Event, std::int64_t> of_event;  ///< Empty without names.
  std::int64_t least = 0;
  std::int64_t end = 0;  ///< One past the greatest; least == end: no events.
};

/// Calls `visit(row, number, event)` for each row until it returns false.
using Visit = std::function<bool(std::uint64_t row, std::int64_t number, const Event& event)>;

Status read_integers(hid_t file, const std::string& path, std::uint64_t first_row,
                     std::uint64_t n_rows, std::vector<std::int64_t>& values) {
  const Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const hssize_t n_all = H5Sget_simple_extent_npoints(space.get());
  hsize_t extents[H5S_MAX_RANK] = {0};
  H5Sget_simple_extent_dims(space.get(), extents, nullptr);
  const std::string who = "dataset \"" + path + "\" of the output";
  if (!dataset.valid() || n_all < 0 || hsize_t(n_all) != extents[0]) {
    return Status(Code::invalid_argument, who + " is no column of one integer a row");
  }
  if (first_row + n_rows > extents[0]) {
    return Status(Code::corrupt, who + " has " + std::to_string(extents[0]) +
                                     " rows, expected at least " +
                                     std::to_string(first_row + n_rows));
  }
  values.resize(n_rows);
  if (!read_checked_rows(dataset.get(), H5T_NATIVE_INT64, first_row, n_rows, values.data())) {
    return hdf5_failure(Code::corrupt, who);
  }
  return Status();
}

Status visit_rows(hid_t output, const KeyedRows& keys, std::span<const std::string> names,
                  const Visit& visit) {
  const std::string group = group_of(keys.key_path);
  std::vector<std::int64_t> numbers;
  std::vector<std::vector<std::int64_t>> columns(names.size());
  Event event(names.size());
  for (std::uint64_t done = 0; done < keys.n_rows;) {
    const std::uint64_t n = std::min(rows_at_once, keys.n_rows - done);
    TAILRACE_TRY(read_integers(output, keys.key_path, keys.first_row + done, n, numbers));
    for (std::size_t c = 0; c < names.size(); ++c) {
      TAILRACE_TRY(
          read_integers(output, group + "/" + names[c], keys.first_row + done, n, columns[c]));
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < names.size(); ++c) event[c] = columns[c][i];
      if (!visit(done + i, numbers[i], event)) return Status();
    }
    done += n;
  }
  return Status();
}

/// What begins each finding.
std::string row_text(const std::string& input, const KeyedRows& keys, std::uint64_t row) {
  return input + ": key \"" + keys.key_path + "\" row " + std::to_string(row) + " (row " +
         std::to_string(keys.first_row + row) + " of the output) ";
}

/// /spill itself: new events get the next number.
Status check_spill(hid_t output, const std::string& input, const KeyedRows& keys,
                   std::span<const std::string> names, EventNumbers& known,
                   ConcatFindings& findings) {
  return visit_rows(
      output, keys, names, [&](std::uint64_t row, std::int64_t number, const Event& event) {
        if (row == 0) {
          known.least = known.end = number;
          if (keys.first_row == 0 && number != 0) {
            findings.add(row_text(input, keys, row) + "is " + std::to_string(number) +
                         ", the first event has number 0");
            return false;
          }
        }
        const auto seen = known.of_event.find(event);
        // Without names, rows of one event are taken to lie together.
        const bool is_new =
            names.empty() ? row == 0 || number != known.end - 1 : seen == known.of_event.end();
        const std::int64_t expected = is_new ? known.end : names.empty() ? number : seen->second;
        if (number != expected) {
          findings.add(row_text(input, keys, row) + "is " + std::to_string(number) + ", expected " +
                       std::to_string(expected) +
                       (names.empty() ? "" : " for event " + event_text(event)));
          return false;
        }
        if (is_new) {
          ++known.end;
          if (!names.empty()) known.of_event.emplace(event, number);
        }
        return true;
      });
}

Status check_group(hid_t output, const std::string& input, const KeyedRows& keys,
                   std::span<const std::string> names, const EventNumbers& known,
                   ConcatFindings& findings) {
  return visit_rows(
      output, keys, names, [&](std::uint64_t row, std::int64_t number, const Event& event) {
        if (names.empty()) {
          if (number >= known.least && number < known.end) return true;
          findings.add(row_text(input, keys, row) + "is " + std::to_string(number) +
                       ", /spill numbers this input's events from " + std::to_string(known.least) +
                       " to " + std::to_string(known.end - 1));
          return false;
        }
        const auto seen = known.of_event.find(event);
        if (seen != known.of_event.end() && seen->second == number) return true;
        findings.add(row_text(input, keys, row) + "is " + std::to_string(number) + " for event " +
                     event_text(event) + ", which /spill " +
                     (seen == known.of_event.end() ? std::string("does not have")
                                                   : "numbers " + std::to_string(seen->second)));
        return false;
      });
}

}  // namespace

void compare_keys(hid_t output, const std::string& input, std::span<const KeyedRows> keys,
                  std::span<const std::string> names, ConcatFindings& findings) {
  const auto spill = std::find_if(keys.begin(), keys.end(), [](const KeyedRows& one) {
    return group_of(one.key_path) == "/spill";
  });
  if (spill == keys.end()) return;  // A finding of the whole file: see compare_key_rows().
  const auto add_unreadable = [&](const Status& status) {
    if (!status.ok()) findings.add(input + ": keys cannot be checked: " + status.message());
  };
  EventNumbers known;
  const std::uint64_t n_before = findings.n_all;
  add_unreadable(check_spill(output, input, *spill, names, known, findings));
  if (findings.n_all != n_before) return;  // Its numbers are no measure for others.
  for (const KeyedRows& one : keys) {
    if (&one == &*spill) continue;
    add_unreadable(check_group(output, input, one, names, known, findings));
  }
}

}  // namespace tailrace
