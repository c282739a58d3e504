// Perfetto's trace processor as a query engine: the WebAssembly build that the UI ships, run in a node:vm context
// that looks like a web worker, or a native trace_processor_shell spoken to over its standard streams. Both speak
// the same protocol: TraceProcessorRpcStream of protos/perfetto/trace_processor/trace_processor.proto, of which this
// file encodes and decodes the few messages it needs.
//
//   const engine = await openWasm(uiFolder)      or  await openShell('/path/trace_processor_shell');
//   await engine.load(bytes);
//   const {columns, rows} = await engine.query('select ...');     integers are BigInt, blobs Uint8Array

import {spawn} from 'node:child_process';
import {webcrypto as crypto} from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

// Numbers of TraceProcessorRpc and its messages.
const RPC_STREAM_MESSAGE = 1;
const RPC = {sequence: 1, request: 2, invalidRequest: 4, fatalError: 5, appendData: 101, queryArguments: 103,
  appendResult: 201, queryResult: 203};
const METHOD = {appendData: 1, finalizeData: 2, query: 3};
const APPEND_RESULT_ERROR = 2;
const QUERY_ARGUMENTS_SQL = 1;
const QUERY_RESULT = {columnNames: 1, error: 2, batch: 3};
const BATCH = {cells: 1, integers: 2, floats: 3, blobs: 4, strings: 5, last: 6};
const CELL = {null: 1, integer: 2, float: 3, string: 4, blob: 5};

const LOAD_STEP = 16 << 20;

// ------------------------------------------------------------------------------------------ the wire format

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; ) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    if (rest === 0n) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

const numberField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesField = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

/** Reads one varint at `at`; undefined when the bytes end inside it. */
function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; at < bytes.length; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return {value, next: at};
  }
  return undefined;
}

/** The fields of a message: number, and value as BigInt (varint), number (64 bit: double) or Buffer. */
function* fieldsOf(message) {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.length);
  for (let at = 0; at < bytes.length; ) {
    const key = readVarint(bytes, at);
    const field = Number(key.value >> 3n);
    const wireType = Number(key.value & 7n);
    at = key.next;
    if (wireType === 0) {
      const number = readVarint(bytes, at);
      at = number.next;
      yield [field, number.value];
    } else if (wireType === 1) {
      yield [field, bytes.readDoubleLE(at)];
      at += 8;
    } else if (wireType === 2) {
      const length = readVarint(bytes, at);
      at = length.next + Number(length.value);
      yield [field, bytes.subarray(length.next, at)];
    } else {
      throw new Error(`trace processor answered with wire type ${wireType} in field ${field}`);
    }
  }
}

function* packedVarints(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const {value, next} = readVarint(bytes, at);
    at = next;
    yield value;
  }
}

/** Adds the cells of one CellsBatch to `cells`; true when it was the last batch of its query. */
function readBatch(batch, cells) {
  let types = Buffer.alloc(0);
  let last = false;
  const integers = [], floats = [], blobs = [];
  let strings = [];
  for (const [field, value] of fieldsOf(batch)) {
    if (field === BATCH.cells) types = value;
    else if (field === BATCH.integers) for (const v of packedVarints(value)) integers.push(BigInt.asIntN(64, v));
    else if (field === BATCH.floats && typeof value === 'number') floats.push(value);
    else if (field === BATCH.floats) for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    else if (field === BATCH.blobs) blobs.push(new Uint8Array(value));
    else if (field === BATCH.strings) strings = value.toString('utf8').split('\0');
    else if (field === BATCH.last) last = value !== 0n;
  }
  const next = {integer: 0, float: 0, string: 0, blob: 0};
  for (const type of packedVarints(types)) {
    switch (Number(type)) {
      case CELL.null: cells.push(null); break;
      case CELL.integer: cells.push(integers[next.integer++]); break;
      case CELL.float: cells.push(floats[next.float++]); break;
      case CELL.string: cells.push(strings[next.string++]); break;
      case CELL.blob: cells.push(blobs[next.blob++]); break;
      default: throw new Error(`trace processor answered with a cell of type ${type}`);
    }
  }
  return last;
}

// ---------------------------------------------------------------------------------------------- the client

/** One trace processor behind a pair of byte streams: `send` takes bytes to it, `receive` is given its bytes. */
class Engine {
  #send;
  #close;
  #sequence = 0;
  #received = Buffer.alloc(0);
  #replies = [];
  #waiting = null;

  constructor(send, close) {
    this.#send = send;
    this.#close = close;
  }

