// Agreement: how one rank's failure becomes everybody's, and how texts are compared over ranks.

#include "core/comm.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/byte_stream.hpp"

namespace tailrace {

namespace {

/// FNV-1a, 64 bit: only to find that two ranks' texts differ.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

/// Rank 0's text beside this rank's: what differs first. Collective: one broadcast.
Status compare_with_root(Comm& comm, const std::string& what, const std::string& text) {
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

}  // namespace

void Comm::decide(std::string_view what, std::string_view decision) {
  if (n_ranks() == 1) return;
  decided_.append(what).append(": ").append(decision).append("\n");
}

Status Comm::agree(const Status& mine) {
  const std::uint64_t nobody = static_cast<std::uint64_t>(n_ranks());
  const std::string decided = std::exchange(decided_, std::string());
  const std::uint64_t hash = hash_text(decided);
  // Of the hash and of its complement the least: equal where all hashes are.
  std::uint64_t least[3] = {mine.ok() ? nobody : static_cast<std::uint64_t>(rank()), hash, ~hash};
  allreduce(std::span<std::uint64_t>(least), Reduction::min);
  const std::uint64_t first_failed = least[0];
  if (first_failed == nobody) {
    if (least[1] == ~least[2]) return Status();
    return agree(compare_with_root(*this, "what they have decided", decided));
  }

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

Status agree_on_text(Comm& comm, const std::string& what, const std::string& text) {
  const std::uint64_t hash = hash_text(text);
  std::uint64_t extremes[2] = {hash, ~hash};
  comm.allreduce(std::span<std::uint64_t>(extremes), Reduction::min);
  return extremes[0] == ~extremes[1] ? Status() : compare_with_root(comm, what, text);
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

// --- Numbers that go along.

namespace {

template <class T>
T reduced(T a, T b, Reduction reduction) {
  switch (reduction) {
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
    case Reduction::sum: return a + b;
    case Reduction::gcd:
    case Reduction::bit_or: break;
  }
  TAILRACE_CHECK(false);
  return a;
}

}  // namespace

void RankNumbers::pack(ByteWriter& writer) const {
  for (const Number& number : numbers_) {
    std::visit([&](const auto* place) { writer.add(*place); }, number.place);
  }
}

void RankNumbers::merge(ByteReader& others) {
  for (const Number& number : numbers_) {
    std::visit(
        [&](auto* place) {
          using T = std::decay_t<decltype(*place)>;
          *place = reduced(*place, others.take<T>(), number.reduction);
        },
        number.place);
  }
}

void RankNumbers::take(ByteReader& reduced_numbers) {
  for (const Number& number : numbers_) {
    std::visit(
        [&](auto* place) { *place = reduced_numbers.take<std::decay_t<decltype(*place)>>(); },
        number.place);
  }
}

}  // namespace tailrace
