// Requests, retries, and errors of calls without a response.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { Berth, BerthError, type BerthErrorFields, type BerthOptions } from '../src/index.ts';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { notePauses } from './clock.ts';
import { against, broken, failureOf, json, refusal, type Answer } from './scripted-server.ts';

const ME = { id: 'usr_1', email: null, displayName: null };
const ORGS = {
  orgs: [{ id: 'org_1', name: 'One', role: 'owner', permissions: [], createdAt: '2026-11-21T09:30:00.000Z' }],
};

const fieldsOf = ({ code, status, requestId, retryAfter, retryable }: BerthError): BerthErrorFields => ({
  code,
  status,
  requestId,
  retryAfter,
  retryable,
});

for (const [what, first] of [
  ['a service that stops', refusal(503, 'shutting_down')],
  ['too many requests', refusal(429, 'rate_limited')],
  [
    'a gateway without service',
    (_: IncomingMessage, response: ServerResponse) => void response.writeHead(502).end('<html>'),
  ],
  ['a connection that breaks', broken],
  [
    'an answer that breaks off',
    (_: IncomingMessage, response: ServerResponse) =>
      void response.writeHead(200, { 'content-length': '100' }).write('{', () => response.destroy()),
  ],
] as const) {
  test(`a read is retried after ${what}, with growing, jittered pauses`, async (t) => {
    const pauses = notePauses(t);
    const { berth, seen } = await against(t, [first, first, first, json(200, ME)]);
    assert.deepEqual(await berth.me(), ME);
    assert.deepEqual(
      seen.map(({ method, path }) => `${method} ${path}`),
      Array.from({ length: 4 }, () => 'GET /v1/me'),
    );
    const waits = pauses.filter((ms) => ms > 0);
    assert.equal(waits.length, 3);
    for (const [index, ms] of waits.entries())
      assert.ok(ms >= 125 * 2 ** index && ms <= 250 * 2 ** index, `${index}: ${ms}`);
  });
}

test('a command that fails after its headers rejects with the error in its body', async (t) => {
  const { berth, seen } = await against(t, [
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'req_1' });
      response.end(
        ` ${JSON.stringify({ error: { code: 'sandbox_state_conflict', message: 'the sandbox is asleep' } })}`,
      );
    },
  ]);
  const failure = await failureOf(
    berth.raw.execInSandbox({ path: { sandboxId: 'sbx_1' }, body: { command: 'sleep 9' } }),
  );
  assert.equal(failure.message, 'the sandbox is asleep');
  assert.deepEqual(fieldsOf(failure), {
    code: 'sandbox_state_conflict',
    status: 200,
    requestId: 'req_1',
    retryAfter: undefined,
    retryable: false,
  });
  assert.equal(seen.length, 1);
});

test('a read is retried up to maxRetries and then fails with the last error', async (t) => {
  notePauses(t);
  const { berth, seen } = await against(t, [refusal(503, 'host_unavailable')], { maxRetries: 1 });
  assert.deepEqual(fieldsOf(await failureOf(berth.me())), {
    code: 'host_unavailable',
    status: 503,
    requestId: 'req_1',
    retryAfter: undefined,
    retryable: true,
  });
  assert.equal(seen.length, 2);
});

test('Retry-After is respected in seconds and as a date; a long one stops the retries', async (t) => {
  const pauses = notePauses(t);
  const date = new Date(Date.now() + 5_000).toUTCString();
  const { berth } = await against(t, [
    refusal(429, 'rate_limited', { 'retry-after': '3' }),
    refusal(503, 'shutting_down', { 'retry-after': date }),
    json(200, ME),
  ]);
  await berth.me();
  const [first = 0, second = 0] = pauses.filter((ms) => ms > 0);
  assert.ok(first >= 3_000 && first < 3_300, String(first));
  assert.ok(second >= 3_000 && second < 5_300, String(second));
  const long = await against(t, [refusal(429, 'rate_limited', { 'retry-after': '3600' })]);
  assert.deepEqual(fieldsOf(await failureOf(long.berth.me())), {
    code: 'rate_limited',
    status: 429,
    requestId: 'req_1',
    retryAfter: 3_600,
    retryable: true,
  });
  assert.equal(long.seen.length, 1);
});

