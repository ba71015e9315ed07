// See open_file.hpp.

#include "pnetcdf/open_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "core/encoding_notes.hpp"
#include "pnetcdf/netcdf_rules.hpp"
#include "pnetcdf/tailrace_pnetcdf.h"

namespace tailrace::pnetcdf {
namespace {

// Far above the real library's numbers, which end at NC_MAX_NFILES.
constexpr int kFirstId = 0x54520000;

struct Table {
  std::mutex mutex;
  std::vector<std::unique_ptr<OpenFile>> files;
};

Table& table() {
  // Never destroyed: a dataset left open must not use MPI after MPI_Finalize.
  static Table* const instance = new Table;
  return *instance;
}

thread_local std::string last_text;

int code_of(const Status& status) {
  switch (status.code()) {
    case Code::ok: return NC_NOERR;
    case Code::invalid_argument: return NC_EINVAL;
    case Code::unsupported: return NC_ENOTSUPPORT;
    case Code::not_found: return NC_ENOENT;
    case Code::already_exists: return NC_EEXIST;
    case Code::disagreement: return NC_EMULTIDEFINE;
    case Code::bad_coverage: return NC_EEDGE;
    case Code::plugin_missing:
    case Code::codec_failed:
    case Code::bound_broken: return NC_EFILTER;
    case Code::corrupt: return NC_ENOTNC;
    case Code::io_error: return NC_EFILE;
    case Code::no_space: return NC_ENO_SPACE;
    case Code::out_of_memory: return NC_ENOMEM;
    case Code::internal: return NC_EINTERNAL;
  }
  return NC_EINTERNAL;
}

/// True for attributes in which Tailrace records how it compressed a variable or a file. A program
/// that copies or counts attributes must not see attributes that it did not put.
bool is_bookkeeping(const ModelAttribute& attribute) { return is_own_attribute(attribute.name); }

}  // namespace

OpenFile::~OpenFile() {
  // Without close(), other ranks may not be here.
  if (front && front->world != nullptr) front->world->abandon();
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

void OpenFile::list_objects() {
  dimensions.clear();
  variables.clear();
  for (std::size_t i = 0; i < next.dimensions.size(); ++i) {
    if (next.dimensions[i].group == 0) dimensions.push_back(i);
  }
  for (std::size_t i = 0; i < next.variables.size(); ++i) {
    if (next.variables[i].group == 0) variables.push_back(i);
  }
}

std::optional<int> OpenFile::find_variable(std::string_view name) const {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (next.variables[variables[i]].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::optional<int> OpenFile::find_dimension(std::string_view name) const {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (next.dimensions[dimensions[i]].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

int OpenFile::dimension_number(std::size_t position) const {
  const auto found = std::find(dimensions.begin(), dimensions.end(), position);
  return found == dimensions.end() ? -1 : static_cast<int>(found - dimensions.begin());
}

int OpenFile::unlimited() const {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (next.dimensions[dimensions[i]].unlimited) return static_cast<int>(i);
  }
  return -1;
}

bool OpenFile::is_record_variable(int varid) {
  const std::vector<std::size_t>& of = variable(varid).dimensions;
  return !of.empty() && next.dimensions[of[0]].unlimited;
}

bool OpenFile::grows_within(int varid) {
  const std::vector<std::size_t>& of = variable(varid).dimensions;
  return of.size() > 1 && std::any_of(of.begin() + 1, of.end(),
                                      [&](std::size_t d) { return next.dimensions[d].unlimited; });
}

std::uint64_t OpenFile::length_of(std::size_t position) const {
  const std::vector<ModelDimension>& stored = array->model().dimensions;
  const bool known = next.dimensions[position].unlimited && position < stored.size();
  return known ? stored[position].length : next.dimensions[position].length;
}

Shape OpenFile::shape_of(int varid) {
  Shape shape;
  for (const std::size_t position : variable(varid).dimensions) {
    shape.push_back(length_of(position));
  }
  return shape;
}

std::uint64_t OpenFile::record_bytes() {
  std::uint64_t sum = 0;
  std::uint64_t last = 0;
  int n_records = 0;
  for (int varid = 0; has_variable(varid); ++varid) {
    if (!is_record_variable(varid)) continue;
    Shape shape = shape_of(varid);
    shape[0] = 1;
    last = n_elements(shape) * model_type_bytes(variable(varid).type);
    sum += (last + 3) / 4 * 4;
    ++n_records;
  }
  return n_records == 1 ? last : sum;
}

void OpenFile::fill_value_of(int varid, std::byte* value) {
  const ModelVariable& of = variable(varid);
  const ModelAttribute* own = of.attribute("_FillValue");
  if (own != nullptr && own->type == of.type && own->values.size() >= model_type_bytes(of.type)) {
    std::memcpy(value, own->values.data(), model_type_bytes(of.type));
  } else {
    default_fill_value(of.type, value);
  }
}

int OpenFile::apply_definitions() {
  for (std::size_t i = 0; i < next.dimensions.size(); ++i) {
    next.dimensions[i].length = length_of(i);
  }
  NetcdfModel whole = next;
  for (const ModelAttribute& attribute : array->model().groups[0].attributes) {
    if (is_bookkeeping(attribute)) whole.groups[0].attributes.push_back(attribute);
  }
  const std::vector<ModelVariable>& stored = array->model().variables;
  for (std::size_t i = 0; i < stored.size() && i < whole.variables.size(); ++i) {
    for (const ModelAttribute& attribute : stored[i].attributes) {
      if (is_bookkeeping(attribute)) whole.variables[i].attributes.push_back(attribute);
    }
  }
  const auto attributes = safe_mode ? ArrayFile::Attributes::equal : ArrayFile::Attributes::of_root;
  const int status = report_failure(array->change_model(whole, attributes), array->comm());
  if (status == NC_NOERR) take_definitions();  // The attributes may be rank 0's.
  return status;
}

void OpenFile::take_definitions() {
  next = array->model();
  std::erase_if(next.groups[0].attributes, is_bookkeeping);
  for (ModelVariable& variable : next.variables) std::erase_if(variable.attributes, is_bookkeeping);
}

OpenFile* find_file(int ncid) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto index = static_cast<std::size_t>(static_cast<long>(ncid) - kFirstId);
  return ncid >= kFirstId && index < all.files.size() ? all.files[index].get() : nullptr;
}

int add_file(std::unique_ptr<OpenFile> file, int* ncid) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::size_t index = 0;
  while (index < all.files.size() && all.files[index] != nullptr) ++index;
  if (index >= NC_MAX_NFILES) return NC_ENFILE;
  if (index == all.files.size()) all.files.emplace_back();
  file->id = kFirstId + static_cast<int>(index);
  *ncid = file->id;
  all.files[index] = std::move(file);
  return NC_NOERR;
}

void remove_file(int ncid) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.files[static_cast<std::size_t>(ncid - kFirstId)].reset();
}

std::vector<int> open_files() {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<int> ids;
  for (const std::unique_ptr<OpenFile>& file : all.files) {
    if (file != nullptr) ids.push_back(file->id);
  }
  return ids;
}

int report_failure(const Status& status) {
  if (status.ok()) return NC_NOERR;
  last_text = status.message();
  // Programs use create and open to test whether a file exists, so these results are not printed.
  const bool answer = status.code() == Code::already_exists || status.code() == Code::not_found;
  if (!answer) std::fprintf(stderr, "tailrace: %s\n", last_text.c_str());
  return code_of(status);
}

int report_failure(const Status& status, Comm& comm) {
  if (comm.is_root()) return report_failure(status);
  if (!status.ok()) last_text = status.message();
  return code_of(status);
}

int report_failure(const Status& status, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) return report_failure(status);
  if (!status.ok()) last_text = status.message();
  return code_of(status);
}

const char* last_failure() { return last_text.c_str(); }

int not_served(const char* function) {
  static std::mutex mutex;
  static std::set<std::string> reported;
  const std::lock_guard<std::mutex> lock(mutex);
  if (reported.insert(function).second) {
    std::fprintf(stderr,
                 "tailrace: %s is not supported for files that Tailrace writes (docs/pnetcdf.md)\n",
                 function);
  }
  return NC_ENOTSUPPORT;
}

// --- equality of definitions on all ranks

namespace {

/// FNV-1a; needs to be equal only on the ranks of one job.
std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 14695981039346656037U;
  for (const char byte : text) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  return digest;
}

}  // namespace

Argument::Argument(int its_code, std::string_view text) : code(its_code), digest(digest_of(text)) {}

int agree_on_call(OpenFile& file, int status, std::initializer_list<Argument> arguments) {
  if (!file.safe_mode) return status;
  // Digests are equal exactly if their maximum equals their minimum, which is the complement of the
  // maximum complement.
  std::vector<std::uint64_t> largest{
      static_cast<std::uint64_t>(-static_cast<std::int64_t>(status))};
  for (const Argument& argument : arguments) {
    largest.push_back(argument.digest);
    largest.push_back(~argument.digest);
  }
  file.array->comm().allreduce(std::span<std::uint64_t>(largest), Reduction::max);
  if (largest[0] != 0) return -static_cast<int>(largest[0]);
  std::size_t at = 1;
  for (const Argument& argument : arguments) {
    if (largest[at] != ~largest[at + 1]) return argument.code;
    at += 2;
  }
  return NC_NOERR;
}

}  // namespace tailrace::pnetcdf

extern "C" const char* tailrace_pnetcdf_error(void) { return tailrace::pnetcdf::last_failure(); }
