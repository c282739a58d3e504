/* A program that is linked with gputrail and chooses the counters of each kernel: on the simulated GPU, whose counts are
   compared with the kernels' own sizes, and of its own kernels, which have to compute what they compute without. Compiled
   as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

#define MOST 4096
static gputrail_counter_set one, many;
static gputrail_counter_set_options options;
static gputrail_counter_set_options in_batch;
static gputrail_counter_set none;
static gputrail_buffer buffer;
static gputrail_agent_id counted_agent;
/* The kernels for which counters were chosen, in their order, and what came of them. */
static struct choice {
    gputrail_correlation_id call;
    uint64_t waves;
    int chosen, values;
} choices[MOST];
static int kernels, all_values, records, on_gpu;
static gputrail_status stopped;
static gputrail_context context;

static gputrail_counter_set a_set(gputrail_agent_id agent, const char *counters, uint32_t per_pass) {
    gputrail_counter_set set = {0};
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.counters = counters;
    options.per_pass = per_pass;
    EXPECT(gputrail_counter_set_create(agent, &options, &set), GPUTRAIL_OK);
    return set;
}

static void choose(const gputrail_record_kernel_dispatch *dispatch, gputrail_counter_set *set, void *user_data) {
    struct choice *choice = &choices[kernels];
    uint64_t groups = 1, items = 1;
    int of;
    CHECK(user_data == choices && set->handle == 0 && kernels < MOST);
    CHECK(dispatch->work.agent == counted_agent && dispatch->kernel != 0);
    for (of = 0; of < 3; of++) {
        uint64_t size = dispatch->workgroup[of] ? dispatch->workgroup[of] : 1;
        groups *= (dispatch->grid[of] + size - 1) / size;
        items *= size;
    }
    choice->call = dispatch->work.correlation;
    choice->waves = groups * ((items + 63) / 64);
    /* Two sets in turn, and then a kernel that is not counted. */
    choice->chosen = kernels++ % 3;
    if (choice->chosen == 0) *set = one;
    if (choice->chosen == 1) {
        /* Sets may be created here. */
        if (!many.handle) many = a_set(counted_agent, "SQ_WAVES,SQ_INSTS_VALU,SQ_INSTS_SALU", 1);
        *set = many;
    }
    stopped = gputrail_context_stop(context);
}

static void counted(const gputrail_record_counter_value *values, size_t count, void *user_data) {
    int of;
    CHECK(user_data == choices && count > 0);
    /* Kernels of a graph have one call, and end in their order; a kernel ends after those that it launches. */
    for (of = 0; of < kernels; of++)
        if (choices[of].call == values[0].correlation && choices[of].chosen == (count > 1) && choices[of].values == 0) break;
    CHECK(of < kernels);
    choices[of].values += (int)count;
    all_values += (int)count;
    CHECK(values[0].invalid == 0 && values[0].agent == counted_agent && values[count - 1].remaining == 0);
    if (on_gpu) CHECK(values[0].value == choices[of].waves);
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    if (counted_agent) EXPECT(gputrail_counter_set_create(counted_agent, &in_batch, &none), GPUTRAIL_BUSY);
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) records += record->kind == GPUTRAIL_KIND_COUNTER_VALUE;
}

static void agent_known(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    if (counted_agent) return;
    counted_agent = ((const gputrail_record_agent *)callback->record)->id;
}

static gputrail_context a_context(void) {
    gputrail_kind dispatches = GPUTRAIL_KIND_KERNEL_DISPATCH;
    gputrail_selection selection;
    gputrail_context made = {0};
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &dispatches;
    selection.kind_count = 1;
    EXPECT(gputrail_context_create(&made), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(made, buffer, &selection), GPUTRAIL_OK);
    return made;
}

/* All that was chosen came, once, and nothing else. */
static void check_choices(const char *where, int of_one, int of_many) {
    int of, expected = 0;
    for (of = 0; of < kernels; of++) {
        int wanted = choices[of].chosen == 0 ? of_one : choices[of].chosen == 1 ? of_many : 0;
        expected += wanted;
        if (choices[of].values == wanted) continue;
        printf("%s: kernel %d has %d values, expected %d\n", where, of, choices[of].values, wanted);
        failures++;
    }
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    CHECK(all_values == expected && records == expected && expected > 0);
    CHECK(stopped == GPUTRAIL_BUSY);
    memset(choices, 0, sizeof choices);
    kernels = all_values = records = 0;
}

