// The filter of database and API, as the kernel applies it to a confined program.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { architectureOf, type SystemCall } from '@berth/os/system-calls.ts';
import { startConfined } from '../../src/supervisor/child.ts';
import { findServiceUser } from '../../src/supervisor/service-user.ts';

const REFUSED: SystemCall[] = [
  ...(['add_key', 'bpf', 'io_uring_setup', 'keyctl', 'mount', 'perf_event_open', 'process_vm_readv'] as const),
  ...(['ptrace', 'setns', 'unshare', 'userfaultfd'] as const),
];

test('a confined service cannot use kernel interfaces that it does not need', async () => {
  const { numberOf } = architectureOf(process.arch);
  const script = `
    $| = 1;
    sub say { print "$_[0]=", ($_[1] ? "yes" : $! + 0), "\\n" }
    say("family $_", socket(S, $_, $_ == 16 ? 3 : 1, 0)) for (1, 2, 10, 16);
    say("family $_", socket(S, $_, 1, 0)) for (17, 38, 40);
    my $pid = fork(); exit if defined($pid) && $pid == 0;
    say("fork", defined($pid));
    say("in a user namespace", syscall(${numberOf('clone')}, 0x10000011, 0, 0, 0, 0) >= 0);
    ${REFUSED.map((call) => `say("${call}", syscall(${numberOf(call)}, 0, 0, 0, 0, 0) >= 0);`).join('\n')}
    sleep 1;`;
  let output = '';
  const child = await startConfined(
    {
      user: await findServiceUser(),
      binds: [],
      command: ['perl', '-e', script],
      environment: {},
      workingFolder: '/',
    },
    (chunk) => (output += chunk.toString()),
  );
  assert.equal(await child.exited, 'exit code 0', output);
  assert.deepEqual(output.trim().split('\n'), [
    ...[1, 2, 10, 16].map((family) => `family ${family}=yes`),
    ...[17, 38, 40].map((family) => `family ${family}=1`),
    ...['fork=yes', 'in a user namespace=1'],
    ...REFUSED.map((call) => `${call}=38`),
  ]);
});
