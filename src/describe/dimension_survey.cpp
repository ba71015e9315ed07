// One walk over dimensions and attributes, followed by the values of datasets that do not grow.

#include "describe/dimension_survey.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/encoding_notes.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

/// Size of a piece in which values are read; a larger chunk is one piece.
constexpr std::uint64_t kSurveyPieceBytes = 4U << 20;
/// HDF5's limit for an attribute.
constexpr std::uint64_t kSurveyAttributeBytesMax = std::uint64_t{1} << 32;

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// Digest of a byte sequence; depends on the order.
std::uint64_t digest_of(const void* bytes, std::size_t n_bytes, std::uint64_t digest) {
  const auto* at = static_cast<const std::byte*>(bytes);
  digest = mixed(digest ^ n_bytes);
  for (; n_bytes > 0;) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(n_bytes, sizeof word);
    std::memcpy(&word, at, n);
    digest = mixed(digest + kGolden + word);
    at += n;
    n_bytes -= n;
  }
  return digest;
}

/// Paths of a file's objects, to resolve references.
class SurveyedPaths {
 public:
  explicit SurveyedPaths(hid_t file) : file_(file) {}

  /// @returns the number of the object's attributes.  @error corrupt
  Result<std::uint64_t> add(hid_t object, const std::string& path) {
    ObjectFacts facts;
    if (!get_object_facts(object, facts)) {
      return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be read");
    }
    paths_.emplace(facts.key, path);
    return facts.n_attributes;
  }
  /// Path of the target of an object reference; empty if it has no target.
  std::string of(const std::byte* reference) const {
    hobj_ref_t stored{};
    std::memcpy(&stored, reference, sizeof stored);
    return stored == 0 ? "" : of_target(H5R_OBJECT, &stored);
  }
  /// Path of the dataset of a region reference; empty if it has no target.
  std::string of_target(H5R_type_t kind, const void* reference) const {
    const Hdf5Id object(H5Rdereference2(file_, H5P_DEFAULT, kind, reference));
    ObjectFacts facts;
    if (!object.valid() || !get_object_facts(object.get(), facts)) return "";
    const auto found = paths_.find(facts.key);
    return found == paths_.end() ? std::string() : found->second;
  }
  hid_t file() const { return file_; }

 private:
  hid_t file_;
  std::unordered_map<ObjectKey, std::string> paths_;
};

std::uint64_t digest_of(std::string_view text, std::uint64_t digest) {
  return digest_of(text.data(), text.size(), digest);
}

/// Digest of a type with all that a reader sees: names, sizes, byte order, character set.
std::uint64_t type_digest(hid_t type, std::uint64_t digest) {
  const H5T_class_t kind = H5Tget_class(type);
  digest = mixed(digest + static_cast<std::uint64_t>(kind) + 1);
  const auto member_name = [&](unsigned m) {
    char* const name = H5Tget_member_name(type, m);
    digest = digest_of(name != nullptr ? name : "", digest);
    H5free_memory(name);
  };
  switch (kind) {
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        member_name(static_cast<unsigned>(m));
        digest =
            type_digest(Hdf5Id(H5Tget_member_type(type, static_cast<unsigned>(m))).get(), digest);
      }
      return digest;
    case H5T_ENUM: {
      std::vector<std::byte> value(H5Tget_size(type));
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        member_name(static_cast<unsigned>(m));
        H5Tget_member_value(type, static_cast<unsigned>(m), value.data());
        digest = digest_of(value.data(), value.size(), digest);
      }
      return type_digest(Hdf5Id(H5Tget_super(type)).get(), digest);
    }
    case H5T_ARRAY: {
      std::array<hsize_t, H5S_MAX_RANK> extents = {};
      const int rank = H5Tget_array_dims2(type, extents.data());
      for (int d = 0; d < rank; ++d) digest = mixed(digest + extents[static_cast<std::size_t>(d)]);
      return type_digest(Hdf5Id(H5Tget_super(type)).get(), digest);
    }
    case H5T_VLEN: return type_digest(Hdf5Id(H5Tget_super(type)).get(), digest);
    case H5T_STRING:
      digest = mixed(digest + (static_cast<std::uint64_t>(H5Tget_cset(type)) << 8U));
      if (H5Tis_variable_str(type) > 0) return mixed(digest + 1);
      return mixed(digest + (H5Tget_size(type) << 2U) +
                   static_cast<std::uint64_t>(H5Tget_strpad(type)));
    case H5T_OPAQUE: {
      char* const tag = H5Tget_tag(type);
      digest = digest_of(tag != nullptr ? tag : "", digest);
      H5free_memory(tag);
      return mixed(digest + H5Tget_size(type));
    }
    default: return digest_of(hdf5_type_text(type), digest);
  }
}

