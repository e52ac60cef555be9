import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { protectFromOomKiller } from '../../src/supervisor/oom-protection.ts';

// A file in the place of the kernel's: without CAP_SYS_RESOURCE no process can lower its score.
test('the supervisor lowers its OOM score to -500, and raises no lower one', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-oom-'));
  context.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'oom_score_adj');
  for (const [before, after] of [
    ['0', '-500'],
    ['1000', '-500'],
    ['-499', '-500'],
    ['-500', '-500'],
    ['-900', '-900'],
  ] as const) {
    await writeFile(file, before);
    protectFromOomKiller(file);
    assert.equal(await readFile(file, 'latin1'), after);
  }
});
