// Fields and attributes of the C API: define, put, set.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_handle.hpp"
#include "core/option_table.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {
namespace {

Status bad_field(const std::string& path, const std::string& why) {
  return Status(Code::invalid_argument, "field \"" + path + "\": " + why);
}

/// Hint for a call that a step may have once.
std::string ask_for_end_step(const Comm& comm) {
  return comm.n_ranks() == 1 ? "call end_step between two steps"
                             : "did rank " + std::to_string(comm.rank()) + " miss an end_step?";
}

/// Names of a field's dimensions, as tailrace_field_define_named takes them.
struct DimensionNames {
  const char* const* names = nullptr;
  const char* time_name = nullptr;  ///< NULL: "time".
  bool given = false;
};

/// Names of the dataset's dimensions, time included.
Result<std::vector<std::string>> all_names(const DimensionNames& given, const std::string& path,
                                           std::size_t n_dims, bool over_time) {
  std::vector<std::string> names;
  if (!given.given) return names;
  if (n_dims > 0 && given.names == nullptr) return bad_field(path, "`names` must not be NULL");
  if (!over_time && given.time_name != nullptr) {
    return bad_field(path, "a name for the time dimension needs over-time=on");
  }
  if (over_time) names.emplace_back(given.time_name == nullptr ? "time" : given.time_name);
  for (std::size_t d = 0; d < n_dims; ++d) {
    if (given.names[d] == nullptr) {
      return bad_field(path, "name " + std::to_string(d) + " of its dimensions is NULL");
    }
    names.emplace_back(given.names[d]);
  }
  return names;
}

/// True if the field holds the coordinate of its first dimension.
bool is_coordinate(const std::string& path, const std::vector<std::string>& names) {
  return !names.empty() && path.substr(path.rfind('/') + 1) == names.front();
}

Status define(OpenedFile& file, const char* path, tailrace_dtype dtype, std::size_t n_dims,
              const std::uint64_t* shape, const DimensionNames& dimensions,
              const char* options_text, tailrace_field* field) {
  if (path == nullptr) return bad_field("", "argument `path` must not be NULL");
  if (field == nullptr) return bad_field(path, "output argument `field` must not be NULL");
  if (n_dims > 0 && shape == nullptr) return bad_field(path, "argument `shape` must not be NULL");
  if (n_dims > kMaxRank) {
    return bad_field(path, "has " + std::to_string(n_dims) + " dimensions; at most " +
                               std::to_string(kMaxRank) + " are supported");
  }
  const std::optional<DType> known_dtype = dtype_of(dtype);
  if (!known_dtype)
    return bad_field(path, "dtype " + std::to_string(dtype) + " is not a tailrace_dtype");

  FieldDefinition definition{path, *known_dtype, Shape(shape, shape + n_dims), {}};
  const auto set_options = [&](FieldOptions defaults) {
    // A chunk shape from the file's options applies only to fields with its number of dimensions.
    std::optional<Shape>& chunk_shape = defaults.chunk_shape;
    if (chunk_shape && chunk_shape->size() != n_dims) chunk_shape.reset();
    definition.options = std::move(defaults);
    return apply_field_options(options_text == nullptr ? "" : options_text, definition.options)
        .within(definition.name());
  };
  TAILRACE_TRY(set_options(file.field_defaults));
  TAILRACE_TAKE(definition.dimensions,
                all_names(dimensions, path, n_dims, definition.options.over_time));
  if (is_coordinate(path, definition.dimensions)) {
    TAILRACE_TRY(set_options(defaults_of_coordinate(file.field_defaults)));
  }
  TAILRACE_TAKE(const std::size_t index, file.writer->define_field(definition));
  if (file.shapes.size() <= index) {
    file.shapes.resize(index + 1);
    file.paths.resize(index + 1);
  }
  file.shapes[index] = std::move(definition.shape);
  file.paths[index] = definition.path;
  file.field_of_path[definition.path] = index;
  *field = index;
  return Status();
}

/// Return the box that start and count describe for a field of this shape; see tailrace_field_put.
/// A start beyond the shape gets a count of 0; the writer rejects such a box if necessary.
Box box_of(const Shape& shape, const std::uint64_t* start, const std::uint64_t* count) {
  Box box{Shape(shape.size(), 0), Shape(shape.size(), 0)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (start != nullptr) box.start[d] = start[d];
    const std::uint64_t rest = shape[d] > box.start[d] ? shape[d] - box.start[d] : 0;
    box.count[d] = count != nullptr ? count[d] : rest;
  }
  return box;
}

/// Run `action`, which puts values. The C++ and Fortran interfaces leave its failure to the next
/// end_step, so the program may not have received it.
template <class Action>
tailrace_error recorded_put(tailrace_file* file, Action&& action) {
  const bool is_open = file != nullptr && file->opened != nullptr;
  const std::optional<std::uint64_t> before =
      is_open ? file->opened->n_reported : std::optional<std::uint64_t>();
  const tailrace_error error = recorded_on(file, std::forward<Action>(action));
  if (is_open) file->opened->n_reported = before;
  return error;
}

tailrace_error put(tailrace_file* file, tailrace_field field, const std::uint64_t* start,
                   const std::uint64_t* count, const void* values, bool copy,
                   const std::int64_t* strides = nullptr) {
  return recorded_put(file, [&] {
    // An unknown field number also goes to the writer, which stores the failure for end_step.
    const bool known = field < file->opened->shapes.size();
    const Box box = known ? box_of(file->opened->shapes[field], start, count) : Box{};
    return file->opened->writer->put(field, box, values, copy, strides);
  });
}

tailrace_error put_device(tailrace_file* file, tailrace_field field, const std::uint64_t* start,
                          const std::uint64_t* count, const void* values) {
  return recorded_put(file, [&] {
    const bool known = field < file->opened->shapes.size();
    const Box box = known ? box_of(file->opened->shapes[field], start, count) : Box{};
    return file->opened->writer->put_device(field, box, values, file->opened->copy_from_device);
  });
}

template <class Number>
tailrace_error set_numbers(tailrace_file* file, const char* object_path, const char* name,
                           std::size_t n_values, const Number* values) {
  return recorded_on(file, [&]() -> Status {
    if (object_path == nullptr || name == nullptr || values == nullptr || n_values == 0) {
      return Status(
          Code::invalid_argument,
          "attribute \"" + std::string(name ? name : "") +
              "\": path, name and values must not be NULL, and n_values must be at least 1");
    }
    return file->opened->writer->set_attribute(
        object_path, name, AttributeValue{std::vector<Number>(values, values + n_values)});
  });
}

}  // namespace
}  // namespace tailrace

