// Every kind of secret passes through the service, in successful, refused and failing calls, with
// the real durable work. Afterwards none is in the finest log, in any table row or in a process
// list.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import { newLinkToken } from '../../src/services/access/one-time-links.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { newId } from '../../src/store/database/ids.ts';
import { startApi, tokenIn, type Answer, type TestApi } from '../world/api.ts';
import { mailedToken, TestVisitor } from '../pages/site.ts';
import { ExecRefusal } from '../world/guests/exec-refusal.ts';
import { SecretsScan } from '../world/secrets-scan.ts';
import { cookieOf, mintLink, tokenIn as tokenOfPreview, requestAccess } from '../services/previews/links.ts';
import { DEVICE_GRANT, post } from '../sign-in/client.ts';
import { untilTrue } from '../../../os/test/until.ts';

const PASSWORD = 'nine.lanterns.on.the.quay';
const NEW_PASSWORD = 'seven.anchors.in.the.sand';
const WRONG_PASSWORD = 'no.lantern.is.to.be.seen';
const CLIENT = { client_id: 'berth-cli' };

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
  for (const password of [PASSWORD, NEW_PASSWORD, WRONG_PASSWORD]) api.secret(password, 'a password');
});
after(() => api.close());

interface Person {
  userId: string;
  email: string;
}

async function makePerson(): Promise<Person> {
  const email = `${newId('user')}@example.test`;
  const { userId } = await api.signIn.createAccount({ email, name: 'Pat', password: PASSWORD, emailVerified: true });
  return { userId, email };
}

/** Runs with a table renamed: every query of it is an internal error. */
async function whileBroken(table: string, run: () => Promise<void>): Promise<void> {
  await sql`alter table ${sql.table(table)} rename to ${sql.raw('away')}`.execute(api.db);
  try {
    await run();
  } finally {
    await sql`alter table ${sql.raw('away')} rename to ${sql.table(table)}`.execute(api.db);
  }
}

/** Returns another secret of the same form, with other last characters. */
const spoilt = (secret: string): string =>
  api.secret(secret.slice(0, -4) + (secret.endsWith('aaaa') ? 'bbbb' : 'aaaa'), 'a wrong secret');
const auth = (path: string, fields: Record<string, string>): ReturnType<typeof post> => post(api.url, path, fields);

test('passwords and the console: right, wrong, forgotten, with the accounts away', async () => {
  const { email } = await makePerson();
  const visitor = new TestVisitor(api.url);
  assert.equal((await visitor.post('/sign-in', { email, password: WRONG_PASSWORD })).status, 400);
  await visitor.signIn(email, PASSWORD);
  for (const value of visitor.cookies.values()) if (value.length >= 20) api.secret(value, 'a cookie');
  const session = await visitor.post('/auth/session', {});
  const token = api.secret(JSON.parse(session.text).access_token, 'the session token of the console');
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
  await whileBroken('account', async () => {
    assert.equal((await new TestVisitor(api.url).post('/sign-in', { email, password: PASSWORD })).status, 500);
  });
  await whileBroken('session', async () => {
    assert.equal((await visitor.post('/auth/session', {})).status, 500);
    assert.equal((await api.call('GET', '/v1/me', { token })).status, 500);
  });

  assert.equal((await visitor.post('/forgot-password', { email })).status, 200);
  await untilTrue('a mail', () => api.mails.some(({ to }) => to === email));
  const link = api.secret(mailedToken(api, email, '/reset-password'), 'the token of a link');
  await whileBroken('one_time_link', async () => {
    assert.equal((await visitor.get(`/reset-password?token=${link}`)).status, 500);
  });
  assert.equal((await visitor.get(`/reset-password?token=${spoilt(link)}`)).status, 410);
  assert.equal((await visitor.get(`/reset-password?token=${link}`)).status, 200);
  await whileBroken('account', async () => {
    assert.equal(
      (await visitor.post('/reset-password', { token: link, password: NEW_PASSWORD, repeat: NEW_PASSWORD })).status,
      500,
    );
  });
  assert.equal(
    (await visitor.post('/reset-password', { token: link, password: NEW_PASSWORD, repeat: NEW_PASSWORD })).status,
    303,
  );
  await new TestVisitor(api.url).signIn(email, NEW_PASSWORD);
});

