/* Tailrace: parallel reading of any HDF5 or netCDF-4 file, compressed by Tailrace or by others.
 *
 * A reader lists the datasets of a file and reads strided slabs of them. Neighbouring chunks are
 * fetched in large reads and decoded by threads, straight into the caller's memory where they lie
 * in one piece there; what is likely to be read again is kept, what is likely to come is decoded
 * ahead.
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
 * Collectivity, threads and errors are as tailrace.h says; the text of a failure is
 * tailrace_thread_error(). open, open_index, read_all, refresh and close are collective: they
 * return the same error on every rank. A NULL reader is refused with
 * TAILRACE_ERROR_INVALID_ARGUMENT everywhere.
 *
 * Options, separated by commas, NULL for none:
 *   threads=N        decoding threads of this rank; 0 (default): the node's cores over its ranks,
 *                    but at least 2: one waits for the storage while the other decodes
 *   memory=SIZE      for chunks kept and in work, beside the caller's memory (default 256MiB); one
 *                    chunk is worked on in any case
 *   read=SIZE        largest read of neighbouring chunks (default 16MiB)
 *   gap=SIZE         bytes between chunks that are read over (default 64KiB)
 *   abs=E            values of floating-point fields may differ from the originals by E, or by
 *                    their field's own bound if that is coarser (default 0): of chunks with bit
 *                    planes (codec trz,refine=K) only the first bytes are read
 *   prefetch=on|off  decode ahead of slabs that run on along a dimension (default on)
 *   follow-external=on|off  read values that the file says lie in other files (external storage,
 *                    virtual datasets): any that this process may read (default off: unsupported)
 *   plugin-path=FOLDERS  searched for filter plug-ins before HDF5_PLUGIN_PATH
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

/* One dataset as it stands in the file; the same on every rank. */
typedef struct tailrace_dataset_info {
  const char* path;            /* absolute */
  const char* type_text;       /* "f32", "u16 big-endian", "string of 16 bytes", ... */
  int is_number;               /* 0: dtype means nothing, elements are the file's bytes */
  tailrace_dtype dtype;        /* what numbers are read as, in native byte order */
  size_t element_bytes;        /* of one element as read returns it */
  size_t n_dims;               /* 0: a scalar */
  const uint64_t* shape;       /* n_dims extents */
  const uint64_t* max_shape;   /* UINT64_MAX: unlimited */
  const uint64_t* chunk_shape; /* NULL: not chunked */
  int has_fill_value;          /* 0: none was set, elements never written are zeros */
  double fill_value;
} tailrace_dataset_info;

/* One slab of a collective read: count[d] elements from start[d], stride[d] apart. */
typedef struct tailrace_read_request {
  size_t dataset;
  const uint64_t* start;
  const uint64_t* count;
  const uint64_t* stride; /* NULL: all 1 */
  void* values;           /* takes the elements, dense and row-major */
  size_t n_bytes;         /* that `values` has: exactly what the slab needs */
} tailrace_read_request;

/* What a reader has done so far on this rank. */
typedef struct tailrace_read_report {
  uint64_t n_slabs;
  uint64_t value_bytes;  /* handed to the caller */
  uint64_t n_chunks;     /* decoded */
  uint64_t n_chunk_hits; /* found decoded */
  uint64_t decoded_bytes;
  uint64_t fetched_bytes; /* encoded, gaps included */
  uint64_t n_reads;
  uint64_t received_bytes; /* from other ranks, which decoded the chunks (read_all) */
  double index_s;
  double fetch_s;  /* thread-seconds */
  double decode_s; /* thread-seconds */
} tailrace_read_report;

/* Open a file for reading. Collective. Cost: the objects of the file are listed by rank 0.
 *   path      of any HDF5 or netCDF-4 file
 *   mpi_comm  TAILRACE_MPI(comm) or TAILRACE_SERIAL, which stand for two arguments
 *   options   see above
 *   reader    receives the reader; NULL after a failure
 * Errors: NOT_FOUND, IO, CORRUPT (not HDF5, damaged, truncated), INVALID_ARGUMENT (options). */
TAILRACE_API tailrace_error tailrace_reader_open(const char* path, const void* mpi_comm,
                                                 size_t mpi_comm_bytes, const char* options,
                                                 tailrace_reader** reader);

/* Close, also after a failure; later calls with the reader are an INVALID_ARGUMENT. Collective. */
TAILRACE_API tailrace_error tailrace_reader_close(tailrace_reader* reader);

/* Close without the other ranks: for a rank that gives up alone. Not collective. NULL is fine. */
TAILRACE_API void tailrace_reader_abandon(tailrace_reader* reader);

/* How many datasets the file has; 0 for NULL, and when it is closed. Not collective. */
TAILRACE_API size_t tailrace_reader_n_datasets(const tailrace_reader* reader);

/* What a dataset is. Not collective. What `info` points to stays until refresh or close. */
TAILRACE_API tailrace_error tailrace_reader_dataset(const tailrace_reader* reader, size_t dataset,
                                                    tailrace_dataset_info* info);

/* The number of the dataset of this path; further hard links and soft links are followed.
 * Not collective. Errors: NOT_FOUND. */
TAILRACE_API tailrace_error tailrace_reader_find(const tailrace_reader* reader, const char* path,
                                                 size_t* dataset);

/* Read where the chunks of these datasets lie, once, and share that within each node. Without it
 * each rank finds out by itself what it needs. Collective, alike on all ranks. */
TAILRACE_API tailrace_error tailrace_reader_open_index(tailrace_reader* reader, size_t n_datasets,
                                                       const size_t* datasets);

/* Read one slab. Not collective.
 *   start, count, stride  one entry per dimension (none for a scalar); stride NULL: all 1
 *   values, n_bytes       exactly the slab's elements
 * Errors: INVALID_ARGUMENT, BAD_COVERAGE (the slab), CORRUPT, CODEC_FAILED (the text names dataset,
 * chunk and address), PLUGIN_MISSING, IO, UNSUPPORTED (elements that point elsewhere). */
TAILRACE_API tailrace_error tailrace_reader_read(tailrace_reader* reader, size_t dataset,
                                                 const uint64_t* start, const uint64_t* count,
                                                 const uint64_t* stride, void* values,
                                                 size_t n_bytes);

/* Every rank reads its own slabs, any number (none, too). A chunk that several ranks want is
 * fetched and decoded by one of them. Collective. Errors: as read, on all ranks; but a rank without
 * a reader (NULL, or closed) cannot reach the others: it fails alone, and they wait for it. */
TAILRACE_API tailrace_error tailrace_reader_read_all(tailrace_reader* reader, size_t n_requests,
                                                     const tailrace_read_request* requests);

/* Take part in the read_all of the other ranks although this rank cannot make its request: every
 * rank's call returns `error` with this text and the rank's number. Collective, in place of
 * read_all. Errors: `error`; INVALID_ARGUMENT where that is none, or for no text. */
TAILRACE_API tailrace_error tailrace_reader_fail_read_all(tailrace_reader* reader,
                                                          tailrace_error error, const char* text);

/* The file has changed (a writer has committed): list it anew. Collective. */
TAILRACE_API tailrace_error tailrace_reader_refresh(tailrace_reader* reader);

/* What has been done so far. Not collective. */
TAILRACE_API tailrace_error tailrace_reader_report(const tailrace_reader* reader,
                                                   tailrace_read_report* report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TAILRACE_READER_H */