/// Digest of a region reference: its dataset's path, and the selected blocks or points.
std::uint64_t region_digest(const std::byte* value, const SurveyedPaths& paths,
                            std::uint64_t digest) {
  hdset_reg_ref_t stored{};
  std::memcpy(&stored, value, sizeof stored);
  const std::string path = paths.of_target(H5R_DATASET_REGION, &stored);
  digest = digest_of(path, digest);
  if (path.empty()) return digest;
  const Hdf5Id space(H5Rget_region(paths.file(), H5R_DATASET_REGION, &stored));
  const int rank = H5Sget_simple_extent_ndims(space.get());
  const H5S_sel_type kind = H5Sget_select_type(space.get());
  digest = mixed(digest + static_cast<std::uint64_t>(kind));
  const bool points = kind == H5S_SEL_POINTS;
  if (rank < 1 || (!points && kind != H5S_SEL_HYPERSLABS)) return digest;
  const hssize_t n =
      points ? H5Sget_select_elem_npoints(space.get()) : H5Sget_select_hyper_nblocks(space.get());
  std::vector<hsize_t> places(n > 0 ? static_cast<std::size_t>(n * rank * (points ? 1 : 2)) : 0);
  const auto count = static_cast<hsize_t>(std::max<hssize_t>(n, 0));
  if (points) {
    H5Sget_select_elem_pointlist(space.get(), 0, count, places.data());
  } else {
    H5Sget_select_hyper_blocklist(space.get(), 0, count, places.data());
  }
  return digest_of(places.data(), places.size() * sizeof(hsize_t), digest);
}

/// Digest of one element of any type, by meaning: texts and sequences by content, object references
/// by the path of their target.
std::uint64_t element_digest(hid_t type, const std::byte* value, const SurveyedPaths& paths,
                             std::uint64_t digest) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: {
      if (H5Tis_variable_str(type) <= 0) break;
      const char* text = nullptr;
      std::memcpy(&text, value, sizeof text);
      return text == nullptr ? mixed(digest + 1) : digest_of(text, std::strlen(text), digest);
    }
    case H5T_VLEN: {
      const Hdf5Id element(H5Tget_super(type));
      const std::size_t n_bytes = H5Tget_size(element.get());
      hvl_t list;
      std::memcpy(&list, value, sizeof list);
      digest = mixed(digest + list.len);
      const auto* at = static_cast<const std::byte*>(list.p);
      for (std::size_t i = 0; at != nullptr && i < list.len; ++i, at += n_bytes) {
        digest = element_digest(element.get(), at, paths, digest);
      }
      return digest;
    }
    case H5T_ARRAY: {
      const Hdf5Id element(H5Tget_super(type));
      const std::size_t n_bytes = H5Tget_size(element.get());
      for (std::size_t at = 0; n_bytes > 0 && at < H5Tget_size(type); at += n_bytes) {
        digest = element_digest(element.get(), value + at, paths, digest);
      }
      return digest;
    }
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const Hdf5Id member(H5Tget_member_type(type, static_cast<unsigned>(m)));
        digest = element_digest(member.get(),
                                value + H5Tget_member_offset(type, static_cast<unsigned>(m)), paths,
                                digest);
      }
      return digest;
    case H5T_REFERENCE: {
      if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) return region_digest(value, paths, digest);
      // References of HDF5 1.12 contain addresses, which differ between files.
      if (H5Tequal(type, H5T_STD_REF_OBJ) <= 0) return digest;
      return digest_of(paths.of(value), digest);
    }
    default: break;
  }
  return digest_of(value, H5Tget_size(type), digest);
}

/// Elements in memory; frees what HDF5 has allocated for texts and sequences.
class SurveyedValues {
 public:
  SurveyedValues(hid_t type, hid_t space, std::uint64_t n_bytes)
      : type_(type), space_(space), buffer_(n_bytes) {
    if (buffer_.allocated() && n_bytes > 0) std::memset(buffer_.data(), 0, n_bytes);
  }
  SurveyedValues(const SurveyedValues&) = delete;
  SurveyedValues& operator=(const SurveyedValues&) = delete;
  ~SurveyedValues() {
    if (buffer_.n_bytes() > 0 && !hdf5_type_is_by_value(type_, true)) {
      reclaim_variable_length(type_, space_, buffer_.data());
    }
  }
  bool allocated() const { return buffer_.allocated(); }
  std::byte* data() { return reinterpret_cast<std::byte*>(buffer_.data()); }

