import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import {
  CONNECTIONS_PER_GUEST,
  RESOLVER_BURST,
  RESOLVER_PACKETS_PER_SECOND,
  RESOLVER_PORT,
} from '../../src/network/slots/firewall.ts';
import { createNetwork } from '../../src/network/network.ts';
import { GATEWAY_UID, type Network, type Slot } from '../../src/network/slots/slot.ts';
import { LARGE_NAME, LARGE_RECORDS, ZONE_ADDRESS } from './dns/dns-zone.ts';
import { arpClaim, udpFrame } from './frame.ts';
import { startGuest } from './guest-stand-in.ts';
import type { GuestStandIn } from './guest-stand-in.ts';
import { startServer } from './namespace-server.ts';
import type { NamespaceServer } from './namespace-server.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { probeFrom, probeHere, UP_MS } from './probe.ts';
import type { ProbeResult, ProbeTarget } from './probe.ts';
import { ip, startUplink } from './uplink.ts';
import type { Uplink } from './uplink.ts';

enterPrivateHost();

const run = promisify(execFile);
const DEADLINE_MS = 180_000;

let uplink: Uplink;
let network: Network;
let slot: Slot;
let otherSlot: Slot;
let guest: GuestStandIn;
let otherGuest: GuestStandIn;

before(async () => {
  uplink = await startUplink();
  network = createNetwork({
    instanceId: 'isolate2',
    dataFolder: '/nonexistent',
    cidr: '10.200.0.0/16',
    idleSlots: 2,
    upstreams: { servers: [{ address: uplink.nameServer, port: 53 }] },
  });
  await network.prepare();
  slot = await network.claim('sbx_one', AbortSignal.timeout(DEADLINE_MS));
  otherSlot = await network.claim('sbx_two', AbortSignal.timeout(DEADLINE_MS));
  guest = await startGuest(slot);
  otherGuest = await startGuest(otherSlot);
});

after(async () => {
  await guest.stop();
  await otherGuest.stop();
  await network.release(slot.number);
  await network.release(otherSlot.number);
  await network.close();
  await uplink.stop();
});

const at = (port: number, ...addresses: string[]): ProbeTarget[] => addresses.map((address) => ({ address, port }));

function assertUp(results: readonly ProbeResult[]): void {
  assert.ok(results.length > 0);
  for (const { address, port, answeredBy, error } of results)
    assert.ok(answeredBy, `${address}:${port} is up (${error})`);
}

function assertClosed(results: readonly ProbeResult[]): void {
  assert.ok(results.length > 0);
  for (const { address, port, answeredBy } of results) assert.equal(answeredBy, null, `${address}:${port} is closed`);
}

/** Waits until the server has the payload, and so all earlier ones of the same sender. */
async function arrivedWith(server: NamespaceServer, payload: string): Promise<string[]> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  for (;;) {
    const { datagrams } = await server.counts();
    if (datagrams.includes(payload)) return datagrams;
    await sleep(20, undefined, { signal: deadline });
  }
}

test('a guest reaches the internet with the address of the host', async () => {
  const results = await probeFrom(guest.namespacePath, uplink.internet, UP_MS);
  assertUp(results);
  for (const result of results) assert.equal(result.seenAs, uplink.machineAddress);
});

test('a guest reaches no blocked range and no host address, though the host reaches all of them', async () => {
  const targets = [
    ...uplink.closed,
    ...at(80, slot.hostAddress, otherSlot.hostAddress),
    ...at(GUEST_PORT, slot.hostAddress),
  ];
  assertUp(await probeHere(targets, UP_MS));
  const results = await probeFrom(guest.namespacePath, targets);
  assertClosed(results);
  // The slot's firewall rejects blocked ranges; packets to the host's public addresses drop.
  for (const { address, error } of results) {
    const isPublic = uplink.machineAddresses.includes(address);
    assert.equal(error, isPublic ? 'timeout' : 'EHOSTUNREACH', address);
  }
});

