// `berth cp` against a local folder as the sandbox: targets, metadata and refusals. With a real VM:
// e2e/commands/cli-streams.long.test.ts.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ARCHIVE_END, ArchiveReader, entryHead, padding, type ArchiveEntry } from '../../src/files/archive.ts';
import { pack } from '../../src/files/pack.ts';
import { ApiServer, refusal } from '../world/api-server.ts';
import { berth, MAIN, startBerth, type Ended } from '../world/berth.ts';
import { LocalGuest } from '../world/local-guest.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

/** Id of the sandbox. */
const ID = 'sbx_abcabcabcabcabcabcabcabc';

let api: ApiServer;
let guest: LocalGuest;
let answer: ApiServer['answer'];
let folder: string;
let here: string;
let there: string;
before(async () => {
  api = await ApiServer.start();
});
after(() => api.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-cp-test-'));
  [here, there] = [join(folder, 'here'), join(folder, 'there')];
  await mkdir(here);
  await mkdir(there);
  guest = new LocalGuest(there, api);
  ({ answer } = api);
});
afterEach(async () => {
  api.refuse = null;
  await rm(folder, { recursive: true, force: true });
});

const cp = (from: string, to: string, ...flags: string[]): Promise<Ended> =>
  berth(['cp', ...flags, from, to], { env: api.environment });

async function copied(from: string, to: string, ...flags: string[]): Promise<void> {
  assert.deepEqual(await cp(from, to, ...flags), { code: 0, stdout: '', stderr: '' }, `${from} ${to}`);
}

async function refused(from: string, to: string, expected: RegExp, code = 1): Promise<void> {
  const ended = await cp(from, to);
  assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
  assert.match(ended.stderr, expected);
}

const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Everything in a folder: names as bytes, kinds, modes, times and contents. */
async function seen(path: Buffer, name = Buffer.from('.')): Promise<string[]> {
  const { mode, mtimeMs } = await lstat(path);
  const found = await lstat(path);
  const at = `${name.toString('latin1')} ${found.isSymbolicLink() ? '' : (mode & 0o7777).toString(8)}`;
  if (found.isSymbolicLink()) return [`${at} -> ${(await readlink(path, { encoding: 'buffer' })).toString('latin1')}`];
  const when = Math.floor(mtimeMs / 1_000);
  if (found.isFile()) return [`${at} ${when} ${sum(await readFile(path))}`];
  const lines = [`${at} ${when}`];
  for (const child of (await readdir(path, { encoding: 'buffer' })).sort((one, other) => one.compare(other))) {
    lines.push(
      ...(await seen(Buffer.concat([path, Buffer.from('/'), child]), Buffer.concat([name, Buffer.from('/'), child]))),
    );
  }

  return lines;
}
const tree = (...path: string[]): Promise<string[]> => seen(Buffer.from(join(...path)));

/** A folder with all difficult cases. */
async function makeHardTree(path: string): Promise<void> {
  await mkdir(join(path, 'empty'), { recursive: true });
  await mkdir(join(path, 'deep/er'), { recursive: true });
  await writeFile(join(path, 'program'), '#!/bin/sh\n', { mode: 0o755 });
  await writeFile(join(path, 'secret'), 'x', { mode: 0o600 });
  await writeFile(join(path, 'nothing'), '');
  for (const name of [
    'a  b',
    'line\nend',
    "it's",
    '"quoted"',
    '-rf',
    '$HOME',
    'ü 💡',
    '*',
    '\\n',
    'x'.repeat(200),
    'newline last\n',
  ])
    await writeFile(join(path, 'deep', name), name);

  await writeFile(Buffer.concat([Buffer.from(`${path}/deep/not utf-8 `), Buffer.from([0xff, 0xfe])]), 'bytes');
  await writeFile(join(path, 'deep/er/data'), randomBytes(700_001));
  await symlink('data', join(path, 'deep/er/link'));
  await symlink('../../program', join(path, 'deep/er/up'));
  await symlink('missing', join(path, 'dangling'));
  await symlink(`deep/${'x'.repeat(200)}`, join(path, 'long link'));
  await chmod(join(path, 'deep/er'), 0o555);
  const when = new Date('2020-02-03T04:05:06Z');
  for (const name of ['program', 'deep/er/data', 'deep/er', 'deep', 'empty', '.'])
    await utimes(join(path, name), when, when);
}

