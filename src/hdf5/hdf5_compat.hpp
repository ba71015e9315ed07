// Differences between HDF5 1.10, 1.12/1.14 and 2.x in the calls used to read files and to serve
// programs.
//
// HDF5 1.12 replaced object addresses by tokens and renumbered several functions. All version
// checks for reading and copying are in this file.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "hdf5/hdf5_handle.hpp"

#if H5_VERSION_GE(1, 14, 0)
#include <H5VLconnector_passthru.h>
#endif

namespace tailrace {

#if H5_VERSION_GE(1, 12, 0)
using LinkInfo = H5L_info2_t;
using ObjectInfo = H5O_info2_t;
#else
using LinkInfo = H5L_info_t;
using ObjectInfo = H5O_info_t;
#endif

// Owner of files and objects: HDF5's native connector or another VOL connector. A program may make
// another connector the default of all lists (HDF5_VOL_CONNECTOR).

#if H5_VERSION_GE(1, 12, 0)
inline Hdf5Id own_connector() { return Hdf5Id(H5VLget_connector_id_by_name("native")); }
#endif

/// Set the native connector in a file access list. @returns false if HDF5 failed.
inline bool make_own_files([[maybe_unused]] hid_t access_list) {
#if H5_VERSION_GE(1, 12, 0)
  const Hdf5Id own = own_connector();
  return own.valid() && H5Pset_vol(access_list, own.get(), nullptr) >= 0;
#else
  return true;
#endif
}

/// True if a file access list uses the native connector.
inline bool makes_own_files([[maybe_unused]] hid_t access_list) {
#if H5_VERSION_GE(1, 12, 0)
  const Hdf5Id own = own_connector();
  hid_t chosen = H5I_INVALID_HID;
  if (H5Pget_vol_id(access_list, &chosen) < 0) return false;
  const Hdf5Id held(chosen);
#if H5_VERSION_GE(1, 14, 0)
  // HDF5 2 returns a new id for the same connector on each call.
  int differs = 1;
  return H5VLcmp_connector_cls(&differs, chosen, own.get()) >= 0 && differs == 0;
#else
  return chosen == own.get();
#endif
#else
  return true;
#endif
}

/// True if the object behind an id belongs to another VOL connector.
inline bool is_of_connector([[maybe_unused]] hid_t id) {
#if H5_VERSION_GE(1, 14, 0)
  char name[16] = "";
  return H5VLget_connector_name(id, name, sizeof(name)) > 0 && std::string(name) != "native";
#else
  return false;
#endif
}

/// A file access list with the native connector, for our own files.
inline Hdf5Id new_access_list() {
  Hdf5Id list(H5Pcreate(H5P_FILE_ACCESS));
  if (!list.valid() || !make_own_files(list.get())) return Hdf5Id();
  return list;
}

/// Identifies an object within its file.
using ObjectKey = std::string;

struct ObjectFacts {
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  unsigned n_links = 0;  ///< Hard links that lead to the object.
  /// Count from the header; asking for each attribute by name costs more.
  std::uint64_t n_attributes = 0;
  ObjectKey key;
};

/// Facts of an open object. @returns false if HDF5 failed.
inline bool get_object_facts(hid_t object, ObjectFacts& facts) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.token), sizeof(info.token));
#elif H5_VERSION_GE(1, 10, 3)
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.addr), sizeof(info.addr));
#else
  H5O_info_t info;
  if (H5Oget_info(object, &info) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.addr), sizeof(info.addr));
#endif
  facts.type = info.type;
  facts.n_links = info.rc;
  facts.n_attributes = info.num_attrs;
  return true;
}

/// Basic facts in an object's header: its kind, the number of its file (the same for all ids of a
/// file), its address. @returns false if HDF5 failed.
inline bool get_object_info(hid_t object, ObjectInfo& info) {
#if H5_VERSION_GE(1, 12, 0)
  return H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0;
#elif H5_VERSION_GE(1, 10, 3)
  return H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0;
#else
  return H5Oget_info(object, &info) >= 0;
#endif
}

/// The address of an object's header. In native files the token is that address, little-endian.
inline std::uint64_t object_address(const ObjectInfo& info) {
#if H5_VERSION_GE(1, 12, 0)
  std::uint64_t address = 0;
  for (std::size_t i = 0; i < sizeof(address); ++i) {
    address |= std::uint64_t{info.token.__data[i]} << (8 * i);
  }
  return address;
#else
  return info.addr;
#endif
}

