/* The functions of CUDA's driver that Proton calls to describe a device, on a machine without the driver: no context is current, and
   each attribute of a device is 1. */

int cuCtxGetCurrent(void **context) {
    *context = 0;
    return 0;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)attribute, (void)device;
    *value = 1;
    return 0;
}
