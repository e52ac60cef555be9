// Plays the guest of a slot without a VM: a namespace with the guest's address, whose frames a
// small process copies to and from the slot's TAP. Like QEMU, that process opens the TAP after it
// dropped its rights. Perl, because Node cannot open a TAP and every Debian has Perl.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { GATEWAY_MAC } from '../../src/network/slots/slot.ts';
import type { Slot } from '../../src/network/slots/slot.ts';
import { startServer } from './namespace-server.ts';
import type { NamespaceServer } from './namespace-server.ts';
import { ip } from './uplink.ts';
import { deadlineOf } from '../../../os/test/until.ts';

export interface GuestStandIn {
  namespacePath: string;
  /** The guest's service, on the guest daemon's port and on 80. */
  server: NamespaceServer;
  /** Sends raw frames into the slot's TAP, without a pause. */
  send(...frames: Buffer[]): Promise<void>;
  /** Idempotent. */
  stop(): Promise<void>;
}

const CARRIER = String.raw`
use strict;
my ($setns, $slot_ns, $uid, $slot_tap, $guest_ns, $guest_tap) = @ARGV;
sub enter {
  open(my $ns, '<', $_[0]) or die "$_[0]: $!\n";
  syscall($setns + 0, fileno($ns), 0) == 0 or die "setns: $!\n";
}
sub tap { sysopen(my $tap, '/dev/net/tun', 2) or die "tun: $!\n"; return $tap; }
sub attach { ioctl($_[0], 0x400454ca, my $request = pack('a16 s x22', $_[1], 0x1002)) or die "attach $_[1]: $!\n"; }
enter($guest_ns); my $guest = tap(); attach($guest, $guest_tap);
enter($slot_ns); my $slot = tap();
$) = "$uid $uid"; $( = $uid; $< = $> = $uid;
attach($slot, $slot_tap);
$| = 1; print "ready\n";
my $lines = '';
while (1) {
  my $wanted = ''; vec($wanted, fileno($_), 1) = 1 for ($guest, $slot, *STDIN);
  select($wanted, undef, undef, undef) > 0 or next;
  my $frame;
  if (vec($wanted, fileno($guest), 1) && sysread($guest, $frame, 65536)) { syswrite($slot, $frame); }
  if (vec($wanted, fileno($slot), 1) && sysread($slot, $frame, 65536)) { syswrite($guest, $frame); }
  if (vec($wanted, fileno(STDIN), 1)) {
    sysread(STDIN, $lines, 65536, length($lines)) or exit 0;
    while ($lines =~ s/^([0-9a-f]*)\n//) { syswrite($slot, pack('H*', $1)); print "sent\n"; }
  }
}
`;

/** Reported by the carrier for each frame. */
const SENT = 'sent\n';

/** Number of the system call setns, which Perl does not name. */
const SETNS = { x64: '308', arm64: '268' }[process.arch as 'x64' | 'arm64'];

/** `uid`: user that opens the TAP; default: the slot's. Rejects with the carrier's message. */
export async function startGuest(slot: Slot, uid = slot.uid): Promise<GuestStandIn> {
  const name = `guest${slot.number}`;
  const namespacePath = `/run/netns/${name}`;
  ip([`netns add ${name}`]);
  ip(
    [
      'tuntap add dev eth0 mode tap',
      `link set eth0 address ${GUEST_NETWORK.mac}`,
      `address add ${GUEST_NETWORK.address}/${GUEST_NETWORK.prefixLength} dev eth0`,
      // Attempts IPv6 too, through a static gateway entry.
      '-6 address add 2a00:3::2/64 dev eth0 nodad',
      'link set lo up',
      'link set eth0 up',
      `route add default via ${GUEST_NETWORK.gateway}`,
      `-6 neighbour add fe80::1 lladdr ${GATEWAY_MAC} dev eth0 nud permanent`,
      '-6 route add default via fe80::1 dev eth0',
    ],
    name,
  );
  const args = [SETNS ?? '', slot.namespacePath, String(uid), slot.tap, namespacePath, 'eth0'];
  const carrier = spawn('perl', ['-e', CARRIER, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  const ended = once(carrier, 'close');
  let complaint = '';
  carrier.stderr.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk));
  const removeNamespace = () => ip([`netns delete ${name}`]);
  const [first] = await Promise.race([once(carrier.stdout, 'data'), ended]);
  if (String(first) !== 'ready\n') {
    await ended;
    removeNamespace();
    throw new Error(complaint);
  }
  const options = { name: `guest ${slot.number}`, httpPorts: [80, 987], udpPort: 9_999, dnsAddress: null, ipv6: true };
  const server = await startServer(namespacePath, options);
  const send = async (...frames: Buffer[]): Promise<void> => {
    const deadline = AbortSignal.timeout(deadlineOf(10_000));
    carrier.stdin.write(frames.map((frame) => `${frame.toString('hex')}\n`).join(''));
    for (let said = 0; said < frames.length * SENT.length;) {
      const [data] = (await once(carrier.stdout, 'data', { signal: deadline })) as [Buffer];
      said += data.length;
    }
  };
  let stopped = false;
  return {
    namespacePath,
    server,
    send,
    async stop() {
      if (stopped) return;
      stopped = true;
      await server.stop();
      carrier.stdin.end();
      await ended;
      removeNamespace();
    },
  };
}
