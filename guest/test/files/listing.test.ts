// Listings of folders: entries, depth, and truncation.
import assert from 'node:assert/strict';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { FILE_LIST } from '@berth/protocol/files.ts';
import { parseListing } from '@berth/protocol/listing.ts';
import { startDaemon } from '../daemon.ts';
import { TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;

test('a listing marks folders as such and everything else, links included, as files', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec(
    'mkdir folder; touch file .hidden; ln -s folder link; ln -s nowhere dangling; ' +
      'ln -s . self; mkfifo fifo; echo x > folder/in',
  );
  const inside = ['.hidden', 'dangling', 'fifo', 'file', 'folder/', 'link', 'self'];
  assert.deepEqual(await files.names('.'), { '': inside });
  assert.deepEqual(await files.names('link'), { '': ['in'] }, 'a link that is asked for is followed');
  assert.deepEqual(await files.names('.', 5), { '': inside, '/folder': ['in'] }, 'one that is met is not');
  assert.deepEqual(await files.list('.'), { ...((await files.list('self/self/self')) as object) });
  assert.equal(await files.list('file'), '400 not_a_directory');
  assert.equal(await files.list('fifo'), '400 not_a_directory');
  assert.equal(await files.list('missing'), '404 file_not_found');
  assert.ok((await files.names('/'))['']?.includes('proc/'));
});

test('a listing has the requested depth, level by level', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec('mkdir -p 1/2/3/4/5/6 b/c; touch 1/x 1/2/3/4/5/y; ln -s ../.. 1/2/up');
  const levels: [string, string[]][] = [
    ['', ['1/', 'b/']],
    ['/1', ['2/', 'x']],
    ['/1/2', ['3/', 'up']],
    ['/1/2/3', ['4/']],
    ['/1/2/3/4', ['5/']],
  ];
  for (let depth = 1; depth <= 5; depth += 1) {
    const folders = await files.names('.', depth);
    const expected = Object.fromEntries(levels.slice(0, depth));
    if (depth >= 2) expected['/b'] = ['c/'];
    if (depth >= 3) expected['/b/c'] = [];
    assert.deepEqual(folders, expected);
    const order = Object.keys(folders).map((path) => path.split('/').length);
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  }
});

test('names may have any bytes but slash and NUL, invalid UTF-8 included', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const odd = [
    '\n',
    ' ',
    '"',
    "'",
    '\\',
    '🦭',
    '-',
    'a\tb',
    'D',
    'd',
    'EC',
    '_',
    'STDIN',
    '|ls',
    '>x',
    '__proto__',
    'é',
    '\u0001',
  ];
  for (const name of odd) await mkdir(files.at(name));
  assert.deepEqual(await files.names('.'), { '': odd.map((name) => `${name}/`).toSorted() });
  const deep = await files.list('.', 2);
  assert.ok(typeof deep !== 'string' && deep.folders.length === odd.length + 1 && !deep.truncated);
  await daemon.exec(String.raw`mkdir bytes; cd bytes; touch "$(printf 'a\377b')" "$(printf '\303')"`);
  const bytes = await files.list('bytes');
  assert.ok(typeof bytes !== 'string');
  assert.deepEqual(bytes.folders[0]?.entries.map(({ name }) => name).toSorted(), ['a\xffb', '\xc3']);
});

test(
  'an unreadable folder makes a listing incomplete, and is refused as its root',
  { skip: !root && 'needs another user' },
  async (t) => {
    const daemon = await startDaemon(t);
    const files = new TestFiles(daemon);
    await mkdir(files.at('open/closed'), { recursive: true });
    await writeFile(files.at('open/closed/in'), '');
    await chmod(files.at('open/closed'), 0o700);
    const listing = await files.list('.', 5);
    assert.ok(typeof listing !== 'string');
    assert.deepEqual(
      listing.folders.map(({ path, entries }) => [path, entries.map(({ name, kind }) => `${name} ${kind}`)]),
      [
        ['', ['open directory']],
        ['/open', ['closed directory']],
      ],
    );
    assert.equal(listing.truncated, true);
    const shallow = await files.list('.', 2);
    assert.ok(
      typeof shallow !== 'string' && !shallow.truncated,
      'what lies deeper than asked is nothing that is missing',
    );
    assert.equal(await files.list('open/closed'), '403 file_access_denied');
  },
);

