import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { egressDenied, OPEN_EGRESS, type EgressPolicy } from '@berth/protocol/egress.ts';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { DeniedAttempts } from '../../../src/network/egress/denied.ts';
import { RESOLVED_ADDRESSES } from '../../../src/network/egress/rules.ts';
import { SlotEgress } from '../../../src/network/egress/slot-egress.ts';
import { createNetwork } from '../../../src/network/network.ts';
import type { Network, Slot } from '../../../src/network/slots/slot.ts';
import { enterPrivateHost } from '../../vm/private-host.ts';
import { OTHER_ADDRESS, OTHER_NAME, PRIVATE_ADDRESS, PRIVATE_NAME, ZONE_ADDRESS } from '../dns/dns-zone.ts';
import { startGuest, type GuestStandIn } from '../guest-stand-in.ts';
import { probeFrom, probeHere, UP_MS, type ProbeResult } from '../probe.ts';
import { startUplink, type Uplink } from '../uplink.ts';

enterPrivateHost();

const run = promisify(execFile);
const DEADLINE_MS = 180_000;

let uplink: Uplink;
let network: Network;
let slot: Slot;
let other: Slot;
let guest: GuestStandIn;
let otherGuest: GuestStandIn;

const options = () => ({
  instanceId: 'egress22',
  dataFolder: '/nonexistent',
  cidr: '10.200.0.0/16',
  idleSlots: 2,
  upstreams: { servers: [{ address: uplink.nameServer, port: 53 }] },
});

before(async () => {
  uplink = await startUplink();
  network = createNetwork(options());
  await network.prepare();
  slot = await network.claim('sbx_one', AbortSignal.timeout(DEADLINE_MS));
  other = await network.claim('sbx_two', AbortSignal.timeout(DEADLINE_MS));
  guest = await startGuest(slot);
  otherGuest = await startGuest(other);
});

after(async () => {
  await guest.stop();
  await otherGuest.stop();
  await network.release(slot.number);
  await network.release(other.number);
  await network.close();
  await uplink.stop();
});

const none: EgressPolicy = { ...OPEN_EGRESS, mode: 'none' };
const allow = (policy: Partial<EgressPolicy>): EgressPolicy => ({ ...OPEN_EGRESS, mode: 'allow', ...policy });

async function reaches(address: string, port = 80): Promise<ProbeResult> {
  const [result] = await probeFrom(guest.namespacePath, [{ address, port }], UP_MS);
  return result as ProbeResult;
}

/** Resolves a name as a program in the guest does: the addresses, or the error code. */
async function resolve(name: string): Promise<string> {
  const script = `
    const { Resolver } = require('node:dns').promises;
    const resolver = new Resolver({ timeout: 5_000, tries: 1 });
    resolver.setServers(['${GUEST_NETWORK.gateway}']);
    resolver.resolve4(process.argv[1]).then((all) => console.log(all.join()), (error) => console.log(error.code));`;
  const inside = [`--net=${guest.namespacePath}`, process.execPath, '-e', script, name];
  return (await run('nsenter', inside, { timeout: DEADLINE_MS })).stdout.trim();
}

/** A connection from the guest that sends a line every 50 ms and prints each answer or error. */
async function connectFromGuest(address: string): Promise<{ child: ChildProcess; ended: Promise<string> }> {
  const script = `
    const socket = require('node:net').connect(80, '${address}');
    socket.on('connect', () => { console.log('connected'); setInterval(() => socket.write('X-A: b\\r\\n'), 50); });
    socket.on('error', (error) => { console.log(error.code); process.exit(0); });
    socket.write('POST / HTTP/1.1\\r\\nHost: a\\r\\n');`;
  const child = spawn('nsenter', [`--net=${guest.namespacePath}`, process.execPath, '-e', script]);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const ended = once(child, 'exit').then(() => output);
  await once(child.stdout, 'data');
  return { child, ended };
}

test('under none a guest reaches nothing and resolves nothing, and the host still reaches it', async () => {
  assert.equal(await resolve('web.internet.test'), ZONE_ADDRESS);
  await network.setEgress(slot.number, none);
  for (const { error, answeredBy } of await probeFrom(guest.namespacePath, uplink.internet, UP_MS)) {
    assert.equal(answeredBy, null);
    assert.equal(error, 'EHOSTUNREACH');
  }
  assert.equal(await resolve('web.internet.test'), 'EREFUSED');
  const [served] = await probeHere([{ address: slot.address, port: 80 }], UP_MS);
  assert.equal(served?.answeredBy, `guest ${slot.number}`);
  const [beside] = await probeFrom(otherGuest.namespacePath, uplink.internet, UP_MS);
  assert.equal(beside?.answeredBy, 'uplink');
});

