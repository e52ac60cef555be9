// Repository credentials of a project: stored sealed, opened for clones only, and never returned or
// logged.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { REPO_CREDENTIAL_CHARACTERS } from '@berth/contract/route/limits.ts';
import type { Project, RepoCredentials } from '@berth/contract/orgs/projects.ts';
import { sql } from 'kysely';
import { pino } from 'pino';
import { newServices } from '../../../src/control-plane/control-plane.ts';
import { openServer } from '../../../src/control-plane/server.ts';
import { openRepoCredentials } from '../../../src/services/orgs/projects.ts';
import { UnsealError } from '../../../src/services/context/sealed.ts';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

/** Distinctive text, as the tests search for it everywhere. */
const TOKEN = 'ghp_WatchedForEverywhere0123456789';
const USERNAME = 'watched-for-user';

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());

const pathOf = (id: string): string => `/v1/orgs/${api.orgId}/projects/${id}`;
const post = (body: object): Promise<Answer> => api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body });
const make = async (repoCredentials?: RepoCredentials | null): Promise<Project> =>
  (await post({ repoCredentials })).body.project;
const patch = (id: string, body: object): Promise<Answer> => api.call('PATCH', pathOf(id), { body });
const open = (id: string): Promise<RepoCredentials | null> => openRepoCredentials(api.context, id);
const updatesOf = async (id: string) =>
  (
    await api.db
      .selectFrom('activity')
      .select('details')
      .where('project_id', '=', id)
      .where('kind', '=', 'project_updated')
      .orderBy('seq')
      .execute()
  ).map(({ details }) => details);

test('stored credentials open unchanged; an update replaces, null removes, absent keeps them', async () => {
  const made = await make({ username: USERNAME, token: TOKEN });
  assert.equal(made.hasRepoCredentials, true);
  assert.deepEqual(await open(made.id), { username: USERNAME, token: TOKEN });

  await patch(made.id, { name: 'renamed' });
  assert.deepEqual(await open(made.id), { username: USERNAME, token: TOKEN });
  const replaced = await patch(made.id, { repoCredentials: { token: 'another' } });
  assert.equal(replaced.body.project.hasRepoCredentials, true);
  assert.deepEqual(await open(made.id), { token: 'another' });
  const removed = await patch(made.id, { repoCredentials: null });
  assert.equal(removed.body.project.hasRepoCredentials, false);
  assert.equal(await open(made.id), null);
  const row = await api.db.selectFrom('project').selectAll().where('id', '=', made.id).executeTakeFirstOrThrow();
  assert.equal(row.repo_credentials_sealed, null);

  const onlyThem = { fields: ['repoCredentials'], changes: {} };
  assert.deepEqual(await updatesOf(made.id), [
    { fields: ['name'], changes: { name: { from: made.name, to: 'renamed' } } },
    onlyThem,
    onlyThem,
  ]);
});

test('a project created without credentials has none until an update sets them', async () => {
  for (const given of [null, undefined]) {
    const { id, hasRepoCredentials } = await make(given);
    assert.equal(hasRepoCredentials, false);
    assert.equal(await open(id), null);
    await patch(id, { repoCredentials: { token: 't' }, wakeOnUse: true });
    assert.deepEqual(await open(id), { token: 't' });
    assert.deepEqual(await updatesOf(id), [
      { fields: ['wakeOnUse', 'repoCredentials'], changes: { wakeOnUse: { from: false, to: true } } },
    ]);
  }
});

test('setting identical credentials is a normal change, so that it confirms no guess', async () => {
  const { id } = await make({ token: TOKEN });
  const sealed = async () =>
    (
      await api.db
        .selectFrom('project')
        .select('repo_credentials_sealed')
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
    ).repo_credentials_sealed;
  const first = await sealed();
  const right = await patch(id, { repoCredentials: { token: TOKEN } });
  const { rows } = await sql`select from project where id = ${id} and updated_at > created_at`.execute(api.db);
  assert.equal(rows.length, 1);
  assert.notDeepEqual(await sealed(), first);
  const wrong = await patch(id, { repoCredentials: { token: 'wrong' } });
  assert.deepEqual(wrong.body.project, { ...right.body.project, updatedAt: wrong.body.project.updatedAt });
  const [one, other] = await updatesOf(id);
  assert.deepEqual(one, other);
});

