// Reports as JSON: the fields that verbs/report_fields.hpp lists, in their order.

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "verbs/report_fields.hpp"

namespace tailrace::report {

struct JsonMaker {
  using Value = nlohmann::ordered_json;
  static Value record() { return Value::object(); }
  static void set(Value& record, std::string_view name, Value value) {
    record[std::string(name)] = std::move(value);
  }
  static Value list() { return Value::array(); }
  static void append(Value& list, Value value) { list.push_back(std::move(value)); }
  static Value text(std::string_view value) { return std::string(value); }
  template <class Number>
  static Value number(Number value) {
    return value;
  }
  static Value null() { return nullptr; }
};

template <class Report>
nlohmann::ordered_json json_of(const Report& report) {
  return verbs::translated<JsonMaker>(report);
}

/// A JSON document, indented, with each array of plain numbers on one line.
std::string json_text(const nlohmann::ordered_json& document);

}  // namespace tailrace::report
