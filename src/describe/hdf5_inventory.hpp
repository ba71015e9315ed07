// The inventory of an open HDF5 file for verify: its objects and links, and each object in detail.
//
// Independent of the catalog with which repack copies (hdf5_catalog.hpp): the inventory must find
// what the catalog overlooks. References are resolved by the address of their object, in a map that
// the walk builds once. Callers hold an Hdf5Scope.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "describe/file_inventory.hpp"
#include "describe/file_properties.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class Hdf5Inventory final : private ReferenceNames {
 public:
  /// Walk the file, which must stay open. Cost: O(objects).
  /// @error corrupt, unsupported  as walk_hdf5()
  static Result<std::unique_ptr<Hdf5Inventory>> read(hid_t file);

  const FileInventory& objects() const { return inventory_; }
  /// Set the names, by object index, under which references and named types are reported from now
  /// on. "null": references to the object are expected to be null in the copy.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }
  ReferenceNames& names() { return *this; }

  /// @error corrupt  HDF5 cannot open the object.
  Result<Hdf5Id> open(std::size_t object) const;
  /// Describe everything except the values of a dataset. Cost: O(attributes). @error corrupt
  Result<DescribedObject> describe(std::size_t object);
  DescribedType describe_type(hid_t type);
  /// True for the dataset of a netCDF dimension without a variable.
  bool is_dimension_without_variable(std::size_t object) const;
  /// Libraries that wrote a file of netCDF-4 form, as they state it; empty: they do not. Nothing if
  /// the file does not have that form. Cost: O(datasets) if they do not state it.
  std::optional<std::string> netcdf_writer() const;

 private:
  class Visitor;
  explicit Hdf5Inventory(hid_t file) : file_(file), address_bytes_(address_bytes_of(file)) {}
  std::string object(std::span<const std::byte> reference) override;
  std::string region(std::span<const std::byte> reference) override;
  std::string name_at(std::uint64_t address) const;
  Status add_dataset_facts(hid_t dataset, DescribedObject& described);
  void add_fill_value(hid_t creation, hid_t type, DescribedObject& described);
  DescribedAttribute describe_attribute(hid_t object, const std::string& name);
  void describe_meaning(DescribedAttribute& attribute, std::span<const std::byte> bytes,
                        std::size_t n);
  std::string dimension_name(int number);

  hid_t file_;
  std::size_t address_bytes_;  ///< Bytes of an address in the file.
  FileInventory inventory_;
  std::vector<ObjectKey> keys_;  ///< Indexed by object.
  std::unordered_map<std::uint64_t, std::size_t> by_address_;
  std::vector<std::string> names_;  ///< Indexed by object; empty: its path.
  bool dimensions_known_ = false;
  std::unordered_map<int, std::string> dimension_names_;  ///< Path by _Netcdf4Dimid.
};

/// Extents as text: "20x30"; "scalar"; "null".
std::string extents_text(hid_t space);

/// Values that HDF5 reads into memory, including the data that they point to.
class InventoriedValues {
 public:
  /// `type` and `space` must outlive this object. @param n_values  number of elements selected in
  /// the space
  InventoriedValues(hid_t type, hid_t space, std::size_t n_values)
      : type_(type), space_(space), bytes_(n_values * H5Tget_size(type)) {}
  InventoriedValues(const InventoriedValues&) = delete;
  InventoriedValues& operator=(const InventoriedValues&) = delete;
  ~InventoriedValues();
  std::byte* data() { return bytes_.data(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  hid_t type_;
  hid_t space_;
  std::vector<std::byte> bytes_;
};

}  // namespace tailrace
