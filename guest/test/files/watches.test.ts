// Watches in the daemon with a scripted helper: their ends, and what a hostile helper can do.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import type { GuestFileChange } from '@berth/protocol/calls/file-watch.ts';
import { FILE_WATCH_LIMITS, FILE_WATCH_WAITING } from '@berth/protocol/guest-limits.ts';
import { KeptChanges } from '../../src/files/kept-changes.ts';
import type { Files } from '../../src/files/files.ts';
import { FileWatches } from '../../src/files/watches.ts';
import { until } from '../daemon.ts';

const never = new AbortController().signal;
const AT = { path: '/f', recursive: true };

/** Watches, and the streams of their helpers so far. */
function scripted(): { watches: FileWatches; helpers: PassThrough[] } {
  const helpers: PassThrough[] = [];
  const watch = async (): Promise<PassThrough> => {
    const helper = new PassThrough();
    helpers.push(helper);
    return helper;
  };
  return { watches: new FileWatches({ watch } as unknown as Files), helpers };
}

const ask = (watches: FileWatches, cursor?: string, waitMs = 0) =>
  watches.changes(AT, { cursor, waitMs, signal: never });

test('a watch ends 5 minutes after its last request, not before, and then gives a reset', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { watches, helpers } = scripted();
  const { cursor } = await ask(watches);
  const almostMs = FILE_WATCH_LIMITS.unusedSeconds * 1_000 - 1;
  t.mock.timers.tick(almostMs);
  assert.deepEqual(await ask(watches, cursor), { changes: [], cursor, reset: false });
  t.mock.timers.tick(almostMs);
  assert.equal(helpers[0]?.destroyed, false);
  t.mock.timers.tick(1);
  assert.equal(helpers[0]?.destroyed, true);
  const again = await ask(watches, cursor);
  assert.deepEqual([helpers.length, again.changes, again.reset], [2, [], true]);
  assert.notEqual(again.cursor, cursor);
});

test('callers that begin together share a watch, and a failure to begin is not kept', async () => {
  const { watches, helpers } = scripted();
  const [one, other] = await Promise.all([ask(watches), ask(watches)]);
  assert.deepEqual([one, helpers.length], [other, 1]);
  let fails = true;
  const files = {
    watch: async () => {
      if (fails) throw new Error('no helper');
      return new PassThrough();
    },
  };
  const failing = new FileWatches(files as unknown as Files);
  await assert.rejects(ask(failing), /no helper/);
  fails = false;
  assert.equal((await ask(failing)).reset, false);
});

test('records may arrive in any pieces', async () => {
  const { watches, helpers } = scripted();
  const { cursor } = await ask(watches);
  const held = ask(watches, cursor, 20_000);
  for (const byte of Buffer.from('cf/ü\n\0w-/a/b\0rd\0')) helpers[0]?.write(Buffer.of(byte));
  const first = await held;
  const seen = [...first.changes];
  let next = first.cursor;
  await until('all changes have arrived', async () => {
    const found = await ask(watches, next);
    next = found.cursor;
    seen.push(...found.changes);
    return seen.length === 3;
  });
  assert.deepEqual(seen, [
    { path: '/f/ü\n', change: 'created', kind: 'file' },
    { path: '/f/a/b', change: 'changed' },
    { path: '/f', change: 'removed', kind: 'directory' },
  ]);
});

for (const [what, bytes] of [
  ['an unknown change', 'xf/a\0'],
  ['an unknown kind', 'cx/a\0'],
  ['an empty record', '\0'],
  ['a long path', `cf/${'a'.repeat(5_000)}\0`],
  ['a record without end', `cf/${'a'.repeat(20_000)}`],
] as const) {
  test(`${what} of a changed helper ends the watch, and its reader is reset`, async () => {
    const { watches, helpers } = scripted();
    const { cursor } = await ask(watches);
    const held = ask(watches, cursor, 20_000);
    helpers[0]?.write(bytes);
    const found = await held;
    assert.deepEqual([found.changes, found.reset, helpers.length, helpers[0]?.destroyed], [[], true, 2, true]);
  });
}

test('a limited number of requests wait; further ones get their response at once', async () => {
  const { watches, helpers } = scripted();
  const { cursor } = await ask(watches);
  const leaving = new AbortController();
  const held = Array.from({ length: FILE_WATCH_WAITING }, () =>
    watches.changes(AT, { cursor, waitMs: 20_000, signal: leaving.signal }),
  );
  assert.deepEqual(await ask(watches, cursor, 20_000), { changes: [], cursor, reset: false });
  leaving.abort();
  await Promise.all(held);
  const next = ask(watches, cursor, 20_000);
  helpers[0]?.write('cf/a\0');
  assert.equal((await next).changes.length, 1);
});

const created = (path: string, kind: GuestFileChange['kind'] = 'file'): GuestFileChange => ({
  path,
  change: 'created',
  kind,
});

test('the changes of a watch are kept up to a number and a length, and reads beyond give nothing', () => {
  const { changes: most, textBytes } = FILE_WATCH_LIMITS.kept;
  const kept = new KeptChanges();
  for (let at = 1; at <= most + 10; at += 1) kept.add(created(`/${at}`));
  assert.equal(kept.after(9), undefined);
  assert.equal(kept.after(most + 11), undefined);
  const { response } = FILE_WATCH_LIMITS;
  const page = kept.after(10);
  assert.deepEqual([page?.changes.length, page?.last], [response.changes, 10 + response.changes]);
  assert.deepEqual(kept.after(most + 10), { changes: [], last: most + 10 });
  const long = new KeptChanges();
  const path = `/${'ü'.repeat(2_000)}`;
  for (let at = 0; at < 300; at += 1) long.add(created(`${path}${at}`));
  const first = [...Array(301).keys()].find((number) => long.after(number) !== undefined) ?? 0;
  assert.ok(first > 0 && (300 - first) * 4_000 <= textBytes, String(first));
  const texts = long.after(first)?.changes.reduce((sum, one) => sum + Buffer.byteLength(one.path), 0) ?? 0;
  assert.ok(texts <= response.textBytes + 4_100, String(texts));
});

test('a change replaces earlier ones of its path, but no folder, and no creation by a change of content', () => {
  const kept = new KeptChanges();
  const shown = (from: number): string[] =>
    kept.after(from)?.changes.map(({ change, path }) => `${change} ${path}`) ?? ['reset'];
  const changed: GuestFileChange = { path: '/a', change: 'changed', kind: 'file' };
  kept.add(created('/a'));
  kept.add(changed);
  kept.add(created('/b'));
  kept.add(changed);
  assert.deepEqual(shown(0), ['created /a', 'created /b', 'changed /a']);
  assert.deepEqual(shown(2), ['created /b', 'changed /a']);
  kept.add({ path: '/a', change: 'removed' });
  assert.deepEqual(shown(0), ['created /b', 'removed /a']);
  kept.add({ path: '/d', change: 'removed', kind: 'directory' });
  kept.add(created('/d', 'directory'));
  kept.add(created('/a', 'directory'));
  assert.deepEqual(shown(0), ['created /b', 'removed /d', 'created /d', 'created /a']);
});
