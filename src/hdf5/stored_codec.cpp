// The pipeline of a stored dataset: our stages, plug-ins, and filters that only HDF5 can run.

#include "hdf5/stored_codec.hpp"

#include <cstring>

#include "core/codec_registry.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/plugin_known.hpp"
#include "hdf5/plugin_library.hpp"
#include "hdf5/stub_filters.hpp"

namespace tailrace {
namespace {

Status no_chunk_memory(std::uint64_t n_bytes) {
  return Status(Code::out_of_memory,
                "not enough memory for a chunk of " + std::to_string(n_bytes) + " bytes");
}

// --- Codec through HDF5: a dataset of one chunk in a file in memory, with the same type, chunk
// shape, fill value and pipeline. To decode, the stored bytes are written as they are and read back
// as values; to encode, the reverse. This is the slow path.
//
// Invariant 1: HDF5 is called within an Hdf5Scope, which also makes this codec thread-safe.
// Invariant 2: the dataset has no chunk cache that buffers values. So H5Dwrite stores the chunk
// before it returns, and H5Dread decodes the stored bytes.

/// Common properties of the datasets whose chunks are coded.
struct Hdf5ChunkForm {
  Bytes type;  ///< Type in the file (H5Tencode); elements contain all of their data.
  std::uint64_t element_bytes = 0;  ///< Element size of that type.
  Shape chunk_shape;                ///< Rank of at least 1.
  std::vector<FilterSpec> filters;  ///< Includes final_client_data.
  Bytes fill_value;                 ///< One element; empty: HDF5's default.
};

constexpr const char* kDatasetName = "chunk";

Status read_stored(hid_t dataset, const hsize_t* start, std::uint32_t& filter_mask, Buffer& bytes) {
#if H5_VERSION_GE(2, 0, 0)
  std::size_t n_capacity = bytes.n_bytes();
  const herr_t rc =
      H5Dread_chunk(dataset, H5P_DEFAULT, start, &filter_mask, bytes.data(), &n_capacity);
#else
  const herr_t rc = H5Dread_chunk(dataset, H5P_DEFAULT, start, &filter_mask, bytes.data());
#endif
  return rc >= 0
             ? Status()
             : hdf5_failure(Code::codec_failed, "HDF5's filters: the encoded chunk cannot be read");
}

class Hdf5ChunkCodec final : public Codec {
 public:
  explicit Hdf5ChunkCodec(const Hdf5ChunkForm& form)
      : form_(form),
        chunk_bytes_(n_elements(form.chunk_shape) * form.element_bytes),
        extents_(form.chunk_shape.begin(), form.chunk_shape.end()),
        start_(form.chunk_shape.size(), 0) {}
  ~Hdf5ChunkCodec() override {
    const Hdf5Scope scope;
    dataset_.reset();
    access_.reset();
    type_.reset();
    file_.reset();
  }

  /// Create file and dataset. `fill_defined`: with a fill value, the form's or HDF5's default.
  Status create(bool fill_defined) {
    const Hdf5Scope scope;
    dataset_.reset();
    file_.reset();
    const Hdf5Id memory = new_access_list();
    H5Pset_fapl_core(memory.get(), 1U << 16, false);
    // The driver has no backing store, so no file has this name. But HDF5 treats two such files
    // with the same name as one.
    static std::uint64_t n_created = 0;
    const std::string name = "tailrace_chunk_in_memory_" + std::to_string(n_created++);
    file_ = Hdf5Id(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, memory.get()));
    const Hdf5Id decoded(decode_type(form_.type.data(), form_.type.size()));
    type_ = Hdf5Id(H5Tcopy(decoded.get()));
    if (!file_.valid() || !type_.valid()) {
      return hdf5_failure(Code::internal, "a file in memory cannot be created");
    }
    if (H5Tget_size(type_.get()) != form_.element_bytes) {
      return Status(Code::internal, "element type of " + std::to_string(H5Tget_size(type_.get())) +
                                        " bytes, expected " + std::to_string(form_.element_bytes));
    }
    const int rank = static_cast<int>(extents_.size());
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    if (H5Pset_chunk(creation.get(), rank, extents_.data()) < 0) {
      return hdf5_failure(Code::unsupported,
                          "chunk shape " + shape_text(form_.chunk_shape) + " cannot be set");
    }
    for (const FilterSpec& filter : form_.filters) {
      const std::vector<std::uint32_t>& words = filter.final_client_data;
      if (H5Pset_filter(creation.get(), H5Z_filter_t(filter.filter_id), filter.flags, words.size(),
                        words.data()) < 0) {
        return hdf5_failure(Code::plugin_missing,
                            "filter " + std::to_string(filter.filter_id) + " cannot be used");
      }
    }
    if (!fill_defined) {
      H5Pset_fill_value(creation.get(), type_.get(), nullptr);
    } else if (!form_.fill_value.empty()) {
      H5Pset_fill_value(creation.get(), type_.get(), form_.fill_value.data());
    }
    access_ = Hdf5Id(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(access_.get(), 1, 0, 1.0);
    const Hdf5Id space(H5Screate_simple(rank, extents_.data(), nullptr));
    dataset_ = Hdf5Id(H5Dcreate2(file_.get(), kDatasetName, type_.get(), space.get(), H5P_DEFAULT,
                                 creation.get(), access_.get()));
    if (!dataset_.valid())
      return hdf5_failure(Code::unsupported, "the filter pipeline cannot be used");
    return check_stored_filters(dataset_.get(), form_.filters);
  }

