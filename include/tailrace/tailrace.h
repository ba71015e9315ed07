/* Tailrace: parallel compressed output that every HDF5 tool reads. The C API.
 *
 * The ranks of a parallel program submit their parts of N-dimensional fields. Tailrace compresses
 * and writes the parts concurrently into one ordinary HDF5 file. h5dump, h5py, netCDF-4 and
 * ParaView open that file like any other. This header is the complete manual of the library;
 * tailrace.hpp is a C++17 interface on top of it.
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
 * Steps.  define and put only record their arguments. tailrace_file_end_step writes everything that
 *         was put since the last step and commits it: from then on readers see the step, even if
 *         the program crashes later. A step that fails leaves nothing in the file, and the next
 *         step starts with no fields put. tailrace_file_close ends a step that is still open.
 * Fields. A field belongs to one step. Between its definition and the next end_step, the ranks
 *         together must put all of it. A field that grows by one entry per step needs over-time=on:
 *         define it once and put it in every step.
 * Boxes.  A rank puts any number of rectangular boxes {start, count}, or none. The boxes of all
 *         ranks must cover each element of the field exactly once (unless holes=on).
 * Arrays  are dense and row-major (C order: the last index runs fastest), in native byte order.
 *         tailrace_field_put_strided takes a part of a larger array, or another order.
 * Memory. The caller must not change or free the values given to put until end_step or close
 *         returns. tailrace_field_put_copy copies them instead.
 *
 * ===== Collectivity =====
 *
 * Every declaration states one of these:
 *   Collective          All ranks of the file's communicator call it, in the same order. It returns
 *                       the same error on every rank, even if only one rank fails.
 *   Alike on all ranks  It records and does not communicate. Every rank must make the same calls
 *                       with the same arguments in the same order. The next end_step compares the
 *                       calls; if they differ, it fails with TAILRACE_ERROR_DISAGREEMENT.
 *   Not collective      Any rank may call it, independently of the others.
 *
 * ===== Threads =====
 *
 * Call Tailrace from one thread at a time in a process, for all files together, because HDF5 below
 * is one library with global state. With MPI, that must be the thread that initialised MPI;
 * MPI_Init_thread with MPI_THREAD_FUNNELED suffices. Tailrace starts internal threads in end_step
 * and close and joins them before the call returns. In the modes async and in_situ these threads
 * run between the calls. One of them on rank 0 may then be inside HDF5, if HDF5 is built
 * thread-safe. In these modes do not call Tailrace from a callback of HDF5 (H5Literate, H5Ovisit,
 * ...): HDF5 holds its lock during the callback, so the call would deadlock with that thread.
 * Functions marked Thread-safe below are exempt from these rules.
 *
 * ===== Errors =====
 *
 * Functions return a tailrace_error. The error text names the object, what was expected and what
 * was given; see tailrace_file_error. If a define, put or attribute call fails on any rank, the
 * next end_step fails with the same text on every rank. Checking end_step and close is therefore
 * enough.
 * Every function rejects a NULL file with TAILRACE_ERROR_INVALID_ARGUMENT. Tailrace never prints,
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

/* Version of the linked library, which may be newer than this header.
 * Not collective. Thread-safe. */
TAILRACE_API int tailrace_version_number(void);
TAILRACE_API const char* tailrace_version_string(void);

/* ===== Errors ===== */

/* Error codes. The numbers are pinned: they never change their meaning. */
typedef enum tailrace_error {
  TAILRACE_OK = 0,
  TAILRACE_ERROR_INVALID_ARGUMENT = 1, /* A value, shape or option that is not valid. */
  TAILRACE_ERROR_UNSUPPORTED = 2,      /* Valid, but this codec, layout or build cannot do it. */
  TAILRACE_ERROR_NOT_FOUND = 3,        /* A file, path, dataset or attribute does not exist. */
  TAILRACE_ERROR_ALREADY_EXISTS = 4,   /* A file or dataset exists and must not be replaced. */
  TAILRACE_ERROR_DISAGREEMENT = 5,     /* Ranks gave different definitions or options. */
  TAILRACE_ERROR_BAD_COVERAGE = 6,     /* Boxes overlap, leave holes or exceed the field's shape. */
  TAILRACE_ERROR_PLUGIN_MISSING = 7,   /* An HDF5 filter plug-in cannot be found or loaded. */
  TAILRACE_ERROR_CODEC_FAILED = 8,     /* A codec failed, or its output does not decode. */
  TAILRACE_ERROR_BOUND_BROKEN = 9,     /* The error of a decoded value exceeds its bound. */
  TAILRACE_ERROR_CORRUPT = 10,         /* A damaged or truncated file, or another format. */
  TAILRACE_ERROR_IO = 11,              /* The storage failed a read or a write. */
  TAILRACE_ERROR_NO_SPACE = 12,        /* The storage is full, or a quota is exhausted. */
  TAILRACE_ERROR_OUT_OF_MEMORY = 13,   /* The memory cap, or the machine's memory, is too small. */
  TAILRACE_ERROR_INTERNAL = 14         /* A bug in Tailrace; please report it. */
} tailrace_error;

