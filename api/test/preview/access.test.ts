// Access to previews: refusals in both forms, sleeping sandboxes, and the end of open connections.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { ERRORS, errorEnvelope, type ErrorCode } from '@berth/contract/route/errors.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { previewOrigin } from '../../src/rules/previews/host.ts';
import { transitionSandbox } from '../../src/services/sandboxes/transition.ts';
import { newId } from '../../src/store/database/ids.ts';
import { insertProject } from '../../src/store/orgs/projects.ts';
import { lockSandbox } from '../../src/store/sandboxes/sandboxes.ts';
import { ExecRefusal } from '../world/guests/exec-refusal.ts';
import { SETTINGS } from '../world/settings.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type Answer, type RequestOptions, type PreviewWorld } from './world.ts';

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
const LONG_AGO = new Date(Date.now() - 3_600_000);

let world: PreviewWorld;
let asked: string[];
let onRequest: ((response: ServerResponse) => void) | undefined;
before(async () => {
  asked = [];
  world = await startPreview(
    (request, response) => {
      asked.push(request.url ?? '');
      if (onRequest === undefined) response.end('app');
      else onRequest(response);
    },
    { bounds: { previews: { startingMs: 100 } } },
  );
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  asked = [];
  onRequest = undefined;
});

/** Compares both forms of a refusal with each other and the table; returns the readable text. */
async function refusal(
  code: ErrorCode,
  path: string,
  options: RequestOptions = {},
): Promise<{ title: string; text: string; json: Answer }> {
  const { status } = ERRORS[code];
  const page = await world.ask(path, { ...options, headers: { accept: 'text/html,*/*;q=0.8', ...options.headers } });
  assert.equal(page.status, status, page.text);
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(page.headers['cache-control'], 'no-store');
  assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-[^']+'; /);
  assert.match(String(page.headers['x-request-id']), /^req_[0-9a-f]{32}$/);
  assert.doesNotMatch(page.text, /<script|https?:|\son\w+=/);
  const json = await world.ask(path, options);
  assert.equal(json.status, status);
  assert.equal(json.headers['cache-control'], 'no-store');
  assert.equal(json.headers['set-cookie'], undefined);
  assert.equal(errorEnvelope.parse(JSON.parse(json.text)).error.code, code);
  assert.equal(json.headers['retry-after'], page.headers['retry-after']);
  const head = await world.ask(path, { ...options, method: 'HEAD' });
  assert.deepEqual(
    [head.status, head.text, head.headers['content-length']],
    [status, '', json.headers['content-length']],
  );
  assert.deepEqual(asked, []);
  return { title: /<h1>([^<]*)<\/h1>/.exec(page.text)?.[1] ?? '', text: page.text, json };
}

/** `Cookie` header of a browser that has opened the link. */
async function cookieOf({ host, token }: { host: string; token: string }): Promise<string> {
  const { headers } = await world.ask(`/?token=${token}`, { host, headers: { 'sec-fetch-mode': 'navigate' } });
  const cookie = headers['set-cookie']?.[0]?.split(';', 1)[0] ?? '';
  world.api.secret(cookie.slice('berth_preview='.length), 'the cookie of a preview');
  return cookie;
}

async function toStatus(sandboxId: string, to: SandboxStatus): Promise<void> {
  const { outcome } = await world.api.db.transaction().execute(async (trx) => {
    const now = await lockSandbox(trx, sandboxId);
    return await transitionSandbox(trx, { sandboxId, epoch: now?.epoch ?? 0, to, actor: SYSTEM, newEpoch: true });
  });
  assert.equal(outcome, 'changed');
}

