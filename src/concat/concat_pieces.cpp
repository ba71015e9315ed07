// Finding, reading, packing and unpacking pieces.

#include "concat/concat_pieces.hpp"

#include <algorithm>
#include <cstring>

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

/// Reads with a smaller gap are merged.
constexpr std::uint64_t kReadGapBytes = 64U << 10;
constexpr std::uint64_t kReadBytesMax = 4U << 20;

/// Header of a piece in a message. The pieces' bytes follow in the same order.
struct PackedPiece {
  std::uint32_t part = 0;
  std::uint32_t filter_mask = 0;
  std::uint64_t chunk = 0;
  std::uint64_t n_bytes = 0;
};

/// True if chunks of this shape can cut an array of that shape.
bool cuts(const Shape& chunk, const Shape& shape) {
  return chunk.size() == shape.size() && std::count(chunk.begin(), chunk.end(), 0U) == 0;
}

bool lies_in(const Box& box, const Shape& shape) {
  return box.start.size() == shape.size() && box.count.size() == shape.size() &&
         contains(whole_box(shape), box);
}

struct ReadRequest {
  ConcatInput* input = nullptr;
  Extent extent;
  std::byte* to = nullptr;
};

/// Read neighbouring extents of one file by one read.
Status read_run(std::span<const ReadRequest> run, Buffer& scratch) {
  ConcatInput& input = *run.front().input;
  const auto into = [](const ReadRequest& request) {
    return std::span(request.to, request.extent.encoded_bytes);
  };
  if (run.size() == 1) return input.read_at(run.front().extent.address, into(run.front()));
  const std::uint64_t begin = run.front().extent.address;
  const std::uint64_t end = run.back().extent.address + run.back().extent.encoded_bytes;
  if (scratch.capacity() < end - begin) scratch = Buffer(end - begin);
  if (!scratch.allocated())
    return Status(Code::out_of_memory,
                  "not enough memory to read " + std::to_string(end - begin) + " bytes");
  TAILRACE_TRY(input.read_at(begin, scratch.bytes().first(end - begin)));
  for (const ReadRequest& request : run) {
    std::memcpy(request.to, scratch.data() + (request.extent.address - begin),
                request.extent.encoded_bytes);
  }
  return Status();
}

Status read_all(std::vector<ReadRequest>& requests) {
  std::sort(requests.begin(), requests.end(), [](const ReadRequest& a, const ReadRequest& b) {
    if (a.input != b.input) return std::less<>()(a.input, b.input);
    return a.extent.address < b.extent.address;
  });
  Buffer scratch;
  for (std::size_t i = 0; i < requests.size();) {
    ConcatInput* const input = requests[i].input;
    const std::uint64_t begin = requests[i].extent.address;
    std::uint64_t end = begin + requests[i].extent.encoded_bytes;
    std::size_t next = i + 1;
    // Compact data have addresses beyond the file's end, but are not part of the file.
    while (next < requests.size() && requests[next].input == input &&
           requests[next].extent.address >= end &&
           requests[next].extent.address < input->file_bytes() &&
           requests[next].extent.address - end <= kReadGapBytes &&
           requests[next].extent.address + requests[next].extent.encoded_bytes - begin <=
               kReadBytesMax) {
      end = requests[next].extent.address + requests[next].extent.encoded_bytes;
      ++next;
    }
    TAILRACE_TRY(read_run(std::span(requests).subspan(i, next - i), scratch));
    if (next == requests.size() || requests[next].input != input) input->close_file();
    i = next;
  }
  return Status();
}

/// Expand the key numbers of one run of rows, as a file would store them.
void expand_keys(const ConcatPart& part, const PartGeometry& geometry, std::uint64_t chunk,
                 std::byte* to) {
  const std::uint64_t first = chunk * geometry.chunk_rows;
  const std::uint64_t n = geometry.band_end(chunk) - geometry.band_begin(chunk);
  part.keys->expand(first, n, part.key_offset, to);
}

}  // namespace

