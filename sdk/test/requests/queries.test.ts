// Paths, queries and bodies of requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '@berth/contract/routes.ts';
import { queryOf } from '../../src/transport/query.ts';
import { against, failureOf, json } from '../scripted-server.ts';

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

/** Parameters of queries that narrow nothing: pages, positions, and targets with defaults. */
const NO_FILTERS = new Set([
  ...['after', 'limit', 'sort', 'since', 'tail', 'cursor', 'revision', 'detail', 'days', 'windowSeconds'],
  ...['path', 'depth', 'recursive'],
]);

test('every filter that is undefined, null or an empty list is refused, other parameters are omitted', () => {
  const names = new Set<string>();
  for (const { request, websocket, upload, response } of ROUTES) {
    if (websocket !== true && upload !== true && response.bytes !== true)
      for (const name of Object.keys(request.query?.shape ?? {})) names.add(name);
  }
  assert.ok(names.has('endUserId') && names.has('after'));
  for (const name of names) {
    for (const value of [undefined, null, []]) {
      if (NO_FILTERS.has(name)) assert.equal(queryOf({ [name]: value }), '', name);
      else assert.throws(() => queryOf({ [name]: value }), { code: 'configuration' }, name);
    }
  }
});

test('an undefined filter rejects before a request, and names the filter', async (t) => {
  const { berth, seen } = await against(t, [json(500, {})]);
  const missing = undefined as unknown as string;
  for (const [what, call, name] of [
    ['list', () => berth.sandboxes.list({ endUserId: missing }), 'endUserId'],
    ['list by label', () => berth.sandboxes.list({ metadata: { user: missing } }), 'metadata[user]'],
    ['list by statuses', () => berth.sandboxes.list({ status: [missing as 'ready'] }), 'status'],
    ['all', () => berth.sandboxes.all({ projectId: missing }).next(), 'projectId'],
    ['counts', () => berth.sandboxes.counts({ endUserId: missing }), 'endUserId'],
    ['usage', () => berth.usage.get({ endUserId: missing }), 'endUserId'],
    ['usage of a project', () => berth.usage.get({ projectId: missing }), 'projectId'],
    ['usage by day', () => berth.usage.daily({ endUserId: missing }), 'endUserId'],
    ['agents', () => berth.agents.list({ sandboxId: missing }), 'sandboxId'],
    ['activity', () => berth.activity.page({ sandboxId: missing }), 'sandboxId'],
    ['raw', () => berth.raw.listSandboxes({ path: { orgId: 'org_1' }, query: { endUserId: missing } }), 'endUserId'],
  ] as const) {
    const { code, message } = await failureOf(call());
    assert.equal(code, 'configuration', what);
    assert.equal(
      message,
      `cannot send the request: the filter ${name} is undefined. Omit it to match everything`,
      what,
    );
  }
  assert.equal(seen.length, 0);
});

test('an undefined end user or project of a create rejects before a request', async (t) => {
  const { berth, seen } = await against(t, [json(500, {})]);
  const missing = undefined as unknown as string;
  for (const [call, message] of [
    [() => berth.sandboxes.create({ endUserId: missing }), /endUserId is undefined\. Omit it to name no end user$/],
    [() => berth.sandboxes.create({ projectId: missing }), /projectId is undefined\. Omit it to use the client's$/],
    [() => berth.sandboxes.getOrCreate({ endUserId: missing }), /requires a key or an endUserId$/],
    [() => berth.sandboxes.getOrCreate({ key: 'k', endUserId: missing }), /endUserId is undefined\./],
    [
      () => berth.raw.createPreview({ path: { sandboxId: 'sbx_1' }, body: { port: 80, endUserId: missing } }),
      /endUserId is undefined\./,
    ],
  ] as const) {
    const error = await failureOf(call());
    assert.equal(error.code, 'configuration');
    assert.match(error.message, message);
  }
  assert.equal(seen.length, 0);
});

test('agent sessions are listed by whether they wait for a person', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sessions: [], nextCursor: null, hasMore: false })]);
  await berth.agents.list({ needsYou: false });
  assert.equal(seen[0]?.path, '/v1/agent-sessions?needsYou=false');
});