test('a request without a link gets the same response whether or not the sandbox exists', async () => {
  const hosts = [
    world.host,
    hostOf((await world.api.makeSandbox('stopped')).id, 3000),
    hostOf((await world.api.makeSandbox('deleted')).id, 3000),
    hostOf(newId('sandbox'), 1),
    hostOf(newId('sandbox'), GUEST_PORT),
  ];
  const answers = [];
  for (const host of hosts) {
    for (const cookie of [undefined, 'berth_preview=', 'berth_preview=wrong', 'other=1']) {
      const { title, text, json } = await refusal('preview_link_required', '/a?token=app', {
        host,
        headers: cookie === undefined ? {} : { cookie },
      });
      answers.push({ title, text, json: json.text });
    }
  }
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
  assert.equal(answers[0]?.title, 'A link is required');
});

test('a truncated, foreign, expired or revoked link gets an error page naming the reason', async () => {
  const { token, id } = await world.link(3000);
  const other = await world.link(3001);
  assert.equal(
    (await refusal('preview_link_invalid', `/?token=${token.slice(0, -2)}`)).title,
    'This link does not work',
  );
  assert.equal((await refusal('preview_link_invalid', `/?token=${other.token}`)).title, 'This link does not work');
  assert.equal(
    (await refusal('preview_link_invalid', `/?token=${token}`, { host: other.host })).title,
    'This link does not work',
  );
  assert.equal(
    (await refusal('preview_link_invalid', `/?token=${token}`, { host: hostOf(newId('sandbox'), 3000) })).title,
    'This link does not work',
  );

  const brief = await world.link(3000, world.sandboxId, { expiresInSeconds: 1 });
  await untilTrue('it has expired', async () => (await world.ask(`/?token=${brief.token}`)).status === 410);
  asked = [];
  assert.equal((await refusal('preview_link_expired', `/?token=${brief.token}`)).title, 'This link has expired');

  await world.api.call('DELETE', `/v1/sandboxes/${world.sandboxId}/previews/${id}`);
  await untilTrue('it is revoked', async () => (await world.ask(`/?token=${token}`)).status === 410);
  asked = [];
  assert.equal((await refusal('preview_link_revoked', `/?token=${token}`)).title, 'This link was revoked');
});

test('a malformed preview host gets its own error page, never the service', async () => {
  for (const host of [
    'previews.example.test',
    'x.previews.example.test',
    '3000-short.previews.example.test',
    `99999-${'a'.repeat(24)}.previews.example.test`,
  ])
    assert.equal((await refusal('preview_not_found', '/health', { host })).title, 'This preview does not exist');
});

for (const [status, code, title] of [
  ['stopped', 'preview_sandbox_asleep', 'The sandbox is asleep'],
  ['sleeping', 'preview_sandbox_asleep', 'The sandbox is asleep'],
  ['provisioning', 'preview_sandbox_starting', 'The sandbox is starting'],
  ['waking', 'preview_sandbox_starting', 'The sandbox is starting'],
  ['failed', 'preview_sandbox_failed', 'The sandbox is not running'],
  ['deleted', 'preview_not_found', 'This preview does not exist'],
] as const) {
  test(`a preview of a ${status} sandbox gets an error page and leaves the sandbox unchanged`, async () => {
    const { id } = await world.api.makeSandbox('ready');
    const { host, token } = await world.link(3000, id);
    await world.api.db
      .updateTable('sandbox')
      .set({ status, ...(status === 'deleted' ? { deleted_at: new Date() } : {}) })
      .where('id', '=', id)
      .execute();
    const shown = await refusal(code, `/?token=${token}`, { host });
    assert.equal(shown.title, title);
    assert.equal(
      shown.json.headers['retry-after'] !== undefined,
      code === 'preview_sandbox_starting' || code === 'preview_sandbox_asleep',
    );
    assert.deepEqual(world.api.steps, []);
  });
}

