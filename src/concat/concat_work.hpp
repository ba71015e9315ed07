// ConcatWork: the work of the owner of places in a round: decode, assemble, encode, and pass to the
// write lane.
//
// One task is a run of neighbouring chunks, so that a stored chunk across a border is decoded once.
// Threads take tasks until none is left. The received pieces must cover each chunk of the output
// exactly. Rows that were never written in the input get its fill value; a chunk without any
// written row is not stored.
// chunk without any written row is not stored either.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "concat/concat_pieces.hpp"
#include "concat/concat_write.hpp"
#include "concat/hdf5/concat_output.hpp"

namespace tailrace {

/// Seconds for which threads were busy with one kind of work. Thread-safe.
class BusyTime {
 public:
  void add(double seconds) { nanoseconds_ += static_cast<std::uint64_t>(seconds * 1e9); }
  double seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }

 private:
  std::atomic<std::uint64_t> nanoseconds_{0};
};

class ConcatWork {
 public:
  struct Settings {
    std::uint64_t n_threads = 1;
    std::string plugin_path;
    std::span<const std::string> inputs;  ///< Names for messages.
    std::string output;
  };

  ConcatWork(const ConcatLine& line, std::span<const ConcatTarget> targets, ConcatWriteLane& lane,
             Tail& tail, Settings settings)
      : line_(line), targets_(targets), lane_(lane), tail_(tail), settings_(std::move(settings)) {}

  /// Process this rank's share of a round; the lane may still be writing when this returns. Not
  /// collective.
  /// @error codec_failed, corrupt  names input, dataset and chunk.
  /// @error plugin_missing, out_of_memory  also names the input, if one needs it
  Status run(const ConcatRound& round, int rank, const Arrived& arrived,
             std::span<const CopiedChunk> copies, const PieceSender& sender);

  /// Busy times over all rounds.
  const BusyTime& decoding() const { return decoding_; }
  const BusyTime& encoding() const { return encoding_; }
  const BusyTime& reading() const { return reading_; }
  /// Position of an input with a chunk that does not decode; -1: none.
  std::int64_t damaged_input() const { return damaged_input_; }
  std::uint64_t n_places() const { return n_places_; }  ///< Processed places, stored or not.
  std::uint64_t n_encoded() const { return n_encoded_; }
  std::uint64_t n_copied() const { return n_copied_; }
  std::uint64_t copied_bytes() const { return copied_bytes_; }
  /// Raw bytes of the processed chunks, for the progress.
  std::uint64_t raw_bytes() const { return raw_bytes_; }

 private:
  struct Slot {
    std::uint64_t place = 0;
    std::size_t piece = 0;
  };
  /// A thread's cache between pieces: the last decoded chunk, and the last part's codec.
  struct Decoded {
    const Piece* piece = nullptr;
    Buffer values;
    const ArrivedPart* part = nullptr;
    const Codec* codec = nullptr;
  };

  /// Make codecs before the threads start, because HDF5 looks for plug-ins.
  Status prepare_codecs(std::span<const Slot> slots, const Arrived& arrived);
  Status make_codec(std::size_t dataset, const StoredForm& form);
  const Codec& codec(std::size_t dataset, const StoredForm& form) const;
  Status assemble(std::span<const Slot> slots, const Arrived& arrived, Decoded& decoded);
  Status decode(const Piece& piece, std::span<std::byte> values, Decoded& decoded);
  Status decode_aside(const Piece& piece, Decoded& decoded);
  Status lay_rows(const Piece& piece, std::uint64_t first_row, std::uint64_t end_row,
                  std::uint64_t row_bytes, Buffer& values, Decoded& decoded);
  Status hand_on(std::uint64_t place, const ConcatLine::Chunk& chunk, Buffer values);
  Status copy(const CopiedChunk& chunk, const PieceSender& sender);
  const std::string& file_of(const Piece& piece) const;
  std::string piece_text(const Piece& piece) const;

  const ConcatLine& line_;
  std::span<const ConcatTarget> targets_;
  ConcatWriteLane& lane_;
  Tail& tail_;
  Settings settings_;
  /// Address of the form, and element type: forms are interned, and targets do not move.
  using CodecKey = std::pair<const StoredForm*, Bytes>;
  std::map<CodecKey, std::unique_ptr<Codec>> codecs_;
  std::mutex read_mutex_;
  BusyTime decoding_;
  BusyTime encoding_;
  BusyTime reading_;
  std::atomic<std::int64_t> damaged_input_{-1};
  std::atomic<std::uint64_t> n_places_{0};
  std::atomic<std::uint64_t> n_encoded_{0};
  std::atomic<std::uint64_t> n_copied_{0};
  std::atomic<std::uint64_t> copied_bytes_{0};
  std::atomic<std::uint64_t> raw_bytes_{0};
};

}  // namespace tailrace
