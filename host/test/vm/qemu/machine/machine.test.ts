import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelCommandLine } from '../../../../src/vm/qemu/machine/machine.ts';

test('the kernel keeps its mitigations under KVM, and drops them only under emulation', () => {
  assert.doesNotMatch(kernelCommandLine('kvm'), /mitigations|nopti|nospectre|tsx|spec_store|mds=|l1tf=|retbleed/);
  assert.match(kernelCommandLine('tcg'), / mitigations=off /);
});
