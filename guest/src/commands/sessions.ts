// Ends whole POSIX sessions: SIGHUP to every process group, later SIGKILL to the remaining ones.
// For commands whose caller has disconnected. A process that called setsid has left the session,
// like any daemon.
import { readdirSync, readFileSync } from 'node:fs';
import { signalGroup } from './process-groups.ts';

/** Time for programs to clean up after SIGHUP. */
const GRACE_MS = 5_000;
/** Timeout for a killed process to exit (uninterruptible system call). */
const GONE_DEADLINE_MS = 5_000;
const POLL_INTERVAL_MS = 50;

interface Ending {
  killAtMs: number;
  gone: PromiseWithResolvers<void>;
}

export class PosixSessions {
  readonly #ending = new Map<number, Ending>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * Ends the session of this leader, which is running or has just exited. Resolves when no process
   * of the session runs, or when killed processes do not exit in time. Never rejects.
   */
  end(leader: number, graceMs: number = GRACE_MS): Promise<void> {
    const killAtMs = performance.now() + graceMs;
    const known = this.#ending.get(leader);
    if (known !== undefined) {
      known.killAtMs = Math.min(known.killAtMs, killAtMs);
    } else {
      this.#ending.set(leader, { killAtMs, gone: Promise.withResolvers<void>() });
      for (const group of groupsOf(new Set([leader])).get(leader) ?? []) {
        signalGroup(group, graceMs > 0 ? 'SIGHUP' : 'SIGKILL');
        // A stopped process handles SIGHUP only after SIGCONT.
        signalGroup(group, 'SIGCONT');
      }
    }
    this.#timer ??= setInterval(() => this.#poll(), POLL_INTERVAL_MS);
    return (this.#ending.get(leader) as Ending).gone.promise;
  }

  #poll(): void {
    const nowMs = performance.now();
    const groups = groupsOf(new Set(this.#ending.keys()));
    for (const [leader, { killAtMs, gone }] of this.#ending) {
      const left = groups.get(leader);
      if (left === undefined || nowMs > killAtMs + GONE_DEADLINE_MS) {
        if (left !== undefined) console.error(`processes of the session ${leader} were killed and are still there`);

        this.#ending.delete(leader);
        gone.resolve();
      } else if (nowMs >= killAtMs) {
        // Repeated: a process may fork while it is being killed.
        left.forEach((group) => signalGroup(group, 'SIGKILL'));
      }
    }
    if (this.#ending.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

/** Running process groups per session. Zombies do not count: they wait for their parent. */
function groupsOf(sessions: ReadonlySet<number>): Map<number, Set<number>> {
  const groups = new Map<number, Set<number>>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;

    const [state, , group = 0, session = 0] = statOf(name);
    if (state === 'Z' || state === 'X' || !sessions.has(Number(session))) continue;

    const known = groups.get(Number(session)) ?? new Set();
    groups.set(Number(session), known.add(Number(group)));
  }
  return groups;
}

/** State, parent, process group and session of a process; empty when it is gone. */
function statOf(pid: number | string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name in parentheses is chosen by the program and may contain anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 4);
  } catch {
    return [];
  }
}
