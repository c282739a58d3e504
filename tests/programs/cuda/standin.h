/* What the two stand-ins say to each other. The real libraries do this by private tables.
 *
 * The stand-in of libcuda (libcuda.c) executes nothing: a kernel is a pause. The stand-in of libcupti (libcupti.c)
 * reports its calls and work, as the version that STANDIN_VERSION names would. Both are made from our own declarations. */
#include <stddef.h>
#include <stdint.h>

enum { DRIVER = 1, RUNTIME = 2 };
enum { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_PEER_COPY };

/* A call in progress. */
struct standin_call {
    int domain;
    unsigned number;
    const char *name;
    const void *parameters;
    int status;
    uint32_t id;
    uint64_t word;
};

/* A piece of work. */
struct standin_work {
    int kind;
    uint32_t id, stream;
    uint64_t start, end, bytes;
    int copy_kind;
    const char *name;
    uint32_t grid[3], block[3];
    uint64_t graph_node;
    uint32_t graph;
};

/* Anything else that CUPTI has records of. */
enum { OTHER_WAIT, OTHER_EVENT, OTHER_POOL, OTHER_MANAGED, OTHER_OVERHEAD, OTHER_JIT };
struct standin_other {
    int kind;
    uint32_t id, what, stream, event;
    uint64_t start, end, address, value;
};

/* What a graph's change is about: handles of graphs, nodes and executable graphs, which begin with their number. */
struct standin_graph {
    void *graph, *original_graph, *node, *original_node;
    int node_type;
    void *dependency, *executable;
};

struct standin_tool {
    void (*call)(struct standin_call *call, int exits);
    void (*work)(const struct standin_work *work);
    void (*initialized)(void);
    void (*memory)(uint32_t id, int operation, uint64_t address, uint64_t bytes);
    void (*other)(const struct standin_other *other);
    /* A context is created or about to be destroyed, a module was loaded or is about to be unloaded. */
    void (*context)(uintptr_t context, int device, int exists);
    void (*module)(uintptr_t context, const char *cubin, size_t size, int exists);
    void (*stream)(uintptr_t context, uintptr_t stream, unsigned flags, int priority, int exists);
    /* A graph changes: CUPTI's number of the change. */
    void (*graph)(unsigned number, const struct standin_graph *change);
};

/* Exported by the stand-in of libcuda. */
void standin_observe(const struct standin_tool *tool);
