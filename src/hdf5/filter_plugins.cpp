// Filter plug-ins as codecs.
//
// A filter's can_apply and set_local are called once per field, directly, with the three ids that
// H5Dcreate would pass: a dataset creation list with chunk shape and filter, the element type, the
// chunk's data space. Afterwards the list holds the final client data. Calls without a dataset need
// no file, and a plug-in that throws does so into our frames, not into HDF5's. The class is
// registered with HDF5 first: some set_local functions call H5Zfilter_avail.
//
// The filter callback itself runs on our threads. Its contract (H5Zpublic.h): it may replace the
// block by another malloc'ed one, and then frees its input; 0 means failure with the input
// untouched. A failing plug-in may push to HDF5's error stack, which a serial HDF5 does not
// protect. Therefore everything that can be refused is refused here, before any thread starts.

#include "hdf5/filter_plugins.hpp"

#include <charconv>
#include <mutex>
#include <optional>

#include "core/filter_pipeline.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/plugin_known.hpp"
#include "hdf5/plugin_library.hpp"
#include "hdf5/stub_filters.hpp"

namespace tailrace {
namespace {

/// The single lock of all plug-ins that are not known to be re-entrant.
std::mutex& not_reentrant_mutex() {
  static auto* mutex = new std::mutex;  // Never destroyed: threads may outlive static objects.
  return *mutex;
}

class PluginStage final : public FilterStage {
 public:
  PluginStage(const PluginLibrary& library, FilterSpec spec, const KnownPlugin* known,
              const CodecRequest& request, bool lossy)
      : FilterStage(std::move(spec)),
        library_(library),
        lossy_(lossy),
        reentrant_(known != nullptr && known->reentrant),
        working_per_byte_(known != nullptr ? known->working_per_byte : 8),
        guard_(known != nullptr ? known->guard : nullptr),
        dtype_(request.dtype),
        absolute_bound_(request.absolute_bound) {}

  /// Twice the input: what SZ3 itself reserves, and more than any filter needs on random bytes.
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return 2 * n_bytes + (64U << 10);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return working_per_byte_ * n_bytes + (1U << 20);
  }
  bool lossy() const override { return lossy_; }

  Status encode(Buffer& bytes) const override {
    if (guard_ != nullptr) {
      const char* why = guard_(dtype_, std::as_const(bytes).bytes(), absolute_bound_);
      if (why != nullptr) return trouble(why);
    }
    return call(0, bytes);
  }

  Status decode(Buffer& bytes, std::uint64_t) const override {
    return call(H5Z_FLAG_REVERSE, bytes);
  }

 private:
  Status trouble(const std::string& why) const {
    return Status(Code::codec_failed, library_.file_name + ": " + why);
  }

  Status call(unsigned flags, Buffer& bytes) const {
    std::unique_lock<std::mutex> lock;
    if (!reentrant_) lock = std::unique_lock(not_reentrant_mutex());
    const std::size_t n_given = bytes.n_bytes();
    std::size_t capacity = bytes.capacity();
    void* block = bytes.release();
    std::size_t n_result = 0;
    std::string thrown;
    try {
      n_result = library_.filter_class->filter(flags, spec().final_client_data.size(),
                                               spec().final_client_data.data(), n_given, &capacity,
                                               &block);
    } catch (const std::exception& exception) {
      thrown = exception.what();
    } catch (...) {
      thrown = "an exception of unknown type";
    }
    if (!thrown.empty()) {
      // The owner of the block is now unknown: leaking it is safer than freeing it twice.
      return trouble("threw " + thrown);
    }
    bytes = Buffer::adopt(block, capacity, n_result == 0 ? n_given : n_result);
    const char* verb = (flags & H5Z_FLAG_REVERSE) != 0 ? "decode" : "encode";
    if (n_result == 0) {
      return trouble("refused to " + std::string(verb) + " " + std::to_string(n_given) + " bytes");
    }
    if (block == nullptr || n_result > capacity) {
      bytes = Buffer();
      return trouble("returned " + std::to_string(n_result) + " bytes in a block of " +
                     std::to_string(capacity));
    }
    return Status();
  }

