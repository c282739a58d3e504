"""Counts what tables of rocprofv3 hold, independently of gputrail: prints a line of JSON."""

import csv
import json
import re
import sys
from collections import defaultdict
from pathlib import Path


def sums(rows, name):
    table = defaultdict(lambda: [0, 0])
    for row in rows:
        entry = table[name(row)]
        entry[0] += 1
        entry[1] += int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
    return sorted([name, count, total] for name, (count, total) in table.items())


def kernel(row):
    return re.match(r"(?:void )?(.+?)\(", row["Kernel_Name"]).group(1)


rows = [row for file in sorted(Path(sys.argv[1]).glob("*.csv")) for row in csv.DictReader(open(file))]
kernels = [row for row in rows if "Kernel_Name" in row]
calls = [row for row in rows if row.get("Domain", "").startswith("HIP")]
ids = {row["Correlation_Id"] for row in calls}
# Ids are of a process: tables of several that do not name theirs have nothing in common.
processes = {row["Process_Id"] for row in rows if "Process_Id" in row}
print(json.dumps({
    "kernels": sums(kernels, kernel),
    "copies": sums([row for row in rows if "Direction" in row], lambda row: row["Direction"]),
    "calls": sums(calls, lambda row: row["Function"]),
    "markers": sum(row.get("Domain", "").startswith("MARKER") for row in rows),
    "allocations": sum("Allocation_Size" in row for row in rows),
    "scratch": sum("Alloc_Flags" in row for row in rows),
    "counters": sorted([row["Counter_Name"], float(row["Counter_Value"])] for row in rows if "Counter_Name" in row),
    "samples": sum("Sample_Timestamp" in row for row in rows),
    "pairs": sum(len(processes) == 1 and row["Correlation_Id"] in ids for row in kernels),
}))
