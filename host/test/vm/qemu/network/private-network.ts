// Gives a test file a network, and a registry of slots, of its own: nothing it does is seen by the machine, and nothing is left of it when it ends.
import { NetworkError } from '../../../../src/vm/qemu/network/slot.ts';

const MARKER = 'BERTH_TEST_PRIVATE_NETWORK';

const SET_UP = [
  // A machine without a network, but for the loopback.
  'ip link set lo up',
  'mkdir -p /run/netns /run/berth',
  'mount -t tmpfs -o mode=0755 tmpfs /run/netns',
  'mount -t tmpfs -o mode=0755 tmpfs /run/berth',
  // What the machine has switched on for its own network must not make a test pass.
  'echo 0 >/proc/sys/net/ipv4/ip_forward',
  'exec "$@"',
].join('\n');

/**
 * To be called at the top of a test file, before any test is declared: replaces this process by the same one in a network namespace and mount
 * namespace of its own. Its standard output, and so the test runner's report, goes on. Needs root.
 */
export function enterPrivateNetwork(): void {
  if (process.env[MARKER] === String(process.pid)) return;
  if (process.getuid?.() !== 0) throw new NetworkError('Tests of the network need root.');
  if (!process.execve) throw new NetworkError('This Node cannot replace its process.');
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const command = ['/usr/bin/unshare', '--net', '--mount', '/bin/sh', '-euc', SET_UP, 'sh', ...self];
  // None of the programs forks, so the process keeps its id all the way.
  const env = { ...process.env, [MARKER]: String(process.pid), PATH: `/usr/sbin:/sbin:${process.env['PATH'] ?? '/usr/bin:/bin'}` };
  process.execve('/usr/bin/unshare', command, env);
}
