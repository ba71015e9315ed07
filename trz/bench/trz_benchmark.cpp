// trz_benchmark: measures each stage of the codec trz, and complete chunks, for every instruction
// set.
//
//   trz_benchmark --benchmark_filter='chunk/default.*avx512' --benchmark_repetitions=7
//
// Input: one smooth random field of 128^3 at rel=1e-3. All rates are uncompressed bytes of the
// field per second, whatever a stage's input is. So the total rate is 1 / sum(1 / rate) of the
// stages. Times are CPU time of the single thread.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "trz/entropy/code_stream.hpp"
#include "trz/entropy/huffman.hpp"
#include "trz/predict/interpolation.hpp"
#include "trz/predict/lorenzo.hpp"
#include "trz/trz.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::trz;

constexpr std::size_t kEdge = 128;
constexpr std::size_t kValues = kEdge * kEdge * kEdge;
constexpr std::size_t kGroups = kValues / kGroupCodes;
constexpr Extents kExtents = {1, kEdge, kEdge, kEdge};
constexpr double kRelativeBound = 1e-3;

template <class T>
struct Field {
  std::vector<T> values;
  Lattice<T> lattice;
};

/// Make a velocity-like field: octaves of random numbers on successively finer grids, interpolated
/// linearly. Each octave has half the wavelength and 0.3 times the amplitude of the previous one.
std::vector<float> smooth_field() {
  std::vector<float> values(kValues, 0.0F);
  std::mt19937 random(1);
  float amplitude = 1;
  for (std::size_t cell = kEdge / 2; cell >= 1; cell /= 2, amplitude *= 0.3F) {
    const std::size_t n = kEdge / cell + 1;
    std::vector<float> grid(n * n * n);
    // The engine's numbers are the same on every platform; those of a distribution are not.
    for (float& value : grid) value = static_cast<float>(random()) * 0x1p-31F - 1;
    const auto at = [&](std::size_t z, std::size_t y, std::size_t x) {
      return grid[(z * n + y) * n + x];
    };
    const auto mixed = [](float a, float b, float share) { return a + share * (b - a); };
    for (std::size_t i = 0; i < kValues; ++i) {
      const std::size_t z = i / kEdge / kEdge, y = i / kEdge % kEdge, x = i % kEdge;
      const std::size_t k = z / cell, j = y / cell, l = x / cell;
      const auto share = [&](std::size_t position) {
        return static_cast<float>(position % cell) / static_cast<float>(cell);
      };
      const auto plane = [&](std::size_t k_plane) {
        return mixed(mixed(at(k_plane, j, l), at(k_plane, j, l + 1), share(x)),
                     mixed(at(k_plane, j + 1, l), at(k_plane, j + 1, l + 1), share(x)), share(y));
      };
      values[i] += amplitude * mixed(plane(k), plane(k + 1), share(z));
    }
  }
  return values;
}

/// Field of a type, created on first use.
template <class T>
const Field<T>& field() {
  static const Field<T> made = [] {
    const std::vector<float> single = smooth_field();
    Field<T> f{{single.begin(), single.end()}, {}};
    const auto [least, greatest] = std::minmax_element(f.values.begin(), f.values.end());
    f.lattice.bound = static_cast<T>(kRelativeBound) * (*greatest - *least);
    f.lattice.step = 2 * f.lattice.bound * static_cast<T>(1 - 0x1p-10);
    f.lattice.inverse_step = 1 / f.lattice.step;
    f.lattice.offset = f.values.front();
    return f;
  }();
  return made;
}

void count(benchmark::State& state, std::size_t value_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kValues * value_bytes));
}

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "trz_benchmark: %s failed\n", what);
  std::exit(EXIT_FAILURE);
}

void require(bool done, const char* what) {
  if (!done) give_up(what);
}

/// Buffers for the codes of the field, packed or grouped.
class CodeBuffers {
 public:
  CodeBuffers()
      : buffer_(CodeWriter::kBufferCodes + kGroupCodes),
        widths_(kGroups + 64),
        planes_(kValues * 4 + 64) {}

  CodeWriter writer(Isa isa) {
    CodeWriter made(group_kernels(isa), CodeForm::packed, buffer_.data());
    made.widths = widths_.data();
    made.planes = planes_.data();
    return made;
  }
  CodeReader reader(Isa isa) {
    CodeReader made(group_kernels(isa), CodeForm::packed, buffer_.data(), kGroups);
    made.widths = widths_.data();
    made.planes = planes_.data();
    return made;
  }

 private:
  std::vector<std::int32_t> buffer_;
  std::vector<std::uint8_t> widths_;
  std::vector<std::uint8_t> planes_;
};

/// Encoder and decoder of a predictor.
template <class T>
struct PredictorCalls {
  std::function<bool(CodeWriter&, PatchMap&, Workspace&)> encode;
  std::function<bool(CodeReader&, T*, Workspace&)> decode;
};

