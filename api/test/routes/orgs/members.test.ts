// Members: list, roles, removal, leaving, the last owner, and immediate effect on every replica.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { ROLE_PERMISSIONS, role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import type { FastifyInstance } from 'fastify';
import { newServices } from '../../../src/control-plane/control-plane.ts';
import { openServer } from '../../../src/control-plane/server.ts';
import { listen } from '../../../src/http/app.ts';
import { mintApiKey } from '../../../src/services/access/api-keys.ts';
import { insertMembership, insertUser } from '../../../src/store/people/identity.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { signInAs, startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { lockWaiters } from '../../world/lock-waiters.ts';

let api: TestApi;
let second: { app: FastifyInstance; url: string };
before(async () => {
  api = await startApi({ durable: false });
  const app = await openServer(newServices(api.context, api.signIn));
  second = { app, url: `http://127.0.0.1:${(await listen(app, '127.0.0.1', 0)).port}` };
});
after(async () => {
  second.app.server.closeAllConnections();
  await second.app.close();
  await api.close();
});

interface Person extends TestSession {
  role: Role;
}

/** New org for each test, with a single owner. */
let orgId: string;
let owner: Person;
beforeEach(async () => {
  const session = await api.makeSession({ role: null });
  owner = { ...session, role: 'owner' };
  orgId = (await api.call('POST', '/v1/orgs', { token: session.token, body: { name: 'Tested' } })).body.org.id;
});

async function join(role: Role): Promise<Person> {
  const session = await api.makeSession({ role: null });
  await insertMembership(api.db, { orgId, userId: session.userId, role });
  return { ...session, role };
}

const changeRole = (by: Person, userId: string, role: string): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${orgId}/members/${userId}`, { token: by.token, body: { role } });
const remove = (by: Person, userId: string): Promise<Answer> =>
  api.call('DELETE', `/v1/orgs/${orgId}/members/${userId}`, { token: by.token });
const leave = (who: Person): Promise<Answer> => api.call('DELETE', `/v1/me/orgs/${orgId}`, { token: who.token });
const rolesNow = async (): Promise<Record<string, string>> => {
  const rows = await api.db.selectFrom('membership').select(['user_id', 'role']).where('org_id', '=', orgId).execute();
  return Object.fromEntries(rows.map((row) => [row.user_id, row.role]));
};
const feed = async (): Promise<unknown[]> => {
  const rows = await api.db.selectFrom('activity').selectAll().where('org_id', '=', orgId).orderBy('seq').execute();
  return rows
    .filter((row) => row.kind.startsWith('member_'))
    .map((row) => [row.kind, row.actor_kind, row.actor_user_id, row.subject_kind, row.subject_id, row.details]);
};

test('members are listed with identity and join date, oldest member first', async () => {
  const [one, two] = [await join('viewer'), await join('admin')];
  const { members } = (await api.call('GET', `/v1/orgs/${orgId}/members`, { token: two.token })).body;
  assert.deepEqual(
    members.map((member: { userId: string; email: string; role: string }) => [
      member.userId,
      member.email,
      member.role,
    ]),
    [owner, one, two].map((person) => [person.userId, person.email, person.role]),
  );
});

test('a missing name or address of an account is listed as null', async () => {
  const userId = newId('user');
  await insertUser(api.db, { id: userId, name: '', email: '' });
  await insertMembership(api.db, { orgId, userId, role: 'viewer' });
  const { members } = (await api.call('GET', `/v1/orgs/${orgId}/members`, { token: owner.token })).body;
  assert.deepEqual([members[1].email, members[1].displayName], [null, null]);
  await api.db.deleteFrom('user').where('id', '=', userId).execute();
});

test('members can be paged, each once, even if they joined at the same instant', async () => {
  const people = [owner];
  for (let index = 0; index < 6; index += 1) people.push(await join('viewer'));
  await api.db.updateTable('membership').set({ created_at: new Date() }).where('org_id', '=', orgId).execute();
  const path = `/v1/orgs/${orgId}/members`;
  const whole = (await api.call('GET', path, { token: owner.token })).body;
  assert.deepEqual(Object.keys(whole), ['members']);
  const read: string[] = [];
  let after = '';
  for (let page = 1; ; page += 1) {
    const { members, nextCursor, hasMore } = (await api.call('GET', `${path}?limit=3${after}`, { token: owner.token }))
      .body;
    read.push(...members.map((member: { userId: string }) => member.userId));
    assert.equal(hasMore, page < 3);
    if (nextCursor === null) break;
    after = `&after=${nextCursor}`;
  }
  assert.deepEqual(
    read,
    whole.members.map((member: { userId: string }) => member.userId),
  );
  assert.deepEqual(read.toSorted(), people.map((person) => person.userId).toSorted());
  const foreign = await api.call('GET', `${path}?after=bm9uc2Vuc2U`, { token: owner.token });
  assert.equal(foreign.body.error.code, 'invalid_request');
});

test('every role and API keys can list members', async () => {
  for (const role of roleName.options) {
    const person = await join(role);
    assert.equal((await api.call('GET', `/v1/orgs/${orgId}/members`, { token: person.token })).status, 200);
  }
  assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/members`)).status, 200);
});

