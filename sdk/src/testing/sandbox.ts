// A sandbox of the test server: record and transitions, from the contract's state table.
import { MACHINE_SIZES, SANDBOX_ACTION_RULES, SANDBOX_STATES } from '../generated/contract-tables.ts';
import { PROFILE_SIZES, REFUSAL_CODES, SIZE_PROFILES } from '../generated/service-tables.ts';
import type {
  CreateSandboxData,
  Egress,
  EgressRequest,
  Preview,
  Project,
  Sandbox,
  SandboxStatus,
} from '../generated/raw/index.ts';
import { TestFiles } from './files/files.ts';
import { Refusal } from './requests/refusal.ts';

export type SandboxAction = keyof typeof SANDBOX_ACTION_RULES;
type SandboxBody = CreateSandboxData['body'];

interface Transition {
  to: SandboxStatus;
  atMs: number;
  arrive: (sandbox: Sandbox) => void;
}

export class TestSandbox {
  readonly record: Sandbox;
  readonly files: TestFiles;
  readonly previews: Preview[] = [];
  /** Values by name, with the time of their set. */
  readonly variables = new Map<string, { value: string; updatedAt: string }>();
  #going: Transition | null = null;
  #awakeMs = 0;
  #awakeSinceMs: number | null = null;
  readonly #onChange: (sandbox: Sandbox) => void;

  /** @param onChange called when a status changes without a request */
  constructor(record: Sandbox, onChange: (sandbox: Sandbox) => void, now: () => number) {
    this.record = record;
    this.files = new TestFiles(now);
    this.#onChange = onChange;
  }

  get status(): SandboxStatus {
    return this.record.status as SandboxStatus;
  }

  /** Applies the transitions due by now. */
  catchUp(nowMs: number): void {
    if (this.#going !== null && nowMs >= this.#going.atMs) {
      const { to, arrive } = this.#going;
      this.#going = null;
      arrive(this.record);
      this.#enter(to, nowMs);
      this.#onChange(this.record);
    }
    const { expiresAt } = this.record;
    if (expiresAt !== null && nowMs >= Date.parse(expiresAt) && SANDBOX_STATES[this.status].awake) {
      this.destroy(nowMs, 0);
      this.catchUp(nowMs);
    }
  }

  /** Reports whether to carry out the action; false for a no-op. Throws the contract's refusal. */
  allows(action: SandboxAction, what: string): boolean {
    const verdict = SANDBOX_ACTION_RULES[action][this.status];
    if (verdict === 'refuse')
      throw new Refusal(REFUSAL_CODES[action], `${what} is not possible: the sandbox is ${this.status}`);
    return verdict === 'do';
  }

  /** The `env` of a program; absent without variables. */
  environment(requested?: Readonly<Record<string, string>>): { env?: Readonly<Record<string, string>> } {
    const own = [...this.variables].map(([name, { value }]) => [name, value] as const);
    const env = { ...Object.fromEntries(own), ...requested };
    return Object.keys(env).length === 0 ? {} : { env };
  }

