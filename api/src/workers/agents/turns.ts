// Looks at sandboxes with agent sessions, on a single replica, often at those with active turns:
// records the states that guests report, and counts a turn with signs of life as use of its
// sandbox. Stops sessions whose start was lost. Dispatches nothing.
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import { listAgents } from '@berth/protocol/calls/agents.ts';
import { settleUncertain } from '../../services/agents/settle.ts';
import { recordView } from '../../services/agents/records/views.ts';
import { recordActivity } from '../../services/sandboxes/activity-signal.ts';
import { listLiveSessions, stopLostStarts } from '../../store/agents/sessions.ts';
import { listSandboxesWithSessions, type WatchedSandbox } from '../../store/agents/watched.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

export const AGENT_TURNS_EVERY_MS = 5_000;
/** A session without a turn may stop unnoticed, and its sandbox keeps the key of the model. */
export const QUIET_AGENTS_EVERY_MS = 60_000;
/** Concurrent looks per host. */
const AT_ONCE = 4;
const LOOK_MS = 5_000;
/** Longer than a start takes: 75 s of the host's call, after the model keys. */
const START_SECONDS = 120;

interface AgentTurnsOptions {
  context: Pick<StepContext, 'db' | 'hosts' | 'log' | 'stopping'>;
  session: Pick<ReplicaSession, 'isLeader'>;
  /** Looks at sandboxes with an active turn; otherwise at those without one. */
  withTurns: boolean;
}

export class AgentTurns {
  readonly #options: AgentTurnsOptions;
  /** Signs of life of each session at the last look. */
  #signs = new Map<string, number>();

  constructor(options: AgentTurnsOptions) {
    this.#options = options;
  }

  async tick(): Promise<void> {
    const { context, session, withTurns } = this.#options;
    if (!(await session.isLeader('agent-turns'))) {
      this.#signs.clear();
      return;
    }
    await stopLostStarts(context.db, { seconds: START_SECONDS });
    const watched = await listSandboxesWithSessions(context.db, { withTurns });
    const signs = new Map<string, number>();
    const byHost = Map.groupBy(watched, ({ host_url: url }) => url);
    await Promise.all([...byHost.values()].map((those) => this.#lookAtAll(those, signs)));
    this.#signs = signs;
  }

  async #lookAtAll(sandboxes: WatchedSandbox[], signs: Map<string, number>): Promise<void> {
    const waiting = [...sandboxes];
    const lookAtNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        if (this.#options.context.stopping.aborted) return;
        await this.#look(next, signs);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lookAtNext));
  }

  /** A look that fails changes nothing, and is repeated. */
  async #look(sandbox: WatchedSandbox, signs: Map<string, number>): Promise<void> {
    const { db, hosts, log, stopping } = this.#options.context;
    try {
      const options = { signal: stopping, deadlineMs: LOOK_MS };
      const { sessions: views } = await hosts.at(sandbox.host_url).call(listAgents, { vmId: sandbox.id }, options);
      const known = new Set((await listLiveSessions(db, sandbox.id)).map(({ id }) => id));
      let isUsed = false;
      for (const view of views.filter(({ sessionId }) => known.has(sessionId))) {
        await this.#record(sandbox, view);
        isUsed ||= this.#isAlive(view);
        signs.set(view.sessionId, view.signs);
      }
      if (isUsed) await recordActivity({ db, log }, sandbox, 'agent');
    } catch (error) {
      if (!stopping.aborted) log.debug({ err: error, sandboxId: sandbox.id }, 'could not look at agent turns');
    }
  }

  async #record(sandbox: WatchedSandbox, view: GuestAgentView): Promise<void> {
    const { db, hosts } = this.#options.context;
    const at = { sandbox, session: { id: view.sessionId }, hostUrl: sandbox.host_url };
    const turns = await settleUncertain({ db, hosts }, at, view.runId, false);
    await recordView(db, view.sessionId, { epoch: sandbox.epoch, view, turns });
  }

  /** A turn that waits for a person is no use, nor one without events since the last look. */
  #isAlive({ sessionId, turn, signs }: GuestAgentView): boolean {
    const isRunning = turn?.state === 'running' || turn?.state === 'interrupting';
    return isRunning && signs > (this.#signs.get(sessionId) ?? -1);
  }
}
