// `berth agent start` and `recover`.
import type { AgentSession } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { agentSessionId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';
import { openSession, requireOperation } from './session.ts';

export async function startSession(context: CliContext, { args: [typed] }: Input): Promise<void> {
  const { connect, out } = context;
  const id = await findSandbox(context, typed);
  const session = await startIn(context, (await connect()).berth.agents.start(id, { signal: context.signal }), id);
  if (out.json) {
    out.object(session.data);
    return;
  }
  out.line(session.id);
  out.hint(
    `${plainText(session.data.agentLabel)} is ready; send a message with berth agent send ${session.id} TEXT, ` +
      `or talk to it with berth agent chat ${session.id}`,
  );
}

/** Shows the progress of a start. After a signal, names the session that may exist. */
export async function startIn(
  { out, signal }: Pick<CliContext, 'out' | 'signal'>,
  started: Promise<AgentSession>,
  id: string,
): Promise<AgentSession> {
  try {
    return await out.step('starting the agent', async () => await started);
  } catch (error) {
    if (signal.aborted) out.hint(`the session may have been created: berth agent ls --sandbox ${id} lists it`);
    throw error;
  }
}

export async function recoverSessions(context: CliContext, { args }: Input): Promise<number> {
  const { out, signal } = context;
  const ids = args.map(agentSessionId);
  return await runEach(context, ids, {
    progressText: 'recovering',
    work: async (id) => {
      const { session } = await openSession(context, id);
      // Recovering a ready session succeeds.
      if (!session.can('messages')) requireOperation(session, { operation: 'recovery', doing: `recover ${id}` });
      return await session.recover({ signal });
    },
    show: ({ id, data }) => (out.json ? out.object(data) : out.line(`${id} ${plainText(data.bridgeState)}`)),
  });
}
