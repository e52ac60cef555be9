import assert from 'node:assert/strict';
import { test } from 'node:test';
import { panicIn } from '../../../../src/vm/qemu/process/console.ts';
import { nameEnd, oomKills, type SeenEnd } from '../../../../src/vm/qemu/process/death.ts';

const NOTHING: SeenEnd = { pid: 7, guest: null, exit: null, outOfMemory: null };
const guest = (shutdownReason: string, panic: string | null = null): SeenEnd => ({
  ...NOTHING,
  guest: { shutdownReason, panic },
});
const exit = (code: number | null, outOfMemory: SeenEnd['outOfMemory'] = null): SeenEnd => ({
  ...NOTHING,
  exit: { code, message: `ended: ${code}` },
  outOfMemory,
});

for (const [what, seen, code, reason] of [
  ['a reboot', guest('guest-reset'), 'guest_reboot', /guest rebooted, which ends the VM/],
  ['a shutdown', guest('guest-shutdown'), 'guest_shutdown', /shut itself down/],
  ['a reboot after a panic on the console', guest('guest-reset', 'no init'), 'guest_panic', /panicked: no init$/],
  ['a panic that QEMU tells', guest('guest-panic'), 'guest_panic', /panicked$/],
  ['a signal to QEMU that it obeys', guest('host-signal'), 'process_ended', /by a signal/],
  ['a kill while memory ran out', exit(137, 'host'), 'out_of_memory', /host ran out of memory/],
  ['a kill beyond the VM’s own memory', exit(137, 'vm'), 'out_of_memory', /more memory than the size of its VM allows/],
  ['a kill of QEMU and its jail', exit(null, 'vm'), 'out_of_memory', /more memory/],
  [
    'an end nobody could see while memory ran out',
    { ...NOTHING, outOfMemory: 'host' },
    'out_of_memory',
    /ran out of memory/,
  ],
  ['a crash while memory ran out', exit(139, 'host'), 'qemu_crash', /139/],
  ['a kill', exit(137), 'process_ended', /137/],
  ['a segmentation fault', exit(139), 'qemu_crash', /139/],
  ['an assertion', exit(134), 'qemu_crash', /134/],
  ['a forbidden system call', exit(159), 'qemu_crash', /159/],
  ['an error exit', exit(1), 'qemu_crash', /1/],
  ['an exit without an error', exit(0), 'process_ended', /0/],
  ['a polite signal', exit(143), 'process_ended', /143/],
  ['an end nobody could see', NOTHING, 'process_ended', /process 7 has exited/],
] as const) {
  test(`${what} is reported as ${code}`, () => {
    const end = nameEnd(seen);
    assert.equal(end.code, code);
    assert.match(end.reason, reason);
  });
}

test('the exit reason of QEMU is one bounded sentence for any message', () => {
  for (const name of ['__proto__', 'constructor', 'x'.repeat(1_000)])
    assert.deepEqual(nameEnd(guest(name)), { code: 'process_ended', reason: `QEMU exited: ${name.slice(0, 64)}` });
});

test('a kernel panic message is found on the console, bounded and printable', () => {
  assert.equal(
    panicIn('[ 1.0] Kernel panic - not syncing: sysrq triggered crash\r\n[ 1.1] more'),
    'sysrq triggered crash',
  );
  assert.equal(panicIn('login: '), null);
  assert.equal(panicIn(`Kernel panic - not syncing: \u001b[31m${'y'.repeat(1_000)}`)?.length, 200);
});

test('the kernel’s count of OOM kills can be read', () => {
  assert.ok(Number.isSafeInteger(oomKills()));
});