test('a role change is returned and recorded in the feed with both roles', async () => {
  const person = await join('viewer');
  const changed = await changeRole(owner, person.userId, 'operator');
  assert.equal(changed.status, 200);
  assert.deepEqual([changed.body.member.userId, changed.body.member.role], [person.userId, 'operator']);
  assert.equal((await rolesNow())[person.userId], 'operator');
  assert.deepEqual(await feed(), [
    [
      'member_role_changed',
      'session',
      owner.userId,
      'user',
      person.userId,
      { userId: person.userId, from: 'viewer', to: 'operator' },
    ],
  ]);
});

test('setting the current role is returned and leaves no trace', async () => {
  const person = await join('viewer');
  assert.equal((await changeRole(owner, person.userId, 'viewer')).status, 200);
  assert.equal((await changeRole(owner, owner.userId, 'owner')).status, 200);
  assert.deepEqual(await feed(), []);
});

test('an unknown role is 400 and lists the known roles', async () => {
  const answer = await changeRole(owner, owner.userId, 'king');
  assert.equal(answer.status, 400);
  assert.match(
    answer.body.error.message,
    /^body\.role must be one of "owner", "admin", "member", "operator", "viewer", not "king"$/,
  );
});

test('a removal returns the former member and is recorded in the feed', async () => {
  const person = await join('operator');
  const removed = await remove(owner, person.userId);
  assert.equal(removed.status, 200);
  assert.deepEqual([removed.body.member.userId, removed.body.member.role], [person.userId, 'operator']);
  assert.deepEqual(Object.keys(await rolesNow()), [owner.userId]);
  assert.deepEqual(await feed(), [
    [
      'member_removed',
      'session',
      owner.userId,
      'user',
      person.userId,
      { userId: person.userId, role: 'operator', left: false },
    ],
  ]);
  const again = await remove(owner, person.userId);
  assert.deepEqual([again.status, again.body.error.code], [404, 'member_not_found']);
});

test('a member of any role can leave, recorded in the feed; a second leave is 403', async () => {
  for (const role of roleName.options) {
    const person = await join(role);
    const left = await leave(person);
    assert.equal(left.status, 200);
    assert.deepEqual([left.body.member.userId, left.body.member.role], [person.userId, role]);
    assert.deepEqual((await feed()).at(-1), [
      'member_removed',
      'session',
      person.userId,
      'user',
      person.userId,
      { userId: person.userId, role, left: true },
    ]);
    const again = await leave(person);
    assert.deepEqual([again.status, again.body.error.code], [403, 'org_access_denied']);
  }
});

for (const [what, userId] of [
  ['nobody', 'usr_aaaaaaaaaaaaaaaaaaaaaaaa'],
  ['no user at all', '%00'],
  ['an over-long one', 'u'.repeat(200)],
] as const) {
  test(`changing or removing ${what} is 404 member_not_found`, async () => {
    for (const answer of [await changeRole(owner, userId, 'viewer'), await remove(owner, userId)])
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'member_not_found']);
  });
}

test("a member of another org is not found, and this org's owner cannot change them there", async () => {
  const other = await api.makeOrg();
  assert.equal((await remove(owner, other.userId)).body.error.code, 'member_not_found');
  const there = await api.call('DELETE', `/v1/orgs/${other.orgId}/members/${other.userId}`, { token: owner.token });
  assert.deepEqual([there.status, there.body.error.code], [403, 'org_access_denied']);
});

for (const by of roleName.options) {
  for (const target of roleName.options) {
    test(`${by} can change and remove ${target} exactly as the permissions allow`, async () => {
      const caller = await join(by);
      const mayAll = ROLE_PERMISSIONS[by].has('org.members.manage');
      const mayOwners = ROLE_PERMISSIONS[by].has('org.owners.manage');
      for (const to of roleName.options) {
        const person = await join(target);
        const may = target === 'owner' || to === 'owner' ? mayOwners : mayAll;
        const changed = await changeRole(caller, person.userId, to);
        assert.equal(changed.status, may ? 200 : 403, `to ${to}`);
        if (!may) assert.match(changed.body.error.message, mayAll ? /org\.owners\.manage/ : /org\.members\.manage/);
        assert.equal((await rolesNow())[person.userId], may ? to : target);
      }
      const person = await join(target);
      const may = target === 'owner' ? mayOwners : mayAll;
      const removed = await remove(caller, person.userId);
      assert.equal(removed.status, may ? 200 : 403);
      assert.equal((await rolesNow())[person.userId], may ? undefined : target);
    });
  }
}

