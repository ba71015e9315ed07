// Agreement: how one rank's failure becomes everybody's.

#include "core/comm.hpp"

#include <algorithm>
#include <cstring>

#include "core/byte_stream.hpp"

namespace tailrace {

Status Comm::agree(const Status& mine) {
  const std::uint64_t nobody = static_cast<std::uint64_t>(n_ranks());
  std::uint64_t first_failed = mine.ok() ? nobody : static_cast<std::uint64_t>(rank());
  allreduce(std::span<std::uint64_t>(&first_failed, 1), Reduction::min);
  if (first_failed == nobody) return Status();

  const int speaker = static_cast<int>(first_failed);
  Bytes packed;
  if (rank() == speaker) {
    const auto code = static_cast<std::int32_t>(mine.code());
    packed.resize(sizeof code + mine.message().size());
    std::memcpy(packed.data(), &code, sizeof code);
    std::memcpy(packed.data() + sizeof code, mine.message().data(), mine.message().size());
  }
  broadcast(packed, speaker);
  std::int32_t code = 0;
  std::memcpy(&code, packed.data(), sizeof code);
  std::string message(reinterpret_cast<const char*>(packed.data()) + sizeof code,
                      packed.size() - sizeof code);
  if (n_ranks() > 1) message = "rank " + std::to_string(speaker) + ": " + message;
  return Status(static_cast<Code>(code), std::move(message));
}

// --- Comparing texts over ranks by their hashes.

namespace {

/// FNV-1a, 64 bit: only to find that two ranks' texts differ.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

}  // namespace

Status agree_on_text(Comm& comm, const std::string& what, const std::string& text) {
  const std::uint64_t hash = hash_text(text);
  std::uint64_t extremes[2] = {hash, ~hash};
  comm.allreduce(std::span<std::uint64_t>(extremes), Reduction::min);
  if (extremes[0] == ~extremes[1]) return Status();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  Bytes root_bytes(first, first + text.size());
  comm.broadcast(root_bytes, 0);
  const std::string root(reinterpret_cast<const char*>(root_bytes.data()), root_bytes.size());
  if (root == text) return Status();
  const auto differs = std::mismatch(root.begin(), root.end(), text.begin(), text.end());
  const auto line_at = [](const std::string& lines, std::size_t at) {
    const std::size_t start = at == 0 ? 0 : lines.rfind('\n', at - 1) + 1;
    return lines.substr(start, lines.find('\n', start) - start);
  };
  const auto at = static_cast<std::size_t>(differs.first - root.begin());
  return Status(Code::disagreement, "ranks disagree on " + what + ": rank 0 has {" +
                                        line_at(root, at) + "}, this rank has {" +
                                        line_at(text, at) + "}");
}

Status as_rank_0_says(Comm& comm, const Status& mine) {
  ByteWriter words;
  words.add(mine.code());
  words.add_text(mine.message());
  Bytes said = words.take();
  comm.broadcast(said, 0);
  ByteReader reader(said);
  const auto code = reader.take<Code>();
  return code == Code::ok ? Status() : Status(code, reader.take_text());
}

}  // namespace tailrace