/* Name of the error, such as "bad_coverage"; "unknown" for a number that is not an error code.
 * Not collective. Thread-safe. The text is static. */
TAILRACE_API const char* tailrace_error_name(tailrace_error error);

/* Text of the last failed call on this thread, for any file; "" before the first failure. Use it to
 * get the text of a failed create, open or close.
 * Not collective. Thread-safe. The text stays valid until the thread's next failing call. */
TAILRACE_API const char* tailrace_thread_error(void);

/* ===== The ranks that share a file ===== */

/* Each of these macros expands to the two arguments (mpi_comm, mpi_comm_bytes) of create and open.
 * This header needs no mpi.h: the library receives the address and the size of your MPI_Comm. It
 * recognises another MPI implementation by that size. The library uses a duplicate of the
 * communicator, so you may free or use the original afterwards. */
#define TAILRACE_SERIAL NULL, 0 /* Only this process. */
#ifdef __cplusplus
#define TAILRACE_MPI(comm) tailrace_mpi_handle<MPI_Comm>{comm}.address(), sizeof(MPI_Comm)
#else
#define TAILRACE_MPI(comm) (const void*)&(MPI_Comm){comm}, sizeof(MPI_Comm)
#endif

/* ===== Options =====
 *
 * Options are one text of comma-separated "key=value" entries. NULL and "" mean the defaults. The
 * text of a file may contain all keys. Field keys given there become the defaults of all fields of
 * the file; a field's own text overrides them. Switches are on or off. Sizes in bytes may have
 * units: 64k, 8MiB, 256MB. Most programs set only codec= and bound=.
 *
 * Of a field
 *   codec=NAME      none, deflate, portable, trz, or a filter plug-in: sz3, zfp, ..., id=NUMBER.
 *                   auto: chosen for each field in its first step, from a sample of its values and
 *                   the machine profile. Default: deflate; with a bound, auto. Files of codec
 *                   portable can be read without a plug-in; files of codec auto usually need the
 *                   plug-in of trz.
 *   bound=MODE=X    The largest error of any value. abs=X: X, in the unit of the field. rel=X: X
 *                   times the range of the field's values in its first step. psnr=X: at least X dB.
 *                   pw_rel=X: X times the value itself, X < 1, zeros exactly (codecs trz and
 *                   portable). none (default): every value exactly. NaN, infinities and the fill
 *                   value are always exact. Integer fields are exact too, unless their own text
 *                   names a lossy codec.
 *   guard=GUARD+... Properties that decoded values preserve exactly, in addition to the bound
 *                   (docs/guards.md). sign: negative, zero and positive values stay negative, zero
 *                   and positive. zero: zeros stay zeros. threshold=V: values below V, equal to V
 *                   or above V stay so. minmax: the field's least and greatest values stay the
 *                   same; not for over-time fields, nor where values arrive in parts. sum: the sum
 *                   of each chunk stays the same. monotone=AXIS: neighbours along the axis keep
 *                   their order. log=V, power=P:V: the logarithm, or x^P, changes by at most V.
 *                   region=0..16x10..20x*:V: values whose indexes lie in these half-open ranges
 *                   change by at most V. `*` selects all indexes; several regions are possible.
 *                   gradient=V: differences of neighbours change by at most V. laplacian=V: sums of
 *                   second differences change by at most V. All except gradient and laplacian need
 *                   codec trz or a lossless codec. Default: none.
 *   earlier-loss=LOSS   Losses that the values already have when they are put, for example because
 *                       they were read from a lossy file. abs=X, pw_rel=X or unknown; join several
 *                       with " then ". The file records the total of these and the new bound.
 *                       Default: none.
 *   chunk=8MiB      Approximate size of a chunk (default 8MiB). The chunk shape follows the ranks'
 *                   boxes.
 *   chunk=64x64x64  Exact shape of a chunk.
 *   chunk=4x64x64x64   In the text of an over-time field of 3 dimensions: 4 steps per chunk, for a
 *                      better ratio if successive steps are similar. Tailrace buffers copies of the
 *                      steps until a chunk is full, at most half of memory= on each rank; beyond
 *                      that end_step fails. Buffered steps are not in the file yet, and a crash
 *                      loses them. close writes them, wait does not, and the report counts them. A
 *                      failed step does not affect the steps buffered before it. Not with
 *                      guard=sum, guard=monotone or layout=front. If a reopened file ends in an
 *                      incomplete chunk, lossless codecs and trz complete that chunk; its existing
 *                      values do not change.
 *   layout=NAME     Where chunks are placed in the file. Readers need not know (docs/layouts.md).
 *                   claimed (default): at the tail; no rank waits and no space is wasted. dense:
 *                   packed by rank, once all sizes are known. contiguous: by shape, codec none.
 *                   arena: one run per rank, reserved from predicted sizes. predictive: one slot
 *                   per chunk, its predicted size plus extra space. hybrid:RATIO:ERROR: slots of
 *                   raw bytes / RATIO * (1 + ERROR); ERROR is 0 if omitted. sparse: where the
 *                   uncompressed bytes would lie. A chunk that is larger than its slot goes to the
 *                   tail. arena:SPACE, predictive:SPACE: space reserved beyond the predicted sizes.
 *                   SPACE is performance (much, few overflows), balanced (default) or storage
 *                   (little). It may also be weights of performance and storage, such as 3:1, or
 *                   reserved/predicted bytes, such as 1.25.
 *   verify=auto     Decode every chunk after encoding and check the bound: on, off or auto. auto
 *                   (default) is on for lossy codecs from outside Tailrace. A chunk that its codec
 *                   cannot encode within the bound is stored unfiltered. strict: like on, but such
 *                   a chunk is an error.
 *   fill=X          Fill value of the dataset. It is stored exactly and excluded from the value
 *                   range. Default: none.
 *   allow-wide-bound=on  Accept a rel or psnr bound that an undeclared fill value widens. Such a
 *                        value is repeated and lies 100 times the spread of all other values away
 *                        from them. Default: off, end_step fails.
 *   holes=on        Elements that no rank puts get the fill value. Default: off, an error.
 *   over-time=on    Every step adds one entry to an unlimited first dimension. Default: off.
 *   covered=drop    An error in this API: the option is for plotfiles (repack, HDF5 programs).
 *                   Default: keep.
 *   level=5, ...    Any other key is passed to the codec, which rejects unknown keys.
 *
 * Of a file
 *   replace=on      An existing file may be replaced; it remains until the first commit. Default:
 *                   off.
 *   threads=N       Encode threads of each rank. Default: 0, the node's cores divided by its ranks.
 *   memory=1GiB     Most bytes that a step allocates on each rank, without the copies of put_copy.
 *                   Default: 1GiB.
 *   buffer=16MiB    Largest single write. Default: 16MiB.
 *   align=auto      Writes start at multiples of this many bytes. auto (default): from the machine
 *                   profile, or 1 without a profile. direct: bypass the page cache (O_DIRECT).
 *   for=speed       Objective of codec auto. speed (default): the shortest step; a choice up to 3 %
 *                   slower is taken if it makes a smaller file. size: the smallest file. balanced:
 *                   the smallest file among choices that take at most 10 % longer.
 *   profile=FILE    Machine profile made by "tailrace profile". Default: the environment's
 *                   TAILRACE_PROFILE, else ~/.config/tailrace/profile.json, else typical values
 *                   with codec speeds scaled to rank 0's core. built-in: typical values only.
 *   target=size=2GB Use the tightest bound, common to all floating-point fields, that makes about
 *                   this size. A given bound is the loosest one allowed.
 *   target=psnr=80  Choose bounds that make about this PSNR in dB. bound=psnr= guarantees it
 *                   instead.
 *   fsync=on        A step is on stable storage when end_step returns. Default: on.
 *   compatibility=everyone  HDF5 versions that can read the file. everyone: only structures of HDF5
 *                           1.8, which Java and JavaScript implementations read too. v110: chunk
 *                           indexes of HDF5 1.10, smaller and faster to make. auto (default):
 *                           everyone, except v110 for over-time fields, whose 1.10 indexes can grow
 *                           without a journal.
 *   attributes=one  Attributes that record how values were encoded. one (default): those of lossy
 *                   fields plus one of the file. all: those of every field. off: none.
 *   journal=on      Write a redo journal against torn writes of metadata. Default: off.
 *   plugin-path=DIR Folder searched for filter plug-ins before HDF5_PLUGIN_PATH. Default: none.
 *   mode=sync       When a step is encoded and written. sync (default): within end_step. async:
 *                   end_step returns once Tailrace owns the values; its threads encode and write
 *                   while the program computes. in_situ: like async, but the program's own thread
 *                   encodes in its idle time. A plan keeps the program's lanes free when the
 *                   program needs them; see "Idle time". In both modes, the next end_step, wait or
 *                   close commits the step.
 *   hold=copy       Modes async and in_situ. copy (default): end_step copies the values, and the
 *                   caller may reuse the memory when it returns. promise: no copy; the caller must
 *                   keep the values unchanged until the end_step of the next step, wait or close
 *                   returns.
 *   writers=balanced  Which ranks write chunks into the file. balanced (default): in mode in_situ,
 *                     ranks of a node write for each other; otherwise each rank writes its own
 *                     chunks. each: each rank always writes its own. node: one rank per node writes
 *                     for all of its ranks, which pass chunks through shared memory; in any mode
 *                     and layout.
 *   trace-file=FILE Write a Chrome trace (JSON for ui.perfetto.dev) of each lane of every rank:
 *                   encodes, writes, commits, the program's own use of its lanes, and the plan.
 *                   Tailrace writes it when the file is closed and buffers 56 bytes per event until
 *                   then. Default: none.
 *
 * Options of experiments (docs/in-situ.md, docs/decisions.md). Most users leave these alone.
 *   lab.order=given    Order in which each rank encodes its chunks: given (default), largest-first,
 *                      smallest-first, insertion, johnson. All except given first predict sizes and
 *                      times, and so do the layouts arena and predictive.
 *   lab.scheduler=search  Mode in_situ: algorithm that makes the plan; see "tailrace-lab schedule
 *                         --help". Default: search.
 *   lab.balance=best   Mode in_situ: rule by which ranks of a node write for each other: best
 *                      (default) or paper (Jin et al. 2024, 3.4).
 *   lab.record=FILE    Mode in_situ: record the iterations for "tailrace-lab simulate"; written
 *                      when the file is closed. Default: none.
 */

