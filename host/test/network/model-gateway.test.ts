// The model gateway in a slot: reached by its guest at the guest's gateway address, and by nobody
// else.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import { pino } from 'pino';
import { ModelGateway } from '../../src/model-gateway/client.ts';
import { createNetwork } from '../../src/network/network.ts';
import { MODEL_CONNECTIONS, MODEL_PORT } from '../../src/network/slots/firewall.ts';
import { MODEL_GATEWAY_UID, type Network, type Slot } from '../../src/network/slots/slot.ts';
import { accessTo, KEY } from '../model-gateway/model-world.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { startGuest, type GuestStandIn } from './guest-stand-in.ts';
import { startUplink, type Uplink } from './uplink.ts';

enterPrivateHost();

const run = promisify(execFile);
const NONE: EgressPolicy = { mode: 'none', names: [], ranges: [], ports: [], revision: 1 };
const LARGE = 24 * 1_048_576;

let uplink: Uplink;
let network: Network;
let slot: Slot;
let otherSlot: Slot;
let guest: GuestStandIn;
let otherGuest: GuestStandIn;
let models: ModelGateway;
let folder: string;
let requests: string[];
const provider = createServer((request, response) => {
  let bytes = 0;
  request.on('data', (chunk: Buffer) => (bytes += chunk.length));
  request.once('end', () => {
    requests.push(String(request.headers.authorization ?? request.headers['x-api-key']));
    response.end(`got ${bytes}`);
  });
});

before(async () => {
  uplink = await startUplink();
  network = createNetwork({
    ...{ instanceId: 'models', dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 2 },
    upstreams: { servers: [{ address: uplink.nameServer, port: 53 }] },
  });
  await network.prepare();
  slot = await network.claim('sbx_one', AbortSignal.timeout(30_000));
  otherSlot = await network.claim('sbx_two', AbortSignal.timeout(30_000));
  guest = await startGuest(slot);
  otherGuest = await startGuest(otherSlot);
  folder = await mkdtemp(join(tmpdir(), 'berth-models-'));
  models = new ModelGateway({
    ...{ folder: join(folder, 'gateway'), uid: MODEL_GATEWAY_UID, lowPorts: true, ca: null },
    log: pino({ level: 'silent' }),
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const endpoint = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  for (const [vm, { hostAddress: address }, key] of [
    ['one', slot, KEY],
    ['two', otherSlot, 'other-key'],
  ] as const) {
    await models.serve(vm, { address, port: MODEL_PORT });
    await models.setAccess(vm, accessTo(endpoint, key));
  }
});
after(async () => {
  provider.close();
  provider.closeAllConnections();
  await models.close();
  await rm(folder, { recursive: true });
  await guest.stop();
  await otherGuest.stop();
  for (const { number } of [slot, otherSlot]) await network.release(number);
  await network.close();
  await uplink.stop();
});

/** Sends a request with so many bytes from a namespace; resolves with its response. */
async function ask(namespace: string | null, address: string, bytes = 2): Promise<string> {
  const script = `fetch('http://${address}:${MODEL_PORT}/openai/v1/responses', {
    method: 'POST', body: 'x'.repeat(${bytes}), signal: AbortSignal.timeout(${bytes > 2 ? 60_000 : 3_000}),
  }).then((r) => r.text()).catch((e) => e.cause?.code ?? e.name).then((text) => {
    console.log(text);
    process.exit();
  })`;
  const enter = namespace === null ? [] : [`--net=${namespace}`];
  const { stdout } = await run('nsenter', [...enter, process.execPath, '-e', script]);
  return stdout.trim();
}

test('each guest reaches its own gateway, with the key of its project, also without any egress', async () => {
  requests = [];
  assert.equal(await ask(guest.namespacePath, GUEST_NETWORK.gateway), 'got 2');
  assert.equal(await ask(otherGuest.namespacePath, GUEST_NETWORK.gateway), 'got 2');
  assert.deepEqual(requests, [`Bearer ${KEY}`, 'Bearer other-key']);
  await network.setEgress(slot.number, NONE);
  assert.equal(await ask(guest.namespacePath, GUEST_NETWORK.gateway), 'got 2');
  await network.setEgress(slot.number, { ...NONE, mode: 'open', revision: 2 });
});

test('a large request is not slowed by the packet limit of the resolver', async () => {
  requests = [];
  assert.equal(await ask(guest.namespacePath, GUEST_NETWORK.gateway, LARGE), `got ${LARGE}`);
});

test('neither a neighbour, nor the internet, nor a process of the host reaches it', async () => {
  requests = [];
  const addresses = [slot, otherSlot].flatMap(({ hostAddress, address }) => [hostAddress, address]);
  const namespaces = [guest.namespacePath, otherGuest.namespacePath, uplink.namespacePath, null];
  await Promise.all(
    addresses.flatMap((address) =>
      namespaces.map(async (from) => assert.doesNotMatch(await ask(from, address), /^got/, `${from} -> ${address}`)),
    ),
  );
  assert.deepEqual(requests, []);
});

test('the gateway opens no connection to a guest, and sends no UDP but name queries', async () => {
  const as = (uid: number, protocol: string, address: string, port: number) =>
    run('setpriv', [
      ...[`--reuid=${uid}`, '--clear-groups', 'timeout', '2', 'bash', '-c'],
      `exec 3<>/dev/${protocol}/${address}/${port}; echo x >&3`,
    ]);
  await as(0, 'tcp', slot.address, GUEST_PORT);
  await assert.rejects(as(MODEL_GATEWAY_UID, 'tcp', slot.address, GUEST_PORT));
  await assert.rejects(as(MODEL_GATEWAY_UID, 'tcp', slot.address, 80));
  await as(MODEL_GATEWAY_UID, 'tcp', uplink.machineAddress, 80);
  await as(0, 'udp', uplink.machineAddress, 9_999);
  await assert.rejects(as(MODEL_GATEWAY_UID, 'udp', uplink.machineAddress, 9_999));
});

test('a guest that opens many connections is limited by the kernel', async () => {
  const count = 4 * MODEL_CONNECTIONS.burst;
  const script = `const { connect } = require('node:net');
    let open = 0;
    const sockets = Array.from({ length: ${count} }, () =>
      connect(${MODEL_PORT}, '${GUEST_NETWORK.gateway}').on('connect', () => { open += 1; }).on('error', () => {}));
    setTimeout(() => { console.log(open); process.exit(); }, 500);`;
  const { stdout } = await run('nsenter', [`--net=${guest.namespacePath}`, process.execPath, '-e', script]);
  const opened = Number(stdout);
  assert.ok(opened > 0 && opened < count / 2, `${opened} of ${count} connections were opened at once`);
});
