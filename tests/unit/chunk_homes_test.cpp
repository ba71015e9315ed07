// Chunk homes: dealing, serialized records, hostile messages, and decisions of homes. Cites the
// invariants of exec/chunk_homes.hpp.

#include "exec/chunk_homes.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "array/array_patches.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

// --- dealing

TEST(ChunkDealing, EveryChunkHasOneHomeAndEveryHomeItsShare) {
  for (const int n_ranks : {1, 2, 3, 4, 7, 100}) {
    ChunkDealing dealing(n_ranks);
    const std::vector<ChunkGrid> grids = {
        {{}, {}},   {{0, 5}, {1, 1}},       {{40}, {3}}, {{9, 8}, {2, 3}},
        {{1}, {1}}, {{5, 6, 7}, {1, 2, 3}}, {{400}, {1}}};
    std::uint64_t n_all = 0;
    std::uint64_t n_max = 0;
    for (std::size_t f = 0; f < grids.size(); ++f) {
      dealing.add(f, grids[f], f);
      n_all += grids[f].n_chunks();
      n_max += (grids[f].n_chunks() + std::uint64_t(n_ranks) - 1) / std::uint64_t(n_ranks);
    }
    std::set<ChunkKey> seen;
    for (int rank = 0; rank < n_ranks; ++rank) {
      std::uint64_t n_here = 0;
      ChunkKey last{0, 0};
      dealing.for_each_at(rank, [&](ChunkKey key) {
        EXPECT_TRUE(dealing.has(key));
        EXPECT_EQ(dealing.home_of(key), rank);
        EXPECT_TRUE(seen.insert(key).second);
        EXPECT_LE(last, key);
        last = key;
        ++n_here;
      });
      EXPECT_LE(n_here, n_max);
    }
    EXPECT_EQ(seen.size(), n_all);
    EXPECT_FALSE(dealing.has({2, 14}));
    EXPECT_FALSE(dealing.has({1, 0}));
    EXPECT_FALSE(dealing.has({7, 0}));
  }
}

TEST(ChunkDealing, FieldsOfOneChunkHaveHomesInTurn) {
  ChunkDealing dealing(4);
  std::set<int> homes;
  for (std::size_t f = 0; f < 4; ++f) {
    dealing.add(f, {{10}, {10}}, f);
    homes.insert(dealing.home_of({f, 0}));
  }
  EXPECT_EQ(homes.size(), 4U);
}

/// Number and home of the chunk at `at`, in an array that has grown to `shape`.
std::pair<std::uint64_t, int> dealt(const Shape& shape, const std::vector<bool>& growing,
                                    const Shape& at) {
  ChunkDealing dealing(4);
  const ChunkGrid grid{shape, Shape(shape.size(), 2)};
  dealing.add(0, grid, 3, growing);
  const ChunkKey key{0, grid.index_of(at)};
  return {dealing.number_of(key), dealing.home_of(key)};
}

TEST(ChunkDealing, AChunkKeepsItsNumberAndHomeWhileDimensionsGrow) {
  const std::vector<std::vector<bool>> all = {{true, false, false},
                                              {false, true, false},
                                              {false, false, true},
                                              {true, false, true},
                                              {true, true, true}};
  for (const std::vector<bool>& growing : all) {
    const Shape small = {6, 10, 8};
    Shape large = small;
    for (std::size_t d = 0; d < 3; ++d) large[d] *= growing[d] ? 37 : 1;
    std::set<std::uint64_t> numbers;
    std::set<int> homes;
    const ChunkGrid grid{small, {2, 2, 2}};
    for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
      const Shape at = grid.coordinates(chunk);
      EXPECT_EQ(dealt(small, growing, at), dealt(large, growing, at));
      numbers.insert(dealt(small, growing, at).first);
      homes.insert(dealt(small, growing, at).second);
    }
    EXPECT_EQ(numbers.size(), grid.n_chunks());
    EXPECT_EQ(homes.size(), 4U);
  }
}

// --- records

ChunkDealing small_dealing() {
  ChunkDealing dealing(3);
  dealing.add(0, {{8, 9}, {4, 4}}, 0);
  dealing.add(1, {{}, {}}, 1);
  return dealing;
}

