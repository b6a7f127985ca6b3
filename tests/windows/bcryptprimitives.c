/* Wine 8 has no bcryptprimitives.dll, which programs written in Rust load for random bytes. This one stands in
 * for it in the check under wine; it is never shipped. */
#include <stddef.h>

__declspec(dllimport) unsigned char __stdcall SystemFunction036(void* buffer, unsigned long size);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char* buffer, size_t size) {
    while (size > 0) {
        const unsigned long part = size < (1u << 30) ? (unsigned long)size : (1u << 30);
        if (!SystemFunction036(buffer, part)) return 0;
        buffer += part;
        size -= part;
    }
    return 1;
}
