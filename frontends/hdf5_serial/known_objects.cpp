#include "hdf5_serial/known_objects.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace tailrace::hdf5_serial {
namespace {

/// Closes an id by the given function.
class OpenId {
 public:
  OpenId(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  OpenId(const OpenId&) = delete;
  OpenId& operator=(const OpenId&) = delete;
  ~OpenId() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool open() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Read the elements of a text attribute. Texts that are too long stay empty.
std::vector<std::string> read_texts(const SerialHdf5& hdf5, hid_t attribute, hid_t type,
                                    hid_t space, std::size_t n) {
  std::vector<std::string> texts(n);
  const std::size_t n_bytes = hdf5.H5Tget_size(type);
  if (hdf5.H5Tis_variable_str(type) > 0) {
    std::vector<char*> pointers(n, nullptr);
    if (hdf5.H5Aread(attribute, type, pointers.data()) < 0) return {};
    for (std::size_t i = 0; i < n; ++i) {
      if (pointers[i] == nullptr) continue;
      const std::size_t length = ::strnlen(pointers[i], kAttributeTextBytesMax + 1);
      if (length <= kAttributeTextBytesMax) texts[i].assign(pointers[i], length);
    }
    hdf5.H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    return texts;
  }
  if (n_bytes > kAttributeTextBytesMax) return {};
  std::string all(n * n_bytes, '\0');
  if (hdf5.H5Aread(attribute, type, all.data()) < 0) return {};
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view padded = std::string_view(all).substr(i * n_bytes, n_bytes);
    texts[i] = padded.substr(0, padded.find('\0'));
  }
  return texts;
}

struct Names {
  std::vector<std::string> names;
  bool failed = false;  ///< Memory is missing.
};

herr_t note_name(hid_t, const char* name, const H5A_info_t*, void* data) {
  auto* const found = static_cast<Names*>(data);
  try {
    if (states_role(name)) found->names.emplace_back(name);
  } catch (const std::bad_alloc&) {
    found->failed = true;  // Exceptions must not pass through HDF5's C code.
    return -1;
  }
  return 0;
}

/// Read the attributes that rules use. An attribute that HDF5 cannot read is stated without values.
/// @returns false if HDF5 cannot list them
bool read_attributes(const SerialHdf5& hdf5, hid_t object,
                     std::vector<StatedAttribute>& attributes) {
  Names found;
  const herr_t listed =
      hdf5.H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, note_name, &found);
  if (found.failed) throw std::bad_alloc();
  attributes.clear();
  for (std::string& name : found.names) {
    const OpenId attribute(hdf5.H5Aopen(object, name.c_str(), H5P_DEFAULT), hdf5.H5Aclose);
    StatedAttribute& stated = attributes.emplace_back();
    stated.name = std::move(name);
    if (!attribute.open()) continue;
    const OpenId type(hdf5.H5Aget_type(attribute.get()), hdf5.H5Tclose);
    const OpenId space(hdf5.H5Aget_space(attribute.get()), hdf5.H5Sclose);
    if (!type.open() || !space.open()) continue;
    const hssize_t n_points = hdf5.H5Sget_select_npoints(space.get());
    if (n_points <= 0 || n_points > hssize_t(kAttributeElementsMax)) continue;
    const auto n = static_cast<std::size_t>(n_points);
    const H5T_class_t kind = hdf5.H5Tget_class(type.get());
    if (kind == H5T_STRING) {
      stated.texts = read_texts(hdf5, attribute.get(), type.get(), space.get(), n);
    } else if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
      stated.numbers.resize(n);
      if (hdf5.H5Aread(attribute.get(), *hdf5.H5T_NATIVE_DOUBLE_g, stated.numbers.data()) < 0) {
        stated.numbers.clear();
      }
    }
  }
  return listed >= 0;
}