test('under an allow-list a guest reaches the ranges on the ports, and nothing else', async () => {
  await network.setEgress(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`, '10.0.0.0/8'], ports: [80] }));
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  assert.equal((await reaches(ZONE_ADDRESS, 53)).error, 'EHOSTUNREACH');
  assert.equal((await reaches(OTHER_ADDRESS)).error, 'EHOSTUNREACH');
  // Closed ranges stay closed, also when a policy names them.
  assert.equal((await reaches(PRIVATE_ADDRESS)).error, 'EHOSTUNREACH');
});

test('an allowed name opens the addresses that it resolves to, and no other name resolves', async () => {
  await network.setEgress(slot.number, allow({ names: ['*.web.internet.test', PRIVATE_NAME] }));
  assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
  assert.equal(await resolve('WWW.web.Internet.test'), ZONE_ADDRESS);
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  assert.equal(await resolve(OTHER_NAME), 'EREFUSED');
  assert.equal((await reaches(OTHER_ADDRESS)).error, 'EHOSTUNREACH');
  assert.equal(await resolve(PRIVATE_NAME), PRIVATE_ADDRESS);
  assert.equal((await reaches(PRIVATE_ADDRESS)).error, 'EHOSTUNREACH');
  // A change that keeps the name keeps its addresses; one that drops it closes them.
  await network.setEgress(slot.number, allow({ names: ['*.web.internet.test', OTHER_NAME] }));
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  await network.setEgress(slot.number, allow({ names: [OTHER_NAME] }));
  assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
});

test('a change ends the connections that the new policy forbids, and keeps the others', async () => {
  await network.setEgress(slot.number, OPEN_EGRESS);
  const kept = await connectFromGuest(ZONE_ADDRESS);
  const cut = await connectFromGuest(OTHER_ADDRESS);
  await network.setEgress(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`] }));
  assert.match(await cut.ended, /ECONNRESET/);
  assert.equal(kept.child.exitCode, null);
  await network.setEgress(slot.number, none);
  assert.match(await kept.ended, /ECONNRESET/);
});

test('a policy survives the host daemon, with the addresses that were resolved', async () => {
  const policy = allow({ names: ['web.internet.test'] });
  await network.setEgress(slot.number, policy);
  assert.equal(await resolve('web.internet.test'), ZONE_ADDRESS);
  await network.close();
  network = createNetwork(options());
  await network.prepare();
  await network.adopt(slot.number, policy);
  await network.adopt(other.number, OPEN_EGRESS);
  assert.equal(await resolve(OTHER_NAME), 'EREFUSED');
  const kept = await connectFromGuest(ZONE_ADDRESS);
  await network.setEgress(slot.number, policy);
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  assert.equal((await reaches(OTHER_ADDRESS)).error, 'EHOSTUNREACH');
  assert.equal(await resolve('web.internet.test'), ZONE_ADDRESS);
  // The next daemon knows the names of the addresses, too.
  await network.setEgress(slot.number, allow({ names: ['web.internet.test', OTHER_NAME] }));
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  assert.equal(kept.child.exitCode, null);
  await network.setEgress(slot.number, allow({ names: [OTHER_NAME] }));
  assert.match(await kept.ended, /ECONNRESET/);
  assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
});

test('the addresses of a slot stay bounded across restarts of the host daemon', async () => {
  const policy = allow({ names: ['*.internet.test'] });
  const listed = async (): Promise<number> => {
    const list = ['nsenter', `--net=${slot.namespacePath}`, 'nft', '-j', 'list', 'set', 'inet', 'berth_egress'];
    const { stdout } = await run(list[0] as string, [...list.slice(1), 'resolved'], { maxBuffer: 1 << 24 });
    return stdout.match(/"expires"/g)?.length ?? 0;
  };
  await network.setEgress(slot.number, policy);
  for (let daemons = 0; daemons < 3; daemons += 1) {
    const egress = new SlotEgress(slot);
    egress.adopt(policy);
    await egress.enforce(policy);
    // 17 answers of 64 addresses: more than the 1,024 of one slot.
    for (let answers = 0; answers < 17; answers += 1) {
      const name = `h${answers}.internet.test`;
      const first = 64 * answers;
      const addresses = Array.from({ length: 64 }, (_, n) => ({
        address: `44.${daemons}.${(first + n) >> 8}.${(first + n) & 255}`,
        ttlSeconds: 3_600,
      }));
      assert.ok(await egress.admit(name, addresses));
    }
    assert.equal(await listed(), RESOLVED_ADDRESSES);
  }
});

