// The single place that decides how a dataset is stored, as a table of cases: the facts that a door
// knows, the request, and the answer.

#include "policy/storage_decision.hpp"

#include <gtest/gtest.h>

#include "core/codec_registry.hpp"
#include "core/option_table.hpp"

namespace tailrace {
namespace {

DatasetFacts facts_of(const Shape& shape, std::optional<DType> number = DType::f32) {
  DatasetFacts facts;
  facts.number = number;
  facts.element_bytes = number ? dtype_bytes(*number) : 4;
  facts.shape = shape;
  facts.growing.assign(shape.size(), false);
  return facts;
}

StorageRequest asked(const std::string& text) {
  StorageRequest request;
  EXPECT_TRUE(apply_field_options(text, request.options).ok()) << text;
  return request;
}

/// "chunks deflate", "one_piece none: small", "by_hdf5: small", or the refusal.
std::string answer(const DatasetFacts& facts, const StorageRequest& request, Door door) {
  const Result<StorageDecision> decision = decide(facts, request, door);
  if (!decision.ok()) return decision.status().message();
  if (decision->form == StorageForm::by_hdf5) return "by_hdf5: " + decision->why;
  const std::string codec = std::string(decision->options.codec);
  if (decision->form == StorageForm::one_piece) return "one_piece " + codec + ": " + decision->why;
  return "chunks " + codec + (decision->bound_with_values ? ", late bound" : "") +
         (decision->keeps_filters ? ", own filters" : "");
}

TEST(StorageDecision, VariablesThatAreSmallerThanAnIndexLieInOnePiece) {
  const DatasetFacts small = facts_of({100});
  for (const Door door : {Door::python, Door::pnetcdf, Door::repack}) {
    EXPECT_EQ(answer(small, {}, door), "one_piece none: small");
    EXPECT_EQ(answer(small, asked("codec=deflate"), door), "chunks deflate");
    EXPECT_EQ(answer(facts_of({5000}), {}, door), "chunks deflate");
  }
  EXPECT_EQ(answer(small, {}, Door::steps), "chunks deflate");
  StorageRequest of_v110;
  of_v110.compatibility = Compatibility::v110;
  EXPECT_EQ(answer(small, of_v110, Door::python), "chunks deflate");
  DatasetFacts growing = small;
  growing.growing = {true};
  EXPECT_EQ(answer(growing, {}, Door::python), "chunks deflate");
}

TEST(StorageDecision, WhatHasNothingToCompressLiesInOnePiece) {
  for (const Door door : {Door::steps, Door::python}) {
    EXPECT_EQ(answer(facts_of({}), asked("codec=trz"), door), "one_piece trz: nothing to compress");
    EXPECT_EQ(answer(facts_of({0, 7}), asked("codec=trz"), door),
              "one_piece trz: nothing to compress");
  }
  EXPECT_EQ(codec_wish(facts_of({}), asked("codec=trz").options).name, plain_codec);
  DatasetFacts growing = facts_of({0});
  growing.growing = {true};
  EXPECT_FALSE(has_nothing_to_compress(growing));
}

TEST(StorageDecision, ProgramsDatasetsAreLeftToHdf5OrGetACodecUnseen) {
  EXPECT_EQ(answer(facts_of({100}), {}, Door::hdf5), "by_hdf5: small");
  EXPECT_EQ(answer(facts_of({}), {}, Door::hdf5), "by_hdf5: small");
  EXPECT_EQ(answer(facts_of({5000}), {}, Door::hdf5), "chunks deflate");
  EXPECT_EQ(answer(facts_of({5000}), asked("bound=abs=1"), Door::hdf5), "chunks trz");
  EXPECT_EQ(answer(facts_of({5000}), asked("bound=rel=1e-3"), Door::hdf5),
            "chunks trz, late bound");
  EXPECT_NE(answer(facts_of({5000}), asked("codec=portable,bound=rel=1e-3"), Door::hdf5)
                .find("needs the values when the dataset is created"),
            std::string::npos);
  EXPECT_EQ(answer(facts_of({5000}), asked("codec=portable,bound=rel=1e-3"), Door::serial),
            "chunks portable, late bound");
  EXPECT_NE(answer(facts_of({5000}, DType::i32), asked("bound=abs=1"), Door::hdf5)
                .find("can only be stored exactly"),
            std::string::npos);
  DatasetFacts odd = facts_of({5000}, std::nullopt);
  EXPECT_EQ(answer(odd, {}, Door::hdf5), "chunks deflate");
  odd.element_bytes = 12;
  EXPECT_EQ(answer(odd, {}, Door::hdf5), "chunks deflate");
  EXPECT_NE(answer(odd, asked("codec=trz"), Door::hdf5).find("are not numbers; use codec deflate"),
            std::string::npos);
  odd.only_hdf5 = "texts";
  EXPECT_EQ(answer(odd, {}, Door::hdf5), "by_hdf5: texts");
  DatasetFacts chunked = facts_of({100});
  chunked.own_chunks = {10};
  EXPECT_EQ(answer(chunked, {}, Door::hdf5), "chunks deflate");
  chunked.own_filters = true;
  EXPECT_EQ(answer(chunked, {}, Door::hdf5), "chunks deflate, own filters");
  EXPECT_EQ(answer(chunked, asked("bound=abs=1"), Door::hdf5), "chunks trz");
  chunked.own_chunks = {std::uint64_t{1} << 25};
  EXPECT_EQ(answer(chunked, {}, Door::hdf5), "by_hdf5: chunks of more than a sixteenth of memory=");
}

TEST(StorageDecision, SmallDatasetsOfSerialProgramsStayUnlessTheyAreNamed) {
  StorageRequest request = asked("codec=trz,bound=abs=1");
  EXPECT_EQ(answer(facts_of({100}), request, Door::serial), "by_hdf5: small");
  request.named = true;
  EXPECT_EQ(answer(facts_of({100}), request, Door::serial), "chunks trz");
  DatasetFacts growing = facts_of({0, 100});
  growing.growing = {true, false};
  growing.own_chunks = {1, 100};
  EXPECT_EQ(answer(growing, asked("bound=abs=1"), Door::serial), "chunks trz");
}

TEST(StorageDecision, IntegersAreSparedDefaultsThatLoseDigits) {
  FieldOptions options = asked("codec=portable,checksum=on,bound=abs=1").options;
  options.codec_given_for_field = false;
  const CodecWish counts = codec_wish(facts_of({5000}, DType::i32), options);
  EXPECT_FALSE(counts.keeps_bound);
  const CodecWish measured = codec_wish(facts_of({5000}), options);
  EXPECT_EQ(measured.name, "portable");
  EXPECT_TRUE(measured.keeps_bound);
}

TEST(StorageDecision, ReasonsToStayExactUnderABoundForAll) {
  EXPECT_EQ(reason_to_stay_exact(facts_of({5000}), false, Role::value), "");
  EXPECT_EQ(reason_to_stay_exact(facts_of({1000}), false, Role::value), "small");
  EXPECT_EQ(reason_to_stay_exact(facts_of({5000}), true, Role::value), "coordinate");
  EXPECT_EQ(reason_to_stay_exact(facts_of({5000}), false, Role::geometry), "geometry");
  EXPECT_EQ(reason_to_stay_exact(facts_of({5000}, DType::i64), false, Role::value), "integers");
}

TEST(StorageDecision, ChunksOfGrowingVariablesHaveRoomForRecords) {
  DatasetFacts facts = facts_of({3, 10});
  facts.growing = {true, false};
  DecompositionFacts whole{facts.shape, facts.shape};
  const FieldOptions options;
  EXPECT_EQ(choose_chunks(facts, options, facts.shape, whole, Door::steps), (Shape{3, 10}));
  EXPECT_EQ(choose_chunks(facts, options, facts.shape, whole, Door::python), (Shape{102, 10}));
  FieldOptions shaped = asked("chunk=7x70").options;
  EXPECT_EQ(choose_chunks(facts, shaped, {UINT64_MAX, 10}, whole, Door::python), (Shape{7, 10}));
  EXPECT_EQ(choose_chunks(facts, shaped, {3, 10}, whole, Door::steps), (Shape{3, 10}));
}

TEST(StorageDecision, SmallChunksUnderABoundAreKeptIfMostAreMissing) {
  constexpr std::uint64_t memory_bytes = 1ULL << 30;
  DatasetFacts facts = facts_of({100'000, 100'000});
  facts.own_chunks = {100, 100};
  EXPECT_TRUE(keep_chunks(facts, false, memory_bytes).keeps);
  EXPECT_FALSE(keep_chunks(facts, true, memory_bytes).keeps);
  facts.written_fraction = 3e-6;
  EXPECT_TRUE(keep_chunks(facts, true, memory_bytes).keeps);
  EXPECT_FALSE(keep_chunks(facts, true, 1 << 16).keeps);
}

TEST(StorageDecision, JoinedChunksAreTheInputsUnlessTheyAreTiny) {
  DatasetFacts facts = facts_of({1000});
  facts.own_chunks = {128};
  JoinRequest join;
  EXPECT_EQ(join_chunks(facts, 1'000'000, join), (Shape{262'144}));
  EXPECT_EQ(join_chunks(facts, 300, join), (Shape{384}));
  join.fits_any_chunk = false;
  EXPECT_EQ(join_chunks(facts, 1'000'000, join), (Shape{128}));
  join.chunk_rows = 500;
  EXPECT_TRUE(keeps_chunks_joined(join));
  join.keeps_codec = false;
  EXPECT_EQ(join_chunks(facts, 1'000'000, join), (Shape{500}));
  DatasetFacts plain = facts_of({1000});
  EXPECT_TRUE(joins_in_one_piece(plain, 5000, {}));
  plain.growing = {true};
  EXPECT_FALSE(joins_in_one_piece(plain, 5000, {}));
}

}  // namespace
}  // namespace tailrace