PartGeometry::PartGeometry(const LineDataset& output, const StoredForm& form,
                           std::uint64_t first_row_given, std::uint64_t n_rows, const Box* box)
    : first_row(first_row_given),
      chunk_rows(form.chunk_shape[0]),
      output_rows(output.grid.chunk_shape[0]) {
  grid.shape = output.grid.shape;
  grid.shape[0] = n_rows;
  grid.chunk_shape = form.chunk_shape;
  if (box != nullptr) {
    grid.shape = box->count;
    start = box->start;
  }
  for (std::size_t d = 1; d < grid.shape.size(); ++d) {
    const auto chunks = [](std::uint64_t n, std::uint64_t extent) {
      return (n + extent - 1) / extent;
    };
    n_inner *= chunks(grid.shape[d], grid.chunk_shape[d]);
    output_inner *= chunks(output.grid.shape[d], output.grid.chunk_shape[d]);
  }
  n_bands = (n_rows + chunk_rows - 1) / chunk_rows;
  rows_only = box == nullptr && n_inner == 1 && output_inner == 1;
}

Box PartGeometry::box(std::uint64_t chunk) const {
  Box box = grid.clipped_box(chunk);
  if (start.empty()) {
    box.start[0] += first_row;
  } else {
    for (std::size_t d = 0; d < start.size(); ++d) box.start[d] += start[d];
  }
  return box;
}

std::uint64_t PartGeometry::output_index(const LineDataset& output, std::uint64_t chunk) const {
  if (start.empty()) return first_row / output_rows * output_inner + chunk;
  Shape at = box(chunk).start;
  for (std::size_t d = 0; d < at.size(); ++d) at[d] /= output.grid.chunk_shape[d];
  return output.grid.index_of(at);
}

bool PartGeometry::coincides(const LineDataset& output, std::uint64_t chunk) const {
  if (start.empty()) {
    if (first_row % output_rows != 0) return false;
    const std::uint64_t band = chunk / n_inner;
    // A partial last chunk of a part does not coincide if other rows follow: they share the output
    // chunk.
    return band_end(band) == output.grid.shape[0] ||
           band_end(band) - band_begin(band) == chunk_rows;
  }
  const Box covered = box(chunk);
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::uint64_t end = covered.start[d] + covered.count[d];
    if (covered.start[d] % output.grid.chunk_shape[d] != 0) return false;
    if (end != output.grid.shape[d] && covered.count[d] != grid.chunk_shape[d]) return false;
  }
  return true;
}

PieceSender::PieceSender(const ConcatLine& line, std::vector<ConcatPart> parts,
                         std::vector<const StoredForm*> forms)
    : line_(line), parts_(std::move(parts)), forms_(std::move(forms)) {}

StoredChunk PieceSender::stored_chunk(const ConcatPart& part, const PartGeometry& geometry,
                                      std::uint64_t chunk) const {
  const auto run_bytes = [&] {
    const std::uint64_t n_rows = geometry.band_end(chunk) - geometry.band_begin(chunk);
    Shape shape = geometry.grid.shape;
    shape[0] = n_rows;
    return n_elements(shape) * line_.dataset(part.dataset).element_bytes;
  };
  if (part.input == nullptr) return {chunk, {0, part.keys == nullptr ? 0 : run_bytes()}, 0};
  const ChunkList stored = part.input->chunks(part.input_dataset);
  if (part.form->kind == StoredForm::Kind::chunked) return stored.find(chunk);
  // Contiguous data: one extent, cut into runs of rows.
  if (stored.empty()) return {chunk, {0, 0}, 0};
  Shape before = geometry.grid.shape;
  before[0] = chunk * geometry.chunk_rows;
  const std::uint64_t at = n_elements(before) * line_.dataset(part.dataset).element_bytes;
  return {chunk, {stored[0].extent.address + at, run_bytes()}, 0};
}

bool PieceSender::copies(const ConcatPart& part, const PartGeometry& geometry,
                         std::uint64_t chunk) const {
  return part.form == forms_[part.dataset] &&
         geometry.coincides(line_.dataset(part.dataset), chunk);
}

