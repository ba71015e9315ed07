// Comparison of surveys, merging, and the remarks.

#include "describe/survey_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/byte_stream.hpp"
#include "core/utf8.hpp"

namespace tailrace {
namespace {

/// True for attributes without which a dataset's values would have another meaning.
bool gives_meaning(std::string_view name) {
  static constexpr std::array<std::string_view, 8> names = {
      "units",      "calendar",      "scale_factor", "add_offset",
      "_FillValue", "missing_value", "_Unsigned",    "_Encoding"};
  return std::ranges::find(names, name) != names.end();
}

/// True for attributes that record how a file was made, which nearly always differ.
bool is_history(std::string_view name) {
  static constexpr std::array<std::string_view, 14> names = {"history",
                                                             "history_of_appended_files",
                                                             "NCO",
                                                             "CDO",
                                                             "nco_openmp_thread_number",
                                                             "creation_date",
                                                             "date_created",
                                                             "date_modified",
                                                             "tracking_id",
                                                             "uuid",
                                                             "filename",
                                                             "timeStamp",
                                                             "date",
                                                             "id"};
  return std::ranges::find(names, name) != names.end();
}

std::string named_object(SurveyedKind kind, const std::string& path) {
  static constexpr std::array<std::string_view, 4> kinds = {"group", "dataset", "named type",
                                                            "link"};
  return fmt::format("{} \"{}\"", kinds[static_cast<std::size_t>(kind)], path);
}

/// "(/time, /y)"
std::string dimensions_text(const std::vector<std::string>& dimensions) {
  std::string text;
  for (const std::string& dimension : dimensions) {
    text += (text.empty() ? "" : ", ") + (dimension.empty() ? std::string("-") : dimension);
  }
  return "(" + text + ")";
}

/// Calls visit(name) for each attribute that differs between two objects; null: no attributes.
template <class Visit>
void for_each_difference(const SurveyedObject* a, const SurveyedObject* b, Visit&& visit) {
  static const SurveyedObject none;
  const auto& of_a = (a != nullptr ? *a : none).attributes;
  const auto& of_b = (b != nullptr ? *b : none).attributes;
  auto x = of_a.begin();
  auto y = of_b.begin();
  while (x != of_a.end() || y != of_b.end()) {
    if (y == of_b.end() || (x != of_a.end() && x->first < y->first)) {
      visit((x++)->first);
    } else if (x == of_a.end() || y->first < x->first) {
      visit((y++)->first);
    } else {
      if (x->second != y->second) visit(x->first);
      ++x;
      ++y;
    }
  }
}

using ByPath = std::unordered_map<std::string_view, const SurveyedObject*>;

ByPath by_path(const DimensionSurvey& survey) {
  ByPath objects;
  for (const SurveyedObject& object : survey.objects) objects.emplace(object.path, &object);
  return objects;
}

const SurveyedObject* find(const ByPath& objects, const std::string& path) {
  const auto found = objects.find(path);
  return found == objects.end() ? nullptr : found->second;
}

}  // namespace

std::vector<std::string> SurveyDifferences::compare(const DimensionSurvey& first,
                                                    const DimensionSurvey& other,
                                                    std::uint64_t source, Rules rules) {
  constexpr const char* reference = "the first file";
  constexpr const char* keep = "--on-different keep-first keeps that of the first file";
  source_ = source;
  found_.clear();
  std::vector<std::string> lines;
  const ByPath firsts = by_path(first);
  const ByPath others = by_path(other);
  const auto compare_attributes = [&](const SurveyedObject* a, const SurveyedObject* b) {
    const SurveyedObject& object = a != nullptr ? *a : *b;
    for_each_difference(a, b, [&](const std::string& name) {
      if (rules.tiles && is_tile_attribute(name)) return;
      if (!rules.keep_first && object.is_dataset() && gives_meaning(name)) {
        lines.push_back(
            fmt::format("{}: attribute \"{}\", which the meaning of the values depends "
                        "on, differs from that in {}; {}",
                        named_object(object.kind, object.path), name, reference, keep));
      } else {
        found_.push_back(
            {is_history(name) ? history : attributes, {object.path, name}, object.kind});
      }
    });
  };
  for (const SurveyedObject& object : first.objects) {
    const SurveyedObject* const there = find(others, object.path);
    // A survey need not list a dataset without attributes.
    if (there == nullptr && object.is_dataset()) {
      compare_attributes(&object, nullptr);
      continue;
    }
    if (there == nullptr || there->kind != object.kind) {
      found_.push_back({objects, {object.path, ""}, object.kind});
      continue;
    }
    if (there->dimensions != object.dimensions) {
      lines.push_back(fmt::format(
          "{}: dimensions {}, but {} in {}", named_object(object.kind, object.path),
          dimensions_text(there->dimensions), dimensions_text(object.dimensions), reference));
    }
    if (object.values && there->values != object.values) {
      const bool scalar = object.dimensions.empty();
      if (!rules.keep_first && !scalar) {
        lines.push_back(fmt::format(
            "{}: it has no unlimited dimension, and its values differ from those in {}; {}",
            named_object(object.kind, object.path), reference, keep));
      } else {
        found_.push_back({values, {object.path, ""}, object.kind});
      }
    }
    compare_attributes(&object, there);
  }
  for (const SurveyedObject& object : other.objects) {
    if (find(firsts, object.path) != nullptr) continue;
    if (object.is_dataset()) {
      compare_attributes(nullptr, &object);
    } else {
      found_.push_back({objects, {object.path, ""}, object.kind});
    }
  }
  return lines;
}

void SurveyDifferences::add(Kind kind, Name name, const Difference& difference) {
  OfKind& of_kind = kinds_[kind];
  const auto [at, added] = of_kind.kept.try_emplace(std::move(name), difference);
  if (!added) {
    at->second.first_source = std::min(at->second.first_source, difference.first_source);
    at->second.n_inputs += difference.n_inputs;
    at->second.n_older += difference.n_older;
  }
  if (of_kind.kept.size() <= kNamesMax) return;
  of_kind.kept.erase(std::prev(of_kind.kept.end()));
  of_kind.more = true;
}

void SurveyDifferences::accept() {
  const bool older = source_ == kOlderSource;
  for (Found& found : found_) {
    add(found.kind, std::move(found.name),
        {found.object, source_, older ? 0U : 1U, older ? 1U : 0U});
  }
  found_.clear();
}

void SurveyDifferences::merge(Comm& comm) {
  ByteWriter mine;
  for (const OfKind& of_kind : kinds_) {
    mine.add(static_cast<std::uint8_t>(of_kind.more));
    mine.add(static_cast<std::uint32_t>(of_kind.kept.size()));
    for (const auto& [name, difference] : of_kind.kept) {
      mine.add_text(name.first);
      mine.add_text(name.second);
      mine.add(difference);
    }
  }
  const std::vector<Bytes> all = comm.gather(mine.bytes(), 0);
  kinds_ = {};
  for (const Bytes& bytes : all) {
    ByteReader reader(bytes);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      kinds_[kind].more = reader.take<std::uint8_t>() != 0 || kinds_[kind].more;
      for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
        std::string path = reader.take_text();
        std::string attribute = reader.take_text();
        add(static_cast<Kind>(kind), {std::move(path), std::move(attribute)},
            reader.take<Difference>());
      }
    }
  }
}

