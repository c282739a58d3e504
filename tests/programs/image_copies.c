/* Copies between buffers at offsets, and between buffers and images, and what they have copied. */
#include "report.h"

#define SIDE 4

int main(void) {
    open_device();
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    unsigned char data[4 * SIDE * SIDE], back[4 * SIDE * SIDE] = {0};
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)i;
    cl_mem first = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof data, data, NULL);
    cl_mem second = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, NULL);
    STATUS(clEnqueueCopyBuffer(queue, first, second, 8, 16, 24, 0, NULL, NULL));
    STATUS(clEnqueueReadBuffer(queue, second, CL_TRUE, 16, 24, back, 0, NULL, NULL));
    VALUE(memcmp(back, data + 8, 24));

    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc description;
    memset(&description, 0, sizeof description);
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = description.image_height = SIDE;
    cl_int status;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, NULL, &status);
    VALUE(status);
    size_t origin[3] = {0, 0, 0}, region[3] = {SIDE, SIDE, 1};
    STATUS(clEnqueueCopyBufferToImage(queue, first, image, 0, origin, region, 0, NULL, NULL));
    STATUS(clEnqueueCopyImageToBuffer(queue, image, second, origin, region, 0, 0, NULL, NULL));
    STATUS(clEnqueueReadBuffer(queue, second, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
    VALUE(memcmp(back, data, sizeof data));
    clReleaseMemObject(image);
    clReleaseMemObject(second);
    clReleaseMemObject(first);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
