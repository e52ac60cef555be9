// Origin of sign-ins: those from the OIDC provider, and devices that they approve, count as SSO.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newId } from '../../src/store/database/ids.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { SETTINGS } from '../world/settings.ts';
import { DEVICE_GRANT, makePerson, newCaller, post, signInPerson, type Person } from './client.ts';
import { signInAtProvider, startProvider, type TestProvider } from './provider.ts';

const { publicUrl } = SETTINGS;
let provider: TestProvider;
let api: TestApi;
before(async () => {
  provider = await startProvider({ publicUrl });
  api = await startApi({ durable: false, oidc: provider.config, settings: { trustedProxies: ['127.0.0.1'] } });
});
after(async () => {
  await api.close();
  await provider.close();
});

const isSso = async (loginId: string): Promise<boolean> =>
  (await api.db.selectFrom('session').select('viaSso').where('id', '=', loginId).executeTakeFirstOrThrow()).viaSso;

/** Signs the person in at the provider. */
async function atProvider({ email }: Person): Promise<{ loginId: string; userId: string }> {
  provider.who = { sub: newId('signIn'), email, email_verified: true };
  const { location, setCookies } = await api.signIn.beginOidc('/');
  const cookies = setCookies.map((line) => line.split(';', 1)[0]).join('; ');
  const back = await signInAtProvider(location, publicUrl);
  return (await api.signIn.finishOidc(Object.fromEntries(back.searchParams), cookies, newCaller())).login;
}

/** Signs in a device that the login approves; returns the access token's login. */
async function device(userId: string, loginId?: string): Promise<string> {
  const from = { 'x-forwarded-for': newCaller().address };
  const { body: asked } = await post(api.url, '/auth/device/code', { client_id: 'berth-cli' }, from);
  await api.signIn.decideDevice(asked.user_code, userId, 'approve', loginId);
  const { body: tokens } = await post(api.url, '/auth/token', {
    grant_type: DEVICE_GRANT,
    device_code: asked.device_code,
    client_id: 'berth-cli',
  });
  const { signIns } = (await api.call('GET', '/v1/me/sign-ins', { token: api.secret(tokens.access_token) })).body;
  return signIns.find(({ current }: { current: boolean }) => current).id;
}

test('a sign-in at the provider is SSO; one with the password of the same user is not', async () => {
  const person = await makePerson(api.signIn);
  const { loginId, userId } = await atProvider(person);
  assert.equal(userId, person.userId);
  assert.equal(await isSso(loginId), true);
  const { loginId: byPassword } = await signInPerson(api.signIn, person);
  assert.equal(await isSso(byPassword), false);
  await api.signIn.confirmLogin(byPassword);
  assert.equal(await isSso(byPassword), false, 'a confirmation changes no origin');
  assert.equal(await isSso((await api.signIn.createLogin(userId, newCaller())).loginId), false);
});

test('a device has the origin of the sign-in that approves it', async () => {
  const person = await makePerson(api.signIn);
  const { loginId } = await atProvider(person);
  const { loginId: byPassword } = await signInPerson(api.signIn, person);
  assert.equal(await isSso(await device(person.userId, loginId)), true);
  assert.equal(await isSso(await device(person.userId, byPassword)), false);
  assert.equal(await isSso(await device(person.userId)), false);
  const stranger = await makePerson(api.signIn);
  assert.equal(await isSso(await device(stranger.userId, loginId)), false, "another user's sign-in");
});
