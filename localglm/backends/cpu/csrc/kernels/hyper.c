/* Hyper-connections: the mixing numbers of a site, the write-back, and the mean of the streams.
 * Sums over streams ascend. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

/* Softmax of each row plus epsilon, then columns and rows in turn; ends on columns. */
static void sinkhorn(float *c, int64_t s, int rounds, float epsilon) {
    for (int64_t i = 0; i < s; i++) {
        float largest = c[i * s], sum = 0.0f;
        for (int64_t j = 1; j < s; j++) largest = c[i * s + j] > largest ? c[i * s + j] : largest;
        for (int64_t j = 0; j < s; j++) {
            c[i * s + j] = lg_exp(c[i * s + j] - largest);
            sum = sum + c[i * s + j];
        }
        for (int64_t j = 0; j < s; j++) c[i * s + j] = c[i * s + j] / sum + epsilon;
    }
    for (int round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < s && round > 0; i++) {
            float sum = 0.0f;
            for (int64_t j = 0; j < s; j++) sum = sum + c[i * s + j];
            for (int64_t j = 0; j < s; j++) c[i * s + j] = c[i * s + j] / (sum + epsilon);
        }
        for (int64_t j = 0; j < s; j++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < s; i++) sum = sum + c[i * s + j];
            for (int64_t i = 0; i < s; i++) c[i * s + j] = c[i * s + j] / (sum + epsilon);
        }
    }
}

void LG_NAME(lg_hyper_mix_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_hyper_args *a = context;
    const int64_t s = a->s, d = a->d;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const float *mix = a->mix + t * s * (2 + s), *x = a->streams + t * s * d;
        float *post = a->post + t * s, *comb = a->comb + t * s * s, *out = a->input + t * d;
        float pre[LG_MAX_STREAMS];
        for (int64_t i = 0; i < s; i++) {
            pre[i] = lg_sigmoid(lg_fma(mix[i], a->scale[0], a->base[i])) + a->epsilon;
            post[i] = 2.0f * lg_sigmoid(lg_fma(mix[s + i], a->scale[1], a->base[s + i]));
        }
        for (int64_t i = 0; i < s * s; i++)
            comb[i] = lg_fma(mix[2 * s + i], a->scale[2], a->base[2 * s + i]);
        sinkhorn(comb, s, a->rounds, a->epsilon);
        for (int64_t c = 0; c < d; c += 8) {
            lg_f8 sum = lg_all8(0.0f);
            for (int64_t i = 0; i < s; i++)
                sum = lg_fma8(lg_all8(pre[i]), lg_load8(x + i * d + c, d - c), sum);
            lg_store8(out + c, sum, d - c);
        }
    }
}

void LG_NAME(lg_hyper_post_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_streams_args *a = context;
    const int64_t s = a->s, d = a->d;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const float *x = a->streams + t * s * d, *post = a->post + t * s, *comb = a->comb + t * s * s;
        for (int64_t j = 0; j < s; j++) {
            float *out = a->out + (t * s + j) * d;
            for (int64_t c = 0; c < d; c += 8) {
                lg_f8 sum = lg_all8(post[j]) * lg_load8(a->y + t * d + c, d - c);
                for (int64_t i = 0; i < s; i++)
                    sum = lg_fma8(lg_all8(comb[i * s + j]), lg_load8(x + i * d + c, d - c), sum);
                lg_store8(out + c, sum, d - c);
            }
        }
    }
}

void LG_NAME(lg_stream_mean_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_streams_args *a = context;
    const int64_t s = a->s, d = a->d;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const float *x = a->streams + t * s * d;
        for (int64_t c = 0; c < d; c += 8) {
            lg_f8 sum = lg_load8(x + c, d - c);
            for (int64_t i = 1; i < s; i++) sum = sum + lg_load8(x + i * d + c, d - c);
            lg_store8(a->out + t * d + c, sum / lg_all8((float)s), d - c);
        }
    }
}