/// Describe an open dataset. @returns false if HDF5 cannot
/// @param numbers  set to true if its elements are numbers
bool describe(const SerialHdf5& hdf5, hid_t dataset, const std::string& path, StatedObject& stated,
              bool& numbers) {
  stated.path = path;
  stated.shape.clear();
  const OpenId type(hdf5.H5Dget_type(dataset), hdf5.H5Tclose);
  const OpenId space(hdf5.H5Dget_space(dataset), hdf5.H5Sclose);
  const H5T_class_t kind = type.open() ? hdf5.H5Tget_class(type.get()) : H5T_NO_CLASS;
  const int rank = space.open() ? hdf5.H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank > 0) {
    std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
    if (hdf5.H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) == rank) {
      stated.shape.assign(extents.begin(), extents.end());
    }
  }
  stated.floating = kind == H5T_FLOAT;
  numbers = kind == H5T_FLOAT || kind == H5T_INTEGER;
  return kind != H5T_NO_CLASS && rank >= 0 && read_attributes(hdf5, dataset, stated.attributes);
}

struct Listed {
  std::vector<std::string> paths;
  bool failed = false;  ///< Memory is missing.
};

herr_t note_dataset(hid_t, const char* name, const H5O_info_t* info, void* data) {
  auto* const listed = static_cast<Listed*>(data);
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    listed->paths.push_back(std::string("/") + name);
  } catch (const std::bad_alloc&) {
    listed->failed = true;
    return -1;
  }
  return 0;
}

}  // namespace

bool KnownObjects::list(const SerialHdf5& hdf5, hid_t file) {
  Listed listed;
  const herr_t visited =
      hdf5.H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, note_dataset, &listed, H5O_INFO_BASIC);
  if (listed.failed) throw std::bad_alloc();
  for (std::string& path : listed.paths) add(std::move(path));
  return visited >= 0;
}

std::optional<RoleVerdict> KnownObjects::role_of(const SerialHdf5& hdf5, hid_t dataset,
                                                 const std::string& path) {
  RoleFacts facts;
  bool numbers = false;
  if (!describe(hdf5, dataset, path, facts.datasets.emplace_back(), numbers)) return std::nullopt;
  for (std::size_t end = path.rfind('/'); end != std::string::npos;) {
    const std::string above = end == 0 ? "/" : path.substr(0, end);
    const OpenId group(hdf5.H5Oopen(dataset, above.c_str(), H5P_DEFAULT), hdf5.H5Oclose);
    StatedObject& stated = facts.groups.emplace_back();
    stated.path = above;
    if (!group.open() || !read_attributes(hdf5, group.get(), stated.attributes)) {
      return std::nullopt;
    }
    end = end == 0 ? std::string::npos : path.rfind('/', end - 1);
  }
  for (const std::string_view marker : role_markers()) {
    const OpenId marking(hdf5.H5Oopen(dataset, std::string(marker).c_str(), H5P_DEFAULT),
                         hdf5.H5Oclose);
    if (marking.open()) facts.others.emplace_back(marker);
  }
  for (std::size_t i = 0; i < others_.size(); ++i) {
    Other& other = others_[i];
    const bool seen = i < kFirst || i + kLast >= others_.size();
    if (!seen || other.gone || other.path == path) continue;
    if (other.n_reads < kReads) {
      const OpenId object(hdf5.H5Oopen(dataset, other.path.c_str(), H5P_DEFAULT), hdf5.H5Oclose);
      other.gone = !object.open() || hdf5.H5Iget_type(object.get()) != H5I_DATASET;
      if (other.gone) continue;  // Its creation failed, or it was deleted.
      if (!describe(hdf5, object.get(), other.path, other.stated, other.numbers)) {
        return std::nullopt;
      }
      ++other.n_reads;
    }
    if (other.numbers) {
      facts.datasets.push_back(other.stated);
    } else {
      facts.others.push_back(other.path);
    }
  }
  return decide_roles(facts)[0];
}

}  // namespace tailrace::hdf5_serial
