// `berth org agent-tokens` and `revoke-agent-token`: tokens of the org's members.
import { accessOf } from '../access/agent-tokens.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { plainText } from '../output/plain-text.ts';
import { until } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { checkResourceId } from '../service/resource-id.ts';

export async function listOrgTokens({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.listOrgAgentTokens({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'member', value: ({ email }) => email },
      { title: 'name', value: ({ name }) => name },
      { title: 'access', value: accessOf },
      { title: 'sso', value: ({ viaSso }) => (viaSso ? 'yes' : 'no') },
      { title: 'expires', value: ({ expiresAt }) => until(expiresAt) },
    ],
    answer.agentTokens,
    'no member has a personal agent token',
  );
}

export async function revokeOrgToken(
  context: CliContext,
  { args: [typed], options }: Input<{ yes?: true }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const tokenId = checkResourceId('token', typed);
  await confirmLoss(context, `Revoke the token ${tokenId} for the org? Clients that use it will be refused.`, options);
  const answer = await berth.raw.revokeOrgAgentToken({ path: { orgId: await orgId(), tokenId }, signal });
  if (out.json) out.object(answer);
  else out.line(`revoked the token ${tokenId} (${plainText(answer.agentToken.name)}) for the org`);
}
