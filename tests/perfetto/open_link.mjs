#!/usr/bin/env node
// Opens a link to Perfetto's UI in headless Chromium, as `gputrail view` prints it, and tells what loaded.
//
//   open_link.mjs LINK [--select 'select id ...' [--table TABLE]] [--picture OUT.png]
//
// Links to ui.perfetto.dev get the installed UI under that name: the browser takes it for that site, with all that follows for
// what it may fetch. Tells which rows are pinned and which groups are open, too. --select shows the details of the row of TABLE (default: slice) that its query names. Prints one line of
// JSON; exit status 1 when the trace did not load, or the UI shows errors. Nothing but 127.0.0.1 is contacted.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {details, firstRow, launch, loaded, select, uiFile} from './browser.mjs';
import {installed} from './installed.mjs';

const PUBLIC = 'https://ui.perfetto.dev';
// Browsers ask their users whether a public site may fetch from this machine; here nobody could answer.
const ALLOWED = ['--disable-features=LocalNetworkAccessChecks'];
const [link, ...words] = process.argv.slice(2);
const options = {table: 'slice'};
for (let at = 0; at < words.length; at += 2) options[words[at].slice(2)] = words[at + 1];

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'gputrail-open-link-'));
const report = {pageErrors: [], failedRequests: []};
let browser;
try {
  browser = await launch(profile, {width: 1600, height: 900}, (url) => url.startsWith('http://127.0.0.1:'), ALLOWED);
  await browser.route(`${PUBLIC}/**`, (route) => {
    const file = uiFile(installed('perfetto-ui'), route.request().url());
    return file ? route.fulfill({path: file.path, contentType: file.type}) : route.abort();
  });
  const page = await browser.newPage();
  page.on('pageerror', (error) => report.pageErrors.push(String(error).slice(0, 300)));
  page.on('requestfailed', (request) => report.failedRequests.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.goto(link.replace('/#!/', '/?testing=1#!/'));     // testing: no analytics, and waitForPerfettoIdle()
  await loaded(page);
  if (options.select) {
    await select(page, options.table, await firstRow(page, options.select));
    report.details = await details(page);
  }
  Object.assign(report, await page.evaluate(() => ({
    title: self.app.trace.traceInfo.traceTitle,
    importErrors: self.app.trace.traceInfo.importErrors,
    pinned: self.app.trace.workspace.pinnedTracks.map((track) => track.name),
    open: self.app.trace.workspace.flatTracks.filter((track) => track.hasChildren && track.expanded).map((track) => track.name),
  })));
  if (options.picture) await page.screenshot({path: options.picture});
} catch (error) {
  report.error = error.message;
} finally {
  await browser?.close();
  fs.rmSync(profile, {recursive: true, force: true});
}
console.log(JSON.stringify(report));
process.exitCode = report.error || report.importErrors !== 0 || report.pageErrors.length ? 1 : 0;
