#!/usr/bin/env python3
"""Prints time and memory of converting 10 to 1000 ranks into Parquet, and of the questions of docs/scale.md about them.

    curve.py GPUTRAIL
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

gputrail, = sys.argv[1:]
scale = pathlib.Path(__file__).with_name('scale.py')


def measured(command):
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f'{command} ended with status {status}')
    return time.monotonic() - begin, used.ru_maxrss / 1024


print('| ranks | events | convert, s | MiB | questions, s | MiB |\n|---:|---:|---:|---:|---:|---:|')
for ranks in 10, 30, 100, 300, 1000:
    with tempfile.TemporaryDirectory() as folder:
        profiles, job = f'{folder}/profiles', f'{folder}/job'
        subprocess.run([gputrail, 'demo', '-q', '--ranks', str(ranks), '--steps', '20', '-o', profiles], check=True)
        seconds, memory = measured([gputrail, 'convert', '-q', profiles, '--format', 'parquet', '-o', job])
        asked, used = measured([sys.executable, scale, job, 'duckdb'])
        events = ranks * 20 * 77
        print(f'| {ranks} | {events} | {seconds:.1f} | {memory:.0f} | {asked:.1f} | {used:.0f} |', flush=True)
