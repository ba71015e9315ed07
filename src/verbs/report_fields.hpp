// A report's values, listed once for JSON, for Python's dictionaries and for other formats.
//
// Each report struct has a function `report_fields(report, visit)` in its header. It calls
// visit(name, value) for everything in the report, in document order. translated<Maker>() builds a
// tree of values from it; Maker creates records, lists, texts and numbers. Values are numbers,
// texts, lists of these, other reports, and std::optional of any of them; an empty one becomes
// null.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tailrace::verbs {

/// The version of the JSON documents of all commands; raised when a key changes its meaning.
inline constexpr int kJsonSchemaVersion = 1;

struct AnyField {
  template <class T>
  void operator()(std::string_view, const T&) const {}
};

template <class T>
concept Reported = requires(const T& report) {
  report_fields(report, AnyField());
};

template <class T>
struct IsNamed : std::false_type {};
template <class T>
struct IsNamed<std::vector<std::pair<std::string, T>>> : std::true_type {};

/// Convert a report, or a value in one, to Maker::Value. A vector of pairs becomes a record with
/// the pairs' names.
template <class Maker, class T>
typename Maker::Value translated(const T& value) {
  if constexpr (Reported<T>) {
    auto record = Maker::record();
    report_fields(value, [&](std::string_view name, const auto& field) {
      Maker::set(record, name, translated<Maker>(field));
    });
    return record;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return Maker::text(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return Maker::number(value);
  } else if constexpr (IsNamed<T>::value) {
    auto record = Maker::record();
    for (const auto& [name, field] : value) Maker::set(record, name, translated<Maker>(field));
    return record;
  } else if constexpr (requires { value.has_value(); }) {
    return value ? translated<Maker>(*value) : Maker::null();
  } else {
    auto list = Maker::list();
    for (const auto& entry : value) Maker::append(list, translated<Maker>(entry));
    return list;
  }
}

/// A number that was not measured is null, not 0.
template <class T>
std::optional<T> value_if(bool measured, T value) {
  return measured ? std::optional<T>(std::move(value)) : std::nullopt;
}

/// Start of every document; `command` may be empty.
template <class Visit>
void document_head(std::string_view command, Visit&& visit) {
  visit("schema_version", kJsonSchemaVersion);
  if (!command.empty()) visit("command", command);
}

}  // namespace tailrace::verbs