std::vector<std::string> SurveyDifferences::remarks(const DimensionSurvey& first,
                                                    const Names& names) const {
  const ByPath firsts = by_path(first);
  std::vector<std::string> lines;
  const auto where = [&](const Difference& difference) {
    return fmt::format("{} (first: {})", counted(difference.n_inputs, "input"),
                       names.of_source(difference.first_source));
  };
  const auto line_of = [&](const Name& name, const Difference& difference) {
    const std::string& path = name.first;
    const std::string& attribute = name.second;
    const SurveyedObject* const object = find(firsts, path);
    const auto has_attribute = [&] {
      return object != nullptr && std::ranges::any_of(object->attributes, [&](const auto& each) {
               return each.first == attribute;
             });
    };
    const std::string what =
        attribute.empty()
            ? named_object(difference.object, path)
            : fmt::format("{}: attribute \"{}\"", named_object(difference.object, path), attribute);
    if (difference.n_older > 0) {
      return fmt::format("{}: the output and the inputs differ; the output keeps its own", what);
    }
    if (!(attribute.empty() ? object != nullptr : has_attribute())) {
      return fmt::format("{} of {} is not in {}, and so not in the output", what, where(difference),
                         names.reference);
    }
    return fmt::format("{} differs in, or is missing in, {}; that of {} is kept", what,
                       where(difference), names.reference);
  };
  static constexpr std::array<std::string_view, kKinds> plurals = {
      "scalars and fixed datasets", "groups, named types and links", "attributes", ""};
  for (const Kind kind : {values, objects, attributes}) {
    for (const auto& [name, difference] : kinds_[kind].kept) {
      lines.push_back(line_of(name, difference));
    }
    if (!kinds_[kind].more) continue;
    lines.push_back(fmt::format("more {} differ between inputs; the first {} are named",
                                plurals[kind], kNamesMax));
  }
  std::vector<std::string> made;
  for (const auto& [name, difference] : kinds_[history].kept) {
    made.push_back(fmt::format("{}@{}", name.first, name.second));
    if (difference.n_older == 0) made.back() += " in " + where(difference);
  }
  constexpr std::size_t names_in_line = 8;
  if (!made.empty()) {
    lines.push_back(fmt::format("history and provenance attributes differ; those of {} are kept: ",
                                names.reference) +
                    first_names_text(made, names_in_line) +
                    (kinds_[history].more ? " at least" : ""));
  }
  return lines;
}

}  // namespace tailrace