/* ===== Files ===== */

/* An open file. create or open makes it; close or abandon ends it. */
typedef struct tailrace_file tailrace_file;

/* Create a file. It appears under its name when the first step is committed. Until then its bytes
 * are in path + ".partial", and an older file of that name remains unchanged.
 * Collective. `path` and `options` are the same on every rank.
 *   path      path of the file; its folder must exist.
 *   options   see above; NULL for the defaults.
 *   file      receives the handle, or NULL if the call fails.
 * Errors: already_exists (without replace=on), not_found (the folder), io, no_space, disagreement,
 *   unsupported (the library was built without MPI, or with another MPI), invalid_argument. */
TAILRACE_API tailrace_error tailrace_file_create(const char* path, const void* mpi_comm,
                                                 size_t mpi_comm_bytes, const char* options,
                                                 tailrace_file** file);

/* Open an existing HDF5 file, written by any program, to add fields and steps. Existing objects
 * stay readable throughout. To continue an over-time field that the file already has, define it
 * again with the same dtype, shape, codec and bound.
 * Collective. Arguments: those of create. Errors: not_found, corrupt (not HDF5, or damaged), io. */
TAILRACE_API tailrace_error tailrace_file_open(const char* path, const void* mpi_comm,
                                               size_t mpi_comm_bytes, const char* options,
                                               tailrace_file** file);

