/* What libtailrace_pnetcdf.so offers beside the PnetCDF API; docs/pnetcdf.md.
 *
 * Compression by functions of the program's own, as Bicer et al. 2014, table I, has it. One
 * parameter is new: the dataset, without which a variable's number says nothing. Programs that want
 * Tailrace's own codecs need nothing of this: that is TAILRACE_OPTIONS' matter.
 */
#ifndef TAILRACE_PNETCDF_H
#define TAILRACE_PNETCDF_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The HDF5 filter number under which such chunks stand in the file: of the range that HDF5 keeps
 * for tests, since nobody else could decode them. A chunk is 8 bytes (uncompressed size,
 * little-endian) and what the function gave. */
#define TAILRACE_USER_FILTER 488

/* A chunk that is compressed or decompressed; the paper's names. The offsets are 0 while it is
 * compressed: where it goes is not known yet. */
typedef struct {
  off_t orig_offset;
  size_t orig_size;
  off_t comp_offset;
  size_t comp_size;
} comp_metadata_info_t;

typedef struct {
  void* user_args;
  size_t user_args_size;
  comp_metadata_info_t* chunk_args; /* of this call; set by the library */
} comp_args_t;

/* Compress or decompress in_size bytes at input into out_size bytes at output. Called by several
 * threads at once, never for overlapping memory. Returns the bytes put out; 0 or more than
 * out_size: it does not fit or cannot be done (a chunk is then stored as it is, or reading it
 * fails). */
typedef size_t (*comp_function_t)(void* input, size_t in_size, void* output, size_t out_size,
                                  comp_args_t* args);

/* Compress this variable by comp_f and decompress it by decomp_f. Collective, alike on all ranks,
 * in define mode before values are written, or after ncmpi_open before they are read. user_args
 * are copied. split_size: bytes of a chunk, about; 0: the usual. lossy: whether decompressed values
 * may differ. Returns NC_NOERR or an error of PnetCDF's. */
int ncmpi_comp_reg(int ncid, int var_id, comp_function_t comp_f, comp_function_t decomp_f,
                   const comp_args_t* u_args, size_t split_size, int lossy);

/* Why the last call on this thread failed within Tailrace: the text that went to stderr. */
const char* tailrace_pnetcdf_error(void);

#ifdef __cplusplus
}
#endif

#endif
