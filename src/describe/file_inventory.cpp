// Differences between the contents of two HDF5 files, except the values of their fields.

#include "describe/file_inventory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/encoding_notes.hpp"
#include "describe/attribute_meaning.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kNoPartner = SIZE_MAX;

std::string member_path(const std::string& group, const std::string& name) {
  return group == "/" ? "/" + name : group + "/" + name;
}

const char* link_kind_text(InventoryLink::Kind kind) {
  switch (kind) {
    case InventoryLink::Kind::hard: return "hard link";
    case InventoryLink::Kind::soft: return "soft link";
    case InventoryLink::Kind::external: return "external link";
    default: return "user-defined link";
  }
}

/// Walks both files along the names of their links.
class Pairing final {
 public:
  Pairing(const FileInventory& original, const FileInventory& copy, const InventoryRules& rules,
          StructureFindings& findings)
      : original_(original),
        copy_(copy),
        rules_(rules),
        findings_(findings),
        partner_(original.objects.size(), kNoPartner),
        partner_of_copy_(copy.objects.size(), kNoPartner),
        pair_index_(original.objects.size(), 0) {}

  std::vector<ObjectPair> run() {
    pair(0, 0, "/");
    return std::move(pairs_);
  }

 private:
  bool counts(const std::string& path) const { return !rules_.wanted || rules_.wanted(path); }
  bool ignored(const std::string& path) const {
    if (!rules_.ignored || !rules_.ignored(path)) return false;
    ++findings_.n_ignored_objects;
    return true;
  }

  void add(const std::string& path, const char* aspect, std::string text, bool fails = true) {
    findings_.add({path, aspect, std::move(text), fails});
  }

  /// Pair two objects, depth first like the walk, so that an object gets the path of the walk. The
  /// walk limits paths and thereby this recursion.
  void pair(std::size_t original, std::size_t copy, const std::string& path) {
    partner_[original] = copy;
    partner_of_copy_[copy] = original;
    pair_index_[original] = pairs_.size();
    pairs_.push_back({original, copy, path});
    if (original_.objects[original].kind == ObjectKind::group) {
      compare_links(original_.objects[original], copy_.objects[copy], path);
    }
  }

  std::string text_of(const FileInventory& file, const InventoryLink& link,
                      const std::string& path) const {
    if (link.kind == InventoryLink::Kind::hard) {
      return object_text(file.objects[link.object].kind, path);
    }
    return fmt::format("{} \"{}\"", link_kind_text(link.kind), path);
  }

  /// Report an object, or a further name of an object, that the copy lacks.
  void missing(const InventoryLink& link, const std::string& path, bool report) {
    if (report) {
      add(path, "missing", text_of(original_, link, path) + " is missing in the compressed file");
    }
    if (link.kind != InventoryLink::Kind::hard) return;
    const InventoryObject& object = original_.objects[link.object];
    if (object.path != path) return;  // The members are reported with the object's first name.
    for (const InventoryLink& member : object.links) {
      const std::string below = member_path(path, member.name);
      if (counts(below) && !ignored(below)) missing(member, below, true);
    }
  }

  void added(const InventoryLink& link, const std::string& path, bool report) {
    if (report) {
      const bool expected = link.kind == InventoryLink::Kind::hard && rules_.may_be_added &&
                            rules_.may_be_added(link.object);
      add(path, "only in the copy",
          text_of(copy_, link, path) + " exists only in the compressed file", !expected);
    }
    if (link.kind != InventoryLink::Kind::hard) return;
    const InventoryObject& object = copy_.objects[link.object];
    if (object.path != path) return;
    for (const InventoryLink& member : object.links) {
      const std::string below = member_path(path, member.name);
      if (counts(below) && !ignored(below)) added(member, below, true);
    }
  }