/* Prepare a restart: repair what a killed job left of the file, like "tailrace recover --apply".
 * Afterwards the file exists if a step was committed. Call it before the file is read or opened;
 * open and create do not repair. A file without such remains is not changed.
 * Collective. `path` is the same on every rank.
 *   exists    receives 1: read the last step, and open the file; or 0: create the file.
 * Errors: corrupt (committed data are missing), io (a job still writes the file), disagreement,
 *   invalid_argument. */
TAILRACE_API tailrace_error tailrace_file_recover(const char* path, const void* mpi_comm,
                                                  size_t mpi_comm_bytes, int* exists);

/* End the open step, if any, and close the file. The file is closed in every case. After a failure,
 * tailrace_thread_error returns the text, and the file holds the steps committed before. Every
 * later call with the handle fails with invalid_argument. In a process forked from the one that
 * opened the file, all calls except abandon fail with invalid_argument too.
 * Collective. Errors: those of end_step. */
TAILRACE_API tailrace_error tailrace_file_close(tailrace_file* file);

/* Drop everything uncommitted and close the file. A created file without a committed step is
 * removed. Use it when the program must stop without finishing its step.
 * Not collective, so that one rank can give up; the other ranks can then only abandon as well.
 * Never fails. Accepts NULL and a closed file. Calls the log callback. */
TAILRACE_API void tailrace_file_abandon(tailrace_file* file);

/* Form of tailrace_file_abandon for destructors: a file that is still open was forgotten. The log
 * callback gets a line with the steps that are in the file, and those that are lost. Without a
 * callback, rank 0 writes the line to stderr, unless a failed call has already returned as much.
 * Files that are still open when the program exits get such a line, too. MPI_Finalize abandons all
 * files that are still open; destroy may be called afterwards. Not collective. Never fails. */
TAILRACE_API void tailrace_file_destroy(tailrace_file* file);

/* Text of the last failed call on this file; "" before the first failure.
 * Not collective. The file owns the text, which stays valid until the next failing call or
 * close. */
TAILRACE_API const char* tailrace_file_error(const tailrace_file* file);

/* ===== Fields ===== */

/* Type of a field's elements. The numbers are pinned. */
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

