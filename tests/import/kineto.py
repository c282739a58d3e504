#!/usr/bin/env python3
"""Prints what a trace made of a Kineto file has to hold, computed from the JSON alone.

    kineto.py FILE.json.gz      one line of JSON:
        counts      number of complete events of each category
        durations   total duration in ns of each category and name
        pairs       how often a call of each name caused work of each name
        flows       number of forward-backward arrows
"""
import collections
import gzip
import json
import sys
from decimal import Decimal

WORK = ('kernel', 'gpu_memcpy', 'gpu_memset')

with gzip.open(sys.argv[1]) as file:
    events = json.load(file, parse_float=Decimal, parse_int=Decimal)['traceEvents']
complete = [event for event in events if event['ph'] == 'X']
counts = collections.Counter(event['cat'] for event in complete)
durations = collections.Counter()
for event in complete:
    durations[event['cat'], event['name']] += Decimal(event['dur']) * 1000
calls = {event['args']['correlation']: event['name'] for event in complete
         if event['cat'] not in (*WORK, 'cuda_sync') and 'correlation' in event.get('args', {})}
pairs = collections.Counter((calls[event['args']['correlation']], event['name']) for event in complete
                            if event['cat'] in WORK and event['args']['correlation'] in calls)
points = collections.defaultdict(set)
for event in events:
    if event['ph'] in 'sf' and event['cat'] == 'fwdbwd':
        points[event['id']].add(event['ph'])
print(json.dumps({
    'counts': sorted(counts.items()),
    'durations': sorted([*key, int(total)] for key, total in durations.items()),
    'pairs': sorted([*key, count] for key, count in pairs.items()),
    'flows': sum(len(ends) == 2 for ends in points.values()),
}))
