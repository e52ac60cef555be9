import assert from 'node:assert/strict';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { execFile, execFileSync, fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RESOLVER_PORT } from '../../src/network/slots/firewall.ts';
import { createNetwork } from '../../src/network/network.ts';
import type { NetworkOptions } from '../../src/network/dns/network-options.ts';
import { NetworkError } from '../../src/network/slots/slot.ts';
import type { Network, Slot } from '../../src/network/slots/slot.ts';
import { startGuest } from './guest-stand-in.ts';
import type { GuestStandIn } from './guest-stand-in.ts';
import { hostState, only } from './slots/host-state.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { probeFrom, probeHere, UP_MS } from './probe.ts';
import { ip, startUplink } from './uplink.ts';
import type { Uplink } from './uplink.ts';

enterPrivateHost();

const DEADLINE_MS = 180_000;
const FIRST = 'first222';
const SECOND = 'second22';

let uplink: Uplink;

before(async () => {
  uplink = await startUplink();
});

after(() => uplink.stop());

function optionsOf(instanceId: string, options: Partial<NetworkOptions> = {}): NetworkOptions {
  const upstreams = { servers: [{ address: uplink.nameServer, port: 53 }] };
  return {
    instanceId,
    dataFolder: `/nonexistent/${instanceId}`,
    cidr: '10.200.0.0/16',
    idleSlots: 2,
    upstreams,
    ...options,
  };
}

const networks: Network[] = [];
const guests: GuestStandIn[] = [];

function networkOf(instanceId: string, options: Partial<NetworkOptions> = {}): Network {
  const network = createNetwork(optionsOf(instanceId, options));
  networks.push(network);
  return network;
}

async function guestOf(slot: Slot): Promise<GuestStandIn> {
  const guest = await startGuest(slot);
  guests.push(guest);
  return guest;
}

// Cleans up after a failed test, so that the next ones are not affected.
afterEach(async () => {
  for (const guest of guests.splice(0)) await guest.stop();
  for (const network of networks.splice(0)) await network.close();
  for (const instanceId of [FIRST, SECOND]) {
    const janitor = createNetwork(optionsOf(instanceId, { idleSlots: 0 }));
    await janitor.prepare();
    await janitor.reap(new Set());
    await janitor.close();
  }
});

const soon = () => AbortSignal.timeout(DEADLINE_MS);

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = soon();
  while (!holds()) await sleep(10, undefined, { signal: deadline }).catch(() => assert.fail(`Not in time: ${what}`));
}

function hasRootRules(): boolean {
  return execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' }).includes('table inet berth');
}

test('prepare enables IP forwarding once, reports it and records it', async () => {
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '0');
  const network = networkOf(FIRST);
  const changes = await network.prepare();
  assert.match(changes.join(), /^set net\.ipv4\.ip_forward from 0 to 1/);
  assert.equal(readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8').trim(), '1');
  assert.match(readFileSync('/run/berth/slots/.machine-changes', 'utf8'), /ip_forward from 0 to 1/);
  await network.close();
  const again = networkOf(FIRST);
  assert.deepEqual(await again.prepare(), []);
  await again.close();
});

test('idle slots are ready in advance, and each claim refills the pool', async () => {
  const network = networkOf(FIRST, { idleSlots: 3 });
  await network.prepare();
  const ready = hostState();
  assert.equal(ready.namespaces.length, 3);
  assert.deepEqual(ready, only(...ready.entries));
  const slot = await network.claim('sbx_one', soon());
  assert.ok(ready.entries.includes(slot.number), 'it is one of those that were there');
  await until('three idle ones and the claimed one', () => hostState().devices.length === 4);
  await network.release(slot.number);
  await network.close();
  assert.deepEqual(hostState(), only());
});

test('concurrent claims above the ready slots each get their own slot', async () => {
  const network = networkOf(FIRST);
  await network.prepare();
  const slots = await Promise.all(Array.from({ length: 12 }, (_, index) => network.claim(`sbx_${index}`, soon())));
  for (const name of ['number', 'namespace', 'uid', 'address', 'hostAddress'] as const)
    assert.equal(new Set(slots.map((slot) => slot[name])).size, 12, name);

  assert.equal((await network.claim('sbx_3', soon())).number, slots[3]?.number, 'the same VM gets the same slot');
  await Promise.all(slots.map((slot) => network.release(slot.number)));
  await network.close();
  assert.deepEqual(hostState(), only());
});

test('a claim is registered when it resolves, and a released slot is gone when the release resolves', async () => {
  const network = networkOf(FIRST, { idleSlots: 1 });
  await network.prepare();
  const slot = await network.claim('sbx_one', soon());
  const entry: unknown = JSON.parse(readFileSync(`/run/berth/slots/${slot.number}`, 'utf8'));
  assert.deepEqual(entry, { instanceId: FIRST, dataFolder: `/nonexistent/${FIRST}`, vmId: 'sbx_one' });
  await Promise.all([network.release(slot.number), network.release(slot.number)]);
  const { namespaces, devices, entries } = hostState();
  for (const numbers of [namespaces, devices, entries]) assert.ok(!numbers.includes(slot.number));
  await network.release(slot.number);
  await network.close();
});