test('a team link redirects browsers to sign-in with their path and refuses other clients', async () => {
  const made = await world.api.call('POST', `/v1/sandboxes/${world.sandboxId}/previews`, { body: { port: 3000 } });
  const token = world.api.secret(
    new URL(made.body.preview.url).searchParams.get('token') ?? '',
    'a token of a team link',
  );
  const sent = await world.ask(`/a/b?c=%20d&token=${token}`, { headers: { accept: 'text/html' } });
  assert.equal(sent.status, 303);
  const to = new URL(sent.headers.location ?? '');
  assert.equal(to.origin + to.pathname, `${SETTINGS.publicUrl}/preview`);
  assert.equal(to.searchParams.get('path'), '/a/b?c=%20d');
  assert.equal(sent.headers['cache-control'], 'no-store');
  const { status, text } = await world.ask(`/?token=${token}`);
  assert.deepEqual([status, errorEnvelope.parse(JSON.parse(text)).error.code], [401, 'preview_link_required']);
  const form = await world.ask(`/?token=${token}`, { method: 'POST', headers: { accept: 'text/html' } });
  assert.equal(form.status, 401);
  assert.match(form.text, /<h1>Sign in first<\/h1>/);
  assert.deepEqual(asked, []);
});

test('each error of the host gets its own error page', async () => {
  const { stream } = world.api.front;
  const closed = await world.link(3999);
  const headers = { cookie: await cookieOf(closed) };
  const shown = await refusal('port_refused', '/', { host: closed.host, headers });
  assert.equal(shown.title, 'Nothing listens on port 3999');
  try {
    for (const [code, shownAs, title] of [
      ['port_forbidden', 'port_forbidden', 'This port is reserved'],
      ['too_many_streams', 'too_many_connections', 'Too many connections'],
      ['guest_unreachable', 'sandbox_unreachable', 'The sandbox does not respond'],
      ['internal', 'sandbox_unreachable', 'The sandbox does not respond'],
      ['vm_not_running', 'sandbox_unreachable', 'The sandbox does not respond'],
    ] as const) {
      world.api.front.stream = () => {
        throw new ExecRefusal(code, 'so');
      };
      // Port without kept connections.
      const link = await world.link(3998);
      const visitor = { host: link.host, headers: { cookie: await cookieOf(link) } };
      assert.equal((await refusal(shownAs, '/', visitor)).title, title, code);
    }
  } finally {
    world.api.front.stream = stream;
  }
  assert.equal((await world.visit('/')).text, 'app');
});

test('a refusal arrives while the client is still sending its body', async () => {
  const { request, answer } = await world.begin('/', { method: 'POST', headers: { 'content-length': 10_000_000 } });
  request.on('error', () => undefined);
  const closed = once(request, 'close');
  request.write(Buffer.alloc(1_000_000));
  const refused = await answer;
  assert.equal(refused.statusCode, 401);
  assert.equal(refused.headers.connection, 'close');
  refused.resume();
  await closed;
});

test('revoking a link ends its open WebSocket, stream and pending response', async () => {
  const { id, token } = await world.link(3000);
  const responses: ServerResponse[] = [];
  onRequest = (response) => {
    responses.push(response);
    if (asked.at(-1) !== '/waiting')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
  };
  const socket = await world.webSocket(`/?token=${token}`, { headers: { cookie: 'none=1' } });
  const closed = once(socket, 'close');
  const begun = await world.begin(`/events?token=${token}`, {});
  begun.request.end();
  const events = await begun.answer;
  const ended = new Promise((resolve) => events.once('error', resolve));
  events.resume();
  const waiting = world.ask(`/waiting?token=${token}`);
  await untilTrue('all are open', () => responses.length === 2);
  await world.api.call('DELETE', `/v1/sandboxes/${world.sandboxId}/previews/${id}`);
  await Promise.all([closed, ended]);
  assert.deepEqual(
    [(await waiting).status, JSON.parse((await waiting).text).error.code],
    [410, 'preview_link_revoked'],
  );
  await untilTrue('the app hears of it', () => responses.every(({ destroyed }) => destroyed));
});

