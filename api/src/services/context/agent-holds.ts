// Places of held responses about agent sessions (`Prefer: wait`), shared by orgs.
import { AGENT_HOLDS } from '@berth/contract/route/limits.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';

/** Without a free place a response is not held; it is sent at once. */
export function openAgentHolds(): SharedCapacity {
  return new SharedCapacity(AGENT_HOLDS);
}
