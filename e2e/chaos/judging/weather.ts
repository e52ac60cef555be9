// Weather: the record of injected faults and their times, which are the only excuses for a
// response, a status or a loss. Judges nothing itself. `api`, `host`, `database`: the part was
// down. `disk`: full. `qemu`: killed, or paused. `guest`: its daemon was paused.
import { setTimeout as delay } from 'node:timers/promises';

export type Trouble = 'api' | 'host' | 'database' | 'disk' | 'qemu-killed' | 'qemu-hangs' | 'guest-hangs';

export interface Spell {
  readonly trouble: Trouble;
  /** Sandbox whose VM is affected; null for shared faults. */
  readonly sandboxId: string | null;
  readonly fromMs: number;
  /** null while the fault lasts. */
  toMs: number | null;
}

/** A past fault shows for this long: steps are retried, connections reopen. */
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

  /** Ends the faults of one VM. */
  endOf(trouble: Trouble, sandboxId: string): void {
    for (const spell of this.#spells) if (spell.trouble === trouble && spell.sandboxId === sandboxId) this.end(spell);
  }

  /** True if one of the faults, shared or of this sandbox, lasted or had just ended then. */
  excuses(troubles: readonly Trouble[], fromMs: number, toMs: number, sandboxId: string | null = null): boolean {
    return this.#spells.some(
      (spell) =>
        troubles.includes(spell.trouble) &&
        (spell.sandboxId === null || spell.sandboxId === sandboxId) &&
        spell.fromMs <= toMs &&
        (spell.toMs === null || spell.toMs + AFTERMATH_MS >= fromMs),
    );
  }

  /** Faults of a kind that began in the period. */
  beganBetween(trouble: Trouble, fromMs: number, toMs: number, sandboxId: string | null = null): Spell[] {
    return this.#spells.filter(
      (spell) =>
        spell.trouble === trouble && spell.sandboxId === sandboxId && spell.fromMs >= fromMs && spell.fromMs <= toMs,
    );
  }

  /** Last moment up to `atMs` without the fault. */
  lastFreeOf(trouble: Trouble, atMs: number): number {
    const covering = this.#spells.filter(
      (spell) => spell.trouble === trouble && spell.fromMs <= atMs && (spell.toMs ?? Infinity) >= atMs,
    );
    return Math.min(atMs, ...covering.map(({ fromMs }) => fromMs));
  }

  /**
   * Start of the period whose events may be unnoticed at `atMs`: `afterMs` back, and further if the
   * observers were down or had just returned.
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

  /** Resolves when no shared fault lasts. */
  async cleared(signal: AbortSignal): Promise<void> {
    while (this.lasting.some(({ sandboxId }) => sandboxId === null)) await delay(100, undefined, { signal });
  }
}