test('UDP datagrams of a guest reach the internet and nothing else', async () => {
  const closed = [
    ...new Set([
      ...uplink.closed.map((target) => target.address),
      slot.hostAddress,
      otherSlot.hostAddress,
      otherSlot.address,
    ]),
  ];
  const nobodys = ['224.0.0.251', '255.255.255.255', '0.0.0.0', '127.0.0.1', GUEST_NETWORK.gateway];
  for (const to of [...closed, ...nobodys]) {
    await guest.send(udpFrame({ to, port: uplink.udpPort, payload: `closed ${to}` }));
    await guest.send(
      udpFrame({ to, port: uplink.udpPort, payload: `closed broadcast ${to}`, toMac: 'ff:ff:ff:ff:ff:ff' }),
    );
  }
  await guest.send(udpFrame({ to: ZONE_ADDRESS, port: uplink.udpPort, payload: 'open' }));
  assert.deepEqual(await arrivedWith(uplink.server, 'open'), ['open']);
  for (const server of [uplink.machineServer, otherGuest.server])
    assert.deepEqual((await server.counts()).datagrams, []);
});

test('only frames with the guest’s own address and MAC leave its TAP', async () => {
  const honest = { to: ZONE_ADDRESS, port: uplink.udpPort };
  const forged = [
    { fromMac: '52:54:00:b0:00:77' },
    ...[
      '10.66.0.5',
      '44.0.0.77',
      '169.254.0.22',
      '127.0.0.1',
      '0.0.0.0',
      slot.address,
      slot.hostAddress,
      otherSlot.address,
    ].map((from) => ({ from })),
    { vlan: 7 },
  ];
  const received = (await uplink.server.counts()).packetsReceived;
  for (const part of forged)
    await guest.send(udpFrame({ ...honest, ...part, payload: `forged ${JSON.stringify(part)}` }));
  await guest.send(udpFrame({ ...honest, payload: 'honest' }));
  const datagrams = await arrivedWith(uplink.server, 'honest');
  assert.deepEqual(
    datagrams.filter((payload) => payload.startsWith('forged')),
    [],
  );
  assert.equal(
    (await uplink.server.counts()).packetsReceived - received,
    1,
    'nothing arrived under another form either',
  );
});

test('a guest cannot take over an address by ARP', async () => {
  const neighbours = () => run('ip', ['-n', slot.namespace, 'neighbour', 'show', 'dev', slot.tap]);
  const { stdout } = await neighbours();
  assert.match(stdout, new RegExp(`^${GUEST_NETWORK.address} lladdr ${GUEST_NETWORK.mac} PERMANENT`));
  const forger = '52:54:00:b0:00:77';
  for (const address of [GUEST_NETWORK.address, GUEST_NETWORK.gateway, slot.address, slot.hostAddress]) {
    await guest.send(arpClaim(address, forger));
    await guest.send(arpClaim(address, forger, forger));
  }
  assert.equal((await neighbours()).stdout, stdout);
  assertUp(await probeFrom(guest.namespacePath, uplink.internet, UP_MS));
});

test('guests do not reach each other, and the host reaches both on any port', async () => {
  const targets = [...at(GUEST_PORT, slot.address, otherSlot.address), ...at(80, slot.address, otherSlot.address)];
  const fromMachine = await probeHere(targets, UP_MS);
  assertUp(fromMachine);
  assert.deepEqual(
    fromMachine.map((result) => [result.answeredBy, result.seenAs]),
    [
      [`guest ${slot.number}`, slot.hostAddress],
      [`guest ${otherSlot.number}`, otherSlot.hostAddress],
      [`guest ${slot.number}`, slot.hostAddress],
      [`guest ${otherSlot.number}`, otherSlot.hostAddress],
    ],
  );
  assertClosed(await probeFrom(guest.namespacePath, targets));
});

test('neither the internet nor an unprivileged host process reaches a guest', async () => {
  assertUp(await probeFrom(uplink.namespacePath, at(80, uplink.machineAddress), UP_MS));
  assertClosed(await probeFrom(uplink.namespacePath, [...at(GUEST_PORT, slot.address), ...at(80, slot.address)]));
  const connectAs = (uid: number, address = slot.address, port = GUEST_PORT) =>
    run('setpriv', [
      `--reuid=${uid}`,
      '--clear-groups',
      'timeout',
      '2',
      'bash',
      '-c',
      `exec 3<>/dev/tcp/${address}/${port}`,
    ]);
  await connectAs(0);
  await assert.rejects(connectAs(65_534));
  // The guest gateway reaches guest daemons, and nothing else.
  await connectAs(GATEWAY_UID);
  await connectAs(0, slot.address, 80);
  await assert.rejects(connectAs(GATEWAY_UID, slot.address, 80));
  await assert.rejects(connectAs(GATEWAY_UID, uplink.machineAddress, 80));
});

