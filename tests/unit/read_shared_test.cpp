// Collective reads: a chunk that several ranks request is decoded once; failing ranks still take
// part.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "read_support.hpp"
#include "trz/client_data.hpp"

namespace tailrace::test {
namespace {

struct Wish {
  std::string path;
  Slab slab;
};

/// All ranks read their requests together; then all values are compared with stock HDF5's.
/// @returns the number of chunks decoded by all ranks together.
std::uint64_t read_together(const std::string& path, int n_ranks, const std::string& text,
                            const std::function<std::vector<Wish>(int)>& wishes_of) {
  std::vector<std::vector<Bytes>> got(std::size_t{8});
  std::vector<std::uint64_t> element_bytes;
  std::atomic<std::uint64_t> n_decoded{0};
  std::vector<std::optional<DType>> dtypes;
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    ReadOptions options;
    ASSERT_DONE(apply_read_options(text, options));
    Result<std::unique_ptr<Reader>> reader = Reader::open(std::move(comm), path, options);
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    std::vector<ReadRequest> requests;
    std::vector<Bytes>& values = got[std::size_t(rank)];
    for (const Wish& wish : wishes_of(rank)) {
      const std::size_t dataset = *(*reader)->find(wish.path);
      values.emplace_back(wish.slab.n_elements() * (*reader)->datasets()[dataset].value_bytes());
      requests.push_back({dataset, wish.slab, values.back().data()});
    }
    ASSERT_DONE((*reader)->read_all(requests));
    // A second time: indexes are known and caches are warm.
    ASSERT_DONE((*reader)->read_all(requests));
    n_decoded += (*reader)->report().n_chunks;
    ASSERT_DONE((*reader)->close());
  });
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  for (int rank = 0; rank < n_ranks; ++rank) {
    const std::vector<Wish> wishes = wishes_of(rank);
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const StoredDataset& dataset = (*reader)->datasets()[*(*reader)->find(wishes[i].path)];
      const hid_t type = dataset.dtype ? hdf5_native_type(*dataset.dtype) : H5I_INVALID_HID;
      EXPECT_TRUE(got[std::size_t(rank)][i] ==
                  read_reference(path, wishes[i].path, type, wishes[i].slab, dataset.value_bytes()))
          << "rank " << rank << " " << wishes[i].path << " " << slab_text(wishes[i].slab);
    }
  }
  return n_decoded;
}

void add_datasets(StockFile& file) {
  file.add("a", H5T_NATIVE_FLOAT, {60, 50}, deflated({16, 9}));
  file.add("b", H5T_IEEE_F64BE, {40, 9, 8}, deflated({5, 9, 4}));
  file.add("plain", H5T_NATIVE_INT, {400, 200}, chunked({150, 130}));
  file.add("contiguous", H5T_NATIVE_INT, {30, 20}, {});
  file.add("compact", H5T_NATIVE_INT, {30},
           [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); });
  file.add("unwritten", H5T_NATIVE_INT, {30, 20}, deflated({7, 8}), false);
}

TEST(ReadAll, RandomSlabsOn_1_2_3_4_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  add_datasets(file);
  file.close();
  const std::vector<std::pair<std::string, Shape>> all = {
      {"/a", {60, 50}},          {"/b", {40, 9, 8}}, {"/plain", {400, 200}},
      {"/contiguous", {30, 20}}, {"/compact", {30}}, {"/unwritten", {30, 20}}};
  for (const int n_ranks : {1, 2, 3, 4}) {
    for (unsigned seed = 0; seed < 6; ++seed) {
      const char* text = seed % 2 == 0 ? "threads=1" : "threads=2,memory=1MiB";
      read_together(file.path(), n_ranks, text, [&](int rank) {
        std::mt19937 random(seed * 10 + unsigned(rank));
        std::vector<Wish> wishes;
        const std::size_t n_wishes = random() % 9;  // Some ranks have no requests.
        for (std::size_t i = 0; i < n_wishes; ++i) {
          const auto& [path, shape] = all[random() % all.size()];
          wishes.push_back({path, any_slab(shape, random)});
        }
        return wishes;
      });
    }
  }
}

