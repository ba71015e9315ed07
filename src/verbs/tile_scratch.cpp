// The unnamed file, the pass that fills it, and the reassembly of parts.

#include "verbs/tile_scratch.hpp"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/file_limit.hpp"
#include "core/mount_kind.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace::verbs {
namespace {

/// Minimum per thread: smaller buffers would cause small writes, so fewer threads are used.
constexpr std::uint64_t kThreadPackBytesMin = 16U << 10;

/// Mark of a piece. Any thread writes pieces in any order; the sum of marks identifies the set.
std::uint64_t mark_of(std::uint32_t checksum, std::size_t box_index) {
  return (std::uint64_t{checksum} + 1) * (2 * std::uint64_t{box_index} + 1);
}

/// Visit a box in pieces of at most `n_max` elements. Concatenated, the pieces are the box in
/// row-major order.
template <class Visit>
Status for_each_piece(const Box& box, std::uint64_t n_max, Visit&& visit) {
  const std::uint64_t n = box.n_elements();
  if (n <= n_max) return visit(box);
  std::size_t d = 0;
  while (box.count[d] == 1) ++d;
  const std::uint64_t n_rows = std::max<std::uint64_t>(n_max / (n / box.count[d]), 1);
  Box piece = box;
  for (std::uint64_t row = 0; row < box.count[d]; row += n_rows) {
    piece.start[d] = box.start[d] + row;
    piece.count[d] = std::min(n_rows, box.count[d] - row);
    TAILRACE_TRY(for_each_piece(piece, n_max, visit));
  }
  return Status();
}

void widen(Box& all, const Box& box) {
  for (std::size_t d = 0; d < all.rank(); ++d) {
    const std::uint64_t end = std::max(all.start[d] + all.count[d], box.start[d] + box.count[d]);
    all.start[d] = std::min(all.start[d], box.start[d]);
    all.count[d] = end - all.start[d];
  }
}

bool is_on_same_device(int descriptor, const std::string& folder) {
  struct stat file {};
  struct stat other {};
  const bool known = ::fstat(descriptor, &file) == 0 && ::stat(folder.c_str(), &other) == 0;
  return !known || file.st_dev == other.st_dev;
}

int open_nameless(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (opened >= 0) return opened;
  // Not every file system supports O_TMPFILE; overlays support it only in recent kernels.
  std::string name = folder + "/.tailrace-scratch-XXXXXX";
  const int made = ::mkostemp(name.data(), O_CLOEXEC);
  if (made < 0 || ::unlink(name.c_str()) == 0) return made;
  const int failure = errno;
  ::close(made);
  errno = failure;
  return -1;
}

/// Reserve space for the file if `spared_bytes` stay free in addition. A trial allocation is not
/// used: for a moment it could take space that others need.
Status reserve(int descriptor, std::uint64_t n_bytes, std::uint64_t spared_bytes) {
  struct statvfs facts {};
  if (::fstatvfs(descriptor, &facts) != 0) return status_from_errno(errno, "a scratch file");
  const std::uint64_t free_bytes = std::uint64_t{facts.f_bavail} * facts.f_frsize;
  constexpr std::uint64_t most = std::numeric_limits<off_t>::max();
  if (n_bytes > most || n_bytes > free_bytes || spared_bytes > free_bytes - n_bytes) {
    return Status(Code::no_space, "a scratch file needs " + std::to_string(n_bytes) +
                                      " bytes and must leave " + std::to_string(spared_bytes) +
                                      " free, but only " + std::to_string(free_bytes) +
                                      " are free");
  }
  const FileLimitScope scope;
  // Do not fall back to writing: without preallocation, no scratch file is used.
  while (::fallocate(descriptor, 0, 0, static_cast<off_t>(n_bytes)) != 0) {
    if (errno != EINTR) return status_from_errno(errno, "a scratch file");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Storage>> open_scratch_file(const ScratchPlace& place,
                                                   std::uint64_t n_bytes) {
  const int descriptor = open_nameless(place.folder);
  if (descriptor < 0) return status_from_errno(errno, "a scratch file in \"" + place.folder + "\"");
  auto storage = storage_of_descriptor(descriptor, "scratch file in " + place.folder);
  // A file in memory would use the memory that it should save; a network file system may be slower
  // than decoding again.
  if (!place.anywhere && mount_kind_of(descriptor) != MountKind::own_disk) {
    return Status(Code::unsupported,
                  "\"" + place.folder + "\" is not on a local disk of this machine");
  }
  const bool shares =
      place.folder == place.output_folder || is_on_same_device(descriptor, place.output_folder);
  TAILRACE_TRY(reserve(descriptor, n_bytes, shares ? place.output_bytes : 0));
  return storage;
}

TileScratch::TileScratch(std::unique_ptr<Storage> storage, std::vector<Box> parts,
                         std::uint64_t element_bytes, std::uint64_t pack_bytes,
                         std::uint64_t n_threads)
    : storage_(std::move(storage)),
      element_bytes_(element_bytes),
      team_(std::clamp<std::uint64_t>(pack_bytes / std::max(kThreadPackBytesMin, element_bytes), 1,
                                      n_threads)) {
  for (std::uint64_t t = 0; t < team_.n_threads(); ++t) {
    packs_.emplace_back(std::max(pack_bytes / team_.n_threads(), element_bytes));
  }
  std::uint64_t begin = 0;
  for (Box& box : parts) {
    const std::uint64_t n_bytes = bytes_of(box);
    parts_.push_back({std::move(box), begin});
    begin += n_bytes;
  }
}

std::uint64_t TileScratch::pack_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const Buffer& pack : packs_) n_bytes += pack.capacity();
  return n_bytes;
}

// --- The pass that fills the file.

/// Cuts the stored chunks that the parts touch into boxes that fit in memory and contain only
/// wanted chunks.
class TileScratch::Pass {
 public:
  Pass(TileScratch& scratch, InputFile& input, std::size_t field_index, const Shape& stored_chunk,
       std::span<std::byte> memory)
      : scratch_(scratch),
        input_(input),
        field_index_(field_index),
        memory_(memory),
        all_(scratch.parts_.front().box) {
    for (const Part& part : scratch_.parts_) widen(all_, part.box);
    Shape end(all_.rank());
    for (std::size_t d = 0; d < end.size(); ++d) end[d] = all_.start[d] + all_.count[d];
    grid_ = ChunkGrid{std::move(end), stored_chunk};
    range_ = grid_.touched(all_);
    wanted_.assign(range_.n_elements(), false);
    for (const Part& part : scratch_.parts_) {
      for_each_position(grid_.touched(part.box),
                        [&](const Shape& at) { wanted_[index_of(at)] = true; });
    }
  }

