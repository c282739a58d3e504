"""Makes `report.arrow` and `report_pqtdir` with pyarrow, as `nsys export --type arrow` and `--type parquetdir` write them.

usage: make.py    (in this folder; needs pyarrow, which the tests do not)
"""

import os

import pyarrow
import pyarrow.parquet

PROCESS = 281475681353728
THREAD = PROCESS + 43


def table(*columns):
    return pyarrow.table([pyarrow.array(values, kind) for _, kind, values in columns], names=[name for name, _, _ in columns])


I32, I64, U64, TEXT = pyarrow.int32(), pyarrow.int64(), pyarrow.uint64(), pyarrow.string()
TABLES = {
    "StringIds": table(
        ("id", I64, [1, 2, 3, 4]),
        ("value", TEXT, ["cudaLaunchKernel_v7000", "cudaMemcpy_v3020", "scale", "void scale<float>(float*, float)"]),
    ),
    "TARGET_INFO_SESSION_START_TIME": table(("utcEpochNs", I64, [1700000000000000000]), ("utcTime", TEXT, ["2023-11-14 22:13:20"])),
    "CUPTI_ACTIVITY_KIND_RUNTIME": table(
        ("start", I64, [1000, 5000]), ("end", I64, [2000, 9000]), ("eventClass", I32, [0, 0]), ("globalTid", U64, [THREAD, THREAD]),
        ("correlationId", I32, [7, 8]), ("nameId", I32, [1, 2]), ("returnValue", I32, [0, 0]), ("callchainId", I32, [None, None]),
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": table(
        ("start", I64, [2500]), ("end", I64, [4500]), ("deviceId", I32, [0]), ("contextId", I32, [1]), ("streamId", I32, [7]),
        ("correlationId", I32, [7]), ("globalPid", U64, [PROCESS]), ("demangledName", I32, [4]), ("shortName", I32, [3]),
        ("gridX", I32, [4]), ("gridY", I32, [1]), ("gridZ", I32, [1]), ("blockX", I32, [128]), ("blockY", I32, [1]), ("blockZ", I32, [1]),
        ("registersPerThread", I32, [32]), ("graphNodeId", U64, [None]),
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": table(
        ("start", I64, [6000]), ("end", I64, [8000]), ("deviceId", I32, [0]), ("contextId", I32, [1]), ("streamId", I32, [7]),
        ("correlationId", I32, [8]), ("globalPid", U64, [PROCESS]), ("bytes", I64, [4096]), ("copyKind", I32, [2]),
    ),
    "NVTX_EVENTS": table(
        ("start", I64, [500, 600]), ("end", I64, [9500, None]), ("eventType", I32, [59, 34]), ("globalTid", U64, [THREAD, THREAD]),
        ("text", TEXT, ["step", "mark"]), ("doubleValue", pyarrow.float64(), [None, 0.5]),
    ),
}

with open("report.arrow", "wb") as out:
    for name, rows in TABLES.items():
        schema = rows.schema.with_metadata({"table_name": name})
        with pyarrow.ipc.new_stream(out, schema) as writer:
            writer.write_table(rows.replace_schema_metadata({"table_name": name}))

os.makedirs("report_pqtdir", exist_ok=True)
for name, rows in TABLES.items():
    pyarrow.parquet.write_table(rows, f"report_pqtdir/{name}.parquet", compression="snappy")