test('the last owner cannot be demoted or removed and cannot leave; nothing changes', async () => {
  await join('admin');
  for (const answer of [
    await changeRole(owner, owner.userId, 'admin'),
    await remove(owner, owner.userId),
    await leave(owner),
  ])
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'last_owner']);

  assert.equal((await rolesNow())[owner.userId], 'owner');
  assert.deepEqual(await feed(), []);
});

test('with a second owner the first can be demoted, and is restored only by the second', async () => {
  const other = await join('owner');
  assert.equal((await changeRole(owner, owner.userId, 'admin')).status, 200);
  assert.equal((await changeRole(owner, owner.userId, 'owner')).status, 403);
  assert.equal((await leave(other)).body.error.code, 'last_owner');
  assert.equal((await changeRole(other, owner.userId, 'owner')).status, 200);
  assert.equal((await leave(other)).status, 200);
});

for (const [what, act] of [
  ['leave', leave],
  ['remove themselves', (who: Person) => remove(who, who.userId)],
  ['demote themselves', (who: Person) => changeRole(who, who.userId, 'viewer')],
] as const) {
  test(`of many owners who concurrently ${what} exactly one stays an owner`, async () => {
    const owners = [owner];
    for (let index = 0; index < 7; index += 1) owners.push(await join('owner'));
    const answers = await Promise.all(owners.map(act));
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [...owners.slice(1).map(() => 200), 409],
    );
    assert.equal(Object.values(await rolesNow()).filter((role) => role === 'owner').length, 1);
    assert.equal((await feed()).length, owners.length - 1);
  });
}

test('when two owners remove each other at once, exactly one stays', async () => {
  for (let round = 0; round < 5; round += 1) {
    const [one, two] = [await join('owner'), await join('owner')];
    const answers = await Promise.all([remove(one, two.userId), remove(two, one.userId)]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 403],
    );
    const left = Object.keys(await rolesNow()).filter((userId) => [one.userId, two.userId].includes(userId));
    assert.equal(left.length, 1);
  }
});

/** Status of a call by the person's token or key at the given instance. */
async function reach(url: string, token: string, path: string, method = 'GET'): Promise<number> {
  const response = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } });
  await response.body?.cancel();
  return response.status;
}

test('a removal revokes access of member and API keys at the next request on every instance', async () => {
  const person = await join('admin');
  const key = await mintApiKey(api.db, {
    orgId,
    createdBy: person.userId,
    name: 'theirs',
    scopes: null,
    expiresInDays: null,
  });
  const tokens = [person.token, key.token, (await signInAs(api.db, person.userId)).token];
  const path = `/v1/orgs/${orgId}/sandboxes`;
  const ask = async (): Promise<number[]> => {
    const statuses: number[] = [];
    for (const url of [api.url, second.url]) for (const token of tokens) statuses.push(await reach(url, token, path));
    return statuses;
  };
  assert.deepEqual(new Set(await ask()), new Set([200]));
  assert.equal((await remove(owner, person.userId)).status, 200);
  assert.deepEqual(new Set(await ask()), new Set([403]));
  // The sign-in session stays: the person may be in other orgs.
  assert.equal(await reach(second.url, person.token, '/v1/me'), 200);
});

test('a demotion limits member and API keys at the next request on every instance', async () => {
  const person = await join('member');
  const key = await mintApiKey(api.db, {
    orgId,
    createdBy: person.userId,
    name: 'theirs',
    scopes: null,
    expiresInDays: null,
  });
  const path = `/v1/orgs/${orgId}/projects`;
  const make = (url: string, token: string): Promise<number> =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{}',
    }).then((response) => response.status);
  for (const url of [api.url, second.url])
    for (const token of [person.token, key.token]) assert.equal(await make(url, token), 201);
  assert.equal((await changeRole(owner, person.userId, 'viewer')).status, 200);
  for (const url of [api.url, second.url]) {
    for (const token of [person.token, key.token]) {
      assert.equal(await make(url, token), 403);
      assert.equal(await reach(url, token, path), 200);
    }
  }
});

test("a request that waited during its caller's demotion is checked with the new role", async () => {
  const admin = await join('admin');
  const target = await join('viewer');
  // Holds the lock of all membership changes of this org.
  const locked = Promise.withResolvers<void>();
  const demote = Promise.withResolvers<void>();
  const holding = api.db.transaction().execute(async (trx) => {
    await trx.selectFrom('org').select('id').where('id', '=', orgId).forNoKeyUpdate().execute();
    locked.resolve();
    await demote.promise;
    await trx.updateTable('membership').set({ role: 'viewer' }).where('user_id', '=', admin.userId).execute();
  });
  await locked.promise;
  const waiting = remove(admin, target.userId);
  await untilTrue('the removal waits', async () => {
    return (await lockWaiters(api.db)) > 0;
  });
  demote.resolve();
  await holding;
  const answer = await waiting;
  assert.deepEqual([answer.status, answer.body.error.code], [403, 'permission_denied']);
  assert.equal((await rolesNow())[target.userId], 'viewer');
});
