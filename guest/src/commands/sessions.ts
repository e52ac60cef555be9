// Ends sessions of processes whole: SIGHUP to every process group, and SIGKILL to those that are
// there some time later. For commands whose caller is gone. Who has left the session (setsid) is
// not of it any more, as with any daemon.
import { readdirSync, readFileSync } from 'node:fs';
import { signalGroup } from './running.ts';

/** What a program may take to tidy up after SIGHUP. */
const GRACE_MS = 2_000;
/**
 * How long a killed process may take to be gone (it may be inside an uninterruptible call) before
 * it is waited for no more.
 */
const GONE_DEADLINE_MS = 5_000;
const LOOK_EVERY_MS = 50;

interface Ending {
  killAtMs: number;
  gone: PromiseWithResolvers<void>;
}

export class Sessions {
  readonly #ending = new Map<number, Ending>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * Ends the session of this leader, which is running or was until just now. Resolves when no
   * process of it runs any more, or some will not be gone although they were killed. Never rejects.
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
        // One that is stopped is to hear of it.
        signalGroup(group, 'SIGCONT');
      }
    }
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
    return (this.#ending.get(leader) as Ending).gone.promise;
  }

  #look(): void {
    const nowMs = performance.now();
    const groups = groupsOf(new Set(this.#ending.keys()));
    for (const [leader, { killAtMs, gone }] of this.#ending) {
      const left = groups.get(leader);
      if (left === undefined || nowMs > killAtMs + GONE_DEADLINE_MS) {
        if (left !== undefined) console.error(`processes of the session ${leader} were killed and are still there`);

        this.#ending.delete(leader);
        gone.resolve();
      } else if (nowMs >= killAtMs) {
        // Again and again: what a process began to start as it was killed is of its group too.
        left.forEach((group) => signalGroup(group, 'SIGKILL'));
      }
    }
    if (this.#ending.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

/**
 * The process groups of each of the sessions in which something runs. A zombie does not: it waits
 * for its parent, however long.
 */
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

/** State, parent, process group and session of a process; nothing when it is gone. */
export function statOf(pid: number | string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // What stands in the parentheses is the program's own name, and may be anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 4);
  } catch {
    return [];
  }
}
