// Approved devices and a new password of the approver, which revokes them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { DeviceRefusal } from '../../src/services/people/client-sign-in-port.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { DEVICE_GRANT, makePerson, newCaller, post, startInstance, type Instance } from './client.ts';
import { lockWaiters } from '../world/lock-waiters.ts';

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

async function approvedDevice(userId: string): Promise<string> {
  const { userCode, deviceCode } = await api.signIn.requestDevice('berth-cli', newCaller());
  await api.signIn.decideDevice(userCode, userId, 'approve');
  return deviceCode;
}

const loginsOf = async (userId: string): Promise<unknown[]> =>
  await api.db.selectFrom('session').select('id').where('userId', '=', userId).execute();

test('a new password revokes unredeemed approvals; those of other users stay', async () => {
  const [person, other] = [await makePerson(api.signIn), await makePerson(api.signIn)];
  const [device, devicesOfOther] = [await approvedDevice(person.userId), await approvedDevice(other.userId)];
  await api.signIn.setPassword(person.userId, 'a new password, at last');
  const poll = (deviceCode: string): ReturnType<typeof post> =>
    post(second.url, '/auth/token', { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: 'berth-cli' });
  const refused = await poll(device);
  assert.deepEqual([refused.status, refused.body.error], [400, 'access_denied']);
  assert.deepEqual(await loginsOf(person.userId), []);
  assert.equal((await poll(devicesOfOther)).status, 200);
});

for (const hasPassword of [true, false]) {
  test(`no device login survives a concurrent ${hasPassword ? 'new' : 'first'} password`, async () => {
    const { userId } = hasPassword ? await makePerson(api.signIn) : await api.makeSession({ role: null });
    await api.db.deleteFrom('session').where('userId', '=', userId).execute();
    const deviceCode = await approvedDevice(userId);
    await sql`create function wait_for_test() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(1); return new; end $$`.execute(api.db);
    await sql`
      create trigger wait_for_test before insert on "session"
      for each row execute function wait_for_test()`.execute(api.db);
    try {
      let fetching: Promise<unknown> = Promise.resolve();
      await api.db.transaction().execute(async (trx) => {
        await sql`select pg_advisory_xact_lock(1)`.execute(trx);
        // The code is used but the login does not exist yet: the new password cannot see it.
        fetching = assert.rejects(
          second.signIn.redeemDevice({ deviceCode, clientId: 'berth-cli' }, newCaller()),
          (error: unknown) => error instanceof DeviceRefusal && error.code === 'access_denied',
        );
        await untilTrue('the login of the device is about to be made', async () => {
          return (await lockWaiters(api.db, 'advisory')) > 0;
        });
        await api.signIn.setPassword(userId, 'a new password, at last');
      });
      await fetching;
      assert.deepEqual(await loginsOf(userId), []);
    } finally {
      await sql`drop trigger wait_for_test on "session"`.execute(api.db);
      await sql`drop function wait_for_test()`.execute(api.db);
    }
  });
}
