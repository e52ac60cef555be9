// Starts of processes on a full disk.
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '@berth/os/errors.ts';
import { runs, startDaemon, until, type Answer, type TestDaemon } from '../daemon.ts';
import { smallDisk } from '../files/files-daemon.ts';

const root = process.getuid?.() === 0;
const PAGE = 4_096;
const ID = `prc_${'a'.repeat(24)}`;

function start(daemon: TestDaemon, command: string): Promise<Answer> {
  const options = { stdin: false, keepAwake: false, name: null, limitSeconds: null, outputBytes: 65_536 };
  return daemon.call('PUT', `/processes/${ID}`, { ...options, command, digest: 'd'.repeat(64) });
}

/** Fills the disk but for so many pages. */
function fill(disk: string, pages: number): void {
  const filler = join(disk, 'filler');
  try {
    for (;;) appendFileSync(filler, Buffer.alloc(PAGE));
  } catch (error) {
    if (!hasCode(error, 'ENOSPC')) throw error;
  }
  truncateSync(filler, statSync(filler).size - pages * PAGE);
}

async function refusesStarts(daemon: TestDaemon, disk: string): Promise<void> {
  const pidFile = join(daemon.codeFolder, 'pid');
  // No room for the settings; room for them, but not for those of the started process.
  for (const pages of [0, 1]) {
    fill(disk, pages);
    const { status, text } = await start(daemon, 'echo $$ >/code/pid; exec sleep 1000'.replace('/code/pid', pidFile));
    assert.deepEqual([status, JSON.parse(text).error.code], [507, 'guest_disk_full'], text);
    assert.deepEqual(readdirSync(join(disk, 'processes')), []);
    if (existsSync(pidFile)) {
      const pid = Number(readFileSync(pidFile, 'utf8'));
      await until('the process is killed', async () => !(await runs(pid)));
    }
    assert.deepEqual(JSON.parse((await daemon.call('GET', '/processes')).text), { processes: [] });
  }
  truncateSync(join(disk, 'filler'), 0);
  const { status, text } = await start(daemon, 'exec sleep 1000');
  assert.equal(status, 200, text);
  assert.equal((await daemon.call('DELETE', `/processes/${ID}`)).status, 200);
}

test('a full disk refuses a start, which leaves no process and no file', { skip: !root }, async (t) => {
  const disk = await smallDisk(t);
  const daemon = await startDaemon(t, { BERTH_GUEST_STATE_FOLDER: disk });
  try {
    await refusesStarts(daemon, disk);
  } finally {
    // Before its disk is unmounted.
    await daemon.stop('SIGTERM');
  }
});