  Status run() { return visit(range_); }

 private:
  std::uint64_t index_of(const Shape& at) const {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      index = index * range_.count[d] + (at[d] - range_.start[d]);
    }
    return index;
  }

  /// Elements of a box of chunks.
  Box elements_of(const Box& chunks) const {
    Box box = chunks;
    for (std::size_t d = 0; d < box.rank(); ++d) {
      box.start[d] *= grid_.chunk_shape[d];
      box.count[d] *= grid_.chunk_shape[d];
    }
    return intersect(box, all_);
  }

  Status visit(const Box& chunks) {
    std::uint64_t n_wanted = 0;
    for_each_position(chunks, [&](const Shape& at) { n_wanted += wanted_[index_of(at)] ? 1 : 0; });
    if (n_wanted == 0) return Status();
    const std::uint64_t n_chunks = chunks.n_elements();
    const Box box = elements_of(chunks);
    const bool fits = scratch_.bytes_of(box) <= memory_.size();
    if (fits && n_wanted == n_chunks) return take(box);
    if (n_chunks == 1) return Status(Code::out_of_memory, "not enough memory for one stored chunk");
    // Halve the slowest dimension, so that rows stay long.
    std::size_t d = 0;
    while (chunks.count[d] == 1) ++d;
    Box half = chunks;
    half.count[d] = (chunks.count[d] + 1) / 2;
    TAILRACE_TRY(visit(half));
    half.start[d] += half.count[d];
    half.count[d] = chunks.count[d] - half.count[d];
    return visit(half);
  }

  Status take(const Box& box) {
    TAILRACE_TRY(input_.read(field_index_, box, memory_.first(scratch_.bytes_of(box))));
    const std::size_t box_index = scratch_.boxes_.size();
    scratch_.boxes_.push_back(box);
    std::vector<std::pair<Part*, Piece>> pieces;
    for (Part& part : scratch_.parts_) {
      Box common = intersect(part.box, box);
      if (!common.empty()) pieces.push_back({&part, {box_index, std::move(common)}});
    }
    const std::uint64_t n_threads = scratch_.team_.n_threads();
    return scratch_.team_.run(pieces.size(), n_threads, [&](std::size_t p, std::size_t thread) {
      auto& [part, piece] = pieces[p];
      return scratch_.write_piece(*part, piece, box, memory_.data(), scratch_.packs_[thread]);
    });
  }

  TileScratch& scratch_;
  InputFile& input_;
  std::size_t field_index_;
  std::span<std::byte> memory_;
  Box all_;  ///< Bounding box of all parts.
  ChunkGrid grid_;
  Box range_;  ///< Stored chunks in all_.
  std::vector<bool> wanted_;
};

Status TileScratch::fill(InputFile& input, std::size_t field_index, const Shape& stored_chunk,
                         std::span<std::byte> memory) {
  const bool allocated = std::ranges::all_of(packs_, &Buffer::allocated);
  if (!allocated) return Status(Code::out_of_memory, "not enough memory to pack values");
  return Pass(*this, input, field_index, stored_chunk, memory).run();
}