test('copying a folder both ways keeps names of any bytes, modes, times, symlinks and empty entries', async () => {
  await makeHardTree(join(here, 'tree'));
  const before = await tree(here, 'tree');
  await copied(join(here, 'tree'), `${ID}:.`);
  assert.deepEqual(await tree(there, 'tree'), before);
  await copied(`${ID}:tree`, join(here, 'back'));
  assert.deepEqual(await tree(here, 'back'), before);
  assert.deepEqual(await readdir(there), ['tree'], 'nothing else is left');
  assert.deepEqual((await readdir(here)).sort(), ['back', 'tree']);
});

test('a copied file has the target path of cp, both ways', async () => {
  const file = join(here, 'file');
  await writeFile(file, 'one');
  await mkdir(join(there, 'folder'));
  for (const [to, at] of [
    [`${ID}:new`, 'new'],
    [`${ID}:folder`, 'folder/file'],
    [`${ID}:folder/`, 'folder/file'],
    [`${ID}:.`, 'file'],
    [`${ID}:${there}/folder/as`, 'folder/as'],
    [`${ID}:-n`, '-n'],
  ] as const) {
    await copied(file, to);
    assert.equal(await readFile(join(there, at), 'utf8'), 'one', to);
  }
  await writeFile(file, 'two', { mode: 0o755 });
  await copied(file, `${ID}:new`);
  assert.equal(await readFile(join(there, 'new'), 'utf8'), 'two', 'what was there is replaced');
  await refused(file, `${ID}:missing/`, /:missing\/: no such folder\n {2}berth files mkdir \S+ missing creates it\n$/);
  await refused(file, `${ID}:missing/file`, /folder does not exist\n {2}berth files mkdir \S+ missing creates it\n$/);
  await mkdir(join(there, 'folder/taken/file'), { recursive: true });
  await refused(file, `${ID}:folder/taken`, /the target is a folder/);

  await mkdir(join(here, 'folder'));
  for (const [to, at] of [
    ['new', 'new'],
    ['folder', 'folder/new'],
    ['folder/', 'folder/new'],
    ['folder/as', 'folder/as'],
  ] as const) {
    await copied(`${ID}:new`, join(here, to) + (to.endsWith('/') ? '/' : ''));
    assert.equal(await readFile(join(here, at), 'utf8'), 'two', to);
  }
  await refused(`${ID}:new`, `${here}/missing/`, /missing\/: no such folder\n$/);
  await refused(`${ID}:new`, `${here}/missing/file`, /missing: no such file or folder\n$/);
  await mkdir(join(here, 'taken/new'), { recursive: true });
  await refused(`${ID}:new`, join(here, 'taken'), /the target is a folder, but the source is a file/);
  await symlink('new', join(here, 'link'));
  await copied(`${ID}:file`, join(here, 'link'));
  assert.equal(await readlink(join(here, 'link')), 'new', 'it is written through a symlink that is named');
  assert.equal(await readFile(join(here, 'new'), 'utf8'), 'one');
  await symlink('nowhere', join(here, 'broken'));
  await refused(`${ID}:file`, join(here, 'broken'), /is a dangling symlink/);
  await refused(`${ID}:file`, '/dev/null', /is not a file or folder/);
});

test('a copied folder has the target path of cp and merges into an existing one, both ways', async () => {
  for (const [source, target, from, to] of [
    [here, there, here, `${ID}:`],
    [there, here, `${ID}:`, here],
  ] as const) {
    const at = (base: string, path: string): string =>
      base === `${ID}:` ? `${base}${path}` : join(base, path) + (path.endsWith('/.') ? '/.' : '');
    await mkdir(join(source, 'src'));
    await writeFile(join(source, 'src/a'), 'new');
    await mkdir(join(target, 'into/src/kept'), { recursive: true });
    await writeFile(join(target, 'into/src/a'), 'old');
    await copied(at(from, 'src'), at(to, 'into'));
    assert.equal(await readFile(join(target, 'into/src/a'), 'utf8'), 'new');
    assert.deepEqual(await readdir(join(target, 'into/src')), ['a', 'kept']);
    await copied(at(from, 'src/.'), at(to, 'into'));
    assert.deepEqual((await readdir(join(target, 'into'))).sort(), ['a', 'src']);
    await copied(at(from, 'src'), at(to, 'fresh'));
    await copied(at(from, 'src'), `${at(to, 'slash')}/`);
    assert.deepEqual([await readdir(join(target, 'fresh')), await readdir(join(target, 'slash'))], [['a'], ['a']]);
    await refused(at(from, 'src'), at(to, 'fresh/a'), /is not a folder/);
    await refused(at(from, 'none'), at(to, 'x'), /none: no such file or folder\n$/);
    await rm(join(source, 'src'), { recursive: true });
    await rm(target, { recursive: true });
    await mkdir(target);
  }
});

