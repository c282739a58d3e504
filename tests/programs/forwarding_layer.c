/* An OpenCL layer whose entry points are somebody else's: those of the program that loads it. */
#include <stddef.h>
#include <stdint.h>

typedef int32_t (*info_function)(uint32_t, size_t, void *, size_t *);
typedef int32_t (*init_function)(uint32_t, const void *, uint32_t *, const void **);

static info_function info;
static init_function init;

void forward_to(info_function layer_info, init_function init_layer) {
    info = layer_info;
    init = init_layer;
}

int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *size_ret) { return info ? info(what, size, value, size_ret) : -30; }

int32_t clInitLayer(uint32_t entries, const void *target, uint32_t *entries_ret, const void **dispatch) {
    return init ? init(entries, target, entries_ret, dispatch) : -30;
}

/* Called in place of clInitLayer by Khronos's loader of 2026. */
int32_t clInitLayerWithProperties(uint32_t entries, const void *target, uint32_t *entries_ret, const void **dispatch,
                                  const uint64_t *properties) {
    (void)properties;
    return clInitLayer(entries, target, entries_ret, dispatch);
}