/* Bytes of one element: 1, 2, 4 or 8; 0 for a number that is not a dtype.
 * Not collective. Thread-safe. */
TAILRACE_API size_t tailrace_dtype_bytes(tailrace_dtype dtype);

/* A field of one file: a plain number, valid until the file is closed. */
typedef uint64_t tailrace_field;
#define TAILRACE_NO_FIELD UINT64_MAX

/* Largest number of dimensions of a field. */
#define TAILRACE_RANK_MAX 32

/* Define a field.
 * Alike on all ranks.
 *   path      absolute path in the file, such as "/step_10/density"; missing groups are created.
 *   n_dims    0 for a scalar (one value), at most TAILRACE_RANK_MAX.
 *   shape     n_dims extents of the complete field, slowest first; 0 makes an empty dataset. With
 *             over-time=on, the extents of one entry: the file adds the time dimension in front.
 *   options   added to the file's options; NULL for none.
 *   field     receives the field, or TAILRACE_NO_FIELD if the call fails.
 * Errors: invalid_argument (path, dtype, shape, options), already_exists (the path is defined). */
TAILRACE_API tailrace_error tailrace_field_define(tailrace_file* file, const char* path,
                                                  tailrace_dtype dtype, size_t n_dims,
                                                  const uint64_t* shape, const char* options,
                                                  tailrace_field* field);

/* Form of tailrace_field_define that names the dimensions. netCDF-4, xarray and ncdump then show
 * the names; in HDF5 they are dimension scales. Fields that name the same dimension share it: it
 * has one length. A dimension lies in the group of the field that names it first; fields in groups
 * below see it, too. A field that is named like its first dimension ("/x" with dimension "x") holds
 * the coordinate of that dimension. It ignores codec and bound of the file's options.
 * Alike on all ranks.
 *   names      n_dims names, in the order of shape; may be NULL if n_dims is 0.
 *   time_name  name of the time dimension of an over-time field; NULL: "time". Fields that share a
 *              time dimension must be put in the same steps, so that their entries belong together.
 * Errors: those of define, and invalid_argument (a name that netCDF does not allow). The next
 * end_step fails if the lengths differ. */
TAILRACE_API tailrace_error tailrace_field_define_named(tailrace_file* file, const char* path,
                                                        tailrace_dtype dtype, size_t n_dims,
                                                        const uint64_t* shape,
                                                        const char* const* names,
                                                        const char* time_name, const char* options,
                                                        tailrace_field* field);

/* Set the coordinate of a dimension: "/x" holds the values of dimension "x". The open step writes
 * it. It is written once: if the file has it, the values must be the same, as after a restart.
 * Alike on all ranks: every rank passes all values. They are copied.
 *   n_values  length of the dimension.
 *   units     its attribute "units"; NULL for none.
 * Errors: invalid_argument, already_exists (a field or group has the path). */
TAILRACE_API tailrace_error tailrace_coordinate_set(tailrace_file* file, const char* path,
                                                    tailrace_dtype dtype, size_t n_values,
                                                    const void* values, const char* units);

/* Set the time of the open step: the entry of coordinate `path` that belongs to the step's entries
 * of over-time fields. Call it in every step that puts one, from the first on, or never: end_step
 * fails if an entry lacks its time, also for a field without names. The first call defines `path`
 * as an over-time field. Alike on all ranks: another value on a rank is a disagreement of end_step.
 *   path      coordinate of the time dimension; NULL: "/time".
 *   units     attribute "units", written by the first call: "s", "days since 2000-01-01"; or NULL.
 * Errors: those of define, and invalid_argument (`path` is another field). */
TAILRACE_API tailrace_error tailrace_time_set(tailrace_file* file, const char* path, double value,
                                              const char* units);

/* Submit `values` for the box {start, count} of the field. The caller must not change or free the
 * memory until end_step or close returns. A rank may put any number of boxes; a count of 0 is
 * allowed.
 * Not collective.
 *   start     first index in each dimension; NULL for the origin.
 *   count     elements in each dimension, end - start; NULL for all from start to the end of the
 *             field.
 *   values    the box's elements, dense and row-major, of the field's dtype; may be NULL for an
 *             empty box.
 * Errors: invalid_argument (unknown field, values is NULL), bad_coverage (outside the shape).
 * Overlapping boxes and holes are reported by end_step. */
TAILRACE_API tailrace_error tailrace_field_put(tailrace_file* file, tailrace_field field,
                                               const uint64_t* start, const uint64_t* count,
                                               const void* values);

/* Return the path of a field as it was defined, for messages; NULL for a field that the file does
 * not have. Valid until the next definition or the end of the file. Not collective. */
TAILRACE_API const char* tailrace_field_path(const tailrace_file* file, tailrace_field field);

/* Copying form of tailrace_field_put: the caller may reuse the memory when the call returns. The
 * copy exists until the step has ended. Errors: also out_of_memory. */
