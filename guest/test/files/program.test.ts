// Attacks on the helper of file calls: paths that change between lookups, inherited groups.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parseListing } from '@berth/protocol/listing.ts';
import { fileProgramArguments } from '../../src/files/program.ts';
import { startDaemon, testUid, until } from '../daemon.ts';
import { FILE_PROGRAM, TestFiles, waitersOf } from './files-daemon.ts';

/** Makes `there` a file and a FIFO in turn, as fast as possible. */
const SWAP =
  'while (1) { for my $what ("file", "fifo") { unlink "next"; link $what, "next"; rename "next", "there"; } }';

/** Starts the helper alone and returns the path of its socket. */
async function startHelper(
  t: TestContext,
  folder: string,
  before: readonly string[] = [],
  seconds = 30,
): Promise<string> {
  const socket = join(folder, 'files.sock');
  const args = ['perl', '-e', FILE_PROGRAM, ...fileProgramArguments({ socket, uid: testUid, gid: testUid, seconds })];
  const [program = '', ...rest] = [...before, ...args];
  const helper = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => helper.kill('SIGKILL'));
  await once(helper.stdout, 'data');
  return socket;
}

/** Sends a request to the helper; the caller reads the response. */
function ask(at: string, ...fields: (string | number)[]): Socket {
  const socket = connect(at);
  const header = Buffer.from(fields.join('\0'));
  socket.write(header.length.toString(16).padStart(8, '0'));
  socket.write(header);
  return socket;
}

test('the opened file is the checked one: a FIFO that replaces a file is never read', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec('printf content > file; mkfifo fifo; ln file there');
  const swapping = spawn('perl', ['-e', SWAP], { cwd: daemon.codeFolder, stdio: 'ignore' });
  t.after(() => swapping.kill('SIGKILL'));
  const seen = new Set<string>();
  for (let call = 0; call < 150; call += 1) {
    const outcome = await files.read('there');
    seen.add(typeof outcome === 'string' ? outcome : outcome.toString());
  }
  assert.deepEqual([...seen].sort(), ['400 not_a_file', 'content']);
});

test('a folder replaced by a link during a listing is not followed and marks it incomplete', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'berth-files-race-'));
  t.after(() => rm(root, { recursive: true }));
  await chmod(root, 0o755);
  const at = await startHelper(t, root);
  const listed = join(root, 'l');
  const elsewhere = join(root, 'elsewhere');
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, 'of-elsewhere'), '');
  await mkdir(listed);
  const folders = Array.from({ length: 100 }, (_, at) => join(listed, `folder-${at}`));
  for (const folder of folders) await mkdir(folder);
  // More than the socket buffers: the helper reaches the folders only after the test reads.
  for (let at = 0; at < 3_400; at += 1) await writeFile(join(listed, `${at}-${'x'.repeat(220)}`), '');
  const socket = ask(at, 'list', listed, 2, 10_000, 2_097_152, 10);
  await once(socket, 'readable');
  for (const folder of folders) {
    await rename(folder, `${folder}-was`);
    await symlink(elsewhere, folder);
  }
  const answer = Buffer.concat((await socket.toArray()) as Buffer[]);
  assert.equal(answer.toString('latin1', 0, 3), 'ok\n');
  const listing = parseListing(answer.subarray(3), { root: listed, depth: 2 });
  assert.equal(listing?.truncated, true);
  assert.ok(!answer.includes('of-elsewhere'));
});

test(
  'a file call does not get the groups of the daemon',
  { skip: process.getuid?.() !== 0 && 'needs another user' },
  async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'berth-files-groups-'));
    t.after(() => rm(root, { recursive: true }));
    await chmod(root, 0o755);
    await writeFile(join(root, 'of-the-group'), 'g');
    await chmod(join(root, 'of-the-group'), 0o640);
    const at = await startHelper(t, root, ['setpriv', '--groups', '0', '--']);
    const answer = Buffer.concat((await ask(at, 'read', join(root, 'of-the-group'), 100).toArray()) as Buffer[]);
    assert.equal(answer.toString(), `no ${constants.errno.EACCES}\n`);
  },
);

test('an append waits for the lock of another, is refused in time, and never writes a replaced file', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'berth-files-lock-'));
  t.after(() => rm(root, { recursive: true }));
  await chmod(root, 0o755);
  const at = await startHelper(t, root, [], 6);
  const path = join(root, 'f');
  await writeFile(path, 'abc');
  await chown(path, testUid, testUid);
  const lock = spawn('flock', [path, 'sh', '-c', 'echo locked; cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => lock.kill('SIGKILL'));
  await once(lock.stdout, 'data');
  const append = async (): Promise<string> => {
    const socket = ask(at, 'append', path, 1, 3, -1);
    socket.write('d');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    return answer.toString();
  };
  assert.equal(await append(), 'no busy\n');

  const waiting = append();
  await until('the append waits for the lock', async () => (await waitersOf(path)) === 1);
  await rename(path, join(root, 'moved'));
  await writeFile(path, 'xyz');
  lock.stdin.end();
  assert.equal(await waiting, 'no changed\n');
  assert.deepEqual([await readFile(path, 'utf8'), await readFile(join(root, 'moved'), 'utf8')], ['xyz', 'abc']);
});