template <class T>
PredictorCalls<T> lorenzo(int order) {
  return {[order](CodeWriter& codes, PatchMap& patches, Workspace& workspace) {
            return lorenzo_encode<T>(field<T>().values.data(), kExtents, order, field<T>().lattice,
                                     nullptr, codes, patches, workspace);
          },
          [order](CodeReader& codes, T* values, Workspace& workspace) {
            return lorenzo_decode<T>(codes, kExtents, order, field<T>().lattice, values, workspace);
          }};
}

template <class T>
PredictorCalls<T> interpolation(int last_axis) {
  InterpolationPlan plan;
  plan.last_axis = last_axis;
  return {[plan](CodeWriter& codes, PatchMap& patches, Workspace& workspace) {
            return interpolation_encode<T>(field<T>().values.data(), kExtents, plan,
                                           field<T>().lattice, nullptr, codes, patches, workspace);
          },
          [plan](CodeReader& codes, T* values, Workspace& workspace) {
            return interpolation_decode<T>(codes, kExtents, plan, field<T>().lattice, values,
                                           workspace);
          }};
}

/// Measures prediction and bit packing together.
template <class T>
void predictor_encode(benchmark::State& state, const PredictorCalls<T>& calls, Isa isa) {
  Workspace workspace(isa);
  CodeBuffers buffers;
  std::vector<std::uint64_t> words(PatchMap::words_of(kValues));
  field<T>();  // Create the field before the timed part.
  for (auto _ : state) {
    CodeWriter codes = buffers.writer(isa);
    PatchMap patches(words.data(), kValues);
    require(calls.encode(codes, patches, workspace), "a predictor");
    codes.finish();
  }
  count(state, sizeof(T));
}

template <class T>
void predictor_decode(benchmark::State& state, const PredictorCalls<T>& calls, Isa isa) {
  Workspace workspace(isa);
  CodeBuffers buffers;
  std::vector<std::uint64_t> words(PatchMap::words_of(kValues));
  PatchMap patches(words.data(), kValues);
  CodeWriter writer = buffers.writer(isa);
  require(calls.encode(writer, patches, workspace), "a predictor");
  writer.finish();
  std::vector<T> values(kValues);
  for (auto _ : state) {
    CodeReader codes = buffers.reader(isa);
    require(calls.decode(codes, values.data(), workspace), "a predictor");
    benchmark::DoNotOptimize(values.data());
  }
  count(state, sizeof(T));
}

/// Codes of third-order Lorenzo prediction: input of the stages after a predictor.
const std::vector<std::int32_t>& field_codes() {
  static const std::vector<std::int32_t> codes = [] {
    Workspace workspace;
    CodeBuffers buffers;
    std::vector<std::uint64_t> words(PatchMap::words_of(kValues));
    PatchMap patches(words.data(), kValues);
    CodeWriter writer = buffers.writer(workspace.isa());
    require(lorenzo<float>(3).encode(writer, patches, workspace), "prediction");
    writer.finish();
    CodeReader reader = buffers.reader(workspace.isa());
    std::vector<std::int32_t> taken;
    while (taken.size() < kValues) {
      const std::int32_t* row = reader.take(kRowCodes);
      taken.insert(taken.end(), row, row + kRowCodes);
    }
    return taken;
  }();
  return codes;
}

/// Streams of all classes, each with capacity for every group.
struct ClassStreams {
  ClassStreams()
      : classes(kGroups + 64),
        planes(kGroups * 8 * kPlanesMax + 64),
        exceptions(kGroups * kExceptionsMax + 64) {
    for (std::size_t c = 1; c < kClasses; ++c) bytes[c].resize(kGroups * class_bytes(c) + 64);
  }
  GroupCursor begin() {
    GroupCursor cursor;
    cursor.classes = classes.data();
    for (std::size_t c = 1; c < kClasses; ++c) cursor.bytes[c] = bytes[c].data();
    cursor.planes = planes.data();
    cursor.exceptions = exceptions.data();
    cursor.exceptions_end = exceptions.data() + exceptions.size();
    return cursor;
  }
  std::vector<std::uint8_t> classes;
  std::vector<std::uint8_t> bytes[kClasses];
  std::vector<std::uint8_t> planes;
  std::vector<std::int32_t> exceptions;
};

void split(benchmark::State& state, Isa isa) {
  ClassStreams streams;
  const std::vector<std::int32_t>& codes = field_codes();
  for (auto _ : state) {
    GroupCursor cursor = streams.begin();
    group_kernels(isa).split(codes.data(), kGroups, cursor);
  }
  count(state, sizeof(float));
}

void join(benchmark::State& state, Isa isa) {
  ClassStreams streams;
  GroupCursor cursor = streams.begin();
  group_kernels(isa).split(field_codes().data(), kGroups, cursor);
  std::vector<std::int32_t> codes(kValues + kGroupCodes);
  for (auto _ : state) {
    cursor = streams.begin();
    require(group_kernels(isa).join(cursor, kGroups, codes.data()), "join");
    benchmark::DoNotOptimize(codes.data());
  }
  count(state, sizeof(float));
}

