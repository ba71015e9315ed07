/* Checks of what libtailrace_idle.so marks, for the programs of this folder in C and Fortran. */

#ifndef WATCH_WAITS_H
#define WATCH_WAITS_H

/* Begin to watch the marks of this process from a thread. */
void watch_begin(void);

/* End the watch. Return 1 if a wait was seen, 0 if none was seen. Errors: -1 if the library is not
 * loaded, -2 if a wait is still marked. */
int watch_end(void);

/* Sleep for some milliseconds outside of MPI: this rank arrives late. */
void arrive_late(void);

#endif
