// The inventory of an open HDF5 file for verify.

#include "describe/hdf5_inventory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "describe/dimension_survey.hpp"
#include "describe/file_properties.hpp"
#include "describe/hdf5_copy.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_walk.hpp"

namespace tailrace {
namespace {

using Kind = DescribedType::Kind;

/// Attribute of a netCDF dimension: its number.
constexpr const char* kDimensionNumber = "_Netcdf4Dimid";
/// Attribute of the root group: the libraries that wrote the file.
constexpr const char* kNetcdfWriter = "_NCProperties";
/// Size limit: larger attributes are not compared.
constexpr std::size_t kAttributeBytesLimit = std::size_t{1} << 30;
/// Element limit: longer attributes are compared as bytes and shown as bytes.
constexpr std::size_t kAttributeTextsLimit = 1U << 16;
constexpr std::size_t kRegionBlocksShown = 64;
/// Bytes of an object's index in a global heap, as stored in region references.
constexpr std::size_t kHeapNumberBytes = 4;

std::string order_text(H5T_order_t order) {
  switch (order) {
    case H5T_ORDER_LE: return "little-endian";
    case H5T_ORDER_BE: return "big-endian";
    case H5T_ORDER_VAX: return "VAX";
    case H5T_ORDER_MIXED: return "mixed";
    default: return "none";
  }
}

const char* class_text(H5T_class_t kind) {
  switch (kind) {
    case H5T_INTEGER: return "integer";
    case H5T_FLOAT: return "floating point";
    case H5T_TIME: return "time";
    case H5T_STRING: return "text";
    case H5T_BITFIELD: return "bit field";
    case H5T_OPAQUE: return "opaque";
    case H5T_COMPOUND: return "compound";
    case H5T_REFERENCE: return "reference";
    case H5T_ENUM: return "enumeration";
    case H5T_VLEN: return "list of variable length";
    case H5T_ARRAY: return "array";
    default: return "of an unknown class";
  }
}

std::string given_name(char* name) {
  if (name == nullptr) return "";
  std::string text = name;
  H5free_memory(name);
  return text;
}

/// Append the facts about the bits of numbers and bit fields.
void add_bit_facts(hid_t type, DescribedType& described) {
  H5T_pad_t low = H5T_PAD_ERROR;
  H5T_pad_t high = H5T_PAD_ERROR;
  H5Tget_pad(type, &low, &high);
  const H5T_order_t order = H5Tget_order(type);
  described.big_endian = order == H5T_ORDER_BE;
  described.facts.emplace_back(kByteOrderFact,
                               described.n_bytes > 1 ? order_text(order) : "of one byte");
  described.facts.emplace_back("precision", std::to_string(H5Tget_precision(type)));
  described.facts.emplace_back("bit offset", std::to_string(H5Tget_offset(type)));
  described.facts.emplace_back("padding", fmt::format("{}, {}", int(low), int(high)));
}

void describe_integer(hid_t type, DescribedType& described) {
  described.kind = Kind::integer;
  described.is_signed = H5Tget_sign(type) == H5T_SGN_2;
  described.facts.emplace_back("sign", described.is_signed ? "signed" : "unsigned");
  add_bit_facts(type, described);
  const H5T_order_t order = H5Tget_order(type);
  described.ordinary = described.n_bytes <= 8 && H5Tget_precision(type) == 8 * described.n_bytes &&
                       (order == H5T_ORDER_LE || order == H5T_ORDER_BE || described.n_bytes == 1);
}

void describe_floating(hid_t type, DescribedType& described) {
  described.kind = Kind::floating;
  add_bit_facts(type, described);
  std::array<std::size_t, 5> fields{};
  H5Tget_fields(type, fields.data(), &fields[1], &fields[2], &fields[3], &fields[4]);
  described.facts.emplace_back("bit fields", fmt::format("{}", fmt::join(fields, ", ")));
  described.facts.emplace_back("exponent bias", std::to_string(H5Tget_ebias(type)));
  described.facts.emplace_back("normalization", std::to_string(int(H5Tget_norm(type))));
  described.facts.emplace_back("inner padding", std::to_string(int(H5Tget_inpad(type))));
  described.ordinary = H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0 ||
                       H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
}

void describe_text(hid_t type, DescribedType& described) {
  const bool variable = H5Tis_variable_str(type) > 0;
  described.kind = variable ? Kind::variable_text : Kind::fixed_text;
  described.facts.emplace_back("length",
                               variable ? "variable" : fmt::format("{} bytes", described.n_bytes));
  described.facts.emplace_back("character set",
                               H5Tget_cset(type) == H5T_CSET_UTF8 ? "UTF-8" : "ASCII");
  const H5T_str_t padding = H5Tget_strpad(type);
  described.facts.emplace_back("padding of texts", padding == H5T_STR_NULLTERM   ? "null-terminated"
                                                   : padding == H5T_STR_NULLPAD  ? "null-padded"
                                                   : padding == H5T_STR_SPACEPAD ? "space-padded"
                                                                                 : "unknown");
}

/// Describe a reference. Short references differ in length: object references hold an address,
/// region references an address and an index in a heap. H5Tequal() recognizes neither.
/// @param address_bytes  bytes of an address in the file
void describe_reference(hid_t type, std::size_t address_bytes, DescribedType& described) {
  const bool is_short = address_bytes < sizeof(haddr_t);
  const std::size_t n_bytes = described.n_bytes;
  const bool object = H5Tequal(type, H5T_STD_REF_OBJ) > 0 || (is_short && n_bytes == address_bytes);
  const bool region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ||
                      (is_short && n_bytes == address_bytes + kHeapNumberBytes);
  described.kind = object ? Kind::object_reference : region ? Kind::region_reference : Kind::bytes;
  described.facts.emplace_back("reference to", object   ? "objects"
                                               : region ? "regions"
                                                        : "something newer");
}

std::string selection_text(hid_t space) {
  const H5S_sel_type kind = H5Sget_select_type(space);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank <= 0 || kind == H5S_SEL_ALL) return "all";
  const auto dimensions = static_cast<std::size_t>(rank);
  const bool points = kind == H5S_SEL_POINTS;
  const hssize_t n = points                       ? H5Sget_select_elem_npoints(space)
                     : kind == H5S_SEL_HYPERSLABS ? H5Sget_select_hyper_nblocks(space)
                                                  : 0;
  if (n <= 0) return "none";
  const std::size_t n_each = points ? dimensions : 2 * dimensions;
  std::vector<hsize_t> numbers(static_cast<std::size_t>(n) * n_each);
  const herr_t got =
      points ? H5Sget_select_elem_pointlist(space, 0, static_cast<hsize_t>(n), numbers.data())
             : H5Sget_select_hyper_blocklist(space, 0, static_cast<hsize_t>(n), numbers.data());
  if (got < 0) return "unreadable";
  std::uint64_t digest = 1469598103934665603ULL;  // FNV-1a
  for (const hsize_t number : numbers) digest = (digest ^ number) * 1099511628211ULL;
  const std::size_t n_shown = std::min(numbers.size(), kRegionBlocksShown * n_each);
  std::string text = points ? "points" : "blocks";
  for (std::size_t i = 0; i < n_shown; ++i) {
    text += i % n_each == 0 ? " [" : i % dimensions == 0 ? "]..[" : ", ";
    text += std::to_string(numbers[i]);
    if (i % n_each == n_each - 1) text += ']';
  }
  if (n_shown < numbers.size()) text += fmt::format(" and more, {} in all, {:016x}", n, digest);
  return text;
}

const char* layout_text(H5D_layout_t layout) {
  switch (layout) {
    case H5D_COMPACT: return "compact";
    case H5D_CONTIGUOUS: return "contiguous";
    case H5D_CHUNKED: return "chunked";
    case H5D_VIRTUAL: return "virtual";
    default: return "unknown";
  }
}

std::string filters_text(hid_t creation, bool& checksum) {
  std::string text;
  const int n_filters = H5Pget_nfilters(creation);
  for (int i = 0; i < n_filters; ++i) {
    unsigned flags = 0;
    std::size_t n_values = 0;
    char name[64] = "";
    const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &n_values,
                                           nullptr, sizeof name, name, nullptr);
    std::vector<unsigned> values(n_values);
    H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &n_values, values.data(), 0, nullptr,
                   nullptr);
    checksum = checksum || id == H5Z_FILTER_FLETCHER32;
    text += fmt::format("{}{}({})", text.empty() ? "" : ", ", int(id), fmt::join(values, ","));
  }
  return text.empty() ? "none" : text;
}

