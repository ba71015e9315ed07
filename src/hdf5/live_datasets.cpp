// Datasets identified by their headers' addresses.

#include "hdf5/live_datasets.hpp"

#include <vector>

#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/stub_filters.hpp"

namespace tailrace {
namespace {

ObjectKey key_of(std::uint64_t address) {
  const haddr_t at = address;
#if H5_VERSION_GE(1, 12, 0)
  // A native token is the address, little-endian.
  H5O_token_t token{};
  for (std::size_t i = 0; i < sizeof(at); ++i) {
    reinterpret_cast<unsigned char*>(&token)[i] = static_cast<unsigned char>(at >> (8 * i));
  }
  return {reinterpret_cast<const char*>(&token), sizeof(token)};
#else
  return {reinterpret_cast<const char*>(&at), sizeof(at)};
#endif
}

std::uint64_t address_of(const ObjectKey& key) {
  std::uint64_t address = 0;
  for (std::size_t i = 0; i < sizeof(address); ++i) {
    address |= std::uint64_t{static_cast<unsigned char>(key[i])} << (8 * i);
  }
  return address;
}

struct Found {
  std::set<std::uint64_t> addresses;
  CountedObjects links;  ///< Number of links to each object.
  bool failed = false;
};

void note_dataset(hid_t object, Found& found) {
  ObjectFacts facts;
  if (!get_object_facts(object, facts)) {
    found.failed = true;
  } else if (facts.type == H5O_TYPE_DATASET) {
    found.addresses.insert(address_of(facts.key));
  }
}

/// Follow only hard links, and visit each object once.
void note_group(hid_t group, std::set<ObjectKey>& seen, Found& found);

struct Step {
  std::set<ObjectKey>* seen;
  Found* found;
  unsigned long file_number;
};

herr_t note_link(hid_t group, const char* name, const LinkInfo* link, void* data) {
  return called_by_hdf5([&] {
    const Step& step = *static_cast<Step*>(data);
    if (link->type != H5L_TYPE_HARD) return 0;
    ++step.found->links[address_of(link_key(*link))];
    if (!step.seen->insert(link_key(*link)).second) return 0;
    const Hdf5Id object(H5Oopen(group, name, H5P_DEFAULT));
    ObjectInfo info;
    if (!object.valid() || !get_object_info(object.get(), info)) {
      step.found->failed = true;
    } else if (info.fileno != step.file_number) {
      return 0;  // An object of a file that is mounted there.
    } else if (H5Iget_type(object.get()) == H5I_GROUP) {
      note_group(object.get(), *step.seen, *step.found);
    } else {
      note_dataset(object.get(), *step.found);
    }
    return 0;
  });
}

void note_group(hid_t group, std::set<ObjectKey>& seen, Found& found) {
  ObjectInfo info{};
  if (!get_object_info(group, info)) found.failed = true;
  Step step{&seen, &found, info.fileno};
  if (iterate_links(group, H5_INDEX_NAME, note_link, &step) < 0) found.failed = true;
}

/// Visit all objects that hard links reach. @returns the root group.
Result<Hdf5Id> note_from_root(hid_t file, std::set<ObjectKey>& seen, Found& found) {
  Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT));
  if (!root.valid()) return hdf5_failure(Code::internal, "the root group cannot be opened");
  note_group(root.get(), seen, found);
  return root;
}

/// Select the slab in the dataset's space, and a dense one in memory.
bool select_slab(hid_t dataset, const Slab& slab, Hdf5Id& in_file, Hdf5Id& in_memory) {
  in_file = Hdf5Id(H5Dget_space(dataset));
  if (!in_file.valid()) return false;
  if (slab.rank() == 0) {
    in_memory = Hdf5Id(H5Screate(H5S_SCALAR));
    return in_memory.valid();
  }
  const std::vector<hsize_t> start(slab.start.begin(), slab.start.end());
  const std::vector<hsize_t> count(slab.count.begin(), slab.count.end());
  std::vector<hsize_t> stride(slab.rank(), 1);
  for (std::size_t d = 0; d < slab.rank(); ++d) stride[d] = slab.stride_of(d);
  in_memory = Hdf5Id(H5Screate_simple(int(count.size()), count.data(), nullptr));
  return in_memory.valid() && H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(),
                                                  stride.data(), count.data(), nullptr) >= 0;
}

}  // namespace