test('a device: code, refresh token and access tokens, right, wrong, revoked, with their tables away', async () => {
  const { userId } = await makePerson();
  const { body: asked } = await auth('/auth/device/code', CLIENT);
  const device_code = api.secret(asked.device_code, 'a device code');
  const redeem = { grant_type: DEVICE_GRANT, ...CLIENT, device_code };
  assert.equal((await auth('/auth/token', { ...redeem, device_code: spoilt(device_code) })).status, 400);
  await whileBroken('deviceCode', async () => {
    assert.equal((await auth('/auth/token', redeem)).status, 500);
  });
  await api.signIn.decideDevice(asked.user_code, userId, 'approve');
  const tokens = (await auth('/auth/token', redeem)).body;
  const refresh_token = api.secret(tokens.refresh_token, 'a refresh token');
  const first = api.secret(tokens.access_token, 'a session token');
  const refresh = { grant_type: 'refresh_token', ...CLIENT, refresh_token };
  const second = api.secret((await auth('/auth/token', refresh)).body.access_token, 'a refreshed session token');
  for (const token of [first, second]) assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
  assert.equal((await auth('/auth/token', { ...refresh, refresh_token: spoilt(refresh_token) })).status, 400);
  await whileBroken('session', async () => {
    assert.equal((await auth('/auth/token', refresh)).status, 500);
    assert.equal((await auth('/auth/revoke', { token: refresh_token })).status, 500);
  });
  await whileBroken('session_token', async () => {
    assert.equal((await api.call('GET', '/v1/me', { token: first })).status, 500);
  });
  assert.equal((await auth('/auth/revoke', { token: refresh_token })).status, 200);
  assert.equal((await api.call('GET', '/v1/me', { token: first })).status, 401);
});

test('API keys and agent tokens: made, used, wrong, in the query, revoked, with their tables away', async () => {
  const owner = await api.makeSession({ role: 'owner' });
  const made = (await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: owner.token, body: { name: 'key' } }))
    .body;
  const key = api.secret(made.token, 'an API key');
  const agent = (await api.call('POST', '/v1/me/agent-tokens', { token: owner.token, body: { name: 'agent' } })).body;
  const agentToken = api.secret(agent.token, 'a personal agent token');
  for (const [token, table] of [
    [key, 'api_key'],
    [agentToken, 'agent_token'],
  ] as const) {
    assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
    assert.equal((await api.call('GET', '/v1/me', { token: spoilt(token) })).status, 401);
    assert.equal((await api.call('GET', `/v1/me?token=${token}&access_token=${token}`, { token: null })).status, 401);
    assert.equal((await api.call('GET', `/v1/sandboxes/${token}`, { token })).status, token === key ? 404 : 403);
    assert.equal((await api.call('GET', `/v1/nothing/${token}`, { token: null })).status, 404);
    await whileBroken(table, async () => {
      assert.equal((await api.call('GET', '/v1/me', { token })).status, 500);
    });
  }
  await api.call('DELETE', `/v1/orgs/${api.orgId}/api-keys/${made.apiKey.id}`, { token: owner.token });
  await api.call('DELETE', `/v1/me/agent-tokens/${agent.agentToken.id}`, { token: owner.token });
  for (const token of [key, agentToken]) assert.equal((await api.call('GET', '/v1/me', { token })).status, 401);
});

test('an invitation: mailed by a step, read, wrong, with its table away, accepted', async () => {
  const owner = await api.makeSession({ role: 'owner' });
  const invited = await api.makeSession({ role: null });
  const mailed = (): boolean => api.mails.some(({ to }) => to === invited.email);
  await api.call('POST', `/v1/orgs/${api.orgId}/invitations`, { token: owner.token, body: { email: invited.email } });
  await untilTrue('the mail of the invitation', mailed);
  const invitation = api.secret(
    tokenIn(api.mails.findLast(({ to }) => to === invited.email)),
    'the token of an invitation',
  );
  const look = (token: string): Promise<Answer> =>
    api.call('GET', `/v1/invitations/${token}`, { token: invited.token });
  assert.equal((await look(spoilt(invitation))).status, 404);
  await whileBroken('invitation', async () => {
    assert.equal((await look(invitation)).status, 500);
    assert.equal((await new TestVisitor(api.url).get(`/invitation?token=${invitation}`)).status, 500);
  });
  assert.equal((await look(invitation)).status, 200);
  assert.equal((await new TestVisitor(api.url).get(`/invitation?token=${invitation}`)).status, 200);
  assert.equal((await api.call('POST', `/v1/invitations/${invitation}/accept`, { token: invited.token })).status, 200);
});

