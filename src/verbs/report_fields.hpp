// A report's numbers, listed once: for JSON, for Python's dictionaries and for what comes next.
//
// Beside each report struct stands `report_fields(report, visit)`, which calls visit(name, value)
// for everything that the report tells, in the order of its documents. translated<Maker>() builds
// any tree of values from it; a Maker knows how a record, a list, a text and a number are made.
// Values are numbers, texts, lists of these, other reports, and std::optional of all: none is null.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tailrace::verbs {

/// The version of the JSON documents of all commands; raised when a key changes its meaning.
inline constexpr int json_schema_version = 1;

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

/// Maker::Value of a report, or of a value in one. A vector of pairs is a record of its own names.
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

/// What every document begins with; `command` may be empty.
template <class Visit>
void document_head(std::string_view command, Visit&& visit) {
  visit("schema_version", json_schema_version);
  if (!command.empty()) visit("command", command);
}

}  // namespace tailrace::verbs
