// Journal format, little-endian, numbers as u64: "TRJOURN1", file_bytes, n_entries, n_witnesses,
// n_payload_bytes. Per entry: address, length and its bytes. Per witness: address, length and
// lookup3. At the end: two lookup3 sums (u32) of everything before them, with different seeds, so
// that 64 bits must match before a replay.

#include "hdf5/journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "hdf5/file_names.hpp"
#include "hdf5/superblock.hpp"

namespace tailrace {
namespace {

constexpr std::string_view magic = "TRJOURN1";
constexpr std::size_t head_bytes = 40;
constexpr std::size_t kSumBytes = 8;
constexpr std::uint32_t kSecondSeed = 0x7a11ace5;  // Any value other than 0.

void append_u64(std::vector<std::byte>& out, std::uint64_t value, std::size_t n = 8) {
  for (std::size_t i = 0; i < n; ++i) out.push_back(std::byte(value >> (8 * i)));
}

std::uint64_t u64_at(std::span<const std::byte> bytes, std::size_t at, std::size_t n = 8) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i > 0; --i) {
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[at + i - 1]);
  }
  return value;
}

std::vector<std::byte> encode_journal(const Journal& journal) {
  std::vector<std::byte> out;
  for (const char c : magic) out.push_back(std::byte(c));
  std::uint64_t n_payload = 24 * journal.witnesses.size();
  for (const JournalEntry& entry : journal.entries) n_payload += 16 + entry.bytes.size();
  append_u64(out, journal.file_bytes);
  append_u64(out, journal.entries.size());
  append_u64(out, journal.witnesses.size());
  append_u64(out, n_payload);
  for (const JournalEntry& entry : journal.entries) {
    append_u64(out, entry.address);
    append_u64(out, entry.bytes.size());
    out.insert(out.end(), entry.bytes.begin(), entry.bytes.end());
  }
  for (const JournalWitness& witness : journal.witnesses) {
    append_u64(out, witness.address);
    append_u64(out, witness.n_bytes);
    append_u64(out, witness.sum);
  }
  const std::uint32_t first = lookup3(out);
  const std::uint32_t second = lookup3(out, kSecondSeed);
  append_u64(out, first, 4);
  append_u64(out, second, 4);
  return out;
}

Result<Journal> decode_journal(std::span<const std::byte> bytes, const std::string& path) {
  const Status torn(Code::corrupt, "journal \"" + path + "\" is incomplete");
  if (bytes.size() < head_bytes + kSumBytes) return torn;
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return torn;
  const std::size_t end = bytes.size() - kSumBytes;
  if (u64_at(bytes, 32) != end - head_bytes) return torn;
  if (lookup3(bytes.first(end)) != u64_at(bytes, end, 4)) return torn;
  if (lookup3(bytes.first(end), kSecondSeed) != u64_at(bytes, end + 4, 4)) return torn;
  Journal journal;
  journal.file_bytes = u64_at(bytes, 8);
  std::size_t from = head_bytes;
  for (std::uint64_t i = u64_at(bytes, 16); i > 0; --i) {
    if (end - from < 16) return torn;
    const std::uint64_t n_bytes = u64_at(bytes, from + 8);
    if (end - from - 16 < n_bytes) return torn;
    const std::span<const std::byte> held = bytes.subspan(from + 16, n_bytes);
    journal.entries.push_back({u64_at(bytes, from), {held.begin(), held.end()}});
    from += 16 + n_bytes;
  }
  for (std::uint64_t i = u64_at(bytes, 24); i > 0; --i, from += 24) {
    if (end - from < 24) return torn;
    journal.witnesses.push_back(
        {u64_at(bytes, from), u64_at(bytes, from + 8), u64_at(bytes, from + 16)});
  }
  return journal;
}

}  // namespace

std::string journal_path_of(const std::string& path) { return companion_path(path, ".journal"); }

Status write_journal(const std::string& journal_path, const Journal& journal, bool sync) {
  const std::vector<std::byte> bytes = encode_journal(journal);
  const std::string what = "journal \"" + journal_path + "\"";
  // Never follow a link or overwrite another journal, which another job may need for recovery.
  Descriptor at(
      ::open(journal_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!at.open()) return status_from_errno(errno, what);
  Status written = write_fully(at.fd(), bytes.data(), bytes.size(), 0, what);
  if (written.ok() && sync && ::fsync(at.fd()) != 0) written = status_from_errno(errno, what);
  at.close();
  if (written.ok() && sync) written = sync_folder_of(journal_path);
  if (!written.ok()) ::unlink(journal_path.c_str());
  return written;
}

Result<Journal> read_journal(const std::string& journal_path) {
  // Every reader of the file next to it runs this. Whatever has the journal's name, a reader must
  // not block on a pipe or allocate memory for a file that is not a journal.
  const Descriptor at(::open(journal_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!at.open()) return status_from_errno(errno, "journal \"" + journal_path + "\"");
  struct stat info {};
  if (::fstat(at.fd(), &info) != 0) {
    return status_from_errno(errno, "journal \"" + journal_path + "\"");
  }
  std::array<std::byte, head_bytes> head{};
  if (!S_ISREG(info.st_mode) ||
      ::pread(at.fd(), head.data(), head.size(), 0) != ssize_t{head_bytes} ||
      u64_at(head, 32) != std::uint64_t(info.st_size) - head_bytes - kSumBytes) {
    return decode_journal({}, journal_path);
  }
  std::vector<std::byte> bytes(std::size_t(info.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(at.fd(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return status_from_errno(errno, journal_path);
    if (n == 0) break;
    done += std::size_t(n);
  }
  bytes.resize(done);
  return decode_journal(bytes, journal_path);
}

Status check_no_journal(const std::string& path) {
  const std::string journal_path = journal_path_of(path);
  if (::access(journal_path.c_str(), F_OK) != 0) return Status();
  return Status(Code::corrupt, "file \"" + path + "\" has a journal, \"" + journal_path +
                                   "\": an earlier commit was interrupted; \"tailrace recover "
                                   "--apply " +
                                   path + "\" completes or discards it");
}

Status remove_journal(const std::string& journal_path, bool sync) {
  if (::unlink(journal_path.c_str()) == 0) return sync ? sync_folder_of(journal_path) : Status();
  return errno == ENOENT ? Status() : status_from_errno(errno, "journal \"" + journal_path + "\"");
}

}  // namespace tailrace
