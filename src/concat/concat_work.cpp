// Tasks, decoding into place, and the fast path for chunks that differ only in their rows.

#include "concat/concat_work.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "core/fill_values.hpp"
#include "exec/thread_team.hpp"
#include "hdf5/stored_codec.hpp"

namespace tailrace {
namespace {

/// Raw bytes of the chunks of one task, unless a chunk is larger.
constexpr std::uint64_t kTaskBytes = 2U << 20;
/// Number of chunks that one task copies.
constexpr std::size_t kCopiesPerTask = 64;

class Stopwatch {
 public:
  explicit Stopwatch(BusyTime& time) : time_(time) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    time_.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  BusyTime& time_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Status no_memory(std::uint64_t n_bytes) {
  return Status(Code::out_of_memory, "not enough memory for " + std::to_string(n_bytes) + " bytes");
}

/// Number of elements of the box that the piece contains.
std::uint64_t n_common(const Piece& piece, const Box& box) {
  const PartGeometry& part = piece.part->geometry;
  if (!part.rows_only) return intersect(box, part.box(piece.chunk)).n_elements();
  const std::uint64_t begin = std::max(part.band_begin(piece.chunk), box.start[0]);
  const std::uint64_t end = std::min(part.band_end(piece.chunk), box.start[0] + box.count[0]);
  if (end <= begin) return 0;
  std::uint64_t n = end - begin;
  for (std::size_t d = 1; d < box.count.size(); ++d) n *= box.count[d];
  return n;
}

bool same_inner(const Shape& a, const Shape& b) {
  return std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end());
}

}  // namespace

const std::string& ConcatWork::file_of(const Piece& piece) const {
  return piece.part->source < 0 ? settings_.output
                                : settings_.inputs[static_cast<std::size_t>(piece.part->source)];
}

std::string ConcatWork::piece_text(const Piece& piece) const {
  return file_of(piece) + ": dataset \"" + targets_[piece.part->dataset].like.path + "\": chunk " +
         std::to_string(piece.chunk);
}

Status ConcatWork::make_codec(std::size_t dataset, const StoredForm& form) {
  const StoredDataset& like = targets_[dataset].like;
  std::unique_ptr<Codec>& slot = codecs_[{&form, like.type}];
  if (slot != nullptr) return Status();
  const std::string where = "dataset \"" + like.path + "\"";
  TAILRACE_TAKE(slot, make_stored_codec(like, form, settings_.plugin_path).within(where));
  return Status();
}

const Codec& ConcatWork::codec(std::size_t dataset, const StoredForm& form) const {
  return *codecs_.at({&form, targets_[dataset].like.type});
}

Status ConcatWork::prepare_codecs(std::span<const Slot> slots, const Arrived& arrived) {
  std::size_t last_dataset = targets_.size();
  for (const Slot& slot : slots) {
    const Piece& piece = arrived.pieces()[slot.piece];
    const std::size_t dataset = piece.part->dataset;
    if (piece.part->form->kind == StoredForm::Kind::chunked) {
      TAILRACE_TRY(make_codec(dataset, *piece.part->form).within(file_of(piece)));
    }
    if (dataset == last_dataset) continue;
    last_dataset = dataset;
    const StoredForm& target = targets_[dataset].like.storage;
    if (target.kind == StoredForm::Kind::chunked) TAILRACE_TRY(make_codec(dataset, target));
  }
  return Status();
}

Status ConcatWork::decode(const Piece& piece, std::span<std::byte> values, Decoded& decoded) {
  const Stopwatch watch(decoding_);
  const StoredForm& form = *piece.part->form;
  if (form.kind == StoredForm::Kind::chunked) {
    if (decoded.part != piece.part) {
      decoded.part = piece.part;
      decoded.codec = &codec(piece.part->dataset, form);
    }
    const Status status = decoded.codec->decode_into(piece.bytes, piece.filter_mask, values);
    if (status.ok()) return status;
    // A codec failure here means that the input is damaged.
    const Code code = status.code() == Code::codec_failed ? Code::corrupt : status.code();
    if (code == Code::corrupt) damaged_input_ = piece.part->source;
    return Status(code, piece_text(piece) + ": " + status.message());
  }
  if (piece.bytes.size() != values.size()) {
    return Status(Code::corrupt, piece_text(piece) + " has " + std::to_string(piece.bytes.size()) +
                                     " bytes, expected " + std::to_string(values.size()));
  }
  std::memcpy(values.data(), piece.bytes.data(), values.size());
  return Status();
}

Status ConcatWork::decode_aside(const Piece& piece, Decoded& decoded) {
  if (decoded.piece == &piece) return Status();
  const PartGeometry& part = piece.part->geometry;
  const std::uint64_t element_bytes = line_.dataset(piece.part->dataset).element_bytes;
  // Chunks are stored with padding; other runs of rows end with the rows.
  const bool whole = piece.part->form->kind == StoredForm::Kind::chunked;
  const std::uint64_t n_bytes =
      n_elements(whole ? part.grid.chunk_shape : part.grid.clipped_box(piece.chunk).count) *
      element_bytes;
  decoded.piece = nullptr;
  if (decoded.values.capacity() < n_bytes) decoded.values = Buffer(n_bytes);
  if (!decoded.values.allocated()) return no_memory(n_bytes);
  decoded.values.set_n_bytes(n_bytes);
  TAILRACE_TRY(decode(piece, decoded.values.bytes(), decoded));
  decoded.piece = &piece;
  return Status();
}

Status ConcatWork::lay_rows(const Piece& piece, std::uint64_t first_row, std::uint64_t end_row,
                            std::uint64_t row_bytes, Buffer& values, Decoded& decoded) {
  const PartGeometry& part = piece.part->geometry;
  const std::uint64_t begin = part.band_begin(piece.chunk);
  const std::uint64_t end = part.band_end(piece.chunk);
  const bool whole_rows =
      piece.part->form->kind != StoredForm::Kind::chunked || end - begin == part.chunk_rows;
  if (begin >= first_row && end <= end_row && whole_rows) {
    return decode(
        piece, values.bytes().subspan((begin - first_row) * row_bytes, (end - begin) * row_bytes),
        decoded);
  }
  TAILRACE_TRY(decode_aside(piece, decoded));
  const std::uint64_t from = std::max(begin, first_row);
  const std::uint64_t to = std::min(end, end_row);
  std::memcpy(values.data() + (from - first_row) * row_bytes,
              decoded.values.data() + (from - begin) * row_bytes, (to - from) * row_bytes);
  return Status();
}

Status ConcatWork::assemble(std::span<const Slot> slots, const Arrived& arrived, Decoded& decoded) {
  const std::uint64_t place = slots.front().place;
  const ConcatLine::Chunk chunk = line_.chunk_at(place);
  const LineDataset& output = line_.dataset(chunk.dataset);
  const Box full = output.grid.full_box(chunk.chunk_index);
  const Box clipped = output.grid.clipped_box(chunk.chunk_index);
  std::uint64_t n_covered = 0;
  std::uint64_t n_stored = 0;
  for (const Slot& slot : slots) {
    const Piece& piece = arrived.pieces()[slot.piece];
    const std::uint64_t n = n_common(piece, clipped);
    n_covered += n;
    if (!piece.bytes.empty()) n_stored += n;
  }
  if (n_covered != clipped.n_elements()) {
    return Status(Code::internal, "dataset \"" + targets_[chunk.dataset].like.path + "\": chunk " +
                                      std::to_string(chunk.chunk_index) + ": " +
                                      std::to_string(n_covered) + " of its " +
                                      std::to_string(clipped.n_elements()) +
                                      " elements were received");
  }
  ++n_places_;
  raw_bytes_ += output.chunk_bytes();
  const StoredForm::Kind kind = targets_[chunk.dataset].like.storage.kind;
  if (n_stored == 0 && kind == StoredForm::Kind::chunked) return Status();

  Buffer values(output.chunk_bytes());
  if (!values.allocated()) return no_memory(output.chunk_bytes());
  if (n_stored < n_elements(full.count)) {
    fill_values(values.bytes(), targets_[chunk.dataset].like.fill_value);
  }
  for (const Slot& slot : slots) {
    const Piece& piece = arrived.pieces()[slot.piece];
    if (piece.bytes.empty()) continue;
    const PartGeometry& part = piece.part->geometry;
    if (part.rows_only && same_inner(part.grid.chunk_shape, output.grid.chunk_shape)) {
      const std::uint64_t row_bytes = output.chunk_bytes() / output.grid.chunk_shape[0];
      TAILRACE_TRY(lay_rows(piece, full.start[0], full.start[0] + full.count[0], row_bytes, values,
                            decoded));
      continue;
    }
    TAILRACE_TRY(decode_aside(piece, decoded));
    const Box box = part.box(piece.chunk);
    Box stored = box;
    if (piece.part->form->kind == StoredForm::Kind::chunked) stored.count = part.grid.chunk_shape;
    copy_box(intersect(clipped, box), stored, decoded.values.data(), full, values.data(),
             output.element_bytes);
  }
  return hand_on(place, chunk, std::move(values));
}

Status ConcatWork::hand_on(std::uint64_t place, const ConcatLine::Chunk& chunk, Buffer values) {
  const LineDataset& output = line_.dataset(chunk.dataset);
  const ConcatTarget& target = targets_[chunk.dataset];
  if (target.like.storage.kind != StoredForm::Kind::chunked) {
    const Box clipped = output.grid.clipped_box(chunk.chunk_index);
    values.set_n_bytes(clipped.n_elements() * output.element_bytes);
    const std::uint64_t address =
        target.contiguous_address + chunk.chunk_index * output.chunk_bytes();
    lane_.push({place, 0, address, std::move(values)});
    return Status();
  }
  Result<EncodedBytes> encoded = [&] {
    const Stopwatch watch(encoding_);
    return codec(chunk.dataset, target.like.storage).encode(std::move(values));
  }();
  if (!encoded.ok()) {
    Status failed = encoded.status();
    if (failed.code() == Code::codec_failed && codec(chunk.dataset, target.like.storage).lossy()) {
      failed =
          Status(failed.code(),
                 failed.message() +
                     " (--codec deflate), or make the files with bound abs= instead of rel= or "
                     "psnr=, which give each file other filter parameters, and with rows in "
                     "multiples of the chunk");
    }
    return failed.within("dataset \"" + target.like.path + "\": chunk " +
                         std::to_string(chunk.chunk_index));
  }
  ++n_encoded_;
  lane_.push({place, encoded->filter_mask, std::nullopt, std::move(encoded->buffer),
              target.like.storage.filters.empty()});
  return Status();
}

Status ConcatWork::copy(const CopiedChunk& chunk, const PieceSender& sender) {
  const ConcatLine::Chunk at = line_.chunk_at(chunk.place);
  const LineDataset& output = line_.dataset(at.dataset);
  ++n_places_;
  raw_bytes_ += output.chunk_bytes();
  const std::uint64_t n_bytes = chunk.stored.extent.encoded_bytes;
  if (n_bytes == 0) return Status();
  Buffer bytes(n_bytes);
  if (!bytes.allocated()) return no_memory(n_bytes);
  {
    const std::scoped_lock lock(read_mutex_);
    const Stopwatch watch(reading_);
    TAILRACE_TRY(sender.read(chunk, bytes.bytes()));
  }
  ++n_copied_;
  copied_bytes_ += n_bytes;
  std::optional<std::uint64_t> address;
  if (targets_[at.dataset].like.storage.kind != StoredForm::Kind::chunked) {
    address = targets_[at.dataset].contiguous_address + at.chunk_index * output.chunk_bytes();
  }
  lane_.push({chunk.place, chunk.stored.filter_mask, address, std::move(bytes),
              targets_[at.dataset].like.storage.filters.empty()});
  return Status();
}

Status ConcatWork::run(const ConcatRound& round, int rank, const Arrived& arrived,
                       std::span<const CopiedChunk> copies, const PieceSender& sender) {
  const std::uint64_t begin = round.borders[static_cast<std::size_t>(rank)];
  const std::uint64_t end = round.borders[static_cast<std::size_t>(rank) + 1];
  std::vector<Slot> slots;
  slots.reserve(arrived.pieces().size());
  for (std::size_t p = 0; p < arrived.pieces().size(); ++p) {
    const Piece& piece = arrived.pieces()[p];
    const LineDataset& output = line_.dataset(piece.part->dataset);
    for_each_touched(piece.part->geometry, output, piece.chunk, [&](std::uint64_t index) {
      if (index < output.first_chunk) return;
      const std::uint64_t place = line_.place_of(piece.part->dataset, index);
      if (place >= begin && place < end) slots.push_back({place, p});
    });
  }
  std::ranges::stable_sort(slots, {}, &Slot::place);
  TAILRACE_TRY(prepare_codecs(slots, arrived));

  std::vector<std::span<const Slot>> tasks;
  std::uint64_t n_bytes = 0;
  std::size_t task_begin = 0;
  for (std::size_t i = 0; i < slots.size();) {
    std::size_t next = i + 1;
    while (next < slots.size() && slots[next].place == slots[i].place) ++next;
    n_bytes += line_.bytes_before(slots[i].place + 1) - line_.bytes_before(slots[i].place);
    // Extend the task over a larger stored chunk, so that it is decoded once.
    const ArrivedPart& part = *arrived.pieces()[slots[next - 1].piece].part;
    const std::uint64_t stored_bytes =
        n_elements(part.geometry.grid.chunk_shape) * line_.dataset(part.dataset).element_bytes;
    if (n_bytes >= std::max(kTaskBytes, stored_bytes) || next == slots.size()) {
      tasks.push_back(std::span(slots).subspan(task_begin, next - task_begin));
      task_begin = next;
      n_bytes = 0;
    }
    i = next;
  }
  const std::size_t n_copy_tasks = (copies.size() + kCopiesPerTask - 1) / kCopiesPerTask;
  const auto do_task = [&](std::size_t task) {
    if (task >= tasks.size()) {
      const std::size_t first = (task - tasks.size()) * kCopiesPerTask;
      for (std::size_t i = first; i < std::min(first + kCopiesPerTask, copies.size()); ++i) {
        TAILRACE_TRY(copy(copies[i], sender));
      }
      return Status();
    }
    Decoded decoded;
    const std::span<const Slot> all = tasks[task];
    for (std::size_t i = 0; i < all.size();) {
      std::size_t next = i + 1;
      while (next < all.size() && all[next].place == all[i].place) ++next;
      TAILRACE_TRY(assemble(all.subspan(i, next - i), arrived, decoded));
      i = next;
    }
    return Status();
  };
  const auto run_task = [&](std::size_t task) {
    const Status done = local_part([&] { return do_task(task); });
    if (done.code() != Code::out_of_memory) return done;
    const std::uint64_t place = task < tasks.size()
                                    ? tasks[task].front().place
                                    : copies[(task - tasks.size()) * kCopiesPerTask].place;
    return done.within("dataset \"" + targets_[line_.chunk_at(place).dataset].like.path + "\"");
  };
  const auto do_all = [&] {
    return run_on_threads(tasks.size() + n_copy_tasks, settings_.n_threads, run_task);
  };
  // Tasks may wait for a write that waits for its claim, so this rank serves the tail meanwhile.
  return serve_while(tail_, do_all);
}

}  // namespace tailrace
