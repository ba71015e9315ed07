// Recovery: each kind of debris made by hand, inspected with and without repair.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "concat/check/check_objects.hpp"
#include "container_support.hpp"
#include "crash_points.hpp"
#include "describe/concat_input.hpp"
#include "describe/stored_file.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/noting_driver.hpp"
#include "hdf5/recover.hpp"
#include "hdf5/superblock.hpp"
#include "hdf5/writer_lock.hpp"
#include "read/read.hpp"
#include "verbs/verify_files.hpp"

namespace tailrace::test {
namespace {

namespace fs = std::filesystem;

const ChunkGrid grid{{64}, {8}};

/// A small committed file with datasets /a and /b.
void make_file(const std::string& path) {
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = Hdf5File::create(storage, tail.allocate(), {});
  ASSERT_TRUE(file.ok());
  for (const unsigned k : {0U, 1U}) {
    DatasetDefinition definition;
    definition.path = k == 0 ? "/a" : "/b";
    definition.shape = grid.shape;
    definition.chunk_shape = grid.chunk_shape;
    ASSERT_DONE((*file)->create_dataset(definition));
    ASSERT_DONE((*file)->commit());
    ASSERT_DONE(write_test_chunks(**file, storage, tail, definition.path, grid, false, k));
  }
  ASSERT_DONE((*file)->close());
}

bool mentions(const std::vector<std::string>& sentences, const std::string& text) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const auto& s) { return s.find(text) != std::string::npos; });
}

TEST(Recover, WholeFileNeedsNothing) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  const auto report = inspect_and_recover(path, true);
  ASSERT_TRUE(report.ok()) << text_of(report.status());
  EXPECT_EQ(report->state, FileState::whole);
  EXPECT_TRUE(report->actions.empty());
  EXPECT_FALSE(report->applied);
}

TEST(Recover, NothingThereAndForeignFilesAreErrors) {
  const TestFolder folder;
  EXPECT_EQ(inspect_and_recover(folder / "no.h5", true).status().code(), Code::not_found);
  std::ofstream(folder / "foreign") << std::string(3000, 'x');
  EXPECT_EQ(inspect_and_recover(folder / "foreign", true).status().code(), Code::corrupt);
  std::ofstream(folder / "empty") << "";
  EXPECT_EQ(inspect_and_recover(folder / "empty", true).status().code(), Code::corrupt);
  const std::string temporary = folder / "other.h5.partial";
  std::ofstream(temporary) << "of another program";
  for (const bool apply : {false, true}) {
    const Status refused = inspect_and_recover(folder / "other.h5", apply).status();
    EXPECT_EQ(refused.code(), Code::not_found);
    EXPECT_NE(refused.message().find(temporary + "\", the temporary name"), std::string::npos)
        << refused.message();
    EXPECT_NE(refused.message().find("not written by Tailrace"), std::string::npos);
    EXPECT_TRUE(fs::exists(temporary));
  }
}

TEST(Recover, BytesBehindTheEndAreCutOff) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  const auto n_bytes = fs::file_size(path);
  fs::resize_file(path, n_bytes + 1000);
  const auto looked = inspect_and_recover(path, false);
  EXPECT_EQ(looked->state, FileState::whole);
  EXPECT_TRUE(mentions(looked->findings, "1000 bytes"));
  EXPECT_EQ(fs::file_size(path), n_bytes + 1000);
  EXPECT_TRUE(inspect_and_recover(path, true)->applied);
  EXPECT_EQ(fs::file_size(path), n_bytes);
  EXPECT_TRUE(holds_test_values(path, "/b", 1, 64));
}

/// Changes the end that the superblock (version 3) states, with a correct checksum.
void state_end(const std::string& path, std::uint64_t end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::vector<std::byte> bytes(48);
  const auto at = [&](std::size_t i) { return reinterpret_cast<char*>(bytes.data()) + i; };
  file.read(at(0), 48);
  std::memcpy(at(28), &end, 8);
  const std::uint32_t sum = lookup3(std::span(bytes).first(44));
  std::memcpy(at(44), &sum, 4);
  file.seekp(0);
  file.write(at(0), 48);
}

