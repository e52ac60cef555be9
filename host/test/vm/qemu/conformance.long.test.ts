// The conformance suite with the QEMU driver and real guests, on a private host; the internet is a
// namespace of this test. Needs root, the image and the template (`berth test` makes them).
import { after, before } from 'node:test';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import { closeInheritedFiles } from '@berth/os/inherited-files.ts';
import { conformance } from '../../../src/vm/conformance/conformance.ts';
import type { ConformanceUplink, Target } from '../../../src/vm/conformance/subject.ts';
import { readConfig } from '../../../src/config.ts';
import { newestImageFolder } from '../../../src/make-driver.ts';
import { createQemuDriver } from '../../../src/vm/qemu/driver.ts';
import { ZONE_ADDRESS } from '../../network/dns/dns-zone.ts';
import { probeHere, UP_MS } from '../../network/probe.ts';
import { startUplink, type Uplink } from '../../network/uplink.ts';
import { enterPrivateHost } from '../private-host.ts';
import { slotLeftovers } from '../../network/slots/slot-leftovers.ts';

enterPrivateHost();
// As the host daemon does at its start.
closeInheritedFiles();

const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

let world: Uplink | null = null;
before(async () => {
  world = await startUplink();
});
after(async () => {
  await world?.stop();
});

/** The suite's view of the uplink, which exists from before the first test. */
const uplink: ConformanceUplink = {
  get internet() {
    return there().internet;
  },
  get closed() {
    return there().closed;
  },
  get closedIpv6() {
    return there().closedIpv6;
  },
  name: { name: 'www.internet.test', address: ZONE_ADDRESS },
  answering: async (targets: readonly Target[]) =>
    (await probeHere(targets, UP_MS)).filter(({ answeredBy }) => answeredBy !== null),
};

function there(): Uplink {
  if (world === null) throw new Error('the uplink is used before it is there');

  return world;
}

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };

conformance(
  'QEMU',
  () =>
    createQemuDriver({
      cacheFolder,
      imageFolder: image,
      guests: DIRECT_GUESTS,
      network: {
        instanceId: 'conform2',
        dataFolder: '/nonexistent',
        cidr: '10.200.0.0/16',
        idleSlots: 3,
        upstreams: { servers: [{ address: ZONE_ADDRESS, port: 53 }] },
      },
      log: () => {},
    }),
  {
    spec: SPEC,
    biggerSpecs: [
      { ...SPEC, vcpu: 2, memoryMib: 2_048, diskGib: 20 },
      { ...SPEC, vcpu: 4, memoryMib: 4_096, diskGib: 40 },
    ],
    uplink,
    prepareDeadlineMs: 60_000,
    leftovers: async () => slotLeftovers(),
  },
);
