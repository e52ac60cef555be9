import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LogFile } from '../src/log-file.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-log-'));
});
after(() => rm(folder, { recursive: true, force: true }));

test('a full file is rotated with a limited number of predecessors, the newest as number 1', async () => {
  const path = join(folder, 'service.log');
  const log = new LogFile(path, { maxBytes: 100, keptFiles: 2 });
  for (let line = 0; line < 50; line += 1) log.write(Buffer.from(`line ${String(line).padStart(4, '0')}\n`));

  log.close();
  assert.deepEqual((await readdir(folder)).sort(), ['service.log', 'service.log.1', 'service.log.2']);
  for (const name of await readdir(folder)) assert.ok((await stat(join(folder, name))).size <= 100, name);

  assert.match(await readFile(path, 'utf8'), /line 0049\n$/);
  const older = (await readFile(`${path}.1`, 'utf8')).trimEnd().split('\n').at(-1);
  const newer = (await readFile(path, 'utf8')).split('\n')[0];
  assert.equal(Number(newer?.slice(5)) - Number(older?.slice(5)), 1);
});

test('an existing file is continued, and its size counts', async () => {
  const path = join(folder, 'continued.log');
  const first = new LogFile(path, { maxBytes: 20 });
  first.write(Buffer.from('0123456789'));
  first.close();
  const second = new LogFile(path, { maxBytes: 20 });
  second.write(Buffer.from('abcde'));
  assert.equal(await readFile(path, 'utf8'), '0123456789abcde');
  second.write(Buffer.from('fghijk'));
  second.close();
  assert.equal(await readFile(path, 'utf8'), 'fghijk');
  assert.equal(await readFile(`${path}.1`, 'utf8'), '0123456789abcde');
});

test('a full disk only loses lines, and their number is logged once there is room', async (context) => {
  const small = join(folder, 'small');
  await mkdir(small);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', small]);
  context.after(() => execFileSync('umount', [small]));
  const log = new LogFile(join(small, 'service.log'));
  log.write(Buffer.from('before\n'));
  const filler = join(small, 'filler');
  await assert.rejects(writeFile(filler, Buffer.alloc(1_000_000)), { code: 'ENOSPC' });
  const line = Buffer.alloc(8_192, 'x');
  log.write(line);
  log.write(line);
  await rm(filler);
  log.write(Buffer.from('after\n'));
  log.close();
  const text = await readFile(join(small, 'service.log'), 'utf8');
  assert.match(text, /^before\n/);
  assert.match(text, /\(16384 bytes of this log are lost: the disk was full\)\nafter\n$/);
});
