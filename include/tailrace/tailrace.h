/* Tailrace: parallel compressed output that every HDF5 tool reads. The C API.
 *
 * The ranks of a parallel program hand over their parts of N-dimensional fields; Tailrace
 * compresses and writes them at the same time and leaves one ordinary HDF5 file, which h5dump,
 * h5py, netCDF-4 and ParaView open as any other. This header is the whole manual of the library;
 * tailrace.hpp puts C++20 on top of it.
 *
 * ===== The shortest program =====
 *
 *   tailrace_file* file;
 *   tailrace_field temperature;
 *   const uint64_t shape[2] = {1024, 1024};              // of the whole field, over all ranks
 *   const uint64_t start[2] = {my_first_row, 0};         // of this rank's part of it
 *   const uint64_t count[2] = {my_n_rows, 1024};
 *
 *   tailrace_file_create("out.h5", TAILRACE_MPI(MPI_COMM_WORLD), "codec=sz3,bound=rel=1e-3",
 *                        &file);
 *   tailrace_field_define(file, "/temperature", TAILRACE_F64, 2, shape, NULL, &temperature);
 *   tailrace_field_put(file, temperature, start, count, my_values);
 *   if (tailrace_file_close(file) != TAILRACE_OK) fprintf(stderr, "%s\n", tailrace_thread_error());
 *
 * Without MPI, write TAILRACE_SERIAL in place of TAILRACE_MPI(...); nothing else changes.
 *
 * ===== How it works =====
 *
 * Steps.  define and put only record. tailrace_file_end_step writes everything that was put since
 *   the last step and commits it: from then on readers see it, whatever happens to the program. A
 *   step that fails leaves nothing in the file, and the next step starts afresh.
 *   tailrace_file_close ends a step that is still open.
 * Fields.  A field belongs to one step: it must be put in whole, over all ranks, between its
 *   definition and the next end_step. For a field that grows by one entry in each step, say
 *   over-time=on: it is defined once and put again in every step.
 * Boxes.  A rank puts any number of rectangular boxes {start, count}, or none. Together the boxes
 *   of all ranks must cover the field once: no element twice, none left out (unless holes=on).
 * Arrays  are dense and row-major (C order: the last index runs fastest), in native byte order.
 * Memory.  The values given to put must stay untouched until end_step or close returns;
 *   tailrace_field_put_copy takes a copy instead.
 *
 * ===== Collectivity =====
 *
 * Every declaration says one of these:
 *   Collective          All ranks of the file's communicator call it, in the same order. It returns
 *                       the same error on every rank, also when only one rank had a reason to fail.
 *   Alike on all ranks  It only records and does not communicate, but every rank must make the same
 *                       calls with the same arguments in the same order. The next end_step checks
 *                       that they did and otherwise fails with TAILRACE_ERROR_DISAGREEMENT.
 *   Not collective      A rank may call it or not.
 *
 * ===== Threads =====
 *
 * Call from one thread at a time in a process, over all files: HDF5 below is one library with one
 * state. With MPI that is the thread that initialised MPI; MPI_Init_thread with MPI_THREAD_FUNNELED
 * suffices. Tailrace starts threads of its own inside end_step and close and joins them before
 * these return; in the modes async and in_situ they go on between the calls, and one of them on
 * rank 0 may be in HDF5 (if that is built for threads). So in these modes do not call Tailrace from
 * within a callback of HDF5 (H5Literate, H5Ovisit, ...), which holds HDF5's lock: it would wait for
 * that thread for ever. The functions named Thread-safe below are free of these rules.
 *
 * ===== Errors =====
 *
 * Functions return a tailrace_error. The text behind it names the object, what was expected and
 * what came; see tailrace_file_error. A define, put or attribute call that fails on any rank
 * is remembered: the end_step that follows fails with its text on every rank, so that checking
 * end_step and close is enough.
 * A NULL file is refused with TAILRACE_ERROR_INVALID_ARGUMENT everywhere. Tailrace never prints,
 * never exits, and neither initialises nor finalises MPI.
 */

#ifndef TAILRACE_TAILRACE_H
#define TAILRACE_TAILRACE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TAILRACE_API
#elif defined(TAILRACE_BUILDING)
#define TAILRACE_API __attribute__((visibility("default")))
#else
#define TAILRACE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ===== Version ===== */