static void chosen_when_known(gputrail_callback *callback, void *user_data) {
    if (counted_agent) return;
    agent_known(callback, user_data);
    one = a_set(counted_agent, "SQ_WAVES", 0);
    EXPECT(gputrail_context_count_chosen(context, buffer, counted_agent, choose, counted, choices), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    on_gpu = 1;
}

static void on_the_simulated_gpu(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    gputrail_simulation_options simulation;
    gputrail_subscriber subscriber;
    gputrail_context watching;
    uint32_t passes = 0;
    EXPECT(gputrail_context_create(&watching), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(watching, &known, 1, chosen_when_known, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(watching), GPUTRAIL_OK);
    context = a_context();
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    EXPECT(gputrail_simulation_run(&simulation, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_counter_set_passes(many, &passes), GPUTRAIL_OK);
    CHECK(passes == 3 && kernels > 20);
    check_choices("simulated GPU", 1, 3);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(watching), GPUTRAIL_OK);
    EXPECT(gputrail_counter_set_destroy(one), GPUTRAIL_OK);
    EXPECT(gputrail_counter_set_destroy(one), GPUTRAIL_NO_SUCH_COUNTER_SET);
    EXPECT(gputrail_counter_set_passes(one, &passes), GPUTRAIL_NO_SUCH_COUNTER_SET);
    EXPECT(gputrail_counter_set_destroy(many), GPUTRAIL_OK);
    many.handle = 0;
    on_gpu = 0;
}

static void of_own_kernels(void) {
    static const char *source = "kernel void more(global int *all, int by) { all[get_global_id(0)] += by; }\n";
    enum { LAUNCHES = 30, ITEMS = 256 };
    gputrail_counter_group_options group_options;
    gputrail_counter_group group;
    cl_platform_id platform;
    cl_device_id device;
    cl_context in;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem all;
    gputrail_agent_id agent;
    size_t items = ITEMS, huge = 1u << 30;
    int numbers[ITEMS], by = 3, launch, of, wrong = 0;

    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(in, device, 0, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    EXPECT(gputrail_agent_of((uint64_t)(size_t)device, &agent), GPUTRAIL_OK);
    counted_agent = agent;
    one = a_set(agent, "TASK_CLOCK", 0);
    many = a_set(agent, "TASK_CLOCK,PAGE_FAULTS", 1);

    options.counters = "TASK_CLOK";
    EXPECT(gputrail_counter_set_create(agent, &options, &one), GPUTRAIL_NOT_FOUND);
    options.counters = "TASK_CLOCK,";
    EXPECT(gputrail_counter_set_create(agent, &options, &one), GPUTRAIL_INVALID_ARGUMENT);
    options.counters = "TASK_CLOCK";
    EXPECT(gputrail_counter_set_create(999, &options, &one), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_counter_set_create(agent, NULL, &one), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_set_create(agent, &options, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_set_passes(one, NULL), GPUTRAIL_NULL_POINTER);
    options.size = 3;
    EXPECT(gputrail_counter_set_create(agent, &options, &one), GPUTRAIL_WRONG_SIZE);

    /* An agent that is read at a period counts no kernels. */
    memset(&group_options, 0, sizeof group_options);
    group_options.size = sizeof group_options;
    group_options.counters = "TASK_CLOCK";
    group_options.period = 1000000;
    EXPECT(gputrail_counter_group_create(agent, &group_options, &group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
    options.size = sizeof options;
    EXPECT(gputrail_counter_set_create(agent, &options, &one), GPUTRAIL_COUNTERS_NOT_AVAILABLE);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);

    context = a_context();
    EXPECT(gputrail_context_count_chosen(context, buffer, agent, NULL, counted, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_count_chosen(context, buffer, 999, choose, counted, NULL), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_context_count_chosen(context, buffer, agent, choose, counted, choices), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    /* Arguments that are set from now on are known: kernels can run several times. */
    kernel = clCreateKernel(program, "more", NULL);
    memset(numbers, 0, sizeof numbers);
    all = clCreateBuffer(in, CL_MEM_COPY_HOST_PTR, sizeof numbers, numbers, NULL);
    clSetKernelArg(kernel, 0, sizeof all, &all);
    clSetKernelArg(kernel, 1, sizeof by, &by);
    for (launch = 0; launch < LAUNCHES; launch++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &huge, 0, NULL, NULL) != CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, all, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL) == CL_SUCCESS);
    for (of = 0; of < ITEMS; of++) wrong += numbers[of] != by * LAUNCHES;
    CHECK(wrong == 0);
    /* The call that the runtime refused was offered, too, and has no values. */
    CHECK(kernels == LAUNCHES + 1 && choices[LAUNCHES].values == 0);
    kernels = LAUNCHES;
    check_choices("PoCL", 1, 2);
    EXPECT(gputrail_context_stop(context), GPUTRAIL_OK);
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
    clFinish(queue);
    CHECK(kernels == 0);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    clReleaseMemObject(all);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
}

int main(void) {
    uint32_t passes;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    EXPECT(gputrail_counter_set_create(1, &options, &one), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_set_passes(one, &passes), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_set_destroy(one), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counters_add("nowhere.xml", NULL), GPUTRAIL_NOT_INITIALISED);
    in_batch = options;
    in_batch.counters = "SQ_WAVES";
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    EXPECT(gputrail_counters_add("nowhere.xml", NULL), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_counters_add(NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    on_the_simulated_gpu();
    of_own_kernels();
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