/// @param values  contents of the box that was read.
Status TileScratch::write_piece(Part& part, const Piece& piece, const Box& box,
                                const std::byte* values, Buffer& pack) {
  std::uint32_t checksum = 0;
  const auto append = [&](std::span<const std::byte> bytes) {
    TAILRACE_TRY(storage_->write_at(part.begin + part.n_written, bytes));
    part.n_written += bytes.size();
    checksum = libdeflate_crc32(checksum, bytes.data(), bytes.size());
    return Status();
  };
  std::uint64_t n_packed = 0;
  const auto flush = [&] { return append({pack.data(), std::exchange(n_packed, 0)}); };
  const auto add = [&](const Box& rows) {
    if (n_packed + bytes_of(rows) > pack.capacity()) TAILRACE_TRY(flush());
    copy_box(rows, box, values, rows, pack.data() + n_packed, element_bytes_);
    n_packed += bytes_of(rows);
    return Status();
  };
  if (piece.box == box) {
    TAILRACE_TRY(append({values, bytes_of(box)}));
  } else {
    TAILRACE_TRY(for_each_piece(piece.box, pack.capacity() / element_bytes_, add));
    TAILRACE_TRY(flush());
  }
  part.checksum += mark_of(checksum, piece.box_index);
  return Status();
}

// --- Reassembly of parts.

std::optional<std::size_t> TileScratch::find(const Box& box) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::size_t index = (found_ + i) % parts_.size();
    if (!contains(parts_[index].box, box)) continue;
    found_ = index;
    return index;
  }
  return std::nullopt;
}

Status TileScratch::read(std::size_t index, std::span<std::byte> values) {
  const Part& part = parts_[index];
  std::vector<Piece> pieces;
  std::vector<std::size_t> runs{0};  // Boundaries of runs of pieces; a run fills at least one pack.
  std::uint64_t end = part.begin;
  std::uint64_t run_begin = end;
  for (std::size_t b = 0; b < boxes_.size(); ++b) {
    Box common = intersect(part.box, boxes_[b]);
    if (common.empty()) continue;
    const std::uint64_t n_bytes = bytes_of(common);
    pieces.push_back({b, std::move(common), end});
    end += n_bytes;
    if (end - run_begin < packs_.front().capacity()) continue;
    runs.push_back(pieces.size());
    run_begin = end;
  }
  if (runs.back() != pieces.size()) runs.push_back(pieces.size());
  std::vector<std::uint64_t> checksums(runs.size() - 1);
  const auto read_run = [&](std::size_t r, std::size_t thread) {
    const auto of_run = std::span(pieces).subspan(runs[r], runs[r + 1] - runs[r]);
    return read_pieces(part, of_run, values.data(), packs_[thread], checksums[r]);
  };
  TAILRACE_TRY(team_.run(checksums.size(), team_.n_threads(), read_run));
  const std::uint64_t checksum =
      std::accumulate(checksums.begin(), checksums.end(), std::uint64_t{0});
  if (end == part.begin + bytes_of(part.box) && checksum == part.checksum) return Status();
  return Status(Code::corrupt, storage_->path() + " returned other bytes than were written");
}

/// Read consecutive pieces.
/// @param values  buffer for the complete part.
/// @param checksum  receives the sum of the pieces' marks.
Status TileScratch::read_pieces(const Part& part, std::span<const Piece> pieces, std::byte* values,
                                Buffer& pack, std::uint64_t& checksum) {
  std::uint64_t address = pieces.front().begin;
  const std::uint64_t end = pieces.back().begin + bytes_of(pieces.back().box);
  std::uint32_t of_piece = 0;
  std::uint64_t n_read = 0;  // Bytes in the pack, of which n_used are consumed.
  std::uint64_t n_used = 0;
  const auto take_rows = [&](const Box& rows) {
    const std::uint64_t n_bytes = bytes_of(rows);
    if (n_read - n_used < n_bytes) {
      std::memmove(pack.data(), pack.data() + n_used, n_read - n_used);
      n_read -= std::exchange(n_used, 0);
      const std::uint64_t n_more = std::min<std::uint64_t>(pack.capacity() - n_read, end - address);
      TAILRACE_TRY(storage_->read_at(address, {pack.data() + n_read, n_more}));
      address += n_more;
      n_read += n_more;
    }
    of_piece = libdeflate_crc32(of_piece, pack.data() + n_used, n_bytes);
    copy_box(rows, rows, pack.data() + n_used, part.box, values, element_bytes_);
    n_used += n_bytes;
    return Status();
  };
  for (const Piece& piece : pieces) {
    of_piece = 0;
    if (piece.box == part.box) {
      const std::uint64_t n_bytes = bytes_of(part.box);
      TAILRACE_TRY(storage_->read_at(address, {values, n_bytes}));
      of_piece = libdeflate_crc32(0, values, n_bytes);
    } else {
      TAILRACE_TRY(for_each_piece(piece.box, pack.capacity() / element_bytes_, take_rows));
    }
    checksum += mark_of(of_piece, piece.box_index);
  }
  return Status();
}

}  // namespace tailrace::verbs
