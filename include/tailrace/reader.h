/* Tailrace: parallel reading of any HDF5 or netCDF-4 file, compressed by Tailrace or by others.
 *
 * A reader lists the datasets of a file and reads strided slabs of them. It fetches neighbouring
 * chunks in large reads and decodes them in threads. Contiguous parts are decoded directly into the
 * caller's memory. Decoded chunks are cached, and the reader decodes ahead of sequential access.
 *
 *   tailrace_reader* reader;
 *   size_t temperature;
 *   const uint64_t start[2] = {0, 100};
 *   const uint64_t count[2] = {512, 10};
 *   tailrace_reader_open("out.h5", TAILRACE_SERIAL, NULL, &reader);
 *   tailrace_reader_find(reader, "/temperature", &temperature);
 *   if (tailrace_reader_read(reader, temperature, start, count, NULL, values, sizeof values) !=
 *       TAILRACE_OK) {
 *     fprintf(stderr, "%s\n", tailrace_thread_error());
 *   }
 *   tailrace_reader_close(reader);
 *
 * Collectivity, threads and errors follow tailrace.h; tailrace_thread_error() returns the text of a
 * failure. open, open_index, read_all, refresh and close are collective: they return the same error
 * on every rank. Every function rejects a NULL reader with TAILRACE_ERROR_INVALID_ARGUMENT.
 *
 * Options, separated by commas; NULL for none. Most users leave them alone:
 *   threads=N        decoding threads of this rank; 0 (default): the node's cores divided by its
 *                    ranks, but at least 2. One thread waits for the storage while another decodes.
 *   memory=SIZE      limit for cached chunks and those being decoded, without the caller's memory
 *                    (default 256MiB); one chunk is always allowed.
 *   read=SIZE        largest read of neighbouring chunks (default 16MiB).
 *   gap=SIZE         largest gap between two chunks that one read spans (default 64KiB).
 *   abs=E            values of floating-point fields may differ from the originals by E, or by
 *                    their field's own bound if that is coarser (default 0). For chunks with bit
 *                    planes (codec trz,refine=K) only the first bytes are read.
 *   prefetch=on|off  decode ahead of slabs that advance along a dimension (default on).
 *   follow-external=on|off  follow external storage and virtual datasets to any other file that
 *                           this process may read (default off: unsupported).
 *   plugin-path=FOLDERS  searched for filter plug-ins before HDF5_PLUGIN_PATH (default none).
 */

#ifndef TAILRACE_READER_H
#define TAILRACE_READER_H

#include <stddef.h>
#include <stdint.h>

#include <tailrace/tailrace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tailrace_reader tailrace_reader;

/* Description of one dataset in the file; the same on every rank. */
typedef struct tailrace_dataset_info {
  const char* path;            /* Absolute path. */
  const char* type_text;       /* "f32", "u16 big-endian", "string of 16 bytes", ... */
  int is_number;               /* 0: dtype is meaningless, elements are the file's bytes. */
  tailrace_dtype dtype;        /* Type of numbers as read, in native byte order. */
  size_t element_bytes;        /* Bytes of one element as read. */
  size_t n_dims;               /* 0: a scalar. */
  const uint64_t* shape;       /* n_dims extents. */
  const uint64_t* max_shape;   /* UINT64_MAX: unlimited. */
  const uint64_t* chunk_shape; /* NULL: not chunked. */
  int has_fill_value;          /* 0: none was set, elements never written are zeros. */
  double fill_value;
} tailrace_dataset_info;

/* Description of one attribute; the same on every rank. */
typedef struct tailrace_attribute_info {
  const char* name;
  const char* type_text;    /* "f32", "i64", "text", "other" */
  int is_number;            /* 1: `values` has n_values numbers of `dtype`; else both are unset. */
  tailrace_dtype dtype;     /* Type of numbers as stored. */
  size_t n_values;          /* Numbers or texts; 0 for type "other". */
  const void* values;       /* Numbers in native byte order; NULL unless is_number. */
  const char* const* texts; /* Texts that end in a zero; NULL unless type_text is "text". */
} tailrace_attribute_info;

/* One slab of a collective read: count[d] elements from start[d], stride[d] apart. */
typedef struct tailrace_read_request {
  size_t dataset;
  const uint64_t* start;
  const uint64_t* count;
  const uint64_t* stride; /* NULL: all 1. */
  void* values;           /* Receives the elements, dense and row-major. */
  size_t n_bytes;         /* Size of `values`: exactly the slab's bytes. */
} tailrace_read_request;

