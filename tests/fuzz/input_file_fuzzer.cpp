// Fuzzer of input files: any bytes, through all code that reads a file. This includes the kinds of
// files, the walk, headers and chunk indexes, the filter pipeline, and values. It also includes the
// list of a concatenation, the model of netCDF-4, recovery, and the carry-over into another file.
//
// The file is on a file system in memory, because HDF5 also opens it by name. Failures are
// expected. Crashes, endless loops, unbounded memory and leaked HDF5 identifiers are bugs. Crashes
// within libhdf5 are distinguished from ours by their stack frames (scripts/fuzz). Each input takes
// half of the paths, chosen by its checksum, so that twice as many inputs can be tried.

#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "describe/concat_input.hpp"
#include "exec/comm_factory.hpp"
#include "filters/own_filters.hpp"
#include "fuzz/fuzz_files.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/recover.hpp"
#include "hdf5/superblock.hpp"
#include "read/read.hpp"

using namespace tailrace;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t n, std::size_t n_max);

namespace {

using fuzz::corners;
using fuzz::folder;
using fuzz::kFieldsMax;

void carry_over(InputFile& input) {
  const std::string path = folder() + "/out.h5";
  ::unlink(path.c_str());
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, true, false);
  FUZZ_CHECK(storage.ok());
  std::uint64_t end = 0;
  const auto allocate = [&](std::uint64_t n_bytes) { return std::exchange(end, end + n_bytes); };
  Hdf5File::Settings settings;
  settings.sync = false;
  Result<std::unique_ptr<Hdf5File>> file = Hdf5File::create(**storage, allocate, settings);
  FUZZ_CHECK(file.ok());
  (void)input.carry_over_objects(**file);
  (void)input.carry_over_attributes(**file, {});
  (void)(*file)->close();
}

void read_texts(Reader& reader) {
  for (std::size_t i = 0; i < std::min<std::size_t>(reader.datasets().size(), kFieldsMax); ++i) {
    const StoredDataset& dataset = reader.datasets()[i];
    if (dataset.strings && dataset.element_bytes < 4096) {
      (void)reader.read_texts(i, Slab::of(corners(dataset.shape)[1]));
    }
  }
}

/// Number of open HDF5 identifiers, of objects in files and of others. It grows if some code leaks.
long n_identifiers() {
  const Hdf5Scope scope;
  long n_all = H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL);
  for (const H5I_type_t type : {H5I_DATATYPE, H5I_DATASPACE, H5I_GENPROP_LST, H5I_ATTR}) {
    hsize_t n = 0;
    if (H5Inmembers(type, &n) >= 0) n_all += static_cast<long>(n);
  }
  return n_all;
}

/// Metadata blocks of known length with a checksum at their end: signature and bytes.
constexpr std::pair<std::string_view, std::size_t> kSummed[] = {
    {"BTHD", 38}, {"EAHD", 72}, {"FAHD", 28}, {"FRHP", 146}};

/// Bytes of a version 2 object header's first block.
std::size_t header_bytes(std::span<const std::uint8_t> at) {
  const unsigned flags = at[5];
  std::size_t n = 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
  const std::size_t width = std::size_t{1} << (flags & 3);
  if (at.size() < n + width) return 0;
  std::uint64_t n_messages = 0;
  std::memcpy(&n_messages, at.data() + n, width);
  return n_messages > at.size() ? 0 : n + width + n_messages + 4;
}

void put_right(std::span<std::uint8_t> block) {
  const std::size_t n = block.size() - 4;
  const std::uint32_t sum = lookup3(std::as_bytes(block.first(n)));
  std::memcpy(block.data() + n, &sum, sizeof sum);
}

}  // namespace

/// Mutates like libFuzzer's default, but corrects checksums in three of four cases. Otherwise no
/// input would pass them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t n_bytes,
                                               std::size_t n_max, unsigned seed) {
  n_bytes = LLVMFuzzerMutate(data, n_bytes, n_max);
  const std::span<std::uint8_t> bytes(data, n_bytes);
  if (seed % 4 == 0 || n_bytes < 64) return n_bytes;
  constexpr std::size_t superblock = 48;
  if (bytes[0] == 0x89 && (bytes[8] == 2 || bytes[8] == 3)) put_right(bytes.first(superblock));
  for (std::size_t i = 0; i + 64 < n_bytes; ++i) {
    const std::string_view signature(reinterpret_cast<const char*>(data + i), 4);
    const std::span<std::uint8_t> rest = bytes.subspan(i);
    std::size_t n = signature == "OHDR" ? header_bytes(rest) : 0;
    for (const auto& [known, length] : kSummed) n = signature == known ? length : n;
    if (n > 4 && n <= rest.size()) put_right(rest.first(n));
  }
  return n_bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  const std::string path = folder() + "/in.h5";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(n_bytes));
  static long n_before = n_identifiers();
  const std::uint32_t ways = lookup3(std::as_bytes(std::span(data, n_bytes)));
  ReadOptions options;
  options.n_threads = 1;
  options.memory_bytes = 16U << 20;
  options.by_hdf5 = (ways & 12U) == 0;
  if ((ways & 1U) == 0) {
    Result<std::unique_ptr<InputFile>> input = open_input_file(path, {}, options);
    if (input.ok()) {
      fuzz::read_fields(**input);
      if ((ways & 2U) == 0) carry_over(**input);
    }
  } else if ((ways & 2U) == 0) {
    Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), path, options);
    if (reader.ok()) read_texts(**reader);
  } else {
    (void)ConcatInput::open(path, UINT64_MAX);
    (void)inspect_and_recover(path, false);
  }
  // Objects that are created once, at first use, remain.
  const long n_after = n_identifiers();
  FUZZ_CHECK(n_after < n_before + 64);
  n_before = std::min(n_before, n_after);
  return 0;
}