test('repository credentials: stored, changed, refused, with the projects away', async () => {
  const { token } = await api.makeSession({ role: 'owner' });
  const path = `/v1/orgs/${api.orgId}/projects`;
  const credentials = (): { username: string; token: string } => ({
    username: api.secret(`user-${newLinkToken()}`, 'the user name of a repository'),
    token: api.secret(`ghp_${newLinkToken()}`, 'the token of a repository'),
  });
  const { id } = (
    await api.call('POST', path, { token, body: { name: 'p', useCase: 'internal', repoCredentials: credentials() } })
  ).body.project;
  const changed = credentials();
  assert.equal((await api.call('PATCH', `${path}/${id}`, { token, body: { repoCredentials: changed } })).status, 200);
  const wrong = await api.call('PATCH', `${path}/${id}`, {
    token,
    body: { repoCredentials: { ...changed, token: `${changed.token}\n` } },
  });
  assert.equal(wrong.status, 400);
  await whileBroken('project', async () => {
    assert.equal(
      (await api.call('POST', path, { token, body: { name: 'p', useCase: 'internal', repoCredentials: changed } }))
        .status,
      500,
    );
  });
});

test('preview links: made, opened, listed, revoked, with their table away', async () => {
  const { userId, email } = await makePerson();
  await insertMembership(api.db, { orgId: api.orgId, userId, role: 'owner' });
  const visitor = new TestVisitor(api.url);
  await visitor.signIn(email, PASSWORD);
  const { id } = await api.makeSandbox('ready');
  const [open, team] = [await mintLink(api, id, { audience: 'public' }), await mintLink(api, id)];
  const page = `/preview?link=${team.token}&sandbox=${id}&port=${team.port}`;
  const way = await visitor.get(page);
  assert.equal(way.status, 303);
  const granted = { ...team, token: tokenOfPreview(api, way.headers.get('location') ?? '') };
  const cookies = [
    cookieOf(api, await requestAccess(api.previewAccess, open)),
    cookieOf(api, await requestAccess(api.previewAccess, granted)),
  ];
  for (const cookie of cookies)
    assert.ok((await requestAccess(api.previewAccess, open, { token: null, cookie })).access !== undefined);
  for (const token of [spoilt(open.token), spoilt(team.token)])
    assert.equal((await requestAccess(api.previewAccess, open, { token })).refusal, 'invalid_link');
  assert.equal((await visitor.get(page.replace(team.token, spoilt(team.token)))).status, 410);
  const path = `/v1/sandboxes/${id}/previews`;
  assert.equal((await api.call('GET', path)).status, 200);
  await whileBroken('preview_link', async () => {
    const other = { ...open, port: 1 };
    assert.equal((await api.call('POST', path, { body: { port: 80, audience: 'public' } })).status, 500);
    assert.equal((await requestAccess(api.previewAccess, other)).refusal, 'invalid_link');
  });
  await whileBroken('membership', async () => {
    assert.equal((await visitor.get(page)).status, 500);
  });
  assert.equal((await api.call('DELETE', `${path}/${open.id}`)).status, 200);
});

test('commands, and the bodies of refused calls', async () => {
  const { id } = await api.makeSandbox('ready');
  const secret = api.secret(`export KEY=${newLinkToken()}`, 'a command');
  api.front.exec = () => Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  const exec = (body: object): Promise<Answer> => api.call('POST', `/v1/sandboxes/${id}/exec`, { body });
  assert.equal((await exec({ command: secret })).status, 200);
  assert.equal((await exec({ command: secret, timeoutSeconds: -1 })).status, 400);
  assert.equal((await api.call('POST', `/v1/sandboxes/${id}/exec`, { rawBody: `{"command":"${secret}"` })).status, 400);
  await whileBroken('activity', async () => {
    assert.equal((await exec({ command: secret })).status, 500);
  });
});