test('a released slot is cut off although a process still holds its namespace', async () => {
  const network = networkOf(FIRST, { idleSlots: 1 });
  await network.prepare();
  const slot = await network.claim('sbx_one', soon());
  const guest = await guestOf(slot);
  const [up] = await probeFrom(guest.namespacePath, uplink.internet, UP_MS);
  assert.ok(up?.answeredBy);
  await network.release(slot.number);
  const [cutOff] = await probeFrom(guest.namespacePath, uplink.internet);
  assert.equal(cutOff?.answeredBy, null);
  await guest.stop();
  await network.close();
});

test('an aborted claim rejects with the reason of its signal', async () => {
  const network = networkOf(FIRST, { idleSlots: 0 });
  await network.prepare();
  const controller = new AbortController();
  const claim = network.claim('sbx_one', controller.signal);
  controller.abort(new Error('a destroy came first'));
  await assert.rejects(claim, /a destroy came first/);
  await assert.rejects(network.claim('sbx_two', controller.signal), /a destroy came first/);
  await network.close();
  assert.deepEqual(hostState(), only());
});

test('a full network refuses the next claim until a release', async () => {
  const network = networkOf(FIRST, { cidr: '10.200.0.0/28' });
  await network.prepare();
  const slots = await Promise.all(['a', 'b', 'c'].map((name) => network.claim(`sbx_${name}`, soon())));
  await assert.rejects(
    network.claim('sbx_d', soon()),
    (error) => error instanceof NetworkError && error.message.includes('taken (3)'),
  );
  await network.release(slots[0]?.number ?? -1);
  const next = await network.claim('sbx_d', soon());
  assert.equal(next.number, slots[0]?.number);
  for (const slot of [next, ...slots.slice(1)]) await network.release(slot.number);
  await network.close();
});

test('names in use by others are left alone', async () => {
  ip(['netns add berth0', 'link add bv1 type veth peer name other1']);
  const network = networkOf(FIRST, { cidr: '10.200.0.0/28' });
  await network.prepare();
  const slot = await network.claim('sbx_one', soon());
  assert.equal(slot.number, 2);
  await network.release(2);
  await network.release(1);
  await network.close();
  const { namespaces, devices } = hostState();
  assert.deepEqual([namespaces, devices], [[0], [1]]);
  ip(['netns delete berth0', 'link delete bv1']);
});

test('a new daemon adopts the claimed slots of a closed one, and their guests keep running', async () => {
  const earlier = networkOf(FIRST, { idleSlots: 1 });
  await earlier.prepare();
  const slot = await earlier.claim('sbx_one', soon());
  const guest = await guestOf(slot);
  await earlier.close();
  assert.deepEqual(hostState(), only(slot.number));
  assert.ok(
    (await probeFrom(guest.namespacePath, uplink.internet, UP_MS))[0]?.answeredBy,
    'a guest needs no daemon to reach the internet',
  );

  const next = networkOf(FIRST, { idleSlots: 1 });
  await next.prepare();
  assert.deepEqual(await next.adopt(slot.number, OPEN_EGRESS), slot);
  assert.deepEqual(await next.reap(new Set()), [], 'what it adopted is its own');
  const print = '(error, records) => console.log(String(error ?? records))';
  const resolve = `require('node:dns').resolve4('www.internet.test', ${print})`;
  const setServers = `require('node:dns').setServers(['169.254.0.22']);`;
  const command = [`--net=${guest.namespacePath}`, process.execPath, '-e', setServers + resolve];
  assert.equal((await promisify(execFile)('nsenter', command)).stdout.trim(), '44.0.0.10');
  assert.ok((await probeHere([{ address: slot.address, port: 987 }], UP_MS))[0]?.answeredBy);
  await guest.stop();
  await next.release(slot.number);
  await next.close();
  assert.deepEqual(hostState(), only());
});

test('a slot of another instance or an incomplete slot cannot be adopted', async () => {
  const first = networkOf(FIRST, { idleSlots: 1 });
  const second = networkOf(SECOND, { idleSlots: 1 });
  await first.prepare();
  await second.prepare();
  const slot = await second.claim('sbx_one', soon());
  await assert.rejects(first.adopt(slot.number, OPEN_EGRESS), NetworkError);
  await assert.rejects(first.adopt(16_000, OPEN_EGRESS), NetworkError);
  await second.close();
  ip([`link delete ${slot.hostVeth}`]);
  const next = networkOf(SECOND, { idleSlots: 1 });
  await next.prepare();
  await assert.rejects(next.adopt(slot.number, OPEN_EGRESS), /is incomplete: device/);
  assert.deepEqual(await next.reap(new Set()), [`network slot ${slot.number} claimed for sbx_one`]);
  await next.close();
  await first.close();
  assert.deepEqual(hostState(), only());
});

