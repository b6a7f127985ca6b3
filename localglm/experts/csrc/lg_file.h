/* Files for positional reads past the system's cache, and page-aligned memory to read into. */
#ifndef LG_FILE_H
#define LG_FILE_H

#include <stdint.h>

#include "lg_threads.h"

/* Why a read of a span ended. */
enum { LG_READ_DONE, LG_READ_FAULT, LG_READ_END, LG_READ_WITHDRAWN };

/* Read up to `bytes` at `offset`: how many arrived, 0 at the end of the file, below 0 with the
 * system's error in `fault`. Called by many threads at once. */
typedef int64_t (*lg_read)(int64_t file, void *to, int64_t bytes, int64_t offset, int32_t *fault);

/* `path` is char * in the file system's encoding, on Windows wchar_t *. With `direct` the reads pass
 * the system's cache: addresses, offsets and lengths must then be aligned. Returns 0, or the system's
 * error. */
LG_EXPORT int32_t lg_file_open(const void *path, int direct, int64_t *file);
LG_EXPORT void lg_file_close(int64_t file);
LG_EXPORT int64_t lg_file_read(int64_t file, void *to, int64_t bytes, int64_t offset, int32_t *fault);

/* Let reads of `file` that do not come back fail, where the system can. */
void lg_file_cancel(int64_t file);

/* Whether `fault` says that the read was only interrupted. */
int lg_is_interruption(int32_t fault);

/* Zeroed page-aligned memory, NULL when the system refuses; given back at once. */
LG_EXPORT void *lg_memory_take(int64_t bytes);
LG_EXPORT void lg_memory_give(void *memory, int64_t bytes);

/* Forget the system's cached pages of a range; does nothing where the system cannot. */
LG_EXPORT void lg_file_forget(int64_t file, int64_t offset, int64_t bytes);

#endif
