// The network beyond the host, for network tests: a namespace that plays the internet, the private
// networks around the host, the metadata services of clouds, and a service of the host itself. Only
// for tests that called `enterPrivateHost`: takes over the default route. Proves nothing by
// itself. A test shows that each closed target is up (reachable from the host) and that a guest
// cannot reach it.
import { execFileSync } from 'node:child_process';
import { startServer } from './namespace-server.ts';
import type { NamespaceServer } from './namespace-server.ts';
import type { ProbeTarget } from './probe.ts';

export interface Uplink {
  namespacePath: string;
  /** Targets that every guest reaches. */
  internet: ProbeTarget[];
  /** Targets reached by the host and by no guest: in each blocked range, and the host itself. */
  closed: ProbeTarget[];
  /** IPv6 variants, including an internet address: a guest has no IPv6 at all. */
  closedIpv6: ProbeTarget[];
  /** Address of the host and its guests, as the internet sees it. */
  machineAddress: string;
  /** All public addresses of the host. */
  machineAddresses: string[];
  /** A name server on the internet; its zone is `dns-zone.ts`. */
  nameServer: string;
  /** UDP port of `server` and of the host's service. */
  udpPort: number;
  /** Receives packets on the internet. */
  server: NamespaceServer;
  /** Receives packets for the host's own service. */
  machineServer: NamespaceServer;
  stop(): Promise<void>;
}

const NAMESPACE = 'uplink';
const HTTP_PORT = 80;
const UDP_PORT = 9_999;

/** Ports of the host's service: the guest daemon's (987), and one of the host's own. */
const MACHINE_PORTS = [80, 987];

const MACHINE_ADDRESS = '44.1.0.1';
const MACHINE_SECOND_ADDRESS = '44.7.7.7';
const GATEWAY = '44.1.0.2';
const MACHINE_IPV6 = '2a00:1::1';
const GATEWAY_IPV6 = '2a00:1::2';

/** The zone's names resolve to 44.0.0.10. */
const INTERNET = ['44.0.0.10', '9.9.9.10'];

const CLOSED = [
  '10.0.0.1', '10.66.0.1', '10.255.255.254', '172.16.0.1', '172.31.255.254', '192.168.0.1', '192.168.255.254',
  '169.254.169.254', '169.254.1.1', '100.64.0.1', '100.100.100.200', '100.127.255.254', '192.0.0.192', '168.63.129.16',
  '192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '198.18.0.1', '198.19.255.254', '240.0.0.1',
  '255.255.255.254',
]; // prettier-ignore

const INTERNET_IPV6 = ['2a00:2::10'];
const CLOSED_IPV6 = ['fd00:ec2::254', 'fc00::1'];

/** Builds the uplink in the network of this process. */
export async function startUplink(): Promise<Uplink> {
  const namespacePath = `/run/netns/${NAMESPACE}`;
  ip([
    `netns add ${NAMESPACE}`,
    `link add wan0 type veth peer name wan1 netns ${NAMESPACE}`,
    `address add ${MACHINE_ADDRESS}/24 dev wan0`,
    `address add ${MACHINE_SECOND_ADDRESS}/32 dev lo`,
    `-6 address add ${MACHINE_IPV6}/64 dev wan0 nodad`,
    'link set wan0 up',
  ]);
  ip(
    [
      'link set lo up',
      `address add ${GATEWAY}/24 dev wan1`,
      `-6 address add ${GATEWAY_IPV6}/64 dev wan1 nodad`,
      ...[...INTERNET, ...CLOSED].map((address) => `address add ${address}/32 dev lo`),
      ...[...INTERNET_IPV6, ...CLOSED_IPV6].map((address) => `-6 address add ${address}/128 dev lo nodad`),
      'link set wan1 up',
      // The neighbourhood routes packets for guests to the host, as an intruder would.
      `route add 10.200.0.0/16 via ${MACHINE_ADDRESS} dev wan1`,
      `route add ${MACHINE_SECOND_ADDRESS} via ${MACHINE_ADDRESS}`,
    ],
    NAMESPACE,
  );
  ip([`route add default via ${GATEWAY}`, `-6 route add default via ${GATEWAY_IPV6}`]);
  const options = { udpPort: UDP_PORT, ipv6: true };
  const server = await startServer(namespacePath, {
    ...options,
    name: 'uplink',
    httpPorts: [HTTP_PORT],
    dnsAddress: INTERNET[0] as string,
  });
  const machineServer = await startServer(null, {
    ...options,
    name: 'machine',
    httpPorts: MACHINE_PORTS,
    dnsAddress: null,
  });
  const on = (ports: number[], addresses: string[]) =>
    addresses.flatMap((address) => ports.map((port) => ({ address, port })));
  return {
    namespacePath,
    internet: on([HTTP_PORT], INTERNET),
    closed: [...on([HTTP_PORT], CLOSED), ...on(MACHINE_PORTS, [MACHINE_ADDRESS, MACHINE_SECOND_ADDRESS])],
    closedIpv6: [...on([HTTP_PORT], [...INTERNET_IPV6, ...CLOSED_IPV6]), ...on(MACHINE_PORTS, [MACHINE_IPV6])],
    machineAddress: MACHINE_ADDRESS,
    machineAddresses: [MACHINE_ADDRESS, MACHINE_SECOND_ADDRESS],
    nameServer: INTERNET[0] as string,
    udpPort: UDP_PORT,
    server,
    machineServer,
    async stop() {
      await Promise.all([server.stop(), machineServer.stop()]);
      ip(['link delete wan0', `netns delete ${NAMESPACE}`, `address delete ${MACHINE_SECOND_ADDRESS}/32 dev lo`]);
    },
  };
}

/** Runs iproute2 commands in this namespace or the named one. Throws with their output. */
export function ip(commands: readonly string[], namespace?: string): void {
  for (const family of ['-4', '-6']) {
    const own = commands
      .filter((command) => command.startsWith('-6 ') === (family === '-6'))
      .map((command) => command.replace('-6 ', ''));
    const where = namespace === undefined ? [] : ['-n', namespace];
    if (own.length > 0) {
      execFileSync('ip', [family, ...where, '-batch', '-'], {
        input: own.join('\n'),
        stdio: ['pipe', 'ignore', 'pipe'],
      });
    }
  }
}
