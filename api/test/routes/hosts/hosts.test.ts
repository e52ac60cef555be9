// Hosts and their sandboxes, as members of the operator's org read them.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { role } from '@berth/contract/route/permissions.ts';
import { writeCursor } from '../../../src/rules/page.ts';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { listHostsFree, upsertHost } from '../../../src/store/hosts/hosts.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { signInAs, startApi, type Answer, type TestApi } from '../../world/api.ts';
import { makeAgentTokenRow, makeDomainRow, makeKeyRow, makePerson } from '../../world/people-rows.ts';
import { StatementRecorder } from '../../world/statements.ts';

const HOSTS = '/v1/service/hosts';
const recorder = new StatementRecorder();
let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  await api.db.deleteFrom('sandbox').execute();
  await api.db.deleteFrom('host').execute();
});

const addHost = (id: string, amounts = { vcpu: 16, memoryMib: 32_768, diskGib: 500 }): Promise<void> =>
  upsertHost(api.db, {
    id,
    url: `unix:/nowhere/${id}`,
    startId: '1',
    driver: 'qemu',
    accelerator: 'tcg',
    capacity: amounts,
    reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
    pool: { ready: 2, target: 3 },
  });
const get = (path = '', token = api.token): Promise<Answer> => api.call('GET', `${HOSTS}${path}`, { token });

test('a host is listed with its capacity, the reservations of its sandboxes, and its pool', async () => {
  await addHost('hst_a');
  await addHost('hst_b');
  const on = { host_id: 'hst_a' };
  await api.makeSandbox('ready', on);
  await api.makeSandbox('running', {
    ...on,
    resizing: true,
    pending_vcpu: 4,
    pending_memory_gb: 4,
    pending_disk_gb: 10,
  });
  await api.makeSandbox('stopped', on);
  await api.makeSandbox('destroying', { ...on, destroy_holds: 'disk' });
  await api.makeSandbox('destroying', { ...on, destroy_holds: 'nothing' });
  await api.makeSandbox('failed', on);
  await api.makeSandbox('deleted', on);
  const { hosts, hasMore, nextCursor } = (await get()).body;
  assert.deepEqual([hasMore, nextCursor], [false, null]);
  const [{ lastSeenAt, createdAt, ...first }, second] = hosts;
  assert.ok(lastSeenAt >= createdAt);
  // Disk space is disk, memory and 1 GiB: 4 sandboxes of 10 + 1 + 1, one of them growing to 4 GiB.
  const reserved = { vcpu: 5, memoryMib: 5_120, diskGib: 51 };
  assert.deepEqual(first, {
    id: 'hst_a',
    state: 'available',
    accelerator: 'tcg',
    capacity: { vcpu: 16, memoryMib: 32_768, diskGib: 500 },
    reserved,
    free: { vcpu: 11, memoryMib: 27_648, diskGib: 449 },
    pool: { ready: 2, target: 3 },
    vms: 2,
    asleep: 2,
  });
  const [placement] = await listHostsFree(api.db, { hostId: 'hst_a' });
  assert.deepEqual([placement?.vcpu, placement?.memory_mib, placement?.disk_gib], [11, 27_648, 449]);
  assert.deepEqual([second.id, second.reserved, second.vms], ['hst_b', { vcpu: 0, memoryMib: 0, diskGib: 0 }, 0]);
});

test('a host that does not respond is listed as unavailable, with its last figures, and delays nothing', async () => {
  await addHost('hst_a');
  await api.makeSandbox('ready', { host_id: 'hst_a' });
  await sql`update host set last_seen_at = now() - interval '31 seconds', pool_ready = null`.execute(api.db);
  const looks = api.host.looks;
  const [host] = (await get()).body.hosts;
  assert.deepEqual([host.state, host.vms, host.pool], ['unavailable', 1, null]);
  assert.equal((await get('/hst_a')).body.host.state, 'unavailable');
  assert.equal(api.host.looks, looks, 'no host was called');
});