/// List the mappings of a virtual dataset.
/// @param folder  base of relative names of source files; empty: names are shown as stored.
std::string virtual_sources_text(hid_t creation, const std::filesystem::path& folder) {
  std::size_t n_mappings = 0;
  H5Pget_virtual_count(creation, &n_mappings);
  std::string text;
  for (std::size_t i = 0; i < n_mappings; ++i) {
    const std::string file = virtual_source(creation, i);
    const bool plain = folder.empty() || file == ".";
    const Hdf5Id here(H5Pget_virtual_vspace(creation, i));
    const Hdf5Id there(H5Pget_virtual_srcspace(creation, i));
    text += fmt::format("{}{} of \"{}\" of \"{}\" at {}", i == 0 ? "" : "; ",
                        selection_text(there.get()), virtual_source_dataset(creation, i),
                        plain ? file : (folder / file).lexically_normal().string(),
                        selection_text(here.get()));
  }
  return text.empty() ? "none" : text;
}

std::string external_files_text(hid_t creation) {
  const int n_files = H5Pget_external_count(creation);
  std::string text;
  for (int i = 0; i < n_files; ++i) {
    std::array<char, 4096> name{};
    off_t offset = 0;
    hsize_t n_bytes = 0;
    H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset,
                    &n_bytes);
    text +=
        fmt::format("{}\"{}\" from {}, {} bytes", i == 0 ? "" : "; ", name.data(), offset, n_bytes);
  }
  return text;
}

