// Environment variables of sandboxes: kept sealed, never returned, given to programs that start.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { SANDBOX_VARIABLES } from '@berth/contract/route/command-options.ts';
import { sql } from 'kysely';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { openText, sealText, UnsealError } from '../../../src/services/context/sealed.ts';
import { environmentFor } from '../../../src/services/sandboxes/variables.ts';
import { resealAll } from '../../../src/services/secrets/reseal.ts';
import { variableId } from '../../../src/store/sandboxes/variables.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { requestWebSocket } from '../../world/websocket-client.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';

const RESULT = { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
const URL = 'postgres://ada:lantern@db.example.com/ada';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
  api.secret(URL, 'the value of a variable');
});
after(() => api.close());

const ready = async (): Promise<string> => (await api.makeSandbox('ready')).id;
const call = (method: 'GET' | 'PUT' | 'PATCH', id: string, variables?: unknown, token?: string): Promise<Answer> =>
  api.call(method, `/v1/sandboxes/${id}/variables`, {
    ...(variables === undefined ? {} : { body: { variables } }),
    ...(token === undefined ? {} : { token }),
  });
const namesIn = ({ body }: Answer): string[] => body.variables.map(({ name }: { name: string }) => name);
const rowsOf = (id: string) =>
  api.db.selectFrom('sandbox_variable').selectAll().where('sandbox_id', '=', id).orderBy('name').execute();

/** The variables that a command of the sandbox gets. */
async function seenBy(id: string, body: object = {}): Promise<string[] | undefined> {
  let env: string[] | undefined;
  api.front.exec = (request) => {
    env = (request as { env?: string[] }).env;
    return Promise.resolve(RESULT);
  };
  const answer = await api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'true', ...body } });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return env?.toSorted();
}

function assertRefused({ status, body }: Answer, expected: [number, string], message?: RegExp): void {
  assert.deepEqual([status, body.error?.code], expected, JSON.stringify(body));
  if (message !== undefined) assert.match(body.error.message, message);
}

test('variables are set, replaced and removed; responses have names and times, never values', async () => {
  const id = await ready();
  const set = await call('PUT', id, { DATABASE_URL: URL, MODE: 'production' });
  assert.equal(set.status, 200, JSON.stringify(set.body));
  assert.deepEqual(Object.keys(set.body.variables[0]), ['name', 'updatedAt']);
  assert.deepEqual(namesIn(set), ['DATABASE_URL', 'MODE']);
  assert.deepEqual(namesIn(await call('PATCH', id, { MODE: null, A: '', NONE: null })), ['A', 'DATABASE_URL']);
  const listed = await call('GET', id);
  assert.deepEqual(namesIn(listed), ['A', 'DATABASE_URL']);
  assert.ok(!JSON.stringify(listed.body).includes('lantern'));
  assert.deepEqual(namesIn(await call('PUT', id, { B: 'b' })), ['B']);
  assert.deepEqual(namesIn(await call('PUT', id, {})), []);
  assert.deepEqual(await rowsOf(id), []);
});

test('commands get the variables of their sandbox; those of the request win', async () => {
  const [id, other] = [await ready(), await ready()];
  assert.equal(await seenBy(id), undefined);
  await call('PUT', id, { DATABASE_URL: URL, MODE: 'production', TEXT: 'two\nlines = "é"' });
  const all = [`DATABASE_URL=${URL}`, 'MODE=production', 'TEXT=two\nlines = "é"'];
  assert.deepEqual(await seenBy(id), all);
  assert.deepEqual(await seenBy(id, { env: { MODE: 'test', PORT: '80' } }), [all[0], 'MODE=test', 'PORT=80', all[2]]);
  assert.equal(await seenBy(other), undefined);
});

