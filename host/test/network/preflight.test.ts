import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { endSlotsBelow, findAbandonedSlots, removeAbandonedSlots } from '../../src/network/abandoned-slots.ts';
import { createNetwork } from '../../src/network/network.ts';
import { checkGuestCidr, checkNetworkRights, checkOtherFirewalls } from '../../src/network/preflight.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from '../../src/network/slots/registry.ts';
import { END_OF_SLOT_UIDS, NetworkError, parseGuestCidr, slotOf } from '../../src/network/slots/slot.ts';
import { startGuest } from './guest-stand-in.ts';
import { hostState, only } from './slots/host-state.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { probeFrom } from './probe.ts';
import { ip, startUplink } from './uplink.ts';
import { deadlineOf } from '../../../os/test/until.ts';

enterPrivateHost();

const CIDR = '10.200.0.0/16';
const DEADLINE_MS = 180_000;
const nft = (...words: string[]) => execFileSync('nft', [words.join(' ')]);

test('the rights check passes where slots can be made, and leaves nothing', async () => {
  assert.deepEqual(await checkNetworkRights(CIDR), []);
  assert.equal(execFileSync('ip', ['netns'], { encoding: 'utf8' }), '');
  assert.equal(execFileSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }), '');
});

test('a missing right is reported with the step that needs it', async () => {
  execFileSync('mount', ['--bind', '/dev/null', '/dev/net/tun']);
  const faults = await checkNetworkRights(CIDR);
  execFileSync('umount', ['/dev/net/tun']);
  assert.equal(faults.length, 1);
  assert.match(faults[0]?.message ?? '', /TUN|tun|ioctl/i);
  assert.ok(faults[0]?.remedy);
});

test('addresses in use on the host are reported, slots of other instances are not', async () => {
  assert.deepEqual(await checkGuestCidr(CIDR), []);
  const network = createNetwork({
    instanceId: 'first222',
    dataFolder: '/nonexistent',
    cidr: CIDR,
    idleSlots: 2,
    upstreams: { servers: [] },
  });
  await network.prepare();
  assert.deepEqual(await checkGuestCidr(CIDR), []);
  await network.close();
  ip([
    'link add lan0 type veth peer name lan1',
    'link set lan1 up',
    'address add 10.200.7.1/24 dev lan0',
    'link set lan0 up',
  ]);
  assert.match((await checkGuestCidr(CIDR))[0]?.message ?? '', /10\.200\.7\.\d+.* by lan0/);
  assert.deepEqual(await checkGuestCidr('10.201.0.0/16'), []);
  ip(['address delete 10.200.7.1/24 dev lan0', 'route add 10.0.0.0/8 dev lan0']);
  assert.match((await checkGuestCidr(CIDR))[0]?.message ?? '', /10\.0\.0\.0\/8 by lan0/);
  ip(['route delete 10.0.0.0/8 dev lan0', 'route add default dev lan0']);
  assert.deepEqual(await checkGuestCidr(CIDR), []);
  ip(['link delete lan0']);
});

test('foreign firewalls that drop by default are reported with a rule that admits guests', async () => {
  assert.deepEqual(await checkOtherFirewalls(), []);
  nft('table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; }');
  const [docker] = await checkOtherFirewalls();
  assert.match(docker?.message ?? '', /Chain FORWARD of table ip filter .*no internet/);
  assert.match(docker?.remedy ?? '', /DOCKER-USER/);
  nft('delete table ip filter');
  nft('table inet site { chain incoming { type filter hook input priority 0; policy drop; }; }');
  const [site] = await checkOtherFirewalls();
  assert.match(site?.message ?? '', /Chain incoming .*resolver/);
  assert.match(site?.remedy ?? '', /nft insert rule inet site incoming iifname/);
  nft('delete table inet site');
});

test('the printed remedy against a dropping firewall works', async (context) => {
  const uplink = await startUplink();
  const upstreams = { servers: [{ address: uplink.nameServer, port: 53 }] };
  const network = createNetwork({
    instanceId: 'first222',
    dataFolder: '/nonexistent',
    cidr: CIDR,
    idleSlots: 1,
    upstreams,
  });
  await network.prepare();
  const slot = await network.claim('sbx_one', AbortSignal.timeout(deadlineOf(30_000)));
  const guest = await startGuest(slot);
  // After a failure too: an open handle would keep this file from exiting.
  context.after(async () => {
    nft('delete table inet site');
    await guest.stop();
    await network.release(slot.number);
    await network.close();
    await uplink.stop();
  });
  nft('table inet site { chain through { type filter hook forward priority 10; policy drop; }; }');
  nft('table inet site { chain incoming { type filter hook input priority 10; policy drop; iifname wan0 accept; }; }');
  const reachesInternet = async () =>
    (await probeFrom(guest.namespacePath, uplink.internet)).every((result) => result.answeredBy !== null);
  const program = `const { Resolver } = require('node:dns').promises;
    const resolver = new Resolver({ timeout: 1000, tries: 1 });
    resolver.setServers(['169.254.0.22']);
    resolver.resolve4('www.internet.test').then(() => console.log(true), () => console.log(false));`;
  const resolvesNames = async () =>
    (
      await promisify(execFile)('nsenter', [`--net=${guest.namespacePath}`, process.execPath, '-e', program])
    ).stdout.trim() === 'true';
  assert.deepEqual([await reachesInternet(), await resolvesNames()], [false, false]);
  for (const { remedy } of await checkOtherFirewalls())
    execFileSync('sh', ['-euc', remedy.slice(remedy.lastIndexOf(': ') + 2)]);
  const late = AbortSignal.timeout(DEADLINE_MS);
  let works = [false, false];
  do works = [await reachesInternet(), await resolvesNames()];
  while (works.includes(false) && !late.aborted);
  assert.deepEqual(works, [true, true]);
});

