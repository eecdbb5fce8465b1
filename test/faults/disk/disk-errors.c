/*
 * Loaded into a hub with LD_PRELOAD: has the disk report errors for data.mdb. The file named by REJOIN_DISK_ERRORS says
 * which, and is shared memory: first a word for what is to fail, then how often each has failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NOTHING, PAGES, SINGLE_PAGES, FLUSHES, ROOTS, KINDS };

static volatile uint32_t *shared;

__attribute__((constructor)) static void share(void) {
  const char *path = getenv("REJOIN_DISK_ERRORS");
  int fd = path ? open(path, O_RDWR) : -1;
  if (fd < 0) return;
  void *map = mmap(NULL, KINDS * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map != MAP_FAILED) shared = map;
  close(fd);
}

static int is_data(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path);
  return length >= 9 && memcmp(path + length - 9, "/data.mdb", 9) == 0;
}

/* Every socket is written to through here as well, so the word is looked at first. */
static int fails(enum kind kind, int fd) {
  if (!shared || shared[0] != kind || !is_data(fd)) return 0;
  __sync_fetch_and_add(&shared[kind], 1);
  errno = EIO;
  return 1;
}

/* Of a commit, its root alone is written through a descriptor that waits for the disk. */
static int is_through(int fd) { return (fcntl(fd, F_GETFL) & O_DSYNC) != 0; }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
  if (!is_through(fd)) return fails(SINGLE_PAGES, fd) ? -1 : real(fd, bytes, count, at);
  /* The system has it, and the disk may have it or not. */
  ssize_t written = real(fd, bytes, count, at);
  return fails(ROOTS, fd) ? -1 : written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  static ssize_t (*real)(int, const struct iovec *, int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "writev");
  return fails(PAGES, fd) ? -1 : real(fd, parts, count);
}

int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
  return fails(FLUSHES, fd) ? -1 : real(fd);
}
