// SPDX-License-Identifier: Apache-2.0
// Calls into the C library that fail at the k-th one, as SQLite's tests have them fail.
//
//     ferry_arm(k, error, kinds, on)    the k-th call from now on of these kinds fails with the error;
//                                       with `on`, every one after it fails too
//     ferry_disarm()                    how many calls of these kinds there were
//     ferry_count_objects()             Python's own allocations, of any size, are a kind from now on
//
// Loaded by LD_PRELOAD. What Python imports and what the code generator is refused are left alone:
// the former is done before, and the latter ends the process by LLVM's own choice.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { READS = 1, WRITES = 2, NAMES = 4, MEMORY = 8, STARTS = 16, OBJECTS = 32 };
enum { SHORT = -1 };
enum { LARGE = 16384 };

static _Atomic long count, due;
static _Atomic int code, kinds, lasting;
static uintptr_t exempt[8][2];
static int exempt_count;

void ferry_exempt(uintptr_t start, uintptr_t end) {
    exempt[exempt_count][0] = start; exempt[exempt_count++][1] = end;
}

static int is_ours(uintptr_t caller) {
    for (int i = 0; i < exempt_count; i++)
        if (caller >= exempt[i][0] && caller < exempt[i][1]) return 0;
    return 1;
}

void ferry_arm(long k, int error, int which, int on) {
    count = 0; code = error; lasting = on; due = k;
    kinds = which;
}

long ferry_disarm(void) { kinds = 0; return count; }

static int fails(int kind) {
    if (!(kinds & kind)) return 0;
    long now = ++count;
    return lasting ? now >= due : now == due;
}

static int is_import(const char *path) {
    size_t length = strlen(path);
    return (length > 3 && !strcmp(path + length - 3, ".py"))
        || (length > 4 && !strcmp(path + length - 4, ".pyc"))
        || (length > 3 && !strcmp(path + length - 3, ".so") && strstr(path, "site-packages"))
        || strstr(path, "__pycache__") || strstr(path, "dist-info");
}

static _Atomic unsigned char imported[4096];

#define NEXT(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL(kind) if (fails(kind) && code != SHORT) { errno = code; return -1; }

static int opened(int descriptor, const char *path) {
    if (descriptor >= 0 && descriptor < 4096) imported[descriptor] = is_import(path);
    return descriptor;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (!is_import(path)) FAIL(NAMES) \
        return opened(real(path, flags, mode), path); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (!is_import(path)) FAIL(NAMES) \
        return opened(real(folder, path, flags, mode), path); \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

#define MOVE(name, pointer, kind) \
    ssize_t name(int descriptor, pointer data, size_t size) { \
        NEXT(name); \
        int skip = descriptor >= 0 && descriptor < 4096 && imported[descriptor]; \
        if (!skip && fails(kind)) { \
            if (code != SHORT) { errno = code; return -1; } \
            if (size > 1) size /= 2; \
        } \
        return real(descriptor, data, size); \
    }
MOVE(read, void *, READS) MOVE(write, const void *, WRITES)

int fsync(int descriptor) { NEXT(fsync); FAIL(WRITES) return real(descriptor); }
int ftruncate(int descriptor, off_t size) { NEXT(ftruncate); FAIL(WRITES) return real(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { NEXT(ftruncate64); FAIL(WRITES) return real(descriptor, size); }
int fchmod(int descriptor, mode_t mode) { NEXT(fchmod); FAIL(NAMES) return real(descriptor, mode); }
int chmod(const char *path, mode_t mode) { NEXT(chmod); FAIL(NAMES) return real(path, mode); }
int rename(const char *from, const char *to) { NEXT(rename); FAIL(NAMES) return real(from, to); }
int renameat(int a, const char *from, int b, const char *to) { NEXT(renameat); FAIL(NAMES) return real(a, from, b, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { NEXT(linkat); FAIL(NAMES) return real(a, from, b, to, flags); }
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); FAIL(NAMES) return real(path, mode); }
int mkdirat(int a, const char *path, mode_t mode) { NEXT(mkdirat); FAIL(NAMES) return real(a, path, mode); }
int dup(int descriptor) { NEXT(dup); FAIL(STARTS) return real(descriptor); }
int pipe2(int ends[2], int flags) { NEXT(pipe2); FAIL(STARTS) return real(ends, flags); }

#define CALLER (uintptr_t)__builtin_return_address(0)

int mprotect(void *at, size_t size, int how) {
    NEXT(mprotect);
    if (is_ours(CALLER) && fails(MEMORY)) { errno = ENOMEM; return -1; }
    return real(at, size, how);
}

#define MAP(name, offset_type) \
    void *name(void *at, size_t size, int how, int flags, int descriptor, offset_type offset) { \
        NEXT(name); \
        if (is_ours(CALLER) && fails(MEMORY)) { errno = ENOMEM; return MAP_FAILED; } \
        return real(at, size, how, flags, descriptor, offset); \
    }
MAP(mmap, off_t) MAP(mmap64, off64_t)

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t size) {
    if (size >= LARGE && is_ours(CALLER) && fails(MEMORY)) { errno = ENOMEM; return NULL; }
    return __libc_malloc(size);
}
void *calloc(size_t number, size_t size) {
    if (number * size >= LARGE && is_ours(CALLER) && fails(MEMORY)) { errno = ENOMEM; return NULL; }
    return __libc_calloc(number, size);
}
void *realloc(void *old, size_t size) {
    if (size >= LARGE && is_ours(CALLER) && fails(MEMORY)) { errno = ENOMEM; return NULL; }
    return __libc_realloc(old, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    NEXT(pthread_create);
    if (fails(STARTS)) return EAGAIN;
    return real(thread, how, run, with);
}
pid_t fork(void) { NEXT(fork); if (fails(STARTS)) { errno = EAGAIN; return -1; } return real(); }

// Python's allocators, as pymem.h declares them; looked up, since the shim is not linked with Python.
typedef struct {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} Allocator;
static Allocator python[3];

static void *object_malloc(void *which, size_t size) {
    Allocator *real = which;
    return fails(OBJECTS) ? NULL : real->malloc(real->context, size);
}
static void *object_calloc(void *which, size_t number, size_t size) {
    Allocator *real = which;
    return fails(OBJECTS) ? NULL : real->calloc(real->context, number, size);
}
static void *object_realloc(void *which, void *old, size_t size) {
    Allocator *real = which;
    return fails(OBJECTS) ? NULL : real->realloc(real->context, old, size);
}
static void object_free(void *which, void *old) {
    Allocator *real = which;
    real->free(real->context, old);
}

void ferry_count_objects(void) {
    void (*get)(int, Allocator *) = (void (*)(int, Allocator *))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, Allocator *) = (void (*)(int, Allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    for (int domain = 0; domain < 3; domain++) {  // raw, mem, object
        get(domain, &python[domain]);
        Allocator ours = {&python[domain], object_malloc, object_calloc, object_realloc, object_free};
        set(domain, &ours);
    }
}