test('a guest reaches no container of the host, not even by a published port', async () => {
  const container = '172.20.0.2';
  ip([
    'netns add container',
    'link add ct0 type veth peer name ct1 netns container',
    'address add 172.20.0.1/24 dev ct0',
    'link set ct0 up',
  ]);
  ip([`address add ${container}/24 dev ct1`, 'link set ct1 up', 'route add default via 172.20.0.1'], 'container');
  const server = await startServer('/run/netns/container', {
    name: 'container',
    httpPorts: [80],
    udpPort: 9_999,
    dnsAddress: null,
    ipv6: false,
  });
  const publish = `table ip publish { chain c { type nat hook prerouting priority dstnat;
    ip daddr ${uplink.machineAddress} tcp dport 8080 dnat to ${container}:80; }; }`;
  try {
    await run('nft', [publish.replaceAll('\n', ' ')]);
    const published = at(8_080, uplink.machineAddress);
    assertUp(await probeFrom(uplink.namespacePath, published, UP_MS));
    assertClosed(await probeFrom(guest.namespacePath, [...published, ...at(80, container)]));
    assertClosed(await probeFrom('/run/netns/container', at(GUEST_PORT, slot.address)));
  } finally {
    await server.stop();
    await run('nft', ['delete', 'table', 'ip', 'publish']);
    ip(['link delete ct0', 'netns delete container']);
  }
});

test('a guest has no IPv6 to the internet, the host or its own gateway', async () => {
  assertUp(await probeHere(uplink.closedIpv6, UP_MS));
  assertClosed(await probeFrom(guest.namespacePath, uplink.closedIpv6));
  for (const name of [slot.namespace, null]) {
    const where = name === null ? [] : ['-n', name];
    const { stdout } = await run('ip', [
      '-6',
      ...where,
      'address',
      'show',
      'dev',
      name === null ? slot.hostVeth : slot.tap,
    ]);
    assert.equal(stdout, '', 'no address, not even a link-local one');
  }
});

test('a process that escaped QEMU into the namespace reaches nothing', async () => {
  const targets = [
    ...uplink.internet,
    ...uplink.closed,
    ...at(80, slot.hostAddress, otherSlot.address),
    ...at(GUEST_PORT, GUEST_NETWORK.address),
  ];
  assertClosed(await probeFrom(slot.namespacePath, targets));
});

test('the TAP belongs to the uid of its slot, and no other uid can open it', async () => {
  const third = await network.claim('sbx_three', AbortSignal.timeout(DEADLINE_MS));
  await assert.rejects(startGuest(third, slot.uid), /attach tap0: Operation not permitted/);
  await (await startGuest(third)).stop();
  await network.release(third.number);
});

const RESOLVE = `
  const { Resolver } = require('node:dns').promises;
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  resolver.setServers([process.argv[1]]);
  const name = process.argv[2];
  const type = process.argv[3];
  resolver.resolve(name, type).then(
    (records) => console.log(JSON.stringify(records)),
    (error) => console.log(JSON.stringify(error.code)));
`;

async function resolveInGuest(server: string, name: string, type = 'A'): Promise<unknown> {
  return await resolveAs(['nsenter', `--net=${guest.namespacePath}`], server, name, type);
}

async function resolveAs([program, ...args]: [string, ...string[]], server: string, name: string, type = 'A') {
  const { stdout } = await run(program, [...args, process.execPath, '-e', RESOLVE, server, name, type]);
  return JSON.parse(stdout) as unknown;
}