  void compare_links(const InventoryObject& a, const InventoryObject& b, const std::string& group) {
    std::unordered_map<std::string_view, const InventoryLink*> of_copy;
    for (const InventoryLink& link : b.links) of_copy.emplace(link.name, &link);
    std::vector<std::string_view> shared;
    for (const InventoryLink& link : a.links) {
      const std::string path = member_path(group, link.name);
      const auto found = of_copy.find(link.name);
      const bool other = found == of_copy.end();
      if (!other) shared.push_back(link.name);
      const bool report = counts(path);
      if (report && ignored(path)) {
        // Members of an ignored object may still be wanted.
        if (!other) follow(link, *found->second, path);
        continue;
      }
      if (other) {
        missing(link, path, report);
      } else if (follow(link, *found->second, path) && report) {
        ++findings_.n_links;
        compare_link(link, *found->second, path);
      }
    }
    std::unordered_set<std::string_view> of_original;
    for (const InventoryLink& link : a.links) of_original.insert(link.name);
    for (const InventoryLink& link : b.links) {
      if (of_original.contains(link.name)) continue;
      const std::string path = member_path(group, link.name);
      const bool report = counts(path);
      if (report && ignored(path)) continue;
      added(link, path, report);
    }
    if (counts(group) && !(rules_.ignored && rules_.ignored(group))) {
      compare_order(group, a, b, shared);
    }
  }

  /// Pair the objects of two hard links. @returns false if objects of different kinds were met.
  bool follow(const InventoryLink& a, const InventoryLink& b, const std::string& path) {
    const bool hard = a.kind == InventoryLink::Kind::hard && b.kind == InventoryLink::Kind::hard;
    if (!hard) return true;
    if (partner_[a.object] != kNoPartner || partner_of_copy_[b.object] != kNoPartner) return true;
    const ObjectKind kind = original_.objects[a.object].kind;
    const ObjectKind of_copy = copy_.objects[b.object].kind;
    if (kind == of_copy) {
      pair(a.object, b.object, path);
      return true;
    }
    if (counts(path) && !(rules_.ignored && rules_.ignored(path))) {
      add(path, "kind",
          fmt::format("{} is a {} in the compressed file", object_text(kind, path),
                      object_kind_text(of_copy)));
    }
    return false;
  }

  void compare_link(const InventoryLink& a, const InventoryLink& b, const std::string& path) {
    if (a.kind != b.kind) {
      add(path, "link",
          fmt::format("\"{}\" is a {} in the original, a {} in the compressed file", path,
                      link_kind_text(a.kind), link_kind_text(b.kind)));
    } else if (a.kind != InventoryLink::Kind::hard) {
      if (a.target == b.target) return;
      add(path, "link",
          fmt::format(
              "{} \"{}\" points to \"{}\" in the original, to \"{}\" in the compressed file",
              link_kind_text(a.kind), path, shortened_text(a.target), shortened_text(b.target)));
    } else if (partner_[a.object] != b.object) {
      const std::size_t other = partner_[a.object];
      const std::string which =
          other == kNoPartner
              ? fmt::format(
                    "is the object \"{}\" in the compressed file, another one in the "
                    "original",
                    copy_.objects[b.object].path)
              : fmt::format(
                    "is the object \"{}\" in the original, another one in the compressed "
                    "file",
                    pairs_[pair_index_[a.object]].path);
      add(path, "hard link", fmt::format("\"{}\" {}", path, which));
    }
  }

  void compare_order(const std::string& path, const InventoryObject& a, const InventoryObject& b,
                     const std::vector<std::string_view>& shared) {
    if (!a.ordered) return;
    const bool fails = !rules_.other_writer;
    if (!b.ordered) {
      add(path, "link order",
          fmt::format("group \"{}\" tracks the order of its links in the original only", path),
          fails);
      return;
    }
    const std::unordered_set<std::string_view> both(shared.begin(), shared.end());
    std::size_t at = 0;
    for (const InventoryLink& link : b.links) {
      if (!both.contains(link.name)) continue;
      if (link.name == shared[at++]) continue;
      add(path, "link order",
          fmt::format("group \"{}\": its links have a different order: \"{}\" instead of \"{}\"",
                      path, link.name, shared[at - 1]),
          fails);
      return;
    }
  }

  const FileInventory& original_;
  const FileInventory& copy_;
  const InventoryRules& rules_;
  StructureFindings& findings_;
  std::vector<std::size_t> partner_;          ///< Indexed by object of the original.
  std::vector<std::size_t> partner_of_copy_;  ///< Indexed by object of the copy.
  std::vector<std::size_t> pair_index_;       ///< Index into pairs_; indexed by object of the
                                              ///< original.
  std::vector<ObjectPair> pairs_;
};

