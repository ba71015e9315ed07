// Places, bytes and owners: prefix sums and binary searches.

#include "concat/concat_line.hpp"

#include <algorithm>

#include "trz/base/status.hpp"

namespace tailrace {

ConcatLine::ConcatLine(std::vector<LineDataset> datasets) : datasets_(std::move(datasets)) {
  first_place_.reserve(datasets_.size() + 1);
  bytes_before_.reserve(datasets_.size() + 1);
  std::uint64_t place = 0;
  std::uint64_t n_bytes = 0;
  for (const LineDataset& dataset : datasets_) {
    first_place_.push_back(place);
    bytes_before_.push_back(n_bytes);
    const std::uint64_t n_chunks = dataset.grid.n_chunks() - dataset.first_chunk;
    place += n_chunks;
    n_bytes += n_chunks * dataset.chunk_bytes();
  }
  first_place_.push_back(place);
  bytes_before_.push_back(n_bytes);
}

std::size_t ConcatLine::dataset_at(std::uint64_t place) const {
  // Datasets without places share the first place of the next one: return the last of them.
  const auto next = std::upper_bound(first_place_.begin(), first_place_.end(), place);
  return static_cast<std::size_t>(next - first_place_.begin()) - 1;
}

std::uint64_t ConcatLine::bytes_before(std::uint64_t place) const {
  if (place >= n_places()) return bytes_before_.back();
  const std::size_t d = dataset_at(place);
  return bytes_before_[d] + (place - first_place_[d]) * datasets_[d].chunk_bytes();
}

ConcatLine::Chunk ConcatLine::chunk_at(std::uint64_t place) const {
  TAILRACE_CHECK(place < n_places());
  const std::size_t d = dataset_at(place);
  return {d, datasets_[d].first_chunk + (place - first_place_[d])};
}

bool ConcatLine::is_border(std::uint64_t place) const {
  return std::binary_search(first_place_.begin(), first_place_.end(), place);
}

std::uint64_t ConcatLine::next_border(std::uint64_t first, std::uint64_t end) const {
  const auto next = std::upper_bound(first_place_.begin(), first_place_.end(), first);
  return next == first_place_.end() ? end : std::min(*next, end);
}

std::uint64_t ConcatLine::end_within(std::uint64_t first, std::uint64_t n_bytes) const {
  const std::uint64_t limit = bytes_before(first) + n_bytes;
  std::uint64_t end = n_places();
  if (limit < bytes_before_.back()) {
    const auto next = std::upper_bound(bytes_before_.begin(), bytes_before_.end(), limit);
    const auto d = static_cast<std::size_t>(next - bytes_before_.begin()) - 1;
    end = first_place_[d] + (limit - bytes_before_[d]) / datasets_[d].chunk_bytes();
  }
  return std::min(std::max(end, first + 1), n_places());
}

ConcatRound ConcatRound::deal(const ConcatLine& line, std::uint64_t first, std::uint64_t end,
                              int n_ranks) {
  ConcatRound round{first, end, {first}};
  const std::uint64_t begin_bytes = line.bytes_before(first);
  const std::uint64_t all_bytes = line.bytes_before(end) - begin_bytes;
  const auto n = static_cast<std::uint64_t>(n_ranks);
  for (std::uint64_t r = 1; r < n; ++r) {
    // all_bytes * r / n without overflow
    const std::uint64_t share = all_bytes / n * r + all_bytes % n * r / n;
    const std::uint64_t last = round.borders.back();
    const std::uint64_t done = line.bytes_before(last) - begin_bytes;
    const std::uint64_t border =
        share <= done || last >= end ? last : line.end_within(last, share - done);
    round.borders.push_back(std::min(border, end));
  }
  round.borders.push_back(end);
  return round;
}

int ConcatRound::owner(std::uint64_t place) const {
  const auto next = std::upper_bound(borders.begin(), borders.end(), place);
  return static_cast<int>(next - borders.begin()) - 1;
}

}  // namespace tailrace