test('a guest resolves names at its gateway, by UDP and, for large responses, by TCP', async () => {
  assert.deepEqual(await resolveInGuest(GUEST_NETWORK.gateway, 'www.internet.test'), [ZONE_ADDRESS]);
  assert.equal(((await resolveInGuest(GUEST_NETWORK.gateway, LARGE_NAME, 'TXT')) as unknown[]).length, LARGE_RECORDS);
  assert.equal(await resolveInGuest(GUEST_NETWORK.gateway, 'www.nowhere.test'), 'ENOTFOUND');
});

test('the resolver is reachable only at the gateway, which has no other open port', async () => {
  for (const server of [
    `${slot.hostAddress}:${RESOLVER_PORT}`,
    `${otherSlot.hostAddress}:${RESOLVER_PORT}`,
    `${slot.hostAddress}:53`,
  ]) {
    assert.ok(
      ['ETIMEOUT', 'ECONNREFUSED'].includes((await resolveInGuest(server, 'www.internet.test')) as string),
      server,
    );
  }

  assertClosed(
    await probeFrom(guest.namespacePath, [
      ...at(80, GUEST_NETWORK.gateway),
      ...at(RESOLVER_PORT, GUEST_NETWORK.gateway),
    ]),
  );
});

test('neither a host process nor a neighbour of the host reaches a resolver', async () => {
  for (const who of [
    ['setpriv', '--reuid=0', '--clear-groups'],
    ['setpriv', '--reuid=65534', '--clear-groups'],
    ['nsenter', `--net=${uplink.namespacePath}`],
  ] as [string, ...string[]][]) {
    const resolved = await resolveAs(who, `${slot.hostAddress}:${RESOLVER_PORT}`, 'www.internet.test');
    assert.equal(resolved, 'ETIMEOUT', who.join(' '));
  }
  assert.deepEqual(await resolveInGuest(GUEST_NETWORK.gateway, 'www.internet.test'), [ZONE_ADDRESS]);
});

/** Packets that left the slot on the host's side. */
async function cameOut(): Promise<number> {
  const { stdout } = await run('ip', ['-j', '-s', 'link', 'show', 'dev', slot.hostVeth]);
  const [link] = JSON.parse(stdout) as { stats64: { rx: { packets: number } } }[];
  assert.ok(link !== undefined);
  return link.stats64.rx.packets;
}

test('guest traffic to the resolver is limited, responses on a connection from the host are not', async () => {
  const burst = 5_000;
  const asked = await cameOut();
  const startedAt = performance.now();
  const noQuestion = udpFrame({ to: GUEST_NETWORK.gateway, port: 53, fromPort: 41_000, payload: 'no question' });
  await guest.send(...Array<Buffer>(burst).fill(noQuestion));
  const passed = (await cameOut()) - asked;
  const most = RESOLVER_BURST + RESOLVER_PACKETS_PER_SECOND * Math.ceil((performance.now() - startedAt) / 1_000);
  // The kernel itself sends few packets: a slot has no IPv6.
  assert.ok(passed > 0 && passed <= most + 10, `${passed} of ${burst} packets passed, ${most} may`);

  const socket = createSocket('udp4');
  try {
    await new Promise<void>((resolve) => socket.bind(0, slot.hostAddress, resolve));
    const { port } = socket.address();
    await new Promise((resolve) => socket.send('question', GUEST_PORT, slot.address, resolve));
    const answered = await cameOut();
    const reply = udpFrame({ to: slot.hostAddress, port, fromPort: GUEST_PORT, payload: 'answer' });
    await guest.send(...Array<Buffer>(burst).fill(reply));
    assert.ok((await cameOut()) - answered >= burst, 'each of them came out');
  } finally {
    socket.close();
  }
});

test('a guest above its connection limit is refused the next one; other guests are unaffected', async () => {
  // In one burst: an entry of conntrack expires after 30 s without a response.
  await guest.send(
    ...Array.from({ length: CONNECTIONS_PER_GUEST + 100 }, (_, port) =>
      udpFrame({ to: ZONE_ADDRESS, port: uplink.udpPort, fromPort: port + 1, payload: 'share' }),
    ),
  );

  assertClosed(await probeFrom(guest.namespacePath, uplink.internet));
  assertUp(await probeHere(at(GUEST_PORT, slot.address), UP_MS));
  assertUp(await probeFrom(otherGuest.namespacePath, uplink.internet, UP_MS));
});