extern "C" {

size_t tailrace_dtype_bytes(tailrace_dtype dtype) {
  const std::optional<tailrace::DType> known = tailrace::dtype_of(dtype);
  return known ? tailrace::dtype_bytes(*known) : 0;
}

tailrace_error tailrace_field_define(tailrace_file* file, const char* path, tailrace_dtype dtype,
                                     size_t n_dims, const uint64_t* shape, const char* options,
                                     tailrace_field* field) {
  if (field != nullptr) *field = TAILRACE_NO_FIELD;
  return tailrace::recorded_on(file, [&] {
    return tailrace::define(*file->opened, path, dtype, n_dims, shape, {}, options, field);
  });
}

tailrace_error tailrace_field_define_named(tailrace_file* file, const char* path,
                                           tailrace_dtype dtype, size_t n_dims,
                                           const uint64_t* shape, const char* const* names,
                                           const char* time_name, const char* options,
                                           tailrace_field* field) {
  if (field != nullptr) *field = TAILRACE_NO_FIELD;
  return tailrace::recorded_on(file, [&] {
    return tailrace::define(*file->opened, path, dtype, n_dims, shape, {names, time_name, true},
                            options, field);
  });
}

tailrace_error tailrace_coordinate_set(tailrace_file* file, const char* path, tailrace_dtype dtype,
                                       size_t n_values, const void* values, const char* units) {
  return tailrace::recorded_on(file, [&]() -> tailrace::Status {
    const std::optional<tailrace::DType> known = tailrace::dtype_of(dtype);
    if (path == nullptr || !known || (values == nullptr && n_values > 0)) {
      return tailrace::Status(tailrace::Code::invalid_argument,
                              "coordinate \"" + std::string(path != nullptr ? path : "") +
                                  "\": path and values must not be NULL, and dtype must be a "
                                  "tailrace_dtype");
    }
    const auto* const first = static_cast<const std::byte*>(values);
    tailrace::Coordinate coordinate{path, *known, {}};
    if (n_values > 0) {
      coordinate.values.assign(first, first + n_values * tailrace::dtype_bytes(*known));
    }
    TAILRACE_TRY(file->opened->writer->set_coordinate(std::move(coordinate)));
    if (units == nullptr) return tailrace::Status();
    return file->opened->writer->set_attribute(path, "units",
                                               tailrace::AttributeValue{std::string(units)});
  });
}

tailrace_error tailrace_time_set(tailrace_file* file, const char* path, double value,
                                 const char* units) {
  return tailrace::recorded_on(file, [&]() -> tailrace::Status {
    tailrace::OpenedFile& opened = *file->opened;
    const std::string where = path == nullptr ? "/time" : path;
    tailrace_field field = TAILRACE_NO_FIELD;
    const bool is_defined = opened.writer->has_field(where);
    if (opened.times_of_step.contains(where)) {
      return tailrace::bad_field(where, "set_time was called twice in this step; " +
                                            tailrace::ask_for_end_step(opened.writer->comm()));
    }
    if (is_defined && !opened.times.contains(where)) {
      return tailrace::bad_field(where, "it is defined already; put its values, or choose a path");
    }
    if (!is_defined) {
      const std::string name = where.substr(where.rfind('/') + 1);
      TAILRACE_TRY(tailrace::define(opened, where.c_str(), TAILRACE_F64, 0, nullptr,
                                    {nullptr, name.c_str(), true}, "over-time=on,codec=none",
                                    &field));
      opened.times.insert(where);
      if (units != nullptr) {
        TAILRACE_TRY(opened.writer->set_attribute(where, "units",
                                                  tailrace::AttributeValue{std::string(units)}));
      }
    } else {
      field = opened.field_of_path.at(where);
    }
    opened.times_of_step.insert(where);
    opened.writer->note_time(where, value);
    const bool writes = opened.writer->comm().is_root();
    if (!writes) return tailrace::Status();
    return opened.writer->put(field, tailrace::Box{}, &value, true);
  });
}

const char* tailrace_field_path(const tailrace_file* file, tailrace_field field) {
  const bool known =
      file != nullptr && file->opened != nullptr && field < file->opened->paths.size();
  return known ? file->opened->paths[field].c_str() : nullptr;
}

tailrace_error tailrace_field_put(tailrace_file* file, tailrace_field field, const uint64_t* start,
                                  const uint64_t* count, const void* values) {
  return tailrace::put(file, field, start, count, values, false);
}

tailrace_error tailrace_field_put_copy(tailrace_file* file, tailrace_field field,
                                       const uint64_t* start, const uint64_t* count,
                                       const void* values) {
  return tailrace::put(file, field, start, count, values, true);
}

tailrace_error tailrace_file_set_copy_from_device(tailrace_file* file, tailrace_copy_callback copy,
                                                  void* user) {
  return tailrace::guarded_on(file, [&] {
    tailrace::CopyFromDevice& mine = file->opened->copy_from_device;
    mine = nullptr;
    if (copy != nullptr) {
      mine = [copy, user](void* to, const void* from, std::size_t n_bytes) {
        return copy(user, to, from, n_bytes);
      };
    }
    return tailrace::Status();
  });
}

tailrace_error tailrace_field_put_device(tailrace_file* file, tailrace_field field,
                                         const uint64_t* start, const uint64_t* count,
                                         const void* values) {
  return tailrace::put_device(file, field, start, count, values);
}

tailrace_error tailrace_field_put_strided(tailrace_file* file, tailrace_field field,
                                          const uint64_t* start, const uint64_t* count,
                                          const void* first, const int64_t* strides) {
  return tailrace::put(file, field, start, count, first, false, strides);
}

tailrace_error tailrace_field_put_strided_copy(tailrace_file* file, tailrace_field field,
                                               const uint64_t* start, const uint64_t* count,
                                               const void* first, const int64_t* strides) {
  return tailrace::put(file, field, start, count, first, true, strides);
}

tailrace_error tailrace_file_fail_step(tailrace_file* file, const char* why) {
  return tailrace::guarded_on(file, [&] {
    file->opened->writer->note_failure(tailrace::Status(
        tailrace::Code::invalid_argument,
        why != nullptr ? why : "the program reported a failure (tailrace_file_fail_step)"));
    return tailrace::Status();
  });
}

tailrace_error tailrace_attribute_set_text(tailrace_file* file, const char* object_path,
                                           const char* name, const char* text) {
  return tailrace::recorded_on(file, [&]() -> tailrace::Status {
    if (object_path == nullptr || name == nullptr || text == nullptr) {
      return tailrace::Status(tailrace::Code::invalid_argument,
                              "attribute \"" + std::string(name ? name : "") +
                                  "\": path, name and text must not be NULL");
    }
    return file->opened->writer->set_attribute(object_path, name,
                                               tailrace::AttributeValue{std::string(text)});
  });
}

tailrace_error tailrace_attribute_set_i64(tailrace_file* file, const char* object_path,
                                          const char* name, size_t n_values,
                                          const int64_t* values) {
  return tailrace::set_numbers(file, object_path, name, n_values, values);
}

tailrace_error tailrace_attribute_set_u64(tailrace_file* file, const char* object_path,
                                          const char* name, size_t n_values,
                                          const uint64_t* values) {
  return tailrace::set_numbers(file, object_path, name, n_values, values);
}

tailrace_error tailrace_attribute_set_f64(tailrace_file* file, const char* object_path,
                                          const char* name, size_t n_values, const double* values) {
  return tailrace::set_numbers(file, object_path, name, n_values, values);
}

}  // extern "C"
