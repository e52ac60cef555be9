// Kernel counters between a VM and its host: the TAP, both ends of the veth pair, their queues.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { TAP_NAME, INNER_VETH_NAME, hostVethName, namespaceName } from '@berth/host/network/slots/slot.ts';

const run = promisify(execFile);

export interface DeviceCount {
  device: string;
  fromPeerBytes: number;
  toPeerBytes: number;
  fromPeerPackets: number;
  toPeerPackets: number;
  /** Packets dropped by the device or its queue, for any reason. */
  lost: number;
}

interface Direction {
  bytes: number;
  packets: number;
  dropped: number;
  errors: number;
}
interface Link {
  ifname: string;
  stats64: { rx: Direction; tx: Direction };
}
interface Queue {
  dev: string;
  drops: number;
}

/** Counters of the TAP, the veth's inner end and its outer end. Needs root on the host. */
export async function slotCounters(slot: number): Promise<DeviceCount[]> {
  const outer = hostVethName(slot);
  const inside = ['-n', namespaceName(slot)];
  const counts = [
    ...(await countsOf(inside)).filter(({ device }) => device === TAP_NAME || device === INNER_VETH_NAME),
    ...(await countsOf([])).filter(({ device }) => device === outer),
  ];
  if (counts.length !== 3)
    throw new Error(`slot ${slot} has ${counts.map(({ device }) => device).join(', ') || 'no device'}`);
  return counts;
}

async function countsOf(place: readonly string[]): Promise<DeviceCount[]> {
  const links = await list<Link>('ip', [...place, '-j', '-s', 'link', 'show']);
  const queues = await list<Queue>('tc', [...place, '-j', '-s', 'qdisc', 'show']);
  return links.map(({ ifname, stats64: { rx, tx } }) => ({
    device: ifname,
    fromPeerBytes: rx.bytes,
    toPeerBytes: tx.bytes,
    fromPeerPackets: rx.packets,
    toPeerPackets: tx.packets,
    lost:
      rx.dropped +
      rx.errors +
      tx.dropped +
      tx.errors +
      queues.filter(({ dev }) => dev === ifname).reduce((sum, { drops }) => sum + drops, 0),
  }));
}

async function list<T>(tool: string, args: readonly string[]): Promise<T[]> {
  const { stdout } = await run(tool, args, { maxBuffer: 16 * 1_048_576 });
  return JSON.parse(stdout) as T[];
}
