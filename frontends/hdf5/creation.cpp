// Creation of a program's dataset: by HDF5 on every rank, with a creation list for Tailrace's
// storage; and registration of existing datasets.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/byte_stream.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Reason for datasets with values in external files, which each rank's HDF5 writes.
constexpr const char* kOutsideOfFile = "external, by each rank";

/// Path at which a new dataset will be found.
std::string path_of_new(hid_t location, const char* name) {
  if (name == nullptr) return "/(unnamed)";
  return absolute_path(name[0] == '/' ? "" : path_of_object(location), name);
}

std::optional<DType> number_of(hid_t type) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64,
                            DType::u8, DType::u16, DType::u32, DType::u64}) {
    if (H5Tequal(type, hdf5_native_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

/// Read the fill value, as the file will have it; zeros if undefined.
bool read_fill(hid_t list, hid_t type, NewDataset& definition) {
  H5D_fill_value_t kind = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(list, &kind) < 0) return false;
  definition.fill_given = kind == H5D_FILL_VALUE_USER_DEFINED;
  return !definition.fill_given || H5Pget_fill_value(list, type, definition.fill.data()) >= 0;
}

bool read_layout(hid_t list, NewDataset& definition) {
  const H5D_layout_t layout = H5Pget_layout(list);
  definition.own_filters = H5Pget_nfilters(list) > 0;
  if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> extents(definition.shape.size());
    if (H5Pget_chunk(list, int(extents.size()), extents.data()) != int(extents.size())) {
      return false;
    }
    definition.chunk_shape.assign(extents.begin(), extents.end());
  } else if (layout == H5D_COMPACT) {
    definition.only_by_root = "compact";
  } else if (layout == H5D_VIRTUAL) {
    definition.only_by_root = "virtual";
    definition.by_value = definition.addresses = false;
  } else if (layout != H5D_CONTIGUOUS) {
    return false;
  } else if (H5Pget_external_count(list) != 0) {
    definition.only_by_root = kOutsideOfFile;
  }
  return true;
}

/// Read the top-level members of a compound.
bool read_members(hid_t type, std::vector<CompoundMember>& members) {
  const int n_members = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
  for (int i = 0; i < n_members; ++i) {
    const auto index = static_cast<unsigned>(i);
    char* const name = H5Tget_member_name(type, index);
    const Hdf5Id member(H5Tget_member_type(type, index));
    if (name != nullptr) {
      members.push_back({name, H5Tget_member_offset(type, index), H5Tget_size(member.get())});
    }
    H5free_memory(name);
  }
  return static_cast<int>(members.size()) == std::max(n_members, 0);
}

using SharedList = std::shared_ptr<const Hdf5Id>;

/// Copy the program's creation list; copies of the default list are shared.
Result<SharedList> requested_list(Session& session, const CreateCall& call) {
  const bool standard = call.creation_list == H5P_DEFAULT;
  if (standard && session.standard_list != nullptr) return session.standard_list;
  Hdf5Id list(standard ? H5Pcreate(H5P_DATASET_CREATE) : H5Pcopy(call.creation_list));
  if (!list.valid())
    return hdf5_failure(Code::invalid_argument,
                        "the dataset creation property list cannot be copied");
  auto requested = std::make_shared<const Hdf5Id>(std::move(list));
  if (standard) session.standard_list = requested;
  return requested;
}

/// Read the arguments of a call. @returns false if they are wrong or unsupported: HDF5 reports why
bool read_call(const CreateCall& call, hid_t list, NewDataset& definition) {
  definition.path = path_of_new(call.location, call.name);
  definition.element_bytes = H5Tget_size(call.type);
  if (definition.element_bytes == 0) return false;
  definition.by_value = hdf5_type_is_by_value(call.type);
  definition.addresses = !definition.by_value;
  if (!definition.by_value) definition.only_by_root = "variable length or references";
  definition.number = number_of(call.type);
  if (!read_members(call.type, definition.members)) return false;
  definition.fill.assign(definition.element_bytes, std::byte{0});
  const H5S_class_t kind = H5Sget_simple_extent_type(call.space);
  if (kind == H5S_NULL) {
    definition.only_by_root = "without elements";
    definition.shape = {0};
  }
  if (kind == H5S_NO_CLASS) return false;
  if (kind == H5S_SIMPLE) {
    const int rank = H5Sget_simple_extent_ndims(call.space);
    std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
    std::vector<hsize_t> most(extents.size());
    if (rank < 0 || H5Sget_simple_extent_dims(call.space, extents.data(), most.data()) < 0) {
      return false;
    }
    definition.shape.assign(extents.begin(), extents.end());
    definition.max_shape.assign(most.begin(), most.end());
  }
  if (definition.by_value && !read_fill(list, call.type, definition)) return false;
  return read_layout(list, definition);
}

/// True if the dataset needs chunks but has none: its extents can grow, so HDF5 refuses it.
bool lacks_chunks(const NewDataset& definition) {
  return definition.chunk_shape.empty() && definition.only_by_root.empty() &&
         definition.shape != definition.max_shape && !definition.shape.empty();
}

/// Copy the program's list `requested` and apply `plan`.
Result<Hdf5Id> changed_list(Session& session, hid_t requested, const DatasetPlan& plan) {
  Hdf5Id list(H5Pcopy(requested));
  if (!list.valid())
    return hdf5_failure(Code::invalid_argument,
                        "the dataset creation property list cannot be copied");
  if (plan.in_chunks && !plan.keep_filters) {
    TAILRACE_TRY(session.array->metadata().adapt_creation_list(list.get(), plan.form));
    return list;
  }
  // Early allocation would fill space immediately, on every rank. Compact data are always allocated
  // early, and so are small datasets of rank 0, which Tailrace writes directly at their address.
  H5D_alloc_time_t alloc_time = H5D_ALLOC_TIME_DEFAULT;
  H5D_fill_time_t fill_time = H5D_FILL_TIME_IFSET;
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (layout == H5D_CHUNKED) {
    H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_INCR);
  } else if (plan.placed_at_once) {
    H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY);
  } else if (H5Pget_alloc_time(list.get(), &alloc_time) >= 0 && layout == H5D_CONTIGUOUS &&
             alloc_time == H5D_ALLOC_TIME_EARLY) {
    H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_DEFAULT);
  }
  // Allocated space may hold old bytes, so never-written elements must be filled.
  H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
  const bool fills =
      H5Pfill_value_defined(list.get(), &fill) >= 0 && fill != H5D_FILL_VALUE_UNDEFINED;
  if (!plan.in_chunks && layout != H5D_COMPACT && fills) {
    H5Pset_fill_time(list.get(), H5D_FILL_TIME_ALLOC);
  }
  if (H5Pget_fill_time(list.get(), &fill_time) >= 0 && fill_time == H5D_FILL_TIME_NEVER) {
    H5Pset_fill_time(list.get(), H5D_FILL_TIME_IFSET);
  }
  return list;
}

