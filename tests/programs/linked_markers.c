// Is linked with the libraries of ROCTx and CLPerfMarker, and calls each of their functions that marks something.
#include <CLPerfMarker.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern void roctxMarkA(const char*);
extern int roctxRangePushA(const char*);
extern int roctxRangePop(void);
extern uint64_t roctxRangeStartA(const char*);
extern void roctxRangeStop(uint64_t);

int main(int count, char** arguments) {
    printf("push %d", roctxRangePushA("linked range"));
    roctxMarkA("linked moment");
    printf(" pop %d\n", roctxRangePop());
    roctxRangeStop(roctxRangeStartA("linked start"));
    printf("initialize %d", clInitializePerfMarkerAMD());
    printf(" begin %d", clBeginPerfMarkerAMD("linked marker", "group"));
    printf(" end %d\n", clEndPerfMarkerAMD());
    if (count > 1 && strcmp(arguments[1], "finalize") == 0) printf("finalize %d\n", clFinalizePerfMarkerAMD());
    return 0;
}
