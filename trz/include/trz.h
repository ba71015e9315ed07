/* trz.h: the codec trz in C. libtrz exports these functions, and so does the plug-in libh5trz.so.
 *
 * For programs and languages that hold arrays in memory; files go through HDF5. Settings travel as
 * the words that HDF5 calls cd_values; trz_cd_values() makes them from text. All functions are
 * thread-safe. Each thread keeps its working memory until it ends. A negative return value is an
 * error: minus a trz_error, with a sentence in `message` (which may be NULL; the sentence always
 * ends with 0).
 *
 *   uint32_t words[16];
 *   int64_t n_words = trz_cd_values("abs=1e-3", NULL, words, 16, NULL);
 *   const uint64_t extents[2] = {200, 300};
 *   const trz_array array = {TRZ_F32, 2, extents, NULL};
 *   int64_t n = trz_encode(words, n_words, &array, values, sizeof values, chunk, capacity, NULL);
 *   trz_decode(chunk, n, NULL, values, sizeof values, NULL);
 */
#ifndef TRZ_H
#define TRZ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C names, not those of our C++. NOLINTBEGIN(readability-identifier-naming) */

/* Element types; the numbers are those in the encoded chunks. */
enum trz_dtype {
  TRZ_F32 = 0,
  TRZ_F64 = 1,
  TRZ_I8 = 2,
  TRZ_I16 = 3,
  TRZ_I32 = 4,
  TRZ_I64 = 5,
  TRZ_U8 = 6,
  TRZ_U16 = 7,
  TRZ_U32 = 8,
  TRZ_U64 = 9
};

/* Reasons of failure. A function returns them negated. */
enum trz_error {
  TRZ_INVALID_ARGUMENT = 1, /* a setting, shape or size that cannot be meant */
  TRZ_UNSUPPORTED = 2,      /* meant, but the codec cannot do it: pw_rel of integers, say */
  TRZ_NOT_FOUND = 3,        /* the chunk needs a shared book other than the one given */
  TRZ_CORRUPT = 10,         /* not a chunk, a damaged one, or one of a later format version */
  TRZ_OUT_OF_MEMORY = 13,
  TRZ_INTERNAL = 14 /* a fault of the library */
};

/* Where a function leaves a sentence when it fails. */
typedef struct trz_message {
  char* text;
  size_t capacity; /* bytes, the final 0 included */
} trz_message;

/* An array to encode, or what comes out of decoding. */
typedef struct trz_array {
  int32_t dtype;            /* enum trz_dtype */
  int32_t rank;             /* 1..32 */
  const uint64_t* extents;  /* slowest first, all > 0 */
  const double* fill_value; /* kept exactly and cheaply; NULL: none */
} trz_array;

/* The number of the HDF5 filter. */
uint32_t trz_filter_id(void);

/* The version of this library, "0.1.0". Lives as long as the process. */
const char* trz_version(void);

/* A shared Huffman book, as trz_trainer_book made it; NULL where there is none. */
typedef struct trz_book {
  const void* bytes;
  size_t n_bytes;
} trz_book;

/* Settings as text ("abs=1e-3", "pw_rel=1e-4,preset=ratio", "" for exact) into cd_values.
 * Returns how many there are; writes as many as fit into capacity. The book goes into the words;
 * encoder and HDF5 filter use it from there. */
int64_t trz_cd_values(const char* settings, const trz_book* book, uint32_t* words, size_t capacity,
                      trz_message* message);

/* The shared book within the words, which decoding needs. Returns its bytes, 0 for none; writes as
 * many as fit into capacity. */
int64_t trz_words_book(const uint32_t* words, size_t n_words, void* book, size_t capacity,
                       trz_message* message);

/* The room that trz_encode needs for n_bytes of values. */
size_t trz_encoded_bytes_max(size_t n_bytes);

/* Encode values (row-major, native byte order, n_bytes as the array has it) under the settings of
 * the words into encoded, which has room for trz_encoded_bytes_max(n_bytes). Returns bytes written.
 */
int64_t trz_encode(const uint32_t* words, size_t n_words, const trz_array* array,
                   const void* values, size_t n_bytes, void* encoded, size_t capacity,
                   trz_message* message);

/* Decode into values, which has exactly the n_bytes that were encoded; with the book that encoding
 * had. Returns 0. */
int64_t trz_decode(const void* encoded, size_t n_encoded, const trz_book* book, void* values,
                   size_t n_bytes, trz_message* message);

/* What an encoded chunk holds: its element type and number of values; method gets a sentence about
 * how it is coded (NULL: not wanted). Decodes nothing. Returns 0. */
int64_t trz_describe(const void* encoded, size_t n_encoded, int32_t* dtype, uint64_t* n_values,
                     trz_message* method, trz_message* message);

/* A book to be: counts over any number of arrays. One thread at a time. NULL: no memory. */
typedef struct trz_trainer trz_trainer;
trz_trainer* trz_trainer_new(void);
void trz_trainer_free(trz_trainer* trainer);

/* Count what this array would be coded as under the settings of the words (an absolute bound, f32
 * or f64). Costs as much as encoding. Returns 0. */
int64_t trz_trainer_add(trz_trainer* trainer, const uint32_t* words, size_t n_words,
                        const trz_array* array, const void* values, size_t n_bytes,
                        trz_message* message);

/* The book of what was counted so far. Returns its bytes; writes as many as fit into capacity. */
int64_t trz_trainer_book(const trz_trainer* trainer, void* book, size_t capacity,
                         trz_message* message);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* TRZ_H */
