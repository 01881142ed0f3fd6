/* Delays writes and syncs of files below SLOW_DISK_PATH, for LD_PRELOAD. SLOW_DISK_DELAYS is a file of
   two integers, the microseconds of each write and of each sync, which may change at any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const volatile int *delays;
static const char *prefix;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SLOW_DISK_DELAYS");
    prefix = getenv("SLOW_DISK_PATH");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0 || !prefix) return;
    void *memory = mmap(NULL, 2 * sizeof(int), PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) delays = memory;
    close(file);
}

static void delay(int file, int which) {
    char name[64], target[4096];
    if (!delays || !delays[which]) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t size = readlink(name, target, sizeof target - 1);
    if (size <= 0) return;
    target[size] = 0;
    /* The output of the process is no part of its disk. */
    if (strncmp(target, prefix, strlen(prefix)) || strstr(target, ".err")) return;
    struct timespec rest = {delays[which] / 1000000, delays[which] % 1000000 * 1000L};
    nanosleep(&rest, NULL);
}

#define DELAYED(which, result, name, parameters, arguments)                                        \
    result name parameters {                                                                       \
        static result(*next) parameters;                                                           \
        if (!next) next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                           \
        delay(file, which);                                                                        \
        return next arguments;                                                                     \
    }

DELAYED(0, ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
DELAYED(0, ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
DELAYED(0, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
DELAYED(1, int, fsync, (int file), (file))
DELAYED(1, int, fdatasync, (int file), (file))
