// Where tools/test put what these programs run on: Perfetto's UI with its trace processor, and the driver of the browser.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const folder = process.env.GPUTRAIL_TEST_TOOLS ??
  path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'gputrail-tests');

/** The folder of one of the tools; an error that says what to do when it is not there. */
export function installed(name) {
  const place = path.join(folder, name);
  if (!fs.existsSync(place)) throw new Error(`${place} is missing: \`tools/test install\` installs it`);
  return fs.realpathSync(place);
}