TAILRACE_API tailrace_error tailrace_field_put_copy(tailrace_file* file, tailrace_field field,
                                                    const uint64_t* start, const uint64_t* count,
                                                    const void* values);

/* Copy n_bytes from device memory to the host, and return 0 once they have arrived. A nonzero
 * number fails the step on every rank, and its error text names the number. Called on the thread
 * that calls Tailrace, within end_step, for one contiguous run of at most a chunk at a time. Fields
 * whose chunks span steps: within put_device. It must neither call Tailrace nor throw. With CUDA:
 *   cudaMemcpy(to, from, n_bytes, cudaMemcpyDeviceToHost) */
typedef int (*tailrace_copy_callback)(void* user, void* to, const void* from, size_t n_bytes);

/* Set the function that copies from the device for later calls of put_device, or remove it with
 * NULL; `user` is passed to it unchanged. Not collective. */
TAILRACE_API tailrace_error tailrace_file_set_copy_from_device(tailrace_file* file,
                                                               tailrace_copy_callback copy,
                                                               void* user);

/* Form of tailrace_field_put for values in memory that the host cannot read, such as a GPU's.
 * `values` is the device address of the box's first element. The function of set_copy_from_device
 * copies the values chunk by chunk, under memory=, straight to where they are encoded. They must
 * stay unchanged until end_step or close returns, in every mode. With the default chunks, which
 * follow the boxes, a copy has many rows; chunks that cut the rows of the box are copied row by
 * row.
 * Not collective. Errors: those of put; no function was set. */
TAILRACE_API tailrace_error tailrace_field_put_device(tailrace_file* file, tailrace_field field,
                                                      const uint64_t* start, const uint64_t* count,
                                                      const void* values);

/* Forms of put and put_copy for values that are part of a larger array, such as a block within its
 * halo, or in another order. Tailrace gathers them from there when it encodes the step.
 *   first     address of the box's first element.
 *   strides   bytes from an element to the next one along each dimension, slowest first; negative
 *             strides run backwards from `first`. NULL: the values are dense.
 * All elements of the box must lie in memory that the program may read; this is not checked. */
TAILRACE_API tailrace_error tailrace_field_put_strided(tailrace_file* file, tailrace_field field,
                                                       const uint64_t* start, const uint64_t* count,
                                                       const void* first, const int64_t* strides);
TAILRACE_API tailrace_error
tailrace_field_put_strided_copy(tailrace_file* file, tailrace_field field, const uint64_t* start,
                                const uint64_t* count, const void* first, const int64_t* strides);

/* Make the step fail because this rank cannot provide its part. The next end_step fails with `why`
 * on every rank, and nothing of the step is written. Until then the rank continues normally: if it
 * left its step, the other ranks would wait for it. Not collective. */
TAILRACE_API tailrace_error tailrace_file_fail_step(tailrace_file* file, const char* why);

/* ===== Attributes =====
 *
 * Set an attribute of the file ("/"), of a group, or of a field, by path. It is written with the
 * open step and replaces an existing attribute. If no object has this path by then, a group is
 * created. Alike on all ranks. The values are copied. Numbers: n_values = 1 makes a scalar, more
 * make a list. Errors: invalid_argument (no values, an empty name, a path that is not absolute). */
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

/* Report of one field in one step: over all ranks, and the same on every rank. */
typedef struct tailrace_field_report {
  size_t struct_bytes; /* Bytes of this struct as the library knows it; it may only grow. */
  tailrace_field field;
  const char* path;
  const char* codec; /* Codec used; a field that needs no codec may get a simpler one. */
  const char* codec_version;
  const char* layout;
  const char* bound;     /* Bound as requested: "rel=0.001", "none". */
  double absolute_bound; /* Bound as used, in the unit of the field; 0: exact, or pw_rel. */
  int verified;          /* 1: every chunk was decoded and compared. */
  double max_error;      /* If verified: largest |decoded - original|, unit of the field; under
                            pw_rel the largest |decoded - original| / |original|. */
  uint64_t raw_bytes;    /* Uncompressed. */
  uint64_t encoded_bytes;
  double ratio; /* raw_bytes / encoded_bytes; 1 for an empty field. */
  uint64_t n_chunks;
  uint64_t n_raw_chunks;      /* Chunks stored unfiltered because the codec broke the bound. */
  double encode_s;            /* Seconds in the codec, all threads of all ranks together. */
  double pointwise_bound;     /* Bound as used, bound=pw_rel: fraction of each value; else 0. */
  uint64_t predicted_bytes;   /* Prediction of encoded_bytes before encoding; 0: not predicted. */
  double mean_size_error;     /* Mean over the chunks of |predicted - encoded| / encoded. */
  uint64_t n_overflow_chunks; /* Larger than the space that the layout reserved for them. */
  uint64_t reserved_bytes;    /* Reserved before sizes were known; 0: claimed, dense. */
  uint64_t book_bytes;    /* Shared codes in the dataset's header (codec=trz,book=auto); 0: none. */
  double book_ratio_loss; /* Share of encoded_bytes that shared codes cost, from counted chunks. */
  double book_saved_s;    /* Encode time saved, from chunks encoded both ways; 0: none were yet. */
} tailrace_field_report;