std::string limits_text(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::array<hsize_t, H5S_MAX_RANK> limits{};
  if (rank <= 0 || H5Sget_simple_extent_dims(space, nullptr, limits.data()) < 0) return "fixed";
  std::string text;
  for (int d = 0; d < rank; ++d) {
    const hsize_t limit = limits[static_cast<std::size_t>(d)];
    text += (d > 0 ? "x" : "") + (limit == H5S_UNLIMITED ? "unlimited" : std::to_string(limit));
  }
  return text;
}

bool leads_to_nothing(const std::string& name) { return name == "null" || name == "nothing"; }

/// Creation property list of an object of any kind.
Hdf5Id creation_list_of(hid_t object, ObjectKind kind) {
  switch (kind) {
    case ObjectKind::group: return Hdf5Id(H5Gget_create_plist(object));
    case ObjectKind::dataset: return Hdf5Id(H5Dget_create_plist(object));
    case ObjectKind::named_type: return Hdf5Id(H5Tget_create_plist(object));
    default: return Hdf5Id();
  }
}

}  // namespace

std::string extents_text(hid_t space) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind == H5S_NULL) return "null";
  if (kind == H5S_SCALAR) return "scalar";
  const int rank = H5Sget_simple_extent_ndims(space);
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  if (rank < 0 || H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0) return "unknown";
  return fmt::format("{}", fmt::join(extents.begin(), extents.begin() + rank, "x"));
}

InventoriedValues::~InventoriedValues() {
  const bool points = H5Tdetect_class(type_, H5T_VLEN) > 0 || H5Tis_variable_str(type_) > 0 ||
                      H5Tdetect_class(type_, H5T_STRING) > 0;
  if (points && !bytes_.empty()) reclaim_variable_length(type_, space_, bytes_.data());
}

/// Records each link in its group.
class Hdf5Inventory::Visitor final : public Hdf5Visitor {
 public:
  Visitor(Hdf5Inventory& into) : into_(into) {}

