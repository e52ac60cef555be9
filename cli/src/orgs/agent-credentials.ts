// `berth project agent-credentials set` and `rm`.
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { readSecret } from '../interaction/secret-input.ts';
import { projectMeant } from './projects.ts';

export async function agentCredentials(
  context: CliContext,
  { args: [action, agent = '', typed], options: { endpoint } }: Input<{ endpoint?: string }>,
): Promise<void> {
  if (action !== 'set' && action !== 'rm')
    throw new UsageError('unknown action', { remedy: 'use: berth project agent-credentials set|rm AGENT' });
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
