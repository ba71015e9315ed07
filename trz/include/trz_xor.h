/* trz_xor.h: the codec xor in C. libtrz exports these functions, and so does the plug-in
 * libh5xor.so.
 *
 * For programs and languages that hold chunks in memory. To read and write files, use HDF5 with the
 * plug-in. All functions are thread-safe. A negative return value is an error: minus a trz_error of
 * trz.h. The function then writes an error text into `message`, which may be NULL; the text is
 * always NUL-terminated. The encoded bytes are the same as those of the HDF5 filter
 * (docs/trz-format.md of Tailrace).
 */
#ifndef TRZ_XOR_H
#define TRZ_XOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names follow C conventions. NOLINTBEGIN(readability-identifier-naming) */

/* Buffer for the text that describes an error. */
typedef struct xor_message {
  char* text;
  size_t capacity; /* bytes, including the terminating NUL */
} xor_message;

/* Layout of a chunk's values. Only the encoder needs it. */
typedef struct xor_array {
  uint32_t element_bytes;  /* size of an element, > 0; xor treats 1, 2, 4 and 8 as words */
  int32_t dimension;       /* xor along the 1, 2 or 3 fastest axes; 0: the encoder chooses */
  int32_t rank;            /* 1..32 */
  const uint64_t* extents; /* slowest first, all > 0 */
} xor_array;

/* Number of the HDF5 filter. */
uint32_t xor_filter_id(void);

/* Capacity in bytes that xor_encode() needs for n_bytes of values. */
size_t xor_encoded_bytes_max(size_t n_bytes);

/* Encode values. `values` is row-major; n_bytes must match the array. `capacity` of `encoded` must
 * be at least xor_encoded_bytes_max(n_bytes). Returns the number of bytes written. */
int64_t xor_encode(const xor_array* array, const void* values, size_t n_bytes, void* encoded,
                   size_t capacity, xor_message* message);

/* Decode a chunk. n_bytes must be exactly the number of bytes that were encoded. Returns 0. */
int64_t xor_decode(const void* encoded, size_t n_encoded, void* values, size_t n_bytes,
                   xor_message* message);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* TRZ_XOR_H */