  Status group(hid_t group, const std::string& path) override {
    TAILRACE_TRY(add_object(group, path, ObjectKind::group));
    const Hdf5Id creation(H5Gget_create_plist(group));
    unsigned order = 0;
    H5Pget_link_creation_order(creation.get(), &order);
    into_.inventory_.objects.back().ordered = (order & H5P_CRT_ORDER_TRACKED) != 0;
    return Status();
  }
  Status dataset(hid_t dataset, const std::string& path) override {
    return add_object(dataset, path, ObjectKind::dataset);
  }
  Status other_object(hid_t object, const std::string& path) override {
    const bool type = H5Iget_type(object) == H5I_DATATYPE;
    return add_object(object, path, type ? ObjectKind::named_type : ObjectKind::other);
  }
  Status again(const std::string& path, const std::string& first_path) override {
    add_link(path, InventoryLink::Kind::hard).object = by_path_.at(first_path);
    return Status();
  }
  Status other_link(const std::string& path, const LinkInfo& info) override {
    InventoryLink& link = add_link(path, InventoryLink::Kind::other);
    if (info.type != H5L_TYPE_SOFT && info.type != H5L_TYPE_EXTERNAL) {
      link.target = std::to_string(int(info.type));
      return Status();
    }
    TAILRACE_TAKE(const std::string value, read_link_value(into_.file_, path, info));
    if (info.type == H5L_TYPE_SOFT) {
      link.kind = InventoryLink::Kind::soft;
      link.target = value.c_str();
      return Status();
    }
    const char* file = nullptr;
    const char* target = nullptr;
    unsigned flags = 0;
    if (H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &target) < 0) {
      return hdf5_failure(Code::corrupt, "external link \"" + path + "\" cannot be read");
    }
    link.kind = InventoryLink::Kind::external;
    link.target = std::string(file) + ":" + target;
    return Status();
  }

 private:
  InventoryLink& add_link(const std::string& path, InventoryLink::Kind kind) {
    InventoryObject& group = into_.inventory_.objects[by_path_.at(parent_path(path))];
    InventoryLink& link = group.links.emplace_back();
    link.name = last_component(path);
    link.kind = kind;
    return link;
  }

  Status add_object(hid_t id, const std::string& path, ObjectKind kind) {
    ObjectFacts facts;
    if (!get_object_facts(id, facts)) {
      return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be read");
    }
    const std::size_t index = into_.inventory_.objects.size();
    if (path != "/") add_link(path, InventoryLink::Kind::hard).object = index;
    InventoryObject& object = into_.inventory_.objects.emplace_back();
    object.kind = kind;
    object.path = path;
    into_.keys_.push_back(facts.key);
    into_.by_address_.emplace(address_of_key(facts.key), index);
    by_path_.emplace(path, index);
    return Status();
  }

  Hdf5Inventory& into_;
  std::unordered_map<std::string, std::size_t> by_path_;
};

Result<std::unique_ptr<Hdf5Inventory>> Hdf5Inventory::read(hid_t file) {
  std::unique_ptr<Hdf5Inventory> inventory(new Hdf5Inventory(file));
  Visitor visitor(*inventory);
  TAILRACE_TRY(walk_hdf5(file, visitor));
  return inventory;
}

Result<Hdf5Id> Hdf5Inventory::open(std::size_t object) const {
  Hdf5Id id(open_by_key(file_, keys_[object]));
  if (!id.valid()) {
    return hdf5_failure(Code::corrupt,
                        "object \"" + inventory_.objects[object].path + "\" cannot be opened");
  }
  return id;
}

std::string Hdf5Inventory::name_at(std::uint64_t address) const {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return "nothing";
  const std::size_t index = found->second;
  return index < names_.size() ? names_[index] : inventory_.objects[index].path;
}

std::string Hdf5Inventory::object(std::span<const std::byte> reference) {
  hobj_ref_t address = 0;  // Little-endian, like this machine.
  std::memcpy(&address, reference.data(), std::min(reference.size(), sizeof address));
  return address == 0 ? "null" : name_at(address);
}

std::string Hdf5Inventory::region(std::span<const std::byte> given) {
  std::array<std::byte, H5R_DSET_REG_REF_BUF_SIZE> buffer{};
  std::memcpy(buffer.data(), given.data(), std::min(given.size(), buffer.size()));
  if (std::ranges::all_of(buffer, [](std::byte byte) { return byte == std::byte{}; })) {
    return "null";
  }
  const std::byte* const reference = buffer.data();
  const Hdf5Id target(H5Rdereference2(file_, H5P_DEFAULT, H5R_DATASET_REGION, reference));
  ObjectFacts facts;
  if (!target.valid() || !get_object_facts(target.get(), facts)) return "nothing";
  const std::string name = name_at(address_of_key(facts.key));
  if (leads_to_nothing(name)) return name;
  const Hdf5Id space(H5Rget_region(file_, H5R_DATASET_REGION, reference));
  return space.valid() ? name + " " + selection_text(space.get()) : "nothing";
}

