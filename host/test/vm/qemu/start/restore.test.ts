import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { DriverError } from '../../../../src/vm/driver.ts';
import { DevicesRefused, loadDevices } from '../../../../src/vm/qemu/start/restore.ts';
import type { PausedQemu } from '../../../../src/vm/qemu/start/start.ts';

const SLOW_ANSWER_MS = 3_000;

/** A slow QEMU that reports this on the state it loads. */
function machine(context: TestContext, seen: object): PausedQemu {
  let nowMs = 0;
  context.mock.method(performance, 'now', () => nowMs);
  const command = async (execute: string): Promise<object> => {
    nowMs += SLOW_ANSWER_MS;
    return execute === 'query-migrate' ? seen : {};
  };
  const launched = { deviceState: { end: () => undefined } };
  return { qmp: { command }, launched, signal: new AbortController().signal } as unknown as PausedQemu;
}

test('a device load that reaches the deadline is not reported as refused devices', async (context) => {
  await assert.rejects(loadDevices(machine(context, { status: 'active' }), Buffer.alloc(1)), (error) => {
    assert.ok(error instanceof DriverError && !(error instanceof DevicesRefused));
    assert.match(error.message, /not loaded within 20 s/);
    return true;
  });
});

test('devices count as refused when QEMU reports so', async (context) => {
  const seen = { status: 'failed', 'error-desc': 'Unknown savevm section' };
  await assert.rejects(loadDevices(machine(context, seen), Buffer.alloc(1)), (error) => {
    assert.ok(error instanceof DevicesRefused);
    assert.match(error.message, /Unknown savevm section/);
    return true;
  });
});
