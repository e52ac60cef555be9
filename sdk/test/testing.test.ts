// Features of the test server beyond the service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS } from '@berth/contract/route/errors.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { Berth, BerthError, type ExportedActivityEntry } from '../src/index.ts';
import { TestServer } from '../src/testing/index.ts';
import { notePauses } from './clock.ts';

const coded = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;

test('without an exec option, every command fails with a hint', async () => {
  const sandbox = await new TestServer().client().sandboxes.create({ agent: 'agent_one' });
  const { exitCode, stderr } = await sandbox.exec('make');
  assert.equal(exitCode, 127);
  assert.match(stderr, /pass `exec`/);
});

test('a create without fields uses the only project of the org', async () => {
  const { url, apiKey, fetch, projectId } = new TestServer();
  const sandbox = await new Berth({ url, apiKey, fetch }).sandboxes.create();
  assert.deepEqual([sandbox.data.projectId, sandbox.data.agent], [projectId, 'agent_one']);
});

test('getOrCreate waits for the end of a sleep in progress', async (t) => {
  let nowMs = Date.parse('2026-11-21T09:30:00.000Z');
  const server = new TestServer({ transitionMs: 5_000, now: () => (nowMs += 1_000) });
  const berth = server.client();
  notePauses(t);
  const { id } = await berth.sandboxes.getOrCreate({ key: 'k' });
  await (await berth.sandboxes.get(id)).sleep({ wait: false });
  const found = await berth.sandboxes.getOrCreate({ key: 'k' });
  assert.deepEqual([found.id, found.status], [id, 'ready']);
  assert.equal(found.data.lastWake?.from, 'snapshot');
});

test('command handlers get sandbox and timeout, may return text, and are truncated like the service', async () => {
  const server = new TestServer({
    exec: (command, { sandbox, timeoutSeconds }) => `${command} ${sandbox.name} ${timeoutSeconds}`,
  });
  const sandbox = await server.client().sandboxes.create({ agent: 'agent_one', name: 'n' });
  assert.equal((await sandbox.exec('a')).stdout, 'a n 120');
  server.exec = () => ({ stdout: 'x'.repeat(70_000), timedOut: true });
  const { stdout, truncated, exitCode } = await sandbox.exec('b');
  assert.deepEqual([stdout.length, truncated, exitCode], [65_536, true, 124]);
});

test("transitions follow the server's clock, which a test controls", async () => {
  let nowMs = Date.parse('2026-11-21T09:30:00.000Z');
  const server = new TestServer({ transitionMs: 5_000, now: () => nowMs });
  const berth = server.client();
  const sandbox = await berth.sandboxes.create({ agent: 'agent_one' }, { wait: false });
  assert.equal(sandbox.status, 'provisioning');
  await assert.rejects(sandbox.exec('true'), coded('sandbox_state_conflict'));
  nowMs += 5_000;
  assert.equal((await sandbox.refresh()).status, 'ready');
  assert.equal((await sandbox.sleep({ wait: false })).status, 'sleeping');
  nowMs += 5_000;
  assert.equal((await sandbox.refresh()).status, 'stopped');
  const ephemeral = await berth.sandboxes.create(
    { agent: 'agent_one', mode: 'ephemeral', ttlSeconds: 60 },
    { wait: false },
  );
  nowMs += 61_000;
  assert.equal((await ephemeral.refresh()).status, 'deleted');
});

test('a public URL of a port with less than half of its lifetime left is replaced', async () => {
  let agoMs = 29_000;
  const server = new TestServer({ now: () => Date.now() - agoMs });
  const sandbox = await server.client().sandboxes.create({ agent: 'agent_one' });
  const minute = { audience: 'public', expiresInSeconds: 60 } as const;
  const url = await sandbox.url(3000, minute);
  assert.equal(await sandbox.url(3000, minute), url);
  agoMs = 35_000;
  const old = await sandbox.url(3001, minute);
  assert.notEqual(await sandbox.url(3001, minute), old);
});

test('the number of awake sandboxes can be limited', async () => {
  const berth = new TestServer({ concurrentSandboxes: 1 }).client();
  const first = await berth.sandboxes.create({ agent: 'agent_one' });
  await assert.rejects(berth.sandboxes.create({ agent: 'agent_one' }), coded('concurrent_sandbox_limit'));
  await first.sleep();
  await using second = await berth.sandboxes.create({ agent: 'agent_one' });
  await assert.rejects(first.wake(), coded('concurrent_sandbox_limit'));
  void second;
});

