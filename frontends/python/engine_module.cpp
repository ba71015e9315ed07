// The Python module tailrace._engine: EngineFile, verify and info for the package's Python side.
//
// Translates arguments and releases the interpreter lock while the engine works. Users call
// python/tailrace instead.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "core/encoding_notes.hpp"
#include "core/losses.hpp"
#include "core/option_table.hpp"
#include "describe/field_attributes.hpp"
#include "exec/comm_factory.hpp"
#include "field/range_evidence.hpp"
#include "filters/own_filters.hpp"
#include "hdf5/filter_plugins.hpp"
#include "policy/roles.hpp"
#include "python/engine_convert.hpp"
#include "python/engine_file.hpp"
#include "report/info_text.hpp"
#include "report/verify_text.hpp"

namespace nb = nanobind;

namespace tailrace::python {
namespace {

using Numbers = std::vector<std::uint64_t>;
/// Contiguous bytes from NumPy.
using Values = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstValues = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Run the engine without the interpreter lock.
template <class Work>
auto unlocked(Work work) {
  const nb::gil_scoped_release release;
  return work();
}

std::unique_ptr<EngineFile> open_file(const std::string& path, const std::string& mode,
                                      const std::string& options, const std::string& plugin_path,
                                      const nb::object& comm) {
  Opening opening{path, mode.empty() ? 'r' : mode[0], options, plugin_path, comm_from_python(comm)};
  return take(unlocked([&] { return EngineFile::open(std::move(opening)); }));
}

/// Values in a stream, scanned for the rule on wide bounds.
class RangeScan {
 public:
  RangeScan(bool single, std::optional<double> fill)
      : dtype_(single ? DType::f32 : DType::f64), fill_(fill) {}

  void add(const ConstValues& values) {
    const std::span bytes(reinterpret_cast<const std::byte*>(values.data()), values.size());
    range_.merge(unlocked([&] { return value_range(dtype_, bytes, fill_); }));
  }
  /// Return the range; (0, 0) without a value.
  std::pair<double, double> range() const {
    if (range_.empty()) return {0, 0};
    return {range_.least, range_.greatest};
  }
  std::optional<double> undeclared_fill() const {
    if (range_.empty()) return std::nullopt;
    const ErrorBound whole{BoundMode::rel, 1};
    const BoundVerdict verdict =
        judge_bound(whole, absolute_bound(whole, range_.least, range_.greatest),
                    facts_of(range_, MagnitudeCount{}));
    if (!verdict.refused(false)) return std::nullopt;
    return verdict.extreme;
  }