test('two instances on a host keep each other’s slots; the rules stay until the last slot is gone', async () => {
  const first = networkOf(FIRST);
  const second = networkOf(SECOND);
  await Promise.all([first.prepare(), second.prepare()]);
  const [mine, theirs] = await Promise.all([first.claim('sbx_one', soon()), second.claim('sbx_one', soon())]);
  assert.notEqual(mine.number, theirs.number);
  const guest = await guestOf(theirs);

  await first.release(theirs.number);
  assert.deepEqual(await first.reap(new Set()), []);
  await first.release(mine.number);
  await first.close();
  assert.ok(hasRootRules());
  assert.ok((await probeFrom(guest.namespacePath, uplink.internet, UP_MS))[0]?.answeredBy);
  assert.equal(
    (await probeFrom(guest.namespacePath, [{ address: uplink.machineAddress, port: 80 }]))[0]?.answeredBy,
    null,
  );

  await guest.stop();
  await second.close();
  assert.ok(hasRootRules(), 'a claimed slot is still there');
  const next = networkOf(SECOND);
  await next.prepare();
  assert.deepEqual(await next.reap(new Set()), [`network slot ${theirs.number} claimed for sbx_one`]);
  await next.close();
  assert.ok(!hasRootRules());
  assert.deepEqual(hostState(), only());
});

test('after a kill at any step the next daemon keeps the named slots and removes the others', async () => {
  const options = optionsOf(FIRST, { idleSlots: 3 });
  const kills = 24;
  let midway = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const host = fork(fileURLToPath(new URL('slot-host.ts', import.meta.url)), [JSON.stringify(options), '2'], {
      stdio: 'inherit',
    });
    await once(host, 'message');
    // The first half is killed during its first slots, the second during claims and releases.
    const held = kill < kills / 2 ? [] : (((await once(host, 'message')) as [number[]])[0] ?? []);
    await sleep(kill < kills / 2 ? kill * 12 : (kill - kills / 2) * 5);
    host.kill('SIGKILL');
    await once(host, 'exit');
    const { namespaces, devices, entries } = hostState();
    if (namespaces.join() !== entries.join() || devices.join() !== entries.join()) midway += 1;

    const next = createNetwork(options);
    await next.prepare();
    for (const number of held) assert.equal((await next.adopt(number, OPEN_EGRESS)).number, number);
    await next.reap(new Set(held));
    const alive = hostState();
    assert.deepEqual(alive, only(...alive.entries), `after kill ${kill}`);
    assert.equal(alive.entries.length, held.length + 3, `after kill ${kill}`);
    for (const number of held) await next.release(number);
    await next.close();
    assert.deepEqual(hostState(), only(), `after kill ${kill}`);
  }
  assert.ok(midway > 0, 'some kills hit a half made or half removed slot');
});

test('a failed slot leaves nothing, names the failed step and is retried by the next claim', async () => {
  const network = networkOf(FIRST, { idleSlots: 1 });
  execFileSync('mount', ['-o', 'remount,ro', '/run/netns']);
  await assert.rejects(
    network.prepare(),
    (error) => error instanceof NetworkError && /^Creating network slot \d+: .*Read-only/.test(error.message),
  );
  await assert.rejects(network.claim('sbx_one', soon()), NetworkError);
  execFileSync('mount', ['-o', 'remount,rw', '/run/netns']);
  assert.deepEqual(hostState(), only());
  const slot = await network.claim('sbx_one', soon());
  await network.release(slot.number);
  await network.close();
  assert.deepEqual(hostState(), only());
});

test('when one of several slots cannot listen, all their listeners close and their numbers are free', async () => {
  const network = networkOf(FIRST, { cidr: '10.200.0.0/28', idleSlots: 3 });
  ip(['address add 10.200.0.5/32 dev lo']);
  const inTheWay = createSocket('udp4').unref().bind({ address: '10.200.0.5', port: RESOLVER_PORT });
  await once(inTheWay, 'listening');
  await assert.rejects(network.prepare(), { name: 'NetworkError', message: /DNS queries on slot 1: .*EADDRINUSE/ });
  assert.deepEqual(hostState(), only());
  inTheWay.close();
  await once(inTheWay, 'close');
  ip(['address delete 10.200.0.5/32 dev lo']);
  const slots = await Promise.all(['a', 'b', 'c'].map((name) => network.claim(`sbx_${name}`, soon())));
  for (const { number } of slots) await network.release(number);
  await network.close();
  assert.deepEqual(hostState(), only());
});

test('a failed slot check releases the numbers entered before it', async () => {
  const network = networkOf(FIRST, { cidr: '10.200.0.0/28', idleSlots: 3 });
  symlinkSync('berth1', '/run/netns/berth1');
  // The second search begins after the number that failed the first, so one of the two has
  // registered other slots.
  await assert.rejects(network.prepare(), { code: 'ELOOP' });
  await assert.rejects(network.claim('sbx_a', soon()), { code: 'ELOOP' });
  assert.deepEqual(hostState().entries, []);
  unlinkSync('/run/netns/berth1');
  const slots = await Promise.all(['a', 'b', 'c'].map((name) => network.claim(`sbx_${name}`, soon())));
  for (const { number } of slots) await network.release(number);
  await network.close();
  assert.deepEqual(hostState(), only());
});
