// Drives Perfetto's UI in headless Chromium.
//
// `tools/test install` installs the UI and playwright-core; $CHROMIUM names the browser where it is not
// /usr/bin/chromium.

import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {installed} from './installed.mjs';

const IDLE_MS = 400;
const LOAD_TIMEOUT_MS = 120_000;
const ERROR_DIALOG = '.pf-modal-dialog, .modal-dialog';
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
  '.wasm': 'application/wasm', '.png': 'image/png', '.svg': 'image/svg+xml', '.woff2': 'font/woff2'};

/** A browser that reaches nothing but 127.0.0.1, and there only what `ours(url)` allows, with more of its own options. */
export async function launch(profile, viewport, ours, options = []) {
  const {chromium} = createRequire(path.join(installed('node_modules'), 'x.js'))('playwright-core');
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true, viewport, serviceWorkers: 'block',
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1', ...options],
  });
  context.setDefaultTimeout(LOAD_TIMEOUT_MS);
  await context.route('**/*', (route) => {
    const url = route.request().url();
    return /^(blob|data):/.test(url) || ours(url) ? route.continue() : route.abort();
  });
  await context.addInitScript(() => {
    delete Navigator.prototype.serviceWorker;     // blocked, but the UI would try
    if (!location.protocol.startsWith('http')) return;
    localStorage.setItem('dismissedPanningHint', 'true');
  });
  return context;
}

/** A file of the UI by its URL, and its type; undefined when there is none. */
export function uiFile(folder, url) {
  const {pathname} = new URL(url, 'http://ui');
  const file = path.join(folder, pathname === '/' ? 'index.html' : decodeURIComponent(pathname));
  if (!file.startsWith(folder + path.sep) || !fs.statSync(file, {throwIfNoEntry: false})?.isFile()) return undefined;
  return {path: file, type: TYPES[path.extname(file)] ?? 'application/octet-stream'};
}

/** Waits until the UI has loaded a trace; throws what it says when it cannot. */
export async function loaded(page) {
  await page.waitForFunction((dialog) => self.app?.trace || document.querySelector(dialog), ERROR_DIALOG);
  const dialog = await page.evaluate((dialog) => document.querySelector(dialog)?.innerText, ERROR_DIALOG);
  if (dialog) throw new Error(`the UI says: ${dialog.slice(0, 500)}`);
  await page.waitForFunction(() => typeof self.waitForPerfettoIdle === 'function');
  await idle(page);
}

export function idle(page) {
  return page.evaluate((ms) => self.waitForPerfettoIdle(ms), IDLE_MS);
}

/** The first row of a query, asked in the UI itself, as decimal strings. */
export async function firstRow(page, sql) {
  const row = await page.evaluate(async (sql) => {
    const result = await self.app.trace.engine.query(sql);
    const first = result.iter({});
    return first.valid() ? result.columns().map((column) => String(first.get(column))) : null;
  }, sql);
  if (!row) throw new Error(`no row answers ${sql}`);
  return row;
}

/** Clicks with the mouse on a slice of one row's height: a query names its begin, its length and its track's name. */
export async function click(page, [begin, length, track]) {
  const name = track.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  await page.evaluate((regex) => self.app.commands.runCommand('dev.perfetto.PinTracksByRegex', regex), `^${name}$`);
  const [from, to] = [BigInt(begin) - BigInt(length), BigInt(begin) + 2n * BigInt(length)].map(String);
  await page.evaluate(({from, to}) => self.app.trace.timeline.setViewportTime(BigInt(from), BigInt(to)), {from, to});
  await idle(page);
  const place = await page.evaluate((track) => {
    const row = document.querySelector(`.pf-track[ref="${CSS.escape(track)}"]`);
    const box = row?.querySelector('.pf-track__canvas')?.getBoundingClientRect();
    return box && {x: box.x + box.width / 2, y: box.y + box.height / 2};
  }, track);
  if (!place) throw new Error(`no track is called ${track}`);
  await page.mouse.move(place.x, place.y);
  await idle(page);
  await page.mouse.click(place.x, place.y);
  await idle(page);
}

/** What the details pane says. */
export function details(page) {
  return page.evaluate(() => document.querySelector('.pf-details-shell, .details-panel')?.innerText ?? '');
}

/** Shows the details of a row of a table. */
export async function select(page, table, [id]) {
  await page.evaluate(({table, id}) => self.app.trace.selection.selectSqlEvent(table, Number(id)), {table, id});
  await idle(page);
}