 private:
  DType dtype_;
  std::optional<double> fill_;
  ValueRange range_;
};

using PythonAttribute = std::tuple<std::string, std::vector<std::string>, std::vector<double>>;
/// Name, attributes, shape, whether it has floating point numbers, and whether it is a coordinate.
using PythonVariable = std::tuple<std::string, std::vector<PythonAttribute>, Numbers, bool, bool>;

std::vector<StatedAttribute> stated(const std::vector<PythonAttribute>& attributes) {
  std::vector<StatedAttribute> found;
  for (const auto& [name, texts, numbers] : attributes) {
    if (!states_role(name)) continue;
    StatedAttribute& attribute = found.emplace_back();
    attribute.name = name;
    if (texts.size() > kAttributeElementsMax || numbers.size() > kAttributeElementsMax) continue;
    attribute.numbers = numbers;
    for (const std::string& text : texts) {
      if (!add_stated_text(attribute, text)) attribute.texts.emplace_back();
    }
  }
  return found;
}

/// Names of the roles of a dataset's variables, in their order.
std::vector<std::string> roles_of(const std::vector<PythonAttribute>& attributes,
                                  const std::vector<PythonVariable>& variables) {
  RoleFacts facts;
  StatedObject& root = facts.groups.emplace_back();
  root.path = "/";
  root.attributes = stated(attributes);
  for (const auto& [name, own, shape, floating, coordinate] : variables) {
    StatedObject& object = facts.datasets.emplace_back();
    object.path = "/" + name;
    object.attributes = stated(own);
    object.shape = Shape(shape.begin(), shape.end());
    object.floating = floating;
    object.coordinate = coordinate;
  }
  std::vector<std::string> found;
  for (const RoleVerdict& verdict : decide_roles(facts)) {
    found.emplace_back(role_name(verdict.role));
  }
  return found;
}

void put(EngineFile& file, std::size_t variable, const Numbers& start, const Numbers& count,
         const Numbers& stride, const ConstValues& values) {
  const Slab slab = slab_from_python(start, count, stride);
  const std::span bytes(reinterpret_cast<const std::byte*>(values.data()), values.size());
  check(unlocked([&] { return file.put(variable, slab, bytes); }));
}

void get(EngineFile& file, std::size_t variable, const Numbers& start, const Numbers& count,
         const Numbers& stride, const Values& values, double abs_bound) {
  const Slab slab = slab_from_python(start, count, stride);
  const std::span bytes(reinterpret_cast<std::byte*>(values.data()), values.size());
  check(unlocked([&] { return file.get(variable, slab, bytes, abs_bound); }));
}

nb::list get_texts(EngineFile& file, std::size_t variable, const Numbers& start,
                   const Numbers& count, const Numbers& stride) {
  const Slab slab = slab_from_python(start, count, stride);
  const std::vector<std::string> texts =
      take(unlocked([&] { return file.get_texts(variable, slab); }));
  nb::list list;
  for (const std::string& text : texts) list.append(text_to_python(text));
  return list;
}

/// Read slabs on all ranks; requests are tuples (variable, start, count, stride, values).
/// Collective.
void get_all(EngineFile& file, const std::vector<nb::tuple>& wanted) {
  std::vector<ReadRequest> requests;
  std::vector<std::size_t> n_bytes;
  for (const nb::tuple& one : wanted) {
    const auto values = nb::cast<Values>(one[4]);
    const Slab slab = slab_from_python(nb::cast<Numbers>(one[1]), nb::cast<Numbers>(one[2]),
                                       nb::cast<Numbers>(one[3]));
    n_bytes.push_back(values.size());
    requests.push_back(
        {nb::cast<std::size_t>(one[0]), slab, reinterpret_cast<std::byte*>(values.data())});
  }
  check(unlocked([&] { return file.get_all(requests, n_bytes); }));
}

/// Describe the storage: None, or (kind, type, chunk shape, ((id, name, client data), ...),
/// description of the type, plain number, swapped, elsewhere, plain edges, address of contiguous
/// data).
nb::object storage(EngineFile& file, std::size_t variable) {
  const std::optional<VariableStorage> found =
      take(unlocked([&] { return file.storage(variable); }));
  if (!found) return nb::none();
  nb::list filters;
  for (const FilterSpec& filter : found->filters) {
    const auto& words =
        filter.final_client_data.empty() ? filter.client_data : filter.final_client_data;
    filters.append(
        nb::make_tuple(filter.filter_id, text_to_python(filter.name), nb::tuple(nb::cast(words))));
  }
  const std::vector<std::uint64_t> chunk(found->chunk_shape.begin(), found->chunk_shape.end());
  return nb::make_tuple(found->kind, text_to_python(found->type_text), nb::tuple(nb::cast(chunk)),
                        nb::tuple(filters), text_to_python(found->type_description),
                        found->plain_number, found->swapped, found->elsewhere, found->plain_edges,
                        found->data_address);
}

nb::list attributes(EngineFile& file, Owner owner, std::size_t position) {
  const NetcdfModel model = take(unlocked([&] { return file.model(); }));
  nb::list list;
  for (const ModelAttribute& attribute : take(attributes_of(model, owner, position))) {
    list.append(attribute_to_python(attribute));
  }
  return list;
}

/// Apply one model edit; the engine agrees on it with all ranks.
void change(EngineFile& file, const std::function<Status(NetcdfModel&)>& edit) {
  check(unlocked([&] { return file.edit(edit); }));
}

ModelEdit edit_adding(std::size_t group, const std::string& name, const std::string& type,
                      const std::vector<std::size_t>& dimensions,
                      const std::optional<nb::bytes>& fill) {
  std::optional<std::string> bytes;
  if (fill) bytes.emplace(fill->c_str(), fill->size());
  return add_variable(group, name, type_from_python(type), dimensions, bytes);
}

/// Return losses_text() for values in a dataset with these notes (attributes of Tailrace) and
/// filters.
std::string losses_in(const nb::dict& notes, const std::vector<std::uint32_t>& filters) {
  const auto text = [&](const char* name) {
    return notes.contains(name) && nb::isinstance<nb::str>(notes[name])
               ? nb::cast<std::string>(notes[name])
               : std::string();
  };
  const auto number = [&](const char* name) -> std::optional<double> {
    double value = 0;
    if (!notes.contains(name) || !nb::try_cast(notes[name], value)) return std::nullopt;
    return value;
  };
  const bool lossy_filter = std::ranges::any_of(filters, always_lossy);
  return losses_text(losses_of(loss_facts(text, number, lossy_filter)));
}

nb::object report_of(EngineFile& file) {
  const auto report = take(unlocked([&] { return file.report(); }));
  return std::visit([](const auto& one) { return report_to_python(one); }, report);
}

/// Return the output of `tailrace verify --json` and its table, the same on every rank.
nb::tuple verify(const std::string& original, const std::string& compressed,
                 const std::string& bound, const std::vector<std::string>& per_field,
                 const std::vector<std::string>& only, const std::vector<std::string>& exclude,
                 const std::vector<std::string>& ignore,
                 const std::vector<std::string>& ignore_attributes, bool values_only,
                 const nb::object& comm, const nb::object& progress) {
  std::unique_ptr<Comm> comm_given = comm_from_python(comm);
  const auto report_progress = [&](std::uint64_t done, std::uint64_t total) {
    if (progress.is_none()) return;
    const nb::gil_scoped_acquire acquire;
    progress(done, total);
  };
  const verbs::VerifyReport found = unlocked([&] {
    if (comm_given == nullptr) comm_given = make_self_comm();
    const verbs::VerbRanks ranks{*comm_given, nullptr, nullptr, report_progress};
    check(ranks.agree(hdf5::register_own_filters()));
    verbs::VerifyRequest request{original, compressed, bound, per_field, {only, exclude}, ""};
    request.ignore = ignore;
    request.ignore_attributes = ignore_attributes;
    request.values_only = values_only;
    return take(verbs::verify_files(ranks, request));
  });
  return nb::make_tuple(report_to_python(found), text_to_python(report::verify_text(found)));
}

nb::tuple info(const std::string& path, const std::string& chunks_of) {
  const verbs::InfoReport found = unlocked([&] {
    check(hdf5::register_own_filters());
    return take(verbs::file_info({path, chunks_of, ""}));
  });
  return nb::make_tuple(report_to_python(found), text_to_python(report::info_text(found)));
}

/// Make the process end with status 1 where it would end with 0. Python cannot change the status
/// once its program has ended. Later exit handlers still run: glibc continues with those that are
/// left.
void end_with_failure() {
#ifdef __GLIBC__
  static const bool registered = ::on_exit(
                                     [](int status, void*) {
                                       if (status == 0) std::exit(EXIT_FAILURE);
                                     },
                                     nullptr) == 0;
  (void)registered;
#endif
}

void bind_file(nb::module_& module) {
  nb::class_<EngineFile>(module, "EngineFile")
      .def_prop_ro("path", &EngineFile::path)
      .def_prop_ro("writable", &EngineFile::writable)
      .def_prop_ro("is_open", &EngineFile::is_open)
      .def_prop_ro("rank", &EngineFile::rank)
      .def_prop_ro("n_ranks", &EngineFile::n_ranks)
      .def("model",
           [](EngineFile& file) {
             return model_to_python(take(unlocked([&] { return file.model(); })));
           })
      .def("remarks",
           [](EngineFile& file) {
             nb::list remarks;
             for (const std::string& remark : take(unlocked([&] { return file.remarks(); }))) {
               remarks.append(text_to_python(remark));
             }
             return remarks;
           })
      .def("take_remarks",
           [](EngineFile& file) {
             nb::list remarks;
             for (const std::string& remark : unlocked([&] { return file.take_remarks(); })) {
               remarks.append(text_to_python(remark));
             }
             return remarks;
           })
      .def("group_attributes",
           [](EngineFile& file, std::size_t at) { return attributes(file, Owner::group, at); })
      .def("variable_attributes",
           [](EngineFile& file, std::size_t at) { return attributes(file, Owner::variable, at); })
      .def("add_group",
           [](EngineFile& file, const std::string& path) { change(file, add_group(path)); })
      .def("add_dimension",
           [](EngineFile& file, std::size_t group, const std::string& name, std::uint64_t length,
              bool unlimited) { change(file, add_dimension(group, name, length, unlimited)); })
      .def(
          "add_variable",
          [](EngineFile& file, std::size_t group, const std::string& name, const std::string& type,
             const std::vector<std::size_t>& dimensions, const std::optional<nb::bytes>& fill) {
            change(file, edit_adding(group, name, type, dimensions, fill));
          },
          nb::arg("group"), nb::arg("name"), nb::arg("type"), nb::arg("dimensions"),
          nb::arg("fill").none())
      .def(
          "try_variable",
          [](EngineFile& file, std::size_t group, const std::string& name, const std::string& type,
             const std::vector<std::size_t>& dimensions, const std::optional<nb::bytes>& fill,
             const std::string& options) {
            const ModelEdit edit = edit_adding(group, name, type, dimensions, fill);
            return take(unlocked([&] { return file.try_variable(edit, options); }));
          },
          nb::arg("group"), nb::arg("name"), nb::arg("type"), nb::arg("dimensions"),
          nb::arg("fill").none(), nb::arg("options"))
      .def("set_attribute",
           [](EngineFile& file, bool of_variable, std::size_t at, const std::string& name,
              const std::string& type, std::uint64_t n_values, const nb::object& value) {
             const ModelAttribute attribute = attribute_from_python(name, type, n_values, value);
             change(file,
                    set_attribute(of_variable ? Owner::variable : Owner::group, at, attribute));
           })
      .def("delete_attribute",
           [](EngineFile& file, bool of_variable, std::size_t at, const std::string& name) {
             change(file, delete_attribute(of_variable ? Owner::variable : Owner::group, at, name));
           })
      .def("rename_dimension",
           [](EngineFile& file, std::size_t at, const std::string& name) {
             change(file, rename_dimension(at, name));
           })
      .def("rename_variable",
           [](EngineFile& file, std::size_t at, const std::string& name) {
             change(file, rename_variable(at, name));
           })
      .def("set_variable_options",
           [](EngineFile& file, std::size_t at, const std::string& options) {
             check(unlocked([&] { return file.set_variable_options(at, options); }));
           })
      .def("may_lose",
           [](EngineFile& file, std::size_t at) {
             return take(unlocked([&] { return file.may_lose(at); }));
           })
      .def("storage", &storage)
      .def("put", &put)
      .def("get", &get)
      .def("get_all", &get_all)
      .def("fail_get_all",
           [](EngineFile& file, const std::string& why) {
             check(unlocked([&] { return file.fail_get_all(why); }));
           })
      .def("put_texts",
           [](EngineFile& file, std::size_t variable, const Numbers& start, const Numbers& count,
              const Numbers& stride, const std::vector<std::string>& texts) {
             const Slab slab = slab_from_python(start, count, stride);
             check(unlocked([&] { return file.put_texts(variable, slab, texts); }));
           })
      .def("get_texts", &get_texts)
      .def("settle",
           [](EngineFile& file) { check(unlocked([&] { return file.end_collective_put(); })); })
      .def("flush", [](EngineFile& file) { check(unlocked([&] { return file.flush(); })); })
      .def("close", [](EngineFile& file) { check(unlocked([&] { return file.close(); })); })
      .def("abort", [](EngineFile& file) { check(unlocked([&] { return file.abort(); })); })
      .def("report", &report_of);
}

}  // namespace
}  // namespace tailrace::python

