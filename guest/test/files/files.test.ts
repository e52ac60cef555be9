// Reads and writes of files through the daemon: contents byte for byte, attributes kept by a
// replacement, and refusals.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readFile,
  readdir,
  readlink,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { FILE_READ_BYTES, FILE_WRITE_BYTES } from '@berth/protocol/files.ts';
import { guestError } from '@berth/protocol/guest.ts';
import { startDaemon, testUid, until } from '../daemon.ts';
import { outcomeOf, TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;

test('a written file reads back byte for byte; missing folders are made and owned by the tenant', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  for (const [name, content] of [
    ['a', ''],
    ['b', 'text\n'],
    ['c', Buffer.from([0, 1, 2, 0xff, 0xfe, 10, 13])],
    ['deep/er/and/deeper', randomBytes(100_000)],
    ['large', randomBytes(FILE_WRITE_BYTES)],
    ['with\nnewline', 'n'],
    [`quotes " ' \` and \\`, 'q'],
    ['emoji 🦭 and spaces ', 'e'],
    ['-rf', 'd'],
    ['%2e%2e', 'p'],
    ['x'.repeat(255), 'l'],
  ] as const) {
    const size = Buffer.byteLength(content);
    assert.equal((await files.write(name, content)).toString(), JSON.stringify({ size }), name);
    const back = await files.read(name);
    assert.ok(Buffer.isBuffer(back) && back.equals(Buffer.from(content)), name);
    assert.ok((await readFile(files.at(name))).equals(Buffer.from(content)), name);
  }
  const [file, folder] = await Promise.all([stat(files.at('b')), stat(files.at('deep/er'))]);
  assert.deepEqual([file.uid, file.gid, file.mode & 0o7777], [testUid, testUid, 0o644]);
  assert.deepEqual([folder.uid, folder.gid, folder.mode & 0o7777], [testUid, testUid, 0o755]);
});

test('an existing file is replaced in one step and keeps its owner and mode; no temporary file is left', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await writeFile(files.at('run.sh'), 'old');
  await chown(files.at('run.sh'), testUid, testUid);
  await chmod(files.at('run.sh'), 0o751);
  const before = await stat(files.at('run.sh'));
  const reader = await open(files.at('run.sh'));
  await files.write('run.sh', 'new content');
  assert.equal(await reader.readFile('utf8'), 'old', 'who has it open still reads the old one');
  await reader.close();
  const after = await stat(files.at('run.sh'));
  assert.notEqual(after.ino, before.ino);
  assert.deepEqual([after.uid, after.gid, after.mode], [before.uid, before.gid, before.mode]);
  assert.equal(await readFile(files.at('run.sh'), 'utf8'), 'new content');
  assert.deepEqual(await readdir(daemon.codeFolder), ['run.sh']);
});

test('a concurrent reader sees the old or the new content, never a mixture', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const contents = ['a', 'b'].map((letter) => letter.repeat(200_000));
  await files.write('f', contents[0] ?? '');
  const writers = contents.map(async (content) => {
    for (let round = 0; round < 15; round += 1) await files.write('f', content);
  });
  const written = Promise.all(writers).then(() => true);
  for (let over = false; !over; over = await Promise.race([written, Promise.resolve(false)]))
    assert.ok(contents.includes(await files.text('f')));
});

test('a write follows a link and keeps it, even a dangling one; link loops are refused', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await files.write('target', 'old');
  await symlink('target', files.at('link'));
  await symlink('link', files.at('link-to-link'));
  await symlink('new/place', files.at('dangling'));
  await symlink('ring-b', files.at('ring-a'));
  await symlink('ring-a', files.at('ring-b'));
  await files.write('link-to-link', 'through');
  await files.write('dangling', 'made');
  assert.deepEqual(
    [await files.text('target'), await files.text('link'), await files.text('new/place')],
    ['through', 'through', 'made'],
  );
  assert.deepEqual(await Promise.all(['link', 'link-to-link', 'dangling'].map((name) => readlink(files.at(name)))), [
    'target',
    'link',
    'new/place',
  ]);
  assert.equal(await files.read('ring-a'), '400 file_path_invalid');
  assert.equal(await files.write('ring-a', ''), '400 file_path_invalid');
});