test('slots of a deleted data folder are found, and removed once nothing runs in them', async () => {
  mkdirSync('/run/berth/data', { recursive: true });
  writeFileSync('/run/berth/data/instance-id', 'alive222\n');
  const claim = async (instanceId: string, dataFolder: string) => {
    const network = createNetwork({ instanceId, dataFolder, cidr: CIDR, idleSlots: 1, upstreams: { servers: [] } });
    await network.prepare();
    const slot = await network.claim('sbx_one', AbortSignal.timeout(deadlineOf(30_000)));
    await network.close();
    return slot;
  };
  const alive = await claim('alive222', '/run/berth/data');
  const abandoned = await claim('gone2222', '/run/berth/no-data');
  const found = { number: abandoned.number, instanceId: 'gone2222', dataFolder: '/run/berth/no-data', vmId: 'sbx_one' };
  assert.deepEqual(await findAbandonedSlots(), [{ ...found, pids: [] }]);
  writeFileSync('/run/berth/data/instance-id', 'another2\n');
  assert.deepEqual((await findAbandonedSlots()).length, 2, 'the folder is another instance’s now');
  writeFileSync('/run/berth/data/instance-id', 'alive222\n');
  const guest = await startGuest(abandoned);
  const [held] = await findAbandonedSlots();
  assert.equal(held?.pids.length, 1);
  assert.deepEqual(await removeAbandonedSlots(), []);
  await guest.stop();
  assert.deepEqual(await removeAbandonedSlots(), [{ ...found, pids: [] }]);
  assert.deepEqual(hostState(), only(alive.number));
  const owner = createNetwork({ instanceId: 'alive222', dataFolder: '/run/berth/data', cidr: CIDR, idleSlots: 0 });
  await owner.release(alive.number);
  await owner.close();
  assert.deepEqual(hostState(), only());
});

test('a guest network must be a private block with room for slots', () => {
  const cidr = parseGuestCidr(CIDR);
  assert.equal(cidr.slotCount, 16_383);
  assert.deepEqual(slotOf(cidr, 300), {
    number: 300,
    namespace: 'berth300',
    namespacePath: '/run/netns/berth300',
    tap: 'tap0',
    uid: 66_300,
    hostVeth: 'bv300',
    address: '10.200.4.178',
    hostAddress: '10.200.4.177',
  });
  assert.equal(slotOf(cidr, 16_382).address, '10.200.255.250');
  assert.throws(() => slotOf(cidr, 16_383), NetworkError);
  const largest = parseGuestCidr('10.200.0.0/15');
  assert.ok(
    slotOf(largest, largest.slotCount - 1).uid < END_OF_SLOT_UIDS,
    'uids from there on are for users’ own containers',
  );
  for (const wrong of [
    '10.200.0.0',
    '10.200.0.0/8',
    '10.200.0.0/14',
    '10.200.0.0/29',
    '10.200.0.1/16',
    '10.300.0.0/16',
    'fd00::/64',
    '8.8.0.0/16',
    '',
  ])
    assert.throws(() => parseGuestCidr(wrong), NetworkError, wrong);
});

test('slots below a folder are removed with their processes, and no others', async () => {
  const claim = async (instanceId: string, dataFolder: string) => {
    const network = createNetwork({ instanceId, dataFolder, cidr: CIDR, idleSlots: 1, upstreams: { servers: [] } });
    await network.prepare();
    const slot = await network.claim('sbx_one', AbortSignal.timeout(deadlineOf(30_000)));
    await network.close();
    return slot;
  };
  const other = await claim('other222', '/run/berth/run-10/data');
  const guest = await startGuest(await claim('within22', '/run/berth/run-1/data'));
  await endSlotsBelow('/run/berth/run-1');
  assert.deepEqual(hostState(), only(other.number));
  // Its process is gone already.
  await guest.stop();
  await endSlotsBelow('/run/berth/run-10');
  assert.deepEqual((await readRegistry(DEFAULT_REGISTRY_FOLDER)).size, 0);
});
