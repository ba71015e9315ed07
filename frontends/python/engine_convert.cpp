// Converts between the engine's values and Python's.

#include "python/engine_convert.hpp"

#include <nanobind/stl/string.h>

#include <cstring>

namespace nb = nanobind;

namespace tailrace::python {
namespace {

/// Raise tailrace._errors.error(code, message), or the exception that occurred while raising it.
void raise_status(const Status& status) {
  const nb::object make = nb::module_::import_("tailrace._errors").attr("error");
  const std::string code(code_name(status.code()));
  const nb::object error = make(code, text_to_python(status.message()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

}  // namespace

void register_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      raise_status(error.status());
    }
  });
}

std::string type_to_python(ModelType type) {
  if (type == ModelType::text_char) return "char";
  const std::optional<DType> dtype = model_dtype(type);
  if (!dtype) return type == ModelType::text ? "text" : "other";
  return dtype_name(*dtype)[0] + std::to_string(dtype_bytes(*dtype));  // NumPy's name: "f4"
}

ModelType type_from_python(const std::string& name) {
  if (name == "char") return ModelType::text_char;
  if (name == "text") return ModelType::text;
  if (name == "other") return ModelType::other;
  const auto dtype = name.size() == 2 ? find_dtype(name[0], static_cast<std::size_t>(name[1] - '0'))
                                      : std::nullopt;
  if (dtype) return model_type(*dtype);
  throw StatusError(Status(Code::unsupported, "netCDF-4 does not support type " + name));
}

nb::object text_to_python(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

nb::tuple attribute_to_python(const ModelAttribute& attribute) {
  nb::object value;
  if (attribute.type == ModelType::text) {
    nb::list texts;
    for (const std::string& text : attribute.texts) texts.append(text_to_python(text));
    value = texts;
  } else {
    value =
        nb::bytes(reinterpret_cast<const char*>(attribute.values.data()), attribute.values.size());
  }
  return nb::make_tuple(text_to_python(attribute.name), type_to_python(attribute.type),
                        attribute.n_values, value);
}

ModelAttribute attribute_from_python(const std::string& name, const std::string& type,
                                     std::uint64_t n_values, const nb::object& value) {
  ModelAttribute attribute;
  attribute.name = name;
  attribute.type = type_from_python(type);
  attribute.n_values = n_values;
  if (attribute.type == ModelType::text) {
    for (const nb::handle text : nb::cast<nb::list>(value)) {
      attribute.texts.push_back(nb::cast<std::string>(text));
    }
  } else {
    const auto bytes = nb::cast<nb::bytes>(value);
    attribute.values.resize(bytes.size());
    if (bytes.size() > 0) std::memcpy(attribute.values.data(), bytes.c_str(), bytes.size());
  }
  return attribute;
}

nb::tuple model_to_python(const NetcdfModel& model) {
  nb::list groups;
  nb::list dimensions;
  nb::list variables;
  for (const ModelGroup& group : model.groups) {
    groups.append(nb::make_tuple(text_to_python(group.path), group.parent));
  }
  for (const ModelDimension& dimension : model.dimensions) {
    dimensions.append(nb::make_tuple(text_to_python(dimension.name), dimension.group,
                                     dimension.length, dimension.unlimited, dimension.anonymous));
  }
  for (const ModelVariable& variable : model.variables) {
    nb::list positions;
    for (const std::size_t position : variable.dimensions) positions.append(position);
    variables.append(nb::make_tuple(text_to_python(variable.name), variable.group,
                                    type_to_python(variable.type), nb::tuple(positions),
                                    variable.no_fill, text_to_python(variable.first_path)));
  }
  return nb::make_tuple(groups, dimensions, variables, model.netcdf4);
}

Slab slab_from_python(const std::vector<std::uint64_t>& start,
                      const std::vector<std::uint64_t>& count,
                      const std::vector<std::uint64_t>& stride) {
  const auto shape = [](const std::vector<std::uint64_t>& numbers) {
    return Shape(numbers.begin(), numbers.end());
  };
  return {shape(start), shape(count), shape(stride)};
}

std::unique_ptr<Comm> comm_from_python(const nb::object& comm) {
  if (comm.is_none()) return nullptr;
  // _mpi passes a capsule with a pointer to the owner, from which the communicator is moved.
  void* address = PyCapsule_GetPointer(comm.ptr(), "tailrace.Comm");
  if (address == nullptr) throw nb::python_error();
  auto& owner = *static_cast<std::unique_ptr<Comm>*>(address);
  if (owner == nullptr) {
    throw StatusError(
        Status(Code::invalid_argument, "this communicator already belongs to another file"));
  }
  return std::move(owner);
}

}  // namespace tailrace::python