test('the longest credentials, in any script and with spaces, open unchanged', async () => {
  const long = {
    username: '名'.repeat(REPO_CREDENTIAL_CHARACTERS),
    token: ' "\\💡\u2028'.padEnd(REPO_CREDENTIAL_CHARACTERS, 'é'),
  };
  const { id } = await make(long);
  assert.deepEqual(await open(id), long);
});

test('sealed credentials do not open in another project, under another key, or altered', async () => {
  const from = await make({ token: TOKEN });
  const to = await make({ token: 'its own' });
  const cannot = (error: unknown): boolean =>
    error instanceof UnsealError &&
    error.message.startsWith('cannot decrypt a secret of prj_') &&
    !error.message.includes(TOKEN);
  await sql`
    update project
    set repo_credentials_sealed =
      (select repo_credentials_sealed from project where id = ${from.id})
    where id = ${to.id}`.execute(api.db);
  await assert.rejects(open(to.id), cannot);
  assert.deepEqual(await open(from.id), { token: TOKEN });
  await assert.rejects(openRepoCredentials({ db: api.db, secretKey: new SecretKey(randomBytes(32)) }, from.id), cannot);
  await sql`
    update project
    set repo_credentials_sealed = set_byte(repo_credentials_sealed, 20, get_byte(repo_credentials_sealed, 20) # 1)
    where id = ${from.id}`.execute(api.db);
  await assert.rejects(open(from.id), cannot);
  // Credentials that cannot be opened can still be replaced.
  assert.equal((await patch(from.id, { repoCredentials: { token: 'new' } })).status, 200);
  assert.deepEqual(await open(from.id), { token: 'new' });
});

test('deleting a project removes its credentials from its row', async () => {
  const { id } = await make({ token: TOKEN });
  const deleted = await api.call('DELETE', pathOf(id), { token: admin.token });
  assert.deepEqual([deleted.status, deleted.body.project.hasRepoCredentials], [200, false]);
  assert.equal(await open(id), null);
  const row = await api.db.selectFrom('project').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  assert.equal(row.repo_credentials_sealed, null);
});

/** Returns every row of every table as text, with bytes decoded. */
async function everythingStored(): Promise<string> {
  const { rows: tables } = await sql<{
    name: string;
  }>`select quote_ident(table_name) as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(api.db);
  assert.ok(tables.some(({ name }) => name === 'project') && tables.some(({ name }) => name === 'activity'));
  let all = '';
  for (const { name } of tables) {
    const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.raw(name)} t`.execute(api.db);
    all += rows.map(({ row }) => row).join('\n');
  }
  return all + all.replaceAll(/\\x([0-9a-f]+)/g, (_, hex: string) => Buffer.from(hex, 'hex').toString('latin1'));
}