/// Concatenated bytes of all classes, the input of Huffman coding.
const std::vector<std::uint8_t>& class_stream() {
  static const std::vector<std::uint8_t> made = [] {
    ClassStreams streams;
    GroupCursor cursor = streams.begin();
    group_kernels(best_isa()).split(field_codes().data(), kGroups, cursor);
    std::vector<std::uint8_t> all;
    for (std::size_t c = 1; c < kClasses; ++c) {
      all.insert(all.end(), streams.bytes[c].data(), cursor.bytes[c]);
    }
    return all;
  }();
  return made;
}

CodeLengths class_lengths() {
  Histogram histogram{};
  count_bytes(class_stream(), histogram);
  return code_lengths(histogram, code_limit(class_stream().size()));
}

void huffman_tables(benchmark::State& state, Isa isa) {
  const std::vector<std::uint8_t>& symbols = class_stream();
  for (auto _ : state) {
    Histogram histogram{};
    count_bytes(symbols, histogram, isa);
    benchmark::DoNotOptimize(code_lengths(histogram, code_limit(symbols.size())));
  }
  count(state, sizeof(float));
}

void huffman_encoding(benchmark::State& state, Isa isa) {
  const CodeLengths lengths = class_lengths();
  std::vector<std::uint8_t> out(2 * class_stream().size() + 4096);
  for (auto _ : state) {
    require(huffman_encode(class_stream(), lengths, out, isa) > 0, "huffman_encode");
  }
  count(state, sizeof(float));
}

void huffman_decoding(benchmark::State& state, Isa isa) {
  const CodeLengths lengths = class_lengths();
  std::vector<std::uint8_t> encoded(2 * class_stream().size() + 4096);
  encoded.resize(huffman_encode(class_stream(), lengths, encoded, isa));
  std::vector<std::uint8_t> symbols(class_stream().size());
  DecodeTable table;
  for (auto _ : state) {
    build_decode_table(lengths, table);
    require(huffman_decode(encoded, table, symbols, isa), "huffman_decode");
  }
  count(state, sizeof(float));
}

/// Measures complete chunks through the codec's public interface; also reports the ratio.
template <class T>
void chunk(benchmark::State& state, Preset preset, Isa isa, bool decoding) {
  ChunkType type;
  type.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  type.shape = Shape(3, kEdge);
  type.bound = static_cast<double>(field<T>().lattice.bound);
  Settings settings;
  settings.preset = preset;
  const auto values = std::as_bytes(std::span(field<T>().values));
  std::vector<std::byte> encoded(encoded_bytes_max(values.size()));
  std::vector<std::byte> decoded(values.size());
  Workspace workspace(isa);
  std::size_t n_encoded = 0;
  const auto run_encode = [&] {
    const Result<std::size_t> n = encode(type, settings, values, encoded, workspace);
    require(n.ok(), "encode");
    n_encoded = *n;
  };
  run_encode();
  for (auto _ : state) {
    if (!decoding) {
      run_encode();
      continue;
    }
    require(decode(std::span(encoded).first(n_encoded), decoded, nullptr, workspace).ok(),
            "decode");
  }
  count(state, sizeof(T));
  state.counters["ratio"] = static_cast<double>(values.size()) / static_cast<double>(n_encoded);
}

template <class T>
void register_type(Isa isa, const std::string& name) {
  const auto add = [&](const std::string& stage, auto&& run) {
    benchmark::RegisterBenchmark((stage + "/" + name).c_str(), run);
  };
  const auto add_predictor = [&](const std::string& stage, const PredictorCalls<T>& calls) {
    add("encode/" + stage, [=](benchmark::State& s) { predictor_encode<T>(s, calls, isa); });
    add("decode/" + stage, [=](benchmark::State& s) { predictor_decode<T>(s, calls, isa); });
  };
  add_predictor("no_prediction", lorenzo<T>(0));
  add_predictor("lorenzo_3d", lorenzo<T>(3));
  add_predictor("interpolation_last_x", interpolation<T>(0));
  add_predictor("interpolation_last_z", interpolation<T>(2));
  add_predictor("interpolation_joint", interpolation<T>(kJoint));
  const std::pair<const char*, Preset> presets[] = {
      {"fast", Preset::fast}, {"default", Preset::standard}, {"ratio", Preset::ratio}};
  for (const auto& [text, preset] : presets) {
    for (const bool decoding : {false, true}) {
      add(std::string(decoding ? "decode" : "encode") + "/chunk_" + text,
          [preset = preset, isa, decoding](benchmark::State& s) {
            chunk<T>(s, preset, isa, decoding);
          });
    }
  }
}

void register_all() {
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    const std::string name = isa_name(isa);
    const auto add = [&](const std::string& stage, void (*run)(benchmark::State&, Isa)) {
      benchmark::RegisterBenchmark((stage + "/" + name).c_str(), run, isa);
    };
    add("encode/split", split);
    add("decode/join", join);
    add("encode/huffman_tables", huffman_tables);
    add("encode/huffman", huffman_encoding);
    add("decode/huffman", huffman_decoding);
    register_type<float>(isa, "f32/" + name);
    register_type<double>(isa, "f64/" + name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return EXIT_FAILURE;
  benchmark::RunSpecifiedBenchmarks();
  return EXIT_SUCCESS;
}