#define TAILRACE_VERSION_MAJOR 0
#define TAILRACE_VERSION_MINOR 1
#define TAILRACE_VERSION_PATCH 0
#define TAILRACE_VERSION_STRING "0.1.0"
/* One number that grows with every release: 0.1.0 is 100, 1.2.3 is 10203. */
#define TAILRACE_VERSION_NUMBER \
  (TAILRACE_VERSION_MAJOR * 10000 + TAILRACE_VERSION_MINOR * 100 + TAILRACE_VERSION_PATCH)

/* The version of the library that is linked, which may be newer than this header.
 * Not collective. Thread-safe. */
TAILRACE_API int tailrace_version_number(void);
TAILRACE_API const char* tailrace_version_string(void);

/* ===== Errors ===== */

/* What went wrong. The numbers are pinned: they never change their meaning. */
typedef enum tailrace_error {
  TAILRACE_OK = 0,
  TAILRACE_ERROR_INVALID_ARGUMENT = 1, /* a value, shape or option that cannot be meant */
  TAILRACE_ERROR_UNSUPPORTED = 2,      /* meant, but this codec, layout or build cannot do it */
  TAILRACE_ERROR_NOT_FOUND = 3,        /* a file, path, dataset or attribute that is not there */
  TAILRACE_ERROR_ALREADY_EXISTS = 4,   /* a file or dataset that is there and must stay */
  TAILRACE_ERROR_DISAGREEMENT = 5,     /* ranks gave different definitions or options */
  TAILRACE_ERROR_BAD_COVERAGE = 6,     /* boxes overlap, leave holes or leave the field's shape */
  TAILRACE_ERROR_PLUGIN_MISSING = 7,   /* an HDF5 filter plug-in cannot be found or loaded */
  TAILRACE_ERROR_CODEC_FAILED = 8,     /* a codec refused, or returned what does not decode */
  TAILRACE_ERROR_BOUND_BROKEN = 9,     /* a decoded value is further away than its bound */
  TAILRACE_ERROR_CORRUPT = 10,         /* a file that is not what it says, or truncated */
  TAILRACE_ERROR_IO = 11,              /* the storage refused a read or a write */
  TAILRACE_ERROR_NO_SPACE = 12,        /* the storage is full, or a quota is exhausted */
  TAILRACE_ERROR_OUT_OF_MEMORY = 13,   /* the memory cap, or the machine's memory, is too small */
  TAILRACE_ERROR_INTERNAL = 14         /* a mistake of Tailrace itself; please report it */
} tailrace_error;

/* The error's name, such as "bad_coverage"; "unknown" for a number that is none.
 * Not collective. Thread-safe. The text is static. */
TAILRACE_API const char* tailrace_error_name(tailrace_error error);

/* The text of the last call that failed on this thread, whatever it was called on; "" before the
 * first. The way to the text of a failed create, open or close.
 * Not collective. Thread-safe. The text stays until the thread's next failing call. */
TAILRACE_API const char* tailrace_thread_error(void);

/* ===== Which ranks share a file ===== */

/* Both macros stand for the two arguments (mpi_comm, mpi_comm_bytes) of create and open. This
 * header needs no mpi.h: the library gets the address and the size of your MPI_Comm, and the size
 * tells it apart from another MPI's. The library works on a duplicate; the original may be freed or
 * used in any way afterwards. */
#define TAILRACE_SERIAL NULL, 0 /* this process alone */
#ifdef __cplusplus
#define TAILRACE_MPI(comm) tailrace_mpi_handle<MPI_Comm>{comm}.address(), sizeof(MPI_Comm)
#else
#define TAILRACE_MPI(comm) (const void*)&(MPI_Comm){comm}, sizeof(MPI_Comm)
#endif

