// Two root attributes: a digest of the request, a count of datasets.

#include "container/concat_progress.hpp"

#include "container/hdf5_catalog.hpp"
#include "container/hdf5_handle.hpp"

namespace tailrace {
namespace {

constexpr const char* request_attribute = "tailrace_concat_request";
constexpr const char* count_attribute = "tailrace_concat_datasets";

Hdf5Id open_root(const Hdf5File& file) {
  return Hdf5Id(H5Gopen2(file.hdf5_id(), "/", H5P_DEFAULT));
}

}  // namespace

bool tells_progress(const std::string& path) {
  const Hdf5Scope scope;
  if (H5Fis_hdf5(path.c_str()) <= 0) return false;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  return file.valid() && H5Aexists(file.get(), count_attribute) > 0;
}

Status write_progress(Hdf5File& file, const ConcatProgress& progress) {
  TAILRACE_TRY(file.set_attribute("/", request_attribute, {progress.request}));
  return file.set_attribute("/", count_attribute,
                            {std::vector<std::uint64_t>{progress.n_datasets}});
}

Result<std::optional<ConcatProgress>> read_progress(const Hdf5File& file) {
  const Hdf5Scope scope;
  const Hdf5Id root = open_root(file);
  if (!root.valid()) return hdf5_failure(Code::corrupt, "the root group");
  if (H5Aexists(root.get(), count_attribute) <= 0) return std::optional<ConcatProgress>();
  ConcatProgress progress;
  progress.request = hdf5_text_attribute(root.get(), request_attribute);
  const Hdf5Id count(H5Aopen(root.get(), count_attribute, H5P_DEFAULT));
  if (!count.valid() || H5Aread(count.get(), H5T_NATIVE_UINT64, &progress.n_datasets) < 0) {
    return hdf5_failure(Code::corrupt, std::string("attribute \"") + count_attribute + "\"");
  }
  return std::optional(std::move(progress));
}

Status remove_progress(const Hdf5File& file) {
  const Hdf5Scope scope;
  const Hdf5Id root = open_root(file);
  for (const char* name : {request_attribute, count_attribute}) {
    if (H5Aexists(root.get(), name) > 0 && H5Adelete(root.get(), name) < 0) {
      return hdf5_failure(Code::internal, std::string("attribute \"") + name + "\"");
    }
  }
  return Status();
}

}  // namespace tailrace
