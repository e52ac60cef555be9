// Rotation of refresh tokens: each is spent by its use, a lost response can be repeated within the
// grace period, and a later reuse ends the sign-in.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { REFRESH_GRACE_SECONDS } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { startApi, type TestApi } from '../world/api.ts';
import {
  DEVICE_GRANT,
  makePerson,
  newCaller,
  post,
  startInstance,
  statusOfMe,
  type AuthAnswer,
  type Instance,
} from './client.ts';

let api: TestApi;
let second: Instance;
before(async () => {
  api = await startApi({ durable: false });
  second = await startInstance(api);
});
after(async () => {
  await second.close();
  await api.close();
});

const refresh = async (token: string, url = api.url): Promise<AuthAnswer> =>
  await post(url, '/auth/token', { grant_type: 'refresh_token', refresh_token: token });

interface Device {
  userId: string;
  loginId: string;
  access: string;
  refreshToken: string;
}

/** A device signed in by a new person, who belongs to the first org. */
async function signedInDevice(): Promise<Device> {
  const { userId } = await makePerson(api.signIn);
  await api.db.insertInto('membership').values({ org_id: api.orgId, user_id: userId, role: 'viewer' }).execute();
  const { deviceCode, userCode } = await api.signIn.requestDevice('berth-cli', newCaller());
  await api.signIn.decideDevice(userCode, userId, 'approve');
  const fields = { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: 'berth-cli' };
  const { status, body } = await post(api.url, '/auth/token', fields);
  assert.equal(status, 200, JSON.stringify(body));
  const { id } = await api.db.selectFrom('session').select('id').where('userId', '=', userId).executeTakeFirstOrThrow();
  return { userId, loginId: id, access: body.access_token, refreshToken: body.refresh_token };
}

/** Makes the latest refresh older, by default than the grace period. */
async function passTime(loginId: string, seconds = REFRESH_GRACE_SECONDS): Promise<void> {
  await sql`update session set "refreshedAt" = "refreshedAt" - ${seconds} * interval '1 second'
    where id = ${loginId}`.execute(api.db);
}

const liveLogins = async (userId: string): Promise<number> =>
  (await api.db.selectFrom('session').select('id').where('userId', '=', userId).execute()).length;
const refused = ({ status, body }: AuthAnswer): void => assert.deepEqual([status, body.error], [400, 'invalid_grant']);

test('each refresh returns a new refresh token; earlier access tokens stay valid', async () => {
  const device = await signedInDevice();
  const seen = new Set([device.refreshToken]);
  const access = [device.access];
  let current = device.refreshToken;
  for (const url of [api.url, second.url, api.url]) {
    const { status, body } = await refresh(current, url);
    assert.equal(status, 200);
    assert.match(body.refresh_token, /^[\w.-]+$/);
    current = body.refresh_token;
    seen.add(current);
    access.push(body.access_token);
  }
  assert.equal(seen.size, 4);
  for (const token of access) assert.equal(await statusOfMe(second.url, token), 200);
});

test('a spent refresh token ends the sign-in after the grace period and records it in the feed', async () => {
  const device = await signedInDevice();
  const { body: next } = await refresh(device.refreshToken);
  await passTime(device.loginId);
  refused(await refresh(device.refreshToken, second.url));
  assert.equal(await liveLogins(device.userId), 0);
  for (const token of [device.access, next.access_token]) assert.equal(await statusOfMe(api.url, token), 401);
  refused(await refresh(next.refresh_token));
  const rows = await api.db.selectFrom('activity').selectAll().where('subject_id', '=', device.loginId).execute();
  assert.deepEqual(
    rows.map(({ kind, actor_kind, details }) => [kind, actor_kind, details]),
    [['sign_in_ended', 'system', { count: 1, reason: 'a refresh token was used again after it was spent' }]],
  );
});

test('a refresh token of two generations ago ends the sign-in even within the grace period', async () => {
  const device = await signedInDevice();
  const { body: next } = await refresh(device.refreshToken);
  await refresh(next.refresh_token);
  refused(await refresh(device.refreshToken));
  assert.equal(await liveLogins(device.userId), 0);
});

test('a client that lost the response gets the same refresh token within the grace period', async () => {
  const device = await signedInDevice();
  const { body: lost } = await refresh(device.refreshToken);
  const { status, body: repeated } = await refresh(device.refreshToken, second.url);
  assert.deepEqual([status, repeated.refresh_token], [200, lost.refresh_token]);
  assert.equal(await statusOfMe(api.url, repeated.access_token), 200);
  assert.equal((await refresh(repeated.refresh_token)).status, 200);
});