TEST(Recover, WhatAHeaderRefersToBehindTheStatedEndIsNotCutOff) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  const std::uint64_t n_bytes = fs::file_size(path);
  const auto chunks = read_chunk_index(path, "/b");
  ASSERT_TRUE(chunks.ok());
  std::uint64_t last = 0;
  for (const StoredChunk& chunk : *chunks) last = std::max(last, chunk.extent.address);
  for (const std::uint64_t end : {last, n_bytes / 4}) {
    state_end(path, end);
    for (const bool apply : {false, true}) {
      const auto report = inspect_and_recover(path, apply);
      ASSERT_TRUE(report.ok()) << text_of(report.status());
      EXPECT_EQ(report->state, FileState::damaged) << end;
      EXPECT_FALSE(report->applied);
      EXPECT_EQ(fs::file_size(path), n_bytes);
    }
  }
  state_end(path, n_bytes);
  EXPECT_TRUE(holds_test_values(path, "/b", 1, 64));
}

TEST(Recover, TruncatedFileNamesWhatIsLostAndIsLeftAlone) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  // A dataset whose bytes end the file and are truncated; its metadata lie before them.
  std::uint64_t cut = 0;
  {
    RecordingStorage storage(path, true);
    ScatteringTail tail;
    std::uint64_t end = 0;
    auto file = Hdf5File::open(storage, tail.allocate(), {}, end);
    ASSERT_TRUE(file.ok());
    tail.reset(end);
    DatasetDefinition definition;
    definition.path = "/last";
    definition.shape = {64};
    definition.contiguous_address = end + 10000;
    ASSERT_DONE((*file)->create_dataset(definition));
    ASSERT_DONE((*file)->close());
    cut = definition.contiguous_address + 100;
  }
  fs::resize_file(path, cut);
  const pid_t child = ::fork();  // HDF5 does not always close a damaged file.
  if (child == 0) {
    const auto report = inspect_and_recover(path, true);
    const bool good = report.ok() && report->state == FileState::damaged &&
                      mentions(report->findings, "its end is missing") &&
                      mentions(report->findings, "\"/last\" has lost 1 of its 1 chunk") &&
                      !mentions(report->findings, "\"/a\"");
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(path), cut);
}

/// Position of the last object header of a file.
std::size_t last_header(const std::vector<std::byte>& bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).rfind("OHDR");
}