/* ===== Options =====
 *
 * One text of "key=value" entries with commas between them. NULL and "" mean the defaults. All keys
 * may stand in the text of a file; the keys of fields are then the defaults of all its fields, and
 * a field's own text wins over them. Switches take on or off. Bytes take units: 64k, 8MiB, 256MB.
 *
 * Of a field
 *   codec=NAME      none, deflate, portable, trz, or a filter plug-in: sz3, zfp, ..., id=NUMBER;
 *                   auto: chosen for each field in its first step, by a sample of its values and
 *                   the machine profile. Default: deflate; if a bound is given, auto. Files of
 *                   codec portable need no plug-in to be read, those of auto as a rule do (trz).
 *   bound=MODE=X    The largest error of any value. Default: none, every value exactly.
 *                   abs=X: X, in the unit of the field. rel=X: X times the range of the field's
 *                   values in its first step. psnr=X: at least X dB. pw_rel=X: X times the value
 *                   itself, X < 1; zeros exactly (codecs trz and portable). none: exactly.
 *                   NaN and infinities, and the fill value, are always kept exactly. So are
 *                   integer fields, unless their own text names a lossy codec.
 *   guard=GUARD+... What values keep besides the bound, exactly (docs/guards.md). sign: what is
 *                   negative, zero or positive stays so. zero: zeros stay zeros. threshold=V: what
 *                   lies below V, at it or above it stays there. minmax: least and greatest value
 *                   of a field stay these; not over time, nor where values come piece by piece.
 *                   sum: that of each chunk stays. monotone=AXIS: neighbours along it keep their
 *                   order. log=V, power=P:V: the logarithm, or x^P, changes by V at most.
 *                   region=0..16x10..20x*:V: values whose indexes lie in these ranges (up to the
 *                   index before 16 and 20; *: all) change by V at most; several are possible.
 *                   gradient=V: differences of neighbours change by V at most; laplacian=V: sums of
 *                   second differences. All but these two need codec trz, or no loss. Default:
 *                   none.
 *   earlier-loss=LOSS   Losses that the values have before they are put, as of values that were
 *                   read from a lossy file: abs=X, pw_rel=X or unknown, several joined by " then ".
 *                   The file records the total of these and the new bound. Default: none.
 *   chunk=8MiB      About this size for chunks, whose shape follows the ranks' boxes.
 *   chunk=64x64x64  Exactly this shape of chunks.
 *   chunk=4x64x64x64   Given to an over-time field of 3 dimensions itself: 4 steps in a chunk, for
 *                   a better ratio where steps are alike. Steps wait in memory, as copies, until a
 *                   chunk is full: at most half of memory= on each rank, else end_step is refused.
 *                   Until then they are not in the file, and a crash loses them; close writes what
 *                   waits, wait does not, and the report counts it. A step that fails takes no
 *                   step before it along. Not with guard=sum, monotone, layout=front. A file that
 *                   is opened and ends in the midst of a chunk is gone on with, by lossless codecs
 *                   and trz: what is there stays as it is.
 *   layout=NAME     Where chunks go in the file; no reader needs to know (docs/layouts.md).
 *                   claimed (default): the tail, nobody waits and nothing stays unused. dense:
 *                   packed by rank, once all sizes are known. contiguous: by shape, codec none.
 *                   arena: in a run for each rank, reserved by predicted sizes. predictive: in
 *                   slots, each a predicted size times extra space. hybrid:RATIO:ERROR: in slots
 *                   of raw bytes / RATIO * (1 + ERROR); ERROR is 0 unless given. sparse: where the
 *                   uncompressed bytes would lie. A chunk that is larger than its place goes to the
 *                   tail. arena:SPACE, predictive:SPACE: what is reserved beyond the predicted
 *                   sizes: performance (much, few overflows), balanced (default), storage (little);
 *                   weights of performance and storage, 3:1; or reserved/predicted bytes, 1.25.
 *   verify=auto     Decode every chunk after encoding and check the bound: on, off, or auto
 *                   (default), which is on for lossy codecs that are not Tailrace's own. A chunk
 *                   that its codec cannot keep within the bound is stored as it is. strict: as on,
 *                   but such a chunk is an error.
 *   fill=X          The dataset's fill value. It is kept exactly and left out of the value range.
 *   allow-wide-bound=on  Keep to a rel or psnr bound also where an undeclared fill value widens it:
 *                   a value that is repeated and lies 100 times the spread of all others away from
 *                   them. Default: off, an error of end_step.
 *   holes=on        Elements that no rank puts get the fill value. Default: off, an error.
 *   over-time=on    One entry more of an unlimited first dimension in every step. Default: off.
 *   covered=drop    An error here: it is for plotfiles (repack, HDF5 programs). Default: keep.
 *   level=5, ...    Any other key goes to the codec, which refuses what it does not know.
 *
 * Of a file
 *   replace=on      An existing file may be replaced; it stays until the first commit. Default off.
 *   threads=N       Encode threads of each rank. Default: 0, the node's cores over its ranks.
 *   memory=1GiB     Most that a step allocates on each rank; the copies of put_copy come on top.
 *   buffer=16MiB    Largest single write.
 *   align=auto      Writes start at multiples of this many bytes. auto (default): as the machine
 *                   profile says; 1 without one. direct: bypass the page cache (O_DIRECT).
 *   for=speed       What codec auto makes small: speed, the time of the step, but for 3 % that may
 *                   buy bytes; size, the file; balanced, the file among choices that take at most a
 *                   tenth longer.
 *   profile=FILE    Machine profile of "tailrace profile". Default: the environment's
 *                   TAILRACE_PROFILE, else ~/.config/tailrace/profile.json, else typical values,
 *                   the speed of codecs scaled to rank 0's core; built-in: typical values alone.
 *   target=size=2GB The tightest bound, common to all fields of floating point numbers, that makes
 *                   about this size; a bound that is given is the loosest one.
 *   target=psnr=80  Bounds that make about this PSNR in dB; mode psnr= guarantees it.
 *   fsync=on        A step is on stable storage when end_step returns. Default: on.
 *   compatibility=everyone  Whose HDF5 the file is for. everyone: forms of HDF5 1.8, which
 *                   implementations in Java and JavaScript read, too; v110: chunk indexes of HDF5
 *                   1.10, smaller and faster to make. Default: auto, which is everyone but for
 *                   over-time fields: 1.10's indexes grow without a journal.
 *   attributes=one  Which attributes say how values were encoded: those of lossy fields and one of
 *                   the file (default), every field's (all), or none (off).
 *   journal=on      A redo journal against torn writes of metadata. Default: off.
 *   plugin-path=DIR Where filter plug-ins are looked for before HDF5_PLUGIN_PATH.
 *   mode=sync       When the work of a step is done. sync (default): within end_step. async:
 *                   end_step returns once Tailrace has the values, and threads of its own encode
 *                   and write while the program computes. in_situ: as async, but the program's own
 *                   thread encodes, in its idle time, by a plan around what the program needs of
 *                   its lanes; see "Idle time". The next end_step, wait or close commits a step.
 *   hold=copy       Modes async and in_situ. copy (default): the values given to put are free again
 *                   when end_step returns. promise: nothing is copied, and they must stay untouched
 *                   until the next end_step, wait or close returns.
 *   writers=balanced  Who writes chunks into the file. balanced (default): ranks of a node write
 *                   for each other in mode in_situ; in others each rank writes its own. each: each
 *                   rank its own. node: one rank of each node those of all of its ranks, which pass
 *                   them on through shared memory; in any mode and layout.
 *   trace-file=FILE What each lane of every rank did when, as Chrome trace JSON for
 *                   ui.perfetto.dev: encodes, writes, commits, the program's own use of its lanes,
 *                   and the plan. Written when the file is closed; until then 56 bytes an event.
 *
 * Options of experiments (docs/in-situ.md, docs/schedule.md)
 *   lab.order=given    In which order each rank encodes its chunks: given, largest-first,
 *                   smallest-first, insertion, johnson. All but given predict sizes and times
 *                   first, and so do the layouts arena and predictive.
 *   lab.scheduler=search  Mode in_situ: how the plan is made; see "tailrace-lab schedule --help".
 *   lab.balance=best   Mode in_situ: the rule by which ranks of a node write for each other: best,
 *                   paper (Jin et al. 2024, 3.4).
 *   lab.record=FILE    Mode in_situ: record the iterations for "tailrace-lab simulate"; written
 *                   when the file is closed.
 */

