// Moves of a finished clone into place: with arbitrary byte names, all or nothing, and never
// reported as done too early.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ClonePlace, NameTaken } from '../../src/clones/place.ts';

const FOLDER = '.berth-clone-0123456789abcdef';

/** A code folder with a finished clone of these entries beside its content. */
function finished(t: TestContext, names: readonly Buffer[]): { code: string; work: string; place: ClonePlace } {
  const root = mkdtempSync(join(tmpdir(), 'berth-clone-place-'));
  t.after(() => rmSync(root, { recursive: true }));
  const code = join(root, 'code');
  const work = join(code, FOLDER, 'work');
  mkdirSync(work, { recursive: true });
  for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${work}/`), name]), '');
  mkdirSync(join(work, '.git'));
  return { code, work, place: new ClonePlace(join(root, 'state', 'clone.json'), code) };
}

const bytesIn = (folder: string): string[] =>
  readdirSync(folder, { encoding: 'buffer' })
    .map((name) => name.toString('latin1'))
    .sort();

test('names that are not UTF-8 are moved into place unchanged', (t) => {
  const { code, place } = finished(t, [Buffer.from('caf\xe9.txt', 'latin1'), Buffer.from('plain'), Buffer.from('é')]);
  place.take(FOLDER);
  assert.deepEqual(bytesIn(code), ['.berth-clone-0123456789abcdef', '.git', 'caf\xe9.txt', 'plain', 'Ã©']);
  assert.deepEqual(place.read(), { state: 'done' });
});

test('an existing name that is not UTF-8 is detected, and nothing is moved', (t) => {
  const { code, work, place } = finished(t, [Buffer.from('\xe9', 'latin1'), Buffer.from('a')]);
  writeFileSync(Buffer.concat([Buffer.from(`${code}/`), Buffer.from([0xe9])]), "the user's own");
  assert.throws(() => place.take(FOLDER), NameTaken);
  assert.deepEqual(bytesIn(work), ['.git', 'a', '\xe9']);
  assert.deepEqual(place.read(), { state: 'none' });
});

test('a move that finds a name newly taken is given up, and not reported as done later', (t) => {
  const { code, work, place } = finished(t, [Buffer.from('a')]);
  place.take(FOLDER);
  // Leaves the state of a daemon killed before it had moved everything.
  mkdirSync(join(work, '.git'), { recursive: true });
  writeFileSync(join(code, '..', 'state', 'clone.json'), JSON.stringify({ state: 'moving', folder: FOLDER }));
  assert.throws(() => place.finishMove(FOLDER), NameTaken);
  assert.deepEqual(place.read(), { state: 'none' });
  assert.ok(existsSync(join(work, '.git')));
});

test('the .git folder is moved last, so its presence means a complete move', (t) => {
  const names = Array.from({ length: 3_000 }, (_, at) => `file-${at}`);
  const { code, place } = finished(
    t,
    names.map((name) => Buffer.from(name)),
  );
  place.take(FOLDER);
  const movedAt = (name: string): bigint => statSync(join(code, name), { bigint: true }).ctimeNs;
  assert.ok(names.every((name) => movedAt(name) <= movedAt('.git')));
});
