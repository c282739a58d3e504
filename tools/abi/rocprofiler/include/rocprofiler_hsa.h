/* The types of HSA that ROCProfiler v1 is made of, for machines without HSA's own headers. Where hsa.h, hsa_ext_amd.h,
   amd_hsa_kernel_code.h and hsa_ven_amd_aqlprofile.h are there, include them before rocprofiler.h: then their types are used. */
#ifndef ROCPROFILER_HSA_H
#define ROCPROFILER_HSA_H

#include <stdint.h>

#ifndef HSA_RUNTIME_INC_HSA_H_

typedef enum {
    HSA_STATUS_SUCCESS = 0,
    HSA_STATUS_INFO_BREAK = 1,
    HSA_STATUS_ERROR = 0x1000,
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B,
    HSA_STATUS_ERROR_INVALID_INDEX = 0x100E
} hsa_status_t;

/* A device: its handle in its runtime, in OpenCL the cl_device_id. */
typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;

typedef struct hsa_signal_s {
    uint64_t handle;
} hsa_signal_t;

typedef uint32_t hsa_queue_type32_t;

typedef struct hsa_queue_s {
    hsa_queue_type32_t type;
    uint32_t features;
    void *base_address;
    hsa_signal_t doorbell_signal;
    uint32_t size;
    uint32_t reserved1;
    uint64_t id; /* the queue's handle in its runtime, in OpenCL the cl_command_queue */
} hsa_queue_t;

typedef struct hsa_kernel_dispatch_packet_s {
    uint16_t header;
    uint16_t setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;
    uint32_t private_segment_size;
    uint32_t group_segment_size;
    uint64_t kernel_object;
    void *kernarg_address;
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef enum {
    HSA_DEVICE_TYPE_CPU = 0,
    HSA_DEVICE_TYPE_GPU = 1,
    HSA_DEVICE_TYPE_DSP = 2
} hsa_device_type_t;

#endif

#ifndef HSA_RUNTIME_EXT_AMD_H_

typedef enum {
    HSA_AMD_SEGMENT_GLOBAL = 0,
    HSA_AMD_SEGMENT_READONLY = 1,
    HSA_AMD_SEGMENT_PRIVATE = 2,
    HSA_AMD_SEGMENT_GROUP = 3
} hsa_amd_segment_t;

typedef enum {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4
} hsa_amd_memory_pool_global_flag_t;

#endif

#ifndef AMD_HSA_KERNEL_CODE_H

/* The machine code of a kernel for HSA, 256 bytes, which are 0: no kernel has any here. */
typedef struct amd_kernel_code_s amd_kernel_code_t;

#endif

#ifndef OPENSRC_HSA_RUNTIME_INC_HSA_VEN_AMD_AQLPROFILE_H_

/* A parameter of a trace. No device has traces here. */
typedef struct {
    int parameter_name;
    uint32_t value;
} hsa_ven_amd_aqlprofile_parameter_t;

typedef int hsa_ven_amd_aqlprofile_info_type_t;
#define HSA_VEN_AMD_AQLPROFILE_INFO_TRACE_DATA 3

typedef struct {
    uint32_t sample_id; /* the instance */
    struct {
        void *ptr;
        uint32_t size;
    } trace_data;
    uint64_t reserved;
} hsa_ven_amd_aqlprofile_info_data_t;

typedef hsa_status_t (*hsa_ven_amd_aqlprofile_data_callback_t)(hsa_ven_amd_aqlprofile_info_type_t info_type,
                                                               hsa_ven_amd_aqlprofile_info_data_t *info_data,
                                                               void *callback_data);

#endif

#endif
