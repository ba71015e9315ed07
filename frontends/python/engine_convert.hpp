// Between the engine's values and Python's: failures become exceptions, models become tuples,
// reports dictionaries of the fields that verbs/report_fields.hpp lists, in their order.

#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/comm.hpp"
#include "core/slab.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/status.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace::python {

/// A Status on its way to Python, where tailrace._errors makes the exception of it.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

inline void check(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <class T>
T take(Result<T> result) {
  check(result.status());
  return std::move(*result);
}

/// Register how a StatusError is raised in Python.
void register_errors(nanobind::module_& module);

/// "f32"-like names that both sides use for model types: NumPy's ("f4", "i8", ...), "char", "text",
/// "other".
std::string type_to_python(ModelType type);
ModelType type_from_python(const std::string& name);

/// (name, type, n_values, bytes or list of str).
nanobind::tuple attribute_to_python(const ModelAttribute& attribute);
ModelAttribute attribute_from_python(const std::string& name, const std::string& type,
                                     std::uint64_t n_values, const nanobind::object& value);

/// ((path, parent), ...), ((name, group, length, unlimited, anonymous), ...),
/// ((name, group, type, dimensions, no_fill), ...), whether it is netCDF-4.
nanobind::tuple model_to_python(const NetcdfModel& model);

/// Three lists of numbers.
Slab slab_from_python(const std::vector<std::uint64_t>& start,
                      const std::vector<std::uint64_t>& count,
                      const std::vector<std::uint64_t>& stride);

/// Take the communicator out of what the module _mpi returned; null for None. Once.
std::unique_ptr<Comm> comm_from_python(const nanobind::object& comm);

/// Texts of HDF5 may hold any bytes; those that are not UTF-8 become surrogates.
nanobind::object text_to_python(const std::string& text);

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
