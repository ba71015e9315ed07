// The C interface of the codec trz: checks arguments, converts Status to numbers and text.

#include "trz.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "hdf5_filter/c_result.hpp"
#include "hdf5_filter/thread_workspace.hpp"
#include "trz/book/book_counter.hpp"
#include "trz/client_data.hpp"
#include "trz/trz.hpp"

// NOLINTNEXTLINE(readability-identifier-naming)
struct trz_trainer {
  tailrace::trz::BookHistograms histograms;
};

namespace {

using namespace tailrace;

static_assert(static_cast<int>(Code::invalid_argument) == TRZ_INVALID_ARGUMENT &&
              static_cast<int>(Code::unsupported) == TRZ_UNSUPPORTED &&
              static_cast<int>(Code::not_found) == TRZ_NOT_FOUND &&
              static_cast<int>(Code::corrupt) == TRZ_CORRUPT &&
              static_cast<int>(Code::out_of_memory) == TRZ_OUT_OF_MEMORY &&
              static_cast<int>(Code::internal) == TRZ_INTERNAL);
static_assert(static_cast<int>(DType::f32) == TRZ_F32 && static_cast<int>(DType::u64) == TRZ_U64 &&
              static_cast<int>(DType::i8) == TRZ_I8 && static_cast<int>(DType::u8) == TRZ_U8);

Status bad_argument(const std::string& why) {
  return Status(Code::invalid_argument, "trz: " + why);
}

Result<trz::FilterChunk> chunk_of(const trz_array* array) {
  if (array == nullptr || array->extents == nullptr)
    return bad_argument("the array and its extents must not be NULL");
  if (array->dtype < TRZ_F32 || array->dtype > TRZ_U64) {
    return bad_argument("element type " + std::to_string(array->dtype) + ", must be 0 to 9");
  }
  if (array->rank < 1 || array->rank > static_cast<int>(kMaxRank)) {
    return bad_argument("rank " + std::to_string(array->rank) + ", must be 1 to 32");
  }
  trz::FilterChunk chunk;
  chunk.dtype = static_cast<DType>(array->dtype);
  chunk.shape.assign(array->extents, array->extents + array->rank);
  if (array->fill_value != nullptr) {
    chunk.fill_value = trz::recorded_fill(chunk.dtype, *array->fill_value);
  }
  return chunk;
}

/// Settings and chunk type for an encoder or a trainer.
struct Job {
  trz::ChunkType type;
  trz::Settings settings;
};

Result<Job> job_of(std::span<const std::uint32_t> words, const trz_array* array,
                   std::span<const std::byte> values) {
  TAILRACE_TAKE(trz::FilterChunk chunk, chunk_of(array));
  TAILRACE_TAKE(trz::ClientData data, trz::read_client_words(words));
  if (chunk.n_bytes() != values.size()) {
    return bad_argument("an array of shape " + shape_text(chunk.shape) + " has " +
                        std::to_string(chunk.n_bytes()) + " bytes, got " +
                        std::to_string(values.size()));
  }
  Job job;
  job.settings = data.request.settings;
  job.type.dtype = chunk.dtype;
  job.type.shape = chunk.shape;
  job.type.kind = data.request.kind;
  job.type.bound = data.request.bound;
  job.type.fill_value = chunk.fill_value;
  TAILRACE_TAKE(job.type.book, thread_book(data.request.book_bytes));
  return job;
}

Result<std::int64_t> encode(std::span<const std::uint32_t> words, const trz_array* array,
                            std::span<const std::byte> values, std::span<std::byte> encoded) {
  TAILRACE_TAKE(Job job, job_of(words, array, values));
  if (encoded.size() < trz::encoded_bytes_max(values.size())) {
    return bad_argument("the output has room for " + std::to_string(encoded.size()) +
                        " bytes, trz_encoded_bytes_max() returns " +
                        std::to_string(trz::encoded_bytes_max(values.size())));
  }
  TAILRACE_TAKE(auto n_encoded,
                trz::encode(job.type, job.settings, values, encoded, thread_workspace()));
  return static_cast<std::int64_t>(n_encoded);
}

std::vector<std::uint8_t> book_bytes(const trz_book* book) {
  if (book == nullptr || book->bytes == nullptr) return {};
  const auto* bytes = static_cast<const std::uint8_t*>(book->bytes);
  return {bytes, bytes + book->n_bytes};
}

std::span<const std::byte> bytes_of(const void* data, std::size_t n_bytes) {
  return {static_cast<const std::byte*>(data), n_bytes};
}
std::span<std::byte> bytes_of(void* data, std::size_t n_bytes) {
  return {static_cast<std::byte*>(data), n_bytes};
}

}  // namespace