test('permanent failures are not retried', async (t) => {
  for (const [status, code] of [
    [400, 'invalid_request'],
    [401, 'unauthenticated'],
    [404, 'sandbox_not_found'],
    [409, 'sandbox_state_conflict'],
    [500, 'internal'],
  ] as const) {
    const { berth, seen } = await against(t, [refusal(status, code)]);
    assert.deepEqual(fieldsOf(await failureOf(berth.sandboxes.get('sbx_1'))), {
      code,
      status,
      requestId: 'req_1',
      retryAfter: undefined,
      retryable: false,
    });
    assert.equal(seen.length, 1);
  }
});

test('a write is never retried, and its error tells whether a retry is safe', async (t) => {
  for (const [answer, code, retryable] of [
    [refusal(429, 'rate_limited', { 'retry-after': '1' }), 'rate_limited', true],
    [refusal(503, 'insufficient_capacity', { 'retry-after': '1' }), 'insufficient_capacity', true],
    [refusal(503, 'sandbox_unreachable'), 'sandbox_unreachable', false],
    [broken, 'connection_failed', false],
  ] as const) {
    const { berth, seen } = await against(t, [answer]);
    const error = await failureOf(berth.projects.update('prj_1', { name: 'x' }));
    assert.deepEqual([error.code, error.retryable, seen.length], [code, retryable, 1]);
    assert.equal(
      code === 'connection_failed',
      /The request may have been carried out: check the current state/.test(error.message),
    );
  }
});

test('a lost response of a create is reported with a remedy, with and without a key', async (t) => {
  const { berth, seen } = await against(t, [broken]);
  const without = await failureOf(berth.sandboxes.create({ agent: 'agent_one' }));
  assert.deepEqual([without.code, without.retryable], ['connection_failed', false]);
  assert.match(without.message, /may have been created\. List the sandboxes before you retry .*idempotencyKey/s);
  const withKey = await failureOf(berth.sandboxes.create({ agent: 'agent_one' }, { idempotencyKey: 'order-1' }));
  assert.deepEqual([withKey.code, withKey.retryable], ['connection_failed', true]);
  assert.match(withKey.message, /Repeat the call with the same idempotencyKey/);
  assert.deepEqual(
    seen.map(({ headers }) => headers['idempotency-key']),
    [undefined, 'order-1'],
  );
});

test('a create that times out is reported with the same remedy', async (t) => {
  const { berth } = await against(t, [() => undefined], { timeoutMs: 200 });
  const error = await failureOf(berth.sandboxes.create({ agent: 'agent_one' }));
  assert.deepEqual([error.code, error.retryable], ['timeout', false]);
  assert.match(error.message, /took longer than 200 ms\. The sandbox may have been created/);
});

