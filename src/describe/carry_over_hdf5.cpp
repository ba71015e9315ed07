// Carries groups, foreign datasets, links, attributes and dimension scales from HDF5 to HDF5.
//
// In two passes around the creation of the fields: what fields may lie in or refer to comes first
// (groups, named types, foreign datasets); what refers to fields comes last (attributes with
// references, dimension scales, second hard links, the order of links). What cannot be carried over
// becomes a line for the user and never stops the rest; failing storage shows at the commit.

#include "describe/carry_over_hdf5.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/buffer.hpp"
#include "describe/hdf5_copy.hpp"
#include "describe/input_conventions.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {
namespace {

using Lines = std::vector<std::string>;

/// Links up to this number stay in a group's header, as in files of our own (hdf5_properties.cpp).
constexpr unsigned kCompactLinksMax = 512;

/// The links of one group, in their order.
struct Members {
  std::vector<std::string> names;
  std::uint64_t name_bytes = 0;
};
using MembersOfGroups = std::map<std::string, Members>;

void report_failure(Lines& lines, const std::string& what) {
  const std::string reason = hdf5_error_text();
  lines.push_back(what + (reason.empty() ? "" : ": " + reason));
}

/// Creation properties like those of a group. Not the list that HDF5 gives for it: that one holds
/// the number and place of the group's links, which a new group must not take over.
Hdf5Id creation_like(hid_t group, const Members& members) {
  const Hdf5Id given(H5Gget_create_plist(group));
  Hdf5Id creation(H5Pcreate(H5P_GROUP_CREATE));
  unsigned link_order = 0;
  unsigned attribute_order = 0;
  H5Pget_link_creation_order(given.get(), &link_order);
  H5Pget_attr_creation_order(given.get(), &attribute_order);
  // netCDF-4 opens no file for writing that has a group without order. Members are created in the
  // input's order, which is that of names where it tracks none.
  constexpr unsigned ordered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  H5Pset_link_creation_order(creation.get(), link_order | ordered);
  H5Pset_attr_creation_order(creation.get(), attribute_order | ordered);
  // Room for all links in the group's header: a heap and a B-tree cost 4 KiB and more. Where there
  // are too many for that, none starts there: moving 512 of them out takes HDF5 half a minute.
  const bool compact = members.names.size() <= kCompactLinksMax;
  H5Pset_link_phase_change(creation.get(), compact ? kCompactLinksMax : 0,
                           compact ? kCompactLinksMax / 2 : 0);
  if (compact && !members.names.empty()) {
    H5Pset_est_link_info(creation.get(), static_cast<unsigned>(members.names.size()),
                         static_cast<unsigned>(members.name_bytes / members.names.size() + 2));
  }
  return creation;
}

MembersOfGroups members_of_groups(const Hdf5Catalog& catalog) {
  MembersOfGroups members;
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.path == "/") continue;
    Members& group = members[parent_path(node.path)];
    group.names.push_back(last_component(node.path));
    group.name_bytes += group.names.back().size();
  }
  return members;
}

