import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter, type FilterPolicy } from '../src/system-call-filter.ts';
import { architectureOf, type SystemCall } from '../src/system-calls.ts';
import { runFilter } from './run-filter.ts';

const ENOSYS = 38;
const EPERM = 1;
const POLICY: FilterPolicy = {
  others: 'refused',
  calls: ['read', 'open'],
  conditional: {
    socket: [[{ argument: 0, equals: 1 }]],
    prlimit64: [
      [{ argument: 1, equals: 7 }],
      [
        { argument: 2, equals: 0 },
        { argument: 2, half: 'high', equals: 0 },
      ],
    ],
    clone: [[{ argument: 0, mask: 0xff00_0100, equals: 0x100 }]],
  },
};

function runner(policy: FilterPolicy, nodeArch: string) {
  const { audit, numberOf } = architectureOf(nodeArch);
  const filter = compileFilter(policy, nodeArch);
  return (call: SystemCall, ...args: bigint[]) =>
    runFilter(filter, { number: numberOf(call) ?? assert.fail(call), architecture: audit, arguments: args });
}

for (const nodeArch of ['x64', 'arm64']) {
  test(`an allow-list for ${nodeArch} allows its calls, and others only with certain arguments`, () => {
    const run = runner(POLICY, nodeArch);
    assert.deepEqual([run('read'), run('write'), run('bpf')], ['allowed', ENOSYS, ENOSYS]);
    assert.deepEqual([run('socket', 1n), run('socket', 2n), run('socket', 40n)], ['allowed', EPERM, EPERM]);
    assert.deepEqual([run('socket', 0x1_0000_0001n), run('socket', 0n)], ['allowed', EPERM]);
    assert.deepEqual([run('prlimit64', 0n, 7n, 1n), run('prlimit64', 0n, 1n, 0n)], ['allowed', 'allowed']);
    assert.deepEqual([run('prlimit64', 0n, 1n, 8n), run('prlimit64', 0n, 1n, 1n << 32n)], [EPERM, EPERM]);
    assert.deepEqual(
      [run('clone', 0x1ffn), run('clone', 0xffn), run('clone', 0x0200_0100n)],
      ['allowed', EPERM, EPERM],
    );
  });

  test(`a deny-list for ${nodeArch} refuses its calls, and others with other arguments`, () => {
    const run = runner({ ...POLICY, others: 'allowed' }, nodeArch);
    assert.deepEqual([run('read'), run('write')], [ENOSYS, 'allowed']);
    assert.deepEqual([run('socket', 1n), run('socket', 2n)], ['allowed', EPERM]);
  });
}

test('calls of another architecture kill the process; those of x32 are refused', () => {
  const { audit, numberOf } = architectureOf('x64');
  const read = numberOf('read') as number;
  for (const others of ['allowed', 'refused'] as const) {
    const filter = compileFilter({ ...POLICY, others }, 'x64');
    assert.equal(runFilter(filter, { number: read, architecture: architectureOf('arm64').audit }), 'killed');
    assert.equal(runFilter(filter, { number: 0x4000_0000 + read, architecture: audit }), ENOSYS);
    assert.equal(runFilter(filter, { number: 0xffff_ffff, architecture: audit }), ENOSYS);
  }
});

test('a call that an architecture does not have needs no rule', () => {
  assert.equal(architectureOf('arm64').numberOf('open'), null);
  assert.equal(compileFilter(POLICY, 'x64').length - compileFilter(POLICY, 'arm64').length, 2 * 8);
});

test('an unknown architecture is reported', () => {
  assert.throws(() => compileFilter(POLICY, 'mips'), /no system call numbers are known for mips/);
});