/* Counters of a reader on this rank, since it was opened. */
typedef struct tailrace_read_report {
  uint64_t n_slabs;
  uint64_t value_bytes;  /* Returned to the caller. */
  uint64_t n_chunks;     /* Decoded. */
  uint64_t n_chunk_hits; /* Found in the cache. */
  uint64_t decoded_bytes;
  uint64_t fetched_bytes; /* Encoded, including gaps. */
  uint64_t n_reads;
  uint64_t received_bytes; /* Decoded values from other ranks (read_all). */
  double index_s;
  double fetch_s;  /* Thread-seconds. */
  double decode_s; /* Thread-seconds. */
} tailrace_read_report;

/* Open a file for reading. Collective. Cost: rank 0 lists the objects of the file.
 *   path      path of any HDF5 or netCDF-4 file.
 *   mpi_comm  TAILRACE_MPI(comm) or TAILRACE_SERIAL, each of which expands to two arguments.
 *   options   see above
 *   reader    receives the reader; NULL after a failure
 * Errors: NOT_FOUND, IO, CORRUPT (not HDF5, damaged, truncated), INVALID_ARGUMENT (options). */
TAILRACE_API tailrace_error tailrace_reader_open(const char* path, const void* mpi_comm,
                                                 size_t mpi_comm_bytes, const char* options,
                                                 tailrace_reader** reader);

/* Close the reader, also after a failure; later calls with it fail with INVALID_ARGUMENT.
 * Collective. */
TAILRACE_API tailrace_error tailrace_reader_close(tailrace_reader* reader);

/* Close the reader without the other ranks: for a rank that gives up. Not collective. Accepts
 * NULL. */
TAILRACE_API void tailrace_reader_abandon(tailrace_reader* reader);

/* Return the number of datasets in the file; 0 for NULL or a closed reader. Not collective. */
TAILRACE_API size_t tailrace_reader_n_datasets(const tailrace_reader* reader);

/* Describe a dataset. Not collective. Pointers in `info` stay valid until refresh or close. */
TAILRACE_API tailrace_error tailrace_reader_dataset(const tailrace_reader* reader, size_t dataset,
                                                    tailrace_dataset_info* info);

/* Find the number of the dataset with this path; also follows additional hard links and soft links.
 * Not collective. Errors: NOT_FOUND. */
TAILRACE_API tailrace_error tailrace_reader_find(const tailrace_reader* reader, const char* path,
                                                 size_t* dataset);

/* Read the chunk addresses of these datasets once and share them within each node. Otherwise each
 * rank looks up the chunks that it needs. Optional. Collective, alike on all ranks. */
TAILRACE_API tailrace_error tailrace_reader_open_index(tailrace_reader* reader, size_t n_datasets,
                                                       const size_t* datasets);

/* Read one slab. Not collective.
 *   start, count, stride  one entry per dimension (none for a scalar); stride NULL: all 1
 *   values, n_bytes       receives the slab's elements, dense and row-major; exactly their size
 * Errors: INVALID_ARGUMENT, BAD_COVERAGE (the slab), CORRUPT, CODEC_FAILED (the text names dataset,
 * chunk and address), PLUGIN_MISSING, IO, UNSUPPORTED (elements that point elsewhere). */
TAILRACE_API tailrace_error tailrace_reader_read(tailrace_reader* reader, size_t dataset,
                                                 const uint64_t* start, const uint64_t* count,
                                                 const uint64_t* stride, void* values,
                                                 size_t n_bytes);

/* Read any number of slabs, including none, on every rank. If several ranks need a chunk, one of
 * them fetches and decodes it. Collective. Errors: those of read, on all ranks. A rank without a
 * reader (NULL, or closed) cannot reach the others: only its call fails, and the others block. */
TAILRACE_API tailrace_error tailrace_reader_read_all(tailrace_reader* reader, size_t n_requests,
                                                     const tailrace_read_request* requests);

/* Forms of read and read_all for memory that is not dense: the interior of a block with a halo,
 * another order, or a member of an array of structs.
 *   byte_strides  bytes from one element to the next along each dimension, of any sign; `values` is
 *                 the address of the slab's first element. NULL: dense. read_all takes one entry
 *                 per request, or NULL for none.
 *   n_bytes       the bytes of the slab's elements, as without strides
 * Memory: a dense copy of each slab. Collectivity and errors: those of read and read_all. */
TAILRACE_API tailrace_error tailrace_reader_read_strided(
    tailrace_reader* reader, size_t dataset, const uint64_t* start, const uint64_t* count,
    const uint64_t* stride, void* values, size_t n_bytes, const int64_t* byte_strides);
TAILRACE_API tailrace_error tailrace_reader_read_all_strided(tailrace_reader* reader,
                                                             size_t n_requests,
                                                             const tailrace_read_request* requests,
                                                             const int64_t* const* byte_strides);

