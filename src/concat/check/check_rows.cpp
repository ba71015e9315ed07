// Comparison of the output's rows, and its partition keys, with the rows of its inputs.

#include "concat/check/check_rows.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "concat/check/check_objects.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_plain_file.hpp"

namespace tailrace {

namespace {

/// HDF5's error, or the missing filter.
std::string why_unreadable(hid_t dataset) { return plain_read_failure(dataset, "HDF5").message(); }

/// Assumed bytes behind an element that points elsewhere, for the size of a window.
constexpr std::uint64_t kPointedBytes = 256;

std::vector<hsize_t> extents_of(hid_t dataset) {
  const Hdf5Id space(H5Dget_space(dataset));
  std::vector<hsize_t> extents(
      static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0)));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  return extents;
}

std::uint64_t chunk_rows_of(hid_t dataset) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return 1;
  hsize_t chunk[H5S_MAX_RANK] = {1};
  H5Pget_chunk(list.get(), H5S_MAX_RANK, chunk);
  return std::max<hsize_t>(chunk[0], 1);
}

/// Rows in memory. Frees what HDF5 has allocated for strings and sequences.
class Window {
 public:
  Window(hid_t type, std::vector<hsize_t> row_shape, std::uint64_t row_bytes)
      : type_(type),
        plain_(is_plain_type(type)),
        extents_(std::move(row_shape)),
        row_bytes_(row_bytes) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { clear(); }

  bool load(hid_t dataset, std::uint64_t first_row, std::uint64_t n_rows) {
    clear();
    // Zeros: HDF5 leaves unreadable elements unchanged, and clear() must find no stray pointers.
    bytes_.assign(n_rows * row_bytes_, std::byte{0});
    n_rows_ = n_rows;
    const std::vector<hsize_t> there = extents_of(dataset);
    const std::uint64_t n_there =
        there.empty()
            ? 0
            : std::min<std::uint64_t>(n_rows, there[0] - std::min(there[0], hsize_t{first_row}));
    if (n_there < n_rows) fill_from(dataset, n_there * row_bytes_);
    return n_there == 0 || read_checked_rows(dataset, type_, first_row, n_there, bytes_.data());
  }
  const std::byte* row(std::uint64_t index) const { return bytes_.data() + index * row_bytes_; }
  std::uint64_t n_rows() const { return n_rows_; }

 private:
  /// Write fill values from this byte on.
  void fill_from(hid_t dataset, std::uint64_t begin) {
    const Hdf5Id list(H5Dget_create_plist(dataset));
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5Pfill_value_defined(list.get(), &defined);
    if (!plain_ || defined != H5D_FILL_VALUE_USER_DEFINED) return;
    std::vector<std::byte> value(H5Tget_size(type_));
    H5Pget_fill_value(list.get(), type_, value.data());
    for (std::uint64_t at = begin; at < bytes_.size(); at += value.size()) {
      std::memcpy(&bytes_[at], value.data(), value.size());
    }
  }

  void clear() {
    if (!plain_ && n_rows_ > 0) {
      extents_[0] = n_rows_;
      const Hdf5Id space(H5Screate_simple(int(extents_.size()), extents_.data(), nullptr));
      reclaim_variable_length(type_, space.get(), bytes_.data());
    }
    n_rows_ = 0;
  }

  hid_t type_;
  bool plain_;
  std::vector<hsize_t> extents_;
  std::uint64_t row_bytes_;
  std::uint64_t n_rows_ = 0;
  std::vector<std::byte> bytes_;
};

/// Comparison of one dataset of the output with those of the inputs.
class DatasetComparison {
 public:
  DatasetComparison(CheckedFile output, const std::string& path, ConcatFindings& findings)
      : output_(output),
        path_(path),
        findings_(findings),
        dataset_(H5Dopen2(output, path.c_str(), H5P_DEFAULT)),
        type_(H5Dget_type(dataset_.get())),
        extents_(extents_of(dataset_.get())),
        element_bytes_(H5Tget_size(type_.get())),
        plain_(is_plain_type(type_.get())) {
    row_elements_ = 1;
    for (std::size_t d = 1; d < extents_.size(); ++d) row_elements_ *= extents_[d];
  }

