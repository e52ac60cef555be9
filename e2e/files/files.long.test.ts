// Files of a real guest, as the spec defines them: contents byte for byte, non-files, bounds, a
// full disk, a dying VM, a hanging file system.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  fileContent,
  filesSnapshot,
  folderListing,
  writtenFile,
  type FileContent,
  type FilesSnapshot,
} from '@berth/contract/files/files.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import {
  awakeSandbox,
  call,
  createProject,
  destroySandbox,
  errorOf,
  exec,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
  type Answer,
} from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';

const MIB = 1_048_576;

let berth: Instance;
let sandbox: Sandbox;

before(async () => {
  berth = await startInstance('files');
  sandbox = await awakeSandbox(berth);
});

after(async () => {
  await berth?.end();
});

const ask = (route: string, query: Record<string, string> = {}, id = sandbox.id): Promise<Answer> =>
  call(berth, 'GET', `/v1/sandboxes/${id}/${route}?${new URLSearchParams(query).toString()}`);
const put = (body: object, id = sandbox.id): Promise<Answer> => call(berth, 'PUT', `/v1/sandboxes/${id}/file`, body);

async function read(path: string, id = sandbox.id): Promise<FileContent> {
  const answer = await ask('file', { path }, id);
  assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 500));
  return fileContent.parse(answer.body);
}

async function bytesOf(path: string): Promise<Buffer> {
  const { content, encoding, size } = await read(path);
  const bytes = Buffer.from(content, encoding);
  assert.equal(bytes.length, size);
  return bytes;
}

async function write(path: string, content: string | Buffer, id = sandbox.id): Promise<void> {
  const body =
    typeof content === 'string' ? { path, content } : { path, content: content.toString('base64'), encoding: 'base64' };
  const answer = await put(body, id);
  assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 500));
  assert.equal(writtenFile.parse(answer.body).size, Buffer.byteLength(content));
}

async function snapshot(query: Record<string, string>): Promise<FilesSnapshot> {
  return filesSnapshot.parse((await ask('files/snapshot', query)).body);
}

