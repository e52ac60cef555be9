// Personal agent tokens of the first owner of an installation.
import { call, type Caller } from './client.ts';

/** A personal agent token. @param caller with an access token */
export async function agentTokenOf(caller: Caller, access: 'read_only' | 'read_send' = 'read_send'): Promise<string> {
  const grants = access === 'read_only' ? {} : { canApprove: true, canWake: true };
  const { status, body } = await call(caller, 'POST', '/v1/me/agent-tokens', { name: access, access, ...grants });
  if (status !== 201) throw new Error(`no agent token: ${JSON.stringify(body)}`);
  return (body as { token: string }).token;
}
