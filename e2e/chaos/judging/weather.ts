// What was broken on purpose, and when: the only excuses that an answer, a status or a loss may
// have. Judges nothing itself. `api`, `host`, `database`: the part was down. `disk`: it was full.
// `qemu`: it was killed, or stood still. `guest`: its daemon stood still.
import { setTimeout as delay } from 'node:timers/promises';

export type Trouble = 'api' | 'host' | 'database' | 'disk' | 'qemu-killed' | 'qemu-hangs' | 'guest-hangs';

export interface Spell {
  readonly trouble: Trouble;
  /** Whose machine it is; null for what all share. */
  readonly sandboxId: string | null;
  readonly fromMs: number;
  /** null while it lasts. */
  toMs: number | null;
}

/**
 * A trouble that is over still shows for this long: steps are tried again, connections come back.
 */
const AFTERMATH_MS = 15_000;

export const SHARED_TROUBLES = ['api', 'host', 'database', 'disk'] as const satisfies readonly Trouble[];
export const MACHINE_TROUBLES = ['qemu-killed', 'qemu-hangs', 'guest-hangs'] as const satisfies readonly Trouble[];

export class Weather {
  readonly #spells: Spell[] = [];

  begin(trouble: Trouble, sandboxId: string | null = null, fromMs = Date.now()): Spell {
    const spell: Spell = { trouble, sandboxId, fromMs, toMs: null };
    this.#spells.push(spell);
    return spell;
  }

  end(spell: Spell): void {
    spell.toMs ??= Date.now();
  }

  /** Ends what lasts for one machine. */
  endOf(trouble: Trouble, sandboxId: string): void {
    for (const spell of this.#spells) if (spell.trouble === trouble && spell.sandboxId === sandboxId) this.end(spell);
  }

  /**
   * Whether one of the troubles, shared or of this sandbox, was there or had just been there
   * between the two moments.
   */
  excuses(troubles: readonly Trouble[], fromMs: number, toMs: number, sandboxId: string | null = null): boolean {
    return this.#spells.some(
      (spell) =>
        troubles.includes(spell.trouble) &&
        (spell.sandboxId === null || spell.sandboxId === sandboxId) &&
        spell.fromMs <= toMs &&
        (spell.toMs === null || spell.toMs + AFTERMATH_MS >= fromMs),
    );
  }

  /** The spells of a trouble that began between the two moments. */
  beganBetween(trouble: Trouble, fromMs: number, toMs: number, sandboxId: string | null = null): Spell[] {
    return this.#spells.filter(
      (spell) =>
        spell.trouble === trouble && spell.sandboxId === sandboxId && spell.fromMs >= fromMs && spell.fromMs <= toMs,
    );
  }

  /** The last moment before `atMs` at which the trouble was not there. */
  lastFreeOf(trouble: Trouble, atMs: number): number {
    const covering = this.#spells.filter(
      (spell) => spell.trouble === trouble && spell.fromMs <= atMs && (spell.toMs ?? Infinity) >= atMs,
    );
    return Math.min(atMs, ...covering.map(({ fromMs }) => fromMs));
  }

  /**
   * How far back something may lie that was not noticed before `atMs`: `afterMs` as a rule, and
   * further while those who notice were not there, or had just come back.
   */
  unnoticedSince(troubles: readonly Trouble[], atMs: number, afterMs: number): number {
    let fromMs = atMs - afterMs;
    const away = this.#spells.filter(({ trouble, sandboxId }) => troubles.includes(trouble) && sandboxId === null);
    for (const spell of away.sort((a, b) => b.fromMs - a.fromMs))
      if (spell.fromMs <= atMs && (spell.toMs ?? Infinity) >= fromMs) fromMs = Math.min(fromMs, spell.fromMs - afterMs);

    return fromMs;
  }

  get lasting(): Spell[] {
    return this.#spells.filter(({ toMs }) => toMs === null);
  }

  /** Resolves when none of the shared troubles lasts. */
  async cleared(signal: AbortSignal): Promise<void> {
    while (this.lasting.some(({ sandboxId }) => sandboxId === null)) await delay(100, undefined, { signal });
  }
}
