// Modes of files: of a write, and set alone.
import assert from 'node:assert/strict';
import { chmod, chown, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { test, type TestContext } from 'node:test';
import { startDaemon } from '../daemon.ts';
import { TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;

async function start(t: TestContext): Promise<{ files: TestFiles; modeOf: (name: string) => Promise<string> }> {
  const files = new TestFiles(await startDaemon(t));
  return { files, modeOf: async (name) => ((await lstat(files.at(name))).mode & 0o7777).toString(8) };
}

const setMode = (files: TestFiles, name: string, mode: string): Promise<string> =>
  files.change('POST', '/file/mode', { path: files.at(name), mode });

test('a write sets the given mode exactly, of a new and of an old file, in both forms', async (t) => {
  const { files, modeOf } = await start(t);
  for (const mode of ['0600', '0777', '0755', '0400']) {
    assert.ok(Buffer.isBuffer(await files.write('f', mode, undefined, mode)));
    assert.equal(await modeOf('f'), Number.parseInt(mode, 8).toString(8));
    const stream = await files.open('new/g', { bytes: '3', mode });
    if (typeof stream === 'string') throw new Error(stream);
    stream.write('abc');
    assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), '{"size":3}\n');
    assert.equal(await modeOf('new/g'), Number.parseInt(mode, 8).toString(8));
  }
  assert.equal(await readFile(files.at('f'), 'utf8'), '0400');
  for (const mode of ['644', '01644', '0888', '', '-1', '0x1a'])
    assert.equal(await files.write('f', 'never', undefined, mode), '400 undefined', mode);
  assert.equal(await readFile(files.at('f'), 'utf8'), '0400');
});

test('a write without a mode keeps the one of the file that it replaces, also behind a link', async (t) => {
  const { files, modeOf } = await start(t);
  await files.write('f', 'old', undefined, '0750');
  await symlink('f', files.at('link'));
  await files.write('f', 'new');
  assert.equal(await modeOf('f'), '750');
  await files.write('link', 'newer');
  assert.deepEqual([await modeOf('f'), await files.text('f')], ['750', 'newer']);
  await files.write('link', 'newest', undefined, '0640');
  assert.deepEqual([await modeOf('f'), (await lstat(files.at('link'))).isSymbolicLink()], ['640', true]);
});

test('a mode is set on files, folders and special files, through links, and nothing is opened', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const modeOf = async (name: string): Promise<string> => ((await stat(files.at(name))).mode & 0o7777).toString(8);
  await daemon.exec(String.raw`touch f "$(printf 'odd\n\033')"; mkdir -m 1777 folder; mkfifo fifo; ln -s f link
    ln -s nowhere dangling; ln -s loop loop; chmod 6755 f`);
  for (const [name, mode] of [
    ['link', '0700'],
    ['folder', '0750'],
    ['fifo', '0600'],
    ['odd\n\u001b', '0444'],
  ] as const) {
    assert.equal(await setMode(files, name, mode), '{}', name);
    assert.equal(await modeOf(name), mode.slice(1), 'other bits are cleared');
  }
  assert.equal(await modeOf('f'), '700');
  assert.equal(await setMode(files, 'dangling', '0600'), '404 file_not_found');
  assert.equal(await setMode(files, 'loop', '0600'), '400 file_path_invalid');
  assert.equal(await setMode(files, 'f/below', '0600'), '400 not_a_directory');
  assert.equal(await setMode(files, 'f', '4755'), '400 undefined');
});

test('files of another owner keep mode and content if a mode is given', { skip: !root }, async (t) => {
  const { files, modeOf } = await start(t);
  await writeFile(files.at('theirs'), 'old');
  await chown(files.at('theirs'), 12_345, 12_345);
  await chmod(files.at('theirs'), 0o666);
  assert.equal(await setMode(files, 'theirs', '0600'), '403 file_access_denied');
  assert.equal(await files.write('theirs', 'new', undefined, '0600'), '403 file_access_denied');
  assert.deepEqual([await modeOf('theirs'), await files.text('theirs')], ['666', 'old']);
  assert.ok(Buffer.isBuffer(await files.write('theirs', 'new')), 'in place');
  assert.deepEqual([await modeOf('theirs'), await files.text('theirs')], ['666', 'new']);
  assert.deepEqual(await readdir(files.at('.')), ['theirs']);
});

test('a file in a folder that the tenant cannot write gets its mode in place', { skip: !root }, async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await mkdir(files.at('closed'));
  await daemon.exec('touch own');
  const { uid } = await stat(files.at('own'));
  await writeFile(files.at('closed/f'), 'old');
  await chown(files.at('closed/f'), uid, uid);
  const { ino } = await stat(files.at('closed/f'));
  assert.ok(Buffer.isBuffer(await files.write('closed/f', 'new', undefined, '0711')));
  const after = await stat(files.at('closed/f'));
  assert.deepEqual([after.ino, after.mode & 0o7777, await files.text('closed/f')], [ino, 0o711, 'new']);
});
