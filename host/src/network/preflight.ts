// Network checks of the doctor before a daemon starts: rights, kernel features, address conflicts,
// other firewalls. Changes nothing on the host: trials run in a throw-away namespace.
import { access, constants } from 'node:fs/promises';
import { z } from 'zod';
import { ROOT_TABLE } from './slots/firewall.ts';
import { runTool } from './slots/locked-program.ts';
import { makeProgram } from './slots/slot-programs.ts';
import {
  HOST_VETH_PREFIX,
  NetworkError,
  SLOT_PREFIX_LENGTH,
  addressText,
  parseGuestCidr,
  slotOf,
} from './slots/slot.ts';
import type { GuestCidr } from './slots/slot.ts';

/** A fault that prevents guest networking, and its remedy. */
export interface NetworkFault {
  message: string;
  remedy: string;
}

const TOOLS = ['ip', 'tc', 'nft', 'nsenter', 'unshare', 'flock', 'setpriv'];

/**
 * Checks that this process can make slots, by making one with its firewalls in a private namespace.
 * Empty if it can.
 */
export async function checkNetworkRights(cidr: string): Promise<NetworkFault[]> {
  if (process.getuid?.() !== 0) {
    return [
      {
        message: 'Creating network slots requires root; this process is not root.',
        remedy: 'Run it as root or with sudo.',
      },
    ];
  }

  const missing: string[] = [];
  for (const tool of TOOLS) await runTool(tool, ['sh', '-c', 'command -v "$0"', tool]).catch(() => missing.push(tool));

  if (missing.length > 0) {
    return [
      {
        message: `Commands are missing: ${missing.join(', ')}.`,
        remedy: 'apt-get install iproute2 nftables util-linux',
      },
    ];
  }

  try {
    await access('/dev/net/tun', constants.R_OK | constants.W_OK);
  } catch (error) {
    return [{ message: `/dev/net/tun cannot be used: ${(error as Error).message}`, remedy: 'modprobe tun' }];
  }
  const { command, environment } = makeProgram([slotOf(parseGuestCidr(cidr), 0)]);
  const inPrivate = 'mkdir -p /run/netns; mount -t tmpfs -o mode=0755 tmpfs /run/netns; exec "$@"';
  const trial = ['unshare', '--net', '--mount', 'sh', '-euc', inPrivate, 'sh', ...command] as const;
  try {
    await runTool('Creating a test network slot', trial, environment);
    return [];
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error;
    const remedy =
      'The kernel needs network namespaces, veth, tun, the queue discipline tbf, and nftables with NAT, ' +
      'connection tracking, fib, limit, reject and connlimit; ' +
      'a container needs CAP_NET_ADMIN and CAP_SYS_ADMIN. Debian’s own kernels have all of it.';
    return [{ message: error.message, remedy }];
  }
}

const routes = z.array(z.object({ dst: z.string(), dev: z.string().optional() }));

/**
 * Finds addresses of the guest network that the host already uses, except by other instances'
 * slots. Empty if none.
 */
export async function checkGuestCidr(text: string): Promise<NetworkFault[]> {
  const cidr = parseGuestCidr(text);
  const listing = routes.parse(
    JSON.parse(await runTool('Listing the routes', ['ip', '-json', '-4', 'route', 'show', 'table', 'all'])),
  );
  const conflicts = listing.filter(
    (route) => overlaps(cidr, route.dst) && !isSlotRoute(cidr, route.dst, route.dev ?? ''),
  );
  return conflicts.map((route) => ({
    message:
      `This host has a route to ${route.dst}${route.dev ? ` by ${route.dev}` : ''}, ` +
      `which overlaps the guest network ${text}.`,
    remedy: 'Set BERTH_GUEST_CIDR to a private block that is unused on this host and its network.',
  }));
}

const chains = z.object({
  nftables: z.array(
    z.object({
      chain: z
        .object({
          family: z.string(),
          table: z.string(),
          name: z.string(),
          hook: z.string().optional(),
          policy: z.string().optional(),
        })
        .optional(),
    }),
  ),
});

const OTHERS_HOOKS: Record<string, string> = {
  forward: 'guests may have no internet access',
  input: 'guests may get no response from the resolver',
};

/**
 * Finds other firewalls that drop unknown traffic (Docker's forward chain, ufw, firewalld): every
 * table can drop, and our rules cannot overrule theirs. Empty if none is seen. Misses rules that
 * some iptables versions keep outside of nftables.
 */
export async function checkOtherFirewalls(): Promise<NetworkFault[]> {
  const listing = chains.parse(JSON.parse(await runTool('Listing the firewalls', ['nft', '-j', 'list', 'chains'])));
  return listing.nftables.flatMap(({ chain }) => {
    const consequence = OTHERS_HOOKS[chain?.hook ?? ''];
    if (!chain || consequence === undefined || chain.policy !== 'drop') return [];
    const table = `${chain.family} ${chain.table}`;
    if (!['ip', 'inet'].includes(chain.family) || table === ROOT_TABLE) return [];
    return [
      {
        message: `Chain ${chain.name} of table ${table} (${chain.hook}) drops unmatched packets: ${consequence}.`,
        remedy: remedyFor(chain),
      },
    ];
  });
}

function remedyFor(chain: { family: string; table: string; name: string; hook?: string | undefined }): string {
  const devices = `${HOST_VETH_PREFIX}*`;
  const where = `nft insert rule ${chain.family} ${chain.table} ${chain.name}`;
  if (chain.hook === 'input') {
    return (
      `Accept packets from the slots; Berth's own table blocks all but the resolver: ` +
      `${where} iifname '"${devices}"' accept`
    );
  }
  if (chain.family === 'ip' && chain.table === 'filter' && chain.name === 'FORWARD') {
    return (
      `With Docker: iptables -I DOCKER-USER -i ${HOST_VETH_PREFIX}+ -j ACCEPT; ` +
      `iptables -I DOCKER-USER -o ${HOST_VETH_PREFIX}+ -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT. ` +
      `Without: the same in the chain FORWARD. Berth's own table still blocks the addresses that guests must not reach.`
    );
  }
  const rules = [`iifname '"${devices}"' accept`, `oifname '"${devices}"' ct state established,related accept`];
  return `Accept packets from and to the slots: ${rules.map((rule) => `${where} ${rule}`).join('; ')}`;
}

/** Shorter prefixes are routes to the outside, not networks in use. */
const BROADEST_CLAIM = 8;

function overlaps(cidr: GuestCidr, destination: string): boolean {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(destination);
  if (!match) return false;
  const first = match.slice(1, 5).reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const last = first + 2 ** (32 - Number(match[5] ?? 32)) - 1;
  // A default route, also as two halves, claims no addresses.
  if (Number(match[5] ?? 32) < BROADEST_CLAIM) return false;
  return first <= cidr.firstAddress + 2 ** (32 - cidr.prefixLength) - 1 && last >= cidr.firstAddress;
}

/**
 * True if the route belongs to the slot of the veth it names: the registry already holds that
 * number and so its addresses.
 */
function isSlotRoute(cidr: GuestCidr, destination: string, device: string): boolean {
  const number = Number(new RegExp(`^${HOST_VETH_PREFIX}(\\d+)$`).exec(device)?.[1] ?? Number.NaN);
  if (!(number < cidr.slotCount)) return false;
  const subnet = cidr.firstAddress + number * 4;
  return [
    `${addressText(subnet)}/${SLOT_PREFIX_LENGTH}`,
    ...[0, 1, 3].map((offset) => addressText(subnet + offset)),
  ].includes(destination);
}