NB_MODULE(_engine, module) {
  using namespace tailrace;
  using namespace tailrace::python;
  module.doc() = "The engine of tailrace; use the package's own functions.";
  register_errors(module);
  bind_file(module);
  module.def("open", &open_file, nb::arg("path"), nb::arg("mode"), nb::arg("options"),
             nb::arg("plugin_path"), nb::arg("comm").none());
  module.def("verify", &verify, nb::arg("original"), nb::arg("compressed"), nb::arg("bound"),
             nb::arg("per_field"), nb::arg("only"), nb::arg("exclude"), nb::arg("ignore"),
             nb::arg("ignore_attributes"), nb::arg("values_only"), nb::arg("comm").none(),
             nb::arg("progress").none());
  module.def("info", &info);
  nb::class_<RangeScan>(module, "RangeScan")
      .def(nb::init<bool, std::optional<double>>(), nb::arg("single"), nb::arg("fill").none())
      .def("add", &RangeScan::add)
      .def("range", &RangeScan::range)
      .def("undeclared_fill", &RangeScan::undeclared_fill);
  module.attr("below_share_max") = kBelowShareMax;
  module.def("losses_in", &losses_in, nb::arg("notes"), nb::arg("filters"));
  module.def("roles", &roles_of, nb::arg("attributes"), nb::arg("variables"));
  module.def("states_rounding", &verbs::states_rounding);
  module.def("end_with_failure", &end_with_failure);
  module.def("search_plugins_in", &search_plugins_in);
  module.def("check_options", [](const std::string& options) {
    FieldOptions parsed;
    check(apply_field_options(options, parsed));
  });
  module.def("hdf5_version", &hdf5_library_version);
  module.def("plugin_folders", &plugin_folders);
}
