/* trz.h: the codec trz in C. libtrz exports these functions, and so does the plug-in libh5trz.so.
 *
 * For programs and languages that hold arrays in memory. To read and write files, use HDF5 with the
 * plug-in. Settings are passed as the 32-bit words that HDF5 calls cd_values; trz_cd_values() makes
 * them from text. All functions are thread-safe. Each thread caches its working memory until it
 * ends. A negative return value is an error: minus a trz_error. The function then writes an error
 * text into `message`, which may be NULL; the text is always NUL-terminated.
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

/* Names follow C conventions. NOLINTBEGIN(readability-identifier-naming) */

/* Element types. The numbers are those stored in encoded chunks. */
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

/* Error codes. A function returns them negated. */
enum trz_error {
  TRZ_INVALID_ARGUMENT = 1, /* Invalid setting, shape or size. */
  TRZ_UNSUPPORTED = 2,      /* Valid, but not supported, such as pw_rel of integers. */
  TRZ_NOT_FOUND = 3,        /* The chunk needs a shared book other than the given one. */
  TRZ_CORRUPT = 10,         /* Not a trz chunk, damaged, or in need of a newer trz. */
  TRZ_OUT_OF_MEMORY = 13,
  TRZ_INTERNAL = 14 /* A bug in the library. */
};

/* Buffer for the text that describes an error. */
typedef struct trz_message {
  char* text;
  size_t capacity; /* bytes, including the terminating NUL */
} trz_message;

/* Element type, shape and fill value of an array to encode. */
typedef struct trz_array {
  int32_t dtype;            /* enum trz_dtype */
  int32_t rank;             /* 1..32 */
  const uint64_t* extents;  /* slowest first, all > 0 */
  const double* fill_value; /* stored exactly, at little cost; NULL: none */
} trz_array;

/* Number of the HDF5 filter. */
uint32_t trz_filter_id(void);

/* Version of this library, "0.1.0". The string is valid for the lifetime of the process. */
const char* trz_version(void);

/* Shared Huffman book, made by trz_trainer_book(). Functions accept NULL for "no book". */
typedef struct trz_book {
  const void* bytes;
  size_t n_bytes;
} trz_book;

/* Convert settings as text ("abs=1e-3", "pw_rel=1e-4,preset=ratio", "" for exact) to cd_values. The
 * words include the book, so that the encoder and the HDF5 filter find it there. Returns the number
 * of words; writes at most `capacity` of them. */
int64_t trz_cd_values(const char* settings, const trz_book* book, uint32_t* words, size_t capacity,
                      trz_message* message);

/* Extract the shared book, which decoding needs, from the words. Returns its number of bytes (0: no
 * book); writes at most `capacity` of them. */
int64_t trz_words_book(const uint32_t* words, size_t n_words, void* book, size_t capacity,
                       trz_message* message);

/* Capacity in bytes that trz_encode() needs for n_bytes of values. */
size_t trz_encoded_bytes_max(size_t n_bytes);

/* Encode values with the settings in the words. `values` is row-major in native byte order; n_bytes
 * must match the array. `capacity` of `encoded` must be at least trz_encoded_bytes_max(n_bytes).
 * Returns the number of bytes written. */
int64_t trz_encode(const uint32_t* words, size_t n_words, const trz_array* array,
                   const void* values, size_t n_bytes, void* encoded, size_t capacity,
                   trz_message* message);

/* Decode a chunk with the book that it was encoded with. n_bytes must be exactly the size of the
 * encoded values. Returns 0. */
int64_t trz_decode(const void* encoded, size_t n_encoded, const trz_book* book, void* values,
                   size_t n_bytes, trz_message* message);

/* Report a chunk's element type and number of values without decoding it. `method` receives a text
 * about how the values are coded (NULL: not wanted). Returns 0. */
int64_t trz_describe(const void* encoded, size_t n_encoded, int32_t* dtype, uint64_t* n_values,
                     trz_message* method, trz_message* message);

/* Counts from which a book is made, over any number of arrays. Not thread-safe. trz_trainer_new()
 * returns NULL if out of memory. */
typedef struct trz_trainer trz_trainer;
trz_trainer* trz_trainer_new(void);
void trz_trainer_free(trz_trainer* trainer);

/* Count the codes that this array would have with the settings in the words, which must be an
 * absolute bound; the type must be f32 or f64. Costs as much as encoding. Returns 0. */
int64_t trz_trainer_add(trz_trainer* trainer, const uint32_t* words, size_t n_words,
                        const trz_array* array, const void* values, size_t n_bytes,
                        trz_message* message);

/* Make the book from the counts so far. Returns its number of bytes; writes at most `capacity`. */
int64_t trz_trainer_book(const trz_trainer* trainer, void* book, size_t capacity,
                         trz_message* message);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* TRZ_H */