test('putting a sandbox to sleep closes its connections; the next request finds it asleep', async () => {
  const closed = once(await world.webSocket('/'), 'close');
  await toStatus(world.sandboxId, 'sleeping');
  await closed;
  const answer = await world.visit('/');
  assert.deepEqual([answer.status, JSON.parse(answer.text).error.code], [503, 'preview_sandbox_asleep']);
  await toStatus(world.sandboxId, 'stopped');
  await toStatus(world.sandboxId, 'waking');
  await toStatus(world.sandboxId, 'ready');
  const before = world.opened.length;
  assert.equal((await world.visit('/')).status, 200, 'at once: what is remembered of it is not what it is now');
  assert.equal(world.opened.length, before + 1, 'no connection of the former machine is used');
});

test('with wakeOnUse a request wakes the sandbox and gets the app’s response', async () => {
  const { api } = world;
  const projectId = newId('project');
  await insertProject(api.db, {
    id: projectId,
    org_id: api.orgId,
    name: 'wakes',
    use_case: 'internal',
    wake_on_use: true,
  });
  const { id } = await api.makeSandbox('stopped', { project_id: projectId });
  const { stream } = api.front;
  api.front.stream = async (_vmId, target) => await stream(world.sandboxId, target);
  try {
    const { host, token } = await world.link(3000, id);
    const visiting = world.ask(`/woken?token=${token}`, { host });
    await untilTrue('a wake has begun', () =>
      api.steps.some(({ kind, step }) => kind === 'wake' && step.sandboxId === id),
    );
    const [wake] = (await api.call('GET', `/v1/orgs/${api.orgId}/activity?sandboxId=${id}`)).body.activity;
    assert.deepEqual([wake.actor.kind, wake.details.wakeOnUse], ['system', 'connect']);
    await toStatus(id, 'ready');
    assert.equal((await visiting).text, 'app');
    assert.deepEqual(asked, ['/woken']);
  } finally {
    api.front.stream = stream;
  }
});

test('a request records activity before it is proxied; many requests write once', async () => {
  const { api } = world;
  const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
  const { stream } = api.front;
  let noted: Date | undefined;
  const rowOf = async (): Promise<Date> =>
    (await api.db.selectFrom('sandbox').select('last_active_at').where('id', '=', id).executeTakeFirstOrThrow())
      .last_active_at;
  api.front.stream = async (_vmId, target) => {
    noted ??= await rowOf();
    return await stream(world.sandboxId, target);
  };
  try {
    const { host, token } = await world.link(3000, id);
    await world.ask(`/?token=${token}`, { host });
    assert.ok(noted !== undefined && noted > LONG_AGO);
    for (let times = 0; times < 10; times += 1) await world.ask(`/?token=${token}`, { host });
    assert.deepEqual(await rowOf(), noted);
  } finally {
    api.front.stream = stream;
  }
});

test('each request is logged with its link, without path, query, token or cookie', async () => {
  await world.visit('/some/secret-path?secret=query', { headers: { cookie: await world.cookie() } });
  const socket = await world.webSocket('/some/secret-socket');
  socket.close();
  await once(socket, 'close');
  await untilTrue('the lines are there', () => world.api.logged().includes('preview WebSocket closed'));
  const lines = world.api
    .logged()
    .split('\n')
    .filter((line) => line.includes('preview request'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const { reqId, ms, time, pid, hostname, level, msg, ...line } = lines.findLast(({ status }) => status === 200) ?? {};
  assert.deepEqual(line, {
    method: 'GET',
    status: 200,
    sandboxId: world.sandboxId,
    port: 3000,
    link: 'public',
    linkId: world.linkId,
  });
  assert.ok([reqId, ms, time, pid, hostname, level, msg].every((value) => value !== undefined));
  assert.ok(lines.some(({ status }) => status === 101));
  assert.doesNotMatch(world.api.logged(), /secret-path|secret-socket|secret=query/);
});

function hostOf(sandboxId: string, port: number): string {
  return new URL(previewOrigin(SETTINGS.previewUrl, { sandboxId, port })).host;
}