/** Output of a command that must succeed. */
async function run(command: string, id = sandbox.id): Promise<string> {
  const { exitCode, stdout, stderr } = await exec(berth, id, command, 300);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

const refused = async (answer: Promise<Answer>, status: number, code: string): Promise<void> =>
  assert.equal(errorOf(await answer, status).code, code);

test('any bytes, up to 2 MiB written and 8 MiB read, are kept unchanged and visible to commands', async () => {
  for (const [index, content] of [
    Buffer.alloc(0),
    Buffer.from('plain text\r\n'),
    Buffer.from('\uFEFFmark, é, 🦭, \u0001\u007f'),
    Buffer.from('NUL \0 inside'),
    Buffer.from([0xff, 0xfe, 0xc3, 0x28]),
    randomBytes(100 * 1_024),
    randomBytes(2 * MIB),
    Buffer.alloc(2 * MIB, '\u0001'),
  ].entries()) {
    const path = `contents/${index}/ü 🦭\n"quoted"'`;
    await write(path, content);
    assert.ok((await bytesOf(path)).equals(content), path);
    assert.equal(
      await run(`sha256sum < "$(echo contents/${index}/*)"`),
      `${createHash('sha256').update(content).digest('hex')}  -`,
    );
  }
  await run('head -c 8388608 /dev/urandom > most');
  assert.equal(
    createHash('sha256')
      .update(await bytesOf('most'))
      .digest('hex'),
    (await run('sha256sum < most')).split(' ')[0],
  );
  await run('echo >> most; truncate -s 1T sparse');
  for (const path of ['most', 'sparse']) await refused(ask('file', { path }), 413, 'file_too_large');
  await refused(put({ path: 'contents/1/x', content: 'x'.repeat(2 * MIB + 1) }), 413, 'file_too_large');
});

test('a new file is the user’s; a replaced one keeps owner and mode; a link stays and is followed', async () => {
  await write('kept/new', 'x');
  assert.equal(await run("stat -c '%U:%G %a' kept kept/new"), 'berth:berth 755\nberth:berth 644');
  await run(
    'printf old > kept/script; chmod 4750 kept/script; ln -s script kept/link; ' +
      'sudo sh -c "printf old > kept/root; chmod 666 kept/root"',
  );
  await write('kept/link', '#!/bin/sh\necho new\n');
  await write('kept/root', 'new');
  assert.equal(
    await run("kept/script; stat -c '%U %a' kept/script kept/root; readlink kept/link; cat kept/root"),
    'new\nberth 750\nroot 666\nscript\nnew',
  );
  assert.equal(await run('ls -A kept'), 'link\nnew\nroot\nscript');
  await refused(put({ path: '/etc/hostname', content: 'x' }), 403, 'file_access_denied');
  await refused(ask('file', { path: '/etc/shadow' }), 403, 'file_access_denied');
  assert.match((await read('/etc/os-release')).content, /Debian/);
  assert.match((await read('/proc/uptime')).content, /^\d+\.\d+ /);
});

test('special files are never opened, and link loops are refused', async () => {
  await run(`mkdir -p odd && cd odd && mkfifo fifo && ln -s ring ring && ln -s .. up && mkdir folder &&
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' && sudo mknod device c 1 5 &&
      sudo chmod 666 device`);
  for (const path of ['odd/fifo', 'odd/socket', 'odd/device', 'odd/folder', 'odd/up', '/dev/null', '/']) {
    await refused(ask('file', { path }), 400, 'not_a_file');
    await refused(put({ path, content: 'x' }), 400, 'not_a_file');
  }
  await refused(ask('file', { path: 'odd/ring' }), 400, 'file_path_invalid');
  await refused(ask('files', { path: 'odd/fifo' }), 400, 'not_a_directory');
  await refused(ask('file', { path: 'odd/missing' }), 404, 'file_not_found');
  const listing = folderListing.parse((await ask('files', { path: 'odd' })).body);
  assert.deepEqual(
    listing.entries.map(({ label, type }) => `${label} ${type}`),
    ['device file', 'fifo file', 'folder directory', 'ring file', 'socket file', 'up file'],
  );
});

test('a file snapshot has 1 to 5 levels as requested, 3 by default, and follows no link', async () => {
  await run('mkdir -p deep/2/3/4/5/6 && ln -s .. deep/2/loop && ln -s / deep/2/3/root');
  for (const [depth, levels] of [
    ['-1', 1],
    ['1', 1],
    [undefined, 3],
    ['5', 5],
    ['100', 5],
  ] as const) {
    const { directories, truncated } = await snapshot({ path: 'deep', ...(depth === undefined ? {} : { depth }) });
    assert.equal(truncated, false);
    assert.deepEqual(
      Object.keys(directories),
      ['', '/2', '/2/3', '/2/3/4', '/2/3/4/5'].slice(0, levels).map((below) => `/code/deep${below}`),
    );
  }
});

test('a truncated listing reports it; names that are not UTF-8 are listed', async () => {
  await run(
    String.raw`mkdir -p many bytes/sub && cd many && seq 12000 | xargs touch &&
      cd ../bytes && touch "$(printf 'a\377')" && mkdir "$(printf '\351')"`,
  );
  const many = folderListing.parse((await ask('files', { path: 'many' })).body);
  assert.deepEqual([many.entries.length, many.truncated], [10_000, true]);
  const whole = await snapshot({ path: '/', depth: '5' });
  assert.equal(whole.truncated, true);
  const bytes = await snapshot({ path: 'bytes' });
  assert.deepEqual(
    [bytes.truncated, Object.keys(bytes.directories), bytes.directories['/code/bytes']?.map(({ label }) => label)],
    [true, ['/code/bytes', '/code/bytes/sub'], ['a\uFFFD', 'sub', '\uFFFD']],
  );
  await run('rm -r many');
});

test('a growing file is read at its initial size', async () => {
  await run('(i=0; while [ $i -lt 3000 ]; do echo 0123456; i=$((i+1)); done > log) > /dev/null 2>&1 &');
  let length = 0;
  while (length < 24_000) {
    const answer = await ask('file', { path: 'log' });
    if (answer.status === 404) continue;
    const { content } = fileContent.parse(answer.body);
    assert.ok(content.length >= length && '0123456\n'.repeat(3_000).startsWith(content));
    length = content.length;
  }
});

test('a full disk refuses a write and leaves the old file whole', async () => {
  const old = randomBytes(500_000);
  await write('full/file', old);
  await run(
    'sudo fallocate -l $(df -B1 --output=avail / | tail -1) /filler; ' +
      'sudo sh -c "cat /dev/zero > /filler2" 2>/dev/null || true; sync',
  );
  await refused(put({ path: 'full/file', content: 'n'.repeat(MIB) }), 409, 'guest_disk_full');
  await refused(put({ path: 'full/new', content: 'n'.repeat(MIB) }), 409, 'guest_disk_full');
  assert.ok((await bytesOf('full/file')).equals(old));
  assert.equal(await run('ls -A full'), 'file');
  await run('sudo rm -f /filler /filler2');
  await write('full/file', 'short');
  assert.equal(await run('cat full/file'), 'short');
});

test('sixty concurrent file calls all return, with commands beside them', async () => {
  await write('shared', 'same');
  const calls = Array.from({ length: 60 }, async (_, index) => {
    if (index % 3 === 0) await write(`at-once/${index}`, `content ${index}\n`);
    else if (index % 3 === 1) assert.equal((await read('shared')).content, 'same');
    else assert.equal((await ask('files')).status, 200);
  });
  assert.equal(await run('echo alive'), 'alive');
  await Promise.all(calls);
  assert.equal(await run('cat at-once/* | sort -u | wc -l'), '20');
});

test('a hung file system blocks only its own calls, which time out', async () => {
  await run(`truncate -s 64M /tmp/disk && /usr/sbin/mkfs.ext4 -q -E root_owner /tmp/disk &&
    mkdir -p /tmp/hung && sudo modprobe loop &&
    sudo mount -o loop /tmp/disk /tmp/hung && sudo fsfreeze -f /tmp/hung`);
  const held = put({ path: '/tmp/hung/file', content: 'x' });
  await write('beside', 'x');
  assert.equal((await read('beside')).content, 'x');
  const error = errorOf(await held, 409);
  assert.equal(error.code, 'file_system_error');
  assert.match(error.message, /ETIMEDOUT/);
  await run('sudo fsfreeze -u /tmp/hung && sudo umount -l /tmp/hung');
});

test('a write reported as done survives a crash of the VM right after it', async () => {
  const { id } = await awakeSandbox(berth);
  const content = randomBytes(300_000);
  await write('new/folder/kept', content, id);
  process.kill(await berth.qemuPid(id), 'SIGKILL');
  await waitForStatus(berth, id, ['failed']);
  await refused(ask('file', { path: 'new/folder/kept' }, id), 409, 'sandbox_state_conflict');
  const woken = await wakeSandbox(berth, id);
  assert.equal(woken.lastWake?.from, 'disk');
  assert.equal((await read('new/folder/kept', id)).content, content.toString('base64'));
  await destroySandbox(berth, id);
});

test('a stopped sandbox stays stopped, or wakes for a file call if its project is set to', async () => {
  await sleepSandbox(berth, sandbox.id);
  await refused(ask('files'), 409, 'sandbox_state_conflict');
  await refused(put({ path: 'x', content: '' }), 409, 'sandbox_state_conflict');
  const { id: projectId } = await createProject(berth, { name: 'wakes', wakeOnUse: true });
  const { id } = await awakeSandbox({ ...berth, projectId });
  await write('kept', 'before', id);
  await sleepSandbox(berth, id);
  assert.equal((await read('kept', id)).content, 'before');
  await write('kept', 'after', id);
  assert.equal(await run('cat kept', id), 'after');
  await destroySandbox(berth, id);
});