Result<std::int64_t> open_dataset_at(std::int64_t file_id, std::uint64_t address) {
  const Hdf5Scope scope;
  Hdf5Id object(open_by_key(file_id, key_of(address)));
  const std::string what = "object at address " + std::to_string(address);
  if (!object.valid()) return hdf5_open_failure(what);
  if (H5Iget_type(object.get()) == H5I_DATASET) return object.release();
  return Status(Code::invalid_argument, what + " is not a dataset");
}

void close_hdf5_id(std::int64_t id) {
  const Hdf5Scope scope;
  Hdf5Id closed(id);
}

Result<StoredDataset> describe_dataset_at(std::int64_t file_id, std::uint64_t address) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const std::int64_t opened, open_dataset_at(file_id, address));
  const Hdf5Id dataset(opened);
  StoredDataset described;
  const ssize_t length = H5Iget_name(dataset.get(), nullptr, 0);
  if (length > 0) {
    described.path.resize(static_cast<std::size_t>(length) + 1);
    H5Iget_name(dataset.get(), described.path.data(), described.path.size());
    described.path.pop_back();
  }
  DatasetDescriber describer(DatasetDescriber::Foreign::describe);
  TAILRACE_TRY(describer.describe(dataset.get(), described));
  described.guards_text = hdf5_text_attribute(dataset.get(), kGuardAttribute);
  return described;
}

Status set_attributes_at(std::int64_t file_id, std::uint64_t address,
                         std::span<const NamedAttribute> attributes) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const std::int64_t opened, open_dataset_at(file_id, address));
  const Hdf5Id dataset(opened);
  for (const auto& [name, value] : attributes) {
    TAILRACE_TRY(write_attribute(dataset.get(), name, value));
  }
  return Status();
}

Result<CountedObjects> counted_objects(std::int64_t file_id) {
  const Hdf5Scope scope;
  Found found;
  std::set<ObjectKey> seen;
  TAILRACE_TAKE(const Hdf5Id root, note_from_root(file_id, seen, found));
  if (found.failed) {
    return hdf5_failure(Code::internal, "the objects of the file cannot be listed");
  }
  ObjectFacts facts;
  // HDF5 counts one extra reference to the root group.
  if (get_object_facts(root.get(), facts)) ++found.links[address_of(facts.key)];
  CountedObjects counted;
  for (const auto& [address, n_links] : found.links) {
    const Hdf5Id object(open_by_key(file_id, key_of(address)));
    if (!object.valid() || !get_object_facts(object.get(), facts)) {
      return hdf5_failure(Code::internal, "the objects of the file cannot be listed");
    }
    if (facts.n_links > n_links) counted[address] = facts.n_links - n_links;
  }
  return counted;
}

HeldObjects::HeldObjects(std::int64_t file_id, const CountedObjects& counted) {
  const Hdf5Scope scope;
  ids_.reserve(counted.size());
  for (const auto& [address, n] : counted) {
    const hid_t id = open_by_key(file_id, key_of(address));
    if (id >= 0 || !hdf5_lacked_means()) ids_.emplace_back(address, id);
  }
}

void HeldObjects::release(CountedObjects& counted) {
  const Hdf5Scope scope;
  for (const auto& [address, id] : ids_) {
    const Hdf5Id object(id);
    ObjectFacts facts;
    const bool known = object.valid() && get_object_facts(object.get(), facts);
    if (!object.valid() || (known && facts.n_links == 0)) counted.erase(address);
  }
  ids_.clear();
}

Result<std::set<std::uint64_t>> live_dataset_addresses(std::int64_t file_id,
                                                       const CountedObjects& counted) {
  const Hdf5Scope scope;
  Found found;
  std::set<ObjectKey> seen;
  TAILRACE_TRY(note_from_root(file_id, seen, found).status());
  for (const auto& [address, n] : counted) {
    if (!seen.insert(key_of(address)).second) continue;
    const Hdf5Id object(open_by_key(file_id, key_of(address)));
    if (!object.valid()) {
      found.failed = found.failed || hdf5_lacked_means();
      continue;  // A user-defined link has released it, and HDF5 has freed it.
    }
    if (H5Iget_type(object.get()) == H5I_GROUP) {
      note_group(object.get(), seen, found);
    } else {
      note_dataset(object.get(), found);
    }
  }
  if (found.failed) {
    return hdf5_failure(Code::internal, "the datasets of the file cannot be listed");
  }
  TAILRACE_TAKE(std::set<std::uint64_t> open, open_dataset_addresses(file_id));
  found.addresses.merge(open);
  return std::move(found.addresses);
}