  Status run(std::span<const CheckedRows> sources, std::uint64_t first_row,
             std::uint64_t window_bytes, const ConcatCheck::Progress& progress) {
    const std::uint64_t cost_bytes =
        row_elements_ * (plain_ ? element_bytes_ : element_bytes_ + kPointedBytes);
    if (cost_bytes == 0) return Status();
    const std::uint64_t rows_max = window_bytes / cost_bytes;
    if (rows_max == 0) {
      return Status(Code::out_of_memory, "dataset \"" + path_ + "\": one row needs " +
                                             std::to_string(cost_bytes) +
                                             " bytes, more than a quarter of --memory (" +
                                             std::to_string(window_bytes) + "); raise --memory");
    }
    std::uint64_t end = first_row;
    for (const CheckedRows& source : sources) {
      starts_.push_back(end);
      end += source.n_rows;
    }
    reported_.assign(sources.size(), false);
    const std::uint64_t chunk_rows = chunk_rows_of(dataset_.get());
    Window window(type_.get(), extents_, row_elements_ * element_bytes_);
    for (std::uint64_t at = first_row; at < end;) {
      std::uint64_t next = std::min(at + rows_max, end);
      const std::uint64_t border = next - next % chunk_rows;
      if (next < end && border > at) next = border;
      const std::uint64_t there = std::clamp<std::uint64_t>(extents_[0], at, next);
      const bool readable = window.load(dataset_.get(), at, there - at);
      const std::string why = readable ? "" : why_unreadable(dataset_.get());
      compare_window(sources, window, at, next, readable ? nullptr : &why);
      if (progress) progress((next - at) * row_elements_ * element_bytes_);
      at = next;
    }
    return Status();
  }

 private:
  void report(std::size_t s, std::span<const CheckedRows> sources, const std::string& text) {
    reported_[s] = true;
    findings_.add(sources[s].file_name + ": dataset \"" + path_ + "\" " + text);
  }

  /// Compare all sources with rows in [at, next) of the output. `why`: set if the output is
  /// unreadable.
  void compare_window(std::span<const CheckedRows> sources, const Window& window, std::uint64_t at,
                      std::uint64_t next, const std::string* why) {
    // The first source that ends after `at`.
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), at);
    for (auto s = static_cast<std::size_t>(after - starts_.begin()) - 1;
         s < sources.size() && starts_[s] < next; ++s) {
      const std::uint64_t from = std::max(at, starts_[s]);
      const std::uint64_t to = std::min(next, starts_[s] + sources[s].n_rows);
      if (from >= to || reported_[s]) continue;
      if (why != nullptr) {
        report(s, sources,
               "cannot be compared: rows " + std::to_string(from) + " to " +
                   std::to_string(to - 1) + " of the output cannot be read: " + *why);
        continue;
      }
      const std::uint64_t there = std::min(to, at + window.n_rows());
      if (there > from) compare_piece(s, sources, window, at, from, there);
      if (there < to && !reported_[s]) {
        const std::uint64_t first = std::max(from, there);
        report(s, sources,
               "row " + std::to_string(first - starts_[s]) +
                   " and the following rows are missing: the output ends after " +
                   std::to_string(extents_[0]) + " rows");
      }
    }
  }

  /// Compare rows [from, to) of the output with their source.
  void compare_piece(std::size_t s, std::span<const CheckedRows> sources, const Window& window,
                     std::uint64_t at, std::uint64_t from, std::uint64_t to) {
    const Hdf5Id dataset(H5Dopen2(sources[s].file, path_.c_str(), H5P_DEFAULT));
    Window piece(type_.get(), extents_, row_elements_ * element_bytes_);
    if (!piece.load(dataset.get(), from - starts_[s], to - from)) {
      report(s, sources,
             "rows " + std::to_string(from - starts_[s]) + " to " +
                 std::to_string(to - 1 - starts_[s]) +
                 " cannot be read: " + why_unreadable(dataset.get()));
      return;
    }
    const std::byte* ours = window.row(from - at);
    const std::byte* theirs = piece.row(0);
    const std::uint64_t n_elements = (to - from) * row_elements_;
    if (plain_ && std::memcmp(ours, theirs, n_elements * element_bytes_) == 0) return;
    for (std::uint64_t i = 0; i < n_elements; ++i) {
      const CheckedValue in_output{ours + i * element_bytes_, output_};
      const CheckedValue in_input{theirs + i * element_bytes_, sources[s].file};
      if (same_value(type_.get(), in_input, in_output)) continue;
      const std::uint64_t row = from + i / row_elements_;
      std::string text = "row " + std::to_string(row - starts_[s]) + " (row " +
                         std::to_string(row) + " of the output)";
      if (row_elements_ > 1) text += ", element " + std::to_string(i % row_elements_) + " of it,";
      report(s, sources,
             text + " is " + checked_value_text(type_.get(), in_input) + ", but " +
                 checked_value_text(type_.get(), in_output) + " in the output");
      return;
    }
  }

  CheckedFile output_;
  const std::string& path_;
  ConcatFindings& findings_;
  Hdf5Id dataset_;
  Hdf5Id type_;
  std::vector<hsize_t> extents_;
  std::uint64_t element_bytes_;
  std::uint64_t row_elements_ = 1;
  bool plain_;
  std::vector<std::uint64_t> starts_;  ///< First row of each source in the output.
  std::vector<bool> reported_;
};

}  // namespace

