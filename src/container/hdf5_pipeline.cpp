// Types, fill values and filters of a new dataset.

#include "container/hdf5_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

namespace tailrace {
namespace {

/// A registered stub; the class refers to the name, so both stay at one place in memory.
struct Stub {
  std::string name;
  H5Z_class2_t filter{};
  int n_users = 0;
};

/// All stubs of the process, guarded by the HDF5 lock.
std::map<std::uint32_t, std::unique_ptr<Stub>>& stubs_of_process() {
  static auto* stubs = new std::map<std::uint32_t, std::unique_ptr<Stub>>;
  return *stubs;
}

/// Fails every chunk: a stub stands for a plug-in that is not there.
size_t refuse_chunk(unsigned, size_t, const unsigned*, size_t, size_t*, void**) { return 0; }

/// Store `value` as a T if T can hold it exactly (floating types may round).
template <class T>
Status set_fill_as(hid_t creation_list, hid_t type, double value) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    // max + 1 is a power of two, which a double holds exactly; max itself may not be.
    const double least = double(std::numeric_limits<T>::min());
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= least && value < beyond && value == std::trunc(value))) {
      return Status(Code::invalid_argument,
                    "fill value is " + std::to_string(value) + ", must be a value of its type");
    }
  }
  const T typed = static_cast<T>(value);
  if (H5Pset_fill_value(creation_list, type, &typed) < 0) {
    return hdf5_failure(Code::internal, "fill value");
  }
  return Status();
}

std::string client_data_text(const std::vector<std::uint32_t>& values) {
  std::string text;
  for (const std::uint32_t value : values) {
    text += (text.empty() ? "" : ":") + std::to_string(value);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

hid_t hdf5_native_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return H5T_NATIVE_FLOAT;
    case DType::f64: return H5T_NATIVE_DOUBLE;
    case DType::i8: return H5T_NATIVE_INT8;
    case DType::i16: return H5T_NATIVE_INT16;
    case DType::i32: return H5T_NATIVE_INT32;
    case DType::i64: return H5T_NATIVE_INT64;
    case DType::u8: return H5T_NATIVE_UINT8;
    case DType::u16: return H5T_NATIVE_UINT16;
    case DType::u32: return H5T_NATIVE_UINT32;
    case DType::u64: return H5T_NATIVE_UINT64;
  }
  return H5I_INVALID_HID;
}

Status set_fill_value(hid_t creation_list, DType dtype, double fill_value) {
  const hid_t type = hdf5_native_type(dtype);
  switch (dtype) {
    case DType::f32: return set_fill_as<float>(creation_list, type, fill_value);
    case DType::f64: return set_fill_as<double>(creation_list, type, fill_value);
    case DType::i8: return set_fill_as<std::int8_t>(creation_list, type, fill_value);
    case DType::i16: return set_fill_as<std::int16_t>(creation_list, type, fill_value);
    case DType::i32: return set_fill_as<std::int32_t>(creation_list, type, fill_value);
    case DType::i64: return set_fill_as<std::int64_t>(creation_list, type, fill_value);
    case DType::u8: return set_fill_as<std::uint8_t>(creation_list, type, fill_value);
    case DType::u16: return set_fill_as<std::uint16_t>(creation_list, type, fill_value);
    case DType::u32: return set_fill_as<std::uint32_t>(creation_list, type, fill_value);
    case DType::u64: return set_fill_as<std::uint64_t>(creation_list, type, fill_value);
  }
  return Status(Code::internal, "unknown dtype");
}

bool StubFilters::is_stub(std::uint32_t filter_id) {
  return stubs_of_process().contains(filter_id);
}

Status StubFilters::add(const FilterSpec& filter) {
  const std::uint32_t id = filter.filter_id;
  if (std::find(filter_ids_.begin(), filter_ids_.end(), id) != filter_ids_.end()) return Status();
  std::unique_ptr<Stub>& stub = stubs_of_process()[id];
  if (stub == nullptr) {
    auto made = std::make_unique<Stub>();
    made->name = filter.name.empty() ? "filter " + std::to_string(id) : filter.name;
    made->filter.version = H5Z_CLASS_T_VERS;
    made->filter.id = H5Z_filter_t(id);
    made->filter.encoder_present = 1;
    made->filter.decoder_present = 1;
    made->filter.name = made->name.c_str();
    made->filter.filter = refuse_chunk;
    if (H5Zregister(&made->filter) < 0) {
      stubs_of_process().erase(id);
      return hdf5_failure(Code::internal, "filter " + std::to_string(id));
    }
    stub = std::move(made);
  }
  ++stub->n_users;
  filter_ids_.push_back(id);
  return Status();
}

void StubFilters::release() {
  if (filter_ids_.empty()) return;
  const Hdf5Scope scope;
  for (const std::uint32_t id : filter_ids_) {
    const auto at = stubs_of_process().find(id);
    if (at == stubs_of_process().end() || --at->second->n_users > 0) continue;
    // If HDF5 still needs the class, it keeps a copy of it that refers to our name: leave both.
    if (H5Zunregister(H5Z_filter_t(id)) >= 0) stubs_of_process().erase(at);
  }
  filter_ids_.clear();
}

Status append_filters(hid_t creation_list, const std::vector<FilterSpec>& filters,
                      StubFilters& stubs) {
  for (const FilterSpec& filter : filters) {
    const auto id = H5Z_filter_t(filter.filter_id);
    // A plug-in's set_local makes final client data out of the user's; where only the final ones
    // are known, it must not see them.
    const bool exact = filter.client_data.empty() && !filter.final_client_data.empty() &&
                       filter.filter_id >= H5Z_FILTER_RESERVED;
    const bool is_stub =
        exact || StubFilters::is_stub(filter.filter_id) || H5Zfilter_avail(id) <= 0;
    if (is_stub) TAILRACE_TRY(stubs.add(filter));
    const bool final_known = is_stub && !filter.final_client_data.empty();
    const std::vector<std::uint32_t>& data =
        final_known ? filter.final_client_data : filter.client_data;
    if (H5Pset_filter(creation_list, id, filter.flags, data.size(), data.data()) < 0) {
      return hdf5_failure(Code::internal, "filter " + std::to_string(filter.filter_id));
    }
  }
  return Status();
}

Status check_stored_filters(hid_t dataset, std::span<const FilterSpec> filters) {
  const Hdf5Id list(H5Dget_create_plist(dataset));
  const int n_stored = list.valid() ? H5Pget_nfilters(list.get()) : -1;
  if (n_stored != int(filters.size())) {
    return Status(Code::unsupported, "dataset has " + std::to_string(n_stored) +
                                         " filters, must have " + std::to_string(filters.size()));
  }
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (filters[i].final_client_data.empty()) continue;
    // HDF5 answers with the true number of values even when fewer fit: ask twice.
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t n_values = 0;
    char name[8] = {};
    H5Pget_filter2(list.get(), unsigned(i), &flags, &n_values, nullptr, sizeof(name), name,
                   &config);
    std::vector<std::uint32_t> stored(n_values);
    const H5Z_filter_t id = H5Pget_filter2(list.get(), unsigned(i), &flags, &n_values,
                                           stored.data(), sizeof(name), name, &config);
    if (id != H5Z_filter_t(filters[i].filter_id) || stored != filters[i].final_client_data) {
      return Status(Code::unsupported, "filter " + std::to_string(filters[i].filter_id) +
                                           " was stored as filter " + std::to_string(id) +
                                           " with client data " + client_data_text(stored) +
                                           ", chunks are encoded with " +
                                           client_data_text(filters[i].final_client_data));
    }
  }
  return Status();
}

}  // namespace tailrace