TEST(Recover, MetadataBehindTheEndAreSaidToBe) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  const std::vector<std::byte> bytes = content_of(path);
  const std::size_t header = last_header(bytes);
  ASSERT_NE(header, std::string_view::npos);
  fs::resize_file(path, header);
  const std::string at = std::to_string(header);
  const pid_t child = ::fork();  // HDF5 does not always close a damaged file.
  if (child == 0) {
    const auto report = inspect_and_recover(path, true);
    const bool said =
        report.ok() && report->state == FileState::damaged &&
        mentions(report->findings, "object \"/") &&
        mentions(report->findings,
                 "bytes at address " + at + " lie beyond the end of the file, which has " + at +
                     " bytes; its superblock states " + std::to_string(bytes.size())) &&
        !mentions(report->findings, "driver");
    ::_exit(said ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A file on a disk on which one byte is unreadable.
class BadSector final : public NotedFile {
 public:
  BadSector(std::vector<std::byte> bytes, std::uint64_t bad) : bytes_(std::move(bytes)), bad_(bad) {
    end_of_file = bytes_there = bytes_.size();
  }
  Status fill(std::uint64_t address, std::span<std::byte> into) override {
    if (address <= bad_ && bad_ < address + into.size()) {
      return Status(Code::io_error, "\"out.h5\": Input/output error");
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      into[i] = address + i < bytes_.size() ? bytes_[address + i] : std::byte{0};
    }
    return Status();
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t bad_;
};

TEST(Recover, AFailingReadIsNamedByItsPlace) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  const std::vector<std::byte> bytes = content_of(path);
  const std::size_t header = last_header(bytes);
  const Hdf5Scope scope;
  BadSector file(bytes, header);
  const auto opened = open_noted(file, path);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  int n_failed = 0;
  for (const char* name : {"/a", "/b"}) {
    const Hdf5Id object(H5Oopen(opened->get(), name, H5P_DEFAULT));
    if (object.valid()) continue;
    ++n_failed;
    const std::string text = hdf5_failure(Code::corrupt, name).message();
    EXPECT_NE(text.find("bytes at address " + std::to_string(header) +
                        ": \"out.h5\": Input/output error"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(n_failed, 1);
}

// Objects that a program has linked with its own link type are unreachable.
TEST(LiveDatasets, AnObjectThatCannotBeReadIsNotTakenForOneThatIsGone) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  std::uint64_t address = 0;
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Hdf5Id object(H5Oopen(file.get(), "/b", H5P_DEFAULT));
    ObjectFacts facts;
    ASSERT_TRUE(get_object_facts(object.get(), facts));
    address = address_of_key(facts.key);
    ASSERT_GE(H5Oincr_refcount(object.get()), 0);
    ASSERT_GE(H5Ldelete(file.get(), "/b", H5P_DEFAULT), 0);
  }
  const std::vector<std::byte> bytes = content_of(path);
  const CountedObjects counted = {{address, 1}};
  const Hdf5Scope scope;
  BadSector file(bytes, address);
  const auto opened = open_noted(file, path);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  EXPECT_EQ(live_dataset_addresses(opened->get(), counted).status().code(), Code::internal);
  BadSector elsewhere(bytes, bytes.size());
  const auto again = open_noted(elsewhere, path);
  ASSERT_TRUE(again.ok()) << text_of(again.status());
  EXPECT_TRUE(live_dataset_addresses(again->get(), counted)->contains(address));
  EXPECT_EQ(live_dataset_addresses(again->get(), {{bytes.size() / 2 + 3, 1}})->size(), 1U);
}

TEST(Recover, AnObjectThatCannotBeReadIsNamedWithItsPlace) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  std::vector<std::byte> bytes = content_of(path);
  const std::size_t header = last_header(bytes);
  bytes[header + 20] ^= std::byte{1};
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  const pid_t child = ::fork();  // HDF5 does not always close a damaged file.
  if (child == 0) {
    const auto report = inspect_and_recover(path, true);
    const bool said = report.ok() && report->state == FileState::damaged &&
                      mentions(report->findings, "Not all objects can be read: ") &&
                      mentions(report->findings, "object \"/") &&
                      mentions(report->findings, "cannot be opened (header at address " +
                                                     std::to_string(header) + "): HDF5 says: ");
    ::_exit(said ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A power loss can tear a block of an index. Such a dataset must not count as one without chunks.
TEST(Recover, ADamagedChunkIndexIsNamed) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  std::vector<std::byte> bytes = content_of(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t block = text.rfind("FADB");  // The last fixed array's data, of /b.
  ASSERT_NE(block, std::string_view::npos);
  bytes[block + 20] ^= std::byte{1};
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  const pid_t child = ::fork();  // HDF5 does not always close a damaged file.
  if (child == 0) {
    const auto report = inspect_and_recover(path, true);
    const bool damaged = report.ok() && report->state == FileState::damaged &&
                         mentions(report->findings, "\"/b\" cannot be listed");
    // Nor does a reader treat the dataset as never written and return fill values.
    const auto file = StoredFile::open(path);
    const auto datasets = file.ok() ? (*file)->list(CatalogDetail::fields) : file.status();
    const bool read = !datasets.ok() || (*file)->chunks(datasets->datasets.back()).ok();
    ::_exit(damaged && !read ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Recover, OpenForWriteMarkIsCleared) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const pid_t child = ::fork();
  if (child == 0) {  // A writer of superblock version 3 that dies.
    const Hdf5Scope scope;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Gcreate2(file, "/group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(inspect_and_recover(path, false)->state, FileState::repairable);
  const auto report = inspect_and_recover(path, true);
  ASSERT_TRUE(report.ok()) << text_of(report.status());
  EXPECT_TRUE(report->applied);
  EXPECT_EQ(inspect_and_recover(path, false)->state, FileState::whole);
}

TEST(Recover, TornJournalIsRemovedAndForeignJournalToo) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  std::ofstream(path + ".journal") << "TRJOURN1 and not more";
  EXPECT_TRUE(mentions(inspect_and_recover(path, false)->findings, "incomplete"));
  EXPECT_TRUE(fs::exists(path + ".journal"));
  EXPECT_TRUE(inspect_and_recover(path, true)->applied);
  EXPECT_FALSE(fs::exists(path + ".journal"));

  Journal journal;
  journal.entries.push_back({0, std::vector<std::byte>(48)});
  journal.witnesses.push_back({100, 8, 12345});
  ASSERT_DONE(write_journal(path + ".journal", journal));
  const auto report = inspect_and_recover(path, true);
  EXPECT_TRUE(mentions(report->findings, "earlier file"));
  EXPECT_FALSE(fs::exists(path + ".journal"));
  EXPECT_TRUE(holds_test_values(path, "/a", 0, 64));
}

/// The journal's owner is unknown: an older version wrote it, or it belongs to a file that has been
/// deleted.
TEST(Recover, AJournalWithoutWitnessesIsNotReplayed) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  Journal journal;
  journal.entries.push_back({0, std::vector<std::byte>(48)});
  journal.file_bytes = 280;
  ASSERT_DONE(write_journal(path + ".journal", journal));
  const auto report = inspect_and_recover(path, true);
  EXPECT_TRUE(mentions(report->findings, "earlier file"));
  EXPECT_TRUE(holds_test_values(path, "/a", 0, 64));
}

TEST(Recover, APipeIsRefusedAtOnce) {
  const TestFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(inspect_and_recover(path, true).status().code(), Code::invalid_argument);
}

TEST(Recover, OpenRefusesAFileWithAJournal) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  std::ofstream(path + ".journal") << "x";
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  const auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  EXPECT_EQ(opened.status().code(), Code::corrupt);
  EXPECT_NE(opened.status().message().find(".journal"), std::string::npos);
}

/// Leaves a complete journal of a commit that is about to overwrite the file's first bytes with
/// zeros.
Status leave_hot_journal(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Journal journal;
  journal.file_bytes = bytes.size();
  journal.entries.push_back({0, std::vector<std::byte>(8)});
  const std::string_view witness = std::string_view(bytes).substr(48, 64);
  journal.witnesses.push_back({48, 64, lookup3(std::as_bytes(std::span(witness)))});
  return write_journal(journal_path_of(path), journal);
}

/// The name and the status of every method by which our programs read a file.
std::vector<std::pair<std::string, Status>> read_in_every_way(const std::string& path) {
  std::vector<std::pair<std::string, Status>> said;
  said.emplace_back("reader", Reader::open(make_self_comm(), path, {}).status());
  said.emplace_back("input of repack, info, export", open_input_file(path, {}, {}).status());
  said.emplace_back("input of concat", ConcatInput::open(path, 1U << 20).status());
  const auto comm = make_self_comm();
  verbs::VerifyRequest verify;
  verify.original = verify.compressed = path;
  said.emplace_back("verify", verbs::verify_files({*comm, {}, {}, {}}, verify).status());
  const Hdf5Scope scope;
  said.emplace_back("verify --concat", open_checked_file(path).status());
  return said;
}

/// A file that a dead job left in the middle of a commit cannot be read before recovery.
TEST(Recover, ReadersRefuseAFileThatWasLeftInTheMidstOfACommit) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  fs::create_symlink(path, folder / "link.h5");
  ASSERT_DONE(leave_hot_journal(path));
  for (const std::string& name : {path, folder / "link.h5"}) {
    for (const auto& [who, status] : read_in_every_way(name)) {
      EXPECT_EQ(status.code(), Code::corrupt) << who << ": " << text_of(status);
      EXPECT_NE(status.message().find("tailrace recover --apply " + path), std::string::npos)
          << who << ": " << text_of(status);
    }
  }
}

/// A journal of another file, or one without a complete beginning, does not prevent reading.
TEST(Recover, ReadersPassByAForeignAndATornJournal) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  Journal journal;
  journal.entries.push_back({0, std::vector<std::byte>(48)});
  journal.witnesses.push_back({100, 8, 12345});
  ASSERT_DONE(write_journal(path + ".journal", journal));
  for (const auto& [who, status] : read_in_every_way(path)) {
    EXPECT_TRUE(status.ok()) << who << ": " << text_of(status);
  }
  std::ofstream(path + ".journal") << "TRJOURN1 and not more";
  for (const auto& [who, status] : read_in_every_way(path)) {
    EXPECT_TRUE(status.ok()) << who << ": " << text_of(status);
  }
}

/// Nor does any other object with the name of a journal: readers do not wait for a pipe, or read a
/// terabyte.
TEST(Recover, ReadersPassByWhatIsNoJournal) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  ASSERT_EQ(::mkfifo((path + ".journal").c_str(), 0600), 0);
  EXPECT_TRUE(Reader::open(make_self_comm(), path, {}).ok());
  fs::remove(path + ".journal");
  std::ofstream(path + ".journal") << "TRJOURN1";
  fs::resize_file(path + ".journal", std::uintmax_t{1} << 40);
  EXPECT_TRUE(Reader::open(make_self_comm(), path, {}).ok());
}

/// A commit of a living job ends soon, so concurrent readers wait for it.
TEST(Recover, ReadersWaitForALivingWritersCommit) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  fs::copy_file(path, path + ".partial");
  WriterLock lock;
  ASSERT_DONE(lock.take(path));
  for (const std::string& name : {path, path + ".partial"}) {
    ASSERT_DONE(leave_hot_journal(name));
    std::thread commit([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_TRUE(remove_journal(journal_path_of(name)).ok());
    });
    const auto reader = Reader::open(make_self_comm(), name, {});
    EXPECT_TRUE(reader.ok()) << text_of(reader.status());
    commit.join();
  }
}

/// The wait is limited, because the writer may hang.
TEST(Recover, ReadersDoNotWaitForALivingWritersCommitForEver) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path);
  WriterLock lock;
  ASSERT_DONE(lock.take(path));
  ASSERT_DONE(leave_hot_journal(path));
  const Status waited = check_not_half_committed(path, std::chrono::milliseconds(30));
  EXPECT_EQ(waited.code(), Code::io_error);
  const std::string before = "\"" + path + "\" is locked by a commit of another job (process " +
                             std::to_string(::getpid()) + " on ";
  EXPECT_EQ(waited.message().substr(0, before.size()), before);
  EXPECT_TRUE(waited.message().ends_with("which has not ended; try again later"));
  lock.release();
  EXPECT_EQ(check_not_half_committed(path).code(), Code::corrupt);
}