 private:
  hid_t type_;
  hid_t space_;
  Buffer buffer_;
};

/// True for attributes about the form of a file with dimensions, written by HDF5 or netCDF.
bool is_of_form(const std::string& name) {
  static constexpr std::array<std::string_view, 8> names = {"CLASS",          "NAME",
                                                            "DIMENSION_LIST", "REFERENCE_LIST",
                                                            "_Netcdf4Dimid",  "_Netcdf4Coordinates",
                                                            "_NCProperties",  "_nc3_strict"};
  return std::ranges::find(names, name) != names.end();
}

/// The two kinds of files. netCDF's attributes have no shape beyond their length, and a text is
/// the same in any character set.
enum class Survey : std::uint8_t { plain, by_dimensions };

/// Digest of a type and a shape as one sees them in a file of this kind.
std::uint64_t form_digest(hid_t type, hid_t space, std::uint64_t n, Survey survey) {
  if (survey == Survey::by_dimensions) {
    return digest_of(hdf5_type_text(type), static_cast<unsigned>(n));
  }
  std::array<hsize_t, H5S_MAX_RANK> extents = {};
  const int rank = H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  const std::uint64_t digest =
      digest_of(extents.data(), static_cast<std::size_t>(std::max(rank, 0)) * sizeof(hsize_t),
                static_cast<std::uint64_t>(H5Sget_simple_extent_type(space)));
  return type_digest(type, digest);
}

Result<std::uint64_t> attribute_digest(hid_t object, const std::string& name,
                                       const SurveyedPaths& paths, Survey survey) {
  const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const Hdf5Id stored(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const Hdf5Id type(H5Tcopy(stored.get()));
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  std::uint64_t n_bytes = 0;
  if (!type.valid() || n < 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(n), H5Tget_size(type.get()), &n_bytes) ||
      n_bytes > kSurveyAttributeBytesMax) {
    return hdf5_failure(Code::corrupt, "attribute \"" + name + "\" cannot be read");
  }
  std::uint64_t digest =
      form_digest(type.get(), space.get(), static_cast<std::uint64_t>(n), survey);
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL || n == 0) return digest;
  SurveyedValues values(type.get(), space.get(), n_bytes);
  if (!values.allocated()) {
    return Status(Code::out_of_memory, "attribute \"" + name + "\": not enough memory for " +
                                           std::to_string(n_bytes) + " bytes");
  }
  if (H5Aread(attribute.get(), type.get(), values.data()) < 0) {
    return hdf5_failure(Code::corrupt, "attribute \"" + name + "\" cannot be read");
  }
  const std::size_t element_bytes = H5Tget_size(type.get());
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(n); ++i) {
    digest = element_digest(type.get(), values.data() + i * element_bytes, paths, digest);
  }
  return digest;
}

/// Read integers from an attribute with at most `n_max`. Empty if it does not exist or does not
/// qualify.
std::vector<std::int64_t> whole_numbers(hid_t object, const char* name, hssize_t n_max) {
  if (H5Aexists(object, name) <= 0) return {};
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  const H5T_class_t kind = H5Tget_class(type.get());
  if (n < 1 || n > n_max || (kind != H5T_INTEGER && kind != H5T_FLOAT)) return {};
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
  if (H5Aread(attribute.get(), H5T_NATIVE_INT64, numbers.data()) < 0) return {};
  return numbers;
}

SurveyedObject alias(const std::string& path, const std::string& first_path) {
  SurveyedObject link{path, SurveyedKind::link};
  link.values = ValueDigest{0, digest_of(first_path, 0)};
  return link;
}

Result<SurveyedObject> read_link(hid_t file, const std::string& path, const LinkInfo& info) {
  SurveyedObject link{path, SurveyedKind::link};
  std::string target = std::to_string(info.u.val_size);
  // HDF5 reads no link of a program's own kind.
  if (info.type == H5L_TYPE_SOFT || info.type == H5L_TYPE_EXTERNAL) {
    TAILRACE_TAKE(target, read_link_value(file, path, info));
  }
  link.values = ValueDigest{1 + static_cast<std::uint64_t>(info.type), digest_of(target, 0)};
  return link;
}

