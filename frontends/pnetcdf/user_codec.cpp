// ncmpi_comp_reg: compression by functions of the program (tailrace_pnetcdf.h).

#include <limits>
#include <string>

#include "pnetcdf/open_file.hpp"
#include "pnetcdf/tailrace_pnetcdf.h"

namespace tailrace::pnetcdf {
namespace {

constexpr std::size_t kHeaderBytes = 8;  // the chunk's uncompressed size

void put_size(std::uint64_t n_bytes, std::byte* to) {
  for (std::size_t i = 0; i < kHeaderBytes; ++i) to[i] = static_cast<std::byte>(n_bytes >> (8 * i));
}

std::uint64_t get_size(const std::byte* from) {
  std::uint64_t n_bytes = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    n_bytes |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  }
  return n_bytes;
}

/// Codec made of a program's pair of functions. It has its own copy of their arguments.
class UserCodec final : public Codec {
 public:
  UserCodec(comp_function_t compress, comp_function_t decompress, const comp_args_t* arguments,
            bool lossy)
      : compress_(compress), decompress_(decompress), lossy_(lossy) {
    if (arguments != nullptr && arguments->user_args != nullptr) {
      const auto* bytes = static_cast<const std::byte*>(arguments->user_args);
      arguments_.assign(bytes, bytes + arguments->user_args_size);
    }
    FilterSpec filter;
    filter.filter_id = TAILRACE_USER_FILTER;
    filter.name = "functions of the program that wrote it (ncmpi_comp_reg)";
    filters_.push_back(std::move(filter));
  }

  std::string_view name() const override { return "user functions"; }
  std::string version() const override { return "ncmpi_comp_reg"; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return lossy_; }
  bool keeps_bound_by_construction() const override { return false; }
  /// Output of more than twice the input is rejected, and the chunk is stored uncompressed.
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return kHeaderBytes + 2 * n_bytes + 4096;
  }
  std::uint64_t working_bytes(std::uint64_t) const override { return 0; }

  Result<EncodedBytes> encode(Buffer values) const override {
    EncodedBytes encoded;
    encoded.buffer = Buffer(encoded_bytes_max(values.n_bytes()));
    if (!encoded.buffer.allocated()) {
      return Status(Code::out_of_memory, "user functions: not enough memory for an encoded chunk");
    }
    const std::size_t room = encoded.buffer.capacity() - kHeaderBytes;
    comp_metadata_info_t chunk{0, values.n_bytes(), 0, 0};
    const std::size_t n_bytes = call(compress_, values.data(), values.n_bytes(),
                                     encoded.buffer.data() + kHeaderBytes, room, chunk);
    if (n_bytes == 0 || n_bytes > room) {
      return Status(Code::codec_failed, "user functions: comp_f returned " +
                                            std::to_string(n_bytes) + " for a chunk of " +
                                            std::to_string(values.n_bytes()) +
                                            " bytes, expected 1 to " + std::to_string(room));
    }
    put_size(values.n_bytes(), encoded.buffer.data());
    encoded.buffer.set_n_bytes(kHeaderBytes + n_bytes);
    return encoded;
  }

  Result<Buffer> decode(EncodedBytes encoded) const override {
    if ((encoded.filter_mask & 1U) != 0) return std::move(encoded.buffer);
    const std::size_t n_encoded = encoded.buffer.n_bytes();
    if (n_encoded <= kHeaderBytes) return damaged("is cut short");
    const std::uint64_t n_bytes = get_size(encoded.buffer.data());
    if (n_bytes > std::numeric_limits<std::ptrdiff_t>::max()) return damaged("has an invalid size");
    Buffer values(n_bytes);
    if (!values.allocated()) return damaged("has a size that exceeds memory");
    comp_metadata_info_t chunk{0, n_bytes, 0, n_encoded - kHeaderBytes};
    const std::size_t n_decoded = call(decompress_, encoded.buffer.data() + kHeaderBytes,
                                       n_encoded - kHeaderBytes, values.data(), n_bytes, chunk);
    if (n_decoded != n_bytes) return damaged("was refused by decomp_f");
    return values;
  }

 private:
  static Status damaged(const char* what) {
    return Status(Code::codec_failed, std::string("user functions: an encoded chunk ") + what);
  }

  std::size_t call(comp_function_t function, std::byte* input, std::size_t in_bytes,
                   std::byte* output, std::size_t out_bytes, comp_metadata_info_t& chunk) const {
    // The interface of 2014 has no const; functions receive a view of the copy.
    comp_args_t arguments{const_cast<std::byte*>(arguments_.data()), arguments_.size(), &chunk};
    if (arguments_.empty()) arguments.user_args = nullptr;
    return function(input, in_bytes, output, out_bytes, &arguments);
  }

  comp_function_t compress_;
  comp_function_t decompress_;
  std::vector<std::byte> arguments_;
  bool lossy_;
  std::vector<FilterSpec> filters_;
};

int register_functions(OpenFile& file, int varid, comp_function_t compress,
                       comp_function_t decompress, const comp_args_t* arguments,
                       std::size_t split_bytes, bool lossy) {
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  if (compress == nullptr || decompress == nullptr) return NC_EINVAL;
  // The ArrayFile must know the variable, so definitions are applied now in define mode.
  if (file.defining) {
    if (const int status = file.apply_definitions(); status != NC_NOERR) return status;
  }
  const std::size_t position = file.variables[static_cast<std::size_t>(varid)];
  ArrayFile& array = *file.array;
  if (split_bytes != 0 && !file.read_only) {
    const Status options =
        array.set_variable_options(position, "chunk=" + std::to_string(split_bytes));
    if (!options.ok()) return report_failure(options, array.comm());
  }
  return report_failure(array.set_codec(position, std::make_shared<UserCodec>(compress, decompress,
                                                                              arguments, lossy)),
                        array.comm());
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;

extern "C" int ncmpi_comp_reg(int ncid, int var_id, comp_function_t comp_f,
                              comp_function_t decomp_f, const comp_args_t* u_args,
                              size_t split_size, int lossy) {
  // The real library does not have this function: classic files are not affected.
  return ours::serve(
      ncid,
      [&](ours::OpenFile& file) {
        return ours::register_functions(file, var_id, comp_f, decomp_f, u_args, split_size,
                                        lossy != 0);
      },
      [] { return ours::not_served("ncmpi_comp_reg for a classic file"); });
}