/* ===== Files ===== */

/* An open file. Made by create or open, ended by close or abandon. */
typedef struct tailrace_file tailrace_file;

/* Create a file. It appears under its name with the first step that is committed; until then its
 * bytes are in path + ".partial", and an older file of that name stays as it is.
 * Collective. `path` and `options` are the same on every rank.
 *   path      of the file; its folder must exist.
 *   options   see above; NULL for the defaults.
 *   file      receives the handle, or NULL if the call fails.
 * Errors: already_exists (and no replace=on), not_found (the folder), io, no_space, disagreement,
 *   unsupported (the library was built without MPI, or with another MPI), invalid_argument. */
TAILRACE_API tailrace_error tailrace_file_create(const char* path, const void* mpi_comm,
                                                 size_t mpi_comm_bytes, const char* options,
                                                 tailrace_file** file);

/* Open an existing HDF5 file, from whatever program, to add fields and steps to it. What is in the
 * file stays readable throughout. A field with over-time=on that the file already has is continued
 * when it is defined again as it was: same dtype, shape, codec and bound.
 * Collective. Arguments as for create. Errors: not_found, corrupt (not HDF5, or damaged), io. */
TAILRACE_API tailrace_error tailrace_file_open(const char* path, const void* mpi_comm,
                                               size_t mpi_comm_bytes, const char* options,
                                               tailrace_file** file);

