// Folders below a mount point whose folder was removed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeFolders } from '../../src/machine/make-folder.ts';

test('folders are made one in another, and existing ones are kept', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'berth-folders-'));
  t.after(() => rmSync(root, { recursive: true }));
  makeFolders(0o700, join(root, 'a'), join(root, 'a/b'));
  makeFolders(0o755, join(root, 'a'), join(root, 'a/b'));
  assert.deepEqual(readdirSync(join(root, 'a')), ['b']);
  assert.equal(statSync(join(root, 'a/b')).mode & 0o777, 0o700);
  assert.throws(() => makeFolders(0o700, join(root, 'none/b')), { code: 'ENOENT' });
});

test('a mount point whose folder was removed is an error, not an endless call', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'berth-folders-'));
  t.after(() => rmSync(root, { recursive: true }));
  const module = fileURLToPath(new URL('../../src/machine/make-folder.ts', import.meta.url));
  const program = `import('${module}').then(({ makeFolders }) => makeFolders(0o700, 'here/a', 'here/a/b'))
    .catch(({ code }) => process.stdout.write(code))`;
  const script = `cd ${root}; mkdir there here; mount --bind there here; rmdir there; exec "$0" -e "$1"`;
  const ended = spawnSync('unshare', ['--mount', 'sh', '-ec', script, process.execPath, program], {
    encoding: 'utf8',
    timeout: 30_000,
    killSignal: 'SIGKILL',
  });
  assert.deepEqual([ended.signal, ended.stdout], [null, 'ENOENT'], ended.stderr);
});
