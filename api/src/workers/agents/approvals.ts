// Makes agents ask for approval again, on a single replica: those of sessions that were started
// without approvals, after their project was set back to `ask`. Also after a wake, which continues
// turns.
import { requireAgentApprovals } from '@berth/protocol/calls/agents.ts';
import { isAgentRefusal } from '../../services/agents/failure.ts';
import { listUnattended, unmarkUnattended, type UnattendedSession } from '../../store/agents/unattended.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

export const AGENT_APPROVALS_EVERY_MS = 1_000;
/** Concurrent calls per host. */
const AT_ONCE = 16;

interface AgentApprovalsOptions {
  context: Pick<StepContext, 'db' | 'hosts' | 'log' | 'stopping'>;
  session: Pick<ReplicaSession, 'isLeader'>;
}

export class AgentApprovals {
  readonly #options: AgentApprovalsOptions;
  /** Calls in flight by session, with their host. */
  readonly #calls = new Map<string, { hostUrl: string; call: Promise<void> }>();

  constructor(options: AgentApprovalsOptions) {
    this.#options = options;
  }

  /** Starts the calls and waits for none: a host that does not respond delays no other. */
  async tick(): Promise<void> {
    const { context, session } = this.#options;
    if (!(await session.isLeader('agent-approvals'))) return;
    for (const unattended of await listUnattended(context.db)) {
      const { id, host_url: hostUrl } = unattended;
      const atHost = [...this.#calls.values()].filter((one) => one.hostUrl === hostUrl).length;
      if (this.#calls.has(id) || atHost >= AT_ONCE) continue;
      const call = this.#require(unattended).finally(() => this.#calls.delete(id));
      this.#calls.set(id, { hostUrl, call });
    }
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    await Promise.all([...this.#calls.values()].map(({ call }) => call));
  }

  /** Never rejects; a call that fails is repeated. */
  async #require({ id, sandbox_id: sandboxId, host_url: hostUrl }: UnattendedSession): Promise<void> {
    const { db, hosts, log, stopping } = this.#options.context;
    try {
      const request = { vmId: sandboxId, params: { sessionId: id } };
      await hosts.at(hostUrl).call(requireAgentApprovals, request, { signal: stopping });
      await unmarkUnattended(db, id);
      log.info({ sandboxId, sessionId: id }, 'the agent of a session asks for approval again');
    } catch (error) {
      if (stopping.aborted) return;
      log.warn({ err: error, sandboxId, sessionId: id }, 'could not make the agent of a session ask for approval');
      // Only a recovery changes sessions of earlier guests.
      if (isAgentRefusal(error) && error.code === 'agent_unsupported')
        await unmarkUnattended(db, id).catch(() => undefined);
    }
  }
}
