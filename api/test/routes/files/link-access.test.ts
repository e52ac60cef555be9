// File links open as long as their creator may do the same, on every replica, within limits of
// their own.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { FILE_LINKS, type FileLink } from '@berth/contract/files/links.ts';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { fileLinkToken, readFileLink } from '../../../src/services/files/link-token.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { partsOf } from '../../world/guests/exec-front.ts';
import { startReplica, type Replica } from '../../world/replica.ts';
import { StatementRecorder } from '../../world/statements.ts';
import { at, makeLink, tokenOf, use } from './link-world.ts';

const recorder = new StatementRecorder();
let api: TestApi;
let replica: Replica;
let owner: TestSession;
let nowMs = 0;
/** Transfers that the host holds open. */
let open: Duplex[] = [];
let reached = 0;
before(async () => {
  const settings = { requestsPerMinute: 100, orgRequestsPerMinute: 500 };
  api = await startApi({ durable: false, now: () => nowMs, settings });
  replica = await startReplica(api);
  owner = await api.makeSession({ role: 'owner' });
});
after(async () => {
  await replica.close();
  await api.close();
});
beforeEach(() => {
  nowMs += 120_000;
  reached = 0;
  api.front.stream = () => {
    reached += 1;
    return partsOf('content', 'a-1');
  };
});
afterEach(() => {
  for (const stream of open) stream.destroy();
  open = [];
});

/** The host sends the beginning of the content, and holds the transfer open. */
function holdTransfers(): void {
  api.front.stream = () => (caller) => {
    reached += 1;
    open.push(caller);
    caller.on('error', () => undefined);
    caller.write('1000000 a-1\n');
    caller.once('data', () => caller.write('begin'));
  };
}

/** Starts a download and leaves it open. */
async function begin(url: string): Promise<{ response: http.IncomingMessage; ended: Promise<unknown> }> {
  const request = http.get(url, { agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const ended = new Promise((resolve) => response.once('close', resolve).once('error', () => undefined));
  response.resume();
  return { response, ended };
}

interface Made {
  link: FileLink;
  sandboxId: string;
  member: TestSession;
  keyId: string;
}

async function make(by: 'key' | 'member', action: 'read' | 'write' = 'read'): Promise<Made> {
  const { id: sandboxId } = await api.makeSandbox('ready');
  const member = await api.makeSession({ role: 'member' });
  await setRole({ member }, 'admin');
  const { apiKey, token } = (
    await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: member.token, body: { name: 'a key' } })
  ).body;
  const link = await makeLink(api, sandboxId, { path: 'a', action }, by === 'key' ? token : member.token);
  return { link, sandboxId, member, keyId: apiKey.id };
}

const ok = async (what: Promise<{ status: number }>): Promise<void> => assert.ok((await what).status < 300);
const memberPath = ({ member }: Pick<Made, 'member'>): string => `/v1/orgs/${api.orgId}/members/${member.userId}`;
const removeMember = (made: Made): Promise<void> => ok(api.call('DELETE', memberPath(made), { token: owner.token }));
const setRole = (made: Pick<Made, 'member'>, role: string): Promise<void> =>
  ok(api.call('PATCH', memberPath(made), { token: owner.token, body: { role } }));
const revokeKey = ({ keyId }: Made): Promise<void> =>
  ok(api.call('DELETE', `/v1/orgs/${api.orgId}/api-keys/${keyId}`, { token: owner.token }));
const expireKey = async ({ keyId }: Made): Promise<void> => {
  await api.db
    .updateTable('api_key')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', keyId)
    .execute();
};
const deleteAccount = async ({ member }: Made): Promise<void> => {
  await api.db.deleteFrom('user').where('id', '=', member.userId).execute();
};
const destroy = ({ sandboxId }: Made): Promise<void> =>
  ok(api.call('POST', `/v1/sandboxes/${sandboxId}/destroy`, { headers: { prefer: 'respond-async' } }));
const deleteRow = async ({ sandboxId }: Made): Promise<void> => {
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('id', '=', sandboxId)
    .execute();
};

for (const [by, action, what, end] of [
  ['key', 'read', 'its key is revoked', revokeKey],
  ['key', 'read', 'its key expires', expireKey],
  ['key', 'read', "its key's creator is removed", removeMember],
  ['member', 'read', 'its creator is removed', removeMember],
  ['member', 'read', "its creator's account is deleted", deleteAccount],
  ['member', 'write', 'its creator becomes a viewer', (made) => setRole(made, 'viewer')],
  ['key', 'read', 'its sandbox is destroyed', destroy],
  ['key', 'write', 'its sandbox is deleted', deleteRow],
] as ['key' | 'member', 'read' | 'write', string, (made: Made) => Promise<void>][]) {
  test(`a link of a ${by} to ${action} is withdrawn on every replica when ${what}`, async () => {
    const made = await make(by, action);
    const init = action === 'write' ? { body: '' } : {};
    if (action === 'read') assert.equal((await use({ url: at(replica.url, made.link) }, init)).status, 200);
    reached = 0;
    await end(made);
    for (const base of [api.url, replica.url]) {
      const answer = await use({ ...made.link, url: at(base, made.link) }, init);
      assert.deepEqual(
        [answer.status, answer.code, answer.message],
        [410, 'file_link_expired', 'the file link was withdrawn'],
      );
    }
    assert.equal(reached, 0);
  });
}

