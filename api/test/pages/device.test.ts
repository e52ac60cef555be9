// Sign-in of a device, approved by a person.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startSite, type TestSite, type TestVisitor } from './site.ts';

const CALLER = { address: '192.0.2.1', userAgent: null };

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

async function signedIn(): Promise<{ visitor: TestVisitor; userId: string; email: string }> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  return { visitor, userId, email };
}

test('a signed-out user is sent to sign-in and returns with the code', async () => {
  const { userCode } = await site.clients.requestDevice('berth-cli', CALLER);
  const expected = `/sign-in?return_to=${encodeURIComponent(`/device?user_code=${userCode}`)}`;
  assert.equal((await site.visitor().get(`/device?user_code=${userCode}`)).headers.get('location'), expected);
  assert.equal(
    (await site.visitor().post('/device', { user_code: userCode, decision: 'approve' })).headers.get('location'),
    expected,
  );
  assert.equal((await site.signIn.findDevice(userCode))?.status, 'pending');
});

test('the page shows code, client and user with a warning; approval signs the device in', async () => {
  const { visitor, userId, email } = await signedIn();
  const asked = await site.clients.requestDevice('berth-cli', CALLER);
  const shown = await visitor.get(`/device?user_code=${asked.userCode.toLowerCase().replace('-', '')}`);
  assert.equal(shown.status, 200);
  assert.match(shown.text, new RegExp(`<p class="code"[^>]*>${asked.userCode}</p>`));
  assert.match(shown.text, /<strong>berth-cli<\/strong>/);
  assert.match(shown.text, new RegExp(`as you, <strong>${email}</strong>`));
  assert.match(shown.text, /Approve only a sign-in that you started yourself/);
  assert.equal(
    (await site.signIn.findDevice(asked.userCode))?.status,
    'pending',
    'a link that is opened approves nothing',
  );
  const approved = await visitor.post('/device', { user_code: asked.userCode, decision: 'approve' });
  assert.deepEqual([approved.status, approved.heading], [200, 'The device is signed in']);
  const { login, sessionToken } = await site.clients.redeemDevice(
    { deviceCode: asked.deviceCode, clientId: 'berth-cli' },
    CALLER,
  );
  assert.equal(login.userId, userId);
  assert.equal((await site.api.call('GET', '/v1/me', { token: sessionToken.token })).body.email, email);
  assert.equal((await visitor.post('/device', { user_code: asked.userCode, decision: 'approve' })).status, 410);
});

test('a denied device gets no tokens', async () => {
  const { visitor } = await signedIn();
  const asked = await site.clients.requestDevice('berth-cli', CALLER);
  assert.equal(
    (await visitor.post('/device', { user_code: asked.userCode, decision: 'deny' })).heading,
    'The device was denied',
  );
  assert.equal((await visitor.post('/device', { user_code: asked.userCode, decision: 'approve' })).status, 410);
  assert.equal((await visitor.get(`/device?user_code=${asked.userCode}`)).status, 410);
  await assert.rejects(site.clients.redeemDevice({ deviceCode: asked.deviceCode, clientId: 'berth-cli' }, CALLER), {
    code: 'access_denied',
  });
});

test('an unknown code is an error at its field; a missing decision decides nothing', async () => {
  const { visitor } = await signedIn();
  const unknown = await visitor.get('/device?user_code=BCDF-GHJK');
  assert.equal(unknown.status, 400);
  assert.match(unknown.errors[0] ?? '', /^No device is waiting with this code/);
  assert.match(unknown.text, /value="BCDF-GHJK"/);
  assert.deepEqual((await visitor.post('/device', { user_code: ' ' })).errors, [
    'Enter the code that the device shows',
  ]);
  assert.equal((await visitor.get('/device')).status, 200);
  const { userCode } = await site.clients.requestDevice('berth-cli', CALLER);
  for (const decision of ['', 'yes']) {
    const answer = await visitor.post('/device', { user_code: userCode, decision });
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, `/device?user_code=${userCode}`]);
  }
  assert.equal((await site.signIn.findDevice(userCode))?.status, 'pending');
});

test('too many wrong codes by one user are 429 with Retry-After, for the right code too', async () => {
  const { visitor } = await signedIn();
  const { userCode } = await site.clients.requestDevice('berth-cli', CALLER);
  let last = await visitor.get('/device?user_code=BCDF-GHJK');
  for (let tries = 1; tries < 100 && last.status === 400; tries += 1)
    last = await visitor.get('/device?user_code=BCDF-GHJK');
  assert.equal(last.status, 429);
  assert.match(last.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal((await visitor.post('/device', { user_code: userCode, decision: 'approve' })).status, 429);
  assert.equal((await site.signIn.findDevice(userCode))?.status, 'pending');
});