/// Compares two objects.
class ObjectComparison final {
 public:
  ObjectComparison(const std::string& path, const DescribedObject& original,
                   const DescribedObject& copy, const ObjectRules& rules,
                   StructureFindings& findings)
      : path_(path),
        who_(object_text(original.kind, path)),
        original_(original),
        copy_(copy),
        rules_(rules),
        findings_(findings) {}

  void run() {
    if (original_.type && copy_.type) compare_types();
    compare_facts();
    compare_attributes();
  }

 private:
  void add(const char* aspect, const std::string& text, bool fails = true) {
    findings_.add({path_, aspect, who_ + ": " + text, fails});
  }

  static std::string versus(const std::string& what, const std::string& original,
                            const std::string& copy) {
    return fmt::format("{} is {} in the original, {} in the compressed file", what,
                       shortened_text(original), shortened_text(copy));
  }

  void compare_types() {
    const TypeDifference found = difference_of_types(*original_.type, *copy_.type);
    if (found.what.empty()) return;
    const bool by_codec = rules_.lossy && found.only_byte_order;
    add(found.only_byte_order ? "byte order" : "type",
        versus(found.what, found.original, found.copy), !by_codec);
  }

  void compare_facts() {
    for (const DescribedFact& fact : original_.facts) {
      const auto other = std::ranges::find_if(copy_.facts, [&](const DescribedFact& each) {
        return std::string_view(each.aspect) == fact.aspect;
      });
      const bool absent = other == copy_.facts.end();
      const std::string value = absent ? "absent" : other->value;
      const bool same = !absent && !fact.meaning.empty() && fact.meaning == other->meaning;
      if (fact.value != value && !same)
        add(fact.aspect, versus(fact.aspect, fact.value, value),
            fails(fact) && !is_choice_of_writer(fact, value));
    }
    for (const DescribedFact& fact : copy_.facts) {
      const bool known = std::ranges::any_of(original_.facts, [&](const DescribedFact& each) {
        return std::string_view(each.aspect) == fact.aspect;
      });
      if (!known) add(fact.aspect, versus(fact.aspect, "absent", fact.value), fails(fact));
    }
  }

  bool fails(const DescribedFact& fact) const {
    const std::string_view aspect = fact.aspect;
    const bool elsewhere = aspect == kVirtualSourcesAspect || aspect == kExternalFilesAspect;
    return fact.fails && !(elsewhere && rules_.follow_external);
  }

  /// True if two netCDF libraries may differ in this: one sets netCDF's fill value where a variable
  /// has no _FillValue, the other leaves HDF5's.
  bool is_choice_of_writer(const DescribedFact& original, std::string_view in_copy) const {
    return rules_.other_writer && std::string_view(original.aspect) == kFillValueAspect &&
           (original.value == kDefaultFill || in_copy == kDefaultFill);
  }

  bool counts(const std::string& name) const { return !is_own_attribute(name); }

  bool ignored(const std::string& name) {
    if (!rules_.ignored_attribute || !rules_.ignored_attribute(name)) return false;
    ++findings_.n_ignored_attributes;
    return true;
  }

  void compare_attributes() {
    std::unordered_map<std::string_view, const DescribedAttribute*> of_copy;
    for (const DescribedAttribute& attribute : copy_.attributes) {
      of_copy.emplace(attribute.name, &attribute);
    }
    std::unordered_set<std::string_view> of_original;
    std::vector<std::string_view> shared;
    for (const DescribedAttribute& attribute : original_.attributes) {
      of_original.insert(attribute.name);
      if (!counts(attribute.name) || ignored(attribute.name)) continue;
      const auto found = of_copy.find(attribute.name);
      if (found != of_copy.end()) {
        ++findings_.n_attributes;
        compare_attribute(attribute, *found->second);
        if (!is_dimension_attribute(attribute.name)) shared.push_back(attribute.name);
      } else if (attribute.meaning == DescribedAttribute::Meaning::present) {
        add("attribute", "attribute \"" + attribute.name + "\" is missing", false);
      } else if (attribute.meaning != DescribedAttribute::Meaning::at_least ||
                 !attribute.values.empty()) {
        const bool optional = attribute.name == "_Netcdf4Coordinates";
        add("attribute", "attribute \"" + attribute.name + "\" is missing",
            !(rules_.other_writer && optional));
      }
    }
    for (const DescribedAttribute& attribute : copy_.attributes) {
      if (of_original.contains(attribute.name)) continue;
      if (!counts(attribute.name) || ignored(attribute.name)) continue;
      add("attribute", "attribute \"" + attribute.name + "\" exists only in the compressed file",
          !is_dimension_attribute(attribute.name) && !attribute.name.starts_with("_Quantize"));
    }
    compare_attribute_order(shared);
  }

