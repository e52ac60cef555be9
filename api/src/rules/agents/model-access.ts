// Which stored keys give access to models, and the version by which a host reports them. Pure.
import { AGENT_PROVIDERS } from '@berth/contract/agents/credentials.ts';
import type { ModelEndpoints } from './model-endpoints.ts';

/** A stored key without its secret. Every new key of an agent has another revision. */
interface ModelKey {
  agent: string;
  endpoint: string;
  revision: number;
}

/** Keys of agents and endpoints that are on the operator's list today. */
export function keysInForce<K extends ModelKey>(keys: readonly K[], endpoints: ModelEndpoints): K[] {
  return keys.filter(({ agent, endpoint }) => {
    const provider = Object.entries(AGENT_PROVIDERS).find(([name]) => name === agent)?.[1];
    return provider !== undefined && endpoints[provider].includes(endpoint);
  });
}

/** Equal for equal keys, in any order. Discloses none of them. */
export function modelVersionOf(keys: readonly ModelKey[]): string {
  return keys
    .map(({ agent, revision }) => `${agent}:${revision}`)
    .toSorted()
    .join(' ');
}
