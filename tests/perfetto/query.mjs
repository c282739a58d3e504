#!/usr/bin/env node
// Asks Perfetto's trace processor about a trace.
//
//   query.mjs [--shell TRACE_PROCESSOR_SHELL] TRACE 'select ...'...     prints tables
//   query.mjs [--shell TRACE_PROCESSOR_SHELL] TRACE                     reads a JSON string with SQL per line of standard
//       input and answers each with a line of JSON: {"columns":[..],"rows":[[..]]} or {"error":".."}
//
// The WebAssembly build comes from the UI that `tools/test install` installed.

import fs from 'node:fs';
import readline from 'node:readline';
import {installed} from './installed.mjs';
import {openShell, openWasm} from './trace_processor.mjs';

const words = process.argv.slice(2);
const shell = words[0] === '--shell' ? words.splice(0, 2)[1] : undefined;
const [trace, ...queries] = words;
if (!trace) fail('usage: query.mjs [--shell TRACE_PROCESSOR_SHELL] TRACE [SQL]...');

function fail(message) {
  console.error(`query.mjs: ${message}`);
  process.exit(1);
}

/** One cell as JSON. 64-bit integers are written out in full: JSON's grammar has no limit, only JavaScript's numbers have. */
function json(cell) {
  if (typeof cell === 'bigint') return cell.toString();
  if (cell instanceof Uint8Array) return JSON.stringify(Buffer.from(cell).toString('hex'));
  return JSON.stringify(cell);
}

let engine;
try {
  engine = shell ? await openShell(shell) : await openWasm(installed('perfetto-ui'));
  await engine.load(fs.readFileSync(trace));
} catch (error) {
  fail(`${trace}: ${error.message}`);     // the message alone: the stack would print the minified bundle
}

if (queries.length) {
  for (const sql of queries) {
    const {columns, rows} = await engine.query(sql).catch((error) => fail(error.message));
    console.log(columns.join('\t'));
    for (const row of rows) console.log(row.map((cell) => cell === null ? 'NULL' : String(cell)).join('\t'));
  }
} else {
  for await (const line of readline.createInterface({input: process.stdin})) {
    const answer = await engine.query(JSON.parse(line)).then(
      ({columns, rows}) => `{"columns":${JSON.stringify(columns)},"rows":[${rows.map((row) => `[${row.map(json).join()}]`).join()}]}`,
      (error) => JSON.stringify({error: error.message}));
    process.stdout.write(answer + '\n');
  }
}
engine.close();
process.stdout.write('', () => process.exit(0));     // V8 would finish compiling the wasm in the background first