/* End the step that is open, if any, and close. The file is closed in every case; after a failure
 * tailrace_thread_error has the text, and the file holds the steps committed before. Every later
 * call with the handle is an invalid_argument, as are all calls, but for abandon, in a process that
 * was forked from the one which has the file open.
 * Collective. Errors: those of end_step. */
TAILRACE_API tailrace_error tailrace_file_close(tailrace_file* file);

/* Drop what was not committed and close. A created file without a committed step leaves
 * nothing behind. The way out when the program must stop without finishing its step.
 * Not collective, so that a rank can give up alone; the others can then only abandon too. Never
 * fails. NULL is allowed, and a file that is closed. A log callback hears of it. */
TAILRACE_API void tailrace_file_abandon(tailrace_file* file);

/* The text of the last call on this file that failed; "" before the first.
 * Not collective. The text is the file's and stays until the next failing call or close. */
TAILRACE_API const char* tailrace_file_error(const tailrace_file* file);

/* ===== Fields ===== */

/* The type of a field's elements. The numbers are pinned. */
typedef enum tailrace_dtype {
  TAILRACE_F32 = 1, /* float */
  TAILRACE_F64 = 2, /* double */
  TAILRACE_I8 = 3,  /* int8_t, and so on */
  TAILRACE_I16 = 4,
  TAILRACE_I32 = 5,
  TAILRACE_I64 = 6,
  TAILRACE_U8 = 7,
  TAILRACE_U16 = 8,
  TAILRACE_U32 = 9,
  TAILRACE_U64 = 10
} tailrace_dtype;

/* Bytes of one element: 1, 2, 4 or 8; 0 for a number that is no dtype.
 * Not collective. Thread-safe. */
TAILRACE_API size_t tailrace_dtype_bytes(tailrace_dtype dtype);

/* A field of one file: a plain number, good until the file is closed. */
typedef uint64_t tailrace_field;
#define TAILRACE_NO_FIELD UINT64_MAX

/* Most dimensions of a field. */
#define TAILRACE_RANK_MAX 32

/* Define a field.
 * Alike on all ranks.
 *   path      absolute path in the file, such as "/step_10/density"; missing groups are created.
 *   n_dims    0 for a scalar (one value), at most TAILRACE_RANK_MAX.
 *   shape     n_dims extents of the whole field, slowest first; 0 makes an empty dataset. With
 *             over-time=on, of one entry: the file gets the time dimension in front.
 *   options   on top of the file's; NULL for none.
 *   field     receives the field, or TAILRACE_NO_FIELD if the call fails.
 * Errors: invalid_argument (path, dtype, shape, options), already_exists (the path is defined). */
TAILRACE_API tailrace_error tailrace_field_define(tailrace_file* file, const char* path,
                                                  tailrace_dtype dtype, size_t n_dims,
                                                  const uint64_t* shape, const char* options,
                                                  tailrace_field* field);

/* Say that `values` lie at the box {start, count} of the field. The memory must stay untouched
 * until end_step or close returns. As many boxes as you like; a box with a count of 0 is allowed.
 * Not collective.
 *   start     first index in each dimension; NULL for the origin.
 *   count     elements in each dimension; NULL for all from start to the end of the field.
 *   values    the box's elements, dense and row-major, of the field's dtype; NULL if none.
 * Errors: invalid_argument (no such field, values is NULL), bad_coverage (outside the shape). That
 *   boxes overlap or leave holes is found by end_step. */
TAILRACE_API tailrace_error tailrace_field_put(tailrace_file* file, tailrace_field field,
                                               const uint64_t* start, const uint64_t* count,
                                               const void* values);

