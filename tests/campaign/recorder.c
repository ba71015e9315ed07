/* libcampaign_recorder.so records a job's calls on the files below a folder, and injects faults.
 *
 *   LD_PRELOAD=libcampaign_recorder.so CAMPAIGN_FOLDER=/absolute/folder CAMPAIGN_LOG=/elsewhere/log
 *   CAMPAIGN_FAULT=CLASS:CALL:ACTION:RANK:STICKY CAMPAIGN_SITES=1
 *
 * Each call that changes a file or a name below the folder is made, and appended to the log. Both
 * happen under one lock of all processes, so the log has the order in which the calls took effect.
 * Calls through stdio or shared mappings are not recorded. The driver detects them: a replay of the
 * log must end in the actual files. The log survives a kill of its writers.
 *
 * A fault hits the CALL-th call (from 1) of a CLASS (io, thread, map, memory) on RANK (-1: each).
 * ACTION is the errno with which the call fails, or "short" (write half), or "kill" or "stop" (the
 * process, before the call). If STICKY is 1, all later calls of that kind fail, too, like on a full
 * disk. Two more classes are parts of io: write (writes and fallocate) and sync (fsync of files and
 * folders).
 * Threads, mappings and memory count from the process's first call below the folder. Mappings and
 * memory count only if Tailrace's own code requests them: failures of MPI or HDF5 without memory
 * are not tested. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HOOK __attribute__((visibility("default")))
enum Class { IO, THREAD, MAP, MEMORY, NOTE };
static const char* const class_names[] = {"io", "thread", "map", "memory"};
/* Classes that are parts of io, and the kinds of calls in them, by their letters in Record. */
static const char* const part_names[] = {"write", "sync"};
static const char* const part_kinds[] = {"we", "sd"};
/* Requests of fewer bytes never fail, nor do requests of fewer than CAMPAIGN_MEMORY bytes. */
static const size_t memory_least_bytes = 4096;

/* Header of a record of the log, which disk.py reads. n_bytes follow it: the bytes that were
 * written, or names that each end in a 0. */
struct Record {
  uint8_t kind; /* w t(runcate) e(xtend) s(ync) d(irectory sync) c(reate) o(pen) r(ename) l(ink)
                   u(nlink) m(ark) x (shared mapping) p (thread) a (memory) z (stopped) */
  uint8_t class_of_call;
  uint16_t rank;
  int32_t error;
  uint64_t pid, inode, offset;
  uint64_t site; /* place in the programs that makes the call; 0 without CAMPAIGN_SITES */
  uint64_t n_bytes;
};

static char folder[PATH_MAX];
static int log_at = -1, rank_here, fault_class = -1, fault_rank, fault_sticky, fault_error;
static long fault_call;
static char fault_action[16], fault_kind;
static const char* fault_part; /* NULL: calls of all kinds count. */
static long n_calls[4], n_part_calls;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;