std::uint64_t PieceSender::largest_chunk_bytes() const {
  std::uint64_t largest = 0;
  for (const ConcatPart& part : parts_) {
    const LineDataset& output = line_.dataset(part.dataset);
    // Runs of rows end with the rows; copied chunks are never decoded.
    Shape shape = part.form->chunk_shape;
    if (part.form->kind != StoredForm::Kind::chunked) shape[0] = std::min(shape[0], part.n_rows);
    const std::uint64_t end_row = part.first_row + part.n_rows;
    const bool whole = end_row % shape[0] == 0 || end_row == output.grid.shape[0];
    const bool copied = part.box == nullptr && part.form == forms_[part.dataset];
    if (copied && part.first_row % shape[0] == 0 && whole) continue;
    largest = std::max(largest, n_elements(shape) * output.element_bytes);
  }
  return largest;
}

PieceSender::Bands PieceSender::bands_in(const ConcatPart& part, const PartGeometry& geometry,
                                         std::uint64_t first, std::uint64_t end) const {
  const LineDataset& output = line_.dataset(part.dataset);
  const std::uint64_t first_place = line_.first_place(part.dataset);
  const std::uint64_t end_place = line_.first_place(part.dataset + 1);
  if (end_place <= first || first_place >= end) return {};
  const auto output_band = [&](std::uint64_t place) {
    return (output.first_chunk + (place - first_place)) / geometry.output_inner;
  };
  const std::uint64_t begin_row = output_band(std::max(first, first_place)) * geometry.output_rows;
  const std::uint64_t end_row =
      (output_band(std::min(end, end_place) - 1) + 1) * geometry.output_rows;
  if (end_row <= part.first_row || begin_row >= part.first_row + part.n_rows) return {};
  const std::uint64_t skipped = begin_row > part.first_row ? begin_row - part.first_row : 0;
  return {skipped / geometry.chunk_rows,
          std::min(geometry.n_bands,
                   (end_row - part.first_row + geometry.chunk_rows - 1) / geometry.chunk_rows)};
}

std::uint64_t PieceSender::end_within(std::uint64_t first, std::uint64_t end,
                                      std::uint64_t n_bytes) const {
  std::uint64_t sum = 0;
  for (std::size_t p = next_part_; p < parts_.size(); ++p) {
    const ConcatPart& part = parts_[p];
    const LineDataset& output = line_.dataset(part.dataset);
    if (line_.first_place(part.dataset) >= end) break;
    const PartGeometry geometry = geometry_of(output, part);
    const Bands bands = bands_in(part, geometry, first, end);
    for (std::uint64_t chunk = bands.begin * geometry.n_inner; chunk < bands.end * geometry.n_inner;
         ++chunk) {
      if (copies(part, geometry, chunk)) continue;  // Copied chunks are not sent.
      std::uint64_t first_index = UINT64_MAX;
      if (part.box != nullptr) {
        // A band of a tile covers only a part of the output's band; the output's other places lie
        // between.
        for_each_touched(geometry, output, chunk, [&](std::uint64_t index) {
          if (line_.place_of(part.dataset, index) < first) return;
          first_index = std::min(first_index, index);
        });
        if (first_index == UINT64_MAX || line_.place_of(part.dataset, first_index) >= end) continue;
      }
      sum += stored_chunk(part, geometry, chunk).extent.encoded_bytes;
      if (sum <= n_bytes) continue;
      // The first place that the chunk touches; if the chunk grids differ, the first of the band.
      const std::uint64_t band = chunk / geometry.n_inner;
      const std::uint64_t inner =
          geometry.n_inner == geometry.output_inner ? chunk % geometry.n_inner : 0;
      const std::uint64_t index =
          part.box != nullptr
              ? first_index
              : geometry.band_begin(band) / geometry.output_rows * geometry.output_inner + inner;
      const std::uint64_t place = line_.place_of(part.dataset, std::max(index, output.first_chunk));
      return std::min(std::max(place, first + 1), end);
    }
  }
  return end;
}