/// Chunk 4 of the first field is [4:8, 4:8]; the second field is a scalar.
std::vector<ChunkRecord> some_records() {
  return {{{0, 4}, 2, {4096, 77, 5}, {{1, 6, {{{4, 5}, {2, 3}, {}}}}, {0, 1, {}}}},
          {{1, 0}, nobody, {}, {{2, 1, {{{}, {}, {}}}}}},
          {{0, 4}, 0, {}, {{2, 4, {{{4, 4}, {2, 2}, {3, 2}}, {{7, 7}, {1, 1}, {9, 9}}}}}}};
}

void expect_same(const ChunkRecord& a, const ChunkRecord& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.place.address, b.place.address);
  EXPECT_EQ(a.place.encoded_bytes, b.place.encoded_bytes);
  EXPECT_EQ(a.place.filter_mask, b.place.filter_mask);
  ASSERT_EQ(a.shares.size(), b.shares.size());
  for (std::size_t i = 0; i < a.shares.size(); ++i) {
    EXPECT_EQ(a.shares[i].rank, b.shares[i].rank);
    EXPECT_EQ(a.shares[i].n_elements, b.shares[i].n_elements);
    EXPECT_EQ(a.shares[i].slabs, b.shares[i].slabs);
  }
}

Bytes packed(const std::vector<ChunkRecord>& records) {
  ByteWriter writer;
  for (const ChunkRecord& record : records) add_record(writer, record);
  return writer.take();
}

Status read_back(const Bytes& bytes, std::vector<ChunkRecord>& records) {
  return read_records({1, bytes}, small_dealing(), 3, records);
}

TEST(ChunkRecords, ComeBackAsTheyWere) {
  const std::vector<ChunkRecord> sent = some_records();
  std::vector<ChunkRecord> read;
  EXPECT_TRUE(read_back(packed(sent), read).ok());
  ASSERT_EQ(read.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) expect_same(read[i], sent[i]);
  EXPECT_TRUE(read_back({}, read).ok());
}

/// Invariant 3.
TEST(ChunkRecords, AMessageThatIsCutShortIsRefused) {
  const std::vector<ChunkRecord> sent = some_records();
  const Bytes whole = packed(sent);
  std::set<std::size_t> ends = {0};
  for (std::size_t n = 1; n <= sent.size(); ++n) {
    ends.insert(packed({sent.begin(), sent.begin() + std::ptrdiff_t(n)}).size());
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::vector<ChunkRecord> read;
    const Status status = read_back(Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(n)), read);
    EXPECT_EQ(status.code(), ends.count(n) != 0 ? Code::ok : Code::internal) << n;
    if (status.ok()) continue;
    EXPECT_NE(status.message().find("from rank 1: the message of " + std::to_string(n) + " bytes"),
              std::string::npos)
        << status.message();
  }
}

/// Invariant 3.
TEST(ChunkRecords, WhatThereIsNotIsRefused) {
  const ChunkRecord good = some_records()[0];
  const auto refused = [&](const auto& change) {
    ChunkRecord record = good;
    change(record);
    std::vector<ChunkRecord> read;
    return read_back(packed({record}), read).code() == Code::internal;
  };
  EXPECT_FALSE(refused([](ChunkRecord&) {}));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.key.field = 2; }));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.key.chunk_index = 6; }));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.owner = 3; }));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.owner = -2; }));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.shares[0].rank = 3; }));
  EXPECT_TRUE(refused([](ChunkRecord& r) { r.shares[0].rank = -1; }));
  for (const Slab& slab :
       {Slab{{3, 4}, {1, 1}, {}}, Slab{{8, 4}, {1, 1}, {}}, Slab{{4, 4}, {5, 1}, {}},
        Slab{{5, 4}, {2, 1}, {4, 1}}, Slab{{5, 4}, {2, 1}, {0, 1}}, Slab{{5, 4}, {0, 1}, {}},
        Slab{{5}, {1}, {}}, Slab{{5, 5}, {1}, {}}, Slab{{5, 5}, {1, 1}, {1}},
        Slab{{5, 5}, {UINT64_MAX, UINT64_MAX}, {}}}) {
    EXPECT_TRUE(refused([&](ChunkRecord& r) { r.shares[0].slabs = {slab}; })) << slab_text(slab);
  }
}

