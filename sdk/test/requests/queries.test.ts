// Paths and queries of requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { against, json } from '../scripted-server.ts';

test('lists, labels and special characters of a query are encoded', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sandboxes: [] })]);
  await berth.sandboxes.list({ status: ['ready', 'running'], metadata: { 'a&b': 'c d+e', n: '1' }, q: 'ü?' });
  const { pathname, searchParams } = new URL(seen[0]?.path ?? '', 'http://service');
  assert.equal(pathname, '/v1/orgs/org_1/sandboxes');
  assert.match(seen[0]?.path ?? '', /=c%20d%2Be&/);
  assert.deepEqual(
    [...searchParams],
    [
      ['status', 'ready'],
      ['status', 'running'],
      ['metadata[a&b]', 'c d+e'],
      ['metadata[n]', '1'],
      ['q', 'ü?'],
    ],
  );
});

test('an id with special characters stays one segment of the path', async (t) => {
  const { berth, seen } = await against(t, [json(404, { error: { code: 'sandbox_not_found', message: 'none' } })]);
  await assert.rejects(berth.sandboxes.get('a/b?c'), { code: 'sandbox_not_found' });
  assert.equal(seen[0]?.path, '/v1/sandboxes/a%2Fb%3Fc');
});
