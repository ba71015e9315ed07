/* trz_c.h: the codec trz through a C interface, exported by libh5trz.so beside the HDF5 filter.
 *
 * For programs and languages that hold arrays in memory; files go through HDF5. Used by the Python
 * package. Settings travel as the words that HDF5 calls cd_values; trz_cd_values() makes them out
 * of text. All functions are thread-safe and keep their working memory per thread, freed when the
 * thread ends. A negative return value is an error: minus one of the codes of tailrace.h
 * (tailrace_error), and a sentence in `message` (which may be NULL; always terminated otherwise).
 */
#ifndef TRZ_C_H
#define TRZ_C_H

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

/* A shared Huffman book (docs/codecs.md), as trz_trainer_book made it; NULL where there is none. */
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

#endif /* TRZ_C_H */
