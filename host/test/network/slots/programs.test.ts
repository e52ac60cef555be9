// The shell programs that make and unmake slots are valid.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const PROGRAMS = join(import.meta.dirname, '../../../src/network/slots/programs');
const programs = globSync('*', { cwd: PROGRAMS }).toSorted();

test('there are four shell programs', () => {
  assert.deepEqual(programs, ['fill-slot.sh', 'make-slots.sh', 'remove-root-rules.sh', 'unmake-slots.sh']);
});

for (const program of programs) {
  test(`${program} is parsed by the shell without a warning`, () => {
    const { status, stderr } = spawnSync('sh', ['-n', join(PROGRAMS, program)], { encoding: 'utf8' });
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  });
}
