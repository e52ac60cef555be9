// `berth project agent-credentials`: the model keys of a project. A key is read from stdin or a
// prompt, and never shown.
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import { readSecret } from '../interaction/secret-input.ts';
import { projectMeant } from './projects.ts';

const AGENTS = ['agent_one', 'agent_two'] as const;

export async function agentCredentials(
  context: CliContext,
  { args: [action, agent, typed], options: { endpoint } }: Input<{ endpoint?: string }>,
): Promise<void> {
  if (endpoint !== undefined && action !== 'set') throw new UsageError('--endpoint requires the action set');
  if (action === 'ls') return await listCredentials(context, agent, typed);
  if (agent === undefined) throw new UsageError(`no agent given; use one of: ${AGENTS.join(', ')}`);

  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const path = { orgId: await orgId(), projectId: await projectMeant(context, typed), agent };
  const answer =
    action === 'rm'
      ? await berth.raw.deleteAgentCredentials({ path, signal })
      : await berth.raw.putAgentCredentials({
          path,
          body: {
            apiKey: await readSecret(context, 'key of the model provider'),
            ...(endpoint === undefined ? {} : { endpoint }),
          },
          signal,
        });
  if (out.json) out.object(answer);
  else out.line(`${action === 'rm' ? 'deleted' : 'stored'} the key of ${plainText(agent)}`);
}

async function listCredentials(
  context: CliContext,
  agent: string | undefined,
  typed: string | undefined,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const project = { orgId: await orgId(), projectId: await projectMeant(context, typed) };
  const found = await Promise.all(
    (agent === undefined ? AGENTS : [agent]).map(
      async (one) => await berth.raw.getAgentCredentials({ path: { ...project, agent: one }, signal }),
    ),
  );
  if (out.json) return out.object({ agentCredentials: found.map((answer) => answer.agentCredentials) });
  out.table(
    [
      { title: 'agent', value: (one) => one.agent, whole: true },
      { title: 'key', value: ({ stored }) => (stored ? 'stored' : 'none'), least: 6 },
      { title: 'endpoint', value: (one) => one.endpoint },
      { title: 'updated', value: ({ updatedAt }) => updatedAt && since(updatedAt), least: 8 },
    ],
    found.map((answer) => answer.agentCredentials),
    '',
  );
}
