// Agreement: distributes one rank's failure to all ranks, and compares texts over ranks.

#include "core/comm.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/byte_stream.hpp"

namespace tailrace {

namespace {

/// FNV-1a, 64 bit: only to detect that two ranks' texts differ.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

/// Form of broadcast_from_root() for any rank.
Result<Bytes> broadcast_from(Comm& comm, int sender,
                             const std::function<Status(ByteWriter& message)>& write) {
  Bytes sent;
  if (comm.rank() == sender) {
    ByteWriter message;
    const Status status = local_part([&] { return write(message); });
    ByteWriter all;
    all.add_status(status);
    if (status.ok()) all.add_bytes(message.bytes());
    sent = all.take();
  }
  comm.broadcast(sent, sender);
  ByteReader reader(sent);
  TAILRACE_TRY(reader.take_status());
  const std::span<const std::byte> rest = reader.rest();
  return Bytes(rest.begin(), rest.end());
}

/// Return the Status of `sender` on every rank. Collective: one broadcast.
Status status_of_rank(Comm& comm, int sender, const Status& mine) {
  return broadcast_from(comm, sender, [&](ByteWriter&) { return mine; }).status();
}

/// A line of an agreement's text is "SUBJECT: ITEM, ITEM, ..."; without ": " it is one item.
struct AgreedLine {
  std::string subject;
  std::vector<std::string> items;
};

AgreedLine agreed_line(const std::string& line) {
  AgreedLine parts;
  const std::size_t colon = line.find(": ");
  if (colon != std::string::npos) parts.subject = line.substr(0, colon);
  std::size_t at = colon == std::string::npos ? 0 : colon + 2;
  while (at < line.size()) {
    const std::size_t comma = std::min(line.find(", ", at), line.size());
    parts.items.push_back(line.substr(at, comma - at));
    at = comma + 2;
  }
  return parts;
}

/// List the items of one line that the other lacks; long lists are cut.
std::string items_of(const AgreedLine& mine, const AgreedLine& other) {
  constexpr std::size_t most = 200;
  std::string text;
  for (const std::string& item : mine.items) {
    if (std::find(other.items.begin(), other.items.end(), item) != other.items.end()) continue;
    text.append(text.empty() ? "" : ", ").append(item);
  }
  if (text.empty()) return "none of these";
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

/// Compare rank 0's text with this rank's, and name the first line that differs and its differing
/// items. Collective: one broadcast.
Status compare_with_root(Comm& comm, const std::string& what, const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  Bytes root_bytes(first, first + text.size());
  comm.broadcast(root_bytes, 0);
  const std::string root(reinterpret_cast<const char*>(root_bytes.data()), root_bytes.size());
  if (root == text) return Status();
  const auto differs = std::mismatch(root.begin(), root.end(), text.begin(), text.end());
  const auto line_at = [](const std::string& lines, std::size_t at) {
    const std::size_t start = at == 0 ? 0 : lines.rfind('\n', at - 1) + 1;
    return agreed_line(lines.substr(start, lines.find('\n', start) - start));
  };
  const auto at = static_cast<std::size_t>(differs.first - root.begin());
  const AgreedLine roots = line_at(root, at);
  const AgreedLine mine = line_at(text, at);
  if (roots.subject == mine.subject) {
    return Status(Code::disagreement, "ranks disagree on " +
                                          (mine.subject.empty() ? what : mine.subject) +
                                          ": rank 0 has " + items_of(roots, mine) +
                                          ", this rank has " + items_of(mine, roots));
  }
  // One of the ranks has another line at this place, or none.
  const auto subject = [](const AgreedLine& line) {
    if (!line.subject.empty()) return line.subject;
    return line.items.empty() ? "nothing further" : line.items.front();
  };
  return Status(Code::disagreement, "ranks disagree on " + what + ": rank 0 has " + subject(roots) +
                                        ", this rank has " + subject(mine));
}

}  // namespace

void Comm::decide(std::string_view what, std::string_view decision) {
  if (n_ranks() == 1) return;
  decided_.append(what).append(": ").append(decision).append("\n");
}

namespace {

Status agree_by(Comm& comm, TextAgreement& agreement, const RankNumbers& along) {
  RankNumbers numbers = along;
  numbers.add_all(agreement.numbers());
  numbers.reduce(comm);
  return agreement.conclude();
}

}  // namespace

Status Comm::agree(const Status& mine, const RankNumbers& along) {
  // Move instead of copying: a rank short of memory could not copy, and the others would wait for
  // it.
  TextAgreement agreement(*this, "their decisions", std::exchange(decided_, std::string()), mine);
  return agree_by(*this, agreement, along);
}

Status agree_on_text(Comm& comm, const std::string& what, const std::string& text,
                     const Status& mine, const RankNumbers& along) {
  TextAgreement agreement(comm, what, text, mine);
  return agree_by(comm, agreement, along);
}

TextAgreement::TextAgreement(Comm& comm, std::string what, std::string text, Status mine)
    : comm_(comm),
      what_(std::move(what)),
      text_(std::move(text)),
      mine_(std::move(mine)),
      first_failed_(static_cast<std::uint64_t>(mine_.ok() ? comm.n_ranks() : comm.rank())),
      hash_(hash_text(text_)),
      complement_(~hash_) {}

RankNumbers TextAgreement::numbers() {
  RankNumbers numbers;
  numbers.add(Reduction::min, first_failed_, hash_, complement_);
  return numbers;
}

Status TextAgreement::conclude() {
  if (first_failed_ == static_cast<std::uint64_t>(comm_.n_ranks())) {
    if (hash_ == ~complement_) return Status();
    return comm_.agree(compare_with_root(comm_, what_, text_));
  }
  return status_of_rank(comm_, static_cast<int>(first_failed_), comm_.named(mine_));
}

Status Comm::named(const Status& mine) const {
  if (mine.ok() || n_ranks() == 1) return mine;
  return mine.within("rank " + std::to_string(rank()) + place());
}

Result<Bytes> broadcast_from_root(Comm& comm,
                                  const std::function<Status(ByteWriter& message)>& write) {
  return broadcast_from(comm, 0, write);
}

Status agree_with_root(Comm& comm, const Status& mine) { return status_of_rank(comm, 0, mine); }

// --- Numbers that travel along with other messages.

namespace {

std::uint64_t reduced(std::uint64_t a, std::uint64_t b, Reduction reduction) {
  switch (reduction) {
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
    case Reduction::sum: return a + b;
    case Reduction::gcd: return std::gcd(a, b);
    case Reduction::bit_or: return a | b;
  }
  TAILRACE_CHECK(false);
  return a;
}

double reduced(double a, double b, Reduction reduction) {
  TAILRACE_CHECK(reduction != Reduction::gcd && reduction != Reduction::bit_or);
  if (reduction == Reduction::sum) return a + b;
  return reduction == Reduction::min ? std::min(a, b) : std::max(a, b);
}

}  // namespace

void MixedNumber::merge(const MixedNumber& other) {
  if (!fraction) {
    bits = reduced(bits, other.bits, reduction);
  } else {
    bits = std::bit_cast<std::uint64_t>(
        reduced(std::bit_cast<double>(bits), std::bit_cast<double>(other.bits), reduction));
  }
}

MixedNumber RankNumbers::Number::mixed() const {
  if (const auto* whole = std::get_if<std::uint64_t*>(&place)) return {reduction, false, **whole};
  return {reduction, true, std::bit_cast<std::uint64_t>(*std::get<double*>(place))};
}

void RankNumbers::Number::set(const MixedNumber& number) const {
  if (const auto* whole = std::get_if<std::uint64_t*>(&place)) {
    **whole = number.bits;
  } else {
    *std::get<double*>(place) = std::bit_cast<double>(number.bits);
  }
}

void RankNumbers::reduce(Comm& comm) const {
  if (comm.n_ranks() == 1) return;
  std::vector<MixedNumber> mixed;
  for (const Number& number : numbers_) mixed.push_back(number.mixed());
  comm.allreduce(std::span(mixed));
  for (std::size_t i = 0; i < mixed.size(); ++i) numbers_[i].set(mixed[i]);
}

void RankNumbers::pack(ByteWriter& writer) const {
  for (const Number& number : numbers_) writer.add(number.mixed().bits);
}

void RankNumbers::merge(ByteReader& others) const {
  for (const Number& number : numbers_) {
    MixedNumber mine = number.mixed();
    mine.merge({mine.reduction, mine.fraction, others.take<std::uint64_t>()});
    number.set(mine);
  }
}

void RankNumbers::take(ByteReader& reduced_numbers) const {
  for (const Number& number : numbers_) {
    number.set({number.reduction, false, reduced_numbers.take<std::uint64_t>()});
  }
}

}  // namespace tailrace