#define TRZ_API __attribute__((visibility("default")))

extern "C" {

TRZ_API uint32_t trz_filter_id(void) { return trz::filter_id; }

TRZ_API const char* trz_version(void) { return TRZ_VERSION; }

TRZ_API int64_t trz_cd_values(const char* settings, const trz_book* book, uint32_t* words,
                              size_t capacity, trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    TAILRACE_TAKE(auto request, trz::parse_filter_request(settings == nullptr ? "" : settings));
    if (book != nullptr) request.book_bytes = book_bytes(book);
    TAILRACE_TRY(thread_book(request.book_bytes).status());
    request.drop_idle_book();
    const std::vector<std::uint32_t> made = trz::client_words(request);
    const std::size_t n = words == nullptr ? 0 : std::min(capacity, made.size());
    std::copy_n(made.begin(), n, words);
    return static_cast<std::int64_t>(made.size());
  });
}

TRZ_API int64_t trz_words_book(const uint32_t* words, size_t n_words, void* book, size_t capacity,
                               trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    TAILRACE_TAKE(trz::ClientData data, trz::read_client_words({words, n_words}));
    const std::vector<std::uint8_t>& held = data.request.book_bytes;
    const std::size_t n = book == nullptr ? 0 : std::min(capacity, held.size());
    if (n > 0) std::memcpy(book, held.data(), n);
    return static_cast<std::int64_t>(held.size());
  });
}

TRZ_API size_t trz_encoded_bytes_max(size_t n_bytes) { return trz::encoded_bytes_max(n_bytes); }

TRZ_API int64_t trz_encode(const uint32_t* words, size_t n_words, const trz_array* array,
                           const void* values, size_t n_bytes, void* encoded, size_t capacity,
                           trz_message* message) {
  return c_result("trz", message, [&] {
    return encode({words, n_words}, array, bytes_of(values, n_bytes), bytes_of(encoded, capacity));
  });
}

TRZ_API int64_t trz_decode(const void* encoded, size_t n_encoded, const trz_book* book,
                           void* values, size_t n_bytes, trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    TAILRACE_TAKE(const auto* parsed, thread_book(book_bytes(book)));
    TAILRACE_TRY(trz::decode(bytes_of(encoded, n_encoded), bytes_of(values, n_bytes), parsed,
                             thread_workspace()));
    return std::int64_t{0};
  });
}

TRZ_API int64_t trz_describe(const void* encoded, size_t n_encoded, int32_t* dtype,
                             uint64_t* n_values, trz_message* method, trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    TAILRACE_TAKE(trz::ChunkSummary summary, trz::describe(bytes_of(encoded, n_encoded)));
    if (dtype != nullptr) *dtype = static_cast<std::int32_t>(summary.dtype);
    if (n_values != nullptr) *n_values = summary.n_values;
    write_c_text(method, summary.method);
    return std::int64_t{0};
  });
}

TRZ_API trz_trainer* trz_trainer_new(void) { return new (std::nothrow) trz_trainer; }

TRZ_API void trz_trainer_free(trz_trainer* trainer) { delete trainer; }

TRZ_API int64_t trz_trainer_add(trz_trainer* trainer, const uint32_t* words, size_t n_words,
                                const trz_array* array, const void* values, size_t n_bytes,
                                trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    if (trainer == nullptr) return bad_argument("the trainer must not be NULL");
    TAILRACE_TAKE(Job job, job_of({words, n_words}, array, bytes_of(values, n_bytes)));
    TAILRACE_TRY(trz::count_for_book(job.type, job.settings, bytes_of(values, n_bytes),
                                     trainer->histograms, thread_workspace()));
    return std::int64_t{0};
  });
}

TRZ_API int64_t trz_trainer_book(const trz_trainer* trainer, void* book, size_t capacity,
                                 trz_message* message) {
  return c_result("trz", message, [&]() -> Result<std::int64_t> {
    if (trainer == nullptr) return bad_argument("the trainer must not be NULL");
    const std::vector<std::uint8_t> made =
        trz::Book::from_histograms(trainer->histograms).serialize();
    const std::size_t n = book == nullptr ? 0 : std::min(capacity, made.size());
    if (n > 0) std::memcpy(book, made.data(), n);
    return static_cast<std::int64_t>(made.size());
  });
}

}  // extern "C"