  std::string_view name() const override { return "HDF5 filters"; }
  std::string version() const override { return "of HDF5"; }
  const std::vector<FilterSpec>& filters() const override { return form_.filters; }
  bool lossy() const override { return true; }
  bool keeps_bound_by_construction() const override { return false; }
  /// szip, nbit and scale-offset add headers; encode() measures what HDF5 has encoded.
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return 2 * n_bytes + (64U << 10);
  }
  /// Memory for the values, the filters' own copies, and the file in memory.
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return 3 * encoded_bytes_max(n_bytes);
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    if (values.n_bytes() != chunk_bytes_) return wrong_length("encode", values.n_bytes());
    const Hdf5Scope scope;
    TAILRACE_TRY(clear());
    const auto write = [&] {
      return H5Dwrite(dataset_.get(), type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    };
    if (call_with_filters(dataset_.get(), write) < 0) {
      return hdf5_failure(Code::codec_failed, "HDF5's filters cannot encode the chunk");
    }
    hsize_t n_stored = 0;
    if (H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0 ||
        H5Dget_chunk_storage_size(dataset_.get(), start_.data(), &n_stored) < 0) {
      return hdf5_failure(Code::codec_failed, "HDF5's filters: the encoded chunk cannot be read");
    }
    EncodedBytes encoded{Buffer(n_stored), 0};
    if (!encoded.buffer.allocated()) return no_chunk_memory(n_stored);
    TAILRACE_TRY(read_stored(dataset_.get(), start_.data(), encoded.filter_mask, encoded.buffer));
    return encoded;
  }

  Result<Buffer> decode(EncodedBytes encoded) const override {
    // HDF5 does not check the length of a chunk that no filter checks.
    const std::uint64_t all = (std::uint64_t{1} << form_.filters.size()) - 1;
    if ((encoded.filter_mask & all) == all) {
      if (encoded.buffer.n_bytes() != chunk_bytes_) {
        return wrong_length("decode", encoded.buffer.n_bytes());
      }
      return std::move(encoded.buffer);
    }
    Buffer values(chunk_bytes_);
    if (!values.allocated()) return no_chunk_memory(chunk_bytes_);
    const Hdf5Scope scope;
    TAILRACE_TRY(clear());
    if (H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, encoded.filter_mask, start_.data(),
                       encoded.buffer.n_bytes(), encoded.buffer.data()) < 0) {
      return hdf5_failure(Code::codec_failed, "HDF5's filters: the stored chunk cannot be copied");
    }
    // Reopened: 1.10.8 remembers a filter mask of 0 for a chunk that was just written.
    dataset_.reset();
    dataset_ = Hdf5Id(H5Dopen2(file_.get(), kDatasetName, access_.get()));
    if (H5Dread(dataset_.get(), type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
      return hdf5_failure(Code::codec_failed, "HDF5's filters cannot decode the chunk");
    }
    return values;
  }

 private:
  Status wrong_length(const char* verb, std::size_t n_bytes) const {
    return Status(Code::codec_failed, std::string(verb) + ": expected a chunk of " +
                                          std::to_string(chunk_bytes_) + " bytes, got " +
                                          std::to_string(n_bytes));
  }

  /// Remove the last chunk from the index. When 1.10.8 replaces a chunk by one of the same length,
  /// it keeps the old filter mask.
  Status clear() const {
    std::vector<hsize_t> none = extents_;
    none[0] = 0;
    const auto empty = [&] { return H5Dset_extent(dataset_.get(), none.data()); };
    if (call_with_filters(dataset_.get(), empty) < 0 ||
        H5Dset_extent(dataset_.get(), extents_.data()) < 0) {
      return hdf5_failure(Code::internal, "HDF5's filters: the file in memory cannot be cleared");
    }
    return Status();
  }