/// Collects objects with their dimensions as references. Names follow when all objects are known.
class SurveyVisitor final : public Hdf5Visitor {
 public:
  explicit SurveyVisitor(hid_t file) : paths_(file) {}

  Status group(hid_t group, const std::string& path) override {
    if (path == "/") {
      const std::vector<std::int64_t> n = whole_numbers(group, "NumFilesInSet", 1);
      if (!n.empty() && n[0] > 0) survey_.n_tiles = static_cast<std::uint64_t>(n[0]);
    }
    return add(group, path, SurveyedKind::group);
  }
  Status dataset(hid_t dataset, const std::string& path) override {
    TAILRACE_TRY(add(dataset, path, SurveyedKind::dataset));
    SurveyedObject& object = survey_.objects.back();
    object.scale = is_dimension_scale(dataset);
    const Hdf5Id space(H5Dget_space(dataset));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0) return failed(path);
    object.dimensions.resize(static_cast<std::size_t>(rank));
    const std::vector<int> numbers = read_own_numbers(dataset, "_Netcdf4Coordinates");
    if (numbers.size() == object.dimensions.size()) numbers_.emplace(path, numbers);
    if (object.scale) {
      const std::vector<int> id = read_own_numbers(dataset, "_Netcdf4Dimid");
      if (!id.empty()) by_number_.emplace(id[0], path);
      if (rank > 0) object.dimensions[0] = path;
    } else {
      TAILRACE_TRY(read_references(dataset, path, object.dimensions.size()));
    }
    const std::vector<std::int64_t> tile = whole_numbers(dataset, "domain_decomposition", 4);
    if (tile.size() == 4) TAILRACE_TRY(add_tile(tile, object));
    return Status();
  }
  Status other_object(hid_t object, const std::string& path) override {
    return add(object, path, SurveyedKind::named_type);
  }
  Status again(const std::string& path, const std::string& first_path) override {
    survey_.objects.push_back(alias(path, first_path));
    return Status();
  }
  Status other_link(const std::string& path, const LinkInfo& info) override {
    TAILRACE_TAKE(SurveyedObject link, read_link(paths_.file(), path, info));
    survey_.objects.push_back(std::move(link));
    return Status();
  }

  DimensionSurvey take() {
    for (SurveyedObject& object : survey_.objects) {
      const auto references = references_.find(object.path);
      for (std::size_t d = 0; references != references_.end() && d < object.dimensions.size();
           ++d) {
        const hobj_ref_t& reference = references->second[d];
        object.dimensions[d] = paths_.of(reinterpret_cast<const std::byte*>(&reference));
      }
      const auto numbers = numbers_.find(object.path);
      for (std::size_t d = 0; numbers != numbers_.end() && d < object.dimensions.size(); ++d) {
        const auto scale = by_number_.find(numbers->second[d]);
        if (object.dimensions[d].empty() && scale != by_number_.end()) {
          object.dimensions[d] = scale->second;
        }
      }
    }
    return std::move(survey_);
  }
  const SurveyedPaths& paths() const { return paths_; }

 private:
  static Status failed(const std::string& path) {
    return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be read");
  }

  Status add(hid_t object, const std::string& path, SurveyedKind kind) {
    TAILRACE_TRY(paths_.add(object, path).status());
    survey_.objects.push_back({path, kind});
    return Status();
  }

  Status read_references(hid_t dataset, const std::string& path, std::size_t rank) {
    if (rank == 0 || H5Aexists(dataset, "DIMENSION_LIST") <= 0) return Status();
    const Hdf5Id attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT));
    const Hdf5Id type(H5Aget_type(attribute.get()));
    const Hdf5Id space(H5Aget_space(attribute.get()));
    const Hdf5Id element(H5Tget_class(type.get()) == H5T_VLEN ? H5Tget_super(type.get())
                                                              : H5I_INVALID_HID);
    if (!element.valid() || H5Tequal(element.get(), H5T_STD_REF_OBJ) <= 0 ||
        H5Sget_simple_extent_npoints(space.get()) != static_cast<hssize_t>(rank)) {
      return Status();  // Not a DIMENSION_LIST of HDF5, only the same name.
    }
    const Hdf5Id in_memory(H5Tvlen_create(H5T_STD_REF_OBJ));
    std::vector<hvl_t> lists(rank, hvl_t{0, nullptr});
    if (H5Aread(attribute.get(), in_memory.get(), lists.data()) < 0) return failed(path);
    std::vector<hobj_ref_t>& references = references_[path];
    references.assign(rank, hobj_ref_t{});
    for (std::size_t d = 0; d < rank; ++d) {
      if (lists[d].len > 0 && lists[d].p != nullptr) {
        std::memcpy(&references[d], lists[d].p, sizeof(hobj_ref_t));
      }
    }
    reclaim_variable_length(in_memory.get(), space.get(), lists.data());
    return Status();
  }

  static Status add_tile(const std::vector<std::int64_t>& words, SurveyedObject& object) {
    const std::int64_t first = words[0];
    if (words[1] < first || words[2] < first || words[3] < words[2] || words[3] > words[1]) {
      return Status(Code::invalid_argument,
                    "dataset \"" + object.path + "\": attribute domain_decomposition is " +
                        std::to_string(words[0]) + ", " + std::to_string(words[1]) + ", " +
                        std::to_string(words[2]) + ", " + std::to_string(words[3]) +
                        "; expected the first and last index of the domain, then of the tile");
    }
    object.tile = TileSpan{static_cast<std::uint64_t>(words[2] - first),
                           static_cast<std::uint64_t>(words[3] - first + 1),
                           static_cast<std::uint64_t>(words[1] - first + 1)};
    return Status();
  }

  DimensionSurvey survey_;
  SurveyedPaths paths_;
  std::unordered_map<std::string, std::vector<hobj_ref_t>> references_;
  std::unordered_map<std::string, std::vector<int>> numbers_;
  std::map<int, std::string> by_number_;
};

