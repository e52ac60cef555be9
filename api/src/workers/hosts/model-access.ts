// Gives the VMs of a host the model keys of their agents: after a change of the keys, and after a
// wake or a start of the host daemon, which forget them. The host lists the version of each VM.
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { VmView } from '@berth/protocol/host.ts';
import type { HostClient } from '../../hosts/client.ts';
import { keysInForce, modelVersionOf } from '../../rules/agents/model-access.ts';
import { readModelAccess } from '../../services/agents/model-access.ts';
import { listModelKeys } from '../../store/agents/credentials.ts';
import type { SandboxFence } from '../../store/sandboxes/lifecycle.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Concurrent calls per host. */
const AT_ONCE = 8;

export class ModelAccessRepair {
  readonly #context: StepContext;
  readonly #client: HostClient;
  /** VMs with keys of another version, without a call in flight. The next list replaces it. */
  #waiting: Pick<SandboxFence, 'id' | 'epoch'>[] = [];
  /** Calls in flight by VM. */
  readonly #sending = new Map<string, Promise<void>>();

  constructor(context: StepContext, client: HostClient) {
    this.#context = context;
    this.#client = client;
  }

  /** Starts the calls to the listed VMs and waits for none. Repeat it: it retries what failed. */
  async repair(rows: readonly SandboxFence[], vms: ReadonlyMap<string, VmView>): Promise<void> {
    const users = rows.filter(({ id, status }) => {
      return SANDBOX_STATES[status].awake && vms.get(id)?.modelVersion !== undefined;
    });
    this.#waiting = [];
    if (users.length === 0) return;
    const { db, log, settings, stopping } = this.#context;
    const ids = users.map(({ id }) => id);
    try {
      const keys = keysInForce(await listModelKeys(db, ids), settings.modelEndpoints);
      const byVm = Map.groupBy(keys, ({ sandbox_id: id }) => id);
      this.#waiting = users.filter(
        ({ id }) => !this.#sending.has(id) && vms.get(id)?.modelVersion !== modelVersionOf(byVm.get(id) ?? []),
      );
      this.#sendNext();
    } catch (error) {
      // The other repairs go on.
      if (!stopping.aborted) log.warn({ err: error }, 'could not compare the model keys of VMs');
    }
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    this.#waiting = [];
    await Promise.all(this.#sending.values());
  }

  #sendNext(): void {
    while (this.#sending.size < AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const sending = this.#send(next).finally(() => {
        this.#sending.delete(next.id);
        this.#sendNext();
      });
      this.#sending.set(next.id, sending);
    }
  }

  /** Never rejects. */
  async #send({ id, epoch }: Pick<SandboxFence, 'id' | 'epoch'>): Promise<void> {
    const { db, log, stopping } = this.#context;
    try {
      const sandbox = await findSandbox(db, id);
      if (sandbox?.epoch !== epoch) return;
      const access = await readModelAccess(this.#context, sandbox);
      await this.#client.setModelAccess(id, { epoch, ...access }, { signal: stopping });
      log.info({ sandboxId: id, version: access.version }, 'gave a VM the model key of its agent');
    } catch (error) {
      if (!stopping.aborted) log.warn({ err: error, sandboxId: id }, 'could not give a VM its model keys');
    }
  }
}