/* As tailrace_field_put, but takes a copy: the memory is yours again at once. The copy lives until
 * the step has ended. Errors: also out_of_memory. */
TAILRACE_API tailrace_error tailrace_field_put_copy(tailrace_file* file, tailrace_field field,
                                                    const uint64_t* start, const uint64_t* count,
                                                    const void* values);

/* Say that this rank cannot give what the step needs: the end_step that follows fails with `why` on
 * every rank, and nothing of the step is written. Until then the rank goes on as if nothing were:
 * one that left alone would keep the others waiting. Not collective. */
TAILRACE_API tailrace_error tailrace_file_fail_step(tailrace_file* file, const char* why);

/* ===== Attributes =====
 *
 * Attributes of the file ("/"), of a group, or of a field, by path; written with the step that is
 * open. An object that is not there by then becomes a group; an attribute that is there is
 * replaced. Alike on all ranks. The values are copied. Numbers: n_values = 1 makes a scalar, more a
 * list. Errors: invalid_argument (no values, an empty name, a path that is not absolute). */
TAILRACE_API tailrace_error tailrace_attribute_set_text(tailrace_file* file,
                                                        const char* object_path, const char* name,
                                                        const char* text);
TAILRACE_API tailrace_error tailrace_attribute_set_i64(tailrace_file* file, const char* object_path,
                                                       const char* name, size_t n_values,
                                                       const int64_t* values);
TAILRACE_API tailrace_error tailrace_attribute_set_u64(tailrace_file* file, const char* object_path,
                                                       const char* name, size_t n_values,
                                                       const uint64_t* values);
TAILRACE_API tailrace_error tailrace_attribute_set_f64(tailrace_file* file, const char* object_path,
                                                       const char* name, size_t n_values,
                                                       const double* values);

/* ===== Steps and their reports ===== */

/* What became of one field in one step: over all ranks, and the same on every rank. */
typedef struct tailrace_field_report {
  size_t struct_bytes; /* bytes of this struct as the library knows it; it may only grow */
  tailrace_field field;
  const char* path;
  const char* codec; /* as used; a field that needs no codec may get a simpler one */
  const char* codec_version;
  const char* layout;
  const char* bound;     /* as asked: "rel=0.001", "none" */
  double absolute_bound; /* as used, in the unit of the field; 0: kept exactly, or pw_rel */
  int verified;          /* 1: every chunk was decoded and compared */
  double max_error;      /* if verified: largest |decoded - original|, unit of the field; under
                            pw_rel the largest |decoded - original| / |original| */
  uint64_t raw_bytes;    /* uncompressed */
  uint64_t encoded_bytes;
  double ratio; /* raw_bytes / encoded_bytes; 1 for an empty field */
  uint64_t n_chunks;
  uint64_t n_raw_chunks;      /* of these, stored as they are because the codec broke the bound */
  double encode_s;            /* seconds in the codec, all threads of all ranks together */
  double pointwise_bound;     /* as used, bound=pw_rel: fraction of each value; else 0 */
  uint64_t predicted_bytes;   /* of the encoded ones, before encoding; 0: nothing asked for it */
  double mean_size_error;     /* mean over the chunks of |predicted - encoded| / encoded */
  uint64_t n_overflow_chunks; /* larger than the place that the layout had kept for them */
  uint64_t reserved_bytes;    /* set aside before sizes were known; 0: claimed, dense */
  uint64_t book_bytes;    /* codec=trz,book=auto: shared codes in the dataset's header; 0: none */
  double book_ratio_loss; /* share of the encoded bytes that they cost, by counted chunks */
  double book_saved_s;    /* of encode time, by chunks encoded both ways; 0: none were yet */
} tailrace_field_report;

