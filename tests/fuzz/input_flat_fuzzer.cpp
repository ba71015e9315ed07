// Fuzzer of our own readers of netCDF classic and .npy files: headers, fields, boxes of values. The
// remaining processing of such files needs HDF5 and belongs to input_file_fuzzer, which is much
// slower. A header that begins with neither format's magic number is treated as one of the two.

#include <cstring>
#include <string>
#include <vector>

#include "describe/input_bytes.hpp"
#include "describe/input_flat.hpp"
#include "describe/input_netcdf_classic.hpp"
#include "fuzz/fuzz_files.hpp"

using namespace tailrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 8) return 0;
  static fuzz::FileInMemory file("in");
  static fuzz::Count n_opened("files opened");
  std::vector<std::uint8_t> bytes(data, data + n_bytes);
  const bool classic = (bytes[0] & 1) != 0 && bytes[0] != 0x93;
  std::memcpy(bytes.data(), classic ? "CDF" : "\x93NUMPY", classic ? 3 : 6);
  file.write(bytes);
  Result<std::shared_ptr<InputBytes>> opened = InputBytes::open(file.path(), true);
  FUZZ_CHECK(opened.ok());
  Result<std::unique_ptr<InputFile>> input =
      classic ? open_netcdf_classic_input(std::move(*opened)) : open_npy_input(std::move(*opened));
  if (!input.ok()) return 0;
  n_opened.one_more();
  static_cast<void>((*input)->objects());
  fuzz::read_fields(**input);
  return 0;
}