test('a host that shrank below its reservations has nothing free', async () => {
  await addHost('hst_a', { vcpu: 1, memoryMib: 1_024, diskGib: 10 });
  for (const status of ['ready', 'ready'] as const) await api.makeSandbox(status, { host_id: 'hst_a' });
  const [{ free, reserved }] = (await get()).body.hosts;
  assert.deepEqual([free, reserved.vcpu], [{ vcpu: 0, memoryMib: 0, diskGib: 0 }, 2]);
});

test('hosts and their sandboxes come in pages of a bounded size', async () => {
  for (const id of ['hst_a', 'hst_b', 'hst_c']) await addHost(id);
  const first = (await get('?limit=2')).body;
  const rest = (await get(`?limit=2&after=${first.nextCursor}`)).body;
  assert.deepEqual(
    [...first.hosts, ...rest.hosts].map(({ id }) => id),
    ['hst_a', 'hst_b', 'hst_c'],
  );
  assert.deepEqual([first.hasMore, rest.hasMore, rest.nextCursor], [true, false, null]);

  const made: string[] = [];
  for (let count = 0; count < 51; count += 1) made.unshift((await api.makeSandbox('ready', { host_id: 'hst_b' })).id);
  const page = (await get('/hst_b')).body;
  const next = (await get(`/hst_b?after=${page.nextCursor}`)).body;
  assert.deepEqual([page.sandboxes.length, page.host.vms, next.hasMore], [50, 51, false]);
  assert.deepEqual(
    [...page.sandboxes, ...next.sandboxes].map(({ id }) => id),
    made,
  );
  for (const path of ['?limit=0', '?limit=1001', '/hst_b?limit=x', '?after=x', `?after=${page.nextCursor}`])
    assert.equal((await get(path)).body.error.code, 'invalid_request', path);
  const foreign = writeCursor('hosts', { atMicroseconds: 1, tie: 'hst_a' });
  assert.equal((await get(`/hst_b?after=${foreign}`)).status, 400);
});

test('a host lists sandboxes of all orgs by id, without names and labels', async () => {
  await addHost('hst_a');
  const other = await api.makeOrg();
  const { id } = await api.makeSandbox('stopped', {
    host_id: 'hst_a',
    org_id: other.orgId,
    project_id: other.projectId,
    name: 'chosen-name',
    end_user_id: 'chosen-user',
    repository: 'chosen/repository',
    clone_status: 'cloned',
    metadata: JSON.stringify({ chosen: 'label' }),
  });
  const answer = (await get('/hst_a')).body;
  const [{ statusChangedAt, createdAt, ...sandbox }] = answer.sandboxes;
  assert.ok(statusChangedAt >= createdAt);
  const size = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
  assert.deepEqual(sandbox, { id, orgId: other.orgId, status: 'stopped', size });
  assert.doesNotMatch(JSON.stringify(answer), /chosen|Other/);
});