void PieceSender::visit_part(std::size_t part_index, const ConcatRound& round,
                             std::vector<std::vector<Entry>>& by_owner, Outgoing& outgoing) const {
  const ConcatPart& part = parts_[part_index];
  const LineDataset& output = line_.dataset(part.dataset);
  const PartGeometry geometry = geometry_of(output, part);
  const Bands bands = bands_in(part, geometry, round.first, round.end);
  for (std::uint64_t chunk = bands.begin * geometry.n_inner; chunk < bands.end * geometry.n_inner;
       ++chunk) {
    // Contiguous data have no holes: elements that the input never wrote are written as fill
    // values.
    const bool hole = part.form->kind != StoredForm::Kind::chunked && part.keys == nullptr &&
                      (part.input == nullptr || part.input->chunks(part.input_dataset).empty());
    if (!hole && copies(part, geometry, chunk)) {
      const std::uint64_t index = geometry.output_index(output, chunk);
      if (index < output.first_chunk) continue;
      const std::uint64_t place = line_.place_of(part.dataset, index);
      if (place < round.first || place >= round.end) continue;
      outgoing.copies.push_back({place, &part, chunk, stored_chunk(part, geometry, chunk)});
      continue;
    }
    int last_owner = -1;
    for_each_touched(geometry, output, chunk, [&](std::uint64_t index) {
      if (index < output.first_chunk) return;
      const std::uint64_t place = line_.place_of(part.dataset, index);
      if (place < round.first || place >= round.end) return;
      const int owner = round.owner(place);
      if (owner == last_owner) return;
      last_owner = owner;
      std::vector<Entry>& entries = by_owner[static_cast<std::size_t>(owner)];
      const auto number = static_cast<std::uint32_t>(part_index);
      if (!entries.empty() && entries.back().part == number && entries.back().chunk == chunk) {
        return;  // An inner dimension has returned to the same owner.
      }
      const StoredChunk stored = stored_chunk(part, geometry, chunk);
      entries.push_back({number, stored.filter_mask, chunk, stored.extent});
    });
  }
}

Result<Bytes> PieceSender::pack(const std::vector<Entry>& entries) const {
  ByteWriter forms;
  ByteWriter parts;
  std::vector<const StoredForm*> known_forms;
  std::uint32_t n_parts = 0;
  std::uint32_t last_part = 0;
  std::uint64_t n_bytes = 0;
  std::vector<PackedPiece> pieces;
  pieces.reserve(entries.size());
  for (const Entry& entry : entries) {
    if (n_parts == 0 || entry.part != last_part) {
      const ConcatPart& part = parts_[entry.part];
      auto form = std::find(known_forms.begin(), known_forms.end(), part.form);
      if (form == known_forms.end()) {
        pack_form(forms, *part.form);
        form = known_forms.insert(known_forms.end(), part.form);
      }
      parts.add(part.dataset);
      parts.add(part.source);
      parts.add(part.first_row);
      parts.add(part.n_rows);
      parts.add(static_cast<std::uint8_t>(part.box != nullptr));
      if (part.box != nullptr) parts.add(*part.box);
      parts.add(static_cast<std::uint32_t>(form - known_forms.begin()));
      last_part = entry.part;
      ++n_parts;
    }
    pieces.push_back({n_parts - 1, entry.filter_mask, entry.chunk, entry.extent.encoded_bytes});
    n_bytes += entry.extent.encoded_bytes;
  }
  ByteWriter message;
  message.add(static_cast<std::uint32_t>(known_forms.size()));
  message.add_bytes(forms.bytes());
  message.add(n_parts);
  message.add_bytes(parts.bytes());
  message.add(static_cast<std::uint32_t>(pieces.size()));
  message.add_bytes(std::as_bytes(std::span(pieces)));
  std::byte* to = message.extend(n_bytes);
  std::vector<ReadRequest> requests;
  for (const Entry& entry : entries) {
    const ConcatPart& part = parts_[entry.part];
    if (part.input == nullptr) {
      if (part.keys != nullptr) {
        expand_keys(part, geometry_of(line_.dataset(part.dataset), part), entry.chunk, to);
      }
    } else if (part.input->in_memory()) {
      TAILRACE_TRY(part.input->read_at(entry.extent.address, {to, entry.extent.encoded_bytes}));
    } else if (entry.extent.encoded_bytes > 0) {
      requests.push_back({part.input, entry.extent, to});
    }
    to += entry.extent.encoded_bytes;
  }
  TAILRACE_TRY(read_all(requests));
  return message.take();
}

