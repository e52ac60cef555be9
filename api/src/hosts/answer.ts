// What an answer of a host says: its JSON, or the host's refusal. Knows no verb; client.ts asks.
import { hostError } from '@berth/protocol/host.ts';
import { HostError } from './error.ts';
import type { Exchanged } from './exchange.ts';

/**
 * The JSON of a successful answer; throws the host's refusal, or what is wrong with what it sent.
 */
export function jsonIn({ status, body, whole }: Exchanged, where: string): unknown {
  let json: unknown;
  try {
    // Leading spaces that kept the connection busy are white space to JSON too.
    json = JSON.parse(body.toString('utf8'));
  } catch (error) {
    if (!whole) throw brokenOff(where);
    throw new HostError('invalid_answer', `${where}: status ${status} with a body that is not JSON`, { cause: error });
  }
  const refused = hostError.safeParse(json);
  if (refused.success) {
    const { code, message, shortage, errno } = refused.data.error;
    throw new HostError(code, message, { shortage, errno });
  }
  if (!whole) throw brokenOff(where);
  if (status !== 200)
    throw new HostError('invalid_answer', `${where}: status ${status} without an error the protocol knows`);
  return json;
}

/** The failure of a call whose connection broke after the answer had begun. */
export function brokenOff(where: string): HostError {
  return new HostError('host_unreachable', `${where}: the connection broke in the middle of the answer`);
}
