// Fuzzer of small structures: any bytes as a journal, a lock file, a superblock, a book of trz, or
// the client data of our filters.
//
// The input's first byte chooses the structure. A journal's checksums are corrected first.

#include <sys/file.h>

#include <cstring>
#include <vector>

#include "fuzz/fuzz_files.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/superblock.hpp"
#include "hdf5/writer_lock.hpp"
#include "trz/client_data.hpp"
#include "xor/xor_chunk.hpp"

using namespace tailrace;

namespace {

using Given = std::span<const std::uint8_t>;

void journal(Given given) {
  static fuzz::FileInMemory file("in.journal");
  static fuzz::Count count("journals read");
  std::vector<std::uint8_t> bytes(given.begin(), given.end());
  constexpr std::size_t head = 40;
  if (bytes.size() >= head + 8) {
    const std::uint64_t n_payload = bytes.size() - head - 8;
    std::memcpy(bytes.data(), "TRJOURN1", 8);
    std::memcpy(bytes.data() + 32, &n_payload, sizeof n_payload);
    const auto summed = std::as_bytes(std::span(bytes).first(bytes.size() - 8));
    const std::uint32_t sums[2] = {lookup3(summed), lookup3(summed, 0x7a11ace5)};
    std::memcpy(bytes.data() + bytes.size() - 8, sums, sizeof sums);
  }
  file.write(bytes);
  const Result<Journal> read = read_journal(file.path());
  if (!read.ok()) return;
  count.one_more();
  std::uint64_t n_held = 0;
  for (const JournalEntry& entry : read->entries) n_held += 16 + entry.bytes.size();
  FUZZ_CHECK(n_held + 24 * read->witnesses.size() <= bytes.size());
}

/// Another descriptor holds the lock all the time, so that the text is parsed.
void lock_file(Given given) {
  static fuzz::FileInMemory file("in.lock");
  static const bool held = ::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0;
  FUZZ_CHECK(held);
  file.write(given);
  static const std::string path = file.path().substr(0, file.path().size() - 5);
  FUZZ_CHECK(!writer_of(path).empty());
}

void superblock(Given given) {
  std::vector<std::uint8_t> bytes(given.begin(), given.end());
  if (bytes.size() >= 8) std::memcpy(bytes.data(), "\x89HDF\r\n\x1a\n", 8);
  const auto seen = std::as_writable_bytes(std::span(bytes));
  const Result<Superblock> found = parse_superblock(seen, 0);
  const bool cleared = clear_open_for_write(seen);
  FUZZ_CHECK(!cleared || (found.ok() && found->version >= 2 && found->checksum_good));
  if (!cleared) return;
  const Result<Superblock> after = parse_superblock(seen, 0);
  FUZZ_CHECK(after.ok() && !after->open_for_write && after->checksum_good);
}

void book(Given given) {
  const Result<trz::Book> parsed = trz::Book::parse(given);
  if (!parsed.ok()) return;
  static fuzz::Count count("books parsed");
  count.one_more();
  const std::vector<std::uint8_t> bytes = parsed->serialize();
  FUZZ_CHECK(trz::Book::parse(bytes).ok());
}

void client_words(Given given) {
  std::vector<std::uint32_t> words(given.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), given.data(), words.size() * 4);
  const Result<trz::ClientData> of_trz = trz::read_client_words(words);
  if (of_trz.ok() && of_trz->chunk) {
    FUZZ_CHECK(trz::read_client_words(trz::client_words(of_trz->request, *of_trz->chunk)).ok());
  }
  const Result<neighbour_xor::ClientData> of_xor = neighbour_xor::read_client_words(words);
  if (of_xor.ok() && of_xor->chunk) {
    FUZZ_CHECK(neighbour_xor::read_client_words(neighbour_xor::client_words(*of_xor->chunk)).ok());
  }
}

constexpr void (*kParsers[])(Given) = {journal, lock_file, superblock, book, client_words};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 1) return 0;
  kParsers[data[0] % std::size(kParsers)]({data + 1, n_bytes - 1});
  return 0;
}