/// Read the attributes of an object, and the form of a named type.
Status read_attributes(const SurveyedPaths& paths, Survey survey, SurveyedObject& object) {
  if (object.kind == SurveyedKind::link) return Status();
  const std::string who = "object \"" + object.path + "\"";
  const Hdf5Id opened(H5Oopen(paths.file(), object.path.c_str(), H5P_DEFAULT));
  if (!opened.valid()) return hdf5_failure(Code::corrupt, who + " cannot be opened");
  if (H5Iget_type(opened.get()) == H5I_DATATYPE) {
    object.values = ValueDigest{0, type_digest(opened.get(), 0)};
  }
  TAILRACE_TAKE(std::vector<std::string> names, attribute_names(opened.get(), object.path));
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (is_own_attribute(name)) continue;
    if (survey == Survey::by_dimensions && is_of_form(name)) continue;
    TAILRACE_TAKE(const std::uint64_t digest,
                  attribute_digest(opened.get(), name, paths, survey).within(who));
    object.attributes.emplace_back(name, digest);
  }
  return Status();
}

/// Shape of the pieces in which a dataset is read: complete chunks, so that each is decoded once.
ChunkGrid read_pieces(hid_t dataset, Shape shape, std::uint64_t element_bytes) {
  Shape piece(shape.size(), 1);
  const Hdf5Id list(H5Dget_create_plist(dataset));
  if (H5Pget_layout(list.get()) == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> chunk = {};
    H5Pget_chunk(list.get(), static_cast<int>(shape.size()), chunk.data());
    for (std::size_t d = 0; d < piece.size(); ++d) piece[d] = std::max<hsize_t>(chunk[d], 1);
  }
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t n_bytes = std::max<std::uint64_t>(n_elements(piece) * element_bytes, 1);
    const std::uint64_t n_more = std::max<std::uint64_t>(kSurveyPieceBytes / n_bytes, 1);
    const std::uint64_t n_all = (shape[d] + piece[d] - 1) / piece[d];
    piece[d] = std::min(piece[d] * std::min(n_more, n_all), shape[d]);
    if (n_more < n_all) break;
  }
  return {std::move(shape), std::move(piece)};
}