Result<SharedList> creation_list_of(Session& session, const SharedList& requested,
                                    const DatasetPlan& plan) {
  const bool known = requested == session.standard_list && !plan.in_chunks;
  SharedList& kept =
      plan.placed_at_once ? session.standard_list_placed : session.standard_list_of_root;
  if (known && kept != nullptr) return kept;
  TAILRACE_TAKE(Hdf5Id list, changed_list(session, requested->get(), plan));
  auto changed = std::make_shared<const Hdf5Id>(std::move(list));
  if (known) kept = changed;
  return changed;
}

hid_t create_by_hdf5(const CreateCall& call, hid_t creation_list) {
  const RealHdf5& real = real_hdf5();
  if (call.name == nullptr) {
    return real.H5Dcreate_anon(call.location, call.type, call.space, creation_list,
                               call.access_list);
  }
  return real.H5Dcreate2(call.location, call.name, call.type, call.space, call.link_list,
                         creation_list, call.access_list);
}

/// Address of a dataset's values in the file; 0 if not allocated.
std::uint64_t place_of_values(hid_t dataset) {
  const haddr_t address = H5Dget_offset(dataset);
  return address == HADDR_UNDEF ? 0 : address;
}

/// Register the new dataset with the session. @returns the reason why it cannot be stored
Status enter_new(Session& session, const CreateCall& call, const SharedList& requested,
                 const NewDataset& definition, const DatasetPlan& plan, hid_t created) {
  const Hdf5Scope scope;
  if (plan.in_chunks && !plan.keep_filters) {
    TAILRACE_TRY(check_stored_filters(created, plan.form.filters));
  }
  const std::optional<std::uint64_t> address = address_of_object(created);
  if (!address) return hdf5_failure(Code::internal, "its header cannot be found");
  const std::uint64_t values_at = plan.placed_at_once ? place_of_values(created) : 0;
  const std::size_t added = session.array->add(definition, plan, *address, values_at);
  session.creation_lists[added] = requested;
  const bool in_heap = definition.addresses && !hdf5_type_is_by_value(call.type, true);
  if (plan.why == kOutsideOfFile || in_heap) session.by_rank.insert(added);
  if (!plan.remark.empty()) session.remarks[plan.remark].push_back(definition.path);
  // Inspect it on all ranks now, while its header exists.
  TAILRACE_TAKE(const DatasetArray::Facts facts, session.array->facts(added));
  if (facts.by_root) {
    session.by_root[plan.in_chunks ? "filters not available, or not for edge chunks" : plan.why]
        .push_back(definition.path);
  }
  return Status();
}

