// Room for another live bridge: the bridge that is idle for the longest time stops first.
import { readFileSync } from 'node:fs';
import { AGENT_SESSIONS } from '@berth/protocol/agent-errors.ts';
import { AgentRefused } from '../bridge/refusal.ts';
import type { AgentSession } from './agent-session.ts';

const KIB = 1_024;

/**
 * Stops idle bridges until there is room, and takes it; throws if the others start or have active
 * turns. @param take called in the moment in which there is room
 */
export async function makeRoom(
  sessions: () => readonly AgentSession[],
  needsMib: number,
  take: () => void,
  live: number = AGENT_SESSIONS.live,
  availableMib: () => number = readAvailableMib,
): Promise<void> {
  for (;;) {
    const running = sessions().filter(({ isLive }) => isLive);
    const isFull = running.length >= live;
    if (!isFull && availableMib() >= needsMib) {
      take();
      return;
    }

    const [oldest] = running.filter(({ isIdle }) => isIdle).toSorted((a, b) => a.lastUsedMs - b.lastUsedMs);
    if (oldest === undefined) {
      throw new AgentRefused(
        'agent_session_limit',
        isFull
          ? `${live} agent sessions start or have an active turn: wait for one of them`
          : `the agent needs ${needsMib} MiB of free memory: resize the sandbox, or stop other programs`,
      );
    }
    await oldest.stop('memory');
  }
}

function readAvailableMib(): number {
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'latin1'))?.[1] ?? 0) / KIB;
}