/* Report of one step: the same on every rank. Seconds are wall-clock of the slowest rank. */
typedef struct tailrace_step_report {
  size_t struct_bytes; /* Bytes of this struct as the library knows it; it may only grow. */
  uint64_t step_index; /* Steps committed through this handle before this one. */
  uint64_t n_fields;
  const tailrace_field_report* const* fields; /* n_fields of them, in the order of definition. */
  uint64_t raw_bytes;                         /* Uncompressed, all fields. */
  uint64_t encoded_bytes;
  double ratio;                /* raw_bytes / encoded_bytes; 1 if nothing was put. */
  uint64_t file_bytes;         /* Length of the file after the step. */
  uint64_t n_writes;           /* Writes of data, all ranks. */
  uint64_t moved_bytes;        /* Values sent to another rank, because ranks shared a chunk. */
  uint64_t peak_memory_bytes;  /* Most bytes that Tailrace allocated on one rank. */
  double step_s;               /* end_step, from call to return. */
  double encode_s;             /* Time in which a rank encoded. */
  double write_s;              /* Time in which a rank wrote. */
  double makespan_s;           /* Both together, from the first encode to the last write. */
  double hidden_share;         /* 0 to 1: share of the shorter activity that overlapped the
                                 longer. */
  double sync_s;               /* Waiting for stable storage (fsync=on). */
  double commit_s;             /* Writing the metadata; async, in_situ: handing them off. */
  const char* profile;         /* Basis of time predictions: "typical values", or a host's name. */
  double choose_s;             /* Comparing codecs (codec=auto). */
  double predict_s;            /* Sampling, order of work, reservations (lab.order=, layout=). */
  uint64_t predicted_bytes;    /* Prediction of encoded_bytes before encoding; 0: not predicted. */
  double predicted_makespan_s; /* makespan_s as planned; 0: not predicted. */
  uint64_t n_overflow_chunks;  /* Chunks larger than the space reserved for them. */
  uint64_t reserved_bytes;     /* Reserved before sizes were known. */
  uint64_t slack_bytes;        /* File space used by the step's data beyond encoded_bytes. */
  double wait_s;               /* Time in which an encoded chunk waited for its address. */
  /* Modes async and in_situ; see "Idle time". */
  double exposed_s;      /* Time lost by the program: end_step, wait, delayed obstacles. */
  double handover_s;     /* Part of exposed_s: copying the values and planning. */
  double backpressure_s; /* Part of exposed_s: waiting for memory or for the previous step. */
  double idle_encode_s;  /* Encoding in the program's idle time. */
  uint64_t n_delayed_obstacles; /* Obstacles that began late because a chunk was not finished. */
  double largest_delay_s;       /* The longest of these delays. */
  uint64_t n_moved_writes;      /* Chunks written by another rank of the node: writers=. */
  /* Fields whose chunks hold several steps; see chunk=. In the modes async and in_situ, the steps
   * of a submitted chunk do not count as waiting, although only the next call commits that
   * chunk. */
  uint64_t n_waiting_steps; /* Steps not in the file yet, of the field with the most of them. */
  uint64_t waiting_bytes;   /* Bytes of all waiting steps, uncompressed, all ranks. */
} tailrace_step_report;

/* Write and commit everything that was put since the last step. On success, the complete step is in
 * the file; with fsync=on it is also on stable storage. On failure, nothing of the step is in the
 * file, and its puts, fields and attributes are dropped. Over-time fields that an earlier step has
 * written stay defined, and the file remains usable.
 * The call first finishes the data writes of the previous step in the modes async and in_situ, then
 * hands the new step over. The report and any error are those of the previous step (NULL if it does
 * not exist). A failure of these writes drops both steps, and its error names them; a failure of
 * the new step drops that step alone. The metadata of the previous step are written
 * while the program continues. That step is committed for certain when the next end_step, wait or
 * close has returned.
 * Collective.
 *   report    receives a report, which the file owns and which stays valid until the next end_step,
 *             wait, close or abandon; NULL on failure. Pass NULL to get no report.
 * Errors: bad_coverage, disagreement, plugin_missing, codec_failed, bound_broken, io, no_space,
 *   out_of_memory, unsupported, and the error of a failed put of any rank. */
TAILRACE_API tailrace_error tailrace_file_end_step(tailrace_file* file,
                                                   const tailrace_step_report** report);