TEST(ReadAll, ChunksThatAllWantAreDecodedOnceOn_3_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  add_datasets(file);
  file.close();
  const std::uint64_t n_decoded = read_together(file.path(), 3, "threads=1,prefetch=off", [](int) {
    return std::vector<Wish>{{"/a", {{0, 0}, {60, 50}, {}}}};
  });
  EXPECT_EQ(n_decoded, 2U * 4 * 6);  // Two reads of 24 chunks each.
}

/// An owner sends the values of one chunk in rounds: 6 ranks request 128 KiB each, and a round may
/// have 256 KiB of 1 MiB of memory.
TEST(ReadAll, AChunkThatManyWantIsSentInRoundsOn_7_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("one", H5T_NATIVE_DOUBLE, {128, 128}, deflated({128, 128}));
  file.add("three", H5T_NATIVE_DOUBLE, {128, 384}, deflated({128, 128}));
  file.close();
  const auto all_of = [](const std::string& path, const Shape& shape) {
    return [=](int) { return std::vector<Wish>{{path, Slab::of(whole_box(shape))}}; };
  };
  const std::string options = "memory=1MiB,threads=1,prefetch=off";
  EXPECT_EQ(read_together(file.path(), 7, options, all_of("/one", {128, 128})), 2U * 3);
  EXPECT_GE(read_together(file.path(), 7, options, all_of("/three", {128, 384})), 2U * 9);
}

/// Strided slabs use the chunks' views. A rank that also requests the complete chunks, or shares
/// them with others, gets both.
TEST(ReadAll, ViewsAndWholeChunksAtOnceOn_1_2_3_4_Ranks) {
  ASSERT_DONE(register_filter_class(&hdf5::trz_filter_class()));
  const Shape shape = {40, 36, 48};
  TestFolder folder;
  StockFile file(folder / "d.h5");
  const Result<trz::FilterRequest> request =
      trz::parse_filter_request("abs=1e-3,coarse=1,predictor=interpolation");
  ASSERT_TRUE(request.ok());
  const std::vector<std::uint32_t> words = trz::client_words(*request);
  file.add("u", H5T_NATIVE_FLOAT, shape, chunked({20, 12, 16}, [&](hid_t creation) {
             H5Pset_filter(creation, trz::filter_id, H5Z_FLAG_MANDATORY, words.size(),
                           words.data());
           }));
  file.close();
  const Slab whole = Slab::of(whole_box(shape));
  const Slab half{{0, 0, 0}, {20, 18, 24}, {2, 2, 2}};
  const Slab rows{{0, 0, 0}, {7, 36, 48}, {}};
  for (const int n_ranks : {1, 2, 3, 4}) {
    read_together(file.path(), n_ranks, "threads=2", [&](int rank) {
      std::vector<Wish> wishes = {{"/u", half}, {"/u", rank % 2 == 0 ? whole : rows}};
      if (rank == 1) wishes.pop_back();
      return wishes;
    });
  }
  // Only views, an eighth of the values, except for a chunk that may have none.
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  Bytes values(half.n_elements() * sizeof(float));
  ASSERT_DONE((*reader)->read(0, half, values));
  EXPECT_LT((*reader)->report().decoded_bytes, 2 * values.size());
}