DescribedType Hdf5Inventory::describe_type(hid_t type) {
  DescribedType described;
  const H5T_class_t kind = H5Tget_class(type);
  described.n_bytes = H5Tget_size(type);
  described.facts.emplace_back("class", class_text(kind));
  std::string named = "none";
  if (H5Tcommitted(type) > 0) {
    ObjectFacts facts;
    named = get_object_facts(type, facts)
                ? fmt::format("\"{}\"", name_at(address_of_key(facts.key)))
                : "nothing";
  }
  described.facts.emplace_back(kNamedTypeFact, named);
  // A text's size is its length; for variable length, HDF5 reports a pointer's size. References are
  // as long as the file's addresses.
  if (kind != H5T_STRING && kind != H5T_REFERENCE) {
    described.facts.emplace_back("size", fmt::format("{} bytes", described.n_bytes));
  }
  const auto add_part = [&](std::string label, std::size_t offset, std::size_t n, hid_t part) {
    described.parts.push_back({std::move(label), offset, n, {describe_type(part)}});
  };
  switch (kind) {
    case H5T_INTEGER: describe_integer(type, described); break;
    case H5T_FLOAT: describe_floating(type, described); break;
    case H5T_STRING: describe_text(type, described); break;
    case H5T_BITFIELD:
    case H5T_TIME: add_bit_facts(type, described); break;
    case H5T_OPAQUE: described.facts.emplace_back("tag", given_name(H5Tget_tag(type))); break;
    case H5T_REFERENCE: describe_reference(type, address_bytes_, described); break;
    case H5T_ENUM: {
      described.kind = Kind::enumeration;
      add_part("base type", 0, 1, Hdf5Id(H5Tget_super(type)).get());
      const int n_names = H5Tget_nmembers(type);
      for (int i = 0; i < n_names; ++i) {
        std::vector<std::byte> value(described.n_bytes);
        H5Tget_member_value(type, static_cast<unsigned>(i), value.data());
        std::string name = given_name(H5Tget_member_name(type, static_cast<unsigned>(i)));
        std::string number;
        add_value_text(described.parts.front().of(), value.data(), *this, number);
        described.facts.emplace_back(fmt::format("name {} of values", i), name + " = " + number);
        described.names.emplace_back(std::move(name), std::move(value));
      }
      break;
    }
    case H5T_COMPOUND: {
      described.kind = Kind::compound;
      const int n_members = H5Tget_nmembers(type);
      for (int i = 0; i < n_members; ++i) {
        const auto index = static_cast<unsigned>(i);
        add_part("member \"" + given_name(H5Tget_member_name(type, index)) + '"',
                 H5Tget_member_offset(type, index), 1,
                 Hdf5Id(H5Tget_member_type(type, index)).get());
      }
      break;
    }
    case H5T_VLEN:
      described.kind = Kind::list;
      add_part("element", 0, 1, Hdf5Id(H5Tget_super(type)).get());
      break;
    case H5T_ARRAY: {
      described.kind = Kind::array;
      const Hdf5Id element(H5Tget_super(type));
      std::array<hsize_t, H5S_MAX_RANK> extents{};
      const int rank = H5Tget_array_dims2(type, extents.data());
      described.facts.emplace_back(
          "array shape",
          fmt::format("{}", fmt::join(extents.begin(), extents.begin() + std::max(rank, 0), "x")));
      const std::size_t element_bytes = std::max<std::size_t>(H5Tget_size(element.get()), 1);
      add_part("element", 0, described.n_bytes / element_bytes, element.get());
      break;
    }
    default: break;
  }
  return described;
}

std::string Hdf5Inventory::dimension_name(int number) {
  if (!dimensions_known_) {
    dimensions_known_ = true;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (inventory_.objects[i].kind != ObjectKind::dataset) continue;
      const Result<Hdf5Id> dataset = open(i);
      if (!dataset.ok()) continue;  // Describing the object itself reports the error.
      // netCDF-C also writes the attribute on variables that are not scales, with the number of
      // their first dimension.
      if (!is_dimension_scale(dataset->get())) continue;
      const std::vector<int> numbers = read_own_numbers(dataset->get(), kDimensionNumber);
      if (numbers.size() == 1) {
        dimension_names_.emplace(numbers[0], name_at(address_of_key(keys_[i])));
      }
    }
  }
  const auto found = dimension_names_.find(number);
  return found != dimension_names_.end() ? found->second : std::to_string(number);
}