test('links to read survive a demotion to viewer, a sign-out and the revocation of another key', async () => {
  const made = await make('member');
  await revokeKey(made);
  await setRole(made, 'viewer');
  await api.db.deleteFrom('session').where('id', '=', made.member.loginId).execute();
  assert.equal((await use(made.link)).status, 200);
});

test('an open download breaks off when the link is withdrawn', async () => {
  holdTransfers();
  for (const base of [api.url, replica.url]) {
    const made = await make('key');
    const { response, ended } = await begin(at(base, made.link));
    assert.equal(response.statusCode, 200);
    await revokeKey(made);
    await ended;
    assert.equal(response.complete, false);
  }
});

test('a link to write needs sandbox.files.write too, by role and by scope', async () => {
  const { id } = await api.makeSandbox('ready');
  const viewer = await api.makeKey({ role: 'viewer' });
  const reader = await api.makeKey({ scopes: ['sandbox.files.read'] });
  const writer = await api.makeKey({ scopes: ['sandbox.files.read', 'sandbox.files.write'] });
  const path = `/v1/sandboxes/${id}/files/links`;
  for (const [token, action, status] of [
    [viewer, 'read', 201],
    [viewer, 'write', 403],
    [reader, 'read', 201],
    [reader, 'write', 403],
    [writer, 'write', 201],
  ] as const) {
    const { body, ...answer } = await api.call('POST', path, { token, body: { path: 'a', action } });
    assert.equal(answer.status, status, `${action}: ${JSON.stringify(body)}`);
    if (status === 201) api.secret(tokenOf(body.link));
    else assert.match(body.error.message, /^the permission sandbox\.files\.write is required/);
  }
});

test('every changed bit of a token, and a token of another installation, is refused without a query', async () => {
  const { id } = await api.makeSandbox('ready');
  const token = tokenOf(await makeLink(api, id, { path: 'a', action: 'read' }));
  const keys = api.context.secretKey.keysFor('file-link');
  const terms = readFileLink(keys, token);
  assert.ok(terms !== null);
  const sealed = Buffer.from(token, 'base64url');
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.equal(readFileLink(keys, changed.toString('base64url')), null, `bit ${bit}`);
  }
  const foreign = new SecretKey(randomBytes(32));
  // Keys of other purposes of this installation do not make links either.
  const others = [foreign.keysFor('file-link'), api.context.secretKey.keysFor('preview-link')];
  const forged = [
    ...others.map((other) => fileLinkToken(other, terms)),
    ...[`${token}=`, `${token}A`, token.slice(0, -1), token.toUpperCase(), 'x', 'A'.repeat(12_000), '%00', '%C3%A9'],
  ];
  const { statements } = await recorder.during(async () => {
    for (const text of forged) {
      const answer = await use({ url: `${api.url}/file-links/${text}` });
      assert.deepEqual([answer.status, answer.code], [403, 'file_link_invalid'], text.slice(0, 40));
    }
  });
  assert.doesNotMatch(statements.join('\n'), /sandbox|membership|api_key/, 'a forged link costs no query');
});

test('terms that name the sandbox of an org in which the creator is a stranger open nothing', async () => {
  const other = await api.makeOrg();
  const foreign = await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId });
  const made = await make('key');
  const keys = api.context.secretKey.keysFor('file-link');
  const terms = readFileLink(keys, tokenOf(made.link));
  assert.ok(terms !== null);
  const token = api.secret(fileLinkToken(keys, { ...terms, sandboxId: foreign.id }));
  const answer = await use({ url: `${api.url}/file-links/${token}` });
  assert.deepEqual([answer.status, answer.code, reached], [410, 'file_link_expired', 0]);
});

test('links outlive the rotation of the secret key, and end when the former key is removed', async () => {
  const { link } = await make('key');
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const terms = readFileLink(api.context.secretKey.keysFor('file-link'), tokenOf(link));
  assert.ok(terms !== null);
  const { secretKey } = api.context;
  const original = new SecretKey(randomBytes(32));
  original.replaceWith(secretKey);
  try {
    secretKey.replaceWith(new SecretKey(first));
    const url = `${api.url}/file-links/${api.secret(fileLinkToken(secretKey.keysFor('file-link'), terms))}`;
    for (const [keys, status] of [
      [new SecretKey(first), 200],
      [new SecretKey(second, first), 200],
      [new SecretKey(second), 403],
    ] as const) {
      secretKey.replaceWith(keys);
      assert.equal((await use({ url })).status, status);
    }
  } finally {
    secretKey.replaceWith(original);
  }
});

