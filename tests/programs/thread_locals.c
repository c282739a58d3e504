/* A library with BYTES bytes of thread-local variables of the initial-exec model: they lie in the memory that each thread got
 * when it began. */
static __thread char variables[BYTES] __attribute__((tls_model("initial-exec")));

char *use_thread_locals(void);
char *use_thread_locals(void) { return variables; }