bool read_checked_rows(hid_t dataset, hid_t memory_type, std::uint64_t first_row,
                       std::uint64_t n_rows, void* values) {
  std::vector<hsize_t> count = extents_of(dataset);
  if (count.empty()) return false;
  std::vector<hsize_t> start(count.size(), 0);
  start[0] = first_row;
  count[0] = n_rows;
  const Hdf5Id file_space(H5Dget_space(dataset));
  const Hdf5Id memory_space(H5Screate_simple(int(count.size()), count.data(), nullptr));
  return H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                             nullptr) >= 0 &&
         H5Dread(dataset, memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, values) >=
             0;
}

Status RowComparison::compare(const std::string& path, std::span<const CheckedRows> sources,
                              std::uint64_t first_row, const ConcatCheck::Progress& progress,
                              ConcatFindings& findings) {
  DatasetComparison comparison(output_, path, findings);
  return comparison.run(sources, first_row, window_bytes_, progress);
}

namespace {

bool read_checked_box(hid_t dataset, hid_t type, const Box& box, void* values) {
  const std::vector<hsize_t> start(box.start.begin(), box.start.end());
  const std::vector<hsize_t> count(box.count.begin(), box.count.end());
  const Hdf5Id space(H5Dget_space(dataset));
  const Hdf5Id memory(H5Screate_simple(int(count.size()), count.data(), nullptr));
  return H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                             nullptr) >= 0 &&
         H5Dread(dataset, type, memory.get(), space.get(), H5P_DEFAULT, values) >= 0;
}

/// Fill `values` with the fill value of a dataset; zeros if it has none.
void put_fill_values(hid_t dataset, hid_t type, std::vector<std::byte>& values) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  H5Pfill_value_defined(list.get(), &defined);
  std::vector<std::byte> value(H5Tget_size(type));
  if (defined == H5D_FILL_VALUE_USER_DEFINED) H5Pget_fill_value(list.get(), type, value.data());
  for (std::size_t at = 0; at < values.size(); at += value.size()) {
    std::memcpy(&values[at], value.data(), value.size());
  }
}

}  // namespace