/// Read a dataset piece by piece, calling visit(box, values).
template <class Visit>
Status for_each_piece(hid_t dataset, hid_t type, const std::string& path, Visit&& visit) {
  const std::string who = "dataset \"" + path + "\"";
  const Hdf5Id space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) return hdf5_failure(Code::corrupt, who + ": the shape cannot be read");
  const std::size_t element_bytes = H5Tget_size(type);
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  const bool null = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
  const Shape shape(extents.begin(), extents.end());
  if (null || n_elements(shape) == 0) return Status();
  const ChunkGrid grid = read_pieces(dataset, shape, element_bytes);
  for (std::uint64_t i = 0; i < grid.n_chunks(); ++i) {
    const Box box = grid.clipped_box(i);
    const hsize_t n = box.n_elements();
    const Hdf5Id memory(H5Screate_simple(1, &n, nullptr));
    std::vector<hsize_t> start(box.start.begin(), box.start.end());
    std::vector<hsize_t> count(box.count.begin(), box.count.end());
    SurveyedValues values(type, memory.get(), n * element_bytes);
    if (!values.allocated()) {
      return Status(Code::out_of_memory,
                    who + ": not enough memory for " + std::to_string(n) + " values");
    }
    if (rank > 0 && H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                        count.data(), nullptr) < 0) {
      return hdf5_failure(Code::internal, who + ": a part cannot be selected");
    }
    if (H5Dread(dataset, type, memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0) {
      return plain_read_failure(dataset, who + " cannot be read");
    }
    visit(shape, box, values.data());
  }
  return Status();
}

/// Call visit(index, n) for each run of a box along its last dimension: n elements of the array
/// from row-major `index` on.
template <class Visit>
void for_each_run(const Shape& shape, const Box& box, Visit&& visit) {
  if (shape.empty()) return visit(std::uint64_t{0}, std::uint64_t{1});
  Box starts = box;
  starts.count.back() = 1;
  for_each_position(starts, [&](const Shape& at) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
    visit(index, box.count.back());
  });
}

Result<ValueDigest> digest_values(hid_t dataset, const std::string& path,
                                  const SurveyedPaths& paths) {
  const Hdf5Id stored(H5Dget_type(dataset));
  const Hdf5Id type(H5Tcopy(stored.get()));
  if (!type.valid()) return hdf5_failure(Code::corrupt, "dataset \"" + path + "\" cannot be read");
  const std::size_t element_bytes = H5Tget_size(type.get());
  const bool one_word = hdf5_type_is_by_value(type.get(), false) && element_bytes <= 8;
  ValueDigest digest = {0, 0};
  TAILRACE_TRY(for_each_piece(
      dataset, type.get(), path, [&](const Shape& shape, const Box& box, const std::byte* value) {
        for_each_run(shape, box, [&](std::uint64_t index, std::uint64_t n) {
          for (const std::uint64_t end = index + n; index < end; ++index, value += element_bytes) {
            std::uint64_t word = 0;
            if (one_word) {
              std::memcpy(&word, value, element_bytes);
            } else {
              word = element_digest(type.get(), value, paths, 0);
            }
            digest[0] += mixed(word + (index + 1) * kGolden);
            digest[1] += mixed(mixed(index) ^ word);
          }
        });
      }));
  return digest;
}

/// Digest of a dataset's type and values. A scalar's type may differ between inputs.
Result<ValueDigest> digest_typed_values(hid_t dataset, const std::string& path,
                                        const SurveyedPaths& paths, Survey survey) {
  TAILRACE_TAKE(ValueDigest digest, digest_values(dataset, path, paths));
  const Hdf5Id type(H5Dget_type(dataset));
  const Hdf5Id space(H5Dget_space(dataset));
  digest[0] += mixed(form_digest(type.get(), space.get(), 0, survey));
  return digest;
}

Result<ValueOrder> order_of_values(hid_t dataset, const std::string& path) {
  ValueOrder order;
  TAILRACE_TRY(for_each_piece(dataset, H5T_NATIVE_DOUBLE, path,
                              [&](const Shape&, const Box& box, const std::byte* bytes) {
                                for (std::uint64_t i = 0; i < box.n_elements(); ++i) {
                                  double value = 0;
                                  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
                                  if (order.n_values++ == 0) {
                                    order.first = value;
                                  } else {
                                    order.ascends = order.ascends && value > order.last;
                                    order.descends = order.descends && value < order.last;
                                  }
                                  order.last = value;
                                }
                              }));
  return order;
}

bool is_number(hid_t dataset) {
  const Hdf5Id type(H5Dget_type(dataset));
  const H5T_class_t kind = H5Tget_class(type.get());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

}  // namespace

bool is_netcdf4(std::int64_t file) {
  return H5Aexists(file, "_NCProperties") > 0 || H5Aexists(file, "_nc3_strict") > 0;
}

bool is_dimension_scale(std::int64_t dataset) {
  return hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
}

const SurveyedObject* DimensionSurvey::find(const std::string& path) const {
  const auto found = std::ranges::find(objects, path, &SurveyedObject::path);
  return found == objects.end() ? nullptr : &*found;
}