test('processes get the variables of their sandbox, also if a key repeats the start', async () => {
  const id = await ready();
  await call('PUT', id, { DATABASE_URL: URL });
  const start = (): Promise<Answer> =>
    api.call('POST', `/v1/sandboxes/${id}/processes`, {
      body: { command: 'serve', env: { PORT: '80' } },
      headers: { 'idempotency-key': 'one' },
    });
  const { body } = await start();
  const { asked } = api.front.processes.of(id).get(body.process.id) ?? assert.fail();
  assert.deepEqual(asked.env?.toSorted(), [`DATABASE_URL=${URL}`, 'PORT=80']);
  await call('PUT', id, { DATABASE_URL: 'changed' });
  assert.equal((await start()).body.process.id, body.process.id);
});

/** The variables that a guest gets for a terminal or agent, by their id in its start. */
function staging(): Map<string, string[]> {
  const staged = new Map<string, string[]>();
  api.front.variables = (given, env) => void staged.set(given, env);
  return staged;
}

test('terminals and commands of connections get the variables of their sandbox', async () => {
  const [id, staged] = [await ready(), staging()];
  let target = '';
  api.front.stream = (_, asked) => {
    target = asked;
    return (caller) => void caller.pipe(caller);
  };
  const open = async (query: string): Promise<void> => {
    const path = `${api.url}/v1/sandboxes/${id}/terminal${query}`;
    const answer = await requestWebSocket(path, { authorization: `Bearer ${api.token}` });
    assert.ok('socket' in answer, JSON.stringify(answer));
    answer.socket.terminate();
  };
  await open('');
  assert.deepEqual([target, staged.size], ['terminal?cols=80&rows=24', 0]);
  await call('PUT', id, { DATABASE_URL: URL });
  for (const query of ['', '?command=env', '?command=env&tty=false']) {
    await open(query);
    const given = new URLSearchParams(target.slice(target.indexOf('?'))).get('variables') ?? '';
    assert.deepEqual(staged.get(given), [`DATABASE_URL=${URL}`]);
  }
});

test('agents get the variables of their sandbox at each start', async () => {
  const [id, staged] = [await ready(), staging()];
  await call('PUT', id, { DATABASE_URL: URL });
  const path = `/v1/sandboxes/${id}/agent-sessions`;
  const created = await api.call('POST', path);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const start = api.agents.calls.findLast(({ verb, vmId }) => verb === 'start' && vmId === id);
  assert.deepEqual(staged.get(String(start?.body['variables'])), [`DATABASE_URL=${URL}`]);
});

test('a sandbox of an earlier release starts no terminal or agent without its variables', async () => {
  const id = await ready();
  await call('PUT', id, { DATABASE_URL: URL });
  api.front.variables = () => {
    throw new ExecRefusal('variables_unsupported', 'none');
  };
  const path = `/v1/sandboxes/${id}/agent-sessions`;
  assertRefused(await api.call('POST', path), [409, 'variables_unsupported'], /unset its variables/);
  const answer = await requestWebSocket(`${api.url}/v1/sandboxes/${id}/terminal`, {
    authorization: `Bearer ${api.token}`,
  });
  assert.ok('text' in answer);
  assert.deepEqual([answer.status, JSON.parse(answer.text).error.code], [409, 'variables_unsupported']);
  assert.deepEqual((await api.call('GET', `/v1/agent-sessions?sandboxId=${id}`)).body.sessions, []);
  await call('PUT', id, {});
  assert.equal((await api.call('POST', path)).status, 201);
});

test('values are sealed for their org, sandbox and name', async () => {
  const [id, other] = [await ready(), await ready()];
  await call('PUT', id, { DATABASE_URL: URL });
  await call('PUT', other, { DATABASE_URL: 'none' });
  const [row] = await rowsOf(id);
  assert.ok(row !== undefined && !row.value_sealed.includes('lantern'));
  const keys = api.context.secretKey.keysFor('sandbox-variables');
  assert.equal(row.id, `${api.orgId}:${id}:DATABASE_URL`);
  assert.equal(openText(keys, row.id, row.value_sealed), URL);
  await api.db
    .updateTable('sandbox_variable')
    .set({ value_sealed: row.value_sealed })
    .where('sandbox_id', '=', other)
    .execute();
  const moved = await api.call('POST', `/v1/sandboxes/${other}/exec`, { body: { command: 'env' } });
  assertRefused(moved, [500, 'internal']);
  await call('PUT', other, {});
});