test('a path that is no regular file is refused without being opened', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec(
    'mkfifo fifo; (echo x > fifo; echo > opened) & (cat other > read) & mkfifo other; mkdir folder; ln -s folder link',
  );
  const server = createServer().listen(files.at('socket'));
  t.after(() => server.close());
  await once(server, 'listening');
  for (const name of ['fifo', 'socket', 'folder', 'link', '/dev/null', '/dev/zero']) {
    assert.equal(await files.read(name), '400 not_a_file', name);
    assert.equal(await files.write(name, 'x'), '400 not_a_file', name);
  }
  assert.equal(await files.write('/', 'x'), '400 not_a_file');
  assert.equal(await files.read('folder/missing'), '404 file_not_found');
  await files.write('file', 'x');
  assert.equal(await files.read('file/below'), '400 not_a_directory');
  assert.equal(await files.write('file/below', ''), '400 not_a_directory');
  assert.ok(!(await readdir(daemon.codeFolder)).includes('opened'), 'the writer of the FIFO still waits for a reader');
  // Ends both processes.
  await daemon.exec('cat fifo > drained; echo > other');
});

test('file calls have exactly the permissions of the tenant', { skip: !root && 'needs another user' }, async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await writeFile(files.at('secret'), 's', { mode: 0o600 });
  await writeFile(files.at('readable'), 'r', { mode: 0o644 });
  await mkdir(files.at('closed'), { mode: 0o700 });
  await writeFile(files.at('closed/in'), 'i');
  assert.equal(await files.read('secret'), '403 file_access_denied');
  assert.equal(await files.text('readable'), 'r');
  // The tenant could replace the file, but a shell could not write to it: refused.
  assert.equal(await files.write('readable', 'x'), '403 file_access_denied');
  assert.equal(await files.read('closed/in'), '403 file_access_denied');
  assert.equal(await files.write('closed/in', ''), '403 file_access_denied');
  assert.equal(await files.write('closed/new', ''), '403 file_access_denied');
  assert.equal(await readFile(files.at('readable'), 'utf8'), 'r');
});

test(
  'a file that cannot be replaced is written in place and keeps its owner',
  { skip: !root && 'needs another user' },
  async (t) => {
    const daemon = await startDaemon(t);
    const files = new TestFiles(daemon);
    await mkdir(files.at('closed'), { mode: 0o755 });
    await writeFile(files.at('closed/shared'), 'a longer old content');
    await chmod(files.at('closed/shared'), 0o666);
    await writeFile(files.at('others'), 'old');
    await chmod(files.at('others'), 0o666);
    await mkdir(files.at('sticky'));
    await chmod(files.at('sticky'), 0o1777);
    await writeFile(files.at('sticky/others'), 'old');
    await chmod(files.at('sticky/others'), 0o666);
    for (const name of ['closed/shared', 'others', 'sticky/others']) {
      const before = await stat(files.at(name));
      assert.ok(Buffer.isBuffer(await files.write(name, 'short')), name);
      const after = await stat(files.at(name));
      assert.deepEqual([after.ino, after.uid, after.gid, after.mode], [before.ino, 0, 0, before.mode]);
      assert.equal(await readFile(files.at(name), 'utf8'), 'short');
    }
    assert.deepEqual((await readdir(files.at('sticky'))).concat(await readdir(files.at('closed'))), [
      'others',
      'shared',
    ]);
  },
);

test('a running program can be replaced', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec('cp /bin/sleep sleeper; ./sleeper 60 > /dev/null 2>&1 & while ! pgrep -f ./sleeper; do :; done');
  assert.ok(Buffer.isBuffer(await files.write('sleeper', 'new')));
  assert.deepEqual([await files.text('sleeper'), (await stat(files.at('sleeper'))).mode & 0o777], ['new', 0o755]);
  await daemon.exec('pkill -f ./sleeper');
});

