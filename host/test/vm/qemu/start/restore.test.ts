import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { TEMPLATE_SIZE } from '../../../../src/vm/machine-size.ts';
import { DriverError } from '../../../../src/vm/driver.ts';
import { DevicesRefused, loadDevices, resumeTemplate } from '../../../../src/vm/qemu/start/restore.ts';
import type { PausedQemu } from '../../../../src/vm/qemu/start/start.ts';
import { pretendMemory } from '../machine/pretended-memory.ts';

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

test('a restore replaces the kernel secrets of the template before the vCPUs run', async (context) => {
  const { qemu, process, read } = await pretendMemory(context);
  const kernelSecrets = [{ symbol: 'net_secret', offset: 64, sizeBytes: 16 }];
  let atResume: Buffer | undefined;
  const paused = {
    process,
    qmp: qemu.qmp,
    launched: { deviceState: { end: () => undefined } },
    signal: AbortSignal.timeout(60_000),
    elapsedMs: () => 0,
    run: async () => {
      atResume = (await read(80)).subarray(64);
    },
  } as unknown as PausedQemu;
  await resumeTemplate(paused, { deviceState: Buffer.alloc(1), kernelSecrets }, TEMPLATE_SIZE);
  assert.equal(atResume?.length, 16);
  assert.notDeepEqual(atResume, Buffer.alloc(16));
});