  Hdf5ChunkForm form_;
  std::uint64_t chunk_bytes_;
  std::vector<hsize_t> extents_;
  std::vector<hsize_t> start_;
  Hdf5Id file_;
  Hdf5Id type_;
  Hdf5Id access_;
  mutable Hdf5Id dataset_;
};

/// True if this process's HDF5 has a filter, built in or registered. Does not search our plug-in
/// folders; stubs that refuse all chunks do not count.
bool hdf5_has_filter(std::uint32_t filter_id) {
  const Hdf5Scope scope;
  return StubFilters::decodes(filter_id) && H5Zfilter_avail(H5Z_filter_t(filter_id)) > 0;
}

/// Make sure that HDF5 can encode and decode with a filter. Call with HDF5 locked.
Status provide_filter(const FilterSpec& filter, const std::string& plugin_path) {
  const auto id = H5Z_filter_t(filter.filter_id);
  if (!hdf5_has_filter(filter.filter_id)) {
    const KnownPlugin* known = find_known_plugin(filter.filter_id);
    Result<const PluginLibrary*> found =
        load_plugin(filter.filter_id, known ? known->hints : std::vector<std::string_view>(),
                    plugin_folders(plugin_path));
    if (!found.ok()) return found.status();
    TAILRACE_TRY(register_filter_class((*found)->filter_class));
  }
  unsigned config = 0;
  constexpr unsigned both = H5Z_FILTER_CONFIG_ENCODE_ENABLED | H5Z_FILTER_CONFIG_DECODE_ENABLED;
  if (H5Zget_filter_info(id, &config) < 0 || (config & both) != both) {
    return Status(Code::plugin_missing, "this HDF5 cannot both encode and decode with filter " +
                                            std::to_string(filter.filter_id) + " (" + filter.name +
                                            ")");
  }
  return Status();
}

/// Make a codec through HDF5. Plug-ins of the pipeline are searched in `plugin_path` first.
/// @error plugin_missing  HDF5 does not have one of the filters, or cannot encode with it.
/// @error unsupported     HDF5 would use other client data than the header names.
Result<std::unique_ptr<Codec>> make_hdf5_chunk_codec(const Hdf5ChunkForm& form,
                                                     const std::string& plugin_path) {
  const Hdf5Scope scope;
  for (const FilterSpec& filter : form.filters) {
    TAILRACE_TRY(provide_filter(filter, plugin_path));
  }
  auto codec = std::make_unique<Hdf5ChunkCodec>(form);
  Status created = codec->create(true);
  // Scale-offset records in its client data whether a fill value exists, and a schema without a
  // fill value leaves that open: try both.
  if (!created.ok() && form.fill_value.empty() && codec->create(false).ok()) created = Status();
  if (!created.ok()) return created.within("HDF5's filters");
  return std::unique_ptr<Codec>(std::move(codec));
}

// --- Lossless re-encoding.

/// Decodes and compares each result of encode(). Used if a pipeline is not known to decode to
/// exactly the input values (szip and others in HDF5, plug-ins not known to be lossless). A
/// concatenation must not lose what the inputs hold, and re-encoding values that a lossy filter has
/// decoded would lose some.
class CheckedCodec final : public Codec {
 public:
  /// @param survives_all  encode() may be called with any values.
  CheckedCodec(std::unique_ptr<Codec> inner, bool survives_all)
      : inner_(std::move(inner)), survives_all_(survives_all) {}

  std::string_view name() const override { return kStoredCodecName; }
  std::string version() const override { return inner_->version(); }
  const std::vector<FilterSpec>& filters() const override { return inner_->filters(); }
  bool lossy() const override { return true; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return inner_->encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return inner_->working_bytes(n_bytes) + inner_->encoded_bytes_max(n_bytes) + 2 * n_bytes;
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    return inner_->decode(std::move(encoded));
  }
  Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    return inner_->decode_into(encoded, filter_mask, values);
  }
  const CoarseViews* coarse_views() const override { return inner_->coarse_views(); }
  const BoundPrefixes* bound_prefixes() const override { return inner_->bound_prefixes(); }

  Result<EncodedBytes> encode(Buffer values) const override {
    const Buffer original = Buffer::copy_of(std::as_const(values).bytes());
    if (!original.allocated()) return no_chunk_memory(values.n_bytes());
    if (!survives_all_) return would_lose();
    Result<EncodedBytes> encoded = inner_->encode(std::move(values));
    if (!encoded.ok()) return encoded;
    EncodedBytes again{Buffer::copy_of(std::as_const(encoded->buffer).bytes()),
                       encoded->filter_mask};
    if (!again.buffer.allocated()) return no_chunk_memory(encoded->buffer.n_bytes());
    Result<Buffer> decoded = inner_->decode(std::move(again));
    if (!decoded.ok()) return decoded.status();
    const bool same = decoded->n_bytes() == original.n_bytes() &&
                      std::memcmp(decoded->data(), original.data(), original.n_bytes()) == 0;
    if (!same) return would_lose();
    return encoded;
  }