Result<Outgoing> PieceSender::collect(const ConcatRound& round) {
  Outgoing outgoing;
  std::vector<std::vector<Entry>> by_owner(round.borders.size() - 1);
  while (next_part_ < parts_.size()) {
    const ConcatPart& part = parts_[next_part_];
    const LineDataset& output = line_.dataset(part.dataset);
    const std::uint64_t inner =
        output.grid.n_chunks() / ((output.grid.shape[0] - 1) / output.grid.chunk_shape[0] + 1);
    const std::uint64_t last_chunk =
        ((part.first_row + part.n_rows - 1) / output.grid.chunk_shape[0] + 1) * inner - 1;
    if (last_chunk >= output.first_chunk &&
        line_.place_of(part.dataset, last_chunk) >= round.first) {
      break;
    }
    ++next_part_;
  }
  for (std::size_t p = next_part_; p < parts_.size(); ++p) {
    if (line_.first_place(parts_[p].dataset) >= round.end) break;
    if (line_.first_place(parts_[p].dataset + 1) <= round.first) continue;
    visit_part(p, round, by_owner, outgoing);
  }
  for (std::size_t owner = 0; owner < by_owner.size(); ++owner) {
    if (by_owner[owner].empty()) continue;
    TAILRACE_TAKE(Bytes message, pack(by_owner[owner]));
    outgoing.messages.push_back({static_cast<int>(owner), std::move(message)});
    by_owner[owner] = {};
  }
  return outgoing;
}

Status PieceSender::read(const CopiedChunk& copy, std::span<std::byte> bytes) const {
  const ConcatPart& part = *copy.part;
  if (part.input != nullptr) return part.input->read_at(copy.stored.extent.address, bytes);
  expand_keys(part, geometry_of(line_.dataset(part.dataset), part), copy.chunk, bytes.data());
  return Status();
}

Status Arrived::add(Message arrived, const ConcatLine& line, FormTable& forms) {
  const Message& message = messages_.emplace_back(std::move(arrived));
  ByteReader reader(message.payload, ByteReader::Trust::wary);
  std::vector<const StoredForm*> known(reader.take_count(1));
  for (const StoredForm*& form : known) form = forms.intern(unpack_form(reader));
  const std::size_t n_parts = reader.take_count(sizeof(std::uint64_t));
  std::vector<ArrivedPart>& parts = parts_.emplace_back();
  parts.reserve(n_parts);
  for (std::size_t i = 0; i < n_parts && reader.good(); ++i) {
    const auto dataset = reader.take<std::uint32_t>();
    const auto source = reader.take<std::int32_t>();
    const auto first_row = reader.take<std::uint64_t>();
    const auto n_rows = reader.take<std::uint64_t>();
    Box box;
    const bool tile = reader.take<std::uint8_t>() != 0;
    if (tile) {
      box.start = reader.take_shape();
      box.count = reader.take_shape();
    }
    const auto form = reader.take<std::uint32_t>();
    if (dataset >= line.n_datasets() || form >= known.size() ||
        !cuts(known[form]->chunk_shape, line.dataset(dataset).grid.shape) ||
        (tile && !lies_in(box, line.dataset(dataset).grid.shape))) {
      reader.refuse();
      break;
    }
    parts.push_back(
        {dataset,
         source,
         known[form],
         {line.dataset(dataset), *known[form], first_row, n_rows, tile ? &box : nullptr}});
  }
  const std::size_t n_pieces = reader.take_count(sizeof(PackedPiece));
  ByteReader table(reader.take_bytes(n_pieces * sizeof(PackedPiece)));
  pieces_.reserve(pieces_.size() + n_pieces);
  for (std::size_t i = 0; i < n_pieces; ++i) {
    const auto packed = table.take<PackedPiece>();
    const std::span<const std::byte> bytes = reader.take_bytes(packed.n_bytes);
    if (packed.part >= parts.size()) reader.refuse();
    if (!reader.good()) break;
    pieces_.push_back({&parts[packed.part], packed.chunk, packed.filter_mask, bytes});
  }
  if (reader.good()) return Status();
  return damaged_message("pieces", message);
}

}  // namespace tailrace
