// Private folders of downloads, and those that killed downloads left.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { withStage } from '../../src/files/stage.ts';

const OLD = new Date(Date.now() - 25 * 3_600_000);

test('a download removes old folders of ended processes of this host, and nothing else', async (t) => {
  const beside = await mkdtemp(join(tmpdir(), 'berth-stage-'));
  t.after(() => rm(beside, { recursive: true, force: true }));
  const own = await withStage(beside, (stage) => Promise.resolve(basename(stage)));
  assert.deepEqual(await readdir(beside), []);
  const ended = String(spawnSync('true').pid);
  const nameOf = (pid: string, end = 'aaaaaa'): string => own.replace(/-\d+-\w+$/, `-${pid}-${end}`);
  const make = async (name: string, isOld: boolean): Promise<string> => {
    await mkdir(join(beside, name));
    await writeFile(join(beside, name, 'r'), 'part');
    if (isOld) await utimes(join(beside, name), OLD, OLD);
    return name;
  };
  await make(nameOf(ended, 'oldold'), true);
  const kept = [
    await make(nameOf(ended, 'recent'), false),
    await make(nameOf(String(process.pid)), true),
    await make(`.berth-cp-00000000-${ended}-aaaaaa`, true),
    await make('.berth-cp-aaaaaa', true),
    await make(`${nameOf(ended)}-more`, true),
  ];
  const target = await make('folder', true);
  const link = nameOf(ended, 'linked');
  await symlink(target, join(beside, link));
  const during = await withStage(beside, () => readdir(beside));
  assert.equal(during.length, kept.length + 3);
  assert.deepEqual((await readdir(beside)).toSorted(), [...kept, target, link].toSorted());
});

test('the folder of a download is removed after a failure', async (t) => {
  const beside = await mkdtemp(join(tmpdir(), 'berth-stage-'));
  t.after(() => rm(beside, { recursive: true, force: true }));
  await assert.rejects(
    withStage(beside, async (stage) => {
      await writeFile(join(stage, 'r'), 'part');
      throw new Error('broken');
    }),
    /broken/,
  );
  assert.deepEqual(await readdir(beside), []);
});
