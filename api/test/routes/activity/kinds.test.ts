// Kinds of entries on every route of the feed: known ones, and those of another version.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { activityActorKind, activitySubjectKind, type ActivityEntry } from '@berth/contract/activity/feed.ts';
import { activityKind } from '@berth/contract/route/activity-kinds.ts';
import { sql } from 'kysely';
import { insertActivities, type ActivityActor } from '../../../src/store/activity/activity.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { startApi, type TestApi, type TestOrg } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const actors: { readonly [kind in ActivityActor['kind']]: ActivityActor } = {
  session: { kind: 'session', id: newId('user'), userId: newId('user'), requestId: null },
  api_key: { kind: 'api_key', id: newId('apiKey'), userId: newId('user'), requestId: null },
  agent_token: { kind: 'agent_token', id: newId('agentToken'), userId: newId('user'), requestId: null },
  file_link: { kind: 'file_link', id: newId('fileLink'), userId: newId('user'), requestId: null },
  operator: { kind: 'operator', id: null, userId: null },
  system: { kind: 'system', id: null, userId: null },
};

interface Kinds {
  kind: string;
  subject: { kind: string };
  actor: { kind: string };
}
const kindsOf = ({ kind, subject, actor }: Kinds): string[] => [kind, subject.kind, actor.kind];

/** The org's entries from each route, oldest first, without those of its creation. */
async function readEverywhere(org: TestOrg, write: () => Promise<unknown>): Promise<ActivityEntry[][]> {
  const path = `/v1/orgs/${org.orgId}/activity`;
  const { token } = org;
  await sql`delete from activity where org_id = ${org.orgId}`.execute(api.db);
  const start = await api.call('GET', `${path}/follow`, { token });
  await write();
  const followed = await api.call('GET', `${path}/follow?since=${start.body.cursor}&limit=200`, { token });
  await sql`update activity set at = at - interval '1 hour' where org_id = ${org.orgId}`.execute(api.db);
  const listed = await api.call('GET', `${path}?limit=200`, { token });
  const exported = await api.call('GET', `${path}/export`, { token });
  for (const { status, body } of [followed, listed, exported]) assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([followed.body.hasMore, listed.body.hasMore], [false, false]);
  return [followed.body.activity, listed.body.activity.toReversed(), exported.body];
}

test('every kind of event, subject and actor that can be written is in the feed, its export and since', async () => {
  const org = await api.makeOrg();
  const base = { orgId: org.orgId, actor: actors.system, kind: 'sandbox_running' } as const;
  const subject = { kind: 'org', id: org.orgId } as const;
  const entries = [
    ...activityKind.options.map((kind) => ({ ...base, subject, kind })),
    ...activitySubjectKind.options.map((kind) => ({ ...base, subject: { kind, id: newId('sandbox') } })),
    ...activityActorKind.options.map((kind) => ({ ...base, subject, actor: actors[kind] })),
  ];
  for (const found of await readEverywhere(org, () => insertActivities(api.db, entries)))
    assert.deepEqual(found.map(kindsOf), entries.map(kindsOf));
});

test('an entry of another version, of unknown kinds, hides no other in the feed, its export and since', async () => {
  const org = await api.makeOrg();
  const known = { orgId: org.orgId, actor: actors.system, kind: 'sandbox_running' } as const;
  const write = async (): Promise<void> => {
    await insertActivities(api.db, [known]);
    await sql`
      insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id)
      values (${newId('activity')}, ${org.orgId}, 'robot', 'sandbox_teleported', 'wormhole', 'wrm_1')`.execute(api.db);
    await insertActivities(api.db, [known]);
  };
  for (const found of await readEverywhere(org, write)) {
    assert.deepEqual(found.map(kindsOf), [
      ['sandbox_running', 'org', 'system'],
      ['sandbox_teleported', 'wormhole', 'robot'],
      ['sandbox_running', 'org', 'system'],
    ]);
  }
});
