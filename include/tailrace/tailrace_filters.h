/* The HDF5 filters trz (481) and xor (482) for a program's own HDF5, without HDF5_PLUGIN_PATH.
 *
 * A program that uses HDF5, or a library above it such as netCDF, calls the one function below.
 * Then its H5Dread, H5Dwrite and H5Dcreate know both filters. libtailrace_filters.so is linked to
 * no HDF5: it finds the one that the caller is linked to, of any version from 1.10 on. It needs
 * neither MPI nor libtailrace, and does not change the environment.
 *
 *   #include <hdf5.h>
 *   #include <tailrace/tailrace_filters.h>
 *
 *   if (tailrace_register_filters() != TAILRACE_FILTERS_OK) return 1;
 *   hid_t file = H5Fopen("run.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
 *
 * Compile: h5cc -shlib read.c $(pkg-config --cflags --libs tailrace-filters)
 */

#ifndef TAILRACE_FILTERS_H
#define TAILRACE_FILTERS_H

#ifdef __cplusplus
extern "C" {
#endif

#define TAILRACE_FILTERS_OK 0
/* Neither the caller nor its libraries provide HDF5. A program that links HDF5 statically must
 * export its symbols (-rdynamic). To write, it must also link all of HDF5 (--whole-archive). */
#define TAILRACE_FILTERS_NO_HDF5 (-1)
/* H5Zregister failed; HDF5's error stack has the reason. */
#define TAILRACE_FILTERS_REFUSED (-2)

/* Register both filters with the caller's HDF5. Not collective: every rank calls it. Thread-safe if
 * that HDF5 is. One call is enough, and more are harmless; call it again after H5close(), which
 * drops filters.
 * @returns TAILRACE_FILTERS_OK or one of the errors above. */
int tailrace_register_filters(void);

#ifdef __cplusplus
}
#endif

#endif /* TAILRACE_FILTERS_H */