TEST(Recover, JournalSurvivesAByteFlipInNoPlace) {
  const TestFolder folder;
  const std::string path = folder / "a.journal";
  Journal journal;
  journal.file_bytes = 77;
  journal.entries.push_back({5, std::vector<std::byte>(9, std::byte{3})});
  journal.witnesses.push_back({1, 2, 3});
  ASSERT_DONE(write_journal(path, journal));
  const auto read = read_journal(path);
  ASSERT_TRUE(read.ok()) << text_of(read.status());
  EXPECT_EQ(read->file_bytes, 77U);
  EXPECT_EQ(read->entries.at(0).bytes.size(), 9U);
  EXPECT_EQ(read->witnesses.at(0).sum, 3U);
  const auto n_bytes = fs::file_size(path);
  for (std::uintmax_t at = 0; at < n_bytes; ++at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(std::streamoff(at));
    const char byte = char(file.get());
    file.seekp(std::streamoff(at));
    file.put(char(byte ^ 0x10));
    file.close();
    EXPECT_EQ(read_journal(path).status().code(), Code::corrupt) << "byte " << at;
    std::fstream back(path, std::ios::in | std::ios::out | std::ios::binary);
    back.seekp(std::streamoff(at));
    back.put(byte);
  }
  // The journal of an unfinished file differs from that of the file that it may replace.
  EXPECT_EQ(journal_path_of("/x/out.h5.partial"), "/x/out.h5.partial.journal");
  EXPECT_EQ(journal_path_of("/x/out.h5"), "/x/out.h5.journal");
  // A name of 255 bytes: the longest that file systems take.
  const std::string above = "/" + std::string(300, 'x') + "/";
  const std::string longest = above + std::string(255, 'n');
  EXPECT_EQ(journal_path_of(longest).size(), longest.size());
  EXPECT_EQ(journal_path_of(longest).rfind(above, 0), 0U);
  EXPECT_NE(journal_path_of(longest), journal_path_of(above + std::string(254, 'n') + "m"));
  EXPECT_EQ(journal_path_of(above + std::string(247, 'n')),
            above + std::string(247, 'n') + ".journal");
}