  void compare_attribute(const DescribedAttribute& a, const DescribedAttribute& b) {
    const std::string which = "attribute \"" + a.name + "\"";
    if (a.meaning == DescribedAttribute::Meaning::present) return;
    if (!a.unreadable.empty() || !b.unreadable.empty()) {
      const bool original = !a.unreadable.empty();
      return add("attribute", fmt::format("{} cannot be read in the {}: {}", which,
                                          original ? "original" : "compressed file",
                                          original ? a.unreadable : b.unreadable));
    }
    if (a.meaning == DescribedAttribute::Meaning::at_least) return compare_sets(a, b);
    if (differs_in_form(a, b)) {
      return add("attribute",
                 fmt::format("{} has another form: {}, but {} in the original", which,
                             shortened_text(b.values[0]), shortened_text(a.values[0])),
                 false);
    }
    if (is_same_text(a, b)) return;
    const TypeDifference type = difference_of_types(a.type, b.type);
    if (!type.what.empty()) {
      add("attribute type", versus(type.what + " of " + which, type.original, type.copy));
    }
    if (a.shape != b.shape) {
      return add("attribute", versus("shape of " + which, a.shape, b.shape));
    }
    for (std::size_t i = 0; i < a.values.size() && i < b.values.size(); ++i) {
      if (a.values[i] == b.values[i]) continue;
      if (is_length_of_dimension(a, i)) continue;
      const std::string where = a.values.size() > 1 ? fmt::format("[{}]", i) : "";
      return add("attribute",
                 fmt::format("{}{} is {}, but {} in the original", which, where,
                             shortened_text(b.values[i]), shortened_text(a.values[i])));
    }
  }

  /// True for two different texts of one meaning, such as those of a unit of time.
  static bool differs_in_form(const DescribedAttribute& a, const DescribedAttribute& b) {
    if (a.values.size() != 1 || b.values.size() != 1 || a.values == b.values) return false;
    const auto unquoted = [](std::string_view text) {
      const bool quoted = text.size() > 1 && text.starts_with('"') && text.ends_with('"');
      return quoted ? text.substr(1, text.size() - 2) : std::string_view();
    };
    return have_same_meaning(a.name, unquoted(a.values[0]), unquoted(b.values[0]));
  }

  static bool is_text(const DescribedType& type) {
    return type.kind == DescribedType::Kind::fixed_text ||
           type.kind == DescribedType::Kind::variable_text;
  }

  /// Values of an attribute of texts. netCDF-4 stores an empty text without values.
  static std::vector<std::string> texts_of(const DescribedAttribute& attribute) {
    return attribute.values.empty() ? std::vector<std::string>{"\"\""} : attribute.values;
  }

  /// True if two netCDF libraries wrote one text, or several, as characters and as strings. Lists
  /// the difference.
  bool is_same_text(const DescribedAttribute& a, const DescribedAttribute& b) {
    if (!rules_.other_writer || !is_text(a.type) || !is_text(b.type)) return false;
    if (texts_of(a) != texts_of(b)) return false;
    if (difference_of_types(a.type, b.type).what.empty() && a.shape == b.shape) return true;
    add("form of texts", "attribute \"" + a.name + "\" has the same text in another form", false);
    return true;
  }

  /// True for the NAME of a dimension without a variable, in which netCDF-4 writes its length.
  static bool is_length_of_dimension(const DescribedAttribute& a, std::size_t index) {
    return a.name == "NAME" &&
           a.values[index].starts_with('"' + std::string(dimension_without_variable));
  }

