// Gives a test file a machine of its own, as far as real VMs can tell: network, slots, mounts and
// processes. What it leaves running ends with it, and what runs on the machine is out of its reach:
// slots' users are found by number, and the numbers of another Berth on this machine are the same.
import { DriverError } from '../../src/vm/driver.ts';

const MARKER = 'BERTH_TEST_PRIVATE_MACHINE';

const SET_UP = [
  'ip link set lo up',
  'mkdir -p /run/netns /run/berth',
  'mount -t tmpfs -o mode=0755 tmpfs /run/netns',
  'mount -t tmpfs -o mode=0755 tmpfs /run/berth',
  // The shell stays as the first process: it reaps what loses its parent.
  '"$@"; exit $?',
].join('\n');

/**
 * To be called at the top of a test file, before any test is declared. Its standard output, and so
 * the test runner's report, goes on. Needs root.
 */
export function enterPrivateMachine(): void {
  // Its number in the new namespace is no use as a mark: the first process there is the shell.
  if (process.env[MARKER] === process.argv[1]) return;

  if (process.getuid?.() !== 0) throw new DriverError('tests of real virtual machines need root');

  if (process.execve === undefined) throw new DriverError('this Node cannot replace its process');

  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const spaces = ['--net', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
  const path = `/usr/sbin:/sbin:${process.env['PATH'] ?? '/usr/bin:/bin'}`;
  const given = Object.entries({ ...process.env, [MARKER]: process.argv[1], PATH: path });
  const environment = Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined));
  process.execve(
    '/usr/bin/unshare',
    ['/usr/bin/unshare', ...spaces, '/bin/sh', '-uc', SET_UP, 'sh', ...self],
    environment,
  );
}
