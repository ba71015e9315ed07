// TileScratch: values that were decoded once, in a file that has no name, until tiles want them.
//
// Where a stored chunk reaches over more tiles than memory holds, each of them would have it
// decoded again. Instead all stored chunks are decoded once, in boxes of whole ones as large as
// memory allows, and what of a box lies in a tile is written behind what that tile has already: few
// writes, each of them long, and a tile is one piece of the file. Threads share the tiles of a box
// that is written, and the boxes of a tile that is read.
//
// It holds nothing that could not be decoded again: whoever finds that a call has failed drops the
// scratch and reads as without one. A checksum of each part proves that what is read was written,
// since a disk may fail after a write has returned. Who may write where is the opener's to say.

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

/// Opens a scratch file with room for so many bytes. Its failure is nobody's error.
using ScratchOpener = std::function<Result<std::unique_ptr<Storage>>(std::uint64_t n_bytes)>;

/// Where scratch files go.
struct ScratchPlace {
  std::string folder;
  bool anywhere = false;  ///< Else on a disk of this machine only.
  /// Where so many bytes must stay free, if that is the same file system. Quotas are not looked at.
  std::string output_folder = {};
  std::uint64_t output_bytes = 0;
};

/// A file that goes with its descriptor, whatever ends the process; its space is reserved. Not
/// collective. @error no_space, io_error, unsupported (the folder is on no disk of this machine)
Result<std::unique_ptr<Storage>> open_scratch_file(const ScratchPlace& place,
                                                   std::uint64_t n_bytes);

/// One thread at a time.
class TileScratch {
 public:
  /// @param parts       boxes of one array that share no element; not empty.
  /// @param pack_bytes  that all threads together copy at once.
  /// @param n_threads   the caller's among them; >= 1.
  TileScratch(std::unique_ptr<Storage> storage, std::vector<Box> parts, std::uint64_t element_bytes,
              std::uint64_t pack_bytes, std::uint64_t n_threads);

  /// Read all stored chunks that the parts touch, each in one box, and write the parts.
  /// @param memory  for a box: one stored chunk at least.
  /// @error what the input, the storage, or a lack of memory say
  Status fill(InputFile& input, std::size_t field_index, const Shape& stored_chunk,
              std::span<std::byte> memory);

  /// The part that holds a box; nothing: none does. Quick for boxes of one part after another.
  std::optional<std::size_t> find(const Box& box);
  const Box& part(std::size_t index) const { return parts_[index].box; }
  /// Read one part, after fill(), row-major.
  /// @error corrupt  other bytes than were written; whatever reading says
  Status read(std::size_t index, std::span<std::byte> values);
  /// That are copied at once, beside what the calls are given.
  std::uint64_t pack_bytes() const;

 private:
  class Pass;
  struct Part {
    Box box;
    std::uint64_t begin = 0;      ///< In the file.
    std::uint64_t n_written = 0;  ///< Bytes so far.
    std::uint64_t checksum = 0;   ///< Of these: of each piece, and of which it is.
  };
  /// What a part has in common with a box that was read.
  struct Piece {
    std::size_t box_index = 0;
    Box box;
    std::uint64_t begin = 0;  ///< In the file.
  };
  std::uint64_t bytes_of(const Box& box) const { return box.n_elements() * element_bytes_; }
  Status write_piece(Part& part, const Piece& piece, const Box& box, const std::byte* values,
                     Buffer& pack);
  Status read_pieces(const Part& part, std::span<const Piece> pieces, std::byte* values,
                     Buffer& pack, std::uint64_t& checksum);

  std::unique_ptr<Storage> storage_;
  std::vector<Part> parts_;
  std::size_t found_ = 0;   ///< By the last find().
  std::vector<Box> boxes_;  ///< As they were read: so parts lie in pieces.
  std::uint64_t element_bytes_;
  std::vector<Buffer> packs_;  ///< Of each thread.
  ThreadTeam team_;            ///< Last: its threads use the others.
};

}  // namespace tailrace::verbs
