// A program under the filter of the services: reports the calls that the kernel lets it make.
import { architectureOf, type SystemCall } from '@berth/os/system-calls.ts';

const REFUSED: SystemCall[] = [
  ...(['add_key', 'bpf', 'io_uring_setup', 'keyctl', 'mount', 'perf_event_open', 'process_vm_readv'] as const),
  ...(['ptrace', 'setns', 'unshare', 'userfaultfd'] as const),
];
const FAMILIES = { open: [1, 2, 10, 16], closed: [17, 38, 40] };

/**
 * A Perl script that prints a line for each call: `yes`, or the number of its error. The arguments
 * of the refused calls are invalid: a call that passes the filter has no effect.
 */
export function filterProbe(): string {
  const { numberOf } = architectureOf(process.arch);
  return `
    $| = 1;
    sub say { print "$_[0]=", ($_[1] ? "yes" : $! + 0), "\\n" }
    say("family $_", socket(S, $_, $_ == 16 ? 3 : 1, 0)) for (${FAMILIES.open.join()});
    say("family $_", socket(S, $_, 1, 0)) for (${FAMILIES.closed.join()});
    my $pid = fork(); exit if defined($pid) && $pid == 0;
    say("fork", defined($pid));
    say("in a user namespace", syscall(${numberOf('clone')}, 0x10000011, 0, 0, 0, 0) >= 0);
    ${REFUSED.map((call) => `say("${call}", syscall(${numberOf(call)}, -1, -1, -1, -1, -1) >= 0);`).join('\n')}`;
}

/** Output of the probe under the filter. */
export const FILTERED = [
  ...FAMILIES.open.map((family) => `family ${family}=yes`),
  ...FAMILIES.closed.map((family) => `family ${family}=1`),
  ...['fork=yes', 'in a user namespace=1'],
  ...REFUSED.map((call) => `${call}=38`),
];
