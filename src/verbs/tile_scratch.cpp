// The file without a name, the pass that fills it, and parts put together again.

#include "verbs/tile_scratch.hpp"

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/file_limit.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace::verbs {
namespace {

/// Visit a box in pieces of at most so many elements, which one behind the other are the box
/// row-major.
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

Box box_around(std::span<const Box> boxes) {
  Box all = boxes.front();
  for (const Box& box : boxes) {
    for (std::size_t d = 0; d < all.rank(); ++d) {
      const std::uint64_t end = std::max(all.start[d] + all.count[d], box.start[d] + box.count[d]);
      all.start[d] = std::min(all.start[d], box.start[d]);
      all.count[d] = end - all.start[d];
    }
  }
  return all;
}

/// A file in memory takes what it is to spare.
bool lies_in_memory(int descriptor) {
  constexpr unsigned long tmpfs_magic = 0x01021994;
  constexpr unsigned long ramfs_magic = 0x858458f6;
  struct statfs facts {};
  if (::fstatfs(descriptor, &facts) != 0) return false;
  const auto type = static_cast<unsigned long>(facts.f_type);
  return type == tmpfs_magic || type == ramfs_magic;
}

int open_nameless(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (opened >= 0) return opened;
  // Shared file systems often have no such files.
  std::string name = folder + "/.tailrace-scratch-XXXXXX";
  const int made = ::mkostemp(name.data(), O_CLOEXEC);
  if (made >= 0) ::unlink(name.c_str());
  return made;
}

Status reserve(int descriptor, std::uint64_t n_bytes, std::uint64_t spared_bytes) {
  if (lies_in_memory(descriptor)) return Status(Code::unsupported, "the folder lies in memory");
  bool reserved = true;
  {
    const FileLimitScope scope;
    while (::fallocate(descriptor, 0, 0, static_cast<off_t>(n_bytes)) != 0) {
      if (errno == EINTR) continue;
      // Not by writing: where blocks cannot be had before, a write finds out.
      reserved = errno != EOPNOTSUPP && errno != ENOSYS;
      if (reserved) return status_from_errno(errno, "reserving a scratch file");
      break;
    }
  }
  struct statvfs space {};
  if (::fstatvfs(descriptor, &space) != 0) return status_from_errno(errno, "a scratch file");
  const std::uint64_t wanted = spared_bytes + (reserved ? 0 : n_bytes);
  if (std::uint64_t{space.f_bavail} * space.f_frsize >= wanted) return Status();
  return Status(Code::no_space, "a scratch file would leave too little room");
}

}  // namespace

Result<std::unique_ptr<Storage>> open_scratch_file(const std::string& folder, std::uint64_t n_bytes,
                                                   std::uint64_t spared_bytes) {
  const int descriptor = open_nameless(folder);
  if (descriptor < 0) return status_from_errno(errno, "a scratch file in \"" + folder + "\"");
  auto storage = storage_of_descriptor(descriptor, "scratch file in " + folder);
  TAILRACE_TRY(reserve(descriptor, n_bytes, spared_bytes));
  return storage;
}

TileScratch::TileScratch(std::unique_ptr<Storage> storage, std::vector<Box> parts,
                         std::uint64_t element_bytes, std::uint64_t pack_bytes)
    : storage_(std::move(storage)),
      parts_(std::move(parts)),
      element_bytes_(element_bytes),
      pack_(std::max(pack_bytes, element_bytes)) {
  begins_.push_back(0);
  for (const Box& part : parts_) begins_.push_back(begins_.back() + bytes_of(part));
}

// --- The pass that fills it.

/// Cuts what the parts touch of the grid of stored chunks into boxes in which all chunks are
/// wanted, and that fit the memory.
class TileScratch::Pass {
 public:
  Pass(TileScratch& scratch, InputFile& input, std::size_t field_index, const Shape& stored_chunk,
       std::span<std::byte> memory)
      : scratch_(scratch),
        input_(input),
        field_index_(field_index),
        memory_(memory),
        all_(box_around(scratch.parts_)),
        n_written_(scratch.parts_.size(), 0) {
    Shape end(all_.rank());
    for (std::size_t d = 0; d < end.size(); ++d) end[d] = all_.start[d] + all_.count[d];
    grid_ = ChunkGrid{std::move(end), stored_chunk};
    range_ = grid_.touched(all_);
    wanted_.assign(range_.n_elements(), false);
    for (const Box& part : scratch_.parts_) {
      for_each_position(grid_.touched(part),
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

  /// The elements of a box of chunks.
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
    if (n_chunks == 1) return Status(Code::out_of_memory, "no room for one stored chunk");
    // The slowest dimension is halved, so that rows stay long.
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
    scratch_.boxes_.push_back(box);
    for (std::size_t i = 0; i < scratch_.parts_.size(); ++i) {
      const Box common = intersect(scratch_.parts_[i], box);
      if (common.empty()) continue;
      TAILRACE_TRY(
          scratch_.write_common(common, box, memory_.data(), scratch_.begins_[i] + n_written_[i]));
      n_written_[i] += scratch_.bytes_of(common);
    }
    return Status();
  }

  TileScratch& scratch_;
  InputFile& input_;
  std::size_t field_index_;
  std::span<std::byte> memory_;
  Box all_;  ///< Around all parts.
  ChunkGrid grid_;
  Box range_;  ///< Of stored chunks.
  std::vector<bool> wanted_;
  std::vector<std::uint64_t> n_written_;  ///< Bytes of each part.
};

Status TileScratch::fill(InputFile& input, std::size_t field_index, const Shape& stored_chunk,
                         std::span<std::byte> memory) {
  if (!pack_.allocated()) return Status(Code::out_of_memory, "no memory to pack values");
  return Pass(*this, input, field_index, stored_chunk, memory).run();
}

Status TileScratch::write_common(const Box& common, const Box& box, const std::byte* values,
                                 std::uint64_t address) {
  if (common == box) return storage_->write_at(address, {values, bytes_of(box)});
  std::uint64_t n_packed = 0;
  const auto flush = [&] {
    const Status written = storage_->write_at(address, {pack_.data(), n_packed});
    address += std::exchange(n_packed, 0);
    return written;
  };
  const auto pack = [&](const Box& piece) {
    if (n_packed + bytes_of(piece) > pack_.capacity()) TAILRACE_TRY(flush());
    copy_box(piece, box, values, piece, pack_.data() + n_packed, element_bytes_);
    n_packed += bytes_of(piece);
    return Status();
  };
  TAILRACE_TRY(for_each_piece(common, pack_.capacity() / element_bytes_, pack));
  return flush();
}

// --- Parts put together again.

std::optional<std::size_t> TileScratch::find(const Box& box) const {
  const auto holds = [&](const Box& part) { return contains(part, box); };
  const auto found = std::find_if(parts_.begin(), parts_.end(), holds);
  if (found == parts_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parts_.begin());
}

Status TileScratch::read(std::size_t index, std::span<std::byte> values) {
  const Box& part = parts_[index];
  std::uint64_t address = begins_[index];
  std::uint64_t n_read = 0;  // Bytes in the pack, of which so many are used.
  std::uint64_t n_used = 0;
  const auto take_piece = [&](const Box& piece) {
    const std::uint64_t n_bytes = bytes_of(piece);
    if (n_read - n_used < n_bytes) {
      std::memmove(pack_.data(), pack_.data() + n_used, n_read - n_used);
      n_read -= std::exchange(n_used, 0);
      const std::uint64_t n_more =
          std::min<std::uint64_t>(pack_.capacity() - n_read, begins_[index + 1] - address);
      TAILRACE_TRY(storage_->read_at(address, {pack_.data() + n_read, n_more}));
      address += n_more;
      n_read += n_more;
    }
    copy_box(piece, piece, pack_.data() + n_used, part, values.data(), element_bytes_);
    n_used += n_bytes;
    return Status();
  };
  for (const Box& box : boxes_) {
    const Box common = intersect(part, box);
    if (common.empty()) continue;
    if (common == part) return storage_->read_at(address, values.first(bytes_of(part)));
    TAILRACE_TRY(for_each_piece(common, pack_.capacity() / element_bytes_, take_piece));
  }
  return Status();
}

}  // namespace tailrace::verbs