test('a slot is adopted while its rules cannot be loaded, and keeps the rules of the former daemon', async () => {
  await network.setEgress(slot.number, none);
  await network.close();
  network = createNetwork(options());
  await network.prepare();
  await run('mount', ['--bind', '/bin/false', '/usr/sbin/nft']);
  try {
    await network.adopt(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`] }));
    await network.adopt(other.number, OPEN_EGRESS);
    await assert.rejects(network.setEgress(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`] })), /Egress policy/);
    assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
    const [served] = await probeHere([{ address: slot.address, port: 80 }], UP_MS);
    assert.equal(served?.answeredBy, `guest ${slot.number}`);
  } finally {
    await run('umount', ['/usr/sbin/nft']);
  }
  await network.setEgress(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`] }));
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
});

test('a policy that the record has and the kernel lacks is enforced by the next daemon', async () => {
  await network.setEgress(slot.number, OPEN_EGRESS);
  await network.close();
  network = createNetwork(options());
  await network.prepare();
  await network.adopt(slot.number, none);
  await network.adopt(other.number, OPEN_EGRESS);
  await network.setEgress(slot.number, none);
  assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
});

test('a released slot takes no policy', async () => {
  const former = await network.claim('sbx_three', AbortSignal.timeout(DEADLINE_MS));
  await network.setEgress(former.number, none);
  await network.release(former.number);
  await assert.rejects(network.setEgress(former.number, none), /is not claimed/);
});

test('two hundred changes at once leave the last policy in force', async () => {
  const policies = Array.from({ length: 200 }, (_, index) => allow({ ranges: [`9.9.${index}.0/24`] }));
  await Promise.all(
    [...policies, allow({ ranges: [`${OTHER_ADDRESS}/32`] })].map((one) => network.setEgress(slot.number, one)),
  );
  assert.equal((await reaches(OTHER_ADDRESS)).answeredBy, 'uplink');
  assert.equal((await reaches(ZONE_ADDRESS)).error, 'EHOSTUNREACH');
});

test('attempts that a policy refuses are counted, with their last destinations', async () => {
  const count = async (): Promise<number> => {
    await network.countEgressDenied();
    return network.egressDenied(slot.number)?.count ?? 0;
  };
  await network.setEgress(slot.number, allow({ ranges: [`${ZONE_ADDRESS}/32`] }));
  const before = await count();
  assert.equal((await reaches(ZONE_ADDRESS)).answeredBy, 'uplink');
  assert.equal(await count(), before);
  await reaches(OTHER_ADDRESS);
  const packets = await count();
  assert.ok(packets > before);
  // A query is counted at once, and the rules that a change replaces with their packets.
  assert.equal(await resolve(OTHER_NAME), 'EREFUSED');
  assert.equal(network.egressDenied(slot.number)?.count, packets + 1);
  await reaches(PRIVATE_ADDRESS);
  await network.setEgress(slot.number, none);
  const { destinations = [], count: all = 0 } = network.egressDenied(slot.number) ?? {};
  assert.ok(all > packets + 1);
  for (const one of [OTHER_ADDRESS, OTHER_NAME, PRIVATE_ADDRESS]) assert.ok(destinations.includes(one), one);
  // A daemon that takes over counts anew.
  const adopted = new SlotEgress(slot);
  adopted.adopt(none);
  await adopted.enforce(none);
  await adopted.countDenied();
  assert.equal(adopted.denied(), null);
});

test('a guest that tries many destinations uses bounded memory of the host', () => {
  const denied = new DeniedAttempts();
  for (let name = 0; name < 1_000; name += 1) denied.add(1, [`n${name}.test`]);
  const { count, destinations } = egressDenied.parse(denied.report());
  assert.deepEqual([count, destinations], [1_000, [999, 998, 997, 996, 995].map((name) => `n${name}.test`)]);
});

test('a guest finds no way around the policy by IPv6, ICMP or UDP', async () => {
  await network.setEgress(slot.number, none);
  for (const { answeredBy } of await probeFrom(guest.namespacePath, uplink.closedIpv6)) assert.equal(answeredBy, null);
  await assert.rejects(run('nsenter', [`--net=${guest.namespacePath}`, 'ping', '-c1', '-W2', ZONE_ADDRESS]));
  const script = `const s = require('node:dgram').createSocket('udp4');
    s.send('evading', ${uplink.udpPort}, '${ZONE_ADDRESS}', () => s.close());`;
  await run('nsenter', [`--net=${guest.namespacePath}`, process.execPath, '-e', script]);
  await reaches(ZONE_ADDRESS);
  assert.ok(!(await uplink.server.counts()).datagrams.includes('evading'));
});
