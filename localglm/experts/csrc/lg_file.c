#define _GNU_SOURCE
#include "lg_file.h"

#if defined(_WIN32)

/* A handle opened without OVERLAPPED runs one read at a time, whatever the number of threads. */
int32_t lg_file_open(const void *path, int direct, int64_t *file) {
    HANDLE handle = CreateFileW(
        path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
        FILE_FLAG_OVERLAPPED | (direct ? FILE_FLAG_NO_BUFFERING : FILE_FLAG_RANDOM_ACCESS), NULL);
    if (handle == INVALID_HANDLE_VALUE) return (int32_t)GetLastError();
    *file = (int64_t)(intptr_t)handle;
    return 0;
}

void lg_file_close(int64_t file) { CloseHandle((HANDLE)(intptr_t)file); }

int64_t lg_file_read(int64_t file, void *to, int64_t bytes, int64_t offset, int32_t *fault) {
    HANDLE handle = (HANDLE)(intptr_t)file;
    OVERLAPPED place = {0};
    DWORD got = 0, error = 0;
    place.Offset = (DWORD)offset;
    place.OffsetHigh = (DWORD)(offset >> 32);
    place.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!place.hEvent) {
        *fault = (int32_t)GetLastError();
        return -1;
    }
    if (!ReadFile(handle, to, (DWORD)bytes, NULL, &place)) error = GetLastError();
    if (error == 0 || error == ERROR_IO_PENDING) {
        error = 0;
        if (!GetOverlappedResult(handle, &place, &got, TRUE)) error = GetLastError();
    }
    CloseHandle(place.hEvent);
    if (error == 0 || error == ERROR_HANDLE_EOF) return (int64_t)got;
    *fault = (int32_t)error;
    return -1;
}

void lg_file_cancel(int64_t file) { CancelIoEx((HANDLE)(intptr_t)file, NULL); }

int lg_is_interruption(int32_t fault) {
    (void)fault;
    return 0;
}

void *lg_memory_take(int64_t bytes) {
    return VirtualAlloc(NULL, (SIZE_T)bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void lg_memory_give(void *memory, int64_t bytes) {
    (void)bytes;
    VirtualFree(memory, 0, MEM_RELEASE);
}

void lg_file_forget(int64_t file, int64_t offset, int64_t bytes) {
    (void)file;
    (void)offset;
    (void)bytes;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(O_DIRECT)
#define O_DIRECT 0
#endif

/* O_NONBLOCK: a pipe in the place of the file must not make the opening wait for a writer. */
int32_t lg_file_open(const void *path, int direct, int64_t *file) {
    int descriptor;
    do descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (direct ? O_DIRECT : 0));
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return errno;
#if defined(F_NOCACHE)
    if (direct && fcntl(descriptor, F_NOCACHE, 1) < 0) {
        int32_t fault = errno;
        close(descriptor);
        return fault;
    }
#endif
    *file = descriptor;
    return 0;
}

void lg_file_close(int64_t file) { close((int)file); }

int64_t lg_file_read(int64_t file, void *to, int64_t bytes, int64_t offset, int32_t *fault) {
    ssize_t got = pread((int)file, to, (size_t)bytes, (off_t)offset);
    if (got < 0) *fault = errno;
    return got;
}

void lg_file_cancel(int64_t file) { (void)file; }

int lg_is_interruption(int32_t fault) { return fault == EINTR; }

void *lg_memory_take(int64_t bytes) {
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void lg_memory_give(void *memory, int64_t bytes) { munmap(memory, (size_t)bytes); }

void lg_file_forget(int64_t file, int64_t offset, int64_t bytes) {
#if defined(POSIX_FADV_DONTNEED)
    posix_fadvise((int)file, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
#else
    (void)file;
    (void)offset;
    (void)bytes;
#endif
}

#endif