 private:
  Status would_lose() const {
    return Status(Code::codec_failed, "filter " +
                                          std::to_string(inner_->filters().back().filter_id) +
                                          " (" + inner_->filters().back().name +
                                          ") is lossy: encoding its decoded values again would "
                                          "change them; choose another codec for the output");
  }

  std::unique_ptr<Codec> inner_;
  bool survives_all_;
};

/// A pipeline of our stages, as far as they are available.
struct StageList {
  std::vector<std::unique_ptr<FilterStage>> stages;
  bool lossless = true;
  bool survives_all = true;
  bool needs_hdf5 = false;
  std::string version{kBuiltInCodecVersion};
};

Status add_stage(const FilterSpec& filter, std::uint64_t element_bytes, std::uint64_t chunk_bytes,
                 const std::string& plugin_path, StageList& list) {
  constexpr std::uint32_t szip_filter_id = 4;
  constexpr std::uint32_t scale_offset_filter_id = 6;
  if (filter.filter_id >= szip_filter_id && filter.filter_id <= scale_offset_filter_id) {
    list.needs_hdf5 = true;
    return Status();
  }
  TAILRACE_TAKE(std::unique_ptr<FilterStage> stage,
                make_own_stage(filter, element_bytes, chunk_bytes));
  if (stage == nullptr) {
    Result<StoredPlugin> plugin = find_stored_plugin(filter, plugin_path);
    if (!plugin.ok()) {
      // No plug-in file, but the program may have registered the class.
      list.needs_hdf5 = hdf5_has_filter(filter.filter_id);
      return list.needs_hdf5 ? Status() : plugin.status();
    }
    stage = std::move(plugin->stage);
    list.survives_all = list.survives_all && !plugin->guarded;
    list.version = plugin->version;
  }
  list.lossless = list.lossless && !stage->lossy();
  list.stages.push_back(std::move(stage));
  return Status();
}

/// Codec for chunks that are copied without decoding.
class CopyingCodec final : public Codec {
 public:
  explicit CopyingCodec(std::vector<FilterSpec> filters) : filters_(std::move(filters)) {}

  std::string_view name() const override { return kStoredCodecName; }
  std::string version() const override { return "as stored"; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return true; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return n_bytes + n_bytes / 8 + (64U << 10);
  }
  std::uint64_t working_bytes(std::uint64_t) const override { return 0; }
  Result<EncodedBytes> encode(Buffer) const override { return missing(); }
  Result<Buffer> decode(EncodedBytes) const override { return missing(); }

 private:
  static Status missing() {
    return Status(
        Code::corrupt,
        "chunks are copied as stored, but the chunk index of the input has no entry for this one");
  }
  std::vector<FilterSpec> filters_;
};

}  // namespace

std::unique_ptr<Codec> make_copying_codec(const StoredForm& storage) {
  return std::make_unique<CopyingCodec>(storage.filters);
}

Result<std::unique_ptr<Codec>> make_stored_codec(const StoredDataset& dataset,
                                                 const StoredForm& storage,
                                                 const std::string& plugin_path) {
  const std::string who = "dataset \"" + dataset.path + "\"";
  if (!dataset.by_value) {
    return Status(Code::unsupported,
                  who + ": elements of type " + dataset.type_text +
                      " point to data elsewhere in the file, so only HDF5 can copy them");
  }
  if (storage.filters.size() > filters_max) {
    return Status(Code::corrupt, who + ": " + std::to_string(storage.filters.size()) +
                                     " filters; HDF5 allows at most 32");
  }
  const std::uint64_t chunk_bytes = n_elements(storage.chunk_shape) * dataset.element_bytes;
  StageList list;
  for (const FilterSpec& filter : storage.filters) {
    const Status added = add_stage(filter, dataset.element_bytes, chunk_bytes, plugin_path, list);
    if (!added.ok()) return added.within(who);
  }
  std::unique_ptr<Codec> codec;
  if (list.needs_hdf5) {
    Result<std::unique_ptr<Codec>> made =
        make_hdf5_chunk_codec({dataset.type, dataset.element_bytes, storage.chunk_shape,
                               storage.filters, dataset.fill_value},
                              plugin_path);
    if (!made.ok()) return made.status().within(who);
    codec = std::move(*made);
  } else {
    codec = make_pipeline_codec({.name = std::string(kStoredCodecName), .version = list.version},
                                chunk_bytes, std::move(list.stages));
    if (list.lossless) return codec;
  }
  return std::unique_ptr<Codec>(
      std::make_unique<CheckedCodec>(std::move(codec), list.survives_all));
}

}  // namespace tailrace
