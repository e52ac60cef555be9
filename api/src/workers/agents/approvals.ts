// Makes agents ask for approval again, on a single replica: those of sessions that were started
// without approvals, after their project was set back to `ask`. Also after a wake, which continues
// turns.
import { requireAgentApprovals } from '@berth/protocol/calls/agents.ts';
import { HostError } from '../../hosts/error.ts';
import { isAgentRefusal } from '../../services/agents/failure.ts';
import { listUnattended, unmarkUnattended, type UnattendedSession } from '../../store/agents/unattended.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

export const AGENT_APPROVALS_EVERY_MS = 1_000;
/** Concurrent calls per host. An org gets half of what others leave: its guests may not respond. */
const AT_ONCE = 16;

interface AgentApprovalsOptions {
  context: Pick<StepContext, 'db' | 'hosts' | 'log' | 'stopping'>;
  session: Pick<ReplicaSession, 'isLeader'>;
}

export class AgentApprovals {
  readonly #options: AgentApprovalsOptions;
  /** Calls in flight by session. */
  readonly #calls = new Map<string, { session: UnattendedSession; call: Promise<void> }>();

  constructor(options: AgentApprovalsOptions) {
    this.#options = options;
  }

  /** Starts the calls and waits for none: a host that does not respond delays no other. */
  async tick(): Promise<void> {
    const { context, session } = this.#options;
    if (!(await session.isLeader('agent-approvals'))) return;
    for (const unattended of await listUnattended(context.db)) {
      const { id } = unattended;
      if (this.#calls.has(id) || !this.#hasRoom(unattended)) continue;
      const call = this.#require(unattended).finally(() => this.#calls.delete(id));
      this.#calls.set(id, { session: unattended, call });
    }
  }

  #hasRoom({ host_url: hostUrl, org_id: orgId }: UnattendedSession): boolean {
    const atHost = [...this.#calls.values()].filter(({ session }) => session.host_url === hostUrl);
    const own = atHost.filter(({ session }) => session.org_id === orgId).length;
    return own < (AT_ONCE - (atHost.length - own)) / 2;
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
      // A guest may refuse each second, and must not fill the log.
      const level = error instanceof HostError ? 'debug' : 'warn';
      log[level]({ err: error, sandboxId, sessionId: id }, 'could not make the agent of a session ask for approval');
      // Only a recovery changes sessions of earlier guests.
      if (isAgentRefusal(error) && error.code === 'agent_unsupported')
        await unmarkUnattended(db, id).catch(() => undefined);
    }
  }
}
