/* Declares the one function of libdeflate that decoding calls; wasm_runtime.cpp defines it. */
#ifndef LIBDEFLATE_H
#define LIBDEFLATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint32_t libdeflate_crc32(uint32_t crc, const void* buffer, size_t n_bytes);

#ifdef __cplusplus
}
#endif

#endif