/// Replace the values of an attribute of dimension scales or netCDF-4 by their meaning.
void Hdf5Inventory::describe_meaning(DescribedAttribute& attribute,
                                     std::span<const std::byte> bytes, std::size_t n) {
  const DescribedType& type = attribute.type;
  const auto at = [&](std::size_t i) { return bytes.data() + i * type.n_bytes; };
  if (attribute.name == kDimensionNumber || attribute.name == kNetcdfWriter) {
    attribute.meaning = DescribedAttribute::Meaning::present;
  } else if (attribute.name == "DIMENSION_LIST" && type.kind == Kind::list &&
             type.parts.front().of().kind == Kind::object_reference) {
    attribute.meaning = DescribedAttribute::Meaning::at_least;
    attribute.values.clear();
    for (std::size_t i = 0; i < n; ++i) {
      hvl_t list{};
      std::memcpy(&list, at(i), sizeof list);
      const std::size_t n_bytes = type.parts.front().of().n_bytes;
      for (std::size_t k = 0; k < list.len; ++k) {
        const std::string scale =
            object({static_cast<const std::byte*>(list.p) + k * n_bytes, n_bytes});
        if (leads_to_nothing(scale)) continue;
        attribute.values.push_back(fmt::format("dimension {}: {}", i, scale));
      }
    }
  } else if (attribute.name == "REFERENCE_LIST" && type.kind == Kind::compound &&
             !type.parts.empty() && type.parts.front().of().kind == Kind::object_reference) {
    attribute.meaning = DescribedAttribute::Meaning::at_least;
    std::vector<std::string> users;
    for (std::size_t i = 0; i < n && i < attribute.values.size(); ++i) {
      const std::size_t n_bytes = type.parts.front().of().n_bytes;
      if (!leads_to_nothing(object({at(i), n_bytes}))) users.push_back(attribute.values[i]);
    }
    attribute.values = std::move(users);
  } else if (attribute.name == "_Netcdf4Coordinates" && type.kind == Kind::integer) {
    attribute.meaning = DescribedAttribute::Meaning::at_least;
    std::string names = "dimensions";
    for (const std::string& number : attribute.values) {
      names += " " + dimension_name(std::atoi(number.c_str()));
    }
    attribute.values = {names};
  }
}

DescribedAttribute Hdf5Inventory::describe_attribute(hid_t object, const std::string& name) {
  DescribedAttribute described;
  described.name = name;
  const auto failed = [&](std::string why) {
    described.unreadable = std::move(why);
    return described;
  };
  const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  if (!attribute.valid()) return failed(hdf5_error_text());
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  if (!type.valid() || !space.valid()) return failed(hdf5_error_text());
  described.type = describe_type(type.get());
  described.shape = extents_text(space.get());
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  if (n_values < 0) return failed(hdf5_error_text());
  const auto n = static_cast<std::size_t>(n_values);
  const std::size_t n_bytes = described.type.n_bytes;
  if (n_bytes == 0 || n > kAttributeBytesLimit / n_bytes) return failed("its size is too large");
  InventoriedValues values(type.get(), space.get(), n);
  const bool null = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
  if (n > 0 && !null && H5Aread(attribute.get(), type.get(), values.data()) < 0) {
    return failed(hdf5_error_text());
  }
  if (null) return described;
  if (n > kAttributeTextsLimit && is_its_bytes(described.type)) {
    described.values.emplace_back(reinterpret_cast<const char*>(values.data()), n * n_bytes);
    return described;
  }
  described.values.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    add_value_text(described.type, values.data() + i * n_bytes, *this, described.values[i]);
  }
  describe_meaning(described, values.bytes(), n);
  return described;
}

void Hdf5Inventory::add_fill_value(hid_t creation, hid_t type, DescribedObject& described) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  std::string text = "unreadable";
  if (H5Pfill_value_defined(creation, &defined) >= 0) {
    if (defined == H5D_FILL_VALUE_UNDEFINED) {
      text = "undefined";
    } else if (defined == H5D_FILL_VALUE_DEFAULT) {
      text = kDefaultFill;
    } else {
      const Hdf5Id one(H5Screate(H5S_SCALAR));
      InventoriedValues value(type, one.get(), 1);
      if (H5Pget_fill_value(creation, type, value.data()) >= 0) {
        text.clear();
        add_value_text(*described.type, value.data(), *this, text);
      }
    }
  }
  described.facts.push_back({kFillValueAspect, std::move(text)});
}