  receive(bytes) {
    this.#received = this.#received.length ? Buffer.concat([this.#received, bytes]) : Buffer.from(bytes);
    for (;;) {
      if (this.#received.length < 2) break;
      if (this.#received[0] !== ((RPC_STREAM_MESSAGE << 3) | 2)) return this.fail(new Error('the reply stream of trace processor is out of step'));
      const length = readVarint(this.#received, 1);
      if (!length || this.#received.length < length.next + Number(length.value)) break;
      const end = length.next + Number(length.value);
      this.#replies.push(this.#received.subarray(length.next, end));
      this.#received = this.#received.subarray(end);
    }
    this.#waiting?.resolve();
  }

  fail(error) {
    this.failure = error;
    this.#waiting?.reject(error);
  }

  async #reply() {
    while (this.#replies.length === 0) {
      if (this.failure) throw this.failure;
      await new Promise((resolve, reject) => { this.#waiting = {resolve, reject}; });
      this.#waiting = null;
    }
    const reply = {};
    for (const [field, value] of fieldsOf(this.#replies.shift())) reply[field] = value;
    if (reply[RPC.fatalError]) throw new Error(reply[RPC.fatalError].toString('utf8'));
    if (reply[RPC.invalidRequest]) throw new Error('this trace processor does not know the request');
    return reply;
  }

  #request(method, ...argument) {
    const message = Buffer.concat([numberField(RPC.sequence, this.#sequence++), numberField(RPC.request, method), ...argument]);
    this.#send(bytesField(RPC_STREAM_MESSAGE, message));
  }

  async load(bytes) {
    for (let at = 0; at < bytes.length; at += LOAD_STEP) {
      this.#request(METHOD.appendData, bytesField(RPC.appendData, bytes.subarray(at, at + LOAD_STEP)));
      const result = (await this.#reply())[RPC.appendResult];
      for (const [field, value] of fieldsOf(result ?? Buffer.alloc(0)))
        if (field === APPEND_RESULT_ERROR && value.length) throw new Error(value.toString('utf8'));
    }
    this.#request(METHOD.finalizeData);
    await this.#reply();
  }

  async query(sql) {
    this.#request(METHOD.query, bytesField(RPC.queryArguments, bytesField(QUERY_ARGUMENTS_SQL, Buffer.from(sql))));
    const columns = [], cells = [];
    for (let last = false; !last; ) {
      const result = (await this.#reply())[RPC.queryResult];
      for (const [field, value] of fieldsOf(result)) {
        if (field === QUERY_RESULT.columnNames) columns.push(value.toString('utf8'));
        else if (field === QUERY_RESULT.error && value.length) throw new Error(value.toString('utf8'));
        else if (field === QUERY_RESULT.batch) last = readBatch(value, cells);
      }
    }
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
    return {columns, rows};
  }

  close() { this.#close(); }
}

// ---------------------------------------------------------------------------------------------- the engines

/** The folder of one UI version (with engine_bundle.js) inside the UI's distribution folder. */
export function versionFolder(uiFolder) {
  const version = fs.readdirSync(uiFolder).find((name) => fs.existsSync(path.join(uiFolder, name, 'engine_bundle.js')));
  if (!version) throw new Error(`${uiFolder}: no Perfetto UI in it (expected a folder vNN with engine_bundle.js)`);
  return path.join(uiFolder, version);
}

export async function openWasm(uiFolder) {
  const folder = versionFolder(uiFolder);
  // The bundle is compiled for web workers: it fetches the .wasm with a synchronous XMLHttpRequest and takes its
  // requests from a MessagePort that the first message hands over.
  const worker = {
    console: {log() {}, warn() {}, error() {}, info() {}, debug() {}},
    WorkerGlobalScope: class {},
    XMLHttpRequest: class {
      open(_method, url) { this.file = path.join(folder, path.basename(url)); }
      send() {
        const bytes = fs.readFileSync(this.file);
        this.status = 200;
        this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      }
    },
    importScripts() {},
    location: {href: 'http://localhost/engine_bundle.js'},
    performance, crypto, URL, TextEncoder, TextDecoder, queueMicrotask, setTimeout, clearTimeout, setInterval, clearInterval,
  };
  const realm = vm.createContext(worker);
  vm.runInContext('globalThis.self = globalThis', realm);
  const bundle = path.join(folder, 'engine_bundle.js');
  vm.runInContext(fs.readFileSync(bundle, 'utf8'), realm, {filename: bundle});
  const WorkerBytes = vm.runInContext('Uint8Array', realm);     // the bundle tests with instanceof, in its own realm
  const port = {};
  const engine = new Engine((bytes) => port.onmessage({data: WorkerBytes.from(bytes)}), () => {});
  port.postMessage = (data) => engine.receive(data);
  realm.onmessage({data: port});
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);     // start-up ends in a promise
  return engine;
}

export async function openShell(program) {
  const child = spawn(program, ['--stdiod'], {stdio: ['pipe', 'pipe', 'ignore']});
  const engine = new Engine((bytes) => child.stdin.write(bytes), () => child.stdin.end());
  child.stdout.on('data', (bytes) => engine.receive(bytes));
  child.stdin.on('error', (error) => engine.fail(error));
  child.on('error', (error) => engine.fail(error));
  child.on('exit', (code) => engine.fail(new Error(`${program} ended with exit code ${code}`)));
  return engine;
}
