// Pending invitations of users who lost the right to send them.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Role } from '@berth/contract/route/permissions.ts';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { startApi, tokenIn, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

let orgId: string;
let owner: TestSession;
beforeEach(async () => {
  owner = await api.makeSession({ role: null });
  orgId = (await api.call('POST', '/v1/orgs', { token: owner.token, body: { name: 'Tested' } })).body.org.id;
});

async function join(role: Role): Promise<TestSession> {
  const session = await api.makeSession({ role: null });
  await insertMembership(api.db, { orgId, userId: session.userId, role });
  return session;
}

interface Invited {
  person: TestSession;
  id: string;
  token: string;
}

async function invite(by: TestSession, role: Role): Promise<Invited> {
  const person = await api.makeSession({ role: null });
  const made = await api.call('POST', `/v1/orgs/${orgId}/invitations`, {
    token: by.token,
    body: { email: person.email, role },
  });
  assert.equal(made.status, 201);
  await api.mailInvitations();
  return { person, id: made.body.invitation.id, token: tokenIn(api.mails.at(-1)) };
}

const accept = ({ person, token }: Invited): Promise<Answer> =>
  api.call('POST', `/v1/invitations/${token}/accept`, { token: person.token });
const pending = async (): Promise<string[]> =>
  (await api.call('GET', `/v1/orgs/${orgId}/invitations`, { token: owner.token })).body.invitations.map(
    ({ id }: { id: string }) => id,
  );
const changeRole = (userId: string, role: Role): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${orgId}/members/${userId}`, { token: owner.token, body: { role } });
const revoked = async (): Promise<unknown[]> => {
  const rows = await api.db.selectFrom('activity').selectAll().where('org_id', '=', orgId).orderBy('seq').execute();
  return rows
    .filter(({ kind }) => kind === 'invitation_revoked')
    .map((row) => [row.actor_user_id, row.subject_kind, row.subject_id, row.details]);
};

test('removing a member revokes their pending invitations, recorded in the feed; others stay', async () => {
  const former = await join('owner');
  const [asOwner, asViewer, stays] = [
    await invite(former, 'owner'),
    await invite(former, 'viewer'),
    await invite(owner, 'viewer'),
  ];
  await api.call('DELETE', `/v1/orgs/${orgId}/members/${former.userId}`, { token: owner.token });
  for (const invited of [asOwner, asViewer]) {
    const { status, body } = await accept(invited);
    assert.deepEqual([status, body.error?.code], [409, 'invitation_not_pending']);
  }
  assert.deepEqual(await pending(), [stays.id]);
  const told = (invited: Invited, role: Role): unknown[] => [
    owner.userId,
    'invitation',
    invited.id,
    { email: invited.person.email, role, inviter: former.userId },
  ];
  assert.deepEqual(await revoked(), [told(asOwner, 'owner'), told(asViewer, 'viewer')]);
  assert.equal((await accept(stays)).status, 200);
});

test("leaving an org revokes one's own pending invitations", async () => {
  const former = await join('admin');
  const invited = await invite(former, 'member');
  await api.call('DELETE', `/v1/me/orgs/${orgId}`, { token: former.token });
  assert.equal((await accept(invited)).body.error.code, 'invitation_not_pending');
});

test('a demoted member keeps the pending invitations that the new role could send', async () => {
  const former = await join('owner');
  const [asOwner, asAdmin] = [await invite(former, 'owner'), await invite(former, 'admin')];
  await changeRole(former.userId, 'admin');
  assert.deepEqual(await pending(), [asAdmin.id]);
  assert.equal((await accept(asOwner)).body.error.code, 'invitation_not_pending');
  await changeRole(former.userId, 'member');
  assert.deepEqual(await pending(), []);
  assert.equal((await accept(asAdmin)).body.error.code, 'invitation_not_pending');
});
