// `berth token ls`, `create` and `revoke`: personal agent tokens of the signed-in user.
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';
import { stateOf } from './keys.ts';

interface TokenOptions {
  access?: 'read_only' | 'read_send';
  canApprove?: true;
  canWake?: true;
  expiresInDays?: number;
}

export async function listTokens({ connect, out, signal }: CliContext): Promise<void> {
  const { berth } = await connect();
  const answer = await berth.raw.listAgentTokens({ signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name },
      { title: 'prefix', value: ({ tokenPrefix }) => tokenPrefix },
      { title: 'access', value: accessOf },
      { title: 'state', value: stateOf },
      { title: 'last used', value: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : since(lastUsedAt)) },
    ],
    answer.agentTokens,
    'no personal agent tokens; create one with berth token create NAME',
  );
}

export async function createToken(
  { connect, out, signal }: CliContext,
  { args: [name = ''], options }: Input<TokenOptions>,
): Promise<void> {
  const { access, canApprove, canWake, expiresInDays } = options;
  if (access === 'read_only' && (canApprove === true || canWake === true))
    throw new UsageError('--access read_only cannot be combined with --can-approve or --can-wake');

  const { berth } = await connect();
  const given = { access, canApprove, canWake, expiresInDays };
  const body = {
    name,
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as TokenOptions),
  };
  const answer = await berth.raw.createAgentToken({ body, signal });
  if (out.json) return out.object(answer);
  const { agentToken, token } = answer;
  out.line(token);
  out.note(
    `the token ${agentToken.id} (${plainText(agentToken.name)}): ${stateOf(agentToken)}, ${accessOf(agentToken)}`,
  );
  out.hint('the token is shown only once; revoke it with berth token revoke');
}

export async function revokeToken(
  context: CliContext,
  { args: [typed], options }: Input<{ yes?: true }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth } = await connect();
  const tokenId = checkResourceId('token', typed);
  await confirmLoss(context, `Revoke the token ${tokenId}? Clients that use it will be refused.`, options);
  const answer = await berth.raw.revokeAgentToken({ path: { tokenId }, signal });
  if (out.json) out.object(answer);
  else out.line(`revoked the token ${tokenId} (${plainText(answer.agentToken.name)})`);
}

export function accessOf({
  access,
  canApprove,
  canWake,
}: {
  access: string;
  canApprove: boolean;
  canWake: boolean;
}): string {
  return [access, ...(canApprove ? ['approves'] : []), ...(canWake ? ['wakes'] : [])].join(', ');
}
