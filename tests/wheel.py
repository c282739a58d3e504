"""Uses gputrail as it comes with pip: records a program in PyOpenCL, converts a profile of PyTorch's, and tests a tool of CUPTI as
the page about vendors' APIs says.

    wheel.py REPOSITORY   in a folder of its own, with the environment's `gputrail` first in PATH

Run by the step `wheel` of tools/test.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys

repository = pathlib.Path(sys.argv[1])
DATA = repository / "tests/data/kineto/cuda-event-sync-multi-stream.json.gz"
RUNS = 25
PROGRAM = f"""
import numpy
import pyopencl as cl
[pocl] = [one for one in cl.get_platforms() if one.name == "Portable Computing Language"]
context = cl.Context(pocl.get_devices()[:1])
queue = cl.CommandQueue(context)
source = "kernel void twice(global float *a) {{ a[get_global_id(0)] *= 2; }}"
twice = cl.Program(context, source).build().twice
values = numpy.ones(1 << 12, numpy.float32)
buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR | cl.mem_flags.READ_WRITE, hostbuf=values)
for _ in range({RUNS}):
    twice(queue, values.shape, None, buffer)
cl.enqueue_copy(queue, values, buffer)
print(int(values[0]) == 1 << {RUNS})
"""


def gputrail(*arguments):
    ended = subprocess.run(["gputrail", *arguments], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"gputrail {' '.join(map(str, arguments))}: exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


def kernels(trace):
    """The number of runs of each kernel of a trace."""
    rows = json.loads(gputrail("summary", "--format", "json", trace))["kernels"]
    return {row["name"]: row["count"] for row in rows}


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, expected {wanted!r}")


pathlib.Path("program.py").write_text(PROGRAM)
said = gputrail("record", "-o", "recorded.pftrace", "--", sys.executable, "program.py")
expect(said.strip(), "True", "what the program printed")
expect(kernels("recorded.pftrace"), {"twice": RUNS}, "kernels of the program")

events = json.load(gzip.open(DATA))["traceEvents"]
ran = collections.Counter(event["name"] for event in events if event.get("cat") == "kernel")
gputrail("convert", str(DATA), "-o", "converted.pftrace")
expect(sum(kernels("converted.pftrace").values()), sum(ran.values()), "kernels of the profile")
gputrail("check", "recorded.pftrace")
gputrail("check", "converted.pftrace")

# The lines of the page that build and install have been done; those for what pip has installed take their place.
page = (repository / "docs/apis.md").read_text()
lines = page.split("```sh\n", 1)[1].split("```", 1)[0].splitlines()
expect([line.split()[0] for line in lines[:4]], ["sudo", "cargo", "export", "gputrail"], "the first lines of docs/apis.md")
instead = ["export CUDA_INJECTION64_PATH=./libtool.so", "gputrail library --api cupti sdk"]
for line in instead:
    expect(f"`{line}`" in page, True, f"whether docs/apis.md says {line}")
lines = instead + lines[4:]
pathlib.Path("examples").symlink_to(repository / "examples")
subprocess.run(["sh", "-ex"], input="\n".join(lines), text=True, check=True)
print("recorded", RUNS, "kernels, converted", sum(ran.values()), "and counted those of a tool of CUPTI")