test('a truncated response of a command is a failure, and the command may have run', async (t) => {
  const { berth } = await against(t, [
    json(200, { sandbox: exampleSandbox }),
    (_, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .write('  {"error":{}}', () => response.destroy()),
  ]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  const error = await failureOf(sandbox.exec('make'));
  assert.equal(error.code, 'connection_failed');
  assert.match(error.message, /The command may have run, in whole or in part/);
});

test('a command that fails after its status is reported with its code, also by a broken connection', async (t) => {
  const text = `  ${JSON.stringify({ error: { code: 'sandbox_state_conflict', message: 'the sandbox is sleeping' } })}`;
  for (const end of [
    (response: ServerResponse) => void response.write(text, () => response.destroy()),
    (response: ServerResponse) => void response.end(text),
  ]) {
    const { berth } = await against(t, [
      json(200, { sandbox: exampleSandbox }),
      (_, response) => end(response.writeHead(200, { 'content-type': 'application/json' })),
    ]);
    const sandbox = await berth.sandboxes.get('sbx_1');
    const { code, message, retryable } = await failureOf(sandbox.exec('make'));
    assert.deepEqual(
      { code, message, retryable },
      { code: 'sandbox_state_conflict', message: 'the sandbox is sleeping', retryable: false },
    );
  }
});

test('the timeout of a call includes its retries', async (t) => {
  const { berth, seen } = await against(t, [refusal(503, 'shutting_down', { 'retry-after': '2' })], {
    timeoutMs: 1_000,
  });
  assert.equal((await failureOf(berth.me())).code, 'shutting_down');
  assert.equal(seen.length, 1);
});

test('a response not from Berth is reported as such', async (t) => {
  const { berth } = await against(t, [
    (_, response) => void response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>nothing here</h1>'),
  ]);
  const error = await failureOf(berth.me());
  assert.deepEqual(fieldsOf(error), {
    code: 'invalid_answer',
    status: 404,
    requestId: undefined,
    retryAfter: undefined,
    retryable: false,
  });
  assert.match(error.message, /GET \/v1\/me: unexpected response with status 404, not from a Berth service/);
});

test('an HTML page with status 200 is reported as not from Berth', async (t) => {
  const { berth } = await against(t, [
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>sign in</h1>'),
  ]);
  const error = await failureOf(berth.me());
  assert.deepEqual(
    [error.code, error.status, error.message],
    ['invalid_answer', 200, 'GET /v1/me: unexpected response with status 200, not from a Berth service'],
  );
});

test('unknown fields and values are accepted', async (t) => {
  const later = {
    ...exampleSandbox,
    status: 'hibernating',
    agent: 'agent_nine',
    temperature: 21,
    pendingAllocation: { vcpu: 1, memoryGb: 1, diskGb: 1, gpus: 2 },
  };
  const { berth } = await against(t, [json(200, { sandbox: later, more: true }), refusal(409, 'a_code_of_tomorrow')]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  assert.deepEqual([sandbox.status, sandbox.data], ['hibernating', later]);
  const error = await failureOf(sandbox.sleep());
  assert.deepEqual([error.code, error.status], ['a_code_of_tomorrow', 409]);
});

test('waiting continues through an unknown status', async (t) => {
  const pauses = notePauses(t);
  const at = (status: string): Answer => json(200, { sandbox: { ...exampleSandbox, status } });
  const { berth } = await against(t, [at('hibernating'), at('hibernating'), at('thawing'), at('ready')]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  assert.equal((await sandbox.waitUntil('ready')).status, 'ready');
  assert.deepEqual(
    pauses.filter((ms) => ms > 0),
    [100, 150],
  );
});

test('waiting polls less and less often, at most every 2 s', async (t) => {
  const pauses = notePauses(t);
  const at = (status: string): Answer => json(200, { sandbox: { ...exampleSandbox, status } });
  const { berth } = await against(t, [...Array.from({ length: 12 }, () => at('provisioning')), at('running')]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  await sandbox.waitUntil('running');
  const waits = pauses.filter((ms) => ms > 0);
  assert.equal(waits[0], 100);
  assert.equal(waits.at(-1), 2_000);
  for (const [index, ms] of waits.entries()) assert.equal(ms, Math.min(2_000, 100 * 1.5 ** index));
});

test("waiting for an unreachable status fails with the service's reason", async (t) => {
  notePauses(t);
  const at = (status: string, reason: object | null = null): Answer =>
    json(200, { sandbox: { ...exampleSandbox, status, statusReason: reason } });
  const lost = await against(t, [
    at('provisioning'),
    at('failed', { code: 'create_failed', message: 'no disk was left' }),
    at('destroying'),
  ]);
  const failed = await failureOf(lost.berth.sandboxes.create({ agent: 'agent_one' }));
  assert.equal(failed.code, 'unexpected_status');
  assert.match(failed.message, /is failed, not running: no disk was left \(create_failed\)/);
  const held = await against(t, [
    at('ready'),
    at('sleeping'),
    at('ready', { code: 'sleep_failed', message: 'the memory could not be captured' }),
  ]);
  const sandbox = await held.berth.sandboxes.get('sbx_1');
  assert.match(
    (await failureOf(sandbox.sleep())).message,
    /is ready, not stopped or deleted: the memory could not be captured/,
  );
});

test('waiting accepts several statuses or a predicate', async (t) => {
  notePauses(t);
  const at = (changed: object): Answer => json(200, { sandbox: { ...exampleSandbox, ...changed } });
  const { berth } = await against(t, [
    at({ status: 'ready' }),
    at({ status: 'sleeping' }),
    at({ status: 'stopped' }),
    at({ status: 'stopped', name: 'renamed' }),
  ]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  await sandbox.waitUntil(['stopped', 'failed']);
  await sandbox.waitUntil(({ name }) => name === 'renamed');
  assert.equal(sandbox.name, 'renamed');
});

test('the org of the key is requested once, and required if there are several', async (t) => {
  const { berth, url, seen } = await against(t, [json(200, ORGS), json(200, { sandboxes: [] })]);
  const own = new Berth({ url, apiKey: 'brt_key' });
  await own.sandboxes.list();
  await own.sandboxes.list();
  assert.deepEqual(
    seen.map(({ path }) => path),
    ['/v1/me/orgs', '/v1/orgs/org_1/sandboxes', '/v1/orgs/org_1/sandboxes'],
  );
  assert.equal(seen[0]?.headers.authorization, 'Bearer brt_key');
  void berth;
  const several = await against(t, [
    json(200, { orgs: [ORGS.orgs[0], { ...ORGS.orgs[0], id: 'org_2', name: 'Two' }] }),
  ]);
  const error = await failureOf(new Berth({ url: several.url, apiKey: 'brt_key' }).sandboxes.list());
  assert.equal(error.code, 'configuration');
  assert.match(error.message, /several orgs: org_1 \(One\), org_2 \(Two\); pass orgId/);
});

test('key, URL, org and project default to environment variables', async (t) => {
  const { url, seen } = await against(t, [json(201, { sandbox: exampleSandbox })]);
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  Object.assign(process.env, {
    BERTH_API_KEY: 'brt_of_env',
    BERTH_URL: `${url}/v1/`,
    BERTH_ORG_ID: 'org_of_env',
    BERTH_PROJECT_ID: 'prj_of_env',
  });
  await new Berth().sandboxes.create({ agent: 'agent_one' }, { wait: false });
  assert.equal(seen[0]?.path, '/v1/orgs/org_of_env/sandboxes');
  assert.deepEqual(
    [seen[0]?.headers.authorization, seen[0]?.headers['prefer']],
    ['Bearer brt_of_env', 'respond-async'],
  );
  assert.deepEqual(JSON.parse(seen[0]?.body ?? ''), { agent: 'agent_one', projectId: 'prj_of_env' });
});

test('an invalid client configuration is reported', async () => {
  const failure = (options: BerthOptions): BerthError => {
    let made: unknown;
    try {
      made = new Berth(options);
    } catch (error) {
      if (error instanceof BerthError) return error;
    }
    return assert.fail(`it was taken: ${typeof made}`);
  };
  assert.match(failure({ apiKey: '' }).message, /pass apiKey to new Berth\(\), or set BERTH_API_KEY/);
  for (const url of ['berth.example.com', 'ftp://x', 'http://'])
    assert.match(failure({ apiKey: 'k', url }).message, /is not an http or https URL/);
});

test('a credential function is called for each request', async (t) => {
  const tokens = ['one', 'two'];
  const { berth, seen } = await against(t, [refusal(503, 'shutting_down'), json(200, ME)], {
    apiKey: () => Promise.resolve(tokens.shift() ?? ''),
  });
  notePauses(t);
  await berth.me();
  assert.deepEqual(
    seen.map(({ headers }) => headers.authorization),
    ['Bearer one', 'Bearer two'],
  );
});

test('no error contains the key', async (t) => {
  const { berth } = await against(t, [broken], { maxRetries: 0, apiKey: 'brt_secret_of_test' });
  const error = await failureOf(berth.me());
  const { inspect } = await import('node:util');
  assert.doesNotMatch(inspect(error, { depth: 10 }), /brt_secret_of_test/);
  assert.doesNotMatch(inspect(berth, { depth: 10, showHidden: false }), /brt_secret_of_test/);
});
