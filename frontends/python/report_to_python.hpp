// Reports as dictionaries: the fields that verbs/report_fields.hpp lists, in their order.

#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "python/engine_convert.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace::python {

struct PythonMaker {
  using Value = nanobind::object;
  static Value record() { return nanobind::dict(); }
  static void set(Value& record, std::string_view name, const Value& value) {
    record[text(name)] = value;
  }
  static Value list() { return nanobind::list(); }
  static void append(Value& list, const Value& value) { list.attr("append")(value); }
  static Value text(std::string_view value) { return text_to_python(std::string(value)); }
  template <class Number>
  static Value number(Number value) {
    // As in JSON, which has no infinity.
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(value)) return null();
    }
    return nanobind::cast(value);
  }
  static Value null() { return nanobind::none(); }
};

template <class Report>
nanobind::object report_to_python(const Report& report) {
  return verbs::translated<PythonMaker>(report);
}

}  // namespace tailrace::python
