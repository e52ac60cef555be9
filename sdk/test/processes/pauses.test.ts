// Requests of followers whose responses are not held.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { BerthError, type SandboxProcess, type WebSocketConstructor } from '../../src/index.ts';
import { notePauses } from '../clock.ts';
import { against, json, type Answer } from '../scripted-server.ts';

const RUNNING = {
  ...{
    id: 'prc_1',
    sandboxId: 'sbx_1',
    name: null,
    command: 'serve',
    cwd: '/code',
    user: 'berth',
    tty: false,
    stdin: false,
  },
  ...{ status: 'running', exitCode: null, signal: null, reason: null },
  ...{ startedAt: '2026-11-21T09:30:00.000Z', endedAt: null },
};
const EXITED = { ...RUNNING, status: 'exited', exitCode: 0, endedAt: '2026-11-21T09:31:00.000Z' };

/** Requests are counted. */
const noWebSocket = function (): never {
  throw new BerthError('no WebSocket', { code: 'configuration' });
} as unknown as WebSocketConstructor;

async function processOf(t: TestContext, answers: readonly Answer[]): Promise<SandboxProcess> {
  const first = [json(200, { sandbox: exampleSandbox }), json(200, { process: RUNNING })];
  const { berth } = await against(t, [...first, ...answers], { WebSocket: noWebSocket });
  return await (await berth.sandboxes.get('sbx_1')).processes.get('prc_1');
}

test('a wait pauses between responses that are not held, longer each time', async (t) => {
  const answers = Array.from({ length: 6 }, () => json(200, { process: RUNNING }));
  const process = await processOf(t, [...answers, json(200, { process: EXITED })]);
  const pauses = notePauses(t);
  assert.equal((await process.wait()).exitCode, 0);
  assert.equal(pauses.length, 6);
  assert.ok(pauses.every((ms, index) => ms > (pauses[index - 1] ?? 0)));
});

test('the parts of a steady output are read with pauses, except the first 40', async (t) => {
  const parts = Array.from({ length: 60 }, (_, offset) => {
    const cursor = `${offset + 1}.0`;
    const chunk = { stream: 'stdout', offset, lostBytes: 0, data: 'x', encoding: 'utf8', cursor };
    return json(200, { process: RUNNING, chunks: [chunk], cursor, complete: false });
  });
  const end = json(200, { process: EXITED, chunks: [], cursor: '60.0', complete: true });
  const process = await processOf(t, [...parts, end]);
  const pauses = notePauses(t);
  const nowMs = Date.now();
  t.mock.method(Date, 'now', () => nowMs);
  let text = '';
  for await (const chunk of process.output()) text += chunk.text;
  assert.equal(text, 'x'.repeat(60));
  assert.deepEqual(
    pauses,
    Array.from({ length: 20 }, (_, index) => 250 * (index + 1)),
  );
});
