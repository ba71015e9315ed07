// The walk over the objects of an HDF5 file.

#include "describe/hdf5_walk.hpp"

#include <unordered_map>
#include <utility>
#include <vector>

#include "hdf5/hdf5_paths.hpp"

namespace tailrace {
namespace {

struct NamedLink {
  std::string name;
  LinkInfo info;
};

herr_t collect_link(hid_t, const char* name, const LinkInfo* info, void* links) {
  // An exception must not cross HDF5's C frames; a full memory ends the iteration as a failure.
  try {
    static_cast<std::vector<NamedLink>*>(links)->push_back({name, *info});
  } catch (...) {
    return -1;
  }
  return 0;
}

Status failed(const std::string& path, const char* what) {
  return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be " + what);
}

class Walk {
 public:
  Walk(hid_t file, Hdf5Visitor& visitor) : file_(file), visitor_(visitor) {}

  Status run() {
    const Hdf5Id root(H5Gopen2(file_, "/", H5P_DEFAULT));
    ObjectFacts facts;
    if (!root.valid() || !get_object_facts(root.get(), facts)) return failed("/", "opened");
    seen_.emplace(facts.key, "/");
    TAILRACE_TRY(visit_group(root.get(), "/"));
    // By hand, not by recursion: a chain of nested groups must not use up the stack.
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      TAILRACE_TRY(next.info.type == H5L_TYPE_HARD ? visit_object(next.path, link_key(next.info))
                                                   : visitor_.other_link(next.path, next.info));
    }
    return Status();
  }

 private:
  struct Pending {
    std::string path;
    LinkInfo info;
  };

  Status visit_object(const std::string& path, const ObjectKey& key) {
    const auto [known, added] = seen_.emplace(key, path);
    if (!added) return visitor_.again(path, known->second);
    const Hdf5Id object(open_by_key(file_, key));
    if (!object.valid()) return failed(path, "opened");
    switch (H5Iget_type(object.get())) {
      case H5I_GROUP: return visit_group(object.get(), path);
      case H5I_DATASET: return visitor_.dataset(object.get(), path);
      default: return visitor_.other_object(object.get(), path);
    }
  }

  Status visit_group(hid_t group, const std::string& path) {
    TAILRACE_TRY(visitor_.group(group, path));
    const Hdf5Id creation(H5Gget_create_plist(group));
    unsigned order = 0;
    if (!creation.valid() || H5Pget_link_creation_order(creation.get(), &order) < 0) {
      return failed(path, "listed");
    }
    const H5_index_t index =
        (order & H5P_CRT_ORDER_TRACKED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    links_.clear();
    if (iterate_links(group, index, collect_link, &links_) < 0) return failed(path, "listed");
    for (std::size_t i = links_.size(); i-- > 0;) {
      pending_.push_back({child_path(path, links_[i].name), links_[i].info});
    }
    return Status();
  }

  hid_t file_;
  Hdf5Visitor& visitor_;
  std::vector<Pending> pending_;  // Next on top.
  std::vector<NamedLink> links_;
  std::unordered_map<ObjectKey, std::string> seen_;  ///< By which path each was visited.
};

}  // namespace

Status Hdf5Visitor::group(hid_t, const std::string&) { return Status(); }
Status Hdf5Visitor::other_object(hid_t, const std::string&) { return Status(); }
Status Hdf5Visitor::again(const std::string&, const std::string&) { return Status(); }
Status Hdf5Visitor::other_link(const std::string&, const LinkInfo&) { return Status(); }

Status walk_hdf5(hid_t file, Hdf5Visitor& visitor) { return Walk(file, visitor).run(); }

Result<std::string> read_link_value(hid_t file, const std::string& path, const LinkInfo& info) {
  std::string value(info.u.val_size, '\0');
  if (H5Lget_val(file, path.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0) {
    return hdf5_failure(Code::corrupt, "link \"" + path + "\" cannot be read");
  }
  return value;
}

}  // namespace tailrace