test("only owners and admins of the operator's org read hosts; refusals read no host", async () => {
  await addHost('hst_a');
  const other = await api.makeOrg();
  const refused: [string, string, string][] = [
    ["another org's owner", (await signInAs(api.db, other.userId)).token, 'org_access_denied'],
    ["another org's key", other.token, 'org_access_denied'],
    [
      "an owner's key without the scope",
      (await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId, scopes: ['sandbox.read'] })).token,
      'permission_denied',
    ],
    [
      'a revoked key',
      (await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId, ending: 'revoked' })).token,
      'unauthenticated',
    ],
    ['an agent token', (await makeAgentTokenRow(api.db, { userId: api.userId })).token, 'auth_kind_not_allowed'],
  ];
  // An owner of both orgs, with a key for the other one.
  const both = await makePerson(api.db, { [api.orgId]: 'owner', [other.orgId]: 'owner' });
  const key = await makeKeyRow(api.db, { orgId: other.orgId, createdBy: both.userId, scopes: ['hosts.read'] });
  refused.push(["the other org's key of an owner of both", key.token, 'org_access_denied']);
  const allowed = [(await signInAs(api.db, both.userId)).token, api.token];
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    if (name === 'owner' || name === 'admin') allowed.push(token);
    else refused.push([`a ${name}`, token, 'permission_denied']);
  }
  for (const [who, token, code] of refused) {
    for (const path of ['', '/hst_a', '/hst_missing', '?limit=x']) {
      const { result, statements } = await recorder.during(() => get(path, token));
      assert.equal(result.body.error.code, code, `${who} ${path}`);
      assert.deepEqual(
        statements.filter((text) => /from "?host"?\b/.test(text)),
        [],
        `${who} ${path}`,
      );
    }
  }
  for (const token of allowed)
    assert.deepEqual([(await get('', token)).status, (await get('/hst_a', token)).status], [200, 200]);
  assert.equal((await get('/hst_missing')).body.error.code, 'host_not_found');
});

test("my orgs list the permission in the operator's org alone", async () => {
  const { userId } = await makePerson(api.db, { [api.orgId]: 'admin' });
  const { token } = await signInAs(api.db, userId);
  const { body } = await api.call('POST', '/v1/orgs', { token, body: { name: 'Mine' } });
  assert.ok(!body.org.permissions.includes('hosts.read'));
  const { orgs } = (await api.call('GET', '/v1/me/orgs', { token })).body;
  const reading = orgs.filter(({ permissions }: { permissions: string[] }) => permissions.includes('hosts.read'));
  assert.deepEqual([orgs.length, reading.map(({ id }: { id: string }) => id)], [2, [api.orgId]]);
});

test('a demotion closes the hosts with the next request', async () => {
  const person = await makePerson(api.db, { [api.orgId]: 'admin' });
  const { token } = await signInAs(api.db, person.userId);
  assert.equal((await get('', token)).status, 200);
  await api.db.updateTable('membership').set({ role: 'member' }).where('user_id', '=', person.userId).execute();
  assert.equal((await get('', token)).body.error.code, 'permission_denied');
});

test("the operator's org may require single sign-on for its hosts", async () => {
  const { userId } = await makePerson(api.db, { [api.orgId]: 'admin' });
  const { domain } = await makeDomainRow(api.db, { orgId: api.orgId, state: 'proven' });
  const email = `${userId}@${domain}`;
  await api.db.updateTable('user').set({ email }).where('id', '=', userId).execute();
  const { token, loginId } = await signInAs(api.db, userId);
  const require = (sso_required: boolean): Promise<unknown> =>
    api.db.updateTable('org').set({ sso_required }).where('id', '=', api.orgId).execute();
  await require(true);
  try {
    assert.equal((await get('', token)).body.error.code, 'sso_required');
    await api.db.updateTable('session').set({ viaSso: true }).where('id', '=', loginId).execute();
    assert.equal((await get('', token)).status, 200);
  } finally {
    await require(false);
  }
});

test("without an operator's org nobody reads hosts, including the owner of the oldest org", async () => {
  const stranger = await makePerson(api.db);
  await insertMembership(api.db, { orgId: (await api.makeOrg()).orgId, userId: stranger.userId, role: 'owner' });
  const { token } = await signInAs(api.db, stranger.userId);
  await api.db.updateTable('org').set({ is_operator: false }).execute();
  try {
    for (const held of [api.token, token]) assert.equal((await get('', held)).body.error.code, 'org_access_denied');
  } finally {
    await api.db.updateTable('org').set({ is_operator: true }).where('id', '=', api.orgId).execute();
  }
  const second = api.db.insertInto('org').values({ id: newId('org'), name: 'Second', is_operator: true });
  await assert.rejects(second.execute(), /org_operator/);
});