Status Hdf5Inventory::add_dataset_facts(hid_t dataset, DescribedObject& described) {
  const Hdf5Id type(H5Dget_type(dataset));
  const Hdf5Id space(H5Dget_space(dataset));
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  if (!type.valid() || !space.valid() || !creation.valid()) {
    return hdf5_failure(Code::corrupt, "the header cannot be read");
  }
  described.type = describe_type(type.get());
  described.facts.push_back({"shape", extents_text(space.get())});
  described.facts.push_back({"maximum shape", limits_text(space.get())});
  add_fill_value(creation.get(), type.get(), described);
  H5D_fill_time_t fill_time = H5D_FILL_TIME_ERROR;
  H5D_alloc_time_t allocation_time = H5D_ALLOC_TIME_ERROR;
  H5Pget_fill_time(creation.get(), &fill_time);
  H5Pget_alloc_time(creation.get(), &allocation_time);
  constexpr std::array fill_times = {"at allocation", "never", "if set"};
  constexpr std::array allocation_times = {"default", "early", "late", "incremental"};
  const auto text_of = [](const auto& texts, int index) {
    const bool known = index >= 0 && static_cast<std::size_t>(index) < texts.size();
    return known ? std::string(texts[static_cast<std::size_t>(index)]) : std::string("unknown");
  };
  described.facts.push_back({"fill time", text_of(fill_times, fill_time), false});
  described.facts.push_back({"allocation time", text_of(allocation_times, allocation_time), false});
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  described.facts.push_back({"layout", layout_text(layout), false});
  if (layout == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> chunk{};
    const int rank = H5Pget_chunk(creation.get(), int(chunk.size()), chunk.data());
    described.facts.push_back(
        {"chunk shape",
         fmt::format("{}", fmt::join(chunk.begin(), chunk.begin() + std::max(rank, 0), "x")),
         false});
    bool checksum = false;
    described.facts.push_back({"filters", filters_text(creation.get(), checksum), false});
    if (checksum) described.facts.push_back({"checksum", "Fletcher's", false});
  }
  if (layout == H5D_VIRTUAL) {
    const Hdf5Id file(H5Iget_file_id(dataset));
    described.facts.push_back(
        {kVirtualSourcesAspect, virtual_sources_text(creation.get(), ""), true,
         virtual_sources_text(creation.get(), folder_of_hdf5_file(file.get()))});
  }
  if (H5Pget_external_count(creation.get()) > 0) {
    described.facts.push_back({kExternalFilesAspect, external_files_text(creation.get())});
  }
  return Status();
}

Result<DescribedObject> Hdf5Inventory::describe(std::size_t index) {
  const InventoryObject& object = inventory_.objects[index];
  DescribedObject described;
  described.kind = object.kind;
  TAILRACE_TAKE(const Hdf5Id id, open(index));
  const std::string who = object_text(object.kind, object.path);
  if (object.kind == ObjectKind::dataset) {
    TAILRACE_TRY(add_dataset_facts(id.get(), described).within(who));
  } else if (object.kind == ObjectKind::named_type) {
    described.type = describe_type(id.get());
  }
  const std::string comment = object_comment(id.get());
  if (!comment.empty()) described.facts.push_back({"comment", comment});
  const Hdf5Id creation = creation_list_of(id.get(), object.kind);
  unsigned order = 0;
  if (creation.valid()) H5Pget_attr_creation_order(creation.get(), &order);
  described.attributes_ordered = (order & H5P_CRT_ORDER_TRACKED) != 0;
  TAILRACE_TAKE(const std::vector<std::string> names, attribute_names(id.get(), who));
  for (const std::string& name : names) {
    described.attributes.push_back(describe_attribute(id.get(), name));
  }
  return described;
}

std::optional<std::string> Hdf5Inventory::netcdf_writer() const {
  const Result<Hdf5Id> root = open(0);
  if (!root.ok()) return std::nullopt;
  if (H5Aexists(root->get(), kNetcdfWriter) > 0) {
    return hdf5_text_attribute(root->get(), kNetcdfWriter);
  }
  // Libraries before netCDF 4.4.1 write no such attribute.
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (inventory_.objects[i].kind != ObjectKind::dataset) continue;
    const Result<Hdf5Id> dataset = open(i);
    if (dataset.ok() && is_dimension_scale(dataset->get()) &&
        H5Aexists(dataset->get(), kDimensionNumber) > 0) {
      return std::string();
    }
  }
  return std::nullopt;
}

bool Hdf5Inventory::is_dimension_without_variable(std::size_t object) const {
  if (inventory_.objects[object].kind != ObjectKind::dataset) return false;
  const Result<Hdf5Id> dataset = open(object);
  return dataset.ok() &&
         hdf5_text_attribute(dataset->get(), "NAME").starts_with(dimension_without_variable);
}

}  // namespace tailrace
