import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Control } from '../../../src/vm/qemu/control.ts';

function reasonAfter(reason: unknown): string | null {
  const control = new Control(() => assert.fail('nothing is to be warned of'));
  control.note({ name: 'SHUTDOWN', data: { reason } });
  return control.reason();
}

test('why QEMU ends is a sentence, bounded, whatever it calls it', () => {
  assert.equal(reasonAfter('guest-reset'), 'the guest rebooted itself, which ends the machine');
  for (const name of ['__proto__', 'constructor', 'x'.repeat(1_000)]) {
    assert.equal(reasonAfter(name), `QEMU ended: ${name.slice(0, 64)}`);
  }
  assert.equal(reasonAfter({}), null);
});