  const PluginLibrary& library_;
  bool lossy_;
  bool reentrant_;
  std::uint64_t working_per_byte_;
  PluginGuard guard_;
  DType dtype_;
  double absolute_bound_;
};

/// Status for a plug-in's refusal: the chunk shape, the type, and the plug-in's own message.
Status refused(const CodecRequest& request, const PluginLibrary& library,
               const std::string& reason) {
  std::string text = "codec " + request.name + ": " + library.file_name +
                     " does not support chunks of shape " + shape_text(request.chunk_shape) +
                     " and type " + std::string(dtype_name(request.dtype));
  if (!reason.empty()) text += ": " + reason;
  return Status(Code::unsupported, text);
}

/// Call the class's can_apply and set_local as H5Dcreate does.
Status ask_plugin(const CodecRequest& request, const PluginLibrary& library, hid_t dcpl, hid_t type,
                  hid_t space) {
  const Result<const H5Z_class2_t*> found = class_for_our_hdf5(library);
  if (!found.ok()) return found.status().within("codec " + request.name);
  const H5Z_class2_t& filter_class = **found;
  std::string thrown;
  try {
    if (filter_class.can_apply != nullptr && filter_class.can_apply(dcpl, type, space) <= 0) {
      return refused(request, library, hdf5_error_text());
    }
    if (filter_class.set_local != nullptr && filter_class.set_local(dcpl, type, space) < 0) {
      return refused(request, library, hdf5_error_text());
    }
    return Status();
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "an exception of unknown type";
  }
  return refused(request, library, "it threw " + thrown);
}

/// Fill in spec.final_client_data.
Status run_set_local(const CodecRequest& request, const PluginLibrary& library, FilterSpec& spec) {
  const Hdf5Scope scope;
  if (request.chunk_shape.empty()) {
    return Status(Code::unsupported,
                  "codec " + request.name + ": a scalar dataset cannot be chunked; use codec none");
  }
  TAILRACE_TRY(StubFilters::set_real(*library.filter_class).within(library.file_name));
  const std::vector<hsize_t> extents(request.chunk_shape.begin(), request.chunk_shape.end());
  const int rank = static_cast<int>(extents.size());
  const Hdf5Id dcpl(H5Pcreate(H5P_DATASET_CREATE));
  const Hdf5Id space(H5Screate_simple(rank, extents.data(), nullptr));
  const Hdf5Id type(H5Tcopy(hdf5_native_type(request.dtype)));
  const auto id = static_cast<H5Z_filter_t>(spec.filter_id);
  if (H5Pset_chunk(dcpl.get(), rank, extents.data()) < 0 ||
      H5Pset_filter(dcpl.get(), id, spec.flags, spec.client_data.size(), spec.client_data.data()) <
          0) {
    return refused(request, library, hdf5_error_text());
  }
  H5Eclear2(H5E_DEFAULT);
  const Status answered = ask_plugin(request, library, dcpl.get(), type.get(), space.get());
  // SZ3's set_local registers its own class with HDF5, even in place of a stub.
  TAILRACE_TRY(StubFilters::set_real(*library.filter_class).within(library.file_name));
  TAILRACE_TRY(answered);

  unsigned flags = 0;
  unsigned config = 0;
  std::size_t n_words = 0;
  if (H5Pget_filter_by_id2(dcpl.get(), id, &flags, &n_words, nullptr, 0, nullptr, &config) < 0) {
    return hdf5_failure(Code::internal, "codec " + request.name +
                                            ": cannot read back the client data of the filter");
  }
  spec.final_client_data.resize(n_words);
  H5Pget_filter_by_id2(dcpl.get(), id, &flags, &n_words, spec.final_client_data.data(), 0, nullptr,
                       &config);
  return Status();
}

/// The number in "id=NUMBER".
std::optional<std::uint32_t> id_of(const std::string& name) {
  if (!name.starts_with("id=")) return std::nullopt;
  std::uint32_t id = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 3, end, id);
  constexpr std::uint32_t id_max = H5Z_FILTER_MAX;
  if (parsed.ec != std::errc() || parsed.ptr != end || id == 0 || id > id_max) return std::nullopt;
  return id;
}