Status compare_box(hid_t output, hid_t input, const std::string& file_name, const std::string& path,
                   const Box& box, std::uint64_t window_bytes, ConcatFindings& findings) {
  const std::string who = file_name + ": dataset \"" + path + "\"";
  const Hdf5Id type(H5Dget_type(output));
  const std::size_t element_bytes = H5Tget_size(type.get());
  const std::uint64_t row_elements = n_elements({box.count.begin() + 1, box.count.end()});
  if (box.empty()) return Status();
  const std::uint64_t n_window = window_bytes / (row_elements * element_bytes);
  if (n_window == 0) {
    return Status(Code::out_of_memory, who + ": one row needs " +
                                           std::to_string(row_elements * element_bytes) +
                                           " bytes, more than a quarter of --memory (" +
                                           std::to_string(window_bytes) + "); raise --memory");
  }
  for (std::uint64_t row = 0; row < box.count[0]; row += n_window) {
    Box there = box;
    there.start[0] += row;
    there.count[0] = std::min(n_window, box.count[0] - row);
    Box here{Shape(box.rank(), 0), there.count};
    here.start[0] = row;
    std::vector<std::byte> arrived(there.n_elements() * element_bytes);
    std::vector<std::byte> wanted(arrived.size());
    if (input < 0) put_fill_values(output, type.get(), wanted);
    const bool read = input < 0 || read_checked_box(input, type.get(), here, wanted.data());
    if (!read || !read_checked_box(output, type.get(), there, arrived.data())) {
      findings.add(who + " cannot be read: " + why_unreadable(read ? output : input));
      return Status();
    }
    const auto [a, b] = std::mismatch(wanted.begin(), wanted.end(), arrived.begin());
    if (a == wanted.end()) continue;
    const auto element = static_cast<std::size_t>(a - wanted.begin()) / element_bytes;
    const std::byte* const is = &wanted[element * element_bytes];
    findings.add(who + " row " + std::to_string(row + element / row_elements) + ", element " +
                 std::to_string(element % row_elements) + " of it, is " +
                 checked_value_text(type.get(), {is, {}}) + ", but " +
                 checked_value_text(type.get(), {&arrived[element * element_bytes], {}}) +
                 " in the output");
    return Status();
  }
  return Status();
}

// --- One pass over /spill's rows of an input, then one over each other group's.

namespace {

using Event = std::vector<std::int64_t>;

/// Number of rows per read.
constexpr std::uint64_t kRowsAtOnce = 1U << 16;

std::string group_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string event_text(const Event& event) {
  std::string text;
  for (const std::int64_t value : event) {
    text += (text.empty() ? "(" : ", ") + std::to_string(value);
  }
  return text + ")";
}

/// Event numbers of one input in /spill.
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
    return Status(Code::invalid_argument, who + " is not a column of one integer per row");
  }
  if (first_row + n_rows > extents[0]) {
    return Status(Code::corrupt, who + " has " + std::to_string(extents[0]) +
                                     " rows, expected at least " +
                                     std::to_string(first_row + n_rows));
  }
  values.resize(n_rows);
  if (!read_checked_rows(dataset.get(), H5T_NATIVE_INT64, first_row, n_rows, values.data())) {
    return hdf5_failure(Code::corrupt, who + " cannot be read");
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
    const std::uint64_t n = std::min(kRowsAtOnce, keys.n_rows - done);
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

/// Start of each finding's text.
std::string row_text(const std::string& input, const KeyedRows& keys, std::uint64_t row) {
  return input + ": key \"" + keys.key_path + "\" row " + std::to_string(row) + " (row " +
         std::to_string(keys.first_row + row) + " of the output) ";
}

/// Check /spill: new events get the next number.
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
        // Without names, the rows of one event are assumed to be consecutive.
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
                     (seen == known.of_event.end() ? std::string("does not contain")
                                                   : "numbers " + std::to_string(seen->second)));
        return false;
      });
}

}  // namespace

void compare_keys(hid_t output, const std::string& input, std::span<const KeyedRows> keys,
                  std::span<const std::string> names, ConcatFindings& findings) {
  const auto spill = std::ranges::find_if(
      keys, [](const KeyedRows& one) { return group_of(one.key_path) == "/spill"; });
  if (spill == keys.end()) return;  // compare_key_rows() reports this for the complete file.
  const auto add_unreadable = [&](const Status& status) {
    if (!status.ok()) findings.add(input + ": keys cannot be checked: " + status.message());
  };
  EventNumbers known;
  const std::uint64_t n_before = findings.n_all;
  add_unreadable(check_spill(output, input, *spill, names, known, findings));
  if (findings.n_all != n_before)
    return;  // Its numbers are wrong, so other groups cannot be
             // checked against them.
  for (const KeyedRows& one : keys) {
    if (&one == &*spill) continue;
    add_unreadable(check_group(output, input, one, names, known, findings));
  }
}

}  // namespace tailrace
