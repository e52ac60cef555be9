// Effect of a guest's report on the recorded state of a turn, for all states.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TURN_STATES, turnState, type TurnState } from '@berth/contract/agents/state.ts';
import type { GuestTurn } from '@berth/protocol/agents.ts';
import { isNewer, turnAfter } from '../../../src/rules/agents/turn.ts';

const RUN = 'run-1';
const SEEN: readonly GuestTurn['state'][] = [
  'running',
  'waiting',
  'interrupting',
  'completed',
  'failed',
  'canceled',
  'void',
];

const seen = (state: GuestTurn['state'], reason: GuestTurn['reason'] = null): GuestTurn => {
  return { turnId: 'trn_a', state, reason, startedUnixMs: 1, endedUnixMs: null };
};
const recorded = (state: TurnState, runId: string | null = RUN) => ({ state, run_id: runId });

test('a report is followed exactly where the table allows the step', () => {
  for (const before of turnState.options) {
    for (const report of SEEN) {
      const after = turnAfter(recorded(before), seen(report), RUN);
      const wanted: TurnState = report === 'void' ? 'failed' : report;
      const isLegal = TURN_STATES[before].next.includes(wanted);
      assert.equal(after?.state ?? null, isLegal ? wanted : null, `${before}, reported ${report}`);
    }
  }
});

test('a failed turn has a reason: the reported one, or that the agent failed', () => {
  assert.deepEqual(turnAfter(recorded('running'), seen('failed', 'bridge_ended'), RUN), {
    state: 'failed',
    reason: 'bridge_ended',
  });
  assert.deepEqual(turnAfter(recorded('running'), seen('failed'), RUN), { state: 'failed', reason: 'agent_error' });
  assert.deepEqual(turnAfter(recorded('sending'), seen('void'), RUN), { state: 'failed', reason: 'not_delivered' });
  assert.equal(turnAfter(recorded('running'), seen('completed', 'agent_error'), RUN)?.reason, null);
});

test('a turn that the guest does not have is lost with its run, or with its files', () => {
  const lost = { state: 'failed', reason: 'machine_lost' };
  for (const state of ['sending', 'running', 'waiting', 'interrupting'] as const) {
    assert.deepEqual(turnAfter(recorded(state), null, 'run-2'), lost);
    assert.deepEqual(turnAfter(recorded(state), undefined, 'run-2'), lost);
    assert.equal(turnAfter(recorded(state), undefined, RUN), null, 'not asked says nothing');
  }
  assert.equal(turnAfter(recorded('sending'), null, RUN), null, 'may still arrive');
  assert.deepEqual(turnAfter(recorded('running'), null, RUN), { state: 'failed', reason: 'bridge_ended' });
  for (const state of ['completed', 'failed', 'canceled'] as const)
    assert.equal(turnAfter(recorded(state), null, 'run-2'), null);
});

test('a view is newer by its revision within a run, and by the epoch between runs', () => {
  const at = (epoch: number, runId: string | null, revision: number) => ({ epoch, runId, revision });
  const known = at(2, RUN, 5);
  assert.equal(isNewer(at(2, RUN, 6), known), true);
  assert.equal(isNewer(at(2, RUN, 5), known), false);
  assert.equal(isNewer(at(2, RUN, 4), known), false, 'a guest that goes backwards');
  assert.equal(isNewer(at(3, RUN, 6), known), true, 'after a sleep and wake');
  assert.equal(isNewer(at(3, RUN, 5), known), false);
  assert.equal(isNewer(at(2, 'run-2', 1), known), true, 'another run of the same epoch');
  assert.equal(isNewer(at(1, 'run-0', 9), known), false, 'a late view of the run before');
  assert.equal(isNewer(at(1, RUN, 6), known), true, 'a late view of the same run');
  assert.equal(isNewer(at(1, null, 1), at(0, null, 0)), true);
});
