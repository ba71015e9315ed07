// What differs between HDF5 1.10, 1.12/1.14 and 2.x in the calls of the input readers.
//
// 1.12 replaced object addresses by tokens and gave several functions a new number; everything that
// needs a version check for reading and carrying over stands here.

#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "container/hdf5_handle.hpp"

namespace tailrace {

#if H5_VERSION_GE(1, 12, 0)
using LinkInfo = H5L_info2_t;
#else
using LinkInfo = H5L_info_t;
#endif

/// Identifies an object within its file.
using ObjectKey = std::string;

struct ObjectFacts {
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  unsigned n_links = 0;  ///< Hard links that lead to it.
  ObjectKey key;
};

/// Facts of an open object. @returns false if HDF5 failed.
inline bool get_object_facts(hid_t object, ObjectFacts& facts) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.token), sizeof(info.token));
#elif H5_VERSION_GE(1, 10, 3)
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.addr), sizeof(info.addr));
#else
  H5O_info_t info;
  if (H5Oget_info(object, &info) < 0) return false;
  facts.key.assign(reinterpret_cast<const char*>(&info.addr), sizeof(info.addr));
#endif
  facts.type = info.type;
  facts.n_links = info.rc;
  return true;
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

/// Free what HDF5 allocated while reading variable-length values into memory.
inline void reclaim_variable_length(hid_t type, hid_t space, void* values) {
#if H5_VERSION_GE(1, 12, 0)
  H5Treclaim(type, space, H5P_DEFAULT, values);
#else
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
#endif
}

}  // namespace tailrace