/* What became of one step: the same on every rank. Seconds are wall-clock of the slowest rank. */
typedef struct tailrace_step_report {
  size_t struct_bytes; /* bytes of this struct as the library knows it; it may only grow */
  uint64_t step_index; /* steps committed through this handle before this one */
  uint64_t n_fields;
  const tailrace_field_report* const* fields; /* n_fields of them, in the order of definition */
  uint64_t raw_bytes;                         /* uncompressed, all fields */
  uint64_t encoded_bytes;
  double ratio;         /* raw_bytes / encoded_bytes; 1 if nothing was put */
  uint64_t file_bytes;  /* length of the file after the step */
  uint64_t n_writes;    /* writes of data, all ranks */
  uint64_t moved_bytes; /* values that travelled to another rank, because a chunk was shared */
  uint64_t peak_memory_bytes; /* most that Tailrace held on one rank */
  double step_s;              /* end_step, from call to return */
  double encode_s;            /* in which a rank encoded */
  double write_s;             /* in which a rank wrote */
  double makespan_s;          /* both together, from the first encode to the last write */
  double hidden_share;        /* 0 to 1: part of the shorter of the two that the longer one hid */
  double sync_s;              /* waiting for stable storage (fsync=on) */
  double commit_s;            /* writing the metadata; async, in_situ: handing that over */
  const char* profile; /* that times were predicted from: "typical values", or a host's name */
  double choose_s;     /* comparing codecs (codec=auto) */
  double predict_s;    /* sampling, order of work, reservations, where lab.order= or layout= ask */
  uint64_t predicted_bytes;    /* of the encoded ones, before encoding; 0: nothing asked for it */
  double predicted_makespan_s; /* makespan_s as planned; 0: nothing asked for it */
  uint64_t n_overflow_chunks;  /* chunks larger than the place that was kept for them */
  uint64_t reserved_bytes;     /* set aside before sizes were known */
  uint64_t slack_bytes;        /* that the step's data took of the file beyond encoded_bytes */
  double wait_s;               /* in which an encoded chunk waited for its address */
  /* Modes async and in_situ; see "Idle time". */
  double exposed_s;      /* that the program lost to the step: end_step, wait, obstacles delayed */
  double handover_s;     /* of this, taking the values and planning */
  double backpressure_s; /* of this, waiting for memory or for the step before */
  double idle_encode_s;  /* encoding in the program's idle time */
  uint64_t n_delayed_obstacles; /* obstacles that began late because a chunk was not finished */
  double largest_delay_s;       /* the longest of these delays */
  uint64_t n_moved_writes;      /* chunks another rank of the node wrote: writers= */
  /* Fields whose chunks hold several steps; see chunk=. Of a chunk that modes async and in_situ
   * have been handed, steps wait no more, though it is in the file after the next call only. */
  uint64_t n_waiting_steps; /* not in the file yet, of the field of which the most wait */
  uint64_t waiting_bytes;   /* of all that wait, uncompressed, all ranks */
} tailrace_step_report;

/* Write and commit all that was put since the last step. When it returns, the step is in the file
 * completely, or, if it returns an error, not at all; with fsync=on it is also on stable storage.
 * After a failure the puts, fields and attributes of the step are dropped; over-time fields that
 * an earlier step has written stay defined, and the file can be used on.
 * In the modes async and in_situ it hands the step over instead, after all data of the one before
 * are written: the report, and a failure, are then those of the step before (NULL if there was
 * none), and after a failure both steps are dropped. The metadata of the step before are written
 * while the program goes on: it is committed for certain when the next end_step, wait or close has
 * returned.
 * Collective.
 *   report    receives a report, which is the file's and stays until the next end_step, wait, close
 *             or abandon; NULL on failure. Pass NULL if you do not want it.
 * Errors: bad_coverage, disagreement, plugin_missing, codec_failed, bound_broken, io, no_space,
 *   out_of_memory, unsupported, and whatever a put of any rank failed with. */
TAILRACE_API tailrace_error tailrace_file_end_step(tailrace_file* file,
                                                   const tailrace_step_report** report);

/* ===== Idle time =====
 *
 * mode=async and mode=in_situ hide a step behind the computation that follows it. A program with
 * mode=in_situ says when it needs its two lanes, the thread that calls Tailrace (main) and its
 * communication or I/O (background), and when its own thread has nothing to do, for instance while
 * a device computes:
 *
 *   tailrace_file_end_step(file, NULL);              // hands the step over
 *   tailrace_file_compute_begin(file);               // the host's part of the next iteration
 *   prepare();
 *   tailrace_file_compute_end(file);
 *   start_device();
 *   tailrace_file_idle_or_wait(file, device_is_done, wait_for_device, NULL);  // Tailrace encodes
 *   tailrace_file_background_begin(file);
 *   exchange_halos();                                // no write is started meanwhile
 *   tailrace_file_background_end(file);
 *
 * What it marks in one iteration (from one end_step to the next) is the forecast of the next one. A
 * wrong forecast costs time: an obstacle begins late by one chunk's encoding at most, and the
 * report says so. All of these are not collective, do nothing in the other modes, and never fail:
 * what goes wrong in the background is returned by the next end_step, wait or close, on every rank.
 */