test('a link has the requests of a credential, apart from those of the org and of other links', async () => {
  const { requestsPerMinute } = api.context.settings;
  const [one, other] = [await make('key'), await make('key')];
  const tries = Array.from({ length: requestsPerMinute }, () => use({ url: one.link.url, method: 'PUT' }));
  assert.deepEqual(new Set((await Promise.all(tries)).map(({ status }) => status)), new Set([405]));
  const refused = await use(one.link);
  assert.deepEqual([refused.status, refused.code], [429, 'rate_limited']);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  assert.match(refused.message ?? '', /^too many requests with this link; retry in \d+ s$/);
  assert.equal((await use(other.link)).status, 200);
  assert.equal((await api.call('GET', `/v1/sandboxes/${one.sandboxId}`)).status, 200);
  nowMs += 60_000;
  assert.equal((await use(one.link)).status, 200);
});

test('all links of an org together have the requests of the org, beside those of its credentials', async () => {
  const { orgRequestsPerMinute } = api.context.settings;
  const { fileLinks } = api.calls;
  const { link, sandboxId } = await make('key');
  for (let count = 0; count < orgRequestsPerMinute; count += 1) fileLinks.countForOrg(api.orgId, null);
  const refused = await use(link);
  assert.deepEqual([refused.status, refused.code], [429, 'rate_limited']);
  assert.match(refused.message ?? '', /^too many requests with links like this one; retry in \d+ s$/);
  assert.equal((await api.call('GET', `/v1/sandboxes/${sandboxId}`)).status, 200);
});

test('guesses of an address are limited; links that are valid still open there', async () => {
  const { link } = await make('key');
  const { requestsPerMinute } = api.context.settings;
  const guesses = await Promise.all(
    Array.from({ length: requestsPerMinute + 1 }, () => use({ url: `${api.url}/file-links/guess` })),
  );
  const codes = new Map<string | undefined, number>();
  for (const { code } of guesses) codes.set(code, (codes.get(code) ?? 0) + 1);
  assert.deepEqual([codes.get('file_link_invalid'), codes.get('rate_limited')], [requestsPerMinute, 1]);
  assert.equal((await use(link)).status, 200);
});

test('links run two transfers of a sandbox at once; more wait, and credentials are never in their way', async () => {
  const { link, sandboxId } = await make('key');
  holdTransfers();
  const [one, two] = [await begin(link.url), await begin(link.url)];
  assert.equal(reached, FILE_LINKS.ofSandbox.atOnce);
  const waiting = begin(link.url);
  const { id } = await api.makeSandbox('ready');
  const other = await makeLink(api, id, { path: 'a', action: 'read' });
  // Two more, in another sandbox and with a credential: the third of the link waits meanwhile.
  const elsewhere = await begin(other.url);
  const headers = { authorization: `Bearer ${api.token}` };
  const request = http.get(`${api.url}/v1/sandboxes/${sandboxId}/file/content?path=a`, { agent: false, headers });
  const [own] = (await once(request, 'response')) as [http.IncomingMessage];
  assert.deepEqual([own.statusCode, reached], [200, 4]);
  one.response.destroy();
  const third = await waiting;
  assert.deepEqual([third.response.statusCode, reached], [200, 5]);
  for (const { response } of [two, third, elsewhere, { response: own }]) response.destroy();
});

test('beyond the waiting transfers of a sandbox a link is refused, and those that leave make room', async () => {
  const { link } = await make('key');
  const other = await makeLink(api, (await api.makeSandbox('ready')).id, { path: 'a', action: 'read' });
  holdTransfers();
  const gone = new AbortController();
  const { atOnce, waiting } = FILE_LINKS.ofSandbox;
  const first = await Promise.all(Array.from({ length: atOnce }, () => begin(link.url)));
  // The first response is the refusal of the one that may not wait.
  const waits = Array.from({ length: waiting + 1 }, () => use(link, { signal: gone.signal }));
  const settled = Promise.allSettled(waits);
  const refused = await Promise.race(waits);
  assert.deepEqual([refused.status, refused.code], [429, 'too_many_connections']);
  const elsewhere = await begin(other.url);
  assert.equal(elsewhere.response.statusCode, 200);
  elsewhere.response.destroy();
  gone.abort();
  await settled;
  for (const { response } of first) response.destroy();
  api.front.stream = () => partsOf('content', 'a-1');
  await untilTrue('the places are free', async () => (await use(link)).status === 200);
});

test('a download whose caller leaves is a broken response in the log, without the token', async () => {
  const { link } = await make('key');
  holdTransfers();
  const seen = api.logged().length;
  const { response } = await begin(link.url);
  response.destroy();
  await untilTrue('it is in the log', () => api.logged().slice(seen).includes('"brokenOff":true'));
  for (const line of api.logged().slice(seen).trim().split('\n')) assert.ok(JSON.parse(line).level < 40, line);
  await api.scanSecrets();
});