/* Take part in the read_all of the other ranks when this rank cannot make its request. Every rank's
 * call returns `error` with this text and the rank's number. Collective, in place of read_all.
 * Errors: `error`; INVALID_ARGUMENT if that is not an error code, or if the text is missing. */
TAILRACE_API tailrace_error tailrace_reader_fail_read_all(tailrace_reader* reader,
                                                          tailrace_error error, const char* text);

/* ===== Attributes =====
 *
 * object_path is "/" for the file, or the path of a group or dataset. None of these calls is
 * collective; the answer is the same on every rank. Pointers stay valid until refresh or close.
 * Errors: NOT_FOUND (object, attribute), UNSUPPORTED (an object that netCDF-4 does not have, such
 * as a named type), INVALID_ARGUMENT. */

/* Return the number of attributes of an object. */
TAILRACE_API tailrace_error tailrace_reader_n_attributes(const tailrace_reader* reader,
                                                         const char* object_path,
                                                         size_t* n_attributes);

/* Describe an attribute by its number, from 0, in the file's order. */
TAILRACE_API tailrace_error tailrace_reader_attribute(const tailrace_reader* reader,
                                                      const char* object_path, size_t number,
                                                      tailrace_attribute_info* info);

/* Describe an attribute by its name. */
TAILRACE_API tailrace_error tailrace_reader_find_attribute(const tailrace_reader* reader,
                                                           const char* object_path,
                                                           const char* name,
                                                           tailrace_attribute_info* info);

/* Copy the numbers of an attribute, which may have any number type. n_values must be its number of
 * values. INVALID_ARGUMENT also for a value that the result's type cannot hold: 0.5 or -1 as u64.
 * The inverse of tailrace_attribute_set_f64 and its siblings. */
TAILRACE_API tailrace_error tailrace_attribute_get_f64(const tailrace_reader* reader,
                                                       const char* object_path, const char* name,
                                                       size_t n_values, double* values);
TAILRACE_API tailrace_error tailrace_attribute_get_i64(const tailrace_reader* reader,
                                                       const char* object_path, const char* name,
                                                       size_t n_values, int64_t* values);
TAILRACE_API tailrace_error tailrace_attribute_get_u64(const tailrace_reader* reader,
                                                       const char* object_path, const char* name,
                                                       size_t n_values, uint64_t* values);

/* ===== Steps =====
 *
 * A step is an entry of fields that were written with over-time=on, or of other datasets with an
 * unlimited first dimension. Only committed steps are in a file, whatever ended its writer. Steps
 * are counted from 0, in the order in which they were written, also across restarts. */

/* Count the steps of the dataset `path`. NULL: the steps that all such datasets have; 0 if the file
 * has no such dataset. Not collective. Errors: NOT_FOUND, INVALID_ARGUMENT (a dataset without an
 * unlimited first dimension). */
TAILRACE_API tailrace_error tailrace_reader_n_steps(const tailrace_reader* reader, const char* path,
                                                    uint64_t* n_steps);

/* Return the last step that all such datasets have, from which a program can continue; -1: none, or
 * the reader is NULL or closed. Not collective; never fails. */
TAILRACE_API int64_t tailrace_reader_last_step(const tailrace_reader* reader);

/* Read this rank's part of one step. The ranks may be any number, with any parts, which may
 * overlap.
 *   start, count     one entry per dimension of the field, without time. NULL start: 0; NULL count:
 *                    up to the end. A rank that needs nothing passes counts of 0.
 *   values, n_bytes  receives the elements, dense and row-major; exactly their size
 * Collective: every rank calls it for the same or other fields and steps. If one rank's arguments
 * are invalid, all ranks fail. Errors: those of read_all and n_steps. */
TAILRACE_API tailrace_error tailrace_reader_read_step(tailrace_reader* reader, const char* path,
                                                      uint64_t step, const uint64_t* start,
                                                      const uint64_t* count, void* values,
                                                      size_t n_bytes);

/* Form of read_step for memory that is not dense; see tailrace_reader_read_strided. Collective. */
TAILRACE_API tailrace_error tailrace_reader_read_step_strided(
    tailrace_reader* reader, const char* path, uint64_t step, const uint64_t* start,
    const uint64_t* count, void* values, size_t n_bytes, const int64_t* byte_strides);

/* List the file again after it has changed (a writer has committed). Collective. */
TAILRACE_API tailrace_error tailrace_reader_refresh(tailrace_reader* reader);

/* Copy the counters of this rank. Not collective. */
TAILRACE_API tailrace_error tailrace_reader_report(const tailrace_reader* reader,
                                                   tailrace_read_report* report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TAILRACE_READER_H */
