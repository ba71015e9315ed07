/* trz_xor.h: the codec xor in C. libtrz exports these functions, and so does the plug-in
 * libh5xor.so.
 *
 * For programs and languages that hold chunks in memory; files go through HDF5. All functions are
 * thread-safe. A negative return value is an error: minus a trz_error of trz.h, with a sentence in
 * `message` (which may be NULL; the sentence always ends with 0). Encoded bytes are those that the
 * HDF5 filter stores (docs/xor.md of Tailrace).
 */
#ifndef TRZ_XOR_H
#define TRZ_XOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C names, not those of our C++. NOLINTBEGIN(readability-identifier-naming) */

/* Where a function leaves a sentence when it fails. */
typedef struct xor_message {
  char* text;
  size_t capacity; /* bytes, the final 0 included */
} xor_message;

/* What a chunk is. The decoder needs none of it. */
typedef struct xor_array {
  uint32_t element_bytes;  /* of one element, > 0; 1, 2, 4 and 8 are taken as words */
  int32_t dimension;       /* xor along the 1, 2 or 3 fastest axes; 0: chosen for each chunk */
  int32_t rank;            /* 1..32 */
  const uint64_t* extents; /* slowest first, all > 0 */
} xor_array;

/* The number of the HDF5 filter. */
uint32_t xor_filter_id(void);

/* The room that xor_encode needs for n_bytes of values. */
size_t xor_encoded_bytes_max(size_t n_bytes);

/* Encode values (row-major, n_bytes as the array has it) into encoded, which has room for
 * xor_encoded_bytes_max(n_bytes). Returns bytes written. */
int64_t xor_encode(const xor_array* array, const void* values, size_t n_bytes, void* encoded,
                   size_t capacity, xor_message* message);

/* Decode into values, which has exactly the n_bytes that were encoded. Returns 0. */
int64_t xor_decode(const void* encoded, size_t n_encoded, void* values, size_t n_bytes,
                   xor_message* message);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* TRZ_XOR_H */
