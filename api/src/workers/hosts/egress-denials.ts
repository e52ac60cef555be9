// Notes the attempts that a host refused under egress policies, as its list of VMs reports them.
import type { VmView } from '@berth/protocol/host.ts';
import { EGRESS_DENIED_EVERY_MS, noteEgressDenied } from '../../services/sandboxes/egress.ts';
import type { SandboxFence } from '../../store/sandboxes/lifecycle.ts';
import type { StepContext } from '../steps/step-context.ts';

interface Noted {
  /** The noted count; null if it waits for its time. */
  key: string | null;
  /** Earliest time of the next entry. */
  dueAtMs: number;
}

export class EgressDenials {
  readonly #context: StepContext;
  /** Saves queries only; the rows bound the rate. Keyed by sandbox id. */
  #noted = new Map<string, Noted>();

  constructor(context: StepContext) {
    this.#context = context;
  }

  /** Notes what is new. A failure is logged and repeated by the next call. */
  async note(rows: readonly SandboxFence[], vms: ReadonlyMap<string, VmView>): Promise<void> {
    const noted = new Map<string, Noted>();
    for (const { id, epoch } of rows) {
      const denied = vms.get(id)?.egressDenied;
      if (denied === undefined) continue;
      const key = `${denied.sinceUnixMs}:${denied.count}`;
      const before = this.#noted.get(id);
      if (before !== undefined && (before.key === key || performance.now() < before.dueAtMs)) {
        noted.set(id, before);
        continue;
      }
      try {
        const waitMs = await this.#context.db
          .transaction()
          .execute((trx) => noteEgressDenied(trx, { sandboxId: id, epoch }, denied));
        const dueAtMs = performance.now() + (waitMs ?? EGRESS_DENIED_EVERY_MS);
        noted.set(id, { key: waitMs === null ? key : null, dueAtMs });
      } catch (error) {
        if (!this.#context.stopping.aborted)
          this.#context.log.warn({ err: error, sandboxId: id }, 'could not note refused connections');
      }
    }
    this.#noted = noted;
  }
}