TEST(Recover, LeftoverOfAJobThatNeverCommitted) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  std::ofstream(path + ".partial") << std::string(500, '\0');
  const auto looked = inspect_and_recover(path, false);
  ASSERT_TRUE(looked.ok()) << text_of(looked.status());
  EXPECT_EQ(looked->state, FileState::absent);
  EXPECT_TRUE(fs::exists(path + ".partial"));
  EXPECT_TRUE(inspect_and_recover(path, true)->applied);
  EXPECT_FALSE(fs::exists(path + ".partial"));
}

TEST(Recover, AnUnfinishedConcatenationIsKept) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path + ".partial");
  {
    RecordingStorage storage(path + ".partial", true);
    ScatteringTail tail;
    std::uint64_t end = 0;
    auto file = Hdf5File::open(storage, tail.allocate(), {}, end);
    ASSERT_TRUE(file.ok()) << text_of(file.status());
    tail.reset(end);
    ASSERT_DONE((*file)->set_attribute("/", kConcatProgressAttribute, {std::vector<double>{1}}));
    ASSERT_DONE((*file)->close());
  }
  const auto report = inspect_and_recover(path, true);
  ASSERT_TRUE(report.ok()) << text_of(report.status());
  EXPECT_TRUE(mentions(report->findings, "--resume to continue"));
  EXPECT_TRUE(fs::exists(path + ".partial"));
  EXPECT_FALSE(fs::exists(path));
}

TEST(Recover, CommittedPartialIsRenamedButNeverOverAFile) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_file(path + ".partial");
  EXPECT_EQ(inspect_and_recover(path, false)->state, FileState::repairable);
  EXPECT_TRUE(inspect_and_recover(path, true)->applied);
  EXPECT_TRUE(holds_test_values(path, "/a", 0, 64));
  make_file(path + ".partial");
  const auto both = inspect_and_recover(path, true);
  EXPECT_EQ(both->state, FileState::whole);
  EXPECT_TRUE(mentions(both->findings, "Both files are whole"));
  EXPECT_TRUE(fs::exists(path + ".partial"));
}

TEST(Superblock, Lookup3MatchesItsPublishedValues) {
  // Bob Jenkins' driver5 results for "Four score and seven years ago".
  const std::string text = "Four score and seven years ago";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(lookup3(bytes, 0), 0x17770551U);
  EXPECT_EQ(lookup3(bytes, 1), 0xcd628161U);
  EXPECT_EQ(lookup3({}, 0), 0xdeadbeefU);
}

}  // namespace
}  // namespace tailrace::test
