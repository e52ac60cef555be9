// Facts of files and links: stat, and listings with details.
import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { FILE_LIST } from '@berth/protocol/files.ts';
import { parseListing } from '@berth/protocol/listing.ts';
import { startDaemon } from '../daemon.ts';
import { TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;

async function factsOf(files: TestFiles, name: string): Promise<Record<string, unknown>> {
  const stat = await files.stat(name);
  if (typeof stat === 'string') throw new Error(`${name}: ${stat}`);
  const { size, mtimeSeconds, ...facts } = stat;
  assert.ok(size >= 0 && Math.abs(mtimeSeconds - Date.now() / 1_000) < 86_400 * 365 * 50, name);
  return facts;
}

test('a stat describes a link itself and what it resolves to, and never opens or waits', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec(String.raw`printf four > f; chmod 640 f; mkdir -m 1777 folder; mkfifo -m 600 fifo; touch -d @7 f
    ln -s folder to-folder; ln -s ./f to-file; ln -s fifo to-fifo; ln -s nowhere dangling; ln -s loop loop
    ln -s f/below through-file; ln -s "$(printf 'a\nb\001')" odd-target; ln -s "$(printf 'a\377')" no-text
    touch "$(printf 'odd\n\033name')"; touch "$(printf 'no-\377text')"`);
  assert.deepEqual(await files.stat('f'), { kind: 'file', size: 4, mtimeSeconds: 7, mode: '0640' });
  assert.deepEqual(await factsOf(files, 'folder'), { kind: 'directory', mode: '1777' });
  assert.deepEqual(await factsOf(files, 'fifo'), { kind: 'other', mode: '0600' });
  assert.deepEqual(await factsOf(files, '/'), { kind: 'directory', mode: '0755' });
  assert.deepEqual(await factsOf(files, 'odd\n\u001bname'), { kind: 'file', mode: '0644' });
  for (const [name, target, resolved] of [
    ['to-folder', 'folder', 'directory'],
    ['to-file', './f', 'file'],
    ['to-fifo', 'fifo', 'other'],
    ['dangling', 'nowhere', null],
    ['loop', 'loop', null],
    ['through-file', 'f/below', null],
    ['odd-target', 'a\nb\u0001', null],
  ] as const)
    assert.deepEqual(await factsOf(files, name), { kind: 'link', mode: '0777', target, resolved }, name);

  assert.deepEqual(await factsOf(files, 'no-text'), { kind: 'link', mode: '0777', resolved: null });
  assert.equal(await files.stat('missing'), '404 file_not_found');
  assert.equal(await files.stat('f/below'), '400 not_a_directory');
  assert.equal(await files.stat('loop/below'), '400 file_path_invalid');
  assert.equal(await files.stat('x'.repeat(256)), '400 file_path_invalid');
});

test('a stat in a closed folder is refused, and a link into it resolves to nothing', { skip: !root }, async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await mkdir(files.at('closed'));
  await writeFile(files.at('closed/in'), '');
  await chmod(files.at('closed'), 0o700);
  await daemon.exec('ln -s closed/in link');
  assert.equal(await files.stat('closed/in'), '403 file_access_denied');
  assert.deepEqual(await factsOf(files, 'closed'), { kind: 'directory', mode: '0700' });
  assert.deepEqual(await factsOf(files, 'link'), { kind: 'link', mode: '0777', target: 'closed/in', resolved: null });
});

test('a listing with details has modes, and the targets of links as bytes', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec(String.raw`mkdir -m 2750 folder; touch f; chmod 4711 f; mkfifo -m 600 fifo
    ln -s "$(printf '\377\n')" link; ln -s nowhere "$(printf 'name\n\377')"`);
  const listing = await files.list('.', 1, true);
  assert.ok(typeof listing !== 'string' && !listing.truncated);
  assert.deepEqual(
    listing.folders[0]?.entries
      .map(({ name, kind, facts, target }) => [name, kind, facts?.mode, target])
      .toSorted(([one = ''], [other = '']) => (one < other ? -1 : 1)),
    [
      ['f', 'file', '4711', undefined],
      ['fifo', 'other', '0600', undefined],
      ['folder', 'directory', '2750', undefined],
      ['link', 'link', '0777', '\xff'],
      ['name\n\xff', 'link', '0777', 'nowhere'],
    ],
  );
  const plain = await files.list('.');
  assert.ok(typeof plain !== 'string');
  for (const { facts, target } of plain.folders[0]?.entries ?? [])
    assert.deepEqual([facts?.mode, target], [undefined, undefined]);
});

test('long targets of links count towards the 2 MiB of a listing', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const links = 600;
  await daemon.exec(`t=$(printf 'x/%.0s' $(seq 2000)); for i in $(seq ${links}); do ln -s "$t$i" $i; done`, 120);
  const listing = await files.list('.', 1, true);
  assert.ok(typeof listing !== 'string' && listing.truncated);
  const entries = listing.folders[0]?.entries ?? [];
  const bytes = entries.reduce((sum, { target = '' }) => sum + target.length, 0);
  assert.ok(entries.length < links && bytes > FILE_LIST.textBytes / 2 && bytes < FILE_LIST.textBytes + 4_096);
});

test('malformed details of a listing are rejected', () => {
  const parse = (text: string): unknown => parseListing(Buffer.from(text, 'latin1'), { root: '/', depth: 1 });
  assert.deepEqual(parse('D\0la\0m3 1 0777\0tb/\xff\0EC'), {
    folders: [
      {
        path: '',
        entries: [{ name: 'a', kind: 'link', facts: { size: 3, mtimeSeconds: 1, mode: '0777' }, target: 'b/\xff' }],
      },
    ],
    truncated: false,
  });
  for (const text of [
    'D\0tb\0EC',
    'D\0la\0tb\0EC',
    'D\0fa\0m1 1 0644\0tb\0EC',
    'D\0la\0m1 1 0777\0t\0EC',
    'D\0la\0m1 1 0777\0tb\0tb\0EC',
    'D\0la\0m1 1 0777\0tb',
    'D\0la\0m1 1 777\0EC',
    'D\0la\0m1 1 07777\0EC',
    'D\0la\0m1 1 0888\0EC',
    `D\0la\0m1 1 0777\0t${'x'.repeat(4_096)}\0EC`,
    `D\0${Array.from({ length: 520 }, (_, at) => `l${at}\0m1 1 0777\0t${'x'.repeat(4_095)}\0`).join('')}EC`,
  ])
    assert.equal(parse(text), null, JSON.stringify(text.slice(0, 60)));
});
