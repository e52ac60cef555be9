// The caps of an org and its projects as a test sets them, and which of them are reached.
import type { UsageModel } from './usage-model.ts';

const HOUR_MS = 3_600_000;

export class CapModel {
  readonly #includedHours: number | null;
  readonly #ofProjects = new Map<string, number>();
  orgLimit: number | null = null;
  overage = false;

  constructor(includedHours: number | null) {
    this.#includedHours = includedHours;
  }

  /** The org's cap as shown, also if nothing stops at it. */
  get shown(): number | null {
    return this.orgLimit ?? (this.overage ? null : this.#includedHours);
  }

  setProject(projectId: string, limit: number | null): void {
    if (limit === null) this.#ofProjects.delete(projectId);
    else this.#ofProjects.set(projectId, limit);
  }

  /** Whether a sandbox of the project may not be awake. */
  isReached(model: UsageModel, window: { fromMs: number; toMs: number }, projectId: string): boolean {
    const ofProject = this.#ofProjects.get(projectId);
    if (ofProject !== undefined && model.usedMs({ ...window, projectId }) >= Math.round(ofProject * HOUR_MS))
      return true;
    const ofOrg = this.overage ? null : (this.orgLimit ?? this.#includedHours);
    return ofOrg !== null && model.usedMs(window) >= Math.round(ofOrg * HOUR_MS);
  }
}