Result<DimensionSurvey> list_dimensions(std::int64_t file) {
  SurveyVisitor visitor(file);
  TAILRACE_TRY(walk_hdf5(file, visitor));
  return visitor.take();
}

Result<DimensionSurvey> survey_dimensions(std::int64_t file, const ChooseFixed& choose_fixed) {
  SurveyVisitor visitor(file);
  TAILRACE_TRY(walk_hdf5(file, visitor));
  DimensionSurvey survey = visitor.take();
  TAILRACE_TAKE(const PathSet fixed, choose_fixed(survey));
  for (SurveyedObject& object : survey.objects) {
    TAILRACE_TRY(read_attributes(visitor.paths(), Survey::by_dimensions, object));
    if (!object.is_dataset()) continue;
    const Hdf5Id dataset(H5Dopen2(file, object.path.c_str(), H5P_DEFAULT));
    if (!dataset.valid())
      return hdf5_failure(Code::corrupt, "dataset \"" + object.path + "\" cannot be opened");
    if (fixed.contains(object.path)) {
      TAILRACE_TAKE(object.values, digest_typed_values(dataset.get(), object.path, visitor.paths(),
                                                       Survey::by_dimensions));
    }
    const bool coordinate = object.scale && object.dimensions.size() == 1 &&
                            is_number(dataset.get()) && H5Dget_storage_size(dataset.get()) > 0;
    if (coordinate) {
      TAILRACE_TAKE(object.order, order_of_values(dataset.get(), object.path));
    }
  }
  return survey;
}

// --- Files without dimensions.

namespace {

class PlainSurveyVisitor final : public PlainSurvey, public Hdf5Visitor {
 public:
  explicit PlainSurveyVisitor(hid_t file) : paths_(file) {}
  Hdf5Visitor& visitor() override { return *this; }

  Status group(hid_t group, const std::string& path) override {
    return add(group, path, SurveyedKind::group);
  }
  Status dataset(hid_t dataset, const std::string& path) override {
    TAILRACE_TAKE(const std::uint64_t n_attributes, paths_.add(dataset, path));
    const Hdf5Id space(H5Dget_space(dataset));
    const bool fixed = H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE;
    if (n_attributes == 0 && !fixed) return Status();
    survey_.objects.push_back({path, SurveyedKind::dataset});
    if (fixed) survey_.objects.back().values = ValueDigest{};
    return Status();
  }
  Status other_object(hid_t object, const std::string& path) override {
    return add(object, path, SurveyedKind::named_type);
  }
  Status again(const std::string& path, const std::string& first_path) override {
    survey_.objects.push_back(alias(path, first_path));
    return Status();
  }
  Status other_link(const std::string& path, const LinkInfo& info) override {
    TAILRACE_TAKE(SurveyedObject link, read_link(paths_.file(), path, info));
    survey_.objects.push_back(std::move(link));
    return Status();
  }

  Result<DimensionSurvey> finish() override {
    for (SurveyedObject& object : survey_.objects) {
      TAILRACE_TRY(read_attributes(paths_, Survey::plain, object));
      if (!object.is_dataset() || !object.values) continue;
      const Hdf5Id dataset(H5Dopen2(paths_.file(), object.path.c_str(), H5P_DEFAULT));
      if (!dataset.valid()) {
        return hdf5_failure(Code::corrupt, "dataset \"" + object.path + "\" cannot be opened");
      }
      TAILRACE_TAKE(object.values,
                    digest_typed_values(dataset.get(), object.path, paths_, Survey::plain));
    }
    return std::move(survey_);
  }

 private:
  Status add(hid_t object, const std::string& path, SurveyedKind kind) {
    TAILRACE_TRY(paths_.add(object, path).status());
    survey_.objects.push_back({path, kind});
    return Status();
  }

  SurveyedPaths paths_;
  DimensionSurvey survey_;
};

}  // namespace

std::unique_ptr<PlainSurvey> PlainSurvey::start(std::int64_t file) {
  return std::make_unique<PlainSurveyVisitor>(file);
}

Result<DimensionSurvey> survey_plain(std::int64_t file) {
  const std::unique_ptr<PlainSurvey> survey = PlainSurvey::start(file);
  TAILRACE_TRY(walk_hdf5(file, survey->visitor()));
  return survey->finish();
}

bool is_tile_attribute(std::string_view name) {
  return name == "domain_decomposition" || name == "NumFilesInSet";
}

