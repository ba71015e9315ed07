// Resolving references by path.

#include "container/hdf5_references.hpp"

#include <algorithm>
#include <cstring>

#include "container/hdf5_handle.hpp"

namespace tailrace {
namespace {

bool all_zero(const void* bytes, std::size_t n_bytes) {
  const auto* const first = static_cast<const unsigned char*>(bytes);
  return std::all_of(first, first + n_bytes, [](unsigned char byte) { return byte == 0; });
}

}  // namespace

void Hdf5References::learn_paths() {
  learnt_ = true;
  for (const Hdf5Node& node : catalog_.nodes) {
    const bool is_object =
        node.kind == Hdf5Node::Kind::group || node.kind == Hdf5Node::Kind::field ||
        node.kind == Hdf5Node::Kind::dataset || node.kind == Hdf5Node::Kind::named_type;
    if (!is_object) continue;
    const Hdf5Id object(H5Oopen(input_, node.path.c_str(), H5P_DEFAULT));
    ObjectFacts facts;
    if (object.valid() && get_object_facts(object.get(), facts)) {
      paths_.emplace(facts.key, node.path);
    }
  }
}

std::optional<std::string> Hdf5References::path_of(hid_t input_object) {
  if (!learnt_) learn_paths();
  ObjectFacts facts;
  if (!get_object_facts(input_object, facts)) return std::nullopt;
  const auto found = paths_.find(facts.key);
  if (found == paths_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Hdf5References::path_of_reference(const void* reference) {
  if (all_zero(reference, sizeof(hobj_ref_t))) return std::nullopt;
  const Hdf5Id object(H5Rdereference2(input_, H5P_DEFAULT, H5R_OBJECT, reference));
  if (!object.valid()) return std::nullopt;
  return path_of(object.get());
}

bool Hdf5References::holds_references(hid_t type) {
  return H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

std::uint64_t Hdf5References::rewrite(hid_t type, void* values, std::uint64_t n_values) {
  if (!holds_references(type)) return 0;
  const std::size_t value_bytes = H5Tget_size(type);
  std::uint64_t n_unresolved = 0;
  auto* value = static_cast<std::byte*>(values);
  for (std::uint64_t i = 0; i < n_values; ++i, value += value_bytes) {
    n_unresolved += rewrite_members(type, value);
  }
  return n_unresolved;
}

std::uint64_t Hdf5References::rewrite_members(hid_t type, std::byte* value) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: return rewrite_one(type, value);
    case H5T_VLEN: {
      const Hdf5Id element(H5Tget_super(type));
      hvl_t list;
      std::memcpy(&list, value, sizeof(list));
      return list.p == nullptr ? 0 : rewrite(element.get(), list.p, list.len);
    }
    case H5T_ARRAY: {
      const Hdf5Id element(H5Tget_super(type));
      return rewrite(element.get(), value, H5Tget_size(type) / H5Tget_size(element.get()));
    }
    case H5T_COMPOUND: {
      std::uint64_t n_unresolved = 0;
      const int n_members = H5Tget_nmembers(type);
      for (unsigned i = 0; n_members > 0 && i < static_cast<unsigned>(n_members); ++i) {
        const Hdf5Id member(H5Tget_member_type(type, i));
        n_unresolved += rewrite(member.get(), value + H5Tget_member_offset(type, i), 1);
      }
      return n_unresolved;
    }
    default: return 0;
  }
}

std::uint64_t Hdf5References::rewrite_one(hid_t type, void* reference) {
  const std::size_t n_bytes = H5Tget_size(type);
  if (all_zero(reference, n_bytes)) return 0;
  const bool to_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
  const bool to_object = H5Tequal(type, H5T_STD_REF_OBJ) > 0;
  const H5R_type_t kind = to_region ? H5R_DATASET_REGION : H5R_OBJECT;
  bool done = false;
  if (to_region || to_object) {
    const Hdf5Id object(H5Rdereference2(input_, H5P_DEFAULT, kind, reference));
    const std::optional<std::string> path =
        object.valid() ? path_of(object.get()) : std::optional<std::string>();
    if (path && H5Oexists_by_name(output_, path->c_str(), H5P_DEFAULT) > 0) {
      const Hdf5Id region(to_region ? H5Rget_region(input_, kind, reference) : H5I_INVALID_HID);
      done = (!to_region || region.valid()) &&
             H5Rcreate(reference, output_, path->c_str(), kind, region.get()) >= 0;
    }
  }
  // A reference type of a later HDF5, a dangling reference, or an object that is not in the output.
  if (!done) std::memset(reference, 0, n_bytes);
  return done ? 0 : 1;
}

}  // namespace tailrace