test('a source symlink is uploaded as a link, not downloaded; -L and a slash follow it', async () => {
  await writeFile(join(here, 'real'), 'content');
  await mkdir(join(here, 'folder'));
  await writeFile(join(here, 'folder/in'), 'in');
  await symlink('real', join(here, 'link'));
  await symlink('folder', join(here, 'to folder'));
  await copied(join(here, 'link'), `${ID}:.`);
  assert.equal(await readlink(join(there, 'link')), 'real');
  await copied(join(here, 'link'), `${ID}:followed`, '-L');
  assert.equal(await readFile(join(there, 'followed'), 'utf8'), 'content');
  await copied(`${join(here, 'to folder')}/`, `${ID}:.`);
  assert.deepEqual(await readdir(join(there, 'to folder')), ['in']);
  await symlink('/etc/passwd', join(there, 'out'));
  await refused(
    `${ID}:out`,
    join(here, 'got'),
    /^berth: sbx_abcabcabcabcabcabcabcabc:out: the source is a symlink; use -L to copy its target\n$/,
  );
  await symlink('followed', join(there, 'near'));
  await copied(`${ID}:near`, join(here, 'got'), '-L');
  assert.equal(await readFile(join(here, 'got'), 'utf8'), 'content');
});

test('symlinks that leave the source are skipped and reported, the rest is copied', async () => {
  await mkdir(join(there, 'tree/a/b'), { recursive: true });
  await writeFile(join(there, 'tree/file'), 'x');
  for (const [name, target] of [
    ['absolute', '/etc/passwd'],
    ['up', '../outside'],
    ['a/b/far', '../../../outside'],
    ['through', 'a/b/top/../..'],
    ['a/b/top', '../..'],
    ['a/near', '../file'],
  ] as const)
    await symlink(target, join(there, 'tree', name));

  const { code, stderr } = await cp(`${ID}:tree`, join(here, 'tree'));
  assert.equal(code, 1);
  assert.deepEqual(stderr.trimEnd().split('\n').sort(), [
    'berth: a/b/far: symlink points outside the copied folder: ../../../outside',
    'berth: absolute: symlink points outside the copied folder: /etc/passwd',
    'berth: through: symlink points outside the copied folder: a/b/top/../..',
    'berth: up: symlink points outside the copied folder: ../outside',
  ]);
  assert.deepEqual(
    (await tree(here, 'tree')).map((line) => line.split(' ')[0]),
    ['.', './a', './a/b', './a/b/top', './a/near', './file'],
  );
});

/** Sends this archive instead of tar's. */
function answerWith(...pieces: Buffer[]): void {
  api.answer = (socket) => {
    for (const piece of pieces) socket.send(Buffer.concat([Buffer.from([1]), piece]));
    socket.send(JSON.stringify({ exit: 0 }));
    socket.close(1000);
  };
}

function entry(name: string, kind: ArchiveEntry['kind'], { content = '', target = '', mode = 0o644 } = {}): Buffer {
  const head = entryHead({
    name: Buffer.from(name),
    kind,
    mode,
    mtime: 1,
    size: content.length,
    target: Buffer.from(target),
  });
  return Buffer.concat([head, Buffer.from(content), padding(content.length)]);
}

