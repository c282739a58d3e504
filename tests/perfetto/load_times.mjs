#!/usr/bin/env node
// Measures how long Perfetto's trace processor takes to load each of some traces, in processor time: prints a line for each,
// seconds (the median of the rounds, in which the traces take turns) and slices.
//
//   load_times.mjs TRACE...

import fs from 'node:fs';
import {installed} from './installed.mjs';
import {openWasm} from './trace_processor.mjs';

const ROUNDS = 7;
const traces = process.argv.slice(2).map((name) => ({bytes: fs.readFileSync(name), seconds: [], slices: 0}));
const ui = installed('perfetto-ui');
// The first loads compile what they use, for all that come after.
const engines = [];
for (let round = -2; round < ROUNDS; round++) {
  for (const trace of traces) {
    const engine = await openWasm(ui);
    if (engines.length === 0) engines.push(engine);
    const start = process.cpuUsage();
    await engine.load(trace.bytes);
    const {user, system} = process.cpuUsage(start);
    if (round >= 0) trace.seconds.push((user + system) / 1e6);
    trace.slices = (await engine.query('select count(*) from slice')).rows[0][0];
    engine.close();
  }
}
for (const {seconds, slices} of traces) console.log(`${seconds.sort((a, b) => a - b)[ROUNDS >> 1]} ${slices}`);
process.stdout.write('', () => process.exit(0));