Result<std::set<std::uint64_t>> open_dataset_addresses(std::int64_t file_id) {
  const Hdf5Scope scope;
  Found found;
  const ssize_t n_open = H5Fget_obj_count(file_id, H5F_OBJ_DATASET);
  std::vector<hid_t> open(n_open > 0 ? static_cast<std::size_t>(n_open) : 0);
  if (n_open > 0 && H5Fget_obj_ids(file_id, H5F_OBJ_DATASET, open.size(), open.data()) < 0) {
    found.failed = true;
  }
  for (const hid_t dataset : open) note_dataset(dataset, found);
  if (n_open < 0 || found.failed) {
    return hdf5_failure(Code::internal, "the datasets of the file cannot be listed");
  }
  return std::move(found.addresses);
}

Status write_elements(std::int64_t dataset_id, const Slab& slab,
                      std::span<const std::byte> values) {
  const Hdf5Scope scope;
  Hdf5Id in_file;
  Hdf5Id in_memory;
  const Hdf5Id type(H5Dget_type(dataset_id));
  const auto write = [&] {
    return H5Dwrite(dataset_id, type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT,
                    values.data());
  };
  if (!type.valid() || !select_slab(dataset_id, slab, in_file, in_memory) ||
      call_with_filters(dataset_id, write) < 0) {
    return hdf5_failure(Code::internal, "slab " + slab_text(slab) + " cannot be written");
  }
  return Status();
}

Status write_member(std::int64_t dataset_id, const std::string& name, const Slab& slab,
                    std::span<const std::byte> values) {
  const Hdf5Scope scope;
  Hdf5Id in_file;
  Hdf5Id in_memory;
  const Hdf5Id type(H5Dget_type(dataset_id));
  const int index = type.valid() ? H5Tget_member_index(type.get(), name.c_str()) : -1;
  const Hdf5Id member(index >= 0 ? H5Tget_member_type(type.get(), unsigned(index)) : -1);
  const Hdf5Id alone(member.valid() ? H5Tcreate(H5T_COMPOUND, H5Tget_size(member.get())) : -1);
  const auto write = [&] {
    return H5Dwrite(dataset_id, alone.get(), in_memory.get(), in_file.get(), H5P_DEFAULT,
                    values.data());
  };
  if (!alone.valid() || H5Tinsert(alone.get(), name.c_str(), 0, member.get()) < 0 ||
      !select_slab(dataset_id, slab, in_file, in_memory) ||
      call_with_filters(dataset_id, write) < 0) {
    return hdf5_failure(Code::internal, "member \"" + name + "\" of slab " + slab_text(slab) +
                                            " cannot be written");
  }
  return Status();
}

Status flush_elements(std::int64_t dataset_id) {
  const Hdf5Scope scope;
  if (H5Dflush(dataset_id) >= 0) return Status();
  return hdf5_failure(Code::internal, "the dataset's buffered values cannot be written");
}

Status close_elements(std::int64_t dataset_id) {
  const Hdf5Scope scope;
  if (H5Dclose(dataset_id) >= 0) return Status();
  return hdf5_failure(Code::internal, "the dataset's buffered values cannot be written");
}

Status read_elements(std::int64_t file_id, std::uint64_t address, const Slab& slab,
                     std::span<std::byte> values) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const std::int64_t opened, open_dataset_at(file_id, address));
  const Hdf5Id dataset(opened);
  Hdf5Id in_file;
  Hdf5Id in_memory;
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const std::string what = "slab " + slab_text(slab);
  if (!type.valid() || !select_slab(dataset.get(), slab, in_file, in_memory)) {
    return hdf5_failure(Code::internal, what + " cannot be selected");
  }
  if (H5Dread(dataset.get(), type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT,
              values.data()) < 0) {
    return plain_read_failure(dataset.get(), what + " cannot be read");
  }
  return Status();
}

Result<std::int64_t> open_last_commit(const std::string& path) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(Hdf5Id file, open_plain_hdf5(path));
  return file.release();
}

}  // namespace tailrace