/// Create a dataset whose name leads into another file, by a mount or a link. The dataset created
/// for this session is deleted and created again as the other file requires.
hid_t create_there(const CreateCall& call, hid_t created) {
  Session* const there = session_of(created);
  Status gone;
  {
    const Hdf5Scope scope;
    close_hdf5_id(created);
    if (H5Ldelete(call.location, call.name, call.access_list) < 0) {
      gone = hdf5_failure(
          Code::unsupported,
          "the dataset cannot be deleted, to be created again in the linked or mounted file");
    }
  }
  if (!gone.ok()) return fail("H5Dcreate", gone);
  return there != nullptr ? create_dataset(*there, call) : create_by_hdf5(call, call.creation_list);
}

struct CopyVisit {
  Session* session = nullptr;
  std::string path;
  std::vector<std::pair<std::string, std::uint64_t>> found;
};

herr_t note_copy(hid_t, const char* name, const ObjectInfo* info, void* data) {
  return called_by_hdf5([&] {
    auto& visit = *static_cast<CopyVisit*>(data);
    if (info->type != H5O_TYPE_DATASET) return 0;
    visit.found.emplace_back(std::string(name) == "." ? visit.path : visit.path + "/" + name,
                             object_address(*info));
    return 0;
  });
}

Status visit_datasets(hid_t object, CopyVisit& visit) {
  if (visit_objects(object, note_copy, &visit) >= 0) {
    return Status();
  }
  return hdf5_failure(Code::internal, "the datasets below \"" + visit.path + "\" cannot be listed");
}

}  // namespace

