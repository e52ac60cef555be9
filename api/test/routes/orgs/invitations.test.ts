// Invitations: permissions, list and feed, and tokens that work once for the invited address.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { INVITATION_DAYS, INVITATIONS_PER_HOUR } from '@berth/contract/route/limits.ts';
import { ROLE_PERMISSIONS, role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { acceptInvitationAs, findInvitationByToken } from '../../../src/services/orgs/invitations.ts';
import { linkTokenSha256 } from '../../../src/services/access/one-time-links.ts';
import { signInAs, startApi, tokenIn, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

/** New org for each test, with a single owner. */
let orgId: string;
let owner: TestSession;
beforeEach(async () => {
  owner = await api.makeSession({ role: null });
  orgId = (await api.call('POST', '/v1/orgs', { token: owner.token, body: { name: 'Tested' } })).body.org.id;
  // Drops mails left by the previous test.
  await api.mailInvitations();
  api.mails.length = 0;
});

async function join(role: Role): Promise<TestSession> {
  const session = await api.makeSession({ role: null });
  await insertMembership(api.db, { orgId, userId: session.userId, role });
  return session;
}

const invite = (body: object, by: TestSession = owner): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/invitations`, { token: by.token, body });
const list = async (query = ''): Promise<Answer['body']> =>
  (await api.call('GET', `/v1/orgs/${orgId}/invitations${query}`, { token: owner.token })).body;
const revoke = (id: string, by: TestSession = owner): Promise<Answer> =>
  api.call('DELETE', `/v1/orgs/${orgId}/invitations/${id}`, { token: by.token });
const look = (token: string, by: TestSession): Promise<Answer> =>
  api.call('GET', `/v1/invitations/${token}`, { token: by.token });
const accept = (token: string, by: { token: string }): Promise<Answer> =>
  api.call('POST', `/v1/invitations/${token}/accept`, { token: by.token });

/** Invites the person; returns the mailed token. */
async function inviteByMail(person: { email: string }, role?: Role): Promise<{ id: string; token: string }> {
  const made = await invite({ email: person.email, ...(role === undefined ? {} : { role }) });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  await api.mailInvitations();
  return { id: made.body.invitation.id, token: tokenIn(api.mails.at(-1)) };
}

const feed = async (): Promise<unknown[]> => {
  const rows = await api.db.selectFrom('activity').selectAll().where('org_id', '=', orgId).orderBy('seq').execute();
  return rows
    .filter((row) => row.kind.startsWith('invitation_'))
    .map((row) => [row.kind, row.actor_kind, row.actor_user_id, row.subject_kind, row.subject_id, row.details]);
};
const expire = async (id: string): Promise<void> => {
  await api.db
    .updateTable('invitation')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', id)
    .execute();
};

test('an invitation defaults to member, lasts seven days, and no response has its token', async () => {
  const made = await invite({ email: 'New.Person@Example.TEST' });
  assert.equal(made.status, 201);
  const { invitation } = made.body;
  assert.deepEqual(
    [invitation.orgId, invitation.email, invitation.role, invitation.status, invitation.invitedBy, invitation.sentAt],
    [orgId, 'new.person@example.test', 'member', 'pending', owner.userId, null],
  );
  assert.equal(Date.parse(invitation.expiresAt) - Date.parse(invitation.createdAt), INVITATION_DAYS * 86_400_000);
  assert.deepEqual(await list(), { invitations: [invitation] });

  await api.mailInvitations();
  const [sent] = (await list()).invitations;
  assert.ok(Date.parse(sent.sentAt) >= Date.parse(sent.createdAt));
  const token = tokenIn(api.mails[0]);
  const shown = JSON.stringify([made.body, sent, (await look(token, owner)).body, await feed()]);
  assert.ok(!shown.includes(token));
});

test('the feed has invitation, mail, acceptance and revocation, each with address and role', async () => {
  const person = await api.makeSession({ role: null });
  const { id, token } = await inviteByMail(person, 'viewer');
  await accept(token, person);
  const details = { email: person.email, role: 'viewer' };
  const second = await invite({ email: 'second@example.test' });
  await revoke(second.body.invitation.id);
  const other = { email: 'second@example.test', role: 'member' };
  assert.deepEqual(await feed(), [
    ['invitation_created', 'session', owner.userId, 'invitation', id, details],
    ['invitation_sent', 'system', null, 'invitation', id, details],
    ['invitation_accepted', 'session', person.userId, 'invitation', id, details],
    ['invitation_created', 'session', owner.userId, 'invitation', second.body.invitation.id, other],
    ['invitation_revoked', 'session', owner.userId, 'invitation', second.body.invitation.id, other],
  ]);
});

for (const [title, body, message] of [
  ['without an address', {}, /^body\.email is required/],
  ['with what is no address', { email: 'nobody' }, /^body\.email must be an email address$/],
  ['with two addresses', { email: 'a@example.test, b@example.test' }, /^body\.email must be an email address$/],
  [
    'with a line break in the address',
    { email: 'a@example.test\nBcc: b@example.test' },
    /^body\.email must be an email address$/,
  ],
  [
    'with an over-long address',
    { email: `${'a'.repeat(250)}@example.test` },
    /^body\.email must be at most 254 characters/,
  ],
  [
    'for a role that does not exist',
    { email: 'a@example.test', role: 'king' },
    /^body\.role must be one of "owner", "admin"/,
  ],
  [
    'with a field that it does not have',
    { email: 'a@example.test', name: 'A' },
    /^body\.name: unknown field; allowed: email, role$/,
  ],
] as const) {
  test(`an invitation ${title} is 400 and names the allowed values`, async () => {
    const answer = await invite(body);
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.message, message);
  });
}

for (const by of roleName.options) {
  test(`${by} can invite exactly the roles that the permissions allow`, async () => {
    const caller = await join(by);
    for (const role of roleName.options) {
      const needed = role === 'owner' ? 'org.owners.manage' : 'org.members.manage';
      const may = ROLE_PERMISSIONS[by].has(needed);
      const answer = await invite({ email: `${by}-${role}@example.test`, role }, caller);
      assert.equal(answer.status, may ? 201 : 403, role);
      if (!may) {
        assert.match(
          answer.body.error.message,
          ROLE_PERMISSIONS[by].has('org.members.manage') ? /org\.owners\.manage/ : /org\.members\.manage/,
        );
      }
    }
    const { id } = (await invite({ email: 'to-revoke@example.test' })).body.invitation;
    assert.equal((await revoke(id, caller)).status, ROLE_PERMISSIONS[by].has('org.members.manage') ? 200 : 403);
  });
}

test("a member's address in any case is 409 already_member, and no mail is sent", async () => {
  const member = await join('viewer');
  const answer = await invite({ email: member.email.toUpperCase() });
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'already_member']);
  await api.mailInvitations();
  assert.deepEqual([await list(), api.mails.length, await feed()], [{ invitations: [] }, 0, []]);
});

test('a member of another org can be invited', async () => {
  const other = await api.makeOrg();
  assert.equal((await invite({ email: `${other.userId}@example.test` })).status, 201);
});

test('a second invitation to an address replaces the first, whose token is dead at once', async () => {
  const person = await api.makeSession({ role: null });
  const first = await inviteByMail(person, 'viewer');
  const second = await inviteByMail(person, 'admin');
  assert.notEqual(first.id, second.id);
  assert.deepEqual(
    (await list()).invitations.map((invitation: { id: string; role: string }) => [invitation.id, invitation.role]),
    [[second.id, 'admin']],
  );
  const dead = await accept(first.token, person);
  assert.deepEqual([dead.status, dead.body.error.code], [409, 'invitation_not_pending']);
  assert.match(dead.body.error.message, /revoked/);
  assert.deepEqual((await feed()).at(-2), [
    'invitation_created',
    'session',
    owner.userId,
    'invitation',
    second.id,
    { email: person.email, role: 'admin', replaces: first.id },
  ]);
  assert.equal((await accept(second.token, person)).body.member.role, 'admin');
});

test('concurrent invitations to an address leave one pending', async () => {
  const email = 'wanted@example.test';
  const answers = await Promise.all(Array.from({ length: 8 }, () => invite({ email })));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
  const { invitations } = await list();
  assert.equal(invitations.length, 1);
  await api.mailInvitations();
  assert.equal(api.mails.length, 1);
});

test('a concurrent invitation and acceptance leave a member or a pending invitation, never both', async () => {
  for (let round = 0; round < 5; round += 1) {
    const person = await api.makeSession({ role: null });
    const { token } = await inviteByMail(person);
    const [accepted, invited] = await Promise.all([accept(token, person), invite({ email: person.email })]);
    assert.deepEqual(
      [accepted.status, invited.status].toSorted((a, b) => a - b),
      accepted.status === 200 ? [200, 409] : [201, 409],
    );
    const pending = (await list()).invitations.some(
      (invitation: { email: string }) => invitation.email === person.email,
    );
    assert.equal(pending, accepted.status !== 200);
  }
});

test('the list has pending invitations only, newest first, with optional paging', async () => {
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    ids.push((await invite({ email: `${name}@example.test` })).body.invitation.id);
  const [a = '', b = '', c, d, e] = ids;
  await revoke(a);
  await expire(b);
  const idsOf = (page: { invitations: { id: string }[] }): string[] => page.invitations.map(({ id }) => id);
  assert.deepEqual(idsOf(await list()), [e, d, c]);
  const first = await list('?limit=2');
  assert.deepEqual([idsOf(first), first.hasMore], [[e, d], true]);
  const rest = await list(`?limit=2&after=${first.nextCursor}`);
  assert.deepEqual([idsOf(rest), rest.hasMore, rest.nextCursor], [[c], false, null]);
});

test('a revoked invitation is returned and cannot be revoked or accepted again', async () => {
  const person = await api.makeSession({ role: null });
  const { id, token } = await inviteByMail(person);
  const revoked = await revoke(id);
  assert.deepEqual([revoked.status, revoked.body.invitation.status], [200, 'revoked']);
  for (const answer of [await revoke(id), await accept(token, person)]) {
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'invitation_not_pending']);
    assert.match(answer.body.error.message, /revoked/);
  }
});

test("another org's invitation is 403, a missing one 404", async () => {
  const { id } = (await invite({ email: 'a@example.test' })).body.invitation;
  const other = await api.makeSession({ role: 'owner' });
  const foreign = await api.call('DELETE', `/v1/orgs/${api.orgId}/invitations/${id}`, { token: other.token });
  assert.deepEqual([foreign.status, foreign.body.error.code], [403, 'org_access_denied']);
  const missing = await revoke('inv_aaaaaaaaaaaaaaaaaaaaaaaa');
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'invitation_not_found']);
  assert.equal((await list()).invitations.length, 1);
});

test("the token's holder sees org, address, role and status", async () => {
  const person = await api.makeSession({ role: null });
  const { id, token } = await inviteByMail(person, 'operator');
  const { invitation } = (await look(token, person)).body;
  assert.deepEqual(
    [invitation.id, invitation.org, invitation.email, invitation.role, invitation.status],
    [id, { id: orgId, name: 'Tested' }, person.email, 'operator', 'pending'],
  );
  await accept(token, person);
  assert.equal((await look(token, person)).body.invitation.status, 'accepted');
});

for (const [what, token] of [
  ['that nobody was mailed', 'A'.repeat(43)],
  ['of another form', '%00%ff'],
  ['as long as can be', 'x'.repeat(200)],
] as const) {
  test(`a token ${what} is 404, to read and to accept`, async () => {
    for (const answer of [await look(token, owner), await accept(token, owner)]) {
      // Without valid UTF-8 it is not even a path.
      const expected = token.includes('%ff') ? [400, 'invalid_request'] : [404, 'invitation_not_found'];
      assert.deepEqual([answer.status, answer.body.error.code], expected);
    }
  });
}

test('accepting gives the caller the invited role at once and permanently', async () => {
  const person = await api.makeSession({ role: null });
  const { token } = await inviteByMail(person, 'operator');
  const before = await api.call('GET', `/v1/orgs/${orgId}/projects`, { token: person.token });
  assert.equal(before.status, 403);
  const accepted = await accept(token, person);
  assert.equal(accepted.status, 200);
  assert.deepEqual(
    [accepted.body.orgId, accepted.body.member.userId, accepted.body.member.email, accepted.body.member.role],
    [orgId, person.userId, person.email, 'operator'],
  );
  assert.equal((await api.call('GET', `/v1/orgs/${orgId}/projects`, { token: person.token })).status, 200);
  const row = await api.db.selectFrom('invitation').selectAll().where('org_id', '=', orgId).executeTakeFirstOrThrow();
  assert.equal(row.accepted_by, person.userId);
  assert.deepEqual(row.token_sha256, linkTokenSha256(token));
  const again = await accept(token, person);
  assert.deepEqual([again.status, again.body.error.code], [409, 'invitation_not_pending']);
  assert.match(again.body.error.message, /accepted/);
});

test('exactly one of many concurrent acceptances succeeds', async () => {
  const person = await api.makeSession({ role: null });
  const { token } = await inviteByMail(person);
  const sessions = [person, ...(await Promise.all(Array.from({ length: 9 }, () => signInAs(api.db, person.userId))))];
  const answers = await Promise.all([...sessions, ...sessions].map((session) => accept(token, session)));
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, ...Array.from({ length: 19 }, () => 409)],
  );
  assert.deepEqual((await feed()).filter((row) => (row as string[])[0] === 'invitation_accepted').length, 1);
});

test('exactly one of a concurrent acceptance and revocation succeeds', async () => {
  for (let round = 0; round < 5; round += 1) {
    const person = await api.makeSession({ role: null });
    const { id, token } = await inviteByMail(person);
    const answers = await Promise.all([accept(token, person), revoke(id)]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    );
  }
});

test('another user cannot accept with the token; the invitee still can', async () => {
  const person = await api.makeSession({ role: null });
  const thief = await api.makeSession({ role: null });
  const { token } = await inviteByMail(person);
  const refused = await accept(token, thief);
  assert.deepEqual([refused.status, refused.body.error.code], [403, 'invitation_for_another']);
  assert.equal((await accept(token, person)).status, 200);
});

test('an unverified address is 403 email_not_verified until it is verified', async () => {
  const person = await api.makeSession({ role: null, emailVerified: false });
  const { token } = await inviteByMail(person);
  const refused = await accept(token, person);
  assert.deepEqual([refused.status, refused.body.error.code], [403, 'email_not_verified']);
  await api.db.updateTable('user').set({ emailVerified: true }).where('id', '=', person.userId).execute();
  assert.equal((await accept(token, person)).status, 200);
});

test('an expired invitation is 409 to accept and revoke; its address can be invited again', async () => {
  const person = await api.makeSession({ role: null });
  const { id, token } = await inviteByMail(person);
  await expire(id);
  for (const answer of [await accept(token, person), await revoke(id)]) {
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'invitation_not_pending']);
    assert.match(answer.body.error.message, /expired/);
  }
  assert.equal((await look(token, person)).body.invitation.status, 'expired');
  const again = await inviteByMail(person);
  assert.equal((await accept(again.token, person)).status, 200);
});

test('an invitee who became a member otherwise is 409 already_member', async () => {
  const person = await api.makeSession({ role: null });
  const { token } = await inviteByMail(person);
  await insertMembership(api.db, { orgId, userId: person.userId, role: 'viewer' });
  const answer = await accept(token, person);
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'already_member']);
});

test('a removed member can be invited and join again', async () => {
  const person = await join('viewer');
  await api.call('DELETE', `/v1/orgs/${orgId}/members/${person.userId}`, { token: owner.token });
  const { token } = await inviteByMail(person);
  assert.equal((await accept(token, person)).status, 200);
});

test("a user's hourly invitations are limited, fewer per address; another user can still invite", async () => {
  const admin = await join('admin');
  const { total, sameAddress } = INVITATIONS_PER_HOUR;
  for (let index = 0; index < sameAddress; index += 1)
    assert.equal((await invite({ email: 'same@example.test' })).status, 201);
  const refused = await invite({ email: 'same@example.test' });
  assert.deepEqual([refused.status, refused.body.error.code], [429, 'rate_limited']);
  assert.match(refused.body.error.message, new RegExp(`${sameAddress} invitations to one address`));
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait > 0 && wait <= 3_600, String(wait));
  assert.equal((await invite({ email: 'other@example.test' })).status, 201);

  const values = Array.from(
    { length: total },
    (_, index) =>
      `('inv_${index}', '${orgId}', 'p${index}@example.test', 'viewer', '${owner.userId}', now() + interval '7 days')`,
  );
  await sql
    .raw(`insert into invitation (id, org_id, email, role, invited_by, expires_at) values ${values.join(', ')}`)
    .execute(api.db);
  const full = await invite({ email: 'one-more@example.test' });
  assert.equal(full.status, 429);
  assert.match(full.body.error.message, new RegExp(`at most ${total} invitations within an hour`));
  assert.equal((await invite({ email: 'one-more@example.test' }, admin)).status, 201);
  await api.db
    .updateTable('invitation')
    .set({ created_at: new Date(Date.now() - 3_601_000) })
    .where('invited_by', '=', owner.userId)
    .execute();
  assert.equal((await invite({ email: 'much-later@example.test' })).status, 201);
});

test("a user's limit per address holds across concurrent invitations from several orgs", async () => {
  const orgs: string[] = [];
  for (let index = 0; index < 2 * INVITATIONS_PER_HOUR.sameAddress; index += 1)
    orgs.push((await api.call('POST', '/v1/orgs', { token: owner.token, body: { name: 'One of many' } })).body.org.id);

  const answers = await Promise.all(
    orgs.map((id) =>
      api.call('POST', `/v1/orgs/${id}/invitations`, { token: owner.token, body: { email: 'many-orgs@example.test' } }),
    ),
  );
  assert.equal(answers.filter(({ status }) => status === 201).length, INVITATIONS_PER_HOUR.sameAddress);
});

test('the invitation page reads and accepts under the same rules', async () => {
  const person = await api.makeSession({ role: null });
  const { token } = await inviteByMail(person, 'viewer');
  assert.equal(await findInvitationByToken(api.db, 'nonsense'), null);
  const found = await findInvitationByToken(api.db, token);
  assert.deepEqual([found?.orgName, found?.email, found?.status], ['Tested', person.email, 'pending']);
  const actor = { kind: 'session', id: 'sgn_x', userId: person.userId, requestId: null } as const;
  const accepted = await acceptInvitationAs(api.context, { token, userId: person.userId, actor });
  assert.deepEqual([accepted.orgId, accepted.member.role], [orgId, 'viewer']);
  await assert.rejects(acceptInvitationAs(api.context, { token, userId: person.userId, actor }), {
    code: 'invitation_not_pending',
  });
});
