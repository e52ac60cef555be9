// The state machine of a live session, with an agent under the test's control and a clock that only
// the test moves.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock, test, type TestContext } from 'node:test';
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import type { AgentDriver, TurnEnd } from '../../src/bridge/driver.ts';
import { SessionFiles } from '../../src/bridge/files.ts';
import { Session } from '../../src/bridge/session.ts';

/** Longest time from an interrupt to the end of its turn and commands. */
const ENDED_MS = 20_000;
const VIEW: GuestAgentView = {
  ...{ sessionId: `ags_${'a'.repeat(24)}`, agent: 'agent_one', surface: 'managed', runId: '0'.repeat(32) },
  ...{ bridge: 'starting', bridgeVersion: 7, bridgeReason: null, revision: 1 },
  ...{ turn: null, prompt: null, lastSeq: 0, signs: 0 },
};

async function startSession(t: TestContext, interrupt: () => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-session-'));
  const files = new SessionFiles(folder);
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(async () => {
    mock.timers.reset();
    files.close();
    await rm(folder, { recursive: true });
  });
  const done: string[] = [];
  const state = {
    ...{ view: VIEW, bridgeSha256: '', savedId: null, approvals: 'ask' as const },
    ...{ nextRequest: 1, nextSeq: 1, nextNumber: 1 },
  };
  const session = new Session(files, state, {
    changed: () => undefined,
    killSince: (_ticks, agent) => Promise.resolve(void done.push(`kill ${agent ? 'agent and commands' : 'commands'}`)),
    restart: () => Promise.resolve(void done.push('restart')),
  });
  const driver: AgentDriver = {
    ...{ savedId: 'saved', pid: 1, interrupt, close: () => Promise.resolve() },
    run: () => new Promise<TurnEnd>(() => undefined),
  };
  session.ready(driver);
  session.take(`trn_${'a'.repeat(24)}`, 'deaf', 'user', true);
  return { session, done };
}

for (const [what, interrupt] of [
  ['ignores the interrupt', () => Promise.resolve()],
  ['never responds to the interrupt', () => new Promise<void>(() => undefined)],
  ['refuses the interrupt', () => Promise.reject(new Error('no'))],
] as const) {
  test(`an agent that ${what} is killed with its commands, and its turn is canceled, within 20 s`, async (t) => {
    const { session, done } = await startSession(t, interrupt);
    session.interrupt();
    mock.timers.tick(ENDED_MS / 2);
    // A repeated interrupt gives no more time.
    session.interrupt();
    assert.deepEqual([session.view.turn?.state, done], ['interrupting', []]);
    mock.timers.tick(ENDED_MS / 2);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([session.view.turn?.state, session.view.turn?.reason], ['canceled', null]);
    assert.deepEqual([session.view.bridge, done], ['starting', ['kill agent and commands', 'restart']]);
  });
}