test('a rotation of the secret key seals variables again', async () => {
  const id = await ready();
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const of = { orgId: api.orgId, sandboxId: id, name: 'DATABASE_URL' };
  const sealed = sealText(new SecretKey(old).keysFor('sandbox-variables'), variableId(of), URL);
  await call('PUT', id, { DATABASE_URL: 'replaced' });
  await api.db.updateTable('sandbox_variable').set({ value_sealed: sealed }).where('sandbox_id', '=', id).execute();
  await resealAll({ db: api.db, secretKey: new SecretKey(fresh, old) }, new AbortController().signal);
  const sandbox = { id, org_id: api.orgId };
  assert.deepEqual(await environmentFor({ db: api.db, secretKey: new SecretKey(fresh) }, sandbox), [
    `DATABASE_URL=${URL}`,
  ]);
  await assert.rejects(environmentFor({ db: api.db, secretKey: new SecretKey(old) }, sandbox), UnsealError);
});

test('a destroy deletes the variables, and a destroyed sandbox takes none', async () => {
  const id = await ready();
  await call('PUT', id, { DATABASE_URL: URL });
  await settled(api, () => api.call('POST', `/v1/sandboxes/${id}/destroy`));
  assert.deepEqual(await rowsOf(id), []);
  for (const method of ['PUT', 'PATCH'] as const)
    assertRefused(await call(method, id, { A: 'a' }), [409, 'sandbox_state_conflict']);
  assert.deepEqual(await rowsOf(id), []);
});

test('a sleeping sandbox is edited without a wake', async () => {
  const { id } = await api.makeSandbox('stopped');
  assert.deepEqual(namesIn(await call('PATCH', id, { DATABASE_URL: URL })), ['DATABASE_URL']);
  assert.equal((await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.status, 'stopped');
});

for (const method of ['PUT', 'PATCH'] as const) {
  for (const [what, variables, field, problem] of [
    ['a name with a dash', { 'A-B': 'x' }, 'A-B', /letters, digits and _/],
    ['an empty name', { '': 'x' }, '', /letters, digits and _/],
    ['a long name', { ['A'.repeat(257)]: 'x' }, '', /letters, digits and _/],
    ['HOME', { HOME: '/tmp' }, 'HOME', /set by the service/],
    ['a name of the service', { BERTH_TOKEN: 'x' }, 'BERTH_TOKEN', /set by the service/],
    ['a NUL', { A: 'a\0b' }, 'A', /NUL/],
    ['a lone surrogate', { A: '\ud800' }, 'A', /surrogates/],
    ['a number', { A: 1 }, 'A', /string/],
    ['a list', ['A=x'], '', /object/],
    ['a long value', { A: 'x'.repeat(SANDBOX_VARIABLES.bytes) }, '', /65537 bytes .* at most 65536/],
    ['long letters', { A: 'é'.repeat(SANDBOX_VARIABLES.bytes / 2) }, '', /65537 bytes .* at most 65536/],
  ] as [string, unknown, string, RegExp][]) {
    test(`a ${method} with ${what} is 400, and names the field without the value`, async () => {
      const id = await ready();
      const refused = await call(method, id, variables);
      assertRefused(refused, [400, 'invalid_request'], problem);
      assert.match(refused.body.error.message, new RegExp(`^body\\.variables.*${field}`));
      assert.ok(!JSON.stringify(refused.body).includes('xxxx'));
      assert.deepEqual(await rowsOf(id), []);
    });
  }
}

test('variables count together with those that stay, and 64 KiB of them reach a program', async () => {
  const id = await ready();
  const many = Object.fromEntries(Array.from({ length: SANDBOX_VARIABLES.variables }, (_, at) => [`V${at}`, '']));
  assert.equal((await call('PUT', id, many)).status, 200);
  assertRefused(await call('PATCH', id, { MORE: '' }), [400, 'invalid_request'], /257 variables; at most 256/);
  assert.equal((await call('PATCH', id, { V0: null, MORE: '' })).status, 200);
  const refused = await api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'env', env: { X: '' } } });
  assertRefused(refused, [400, 'invalid_request'], /^body\.env has 257 variables together with the sandbox's/);
  const longest = '\u0001'.repeat(SANDBOX_VARIABLES.bytes - 1);
  assert.equal((await call('PUT', id, { A: longest })).status, 200);
  assert.deepEqual(await seenBy(id), [`A=${longest}`]);
});

