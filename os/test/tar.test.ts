import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { TarEntry } from '../src/tar.ts';
import { scanTar, TAR_END, tarEntries } from '../src/tar.ts';

const run = promisify(execFile);

describe('tar archives', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-tar-'));
  });
  after(() => rm(folder, { recursive: true }));

  const deep = `${'d'.repeat(90)}/${'e'.repeat(60)}`;
  const entries: TarEntry[] = [
    { path: 'code', type: 'folder', mode: 0o755, owner: { uid: 1000, gid: 1000 } },
    { path: 'etc', type: 'folder', mode: 0o755 },
    { path: 'etc/secret', type: 'file', mode: 0o440, content: Buffer.from('x'.repeat(1000)) },
    { path: 'etc/empty', type: 'file', mode: 0o644, content: Buffer.alloc(0) },
    { path: 'etc/link', type: 'link', target: '../code' },
    { path: 'd'.repeat(90), type: 'folder', mode: 0o755 },
    { path: deep, type: 'file', mode: 0o755, content: Buffer.from('deep') },
  ];

  it('are read by GNU tar with the given modes, owners, times, links and contents', async () => {
    const path = join(folder, 'given.tar');
    await writeFile(path, Buffer.concat([await buffer(tarEntries(entries, 1_700_000_000)), TAR_END]));
    const { stdout } = await run('tar', ['--list', '--verbose', '--numeric-owner', '--utc', '--file', path]);
    const lines = stdout.trim().split('\n');
    assert.equal(lines.length, entries.length);
    assert.match(lines[0] ?? '', /^drwxr-xr-x 1000\/1000 +0 2023-11-14 22:13 code\/$/);
    assert.match(lines[2] ?? '', /^-r--r----- 0\/0 +1000 2023-11-14 22:13 etc\/secret$/);
    assert.match(lines[4] ?? '', /^lrwxrwxrwx 0\/0 +0 2023-11-14 22:13 etc\/link -> \.\.\/code$/);
    const { stdout: content } = await run('tar', ['--extract', '--to-stdout', '--file', path, deep]);
    assert.equal(content, 'deep');
  });

  it('have the same bytes for the same entries, from memory or from a file', async () => {
    const file = join(folder, 'content');
    await writeFile(file, Buffer.alloc(3_000_000, 'q'));
    const one = await buffer(tarEntries([{ path: 'a', type: 'file', mode: 0o644, content: await readFile(file) }], 5));
    const two = await buffer(tarEntries([{ path: 'a', type: 'file', mode: 0o644, content: { file } }], 5));
    assert.ok(one.equals(two));
  });

  it('report entry ends and folders of archives that GNU tar wrote', async () => {
    const path = join(folder, 'gnu.tar');
    await mkdir(join(folder, 'sub/folder'), { recursive: true });
    await writeFile(join(folder, 'zeros'), Buffer.alloc(10_000));
    await run('tar', [
      '--create',
      '--format=pax',
      '--sort=name',
      '--file',
      path,
      '--directory',
      folder,
      '--exclude=*.tar',
      '.',
    ]);
    const { contentBytes, folders } = await scanTar(path);
    assert.deepEqual([...folders], ['', 'sub', 'sub/folder']);
    const added = join(folder, 'added.tar');
    const more = await buffer(
      tarEntries([{ path: 'last', type: 'file', mode: 0o644, content: Buffer.from('end') }], 5),
    );
    await writeFile(added, Buffer.concat([(await readFile(path)).subarray(0, contentBytes), more, TAR_END]));
    const { stdout } = await run('tar', ['--list', '--file', added]);
    assert.ok(stdout.trim().endsWith('./zeros\nlast'), stdout);
    assert.ok((await stat(path)).size > contentBytes);
  });

  it('are refused when truncated', async () => {
    const path = join(folder, 'cut.tar');
    await writeFile(path, await buffer(tarEntries(entries, 5)));
    await assert.rejects(scanTar(path), /no end marker/);
  });

  it('refuse a path that the format cannot hold', async () => {
    await assert.rejects(
      buffer(tarEntries([{ path: 'n'.repeat(101), type: 'folder', mode: 0o755 }], 5)),
      /does not fit/,
    );
  });
});