static long sys(long number, long a, long b, long c, long d, long e, long f) {
  static long (*real)(long, ...);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return real(number, a, b, c, d, e, f);
}
#define SYS(name, a, b, c, d, e) \
  sys(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

/* Set a fault, in the form of CAMPAIGN_FAULT, and reset the counts of calls. Processes that have
 * forked call it, too. */
HOOK void campaign_set_fault(const char* fault);
void campaign_set_fault(const char* fault) {
  char name[16] = "";
  memset(n_calls, 0, sizeof n_calls);
  n_part_calls = 0;
  fault_class = -1;
  fault_part = NULL;
  if (fault == NULL || sscanf(fault, "%15[^:]:%ld:%15[^:]:%d:%d", name, &fault_call, fault_action,
                              &fault_rank, &fault_sticky) != 5) {
    return;
  }
  for (int i = IO; i <= MEMORY; ++i) {
    if (strcmp(name, class_names[i]) == 0) fault_class = i;
  }
  for (int i = 0; i < 2; ++i) {
    if (strcmp(name, part_names[i]) != 0) continue;
    fault_class = IO;
    fault_part = part_kinds[i];
  }
  fault_error = atoi(fault_action);
  if (fault_rank >= 0 && fault_rank != rank_here) fault_class = -1;
}

__attribute__((constructor)) static void begin_recording(void) {
  const char* const log_path = getenv("CAMPAIGN_LOG");
  const char* const below_folder = getenv("CAMPAIGN_FOLDER");
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK");
  if (log_path == NULL || below_folder == NULL) return;
  rank_here = rank == NULL ? 0 : atoi(rank);
  campaign_set_fault(getenv("CAMPAIGN_FAULT"));
  log_at = (int)SYS(openat, AT_FDCWD, log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0);
  snprintf(folder, sizeof folder, "%s", below_folder);
}

/* Hash of the stack of calls, which is equal in every run: it uses offsets within libraries instead
 * of addresses. */
static uint64_t site_here(void) {
  enum { DEPTH = 14, OWN = 3 };
  void* frames[DEPTH];
  uint64_t site = 14695981039346656037U;
  if (getenv("CAMPAIGN_SITES") == NULL || inside) return 0;
  inside = 1;
  const int n = backtrace(frames, DEPTH);
  for (int i = OWN; i < n; ++i) {
    Dl_info facts;
    if (dladdr(frames[i], &facts) == 0 || facts.dli_fname == NULL) continue;
    const uint64_t at = (uint64_t)((char*)frames[i] - (char*)facts.dli_fbase);
    site = (site ^ at ^ (uint64_t)strlen(facts.dli_fname) << 40) * 1099511628211U;
  }
  inside = 0;
  return site;
}

/* Append a record. The caller holds the lock if the order of records matters. */
static void note(char kind, int class_of_call, int error, uint64_t inode, uint64_t offset,
                 const struct iovec* parts, int n_parts, uint64_t n_bytes) {
  struct Record record = {(uint8_t)kind,
                          (uint8_t)class_of_call,
                          (uint16_t)rank_here,
                          error,
                          (uint64_t)getpid(),
                          inode,
                          offset,
                          site_here(),
                          n_bytes};
  struct iovec all[IOV_MAX] = {{&record, sizeof record}};
  int n = 1;
  for (int i = 0; i < n_parts && n_bytes > 0 && n < IOV_MAX; ++i, ++n) {
    all[n] = parts[i];
    if (all[n].iov_len > n_bytes) all[n].iov_len = n_bytes;
    n_bytes -= all[n].iov_len;
  }
  const int before = errno;
  if (n_bytes > 0 || SYS(writev, log_at, all, n, 0, 0) < 0) abort();
  errno = before;
}

static void lock_log(void) {
  pthread_mutex_lock(&threads_lock);
  while (SYS(flock, log_at, LOCK_EX, 0, 0, 0) < 0 && errno == EINTR) {
  }
}

static void unlock_log(void) {
  SYS(flock, log_at, LOCK_UN, 0, 0, 0);
  pthread_mutex_unlock(&threads_lock);
}

/* Count a call. Return 0 to make it, -1 to write half, else the errno with which it must fail. */
static int judge_call(char kind, int class_of_call) {
  long call = __atomic_add_fetch(&n_calls[class_of_call], 1, __ATOMIC_SEQ_CST);
  if (class_of_call != fault_class) return 0;
  if (fault_part != NULL) {
    if (strchr(fault_part, kind) == NULL) return 0;
    call = __atomic_add_fetch(&n_part_calls, 1, __ATOMIC_SEQ_CST);
  }
  if (call < fault_call) return 0;
  if (call == fault_call) fault_kind = kind;
  const int alike = fault_part != NULL || kind == fault_kind;
  if (call > fault_call && !(fault_sticky && alike)) return 0;
  if (strcmp(fault_action, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(fault_action, "stop") == 0) {
    note('z', NOTE, 0, 0, 0, NULL, 0, 0);
    kill(getpid(), SIGSTOP);
    return 0;
  }
  if (strcmp(fault_action, "short") == 0) return kind == 'w' ? -1 : 0;
  return fault_error;
}

static int recording(void) { return log_at >= 0 && folder[0] != 0; }
static int begun(void) { return recording() && !inside && n_calls[IO] > 0; }

static int fails(char kind, int class_of_call, int error) {
  note(kind, class_of_call, error, 0, 0, NULL, 0, 0);
  errno = error;
  return -1;
}

/* Return the path relative to the folder, or NULL if it is not below the folder. */
static const char* below(int at, const char* path, char* room) {
  if (!recording() || path == NULL) return NULL;
  size_t n = 0;
  if (path[0] != '/') {
    char link[64] = "/proc/self/cwd";
    if (at != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    const ssize_t got = readlink(link, room, PATH_MAX - 2);
    if (got < 0) return NULL;
    n = (size_t)got;
    if (path[0] != 0) room[n++] = '/';
  }
  if (n + strlen(path) >= PATH_MAX) return NULL;
  strcpy(room + n, path);
  const size_t head = strlen(folder);
  if (strncmp(room, folder, head) != 0 || (room[head] != 0 && room[head] != '/')) return NULL;
  return room[head] == 0 ? room + head : room + head + 1;
}

static const char* below_fd(int fd, struct stat* facts, char* room) {
  if (!recording() || fd == log_at || fstat(fd, facts) != 0) return NULL;
  if (!S_ISREG(facts->st_mode) && !S_ISDIR(facts->st_mode)) return NULL;
  return below(fd, "", room);
}

static uint64_t inode_of(const char* path) {
  struct stat facts;
  return lstat(path, &facts) == 0 ? facts.st_ino : 0;
}

/* --- files */

static ssize_t write_all(int fd, const struct iovec* parts, int n_parts, off_t at, int flags) {
  struct stat facts;
  char room[PATH_MAX];
  const int known = below_fd(fd, &facts, room) != NULL;
  const int verdict = known ? judge_call('w', IO) : 0;
  if (verdict > 0) return fails('w', IO, verdict);
  if (known) lock_log();
  const int appends = (flags & RWF_APPEND) || (fcntl(fd, F_GETFL) & O_APPEND);
  if (known && appends) fstat(fd, &facts);
  const off_t here = appends ? facts.st_size : at < 0 ? lseek(fd, 0, SEEK_CUR) : at;
  struct iovec half = n_parts > 0 ? parts[0] : (struct iovec){NULL, 0};
  if (verdict < 0) {
    half.iov_len = (half.iov_len + 1) / 2;
    parts = &half;
    n_parts = 1;
  }
  const ssize_t n = at < 0 && flags == 0 ? SYS(writev, fd, parts, n_parts, 0, 0)
                    : flags == 0         ? SYS(pwritev, fd, parts, n_parts, at, 0)
                                 : sys(SYS_pwritev2, fd, (long)parts, n_parts, at, 0, flags);
  if (known) {
    note('w', IO, n < 0 ? errno : 0, facts.st_ino, (uint64_t)here, parts, n_parts,
         n < 0 ? 0 : (uint64_t)n);
    unlock_log();
  }
  return n;
}

static ssize_t write_one(int fd, const void* bytes, size_t n, off_t at) {
  const struct iovec part = {(void*)bytes, n};
  return write_all(fd, &part, 1, at, 0);
}

HOOK ssize_t write(int fd, const void* b, size_t n) { return write_one(fd, b, n, -1); }
HOOK ssize_t pwrite(int fd, const void* b, size_t n, off_t at) { return write_one(fd, b, n, at); }
HOOK ssize_t pwrite64(int fd, const void* b, size_t n, off_t at) { return write_one(fd, b, n, at); }
HOOK ssize_t writev(int fd, const struct iovec* v, int n) { return write_all(fd, v, n, -1, 0); }
HOOK ssize_t pwritev(int fd, const struct iovec* v, int n, off_t at) {
  return write_all(fd, v, n, at, 0);
}
HOOK ssize_t pwritev64(int fd, const struct iovec* v, int n, off_t at) {
  return write_all(fd, v, n, at, 0);
}
HOOK ssize_t pwritev2(int fd, const struct iovec* v, int n, off_t at, int flags) {
  return write_all(fd, v, n, at, flags);
}
HOOK ssize_t pwritev64v2(int fd, const struct iovec* v, int n, off_t at, int flags) {
  return write_all(fd, v, n, at, flags);
}

/* Make a call on an open file that returns 0 or -1; its record has `offset`. */
static int on_file(char kind, int fd, long number, long b, long c, long d, uint64_t offset) {
  struct stat facts;
  char room[PATH_MAX];
  const char* const name = below_fd(fd, &facts, room);
  if (name == NULL) return (int)sys(number, fd, b, c, d, 0, 0);
  if (S_ISDIR(facts.st_mode)) kind = 'd';
  const int verdict = judge_call(kind, IO);
  if (verdict > 0) return fails(kind, IO, verdict);
  lock_log();
  const int done = (int)sys(number, fd, b, c, d, 0, 0);
  const struct iovec part = {(void*)name, strlen(name) + 1};
  note(kind, IO, done < 0 ? errno : 0, facts.st_ino, offset, &part, 1,
       kind == 'd' ? part.iov_len : 0);
  unlock_log();
  return done;
}

HOOK int ftruncate(int fd, off_t n) {
  return on_file('t', fd, SYS_ftruncate, n, 0, 0, (uint64_t)n);
}
HOOK int ftruncate64(int fd, off_t n) { return ftruncate(fd, n); }
HOOK int fallocate(int fd, int mode, off_t at, off_t n) {
  return on_file(mode == 0 ? 'e' : 'x', fd, SYS_fallocate, mode, at, n, (uint64_t)(at + n));
}
HOOK int fallocate64(int fd, int mode, off_t at, off_t n) { return fallocate(fd, mode, at, n); }
HOOK int posix_fallocate(int fd, off_t at, off_t n) {
  return fallocate(fd, 0, at, n) == 0 ? 0 : errno;
}
HOOK int posix_fallocate64(int fd, off_t at, off_t n) { return posix_fallocate(fd, at, n); }
HOOK int fsync(int fd) { return on_file('s', fd, SYS_fsync, 0, 0, 0, 0); }
HOOK int fdatasync(int fd) { return on_file('s', fd, SYS_fdatasync, 0, 0, 0, 0); }

/* --- names */

static int open_at(int at, const char* path, int flags, mode_t mode) {
  char room[PATH_MAX];
  const char* const name = below(at, path, room);
  if (name == NULL) return (int)SYS(openat, at, path, flags, mode, 0);
  const int verdict = judge_call('o', IO);
  if (verdict > 0) return fails('o', IO, verdict);
  lock_log();
  const int there = inode_of(room) != 0;
  const int fd = (int)SYS(openat, at, path, flags, mode, 0);
  const int error = fd < 0 ? errno : 0;
  const int writes = (flags & O_ACCMODE) != O_RDONLY;
  const char kind = fd < 0                        ? 'o'
                    : !there && (flags & O_CREAT) ? 'c'
                    : writes && (flags & O_TRUNC) ? 't'
                                                  : 'o';
  const struct iovec part = {(void*)name, strlen(name) + 1};
  note(kind, IO, error, inode_of(room), 0, &part, 1, kind == 'c' ? part.iov_len : 0);
  unlock_log();
  errno = error;
  return fd;
}

#define MODE_OF(flags)                     \
  mode_t mode = 0;                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list more;                          \
    va_start(more, flags);                 \
    mode = va_arg(more, mode_t);           \
    va_end(more);                          \
  }
HOOK int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
HOOK int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
HOOK int openat(int at, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(at, path, flags, mode);
}
HOOK int openat64(int at, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(at, path, flags, mode);
}
HOOK int __open_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
HOOK int __open64_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
HOOK int creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
HOOK int creat64(const char* path, mode_t mode) { return creat(path, mode); }

/* Make a call that changes one name, or two. */
static int on_names(char kind, int at, const char* path, int new_at, const char* new_path,
                    long number, long c, long d, long e) {
  char room[PATH_MAX], new_room[PATH_MAX];
  const char* const name = below(at, path, room);
  const char* const new_name = below(new_at, new_path, new_room);
  if (name == NULL && new_name == NULL) return (int)sys(number, at, (long)path, c, d, e, 0);
  const int verdict = judge_call(kind, IO);
  if (verdict > 0) return fails(kind, IO, verdict);
  lock_log();
  const uint64_t inode = name == NULL ? 0 : inode_of(room);
  const int done = (int)sys(number, at, (long)path, c, d, e, 0);
  const struct iovec parts[2] = {
      {name == NULL ? "" : (void*)name, name == NULL ? 1 : strlen(name) + 1},
      {new_name == NULL ? "" : (void*)new_name, new_name == NULL ? 1 : strlen(new_name) + 1}};
  note(kind, IO, done < 0 ? errno : 0, inode, 0, parts, 2, parts[0].iov_len + parts[1].iov_len);
  unlock_log();
  return done;
}

HOOK int renameat2(int at, const char* from, int new_at, const char* to, unsigned flags) {
  return on_names('r', at, from, new_at, to, SYS_renameat2, new_at, (long)to, flags);
}
HOOK int renameat(int at, const char* from, int new_at, const char* to) {
  return renameat2(at, from, new_at, to, 0);
}
HOOK int rename(const char* from, const char* to) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
HOOK int linkat(int at, const char* from, int new_at, const char* to, int flags) {
  return on_names('l', at, from, new_at, to, SYS_linkat, new_at, (long)to, flags);
}
HOOK int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
HOOK int unlinkat(int at, const char* path, int flags) {
  return on_names('u', at, path, AT_FDCWD, NULL, SYS_unlinkat, flags, 0, 0);
}
HOOK int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
HOOK int remove(const char* path) {
  const int done = unlinkat(AT_FDCWD, path, 0);
  return done < 0 && (errno == EISDIR || errno == EPERM) ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
                                                         : done;
}

/* Tailrace calls renameat2 by its number, since the C library may lack the function. */
HOOK long syscall(long number, ...) {
  va_list more;
  long v[6];
  va_start(more, number);
  for (int i = 0; i < 6; ++i) v[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_renameat2) {
    return renameat2((int)v[0], (const char*)v[1], (int)v[2], (const char*)v[3], (unsigned)v[4]);
  }
  return sys(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}

/* --- threads, mappings, memory */

/* Return 1 if the code at this address belongs to Tailrace's libraries or its command line. */
static int is_ours(const void* address) {
  Dl_info facts;
  inside = 1;
  const int found = dladdr(address, &facts) != 0 && facts.dli_fname != NULL;
  inside = 0;
  const char* const slash = found ? strrchr(facts.dli_fname, '/') : NULL;
  const char* const name = !found ? "" : slash == NULL ? facts.dli_fname : slash + 1;
  return strstr(name, "tailrace") != NULL || strncmp(name, "_engine", 7) == 0;
}

HOOK int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                        void* argument) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  if (!begun()) return real(thread, attributes, run, argument);
  const int verdict = judge_call('p', THREAD);
  note('p', THREAD, verdict, 0, 0, NULL, 0, 0);
  return verdict > 0 ? verdict : real(thread, attributes, run, argument);
}

HOOK void* mmap(void* wanted, size_t n, int protection, int flags, int fd, off_t at) {
  struct stat facts;
  char room[PATH_MAX];
  const int shared = (flags & MAP_SHARED) && (protection & PROT_WRITE);
  if (shared && fd >= 0 && below_fd(fd, &facts, room) != NULL) {
    note('x', NOTE, 0, facts.st_ino, 0, NULL, 0, 0);
  }
  if (begun() && is_ours(__builtin_return_address(0))) {
    const int verdict = judge_call('x', MAP);
    note('x', MAP, verdict, 0, 0, NULL, 0, 0);
    if (verdict > 0) {
      errno = verdict;
      return MAP_FAILED;
    }
  }
  return (void*)sys(SYS_mmap, (long)wanted, (long)n, protection, flags, fd, at);
}
HOOK void* mmap64(void* wanted, size_t n, int protection, int flags, int fd, off_t at)
    __attribute__((alias("mmap")));

/* Return 1 if this request for memory must fail. */
static int refused(size_t n, const void* caller) {
  if (n < memory_least_bytes || getenv("CAMPAIGN_MEMORY") == NULL || !begun()) return 0;
  if (n < strtoul(getenv("CAMPAIGN_MEMORY"), NULL, 10)) return 0;
  if (!is_ours(caller)) return 0;
  const int verdict = judge_call('a', MEMORY);
  note('a', MEMORY, verdict, 0, 0, NULL, 0, 0);
  if (verdict > 0) errno = ENOMEM;
  return verdict > 0;
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
#define CALLER __builtin_return_address(0)

HOOK void* malloc(size_t n) { return refused(n, CALLER) ? NULL : __libc_malloc(n); }
HOOK void* calloc(size_t n, size_t each) {
  return refused(n * each, CALLER) ? NULL : __libc_calloc(n, each);
}
HOOK void* realloc(void* old, size_t n) {
  return refused(n, CALLER) ? NULL : __libc_realloc(old, n);
}
HOOK void* aligned_alloc(size_t alignment, size_t n) {
  return refused(n, CALLER) ? NULL : __libc_memalign(alignment, n);
}
HOOK int posix_memalign(void** to, size_t alignment, size_t n) {
  void* const got = refused(n, CALLER) ? NULL : __libc_memalign(alignment, n);
  if (got != NULL) *to = got;
  return got == NULL ? ENOMEM : 0;
}

/* Return the function of this name that the caller's library would find. RTLD_NEXT does not find it
 * if HDF5 has loaded our VOL connector, and with it C++, with local visibility. */
static void* found_by(const void* caller, const char* name) {
  Dl_info facts;
  void* const library = dladdr(caller, &facts) != 0 && facts.dli_fname != NULL
                            ? dlopen(facts.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                            : NULL;
  return library == NULL ? NULL : dlsym(library, name);
}

/* C++'s operator new, which throws if malloc returns NULL. A program that loads C++ late, like
 * Python, has no real operator new that could be found from here. */
HOOK void* _Znwm(size_t n) {
  static void (*fail)(void);
  void* const got = refused(n, CALLER) ? NULL : __libc_malloc(n > 0 ? n : 1);
  if (got != NULL) return got;
  const char* const thrower = "_ZSt17__throw_bad_allocv";
  if (fail == NULL) *(void**)&fail = dlsym(RTLD_NEXT, thrower);
  if (fail == NULL) *(void**)&fail = found_by(CALLER, thrower);
  if (fail == NULL) abort();
  fail();
  return NULL;
}

/* --- report that n steps are committed. Programs call it if this library is loaded. */

HOOK void campaign_mark(uint64_t n) {
  if (!recording()) return;
  lock_log();
  note('m', NOTE, 0, 0, n, NULL, 0, 0);
  unlock_log();
}