test('ten concurrent sets of a sandbox all take effect, within the limits', async () => {
  const id = await ready();
  const sets = Array.from({ length: 10 }, (_, at) => call('PATCH', id, { [`V${at}`]: String(at) }));
  for (const { status } of await Promise.all(sets)) assert.equal(status, 200);
  assert.equal((await rowsOf(id)).length, 10);
  const half = 'x'.repeat(SANDBOX_VARIABLES.bytes / 4);
  const large = await Promise.all(Array.from({ length: 10 }, (_, at) => call('PATCH', id, { [`W${at}`]: half })));
  assert.equal(large.filter(({ status }) => status === 200).length, 3);
  const bytes = (await rowsOf(id)).reduce((sum, row) => sum + row.bytes, 0);
  assert.ok(bytes <= SANDBOX_VARIABLES.bytes, String(bytes));
});

test('the feed has counts only, and nothing of a change that changed nothing', async () => {
  const id = await ready();
  await call('PUT', id, { DATABASE_URL: URL, MODE: 'a' });
  await call('PATCH', id, { MODE: null });
  await call('PATCH', id, { MODE: null });
  const noted = await api.db
    .selectFrom('activity')
    .select('details')
    .where('sandbox_id', '=', id)
    .where('kind', '=', 'sandbox_variables_changed')
    .orderBy('at')
    .execute();
  assert.deepEqual(
    noted.map(({ details }) => details),
    [
      { set: 2, removed: 0 },
      { set: 0, removed: 1 },
    ],
  );
});

test('another org, a viewer and an agent token change nothing', async () => {
  const id = await ready();
  await call('PUT', id, { DATABASE_URL: URL });
  const other = await api.makeOrg();
  assertRefused(await call('GET', id, undefined, other.token), [403, 'org_access_denied']);
  assertRefused(await call('PATCH', id, { A: 'a' }, other.token), [403, 'org_access_denied']);
  const viewer = await api.makeSession({ role: 'viewer' });
  assert.deepEqual(namesIn(await call('GET', id, undefined, viewer.token)), ['DATABASE_URL']);
  assertRefused(await call('PATCH', id, { A: 'a' }, viewer.token), [403, 'permission_denied']);
  const { body } = await api.call('POST', '/v1/me/agent-tokens', {
    token: (await api.makeSession({ role: 'owner' })).token,
    body: { name: 'agent' },
  });
  for (const method of ['GET', 'PUT'] as const) {
    const answer = await call(method, id, method === 'GET' ? undefined : {}, api.secret(body.token, 'an agent token'));
    assert.equal(answer.status, 403);
  }
  assert.equal((await rowsOf(id)).length, 1);
});

test('a failed change leaves the variables as they were', async () => {
  const id = await ready();
  await call('PUT', id, { A: 'a' });
  await sql`alter table activity rename to away`.execute(api.db);
  try {
    assertRefused(await call('PUT', id, { DATABASE_URL: URL }), [500, 'internal']);
  } finally {
    await sql`alter table away rename to activity`.execute(api.db);
  }
  assert.deepEqual(await seenBy(id), ['A=a']);
});

test('no log, table or process has a value', () => api.scanSecrets());