test('a scripted failure leaves no effect of its request', async (t) => {
  notePauses(t);
  const server = new TestServer();
  const berth = server.client();
  server.failNext({ with: 'shutting_down', times: 2, retryAfter: 1 });
  await berth.me();
  assert.deepEqual(
    server.requests.map(({ path }) => path),
    ['/v1/me', '/v1/me', '/v1/me'],
  );
  server.failNext({ method: 'POST', path: '/sandboxes', with: 'insufficient_capacity' });
  await assert.rejects(
    berth.sandboxes.create({ agent: 'agent_one' }),
    (error: unknown) => coded('insufficient_capacity')(error) && (error as BerthError).retryable,
  );
  server.failNext({ method: 'POST', with: 'connection' });
  await assert.rejects(berth.sandboxes.create({ agent: 'agent_one' }), coded('connection_failed'));
  assert.deepEqual(await berth.sandboxes.list(), []);
});

test('a lost response leaves the sandbox, found by list or by its idempotency key', async () => {
  const server = new TestServer();
  const berth = server.client();
  server.failNext({ method: 'POST', with: 'lost-answer' });
  const spec = { agent: 'agent_one', endUserId: 'u' } as const;
  await assert.rejects(berth.sandboxes.create(spec, { idempotencyKey: 'k' }), coded('connection_failed'));
  const [made, ...more] = await berth.sandboxes.list({ endUserId: 'u' });
  assert.equal(more.length, 0);
  assert.equal((await berth.sandboxes.create(spec, { idempotencyKey: 'k' })).id, made?.id);
  assert.equal((await berth.sandboxes.list()).length, 1);
});

test('a sandbox with a lost VM is woken from its disk', async () => {
  const server = new TestServer();
  const sandbox = await server.client().sandboxes.create({ agent: 'agent_one' });
  server.loseMachine(sandbox.id, 'guest_panic', 'its kernel stopped');
  await sandbox.refresh();
  assert.deepEqual(
    [sandbox.status, sandbox.data.statusReason?.code, sandbox.data.wakesFrom],
    ['failed', 'guest_panic', 'disk'],
  );
  await sandbox.wake();
  assert.deepEqual([sandbox.status, sandbox.data.lastWake?.from, sandbox.data.statusReason], ['ready', 'disk', null]);
});

test('without an agent option, the agent replies with a hint', async () => {
  const sandbox = await new TestServer().client().sandboxes.create({ agent: 'agent_one' });
  const turn = await (await sandbox.agents.start()).send('hello');
  for await (const { text } of turn.replies()) assert.match(text, /pass `agent`/);
  assert.equal((await turn.done()).state, 'completed');
});

test('the agent script gets message and sandbox, and is aborted with its turn', async () => {
  const seen: unknown[] = [];
  const server = new TestServer({
    agent: async ({ id, text, sandbox, signal, reply, ask }) => {
      seen.push([id, text, sandbox.id]);
      signal.addEventListener('abort', () => seen.push(signal.aborted));
      await ask({ title: 'May I?' }).catch(() => seen.push('the approval is gone'));
      reply('too late');
    },
  });
  const sandbox = await server.client().sandboxes.create({ agent: 'agent_one' });
  const session = await sandbox.agents.start();
  const turn = await session.send('hello');
  await session.interrupt();
  assert.equal((await turn.done()).state, 'canceled');
  assert.deepEqual(seen, [[turn.id, 'hello', sandbox.id], true, 'the approval is gone']);
  assert.deepEqual((await session.output()).messages, []);
});

test('a lost VM fails the turn and stops the session; other agents can be stopped by a test', async () => {
  const server = new TestServer({ agent: ({ ask }) => ask({ title: 'x' }).then(() => undefined) });
  const sandbox = await server.client().sandboxes.create({ agent: 'agent_one' });
  const session = await sandbox.agents.start();
  const turn = await session.send('hello');
  server.loseMachine(sandbox.id);
  await sandbox.wake();
  assert.deepEqual((await turn.done()).reason, 'machine_lost');
  await session.refresh();
  assert.deepEqual([session.data.bridgeState, session.data.bridgeReason], ['stopped', 'machine_lost']);
  await session.recover();
  server.stopAgent(session.id, 'idle');
  await assert.rejects(session.send('x'), coded('agent_bridge_stopped'));
  assert.throws(() => server.stopAgent('ags_nothing'), /no agent session ags_nothing/);
});

test('approvals are accepted at once in a project that asks for none', async () => {
  const server = new TestServer({ agent: async ({ ask, reply }) => reply(await ask({ title: 'May I?' })) });
  const berth = server.client();
  const project = await berth.projects.create({ agentApprovals: 'never' });
  const sandbox = await berth.sandboxes.create({ agent: 'agent_one', projectId: project.id });
  const turn = await (await sandbox.agents.start()).send('hello');
  for await (const { text } of turn.replies()) assert.equal(text, 'accept');
  assert.equal((await turn.done()).state, 'completed');
});

