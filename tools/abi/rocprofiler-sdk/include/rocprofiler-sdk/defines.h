/* rocprofiler-sdk for gputrail: what its declarations are written with. */
#ifndef ROCPROFILER_SDK_DEFINES_H
#define ROCPROFILER_SDK_DEFINES_H

#define ROCPROFILER_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#define ROCPROFILER_PUBLIC_API ROCPROFILER_ATTRIBUTE(visibility("default"))
#define ROCPROFILER_HIDDEN_API ROCPROFILER_ATTRIBUTE(visibility("hidden"))
#define ROCPROFILER_EXPORT ROCPROFILER_PUBLIC_API
#define ROCPROFILER_IMPORT
#define ROCPROFILER_API
#define ROCPROFILER_NONNULL(...) ROCPROFILER_ATTRIBUTE(nonnull(__VA_ARGS__))

#ifdef __cplusplus
#define ROCPROFILER_EXTERN_C_INIT extern "C" {
#define ROCPROFILER_EXTERN_C_FINI }
#define ROCPROFILER_CXX_CODE(...) __VA_ARGS__
#define ROCPROFILER_HANDLE_LITERAL(type, value) (type{value})
#define ROCPROFILER_UINT64_C(value) uint64_t(value)
#else
#define ROCPROFILER_EXTERN_C_INIT
#define ROCPROFILER_EXTERN_C_FINI
#define ROCPROFILER_CXX_CODE(...)
#define ROCPROFILER_HANDLE_LITERAL(type, value) ((type){value})
#define ROCPROFILER_UINT64_C(value) ((uint64_t)(value))
#endif

/* Programs may set these before they include a header. Nothing is marked here. */
#define ROCPROFILER_SDK_EXPERIMENTAL
#define ROCPROFILER_SDK_DEPRECATED(...)
#ifndef ROCPROFILER_SDK_BETA_COMPAT
#define ROCPROFILER_SDK_BETA_COMPAT 1
#endif
#define ROCPROFILER_SDK_BETA_COMPAT_SUPPORTED 1

/* A version as one number: three parts, each below the first argument. */
#define ROCPROFILER_SDK_COMPUTE_VERSION_VALUE(limit, major, minor, patch) \
    ((limit) * (limit) * (major) + (limit) * (minor) + (patch))
#define ROCPROFILER_SDK_COMPUTE_VERSION(major, minor, patch) ROCPROFILER_SDK_COMPUTE_VERSION_VALUE(100, major, minor, patch)

#endif
