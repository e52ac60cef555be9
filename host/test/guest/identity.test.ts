import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { guestIdentity, type GuestIdentityResult } from '@berth/protocol/calls/identity.ts';
import { health } from '@berth/protocol/calls/identity.ts';
import { DirectGuestClient, type GuestClient } from '../../src/guest/client.ts';
import { faultIn, sendIdentity, sendSize, sendWake, makeGuestSecret, makeIdentity } from '../../src/guest/identity.ts';
import { SMALL } from '../vm/lifecycle/lifecycle-fixture.ts';
import { ScriptedGuest } from '../vm/scripted-guest.ts';

const NEVER = new AbortController().signal;

describe('the identity of a guest', () => {
  it('follows the protocol and shares nothing with another identity of the same spec', () => {
    const [one, two] = [makeIdentity(SMALL, makeGuestSecret()), makeIdentity(SMALL, makeGuestSecret())];
    guestIdentity.parse({ ...one, clockUnixMs: Date.now() });
    for (const part of ['secret', 'machineId', 'entropy'] as const) assert.notEqual(one[part], two[part]);

    assert.notEqual(one.sshHostKey.privateKey, two.sshHostKey.privateKey);
  });

  it('is sent with the time of sending; its secret applies from then on', async () => {
    const guest = await ScriptedGuest.start();
    const client = new DirectGuestClient(guest.endpoint);
    try {
      const identity = makeIdentity(SMALL, makeGuestSecret());
      const beforeUnixMs = Date.now();
      await sendIdentity(client, identity, NEVER, 5_000);
      assert.ok(
        guest.identity && guest.identity.clockUnixMs >= beforeUnixMs && guest.identity.clockUnixMs <= Date.now(),
      );
      assert.equal((await client.call(health, {}, { signal: NEVER, deadlineMs: 5_000 })).ok, true);
      assert.deepEqual(
        guest.requests.map(({ authorization }) => authorization),
        [undefined, `Bearer ${identity.secret}`],
      );
    } finally {
      client.close();
      await guest.stop();
    }
  });

  it('is sent again while the guest reads back another time', async () => {
    const guest = await ScriptedGuest.start();
    const client = new DirectGuestClient(guest.endpoint);
    try {
      let offMs = 2_500;
      guest.readBack = (result) => {
        const off = { ...result, clockUnixMs: result.clockUnixMs + offMs };
        offMs = 0;
        return off;
      };
      const identity = makeIdentity(SMALL, makeGuestSecret());
      await sendIdentity(client, identity, NEVER, 5_000);
      assert.deepEqual(
        guest.requests.map(({ authorization }) => authorization),
        [undefined, `Bearer ${identity.secret}`],
      );
    } finally {
      client.close();
      await guest.stop();
    }
  });

  const told = {
    ...makeIdentity({ ...SMALL, vcpu: 2, memoryMib: 2_048, diskGib: 20 }, makeGuestSecret()),
    clockUnixMs: 1_000_000,
  };
  const right: GuestIdentityResult = {
    hostname: 'berth',
    machineId: told.machineId,
    clockUnixMs: 1_000_050,
    vcpu: 2,
    memoryMib: 1_950,
    diskGib: 19.5,
  };

  it('is accepted when every part is read back', () => {
    assert.equal(faultIn(right, told, 100), null);
  });

  for (const [change, fault] of [
    [{ hostname: 'template' }, /hostname is 'template'/],
    [{ machineId: 'f'.repeat(32) }, /machine-id/],
    [{ clockUnixMs: 998_000 }, /clock is -2000 ms/],
    [{ clockUnixMs: 1_001_500 }, /clock is 1500 ms/],
    [{ vcpu: 1 }, /1 vCPUs, not 2/],
    [{ vcpu: 3 }, /3 vCPUs, not 2/],
    [{ memoryMib: 1_024 }, /1024 MiB/],
    [{ diskGib: 10 }, /10 GiB, not 20/],
  ] as const) {
    it(`is refused when ${Object.keys(change)[0]} is read back as ${Object.values(change)[0]}`, () => {
      assert.match(faultIn({ ...right, ...change }, told, 100) ?? '', fault);
    });
  }
});

