// Converts between the engine's values and Python's. Failures become exceptions, models become
// tuples. Reports become dictionaries of the fields that verbs/report_fields.hpp lists, in their
// order.

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

/// A Status passed to Python, where tailrace._errors makes the exception.
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

/// Register the translation of StatusError to Python exceptions.
void register_errors(nanobind::module_& module);

/// Convert a model type to the name that both sides use: NumPy's ("f4", "i8", ...), "char", "text",
/// "other".
std::string type_to_python(ModelType type);
ModelType type_from_python(const std::string& name);

/// Convert an attribute to (name, type, n_values, bytes or list of str).
nanobind::tuple attribute_to_python(const ModelAttribute& attribute);
ModelAttribute attribute_from_python(const std::string& name, const std::string& type,
                                     std::uint64_t n_values, const nanobind::object& value);

/// Convert a model to a tuple of four: groups ((path, parent), ...); dimensions ((name, group,
/// length, unlimited, anonymous), ...); variables ((name, group, type, dimensions, no_fill), ...);
/// and whether it is netCDF-4.
nanobind::tuple model_to_python(const NetcdfModel& model);

/// Make a slab from three lists of numbers.
Slab slab_from_python(const std::vector<std::uint64_t>& start,
                      const std::vector<std::uint64_t>& count,
                      const std::vector<std::uint64_t>& stride);

/// Move the communicator out of the object from the module _mpi; null for None. Works once per
/// object.
std::unique_ptr<Comm> comm_from_python(const nanobind::object& comm);

/// Convert a text of HDF5, which may contain any bytes; bytes that are not UTF-8 become surrogates.
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
    // Use None, like null in JSON, which has no infinity.
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