Result<ValueDigest> digest_dataset(std::int64_t file, const std::string& path) {
  const Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  if (!dataset.valid())
    return hdf5_failure(Code::corrupt, "dataset \"" + path + "\" cannot be read");
  return digest_values(dataset.get(), path, SurveyedPaths(file));
}

Result<PathSet> fixed_datasets(std::span<const StoredDataset> datasets,
                               const DimensionSurvey& survey) {
  std::unordered_map<std::string_view, const SurveyedObject*> objects;
  for (const SurveyedObject& object : survey.objects) objects.emplace(object.path, &object);
  const auto name = [&](const StoredDataset& dataset, std::size_t d) {
    const auto found = objects.find(dataset.path);
    const bool named = found != objects.end() && d < found->second->dimensions.size();
    return named ? found->second->dimensions[d] : std::string();
  };
  PathSet inner;
  for (const StoredDataset& dataset : datasets) {
    bool behind = false;
    for (std::size_t d = 0; d < dataset.shape.size(); ++d) {
      if (!dataset.unlimited(d)) continue;
      if (behind && !name(dataset, d).empty()) inner.insert(name(dataset, d));
      behind = true;
    }
  }
  PathSet fixed;
  for (const StoredDataset& dataset : datasets) {
    std::size_t record = dataset.shape.size();
    for (std::size_t d = dataset.shape.size(); d-- > 0;) {
      if (dataset.unlimited(d) && !inner.contains(name(dataset, d))) record = d;
    }
    if (record == dataset.shape.size()) {
      fixed.insert(dataset.path);
    } else if (record > 0) {
      const std::string dimension = name(dataset, record);
      return Status(
          Code::unsupported,
          "dataset \"" + dataset.path +
              "\": rows are appended along the first dimension only, but the unlimited dimension" +
              (dimension.empty() ? "" : " \"" + dimension + "\"") + " is number " +
              std::to_string(record + 1) + " of " + std::to_string(dataset.shape.size()));
    }
  }
  return fixed;
}

void pack_survey(ByteWriter& writer, const DimensionSurvey& survey) {
  writer.add(survey.n_tiles);
  writer.add(static_cast<std::uint32_t>(survey.objects.size()));
  for (const SurveyedObject& object : survey.objects) {
    writer.add_text(object.path);
    writer.add(object.kind);
    writer.add(static_cast<std::uint8_t>(object.scale));
    writer.add(static_cast<std::uint32_t>(object.dimensions.size()));
    for (const std::string& dimension : object.dimensions) writer.add_text(dimension);
    writer.add(static_cast<std::uint32_t>(object.attributes.size()));
    for (const auto& [attribute, digest] : object.attributes) {
      writer.add_text(attribute);
      writer.add(digest);
    }
    writer.add(static_cast<std::uint8_t>(object.values.has_value()));
    writer.add(object.values.value_or(ValueDigest{}));
    writer.add(static_cast<std::uint8_t>(object.order.has_value()));
    writer.add(object.order.value_or(ValueOrder()));
    writer.add(static_cast<std::uint8_t>(object.tile.has_value()));
    writer.add(object.tile.value_or(TileSpan()));
  }
}

DimensionSurvey unpack_survey(ByteReader& reader) {
  DimensionSurvey survey;
  survey.n_tiles = reader.take<std::uint64_t>();
  for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
    SurveyedObject& object = survey.objects.emplace_back();
    object.path = reader.take_text();
    object.kind = reader.take<SurveyedKind>();
    object.scale = reader.take<std::uint8_t>() != 0;
    for (auto d = reader.take<std::uint32_t>(); d > 0; --d) {
      object.dimensions.push_back(reader.take_text());
    }
    for (auto a = reader.take<std::uint32_t>(); a > 0; --a) {
      std::string attribute = reader.take_text();
      object.attributes.emplace_back(std::move(attribute), reader.take<std::uint64_t>());
    }
    const bool values = reader.take<std::uint8_t>() != 0;
    const auto digest = reader.take<ValueDigest>();
    if (values) object.values = digest;
    const bool ordered = reader.take<std::uint8_t>() != 0;
    const auto order = reader.take<ValueOrder>();
    if (ordered) object.order = order;
    const bool tiled = reader.take<std::uint8_t>() != 0;
    const auto tile = reader.take<TileSpan>();
    if (tiled) object.tile = tile;
  }
  return survey;
}

}  // namespace tailrace
