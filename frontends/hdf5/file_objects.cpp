// The groups and datasets of a session's file, with the attributes by which the roles of datasets
// are decided (policy/roles.hpp). Includes small datasets that rank 0 writes, and all objects of an
// opened file.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/field_attributes.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {
namespace {

struct ObjectVisit {
  Session& session;
  FileObjects found;
  Status failed;
};

bool is_undecided(const Session& session, std::uint64_t address) {
  const std::optional<std::size_t> number = session.array->find(address);
  return number && session.array->role_open(*number);
}

/// Read the attributes that state roles.
Status read_statements(hid_t object, StatedObject& stated) {
  ObjectFacts facts;
  if (get_object_facts(object, facts) && facts.n_attributes == 0) return Status();
  TAILRACE_TAKE(stated.attributes, read_stated_attributes(object, states_role));
  return Status();
}

Status add_dataset(hid_t dataset, StatedObject&& stated, std::uint64_t address,
                   ObjectVisit& visit) {
  const Hdf5Id type(H5Dget_type(dataset));
  const Hdf5Id space(H5Dget_space(dataset));
  const H5T_class_t kind = type.valid() ? H5Tget_class(type.get()) : H5T_NO_CLASS;
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (kind == H5T_NO_CLASS || rank < 0) {
    return hdf5_failure(Code::corrupt, "its type or extents cannot be read");
  }
  if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
    visit.found.facts.others.push_back(std::move(stated.path));
    return Status();
  }
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) != rank) {
    return hdf5_failure(Code::corrupt, "its extents cannot be read");
  }
  stated.shape.assign(extents.begin(), extents.end());
  stated.floating = kind == H5T_FLOAT;
  stated.coordinate = hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
  TAILRACE_TRY(read_statements(dataset, stated));
  if (!is_undecided(visit.session, address)) {
    visit.session.listed.insert_or_assign(address, stated);
  }
  visit.found.facts.datasets.push_back(std::move(stated));
  visit.found.addresses.push_back(address);
  return Status();
}

Status add_object(ObjectVisit& visit, const std::string& name, const ObjectInfo& info) {
  // A visit also reaches the objects of other files, where files are mounted.
  const bool here = info.fileno == visit.session.file_number;
  if (!here || (info.type != H5O_TYPE_GROUP && info.type != H5O_TYPE_DATASET)) return Status();
  StatedObject stated;
  stated.path = name == "." ? "/" : "/" + name;
  const std::uint64_t address = object_address(info);
  const auto known = visit.session.listed.find(address);
  const bool listed = known != visit.session.listed.end() && known->second.path == stated.path;
  if (listed && !is_undecided(visit.session, address)) {
    visit.found.facts.datasets.push_back(known->second);
    visit.found.addresses.push_back(address);
    return Status();
  }
  const Hdf5Id object(H5Oopen(visit.session.file(), stated.path.c_str(), H5P_DEFAULT));
  if (!object.valid()) return hdf5_failure(Code::corrupt, "it cannot be opened");
  if (info.type == H5O_TYPE_DATASET) {
    return add_dataset(object.get(), std::move(stated), address, visit);
  }
  TAILRACE_TRY(read_statements(object.get(), stated));
  visit.found.facts.groups.push_back(std::move(stated));
  return Status();
}

herr_t note_object(hid_t, const char* name, const ObjectInfo* info, void* data) {
  return called_by_hdf5([&] {
    auto& visit = *static_cast<ObjectVisit*>(data);
    visit.failed = add_object(visit, name, *info).within("object \"/" + std::string(name) + "\"");
    return visit.failed.ok() ? 0 : -1;
  });
}

}  // namespace

Result<FileObjects> list_objects(Session& session) {
  const Hdf5Scope scope;
  const KeptErrors kept;
  ObjectVisit visit{session, {}, {}};
  const herr_t visited = visit_objects(session.file(), note_object, &visit);
  TAILRACE_TRY(visit.failed);
  if (visited < 0) return hdf5_failure(Code::internal, "the objects of the file cannot be listed");
  return std::move(visit.found);
}

}  // namespace tailrace::hdf5_programs
