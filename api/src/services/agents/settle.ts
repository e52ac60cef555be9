// Settles turns whose delivery is unknown: asks the guest, and declares a turn undelivered that it
// never took. After that the turn can never run.
import { getAgentTurn, voidAgentTurn } from '@berth/protocol/calls/agents.ts';
import type { GuestTurn } from '@berth/protocol/agents.ts';
import type { AgentSessionRow } from '../../store/agents/sessions.ts';
import { listActiveTurns } from '../../store/agents/turns.ts';
import type { ServiceContext } from '../context/context.ts';

/** Longer than the deadline of a message's delivery, which a void would make fail. */
const DELIVERY_MS = 20_000;

interface SessionAt {
  sandbox: { id: string };
  session: Pick<AgentSessionRow, 'id'>;
  hostUrl: string;
}

/**
 * Active turns that the view may not have, as the guest has them. Voids those that were sent to
 * this run, longer ago than a delivery takes, and never arrived. With `inspect` false, voids
 * nothing.
 */
export async function settleUncertain(
  context: Pick<ServiceContext, 'db' | 'hosts'>,
  { sandbox, session, hostUrl }: SessionAt,
  runId: string,
  inspect = true,
): Promise<Map<string, GuestTurn | null>> {
  const host = context.hosts.at(hostUrl);
  const found = new Map<string, GuestTurn | null>();
  for (const turn of await listActiveTurns(context.db, session.id)) {
    const request = { vmId: sandbox.id, params: { sessionId: session.id, turnId: turn.id } };
    const known = (await host.call(getAgentTurn, request)).turn;
    const isLost = known === null && turn.state === 'sending';
    if (!isLost) found.set(turn.id, known);
    else if (inspect && turn.run_id === runId && turn.dispatched_ms_ago > DELIVERY_MS)
      found.set(turn.id, (await host.call(voidAgentTurn, request)).turn);
  }
  return found;
}