/// Invariant 3: garbage is an error or decodes to valid records, and never crashes.
TEST(ChunkRecords, RandomDamageIsHarmless) {
  std::mt19937 random(7);
  const Bytes whole = packed(some_records());
  for (int i = 0; i < 20000; ++i) {
    Bytes damaged = whole;
    for (unsigned n = 0; n <= random() % 3; ++n) {
      damaged[random() % damaged.size()] = std::byte(random() % 256);
    }
    std::vector<ChunkRecord> read;
    if (read_back(damaged, read).ok()) continue;
    for (const ChunkRecord& record : read) EXPECT_TRUE(small_dealing().has(record.key));
  }
}

// --- homes

TEST(WithAboutMost, IsOneOfThoseThatHaveSevenEighthsOfTheMost) {
  const std::vector<ChunkShare> shares = {{1, 6, {}}, {3, 8, {}}, {4, 7, {}}, {7, 8, {}}};
  for (const std::uint64_t every : {1U, 2U, 3U, 4U, 5U, 7U}) {
    std::map<int, int> n_of;
    for (std::uint64_t i = 0; i < 300; ++i) ++n_of[with_about_most(shares, 1000 + i * every)];
    EXPECT_EQ(n_of.size(), 3U);
    for (const int rank : {3, 4, 7}) EXPECT_NEAR(n_of[rank], 100, 5) << rank << " of " << every;
  }
  EXPECT_EQ(with_about_most({shares.data(), 1}, 5), 1);
  EXPECT_EQ(with_about_most({}, 5), nobody);
}

/// Many small variables of one chunk that all ranks share equally: each rank owns about as many.
/// Chunks between two neighbours: each lower rank owns one, or each upper rank.
TEST(ChunkPlaces, DealWhatAllShareOn_2_3_4_Ranks) {
  constexpr std::size_t n_alike = 60;
  for (const int n_ranks : {2, 3, 4}) {
    std::mutex mutex;
    const auto n = static_cast<std::size_t>(n_ranks);
    std::vector<std::size_t> n_shared(n, 0);
    std::map<std::size_t, std::set<int>> between;
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const auto rank = std::uint64_t(comm->rank());
      const auto last = std::uint64_t(n_ranks) - 1;
      std::vector<PatchedField> fields;
      for (std::size_t v = 0; v < n_alike; ++v) {
        fields.push_back({v, {{100}, {100}}, {{0, 100 / std::uint64_t(n_ranks)}}, {}});
      }
      for (std::size_t v = n_alike; v < n_alike + 2 && n_ranks > 2; ++v) {
        PatchedField& field = fields.emplace_back(PatchedField{v, {{10 * last}, {10}}, {}, {}});
        if (rank > 0) field.claims.push_back({rank - 1, 5});
        if (rank < last) field.claims.push_back({rank, 5});
      }
      ChunkPlaces places;
      const Result<PatchOwnership> assigned = places.assign_owners(*comm, fields, false);
      ASSERT_TRUE(assigned.ok());
      const std::scoped_lock lock(mutex);
      for (const ChunkJob& job : assigned->ownership.jobs) {
        if (job.field < n_alike) {
          ++n_shared[rank];
        } else {
          EXPECT_TRUE(between[job.field].insert(comm->rank()).second);
        }
      }
    });
    for (const std::size_t mine : n_shared) EXPECT_NEAR(double(mine), double(n_alike) / n_ranks, 3);
    for (const auto& [field, owners] : between) EXPECT_EQ(int(owners.size()), n_ranks - 1) << field;
  }
}