test('reads stop at 8 MiB, holes included, and writes at 2 MiB; one byte more is refused', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await writeFile(files.at('most'), randomBytes(FILE_READ_BYTES));
  assert.ok((await readFile(files.at('most'))).equals((await files.read('most')) as Buffer));
  await truncate(files.at('most'), FILE_READ_BYTES + 1);
  assert.equal(await files.read('most'), '413 file_too_large');
  await truncate(files.at('most'), 2 ** 42);
  assert.equal(await files.read('most'), '413 file_too_large');
  await truncate(files.at('most'), 3);
  await truncate(files.at('most'), 1_000_000);
  assert.equal(((await files.read('most')) as Buffer).subarray(3).equals(Buffer.alloc(999_997)), true);

  const { size } = await lstat(files.at('most'));
  assert.equal(await files.write('most', Buffer.alloc(FILE_WRITE_BYTES + 1)), '413 file_too_large');
  assert.equal((await lstat(files.at('most'))).size, size);
});

test('a kernel-generated file is read to its end; its read errors are named', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  assert.match(await files.text('/proc/version'), /^Linux version/);
  await daemon.exec('sleep 60 > /dev/null 2>&1 & echo $! > pid');
  // The start of a process's address space is never mapped.
  const answer = await daemon.call('GET', `/file?path=/proc/${await daemon.number('pid')}/mem`);
  const refused = guestError.parse(JSON.parse(answer.text)).error;
  assert.deepEqual([answer.status, refused.code, refused.errno], [500, 'file_system_error', 'EIO']);
});

test('a growing file is read up to its initial size, a shrinking one to its end', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec('(i=0; while [ $i -lt 20000 ]; do echo 0123456; i=$((i+1)); done >> log) > /dev/null 2>&1 &');
  await until('the log has begun', async () => (await readdir(daemon.codeFolder)).includes('log'));
  let length = 0;
  while (length < 160_000) {
    const text = await files.text('log');
    assert.ok(text.length >= length && '0123456\n'.repeat(20_000).startsWith(text));
    length = text.length;
  }
  await daemon.exec(
    '(i=0; while [ $i -lt 300 ]; ' +
      'do head -c 3000000 /dev/zero > s; : > s; i=$((i+1)); done; echo > done) > /dev/null 2>&1 &',
  );
  await until('the other has begun', async () => (await readdir(daemon.codeFolder)).includes('s'));
  while (!(await readdir(daemon.codeFolder)).includes('done')) {
    const content = (await files.read('s')) as Buffer;
    assert.ok(content.length <= 3_000_000 && content.every((byte) => byte === 0));
  }
});

test('a write without a length is refused', async (t) => {
  const daemon = await startDaemon(t);
  const socket = connect(daemon.port, '127.0.0.1');
  socket.write(
    'PUT /file?path=/tmp/x HTTP/1.1\r\nhost: a\r\n' +
      'transfer-encoding: chunked\r\nconnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n',
  );
  assert.match(Buffer.concat(await socket.toArray()).toString(), /^HTTP\/1.1 400 [^]*needs a Content-Length/);
});

test('an invalid call is refused with the broken rule', async (t) => {
  const daemon = await startDaemon(t);
  for (const [method, path, body, message] of [
    ['GET', '/file', undefined, /absolute path/],
    ['GET', '/file?path=relative', undefined, /absolute path/],
    ['GET', '/file?path=/a%00b', undefined, /without NUL/],
    ['PUT', '/file?path=', 'x', /absolute path/],
    ['GET', '/files?path=/', undefined, /depth must be a whole number from 1 to 5/],
    ['GET', '/files?path=/&depth=6', undefined, /depth must be/],
    ['GET', '/files?path=/&depth=1.5', undefined, /depth must be/],
  ] as const) {
    const answer = await daemon.open(method, path, body).answer;
    assert.equal(answer.status, 400, `${method} ${path}`);
    assert.match(answer.text, message);
  }
  assert.equal(outcomeOf(await daemon.call('GET', `/file?path=/${'a/'.repeat(2_100)}`)), '400 file_path_invalid');
  assert.equal(outcomeOf(await daemon.call('GET', `/file?path=/${'a'.repeat(300)}`)), '400 file_path_invalid');
});
