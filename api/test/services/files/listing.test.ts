// Listings returned to callers, from a guest's data.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FILE_LIST } from '@berth/protocol/files.ts';
import { readListing } from '../../../src/services/files/listing.ts';

const read = (records: string, root = '/code', depth = 3): ReturnType<typeof readListing> =>
  readListing(Buffer.from(records, 'latin1'), root, depth);

test('entries are sorted by label and have paths below the requested folder', () => {
  assert.deepEqual(read('D\0fb\0da\0fB\0D/a\0fx\0EC'), {
    truncated: false,
    directories: {
      '/code': [
        { label: 'B', path: '/code/B', type: 'file' },
        { label: 'a', path: '/code/a', type: 'directory' },
        { label: 'b', path: '/code/b', type: 'file' },
      ],
      '/code/a': [{ label: 'x', path: '/code/a/x', type: 'file' }],
    },
  });
});

test('entries of the root have a single slash', () => {
  assert.deepEqual(read('D\0detc\0D/etc\0fhosts\0ET', '/'), {
    truncated: true,
    directories: {
      '/': [{ label: 'etc', path: '/etc', type: 'directory' }],
      '/etc': [{ label: 'hosts', path: '/etc/hosts', type: 'file' }],
    },
  });
});

test('UTF-8 names are shown unchanged', () => {
  const name = Buffer.from('é 🦭\n"__proto__').toString('latin1');
  assert.deepEqual(read(`D\0f${name}\0EC`).directories['/code'], [
    { label: 'é 🦭\n"__proto__', path: '/code/é 🦭\n"__proto__', type: 'file' },
  ]);
});

test('a non-UTF-8 name is shown with U+FFFD, and such a folder is marked as not listed', () => {
  assert.deepEqual(read('D\0fa\xffb\0EC').truncated, false);
  const listing = read('D\0d\xe9\0D/\xe9\0din\0D/\xe9/in\0fx\0EC');
  assert.deepEqual(listing, {
    truncated: true,
    directories: { '/code': [{ label: '\uFFFD', path: '/code/\uFFFD', type: 'directory' }] },
  });
});

test('a malformed listing is a guest error', () => {
  for (const records of ['', 'D\0', 'D\0fa/b\0EC', 'D\0EC and more', 'D/x\0EC'])
    assert.throws(() => read(records), { code: 'guest_unreachable' });
});

test('a guest cannot inflate a listing with million-character names or extra entries', () => {
  const name = 'x'.repeat(900_000);
  const few = `D\0d${name}\0D/${name}\0${'fa\0'.repeat(4)}EC`;
  assert.throws(() => read(few), { code: 'guest_unreachable' });
  const entry = 'fa\0';
  assert.equal(read(`D\0${entry.repeat(FILE_LIST.entries)}ET`).directories['/code']?.length, FILE_LIST.entries);
  assert.throws(() => read(`D\0${entry.repeat(FILE_LIST.entries + 1)}ET`), { code: 'guest_unreachable' });
  // The path of each entry includes the requested folder.
  assert.throws(() => read(`D\0${entry.repeat(FILE_LIST.entries)}ET`, `/${'y'.repeat(4_000)}`), {
    code: 'guest_unreachable',
  });
});
