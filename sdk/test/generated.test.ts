// Generated sources match the contract.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROUTES } from '@berth/contract/routes.ts';
import { generate } from '../build/generate.ts';
import { RawClient } from '../src/index.ts';

const COMMITTED = join(import.meta.dirname, '../src/generated');

async function textsIn(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts')).toSorted();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')])),
  );
}

test('sdk/src/generated matches the output of npm run sdk:generate', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-sdk-generated-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await generate(folder);
  const [fresh, committed] = [await textsIn(folder), await textsIn(COMMITTED)];
  assert.deepEqual(Object.keys(committed), Object.keys(fresh));
  for (const [name, text] of Object.entries(fresh))
    assert.ok(committed[name] === text, `${name} is another: run npm run sdk:generate`);
});

test('the raw client has a function for every route except WebSockets and raw bytes', () => {
  const functions = Object.getOwnPropertyNames(RawClient.prototype).filter((name) => name !== 'constructor');
  const routes = ROUTES.filter(
    ({ websocket, upload, response }) => websocket !== true && upload !== true && response.bytes !== true,
  ).map(({ name }) => name);
  assert.deepEqual(functions.toSorted(), routes.toSorted());
});