std::string version_text(const PluginLibrary& library, const PluginPlan& plan, bool reentrant) {
  std::string text = library.file_name;
  const char* class_name = library.filter_class->name;
  // Some class names contain advertisements and addresses; the first part names the filter.
  if (class_name != nullptr) {
    const std::string_view name(class_name);
    text += " (" + std::string(name.substr(0, name.find(';'))) + ")";
  }
  if (!plan.version_note.empty()) text += ", " + plan.version_note;
  if (!reentrant) text += ", one thread at a time";
  return text;
}

}  // namespace

Status register_filter_class(const void* filter_class) {
  const Hdf5Scope scope;
  return StubFilters::set_real(*static_cast<const H5Z_class2_t*>(filter_class));
}

Result<StoredPlugin> find_stored_plugin(const FilterSpec& stored, const std::string& plugin_path) {
  const KnownPlugin* known = find_known_plugin(stored.filter_id);
  Result<const PluginLibrary*> found =
      load_plugin(stored.filter_id, known ? known->hints : std::vector<std::string_view>(),
                  plugin_folders(plugin_path));
  if (!found.ok()) return found.status();
  StoredPlugin plugin;
  const bool lossy =
      known == nullptr || !known->lossless || drops_bits(*known, stored.final_client_data);
  plugin.guarded = known != nullptr && known->guard != nullptr;
  plugin.version = version_text(**found, PluginPlan(), known != nullptr && known->reentrant);
  // Guards need type and bound, which are unknown here: callers do not encode with guarded
  // plug-ins.
  plugin.stage = std::make_unique<PluginStage>(**found, stored, known, CodecRequest(), lossy);
  return plugin;
}

Result<std::unique_ptr<Codec>> make_plugin_codec(const CodecRequest& request,
                                                 const std::string& plugin_path) {
  const KnownPlugin* known = find_known_plugin(std::string_view(request.name));
  const std::optional<std::uint32_t> id = known ? known->filter_id : id_of(request.name);
  if (!id) {
    return Status(
        Code::invalid_argument,
        "codec \"" + request.name + "\": expected a known plug-in, or id=N with N from 1 to 65535");
  }
  const bool by_id = known == nullptr;
  if (by_id) known = find_known_plugin(*id);

  Result<const PluginLibrary*> found = load_plugin(
      *id, known ? known->hints : std::vector<std::string_view>(), plugin_folders(plugin_path));
  if (!found.ok()) return found.status().within("codec " + request.name);
  const PluginLibrary& library = **found;

  CodecSettings settings(request);
  Result<PluginPlan> plan = by_id ? plan_by_id(request, settings, library, known)
                                  : known->plan(request, settings, library);
  if (!plan.ok()) return plan.status();

  FilterSpec spec;
  spec.filter_id = *id;
  // A lossless filter may give up on an incompressible chunk; HDF5 then stores it unfiltered.
  spec.flags = plan->lossy ? H5Z_FLAG_MANDATORY : H5Z_FLAG_OPTIONAL;
  spec.client_data = plan->client_data;
  spec.name = library.filter_class->name != nullptr ? library.filter_class->name : "";
  TAILRACE_TRY(run_set_local(request, library, spec));

  const bool reentrant = known != nullptr && known->reentrant;
  std::vector<std::unique_ptr<FilterStage>> stages;
  const std::size_t element_bytes = dtype_bytes(request.dtype);
  if (plan->shuffle_first && element_bytes > 1) stages.push_back(make_shuffle_stage(element_bytes));
  stages.push_back(
      std::make_unique<PluginStage>(library, std::move(spec), known, request, plan->lossy));
  PipelineTraits traits;
  traits.name = request.name;
  traits.version = version_text(library, *plan, reentrant);
  traits.lossy = plan->lossy;
  traits.keeps_bound_by_construction = !plan->lossy;
  return make_pipeline_codec(std::move(traits), request, std::move(stages));
}

}  // namespace tailrace
