// Settled result of a verb, on a host of any speed. The API responds at the latest after a bounded
// wait, with the transition still in progress; tests wait here for its end. A response that reports
// a transition before that wait is over fails the test.
import assert from 'node:assert/strict';
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { findSandbox } from '../../src/store/sandboxes/sandboxes.ts';
import type { Database, SandboxRow } from '../../src/store/database/schema.ts';
import type { Answer, TestApi } from './api.ts';
import { untilTrue } from '../../../os/test/until.ts';

/** Tolerance between clocks and timers of two processes. */
const CLOCK_MS = 50;
const WAIT_IS_OVER_MS = TRANSITION_WAIT_MS - CLOCK_MS;

const isInTransition = (row: Pick<SandboxRow, 'status' | 'resizing'>): boolean =>
  !SANDBOX_STATES[row.status].settled || row.resizing;

/** The row returned after `tookMs`, or the settled row if it was in transition. */
export async function settledRow(db: Database, answered: SandboxRow, tookMs: number): Promise<SandboxRow> {
  if (!isInTransition(answered)) return answered;
  assert.ok(tookMs >= WAIT_IS_OVER_MS, `answered ${answered.status} after ${tookMs} ms`);
  return await untilSettled(db, answered.id);
}

/** The response of a verb that waits, with the settled sandbox. Refusals are returned unchanged. */
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
    return row !== undefined && !isInTransition(row);
  });
  assert.ok(row !== undefined);
  return row;
}