test('a repeated use within the grace period does not extend it', async () => {
  const device = await signedInDevice();
  await refresh(device.refreshToken);
  await passTime(device.loginId, 50);
  assert.equal((await refresh(device.refreshToken)).status, 200);
  await passTime(device.loginId, 10);
  refused(await refresh(device.refreshToken));
});

test('ten concurrent refreshes on two instances get one successor', async () => {
  const device = await signedInDevice();
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, at) => refresh(device.refreshToken, at % 2 === 0 ? api.url : second.url)),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const successors = new Set<string>(answers.map(({ body }) => body.refresh_token));
  assert.equal(successors.size, 1);
  for (const successor of successors) assert.equal((await refresh(successor)).status, 200);
});

test('concurrent reuse after the grace period ends the sign-in once', async () => {
  const device = await signedInDevice();
  await refresh(device.refreshToken);
  await passTime(device.loginId);
  for (const answer of await Promise.all([1, 2, 3, 4].map(() => refresh(device.refreshToken)))) refused(answer);
  const rows = await api.db.selectFrom('activity').select('id').where('subject_id', '=', device.loginId).execute();
  assert.equal(rows.length, 1);
});

test('a refresh that fails before its commit spends nothing', async () => {
  const device = await signedInDevice();
  await sql`alter table session_token rename to session_token_away`.execute(api.db);
  const failed = await refresh(device.refreshToken);
  await sql`alter table session_token_away rename to session_token`.execute(api.db);
  assert.equal(failed.status, 500);
  const { refreshGeneration } = await api.db
    .selectFrom('session')
    .select('refreshGeneration')
    .where('id', '=', device.loginId)
    .executeTakeFirstOrThrow();
  assert.equal(refreshGeneration, 0);
  assert.equal((await refresh(device.refreshToken)).status, 200);
});

test('a forged generation is refused and ends nothing', async () => {
  const device = await signedInDevice();
  const { body: next } = await refresh(device.refreshToken);
  await passTime(device.loginId);
  const [token, generation, mac] = next.refresh_token.split('.');
  const [, , spentMac] = device.refreshToken.split('.');
  for (const forged of [
    `${token}.0.${mac}`,
    `${token}.2.${mac}`,
    `${token}.${generation}.${spentMac}`,
    `${token}.01.${mac}`,
    `${token}.-1.${mac}`,
    `${token}..${mac}`,
    `${token}.${mac}`,
    `${token}.${'9'.repeat(400)}.${mac}`,
  ])
    refused(await refresh(forged));
  assert.equal((await refresh(next.refresh_token)).status, 200);
});

test('a refresh token is no cookie, and a signed-out one stays refused', async () => {
  const device = await signedInDevice();
  const headers = { cookie: `berth_login=${device.refreshToken}`, 'sec-fetch-site': 'same-origin' };
  assert.equal((await post(api.url, '/auth/session', {}, headers)).body.error, 'login_required');
  assert.equal((await post(api.url, '/auth/revoke', { token: device.refreshToken })).status, 200);
  refused(await refresh(device.refreshToken));
});

test('a spent refresh token signs out, too', async () => {
  const device = await signedInDevice();
  await refresh(device.refreshToken);
  await post(second.url, '/auth/revoke', { token: device.refreshToken });
  assert.equal(await liveLogins(device.userId), 0);
});

test('a refresh token from before the rotation works once, and then not as a cookie', async () => {
  const { email, password, userId } = await makePerson(api.signIn);
  const { credential, loginId } = await api.signIn.withPassword({ email, password }, newCaller());
  const next = (await refresh(credential)).body;
  const headers = { cookie: `berth_login=${credential}`, 'sec-fetch-site': 'same-origin' };
  const asCookie = await post(api.url, '/auth/session', {}, headers);
  assert.deepEqual([asCookie.status, asCookie.body.error], [401, 'login_required']);
  assert.equal(await api.signIn.findLogin(credential), null);
  const last = await refresh(next.refresh_token);
  assert.equal(last.status, 200, 'the refused cookie ends nothing');
  await passTime(loginId);
  refused(await refresh(credential));
  assert.equal(await liveLogins(userId), 0);
});
