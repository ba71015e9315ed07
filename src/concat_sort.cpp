// Sorting the list of inputs: every rank looks into its share of the files, rank 0 sorts.

#include "concat_sort.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "concat_inputs.hpp"
#include "container/concat_input.hpp"
#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

/// What a file is sorted by.
struct SortKey {
  Status problem;
  std::vector<std::int64_t> values;  ///< One for each path, if there is no problem.
};

Bytes keys_of_share(const Comm& comm, std::span<const std::string> inputs,
                    std::span<const std::string> key_paths) {
  ByteWriter writer;
  const std::size_t end = share_begin(inputs.size(), comm.rank() + 1, comm.n_ranks());
  for (std::size_t i = share_begin(inputs.size(), comm.rank(), comm.n_ranks()); i < end; ++i) {
    const Result<std::vector<std::int64_t>> values = first_integers(inputs[i], key_paths);
    writer.add(static_cast<std::int32_t>(values.status().code()));
    if (!values.ok()) {
      writer.add_text(values.status().message());
      continue;
    }
    for (const std::int64_t value : *values) writer.add(value);
  }
  return writer.take();
}

/// What all ranks have found, in the order of the files: shares are runs of them.
std::vector<SortKey> unpack_keys(std::span<const Bytes> shares, std::size_t n_paths) {
  std::vector<SortKey> keys;
  for (const Bytes& share : shares) {
    for (ByteReader reader(share); !reader.at_end();) {
      SortKey key;
      const auto code = static_cast<Code>(reader.take<std::int32_t>());
      if (code != Code::ok) {
        key.problem = Status(code, reader.take_text());
      } else {
        for (std::size_t p = 0; p < n_paths; ++p) key.values.push_back(reader.take<std::int64_t>());
      }
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

/// All problems in one text, a line each.
Status all_problems(std::span<const SortKey> keys) {
  Code code = Code::ok;
  std::string text;
  std::size_t n_bad = 0;
  for (const SortKey& key : keys) {
    if (key.problem.ok()) continue;
    if (code == Code::ok) code = key.problem.code();
    text += (n_bad++ == 0 ? "" : "\n  ") + key.problem.message();
  }
  if (n_bad == 0) return Status();
  if (n_bad == 1) return Status(code, "cannot sort: " + text);
  return Status(code, "cannot sort, because of " + std::to_string(n_bad) + " files:\n  " + text);
}

/// The places of the files in ascending order.
std::vector<std::uint64_t> sorted_places(std::span<const SortKey> keys) {
  std::vector<std::uint64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    const bool a_bad = !keys[a].problem.ok();
    const bool b_bad = !keys[b].problem.ok();
    if (a_bad || b_bad) return !a_bad && b_bad;
    return keys[a].values < keys[b].values;
  });
  return order;
}

}  // namespace

Result<std::vector<std::string>> sort_inputs(Comm& comm, std::vector<std::string> inputs,
                                             std::span<const std::string> key_paths,
                                             bool bad_last) {
  const std::vector<Bytes> shares = comm.gather(keys_of_share(comm, inputs, key_paths), 0);
  ByteWriter verdict;
  if (comm.is_root()) {
    const std::vector<SortKey> keys = unpack_keys(shares, key_paths.size());
    const Status problems = bad_last ? Status() : all_problems(keys);
    verdict.add(static_cast<std::int32_t>(problems.code()));
    verdict.add_text(problems.message());
    for (const std::uint64_t place : sorted_places(keys)) verdict.add(place);
  }
  Bytes packed = verdict.take();
  comm.broadcast(packed, 0);
  ByteReader reader(packed);
  const auto code = static_cast<Code>(reader.take<std::int32_t>());
  std::string message = reader.take_text();
  if (code != Code::ok) return Status(code, std::move(message));
  std::vector<std::string> sorted;
  sorted.reserve(inputs.size());
  while (!reader.at_end()) {
    sorted.push_back(std::move(inputs[static_cast<std::size_t>(reader.take<std::uint64_t>())]));
  }
  return sorted;
}

}  // namespace tailrace
