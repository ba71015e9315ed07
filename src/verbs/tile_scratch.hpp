// TileScratch: stores values that were decoded once in an unnamed file, until tiles need them.
//
// If a stored chunk spans more tiles than memory holds, each tile would decode it again. Instead,
// all stored chunks are decoded once, in boxes of complete chunks as large as memory allows. The
// part of a box that lies in a tile is appended to that tile's piece of the file. So writes are few
// and long, and a tile is one contiguous piece of the file. Threads share the tiles of a box that
// is written, and the boxes of a tile that is read.
//
// The file holds nothing that could not be decoded again: after a failed call, the caller drops the
// scratch file and reads without one. Since a disk may fail after a write has returned, a checksum
// of each part proves that a read returns what was written. The opener decides who may write where.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/storage.hpp"
#include "describe/input_file.hpp"
#include "exec/thread_team.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// Opens a scratch file with space for `n_bytes`. Its failure is not an error of the verb.
using ScratchOpener = std::function<Result<std::unique_ptr<Storage>>(std::uint64_t n_bytes)>;

/// Location of scratch files.
struct ScratchPlace {
  std::string folder;
  bool anywhere = false;  ///< Any file system is allowed; false: only a disk of this machine.
  /// Output whose space must remain free if it is on the same file system: output_bytes. Quotas are
  /// not checked.
  std::string output_folder = {};
  std::uint64_t output_bytes = 0;
};

/// Create a file that disappears with its descriptor, however the process ends. Its space is
/// reserved. Not collective. @error no_space, io_error, unsupported (the folder is not on a disk of
/// this machine)
Result<std::unique_ptr<Storage>> open_scratch_file(const ScratchPlace& place,
                                                   std::uint64_t n_bytes);

/// Scratch file for the parts of one array. One thread at a time.
class TileScratch {
 public:
  /// @param parts  boxes of one array that share no element; not empty.
  /// @param pack_bytes  total size of the copy buffers of all threads.
  /// @param n_threads  number of threads, including the caller; >= 1.
  TileScratch(std::unique_ptr<Storage> storage, std::vector<Box> parts, std::uint64_t element_bytes,
              std::uint64_t pack_bytes, std::uint64_t n_threads);

  /// Read all stored chunks that the parts touch, each in one box, and write the parts.
  /// @param memory  buffer for a box: holds at least one stored chunk.
  /// @error errors of the input and the storage; lack of memory
  Status fill(InputFile& input, std::size_t field_index, const Shape& stored_chunk,
              std::span<std::byte> memory);

  /// Find the part that contains a box; nothing: none does. Fast if successive boxes are in the
  /// same part.
  std::optional<std::size_t> find(const Box& box);
  const Box& part(std::size_t index) const { return parts_[index].box; }
  /// Read one part, row-major, after fill().
  /// @error corrupt  the bytes differ from those written; errors of reading
  Status read(std::size_t index, std::span<std::byte> values);
  /// Size of the copy buffers, in addition to the buffers that callers pass.
  std::uint64_t pack_bytes() const;

 private:
  class Pass;
  struct Part {
    Box box;
    std::uint64_t begin = 0;      ///< Address in the file.
    std::uint64_t n_written = 0;  ///< Bytes written so far.
    std::uint64_t checksum = 0;   ///< Checksum of the written pieces and their box numbers.
  };
  /// Intersection of a part with a box that was read.
  struct Piece {
    std::size_t box_index = 0;
    Box box;
    std::uint64_t begin = 0;  ///< Address in the file.
  };
  std::uint64_t bytes_of(const Box& box) const { return box.n_elements() * element_bytes_; }
  Status write_piece(Part& part, const Piece& piece, const Box& box, const std::byte* values,
                     Buffer& pack);
  Status read_pieces(const Part& part, std::span<const Piece> pieces, std::byte* values,
                     Buffer& pack, std::uint64_t& checksum);

  std::unique_ptr<Storage> storage_;
  std::vector<Part> parts_;
  std::size_t found_ = 0;   ///< Result of the last find().
  std::vector<Box> boxes_;  ///< Boxes in the order of reading; each part consists of pieces of
                            ///< them.
  std::uint64_t element_bytes_;
  std::vector<Buffer> packs_;  ///< One buffer per thread.
  ThreadTeam team_;            ///< Last member: its threads use the others.
};

}  // namespace tailrace::verbs