void copy_group(hid_t input, hid_t output, const std::string& path, const Members& members,
                Lines& lines) {
  if (link_exists(output, path)) return;
  const Hdf5Id from(H5Gopen2(input, path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation = creation_like(from.get(), members);
  const Hdf5Id links = utf8_link_properties();
  const Hdf5Id made(H5Gcreate2(output, path.c_str(), links.get(), creation.get(), H5P_DEFAULT));
  if (!made.valid()) report_failure(lines, "group \"" + path + "\" cannot be created");
}

void copy_link(hid_t output, const Hdf5Node& node, Lines& lines) {
  const Hdf5Id links = utf8_link_properties();
  const bool soft = node.kind == Hdf5Node::Kind::soft_link;
  const herr_t made =
      soft
          ? H5Lcreate_soft(node.target.c_str(), output, node.path.c_str(), links.get(), H5P_DEFAULT)
          : H5Lcreate_external(node.target_file.c_str(), node.target.c_str(), output,
                               node.path.c_str(), links.get(), H5P_DEFAULT);
  if (made < 0) {
    report_failure(lines, std::string(soft ? "soft" : "external") + " link \"" + node.path +
                              "\" cannot be created");
  }
}

void copy_hard_link(hid_t output, const Hdf5Node& node, Lines& lines) {
  if (!link_exists(output, node.target) || link_exists(output, node.path)) return;
  const Hdf5Id links = utf8_link_properties();
  if (H5Lcreate_hard(output, node.target.c_str(), output, node.path.c_str(), links.get(),
                     H5P_DEFAULT) < 0) {
    report_failure(lines, "hard link \"" + node.path + "\" cannot be created");
  }
}

/// Attach the scales that the input's DIMENSION_LIST names, dimension by dimension.
void attach_scales(hid_t input, hid_t output, const std::string& path, Hdf5References& references,
                   Lines& lines) {
  const Hdf5Id from(H5Dopen2(input, path.c_str(), H5P_DEFAULT));
  if (!from.valid() || H5Aexists(from.get(), "DIMENSION_LIST") <= 0) return;
  const std::string what = "dimension scales of \"" + path + "\"";
  const Hdf5Id attribute(H5Aopen(from.get(), "DIMENSION_LIST", H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id element(H5Tget_class(type.get()) == H5T_VLEN ? H5Tget_super(type.get())
                                                            : H5I_INVALID_HID);
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const Hdf5Id shape(H5Dget_space(from.get()));
  const int rank = H5Sget_simple_extent_ndims(shape.get());
  if (!element.valid() || H5Tequal(element.get(), H5T_STD_REF_OBJ) <= 0 || rank < 0 ||
      H5Sget_simple_extent_npoints(space.get()) != rank) {
    lines.push_back(what + " are not in the form of HDF5's dimension scales: not carried over");
    return;
  }
  const Hdf5Id in_memory(H5Tcopy(type.get()));
  std::vector<hvl_t> lists(static_cast<std::size_t>(rank), hvl_t{0, nullptr});
  if (H5Aread(attribute.get(), in_memory.get(), lists.data()) < 0) {
    return report_failure(lines, what + " cannot be read");
  }
  for (std::size_t d = 0; d < lists.size(); ++d) {
    const auto* const scales = static_cast<const hobj_ref_t*>(lists[d].p);
    for (std::size_t i = 0; scales != nullptr && i < lists[d].len; ++i) {
      const std::optional<std::string> scale = references.path_of_reference(&scales[i]);
      if (!scale || !link_exists(output, *scale) || !link_exists(output, path)) continue;
      const Status attached = attach_scale(output, path, *scale, static_cast<unsigned>(d));
      if (!attached.ok()) lines.push_back(attached.message());
    }
  }
  reclaim_variable_length(in_memory.get(), space.get(), lists.data());
}

void report_fixed_dimensions(const Hdf5Catalog& catalog, Lines& lines) {
  std::string paths;
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.grows_to_limit) paths += (paths.empty() ? "" : ", ") + node.path;
  }
  if (!paths.empty()) {
    lines.push_back("dimensions that could grow up to a limit become fixed in: " + paths);
  }
}

}  // namespace

Result<Lines> carry_over_hdf5_objects(hid_t input, const Hdf5Catalog& catalog, Hdf5File& output) {
  const hid_t out = output.hdf5_id();
  Lines lines;
  Hdf5References references(input, catalog, out);
  Hdf5Copier copier(input, out, references, lines);
  // Types first: datasets and attributes share them.
  MembersOfGroups members = members_of_groups(catalog);
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::group) {
      copy_group(input, out, node.path, members[node.path], lines);
    }
  }
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::named_type) copier.copy_named_type(node.path);
  }
  for (const Hdf5Node& node : catalog.nodes) {
    switch (node.kind) {
      case Hdf5Node::Kind::dataset: copier.copy_dataset(node.path); break;
      case Hdf5Node::Kind::soft_link:
      case Hdf5Node::Kind::external_link: copy_link(out, node, lines); break;
      case Hdf5Node::Kind::unknown_link:
        lines.push_back("\"" + node.path +
                        "\" is a user-defined link or an unknown kind of object: not carried over");
        break;
      case Hdf5Node::Kind::group:
      case Hdf5Node::Kind::named_type:
      case Hdf5Node::Kind::field:
      case Hdf5Node::Kind::duplicate: break;
    }
  }
  report_fixed_dimensions(catalog, lines);
  return lines;
}

Result<Lines> carry_over_hdf5_attributes(hid_t input, const Hdf5Catalog& catalog,
                                         Hdf5File& output) {
  const hid_t out = output.hdf5_id();
  Lines lines;
  Hdf5References references(input, catalog, out);
  Hdf5Copier copier(input, out, references, lines);
  for (const Hdf5Node& node : catalog.nodes) {
    if (node.kind == Hdf5Node::Kind::duplicate) copy_hard_link(out, node, lines);
  }
  for (const Hdf5Node& node : catalog.nodes) {
    const bool is_dataset =
        node.kind == Hdf5Node::Kind::field || node.kind == Hdf5Node::Kind::dataset;
    const bool has_attributes =
        is_dataset || node.kind == Hdf5Node::Kind::group || node.kind == Hdf5Node::Kind::named_type;
    if (has_attributes && node.n_attributes > 0 && link_exists(out, node.path))
      copier.copy_attributes(node.path);
    if (node.kind == Hdf5Node::Kind::dataset) copier.copy_reference_values(node.path);
  }
  // A scale is known by its CLASS attribute: only now all have it.
  for (const Hdf5Node& node : catalog.nodes) {
    const bool is_dataset =
        node.kind == Hdf5Node::Kind::field || node.kind == Hdf5Node::Kind::dataset;
    if (is_dataset && node.n_attributes > 0) {
      attach_scales(input, out, node.path, references, lines);
    }
  }
  for (const auto& [group, members] : members_of_groups(catalog)) {
    if (!link_exists(out, group)) continue;
    const Status ordered = order_links(out, group, members.names);
    if (!ordered.ok()) lines.push_back(ordered.message());
  }
  return lines;
}

}  // namespace tailrace
