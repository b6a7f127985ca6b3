/* Activation quantisation, section 1 of docs/design/arithmetic.md. */
#ifndef LG_QUANTISE_H
#define LG_QUANTISE_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

void LG_NAME(quantise_run32)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum);
void LG_NAME(quantise_super)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum);
/* Sets with panels only. */
void LG_NAME(weave)(const int8_t *q, const int16_t *sum, int64_t blocks, int8_t *woven, int16_t *woven_sum);

#endif
