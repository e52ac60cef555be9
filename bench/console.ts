// Figures of the console in a real browser, on the driver without VMs: size of its entry, first
// rows and scrolling of a long list, time until a change is visible, terminals, heap, idle
// requests. Usage: npm run bench:console -- [--sandboxes N] [--terminal-mb N] [--changes N]
// [--keys N] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { startConsole } from '../console/test/browser.ts';
import { builtConsole, entrySizes } from '../console/test/built.ts';
import { startInstalledConsole } from '../console/test/installed/installation.ts';
import { measureHeap } from './console/heap.ts';
import { measureList } from './console/list.ts';
import { measureIdle, measureStatus } from './console/live.ts';
import { measureKeys, measureOutput } from './console/terminal.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { renderTable, round, rounded } from './world/statistics.ts';

const options = readOptions({
  sandboxes: { type: 'string', default: '10000' },
  'terminal-mb': { type: 'string', default: '100' },
  changes: { type: 'string', default: '20' },
  keys: { type: 'string', default: '200' },
  json: { type: 'boolean', default: false },
});
const sandboxes = options.whole('sandboxes', 1, 100_000);
const megabytes = options.whole('terminal-mb', 1, 1_000);
const changes = options.whole('changes', 1, 1_000);
const keys = options.whole('keys', 1, 10_000);

const progress = new Progress();
const entryJsKb = round(entrySizes(builtConsole()).js / 1_000);

const list = await progress.step(`a list of ${sandboxes} sandboxes`, async () => {
  const site = await startConsole();
  try {
    return await measureList(site, sandboxes);
  } finally {
    await site.close();
  }
});

const installed = await startInstalledConsole({ BERTH_REQUESTS_PER_MINUTE: '1000000' });
try {
  const status = await progress.step(`${changes} changes of a status`, () => measureStatus(installed, changes));
  const output = await progress.step(`${megabytes} MB in a terminal`, () => measureOutput(installed, megabytes));
  const echo = await progress.step(`${keys} keys in a terminal`, () => measureKeys(installed, keys));
  const heap = await progress.step('200 navigations and 50 terminals', () => measureHeap(installed));
  const idle = await progress.step('ten idle tabs', () => measureIdle(installed));

  console.log(`\n${hardware()}\n`);
  const row = (label: string, figure: typeof status, count: number) => ({ label, unit: 'ms', count, figure });
  console.log(
    renderTable([
      row('first rows of the list, cold', list.rowsColdMs, list.opens),
      row('frame while it scrolls', list.frameMs, list.frames),
      row('change of a status until it is visible', status, changes),
      row('key until its echo arrives', echo.wireMs, keys),
      row('  more until it is on the screen', echo.addedMs, keys),
    ]),
  );
  const figures = {
    entryJsKb,
    rowsColdMs: rounded(list.rowsColdMs).median,
    statusVisibleMs: rounded(status).p95,
    scrollFrameMs: rounded(list.frameMs).p95,
    scrollNodes: list.nodes,
    terminalMBps: round(output.megabytesPerSecond),
    terminalHashEqual: output.hashEqual,
    keyEchoAddedMs: rounded(echo.addedMs).p95,
    idleRequestsPerMinute: round(idle),
    heapGrowthMb: round(heap),
  };
  for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
  if (options.values.json) console.log(JSON.stringify({ ...figures, sandboxes, megabytes, changes, keys }));
} finally {
  await installed.close();
}
