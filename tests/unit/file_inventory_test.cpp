// Differences of two files' inventories, without HDF5.

#include "describe/file_inventory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tailrace {
namespace {

using Kind = InventoryLink::Kind;

/// Builds an inventory. Objects are numbered in the order of their creation; the root is 0.
class Builder {
 public:
  Builder() { add(ObjectKind::group, "/"); }
  std::size_t add(ObjectKind kind, const std::string& path) {
    InventoryObject& object = file.objects.emplace_back();
    object.kind = kind;
    object.path = path;
    return file.objects.size() - 1;
  }
  /// Adds an object with its first link.
  std::size_t child(std::size_t group, const std::string& name,
                    ObjectKind kind = ObjectKind::dataset) {
    const std::string above = file.objects[group].path;
    const std::size_t object = add(kind, (above == "/" ? "/" : above + "/") + name);
    link(group, name, object);
    return object;
  }
  void link(std::size_t group, const std::string& name, std::size_t object) {
    file.objects[group].links.push_back({name, Kind::hard, object, ""});
  }
  void soft(std::size_t group, const std::string& name, const std::string& target) {
    file.objects[group].links.push_back({name, Kind::soft, 0, target});
  }
  FileInventory file;
};

std::vector<std::string> texts(const StructureFindings& findings) {
  std::vector<std::string> all;
  for (const StructureDifference& each : findings.differences) {
    all.push_back(each.aspect + (each.fails ? "! " : " ") + each.text);
  }
  return all;
}

StructureFindings compare(const Builder& a, const Builder& b, const InventoryRules& rules = {}) {
  StructureFindings findings;
  pair_objects(a.file, b.file, rules, findings);
  return findings;
}

using Texts = std::vector<std::string>;

TEST(FileInventory, EqualFilesHaveNoDifferencesInAnyOrderOfTheirWalks) {
  Builder a;
  const std::size_t group = a.child(0, "g", ObjectKind::group);
  a.child(group, "x");
  a.link(0, "h", group);
  a.soft(0, "s", "/g/x");
  Builder b;  // The walk of this file meets the group by its other name first.
  b.soft(0, "s", "/g/x");
  const std::size_t other = b.child(0, "h", ObjectKind::group);
  b.child(other, "x");
  b.link(0, "g", other);
  EXPECT_EQ(texts(compare(a, b)), Texts());
  EXPECT_EQ(compare(a, b).n_links, 4U);
}

TEST(FileInventory, NamesWhatOneSideLacks) {
  Builder a;
  const std::size_t group = a.child(0, "g", ObjectKind::group);
  a.child(group, "x");
  a.soft(0, "s", "/g/x");
  Builder b;
  b.child(0, "more");
  InventoryRules rules;
  rules.may_be_added = [](std::size_t object) { return object == 1; };
  EXPECT_EQ(texts(compare(a, b)),
            (Texts{"missing! group \"/g\" is missing in the compressed file",
                   "missing! dataset \"/g/x\" is missing in the compressed file",
                   "missing! soft link \"/s\" is missing in the compressed file",
                   "only in the copy! dataset \"/more\" exists only in the compressed file"}));
  EXPECT_EQ(compare(a, b, rules).n_failing(), 3U);
  rules.ignored = [](const std::string& path) { return path == "/g" || path == "/s"; };
  rules.wanted = [](const std::string& path) { return path != "/g/x"; };
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  EXPECT_EQ(compare(a, b, rules).n_ignored_objects, 2U);
}

TEST(FileInventory, HardLinksThatPartOrJoinAreFound) {
  Builder joined;
  const std::size_t object = joined.child(0, "a");
  joined.link(0, "b", object);
  Builder parted;
  parted.child(0, "a");
  parted.child(0, "b");
  EXPECT_EQ(texts(compare(joined, parted)),
            Texts{"hard link! \"/b\" is the object \"/a\" in the original, another one in the "
                  "compressed file"});
  EXPECT_EQ(texts(compare(parted, joined)),
            Texts{"hard link! \"/b\" is the object \"/a\" in the compressed file, another one in "
                  "the original"});
}

TEST(FileInventory, OrderCountsWhereItIsTracked) {
  Builder a;
  a.child(0, "x");
  a.child(0, "left_out");
  a.child(0, "y");
  Builder b;
  b.child(0, "y");
  b.child(0, "x");
  InventoryRules rules;
  rules.wanted = [](const std::string& path) { return path != "/left_out"; };
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  a.file.objects[0].ordered = true;
  EXPECT_EQ(texts(compare(a, b, rules)),
            Texts{"link order! group \"/\" tracks the order of its links in the original only"});
  b.file.objects[0].ordered = true;
  EXPECT_EQ(compare(a, b, rules).counts.at("link order").n_failing, 1U);
  rules.other_writer = true;
  EXPECT_EQ(compare(a, b, rules).counts.at("link order").n_listed, 1U);
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  rules.other_writer = false;
  std::swap(b.file.objects[0].links[0], b.file.objects[0].links[1]);
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
}

/// An integer type of 4 bytes.
DescribedType integer(bool big_endian) {
  DescribedType type;
  type.kind = DescribedType::Kind::integer;
  type.n_bytes = 4;
  type.is_signed = type.ordinary = true;
  type.big_endian = big_endian;
  type.facts = {{"class", "integer"},
                {kByteOrderFact, big_endian ? "big-endian" : "little-endian"}};
  return type;
}

StructureFindings compare(const DescribedObject& a, const DescribedObject& b,
                          const ObjectRules& rules = {}) {
  StructureFindings findings;
  compare_described("/d", a, b, rules, findings);
  return findings;
}

TEST(FileInventory, ACodecMayChangeStorageAndWithLossByteOrder) {
  DescribedObject a;
  a.kind = ObjectKind::dataset;
  a.type = integer(true);
  a.facts = {{"fill value", "1"}, {"chunk shape", "2x2", false}, {"checksum", "Fletcher's", false}};
  DescribedObject b = a;
  b.type = integer(false);
  b.facts = {{"fill value", "1"}, {"chunk shape", "4x4", false}};
  StructureFindings found = compare(a, b);
  EXPECT_EQ(texts(found),
            (Texts{"byte order! dataset \"/d\": byte order is big-endian in the original, "
                   "little-endian in the compressed file",
                   "chunk shape dataset \"/d\": chunk shape is 2x2 in the original, 4x4 in the "
                   "compressed file",
                   "checksum dataset \"/d\": checksum is Fletcher's in the original, absent in "
                   "the compressed file"}));
  ObjectRules rules;
  rules.lossy = true;
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  b.type->facts[0].second = "floating point";
  EXPECT_EQ(compare(a, b, rules).n_failing(), 1U);
  b = a;
  b.facts[0].value = "2";
  EXPECT_EQ(compare(a, b, rules).counts.at("fill value").n_failing, 1U);
}

DescribedAttribute attribute(const std::string& name, std::vector<std::string> values) {
  DescribedAttribute made;
  made.name = name;
  made.type = integer(false);
  made.shape = "1";
  made.values = std::move(values);
  return made;
}

/// An attribute with a text of one length, or of variable length.
DescribedAttribute text(const std::string& name, const std::string& value, bool variable) {
  DescribedAttribute made;
  made.name = name;
  made.type.kind = variable ? DescribedType::Kind::variable_text : DescribedType::Kind::fixed_text;
  made.type.facts = {{"length", variable ? "variable" : std::to_string(value.size())}};
  made.shape = variable ? "1" : "scalar";
  made.values = {'"' + value + '"'};
  return made;
}

TEST(FileInventory, AnotherNetcdfLibraryMayChooseTheFormOfTextsAndFillValues) {
  DescribedObject a;
  a.kind = ObjectKind::dataset;
  a.facts = {{kFillValueAspect, std::string(kDefaultFill)}};
  a.attributes = {text("units", "m", false), text("note", "", false)};
  a.attributes[1].values.clear();
  a.attributes.push_back(attribute("_Netcdf4Coordinates", {"dimensions /x"}));
  a.attributes[2].meaning = DescribedAttribute::Meaning::at_least;
  DescribedObject b = a;
  b.facts = {{kFillValueAspect, "-1"}};
  b.attributes = {text("units", "m", true), text("note", "", true)};
  EXPECT_EQ(compare(a, b).n_failing(), 6U);
  ObjectRules rules;
  rules.other_writer = true;
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  EXPECT_EQ(compare(a, b, rules).counts.at("form of texts").n_listed, 2U);
  b.attributes[0] = text("units", "km", true);
  EXPECT_GT(compare(a, b, rules).n_failing(), 0U);
  EXPECT_FALSE(compare(a, b, rules).fails_in_values());
  a.facts = {{kFillValueAspect, "1"}};
  EXPECT_EQ(compare(a, b, rules).counts.at(kFillValueAspect).n_failing, 1U);
}

TEST(FileInventory, AttributesAreComparedByWhatTheyMean) {
  DescribedObject a;
  DescribedObject b;
  a.attributes = {attribute("x", {"1"}), attribute("DIMENSION_LIST", {"dimension 0: /x"}),
                  attribute("tailrace_codec", {"1"})};
  a.attributes[1].meaning = DescribedAttribute::Meaning::at_least;
  b.attributes = {attribute("DIMENSION_LIST", {"dimension 1: /y", "dimension 0: /x"}),
                  attribute("CLASS", {"\"DIMENSION_SCALE\""}), attribute("x", {"1"})};
  EXPECT_EQ(compare(a, b).n_failing(), 0U);
  EXPECT_EQ(compare(a, b).counts.at("attribute").n_listed, 1U);
  EXPECT_EQ(compare(b, a).n_failing(), 2U);
  b.attributes.push_back(attribute("more", {"1"}));
  EXPECT_EQ(compare(a, b).n_failing(), 1U);
  ObjectRules rules;
  rules.ignored_attribute = [](const std::string& name) { return name == "more"; };
  EXPECT_EQ(compare(a, b, rules).n_failing(), 0U);
  EXPECT_EQ(compare(a, b, rules).n_ignored_attributes, 1U);
}

TEST(FileInventory, OfManyDifferencesTheFirstAreStoredAndAllAreCounted) {
  StructureFindings one;
  for (int i = 0; i < 150; ++i) one.add({"/d" + std::to_string(i), "type", "text", true});
  one.add({"/d", "filters", "text", false});
  StructureFindings all;
  all.merge(one);
  all.merge(one);
  EXPECT_EQ(all.n_failing(), 300U);
  EXPECT_EQ(all.differences.size(), StructureFindings::most_of_aspect + 2);
  EXPECT_EQ(all.counts.at("filters").n_listed, 2U);
}

class NoReferences final : public ReferenceNames {
 public:
  std::string object(std::span<const std::byte>) override { return "/target"; }
  std::string region(std::span<const std::byte>) override { return "/target all"; }
};

std::string text_of(const DescribedType& type, const void* value) {
  NoReferences names;
  std::string text;
  add_value_text(type, static_cast<const std::byte*>(value), names, text);
  return text;
}

TEST(DescribedType, TextsStateValuesExactlyWhateverTheirByteOrder) {
  const std::int32_t little = -2;
  const std::int32_t big = static_cast<std::int32_t>(__builtin_bswap32(std::uint32_t(little)));
  EXPECT_EQ(text_of(integer(false), &little), "-2");
  EXPECT_EQ(text_of(integer(true), &big), "-2");
  DescribedType text;
  text.kind = DescribedType::Kind::fixed_text;
  text.n_bytes = 4;
  EXPECT_EQ(text_of(text, "a\"\\"), "\"a\\\"\\\\\"");
  DescribedType pair;
  pair.kind = DescribedType::Kind::compound;
  pair.n_bytes = 12;
  pair.parts = {{"member \"t\"", 0, 1, {text}}, {"member \"n\"", 8, 1, {integer(false)}}};
  std::array<char, 12> bytes{'a', 'b', 'c', '\0', 0, 0, 0, 0, 7, 0, 0, 0};
  EXPECT_EQ(text_of(pair, bytes.data()), "{\"abc\", 7}");
  EXPECT_FALSE(is_its_bytes(pair));
  DescribedType named = integer(false);
  named.kind = DescribedType::Kind::enumeration;
  named.parts = {{"base type", 0, 1, {integer(false)}}};
  named.names = {{"two", {std::byte{2}, std::byte{}, std::byte{}, std::byte{}}}};
  const std::int32_t two = 2;
  EXPECT_EQ(text_of(named, &two), "two");
  EXPECT_EQ(text_of(named, &little), "(-2)");
}

TEST(DescribedType, DifferencesNameTheirPlace) {
  DescribedType a;
  a.kind = DescribedType::Kind::compound;
  a.facts = {{"class", "compound"}};
  a.parts = {{"member \"n\"", 0, 1, {integer(true)}}};
  DescribedType b = a;
  EXPECT_EQ(difference_of_types(a, b).what, "");
  b.parts[0].type = {integer(false)};
  const TypeDifference found = difference_of_types(a, b);
  EXPECT_EQ(found.what, "byte order of member \"n\"");
  EXPECT_FALSE(found.only_byte_order);
  EXPECT_TRUE(difference_of_types(integer(true), integer(false)).only_byte_order);
  b.parts.push_back(a.parts[0]);
  b.parts[0] = a.parts[0];
  EXPECT_EQ(difference_of_types(a, b).what, "number of members");
}

}  // namespace
}  // namespace tailrace