TEST(ReadAll, OneRankFailsAndAllReturnItsErrorOn_3_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  add_datasets(file);
  file.close();
  for (const int failing : {0, 1, 2}) {
    run_ranks(3, [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      Result<std::unique_ptr<Reader>> reader = Reader::open(std::move(comm), file.path());
      ASSERT_TRUE(reader.ok()) << text_of(reader.status());
      Bytes values(60 * 50 * 4);
      ReadRequest request{*(*reader)->find("/a"), {{0, 0}, {60, 50}, {}}, values.data()};
      if (rank == failing) request.slab.count[0] = 61;
      const Status read = (*reader)->read_all(std::span(&request, 1));
      EXPECT_EQ(read.code(), Code::bad_coverage);
      EXPECT_NE(read.message().find("rank " + std::to_string(failing)), std::string::npos)
          << read.message();
      request.slab.count[0] = 60;
      ASSERT_DONE((*reader)->read_all(std::span(&request, 1)));
      ASSERT_DONE((*reader)->close());
    });
  }
}

TEST(ReadAll, ACorruptChunkIsNamedOnAllOf_2_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  add_datasets(file);
  file.close();
  const Result<std::vector<StoredChunk>> chunks = read_chunk_index(file.path(), "/a");
  ASSERT_TRUE(chunks.ok());
  const StoredChunk broken = (*chunks)[7];
  const int fd = ::open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  const std::string garbage(16, '\x5a');
  ASSERT_EQ(::pwrite(fd, garbage.data(), garbage.size(), off_t(broken.extent.address)), 16);
  ::close(fd);
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    Result<std::unique_ptr<Reader>> reader = Reader::open(std::move(comm), file.path());
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    Bytes values(60 * 50 * 4);
    const ReadRequest request{*(*reader)->find("/a"), {{0, 0}, {60, 50}, {}}, values.data()};
    const auto expect_named = [&](const Status& read) {
      EXPECT_EQ(read.code(), Code::codec_failed) << text_of(read);
      for (const std::string& part : {std::string("dataset \"/a\""), std::string("chunk 7 "),
                                      "address " + std::to_string(broken.extent.address)}) {
        EXPECT_NE(read.message().find(part), std::string::npos) << read.message();
      }
    };
    expect_named((*reader)->read_all(std::span(&request, 1)));
    expect_named((*reader)->read(request.dataset, request.slab, values));
    // Even if only one rank requests the damaged chunk, all ranks name it. The data next to it can
    // be read.
    const ReadRequest alone{request.dataset, {{16, 9}, {1, 1}, {}}, values.data()};
    expect_named((*reader)->read_all(std::span(&alone, rank == 0 ? 1 : 0)));
    ASSERT_DONE((*reader)->read(request.dataset, {{0, 0}, {16, 50}, {}},
                                std::span(values).first(16 * 50 * 4)));
    ASSERT_DONE((*reader)->close());
  });
}

TEST(ReadAll, OpenedIndexesServeIndependentReadsOn_4_Ranks) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  add_datasets(file);
  file.close();
  run_ranks(4, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    Result<std::unique_ptr<Reader>> reader = Reader::open(std::move(comm), file.path());
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    std::vector<std::size_t> numbers((*reader)->datasets().size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    ASSERT_DONE((*reader)->open_index(numbers));
    EXPECT_EQ((*reader)->open_index(std::vector<std::size_t>{rank == 2 ? 99U : 0U}).code(),
              Code::invalid_argument);
    const std::size_t a = *(*reader)->find("/a");
    const Slab slab{{std::uint64_t(rank) * 15, 0}, {15, 50}, {}};
    Bytes values(15 * 50 * 4);
    ASSERT_DONE((*reader)->read(a, slab, values));
    EXPECT_TRUE(values == read_reference(file.path(), "/a", H5T_NATIVE_FLOAT, slab, 4));
    ASSERT_DONE((*reader)->refresh());
    ASSERT_DONE((*reader)->read(a, slab, values));
    ASSERT_DONE((*reader)->close());
  });
}

TEST(ReadAll, AFileThatIsMissingIsToldOnAllOf_2_Ranks) {
  TestFolder folder;
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    EXPECT_EQ(Reader::open(std::move(comm), folder / "no.h5").status().code(), Code::not_found);
  });
}

}  // namespace
}  // namespace tailrace::test