/// Invariant 1, with a policy that prefers the rank with the most values.
TEST(AskHomes, EveryRankHearsOfItsChunksOn_1_2_3_4_Ranks) {
  for (const int n_ranks : {1, 2, 3, 4}) {
    std::mutex mutex;
    std::map<ChunkKey, std::vector<std::pair<int, int>>> told;  // receiving rank, owner
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      ChunkDealing dealing(comm->n_ranks());
      dealing.add(0, {{30}, {1}}, 0);
      ChunkMail mail(dealing);
      // Rank r has chunks 0, r + 1, 2 (r + 1), ...; it has some more elements of chunk k if r == k
      // % ranks.
      std::set<std::uint64_t> mine;
      for (std::uint64_t chunk = 0; chunk < 30; chunk += std::uint64_t(rank) + 1) {
        const bool most = chunk % std::uint64_t(n_ranks) == std::uint64_t(rank);
        mail.add({{0, chunk}, nobody, {}, {{rank, most ? 9U : 5U, {{{chunk}, {1}, {}}}}}});
        mine.insert(chunk);
      }
      ChunkKey last{0, 0};
      const Result<std::vector<ChunkRecord>> decided =
          ask_homes(*comm, std::move(mail), [&](ChunkRecord& chunk) {
            EXPECT_EQ(dealing.home_of(chunk.key), rank);
            EXPECT_LE(last, chunk.key);
            last = chunk.key;
            for (std::size_t s = 1; s < chunk.shares.size(); ++s) {
              EXPECT_LT(chunk.shares[s - 1].rank, chunk.shares[s].rank);
            }
            if (chunk.key.chunk_index == 28) return false;  // No rank receives the record.
            if (chunk.key.chunk_index == 24) return true;   // All learn: no owner.
            chunk.owner = with_most(chunk.shares);
            chunk.place = {100 + chunk.key.chunk_index, 7, 1};
            return true;
          });
      ASSERT_TRUE(decided.ok());
      mine.erase(28);
      ASSERT_EQ(decided->size(), mine.size());
      auto expected = mine.begin();
      for (const ChunkRecord& chunk : *decided) {
        EXPECT_EQ(chunk.key.chunk_index, *expected++);
        const bool owns = chunk.owner == rank;
        EXPECT_EQ(chunk.place.address, owns ? 100 + chunk.key.chunk_index : 0);
        for (const ChunkShare& share : chunk.shares) {
          EXPECT_TRUE(owns && share.rank != rank && share.slabs.size() == 1);
        }
        const std::scoped_lock lock(mutex);
        told[chunk.key].emplace_back(rank, chunk.owner);
        if (owns) {
          for (const ChunkShare& share : chunk.shares) told[chunk.key].emplace_back(-1, share.rank);
        }
      }
    });
    for (const auto& [key, heard] : told) {
      std::set<int> owners;
      std::set<int> ranks;
      std::set<int> others;
      for (const auto& [rank, owner] : heard) {
        (rank < 0 ? others : owners).insert(owner);
        if (rank >= 0) ranks.insert(rank);
      }
      ASSERT_EQ(owners.size(), 1U);
      const auto most = int(key.chunk_index % std::uint64_t(n_ranks));
      const int owner = key.chunk_index == 24 ? nobody : ranks.count(most) != 0 ? most : 0;
      EXPECT_EQ(*owners.begin(), owner) << key.chunk_index;
      if (owner != nobody) others.insert(owner);
      EXPECT_EQ(others, owner == nobody ? std::set<int>() : ranks);
    }
  }
}

/// Invariant 3: rank 0 sends garbage, twice. The receiving rank returns an error, and no rank
/// hangs.
TEST(AskHomes, ADamagedMessageIsAnErrorWhereItComesOn_3_Ranks) {
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    ChunkDealing dealing(3);
    dealing.add(0, {{3}, {1}}, 0);
    ChunkMail mail(dealing);
    if (comm->rank() == 0) {
      comm->exchange({{1, Bytes(13)}});
      comm->exchange({});
      comm->exchange({});
      comm->exchange({{2, Bytes(60, std::byte{0x5a})}});
      return;
    }
    const auto code = [&] {
      ChunkMail nothing(dealing);
      return ask_homes(*comm, std::move(nothing), [](ChunkRecord&) { return true; })
          .status()
          .code();
    };
    EXPECT_EQ(code(), comm->rank() == 1 ? Code::internal : Code::ok);
    EXPECT_EQ(code(), comm->rank() == 2 ? Code::internal : Code::ok);
  });
}

}  // namespace
}  // namespace tailrace::test