hid_t create_dataset(Session& session, const CreateCall& call) {
  NewDataset definition;
  Result<DatasetPlan> plan = DatasetPlan();
  SharedList requested;
  SharedList list;
  bool understood = false;
  // Call first: the other ranks wait for this one here, whatever it lacks.
  Result<std::shared_ptr<const BoxSeries>> boxes = receive_boxes(session, call);
  {
    const Hdf5Scope scope;
    Result<SharedList> given = requested_list(session, call);
    if (given.ok()) requested = std::move(*given);
    understood = requested != nullptr && read_call(call, requested->get(), definition) &&
                 !lacks_chunks(definition);
    if (understood && !boxes.ok()) plan = boxes.status();
    if (understood && boxes.ok()) {
      definition.boxes = std::move(*boxes);
      definition.of_level = names_level_data(call.name);
      if (definition.boxes != nullptr) {
        definition.find_cover = [&session, path = definition.path, boxes = definition.boxes] {
          return find_cover(session, path, boxes);
        };
      }
      plan = session.array->plan_new(definition);
      if (plan.ok()) {
        Result<SharedList> made = creation_list_of(session, requested, *plan);
        if (made.ok()) {
          list = std::move(*made);
        } else {
          plan = made.status().within("dataset \"" + definition.path + "\"");
        }
      }
    }
  }
  if (!understood || !plan.ok()) {
    const Hdf5Scope scope;
    requested.reset();  // Now, because it would clear the program's error stack later.
    list.reset();
  }
  // HDF5 reports best what is wrong with such a call; a dataset that it creates is refused.
  if (!understood) {
    const hid_t refused = create_by_hdf5(call, call.creation_list);
    if (refused < 0) return refused;
    close_hdf5_id(refused);
    return fail("H5Dcreate",
                Status(Code::unsupported, "dataset \"" + definition.path +
                                              "\": its type, dataspace or layout is not supported; "
                                              "TAILRACE_HDF5=off leaves the file to HDF5"));
  }
  if (!plan.ok()) return fail("H5Dcreate", plan.status());
  const hid_t created = create_by_hdf5(call, list->get());
  if (created < 0) {
    const KeptErrors kept;
    requested.reset();
    list.reset();
    return created;
  }
  if (call.name != nullptr && session_of(created) != &session) {
    {
      const Hdf5Scope scope;
      requested.reset();
      list.reset();
    }
    return create_there(call, created);
  }
  // An anonymous dataset may disappear unseen, so flushes must check.
  if (call.name == nullptr) session.array->look_for_deleted();
  const Status entered =
      local_part([&] { return enter_new(session, call, requested, definition, *plan, created); });
  if (entered.ok()) return created;
  // Delete the dataset, since its creation fails for the program, and close its id.
  {
    const Hdf5Scope scope;
    const Hdf5Id closed(created);
    if (call.name != nullptr) H5Ldelete(call.location, call.name, H5P_DEFAULT);
    requested.reset();  // Now, because they would clear HDF5's error stack.
    list.reset();
  }
  session.array->give_up(definition.path);
  return fail("H5Dcreate", entered.within("dataset \"" + definition.path + "\""));
}

Status enter_copies(Session*& session, hid_t location, const char* name) {
  const Hdf5Scope scope;
  const Hdf5Id copy(H5Oopen(location, name, H5P_DEFAULT));
  if (!copy.valid())
    return hdf5_failure(Code::internal, "the copy \"" + std::string(name) + "\" cannot be opened");
  session = session_of(copy.get());
  if (session == nullptr) return Status();
  CopyVisit visit{session, path_of_object(copy.get()), {}};
  TAILRACE_TRY(visit_datasets(copy.get(), visit));
  for (const auto& [path, address] : visit.found) {
    session->array->add_existing(path, address, DatasetOrigin::copied);
  }
  return Status();
}

Status enter_datasets(Session& session) {
  DatasetArray& array = *session.array;
  const Result<Bytes> received = broadcast_from_root(array.comm(), [&](ByteWriter& message) {
    const Hdf5Scope scope;
    CopyVisit visit{&session, "", {}};
    TAILRACE_TRY(visit_datasets(session.file(), visit));
    for (const auto& [path, address] : visit.found) {
      message.add_text(path);
      message.add(address);
    }
    return Status();
  });
  TAILRACE_TRY(received.status());
  return array.comm().agree(local_part([&] {
    ByteReader reader(*received);
    while (!reader.at_end()) {
      const std::string path = reader.take_text();
      const auto address = reader.take<std::uint64_t>();
      array.add_existing(path, address, DatasetOrigin::opened);
    }
    return Status();
  }));
}

}  // namespace tailrace::hdf5_programs