/* The program needs its own thread (main lane), from begin to end. */
TAILRACE_API void tailrace_file_compute_begin(tailrace_file* file);
TAILRACE_API void tailrace_file_compute_end(tailrace_file* file);
/* The program communicates, or reads and writes (I/O lane), from begin to end. */
TAILRACE_API void tailrace_file_background_begin(tailrace_file* file);
TAILRACE_API void tailrace_file_background_end(tailrace_file* file);

/* The program's thread is idle for `seconds`: encode what fits, then return; at once if there is
 * nothing (left) to encode. Mode async: lets messages move, and returns at once. */
TAILRACE_API void tailrace_file_idle(tailrace_file* file, double seconds);

/* The same while the program waits for something: `done` is asked before every chunk and, when
 * there is nothing to encode, every 0.2 to 1 ms; returns once it answers other than 0. In every
 * mode. */
typedef int (*tailrace_done_callback)(void* user);
TAILRACE_API void tailrace_file_idle_until(tailrace_file* file, tailrace_done_callback done,
                                           void* user);

/* The same where the program has a call that sleeps until what it waits for has happened (as
 * cudaStreamSynchronize, MPI_Wait, a condition variable): `wait`, called once at most, as soon as
 * Tailrace has no more use for the thread before the next collective call. To ask thousands of
 * times a second can cost more than the encoding, where somebody else computes on the same core.
 * `wait` must not call Tailrace, nor throw. With NULL for it, as tailrace_file_idle_until. */
typedef void (*tailrace_wait_callback)(void* user);
TAILRACE_API void tailrace_file_idle_or_wait(tailrace_file* file, tailrace_done_callback done,
                                             tailrace_wait_callback wait, void* user);

/* Wait until the step that was handed over last is committed. In mode sync it is already.
 * Collective.
 *   report    receives the report of that step, or NULL if there was none to wait for.
 * Errors: those of end_step, of the step that is waited for. */
TAILRACE_API tailrace_error tailrace_file_wait(tailrace_file* file,
                                               const tailrace_step_report** report);

/* The last step that is surely in the file, as are those before it that did not fail: what a
 * program that is started again can go on from. Steps are counted from 0, by the calls of end_step
 * through this handle, whether they failed or not. -1: no step is, or the file is NULL or closed.
 * In the modes async and in_situ this is not the step that was handed over last, nor, until the
 * next end_step or wait has returned, the one before. A step of which a field waits for a chunk of
 * several steps is not in the file. The same on every rank, as of the last collective call. Not
 * collective; never fails.
 * The error of a call that loses a step which was handed over before says which steps are lost. */
TAILRACE_API int64_t tailrace_file_last_committed_step(const tailrace_file* file);

/* ===== Callbacks ===== */

/* Called from time to time within end_step and close, on the calling thread. Bytes are uncompressed
 * and count the ranks of this node. It must not call Tailrace or MPI, nor throw. */
typedef void (*tailrace_progress_callback)(void* user, uint64_t bytes_done, uint64_t bytes_total);

/* One line for the log, without a newline; the line is valid during the call. As above, and within
 * abandon, which says that the file was not closed: so does a C++ File that was forgotten. */
typedef void (*tailrace_log_callback)(void* user, const char* line);

/* Set or (NULL) remove a callback; `user` is handed to it untouched. Not collective. */
TAILRACE_API tailrace_error tailrace_file_on_progress(tailrace_file* file,
                                                      tailrace_progress_callback callback,
                                                      void* user);
TAILRACE_API tailrace_error tailrace_file_on_log(tailrace_file* file,
                                                 tailrace_log_callback callback, void* user);

#ifdef __cplusplus
} /* extern "C" */

/* What TAILRACE_MPI needs in C++: a place for the handle, alive until the call returns. */
template <class MpiComm>
struct tailrace_mpi_handle {
  MpiComm comm;
  const void* address() const { return &comm; }
};
#endif

#endif /* TAILRACE_TAILRACE_H */
