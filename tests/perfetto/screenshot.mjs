#!/usr/bin/env node
// Opens a trace in the real Perfetto UI, in headless Chromium, and takes a picture of it.
//
//   screenshot.mjs TRACE OUT.png [--size 1600x900] [--expand REGEX] [--collapse REGEX] [--pin REGEX]
//       [--zoom 'select start, duration ...'] [--select 'select id ...'] [--table TABLE] [--click 'select ts, dur, track ...']
//       [--run COMMAND=[ARGS]]
//
// REGEX is matched with track names. --zoom shows the nanoseconds that its query names, --select the details of the row
// of TABLE (default: slice) that its query names; --click clicks with the mouse on a slice that it names. --expand, --collapse,
// --pin and --run may be repeated and are done in the order given. Prints one line of JSON with the UI's version, the errors it
// found in the trace, what the details pane says, and how many colours fill the flame graph, if one is open; exit status 1 when
// the trace did not load, or the UI shows errors.
//
// `tools/test install` installs the UI and playwright-core; $CHROMIUM names the browser where it is not
// /usr/bin/chromium. Nothing but 127.0.0.1 is contacted.

import {spawn} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import {click, details, firstRow, idle, launch, loaded, select, uiFile} from './browser.mjs';
import {installed} from './installed.mjs';

const HIDE_SIDEBAR = {id: 'dev.perfetto.ToggleLeftSidebar', args: []};
const TRACKS_COMMANDS = {expand: 'dev.perfetto.ExpandTracksByRegex', collapse: 'dev.perfetto.CollapseTracksByRegex',
  pin: 'dev.perfetto.PinTracksByRegex'};

// ---------------------------------------------------------------------------------------- the command line

const options = {size: '1600x900', table: 'slice', commands: []};
const files = [];
for (let words = process.argv.slice(2); words.length; ) {
  const word = words.shift();
  if (!word.startsWith('--')) { files.push(word); continue; }
  const name = word.slice(2), value = words.shift();
  if (value === undefined) usage(`${word} needs a value`);
  if (name in TRACKS_COMMANDS) options.commands.push({id: TRACKS_COMMANDS[name], args: [value]});
  else if (name === 'run') {
    const [id, args = '[]'] = value.split(/=(.*)/s);
    options.commands.push({id, args: JSON.parse(args)});
  } else if (['size', 'zoom', 'select', 'table', 'click'].includes(name)) options[name] = value;
  else usage(`unknown option ${word}`);
}
const [trace, picture] = files;
if (!picture) usage('expected TRACE OUT.png');
const [width, height] = options.size.split('x').map(Number);
const uiFolder = installed('perfetto-ui');

function usage(message) {
  console.error(`screenshot.mjs: ${message} (the head of this file says how it is used)`);
  process.exit(2);
}

// ------------------------------------------------------------------------------------------------- the run

// Browsers hang, rarely: then there is another one, once. It is a process of its own, which ends this one with its browser.
const PATIENCE_SECONDS = 250;
const IS_ANOTHER = 'GPUTRAIL_SCREENSHOT_AGAIN';
let isGivenUp = false;
setTimeout(() => {
  const said = `screenshot.mjs: ${trace}: the browser has not come to an end for ${PATIENCE_SECONDS} seconds`;
  if (process.env[IS_ANOTHER]) {
    console.error(`${said}, for the second time`);
    process.exit(1);
  }
  console.error(`${said}; trying again`);
  isGivenUp = true;
  const again = spawn(process.execPath, process.argv.slice(1), {stdio: 'inherit', env: {...process.env, [IS_ANOTHER]: '1'}});
  again.on('exit', (status) => process.exit(status ?? 1));
}, PATIENCE_SECONDS * 1000).unref();

const server = http.createServer(serveUi);
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${server.address().port}`;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'gputrail-screenshot-'));
const report = {trace: path.basename(trace), pageErrors: []};
let browser;
try {
  // The wheel's UI asks its own server for a trace under this address; there is none here.
  browser = await launch(profile, {width, height}, (url) => url.startsWith(origin) && !url.endsWith('/vizviewer_info'));
  const page = await openTrace(await browser.newPage());
  for (const {id, args} of [HIDE_SIDEBAR, ...options.commands]) {
    await page.evaluate(({id, args}) => self.app.commands.runCommand(id, ...args), {id, args});
    await idle(page);
  }
  if (options.zoom) await zoom(page, await firstRow(page, options.zoom));
  if (options.select) await select(page, options.table, await firstRow(page, options.select));
  report.flamegraph = await page.evaluate(flamegraphColours);
  if (options.click) await click(page, await firstRow(page, options.click));
  if (options.select || options.click) report.details = await details(page);
  Object.assign(report, await page.evaluate(() => ({
    version: document.body.dataset['perfetto_version'],
    importErrors: self.app.trace.traceInfo.importErrors,
  })));
  await page.mouse.move(0, 0);
  await page.screenshot({path: picture});
} catch (error) {
  report.error = error.message;
} finally {
  await browser?.close();
  server.close();
  fs.rmSync(profile, {recursive: true, force: true});
}
if (!isGivenUp) {
  console.log(JSON.stringify(report));
  // At once: a connection that lingers would keep this process until it takes the browser for one that hangs.
  process.exit(report.error || report.importErrors !== 0 || report.pageErrors.length ? 1 : 0);
}

// ----------------------------------------------------------------------------------------------- its steps

function serveUi(request, response) {
  const file = uiFile(uiFolder, request.url);
  if (!file) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {'content-type': file.type});
  fs.createReadStream(file.path).pipe(response);
}

async function openTrace(page) {
  page.on('pageerror', (error) => report.pageErrors.push(String(error).slice(0, 300)));
  await page.goto(`${origin}/?testing=1`);     // testing: no analytics, and waitForPerfettoIdle()
  const input = await page.waitForSelector('input.trace_file', {state: 'attached'});
  await input.setInputFiles(trace);
  await loaded(page);
  return page;
}

/** How many colours fill the flame graph that is shown; undefined when none is. Runs in the page. */
function flamegraphColours() {
  const panel = document.querySelector('.pf-details-shell');
  const canvas = panel?.querySelector('canvas');
  if (!canvas || !/Flamegraph/.test(panel.innerText)) return undefined;
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Map();
  for (const pixel of new Uint32Array(data.buffer)) pixels.set(pixel, (pixels.get(pixel) ?? 0) + 1);
  return [...pixels].filter(([pixel, count]) => pixel !== 0 && count >= 100).length;
}

async function zoom(page, [start, duration]) {
  const end = String(BigInt(start) + BigInt(duration));
  await page.evaluate(({start, end}) => self.app.trace.timeline.setViewportTime(BigInt(start), BigInt(end)), {start, end});
  await idle(page);
}
