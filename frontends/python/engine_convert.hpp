// Between the engine's values and Python's: failures become exceptions, models become tuples.

#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/slab.hpp"
#include "core/status.hpp"
#include "netcdf/netcdf_model.hpp"

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

}  // namespace tailrace::python