  sleep(nowMs: number, takesMs: number): void {
    if (this.record.mode === 'ephemeral') {
      this.destroy(nowMs, takesMs);
      return;
    }
    this.#begin('sleeping', 'stopped', nowMs, takesMs, (record) => {
      record.wakesFrom = 'snapshot';
    });
  }

  wake(nowMs: number, takesMs: number): void {
    this.#begin('waking', 'ready', nowMs, takesMs, (record) => {
      record.lastWake = { at: new Date(nowMs).toISOString(), from: record.wakesFrom ?? 'snapshot', reason: null };
      record.wakesFrom = null;
      const { pendingAllocation: pending } = record;
      if (pending !== undefined) this.setSize(pending);
    });
  }

  destroy(nowMs: number, takesMs: number): void {
    this.variables.clear();
    this.#begin('destroying', 'deleted', nowMs, takesMs, (record) => {
      record.deletedAt = new Date(nowMs + takesMs).toISOString();
      record.wakesFrom = null;
    });
  }

  provision(nowMs: number, takesMs: number): void {
    this.#begin('provisioning', 'ready', nowMs, takesMs, () => undefined);
  }

  /** Loses the VM and keeps the disk. */
  fail(nowMs: number, code: string, message: string): void {
    this.#going = null;
    this.record.statusReason = { code, message };
    this.record.wakesFrom = 'disk';
    this.#enter('failed', nowMs);
    this.#onChange(this.record);
  }

  setSize({ vcpu, memoryGb, diskGb }: { vcpu: number; memoryGb: number; diskGb: number }): void {
    Object.assign(this.record, { allocated_vcpu: vcpu, allocated_memory_gb: memoryGb, allocated_disk_gb: diskGb });
    delete this.record.pendingAllocation;
  }

  #begin(
    via: SandboxStatus,
    to: SandboxStatus,
    nowMs: number,
    takesMs: number,
    arrive: (sandbox: Sandbox) => void,
  ): void {
    this.#going = { to, atMs: nowMs + takesMs, arrive };
    this.record.statusReason = null;
    this.#enter(via, nowMs);
  }

  /** Total time awake. */
  awakeMs(nowMs: number): number {
    return this.#awakeMs + (this.#awakeSinceMs === null ? 0 : nowMs - this.#awakeSinceMs);
  }

  #enter(status: SandboxStatus, nowMs: number): void {
    if (this.#awakeSinceMs !== null) this.#awakeMs += nowMs - this.#awakeSinceMs;
    this.#awakeSinceMs = SANDBOX_STATES[status].metered ? nowMs : null;
    const now = new Date(nowMs).toISOString();
    Object.assign(this.record, { status, statusChangedAt: now, updatedAt: now });
  }
}

/** Record of a new sandbox, with the contract's defaults. */
export function newRecord(
  { id, createdBy }: { id: string; createdBy: string },
  body: SandboxBody,
  project: Project,
  nowMs: number,
): Sandbox {
  const now = new Date(nowMs).toISOString();
  const defaultProfile = project.defaultProfile as keyof typeof PROFILE_SIZES | null;
  const profile =
    body.profile ?? (body.machineSize === undefined ? (defaultProfile ?? 'auto') : SIZE_PROFILES[body.machineSize]);
  const size = MACHINE_SIZES[body.machineSize ?? PROFILE_SIZES[profile]];
  const repository = body.repository === undefined ? project.defaultRepository : body.repository;
  return {
    id,
    orgId: project.orgId,
    projectId: project.id,
    name: body.name ?? `sandbox-${id.slice(4, 12)}`,
    agent: body.agent,
    status: 'provisioning',
    statusReason: null,
    statusChangedAt: now,
    sandbox_profile: profile,
    allocated_vcpu: size.vcpu,
    allocated_memory_gb: size.memoryGb,
    allocated_disk_gb: size.diskGb,
    resizing: false,
    persistencePolicy: body.persistencePolicy ?? project.defaultPersistencePolicy ?? 'sleep_resume',
    mode: body.mode ?? 'persistent',
    ttlSeconds: body.ttlSeconds ?? null,
    expiresAt: body.ttlSeconds === undefined ? null : new Date(nowMs + body.ttlSeconds * 1_000).toISOString(),
    wakesFrom: null,
    lastWake: null,
    lastActiveAt: now,
    lastActiveBy: null,
    repository,
    branch: body.branch ?? null,
    clone: repository === null ? null : { status: 'cloned', reason: null },
    egress: egressOf(body.egress) ?? project.defaultEgress ?? egressOf({ mode: 'open' }),
    endUserId: body.endUserId ?? null,
    key: body.getOrCreate?.key ?? null,
    metadata: body.metadata ?? {},
    idleMinutes: body.idleMinutes ?? null,
    createdBy,
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
  };
}

/** The form of a policy in responses. */
export function egressOf(body: EgressRequest): Egress;
export function egressOf(body: EgressRequest | undefined): Egress | undefined;
export function egressOf(body: EgressRequest | undefined): Egress | undefined {
  if (body === undefined) return undefined;
  const { mode, names = [], ranges = [], ports = [] } = body;
  return { mode, names, ranges, ports };
}
