/* Activation quantisation, section 1 of docs/design/arithmetic.md. */
#ifndef LG_QUANTISE_H
#define LG_QUANTISE_H

#include "../lg_blocks.h"

void LG_NAME(quantise_run32)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum);
void LG_NAME(quantise_super)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum);

#endif
