// Each documented example is sent to a real service with matching rows and gets the documented
// response.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  EXAMPLE_IDS,
  exampleApiKey,
  exampleChanges,
  exampleFile,
  exampleFolder,
  exampleStat,
  exampleIdentity,
  exampleOrg,
  exampleProject,
  exampleSandbox,
} from '@berth/contract/route/examples.ts';
import { getDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { signInAs, startApi, type TestApi } from '../world/api.ts';
import { idleMetrics } from '../world/host-stand-in.ts';
import { makePerson, type Person } from '../world/people-rows.ts';
import { filledPath, prepareRequest } from './route-requests.ts';

let api: TestApi;
let owner: Person;
let token: string;
before(async () => {
  api = await startApi({ durable: false });
  const folder = exampleFolder.entries.map(
    ({ label, kind, size, modifiedAt, mode }) =>
      `${kind[0]}${label}\0m${size} ${Date.parse(modifiedAt) / 1_000} ${mode}`,
  );
  api.front.exec = () =>
    Promise.resolve({ exitCode: 0, stdout: 'hello\n', stderr: '', truncated: false, timedOut: false });
  api.front.metrics = () => idleMetrics();
  api.front.console = () => ({ console: getDiagnostics.example.answer.diagnostics.console });
  api.front.files = ({ verb, body }) => {
    if (verb === 'write') return { size: body.length };
    if (verb === 'stat') {
      const { path: _path, modifiedAt, ...facts } = exampleStat;
      return { ...facts, mtimeSeconds: Date.parse(modifiedAt) / 1_000 };
    }
    if (verb === 'watch') {
      const { path: _path, ...changes } = exampleChanges;
      return changes;
    }
    if (verb !== 'list' && verb !== 'read') return {};
    return Buffer.from(verb === 'list' ? listingOf(folder) : exampleFile.content);
  };
  owner = await makePerson(api.db, { [api.orgId]: 'owner' });
  await api.db.updateTable('org').set({ name: exampleOrg.name }).execute();
  const { displayName, email } = exampleIdentity;
  await api.db.updateTable('user').set({ name: displayName, email }).where('id', '=', owner.userId).execute();
  await api.makeSandbox('ready');
  ({ token } = await signInAs(api.db, owner.userId));
});
after(() => api.close());

/** Formats a listing like a host: entries, then its end. */
function listingOf(entries: readonly string[]): string {
  return `D\0${entries.map((entry) => `${entry}\0`).join('')}EC`;
}

/** Sets up the rows of an example, except for the subject of the response. */
async function makeAsInExample({ projectId }: Readonly<Record<string, string>>): Promise<void> {
  const { name, endUserId, metadata } = exampleSandbox;
  await api.db
    .updateTable('sandbox')
    .set({ name, end_user_id: endUserId, metadata: JSON.stringify(metadata) })
    .execute();
  await api.db.updateTable('sandbox').set({ ttl_seconds: 3_600 }).where('mode', '=', 'ephemeral').execute();
  const { defaultIdleMinutes, wakeOnUse, useCase, defaultProfile } = exampleProject;
  const projects = api.db.updateTable('project').set({
    name: exampleProject.name,
    use_case: useCase,
    default_profile: defaultProfile as 'agent-standard',
    default_idle_minutes: defaultIdleMinutes,
    wake_on_use: wakeOnUse,
  });
  await projects.where('id', '=', projectId ?? api.projectId).execute();
  const expires_at = new Date(Date.now() + 86_400_000);
  await api.db
    .updateTable('api_key')
    .set({ name: exampleApiKey.name, scopes: exampleApiKey.scopes, expires_at })
    .execute();
}

/** Replaces the example's ids by real ones. */
function withRealIds(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value).replaceAll(EXAMPLE_IDS.projectId, api.projectId).replaceAll(EXAMPLE_IDS.orgId, api.orgId),
  );
}

/** Fields that differ between runs, and results of transitions, which nothing carries out here. */
const NOT_COMPARED: ReadonlySet<string> = new Set([
  'status',
  'url',
  'version',
  'publicUrl',
  'previewUrl',
  'features',
  'wakesFrom',
  'enforced',
  'lastWake',
  'deletedAt',
  'pendingAllocation',
  'allocated_vcpu',
  'allocated_memory_gb',
]);

function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [comparable(value[0])];
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([key]) => !NOT_COMPARED.has(key));
    return Object.fromEntries(entries.map(([key, one]) => [key, comparable(one)]));
  }
  if (typeof value !== 'string') return value;
  if (/^\d{4}-\d\d-\d\dT/.test(value)) return 'a time';
  return /^([a-z]{3}_(?=[a-z0-9]{24}$)|brt_)/.exec(value)?.[0] ?? value;
}

for (const route of ROUTES) {
  const { example } = route;
  if (example === undefined) continue;
  test(`${route.name}: the documented example gets the documented response`, async () => {
    const prepared = await prepareRequest(route, { api, org: api, caller: owner });
    await makeAsInExample(prepared.params);
    const [path = ''] = filledPath(route, prepared.params).split('?');
    const query = new URLSearchParams(
      Object.entries(example.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const answer = await api.call(route.method, query.size === 0 ? path : `${path}?${query.toString()}`, {
      token,
      headers: { prefer: 'respond-async' },
      ...(example.body === undefined ? {} : { body: withRealIds(example.body) }),
    });
    assert.equal(answer.status, route.response.status, JSON.stringify(answer.body));
    assert.deepEqual(comparable(answer.body), comparable(example.answer));
  });
}
