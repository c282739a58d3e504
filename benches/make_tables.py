"""Makes a folder of rocprofv3's CSV and an export of Nsight Systems, each of about as many MB as the argument says."""
import os, sqlite3, sys
size, out = int(sys.argv[1]) * 1_000_000, sys.argv[2]
names = ["void kernel_%d<float>(float*, float const*, int)" % n for n in range(300)]
os.makedirs(out + "/csv")
calls = open(out + "/csv/7_hip_api_trace.csv", "w")
kernels = open(out + "/csv/7_kernel_trace.csv", "w")
copies = open(out + "/csv/7_memory_copy_trace.csv", "w")
calls.write('"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n')
kernels.write('"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n')
copies.write('"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n')
n = written = 0
while written < size:
    n += 1
    t = 1_000_000_000_000 + 10_000 * n
    lines = ('"HIP_RUNTIME_API","hipLaunchKernel",7,%d,%d,%d,%d\n' % (7 + n % 4, n, t, t + 3000),
        '"KERNEL_DISPATCH","Agent 4",%d,%d,7,%d,%d,"%s",%d,%d,%d,0,0,8,0,16,64,1,1,65536,1,1\n'
        % (n % 4, n % 4, n, n % 300, names[n % 300], n, t + 5000, t + 30000),
        '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,"Agent 0","Agent 4",%d,%d,%d\n' % (n, t + 100, t + 900) if n % 8 == 0 else "")
    for file, line in zip((calls, kernels, copies), lines):
        file.write(line)
        written += len(line)
print("CSV:", n, "calls and kernels,", n // 8, "copies,", written, "bytes")
db = sqlite3.connect(out + "/report.sqlite")
db.executescript("""PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER, shortName INTEGER, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
    blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER);""")
db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i + 1, "kernel_%d" % i) for i in range(300)] + [(1000, "cudaLaunchKernel_v7000")])
pid, n = 1234 << 24, 0
while os.path.getsize(out + "/report.sqlite") < size:
    step = range(n, n + 50000)
    at = lambda i: 10_000 * (i + 1)
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,1000,0,NULL)", ((at(i), at(i) + 3000, pid | 1235 + i % 4, i + 1) for i in step))
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,NULL,?,?,?,?,?,1,1,0,32,512,1,1,128,1,1,0,0,0,0,?)",
        ((at(i) + 5000, at(i) + 30000, 7 + i % 4, i + 1, pid, i % 300 + 1, i % 300 + 1, i) for i in step))
    db.executemany("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,0)", ((at(i) - 50, at(i) + 9000, "step", pid | 1235) for i in step if i % 8 == 0))
    db.commit()
    n += 50000
print("Nsight:", n, "calls and kernels,", n // 8, "ranges,", os.path.getsize(out + "/report.sqlite"), "bytes")