test('variables of a sandbox: set, refused, used, with their table away', async () => {
  const { id } = await api.makeSandbox('ready');
  const value = api.secret(`postgres://ada:${newLinkToken()}@db`, 'the value of a variable');
  const put = (variables: object): Promise<Answer> =>
    api.call('PUT', `/v1/sandboxes/${id}/variables`, { body: { variables } });
  const exec = (): Promise<Answer> => api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'true' } });
  const start = (): Promise<Answer> => api.call('POST', `/v1/sandboxes/${id}/processes`, { body: { command: 'true' } });
  assert.equal((await put({ URL: value })).status, 200);
  assert.equal((await put({ HOME: value })).status, 400);
  assert.equal((await put({ [value]: value })).status, 400);
  assert.equal((await put({ URL: [value] })).status, 400);
  assert.equal((await start()).status, 201);
  api.front.exec = () => Promise.reject(new ExecRefusal('guest_unreachable', 'the guest did not respond'));
  assert.equal((await exec()).status, 503);
  await whileBroken('sandbox_variable', async () => {
    assert.equal((await put({ URL: value })).status, 500);
    assert.equal((await exec()).status, 500);
  });
});

test('no secret is found, and each failure was logged', async () => {
  const faults = api.logged().match(/request failed: internal error/g)?.length ?? 0;
  assert.ok(faults >= 10, `${faults} faults`);
  await api.scanSecrets();
});

for (const [where, plant] of [
  [
    'text of a row',
    async (secret) =>
      void (await api.db
        .insertInto('org')
        .values({ id: newId('org'), name: `x ${secret}` })
        .execute()),
  ],
  [
    'bytes of a row',
    async (secret) => {
      const sealed = { repo_credentials_sealed: Buffer.from(`x${secret}`) };
      await api.db.updateTable('project').set(sealed).where('id', '=', api.projectId).execute();
    },
  ],
  [
    "the durable work's tables",
    async (secret) => {
      const input = JSON.stringify(Buffer.from(secret).toString('base64'));
      await api.db
        .insertInto('durable_step')
        .values({ id: newId('activity'), kind: 'none', org_id: api.orgId, input })
        .execute();
    },
  ],
] as [string, (secret: string) => Promise<void>][]) {
  test(`a secret planted in ${where} is found`, async () => {
    const scan = new SecretsScan();
    const secret = scan.note(`planted-"${newLinkToken()}\\`, 'the planted secret');
    await scan.check(api.databaseUrl);
    await plant(secret);
    await assert.rejects(scan.check(api.databaseUrl), /the planted secret is in/);
  });
}

for (const [how, say] of [
  ['as it is', (secret: string) => `a ${secret} b`],
  ['in JSON', (secret: string) => JSON.stringify({ secret })],
  ['in a URL', (secret: string) => `https://x.example.test/?y=${encodeURIComponent(secret)}`],
  ['in base64', (secret: string) => Buffer.from(secret).toString('base64')],
  ['in hexadecimal', (secret: string) => Buffer.from(secret).toString('hex')],
] as const) {
  test(`a secret planted in the log ${how} is found`, async () => {
    const scan = new SecretsScan();
    const secret = scan.note(`planted-"${newLinkToken()}\\`, 'the planted secret');
    pino({ level: 'trace' }, scan.into(undefined)).trace({ deep: { text: say(secret) } });
    await assert.rejects(scan.check(api.databaseUrl), /the planted secret is in the log/);
  });
}

for (const [where, start] of [
  ['arguments', (secret: string) => spawn('sleep', ['--', '60', secret.replace(/.*/s, '60')], { argv0: secret })],
  ['environment', (secret: string) => spawn('sleep', ['60'], { env: { ...process.env, SECRET: secret } })],
] as const) {
  test(`a secret planted in the ${where} of a process is found`, async () => {
    const scan = new SecretsScan();
    const secret = scan.note(newLinkToken(), 'the planted secret');
    const child = start(secret);
    try {
      await once(child, 'spawn');
      await assert.rejects(
        scan.check(api.databaseUrl),
        /the planted secret is in the (cmdline|environ) of the process \d+/,
      );
    } finally {
      child.kill();
    }
  });
}
