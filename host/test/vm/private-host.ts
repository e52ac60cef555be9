// Gives a test file a private host for real VMs: its own network, slots, mounts and processes.
// Processes left behind end with the file. The real host is out of reach: slot users are found by
// number, and another Berth on the host uses the same numbers.
import { DriverError } from '../../src/vm/driver.ts';

const MARKER = 'BERTH_TEST_PRIVATE_MACHINE';

const SET_UP = [
  'ip link set lo up',
  'mkdir -p /run/netns /run/berth',
  'mount -t tmpfs -o mode=0755 tmpfs /run/netns',
  'mount -t tmpfs -o mode=0755 tmpfs /run/berth',
  // The shell stays as pid 1 and reaps orphans.
  '"$@"; exit $?',
].join('\n');

/**
 * Called at the top of a test file, before any test is declared. Keeps the standard output, and so
 * the test runner's report. Needs root.
 */
export function enterPrivateHost(): void {
  // The pid cannot serve as the marker: pid 1 of the new namespace is the shell.
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