/// Visit an object and all objects below it, ordered by name.
inline herr_t visit_objects(hid_t object,
                            herr_t (*visit)(hid_t, const char*, const ObjectInfo*, void*),
                            void* data) {
#if H5_VERSION_GE(1, 12, 0)
  return H5Ovisit3(object, H5_INDEX_NAME, H5_ITER_INC, visit, data, H5O_INFO_BASIC);
#elif H5_VERSION_GE(1, 10, 3)
  return H5Ovisit2(object, H5_INDEX_NAME, H5_ITER_INC, visit, data, H5O_INFO_BASIC);
#else
  return H5Ovisit(object, H5_INDEX_NAME, H5_ITER_INC, visit, data);
#endif
}

/// Bytes of a dataset's chunk index; 0 if no chunk was ever written. HDF5 reads only the index's
/// head.
inline std::uint64_t chunk_index_bytes(hid_t dataset) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_native_info_t info;
  const herr_t got = H5Oget_native_info(dataset, &info, H5O_NATIVE_INFO_META_SIZE);
#elif H5_VERSION_GE(1, 10, 3)
  H5O_info_t info;
  const herr_t got = H5Oget_info2(dataset, &info, H5O_INFO_META_SIZE);
#else
  H5O_info_t info;
  const herr_t got = H5Oget_info(dataset, &info);
#endif
  return got < 0 ? 0 : info.meta_size.obj.index_size;
}

/// Let HDF5 read one stored chunk of any length, still encoded.
inline herr_t read_stored_chunk(hid_t dataset, const hsize_t* offset, std::uint32_t* filter_mask,
                                void* bytes) {
#if H5_VERSION_GE(2, 0, 0)
  std::size_t n_bytes = std::size_t{1} << 32;
  return H5Dread_chunk(dataset, H5P_DEFAULT, offset, filter_mask, bytes, &n_bytes);
#else
  return H5Dread_chunk(dataset, H5P_DEFAULT, offset, filter_mask, bytes);
#endif
}

/// Visit the links of a group in increasing order of `index`.
inline herr_t iterate_links(hid_t group, H5_index_t index,
                            herr_t (*visit)(hid_t, const char*, const LinkInfo*, void*),
                            void* data) {
#if H5_VERSION_GE(1, 12, 0)
  return H5Literate2(group, index, H5_ITER_INC, nullptr, visit, data);
#else
  return H5Literate(group, index, H5_ITER_INC, nullptr, visit, data);
#endif
}

/// Key of the object that a hard link leads to; the link is of the same file.
inline ObjectKey link_key(const LinkInfo& link) {
#if H5_VERSION_GE(1, 12, 0)
  return ObjectKey(reinterpret_cast<const char*>(&link.u.token), sizeof(link.u.token));
#else
  return ObjectKey(reinterpret_cast<const char*>(&link.u.address), sizeof(link.u.address));
#endif
}

/// Address of an object's header, counted from the superblock; for messages.
inline std::uint64_t address_of_key(const ObjectKey& key) {
  std::uint64_t address = 0;  // A native token also begins with the address.
  std::memcpy(&address, key.data(), std::min(sizeof(address), key.size()));
  return address;
}

/// Open an object without looking up its path.
inline hid_t open_by_key(hid_t file, const ObjectKey& key) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_token_t token;
  std::memcpy(&token, key.data(), sizeof(token));
  return H5Oopen_by_token(file, token);
#else
  haddr_t address = HADDR_UNDEF;
  std::memcpy(&address, key.data(), sizeof(address));
  return H5Oopen_by_addr(file, address);
#endif
}

/// The type that H5Tencode serialised into these bytes.
inline hid_t decode_type(const void* bytes, [[maybe_unused]] std::size_t n_bytes) {
#if H5_VERSION_GE(2, 0, 0)
  return H5Tdecode2(bytes, n_bytes);
#else
  return H5Tdecode(bytes);
#endif
}

/// Free what HDF5 allocated while reading variable-length values into memory.
inline void reclaim_variable_length(hid_t type, hid_t space, void* values) {
#if H5_VERSION_GE(1, 12, 0)
  H5Treclaim(type, space, H5P_DEFAULT, values);
#else
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
#endif
}

}  // namespace tailrace