test('a listing ends at 10,000 entries, in any layout, and before 2 MiB of text', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const count = async (name: string, depth: number): Promise<[number, boolean]> => {
    const listing = await files.list(name, depth);
    assert.ok(typeof listing !== 'string');
    return [listing.folders.reduce((sum, { entries }) => sum + entries.length, 0), listing.truncated];
  };
  await daemon.exec(`mkdir flat spread; cd flat; seq ${FILE_LIST.entries} | xargs touch`, 120);
  assert.deepEqual(await count('flat', 1), [FILE_LIST.entries, false]);
  await daemon.exec('touch flat/one-more');
  assert.deepEqual(await count('flat', 1), [FILE_LIST.entries, true]);
  await daemon.exec('cd spread; for i in $(seq 101); do mkdir $i; (cd $i; seq 100 | xargs touch); done', 120);
  assert.deepEqual(await count('spread', 2), [FILE_LIST.entries, true]);
  await symlink('flat', files.at('link'));
  assert.deepEqual(await count('link', 5), [FILE_LIST.entries, true]);

  await daemon.exec(`mkdir long; cd long; p=$(printf 'x%.0s' $(seq 240)); seq 9000 | sed "s/^/$p/" | xargs touch`, 120);
  const [entries, truncated] = await count('long', 1);
  assert.ok(truncated && entries < 9_000 && entries > 3_000, String(entries));
});

test('a listing that does not match its request is rejected', () => {
  const parse = (text: string, depth = 2): unknown => parseListing(Buffer.from(text, 'latin1'), { root: '/', depth });
  assert.deepEqual(parse('D\0EC'), { folders: [{ path: '', entries: [] }], truncated: false });
  assert.deepEqual(parse('D\0da\0fb\0D/a\0fc\0ET'), {
    folders: [
      {
        path: '',
        entries: [
          { name: 'a', kind: 'directory' },
          { name: 'b', kind: 'file' },
        ],
      },
      { path: '/a', entries: [{ name: 'c', kind: 'file' }] },
    ],
    truncated: true,
  });
  assert.deepEqual(parse('D\0fa\0m3 -7\0lb\0m99999999999999999999 1\0oc\0EC'), {
    folders: [
      {
        path: '',
        entries: [
          { name: 'a', kind: 'file', facts: { size: 3, mtimeSeconds: -7 } },
          { name: 'b', kind: 'link', facts: { size: Number.MAX_SAFE_INTEGER, mtimeSeconds: 1 } },
          { name: 'c', kind: 'other' },
        ],
      },
    ],
    truncated: false,
  });
  for (const [text, depth] of [
    ['D\0m1 2\0EC'],
    ['D\0fa\0m1 2\0m1 2\0EC'],
    ['D\0fa\0m1\0EC'],
    ['D\0fa\0m-1 2\0EC'],
    [''],
    ['EC'],
    ['D\0'],
    ['D\0E'],
    ['D\0EX'],
    ['D\0ECC'],
    ['D\0EC\0'],
    ['D\0f\0EC'],
    ['D\0f..\0EC'],
    ['D\0d.\0EC'],
    ['D\0fa/b\0EC'],
    ['D\0x\0EC'],
    ['D\0fa'],
    ['fa\0D\0EC'],
    ['D/a\0EC'],
    ['D\0fa\0D/a\0EC'],
    ['D\0da\0D/a\0D/a\0EC'],
    ['D\0D\0EC'],
    ['D\0da\0D/../a\0EC'],
    ['D\0da\0D/a\0EC', 1],
  ] as const)
    assert.equal(parse(text, depth), null, JSON.stringify(text));
});
