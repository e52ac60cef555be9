// What a verb has led to, on a machine of any speed. An answer is held for a bounded time and tells
// what is under way when that is over; a test that asks for the end waits for it here. An answer
// that tells of work under way before that time is over is a failure all the same.
import assert from 'node:assert/strict';
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { findSandbox } from '../../src/store/sandboxes/sandboxes.ts';
import type { Database, SandboxRow } from '../../src/store/database/schema.ts';
import type { Answer, TestApi } from './api.ts';
import { untilTrue } from './until-true.ts';

/** Clocks of two processes, and timers, differ by as much. */
const CLOCK_MS = 50;
const WAIT_IS_OVER_MS = TRANSITION_WAIT_MS - CLOCK_MS;

const isUnderWay = (row: Pick<SandboxRow, 'status' | 'resizing'>): boolean =>
  !SANDBOX_STATES[row.status].settled || row.resizing;

/**
 * The row that a service answered after `tookMs`, or the one that it has become once nothing is
 * under way for it.
 */
export async function settledRow(db: Database, answered: SandboxRow, tookMs: number): Promise<SandboxRow> {
  if (!isUnderWay(answered)) return answered;
  assert.ok(tookMs >= WAIT_IS_OVER_MS, `answered ${answered.status} after ${tookMs} ms`);
  return await untilSettled(db, answered.id);
}

/**
 * The answer of a verb that waits, with the sandbox as it is once nothing is under way for it. A
 * refusal is itself.
 */
export async function settled(api: TestApi, ask: () => Promise<Answer>): Promise<Answer> {
  const startedAt = performance.now();
  const answer = await ask();
  const tookMs = performance.now() - startedAt;
  const answered = answer.body.sandbox as Pick<SandboxRow, 'id' | 'status'> | undefined;
  if (answered === undefined) return answer;
  if (tookMs < WAIT_IS_OVER_MS) {
    assert.ok(SANDBOX_STATES[answered.status].settled, `answered ${answered.status} after ${tookMs} ms`);
    return answer;
  }
  await untilSettled(api.db, answered.id);
  return { ...answer, body: (await api.call('GET', `/v1/sandboxes/${answered.id}`)).body };
}

async function untilSettled(db: Database, sandboxId: string): Promise<SandboxRow> {
  let row: SandboxRow | undefined;
  await untilTrue(`${sandboxId} settles`, async () => {
    row = await findSandbox(db, sandboxId);
    return row !== undefined && !isUnderWay(row);
  });
  assert.ok(row !== undefined);
  return row;
}
