// Lookup of HDF5's functions in the library that called the filter.

#include "hdf5_filter/hdf5_calls.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

namespace tailrace::hdf5 {
namespace {

template <class T>
void look_up(void* library, const char* symbol, T*& target) {
  target = reinterpret_cast<T*>(dlsym(library, symbol));
}

Hdf5Calls calls_in(void* library) {
  Hdf5Calls calls;
  look_up(library, "H5Pget_filter_by_id2", calls.get_filter_by_id);
  look_up(library, "H5Pmodify_filter", calls.modify_filter);
  look_up(library, "H5Pget_chunk", calls.get_chunk);
  look_up(library, "H5Pfill_value_defined", calls.fill_value_defined);
  look_up(library, "H5Pget_fill_value", calls.get_fill_value);
  look_up(library, "H5Tget_class", calls.type_class);
  look_up(library, "H5Tget_size", calls.type_bytes);
  look_up(library, "H5Tget_order", calls.type_order);
  look_up(library, "H5Tget_sign", calls.type_sign);
  look_up(library, "H5Tget_fields", calls.float_fields);
  look_up(library, "H5Tget_ebias", calls.float_bias);
  look_up(library, "H5Epush2", calls.push_error);
  look_up(library, "H5allocate_memory", calls.allocate);
  look_up(library, "H5free_memory", calls.release);
  look_up(library, "H5E_ERR_CLS_g", calls.error_class);
  look_up(library, "H5E_PLINE_g", calls.pipeline_error);
  look_up(library, "H5E_CANAPPLY_g", calls.cannot_apply);
  look_up(library, "H5E_SETLOCAL_g", calls.cannot_set_local);
  look_up(library, "H5E_CANTFILTER_g", calls.cannot_filter);
  return calls;
}

/// Search the object that contains the address, then the program, then all visible symbols. Returns
/// the first result that `complete` accepts, or else the last one.
template <class LookUp, class Complete>
auto find_in_sight(const Dl_info& object, LookUp look_up_in, Complete complete) {
  for (const char* path : {object.dli_fname, static_cast<const char*>(nullptr)}) {
    // RTLD_NOLOAD opens only what is already loaded; a null path is the program.
    void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto found = look_up_in(library);
    dlclose(library);
    if (complete(found)) return found;
  }
  return look_up_in(RTLD_DEFAULT);
}

Dl_info object_of(const void* return_address) {
  Dl_info object{};
  if (dladdr(const_cast<void*>(return_address), &object) == 0) return Dl_info{};
  return object;
}

/// Cached results by the base address of the calling object. Never destroyed: HDF5 may call while
/// static objects are being destroyed.
struct Found {
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<Hdf5Calls>> calls;
};
Found& found_so_far() {
  static auto* found = new Found;
  return *found;
}

}  // namespace

bool Hdf5Calls::complete() const {
  return get_filter_by_id != nullptr && modify_filter != nullptr && get_chunk != nullptr &&
         fill_value_defined != nullptr && get_fill_value != nullptr && type_class != nullptr &&
         type_bytes != nullptr && type_order != nullptr && type_sign != nullptr &&
         float_fields != nullptr && float_bias != nullptr;
}

const Hdf5Calls& hdf5_calls_of(const void* return_address) {
  static const Hdf5Calls nothing;
  const Dl_info object = object_of(return_address);
  Found& found = found_so_far();
  const std::lock_guard lock(found.mutex);
  std::unique_ptr<Hdf5Calls>& calls = found.calls[object.dli_fbase];
  if (calls != nullptr) return *calls;
  const Hdf5Calls now =
      find_in_sight(object, calls_in, [](const Hdf5Calls& all) { return all.complete(); });
  if (!now.complete()) return nothing;  // Not cached: an HDF5 may become visible later.
  calls = std::make_unique<Hdf5Calls>(now);
  return *calls;
}

RegisterClass register_class_of(const void* return_address) {
  const auto in_library = [](void* library) {
    return reinterpret_cast<RegisterClass>(dlsym(library, "H5Zregister"));
  };
  return find_in_sight(object_of(return_address), in_library,
                       [](RegisterClass found) { return found != nullptr; });
}

}  // namespace tailrace::hdf5
