// What codecs are measured on: a chunk of each field, for each rank another one.

#pragma once

#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "core/box.hpp"
#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "core/dtype.hpp"

namespace tailrace::cli {

/// One chunk of one field.
struct ProfileChunk {
  std::string field;
  DType dtype = DType::f32;
  Shape shape;
  Buffer values;
  ValueRange range;
};

/// Chunks of generated cosmology-like fields, `edge` cells along each dimension.
/// Not collective; every rank gets another part of the universe. @error out_of_memory
Result<std::vector<ProfileChunk>> generated_chunks(const Comm& comm, std::uint64_t edge);

/// A whole chunk of at most about 8 MB of each field of floating point numbers in a file, constant
/// ones left out, the six largest fields at most; ranks take chunks in turn. Not collective.
/// @error invalid_argument  no such field.  @error as of open_input and InputFile::read
Result<std::vector<ProfileChunk>> chunks_of_file(const Comm& comm, const std::string& path,
                                                 const std::string& raw_format);

}  // namespace tailrace::cli
