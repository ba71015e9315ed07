// The walk over the objects of an HDF5 file.

#include "hdf5/hdf5_walk.hpp"

#include <algorithm>
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

/// The links of a group, and the number of links that the file can still hold.
struct Collected {
  std::vector<NamedLink> links;
  std::uint64_t n_left = 0;
};

herr_t collect_link(hid_t, const char* name, const LinkInfo* info, void* data) {
  auto& collected = *static_cast<Collected*>(data);
  if (collected.n_left == 0) return -1;
  --collected.n_left;
  return called_by_hdf5([&] {
    collected.links.push_back({name, *info});
    return 0;
  });
}

Status failed(const std::string& path, const char* what) {
  return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be " + what);
}

class Walk {
 public:
  Walk(hid_t file, Hdf5Visitor& visitor, WalkOrder order)
      : file_(file), visitor_(visitor), order_(order) {}

  Status run() {
    const Hdf5Id root(H5Gopen2(file_, "/", H5P_DEFAULT));
    ObjectFacts facts;
    if (!root.valid() || !get_object_facts(root.get(), facts)) return failed("/", "opened");
    seen_.emplace(facts.key, "/");
    // Each link takes more than one byte of the file. So the iteration ends even if nodes of an
    // index refer to each other in a circle.
    hsize_t file_bytes = 0;
    if (H5Fget_filesize(file_, &file_bytes) < 0) return failed("/", "opened");
    collected_.n_left = file_bytes;
    TAILRACE_TRY(visit_group(root.get(), "/"));
    // Iterative, since recursion over a chain of nested groups could exhaust the stack.
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
    if (!object.valid()) {
      const std::string place = "(header at address " + std::to_string(address_of_key(key)) + ")";
      return visitor_.unreadable(path, failed(path, ("opened " + place).c_str()));
    }
    switch (H5Iget_type(object.get())) {
      case H5I_GROUP: return visit_group(object.get(), path);
      case H5I_DATASET: return visitor_.dataset(object.get(), path);
      default: return visitor_.other_object(object.get(), path);
    }
  }

  /// Check path limits before a group's members are queued.
  Status check_limits(const std::string& path) {
    const auto beyond = [&](const std::string& what) {
      constexpr std::size_t shown = 60;
      const std::string start = path.size() > shown ? path.substr(0, shown) + "..." : path;
      return Status(Code::unsupported, "group \"" + start + "\": " + what);
    };
    for (const NamedLink& link : collected_.links) {
      const std::size_t n_bytes = path.size() + 1 + link.name.size();
      if (n_bytes > kPathBytesMax) {
        return beyond("the path of a member has " + std::to_string(n_bytes) +
                      " bytes, the limit is " + std::to_string(kPathBytesMax));
      }
      all_paths_bytes_ += n_bytes;
    }
    n_paths_ += collected_.links.size();
    if (all_paths_bytes_ > std::max(kAllPathsBytesMax, n_paths_ * kMeanPathBytesMax)) {
      return beyond("the paths of " + std::to_string(n_paths_) + " objects have " +
                    std::to_string(all_paths_bytes_) + " bytes, the limit is " +
                    std::to_string(std::max(kAllPathsBytesMax, n_paths_ * kMeanPathBytesMax)));
    }
    return Status();
  }

  Status visit_group(hid_t group, const std::string& path) {
    TAILRACE_TRY(visitor_.group(group, path));
    const Hdf5Id creation(H5Gget_create_plist(group));
    unsigned order = 0;
    if (!creation.valid() || H5Pget_link_creation_order(creation.get(), &order) < 0) {
      return visitor_.unreadable(path, failed(path, "listed"));
    }
    const bool as_created = order_ == WalkOrder::file && (order & H5P_CRT_ORDER_TRACKED) != 0;
    const H5_index_t index = as_created ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    collected_.links.clear();
    if (iterate_links(group, index, collect_link, &collected_) < 0) {
      if (collected_.n_left > 0) return visitor_.unreadable(path, failed(path, "listed"));
      return Status(Code::corrupt, "object \"" + path + "\": the file has more links than bytes");
    }
    TAILRACE_TRY(check_limits(path));
    for (std::size_t i = collected_.links.size(); i-- > 0;) {
      const NamedLink& link = collected_.links[i];
      pending_.push_back({child_path(path, link.name), link.info});
    }
    return Status();
  }

  hid_t file_;
  Hdf5Visitor& visitor_;
  WalkOrder order_;
  std::size_t n_paths_ = 0;
  std::size_t all_paths_bytes_ = 0;
  std::vector<Pending> pending_;  // The next one is last.
  Collected collected_;
  std::unordered_map<ObjectKey, std::string> seen_;  ///< Path at which each object was visited.
};

}  // namespace

Status Hdf5Visitor::group(hid_t, const std::string&) { return Status(); }
Status Hdf5Visitor::other_object(hid_t, const std::string&) { return Status(); }
Status Hdf5Visitor::again(const std::string&, const std::string&) { return Status(); }
Status Hdf5Visitor::other_link(const std::string&, const LinkInfo&) { return Status(); }
Status Hdf5Visitor::unreadable(const std::string&, const Status& why) { return why; }

Status walk_hdf5(hid_t file, Hdf5Visitor& visitor, WalkOrder order) {
  return Walk(file, visitor, order).run();
}

Result<std::string> read_link_value(hid_t file, const std::string& path, const LinkInfo& info) {
  std::string value(info.u.val_size, '\0');
  if (H5Lget_val(file, path.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0) {
    return hdf5_failure(Code::corrupt, "link \"" + path + "\" cannot be read");
  }
  return value;
}

}  // namespace tailrace