describe('a guest that wakes', () => {
  const SIZE = { vcpu: 2, memoryMib: 2_048, diskGib: 20 };
  const [former, fresh] = [makeGuestSecret(), makeGuestSecret()];
  let guest: ScriptedGuest;
  let client: GuestClient;
  beforeEach(async () => {
    guest = await ScriptedGuest.start();
    client = new DirectGuestClient(guest.endpoint);
  });
  afterEach(async () => {
    client.close();
    await guest.stop();
  });

  for (const known of [former, fresh, null]) {
    const current = known === null ? 'no' : known === former ? 'the former' : 'the fresh';
    it(`accepts the fresh secret while it has ${current} secret`, async () => {
      guest.secret = known;
      await sendWake(client, { fresh, former: [former] }, SIZE, NEVER, 5_000);
      assert.equal(guest.secret, fresh);
      assert.equal((await client.call(health, {}, { signal: NEVER, deadlineMs: 5_000 })).ok, true);
    });
  }

  it('is refused when it knows neither secret', async () => {
    guest.secret = makeGuestSecret();
    await assert.rejects(sendWake(client, { fresh, former: [former] }, SIZE, NEVER, 5_000), { status: 401 });
  });

  for (const [change, fault] of [
    [{ clockUnixMs: 1_000 }, /clock is -/],
    [{ vcpu: 1 }, /1 vCPUs, not 2/],
    [{ memoryMib: 1_024 }, /1024 MiB/],
    [{ diskGib: 10 }, /10 GiB, not 20/],
  ] as const) {
    it(`is refused when it reads ${Object.keys(change)[0]} back as ${Object.values(change)[0]}`, async () => {
      guest.sizeReadBack = (result) => ({ ...result, ...change });
      await assert.rejects(sendWake(client, { fresh, former: [] }, SIZE, NEVER, 5_000), {
        code: 'guest_unreachable',
        message: fault,
      });
    });
  }

  it('gets the time again until its clock is right', async () => {
    let answers = 0;
    guest.sizeReadBack = (result) => {
      answers += 1;
      if (answers === 2) throw new Error('clock: the clock is 2100 ms off');

      return answers === 1 ? { ...result, clockUnixMs: result.clockUnixMs + 1_360 } : result;
    };
    await sendWake(client, { fresh, former: [] }, SIZE, NEVER, 5_000);
    assert.deepEqual([guest.wakes.length, guest.secret], [3, fresh]);
    assert.equal(new Set(guest.wakes.map(({ entropy }) => entropy)).size, 3);
  });

  it('gets the time again while requests take long, at last ahead by the latency of a request', async () => {
    // A clock that is late, as if the request had waited in the guest's queue.
    const lateMs = [900, 1_000, 0];
    guest.sizeReadBack = (result) => ({
      ...result,
      clockUnixMs: (guest.wakes.at(-1)?.clockUnixMs ?? 0) - (lateMs[guest.wakes.length - 1] ?? 0),
    });
    const sentFromMs = Date.now();
    await sendWake(client, { fresh, former: [] }, SIZE, NEVER, 5_000);
    const [first, second, third] = guest.wakes.map(({ clockUnixMs }) => clockUnixMs);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    assert.ok(first >= sentFromMs && second >= first && third >= second + 500);
    assert.ok(third <= Date.now() + 2_000);
  });

  it('is refused at once when something other than its clock is wrong', async () => {
    guest.sizeReadBack = () => {
      throw new Error('vCPU 1 did not come online');
    };
    await assert.rejects(sendWake(client, { fresh, former: [] }, SIZE, NEVER, 5_000), { status: 500 });
    assert.equal(guest.wakes.length, 1);
  });

  it('may have more memory and disk than requested, but not more vCPUs', async () => {
    guest.sizeReadBack = (result) => ({ ...result, memoryMib: 4_096, diskGib: 40 });
    assert.equal((await sendSize(client, SIZE, { signal: NEVER, deadlineMs: 5_000 })).memoryMib, 4_096);
    guest.sizeReadBack = (result) => ({ ...result, vcpu: 3 });
    await assert.rejects(sendSize(client, SIZE, { signal: NEVER, deadlineMs: 5_000 }), { message: /3 vCPUs, not 2/ });
  });
});