  void compare_sets(const DescribedAttribute& a, const DescribedAttribute& b) {
    std::vector<std::string> more = b.values;
    std::ranges::sort(more);
    std::vector<std::string> wanted = a.values;
    std::ranges::sort(wanted);
    for (const std::string& value : wanted) {
      if (std::ranges::binary_search(more, value)) continue;
      return add("attribute", fmt::format("attribute \"{}\" lacks {}, which it has in the original",
                                          a.name, shortened_text(value)));
    }
  }

  void compare_attribute_order(const std::vector<std::string_view>& shared) {
    if (!original_.attributes_ordered || shared.empty()) return;
    const bool fails = !rules_.other_writer;
    if (!copy_.attributes_ordered) {
      return add("attribute order", "the order of attributes is tracked in the original only",
                 fails);
    }
    const std::unordered_set<std::string_view> both(shared.begin(), shared.end());
    std::size_t at = 0;
    for (const DescribedAttribute& attribute : copy_.attributes) {
      if (!both.contains(attribute.name)) continue;
      if (attribute.name == shared[at++]) continue;
      return add("attribute order",
                 fmt::format("attributes have a different order: \"{}\" instead of \"{}\"",
                             attribute.name, shared[at - 1]),
                 fails);
    }
  }

  const std::string& path_;
  std::string who_;
  const DescribedObject& original_;
  const DescribedObject& copy_;
  const ObjectRules& rules_;
  StructureFindings& findings_;
};

}  // namespace

void StructureFindings::add(StructureDifference difference) {
  Count& count = counts[difference.aspect];
  std::uint64_t& n = difference.fails ? count.n_failing : count.n_listed;
  if (n++ < most_of_aspect) differences.push_back(std::move(difference));
}

void StructureFindings::merge(const StructureFindings& other) {
  std::map<std::string, Count> stored;
  for (const StructureDifference& difference : other.differences) {
    ++(difference.fails ? stored[difference.aspect].n_failing : stored[difference.aspect].n_listed);
    add(difference);
  }
  for (const auto& [aspect, count] : other.counts) {
    counts[aspect].n_failing += count.n_failing - stored[aspect].n_failing;
    counts[aspect].n_listed += count.n_listed - stored[aspect].n_listed;
  }
  n_objects += other.n_objects;
  n_links += other.n_links;
  n_attributes += other.n_attributes;
  n_datasets += other.n_datasets;
  n_ignored_objects += other.n_ignored_objects;
  n_ignored_attributes += other.n_ignored_attributes;
}

std::uint64_t StructureFindings::n_failing() const {
  std::uint64_t n = 0;
  for (const auto& [aspect, count] : counts) n += count.n_failing;
  return n;
}

bool StructureFindings::fails_in_values() const {
  constexpr std::array<std::string_view, 9> others = {
      "attribute",  "attribute order", "attribute type",   "comment",   kFillValueAspect,
      "link order", "maximum shape",   "only in the copy", "user block"};
  return std::ranges::any_of(counts, [&](const auto& entry) {
    return entry.second.n_failing > 0 && std::ranges::find(others, entry.first) == others.end();
  });
}

const char* object_kind_text(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::group: return "group";
    case ObjectKind::dataset: return "dataset";
    case ObjectKind::named_type: return "named type";
    default: return "object of an unknown kind";
  }
}

std::string object_text(ObjectKind kind, const std::string& path) {
  return fmt::format("{} \"{}\"", object_kind_text(kind), path);
}

std::string shortened_text(const std::string& text) {
  constexpr std::size_t most_bytes = 100;
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  // Bytes whose upper bits are 1 and 0 continue a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

bool is_dimension_attribute(std::string_view name) {
  constexpr std::array<std::string_view, 8> names = {
      "CLASS",         "NAME",        "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates",
      "_Netcdf4Dimid", "_nc3_strict", "_NCProperties"};
  return std::ranges::find(names, name) != names.end();
}

std::vector<ObjectPair> pair_objects(const FileInventory& original, const FileInventory& copy,
                                     const InventoryRules& rules, StructureFindings& findings) {
  return Pairing(original, copy, rules, findings).run();
}

void compare_described(const std::string& path, const DescribedObject& original,
                       const DescribedObject& copy, const ObjectRules& rules,
                       StructureFindings& findings) {
  ++findings.n_objects;
  ObjectComparison(path, original, copy, rules, findings).run();
}

}  // namespace tailrace
