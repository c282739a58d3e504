/* An OpenCL loader that asks the layers which OPENCL_LAYERS names for their version, and takes none of them. It has no platforms. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int (*layer_info)(unsigned what, size_t size, void *value, size_t *size_ret);

int clGetPlatformIDs(unsigned entries, void *platforms, unsigned *count);

static void ask(void) {
    char *layers = getenv("OPENCL_LAYERS");
    layers = layers ? strdup(layers) : NULL;
    for (char *rest = layers, *name; rest && (name = strsep(&rest, ":"));) {
        void *layer = dlopen(name, RTLD_NOW);
        layer_info info = layer ? (layer_info)(size_t)dlsym(layer, "clGetLayerInfo") : NULL;
        unsigned version;
        if (info) info(0x4240, sizeof version, &version, NULL);
        if (layer) dlclose(layer);
    }
    free(layers);
}

int clGetPlatformIDs(unsigned entries, void *platforms, unsigned *count) {
    static int is_asked;
    (void)entries, (void)platforms;
    if (!is_asked++) ask();
    if (count) *count = 0;
    return 0;
}