test('test servers are independent', async () => {
  const [one, other] = [new TestServer(), new TestServer()];
  await one.client().sandboxes.create({ agent: 'agent_one' });
  assert.deepEqual(await other.client().sandboxes.list(), []);
  assert.notEqual(one.orgId, other.orgId);
});

test('every error has a code and status of the contract, and every response fits its schema', async () => {
  const server = new TestServer({ exec: () => 'x' });
  const berth = server.client();
  const sandbox = await berth.sandboxes.create({ agent: 'agent_one' });
  await sandbox.files.write('a', 'x');
  const project = await berth.projects.create();
  const agentSession = await sandbox.agents.start();
  const about: Record<string, string> = {
    orgId: server.orgId,
    projectId: project.id,
    sandboxId: sandbox.id,
    keyId: 'key_x',
    previewId: 'prv_x',
    sessionId: agentSession.id,
  };
  const answered: string[] = [];
  for (const route of ROUTES) {
    if (route.websocket === true) continue;
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => about[name] ?? 'x');
    const query = route.name === 'readFile' ? '?path=a' : '';
    for (const authorization of [`Bearer ${server.apiKey}`, `Bearer ${server.sessionToken}`, 'Bearer nobody']) {
      // Routes that end the sandbox are tested elsewhere.
      if (route.name === 'destroySandbox' || route.name === 'deleteProject') continue;
      const body = route.example?.body ?? (route.request.body?.safeParse(undefined).success === false ? {} : undefined);
      const own = JSON.stringify(body)?.replaceAll(/prj_[a-z0-9]{24}/g, project.id);
      const response = await server.fetch(server.url + path + query, {
        method: route.method,
        headers: { authorization, ...(own === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(own === undefined ? {} : { body: own }),
      });
      const text = await response.text();
      const lines = response.ok && route.response.ndjson === true;
      const answer = JSON.parse(lines ? `[${text.trimEnd().replaceAll('\n', ',')}]` : text) as {
        error?: { code: keyof typeof ERRORS };
      };
      if (response.ok) {
        assert.equal(response.status, route.response.status, route.name);
        route.response.body.parse(answer);
        answered.push(route.name);
      } else {
        assert.equal(
          response.status,
          ERRORS[answer.error?.code ?? 'internal'].status,
          `${route.name}: ${JSON.stringify(answer)}`,
        );
      }
    }
  }
  assert.ok(new Set(answered).size >= 28, `only ${[...new Set(answered)].join(', ')}`);
});

test('a useCase that is external in another spelling is refused at create and update', async () => {
  const berth = new TestServer().client();
  const project = await berth.projects.create({ name: 'one', useCase: 'external' });
  const refused = { code: 'invalid_request', message: /useCase must be spelled "external"/ };
  for (const useCase of ['External', 'EXTERNAL', ' external', 'external\t']) {
    await assert.rejects(berth.projects.create({ name: 'two', useCase }), refused);
    await assert.rejects(berth.projects.update(project.id, { useCase }), refused);
  }
  assert.equal((await berth.projects.get(project.id)).useCase, 'external');
});

test('an unknown path, method or route is refused', async () => {
  const server = new TestServer();
  const ask = async (method: string, path: string): Promise<unknown> => {
    const response = await server.fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${server.sessionToken}` },
    });
    return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
  };
  assert.deepEqual(await ask('GET', '/v1/nothing'), [404, 'route_not_found']);
  assert.deepEqual(await ask('PUT', '/v1/me'), [405, 'method_not_allowed']);
  assert.deepEqual(await ask('GET', `/v1/orgs/${server.orgId}/invitations`), [404, 'route_not_found']);
});

test('the feed is exported oldest first, and continued by cursor', async () => {
  const server = new TestServer();
  const berth = server.client();
  const all = async (after?: string) => {
    const found: ExportedActivityEntry[] = [];
    for await (const entry of berth.activity.export(after)) found.push(entry);
    return found;
  };
  assert.deepEqual(await all(), []);
  for (const agent of ['agent_one', 'agent_two'] as const) await berth.sandboxes.create({ agent });
  const entries = await all();
  const feed = (await berth.activity.page()).activity;
  assert.ok(entries.length >= 2);
  assert.deepEqual(
    entries,
    feed.toReversed().map((entry, at) => ({ ...entry, cursor: entries[at]?.cursor })),
  );
  assert.deepEqual(await all(entries[0]?.cursor), entries.slice(1));
  assert.deepEqual(await all(entries.at(-1)?.cursor), []);
  await assert.rejects(all('unknown'), coded('invalid_request'));
});