test('a hostile archive writes nothing outside its folder, and leaves nothing behind', async () => {
  const root = entry('tree', 'folder', { mode: 0o755 });
  const brokenSum = Buffer.from(root);
  brokenSum[0] = 1;
  for (const [what, pieces, expected] of [
    ['a way up', [root, entry('tree/../escaped', 'file')], /invalid archive: name with '\.\.'/],
    ['a way up at once', [entry('../escaped', 'file')], /invalid archive: name with '\.\.'/],
    ['another root', [root, entry('other', 'file')], /invalid archive: unexpected name/],
    ['an absolute name', [root, entry('/tmp/escaped', 'file')], /invalid archive: unexpected name/],
    [
      'a file through a symlink',
      [root, entry('tree/l', 'link', { target: '.' }), entry('tree/l/x', 'file')],
      /has no parent folder/,
    ],
    ['a file below a file', [root, entry('tree/f', 'file'), entry('tree/f/x', 'file')], /has no parent folder/],
    ['what is no archive', [Buffer.alloc(1_024, 'x')], /invalid archive: /],
    ['a changed head', [brokenSum], /wrong checksum/],
    [
      'an archive without an end',
      [root, entry('tree/f', 'file', { content: 'x'.repeat(600) }).subarray(0, 700)],
      /unexpected end/,
    ],
    ['nothing', [], /unexpected end/],
  ] as const) {
    answerWith(...pieces, ...(what === 'an archive without an end' || what === 'nothing' ? [] : [ARCHIVE_END]));
    const { code, stderr } = await cp(`${ID}:tree`, join(here, 'tree'));
    assert.equal(code, 1, what);
    assert.match(stderr, expected, what);
    assert.deepEqual(await readdir(here), [], what);
    assert.deepEqual((await readdir(folder)).sort(), ['here', 'there'], what);
  }
  // A duplicate name, a hard link and a device are skipped; set-user-id is dropped.
  const device = entry('tree/device', 'file');
  device.write('3', 156, 'latin1');
  device.writeUInt8(0, 154);
  let total = 8 * 32;
  for (const [at, byte] of device.entries()) if (at < 148 || at >= 156) total += byte;
  device.write(`${total.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  const program = entry('tree/program', 'file', { content: 'x', mode: 0o6755 });
  answerWith(
    root,
    entry('tree/twice', 'file', { content: 'first' }),
    entry('tree/twice', 'file', { content: 'second' }),
    device,
    program,
    ARCHIVE_END,
  );
  const { code, stderr } = await cp(`${ID}:tree`, join(here, 'tree'));
  assert.deepEqual([code, stderr.split('\n').length], [1, 3], stderr);
  assert.deepEqual((await readdir(join(here, 'tree'))).sort(), ['program', 'twice']);
  assert.equal(await readFile(join(here, 'tree/twice'), 'utf8'), 'first');
  assert.equal((await stat(join(here, 'tree/program'))).mode & 0o7777, 0o755);
});

test('names from a sandbox with control characters are escaped', async () => {
  answerWith(entry('t\u001b[2J\n', 'folder', { mode: 0o755 }), entry('../\u001b[2J', 'file'), ARCHIVE_END);
  const { stderr } = await cp(`${ID}:tree`, join(here, 'tree'));
  assert.ok(!stderr.includes('\u001b') && stderr.includes(String.raw`\u001b[2J`), JSON.stringify(stderr));
});

test('a large file in a folder is copied both ways', async () => {
  await mkdir(join(here, 'large'));
  const file = createWriteStream(join(here, 'large/f'));
  const sums = createHash('sha256');
  for (let piece = 0; piece < 40; piece += 1) {
    const bytes = randomBytes(1_000_001);
    sums.update(bytes);
    file.write(bytes);
  }
  await new Promise<void>((done) => file.end(done));
  const expected = sums.digest('hex');
  await copied(join(here, 'large'), `${ID}:large`);
  assert.equal(sum(await readFile(join(there, 'large/f'))), expected);
  await copied(`${ID}:large`, join(here, 'back'));
  assert.equal(sum(await readFile(join(here, 'back/f'))), expected);
});

test('sizes and times beyond octal fields are kept', async () => {
  const large: ArchiveEntry = {
    name: Buffer.from('x'),
    kind: 'file',
    mode: 0o644,
    mtime: 9_000_000_000,
    size: 20_000_000_000,
    target: Buffer.alloc(0),
  };
  const source = (async function* source() {
    yield await Promise.resolve(entryHead(large));
  })();
  assert.deepEqual(await new ArchiveReader(source).next(), large);
});

test('an interrupted or disconnected copy leaves no file behind', async () => {
  for (const end of ['SIGINT', 'break'] as const) {
    const begun = Promise.withResolvers<{ terminate: () => void }>();
    api.answer = (socket) => {
      socket.send(
        Buffer.concat([Buffer.from([1]), entry('f', 'file', { content: 'x'.repeat(100_000) }).subarray(0, 60_000)]),
      );
      begun.resolve(socket);
    };
    const { child, ended } = startBerth(['cp', `${ID}:f`, join(here, 'f')], {
      env: api.environment,
    });
    const socket = await begun.promise;
    for (let looks = 0; (await readdir(here)).length === 0; looks += 1) {
      assert.ok(looks < 3_000, 'it is being unpacked');
      await delay(10);
    }
    if (end === 'SIGINT') child.kill('SIGINT');
    else socket.terminate();
    const { code, stderr } = await ended;
    assert.deepEqual(
      [code, stderr],
      end === 'SIGINT'
        ? [130, 'berth: stopped by SIGINT\n']
        : [1, 'berth: the connection to the command was closed: the connection to the server was lost\n'],
    );
    assert.deepEqual(await readdir(here), []);
  }
  api.answer = answer;
});

test('an unreadable file, local or remote, is reported; so is a full remote disk', async () => {
  await mkdir(join(there, 'bin'));
  guest.path = `${join(there, 'bin')}:${process.env['PATH']}`;
  const tar = async (script: string): Promise<void> => {
    await writeFile(join(there, 'bin/tar'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  };
  await writeFile(join(here, 'file'), 'x'.repeat(3_000_000));
  await tar(
    'echo "tar: r: Wrote only 512 of 10240 bytes" >&2; ' +
      'echo "tar: r: Cannot write: No space left on device" >&2; exit 2',
  );
  await refused(
    join(here, 'file'),
    `${ID}:file`,
    /^berth: sbx_abcabcabcabcabcabcabcabc:file: the disk of the sandbox is full\n {2}delete files in the sandbox, or enlarge its disk with berth sandbox resize \S+ --disk-gb N\n$/,
  );
  assert.deepEqual(await readdir(there), ['bin'], 'what was begun is gone');
  await tar('echo "tar: ./x: Cannot open: Permission denied" >&2; exit 2');
  await writeFile(join(there, 'x'), '');
  await refused(
    `${ID}:x`,
    join(here, 'x'),
    /^berth: sbx_abcabcabcabcabcabcabcabc:x: permission denied: commands run as the user of the sandbox\n$|^berth: sbx_abcabcabcabcabcabcabcabc:x: x: Cannot open/,
  );
  // A failure of one entry does not stop the rest.
  await mkdir(join(there, 'some'));
  await writeFile(join(there, 'some/one'), '1');
  await tar(
    `PATH=${process.env['PATH']}; tar "$@"; echo "tar: ./some/two: Cannot open: Permission denied" >&2; exit 2`,
  );
  const { code, stderr } = await cp(`${ID}:some`, here);
  assert.deepEqual([code, stderr], [1, `berth: ${ID}:some: some/two: Cannot open: Permission denied\n`]);
  assert.deepEqual(await readdir(join(here, 'some')), ['one']);
  const skipped: string[] = [];
  await symlink('/proc/self/mem', join(here, 'some/pipe'));
  for await (const _piece of pack(join(here, 'some'), {
    root: 'r',
    follow: false,
    skipped: (path) => skipped.push(path.toString()),
    passed: () => undefined,
  }));
  assert.deepEqual(skipped, [], 'a symlink is not followed');
});

test("a usage error has exit code 2, and a refusal the API's message", async () => {
  await refused(
    `${ID}:a`,
    'sbx_def:b',
    /cannot copy from sandbox to sandbox.*\n {2}use berth exec -i sbx_abcabcabcabcabcabcabcabc -- tar c PATH \| berth exec -i sbx_def/,
    2,
  );
  await refused('a', 'b', /neither 'a' nor 'b' is a path in a sandbox/, 2);
  await refused(
    `${ID}:`,
    here,
    /missing path after sbx_abcabcabcabcabcabcabcabc: \(sbx_abcabcabcabcabcabcabcabc:\. is \/code\)/,
    2,
  );
  await refused('-', `${ID}:x`, /cannot copy from or to '-'/, 2);
  await refused('file:with:colons', `${ID}:x`, /file:with:colons: no such file or folder/);
  api.refuse = refusal(404, 'sandbox_not_found', `there is no sandbox ${ID}`);
  await refused(
    `${ID}:x`,
    here,
    /^berth: there is no sandbox sbx_abcabcabcabcabcabcabcabc \(sandbox_not_found\)\n {2}use the id of .*\n$/,
  );
  await writeFile(join(here, 'file'), '');
  await refused(
    join(here, 'file'),
    `${ID}:x`,
    /^berth: there is no sandbox sbx_abcabcabcabcabcabcabcabc \(sandbox_not_found\)\n {2}use the id of .*\n$/,
  );
});

test('a terminal shows the bytes during a copy', async () => {
  const goOn = Promise.withResolvers<void>();
  api.answer = (socket) => {
    const whole = entry('f', 'file', { content: 'x'.repeat(3_000_000) });
    socket.send(Buffer.concat([Buffer.from([1]), whole.subarray(0, 2_097_152)]));
    void goOn.promise.then(() => {
      socket.send(Buffer.concat([Buffer.from([1]), whole.subarray(2_097_152), ARCHIVE_END]));
      socket.send(JSON.stringify({ exit: 0 }));
      socket.close(1000);
    });
  };
  const screen = new PseudoTerminal(process.execPath, [MAIN, 'cp', `${ID}:f`, join(here, 'f')], api.environment);
  await screen.shows(/• copying from sbx_abcabcabcabcabcabcabcabc: \d+ s, 2\.0 MiB/);
  goOn.resolve();
  await screen.shows(`✓ copying from ${ID}`);
  assert.equal(await screen.ended(), 0);
});