test("no response, row or log line has the given credentials, whatever the call's outcome", async () => {
  let said = '';
  const log = pino({ level: 'trace' }, { write: (line: string) => void (said += line) });
  const app = await openServer(newServices({ ...api.context, log }, api.signIn));
  const call = async (
    method: 'POST' | 'PATCH' | 'GET' | 'DELETE',
    path: string,
    body?: object | string,
    token = api.token,
  ) => {
    const answer = await app.inject({
      method,
      url: path,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    said += JSON.stringify(answer.headers) + answer.body;
    return answer;
  };
  const projects = `/v1/orgs/${api.orgId}/projects`;
  const repoCredentials = { username: USERNAME, token: TOKEN };
  const { id } = (await call('POST', projects, { repoCredentials })).json<{ project: Project }>().project;
  await call('PATCH', pathOf(id), { repoCredentials, name: 'x' });
  for (const wrong of [
    TOKEN,
    [TOKEN],
    { token: [TOKEN] },
    { token: { [USERNAME]: TOKEN } },
    { username: TOKEN },
    { token: TOKEN, also: TOKEN },
  ])
    assert.equal((await call('PATCH', pathOf(id), { repoCredentials: wrong })).statusCode, 400);
  for (const text of [TOKEN, `{"repoCredentials":{"token":${TOKEN}}}`, `{"repoCredentials":{"token":"${TOKEN}"x}}`]) {
    assert.equal(
      (await call('PATCH', pathOf(id), text)).json<{ error: { code: string } }>().error.code,
      'invalid_json',
    );
  }
  await call('GET', pathOf(id));
  await call('GET', projects);
  // Internal errors are logged in full.
  await sql`alter table project add constraint no_more check (name <> 'forbidden')`.execute(api.db);
  assert.equal((await call('PATCH', pathOf(id), { repoCredentials, name: 'forbidden' })).statusCode, 500);
  await sql`alter table project drop constraint no_more`.execute(api.db);
  const stored = await everythingStored();
  assert.equal((await call('DELETE', pathOf(id), undefined, admin.token)).statusCode, 200);
  await app.close();

  assert.match(said, /no_more/, 'the fault was not logged');
  for (const [what, text] of Object.entries({ said, stored })) {
    for (const secret of [TOKEN, TOKEN.slice(0, 9), TOKEN.slice(-9), USERNAME])
      assert.equal(text.includes(secret), false, `${what}: ${secret}`);
    for (const form of ['base64', 'hex'] as const)
      assert.equal(text.includes(Buffer.from(TOKEN).toString(form).slice(0, 12)), false, `${what}: ${form}`);
  }
});

for (const [title, repoCredentials, message] of [
  ['that are the token itself', TOKEN, /^body\.repoCredentials must be an object, not a string$/],
  ['that are a list', [TOKEN], /^body\.repoCredentials must be an object, not an array$/],
  ['that are a number', 12_345_678, /^body\.repoCredentials must be an object, not a number$/],
  ['that are true', true, /^body\.repoCredentials must be an object, not a boolean$/],
  ['without a token', { username: USERNAME }, /^body\.repoCredentials\.token is required: a string$/],
  [
    'with a token that is a number',
    { token: 12_345_678 },
    /^body\.repoCredentials\.token must be a string, not a number$/,
  ],
  ['with a token that is null', { token: null }, /^body\.repoCredentials\.token must be a string, not null$/],
  [
    'with a token that is an object',
    { token: { value: TOKEN } },
    /^body\.repoCredentials\.token must be a string, not an object$/,
  ],
  ['with an empty token', { token: '' }, /^body\.repoCredentials\.token must be at least 1 character long, not 0$/],
  [
    'with an over-long token',
    { token: TOKEN.padEnd(8_193, 'x') },
    /^body\.repoCredentials\.token must be at most 8192 characters long, not 8193$/,
  ],
  [
    'with a line end in the token',
    { token: `${TOKEN}\n` },
    /^body\.repoCredentials\.token must not contain control characters or lone surrogates$/,
  ],
  [
    'with a NUL in the token',
    { token: `\0${TOKEN}` },
    /^body\.repoCredentials\.token must not contain control characters or lone surrogates$/,
  ],
  [
    'with a lone surrogate in the token',
    { token: `${TOKEN}\ud800` },
    /^body\.repoCredentials\.token must not contain control characters or lone /,
  ],
  [
    'with an empty user name',
    { username: '', token: TOKEN },
    /^body\.repoCredentials\.username must be at least 1 character long, not 0$/,
  ],
  [
    'with an over-long user name',
    { username: 'u'.repeat(8_193), token: TOKEN },
    /^body\.repoCredentials\.username must be at most 8192 characters/,
  ],
  [
    'with a colon in the user name',
    { username: `${USERNAME}:${TOKEN}`, token: TOKEN },
    /^body\.repoCredentials\.username must not contain colons, control characters or lone surrogates$/,
  ],
  [
    'with a user name that is a number',
    { username: 12_345_678, token: TOKEN },
    /^body\.repoCredentials\.username must be a string, not a number$/,
  ],
  [
    'with a user name that is null',
    { username: null, token: TOKEN },
    /^body\.repoCredentials\.username must be a string, not null$/,
  ],
  [
    'with a field of another name',
    { token: TOKEN, password: TOKEN },
    /^body\.repoCredentials\.password: unknown field; allowed: username, token$/,
  ],
] as const) {
  test(`repoCredentials ${title} are 400 at create and update with a message that omits them`, async () => {
    const { id } = await make({ token: 'stays' });
    for (const answer of [
      await post({ repoCredentials }),
      await patch(id, { repoCredentials, name: 'not changed either' }),
    ]) {
      assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
      assert.match(answer.body.error.message, message);
      for (const given of [TOKEN, USERNAME, '12345678']) assert.equal(answer.body.error.message.includes(given), false);
    }
    assert.deepEqual(await open(id), { token: 'stays' });
    assert.deepEqual(await updatesOf(id), []);
  });
}
