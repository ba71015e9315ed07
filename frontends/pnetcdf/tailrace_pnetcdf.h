/* Functions of libtailrace_pnetcdf.so in addition to the PnetCDF API; docs/pnetcdf.md.
 *
 * Compression by functions of the program, following Bicer et al. 2014, table I. One parameter is
 * added: the dataset, which a variable's number refers to. Programs that use Tailrace's codecs do
 * not need this header; they set TAILRACE_OPTIONS.
 */
#ifndef TAILRACE_PNETCDF_H
#define TAILRACE_PNETCDF_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* HDF5 filter number of such chunks in the file. It is from the range that HDF5 reserves for tests,
 * because no other program could decode them. A chunk consists of 8 bytes (uncompressed size,
 * little-endian) and the function's output. */
#define TAILRACE_USER_FILTER 488

/* Chunk that is compressed or decompressed, with the paper's names. During compression the offsets
 * are 0, because the chunk's place is not known yet. */
typedef struct {
  off_t orig_offset;
  size_t orig_size;
  off_t comp_offset;
  size_t comp_size;
} comp_metadata_info_t;

typedef struct {
  void* user_args;
  size_t user_args_size;
  comp_metadata_info_t* chunk_args; /* chunk of this call; set by the library */
} comp_args_t;

/* Compress or decompress in_size bytes at input into at most out_size bytes at output. Called by
 * several threads concurrently, never for overlapping memory. Returns the number of bytes written.
 * 0, or more than out_size, means failure: a chunk is then stored uncompressed, or reading it
 * fails. */
typedef size_t (*comp_function_t)(void* input, size_t in_size, void* output, size_t out_size,
                                  comp_args_t* args);

/* Compress this variable by comp_f and decompress it by decomp_f. Collective, alike on all ranks.
 * Call it in define mode before values are written, or after ncmpi_open before they are read.
 * user_args are copied. split_size: approximate bytes of a chunk; 0: the default size. lossy:
 * nonzero if decompressed values may differ. Returns NC_NOERR or a PnetCDF error. */
int ncmpi_comp_reg(int ncid, int var_id, comp_function_t comp_f, comp_function_t decomp_f,
                   const comp_args_t* u_args, size_t split_size, int lossy);

/* Text of the last failure within Tailrace on this thread, as printed to stderr. */
const char* tailrace_pnetcdf_error(void);

#ifdef __cplusplus
}
#endif

#endif