/* ===== Idle time =====
 *
 * mode=async and mode=in_situ overlap a step with the computation that follows it. A program with
 * mode=in_situ marks when it needs one of its two lanes. These are the thread that calls Tailrace
 * (main) and its communication or I/O (background). It also lends its thread when it has nothing to
 * do, for instance while a device computes:
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
 * The marks of one iteration (from one end_step to the next) are the forecast of the next
 * iteration. A wrong forecast costs time: an obstacle begins late by at most the encoding of one
 * chunk, and the report counts the delay. None of these calls is collective, and none fails: an
 * error in the background is returned by the next end_step, wait or close, on every rank. In the
 * other modes the marks do nothing, and no chunk is encoded on the program's thread.
 */

/* Mark the time in which the program needs its own thread (main lane), from begin to end. */
TAILRACE_API void tailrace_file_compute_begin(tailrace_file* file);
TAILRACE_API void tailrace_file_compute_end(tailrace_file* file);
/* Mark the time in which the program communicates, reads or writes (I/O lane), from begin to
 * end. */
TAILRACE_API void tailrace_file_background_begin(tailrace_file* file);
TAILRACE_API void tailrace_file_background_end(tailrace_file* file);

/* Lend the program's idle thread for `seconds`: encode the chunks that fit, then return. Returns
 * immediately if no chunk is left to encode. Mode async: progresses messages and returns
 * immediately. */
TAILRACE_API void tailrace_file_idle(tailrace_file* file, double seconds);

/* Lend the program's idle thread until `done` returns nonzero. Tailrace calls `done` before every
 * chunk and, while nothing is left to encode, every 0.2 to 1 ms. Works in every mode. */
typedef int (*tailrace_done_callback)(void* user);
TAILRACE_API void tailrace_file_idle_until(tailrace_file* file, tailrace_done_callback done,
                                           void* user);

/* Form of tailrace_file_idle_until for a program that can sleep until its event occurs
 * (cudaStreamSynchronize, MPI_Wait, a condition variable). Tailrace calls `wait` at most once, as
 * soon as it does not need the thread before the next collective call. Polling `done` thousands of
 * times a second can cost more than encoding if another thread computes on the same core. `wait`
 * must neither call Tailrace nor throw. NULL `wait`: tailrace_file_idle_until. */
typedef void (*tailrace_wait_callback)(void* user);
TAILRACE_API void tailrace_file_idle_or_wait(tailrace_file* file, tailrace_done_callback done,
                                             tailrace_wait_callback wait, void* user);

/* Wait until the step that was handed over last is committed. In mode sync it already is.
 * Collective.
 *   report    receives the report of that step, or NULL if no step was pending.
 * Errors: those of end_step, for the step that is waited for. */
TAILRACE_API tailrace_error tailrace_file_wait(tailrace_file* file,
                                               const tailrace_step_report** report);

/* Number of the last step that is certainly in the file, as are all earlier steps that did not
 * fail. A restarted program can continue from it. Steps are counted from 0, by the calls of
 * end_step through this handle, including failed ones. -1: no step is committed, or the file is
 * NULL or closed. In the modes async and in_situ the step that was handed over last does not count.
 * The one before it counts only once the next end_step or wait has returned. A step does not count
 * while one of its fields is buffered for a chunk of several steps. The same on every rank, after
 * the last collective call. Not collective; never fails.
 * The error text of an end_step, wait or close that fails names the steps that it loses, and the
 * last one in the file. */
TAILRACE_API int64_t tailrace_file_last_committed_step(const tailrace_file* file);

/* ===== Callbacks ===== */

/* Progress callback, called from time to time within end_step and close, on the calling thread. The
 * byte counts are uncompressed and cover the ranks of this node. It must not call Tailrace or MPI,
 * nor throw. */
typedef void (*tailrace_progress_callback)(void* user, uint64_t bytes_done, uint64_t bytes_total);

/* Log callback: one line without a newline, valid during the call. The rules of
 * tailrace_progress_callback apply. abandon and destroy also call it, to report that the file was
 * not closed. */
typedef void (*tailrace_log_callback)(void* user, const char* line);

/* Set a callback, or remove it with NULL; `user` is passed to it unchanged. Not collective. */
TAILRACE_API tailrace_error tailrace_file_on_progress(tailrace_file* file,
                                                      tailrace_progress_callback callback,
                                                      void* user);
TAILRACE_API tailrace_error tailrace_file_on_log(tailrace_file* file,
                                                 tailrace_log_callback callback, void* user);

#ifdef __cplusplus
} /* extern "C" */

/* Storage for the handle in C++, used by TAILRACE_MPI; it exists until the call returns. */
template <class MpiComm>
struct tailrace_mpi_handle {
  MpiComm comm;
  const void* address() const { return &comm; }
};
#endif

#endif /* TAILRACE_TAILRACE_H */
